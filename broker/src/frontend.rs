//! Listeners, and the gates at which calls come in.
//!
//! A listener (`Frontend`) is a node that listens at one address. A gate is the servant of one object there, or
//! of all objects that have no contract; it has the routes of the object in the order of the file, and gives
//! each call to the first route that is for it.
//!
//! States of a listener: it has its objects; it listens (`Frontend::listen`). States of a gate: its routes are
//! replaced as a whole when the configuration changes (`Frontend::set`), and it is withdrawn when no route is left
//! for its object. Where both sides make an object for whoever asks (COM), each caller has one of its own, which has
//! a gate with the same routes, and stands for other objects at the targets (`OwnObjects`). A call that has begun
//! keeps its route. Where operations are numbered otherwise than before (another contract), a new gate takes the
//! object's place.
//!
//! Invariants: an object is never without a gate between two configurations that both serve it; no lock is
//! held while a call is passed on; calls of one connection reach their gate in their order (`keeps_order`).

use crate::audience::Audience;
use crate::callbacks::CallbackGate;
use crate::calls::Calls;
use crate::config::{Listen, Mode};
use crate::elsewhere::there;
use crate::forwarded_call::ForwardedCall;
use crate::interfaces;
use crate::metrics::Metrics;
use crate::own_objects::OwnObjects;
use crate::route::Route;
use everywire::layer::CallerIdentity;
use everywire::{Builder, Bytes, Failure, Initiator, Interface, Kind, Node, Reference, Renewal};
use everywire_model::{Answer, Hold, Incoming, Link, Request, Servant, Shape, Wire};
use prometheus_client::metrics::counter::Counter;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

/// The routes of an object, in the order of the file; shared, so that taking them costs one count.
pub(crate) type Routes = Arc<[Arc<Route>]>;
/// The routes of an object, shared by the gates at which it is called.
type Cell = Arc<RwLock<Routes>>;
/// An object at a listener: its key and the identity of its interface.
pub(crate) type ObjectInterface = (Bytes, String);

/// A listener.
pub(crate) struct Frontend {
    pub(crate) name: String,
    pub(crate) wire: &'static dyn Wire,
    pub(crate) node: Node,
    /// Whether callers can be called back over the connections that they make.
    pub(crate) calls_back: bool,
    /// As the file had it when it was opened.
    address: String,
    /// As the file has it now: other options of the same place.
    said: Mutex<String>,
    /// Where it listens.
    bound: OnceLock<String>,
    /// Calls that no route was for.
    unmatched: Counter,
    /// Calls under way that came by it.
    pub(crate) calls: Arc<Calls>,
    /// The objects, with their routes and a print of their contracts (`fingerprint`).
    gates: Mutex<HashMap<ObjectInterface, (Cell, String)>>,
    /// What stands for the callback contracts of targets that call callers back.
    callback_gates: Mutex<HashSet<Bytes>>,
    /// Who hears what targets say unasked.
    pub(crate) audience: Arc<Audience>,
}

