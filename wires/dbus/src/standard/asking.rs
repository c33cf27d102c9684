//! Asking the accessors of served objects on behalf of somebody: one, or many at once.
//!
//! An accessor may answer on another thread, later, or never: nothing here waits. An answer lives only while
//! it is given, so it is written down as [`NATIVE`] values, and a closure goes on with it.
//!
//! States of a question: *asked*; *answered*, when the closure has run. Invariants: the closure runs once at
//! the most, outside of every lock; if the accessor never answers, it is dropped with the request that it
//! holds, whose caller then learns that nobody answered.

use super::errors;
use super::tree::{Exported, Tree};
use crate::values::VALUES;
use everywire_model::native::NATIVE;
use everywire_model::pipe::pipe;
use everywire_model::shape::{Hold, Struct};
use everywire_model::{
    Answer, Attribute, Body, BoxFuture, Bytes, CallId, Codec, Encode, Endpoint, Expects, Failure, Headers,
    Incoming, Initiator, Kind, Link, Marshal, MarshalList, Peer, Reference, Request, Resolver, Servant,
    Shape, Sink, Visit,
};
use std::sync::{Arc, Mutex};

/// On whose behalf accessors are asked: they see whoever asked for attributes by name, with what came beside. Nobody: this process.
#[derive(Clone, Default)]
pub(super) struct CallerContext {
    /// In the wire's terms; empty where the connection has one peer only.
    sender: Bytes,
    /// Who is at the other end of the connection.
    peer: Option<Peer>,
    /// What came beside the call.
    headers: Headers,
}

impl CallerContext {
    /// Of whoever made a call.
    pub(super) fn of(request: &Request) -> Self {
        let body = request.body();
        let mut headers = Headers::default();
        // As changes, which are in no byte order.
        if let Some(Ok(came)) = body.headers().map(|headers| headers.list(body)) {
            came.into_iter().for_each(|header| headers.add(header));
        }
        Self { sender: Bytes::copy_from_slice(request.sender()), peer: request.peer(), headers }
    }
}

/// The way of an answer back, for a call on behalf of somebody. All but the peer is that of the link around.
struct CallerLink {
    link: Arc<dyn Link>,
    peer: Option<Peer>,
}

impl Link for CallerLink {
    fn answer(&self, id: CallId, answer: Answer<'_>) {
        self.link.answer(id, answer);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.link.spawn(task);
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        self.link.resolver()
    }

    fn peer(&self) -> Option<Peer> {
        self.peer.clone()
    }

    fn endpoint(&self) -> Endpoint {
        self.link.endpoint()
    }
}

/// A call of an accessor, ready to be made.
pub(super) struct AccessorCall {
    /// The object.
    key: Bytes,
    behalf: CallerContext,
    servant: Arc<dyn Servant>,
    /// Number of the accessor in the servant's interface.
    index: usize,
    /// Its name on wires that send names.
    name: Bytes,
    arguments: Body,
}

/// What an accessor said.
#[derive(Debug, Clone)]
pub(super) enum AccessorReply {
    /// Its results.
    Done(Body),
    /// An exception.
    Raised(Hold<Struct>, Box<Body>),
    /// A failure.
    Failed(Failure),
    /// Somebody else knows.
    Moved(Reference),
}

impl AccessorCall {
    /// The call that reads an attribute; the servant's own interface numbers its accessor.
    ///
    /// # Errors
    /// The attribute cannot be read.
    pub(super) fn reading(
        object: &Exported,
        servant: &Arc<dyn Servant>,
        attribute: &Attribute,
        behalf: &CallerContext,
    ) -> Result<Self, Failure> {
        let getter = servant.interface().operations.get(attribute.getter);
        let getter = getter.filter(|getter| !getter.results.fields().is_empty());
        let getter = getter.ok_or_else(|| errors::write_only(&attribute.name))?;
        let arguments = VALUES.write(&mut |sink: &mut dyn Sink| ().marshal_list(&getter.arguments, sink))?;
        Ok(Self::new(object, servant, attribute.getter, behalf, arguments))
    }

    /// A call of the operation with this number. Numbers count in the servant's own interface.
    pub(super) fn new(
        object: &Exported,
        servant: &Arc<dyn Servant>,
        index: usize,
        behalf: &CallerContext,
        arguments: Body,
    ) -> Self {
        let name = servant.interface().operations.get(index).map_or("", |operation| &operation.name);
        Self {
            key: object.key.clone(),
            behalf: behalf.clone(),
            servant: Arc::clone(servant),
            index,
            name: Bytes::copy_from_slice(name.as_bytes()),
            arguments: match behalf.headers.is_empty() {
                true => arguments,
                false => arguments.with_headers(behalf.headers.clone()),
            },
        }
    }
}

