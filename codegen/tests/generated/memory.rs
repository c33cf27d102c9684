//! Objects reached by memory: a call is encoded, dispatched to the skeleton on the same thread, and decoded.

use everywire_giop::CDR;
use everywire_model::object::{Completion, Ticket};
use everywire_model::session::{Expects, Incoming};
use everywire_model::{
    Answer, Body, BoxFuture, Bytes, CallId, Codec, Encode, Endpoint, Failure, Initiator, Kind, Link, Object,
    Operation, Outcome, Peer, Profile, Ref, Reference, Remote, Request, Resolver, Servant, Target,
};
use std::any::Any;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A world of servants, by key.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<HashMap<String, Arc<dyn Servant>>>>);

impl World {
    /// Serves an object; what comes back is a stub, never the servant.
    pub(crate) fn serve<I: Remote + ?Sized>(&self, key: &str, servant: Arc<I>) -> Ref<I> {
        self.0.lock().unwrap().insert(key.into(), I::skeleton(servant));
        Ref::resolve(self, reference(key, I::interface().id.as_ref())).unwrap()
    }

    /// An object of any interface under this key.
    pub(crate) fn object(&self, key: &str) -> Object {
        self.resolve(&reference(key, "")).unwrap()
    }
}

pub(crate) fn reference(key: &str, id: &str) -> Reference {
    let profile = Profile {
        wire: "giop",
        version: (1, 2),
        endpoints: vec![Endpoint::Tcp { host: "memory".into(), port: 1 }],
        key: Bytes::copy_from_slice(key.as_bytes()),
        components: Vec::new(),
    };
    Reference { type_id: id.into(), profiles: vec![profile], foreign: Vec::new() }
}

impl Resolver for World {
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        Ok(Object::new(Arc::new(Way { world: self.clone(), reference: reference.clone() })))
    }

    fn local(&self, _: &Reference) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
}

struct Way {
    world: World,
    reference: Reference,
}

impl Way {
    fn call(&self, operation: &Operation, arguments: &dyn Encode, expects: Expects) -> Outcome<Body> {
        let key = self.reference.profiles[0].key.clone();
        let servant = self.world.0.lock().unwrap().get(std::str::from_utf8(&key).unwrap()).cloned();
        let Some(servant) = servant else {
            return Outcome::Failed(Failure::new(Kind::NoObject, Initiator::Peer, "no such object"));
        };
        let body = match CDR.write(&mut |sink| arguments.encode(sink)) {
            Ok(body) => body,
            Err(failure) => return Outcome::Failed(failure),
        };
        let index = servant.interface().index_of(operation.name.as_bytes()).unwrap_or(usize::MAX);
        let operation = Bytes::copy_from_slice(operation.name.as_bytes());
        let incoming = Incoming { id: CallId(1), key, operation, body, expects };
        let answers = Arc::new(Answers { world: self.world.clone(), outcome: Mutex::new(None) });
        servant.dispatch(Request::new(index, incoming, answers.clone(), servant.clone()));
        let outcome = answers.outcome.lock().unwrap().take();
        match (outcome, expects) {
            (Some(outcome), Expects::Reply) => outcome,
            (None, Expects::Nothing) => Outcome::Done(CDR.write(&mut |_| Ok(())).unwrap()),
            (outcome, expects) => panic!("{expects:?} was expected and {outcome:?} came"),
        }
    }
}

impl Target for Way {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, operation: &Operation, arguments: &dyn Encode) -> Outcome<Body> {
        self.call(operation, arguments, Expects::Reply)
    }

    fn notify(&self, operation: &Operation, arguments: &dyn Encode) -> Result<(), Failure> {
        match self.call(operation, arguments, Expects::Nothing) {
            Outcome::Failed(failure) => Err(failure),
            _ => Ok(()),
        }
    }

    fn submit(&self, operation: &Operation, arguments: &dyn Encode, done: Completion) -> Ticket {
        done(self.call(operation, arguments, Expects::Reply));
        Ticket(1)
    }

    fn withdraw(&self, _: Ticket) {}

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
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
        let encode = |values: &dyn Encode| CDR.write(&mut |sink| values.encode(sink));
        let outcome = match answer {
            Answer::Done(values) => encode(values).map(Outcome::Done),
            Answer::Raised { shape, fields } => {
                encode(fields).map(|body| Outcome::Raised { id: shape.id.to_string(), body })
            }
            Answer::Failed(failure) => Ok(Outcome::Failed(failure.clone())),
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
