//! A node: a process's place among others. It listens, exports servants, and connects to objects.

use crate::connection::Connection;
use crate::directory::{Directory, Entry};
use crate::patience::Latency;
use crate::quotas::Quotas;
use crate::shard::{Seat, Shard};
use crate::sync::lock;
use crate::target::Remote;
use crate::tasks::Task;
use crate::transport::Stream;
use crate::transport::listener::Listener;
use bytes::Bytes;
use everywire_model::object::Remote as RemoteTrait;
use everywire_model::{
    BoxFuture, Endpoint, Failure, Initiator, Kind, Limits, Object, Profile, Ref, Reference, Resolver,
    Servant, Violation, Wire,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::any::Any;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// The name of the profile of objects in this process.
const IN_PROCESS: &str = "inproc";

/// Nodes of this process that in-process addresses reach.
static NAMED: Mutex<Vec<(String, Weak<Shared>)>> = Mutex::new(Vec::new());

/// Something worth telling about a peer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// A connection was accepted.
    Accepted {
        /// Who.
        peer: String,
    },
    /// A connection was closed because a quota was reached.
    Refused {
        /// Who.
        peer: String,
        /// Which quota, and how to raise it.
        why: String,
    },
    /// A peer broke the protocol; its connection ends.
    Violation {
        /// Who.
        peer: String,
        /// How.
        violation: Violation,
    },
    /// A servant's answer could not be sent as it was.
    Unanswered {
        /// Why.
        failure: Failure,
    },
    /// Accepting failed for want of something; it goes on by itself.
    Starved {
        /// Of what.
        why: String,
    },
}

/// Gets notices, on the runtime's threads: it must not block.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// How a node is made.
#[derive(Clone)]
pub struct Builder {
    wires: Vec<&'static dyn Wire>,
    latency: Latency,
    limits: Option<Limits>,
    quotas: Quotas,
    deadline: Option<Duration>,
    shards: usize,
    observer: Option<Observer>,
}

impl Builder {
    /// A builder for a node that speaks these wires; `everywire::Node::builder` knows all of them.
    pub fn new(wires: &[&'static dyn Wire]) -> Self {
        Self {
            wires: wires.to_vec(),
            latency: Latency::Default,
            limits: None,
            quotas: Quotas::default(),
            deadline: Some(Duration::from_secs(30)),
            shards: std::thread::available_parallelism().map_or(1, usize::from),
            observer: None,
        }
    }

    /// How eagerly to wait for bytes.
    #[must_use]
    pub fn latency(mut self, latency: Latency) -> Self {
        self.latency = latency;
        self
    }

    /// Limits of each connection; by default those of the wire.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// The largest message, in bytes (4 MiB unless raised).
    #[must_use]
    pub fn max_message(self, bytes: u64) -> Self {
        let limits = self.limits.clone().unwrap_or_default().with_message(bytes);
        self.limits(limits)
    }

    /// What peers may hold of this process.
    #[must_use]
    pub fn quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// The time limit of each call, 30 s unless set; `None` waits for ever.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Event loops, one a CPU unless set.
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards.max(1);
        self
    }

    /// Who gets notices.
    #[must_use]
    pub fn observer(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The node. Nothing is started yet: event loops begin with the first listener or asynchronous call.
    pub fn build(self) -> Node {
        let shared = Arc::new_cyclic(|this| Shared {
            this: Weak::clone(this),
            limits: self.limits.unwrap_or_default(),
            wires: self.wires,
            latency: self.latency,
            quotas: self.quotas,
            deadline: self.deadline,
            shard_count: self.shards,
            observer: self.observer,
            directory: Directory::default(),
            links: Mutex::default(),
            shards: OnceLock::new(),
            next_shard: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            endpoints: Mutex::default(),
        });
        Node { guard: Arc::new(Guard { shared }) }
    }
}

/// A process's place among others. Clones are the same node; when the last is dropped, it stops listening and its
/// connections end (typed references keep working as callers).
#[derive(Clone)]
pub struct Node {
    guard: Arc<Guard>,
}

struct Guard {
    shared: Arc<Shared>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.stop();
        // Servants may hold references that hold this node.
        self.shared.directory.clear();
    }
}

