//! Shards: event loops, one a CPU, each serving any number of connections.
//!
//! One thread at a time *leads* a shard. It looks at the connections that were busy last, without asking the kernel
//! about the others; when nothing has come for a while it sleeps in `epoll_wait`. A servant runs on the leading thread.
//! If it blocks, it is *preempted*: another thread takes the lead, and the old one ends when its servant returns. Blocking
//! is noticed at once when it happens in a stub of ours or in [`blocking`], and by a supervisor within some 20 ms
//! otherwise.

mod leader;
mod many_callers;

pub use leader::blocking;
pub(crate) use leader::{Leader, about_to_block, leads_here, led_here, with_lead_of_no_call};

use crate::alarms::Alarms;
use crate::clock::TICK;
use crate::connection::{Connection, flush_before_blocking};
use crate::patience::Latency;
use crate::registration::Registration;
use crate::shared::Shared;
use crate::supervisor::Supervisor;
use crate::sync::lock;
use crate::tasks::Task;
use crate::terms::{Successor, Terms};
use crate::transport::listener::Listener;
use everywire_model::Failure;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Marks an event of a stream's control socket.
pub(crate) const CONTROL: u64 = 1 << 63;
/// Marks the events of connections that are told once, those of the calling side: whoever serves may be preempted, and what is told
/// once must have been seen to by then.
const ONCE: u64 = 1 << 62;
/// The token of the shard's own bell.
const BELL: u64 = u64::MAX;
/// The token of the set of strangers.
const STRANGERS: u64 = u64::MAX - 1;

/// One event loop.
pub(crate) struct Shard {
    pub(crate) epoll: OwnedFd,
    /// Where strangers are watched: listeners, and connections whose bytes were no whole message the last time. There may be thousands
    /// who are never done, so the first set tells only that somebody is there, and few of them are looked at in one go.
    pub(crate) strangers: OwnedFd,
    bell: OwnedFd,
    watched: Mutex<Slab<(u32, Watched)>>,
    /// Which thread leads.
    terms: Terms,
    calls: AtomicU64,
    /// The thread that leads, by the kernel's number.
    leader: AtomicI32,
    /// The connection whose calls are being served: its replies are sent together, or when a servant blocks.
    serving: Mutex<Option<Arc<Connection>>>,
    /// Where that connection is in memory, 0 for none: the leader looks here first.
    serving_at: AtomicUsize,
    /// The connection whose servant blocked: calls that came together with that one are the next leader's.
    inherited: Mutex<Option<Arc<Connection>>>,
    asleep: AtomicBool,
    tasks: Mutex<VecDeque<Arc<Task>>>,
    has_tasks: AtomicBool,
    /// When which connection is to be looked at.
    alarms: Alarms,
    /// Connections by shared memory: a new leader has them ring.
    bells: AtomicUsize,
    generations: AtomicU64,
    latency: Latency,
    supervisor: Supervisor,
}

#[derive(Clone)]
enum Watched {
    Listener(Arc<Listener>, Arc<Shared>),
    Connection(Arc<Connection>),
}

/// How a shard is doing.
pub(crate) struct Pulse {
    pub(crate) term: u64,
    pub(crate) running: u64,
    pub(crate) calls: u64,
    pub(crate) leader: i32,
    pub(crate) over: bool,
}

impl Shard {
    /// Makes an event loop and starts its first thread.
    pub(crate) fn start(latency: Latency, blocked_threads: usize) -> io::Result<Arc<Self>> {
        let shard = Arc::new(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            strangers: epoll::create(CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            watched: Mutex::default(),
            terms: Terms::new(blocked_threads),
            calls: AtomicU64::new(0),
            leader: AtomicI32::new(0),
            serving: Mutex::default(),
            serving_at: AtomicUsize::new(0),
            inherited: Mutex::default(),
            asleep: AtomicBool::new(false),
            tasks: Mutex::default(),
            has_tasks: AtomicBool::new(false),
            alarms: Alarms::default(),
            bells: AtomicUsize::new(0),
            generations: AtomicU64::new(0),
            latency,
            supervisor: Supervisor::default(),
        });
        epoll::add(&shard.epoll, &shard.bell, EventData::new_u64(BELL), EventFlags::IN)?;
        epoll::add(&shard.epoll, &shard.strangers, EventData::new_u64(STRANGERS), EventFlags::IN)?;
        shard.spawn(1)?;
        let watched = Arc::downgrade(&shard);
        std::thread::Builder::new()
            .name("everywire-watch".into())
            .spawn(move || Supervisor::run(&watched))?;
        Ok(shard)
    }

