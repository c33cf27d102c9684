//! Signals of targets, emitted anew at the route's listeners.
//!
//! One thread for each target that emits: it subscribes, waits until the subscription ends, and subscribes again. Signals come on the
//! runtime's threads, in order.

use crate::front::Front;
use crate::log::Log;
use crate::route::Route;
use crate::upstream::Upstream;
use everywire::{Failure, Kind, Tidings};
use everywire_model::signal::Listener;
use everywire_model::{Heard, Interface, Signal, Sink, Subscription};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long a target is left alone that could not be subscribed to: this long at first, then up to the other.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Whose signals, and where they go.
pub(crate) struct Watched {
    pub(crate) route: Arc<Route>,
    pub(crate) target: Arc<Upstream>,
    pub(crate) to: Vec<Weak<Front>>,
}

/// Listens to a target until it is dropped.
pub(crate) struct Watch {
    watched: Arc<Watched>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    news: Mutex<News>,
    rung: Condvar,
}

#[derive(Default)]
struct News {
    over: bool,
    ended: bool,
}

impl Watch {
    pub(crate) fn start(watched: Watched, log: &Log) -> Option<Self> {
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
    pub(crate) fn is_of(&self, other: &Watched) -> bool {
        let (own, its) = (&self.watched.route, &other.route);
        let fronts = || self.watched.to.iter().zip(&other.to).all(|(left, right)| left.ptr_eq(right));
        let signals = |route: &Route| {
            let each = route.interface.signals.iter();
            each.map(|signal| format!("{}{:?}", signal.name, signal.fields.fields().len()))
                .collect::<Vec<_>>()
        };
        own.name == its.name
            && own.key == its.key
            && own.interface.id == its.interface.id
            && signals(own) == signals(its)
            && self.watched.target.object.reference() == other.target.object.reference()
            && self.watched.to.len() == other.to.len()
            && fronts()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.news.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.state.rung.notify_all();
    }
}

fn run(watched: &Arc<Watched>, state: &Arc<State>, log: &Log) {
    let mut pause = PAUSE.0;
    let mut told = false;
    loop {
        match subscribe(watched, state) {
            Ok(subscriptions) => {
                (pause, told) = (PAUSE.0, false);
                let mut news = state.news.lock().unwrap_or_else(PoisonError::into_inner);
                while !news.over && !news.ended {
                    news = state.rung.wait(news).unwrap_or_else(PoisonError::into_inner);
                }
                news.ended = false;
                let over = news.over;
                drop(news);
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
                let news = state.news.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = state.rung.wait_timeout_while(news, pause, |news| !news.over);
                let (news, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if news.over {
                    return;
                }
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// Subscribes to all signals of the interface at once, or to each where the wire wants them named.
fn subscribe(watched: &Arc<Watched>, state: &Arc<State>) -> Result<Vec<Subscription>, Failure> {
    let listener = || -> Listener {
        let (watched, state) = (Arc::downgrade(watched), Arc::clone(state));
        Arc::new(move |tidings| match tidings {
            Tidings::Signal(heard) => {
                if let Some(watched) = watched.upgrade() {
                    pass_on(&watched, &heard);
                }
            }
            Tidings::Ended(_) => {
                state.news.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
                state.rung.notify_all();
            }
            Tidings::Lost(_) | Tidings::Garbled(_) => {}
        })
    };
    let object = &watched.target.object;
    match object.subscribe(None, listener()) {
        Ok(subscription) => return Ok(vec![subscription]),
        Err(failure) if failure.kind() != Kind::Unsupported => return Err(failure),
        Err(_) => {}
    }
    let signals = &watched.route.interface.signals;
    signals.iter().map(|signal| object.subscribe(Some(signal), listener())).collect()
}

/// Emits a signal at each listener as one of the object that stands for the target there.
fn pass_on(watched: &Watched, heard: &Heard) {
    let route = &watched.route;
    let Some(signal) = find(&route.interface, heard) else { return };
    for front in watched.to.iter().filter_map(Weak::upgrade) {
        let values = |sink: &mut dyn Sink| heard.body.pipe(&signal.fields, sink);
        match front.node.emitter().emit(&route.key, &route.interface, signal, &values) {
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

/// The signal that was heard.
fn find<'i>(interface: &'i Interface, heard: &Heard) -> Option<&'i Signal> {
    interface.signal(&heard.signal)
}
