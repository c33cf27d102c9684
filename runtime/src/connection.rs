//! A connection: a stream, the session it carries, and who waits for what on it.
//!
//! Everything that changes is behind one lock ([`Core`]), held for as long as it takes to move bytes between stream and
//! session, never while a servant runs or a thread sleeps.

pub(crate) mod backward;
pub(crate) mod calling;
mod company;
mod deadlines;
mod ending;
mod held;
mod listening;
mod parting;
mod reading;
mod reply_slot;
mod resuming;
mod serving;
mod turns;
mod waker;
mod weighing;

use held::{After, Held};
pub(crate) use resuming::Asker;
use resuming::Resuming;
pub(crate) use serving::{Served, flush_before_blocking};
pub(crate) use turns::Turn;
use turns::Turns;
use waker::ConnectionWaker;

use crate::builder::Notice;
use crate::directory::Remembered;
use crate::patience::{Patience, make_way};
use crate::quotas::Allowance;
use crate::registration::Registration;
use crate::shared::Shared;
use crate::signals::{EventQueue, PATIENCE, Subscriber};
use crate::sync::lock;
use crate::transport::Stream;
use crate::worker_pool::BlockingRecords;
use bytes::{Bytes, BytesMut};
use everywire_model::{Answer, Emission, Profile, Purpose};
use everywire_model::{
    Body, BoxFuture, CallId, Capabilities, Completed, Config, Endpoint, Failure, Handle, Initiator, Kind,
    LayerSide, Link, Object, Outcome, Peer, Resolver, Servant, Session, Wire,
};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How long the rest of a refused peer's bytes are read and thrown away, so that it gets to read why.
const LINGER: Duration = Duration::from_secs(5);
/// Bytes of a large message written in one go.
const PIECE: usize = 1 << 20;
/// How often a full transport is tried again, in the middle of a large message, before other connections get their turn.
const YIELDS: u32 = 8;
/// How often a lock that somebody else has is tried before this thread sleeps for it.
const ENTRIES: u32 = 16;
/// Bytes allocated for a message on the word of its header alone.
const ANNOUNCED: usize = 256 << 10;
/// Buffers above this size are given back when a connection has been quiet.
const KEEP: usize = 64 << 10;

/// Numbers connections, from 1.
static SERIAL_NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The connection whose calls this thread is serving, by address: its replies are sent in one go afterwards.
    static SERVING: Cell<usize> = const { Cell::new(0) };
}

/// This thread serves calls of the connection at this address; 0: of none.
#[inline]
fn serves(connection: usize) {
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
    this: Weak<Self>,
    stream: Stream,
    endpoint: Endpoint,
    /// Where it serves behind a router, as text.
    joined: OnceLock<String>,
    node: Arc<Shared>,
    /// What peers of its listener may take.
    allowance: Arc<Allowance>,
    wire: &'static dyn Wire,
    role: Role,
    /// Its number among the accepted connections that share the allowance; 0: it was not accepted.
    number: u64,
    /// What the wire carries.
    capabilities: Capabilities,
    /// Whether operating-system handles may come along.
    handles: bool,
    /// Whether one call at a time is carried, and whose turn it is.
    serial: bool,
    turns: Turns,
    /// Signals for listeners here.
    event_queue: Arc<EventQueue>,
    /// Whether answers are told behind the signals that came before them.
    in_order: AtomicBool,
    core: Mutex<Core>,
    /// Threads that want the lock while another looks for bytes: then that one lets go for a moment.
    contenders: AtomicUsize,
    /// Where an event loop watches it, once one does.
    registration: OnceLock<Registration>,
    /// The operation whose servant runs, or ran last: the records of its servant and its number in them, and where they are in memory.
    running: Mutex<Option<(BlockingRecords, usize)>>,
    running_at: AtomicUsize,
    /// Who answers calls that its peer makes, if that is not whoever serves their objects.
    backward: OnceLock<Arc<dyn Servant>>,
    /// Whether it is watched among the strangers; changes under the lock only.
    stranger: AtomicBool,
    /// A number that no other connection of this process has or had.
    serial_number: u64,
    /// Whether an event loop watches it all the time.
    lasting: AtomicBool,
    over: AtomicBool,
    routed: AtomicBool,
    left: AtomicBool,
    /// It is told that there is no place for it.
    turned_away: AtomicBool,
}