    /// Watches a listening socket.
    pub(crate) fn listen(&self, listener: Arc<Listener>, node: Arc<Shared>) -> io::Result<()> {
        let token = self.insert(Watched::Listener(Arc::clone(&listener), node));
        epoll::add(&self.strangers, listener.watched(), EventData::new_u64(token), EventFlags::IN)?;
        Ok(())
    }

    /// Watches an accepted connection for requests.
    pub(crate) fn adopt(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        self.register(connection, EventFlags::IN)
    }

    /// Registers a connection of the calling side, without watching it yet.
    pub(crate) fn reserve(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        self.register(connection, EventFlags::ONESHOT)
    }

    fn register(self: &Arc<Self>, connection: &Arc<Connection>, flags: EventFlags) -> io::Result<()> {
        let mut token = self.insert(Watched::Connection(Arc::clone(connection)));
        if flags.contains(EventFlags::ONESHOT) {
            token |= ONCE;
        }
        connection.set_registration(Registration { shard: Arc::downgrade(self), token });
        let (stream, control) = connection.stream().watched();
        epoll::add(self.watching(connection), stream, EventData::new_u64(token), flags)?;
        if let Some(control) = control {
            self.bells.fetch_add(1, Ordering::Relaxed);
            epoll::add(&self.epoll, control, EventData::new_u64(token | CONTROL), flags)?;
        }
        Ok(())
    }

    /// Where a connection is watched.
    pub(crate) fn watching(&self, connection: &Connection) -> &OwnedFd {
        if connection.is_stranger() { &self.strangers } else { &self.epoll }
    }

    fn insert(&self, watched: Watched) -> u64 {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
        let mut slab = lock(&self.watched);
        let index = slab.insert((u32::try_from(generation).unwrap_or(0), watched));
        generation << 32 | index as u64
    }

    /// Index and generation of a token.
    fn entry(token: u64) -> (usize, u64) {
        (usize::try_from(token & 0xffff_ffff).unwrap_or(usize::MAX), (token & !(CONTROL | ONCE)) >> 32)
    }

