//! Pass-through without a contract: encoded bodies that nobody here reads.

use crate::config::{Mistakes, RouteConfig};

/// Why a route without a contract cannot run in this version.
const NOT_YET: &str = "pass-through without a contract: not in this version";

/// Notes what a route asks for that takes messages nobody has a contract of: no contract, keys with `*` in them, headers.
pub(crate) fn refuse(file: &str, route: &RouteConfig, mistakes: &mut Mistakes) {
    let give = |what: &str| Some(format!("give the route {what}"));
    if route.contract.is_none() {
        mistakes.add(file, route.name.spot, NOT_YET, give("`contract` and `interface`"));
    }
    if let Some(key) = route.matches.key.as_ref().filter(|key| !key.is_plain()) {
        let message = format!("`{}`: keys with `*` take {NOT_YET}", key.value);
        mistakes.add(file, key.spot, message, give("one key"));
    }
    if let Some(spot) = route.matches.header {
        mistakes.add(file, spot, "matches of headers: not in this version", None);
    }
    if let Some(spot) = route.edits {
        mistakes.add(file, spot, "edits of headers: not in this version", None);
    }
}
