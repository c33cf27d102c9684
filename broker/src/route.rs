//! A route as it runs: which calls it is for, where they go, and what they may take.
//!
//! There are two kinds. A route of the file is made with its configuration (`Route::new`). A route *behind*
//! another one is made for an object whose reference was passed on (`Route::behind`): it has that object
//! alone as its target, shares limits, lists, references and metrics of the first one, and is found by its
//! random key.
//!
//! States: none of its own; what changes (limits taken, breakers, lines of calls, references) is in the parts
//! that it owns. Invariants: a route never changes; another configuration has other routes, and calls under
//! way keep theirs. All that a call asks of it (facts of operations, patterns, headers that are told) was
//! worked out when it was made.
//!
//! CallerIdentity may call: `deny` first, then `allow`, which lets everybody through if it is empty; calls by targets,
//! of objects that callers have given to them, are not asked.

use crate::balance::Balancer;
use crate::breaker::Breaker;
use crate::callbacks::Backward;
use crate::check;
use crate::config::{Mode, WithPosition};
use crate::copies::{Copier, CopyContext};
use crate::cross::carries;
use crate::frontend::{Frontend, fingerprint};
use crate::hops;
use crate::interfaces;
use crate::limits::Limits;
use crate::log::Log;
use crate::metrics::{Metrics, RouteMetrics};
use crate::pass::{Edits, Lanes, Opaque, headers_fit};
use crate::plan::{RoutePlan, TargetPlan};
use crate::references::{MOST, References};
use crate::upstream::{FacingListener, TargetIdentity, Upstream};
use everywire::layer::{Caller, CallerIdentity, Pattern, Retry};
use everywire::model::failure::Completed;
use everywire::{Bytes, Failure, Initiator, Interface, Kind, Node, Object};
use everywire_model::{Contract, Headers, Hold, Request, Wire};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A route. Shared by the gates at which it is called, and by its calls under way.
pub(crate) struct Route {
    /// Its name, for logs and metrics.
    pub(crate) name: Arc<str>,
    /// Its contract; empty if it has none.
    pub(crate) contract: Arc<Contract>,
    /// The interface of its targets.
    pub(crate) interface: Hold<Interface>,
    /// What callers name; empty for objects behind references.
    pub(crate) key: Bytes,
    /// The numbers of its listeners; none of objects behind references.
    pub(crate) listens: Vec<usize>,
    /// What is known of each operation.
    pub(crate) facts: Vec<OperationInfo>,
    /// Whether objects may have an interface that is derived from the one by which their references pass.
    pub(crate) derives: bool,
    /// Where callers have to be; none: anywhere.
    peer: Vec<Caller>,
    /// CallerIdentity callers have to have proved to be.
    user: Option<Pattern>,
    /// CallerIdentity is let through.
    lists: Arc<Lists>,
    /// Whether those who call it are the route's callers, and not its targets.
    pub(crate) faces_callers: bool,
    /// Whether its targets call callers back over the connections that these have made, where a listener allows that.
    pub(crate) calls_back: bool,
    /// What becomes of a call.
    pub(crate) mode: Mode,
    /// Where calls go.
    pub(crate) targets: Vec<Arc<Upstream>>,
    /// Whether each caller may have an object of its own there.
    pub(crate) gives_own: bool,
    /// Which of them gets the next.
    pub(crate) balancer: Balancer,
    /// How much is let through.
    pub(crate) limits: Arc<Limits>,
    /// When a call is tried again.
    pub(crate) retry: Retry,
    /// Whether arguments are read before anything is copied or forwarded.
    pub(crate) validate: bool,
    /// The time limit of a call, with all its attempts.
    pub(crate) timeout: Duration,
    /// How often targets are asked whether they are there; `None`: never.
    pub(crate) probe: Option<Duration>,
    /// The listener by which targets call back.
    pub(crate) far: Option<Weak<Frontend>>,
    /// What stands for the references that pass.
    pub(crate) references: Arc<References>,
    /// Of an object behind a reference: the number of its last use among all of that table, for all its interfaces.
    pub(crate) used: Arc<AtomicU64>,
    /// How many may be held.
    pub(crate) most_references: usize,
    /// Where copies go.
    pub(crate) copies: Vec<Arc<Copier>>,
    /// What copies tell of it.
    pub(crate) subject: Arc<CopyContext>,
    /// Its counts.
    pub(crate) metrics: RouteMetrics,
    /// Where lines go.
    pub(crate) log: Log,
    /// Of a route without a contract: which calls it is for.
    pub(crate) opaque: Option<Opaque>,
    /// What must stand in headers for this route to be for a call: all of it.
    headers: Vec<(String, Pattern)>,
    /// What is changed in headers.
    pub(crate) edits: Edits,
    /// Brokers that a call may have passed; 0: nobody counts.
    pub(crate) hops: u32,
    /// What the targets' wire calls their count.
    pub(crate) hop: Option<&'static str>,
    /// Headers beside calls that have passed no other broker: the changes, and that count.
    pub(crate) told: Headers,
    /// Operations that no caller on a wire can be answered, by their numbers and the names of those wires, with why: mostly none.
    unanswerable: Vec<(usize, &'static str, String)>,
}

/// CallerIdentity is let through.
#[derive(Debug, Default)]
struct Lists {
    /// CallerIdentity may call; nobody named: everybody.
    allow: Vec<Caller>,
    /// CallerIdentity may not.
    deny: Vec<Caller>,
}

/// What a route knows of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationInfo {
    /// Whether the route is for it.
    matched: bool,
    /// Whether it may run twice, by the contract or by the route.
    pub(crate) idempotent: bool,
    /// Whether its arguments, or what it answers, may hold references.
    pub(crate) arguments_carry: bool,
    pub(crate) answers_carry: bool,
}

