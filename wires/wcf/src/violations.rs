//! The ways in which a peer's binary XML can be wrong.

use everywire_model::{Failure, Initiator, Kind};
use std::fmt;

/// One way of being wrong; the name is stable and stands in the failure's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Violation {
    /// The document ends inside a record or an element.
    Truncated,
    /// A record type that does not exist, or may not stand here.
    UnexpectedRecord,
    /// A multi-byte integer of more than 31 bits, or longer than needed.
    BadInteger,
    /// A length that is negative, or more than the document holds.
    BadLength,
    /// A name, prefix or namespace longer than allowed.
    NameTooLong,
    /// Text that is not valid in its encoding.
    BadText,
    /// A number of the static or the session dictionary that stands for no word.
    UnknownWord,
    /// The session dictionary outgrew its quota.
    SessionTooLarge,
    /// The table of new words before a document is broken.
    BadTable,
    /// Elements are nested too deeply.
    TooDeep,
    /// An element has too many attributes.
    TooManyAttributes,
    /// An end without an element, or bytes after the last end.
    Unbalanced,
    /// An array of items that cannot be in one, or without an element of its own.
    BadArray,
    /// A decimal, date or identifier out of its range.
    OutOfRange,
    /// Text that is no value of the expected type.
    BadValue,
    /// The contract expects another element here.
    UnexpectedElement,
    /// An element that the contract expects is missing.
    MissingElement,
    /// An element is nil where the contract promises a value.
    Nil,
    /// A name that the enumeration does not have.
    UnknownEnumerant,
    /// More elements than the bound allows.
    BoundExceeded,
    /// Values are read or written against the grammar of the visit.
    Misuse,
}

impl Violation {
    /// The failure for this violation, `offset` bytes into the document.
    #[cold]
    pub fn at(self, offset: usize) -> Failure {
        let failure = match self {
            Self::TooDeep | Self::TooManyAttributes | Self::SessionTooLarge | Self::NameTooLong => {
                Failure::new(Kind::LimitExceeded, Initiator::Peer, format!("{self} (at byte {offset})"))
            }
            Self::Misuse => Failure::new(Kind::Internal, Initiator::Here, self.to_string()),
            _ => Failure::malformed(self, offset),
        };
        failure.with_code(format!("nbfx {self:?}"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the document ends early",
            Self::UnexpectedRecord => "a record does not exist or may not stand here",
            Self::BadInteger => "a multi-byte integer is not minimal or exceeds 31 bits",
            Self::BadLength => "a length exceeds the document",
            Self::NameTooLong => "a name is too long",
            Self::BadText => "text is not valid in its encoding",
            Self::UnknownWord => "a dictionary has no word of this number",
            Self::SessionTooLarge => "the session dictionary exceeds its quota",
            Self::BadTable => "the table of session words is broken",
            Self::TooDeep => "elements are nested too deeply",
            Self::TooManyAttributes => "an element has too many attributes",
            Self::Unbalanced => "starts and ends of elements do not match",
            Self::BadArray => "an array record is broken",
            Self::OutOfRange => "a decimal or date is out of range",
            Self::BadValue => "text is no value of the expected type",
            Self::UnexpectedElement => "another element is expected",
            Self::MissingElement => "an expected element is missing",
            Self::Nil => "an element is nil where a value is promised",
            Self::UnknownEnumerant => "a name is no member of its enumeration",
            Self::BoundExceeded => "more elements than the bound allows",
            Self::Misuse => "values were visited against the grammar",
        })
    }
}

/// What this mapping to XML cannot carry.
#[cold]
pub(crate) fn unsupported(what: impl fmt::Display) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::Here, format!("binary XML does not carry {what}"))
}
