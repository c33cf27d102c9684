//! What this node has marshalled: objects, their interfaces, and who refers to them (MS-DCOM 3.1.1.1).
//!
//! States: an object enters the tables when it is first exported or held, gets an OID, and an IPID for each
//! interface that is asked for. It leaves them when no interface has a reference and nothing holds it
//! (`forget_if_unused`), when it is withdrawn, when the ping set that had it last expires, or after `MISSES`
//! periods without a set, a call or a new reference. Leaving disconnects its IPIDs for ever: the same key
//! exported again has other numbers.
//!
//! Invariants: `oids` and `objects` have the same objects; each IPID in `ipids` is an interface of one of
//! them. `made` counts the objects with an owner, and the room reserved for them. Numbers are random, for who
//! knows an IPID may call it. What leaves comes out as `ReleasedObject` and is withdrawn, or lets go of what it
//! stood for, only when all locks are free.

use super::imports::Proxy;
use super::numbers::{random_uuid, unguessable, unused};
use crate::hresult::{E_OUTOFMEMORY, S_OK};
use crate::limits::{PRINCIPAL_OBJECTS, PRIVATE_HOLDERS};
use crate::lock::lock;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use uuid::Uuid;

/// Periods without a sign of life after which an object, or a ping set, is let go (MS-DCOM 3.1.2.2, 3.1.2.6).
pub(super) const MISSES: u8 = 3;

/// What stands between the class and the number in the key of an object that stands for one elsewhere: no key that a user gives has it.
pub(crate) const SEPARATOR: u8 = 0;

/// RemAddRef's answer for an IPID that nobody has (MS-ERREF 2.1).
const CO_E_OBJNOTREG: u32 = 0x8004_01fb;

/// What an IPID stands for.
#[derive(Debug, Clone)]
pub struct IpidEntry {
    /// The object's key in the node's directory; empty for the node's own IRemUnknown.
    pub key: Bytes,
    /// Whether it is of another contract language than MIDL.
    pub foreign: bool,
    /// Whether it stands for an object elsewhere, to which calls pass.
    pub passes: bool,
    life: Arc<Life>,
}

/// What whoever keeps a [`IpidEntry`] shares with the tables.
#[derive(Debug)]
struct Life {
    /// Set once, when the IPID leaves the tables.
    disconnected: AtomicBool,
    /// A call or a ping of the object came in this period.
    alive: Arc<AtomicBool>,
}

impl IpidEntry {
    pub(super) fn new(key: Bytes, foreign: bool, passes: bool, alive: Arc<AtomicBool>) -> Self {
        let life = Arc::new(Life { disconnected: AtomicBool::new(false), alive });
        Self { key, foreign, passes, life }
    }

    /// Whether the IPID stands for it still: to be asked before each call by whoever remembers it. Counts as a sign of life.
    pub fn is_connected(&self) -> bool {
        if !self.life.alive.load(Ordering::Relaxed) {
            self.life.alive.store(true, Ordering::Relaxed);
        }
        !self.life.disconnected.load(Ordering::Relaxed)
    }
}

/// The tables. Locks are taken in this order: `table`, `ipids`; no other lock and no code of anybody else's is entered
/// under them.
#[derive(Default)]
pub(super) struct Exports {
    table: Mutex<Table>,
    /// For each call that comes in.
    ipids: RwLock<HashMap<Uuid, Slot>>,
    /// How many objects stand for others elsewhere.
    passing: AtomicUsize,
}

/// What an IPID leads to: what calls need, and the object's number in the table.
struct Slot {
    served: IpidEntry,
    oid: u64,
}

/// The objects, found by their key or by their OID. Each OID in `oids` is in `objects` too.
#[derive(Default)]
struct Table {
    oids: HashMap<Bytes, u64>,
    objects: HashMap<u64, Exported>,
    /// How many objects were made for whom.
    made: HashMap<Arc<str>, usize>,
    /// Those that stand for objects elsewhere.
    passed: HashMap<PassedPlace, u64>,
}

