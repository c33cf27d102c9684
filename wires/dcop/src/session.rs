//! One connection to the server; each concern of the protocol is a file of its own beside this one.
//!
//! `incoming` takes messages off the stream, `registration` gets this side a name, `request_templates` holds what repeated
//! messages begin with, `calls` sends calls, `replies` takes answers, `reasons` asks why a call failed,
//! `deaths` finds the calls whose callee died, `oversized` fails the calls of messages over the limit,
//! `serving` takes calls and answers them, `signals` tells and hears.
//!
//! States (`Phase`): `Greeting`, `Handshake` and `Registration` until the server has given this side a name;
//! then `Open`; at the end `Closed` (a goodbye of either side) or `Broken` (a violation, or the connection
//! ended). There is no way back. The user may call, tell and subscribe in `Open` alone.
//!
//! Invariants:
//! * Each key in `pending` has one call; a key is never below `FIRST_KEY`. A call is known outside by its key
//!   and its number together, as keys of call trees are used again.
//! * Each call of the user ends with exactly one `Event::Reply`, or without one after `cancel`.
//! * `out` holds whole messages only, beside those of the handshake.
//! * The server is trusted to frame messages, nobody to fill them.

use crate::ice::{Framing, Initiator};
use crate::inbound_calls::{Chain, InboundCall};
use crate::limits;
use crate::names::TypeNames;
use crate::request_templates::{CallHeads, RequestTemplate, RequestTemplates};
use crate::slots::{Slot, Sub};
use crate::trees::Tree;
use crate::values::DataStream;
use crate::violations::ProtocolError;
use crate::{address, servers};
use bytes::{Bytes, BytesMut};
use everywire_model::MessageClock;
use everywire_model::number_hasher::NumberHasher;
use everywire_model::{
    Answer, Body, Call, CallId, Config, Context, Emission, Event, Failure, Handle, Initiator as By, Kind,
    Limits, Outcome, PeerAddress, Profile, Purpose, SendBuffer, Session, SignalFilter, Violation,
};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One connection. Other files of this crate change the fields of their concern.
#[derive(Default)]
pub(crate) struct DcopSession {
    pub(crate) phase: Phase,
    /// Quotas, as configured for the link.
    pub(crate) limits: Limits,
    /// Calling, or serving under a name.
    pub(crate) purpose: Purpose,
    /// What is known of the server.
    pub(crate) peer: PeerAddress,
    /// Number of the server in this process.
    pub(crate) server: u32,
    /// The id to register with, and whether the server may add a suffix.
    pub(crate) wanted: Bytes,
    pub(crate) suffix: bool,
    /// What was wrong with the authority file; empty if a cookie was found.
    pub(crate) without_cookie: String,
    /// Whether the server is one of Trinity: types have that spelling then.
    pub(crate) trinity: bool,
    /// The id that the server gave.
    pub(crate) name: Bytes,
    /// How the server frames its messages; nothing before the handshake is over.
    pub(crate) framing: Option<Framing>,
    /// What is to be sent.
    pub(crate) out: SendBuffer,
    /// What happened and was not polled yet.
    pub(crate) events: VecDeque<Event>,
    /// Keys of calls that were sent; they ascend from a random one.
    pub(crate) next_key: u32,
    /// Calls that were sent and not answered, by key.
    pub(crate) pending: HashMap<u32, Pending, NumberHasher>,
    /// The number of the call that was sent last; the count starts again at 1.
    pub(crate) sent: u32,
    /// The call trees in which this process serves.
    pub(crate) tree: Option<&'static Tree>,
    /// Calls that were withdrawn, until their answers come: the key of a call tree is not to be used again before, and the server
    /// tells of their end as of any other.
    pub(crate) withdrawn: HashMap<u32, Pending, NumberHasher>,
    /// The ways of calls.
    pub(crate) ways: RequestTemplates,
    /// The ways of signals that were told.
    pub(crate) emitted: RequestTemplates,
    /// Fronts of messages that came.
    pub(crate) came: CallHeads,
    /// Names of result types.
    pub(crate) names: TypeNames,
    /// The types of the last answer.
    pub(crate) context: Context,
    /// Calls of others that are open, by serial.
    pub(crate) serving: HashMap<u64, InboundCall, NumberHasher>,
    /// Open calls of the same key, by key.
    pub(crate) chains: HashMap<u32, Chain, NumberHasher>,
    /// The number of the next call that comes.
    pub(crate) next_serial: u64,
    /// Numbers of answers that were announced.
    pub(crate) next_wait: i32,
    /// Subscriptions, by the number that the user knows.
    pub(crate) subs: HashMap<u64, Sub, NumberHasher>,
    /// Signals of subscriptions, by the number in their object id.
    pub(crate) slots: HashMap<u64, Slot, NumberHasher>,
    /// The number of the next one; none is used again.
    pub(crate) next_slot: u64,
    /// Whether the server tells who comes and goes.
    pub(crate) notified: bool,
    /// Questions about callees that may have died, while some are open.
    pub(crate) round: Option<ProbeRound>,
    /// Deaths of callees that were told and have not ended a call yet.
    pub(crate) deaths: usize,
    /// Bytes still to come of a message over the limit: they are dropped.
    pub(crate) skip: u64,
    /// Bytes of whole messages received so far.
    pub(crate) received: u64,
    /// Bytes missing of the message at the front of the input.
    pub(crate) missing: usize,
    /// When what has begun must be whole, and seconds it was given.
    pub(crate) due: MessageClock,
}

