//! Servants, and the calls that they serve.
//!
//! States of a `Request`: *open*, until it is answered; *answered*, by `reply`, `answer`, a skeleton that
//! failed, or, if it is dropped without any of these, by the failure that says so; a call that wants no
//! answer is answered from the beginning. What `on_end` was given runs once: before the answer leaves, or, of
//! a call that wants none, when the request is dropped.
//!
//! Invariants.
//! * No caller waits in vain: a request is answered exactly once, whatever becomes of the servant. A second
//!   answer is dropped without a word.
//! * A request may be moved to another thread and answered there, later: it holds its connection, its servant
//!   and the octets of its arguments.
//! * Copies that `again` makes answer through a function, which decides what reaches the caller; it is still
//!   the first request that has to answer.
//! * Arguments are decoded only when somebody asks for them. What does not decode is a failure with the place
//!   in the arguments.
//!
//! Threads. `Servant::dispatch` runs on a thread of the runtime, and for one servant on several at once; what
//! waits for long is to say so, or to be asynchronous. `opened`, `closed`, `heard` and `cancelled` are for
//! servants that answer for a prefix of keys, of which the first and the third must not wait for long: what
//! comes behind them on the connection waits too.

use super::raising::Raises;
use super::target::{BoxFuture, Object, Resolver};
use crate::body::Body;
use crate::contract::{Constant, Interface, Operation};
use crate::endpoint::Endpoint;
use crate::failure::{Completed, Failure, Initiator, Kind};
use crate::link::{Link, Peer};
use crate::marshal::{MarshalList, UnmarshalList};
use crate::message::{Answer, CallId, Emission, Expects, Incoming, Method};
use crate::reference::Reference;
use crate::shape::Hold;
use crate::visit::Sink;
use bytes::Bytes;
use std::future::Future;
use std::sync::Arc;

/// The failure of a request whose number no operation has; for generated code.
#[cold]
pub fn no_operation(interface: &Interface) -> Failure {
    Failure::new(Kind::NoOperation, Initiator::Peer, format!("{} has no such operation", interface.name))
}

/// An object that is served: generated skeletons implement it around a typed servant, and so do bridges.
pub trait Servant: Send + Sync {
    /// What it can be asked.
    fn interface(&self) -> &Interface;
    /// Constants of its contract. A wire that has a place for constants tells those whose scope contains the interface or a base, or is one.
    fn constants(&self) -> Vec<Constant> {
        Vec::new()
    }
    /// The interfaces of its listeners: objects of others that its operations take to call them back ([`crate::Contract::listeners`]). A wire
    /// that tells contracts tells these, too.
    fn listeners(&self) -> Vec<Hold<Interface>> {
        Vec::new()
    }
    /// Serves one call. Runs on a thread of the runtime; a servant that waits for long tells so by
    /// `everywire::blocking`, or is asynchronous.
    fn dispatch(&self, request: Request);

    /// Whether calls that come by one connection are handed over one after the other, in the order in which they came. So it is with
    /// whatever passes calls on. Others are served at once while one takes long.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Where the object is, of one that only tells its callers so: descriptions have that address.
    fn elsewhere(&self) -> Option<Reference> {
        None
    }

    /// Of one that answers for a prefix of keys: whether there is such an object, and of that type where one is asked for.
    ///
    /// # Errors
    /// There is not ([`Kind::NoObject`]), or it is of another type ([`Kind::BadReference`]).
    fn locate(&self, _key: &[u8], _type_id: Option<&str>) -> Result<(), Failure> {
        Ok(())
    }

    /// Of one that stands for an object elsewhere: whether that object has another interface, one that fits and that nobody here serves yet.
    /// If so, it is served under the same key when this returns. Asks the object, and may wait for it. `asked` is the caller's question.
    fn find_interface(&self, _asked: &Request, _key: &[u8], _fits: &dyn Fn(&Interface) -> bool) -> bool {
        false
    }

    /// Of one that answers for a prefix of keys: a connection is there by which calls may come, or whose other end may only listen.
    /// Calls of it come when this is over: what waits for long keeps them waiting.
    fn opened(&self, _link: &Arc<dyn Link>) {}

    /// Of one that answers for a prefix of keys, or for what peers call back on connections apart: a connection by which calls may
    /// have come is over. Told behind the calls that came by it where they keep their order ([`Self::keeps_order`]).
    fn closed(&self, _link: &dyn Link) {}