impl Frontend {
    /// A listener that does not listen yet.
    pub(crate) fn new(
        listen: &Listen,
        wire: &'static dyn Wire,
        calls_back: bool,
        builder: Builder,
        calls: Arc<Calls>,
        unmatched: Counter,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: listen.name.clone(),
            wire,
            node: Node::from(builder.build()),
            calls_back,
            address: listen.address.clone(),
            said: Mutex::new(listen.address.clone()),
            bound: OnceLock::new(),
            unmatched,
            calls,
            gates: Mutex::default(),
            callback_gates: Mutex::default(),
            audience: Arc::default(),
        })
    }

    /// Listens, unless it does already: once it has its objects, since whoever calls earlier would hear that they do not exist.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn listen(self: &Arc<Self>) -> Result<(), Failure> {
        if self.is_listening() {
            return Ok(());
        }
        self.watch_callers()?;
        let bound = self.node.listen(&self.address)?;
        self.bound.get_or_init(|| bound);
        Ok(())
    }

    /// Whether the file has this listener at this address too; then perhaps with what the address and its files say now, which is to
    /// be applied when nothing can fail any more. Nothing of the listener has changed until then.
    ///
    /// # Errors
    /// It is this listener, and it cannot go on by what the address says now.
    pub(crate) fn stays(&self, listen: &Listen) -> Result<Option<Option<Renewal>>, Failure> {
        if self.name != listen.name {
            return Ok(None);
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let renewal = self.node.read_again(&said, &listen.address)?;
        Ok((renewal.is_some() || said == listen.address).then_some(renewal))
    }

    /// Lets in by what was read again whoever connects from now on.
    pub(crate) fn renew(&self, listen: &Listen, renewal: Renewal) {
        renewal.apply();
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&listen.address);
    }

    /// Whether it listens.
    pub(crate) fn is_listening(&self) -> bool {
        self.bound.get().is_some()
    }

    /// Where it listens; until then, where it will.
    pub(crate) fn bound(&self) -> &str {
        self.bound.get().unwrap_or(&self.address)
    }

    /// Serves one object by one route, under a random key: what a reference that passes leads to. It stays
    /// until `Frontend::withdraw`.
    pub(crate) fn serve(
        self: &Arc<Self>,
        key: &Bytes,
        interface: Hold<Interface>,
        route: Arc<Route>,
    ) -> Reference {
        let routes: Cell = Arc::new(RwLock::new(Arc::from([route])));
        let gate = InterfaceServant { interface, routes, frontend: Arc::downgrade(self), own: None };
        self.node.export_servant(key, Arc::new(gate))
    }

    /// Serves an object no longer.
    pub(crate) fn withdraw(&self, key: &[u8]) {
        self.node.withdraw(key);
    }

    /// From now on these are the objects, and their routes. What is called meanwhile goes by the one or the other.
    pub(crate) fn set(self: &Arc<Self>, wanted: HashMap<ObjectInterface, Vec<Arc<Route>>>) {
        // Before calls come by new routes, so that callers hear what those cause.
        self.hear(wanted.values().flatten().filter(|route| route.opaque.is_some()).cloned().collect());
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        // Before anybody is called back.
        let unused = self.set_callback_gates(wanted.values().flatten());
        let places: HashSet<ObjectInterface> = wanted.keys().cloned().collect();
        let mut renewed: Vec<Bytes> = Vec::new();
        for (place, routes) in wanted {
            let Some(first) = routes.first() else { continue };
            let interface = first.interface.clone();
            let print = fingerprint(&interface);
            if let Some((cell, _)) = gates.get(&place).filter(|(_, known)| *known == print) {
                *cell.write().unwrap_or_else(PoisonError::into_inner) = Routes::from(routes);
                continue;
            }
            // Calls that are numbered by another contract end by the routes of that.
            let cell: Cell = Arc::new(RwLock::new(Routes::from(routes)));
            let frontend = Arc::downgrade(self);
            let own = self.wire.makes_objects().then(Arc::default);
            let gate = InterfaceServant { interface, routes: Arc::clone(&cell), frontend, own };
            if gate.is_opaque() {
                self.node.export_prefix(&place.0, Arc::new(gate));
            } else {
                // One object for all, whom its signals reach; where objects are made for whoever asks, it is the one that runs.
                self.node.export_servant(&place.0, Arc::new(gate));
            }
            let key = place.0.clone();
            let before = gates.insert(place, (cell, print));
            if let Some((before, _)) = before.filter(|_| self.wire.makes_objects()) {
                // Objects that callers hold by the old contract are called no more.
                *before.write().unwrap_or_else(PoisonError::into_inner) = Arc::from([]);
                renewed.push(key);
            }
        }
        // Behind that, so that no call finds nothing on its way from the one to the other.
        let gone: Vec<_> = gates.extract_if(|place, _| !places.contains(place)).collect();
        for ((key, id), (cell, _)) in gone {
            if self.wire.makes_objects() {
                // Objects of the class that callers hold are called no more either.
                *cell.write().unwrap_or_else(PoisonError::into_inner) = Arc::from([]);
            }
            if id.is_empty() {
                self.node.withdraw_prefix(&key);
            } else if places.iter().any(|(other, id)| *other == key && !id.is_empty()) {
                self.node.withdraw_interface(&key, &id);
                renewed.push(key);
            } else {
                self.node.withdraw(&key);
            }
        }
        for key in renewed {
            // They led to what the routes of before lead to, and are found again.
            let found = self.wire.common_interfaces().iter();
            for common in found {
                self.node.withdraw_interface(&key, &common.id);
            }
        }
        if self.wire.makes_objects() {
            self.set_classes(&gates);
        }
        for key in unused {
            self.node.withdraw_prefix(&key);
        }
    }

    /// Whether each caller who asks for this object gets one of its own.
    pub(crate) fn gives_own(&self, key: &[u8]) -> bool {
        self.node.class_reference(key).is_some()
    }

    /// Makes an object of its own for each caller that asks for one, where all routes of the object give such ones; else all share one.
    fn set_classes(self: &Arc<Self>, gates: &HashMap<ObjectInterface, (Cell, String)>) {
        let mut classes: HashMap<&Bytes, Vec<&Cell>> = HashMap::new();
        for ((key, _), (cell, _)) in gates {
            classes.entry(key).or_default().push(cell);
        }
        let gives_own = |cell: &&Cell| {
            let routes = cell.read().unwrap_or_else(PoisonError::into_inner);
            !routes.is_empty() && routes.iter().all(|route| route.gives_own)
        };
        classes.retain(|_, cells| cells.iter().all(gives_own));
        for (key, _) in self.node.classes() {
            if !classes.contains_key(&key) {
                self.node.withdraw_class(&key);
            }
        }
        for (key, cells) in classes {
            let interface = |cell: &Cell| {
                let routes = cell.read().unwrap_or_else(PoisonError::into_inner);
                routes.first().map(|route| route.interface.clone())
            };
            let mut parts: Vec<(Hold<Interface>, Cell)> =
                cells.into_iter().filter_map(|cell| Some((interface(cell)?, Arc::clone(cell)))).collect();
            parts.sort_by(|(left, _), (right, _)| left.id.cmp(&right.id));
            let Some((first, _)) = parts.first() else { continue };
            let (first, frontend) = (first.clone(), Arc::downgrade(self));
            self.node.export_class_servants(key, first, move |key| Ok(own_object(&frontend, &parts, key)));
        }
    }

    /// Has callbacks of the routes' targets understood here. Returns the keys of those that nobody needs any more.
    fn set_callback_gates<'r>(&self, routes: impl Iterator<Item = &'r Arc<Route>>) -> Vec<Bytes> {
        let mut held = self.callback_gates.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = HashSet::new();
        for target in routes.filter(|_| self.calls_back).flat_map(|route| &route.targets) {
            let Some(back) = target.back() else { continue };
            if !held.contains(&back.key) {
                let gate = CallbackGate { callbacks: back.callbacks.clone(), target: Arc::downgrade(target) };
                self.node.export_prefix(&back.key, Arc::new(gate));
            }
            wanted.insert(back.key.clone());
        }
        let unused = held.difference(&wanted).cloned().collect();
        *held = wanted;
        unused
    }

    /// Takes no new calls, lets those under way end, and closes.
    pub(crate) fn stop(&self, grace: Duration) {
        self.node.stop_within(grace);
    }

    /// Notes what its peers hold.
    pub(crate) fn count(&self, metrics: &Metrics) {
        metrics.listener(&self.name, self.node.connections(), self.node.memory_held());
    }
}

