//! Objects on the caller's side, servants on the other, and the typed reference that hides which is which.

use crate::body::Body;
use crate::contract::{Interface, Operation, Signal};
use crate::failure::{Completed, Failure, Initiator, Kind};
use crate::marshal::{Marshal, MarshalList, Unmarshal, UnmarshalList};
use crate::reference::Reference;
use crate::session::{Answer, CallId, Expects, Incoming, Link, Outcome, Peer};
use crate::shape::{Hold, Shape};
use crate::signal::{Emitter, Listener, Signals, Subscription};
use crate::visit::{Encode, Sink, Visit};
use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
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

/// What to ask an object.
#[derive(Clone, Copy)]
pub struct Method<'a> {
    /// The interface that the operation is of, where it is known.
    pub interface: Option<&'a Interface>,
    /// The operation.
    pub operation: &'a Operation,
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
    /// Withdraws a call begun by `submit`; `done` is dropped.
    fn withdraw(&self, ticket: Ticket);
    /// Asks the peer whether it has the object.
    fn probe(&self) -> Result<(), Failure>;
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
pub type Local = (Bytes, Arc<dyn Emitter>, Arc<dyn Any + Send + Sync>);

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
        Method { interface: self.interface(), operation }
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

    /// Calls, and returns a future of the typed results. Dropping the future withdraws the call.
    pub fn call_async<'o, A, R, E>(
        &'o self,
        operation: &'o Operation,
        arguments: A,
    ) -> impl Future<Output = Result<R, E>> + Send + 'o
    where
        A: MarshalList,
        R: for<'a> UnmarshalList<'a> + 'o,
        E: Raises + 'o,
    {
        let pending =
            self.submit(operation, &|sink: &mut dyn Sink| arguments.marshal_list(&operation.arguments, sink));
        async move { conclude(operation, pending.await) }
    }

    /// Begins a call whose arguments encode themselves; the future yields its outcome.
    pub fn submit(&self, operation: &Operation, arguments: &dyn Encode) -> Pending {
        let slot = Arc::new(Mutex::new(Slot { outcome: None, waker: None }));
        let filled = Arc::clone(&slot);
        let ticket = self.target.submit(
            self.method(operation),
            arguments,
            Box::new(move |outcome| {
                let waker = match filled.lock() {
                    Ok(mut slot) => {
                        slot.outcome = Some(outcome);
                        slot.waker.take()
                    }
                    Err(_) => None,
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }),
        );
        Pending { slot, target: Some((Arc::clone(&self.target), ticket)) }
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

fn conclude<R, E>(operation: &Operation, outcome: Outcome<Body>) -> Result<R, E>
where
    R: for<'a> UnmarshalList<'a>,
    E: Raises,
{
    match outcome {
        Outcome::Done(body) => body.decode(&operation.results).map_err(|failure| {
            E::from(failure.at(format_args!("results of {}", operation.label)).with_completed(Completed::Yes))
        }),
        Outcome::Raised { id, body } => match E::raised(&id, &body) {
            Some(Ok(raised)) => Err(raised),
            Some(Err(failure)) => Err(E::from(failure.at(format_args!("exception {id}")))),
            None => Err(E::from(unexpected(&id))),
        },
        Outcome::Failed(failure) => Err(E::from(failure)),
        Outcome::Moved(_) => {
            Err(E::from(Failure::new(Kind::Unreachable, Initiator::Peer, "the object moved too often")))
        }
    }
}

/// The failure that stands for an exception which the contract does not name.
pub fn unexpected(id: &str) -> Failure {
    Failure::new(
        Kind::Internal,
        Initiator::Peer,
        format!("the peer raised `{id}`, which the contract does not name"),
    )
    .with_completed(Completed::Yes)
    .with_hint("compare the contract of both sides")
}

struct Slot {
    outcome: Option<Outcome<Body>>,
    waker: Option<Waker>,
}

/// A call on its way; a future of its outcome. Dropping it withdraws the call.
pub struct Pending {
    slot: Arc<Mutex<Slot>>,
    target: Option<(Arc<dyn Target>, Ticket)>,
}

impl Future for Pending {
    type Output = Outcome<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match self.slot.lock() {
            Ok(mut slot) => {
                let outcome = slot.outcome.take();
                if outcome.is_none() {
                    slot.waker = Some(context.waker().clone());
                }
                outcome
            }
            Err(_) => {
                Some(Outcome::Failed(Failure::new(Kind::Internal, Initiator::Here, "a completion panicked")))
            }
        };
        match outcome {
            Some(outcome) => {
                self.target = None;
                Poll::Ready(outcome)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((target, ticket)) = self.target.take() {
            target.withdraw(ticket);
        }
    }
}

/// The error type of an operation: a [`Failure`], or an enumeration of the exceptions it may raise and a failure.
pub trait Raises: From<Failure> + Send {
    /// The exception with this identity, if the operation may raise it.
    fn raised(id: &str, body: &Body) -> Option<Result<Self, Failure>>;
    /// Hands the answer that carries this error to `give`.
    fn answer(&self, give: &mut dyn FnMut(Answer<'_>));
}

impl Raises for Failure {
    fn raised(_: &str, _: &Body) -> Option<Result<Self, Failure>> {
        None
    }

    fn answer(&self, give: &mut dyn FnMut(Answer<'_>)) {
        give(Answer::Failed(self));
    }
}

/// An exception of a contract; implemented by generated types.
pub trait Exception: Marshal + Sized {
    /// Its shape; `id` and `name` tell it from others.
    fn shape() -> &'static Shape;
}

/// Answers with an exception; for generated code.
pub fn answer_raised<X: Exception>(exception: &X, give: &mut dyn FnMut(Answer<'_>)) {
    if let Shape::Struct(shape) = X::shape() {
        give(Answer::Raised { shape, fields: &|sink: &mut dyn Sink| exception.marshal(X::shape(), sink) });
    }
}

/// Reads an exception, if this is its identity, or its name on wires that send names; for generated code.
pub fn raised<X, E>(id: &str, body: &Body) -> Option<Result<E, Failure>>
where
    X: Exception + for<'a> Unmarshal<'a> + Into<E>,
{
    let shape = X::shape();
    match shape {
        Shape::Struct(exception) if exception.id == id || exception.name == id => {
            Some(body.read(|source| X::unmarshal(shape, source)).map(Into::into))
        }
        _ => None,
    }
}

/// The failure of a request whose number no operation has; for generated code.
#[cold]
pub fn no_operation(interface: &Interface) -> Failure {
    Failure::new(Kind::NoOperation, Initiator::Peer, format!("{} has no such operation", interface.name))
}

/// An object that is served: generated skeletons implement it around a typed servant, and so do bridges.
pub trait Servant: Send + Sync {
    /// What it can be asked.
    fn interface(&self) -> &Interface;
    /// Serves one call. Runs on a thread of the runtime; a servant that waits for long tells so by
    /// `everywire::blocking`, or is asynchronous.
    fn dispatch(&self, request: Request);
}

/// A call to be served. Dropped without a reply, it answers with a failure, so that no caller waits in vain.
pub struct Request {
    index: usize,
    incoming: Box<Incoming>,
    link: Arc<dyn Link>,
    servant: Arc<dyn Servant>,
    answered: bool,
}

impl Request {
    /// For the runtime: a call of the operation number `index` of `servant`'s interface.
    pub fn new(
        index: usize,
        incoming: impl Into<Box<Incoming>>,
        link: Arc<dyn Link>,
        servant: Arc<dyn Servant>,
    ) -> Self {
        let incoming = incoming.into();
        let answered = incoming.expects == Expects::Nothing;
        Self { index, incoming, link, servant, answered }
    }

    /// Number of the operation in the servant's interface.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Names the call on its connection.
    pub fn id(&self) -> CallId {
        self.incoming.id
    }

    /// The encoded arguments.
    pub fn body(&self) -> &Body {
        &self.incoming.body
    }

    /// The object's key.
    pub fn key(&self) -> &[u8] {
        &self.incoming.key
    }

    /// Who calls, in the wire's terms, where a router stands between; mostly empty.
    pub fn sender(&self) -> &[u8] {
        &self.incoming.sender
    }

    /// The other end of the connection.
    pub fn peer(&self) -> Option<Peer> {
        self.link.peer()
    }

    /// The connection it came by.
    pub fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    fn operation(&self) -> Option<&Operation> {
        self.servant.interface().operations.get(self.index)
    }

    /// The typed arguments.
    pub fn arguments<'a, A: UnmarshalList<'a>>(&'a self) -> Result<A, Failure> {
        match self.operation() {
            Some(operation) => self
                .incoming
                .body
                .decode(&operation.arguments)
                .map_err(|failure| failure.at(format_args!("arguments of {}", operation.label))),
            None => Err(Failure::new(Kind::NoOperation, Initiator::Peer, "no such operation")),
        }
    }

    /// A typed reference that came as an argument.
    pub fn narrow<I: Remote + ?Sized>(
        &self,
        reference: Option<Reference>,
    ) -> Result<Option<Ref<I>>, Failure> {
        reference.map(|reference| Ref::resolve(&*self.link.resolver(), reference)).transpose()
    }

    /// Replies with the result of the servant.
    pub fn reply<R: MarshalList, E: Raises>(&mut self, result: Result<R, E>) -> Result<(), Failure> {
        if !self.answered {
            self.answered = true;
            match (result, self.servant.interface().operations.get(self.index)) {
                (Ok(results), Some(operation)) => self.link.answer(
                    self.incoming.id,
                    Answer::Done(&|sink: &mut dyn Sink| results.marshal_list(&operation.results, sink)),
                ),
                (Ok(_), None) => {}
                (Err(error), _) => error.answer(&mut |answer| self.link.answer(self.incoming.id, answer)),
            }
        }
        Ok(())
    }

    /// Replies with an answer that was made elsewhere: for bridges and dynamic servants.
    pub fn answer(&mut self, answer: Answer<'_>) {
        if !self.answered {
            self.answered = true;
            self.link.answer(self.incoming.id, answer);
        }
    }

    /// Runs the body of a skeleton; a failure becomes the reply.
    pub fn run(mut self, body: impl FnOnce(&mut Self) -> Result<(), Failure>) {
        let result = body(&mut self);
        self.finish(result);
    }

    /// Runs an asynchronous skeleton on the runtime's threads; `body` ends with [`Request::finish`].
    pub fn spawn<F>(self, body: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let link = Arc::clone(&self.link);
        link.spawn(Box::pin(body(self)));
    }

    /// Ends a skeleton; a failure becomes the reply.
    pub fn finish(mut self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.answer(Answer::Failed(&failure));
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.answered {
            let failure =
                Failure::new(Kind::Internal, Initiator::Peer, "the servant ended without an answer")
                    .with_completed(Completed::Maybe)
                    .with_hint("look for a panic in the server's log");
            self.answer(Answer::Failed(&failure));
        }
    }
}

/// A generated trait (`dyn Account`): what connects it to the untyped world.
pub trait Remote: Send + Sync + 'static {
    /// Its description.
    fn interface() -> &'static Interface;
    /// A stub that implements it by calls to `object`.
    fn stub(object: Object) -> Arc<Self>;
    /// A skeleton that serves it.
    fn skeleton(servant: Arc<Self>) -> Arc<dyn Servant>;
}

/// A typed reference to an object, here or elsewhere. It dereferences to the trait, so a caller cannot tell where the
/// object lives: in this process it *is* the servant.
pub struct Ref<I: ?Sized> {
    object: Arc<I>,
    reference: Arc<Reference>,
    pub(crate) side: Side,
}

/// Where the object of a typed reference lives, for what the trait does not say: its signals.
#[derive(Clone)]
pub(crate) enum Side {
    Here(Arc<dyn Emitter>, Bytes),
    There(Object),
}

impl<I: ?Sized> Ref<I> {
    /// For the runtime: a servant of this process, exported under `key` and published under this reference.
    pub fn local(object: Arc<I>, reference: Reference, key: Bytes, emitter: Arc<dyn Emitter>) -> Self {
        Self { object, reference: Arc::new(reference), side: Side::Here(emitter, key) }
    }

    /// Where the object is.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The object as a shared trait object.
    pub fn as_arc(&self) -> &Arc<I> {
        &self.object
    }
}

impl<I: Remote + ?Sized> Ref<I> {
    /// The object behind a reference: the servant itself if it lives here, else a stub.
    pub fn resolve(resolver: &dyn Resolver, reference: Reference) -> Result<Self, Failure> {
        if let Some((held_key, emitter, held)) = resolver.local(&reference, &I::interface().id)
            && let Some(local) = held.downcast_ref::<Arc<I>>()
        {
            return Ok(Self {
                object: Arc::clone(local),
                reference: Arc::new(reference),
                side: Side::Here(emitter, held_key),
            });
        }
        let object = resolver.resolve(&reference)?;
        Ok(Self::remote(object, reference))
    }
}

impl<I: Remote + ?Sized> Ref<I> {
    fn remote(object: Object, reference: Reference) -> Self {
        let object = object.typed(Hold::Static(I::interface()));
        Self { object: I::stub(object.clone()), reference: Arc::new(reference), side: Side::There(object) }
    }

    /// What the object emits, and what there is to hear of it.
    pub fn signals(&self) -> Signals<'_, I> {
        Signals { of: self }
    }
}

impl<I: ?Sized> Clone for Ref<I> {
    fn clone(&self) -> Self {
        Self {
            object: Arc::clone(&self.object),
            reference: Arc::clone(&self.reference),
            side: self.side.clone(),
        }
    }
}

impl<I: ?Sized> Deref for Ref<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.object
    }
}

impl<I: ?Sized> fmt::Debug for Ref<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({:?})", self.reference)
    }
}

impl<I: ?Sized> Marshal for Option<Ref<I>> {
    fn marshal<S: Sink + ?Sized>(&self, _: &Shape, sink: &mut S) -> Visit<()> {
        let found = match self.as_ref().map(|held| &held.side) {
            Some(Side::There(object)) => object.target().found_at(),
            _ => None,
        };
        sink.reference(found.as_ref().or_else(|| self.as_ref().map(Ref::reference)))
    }
}
