//! Routes that certainly lead back to themselves: told before anything runs.
//!
//! A target may be one of the broker's own listeners; then the route that serves what the target names gets the call. Whoever follows this from
//! route to route and comes back to where it began has found a circle in which every call would go round until it has passed too many
//! brokers ([`crate::hops`]). Invariant: what is told is certain. Listeners whose port is chosen later, hosts by other names, and routes that
//! are for some callers or headers only are left to the count of hops.

use crate::config::Config;
use crate::plan::{RoutePlan, TargetPlan};
use everywire_model::{BindAddress, Endpoint, Profile, Wire};
use std::collections::HashSet;

/// A circle: the number of the route that it was looked for from, the number of the target by which it
/// begins, and the names of the routes on the way, the first one again at the end.
pub(crate) struct RouteCycle {
    pub(crate) route: usize,
    pub(crate) target: usize,
    pub(crate) way: Vec<String>,
}

/// All circles, one for each route that is part of one.
pub(crate) fn find(config: &Config, wires: &[&'static dyn Wire], routes: &[RoutePlan]) -> Vec<RouteCycle> {
    let places: Vec<_> =
        config.listens.iter().zip(wires).map(|(listen, wire)| place(*wire, &listen.address)).collect();
    // The routes that certainly get what a route sends: at most one for each of its targets.
    let next = |from: usize| -> Vec<(usize, usize)> {
        let Some(route) = routes.get(from) else { return Vec::new() };
        let leads = |(number, target): (usize, &TargetPlan)| {
            let at =
                places.iter().position(|place| place.as_ref().is_some_and(|place| is_at(target, place)))?;
            Some((number, receiver(routes, route, target, at)?))
        };
        route.targets.iter().enumerate().filter_map(leads).collect()
    };
    // Looked up once: a file may have thousands of routes that lead to one another.
    let next: Vec<_> = (0..routes.len()).map(next).collect();
    let next = |from: usize| next.get(from).into_iter().flatten().copied();
    let mut circles = Vec::new();
    for from in 0..routes.len() {
        // Each route is looked at once, from the one that it was come to by.
        let mut seen: Vec<(usize, usize, usize)> = Vec::new();
        let mut known = HashSet::new();
        let mut at = 0;
        let mut steps = next(from).map(|(target, to)| (to, usize::MAX, target)).collect::<Vec<_>>();
        // Breadth first: so the circle that is told is the shortest.
        loop {
            for step in steps.drain(..) {
                if known.insert(step.0) {
                    seen.push(step);
                }
            }
            let Some((here, back, target)) = seen.get(at).copied() else { break };
            if here == from {
                circles.push(RouteCycle { route: from, target, way: way(routes, from, back, &seen) });
                break;
            }
            // The target of the first route by which it began.
            steps = next(here).map(|(_, to)| (to, at, target)).collect();
            at += 1;
        }
    }
    circles
}

/// Names of the routes from one on to itself; `back` is where the last step came from.
fn way(routes: &[RoutePlan], from: usize, back: usize, seen: &[(usize, usize, usize)]) -> Vec<String> {
    let name = |at: usize| routes.get(at).map(|route| route.config.name.value.clone()).unwrap_or_default();
    let mut all = vec![name(from)];
    let mut at = back;
    while let Some((here, before, _)) = seen.get(at).copied() {
        all.push(name(here));
        at = before;
    }
    all.push(name(from));
    all.reverse();
    all
}

/// Where a listener will be, as far as its address says.
fn place(wire: &'static dyn Wire, address: &str) -> Option<BindAddress> {
    // Options that are the runtime's are no part of it.
    let plain = address.split_once('?').map_or(address, |(plain, _)| plain);
    wire.listen(address).or_else(|_| wire.listen(plain)).ok()
}

/// Whether a target is at a listener.
fn is_at(target: &TargetPlan, place: &BindAddress) -> bool {
    let own = place.profile();
    let same = |profile: &Profile| {
        let meets = |endpoint: &Endpoint| own.endpoints.iter().any(|held| is_same(held, endpoint));
        profile.wire == own.wire
            && profile.endpoints.iter().any(meets)
            // Behind a router the name tells one program from the others.
            && (matches!(place, BindAddress::Listen(_)) || profile.components == own.components)
    };
    target.reference.profiles.iter().any(same)
}

/// Whether whoever calls an endpoint comes to a listener.
pub(crate) fn is_same(listener: &Endpoint, called: &Endpoint) -> bool {
    match (listener.stream(), called.stream()) {
        (Endpoint::Tcp { port: 0, .. }, _) => false,
        (Endpoint::Tcp { host: own, port }, Endpoint::Tcp { host, port: other }) => {
            let loops = |host: &str| {
                host.eq_ignore_ascii_case("localhost")
                    || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            };
            let all = own.is_empty()
                || own == "*"
                || own.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_unspecified());
            port == other && (own.eq_ignore_ascii_case(host) || (loops(host) && (all || loops(own))))
        }
        _ => listener == called,
    }
}

/// The route that gets what `route` sends to one of its targets, which is the listener number `at`, as the
/// gates there would choose; nothing, if that depends on who calls or on what the call has.
fn receiver(routes: &[RoutePlan], route: &RoutePlan, target: &TargetPlan, at: usize) -> Option<usize> {
    let named = target.reference.profiles.first().map(|profile| &profile.key).filter(|key| !key.is_empty());
    let listening = || routes.iter().enumerate().filter(move |(_, other)| other.listens.contains(&at));
    let typed = |other: &RoutePlan| !other.is_opaque() && named.is_some_and(|key| other.key == *key);
    let is_for_all = |other: &RoutePlan| {
        let matches = &other.config.matches;
        let of =
            |held: &RoutePlan| held.config.matches.operation.as_ref().map(|pattern| pattern.value.clone());
        matches.peer.is_empty()
            && matches.user.is_none()
            && matches.header.is_empty()
            && (matches.interface.is_none() || matches.interface == route.config.matches.interface)
            && (matches.operation.is_none() || of(other) == of(route))
    };
    // The first one gets the call. If that is for some calls only, nothing is certain.
    let certain = |found: Option<(usize, &RoutePlan)>| {
        found.filter(|(_, other)| is_for_all(other)).map(|(number, _)| number)
    };
    if listening().any(|(_, other)| typed(other)) {
        return certain(listening().find(|(_, other)| typed(other)));
    }
    let fits = |other: &RoutePlan| {
        let own = (!other.key.is_empty()).then(|| String::from_utf8_lossy(&other.key).into_owned());
        match (&other.config.matches.key, own, named) {
            (Some(pattern), _, Some(key)) => pattern.fits(&String::from_utf8_lossy(key)),
            (None, Some(own), Some(key)) => own.as_bytes() == &key[..],
            (None, None, _) => true,
            // Which objects callers name is not known.
            (_, _, None) => false,
        }
    };
    certain(listening().find(|(_, other)| other.is_opaque() && fits(other)))
}
