//! Patience: how long to look for the next byte before sleeping for it.
//!
//! Waking a sleeper on another CPU costs some 20 us; a peer that answers within that time is better waited for by looking,
//! with `sched_yield` between two looks so that a peer on the *same* CPU gets to run. Looking costs CPU, so the budget
//! halves each time it was spent in vain, and is restored when a wait turns out short: an idle process spends nothing.
//!
//! A router between two peers changes that: it sleeps between messages itself, and whoever looks meanwhile takes the CPU
//! from it. With fewer than three CPUs to share, waits behind a router are spent asleep from the start.

use crate::transport::Stream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How eagerly to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Latency {
    /// Some 50 us of looking while traffic is brisk, none when it is not.
    #[default]
    Default,
    /// Milliseconds of looking: the lowest latency, at the cost of a busy CPU while calls are under way.
    Lowest,
}

impl Latency {
    fn limit(self) -> Duration {
        match self {
            Self::Default => Duration::from_micros(50),
            Self::Lowest => Duration::from_millis(5),
        }
    }
}

/// The budget of one waiter.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    budget: Duration,
    since: Option<Instant>,
    /// Whether to sleep without a look.
    at_once: bool,
    /// Whether glances have paid lately, and how many chances were let pass since they last did not.
    glances: u8,
    passed: u8,
}

/// A glance that never paid is tried again after this many chances.
const CHANCES: u8 = 64;

impl Patience {
    pub(crate) fn new(latency: Latency) -> Self {
        let limit = latency.limit();
        Self { limit, budget: limit, since: None, at_once: false, glances: 4, passed: 0 }
    }

    /// Something came: the next wait starts anew.
    pub(crate) fn rewarded(&mut self) {
        self.since = None;
    }

    /// Whether to sleep without a look: the wait is for somebody behind a router.
    pub(crate) fn behind_router(&mut self, routed: bool) {
        self.at_once = routed && self.limit == Latency::Default.limit() && few_cpus();
    }

    /// Whether to sleep without a look.
    pub(crate) fn sleeps_at_once(&self) -> bool {
        self.at_once
    }

    /// Something was just sent: the peer gets the CPU before the first look, unless there is no patience left.
    ///
    /// A peer on another CPU that answers through memory needs no system call of ours: then a glance of a microsecond
    /// comes first, as long as such glances pay.
    pub(crate) fn after_sending(&mut self, stream: Option<&Stream>) {
        if self.budget.is_zero() || self.at_once {
            return;
        }
        if let Some(Stream::Shm(channel)) = stream {
            self.passed = self.passed.wrapping_add(1);
            if self.glances > 0 || self.passed >= CHANCES {
                self.passed = 0;
                if channel.glance() {
                    self.glances = 8;
                    return;
                }
                self.glances = self.glances.saturating_sub(1);
            }
        }
        rustix::thread::sched_yield();
    }

    /// Nothing came. Returns whether to look again, after yielding the CPU to whoever wants it.
    pub(crate) fn look_again(&mut self) -> bool {
        if self.budget.is_zero() || self.at_once {
            self.since.get_or_insert_with(Instant::now);
            return false;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) >= self.budget {
            return false;
        }
        rustix::thread::sched_yield();
        true
    }

    /// A sleep ended because something came; adapts the budget to how long the whole wait was.
    pub(crate) fn slept(&mut self) {
        let Some(since) = self.since.take() else { return };
        self.budget = if since.elapsed() < self.limit * 5 {
            self.limit
        } else if self.budget < Duration::from_micros(4) {
            Duration::ZERO
        } else {
            self.budget / 2
        };
    }
}

/// Whether a caller, a router and a servant would have to share CPUs, as far as this process may know.
fn few_cpus() -> bool {
    static FEW: OnceLock<bool> = OnceLock::new();
    *FEW.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from) < 3)
}
