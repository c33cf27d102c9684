//! Values that are more narrowly typed than by their shape: those of types with derived types, and texts with bounds.
//!
//! A type with derived types is a union of the model, whose discriminator is an enumeration of the types'
//! names; on the wire it is `i:type`, left out for the type that the contract names itself.

use super::state::{ElementSource, Frame, Kind};
use crate::values::cursor::Cursor;
use crate::violations::Violation;
use everywire_model::shape::{Enum, Hold, Text, Union};
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
        let frame = self.top();
        frame.index += 1;
        if let Kind::Named = frame.kind {
            let value = frame.entered.as_ref().and_then(|entered| shape.value_of(entered.name));
            return self.found(value, Violation::UnknownEnumerant);
        }
        let Kind::Derived(union) = &frame.kind else { return self.wrong(Violation::Misuse) };
        let value = match frame.entered.as_ref().and_then(|entered| entered.kind.as_deref()) {
            Some(told) => shape.value_of(told),
            None => {
                let first = union.arms.first().and_then(|arm| arm.labels.first());
                first.and_then(|label| i32::try_from(*label).ok())
            }
        };
        self.found(value, Violation::UnknownEnumerant)
    }

    /// A text, if it is not longer than its type allows.
    pub(super) fn bounded(&self, shape: &Text, text: Cow<'a, str>) -> Visit<Cow<'a, str>> {
        if shape.bound.is_some_and(|bound| text.chars().count() > bound as usize) {
            return self.wrong(Violation::BoundExceeded);
        }
        Ok(text)
    }
}
