//! One connection's state; each concern of the protocol is a file of its own beside this one.
//!
//! `requests` sends calls and takes those that come, `replies` answers them and takes answers, `locate` asks
//! for and tells where objects are, `addressing` names objects as the peer wants, `passing` sends bodies
//! without a contract, `fragments` joins and splits, `incoming` takes messages off the stream, `bidirectional` lets the peer send
//! requests over a connection that this side made, `close` ends.
//!
//! States: `Open` from the beginning, as the protocol has no greeting; `Closed` after a goodbye of either
//! side; `Broken` after a violation or when the connection has ended. There is no way back. Nothing is sent
//! in `Closed` and `Broken`, input is thrown away, and answers are dropped.
//!
//! Invariants:
//! * `waiting` are the calls of this side without an answer, `serving` those of the peer. Both ascend and are
//!   bounded by `Limits::outstanding`.
//! * Each call in `waiting` ends with exactly one `Event::Reply`, or without one after `cancel`.
//! * `out` holds whole messages only: one that fails half-way is taken back (`whole_message`).
//! * Sizes are checked before anything is reserved, on the way in (`incoming`) and on the way out
//!   (`limits::largest`).
//!
//! Nothing here blocks or looks at a clock: the link brings the time.

use crate::addressing_trials::{Addressing, AddressingTrials};
use crate::bidirectional::BothWays;
use crate::codesets::Dialect;
use crate::frame::{self, Header, MessageKind};
use crate::limits;
use crate::request_heads::{InboundHead, RequestHeads};
use crate::sink::over;
use bytes::{Bytes, BytesMut};
use everywire_model::MessageClock;
use everywire_model::body::Attachments;
use everywire_model::send_buffer::Mark;
use everywire_model::session::no_reply;
use everywire_model::{
    Answer, Body, Call, CallId, Config, Event, Expects, Failure, Handle, Initiator, Kind, Limits, Outcome,
    Peer, Profile, SendBuffer, Session, Violation, Visit,
};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One connection. The fields are the session's own; other files of this crate change those of their concern.
#[derive(Default)]
pub(crate) struct GiopSession {
    pub(crate) role: Role,
    /// Only `goodbye_in`, `error_in`, `say_goodbye` and `broken` change it, and never back to `Open`.
    pub(crate) state: State,
    /// Quotas, as configured for the link.
    pub(crate) limits: Limits,
    /// The address of this side's end of the connection, over TCP.
    pub(crate) local: Option<IpAddr>,
    /// Most bytes of a message or fragment that is sent, header included; 0: messages are not split. Beside the
    /// configuration only `meet_sun` changes it, once.
    pub(crate) fragment: usize,
    /// What is to be sent.
    pub(crate) out: SendBuffer,
    /// What happened and was not polled yet.
    pub(crate) events: VecDeque<Event>,
    /// The results that came before all of them, as most answers do that a thread waits for.
    pub(crate) results: Option<ResultsIn>,
    /// Calls sent and not answered; their ids ascend (wrapping).
    pub(crate) waiting: VecDeque<u32>,
    /// Those of them whose body was passed on: their answers will be, too.
    pub(crate) passed: VecDeque<u32>,
    /// The minor version of GIOP of the last request, of either side: messages without a version of their own, such as a
    /// withdrawal, have it, since the peer has shown that it reads it. 2 before the first.
    pub(crate) minor: u8,
    /// The number of the next request; it goes up by `id_step` and starts again at 0 or 1 after the greatest.
    pub(crate) next_id: u32,
    /// 1, or 2 where the peer sends requests, too, which have the numbers between.
    pub(crate) id_step: u32,
    /// What is known of calls the other way, where the connection carries such.
    pub(crate) both_ways: Option<Box<BothWays>>,
    /// Calls taken and not answered; their serials ascend.
    pub(crate) serving: Vec<InboundCall>,
    /// How many of them are withdrawn.
    pub(crate) withdrawn: usize,
    /// The number of the next call that comes. It is this side's own, since a peer may use its request ids
    /// again.
    pub(crate) next_serial: u64,
    /// The character sets of this connection's requests and of their answers, once they were agreed on: the
    /// client's choice.
    pub(crate) dialect: Option<Dialect>,
    /// Whether whoever has them has been told of them: see [`CodeSetState`].
    pub(crate) sets_told: CodeSetState,
    /// How the peer wants objects to be named.
    pub(crate) addressing: Addressing,
    /// Requests that may have to name their objects in another way.
    pub(crate) trials: AddressingTrials,
    /// What requests begin with that were sent before.
    pub(crate) heads: RequestHeads,
    /// What the last request that came begins with.
    pub(crate) last_head: InboundHead,
    /// Messages of which fragments are missing.
    pub(crate) assemblies: Vec<Assembly>,
    /// Bytes that all assemblies hold, or will when their current fragments are here.
    pub(crate) assembled: u64,
    /// A fragment whose bytes are moved to their assembly as they come.
    pub(crate) filling: Option<Filling>,
    /// A refused request, or a fragment of none, whose bytes are thrown away as they come.
    pub(crate) discarding: Option<DiscardState>,
    /// Bytes of whole messages received so far.
    pub(crate) received: u64,
    /// There is no place for this peer: its first request is refused, for this reason.
    pub(crate) turned_away: Option<Box<Failure>>,
    /// Bytes missing of the message at the front of the input. The link makes room for so many.
    pub(crate) missing: usize,
    /// When the message at the front of the input must be whole, and seconds it was given.
    pub(crate) due: MessageClock,
}

