//! A circuit breaker: after some failures in a row a target gets no calls for a while, then one to try it.

use crate::config::BreakerConfig;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The breaker of one target. *Closed*, it counts failures in a row; *open*, it lets nothing through until
/// its pause is over; *half open*, one call is under way whose outcome decides, if it says anything of the
/// target: else the next call tries. Time is an argument, and nobody is woken: the pause is noticed by the
/// next call that asks.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// When it opens, and for how long.
    settings: BreakerConfig,
    /// How it stands.
    state: Mutex<State>,
}

/// `Closed`: failures in a row. `Open`: since when. `HalfOpen`: since when, and since when it is open.
#[derive(Debug, Clone, Copy)]
enum State {
    Closed(u32),
    Open(Instant),
    HalfOpen { since: Instant, open: Instant },
}

/// What the end of a call says of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered.
    Works,
    /// It does not work.
    Fails,
    /// Nothing: the call did not come so far, or the broker itself ended it.
    Nothing,
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
            State::Open(since) | State::HalfOpen { since, .. }
                if now.saturating_duration_since(since) >= self.settings.pause =>
            {
                *state = State::HalfOpen { since: now, open: since };
                true
            }
            State::Open(_) | State::HalfOpen { .. } => false,
        }
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.state(), State::Closed(_))
    }

    /// A call ended; returns whether the breaker opened or closed by that. A call that says nothing of the target changes nothing, but
    /// that the next one tries in its place.
    pub(crate) fn note(&self, verdict: Verdict, now: Instant) -> Option<Change> {
        let mut state = self.state();
        let before = *state;
        *state = match (before, verdict) {
            (_, Verdict::Works) => State::Closed(0),
            (State::HalfOpen { open, .. }, Verdict::Nothing) => State::Open(open),
            (before, Verdict::Nothing) => before,
            (State::Closed(failures), Verdict::Fails) if failures + 1 < self.settings.failures => {
                State::Closed(failures + 1)
            }
            // A call that began before it opened changes nothing.
            (State::Open(since), Verdict::Fails) => State::Open(since),
            (_, Verdict::Fails) => State::Open(now),
        };
        match (before, *state) {
            (State::Closed(_), State::Open(_)) => Some(Change::Opened),
            (State::Open(_) | State::HalfOpen { .. }, State::Closed(_)) => Some(Change::Closed),
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
    use super::Verdict::{Fails, Nothing, Works};
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_call_try() {
        let pause = Duration::from_secs(5);
        let breaker = Breaker::new(BreakerConfig { failures: 3, pause });
        let now = Instant::now();
        assert_eq!(breaker.note(Fails, now), None);
        assert_eq!(breaker.note(Fails, now), None);
        assert_eq!(breaker.note(Works, now), None, "in a row");
        assert_eq!(breaker.note(Fails, now), None);
        assert_eq!(breaker.note(Fails, now), None);
        assert_eq!(breaker.note(Fails, now), Some(Change::Opened));
        assert!(!breaker.admits(now) && !breaker.is_closed());
        assert!(breaker.admits(now + pause), "one tries");
        assert!(!breaker.admits(now + pause), "and only one");
        assert_eq!(breaker.note(Fails, now + pause), None);
        assert!(!breaker.admits(now + pause), "it failed");
        assert!(breaker.admits(now + pause * 2));
        assert_eq!(breaker.note(Works, now + pause * 2), Some(Change::Closed));
        assert!(breaker.admits(now) && breaker.is_closed());
    }

    #[test]
    fn a_pause_beyond_all_time_never_ends() {
        let breaker = Breaker::new(BreakerConfig { failures: 1, pause: Duration::MAX });
        let now = Instant::now();
        assert_eq!(breaker.note(Fails, now), Some(Change::Opened));
        assert!(!breaker.admits(now + Duration::from_secs(1)));
    }

    #[test]
    fn a_trial_that_is_never_heard_of_does_not_keep_it_open() {
        let pause = Duration::from_secs(1);
        let breaker = Breaker::new(BreakerConfig { failures: 1, pause });
        let now = Instant::now();
        assert_eq!(breaker.note(Fails, now), Some(Change::Opened));
        assert!(breaker.admits(now + pause));
        assert!(breaker.admits(now + pause * 2));
    }

    #[test]
    fn a_call_that_says_nothing_counts_for_nothing_and_the_next_one_tries() {
        let pause = Duration::from_secs(1);
        let breaker = Breaker::new(BreakerConfig { failures: 2, pause });
        let now = Instant::now();
        assert_eq!(breaker.note(Fails, now), None);
        assert_eq!(breaker.note(Nothing, now), None);
        assert_eq!(breaker.note(Fails, now), Some(Change::Opened), "in a row all the same");
        assert_eq!(breaker.note(Nothing, now), None);
        assert!(!breaker.admits(now), "the pause goes on");
        assert!(breaker.admits(now + pause));
        assert_eq!(breaker.note(Nothing, now + pause), None);
        assert!(!breaker.is_closed());
        assert!(breaker.admits(now + pause), "the next one tries, without another pause");
        assert!(!breaker.admits(now + pause), "and only one");
        assert_eq!(breaker.note(Works, now + pause), Some(Change::Closed));
    }
}
