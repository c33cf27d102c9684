//! A broker that runs: its listeners, its routes, and how they are changed while calls are under way.
//!
//! States: *running*; *draining*, no new calls are taken and those under way end; *ended*. `stop` and the end
//! of the last `Broker` lead there.
//!
//! A change of the configuration is made whole or not at all: contracts are read, addresses looked up and new
//! listeners opened, with their objects, before the first route is swapped, and whatever fails until then leaves all as it was.
//! Then come, in this order: the routes of each listener, what is counted, signals and probes, the
//! administrator's listener, and the end of listeners that went. Nothing of this can fail, so nothing has to
//! be undone. A call that is under way ends by the route that it began with. A listener that stays (same name
//! and place) keeps its connections, and the limits with which it was opened; whoever connects from then on is let in by what its
//! address and the files that it names say now. One that goes lets its calls end.
//!
//! A route of the same name keeps the references that it has passed on.
//!
//! Ownership: `Broker` owns the state; listeners own gates, which own routes, which own targets. Threads
//! (signals, probes, pages, places of copies) hold what they use weakly, or end when their handle is dropped.
//! Targets are called from the upstream node, or from the listener that faces them, where references pass.
//!
//! Lock: `state` is held while a configuration is applied, so changes follow one another; nothing of a call's
//! way takes it. It is let go before what was replaced is dropped where that may come back here.

