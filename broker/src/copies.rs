//! Copies of calls: to a file, to a program, or by another route.
//!
//! A copy is a count of references to the body; a thread of the place's own writes it. So the call pays for
//! some reference counts and a push to a queue, and neither for formatting nor for input and output. Where copies are
//! only counted, the body's octets are all that is handed over.
//!
//! States of a place: *open*, copies are taken while there is room; *broken*, writing failed: it is opened
//! again from time to time, and what comes meanwhile is lost; *closed*, when the broker ends or the last
//! copier is dropped: what waits is still written, for a time. A copier (one route, one place) has no state
//! but its counters.
//!
//! Order for one call: `CopyTicket::of` before it is sent, with the arguments; `CopyTicket::answer` when the target
//! has answered, with what came back, if the copier wants answers. Both carry the same number, so that a
//! reader finds the pair.
//!
//! Invariants: no call waits for a place, whoever reads it; what is not taken is counted; and a route whose
//! copies are required refuses the call instead. Those that are required are taken first, so that no other place
//! has a copy of a call that is refused. The size of a place's queue is bounded in copies and in
//! bytes (`queue`).

mod capture;
mod output;
mod place;
mod queue;
mod rebuild;
mod shadow;

use crate::config::{CopyConfig, CopyTo};
use crate::frontend::Frontend;
use crate::json;
use crate::log::{Log, timestamp};
use crate::metrics::Metrics;
use crate::pass::{self, Edits};
use crate::route::Route;
use everywire::layer::CallerIdentity;
use everywire::{Bytes, Failure, Initiator, Interface, Kind};
use everywire_dynamic::json::LimitedText;
use everywire_model::shape::Struct;
use everywire_model::{Body, Encoded, Header, Headers, Hold, Operation, Request, Shape, Wire};
use place::Destination;
use prometheus_client::metrics::counter::Counter;
use queue::QueueItem;
use rebuild::Head;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers calls, so that an answer's copy says whose it is.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// Places that are open, by what the file says of them: those that several routes, or the routes before and
/// after a change, copy to are opened once. Held weakly: the last copier closes a place.
#[derive(Default)]
pub(crate) struct Destinations(Mutex<Vec<(CopyTo, Weak<Destination>)>>);

impl Destinations {
    fn open(
        &self,
        to: &CopyTo,
        queue: usize,
        lost: &Counter,
        metrics: &Metrics,
        log: &Log,
    ) -> Arc<Destination> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|(_, place)| place.strong_count() > 0);
        let known = places.iter().find(|(held, _)| held == to).and_then(|(_, place)| place.upgrade());
        known.unwrap_or_else(|| {
            let place =
                Destination::open(to, queue, lost.clone(), metrics.copied_bytes(&shown(to)), log.clone());
            places.push((to.clone(), Arc::downgrade(&place)));
            place
        })
    }
}

impl Destinations {
    /// Has all that was copied written, within a time.
    pub(crate) fn close(&self, time: Duration) {
        let places: Vec<_> = {
            let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            places.iter().filter_map(|(_, place)| place.upgrade()).collect()
        };
        places.iter().for_each(|place| place.close(time));
    }
}

/// A place as metrics show it: of a command only the program, since its arguments may have secrets.
fn shown(to: &CopyTo) -> String {
    match to {
        CopyTo::Lines(path) | CopyTo::Capture(path) => path.display().to_string(),
        CopyTo::Program(command) => command.split_whitespace().next().unwrap_or_default().to_owned(),
        CopyTo::Route(name) => format!("route {name}"),
        CopyTo::Count => String::from("count"),
    }
}

/// Takes copies for one route and one place. `taken` and `lost` are metrics of this pair.
pub(crate) struct Copier {
    to: CopyTarget,
    required: bool,
    answers: bool,
    taken: Counter,
    lost: Counter,
}

enum CopyTarget {
    Place(Arc<Destination>),
    /// Another route, which may be made later than this one.
    Route(OnceLock<Weak<Route>>),
}

/// What all copies of a route have in common.
pub(crate) struct CopyContext {
    route: Arc<str>,
    interface: Hold<Interface>,
    /// The wire, where no contract numbers the operations.
    wire: Option<&'static dyn Wire>,
    /// Changes of headers that copies of calls have.
    edits: Option<Arc<Headers>>,
}

/// What was copied: shares of what the call consists of, so that taking one costs no more than counting references. It is moved some
/// times on its way, so what few copies have stands behind a pointer.
pub(crate) struct Copy {
    at: SystemTime,
    call: u64,
    subject: Arc<CopyContext>,
    /// The number of the operation, and what it is called where no contract numbers it.
    index: usize,
    named: (Bytes, Bytes),
    /// CallerIdentity called, where that is known.
    caller: Option<Box<str>>,
    what: CopyKind,
    body: Body,
    /// Of calls that are to be messages in a capture: what stands before the body.
    head: Option<Box<Head>>,
}

