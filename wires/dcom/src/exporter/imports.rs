//! Objects elsewhere, and what this node holds of them (MS-DCOM 3.2.1).
//!
//! States: a `Proxy` is made for the first OBJREF of an object and shared by all references to it, as their
//! lease. It gains interfaces and references (`learn`, `gain`), gives single references away (`split`), or all that
//! came for somebody else (`hand_over`), and gives those that are left back when it is dropped. A `RemoteOxid` is shared by the proxies of one exporter; its
//! `resolution` is empty until a resolver was asked, and may be replaced by a newer one. References to be
//! given back gather in `releases` until a call to that exporter carries them away, or the keeper does after
//! 100 ms.
//!
//! Invariants: there is one live proxy for each object of an exporter, and one `RemoteOxid` for each OXID,
//! resolver and security; the same OXID at another resolver is another exporter, so a liar cannot redirect
//! other objects. A proxy keeps `PROXY_INTERFACES` interfaces at the most; what comes beyond goes back at
//! once. `waiting` is the length of `releases`, read without the lock. `queued` is set while the exporter
//! stands in `releasing`.

use super::clock::Clock;
use super::node_bindings::{bindings_of, endpoints};
use crate::bindings::{DualStringArray, RESOLVER_PORT};
use crate::hresult::S_OK;
use crate::limits::PROXY_INTERFACES;
use crate::lock::lock;
use crate::objref::{ObjRef, StdObjRef};
use crate::remunknown::parse_query_reply;
use crate::resolver::OxidResolution;
use crate::security::Security;
use crate::stub::Get;
use crate::tags::TAG_RESOLVER;
use crate::{IUNKNOWN, VERSION};
use bytes::Bytes;
use everywire_model::{Endpoint, Failure, Lease, Objects, Profile};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use uuid::Uuid;

/// What this process holds of one object elsewhere; lives in [`everywire_model::Profile::lease`]. When its last copy is dropped,
/// its references are given back and its OID is pinged no longer.
pub struct Proxy {
    this: Weak<Self>,
    oxid: Arc<RemoteOxid>,
    oid: u64,
    /// Whether its resolver is to be pinged for it: not with SORF_NOPING.
    pinged: bool,
    interfaces: Mutex<Vec<InterfaceEntry>>,
}

/// One interface of an object elsewhere. `refs` may be 0: a reference that came without counts (a copy that
/// somebody else holds) can be called, and `add_refs` of the housekeeper gets references of its own for it.
#[derive(Debug, Clone, Copy)]
struct InterfaceEntry {
    iid: Uuid,
    ipid: Uuid,
    /// Public references that this process holds on it.
    refs: u32,
}

