//! The object directory: which servants answer for which key.
//!
//! States: empty, until something is exported; then maps from keys to interfaces, a list of prefixes, and
//! classes. Any thread changes them (`Node::export`, `withdraw`); threads that serve only read. Each change
//! of entries or prefixes makes `version` grow while the writer still holds the lock.
//!
//! Look-ups (`Directory::find`) go in this order: an interface of the object under the key, in the wire's
//! spelling; for keys that are not there, the servant of the longest prefix; then what the wire answers for
//! every object (introspection, properties).
//!
//! Invariants: an object has one entry for each interface identity, and no entry in the map is an empty list.
//! `count` and `has_prefixes` say without a lock whether there is something. A remembered look-up is used
//! only while `version` is what it was before the look-up began: whoever withdraws an object is not called
//! again by it. Servants are dropped without any lock, since that runs code of the user's. What is remembered
//! is copied, since a slice of a message would keep the whole message.

use crate::layer::{self, Layers};
use crate::sync::{read, write};
use crate::worker_pool::{BlockingRecord, BlockingRecords, blocking_records};
use bytes::Bytes;
use everywire_model::object::TypedServant;
use everywire_model::{Failure, Hold, Incoming, Interface, Remote, Request, Servant, Wire, same_bytes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

/// What an exported object is, as far as one of its interfaces goes.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Answers calls.
    pub(crate) servant: Arc<dyn Servant>,
    /// The typed servant, for callers in this process.
    pub(crate) local: Option<ErasedServant>,
    /// Which of its operations were seen to block, by their numbers: see `worker_pool`.
    pub(crate) records: BlockingRecords,
}

impl Entry {
    /// A servant without a type.
    pub(crate) fn new(servant: Arc<dyn Servant>) -> Self {
        let records = blocking_records(servant.interface().operations.len());
        Self { servant, local: None, records }
    }

    /// A typed servant.
    pub(crate) fn typed<I: Remote + ?Sized>(servant: Arc<I>) -> Self {
        let skeleton = I::skeleton(Arc::clone(&servant));
        Self { local: Some(ErasedServant::new(servant)), ..Self::new(skeleton) }
    }

    /// The same behind the layers of its node. Then `local` is gone: a caller in this process that had the
    /// servant itself would pass by the layers.
    pub(crate) fn behind(self, layers: &Layers) -> Self {
        if layers.is_empty() {
            return self;
        }
        Self { servant: layer::behind(layers, self.servant), local: None, ..self }
    }
}

/// A typed servant, with its type erased: an `Arc<Arc<dyn Trait>>` behind `Any`, and the function that knows
/// what it was.
#[derive(Clone)]
pub(crate) struct ErasedServant {
    /// An `Arc<dyn Trait>`.
    servant: TypedServant,
    /// The same as another trait, by the identity of the interface.
    as_type: fn(&TypedServant, &str) -> Option<TypedServant>,
}

impl ErasedServant {
    fn new<I: Remote + ?Sized>(servant: Arc<I>) -> Self {
        Self {
            servant: Arc::new(servant),
            as_type: |servant, id| I::as_type(servant.downcast_ref::<Arc<I>>()?, id),
        }
    }

    /// An `Arc<dyn Trait>` of the trait of this interface: its own, or one of its bases.
    pub(crate) fn of_type(&self, id: &str) -> Option<TypedServant> {
        (self.as_type)(&self.servant, id)
    }
}

/// Makes objects when somebody asks for one.
pub(crate) struct Class {
    /// What they will be.
    pub(crate) interface: Hold<Interface>,
    /// Makes one, to be served under this key.
    pub(crate) make: Box<Maker>,
}

/// Makes an object's interfaces, to be served under this key.
type Maker = dyn Fn(&Bytes) -> Result<Vec<Entry>, Failure> + Send + Sync;

/// What is served.
#[derive(Default)]
struct Tables {
    /// An object may have several interfaces: one entry for each, in the order in which they were exported.
    /// The first says what the object mainly is.
    entries: HashMap<Bytes, Vec<Entry>>,
    /// What answers for all keys that begin so, the longest first.
    prefixes: Vec<(Bytes, Entry)>,
    classes: HashMap<Bytes, Arc<Class>>,
}

/// Keys and servants.
#[derive(Default)]
pub(crate) struct Directory {
    tables: RwLock<Tables>,
    /// Whether there are any prefixes: whoever only asks for that needs no lock.
    has_prefixes: AtomicBool,
    /// How many keys there are: whoever only asks for that needs no lock.
    count: AtomicUsize,
    /// Whether any of them ever had something to tell that nobody asked for: signals, or news of attributes.
    tells: AtomicBool,
    /// Grows with each change, so that what connections remember of look-ups goes stale.
    version: AtomicU64,
    /// Numbers keys for objects that were exported without one.
    next: AtomicU64,
}

