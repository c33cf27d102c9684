//! One reliable session: both sequences, and the messages of the protocol itself.
//!
//! States, as types in `states.rs`:
//!
//! * `Role`: client or service, and whether answers are the responses to requests (HTTP) or travel when they like (framing). It never changes.
//! * `Stage`, of this side's sequence: `Idle`, `Asking` (a client only: CreateSequence goes again until it is answered), `Open`, `Closing`,
//!   `Over`. A service goes from `Idle` to `Open` at once. Nothing leaves `Over`, which says why.
//! * `PeerSequence`, of the other sequence: `Open`, `Last` (the number of its last message is known), `Closed`, `Ended`.
//!
//! What always holds:
//!
//! * A message has its number when it first leaves, and keeps it; it is repeated under that number until it is acknowledged.
//! * `out.id` and `came.id` are both set in `Open` and after it; no message is taken whose sequence is not `came.id`.
//! * A service in turns sends only what answers the request at hand (`ReplyQueue`): its answer, an acknowledgement, or a fault.
//! * A message that is not taken for want of room is not acknowledged either, so its sender repeats it.
//! * All that a peer can make grow is bounded: identifiers by `MAX_ADDRESS`, questions by `AWAITED`, messages by `WINDOW` or `AWAITED`, answers
//!   that it does not acknowledge by `InboundMessage::most` and by `AWAITED` or `UNANSWERED`.

mod ending;
mod owed;
mod states;
mod time;

pub(super) use states::ReplyQueue;
use states::{Closing, End, Owed, PeerSequence, Role, Stage};

use super::control::Protocol;
use super::headers::{Acknowledgement, Version};
use super::incoming::{Acceptance, Incoming};
use super::outgoing::Outgoing;
use super::retained_bytes::RetainedBytes;
use super::{
    AWAITED, INACTIVITY, MAX_ADDRESS, NextMessage, Outbound, REPEAT_AFTER, REPEATS, UNANSWERED, UNUSED,
    Verdict, WINDOW, control,
};
use crate::plan::Plan;
use crate::soap::cursor::Document;
use crate::soap::faults::FaultContents;
use crate::soap::head::Head;
use crate::soap::ids::{self, MessageId};
use crate::soap::names::ANONYMOUS;
use crate::soap::{Dialect, Soap};
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{CallId, Completed, Failure, Initiator, Kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// A message that came, and what surrounds it.
pub(in crate::soap) struct InboundMessage<'a> {
    pub(in crate::soap) head: &'a Head<'a>,
    pub(in crate::soap) bytes: &'a Bytes,
    /// The same, to be read.
    pub(in crate::soap) document: Document<'a>,
    pub(in crate::soap) action: Option<&'a str>,
    pub(in crate::soap) key: &'a Bytes,
    /// The address of this side.
    pub(in crate::soap) here: &'a str,
    /// Bytes of answers that are kept for the client before nothing more is taken of it.
    pub(in crate::soap) most: u64,
}

/// One session.
#[derive(Debug)]
pub(in crate::soap) struct Session {
    /// The version is the client's choice.
    protocol: Protocol,
    soap: Soap,
    role: Role,
    /// It changes in `next` (asking, ending) and `receive` (granted, ended), by `give_up`, `end_for` and
    /// `displace`.
    stage: Stage,
    /// Whether this side wants to end the session: `next` does so when everything has arrived.
    closing: bool,
    /// The identifier of the message that asks, or that asked, for the sequence.
    pub(super) asked: MessageId,
    /// The call whose message left last; `None` for the protocol's own messages. Over HTTP a fault that
    /// names no message answers this one.
    in_hand: Option<CallId>,
    /// Messages of this side.
    pub(in crate::soap) out: Outgoing,
    /// Messages of the peer.
    pub(in crate::soap) came: Incoming,
    /// Of a client: where its messages go, as the first one said.
    to: Option<Box<str>>,
    /// When anything came last.
    pub(super) heard: Option<Instant>,
    /// When the first of those messages left after which nothing has come from the peer.
    spoke: Option<Instant>,
    /// How far the peer is with its sequence.
    peer: PeerSequence,
    /// The service's own address, as the client calls it.
    here: Box<str>,
    /// The client's latest questions that have no answer yet.
    asked_of_us: VecDeque<MessageId>,
    /// Questions whose answers were there when it was displaced.
    lost: Vec<MessageId>,
    /// Wakers of the connections whose requests wait for an answer that comes by another connection, or for
    /// room.
    awaited: Vec<Waker>,
    /// What it keeps of messages, as `count` found it last.
    pub(super) kept: RetainedBytes,
}