impl Proxy {
    fn new(oxid: Arc<RemoteOxid>, std: &StdObjRef) -> Arc<Self> {
        // Wine has nobody who takes pings.
        let pinged = std.flags & StdObjRef::NO_PING == 0 && !oxid.security.dialect.is_wine();
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            oxid,
            oid: std.oid,
            pinged,
            interfaces: Mutex::default(),
        })
    }

    /// The exporter it is at.
    pub fn oxid(&self) -> &Arc<RemoteOxid> {
        &self.oxid
    }

    /// How its exporter is called, or its resolver if it is not known where the exporter is.
    pub fn security(&self) -> Arc<Security> {
        self.oxid.security()
    }

    /// The IPID of an interface, if it was asked for before.
    pub fn ipid(&self, iid: Uuid) -> Option<Uuid> {
        lock(&self.interfaces).iter().find(|held| held.iid == iid).map(|held| held.ipid)
    }

    /// Any IPID of the object, to ask for others.
    pub fn any_ipid(&self) -> Uuid {
        lock(&self.interfaces).first().map(|held| held.ipid).unwrap_or_default()
    }

    /// The interface that it came as.
    pub fn first_iid(&self) -> Uuid {
        lock(&self.interfaces).first().map_or(IUNKNOWN, |held| held.iid)
    }

    /// Keeps an interface that the object was asked for, with its references.
    /// An IPID that is known by another interface stands there twice: each is found by its IID.
    pub fn learn(&self, iid: Uuid, std: &StdObjRef) {
        let mut interfaces = lock(&self.interfaces);
        let full = interfaces.len() >= PROXY_INTERFACES;
        let is_kept = match interfaces.iter_mut().find(|held| held.ipid == std.ipid && held.iid == iid) {
            Some(held) => held.refs.checked_add(std.public_refs).map(|refs| held.refs = refs).is_some(),
            None if full => false,
            None => {
                interfaces.push(InterfaceEntry { iid, ipid: std.ipid, refs: std.public_refs });
                true
            }
        };
        drop(interfaces);
        if !is_kept && std.public_refs > 0 {
            self.oxid.release([(std.ipid, std.public_refs)]);
        }
    }

    /// Keeps the interfaces that the object was asked for by RemQueryInterface; the HRESULT of each. The results begin at octet `base`
    /// of their stub.
    ///
    /// # Errors
    /// The answer cannot be read.
    pub(crate) fn learn_answer(
        &self,
        results: Get<'_>,
        base: usize,
        iids: &[Uuid],
    ) -> Result<Vec<InterfaceResult>, Failure> {
        let parsed = parse_query_reply(results).map_err(|violation| violation.at(base))?;
        // One that has none of them answers with one status.
        let all = parsed.unwrap_or_else(|status| vec![Err(status); iids.len()]);
        let each = iids.iter().zip(all).map(|(iid, result)| match result {
            Ok(std) => {
                self.learn(*iid, &std);
                InterfaceResult { iid: *iid, hresult: S_OK, refs: std.public_refs }
            }
            Err(hresult) => InterfaceResult { iid: *iid, hresult, refs: 0 },
        });
        Ok(each.collect())
    }

    /// More references to an IPID were got from its exporter.
    pub(super) fn gain(&self, ipid: Uuid, refs: u32) {
        let mut interfaces = lock(&self.interfaces);
        let held = interfaces.iter_mut().filter(|held| held.ipid == ipid).min_by_key(|held| held.refs);
        if let Some(held) = held {
            held.refs = held.refs.saturating_add(refs);
            return;
        }
        drop(interfaces);
        self.oxid.release([(ipid, refs)]);
    }

    /// The IPIDs of which this process holds no reference.
    pub(super) fn unheld(&self) -> Vec<Uuid> {
        lock(&self.interfaces).iter().filter(|held| held.refs == 0).map(|held| held.ipid).collect()
    }

    /// Takes a reference away for somebody else (3.2.4.3), if there is more than one: the interface, and what names it with
    /// 1 or 0 references.
    /// The last reference is never given away: it keeps the object alive for this process.
    pub(super) fn split(&self, iid: Uuid) -> (Uuid, StdObjRef) {
        let mut interfaces = lock(&self.interfaces);
        let wanted = interfaces.iter().position(|held| held.iid == iid).unwrap_or(0);
        let (iid, ipid, public_refs) = match interfaces.get_mut(wanted) {
            Some(held) if held.refs > 1 => {
                held.refs -= 1;
                (held.iid, held.ipid, 1)
            }
            Some(held) => (held.iid, held.ipid, 0),
            None => (iid, Uuid::nil(), 0),
        };
        (iid, self.named(ipid, public_refs))
    }

    /// Takes references away for somebody who is their holder from now on: so many, or as many as there are. Unlike
    /// [`Proxy::split`] this gives the last one, too: whoever hands an object over keeps nothing of it.
    pub(super) fn hand_over(&self, iid: Uuid, refs: u32) -> Option<StdObjRef> {
        let mut interfaces = lock(&self.interfaces);
        let held = interfaces.iter_mut().find(|held| held.iid == iid)?;
        let refs = refs.min(held.refs);
        held.refs -= refs;
        Some(self.named(held.ipid, refs))
    }

    /// A STDOBJREF of this object that hands over so many references, which the caller has taken from its
    /// own.
    fn named(&self, ipid: Uuid, public_refs: u32) -> StdObjRef {
        let flags = if self.pinged { 0 } else { StdObjRef::NO_PING };
        StdObjRef { flags, public_refs, oxid: self.oxid.id, oid: self.oid, ipid }
    }

    /// An OBJREF of it that counts no reference: for printing.
    pub fn objref(&self) -> ObjRef {
        let std = self.named(self.any_ipid(), 0);
        ObjRef::Standard { iid: self.first_iid(), std, resolver: self.oxid.resolver.clone() }
    }

    /// The way to the object: to its exporter if that is known, else to the resolver. `via` is how it was heard of.
    pub(super) fn profile(&self, via: Option<&Profile>) -> Profile {
        let exporter = self.oxid.exporter_ways();
        let mut components = self.oxid.security.dialect.components(self.first_iid());
        if exporter.is_none() {
            components.push((TAG_RESOLVER, Bytes::new()));
        }
        let mut ways = exporter.unwrap_or_else(|| self.oxid.ways.clone());
        if let (true, Some(via)) = (ways.is_empty(), via) {
            ways.clone_from(&via.endpoints);
        }
        Profile {
            wire: "dcom",
            version: VERSION,
            endpoints: ways,
            key: Bytes::copy_from_slice(&self.any_ipid().to_bytes_le()),
            components,
            options: self.security().into(),
            lease: self.this.upgrade().map(|this| Lease::new(this)).unwrap_or_default(),
        }
    }
}

