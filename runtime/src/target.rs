//! The target of calls to a remote object: which profile, which connection, and what to do when one fails.
//!
//! States of a target: *unknown*, until the first call finds a way; *found*: a `Route` is held, its connection
//! is used by all calls; *located*, once the object itself has answered, and not somebody who only tells
//! where it is; *lost*, when the connection is over: the next call connects anew at the same profile, and
//! tries the others only if that fails. Copies with other deadlines share the way.
//!
//! States of a call (`Remote::ask`): asked once; asked again elsewhere, at most `FORWARDS` times, while the
//! answer is `Moved`; asked once more over a new connection, if the first turned out to be over before the
//! call ran. A call whose session says that it may have run (`is_under_way`) goes on only by the way that the
//! session tells, and no later failure says that it did not run.
//!
//! Invariants: a call that may have run is never sent again from here: only failures that say "not executed"
//! lead to another attempt. Deadlines are times of the clock, made once for each call; connecting, waiting
//! for a turn, forwards and the answer all come out of them.
//!
//! One thread at a time makes a connection (`RouteCache::connecting`), so that threads that begin at the same time make
//! one and not several; what was found before can be seen meanwhile (`RouteCache::now`). What must not block asks
//! before (`Target::is_ready`, `prepare`): a search runs on a thread of the pool, one for all futures with the
//! same deadline.

