//! The thread that leads a shard: what it looks at, in which order, and when it sleeps.
//!
//! States: *looking* at the connections that were busy last; *asking* the kernel about all of them, now and then or when those are
//! quiet; *asleep* in the same question; *serving* a call, during which another thread may take the lead; *preempted*, after which it
//! touches nothing of the shard any more. While there are many callers ([`ManyCallers`]) it asks and sleeps only, and yields to nobody: with many
//! callers the kernel knows best whose turn it is.
//!
//! Invariants: what the kernel tells only once is seen to before any servant runs. Those who call come before those who have brought
//! nothing yet, and newcomers: of these a few are handled, and then the kernel is asked again who calls, so that thousands of
//! strangers do not make a caller wait for more than a few of them.

use super::many_callers::ManyCallers;
use super::state::{BELL, CONTROL, EventSource, ONCE, STRANGERS, Shard};
use crate::clock::{lately, rest};
use crate::connection::{Connection, ServeOutcome};
use crate::spin_wait::SpinWait;
use crate::sync::lock;
use everywire_model::{Failure, Initiator, Kind};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Busy connections that are looked at directly; with more of them the kernel is asked which are ready.
const HOT: usize = 4;
/// Direct looks between two questions to the kernel, if no tick of its clock comes before: so nobody whom the
/// leader does not look at waits much longer than a tick.
const LOOKS: u32 = 16;
/// Events that are asked for at once.
const EVENTS: usize = 512;
/// Strangers that are looked at before the kernel is asked again who calls.
const STRANGERS_AT_ONCE: usize = 8;

thread_local! {
    static LEADING: RefCell<Option<Rc<Leader>>> = const { RefCell::new(None) };
}

/// The thread that leads a shard, in one term. Known to the thread itself by `LEADING`, so that stubs that
/// block can hand the lead over.
pub(crate) struct Leader {
    shard: Arc<Shard>,
    term: u64,
    /// The call that it began last.
    call: Cell<u64>,
    /// When it let newcomers in last.
    accepted: Cell<Instant>,
    /// Room for events of strangers.
    stranger_events: Cell<Vec<epoll::Event>>,
    /// Whether somebody waits for its next turn: then the kernel is asked for the others without more looks before.
    asks_next: Cell<bool>,
}

/// In which order events are handled: what is told once, those who call, the strangers.
fn rank(token: u64) -> u8 {
    match token {
        BELL => 0,
        STRANGERS => 2,
        _ if token & ONCE != 0 => 0,
        _ => 1,
    }
}

impl Leader {
    /// Leads a shard in this term, on the calling thread, until another one does.
    pub(super) fn of(shard: &Arc<Shard>, term: u64) {
        let leader = Rc::new(Self {
            shard: Arc::clone(shard),
            term,
            call: Cell::new(0),
            accepted: Cell::new(lately()),
            stranger_events: Cell::new(Vec::with_capacity(STRANGERS_AT_ONCE)),
            asks_next: Cell::new(false),
        });
        LEADING.set(Some(Rc::clone(&leader)));
        leader.run();
        LEADING.set(None);
    }

    /// Whether this thread still leads: it may have been preempted.
    fn leads(&self) -> bool {
        self.shard.terms.is(self.term)
    }

