//! Objects in memory, and a way to ask the standard servants about them.

use crate::names::of_interface;
use crate::standard::wire_state;
use crate::values::VALUES;
use everywire_model::object::Local;
use everywire_model::{
    Answer, Body, BoxFuture, Bytes, CallId, Codec, Emission, Encode, Endpoint, Expects, Failure, Incoming,
    Initiator, Interface, Kind, Link, MarshalList, Object, Objects, Outcome, Peer, Reference, Request,
    Resolver, Servant, Sink, UnmarshalList, WireState,
};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

/// A signal that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) key: Bytes,
    pub(super) interface: String,
    pub(super) signal: String,
    pub(super) body: Body,
}

/// The objects.
#[derive(Default)]
pub(super) struct Store {
    objects: Mutex<BTreeMap<Bytes, Vec<Arc<dyn Servant>>>>,
    sent: Mutex<Vec<Sent>>,
    tasks: Arc<Tasks>,
}

/// What waits for the runtime's threads.
type Tasks = Mutex<Vec<BoxFuture<'static, ()>>>;

impl Objects for Store {
    fn keys(&self) -> Vec<Bytes> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        self.objects.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        let (interface, signal) = emission.topic.typed()?;
        let body = VALUES.write(&mut |sink| emission.arguments.encode(sink))?;
        self.sent.lock().unwrap().push(Sent {
            key: Bytes::copy_from_slice(emission.key),
            interface: of_interface(interface).into_owned(),
            signal: signal.name.to_string(),
            body,
        });
        Ok(())
    }

    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        Arc::new(Aside(done, Arc::clone(&self.tasks)))
    }

    fn export(&self, _: Vec<Arc<dyn Servant>>) -> Bytes {
        unreachable!("nothing here exports")
    }

    fn withdraw(&self, _: &[u8]) {}

    fn classes(&self) -> Vec<(Bytes, everywire_model::Hold<Interface>)> {
        Vec::new()
    }

    fn create(&self, _: &[u8], _: &str) -> Option<Result<Bytes, Failure>> {
        None
    }

    fn publish(&self, _: &str, _: &[u8]) -> everywire_model::Reference {
        unreachable!("nothing here is published")
    }

    fn places(&self) -> Vec<everywire_model::BindAddress> {
        Vec::new()
    }

    fn listen(&self, _: &str) -> Result<everywire_model::BindAddress, Failure> {
        unreachable!("nobody here listens")
    }

    fn resolver(&self) -> Arc<dyn everywire_model::Resolver> {
        unreachable!("nothing here resolves")
    }

    fn attend(&self) {}
}

struct Aside(Box<dyn Fn(Answer<'_>) + Send + Sync>, Arc<Tasks>);

impl Link for Aside {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        (self.0)(answer);
    }

    /// As the runtime does: the first part on the calling thread.
    fn spawn(&self, mut task: BoxFuture<'static, ()>) {
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.1.lock().unwrap().push(task);
        }
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(Nowhere)
    }

    fn peer(&self) -> Option<Peer> {
        None
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: "test".into() }
    }
}

struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Reference) -> Result<Object, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "nowhere"))
    }

    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}

/// The objects and what serves the standard interfaces for them.
pub(super) struct House {
    pub(super) store: Arc<Store>,
    pub(super) wire_state: Arc<dyn WireState>,
}

impl House {
    pub(super) fn new() -> Self {
        let store = Arc::new(Store::default());
        Self { wire_state: wire_state(Arc::clone(&store) as Arc<dyn Objects>), store }
    }

    pub(super) fn export(&self, key: &'static str, servant: Arc<dyn Servant>) {
        let servants = &mut *self.store.objects.lock().unwrap();
        servants.entry(Bytes::from_static(key.as_bytes())).or_default().push(servant);
    }

    pub(super) fn export_and_tell(&self, key: &'static str, servant: Arc<dyn Servant>) {
        self.export(key, Arc::clone(&servant));
        self.wire_state.exported(key.as_bytes(), &servant);
    }

    pub(super) fn remove(&self, key: &str) {
        self.store.objects.lock().unwrap().remove(key.as_bytes());
    }

