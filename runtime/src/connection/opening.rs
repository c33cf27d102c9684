//! How a connection begins: stream, layer and session are put together. Nothing is sent here; a connection
//! that was made to call is admitted next (`listening::admit`), one that was accepted is adopted by an event
//! loop (`shard`).

use super::backlog::Backlog;
use super::backward::WayBack;
use super::call_gate::CallGate;
use super::deferred_list::DeferredList;
use super::state::{Connection, Core, RequestedEvents, Role, SERIAL_NUMBERS, Watch};
use super::waker::ConnectionWaker;
use crate::quotas::Allowance;
use crate::shared::Shared;
use crate::spin_wait::SpinWait;
use crate::transport::Stream;
use bytes::BytesMut;
use everywire_model::{Config, Endpoint, Failure, LayerSide, Lease, Profile, Purpose, Session, Wire};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

impl Connection {
    /// Makes a connection over a stream that is open. `profile` is the place with one endpoint; `layer` lies
    /// between stream and wire (TLS), and makes the wire's session when its own handshake is done.
    ///
    /// # Errors
    /// The layer cannot begin, such as without a certificate.
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
        let mut config = Config {
            limits: node.limits(wire),
            peer,
            local: stream.local(endpoint.transport()),
            profile: profile.clone(),
            purpose,
            wire_state: node.wire_state(wire),
            way_back: Lease::default(),
            waker: (role == Role::Accepted).then(|| Arc::clone(&waker).into()),
        };
        let capabilities = wire.capabilities();
        let both_ways = wire.calls_both_ways(&config, role == Role::Accepted);
        // Where all connections of a wire carry calls both ways, servants ask for the caller itself.
        let way_back = (both_ways && role == Role::Accepted && !capabilities.callbacks_on_connection)
            .then(Arc::<WayBack>::default);
        config.way_back = way_back.clone().map(|way_back| Lease::new(way_back)).unwrap_or_default();
        let session = match layer {
            None => session_of(wire, role, &config),
            Some(side) => side.session(Box::new(move |_| session_of(wire, role, &config)))?,
        };
        let serial = session.one_at_a_time();
        // Descriptors travel over Unix sockets alone, and only for wires that know what to do with them.
        let handles = capabilities.handles && matches!(endpoint, Endpoint::Unix { .. });
        let now = Instant::now();
        let number = if role == Role::Accepted { allowance.shares.number() } else { 0 };
        let core = Core {
            session,
            input: BytesMut::new(),
            came: 0,
            expected: 0,
            large: false,
            handles: Vec::new(),
            peer: None,
            waiting: Vec::new(),
            reader: None,
            own: None,
            sending: Vec::new(),
            listeners: HashMap::new(),
            overheard: VecDeque::new(),
            deferred: DeferredList::default(),
            reading: false,
            pumping: false,
            reads_asleep: false,
            broken: None,
            bounded: false,
            looking: false,
            company: 0,
            armed: RequestedEvents::default(),
            watched: Watch::REQUESTS,
            turn_queued: false,
            spin_wait: SpinWait::new(node.builder.latency),
            remembered: None,
            in_turn: VecDeque::new(),
            apart: 0,
            queued: VecDeque::new(),
            jobs: 0,
            parked: Vec::new(),
            hands_over: false,
            hears_end: Vec::new(),
            called: VecDeque::new(),
            unread: 0,
            unread_since: None,
            held_back: Vec::new(),
            failed: None,
            draining: None,
            parting: None,
            begun: now,
            anew: None,
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
        // A bell of shared memory is watched in the first set: its peer is a process of this machine.
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
            both_ways,
            handles,
            serial,
            turns: CallGate::default(),
            event_queue: Arc::default(),
            in_order: AtomicBool::new(false),
            backlog: Backlog::default(),
            core: Mutex::new(core),
            contenders: AtomicUsize::new(0),
            registration: OnceLock::new(),
            running: Mutex::default(),
            running_at: AtomicUsize::new(0),
            backward: OnceLock::new(),
            stranger: AtomicBool::new(stranger),
            serial_number: SERIAL_NUMBERS.fetch_add(1, Ordering::Relaxed),
            lasting: AtomicBool::new(false),
            holds_bodies: AtomicBool::new(false),
            over: AtomicBool::new(false),
            routed: AtomicBool::new(false),
            left: AtomicBool::new(false),
            turned_away: AtomicBool::new(false),
            private: OnceLock::new(),
        });
        waker.lead_to(&connection);
        if let Some(way_back) = way_back {
            way_back.lead_to(&connection);
        }
        Ok(connection)
    }
}

fn session_of(wire: &dyn Wire, role: Role, config: &Config) -> Box<dyn Session> {
    if role == Role::Accepted { wire.accept(config) } else { wire.connect(config) }
}