impl Session {
    /// The side that opened the channel.
    pub(in crate::soap) fn asking(dialect: Dialect, in_turns: bool) -> Self {
        let offer = control::identifier();
        Self {
            protocol: Protocol { form: dialect.form, version: Version::February },
            soap: dialect.soap,
            role: Role { is_client: true, in_turns },
            stage: Stage::Idle,
            closing: false,
            asked: MessageId::Unique(ids::random()),
            in_hand: None,
            out: Outgoing::new(None, in_turns),
            came: Incoming::new(Some(offer), !in_turns, WINDOW),
            to: None,
            heard: None,
            spoke: None,
            peer: PeerSequence::Open,
            here: Box::default(),
            asked_of_us: VecDeque::new(),
            lost: Vec::new(),
            awaited: Vec::new(),
            kept: RetainedBytes::default(),
        }
    }

    /// The side that accepted it, when the other begins a session.
    pub(in crate::soap) fn asked(dialect: Dialect, in_turns: bool) -> Self {
        let reach = if in_turns { AWAITED as u64 } else { WINDOW };
        let (out, came) = (Outgoing::new(None, false), Incoming::new(None, true, reach));
        Self { role: Role { is_client: false, in_turns }, out, came, ..Self::asking(dialect, in_turns) }
    }

    /// Whether a message begins a session.
    pub(in crate::soap) fn begins(head: &Head<'_>) -> bool {
        version_of(head, "CreateSequence").is_some()
    }

    /// Takes a message to send; `next` gives it a number when it may go.
    pub(in crate::soap) fn queue(&mut self, message: Outbound, desk: &mut ReplyQueue) {
        if self.to.is_none() {
            self.to.clone_from(&message.to);
        }
        if self.role.responds() {
            // It is the response to this request and to no other.
            desk.owed = Some(Owed { id: message.relates_to.clone(), number: None });
            self.asked_of_us.retain(|id| message.relates_to.as_ref() != Some(id));
        }
        self.out.push(message);
        self.wake();
    }

    /// Counts what it keeps of messages.
    pub(super) fn count(&mut self) {
        if self.kept.is_counted() {
            self.kept.set(self.out.kept() + self.came.kept(), self.is_over());
        }
    }

    /// Whether neither side says anything more.
    pub(in crate::soap) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Whether this message asked for it.
    pub(super) fn was_asked_by(&self, id: &MessageId) -> bool {
        !matches!(self.stage, Stage::Idle) && self.asked == *id
    }

    /// Whether nobody will come back to it. `crowded`: whether places are scarce, so that only what is used is kept for long.
    pub(super) fn is_forsaken(&self, now: Instant, crowded: bool) -> bool {
        let life = if crowded && self.came.is_unused() { UNUSED } else { INACTIVITY };
        self.is_over() || self.heard.is_none_or(|heard| heard + life <= now)
    }

    /// Why it is over, if it was the peer that ended it.
    pub(in crate::soap) fn ended(&self) -> Option<&Failure> {
        match &self.stage {
            Stage::Over(End::ByPeer(failure)) => Some(failure),
            _ => None,
        }
    }

    /// Whether the message of a call still waits to go, or was turned away unread: in turns, a fault is the response to the
    /// request that left last, and tells of no other.
    pub(in crate::soap) fn holds(&self, call: CallId) -> bool {
        let unknown = self.ended().is_some_and(|failure| failure.code() == Some("rm UnknownSequence"));
        let turned_away = self.role.in_turns && unknown && self.in_hand == Some(call);
        self.out.holds(call) || (turned_away && self.out.was_sent_once(call))
    }

    /// Something went wrong that another connection does not mend.
    pub(in crate::soap) fn give_up(&mut self) {
        if !self.is_over() {
            self.stage = Stage::Over(End::Finished);
        }
    }

    /// Whether the message of this call has left and has no answer yet.
    pub(in crate::soap) fn asks(&self, question: &[u8; 16]) -> bool {
        matches!(self.stage, Stage::Open) && self.out.has_left(question)
    }

    /// Another call goes on with one whose message has left. Returns what its answer is read by, if there is such a message.
    pub(in crate::soap) fn wait_for(&mut self, question: &[u8; 16], call: CallId) -> Option<Arc<Plan>> {
        if matches!(self.stage, Stage::Open) { self.out.wait_for(question, call) } else { None }
    }