/// What connections, targets and shards share of a node.
pub(crate) struct Shared {
    this: Weak<Shared>,
    wires: Vec<&'static dyn Wire>,
    pub(crate) latency: Latency,
    pub(crate) limits: Limits,
    pub(crate) quotas: Quotas,
    deadline: Option<Duration>,
    shard_count: usize,
    observer: Option<Observer>,
    pub(crate) directory: Directory,
    links: Mutex<HashMap<(&'static str, Endpoint), Arc<Connection>>>,
    shards: OnceLock<Vec<Arc<Shard>>>,
    next_shard: AtomicUsize,
    accepted: AtomicUsize,
    /// Where this node listens, on which wire.
    endpoints: Mutex<Vec<(&'static str, Endpoint)>>,
}

impl Node {
    /// A builder for a node that speaks these wires.
    pub fn builder(wires: &[&'static dyn Wire]) -> Builder {
        Builder::new(wires)
    }

    /// Listens at a friendly address of any wire, such as `SCHEME://127.0.0.1:0`, `SCHEME+unix:///run/app.sock`,
    /// `SCHEME+shm:///run/app.shm` or `inproc://name`, and returns it with the port that was bound.
    pub fn listen(&self, address: &str) -> Result<String, Failure> {
        let shared = &self.guard.shared;
        if let Some(name) = address.strip_prefix("inproc://") {
            let name = name.trim_end_matches('/').to_owned();
            let mut named = lock(&NAMED);
            named.retain(|(_, node)| node.strong_count() > 0);
            if named.iter().any(|(held, _)| *held == name) {
                return Err(Failure::new(
                    Kind::Refused,
                    Initiator::User,
                    format!("`inproc://{name}` is taken in this process"),
                ));
            }
            named.push((name.clone(), Arc::downgrade(shared)));
            lock(&shared.endpoints).push((IN_PROCESS, Endpoint::InProcess { name: name.clone() }));
            return Ok(format!("inproc://{name}/"));
        }
        let wire = shared.wire_of(address)?;
        let listener = Arc::new(Listener::bind(&wire.listen(address)?)?);
        raise_descriptor_limit();
        let endpoint = listener.endpoint().clone();
        shared.shard().and_then(|shard| shard.listen(Arc::clone(&listener), Arc::clone(shared))).map_err(
            |error| {
                Failure::new(Kind::Internal, Initiator::Here, format!("cannot serve {endpoint}: {error}"))
            },
        )?;
        lock(&shared.endpoints).push((wire.name(), endpoint.clone()));
        Ok(wire.print_friendly(&wire.publish("", &[endpoint], b"")))
    }

    /// Serves a typed servant under a key. Without listeners it can be reached by callers of this process only.
    pub fn export<I: RemoteTrait + ?Sized>(&self, key: impl AsRef<[u8]>, servant: Arc<I>) -> Ref<I> {
        let key = Bytes::copy_from_slice(key.as_ref());
        let skeleton = I::skeleton(Arc::clone(&servant));
        let local: Arc<dyn Any + Send + Sync> = Arc::new(Arc::clone(&servant));
        let type_id = I::interface().id.clone();
        self.guard.shared.directory.insert(key.clone(), Entry { servant: skeleton, local: Some(local) });
        Ref::local(servant, self.guard.shared.publish(&type_id, &key))
    }

    /// Serves a typed servant under a fresh key: for callbacks.
    pub fn export_anonymous<I: RemoteTrait + ?Sized>(&self, servant: Arc<I>) -> Ref<I> {
        self.export(self.guard.shared.directory.fresh_key(), servant)
    }

    /// Serves an untyped servant under a key.
    pub fn export_servant(&self, key: impl AsRef<[u8]>, servant: Arc<dyn Servant>) -> Reference {
        let key = Bytes::copy_from_slice(key.as_ref());
        let type_id = servant.interface().id.clone();
        self.guard.shared.directory.insert(key.clone(), Entry { servant, local: None });
        self.guard.shared.publish(&type_id, &key)
    }

    /// Serves the key no longer. Returns whether it was served.
    pub fn withdraw(&self, key: impl AsRef<[u8]>) -> bool {
        self.guard.shared.directory.remove(key.as_ref())
    }

    /// The keys that are served, with the identity of each object's interface.
    pub fn exported(&self) -> Vec<(Bytes, String)> {
        let directory = &self.guard.shared.directory;
        directory
            .keys()
            .into_iter()
            .filter_map(|key| {
                directory.get(&key).map(|entry| (key, entry.servant.interface().id.to_string()))
            })
            .collect()
    }

    /// The reference of an object that is served under a key, at all addresses this node listens on now.
    pub fn reference(&self, key: impl AsRef<[u8]>) -> Option<Reference> {
        let shared = &self.guard.shared;
        let entry = shared.directory.get(key.as_ref())?;
        Some(shared.publish(&entry.servant.interface().id, key.as_ref()))
    }

    /// A typed reference to an object, from text in any notation of any wire. Connects at the first call.
    pub fn connect<I: RemoteTrait + ?Sized>(&self, text: &str) -> Result<Ref<I>, Failure> {
        Ref::resolve(&*self.guard.shared, self.parse(text)?)
    }

    /// An untyped object, from text in any notation of any wire.
    pub fn object(&self, text: &str) -> Result<Object, Failure> {
        self.guard.shared.resolve(&self.parse(text)?)
    }

    /// The object behind a reference that came as data.
    pub fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        self.guard.shared.resolve(reference)
    }

    /// The typed object behind a reference that came as data.
    pub fn narrow<I: RemoteTrait + ?Sized>(&self, reference: Reference) -> Result<Ref<I>, Failure> {
        Ref::resolve(&*self.guard.shared, reference)
    }

    /// Reads a reference in any notation of any wire.
    pub fn parse(&self, text: &str) -> Result<Reference, Failure> {
        if let Some(rest) = text.strip_prefix("inproc://") {
            let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
            return Ok(in_process(name, key.as_bytes()));
        }
        self.guard.shared.wire_of(text)?.parse(text)
    }

    /// Writes a reference in the notation that foreign programs read.
    pub fn print(&self, reference: &Reference) -> String {
        match self.guard.shared.wire_for(reference) {
            Some(wire) => wire.print(reference),
            None => self.print_friendly(reference),
        }
    }

    /// Writes a reference in the friendly notation.
    pub fn print_friendly(&self, reference: &Reference) -> String {
        match (self.guard.shared.wire_for(reference), reference.profiles.first()) {
            (Some(wire), _) => wire.print_friendly(reference),
            (None, Some(Profile { endpoints, key, .. })) => match endpoints.first() {
                Some(Endpoint::InProcess { name }) => {
                    format!("inproc://{name}/{}", everywire_model::reference::escape(key))
                }
                _ => String::from("(a reference without an address)"),
            },
            (None, None) => String::from("(a reference without an address)"),
        }
    }

    /// Connections that were accepted and are open.
    pub fn connections(&self) -> usize {
        self.guard.shared.accepted_now()
    }

    /// Stops listening and ends all connections.
    pub fn stop(&self) {
        self.guard.shared.stop();
    }
}

impl Shared {
    fn arc(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    /// The wire that reads this text.
    fn wire_of(&self, text: &str) -> Result<&'static dyn Wire, Failure> {
        let scheme = text.split([':', '+']).next().unwrap_or("");
        self.wires
            .iter()
            .find(|wire| wire.schemes().iter().any(|known| known.eq_ignore_ascii_case(scheme)))
            .copied()
            .ok_or_else(|| {
                let known: Vec<_> =
                    self.wires.iter().flat_map(|wire| wire.schemes().iter().copied()).collect();
                Failure::new(Kind::BadReference, Initiator::User, format!("`{text}` is of no known kind"))
                    .with_hint(format!("a reference begins with one of {}, inproc", known.join(", ")))
            })
    }

    fn wire_named(&self, name: &str) -> Option<&'static dyn Wire> {
        self.wires.iter().find(|wire| wire.name() == name).copied()
    }

    fn wire_for(&self, reference: &Reference) -> Option<&'static dyn Wire> {
        reference.profiles.iter().find_map(|profile| self.wire_named(profile.wire))
    }

