//! What a node exports and imports: OXID, OIDs, IPIDs, reference counts, pings (MS-DCOM 3.1, 3.2).
//!
//! * Exports ([`Exporter::export`], [`Exporter::served`]): each marshalled object has an OID, each of its interfaces an IPID and
//!   counts. An object that nobody refers to, or whose holders are silent for three ping periods, leaves the tables; if it was
//!   made for the wire (by activation, by [`Exporter::serve`]), it is served no longer.
//! * Imports ([`Exporter::adopt`]): each object elsewhere has one [`Proxy`], the lease of all references to it.
//! * The keeper ([`WireState::tend`]) pings, runs down, and gives back references that no call carried away.
//!
//! Locks are private to the parts, and none is held while code of others runs: servants, [`Objects`], drops of leases.
//! `exports`, `sets` and `imports` say in which order theirs are taken.

mod activating;
mod associations;
mod classes;
mod clock;
mod correspondence;
mod exports;
mod imports;
mod leaving;
mod marshalling;
mod passing;
mod pinger;
mod places;
pub(crate) mod raw;
mod sets;

pub use correspondence::Correspondence;
pub use exports::Served;
pub use imports::{Proxy, RemoteOxid, TAG_RESOLVER};
pub use marshalling::Hold;
pub(crate) use marshalling::exposed;
pub(crate) use passing::{Adopted, SEPARATOR, TAG_PASSED};

use crate::bindings::DualStringArray;
use crate::resolver::{ComplexPing, Resolved};
use crate::security::{Level, Security};
use crate::standard::{self, points};
use crate::{IUNKNOWN, VERSION, iid_of, opnum_base};
use associations::Associations;
use bytes::Bytes;
use classes::Running;
use clock::Clock;
use everywire_model::signal::{Backlog, Listener};
use everywire_model::{
    Emission, Failure, Initiator, Interface, InterfaceKind, Lease, Object, Objects, Reference, Servant,
    Shape, Signal, Subscription, WireState,
};
use exports::{Dropped, Exports};
use imports::Imports;
use pinger::Pinger;
use places::Places;
use sets::Sets;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The tag of the profile component that says which exporter of this process a local reference belongs to: 8 octets,
/// the OXID.
pub const TAG_OXID: u32 = 0x4449_584f;

/// How often clients say what they hold (MS-DCOM 3.1.2.2).
pub const PING_PERIOD: Duration = Duration::from_secs(120);

/// The exporter of a node: everything that DCOM keeps beyond single connections.
pub struct Exporter {
    this: Weak<Self>,
    objects: Arc<dyn Objects>,
    oxid: u64,
    rem_unknown: Uuid,
    /// What that IPID stands for.
    unknown: Served,
    exports: Exports,
    sets: Sets,
    imports: Imports,
    pinger: Pinger,
    clock: Clock,
    /// How often clients ping, unless a place says otherwise.
    period: Duration,
    places: Places,
    running: Running,
    associations: Associations,
    /// The class objects that somebody asked for: CLSID and key.
    factories: Mutex<HashMap<Uuid, Bytes>>,
    standard: standard::State,
    servants: OnceLock<Vec<Arc<dyn Servant>>>,
}

/// How many entries the tables of an exporter have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects of this node that are known elsewhere, or kept by [`Hold`]s.
    pub objects: usize,
    /// Interfaces of them.
    pub ipids: usize,
    /// Ping sets of others here.
    pub sets: usize,
    /// Objects elsewhere that are held here.
    pub proxies: usize,
    /// Exporters elsewhere.
    pub oxids: usize,
    /// IPIDs with references to be given back.
    pub releases: usize,
    /// Ping sets of this node elsewhere.
    pub pinged: usize,
    /// Association groups.
    pub associations: usize,
}

impl Exporter {
    /// The exporter of a node.
    pub fn new(objects: Arc<dyn Objects>) -> Arc<Self> {
        Self::with_period(objects, PING_PERIOD)
    }

