//! System exceptions and neutral failures, both ways, in one place (CORBA 3.3 part 1, annex A).
//!
//! On the wire a system exception is a repository id, a minor code and a completion status (part 2, section
//! 9.4.3.2). A `Failure` of the model says more: a kind, a sentence, a hint, who caused it. Three tables
//! translate: `EXCEPTIONS` (exception to kind, for what comes), `FAILURES` (kind to exception, for what is
//! sent) and `MINORS` (minor codes of the OMG and of omniORB that tell more than their exception).
//!
//! Between two peers of this make nothing is lost: the service context FAILURE beside the exception carries
//! kind, sentence and hint (`FailureDetail`). A failure that came from another ORB and is passed on keeps its
//! exception and minor code, by the code in the failure (`parse_code`).
//!
//! Nothing is kept here. What comes is hostile text: an unknown exception becomes `Kind::Internal`, an
//! unknown completion status `Maybe`, and texts that are sent are cut at `EXPLANATION` octets.

use crate::cdr::{CdrWriter, DecodeError, Get, ReadCdr, WriteCdr};
use everywire_model::{Completed, Failure, Initiator, Kind};

/// High half of the minor codes of the specification.
pub(crate) const OMG_MINOR: u32 = 0x4f4d_0000;
/// High half of omniORB's minor codes.
pub(crate) const OMNIORB_MINOR: u32 = 0x4154_0000;
/// High half of this side's minor codes, `EW`; the low half is the row in `FAILURES`, counted from 1. A new
/// row goes to the end, so that numbers keep their meaning.
pub(crate) const OWN_MINOR: u32 = 0x4557_0000;

/// All system exceptions of the specification, and the kind of failure that each stands for. An exception
/// that is not here is not passed on by name.
const EXCEPTIONS: &[(&str, Kind)] = &[
    ("UNKNOWN", Kind::Internal),
    ("BAD_PARAM", Kind::BadArgument),
    ("NO_MEMORY", Kind::LimitExceeded),
    ("IMP_LIMIT", Kind::LimitExceeded),
    ("COMM_FAILURE", Kind::Unreachable),
    ("INV_OBJREF", Kind::BadReference),
    ("NO_PERMISSION", Kind::Refused),
    ("INTERNAL", Kind::Internal),
    ("MARSHAL", Kind::Malformed),
    ("INITIALIZE", Kind::Internal),
    ("NO_IMPLEMENT", Kind::Unsupported),
    ("BAD_TYPECODE", Kind::Malformed),
    ("BAD_OPERATION", Kind::NoOperation),
    ("NO_RESOURCES", Kind::Busy),
    ("NO_RESPONSE", Kind::TimedOut),
    ("PERSIST_STORE", Kind::Internal),
    ("BAD_INV_ORDER", Kind::Internal),
    ("TRANSIENT", Kind::Busy),
    ("FREE_MEM", Kind::Internal),
    ("INV_IDENT", Kind::BadArgument),
    ("INV_FLAG", Kind::BadArgument),
    ("INTF_REPOS", Kind::Unsupported),
    ("BAD_CONTEXT", Kind::BadArgument),
    ("OBJ_ADAPTER", Kind::Internal),
    ("DATA_CONVERSION", Kind::BadArgument),
    ("OBJECT_NOT_EXIST", Kind::NoObject),
    ("TRANSACTION_REQUIRED", Kind::Refused),
    ("TRANSACTION_ROLLEDBACK", Kind::Internal),
    ("INVALID_TRANSACTION", Kind::Refused),
    ("INV_POLICY", Kind::Unsupported),
    ("CODESET_INCOMPATIBLE", Kind::Unsupported),
    ("REBIND", Kind::Unreachable),
    ("TIMEOUT", Kind::TimedOut),
    ("TRANSACTION_UNAVAILABLE", Kind::Unsupported),
    ("TRANSACTION_MODE", Kind::Refused),
    ("BAD_QOS", Kind::Unsupported),
    ("INVALID_ACTIVITY", Kind::Internal),
    ("ACTIVITY_COMPLETED", Kind::Internal),
    ("ACTIVITY_REQUIRED", Kind::Refused),
    ("THREAD_CANCELLED", Kind::Cancelled),
];

/// Kinds of failure and the exception that each becomes, with the specification's minor code where there is
/// one. 0 stands for a minor code of this side's own (`OWN_MINOR`).
const FAILURES: &[(Kind, &str, u32)] = &[
    (Kind::Unreachable, "COMM_FAILURE", 0),
    (Kind::Refused, "NO_PERMISSION", 0),
    (Kind::TimedOut, "TIMEOUT", 0),
    (Kind::Cancelled, "TRANSIENT", OMG_MINOR | 3),
    (Kind::NoObject, "OBJECT_NOT_EXIST", OMG_MINOR | 1),
    (Kind::NoOperation, "BAD_OPERATION", 0),
    (Kind::BadArgument, "BAD_PARAM", 0),
    (Kind::Malformed, "MARSHAL", 0),
    (Kind::LimitExceeded, "IMP_LIMIT", 0),
    (Kind::Busy, "TRANSIENT", 0),
    (Kind::Unsupported, "NO_IMPLEMENT", 0),
    (Kind::Internal, "INTERNAL", 0),
    (Kind::Violation, "INTERNAL", 0),
    (Kind::BadReference, "INV_OBJREF", 0),
    (Kind::WrongWire, "COMM_FAILURE", 0),
];

