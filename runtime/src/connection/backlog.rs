//! What calls of a peer, on their way to servants, keep in memory on one connection.
//!
//! Only the counts: `handover` makes the calls, and readers of the connection ask how far behind servants are. What waits counts
//! as memory that the node holds for the source of the peer (`shares`), in steps of [`STEP`], so that small calls cost no look there.

use crate::shares::{Shares, Source, Tenant};
use crate::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Octets that may wait before the connection is read no further.
pub(super) const BEHIND: usize = 16 << 20;
/// Octets that may wait at all. More than [`BEHIND`] come only where a call on the same connection must go on reading.
pub(super) const FLOOD: usize = 128 << 20;
/// The step in which the node is told of what waits.
const STEP: usize = 64 << 10;
/// How long a thread that must read on leaves servants to catch up before each read.
const HOLD: Duration = Duration::from_millis(2);

/// What the node was told.
#[derive(Default)]
struct ReportedBacklog {
    /// Nothing as long as nothing was to be told.
    registration: Option<Registration>,
    octets: usize,
    /// The calls were given up: nothing waits any more, whatever is counted here.
    over: bool,
}

/// A connection among those that are weighed, for as long as this lives.
struct Registration {
    shares: Arc<Shares>,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shares.leave(self.number);
    }
}

/// The calls that wait, and their octets; answers that the peer does not read count there, too (`unread`).
#[derive(Default)]
pub(super) struct Backlog {
    calls: AtomicUsize,
    octets: AtomicUsize,
    weighed: Mutex<ReportedBacklog>,
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

    /// A call of so many octets waits from now on. Returns whether the node is to be told ([`Backlog::weigh`]).
    pub(super) fn add(&self, octets: usize) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let before = self.octets.fetch_add(octets, Ordering::Relaxed);
        before / STEP != (before + octets) / STEP
    }

    /// Tells the node what waits. Returns whether all together hold more than they may.
    #[cold]
    pub(super) fn weigh(
        &self,
        shares: &Arc<Shares>,
        source: impl FnOnce() -> Source,
        connection: Weak<dyn Tenant>,
    ) -> bool {
        let mut weighed = lock(&self.weighed);
        // Under the lock: whoever comes last tells what is true last.
        let octets = self.octets.load(Ordering::Relaxed) / STEP * STEP;
        if weighed.over || octets == weighed.octets {
            return false;
        }
        weighed.octets = octets;
        if octets == 0 {
            weighed.registration = None;
            return false;
        }
        let registration = weighed.registration.get_or_insert_with(|| Registration {
            number: shares.attend(source(), connection),
            shares: Arc::clone(shares),
        });
        shares.weigh(registration.number, octets)
    }

    /// The calls that wait were given up. Returns what the node was told that they hold.
    pub(super) fn give_up(&self) -> usize {
        let mut weighed = lock(&self.weighed);
        (weighed.registration, weighed.over) = (None, true);
        std::mem::take(&mut weighed.octets)
    }

    /// One of so many octets does not wait any more. Returns whether reading was held up, and may go on with this, and whether the
    /// node is to be told.
    pub(super) fn remove(&self, octets: usize) -> (bool, bool) {
        let before = self.octets.fetch_sub(octets, Ordering::AcqRel);
        // Whoever sees it also sees what the servant did.
        self.calls.fetch_sub(1, Ordering::Release);
        (self.catch_up(before, before - octets), before / STEP != (before - octets) / STEP)
    }

    /// Answers that the peer does not read have become more, or less. Returns whether the node is to be told.
    pub(super) fn resize(&self, before: usize, after: usize) -> bool {
        let (all, now) = if after >= before {
            let all = self.octets.fetch_add(after - before, Ordering::Relaxed);
            (all, all + (after - before))
        } else {
            let all = self.octets.fetch_sub(before - after, Ordering::AcqRel);
            (all, all - (before - after))
        };
        self.catch_up(all, now);
        all / STEP != now / STEP
    }

    /// Whether reading was held up, and may go on. Whoever sleeps until then is woken.
    fn catch_up(&self, before: usize, after: usize) -> bool {
        let caught_up = before > BEHIND && after <= BEHIND;
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
