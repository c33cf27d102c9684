//! Who hears what the targets of a listener's routes without a contract say unasked, where signals go to whoever is connected (D-Bus, DCOP).
//!
//! There each target is listened to for each caller, over the caller's own connections. On WCF signals are calls back over the
//! connections that the caller's own calls have made: another one would lead to no object.
//!
//! States of a caller: *open*, from when its connection can hear signals until that ends; meanwhile it listens to the first target of each
//! route that lets it through. What such routes are may change: the callers that are there then begin to listen to new targets, and a
//! target that no route has any more is let go with all that listens to it.
//!
//! Invariants: a caller begins to listen to a target once; what a target says goes to a caller only while a route leads to that target and
//! lets that caller through; and nothing here, nor what listens, keeps a route or a target.
//!
//! Locks: that of the callers is held for look-ups only.

use crate::frontend::{Frontend, Routes};
use crate::listening::LISTENING;
use crate::numbers::ByNumber;
use crate::pass::ANY;
use crate::route::Route;
use crate::upstream::Upstream;
use everywire::layer::CallerIdentity;
use everywire::{Bytes, Failure, Initiator, Interface, Kind};
use everywire_model::{Answer, Link, Request, Servant, Wire};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// The callers of a listener, and the routes that signals come by.
#[derive(Default)]
pub(crate) struct Audience {
    /// Those without a contract, in the order of the file.
    routes: RwLock<Routes>,
    /// By the numbers of their connections.
    callers: Mutex<ByNumber<u64, ConnectedCaller>>,
}

/// A caller that is connected.
struct ConnectedCaller {
    link: Weak<dyn Link>,
    /// The targets that it listens to.
    hears: Vec<Weak<Upstream>>,
}

impl Audience {
    fn routes(&self) -> Routes {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The route by which a target's signal of the object with this key goes to a caller, if there is one.
    fn route(&self, target: &Weak<Upstream>, who: &CallerIdentity, key: &[u8]) -> Option<Arc<Route>> {
        let routes = self.routes();
        let leads = |route: &&Arc<Route>| {
            route.targets.first().is_some_and(|first| std::ptr::eq(Arc::as_ptr(first), target.as_ptr()))
                && route.lets(who)
                && route.opaque.as_ref().is_some_and(|opaque| opaque.hears(key))
        };
        routes.iter().find(leads).cloned()
    }

    /// The routes whose first target this caller is to listen to from now on, and does not yet. It counts as listening then.
    fn begin(&self, number: u64, who: &CallerIdentity) -> Vec<(Arc<Route>, Arc<Upstream>)> {
        let routes = self.routes();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(caller) = callers.get_mut(&number) else { return Vec::new() };
        caller.hears.retain(|target| target.strong_count() > 0);
        let mut begun = Vec::new();
        for route in routes.iter().filter(|route| route.lets(who)) {
            let Some(target) = route.targets.first() else { continue };
            if !caller.hears.iter().any(|held| std::ptr::eq(held.as_ptr(), Arc::as_ptr(target))) {
                caller.hears.push(Arc::downgrade(target));
                begun.push((Arc::clone(route), Arc::clone(target)));
            }
        }
        begun
    }
}

/// Whether on this wire signals go to whoever is connected.
fn goes_to_all(wire: &dyn Wire) -> bool {
    let capabilities = wire.capabilities();
    capabilities.signals && !capabilities.signals_are_calls && !capabilities.signals_by_object
}

impl Frontend {
    /// Notes who connects, from now on. It hears of connections as one that answers for keys that begin in some way: with so many random octets,
    /// which nobody is told.
    ///
    /// # Errors
    /// There are no random numbers.
    pub(crate) fn watch_callers(self: &Arc<Self>) -> Result<(), Failure> {
        if goes_to_all(self.wire) {
            let key: Bytes = crate::references::random_key()?;
            self.node.export_prefix(&key, Arc::new(ConnectionWatch(Arc::downgrade(self))));
        }
        Ok(())
    }

    /// Signals come by these routes from now on: those who are connected listen to the targets of new ones.
    pub(crate) fn hear(self: &Arc<Self>, routes: Routes) {
        *self.audience.routes.write().unwrap_or_else(PoisonError::into_inner) = routes;
        let mut callers = self.audience.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, caller| caller.link.strong_count() > 0);
        let links: Vec<_> = callers.values().filter_map(|caller| caller.link.upgrade()).collect();
        drop(callers);
        if links.len() < LISTENING {
            return links.iter().for_each(|link| self.listen_for(link));
        }
        // So many wait for each other, as long as targets need to greet.
        let this = Arc::downgrade(self);
        let all = move || {
            links.iter().for_each(|link| drop(this.upgrade().inspect(|frontend| frontend.listen_for(link))));
        };
        // Where no thread can be had they hear nothing of new targets until they connect again. Calls pass.
        let _ = std::thread::Builder::new().name("listen".into()).spawn(all);
    }

    /// Has a caller hear the targets of the routes that let it through.
    fn listen_for(&self, link: &Arc<dyn Link>) {
        let who = CallerIdentity::of(link.peer().as_ref());
        for (route, target) in self.audience.begin(link.serial_number(), &who) {
            let (audience, from, who) =
                (Arc::downgrade(&self.audience), Arc::downgrade(&target), who.clone());
            let fits = move |key: &[u8]| audience.upgrade()?.route(&from, &who, key);
            // Not the route itself: what listens hangs on that.
            let (log, name) = (route.log.clone(), Arc::clone(&route.name));
            target.listen(link, self, fits, move |failure| {
                log.detail("no signals", || {
                    vec![("route", (*name).into()), ("failure", failure.to_string().into())]
                });
            });
        }
    }
}

/// Hears who connects to a listener, and who leaves.
struct ConnectionWatch(Weak<Frontend>);

impl Servant for ConnectionWatch {
    fn interface(&self) -> &Interface {
        &ANY
    }

    fn dispatch(&self, mut request: Request) {
        let failure = Failure::new(Kind::NoObject, Initiator::Peer, "no route is for this object");
        request.answer(Answer::Failed(&failure));
    }

    fn opened(&self, link: &Arc<dyn Link>) {
        let Some(frontend) = self.0.upgrade() else { return };
        let caller = ConnectedCaller { link: Arc::downgrade(link), hears: Vec::new() };
        let mut callers = frontend.audience.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.insert(link.serial_number(), caller);
        drop(callers);
        // Before the first call of the caller, so that it hears what that causes.
        frontend.listen_for(link);
    }

    fn closed(&self, link: &dyn Link) {
        let Some(frontend) = self.0.upgrade() else { return };
        let mut callers = frontend.audience.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.remove(&link.serial_number());
    }
}
