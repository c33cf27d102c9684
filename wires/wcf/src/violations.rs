//! The ways in which a peer's XML, binary or text, can be wrong, and its framing.
//!
//! `Violation` is about a document: MC-NBFX records, the text of XML, the SOAP envelope, and values that do
//! not fit their contract. `ProtocolError` is about the bytes around documents: records of MC-NMF and the rules of
//! a channel. What a peer of HTTP does wrong stands in `everywire_http::ProtocolError`.
//!
//! There is no state. A decoder makes a `Violation`, says at which byte of the document it stands (`at`),
//! and so gets a `Failure` for whoever waits for the value. A session makes a `ProtocolError`, tells the peer of
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
use everywire_model::{Failure, Initiator, Kind, violations};
use std::fmt;

violations! {
    /// One way of being wrong; the name is stable and stands in the failure's code.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Violation {
        /// The document ends inside a record or an element.
        Truncated => "the document ends early";
        /// A record type that does not exist, or may not stand here.
        UnexpectedRecord => "a record does not exist or may not stand here";
        /// A multi-byte integer of more than 31 bits, or longer than needed.
        BadInteger => "a multi-byte integer is not minimal or exceeds 31 bits";
        /// A length that is negative, or more than the document holds.
        BadLength => "a length exceeds the document";
        /// A name, prefix or namespace longer than allowed.
        NameTooLong => "a name is too long";
        /// Text that is not valid in its encoding.
        BadText => "text is not valid in its encoding";
        /// A number of the static or the session dictionary that stands for no word.
        UnknownWord => "a dictionary has no word of this number";
        /// The session dictionary outgrew its quota.
        SessionTooLarge => "the session dictionary exceeds its quota";
        /// The table of new words before a document is broken.
        BadTable => "the table of session words is broken";
        /// Elements are nested too deeply.
        TooDeep => "elements are nested too deeply";
        /// An element has too many attributes.
        TooManyAttributes => "an element has too many attributes";
        /// An element has two attributes of one name.
        DuplicateAttribute => "an element has two attributes of one name";
        /// An element comes again though its member holds one value.
        RepeatedElement => "an element comes again whose member holds one value";
        /// An array record stands for an element of which there is one.
        ArrayForOne => "an array record stands in place of a single element";
        /// An end without an element, or bytes after the last end.
        Unbalanced => "starts and ends of elements do not match";
        /// An array of items that cannot be in one, or without an element of its own.
        BadArray => "an array record is broken";
        /// A decimal, date or identifier out of its range.
        OutOfRange => "a decimal or date is out of range";
        /// Text that is no value of the expected type.
        BadValue => "text is no value of the expected type";
        /// The contract expects another element here.
        UnexpectedElement => "another element is expected";
        /// An element that the contract expects is missing.
        MissingElement => "an expected element is missing";
        /// An element is nil where the contract promises a value.
        Nil => "an element is nil where a value is promised";
        /// A name that the enumeration does not have.
        UnknownEnumerant => "a name is no member of its enumeration";
        /// More elements than the bound allows.
        BoundExceeded => "more elements than the bound allows";
        /// XML text that is not well-formed.
        Markup => "XML text is not well-formed";
        /// A name that XML does not allow.
        BadName => "a name is not one of XML";
        /// A document type: those are never read.
        DocumentType => "document types are not read";
        /// A reference to an entity that XML does not name itself.
        Entity => "an entity is not one of the five of XML";
        /// A processing instruction.
        ProcessingInstruction => "processing instructions are not read";
        /// Too many namespaces are declared at once.
        TooManyPrefixes => "too many namespaces are declared";
        /// A prefix that no namespace was declared for.
        UnknownPrefix => "a prefix stands for no namespace";
        /// A declaration that a prefix stands for nothing, or that a prefix or namespace of XML itself stands for another.
        Declaration => "a namespace is declared as none may be";
        /// An element stands for another one that is not there.
        UnknownReference => "an element stands for another one (z:Ref, href) that is not there";
        /// The document is no envelope of the expected version of SOAP.
        NoEnvelope => "the document is no envelope of the expected version of SOAP";
        /// An envelope has too many headers.
        TooManyHeaders => "an envelope has too many headers";
        /// Values are read or written against the grammar of the visit.
        Misuse => "values were visited against the grammar";
    }
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
            | Self::ProcessingInstruction
            | Self::TooManyPrefixes
            | Self::Declaration
            | Self::UnknownPrefix => "xml",
            _ => "nbfx",
        };
        failure.with_code(format!("{layer} {self:?}"))
    }
}

