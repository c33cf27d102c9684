//! The content of an element as a value of the expected type, whichever records or text it came in.
//!
//! A peer may send a number as text, or a text as a number record, and both mean the same XML: so each kind
//! of content answers for each type that a contract may expect. `None` is text that is no value of the
//! type; the reader then fails with `BadValue` at its place.

use crate::nbfx::{Text, xml};
use crate::text::base64;
use std::borrow::Cow;

/// The content of an element.
#[derive(Debug, Clone)]
pub(super) enum Content<'a> {
    /// Nothing: the empty text.
    Empty,
    /// One record.
    /// Not one of text or octets: those have variants of their own.
    One(Text<'a>),
    /// Text in place.
    Text(Cow<'a, str>),
    /// Octets of one record or several.
    Octets(Cow<'a, [u8]>),
}

impl<'a> Content<'a> {
    /// One record, whose word, if it has one, stands in `word`.
    #[inline]
    pub(super) fn of(text: Text<'a>, word: Option<&'a str>) -> Self {
        match text {
            Text::Empty | Text::ListStart | Text::ListEnd => Self::Empty,
            Text::Chars(chars) => Self::Text(Cow::Borrowed(chars)),
            Text::Bytes(bytes) => Self::Octets(Cow::Borrowed(bytes)),
            Text::Word(_) => Self::Text(Cow::Borrowed(word.unwrap_or_default())),
            Text::QName(letter, _) => {
                let prefix = char::from(b'a' + letter.min(25));
                Self::Text(Cow::Owned(format!("{prefix}:{}", word.unwrap_or_default())))
            }
            other => Self::One(other),
        }
    }

    /// Adds a record.
    /// Texts of one element may come in several records: octets stay octets, all else becomes text.
    pub(super) fn push(self, text: Text<'a>, word: Option<&'a str>) -> Self {
        match (self, text) {
            (whole, Text::Empty | Text::ListStart | Text::ListEnd) => whole,
            (Self::Empty, text) => Self::of(text, word),
            (Self::Octets(octets), Text::Bytes(more)) => Self::Octets(Cow::Owned(match octets {
                Cow::Borrowed(first) => [first, more].concat(),
                Cow::Owned(mut joined) => {
                    joined.extend_from_slice(more);
                    joined
                }
            })),
            (whole, more) => {
                let mut text = whole.text().into_owned();
                text.push_str(&Self::of(more, word).text());
                Self::Text(Cow::Owned(text))
            }
        }
    }

    /// As text.
    /// Numbers in XML Schema's notation, octets in base64.
    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Empty => Cow::Borrowed(""),
            Self::One(text) => Cow::Owned(xml::lexical(&text)),
            Self::Text(text) => text,
            Self::Octets(bytes) => Cow::Owned(xml::lexical(&Text::Bytes(&bytes))),
        }
    }

    /// The same, and the content stays.
    pub(super) fn lexical(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            other => other.clone().text(),
        }
    }

    /// As octets; text is base64.
    pub(super) fn octets(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Empty => Some(Cow::Borrowed(&[])),
            Self::Octets(bytes) => Some(bytes),
            other => base64::decode(other.text().as_bytes()).map(Cow::Owned),
        }
    }

    /// As a whole number.
    #[inline]
    pub(super) fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::One(text) => match text {
                Text::Zero => 0,
                Text::One => 1,
                Text::I8(value) => value.into(),
                Text::I16(value) => value.into(),
                Text::I32(value) => value.into(),
                Text::I64(value) => value.into(),
                Text::U64(value) => value.into(),
                // A whole decimal or float is a whole number; with a fraction it is none.
                other => return xml::lexical(&other).parse().ok(),
            },
            ref other => return whole(&other.lexical()),
        })
    }

    /// As a number with a fraction.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn float(&self) -> Option<f64> {
        match *self {
            Self::One(Text::F32(value)) => Some(value.into()),
            Self::One(Text::F64(value)) => Some(value),
            Self::One(Text::Zero | Text::One | Text::I8(_) | Text::I16(_) | Text::I32(_) | Text::I64(_)) => {
                self.integer().map(|value| value as f64)
            }
            ref other => match trimmed(&other.lexical()) {
                // XML Schema 1.0 has the first of each line; 1.1 has a sign before it, and Axis2 writes what Java calls it.
                "INF" | "+INF" | "Infinity" => Some(f64::INFINITY),
                "-INF" | "-Infinity" => Some(f64::NEG_INFINITY),
                "NaN" => Some(f64::NAN),
                text => text.parse().ok().filter(|value: &f64| value.is_finite()),
            },
        }
    }

    /// As a boolean.
    pub(super) fn boolean(&self) -> Option<bool> {
        match *self {
            Self::One(Text::True | Text::One | Text::Bool(true)) => Some(true),
            Self::One(Text::False | Text::Zero | Text::Bool(false)) => Some(false),
            ref other => match trimmed(&other.lexical()) {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
        }
    }
}

/// Without the white space of XML around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// The number that a text stands for, most of them short.
/// A number of at most 18 characters fits into 64 bits, which are parsed faster.
fn whole(text: &str) -> Option<i128> {
    let text = trimmed(text);
    if text.len() < 19 { text.parse::<i64>().ok().map(i128::from) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinity_has_several_names() {
        let float = |text| Content::One(Text::Chars(text)).float();
        assert!([" INF\n", "+INF", "Infinity"].iter().all(|text| float(text) == Some(f64::INFINITY)));
        assert!(["-INF", "-Infinity"].iter().all(|text| float(text) == Some(f64::NEG_INFINITY)));
        assert!(["inf", "infinity", "1e999", "nan", "-NaN"].iter().all(|text| float(text).is_none()));
    }
}
