//! The sequence of this side's messages.
//!
//! A message waits (`waiting`, without a number), then flies (`flying`, with one), then is gone. What always holds:
//!
//! * Numbers are given in the order in which messages leave, from 1, without a gap; `next` is the first that was never given.
//! * At most `WINDOW` messages fly, fewer if the peer has said that it has less room; one may always go, or nobody would learn of new room.
//! * A message flies until it is acknowledged; where answers are responses, a question flies until its answer has come (`arrived` in between).
//! * Each repetition waits twice as long as the one before. After `REPEATS` of them the session has failed, except for a question that has
//!   arrived and whose caller waits: the caller's deadline ends that.

use super::headers::Acknowledgement;
use super::{Outbound, REPEAT_AFTER, REPEATS, WINDOW};
use crate::plan::Plan;
use crate::soap::ids::MessageId;
use everywire_model::{CallId, Completed, Failure, Initiator, Kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages that wait for a number, and messages that wait for their acknowledgement.
#[derive(Debug)]
pub(in crate::soap) struct Outgoing {
    /// Its identifier, once there is one.
    pub(in crate::soap) id: Option<String>,
    /// Whether a question is repeated until its answer has come, not only until it is acknowledged: where answers are
    /// responses, nothing else brings one that was lost.
    asks_again: bool,
    /// At least 1.
    next: u64,
    waiting: VecDeque<Outbound>,
    flying: VecDeque<UnacknowledgedMessage>,
    /// How many more the peer takes.
    /// As of the last acknowledgement; a peer that does not say has a whole window.
    room: u64,
}

#[derive(Debug)]
struct UnacknowledgedMessage {
    number: u64,
    message: Outbound,
    repeats: u32,
    /// When it is to be repeated.
    due: Instant,
    /// Whether it has arrived, and only its answer has not come.
    arrived: bool,
}

impl Outgoing {
    pub(super) fn new(id: Option<String>, asks_again: bool) -> Self {
        Self { id, asks_again, next: 1, waiting: VecDeque::new(), flying: VecDeque::new(), room: WINDOW }
    }

    pub(super) fn push(&mut self, message: Outbound) {
        self.waiting.push_back(message);
    }

    /// Messages that wait for a number.
    pub(super) fn backlog(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of all messages that are kept.
    pub(in crate::soap) fn kept(&self) -> usize {
        let flying = self.flying.iter().map(|flying| &flying.message);
        let of = |message: &Outbound| message.body.len() + message.headers.len();
        flying.chain(&self.waiting).map(of).sum()
    }

    /// Nothing of this is sent any more. Returns to which messages of the peer there were answers.
    pub(super) fn clear(&mut self) -> Vec<MessageId> {
        let flying = self.flying.drain(..).map(|flying| flying.message);
        flying.chain(self.waiting.drain(..)).filter_map(|message| message.relates_to).collect()
    }

    /// Nobody waits for a call any more: its message is left out if it has no number yet, else it is repeated all the same.
    pub(in crate::soap) fn cancel(&mut self, call: CallId) {
        self.waiting.retain(|message| message.call != Some(call));
        if self.asks_again {
            let flying = self.flying.iter_mut().filter(|flying| flying.message.call == Some(call));
            flying.for_each(|flying| flying.message.call = None);
        }
    }

    /// Whether everything that was to be sent has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.flying.is_empty()
    }

    pub(super) fn first(&self) -> Option<&Outbound> {
        self.waiting.front()
    }

    /// The last number that was given.
    pub(super) fn last_number(&self) -> u64 {
        self.next - 1
    }

    /// The next message to send: one to repeat if `timed`, else one that the window lets through.
    pub(super) fn next(&mut self, now: Instant, timed: bool) -> Option<(u64, Outbound)> {
        // Only those that may still be repeated; `expire` gives up on the others.
        let may = |flying: &UnacknowledgedMessage| {
            flying.due <= now && (flying.repeats < REPEATS || flying.is_awaited())
        };
        if timed && let Some(flying) = self.flying.iter_mut().find(|flying| may(flying)) {
            return Some(flying.repeat(now));
        }
        // A peer that has no room is asked again with one message.
        let window = self.room.clamp(1, WINDOW);
        if self.flying.len() as u64 >= window {
            return None;
        }
        let message = self.waiting.pop_front()?;
        Some(self.fly(now, message))
    }

    /// Gives a message its number.
    fn fly(&mut self, now: Instant, message: Outbound) -> (u64, Outbound) {
        let number = self.next;
        self.next += 1;
        let (kept, due) = (message.clone(), now + REPEAT_AFTER);
        self.flying.push_back(UnacknowledgedMessage {
            number,
            message: kept,
            repeats: 0,
            due,
            arrived: false,
        });
        (number, message)
    }

    /// The answer to a message of the peer: once more if it was sent before, else for the first time, if
    /// the window lets it through or the session is over (`at_last`).
    pub(super) fn answer_to(
        &mut self,
        id: &MessageId,
        now: Instant,
        at_last: bool,
    ) -> Option<(u64, Outbound)> {
        let answers = |message: &Outbound| message.relates_to.as_ref() == Some(id);
        if let Some(flying) = self.flying.iter_mut().find(|flying| answers(&flying.message)) {
            return Some(flying.repeat(now));
        }
        // The answer must wait for acknowledgements; at the end of a session nobody sends those any more.
        if self.flying.len() as u64 >= WINDOW && !at_last {
            return None;
        }
        let at = self.waiting.iter().position(answers)?;
        let message = self.waiting.remove(at)?;
        Some(self.fly(now, message))
    }

    /// Whether the answer to a message of the peer waits for the window.
    pub(super) fn holds_answer_to(&self, id: &MessageId) -> bool {
        self.waiting.iter().any(|message| message.relates_to.as_ref() == Some(id))
    }

    /// Forgets whose messages these are; those without a number are left out, and the others go before everything else.
    /// Returns whether each of them may be repeated.
    pub(super) fn orphan(&mut self) -> bool {
        // Whoever called them is told that they were never sent.
        self.waiting.clear();
        for flying in &mut self.flying {
            flying.message.call = None;
            // Due since it was sent.
            flying.due = flying.due.checked_sub(pause(flying.repeats)).unwrap_or(flying.due);
        }
        self.flying.iter().all(|flying| flying.repeats < REPEATS)
    }

    /// The calls whose messages have left, and what they are known by.
    pub(in crate::soap) fn under_way(&self) -> Vec<(CallId, [u8; 16])> {
        let of = |flying: &UnacknowledgedMessage| {
            Some((flying.message.call?, flying.message.origin.as_ref()?.guid))
        };
        self.flying.iter().filter_map(of).collect()
    }

    /// Whether the message of this call has left and has no answer yet.
    pub(super) fn has_left(&self, question: &[u8; 16]) -> bool {
        self.flying.iter().any(|flying| flying.is_of(question))
    }

    /// Another call goes on with one whose message has left. Returns what its answer is read by, if there is such a message.
    pub(super) fn wait_for(&mut self, question: &[u8; 16], call: CallId) -> Option<Arc<Plan>> {
        let flying = self.flying.iter_mut().find(|flying| flying.is_of(question))?;
        flying.message.call = Some(call);
        flying.message.origin.as_ref().map(|origin| Arc::clone(&origin.plan))
    }

    /// The answer to one of this side's questions came.
    pub(super) fn answered(&mut self, question: &MessageId) {
        let Some(id) = question.guid() else { return };
        self.flying.retain(|flying| flying.message.message_id != Some(id));
    }

    /// A call has its outcome otherwise: its message is repeated no more.
    pub(super) fn conclude(&mut self, call: CallId) {
        self.flying.retain(|flying| flying.message.call != Some(call));
    }

    /// Whether the message of a call has been sent once, and nothing was heard of it.
    pub(super) fn was_sent_once(&self, call: CallId) -> bool {
        self.flying.iter().any(|flying| flying.message.call == Some(call) && flying.repeats == 0)
    }

    /// Whether the message of a call has no number yet.
    pub(super) fn holds(&self, call: CallId) -> bool {
        self.waiting.iter().any(|message| message.call == Some(call))
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    /// It is of messages that were never sent.
    pub(super) fn acknowledged(&mut self, acknowledgement: &Acknowledgement) -> Result<(), Failure> {
        if acknowledgement.ranges.iter().any(|(_, upper)| *upper >= self.next) {
            let what = "the peer acknowledges messages that were never sent";
            let failure = Failure::new(Kind::Violation, Initiator::Peer, what);
            return Err(failure.with_code("rm InvalidAcknowledgement"));
        }
        let arrived = |number: u64| {
            acknowledgement.ranges.iter().any(|(lower, upper)| (*lower..=*upper).contains(&number))
        };
        let asks_again = self.asks_again;
        self.flying.retain_mut(|flying| {
            flying.arrived |= arrived(flying.number);
            !flying.arrived || (asks_again && flying.message.message_id.is_some())
        });
        self.room = acknowledgement.room.unwrap_or(WINDOW);
        Ok(())
    }

    /// When the next message is to be repeated.
    pub(super) fn due(&self) -> Option<Instant> {
        self.flying.iter().map(|flying| flying.due).min()
    }

    /// Gives up on a peer that does not acknowledge, and on answers that nobody waits for. Whoever waits says how long.
    ///
    /// # Errors
    /// A message was repeated as often as it may be.
    pub(super) fn expire(&mut self, now: Instant) -> Result<(), Failure> {
        let spent = |flying: &UnacknowledgedMessage| {
            flying.due <= now && flying.repeats >= REPEATS && !flying.is_awaited()
        };
        // Answers that nobody waits for, to questions that arrived: nothing is wrong with the peer.
        self.flying.retain(|flying| !(flying.arrived && spent(flying)));
        let Some(flying) = self.flying.iter().find(|flying| spent(flying)) else { return Ok(()) };
        let what = format!("message {} was repeated {REPEATS} times and never acknowledged", flying.number);
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, what).with_code("rm MaxRetryCount");
        Err(failure.with_completed(Completed::Maybe))
    }
}

impl UnacknowledgedMessage {
    /// Whether it begins this call.
    fn is_of(&self, question: &[u8; 16]) -> bool {
        self.message.origin.as_ref().is_some_and(|origin| origin.guid == *question)
    }

    /// Whether it has arrived, and somebody waits for its answer.
    fn is_awaited(&self) -> bool {
        self.arrived && self.message.call.is_some()
    }

    fn repeat(&mut self, now: Instant) -> (u64, Outbound) {
        self.repeats = (self.repeats + 1).min(REPEATS);
        // The service is at it: it is asked often enough not to keep its answer for long.
        let most = if self.is_awaited() { ASKED_AGAIN } else { REPEATS };
        self.due = now + pause(self.repeats.min(most));
        (self.number, self.message.clone())
    }
}

/// Repetitions after which a question that has arrived is asked again no less often: every 16 s.
const ASKED_AGAIN: u32 = 5;

/// How long a message waits that was repeated so often.
fn pause(repeats: u32) -> Duration {
    REPEAT_AFTER * (1 << repeats)
}
