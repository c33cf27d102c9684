//! Targets: the way to each, and the calls that wait for it.
//!
//! States of the way: *ready*, calls go at once; *sought*, a connection is being made on a thread of the
//! node's, and calls wait in the order in which they came. `sought` and `line` change together under the lock
//! of `line`; a line is there exactly while the way is sought. Whoever finds the way ready sends all that
//! wait, and then ends the search; a failure of the search ends them all.
//!
//! Invariants: a call that waits is either sent or ended; none overtakes another that waits; no more than
//! `WAITING` wait; and no event loop waits for a connection, since a target is asked first whether it is
//! ready.
//!
//! What is known of a target (`Common`) is shared by the ways of its callers: calls under way, for the
//! balance; the breaker, which failures of calls open; health, which probes and successes tell. A route
//! without a contract has a way for each connection of a caller (`Lanes`), and this one is only their common
//! part. So it is with a callback contract, for callers who may be called back; all others share this way.
//!
//! At most once: a failure of the search, a refusal here or a withdrawal before sending say that the call did
//! not run; all else is what the target's connection says.

use crate::balance::Candidate;
use crate::breaker::{Breaker, Change, Verdict};
use crate::callbacks::Backward;
use crate::config::BreakerConfig;
use crate::forwarded_call::ForwardedCall;
use crate::frontend::Frontend;
use crate::health::LastAttempt;
use crate::hops;
use crate::listening::Listeners;
use crate::metrics::TargetMetrics;
use crate::pass::Lanes;
use crate::waiting_calls::{Admission, Next};
use everywire::{Failure, Initiator, Kind, Object, Reference};
use everywire_model::visit::WithHeaders;
use everywire_model::{Encode, Expects, Incoming, Method, Outcome, Sink, Target};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Searches for a way that may be given up by others before a call fails for it: a search that is under way
/// may end with its node while this call joins it.
const SEARCHES: u32 = 16;
/// Calls that may wait for a connection of one way; more are refused as busy.
const WAITING: usize = 4096;

/// What all ways to a target share.
pub(crate) struct Common {
    /// As the file names it, without what stands behind its `?`, for metrics and the log.
    name: String,
    /// Whether its wire carries calls without a reply.
    oneway: bool,
    outstanding: AtomicUsize,
    breaker: Option<Breaker>,
    healthy: AtomicBool,
    attempt: LastAttempt,
    metrics: Option<TargetMetrics>,
}

/// One target of a route, or the way of one caller to it.
pub(crate) struct Upstream {
    pub(crate) common: Arc<Common>,
    /// Of a target of the file: what it has to be in another file to go on as it is.
    pub(crate) identity: Option<TargetIdentity>,
    pub(crate) object: Object,
    /// Of a route without a contract, or with a callback contract: the ways of its callers.
    pub(crate) lanes: Option<Lanes>,
    /// Callers that listen to it.
    pub(crate) listeners: Listeners,
    /// Whether a connection is being made: looked at without the lock.
    sought: AtomicBool,
    /// Calls that wait for it, the first first.
    line: Mutex<Option<VecDeque<Box<ForwardedCall>>>>,
}

/// All that makes a target what it is. One that is the same in a file that is read again goes on as it is: with its breaker, its health,
/// its calls under way, and the connections that callers have to it.
#[derive(PartialEq, Eq)]
pub(crate) struct TargetIdentity {
    pub(crate) name: String,
    pub(crate) reference: Reference,
    /// Of its contract: whatever of it a connection, or a call under way, goes by.
    pub(crate) contract: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) breaker: Option<BreakerConfig>,
    pub(crate) hops: u32,
    pub(crate) opaque: bool,
    pub(crate) calls_back: bool,
    /// The listener by which it is called.
    pub(crate) faced: Option<FacingListener>,
}

/// A listener, by which one it is.
pub(crate) struct FacingListener(pub(crate) Weak<Frontend>);