/// Which part of a call the copy is of.
enum CopyKind {
    Arguments,
    Results,
    Raised(Hold<Struct>),
    /// An exception, or a failure, that nobody here reads.
    Passed(Box<OpaqueAnswer>),
}

struct OpaqueAnswer {
    id: String,
    /// Whether it is an exception.
    raised: bool,
}

/// How a call was answered.
#[derive(Clone, Copy)]
pub(crate) enum CallResult<'a> {
    /// With results.
    Done,
    /// With this exception.
    Raised(&'a Hold<Struct>),
    /// With an exception, or a failure, that nobody here reads.
    Passed(&'a Encoded),
}

/// Which copies were taken of a call, so that its answer is copied to the same places. Two numbers, kept with
/// the call.
#[derive(Clone, Copy, Default)]
pub(crate) struct CopyTicket {
    call: u64,
    /// A bit for each copier of the route.
    by: u64,
}

impl Copier {
    pub(crate) fn new(
        config: &CopyConfig,
        route: &str,
        places: &Destinations,
        metrics: &Metrics,
        log: &Log,
    ) -> Arc<Self> {
        let (taken, lost) = metrics.copies(route, &shown(&config.to));
        let to = match &config.to {
            CopyTo::Route(_) => CopyTarget::Route(OnceLock::new()),
            to => CopyTarget::Place(places.open(to, config.queue, &lost, metrics, log)),
        };
        Arc::new(Self { to, required: config.required, answers: config.answers, taken, lost })
    }

    /// Whether a call is refused whose copy it cannot take.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// The route that it copies to is there.
    pub(crate) fn lead_to(&self, route: &Arc<Route>) {
        if let CopyTarget::Route(to) = &self.to {
            // It is made once, with its routes.
            let _ = to.set(Arc::downgrade(route));
        }
    }
}

impl CopyTicket {
    /// Takes the copies of a call that its route asks for.
    ///
    /// # Errors
    /// One cannot be taken, and must be.
    pub(crate) fn of(
        route: &Route,
        request: &Request,
        who: &CallerIdentity,
        near: Option<&Frontend>,
    ) -> Result<Self, Failure> {
        let mut copied = Self::default();
        if route.copies.is_empty() {
            return Ok(copied);
        }
        copied.call = CALLS.fetch_add(1, Ordering::Relaxed);
        for (at, copier) in route.copies.iter().enumerate() {
            let taken = match &copier.to {
                CopyTarget::Place(place) => {
                    let make = || Copy {
                        caller: route.asks_who().then(|| who.source().into_boxed_str()),
                        // Only captures want what stands before the body: it costs some allocations.
                        head: near
                            .filter(|_| place.captures)
                            .map(|near| Box::new(Head::of(near, request, copier.answers))),
                        ..copied.copy(route, request, CopyKind::Arguments, request.body())
                    };
                    place.put(request.body(), make)
                }
                CopyTarget::Route(to) => {
                    let body = Edits::on(route.edits.copies.as_deref(), request.body());
                    let to = to.get().and_then(Weak::upgrade);
                    to.is_some_and(|to| shadow::send(&to, route, request.index(), &body))
                }
            };
            if taken {
                copier.taken.inc();
                copied.by |= 1 << at;
                continue;
            }
            copier.lost.inc();
            if copier.required {
                let what = "the copy of this call that the route requires cannot be taken";
                return Err(Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again later"));
            }
        }
        Ok(copied)
    }

    /// The call was answered: copies what came back to the places that have its arguments. A failure is not
    /// copied.
    pub(crate) fn answer(self, route: &Route, request: &Request, body: &Body, said: CallResult<'_>) {
        if self.by == 0 {
            return;
        }
        for (at, copier) in route.copies.iter().enumerate() {
            let CopyTarget::Place(place) = &copier.to else { continue };
            if !copier.answers || self.by & 1 << at == 0 {
                continue;
            }
            let what = || match said {
                CallResult::Done => CopyKind::Results,
                CallResult::Raised(shape) => CopyKind::Raised(shape.clone()),
                CallResult::Passed(encoded) => CopyKind::Passed(Box::new(OpaqueAnswer {
                    id: encoded.id.clone(),
                    raised: encoded.raised,
                })),
            };
            let taken = place.put(body, || self.copy(route, request, what(), body));
            let counter = if taken { &copier.taken } else { &copier.lost };
            counter.inc();
        }
    }

    /// What a copy consists of; nothing of it is encoded or formatted here.
    #[inline]
    fn copy(self, route: &Route, request: &Request, what: CopyKind, body: &Body) -> Copy {
        Copy {
            at: SystemTime::now(),
            call: self.call,
            subject: Arc::clone(&route.subject),
            index: request.index(),
            named: request.names(),
            caller: None,
            what,
            body: body.clone(),
            head: None,
        }
    }
}

impl CopyContext {
    pub(crate) fn new(
        route: Arc<str>,
        interface: Hold<Interface>,
        wire: Option<&'static dyn Wire>,
        edits: Option<Arc<Headers>>,
    ) -> Arc<Self> {
        Arc::new(Self { route, interface, wire, edits })
    }
}

impl QueueItem for Copy {
    fn bytes(&self) -> usize {
        self.body.bytes.len()
    }
}

impl Copy {
    /// When it was taken, since 1970.
    fn time(&self) -> Duration {
        self.at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
    }

    /// The body with the changes of headers that the copy has.
    fn changed(&self) -> Body {
        let edits = match self.what {
            CopyKind::Arguments => self.subject.edits.as_deref(),
            _ => None,
        };
        Edits::on(edits, &self.body)
    }

    /// Its operation, where a contract numbers it.
    fn operation(&self) -> Option<&Operation> {
        self.subject.interface.operations.get(self.index)
    }

    /// What the operation is called.
    fn label(&self) -> Cow<'_, str> {
        match (self.operation(), self.subject.wire) {
            (Some(operation), _) => Cow::Borrowed(&operation.label),
            (None, Some(wire)) => pass::label(wire, &self.named.0, &self.named.1),
            (None, None) => String::from_utf8_lossy(&self.named.1),
        }
    }

    /// What the values look like, where a contract tells.
    fn shape(&self) -> Option<Shape> {
        let operation = self.operation();
        match &self.what {
            CopyKind::Arguments => operation.map(|operation| operation.arguments.clone()),
            CopyKind::Results => operation.map(|operation| operation.results.clone()),
            CopyKind::Raised(shape) => Some(Shape::Struct(shape.clone())),
            CopyKind::Passed(..) => None,
        }
    }

    /// What an exception is called.
    fn raised(&self) -> Cow<'_, str> {
        match &self.what {
            CopyKind::Raised(shape) => Shape::Struct(shape.clone()).noun().into_owned().into(),
            CopyKind::Passed(passed) => Cow::Borrowed(&passed.id),
            CopyKind::Arguments | CopyKind::Results => Cow::Borrowed(""),
        }
    }

    /// A line of JSON. Values that do not read as the contract says are octets, and those that neither a contract nor the message
    /// itself describes. It is text from the beginning, since a tree of values takes many times their octets.
    ///
    /// # Errors
    /// None is known: there is room for all of it.
    fn line(&self) -> Result<Vec<u8>, Failure> {
        let mut line = LimitedText::new(usize::MAX);
        line.push_str("{\"time\":")?;
        line.push(&timestamp(self.time()))?;
        line.push_str(",\"route\":")?;
        line.push(&*self.subject.route)?;
        line.push_str(",\"call\":")?;
        line.push(&self.call)?;
        line.push_str(",\"operation\":")?;
        line.push(&*self.label())?;
        if let Some(caller) = &self.caller {
            line.push_str(",\"caller\":")?;
            line.push(&**caller)?;
        }
        let body = self.changed();
        if let Some(Ok(headers)) = body.headers().map(|headers| headers.list(&body))
            && !headers.is_empty()
        {
            let header = |header: &Header| json!({"name": header.name, "value": header.display()});
            line.push_str(",\"headers\":")?;
            line.push(&headers.iter().map(header).collect::<Json>())?;
        }
        match &self.what {
            CopyKind::Arguments => line.push_str(",\"arguments\":")?,
            CopyKind::Results => line.push_str(",\"results\":")?,
            CopyKind::Raised(_) | CopyKind::Passed(..) => {
                line.push_str(",\"raised\":")?;
                line.push(&*self.raised())?;
                line.push_str(",\"fields\":")?;
            }
        }
        let shape = self.shape().or_else(|| self.body.codec.shape(&self.body));
        json::write(&self.body, shape.as_ref(), &mut line)?;
        line.push_str("}\n")?;
        Ok(line.into_bytes())
    }

    /// One line for people.
    fn title(&self) -> String {
        let what = match &self.what {
            CopyKind::Arguments => "arguments of".to_owned(),
            CopyKind::Results => "results of".to_owned(),
            CopyKind::Raised(_) | CopyKind::Passed(..) => format!("{} of", self.raised()),
        };
        format!("{}: {what} {}, call {}", self.subject.route, self.label(), self.call)
    }
}