    /// Its connection is gone. Whether it may go on over another one: what has its number still arrives, though nobody waits
    /// for that any more.
    pub(super) fn orphan(&mut self) -> bool {
        let goes_on = self.out.orphan();
        goes_on && self.role.asks() && matches!(self.stage, Stage::Open) && !self.closing
    }

    /// The next message to send.
    pub(in crate::soap) fn next(
        &mut self,
        now: Instant,
        desk: &mut ReplyQueue,
        waker: Option<&Waker>,
    ) -> Option<NextMessage> {
        let answers = self.role.responds();
        if let Some(message) = desk.control.pop_front() {
            return Some(self.dressed(message, None, answers));
        }
        match self.stage {
            Stage::Idle if self.role.is_client && self.out.first().is_some() => {
                return Some(self.ask(0, now));
            }
            Stage::Asking(times, due) if due <= now && times < REPEATS => return Some(self.ask(times, now)),
            Stage::Over(_) if answers => {}
            Stage::Idle | Stage::Asking(..) | Stage::Over(_) => return None,
            Stage::Open | Stage::Closing(_) => {}
        }
        if let Some(owed) = desk.owed.take() {
            return self.pay(owed, now, desk, waker);
        }
        if !answers && let Some((number, message)) = self.out.next(now, self.role.is_timed()) {
            self.spoke.get_or_insert(now);
            return Some(self.dressed(message, Some(number), answers));
        }
        if self.closing && self.may_end() {
            return self.end(now);
        }
        if !self.role.in_turns && self.came.is_due(now) {
            return Some(self.dressed(self.protocol.empty("SequenceAcknowledgement"), None, false));
        }
        None
    }

    /// Asks for a sequence; `times` says how often that was done before. Each wait is twice as long as the
    /// one before.
    fn ask(&mut self, times: u32, now: Instant) -> NextMessage {
        self.stage = Stage::Asking(times + 1, now + REPEAT_AFTER * (1 << times));
        self.in_hand = None;
        let (id, offer) = (self.asked.guid().unwrap_or_default(), self.came.id.clone().unwrap_or_default());
        let message = self.protocol.create(id, &offer, self.to.clone());
        NextMessage { message, headers: Vec::new(), answers: false }
    }

