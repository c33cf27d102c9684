//! Where a thread waits while another one reads for both.
//!
//! States: *awake*: the thread that waits here looks from time to time; *asleep*: it must be woken; *told*: there is something in the slot, which
//! stays so. Only who tells, and the thread that waits there, change the state.

use crate::sync::lock;
use everywire_model::{Body, Outcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, Thread};
use std::time::Instant;

/// The thread looks by itself: telling it costs no system call.
const AWAKE: u8 = 0;
/// The thread is parked, or about to be: whoever tells must wake it.
const ASLEEP: u8 = 1;
/// Something is in the slot. The last state.
const TOLD: u8 = 2;

/// Where a thread waits while another reads.
pub(crate) struct ReplySlot {
    state: AtomicU8,
    held: Mutex<SlotContents>,
    thread: Thread,
}

/// What a thread finds in its slot: the outcome of its call, or the task to read for all, or both.
#[derive(Default)]
pub(super) struct SlotContents {
    pub(super) outcome: Option<Outcome<Body>>,
    /// Nobody reads any more: do it yourself.
    pub(super) appointed: bool,
}

impl ReplySlot {
    /// For the calling thread.
    pub(super) fn new() -> Self {
        Self { state: AtomicU8::new(AWAKE), held: Mutex::default(), thread: thread::current() }
    }

    /// Brings the outcome of its call.
    pub(super) fn serve(&self, outcome: Outcome<Body>) {
        lock(&self.held).outcome = Some(outcome);
        self.tell();
    }

    /// Makes its thread the one that reads. Whether that was awake.
    pub(super) fn appoint(&self) -> bool {
        lock(&self.held).appointed = true;
        self.tell()
    }

    /// Costs no system call unless the thread sleeps.
    fn tell(&self) -> bool {
        let before = self.state.swap(TOLD, Ordering::AcqRel);
        if before == ASLEEP {
            self.thread.unpark();
        }
        before == AWAKE
    }

    /// Whether there is something in the slot.
    #[inline]
    pub(super) fn is_told(&self) -> bool {
        self.state.load(Ordering::Acquire) == TOLD
    }

    /// What there is. What was taken out once is gone.
    pub(super) fn take(&self) -> SlotContents {
        std::mem::take(&mut *lock(&self.held))
    }

    /// Sleeps until there is something in the slot, or the time has come. Whether there is.
    pub(super) fn sleep(&self, until: Option<Instant>) -> bool {
        if self.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return true;
        }
        // A thread may be woken for nothing: by what somebody else told it earlier.
        while !self.is_told() {
            match until {
                None => thread::park(),
                Some(until) => {
                    let now = Instant::now();
                    if until <= now {
                        return self
                            .state
                            .compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Acquire)
                            .is_err();
                    }
                    thread::park_timeout(until - now);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::{Failure, Initiator, Kind};
    use std::sync::Arc;
    use std::time::Duration;

    fn outcome() -> Outcome<Body> {
        Outcome::Failed(Failure::new(Kind::TimedOut, Initiator::Here, "enough"))
    }

    #[test]
    fn who_sleeps_is_woken_and_who_is_awake_sees_it() {
        let reply_slot = Arc::new(ReplySlot::new());
        assert!(!reply_slot.is_told());
        assert!(reply_slot.appoint());
        assert!(reply_slot.sleep(None) && reply_slot.is_told());
        let delivered = reply_slot.take();
        assert!(delivered.appointed && delivered.outcome.is_none());
        for _ in 0..200 {
            let (to, from) = std::sync::mpsc::channel();
            let waiter = thread::spawn(move || {
                let reply_slot = Arc::new(ReplySlot::new());
                to.send(Arc::clone(&reply_slot)).unwrap();
                assert!(reply_slot.sleep(Some(Instant::now() + Duration::from_secs(600))));
                reply_slot.take().outcome.is_some()
            });
            from.recv().unwrap().serve(outcome());
            assert!(waiter.join().unwrap());
        }
    }

    #[test]
    fn a_time_that_has_come_ends_the_sleep_with_nothing() {
        let reply_slot = ReplySlot::new();
        assert!(!reply_slot.sleep(Some(Instant::now())));
        assert!(reply_slot.appoint(), "awake again");
    }

    #[test]
    fn a_thread_that_was_woken_for_nothing_sleeps_on() {
        let reply_slot = Arc::new(ReplySlot::new());
        thread::current().unpark();
        let other = Arc::clone(&reply_slot);
        let teller = thread::spawn(move || other.serve(outcome()));
        assert!(reply_slot.sleep(None));
        assert!(reply_slot.take().outcome.is_some());
        teller.join().unwrap();
    }
}
