//! How much a place serves at once (WCF's ServiceThrottlingBehavior): sessions and calls, counted over all its connections.
//! Whoever comes beyond them waits for its turn; the first who came is the first who goes on.

use crate::settings::Settings;
use crate::violations::Breach;
use everywire_model::CallId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What a place serves now, and who waits.
#[derive(Debug, Default)]
pub struct Throttle {
    sessions: Gate,
    calls: Gate,
}

/// Places that are taken, and a queue before them.
#[derive(Debug, Default)]
struct Gate(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    taken: usize,
    waiting: VecDeque<Arc<Turn>>,
}

/// Somebody who waits.
#[derive(Debug)]
struct Turn {
    come: AtomicBool,
    waker: Option<Waker>,
}

/// What became of somebody who came.
enum Entry {
    Taken,
    Waits(Arc<Turn>),
    /// More wait than may.
    Full,
}

impl Gate {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, limit: usize, most: usize, waker: Option<&Waker>) -> Entry {
        let mut queue = self.queue();
        if queue.taken < limit {
            queue.taken += 1;
            return Entry::Taken;
        }
        if queue.waiting.len() >= most {
            return Entry::Full;
        }
        let turn = Arc::new(Turn { come: AtomicBool::new(false), waker: waker.cloned() });
        queue.waiting.push_back(Arc::clone(&turn));
        Entry::Waits(turn)
    }

    /// Somebody leaves: its place is that of the first who waits.
    fn leave(&self) {
        let mut queue = self.queue();
        let Some(turn) = queue.waiting.pop_front() else {
            queue.taken = queue.taken.saturating_sub(1);
            return;
        };
        turn.come.store(true, Ordering::Release);
        drop(queue);
        if let Some(waker) = &turn.waker {
            waker.wake_by_ref();
        }
    }

    /// Somebody waits no longer.
    fn give_up(&self, turn: &Arc<Turn>) {
        let mut queue = self.queue();
        let before = queue.waiting.len();
        queue.waiting.retain(|other| !Arc::ptr_eq(other, turn));
        let had_come = queue.waiting.len() == before;
        drop(queue);
        if had_come {
            self.leave();
        }
    }
}

/// What one connection takes up of it, given back when it ends.
pub(crate) struct Held {
    settings: Arc<Settings>,
    /// Rung when its turn has come.
    waker: Option<Waker>,
    session: bool,
    calls: Vec<CallId>,
    /// What it waits for.
    session_turn: Option<Arc<Turn>>,
    call_turn: Option<Arc<Turn>>,
}

impl Held {
    pub(crate) fn new(settings: &Arc<Settings>, waker: Option<Waker>) -> Self {
        Self {
            settings: Arc::clone(settings),
            waker,
            session: false,
            calls: Vec::new(),
            session_turn: None,
            call_turn: None,
        }
    }

    /// Whether a session begins now; if not, it waits, and this is to be asked again.
    pub(crate) fn enter(&mut self) -> Result<bool, Breach> {
        let quotas = &self.settings.quotas;
        let limit = quotas.max_concurrent_sessions;
        if limit == 0 || self.session {
            return Ok(true);
        }
        if let Some(turn) = &self.session_turn {
            self.session = turn.come.load(Ordering::Acquire);
            if self.session {
                self.session_turn = None;
            }
            return Ok(self.session);
        }
        let most = quotas.max_pending_connections;
        match self.settings.throttle.sessions.enter(limit, most, self.waker.as_ref()) {
            Entry::Taken => self.session = true,
            Entry::Waits(turn) => self.session_turn = Some(turn),
            Entry::Full => return Err(Breach::Busy { limit }),
        }
        Ok(self.session)
    }

    /// The session is over; its calls may not be yet.
    pub(crate) fn leave(&mut self) {
        let sessions = &self.settings.throttle.sessions;
        if let Some(turn) = self.session_turn.take() {
            sessions.give_up(&turn);
        }
        if std::mem::take(&mut self.session) {
            sessions.leave();
        }
    }

    /// Whether calls are counted.
    #[inline]
    pub(crate) fn counts_calls(&self) -> bool {
        self.settings.quotas.max_concurrent_calls > 0
    }

    /// Whether a call that somebody waits for begins now; if not, its connection waits, and this is to be asked again.
    pub(crate) fn begin(&mut self, id: CallId) -> bool {
        let limit = self.settings.quotas.max_concurrent_calls;
        let begins = match &self.call_turn {
            Some(turn) => turn.come.load(Ordering::Acquire),
            None => match self.settings.throttle.calls.enter(limit, usize::MAX, self.waker.as_ref()) {
                Entry::Taken => true,
                Entry::Waits(turn) => {
                    self.call_turn = Some(turn);
                    false
                }
                Entry::Full => false,
            },
        };
        if begins {
            self.call_turn = None;
            self.calls.push(id);
        }
        begins
    }

    /// It was answered.
    #[inline]
    pub(crate) fn finish(&mut self, id: CallId) {
        if let Some(at) = self.calls.iter().position(|known| *known == id) {
            self.calls.swap_remove(at);
            self.settings.throttle.calls.leave();
        }
    }

    /// Nobody waits for a call of this connection any more.
    pub(crate) fn give_up(&mut self) {
        if let Some(turn) = self.call_turn.take() {
            self.settings.throttle.calls.give_up(&turn);
        }
    }

    /// Nothing of this connection counts any more.
    pub(crate) fn end(&mut self) {
        self.leave();
        self.give_up();
        for _ in std::mem::take(&mut self.calls) {
            self.settings.throttle.calls.leave();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}
