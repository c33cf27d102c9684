//! What operations end with instead of results: exceptions of the contract, and failures.

use crate::body::Body;
use crate::contract::Operation;
use crate::failure::{Completed, Failure, Initiator, Kind};
use crate::marshal::{Marshal, Unmarshal, UnmarshalList};
use crate::message::{Answer, Outcome};
use crate::shape::Shape;
use crate::visit::Sink;
use std::fmt;

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
        Shape::Struct(exception) if exception.is_called(id) => {
            Some(body.read(|source| X::unmarshal(shape, source)).map(Into::into))
        }
        _ => None,
    }
}

/// The failure that stands for an exception of the contract where nobody asks for its fields: what `?` makes of it in a function that returns a
/// [`Failure`]. Its code is the exception's identity. For generated code.
#[cold]
pub fn as_failure<X: Exception + fmt::Display>(exception: &X) -> Failure {
    let failure = Failure::new(Kind::Internal, Initiator::Peer, exception.to_string());
    let failure = failure.with_completed(Completed::Yes);
    match X::shape() {
        Shape::Struct(shape) => {
            failure.with_code(if shape.id.is_empty() { &*shape.name } else { &*shape.id })
        }
        _ => failure,
    }
}

/// The typed outcome of a call.
pub(super) fn conclude<R, E>(operation: &Operation, outcome: Outcome<Body>) -> Result<R, E>
where
    R: for<'a> UnmarshalList<'a>,
    E: Raises,
{
    match outcome {
        Outcome::Done(body) => body.decode(&operation.results).map_err(|failure| {
            E::from(failure.at(format_args!("results of {}", operation.label)).with_completed(Completed::Yes))
        }),
        Outcome::Raised(raised) => match E::raised(&raised.id, &raised.body) {
            Some(Ok(raised)) => Err(raised),
            Some(Err(failure)) => Err(E::from(failure.at(format_args!("exception {}", raised.id)))),
            None => Err(E::from(unexpected(&raised.id))),
        },
        Outcome::Failed(failure) => Err(E::from(failure)),
        Outcome::Moved(_) => {
            Err(E::from(Failure::new(Kind::Unreachable, Initiator::Peer, "the object moved too often")))
        }
    }
}

/// The failure that stands for an exception which the contract does not name.
pub fn unexpected(id: &str) -> Failure {
    let what = format!("the peer raised `{id}`, which the contract does not name");
    Failure::new(Kind::Internal, Initiator::Peer, what)
        .with_completed(Completed::Yes)
        .with_hint("compare the contract of both sides")
}
