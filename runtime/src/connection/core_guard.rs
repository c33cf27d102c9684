//! The lock on a connection, and what is put off until it is let go: code of others never runs under it.

use super::deferred_list::DeferredList;
use super::state::{Connection, Core, DeferredAction, ENTRIES};
use crate::spin_wait::make_way;
use crate::sync::lock;
use crate::worker_pool::waits_for_lock;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// The lock on what changes of a connection. When it is let go, what was put off is done, on this thread:
/// completions, notices, servants that hear of an end. So whoever holds it may be in the middle of code of
/// others right after.
pub(super) struct CoreGuard<'c> {
    // Dropped in this order: first the lock is let go.
    core: MutexGuard<'c, Core>,
    put_off: DeferredActions<'c>,
}

impl Connection {
    /// The lock, announcing that somebody wants it.
    #[inline(always)]
    pub(super) fn enter(&self) -> CoreGuard<'_> {
        match self.core.try_lock() {
            Ok(core) => CoreGuard::new(self, core),
            Err(_) => self.enter_late(),
        }
    }

    /// Somebody has the lock, or has left it in a panic.
    #[cold]
    fn enter_late(&self) -> CoreGuard<'_> {
        self.contenders.fetch_add(1, Ordering::Relaxed);
        // Whoever has it lets go soon, and to be woken costs more than to look again.
        for _ in 0..ENTRIES {
            if !make_way() {
                break;
            }
            if let Ok(core) = self.core.try_lock() {
                self.contenders.fetch_sub(1, Ordering::Relaxed);
                return CoreGuard::new(self, core);
            }
        }
        let core = waits_for_lock(|| lock(&self.core));
        self.contenders.fetch_sub(1, Ordering::Relaxed);
        CoreGuard::new(self, core)
    }
}

/// What is done when the lock has been let go.
struct DeferredActions<'c> {
    connection: &'c Connection,
    /// Mostly nothing: then letting go costs no more than the lock does.
    list: DeferredList<DeferredAction>,
}

impl<'c> CoreGuard<'c> {
    #[inline]
    pub(super) fn new(connection: &'c Connection, core: MutexGuard<'c, Core>) -> Self {
        Self { core, put_off: DeferredActions { connection, list: DeferredList::default() } }
    }
}

impl Deref for CoreGuard<'_> {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for CoreGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl Drop for CoreGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let connection = self.put_off.connection;
        if connection.serial {
            connection.turns.note(self.core.session.outstanding() > 0);
        }
        if !self.core.deferred.is_empty() || self.core.heavy {
            self.put_off();
        }
    }
}

impl CoreGuard<'_> {
    #[cold]
    #[inline(never)]
    fn put_off(&mut self) {
        if std::mem::take(&mut self.core.heavy) {
            self.core.deferred.push(DeferredAction::MakeRoom);
        }
        self.put_off.list = std::mem::take(&mut self.core.deferred);
    }
}

impl Drop for DeferredActions<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(list) = self.list.take() {
            self.catch_up(list);
        }
    }
}

impl DeferredActions<'_> {
    #[cold]
    #[inline(never)]
    fn catch_up(&self, (first, more): (DeferredAction, Vec<DeferredAction>)) {
        for action in std::iter::once(first).chain(more) {
            // What panics has told the log. The others still get theirs: signals wait until an answer in order was told.
            let _ = catch_unwind(AssertUnwindSafe(|| self.see_to(action)));
        }
    }

    fn see_to(&self, action: DeferredAction) {
        match action {
            DeferredAction::Complete(asker, outcome) => asker.tell(outcome),
            DeferredAction::InOrder(asker, outcome) => {
                // Whatever becomes of it, those behind it get their turn.
                let _ = catch_unwind(AssertUnwindSafe(|| asker.tell(outcome)));
                if self.connection.event_queue.told() {
                    self.connection.rouse();
                }
            }
            DeferredAction::GoOn(call) => call.begin(&self.connection.node),
            DeferredAction::Notice(notice) => self.connection.node.notice(&notice),
            DeferredAction::Left(failure) => self.connection.left(&failure),
            DeferredAction::Forget(subscriber) => drop(subscriber),
            DeferredAction::MakeRoom => self.connection.allowance.make_room(),
            DeferredAction::Hear(servants, call) => {
                for servant in servants {
                    match call {
                        Some(call) => servant.cancelled(self.connection, call),
                        None => servant.closed(self.connection),
                    }
                }
            }
            DeferredAction::Heard(servants, heard) => {
                servants.iter().for_each(|servant| servant.heard(self.connection, &heard));
            }
            DeferredAction::Opened(servants, link) => {
                servants.iter().for_each(|servant| servant.opened(&link))
            }
            DeferredAction::Run(job) => {
                (job.run)();
            }
            DeferredAction::NotBegun(calls) => drop(calls),
            DeferredAction::Stale(found) => drop(found),
        }
    }
}
