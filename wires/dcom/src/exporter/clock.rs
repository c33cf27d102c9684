//! When the keeper is wanted. The only clock is the one that the keeper brings: what begins between its visits counts from the
//! next one.
//!
//! States: each of three timers is `Off`, `Wanted` (something asked for it since the last visit) or `At` an
//! instant. A visit turns `Wanted` into `At`, and `At` that has passed into `Off`, reporting it as due.
//! Questions have no delay: they are due at the visit that finds them wanted.
//!
//! Invariant: whoever wants a timer calls `Objects::attend` after the lock is released, so that the keeper
//! comes at once and starts it.

use crate::lock::lock;
use everywire_model::Objects;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long references that were given up wait for a call to carry them.
const FLUSH: Duration = Duration::from_millis(100);

/// Timers of a node.
pub(super) struct Clock {
    /// An instant in the past.
    born: Instant,
    timers: Mutex<Timers>,
    /// Whether the period runs, for those who would start it.
    ticking: AtomicBool,
}

/// The three things that the housekeeper comes for. `born` makes a time that is always over, for what is
/// wanted at once.
#[derive(Default)]
struct Timers {
    /// The ping period.
    period: Timer,
    /// References to be given back that no call has carried away.
    flush: Timer,
    /// References to be asked for.
    questions: Timer,
}

/// A timer begins only when the housekeeper comes: only he knows what time it is.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Timer {
    #[default]
    Off,
    /// To be started by the keeper's next visit.
    Wanted,
    At(Instant),
}

/// What is to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DueTasks {
    /// A ping period is over.
    pub(super) period: bool,
    /// References are to be given back.
    pub(super) flush: bool,
    /// There is something to ask other nodes for.
    pub(super) questions: bool,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { born: Instant::now(), timers: Mutex::default(), ticking: AtomicBool::new(false) }
    }

    /// There is something to be pinged or run down.
    /// The flag spares the lock when the period runs already, which is nearly always.
    pub(super) fn tick(&self, objects: &Arc<dyn Objects>) {
        if !self.ticking.load(Ordering::Relaxed) && !self.ticking.swap(true, Ordering::AcqRel) {
            lock(&self.timers).period = Timer::Wanted;
            objects.attend();
        }
    }

    /// There are references to give back.
    pub(super) fn flush_soon(&self, objects: &Arc<dyn Objects>) {
        let mut timers = lock(&self.timers);
        if timers.flush == Timer::Off {
            timers.flush = Timer::Wanted;
            drop(timers);
            objects.attend();
        }
    }

    /// There is something to ask other nodes for.
    pub(super) fn ask_soon(&self, objects: &Arc<dyn Objects>) {
        lock(&self.timers).questions = Timer::Wanted;
        objects.attend();
    }

    /// When the keeper is wanted next.
    pub(super) fn due(&self) -> Option<Instant> {
        let timers = lock(&self.timers);
        let due = |timer| match timer {
            Timer::Off => None,
            Timer::Wanted => Some(self.born),
            Timer::At(at) => Some(at),
        };
        [timers.period, timers.flush, timers.questions].into_iter().filter_map(due).min()
    }

    /// What is to be done now; `period` is how long one is that begins. Timers that ran out are off.
    pub(super) fn visit(&self, now: Instant, period: Duration) -> DueTasks {
        let mut timers = lock(&self.timers);
        let questions = std::mem::take(&mut timers.questions) != Timer::Off;
        DueTasks {
            period: timers.period.visit(now, period),
            flush: timers.flush.visit(now, FLUSH),
            questions,
        }
    }

    /// The period is over, and it has no more to run for, unless it is started anew.
    pub(super) fn stop_ticking(&self) {
        self.ticking.store(false, Ordering::Release);
    }

    /// It runs on from `now` for this long.
    pub(super) fn tick_on(&self, now: Instant, period: Duration) {
        self.ticking.store(true, Ordering::Release);
        lock(&self.timers).period = Timer::At(now + period);
    }
}

impl Timer {
    /// Whether it ran out; it is off then. One that is wanted begins to run.
    fn visit(&mut self, now: Instant, len: Duration) -> bool {
        match *self {
            Self::Wanted => *self = Self::At(now + len),
            Self::At(at) if at <= now => {
                *self = Self::Off;
                return true;
            }
            Self::At(_) | Self::Off => {}
        }
        false
    }
}
