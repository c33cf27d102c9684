//! Values that are called as their sender likes: in the style rpc, whose messages SOAP 1.1 describes in section 7.1.
//!
//! The name of what an operation returns is not significant there: it is the first accessor of an answer, whatever it is called.
//! Parameters are told by their names; a request that has elements and names none of them means another contract, or has
//! positions for names, as SOAP::Lite writes them.

use super::elements::{may_be, named};
use super::state::ElementSource;
use crate::text::check_chars;
use crate::values::Naming;
use crate::values::cursor::{Cursor, TypeName};
use crate::violations::Violation;
use everywire_model::shape::{Shape, Struct, Text};
use everywire_model::visit::Visit;
use std::borrow::Cow;

/// Whether an element says that its text is octets in base64, by its type in XML Schema or in SOAP's encoding.
pub(super) fn is_base64(kind: &TypeName<'_>) -> bool {
    matches!(kind.local(), "base64Binary" | "base64")
}

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// Looks at the elements inside the wrapper, which is open, before the first is read.
    ///
    /// # Errors
    /// A request has elements and none of the parameters, or an answer lacks the number that the operation returns.
    #[cold]
    pub(super) fn check_accessors(&mut self, fields: &Struct) -> Visit<()> {
        if !self.base.open || fields.fields.is_empty() {
            return Ok(());
        }
        let place = (self.cursor.position(), self.cursor.depth());
        let is_known = |name: &str| (0..fields.fields.len()).any(|at| may_be(fields, at, name, true));
        let (mut first, mut knows_one, mut has_result) = (None, false, false);
        loop {
            while let Some(entered) = self.cursor.enter()? {
                has_result |= may_be(fields, 0, entered.name, true);
                knows_one |= is_known(entered.name);
                first.get_or_insert((entered.name, entered.at));
                self.cursor.finish()?;
            }
            if !self.pass_array()? {
                break;
            }
        }
        let end = self.cursor.position();
        self.cursor.seek(place.0, place.1);
        let Some(result) = fields.fields.first() else { return Ok(()) };
        match (self.reading.naming, first) {
            (Naming::Parameters, Some((name, at))) if !knows_one && self.expects_elements(fields) => {
                Err(named(Violation::UnexpectedElement, name, at))
            }
            (Naming::Returned, Some((name, _))) if !has_result && !is_known(name) => {
                self.takes_first = true;
                Ok(())
            }
            (Naming::Returned, _) if !has_result && is_number(&result.shape) => {
                Err(named(Violation::MissingElement, &result.name, end))
            }
            _ => Ok(()),
        }
    }

    /// Whether some of the parameters did not come as headers.
    fn expects_elements(&self, fields: &Struct) -> bool {
        let headers = self.reading.headers.as_deref().unwrap_or_default();
        fields.fields.iter().any(|field| headers.iter().all(|header| *header.name != *field.name))
    }

    /// The text of the element that was entered, as octets in base64: SOAP::Lite sends each text so that is no ASCII.
    ///
    /// # Errors
    /// They are no octets in base64, or no text in UTF-8 that XML has.
    #[cold]
    pub(super) fn text_in_base64(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let octets = self.cursor.octets(&mut self.budget)?;
        let text = octets.and_then(|octets| String::from_utf8(octets.into_owned()).ok());
        let text = self.expect(text.filter(|text| check_chars(text).is_ok()))?;
        self.bounded(shape, Cow::Owned(text))
    }
}

/// Whether a value of this shape has no empty value, which a missing element could stand for.
fn is_number(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Bool | Shape::Char | Shape::WideChar | Shape::Enum(_) => true,
        other => other.width().is_some(),
    }
}
