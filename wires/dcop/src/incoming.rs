//! Taking messages off the stream: frames, limits, time.
//!
//! `take_messages` is a loop over the front of the input: the handshake, then frames. It returns when it
//! needs more bytes; then `missing` tells the link how many, and `due` when they must be here. A message over
//! the limit fails its own call and is dropped as it comes (`oversized`), for the server passes on what
//! anybody sends.
//!
//! What is wrong with a frame is a violation of the server's and ends the connection. What is wrong inside of
//! one is the mistake of whoever filled it: then only that message fails.

use crate::ice::{self, CoreAction, Frame, Message, minor};
use crate::limits;
use crate::session::{DcopSession, Phase};
use crate::violations::ProtocolError;
use bytes::BytesMut;
use everywire_model::{Event, Failure, Initiator, Kind, Violation};
use std::time::Instant;

impl DcopSession {
    /// Handles all whole messages at the front of the input. The rest stays there.
    ///
    /// # Errors
    /// The server broke the protocol, or does not admit this side.
    pub(crate) fn take_messages(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Violation> {
        self.missing = 0;
        if matches!(self.phase, Phase::Greeting(_) | Phase::Handshake(_)) && !self.shake(now, input)? {
            return Ok(());
        }
        loop {
            if matches!(self.phase, Phase::Closed | Phase::Broken) {
                // What comes after goodbye concerns nobody.
                input.clear();
                return Ok(());
            }
            if let Phase::Refused(wrong) = &self.phase {
                input.clear();
                return Err(wrong.violation(0));
            }
            let Some(framing) = &mut self.framing else { return Ok(()) };
            let before = input.len();
            if self.skip > 0 {
                let whole = self.drop_rest(input);
                self.received += (before - input.len()) as u64;
                if !whole {
                    return Ok(());
                }
                continue;
            }
            let frame = match framing.split(input) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    let missing = framing.wanted();
                    self.wait(now, input.len(), missing);
                    return Ok(());
                }
                Err(ice::ProtocolError::OverLimit { size, .. })
                    if size <= limits::LONGEST
                        && input.first() != Some(&0)
                        && matches!(self.phase, Phase::Open) =>
                {
                    let taken = self.take_oversized(now, size, input);
                    self.received += (before - input.len()) as u64;
                    if !taken {
                        return Ok(());
                    }
                    self.due.stop();
                    continue;
                }
                Err(wrong) => return Err(wrong.violation(self.received)),
            };
            match frame {
                Frame::Dcop(message) => {
                    self.message(message).map_err(|wrong| wrong.violation(self.received))?;
                    if !matches!(self.phase, Phase::Registration) {
                        self.due.stop();
                    }
                }
                Frame::Ice(raw) => {
                    let little = framing.little;
                    match ice::late(&raw, little, 0, self.out.flat()) {
                        Ok(CoreAction::Go) => {}
                        Ok(CoreAction::Close) => self.goodbye(),
                        Err(wrong) => return Err(wrong.violation(self.received)),
                    }
                }
            }
            self.received += (before - input.len()) as u64;
        }
    }

    /// Takes one message. Before this side has a name, only the answer to its registration counts.
    fn message(&mut self, message: Message) -> Result<(), ProtocolError> {
        let Message { minor: kind, key, payload } = message;
        if matches!(self.phase, Phase::Registration) {
            return self.registered(kind, &payload);
        }
        match kind {
            minor::SEND | minor::CALL | minor::FIND => self.called(kind, key, payload),
            minor::REPLY => self.replied(key, &payload, false),
            minor::REPLY_DELAYED => self.replied(key, &payload, true),
            minor::REPLY_FAILED => self.refused(key, &payload),
            // The answer that is announced comes with the same key: nothing is to be done.
            _ => {}
        }
        Ok(())
    }

    /// Notes that `have` bytes of a message are here and `missing` are not; `have` 0: none has begun. The
    /// time of the registration runs on through messages.
    pub(crate) fn wait(&mut self, now: Instant, have: usize, missing: usize) {
        self.missing = missing;
        if have == 0 || matches!(self.phase, Phase::Registration) {
            if !matches!(self.phase, Phase::Registration) {
                self.due.stop();
            }
            return;
        }
        self.due.allow(now, self.limits.time_for((have + missing) as u64));
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// What had begun is not here in time.
    pub(crate) fn check_time(&mut self, now: Instant) -> Result<(), Violation> {
        match self.due.late(now) {
            Some(_) if let Phase::Refused(wrong) = &self.phase => Err(wrong.violation(0)),
            Some(seconds) => Err(ProtocolError::TooSlow { seconds }.violation(self.received)),
            None => Ok(()),
        }
    }

    /// The server says goodbye. Calls that wait may have run.
    fn goodbye(&mut self) {
        self.phase = Phase::Closed;
        let failure =
            Failure::new(Kind::Unreachable, Initiator::Peer, "the DCOP server closed the connection")
                .with_completed(everywire_model::Completed::Maybe);
        self.fail_all(&failure);
        self.events.push_back(Event::Closed);
    }
}
