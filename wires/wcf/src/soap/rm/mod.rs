//! Reliable sessions (WS-ReliableMessaging): February 2005, and 1.1 where a client begins with it.
//!
//! The client asks for a sequence and offers one for the way back. Messages are numbered, kept until they are acknowledged,
//! repeated until then, and handed on in order. At most eight are under way in either direction.
//!
//! `Session` is the state machine of one session, made of `Outgoing` and `Incoming`, one for each sequence.
//! `Reliable` is what a channel holds of it: over framing the session is the channel's alone, over HTTP it
//! is shared by all connections of its client and stands among the node's `session_table`. `headers` reads what
//! the protocol adds to messages, `control` writes that and the protocol's own messages.

mod control;
mod headers;
mod incoming;
mod outgoing;
mod owner;
mod retained_bytes;
mod session;
mod session_table;
mod shared;

pub(super) use headers::{Headers, Version, is_own};
pub(super) use owner::Owner;
pub(super) use session::{InboundMessage, Session};
pub(crate) use session_table::Sequences;
pub(crate) use shared::Orphans;
pub(super) use shared::{Reliable, sequence_of, speaks};

use super::faults::FaultContents;
use super::ids::MessageId;
use crate::plan::Plan;
use bytes::Bytes;
use everywire_model::CallId;
use std::sync::Arc;
use std::time::Duration;

/// Sessions over HTTP at one node.
/// Each holds at most `AWAITED` messages, a window of answers, and as many that wait as `InboundMessage::most` allows.
const MAX_SESSIONS: usize = 1024;

/// Messages under way, and the room for messages that we tell of: WCF's MaxTransferWindowSize.
const WINDOW: u64 = 8;
/// How long an acknowledgement waits for a message to travel with.
/// WCF's AcknowledgementInterval.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(200);
/// How long the first repetition waits; each next one twice as long.
/// After eight of them some two minutes have passed since the last, and four since the message was sent
/// first.
const REPEAT_AFTER: Duration = Duration::from_millis(500);
/// How often a message is repeated: WCF's MaxRetryCount.
const REPEATS: u32 = 8;
/// How long a missing message may hold up those behind it.
/// Senders repeat after seconds, so a message that stays away for so long will not come.
const GAP: Duration = Duration::from_secs(60);
/// How long the peer may say nothing at all: WCF's InactivityTimeout.
const INACTIVITY: Duration = Duration::from_secs(600);

/// Questions of one session without an answer that are remembered, requests whose responses wait for others, and messages over HTTP that
/// wait for one before them. More than a window of each, since Metro heeds none: each of its threads sends a request, in any order, and
/// repeats it only when its response has come. A client that goes beyond it is answered late, or with an empty response and has to repeat.
const AWAITED: usize = 64;

/// Messages that wait for the window on a duplex channel before no more is taken of its client: sixteen windows.
/// Acknowledgements there come by themselves, and mostly with its next messages.
const UNANSWERED: u64 = 16 * WINDOW;

/// Bytes of an address or an identifier that a session keeps; no valid one is longer.
const MAX_ADDRESS: usize = 2048;

/// How long a session over HTTP in which no message has come is kept where others want its place.
const UNUSED: Duration = Duration::from_secs(30);

/// A message to send, with its body written.
#[derive(Debug, Clone, Default)]
pub(super) struct Outbound {
    pub(super) action: Box<str>,
    /// Of a message that wants an answer; it is the same in each repetition.
    pub(super) message_id: Option<[u8; 16]>,
    pub(super) relates_to: Option<MessageId>,
    pub(super) to: Option<Box<str>>,
    /// Where answers go, if not back along the connection.
    pub(super) reply_to: Option<Box<str>>,
    /// Headers of its own.
    pub(super) headers: Vec<u8>,
    /// What is inside of the envelope's body.
    pub(super) body: Bytes,
    /// The call that it begins, as long as somebody waits for that.
    pub(super) call: Option<CallId>,
    /// What is known of that call whoever waits for it.
    pub(super) origin: Option<Origin>,
    pub(super) fault: bool,
    /// Whether none follows it.
    pub(super) last: bool,
}

/// What is known of a call that a message begins, for another connection that goes on with it.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// What the call is known by; the message's identifier, if it has one.
    pub(super) guid: [u8; 16],
    /// What its answer is read by.
    pub(super) plan: Arc<Plan>,
}

/// A message to send now.
pub(super) struct NextMessage {
    pub(super) message: Outbound,
    /// All of its headers beside addressing.
    pub(super) headers: Vec<u8>,
    /// Whether it is the response to the message that came last.
    pub(super) answers: bool,
}

/// A message that came: document, action around it, key.
pub(super) type ReceivedMessage = (Bytes, Option<String>, Bytes);

/// What is to be done about a message that came.
pub(super) enum Verdict {
    /// It is not of the session.
    Foreign,
    /// These messages are to be taken now, in order.
    Deliver(Vec<ReceivedMessage>),
    /// It is refused.
    Fault(FaultContents),
}