/// By which class an object elsewhere was asked for, and where its proxy is: that is kept as long as the entry.
type PassedPlace = (Bytes, usize);

/// An object that was marshalled at least once. It leaves the table when it is withdrawn or when nobody
/// refers to it; what was made or lent is then served no longer, others get a new OID when they are
/// marshalled again.
#[derive(Default)]
struct Exported {
    key: Bytes,
    /// For whom it was made; nothing for an object that the program exported.
    owner: Option<Arc<str>>,
    /// The program exported it until nobody refers to it; else it stays served.
    lent: bool,
    /// What it stands for, of a hop, and by which class that was asked for.
    passed: Option<(Bytes, Arc<Proxy>)>,
    interfaces: Vec<InterfaceEntry>,
    /// Whether it is run down when nobody shows a sign of life.
    pinged: bool,
    /// In how many ping sets it is. While there is one, the set is what ends it, and `idle` does not count.
    sets: usize,
    /// How many `Hold`s there are: somebody in this process keeps it, whether or not it is referred to from
    /// elsewhere.
    holds: usize,
    /// A call or a ping came in this period.
    alive: Arc<AtomicBool>,
    /// How many periods in a row went by without a call or a ping; the object is run down when there are too
    /// many.
    idle: u8,
}

/// One interface of an object, with the IPID that it got when it was marshalled first. The same IPID is used
/// for everybody.
struct InterfaceEntry {
    iid: Uuid,
    ipid: Uuid,
    /// Public references that are out, to whomever: one counter for all holders.
    public: u64,
    /// Private references of each account that has some; only that account can give them back.
    private: Vec<(Arc<str>, u64)>,
}

/// An object that nobody refers to any more. To be dropped without locks: what it stood for is let go elsewhere.
pub(super) struct ReleasedObject {
    pub(super) key: Bytes,
    /// Whether it was made for the wire and is to be served no longer.
    pub(super) made: bool,
    /// The object elsewhere that it stood for; dropping it gives back the references there.
    _passed: Option<Arc<Proxy>>,
}

/// An interface of an object, as it was marshalled.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarshalledInterface {
    pub(super) oid: u64,
    pub(super) ipid: Uuid,
    pub(super) pinged: bool,
}

impl Exports {
    /// What an IPID stands for. Whoever asks is about to call: that is a sign of life.
    pub(super) fn served(&self, ipid: Uuid) -> Option<IpidEntry> {
        let ipids = self.ipids();
        let slot = ipids.get(&ipid)?;
        slot.served.is_connected().then(|| slot.served.clone())
    }

    /// Counts `refs` more public references to an interface of the object under a key; `foreign`: of another contract language than MIDL.
    pub(super) fn export(&self, key: &[u8], iid: Uuid, foreign: bool, refs: u32) -> MarshalledInterface {
        let mut table = lock(&self.table);
        let (oid, object) = table.enter(key);
        self.expose(oid, object, (iid, foreign), refs)
    }

    /// Finds the IPID of an interface or makes one, and counts `refs` more public references. It is random,
    /// since whoever knows an IPID may call it: nobody shall be able to guess one. Counts as a sign of life,
    /// so that what was just sent is not run down before its receiver has pinged.
    fn expose(
        &self,
        oid: u64,
        object: &mut Exported,
        (iid, foreign): (Uuid, bool),
        refs: u32,
    ) -> MarshalledInterface {
        let pinged = object.pinged;
        object.alive.store(true, Ordering::Relaxed);
        if let Some(held) = object.interfaces.iter_mut().find(|held| held.iid == iid) {
            held.public = held.public.saturating_add(refs.into());
            return MarshalledInterface { oid, ipid: held.ipid, pinged };
        }
        let ipid = random_uuid();
        object.interfaces.push(InterfaceEntry { iid, ipid, public: refs.into(), private: Vec::new() });
        let (key, passes) = (object.key.clone(), object.passed.is_some());
        let served = IpidEntry::new(key, foreign, passes, Arc::clone(&object.alive));
        self.ipids_mut().insert(ipid, Slot { served, oid });
        MarshalledInterface { oid, ipid, pinged }
    }

