//! The ways in which a peer's XML, binary or text, can be wrong, and its framing.
//!
//! `Violation` is about a document: MC-NBFX records, the text of XML, the SOAP envelope, and values that do
//! not fit their contract. `Breach` is about the bytes around documents: records of MC-NMF and the rules of
//! a channel. What a peer of HTTP does wrong stands in `http::breach`.
//!
//! There is no state. A decoder makes a `Violation`, says at which byte of the document it stands (`at`),
//! and so gets a `Failure` for whoever waits for the value. A session makes a `Breach`, tells the peer of
//! it where the specification has a fault for that (`framing::faults`), and gives the link a neutral
//! violation, by which the connection ends.
//!
//! What holds:
//!
//! * Each way of being wrong has one variant. Its name is stable: it stands in a failure's code (`nbfx
//!   BadInteger`, `xml Entity`), in metrics and in `cli/help/codes.tsv`, which tests compare with this
//!   list.
//! * What exceeds a bound of this side is `LimitExceeded`, and not malformed: the user can raise most of
//!   these bounds, and the message says how.
//! * Texts of a peer inside a breach (`via`, `name`) were escaped before, so no control character of a peer
//!   reaches a terminal.
//! * `Misuse` is the only one that the peer is not to blame for.

use crate::framing::RecordKind;
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
    /// An element has two attributes of one name.
    DuplicateAttribute,
    /// An element comes again though its member holds one value.
    RepeatedElement,
    /// An array record stands for an element of which there is one.
    ArrayForOne,
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
    /// XML text that is not well-formed.
    Markup,
    /// A name that XML does not allow.
    BadName,
    /// A document type: those are never read.
    DocumentType,
    /// A reference to an entity that XML does not name itself.
    Entity,
    /// A processing instruction.
    ProcessingInstruction,
    /// Too many namespaces are declared at once.
    TooManyPrefixes,
    /// A prefix that no namespace was declared for.
    UnknownPrefix,
    /// An element stands for another one that is not there.
    UnknownReference,
    /// The document is no envelope of the expected version of SOAP.
    NoEnvelope,
    /// An envelope has too many headers.
    TooManyHeaders,
    /// Values are read or written against the grammar of the visit.
    Misuse,
}

impl Violation {
    /// The failure for this violation, `offset` bytes into the document.
    #[cold]
    pub fn at(self, offset: usize) -> Failure {
        // `Failure::malformed` puts the offset into its message; for limits it is written out.
        let failure = match self {
            Self::TooDeep
            | Self::TooManyAttributes
            | Self::TooManyPrefixes
            | Self::TooManyHeaders
            | Self::SessionTooLarge
            | Self::NameTooLong => {
                Failure::new(Kind::LimitExceeded, Initiator::Peer, format!("{self} (at byte {offset})"))
            }
            Self::Misuse => Failure::new(Kind::Internal, Initiator::Here, self.to_string()),
            _ => Failure::malformed(self, offset),
        };
        let failure = match self {
            Self::SessionTooLarge => failure.with_hint("raise it with `MaxSessionSize=` in the address"),
            _ => failure,
        };
        // Which of the two readers can meet it; what both can meet counts as `nbfx`.
        let layer = match self {
            Self::Markup
            | Self::BadName
            | Self::DocumentType
            | Self::Entity
            | Self::ProcessingInstruction => "xml",
            Self::TooManyPrefixes | Self::UnknownPrefix => "xml",
            _ => "nbfx",
        };
        failure.with_code(format!("{layer} {self:?}"))
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
            Self::DuplicateAttribute => "an element has two attributes of one name",
            Self::RepeatedElement => "an element comes again whose member holds one value",
            Self::ArrayForOne => "an array record stands in place of a single element",
            Self::Unbalanced => "starts and ends of elements do not match",
            Self::BadArray => "an array record is broken",
            Self::OutOfRange => "a decimal or date is out of range",
            Self::BadValue => "text is no value of the expected type",
            Self::UnexpectedElement => "another element is expected",
            Self::MissingElement => "an expected element is missing",
            Self::Nil => "an element is nil where a value is promised",
            Self::UnknownEnumerant => "a name is no member of its enumeration",
            Self::BoundExceeded => "more elements than the bound allows",
            Self::Markup => "XML text is not well-formed",
            Self::BadName => "a name is not one of XML",
            Self::DocumentType => "document types are not read",
            Self::Entity => "an entity is not one of the five of XML",
            Self::ProcessingInstruction => "processing instructions are not read",
            Self::TooManyPrefixes => "too many namespaces are declared",
            Self::UnknownPrefix => "a prefix stands for no namespace",
            Self::UnknownReference => "an element stands for another one (z:Ref) that is not there",
            Self::NoEnvelope => "the document is no envelope of the expected version of SOAP",
            Self::TooManyHeaders => "an envelope has too many headers",
            Self::Misuse => "values were visited against the grammar",
        })
    }
}

