//! Calls to whoever calls: objects that a peer serves on the connection that it made.
//!
//! Servants get them in two ways. On wires where every peer can be called so, they ask for the caller (`caller`), which has one object.
//! Elsewhere a peer passes references, and the session finds those whose objects are at its end of the connection (`Config::way_back`):
//! they are called over it as long as it lasts, and after that as their references say.

use super::call_completion::CallCompletion;
use super::state::Connection;
use crate::shard;
use crate::view::NullResolver;
use everywire_model::object::{Completion, Ready, Ticket};
use everywire_model::{
    Body, Call, Completed, Encode, Expects, Failure, Initiator, Kind, Method, Object, Outcome, Profile,
    Reference, Resolver, Target,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};

/// Numbers of these calls, from 2^63 on: a connection looks for a withdrawn call among those of all its
/// targets.
static TICKETS: AtomicU64 = AtomicU64::new(1 << 63);

thread_local! {
    static CALLING: RefCell<CallingConnection> = const { RefCell::new(CallingConnection { connection: Weak::new(), now: false }) };
}

/// The connection whose call the thread is serving (`now`), where its peer may be called back, or has served
/// last. The last one is kept, since a thread mostly serves the same one again, and a comparison costs less
/// than a `Weak`.
struct CallingConnection {
    connection: Weak<Connection>,
    now: bool,
}

/// The object at the other end of the connection by which the call came that this thread is serving: for callbacks, where
/// the wire carries calls both ways. A servant that is asynchronous asks before it first waits.
pub fn caller() -> Option<Object> {
    let connection =
        CALLING.with_borrow(|served| served.now.then(|| served.connection.upgrade()).flatten())?;
    Some(object(&connection))
}

/// While it lives, the calling thread serves a call of a connection. Calls may be nested on one thread.
pub(super) struct ServingScope {
    /// The call that was being served before, if it was: of the same connection, unless it is said.
    before: Option<Option<Weak<Connection>>>,
}

impl ServingScope {
    pub(super) fn on(connection: &Arc<Connection>) -> Self {
        CALLING.with_borrow_mut(|served| {
            let interrupts = std::mem::replace(&mut served.now, true);
            let other = (!std::ptr::eq(served.connection.as_ptr(), Arc::as_ptr(connection)))
                .then(|| std::mem::replace(&mut served.connection, Arc::downgrade(connection)));
            Self { before: interrupts.then_some(other) }
        })
    }
}

impl Drop for ServingScope {
    fn drop(&mut self) {
        CALLING.with_borrow_mut(|served| match self.before.take() {
            None => served.now = false,
            Some(None) => {}
            Some(Some(other)) => served.connection = other,
        });
    }
}

/// In the lease of a profile whose object is at the other end of a connection.
#[derive(Default)]
pub(super) struct WayBack(OnceLock<Weak<Connection>>);

impl WayBack {
    pub(super) fn lead_to(&self, connection: &Arc<Connection>) {
        // A connection begins once.
        let _ = self.0.set(Arc::downgrade(connection));
    }
}

/// Whether a profile is of a reference that came by a connection to lead back over it.
pub(crate) fn leads_back(profile: &Profile) -> bool {
    profile.lease.get::<WayBack>().is_some()
}

/// The target of a reference that leads over a connection which its peer has made; nothing if it leads over none, or may not be called
/// there: what demands protection is not called without. `elsewhere` is called when the connection is gone.
pub(crate) fn way_back(reference: &Reference, elsewhere: &Arc<dyn Target>) -> Option<Arc<dyn Target>> {
    let profile = reference.profiles.iter().find(|profile| profile.lease.get::<WayBack>().is_some())?;
    let connection = profile.lease.get::<WayBack>()?.0.get()?;
    let alive = connection.upgrade().filter(|connection| !connection.is_over())?;
    alive.wire.check_way(profile, &alive.endpoint).ok()?;
    Some(Arc::new(PeerTarget {
        connection: Weak::clone(connection),
        reference: reference.clone(),
        profile: profile.clone(),
        deadline: alive.node.builder.deadline,
        elsewhere: Some(Arc::clone(elsewhere)),
        none: OnceLock::new(),
    }))
}

/// The object at the other end of a connection.
pub(super) fn object(connection: &Arc<Connection>) -> Object {
    let profile = Profile {
        wire: connection.wire.name(),
        endpoints: vec![connection.endpoint.clone()],
        ..Profile::default()
    };
    let reference = Reference { profiles: vec![profile.clone()], ..Reference::default() };
    Object::new(Arc::new(PeerTarget {
        connection: Arc::downgrade(connection),
        reference,
        profile,
        deadline: None,
        elsewhere: None,
        none: OnceLock::new(),
    }))
}

/// The target at the other end of a connection. It does not keep the connection open: when that is over, calls go where the reference
/// says, if there is one, and else they fail.
#[derive(Clone)]
struct PeerTarget {
    connection: Weak<Connection>,
    reference: Reference,
    /// The profile that names the object there.
    profile: Profile,
    deadline: Option<Duration>,
    elsewhere: Option<Arc<dyn Target>>,
    /// What resolves references once the connection is gone.
    none: OnceLock<Arc<dyn Resolver>>,
}

