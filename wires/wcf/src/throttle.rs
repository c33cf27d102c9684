//! How much a place serves at once (WCF's ServiceThrottlingBehavior): sessions and calls, counted over all its connections.
//! Whoever comes beyond them waits for its turn; the first who came is the first who goes on.
//!
//! One `Throttle` stands in the settings of a place and is shared by all its connections, on whatever
//! thread they are. `ConnectionPermits` is what one connection has of it, and the only caller of a `ThrottleQueue`. A place that
//! becomes free goes to the first who waits without becoming free in between, so nobody who comes later
//! overtakes; its session is woken by its `Waker` and asks again in `poll`.

mod connection_permits;

pub(crate) use connection_permits::ConnectionPermits;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What a place serves now, and the queues before it.
#[derive(Debug, Default)]
pub struct Throttle {
    pub(crate) sessions: ThrottleQueue,
    pub(crate) calls: ThrottleQueue,
}

/// Places that are taken, and a queue before them.
/// The lock is held for a few instructions and never while somebody is woken.
#[derive(Debug, Default)]
pub(crate) struct ThrottleQueue(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    /// Never more than the limit of the last who came.
    taken: usize,
    /// Empty unless all places are taken.
    waiting: VecDeque<Arc<ThrottleTicket>>,
}

/// A place in a queue.
#[derive(Debug)]
pub(crate) struct ThrottleTicket {
    /// Set once, by whoever left; the place then belongs to this turn.
    come: AtomicBool,
    /// Of the connection's link. Without one the turn is noticed when the link polls next.
    waker: Option<Waker>,
}

/// The result of `ThrottleQueue::enter`.
pub(crate) enum Entry {
    /// There was a free place.
    Taken,
    /// All places are taken: the turn comes later.
    Waits(Arc<ThrottleTicket>),
    /// The queue is full.
    Full,
}

impl ThrottleTicket {
    /// Whether a place has become this turn's.
    #[inline]
    pub(crate) fn has_come(&self) -> bool {
        self.come.load(Ordering::Acquire)
    }
}

impl ThrottleQueue {
    /// A panic elsewhere while the lock was held leaves numbers that are still right.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if fewer than `limit` are taken; else joins the queue, if fewer than `most` wait in
    /// it.
    pub(crate) fn enter(&self, limit: usize, most: usize, waker: Option<&Waker>) -> Entry {
        let mut queue = self.queue();
        if queue.taken < limit {
            queue.taken += 1;
            return Entry::Taken;
        }
        if queue.waiting.len() >= most {
            return Entry::Full;
        }
        let turn = Arc::new(ThrottleTicket { come: AtomicBool::new(false), waker: waker.cloned() });
        queue.waiting.push_back(Arc::clone(&turn));
        Entry::Waits(turn)
    }

    /// Gives a place back: the first in the queue gets it.
    pub(crate) fn leave(&self) {
        let mut queue = self.queue();
        let Some(turn) = queue.waiting.pop_front() else {
            queue.taken = queue.taken.saturating_sub(1);
            return;
        };
        // `taken` stays as it is: the place changes hands.
        turn.come.store(true, Ordering::Release);
        drop(queue);
        if let Some(waker) = &turn.waker {
            waker.wake_by_ref();
        }
    }

    /// Leaves the queue. If the turn has come in between, its place goes to the next one.
    pub(crate) fn give_up(&self, turn: &Arc<ThrottleTicket>) {
        let mut queue = self.queue();
        let before = queue.waiting.len();
        queue.waiting.retain(|other| !Arc::ptr_eq(other, turn));
        // It is not in the queue any more: its turn has come, and a place is its own.
        let had_come = queue.waiting.len() == before;
        drop(queue);
        if had_come {
            self.leave();
        }
    }
}