impl PartialEq for FacingListener {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for FacingListener {}

/// The failure of a call that finds too many waiting.
fn crowded() -> Failure {
    Failure::new(Kind::Busy, Initiator::Peer, "too many calls wait for a connection to the target")
}

impl Upstream {
    pub(crate) fn new(
        name: String,
        object: Object,
        oneway: bool,
        breaker: Option<Breaker>,
        metrics: Option<TargetMetrics>,
        lanes: Option<Lanes>,
        identity: Option<TargetIdentity>,
    ) -> Arc<Self> {
        if let Some(metrics) = &metrics {
            metrics.up.set(1);
        }
        let common = Arc::new(Common {
            name,
            oneway,
            outstanding: AtomicUsize::new(0),
            breaker,
            healthy: AtomicBool::new(true),
            attempt: LastAttempt::default(),
            metrics,
        });
        let (sought, line) = (AtomicBool::new(false), Mutex::default());
        let listeners = Listeners::default();
        Arc::new(Self { common, identity, object, lanes, listeners, sought, line })
    }

    /// The way of one caller to a target.
    pub(crate) fn lane(common: &Arc<Common>, object: Object) -> Arc<Self> {
        Arc::new(Self {
            common: Arc::clone(common),
            identity: None,
            object,
            lanes: None,
            listeners: Listeners::default(),
            sought: AtomicBool::new(false),
            line: Mutex::default(),
        })
    }

    /// Whether it is a target of the file that is this one.
    pub(crate) fn is(&self, identity: &TargetIdentity) -> bool {
        self.identity.as_ref() == Some(identity)
    }

    /// As the file names it.
    pub(crate) fn name(&self) -> &str {
        &self.common.name
    }

    /// Sends what was kept of a caller.
    pub(crate) fn let_go(self: &Arc<Self>, number: u64) {
        let Some(lanes) = &self.lanes else { return };
        loop {
            match lanes.held.next(number) {
                Next::Call(call) => self.by_lane(lanes, call),
                Next::Free => return,
                Next::Left => return lanes.end(number),
            }
        }
    }

    /// Sends a call by its caller's own way.
    fn by_lane(&self, lanes: &Lanes, call: Box<ForwardedCall>) {
        match lanes.lane(call.request(), call.near(), &self.common) {
            Ok(lane) => lane.send(call),
            Err(failure) => self.refuse(call, failure),
        }
    }

    /// Has the target hear what a caller says unasked: see [`Lanes::tell`].
    pub(crate) fn tell(&self, link: u64, heard: &Incoming) -> Result<(), Failure> {
        match &self.lanes {
            Some(lanes) => lanes.tell(link, heard),
            None => Ok(()),
        }
    }

    /// How its callers are called back over the connections that they have made, if they are.
    pub(crate) fn back(&self) -> Option<&Backward> {
        self.lanes.as_ref().and_then(Lanes::back)
    }

    /// Whether this connection of a caller has a session here by which it may be called back.
    pub(crate) fn has_session(&self, link: u64) -> bool {
        self.lanes.as_ref().is_some_and(|lanes| lanes.has(link))
    }

    /// No session could be made for this caller: it may have one elsewhere.
    pub(crate) fn give_up(&self, link: u64) {
        if let Some(lanes) = &self.lanes {
            lanes.give_up(link);
        }
    }

    /// The connection of a caller is over.
    pub(crate) fn forget(&self, link: u64) {
        if let Some(lanes) = &self.lanes {
            lanes.forget(link);
        }
    }

    fn line(&self) -> MutexGuard<'_, Option<VecDeque<Box<ForwardedCall>>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a call, or has it wait for the connection.
    pub(crate) fn send(self: &Arc<Self>, call: Box<ForwardedCall>) {
        if let Some(lanes) = self.lanes.as_ref().filter(|lanes| lanes.are_for(call.near())) {
            return match lanes.held.keep(call, WAITING) {
                Admission::Free(call) => self.by_lane(lanes, call),
                Admission::Waits => {}
                Admission::Full(call) => self.refuse(call, crowded()),
            };
        }
        if !self.sought.load(Ordering::Acquire) && self.object.target().is_ready() {
            return self.call(call);
        }
        let mut call = call;
        call.wait();
        {
            let mut line = self.line();
            match &mut *line {
                Some(waiting) if waiting.len() >= WAITING => {
                    drop(line);
                    return self.refuse(call, crowded());
                }
                Some(waiting) => return waiting.push_back(call),
                None => *line = Some(VecDeque::from([call])),
            }
            self.sought.store(true, Ordering::Release);
        }
        self.seek();
    }

    /// Has the way found, on a thread of the node's, in the time that is left of the call that has waited longest.
    fn seek(self: &Arc<Self>) {
        self.seek_again(SEARCHES);
    }

