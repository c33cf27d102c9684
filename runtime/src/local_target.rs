//! The way to an object of this process whose servant is not what the caller's type says: the other trait (blocking or asynchronous), a
//! base interface that the contract does not know as such, or a call without any type.
//!
//! Nothing holds here that does not hold elsewhere: values go through memory, as copies; the call runs on a thread of the pool, so
//! that its deadline ends the waiting; a node that is about to end refuses it. Oneways have a thread each, too, so that one may
//! overtake another. A caller of the servant's own type, or of a base of it, has the servant itself and needs none of this.
//!
//! States of a call: *under way*, from `LocalTarget::begin` until its [`LocalCall`] is answered, given up by the
//! caller, or late; whichever comes first takes `done` out of it, so the caller is told once. The servant is
//! not stopped by the latter two: it answers into the void.
//!
//! Invariants: completions run without any lock; the server counts a call in `Shared::inward` for as long as
//! its `ActiveCall` lives, and waits for it when it stops, but for the calls that the thread is in which stops it; the
//! reference is followed at most `FORWARDS` times.

use crate::connection;
use crate::directory::Entry;
use crate::failures::{ending, no_object, nobody_at, of_operation, timed_out};
use crate::shard;
use crate::shared::{FORWARDS, IN_PROCESS, Shared, named};
use crate::spans::{self, Outgoing};
use crate::sync::lock;
use crate::timers::{TIMERS, TimerKey};
use bytes::Bytes;
use everywire_model::native::NATIVE;
use everywire_model::object::{Completion, Ticket};
use everywire_model::signal::Listener;
use everywire_model::{
    Answer, Body, BoxFuture, CallId, Codec, Completed, Emitter, Encode, Endpoint, Expects, Failure, Incoming,
    Initiator, Kind, Link, Method, Outcome, Reference, Request, Resolver, Servant, SignalFilter,
    Subscription, Target,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Numbers of these calls. `LocalTarget::withdraw` looks for them in its own map only, so numbers of other targets
/// may be the same.
static TICKETS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The calls whose servants the calling thread is in, the innermost last, behind those that wait for them on other threads.
    static INSIDE: RefCell<Vec<Weak<ActiveCall>>> = const { RefCell::new(Vec::new()) };
}

/// The target of calls to one object of this process, by its key at an in-process address.
#[derive(Clone)]
pub(crate) struct LocalTarget {
    /// The caller's.
    node: Arc<Shared>,
    reference: Reference,
    name: String,
    key: Bytes,
    deadline: Option<Duration>,
    /// Calls of futures, by their tickets, to be withdrawn when a future is dropped. Shared with the
    /// completions, which take their call out.
    calls: Arc<Mutex<HashMap<u64, Arc<LocalCall>>>>,
}

/// A call that can begin: the node that serves the object, a servant of it, the number of the operation, the arguments.
type Call = (Arc<Shared>, Arc<dyn Servant>, usize, Body);

