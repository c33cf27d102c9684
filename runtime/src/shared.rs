//! What connections, targets and shards share of a node: who is connected, where it serves, which event loops
//! run. `Node` is its public face; other files add `impl Shared` blocks for what they do.
//!
//! States: *made*; *serving* once `shard` has started the event loops; *draining* (`draining` is set: new
//! calls are refused); *stopped* (`stopped` is set: places are cleared, connections cut, event loops and pool
//! ended). Only `drain` and `stop` move on, and never back.
//!
//! Ownership: `Shared` is held by nodes, connections, listeners in a shard, local references and calls under
//! way. It holds its shards, which hold the connections that they watch, which hold `Shared`: `stop` cuts
//! this circle. Whatever must not keep a node alive has a `Weak`.
//!
//! Invariants: no lock of this struct is held while code of the user's runs, is dropped, or while a thread
//! connects; `links` has only connections of the calling side, at most one for each key; `places` is what
//! references are published from, and an address of a router stands there before the connection to it is
//! made; a wire's state is made once, before anything of that wire is served or called.
//!
//! Locks: `links` is held while an event loop registers a connection, so the lock of the loop's slab is
//! inside it. The lock of a connection is not taken under either of them.

use crate::builder::Builder;
use crate::connection::Connection;
use crate::directory::{Directory, Entry};
use crate::failures::{no_loop, stopped};
use crate::hooks::Hooks;
use crate::housekeeper::Housekeeper;
use crate::layer::Layers;
use crate::notice::Notice;
use crate::quotas::{self, Allowance};
use crate::reach::Addresses;
use crate::shard::{Registration, Shard};
use crate::shares::Shares;
use crate::signals::Listeners;
use crate::sync::lock;
use crate::tasks::Task;
use crate::transport::listener::Listener;
use crate::worker_pool::{Job, Pool, blocking_records};
use bytes::Bytes;
use everywire_model::reach::Publish;
use everywire_model::words::nearest;
use everywire_model::{
    BindAddress, BoxFuture, Endpoint, Failure, Initiator, Kind, Limits, Profile, ProfileOptions, Reference,
    Servant, Wire, WireState, options,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

/// The name of the profile of objects in this process.
pub(crate) const IN_PROCESS: &str = "inproc";

/// What a connection of the calling side is shared by: two objects whose profiles give the same key share a
/// connection.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    pub(crate) wire: &'static str,
    pub(crate) endpoint: Endpoint,
    pub(crate) options: ProfileOptions,
    /// See [`everywire_model::Options::scope`].
    pub(crate) scope: Bytes,
    /// The set of connections that it is of, if it is of one.
    pub(crate) apart: Option<u64>,
    /// Numbers connections to one place that carry one call at a time, from 0; 0 for all others.
    pub(crate) abreast: u8,
}

/// How often an object may point elsewhere in one call: a circle of forwards ends.
pub(crate) const FORWARDS: usize = 3;

/// What is to be tried where forwards do not end: whoever was asked answered each time.
pub(crate) const CIRCLE: &str =
    "the servers answer and send the call on, perhaps in a circle: look at what each of them forwards to";

/// Nodes of this process that in-process addresses reach, by name. An entry whose node is gone or stopped is
/// removed when the next name is taken.
static NAMED: Mutex<Vec<(String, Weak<Shared>)>> = Mutex::new(Vec::new());