    fn seek_again(self: &Arc<Self>, more: u32) {
        let left = self.line().as_ref().and_then(VecDeque::front).and_then(|call| call.left());
        if left.is_some_and(|left| left.is_zero()) {
            return self.missed_by(&late());
        }
        let this = Arc::clone(self);
        let target = match left {
            Some(left) => self.object.target().with_deadline(Some(left)),
            None => Arc::clone(self.object.target()),
        };
        target.prepare(Box::new(move |found| match found {
            // A search that ended as this one began took it along, unless the broker itself has ended.
            Err(failure) if failure.kind() == Kind::Cancelled && more > 0 => this.seek_again(more - 1),
            found => this.found(found),
        }));
    }

    /// No way was found: the calls that wait end with that. Those that came while the search went on, and have time left when the time of
    /// its first call is over, have another search.
    fn missed_by(self: &Arc<Self>, failure: &Failure) {
        // Not where the time of a call was over before anybody was asked.
        if unreached(failure) == Verdict::Fails && failure.initiator() != Initiator::User {
            self.common.attempt.failed(Instant::now());
        }
        let (ended, others) = {
            let mut line = self.line();
            let mut waiting = line.take().unwrap_or_default().into_iter();
            let first: VecDeque<_> = waiting.next().into_iter().collect();
            let over = failure.kind() == Kind::TimedOut;
            let (others, mut ended): (VecDeque<_>, VecDeque<_>) =
                waiting.partition(|call| over && call.left().is_some_and(|left| !left.is_zero()));
            first.into_iter().for_each(|call| ended.push_front(call));
            let go_on = !others.is_empty();
            self.sought.store(go_on, Ordering::Release);
            *line = go_on.then_some(others);
            (ended, go_on)
        };
        for call in ended {
            self.note(unreached(failure));
            call.ended(Outcome::Failed(failure.clone()));
        }
        if others {
            self.seek();
        }
    }

    /// The connection is there, or cannot be made: on a thread of the node's.
    fn found(self: &Arc<Self>, found: Result<Arc<dyn Target>, Failure>) {
        if let Err(failure) = found {
            return self.missed_by(&failure);
        }
        loop {
            let next = {
                let mut line = self.line();
                let next = line.as_mut().and_then(VecDeque::pop_front);
                if next.is_none() {
                    *line = None;
                    self.sought.store(false, Ordering::Release);
                }
                next
            };
            let Some(call) = next else { return };
            self.call(call);
            let more = self.line().as_ref().is_some_and(|waiting| !waiting.is_empty());
            if more && !self.object.target().is_ready() {
                // One call at a time goes on a connection of this wire: the next wants one of its own.
                return self.seek();
            }
        }
    }

    /// Sends a call by a way that is ready, and ends it if that fails at once.
    fn call(self: &Arc<Self>, mut call: Box<ForwardedCall>) {
        let left = match call.late() {
            Some(left) if left.is_zero() => return self.refuse(call, late()),
            left => left,
        };
        // What a call has waited, or another try has taken, is taken off its time.
        let target = match left {
            Some(left) => self.object.target().with_deadline(Some(left)),
            None => Arc::clone(self.object.target()),
        };
        if let Some(metrics) = &self.common.metrics {
            metrics.calls.inc();
        }
        if !call.sent() {
            return call.ended(Outcome::Failed(withdrawn()));
        }
        let route = Arc::clone(&call.route);
        let body = call.body();
        let more;
        let headers = match call.hops() {
            0 | 1 => &route.told,
            hops => {
                more = hops::beside(&route.edits.calls, route.hop, hops);
                &more
            }
        };
        if let Some(opaque) = &route.opaque {
            let (interface, operation, _) = call.request().passing();
            let method = Method::Named { interface: &interface, operation: &operation };
            let nothing = call.request().expects() == Expects::Nothing || opaque.is_oneway(call.request());
            if headers.is_empty() {
                return self.pass(call, &target, method, &body, nothing);
            }
            return self.pass(call, &target, method, &WithHeaders { values: &body, headers }, nothing);
        }
        let Some(operation) = route.interface.operations.get(call.index) else {
            return self.refuse(call, late());
        };
        let values = match call.arguments(&body, operation) {
            Ok(values) => values,
            Err(failure) => return self.refuse(call, failure),
        };
        let encode = |sink: &mut dyn Sink| values.put(&body, &operation.arguments, sink);
        let method = Method::Typed { interface: Some(&route.interface), operation };
        if headers.is_empty() {
            self.pass(call, &target, method, &encode, operation.oneway);
        } else {
            let with = WithHeaders { values: &encode, headers };
            self.pass(call, &target, method, &with, operation.oneway);
        }
    }