impl LocalTarget {
    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: self.name.clone() }
    }

    /// The node that serves at this address, looked up for each call: it may have ended, or another may have
    /// taken the name.
    fn server(&self) -> Result<Arc<Shared>, Failure> {
        named(&self.name).filter(|server| !server.stopped.load(Ordering::Acquire)).ok_or_else(|| {
            nobody_at(&self.endpoint()).with_hint(
                "in-process addresses reach servers of the same process only, as long as they are served",
            )
        })
    }

    /// The object's interfaces, and the node that serves them.
    fn entries(&self) -> Result<(Arc<Shared>, Vec<Entry>), Failure> {
        let server = self.server()?;
        let entries = server.directory.get(&self.key);
        if entries.is_empty() {
            return Err(no_object(&self.key).at(self.endpoint()));
        }
        Ok((server, entries))
    }

    /// Who answers, and by which of its operations: an interface that is the caller's comes first, then any
    /// interface of the object that has an operation of that name.
    fn find(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<Call, Failure> {
        let (server, entries) = self.entries()?;
        let known = |entry: &&Entry| {
            method.interface().is_none_or(|interface| entry.servant.interface().is_a(&interface.id))
        };
        let name = method.name();
        let found = entries.iter().filter(known).chain(&entries).find_map(|entry| {
            let index = entry.servant.interface().index_of(name)?;
            Some((Arc::clone(&entry.servant), index))
        });
        let Some((servant, index)) = found else {
            let what = format!("the object has no operation `{}`", method.label());
            return Err(Failure::new(Kind::NoOperation, Initiator::Peer, what).at(self.endpoint()));
        };
        if server.is_draining() {
            return Err(ending().at(self.endpoint()));
        }
        let body = match arguments.carries().body {
            // Whoever serves reads it as it came.
            Some(body) => body.clone(),
            None => NATIVE.write(&mut |sink| arguments.encode(sink))?,
        };
        Ok((server, servant, index, body))
    }

    /// Begins a call on a thread of the server's pool. `done` is told the outcome, unless it is given back with a failure: then
    /// nothing has begun. `blocks`: the calling thread does nothing else until then.
    fn begin<D: FnOnce(Outcome<Body>) + Send + 'static>(
        &self,
        method: Method<'_>,
        arguments: &dyn Encode,
        (expects, blocks): (Expects, bool),
        done: D,
    ) -> Result<Arc<LocalCall>, (Failure, D)> {
        let (server, servant, index, body) = match self.find(method, arguments) {
            Ok(call) => call,
            Err(failure) => return Err((failure, done)),
        };
        let under_way = Arc::new(ActiveCall::of(&server));
        let own = Arc::downgrade(&under_way);
        let inward = Arc::new(LocalCall {
            server: Arc::downgrade(&server),
            endpoint: self.endpoint(),
            done: Mutex::new(Some((Box::new(done), under_way))),
            late: Mutex::new(None),
        });
        let incoming = Incoming {
            // The link of this request answers one call only, so its number says nothing.
            id: CallId(0),
            sender: Bytes::new(),
            key: self.key.clone(),
            interface: Bytes::copy_from_slice(servant.interface().name.as_bytes()),
            operation: Bytes::copy_from_slice(method.name()),
            body,
            expects,
        };
        let link: Arc<dyn Link> = Arc::clone(&inward) as _;
        let endpoint = self.endpoint();
        let mut request = Request::new(index, incoming, link, Arc::clone(&servant));
        // A servant that blocks until this call ends is in it, too.
        let enclosing = if blocks { EnclosingCalls::here() } else { EnclosingCalls::default() };
        server.apart(Box::new(move || {
            let _inside = ServantScope::enter(enclosing, own);
            let _span = spans::serve(&mut request, IN_PROCESS, &endpoint);
            servant.dispatch(request);
        }));
        Ok(inward)
    }

    /// Calls, and blocks the calling thread until the outcome is there or the time is over.
    fn once(&self, method: Method<'_>, arguments: &dyn Encode, until: Option<Instant>) -> Outcome<Body> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            // Nobody waits any more: then nobody wants it.
            let _ = sender.try_send(outcome);
        };
        let inward = match self.begin(method, arguments, (Expects::Reply, true), done) {
            Ok(inward) => inward,
            Err((failure, _)) => return Outcome::Failed(failure),
        };
        // A servant that calls must not keep its shard from others.
        shard::about_to_block();
        let answered = match until {
            None => receiver.recv().map_err(RecvTimeoutError::from),
            Some(until) => receiver.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        answered.unwrap_or_else(|error| {
            Outcome::Failed(match error {
                RecvTimeoutError::Timeout => {
                    inward.give_up();
                    timed_out(&self.endpoint())
                }
                RecvTimeoutError::Disconnected => unanswered(),
            })
        })
    }
}

