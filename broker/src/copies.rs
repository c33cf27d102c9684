//! Copies of calls: to a file, to a program, or by another route.
//!
//! A copy is a count of references to the body; a thread of the place's own writes it. States of a place: *open*, copies are taken while
//! there is room; *broken*, writing failed: it is opened again from time to time, and what comes meanwhile is lost. Invariants: no call waits for
//! a place, whoever reads it; what is not taken is counted; and a route whose copies are required refuses the call instead.

mod capture;
mod place;
mod shadow;

use crate::config::{CopyConfig, CopyTo};
use crate::json;
use crate::log::{Log, timestamp};
use crate::metrics::Metrics;
use crate::pattern::Who;
use crate::route::Route;
use everywire::{Failure, Initiator, Kind};
use everywire_model::{Body, Request, Shape};
use place::Place;
use prometheus_client::metrics::counter::Counter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers calls, so that an answer's copy says whose it is.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// Places that are open: those that several routes, or the routes before and after a change, copy to are opened once.
#[derive(Default)]
pub(crate) struct Places(Mutex<Vec<(CopyTo, Weak<Place>)>>);

impl Places {
    fn open(&self, to: &CopyTo, queue: usize, lost: &Counter, log: &Log) -> Arc<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|(_, place)| place.strong_count() > 0);
        let known = places.iter().find(|(held, _)| held == to).and_then(|(_, place)| place.upgrade());
        known.unwrap_or_else(|| {
            let place = Place::open(to, queue, lost.clone(), log.clone());
            places.push((to.clone(), Arc::downgrade(&place)));
            place
        })
    }
}

impl Places {
    /// Has all that was copied written, within a time.
    pub(crate) fn close(&self, time: Duration) {
        let places: Vec<_> = {
            let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            places.iter().filter_map(|(_, place)| place.upgrade()).collect()
        };
        places.iter().for_each(|place| place.close(time));
    }
}

/// Takes copies for one route.
pub(crate) struct Copier {
    to: To,
    required: bool,
    answers: bool,
    taken: Counter,
    lost: Counter,
}

enum To {
    Place(Arc<Place>),
    /// Another route, which may be made later than this one.
    Route(OnceLock<Weak<Route>>),
}

/// What was copied.
pub(crate) struct Copy {
    at: Duration,
    call: u64,
    route: Arc<str>,
    operation: String,
    /// Who called, where that is known.
    caller: Option<String>,
    what: What,
    body: Body,
    /// What the values look like.
    shape: Shape,
}

enum What {
    Arguments,
    Results,
    Raised(String),
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the target.
    Call,
}

/// A call of which a copy was taken.
pub(crate) struct Copied {
    copier: Arc<Copier>,
    call: u64,
}

impl Copier {
    pub(crate) fn new(
        config: &CopyConfig,
        route: &str,
        places: &Places,
        metrics: &Metrics,
        log: &Log,
    ) -> Arc<Self> {
        let shown = match &config.to {
            CopyTo::Lines(path) | CopyTo::Capture(path) => path.display().to_string(),
            CopyTo::Program(command) => command.split_whitespace().next().unwrap_or_default().to_owned(),
            CopyTo::Route(name) => format!("route {name}"),
        };
        let (taken, lost) = metrics.copies(route, &shown);
        let to = match &config.to {
            CopyTo::Route(_) => To::Route(OnceLock::new()),
            to => To::Place(places.open(to, config.queue, &lost, log)),
        };
        Arc::new(Self { to, required: config.required, answers: config.answers, taken, lost })
    }

    /// The route that it copies to is there.
    pub(crate) fn lead_to(&self, route: &Arc<Route>) {
        if let To::Route(to) = &self.to {
            // It is made once, with its routes.
            let _ = to.set(Arc::downgrade(route));
        }
    }

