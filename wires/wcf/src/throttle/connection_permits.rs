//! What one connection takes up of what its place serves at once ([`crate::throttle`]), and what it waits for.
//!
//! It is asked again and again: `enter` and `begin` say no while the turn has not come, and the session
//! asks them in each `poll`. Whatever was taken is given back exactly once: by `finish` or `leave` in the
//! usual case, and by `end`, also on drop, for all that is left.

use crate::settings::Settings;
use crate::throttle::{Entry, ThrottleTicket};
use crate::violations::ProtocolError;
use everywire_model::{CallId, Event, Expects};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// The places that one connection has taken; they are given back when it ends.
pub(crate) struct ConnectionPermits {
    settings: Arc<Settings>,
    /// Rung when its turn has come.
    waker: Option<Waker>,
    /// Whether this connection counts as a session now.
    session: bool,
    /// Calls that count, by the numbers that the connection's link knows.
    calls: Vec<CallId>,
    /// The turn of its session, while that waits.
    session_turn: Option<Arc<ThrottleTicket>>,
    /// The turn of the first of its waiting calls; those behind it have none yet.
    call_turn: Option<Arc<ThrottleTicket>>,
}

impl ConnectionPermits {
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
    pub(crate) fn enter(&mut self) -> Result<bool, ProtocolError> {
        let quotas = &self.settings.quotas;
        let limit = quotas.max_concurrent_sessions;
        // No bound, or it is in already: a second preamble on the same connection asks again.
        if limit == 0 || self.session {
            return Ok(true);
        }
        let enter = || {
            let most = quotas.max_pending_connections;
            self.settings.throttle.sessions.enter(limit, most, self.waker.as_ref())
        };
        self.session = is_in(&mut self.session_turn, enter).ok_or(ProtocolError::Busy { limit })?;
        Ok(self.session)
    }

    /// The session is over; its calls may not be yet.
    /// A session that still waited gives up its turn.
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
    fn begin(&mut self, id: CallId) -> bool {
        let limit = self.settings.quotas.max_concurrent_calls;
        // Calls wait without bound here: each connection has one turn at most, and its session bounds
        // the calls behind it.
        let enter = || self.settings.throttle.calls.enter(limit, usize::MAX, self.waker.as_ref());
        let begins = is_in(&mut self.call_turn, enter).unwrap_or(false);
        if begins {
            self.calls.push(id);
        }
        begins
    }

    /// The next of the calls that wait, if it may begin. Nobody waits for one-way calls, so they are not counted.
    pub(crate) fn next_call(&mut self, waiting: &mut VecDeque<Event>) -> Option<Event> {
        let Some(Event::Call(call)) = waiting.front() else { return None };
        // `begin` counts the call from now on, until it is answered.
        let begins = call.expects == Expects::Nothing || self.begin(call.id);
        if begins { waiting.pop_front() } else { None }
    }

    /// A call was answered. Calls that were not counted (one-way ones) have no place to give back.
    #[inline]
    pub(crate) fn finish(&mut self, id: CallId) {
        if let Some(at) = self.calls.iter().position(|known| *known == id) {
            self.calls.swap_remove(at);
            self.settings.throttle.calls.leave();
        }
    }

    /// No call of this connection waits for its turn any more.
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

/// Whether the turn has come, or a place is free for whoever has none yet; nothing if the queue is full.
fn is_in(turn: &mut Option<Arc<ThrottleTicket>>, enter: impl FnOnce() -> Entry) -> Option<bool> {
    if let Some(waiting) = turn {
        let has_come = waiting.has_come();
        turn.take_if(|_| has_come);
        return Some(has_come);
    }
    match enter() {
        Entry::Taken => Some(true),
        Entry::Waits(new) => {
            *turn = Some(new);
            Some(false)
        }
        Entry::Full => None,
    }
}

impl Drop for ConnectionPermits {
    fn drop(&mut self) {
        self.end();
    }
}