    /// The same with another ping period.
    pub fn with_period(objects: Arc<dyn Objects>, period: Duration) -> Arc<Self> {
        let running = Running::default();
        for key in objects.keys() {
            let servants = objects.servants(&key);
            running.enter(&key, None);
            servants.iter().for_each(|servant| running.enter(&key, Some(servant.interface())));
        }
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            objects,
            oxid: unguessable().max(1),
            rem_unknown: Uuid::new_v4(),
            unknown: Served::new(Bytes::new(), standard::rem_unknown::REM_UNKNOWN_ID, false, Arc::default()),
            exports: Exports::default(),
            sets: Sets::default(),
            imports: Imports::default(),
            pinger: Pinger::default(),
            clock: Clock::new(),
            period,
            places: Places::default(),
            running,
            associations: Associations::default(),
            factories: Mutex::default(),
            standard: standard::State::default(),
            servants: OnceLock::new(),
        })
    }

    /// The exporter behind what a session or a servant was given: itself, or a [`Correspondence`].
    pub fn of(wire_state: &Arc<dyn WireState>) -> Option<Arc<Self>> {
        Self::known(Arc::clone(wire_state) as _)
    }

    /// The same behind what a body was given.
    pub(crate) fn known(wire_state: Arc<dyn Any + Send + Sync>) -> Option<Arc<Self>> {
        match wire_state.downcast::<Self>() {
            Ok(exporter) => Some(exporter),
            Err(other) => other.downcast_ref::<Correspondence>().map(|held| Arc::clone(held.exporter())),
        }
    }

    /// The objects of the node.
    pub fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    /// What the standard interfaces keep.
    pub fn standard(&self) -> &standard::State {
        &self.standard
    }

    /// The identity of this exporter.
    pub fn oxid(&self) -> u64 {
        self.oxid
    }

    /// The IPID of this exporter's IRemUnknown.
    pub fn rem_unknown(&self) -> Uuid {
        self.rem_unknown
    }

    /// Itself, for those who must not keep it alive.
    pub fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    fn arc(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    /// Where this node listens: bindings of its resolver, and of its exporter, which are one.
    pub fn bindings(&self) -> DualStringArray {
        self.places.bindings(&self.objects.places(), &*self.objects)
    }

    /// Where this exporter is, for OXID resolution and activation.
    pub fn resolution(&self) -> Resolved {
        let places = self.objects.places();
        let least =
            places.iter().map(|place| Security::of(place.profile()).level).min().unwrap_or(Level::None);
        Resolved {
            bindings: self.places.bindings(&places, &*self.objects),
            rem_unknown: self.rem_unknown,
            authn_hint: least as u32,
            version: (VERSION.0.into(), VERSION.1.into()),
        }
    }

    /// What an IPID stands for; `None` once it is disconnected. Counts as a sign of life of whoever holds the object.
    pub fn served(&self, ipid: Uuid) -> Option<Served> {
        if ipid == self.rem_unknown {
            return Some(self.unknown.clone());
        }
        self.exports.served(ipid)
    }

    /// The results of an operation, so that a failing HRESULT can be answered with blank out parameters.
    pub fn results(&self, key: &[u8], iid: Uuid, opnum: u16) -> Option<Shape> {
        let own = if key.is_empty() { Vec::new() } else { self.objects.servants(key) };
        own.iter().chain(self.standing_by()).find_map(|servant| {
            let interface = marshalling::find(servant.interface(), &|held| iid_of(held) == iid)?;
            let index = opnum.checked_sub(opnum_base(interface))?;
            Some(interface.operations.get(usize::from(index))?.results.clone())
        })
    }

    /// Joins a connection to an association group: a new one if 0 is asked. `None`: no such group of this principal.
    pub fn join_association(&self, asked: u32, principal: &str) -> Option<u32> {
        self.associations.join(asked, principal)
    }

    /// Joins a connection whose caller will prove who it is to an association group: a new one if 0 is asked. `None`: no
    /// such group.
    pub fn enter_association(&self, asked: u32) -> Option<u32> {
        self.associations.enter(asked)
    }

    /// Whether an association group is of this principal, who proved who it is on one of its connections; it becomes that
    /// if it is this connection's alone and was nobody's.
    pub fn own_association(&self, group: u32, principal: &str) -> bool {
        self.associations.own(group, principal)
    }

    /// A connection of a group ended.
    pub fn leave_association(&self, group: u32) {
        self.associations.leave(group);
    }

    /// Whether the object under a key can be asked for an interface.
    pub fn offers(&self, key: &[u8], iid: Uuid) -> bool {
        let servants = self.objects.servants(key);
        if servants.is_empty() {
            let known = |proxy: Arc<Proxy>| iid == IUNKNOWN || proxy.ipid(iid).is_some();
            return self.exports.stands_for(key).is_some_and(known);
        }
        let callable = |held: &Interface| {
            !matches!(held.kind, InterfaceKind::Class | InterfaceKind::Procedures) && iid_of(held) == iid
        };
        iid == IUNKNOWN
            || servants.iter().any(|servant| marshalling::find(servant.interface(), &callable).is_some())
            || standard::offers(self, key, iid)
    }

    /// Serves an object of the wire's own (a connection point, an enumerator, a sink) until nobody refers to it any more.
    ///
    /// # Errors
    /// `principal` (who asked for it; empty for this process) has too many of them.
    pub fn serve(&self, servants: Vec<Arc<dyn Servant>>, principal: &str) -> Result<Bytes, Failure> {
        self.serve_as(servants, principal, true)
    }

    fn serve_as(
        &self,
        servants: Vec<Arc<dyn Servant>>,
        principal: &str,
        pinged: bool,
    ) -> Result<Bytes, Failure> {
        let owner = self.reserve(principal)?;
        let key = self.objects.export(servants);
        self.enter_made(&key, &owner, pinged);
        Ok(key)
    }

    /// An object was made for somebody: only its references lead to it.
    fn enter_made(&self, key: &[u8], owner: &Arc<str>, pinged: bool) {
        self.exports.made(key, owner, pinged);
        let servants = self.objects.servants(key);
        servants.iter().for_each(|servant| self.running.leave(key, servant.interface()));
        self.clock.tick(&self.objects);
    }

    fn reserve(&self, principal: &str) -> Result<Arc<str>, Failure> {
        let owner: Arc<str> = principal.into();
        if self.exports.reserve(&owner) {
            return Ok(owner);
        }
        let most = crate::limits::PRINCIPAL_OBJECTS as u64;
        Err(Failure::over_limit(Initiator::Peer, "objects made for one principal", most + 1, most))
    }

    /// What nobody refers to any more: if it was made for the wire, it is served no longer.
    fn drop_object(&self, dropped: Option<Dropped>) {
        if let Some(Dropped { key, made: true, .. }) = &dropped {
            self.objects.withdraw(key);
        }
    }

    /// Adds references to an IPID, and returns the HRESULT.
    pub(crate) fn add_refs_to(&self, ipid: Uuid, public: u32, private: u32, holder: &str) -> u32 {
        self.exports.add(ipid, public, private, &holder.into())
    }

    /// Takes references to an IPID back.
    pub(crate) fn release_refs_to(&self, ipid: Uuid, public: u32, private: u32, holder: &str) {
        let dropped = self.exports.release(ipid, public, private, holder);
        self.drop_object(dropped);
    }

    /// A ping of a set: the status.
    pub(crate) fn simple_ping(&self, set: u64) -> u32 {
        self.sets.ping(set)
    }

    /// A change of a set: its number and the status.
    pub(crate) fn complex_ping(&self, ping: &ComplexPing, principal: &str) -> (u64, u32) {
        let answer = self.sets.change(&self.exports, ping, &principal.into());
        self.clock.tick(&self.objects);
        answer
    }

    /// How many entries the tables have.
    pub fn counts(&self) -> Counts {
        let (objects, ipids) = self.exports.counts();
        let (proxies, oxids, releases) = self.imports.counts();
        let (sets, pinged) = (self.sets.len(), self.pinger.len());
        Counts {
            objects,
            ipids,
            sets,
            proxies,
            oxids,
            releases,
            pinged,
            associations: self.associations.len(),
        }
    }

    fn standing_by(&self) -> &[Arc<dyn Servant>] {
        let made = || self.arc().map(|this| standard::servants(&this)).unwrap_or_default();
        self.servants.get_or_init(made)
    }

    /// How often pings come and go: what the places of this node say, if they do.
    fn period(&self) -> Duration {
        let places = self.objects.places();
        let said = places.iter().filter_map(|place| Security::of(place.profile()).ping);
        said.min().unwrap_or(self.period)
    }

    /// A ping period is over.
    fn end_period(&self, now: Instant) {
        self.clock.stop_ticking();
        let mut gone = self.sets.tick(&self.exports);
        gone.extend(self.exports.tick());
        gone.into_iter().for_each(|dropped| self.drop_object(Some(dropped)));
        self.ping();
        // Association groups live by their connections.
        if (Counts { associations: 0, ..self.counts() }) != Counts::default() {
            self.clock.tick_on(now, self.period());
        }
    }
}

