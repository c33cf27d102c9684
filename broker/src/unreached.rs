//! Routes that no call comes to, since a route before them takes every one: told by a check, before anything runs.
//!
//! States: none. Invariant: what is told is certain. A route takes every call of an object only if it has no condition on operation,
//! interface, headers or caller; `allow` and `deny` are none, since whoever is denied by the route that a call is for is refused.

use crate::config::CopyTo;
use crate::plan::{Plan, RoutePlan};
use everywire::Bytes;
use std::collections::HashMap;

/// What the calls are of that a route takes at a listener: its number, whether a contract is there, the interface, and the key; none of
/// a route for every object.
type Calls<'p> = (usize, bool, &'p str, Option<&'p Bytes>);

/// The routes that take all calls, in the order of the file: the first one of each object.
pub(crate) struct CatchAllRoutes<'p> {
    first: HashMap<Calls<'p>, usize>,
    plan: &'p Plan,
    /// What gets copies of others needs no calls of its own.
    copied: Vec<&'p str>,
}

impl<'p> CatchAllRoutes<'p> {
    pub(crate) fn of(plan: &'p Plan) -> Self {
        let mut first = HashMap::new();
        for (number, route) in plan.routes.iter().enumerate().filter(|(_, route)| takes_all(route)) {
            for listen in &route.listens {
                first.entry(calls(route, *listen)).or_insert(number);
            }
        }
        let copies = plan.routes.iter().flat_map(|route| &route.config.copies);
        let copied = copies.filter_map(|copy| match &copy.to {
            CopyTo::Route(name) => Some(name.as_str()),
            _ => None,
        });
        Self { first, plan, copied: copied.collect() }
    }

    /// The name of the route that takes all calls which would be for this one at a listener.
    pub(crate) fn before(&self, number: usize, listen: usize) -> Option<&'p str> {
        let route = self.plan.routes.get(number)?;
        if self.copied.contains(&route.config.name.value.as_str()) {
            return None;
        }
        let own = calls(route, listen);
        let same = self.first.get(&own);
        // What has no contract anywhere may be for every object.
        let every = self.first.get(&(listen, false, "", None)).filter(|_| route.is_opaque());
        let first = same.into_iter().chain(every).filter(|first| **first < number).min()?;
        // A pattern is for more objects than the one that it is known by.
        let one = route.config.matches.key.as_ref().is_none_or(|key| key.is_plain());
        let taken = every.is_some_and(|first| *first < number) || one;
        self.plan.routes.get(*first).filter(|_| taken).map(|first| first.config.name.value.as_str())
    }
}

/// Whether a route is for every call of its object.
fn takes_all(route: &RoutePlan) -> bool {
    let matches = &route.config.matches;
    matches.operation.is_none()
        && matches.interface.is_none()
        && matches.user.is_none()
        && matches.peer.is_empty()
        && matches.header.is_empty()
        // One that is for objects by a pattern takes those that fit, which are not compared here.
        && matches.key.as_ref().is_none_or(|key| key.is_plain())
}

fn calls(route: &RoutePlan, listen: usize) -> Calls<'_> {
    let key = (!route.is_opaque() || !route.key.is_empty()).then_some(&route.key);
    (listen, !route.is_opaque(), &route.interface.id, key)
}
