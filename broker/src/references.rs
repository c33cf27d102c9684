//! References that pass in bodies: each becomes one to the broker, which calls the object that was meant.
//!
//! What was passed on is remembered both ways: the same object gets the same reference again, and a reference
//! to the broker that comes back from the other side becomes the one that it stands for. Keys are random (128
//! bits), so that nobody calls what was not given to them.
//!
//! State: two maps under one lock, which change together. An object stays until its target says that it is no
//! more (`forget`), or its route or listener goes (`keep`). Where the listener counts references, it is *lent*: each reference that passes
//! has a lease, and once nobody refers to it any more, here or elsewhere, it is withdrawn and forgotten, and what it stood for is released.
//! Where nobody counts, those that were not used for the longest time make room at the route's limit. Before them go those
//! behind which nobody answered last time; where all are lent, more are refused. Objects that are passed on are served by the
//! listener of the side that gets them, each by a route of its own (`Route::behind`), which shares this table:
//! references in its calls are replaced, too. A change of the configuration keeps the table of a route with the
//! same name.
//!
//! Invariants: the table has no lease of what it gives, so that it keeps nothing that is lent; its leases of what was meant are dropped only
//! when the lock is free, since with the last one objects may end, which is told to this table.

use crate::balance::Candidate;
use crate::common;
use crate::frontend::Frontend;
use crate::interfaces::{self, DiscoveredObject, Question};
use crate::route::Route;
use everywire::{Bytes, Failure, Initiator, Kind, Reference};
use everywire_model::shape::Referent;
use everywire_model::{Endpoint, Hold, Interface, Resolver};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// References that a route passes on at one time unless it says otherwise: 2^16, some hundred bytes each.
pub(crate) const MOST: u64 = 65_536;
/// Where a route has so many, one makes room for the next; where it has more, one in so many does.
const ROOM: usize = 64;

/// What stands for what, on one route.
#[derive(Default)]
pub(crate) struct References {
    /// Whether nobody answered behind one of them since room was last looked for.
    missed: AtomicBool,
    /// Numbers uses of what was given: the next one's number.
    uses: AtomicU64,
    /// Both directions, under one lock.
    held: Mutex<ReferenceMap>,
}

#[derive(Default)]
struct ReferenceMap {
    /// The key that is given in the place of another reference.
    given: HashMap<MappingKey, Bytes>,
    /// What stands behind a key.
    meant: HashMap<Bytes, Mapping>,
}

/// What stands behind a key: what was meant, and what was given for it.
struct Mapping {
    /// Where it was given, and what is meant.
    place: MappingKey,
    /// What was given for it, without a lease.
    given: Reference,
    /// Whether it is lent: it ends with the last reference to it.
    lent: bool,
    /// The number of its last use.
    used: Arc<AtomicU64>,
    /// The route to it, which its gate holds.
    route: Weak<Route>,
    /// The listener that serves it.
    at: Weak<Frontend>,
}

impl ReferenceMap {
    /// Forgets some, which are still to be withdrawn.
    fn lose(&mut self, lost: impl Fn(&Mapping) -> bool) -> Vec<(Bytes, Mapping)> {
        let lost: Vec<_> = self.meant.extract_if(|_, meant| lost(meant)).collect();
        lost.iter().for_each(|(_, meant)| drop(self.given.remove(&meant.place)));
        lost
    }

    /// Forgets those that were not used for the longest time, of those whose end nobody tells: one in `ROOM` of all, since all are looked
    /// at for that.
    fn lose_unused(&mut self) -> Vec<(Bytes, Mapping)> {
        let uncounted = self.meant.values().filter(|meant| !meant.lent);
        let mut uses: Vec<u64> = uncounted.map(|meant| meant.used.load(Ordering::Relaxed)).collect();
        let most = uses.len() / ROOM;
        let Some((_, last, _)) = (!uses.is_empty()).then(|| uses.select_nth_unstable(most)) else {
            return Vec::new();
        };
        let last = *last;
        self.lose(|meant| !meant.lent && meant.used.load(Ordering::Relaxed) <= last)
    }
}

