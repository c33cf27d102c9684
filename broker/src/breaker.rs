//! A circuit breaker: after some failures in a row a target gets no calls for a while, then one to try it.

use crate::config::BreakerConfig;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The breaker of one target. *Closed*, it counts failures in a row; *open*, it lets nothing through until
/// its pause is over; *half open*, one call is under way whose outcome decides. Time is an argument, and
/// nobody is woken: the pause is noticed by the next call that asks.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// When it opens, and for how long.
    settings: BreakerConfig,
    /// How it stands.
    state: Mutex<State>,
}

/// `Closed`: failures in a row. `Open`, `HalfOpen`: since when.
#[derive(Debug, Clone, Copy)]
enum State {
    Closed(u32),
    Open(Instant),
    HalfOpen(Instant),
}

impl Breaker {
    pub(crate) fn new(settings: BreakerConfig) -> Self {
        Self { settings, state: Mutex::new(State::Closed(0)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may go; of those that ask when the pause is over, one may. That one is believed to be lost if nothing was
    /// heard of it for another pause.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        let mut state = self.state();
        match *state {
            State::Closed(_) => true,
            State::Open(since) | State::HalfOpen(since)
                if now.saturating_duration_since(since) >= self.settings.pause =>
            {
                *state = State::HalfOpen(now);
                true
            }
            State::Open(_) | State::HalfOpen(_) => false,
        }
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.state(), State::Closed(_))
    }

    /// A call ended; returns whether the breaker opened or closed by that. Only failures that say something
    /// of the target are told as such (`upstream::is_the_targets`).
    pub(crate) fn note(&self, worked: bool, now: Instant) -> Option<Change> {
        let mut state = self.state();
        let before = *state;
        *state = match before {
            _ if worked => State::Closed(0),
            State::Closed(failures) if failures + 1 < self.settings.failures => State::Closed(failures + 1),
            // A call that began before it opened changes nothing.
            State::Open(since) => State::Open(since),
            _ => State::Open(now),
        };
        match (before, *state) {
            (State::Closed(_), State::Open(_)) => Some(Change::Opened),
            (State::Open(_) | State::HalfOpen(_), State::Closed(_)) => Some(Change::Closed),
            _ => None,
        }
    }
}

/// What became of a breaker, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Opened,
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_call_try() {
        let pause = Duration::from_secs(5);
        let breaker = Breaker::new(BreakerConfig { failures: 3, pause });
        let now = Instant::now();
        assert_eq!(breaker.note(false, now), None);
        assert_eq!(breaker.note(false, now), None);
        assert_eq!(breaker.note(true, now), None, "in a row");
        assert_eq!(breaker.note(false, now), None);
        assert_eq!(breaker.note(false, now), None);
        assert_eq!(breaker.note(false, now), Some(Change::Opened));
        assert!(!breaker.admits(now) && !breaker.is_closed());
        assert!(breaker.admits(now + pause), "one tries");
        assert!(!breaker.admits(now + pause), "and only one");
        assert_eq!(breaker.note(false, now + pause), None);
        assert!(!breaker.admits(now + pause), "it failed");
        assert!(breaker.admits(now + pause * 2));
        assert_eq!(breaker.note(true, now + pause * 2), Some(Change::Closed));
        assert!(breaker.admits(now) && breaker.is_closed());
    }

    #[test]
    fn a_pause_beyond_all_time_never_ends() {
        let breaker = Breaker::new(BreakerConfig { failures: 1, pause: Duration::MAX });
        let now = Instant::now();
        assert_eq!(breaker.note(false, now), Some(Change::Opened));
        assert!(!breaker.admits(now + Duration::from_secs(1)));
    }

    #[test]
    fn a_trial_that_is_never_heard_of_does_not_keep_it_open() {
        let pause = Duration::from_secs(1);
        let breaker = Breaker::new(BreakerConfig { failures: 1, pause });
        let now = Instant::now();
        assert_eq!(breaker.note(false, now), Some(Change::Opened));
        assert!(breaker.admits(now + pause));
        assert!(breaker.admits(now + pause * 2));
    }
}