    /// Gives a call to the target's node: as a oneway if it has no answer and the wire can, else with a
    /// completion that ends it.
    fn pass(
        self: &Arc<Self>,
        call: Box<ForwardedCall>,
        target: &Arc<dyn Target>,
        method: Method<'_>,
        arguments: &dyn Encode,
        oneway: bool,
    ) {
        if oneway && self.common.oneway {
            let sent = target.notify(method, arguments);
            self.note(sent.as_ref().map_or_else(|failure| verdict(failure, true), |()| Verdict::Works));
            return call.handed_on(sent);
        }
        self.common.outstanding.fetch_add(1, Ordering::AcqRel);
        let under_way = ActiveCall(Arc::clone(self));
        let note = call.note();
        let begins = Beginning::of(&call);
        let ticket = target.submit(
            method,
            arguments,
            Box::new(move |outcome| {
                let said = match &outcome {
                    Outcome::Failed(failure) => verdict(failure, Beginning::is_of(&call)),
                    _ => Verdict::Works,
                };
                under_way.0.note(said);
                drop(under_way);
                call.ended(outcome);
            }),
        );
        drop(begins);
        // Only now, since the ticket is what withdraws it; the call may have ended already.
        if let Some((note, attempt)) = note {
            note.there(attempt, Arc::clone(target), ticket);
        }
    }

    /// Ends a call that was not given to the target, for a reason of the broker's own.
    fn refuse(&self, call: Box<ForwardedCall>, failure: Failure) {
        self.note(Verdict::Nothing);
        call.ended(Outcome::Failed(failure));
    }

    /// A call ended: what that says of the target.
    fn note(&self, said: Verdict) {
        let change = self.common.breaker.as_ref().and_then(|breaker| breaker.note(said, Instant::now()));
        if let (Some(change), Some(metrics)) = (change, &self.common.metrics) {
            metrics.up.set(i64::from(change == Change::Closed));
        }
        if said == Verdict::Works {
            self.common.healthy.store(true, Ordering::Release);
            self.common.attempt.worked();
        }
    }

    /// Whether it is told to work: it may get calls, and the last attempt to reach it has not failed a moment ago.
    pub(crate) fn is_believed(self: &Arc<Self>) -> bool {
        self.is_healthy() && !self.common.attempt.has_failed(Instant::now())
    }

    /// Whoever reads the metrics learns what is believed of it now.
    pub(crate) fn count(self: &Arc<Self>) {
        if let Some(metrics) = &self.common.metrics {
            metrics.up.set(i64::from(self.is_believed()));
        }
    }

    /// Nobody answers there, as far as is known until a call works.
    pub(crate) fn missed(&self) {
        self.common.healthy.store(false, Ordering::Release);
    }

