//! Patience: how long to look for the next byte before sleeping for it.
//!
//! Waking a sleeper on another CPU costs some 20 us; a peer that answers within that time is better waited for by looking,
//! with `sched_yield` between two looks so that a peer on the *same* CPU gets to run. Looking costs CPU, so the budget
//! halves each time it was spent in vain, and is restored when a wait turns out short: an idle process spends nothing.

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
}

impl Patience {
    pub(crate) fn new(latency: Latency) -> Self {
        Self { limit: latency.limit(), budget: latency.limit(), since: None }
    }

    /// Something came: the next wait starts anew.
    pub(crate) fn rewarded(&mut self) {
        self.since = None;
    }

    /// Something was just sent: the peer gets the CPU before the first look, unless there is no patience left.
    pub(crate) fn after_sending(&mut self) {
        if !self.budget.is_zero() {
            rustix::thread::sched_yield();
        }
    }

    /// Nothing came. Returns whether to look again, after yielding the CPU to whoever wants it.
    pub(crate) fn look_again(&mut self) -> bool {
        if self.budget.is_zero() {
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
