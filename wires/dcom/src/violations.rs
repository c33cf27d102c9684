//! The ways in which a peer's NDR can be wrong: one variant each, so that tests, metrics and `everywire
//! explain` count by name.
//!
//! The RPC layer below has its own list, `ProtocolError`. A `Violation` is found inside of a stub, after the PDU was
//! taken: it fails one call and leaves the connection open. A `ProtocolError` ends the connection.

pub use crate::pdu::ProtocolError;

use everywire_model::{Failure, Initiator, Kind, violations};
use std::fmt;

violations! {
    /// One way of being wrong; the name is stable and stands in the failure's code.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Violation {
        /// The stub ends inside a value.
        Truncated => "the stub ends inside a value";
        /// An array claims more elements than the rest of the stub can hold.
        CountBeyondMessage => "an array claims more elements than the stub can hold";
        /// An array or a string is longer than its bound.
        BoundExceeded => "an array or string is longer than its bound";
        /// An array holds another number of elements than the value beside it says (`size_is`).
        CountMismatch => "an array and the value that says its size contradict each other";
        /// A union has another arm than the value beside it chooses (`switch_is`).
        ArmMismatch => "a union and the value that chooses its arm contradict each other";
        /// The counts of a conformant-varying array contradict each other, or its offset is not 0.
        BadVariance => "maximum, offset and actual count of an array contradict each other";
        /// A pointer that must not be null is null.
        NullReference => "a pointer is null where the contract promises a value";
        /// Pointers behind pointers, deeper than any honest value: a cycle.
        PointerDepth => "pointers are nested too deeply";
        /// A string is not valid text.
        BadText => "a string is not valid text";
        /// A character is none.
        BadCharacter => "a character is not valid";
        /// A value that its enumeration does not name.
        UnknownEnumerant => "a value is no member of its enumeration";
        /// A BSTR whose byte count and word count differ.
        BadBstr => "the sizes of a BSTR contradict each other";
        /// A VARIANT whose type and discriminant do not agree.
        BadVariant => "type and discriminant of a VARIANT contradict each other";
        /// VARIANTs in VARIANTs, deeper than allowed.
        VariantDepth => "VARIANTs are nested too deeply";
        /// A SAFEARRAY whose dimensions, features or sizes do not agree.
        BadSafearray => "dimensions, type and sizes of a SAFEARRAY contradict each other";
        /// An interface pointer whose OBJREF is broken.
        BadObjref => "an interface pointer holds no valid OBJREF";
        /// A stream of a serialized type with another header.
        BadSerialization => "a serialized type has another header";
        /// Activation properties without those that must be there.
        BadActivation => "activation properties are missing";
        /// A protocol tower without an interface or a transfer syntax, or with too many floors.
        BadTower => "a protocol tower is broken";
        /// Values are read or written against the grammar of the visit.
        Misuse => "values were visited against the grammar";
    }
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

/// What NDR cannot carry, or this crate does not.
#[cold]
pub(crate) fn unsupported(what: impl fmt::Display) -> Failure {
    Failure::unsupported(format!("NDR does not carry {what}"))
}
