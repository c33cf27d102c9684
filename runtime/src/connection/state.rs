//! What a connection is made of. What it does is in the files beside this one, which are named for that.
//!
//! States, of `Core`: *greeting* (`peer` is `None`: the session has let nobody through); *open*; *draining*
//! (refused: what the peer still sends is thrown away until that time); *parting* (nobody calls on it any more, and something is still
//! to be sent); *failed* (`failed` is set, and `over`
//! with it): that state is the last. Beside it, the calling side has who reads (`reading`, `reads_asleep`,
//! `looking`), the serving side what is watched (`watched`) and which calls wait (`in_turn`).
//!
//! Who changes them: any thread, under the lock of `core`. Fields of `Connection` beside it are fixed when it
//! is made, set once (`OnceLock`), or flags that may be read a moment late.
//!
//! Invariants: `over` is set exactly when `failed` is; a failed connection has no waiters, no listeners and
//! no buffers. `input` is the beginning of a message that the session could not use yet, and belongs to
//! whoever reads. While `reads_asleep`, nobody else reads. Each call that was begun is known in one place:
//! `reader`, `sending`, `waiting`, or with its servant. Code of others (completions, notices, servants,
//! destructors of what users gave) is put into `after`, and runs when the lock is free.
//!
//! Bounds: what is allocated on a peer's word alone is at most `ANNOUNCED` bytes; `under_way`, `in_turn` and
//! the buffers count in `weight`, of which the node bounds the sum.

use super::call_completion::{CallCompletion, Resuming};
use super::call_gate::CallGate;
use super::deferred_list::DeferredList;
use super::reply_slot::ReplySlot;
use crate::directory::CachedLookup;
use crate::notice::Notice;
use crate::private_count::PrivateConnection;
use crate::quotas::Allowance;
use crate::shard::Registration;
use crate::shared::Shared;
use crate::signals::{EventQueue, Subscriber};
use crate::spin_wait::SpinWait;
use crate::transport::Stream;
use crate::worker_pool::{BlockingRecords, Job};
use bytes::{Bytes, BytesMut};
use everywire_model::{
    Body, CallId, Capabilities, Endpoint, Failure, Handle, Incoming, Link, Outcome, Peer, Servant, Session,
    Wire,
};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How long a connection that was refused lives on: the rest of the peer's bytes is read and thrown away, so
/// that it gets to read why.
pub(super) const LINGER: Duration = Duration::from_secs(5);
/// Reads for one connection in one go, while a message is incomplete, before others get their turn.
pub(super) const READS: u32 = 64;
/// Bytes of a large message written in one go.
pub(super) const PIECE: usize = 1 << 20;
/// How often a full transport is tried again, in the middle of a large message, before other connections get their turn.
pub(super) const YIELDS: u32 = 8;
/// How often a lock that somebody else has is tried before this thread sleeps for it.
pub(super) const ENTRIES: u32 = 16;
/// Bytes allocated for a message on the word of its header alone.
pub(super) const ANNOUNCED: usize = 256 << 10;
/// Buffers above this size are given back when a connection has been quiet.
pub(super) const KEEP: usize = 64 << 10;

/// Numbers connections, from 1.
pub(super) static SERIAL_NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The connection whose calls this thread is serving, by address: its replies are sent in one go afterwards.
    pub(super) static SERVING: Cell<usize> = const { Cell::new(0) };
}

/// The address of the connection whose calls this thread serves; 0: of none.
pub(crate) fn served() -> usize {
    SERVING.get()
}

/// This thread serves calls of the connection at this address; 0: of none.
#[inline]
pub(crate) fn serves(connection: usize) {
    // Not `set`, whose way for a thread that has none yet is not inlined.
    SERVING.with(|serving| serving.set(connection));
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A peer made it, to call.
    Accepted,
    /// This process made it, to serve behind a router.
    Joined,
    /// This process made it, to call.
    Calling,
    /// This process made it, to overhear what others say.
    Monitoring,
}

