//! Streamed calls, each in a channel of its own: one after the other they are let in, sent, and heard to the end.
//!
//! A call begins its turn when the one before has ended on both sides. Until it is sent it can be
//! withdrawn; from then on its answer must be read, since nothing else ends the channel.

use super::{Connecting, Phase, found};
use crate::framing::channel::frame;
use crate::framing::preamble::Mode;
use crate::violations::ProtocolError;
use everywire_model::{CallId, Completed, Expects, Failure, Initiator, Kind, SendBuffer};
use std::time::Instant;

/// A streamed call.
pub(super) struct StreamedCall {
    pub(super) id: CallId,
    pub(super) expects: Expects,
    /// Its records, until they are sent.
    /// Empty from then on.
    pub(super) message: SendBuffer,
}

impl Connecting {
    /// Puts a call that the exchange wrote among those that wait for their turn.
    pub(super) fn enqueue(&mut self, now: Instant, id: CallId, expects: Expects) -> Result<(), Failure> {
        let mut message = SendBuffer::new();
        self.channel.compress();
        frame(Mode::SingletonUnsized, &mut self.channel.payload, &mut message)?;
        self.queue.push_back(StreamedCall { id, expects, message });
        if self.turn.is_none() {
            self.next_turn(now);
        }
        Ok(())
    }

    /// Sends the streamed call whose turn it is, or asks to be let in again for it.
    pub(super) fn next_turn(&mut self, now: Instant) {
        if self.turn.is_none() {
            self.turn = self.queue.pop_front();
        }
        match self.phase {
            Phase::Between if self.turn.is_some() => self.introduce(now),
            // Its bytes are framed already, with the End record behind them.
            Phase::Open => {
                if let Some(turn) = &mut self.turn {
                    self.ending |= self.channel.put_framed(&mut turn.message).is_err();
                }
            }
            _ => {}
        }
    }

    /// Both sides have said all of a streamed call.
    pub(super) fn end_turn(&mut self, now: Instant) -> Result<(), ProtocolError> {
        let Some(turn) = self.turn.take() else {
            // Nobody was asked: the peer does not want to be.
            self.ended();
            return Ok(());
        };
        match turn.expects {
            Expects::Reply => {
                let message = "the peer ended the channel without a reply";
                let failure = Failure::new(Kind::Unreachable, Initiator::Peer, message);
                // If the reply has come, the exchange waits no more, and nothing happens.
                self.exchange.fail(turn.id, failure.with_completed(Completed::Maybe));
            }
            // Its end is all that is ever heard of it.
            Expects::Nothing => self.events.push_back(found(turn.id)),
        }
        self.channel.shut();
        if self.channel.layer.is_plain() {
            self.phase = Phase::Between;
            self.next_turn(now);
        } else {
            // The layer ended with the channel (MC-NMF 3.1.1.1.5).
            self.ended();
        }
        Ok(())
    }
}
