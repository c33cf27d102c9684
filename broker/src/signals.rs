//! Signals of targets, emitted anew at the route's listeners.
//!
//! One thread for each target that emits: it subscribes, waits until the subscription ends, and subscribes
//! again. Signals come on the runtime's threads, in order, and are emitted there.
//!
//! States of a watch: *subscribing*; *listening*; *pausing* after a failure, for longer each time, up to ten
//! seconds; *over*, when it is dropped, or when the target's wire has no signals. Changes of attributes,
//! where the wire tells of them, are listened to beside the signals.
//!
//! Invariants: a reload that changes nothing for a target keeps its watch, so that no signal is lost
//! meanwhile (`Watch::is_of`); a signal that has passed too many brokers goes no further; a listener that is
//! gone is skipped. A target that loses its connection loses the signals until it is subscribed to again:
//! nobody keeps them.

use crate::frontend::Frontend;
use crate::hops;
use crate::log::Log;
use crate::route::Route;
use crate::upstream::Upstream;
use everywire::{Failure, Kind, SignalEvent};
use everywire_model::signal::Listener;
use everywire_model::visit::WithHeaders;
use everywire_model::{
    ChangeSignal, Emission, Headers, Incoming, Interface, Signal, SignalFilter, Sink, Subscription,
};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long a target is left alone that could not be subscribed to: this long at first, then up to the other.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Whose signals, and where they go.
pub(crate) struct SignalRelay {
    /// The route that the signals pass.
    pub(crate) route: Arc<Route>,
    /// Who emits them.
    pub(crate) target: Arc<Upstream>,
    /// The listeners whose peers hear them.
    pub(crate) to: Vec<Weak<Frontend>>,
    /// How the target tells of changed attributes, if it does.
    pub(crate) news: Option<&'static ChangeSignal>,
}

/// Listens to a target until it is dropped.
pub(crate) struct Watch {
    /// Whose signals.
    watched: Arc<SignalRelay>,
    /// What tells the thread to end.
    state: Arc<State>,
}

/// What the thread waits for: the end of the watch, or of its subscription.
#[derive(Default)]
struct State {
    /// What has happened.
    turn: Mutex<WatchState>,
    /// Rung when something has.
    rung: Condvar,
}

/// `over`: the watch was dropped. `ended`: the connection is gone.
#[derive(Default)]
struct WatchState {
    over: bool,
    ended: bool,
}

impl State {
    /// What was subscribed to is over.
    fn end(&self) {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.rung.notify_all();
    }
}

impl Watch {
    /// Starts the thread; nothing, if there is none to be had: then the log says so, and signals do not pass.
    pub(crate) fn start(watched: SignalRelay, log: &Log) -> Option<Self> {
        let (watched, state) = (Arc::new(watched), Arc::<State>::default());
        let run = {
            let (watched, state, log) = (Arc::clone(&watched), Arc::clone(&state), log.clone());
            move || run(&watched, &state, &log)
        };
        match std::thread::Builder::new().name("signals".into()).spawn(run) {
            Ok(_) => Some(Self { watched, state }),
            Err(error) => {
                log.warn("signals", &[("failure", error.to_string().into())]);
                None
            }
        }
    }

    /// Whether it is one that others would listen to in the same way.
    pub(crate) fn is_of(&self, other: &SignalRelay) -> bool {
        let (own, its) = (&self.watched.route, &other.route);
        let frontends = || self.watched.to.iter().zip(&other.to).all(|(left, right)| left.ptr_eq(right));
        let signals = |route: &Route| {
            let each = route.interface.signals.iter();
            let signals = each.map(|signal| format!("{}{:?}", signal.name, signal.fields.fields().len()));
            let attributes = route.interface.attributes.iter().map(|attribute| attribute.name.to_string());
            signals.chain(attributes).collect::<Vec<_>>()
        };
        own.name == its.name
            && own.key == its.key
            && own.interface.id == its.interface.id
            && signals(own) == signals(its)
            && self.watched.target.object.reference() == other.target.object.reference()
            && self.watched.to.len() == other.to.len()
            && frontends()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.turn.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.state.rung.notify_all();
    }
}

