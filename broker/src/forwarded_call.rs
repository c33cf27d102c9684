//! One call on its way through the broker.
//!
//! States: *let in* (matched, within its limits, copied), *sent* (a target has it, or it waits for the connection), *ended* (answered, or
//! withdrawn by its caller: then the target is told, where its wire has a word for it). From *sent* it may come back to be sent again: to
//! another target, or to where the target says that the object is.
//!
//! Invariants: a call is sent to one target at a time; it is sent again only if nothing of it ran, or if the route says that its
//! operation may run twice; once it may have run, no later failure says that it did not; and it is answered once, whatever happens.
//!
//! Ownership: the call is a box that is handed on: to the target's line while it waits, into the completion while a target has it.
//! Whoever has it must end it; if it is dropped instead (withdrawn, or the broker ended), its request answers for it, and the metrics
//! count it as cancelled. The permit, the entry among the listener's calls and the request go with it.
//!
//! Order on the way in, cheapest first: who calls, hops, limits, values, copies. A call that is refused was sent nowhere.

use crate::balance::Candidate;
use crate::calls::{DispatchNote, Entry};
use crate::config::Mode;
use crate::copies::{CallResult, CopyTicket};
use crate::elsewhere::{hands_over, redirect};
use crate::frontend::Frontend;
use crate::hops;
use crate::interfaces::{self, DiscoveredObject};
use crate::limits::Permit;
use crate::own_objects::OwnObjects;
use crate::references;
use crate::route::Route;
use crate::told::{AnswerCount, told, unreadable, word};
use crate::upstream::Upstream;
use crate::validate;
use crate::values::{ValueFlow, Values};
use everywire::layer::{Attempts, CallerIdentity};
use everywire::model::failure::Completed;
use everywire::{Bytes, Failure, Initiator, Kind, Reference};
use everywire_model::Raised;
use everywire_model::object::unexpected;
use everywire_model::visit::WithHeaders;
use everywire_model::{Answer, Body, Encoded, Expects, Operation, Outcome, Request, Shape, Sink};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a target may say that the object is elsewhere: circles end.
const FORWARDS: u32 = 3;

/// A call, from when its route was found until it is answered.
pub(crate) struct ForwardedCall {
    request: Request,
    pub(crate) route: Arc<Route>,
    /// The number of the operation in the route's interface; past its end where no contract numbers it.
    pub(crate) index: usize,
    /// The listener that it came by.
    near: Option<Arc<Frontend>>,
    /// What its object stands for, where that is its caller's own.
    own: Option<Arc<OwnObjects>>,
    begun: Instant,
    /// How often it was sent, also to where a target said that the object is.
    sent: u32,
    attempts: Attempts,
    /// Whether it had to wait for a connection.
    waited: bool,
    forwards: u32,
    /// The target that it was sent to last.
    target: Option<usize>,
    /// The targets before that.
    tried: Vec<usize>,
    copied: CopyTicket,
    /// Brokers that it has passed, this one among them; 0 where nobody counts.
    hops: u32,
    /// Its place among the calls of its listener, whose callers may withdraw them; nothing for what nobody waits for.
    entry: Option<Entry>,
    answered: bool,
    /// What objects in the answer have said that they are.
    found: Vec<DiscoveredObject>,
    permit: Permit,
}

