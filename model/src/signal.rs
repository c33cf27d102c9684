//! Signals: what an object tells whoever listens.

use crate::body::Body;
use crate::contract::{Attribute, Interface, Signal};
use crate::failure::{Failure, Initiator, Kind};
use crate::message::Incoming;
use crate::object::{Ref, Remote, Resolver, Side};
use crate::shape::Hold;
use crate::visit::{Encode, Sink, Visit};
use bytes::Bytes;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

/// What a subscriber gets.
#[derive(Debug, Clone)]
pub enum SignalEvent<T> {
    /// A signal.
    Signal(T),
    /// Whoever emits it has left. The subscription stands: should they come back, signals go on.
    OwnerLost(Failure),
    /// A signal that does not decode: the other side has another contract.
    Undecodable(Failure),
    /// The connection broke: the subscription is over, and must be made anew.
    Disconnected(Failure),
}

/// What happens among those who listen to an object, on wires where they are known: told to whoever serves it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Audience {
    /// Somebody listens from now on.
    Joined {
        /// The identity of the interface whose calls the signals are.
        interface: String,
        /// Who: a number that nobody else has who listens to that interface of the object.
        listener: u32,
        /// How many listen to it now.
        listeners: usize,
    },
    /// Somebody listens no longer: of their own accord, or because they are no more, or were dismissed.
    Left {
        /// The identity of the interface whose calls the signals are.
        interface: String,
        /// Who.
        listener: u32,
        /// How many listen to it now.
        listeners: usize,
    },
    /// A signal did not reach a listener, or the listener answered it with a failure.
    Failed {
        /// The identity of the interface whose calls the signals are.
        interface: String,
        /// Who.
        listener: u32,
        /// Why.
        failure: Failure,
        /// How many signals were given up for it, too, since the last time that this was told.
        lost: u64,
    },
}

/// What waits for the listener of an object that is furthest behind, on wires where listeners are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Signals that wait for it; not the one that is on its way.
    pub signals: usize,
    /// Bytes that these hold, about.
    pub bytes: usize,
    /// Whose it is: the account, or where it is called.
    pub listener: String,
}

/// Gets signals, on the runtime's threads, in order.
pub type Listener = Arc<dyn Fn(SignalEvent<Incoming>) + Send + Sync>;

/// Ends when dropped.
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Subscription {
    /// A subscription that is ended by `end`.
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }

    /// Lets it last as long as the connection, or the process.
    pub fn forever(mut self) {
        self.0 = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}

/// The signals of an object: to listen to from anywhere, to emit where it lives.
pub struct Signals<'r, I: ?Sized> {
    pub(crate) of: &'r Ref<I>,
}

impl<I: Remote + ?Sized> Signals<'_, I> {
    /// Calls `listener` for each signal of this kind, on the runtime's threads, until the subscription is dropped.
    pub fn on<S: TypedSignal>(
        &self,
        listener: impl Fn(S) + Send + Sync + 'static,
    ) -> Result<Subscription, Failure>
    where
        I: Emits<S>,
    {
        self.watch(move |event| {
            if let SignalEvent::Signal(signal) = event {
                listener(signal);
            }
        })
    }

    /// As [`Signals::on`]; the listener is also told when the emitter is lost, and of signals that do not decode.
    pub fn watch<S: TypedSignal>(
        &self,
        listener: impl Fn(SignalEvent<S>) + Send + Sync + 'static,
    ) -> Result<Subscription, Failure>
    where
        I: Emits<S>,
    {
        let listener: Listener = Arc::new(move |event| {
            listener(match event {
                SignalEvent::Signal(heard) => match S::read(&heard.body) {
                    Ok(signal) => SignalEvent::Signal(signal),
                    Err(failure) => {
                        SignalEvent::Undecodable(failure.at(format_args!("signal {}", S::signal().label)))
                    }
                },
                SignalEvent::OwnerLost(failure) => SignalEvent::OwnerLost(failure),
                SignalEvent::Undecodable(failure) => SignalEvent::Undecodable(failure),
                SignalEvent::Disconnected(failure) => SignalEvent::Disconnected(failure),
            });
        });
        match &self.of.side {
            Side::Here(emitter, key) => {
                Ok(emitter.listen(key, Some(S::interface()), Some(S::signal()), listener))
            }
            Side::There(object) => {
                object.clone().typed(Hold::Static(S::interface())).subscribe(Some(S::signal()), listener)
            }
        }
    }

    /// Emits a signal of this object, which must live here.
    pub fn emit<S: TypedSignal>(&self, signal: &S) -> Result<(), Failure>
    where
        I: Emits<S>,
    {
        let (emitter, key) = self.emitter()?;
        emit(&**emitter, key, signal)
    }

    /// Tells whoever listens that an attribute of this object, which must live here, has changed.
    pub fn changed(&self, attribute: &str) -> Result<(), Failure> {
        let (emitter, key) = self.emitter()?;
        changed::<I>(&**emitter, key, attribute)
    }

    fn emitter(&self) -> Result<(&Arc<dyn Emitter>, &Bytes), Failure> {
        match &self.of.side {
            Side::Here(emitter, key) => Ok((emitter, key)),
            Side::There(_) => Err(Failure::new(
                Kind::BadArgument,
                Initiator::User,
                "only the process that serves an object emits its signals",
            )),
        }
    }
}