    /// Of one that answers for a prefix of keys: the other end of a connection by which calls may come tells of a signal of its own, which
    /// nobody here listens to. Must not wait for long: what comes behind it on the connection waits.
    fn heard(&self, _link: &dyn Link, _heard: &Incoming) {}

    /// Of one that answers for a prefix of keys: the caller has withdrawn this call of the connection; an answer is dropped.
    fn cancelled(&self, _link: &dyn Link, _call: CallId) {}
}

/// A call to be served. Dropped without a reply, it answers with a failure, so that no caller waits in vain.
pub struct Request {
    index: usize,
    incoming: Box<Incoming>,
    link: Arc<dyn Link>,
    servant: Arc<dyn Servant>,
    answered: bool,
    /// Whoever wants to know when it is over.
    ended: Option<Box<dyn FnOnce() + Send>>,
}

impl Request {
    /// The number of an operation that the servant's interface does not have.
    pub const UNKNOWN: usize = usize::MAX;

    /// For the runtime: a call of the operation number `index` of `servant`'s interface.
    pub fn new(
        index: usize,
        incoming: impl Into<Box<Incoming>>,
        link: Arc<dyn Link>,
        servant: Arc<dyn Servant>,
    ) -> Self {
        let incoming = incoming.into();
        let answered = incoming.expects == Expects::Nothing;
        Self { index, incoming, link, servant, answered, ended: None }
    }

    /// Number of the operation in the servant's interface.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Names the call on its connection.
    #[inline]
    pub fn id(&self) -> CallId {
        self.incoming.id
    }

    /// The encoded arguments.
    #[inline]
    pub fn body(&self) -> &Body {
        &self.incoming.body
    }

