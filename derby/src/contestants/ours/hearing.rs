//! Counting signals, and waiting for the last of a burst.

use crate::broken;
use everywire::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A burst takes no longer than this, unless signals were lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts down, and wakes the thread that it was made on: that thread alone may wait.
pub(super) struct Countdown {
    /// Signals of this burst that have not come.
    left: AtomicU32,
    waiter: Thread,
}

impl Countdown {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { left: AtomicU32::new(0), waiter: thread::current() })
    }

    /// So many are expected from now on. To be said before they are asked for.
    pub(super) fn expect(&self, signals: u32) {
        self.left.store(signals, Ordering::SeqCst);
    }

    /// One has come. Called on whatever thread delivers it.
    pub(super) fn heard(&self) {
        // One more than was asked for is nobody's to wait for.
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left == Ok(1) {
            self.waiter.unpark();
        }
    }

    /// Waits for the last.
    ///
    /// # Errors
    /// It did not come in time: signals were lost.
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

#[cfg(test)]
mod tests {
    use super::Countdown;

    #[test]
    fn a_signal_that_nobody_expects_is_not_waited_for() {
        let countdown = Countdown::new();
        countdown.heard();
        countdown.wait().unwrap();
        countdown.expect(1);
        countdown.heard();
        countdown.heard();
        countdown.wait().unwrap();
    }
}