impl WireState for Exporter {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        self.standing_by().to_vec()
    }

    fn exported(&self, key: &[u8], servant: &Arc<dyn Servant>) {
        self.running.enter(key, Some(servant.interface()));
    }

    fn withdrawn(&self, key: &[u8], interface: &Interface) {
        self.running.leave(key, interface);
        self.exports.withdrawn(key);
        points::withdrawn(self, key);
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        points::emit(self, emission)
    }

    fn subscribe(
        &self,
        object: &Object,
        interface: Option<&Interface>,
        signal: Option<&Signal>,
        listener: &Listener,
    ) -> Option<Result<Subscription, Failure>> {
        Some(points::subscribe(self, object, interface, signal, listener))
    }

    fn offers(&self, object: &Object, interface: &str) -> Option<Result<bool, Failure>> {
        Some(self.has_interface(object, interface))
    }

    fn counts_references(&self) -> bool {
        true
    }

    fn onward(&self, key: &[u8], to: &Reference) -> Option<Reference> {
        self.leads_on(key, to)
    }

    fn lend(&self, key: &[u8]) -> Lease {
        let servants = self.objects.servants(key);
        servants.iter().for_each(|servant| self.running.leave(key, servant.interface()));
        match self.arc() {
            Some(exporter) => Lease::new(Arc::new(Hold::lend(exporter, key))),
            None => Lease::default(),
        }
    }

    fn dismiss(&self, key: &[u8], interface: &str, listener: u32) -> bool {
        points::dismiss(self, key, interface, listener)
    }

    fn backlog(&self, key: &[u8]) -> Backlog {
        points::backlog(self, key)
    }

    fn due(&self) -> Option<Instant> {
        [self.clock.due(), points::due(self)].into_iter().flatten().min()
    }

    fn tend(&self, now: Instant) {
        let due = self.clock.visit(now, self.period());
        if due.errands {
            self.run_errands();
        }
        if due.flush {
            self.flush();
        }
        if due.period {
            self.end_period(now);
        }
        if points::due(self).is_some_and(|due| due <= now) {
            points::tend(self, now);
        }
    }

    fn leave(&self) {
        points::leave(self);
        self.give_back();
    }
}

/// A number that nobody can guess: where one half of a random UUID has fixed bits, the other has random ones.
fn unguessable() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    high.rotate_left(32) ^ low
}

/// Whatever a thread that panicked left is still whole: no table is changed in steps that can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