/// What is shared of a node.
pub(crate) struct Shared {
    this: Weak<Self>,
    /// As whoever made the node said.
    pub(crate) builder: Builder,
    /// Of connections that begin from now on.
    limits: Mutex<Option<Limits>>,
    pub(crate) directory: Directory,
    /// What stands before the user's servants.
    pub(crate) layers: Layers,
    pub(crate) listeners: Listeners,
    pub(crate) hooks: Hooks,
    pub(crate) housekeeper: Housekeeper,
    /// Threads for operations that block.
    pub(crate) pool: Pool,
    /// Connections that this process made to call.
    pub(crate) links: Mutex<HashMap<PoolKey, Arc<Connection>>>,
    /// Event loops, started together by whoever needs the first one.
    shards: OnceLock<Vec<Arc<Shard>>>,
    /// Counts requests for an event loop: they are given in turn.
    next_shard: AtomicUsize,
    /// What peers may take, and what they hold, where an address does not say otherwise.
    pub(crate) allowance: Arc<Allowance>,
    /// What the peers of listeners with quotas of their own hold; for sums over the whole node.
    apart: Mutex<Vec<Arc<Shares>>>,
    /// Newcomers that are being told that there is no place for them.
    pub(crate) turned_away: AtomicUsize,
    /// Where this node serves, in this process too, and the address as it was given: a router is found again
    /// by it.
    pub(crate) places: Mutex<Vec<(BindAddress, String)>>,
    /// Listeners with the addresses that they were opened by, or renewed by last.
    pub(crate) open: Mutex<Vec<(String, Weak<Listener>)>>,
    /// Where others reach these places.
    pub(crate) addresses: Addresses,
    /// What stands by for every object, by the names of the wires that are served here or called on.
    pub(crate) wire_state: RwLock<BTreeMap<&'static str, WireDefaults>>,
    /// Connections that serve and carry signals.
    audience: Mutex<Vec<Weak<Connection>>>,
    /// New calls are refused.
    pub(crate) draining: AtomicBool,
    /// Calls from within this process that go through memory, and are under way: `stop_within` waits for
    /// them.
    pub(crate) inward: AtomicUsize,
    pub(crate) stopped: AtomicBool,
    /// Told when it is.
    pub(crate) end: OnceLock<()>,
}

/// What stands by for every object on a wire.
pub(crate) struct WireDefaults {
    /// Nothing, where the wire expects nothing of everybody.
    pub(crate) wire_state: Option<Arc<dyn WireState>>,
    pub(crate) servants: Vec<Arc<dyn Servant>>,
}

