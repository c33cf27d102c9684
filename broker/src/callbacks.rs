//! Calls that a target makes back to a caller, over the connection that the caller has made: of a route with a contract that has a
//! callback contract.
//!
//! Each connection of a caller by which it may be called back has a session of its own at one target ([`crate::pass::Lanes`]), so the
//! target knows its callers apart as without a broker. What it calls back there is read by the callback contract and written for the
//! caller ([`CallbackServant`]); what the caller answers goes back the same way.
//!
//! States of such a session: made by the caller's first call; over, when either side ends it, and then the other one is ended too: the
//! caller's end is heard at its listener ([`CallbackGate`]), the target's on the connection itself. Invariants: a callback goes to the
//! caller whose session it came by, and to nobody else; none is tried again; and a call of the caller never goes to another target than
//! the one where its session is.

use crate::cross;
use crate::metrics::RouteMetrics;
use crate::plan::{RoutePlan, TargetPlan};
use crate::upstream::Upstream;
use everywire::{Bytes, Failure, Initiator, Interface, Kind, Reference};
use everywire_model::object::unexpected;
use everywire_model::{
    Answer, Body, Expects, Hold, Link, Method, Outcome, Profile, Raised, Request, Servant, Shape, Sink,
};
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How the callers of a target are called back.
#[derive(Clone)]
pub(crate) struct Backward {
    /// What messages of the target's are for, at the listeners of the route's callers: nobody else is told of it.
    pub(crate) key: Bytes,
    /// What it may call.
    pub(crate) callbacks: Hold<Interface>,
    /// What its callers call.
    pub(crate) service: Hold<Interface>,
    /// Counts of its route.
    pub(crate) metrics: RouteMetrics,
}

impl Backward {
    pub(crate) fn new(callbacks: Hold<Interface>, service: Hold<Interface>, metrics: RouteMetrics) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = format!("callbacks-{}", NEXT.fetch_add(1, Ordering::Relaxed)).into();
        Self { key, callbacks, service, metrics }
    }
}

impl TargetPlan {
    /// The same target, by ways on which what it calls back is for this key; nothing where nobody is called back by one of them.
    pub(crate) fn called_back(&self, key: &Bytes) -> Option<Reference> {
        let own = |profile: &Profile| match profile.wire == self.wire.name() {
            true => self.wire.called_back(profile, key),
            false => None,
        };
        let profiles = self.reference.profiles.iter().map(own).collect::<Option<Vec<_>>>()?;
        (!profiles.is_empty()).then(|| Reference { profiles, ..self.reference.clone() })
    }
}

impl RoutePlan {
    /// What is called back over connections of callers, and what they call; nothing where that is not so.
    pub(crate) fn callbacks_of(&self) -> Option<(Hold<Interface>, Hold<Interface>)> {
        let back = self.back.as_ref().filter(|_| self.calls_back)?;
        Some((back.clone(), self.interface.clone()))
    }
}

/// Stands for the callback contract at a listener, so that its messages are understood there; and hears which callers have left.
pub(crate) struct CallbackGate {
    pub(crate) callbacks: Hold<Interface>,
    pub(crate) target: Weak<Upstream>,
}

impl Servant for CallbackGate {
    fn interface(&self) -> &Interface {
        &self.callbacks
    }

    /// Callbacks come by the connections to the target, and have a servant there.
    fn dispatch(&self, mut request: Request) {
        let nobody = Failure::new(Kind::NoObject, Initiator::Peer, "nobody is called back by a listener");
        request.answer(Answer::Failed(&nobody));
    }

    fn locate(&self, _: &[u8], _: Option<&str>) -> Result<(), Failure> {
        Err(Failure::new(Kind::NoObject, Initiator::Peer, "nobody is called back by a listener"))
    }

    fn closed(&self, link: &dyn Link) {
        if let Some(target) = self.target.upgrade() {
            target.forget(link.serial_number());
        }
    }
}