/// What routes share of their broker.
pub(crate) struct RouteContext<'w> {
    /// The node that calls targets.
    pub(crate) upstream: &'w Node,
    /// Counts.
    pub(crate) metrics: &'w Arc<Metrics>,
    /// Where lines go.
    pub(crate) log: &'w Log,
    /// Brokers that a call may pass; 0: nobody counts.
    pub(crate) hops: u32,
    /// The routes before this change.
    pub(crate) before: &'w [Arc<Route>],
    /// The wires of the listeners, by their numbers.
    pub(crate) wires: &'w [&'static dyn Wire],
}

impl Route {
    /// Makes a route of what can run.
    ///
    /// # Errors
    /// A target cannot be called by any of its ways.
    pub(crate) fn new(
        plan: &RoutePlan,
        far: Option<Weak<Frontend>>,
        mut copies: Vec<Arc<Copier>>,
        world: &RouteContext<'_>,
    ) -> Result<Arc<Self>, Failure> {
        let config = &plan.config;
        let timeout = config.timeout.unwrap_or(crate::config::TIMEOUT);
        let facing = far.as_ref().and_then(Weak::upgrade);
        let passes = passes_references(plan);
        // What was passed on before stays what it is.
        let before = world.before.iter().find(|route| *route.name == *config.name.value);
        let mut kept: Vec<Arc<Upstream>> = before.map(|route| route.targets.clone()).unwrap_or_default();
        let target = |target: &TargetPlan| -> Result<Arc<Upstream>, Failure> {
            let name = called(target);
            let identity = TargetIdentity {
                name: name.clone(),
                reference: target.reference.clone(),
                contract: print(plan),
                timeout,
                breaker: config.breaker,
                hops: world.hops,
                opaque: plan.is_opaque(),
                calls_back: plan.calls_back,
                faced: facing
                    .as_ref()
                    .filter(|_| passes)
                    .map(|frontend| FacingListener(Arc::downgrade(frontend))),
            };
            if let Some(at) = kept.iter().position(|target| target.is(&identity)) {
                return Ok(kept.swap_remove(at));
            }
            // References are given away by the node that serves what they lead to.
            let object = match facing.as_ref().filter(|_| passes) {
                Some(frontend) => frontend.node.resolve(&target.reference)?,
                None => world.upstream.resolve(&target.reference)?,
            };
            let object = object.with_deadline(Some(timeout));
            let object = object.typed(plan.interface.clone());
            let metrics = world.metrics.target(&config.name, &name);
            let breaker = config.breaker.map(Breaker::new);
            let (made, hops) = (target.wire.makes_objects(), world.hops);
            let lanes = match plan.callbacks_of() {
                Some((callbacks, service)) => {
                    let back = Backward::new(callbacks, service, world.metrics.route(&config.name));
                    let reference = target.called_back(&back.key);
                    reference.map(|reference| Lanes::new(reference, made, timeout, hops, Some(back)))
                }
                None => {
                    plan.is_opaque().then(|| Lanes::new(target.reference.clone(), made, timeout, hops, None))
                }
            };
            Ok(Upstream::new(
                name,
                object,
                target.wire.capabilities().oneway,
                breaker,
                Some(metrics),
                lanes,
                Some(identity),
            ))
        };
        let matched = |name: &str| config.matches.operation.as_ref().is_none_or(|pattern| pattern.fits(name));
        let facts = facts(&plan.interface, |label, name| {
            let fits = |pattern: &WithPosition<Pattern>| pattern.fits(label) || pattern.fits(name);
            (matched(label) || matched(name), config.idempotent.iter().any(fits))
        });
        copies.sort_by_key(|copier| !copier.is_required());
        let edits = Edits::new(config);
        let hop = plan.targets.first().and_then(|target| target.wire.hop_header()).filter(|_| world.hops > 0);
        let name: Arc<str> = config.name.value.as_str().into();
        let opaque = plan
            .targets
            .first()
            .filter(|_| plan.is_opaque())
            .map(|target| Opaque::new(config, &plan.key, target.wire));
        let wire = opaque.as_ref().map(|opaque| opaque.wire);
        let subject = CopyContext::new(Arc::clone(&name), plan.interface.clone(), wire, edits.copies.clone());
        Ok(Arc::new(Self {
            name,
            contract: Arc::clone(&plan.contract),
            interface: plan.interface.clone(),
            key: plan.key.clone(),
            listens: plan.listens.clone(),
            facts,
            derives: interfaces::derives(&plan.contract),
            peer: config.matches.peer.clone(),
            user: config.matches.user.clone(),
            lists: Arc::new(Lists { allow: config.allow.clone(), deny: config.deny.clone() }),
            faces_callers: true,
            calls_back: plan.calls_back,
            mode: config.mode.value,
            targets: plan.targets.iter().map(target).collect::<Result<_, _>>()?,
            gives_own: plan.gives_own(),
            balancer: Balancer::new(config.balance),
            limits: before
                .map(|route| &route.limits)
                .filter(|limits| limits.are(config.limit))
                .map_or_else(|| Limits::new(config.limit, Instant::now()), Arc::clone),
            retry: Retry::new(config.retries)
                .at_others(u32::try_from(plan.targets.len().saturating_sub(1)).unwrap_or(u32::MAX)),
            validate: config.validate.as_ref().is_some_and(|flag| flag.value),
            timeout,
            probe: config.probe,
            far,
            used: Arc::default(),
            references: before.map_or_else(Arc::default, |route| Arc::clone(&route.references)),
            most_references: usize::try_from(config.references.unwrap_or(MOST)).unwrap_or(usize::MAX),
            copies,
            subject,
            metrics: world.metrics.route(&config.name),
            log: world.log.clone(),
            opaque,
            headers: config
                .matches
                .header
                .iter()
                .map(|(name, pattern)| (name.value.clone(), pattern.clone()))
                .collect(),
            told: hops::beside(&edits.calls, hop, 1),
            unanswerable: unanswerable(plan, world.wires),
            edits,
            hops: world.hops,
            hop,
        }))
    }

