//! A configuration whose addresses, contracts and interfaces were looked up: what can run.
//!
//! It is made in one pass over the file (`Plan::of`): wires of the listeners; then of each route its targets,
//! its contract and interface, the key that callers name, and the listener that faces the targets; then what
//! only all routes together show (copies, objects that are served twice, circles). Mistakes are collected
//! with their places; a route with mistakes is left out, and the plan is refused if there are any.
//!
//! States: none; a plan is made, run, and dropped. Invariants: a plan has no mistakes; each of its routes has
//! a target, and all targets of one speak one wire; and nothing connects or listens while it is made. Files
//! are read: contracts, and what they include.

use crate::callers;
use crate::common;
use crate::config::{Config, CopyTo, EditConfig, Mistakes, Mode, RouteConfig, WithPosition, meant};
use crate::cross;
use crate::loops;
use crate::pass::plain;
use crate::places::{places, wire_at};
use crate::redirects;
use everywire::{Bytes, Interface, Node, Reference};
use everywire_idl::Preprocessing;
use everywire_model::{Contract, Edit, Failure, Header, Hold, Operation, Shape, Wire};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What can run.
pub(crate) struct Plan {
    /// What the file says.
    pub(crate) config: Config,
    /// The wire of each listener of the configuration.
    pub(crate) wires: Vec<&'static dyn Wire>,
    /// Whether callers of each listener can be called back over the connections that they make.
    pub(crate) calls_back: Vec<bool>,
    /// Its routes, in the order of the file.
    pub(crate) routes: Vec<RoutePlan>,
}

/// A route that can run.
#[derive(Clone)]
pub(crate) struct RoutePlan {
    /// What the file says of it.
    pub(crate) config: RouteConfig,
    /// Its contract; empty if it has none.
    pub(crate) contract: Arc<Contract>,
    /// The interface of its targets.
    pub(crate) interface: Hold<Interface>,
    /// What callers name: the object's key at the listeners. Empty for routes without a contract that name no
    /// object.
    pub(crate) key: Bytes,
    /// Numbers of its listeners.
    pub(crate) listens: Vec<usize>,
    /// The number of the listener by which targets call back what callers pass; `None`: such references are
    /// refused.
    pub(crate) callbacks: Option<usize>,
    /// What its targets call back over the connection that they are called by, as far as the contract tells.
    pub(crate) back: Option<Hold<Interface>>,
    /// Whether those calls go to callers, where a listener allows that.
    pub(crate) calls_back: bool,
    /// Its targets.
    pub(crate) targets: Vec<TargetPlan>,
}

/// A target that can be called.
#[derive(Clone)]
pub(crate) struct TargetPlan {
    /// The address as it stands in the file.
    pub(crate) text: String,
    /// What that means.
    pub(crate) reference: Reference,
    /// The wire that it is called by.
    pub(crate) wire: &'static dyn Wire,
}

/// Contracts that were read, by file and what its preprocessor was given; `None`: it has mistakes, which were
/// told.
type Contracts = HashMap<(String, Vec<PathBuf>, Vec<String>), Option<Arc<Contract>>>;

impl Plan {
    /// Looks everything up. `node` reads addresses and connects to nothing.
    ///
    /// # Errors
    /// All that is wrong, each with its place.
    pub(crate) fn of(config: Config, node: &Node) -> Result<Self, Mistakes> {
        let mut mistakes = Mistakes::default();
        let mut wires = Vec::new();
        for listen in &config.listens {
            wires.extend(wire_at(&config.file, listen.spot, &listen.address, &mut mistakes));
        }
        if wires.len() < config.listens.len() {
            // What each route names can be looked up all the same.
            let mut contracts = Contracts::new();
            for route in &config.routes {
                targets(&config.file, route, node, &mut mistakes);
                described(&config.file, route, &mut contracts, &mut mistakes);
            }
            return mistakes.or(Self { config, wires, calls_back: Vec::new(), routes: Vec::new() });
        }
        let calls_back = places(&config, &wires, node, &mut mistakes);
        let mut contracts = Contracts::new();
        let mut routes = Vec::new();
        for route in &config.routes {
            routes.extend(look_up(&config, route, &wires, node, &mut contracts, &mut mistakes));
        }
        for route in &routes {
            copies_fit(&config, route, &routes, &mut mistakes);
        }
        same_objects(&config, &routes, &mut mistakes);
        // A route with mistakes may keep calls from another one, and break a circle.
        if mistakes.0.is_empty() {
            for circle in loops::find(&config, &wires, &routes) {
                let Some(to) = routes.get(circle.route).and_then(|route| route.config.to.get(circle.target))
                else {
                    continue;
                };
                let message = format!("every call would go round: {}", circle.way.join(" to "));
                let hint = "the target is a listener of this broker; name the server behind it";
                mistakes.add(&config.file, to.spot, message, Some(hint.into()));
            }
        }
        mistakes.or(Self { config, wires, calls_back, routes })
    }
}