/// One connection, of either side.
pub(crate) struct Connection {
    pub(super) this: Weak<Self>,
    pub(crate) stream: Stream,
    pub(super) endpoint: Endpoint,
    /// Where it serves behind a router, as text.
    pub(super) joined: OnceLock<String>,
    pub(super) node: Arc<Shared>,
    /// What peers of its listener may take.
    pub(super) allowance: Arc<Allowance>,
    pub(crate) wire: &'static dyn Wire,
    pub(super) role: Role,
    /// Its number among the accepted connections that share the allowance; 0: it was not accepted.
    pub(crate) number: u64,
    /// What the wire carries.
    pub(super) capabilities: Capabilities,
    /// Whether the peer may be called over this connection, and may call, whoever made it.
    pub(super) both_ways: bool,
    /// Whether operating-system handles may come along.
    pub(super) handles: bool,
    /// Whether one call at a time is carried, and whose turn it is.
    pub(crate) serial: bool,
    pub(super) turns: CallGate,
    /// Signals for listeners here.
    pub(super) event_queue: Arc<EventQueue>,
    /// Whether answers are told behind the signals that came before them.
    pub(super) in_order: AtomicBool,
    /// Calls of its peer that came beside answers and are queued for an event loop, or being handed over there.
    pub(super) backlog: super::backlog::Backlog,
    pub(super) core: Mutex<Core>,
    /// Threads that want the lock while another looks for bytes: then that one lets go for a moment.
    pub(super) contenders: AtomicUsize,
    /// Where an event loop watches it, once one does.
    pub(super) registration: OnceLock<Registration>,
    /// The operation whose servant runs, or ran last: the records of its servant and its number in them, and where they are in memory.
    pub(super) running: Mutex<Option<(BlockingRecords, usize)>>,
    pub(super) running_at: AtomicUsize,
    /// Who answers calls that its peer makes, if that is not whoever serves their objects.
    pub(super) backward: OnceLock<Arc<dyn Servant>>,
    /// Whether it is watched among the strangers; changes under the lock only.
    pub(super) stranger: AtomicBool,
    /// A number that no other connection of this process has or had.
    pub(super) serial_number: u64,
    /// Whether an event loop watches it all the time.
    pub(super) lasting: AtomicBool,
    /// Whether bodies of calls under way are counted, as `Core::under_way` has them: to be asked without the lock.
    pub(super) holds_bodies: AtomicBool,
    /// Whether it has failed: to be asked without the lock.
    pub(super) over: AtomicBool,
    /// Whether a router stands between.
    pub(super) routed: AtomicBool,
    /// Whether the loss of a router was told: once.
    pub(super) left: AtomicBool,
    /// It is told that there is no place for it.
    pub(super) turned_away: AtomicBool,
    /// That it was made for one peer of this process's alone.
    pub(super) private: OnceLock<PrivateConnection>,
}