impl ForwardedCall {
    /// Lets a call in and sends it, or answers it.
    pub(crate) fn begin(
        mut request: Request,
        route: &Arc<Route>,
        who: &CallerIdentity,
        near: Option<Arc<Frontend>>,
        own: Option<Arc<OwnObjects>>,
    ) {
        let index = request.index();
        if !route.lets(who) {
            route.metrics.refused("denied");
            let fields = || vec![("route", (*route.name).into()), ("caller", who.source().into())];
            route.log.detail("denied", fields);
            let failure = Failure::new(Kind::Refused, Initiator::Peer, "this caller may not make this call");
            return request.answer(Answer::Failed(&failure));
        }
        let hops = match hops::count(request.body(), route.hops) {
            Ok(hops) => hops,
            Err(failure) => {
                route.metrics.refused("hops");
                return request.answer(Answer::Failed(&failure));
            }
        };
        if let Some(failure) = near.as_ref().and_then(|near| route.unanswerable(index, near.wire)) {
            route.metrics.refused("unanswerable");
            return request.answer(Answer::Failed(&failure));
        }
        route.note_use();
        let begun = Instant::now();
        let caller = match (route.limits.counts_sources(), route.limits.is_crowded()) {
            (true, _) => Some(who.source()),
            // Nobody has asked for the caller yet, as it matters for the moment only.
            (false, true) => Some(CallerIdentity::of_call(&request).source()),
            (false, false) => None,
        };
        let permit = match route.limits.take(caller, begun) {
            Ok(permit) => permit,
            Err(failure) => {
                route.metrics.refused("limit");
                return request.answer(Answer::Failed(&failure));
            }
        };
        if route.mode == Mode::Redirect && !hands_over(route) {
            return redirect(request, route);
        }
        if route.validate
            && let Some(operation) = route.interface.operations.get(index)
            && let Err(failure) = validate::read(request.body(), &operation.arguments)
        {
            route.metrics.refused("invalid");
            return request.answer(Answer::Failed(&failure));
        }
        let copied = match CopyTicket::of(route, &request, who, near.as_deref()) {
            Ok(copied) => copied,
            Err(failure) => {
                route.metrics.refused("copy");
                return request.answer(Answer::Failed(&failure));
            }
        };
        route.metrics.under_way.inc();
        let waits = request.expects() == Expects::Reply;
        let entry = near
            .as_ref()
            .filter(|_| waits)
            .and_then(|near| near.calls.enter(request.link().serial_number(), request.id()));
        let call = Self {
            request,
            route: Arc::clone(route),
            index,
            near,
            own,
            begun,
            sent: 0,
            attempts: Attempts::default(),
            waited: false,
            forwards: 0,
            target: None,
            tried: Vec::new(),
            copied,
            hops,
            entry,
            answered: false,
            found: Vec::new(),
            permit,
        };
        Box::new(call).send();
    }

    /// Sends it to a target that it was not sent to, or answers that there is none.
    fn send(mut self: Box<Self>) {
        let route = Arc::clone(&self.route);
        let before = self.target.take();
        if let Some(target) =
            before.filter(|_| self.may_be_called_back()).and_then(|at| route.targets.get(at))
        {
            target.give_up(self.request.link().serial_number());
        }
        self.tried.extend(before);
        let session = self.session();
        let admitted = |at: usize| route.targets.get(at).filter(|target| target.admits()).map(|_| at);
        let mut picked = match session {
            Some(at) => admitted(at),
            None => {
                self.at_own().and_then(admitted).or_else(|| route.balancer.pick(&route.targets, &self.tried))
            }
        };
        if session.is_none() && picked.is_none() && !self.tried.is_empty() {
            // All were tried: from the beginning.
            self.tried.clear();
            picked = route.balancer.pick(&route.targets, &[]);
        }
        match picked.and_then(|at| Some((at, route.targets.get(at)?))) {
            Some((at, target)) => {
                self.target = Some(at);
                self.attempts.begin();
                match self.own.as_ref().map(|own| own.way(target, &route.interface)) {
                    None => target.send(self),
                    Some(Ok(own)) => own.send(self),
                    Some(Err(failure)) => self.fail(&failure),
                }
            }
            None => {
                route.metrics.refused("breaker");
                let what = "the targets of this route have failed, and are left alone for a moment";
                let failure = Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again later");
                self.fail(&failure);
            }
        }
    }

    /// Whether its caller has a session at one target, by which that may call back.
    fn may_be_called_back(&self) -> bool {
        self.route.calls_back && self.near.as_ref().is_some_and(|near| near.calls_back)
    }

    /// The target where its caller has a session: all calls of that connection go there.
    fn session(&self) -> Option<usize> {
        let link = self.request.link().serial_number();
        let mut targets = self.route.targets.iter();
        self.may_be_called_back().then(|| targets.position(|target| target.has_session(link))).flatten()
    }

    /// The target where its caller's own object is, unless it was tried there.
    fn at_own(&self) -> Option<usize> {
        let at = self.own.as_ref()?.at(&self.route.targets)?;
        (!self.tried.contains(&at)).then_some(at)
    }

