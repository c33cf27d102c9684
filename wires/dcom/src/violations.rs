//! The ways in which a peer's NDR can be wrong: one variant each, so that tests, metrics and `everywire
//! explain` count by name.
//!
//! The RPC layer below has its own list, `Breach`. A `Violation` is found inside of a stub, after the PDU was
//! taken: it fails one call and leaves the connection open. A `Breach` ends the connection.

pub use crate::pdu::Breach;

use everywire_model::{Failure, Initiator, Kind};
use std::fmt;

/// One way of being wrong; the name is stable and stands in the failure's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Violation {
    /// The stub ends inside a value.
    Truncated,
    /// An array claims more elements than the rest of the stub can hold.
    CountBeyondMessage,
    /// An array or a string is longer than its bound.
    BoundExceeded,
    /// An array holds another number of elements than the value beside it says (`size_is`).
    CountMismatch,
    /// The counts of a conformant-varying array contradict each other, or its offset is not 0.
    BadVariance,
    /// A pointer that must not be null is null.
    NullReference,
    /// Pointers behind pointers, deeper than any honest value: a cycle.
    PointerDepth,
    /// A string is not valid text.
    BadText,
    /// A character is none.
    BadCharacter,
    /// A value that its enumeration does not name.
    UnknownEnumerant,
    /// A BSTR whose byte count and word count differ.
    BadBstr,
    /// A VARIANT whose type and discriminant do not agree.
    BadVariant,
    /// VARIANTs in VARIANTs, deeper than allowed.
    VariantDepth,
    /// A SAFEARRAY whose dimensions, features or sizes do not agree.
    BadSafearray,
    /// An interface pointer whose OBJREF is broken.
    BadObjref,
    /// A stream of a serialized type with another header.
    BadSerialization,
    /// Activation properties without those that must be there.
    BadActivation,
    /// A protocol tower without an interface or a transfer syntax, or with too many floors.
    BadTower,
    /// Values are read or written against the grammar of the visit.
    Misuse,
}

impl Violation {
    /// The failure for this violation, `offset` bytes into the stub.
    /// Depths are limits of this side and become `LimitExceeded`; `Misuse` is a mistake of the caller here
    /// and blames no peer; all others are `Malformed` by the peer.
    #[cold]
    pub fn at(self, offset: usize) -> Failure {
        let failure = match self {
            Self::PointerDepth | Self::VariantDepth => {
                Failure::new(Kind::LimitExceeded, Initiator::Peer, format!("{self} (at byte {offset})"))
            }
            Self::Misuse => Failure::new(Kind::Internal, Initiator::Here, self.to_string()),
            _ => Failure::malformed(self, offset),
        };
        failure.with_code(format!("ndr {self:?}"))
    }
}

/// For stubs that are read as a whole: where in them it was is not known.
impl From<Violation> for Failure {
    #[cold]
    fn from(violation: Violation) -> Self {
        violation.at(0)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the stub ends inside a value",
            Self::CountBeyondMessage => "an array claims more elements than the stub can hold",
            Self::BoundExceeded => "an array or string is longer than its bound",
            Self::CountMismatch => "an array and the value that says its size contradict each other",
            Self::BadVariance => "maximum, offset and actual count of an array contradict each other",
            Self::NullReference => "a pointer is null where the contract promises a value",
            Self::PointerDepth => "pointers are nested too deeply",
            Self::BadText => "a string is not valid text",
            Self::BadCharacter => "a character is not valid",
            Self::UnknownEnumerant => "a value is no member of its enumeration",
            Self::BadBstr => "the sizes of a BSTR contradict each other",
            Self::BadVariant => "type and discriminant of a VARIANT contradict each other",
            Self::VariantDepth => "VARIANTs are nested too deeply",
            Self::BadSafearray => "dimensions, type and sizes of a SAFEARRAY contradict each other",
            Self::BadObjref => "an interface pointer holds no valid OBJREF",
            Self::BadSerialization => "a serialized type has another header",
            Self::BadActivation => "activation properties are missing",
            Self::BadTower => "a protocol tower is broken",
            Self::Misuse => "values were visited against the grammar",
        })
    }
}

/// What NDR cannot carry, or this crate does not.
#[cold]
pub(crate) fn unsupported(what: impl fmt::Display) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::Here, format!("NDR does not carry {what}"))
}
