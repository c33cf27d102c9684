//! What the keeper asks other nodes for: pings, references, releases (MS-DCOM 3.2.4.4, 3.2.6.1).
//!
//! All of it waits for answers, so it runs on the keeper's thread, or on others that may wait (pings: `PINGS_AT_ONCE`), never on
//! one that serves connections; `ask` has a limit of time for each request.
//!
//! States: for each resolver a `ClientSet` says what that resolver knows (set number, sequence, OIDs,
//! failures in a row). It is changed by answers alone. After `FAILURES` in a row it is empty, and the
//! resolver is tried once in `RETRY` periods.
//!
//! Invariants: no lock is held while another node is asked, but that of whoever gives references back
//! (`flush`). A node that was made up by a peer costs little: `STRANGERS` bounds how many are asked for the
//! first time in one go, one that cannot be reached is not asked again in the same go, and this node does not
//! show its account to a node it never called.

use super::Exporter;
use super::imports::{InterfaceResult, Proxy, RemoteOxid};
use super::pinger::{ClientSet, Resolver};
use crate::bindings::TOWER_TCP;
use crate::hresult::{self, E_NOINTERFACE, OR_INVALID_OID, OR_INVALID_SET, RPC_E_DISCONNECTED, S_OK};
use crate::limits::REFS_AT_ONCE;
use crate::lock::lock;
use crate::remunknown::{self, PUBLIC_REFS, Query, Refs, refs_request};
use crate::resolver::{self, ComplexPing, opnum};
use crate::security::Level;
use crate::standard::object_exporter::OBJECT_EXPORTER;
use crate::standard::rem_unknown::REM_UNKNOWN;
use crate::stub::Get;
use everywire_idl::midl;
use everywire_model::{Body, Endpoint, Failure, Initiator, Kind, Object};
use std::collections::HashSet;
use std::sync::{Mutex, Weak};
use uuid::Uuid;

/// Pings in a row that a resolver may leave unanswered before its set is taken for lost.
const FAILURES: u32 = 3;
/// Of how many periods one is used to look for a resolver that was lost.
const RETRY: u32 = 8;
/// Nodes never asked before that the keeper asks in one go. Whoever makes up references may make up addresses, too; what is not
/// given back there is run down.
const STRANGERS: usize = 16;
/// Resolvers that are pinged at the same time.
const PINGS_AT_ONCE: usize = 16;
/// OIDs in one ComplexPing.
const OIDS_AT_ONCE: usize = 8192;

