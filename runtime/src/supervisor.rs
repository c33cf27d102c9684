//! The supervisor of a shard: notices servants that block without telling.

use crate::shard::{Pulse, Shard};
use crate::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The supervisor's step: a servant that is still running after two of them has blocked.
const STEP: Duration = Duration::from_millis(10);
/// Steps after which a servant that computes is taken for blocked, too.
const BUSY: u32 = 10;

/// Watches for servants that block without telling. Sleeps while its shard does.
#[derive(Default)]
pub(crate) struct Supervisor {
    awake: Mutex<bool>,
    bell: Condvar,
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

    /// The supervisor's thread; ends with its shard.
    pub(crate) fn run(shard: &Weak<Shard>) {
        let mut last = (0, 0);
        let (mut quiet, mut stuck) = (0, 0);
        loop {
            let Some(shard) = shard.upgrade() else { return };
            let Pulse { term, running, calls, leader, over } = shard.pulse();
            if over {
                return;
            }
            let this = shard.supervisor();
            stuck = if running != 0 && running == last.0 { stuck + 1 } else { 0 };
            // A thread that merely waits for a CPU, or computes, is given more time than one that sleeps.
            let asleep = stuck > 0 && sleeps(leader);
            if stuck >= BUSY || asleep {
                // Nothing happens if the call has ended by now. What computes gains nothing from a thread of its own the next time.
                if let Some(connection) = shard.hand_over(term, running)
                    && asleep
                {
                    connection.has_blocked();
                }
            }
            quiet = if running == 0 && calls == last.1 { quiet + 1 } else { 0 };
            last = (running, calls);
            if quiet < 10 {
                drop(shard);
                std::thread::sleep(STEP);
                continue;
            }
            // Nothing has happened for a while: sleep until the shard wakes us. A call that began just now is seen by the
            // count, at the latest when the time is over.
            this.drowsy.store(true, Ordering::SeqCst);
            let mut awake = lock(&this.awake);
            while !*awake
                && shard.pulse().calls == calls
                && !shard.pulse().over
                && Arc::strong_count(&shard) > 1
            {
                let waited = this.bell.wait_timeout(awake, Duration::from_secs(1));
                awake = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            *awake = false;
            this.drowsy.store(false, Ordering::SeqCst);
            quiet = 0;
        }
    }
}

/// Whether a thread of this process sleeps; one whose state cannot be read is taken to.
fn sleeps(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold anything.
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
}