/// Minor codes that say more than their exception: (exception, minor, kind, hint). omniORB's numbers are
/// those of its `minorCode.h`.
const MINORS: &[(&str, u32, Kind, &str)] = {
    use Kind::*;
    const OMNI: u32 = OMNIORB_MINOR;
    const OMG: u32 = OMG_MINOR;
    &[
        ("MARSHAL", OMNI | 9, Malformed, "a count exceeds the message: compare the contract of both sides"),
        ("MARSHAL", OMNI | 10, Malformed, "the message ended early: compare the contract of both sides"),
        ("MARSHAL", OMNI | 11, LimitExceeded, "raise omniORB's giopMaxMsgSize at the client"),
        ("MARSHAL", OMNI | 12, LimitExceeded, "raise omniORB's giopMaxMsgSize at the server"),
        ("MARSHAL", OMNI | 69, LimitExceeded, "raise omniORB's giopMaxMsgSize"),
        ("MARSHAL", OMNI | 93, LimitExceeded, "send less at a time"),
        ("MARSHAL", OMNI | 18, BadArgument, "a sequence is longer than its bound"),
        ("MARSHAL", OMNI | 19, BadArgument, "a string is longer than its bound"),
        (
            "MARSHAL",
            OMNI | 26,
            BadArgument,
            "a member is unknown to the peer: compare the contract of both sides",
        ),
        ("MARSHAL", OMG | 5, Unsupported, "wide characters need GIOP 1.1 or later"),
        ("MARSHAL", OMG | 6, Unsupported, "wide characters need GIOP 1.1 or later"),
        ("TRANSIENT", OMG | 1, Busy, "the server holds or discards requests for now; try again later"),
        ("TRANSIENT", OMG | 2, Unreachable, "no address in the reference could be reached"),
        ("TRANSIENT", OMG | 3, Cancelled, "the call was withdrawn"),
        ("TRANSIENT", OMG | 4, Busy, "the object's adapter is being destroyed"),
        ("TRANSIENT", OMNI | 2, Unreachable, "the peer could not connect"),
        ("TRANSIENT", OMNI | 8, TimedOut, "allow the call more time"),
        ("TRANSIENT", OMNI | 17, Unreachable, "the connection was closed; try again"),
        ("TIMEOUT", OMNI | 124, TimedOut, "the server's own time limit for calls passed"),
        ("BAD_OPERATION", OMNI | 38, NoOperation, "compare the contract of both sides"),
        ("NO_IMPLEMENT", OMG | 3, Unsupported, "the reference has no profile that the peer can use"),
        ("OBJECT_NOT_EXIST", OMG | 1, NoObject, "the server does not know this key, or not any more"),
        ("OBJECT_NOT_EXIST", OMG | 2, NoObject, "the server's adapter could not make the object"),
        ("OBJ_ADAPTER", OMG | 1, NoObject, "the object's adapter does not exist"),
        ("OBJ_ADAPTER", OMG | 2, NoObject, "no servant is there for the object"),
        ("UNKNOWN", OMG | 1, Internal, "the servant raised an exception that its contract does not name"),
        ("UNKNOWN", OMNI | 98, Internal, "the servant raised a Python exception"),
        ("DATA_CONVERSION", OMG | 1, BadArgument, "a character does not exist in the agreed character set"),
        ("NO_RESOURCES", OMNI | 25, Unsupported, "the two sides have no character set in common"),
        ("INV_OBJREF", OMG | 1, Unsupported, "the server takes no wide characters"),
    ]
};

/// A system exception as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SystemException {
    /// Repository id, such as `IDL:omg.org/CORBA/MARSHAL:1.0`.
    pub(crate) id: String,
    /// Minor code: its upper 20 bits name the vendor.
    pub(crate) minor: u32,
    /// 0 yes, 1 no, 2 maybe; others are read as maybe.
    pub(crate) completed: u32,
}

impl SystemException {
    /// Reads the body of a reply with the status SYSTEM_EXCEPTION.
    pub(crate) fn get(get: &mut Get<'_>) -> Result<Self, DecodeError> {
        Ok(Self { id: get.text()?, minor: get.u32()?, completed: get.u32()? })
    }

    /// The bare name, such as `MARSHAL`. `IDL:CORBA/` is the prefix of ORBs from before the OMG's. An id in
    /// another form is returned whole.
    pub(crate) fn name(&self) -> &str {
        let name = self.id.strip_prefix("IDL:omg.org/CORBA/").or_else(|| self.id.strip_prefix("IDL:CORBA/"));
        name.and_then(|name| name.split(':').next()).unwrap_or(&self.id)
    }