/// Looks up what one route names. `None`, if there were mistakes: all that were found are noted.
fn look_up(
    config: &Config,
    route: &RouteConfig,
    wires: &[&'static dyn Wire],
    node: &Node,
    contracts: &mut Contracts,
    mistakes: &mut Mistakes,
) -> Option<RoutePlan> {
    let file = &config.file;
    let before = mistakes.0.len();
    let number = |name: &str| config.listens.iter().position(|listen| listen.name == name);
    let listens: Vec<usize> = match route.from.as_slice() {
        [] => (0..config.listens.len()).collect(),
        named => named.iter().filter_map(|name| number(name)).collect(),
    };
    callers::are_known(config, route, &listens, node, mistakes);
    let targets = targets(file, route, node, mistakes);
    if targets.windows(2).any(|pair| matches!(pair, [left, right] if left.wire.name() != right.wire.name())) {
        mistakes.add(file, route.name.spot, "all targets of a route speak one wire", None);
    }
    if let Some(target) = targets.first() {
        let callers: Vec<&dyn Wire> = listens.iter().filter_map(|at| wires.get(*at).copied()).collect();
        edits_fit(file, route, &callers, target.wire, mistakes);
        headers_come(file, route, &callers, mistakes);
    }
    if *route.mode == Mode::Redirect {
        redirects::check(file, route, &listens, wires, mistakes);
    }
    if route.contract.is_none() {
        let plan = opaque(config, route, wires, listens, targets, mistakes)?;
        return (mistakes.0.len() == before).then_some(plan);
    }
    if let Some(key) = route.matches.key.as_ref().filter(|key| !key.is_plain()) {
        let message = format!("`{}`: a route with a contract has one object", key.value);
        mistakes.add(file, key.spot, message, Some("give one key, or leave the contract out".into()));
    }
    if let Some(pattern) = route.oneway.first() {
        let message = "`oneway` is for routes without a contract: a contract says itself what has no answer";
        mistakes.add(file, pattern.spot, message, None);
    }
    let (contract, interface) = described(file, route, contracts, mistakes)?;
    let target = targets.first()?;
    let key = key(route, &interface, target, &listens, wires);
    if *route.mode == Mode::Redirect {
        let others = |wire: &&&dyn Wire| wire.capabilities().redirects && wire.name() != target.wire.name();
        for listen in listens.iter().filter_map(|at| wires.get(*at)).filter(others) {
            let (here, there) = (listen.name(), target.wire.name());
            let message = format!("a caller on {here} cannot be sent to a target on {there}");
            let hint = Some("use mode = \"forward\", or targets of the same wire".into());
            mistakes.add(file, route.name.spot, message, hint);
        }
    }
    if let Some(config_of) = redirects::without_contract(route, &key, &listens, wires) {
        let plan = opaque(config, &config_of, wires, listens, targets, mistakes)?;
        return (mistakes.0.len() == before).then_some(plan);
    }
    let callbacks = match &route.callbacks {
        Some(name) => number(name),
        // One that faces the targets: of their wire, rather not one by which callers come. Without one, no references go that way, as a
        // check tells.
        None => {
            let fits = |at: &usize| wires.get(*at).is_some_and(|wire| wire.name() == target.wire.name());
            let all = 0..config.listens.len();
            all.clone().filter(fits).find(|at| !listens.contains(at)).or_else(|| all.clone().find(fits))
        }
    };
    let callers = listens.iter().filter_map(|at| wires.get(*at).copied());
    let back = callers.chain([target.wire]).find_map(|wire| wire.callbacks(&contract, &interface)).cloned();
    let calls_back = back.is_some()
        && *route.mode == Mode::Forward
        && targets.iter().all(|target| target.called_back(&Bytes::new()).is_some());
    let config = route.clone();
    let plan = RoutePlan { config, contract, interface, key, listens, callbacks, back, calls_back, targets };
    let place = route.callbacks.as_ref().map_or(route.name.spot, |name| name.spot);
    for (message, hint) in plan.astray(wires) {
        mistakes.add(file, place, message, Some(hint));
    }
    (mistakes.0.len() == before).then_some(plan)
}

/// The targets of a route, without those that are wrong.
fn targets(file: &str, route: &RouteConfig, node: &Node, mistakes: &mut Mistakes) -> Vec<TargetPlan> {
    let mut targets = Vec::new();
    for text in &route.to {
        let Some(wire) = wire_at(file, text.spot, text, mistakes) else { continue };
        match node.parse(text) {
            Ok(reference) if !reference.profiles.iter().all(|way| wire.carries_futures(way)) => {
                let message =
                    "a broker cannot call this: each of its interfaces is on a connection of its own";
                let hint = "its callers call it without a broker";
                mistakes.add(file, text.spot, message, Some(hint.into()));
            }
            Ok(reference) => targets.push(TargetPlan { text: text.value.clone(), reference, wire }),
            Err(failure) => {
                mistakes.add(file, text.spot, failure.to_string(), failure.hint().map(Into::into));
            }
        }
    }
    targets
}

/// The contract and the interface that a route names; none where it names no contract, or there were mistakes.
fn described(
    file: &str,
    route: &RouteConfig,
    contracts: &mut Contracts,
    mistakes: &mut Mistakes,
) -> Option<(Arc<Contract>, Hold<Interface>)> {
    let contract = read(file, route, contracts, mistakes)?;
    let interface = interface(file, route, &contract, mistakes)?;
    operations(file, route, &interface, mistakes);
    Some((contract, interface))
}

/// Looks whether the wires that changes of headers go out on have such headers. If not, each call would fail of one that is brought, and one that is
/// to be removed would never be found.
fn edits_fit(
    file: &str,
    route: &RouteConfig,
    callers: &[&dyn Wire],
    target: &dyn Wire,
    mistakes: &mut Mistakes,
) {
    for EditConfig { edit, spot, answers, .. } in &route.edits {
        let wires = if *answers { callers } else { &[target][..] };
        if let Some((wire, failure)) = refused(edit, wires) {
            let message = format!("{}: {}", wire.name(), failure.message());
            mistakes.add(file, *spot, message, failure.hint().map(Into::into));
        }
    }
}

/// Looks whether messages of the callers can have the headers that the route is for: else no call would ever be for it.
fn headers_come(file: &str, route: &RouteConfig, callers: &[&dyn Wire], mistakes: &mut Mistakes) {
    for (name, _) in &route.matches.header {
        let lacks = |wire: &&dyn Wire| {
            let failure = wire.codec().check_header(&Header::text(name.value.as_str(), "")).err()?;
            Some((wire.name(), failure))
        };
        // Of callers on several wires it may be for those on one.
        let lacking: Vec<_> = callers.iter().filter_map(lacks).collect();
        if let Some((wire, failure)) = lacking.first().filter(|_| lacking.len() == callers.len()) {
            let message = format!("{wire}: {}", failure.message());
            mistakes.add(file, name.spot, message, failure.hint().map(Into::into));
        }
    }
}

/// The first of some wires that has no such header as a change speaks of, and why.
fn refused<'w>(edit: &Edit, wires: &[&'w dyn Wire]) -> Option<(&'w dyn Wire, Failure)> {
    let removed;
    let header = match edit {
        Edit::Put(header) | Edit::Add(header) => header,
        Edit::Remove(name) => {
            removed = Header::text(name, "");
            &removed
        }
    };
    wires.iter().find_map(|wire| Some((*wire, wire.codec().check_header(header).err()?)))
}

