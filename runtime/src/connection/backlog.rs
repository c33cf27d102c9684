//! What calls of a peer, on their way to servants, keep in memory on one connection.
//!
//! Only the counts: `handing_over` makes the calls, and readers of the connection ask how far behind servants are.

use crate::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Octets that may wait before the connection is read no further.
pub(super) const BEHIND: usize = 16 << 20;
/// Octets that may wait at all. More than [`BEHIND`] come only where a call on the same connection must go on reading.
pub(super) const FLOOD: usize = 128 << 20;
/// How long a thread that must read on leaves servants to catch up before each read.
const HOLD: Duration = Duration::from_millis(2);

/// The calls that wait, and their octets.
#[derive(Default)]
pub(super) struct Backlog {
    calls: AtomicUsize,
    octets: AtomicUsize,
    /// Threads that read on slowly sleep here.
    slow: Mutex<()>,
    caught_up: Condvar,
}

impl Backlog {
    /// Whether no call waits.
    pub(super) fn is_empty(&self) -> bool {
        // Whoever sees that also sees what the servants did.
        self.calls.load(Ordering::Acquire) == 0
    }

    /// Whether so many wait that no more is to be read.
    pub(super) fn is_behind(&self) -> bool {
        self.octets.load(Ordering::Acquire) > BEHIND
    }

    /// Whether more wait than anybody may send.
    pub(super) fn is_flood(&self) -> bool {
        self.octets.load(Ordering::Relaxed) > FLOOD
    }

    /// A call of so many octets waits from now on.
    pub(super) fn add(&self, octets: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.octets.fetch_add(octets, Ordering::Relaxed);
    }

    /// One of so many octets does not wait any more. Returns whether reading was held up, and may go on with this.
    pub(super) fn remove(&self, octets: usize) -> bool {
        let before = self.octets.fetch_sub(octets, Ordering::AcqRel);
        // Whoever sees it also sees what the servant did.
        self.calls.fetch_sub(1, Ordering::Release);
        let caught_up = before > BEHIND && before - octets <= BEHIND;
        if caught_up {
            drop(lock(&self.slow));
            self.caught_up.notify_all();
        }
        caught_up
    }

    /// Sleeps until servants have caught up, but not for long.
    pub(super) fn hold(&self, until: Option<Instant>) {
        let left = until.map_or(HOLD, |until| until.saturating_duration_since(Instant::now()).min(HOLD));
        let guard = lock(&self.slow);
        let slept = self.caught_up.wait_timeout_while(guard, left, |()| self.is_behind());
        drop(slept.unwrap_or_else(PoisonError::into_inner));
    }
}
