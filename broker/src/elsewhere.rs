//! Callers who learn where the target is, to call it there.

use crate::route::Route;
use everywire::{Bytes, Failure, Initiator, Kind, Reference};
use everywire_model::{Answer, Request};
use std::sync::Arc;

/// Where one of the targets is, for a caller that names this key.
pub(crate) fn there(route: &Route, key: &[u8]) -> Option<Reference> {
    let picked = route.balancer.pick(&route.targets, &[]).and_then(|at| route.targets.get(at))?;
    let mut reference = picked.object.reference().clone().with_type(route.interface.id.to_string());
    // A target without a key stands for the object that the caller names.
    for profile in reference.profiles.iter_mut().filter(|profile| profile.key.is_empty()) {
        profile.key = Bytes::copy_from_slice(key);
    }
    Some(reference)
}

/// Whether callers learn where an object is by asking for it, so that its target has to be asked first. What they hold by then, from
/// before the route sent them there, goes on as it did.
pub(crate) fn hands_over(route: &Route) -> bool {
    route.opaque.as_ref().is_some_and(|opaque| opaque.wire.makes_objects())
}

/// Tells the caller where a target is.
pub(crate) fn redirect(mut request: Request, route: &Arc<Route>) {
    match there(route, request.key()) {
        Some(reference) => {
            // Before anybody can have heard of it.
            route.metrics.done.inc();
            request.answer(Answer::Moved(&reference));
        }
        None => {
            route.metrics.refused("breaker");
            let what = "the targets of this route have failed, and are left alone for a moment";
            request.answer(Answer::Failed(&Failure::new(Kind::Busy, Initiator::Peer, what)));
        }
    }
}
