//! What a service owes to a request over HTTP, whose response is all that its client hears: the answer once it is there and may go,
//! an acknowledgement if there is none, or why there will be none.

use super::states::{End, Owed, ReplyQueue, Stage};
use super::{RetainedBytes, Session, Waker};
use crate::soap::ids::MessageId;
use crate::soap::rm::{AWAITED, NextMessage};
use std::time::Instant;

impl Session {
    /// The response to the message that it is owed to, if it can go now.
    /// Returns nothing if it must wait (then it is owed again), or will be refused (then `refused` tells).
    pub(super) fn pay(
        &mut self,
        owed: Owed,
        now: Instant,
        desk: &mut ReplyQueue,
        waker: Option<&Waker>,
    ) -> Option<NextMessage> {
        let is_over = self.is_over();
        let begun = owed.number.is_none_or(|number| self.came.is_whole(number));
        if let Some(id) = &owed.id {
            // When all is over there is no window any more: nobody asks again.
            if let Some((number, message)) = self.out.answer_to(id, now, is_over) {
                return Some(self.dressed(message, Some(number), true));
            }
            // Its answer waits for room, or for a message before it: to WCF's clients an acknowledgement would be all the
            // answer that comes. What gets none is asked again, after a while. Where all is over, what waited for a message
            // before it is not begun any more.
            if self.will_answer(id) && (begun || !is_over) {
                desk.owed = Some(owed).filter(|_| self.awaits(waker));
                return None;
            }
        }
        if is_over {
            // Whoever is told that his sequence is unknown calls again: not for what has begun.
            desk.refused = if !begun {
                Some((self.unknown(self.came.id.as_deref().unwrap_or_default()), owed.id))
            } else if owed.id.as_ref().is_some_and(|id| self.lost.contains(id)) {
                Some((self.protocol.version.lost(self.came.id.as_deref().unwrap_or_default()), owed.id))
            } else {
                None
            };
            return None;
        }
        let message = self.protocol.empty("SequenceAcknowledgement");
        Some(self.dressed(message, None, true))
    }

    /// There will be no answer to this message, which came: it was one-way, or refused.
    pub(in crate::soap) fn answers_not(&mut self, id: &MessageId) {
        self.asked_of_us.retain(|held| held != id);
        self.wake();
    }

    /// Whether there will be an answer to a message that came.
    fn will_answer(&self, id: &MessageId) -> bool {
        self.asked_of_us.contains(id) || self.out.holds_answer_to(id)
    }

    /// Notes whom to wake when there are answers; nobody, if too many wait.
    fn awaits(&mut self, waker: Option<&Waker>) -> bool {
        let Some(waker) = waker else { return false };
        let known = self.awaited.iter().any(|held| held.will_wake(waker));
        if !known && self.awaited.len() < AWAITED {
            self.awaited.push(waker.clone());
            return true;
        }
        known
    }

    /// Those whose requests wait look whether that is over.
    pub(super) fn wake(&mut self) {
        self.awaited.drain(..).for_each(Waker::wake);
    }

    /// Its place was given to others.
    pub(in crate::soap::rm) fn displace(&mut self) {
        self.stage = Stage::Over(End::Displaced);
        self.lost = self.out.clear();
        self.came.clear();
        // What a servant still answers is its connection's to hold.
        self.kept = RetainedBytes::default();
        self.wake();
    }
}