impl Shared {
    pub(crate) fn new(builder: Builder) -> Arc<Self> {
        let limits = |wire: &&dyn Wire| builder.limits.clone().unwrap_or_else(|| wire.default_limits());
        let largest =
            builder.wires.iter().map(|wire| wire.largest_received(&limits(wire))).max().unwrap_or(0);
        let blocked = builder.quotas.blocked_threads;
        let allowance = Arc::new(Allowance::new(builder.quotas.clone(), largest));
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            limits: Mutex::new(builder.limits.clone()),
            directory: Directory::default(),
            layers: builder.layers.as_slice().into(),
            builder,
            listeners: Listeners::default(),
            hooks: Hooks::default(),
            housekeeper: Housekeeper::default(),
            pool: Pool::new(blocked),
            links: Mutex::default(),
            shards: OnceLock::new(),
            next_shard: AtomicUsize::new(0),
            allowance,
            apart: Mutex::default(),
            turned_away: AtomicUsize::new(0),
            places: Mutex::default(),
            open: Mutex::default(),
            addresses: Addresses::default(),
            wire_state: RwLock::default(),
            audience: Mutex::default(),
            draining: AtomicBool::new(false),
            inward: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            end: OnceLock::new(),
        })
    }

    /// `None` once the last owner is gone, while others still run their last steps.
    pub(crate) fn arc(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    /// The limits of connections of a wire.
    pub(crate) fn limits(&self, wire: &dyn Wire) -> Limits {
        let limits = lock(&self.limits).clone().unwrap_or_else(|| wire.default_limits());
        match self.builder.depth {
            Some(levels) => limits.with_depth(levels),
            None => limits,
        }
    }

    /// The largest message of connections that begin from now on; what the wire says where none is said.
    pub(crate) fn limit_messages(&self, bytes: Option<u64>) {
        *lock(&self.limits) = bytes.map(|bytes| Limits::default().with_message(bytes));
        let least = quotas::least(self.largest());
        self.shares().iter().for_each(|shares| shares.allow(least));
    }

    /// Bytes of the largest message that connections may bring that begin now.
    fn largest(&self) -> u64 {
        let each = self.builder.wires.iter().map(|wire| wire.largest_received(&self.limits(*wire)));
        each.max().unwrap_or(0)
    }

    /// The wire that reads this text.
    pub(crate) fn wire_of(&self, text: &str) -> Result<&'static dyn Wire, Failure> {
        let scheme = text.split([':', '+']).next().unwrap_or("");
        self.builder
            .wires
            .iter()
            .find(|wire| wire.schemes().iter().any(|known| known.eq_ignore_ascii_case(scheme)))
            .copied()
            .ok_or_else(|| {
                let known = self.builder.wires.iter().flat_map(|wire| wire.schemes().iter().copied());
                Failure::new(Kind::BadReference, Initiator::User, format!("`{text}` is of no known kind"))
                    .with_hint(begins_with(text, known.collect()))
            })
    }

    /// The wire of this name, if the node speaks it.
    pub(crate) fn wire_named(&self, name: &str) -> Option<&'static dyn Wire> {
        self.builder.wires.iter().find(|wire| wire.name() == name).copied()
    }

    /// The wire of the first profile that this node can use. Where there is none, the wire that keeps profiles which it does not know, if the
    /// reference has such: that one can still print it.
    pub(crate) fn wire_for(&self, reference: &Reference) -> Option<&'static dyn Wire> {
        let known = reference.profiles.iter().find_map(|profile| self.wire_named(profile.wire));
        let keeps = || self.builder.wires.iter().find(|wire| wire.keeps_unknown_profiles()).copied();
        known.or_else(|| if reference.foreign.is_empty() { None } else { keeps() })
    }

    /// Serves at an in-process address of that name.
    pub(crate) fn listen_in_process(&self, name: &str) -> Result<(), Failure> {
        let mut named = lock(&NAMED);
        // The name of a node that was stopped is free, also while somebody still holds an object of it.
        named.retain(|(_, node)| node.upgrade().is_some_and(|node| !node.stopped.load(Ordering::Acquire)));
        if named.iter().any(|(held, _)| *held == name) {
            let what = format!("`inproc://{name}` is taken in this process");
            return Err(Failure::new(Kind::Refused, Initiator::User, what));
        }
        named.push((name.to_owned(), self.weak()));
        let place = BindAddress::socket(IN_PROCESS, Endpoint::InProcess { name: name.to_owned() });
        lock(&self.places).push((place, String::new()));
        Ok(())
    }

    /// Serves at an address of a wire, and returns the place as it was bound (a port of 0 is replaced). The
    /// options that are no wire's, `publish` and quotas, are taken out of the address first.
    ///
    /// # Errors
    /// The address is wrong or taken, an option does not fit, or no event loop can be started.
    pub(crate) fn serve_at(&self, wire: &'static dyn Wire, address: &str) -> Result<BindAddress, Failure> {
        let node = self.arc().ok_or_else(stopped)?;
        self.stand_by(wire);
        let (place, own, publish) = self.place_at(wire, address)?;
        match place {
            BindAddress::Listen(profile) => {
                let allowance = own.map_or_else(|| Arc::clone(&self.allowance), Arc::new);
                let listener = Arc::new(Listener::bind(wire, profile, allowance)?);
                if !Arc::ptr_eq(&listener.allowance.shares, &self.allowance.shares) {
                    lock(&self.apart).push(Arc::clone(&listener.allowance.shares));
                }
                self.take_descriptors();
                let place = BindAddress::Listen(listener.terms().profile.clone());
                self.addresses.say(listening(&place), publish);
                lock(&self.open).push((address.to_owned(), Arc::downgrade(&listener)));
                self.shard().and_then(|shard| shard.listen(listener, node)).map_err(no_loop)?;
                lock(&self.places).push((place.clone(), address.to_owned()));
                Ok(place)
            }
            place @ BindAddress::Join(_) => {
                // First the place: whoever finds the router gone again looks whether this node is meant to be there.
                lock(&self.places).push((place.clone(), address.to_owned()));
                let granted = self
                    .join(wire, place.profile(), address)
                    .inspect_err(|_| lock(&self.places).retain(|(held, _)| *held != place))?;
                // The router may have given this node another name than was asked for: others call it by that.
                self.moved(Some(&place), address, granted.clone());
                Ok(granted)
            }
        }
    }

    /// What an address says: where to serve, what peers may take there if that is not what they may take of the node, and where others
    /// reach it.
    pub(crate) fn place_at(
        &self,
        wire: &'static dyn Wire,
        address: &str,
    ) -> Result<(BindAddress, Option<Allowance>, Option<Publish>), Failure> {
        let (plain, publish) = Publish::take(address)?;
        let (plain, own) = self.allowance.of_address(&plain, self.largest())?;
        let place = wire.listen(&plain)?;
        if let Some(publish) = &publish {
            publish.check(address, listening(&place))?;
        }
        if own.is_some() && matches!(place, BindAddress::Join(_)) {
            let why = "nobody connects to this process there, so there are no peers to have quotas";
            return Err(options::wrong(address, why));
        }
        Ok((place, own, publish))
    }

    /// What all peers hold: that of the node, and that of the addresses that have quotas of their own.
    pub(crate) fn shares(&self) -> Vec<Arc<Shares>> {
        let mut all = vec![Arc::clone(&self.allowance.shares)];
        all.extend(lock(&self.apart).iter().cloned());
        all
    }

    /// A reference to an object of this node, at all addresses where it serves now: profiles of each wire in
    /// the order of the node's wires, in-process addresses last. Without any, a reference without profiles.
    pub(crate) fn publish(&self, type_id: &str, key: &[u8]) -> Reference {
        let mut reference = Reference { type_id: type_id.to_owned(), ..Reference::default() };
        for wire in &self.builder.wires {
            let own = self.places_of(wire.name());
            if !own.is_empty() {
                let mut published = wire.publish(type_id, &self.addresses.published(&own), key);
                self.addresses.mark(&own, &mut published);
                reference.profiles.extend(published.profiles);
                reference.foreign.extend(published.foreign);
            }
        }
        for place in self.places_of(IN_PROCESS) {
            let key = Bytes::copy_from_slice(key);
            reference.profiles.push(Profile { version: (1, 0), key, ..place.profile().clone() });
        }
        reference
    }

    /// Where this node serves on a wire.
    pub(crate) fn places_of(&self, wire: &str) -> Vec<BindAddress> {
        let places = lock(&self.places);
        places.iter().map(|(place, _)| place).filter(|place| place.profile().wire == wire).cloned().collect()
    }

    /// Serves an interface of an object of the user's, behind the layers of this node.
    pub(crate) fn export(&self, key: &Bytes, entry: Entry) {
        self.insert(key, entry.behind(&self.layers));
    }

    /// Serves an interface of an object.
    pub(crate) fn insert(&self, key: &Bytes, entry: Entry) {
        let servant = Arc::clone(&entry.servant);
        self.directory.insert(key.clone(), entry);
        // Peers may call it back over connections that nobody has read until now.
        self.await_all_callbacks();
        self.wire_states().iter().for_each(|wire_state| wire_state.exported(key, &servant));
    }

    /// Other keys are answered for by how they begin: wires that remember whom they are for look anew.
    pub(crate) fn prefixes_changed(&self) {
        self.wire_states().iter().for_each(|wire_state| wire_state.prefixes_changed());
    }

    /// Serves the key no longer. Returns whether it was served.
    pub(crate) fn withdraw(&self, key: &[u8]) -> bool {
        let removed = self.directory.remove(key);
        let was_served = !removed.is_empty();
        self.withdrawn(key, removed);
        if was_served {
            self.hooks.ended(key);
        }
        was_served
    }

    /// Serves one interface of an object no longer, and the object itself if that was its last. Returns whether it was served.
    pub(crate) fn withdraw_interface(&self, key: &[u8], id: &str) -> bool {
        let Some(removed) = self.directory.remove_interface(key, id) else { return false };
        self.withdrawn(key, vec![removed]);
        if self.directory.get(key).is_empty() {
            self.hooks.ended(key);
        }
        true
    }

    /// Tells the wires. Servants end here, before it is told that they did.
    fn withdrawn(&self, key: &[u8], removed: Vec<Entry>) {
        for wire_state in self.wire_states() {
            removed.iter().for_each(|entry| wire_state.withdrawn(key, entry.servant.interface()));
        }
    }

    /// Gives a connection of the calling side a place in an event loop, so that futures and listeners can
    /// wait on it. Once for its life.
    pub(crate) fn register(&self, connection: &Arc<Connection>) -> Result<(), Failure> {
        if connection.registration().is_some() {
            return Ok(());
        }
        // One at a time: a connection is registered once.
        // The lock of `links` stands for "one at a time" here; nothing of the map is touched.
        let _links = lock(&self.links);
        if connection.registration().is_none() {
            self.shard().and_then(|shard| shard.reserve(connection)).map_err(no_loop)?;
        }
        Ok(())
    }

    /// Runs a future on this thread until it first has to wait; then on an event loop.
    pub(crate) fn spawn(&self, task: BoxFuture<'static, ()>, registration: Option<&Registration>) {
        // Without an event loop the future is dropped, and with it its request, which answers with a failure.
        if let Some(shard) = self.shard_of(registration) {
            Task::start(task, &shard);
        }
    }

    /// Runs a future on an event loop: on that of a connection, if it has one.
    pub(crate) fn queue(&self, task: BoxFuture<'static, ()>, registration: Option<&Registration>) {
        if let Some(shard) = self.shard_of(registration) {
            Task::queue(task, &shard);
        }
    }

    fn shard_of(&self, registration: Option<&Registration>) -> Option<Arc<Shard>> {
        registration.and_then(Registration::shard).or_else(|| self.shard().ok().cloned())
    }

    /// Does something that may block, on a thread of the pool; on this one, if there is none.
    pub(crate) fn apart(&self, run: Box<dyn FnOnce() + Send>) {
        let run = Box::new(move || {
            run();
            true
        });
        if let Err(job) = self.pool.run(Job { run, records: blocking_records(0), index: 0 }) {
            (job.run)();
        }
    }

    /// The next event loop in turn; starts them all at the first time.
    pub(crate) fn shard(&self) -> std::io::Result<&Arc<Shard>> {
        if self.shards.get().is_none() {
            let mut made = Vec::with_capacity(self.builder.shards);
            let stop = |shards: &[Arc<Shard>], why| {
                let why = Failure::new(Kind::Cancelled, Initiator::Here, why);
                shards.iter().for_each(|shard| shard.stop(&why));
            };
            for _ in 0..self.builder.shards {
                match Shard::start(self.builder.latency, self.allowance.quotas.blocked_threads) {
                    Ok(shard) => made.push(shard),
                    Err(error) => {
                        stop(&made, "an event loop could not be started");
                        return Err(error);
                    }
                }
            }
            if let Err(late) = self.shards.set(made) {
                stop(&late, "another thread started the event loops");
            }
        }
        let shards = self.shards();
        let turn = self.next_shard.fetch_add(1, Ordering::Relaxed);
        shards.get(turn % shards.len().max(1)).ok_or_else(|| std::io::Error::other("no event loop"))
    }

    /// The event loops that run.
    pub(crate) fn shards(&self) -> &[Arc<Shard>] {
        self.shards.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// A connection that serves and carries signals is ready for them.
    pub(crate) fn join_audience(&self, connection: &Arc<Connection>) {
        let mut audience = lock(&self.audience);
        audience.retain(|held| held.strong_count() > 0);
        if !audience.iter().any(|held| held.as_ptr() == Arc::as_ptr(connection)) {
            audience.push(Arc::downgrade(connection));
        }
    }

    /// Connections that carry signals, of one wire or all.
    pub(crate) fn audience(&self, wire: Option<&str>) -> Vec<Arc<Connection>> {
        let fits =
            |held: &Arc<Connection>| !held.is_over() && wire.is_none_or(|name| held.wire.name() == name);
        // Others may end meanwhile: whatever they hold is dropped without the lock.
        let held: Vec<_> = lock(&self.audience).iter().filter_map(Weak::upgrade).collect();
        held.into_iter().filter(fits).collect()
    }

    /// Whether anybody gets notices.
    pub(crate) fn is_observed(&self) -> bool {
        self.builder.observer.is_some()
    }

    pub(crate) fn notice(&self, notice: &Notice) {
        if let Some(observer) = &self.builder.observer {
            observer(notice);
        }
    }

    /// Ends the node: wires say what they have to say, connections are cut with a goodbye, threads end.
    /// Called again by the last `Guard`; the second time there is nothing left to do. Connections of callers
    /// without an event loop live on with the objects that use them.
    pub(crate) fn stop(&self) {
        let why = Failure::new(Kind::Unreachable, Initiator::Here, "the node was stopped");
        if !self.stopped.swap(true, Ordering::AcqRel) {
            // While its connections still stand.
            self.wire_states().iter().for_each(|wire_state| wire_state.leave());
        }
        self.housekeeper.stop();
        lock(&self.places).clear();
        let links: Vec<_> = lock(&self.links).drain().map(|(_, connection)| connection).collect();
        for connection in links {
            if connection.registration().is_some() {
                connection.cut(&why);
            }
        }
        self.shards().iter().for_each(|shard| shard.stop(&why));
        self.pool.stop();
        // The second time it has one already.
        let _ = self.end.set(());
    }

    /// Whether this node is meant to serve at this address, behind a router.
    pub(crate) fn serves_behind(&self, address: &str) -> bool {
        lock(&self.places)
            .iter()
            .any(|(place, held)| matches!(place, BindAddress::Join(_)) && held == address)
    }

    /// This node serves somewhere else now at this address, where it did at that place, if one is given: the router has moved, or
    /// has given it another name.
    pub(crate) fn moved(&self, from: Option<&BindAddress>, address: &str, now: BindAddress) {
        let mut places = lock(&self.places);
        let is_meant = |place: &BindAddress| from.is_none_or(|from| from == place);
        let mut meant = places.iter_mut().filter(|(place, held)| held == address && is_meant(place));
        if let Some((place, _)) = meant.next() {
            *place = now;
        }
    }
}