impl Exporter {
    /// A period is over: every resolver is told what is held here (3.2.6.1).
    /// Some are asked at the same time, and those that answered the last ping come first, so that silent ones hold up nobody.
    pub(super) fn ping(&self) {
        let lingering = std::mem::take(&mut *lock(&self.pinger.lingering));
        // Without the lock: dropping a proxy enters others.
        drop(lingering);
        // What is held now is compared with what each resolver knows; nothing is told when a proxy comes or
        // goes.
        let held = self.imports.pinged();
        // What is held no longer needs no ping: the set runs down there by itself.
        let mut sets = std::mem::take(&mut *lock(&self.pinger.sets));
        let mut asked: Vec<_> = held
            .into_iter()
            .map(|(resolver, oids)| {
                let set = sets.remove(&resolver).unwrap_or_default();
                (resolver, set, oids.into_iter().collect())
            })
            .collect();
        asked.sort_by_key(|(_, set, _)| (set.failures, set.id == 0));
        let threads = asked.len().min(PINGS_AT_ONCE);
        let next = Mutex::new(asked.iter_mut());
        let work = || {
            while let Some((resolver, set, oids)) = { lock(&next).next() } {
                self.ping_set(resolver, set, oids);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Where there are no more threads, this one does it all.
                let _ =
                    std::thread::Builder::new().name("everywire-ping".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        *lock(&self.pinger.sets) = asked.into_iter().map(|(resolver, set, _)| (resolver, set)).collect();
    }

    /// Tells a resolver what is held of it, unless it was silent too often.
    fn ping_set(&self, resolver: &Resolver, set: &mut ClientSet, oids: &HashSet<u64>) {
        if set.failures >= FAILURES && !set.failures.is_multiple_of(RETRY) {
            set.failures += 1;
        } else if self.ping_one(resolver, set, oids).is_ok() {
            set.failures = 0;
        } else {
            set.failures += 1;
            if set.failures >= FAILURES {
                // By now the resolver has forgotten the set, or has itself been started anew.
                *set = ClientSet { failures: set.failures, ..ClientSet::default() };
            }
        }
    }

    /// SimplePing if nothing has changed, else as many ComplexPings as the changes need. A set that the
    /// resolver has forgotten is built anew, once.
    fn ping_one(&self, resolver: &Resolver, set: &mut ClientSet, held: &HashSet<u64>) -> Result<(), Failure> {
        let (ways, security) = resolver;
        let ask = |number, stub: &[u8]| self.ask((ways, security), None, (&OBJECT_EXPORTER, number), stub);
        if set.id != 0 && set.objects == *held {
            let body = ask(opnum::SIMPLE_PING, &resolver::simple_ping_request(set.id))?;
            match resolver::parse_status_reply(Get::of(&body))? {
                S_OK => return Ok(()),
                OR_INVALID_SET => *set = ClientSet { failures: set.failures, ..ClientSet::default() },
                status => return Err(refused("SimplePing", status)),
            }
        }
        // A set without a number is made by the first ComplexPing.
        let mut add: Vec<u64> = held.difference(&set.objects).copied().collect();
        let mut remove: Vec<u64> = set.objects.difference(held).copied().collect();
        let mut renewed = false;
        while !add.is_empty() || !remove.is_empty() {
            set.sequence = set.sequence.wrapping_add(1);
            let ping = ComplexPing {
                set: set.id,
                sequence: set.sequence,
                add: add.split_off(add.len().saturating_sub(OIDS_AT_ONCE)),
                remove: remove.split_off(remove.len().saturating_sub(OIDS_AT_ONCE)),
            };
            let body = ask(opnum::COMPLEX_PING, &resolver::complex_ping_request(&ping))?;
            match resolver::parse_complex_ping_reply(Get::of(&body))? {
                // An OID that is gone there is no failure of the set; the next call to the object shows it.
                (id, _, S_OK | OR_INVALID_OID) => {
                    set.id = id;
                    set.objects.extend(&ping.add);
                    ping.remove.iter().for_each(|oid| {
                        set.objects.remove(oid);
                    });
                }
                (_, _, OR_INVALID_SET) if !renewed => {
                    renewed = true;
                    *set = ClientSet { failures: set.failures, ..ClientSet::default() };
                    add = held.iter().copied().collect();
                    remove.clear();
                }
                (_, _, status) => return Err(refused("ComplexPing", status)),
            }
        }
        Ok(())
    }

    /// Gives references back that no call carried away. An exporter that would have to be told who this node is, and that
    /// nobody here ever called, is not told: whoever sends a reference could have this node prove its name to anybody. What
    /// such a one exported is run down there.
    pub(super) fn flush(&self) {
        // Another thread may be at it: whoever waits for the end of this waits for what that one has taken, too.
        let _one = lock(&self.imports.flushing);
        let releasing = std::mem::take(&mut *lock(&self.imports.releasing));
        let mut strangers = SilentNodes::default();
        for oxid in releasing {
            // From here on it is queued again by whoever gives up another reference.
            oxid.settled();
            // Taken in any case: what cannot be given back is forgotten here, and runs down there.
            let releases = oxid.take_releases();
            let known = oxid.resolution().is_some() || oxid.security().level == Level::None;
            if !releases.is_empty() && known && strangers.admit(&oxid) {
                strangers.learn(&oxid, self.release_at(&oxid, &releases));
            }
            self.imports.prune(&oxid);
        }
    }

    /// Stops at the first part that fails: what remains is run down there.
    fn release_at(&self, oxid: &RemoteOxid, releases: &[(Uuid, u32)]) -> Result<(), Failure> {
        for part in releases.chunks(REFS_AT_ONCE) {
            let refs: Vec<_> = part.iter().map(|&(ipid, public)| Refs { ipid, public, private: 0 }).collect();
            self.ask_exporter(oxid, remunknown::opnum::REM_RELEASE, &refs_request(&refs))?;
        }
        Ok(())
    }

    /// Asks for references where there are none left (3.2.4.4.1).
    pub(super) fn ask_for_references(&self) {
        let wanting = std::mem::take(&mut *lock(&self.pinger.wanting));
        let mut strangers = SilentNodes::default();
        for proxy in wanting.iter().filter_map(Weak::upgrade) {
            // An object whose references are not to be had is found gone by the next call to it.
            if strangers.admit(proxy.oxid()) {
                strangers.learn(proxy.oxid(), self.add_refs(&proxy));
            }
        }
    }

    /// RemAddRef (3.1.1.5.6.1.2) for all interfaces of an object of which this process holds no reference. An
    /// exporter answers with one HRESULT for each; an interface that is refused stays without references, and
    /// the next call by it shows whether it still exists.
    fn add_refs(&self, proxy: &Proxy) -> Result<(), Failure> {
        let ipids = proxy.unheld();
        let refs: Vec<_> = ipids.iter().map(|&ipid| Refs { ipid, public: PUBLIC_REFS, private: 0 }).collect();
        if refs.is_empty() {
            return Ok(());
        }
        let number = remunknown::opnum::REM_ADD_REF;
        let body = self.ask_exporter(proxy.oxid(), number, &refs_request(&refs))?;
        let (results, _) = remunknown::parse_add_ref_reply(Get::of(&body))?;
        for (ipid, result) in ipids.into_iter().zip(results) {
            if result == S_OK {
                proxy.gain(ipid, PUBLIC_REFS);
            }
        }
        Ok(())
    }

    /// Whether an object elsewhere has the interface with this identity. One that was not called yet is reached first.
    ///
    /// # Errors
    /// The object cannot be asked.
    pub(super) fn has_interface(&self, object: &Object, interface: &str) -> Result<bool, Failure> {
        let iid = midl::iid_of_id(interface);
        let proxy = |object: &Object| {
            let found = object.target().found_at();
            let reference = found.as_ref().unwrap_or_else(|| object.reference());
            reference.profiles.iter().find_map(|profile| profile.lease.share::<Proxy>())
        };
        if proxy(object).is_none() {
            object.target().probe()?;
        }
        let known = proxy(object).ok_or_else(|| {
            let what = "the object is known by its address alone, and cannot be asked for an interface";
            Failure::unsupported(what)
        })?;
        self.query(&known, iid)
    }

    /// Asks an object elsewhere for an interface, unless it came by it, and waits: whether it has it (3.2.4.4.3).
    pub(crate) fn query(&self, proxy: &Proxy, iid: Uuid) -> Result<bool, Failure> {
        if proxy.ipid(iid).is_some() {
            return Ok(true);
        }
        let query = Query { ipid: proxy.any_ipid(), refs: PUBLIC_REFS, iids: vec![iid] };
        let number = remunknown::opnum::REM_QUERY_INTERFACE;
        let body = self.ask_exporter(proxy.oxid(), number, &remunknown::query_request(&query))?;
        match proxy.learn_answer(Get::of(&body), body.base, &[iid])?.first() {
            Some(InterfaceResult { hresult: S_OK, .. }) => Ok(true),
            Some(InterfaceResult { hresult: E_NOINTERFACE, .. }) | None => Ok(false),
            Some(InterfaceResult { hresult, .. }) => Err(hresult::failure(*hresult, None)),
        }
    }

    /// Calls an exporter's IRemUnknown.
    fn ask_exporter(&self, oxid: &RemoteOxid, number: u16, stub: &[u8]) -> Result<Body, Failure> {
        let ipid = self.locate(oxid)?;
        let ways = oxid.exporter_ways().unwrap_or_default();
        self.ask((&ways, &oxid.security()), Some(ipid), (&REM_UNKNOWN, number), stub)
    }

    /// The IPID of the exporter's IRemUnknown; asks its resolver if that is not known yet.
    fn locate(&self, oxid: &RemoteOxid) -> Result<Uuid, Failure> {
        if let Some(resolved) = oxid.resolution() {
            return Ok(resolved.rem_unknown);
        }
        let stub = resolver::resolve_oxid2_request(oxid.id(), &[TOWER_TCP]);
        let call = (&OBJECT_EXPORTER, opnum::RESOLVE_OXID2);
        let body = self.ask((&oxid.ways, &oxid.security), None, call, &stub)?;
        let reply = resolver::parse_resolve_reply(Get::of(&body), true)?;
        let resolved = reply.map_err(|status| refused("ResolveOxid2", status))?;
        let ipid = resolved.rem_unknown;
        oxid.resolve(resolved, None);
        Ok(ipid)
    }
}

/// Nodes that were asked for the first time, or in vain.
#[derive(Default)]
struct SilentNodes {
    asked: usize,
    silent: HashSet<Vec<Endpoint>>,
}

impl SilentNodes {
    /// Whether an exporter is to be asked for something.
    fn admit(&mut self, oxid: &RemoteOxid) -> bool {
        if self.silent.contains(&oxid.ways) {
            return false;
        }
        if oxid.resolution().is_some() {
            return true;
        }
        self.asked += 1;
        self.asked <= STRANGERS
    }

    /// Whoever cannot be reached is not asked again in the same go.
    fn learn(&mut self, oxid: &RemoteOxid, answer: Result<(), Failure>) {
        if answer.is_err_and(|failure| {
            matches!(failure.kind(), Kind::Unreachable | Kind::TimedOut | Kind::Refused)
        }) {
            self.silent.insert(oxid.ways.clone());
        }
    }
}

/// The failure of a resolver that answers with a status.
fn refused(what: &str, status: u32) -> Failure {
    Failure::new(Kind::NoObject, Initiator::Peer, format!("{what} was refused"))
        .with_code(format!("{:#010x}", if status == S_OK { RPC_E_DISCONNECTED } else { status }))
}