/// How far the connection is.
#[derive(Default)]
pub(crate) enum Phase {
    /// The handshake of ICE; not begun until somebody looks what is to be sent.
    Greeting(Initiator),
    /// Under way: this side has greeted.
    Handshake(Initiator),
    /// Waiting for a name.
    Registration,
    /// Calls pass both ways.
    Open,
    /// For what this wire does not have: it is over as soon as anything happens, and sends nothing. Everybody is told why.
    Refused(ProtocolError),
    /// Either side said goodbye.
    Closed,
    /// The peer broke the protocol, or the connection ended.
    #[default]
    Broken,
}

/// A call that was sent.
pub(crate) struct Pending {
    /// Whom it asks for what.
    pub(crate) way: Arc<RequestTemplate>,
    /// Who wants the answer.
    pub(crate) asks: CallPurpose,
    /// Its place among the calls that were sent.
    pub(crate) number: u32,
    /// Whether the key is that of a call tree, which others use too.
    pub(crate) shared: bool,
}

impl Pending {
    /// What the call is known by outside: a key may be used again, this is not.
    pub(crate) fn id(&self, key: u32) -> CallId {
        CallId(u64::from(self.number) << 32 | u64::from(key))
    }
}

/// Who wants to know.
pub(crate) enum CallPurpose {
    /// Whoever uses the session.
    Call,
    /// The same, for somebody else: a hop passes an answer on as it came, and asks nothing of its own.
    Passed,
    /// The same: whether an object is there.
    Probe,
    /// The same: why this call of it failed.
    Why(Arc<RequestTemplate>),
    /// Nobody.
    Quiet,
    /// A subscription, whether the server connected this slot.
    Connect(u64),
    /// Whether an application is still there.
    Alive(Bytes),
}

/// Questions about callees that are open; what they are for says `deaths`.
pub(crate) struct ProbeRound {
    /// Questions without an answer.
    pub(crate) left: usize,
    /// Another death was told meanwhile.
    pub(crate) again: bool,
    /// Applications that are registered, each with the number of the question.
    pub(crate) alive: Vec<(Bytes, u32)>,
}

impl CallPurpose {
    /// Whether whoever uses the session waits for an outcome.
    pub(crate) fn has_outcome(&self) -> bool {
        matches!(self, Self::Call | Self::Passed | Self::Probe | Self::Why(_))
    }
}