/// Has objects served no longer. Not under the lock: their routes end.
fn withdraw(lost: Vec<(Bytes, Mapping)>) {
    for (key, meant) in lost {
        if let Some(frontend) = meant.at.upgrade() {
            frontend.withdraw(&key);
        }
    }
}

/// Where the listener is at which something is given, whether to callers of the route, and what is meant.
type MappingKey = (String, bool, Reference);

/// Who gets a reference, and who gave it.
pub(crate) struct ReferenceFlow<'w> {
    /// The listener of the side that gets it, and that of the side that gave it.
    pub(crate) to: Option<&'w Arc<Frontend>>,
    pub(crate) back: Option<&'w Arc<Frontend>>,
    /// Whether it is given to those who call the route, and not to its targets.
    pub(crate) to_callers: bool,
    /// Objects that were asked for more interfaces.
    pub(crate) found: &'w [DiscoveredObject],
}

impl ReferenceFlow<'_> {
    /// Where something is given, and what is meant.
    fn mapping(&self, to: &Frontend, original: &Reference) -> MappingKey {
        (to.bound().to_owned(), self.to_callers, original.clone())
    }
}

impl References {
    fn held(&self) -> MutexGuard<'_, ReferenceMap> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reference that whoever is on the side of `to` gets in the place of `original`, which came from the
    /// side of `back`. Nil stays nil.
    ///
    /// # Errors
    /// No listener faces that side, the contract does not define the interface, or the limit is reached. The
    /// call is not sent, or its results are lost: it says which.
    pub(crate) fn lead(
        &self,
        route: &Arc<Route>,
        referent: &Referent,
        original: Reference,
        resolver: &dyn Resolver,
        way: &ReferenceFlow<'_>,
    ) -> Result<Reference, Failure> {
        if original.profiles.is_empty() {
            return Ok(original);
        }
        if let Some(meant) = self.stands_for(&original) {
            return Ok(meant);
        }
        let to = way.to.ok_or_else(|| {
            Failure::new(
                Kind::Unsupported,
                Initiator::Here,
                "this route passes no references that way: no listener of the broker faces the target",
            )
        })?;
        let place = way.mapping(to, &original);
        loop {
            if let Some(given) = self.given_before(to, &place) {
                return Ok(given);
            }
            // Another thread may be faster.
            if let Some(given) = self.give(route, referent, &original, resolver, way, to)? {
                return Ok(given);
            }
        }
    }

    /// What was given in the place of a reference, if that is still there.
    fn given_before(&self, to: &Arc<Frontend>, place: &MappingKey) -> Option<Reference> {
        let held = self.held();
        let key = held.given.get(place)?.clone();
        let meant = held.meant.get(&key)?;
        meant.used.store(self.next_use(), Ordering::Relaxed);
        let (given, lent) = (meant.given.clone(), meant.lent);
        drop(held);
        if !lent {
            return Some(given);
        }
        let again = to.node.lend_again(&key, &given.type_id);
        if again.is_none() {
            // It ends at this moment.
            self.forget(&key);
        }
        again
    }