    /// Runs what waits for the runtime's threads.
    pub(super) fn settle(&self) {
        loop {
            let tasks = std::mem::take(&mut *self.store.tasks.lock().unwrap());
            if tasks.is_empty() {
                return;
            }
            for mut task in tasks {
                assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
            }
        }
    }

    /// The signals sent since the last time.
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.settle();
        std::mem::take(&mut *self.store.sent.lock().unwrap())
    }

    /// Begins a call.
    pub(super) fn begin<A: MarshalList>(
        &self,
        key: &str,
        interface: &str,
        operation: &str,
        arguments: A,
    ) -> Receiver<Outcome<Body>> {
        let servants = self.wire_state.servants();
        let servant = servants.iter().find(|servant| servant.interface().id == interface).unwrap();
        call(servant, key, operation, &arguments)
    }

    /// Calls, and decodes what was answered at once.
    pub(super) fn call<A: MarshalList, R: for<'a> UnmarshalList<'a>>(
        &self,
        key: &str,
        interface: &str,
        operation: &str,
        arguments: A,
    ) -> Result<R, Failure> {
        let outcome = self.begin(key, interface, operation, arguments).try_recv().unwrap();
        let servants = self.wire_state.servants();
        let servant = servants.iter().find(|servant| servant.interface().id == interface).unwrap();
        let index = servant.interface().index_of(operation.as_bytes()).unwrap();
        finish(&servant.interface().operations[index].results, outcome)
    }
}

/// Decodes what was answered.
pub(super) fn finish<R: for<'a> UnmarshalList<'a>>(
    results: &everywire_model::Shape,
    outcome: Outcome<Body>,
) -> Result<R, Failure> {
    match outcome {
        Outcome::Done(body) => body.decode(results),
        Outcome::Failed(failure) => Err(failure),
        other => panic!("{other:?}"),
    }
}

/// Calls a servant by bytes, as a session would.
pub(super) fn call<A: MarshalList>(
    servant: &Arc<dyn Servant>,
    key: &str,
    operation: &str,
    arguments: &A,
) -> Receiver<Outcome<Body>> {
    let index = servant.interface().index_of(operation.as_bytes()).unwrap();
    let shape = &servant.interface().operations[index].arguments;
    let body = VALUES.write(&mut |sink: &mut dyn Sink| arguments.marshal_list(shape, sink)).unwrap();
    call_with(servant, key, operation, body)
}

/// The same with arguments that are encoded already.
pub(super) fn call_with(
    servant: &Arc<dyn Servant>,
    key: &str,
    operation: &str,
    body: Body,
) -> Receiver<Outcome<Body>> {
    let (sender, receiver) = channel();
    let incoming = Incoming {
        id: CallId(1),
        sender: Bytes::from_static(b":1.7"),
        key: Bytes::copy_from_slice(key.as_bytes()),
        interface: Bytes::new(),
        operation: Bytes::copy_from_slice(operation.as_bytes()),
        body,
        expects: Expects::Reply,
    };
    let index = servant.interface().index_of(operation.as_bytes()).unwrap();
    let link = Aside(Box::new(move |answer| give(&sender, answer)), Arc::default());
    Arc::clone(servant).dispatch(Request::new(index, incoming, Arc::new(link), Arc::clone(servant)));
    receiver
}

fn give(sender: &Sender<Outcome<Body>>, answer: Answer<'_>) {
    let encode = |values: &dyn Encode| VALUES.write(&mut |sink| values.encode(sink));
    let outcome = match answer {
        Answer::Done(results) => encode(results).map_or_else(Outcome::Failed, Outcome::Done),
        Answer::Raised { shape, fields } => {
            encode(fields).map_or_else(Outcome::Failed, |body| Outcome::raised(shape.id.to_string(), body))
        }
        Answer::Failed(failure) | Answer::Passed { failure, .. } => Outcome::Failed(failure.clone()),
        Answer::Moved(reference) => Outcome::Moved(reference.clone()),
    };
    sender.send(outcome).unwrap();
}
