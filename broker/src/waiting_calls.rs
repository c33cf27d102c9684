//! Calls that wait until their target is listened to.
//!
//! On wires whose signals go to whoever is connected, a target is listened to for each caller before it gets the caller's first call, so that
//! the caller hears what its own call causes. That may take as long as a target needs to greet. Only the calls to that target wait: the
//! connection of the caller has calls of other routes as well.
//!
//! States of a caller: *held*, from `begin` on, while its calls are kept in their order; free, as soon as `next` finds none left, or when its
//! connection is over (`forget`). Invariants: a call that is kept is sent once, or dropped with its caller; none overtakes another, since a
//! caller is held until the last one that was kept has been sent; no more than `most` are kept for one caller.

use crate::forwarded_call::ForwardedCall;
use crate::numbers::ByNumber;
use everywire_model::Expects;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls of callers, by the numbers of their connections.
#[derive(Default)]
pub(crate) struct WaitingCalls {
    /// How many callers are held: looked at without the lock.
    count: AtomicUsize,
    callers: Mutex<ByNumber<u64, VecDeque<Box<ForwardedCall>>>>,
}

/// What becomes of a call.
pub(crate) enum Admission {
    /// It waits.
    Waits,
    /// Nothing holds its caller.
    Free(Box<ForwardedCall>),
    /// Too many wait.
    Full(Box<ForwardedCall>),
}

impl WaitingCalls {
    fn callers(&self) -> MutexGuard<'_, ByNumber<u64, VecDeque<Box<ForwardedCall>>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls of this caller wait from now on.
    pub(crate) fn begin(&self, link: u64) {
        let mut callers = self.callers();
        callers.entry(link).or_default();
        self.count.store(callers.len(), Ordering::Release);
    }

    /// Keeps a call whose caller is held.
    pub(crate) fn keep(&self, mut call: Box<ForwardedCall>, most: usize) -> Admission {
        // A caller's first call comes behind its `begin`, on the same thread or one that was told by it.
        if self.count.load(Ordering::Acquire) == 0 {
            return Admission::Free(call);
        }
        match self.callers().get_mut(&call.request().link().serial_number()) {
            Some(waiting) if waiting.len() >= most => Admission::Full(call),
            Some(waiting) => {
                call.wait();
                waiting.push_back(call);
                Admission::Waits
            }
            None => Admission::Free(call),
        }
    }

    /// The next call of a caller that was held; nothing when none is left, and then the caller is free.
    pub(crate) fn next(&self, link: u64) -> Option<Box<ForwardedCall>> {
        let mut callers = self.callers();
        let next = callers.get_mut(&link).and_then(VecDeque::pop_front);
        if next.is_none() {
            callers.remove(&link);
            self.count.store(callers.len(), Ordering::Release);
        }
        next
    }

    /// The connection of a caller is over. What it has said without waiting for an answer stays until its turn comes.
    pub(crate) fn forget(&self, link: u64) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut callers = self.callers();
        let mut gone = VecDeque::new();
        if let Some(waiting) = callers.remove(&link) {
            let (unwanted, said): (VecDeque<_>, VecDeque<_>) =
                waiting.into_iter().partition(|call| call.request().expects() == Expects::Reply);
            gone = unwanted;
            if !said.is_empty() {
                callers.insert(link, said);
            }
        }
        self.count.store(callers.len(), Ordering::Release);
        drop(callers);
        // Without the lock: calls end.
        drop(gone);
    }
}
