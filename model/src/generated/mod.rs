//! What generated code is made of: stubs, skeletons and the macros that say the rest.
//!
//! The generator writes what a contract says (traits, types, a line for each operation) and names a macro of this module for what follows
//! from it. Users see [`Stub`] and [`Skeleton`] in error messages and call neither by name.
//!
//! * A **trait** of a contract is `dyn Trait` here. `Inherits<dyn Base>` tells the number of a base's operation in a derived interface, so a
//!   trait is implemented once for the stubs of all interfaces that are derived from it ([`Stub`]).
//! * A trait's own operations are numbered from 0 in [`Answers::serve`] and [`AnswersAsync::serve`]. A skeleton sends each request to the trait
//!   that the operation is from.
//! * [`Results`] is the list of results that travels; its `Value` is what a method yields: nothing, one value, a tuple, a [`Success`](crate::Success).
//! * [`Lent`] is a parameter that a method takes by reference, and the type that a skeleton reads for it.

mod data;
mod faces;
mod inherit;
mod results;

pub use data::{arms, counted_fields, errors, exceptions, fields, guid, members, numbers, signals, words};
pub use faces::{asynchronous, blocking, faces};
pub use inherit::{inherit_attributes, inherit_operations};
pub use results::{Coded, Lent, List, Narrow, Results, Untyped, lend, own};

use crate::contract::{Constant, Interface, Operation};
use crate::failure::Failure;
use crate::object::{Object, Remote, Request, Servant};
use crate::shape::{Field, Hold, Shape};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a call ends with: results, or an error that is a [`Failure`] unless the contract has exceptions.
pub type Ends<T, E = Failure> = Result<T, E>;

/// What a method yields whose results travel as this list.
pub type Yield<R> = <R as Results>::Value;

/// The results of the asynchronous method: those of the blocking one, unless there are others.
pub type Asynchronous<B, A = B> = <A as InPlaceOf<B>>::Results;

/// See [`Asynchronous`].
pub trait InPlaceOf<B> {
    /// The type itself.
    type Results;
}

impl<A, B> InPlaceOf<B> for A {
    type Results = A;
}

/// Calls an object that is somewhere else: it implements the traits of its interface by calls.
pub struct Stub<I: ?Sized> {
    /// The object.
    pub object: Object,
    interface: PhantomData<fn(&I)>,
}

impl<I: ?Sized> Stub<I> {
    /// The stub of an object.
    pub fn new(object: Object) -> Self {
        Self { object, interface: PhantomData }
    }
}

impl<I: ?Sized> Clone for Stub<I> {
    fn clone(&self) -> Self {
        Self::new(self.object.clone())
    }
}

impl<I: ?Sized> fmt::Debug for Stub<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stub").field(&self.object).finish()
    }
}

/// Serves a servant to callers somewhere else.
pub struct Skeleton<I: ?Sized>(pub Arc<I>);

impl<I: Serve + ?Sized> Servant for Skeleton<I> {
    fn interface(&self) -> &Interface {
        I::interface()
    }

    fn constants(&self) -> Vec<Constant> {
        I::constants()
    }

    fn listeners(&self) -> Vec<Hold<Interface>> {
        I::listeners()
    }

    #[inline]
    fn dispatch(&self, request: Request) {
        I::dispatch(&self.0, request);
    }
}

/// A trait of a contract that is the trait `B`, or derived from it.
pub trait Inherits<B: ?Sized>: Remote {
    /// The operation of this interface that is number `own` among those that `B` itself declares.
    fn operation(own: usize) -> &'static Operation;
}

/// A trait of a contract whose servants can be served.
pub trait Serve: Remote {
    /// Serves one request.
    fn dispatch(servant: &Arc<Self>, request: Request);
}

/// A blocking trait: its own operations, without those of its bases.
pub trait Answers: Serve {
    /// Serves a request for the operation that is number `own` among those that the trait itself declares.
    ///
    /// # Errors
    /// The request does not decode, or the answer does not fit it; the caller gets the failure.
    fn serve(&self, request: &mut Request, own: usize) -> Result<(), Failure>;
}

/// An asynchronous trait: its own operations, without those of its bases.
pub trait AnswersAsync: Serve {
    /// As [`Answers::serve`].
    fn serve(&self, request: &mut Request, own: usize) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The shape of the next field of a struct.
#[inline]
pub fn next<'s>(fields: &mut std::slice::Iter<'s, Field>) -> &'s Shape {
    fields.next().map_or(&Shape::Void, |field| &field.shape)
}