/// The version of a look-up that the next call does not take: no directory has it.
const STALE: u64 = u64::MAX;

/// What a connection remembers of its last look-up: a peer mostly asks the same thing again. Taken out while
/// a call is served, and put back after.
pub(crate) struct CachedLookup {
    version: u64,
    key: Bytes,
    interface: Bytes,
    operation: Bytes,
    /// Who answers.
    pub(crate) servant: Arc<dyn Servant>,
    /// The number of the operation.
    pub(crate) index: usize,
    pub(crate) records: Option<BlockingRecords>,
    /// Whether its calls are handed over in their order.
    pub(crate) keeps_order: bool,
}

impl CachedLookup {
    /// Whether the operation blocks.
    #[inline]
    pub(crate) fn blocking_record(&self) -> Option<&BlockingRecord> {
        self.records.as_ref()?.get(self.index)
    }
}

/// What a look-up found.
pub(crate) enum LookupResult {
    /// The servant and the operation: to be remembered for the next look-up.
    Operation(Box<CachedLookup>),
    /// The object, but no such operation.
    NoOperation,
    /// No object.
    NoObject,
}

impl Directory {
    /// Adds an interface to an object, in place of an earlier one of the same identity.
    pub(crate) fn insert(&self, key: Bytes, entry: Entry) {
        if tells(entry.servant.interface()) {
            self.tells.store(true, Ordering::Relaxed);
        }
        let before = self.change(|tables| {
            let held = tables.entries.entry(key).or_default();
            match held.iter_mut().find(|other| other.servant.interface().id == entry.servant.interface().id) {
                Some(other) => Some(std::mem::replace(other, entry)),
                None => {
                    held.push(entry);
                    None
                }
            }
        });
        drop(before);
    }

