//! More interfaces of objects whose references have passed: those of the contract that an object has beside the one by which its
//! reference passed.
//!
//! Where a caller asks the object at the broker (QueryInterface), the broker asks the object itself, and serves the interface under the
//! same key from then on ([`find`]). On other wires callers are told what the object is by its reference, or ask in a way that has no time
//! to wait (`_is_a`): there the broker asks before it passes the reference on ([`Question`]), for the interfaces of the contract that are
//! derived from the known one, on a thread, while the answer with the reference waits.
//!
//! States: none. Invariants: nothing is served that the object has not said to have; objects of the file have the interface that the
//! file names, and no other; and what is served ends with the reference.

use crate::common;
use crate::frontend::Frontend;
use crate::own_objects::OwnObjects;
use crate::route::Route;
use crate::upstream::Upstream;
use everywire::model::contract::InterfaceKind;
use everywire::{Bytes, Failure, Interface, Object, Reference};
use everywire_model::{Contract, Hold};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an object may take to say what it is: its reference passes without that then, and QueryInterface finds no more.
const ANSWER: Duration = Duration::from_secs(5);
/// Threads that wait for objects at one time.
const ASKING: usize = 256;

/// What an object is to be asked before its reference passes.
pub(crate) struct Question {
    reference: Reference,
    object: Object,
    /// The interface by which it passes if it has no other.
    known: Hold<Interface>,
    /// Those that it may have, each behind its bases.
    others: Vec<Hold<Interface>>,
}

/// What an object has said.
pub(crate) struct DiscoveredObject {
    pub(crate) reference: Reference,
    /// What it is: none of them is a base of another.
    pub(crate) interfaces: Vec<Hold<Interface>>,
}

/// Whether objects may have an interface of the contract that is derived from another one of it.
pub(crate) fn derives(contract: &Contract) -> bool {
    contract.interfaces().any(|interface| is_of_objects(interface) && !interface.bases.is_empty())
}

fn is_of_objects(interface: &Interface) -> bool {
    !matches!(interface.kind, InterfaceKind::Class | InterfaceKind::Procedures)
}

impl Question {
    /// Nothing, if the contract has no interface that is derived from the known one.
    pub(crate) fn new(
        contract: &Contract,
        reference: &Reference,
        object: Object,
        known: Hold<Interface>,
    ) -> Option<Self> {
        let derived =
            |other: &&Hold<Interface>| is_of_objects(other) && other.id != known.id && other.is_a(&known.id);
        let mut others: Vec<_> = contract.interfaces().filter(derived).cloned().collect();
        others.sort_by_key(|other| depth(other));
        (!others.is_empty()).then(|| Self { reference: reference.clone(), object, known, others })
    }

    /// Asks, and waits.
    fn ask(self) -> DiscoveredObject {
        let object = self.object.with_deadline(Some(ANSWER));
        let mut interfaces = vec![self.known];
        let mut denied: Vec<Hold<Interface>> = Vec::new();
        for other in self.others {
            if denied.iter().any(|denied| other.is_a(&denied.id)) {
                continue;
            }
            match object.offers(&other.id) {
                Ok(true) => {
                    interfaces.retain(|held| !other.is_a(&held.id));
                    interfaces.push(other);
                }
                Ok(false) => denied.push(other),
                // It cannot be asked, or does not answer.
                Err(_) => break,
            }
        }
        DiscoveredObject { reference: self.reference, interfaces }
    }
}

/// How many bases stand above an interface.
fn depth(interface: &Interface) -> usize {
    interface.bases.iter().map(|base| 1 + depth(base)).max().unwrap_or(0)
}