impl Target for LocalTarget {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        let span = Outgoing::begin(&self.reference, method);
        let until = self.deadline.and_then(|deadline| Instant::now().checked_add(deadline));
        let mut outcome = span.run(|| self.once(method, arguments, until));
        for _ in 0..FORWARDS {
            let Outcome::Moved(reference) = &outcome else { break };
            let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
            outcome = match here(&self.node, reference, rest) {
                Some(next) => next.once(method, arguments, until),
                // It follows what is elsewhere by itself.
                None => match self.node.resolve(reference) {
                    Ok(object) => {
                        let outcome = object.with_deadline(rest).target().invoke(method, arguments);
                        span.end(&outcome);
                        return outcome;
                    }
                    Err(failure) => Outcome::Failed(failure),
                },
            };
        }
        let outcome = match outcome {
            Outcome::Failed(failure) => Outcome::Failed(of_operation(failure, method)),
            outcome => outcome,
        };
        span.end(&outcome);
        outcome
    }

    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure> {
        let span = Outgoing::begin(&self.reference, method);
        let sent = span
            .run(|| self.begin(method, arguments, (Expects::Nothing, false), drop))
            .map(drop)
            .map_err(|(failure, _)| of_operation(failure, method));
        span.end_sent(&sent);
        sent
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        let done = Outgoing::begin(&self.reference, method).ending(done);
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed);
        let (calls, endpoint) = (Arc::downgrade(&self.calls), self.endpoint());
        let label = method.label().into_owned();
        let tell = move |outcome| {
            if let Some(calls) = calls.upgrade() {
                lock(&calls).remove(&ticket);
            }
            done(match outcome {
                Outcome::Moved(_) => {
                    let what = "the object has moved, and a future does not follow it within a process";
                    Outcome::Failed(Failure::new(Kind::Unsupported, Initiator::Here, what).at(endpoint))
                }
                Outcome::Failed(failure) => Outcome::Failed(failure.at(format_args!("operation {label}"))),
                outcome => outcome,
            });
        };
        // The call may have ended before this line: `tell` found nothing to remove then, so only a call that
        // is still under way is put into the map.
        match self.begin(method, arguments, (Expects::Reply, false), tell) {
            Ok(inward) => {
                let mut calls = lock(&self.calls);
                if inward.is_under_way() {
                    calls.insert(ticket, Arc::clone(&inward));
                    drop(calls);
                    if let Some(until) = self.deadline.and_then(|rest| Instant::now().checked_add(rest)) {
                        inward.end_at(until);
                    }
                }
            }
            Err((failure, tell)) => tell(Outcome::Failed(failure)),
        }
        Ticket(ticket)
    }

    fn withdraw(&self, ticket: Ticket) {
        let call = lock(&self.calls).remove(&ticket.0);
        if let Some(call) = call {
            call.give_up();
        }
    }

    fn probe(&self) -> Result<(), Failure> {
        self.entries().map(drop)
    }

    fn offers(&self, interface: &str) -> Result<bool, Failure> {
        let (_, entries) = self.entries()?;
        Ok(entries.iter().any(|entry| entry.servant.interface().is_a(interface)))
    }

    fn subscribe(&self, filter: SignalFilter<'_>, listener: Listener) -> Result<Subscription, Failure> {
        Ok(self.server()?.listen(&self.key, filter, listener))
    }

    fn with_deadline(&self, deadline: Option<Duration>) -> Arc<dyn Target> {
        Arc::new(Self { deadline, calls: Arc::default(), ..self.clone() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.node) as _
    }
}

/// The target of an object of this process, if the first address of the reference is an in-process one, and
/// either somebody serves there or the reference names no other address. Otherwise the caller goes by the
/// other addresses.
pub(crate) fn here(
    node: &Arc<Shared>,
    reference: &Reference,
    deadline: Option<Duration>,
) -> Option<LocalTarget> {
    let mut ways = reference.ways().map(|(profile, endpoint)| match endpoint {
        Endpoint::InProcess { name } => Some((name, &profile.key)),
        _ => None,
    });
    let ((name, key), lonely) = (ways.next()??, ways.next().is_none());
    (lonely || named(name).is_some()).then(|| LocalTarget {
        node: Arc::clone(node),
        reference: reference.clone(),
        name: name.clone(),
        key: key.clone(),
        deadline,
        calls: Arc::default(),
    })
}

/// A call on its way in, and the link by which it is answered.
struct LocalCall {
    server: Weak<Shared>,
    endpoint: Endpoint,
    /// Who is told, and what keeps the server from ending meanwhile. `None`: the outcome was told, or nobody
    /// wants it.
    done: Mutex<Option<(Completion, Arc<ActiveCall>)>>,
    /// When it is late.
    late: Mutex<Option<TimerKey>>,
}

impl LocalCall {
    fn is_under_way(&self) -> bool {
        lock(&self.done).is_some()
    }

    /// Tells the outcome, if nobody has before.
    fn end(&self, outcome: impl FnOnce() -> Outcome<Body>) {
        if let Some((done, _under_way)) = self.take() {
            done(outcome());
        }
    }

    /// Nobody wants its outcome any more: the completion is dropped untold.
    fn give_up(&self) {
        // Without the lock: it may hold what is the user's.
        drop(self.take());
    }

    /// Who is told, unless somebody was or nobody wants it.
    fn take(&self) -> Option<(Completion, Arc<ActiveCall>)> {
        let done = lock(&self.done).take();
        if let Some(late) = lock(&self.late).take() {
            TIMERS.cancel(late);
        }
        done
    }