    /// Serves what is to stand for a reference; nothing, if something does already.
    fn give(
        &self,
        route: &Arc<Route>,
        referent: &Referent,
        original: &Reference,
        resolver: &dyn Resolver,
        way: &ReferenceFlow<'_>,
        to: &Arc<Frontend>,
    ) -> Result<Option<Reference>, Failure> {
        let found = way.found.iter().find(|found| found.reference == *original);
        let (interface, others) = match found.and_then(|found| found.interfaces.split_first()) {
            Some((first, others)) => (first.clone(), others),
            None => (interface(route, referent, original, to.wire.makes_objects())?, &[][..]),
        };
        let object = resolver.resolve(original)?.typed(interface.clone());
        let key = random_key()?;
        let back = way.back.map(Arc::downgrade);
        let used = Arc::new(AtomicU64::new(self.next_use()));
        let behind = Route::behind(route, interface.clone(), object, back, way.to_callers, Arc::clone(&used));
        let place = way.mapping(to, original);
        let mut held = self.held();
        if held.given.contains_key(&place) {
            // Without the lock: the other lease of the original goes.
            drop(held);
            return Ok(None);
        }
        let lost = self.make_room(&mut held, route.most_references);
        if held.meant.len() >= route.most_references {
            drop(held);
            withdraw(lost);
            let most = u64::try_from(route.most_references).unwrap_or(u64::MAX);
            return Err(Failure::over_limit(
                Initiator::Here,
                "references passed on by this route",
                most + 1,
                most,
            )
            .with_hint("raise `references` of the route"));
        }
        self.hear_of_end(route, to, &key);
        let type_id = interface.id.to_string();
        let (at, own) = (Arc::downgrade(to), Arc::downgrade(&behind));
        let given = to.serve(&key, interface, Arc::clone(&behind));
        for other in others {
            to.serve(&key, other.clone(), interfaces::by(&behind, other));
        }
        let leased = to.node.lend_exported(&key, &type_id);
        let lent = leased.profiles.iter().any(|profile| !profile.lease.is_empty());
        held.given.insert(place.clone(), key.clone());
        held.meant.insert(key, Mapping { place, given: given.clone(), lent, used, route: own, at });
        let count = held.meant.len();
        drop(held);
        if !lost.is_empty() {
            let ended = lost.len();
            route.log.detail("references made room", || {
                vec![("route", (*route.name).into()), ("ended", ended.to_string().into())]
            });
        }
        withdraw(lost);
        route.metrics.references.set(gauge(count));
        Ok(Some(if lent { leased } else { given }))
    }

    /// Takes out what makes room for one more, which is still to be withdrawn.
    fn make_room(&self, held: &mut ReferenceMap, most: usize) -> Vec<(Bytes, Mapping)> {
        let mut lost = Vec::new();
        if held.meant.len() >= most && self.missed.swap(false, Ordering::AcqRel) {
            let answers = |route: Arc<Route>| route.targets.iter().any(Candidate::is_healthy);
            lost = held.lose(|meant| !meant.route.upgrade().is_some_and(answers));
        }
        if held.meant.len() >= most {
            lost.extend(held.lose_unused());
        }
        lost
    }

    /// Has the listener tell when it serves an object no longer, before it does.
    fn hear_of_end(&self, route: &Arc<Route>, to: &Arc<Frontend>, key: &Bytes) {
        let (references, metrics) = (Arc::downgrade(&route.references), route.metrics.clone());
        let ended = key.clone();
        to.node.on_end(key, move || {
            if let Some(left) = references.upgrade().and_then(|references| references.forget(&ended)) {
                metrics.references.set(left);
            }
        });
    }

    /// The number of a use that begins.
    pub(crate) fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }

    /// What an object is to be asked before its reference is passed on; nothing, if that was passed on before, or if the contract has no
    /// interface that it might have beside the one by which it would be passed.
    pub(crate) fn question(
        &self,
        route: &Arc<Route>,
        referent: &Referent,
        original: &Reference,
        resolver: &dyn Resolver,
        way: &ReferenceFlow<'_>,
    ) -> Option<Question> {
        let to = way.to.filter(|_| !original.profiles.is_empty())?;
        // Its callers ask by themselves (`interfaces::find`).
        if to.wire.makes_objects() || self.stands_for(original).is_some() {
            return None;
        }
        if self.held().given.contains_key(&way.mapping(to, original)) {
            return None;
        }
        let known = interface(route, referent, original, false).ok()?;
        let object = resolver.resolve(original).ok()?.typed(known.clone());
        Question::new(&route.contract, original, object, known)
    }

    /// What a reference of ours stands for, if it is one: the key is known, and one of its addresses is ours.
    fn stands_for(&self, reference: &Reference) -> Option<Reference> {
        let held = self.held();
        reference.profiles.iter().find_map(|profile| {
            let meant = held.meant.get(&profile.key)?;
            let ours = meant.given.profiles.iter().any(|own| {
                own.wire == profile.wire
                    && own.endpoints.iter().any(|endpoint| profile.endpoints.contains(endpoint))
            });
            ours.then(|| meant.place.2.clone())
        })
    }

    /// Whether an object is served under this key.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.held().meant.contains_key(key)
    }

    /// Whether one of the objects is there.
    pub(crate) fn leads_to(&self, place: &Endpoint) -> bool {
        let held = self.held();
        let mut profiles = held.meant.values().flat_map(|meant| &meant.place.2.profiles);
        profiles.any(|profile| profile.endpoints.contains(place))
    }

    /// Nobody answers behind one of them, whose target knows that.
    pub(crate) fn missed(&self) {
        self.missed.store(true, Ordering::Release);
    }

    /// The object behind a key is no more. How many are left for the metrics, if it was one of these.
    pub(crate) fn forget(&self, key: &[u8]) -> Option<i64> {
        let mut held = self.held();
        let meant = held.meant.remove(key)?;
        held.given.remove(&meant.place);
        let left = gauge(held.meant.len());
        drop(held);
        // Without the lock: what it stood for may end with it.
        drop(meant);
        Some(left)
    }

    /// From now on there are no other listeners than these: what was given at others is forgotten, and served no longer. How many are left,
    /// for the metrics.
    pub(crate) fn keep(&self, frontends: &[Arc<Frontend>]) -> i64 {
        let mut held = self.held();
        let stays =
            |meant: &Mapping| frontends.iter().any(|frontend| meant.at.ptr_eq(&Arc::downgrade(frontend)));
        let lost = held.lose(|meant| !stays(meant));
        let left = gauge(held.meant.len());
        drop(held);
        withdraw(lost);
        left
    }
}