impl DcopSession {
    /// `cookie` is the secret to show, or why there is none.
    pub(crate) fn new(config: &Config, cookie: Result<Vec<u8>, String>) -> Self {
        let app = address::application(&config.profile);
        let wanted = match config.purpose {
            Purpose::Serving if !app.is_empty() => Bytes::copy_from_slice(app),
            _ => Bytes::from(format!("anonymous-{}", std::process::id())),
        };
        let exact =
            config.purpose == Purpose::Serving && config.profile.component(address::ANY_SUFFIX).is_none();
        let mut seed = [0; 4];
        // Without random numbers keys begin at the same one: they only need to differ from each other.
        let _ = getrandom::fill(&mut seed);
        let (cookie, without_cookie) = match cookie {
            Ok(cookie) => (Some(cookie), String::new()),
            Err(why) => (None, why),
        };
        let server = config.profile.endpoints.first().map_or(0, servers::number);
        Self {
            phase: Phase::Greeting(Initiator::new(cookie)),
            limits: config.limits.clone(),
            purpose: config.purpose,
            peer: config.peer.clone(),
            server,
            wanted,
            suffix: !exact,
            without_cookie,
            next_key: u32::from_ne_bytes(seed),
            tree: servers::tree(server),
            next_serial: 1,
            next_wait: 1,
            next_slot: 1,
            ..Self::default()
        }
    }

    /// A session that only says why there can be none. Its first deadline has passed already.
    pub(crate) fn refusing(wrong: ProtocolError) -> Self {
        let mut session = Self { phase: Phase::Refused(wrong), ..Self::default() };
        session.due.allow(Instant::now(), Duration::ZERO);
        session
    }

    /// Nothing is sent before this side has a name, and after goodbye.
    ///
    /// # Errors
    /// Busy before, which may be tried again; unreachable after.
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        match self.phase {
            Phase::Open => Ok(()),
            Phase::Greeting(_) | Phase::Handshake(_) | Phase::Registration => {
                Err(Failure::new(Kind::Busy, By::Here, "the server has not admitted this side yet"))
            }
            Phase::Refused(ref wrong) => Err(wrong.violation(0).into()),
            Phase::Closed | Phase::Broken => {
                Err(Failure::new(Kind::Unreachable, By::Here, "the connection to the DCOP server is closed")
                    .with_hint("connect again; a reference does so by itself"))
            }
        }
    }

    /// A key that no open call has and that means nothing to anybody else. There is always one, since far
    /// fewer calls are open than there are keys.
    #[inline]
    pub(crate) fn take_key(&mut self) -> u32 {
        loop {
            let key = self.next_key;
            self.next_key = self.next_key.wrapping_add(1);
            if key >= limits::FIRST_KEY && !self.pending.contains_key(&key) {
                return key;
            }
        }
    }

    /// The key for a call that somebody here makes, and whether it is that of a call tree. A tree's key that
    /// is in use here already is not used twice: its answers could not be told apart.
    #[inline]
    pub(crate) fn call_key(&mut self) -> (u32, bool) {
        match self.tree.and_then(Tree::key) {
            Some(key) if !self.pending.contains_key(&key) && !self.withdrawn.contains_key(&key) => {
                (key, true)
            }
            _ => (self.take_key(), false),
        }
    }

    /// Notes a call that was sent; returns the number by which the runtime knows it.
    #[inline]
    pub(crate) fn expect(
        &mut self,
        (key, shared): (u32, bool),
        way: Arc<RequestTemplate>,
        asks: CallPurpose,
    ) -> CallId {
        // 0 is for what is no call.
        self.sent = self.sent.checked_add(1).unwrap_or(1);
        let pending = Pending { way, asks, number: self.sent, shared };
        let id = pending.id(key);
        self.pending.insert(key, pending);
        id
    }

    /// A body that came, with the types of its values.
    #[inline]
    pub(crate) fn body(&self, bytes: Bytes, types: Context) -> Body {
        DataStream::body(bytes, types, self.server, self.limits.budget)
    }

    /// Tells the user how a call ended.
    #[inline]
    pub(crate) fn reply(&mut self, id: CallId, outcome: Outcome<Body>) {
        self.events.push_back(Event::Reply { id, outcome });
    }

    /// All calls that wait come back with this failure.
    pub(crate) fn fail_all(&mut self, failure: &Failure) {
        let mut all: Vec<(u32, Pending)> = self.pending.drain().collect();
        // In the order they were sent.
        all.sort_by_key(|(_, pending)| pending.number.wrapping_sub(self.sent).wrapping_sub(1));
        for (key, pending) in all {
            match pending.asks {
                CallPurpose::Call | CallPurpose::Passed | CallPurpose::Probe | CallPurpose::Why(_) => {
                    self.reply(pending.id(key), Outcome::Failed(failure.clone()));
                }
                CallPurpose::Connect(slot) => self.refused_slot(slot, failure),
                CallPurpose::Quiet | CallPurpose::Alive(_) => {}
            }
        }
        self.round = None;
        self.deaths = 0;
    }

    /// After a violation nothing more is taken or sent. What is in the output still goes out.
    pub(crate) fn broken(&mut self) {
        self.phase = Phase::Broken;
        self.due.stop();
        self.missing = 0;
    }
}