/// What changes of a connection, under its lock.
pub(super) struct Core {
    /// The protocol: bytes in, events out, and what is to be sent (`transmit`).
    pub(super) session: Box<dyn Session>,
    /// Bytes that have come and the session has not used: mostly none.
    pub(super) input: BytesMut,
    /// Octets in the buffer that the session was fed with last, until a call that was in it has counted them.
    pub(super) came: usize,
    /// Room for the next message in octets, if the one before did not fit into the buffer of a thread; else 0. At most `ANNOUNCED`.
    pub(super) expected: usize,
    /// Whether large messages came lately: then their buffer is kept, because a fresh one costs a page fault each 4 KiB.
    pub(super) large: bool,
    /// Descriptors that came with those bytes, until the session takes them.
    pub(super) handles: Vec<Handle>,
    /// Who is at the other end, once the session has let it through.
    pub(super) peer: Option<Peer>,
    /// Calls of other threads and of futures.
    pub(super) waiting: Vec<PendingCall>,
    /// The call of the thread that reads, and what came of it while that was looking elsewhere.
    pub(super) reader: Option<CallId>,
    pub(super) own: Option<Outcome<Body>>,
    /// Calls of threads that are still sending them while another reads, and what came of them.
    pub(super) sending: Vec<(CallId, Option<Outcome<Body>>)>,
    /// Who listens to which signals. While somebody does, the connection is always read.
    pub(super) listeners: HashMap<CallId, Arc<Subscriber>>,
    /// What was overheard.
    pub(super) overheard: VecDeque<Bytes>,
    /// What is to be done once the lock is free, because it runs code of others.
    pub(super) deferred: DeferredList<DeferredAction>,
    /// Whether a calling thread is reading; it hands the others their replies.
    pub(super) reading: bool,
    /// Whether its event loop reads: for a bounded time, and queued calls of the peer begin after that.
    pub(super) pumping: bool,
    /// Whether the thread that reads sleeps in its read, without the lock: then nobody else may read.
    pub(super) reads_asleep: bool,
    /// Why bytes of this side got through no more while it did: it says so when it has seen to what the peer said before.
    pub(super) broken: Option<io::Error>,
    /// Whether reads were told how long they may sleep.
    pub(super) bounded: bool,
    /// Whether the thread that reads lets others run and then looks again: it sends what they leave unsent.
    pub(super) looking: bool,
    /// Calls in a row that had the connection for themselves, until it is no longer taken for one that several threads share; 0: one
    /// thread at a time calls. Where it is shared, whoever looks for bytes does not hold the lock.
    pub(super) company: u8,
    /// What the event loop was asked to tell about once (connections of the calling side only).
    pub(super) armed: RequestedEvents,
    /// What the event loop watches for (connections that serve only).
    pub(super) watched: Watch,
    /// Whether its next turn is queued with its event loop.
    pub(super) turn_queued: bool,
    pub(super) spin_wait: SpinWait,
    /// The last look-up, unless its call is being served just now.
    pub(super) remembered: Option<Box<CachedLookup>>,
    /// Calls that wait until those before them were handed over ([`everywire_model::Servant::keeps_order`]).
    pub(super) in_turn: VecDeque<(Box<Incoming>, Box<CachedLookup>)>,
    /// Calls that were given to the pool, until each is over; those of them that no thread has taken yet, each with the number that its
    /// job has; those that wait until the peer has read its answers.
    pub(super) apart: usize,
    pub(super) queued: VecDeque<(u64, ApartCall)>,
    pub(super) jobs: u64,
    pub(super) parked: Vec<ApartCall>,
    /// Whether a thread hands such calls over; it takes those that wait, too.
    pub(super) hands_over: bool,
    /// Who is to hear of its end behind those calls.
    pub(super) hears_end: Vec<Arc<dyn Servant>>,
    /// Calls of the peer of a connection that was made to call it, until a servant takes them.
    pub(super) called: VecDeque<Box<Incoming>>,
    /// Octets of answers to the peer of such a connection that it does not read (`unread`).
    pub(super) unread: usize,
    /// Since when nothing is read there because servants or listeners here are behind (`deadlines`).
    pub(super) unread_since: Option<Instant>,
    /// The tasks of calls of the peer that wait until it has read them.
    pub(super) held_back: Vec<Handover>,
    /// Why it is over. Set once, by `fail`.
    pub(super) failed: Option<Failure>,
    /// Refused: the rest is thrown away until then.
    pub(super) draining: Option<Instant>,
    /// Nobody calls on it any more: it ends when all is sent, or then.
    pub(super) parting: Option<Instant>,
    /// When it was made.
    pub(super) begun: Instant,
    /// When the time for its first message was over, and bytes of the peer waited here unread: then it has that time once more.
    pub(super) anew: Option<Instant>,
    /// When a call began or bytes came last: for silence, and for a look before the next call.
    pub(super) used: Instant,
    /// Whether it has sent a whole message: until then it has the time of `first_message`.
    pub(super) served: bool,
    /// Whether it found no place here, and is told so.
    pub(super) turned_away: bool,
    /// It waits for signals, and may be silent for ever.
    pub(super) listens: bool,
    /// Bytes that the node knows it to hold.
    pub(super) weight: usize,
    /// Memory is short since it was weighed.
    pub(super) heavy: bool,
    /// Large bodies of calls under way, and their bytes together.
    pub(super) under_way: Vec<(CallId, usize)>,
    pub(super) bodies: usize,
    /// What its event loop was last reminded of: a deadline that moves back needs no other reminder.
    pub(super) reminded: Option<Instant>,
    /// Whether that was no later than the end of its patience with a silent peer, which only moves back.
    pub(super) reminded_of_silence: bool,
}

/// What the event loop of a connection of the calling side was asked to tell about, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RequestedEvents {
    pub(super) bytes: bool,
    pub(super) room: bool,
}

/// What the event loop of a connection that serves watches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) reading: bool,
    pub(super) writing: bool,
}

impl Watch {
    /// For what comes next, with nothing left to send.
    pub(super) const REQUESTS: Self = Self { reading: true, writing: false };
}

/// A call of another thread, or of a future, that waits for its outcome. `until`: when a future's call is
/// late; threads look at their own time.
pub(super) struct PendingCall {
    pub(super) id: CallId,
    pub(super) until: Option<Instant>,
    pub(super) waiter: Waiter,
}

/// Who waits: a thread, in a slot, or a future.
pub(super) enum Waiter {
    Thread(Arc<ReplySlot>),
    Future(CallCompletion),
}

