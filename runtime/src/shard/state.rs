//! What an event loop is made of, and what it watches. Its threads are in `threads`, what they do in
//! `leader`.
//!
//! State: the slab `watched` has the connections and listeners; `terms` says which thread leads; `serving` is
//! the connection whose servant runs, `inherited` what the next leader begins with; `tasks` are futures that
//! can go on, `alarms` the times at which connections want to be looked at.
//!
//! Who changes it: the leader handles events; any thread may register, remind, queue, or forget a connection.
//! The leader is woken by the bell, if it is `asleep`.
//!
//! Tokens of epoll: bits 0 to 31 are the place in the slab, 32 to 61 a generation, bit 62 marks the calling
//! side (`ONCE`), bit 63 the control socket of shared memory (`CONTROL`); the two largest numbers are the
//! bell and the set of strangers. An event for a place that has a new tenant has another generation, and
//! finds nobody.
//!
//! Invariants: a connection is in one shard for its whole life, and in one of the two sets of epoll at a
//! time. `has_tasks`, and the alarms, are changed before `asleep` is looked at, and the leader does it the
//! other way round: so it never sleeps over one. What is put into a place of a shard that holds it (`watched`,
//! `serving`, `tasks`) is put there under the lock of that place, and only while the terms are not over: `stop`
//! ends them first, and then empties each. What is taken out of a lock is dropped after it: it may hold
//! the node, whose end comes back here.

use crate::alarms::Alarms;
use crate::clock::TICK;
use crate::connection::Connection;
use crate::shared::Shared;
use crate::spin_wait::Latency;
use crate::supervisor::Supervisor;
use crate::sync::lock;
use crate::tasks::{Queue, Task};
use crate::terms::Terms;
use crate::transport::listener::Listener;
use rustix::event::epoll::{self, EventData, EventFlags};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

/// Marks an event of a stream's control socket.
pub(crate) const CONTROL: u64 = 1 << 63;
/// Marks the events of connections that are told once, those of the calling side: whoever serves may be preempted, and what is told
/// once must have been seen to by then.
pub(super) const ONCE: u64 = 1 << 62;
/// The token of the shard's own bell.
pub(super) const BELL: u64 = u64::MAX;
/// The token of the set of strangers.
pub(super) const STRANGERS: u64 = u64::MAX - 1;

/// One event loop.
pub(crate) struct Shard {
    pub(crate) epoll: OwnedFd,
    /// Where strangers are watched: listeners, and connections whose bytes were no whole message the last time. There may be thousands
    /// who are never done, so the first set tells only that somebody is there, and few of them are looked at in one go.
    pub(crate) strangers: OwnedFd,
    pub(super) bell: OwnedFd,
    pub(super) watched: Mutex<Slab<(u32, EventSource)>>,
    /// Which thread leads.
    pub(super) terms: Terms,
    /// Numbers calls and futures that the leader runs, from 1; only the leader counts. The supervisor sees by
    /// it whether anything happens.
    pub(super) calls: AtomicU64,
    /// The thread that leads, by the kernel's number.
    pub(super) leader: AtomicI32,
    /// The connection whose calls are being served: its replies are sent together, or when a servant blocks.
    pub(super) serving: Mutex<Option<Arc<Connection>>>,
    /// Where that connection is in memory, 0 for none: the leader looks here first.
    pub(super) serving_at: AtomicUsize,
    /// The connection whose servant blocked: calls that came together with that one are the next leader's.
    pub(super) inherited: Mutex<Option<Arc<Connection>>>,
    /// Whether the leader sleeps, or is about to: then a change must be told by the bell.
    pub(super) asleep: AtomicBool,
    /// Futures that can go on.
    pub(super) tasks: Mutex<VecDeque<Arc<Task<Self>>>>,
    /// Whether there are any: looked at without the lock.
    pub(super) has_tasks: AtomicBool,
    /// When which connection is to be looked at.
    pub(super) alarms: Alarms,
    /// Connections by shared memory: a new leader has them ring.
    pub(super) bells: AtomicUsize,
    /// Counts entries of the slab; 30 bits of it are in the token.
    pub(super) generations: AtomicU64,
    pub(super) latency: Latency,
    pub(super) supervisor: Supervisor,
}