/// What this mapping to XML cannot carry: a gap of this side, for which neither the peer nor the user's
/// data are to blame.
#[cold]
pub(crate) fn unsupported(what: impl fmt::Display) -> Failure {
    let what = format!("the data contract mapping does not carry {what}");
    Failure::new(Kind::Unsupported, Initiator::Here, what)
}

/// How a peer broke the framing (MC-NMF), or what this side does not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breach {
    /// No record is of this type.
    UnknownRecord {
        /// The octet.
        octet: u8,
    },
    /// A record may not stand here.
    Unexpected {
        /// The record.
        record: RecordKind,
        /// What may.
        expected: &'static str,
    },
    /// A size of more than 31 bits, or longer than needed.
    Size,
    /// A record without contents, which must have some.
    Empty {
        /// The record.
        record: RecordKind,
    },
    /// The text of a record is longer than its quota.
    TextTooLong {
        /// The record.
        record: RecordKind,
        /// Its bytes.
        size: usize,
        /// The quota.
        limit: usize,
    },
    /// A version of the framing that this side does not speak.
    Version {
        /// Major number.
        major: u8,
        /// Minor number.
        minor: u8,
    },
    /// A mode that does not exist, or is not served.
    Mode {
        /// The octet.
        mode: u8,
    },
    /// The via is no UTF-8 text.
    Via,
    /// Nothing is served under this via.
    NoEndpoint {
        /// The URI.
        via: String,
    },
    /// An encoding that is not spoken, or not in this mode.
    ContentType {
        /// Its content type.
        name: String,
    },
    /// An upgrade that does not exist, is not offered here, or comes a second time.
    Upgrade {
        /// Its name.
        name: String,
    },
    /// Bytes came after a request to upgrade and before it was answered, or with the answer: whoever put them there is not
    /// protected by what follows.
    EarlyBytes {
        /// How many.
        bytes: usize,
    },
    /// The preamble ended without the upgrade that this side demands.
    SecurityRequired {
        /// What it demands.
        upgrade: &'static str,
    },
    /// The bytes are those of another protocol.
    Foreign {
        /// Its name.
        protocol: &'static str,
        /// How it is called here.
        schemes: &'static str,
    },
    /// More calls wait than may, on a connection that has to read on.
    Waiting {
        /// How many may.
        limit: usize,
    },
    /// As many sessions as the place allows for are served already.
    Busy {
        /// How many.
        limit: usize,
    },
    /// The handshake of an upgrade failed, or what it protects is not genuine.
    Authentication {
        /// Why.
        message: String,
    },
    /// A message is larger than this side accepts.
    /// A framed size, a chunked message so far, or what came out of a decompressor.
    OverLimit {
        /// Its bytes, as far as they are known: one more than the limit where reading stopped there.
        size: u64,
        /// The quota.
        limit: u64,
    },
    /// The peer told of a fault (a Fault record) and closed; on the connecting side, the failure behind it
    /// is kept as the session's refusal.
    Refused {
        /// What it said.
        message: String,
    },
    /// An envelope that breaks the session.
    Envelope {
        /// Why.
        message: String,
    },
    /// The preamble did not come, or was not answered, in time: ChannelInitializationTimeout here,
    /// OpenTimeout there.
    NoPreamble {
        /// Seconds it was given.
        seconds: u64,
    },
    /// A message began and did not arrive in time.
    TooSlow {
        /// Seconds it was given.
        seconds: u64,
    },
}