    /// Registers an object that was made for somebody; it is served until nobody refers to it.
    pub(super) fn made(&self, key: &[u8], owner: &Arc<str>, pinged: bool) {
        let mut table = lock(&self.table);
        let (_, object) = table.enter(key);
        (object.owner, object.pinged) = (Some(Arc::clone(owner)), pinged);
    }

    /// Whether an object was made for somebody.
    pub(super) fn is_made(&self, key: &[u8]) -> bool {
        let table = lock(&self.table);
        table.find(key).is_some_and(|object| object.owner.is_some())
    }

    /// Reserves room for one more object made for somebody. `false`: they have enough.
    pub(super) fn reserve(&self, owner: &Arc<str>) -> bool {
        let mut table = lock(&self.table);
        let count = table.made.entry(Arc::clone(owner)).or_default();
        if *count >= PRINCIPAL_OBJECTS {
            return false;
        }
        *count += 1;
        true
    }

    /// The object was not made after all.
    pub(super) fn unreserve(&self, owner: &str) {
        lock(&self.table).give_back(owner);
    }

    /// The key of the object that has this IPID.
    pub(super) fn key_of(&self, ipid: Uuid) -> Option<Bytes> {
        self.served(ipid).map(|served| served.key)
    }

    /// The key of an object.
    pub(super) fn key_of_oid(&self, oid: u64) -> Option<Bytes> {
        lock(&self.table).objects.get(&oid).map(|object| object.key.clone())
    }

    /// Adds references, and returns the HRESULT.
    /// The owner of references is checked for private ones alone; anybody who knows an IPID may add public
    /// ones.
    pub(super) fn add(&self, ipid: Uuid, public: u32, private: u32, holder: &Arc<str>) -> u32 {
        let mut table = lock(&self.table);
        let Some(held) = self.oid_of(ipid).and_then(|oid| table.exposed(oid, ipid)) else {
            return CO_E_OBJNOTREG;
        };
        if private > 0 {
            let full = held.private.len() >= PRIVATE_HOLDERS;
            match held.private.iter_mut().find(|(who, _)| who == holder) {
                Some((_, count)) => *count = count.saturating_add(private.into()),
                None if full => return E_OUTOFMEMORY,
                None => held.private.push((Arc::clone(holder), private.into())),
            }
        }
        held.public = held.public.saturating_add(public.into());
        S_OK
    }

    /// Takes references back, as many as there are. Returns the object if these were the last.
    pub(super) fn release(
        &self,
        ipid: Uuid,
        public: u32,
        private: u32,
        holder: &str,
    ) -> Option<ReleasedObject> {
        let mut table = lock(&self.table);
        let oid = self.oid_of(ipid)?;
        let held = table.exposed(oid, ipid)?;
        held.public = held.public.saturating_sub(public.into());
        if let Some(index) = held.private.iter().position(|(who, _)| &**who == holder)
            && let Some((_, count)) = held.private.get_mut(index)
        {
            *count = count.saturating_sub(private.into());
            if *count == 0 {
                held.private.swap_remove(index);
            }
        }
        // Somebody still refers to this interface.
        if held.public > 0 || !held.private.is_empty() {
            return None;
        }
        let object = table.objects.get_mut(&oid)?;
        object.interfaces.retain(|held| held.ipid != ipid);
        disconnect(&mut self.ipids_mut(), ipid);
        self.forget_if_unused(&mut table, oid)
    }

    /// Something in this process keeps the object; `lent`: which is to be served until nobody refers to it.
    pub(super) fn hold(&self, key: &[u8], lent: bool) -> u64 {
        let mut table = lock(&self.table);
        let (oid, object) = table.enter(key);
        object.lent |= lent;
        object.holds += 1;
        oid
    }

