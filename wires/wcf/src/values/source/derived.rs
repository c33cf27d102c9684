//! Values that are more narrowly typed than by their shape: those of types with derived types, and texts with bounds.
//!
//! A type with derived types is a union of the model, whose discriminator is an enumeration of the types'
//! names; on the wire it is `i:type`, left out for the type that the contract names itself. Types are told apart by
//! namespace and name: two namespaces may have a type of one name.

use super::state::{ElementSource, Frame, Kind};
use crate::limits::MAX_NAME;
use crate::values::cursor::Cursor;
use crate::values::names::clark;
use crate::violations::Violation;
use everywire_model::Failure;
use everywire_model::shape::{Enum, Hold, Shape, Text, Union};
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// Opens a value of one of several types.
    pub(super) fn open_derived(&mut self, union: &Hold<Union>) -> Visit<usize> {
        let entered = self.enter_object()?;
        self.push(Frame { entered, ..Frame::new(Kind::Derived(union.clone()), 2) })?;
        Ok(0)
    }

    /// The member of the discriminator that stands for the type that the element tells, the first one by default.
    pub(super) fn derived(&mut self, shape: &Enum) -> Visit<i32> {
        let frame = self.frames.last_mut().unwrap_or(&mut self.base);
        frame.index += 1;
        if let Kind::Named = frame.kind {
            let value = frame.entered.as_ref().and_then(|entered| shape.value_of(entered.name));
            return self.found(value, Violation::UnknownEnumerant);
        }
        let Kind::Derived(union) = &frame.kind else { return self.wrong(Violation::Misuse) };
        let at = self.cursor.position();
        let arm = match frame.entered.as_ref().and_then(|entered| entered.kind.as_ref()) {
            Some(told) => {
                let namespace = self.cursor.resolve(told.prefix(), at, &mut self.budget)?;
                let namespace = namespace.ok_or_else(|| Violation::UnknownPrefix.at(at))?;
                let local = told.local();
                let mut arms = union.arms.iter();
                // A type of which no namespace is known is known by its name.
                let known = arms.find(|arm| is_called(&arm.field.shape, namespace, local)).or_else(|| {
                    union.arms.iter().find(|arm| arm.field.name == local && !is_placed(&arm.field.shape))
                });
                Some(known.ok_or_else(|| unknown(namespace, local, at))?)
            }
            None => union.arms.first(),
        };
        let label = arm.and_then(|arm| arm.labels.first()).and_then(|label| i32::try_from(*label).ok());
        label.ok_or_else(|| Violation::UnknownEnumerant.at(at))
    }

    /// A text, if it is not longer than its type allows.
    pub(super) fn bounded(&self, shape: &Text, text: Cow<'a, str>) -> Visit<Cow<'a, str>> {
        if shape.bound.is_some_and(|bound| text.chars().count() > bound as usize) {
            return self.wrong(Violation::BoundExceeded);
        }
        Ok(text)
    }
}

/// Whether this is the struct of that namespace and name.
fn is_called(shape: &Shape, namespace: &str, local: &str) -> bool {
    let Shape::Struct(shape) = shape.resolved() else { return false };
    let around = shape.id.strip_prefix('{').and_then(|id| id.strip_suffix(local)?.strip_suffix('}'));
    around == Some(namespace)
}

/// Whether a contract says of what namespace a type is, or of those in it. Names of others are made of what they are called.
pub(super) fn is_placed(shape: &Shape) -> bool {
    match shape {
        Shape::Struct(held) => clark(&held.id).is_some(),
        Shape::Enum(held) => clark(&held.id).is_some(),
        Shape::Union(held) => clark(&held.id).is_some(),
        Shape::Alias(held) => clark(&held.id).is_some() || is_placed(&held.target),
        Shape::Optional(target) => is_placed(target),
        Shape::Pointer(pointer) => is_placed(&pointer.target),
        Shape::Map(held) => is_placed(&held.key) && is_placed(&held.value),
        _ => shape.element().is_none_or(is_placed),
    }
}

/// The failure for a type that does not extend the one of the contract, or that nobody knows.
#[cold]
fn unknown(namespace: &str, local: &str, at: usize) -> Failure {
    let failure = Violation::UnknownEnumerant.at(at);
    if namespace.len() + local.len() > MAX_NAME {
        return failure;
    }
    failure.at(format!("type `{{{}}}{}`", namespace.escape_debug(), local.escape_debug()))
}