impl Breach {
    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub fn name(&self) -> &'static str {
        self.told().0
    }

    /// The neutral violation; `offset` counts bytes received on the connection before the record.
    #[cold]
    pub fn violation(&self, offset: u64) -> everywire_model::Violation {
        let (name, message) = self.told();
        everywire_model::Violation { wire: "wcf", name, message, offset }
    }

    /// The variant's name, and what it says.
    fn told(&self) -> (&'static str, String) {
        match self {
            Self::UnknownRecord { octet } => ("UnknownRecord", format!("no record is of type {octet:#04x}")),
            Self::Unexpected { record, expected } => {
                let record = record.word();
                ("Unexpected", format!("a record {record} stands where {expected} is expected"))
            }
            Self::Size => ("Size", "the size of a record is not minimal or exceeds 31 bits".into()),
            Self::Empty { record } => ("Empty", format!("a record {} is empty", record.word())),
            Self::TextTooLong { record, size, limit } => {
                let (quota, way) = match record {
                    RecordKind::Via => ("MaxViaSize", "; raise it with `MaxViaSize=` in the address"),
                    RecordKind::ExtensibleEncoding => {
                        ("MaxContentTypeSize", "; raise it with `MaxContentTypeSize=` in the address")
                    }
                    _ => ("the limit", ""),
                };
                let record = record.word();
                let what = format!("a record {record} of {size} bytes exceeds {quota} ({limit}){way}");
                ("TextTooLong", what)
            }
            Self::Version { major, minor } => {
                ("Version", format!("framing {major}.{minor} is not spoken here (1.0 is)"))
            }
            Self::Mode { mode } => ("Mode", format!("mode {mode} does not exist or is not served")),
            Self::Via => ("Via", "the via is no UTF-8 text".into()),
            Self::NoEndpoint { via } => ("NoEndpoint", format!("nothing is served at {via}")),
            Self::ContentType { name } => {
                ("ContentType", format!("the encoding {name} is not spoken in this mode"))
            }
            Self::Upgrade { name } => ("Upgrade", format!("the upgrade {name} is not offered")),
            Self::EarlyBytes { bytes } => {
                ("EarlyBytes", format!("{bytes} bytes came before the upgrade that should protect them"))
            }
            Self::SecurityRequired { upgrade } => {
                let what =
                    format!("stream security is required ({upgrade}), but the preamble ended without it");
                ("SecurityRequired", what)
            }
            Self::Foreign { protocol, schemes } => {
                ("Foreign", format!("this is {protocol}, not net.tcp: {schemes}"))
            }
            Self::Waiting { limit } => ("Waiting", format!("more than {limit} calls of one connection wait")),
            Self::Busy { limit } => {
                let what = format!(
                    "MaxConcurrentSessions ({limit}) sessions are served already, and as many wait as MaxPendingConnections allows; raise them with `MaxConcurrentSessions=` and `MaxPendingConnections=` \
                     in the address"
                );
                ("Busy", what)
            }
            Self::Authentication { message } => ("Authentication", message.clone()),
            Self::Refused { message } => ("Refused", message.clone()),
            Self::OverLimit { size, limit } => {
                let what = format!(
                    "the maximum message size quota for incoming messages ({limit}) has been exceeded by a message of \
                     {size} bytes or more; raise it with `MaxReceivedMessageSize=` in the address"
                );
                (everywire_model::Violation::OVER_LIMIT, what)
            }
            Self::Envelope { message } => ("Envelope", format!("an envelope breaks the session: {message}")),
            Self::NoPreamble { seconds } => {
                let what = format!(
                    "the channel was not open within {seconds} s; raise ChannelInitializationTimeout (accepting) or \
                     OpenTimeout (connecting)"
                );
                ("NoPreamble", what)
            }
            Self::TooSlow { seconds } => {
                ("TooSlow", format!("a message that had begun did not arrive within {seconds} s"))
            }
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told().1)
    }
}

impl std::error::Error for Breach {}