/// What came of the question for one interface of an object elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InterfaceResult {
    pub(crate) iid: Uuid,
    pub(crate) hresult: u32,
    /// References that came for it.
    pub(crate) refs: u32,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let interfaces = std::mem::take(&mut *lock(&self.interfaces));
        let refs = interfaces.iter().filter(|held| held.refs > 0).map(|held| (held.ipid, held.refs));
        self.oxid.release(refs);
        if let Some(imports) = self.oxid.imports.upgrade() {
            imports.forget(self);
        }
    }
}

/// An object exporter elsewhere.
#[derive(Default)]
pub struct RemoteOxid {
    id: u64,
    /// The bindings of its resolver, to be passed on.
    resolver: DualStringArray,
    /// Where its resolver is.
    pub(super) ways: Vec<Endpoint>,
    /// Whether bindings to sockets of this machine are believed.
    local: bool,
    /// How its resolver is called.
    pub(super) security: Arc<Security>,
    /// The tables that it stands in.
    imports: Weak<Imports>,
    resolution: Mutex<Option<Resolution>>,
    /// References to give back.
    releases: Mutex<HashMap<Uuid, u32>>,
    /// How many entries `releases` has, to be read without its lock.
    waiting: AtomicUsize,
    /// Whether it stands in `Imports::releasing` already, so that it is put there only once for each flush.
    queued: AtomicBool,
}

/// What a resolver said, and what follows from it.
struct Resolution {
    resolved: Arc<OxidResolution>,
    /// Where to connect to.
    ways: Vec<Endpoint>,
    /// How its calls are protected: as the resolver was asked, or at the higher level that the resolver hints
    /// at if there is an account to prove.
    security: Arc<Security>,
}

impl RemoteOxid {
    /// Its OXID.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it is called; before it is resolved, how its resolver is.
    pub fn security(&self) -> Arc<Security> {
        let resolution = lock(&self.resolution);
        Arc::clone(resolution.as_ref().map_or(&self.security, |held| &held.security))
    }

    /// The bindings of its resolver.
    pub fn bindings(&self) -> &DualStringArray {
        &self.resolver
    }

    /// Where it is, if that was resolved.
    pub fn resolution(&self) -> Option<Arc<OxidResolution>> {
        lock(&self.resolution).as_ref().map(|held| Arc::clone(&held.resolved))
    }

    /// Keeps where it is; `via` is how the resolver was reached, and so the way that is known to lead there comes first.
    /// With `exporter=here`, what the resolver says is ignored, and the way by which it was reached is used.
    pub(super) fn resolve(&self, resolved: OxidResolution, via: Option<&Profile>) {
        let mut ways = endpoints(&resolved.bindings, self.local, RESOLVER_PORT);
        if self.security.here {
            ways.clear();
        }
        // Resolvers name all addresses of their machine; the host that has just answered comes first.
        if let Some(host) = via.and_then(|via| via.endpoints.first()).and_then(host_of) {
            ways.sort_by_key(|way| (host_of(way) != Some(host), !self.security.may_show(way)));
        }
        if ways.is_empty() {
            ways.clone_from(via.map_or(&self.ways, |via| &via.endpoints));
        }
        let security = self.security.hinted(resolved.authn_hint);
        *lock(&self.resolution) = Some(Resolution { resolved: Arc::new(resolved), ways, security });
    }