/// How far the character sets of a connection have come that this side chose. A peer that answers its first request by sending it
/// elsewhere may not have looked at them: Sun's ORBs do not, where they know an object by a short name, and then take the next request for
/// one without sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CodeSetState {
    /// Told at the most once, and no result has come.
    #[default]
    Once,
    /// What told them was sent elsewhere: the next request tells them again.
    Again,
    /// A servant has answered.
    Heard,
}

/// Which side opened the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// Sends requests, takes replies.
    #[default]
    Connecting,
    /// Takes requests, sends replies.
    Accepting,
}

/// Whether messages may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// Both ways.
    #[default]
    Open,
    /// Either side said goodbye.
    Closed,
    /// The peer broke the protocol, or the connection ended.
    Broken,
}

/// A call of the peer that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InboundCall {
    /// By this the runtime answers.
    pub(crate) serial: u64,
    /// By this the peer knows it.
    pub(crate) id: u32,
    /// The version and character sets that the answer has to have.
    pub(crate) dialect: Dialect,
    /// What kind of question it is, and so which message answers it.
    pub(crate) asks: RequestKind,
    /// Withdrawn: the answer will be dropped. The entry stays until then, so that withdrawing calls does not let a
    /// peer have more of them executed at a time than the limit.
    pub(crate) cancelled: bool,
}

/// What the peer wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// An operation of a servant.
    Call,
    /// A LocateRequest.
    Locate,
    /// The operation `_non_existent`.
    NonExistent,
    /// The operation `_is_a`.
    IsA,
}

/// A reply with the results of a call, in GIOP 1.2 and without service contexts.
#[derive(Debug)]
pub(crate) struct ResultsIn {
    /// The call.
    pub(crate) id: u32,
    /// Byte order of the reply.
    pub(crate) little: bool,
    /// The whole message.
    pub(crate) message: Bytes,
}

/// A message of which the last fragment is still missing.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// The request; 0 in GIOP 1.1.
    pub(crate) id: u32,
    /// Header of the first part.
    pub(crate) header: Header,
    /// Everything so far, from the header on.
    pub(crate) bytes: BytesMut,
    /// When the first part was here: the time for all of it counts from then, however many fragments follow.
    pub(crate) began: Instant,
    /// When the whole must be here.
    pub(crate) due: Instant,
}