/// What this mapping to XML cannot carry: a gap of this side, for which neither the peer nor the user's
/// data are to blame.
#[cold]
pub(crate) fn unsupported(what: impl fmt::Display) -> Failure {
    let what = format!("the data contract mapping does not carry {what}");
    Failure::unsupported(what)
}

violations! {
    "wcf"
    /// How a peer broke the framing (MC-NMF), or what this side does not let through.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ProtocolError {
        /// No record is of this type.
        UnknownRecord { octet: u8 } => "no record is of type {octet:#04x}";
        /// A record may not stand here.
        Unexpected { record: RecordKind, expected: &'static str } =>
            "a record {} stands where {expected} is expected", record.word();
        /// A size of more than 31 bits, or longer than needed.
        Size => "the size of a record is not minimal or exceeds 31 bits";
        /// A record without contents, which must have some.
        Empty { record: RecordKind } => "a record {} is empty", record.word();
        /// The text of a record is longer than its quota.
        TextTooLong { record: RecordKind, size: usize, limit: usize } =>
            "a record {} of {size} bytes exceeds {}", record.word(), quota(*record, *limit);
        /// A version of the framing that this side does not speak.
        Version { major: u8, minor: u8 } => "framing {major}.{minor} is not spoken here (1.0 is)";
        /// A mode that does not exist, or is not served.
        Mode { mode: u8 } => "mode {mode} does not exist or is not served";
        /// The via is no UTF-8 text.
        Via => "the via is no UTF-8 text";
        /// Nothing is served under this via.
        NoEndpoint { via: String } => "nothing is served at {via}";
        /// An encoding that is not spoken, or not in this mode.
        ContentType { name: String } => "the encoding {name} is not spoken in this mode";
        /// An upgrade that does not exist, is not offered here, or comes a second time.
        Upgrade { name: String } => "the upgrade {name} is not offered";
        /// Bytes came after a request to upgrade and before it was answered, or with the answer: whoever put them there is not
        /// protected by what follows.
        EarlyBytes { bytes: usize } => "{bytes} bytes came before the upgrade that should protect them";
        /// The preamble ended without the upgrade that this side demands.
        SecurityRequired { upgrade: &'static str } =>
            "stream security is required ({upgrade}), but the preamble ended without it";
        /// The bytes are those of another protocol.
        Foreign { protocol: &'static str, schemes: &'static str } => "this is {protocol}, not net.tcp: {schemes}";
        /// More calls wait than may, on a connection that has to read on.
        Waiting { limit: usize } => "more than {limit} calls of one connection wait";
        /// As many sessions as the place allows for are served already.
        Busy { limit: usize } =>
            "MaxConcurrentSessions ({limit}) sessions are served already, and as many wait as MaxPendingConnections allows; raise them with \
                `MaxConcurrentSessions=` and `MaxPendingConnections=` in the address";
        /// The handshake of an upgrade failed, or what it protects is not genuine.
        Authentication { message: String } => "{message}";
        /// A message is larger than this side accepts.
        /// A framed size, a chunked message so far, or what came out of a decompressor.
        OverLimit { size: u64, limit: u64 } =>
            "the maximum message size quota for incoming messages ({limit}) has been exceeded by a message of {size} bytes or more; raise \
                it with `MaxReceivedMessageSize=` in the address";
        /// The peer told of a fault (a Fault record) and closed; on the connecting side, the failure behind it
        /// is kept as the session's refusal.
        Refused { message: String } => "{message}";
        /// An envelope that breaks the session.
        Envelope { message: String } => "an envelope breaks the session: {message}";
        /// The preamble did not come, or was not answered, in time: ChannelInitializationTimeout here,
        /// OpenTimeout there.
        NoPreamble { seconds: u64 } =>
            "the channel was not open within {seconds} s; raise ChannelInitializationTimeout (accepting) or OpenTimeout (connecting)";
        /// A message began and did not arrive in time.
        TooSlow { seconds: u64 } => "a message that had begun did not arrive within {seconds} s";
    }
}

/// The quota of a record's text, and how it is raised.
fn quota(record: RecordKind, limit: usize) -> String {
    let name = match record {
        RecordKind::Via => "MaxViaSize",
        RecordKind::ExtensibleEncoding => "MaxContentTypeSize",
        _ => return format!("the limit ({limit})"),
    };
    format!("{name} ({limit}); raise it with `{name}=` in the address")
}
