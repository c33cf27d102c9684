//! Threads that wait for other nodes: an emitter does not wait until the way to a sink is found, nor the keeper for whoever is
//! silent.
//!
//! One queue for the process. Each thread takes the next from it until there is none; at most `AT_ONCE` run, so that
//! hosts that never answer cost no thread each.

use crate::lock::lock;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Threads that run at the same time.
const AT_ONCE: usize = 16;

static ASIDES: Mutex<TaskQueue> = Mutex::new(TaskQueue { jobs: VecDeque::new(), running: 0 });

/// What waits for a thread.
struct TaskQueue {
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Threads that take from the queue.
    running: usize,
}

/// Has something done on another thread, after what waits already.
pub(super) fn aside(job: impl FnOnce() + Send + 'static) {
    {
        let mut asides = lock(&ASIDES);
        asides.jobs.push_back(Box::new(job));
        if asides.running >= AT_ONCE {
            return;
        }
        asides.running += 1;
    }
    if std::thread::Builder::new().name("everywire-advise".to_owned()).spawn(work).is_err() {
        // Whoever is next to have something done tries again.
        lock(&ASIDES).running -= 1;
    }
}

/// Does what waits, until there is nothing.
fn work() {
    let next = || {
        let mut asides = lock(&ASIDES);
        let next = asides.jobs.pop_front();
        asides.running -= usize::from(next.is_none());
        next
    };
    while let Some(job) = next() {
        job();
    }
}
