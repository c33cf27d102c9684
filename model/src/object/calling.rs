//! Calls of objects, with typed arguments and results.

use super::pending::{Pending, preparing};
use super::raising::{Raises, conclude};
use super::target::{Object, Target};
use super::typed::{Ref, Remote};
use crate::body::Body;
use crate::contract::Operation;
use crate::failure::Failure;
use crate::marshal::{MarshalList, UnmarshalList};
use crate::message::Outcome;
use crate::reference::Reference;
use crate::visit::{Encode, Sink};
use std::future::Future;
use std::sync::Arc;

impl Object {
    /// Calls, and waits for typed results.
    #[inline]
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

    /// Calls, and returns a future of the typed results. Dropping the future withdraws the call. The call has begun when this returns,
    /// if there is a connection; if one has to be made, that keeps no thread of the caller's, and the call begins when the
    /// future is polled after that.
    pub fn call_async<'o, A, R, E>(
        &'o self,
        operation: &'o Operation,
        arguments: A,
    ) -> impl Future<Output = Result<R, E>> + Send + 'o
    where
        A: MarshalList + Send + 'o,
        R: for<'a> UnmarshalList<'a> + 'o,
        E: Raises + 'o,
    {
        let arguments = move |sink: &mut dyn Sink| arguments.marshal_list(&operation.arguments, sink);
        let outcome = self.invoke_async(operation, arguments);
        async move { conclude(operation, outcome.await) }
    }

    /// Calls, and returns a future of an outcome that nobody has decoded; as [`Object::call_async`], for arguments that encode themselves.
    pub fn invoke_async<'o, A: Encode + Send + 'o>(
        &'o self,
        operation: &'o Operation,
        arguments: A,
    ) -> impl Future<Output = Outcome<Body>> + Send + 'o {
        let begin = move |target: &Arc<dyn Target>, arguments: &A| {
            Pending::begin(target, |done| target.submit(self.method(operation), arguments, done))
        };
        let begun = match preparing(&self.target) {
            None => Ok(begin(&self.target, &arguments)),
            Some(preparing) => Err((preparing, arguments)),
        };
        async move {
            let pending = match begun {
                Ok(pending) => pending,
                Err((preparing, arguments)) => match preparing.await {
                    Ok(target) => begin(&target, &arguments),
                    Err(failure) => {
                        return Outcome::Failed(failure.at(format_args!("operation {}", operation.label)));
                    }
                },
            };
            pending.await
        }
    }

    /// Begins a call whose arguments encode themselves; the future yields its outcome. If a connection has to be made first, that
    /// keeps the calling thread ([`Target::prepare`] does not).
    pub fn submit(&self, operation: &Operation, arguments: &dyn Encode) -> Pending {
        let begin = |done| self.target.submit(self.method(operation), arguments, done);
        Pending::begin(&self.target, begin)
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
