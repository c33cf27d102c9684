//! Shards: event loops, one a CPU, each serving any number of connections.
//!
//! One thread at a time *leads* a shard. It looks at the connections that were busy last, without asking the kernel
//! about the others; when nothing has come for a while it sleeps in `epoll_wait`. A servant runs on the leading thread.
//! If it blocks, it is *deposed*: another thread takes the lead, and the old one ends when its servant returns. Blocking
//! is noticed at once when it happens in a stub of ours or in [`blocking`], and by a supervisor within some 20 ms
//! otherwise.

use crate::alarms::Alarms;
use crate::connection::{Connection, Served, flush_before_blocking};
use crate::patience::{Latency, Patience};
use crate::seat::Seat;
use crate::shared::Shared;
use crate::supervisor::Supervisor;
use crate::sync::lock;
use crate::tasks::Task;
use crate::terms::{Successor, Terms};
use crate::transport::listener::Listener;
use everywire_model::{Failure, Initiator, Kind};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Busy connections that are looked at directly; with more of them the kernel is asked which are ready.
const HOT: usize = 4;
/// Direct looks between two questions to the kernel.
const LOOKS: u32 = 16;
/// Marks an event of a stream's control socket.
pub(crate) const CONTROL: u64 = 1 << 63;
/// The token of the shard's own bell.
const BELL: u64 = u64::MAX;

thread_local! {
    static LEADING: RefCell<Option<Rc<Lead>>> = const { RefCell::new(None) };
}