    fn find(&self, token: u64) -> Option<Watched> {
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
                Watched::Connection(connection) => Some(Arc::clone(connection)),
                Watched::Listener(..) => None,
            })
            .collect()
    }

    /// Stops watching a connection that is over.
    pub(crate) fn forget(&self, connection: &Arc<Connection>) {
        let Some(registration) = connection.registration() else { return };
        let (stream, control) = connection.stream().watched();
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
        let (index, generation) = Self::entry(registration.token);
        let mut slab = lock(&self.watched);
        if slab.get(index).is_some_and(|(held, _)| u64::from(*held) == generation) {
            let removed = slab.remove(index);
            drop(slab);
            drop(removed);
            if control.is_some() {
                self.bells.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Closes all listening sockets.
    pub(crate) fn close_listeners(&self) {
        let mut slab = lock(&self.watched);
        let listening = |(at, (_, watched)): (usize, &(u32, Watched))| match watched {
            Watched::Listener(listener, _) => Some((at, Arc::clone(listener))),
            Watched::Connection(_) => None,
        };
        let found: Vec<_> = slab.iter().filter_map(listening).collect();
        let mut closed = Vec::with_capacity(found.len());
        for (at, listener) in found {
            // It is watched no longer, also while somebody accepts from it at this moment.
            let _ = epoll::delete(&self.strangers, listener.watched());
            closed.push(slab.remove(at));
        }
        drop(slab);
        // Without the lock: they hold the node.
        drop(closed);
    }

    /// Stops watching everything and ends all threads.
    pub(crate) fn stop(&self, why: &Failure) {
        self.terms.end();
        // What serves points to its node and the node to its shards: here the circle is cut.
        let serving = self.put_serving(&mut lock(&self.serving), None);
        let held = (serving, lock(&self.inherited).take());
        drop(held);
        let watched: Vec<_> = lock(&self.watched).drain().collect();
        for (_, watched) in watched {
            if let Watched::Connection(connection) = watched {
                connection.cut(why);
            }
        }
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        // Without the lock: they may hold what is the user's.
        drop(tasks);
        self.supervisor.wake();
        self.ring();
    }

    /// Queues a future that can go on.
    pub(crate) fn enqueue(&self, task: Arc<Task>) {
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

    /// Has a connection looked at by `when`, and no longer at `before`.
    pub(crate) fn remind(&self, token: u64, when: Instant, before: Option<Instant>) {
        if self.alarms.set(when, token, before) && self.asleep.load(Ordering::SeqCst) {
            self.ring();
        }
    }

    fn ring(&self) {
        // A bell that cannot be rung any louder has been heard.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Starts a thread that leads this term. If there is none to be had, whoever led before leads on, if it still can.
    fn spawn(self: &Arc<Self>, term: u64) -> io::Result<()> {
        let shard = Arc::clone(self);
        let spawned =
            std::thread::Builder::new().name("everywire-shard".into()).spawn(move || shard.thread(term));
        if spawned.is_err() {
            self.terms.take_back(term);
        }
        spawned.map(drop)
    }

    /// A thread's life: leads until preempted, then waits for a while to be called up.
    fn thread(self: Arc<Self>, term: u64) {
        let mut term = Some(term);
        while let Some(led) = term {
            Leader::of(&self, led);
            term = self.terms.rest();
        }
    }

    /// What the supervisor watches: the call that is running, calls so far, the leading thread, and whether it is all over.
    pub(crate) fn pulse(&self) -> Pulse {
        Pulse {
            // First of all: what runs is of this term, or of a later one.
            term: self.terms.now(),
            running: self.terms.running(),
            calls: self.calls.load(Ordering::SeqCst),
            leader: self.leader.load(Ordering::Relaxed),
            over: self.terms.are_over(),
        }
    }

    /// The supervisor of this shard.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Another thread takes the lead from the one whose term is `term`, if it still has it and serves this call. Returns the
    /// connection whose call that is, if it happened.
    pub(crate) fn hand_over(self: &Arc<Self>, term: u64, call: u64) -> Option<Arc<Connection>> {
        // Let go without any lock: it may be the last that holds a node, whose end stops this shard.
        let (mut blocked, mut _forgotten) = (None, None);
        let successor = self.terms.hand_over(term, call, || {
            blocked = self.put_serving(&mut lock(&self.serving), None);
            _forgotten = std::mem::replace(&mut *lock(&self.inherited), blocked.clone());
        });
        if let Successor::New(next) = successor
            && self.spawn(next).is_err()
        {
            return None;
        }
        if let Some(connection) = &blocked {
            flush_before_blocking(connection);
        }
        blocked
    }

    /// Changes which connection is being served; returns the one before, to be dropped without the lock.
    fn put_serving(
        &self,
        serving: &mut Option<Arc<Connection>>,
        next: Option<Arc<Connection>>,
    ) -> Option<Arc<Connection>> {
        self.serving_at.store(next.as_ref().map_or(0, |next| Arc::as_ptr(next).addr()), Ordering::Relaxed);
        std::mem::replace(serving, next)
    }

    /// Looks at the connections of which a deadline has come.
    fn tick(&self, now: Instant) {
        for token in self.alarms.due(now) {
            let Some(Watched::Connection(connection)) = self.find(token) else { continue };
            if let Some(when) = connection.tick(now) {
                self.remind(token, when, None);
            }
            if connection.is_over() {
                self.forget(&connection);
            }
        }
    }
}

impl Shard {
    /// A new leader does not know which connections the old one was looking at: all are to ring from now on.
    fn recall_bells(&self) {
        if self.bells.load(Ordering::Relaxed) == 0 {
            return;
        }
        for connection in self.connections() {
            if connection.is_serving()
                && let (bell, Some(_)) = connection.stream().watched()
                && connection.before_sleep()
            {
                // It came before the flag was up, so nobody has rung.
                let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
            }
        }
    }

    /// Looks at what is due; the coarse clock was asked just now, and the exact one is only where that may make a difference.
    fn tick_if_due(&self, asked: Instant) {
        if self.alarms.next().is_some_and(|next| next <= asked + TICK) {
            self.tick(Instant::now());
        }
    }
}