    /// A reference to an object of this node, at all addresses it listens on.
    fn publish(&self, type_id: &str, key: &[u8]) -> Reference {
        let endpoints = lock(&self.endpoints).clone();
        let mut reference = Reference { type_id: type_id.to_owned(), ..Reference::default() };
        for wire in &self.wires {
            let own: Vec<Endpoint> =
                endpoints.iter().filter(|(name, _)| *name == wire.name()).map(|(_, e)| e.clone()).collect();
            if !own.is_empty() {
                let published = wire.publish(type_id, &own, key);
                reference.profiles.extend(published.profiles);
                reference.foreign.extend(published.foreign);
            }
        }
        for (_, endpoint) in &endpoints {
            if let Endpoint::InProcess { name } = endpoint {
                reference.profiles.extend(in_process(name, key).profiles);
            }
        }
        reference
    }

    /// The connection to an endpoint; one is shared by all objects there.
    pub(crate) fn connection(
        &self,
        wire: &'static str,
        endpoint: &Endpoint,
        until: Option<Instant>,
    ) -> Result<Arc<Connection>, Failure> {
        let place = (wire, endpoint.clone());
        if let Some(held) = lock(&self.links).get(&place)
            && !held.is_over()
        {
            return Ok(Arc::clone(held));
        }
        let entry = self.wire_named(wire).ok_or_else(|| {
            Failure::new(
                Kind::Unreachable,
                Initiator::User,
                format!("nothing in this process answers at {endpoint}"),
            )
        })?;
        let within =
            until.map_or(Duration::from_secs(30), |until| until.saturating_duration_since(Instant::now()));
        let stream = Stream::connect(endpoint, within.max(Duration::from_millis(1)))?;
        let node = self
            .arc()
            .ok_or_else(|| Failure::new(Kind::Cancelled, Initiator::User, "the node was stopped"))?;
        let made = Connection::new(stream, endpoint.clone(), node, entry, false);
        let mut links = lock(&self.links);
        links.retain(|_, connection| !connection.is_over());
        // Another thread may have been faster: then both use its connection.
        Ok(Arc::clone(links.entry(place).or_insert(made)))
    }