/// The thread. A failure is told to the log once in a row.
fn run(watched: &Arc<SignalRelay>, state: &Arc<State>, log: &Log) {
    let mut pause = PAUSE.0;
    let mut told = false;
    loop {
        match listen(watched, state) {
            Ok(subscriptions) => {
                (pause, told) = (PAUSE.0, false);
                let mut turn = state.turn.lock().unwrap_or_else(PoisonError::into_inner);
                while !turn.over && !turn.ended {
                    turn = state.rung.wait(turn).unwrap_or_else(PoisonError::into_inner);
                }
                turn.ended = false;
                let over = turn.over;
                drop(turn);
                drop(subscriptions);
                if over {
                    return;
                }
            }
            Err(failure) => {
                if !told {
                    told = true;
                    let fields = [
                        ("route", (*watched.route.name).into()),
                        ("target", watched.target.name().into()),
                        ("failure", failure.to_string().into()),
                    ];
                    log.warn("no signals", &fields);
                }
                if failure.kind() == Kind::Unsupported {
                    return;
                }
                let turn = state.turn.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = state.rung.wait_timeout_while(turn, pause, |turn| !turn.over);
                let (turn, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if turn.over {
                    return;
                }
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// What a subscription tells: what is heard, and that the connection is gone.
fn listener(
    watched: &Arc<SignalRelay>,
    state: &Arc<State>,
    hear: impl Fn(&SignalRelay, &Incoming) + Send + Sync + 'static,
) -> Listener {
    let (watched, state) = (Arc::downgrade(watched), Arc::clone(state));
    Arc::new(move |event| match event {
        SignalEvent::Signal(heard) => {
            if let Some(watched) = watched.upgrade() {
                hear(&watched, &heard);
            }
        }
        SignalEvent::Disconnected(_) => state.end(),
        SignalEvent::OwnerLost(_) | SignalEvent::Undecodable(_) => {}
    })
}

/// Subscribes to all signals of the interface at once, or to each where the wire wants them named.
fn subscribe(watched: &Arc<SignalRelay>, state: &Arc<State>) -> Result<Vec<Subscription>, Failure> {
    let object = &watched.target.object;
    match object.subscribe(None, listener(watched, state, pass_on)) {
        Ok(subscription) => return Ok(vec![subscription]),
        Err(failure) if failure.kind() != Kind::Unsupported => return Err(failure),
        Err(_) => {}
    }
    let signals = watched.route.interface.signals.iter();
    signals.map(|signal| object.subscribe(Some(signal), listener(watched, state, pass_on))).collect()
}

/// The signals of the interface, and news of its attributes.
fn listen(watched: &Arc<SignalRelay>, state: &Arc<State>) -> Result<Vec<Subscription>, Failure> {
    let interface = &watched.route.interface;
    let mut all = if interface.signals.is_empty() { Vec::new() } else { subscribe(watched, state)? };
    if let Some(news) = watched.news.filter(|_| !interface.attributes.is_empty()) {
        let hear = move |watched: &SignalRelay, heard: &Incoming| tell_news(watched, news, heard);
        let target = watched.target.object.target();
        let listener = listener(watched, state, hear);
        let filter = SignalFilter { interface: Some(news.interface), signal: Some(news.signal) };
        all.push(target.subscribe(filter, listener)?);
    }
    Ok(all)
}

/// Emits a signal at each listener as one of the object that stands for the target there.
fn pass_on(watched: &SignalRelay, heard: &Incoming) {
    let interface = &watched.route.interface;
    if let Some(signal) = interface.signal(&heard.operation) {
        emit(watched, heard, interface, signal, |_| true);
    }
}

/// Tells of changed attributes at each listener of the target's wire, in the target's words; callers on others ask.
fn tell_news(watched: &SignalRelay, news: &'static ChangeSignal, heard: &Incoming) {
    if (news.is_of)(&heard.body, &watched.route.interface) {
        let tells = |frontend: &Frontend| frontend.wire.news().is_some_and(|own| std::ptr::eq(own, news));
        emit(watched, heard, news.interface, news.signal, tells);
    }
}

/// Emits what was heard as a signal of the object that stands for the target, at some listeners, unless it has passed too many brokers.
fn emit(
    watched: &SignalRelay,
    heard: &Incoming,
    interface: &Interface,
    signal: &Signal,
    tells: impl Fn(&Frontend) -> bool,
) {
    let route = &watched.route;
    let Some(hops) = counted(route, heard) else { return };
    for frontend in watched.to.iter().filter_map(Weak::upgrade).filter(|frontend| tells(frontend)) {
        let values = |sink: &mut dyn Sink| heard.body.pipe(&signal.fields, sink);
        let headers = hops::beside(&Headers::default(), frontend.wire.hop_header(), hops);
        let with = WithHeaders { values: &values, headers: &headers };
        match frontend.node.emitter().emit(&Emission::typed(&route.key, interface, signal, &with)) {
            Ok(()) => {
                route.metrics.signals.inc();
            }
            Err(failure) => {
                let fields = [
                    ("route", (*route.name).into()),
                    ("signal", signal.label.to_string().into()),
                    ("failure", failure.to_string().into()),
                ];
                route.log.warn("signal not passed on", &fields);
            }
        }
    }
}

/// Brokers that a signal has passed with this one, unless it has passed too many: then it goes no further. 0: nobody counts.
fn counted(route: &Route, heard: &Incoming) -> Option<u32> {
    let hops = hops::count(&heard.body, route.hops);
    if hops.is_err() {
        route.metrics.refused("hops");
    }
    hops.ok()
}
