//! Whether another call may begin on a connection that carries one at a time.

use std::sync::atomic::{AtomicU8, Ordering};

/// A thread has a `super::call_permit::CallPermit`: it is about to begin a call, or waits for its outcome.
const RESERVED: u8 = 1;
/// The session has a call without an outcome.
const BUSY: u8 = 2;

/// Whether another call may begin. Two things can stand against it, and each is told by whoever knows: were they one, letting
/// go of the lock for anything else would take a reservation away before its call has begun.
#[derive(Debug, Default)]
pub(super) struct CallGate(AtomicU8);

impl CallGate {
    /// Reserves the next call, if nobody has.
    pub(super) fn take(&self) -> bool {
        self.0.compare_exchange(0, RESERVED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The holder of the reservation lets go of it; whether the call is over, the session says.
    pub(super) fn give_back(&self) {
        self.0.fetch_and(!RESERVED, Ordering::AcqRel);
    }

    /// What the session says; called under the connection's lock only.
    #[inline]
    pub(super) fn note(&self, busy: bool) {
        if (self.0.load(Ordering::Relaxed) & BUSY != 0) == busy {
            return;
        }
        if busy {
            self.0.fetch_or(BUSY, Ordering::AcqRel);
        } else {
            self.0.fetch_and(!BUSY, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_its_holder_ends_a_reservation() {
        let turns = CallGate::default();
        assert!(turns.take());
        // Others let go of the lock meanwhile: to look at the clock, or because their own call has ended.
        turns.note(false);
        assert!(!turns.take(), "two callers have one connection");
        turns.note(true);
        turns.give_back();
        assert!(!turns.take(), "its call has no outcome yet");
        turns.note(false);
        assert!(turns.take());
        // Whoever begins no call after all.
        turns.give_back();
        assert!(turns.take(), "the connection is lost");
    }
}
