//! The threads of a shard: the one that leads, the one that takes over when a servant blocks, and the supervisor that notices.

use super::leader::Leader;
use super::state::{BELL, EventSource, STRANGERS, Shard};
use crate::alarms::Alarms;
use crate::connection::{Connection, flush_before_blocking};
use crate::spin_wait::Latency;
use crate::supervisor::{Supervisor, Watch};
use crate::sync::lock;
use crate::terms::{Successor, Terms};
use crate::worker_pool::is_asleep;
use everywire_model::{Failure, Initiator, Kind};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

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
        let supervised = std::thread::Builder::new()
            .name("everywire-watch".into())
            .spawn(move || Self::supervise(&watched));
        if let Err(error) = supervised {
            let why = "the supervisor could not be started";
            shard.stop(&Failure::new(Kind::Cancelled, Initiator::Here, why));
            return Err(error);
        }
        Ok(shard)
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
            if let EventSource::Connection(connection) = watched {
                connection.cut(why);
            }
        }
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        // Without the lock: they may hold what is the user's.
        drop(tasks);
        self.supervisor.wake();
        self.ring();
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

    /// The supervisor's thread; ends with its shard.
    pub(super) fn supervise(shard: &Weak<Self>) {
        Watch::begin();
        let mut watch = Watch::new(Instant::now());
        loop {
            let Some(shard) = shard.upgrade() else { return };
            // First of all: what runs is of this term, or of a later one.
            let term = shard.terms.now();
            let (running, calls) = (shard.terms.running(), shard.calls.load(Ordering::SeqCst));
            let leader = shard.leader.load(Ordering::Relaxed);
            if shard.terms.are_over() {
                return;
            }
            // Nothing happens if the call has ended by now.
            if let Some(blocked) = watch.look(Instant::now(), running, calls, || is_asleep(leader))
                && let Some(connection) = shard.hand_over(term, running)
                && blocked.asleep
            {
                connection.has_blocked();
            }
            let Some(step) = watch.next() else {
                // A call that began just now is seen by the count, at the latest when the time is over.
                let is_idle = || shard.calls.load(Ordering::SeqCst) == calls && Arc::strong_count(&shard) > 1;
                shard.supervisor.doze(|| is_idle() && !shard.terms.are_over());
                continue;
            };
            drop(shard);
            std::thread::sleep(step);
        }
    }
}
