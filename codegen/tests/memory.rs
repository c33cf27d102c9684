//! Objects reached by memory: a call is encoded, dispatched to the skeleton on the same thread, and decoded; a signal is
//! encoded, and decoded by each who listens.

use everywire_giop::CDR;
use everywire_model::contract::Attribute;
use everywire_model::object::{Completion, Local, Ticket};
use everywire_model::signal::Listener;
use everywire_model::{
    Answer, Body, BoxFuture, Bytes, CallId, Codec, Emission, Encode, Endpoint, Failure, Initiator, Interface,
    Kind, Link, Object, Outcome, Peer, Profile, Ref, Reference, Remote, Request, Resolver, Servant, Target,
};
use everywire_model::{Emitter, SignalEvent, SignalFilter, Subscription};
use everywire_model::{Expects, Incoming, Method};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A world of servants, by key, and of whoever listens to them.
#[derive(Clone)]
pub(crate) struct World(Arc<State>);

struct State {
    codec: &'static dyn Codec,
    servants: Mutex<HashMap<String, Arc<dyn Servant>>>,
    listeners: Mutex<Vec<(u64, Interest, Listener)>>,
    /// Names of attributes that were told to have changed.
    changed: Mutex<Vec<String>>,
}

/// Key, interface and signal, as far as they matter.
type Interest = (Bytes, Option<String>, Option<String>);

impl Default for World {
    fn default() -> Self {
        Self::speaking(&CDR)
    }
}

impl World {
    /// A world whose values are encoded so.
    pub(crate) fn speaking(codec: &'static dyn Codec) -> Self {
        Self(Arc::new(State {
            codec,
            servants: Mutex::default(),
            listeners: Mutex::default(),
            changed: Mutex::default(),
        }))
    }

    /// Serves an object; what comes back is a stub, never the servant.
    pub(crate) fn serve<I: Remote + ?Sized>(&self, key: &str, servant: Arc<I>) -> Ref<I> {
        self.export(key, servant);
        Ref::resolve(self, reference(key, I::interface().id.as_ref())).unwrap()
    }

    /// Serves an object; what comes back is the servant, and may emit its signals.
    pub(crate) fn export<I: Remote + ?Sized>(&self, key: &str, servant: Arc<I>) -> Ref<I> {
        self.0.servants.lock().unwrap().insert(key.into(), I::skeleton(Arc::clone(&servant)));
        let key = Bytes::copy_from_slice(key.as_bytes());
        let reference = reference(std::str::from_utf8(&key).unwrap(), &I::interface().id);
        Ref::local(servant, reference, key, Arc::new(self.clone()))
    }

    /// An object of any interface under this key.
    pub(crate) fn object(&self, key: &str) -> Object {
        self.resolve(&reference(key, "")).unwrap()
    }

    /// How many listen.
    pub(crate) fn listeners(&self) -> usize {
        self.0.listeners.lock().unwrap().len()
    }

    /// Names of the attributes that were told to have changed.
    pub(crate) fn changed(&self) -> Vec<String> {
        self.0.changed.lock().unwrap().clone()
    }
}

pub(crate) fn reference(key: &str, id: &str) -> Reference {
    let profile = Profile {
        wire: "giop",
        version: (1, 2),
        endpoints: vec![Endpoint::Tcp { host: "memory".into(), port: 1 }],
        key: Bytes::copy_from_slice(key.as_bytes()),
        components: Vec::new(),
        ..Profile::default()
    };
    Reference { type_id: id.into(), profiles: vec![profile], foreign: Vec::new() }
}

impl Resolver for World {
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        Ok(Object::new(Arc::new(Way { world: self.clone(), reference: reference.clone() })))
    }

    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}