    /// Asks whether the object is there, and notes it. Returns whether that is news.
    pub(crate) fn probe(&self, time: Duration) -> Option<Result<(), Failure>> {
        let probed = self.object.target().with_deadline(Some(time)).probe();
        // A target of a wire that cannot be asked is believed.
        let works = match &probed {
            Ok(()) => true,
            Err(failure) => failure.kind() == Kind::Unsupported,
        };
        if works {
            self.common.attempt.worked();
        }
        let before = self.common.healthy.swap(works, Ordering::AcqRel);
        // Whoever reads the metric may count on it.
        if let Some(metrics) = &self.common.metrics {
            metrics.up.set(i64::from(works && self.common.breaker.as_ref().is_none_or(Breaker::is_closed)));
        }
        (before != works).then_some(if works { Ok(()) } else { probed })
    }
}

/// A call under way, while it is.
struct ActiveCall(Arc<Upstream>);

impl Drop for ActiveCall {
    fn drop(&mut self) {
        self.0.common.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Candidate for Arc<Upstream> {
    fn load(&self) -> usize {
        self.common.outstanding.load(Ordering::Acquire)
    }

    fn is_healthy(&self) -> bool {
        self.common.healthy.load(Ordering::Acquire)
            && self.common.breaker.as_ref().is_none_or(Breaker::is_closed)
    }

    fn admits(&self) -> bool {
        self.common.breaker.as_ref().is_none_or(|breaker| breaker.admits(Instant::now()))
    }
}

thread_local! {
    /// The call that this thread gives to its target at the moment, by its place in memory; 0: none.
    static BEGINS: Cell<usize> = const { Cell::new(0) };
}

/// While a call is given to its target: a failure that comes meanwhile is mostly of this side, such as an argument that the target's wire
/// cannot carry. The failure itself does not tell, since the target might have answered the same.
struct Beginning {
    /// What this thread was about before: a call that ends so may be sent again at once.
    before: usize,
}

impl Beginning {
    fn of(call: &ForwardedCall) -> Self {
        Self { before: BEGINS.replace(std::ptr::from_ref(call).addr()) }
    }

    /// Whether it is this call that is being given to its target.
    fn is_of(call: &ForwardedCall) -> bool {
        BEGINS.get() == std::ptr::from_ref(call).addr()
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        BEGINS.set(self.before);
    }
}

/// What it says of the target that no connection to it could be made: that it does not work, unless this side has no room for one.
fn unreached(failure: &Failure) -> Verdict {
    match (failure.kind(), failure.initiator()) {
        (Kind::Cancelled, _) | (Kind::Busy | Kind::LimitExceeded, Initiator::Here) => Verdict::Nothing,
        _ => Verdict::Fails,
    }
}

/// What a failure says of the target; `begins`: it came while the call was being given to it.
fn verdict(failure: &Failure, begins: bool) -> Verdict {
    match (failure.kind(), failure.initiator()) {
        (Kind::Cancelled, _) => Verdict::Nothing,
        (Kind::Unreachable | Kind::TimedOut | Kind::Violation | Kind::WrongWire, _) => Verdict::Fails,
        // A quota or a limit of this side.
        (_, Initiator::Here) => Verdict::Nothing,
        (Kind::Busy, _) => Verdict::Fails,
        // Where the object is may be asked first, and this is answered by whoever is there.
        (Kind::NoObject | Kind::NoOperation | Kind::Refused | Kind::Internal, Initiator::Peer) => {
            Verdict::Works
        }
        _ if begins => Verdict::Nothing,
        _ => Verdict::Works,
    }
}

/// What a call hears that comes when the broker has ended.
pub(crate) fn ended() -> Failure {
    Failure::new(Kind::Cancelled, Initiator::Here, "the broker has ended")
}

pub(crate) fn withdrawn() -> Failure {
    Failure::new(Kind::Cancelled, Initiator::User, "the caller has withdrawn the call")
}

fn late() -> Failure {
    Failure::new(Kind::TimedOut, Initiator::User, "the time of the call was over before it was sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_broker_itself_cannot_do_says_nothing_of_the_target() {
        let said = |kind, by, begins| verdict(&Failure::new(kind, by, "no"), begins);
        for begins in [true, false] {
            for kind in [Kind::Unreachable, Kind::TimedOut, Kind::Violation, Kind::WrongWire] {
                assert_eq!(said(kind, Initiator::Here, begins), Verdict::Fails, "{kind}");
            }
            assert_eq!(said(Kind::Busy, Initiator::Peer, begins), Verdict::Fails);
            assert_eq!(said(Kind::Busy, Initiator::Here, begins), Verdict::Nothing, "no room here");
            assert_eq!(said(Kind::LimitExceeded, Initiator::Here, begins), Verdict::Nothing);
            assert_eq!(said(Kind::Cancelled, Initiator::User, begins), Verdict::Nothing);
            assert_eq!(said(Kind::NoObject, Initiator::Peer, begins), Verdict::Works);
        }
        for kind in [Kind::BadArgument, Kind::Unsupported, Kind::LimitExceeded, Kind::Malformed] {
            assert_eq!(said(kind, Initiator::User, true), Verdict::Nothing, "{kind}");
            assert_eq!(said(kind, Initiator::User, false), Verdict::Works, "{kind}: it is an answer");
        }
        let at_once = |kind, by| unreached(&Failure::new(kind, by, "no"));
        assert_eq!(at_once(Kind::Refused, Initiator::Peer), Verdict::Fails);
        assert_eq!(at_once(Kind::Busy, Initiator::Here), Verdict::Nothing);
    }
}
