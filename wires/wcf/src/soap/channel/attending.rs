//! Which reliable session a message is of.
//!
//! Over framing the answer is simple: a connection has one session at most, and a service learns of it by
//! the client's CreateSequence. Over HTTP a message names its sequence in a header, and the session is
//! looked up among the node's.

use super::state::{Side, SoapChannel, WrittenReply};
use crate::soap::faults::FaultContents;
use crate::soap::head::Head;
use crate::soap::rm::{self, Owner, Reliable, Session, Version};
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{Answer, CallId, SendBuffer};
use std::time::Instant;

impl SoapChannel {
    /// Turns to the session that a message begins, or is of: over HTTP that may be any of the node's, whichever connection its
    /// other messages came by. Returns why there is none.
    pub(super) fn attend(
        &mut self,
        now: Instant,
        head: &Head<'_>,
        document: &Bytes,
    ) -> Visit<Option<FaultContents>> {
        if self.side == Side::Client {
            return Ok(None);
        }
        let http = self.is_http();
        let node = self.node.as_ref().filter(|_| http);
        if Session::begins(head) {
            // A CreateSequence that was repeated, because its response got lost.
            let again = head.message_id.as_ref().and_then(|id| node?.sequences.asked_by(id));
            // One connection of framing has one session; those of HTTP are anybody's.
            let free = self
                .reliable
                .as_ref()
                .is_none_or(|held| node.is_some() || (http && held.session().is_over()));
            if node.is_some_and(|node| again.is_none() && !node.sequences.make_room(now, &self.owner)) {
                // Nobody could make room (`rm::session_table`).
                let reason = "The sequence was not created: there are too many here.";
                let action = head.action.as_deref().unwrap_or_default();
                let is_new = action.starts_with(Version::Oasis.namespace());
                let version = if is_new { Version::Oasis } else { Version::February };
                return Ok(Some(version.fault("CreateSequenceRefused", reason)));
            }
            if again.is_some() || free {
                // Words of messages that may get lost are told nobody.
                self.words.learns = false;
                let fresh = || Reliable::new(Session::asked(self.dialect, http));
                self.reliable = Some(Box::new(again.unwrap_or_else(fresh)));
            }
            return Ok(None);
        }
        // The usual case costs two looks.
        if self.reliable.is_none() && !rm::speaks(head) {
            return Ok(None);
        }
        if let Some(id) = rm::sequence_of(head, self.readable(document))?
            && self.session().is_none_or(|held| held.came.id.as_ref() != Some(&id))
        {
            match node.and_then(|node| node.sequences.find(&id)) {
                Some(found) => self.reliable = Some(Box::new(found)),
                None if self.reliable.is_none() => {
                    let version = head.reliable.version.unwrap_or(Version::February);
                    let displaced = node.is_some_and(|node| node.sequences.was_displaced(&id));
                    return Ok(Some(version.unknown(&id, displaced)));
                }
                // It says so itself.
                None => {}
            }
        }
        if self.reliable.is_none() {
            // Acknowledgements of answers may come alone; what names no sequence is of the session that was here last.
            let answers = head.reliable.acknowledgement.as_ref().map(|said| &*said.id);
            let is_its =
                |held: &Reliable| answers.is_none_or(|id| held.session().out.id.as_deref() == Some(id));
            let last = self.before.take().filter(|held| is_its(held));
            let found = || Some(Box::new(node?.sequences.answering_as(answers?)?));
            self.reliable = last.or_else(found);
        }
        Ok(None)
    }

    /// Somebody has proved to be who he is: the places of his sessions are his from now on, not his machine's.
    pub fn known_as(&mut self, name: &str) {
        self.owner = Owner::named(name);
    }

    /// Over HTTP each message says whose it is: one connection carries those of many sessions, and some of none.
    #[cold]
    pub(super) fn leave_session(&mut self) {
        if self.side == Side::Server && self.node.is_some() && self.is_http() {
            self.before = self.reliable.take();
        }
    }

    /// Notes whose answers are owed to calls that came in the session, from this number on.
    /// `from` is the number of the last call before the message.
    pub(super) fn note_calls(&mut self, from: u64) {
        if self.side == Side::Client || !self.is_http() {
            return;
        }
        for id in (from..self.taken).map(|number| CallId(number + 1)) {
            if let Some(reliable) = self.reliable.as_ref().filter(|_| self.serving.get(id).is_some()) {
                self.apart.push((id, Box::new(reliable.apart())));
            }
        }
    }

    /// Answers a call in the session in which it came.
    #[cold]
    pub(super) fn answer_apart(
        &mut self,
        id: CallId,
        answer: Answer<'_>,
        out: &mut SendBuffer,
    ) -> Visit<WrittenReply> {
        let at = self.apart.iter().position(|(call, _)| *call == id);
        let Some((_, session)) = at.map(|at| self.apart.swap_remove(at)) else {
            return self.answer_here(id, answer, out);
        };
        // For the time of the answer the channel is in the call's session, and afterwards where it was.
        let here = self.reliable.replace(session);
        let answered = self.answer_here(id, answer, out);
        let session = std::mem::replace(&mut self.reliable, here);
        self.kept = session.filter(|session| session.is_awaiting()).map(|session| (id, session));
        answered
    }

    /// The request that began this call, which was answered last, is in hand: it waits until its answer may go. Then see
    /// [`SoapChannel::flush`].
    #[cold]
    pub fn await_window(&mut self, id: CallId) {
        if let Some((_, session)) = self.kept.take().filter(|(call, _)| *call == id) {
            self.reliable = Some(session);
        }
    }

    /// What the session keeps has changed, and with it what all of them do.
    pub(super) fn settle(&self) {
        if let Some(node) = self.node.as_ref().filter(|_| self.is_http()) {
            node.sequences.settle(&**node.objects());
        }
    }

    /// Keeps the session that was granted where other connections find it.
    pub(super) fn keep_session(&self, head: &Head<'_>) {
        if self.side == Side::Server
            && Session::begins(head)
            && self.is_http()
            && let (Some(node), Some(reliable)) = (&self.node, &self.reliable)
        {
            node.sequences.keep(reliable, &self.owner);
        }
    }
}