use crate::admin::Admin;
use crate::calls::Calls;
use crate::config::{Config, CopyTo, Mistakes};
use crate::copies::{Copier, Destinations};
use crate::frontend::{Frontend, ObjectInterface};
use crate::health::Prober;
use crate::log::{Log, Sink};
use crate::metrics::Metrics;
use crate::plan::{Plan, RoutePlan};
use crate::route::{Route, RouteContext, shown};
use crate::signals::{SignalRelay, Watch};
use crate::target_places::TargetPlaces;
use crate::upstream::Upstream;
use everywire::{Builder, Bytes, Notice, Renewal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long copies that wait may take to be written when the broker ends.
const COPIES: Duration = Duration::from_secs(2);

/// A broker. It ends when it is dropped.
pub struct Broker {
    /// What its threads share; it ends with the broker.
    inner: Arc<Inner>,
}

/// What its threads share. `draining` is for `/ready`; the nodes of the listeners refuse calls themselves.
pub(crate) struct Inner {
    /// Calls the targets.
    upstream: everywire::Node,
    /// Counts of everything, for `/metrics`.
    pub(crate) metrics: Arc<Metrics>,
    /// Where lines go.
    pub(crate) log: Log,
    /// Whether no new work is wanted.
    pub(crate) draining: AtomicBool,
    /// Where the targets are.
    targets: Arc<TargetPlaces>,
    /// Places of copies, by which those that stay are found again after a change of the configuration.
    places: Destinations,
    /// What a change replaces.
    state: Mutex<State>,
}

/// What a change of the configuration replaces, under one lock.
#[derive(Default)]
struct State {
    /// Listeners.
    frontends: Vec<Arc<Frontend>>,
    /// Routes, in the order of the file.
    routes: Vec<Arc<Route>>,
    /// Those who listen to targets.
    watches: Vec<Watch>,
    /// Those who ask whether targets are there.
    probers: Vec<Prober>,
    /// The page for people, if there is one.
    admin: Option<Admin>,
    /// How long calls under way may take at the end.
    grace: Duration,
}

impl Broker {
    /// Listens, and serves the routes. `log` gets lines of JSON.
    ///
    /// # Errors
    /// All that is wrong with the configuration, or what it cannot listen at.
    pub fn start(config: Config, log: Sink) -> Result<Self, Mistakes> {
        let mut builder = everywire::Node::builder();
        if let Some(bytes) = config.max_message {
            builder = builder.max_message(bytes);
        }
        let (log, targets) = (Log::new(log, config.verbose), Arc::<TargetPlaces>::default());
        let (told, places) = (log.clone(), Arc::clone(&targets));
        // It calls targets, and nobody calls it.
        builder = builder.observer(Arc::new(move |notice: &Notice| {
            if let Notice::Violation { violation, called: Some(called), .. } = notice {
                places.tell(&told, called, violation);
            }
        }));
        let inner = Arc::new(Inner {
            upstream: everywire::Node::from(builder.build()),
            metrics: Metrics::new(),
            log,
            targets,
            draining: AtomicBool::new(false),
            places: Destinations::default(),
            state: Mutex::default(),
        });
        let broker = Self { inner };
        broker.apply(config)?;
        Ok(broker)
    }

    /// Names and addresses of the listeners, with the ports that were bound.
    #[must_use]
    pub fn addresses(&self) -> Vec<(String, String)> {
        self.inner
            .state()
            .frontends
            .iter()
            .map(|frontend| (frontend.name.clone(), frontend.bound().to_owned()))
            .collect()
    }

    /// The address of a listener.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<String> {
        self.addresses().into_iter().find(|(held, _)| held == name).map(|(_, address)| address)
    }

    /// What callers are to be given: of each route its name, and a reference at each of its listeners in the friendly notation and in that
    /// of foreign programs.
    #[must_use]
    pub fn references(&self) -> Vec<(String, String, String)> {
        let state = self.inner.state();
        let at = |route: &Route, frontend: &Arc<Frontend>| {
            let reference = match &route.opaque {
                Some(_) => frontend.node.published_as("", &route.key),
                None => frontend.node.reference(&route.key)?,
            };
            let (friendly, foreign) =
                (frontend.node.print_friendly(&reference), frontend.node.print(&reference));
            Some((route.name.to_string(), friendly, foreign))
        };
        let of = |route: &Arc<Route>| -> Vec<_> {
            let own = route.listens.iter().filter_map(|at| state.frontends.get(*at));
            own.filter_map(|frontend| at(route, frontend)).collect()
        };
        state.routes.iter().flat_map(of).collect()
    }

    /// Where the administrator asks, if anywhere.
    #[must_use]
    pub fn admin(&self) -> Option<String> {
        self.inner.state().admin.as_ref().map(|admin| admin.address().to_string())
    }

    /// What is counted, as Prometheus reads it.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.inner.page()
    }

    /// Goes on by another configuration. Calls under way end by the route that they began with, and listeners that are in both keep
    /// their connections.
    ///
    /// # Errors
    /// What is wrong with it; then all is as it was.
    pub fn reload(&self, config: Config) -> Result<(), Mistakes> {
        let file = config.file.clone();
        let applied = self.apply(config);
        self.inner.metrics.reloaded(applied.is_ok());
        match &applied {
            Ok(()) => self.inner.log.info("reloaded", &[("file", file.into())]),
            Err(mistakes) => {
                for mistake in &mistakes.0 {
                    self.inner.log.warn("not reloaded", &[("mistake", mistake.to_string().into())]);
                }
            }
        }
        applied
    }

    /// The same, of what a file says now; a file that cannot be used leaves all as it is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn reload_file(&self, file: &std::path::Path) -> Result<(), Mistakes> {
        match Config::read(file) {
            Ok(config) => self.reload(if self.inner.log.is_verbose() { config.verbose() } else { config }),
            Err(mistakes) => {
                self.inner.metrics.reloaded(false);
                for mistake in &mistakes.0 {
                    self.inner.log.warn("not reloaded", &[("mistake", mistake.to_string().into())]);
                }
                Err(mistakes)
            }
        }
    }

    /// Makes a configuration the one that counts, or changes nothing.
    fn apply(&self, config: Config) -> Result<(), Mistakes> {
        let inner = &self.inner;
        let plan = Plan::of(config, &inner.upstream)?;
        let mut state = inner.state();
        let (frontends, renewals) = inner.frontends(&plan, &state.frontends)?;
        let routes = inner.routes(&plan, &frontends, &state.routes)?;
        let admin = inner.admin(&plan, state.admin.as_ref())?;
        // New listeners have their objects before anybody can call.
        let (open, new): (Vec<_>, Vec<_>) =
            frontends.iter().enumerate().partition(|(_, frontend)| frontend.is_listening());
        for (at, frontend) in new {
            frontend.set(objects(&plan, &routes, at));
        }
        inner.listen(&plan, &frontends)?;
        // From here on nothing fails.
        for (at, frontend) in open {
            frontend.set(objects(&plan, &routes, at));
        }
        for (at, renewal) in renewals {
            if let (Some(frontend), Some(listen)) = (frontends.get(at), plan.config.listens.get(at)) {
                frontend.renew(listen, renewal);
            }
        }
        for frontend in &frontends {
            frontend.node.set_max_message(plan.config.max_message);
        }
        inner.upstream.set_max_message(plan.config.max_message);
        let before = std::mem::take(&mut state.frontends);
        let gone: Vec<_> = before
            .into_iter()
            .filter(|frontend| !frontends.iter().any(|held| Arc::ptr_eq(held, frontend)))
            .collect();
        for route in &routes {
            route.metrics.references.set(route.references.keep(&frontends));
        }
        for old in &state.routes {
            if !routes.iter().any(|route| Arc::ptr_eq(&route.references, &old.references)) {
                old.metrics.references.set(old.references.keep(&[]));
            }
            for target in &old.targets {
                let stays = routes.iter().any(|route| {
                    route.name == old.name && route.targets.iter().any(|held| held.name() == target.name())
                });
                if !stays {
                    inner.metrics.forget_target(&old.name, target.name());
                }
            }
        }
        inner.targets.set(&routes);
        state.watches = watches(&plan, &routes, &frontends, std::mem::take(&mut state.watches), &inner.log);
        state.probers = routes.iter().filter_map(|route| Prober::start(route, &inner.log)).collect();
        state.frontends = frontends;
        let old = std::mem::replace(&mut state.routes, routes);
        match admin {
            Administration::Stays(token) => {
                if let Some(admin) = &state.admin {
                    admin.set(token);
                }
            }
            Administration::Opened(admin) => state.admin = Some(admin),
            Administration::None => state.admin = None,
        }
        state.grace = plan.config.grace;
        let grace = state.grace;
        drop(state);
        if gone.is_empty() {
            return Ok(());
        }
        for frontend in &gone {
            inner.metrics.forget_listener(&frontend.name);
            inner.log.info("closed", &[("listener", frontend.name.clone().into())]);
        }
        // Calls under way may take their time.
        let end = move || end(&gone, &old, grace);
        if let Err(error) = std::thread::Builder::new().name("closing".into()).spawn(end) {
            inner.log.warn("closing", &[("failure", error.to_string().into())]);
        }
        Ok(())
    }

    /// Takes no new calls; those under way go on.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Release);
        self.inner.state().frontends.iter().for_each(|frontend| frontend.node.drain());
    }

    /// Takes no new calls, lets those under way end for as long as the configuration says, and ends.
    pub fn stop(&self) {
        self.drain();
        let (frontends, grace) = {
            let mut state = self.inner.state();
            state.watches.clear();
            state.probers.clear();
            (state.frontends.clone(), state.grace)
        };
        let routes = self.inner.state().routes.clone();
        end(&frontends, &routes, grace);
        self.inner.upstream.stop_within(Duration::ZERO);
        self.inner.places.close(COPIES);
        self.inner.log.info("stopped", &[]);
        self.inner.state().admin = None;
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.inner.places.close(COPIES);
        let state = std::mem::take(&mut *self.inner.state());
        // Without the lock: threads that end may ask for it.
        drop(state);
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page of a scrape, with what is only known when somebody asks.
    pub(crate) fn page(&self) -> String {
        let state = self.state();
        state.frontends.iter().for_each(|frontend| frontend.count(&self.metrics));
        state.routes.iter().flat_map(|route| &route.targets).for_each(Upstream::count);
        drop(state);
        self.metrics.page()
    }

    /// Why it is not ready to take calls, if it is not: it is ending, or a route has no target that is believed to work.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.draining.load(Ordering::Acquire) {
            return Some("the broker takes no new calls".into());
        }
        let state = self.state();
        let without = |route: &&Arc<Route>| !route.targets.iter().any(Upstream::is_believed);
        state.routes.iter().find(without).map(|route| format!("no target of route `{}` works", route.name))
    }

    /// The listeners of a configuration: those that are open already, and new ones, which do not listen yet. With them, by the
    /// numbers of open ones, what these go on by when nothing can fail any more.
    fn frontends(&self, plan: &Plan, open: &[Arc<Frontend>]) -> Result<Frontends, Mistakes> {
        let (mut frontends, mut renewals): Frontends = Default::default();
        let mut mistakes = Mistakes::default();
        let wanted = plan.config.listens.iter().zip(&plan.wires).zip(&plan.calls_back);
        for ((listen, wire), back) in wanted {
            let mut stays = None;
            for frontend in open.iter().filter(|frontend| frontend.calls_back == *back) {
                match frontend.stays(listen) {
                    Ok(None) => {}
                    Ok(Some(renewal)) => {
                        renewals.extend(renewal.map(|renewal| (frontends.len(), renewal)));
                        stays = Some(Arc::clone(frontend));
                    }
                    Err(failure) => {
                        let message = format!("cannot go on at `{}`: {failure}", shown(&listen.address));
                        mistakes.add(&plan.config.file, listen.spot, message, failure.hint().map(Into::into));
                    }
                }
            }
            frontends.push(stays.unwrap_or_else(|| {
                let calls = Arc::new(Calls::of(*wire));
                let builder = self.builder(&plan.config, &listen.name, &calls);
                Frontend::new(listen, *wire, *back, builder, calls, self.metrics.unmatched())
            }));
        }
        mistakes.or((frontends, renewals))
    }

    /// Has new listeners listen.
    fn listen(&self, plan: &Plan, frontends: &[Arc<Frontend>]) -> Result<(), Mistakes> {
        let mut mistakes = Mistakes::default();
        let new = plan.config.listens.iter().zip(frontends).filter(|(_, frontend)| !frontend.is_listening());
        for (listen, frontend) in new {
            match frontend.listen() {
                Ok(()) => {
                    let fields = [
                        ("listener", listen.name.clone().into()),
                        ("address", shown(frontend.bound()).into()),
                    ];
                    self.log.info("listening", &fields);
                }
                Err(failure) => {
                    let message = format!("cannot listen at `{}`: {failure}", shown(&listen.address));
                    mistakes.add(&plan.config.file, listen.spot, message, failure.hint().map(Into::into));
                }
            }
        }
        mistakes.or(())
    }

    /// How the node of a listener is made: its notices withdraw calls (`calls`), all others go to the log.
    fn builder(&self, config: &Config, name: &str, calls: &Arc<Calls>) -> Builder {
        let (log, name) = (self.log.clone(), name.to_owned());
        let mut builder = everywire::Node::builder().grace(config.grace);
        if let Some(bytes) = config.max_message {
            builder = builder.max_message(bytes);
        }
        let (calls, places) = (Arc::clone(calls), Arc::clone(&self.targets));
        builder.observer(Arc::new(move |notice: &Notice| match notice {
            Notice::Withdrawn { link, call } => calls.withdraw(*link, *call),
            Notice::Closed { link } => {
                calls.close(*link);
                log.detail("closed", || vec![("listener", name.clone().into())]);
            }
            notice => tell(&log, &name, &places, notice),
        }))
    }

    /// The routes of a plan, in its order. Copies that go by another route are led there when all routes are
    /// made.
    fn routes(
        &self,
        plan: &Plan,
        frontends: &[Arc<Frontend>],
        before: &[Arc<Route>],
    ) -> Result<Vec<Arc<Route>>, Mistakes> {
        let hops = plan.config.hops.0;
        let world = RouteContext {
            upstream: &self.upstream,
            metrics: &self.metrics,
            log: &self.log,
            hops,
            before,
            wires: &plan.wires,
        };
        let mut mistakes = Mistakes::default();
        let mut routes: Vec<Arc<Route>> = Vec::new();
        let mut copiers: Vec<(String, Arc<Copier>)> = Vec::new();
        for route in &plan.routes {
            let far = route.callbacks.and_then(|at| frontends.get(at)).map(Arc::downgrade);
            let name = &route.config.name;
            let copies = route.config.copies.iter().map(|copy| {
                let copier = Copier::new(copy, name, &self.places, &self.metrics, &self.log);
                if let CopyTo::Route(to) = &copy.to {
                    copiers.push((to.clone(), Arc::clone(&copier)));
                }
                copier
            });
            match Route::new(route, far, copies.collect(), &world) {
                Ok(route) => routes.push(route),
                Err(failure) => mistakes.add(&plan.config.file, name.spot, failure.to_string(), None),
            }
        }
        for (name, copier) in copiers {
            if let Some(route) = routes.iter().find(|route| *route.name == *name) {
                copier.lead_to(route);
            }
        }
        mistakes.or(routes)
    }

    /// The administrator's listener, where the configuration has one: the open one, if it stays where it is.
    fn admin(self: &Arc<Self>, plan: &Plan, open: Option<&Admin>) -> Result<Administration, Mistakes> {
        let Some(config) = &plan.config.admin else { return Ok(Administration::None) };
        let found = match open.filter(|open| open.is_at(config)) {
            Some(open) => open.token_of(config).map(Administration::Stays),
            None => Admin::open(config, self).map(Administration::Opened),
        };
        found.map_err(|why| Mistakes::of(&plan.config.file, config.address.spot, why))
    }
}

