//! Connection points: signals as calls of interfaces that the listener implements (ocidl.idl: IConnectionPointContainer,
//! IConnectionPoint and their enumerators).
//!
//! * A signal belongs to a *source interface*: the one that its contract names ([`everywire_model::Signal::sink`]), or one
//!   that follows from the interface which declares it ([`sources`]).
//! * A sink is called in the order of the signals, one call at a time. Signals wait for it up to [`WAITING`] and [`WAITING_BYTES`]; then
//!   the oldest is lost, so that no listener holds up an emitter. All sinks of a principal share [`PRINCIPAL_BYTES`]. What was lost is
//!   told when the sink has taken what waited ([`Audience::Failed`]), or has lost as much again.
//! * A sink that cannot be called (it asks for another account or level) keeps its place; the node's observer is told, and what is
//!   emitted meanwhile is lost for it: it is tried again after [`REFUSED`].
//! * A sink that is no more is unadvised when a call says so, or when it was silent for [`SILENCE`] and does not answer.

mod container;
mod enumerators;
mod point;
mod sink;
mod source;
mod store;
mod subscribe;

pub use sink::{WAITING, WAITING_BYTES};
pub use source::{Source, sources};
pub use subscribe::subscribe;

pub(super) use container::Container;

use super::serving::lock;
use crate::exporter::Exporter;
use crate::hresult::{CONNECT_E_ADVISELIMIT, CONNECT_E_NOCONNECTION};
use bytes::Bytes;
use everywire_model::signal::{Audience, Backlog};
use everywire_model::{Emission, Failure, Hold, Interface, Object, Reference, Topic};
use sink::{Advised, Manner};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use store::Account;
use subscribe::Listening;
use uuid::Uuid;

/// Sinks that a principal may advise of one source interface of an object.
pub const SINKS_OF_PRINCIPAL: usize = 256;
/// Sinks that may be advised of one source interface of an object.
pub const SINKS: usize = 4096;
/// Sinks of other nodes that are asked for their interface at a time, each on a thread of its own.
pub const ASKED: usize = 64;
/// How long a sink, or a source, may be silent before it is asked whether it is still there (one period of pings).
pub const SILENCE: Duration = Duration::from_secs(120);

/// Bytes of signals that wait for all sinks of a principal.
pub const PRINCIPAL_BYTES: usize = 256 << 20;

/// How long a sink that refused a call is not called again: each try costs a connection.
pub const REFUSED: Duration = Duration::from_secs(30);

/// The connection points of a node's objects, and what this node listens to.
#[derive(Default)]
pub(super) struct Points {
    /// By the key of the object, those of its points that somebody asked for.
    held: Mutex<HashMap<Bytes, Vec<Arc<Point>>>>,
    listening: Mutex<Vec<Weak<Listening>>>,
    /// What waits for the sinks of each principal.
    accounts: Mutex<HashMap<String, Weak<Account>>>,
    /// How many sinks are being asked for their interface.
    asking: Arc<AtomicUsize>,
}

/// A connection point: an object and one of its source interfaces.
pub(super) struct Point {
    pub(super) key: Bytes,
    pub(super) iid: Uuid,
    pub(super) interface: Hold<Interface>,
    /// The node.
    exporter: Weak<Exporter>,
    /// The key of the object that stands for it, as long as that is served.
    served: Mutex<Option<Bytes>>,
    sinks: Mutex<Vec<Arc<Advised>>>,
    last_cookie: AtomicU32,
}

impl Points {
    /// The connection point of an object for a source interface, if it has that.
    fn find(&self, exporter: &Exporter, key: &[u8], iid: Uuid) -> Option<Arc<Point>> {
        let mut held = lock(&self.held);
        let found = held.get(key).and_then(|points| points.iter().find(|point| point.iid == iid).cloned());
        if found.is_some() {
            return found;
        }
        let source = sources_of(exporter, key).into_iter().find(|source| source.iid == iid)?;
        let point = Arc::new(Point {
            key: Bytes::copy_from_slice(key),
            iid,
            interface: source.interface,
            exporter: exporter.weak(),
            served: Mutex::default(),
            sinks: Mutex::default(),
            last_cookie: AtomicU32::new(0),
        });
        held.entry(point.key.clone()).or_default().push(Arc::clone(&point));
        Some(point)
    }

    fn of(&self, key: &[u8], iid: Uuid) -> Option<Arc<Point>> {
        lock(&self.held).get(key)?.iter().find(|point| point.iid == iid).cloned()
    }

    fn is_empty(&self, key: &[u8]) -> bool {
        !lock(&self.held).contains_key(key)
    }

    /// What waits for the sinks of a principal.
    fn account(&self, principal: &str) -> Arc<Account> {
        let mut accounts = lock(&self.accounts);
        if let Some(held) = accounts.get(principal).and_then(Weak::upgrade) {
            return held;
        }
        accounts.retain(|_, held| held.strong_count() > 0);
        let made = Arc::<Account>::default();
        accounts.insert(principal.to_owned(), Arc::downgrade(&made));
        made
    }

    /// All sinks.
    fn sinks(&self) -> Vec<Arc<Advised>> {
        let points: Vec<_> = lock(&self.held).values().flatten().cloned().collect();
        points.iter().flat_map(|point| lock(&point.sinks).clone()).collect()
    }

