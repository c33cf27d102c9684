//! How a session ends: what each side says of its own sequence, and what it makes of the peer's words.
//!
//! February 2005: the last message is marked, its acknowledgement is waited for, and TerminateSequence
//! follows. 1.1: CloseSequence is answered, and then TerminateSequence is. Over HTTP a client ends both
//! sequences; over framing each side ends its own, the service after the client.

use super::{Closing, End, InboundMessage, PeerSequence, ReplyQueue, Session, Stage, refused, version_of};
use crate::soap::faults::Fault;
use crate::soap::ids;
use crate::soap::rm::headers::Version;
use crate::soap::rm::{NextMessage, Outbound, Verdict, control};
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator, Kind};
use std::time::Instant;

impl Session {
    /// This side wants to end it; `next` does so when the time has come.
    pub(in crate::soap) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether this side wants to end it and has not said so yet, since its sequence is not granted or messages of it have not
    /// arrived.
    pub(in crate::soap) fn is_parting(&self) -> bool {
        self.closing && matches!(self.stage, Stage::Asking(..) | Stage::Open | Stage::Closing(_))
    }

    /// Whether the client of a duplex channel says nothing more: it waits for this side's end then.
    pub(in crate::soap) fn is_told_all(&self) -> bool {
        self.role.is_duplex_service() && self.peer.last().is_some_and(|last| self.came.is_whole(last))
    }

    /// Whether the next word of the end may be said.
    pub(super) fn may_end(&self) -> bool {
        if !self.role.is_duplex_service() {
            // On an ordered stream nothing overtakes the last message: the end may follow it at once.
            return self.role.is_client
                && (matches!(self.stage, Stage::Closing(_)) && !self.role.in_turns || self.out.is_done());
        }
        match (&self.stage, self.protocol.version) {
            (Stage::Closing(said), Version::Oasis) => *said == Closing::Agreed,
            // A client of WCF's wants to have acknowledged the last message before it hears of the end.
            (Stage::Closing(_), Version::February) => self.peer == PeerSequence::Ended || self.out.is_done(),
            _ => self.out.backlog() == 0,
        }
    }

    /// Says that nothing follows, and when that has arrived, that the sequence is over.
    pub(super) fn end(&mut self, now: Instant) -> Option<NextMessage> {
        // Each call says one word of the end.
        let service = self.role.is_duplex_service();
        let last = self.out.last_number();
        if matches!(self.stage, Stage::Open)
            && self.protocol.version == Version::February
            && (last > 0 || service)
        {
            self.stage = Stage::Closing(Closing::Announced);
            self.out.push(Outbound { last: true, ..self.protocol.empty("LastMessage") });
            let (number, message) = self.out.next(now, false)?;
            return Some(self.dressed(message, Some(number), false));
        }
        let id = self.out.id.clone()?;
        if matches!(self.stage, Stage::Open) && service {
            self.stage = Stage::Closing(Closing::Announced);
            return Some(self.asked_to_end("CloseSequence", &id, last));
        }
        if service {
            // What this side would ask its client now has no way to it any more.
            self.end_for("SequenceTerminated", "");
            return Some(self.asked_to_end("TerminateSequence", &id, last));
        }
        self.give_up();
        let message = self.protocol.about("TerminateSequence", &id, Some(last));
        Some(self.dressed(message, None, false))
    }

    /// What a service says of the end of its own sequence. In 1.1 that is a request, which a client takes from the address that it
    /// calls only.
    fn asked_to_end(&mut self, name: &'static str, id: &str, last: u64) -> NextMessage {
        let message = self.protocol.about(name, id, Some(last));
        let message = match self.protocol.version {
            Version::February => message,
            Version::Oasis => {
                Outbound { message_id: Some(ids::random()), reply_to: Some(self.here.clone()), ..message }
            }
        };
        self.dressed(message, None, false)
    }

    /// A message of the protocol itself.
    pub(super) fn control_message(
        &mut self,
        came: &InboundMessage<'_>,
        desk: &mut ReplyQueue,
    ) -> Visit<Option<Verdict>> {
        let head = came.head;
        let is = |name| version_of(head, name).is_some();
        let only_headers = is("SequenceAcknowledgement") || is("AckRequested");
        if only_headers || is("TerminateSequenceResponse") || is("LastMessage") {
            return Ok(Some(Verdict::Deliver(Vec::new())));
        }
        if is("CloseSequenceResponse") {
            if let Stage::Closing(said) = &mut self.stage {
                *said = Closing::Agreed;
            }
            return Ok(Some(Verdict::Deliver(Vec::new())));
        }
        let (closes, ends) = (is("CloseSequence"), is("TerminateSequence"));
        if !closes && !ends {
            return Ok(None);
        }
        // It must mean the peer's own sequence.
        let (about, _) = control::identifiers(came.document)?;
        if about.is_none() || about != self.came.id {
            return Ok(Some(Verdict::Fault(self.unknown(about.as_deref().unwrap_or_default()))));
        }
        let about = about.unwrap_or_default();
        self.peer.close();
        match self.protocol.version {
            Version::Oasis => {
                let name = if closes { "CloseSequenceResponse" } else { "TerminateSequenceResponse" };
                let answer = self.protocol.about(name, &about, None);
                desk.control.push_back(Outbound { relates_to: head.message_id.clone(), ..answer });
            }
            // The response to the client's end is the end of this side's sequence.
            Version::February if self.role.responds() => {
                let id = self.out.id.clone().unwrap_or_default();
                desk.control.push_back(self.protocol.about("TerminateSequence", &id, None));
            }
            Version::February => {}
        }
        if self.role.is_duplex_service() {
            // Its own sequence ends when what was asked is answered.
            if ends {
                self.peer = PeerSequence::Ended;
            }
            return Ok(Some(Verdict::Deliver(Vec::new())));
        }
        if ends {
            self.give_up();
        }
        // A client is told so when it has said the same; else it is the service's own doing.
        if (ends || self.role.is_client) && !(self.role.is_client && self.closing) {
            self.end_for(if closes { "SequenceClosed" } else { "SequenceTerminated" }, "");
        }
        Ok(Some(Verdict::Deliver(Vec::new())))
    }

    /// Whether a fault is the protocol's, and with it the end of the session.
    pub(super) fn ends_with(&mut self, came: &InboundMessage<'_>) -> Visit<bool> {
        let fault = Fault::read(came.document)?;
        let (namespace, name) = fault.subcode.as_ref().unwrap_or(&fault.code);
        let own = Version::of_word(namespace).is_some() || version_of(came.head, "fault").is_some();
        if !own {
            return Ok(false);
        }
        if self.role.is_client && matches!(self.stage, Stage::Asking(..)) {
            return Err(refused(&fault.reason));
        }
        self.end_for(name, &fault.reason);
        Ok(true)
    }

    /// The session is over because the peer says so; whoever waits is woken to hear it. What has ended by
    /// the peer before keeps its reason.
    pub(super) fn end_for(&mut self, name: &str, reason: &str) {
        self.wake();
        if matches!(self.stage, Stage::Over(End::ByPeer(_) | End::Displaced)) {
            return;
        }
        let who = if self.role.is_client { "service" } else { "client" };
        let reason = reason.trim();
        let said = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let what = format!("the {who} ended the reliable session{said}");
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, what);
        let hint = "another call begins another session; the service's InactivityTimeout may be short";
        let failure = failure.with_code(format!("rm {name}"));
        let failure = if self.role.is_client { failure.with_hint(hint) } else { failure };
        self.stage = Stage::Over(End::ByPeer(failure));
    }
}
