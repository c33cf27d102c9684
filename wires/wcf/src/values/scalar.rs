//! The content of an element as a value of the expected type, whichever records it came in.

use crate::nbfx::{Text, xml};
use std::borrow::Cow;

/// The content of an element.
#[derive(Debug, Clone)]
pub(super) enum Content<'a> {
    /// Nothing: the empty text.
    Empty,
    /// One record.
    One(Text<'a>),
    /// Text in place.
    Text(Cow<'a, str>),
    /// Octets of one record or several.
    Octets(Cow<'a, [u8]>),
}

impl<'a> Content<'a> {
    /// Adds a record, whose word, if it is one, stands in `word`.
    pub(super) fn push(self, text: Text<'a>, word: Option<&'a str>) -> Self {
        match (self, text) {
            (whole, Text::Empty | Text::ListStart | Text::ListEnd) => whole,
            (Self::Empty, Text::Chars(chars)) => Self::Text(Cow::Borrowed(chars)),
            (Self::Empty, Text::Bytes(bytes)) => Self::Octets(Cow::Borrowed(bytes)),
            (Self::Empty, Text::Word(_)) => Self::Text(Cow::Borrowed(word.unwrap_or_default())),
            (Self::Empty, other) => Self::One(other),
            (Self::Octets(mut bytes), Text::Bytes(more)) => {
                bytes.to_mut().extend_from_slice(more);
                Self::Octets(bytes)
            }
            (whole, more) => {
                let mut text = whole.text().into_owned();
                text.push_str(&word.map_or_else(|| xml::lexical(&more), str::to_owned));
                Self::Text(Cow::Owned(text))
            }
        }
    }

    /// As text.
    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Empty => Cow::Borrowed(""),
            Self::One(text) => Cow::Owned(xml::lexical(&text)),
            Self::Text(text) => text,
            Self::Octets(bytes) => Cow::Owned(xml::lexical(&Text::Bytes(&bytes))),
        }
    }

    /// As octets; text is base64.
    pub(super) fn octets(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Empty => Some(Cow::Borrowed(&[])),
            Self::Octets(bytes) => Some(bytes),
            other => xml::from_base64(&other.text()).map(Cow::Owned),
        }
    }

    /// As a whole number.
    pub(super) fn integer(self) -> Option<i128> {
        Some(match self {
            Self::One(text) => match text {
                Text::Zero => 0,
                Text::One => 1,
                Text::I8(value) => value.into(),
                Text::I16(value) => value.into(),
                Text::I32(value) => value.into(),
                Text::I64(value) => value.into(),
                Text::U64(value) => value.into(),
                other => return xml::lexical(&other).parse().ok(),
            },
            other => return other.text().trim().parse().ok(),
        })
    }

    /// As a number with a fraction.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn float(self) -> Option<f64> {
        match self {
            Self::One(Text::F32(value)) => Some(value.into()),
            Self::One(Text::F64(value)) => Some(value),
            Self::One(Text::Zero | Text::One | Text::I8(_) | Text::I16(_) | Text::I32(_) | Text::I64(_)) => {
                self.integer().map(|value| value as f64)
            }
            other => match other.text().trim() {
                "INF" => Some(f64::INFINITY),
                "-INF" => Some(f64::NEG_INFINITY),
                "NaN" => Some(f64::NAN),
                text => text.parse().ok().filter(|value: &f64| value.is_finite()),
            },
        }
    }

    /// As a boolean.
    pub(super) fn boolean(self) -> Option<bool> {
        match self {
            Self::One(Text::True | Text::One | Text::Bool(true)) => Some(true),
            Self::One(Text::False | Text::Zero | Text::Bool(false)) => Some(false),
            other => match other.text().trim() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
        }
    }
}