    /// What this node listens to.
    fn listening(&self) -> Vec<Arc<Listening>> {
        let mut listening = lock(&self.listening);
        listening.retain(|held| held.strong_count() > 0);
        listening.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Point {
    /// Whether there is room for one more sink of a principal.
    fn admit(sinks: &[Arc<Advised>], principal: &str) -> Result<(), Failure> {
        let own = sinks.iter().filter(|sink| sink.principal == principal).count();
        if sinks.len() >= SINKS || own >= SINKS_OF_PRINCIPAL {
            return Err(super::serving::refused(CONNECT_E_ADVISELIMIT));
        }
        Ok(())
    }

    /// Advises a sink, which is reached as `manner` says; the cookie.
    fn advise(
        self: &Arc<Self>,
        principal: String,
        reference: Reference,
        object: &Object,
        manner: Option<Manner>,
    ) -> Result<u32, Failure> {
        let exporter = self.exporter.upgrade();
        let account = exporter.map(|held| held.standard().points.account(&principal)).unwrap_or_default();
        let mut sinks = lock(&self.sinks);
        Self::admit(&sinks, &principal)?;
        let cookie = loop {
            // 0 is no cookie, and none is given twice.
            let next = self.last_cookie.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if next != 0 && sinks.iter().all(|sink| sink.cookie != next) {
                break next;
            }
        };
        sinks.push(Advised::new((cookie, principal, account), reference, object, self, manner));
        let listeners = sinks.len();
        drop(sinks);
        self.tell(&Audience::Joined { interface: self.iid.to_string(), listener: cookie, listeners });
        Ok(cookie)
    }

    /// Tells whoever serves the object what happened among those who listen. No lock is held.
    fn tell(&self, told: &Audience) {
        if let Some(exporter) = self.exporter.upgrade() {
            exporter.objects().audience(&self.key, told);
        }
    }

    fn unadvise(&self, cookie: u32) -> Result<(), Failure> {
        match self.remove(cookie) {
            true => Ok(()),
            false => Err(super::serving::refused(CONNECT_E_NOCONNECTION)),
        }
    }

    /// Forgets a sink. Whether it was there.
    fn remove(&self, cookie: u32) -> bool {
        let mut sinks = lock(&self.sinks);
        let Some(at) = sinks.iter().position(|sink| sink.cookie == cookie) else { return false };
        let sink = sinks.remove(at);
        let listeners = sinks.len();
        // Not under the lock: its references are released with it.
        drop(sinks);
        sink.end();
        self.tell(&Audience::Left { interface: self.iid.to_string(), listener: cookie, listeners });
        true
    }
}

/// The source interfaces of the object under a key.
fn sources_of(exporter: &Exporter, key: &[u8]) -> Vec<Source> {
    let mut all: Vec<Source> = Vec::new();
    for servant in exporter.objects().servants(key) {
        for source in sources(servant.interface()) {
            if all.iter().all(|held| held.iid != source.iid) {
                all.push(source);
            }
        }
    }
    all
}

/// Calls the sinks that were advised of this signal.
///
/// # Errors
/// The arguments do not encode.
pub fn emit(exporter: &Exporter, emission: &Emission<'_>) -> Result<(), Failure> {
    let points = &exporter.standard().points;
    if points.is_empty(emission.key) {
        return Ok(());
    }
    // Whoever passes a signal on without its contract reaches no sinks.
    let Topic::Typed { interface, signal } = emission.topic else { return Ok(()) };
    let (iid, index) = source::place(interface, signal);
    let Some(point) = points.of(emission.key, iid) else { return Ok(()) };
    let sinks = lock(&point.sinks).clone();
    sinks.iter().try_for_each(|sink| sink.tell(index, emission.arguments))
}

/// What waits for the sink of an object that is furthest behind.
pub fn backlog(exporter: &Exporter, key: &[u8]) -> Backlog {
    let points = lock(&exporter.standard().points.held).get(key).cloned().unwrap_or_default();
    let sinks = points.iter().flat_map(|point| lock(&point.sinks).clone());
    sinks.map(|sink| sink.backlog()).max_by_key(|one| (one.signals, one.bytes)).unwrap_or_default()
}

/// Has a sink of an object hear no more; whether it was advised.
pub fn dismiss(exporter: &Exporter, key: &[u8], interface: &str, cookie: u32) -> bool {
    let point = interface.parse().ok().and_then(|iid| exporter.standard().points.of(key, iid));
    point.is_some_and(|point| point.remove(cookie))
}

/// The object under this key is served no longer: nobody is advised any more.
pub fn withdrawn(exporter: &Exporter, key: &[u8]) {
    let held = lock(&exporter.standard().points.held).remove(key).unwrap_or_default();
    for point in held {
        let sinks = std::mem::take(&mut *lock(&point.sinks));
        sinks.iter().for_each(|sink| sink.end());
        let served = lock(&point.served).take();
        if let Some(served) = served {
            exporter.objects().withdraw(&served);
        }
    }
}

/// The node ends: nobody is advised any more. Sinks hold the node that holds them.
pub fn leave(exporter: &Exporter) {
    let keys: Vec<_> = lock(&exporter.standard().points.held).keys().cloned().collect();
    keys.iter().for_each(|key| withdrawn(exporter, key));
}

/// When [`tend`] wants to be called.
pub fn due(exporter: &Exporter) -> Option<Instant> {
    let points = &exporter.standard().points;
    let sinks = points.sinks().into_iter().map(|sink| sink.last());
    let sources = points.listening().into_iter().filter_map(|source| source.last());
    sinks.chain(sources).min().map(|last| last + SILENCE)
}

/// Looks after sinks and sources that were silent for long.
pub fn tend(exporter: &Exporter, now: Instant) {
    let points = &exporter.standard().points;
    for sink in points.sinks().into_iter().filter(|sink| now >= sink.last() + SILENCE) {
        sink.check();
    }
    for source in points.listening() {
        if source.last().is_some_and(|last| now >= last + SILENCE) {
            source.check();
        }
    }
}