/// What an event loop watches.
#[derive(Clone)]
pub(super) enum EventSource {
    Listener(Arc<Listener>, Arc<Shared>),
    Connection(Arc<Connection>),
}

/// A connection's place in a shard.
#[derive(Clone)]
pub(crate) struct Registration {
    pub(crate) shard: Weak<Shard>,
    pub(crate) token: u64,
}

impl Shard {
    /// Watches a listening socket.
    pub(crate) fn listen(&self, listener: Arc<Listener>, node: Arc<Shared>) -> io::Result<()> {
        let token = self.insert(EventSource::Listener(Arc::clone(&listener), node))?;
        let watched = epoll::add(
            &self.strangers,
            listener.acceptor.watched(),
            EventData::new_u64(token),
            EventFlags::IN,
        );
        if watched.is_err() {
            self.remove(token);
        }
        Ok(watched?)
    }

    /// Watches an accepted connection for requests.
    pub(crate) fn adopt(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        self.register(connection, EventFlags::IN)
    }

    /// Registers a connection of the calling side, without watching it yet.
    pub(crate) fn reserve(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        self.register(connection, EventFlags::ONESHOT)
    }

    /// Gives a connection its place, and has the kernel watch it by these flags: for shared memory both its
    /// bell and its control socket.
    fn register(self: &Arc<Self>, connection: &Arc<Connection>, flags: EventFlags) -> io::Result<()> {
        let mut token = self.insert(EventSource::Connection(Arc::clone(connection)))?;
        if flags.contains(EventFlags::ONESHOT) {
            token |= ONCE;
        }
        connection.set_registration(Registration { shard: Arc::downgrade(self), token });
        let control = connection.stream.watched().1.is_some();
        if control {
            self.bells.fetch_add(1, Ordering::Relaxed);
        }
        let watched = self.watch_first(connection, token, flags);
        if watched.is_err() {
            // The kernel watches no more: nobody would ever take it out.
            self.forget(connection);
        }
        watched
    }

    /// Has the kernel watch a connection that it does not know yet.
    fn watch_first(&self, connection: &Connection, token: u64, flags: EventFlags) -> io::Result<()> {
        let (stream, control) = connection.stream.watched();
        epoll::add(self.watching(connection), stream, EventData::new_u64(token), flags)?;
        match control {
            Some(control) => {
                Ok(epoll::add(&self.epoll, control, EventData::new_u64(token | CONTROL), flags)?)
            }
            None => Ok(()),
        }
    }

    /// Where a connection is watched.
    pub(crate) fn watching(&self, connection: &Connection) -> &OwnedFd {
        if connection.is_stranger() { &self.strangers } else { &self.epoll }
    }

    /// Takes in what is to be watched. Refused when the shard has ended: nobody would ever let go of it.
    pub(super) fn insert(&self, watched: EventSource) -> io::Result<u64> {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
        let mut slab = lock(&self.watched);
        // Under the lock: whoever ends the shard takes out what is there after that.
        if self.terms.are_over() {
            drop(slab);
            return Err(io::Error::other("the event loop has ended"));
        }
        let index = slab.insert((u32::try_from(generation).unwrap_or(0), watched));
        Ok(generation << 32 | index as u64)
    }

    /// Index and generation of a token.
    fn entry(token: u64) -> (usize, u64) {
        (usize::try_from(token & 0xffff_ffff).unwrap_or(usize::MAX), (token & !(CONTROL | ONCE)) >> 32)
    }

    /// What a token leads to; nothing, if that is gone.
    pub(super) fn find(&self, token: u64) -> Option<EventSource> {
        let (index, generation) = Self::entry(token);
        let slab = lock(&self.watched);
        let (held, watched) = slab.get(index)?;
        (u64::from(*held) == generation).then(|| watched.clone())
    }