/// Calls an accessor; `done` gets what it says. It may run before this returns, on this thread. It is dropped
/// if nothing is ever said.
pub(super) fn ask(tree: &Tree, ask: AccessorCall, done: impl FnOnce(AccessorReply) + Send + 'static) {
    let done = Mutex::new(Some(done));
    let link = tree.0.aside(Box::new(move |answer| {
        let told = AccessorReply::of(answer);
        // Not under the lock: `done` may well ask something else.
        let done = done.lock().ok().and_then(|mut held| held.take());
        if let Some(done) = done {
            done(told);
        }
    }));
    let CallerContext { sender, peer, .. } = ask.behalf;
    let link = Arc::new(CallerLink { link, peer });
    let incoming = Incoming {
        id: CallId(0),
        sender,
        key: ask.key,
        interface: Bytes::new(),
        operation: ask.name,
        body: ask.arguments,
        expects: Expects::Reply,
    };
    Arc::clone(&ask.servant).dispatch(Request::new(ask.index, incoming, link, ask.servant));
}

/// Calls many accessors at once; `done` gets what they say, in the order of the calls, when the last one has
/// spoken. If one never does, `done` never runs.
pub(super) fn ask_all(
    tree: &Tree,
    asks: Vec<AccessorCall>,
    done: impl FnOnce(Vec<AccessorReply>) + Send + 'static,
) {
    /// Answers so far.
    struct ReplyCollector<F> {
        told: Vec<Option<AccessorReply>>,
        missing: usize,
        done: Option<F>,
    }
    if asks.is_empty() {
        return done(Vec::new());
    }
    let told = asks.iter().map(|_| None).collect();
    let gathering = Arc::new(Mutex::new(ReplyCollector { told, missing: asks.len(), done: Some(done) }));
    for (index, one) in asks.into_iter().enumerate() {
        let gathering = Arc::clone(&gathering);
        ask(tree, one, move |told| {
            let Ok(mut held) = gathering.lock() else { return };
            if let Some(slot) = held.told.get_mut(index) {
                *slot = Some(told);
            }
            held.missing -= 1;
            if held.missing > 0 {
                return;
            }
            let all = std::mem::take(&mut held.told).into_iter().flatten().collect();
            let done = held.done.take();
            drop(held);
            if let Some(done) = done {
                done(all);
            }
        });
    }
}

impl AccessorReply {
    /// An answer that does not encode is a failure.
    fn of(answer: Answer<'_>) -> Self {
        let told = match answer {
            Answer::Done(results) => written(results).map(Self::Done),
            Answer::Raised { shape, fields } => {
                written(fields).map(|fields| Self::Raised(Hold::new(shape.clone()), Box::new(fields)))
            }
            Answer::Failed(failure) | Answer::Passed { failure, .. } => Ok(Self::Failed(failure.clone())),
            Answer::Moved(reference) => Ok(Self::Moved(reference.clone())),
        };
        told.unwrap_or_else(Self::Failed)
    }

    /// The value that a reading accessor told, with its shape; else what it told instead, to be passed on.
    pub(super) fn value(self, shape: &Shape) -> Result<PropertyValue, Self> {
        match self {
            Self::Done(results) => match results.read(|source| source.open(&Shape::Void)) {
                Ok(1) => Ok(PropertyValue { shape: shape.clone(), results }),
                _ => {
                    let what = "an accessor did not answer with one value";
                    Err(Self::Failed(Failure::new(Kind::Internal, Initiator::Peer, what)))
                }
            },
            other => Err(other),
        }
    }

    /// Passes it on as the answer to a request; of results only that there are some.
    pub(super) fn pass(&self, request: &mut Request) {
        match self {
            Self::Done(_) => drop(request.reply::<(), Failure>(Ok(()))),
            Self::Raised(shape, fields) => {
                let list = Shape::Struct(shape.clone());
                let fields = |sink: &mut dyn Sink| fields.pipe(&list, sink);
                request.answer(Answer::Raised { shape, fields: &fields });
            }
            Self::Failed(failure) => request.answer(Answer::Failed(failure)),
            Self::Moved(reference) => request.answer(Answer::Moved(reference)),
        }
    }
}

/// What an answer holds, to be written again: handles, references and rows of numbers stay what they are.
fn written(values: &dyn Encode) -> Visit<Body> {
    NATIVE.write(&mut |sink| values.encode(sink))
}

/// A property's value: the one result of its accessor, that goes into a variant.
#[derive(Debug, Clone)]
pub(super) struct PropertyValue {
    shape: Shape,
    results: Body,
}

impl PropertyValue {
    /// The value of this shape that an accessor would answer with.
    ///
    /// # Errors
    /// It does not encode, or is not one value.
    pub(super) fn of(answer: &dyn Encode, shape: &Shape) -> Result<Self, Failure> {
        match AccessorReply::of(Answer::Done(answer)).value(shape) {
            Ok(value) => Ok(value),
            Err(AccessorReply::Failed(failure)) => Err(failure),
            Err(_) => Err(Failure::new(Kind::Internal, Initiator::Here, "a value is no answer")),
        }
    }
}

impl Marshal for PropertyValue {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, 1)?;
        sink.content(&self.shape)?;
        self.results.read(|source| {
            source.open(&Shape::Void)?;
            pipe(&self.shape, source, sink)
        })?;
        sink.close(shape)
    }
}
