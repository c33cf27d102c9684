//! Contents that are values, and texts that are values of a type of XML Schema: what is no value of it is a mistake of the sender, and so is one that is nil. One that is
//! missing is what data contracts have for it.

use super::state::{ElementSource, Kind};
use crate::values::cursor::Cursor;
use crate::values::names::Notation;
use crate::values::scalar::Content;
use crate::violations::Violation;
use everywire_idl::wsdl::marks::Mark;
use everywire_model::shape::Field;
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// The text as a value of the type that the contract says.
    #[inline]
    pub(super) fn lexical(&self, notation: Option<Notation>, text: Cow<'a, str>) -> Visit<Cow<'a, str>> {
        match notation {
            Some(Notation::Typed(kind)) if kind.fits(&text) => Ok(without_blanks(text)),
            Some(Notation::Typed(kind)) => match self.default().filter(|_| text.is_empty()) {
                Some(default) if kind.fits(&default.lexical()) => Ok(default.text()),
                _ => self.wrong_text(Violation::BadValue),
            },
            _ => Ok(text),
        }
    }

    /// The value of a content.
    #[inline]
    pub(super) fn parsed<T>(
        &self,
        content: &Content<'a>,
        read: impl Fn(&Content<'a>) -> Option<T>,
    ) -> Visit<T> {
        match read(content) {
            Some(value) => Ok(value),
            None => self.of_empty(content, Violation::BadValue, read),
        }
    }

    /// The value that an element has by the contract where it holds nothing (XML Schema part 1, 3.3.1), for a type of which
    /// nothing is no value. .NET does the same for all types but texts, whose empty one is a value to it.
    #[cold]
    pub(super) fn of_empty<T>(
        &self,
        content: &Content<'a>,
        violation: Violation,
        read: impl Fn(&Content<'a>) -> Option<T>,
    ) -> Visit<T> {
        let default = if content.lexical().is_empty() { self.default() } else { None };
        default.and_then(|default| read(&default)).ok_or_else(|| violation.at(self.cursor.position()))
    }

    /// The value of a text that is nowhere in the message.
    pub(super) fn missing_text(&self, notation: Option<Notation>) -> Visit<Cow<'a, str>> {
        let value = match notation {
            Some(Notation::Typed(kind)) => kind.missing(),
            Some(Notation::QName) => None,
            _ => Some(""),
        };
        value.map_or_else(|| self.wrong_text(Violation::MissingElement), |value| Ok(Cow::Borrowed(value)))
    }

    /// The failure for the value that began last, by the name of its member.
    #[cold]
    pub(super) fn wrong_text<T>(&self, violation: Violation) -> Visit<T> {
        let failure = violation.at(self.cursor.position());
        // Items and optional values are those of the member around them.
        let is_passing = |kind: &Kind| !matches!(kind, Kind::Struct(..) | Kind::Choice(..) | Kind::Pairs(..));
        let frame = self.frames.iter().rev().find(|frame| !is_passing(&frame.kind)).unwrap_or(&self.base);
        let field = match &frame.kind {
            Kind::Struct(fields, _) => frame.index.checked_sub(1).and_then(|at| fields.fields.get(at)),
            _ => None,
        };
        let Some(Field { name, shape }) = field else { return Err(failure) };
        let what = if let Some(Mark::Attribute(_)) = Mark::of(shape) { "attribute" } else { "element" };
        Err(failure.at(format!("{what} `{name}`")))
    }
}

/// Whether the type of a text has an empty value, which nil stands for.
pub(super) fn has_empty(notation: Option<Notation>) -> bool {
    match notation {
        Some(Notation::Typed(kind)) => kind.missing() == Some(""),
        Some(Notation::QName) => false,
        _ => true,
    }
}

/// White space around a value is none of it (XML Schema part 2, 4.3.6).
pub(super) fn without_blanks(text: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = |text: &str| text.trim_matches([' ', '\t', '\r', '\n']).len();
    if trimmed(&text) == text.len() {
        return text;
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches([' ', '\t', '\r', '\n'])),
        Cow::Owned(text) => Cow::Owned(text.trim_matches([' ', '\t', '\r', '\n']).to_owned()),
    }
}
