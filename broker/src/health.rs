//! Probes: targets are asked from time to time whether they are there.
//!
//! One thread for each route that has `probe`; it asks the targets in turn and notes what it finds in
//! `Upstream::probe`. It holds the route weakly, and ends with its `Prober`, at the latest after the probe
//! that it is in.

use crate::log::Log;
use crate::route::Route;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long it is told of a target that it was not to be reached, where nobody calls it meanwhile: whoever gives calls to this broker only
/// while all its targets work would never give it another one.
const TOLD: Duration = Duration::from_secs(10);

/// How long a probe may take: as long as the time between two, but at least and at most so long.
const TIME: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// What the last attempt to reach a target has found. It is only told: which target gets a call does not depend on it.
#[derive(Default)]
pub(crate) struct LastAttempt {
    /// Whether it failed, and nothing has worked since: looked at without the lock, as each answer of the target's does.
    failed: AtomicBool,
    when: Mutex<Option<Instant>>,
}

impl LastAttempt {
    /// Nobody was there.
    pub(crate) fn failed(&self, now: Instant) {
        *self.when.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.failed.store(true, Ordering::Release);
    }

    /// The target has answered.
    #[inline]
    pub(crate) fn worked(&self) {
        if self.failed.load(Ordering::Acquire) {
            self.failed.store(false, Ordering::Release);
        }
    }

    /// Whether it failed, and that was not long ago.
    pub(crate) fn has_failed(&self, now: Instant) -> bool {
        let when = || *self.when.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = |when| now.saturating_duration_since(when) < TOLD;
        self.failed.load(Ordering::Acquire) && when().is_some_and(is_news)
    }
}

/// Probes the targets of a route until it is dropped.
pub(crate) struct Prober {
    /// Whether to end, and what wakes the thread for that.
    stop: Arc<(Mutex<bool>, Condvar)>,
}

impl Prober {
    /// Begins, if the route asks for it.
    pub(crate) fn start(route: &Arc<Route>, log: &Log) -> Option<Self> {
        let every = route.probe?;
        let stop = Arc::<(Mutex<bool>, Condvar)>::default();
        let run = {
            let (route, stop, log) = (Arc::downgrade(route), Arc::clone(&stop), log.clone());
            move || run(&route, every, &stop, &log)
        };
        match std::thread::Builder::new().name("probes".into()).spawn(run) {
            Ok(_) => Some(Self { stop }),
            Err(error) => {
                log.warn("probes", &[("failure", error.to_string().into())]);
                None
            }
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
    }
}

/// The thread: probes all targets, then waits for the next time or the end.
fn run(route: &Weak<Route>, every: Duration, stop: &(Mutex<bool>, Condvar), log: &Log) {
    loop {
        let Some(route) = route.upgrade() else { return };
        for target in &route.targets {
            let Some(news) = target.probe(every.clamp(TIME.0, TIME.1)) else { continue };
            let mut fields = vec![("route", (*route.name).into()), ("target", target.name().into())];
            match news {
                Ok(()) => log.info("target is back", &fields),
                Err(failure) => {
                    fields.push(("failure", failure.to_string().into()));
                    log.warn("target is down", &fields);
                }
            }
        }
        drop(route);
        let stopped = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = stop.1.wait_timeout_while(stopped, every, |stopped| !*stopped);
        let (stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_is_told_until_something_works_or_some_time_has_passed() {
        let (attempt, now) = (LastAttempt::default(), Instant::now());
        assert!(!attempt.has_failed(now));
        attempt.failed(now);
        assert!(attempt.has_failed(now) && attempt.has_failed(now + TOLD / 2));
        assert!(!attempt.has_failed(now + TOLD));
        attempt.failed(now + TOLD);
        assert!(attempt.has_failed(now + TOLD));
        attempt.worked();
        assert!(!attempt.has_failed(now + TOLD));
    }
}
