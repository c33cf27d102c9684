//! How a connection ends, and what becomes of the calls on it.

use super::{Connecting, Phase};
use crate::framing::faults::{self, UPGRADE_INVALID};
use crate::framing::records::RecordKind;
use crate::violations::ProtocolError;
use everywire_model::{Completed, Event, Expects, Failure, Initiator, Kind, Outcome, Violation};

impl Connecting {
    /// The peer says no more.
    pub(super) fn ended(&mut self) {
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the peer ended the channel");
        self.ended_by(&failure.with_completed(Completed::Maybe));
    }

    /// A message of a reliable session came, which is all that the channel is for: it may have ended.
    #[cold]
    pub(super) fn look_at_session(&mut self) {
        if let Some(failure) = self.exchange.ended() {
            self.ended_by(&failure);
        } else if self.parting {
            self.part();
        }
    }

    /// Says the goodbye of the channel, unless its reliable session still has something to say: a service reads nothing
    /// behind it.
    pub(super) fn part(&mut self) {
        if self.phase == Phase::Open && !self.exchange.is_parting() {
            let _ = self.channel.put(|out| out.push(RecordKind::End as u8));
            self.phase = Phase::Over;
        }
    }

    /// Answers the end in kind, if the channel was open, and tells the link that it is over.
    pub(super) fn ended_by(&mut self, failure: &Failure) {
        if self.phase == Phase::Open && !self.is_streamed() {
            // The goodbye is a courtesy.
            let _ = self.channel.put(|out| out.push(RecordKind::End as u8));
        }
        self.lost(failure);
        self.ending = true;
    }

    /// A Fault record came: what it means to callers. It may stand in place of anything that this side
    /// waits for.
    #[cold]
    pub(super) fn faulted(&mut self, uri: &[u8]) -> ProtocolError {
        let uri = String::from_utf8_lossy(uri);
        let via = &self.preamble.via;
        let failure = if uri == faults::uri(UPGRADE_INVALID) {
            faults::upgrade_refused(via, self.channel.settings.transport_security)
        } else {
            faults::failure(&uri, via, self.preamble.encoding.content_type())
        };
        self.refused(failure.with_completed(self.completed()))
    }

    /// Until the channel was open nothing of a call was sent.
    pub(super) fn completed(&self) -> Completed {
        if self.phase == Phase::Open { Completed::Maybe } else { Completed::No }
    }

    /// Keeps a failure for the callers, and returns what the link is told.
    pub(super) fn keep(&mut self, failure: Failure) -> String {
        let message = failure.to_string();
        self.refusal = Some(failure);
        message
    }

    #[cold]
    pub(super) fn refused(&mut self, failure: Failure) -> ProtocolError {
        ProtocolError::Refused { message: self.keep(failure) }
    }

    /// What the exchange says goes to the callers as it is.
    #[cold]
    pub(super) fn torn(&mut self, failure: Failure) -> ProtocolError {
        ProtocolError::Envelope { message: self.keep(failure) }
    }

    /// Ends the session because of a breach: all calls fail, with what is known best about the reason.
    #[cold]
    pub(super) fn broken(&mut self, breach: &ProtocolError) -> Violation {
        let violation = breach.violation(self.channel.received);
        let quotas = &self.channel.settings.quotas;
        // A failure that was kept says more than the violation does.
        let failure = match (self.refusal.take(), breach) {
            (Some(failure), _) => failure,
            // A new failure says that nothing was carried out.
            (None, ProtocolError::NoPreamble { .. }) => {
                Failure::new(Kind::TimedOut, Initiator::Peer, breach.to_string())
            }
            (None, ProtocolError::OverLimit { .. }) => {
                quotas.message_too_large(Initiator::Peer).with_completed(Completed::Maybe)
            }
            _ => violation.clone().into(),
        };
        self.lost(&failure);
        self.refusal = Some(failure);
        violation
    }

    /// All calls fail. Whoever waits for an answer whose request has left cannot know whether it was
    /// carried out.
    pub(super) fn lost(&mut self, failure: &Failure) {
        self.phase = Phase::Over;
        for id in std::mem::take(&mut self.probes) {
            self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure.clone()) });
        }
        // What was not sent can be tried again.
        let turns = self.turn.take().into_iter().chain(self.queue.drain(..));
        let turns = turns.map(|turn| (turn.id, turn.expects, turn.message.is_empty()));
        let held = self.held.drain(..).map(|(id, expects)| (id, expects, false));
        for (id, expects, sent) in held.chain(turns).collect::<Vec<_>>() {
            let completed = if sent { Completed::Maybe } else { Completed::No };
            let failure = failure.clone().with_completed(completed);
            match expects {
                Expects::Reply => self.exchange.fail(id, failure),
                Expects::Nothing => {
                    self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure) });
                }
            }
        }
        self.exchange.disconnected(failure);
    }
}