/// The servant of what a target calls back on one caller's session.
pub(crate) struct CallbackServant {
    /// The caller's connection.
    pub(crate) link: Weak<dyn Link>,
    pub(crate) back: Backward,
    pub(crate) timeout: Duration,
}

impl Servant for CallbackServant {
    fn interface(&self) -> &Interface {
        &self.back.callbacks
    }

    fn dispatch(&self, mut request: Request) {
        let callbacks = self.back.callbacks.clone();
        let index = request.index();
        let Some(operation) = callbacks.operations.get(index) else {
            let what = "the route's callback contract has no such operation";
            let unknown = Failure::new(Kind::NoOperation, Initiator::Peer, what);
            return request.answer(Answer::Failed(&unknown));
        };
        let Some(caller) = self.link.upgrade().and_then(|link| link.caller()) else {
            return request.answer(Answer::Failed(&gone(&Failure::new(
                Kind::Unreachable,
                Initiator::Peer,
                "",
            ))));
        };
        let target = caller.target().with_deadline(Some(self.timeout));
        let body = request.body().clone();
        let values = |sink: &mut dyn Sink| cross::pass(&body, &operation.arguments, sink, None);
        let method = Method::Typed { interface: Some(&callbacks), operation };
        if operation.oneway || request.expects() == Expects::Nothing {
            // Nobody would hear of a failure.
            if target.notify(method, &values).is_ok() {
                self.back.metrics.signals.inc();
            }
            if request.expects() == Expects::Reply {
                request.answer(Answer::Done(&|_: &mut dyn Sink| Ok(())));
            }
            return;
        }
        let answered = callbacks.clone();
        let done = move |outcome| give_back(request, &answered, index, outcome);
        target.submit(method, &values, Box::new(done));
    }

    /// The target has ended the session.
    fn closed(&self, _: &dyn Link) {
        if let Some(link) = self.link.upgrade() {
            let what = "the target has ended the session of this caller";
            link.end(&Failure::new(Kind::Unreachable, Initiator::Peer, what));
        }
    }
}

/// Answers the target with what the caller has answered.
fn give_back(mut request: Request, callbacks: &Interface, index: usize, outcome: Outcome<Body>) {
    let Some(operation) = callbacks.operations.get(index) else { return };
    let put = |body: &Body, shape: &Shape, sink: &mut dyn Sink| cross::pass(body, shape, sink, None);
    match outcome {
        Outcome::Done(body) => {
            request.answer(Answer::Done(&|sink: &mut dyn Sink| put(&body, &operation.results, sink)));
        }
        Outcome::Raised(raised) => {
            let Raised { id, body, .. } = &*raised;
            let known = operation.raises.iter().find(|known| known.is_called(id));
            let Some(known) = known else { return request.answer(Answer::Failed(&unexpected(id))) };
            let shape = Shape::Struct(known.clone());
            let fields = |sink: &mut dyn Sink| put(body, &shape, sink);
            request.answer(Answer::Raised { shape: known, fields: &fields });
        }
        Outcome::Failed(failure) => request.answer(Answer::Failed(&told(&failure))),
        Outcome::Moved(_) => {
            let what = "the caller says that it is elsewhere, and has one connection only";
            request.answer(Answer::Failed(&Failure::new(Kind::Unsupported, Initiator::Peer, what)));
        }
    }
}

/// A failure in words for targets, who learn nothing of the callers' addresses.
fn told(failure: &Failure) -> Failure {
    match failure.kind() {
        Kind::Unreachable | Kind::WrongWire => gone(failure),
        Kind::TimedOut if failure.initiator() != Initiator::Peer => {
            Failure::new(Kind::TimedOut, Initiator::Peer, "whoever called did not answer in time")
                .with_completed(failure.completed())
        }
        _ => failure.clone(),
    }
}

fn gone(failure: &Failure) -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Peer, "whoever called is gone, or cannot be called back")
        .with_completed(failure.completed())
}