    /// Takes a copy of a call.
    ///
    /// # Errors
    /// It cannot be taken, and must be.
    pub(crate) fn take(
        self: &Arc<Self>,
        _: Direction,
        route: &Route,
        request: &Request,
        body: &Body,
        who: &Who,
    ) -> Result<Option<Arc<Copied>>, Failure> {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let index = request.index();
        let taken = match &self.to {
            To::Place(place) => {
                let caller = route.asks_who().then(|| who.source());
                place.put(copy(route, request, call, caller, What::Arguments, body, None))
            }
            To::Route(to) => {
                let to = to.get().and_then(Weak::upgrade);
                to.is_some_and(|to| shadow::send(&to, route, index, body))
            }
        };
        if taken {
            self.taken.inc();
            return Ok(Some(Arc::new(Copied { copier: Arc::clone(self), call })));
        }
        self.lost.inc();
        if self.required {
            let what = "the copy of this call that the route requires cannot be taken";
            return Err(Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again later"));
        }
        Ok(None)
    }
}

impl Copied {
    /// The call was answered: with these results, or with this exception.
    pub(crate) fn answer(&self, route: &Route, request: &Request, body: &Body, raised: Option<&Shape>) {
        let To::Place(place) = &self.copier.to else { return };
        if !self.copier.answers {
            return;
        }
        let what = raised.map_or(What::Results, |shape| What::Raised(shape.noun().into_owned()));
        let taken = place.put(copy(route, request, self.call, None, what, body, raised));
        if taken {
            self.copier.taken.inc()
        } else {
            self.copier.lost.inc()
        };
    }
}

fn copy(
    route: &Route,
    request: &Request,
    call: u64,
    caller: Option<String>,
    what: What,
    body: &Body,
    raised: Option<&Shape>,
) -> Copy {
    let operation = route.interface.operations.get(request.index());
    let shape = match (raised, operation, &what) {
        (Some(shape), ..) => shape.clone(),
        (None, Some(operation), What::Results) => operation.results.clone(),
        (None, Some(operation), _) => operation.arguments.clone(),
        (None, None, _) => Shape::Void,
    };
    let label = match (operation, &route.opaque) {
        (Some(operation), _) => operation.label.to_string(),
        (None, Some(opaque)) => opaque.label(request),
        (None, None) => request.method().label().into_owned(),
    };
    Copy {
        at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO),
        call,
        route: route.name.as_str().into(),
        operation: label,
        caller,
        what,
        body: body.clone(),
        shape,
    }
}

impl Copy {
    /// Bytes that it holds.
    fn len(&self) -> usize {
        self.body.bytes.len()
    }

    /// A line of JSON. Values that do not read as the contract says are octets.
    fn line(&self) -> String {
        // Without a contract nobody knows what the octets mean.
        let known = (!matches!(self.shape, Shape::Void)).then(|| json::of(&self.body, &self.shape)).flatten();
        let values = known.unwrap_or_else(|| json::octets(&self.body.bytes));
        let mut line = format!(
            "{{\"time\":\"{}\",\"route\":{},\"call\":{},\"operation\":{}",
            timestamp(self.at),
            json::text(&self.route),
            self.call,
            json::text(&self.operation)
        );
        if let Some(caller) = &self.caller {
            line.push_str(&format!(",\"caller\":{}", json::text(caller)));
        }
        if let Some(Ok(headers)) = self.body.headers().map(|headers| headers.list(&self.body))
            && !headers.is_empty()
        {
            let each = headers.iter().map(|header| {
                format!(
                    "{{\"name\":{},\"value\":{}}}",
                    json::text(&header.name),
                    json::text(&header.display())
                )
            });
            line.push_str(&format!(",\"headers\":[{}]", each.collect::<Vec<_>>().join(",")));
        }
        match &self.what {
            What::Arguments => line.push_str(&format!(",\"arguments\":{values}")),
            What::Results => line.push_str(&format!(",\"results\":{values}")),
            What::Raised(name) => {
                line.push_str(&format!(",\"raised\":{},\"fields\":{values}", json::text(name)))
            }
        }
        line.push_str("}\n");
        line
    }

    /// One line for people.
    fn title(&self) -> String {
        let what = match &self.what {
            What::Arguments => "arguments of".to_owned(),
            What::Results => "results of".to_owned(),
            What::Raised(name) => format!("{name} of"),
        };
        format!("{}: {what} {}, call {}", self.route, self.operation, self.call)
    }
}