/// One event loop.
pub(crate) struct Shard {
    pub(crate) epoll: OwnedFd,
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

/// The thread that leads a shard.
pub(crate) struct Lead {
    shard: Arc<Shard>,
    term: u64,
    /// The call that it began last.
    call: Cell<u64>,
}

impl Shard {
    /// Makes an event loop and starts its first thread.
    pub(crate) fn start(latency: Latency, blocked_threads: usize) -> io::Result<Arc<Self>> {
        let shard = Arc::new(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
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
        epoll::add(&self.epoll, listener.watched(), EventData::new_u64(token), EventFlags::IN)?;
        Ok(())
    }

    /// Watches an accepted connection for requests.
    pub(crate) fn adopt(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        self.seat(connection, EventFlags::IN)
    }

    /// Gives a connection of the calling side a seat, without watching it yet.
    pub(crate) fn reserve(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        self.seat(connection, EventFlags::ONESHOT)
    }

    fn seat(self: &Arc<Self>, connection: &Arc<Connection>, flags: EventFlags) -> io::Result<()> {
        let token = self.insert(Watched::Connection(Arc::clone(connection)));
        connection.sit(Seat { shard: Arc::downgrade(self), token });
        let (stream, control) = connection.stream().watched();
        epoll::add(&self.epoll, stream, EventData::new_u64(token), flags)?;
        if let Some(control) = control {
            self.bells.fetch_add(1, Ordering::Relaxed);
            epoll::add(&self.epoll, control, EventData::new_u64(token | CONTROL), flags)?;
        }
        Ok(())
    }

    fn insert(&self, watched: Watched) -> u64 {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
        let mut slab = lock(&self.watched);
        let index = slab.insert((u32::try_from(generation).unwrap_or(0), watched));
        generation << 32 | index as u64
    }

    fn find(&self, token: u64) -> Option<Watched> {
        let index = usize::try_from(token & 0xffff_ffff).ok()?;
        let slab = lock(&self.watched);
        let (generation, watched) = slab.get(index)?;
        (u64::from(*generation) == token >> 32).then(|| watched.clone())
    }

    /// Whether an event is for a connection with servants.
    fn serves(&self, token: u64) -> bool {
        token != BELL
            && matches!(self.find(token & !CONTROL), Some(Watched::Connection(connection)) if connection.is_serving())
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
        let Some(seat) = connection.seat() else { return };
        let (stream, control) = connection.stream().watched();
        // It may have been removed before.
        let _ = epoll::delete(&self.epoll, stream);
        if let Some(control) = control {
            let _ = epoll::delete(&self.epoll, control);
        }
        let mut serving = lock(&self.serving);
        if serving.as_ref().is_some_and(|held| Arc::ptr_eq(held, connection)) {
            self.put_serving(&mut serving, None);
        }
        drop(serving);
        let index = usize::try_from(seat.token & 0xffff_ffff).unwrap_or(usize::MAX);
        let mut slab = lock(&self.watched);
        if slab.get(index).is_some_and(|(generation, _)| u64::from(*generation) == seat.token >> 32) {
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
            let _ = epoll::delete(&self.epoll, listener.watched());
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

    /// A thread's life: leads until deposed, then waits for a while to be called up.
    fn thread(self: Arc<Self>, term: u64) {
        let mut term = Some(term);
        while let Some(led) = term {
            let lead = Rc::new(Lead { shard: Arc::clone(&self), term: led, call: Cell::new(0) });
            LEADING.set(Some(Rc::clone(&lead)));
            lead.run();
            LEADING.set(None);
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

impl Lead {
    fn leads(&self) -> bool {
        self.shard.terms.is(self.term)
    }

    /// A servant begins to serve a call of this connection.
    pub(crate) fn enter_servant(&self, connection: &Arc<Connection>) {
        let shard = &self.shard;
        // It is mostly the one that was served last. If the lead is lost just now, whoever took it has sent what was to be sent.
        if shard.serving_at.load(Ordering::Relaxed) != Arc::as_ptr(connection).addr()
            && !shard.terms.are_over()
        {
            let before = shard.put_serving(&mut lock(&shard.serving), Some(Arc::clone(connection)));
            drop(before);
        }
        self.begin_call();
    }

    /// Continues the futures that can go on now. Returns whether there were any; the lead may be lost meanwhile.
    fn run_tasks(&self) -> bool {
        let shard = &self.shard;
        if !shard.has_tasks.load(Ordering::SeqCst) {
            return false;
        }
        // Those that are queued meanwhile get their turn after the connections.
        let due = lock(&shard.tasks).len();
        for _ in 0..due {
            let task = {
                let mut tasks = lock(&shard.tasks);
                let task = tasks.pop_front();
                // If this one blocks, the next leader must know of the others.
                shard.has_tasks.store(!tasks.is_empty(), Ordering::SeqCst);
                task
            };
            let Some(task) = task else { break };
            self.begin_call();
            task.run();
            if self.leave_servant() {
                break;
            }
        }
        true
    }

    fn begin_call(&self) {
        let call = self.shard.calls.load(Ordering::Relaxed) + 1;
        self.shard.calls.store(call, Ordering::Relaxed);
        self.call.set(call);
        self.shard.terms.begin(call);
    }

    /// A servant ended. Returns whether this thread lost the lead meanwhile.
    pub(crate) fn leave_servant(&self) -> bool {
        !self.shard.terms.finish(self.term, self.call.get())
    }

    fn run(&self) {
        let shard = &self.shard;
        let mut hot: VecDeque<Arc<Connection>> = VecDeque::with_capacity(HOT + 1);
        let mut patience = Patience::new(shard.latency);
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        let mut looks = 0;
        shard.leader.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
        if self.term > 1 && self.leads() {
            shard.recall_bells();
            hot.extend(lock(&shard.inherited).take());
        }
        while self.leads() {
            let mut busy = self.run_tasks();
            if !self.leads() {
                break;
            }
            let mut index = 0;
            while let Some(connection) = hot.get(index) {
                match connection.serve(self) {
                    Served::Nothing => index += 1,
                    Served::Something => {
                        busy = true;
                        index += 1;
                    }
                    Served::Over => {
                        if let Some(connection) = hot.remove(index) {
                            shard.forget(&connection);
                        }
                    }
                    Served::Deposed => return,
                }
            }
            looks += 1;
            if busy {
                patience.rewarded();
                let routed = !hot.is_empty() && hot.iter().all(|hot| hot.is_routed());
                patience.behind_router(routed, false);
                patience.after_sending(hot.back().map(|connection| connection.stream()));
            }
            let idle = !busy && !patience.look_again();
            if !idle && looks < LOOKS && !hot.is_empty() {
                continue;
            }
            looks = 0;
            events.clear();
            let slept = if idle {
                if hot.iter().any(|connection| connection.before_sleep()) {
                    hot.iter().for_each(|connection| connection.stream().after_sleep(false));
                    continue;
                }
                self.sleep(&mut events);
                true
            } else {
                let none = Timespec { tv_sec: 0, tv_nsec: 0 };
                // An interrupted look found nothing.
                let _ = epoll::wait(&shard.epoll, spare_capacity(&mut events), Some(&none));
                false
            };
            if slept {
                hot.iter().for_each(|connection| connection.stream().after_sleep(false));
                if events.iter().any(|event| event.data.u64() != BELL) {
                    patience.slept();
                    shard.supervisor.wake();
                }
            }
            if !events.is_empty() {
                patience.rewarded();
            }
            // Whoever serves may be deposed; what is told only once must have been seen to by then.
            if events.len() > 1 {
                events.sort_by_cached_key(|event| shard.serves(event.data.u64()));
            }
            for event in &events {
                if !self.handle(*event, &mut hot) {
                    return;
                }
            }
            if slept || looks == 0 {
                shard.tick_if_due();
            }
        }
    }

    fn sleep(&self, events: &mut Vec<epoll::Event>) {
        let shard = &self.shard;
        shard.asleep.store(true, Ordering::SeqCst);
        let until = shard.alarms.next();
        if !shard.has_tasks.load(Ordering::SeqCst) {
            let timeout = until.map(|until| {
                let rest = until.saturating_duration_since(Instant::now()) + Duration::from_micros(500);
                Timespec {
                    tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: rest.subsec_nanos().into(),
                }
            });
            // Interrupted: the loop comes back here.
            let _ = epoll::wait(&shard.epoll, spare_capacity(events), timeout.as_ref());
        }
        shard.asleep.store(false, Ordering::SeqCst);
    }

    /// Handles one event. Returns whether this thread still leads.
    fn handle(&self, event: epoll::Event, hot: &mut VecDeque<Arc<Connection>>) -> bool {
        let shard = &self.shard;
        let token = event.data.u64();
        if token == BELL {
            let mut count = [0u8; 8];
            // Empty already: fine.
            let _ = rustix::io::read(&shard.bell, &mut count);
            return true;
        }
        match shard.find(token & !CONTROL) {
            None => true,
            Some(Watched::Listener(listener, node)) => {
                node.accept(&listener);
                true
            }
            Some(Watched::Connection(connection)) if !connection.is_serving() => {
                connection.pump();
                if connection.is_over() {
                    shard.forget(&connection);
                }
                true
            }
            Some(Watched::Connection(connection)) => {
                connection.stream().after_sleep(token & CONTROL == 0);
                match connection.serve(self) {
                    Served::Over => shard.forget(&connection),
                    Served::Deposed => return false,
                    Served::Nothing if token & CONTROL != 0 && connection.stream().peer_gone() => {
                        connection.cut(&Failure::new(Kind::Unreachable, Initiator::Peer, "the peer is gone"));
                        shard.forget(&connection);
                    }
                    Served::Nothing | Served::Something => {
                        self.warm(connection, hot);
                    }
                }
                true
            }
        }
    }

    /// Puts a connection among those looked at directly, in place of the one that was there longest.
    fn warm(&self, connection: Arc<Connection>, hot: &mut VecDeque<Arc<Connection>>) {
        if hot.iter().any(|held| Arc::ptr_eq(held, &connection)) {
            return;
        }
        hot.push_back(connection);
        if hot.len() > HOT
            && let Some(cold) = hot.pop_front()
            && cold.before_sleep()
        {
            // Something came at the last moment, and the peer did not ring for it.
            cold.stream().after_sleep(false);
            hot.push_front(cold);
            hot.rotate_left(1);
            if let Some(other) = hot.pop_front() {
                // Whoever goes instead is rung for: its flag is up before it is looked at for the last time.
                if other.before_sleep()
                    && let (fd, Some(_)) = other.stream().watched()
                {
                    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
                }
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

    fn tick_if_due(&self) {
        if self.alarms.next().is_some() {
            self.tick(Instant::now());
        }
    }
}

/// Does something with the lead of the calling thread, if it leads a shard.
pub(crate) fn with_lead<T>(work: impl FnOnce(&Lead) -> T) -> Option<T> {
    let lead = LEADING.with_borrow(|leading| leading.as_ref().filter(|lead| lead.leads()).cloned());
    lead.map(|lead| work(&lead))
}

/// Whether the calling thread leads a shard, now.
pub(crate) fn leads_here() -> bool {
    LEADING.with_borrow(|leading| leading.as_ref().is_some_and(|lead| lead.leads()))
}

/// Tells the runtime that the calling thread is about to block: if it leads a shard, another thread takes over.
pub(crate) fn about_to_block() {
    LEADING.with_borrow(|leading| {
        if let Some(lead) = leading
            && lead.leads()
        {
            let _blocked = lead.shard.hand_over(lead.term, lead.call.get());
        }
    });
}

/// Runs something that may take long inside a servant: its shard goes on with other connections meanwhile.
///
/// Stubs do so by themselves. Without it a servant that blocks is noticed too, but only after some 20 ms, or 100 ms if it computes.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    about_to_block();
    work()
}