use crate::clock::{TICK, lately};
use crate::connection::calling::{CallProgress, OutboundRequest};
use crate::connection::{CallCompletion, CallPermit, Connection};
use crate::failures::{first_of, of_operation, stopped};
use crate::private_connections::PrivateConnections;
use crate::shared::{FORWARDS, Shared};
use crate::signals::Subscriber;
use crate::spans::Outgoing;
use crate::sync::lock;
use everywire_model::object::{Completion, Ready, Ticket};
use everywire_model::signal::Listener;
use everywire_model::{
    Body, Call, Completed, Encode, Expects, Failure, Initiator, Kind, Method, Object, Outcome, Profile,
    Reference, Resolver, SignalFilter, Subscription, Target, WireState,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// For deadlines from this length on, a tick of the coarse clock more makes no difference, and that clock is
/// cheaper.
const LONG: Duration = Duration::from_secs(1);

/// A remote object.
#[derive(Clone)]
pub(crate) struct Remote {
    node: Arc<Shared>,
    reference: Reference,
    deadline: Option<Duration>,
    /// Where it was reached last. Copies share it: where a reference leads to somebody who makes an object for each that asks,
    /// they are to find the same one.
    ways: Arc<RouteCache>,
    /// Futures whose calls begin when the way is found.
    seekers: Arc<Mutex<RouteWaiters>>,
    /// Whose connections it uses, if not everybody's.
    apart: Option<Arc<PrivateConnections>>,
}

/// Where the copies of a target reach its object.
#[derive(Default)]
struct RouteCache {
    /// The way in use; the lock is held for a moment only.
    now: Mutex<Option<Arc<Route>>>,
    /// Held by the thread that looks for another way, as long as that takes.
    connecting: Mutex<()>,
}

/// Where an object was reached: the profile whose key is sent, and the connection to its endpoint.
struct Route {
    connection: Arc<Connection>,
    profile: Profile,
    /// The object itself is there, not somebody who tells where it is.
    located: AtomicBool,
    /// It was reached before, over a connection that is gone: perhaps the object is, too.
    again: AtomicBool,
}

/// Numbers calls of futures, from 1; those of callbacks begin at 2^63 (`backward`).
static TICKETS: AtomicU64 = AtomicU64::new(1);

impl Remote {
    /// Over connections that no other object uses, if there are such (`apart`).
    pub(crate) fn new(
        node: Arc<Shared>,
        reference: Reference,
        deadline: Option<Duration>,
        apart: Option<Arc<PrivateConnections>>,
    ) -> Self {
        Self { node, reference, deadline, ways: Arc::default(), seekers: Arc::default(), apart }
    }

    /// The connection in use, or a new one, and the turn to call on it. May block for as long as connecting
    /// takes; others who want the way wait for it meanwhile.
    #[inline]
    fn way(&self, until: Option<Instant>) -> Result<(Arc<Route>, CallPermit), Failure> {
        match self.at_hand() {
            Some(found) => Ok(found),
            None => self.connect(until),
        }
    }

    /// The same where there is none in use, or it has no turn for one more call.
    #[cold]
    fn connect(&self, until: Option<Instant>) -> Result<(Arc<Route>, CallPermit), Failure> {
        let _connecting = lock(&self.ways.connecting);
        // Whoever looked before this thread may have found one.
        if let Some(found) = self.at_hand() {
            return Ok(found);
        }
        let before = lock(&self.ways.now).clone();
        let (way, turn) = match before {
            // The connection carries one call at a time and has one: another connection to the same place is
            // found, or made.
            Some(way) if !way.connection.is_over() => self.find_beside(&way, until)?,
            // An object that was found elsewhere is probably still there.
            Some(way) => {
                let again = self.find_beside(&way, until);
                let again = again.inspect(|(way, _)| way.again.store(true, Ordering::Relaxed));
                again.or_else(|_| self.find(&self.reference, until))?
            }
            None => self.find(&self.reference, until)?,
        };
        *lock(&self.ways.now) = Some(Arc::clone(&way));
        Ok((way, turn))
    }

    /// The connection in use, with the turn to call on it, if it can carry one more call now.
    #[inline]
    fn at_hand(&self) -> Option<(Arc<Route>, CallPermit)> {
        let way = lock(&self.ways.now).clone().filter(|way| !way.connection.is_over())?;
        let turn = way.connection.take()?;
        Some((way, turn))
    }

    /// Connects where the object was reached last.
    fn find_beside(
        &self,
        before: &Route,
        until: Option<Instant>,
    ) -> Result<(Arc<Route>, CallPermit), Failure> {
        let reference = Reference { profiles: vec![before.profile.clone()], ..Reference::default() };
        let (way, turn) = self.find(&reference, until)?;
        way.located.store(before.located.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok((way, turn))
    }

    /// Tries profile after profile, endpoint after endpoint, in the order of the reference.
    ///
    /// # Errors
    /// The failure of the last endpoint that was tried; that there is none, if no profile is of a wire that
    /// this node speaks.
    fn find(
        &self,
        reference: &Reference,
        until: Option<Instant>,
    ) -> Result<(Arc<Route>, CallPermit), Failure> {
        let found = first_of(reference.ways(), |(profile, endpoint)| {
            let (connection, turn) = self.node.connection(profile, endpoint, until, self.apart.as_deref())?;
            let (located, again) = Default::default();
            Ok((Arc::new(Route { connection, profile: profile.clone(), located, again }), turn))
        });
        found.unwrap_or_else(|| {
            let what = "the reference has no profile that this program can use";
            Err(Failure::new(Kind::BadReference, Initiator::User, what)
                .with_hint("is it complete, and is its wire supported?"))
        })
    }

    /// The present time, and the time at which a call that begins now must be over.
    #[inline]
    fn times(&self) -> (Instant, Option<Instant>) {
        match self.deadline {
            None => (lately(), None),
            // Where the clock has no such time, the deadline is never.
            Some(deadline) if deadline >= LONG => {
                let now = lately();
                (now, deadline.checked_add(TICK).and_then(|time| now.checked_add(time)))
            }
            Some(deadline) => {
                let now = Instant::now();
                (now, now.checked_add(deadline))
            }
        }
    }

    /// Asks; follows an object that moved; tries once more if a connection turned out to be closed before the
    /// call ran. `ask` begins the call on the connection that it is given and waits, and says how far the call has come; `told` says of
    /// a failure what failed.
    #[inline]
    fn ask(
        &self,
        until: Option<Instant>,
        progress: &mut CallProgress,
        mut ask: impl FnMut(&Route, &mut CallProgress) -> Outcome<Body>,
        told: impl Fn(Failure) -> Failure,
    ) -> Outcome<Body> {
        // The turn is given back when the outcome is there.
        let (way, turn) = match self.way(until) {
            Ok(found) => found,
            Err(failure) => return Outcome::Failed(told(failure)),
        };
        let outcome = ask(&way, progress);
        if matches!(outcome, Outcome::Done(_)) {
            if *progress == CallProgress::Ended {
                way.located.store(true, Ordering::Relaxed);
            }
            return outcome;
        }
        let asked = self.ask_on(until, (way, turn), progress, outcome, &mut ask);
        asked.unwrap_or_else(|failure| Outcome::Failed(told(failure)))
    }

    /// The same from the first answer on, which has no results. `Err` is the failure that the call ends with.
    #[inline(never)]
    fn ask_on(
        &self,
        until: Option<Instant>,
        (mut way, mut _turn): (Arc<Route>, CallPermit),
        progress: &mut CallProgress,
        mut answered: Outcome<Body>,
        ask: &mut dyn FnMut(&Route, &mut CallProgress) -> Outcome<Body>,
    ) -> Result<Outcome<Body>, Failure> {
        let mut forwards = 0;
        let mut retried = false;
        // Whether the call may have run: then nothing but that way leads on.
        let mut under_way = false;
        let told = |failure: Failure, under_way: bool| match failure.completed() {
            Completed::No if under_way => failure.with_completed(Completed::Maybe),
            _ => failure,
        };
        loop {
            match answered {
                Outcome::Moved(reference) if forwards < FORWARDS => {
                    forwards += 1;
                    under_way |= reference.is_under_way();
                    (way, _turn) =
                        self.find(&reference, until).map_err(|failure| told(failure, under_way))?;
                    way.located.store(true, Ordering::Relaxed);
                    *lock(&self.ways.now) = (!under_way).then(|| Arc::clone(&way));
                }
                Outcome::Moved(_) => {
                    let message = format!("the object pointed elsewhere more than {FORWARDS} times");
                    let failure = Failure::new(Kind::Unreachable, Initiator::Peer, message)
                        .with_hint(crate::shared::CIRCLE);
                    return Err(told(failure, under_way));
                }
                Outcome::Failed(failure) if under_way => return Err(told(failure, true)),
                // Whoever served it was restarted: the reference leads to what is there now.
                Outcome::Failed(failure)
                    if *progress != CallProgress::Unsent
                        && failure.kind() == Kind::NoObject
                        && failure.completed() == Completed::No
                        && way.again.swap(false, Ordering::Relaxed) =>
                {
                    let Ok(next) = self.find(&self.reference, until) else { return Err(failure) };
                    (way, _turn) = next;
                    *lock(&self.ways.now) = Some(Arc::clone(&way));
                }
                Outcome::Failed(failure)
                    if *progress != CallProgress::Unsent
                        && (failure.kind() != Kind::Unreachable
                            || failure.completed() != Completed::No
                            || !way.connection.is_over()) =>
                {
                    return Err(failure);
                }
                Outcome::Failed(failure) => {
                    if retried {
                        return Err(failure);
                    }
                    retried = true;
                    (way, _turn) = self.way(until)?;
                }
                outcome => {
                    if *progress == CallProgress::Ended && !under_way {
                        way.located.store(true, Ordering::Relaxed);
                    }
                    return Ok(outcome);
                }
            }
            answered = ask(&way, progress);
        }
    }

    /// Calls and waits; without a reply, if that is wanted and the wire has such calls.
    #[inline]
    fn call(
        &self,
        method: Method<'_>,
        arguments: &dyn Encode,
        oneway: bool,
        progress: &mut CallProgress,
    ) -> Outcome<Body> {
        let (now, until) = self.times();
        let ask = |way: &Route, progress: &mut CallProgress| {
            let nothing = oneway && way.connection.wire.capabilities().oneway;
            let expects = if nothing { Expects::Nothing } else { Expects::Reply };
            let call = Call { profile: &way.profile, method, arguments, expects };
            way.connection.call_and_wait(OutboundRequest::Call(&call), now, until, progress)
        };
        self.ask(until, progress, ask, |failure| of_operation(failure, method))
    }

    /// Calls a oneway whose outcome is asked for: there is one only where the wire has no calls without a reply.
    #[cold]
    fn call_oneway(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        let mut progress = CallProgress::Ended;
        let outcome = self.call(method, arguments, true, &mut progress);
        if progress != CallProgress::Sent {
            return outcome;
        }
        let what = "a oneway operation has no outcome";
        Outcome::Failed(Failure::new(Kind::Unsupported, Initiator::User, what))
    }

    /// Whether somebody may answer at first who only tells where the object is.
    fn may_be_elsewhere(&self) -> bool {
        let forwards = |profile: &Profile| {
            self.node.wire_named(profile.wire).is_some_and(|wire| wire.capabilities().forwards)
        };
        self.reference.profiles.iter().any(forwards)
    }

    /// Takes out those who wait for this way with this deadline: they are told together.
    fn take_seekers(&self) -> Vec<RouteWaiter> {
        let mut seekers = lock(&self.seekers);
        let at = seekers.iter().position(|(deadline, _)| *deadline == self.deadline);
        at.map_or_else(Vec::new, |at| seekers.swap_remove(at).1)
    }

    /// Finds out where the object itself is, if somebody else may answer for it at first: a future cannot
    /// follow a `Moved`, so it asks before it calls. One call of a probe, which this thread waits for.
    fn locate(&self, until: Option<Instant>) -> Result<(), Failure> {
        let located = |way: &Arc<Route>| way.located.load(Ordering::Relaxed) && !way.connection.is_over();
        if !lock(&self.ways.now).as_ref().is_some_and(located) && self.may_be_elsewhere() {
            self.probe()?;
            self.way(until)?.0.located.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What the wire keeps for the node, and the object as it is asked of: where something takes more than the connection.
    fn wire_state(&self) -> Option<(Arc<dyn WireState>, Object)> {
        let wire = self.node.wire_named(self.reference.profiles.first()?.wire)?;
        Some((self.node.wire_state(wire)?, Object::new(self.with_deadline(self.deadline))))
    }
}

/// Whether a call came to its end, where nobody asks with what.
fn sent(outcome: Outcome<Body>) -> Result<(), Failure> {
    match outcome {
        Outcome::Failed(failure) => Err(failure),
        Outcome::Done(_) | Outcome::Raised(_) | Outcome::Moved(_) => Ok(()),
    }
}

/// Those who wait for a way within a time.
type RouteWaiters = Vec<(Option<Duration>, Vec<RouteWaiter>)>;

/// Who waits for a way, since when; told that there is none, if the node ends before it was found.
struct RouteWaiter {
    ready: Option<Ready>,
    begun: Instant,
}

impl RouteWaiter {
    fn tell(mut self, found: Result<Arc<dyn Target>, Failure>) {
        if let Some(ready) = self.ready.take() {
            ready(found);
        }
    }
}

impl Drop for RouteWaiter {
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            ready(Err(stopped()));
        }
    }
}

/// A search for a way, for all who wait for it.
struct Search {
    of: Remote,
    /// Those who waited were told: whoever waits now has a search of their own.
    told: bool,
}

impl Search {
    fn run(mut self, until: Option<Instant>) {
        let this = &self.of;
        let found = this.locate(until).and_then(|()| this.way(until));
        let found = found.and_then(|(way, _turn)| this.node.register(&way.connection));
        let seekers = this.take_seekers();
        self.told = true;
        let this = &self.of;
        for asked in seekers {
            let left = this.deadline.map(|deadline| deadline.saturating_sub(asked.begun.elapsed()));
            asked.tell(found.clone().map(|()| this.with_deadline(left)));
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        if !self.told {
            // Those who are left are told that there is no way.
            drop(self.of.take_seekers());
        }
    }
}

impl Target for Remote {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn found_at(&self) -> Option<Reference> {
        let way = lock(&self.ways.now).clone()?;
        let told = way.located.load(Ordering::Relaxed) && !self.reference.profiles.contains(&way.profile);
        let type_id = self.reference.type_id.clone();
        told.then(|| Reference { type_id, profiles: vec![way.profile.clone()], foreign: Vec::new() })
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        let span = Outgoing::begin(&self.reference, method);
        let outcome = span.run(|| match method.is_oneway() {
            false => self.call(method, arguments, false, &mut CallProgress::Ended),
            true => self.call_oneway(method, arguments),
        });
        span.end(&outcome);
        outcome
    }

    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure> {
        let span = Outgoing::begin(&self.reference, method);
        // Where there are no calls without a reply, this one has a reply that nobody looks at.
        let sent = sent(span.run(|| self.call(method, arguments, true, &mut CallProgress::Ended)));
        span.end_sent(&sent);
        sent
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        let done = Outgoing::begin(&self.reference, method).ending(done);
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed);
        let (now, until) = self.times();
        let expects = Expects::Reply;
        let mut asker = CallCompletion::new(ticket, done);
        // A connection may turn out to be over just when the call begins; nothing was sent then, so one more
        // attempt repeats nothing.
        for attempt in 0..2 {
            let way = self.locate(until).and_then(|()| self.way(until));
            // Once the call has begun, it is the session that says when the next one may.
            let (way, _turn) = match way.and_then(|way| self.node.register(&way.0.connection).map(|()| way)) {
                Ok(way) => way,
                Err(failure) => {
                    asker.tell(Outcome::Failed(of_operation(failure, method)));
                    break;
                }
            };
            let call = Call { profile: &way.profile, method, arguments, expects };
            match way.connection.call_and_go(call, now, until, asker) {
                Ok(()) => break,
                Err((failure, back)) if attempt == 1 => {
                    back.tell(Outcome::Failed(of_operation(failure, method)));
                    break;
                }
                Err((_, back)) => {
                    asker = back;
                    *lock(&self.ways.now) = None;
                }
            }
        }
        Ticket(ticket)
    }

    fn is_ready(&self) -> bool {
        // Where one call at a time is carried, another connection may have to be made.
        let Some((way, _turn)) = self.at_hand() else { return false };
        way.located.load(Ordering::Relaxed) || !self.may_be_elsewhere()
    }

    fn prepare(&self, ready: Ready) {
        let asked = RouteWaiter { ready: Some(ready), begun: Instant::now() };
        {
            let mut seekers = lock(&self.seekers);
            if let Some((_, waiting)) = seekers.iter_mut().find(|(deadline, _)| *deadline == self.deadline) {
                // Somebody looks for it already.
                return waiting.push(asked);
            }
            seekers.push((self.deadline, vec![asked]));
        }
        let search = Search { of: self.clone(), told: false };
        let (_, until) = self.times();
        self.node.apart(Box::new(move || search.run(until)));
    }

    fn withdraw(&self, ticket: Ticket) {
        let way = lock(&self.ways.now).clone();
        if way.is_none_or(|way| !way.connection.withdraw(ticket.0)) {
            // Where a connection carries one call at a time, later calls went by others.
            self.node.withdraw_abreast(ticket.0);
        }
    }

    fn probe(&self) -> Result<(), Failure> {
        let (now, until) = self.times();
        let ask = |way: &Route, progress: &mut CallProgress| {
            way.connection.call_and_wait(OutboundRequest::Probe(&way.profile), now, until, progress)
        };
        sent(self.ask(until, &mut CallProgress::Ended, ask, |failure| failure))
    }

    fn offers(&self, interface: &str) -> Result<bool, Failure> {
        let asked = self.wire_state().and_then(|(wire_state, object)| wire_state.offers(&object, interface));
        asked.unwrap_or_else(|| {
            let what = "this wire cannot ask an object for an interface";
            Err(Failure::new(Kind::Unsupported, Initiator::Here, what))
        })
    }

    fn subscribe(&self, filter: SignalFilter<'_>, listener: Listener) -> Result<Subscription, Failure> {
        let (now, until) = self.times();
        // An object of ours that the peer calls, perhaps.
        if let Some((wire_state, object)) = self.wire_state()
            && let Some(subscribed) = wire_state.subscribe(&object, filter, &listener)
        {
            return subscribed;
        }
        let SignalFilter { interface, signal } = filter;
        let (mut way, mut _turn) = self.way(until)?;
        let mut retried = false;
        let subscriber = Subscriber::new(listener);
        // Once more if the connection turned out to be closed.
        loop {
            self.node.register(&way.connection)?;
            if self.apart.is_some() {
                // A hop's: whoever is behind it is to see what happened as it happened.
                way.connection.keep_order();
            }
            let filter = SignalFilter { interface, signal };
            match way.connection.subscribe(&way.profile, filter, &subscriber, now, until) {
                Err(_) if way.connection.is_over() && !retried => {
                    *lock(&self.ways.now) = None;
                    (way, _turn) = self.way(until)?;
                    retried = true;
                }
                Err(failure) => return Err(failure),
                Ok(id) => {
                    let connection = Arc::clone(&way.connection);
                    return Ok(Subscription::new(move || {
                        subscriber.end();
                        connection.unsubscribe(id);
                    }));
                }
            }
        }
    }

    fn with_deadline(&self, deadline: Option<Duration>) -> Arc<dyn Target> {
        Arc::new(Self { deadline, ..self.clone() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.node) as Arc<dyn Resolver>
    }
}