impl Emitter for World {
    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        let (interface, signal) = emission.topic.typed()?;
        let key = emission.key;
        let own = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let body = self.0.codec.write(&mut |sink| emission.arguments.encode(sink))?;
        let (interface_name, name) = (own(&interface.name), own(&signal.name));
        let heard = Incoming::signal(Bytes::new(), Bytes::copy_from_slice(key), interface_name, name, body);
        let fits = |(wanted_key, wanted_interface, wanted_signal): &Interest| {
            *wanted_key == key
                && wanted_interface.as_ref().is_none_or(|name| *name == interface.name)
                && wanted_signal.as_ref().is_none_or(|name| *name == signal.name)
        };
        let listeners = self.0.listeners.lock().unwrap();
        let told: Vec<_> =
            listeners.iter().filter(|(_, wanted, _)| fits(wanted)).map(|(.., told)| told.clone()).collect();
        drop(listeners);
        told.iter().for_each(|listener| listener(SignalEvent::Signal(heard.clone())));
        Ok(())
    }

    fn changed(&self, _: &[u8], _: &Interface, attribute: &Attribute) -> Result<(), Failure> {
        self.0.changed.lock().unwrap().push(attribute.name.to_string());
        Ok(())
    }

    fn listen(&self, key: &[u8], filter: SignalFilter<'_>, listener: Listener) -> Subscription {
        let interest = (
            Bytes::copy_from_slice(key),
            filter.interface.map(|interface| interface.name.to_string()),
            filter.signal.map(|signal| signal.name.to_string()),
        );
        let mut listeners = self.0.listeners.lock().unwrap();
        let number = listeners.last().map_or(0, |(last, ..)| last + 1);
        listeners.push((number, interest, listener));
        let state = Arc::clone(&self.0);
        Subscription::new(move || state.listeners.lock().unwrap().retain(|(held, ..)| *held != number))
    }
}

struct Way {
    world: World,
    reference: Reference,
}

impl Way {
    fn call(&self, method: Method<'_>, arguments: &dyn Encode, expects: Expects) -> Outcome<Body> {
        let key = self.reference.profiles[0].key.clone();
        let servants = self.world.0.servants.lock().unwrap();
        let servant = servants.get(std::str::from_utf8(&key).unwrap()).cloned();
        drop(servants);
        let Some(servant) = servant else {
            return Outcome::Failed(Failure::new(Kind::NoObject, Initiator::Peer, "no such object"));
        };
        let codec = self.world.0.codec;
        let body = match codec.write(&mut |sink| arguments.encode(sink)) {
            Ok(body) => body,
            Err(failure) => return Outcome::Failed(failure),
        };
        let name = method.name();
        let index = servant.interface().index_of(name).unwrap_or(usize::MAX);
        let incoming = Incoming {
            id: CallId(1),
            sender: Bytes::new(),
            key,
            interface: method.interface().map_or_else(Bytes::new, |known| known.id.to_string().into()),
            operation: Bytes::copy_from_slice(name),
            body,
            expects,
        };
        let answers = Arc::new(Answers { world: self.world.clone(), outcome: Mutex::new(None) });
        servant.dispatch(Request::new(index, incoming, answers.clone(), servant.clone()));
        let outcome = answers.outcome.lock().unwrap().take();
        match (outcome, expects) {
            (Some(outcome), Expects::Reply) => outcome,
            (None, Expects::Nothing) => Outcome::Done(codec.write(&mut |_| Ok(())).unwrap()),
            (outcome, expects) => panic!("{expects:?} was expected and {outcome:?} came"),
        }
    }
}

impl Target for Way {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        self.call(method, arguments, Expects::Reply)
    }

    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure> {
        match self.call(method, arguments, Expects::Nothing) {
            Outcome::Failed(failure) => Err(failure),
            _ => Ok(()),
        }
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        done(self.call(method, arguments, Expects::Reply));
        Ticket(1)
    }

    fn withdraw(&self, _: Ticket) {}

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn subscribe(&self, filter: SignalFilter<'_>, listener: Listener) -> Result<Subscription, Failure> {
        Ok(self.world.listen(&self.reference.profiles[0].key, filter, listener))
    }

    fn with_deadline(&self, _: Option<Duration>) -> Arc<dyn Target> {
        Arc::new(Self { world: self.world.clone(), reference: self.reference.clone() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(self.world.clone())
    }
}

struct Answers {
    world: World,
    outcome: Mutex<Option<Outcome<Body>>>,
}

impl Link for Answers {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        let encode = |values: &dyn Encode| self.world.0.codec.write(&mut |sink| values.encode(sink));
        let outcome = match answer {
            Answer::Done(values) => encode(values).map(Outcome::Done),
            Answer::Raised { shape, fields } => {
                encode(fields).map(|body| Outcome::raised(shape.id.to_string(), body))
            }
            Answer::Failed(failure) | Answer::Passed { failure, .. } => Ok(Outcome::Failed(failure.clone())),
            Answer::Moved(reference) => Ok(Outcome::Moved(reference.clone())),
        };
        *self.outcome.lock().unwrap() = Some(outcome.unwrap_or_else(Outcome::Failed));
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        block_on(task);
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(self.world.clone())
    }

    fn peer(&self) -> Option<Peer> {
        None
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: "memory".into() }
    }
}

/// Runs a future that never waits for another thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