/// A call of an object behind a reference failed.
pub(crate) fn noted(route: &Route, near: Option<&Arc<Frontend>>, key: &[u8], kind: Kind) {
    match (kind, near) {
        // It is no more: nobody needs its reference.
        (Kind::NoObject, Some(near)) => {
            if let Some(left) = route.references.forget(key) {
                near.withdraw(key);
                route.metrics.references.set(left);
            }
        }
        (Kind::Unreachable, _) => {
            route.targets.iter().for_each(|target| target.missed());
            route.references.missed();
        }
        _ => {}
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The interface by which an object is passed on: the one its reference names if it is known, else the one that the contract
/// promises. `asks`: whoever gets it asks the object itself what else it is.
fn interface(
    route: &Route,
    referent: &Referent,
    original: &Reference,
    asks: bool,
) -> Result<Hold<Interface>, Failure> {
    // COM's `IUnknown` promises nothing, also of interfaces that are not derived from it in their contract's language.
    let is_any = referent.id.is_empty()
        || common::common(&|any| any.id == referent.id && any.operations.is_empty()).is_some();
    let promised = |interface: &Interface| is_any || interface.is_a(&referent.id);
    // One that says nothing, such as COM's `IUnknown`.
    let is_bare = |interface: &Interface| {
        interface.operations.is_empty() && route.contract.interface(&interface.id).is_none()
    };
    let named = |interface: &Interface| {
        interface.id == original.type_id && promised(interface) && (asks || !is_bare(interface))
    };
    let known = common::known(&route.contract, &named).or_else(|| {
        common::known(&route.contract, &|interface| interface.id == referent.id && !is_bare(interface))
    });
    known.ok_or_else(|| {
        if original.type_id == referent.id && !referent.id.is_empty() {
            // COM's `IUnknown`, which foreign programs write for every object that they pass so.
            let message = format!(
                "a reference that says no more than {} cannot be passed on: only its interface tells what may be called there",
                referent.name
            );
            return Failure::new(Kind::Unsupported, Initiator::Here, message)
                .with_hint("pass it as the interface that the contract defines");
        }
        let what =
            if original.type_id.is_empty() { "of no known interface" } else { original.type_id.as_str() };
        let message =
            format!("a reference {what} cannot be passed on: the route's contract does not define it");
        Failure::new(Kind::Unsupported, Initiator::Here, message)
    })
}

/// A key that nobody guesses.
pub(crate) fn random_key() -> Result<Bytes, Failure> {
    let mut octets = [0_u8; 16];
    getrandom::fill(&mut octets).map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("there are no random numbers: {error}"))
    })?;
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    Ok(Bytes::from(format!("via-{digits}")))
}