/// Listeners, and by the numbers of open ones what they are to go on by.
type Frontends = (Vec<Arc<Frontend>>, Vec<(usize, Renewal)>);

/// The objects of a listener, by its number, with their routes.
fn objects(plan: &Plan, routes: &[Arc<Route>], at: usize) -> HashMap<ObjectInterface, Vec<Arc<Route>>> {
    let mut objects: HashMap<ObjectInterface, Vec<Arc<Route>>> = HashMap::new();
    for (plan, route) in plan.routes.iter().zip(routes).filter(|(plan, _)| plan.listens.contains(&at)) {
        // Routes without a contract stand at one gate, in the order of the file.
        let key = if plan.is_opaque() { Bytes::new() } else { plan.key.clone() };
        let place = (key, plan.interface.id.to_string());
        objects.entry(place).or_default().push(Arc::clone(route));
    }
    objects
}

/// Lets the calls at listeners end, and closes them: first those by which callers come alone. The others are also the nodes from which
/// targets are called.
fn end(frontends: &[Arc<Frontend>], routes: &[Arc<Route>], grace: Duration) {
    let faces = |frontend: &&Arc<Frontend>| {
        let this = Arc::downgrade(frontend);
        routes.iter().any(|route| route.far.as_ref().is_some_and(|far| far.ptr_eq(&this)))
    };
    let (last, first): (Vec<_>, Vec<_>) = frontends.iter().partition(faces);
    for some in [first, last] {
        std::thread::scope(|scope| {
            for frontend in some {
                scope.spawn(|| frontend.stop(grace));
            }
        });
    }
}

