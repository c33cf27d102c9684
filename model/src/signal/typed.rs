//! Signals of typed objects: to listen to from anywhere, to emit where they live.

use super::emitter::Emitter;
use super::events::{Backlog, Listener, SignalEvent, Subscription};
use crate::body::Body;
use crate::contract::{Interface, Signal};
use crate::failure::Failure;
use crate::message::{Emission, SignalFilter};
use crate::object::{ObjectLocation, Ref, Remote};
use crate::shape::Hold;
use crate::visit::{Sink, Visit};
use bytes::Bytes;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

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
            ObjectLocation::Here(emitter, key) => {
                let filter = SignalFilter { interface: Some(S::interface()), signal: Some(S::signal()) };
                Ok(emitter.listen(key, filter, listener))
            }
            ObjectLocation::There(object) => {
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
            ObjectLocation::Here(emitter, key) => Ok((emitter, key)),
            ObjectLocation::There(_) => {
                let what = "only the process that serves an object emits its signals";
                Err(Failure::bad_argument(what))
            }
        }
    }
}

impl<I: Remote + ?Sized> Ref<I> {
    /// What the object emits, and what there is to hear of it.
    pub fn signals(&self) -> Signals<'_, I> {
        Signals { of: self }
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
        self.emitter.upgrade().map_or(Ok(()), |emitter| emit(&*emitter, &self.key, signal))
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
        self.emitter.upgrade().map_or(Ok(()), |emitter| changed::<I>(&*emitter, &self.key, attribute))
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
    let arguments = |sink: &mut dyn Sink| signal.write(sink);
    emitter.emit(&Emission::typed(key, S::interface(), S::signal(), &arguments))
}

fn changed<I: Remote + ?Sized>(emitter: &dyn Emitter, key: &[u8], attribute: &str) -> Result<(), Failure> {
    let interface = I::interface();
    let Some(attribute) = interface.attributes.iter().find(|held| held.name == attribute) else {
        let message = format!("{} has no attribute `{attribute}`", interface.name);
        return Err(Failure::bad_argument(message));
    };
    emitter.changed(key, interface, attribute)
}
