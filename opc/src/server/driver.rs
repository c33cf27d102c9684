//! What makes an engine go: a thread that waits for what is due, and the clock. Neither the source nor whoever is told holds it up.

use super::pool::Pool;
use crate::engine::Engine;
use crate::group::{Group, Report};
use crate::sync::lock;
use crate::time::{FileTime, Moment};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Threads that wait for the source at the same time.
const READERS: usize = 16;
/// Threads that wait for listeners at the same time: each waits while the way to one is found.
const TELLERS: usize = 32;

/// The time since it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Moment {
        Moment { ticks: self.ticks(), time: FileTime::now() }
    }

    fn ticks(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Whoever listens to groups. Nothing here waits.
pub(super) trait Hearers: Send + Sync {
    /// Tells a group's report.
    fn tell(&self, group: &Group, report: Report);
    /// Whether they have not yet taken what they were told before; then nothing more is collected for them.
    fn are_behind(&self, group: &Group) -> bool;
    /// An update has to wait for them, for the first time since the last one.
    fn are_late(&self, group: &Group);
}

/// Drives an engine until it is dropped.
pub(super) struct Driver {
    bell: Arc<DriverSignal>,
    /// For what waits for the source.
    pub(super) readers: Arc<Pool>,
    /// For what waits for listeners.
    pub(super) tellers: Pool,
}

struct DriverSignal {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    is_over: bool,
    /// Something is due earlier than the thread knows.
    is_rung: bool,
}

/// What the thread has.
struct Run {
    clock: Clock,
    bell: Arc<DriverSignal>,
    engine: Weak<Engine>,
    readers: Weak<Pool>,
    hearers: Arc<dyn Hearers>,
}

impl Driver {
    /// Drives an engine. The engine holds nothing of it.
    pub(super) fn start(
        engine: &Arc<Engine>,
        clock: Clock,
        hearers: Arc<dyn Hearers>,
    ) -> std::io::Result<Self> {
        let bell = Arc::new(DriverSignal { state: Mutex::default(), rung: Condvar::new() });
        let readers = Arc::new(Pool::new("opc-source", READERS));
        let ringing = Arc::downgrade(&bell);
        engine.on_earlier(move || {
            if let Some(bell) = ringing.upgrade() {
                lock(&bell.state).is_rung = true;
                bell.rung.notify_one();
            }
        });
        let run = Run {
            clock,
            bell: Arc::clone(&bell),
            engine: Arc::downgrade(engine),
            readers: Arc::downgrade(&readers),
            hearers,
        };
        std::thread::Builder::new().name("opc-engine".to_owned()).spawn(move || run.run())?;
        Ok(Self { bell, readers, tellers: Pool::new("opc-tell", TELLERS) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        lock(&self.bell.state).is_over = true;
        self.bell.rung.notify_all();
    }
}

impl Run {
    fn run(self) {
        loop {
            let Some(engine) = self.engine.upgrade() else { return };
            let now = self.clock.now();
            for group in engine.due(now) {
                self.update(group, now);
            }
            let due = engine.next_due();
            drop(engine);
            if !self.wait(due) {
                return;
            }
        }
    }

    fn update(&self, group: Arc<Group>, now: Moment) {
        let readers = self.readers.upgrade().filter(|readers| group.is_polled() && !readers.is_full());
        let (clock, hearers, polled) = (self.clock, Arc::clone(&self.hearers), Arc::clone(&group));
        // It waits for the source, and nobody else is to wait for that, unless no thread is to be had.
        let apart = move || update(&polled, clock.now(), &*hearers);
        if !readers.is_some_and(|readers| readers.spawn(apart)) {
            update(&group, now, &*self.hearers);
        }
    }

    /// Waits until something is due. `false`: it is over.
    fn wait(&self, due: Option<u64>) -> bool {
        let mut state = lock(&self.bell.state);
        while !state.is_over && !state.is_rung {
            let rest = due.map(|due| due.saturating_sub(self.clock.ticks()));
            if rest == Some(0) {
                break;
            }
            let rest = Duration::from_millis(rest.unwrap_or(60_000));
            let waited = self.bell.rung.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_rung = false;
        !state.is_over
    }
}

/// Updates a group. It is in the schedule again, or has no more to send.
fn update(group: &Group, now: Moment, hearers: &dyn Hearers) {
    let update = || {
        if !hearers.are_behind(group) {
            group.update_and(now, |report| hearers.tell(group, report));
        } else if group.postpone(now) {
            hearers.are_late(group);
        }
    };
    // A source that panics is no reason to stop the others, nor to ask it no more.
    if catch_unwind(AssertUnwindSafe(update)).is_err() {
        group.postpone(now);
    }
}