struct Core {
    session: Box<dyn Session>,
    input: BytesMut,
    /// Whether large messages came lately: then their buffer is kept, because a fresh one costs a page fault each 4 KiB.
    large: bool,
    handles: Vec<Handle>,
    peer: Option<Peer>,
    /// Calls of other threads and of futures.
    waiting: Vec<Waiting>,
    /// The call of the thread that reads, and what came of it while that was looking elsewhere.
    reader: Option<CallId>,
    own: Option<Outcome<Body>>,
    /// Calls of threads that are still sending them while another reads, and what came of them.
    sending: Vec<(CallId, Option<Outcome<Body>>)>,
    /// Who listens to which signals. While somebody does, the connection is always read.
    listeners: HashMap<CallId, Arc<Subscriber>>,
    /// What was overheard.
    overheard: VecDeque<Bytes>,
    /// What is to be done once the lock is free, because it runs code of others.
    after: Vec<After>,
    /// Whether a calling thread is reading; it hands the others their replies.
    reading: bool,
    /// Whether the thread that reads sleeps in its read, without the lock: then nobody else may read.
    reads_asleep: bool,
    /// Why bytes of this side got through no more while it did: it says so when it has seen to what the peer said before.
    broken: Option<io::Error>,
    /// Whether reads were told how long they may sleep.
    bounded: bool,
    /// Whether the thread that reads lets others run and then looks again: it sends what they leave unsent.
    looking: bool,
    /// Calls in a row that had the connection for themselves, until it is no longer taken for one that several threads share; 0: one
    /// thread at a time calls. Where it is shared, whoever looks for bytes does not hold the lock.
    company: u8,
    /// What the event loop was asked to tell about once (connections of the calling side only).
    armed: Armed,
    /// What the event loop watches for (connections that serve only).
    watched: Watch,
    patience: Patience,
    remembered: Option<Box<Remembered>>,
    failed: Option<Failure>,
    /// Refused: the rest is thrown away until then.
    draining: Option<Instant>,
    begun: Instant,
    used: Instant,
    served: bool,
    turned_away: bool,
    /// It waits for signals, and may be silent for ever.
    listens: bool,
    /// Bytes that the node knows it to hold.
    weight: usize,
    /// Memory is short since it was weighed.
    heavy: bool,
    /// Large bodies of calls under way, and their bytes together.
    under_way: Vec<(CallId, usize)>,
    bodies: usize,
    /// What its event loop was last reminded of: a deadline that moves back needs no other reminder.
    reminded: Option<Instant>,
    /// Whether that was no later than the end of its patience with a silent peer, which only moves back.
    reminded_of_silence: bool,
}

/// What the event loop of a connection of the calling side was asked to tell about, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Armed {
    bytes: bool,
    room: bool,
}

/// What the event loop of a connection that serves watches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watch {
    reading: bool,
    writing: bool,
}

impl Watch {
    /// For what comes next, with nothing left to send.
    const REQUESTS: Self = Self { reading: true, writing: false };
}

struct Waiting {
    id: CallId,
    until: Option<Instant>,
    waiter: Waiter,
}

enum Waiter {
    Thread(Arc<reply_slot::ReplySlot>),
    Future(Asker),
}