    /// A servant begins to serve a call of this connection.
    pub(crate) fn enter_servant(&self, connection: &Arc<Connection>) {
        let shard = &self.shard;
        // It is mostly the one that was served last. If the lead is lost just now, whoever took it has sent what was to be sent.
        if shard.serving_at.load(Ordering::Relaxed) != Arc::as_ptr(connection).addr() {
            let mut serving = lock(&shard.serving);
            let put = (!shard.terms.are_over()).then(|| Arc::clone(connection));
            let before = shard.put_serving(&mut serving, put);
            drop(serving);
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

    /// A call, or a future, begins to run on this thread: from now on the lead can be taken from it.
    fn begin_call(&self) {
        let call = self.shard.calls.load(Ordering::Relaxed) + 1;
        self.shard.calls.store(call, Ordering::Relaxed);
        self.call.set(call);
        self.shard.terms.begin(call);
    }

    /// A connection gave way to all others: the kernel is to be asked for them.
    pub(crate) fn asks_next(&self) {
        self.asks_next.set(true);
    }

    /// A servant ended. Returns whether this thread lost the lead meanwhile.
    pub(crate) fn leave_servant(&self) -> bool {
        !self.shard.terms.finish(self.term, self.call.get())
    }

    /// The loop of the thread that leads; ends when it has lost the lead, or its shard ends.
    fn run(&self) {
        let shard = &self.shard;
        // A list: there are few, and it is looked at all the time.
        let mut hot: Vec<Arc<Connection>> = Vec::with_capacity(HOT + 1);
        let mut spin_wait = SpinWait::new(shard.latency);
        let mut many = ManyCallers::default();
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let mut looks = 0;
        // Whether the kernel has told of somebody, whose calls were served.
        let mut came = false;
        // When the kernel was asked last.
        let mut asked = lately();
        shard.leader.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
        if self.term > 1 && self.leads() {
            shard.recall_bells();
            // First of all: its calls were read already, so that no event tells of them, and only one connection is inherited.
            let inherited = lock(&shard.inherited).take();
            if let Some(connection) = inherited {
                match connection.serve(self, true) {
                    ServeOutcome::Preempted => return,
                    ServeOutcome::Over => shard.forget(&connection),
                    ServeOutcome::Nothing | ServeOutcome::Something | ServeOutcome::Waits => {
                        hot.push(connection)
                    }
                }
            }
        }
        while self.leads() {
            let mut busy = self.run_tasks();
            if !self.leads() {
                break;
            }
            // A look costs a system call, and the kernel tells of what has come in any case. But who is over is let go.
            let blind = came
                && !busy
                && spin_wait.sleeps_at_once()
                && hot.iter().all(|hot| hot.is_over_tcp() && !hot.is_over());
            let mut index = if blind { hot.len() } else { 0 };
            // Whether a look was worth it at anybody: where all calls are with somebody else, only the kernel knows what comes.
            let mut looked = false;
            // Servants that answer at once leave nobody waiting.
            let passed_on = many.are_passed_on();
            while let Some(connection) = hot.get(index) {
                if many.are_here() && connection.is_told_of() {
                    // Nor is it kept: it may be over, and nobody would see that here.
                    hot.remove(index);
                    continue;
                }
                match connection.serve(self, !passed_on) {
                    ServeOutcome::Waits => index += 1,
                    ServeOutcome::Nothing => {
                        looked = true;
                        index += 1;
                    }
                    ServeOutcome::Something => {
                        (busy, looked) = (true, true);
                        many.found();
                        index += 1;
                    }
                    ServeOutcome::Over => {
                        shard.forget(&hot.remove(index));
                    }
                    ServeOutcome::Preempted => return,
                }
            }
            looks += 1;
            if busy {
                spin_wait.rewarded();
                let routed = !hot.is_empty() && hot.iter().all(|hot| hot.is_routed());
                spin_wait.behind_router(routed, false);
                spin_wait.after_sending(hot.last().map(|connection| &connection.stream));
            }
            came = false;
            let idle = !busy && (blind || many.are_here() || !spin_wait.look_again());
            // The clock is asked at every fourth look: four are soon over, and the clock costs as much as they do.
            if !idle
                && looked
                && !self.asks_next.take()
                && looks < LOOKS
                && (looks % 4 != 0 || lately() == asked)
            {
                continue;
            }
            looks = 0;
            events.clear();
            // When the first alarm is due; one that is set meanwhile is seen the next time.
            let (slept, next) = if idle {
                if hot.iter().any(|connection| connection.before_sleep()) {
                    hot.iter().for_each(|connection| connection.stream.after_sleep(false));
                    continue;
                }
                (true, self.sleep(&mut events))
            } else {
                let none = Timespec { tv_sec: 0, tv_nsec: 0 };
                // An interrupted look found nothing.
                let _ = epoll::wait(&shard.epoll, spare_capacity(&mut events), Some(&none));
                (false, shard.alarms.next())
            };
            asked = lately();
            if slept {
                hot.iter().for_each(|connection| connection.stream.after_sleep(false));
                if events.iter().any(|event| event.data.u64() != BELL) {
                    spin_wait.slept();
                    shard.supervisor.wake();
                }
            }
            came = !events.is_empty();
            if came {
                spin_wait.rewarded();
            }
            if events.len() > 1 {
                events.sort_by_key(|event| rank(event.data.u64()));
            }
            for event in &events {
                if self.handle(*event, &mut hot, &mut many) {
                    return;
                }
            }
            shard.tick_if_due(next, asked);
        }
    }

    /// Asks the kernel, and sleeps until it tells of something or the next alarm. `asleep` is set before the
    /// last look at tasks and alarms: whoever queues one afterwards sees it and rings. Returns when that alarm is due.
    fn sleep(&self, events: &mut Vec<epoll::Event>) -> Option<Instant> {
        let shard = &self.shard;
        shard.asleep.store(true, Ordering::SeqCst);
        let until = shard.alarms.next();
        if !shard.has_tasks.load(Ordering::SeqCst) {
            let timeout = until.map(rest);
            // Interrupted: the loop comes back here.
            let _ = epoll::wait(&shard.epoll, spare_capacity(events), timeout.as_ref());
        }
        shard.asleep.store(false, Ordering::SeqCst);
        until
    }

    /// Handles one event. Returns whether another thread leads now.
    fn handle(&self, event: epoll::Event, hot: &mut Vec<Arc<Connection>>, many: &mut ManyCallers) -> bool {
        let shard = &self.shard;
        let token = event.data.u64();
        if token == BELL {
            let mut count = [0u8; 8];
            // Empty already: fine.
            let _ = rustix::io::read(&shard.bell, &mut count);
            return false;
        }
        if token == STRANGERS {
            return self.look_at_strangers(hot, many);
        }
        match shard.find(token) {
            None => {}
            Some(EventSource::Listener(listener, node)) => {
                let now = lately();
                node.accept(&listener, now.saturating_duration_since(self.accepted.replace(now)));
            }
            Some(EventSource::Connection(connection)) if !connection.is_serving() => {
                connection.pump();
                many.answered();
                if connection.is_over() {
                    shard.forget(&connection);
                }
            }
            Some(EventSource::Connection(connection)) => {
                connection.stream.after_sleep(token & CONTROL == 0);
                let served = connection.serve(self, true);
                match served {
                    ServeOutcome::Over => shard.forget(&connection),
                    ServeOutcome::Preempted => return true,
                    ServeOutcome::Nothing if token & CONTROL != 0 && connection.stream.peer_gone() => {
                        connection.cut(&Failure::new(Kind::Unreachable, Initiator::Peer, "the peer is gone"));
                        shard.forget(&connection);
                    }
                    // It is looked at once more, whatever it brought: a peer in shared memory rings only for those who are.
                    ServeOutcome::Nothing | ServeOutcome::Something | ServeOutcome::Waits
                        if !connection.is_stranger() =>
                    {
                        self.warm(connection, hot);
                        if served == ServeOutcome::Something {
                            many.called(token);
                        }
                    }
                    ServeOutcome::Nothing | ServeOutcome::Something | ServeOutcome::Waits => {}
                }
            }
        }
        false
    }

    /// Looks at some of the strangers; of the others the kernel tells the next time, before it tells of these again. Returns whether
    /// another thread leads now.
    fn look_at_strangers(&self, hot: &mut Vec<Arc<Connection>>, many: &mut ManyCallers) -> bool {
        let mut events = self.stranger_events.take();
        events.clear();
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An interrupted look found nothing.
        let _ = epoll::wait(&self.shard.strangers, spare_capacity(&mut events), Some(&none));
        let preempted = events.iter().any(|event| self.handle(*event, hot, many));
        self.stranger_events.set(events);
        preempted
    }

    /// Puts a connection among those looked at directly, in place of the one that was there longest.
    fn warm(&self, connection: Arc<Connection>, hot: &mut Vec<Arc<Connection>>) {
        if hot.iter().any(|held| Arc::ptr_eq(held, &connection)) {
            return;
        }
        hot.push(connection);
        if hot.len() > HOT {
            let cold = hot.remove(0);
            if !cold.before_sleep() {
                return;
            }
            // Something came at the last moment, and the peer did not ring for it.
            cold.stream.after_sleep(false);
            let other = hot.remove(0);
            hot.push(cold);
            // Whoever goes instead is rung for: its flag is up before it is looked at for the last time.
            if other.before_sleep()
                && let (fd, Some(_)) = other.stream.watched()
            {
                let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
            }
        }
    }
}

/// Does something with the lead of the calling thread, whose task has nothing else to do. The task no longer counts as a call: nobody
/// takes the lead away before the next one begins. Nothing, if the thread has lost it.
pub(crate) fn with_lead_of_no_call<T>(work: impl FnOnce(&Leader) -> T) -> Option<T> {
    let leader = LEADING.with_borrow(Clone::clone)?;
    (!leader.leave_servant()).then(|| work(&leader))
}

/// Whether the calling thread leads a shard, now.
pub(crate) fn leads_here() -> bool {
    LEADING.with_borrow(|leading| leading.as_ref().is_some_and(|leader| leader.leads()))
}

/// The shard that the calling thread leads.
pub(crate) fn led_here() -> Option<Arc<Shard>> {
    LEADING.with_borrow(|leading| {
        leading.as_ref().filter(|leader| leader.leads()).map(|leader| Arc::clone(&leader.shard))
    })
}

/// Tells the runtime that the calling thread is about to block: if it leads a shard and serves a call,
/// another thread takes over. To be called before each wait of the runtime's own that a servant can come to. Returns whether the
/// thread leads on, since no other can.
pub(crate) fn about_to_block() -> bool {
    LEADING.with_borrow(|leading| {
        let Some(leader) = leading.as_ref().filter(|leader| leader.leads()) else { return false };
        let _blocked = leader.shard.hand_over(leader.term, leader.call.get());
        leader.leads()
    })
}

/// Runs something that may take long inside a servant: its shard goes on with other connections meanwhile.
///
/// Stubs do so by themselves. Without it a servant that blocks is noticed too, but only after 10 to 45 ms, or 100 ms more if it computes.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    about_to_block();
    work()
}
