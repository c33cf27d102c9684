//! Terms: which thread leads a shard, and which ones wait to take over.
//!
//! A term is led by one thread: the one that was started for it, or one that waited (`Terms::rest`) and was
//! called up. Handing over begins the next term; only whoever names the present one can do that, so that a
//! leader that is about to block and a supervisor that has seen it block call one successor, not two. A
//! thread learns its term from whoever called it: the present one may be another's by the time it looks.
//!
//! A leader is preempted for one call of its servants, which goes by its number, and only while that call runs: handing over and the
//! end of the call both claim the number, and one of them gets it. So nobody is preempted who serves another call by then, or
//! sleeps until something comes: two threads would wait for the same events, and the one that was told of them would leave.
//!
//! The model checker runs this in every order of its steps (`runtime/loom`).

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use std::sync::PoisonError;
use std::time::Duration;

/// Threads that wait to take over, at the most; others that lose the lead end when their servant returns.
const SPARES: usize = 4;
/// How long one waits before it ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who leads, and who waits.
pub(crate) struct Terms {
    /// Grows each time another thread takes the lead.
    term: AtomicU64,
    over: AtomicBool,
    /// The call whose servant runs on the leading thread, 0 for none.
    running: AtomicU64,
    spare_pool: Mutex<SparePool>,
    called_up: Condvar,
    /// Threads that may be blocked at a time, beside the one that leads (`crate::Quotas::blocked_threads`).
    blocked: usize,
}

struct SparePool {
    /// All threads, the leading, the blocked and the waiting ones.
    threads: usize,
    /// Those in `Terms::rest` that were not called up.
    idle: usize,
    /// The term that a waiting thread is called up for.
    wanted: Option<u64>,
}

/// Who takes over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    /// Nobody: the term was over already, or there are threads enough that block.
    Nobody,
    /// One that was waiting, and knows.
    Spare,
    /// A thread that is to be started for this term; it is counted already.
    New(u64),
}

impl Terms {
    /// The first term, with the thread that is to be started for it.
    pub(crate) fn new(blocked: usize) -> Self {
        Self {
            term: AtomicU64::new(1),
            over: AtomicBool::new(false),
            running: AtomicU64::new(0),
            spare_pool: Mutex::new(SparePool { threads: 1, idle: 0, wanted: None }),
            called_up: Condvar::new(),
            blocked,
        }
    }

    /// The present term.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    /// Whether it is this one, and not all over.
    #[inline]
    pub(crate) fn is(&self, term: u64) -> bool {
        self.term.load(Ordering::Acquire) == term && !self.over.load(Ordering::Relaxed)
    }

    /// Whether all threads are to end.
    #[inline]
    pub(crate) fn are_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The call whose servant runs on the leading thread, 0 for none.
    #[inline]
    pub(crate) fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// The leader begins a call; no other had this number.
    #[inline]
    pub(crate) fn begin(&self, call: u64) {
        self.running.store(call, Ordering::Relaxed);
    }

    /// The call has ended that the leader of this term began. Returns whether that thread still leads: then
    /// nobody takes the lead away before its next call.
    #[inline]
    pub(crate) fn finish(&self, term: u64, call: u64) -> bool {
        if self.running.compare_exchange(call, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Whoever has claimed it holds the lock until the next term has begun.
            drop(lock(&self.spare_pool));
        }
        self.is(term)
    }

    /// Ends the present term, if it is this one and this call of its leader still runs. `before` runs under
    /// the lock, when that is certain and before the successor can lead. A `New` successor is the caller's to
    /// start, or to give back by `Terms::take_back`.
    pub(crate) fn hand_over(&self, term: u64, call: u64, before: impl FnOnce()) -> Successor {
        let mut spare_pool = lock(&self.spare_pool);
        if !self.is(term) {
            return Successor::Nobody;
        }
        let spare = spare_pool.idle > 0 && spare_pool.wanted.is_none();
        if !spare && spare_pool.threads > self.blocked {
            return Successor::Nobody;
        }
        if call == 0 || self.running.compare_exchange(call, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Successor::Nobody;
        }
        before();
        self.term.store(term + 1, Ordering::Release);
        if spare {
            spare_pool.idle -= 1;
            spare_pool.wanted = Some(term + 1);
            self.called_up.notify_one();
            return Successor::Spare;
        }
        spare_pool.threads += 1;
        Successor::New(term + 1)
    }

    /// No thread could be started for this term: whoever led before leads on, unless a later term has begun.
    pub(crate) fn take_back(&self, term: u64) {
        let mut spare_pool = lock(&self.spare_pool);
        spare_pool.threads -= 1;
        if self.now() == term {
            self.term.store(term - 1, Ordering::Release);
        }
    }

    /// A thread that does not lead any more waits for a while. Returns the term that it is called up for, or nothing: then it
    /// ends, and does not count any more.
    pub(crate) fn rest(&self) -> Option<u64> {
        let mut spare_pool = lock(&self.spare_pool);
        if spare_pool.idle >= SPARES {
            spare_pool.threads -= 1;
            return None;
        }
        spare_pool.idle += 1;
        loop {
            // Whoever calls up has counted it out.
            if let Some(term) = spare_pool.wanted.take() {
                return Some(term);
            }
            if self.over.load(Ordering::Acquire) {
                break;
            }
            let (back, timeout) =
                self.called_up.wait_timeout(spare_pool, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            spare_pool = back;
            if timeout.timed_out() && spare_pool.wanted.is_none() {
                break;
            }
        }
        spare_pool.idle -= 1;
        spare_pool.threads -= 1;
        None
    }

    /// All threads end.
    pub(crate) fn end(&self) {
        // Under the lock: one that has looked and is about to wait would not hear of it.
        let spare_pool = lock(&self.spare_pool);
        self.over.store(true, Ordering::Release);
        self.called_up.notify_all();
        drop(spare_pool);
    }

    /// Threads that count; the models ask.
    #[cfg(test)]
    #[allow(dead_code)]
    pub(crate) fn threads(&self) -> usize {
        lock(&self.spare_pool).threads
    }
}
