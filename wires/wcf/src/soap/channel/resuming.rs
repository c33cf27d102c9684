//! Calls of a reliable session over HTTP that are under way when their connection ends. Their messages have their numbers, and the
//! service keeps their answers: so the caller is sent on to another connection, where his message goes out once more as it is.

use super::state::{SoapChannel, WrittenCall, know};
use bytes::Bytes;
use everywire_model::{
    Call, CallId, Completed, Event, Expects, Failure, Initiator, Kind, Outcome, Profile, RESUME_TOKEN,
    Reference,
};
use std::sync::Arc;
use std::time::Instant;

/// What the call that goes on by this way is known by.
pub(super) fn question(way: &Profile) -> Option<[u8; 16]> {
    way.component(RESUME_TOKEN)?.as_ref().try_into().ok()
}

impl SoapChannel {
    /// Takes out the calls that can go on over another connection: those whose message has left, of a session that is left where
    /// that one finds it.
    pub(super) fn under_way(&mut self) -> Vec<(CallId, [u8; 16])> {
        if self.node.is_none() || self.way.is_none() {
            return Vec::new();
        }
        let Some(session) = self.reliable.as_ref().map(|reliable| reliable.session()) else {
            return Vec::new();
        };
        let mut calls = session.out.under_way();
        // A message that was turned away unread is nothing to go on with.
        calls.retain(|(id, _)| {
            !session.holds(*id) && (self.waiting.remove(*id).is_some() || forget(&mut self.telling, *id))
        });
        calls
    }

    /// Leaves the session for the next connection, and sends these calls there.
    pub(super) fn leave_for_next(&mut self, calls: Vec<(CallId, [u8; 16])>, failure: &Failure) {
        let left = match (self.reliable.take(), &self.node, &self.way) {
            (Some(reliable), Some(node), Some(way)) => {
                node.orphans.leave(way, &reliable, Instant::now(), !calls.is_empty())
            }
            _ => false,
        };
        let way = self.way.as_ref().filter(|_| left);
        for (id, question) in calls {
            let outcome = match way {
                Some(way) => {
                    let mut way = way.clone();
                    way.components.retain(|(tag, _)| *tag != RESUME_TOKEN);
                    way.components.push((RESUME_TOKEN, Bytes::copy_from_slice(&question)));
                    Outcome::Moved(Reference { profiles: vec![way], ..Reference::default() })
                }
                None => Outcome::Failed(failure.clone().with_completed(Completed::Maybe)),
            };
            self.events.push_back(Event::Reply { id, outcome });
        }
    }

    /// A call that expects nothing has arrived, or nobody asks any more whether it has. Returns whether somebody did.
    pub fn has_arrived(&mut self, id: CallId) -> bool {
        forget(&mut self.telling, id)
    }

    /// Goes on with a call whose message left over another connection: nothing is written, the session repeats it, and knows
    /// what was asked.
    #[cold]
    pub(super) fn go_on(&mut self, question: [u8; 16], call: &Call<'_>) -> Result<WrittenCall, Failure> {
        let id = CallId(self.begun + 1);
        // Mostly the new connection has adopted the right session when it was made (`ending::session`).
        let is_here = |held: &Self| held.session().is_some_and(|session| session.asks(&question));
        if !is_here(self) && self.waiting.len() == 0 && self.telling.is_empty() {
            // This connection has a session already, with which somebody else may go on.
            let found = self
                .node
                .as_ref()
                .zip(self.way.as_ref())
                .and_then(|(node, way)| node.orphans.adopt(way, Instant::now(), Some(question)));
            if let Some(found) = found {
                self.leave_for_next(Vec::new(), &gone());
                self.reliable = Some(Box::new(found));
            }
        }
        let plan = self.session().and_then(|mut session| session.wait_for(&question, id)).ok_or_else(gone)?;
        // From here on the call is this channel's like any other.
        self.begun = id.0;
        if call.expects == Expects::Nothing {
            self.telling.push(id);
        } else {
            know(&mut self.reading, &mut self.beside, &plan);
            self.waiting.insert(id, Arc::clone(&plan));
            self.resumed.retain(|(_, known)| self.waiting.get(*known).is_some());
            self.resumed.push((question, id));
        }
        Ok(WrittenCall { id, action: self.is_http().then(|| Arc::clone(&plan.action)) })
    }

    /// The call that an answer to this message is for, if it was made over another connection.
    pub(super) fn resumed(&self, question: &[u8; 16]) -> Option<CallId> {
        self.resumed.iter().find(|(known, _)| known == question).map(|(_, id)| *id)
    }
}

/// Takes a call out of a list. Returns whether it was there.
fn forget(calls: &mut Vec<CallId>, id: CallId) -> bool {
    let at = calls.iter().position(|known| *known == id);
    at.map(|at| calls.swap_remove(at)).is_some()
}

fn gone() -> Failure {
    let what = "the connection ended before the answer came, and its reliable session cannot be gone on with";
    Failure::new(Kind::Unreachable, Initiator::Here, what).with_completed(Completed::Maybe)
}