/// A call that is to begin on a thread of the pool.
pub(super) struct ApartCall {
    pub(super) incoming: Box<Incoming>,
    pub(super) servant: Arc<dyn Servant>,
    /// The number of its operation, and the records that it is in.
    pub(super) index: usize,
    pub(super) records: BlockingRecords,
}

/// A call of the peer of a connection that was made to call it: from when it came until it was handed over (`handover`), or was dropped
/// because its event loop ended.
pub(super) struct Handover {
    pub(super) connection: Weak<Connection>,
    /// What it counts in the backlog.
    pub(super) octets: usize,
}

/// What is to be done without the lock.
pub(super) enum DeferredAction {
    Complete(CallCompletion, Outcome<Body>),
    /// The same for an answer whose place is among signals: they wait until it was told.
    InOrder(CallCompletion, Outcome<Body>),
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
    /// A call that the pool has no thread for.
    Run(Job),
    /// Calls that are never begun.
    NotBegun(#[allow(dead_code)] Vec<ApartCall>),
    /// A look-up that is not remembered any more: it may be the last that holds a servant.
    Stale(#[allow(dead_code)] Box<CachedLookup>),
}

/// How serving a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServeOutcome {
    /// It was not looked at: its calls are with somebody else, and the kernel tells of what comes.
    Waits,
    /// Nothing was there.
    Nothing,
    /// Something was done; there may be more.
    Something,
    /// The connection is over.
    Over,
    /// A servant blocked, and another thread leads the shard now.
    Preempted,
}

impl Connection {
    /// An event loop is to watch it all the time, and not only while somebody waits for an answer.
    pub(crate) fn last(&self) {
        // A bell has to be asked for each time.
        self.lasting.store(self.stream.watched().1.is_none(), Ordering::Relaxed);
    }

    /// Whether an event loop watches it all the time.
    pub(super) fn is_lasting(&self) -> bool {
        self.lasting.load(Ordering::Relaxed)
    }

    /// Whether it can carry no more calls.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Whether it is watched among the strangers: it was accepted, and what came the last time had no whole message in it. Not so
    /// where a bell is watched: somebody on this machine has set that up.
    pub(crate) fn is_stranger(&self) -> bool {
        self.stranger.load(Ordering::Relaxed)
    }

    /// Whether it was accepted, not made.
    pub(crate) fn is_accepted(&self) -> bool {
        self.role == Role::Accepted
    }

    /// Whether servants answer on it.
    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.role, Role::Accepted | Role::Joined)
    }

    /// Whether a router stands between; as the session says.
    pub(crate) fn is_routed(&self) -> bool {
        self.routed.load(Ordering::Relaxed)
    }

    /// It serves behind a router, at this address.
    pub(crate) fn joins(&self, address: &str) {
        // Once, when it was made.
        let _ = self.joined.set(address.to_owned());
    }

    /// It is over: whoever served on it is told, once.
    pub(crate) fn left(&self, failure: &Failure) {
        if let Some(address) = self.joined.get()
            && !self.left.swap(true, Ordering::AcqRel)
        {
            self.node.left(self.wire, address, failure);
        }
    }

    pub(crate) fn set_registration(&self, registration: Registration) {
        // A connection is watched by one event loop for its whole life.
        let _ = self.registration.set(registration);
    }

    pub(crate) fn registration(&self) -> Option<&Registration> {
        self.registration.get()
    }
}

impl Core {
    /// Keeps a look-up for the next call.
    #[inline]
    pub(super) fn remember(&mut self, found: Box<CachedLookup>) {
        if let Some(stale) = self.remembered.replace(found) {
            self.deferred.push(DeferredAction::Stale(stale));
        }
    }

    /// Brings an outcome to whoever waits: at once into a thread's slot, for a future when the lock is free.
    /// A future's call that goes on elsewhere is begun there.
    pub(super) fn complete(&mut self, waiting: PendingCall, outcome: Outcome<Body>) {
        let after = match (waiting.waiter, outcome) {
            (Waiter::Thread(reply_slot), outcome) => return reply_slot.serve(outcome),
            (Waiter::Future(asker), Outcome::Moved(way)) if way.is_under_way() => {
                DeferredAction::GoOn(Resuming::new(asker, way, waiting.until))
            }
            (Waiter::Future(asker), outcome) => DeferredAction::Complete(asker, outcome),
        };
        self.deferred.push(after);
    }
}
