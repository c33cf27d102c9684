//! What a route with `mode = "redirect"` can do on a wire, told before anything runs.
//!
//! Callers learn where an object is by an answer to a call, by a description, or, where they ask for objects
//! first ([`Wire::makes_objects`]), by the object that they get. These last ones call nothing here: a contract
//! is read for its mistakes, and the route runs without it.

use crate::config::{Mistakes, Mode, RouteConfig, WithPosition};
use everywire::layer::Pattern;
use everywire_model::Wire;

/// What is wrong with it.
pub(crate) fn check(
    file: &str,
    route: &RouteConfig,
    listens: &[usize],
    wires: &[&'static dyn Wire],
    mistakes: &mut Mistakes,
) {
    nothing_passes(file, route, mistakes);
    callers_can_go(file, route, listens, wires, mistakes);
    nothing_is_called(file, route, listens, wires, mistakes);
}

/// The same route without its contract, where callers get objects of the target's; nothing if it is no such route.
pub(crate) fn without_contract(
    route: &RouteConfig,
    key: &[u8],
    listens: &[usize],
    wires: &[&'static dyn Wire],
) -> Option<RouteConfig> {
    let mut near = listens.iter().filter_map(|at| wires.get(*at));
    if *route.mode != Mode::Redirect || !near.any(|wire| wire.makes_objects()) {
        return None;
    }
    let mut same = RouteConfig { contract: None, interface: None, callbacks: None, ..route.clone() };
    let named =
        || WithPosition { value: Pattern::exact(&String::from_utf8_lossy(key)), spot: route.name.spot };
    same.matches.key.get_or_insert_with(named);
    Some(same)
}

/// Callers are sent to the target only on wires that have words for that. On others each call would fail.
fn callers_can_go(
    file: &str,
    route: &RouteConfig,
    listens: &[usize],
    wires: &[&'static dyn Wire],
    mistakes: &mut Mistakes,
) {
    let near = listens.iter().filter_map(|at| wires.get(*at));
    let mut lacking: Vec<_> =
        near.filter(|wire| !wire.capabilities().redirects).map(|wire| wire.name()).collect();
    lacking.sort_unstable();
    lacking.dedup();
    if !lacking.is_empty() {
        let message = format!("a caller on {} cannot be sent to the target", lacking.join(" or "));
        let hint = "use mode = \"forward\", which works on every wire";
        mistakes.add(file, route.mode.spot, message, Some(hint.into()));
    }
}

/// Callers who go to the target with the first call of an object, or before it, are told so before it is known what they will call.
fn nothing_is_called(
    file: &str,
    route: &RouteConfig,
    listens: &[usize],
    wires: &[&'static dyn Wire],
    mistakes: &mut Mistakes,
) {
    let mut near = listens.iter().filter_map(|at| wires.get(*at));
    let Some(wire) = near.find(|wire| wire.makes_objects()) else { return };
    let operation = route.matches.operation.as_ref().map(|pattern| ("operation", pattern.spot));
    let interface = route.matches.interface.as_ref().map(|_| ("interface", route.mode.spot));
    for (what, spot) in operation.into_iter().chain(interface) {
        let message = format!(
            "`match.{what}` has no effect: a caller on {} is sent to the target before it calls anything",
            wire.name()
        );
        mistakes.add(file, spot, message, Some("leave it out, or use mode = \"forward\"".into()));
    }
}

/// Callers that are sent to the target bring no message here that could be copied, changed or read.
fn nothing_passes(file: &str, route: &RouteConfig, mistakes: &mut Mistakes) {
    let copies = route.copies.iter().map(|copy| ("copy", copy.spot));
    let edits = route.edits.iter().map(|edit| ("edits", edit.spot));
    let validate = route.validate.iter().filter(|flag| flag.value).map(|flag| ("validate", flag.spot));
    for (what, spot) in copies.chain(edits).chain(validate) {
        let message =
            format!("`{what}` has no effect with mode = \"redirect\": the messages do not pass here");
        mistakes.add(file, spot, message, Some("leave it out, or use mode = \"forward\"".into()));
    }
}