    /// Gives a connection of the calling side an event loop, so that futures can wait on it.
    pub(crate) fn seat(&self, connection: &Arc<Connection>) -> Result<(), Failure> {
        if connection.seat().is_some() {
            return Ok(());
        }
        let failed = |error| {
            Failure::new(Kind::Internal, Initiator::Here, format!("cannot start an event loop: {error}"))
        };
        // One at a time: a connection has one seat.
        let _links = lock(&self.links);
        if connection.seat().is_none() {
            self.shard().and_then(|shard| shard.reserve(connection)).map_err(failed)?;
        }
        Ok(())
    }

    /// Runs a future on an event loop.
    pub(crate) fn spawn(&self, task: BoxFuture<'static, ()>, seat: Option<&Seat>) {
        // Without an event loop the future is dropped, and with it its request, which answers with a failure.
        if let Some(shard) = seat.and_then(Seat::shard).or_else(|| self.shard().ok().cloned()) {
            Task::start(task, &shard);
        }
    }

    /// The next event loop in turn; starts them all at the first time.
    fn shard(&self) -> std::io::Result<&Arc<Shard>> {
        if self.shards.get().is_none() {
            let mut made = Vec::with_capacity(self.shard_count);
            for _ in 0..self.shard_count {
                made.push(Shard::start(self.latency, self.quotas.blocked_threads)?);
            }
            if let Err(late) = self.shards.set(made) {
                let why =
                    Failure::new(Kind::Cancelled, Initiator::Here, "another thread started the event loops");
                late.iter().for_each(|shard| shard.stop(&why));
            }
        }
        let shards = self.shards.get().map(Vec::as_slice).unwrap_or_default();
        let turn = self.next_shard.fetch_add(1, Ordering::Relaxed);
        shards.get(turn % shards.len().max(1)).ok_or_else(|| std::io::Error::other("no event loop"))
    }

