//! Each way a peer can be wrong is one named variant.
//!
//! A violation ends the connection, and the protocol has no word to tell the peer why. What concerns one call
//! alone (values that do not decode, a message of somebody on a bus that is too large) is a `Failure` of that
//! call and not here. The names are stable, since tests, metrics and `trace` count by them.

use everywire_model::Violation;
use std::fmt;

/// How a peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// A message begins with no byte-order mark.
    NotDbus {
        /// The octet.
        found: u8,
    },
    /// A version this side does not speak.
    Version {
        /// The octet.
        found: u8,
    },
    /// A message of the type INVALID.
    Kind,
    /// A message without a serial number.
    ZeroSerial,
    /// A message is larger than this side accepts.
    OverLimit {
        /// Its bytes, header included.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The header fields take more bytes than this side accepts.
    Fields {
        /// Their bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A header does not decode.
    Header {
        /// What is wrong.
        what: &'static str,
        /// Offset in the message.
        at: usize,
    },
    /// Padding that is not zero.
    Padding {
        /// Offset in the message.
        at: usize,
    },
    /// A header field has the wrong type.
    FieldType {
        /// The field.
        field: &'static str,
    },
    /// A header field stands twice.
    FieldTwice {
        /// The field.
        field: &'static str,
    },
    /// A header field has a value that its kind of name does not allow.
    FieldValue {
        /// The field.
        field: &'static str,
    },
    /// A header field is missing.
    Missing {
        /// The kind of message.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The signature in a header breaks the specification's rules.
    Signature {
        /// Which.
        what: &'static str,
    },
    /// A body without a signature.
    NoSignature {
        /// Its bytes.
        bytes: u32,
    },
    /// The path or interface that the specification reserves for a message within a process.
    Reserved,
    /// More handles than a message may have.
    TooManyHandles {
        /// How many.
        count: usize,
    },
    /// Handles that no message announces, or fewer than one does.
    Handles {
        /// What the message says.
        announced: usize,
        /// What came.
        came: usize,
    },
    /// Handles on a connection that did not agree to them.
    HandlesUnasked,
    /// A message, or the greeting, began and did not arrive in time.
    TooSlow {
        /// Seconds it was given.
        seconds: u64,
    },
    /// Authentication failed.
    Authentication {
        /// How.
        what: String,
    },
    /// The bus refused to greet, to give the name or to let us monitor.
    Unwelcome {
        /// What it said.
        what: String,
    },
}

impl Wrong {
    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotDbus { .. } => "NotDbus",
            Self::Version { .. } => "Version",
            Self::Kind => "Kind",
            Self::ZeroSerial => "ZeroSerial",
            Self::OverLimit { .. } => Violation::OVER_LIMIT,
            Self::Fields { .. } => "Fields",
            Self::Header { .. } => "Header",
            Self::Padding { .. } => "Padding",
            Self::FieldType { .. } => "FieldType",
            Self::FieldTwice { .. } => "FieldTwice",
            Self::FieldValue { .. } => "FieldValue",
            Self::Missing { .. } => "Missing",
            Self::Signature { .. } => "Signature",
            Self::NoSignature { .. } => "NoSignature",
            Self::Reserved => "Reserved",
            Self::TooManyHandles { .. } => "TooManyHandles",
            Self::Handles { .. } => "Handles",
            Self::HandlesUnasked => "HandlesUnasked",
            Self::TooSlow { .. } => "TooSlow",
            Self::Authentication { .. } => "Authentication",
            Self::Unwelcome { .. } => "Unwelcome",
        }
    }

    /// The neutral violation; `offset` counts bytes received on the connection before the message.
    #[cold]
    pub fn violation(&self, offset: u64) -> Violation {
        Violation { wire: "dbus", name: self.name(), message: self.to_string(), offset }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDbus { found } => {
                write!(f, "a message begins with `{}` instead of `l` or `B`", found.escape_ascii())
            }
            Self::Version { found } => write!(f, "version {found} of the protocol is not spoken here (1 is)"),
            Self::Kind => f.write_str("a message is of the type INVALID"),
            Self::ZeroSerial => f.write_str("a message has the serial number 0"),
            Self::OverLimit { size, limit } => {
                write!(f, "a message of {size} bytes exceeds the limit of {limit} bytes")
            }
            Self::Fields { size, limit } => {
                write!(f, "header fields of {size} bytes exceed the limit of {limit} bytes")
            }
            Self::Header { what, at } => write!(f, "{what}, at byte {at} of the message"),
            Self::Padding { at } => write!(f, "padding is not zero at byte {at} of the message"),
            Self::FieldType { field } => write!(f, "the header field {field} has a wrong type"),
            Self::FieldTwice { field } => write!(f, "the header field {field} stands twice"),
            Self::FieldValue { field } => {
                write!(f, "the header field {field} breaks the rules for its value")
            }
            Self::Missing { kind, field } => write!(f, "a {kind} lacks the header field {field}"),
            Self::Signature { what } => write!(f, "a signature is wrong: {what}"),
            Self::NoSignature { bytes } => write!(f, "a body of {bytes} bytes has no signature"),
            Self::Reserved => f.write_str("a message bears the path or the interface reserved for local use"),
            Self::TooManyHandles { count } => write!(f, "{count} handles came; a message may have 16"),
            Self::Handles { announced, came } => {
                write!(f, "a message announces {announced} handles, and {came} came with it")
            }
            Self::HandlesUnasked => {
                f.write_str("handles came on a connection that did not agree to pass them")
            }
            Self::TooSlow { seconds } => {
                write!(f, "a message, or the greeting, did not arrive within {seconds} s")
            }
            Self::Authentication { what } => write!(f, "authentication failed: {what}"),
            Self::Unwelcome { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Wrong {}