impl Session for DcopSession {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        // Nothing of this protocol uses handles; what a transport passes is closed.
        handles.clear();
        self.take_messages(now, input).inspect_err(|_| self.broken())
    }

    fn wanted(&self) -> usize {
        self.missing
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    #[inline]
    fn transmit(&mut self) -> &mut SendBuffer {
        if let Phase::Greeting(_) = self.phase {
            self.greet();
        }
        &mut self.out
    }

    fn start(&mut self, _: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.call(call)
    }

    fn probe(&mut self, _: Instant, profile: &Profile) -> Result<CallId, Failure> {
        self.find(profile)
    }

    fn emit(&mut self, _: Instant, emission: &Emission<'_>) -> Result<(), Failure> {
        self.tell(emission)
    }

    fn subscribe(
        &mut self,
        _: Instant,
        profile: &Profile,
        filter: SignalFilter<'_>,
    ) -> Result<CallId, Failure> {
        self.listen(profile, filter)
    }

    fn unsubscribe(&mut self, id: CallId) {
        self.unlisten(id.0);
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        self.answer_call(id.0, answer)
    }

    fn cancel(&mut self, id: CallId) {
        // The protocol cannot withdraw a call; its answer will find nobody.
        let key = u32::try_from(id.0 & u64::from(u32::MAX)).unwrap_or_default();
        if self.pending.get(&key).is_some_and(|pending| pending.id(key) == id)
            && let Some(pending) = self.pending.remove(&key)
        {
            if self.withdrawn.len() < limits::WITHDRAWN {
                self.withdrawn.insert(key, pending);
            } else if pending.shared {
                // Too many to tell apart.
                self.tree = None;
            }
        }
    }

    fn close(&mut self) {
        // Goodbye is to close the socket.
        if !matches!(self.phase, Phase::Broken) {
            self.phase = Phase::Closed;
            self.due.stop();
            self.missing = 0;
        }
    }

    fn disconnected(&mut self, failure: &Failure) {
        use everywire_model::Completed;
        let failure = failure.clone().with_completed(Completed::Maybe);
        self.fail_all(&failure);
        self.serving.clear();
        self.chains.clear();
        self.broken();
    }

    fn granted(&self, asked: &Profile) -> Option<Profile> {
        (self.name != self.wanted).then(|| address::beside(asked, &self.name, &asked.key))
    }

    fn deadline(&self) -> Option<Instant> {
        self.due.due()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        self.check_time(now).inspect_err(|_| self.broken())
    }

    fn postpone(&mut self, by: Duration) {
        self.due.postpone(by);
    }

    fn outstanding(&self) -> usize {
        let asked = self.pending.values().filter(|pending| pending.asks.has_outcome());
        asked.count() + self.serving.len()
    }
}