    /// As a failure; `explained` is what a peer of this make said beside it, and then counts more than the
    /// tables. The code keeps exception and minor code, so that the failure can be passed on as it came.
    pub(crate) fn into_failure(self, explained: Option<FailureDetail>) -> Failure {
        let name = self.name();
        let minor = MINORS.iter().find(|(exception, minor, ..)| *exception == name && *minor == self.minor);
        let known = EXCEPTIONS.iter().find(|(exception, _)| *exception == name).map(|(_, kind)| *kind);
        let kind = minor.map(|(_, _, kind, _)| *kind).or(known).unwrap_or(Kind::Internal);
        let completed = match self.completed {
            0 => Completed::Yes,
            1 => Completed::No,
            _ => Completed::Maybe,
        };
        let code = format!("CORBA::{name} minor {:#010x}", self.minor);
        let (kind, message, hint) = match explained {
            Some(FailureDetail { kind, message, hint }) => {
                (kind, message, Some(hint).filter(|hint| !hint.is_empty()))
            }
            None => (kind, sentence(kind), minor.map(|(.., hint)| (*hint).to_owned())),
        };
        let initiator = if kind == Kind::BadArgument { Initiator::User } else { Initiator::Peer };
        let failure = Failure::new(kind, initiator, message).with_code(code).with_completed(completed);
        let failure = failure.as_answered();
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// What a kind means when the peer says it, for exceptions that come without words.
fn sentence(kind: Kind) -> String {
    let what = match kind {
        Kind::Unreachable | Kind::WrongWire => "the peer could not reach the object",
        Kind::Refused => "the peer does not permit it",
        Kind::TimedOut => "a time limit of the peer passed",
        Kind::Cancelled => "the call was withdrawn",
        Kind::NoObject => "the peer has no such object",
        Kind::NoOperation => "the object has no such operation",
        Kind::BadArgument => "the peer does not accept an argument",
        Kind::Malformed => "the peer could not decode the message",
        Kind::LimitExceeded => "a limit of the peer would be exceeded",
        Kind::Busy => "the peer cannot serve the call for now",
        Kind::Unsupported => "the peer does not support it",
        Kind::BadReference => "the peer cannot use the reference",
        Kind::Internal | Kind::Violation => "the peer failed",
    };
    what.to_owned()
}

/// Writes the system exception that a failure becomes.
pub(crate) fn put(failure: &Failure, put: &mut CdrWriter<'_>) {
    let row = FAILURES.iter().enumerate().find(|(_, (kind, ..))| *kind == failure.kind());
    let (name, minor) = match row {
        Some((index, (_, name, 0))) => (*name, OWN_MINOR | u32::try_from(index + 1).unwrap_or(0)),
        Some((_, (_, name, minor))) => (*name, *minor),
        None => ("UNKNOWN", 0),
    };
    // A code that came from another ORB goes on as it came.
    let (name, minor) = failure.code().and_then(parse_code).unwrap_or((name, minor));
    put.string(format!("IDL:omg.org/CORBA/{name}:1.0").as_bytes());
    put.u32(minor);
    put.u32(match failure.completed() {
        Completed::Yes => 0,
        Completed::No => 1,
        Completed::Maybe => 2,
    });
}

/// Exception and minor code out of a failure's code, `CORBA::NAME minor 0x...` or `CORBA::NAME`. Nothing for
/// codes of other wires, and for names that are no system exception.
fn parse_code(code: &str) -> Option<(&'static str, u32)> {
    let (name, minor) =
        code.strip_prefix("CORBA::")?.split_once(" minor 0x").unwrap_or((code.strip_prefix("CORBA::")?, "0"));
    let (name, _) = EXCEPTIONS.iter().find(|(known, _)| *known == name)?;
    Some((name, u32::from_str_radix(minor, 16).ok()?))
}

/// What a peer of this make says beside a system exception, in the service context FAILURE: an encapsulation
/// of three strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureDetail {
    /// What kind of failure it is, by the kind's word.
    pub(crate) kind: Kind,
    /// A sentence, and in brackets where it happened.
    pub(crate) message: String,
    /// What to do; empty if the failure has no hint.
    pub(crate) hint: String,
}

impl FailureDetail {
    /// An unknown word for the kind is an error; the caller then uses the exception alone.
    pub(crate) fn get(data: &[u8]) -> Result<Self, DecodeError> {
        let mut get = Get::encapsulation(data)?;
        let word = get.string()?;
        let kind = FAILURES.iter().find(|(kind, ..)| kind.word().as_bytes() == word);
        let kind = kind.map(|(kind, ..)| *kind).ok_or_else(|| get.bad("an unknown kind of failure"))?;
        Ok(Self { kind, message: get.text()?, hint: get.text()? })
    }

    /// Writes the content of the context; long texts are cut.
    pub(crate) fn put(failure: &Failure, put: &mut CdrWriter<'_>) {
        put.string(failure.kind().word().as_bytes());
        let mut message = failure.message().to_owned();
        if !failure.place().is_empty() {
            message.push_str(&format!(" ({})", failure.place()));
        }
        for text in [message.as_str(), failure.hint().unwrap_or("")] {
            let mut end = crate::limits::EXPLANATION.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            put.string(text.get(..end).unwrap_or_default().replace('\0', " ").as_bytes());
        }
    }
}
