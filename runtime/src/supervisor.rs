//! The supervisor of a shard, which notices servants that block without telling: how it sleeps and is woken, and what it concludes
//! from what it sees ([`Watch`]).

use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// From one look to the next while something runs, or while servants have blocked lately. One that sleeps at two looks has blocked.
const STEP: Duration = Duration::from_millis(10);
/// From one look to the next where no servant blocks: each look takes the CPU from the calls, some 20 us on a busy one.
const CALM_STEP: Duration = Duration::from_millis(25);
/// After so many looks without a servant that had blocked they are taken that seldom.
const CALM: u32 = 32;
/// A servant that computes, or waits for a CPU, is taken for blocked, too, after that time.
const BUSY: Duration = Duration::from_millis(100);
/// After so many looks at a shard without calls the supervisor sleeps until it is woken.
const QUIET: u32 = 10;
/// Nanoseconds by which a look may be late: so it comes together with a tick of the kernel's clock, and is no interruption of its own.
const SLACK: NonZeroU64 = NonZeroU64::new(4_000_000).expect("some milliseconds");

/// What the looks at one shard have seen so far.
pub(crate) struct Watch {
    /// The call that ran at the last look, or 0, and the first look at it.
    seen: (u64, Instant),
    /// How many calls had begun by then.
    calls: u64,
    /// Looks in a row that found no call, and none begun since.
    quiet: u32,
    /// Looks since a servant last had blocked.
    calm: u32,
}

/// A servant has blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockedServant {
    /// Whether it sleeps. What computes gains nothing from a thread of its own the next time.
    pub(crate) asleep: bool,
}

impl Watch {
    /// Nothing was seen until now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { seen: (0, now), calls: 0, quiet: 0, calm: 0 }
    }

    /// A look: the call that runs (0: none), how many have begun, and whether the thread of that call sleeps.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        running: u64,
        calls: u64,
        sleeps: impl FnOnce() -> bool,
    ) -> Option<BlockedServant> {
        self.quiet = if running == 0 && calls == self.calls { self.quiet + 1 } else { 0 };
        self.calm = self.calm.saturating_add(1);
        self.calls = calls;
        if running == 0 || running != self.seen.0 {
            self.seen = (running, now);
            return None;
        }
        // A thread that merely waits for a CPU, or computes, is given more time than one that sleeps.
        let asleep = sleeps();
        if !asleep && now.saturating_duration_since(self.seen.1) < BUSY {
            return None;
        }
        self.calm = 0;
        Some(BlockedServant { asleep })
    }

    /// How long it is until the next look; `None`: the shard does nothing, so whoever gives it work wakes the supervisor.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        if self.quiet >= QUIET {
            self.quiet = 0;
            return None;
        }
        Some(if self.seen.0 != 0 || self.calm < CALM { STEP } else { CALM_STEP })
    }

    /// Prepares the thread that looks.
    pub(crate) fn begin() {
        // Where the kernel refuses, a look costs a little more.
        let _ = set_current_timer_slack(Some(SLACK));
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks with a clock that the test turns; says when a servant that blocked was noticed, if it was.
    struct Looks {
        watch: Watch,
        now: Instant,
    }

    impl Looks {
        fn new() -> Self {
            let now = Instant::now();
            Self { watch: Watch::new(now), now }
        }

        /// Looks at calls that never last until the next look.
        fn at_short_calls(&mut self, looks: u64) {
            for n in 1..=looks {
                assert_eq!(self.watch.look(self.now, 0, self.watch.calls + n, || true), None);
                self.now += self.watch.next().unwrap();
            }
        }

        /// Looks at a call until it is noticed: how long after the first look that was.
        fn at_long_call(&mut self, call: u64, asleep: bool) -> Duration {
            let begin = self.now;
            loop {
                match self.watch.look(self.now, call, call, || asleep) {
                    Some(blocked) => {
                        assert_eq!(blocked.asleep, asleep);
                        return self.now - begin;
                    }
                    None => self.now += self.watch.next().unwrap(),
                }
            }
        }
    }

    #[test]
    fn who_sleeps_is_noticed_at_the_second_look_and_who_computes_after_100_ms() {
        for before in [0, 1, 1_000] {
            let mut looks = Looks::new();
            looks.at_short_calls(before);
            assert_eq!(looks.at_long_call(1_000_000, true), STEP);
            assert_eq!(looks.at_long_call(1_000_001, false), BUSY);
        }
    }

    #[test]
    fn where_nobody_blocks_looks_are_seldom_and_where_one_did_they_are_not() {
        let mut looks = Looks::new();
        assert_eq!(looks.watch.next(), Some(STEP));
        looks.at_short_calls(u64::from(CALM));
        assert_eq!(looks.watch.next(), Some(CALM_STEP));
        looks.at_long_call(1_000, true);
        looks.at_short_calls(1);
        assert_eq!(looks.watch.next(), Some(STEP));
    }

    #[test]
    fn a_shard_without_calls_is_left_alone() {
        let mut looks = Looks::new();
        looks.at_short_calls(100);
        let calls = looks.watch.calls;
        let awake = (0..).take_while(|_| {
            assert_eq!(looks.watch.look(looks.now, 0, calls, || true), None);
            looks.watch.next().is_some()
        });
        assert_eq!(awake.count(), 9, "the tenth look in a row that found nothing was the last one");
    }
}