/// What becomes of the administrator's listener.
enum Administration {
    /// It stays, and this token counts.
    Stays(Option<String>),
    Opened(Admin),
    None,
}

/// Who listens to the targets' signals: those who did before go on, if nothing is different for them.
fn watches(
    plan: &Plan,
    routes: &[Arc<Route>],
    frontends: &[Arc<Frontend>],
    mut before: Vec<Watch>,
    log: &Log,
) -> Vec<Watch> {
    let mut watches = Vec::new();
    for (plan, route) in plan.routes.iter().zip(routes) {
        let hears = |plan: &RoutePlan| {
            let Some(there) = plan.targets.first().map(|target| target.wire) else { return false };
            let news = there.news().is_some() && !plan.interface.attributes.is_empty();
            there.capabilities().signals && (news || !plan.interface.signals.is_empty())
        };
        if !hears(plan) {
            continue;
        }
        let to = plan.listens.iter().filter_map(|at| frontends.get(*at));
        // Whoever is called back over its own connection hears signals by that, and whoever has an object of its own at the target by
        // the connection points of that.
        let tells = |frontend: &&Arc<Frontend>| {
            let otherwise = (plan.calls_back && frontend.calls_back) || frontend.gives_own(&route.key);
            frontend.wire.capabilities().signals && !otherwise
        };
        let to: Vec<_> = to.filter(tells).map(Arc::downgrade).collect();
        if to.is_empty() {
            continue;
        }
        let news = plan.targets.first().and_then(|target| target.wire.news());
        for target in &route.targets {
            let (route, target) = (Arc::clone(route), Arc::clone(target));
            let watched = SignalRelay { route, target, to: to.clone(), news };
            let known = before.iter().position(|watch| watch.is_of(&watched));
            match known {
                Some(at) => watches.push(before.swap_remove(at)),
                None => watches.extend(Watch::start(watched, log)),
            }
        }
    }
    watches
}