    /// The route to an object behind a reference that this one passes on: calls to it are neither matched nor copied, and none is
    /// attempted twice. CallerIdentity may call this one may call that one; `faces_callers` says whether it is they who do.
    pub(crate) fn behind(
        &self,
        interface: Hold<Interface>,
        object: Object,
        far: Option<Weak<Frontend>>,
        faces_callers: bool,
        used: Arc<AtomicU64>,
    ) -> Arc<Self> {
        let wire =
            object.reference().profiles.iter().find_map(|profile| everywire::wires::named(profile.wire));
        // Behind a node of this process every operation is carried.
        let oneway = wire.is_none_or(|wire| wire.capabilities().oneway);
        let hop = wire.and_then(|wire| wire.hop_header()).filter(|_| self.hops > 0);
        let object = object.with_deadline(Some(self.timeout));
        let target = Upstream::new(String::from("(reference)"), object, oneway, None, None, None, None);
        Arc::new(Self {
            name: self.name.clone(),
            contract: Arc::clone(&self.contract),
            facts: facts(&interface, |_, _| (true, false)),
            derives: self.derives,
            interface,
            key: Bytes::new(),
            listens: Vec::new(),
            peer: Vec::new(),
            user: None,
            lists: Arc::clone(&self.lists),
            faces_callers,
            calls_back: false,
            mode: Mode::Forward,
            targets: vec![target],
            gives_own: false,
            balancer: Balancer::new(crate::config::Balance::First),
            limits: Arc::clone(&self.limits),
            retry: Retry::new(0),
            validate: false,
            timeout: self.timeout,
            probe: None,
            far,
            references: Arc::clone(&self.references),
            used,
            most_references: self.most_references,
            copies: Vec::new(),
            subject: Arc::clone(&self.subject),
            metrics: self.metrics.clone(),
            log: self.log.clone(),
            opaque: None,
            headers: Vec::new(),
            edits: Edits::default(),
            hops: self.hops,
            hop,
            told: hops::beside(&Headers::default(), hop, 1),
            unanswerable: Vec::new(),
        })
    }

