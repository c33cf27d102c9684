//! One connection's state; each concern of the protocol is a file of its own beside this one.
//!
//! Below it are what it consists of: `greeting` authenticates; `header_cache`, `routes` and `heads` remember what is
//! said again and again, `pending_calls` and `serving` the calls that are open, `subscriptions` who listens. Above
//! it is what it does: `admission` begins, `joining` greets the bus; `incoming` takes messages off the
//! stream, `outgoing` puts them there; `requests` sends calls and takes those that come, `replies` answers
//! them and takes answers, `signals` sends signals and subscribes.
//!
//! States (`Stage`): `Greeting` until both sides have authenticated; `Joining` while a bus is asked for what
//! is needed first; then `Open`, or `Overhearing` for a monitor; at the end `Closed` (this side ended) or
//! `Broken` (a violation, or the connection ended). There is no way back. Calls of the user are refused but
//! in `Open`. Calls of others that come while who serves is still `Joining` wait in `early`: a bus that has
//! started this program for a call delivers it before it says that the name is ours.
//!
//! Invariants:
//! * `Event::Ready` comes once, when `become_ready` is reached, and before any call.
//! * A serial number is never 0, and not used again while it is waited for.
//! * `out` holds whole messages only, beside the words of the greeting.
//! * A peer without a place (`turned_away`) greets as others do, and hears why with the answer to its first call.
//! * The protocol has no goodbye and no word for an error of the protocol: both ends are a closed connection.