/// The endpoint of a listener.
pub(crate) fn listening(place: &BindAddress) -> Option<&Endpoint> {
    match place {
        BindAddress::Listen(profile) => profile.endpoints.first(),
        BindAddress::Join(_) => None,
    }
}

/// The node of this process that serves at the in-process address of that name. It may have been stopped.
pub(crate) fn named(name: &str) -> Option<Arc<Shared>> {
    lock(&NAMED).iter().find(|(held, _)| held == name).and_then(|(_, node)| node.upgrade())
}

/// A reference to an object of this process; the key is unescaped where its text is a valid escape.
pub(crate) fn in_process(name: &str, key: &[u8]) -> Reference {
    let key =
        everywire_model::reference::unescape(&String::from_utf8_lossy(key)).unwrap_or_else(|| key.to_vec());
    let profile = Profile {
        wire: IN_PROCESS,
        version: (1, 0),
        endpoints: vec![Endpoint::InProcess { name: name.to_owned() }],
        key: key.into(),
        ..Profile::default()
    };
    Reference { profiles: vec![profile], ..Reference::default() }
}

/// What to write instead of a text that begins with none of the known schemes.
fn begins_with(text: &str, known: Vec<&str>) -> String {
    let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
    if let Some(near) = nearest(scheme, known.iter().copied()).filter(|_| !rest.is_empty()) {
        return format!("did you mean `{near}:{rest}`?");
    }
    // A host and a port.
    if rest.starts_with(|first: char| first.is_ascii_digit()) {
        let place = text.split('/').next().unwrap_or(text);
        let scheme = known.iter().find(|scheme| **scheme != "inproc").copied().unwrap_or("inproc");
        return format!(
            "say which protocol is spoken there, such as {scheme}://{text}; `everywire status {place}` finds it out"
        );
    }
    format!("a reference begins with one of {}, inproc; one in a file is @FILE", known.join(", "))
}
