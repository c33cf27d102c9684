//! More interfaces of objects whose references have passed: those of the contract that an object has beside the one by which its
//! reference passed.
//!
//! A caller asks the object at the broker (QueryInterface); then the broker asks the object itself, and serves the interface under the
//! same key from then on ([`find`]).
//!
//! States: none. Invariants: nothing is served that the object has not said to have; objects of the file have the interface that the
//! file names, and no other; and what is served ends with the reference.

use crate::front::Front;
use crate::route::Route;
use everywire::{Bytes, Interface};
use everywire_model::Hold;
use std::sync::Arc;

/// Has the object behind a reference served by an interface that its caller asks for, if it has it. Waits for its answer.
pub(crate) fn find(
    route: &Arc<Route>,
    front: &Arc<Front>,
    key: &[u8],
    fits: &dyn Fn(&Interface) -> bool,
) -> bool {
    if !route.references.holds(key) {
        return false;
    }
    let Some(target) = route.targets.first() else { return false };
    let Some(interface) = route.contract.interfaces().find(|interface| fits(interface)) else { return false };
    match everywire::blocking(|| target.object.offers(&interface.id)) {
        Ok(true) => serve(route, front, key, interface),
        Ok(false) => false,
        Err(failure) => {
            route.log.detail("interface not found", || {
                vec![
                    ("route", (*route.name).into()),
                    ("interface", interface.name.to_string().into()),
                    ("failure", failure.to_string().into()),
                ]
            });
            false
        }
    }
}

/// Serves one more interface of the object behind a reference. Returns whether it is still there.
fn serve(route: &Arc<Route>, front: &Arc<Front>, key: &[u8], interface: &Hold<Interface>) -> bool {
    let Some(target) = route.targets.first() else { return false };
    let object = target.object.clone().typed(interface.clone());
    let behind = Route::behind(route, interface.clone(), object, route.far.clone(), route.faces_callers);
    front.serve(&Bytes::copy_from_slice(key), interface.clone(), behind);
    let stays = route.references.holds(key);
    if !stays {
        // It has gone meanwhile.
        front.withdraw(key);
    }
    stays
}
