//! Calls that wait until their target is listened to.
//!
//! On wires whose signals go to whoever is connected, a target is listened to for each caller before it gets the caller's first call, so that
//! the caller hears what its own call causes. That may take as long as a target needs to greet. Only the calls to that target wait: the
//! connection of the caller has calls of other routes as well.
//!
//! States of a caller: *held*, from `begin` on, while its calls are kept in their order; free, as soon as `next` finds none left. Its
//! connection may be over before that (`forget`): then it is *left*, and what it has said without waiting for an answer is sent first; on
//! wires whose calls outlive their callers, all that it has said.
//! Invariants: a call that is kept is sent once, or dropped with its caller; none overtakes another, since a
//! caller is held until the last one that was kept has been sent; no more than `most` are kept for one caller.

use crate::forwarded_call::ForwardedCall;
use crate::numbers::ByNumber;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls of callers, by the numbers of their connections.
#[derive(Default)]
pub(crate) struct WaitingCalls {
    /// How many callers are held: looked at without the lock.
    count: AtomicUsize,
    callers: Mutex<ByNumber<u64, HeldCaller>>,
}

/// A caller that is held.
#[derive(Default)]
struct HeldCaller {
    calls: VecDeque<Box<ForwardedCall>>,
    /// Whether its connection is over.
    left: bool,
}

/// What comes next of a caller that is held.
pub(crate) enum Next {
    /// This call.
    Call(Box<ForwardedCall>),
    /// Nothing: it is free.
    Free,
    /// Nothing, and it has left meanwhile.
    Left,
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
    fn callers(&self) -> MutexGuard<'_, ByNumber<u64, HeldCaller>> {
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
            Some(waiting) if waiting.calls.len() >= most => Admission::Full(call),
            Some(waiting) => {
                call.wait();
                waiting.calls.push_back(call);
                Admission::Waits
            }
            None => Admission::Free(call),
        }
    }

    /// The next call of a caller that was held. When none is left, the caller is free.
    pub(crate) fn next(&self, link: u64) -> Next {
        let mut callers = self.callers();
        if let Some(call) = callers.get_mut(&link).and_then(|held| held.calls.pop_front()) {
            return Next::Call(call);
        }
        let left = callers.remove(&link).is_some_and(|held| held.left);
        self.count.store(callers.len(), Ordering::Release);
        if left { Next::Left } else { Next::Free }
    }

    /// The connection of a caller is over. Returns whether it is held: what it has not withdrawn by leaving stays until its turn
    /// comes, and `next` tells when there is no more.
    pub(crate) fn forget(&self, link: u64) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut callers = self.callers();
        let Some(held) = callers.get_mut(&link) else { return false };
        held.left = true;
        let calls = std::mem::take(&mut held.calls).into_iter();
        let (gone, said): (VecDeque<_>, VecDeque<_>) = calls.partition(|call| call.goes_with_its_caller());
        held.calls = said;
        drop(callers);
        // Without the lock: calls end.
        drop(gone);
        true
    }
}