/// A generated signal.
pub trait TypedSignal: Send + Sized + 'static {
    /// The interface that declares it.
    fn interface() -> &'static Interface;
    /// Its description.
    fn signal() -> &'static Signal;
    /// Its fields, from a message.
    fn read(body: &Body) -> Result<Self, Failure>;
    /// Its fields, to a message.
    fn write(&self, sink: &mut dyn Sink) -> Visit<()>;
}

/// Implemented by generated traits for each signal that their objects emit, inherited ones too.
pub trait Emits<S: TypedSignal> {}

/// What tells the world of signals; implemented by the runtime.
pub trait Emitter: Send + Sync {
    /// Sends a signal of an object that is exported here to everybody who listens, on every wire that carries signals.
    ///
    /// # Errors
    /// The arguments do not encode. That nobody listens is no error.
    fn emit(
        &self,
        key: &[u8],
        interface: &Interface,
        signal: &Signal,
        arguments: &dyn Encode,
    ) -> Result<(), Failure>;

    /// Tells whoever listens that an attribute has changed, in the way of each wire.
    fn changed(&self, key: &[u8], interface: &Interface, attribute: &Attribute) -> Result<(), Failure>;

    /// Listens within this process.
    fn listen(
        &self,
        key: &[u8],
        interface: Option<&Interface>,
        signal: Option<&Signal>,
        listener: Listener,
    ) -> Subscription;

    /// What waits for the listener of an object that is furthest behind: for emitters that would rather tell the newest later.
    fn backlog(&self, _key: &[u8]) -> Backlog {
        Backlog::default()
    }

    /// Tells whoever looks after the node that a listener does not get what it asked for.
    fn undelivered(&self, _failure: &Failure) {}

    /// Whether the object that is served under a key has an interface.
    fn offers(&self, _key: &[u8], _interface: &str) -> bool {
        false
    }

    /// Turns references into objects, as long as the node runs.
    fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        None
    }
}

/// Emits the signals of an object without holding it or its node: for servants, which the node holds.
pub struct Signaller<I: ?Sized> {
    emitter: Weak<dyn Emitter>,
    key: Bytes,
    of: PhantomData<fn() -> Arc<I>>,
}

impl<I: Remote + ?Sized> Signaller<I> {
    /// For the runtime: emits signals of the object under this key, which may be exported later.
    pub fn new(emitter: Weak<dyn Emitter>, key: Bytes) -> Self {
        Self { emitter, key, of: PhantomData }
    }

    /// Emits a signal. Once the node has ended nobody listens.
    pub fn emit<S: TypedSignal>(&self, signal: &S) -> Result<(), Failure>
    where
        I: Emits<S>,
    {
        match self.emitter.upgrade() {
            Some(emitter) => emit(&*emitter, &self.key, signal),
            None => Ok(()),
        }
    }

    /// What waits for the listener that is furthest behind.
    pub fn backlog(&self) -> Backlog {
        self.emitter.upgrade().map(|emitter| emitter.backlog(&self.key)).unwrap_or_default()
    }

    /// Tells whoever looks after the node that a listener does not get what it asked for.
    pub fn undelivered(&self, failure: &Failure) {
        if let Some(emitter) = self.emitter.upgrade() {
            emitter.undelivered(failure);
        }
    }

    /// Tells whoever listens that an attribute has changed.
    pub fn changed(&self, attribute: &str) -> Result<(), Failure> {
        match self.emitter.upgrade() {
            Some(emitter) => changed::<I>(&*emitter, &self.key, attribute),
            None => Ok(()),
        }
    }
}

impl<I: ?Sized> Clone for Signaller<I> {
    fn clone(&self) -> Self {
        Self { emitter: Weak::clone(&self.emitter), key: self.key.clone(), of: PhantomData }
    }
}

impl<I: ?Sized> fmt::Debug for Signaller<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signaller({:?})", self.key)
    }
}

fn emit<S: TypedSignal>(emitter: &dyn Emitter, key: &[u8], signal: &S) -> Result<(), Failure> {
    emitter.emit(key, S::interface(), S::signal(), &|sink: &mut dyn Sink| signal.write(sink))
}

fn changed<I: Remote + ?Sized>(emitter: &dyn Emitter, key: &[u8], attribute: &str) -> Result<(), Failure> {
    let interface = I::interface();
    let Some(attribute) = interface.attributes.iter().find(|held| held.name == attribute) else {
        let message = format!("{} has no attribute `{attribute}`", interface.name);
        return Err(Failure::new(Kind::BadArgument, Initiator::User, message));
    };
    emitter.changed(key, interface, attribute)
}
