//! Objects without a type, the way to them, and what turns references into them.

use crate::body::Body;
use crate::contract::{Interface, Operation, Signal};
use crate::failure::Failure;
use crate::message::{Method, Outcome, SignalFilter};
use crate::reference::Reference;
use crate::shape::Hold;
use crate::signal::{Emitter, Listener, Subscription};
use crate::visit::Encode;
use bytes::Bytes;
use std::any::Any;
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
    pub(super) target: Arc<dyn Target>,
    /// What the caller believes it to be: some wires name the interface in every call.
    interface: Option<InterfaceHold>,
}

/// An interface as an object keeps it. For each asynchronous function of each stub the compiler asks anew whether the object may be
/// shared between threads; behind a trait object it does not look through all that an interface is made of, which took it a quarter
/// of a second a function.
#[derive(Clone)]
enum InterfaceHold {
    Static(&'static dyn InterfaceSource),
    Shared(Arc<dyn InterfaceSource>),
}

/// Something that leads to an interface.
trait InterfaceSource: Send + Sync {
    fn interface(&self) -> &Interface;
}

impl InterfaceSource for Interface {
    fn interface(&self) -> &Interface {
        self
    }
}

impl InterfaceSource for Hold<Interface> {
    fn interface(&self) -> &Interface {
        self
    }
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
        let what = "this wire cannot ask an object for an interface";
        Err(Failure::unsupported(what))
    }
    /// Listens to signals of the object.
    fn subscribe(&self, _filter: SignalFilter<'_>, _listener: Listener) -> Result<Subscription, Failure> {
        Err(Failure::unsupported("this way to the object carries no signals"))
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

/// A servant as one of its traits: an `Arc<dyn Trait>` behind `Any`.
pub type TypedServant = Arc<dyn Any + Send + Sync>;

/// A servant of this process: its key, what emits its signals, and an `Arc<dyn Trait>` behind `Any`.
pub type Local = (Bytes, Arc<dyn Emitter>, TypedServant);

impl Object {
    /// An object reached this way.
    pub fn new(target: Arc<dyn Target>) -> Self {
        Self { target, interface: None }
    }

    /// The same object, known to be of this interface.
    #[must_use]
    pub fn typed(mut self, interface: Hold<Interface>) -> Self {
        self.interface = Some(match interface {
            Hold::Static(interface) => InterfaceHold::Static(interface),
            Hold::Shared(interface) => InterfaceHold::Shared(interface),
            other => InterfaceHold::Shared(Arc::new(other)),
        });
        self
    }

    /// What it is known to be.
    #[inline]
    pub fn interface(&self) -> Option<&Interface> {
        self.interface.as_ref().map(|believed| match believed {
            InterfaceHold::Static(described) => described.interface(),
            InterfaceHold::Shared(described) => described.interface(),
        })
    }

    #[inline]
    pub(super) fn method<'a>(&'a self, operation: &'a Operation) -> Method<'a> {
        Method::Typed { interface: self.interface(), operation }
    }

    /// Calls, and waits for an outcome that nobody has decoded.
    #[inline]
    pub fn invoke(&self, operation: &Operation, arguments: &dyn Encode) -> Outcome<Body> {
        self.target.invoke(self.method(operation), arguments)
    }

    /// Calls without a reply.
    #[inline]
    pub fn send(&self, operation: &Operation, arguments: &dyn Encode) -> Result<(), Failure> {
        self.target.notify(self.method(operation), arguments)
    }

    /// Listens to signals: this one, or all of the object's interface; `interface` of `None` and no interface known
    /// means all signals of the object.
    pub fn subscribe(&self, signal: Option<&Signal>, listener: Listener) -> Result<Subscription, Failure> {
        self.target.subscribe(SignalFilter { interface: self.interface(), signal }, listener)
    }

    /// Asks whether the object has the interface with this identity, where the wire has a way to ask (QueryInterface, `_is_a`).
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
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({:?})", self.reference())
    }
}
