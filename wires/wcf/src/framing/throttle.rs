//! How much a place serves at once (WCF's ServiceThrottlingBehavior): sessions and calls, counted over all its connections.

use crate::settings::Settings;
use crate::violations::Breach;
use everywire_model::{CallId, Failure, Initiator, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a place serves now.
#[derive(Debug, Default)]
pub struct Throttle {
    sessions: AtomicUsize,
    calls: AtomicUsize,
}

/// What one connection takes up of it, given back when it ends.
pub(super) struct Held {
    settings: Arc<Settings>,
    session: bool,
    calls: Vec<CallId>,
}

impl Held {
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        Self { settings: Arc::clone(settings), session: false, calls: Vec::new() }
    }

    /// A session begins.
    pub(super) fn enter(&mut self) -> Result<(), Breach> {
        let limit = self.settings.quotas.max_concurrent_sessions;
        if limit > 0 && !self.session {
            if !take(&self.settings.throttle.sessions, limit) {
                return Err(Breach::Busy { limit });
            }
            self.session = true;
        }
        Ok(())
    }

    /// The session is over; its calls may not be yet.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.session) {
            self.settings.throttle.sessions.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether calls are counted.
    #[inline]
    pub(super) fn counts_calls(&self) -> bool {
        self.settings.quotas.max_concurrent_calls > 0
    }

    /// A call that somebody waits for begins.
    pub(super) fn begin(&mut self, id: CallId) -> Result<(), Failure> {
        let limit = self.settings.quotas.max_concurrent_calls;
        if take(&self.settings.throttle.calls, limit) {
            self.calls.push(id);
            return Ok(());
        }
        let what = format!(
            "the service is too busy: it serves MaxConcurrentCalls ({limit}) calls; raise it with \
             `MaxConcurrentCalls=` in the listener's address"
        );
        Err(Failure::new(Kind::Busy, Initiator::Here, what))
    }

    /// It was answered.
    #[inline]
    pub(super) fn finish(&mut self, id: CallId) {
        if let Some(at) = self.calls.iter().position(|known| *known == id) {
            self.calls.swap_remove(at);
            self.settings.throttle.calls.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Nothing of this connection counts any more.
    pub(super) fn end(&mut self) {
        self.leave();
        let calls = std::mem::take(&mut self.calls).len();
        self.settings.throttle.calls.fetch_sub(calls, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}

fn take(count: &AtomicUsize, limit: usize) -> bool {
    let more = |held: usize| (held < limit).then_some(held + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}