    /// A message with the headers of the protocol.
    fn dressed(&mut self, mut message: Outbound, number: Option<u64>, answers: bool) -> NextMessage {
        self.in_hand = message.call.filter(|_| number.is_some());
        let mut headers = message.headers.clone();
        if let (Some(number), Some(id)) = (number, &self.out.id) {
            headers.extend(self.protocol.sequence(id, number, message.last));
        }
        let said = self.came.tell(self.peer.is_closed() && self.protocol.version == Version::Oasis);
        if let Some(said) = said {
            headers.extend(self.protocol.acknowledgement(&said));
        }
        if message.to.is_none() && self.role.is_client {
            message.to.clone_from(&self.to);
        }
        NextMessage { message, headers, answers }
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It breaks the protocol, or the session was refused.
    pub(in crate::soap) fn receive(
        &mut self,
        now: Instant,
        came: &InboundMessage<'_>,
        desk: &mut ReplyQueue,
    ) -> Visit<Verdict> {
        (self.heard, self.spoke) = (Some(now), None);
        let head = came.head;
        if !self.role.is_client {
            check_kept(head)?;
        }
        if Self::begins(head) {
            return self.created(came, desk);
        }
        if head.relates_to.as_ref().is_some_and(|id| *id == self.asked || id.guid() == self.asked.guid())
            && self.role.is_client
        {
            return self.granted(came);
        }
        if let Some(said) = &head.reliable.acknowledgement
            && let Some(refusal) = self.acknowledged(said)?
        {
            return Ok(Verdict::Fault(refusal));
        }
        if let Some(id) = &head.reliable.requested {
            if self.came.id.as_ref() != Some(id) {
                return Ok(Verdict::Fault(self.unknown(id)));
            }
            self.came.ask(now);
        }
        if let Some(sequence) = &head.reliable.sequence {
            // Not its own: somebody means another session, or one that is gone.
            let own = self.came.id.as_ref() == Some(&sequence.id);
            if own && self.is_over() && self.role.is_client && self.closing {
                // The service ends its sequence, too; nobody is there any more to tell it so.
                return Ok(Verdict::Deliver(Vec::new()));
            }
            if !own || self.is_over() {
                return Ok(Verdict::Fault(self.unknown(&sequence.id)));
            }
            if let Some(refusal) = self.late(sequence.number) {
                return Ok(Verdict::Fault(refusal));
            }
            if sequence.last {
                self.peer.ends_at(sequence.number);
            }
            return Ok(self.numbered(now, sequence.number, came, desk));
        }
        if let Some(verdict) = self.control_message(came, desk)? {
            return Ok(verdict);
        }
        let is_fault = head.is_fault(self.soap);
        if is_fault && self.ends_with(came)? {
            return Ok(Verdict::Deliver(Vec::new()));
        }
        if head.relates_to.is_some() || is_fault || !matches!(self.stage, Stage::Open) {
            self.answered(head);
            if let Some(call) = self.in_hand.filter(|_| head.relates_to.is_none() && self.role.asks()) {
                // A fault that does not say what it answers is the response to what was asked last.
                self.out.conclude(call);
            }
            return Ok(Verdict::Foreign);
        }
        let reason =
            "The Web Services Reliable Messaging protocol is required, and the message is of no sequence.";
        Ok(Verdict::Fault(self.protocol.version.fault("WsrmRequired", reason)))
    }

    /// Why a message comes too late that has not come before: its sender has closed the sequence, and was told for good what
    /// has arrived (WS-ReliableMessaging 1.1, 3.5 and 4.8), or has said that another message is the last one (February 2005,
    /// 4.4). What came before is only acknowledged again.
    fn late(&self, number: u64) -> Option<FaultContents> {
        if self.came.has(number) {
            return None;
        }
        let (name, reason) = match self.peer {
            PeerSequence::Last(last) if number > last => (
                "LastMessageNumberExceeded",
                "The value for wsrm:MessageNumber exceeds the value of the MessageNumber accompanying a LastMessage element in \
                 this Sequence.",
            ),
            peer if peer.is_closed() => {
                ("SequenceClosed", "The Sequence is closed and cannot accept new messages.")
            }
            _ => return None,
        };
        let id = self.came.id.as_deref().unwrap_or_default();
        Some(self.protocol.version.fault(name, reason).about(self.protocol.version, id))
    }

    /// A message of a sequence.
    fn numbered(
        &mut self,
        now: Instant,
        number: u64,
        came: &InboundMessage<'_>,
        desk: &mut ReplyQueue,
    ) -> Verdict {
        let is_control = version_of(came.head, "LastMessage").is_some();
        // Answers that travel when they like may well wait for an acknowledgement that comes a little later.
        let most = if self.role.responds() { AWAITED as u64 } else { UNANSWERED };
        let is_full = self.out.backlog() as u64 >= most || self.out.kept() as u64 >= came.most;
        if !self.role.is_client && is_full && !self.came.has(number) {
            // Whoever takes no answers gets no more of them: this is neither taken nor acknowledged.
            desk.owed = None;
            return Verdict::Deliver(Vec::new());
        }
        self.answered(came.head);
        let arrived = (came.bytes.clone(), came.action.map(str::to_owned), came.key.clone());
        let taken = self.came.take(now, number, (!is_control).then_some(arrived));
        if self.role.responds() && !self.came.has(number) {
            // It is not kept, so no answer will come: an empty response makes its sender repeat it. An acknowledgement without this number
            // would be the answer to Metro, and a violation to WCF.
            desk.owed = None;
            return Verdict::Deliver(Vec::new());
        }
        if self.role.responds() {
            let wants = came.head.message_id.clone().filter(|_| !is_control);
            if let Some(id) = wants.as_ref().filter(|_| !matches!(taken, Acceptance::Again))
                && !self.asked_of_us.contains(id)
            {
                // One-way calls may have identifiers, too, and are never answered.
                self.asked_of_us.truncate(AWAITED - 1);
                self.asked_of_us.push_front(id.clone());
            }
            // The answer to a fresh question comes by itself; what has none is acknowledged at once.
            desk.owed = match (&taken, wants) {
                (Acceptance::Now(_), Some(_)) => None,
                (_, id) => Some(Owed { id, number: Some(number) }),
            };
        }
        match taken {
            Acceptance::Now(messages) => Verdict::Deliver(messages),
            Acceptance::Again | Acceptance::Later => Verdict::Deliver(Vec::new()),
        }
    }

    /// An answer is the end of its question's repetitions.
    fn answered(&mut self, head: &Head<'_>) {
        if let Some(question) = head.relates_to.as_ref().filter(|_| self.role.asks()) {
            self.out.answered(question);
        }
    }

    /// A client asks for a sequence.
    fn created(&mut self, came: &InboundMessage<'_>, desk: &mut ReplyQueue) -> Visit<Verdict> {
        let id = came.head.message_id.clone();
        let refused = |version: Version| {
            let reason =
                "The sequence was not created: the channel has a session already, or none was offered.";
            Ok(Verdict::Fault(version.fault("CreateSequenceRefused", reason)))
        };
        let Some(version) = version_of(came.head, "CreateSequence").filter(|_| !self.role.is_client) else {
            return refused(self.protocol.version);
        };
        let (_, offered) = control::identifiers(came.document)?;
        if offered.as_ref().is_some_and(|id| id.len() > MAX_ADDRESS) {
            return refused(version);
        }
        let again = !matches!(self.stage, Stage::Idle) && id.as_ref() == Some(&self.asked);
        if !again && (!matches!(self.stage, Stage::Idle) || offered.is_none() || id.is_none()) {
            return refused(version);
        }
        if !again {
            self.protocol.version = version;
            self.asked = id.clone().unwrap_or(MessageId::Unique([0; 16]));
            self.out.id = offered;
            self.came.id = Some(control::identifier());
            self.stage = Stage::Open;
        }
        let granted = self.came.id.clone().unwrap_or_default();
        // A client takes acknowledgements to the very address only that it calls, which may be another name of this host.
        let to = came.head.to.as_deref().filter(|to| *to != ANONYMOUS && !to.is_empty());
        self.here = to.unwrap_or(came.here).into();
        desk.control.push_back(self.protocol.created(id, &granted, &self.here));
        Ok(Verdict::Deliver(Vec::new()))
    }

    /// The service answers whether there is a session.
    fn granted(&mut self, came: &InboundMessage<'_>) -> Visit<Verdict> {
        if !matches!(self.stage, Stage::Asking(..)) {
            return Ok(Verdict::Deliver(Vec::new()));
        }
        let (about, _) = control::identifiers(came.document)?;
        match about.filter(|_| version_of(came.head, "CreateSequenceResponse").is_some()) {
            Some(id) => {
                self.out.id = Some(id);
                self.stage = Stage::Open;
                Ok(Verdict::Deliver(Vec::new()))
            }
            None => Err(refused("")),
        }
    }

    /// The peer says which messages arrived. Returns the fault if it means another sequence.
    fn acknowledged(&mut self, said: &Acknowledgement) -> Visit<Option<FaultContents>> {
        if self.out.id.as_ref() != Some(&said.id) {
            return Ok(Some(self.unknown(&said.id)));
        }
        self.out.acknowledged(said)?;
        // Answers that waited for the window may go.
        self.wake();
        Ok(None)
    }

    /// The fault UnknownSequence about this identifier, with the reason if there is one.
    fn unknown(&self, id: &str) -> FaultContents {
        self.protocol.version.unknown(id, matches!(self.stage, Stage::Over(End::Displaced)))
    }
}

/// What a session keeps of heads has an end: its client chooses it.
fn check_kept(head: &Head<'_>) -> Visit<()> {
    let id = head.message_id.as_ref().map_or(0, MessageId::length);
    let to = head.to.as_deref().map_or(0, str::len);
    let longest = id.max(to);
    if longest <= MAX_ADDRESS {
        return Ok(());
    }
    Err(Failure::over_limit(Initiator::Peer, "bytes of an address or identifier", longest, MAX_ADDRESS))
}

/// The client's calls fail with it: nothing of them was sent.
#[cold]
fn refused(reason: &str) -> Failure {
    let said = if reason.is_empty() { String::new() } else { format!(": {}", reason.trim()) };
    Failure::new(Kind::Unsupported, Initiator::Peer, format!("the service grants no reliable session{said}"))
        .with_code("rm CreateSequenceRefused")
        .with_completed(Completed::No)
        .with_hint("leave `reliable=on` out of the address")
}

/// The version of a message of the protocol with this name, if it is one.
fn version_of(head: &Head<'_>, name: &str) -> Option<Version> {
    let (namespace, found) = head.action.as_deref()?.rsplit_once('/')?;
    if found == name { Version::of_word(namespace) } else { None }
}