impl PeerTarget {
    fn connection(&self) -> Result<Arc<Connection>, Failure> {
        self.connection.upgrade().filter(|connection| !connection.is_over()).ok_or_else(gone)
    }

    /// What is called now: the connection; where that is gone, what is called in its place.
    fn way(&self) -> Result<Result<Arc<Connection>, &dyn Target>, Failure> {
        match (self.connection(), &self.elsewhere) {
            (Ok(connection), _) => Ok(Ok(connection)),
            (Err(_), Some(elsewhere)) => Ok(Err(&**elsewhere)),
            (Err(failure), None) => Err(failure),
        }
    }
}

impl Target for PeerTarget {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        if let Ok(Err(elsewhere)) = self.way() {
            return elsewhere.invoke(method, arguments);
        }
        let label = method.label();
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            // Nobody waits any more: then nobody wants it.
            let _ = sender.try_send(outcome);
        };
        let ticket = self.submit(method, arguments, Box::new(done));
        // The reply is read by the event loop that this thread may be leading. If it leads on, nobody would read it.
        let received = match shard::about_to_block() {
            false => receiver.recv().map_err(|_| gone()),
            true => receiver.try_recv().map_err(|_| {
                self.withdraw(ticket);
                no_thread()
            }),
        };
        match received {
            Ok(Outcome::Failed(failure)) => Outcome::Failed(failure.at(format_args!("callback {label}"))),
            Ok(Outcome::Moved(_)) => Outcome::Failed(moved().at(format_args!("callback {label}"))),
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Failed(failure.at(format_args!("callback {label}"))),
        }
    }

    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure> {
        let connection = match self.way()? {
            Ok(connection) => connection,
            Err(elsewhere) => return elsewhere.notify(method, arguments),
        };
        let call = Call { profile: &self.profile, method, arguments, expects: Expects::Nothing };
        connection.tell(call).map_err(|failure| failure.at(format_args!("callback {}", method.label())))
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        let connection = match self.way() {
            Ok(Ok(connection)) => connection,
            Ok(Err(elsewhere)) => return elsewhere.submit(method, arguments, done),
            Err(failure) => {
                done(Outcome::Failed(failure));
                return Ticket(TICKETS.fetch_add(1, Ordering::Relaxed));
            }
        };
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let call = Call { profile: &self.profile, method, arguments, expects: Expects::Reply };
        let until = self.deadline.and_then(|deadline| now.checked_add(deadline));
        let asker = CallCompletion::new(ticket, done);
        if let Err((failure, asker)) = connection.call_and_go(call, now, until, asker) {
            asker.tell(Outcome::Failed(failure));
        }
        Ticket(ticket)
    }

    fn is_ready(&self) -> bool {
        // What is called elsewhere may have to be connected to first.
        !matches!(self.way(), Ok(Err(elsewhere)) if !elsewhere.is_ready())
    }

    fn prepare(&self, ready: Ready) {
        match self.way() {
            Ok(Err(elsewhere)) => elsewhere.prepare(ready),
            _ => ready(Ok(self.with_deadline(None))),
        }
    }

    fn withdraw(&self, ticket: Ticket) {
        if let Some(connection) = self.connection.upgrade() {
            connection.withdraw(ticket.0);
        }
        if let Some(elsewhere) = &self.elsewhere {
            elsewhere.withdraw(ticket);
        }
    }

    fn probe(&self) -> Result<(), Failure> {
        match self.way()? {
            Ok(_) => Ok(()),
            Err(elsewhere) => elsewhere.probe(),
        }
    }

    fn with_deadline(&self, deadline: Option<Duration>) -> Arc<dyn Target> {
        let elsewhere = self.elsewhere.as_ref().map(|elsewhere| elsewhere.with_deadline(deadline));
        Arc::new(Self { deadline, elsewhere, ..self.clone() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        match (self.connection.upgrade(), &self.elsewhere) {
            (Some(connection), _) => everywire_model::Link::resolver(&*connection),
            (None, Some(elsewhere)) => elsewhere.resolver(),
            (None, None) => Arc::clone(self.none.get_or_init(|| Arc::new(NullResolver(gone)))),
        }
    }
}

#[cold]
fn gone() -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Peer, "whoever called has closed its connection")
}

/// An object that is called over the connection of its process sends the call away.
#[cold]
fn moved() -> Failure {
    let what = "the caller's object is elsewhere, and a call over the caller's connection goes nowhere else";
    Failure::new(Kind::Unsupported, Initiator::Here, what)
}

/// The thread that calls would have to read the answer itself, and serves a call meanwhile.
#[cold]
fn no_thread() -> Failure {
    let what = "no other thread could take over the event loop that reads the answer";
    Failure::new(Kind::Busy, Initiator::Here, what)
        .with_completed(Completed::Maybe)
        .with_hint("so many servants wait already: raise the quota `blocked_threads`, or call without waiting for the answer")
}