use crate::address::{TAG_BUS, TAG_NAME};
use crate::greeting::{COOKIE, Greeting};
use crate::header_cache::HeaderCache;
use crate::heads::CachedReplyHead;
use crate::limits;
use crate::names;
use crate::pending_calls::{Pending, PendingCalls};
use crate::routes::Routes;
use crate::serving::InboundCalls;
use crate::sink::Scratch;
use crate::subscriptions::Subscriptions;
use bytes::{Bytes, BytesMut};
use everywire_model::MessageClock;
use everywire_model::{
    Answer, Body, Call, CallId, Config, Emission, Event, Failure, Handle, Incoming, Initiator, Kind, Limits,
    Outcome, Peer, PeerAddress, Profile, Purpose, SendBuffer, Session, SignalFilter, Violation,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The error that whoever finds no place is told.
const CROWDED: &str = "org.freedesktop.DBus.Error.LimitsExceeded";

/// One connection. Other files of this crate change the fields of their concern.
#[derive(Default)]
pub(crate) struct DbusSession {
    /// Whether messages may pass.
    pub(crate) stage: Stage,
    /// Quotas of this connection, see `limits::on`.
    pub(crate) limits: Limits,
    /// Whether both sides agreed to pass handles.
    pub(crate) handles: bool,
    /// What is to be sent.
    pub(crate) out: SendBuffer,
    /// Memory for encoding, kept between messages.
    pub(crate) scratch: Scratch,
    /// What happened and was not polled yet.
    pub(crate) events: VecDeque<Event>,
    /// Calls that came before this side was ready: together no larger than one largest message.
    pub(crate) early: Vec<Incoming>,
    /// Calls sent and not answered, by serial number.
    pub(crate) waiting: PendingCalls,
    /// See `take_serial`.
    pub(crate) next_serial: u32,
    /// Calls of the peer that are not answered.
    pub(crate) serving: InboundCalls,
    /// Calls that came while there was something that the peer had not read.
    pub(crate) unread: usize,
    /// Headers of calls and signals that were sent.
    pub(crate) routes: Routes,
    /// Header fields of messages that came.
    pub(crate) seen: HeaderCache,
    /// Who listens to what.
    pub(crate) subscriptions: Subscriptions,
    /// What the connection is for, if a bus is at the other end.
    pub(crate) bus: Option<Bus>,
    /// Whether the peer connected to this side.
    pub(crate) accepted: bool,
    /// What is known of the peer.
    pub(crate) address: PeerAddress,
    /// The way that was tried, and after a refusal the one to try next.
    pub(crate) way: Profile,
    /// The server refused to let this side in, and named another way: see `Session::again`.
    pub(crate) refused: bool,
    /// In which way the peer has shown who it is, for people.
    pub(crate) authentication: &'static str,
    /// Bytes of whole messages received so far, and of the greeting.
    pub(crate) received: u64,
    /// Bytes missing of the message at the front of the input.
    pub(crate) missing: usize,
    /// When this side must be let in, or the peer must have shown who it is, and seconds given for it.
    pub(crate) ready_by: MessageClock,
    /// Whether the peer has shown who it is, and had its time anew for that.
    pub(crate) known: bool,
    /// Whether the peer was read after its time, by this side's fault, and had its time anew for that.
    pub(crate) heard_late: bool,
    /// When the message at the front of the input must be whole, and seconds it was given.
    pub(crate) due: MessageClock,
    /// The header of the last answer.
    pub(crate) answered: CachedReplyHead,
    /// Bytes left of a refused message, which are thrown away as they come.
    pub(crate) discarding: Option<u64>,
    /// Why there is no place for the peer: its first call is answered with that, and then this side closes.
    turned_away: Option<Box<Failure>>,
}

/// How far the connection is.
#[derive(Default)]
pub(crate) enum Stage {
    Greeting(Box<Greeting>),
    /// Authenticated; the bus was asked for something that is needed before calls.
    Joining,
    /// Calls pass both ways.
    Open,
    /// A monitor: what comes is for others.
    Overhearing,
    /// This side said that it will close.
    Closed,
    /// The peer broke the protocol, or the connection ended.
    #[default]
    Broken,
}

/// A bus at the other end.
pub(crate) struct Bus {
    /// Why this side is on the bus.
    pub(crate) purpose: Purpose,
    /// The bus as an object.
    pub(crate) profile: Profile,
    /// The name to own, when serving.
    pub(crate) name: Bytes,
    /// The flags to ask for it with.
    pub(crate) flags: u8,
}

impl DbusSession {
    /// A session whose peer is admitted already, peer to peer: for what tests the rest.
    pub(crate) fn admitted(config: &Config) -> Self {
        let mut session = Self::new(config, Stage::Open);
        session.handles = true;
        session.become_ready();
        session
    }

    /// A session at this stage, without a bus.
    pub(crate) fn new(config: &Config, stage: Stage) -> Self {
        Self {
            stage,
            limits: limits::on(config),
            next_serial: 1,
            address: config.peer.clone(),
            way: config.profile.clone(),
            authentication: "none",
            ..Self::default()
        }
    }

    /// Calls may be sent and will come.
    pub(crate) fn become_ready(&mut self) {
        let overhears = self.bus.as_ref().is_some_and(|bus| bus.purpose == Purpose::Monitoring);
        self.stage = if overhears { Stage::Overhearing } else { Stage::Open };
        self.ready_by.stop();
        let peer = Peer::admitted(self.address.clone(), self.authentication);
        // Who knows the cookie is the user whose file it is in: one person, whatever address he comes from.
        let peer = if self.authentication == COOKIE { peer.with_account(COOKIE) } else { peer };
        self.events.push_back(Event::Ready(peer));
        let early = std::mem::take(&mut self.early).into_iter();
        self.events.extend(early.map(|call| Event::Call(Box::new(call))));
    }

    /// The next serial number. Zero is none, and one that is still waited for is not used again. Some number
    /// is always free, since far fewer calls wait than there are numbers.
    #[inline]
    pub(crate) fn take_serial(&mut self) -> u32 {
        loop {
            let serial = self.next_serial;
            self.next_serial = serial.wrapping_add(1).max(1);
            if !self.waiting.holds(serial) {
                return serial;
            }
        }
    }

    /// Whether this side may say something now.
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        let what = match self.stage {
            Stage::Open => return Ok(()),
            Stage::Greeting(_) | Stage::Joining => "the peer has not let this side in yet",
            Stage::Overhearing => "a monitor may not call",
            Stage::Closed | Stage::Broken => "the connection is closed",
        };
        Err(Failure::new(Kind::Unreachable, Initiator::Here, what)
            .with_hint("connect again; a reference does so by itself"))
    }

    /// Tells the user how a call or a subscription ended.
    pub(crate) fn reply(&mut self, id: CallId, outcome: Outcome<Body>) {
        self.events.push_back(Event::Reply { id, outcome });
    }

    /// After a violation nothing more is taken or sent. What is in the output still goes out.
    pub(crate) fn broken(&mut self) {
        self.stage = Stage::Broken;
        self.discarding = None;
        self.due.stop();
        self.ready_by.stop();
        self.missing = 0;
    }
}

impl Bus {
    /// The bus that a connection goes to, if it does.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        // Whoever wants to overhear others means a bus, also by an address alone.
        if config.purpose != everywire_model::Purpose::Monitoring {
            config.profile.component(TAG_BUS)?;
        }
        let profile = Profile {
            wire: config.profile.wire,
            key: Bytes::from_static(crate::standard::driver::KEY.as_bytes()),
            components: vec![(TAG_NAME, Bytes::from_static(names::BUS.as_bytes()))],
            ..Profile::default()
        };
        let flags = config.profile.component(crate::address::TAG_FLAGS).and_then(|flags| flags.first());
        Some(Self {
            purpose: config.purpose,
            profile,
            name: config.profile.component(TAG_NAME).cloned().unwrap_or_default(),
            flags: flags.copied().unwrap_or(crate::address::DO_NOT_QUEUE),
        })
    }
}

