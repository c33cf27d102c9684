//! What a reliable session can be: who this side is, how far its own sequence is, how far the peer's is, and what a service owes.
//!
//! The transitions are in `session.rs` and `ending.rs`; nothing here changes by itself.

use crate::soap::faults::FaultContents;
use crate::soap::ids::MessageId;
use crate::soap::rm::Outbound;
use everywire_model::Failure;
use std::collections::VecDeque;
use std::time::Instant;

/// Who this side is, and how messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Role {
    /// It opened the channel: it asks for the sequence, and repeats what is not acknowledged. A service accepted the channel,
    /// and grants the sequence.
    pub(super) is_client: bool,
    /// Answers are the responses to requests, and nothing is sent to the client without one. Otherwise both sides send when
    /// they like.
    pub(super) in_turns: bool,
}

impl Role {
    /// Whether each answer comes as the response to its request.
    pub(super) fn asks(self) -> bool {
        self.is_client && self.in_turns
    }

    /// Whether it answers requests, and says nothing else.
    pub(super) fn responds(self) -> bool {
        !self.is_client && self.in_turns
    }

    pub(super) fn is_duplex_service(self) -> bool {
        !self.is_client && !self.in_turns
    }

    /// Whether it repeats messages by the clock; in turns, a service repeats an answer when it is asked again.
    pub(super) fn is_timed(self) -> bool {
        !self.responds()
    }
}

/// How far this side's sequence is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nobody was asked for a sequence.
    Idle,
    /// It was asked for, so many times, and is asked for again at that time.
    Asking(u32, Instant),
    /// Messages go both ways.
    Open,
    /// `LastMessage` or `CloseSequence` was sent: nothing else follows.
    Closing(Closing),
    /// Neither side says anything more.
    Over(End),
}

/// What the peer has said of the end of this side's sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// Nothing.
    Announced,
    /// It agrees (1.1).
    Agreed,
}

/// Why a session is over.
#[derive(Debug)]
pub(super) enum End {
    /// This side has ended it, or given it up.
    Finished,
    /// The peer has ended it.
    ByPeer(Failure),
    /// Its place was given to others.
    Displaced,
}

/// How far the peer's sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerSequence {
    /// More messages may come.
    Open,
    /// The number of its last message is known.
    Last(u64),
    /// The peer has said that it is closed, and this was its last message: what is acknowledged then is final.
    Closed(u64),
    /// The peer has ended it.
    Ended,
}

impl PeerSequence {
    /// The number of its last message, once that is known; 0 if nothing is waited for.
    pub(super) fn last(self) -> Option<u64> {
        match self {
            Self::Open => None,
            Self::Last(number) | Self::Closed(number) => Some(number),
            Self::Ended => Some(0),
        }
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_) | Self::Ended)
    }

    /// A message says that it is the last one. Which one is the last does not change any more.
    pub(super) fn ends_at(&mut self, number: u64) {
        if *self == Self::Open {
            *self = Self::Last(number);
        }
    }

    pub(super) fn close(&mut self) {
        if !self.is_closed() {
            *self = Self::Closed(self.last().unwrap_or_default());
        }
    }
}

/// What is owed to the message that was received last, over the connection that it came by.
#[derive(Debug, Default)]
pub(in crate::soap) struct ReplyQueue {
    /// Messages of the protocol itself.
    pub(super) control: VecDeque<Outbound>,
    /// The message whose response is to be an old answer, or an acknowledgement; or the answer that another connection will
    /// bring: then this connection sends no response until its waker is woken.
    pub(in crate::soap::rm) owed: Option<Owed>,
    /// Why a message gets no answer any more, and its identifier, if it had one.
    pub(in crate::soap::rm) refused: Option<(FaultContents, Option<MessageId>)>,
}

/// A message that waits for its response.
#[derive(Debug)]
pub(in crate::soap::rm) struct Owed {
    /// Its identifier, if it may have an answer.
    pub(super) id: Option<MessageId>,
    /// Its number; none once it was answered.
    pub(super) number: Option<u64>,
}
