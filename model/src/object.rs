//! Objects on the caller's side, servants on the other, and the typed reference that hides which is which.

mod pending;
mod raising;
mod serving;
mod typed;

pub use pending::Pending;
use pending::Preparing;
pub use raising::{Exception, Raises, answer_raised, as_failure, raised, unexpected};
pub use serving::{Request, Servant, no_operation};
pub(crate) use typed::Side;
pub use typed::{Face, Ref, Remote};

use crate::body::Body;
use crate::contract::{Interface, Operation, Signal};
use crate::failure::{Failure, Initiator, Kind};
use crate::marshal::{MarshalList, UnmarshalList};
use crate::message::{Method, Outcome};
use crate::reference::Reference;
use crate::shape::Hold;
use crate::signal::{Emitter, Listener, Subscription};
use crate::visit::{Encode, Sink};
use bytes::Bytes;
use raising::conclude;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An object somewhere else, without a type: what stubs are made of. Cloning shares the connection.
#[derive(Clone)]
pub struct Object {
    target: Arc<dyn Target>,
    /// What the caller believes it to be: some wires name the interface in every call.
    interface: Option<Hold<Interface>>,
}

/// The way to an object; implemented by the runtime.
pub trait Target: Send + Sync {
    /// Where it is.
    fn reference(&self) -> &Reference;
    /// Where it was found, if the reference led to somebody who told that: what others are to be given in its place.
    fn found_at(&self) -> Option<Reference> {
        None
    }
    /// Calls and waits, on the calling thread.
    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body>;
    /// Calls without a reply; returns when the call was handed to the transport.
    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure>;
    /// Begins a call; `done` gets its outcome, on some thread. Returns a number to cancel it by.
    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket;
    /// Whether a call can begin now without waiting for a connection.
    fn is_ready(&self) -> bool {
        true
    }
    /// Finds the way without keeping the calling thread; `ready` gets the target to call then, on some thread: what this took is
    /// taken off its time limit.
    fn prepare(&self, ready: Ready) {
        ready(Ok(self.with_deadline(None)));
    }
    /// Withdraws a call begun by `submit`; `done` is dropped.
    fn withdraw(&self, ticket: Ticket);
    /// Asks the peer whether it has the object.
    fn probe(&self) -> Result<(), Failure>;
    /// Asks whether the object has the interface with this identity.
    fn offers(&self, _interface: &str) -> Result<bool, Failure> {
        Err(Failure::new(
            Kind::Unsupported,
            Initiator::Here,
            "this wire cannot ask an object for an interface",
        ))
    }
    /// Listens to signals of the object: those of one interface, or all; one of them, or all.
    fn subscribe(
        &self,
        _interface: Option<&Interface>,
        _signal: Option<&Signal>,
        _listener: Listener,
    ) -> Result<Subscription, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "this way to the object carries no signals"))
    }
    /// The same way with another time limit for each call.
    fn with_deadline(&self, deadline: Option<Duration>) -> Arc<dyn Target>;
    /// Turns references received from this object into objects.
    fn resolver(&self) -> Arc<dyn Resolver>;
}

/// Gets the outcome of a call.
pub type Completion = Box<dyn FnOnce(Outcome<Body>) + Send>;

/// Gets the target to call when a connection is there, or why there is none.
pub type Ready = Box<dyn FnOnce(Result<Arc<dyn Target>, Failure>) + Send>;

/// A call begun by [`Target::submit`].
#[derive(Debug, Clone, Copy)]
pub struct Ticket(pub u64);

/// Turns references into objects; implemented by the runtime.
pub trait Resolver: Send + Sync {
    /// The way to the object. Connects at the first call, not here.
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure>;
    /// The servants themselves, if they live in this process: the key, what emits their signals, and an `Arc<dyn Trait>`
    /// behind `Any`.
    fn local(&self, reference: &Reference, type_id: &str) -> Option<Local>;
}

/// A servant of this process: its key, what emits its signals, and an `Arc<dyn Trait>` behind `Any`.
pub type Local = (Bytes, Arc<dyn Emitter>, Face);

impl Object {
    /// An object reached this way.
    pub fn new(target: Arc<dyn Target>) -> Self {
        Self { target, interface: None }
    }

    /// The same object, known to be of this interface.
    #[must_use]
    pub fn typed(mut self, interface: Hold<Interface>) -> Self {
        self.interface = Some(interface);
        self
    }

    /// What it is known to be.
    pub fn interface(&self) -> Option<&Interface> {
        self.interface.as_deref()
    }

    fn method<'a>(&'a self, operation: &'a Operation) -> Method<'a> {
        Method::Typed { interface: self.interface(), operation }
    }