/// A fragment that is read behind its message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling {
    /// Number and version name the assembly that it belongs to.
    pub(crate) id: u32,
    pub(crate) minor: u8,
    /// Bytes of it that have not come yet.
    pub(crate) left: usize,
    /// Whether another fragment follows.
    pub(crate) more: bool,
}

/// Bytes at the front of the input that nobody wants.
#[derive(Debug, Clone)]
pub(crate) struct DiscardState {
    /// How many have not passed yet.
    pub(crate) left: u64,
    /// What ends the connection when all of them have passed, if anything does.
    pub(crate) violation: Option<Violation>,
}

impl GiopSession {
    /// The peer is admitted at once, so `Event::Ready` waits already.
    pub(crate) fn new(role: Role, config: &Config, fragment: usize) -> Self {
        let authentication = if config.peer.credentials.is_some() { "unix credentials" } else { "none" };
        // The protocol has no greeting: calls may come at once.
        let ready = Event::Ready(Peer::admitted(config.peer.clone(), authentication));
        let both_ways = BothWays::of(config, role);
        // Even numbers are those of the side that connects (CORBA 3.3 part 2, section 9.8).
        let (next_id, id_step) = match (&both_ways, role) {
            (Some(_), Role::Connecting) => (2, 2),
            (Some(_), Role::Accepting) => (1, 2),
            (None, _) => (1, 1),
        };
        Self {
            role,
            id_step,
            both_ways,
            limits: config.limits.clone(),
            local: config.local,
            fragment,
            events: VecDeque::from([ready]),
            minor: 2,
            next_id,
            next_serial: 1,
            ..Self::default()
        }
    }

    /// Appends a message that `fill` writes; nothing of it is left if that fails or the message gets too
    /// large. `fill` gets the position of the send buffer at which the message began. With fragments the
    /// message is written to a buffer of its own first, since its size decides how it is cut.
    ///
    /// # Errors
    /// Those of `fill`, and a message over the limit.
    #[inline]
    pub(crate) fn message(
        &mut self,
        minor: u8,
        kind: MessageKind,
        fill: impl FnOnce(&mut Self, usize) -> Visit<()>,
    ) -> Visit<()> {
        if self.fragment == 0 {
            return self.whole_message(minor, kind, fill);
        }
        self.message_in_parts(minor, kind, false, fill)
    }

    /// The same where messages are split. `turned`: its values are in the other byte order, and its headers are to be.
    pub(crate) fn message_in_parts(
        &mut self,
        minor: u8,
        kind: MessageKind,
        turned: bool,
        fill: impl FnOnce(&mut Self, usize) -> Visit<()>,
    ) -> Visit<()> {
        let before = std::mem::take(&mut self.out);
        let result = self.whole_message(minor, kind, fill);
        let whole = std::mem::replace(&mut self.out, before);
        result?;
        self.split(minor, kind, whole, turned);
        Ok(())
    }

    /// The peer has a mark of Sun's ORBs: the context `SUN_VERSION` beside a message, or the component
    /// `TAG_RMI_CUSTOM_MAX_STREAM_FORMAT` in its reference. GlassFish's ORB, of that family, ends the connection when a
    /// message, or a part of one, is larger than 256,000 octets, unless its user raises `ORBMaximumReadByteBufferSize`. It
    /// joins parts, and sends its own so. Others with a mark, such as JBoss's, join them too.
    #[cold]
    pub(crate) fn meet_sun(&mut self) {
        if self.fragment == 0 {
            self.fragment = limits::SUN_PART;
        }
    }

    /// The size in the header is patched at the end, when it is known.
    #[inline]
    fn whole_message(
        &mut self,
        minor: u8,
        kind: MessageKind,
        fill: impl FnOnce(&mut Self, usize) -> Visit<()>,
    ) -> Visit<()> {
        let mark = self.out.mark();
        let (start, header) = (self.out.position(), self.out.flat().len());
        frame::put(self.out.flat(), minor, kind);
        let filled = fill(self, start);
        self.close_message(mark, start, header, filled)
    }