/// A text that is the same for interfaces whose calls are numbered and read alike: names and types of
/// operations, in their order. What such interfaces are called beside that makes no difference to calls under
/// way.
pub(crate) fn fingerprint(interface: &Interface) -> String {
    let mut print = String::new();
    for operation in interface.operations.iter() {
        print.push_str(&operation.name);
        let raised = operation.raises.iter().map(|held| Shape::Struct(held.clone()));
        let shapes = [operation.arguments.clone(), operation.results.clone()];
        for shape in shapes.into_iter().chain(raised) {
            let seen = std::cell::RefCell::new(String::new());
            crate::cross::any(&shape, &mut Vec::new(), &|shape| {
                let mut seen = seen.borrow_mut();
                seen.push_str(&shape.noun());
                shape.fields().iter().for_each(|field| seen.push_str(&field.name));
                seen.push(';');
                false
            });
            print.push_str(&seen.into_inner());
            print.push('|');
        }
        print.push(if operation.oneway { '1' } else { '2' });
    }
    print
}

/// An object of one caller's own: its interfaces, each with its routes, to be served under a key.
fn own_object(
    frontend: &Weak<Frontend>,
    parts: &[(Hold<Interface>, Cell)],
    key: &Bytes,
) -> Vec<Arc<dyn Servant>> {
    let own = Arc::<OwnObjects>::default();
    if let Some(frontend) = frontend.upgrade() {
        let own = Arc::downgrade(&own);
        frontend.node.on_end(key, move || drop(own.upgrade().inspect(|own| own.end())));
    }
    let servant = |(interface, routes): &(Hold<Interface>, Cell)| -> Arc<dyn Servant> {
        let (interface, routes) = (interface.clone(), Arc::clone(routes));
        Arc::new(InterfaceServant {
            interface,
            routes,
            frontend: Weak::clone(frontend),
            own: Some(Arc::clone(&own)),
        })
    };
    parts.iter().map(servant).collect()
}

/// Where the calls of one interface of an object come in.
struct InterfaceServant {
    interface: Hold<Interface>,
    routes: Cell,
    frontend: Weak<Frontend>,
    /// Of an object that one caller has for itself: what it stands for.
    own: Option<Arc<OwnObjects>>,
}

impl InterfaceServant {
    /// Whether it is for calls that nobody here has a contract of.
    fn is_opaque(&self) -> bool {
        self.interface.operations.is_empty() && self.interface.id.is_empty()
    }
}

