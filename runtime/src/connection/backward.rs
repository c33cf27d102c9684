//! Calls to whoever calls: objects that a peer serves on the connection that it made.

use super::call_completion::CallCompletion;
use super::state::Connection;
use crate::shard;
use crate::view::NullResolver;
use everywire_model::object::{Completion, Ticket};
use everywire_model::{
    Body, Call, Encode, Expects, Failure, Initiator, Kind, Method, Object, Outcome, Profile, Reference,
    Resolver, Target,
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

/// The object at the other end of a connection.
pub(super) fn object(connection: &Arc<Connection>) -> Object {
    let profile = Profile {
        wire: connection.wire.name(),
        endpoints: vec![connection.endpoint.clone()],
        ..Profile::default()
    };
    let reference = Reference { profiles: vec![profile], ..Reference::default() };
    Object::new(Arc::new(PeerTarget {
        connection: Arc::downgrade(connection),
        reference,
        deadline: None,
        none: OnceLock::new(),
    }))
}

/// The target at the other end of a connection. It does not keep the connection open: when that is over,
/// calls fail.
struct PeerTarget {
    connection: Weak<Connection>,
    reference: Reference,
    deadline: Option<Duration>,
    /// What resolves references once the connection is gone.
    none: OnceLock<Arc<dyn Resolver>>,
}

impl PeerTarget {
    fn way(&self) -> Result<(Arc<Connection>, &Profile), Failure> {
        let connection = self.connection.upgrade().filter(|connection| !connection.is_over());
        connection.zip(self.reference.profiles.first()).ok_or_else(gone)
    }
}

impl Target for PeerTarget {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        let label = method.label();
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            // Nobody waits any more: then nobody wants it.
            let _ = sender.try_send(outcome);
        };
        self.submit(method, arguments, Box::new(done));
        // The reply is read by the event loop that this thread may be leading.
        shard::about_to_block();
        match receiver.recv() {
            Ok(Outcome::Failed(failure)) => Outcome::Failed(failure.at(format_args!("callback {label}"))),
            Ok(outcome) => outcome,
            Err(_) => Outcome::Failed(gone()),
        }
    }

    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure> {
        let (connection, profile) = self.way()?;
        let call = Call { profile, method, arguments, expects: Expects::Nothing };
        connection.tell(call).map_err(|failure| failure.at(format_args!("callback {}", method.label())))
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        match self.way() {
            Ok((connection, profile)) => {
                let call = Call { profile, method, arguments, expects: Expects::Reply };
                let until = self.deadline.and_then(|deadline| now.checked_add(deadline));
                let asker = CallCompletion::new(ticket, done);
                if let Err((failure, asker)) = connection.call_and_go(call, now, until, asker) {
                    asker.tell(Outcome::Failed(failure));
                }
            }
            Err(failure) => done(Outcome::Failed(failure)),
        }
        Ticket(ticket)
    }

    fn withdraw(&self, ticket: Ticket) {
        if let Some(connection) = self.connection.upgrade() {
            connection.withdraw(ticket.0);
        }
    }

    fn probe(&self) -> Result<(), Failure> {
        self.way().map(drop)
    }

    fn with_deadline(&self, deadline: Option<Duration>) -> Arc<dyn Target> {
        let (connection, reference) = (Weak::clone(&self.connection), self.reference.clone());
        Arc::new(Self { connection, reference, deadline, none: OnceLock::new() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        match self.connection.upgrade() {
            Some(connection) => everywire_model::Link::resolver(&*connection),
            None => Arc::clone(self.none.get_or_init(|| Arc::new(NullResolver(gone)))),
        }
    }
}

fn gone() -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Peer, "whoever called has closed its connection")
}