    /// The object's key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.incoming.key
    }

    /// The operation in the words of the wire that it came by: to be passed on where nobody here knows it.
    #[inline]
    pub fn method(&self) -> Method<'_> {
        Method::Named { interface: &self.incoming.interface, operation: &self.incoming.operation }
    }

    /// What [`Request::method`] names and the body, kept for whoever passes them on and answers later: no bytes are copied.
    pub fn passing(&self) -> (Bytes, Bytes, Body) {
        let incoming = &self.incoming;
        (incoming.interface.clone(), incoming.operation.clone(), incoming.body.clone())
    }

    /// What [`Request::method`] names, kept: no bytes are copied.
    pub fn names(&self) -> (Bytes, Bytes) {
        (self.incoming.interface.clone(), self.incoming.operation.clone())
    }

    /// Where it goes on, of a hop to `to`, where that is another object than the one with its key there.
    pub fn onward(&self, to: &Reference) -> Option<Reference> {
        self.incoming.body.wire_state()?.leads_on(&self.incoming.key, to)
    }

    /// Whether the caller waits for an answer.
    #[inline]
    pub fn expects(&self) -> Expects {
        self.incoming.expects
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
    #[inline]
    pub fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    #[inline]
    fn operation(&self) -> Option<&Operation> {
        self.servant.interface().operations.get(self.index)
    }

    /// The interface and the operation, such as `Shop.count`: by their names in the contract, or in the words of the wire where the operation is
    /// [`Request::UNKNOWN`].
    pub fn full_name(&self) -> String {
        match self.operation() {
            Some(operation) => format!("{}.{}", self.servant.interface().name, operation.name),
            None => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                format!("{}.{}", text(&self.incoming.interface), text(&self.incoming.operation))
            }
        }
    }

    /// Whether its operation may run twice ([`Interface::is_idempotent`]).
    pub fn may_run_twice(&self) -> bool {
        self.servant.interface().is_idempotent(self.index)
    }

    /// Does something when the call is over: right before its answer leaves; of one that wants none, when its servant lets go of it.
    pub fn on_end(&mut self, told: impl FnOnce() + Send + 'static) {
        self.ended = Some(match self.ended.take() {
            None => Box::new(told),
            Some(before) => Box::new(move || {
                before();
                told();
            }),
        });
    }

    /// Has the answer go through a function, which gets the connection, the call and the answer: for whoever watches it, changes it, or
    /// keeps it back.
    pub fn answer_through(&mut self, pass: impl Fn(&dyn Link, CallId, Answer<'_>) + Send + Sync + 'static) {
        let link = Arc::clone(&self.link);
        self.link = Arc::new(MappedLink { link, pass });
    }

    /// The same call for one more attempt to serve it, whose answer goes through a function as with [`Request::answer_through`]. No bytes are
    /// copied. Its caller is still this one's to answer.
    #[must_use]
    pub fn again(&self, pass: impl Fn(&dyn Link, CallId, Answer<'_>) + Send + Sync + 'static) -> Self {
        Self {
            index: self.index,
            incoming: self.incoming.clone(),
            link: Arc::new(MappedLink { link: Arc::clone(&self.link), pass }),
            servant: Arc::clone(&self.servant),
            answered: self.incoming.expects == Expects::Nothing,
            ended: None,
        }
    }

    #[cold]
    fn end(ended: Box<dyn FnOnce() + Send>) {
        ended();
    }

    /// The typed arguments. Where there are none, nobody looks at what came.
    #[inline]
    pub fn arguments<'a, A: UnmarshalList<'a>>(&'a self) -> Result<A, Failure> {
        if let Some(none) = A::without_values() {
            return Ok(none);
        }
        match self.operation() {
            Some(operation) => self
                .incoming
                .body
                .decode(&operation.arguments)
                .map_err(|failure| failure.at(format_args!("arguments of {}", operation.label))),
            None => Err(Failure::new(Kind::NoOperation, Initiator::Peer, "no such operation")),
        }
    }

    /// Whether this is the first answer; then the call ends here.
    #[inline]
    fn begin_answer(&mut self) -> bool {
        let is_first = !std::mem::replace(&mut self.answered, true);
        if is_first && let Some(ended) = self.ended.take() {
            Self::end(ended);
        }
        is_first
    }

    /// Replies with the result of the servant. A failure that says the call never began (as new ones do) says then that it ended, unless
    /// the servant declined the call ([`Failure::declined`]): it has run, and may have done something before it failed or before a call of
    /// its own was refused.
    pub fn reply<R: MarshalList, E: Raises>(&mut self, result: Result<R, E>) -> Result<(), Failure> {
        if self.begin_answer() {
            match (result, self.operation()) {
                (Ok(results), Some(operation)) => self.link.answer(
                    self.incoming.id,
                    Answer::Done(&|sink: &mut dyn Sink| results.marshal_list(&operation.results, sink)),
                ),
                (Ok(_), None) => {}
                (Err(error), _) => error.answer(&mut |answer| match answer {
                    Answer::Failed(failure) if let Some(ended) = failure.of_servant() => {
                        self.link.answer(self.incoming.id, Answer::Failed(&ended));
                    }
                    answer => self.link.answer(self.incoming.id, answer),
                }),
            }
        }
        Ok(())
    }

    /// Replies with an answer that was made elsewhere: for bridges and dynamic servants.
    pub fn answer(&mut self, answer: Answer<'_>) {
        if self.begin_answer() {
            self.link.answer(self.incoming.id, answer);
        }
    }

    /// Runs the body of a skeleton; a failure becomes the reply.
    #[inline]
    pub fn run(mut self, body: impl FnOnce(&mut Self) -> Result<(), Failure>) {
        // As `finish` does, without moving the request once more.
        if let Err(failure) = body(&mut self) {
            self.answer(Answer::Failed(&failure));
        }
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
        if self.incoming.expects == Expects::Nothing {
            self.link.let_go(self.incoming.id);
        }
        // Of one that wants no answer.
        if let Some(ended) = self.ended.take() {
            Self::end(ended);
        }
    }
}

/// A connection whose answers go through a function.
struct MappedLink<F> {
    link: Arc<dyn Link>,
    pass: F,
}

impl<F: Fn(&dyn Link, CallId, Answer<'_>) + Send + Sync> Link for MappedLink<F> {
    fn answer(&self, id: CallId, answer: Answer<'_>) {
        (self.pass)(&*self.link, id, answer);
    }

    fn let_go(&self, id: CallId) {
        self.link.let_go(id);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.link.spawn(task);
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        self.link.resolver()
    }

    fn peer(&self) -> Option<Peer> {
        self.link.peer()
    }

    fn endpoint(&self) -> Endpoint {
        self.link.endpoint()
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        self.link.emit(emission)
    }

    fn serial_number(&self) -> u64 {
        self.link.serial_number()
    }

    fn is_over(&self) -> bool {
        self.link.is_over()
    }

    fn end(&self, why: &Failure) {
        self.link.end(why);
    }

    fn caller(&self) -> Option<Object> {
        self.link.caller()
    }
}
