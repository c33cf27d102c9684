//! Moments at which something is to be done, for calls that no event loop watches.
//!
//! One thread of the process waits for the next moment, and exists only while there is one.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Those of this process.
pub(crate) static TIMERS: Timers = Timers {
    state: Mutex::new(State { due: BTreeMap::new(), next: 0, running: false }),
    changed: Condvar::new(),
};

/// What is due, and when.
pub(crate) struct Timers {
    state: Mutex<State>,
    changed: Condvar,
}

/// Names what was asked for: the time, and a number that no other has.
pub(crate) type TimerKey = (Instant, u64);

/// `running`: a thread waits for the first moment. It clears the flag under the lock when nothing is due any
/// more, so whoever comes then starts another.
struct State {
    due: BTreeMap<TimerKey, Box<dyn FnOnce() + Send>>,
    next: u64,
    running: bool,
}

impl Timers {
    /// Does something at a moment, which must not take long.
    pub(crate) fn at(&'static self, when: Instant, what: impl FnOnce() + Send + 'static) -> TimerKey {
        let mut state = lock(&self.state);
        state.next += 1;
        let moment = (when, state.next);
        state.due.insert(moment, Box::new(what));
        if state.running {
            self.changed.notify_one();
        } else {
            let started = std::thread::Builder::new().name("everywire-timer".to_owned()).spawn(|| self.run());
            // Without a thread it is done when the next one starts.
            state.running = started.is_ok();
        }
        moment
    }

    /// It is wanted no more.
    pub(crate) fn cancel(&self, moment: TimerKey) {
        let before = lock(&self.state).due.remove(&moment);
        // Without the lock: it may hold what is the user's.
        drop(before);
    }

    /// The thread: does what is due, without the lock, and sleeps until the next moment or until the list has
    /// changed.
    fn run(&self) {
        let mut state = lock(&self.state);
        while let Some(first) = state.due.first_entry() {
            let (when, now) = (first.key().0, Instant::now());
            if when <= now {
                let what = first.remove();
                drop(state);
                // Whoever panics does so for itself.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
                state = lock(&self.state);
            } else {
                let waited = self.changed.wait_timeout(state, when - now);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        state.running = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn what_is_due_first_is_done_first_and_what_is_cancelled_never() {
        let (done, seen) = mpsc::channel();
        let now = Instant::now();
        let tell = |name: &'static str| {
            let done = done.clone();
            move || done.send(name).unwrap()
        };
        // None is done before all are there, however long that takes.
        let (go, wait) = mpsc::channel::<()>();
        TIMERS.at(now, move || wait.recv().unwrap());
        let never = TIMERS.at(now + Duration::from_secs(600), tell("never"));
        TIMERS.at(now + Duration::from_millis(2), tell("second"));
        TIMERS.at(now + Duration::from_millis(1), tell("first"));
        TIMERS.at(now, || panic!("this one is on purpose"));
        go.send(()).unwrap();
        assert_eq!((seen.recv().unwrap(), seen.recv().unwrap()), ("first", "second"));
        TIMERS.cancel(never);
        drop(done);
        assert!(seen.recv().is_err());
    }
}