/// Asks objects on a thread, and goes on there with what they have said; where too many threads wait, on this one.
pub(crate) fn ask(questions: Vec<Question>, then: impl FnOnce(Vec<DiscoveredObject>) + Send + 'static) {
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    let work = Arc::new(Mutex::new(Some((questions, then))));
    let apart = Arc::clone(&work);
    let started = WAITING.fetch_add(1, Ordering::AcqRel) < ASKING
        && thread::Builder::new()
            .name("interfaces".into())
            .spawn(move || {
                go_on(&apart);
                WAITING.fetch_sub(1, Ordering::AcqRel);
            })
            .is_ok();
    if !started {
        WAITING.fetch_sub(1, Ordering::AcqRel);
        everywire::blocking(|| go_on(&work));
    }
}

/// Questions, and what is done with the answers; taken by whoever asks.
type Work<F> = Mutex<Option<(Vec<Question>, F)>>;

fn go_on<F: FnOnce(Vec<DiscoveredObject>)>(work: &Work<F>) {
    let taken = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((questions, then)) = taken {
        then(questions.into_iter().map(Question::ask).collect());
    }
}

/// A route to the object behind this one by another interface of it.
pub(crate) fn by(route: &Arc<Route>, interface: &Hold<Interface>) -> Arc<Route> {
    let object = route.targets.first().map(|target| target.object.clone().typed(interface.clone()));
    match object {
        Some(object) => {
            let (far, used) = (route.far.clone(), Arc::clone(&route.used));
            Route::behind(route, interface.clone(), object, far, route.faces_callers, used)
        }
        None => Arc::clone(route),
    }
}

/// Has the object behind a reference served by an interface that its caller asks for, if it has it. Waits for its answer.
pub(crate) fn find(
    route: &Arc<Route>,
    frontend: &Arc<Frontend>,
    key: &[u8],
    fits: &dyn Fn(&Interface) -> bool,
) -> bool {
    if !route.references.holds(key) {
        return false;
    }
    let Some(target) = route.targets.first() else { return false };
    let Some(interface) = common::known(&route.contract, fits) else { return false };
    has(route, target, &interface) && serve(route, frontend, key, &interface)
}

/// An interface that the object at the target has that a caller has for itself, of those that objects have whatever the contract says (COM's
/// connection points). Waits for its answer.
pub(crate) fn of_own(
    route: &Arc<Route>,
    own: &OwnObjects,
    fits: &dyn Fn(&Interface) -> bool,
) -> Option<Hold<Interface>> {
    let interface = common::common(fits).map(Hold::Static)?;
    let way = own.current(&route.targets, &route.balancer, &route.interface).ok()?;
    has(route, &way, &interface).then_some(interface)
}

/// A route to that object by such an interface.
///
/// # Errors
/// No target works at the moment.
pub(crate) fn by_own(
    route: &Arc<Route>,
    own: &OwnObjects,
    interface: &Hold<Interface>,
) -> Result<Arc<Route>, Failure> {
    let way = own.current(&route.targets, &route.balancer, &route.interface)?;
    let object = way.object.clone().typed(interface.clone());
    Ok(Route::behind(route, interface.clone(), object, route.far.clone(), true, Arc::default()))
}

/// Whether the object at the end of a way says that it has an interface. Waits for its answer.
fn has(route: &Route, way: &Upstream, interface: &Interface) -> bool {
    let asked = everywire::blocking(|| way.object.with_deadline(Some(ANSWER)).offers(&interface.id));
    asked.unwrap_or_else(|failure| {
        route.log.detail("interface not found", || {
            vec![
                ("route", (*route.name).into()),
                ("interface", interface.name.to_string().into()),
                ("failure", failure.to_string().into()),
            ]
        });
        false
    })
}

/// Serves one more interface of the object behind a reference. Returns whether it is still there.
fn serve(route: &Arc<Route>, frontend: &Arc<Frontend>, key: &[u8], interface: &Hold<Interface>) -> bool {
    frontend.serve(&Bytes::copy_from_slice(key), interface.clone(), by(route, interface));
    // Another interface of what is lent, and no object of its own.
    drop(frontend.node.lend_again(key, &interface.id));
    let stays = route.references.holds(key);
    if !stays {
        // It has gone meanwhile.
        frontend.withdraw(key);
    }
    stays
}