    /// Changes what is served. The counts and the version change before the lock is let go, so a look-up that sees the new version
    /// sees the new entries. What is taken out is returned, to be dropped without the lock: dropping servants runs code of the user's.
    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = write(&self.tables);
        let removed = change(&mut tables);
        self.count.store(tables.entries.len(), Ordering::Release);
        self.has_prefixes.store(!tables.prefixes.is_empty(), Ordering::Release);
        self.version.fetch_add(1, Ordering::Release);
        removed
    }

    /// Removes an object with all its interfaces.
    pub(crate) fn remove(&self, key: &[u8]) -> Vec<Entry> {
        self.change(|tables| tables.entries.remove(key)).unwrap_or_default()
    }

    /// Removes one interface of an object, by its identity, and the object with the last of them.
    pub(crate) fn remove_interface(&self, key: &[u8], id: &str) -> Option<Entry> {
        self.change(|tables| {
            let held = tables.entries.get_mut(key)?;
            let at = held.iter().position(|entry| entry.servant.interface().id == id)?;
            let removed = held.remove(at);
            if held.is_empty() {
                tables.entries.remove(key);
            }
            Some(removed)
        })
    }

    /// Has a servant answer for all keys that begin so, in place of an earlier one.
    pub(crate) fn insert_prefix(&self, prefix: Bytes, entry: Entry) {
        let before = self.change(|Tables { prefixes, .. }| {
            if let Some((_, held)) = prefixes.iter_mut().find(|(held, _)| *held == prefix) {
                return Some(std::mem::replace(held, entry));
            }
            let at = prefixes.partition_point(|(held, _)| held.len() > prefix.len());
            prefixes.insert(at, (prefix, entry));
            None
        });
        drop(before);
    }

    /// Removes the servant for all keys that begin so. Returns whether there was one.
    pub(crate) fn remove_prefix(&self, prefix: &[u8]) -> bool {
        let removed = self.change(|Tables { prefixes, .. }| {
            let at = prefixes.iter().position(|(held, _)| held == prefix)?;
            Some(prefixes.remove(at))
        });
        removed.is_some()
    }

    /// The servant that answers for keys that begin as this one.
    pub(crate) fn by_prefix(&self, key: &[u8]) -> Option<Entry> {
        if !self.has_prefixes.load(Ordering::Acquire) {
            return None;
        }
        let tables = read(&self.tables);
        tables.prefixes.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, entry)| entry.clone())
    }

    /// All servants that answer for keys that begin in some way.
    pub(crate) fn prefix_servants(&self) -> Vec<Arc<dyn Servant>> {
        if !self.has_prefixes.load(Ordering::Acquire) {
            return Vec::new();
        }
        read(&self.tables).prefixes.iter().map(|(_, entry)| Arc::clone(&entry.servant)).collect()
    }

    /// Adds a class.
    pub(crate) fn add_class(&self, key: Bytes, class: Class) {
        let before = self.change(|tables| tables.classes.insert(key, Arc::new(class)));
        drop(before);
    }

    /// Removes a class. Returns whether there was one.
    pub(crate) fn remove_class(&self, key: &[u8]) -> bool {
        self.change(|tables| tables.classes.remove(key)).is_some()
    }

    /// The class under this key.
    pub(crate) fn class(&self, key: &[u8]) -> Option<Arc<Class>> {
        read(&self.tables).classes.get(key).cloned()
    }

    /// The classes, sorted by key.
    pub(crate) fn classes(&self) -> Vec<(Bytes, Hold<Interface>)> {
        let told = |(key, class): (&Bytes, &Arc<Class>)| (key.clone(), class.interface.clone());
        let mut classes: Vec<_> = read(&self.tables).classes.iter().map(told).collect();
        classes.sort_by(|(left, _), (right, _)| left.cmp(right));
        classes
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        drop(self.change(std::mem::take));
    }

    /// The interfaces of the object under this very key.
    pub(crate) fn get(&self, key: &[u8]) -> Vec<Entry> {
        read(&self.tables).entries.get(key).cloned().unwrap_or_default()
    }

    /// The interfaces of the object under this key, or else under the key as the wire normalises it
    /// (`Wire::respell`). Empty, if there is none.
    pub(crate) fn spelled(&self, wire: &dyn Wire, key: &[u8]) -> Vec<Entry> {
        let held = self.get(key);
        if !held.is_empty() {
            return held;
        }
        wire.respell(key).map_or(held, |other| self.get(&other))
    }

    /// Whether anything that is or was served has signals or attributes: peers may wait for those for ever.
    pub(crate) fn tells(&self) -> bool {
        self.tells.load(Ordering::Relaxed)
    }

    /// Whether nothing is served.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0 && !self.has_prefixes.load(Ordering::Acquire)
    }

    /// The keys, sorted.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        let mut keys: Vec<_> = read(&self.tables).entries.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// A key nobody has.
    pub(crate) fn fresh_key(&self) -> Bytes {
        Bytes::from(format!("object-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Who answers a call, and by which of its operations. `wire_state` is asked last, and only if nobody
    /// else answers. If `remembered` fits, it is taken and no text is searched; the caller puts it back when
    /// the call is done.
    #[inline]
    pub(crate) fn find(
        &self,
        wire: &dyn Wire,
        asked: &Incoming,
        remembered: &mut Option<Box<CachedLookup>>,
        wire_state: impl FnOnce() -> Vec<Arc<dyn Servant>>,
    ) -> LookupResult {
        // Read before the entries are: a change in between makes what is found stale at once, and never the
        // other way.
        let version = self.version.load(Ordering::Acquire);
        if let Some(last) = remembered.take_if(|last| {
            last.version == version
                && same_bytes(&last.operation, &asked.operation)
                && same_bytes(&last.interface, &asked.interface)
                && same_bytes(&last.key, &asked.key)
        }) {
            return LookupResult::Operation(last);
        }
        self.search(version, wire, asked, wire_state)
    }

    /// The same without what is remembered, for the directory of this version.
    fn search(
        &self,
        version: u64,
        wire: &dyn Wire,
        asked: &Incoming,
        wire_state: impl FnOnce() -> Vec<Arc<dyn Servant>>,
    ) -> LookupResult {
        let own = self.spelled(wire, &asked.key);
        let here = !own.is_empty();
        let answers = |servant: Arc<dyn Servant>, records: Option<BlockingRecords>| {
            wire.operation(servant.interface(), asked).map(|index| (servant, index, records))
        };
        let found = own.into_iter().find_map(|entry| answers(entry.servant, Some(entry.records)));
        let found = found.or_else(|| {
            // For these keys it stands before those that stand by for every object.
            // An object that is exported by itself has no operations but its own: a prefix does not add any.
            let entry = if here { None } else { self.by_prefix(&asked.key) }?;
            if wire.is_own(asked) {
                return None;
            }
            let index = wire.operation(entry.servant.interface(), asked).unwrap_or(Request::UNKNOWN);
            Some((entry.servant, index, Some(entry.records)))
        });
        match found.or_else(|| wire_state().into_iter().find_map(|servant| answers(servant, None))) {
            Some((servant, index, records)) => {
                // Copies: what came with the message would keep the whole of it in memory.
                let own = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
                // What is remembered is found by its names: it must not serve the next call of these names where types choose, too.
                let alone = wire.is_told_by_names(servant.interface(), index);
                LookupResult::Operation(Box::new(CachedLookup {
                    version: if alone { version } else { STALE },
                    key: own(&asked.key),
                    interface: own(&asked.interface),
                    operation: own(&asked.operation),
                    keeps_order: servant.keeps_order(),
                    servant,
                    index,
                    records,
                }))
            }
            None if here => LookupResult::NoOperation,
            None => LookupResult::NoObject,
        }
    }
}

/// Whether an interface has something to tell that nobody asked for.
fn tells(interface: &Interface) -> bool {
    let own = !interface.signals.is_empty() || !interface.attributes.is_empty();
    own || interface.bases.iter().any(|base| tells(base))
}