    /// Ends a message that was written: its size goes into the header that begins at `header` of the flat buffer. `start` is the position
    /// at which it began. Where it was not written to its end, or is too large, everything since the mark is taken back.
    #[inline]
    pub(crate) fn close_message(
        &mut self,
        mark: Mark,
        start: usize,
        header: usize,
        filled: Visit<()>,
    ) -> Visit<()> {
        let result = filled.and_then(|()| {
            let size = self.out.position() - start;
            let limit = limits::largest(&self.limits);
            if size as u64 > limit {
                return Err(over(size, usize::try_from(limit).unwrap_or(usize::MAX)));
            }
            let size = u32::try_from(size - frame::HEADER).unwrap_or(u32::MAX);
            frame::set_size(self.out.flat(), header, size);
            Ok(())
        });
        if result.is_err() {
            self.out.truncate(mark);
        }
        result
    }

    /// Nothing is sent after goodbye. A caller who gets this failure may try again on another connection:
    /// nothing was sent.
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.state == State::Open {
            return Ok(());
        }
        Err(Failure::new(Kind::Unreachable, Initiator::Here, "the connection is closed")
            .with_hint("connect again; a reference does so by itself"))
    }

    /// Uses up the number of the request that was just written, in this minor version.
    pub(crate) fn take_id(&mut self, minor: u8) {
        self.minor = minor;
        self.next_id = self.next_id.wrapping_add(self.id_step);
    }

    /// Whether the peer may send requests: on the side that connects only where it said so.
    pub(crate) fn takes_requests(&self) -> bool {
        self.role == Role::Accepting || self.both_ways.is_some()
    }

    /// What belongs to each body of this peer: nothing, unless calls go both ways.
    #[inline]
    pub(crate) fn beside_bodies(&self) -> Option<Arc<Attachments>> {
        self.both_ways.as_deref().and_then(|both_ways| both_ways.beside_bodies.clone())
    }

    /// Forgets a call that was sent; whether it was known. The first in the list is looked at first, as most
    /// peers answer in order.
    #[inline(always)]
    pub(crate) fn settle(&mut self, id: u32) -> bool {
        if self.waiting.front() == Some(&id) {
            self.waiting.pop_front();
            return true;
        }
        self.settle_later(id)
    }

    /// The same for a call that is not the first.
    fn settle_later(&mut self, id: u32) -> bool {
        let Some(&first) = self.waiting.front() else { return false };
        // Ids ascend from the first, wrapping.
        match self.waiting.binary_search_by_key(&id.wrapping_sub(first), |known| known.wrapping_sub(first)) {
            Ok(index) => self.waiting.remove(index).is_some(),
            Err(_) => false,
        }
    }

    /// Tells the caller of a request how it ended.
    #[inline]
    pub(crate) fn reply(&mut self, id: u32, outcome: Outcome<Body>) {
        self.events.push_back(Event::Reply { id: CallId(id.into()), outcome });
    }

    /// All calls that wait come back with this failure. Afterwards nothing waits.
    pub(crate) fn fail_all(&mut self, failure: &Failure) {
        self.trials.clear();
        self.passed.clear();
        while let Some(id) = self.waiting.pop_front() {
            self.reply(id, Outcome::Failed(failure.clone()));
        }
    }
}

