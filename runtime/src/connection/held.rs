//! The lock on a connection, and what is put off until it is let go: code of others never runs under it.

use super::{Asker, Connection, Core, Resuming};
use crate::builder::Notice;
use crate::directory::Remembered;
use crate::signals::Subscriber;
use everywire_model::{Body, CallId, Failure, Incoming, Link, Outcome, Servant};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

/// What is to be done without the lock.
pub(super) enum After {
    Complete(Asker, Outcome<Body>),
    /// The call of a future that its connection has left behind.
    GoOn(Resuming),
    Notice(Notice),
    /// The router is gone.
    Left(Failure),
    /// Somebody to be forgotten.
    Forget(#[allow(dead_code)] Arc<Subscriber>),
    /// The connections hold more memory than they may.
    MakeRoom,
    /// Whoever answers for prefixes hears that it is there.
    Opened(Vec<Arc<dyn Servant>>, Arc<dyn Link>),
    /// Whoever answers for prefixes hears that it is over, or that a call was withdrawn.
    Hear(Vec<Arc<dyn Servant>>, Option<CallId>),
    /// Whoever answers for prefixes hears what a caller tells.
    Heard(Vec<Arc<dyn Servant>>, Incoming),
    /// A look-up that is not remembered any more: it may be the last that holds a servant.
    Stale(#[allow(dead_code)] Box<Remembered>),
}

/// The lock on what changes. When it is let go, what was put off is done.
pub(super) struct Held<'c> {
    // Dropped in this order: first the lock is let go.
    core: MutexGuard<'c, Core>,
    put_off: PutOff<'c>,
}

struct PutOff<'c> {
    connection: &'c Connection,
    /// Mostly nothing: then letting go costs no more than the lock does. One word, since this is moved with the lock.
    #[allow(clippy::box_collection)]
    list: Option<Box<Vec<After>>>,
}

impl<'c> Held<'c> {
    #[inline]
    pub(super) fn new(connection: &'c Connection, core: MutexGuard<'c, Core>) -> Self {
        Self { core, put_off: PutOff { connection, list: None } }
    }
}

impl Deref for Held<'_> {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Held<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        let connection = self.put_off.connection;
        if connection.serial {
            connection.turns.note(self.core.session.outstanding() > 0);
        }
        if !self.core.after.is_empty() || self.core.heavy {
            self.put_off();
        }
    }
}

impl Held<'_> {
    #[cold]
    #[inline(never)]
    fn put_off(&mut self) {
        let mut list = std::mem::take(&mut self.core.after);
        if std::mem::take(&mut self.core.heavy) {
            list.push(After::MakeRoom);
        }
        self.put_off.list = Some(Box::new(list));
    }
}

impl Drop for PutOff<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(list) = self.list.take() {
            self.catch_up(*list);
        }
    }
}

impl PutOff<'_> {
    #[cold]
    #[inline(never)]
    fn catch_up(&self, list: Vec<After>) {
        for after in list {
            match after {
                After::Complete(asker, outcome) => asker.tell(outcome),
                After::GoOn(call) => call.begin(&self.connection.node),
                After::Notice(notice) => self.connection.node.notice(&notice),
                After::Left(failure) => self.connection.left(&failure),
                After::Forget(subscriber) => drop(subscriber),
                After::MakeRoom => self.connection.allowance.make_room(),
                After::Hear(servants, call) => {
                    for servant in servants {
                        match call {
                            Some(call) => servant.cancelled(self.connection, call),
                            None => servant.closed(self.connection),
                        }
                    }
                }
                After::Heard(servants, heard) => {
                    servants.iter().for_each(|servant| servant.heard(self.connection, &heard));
                }
                After::Opened(servants, link) => servants.iter().for_each(|servant| servant.opened(&link)),
                After::Stale(found) => drop(found),
            }
        }
    }
}