    /// The time that is left of it: the route's, less what has passed since it came.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.route.timeout.saturating_sub(self.begun.elapsed()))
    }

    /// The time that is left of it, where that may be noticeably less than the route gives: a first attempt
    /// that was sent at once has the route's own deadline, which costs nothing to set.
    pub(crate) fn late(&self) -> Option<Duration> {
        if self.sent > 0 || self.waited { self.left() } else { None }
    }

    /// It waits for a connection.
    pub(crate) fn wait(&mut self) {
        self.waited = true;
    }

    /// A target gets it now. Returns whether its caller still wants it.
    pub(crate) fn sent(&mut self) -> bool {
        self.sent += 1;
        self.entry.as_ref().is_none_or(|entry| entry.leaves(self.sent))
    }

    /// Whether nobody wants it any more when its caller has left.
    pub(crate) fn goes_with_its_caller(&self) -> bool {
        let outlives = |near: &Arc<Frontend>| near.wire.capabilities().calls_outlive_callers;
        self.request.expects() == Expects::Reply && !self.near.as_ref().is_some_and(outlives)
    }

    /// What tells where it went, in this try, once that is known; it may have ended by then.
    pub(crate) fn note(&self) -> Option<(DispatchNote, u32)> {
        Some((self.entry.as_ref()?.note(), self.sent))
    }

    /// The listener that it came by.
    pub(crate) fn near(&self) -> Option<&Arc<Frontend>> {
        self.near.as_ref()
    }

    /// The call.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// The encoded arguments, as they came.
    pub(crate) fn body(&self) -> Body {
        self.request.body().clone()
    }

    /// Brokers that it has passed, this one among them; 0 where nobody counts.
    pub(crate) fn hops(&self) -> u32 {
        self.hops
    }

    /// How its arguments are passed on: references in them are led to the broker before anything is written.
    ///
    /// # Errors
    /// A reference in them cannot be.
    pub(crate) fn arguments(&self, body: &Body, operation: &Operation) -> Result<Values, Failure> {
        if !self.route.facts.get(self.index).is_some_and(|facts| facts.arguments_carry) {
            return Ok(Values::default());
        }
        let resolver = self.request.link().resolver();
        let to_callers = !self.route.faces_callers;
        let (to, back) = (self.far(), self.near.clone());
        let sides = ValueFlow { route: &self.route, resolver, to, back, to_callers, found: &[] };
        sides.lead(body, &operation.arguments)
    }

    /// The listener that faces the targets, if it is still there.
    fn far(&self) -> Option<Arc<Frontend>> {
        self.route.far.as_ref().and_then(std::sync::Weak::upgrade)
    }

    /// Its operation; nothing where no contract describes it.
    fn operation(&self) -> Option<&Operation> {
        self.route.interface.operations.get(self.index)
    }

    /// A oneway call was handed on, or not.
    pub(crate) fn handed_on(mut self: Box<Self>, sent: Result<(), Failure>) {
        match sent {
            Ok(()) => {
                self.answered = true;
                self.route.metrics.done.inc();
                if self.route.opaque.is_some() {
                    // Only the route knows that it has no answer: its caller does not wait for one.
                    let silence = Body { bytes: Bytes::new(), ..self.request.body().clone() };
                    self.request.answer(Answer::Done(&silence));
                } else {
                    // A caller on a wire without oneways waits for an answer.
                    self.request.answer(Answer::Done(&|_: &mut dyn Sink| Ok(())));
                }
                self.over();
            }
            Err(failure) => self.ended(Outcome::Failed(failure)),
        }
    }

    /// A target has answered, or failed: passes that on, or sends the call again.
    pub(crate) fn ended(mut self: Box<Self>, outcome: Outcome<Body>) {
        match outcome {
            Outcome::Done(body) if self.route.opaque.is_some() => self.passed(body),
            Outcome::Raised(raised) if self.route.opaque.is_some() => {
                let failure = unexpected(&raised.id);
                match &raised.encoded {
                    Some(encoded) => self.passed_as(encoded, &failure),
                    None => self.fail(&failure),
                }
            }
            outcome @ (Outcome::Done(_) | Outcome::Raised(_)) => self.has_answered(outcome),
            Outcome::Moved(reference) => self.moved(&reference),
            Outcome::Failed(failure) => {
                if self.may_try_again(&failure) {
                    self.route.metrics.retries.inc();
                    return self.send();
                }
                // Some wires cannot say beside it that the call did not run.
                if failure.kind() == Kind::Busy {
                    self.route.limits.is_full(&self.permit);
                }
                match failure
                    .encoded()
                    .filter(|_| self.route.opaque.is_some() && !self.attempts.may_have_run())
                {
                    Some(encoded) => self.passed_as(encoded, &failure),
                    None => self.fail(&failure),
                }
            }
        }
    }

    /// What did not run may be sent again: to each of the other targets, and as often as the route says. What may have run, only if
    /// it may run twice.
    fn may_try_again(&mut self, failure: &Failure) -> bool {
        let withdrawn = self.entry.as_ref().is_some_and(Entry::is_withdrawn);
        if withdrawn || self.left().is_some_and(|left| left.is_zero()) {
            return false;
        }
        // Another session would not be the one that its caller has.
        if self.sent > 0 && self.may_be_called_back() {
            return false;
        }
        let idempotent = match &self.route.opaque {
            Some(opaque) => opaque.is_idempotent(&self.request),
            None => self.route.facts.get(self.index).is_some_and(|facts| facts.idempotent),
        };
        self.attempts.again(&self.route.retry, failure, idempotent)
    }

    /// How what came back is passed on.
    fn answers(&self, body: &Body, list: &Shape) -> Result<Values, Failure> {
        if !self.route.facts.get(self.index).is_some_and(|facts| facts.answers_carry) {
            return Ok(Values::default());
        }
        let led = self.back().lead(body, list);
        led.map_err(|failure| unreadable(failure).with_completed(Completed::Yes))
    }

    /// The sides of what comes back.
    fn back(&self) -> ValueFlow<'_> {
        let target = self.target.and_then(|at| self.route.targets.get(at));
        let resolver = target.map(|target| target.object.target().resolver());
        let resolver = resolver.unwrap_or_else(|| self.request.link().resolver());
        let (to, back, to_callers) = (self.near.clone(), self.far(), self.route.faces_callers);
        ValueFlow { route: &self.route, resolver, to, back, to_callers, found: &self.found }
    }

    /// Passes on what came back. Objects in it are first asked what they are, where only they know.
    fn has_answered(mut self: Box<Self>, outcome: Outcome<Body>) {
        let carries = self.route.facts.get(self.index).is_some_and(|facts| facts.answers_carry);
        let questions = match (&outcome, self.operation()) {
            _ if !carries || !self.route.derives => Vec::new(),
            (Outcome::Done(body), Some(operation)) => self.back().questions(body, &operation.results),
            _ => Vec::new(),
        };
        if !questions.is_empty() {
            return interfaces::ask(questions, move |found| {
                self.found = found;
                self.pass_back(outcome);
            });
        }
        self.pass_back(outcome);
    }

    fn pass_back(self, outcome: Outcome<Body>) {
        match outcome {
            Outcome::Done(body) => self.done(&body),
            Outcome::Raised(raised) => self.raised(&raised),
            Outcome::Moved(_) | Outcome::Failed(_) => {}
        }
    }

    /// Results of a call that nobody here reads.
    fn passed(mut self, mut body: Body) {
        self.answered = true;
        if self.route.mode == Mode::Redirect
            && let Some(opaque) = &self.route.opaque
            && let Some(handed) = opaque.wire.handed_over(&body)
        {
            body = handed;
        }
        self.route.metrics.done.inc();
        self.copied.answer(&self.route, &self.request, &body, CallResult::Done);
        let headers = &self.route.edits.answers;
        if headers.is_empty() {
            self.request.answer(Answer::Done(&body));
        } else {
            self.request.answer(Answer::Done(&WithHeaders { values: &body, headers }));
        }
        self.over();
    }

    /// An exception or a failure of such a call, as it came.
    fn passed_as(mut self, encoded: &Encoded, failure: &Failure) {
        self.answered = true;
        if encoded.raised {
            self.route.metrics.raised.inc();
        } else {
            self.route.metrics.failed(failure.kind());
        }
        self.copied.answer(&self.route, &self.request, &encoded.body, CallResult::Passed(encoded));
        self.request.answer(Answer::Passed { encoded, failure });
        self.over();
    }

    /// Results of a call with a contract: written anew for the caller's wire.
    fn done(mut self, body: &Body) {
        let route = Arc::clone(&self.route);
        if let Some(operation) = route.interface.operations.get(self.index) {
            let values = match self.answers(body, &operation.results) {
                Ok(values) => values,
                Err(failure) => return self.fail(&failure),
            };
            self.answered = true;
            self.copied.answer(&route, &self.request, body, CallResult::Done);
            let count = AnswerCount::new(&route.metrics, &route.metrics.done);
            let encode = |sink: &mut dyn Sink| count.note(values.put(body, &operation.results, sink));
            let headers = &route.edits.answers;
            if headers.is_empty() {
                self.request.answer(Answer::Done(&encode));
            } else {
                self.request.answer(Answer::Done(&WithHeaders { values: &encode, headers }));
            }
            self.untold(count.end());
        }
        self.over();
    }

    /// An exception of a call with a contract. One that the contract does not know is a failure.
    fn raised(mut self, raised: &Raised<Body>) {
        let route = Arc::clone(&self.route);
        let operation = route.interface.operations.get(self.index);
        let known =
            operation.and_then(|operation| operation.raises.iter().find(|held| held.is_called(&raised.id)));
        let Some(known) = known else { return self.fail(&unexpected(&raised.id)) };
        let shape = Shape::Struct(known.clone());
        let values = match self.answers(&raised.body, &shape) {
            Ok(values) => values,
            Err(failure) => return self.fail(&failure),
        };
        self.answered = true;
        self.copied.answer(&route, &self.request, &raised.body, CallResult::Raised(known));
        let count = AnswerCount::new(&route.metrics, &route.metrics.raised);
        let fields = |sink: &mut dyn Sink| count.note(values.put(&raised.body, &shape, sink));
        self.request.answer(Answer::Raised { shape: known, fields: &fields });
        self.untold(count.end());
        self.over();
    }

    /// The object is elsewhere: the call goes there, not to the next target. What goes on by itself
    /// (`is_under_way`) does so over its own connection only, and cannot be followed here.
    fn moved(mut self: Box<Self>, reference: &Reference) {
        self.forwards += 1;
        let target = self.target.and_then(|at| self.route.targets.get(at)).cloned();
        if let Some(target) = target.filter(|_| self.forwards <= FORWARDS && !reference.is_under_way()) {
            let resolver = target.object.target().resolver();
            let found = resolver.resolve(reference).map(|object| {
                let object = object.with_deadline(self.left()).typed(self.route.interface.clone());
                let wire = reference.profiles.iter().find_map(|held| everywire::wires::named(held.wire));
                let oneway = wire.is_none_or(|wire| wire.capabilities().oneway);
                Upstream::new(target.name().to_owned(), object, oneway, None, None, None, None)
            });
            return match found {
                Ok(there) => there.send(self),
                Err(failure) => self.fail(&failure),
            };
        }
        let what = match reference.is_under_way() {
            true => {
                "the target says where the call goes on by itself, which cannot be followed here".to_owned()
            }
            false => format!("the object pointed elsewhere more than {FORWARDS} times"),
        };
        self.fail(&Failure::new(Kind::Unreachable, Initiator::Peer, what));
    }

    /// Answers with a failure, in words for callers; what only concerns the broker goes to the log.
    fn fail(mut self, failure: &Failure) {
        self.answered = true;
        let route = Arc::clone(&self.route);
        route.metrics.failed(failure.kind());
        let told = self.attempts.told(told(failure));
        let fields = || self.fields(failure, told.completed());
        match failure.kind() {
            Kind::Unreachable | Kind::TimedOut | Kind::Violation | Kind::WrongWire => {
                route.log.warn("failed", &fields());
            }
            // More came from the target than is taken, or what nobody can read.
            Kind::LimitExceeded | Kind::Malformed if failure.completed() != Completed::No => {
                route.log.warn("failed", &fields());
            }
            // The target did not let the broker in; what it refuses to a caller is the caller's.
            Kind::Refused if self.sent == 0 => route.log.warn("failed", &fields()),
            _ => route.log.detail("failed", fields),
        }
        if route.is_behind_reference() {
            references::noted(&route, self.near.as_ref(), self.request.key(), failure.kind());
        }
        self.request.answer(Answer::Failed(&told));
        self.over();
    }

    /// The log tells of an answer that its caller did not get.
    fn untold(&self, failure: Option<Failure>) {
        if let Some(failure) = failure {
            self.route.log.warn("unanswered", &self.fields(&failure, Completed::Yes));
        }
    }

    /// What the log tells of a failure.
    fn fields(&self, failure: &Failure, completed: Completed) -> Vec<(&'static str, serde_json::Value)> {
        let operation = match (self.operation(), &self.route.opaque) {
            (Some(operation), _) => operation.label.to_string(),
            (None, Some(opaque)) => opaque.label(&self.request),
            (None, None) => self.request.method().label().into_owned(),
        };
        let target = self.target.and_then(|at| self.route.targets.get(at));
        let target = target.map(|target| target.name().to_owned()).unwrap_or_default();
        vec![
            ("route", (*self.route.name).into()),
            ("operation", operation.into()),
            ("target", target.into()),
            ("kind", failure.kind().word().into()),
            ("completed", word(completed).into()),
            ("failure", failure.to_string().into()),
        ]
    }

    /// Notes how long it took; called once for each call that was answered.
    fn over(&self) {
        self.route.metrics.took(self.begun.elapsed());
    }
}

impl Drop for ForwardedCall {
    fn drop(&mut self) {
        if !self.answered {
            // Its caller has withdrawn it while a target had it, or the broker has ended.
            self.route.metrics.failed(Kind::Cancelled);
            self.route.log.detail("withdrawn", || {
                let completed = if self.sent > 0 { Completed::Maybe } else { Completed::No };
                vec![("route", self.route.name.to_string().into()), ("completed", word(completed).into())]
            });
        }
        // The last thing: whoever sees that no call is under way finds each one among the outcomes.
        self.route.metrics.under_way.dec();
    }
}
