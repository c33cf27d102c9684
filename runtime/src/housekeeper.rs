//! Housekeeping: what wires have to do when time has passed, whether or not somebody calls.

use crate::sync::lock;
use everywire_model::WireState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The most time between two looks for connections that have ended unnoticed, while something is to be kept.
const GLANCE: Duration = Duration::from_secs(5);
/// The least time between two of them.
const SWEEP: Duration = Duration::from_secs(1);

/// How long the thread of a keeper that has nothing to do waits for work before it ends.
const IDLE: Duration = Duration::from_secs(5);

/// How long it rests after a panic.
const PAUSE: Duration = Duration::from_millis(100);

/// A node, as far as the housekeeper needs it. A trait, so that the housekeeper stands below the node.
pub(crate) trait NodeMaintenance: Send + Sync + 'static {
    /// Lets go of connections whose peers have left while nobody used them.
    fn sweep(&self);

    /// What wires keep for it.
    fn wire_states(&self) -> Vec<Arc<dyn WireState>>;
}

/// Runs [`everywire_model::WireState::tend`] when it is due, on a thread that exists only while something is.
#[derive(Default)]
pub(crate) struct Housekeeper {
    /// Shared with the thread, which does not keep the node.
    bell: Arc<(Mutex<State>, Condvar)>,
}

/// What the thread and its callers tell each other. Only `attend` starts a thread, and only if none is
/// `running`; the thread says so itself before it ends, under the same lock, so no request falls between the
/// two.
#[derive(Default)]
struct State {
    /// A thread runs, and will look again before it ends.
    running: bool,
    /// Somebody has asked since the thread looked last.
    rung: bool,
    /// The node has ended: no thread is started any more.
    over: bool,
}

impl Housekeeper {
    /// What is due has changed: the thread looks again, or is started.
    pub(crate) fn attend(&self, node: &Arc<impl NodeMaintenance>) {
        let (mutex, bell) = &*self.bell;
        let mut state = lock(mutex);
        state.rung = true;
        if state.running || state.over {
            drop(state);
            bell.notify_one();
            return;
        }
        let (shared, node) = (Arc::clone(&self.bell), Arc::downgrade(node));
        let started = std::thread::Builder::new().name("everywire-housekeeper".to_owned()).spawn(move || {
            // What panics has told the log. The next occasion starts another thread.
            if catch_unwind(AssertUnwindSafe(|| keep(&shared.0, &shared.1, &node))).is_err() {
                lock(&shared.0).running = false;
            }
        });
        // Without a thread nothing is kept until the next occasion to start one.
        state.running = started.is_ok();
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        lock(&self.bell.0).over = true;
        self.bell.1.notify_one();
    }
}

/// The thread: sweeps, tends what is due, waits for the next time. It holds the node only while it works, and
/// ends after `IDLE` with nothing to do.
fn keep(mutex: &Mutex<State>, bell: &Condvar, node: &Weak<impl NodeMaintenance>) {
    let mut swept = Instant::now();
    loop {
        lock(mutex).rung = false;
        let Some(held) = node.upgrade() else { return };
        if swept.elapsed() >= SWEEP {
            swept = Instant::now();
            held.sweep();
        }
        let wire_states = held.wire_states();
        // Nobody else may be held up from ending while this thread waits.
        drop(held);
        let due = wire_states.iter().filter_map(|wire_state| wire_state.due()).min();
        let now = Instant::now();
        if due.is_some_and(|due| due <= now) {
            for wire_state in
                wire_states.iter().filter(|wire_state| wire_state.due().is_some_and(|due| due <= now))
            {
                // What panics has told the log; it is not to be told again and again.
                if catch_unwind(AssertUnwindSafe(|| wire_state.tend(now))).is_err() {
                    std::thread::sleep(PAUSE);
                }
            }
            if lock(mutex).over {
                return;
            }
            continue;
        }
        drop(wire_states);
        let wait = due.map_or(IDLE, |due| (due - now).min(GLANCE));
        let mut state = lock(mutex);
        if !state.rung && !state.over {
            state = bell.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.over || (due.is_none() && !state.rung) {
            state.running = false;
            drop(state);
            // The last look: from now on nobody looks.
            if let Some(held) = node.upgrade() {
                held.sweep();
            }
            return;
        }
    }
}