    /// Where it is, in words for somebody who has never been there; nothing before it was resolved. With
    /// `exporter=here` that is the way by which it was reached, for its resolver, too.
    pub(super) fn told(&self) -> Option<(OxidResolution, DualStringArray)> {
        let resolution = lock(&self.resolution);
        let held = resolution.as_ref()?;
        let mut resolved = OxidResolution::clone(&held.resolved);
        if !self.security.here {
            return Some((resolved, self.resolver.clone()));
        }
        let resolver = DualStringArray { strings: bindings_of(&held.ways).strings, ..self.resolver.clone() };
        resolved.bindings.strings.clone_from(&resolver.strings);
        Some((resolved, resolver))
    }

    /// Where to connect to it, if that was resolved.
    pub(super) fn exporter_ways(&self) -> Option<Vec<Endpoint>> {
        lock(&self.resolution).as_ref().map(|held| held.ways.clone())
    }

    /// Whether references are to be given back: one relaxed load.
    pub fn has_releases(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// The references to be given back now: IPID and public references. Whoever takes them sends RemRelease.
    pub fn take_releases(&self) -> Vec<(Uuid, u32)> {
        let mut releases = lock(&self.releases);
        self.waiting.store(0, Ordering::Relaxed);
        releases.drain().collect()
    }

    /// Gives references back: with the next call to the exporter, or soon.
    fn release(self: &Arc<Self>, refs: impl IntoIterator<Item = (Uuid, u32)>) {
        let mut releases = lock(&self.releases);
        for (ipid, refs) in refs {
            let count = releases.entry(ipid).or_default();
            *count = count.saturating_add(refs);
        }
        let waiting = releases.len();
        self.waiting.store(waiting, Ordering::Relaxed);
        drop(releases);
        if waiting > 0
            && !self.queued.swap(true, Ordering::AcqRel)
            && let Some(imports) = self.imports.upgrade()
        {
            lock(&imports.releasing).push(Arc::clone(self));
            imports.clock.flush_soon(&imports.objects);
        }
    }

    /// The keeper has dealt with it; it is to be told again.
    pub(super) fn settled(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

/// The host of a network endpoint.
fn host_of(endpoint: &Endpoint) -> Option<&str> {
    match endpoint {
        Endpoint::Tcp { host, .. } => Some(host),
        _ => None,
    }
}

/// What tells exporters elsewhere apart: an OXID means something to its own resolver only.
pub(super) type OxidKey = (u64, Vec<Endpoint>, Arc<Security>);

/// The tables. Their locks, and those of proxies and exporters, are never held together, except that `queued` is read under
/// `tables`; no proxy is dropped and no code of anybody else's is entered under them.
pub(super) struct Imports {
    /// To make the housekeeper come when there is something to ping or to give back.
    clock: Arc<Clock>,
    objects: Arc<dyn Objects>,
    tables: Mutex<HashMap<OxidKey, Remote>>,
    /// Exporters with references to give back.
    pub(super) releasing: Mutex<Vec<Arc<RemoteOxid>>>,
    /// Held while references are given back, by whoever does so: what is taken from `releasing` is under way until then. Unlike the
    /// other locks it is held while exporters are asked, and those are taken under it.
    pub(super) flushing: Mutex<()>,
}

/// One exporter elsewhere, and all of its objects that this process knows.
#[derive(Default)]
struct Remote {
    /// The exporter, as long as a proxy or a pending release keeps it.
    oxid: Weak<RemoteOxid>,
    /// Proxies by OID. An entry may be dead for the moment between a proxy's end and its `forget`.
    proxies: HashMap<u64, Weak<Proxy>>,
}

/// Where an object came from. It decides which resolver is asked for the OXID and how that is done.
pub(super) struct Origin<'a> {
    pub(super) resolver: &'a DualStringArray,
    pub(super) security: &'a Arc<Security>,
    pub(super) local: bool,
    pub(super) via: Option<&'a Profile>,
}

impl Imports {
    /// Tables without an entry.
    pub(super) fn new(clock: Arc<Clock>, objects: Arc<dyn Objects>) -> Self {
        let (tables, releasing, flushing) = Default::default();
        Self { clock, objects, tables, releasing, flushing }
    }

    /// The proxy of an object, the one there is or a new one. Keeps the references that came.
    pub(super) fn adopt(self: &Arc<Self>, iid: Uuid, std: &StdObjRef, origin: &Origin<'_>) -> Arc<Proxy> {
        let mut resolver = origin.resolver.clone();
        let mut ways = endpoints(&resolver, origin.local, RESOLVER_PORT);
        if let (true, Some(via)) = (ways.is_empty(), origin.via) {
            ways.clone_from(&via.endpoints);
            resolver = bindings_of(&ways);
        }
        ways.sort_by_key(|way| !origin.security.may_show(way));
        // The security is part of the key: two accounts of this process do not share references.
        let key = (std.oxid, ways, Arc::clone(origin.security));
        let mut tables = lock(&self.tables);
        let held = tables.get(&key).and_then(|remote| {
            let oxid = remote.oxid.upgrade()?;
            Some((oxid, remote.proxies.get(&std.oid).and_then(Weak::upgrade)))
        });
        let proxy = match held {
            Some((_, Some(proxy))) => proxy,
            held => {
                let made = || RemoteOxid {
                    id: std.oxid,
                    resolver,
                    ways: key.1.clone(),
                    local: origin.local,
                    security: Arc::clone(origin.security),
                    imports: Arc::downgrade(self),
                    ..RemoteOxid::default()
                };
                let oxid = held.map_or_else(|| Arc::new(made()), |(oxid, _)| oxid);
                let proxy = Proxy::new(oxid, std);
                let remote = tables.entry(key).or_default();
                remote.oxid = Arc::downgrade(&proxy.oxid);
                remote.proxies.insert(std.oid, Arc::downgrade(&proxy));
                proxy
            }
        };
        drop(tables);
        proxy.learn(iid, std);
        proxy
    }

    /// A proxy is gone.
    fn forget(&self, proxy: &Proxy) {
        let key = key_of(&proxy.oxid);
        let mut tables = lock(&self.tables);
        if let Some(remote) = tables.get_mut(&key)
            // Another one may have taken its place already.
            && remote.proxies.get(&proxy.oid).is_some_and(|held| held.as_ptr() == std::ptr::from_ref(proxy))
        {
            remote.proxies.remove(&proxy.oid);
        }
        tidy(&mut tables, &key);
    }

    /// The keeper has given back what there was.
    pub(super) fn prune(&self, oxid: &RemoteOxid) {
        tidy(&mut lock(&self.tables), &key_of(oxid));
    }

    /// Every object elsewhere that is pinged, by resolver.
    pub(super) fn pinged(&self) -> HashMap<(Vec<Endpoint>, Arc<Security>), Vec<u64>> {
        let mut held: HashMap<_, Vec<u64>> = HashMap::new();
        // What is upgraded under the lock may be the last copy, and must not be dropped there.
        let mut kept = Vec::new();
        let tables = lock(&self.tables);
        for ((_, ways, security), remote) in &*tables {
            let proxies = remote.proxies.values().filter_map(Weak::upgrade);
            let mut oids = Vec::new();
            for proxy in proxies {
                if proxy.pinged {
                    oids.push(proxy.oid);
                }
                kept.push(proxy);
            }
            if !oids.is_empty() {
                held.entry((ways.clone(), Arc::clone(security))).or_default().append(&mut oids);
            }
        }
        drop(tables);
        drop(kept);
        held
    }

    /// Whether references are yet to be given back, or are under way.
    pub(super) fn owes(&self) -> bool {
        // In this order: what is no longer there when it is counted was taken by somebody who holds the lock until it is given back.
        self.counts().2 > 0 || self.flushing.try_lock().is_err()
    }

    /// Proxies, exporters, and references to give back.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let tables = lock(&self.tables);
        let proxies = tables.values().map(|remote| remote.proxies.len()).sum();
        let oxids = tables.len();
        drop(tables);
        let pending = lock(&self.releasing).iter().map(|oxid| oxid.waiting.load(Ordering::Relaxed)).sum();
        (proxies, oxids, pending)
    }
}

/// The entry of an exporter in the tables.
fn key_of(oxid: &RemoteOxid) -> OxidKey {
    (oxid.id, oxid.ways.clone(), Arc::clone(&oxid.security))
}

/// Forgets an exporter of which nothing is held. One that has references to give back stays until the keeper has done so: it
/// is often asked for the next object before that, and need not be resolved again.
fn tidy(tables: &mut HashMap<OxidKey, Remote>, key: &OxidKey) {
    let unused = |remote: &Remote| {
        let queued = remote.oxid.upgrade().is_some_and(|oxid| oxid.queued.load(Ordering::Acquire));
        remote.proxies.is_empty() && !queued
    };
    if tables.get(key).is_some_and(unused) {
        tables.remove(key);
    }
}
