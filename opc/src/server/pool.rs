//! Threads that may wait: for the source, or for whoever is told.

use crate::sync::lock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a thread without work is kept.
const IDLE: Duration = Duration::from_secs(10);
/// Work that may wait for a thread.
const WAITING: usize = 65_536;

type Job = Box<dyn FnOnce() + Send>;

/// Threads, which are started as they are needed.
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    /// Threads at the most.
    most: usize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether no more work is done.
    is_over: bool,
    /// What waits for a thread.
    jobs: VecDeque<Job>,
    /// Threads that there are, idle or not.
    threads: usize,
    /// Those that wait for work.
    idle: usize,
}

impl Pool {
    pub(super) fn new(name: &'static str, most: usize) -> Self {
        Self { shared: Arc::new(Shared { name, most, state: Mutex::default(), work: Condvar::new() }) }
    }

    /// Whether more work has to be done by who asks for it; some room is left for what is asked for meanwhile.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.shared.state).jobs.len() >= WAITING / 2
    }

    /// Has something done. `false`: there is too much to do, no thread is to be had, or the pool has ended.
    pub(super) fn spawn(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let shared = &self.shared;
        let mut state = lock(&shared.state);
        if state.is_over || state.jobs.len() >= WAITING {
            return false;
        }
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() || state.threads >= shared.most {
            drop(state);
            shared.work.notify_one();
            return true;
        }
        state.threads += 1;
        drop(state);
        let own = Arc::clone(shared);
        let started = std::thread::Builder::new().name(shared.name.to_owned()).spawn(move || own.work());
        if started.is_ok() {
            return true;
        }
        let mut state = lock(&shared.state);
        state.threads -= 1;
        // The threads that there are do it; without any it is given up.
        let given_up = if state.threads == 0 { state.jobs.pop_back() } else { None };
        drop(state);
        given_up.is_none()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let jobs = {
            let mut state = lock(&self.shared.state);
            state.is_over = true;
            std::mem::take(&mut state.jobs)
        };
        self.shared.work.notify_all();
        // Without the lock: jobs hold what is the user's.
        drop(jobs);
    }
}

impl Shared {
    /// What a thread does: the work that there is, then waits for more, at most `IDLE`.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // What panics has told the log; others go on.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = lock(&self.state);
                continue;
            }
            if state.is_over {
                break;
            }
            state.idle += 1;
            let (held, waited) = self.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = held;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}