    /// Connections, for quotas and for deadlines.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        lock(&self.watched)
            .iter()
            .filter_map(|(_, (_, watched))| match watched {
                EventSource::Connection(connection) => Some(Arc::clone(connection)),
                EventSource::Listener(..) => None,
            })
            .collect()
    }

    /// Stops watching a connection that is over.
    pub(crate) fn forget(&self, connection: &Arc<Connection>) {
        let Some(registration) = connection.registration() else { return };
        let (stream, control) = connection.stream.watched();
        // It may have been removed before.
        let _ = epoll::delete(self.watching(connection), stream);
        if let Some(control) = control {
            let _ = epoll::delete(&self.epoll, control);
        }
        let mut serving = lock(&self.serving);
        if serving.as_ref().is_some_and(|held| Arc::ptr_eq(held, connection)) {
            self.put_serving(&mut serving, None);
        }
        drop(serving);
        if self.remove(registration.token) && control.is_some() {
            self.bells.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets go of what a token leads to. Whether it was there.
    fn remove(&self, token: u64) -> bool {
        let (index, generation) = Self::entry(token);
        let mut slab = lock(&self.watched);
        if slab.get(index).is_none_or(|(held, _)| u64::from(*held) != generation) {
            return false;
        }
        let removed = slab.remove(index);
        drop(slab);
        // Without the lock: it may be the last that holds a node.
        drop(removed);
        true
    }

    /// Closes all listening sockets.
    pub(crate) fn close_listeners(&self) {
        let mut closed = Vec::new();
        lock(&self.watched).retain(|_, (_, watched)| {
            let EventSource::Listener(listener, _) = watched else { return true };
            // It is watched no longer, also while somebody accepts from it at this moment.
            let _ = epoll::delete(&self.strangers, listener.acceptor.watched());
            // They hold the node, so they are dropped without the lock.
            closed.push(watched.clone());
            false
        });
    }

    /// Has a connection looked at by `when`, and no longer at `before`.
    pub(crate) fn remind(&self, token: u64, when: Instant, before: Option<Instant>) {
        if self.alarms.set(when, token, before) && self.asleep.load(Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Wakes the leader, if it sleeps or is about to.
    pub(super) fn ring(&self) {
        // A bell that cannot be rung any louder has been heard.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Changes which connection is being served; returns the one before, to be dropped without the lock.
    pub(super) fn put_serving(
        &self,
        serving: &mut Option<Arc<Connection>>,
        next: Option<Arc<Connection>>,
    ) -> Option<Arc<Connection>> {
        self.serving_at.store(next.as_ref().map_or(0, |next| Arc::as_ptr(next).addr()), Ordering::Relaxed);
        std::mem::replace(serving, next)
    }

    /// A new leader does not know which connections the old one was looking at: all are to ring from now on.
    pub(super) fn recall_bells(&self) {
        if self.bells.load(Ordering::Relaxed) == 0 {
            return;
        }
        for connection in self.connections() {
            if connection.is_serving()
                && let (bell, Some(_)) = connection.stream.watched()
                && connection.before_sleep()
            {
                // It came before the flag was up, so nobody has rung.
                let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
            }
        }
    }

    /// Looks at the connections of which a deadline has come.
    fn tick(&self, now: Instant) {
        for token in self.alarms.due(now) {
            let Some(EventSource::Connection(connection)) = self.find(token) else { continue };
            if let Some(when) = connection.tick(now) {
                self.remind(token, when, None);
            }
            if connection.is_over() {
                self.forget(&connection);
            }
        }
    }

    /// Looks at what is due, if that may be: `next` is the first alarm. The coarse clock was asked just now, and the exact one
    /// is only where that may make a difference.
    pub(super) fn tick_if_due(&self, next: Option<Instant>, asked: Instant) {
        if next.is_some_and(|next| next <= asked + TICK) {
            self.tick(Instant::now());
        }
    }
}

impl Queue for Shard {
    /// Queues a future that can go on.
    fn enqueue(&self, task: Arc<Task<Self>>) {
        {
            let mut tasks = lock(&self.tasks);
            if self.terms.are_over() {
                // Nobody will run it; dropped here, without the lock below.
                drop(tasks);
                return;
            }
            tasks.push_back(task);
            self.has_tasks.store(true, Ordering::SeqCst);
        }
        if self.asleep.load(Ordering::SeqCst) {
            self.ring();
        }
    }
}