impl Session for DbusSession {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        self.take_messages(now, input, handles).inspect_err(|_| self.broken())
    }

    fn wanted(&self) -> usize {
        self.missing
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        match self.turned_away {
            None => self.events.pop_front(),
            Some(_) => self.poll_refusing(),
        }
    }

    #[inline]
    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.out
    }

    fn start(&mut self, _: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.request(call)
    }

    fn probe(&mut self, _: Instant, profile: &Profile) -> Result<CallId, Failure> {
        self.ask_whether_there(profile)
    }

    fn emit(&mut self, _: Instant, emission: &Emission<'_>) -> Result<(), Failure> {
        self.send_signal(emission)
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
        self.listen_no_more(id);
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        match self.serving.leave(id) {
            Some(caller) if matches!(self.stage, Stage::Open) => self.answer_call(&caller, answer),
            _ => Ok(()),
        }
    }

    fn cancel(&mut self, id: CallId) {
        // The protocol has no word for it: the answer will find nobody waiting.
        if let Ok(serial) = u32::try_from(id.0) {
            self.waiting.remove(serial);
        }
    }

    fn turn_away(&mut self, why: &Failure) -> bool {
        // A refusal while it greets would tell it that it is not who it says. This is the name that the bus has for too many connections.
        self.turned_away = Some(Box::new(why.clone().with_code(CROWDED)));
        true
    }

    fn close(&mut self) {
        // The protocol has no goodbye: what is in the output goes out, then the connection ends.
        if !matches!(self.stage, Stage::Broken) {
            self.broken();
            self.stage = Stage::Closed;
        }
    }

    fn disconnected(&mut self, failure: &Failure) {
        let failure = failure.clone().with_completed(everywire_model::Completed::Maybe);
        self.fail_all(&failure);
        self.serving = InboundCalls::default();
        self.broken();
    }

    fn deadline(&self) -> Option<Instant> {
        [self.ready_by, self.due].into_iter().filter_map(MessageClock::due).min()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        self.check_time(now).inspect_err(|_| self.broken())
    }

    fn postpone(&mut self, by: Duration) {
        self.due.postpone(by);
    }

    fn again(&self) -> Option<Profile> {
        self.refused.then(|| self.way.clone())
    }

    fn is_routed(&self) -> bool {
        self.bus.is_some()
    }

    fn outstanding(&self) -> usize {
        self.waiting.len() + self.serving.len()
    }
}

impl DbusSession {
    /// The events of a peer that there is no place for: its calls are refused and never become events, and after those that come
    /// first this side closes. `Event::Closed` comes when the refusal was sent.
    #[cold]
    fn poll_refusing(&mut self) -> Option<Event> {
        let mut called = false;
        while let Some(event) = self.events.pop_front() {
            if let Event::Call(incoming) = event
                && let Some(why) = self.turned_away.take()
            {
                // One that expects no answer gets none.
                let _ = self.answer(incoming.id, Answer::Failed(&why));
                self.turned_away = Some(why);
                called = true;
            }
        }
        if called {
            self.close();
        }
        let over = matches!(self.stage, Stage::Closed) && self.out.is_empty();
        over.then(|| {
            self.turned_away = None;
            Event::Closed
        })
    }

    /// All calls of the user that wait come back with this failure, and subscriptions that were not
    /// confirmed. Calls to the bus on this side's own account just end.
    fn fail_all(&mut self, failure: &Failure) {
        for (serial, pending) in self.waiting.drain() {
            if matches!(pending, Pending::Call { .. } | Pending::Probe(_)) {
                self.reply(CallId(serial.into()), Outcome::Failed(failure.clone()));
            }
        }
        for id in self.subscriptions.unconfirmed() {
            self.reply(id, Outcome::Failed(failure.clone()));
        }
    }

    /// A failure that says the connection is over its quota of calls.
    pub(crate) fn too_many_calls(&self) -> Failure {
        let limit = self.limits.outstanding as u64;
        let what = format!("more than {limit} calls are open on this connection");
        Failure::new(Kind::LimitExceeded, Initiator::Peer, what)
            .with_hint("wait for answers before sending more, or raise the limit of outstanding calls")
    }

    /// Looks at the clocks.
    ///
    /// # Errors
    /// The greeting cannot begin, or time is over.
    pub(crate) fn check_time(&self, now: Instant) -> Result<(), Violation> {
        if let Stage::Greeting(greeting) = &self.stage
            && let Greeting::Impossible(wrong) = &**greeting
        {
            return Err(self.wrong(wrong));
        }
        let late = [self.ready_by, self.due].into_iter().find_map(|clock| clock.late(now));
        match late {
            Some(seconds) => Err(self.wrong(&crate::violations::ProtocolError::TooSlow { seconds })),
            None => Ok(()),
        }
    }
}
