//! Where the targets of the routes are: whose connection it was on which a target broke its protocol, for the log. Such a connection may
//! belong to the node of a listener, and carry no call at that moment.
//!
//! Lock: held to look up and to replace; nothing else happens under it.

use crate::log::Log;
use crate::route::Route;
use everywire_model::{Endpoint, Violation};
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// The routes, without keeping them.
#[derive(Default)]
pub(crate) struct TargetPlaces(RwLock<Vec<Weak<Route>>>);

impl TargetPlaces {
    /// From now on these are the routes.
    pub(crate) fn set(&self, routes: &[Arc<Route>]) {
        let routes = routes.iter().map(Arc::downgrade).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = routes;
    }

    /// Tells that who was called there broke the protocol: once for each route that leads there, or to an object there whose reference has
    /// passed.
    pub(crate) fn tell(&self, log: &Log, called: &Endpoint, violation: &Violation) {
        let routes: Vec<_> = {
            let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
            held.iter().filter_map(Weak::upgrade).collect()
        };
        let what = || {
            let how = violation.message.clone();
            [("violation", violation.name.into()), ("failure", how.into())]
        };
        let mut told = false;
        for route in routes {
            let target = route.targets.iter().find(|target| {
                let profiles = &target.object.reference().profiles;
                profiles.iter().any(|profile| profile.endpoints.contains(called))
            });
            let target = match target {
                Some(target) => target.name().to_owned(),
                None if route.references.leads_to(called) => format!("(reference) {called}"),
                None => continue,
            };
            let [name, how] = what();
            log.warn("violation", &[("route", (*route.name).into()), ("target", target.into()), name, how]);
            told = true;
        }
        if !told {
            let [name, how] = what();
            log.warn("violation", &[("target", called.to_string().into()), name, how]);
        }
    }
}