impl Connection {
    pub(crate) fn new(
        stream: Stream,
        profile: &Profile,
        layer: Option<&Arc<dyn LayerSide>>,
        node: Arc<Shared>,
        allowance: &Arc<Allowance>,
        wire: &'static dyn Wire,
        role: Role,
    ) -> Result<Arc<Self>, Failure> {
        let waker = Arc::<ConnectionWaker>::default();
        let endpoint =
            profile.endpoints.first().cloned().unwrap_or(Endpoint::InProcess { name: String::new() });
        let peer = stream.peer(endpoint.transport());
        let purpose = match role {
            Role::Accepted | Role::Calling => Purpose::Calls,
            Role::Joined => Purpose::Serving,
            Role::Monitoring => Purpose::Monitoring,
        };
        let config = Config {
            limits: node.limits(wire),
            peer,
            local: stream.local(endpoint.transport()),
            profile: profile.clone(),
            purpose,
            wire_state: node.wire_state(wire),
            waker: (role == Role::Accepted).then(|| waker.waker()),
        };
        let session = match layer {
            None => session_of(wire, role, &config),
            Some(side) => side.session(Box::new(move |_| session_of(wire, role, &config)))?,
        };
        let capabilities = wire.capabilities();
        let serial = session.one_at_a_time();
        let handles = capabilities.handles && matches!(endpoint, Endpoint::Unix { .. });
        let now = Instant::now();
        let number = if role == Role::Accepted { allowance.shares.number() } else { 0 };
        let core = Core {
            session,
            input: BytesMut::new(),
            large: false,
            handles: Vec::new(),
            peer: None,
            waiting: Vec::new(),
            reader: None,
            own: None,
            sending: Vec::new(),
            listeners: HashMap::new(),
            overheard: VecDeque::new(),
            after: Vec::new(),
            reading: false,
            reads_asleep: false,
            broken: None,
            bounded: false,
            looking: false,
            company: 0,
            armed: Armed::default(),
            watched: Watch::REQUESTS,
            patience: Patience::new(node.latency),
            remembered: None,
            failed: None,
            draining: None,
            begun: now,
            used: now,
            served: false,
            turned_away: false,
            listens: false,
            weight: 0,
            heavy: false,
            under_way: Vec::new(),
            bodies: 0,
            reminded: None,
            reminded_of_silence: false,
        };
        let stranger = role == Role::Accepted && stream.watched().1.is_none();
        let connection = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            stream,
            endpoint,
            joined: OnceLock::new(),
            node,
            allowance: Arc::clone(allowance),
            wire,
            role,
            number,
            capabilities,
            handles,
            serial,
            turns: Turns::default(),
            event_queue: Arc::default(),
            in_order: AtomicBool::new(false),
            core: Mutex::new(core),
            contenders: AtomicUsize::new(0),
            registration: OnceLock::new(),
            running: Mutex::default(),
            running_at: AtomicUsize::new(0),
            backward: OnceLock::new(),
            stranger: AtomicBool::new(stranger),
            serial_number: SERIAL_NUMBERS.fetch_add(1, Ordering::Relaxed),
            lasting: AtomicBool::new(false),
            over: AtomicBool::new(false),
            routed: AtomicBool::new(false),
            left: AtomicBool::new(false),
            turned_away: AtomicBool::new(false),
        });
        waker.lead_to(&connection);
        Ok(connection)
    }

    /// An event loop is to watch it all the time, and not only while somebody waits for an answer.
    pub(crate) fn last(&self) {
        // A bell has to be asked for each time.
        self.lasting.store(self.stream.watched().1.is_none(), Ordering::Relaxed);
    }

    /// Whether an event loop watches it all the time.
    fn is_lasting(&self) -> bool {
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

    /// Whether it carries one call at a time.
    pub(crate) fn one_at_a_time(&self) -> bool {
        self.serial
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

    pub(crate) fn wire(&self) -> &'static dyn Wire {
        self.wire
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

    /// Its number among the accepted connections of the node; 0: it was not accepted.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn set_registration(&self, registration: Registration) {
        // A connection is watched by one event loop for its whole life.
        let _ = self.registration.set(registration);
    }

    pub(crate) fn registration(&self) -> Option<&Registration> {
        self.registration.get()
    }

    /// Whether the calling thread serves this connection, and will send what its servant answers and emits. Not one that
    /// was preempted because its servant blocked: nobody knows when that returns.
    fn sends_later(&self) -> bool {
        SERVING.get() == std::ptr::from_ref(self).addr() && crate::shard::leads_here()
    }

    /// The lock, announcing that somebody wants it.
    #[inline(always)]
    fn enter(&self) -> Held<'_> {
        match self.core.try_lock() {
            Ok(core) => Held::new(self, core),
            Err(_) => self.enter_late(),
        }
    }

    /// Somebody has the lock, or has left it in a panic.
    #[cold]
    fn enter_late(&self) -> Held<'_> {
        self.contenders.fetch_add(1, Ordering::Relaxed);
        // Whoever has it lets go soon, and to be woken costs more than to look again.
        for _ in 0..ENTRIES {
            if !make_way() {
                break;
            }
            if let Ok(core) = self.core.try_lock() {
                self.contenders.fetch_sub(1, Ordering::Relaxed);
                return Held::new(self, core);
            }
        }
        let core = lock(&self.core);
        self.contenders.fetch_sub(1, Ordering::Relaxed);
        Held::new(self, core)
    }

    /// Sends what there is to send, as far as the transport takes it.
    fn flush(&self, core: &mut Core) -> io::Result<()> {
        let buffer = core.session.transmit();
        let mut vain = 0;
        while !buffer.is_empty() {
            match self.stream.write(buffer, PIECE) {
                Ok(n) => {
                    buffer.consume(n);
                    vain = 0;
                    if !buffer.is_empty() {
                        // A peer on this CPU takes the piece while it is in the cache.
                        make_way();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    vain += 1;
                    if vain > YIELDS || buffer.len() < PIECE / 2 || !make_way() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Core {
    /// Keeps a look-up for the next call.
    #[inline]
    fn remember(&mut self, found: Box<Remembered>) {
        if let Some(stale) = self.remembered.replace(found) {
            self.after.push(After::Stale(stale));
        }
    }

    fn complete(&mut self, waiting: Waiting, outcome: Outcome<Body>) {
        let after = match (waiting.waiter, outcome) {
            (Waiter::Thread(reply_slot), outcome) => return reply_slot.serve(outcome),
            (Waiter::Future(asker), Outcome::Moved(way)) if way.is_under_way() => {
                After::GoOn(Resuming::new(asker, way, waiting.until))
            }
            (Waiter::Future(asker), outcome) => After::Complete(asker, outcome),
        };
        self.after.push(after);
    }
}

fn session_of(wire: &dyn Wire, role: Role, config: &Config) -> Box<dyn Session> {
    if role == Role::Accepted { wire.accept(config) } else { wire.connect(config) }
}

pub(crate) fn timed_out(endpoint: &Endpoint) -> Failure {
    Failure::new(Kind::TimedOut, Initiator::User, "no reply came before the deadline")
        .with_completed(Completed::Maybe)
        .at(endpoint)
        .with_hint("raise the deadline if the operation needs more time")
}

impl Link for Connection {
    fn answer(&self, id: CallId, answer: Answer<'_>) {
        let mut core = self.enter();
        self.let_go(&mut core, id);
        // A result that does not encode has become a failure for the caller; here it is only worth a notice.
        if let Err(failure) = core.session.answer(id, answer) {
            core.after.push(After::Notice(Notice::Unanswered { failure }));
        }
        // The thread that serves this connection sends its replies when it has served all that came together.
        if !self.sends_later() {
            if let Err(error) = self.flush(&mut core) {
                let failure = self.broken(&error);
                self.fail(&mut core, failure);
            } else if !core.session.transmit().is_empty() {
                self.await_room(&mut core);
            }
            self.remind(&mut core);
            self.weigh(&mut core);
        }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.node.spawn(task, self.registration());
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.node) as Arc<dyn Resolver>
    }

    fn peer(&self) -> Option<Peer> {
        lock(&self.core).peer.clone()
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        if Self::emit(self, emission)? {
            self.await_reader(Instant::now() + PATIENCE);
        }
        Ok(())
    }

    fn serial_number(&self) -> u64 {
        self.serial_number
    }

    fn caller(&self) -> Option<Object> {
        let connection = self.this.upgrade().filter(|_| self.capabilities.callbacks_on_connection)?;
        Some(backward::object(&connection))
    }
}