    /// The same for an object that is lent already. One that nobody refers to any more has left the table, and is not to come back: it is
    /// about to be withdrawn.
    pub(super) fn hold_again(&self, key: &[u8]) -> Option<u64> {
        let mut table = lock(&self.table);
        let oid = *table.oids.get(key)?;
        let object = table.objects.get_mut(&oid).filter(|object| object.lent)?;
        object.holds += 1;
        Some(oid)
    }

    /// It keeps it no longer.
    pub(super) fn let_go(&self, oid: u64) -> Option<ReleasedObject> {
        let mut table = lock(&self.table);
        let object = table.objects.get_mut(&oid)?;
        object.holds = object.holds.saturating_sub(1);
        self.forget_if_unused(&mut table, oid)
    }

    /// Ping sets do not keep an object that nobody refers to.
    fn forget_if_unused(&self, table: &mut Table, oid: u64) -> Option<ReleasedObject> {
        let object = table.objects.get(&oid)?;
        (object.interfaces.is_empty() && object.holds == 0).then(|| self.forget(table, oid))?
    }

    /// The order of locks is kept: `table` is held by the caller, `ipids` is taken here.
    fn forget(&self, table: &mut Table, oid: u64) -> Option<ReleasedObject> {
        let object = table.objects.remove(&oid)?;
        table.oids.remove(&object.key);
        let mut ipids = self.ipids_mut();
        object.interfaces.iter().for_each(|held| disconnect(&mut ipids, held.ipid));
        drop(ipids);
        if let Some(owner) = &object.owner {
            table.give_back(owner);
        }
        let made = (object.owner.is_some() && object.passed.is_none()) || object.lent;
        let passed = object.passed.map(|(class, proxy)| {
            table.passed.remove(&(class, Arc::as_ptr(&proxy).addr()));
            self.passing.fetch_sub(1, Ordering::Relaxed);
            proxy
        });
        Some(ReleasedObject { key: object.key, made, _passed: passed })
    }

    /// An object that stands for one elsewhere, which was asked for by a class: the one there is, or a new one for its owner, for whom room
    /// was reserved. It is kept by one hold more.
    pub(super) fn stand_for(&self, class: &[u8], proxy: &Arc<Proxy>, owner: &Arc<str>) -> (Bytes, u64) {
        let mut table = lock(&self.table);
        let place = (Bytes::copy_from_slice(class), Arc::as_ptr(proxy).addr());
        if let Some(oid) = table.passed.get(&place).copied()
            && let Some(object) = table.objects.get_mut(&oid)
        {
            object.holds += 1;
            let key = object.key.clone();
            table.give_back(owner);
            return (key, oid);
        }
        let mut key = class.to_vec();
        key.push(SEPARATOR);
        key.extend_from_slice(format!("{:016x}", unguessable()).as_bytes());
        let (oid, object) = table.enter(&key);
        object.owner = Some(Arc::clone(owner));
        object.passed = Some((place.0.clone(), Arc::clone(proxy)));
        object.holds += 1;
        table.passed.insert(place, oid);
        self.passing.fetch_add(1, Ordering::Relaxed);
        (key.into(), oid)
    }

    /// What the object under a key stands for.
    pub(super) fn stands_for(&self, key: &[u8]) -> Option<Arc<Proxy>> {
        if self.passing.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let table = lock(&self.table);
        table.find(key)?.passed.as_ref().map(|(_, proxy)| Arc::clone(proxy))
    }

    /// Whether anything stands for an object elsewhere.
    pub(super) fn passes(&self) -> bool {
        self.passing.load(Ordering::Relaxed) > 0
    }

    /// The object is served no longer: its IPIDs are disconnected.
    pub(super) fn withdrawn(&self, key: &[u8]) {
        let mut table = lock(&self.table);
        let oid = table.oids.get(key).copied();
        let gone = oid.and_then(|oid| self.forget(&mut table, oid));
        drop(table);
        drop(gone);
    }