impl Servant for InterfaceServant {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// What a caller says arrives at the target in its order, also where no answer says that the call before has ended.
    fn keeps_order(&self) -> bool {
        true
    }

    fn elsewhere(&self) -> Option<Reference> {
        let routes = Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner));
        routes.iter().find(|route| route.mode == Mode::Redirect).and_then(|route| there(route, &route.key))
    }

    fn dispatch(&self, mut request: Request) {
        let routes = Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner));
        let asked = routes.iter().any(|route| route.asks_who());
        let who = if asked { CallerIdentity::of_call(&request) } else { CallerIdentity::default() };
        if let Some(route) = routes.iter().find(|route| route.is_for(&request, &who)) {
            let own = self.own.clone().filter(|_| route.gives_own);
            return ForwardedCall::begin(request, route, &who, self.frontend.upgrade(), own);
        }
        if let Some(frontend) = self.frontend.upgrade() {
            frontend.unmatched.inc();
        }
        // Of an object that nobody has named, or of one that has other operations.
        let failure = match self.is_opaque() {
            true => Failure::new(Kind::NoObject, Initiator::Peer, "no route is for this object"),
            false => Failure::new(Kind::Refused, Initiator::Peer, "no route is for this call"),
        };
        request.answer(Answer::Failed(&failure));
    }

    fn find_interface(&self, asked: &Request, key: &[u8], fits: &dyn Fn(&Interface) -> bool) -> bool {
        let routes = Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner));
        let route = let_in(&routes, asked);
        let (Some(frontend), Some((route, _))) = (self.frontend.upgrade(), route) else { return false };
        let Some(own) = &self.own else { return interfaces::find(route, &frontend, key, fits) };
        if !routes.iter().all(|route| route.gives_own) {
            return false;
        }
        let Some(interface) = interfaces::of_own(route, own, fits) else { return false };
        let (routes, own) = (Arc::clone(&self.routes), Arc::clone(own));
        let servant =
            OwnServant { interface, routes: Arc::clone(&routes), frontend: Weak::clone(&self.frontend), own };
        let is_gone = || {
            let is_without = routes.read().unwrap_or_else(PoisonError::into_inner).is_empty();
            is_without || self.own.as_ref().is_some_and(|own| own.has_ended())
        };
        frontend.node.export_servant(key, Arc::new(servant));
        let is_gone = is_gone();
        if is_gone {
            frontend.withdraw(key);
        }
        !is_gone
    }

    fn heard(&self, link: &dyn Link, heard: &Incoming) {
        // A signal that a caller sends unasked goes to the target of the route for its object.
        let routes = Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner));
        let fits = |route: &&Arc<Route>| route.opaque.as_ref().is_some_and(|opaque| opaque.hears(&heard.key));
        let Some(route) = routes.iter().find(fits) else { return };
        let Some(target) = route.targets.first() else { return };
        match everywire::blocking(|| target.tell(link.serial_number(), heard)) {
            Ok(()) => {
                route.metrics.signals.inc();
            }
            Err(failure) => route.log.detail("signal not passed on", || {
                vec![("route", (*route.name).into()), ("failure", failure.to_string().into())]
            }),
        }
    }

    fn closed(&self, link: &dyn Link) {
        let routes = Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner));
        for target in routes.iter().flat_map(|route| &route.targets) {
            target.forget(link.serial_number());
        }
    }
}

/// The first route that lets a caller through, and who that is.
fn let_in<'r>(routes: &'r [Arc<Route>], asked: &Request) -> Option<(&'r Arc<Route>, CallerIdentity)> {
    let who = CallerIdentity::of_call(asked);
    Some((routes.iter().find(|route| !route.asks_who() || route.lets(&who))?, who))
}

/// Where the calls of an interface come in that objects of a caller's own have whatever the contract says, such as COM's connection points.
struct OwnServant {
    interface: Hold<Interface>,
    routes: Cell,
    frontend: Weak<Frontend>,
    own: Arc<OwnObjects>,
}

impl Servant for OwnServant {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn dispatch(&self, mut request: Request) {
        let routes = Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner));
        let denied = || Failure::new(Kind::Refused, Initiator::Peer, "no route is for this call");
        let found = let_in(&routes, &request).ok_or_else(denied);
        let found =
            found.and_then(|(route, who)| Ok((interfaces::by_own(route, &self.own, &self.interface)?, who)));
        match found {
            Ok((route, who)) => ForwardedCall::begin(request, &route, &who, self.frontend.upgrade(), None),
            Err(failure) => request.answer(Answer::Failed(&failure)),
        }
    }
}