    /// Calls, and waits for an outcome that nobody has decoded.
    pub fn invoke(&self, operation: &Operation, arguments: &dyn Encode) -> Outcome<Body> {
        self.target.invoke(self.method(operation), arguments)
    }

    /// Calls without a reply.
    pub fn send(&self, operation: &Operation, arguments: &dyn Encode) -> Result<(), Failure> {
        self.target.notify(self.method(operation), arguments)
    }

    /// Listens to signals: this one, or all of the object's interface; `interface` of `None` and no interface known
    /// means all signals of the object.
    pub fn subscribe(&self, signal: Option<&Signal>, listener: Listener) -> Result<Subscription, Failure> {
        self.target.subscribe(self.interface(), signal, listener)
    }

    /// Asks whether the object has the interface with this identity, where the wire has a way to ask (QueryInterface).
    pub fn offers(&self, interface: &str) -> Result<bool, Failure> {
        self.target.offers(interface)
    }

    /// Where it is.
    pub fn reference(&self) -> &Reference {
        self.target.reference()
    }

    /// The way to it.
    pub fn target(&self) -> &Arc<dyn Target> {
        &self.target
    }

    /// The same object with another time limit for each call; `None` waits for ever.
    #[must_use]
    pub fn with_deadline(&self, deadline: Option<Duration>) -> Self {
        Self { target: self.target.with_deadline(deadline), interface: self.interface.clone() }
    }

    /// Calls, and waits for typed results.
    #[inline]
    pub fn call<A, R, E>(&self, operation: &Operation, arguments: A) -> Result<R, E>
    where
        A: MarshalList,
        R: for<'a> UnmarshalList<'a>,
        E: Raises,
    {
        let outcome =
            self.invoke(operation, &|sink: &mut dyn Sink| arguments.marshal_list(&operation.arguments, sink));
        conclude(operation, outcome)
    }

    /// Calls without waiting for anything but the transport.
    pub fn notify<A: MarshalList>(&self, operation: &Operation, arguments: A) -> Result<(), Failure> {
        self.target.notify(self.method(operation), &|sink: &mut dyn Sink| {
            arguments.marshal_list(&operation.arguments, sink)
        })
    }

    /// Calls, and returns a future of the typed results. Dropping the future withdraws the call. The call has begun when this returns,
    /// if there is a connection; if one has to be made, that keeps no thread of the caller's, and the call begins when the
    /// future is polled after that.
    pub fn call_async<'o, A, R, E>(
        &'o self,
        operation: &'o Operation,
        arguments: A,
    ) -> impl Future<Output = Result<R, E>> + Send + 'o
    where
        A: MarshalList + Send + 'o,
        R: for<'a> UnmarshalList<'a> + 'o,
        E: Raises + 'o,
    {
        let begin = move |target: &Arc<dyn Target>, arguments: &A| {
            let arguments = |sink: &mut dyn Sink| arguments.marshal_list(&operation.arguments, sink);
            Pending::begin(target, |done| target.submit(self.method(operation), &arguments, done))
        };
        let begun = match Preparing::of(&self.target) {
            None => Ok(begin(&self.target, &arguments)),
            Some(preparing) => Err((preparing, arguments)),
        };
        async move {
            let pending = match begun {
                Ok(pending) => pending,
                Err((preparing, arguments)) => match preparing.await {
                    Ok(target) => begin(&target, &arguments),
                    Err(failure) => {
                        let failure = failure.at(format_args!("operation {}", operation.label));
                        return conclude(operation, Outcome::Failed(failure));
                    }
                },
            };
            conclude(operation, pending.await)
        }
    }

    /// Begins a call whose arguments encode themselves; the future yields its outcome. If a connection has to be made first, that
    /// keeps the calling thread ([`Target::prepare`] does not).
    pub fn submit(&self, operation: &Operation, arguments: &dyn Encode) -> Pending {
        let begin = |done| self.target.submit(self.method(operation), arguments, done);
        Pending::begin(&self.target, begin)
    }

    /// A typed reference to an object that this one gave.
    pub fn narrow<I: Remote + ?Sized>(
        &self,
        reference: Option<Reference>,
    ) -> Result<Option<Ref<I>>, Failure> {
        reference.map(|reference| Ref::resolve(&*self.target.resolver(), reference)).transpose()
    }

    /// Typed, if you know better than its reference what it is.
    pub fn into_typed<I: Remote + ?Sized>(self) -> Ref<I> {
        let reference = self.reference().clone();
        Ref::remote(self, reference)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({:?})", self.reference())
    }
}