    /// A ping set got the object. Returns whether there is such an object.
    pub(super) fn join_set(&self, oid: u64) -> bool {
        match lock(&self.table).objects.get_mut(&oid) {
            Some(object) => {
                object.sets += 1;
                object.alive.store(true, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }

    /// A ping set lost the object. If the set itself expired, so has an object that nobody else pings or calls.
    /// `expired` is false when a client takes the object out itself: then its references decide.
    pub(super) fn leave_set(&self, oid: u64, expired: bool) -> Option<ReleasedObject> {
        let mut table = lock(&self.table);
        let object = table.objects.get_mut(&oid)?;
        object.sets = object.sets.saturating_sub(1);
        // A call in this period is as good as a ping.
        let dead = expired && object.sets == 0 && object.holds == 0 && object.pinged;
        if dead && !object.alive.load(Ordering::Relaxed) {
            return self.forget(&mut table, oid);
        }
        if object.sets == 0 {
            object.idle = 0;
        }
        None
    }

    /// A period is over: lets go objects that nobody pings nor calls (3.1.1.6.2).
    pub(super) fn tick(&self) -> Vec<ReleasedObject> {
        let mut table = lock(&self.table);
        let mut dead = Vec::new();
        for (oid, object) in &mut table.objects {
            let alive = object.alive.swap(false, Ordering::Relaxed);
            if alive || object.sets > 0 || object.holds > 0 || !object.pinged {
                object.idle = 0;
            } else {
                object.idle += 1;
                if object.idle >= MISSES {
                    dead.push(*oid);
                }
            }
        }
        dead.into_iter().filter_map(|oid| self.forget(&mut table, oid)).collect()
    }

    /// Objects and IPIDs.
    pub(super) fn counts(&self) -> (usize, usize) {
        let table = lock(&self.table);
        let ipids = self.ipids().len();
        (table.objects.len(), ipids)
    }

    fn oid_of(&self, ipid: Uuid) -> Option<u64> {
        self.ipids().get(&ipid).map(|slot| slot.oid)
    }

    fn ipids(&self) -> RwLockReadGuard<'_, HashMap<Uuid, Slot>> {
        self.ipids.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn ipids_mut(&self) -> RwLockWriteGuard<'_, HashMap<Uuid, Slot>> {
        self.ipids.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sessions remember what an IPID stands for: the flag tells them that it does no longer.
fn disconnect(ipids: &mut HashMap<Uuid, Slot>, ipid: Uuid) {
    if let Some(slot) = ipids.remove(&ipid) {
        slot.served.life.disconnected.store(true, Ordering::Relaxed);
    }
}

impl Table {
    /// The object under a key, with its number; a new one if there is none.
    fn enter(&mut self, key: &[u8]) -> (u64, &mut Exported) {
        let known = self.oids.get(key).copied();
        let oid = known.unwrap_or_else(|| unused(|oid| self.objects.contains_key(&oid)));
        let object = self.objects.entry(oid).or_insert_with(|| {
            let key = Bytes::copy_from_slice(key);
            self.oids.insert(key.clone(), oid);
            let alive = Arc::new(AtomicBool::new(true));
            Exported { key, pinged: true, alive, ..Exported::default() }
        });
        (oid, object)
    }

    /// The object under a key.
    fn find(&self, key: &[u8]) -> Option<&Exported> {
        self.objects.get(self.oids.get(key)?)
    }

    /// The counts of an interface, found by its IPID.
    fn exposed(&mut self, oid: u64, ipid: Uuid) -> Option<&mut InterfaceEntry> {
        self.objects.get_mut(&oid)?.interfaces.iter_mut().find(|held| held.ipid == ipid)
    }

    /// One object less for this owner; an owner without any leaves no entry.
    fn give_back(&mut self, owner: &str) {
        if let Some(count) = self.made.get_mut(owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.made.remove(owner);
            }
        }
    }
}