    /// Ends it with a failure at that time.
    fn end_at(self: &Arc<Self>, until: Instant) {
        let this = Arc::downgrade(self);
        let mut late = lock(&self.late);
        *late = Some(TIMERS.at(until, move || {
            if let Some(this) = this.upgrade() {
                this.end(|| Outcome::Failed(timed_out(&this.endpoint)));
            }
        }));
        drop(late);
        if !self.is_under_way() {
            // It ended meanwhile.
            self.give_up();
        }
    }
}

impl Link for LocalCall {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        self.end(|| outcome(answer));
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        // Without a node the future is dropped, and with it its request, which answers with a failure.
        if let Some(server) = self.server.upgrade() {
            server.spawn(task, None);
        }
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        crate::view::resolver(&self.server)
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }
}

/// What the caller gets. Results and exceptions are copied into the memory encoding; if that fails, the
/// operation has run all the same, and the failure says so.
fn outcome(answer: Answer<'_>) -> Outcome<Body> {
    let written = |values: &dyn Encode| match values.carries().body {
        Some(body) => Ok(body.clone()),
        None => NATIVE.write(&mut |sink| values.encode(sink)),
    };
    let unfit = |failure: Failure| Outcome::Failed(failure.with_completed(Completed::Yes));
    match answer {
        Answer::Done(results) => written(results).map_or_else(unfit, Outcome::Done),
        Answer::Raised { shape, fields } => {
            written(fields).map_or_else(unfit, |body| Outcome::raised(shape.id.to_string(), body))
        }
        Answer::Failed(failure) => Outcome::Failed(failure.clone().as_answered()),
        Answer::Moved(reference) => Outcome::Moved(reference.clone()),
        Answer::Passed { failure, .. } => Outcome::Failed(failure.clone()),
    }
}

fn unanswered() -> Failure {
    Failure::new(Kind::Internal, Initiator::Peer, "the servant ended without an answer")
        .with_completed(Completed::Maybe)
}

/// How many of these calls to servants of a node the calling thread is in, or wait for it: a servant that stops its node does not wait
/// for its own call.
pub(crate) fn inside(node: &Shared) -> usize {
    // Each is dropped where nothing is borrowed: the last of a node lets go of it.
    let calls: Vec<Arc<ActiveCall>> =
        INSIDE.with_borrow(|calls| calls.iter().filter_map(Weak::upgrade).collect());
    calls.iter().filter(|call| std::ptr::eq(call.0.as_ptr(), node)).count()
}

/// Whether all that wait by memory for the servant that the calling thread is in still do; so does whoever is in none.
pub(crate) fn is_waited_for() -> bool {
    INSIDE.with_borrow(|calls| calls.iter().all(|call| call.strong_count() > 0))
}

/// The calls that a thread is in: these, and one of the connection at this address (0: of none).
#[derive(Default)]
struct EnclosingCalls(Vec<Weak<ActiveCall>>, usize);

impl EnclosingCalls {
    fn here() -> Self {
        Self(INSIDE.with_borrow(Vec::clone), connection::served())
    }
}

/// While it lives, the calling thread is in a servant. What it was in before: so many calls, and a connection's.
struct ServantScope(usize, usize);

impl ServantScope {
    fn enter(enclosing: EnclosingCalls, own: Weak<ActiveCall>) -> Self {
        let before = connection::served();
        if enclosing.1 != 0 {
            connection::serves(enclosing.1);
        }
        INSIDE.with_borrow_mut(|calls| {
            let count = calls.len();
            // Where the pool has no thread, this is the caller's, which knows what it is in.
            if calls.is_empty() {
                calls.extend(enclosing.0);
            }
            calls.push(own);
            Self(count, before)
        })
    }
}

impl Drop for ServantScope {
    fn drop(&mut self) {
        connection::serves(self.1);
        INSIDE.with_borrow_mut(|calls| calls.truncate(self.0));
    }
}

/// While it lives, the node that serves has a call to be waited for when it ends.
struct ActiveCall(Weak<Shared>);

impl ActiveCall {
    fn of(server: &Arc<Shared>) -> Self {
        server.inward.fetch_add(1, Ordering::SeqCst);
        Self(Arc::downgrade(server))
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        if let Some(server) = self.0.upgrade() {
            server.inward.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
