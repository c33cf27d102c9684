//! The typed reference that hides where an object lives.

use super::serving::{Request, Servant};
use super::target::{Object, Resolver, TypedServant};
use crate::contract::{Constant, Interface};
use crate::failure::{Failure, Initiator, Kind};
use crate::marshal::Marshal;
use crate::reference::Reference;
use crate::shape::{Hold, Shape};
use crate::signal::Emitter;
use crate::visit::{Sink, Visit};
use bytes::Bytes;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// A generated trait (`dyn Account`): what connects it to the untyped world.
pub trait Remote: Send + Sync + 'static {
    /// Its description.
    fn interface() -> &'static Interface;
    /// The constants of its contract.
    fn constants() -> Vec<Constant> {
        Vec::new()
    }
    /// The interfaces of its listeners ([`Servant::listeners`]).
    fn listeners() -> Vec<Hold<Interface>> {
        Vec::new()
    }
    /// A stub that implements it by calls to `object`.
    fn stub(object: Object) -> Arc<Self>;
    /// A skeleton that serves it.
    fn skeleton(servant: Arc<Self>) -> Arc<dyn Servant>;
    /// The servant as the trait of the interface with this identity, which is its own or one of its bases: an `Arc<dyn Trait>` behind
    /// `Any`, for callers of this process. Generated code knows the bases.
    fn as_type(servant: &Arc<Self>, id: &str) -> Option<TypedServant> {
        (Self::interface().id == id).then(|| Arc::new(Arc::clone(servant)) as _)
    }
}

/// A typed reference to an object, here or elsewhere. It dereferences to the trait, so a caller cannot tell where the
/// object lives: in this process it *is* the servant.
pub struct Ref<I: ?Sized> {
    object: Arc<I>,
    reference: Arc<Reference>,
    pub(crate) side: ObjectLocation,
}

/// Where the object of a typed reference lives, for what the trait does not say: its signals.
#[derive(Clone)]
pub(crate) enum ObjectLocation {
    Here(Arc<dyn Emitter>, Bytes),
    There(Object),
}

impl<I: ?Sized> Ref<I> {
    /// For the runtime: a servant of this process, exported under `key` and published under this reference.
    pub fn local(object: Arc<I>, reference: Reference, key: Bytes, emitter: Arc<dyn Emitter>) -> Self {
        Self { object, reference: Arc::new(reference), side: ObjectLocation::Here(emitter, key) }
    }

    /// Where the object is.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The object as a shared trait object.
    pub fn as_arc(&self) -> &Arc<I> {
        &self.object
    }
}

impl<I: Remote + ?Sized> Ref<I> {
    /// The object behind a reference: the servant itself if it lives here, else a stub.
    pub fn resolve(resolver: &dyn Resolver, reference: Reference) -> Result<Self, Failure> {
        if let Some((held_key, emitter, held)) = resolver.local(&reference, &I::interface().id)
            && let Some(local) = held.downcast_ref::<Arc<I>>()
        {
            return Ok(Self::local(Arc::clone(local), reference, held_key, emitter));
        }
        let object = resolver.resolve(&reference)?;
        Ok(Self::remote(object, reference))
    }

    pub(super) fn remote(object: Object, reference: Reference) -> Self {
        let object = object.typed(Hold::Static(I::interface()));
        Self {
            object: I::stub(object.clone()),
            reference: Arc::new(reference),
            side: ObjectLocation::There(object),
        }
    }

    /// The same object by another of its interfaces, if it has that (QueryInterface, `_is_a`).
    ///
    /// # Errors
    /// It cannot be asked: the wire has no way to, or the object is not to be reached.
    pub fn query<J: Remote + ?Sized>(&self) -> Result<Option<Ref<J>>, Failure> {
        let wanted = &J::interface().id;
        let (offered, resolver, found) = match &self.side {
            ObjectLocation::Here(emitter, key) => (emitter.offers(key, wanted), emitter.resolver(), None),
            ObjectLocation::There(object) => {
                let target = object.target();
                (target.offers(wanted)?, Some(target.resolver()), target.found_at())
            }
        };
        let (true, Some(resolver)) = (offered, resolver) else { return Ok(None) };
        let reference = found.unwrap_or_else(|| self.reference().clone());
        Ref::resolve(&*resolver, Reference { type_id: wanted.to_string(), ..reference }).map(Some)
    }

    /// The same object, whose calls end after this time with [`crate::Kind::TimedOut`]; `None` lifts the deadline.
    ///
    /// # Errors
    /// The node of an object of this process has ended.
    pub fn with_deadline(&self, deadline: Option<Duration>) -> Result<Self, Failure> {
        let object = match &self.side {
            ObjectLocation::There(object) => object.clone(),
            // Nobody can end a method call: the call goes through memory.
            ObjectLocation::Here(emitter, _) => {
                let gone =
                    || Failure::new(Kind::Unreachable, Initiator::Here, "the node of this object has ended");
                emitter.resolver().ok_or_else(gone)?.resolve(self.reference())?
            }
        };
        Ok(Self::remote(object.with_deadline(deadline), self.reference().clone()))
    }
}

impl Request {
    /// A typed reference that came as an argument.
    pub fn narrow<I: Remote + ?Sized>(
        &self,
        reference: Option<Reference>,
    ) -> Result<Option<Ref<I>>, Failure> {
        reference.map(|reference| Ref::resolve(&*self.link().resolver(), reference)).transpose()
    }
}

impl<I: ?Sized> Clone for Ref<I> {
    fn clone(&self) -> Self {
        Self {
            object: Arc::clone(&self.object),
            reference: Arc::clone(&self.reference),
            side: self.side.clone(),
        }
    }
}

impl<I: ?Sized> Deref for Ref<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.object
    }
}

impl<I: ?Sized> fmt::Debug for Ref<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({:?})", self.reference)
    }
}

impl<I: ?Sized> Marshal for Option<Ref<I>> {
    fn marshal<S: Sink + ?Sized>(&self, _: &Shape, sink: &mut S) -> Visit<()> {
        let found = match self.as_ref().map(|held| &held.side) {
            Some(ObjectLocation::There(object)) => object.target().found_at(),
            _ => None,
        };
        sink.reference(found.as_ref().or_else(|| self.as_ref().map(Ref::reference)))
    }
}
