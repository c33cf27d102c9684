//! Counting signals, and waiting for the last of a burst.

use crate::broken;
use everywire::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A burst takes no longer than this, unless signals were lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts down, and wakes the thread that it was made on.
pub(super) struct Countdown {
    left: AtomicU32,
    waiter: Thread,
}

impl Countdown {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { left: AtomicU32::new(0), waiter: thread::current() })
    }

    /// So many are expected from now on.
    pub(super) fn expect(&self, signals: u32) {
        self.left.store(signals, Ordering::SeqCst);
    }

    /// One has come.
    pub(super) fn heard(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.waiter.unpark();
        }
    }

    /// Waits for the last.
    pub(super) fn wait(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            match self.left.load(Ordering::SeqCst) {
                0 => return Ok(()),
                left if begun.elapsed() > PATIENCE => {
                    return Err(broken(format!("{left} signals of a burst did not come")));
                }
                _ => thread::park_timeout(PATIENCE),
            }
        }
    }
}
