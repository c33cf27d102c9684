//! The supervisor of a shard, which notices servants that block without telling: how it sleeps and is woken.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// Watches for servants that block without telling. Sleeps while its shard does.
#[derive(Default)]
pub(crate) struct Supervisor {
    /// Known from its first sleep on.
    thread: OnceLock<Thread>,
    /// Whether it sleeps or is about to: then, and only then, it has to be woken.
    drowsy: AtomicBool,
}

impl Supervisor {
    /// The shard has work again.
    pub(crate) fn wake(&self) {
        if self.drowsy.swap(false, Ordering::AcqRel) {
            self.thread.get().inspect(|thread| thread.unpark());
        }
    }

    /// Nothing has happened for a while: sleeps until its shard wakes it, or something is to be done again, which it looks at now and
    /// then.
    pub(crate) fn doze(&self, idle: impl Fn() -> bool) {
        self.thread.get_or_init(thread::current);
        self.drowsy.store(true, Ordering::SeqCst);
        while self.drowsy.load(Ordering::SeqCst) && idle() {
            thread::park_timeout(Duration::from_secs(1));
        }
        self.drowsy.store(false, Ordering::SeqCst);
    }
}