    /// Accepts what waits at a listener. No single failure ends it.
    pub(crate) fn accept(&self, listener: &Listener) {
        let Some(wire) = self.wire_at(listener.endpoint()) else { return };
        for _ in 0..64 {
            let stream = match listener.accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) =>
                {
                    continue;
                }
                Err(error) => {
                    self.notice(&Notice::Starved {
                        why: format!("accepting at {}: {error}", listener.endpoint()),
                    });
                    // Out of descriptors or memory. The listener stays readable: give others a moment to let go.
                    self.make_room();
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
            };
            let peer = stream.peer(listener.endpoint().transport()).text;
            if self.accepted.fetch_add(1, Ordering::Relaxed) >= self.quotas.connections {
                let now = self.accepted_now();
                self.accepted.store(now + 1, Ordering::Relaxed);
                if now >= self.quotas.connections && !self.make_room() {
                    self.accepted.fetch_sub(1, Ordering::Relaxed);
                    let why = format!(
                        "{now} connections are open, the quota `connections`; raise it if they are wanted"
                    );
                    self.notice(&Notice::Refused { peer, why });
                    continue;
                }
            }
            let Some(node) = self.arc() else { return };
            let connection = Connection::new(stream, listener.endpoint().clone(), node, wire, true);
            let seated = self.shard().and_then(|shard| shard.adopt(&connection));
            match seated {
                Ok(()) => {
                    if let Some(seat) = connection.seat() {
                        seat.remind(Instant::now() + self.quotas.first_message);
                    }
                    self.notice(&Notice::Accepted { peer });
                }
                Err(error) => {
                    self.notice(&Notice::Starved { why: format!("watching a connection: {error}") })
                }
            }
        }
    }

    fn wire_at(&self, endpoint: &Endpoint) -> Option<&'static dyn Wire> {
        let endpoints = lock(&self.endpoints);
        match endpoints.iter().find(|(_, held)| held == endpoint) {
            Some((name, _)) => self.wire_named(name),
            // Somebody connected before `listen` had returned.
            None => self.wires.first().copied(),
        }
    }

    fn accepted_now(&self) -> usize {
        self.shards.get().map_or(0, |shards| {
            shards
                .iter()
                .flat_map(|shard| shard.connections())
                .filter(|c| c.is_accepted() && !c.is_over())
                .count()
        })
    }

    /// Ends the oldest connection that has not sent a whole message yet.
    fn make_room(&self) -> bool {
        let Some(shards) = self.shards.get() else { return false };
        let oldest = shards
            .iter()
            .flat_map(|shard| shard.connections())
            .filter(|connection| !connection.is_over() && connection.is_half_open())
            .min_by_key(|connection| connection.begun());
        let Some(oldest) = oldest else { return false };
        oldest.cut(&Failure::new(Kind::Busy, Initiator::Here, "made room for another connection"));
        if let Some(shard) = oldest.seat().and_then(Seat::shard) {
            shard.forget(&oldest);
        }
        true
    }

    pub(crate) fn notice(&self, notice: &Notice) {
        if let Some(observer) = &self.observer {
            observer(notice);
        }
    }

    fn stop(&self) {
        let why = Failure::new(Kind::Unreachable, Initiator::Here, "the node was stopped");
        lock(&self.endpoints).clear();
        let links: Vec<_> = lock(&self.links).drain().map(|(_, connection)| connection).collect();
        for connection in links {
            if connection.seat().is_some() {
                connection.cut(&why);
            }
        }
        if let Some(shards) = self.shards.get() {
            shards.iter().for_each(|shard| shard.stop(&why));
        }
    }
}

impl Resolver for Shared {
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        let node = self
            .arc()
            .ok_or_else(|| Failure::new(Kind::Cancelled, Initiator::User, "the node was stopped"))?;
        Ok(Object::new(Arc::new(Remote::new(node, reference.clone(), self.deadline))))
    }

    fn local(&self, reference: &Reference) -> Option<Arc<dyn Any + Send + Sync>> {
        for profile in &reference.profiles {
            for endpoint in &profile.endpoints {
                if let Endpoint::InProcess { name } = endpoint {
                    let node = lock(&NAMED)
                        .iter()
                        .find(|(held, _)| held == name)
                        .and_then(|(_, node)| node.upgrade());
                    if let Some(local) =
                        node.and_then(|node| node.directory.get(&profile.key)).and_then(|e| e.local)
                    {
                        return Some(local);
                    }
                } else if lock(&self.endpoints)
                    .iter()
                    .any(|(wire, own)| *wire == profile.wire && own == endpoint)
                    && let Some(entry) = self.directory.get(&profile.key)
                {
                    return entry.local;
                }
            }
        }
        None
    }
}

fn in_process(name: &str, key: &[u8]) -> Reference {
    let key =
        everywire_model::reference::unescape(&String::from_utf8_lossy(key)).unwrap_or_else(|| key.to_vec());
    Reference {
        type_id: String::new(),
        profiles: vec![Profile {
            wire: IN_PROCESS,
            version: (1, 0),
            endpoints: vec![Endpoint::InProcess { name: name.to_owned() }],
            key: key.into(),
            components: Vec::new(),
        }],
        foreign: Vec::new(),
    }
}

/// A server holds a descriptor for each connection: take all the system allows.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        // Refused: then fewer connections fit, and the quota tells.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