/// What happens at a listener.
fn tell(log: &Log, listener: &str, places: &TargetPlaces, notice: &Notice) {
    let name = || ("listener", listener.into());
    match notice {
        Notice::Accepted { peer } => log.detail("accepted", || vec![name(), ("peer", peer.clone().into())]),
        Notice::Refused { peer, why } => {
            log.warn("refused", &[name(), ("peer", peer.clone().into()), ("why", why.clone().into())]);
        }
        Notice::Violation { peer, violation, called: None } => {
            let how = ("failure", violation.message.clone().into());
            log.warn(
                "violation",
                &[name(), ("peer", peer.clone().into()), ("violation", violation.name.into()), how],
            );
        }
        Notice::Violation { violation, called: Some(called), .. } => places.tell(log, called, violation),
        Notice::Unanswered { failure } => {
            log.warn("unanswered", &[name(), ("failure", failure.to_string().into())]);
        }
        Notice::Undelivered { failure } | Notice::Left { failure } => {
            log.warn("undelivered", &[name(), ("failure", failure.to_string().into())]);
        }
        Notice::Joined { place } => log.info("joined", &[name(), ("place", shown(place).into())]),
        Notice::Starved { why } => log.warn("starved", &[name(), ("why", why.clone().into())]),
        _ => {}
    }
}