/// A route that passes messages on as they came: one wire on both sides, and nothing that would need to read
/// values.
fn opaque(
    config: &Config,
    route: &RouteConfig,
    wires: &[&'static dyn Wire],
    listens: Vec<usize>,
    targets: Vec<TargetPlan>,
    mistakes: &mut Mistakes,
) -> Option<RoutePlan> {
    let file = &config.file;
    let target = targets.first()?;
    for wire in
        listens.iter().filter_map(|at| wires.get(*at)).filter(|wire| wire.name() != target.wire.name())
    {
        let (here, there) = (wire.name(), target.wire.name());
        let message = format!("from {here} to {there} nothing passes without a contract");
        mistakes.add(
            file,
            route.name.spot,
            message,
            Some(match route.name.spot.line {
                // The command line has options for it.
                0 => "give --contract FILE, and --interface NAME if it has several".into(),
                _ => "give the route `contract` and `interface`".into(),
            }),
        );
    }
    for (what, spot) in [
        ("interface", route.interface.as_ref().map(|interface| interface.spot)),
        ("callbacks", route.callbacks.as_ref().map(|name| name.spot)),
        ("validate", route.validate.as_ref().filter(|flag| flag.value).map(|flag| flag.spot)),
    ] {
        if let Some(spot) = spot {
            let hint = Some("give the route `contract`, or leave this out".into());
            mistakes.add(file, spot, format!("`{what}` needs a contract"), hint);
        }
    }
    for copy in &route.copies {
        if let CopyTo::Route(name) = &copy.to {
            let message = format!("a copy by the route `{name}` needs a contract");
            mistakes.add(file, copy.spot, message, Some("copy to a file or a program".into()));
        }
    }
    let own = target.reference.profiles.first().map(|profile| profile.key.clone()).unwrap_or_default();
    let key = match &route.matches.key {
        None => own,
        Some(key) if key.is_plain() => plain(key.text()),
        // Of many objects that fit, the target's is one, or none is known.
        Some(key) if key.fits(&target.wire.key_word(&own)) => own,
        Some(_) => Bytes::new(),
    };
    let (contract, interface) = (Arc::new(Contract::default()), Hold::Static(&crate::pass::ANY));
    let config = route.clone();
    let (callbacks, back, calls_back) = (None, None, false);
    Some(RoutePlan { config, contract, interface, key, listens, callbacks, back, calls_back, targets })
}

/// Reads a route's contract, once for all routes that name it alike.
fn read(
    file: &str,
    route: &RouteConfig,
    contracts: &mut Contracts,
    mistakes: &mut Mistakes,
) -> Option<Arc<Contract>> {
    let name = route.contract.as_ref()?;
    let id = (name.value.clone(), route.include.clone(), route.define.clone());
    if let Some(known) = contracts.get(&id) {
        return known.clone();
    }
    let given = Preprocessing { directories: route.include.clone(), macros: Vec::new() };
    let given = route.define.iter().fold(given, |given, option| given.define(option));
    let path = Path::new(&name.value);
    let found = if path.is_file() {
        everywire_idl::read_with(path, &given).map_err(|diagnostics| {
            (format!("the contract `{}` has mistakes:\n{diagnostics}", name.value), None)
        })
    } else {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let near = neighbours(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        let last = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Err((format!("there is no contract `{}`", name.value), meant(&last, near.iter().map(String::as_str))))
    };
    let found = match found {
        Ok(contract) => Some(Arc::new(contract.with_known_types())),
        Err((message, hint)) => {
            mistakes.add(file, name.spot, message, hint);
            None
        }
    };
    contracts.insert(id, found.clone());
    found
}

/// Names of the contracts beside a file.
fn neighbours(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| everywire_idl::language_of(name).is_some()).collect()
}

/// The interface of a route: the one that it names, by the full name or by its last part if that is clear; or
/// the only one of its contract.
fn interface(
    file: &str,
    route: &RouteConfig,
    contract: &Contract,
    mistakes: &mut Mistakes,
) -> Option<Hold<Interface>> {
    let names: Vec<&str> = contract.interfaces().map(|interface| interface.name.as_ref()).collect();
    let told = || if names.is_empty() { "no interface".into() } else { names.join(", ") };
    let Some(wanted) = &route.interface else {
        let mut all = contract.interfaces();
        let (first, second) = (all.next(), all.next());
        if let (Some(only), None) = (first, second) {
            return Some(only.clone());
        }
        let message =
            format!("route `{}` lacks `interface`: its contract defines {}", route.name.value, told());
        let spot = route.contract.as_ref().map_or(route.name.spot, |contract| contract.spot);
        mistakes.add(file, spot, message, None);
        return None;
    };
    if let Some(found) = contract.interface(wanted) {
        return Some(found.clone());
    }
    let mut short = contract.interfaces().filter(|interface| last_part(&interface.name) == wanted.value);
    match (short.next(), short.next()) {
        (Some(found), None) => Some(found.clone()),
        (first, _) => {
            let what = if first.is_some() { "more than one interface is" } else { "no interface is" };
            let message = format!("{what} called `{}`: the contract defines {}", wanted.value, told());
            let near = names.iter().flat_map(|name| [*name, last_part(name)]);
            mistakes.add(file, wanted.spot, message, meant(wanted, near));
            None
        }
    }
}

/// Each pattern of operations must fit an operation: one that fits none is a mistake of spelling, and would
/// let calls be tried again, or pass by, unnoticed.
fn operations(file: &str, route: &RouteConfig, interface: &Interface, mistakes: &mut Mistakes) {
    let known = || interface.operations.iter().map(|operation| operation.label.as_ref());
    for WithPosition { value: pattern, spot } in route.matches.operation.iter().chain(&route.idempotent) {
        if !interface.operations.iter().any(|held| pattern.fits(&held.label) || pattern.fits(&held.name)) {
            let message = format!("{} has no operation `{pattern}`", interface.name);
            mistakes.add(file, *spot, message, meant(pattern.text(), known()));
        }
    }
}

/// What callers name: as the route says, else as the target is called where all speak its wire, else the interface's last name.
fn key(
    route: &RouteConfig,
    interface: &Interface,
    target: &TargetPlan,
    listens: &[usize],
    wires: &[&'static dyn Wire],
) -> Bytes {
    if let Some(key) = &route.matches.key {
        return plain(key.text());
    }
    let alike = listens.iter().all(|at| wires.get(*at).is_some_and(|wire| wire.name() == target.wire.name()));
    let named = target.reference.profiles.first().map(|profile| profile.key.clone());
    match named.filter(|key| alike && !key.is_empty()) {
        Some(key) => key,
        None => Bytes::copy_from_slice(last_part(&interface.name).as_bytes()),
    }
}

impl RoutePlan {
    /// Whether it passes on what nobody here has a contract of.
    pub(crate) fn is_opaque(&self) -> bool {
        self.config.contract.is_none()
    }

    /// Whether a caller who asks a listener for an object can have one of its own at the targets, as COM has it.
    pub(crate) fn gives_own(&self) -> bool {
        let makes = |target: &TargetPlan| target.wire.makes_objects();
        !self.is_opaque() && *self.config.mode == Mode::Forward && self.targets.iter().all(makes)
    }

    /// Whether a reference of this type may be to objects of any interface of the contract: it promises nothing, or what interfaces of
    /// other languages begin with (COM's `IUnknown`), which no contract defines. What such a reference itself says then decides.
    pub(crate) fn is_any(&self, id: &str) -> bool {
        let begins = |interface: &Hold<Interface>| interface.is_a(id);
        id.is_empty() || (self.contract.interface(id).is_none() && self.contract.interfaces().any(begins))
    }

    /// Whether a reference of this type can be passed on: to objects of the contract, to such as every contract may have, or to any object that
    /// says itself what it is.
    pub(crate) fn passes(&self, id: &str) -> bool {
        self.contract.interface(id).is_some()
            || self.is_any(id)
            || common::common(&|interface| interface.id == *id).is_some()
    }

    /// References that would lead nowhere: to the broker where the targets cannot reach it.
    fn astray(&self, wires: &[&'static dyn Wire]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let there = self.targets.first().map(|target| target.wire);
        let mut near = self.listens.iter().filter_map(|at| wires.get(*at).copied());
        if !near.any(cross::has_references) || !there.is_some_and(cross::has_references) {
            // None passes: what has one is refused when it is called, as a check tells.
            return found;
        }
        let wanted = self.config.matches.operation.as_ref();
        let is_for = |operation: &&Operation| {
            wanted.is_none_or(|pattern| pattern.fits(&operation.label) || pattern.fits(&operation.name))
        };
        for operation in self.interface.operations.iter().filter(is_for) {
            for (name, _) in referents(&operation.arguments) {
                let there = self.targets.first().map(|target| target.wire.name()).unwrap_or_default();
                let fits = |at: usize| wires.get(at).is_some_and(|wire| wire.name() == there);
                if self.config.callbacks.is_some() && !self.callbacks.is_some_and(fits) {
                    found.push((
                            format!("`{}` passes a {name} to the target, which calls it on {there}, and no listener here speaks {there}", operation.label),
                            format!("add a listener of {there} that the target reaches, and name it with `callbacks`"),
                        ));
                }
            }
        }
        found.dedup();
        found
    }
}

/// The interfaces that references in a shape promise, by name and identity.
pub(crate) fn referents(shape: &Shape) -> Vec<(String, String)> {
    let found = std::cell::RefCell::new(Vec::new());
    cross::any(shape, &mut Vec::new(), &|shape| {
        if let Shape::Reference(referent) = shape {
            let name = if referent.name.is_empty() {
                "reference to any object".into()
            } else {
                referent.name.to_string()
            };
            let one = (name, referent.id.to_string());
            if !found.borrow().contains(&one) {
                found.borrow_mut().push(one);
            }
        }
        false
    });
    found.into_inner()
}

/// A route that gets copies takes what the other one takes, and its wire has what is changed before the copy.
fn copies_fit(config: &Config, route: &RoutePlan, routes: &[RoutePlan], mistakes: &mut Mistakes) {
    for copy in &route.config.copies {
        let CopyTo::Route(name) = &copy.to else { continue };
        let other = routes.iter().find(|other| other.config.name.value == *name);
        if other.is_some_and(|other| other.interface.id != route.interface.id) {
            let message = format!("`{name}` is of another interface than {}", route.interface.name);
            mistakes.add(&config.file, copy.spot, message, None);
        }
        // What is changed before the copy is taken goes out on the other route's wire, too.
        let Some(target) = other.and_then(|other| other.targets.first()) else { continue };
        for EditConfig { edit, spot, .. } in
            route.config.edits.iter().filter(|edit| edit.before_copy && !edit.answers)
        {
            if let Some((wire, failure)) = refused(edit, &[target.wire]) {
                let message = format!("{}, where `{name}` takes a copy: {}", wire.name(), failure.message());
                mistakes.add(&config.file, *spot, message, failure.hint().map(Into::into));
            }
        }
    }
}

/// Routes that share an object at a listener are of one contract.
fn same_objects(config: &Config, routes: &[RoutePlan], mistakes: &mut Mistakes) {
    for (at, route) in routes.iter().enumerate() {
        let clash = routes.iter().take(at).find(|other| {
            other.key == route.key
                && other.interface.id == route.interface.id
                && other.listens.iter().any(|listen| route.listens.contains(listen))
                && other.config.contract.as_ref().map(|c| &c.value)
                    != route.config.contract.as_ref().map(|c| &c.value)
        });
        if let (Some(other), Some(contract)) = (clash, &route.config.contract) {
            let name = &other.config.name.value;
            let message = format!("route `{name}` serves the same object by another contract");
            mistakes.add(&config.file, contract.spot, message, None);
        }
    }
}

/// The last part of a scoped name.
pub(crate) fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