impl Session for GiopSession {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        // Nothing of this protocol uses handles; what a transport passes is closed.
        if !handles.is_empty() {
            handles.clear();
        }
        match self.take_messages(now, input) {
            Ok(()) => Ok(()),
            Err(violation) => {
                self.broken();
                Err(violation)
            }
        }
    }

    fn wanted(&self) -> usize {
        self.missing
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        if self.results.is_some() {
            return self.poll_results();
        }
        match self.turned_away {
            None => self.events.pop_front(),
            Some(_) => self.poll_refusing(),
        }
    }

    fn has_reply(&self, id: CallId) -> bool {
        matches!(&self.results, Some(results) if u64::from(results.id) == id.0)
    }

    fn take_reply(&mut self, _: CallId) -> Outcome<Body> {
        match self.results.take() {
            Some(results) => Outcome::Done(self.results_body(results)),
            None => no_reply(),
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
        self.locate(profile)
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        let Ok(index) = self.serving.binary_search_by_key(&id.0, |serving| serving.serial) else {
            return Ok(());
        };
        let serving = self.serving.remove(index);
        if serving.cancelled {
            self.withdrawn -= 1;
            return Ok(());
        }
        if self.state != State::Open {
            return Ok(());
        }
        match serving.asks {
            RequestKind::Locate => self.answer_locate(&serving, answer),
            RequestKind::Call | RequestKind::NonExistent | RequestKind::IsA => {
                self.answer_call(&serving, answer)
            }
        }
    }

    fn cancel(&mut self, id: CallId) {
        let Ok(id) = u32::try_from(id.0) else { return };
        self.trials.settle(id, false);
        self.was_passed(id);
        if self.settle(id) && self.state == State::Open {
            self.send_cancel(id);
        }
    }

    fn held(&self) -> usize {
        self.assemblies.iter().map(|assembly| assembly.bytes.capacity()).sum()
    }

    fn turn_away(&mut self, why: &Failure) -> bool {
        // A goodbye at once would have other ORBs ask again at once, and for ever. This exception is told to whoever calls.
        self.turned_away = Some(Box::new(why.clone().with_code("CORBA::NO_RESOURCES")));
        true
    }

    fn close(&mut self) {
        self.say_goodbye();
    }

    fn disconnected(&mut self, failure: &Failure) {
        self.lost(failure);
    }

    fn peer_serves(&self) -> bool {
        let told = |both_ways: &BothWays| both_ways.peer_points.is_some();
        self.role == Role::Connecting || self.both_ways.as_deref().is_some_and(told)
    }

    fn deadline(&self) -> Option<Instant> {
        let assemblies = self.assemblies.iter().map(|assembly| assembly.due);
        assemblies.chain(self.due.due()).min()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        self.check_time(now).inspect_err(|_| self.broken())
    }

    fn postpone(&mut self, by: Duration) {
        self.due.postpone(by);
        for assembly in &mut self.assemblies {
            assembly.due = assembly.due.checked_add(by).unwrap_or(assembly.due);
        }
    }

    fn outstanding(&self) -> usize {
        self.waiting.len() + self.serving.len() - self.withdrawn
    }
}

impl GiopSession {
    /// The events of a peer that there is no place for: its calls are refused one by one and never become
    /// events, and after the first answer this side says goodbye. `Event::Closed` comes when all of that was
    /// sent.
    #[cold]
    fn poll_refusing(&mut self) -> Option<Event> {
        while let Some(event) = self.events.pop_front() {
            let id = match event {
                Event::Call(incoming) => incoming.id,
                Event::Probe { id, .. } => id,
                other => return Some(other),
            };
            if let Some(why) = self.turned_away.take() {
                // One that expects no answer gets none.
                let _ = self.answer(id, Answer::Failed(&why));
                self.turned_away = Some(why);
            }
            if self.serving.is_empty() {
                self.say_goodbye();
            }
        }
        // When that has left, nothing is to be said any more.
        let over = self.state == State::Closed && self.out.is_empty();
        over.then(|| {
            self.turned_away = None;
            Event::Closed
        })
    }
}

/// Whether the caller waits. Bit 0 of the response flags, in every version.
pub(crate) fn expects(flags: u8) -> Expects {
    if flags & 1 != 0 { Expects::Reply } else { Expects::Nothing }
}
