//! Patience: how long to look for the next byte before sleeping for it.
//!
//! Waking a sleeper on another CPU costs some 20 us; a peer that answers within that time is better waited for by looking,
//! with `sched_yield` between two looks so that a peer on the *same* CPU gets to run. Looking costs CPU, so the budget
//! halves each time it was spent in vain, and is restored when a wait turns out short: an idle process spends nothing.
//!
//! A router between two peers changes that: it sleeps between messages itself, and whoever looks too early takes the CPU
//! from it. Behind a router, a look in vain after the CPU went to somebody else is the last one; a caller then spends its next
//! waits asleep from the start, and now and then one look tells whether the CPU is still shared. A server goes on to look
//! once each time: a CPU that falls idle between the router's messages would wake for each of them.

use crate::transport::Stream;
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
    /// Whether a router stands between.
    routed: bool,
    /// Whether the last yield gave the CPU to somebody, or is known to.
    gave_way: bool,
    /// Waits to be spent asleep before the next look.
    crowded: u8,
    /// Whether it is a caller's.
    calling: bool,
    /// Whether glances have paid lately, and how many chances were let pass since they last did not.
    glances: u8,
    passed: u8,
}

/// A yield that gave the CPU to somebody took at least so long.
const SWITCH: Duration = Duration::from_nanos(1500);
/// Waits asleep after a look that was in vain because the CPU is shared.
const CROWDED: u8 = 64;
/// A glance that never paid is tried again after this many chances.
const CHANCES: u8 = 64;

impl Patience {
    pub(crate) fn new(latency: Latency) -> Self {
        let limit = latency.limit();
        Self {
            limit,
            budget: limit,
            since: None,
            routed: false,
            gave_way: false,
            crowded: 0,
            calling: false,
            glances: 4,
            passed: 0,
        }
    }

    /// Something came: the next wait starts anew.
    pub(crate) fn rewarded(&mut self) {
        self.since = None;
    }

    /// Whether waits are for somebody behind a router, and whether by a caller for its reply.
    pub(crate) fn behind_router(&mut self, routed: bool, calling: bool) {
        self.routed = routed && self.limit == Latency::Default.limit();
        self.calling = calling;
    }

    fn give_way(&mut self) {
        if self.routed {
            let before = Instant::now();
            rustix::thread::sched_yield();
            self.gave_way = before.elapsed() >= SWITCH;
        } else {
            rustix::thread::sched_yield();
        }
    }

    /// Something was just sent: the peer gets the CPU before the first look, unless there is no patience left.
    ///
    /// A peer on another CPU that answers through memory needs no system call of ours: then a glance of a microsecond
    /// comes first, as long as such glances pay.
    pub(crate) fn after_sending(&mut self, stream: Option<&Stream>) {
        if self.budget.is_zero() {
            self.gave_way = false;
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
        if self.crowded > 1 {
            self.crowded -= 1;
            self.gave_way = true;
        } else {
            // None was crowded out lately, or for long enough to look again.
            self.crowded = 0;
            self.give_way();
        }
    }

    /// Nothing came. Returns whether to look again, after yielding the CPU to whoever wants it.
    pub(crate) fn look_again(&mut self) -> bool {
        if self.budget.is_zero() || self.gave_way {
            if self.gave_way && self.calling && self.crowded == 0 {
                self.crowded = CROWDED;
            }
            self.gave_way = false;
            self.since.get_or_insert_with(Instant::now);
            return false;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) >= self.budget {
            return false;
        }
        self.give_way();
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
