//! The supervisor of a shard, which notices servants that block without telling: how it sleeps and is woken.

use crate::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Watches for servants that block without telling. Sleeps while its shard does.
#[derive(Default)]
pub(crate) struct Supervisor {
    /// Set by whoever wakes it, cleared when it has woken up.
    awake: Mutex<bool>,
    bell: Condvar,
    /// Whether it sleeps or is about to: then, and only then, a wake-up takes the lock.
    drowsy: AtomicBool,
}

impl Supervisor {
    /// The shard has work again.
    pub(crate) fn wake(&self) {
        if self.drowsy.swap(false, Ordering::AcqRel) {
            *lock(&self.awake) = true;
            self.bell.notify_one();
        }
    }

    /// Nothing has happened for a while: sleeps until its shard wakes it, or something is to be done again, which it looks at now and
    /// then.
    pub(crate) fn doze(&self, idle: impl Fn() -> bool) {
        self.drowsy.store(true, Ordering::SeqCst);
        let mut awake = lock(&self.awake);
        while !*awake && idle() {
            let waited = self.bell.wait_timeout(awake, Duration::from_secs(1));
            awake = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *awake = false;
        self.drowsy.store(false, Ordering::SeqCst);
    }
}