    /// A call goes to the object behind a reference, if it is one.
    pub(crate) fn note_use(&self) {
        if self.is_behind_reference() {
            self.used.store(self.references.next_use(), Ordering::Relaxed);
        }
    }

    /// Whether it leads to an object behind a reference.
    pub(crate) fn is_behind_reference(&self) -> bool {
        self.opaque.is_none() && self.key.is_empty()
    }

    /// Why a call of this operation is refused on a wire before anything is sent, if it is: whatever it did, its caller could not be answered.
    pub(crate) fn unanswerable(&self, index: usize, near: &dyn Wire) -> Option<Failure> {
        let is_it = |held: &&(usize, &str, String)| held.0 == index && held.1 == near.name();
        let (.., why) = self.unanswerable.iter().find(is_it)?;
        let what = format!("the call is not sent, as it could not be answered: {why}");
        Some(Failure::new(Kind::Unsupported, Initiator::Peer, what).with_completed(Completed::No))
    }

    /// Whether it matters who calls.
    pub(crate) fn asks_who(&self) -> bool {
        let lists = self.faces_callers && !(self.lists.allow.is_empty() && self.lists.deny.is_empty());
        lists || !self.peer.is_empty() || self.user.is_some() || self.limits.counts_sources()
    }

    /// Whether it is for this call by this caller.
    pub(crate) fn is_for(&self, request: &Request, who: &CallerIdentity) -> bool {
        let named = match &self.opaque {
            Some(opaque) => opaque.is_for(request),
            None => self.facts.get(request.index()).is_some_and(|facts| facts.matched),
        };
        named
            && headers_fit(&self.headers, request.body())
            && (self.peer.is_empty() || self.peer.iter().any(|peer| peer.is(who)))
            && self.user.as_ref().is_none_or(|user| who.users.iter().any(|name| user.fits(name)))
    }

    /// Whether it lets this caller through: whoever is denied is not, whoever is allowed is, and others are where nobody is named as
    /// allowed. Targets are not asked: they call what callers gave to them.
    pub(crate) fn lets(&self, who: &CallerIdentity) -> bool {
        let Lists { allow, deny } = &*self.lists;
        !self.faces_callers
            || (!deny.iter().any(|caller| caller.is(who))
                && (allow.is_empty() || allow.iter().any(|caller| caller.is(who))))
    }
}

/// Whether references of callers may go to targets: in calls of these, or of objects to which references lead that come from them.
fn passes_references(plan: &RoutePlan) -> bool {
    let given =
        |interface: &Interface| interface.operations.iter().any(|operation| carries(&operation.arguments));
    let comes = plan.interface.operations.iter().any(|operation| carries(&operation.results));
    let takes = || {
        let mut targets = plan.targets.iter();
        let common = targets.any(|target| target.wire.common_interfaces().iter().any(|held| given(held)));
        common || plan.contract.interfaces().any(|interface| given(interface))
    };
    given(&plan.interface) || (comes && takes())
}

/// What connections to targets, and calls under way, go by in a contract.
fn print(plan: &RoutePlan) -> Vec<String> {
    let own = |interface: &Interface| {
        let signals = interface.signals.iter().map(|signal| {
            let fields =
                signal.fields.fields().iter().map(|field| format!("{}{}", field.name, field.shape.noun()));
            fields.fold(signal.name.to_string(), |print, field| print + ";" + &field)
        });
        let attributes = interface.attributes.iter().map(|attribute| attribute.name.to_string());
        let notes = interface.operations.iter().flat_map(|operation| operation.notes.iter());
        let notes = interface.notes.iter().chain(notes).map(|(name, value)| format!("{name}={value}"));
        let mut print = vec![interface.id.to_string(), fingerprint(interface)];
        print.extend(signals.chain(attributes).chain(notes));
        print
    };
    let back = plan.back.iter().flat_map(|back| own(back));
    own(&plan.interface).into_iter().chain(back).collect()
}

/// The operations of a route that callers on the listeners' wires can never be answered.
fn unanswerable(plan: &RoutePlan, wires: &[&'static dyn Wire]) -> Vec<(usize, &'static str, String)> {
    let far = plan.targets.first().map(|target| target.wire);
    let (Some(far), Mode::Forward) = (far, plan.config.mode.value) else { return Vec::new() };
    let mut all: Vec<(usize, &'static str, String)> = Vec::new();
    for near in plan.listens.iter().filter_map(|at| wires.get(*at)).filter(|near| near.name() != far.name()) {
        for (index, operation) in plan.interface.operations.iter().enumerate() {
            let is_known = all.iter().any(|held| held.0 == index && held.1 == near.name());
            let why = || check::unanswerable(operation, *near, far);
            all.extend((!is_known).then(why).flatten().map(|why| (index, near.name(), why)));
        }
    }
    all
}

/// What is known of each operation; `of` says whether the route is for it, and whether it may run twice, by
/// its name in the contract and on the wire.
fn facts(interface: &Interface, of: impl Fn(&str, &str) -> (bool, bool)) -> Vec<OperationInfo> {
    let each = interface.operations.iter().enumerate().map(|(index, operation)| {
        let (matched, idempotent) = of(&operation.label, &operation.name);
        let raised = |raised: &Hold<everywire_model::shape::Struct>| {
            raised.fields.iter().any(|field| carries(&field.shape))
        };
        OperationInfo {
            matched,
            idempotent: idempotent || interface.is_idempotent(index),
            arguments_carry: carries(&operation.arguments),
            answers_carry: carries(&operation.results) || operation.raises.iter().any(raised),
        }
    });
    each.collect()
}

/// What logs and metrics call a target: as the file does, unless that is a reference that only programs read.
fn called(target: &TargetPlan) -> String {
    let (written, friendly) = (shown(&target.text), target.wire.print_friendly(&target.reference));
    // Such a reference has each octet as two digits, and more octets than the address.
    if written.len() > 2 * friendly.len() { shown(&friendly) } else { written }
}

/// An address as logs and metrics may show it: without credentials and options.
pub(crate) fn shown(address: &str) -> String {
    let (plain, fragment) = match address.split_once('?') {
        Some((plain, options)) => (plain, options.split_once('#').map(|(_, fragment)| fragment)),
        None => (address, None),
    };
    let hidden = match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => plain.to_owned(),
    };
    match fragment {
        Some(fragment) => format!("{hidden}#{fragment}"),
        None => hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn no_password_is_shown() {
        for (address, plain) in [
            ("dcom://ada:secret@host:135/Class?level=call", "dcom://host:135/Class"),
            ("net.tcp+unix:///run/app.sock?users=x#Orders", "net.tcp+unix:///run/app.sock#Orders"),
            ("dbus:session/org.example.Bank/a", "dbus:session/org.example.Bank/a"),
            ("iiop+unix:///run/@app#k@y", "iiop+unix:///run/@app#k@y"),
        ] {
            assert_eq!(shown(address), plain);
        }
    }
}
