//! HRESULTs and fault statuses, and what they are as failures (MS-ERREF 2.1; MS-DCOM 2.2.9; C706 appendix E).
//!
//! Three lists of numbers meet in one space of 32 bits: HRESULTs (the sign bit says failure, 0 and 1 are S_OK
//! and S_FALSE), statuses of DCE/RPC (0x1c......), and errors of Windows (small numbers, such as those of the
//! resolver). A method ends with an HRESULT; a fault PDU has any of the three. `failure` and `fault_failure`
//! read them, `of` and `fault_status` write them.
//!
//! Invariants: a code goes there and back unchanged, since a failure keeps it as its own code. A code that
//! nobody here knows is `Kind::Internal` of the peer, and shown as a number. `Completed::No` is said only
//! where the status shows that no method has run, for the runtime makes such calls again.

use crate::orpc::ErrorInfo;
use everywire_model::{Completed, Failure, Initiator, Kind};

macro_rules! codes {
    ($($name:ident $value:literal $kind:ident $text:literal,)*) => {
        $(#[doc = $text] pub const $name: u32 = $value;)*
        /// The symbol and meaning of a code.
        pub fn name(code: u32) -> Option<(&'static str, &'static str)> {
            #[allow(unreachable_patterns)]
            match code {
                $($value => Some((stringify!($name), $text)),)*
                _ => None,
            }
        }
        /// What a code means in neutral terms; several codes are one kind. One that nobody knows is `Internal`, and so are those of
        /// FACILITY_ITF from 0x0200 on, such as CONNECT_E_*, which mean what the interface says they mean.
        fn kind(code: u32) -> Kind {
            match code {
                $($value => Kind::$kind,)*
                _ => Kind::Internal,
            }
        }
    };
}

codes! {
    S_OK 0 Internal "Success.",
    S_FALSE 1 Internal "Success, with less than was asked for.",
    E_NOTIMPL 0x8000_4001 Unsupported "Not implemented.",
    E_NOINTERFACE 0x8000_4002 NoOperation "No such interface.",
    E_POINTER 0x8000_4003 BadArgument "Invalid pointer.",
    E_ABORT 0x8000_4004 Cancelled "Operation aborted.",
    E_FAIL 0x8000_4005 Internal "Unspecified error.",
    E_UNEXPECTED 0x8000_ffff Internal "Catastrophic failure.",
    E_ACCESSDENIED 0x8007_0005 Refused "Access is denied.",
    E_HANDLE 0x8007_0006 BadArgument "Invalid handle.",
    E_OUTOFMEMORY 0x8007_000e LimitExceeded "Out of memory.",
    E_INVALIDARG 0x8007_0057 BadArgument "The parameter is incorrect.",
    RPC_S_SERVER_UNAVAILABLE 0x8007_06ba Unreachable "The RPC server is unavailable.",
    RPC_S_SERVER_TOO_BUSY 0x8007_06bb Busy "The RPC server is too busy.",
    RPC_S_PROCNUM_OUT_OF_RANGE 0x8007_06d1 NoOperation "The procedure number is out of range.",
    RPC_X_BAD_STUB_DATA 0x8007_06f7 BadArgument "The stub received bad data.",
    RPC_E_CALL_REJECTED 0x8001_0001 Busy "Call was rejected by callee.",
    RPC_E_CALL_CANCELED 0x8001_0002 Cancelled "Call was canceled by the message filter.",
    RPC_E_SERVERFAULT 0x8001_0105 Internal "The server threw an exception.",
    RPC_E_DISCONNECTED 0x8001_0108 NoObject "The object invoked has disconnected from its clients.",
    RPC_E_RETRY 0x8001_0109 Busy "The object invoked chose not to process the call now.",
    RPC_E_VERSION_MISMATCH 0x8001_0110 Violation "The version of OLE on the client and server machines does not match.",
    RPC_E_INVALID_HEADER 0x8001_0111 Violation "OLE received a packet with an invalid header.",
    RPC_E_INVALID_EXTENSION 0x8001_0112 Violation "OLE received a packet with an invalid extension.",
    RPC_E_INVALID_IPID 0x8001_0113 NoObject "The requested object or interface does not exist.",
    RPC_E_INVALID_OBJECT 0x8001_0114 NoObject "The requested object does not exist.",
    RPC_E_INVALID_OBJREF 0x8001_011d BadReference "The marshalled interface pointer is invalid.",
    RPC_E_TIMEOUT 0x8001_011f TimedOut "This operation returned because the timeout period expired.",
    RPC_E_UNEXPECTED 0x8001_ffff Internal "An internal error occurred.",
    REGDB_E_CLASSNOTREG 0x8004_0154 NoObject "Class not registered.",
    REGDB_E_IIDNOTREG 0x8004_0155 NoOperation "Interface not registered.",
    CLASS_E_NOAGGREGATION 0x8004_0110 Unsupported "Class does not support aggregation.",
    CONNECT_E_NOCONNECTION 0x8004_0200 Internal "There is no connection for this connection ID.",
    CONNECT_E_ADVISELIMIT 0x8004_0201 Internal "This implementation's limit for advisory connections has been reached.",
    CONNECT_E_CANNOTCONNECT 0x8004_0202 Internal "Connection attempt failed.",
    DISP_E_UNKNOWNINTERFACE 0x8002_0001 NoOperation "Unknown interface.",
    DISP_E_MEMBERNOTFOUND 0x8002_0003 NoOperation "Member not found.",
    DISP_E_PARAMNOTFOUND 0x8002_0004 BadArgument "Parameter not found.",
    DISP_E_TYPEMISMATCH 0x8002_0005 BadArgument "Type mismatch.",
    DISP_E_UNKNOWNNAME 0x8002_0006 NoOperation "Unknown name.",
    DISP_E_NONAMEDARGS 0x8002_0007 BadArgument "No named arguments.",
    DISP_E_BADVARTYPE 0x8002_0008 BadArgument "Bad variable type.",
    DISP_E_EXCEPTION 0x8002_0009 Internal "Exception occurred.",
    DISP_E_OVERFLOW 0x8002_000a BadArgument "Out of present range.",
    DISP_E_BADINDEX 0x8002_000b BadArgument "Invalid index.",
    DISP_E_UNKNOWNLCID 0x8002_000c Unsupported "Unknown language.",
    DISP_E_ARRAYISLOCKED 0x8002_000d Internal "Memory is locked.",
    DISP_E_BADPARAMCOUNT 0x8002_000e BadArgument "Invalid number of parameters.",
    DISP_E_PARAMNOTOPTIONAL 0x8002_000f BadArgument "Parameter not optional.",
    TYPE_E_ELEMENTNOTFOUND 0x8002_802b Internal "Element not found.",
    CO_S_NOTALLINTERFACES 0x0008_0012 Internal "Not all the requested interfaces were available.",
    CO_E_CLASS_CREATE_FAILED 0x8008_0001 Internal "Attempt to create a class object failed.",
    CO_E_SERVER_EXEC_FAILURE 0x8008_0005 Internal "Server execution failed.",
    CO_E_OBJNOTCONNECTED 0x8004_01fd NoObject "Object is not connected to server.",
    OR_INVALID_OXID 0x776 NoObject "The object exporter specified was not found.",
    OR_INVALID_OID 0x777 NoObject "The object specified was not found.",
    OR_INVALID_SET 0x778 NoObject "The object resolver set specified was not found.",
    NCA_ACCESS_DENIED 0x5 Refused "Access is denied.",
    NCA_FAULT_NDR 0x6f7 BadArgument "The stub received bad data.",
    NCA_SEC_PKG_ERROR 0x721 Refused "A security package specific error occurred.",
    NCA_OP_RNG_ERROR 0x1c01_0002 NoOperation "The operation number is out of range.",
    NCA_UNK_IF 0x1c01_0003 NoOperation "The interface is unknown.",
    NCA_WRONG_BOOT_TIME 0x1c01_0006 Internal "The server was restarted.",
    NCA_YOU_CRASHED 0x1c01_0009 Internal "The client was restarted.",
    NCA_PROTO_ERROR 0x1c01_000b Violation "A protocol error.",
    NCA_OUT_ARGS_TOO_BIG 0x1c01_0013 LimitExceeded "The results are too big.",
    NCA_SERVER_TOO_BUSY 0x1c01_0014 Busy "The server is too busy.",
    NCA_FAULT_STRING_TOO_LONG 0x1c01_0015 BadArgument "A string is too long.",
    NCA_UNSPEC_REJECT 0x1c00_0009 Refused "The server rejected the call.",
    NCA_FAULT_ADDR_ERROR 0x1c00_0002 Internal "An address error.",
    NCA_FAULT_CONTEXT_MISMATCH 0x1c00_001a NoObject "The context handle is not known.",
    NCA_FAULT_CANCEL 0x1c00_000d Cancelled "The call was cancelled.",
    NCA_FAULT_REMOTE_NO_MEMORY 0x1c00_001b LimitExceeded "The server is out of memory.",
    NCA_FAULT_INVALID_BOUND 0x1c00_0007 BadArgument "An array bound is invalid.",
    NCA_FAULT_UNSPEC 0x1c00_0012 Internal "An unspecified error.",
}

/// The failure that a method reports by this HRESULT, with what IErrorInfo says of it.
#[cold]
pub fn failure(hresult: u32, info: Option<&ErrorInfo>) -> Failure {
    let message = info.map(|info| info.description.clone()).filter(|text| !text.is_empty());
    let message = message.unwrap_or_else(|| describe(hresult));
    let failure = Failure::new(kind(hresult), Initiator::Peer, message)
        .with_code(format!("{hresult:#010x}"))
        // Whoever ran out of time does not know what became of the call.
        .with_completed(if hresult == RPC_E_TIMEOUT { Completed::Maybe } else { Completed::Yes });
    match info {
        Some(info) if !info.source.is_empty() => failure.at(&info.source),
        _ => failure,
    }
}

/// The HRESULT that reports this failure: its code, if that is one, else by its kind.
#[cold]
pub fn of(failure: &Failure) -> u32 {
    if let Some(code) = code(failure).filter(|code| is_failure(*code)) {
        return code;
    }
    of_kind(failure.kind()).0
}

/// The failure that a fault PDU reports by this status. Without `did_not_execute`, nobody knows whether the method ran,
/// unless the status says so.
#[cold]
pub fn fault_failure(status: u32, did_not_execute: bool) -> Failure {
    let completed = if denies(status) || did_not_execute { Completed::No } else { Completed::Maybe };
    Failure::new(kind(status), Initiator::Peer, describe(status))
        .with_code(format!("{status:#010x}"))
        .with_completed(completed)
}

/// Whether a fault with this status says by itself that the method did not run.
fn denies(status: u32) -> bool {
    matches!(
        status,
        NCA_ACCESS_DENIED
            | NCA_SEC_PKG_ERROR
            | NCA_OP_RNG_ERROR
            | NCA_UNK_IF
            | NCA_PROTO_ERROR
            | NCA_SERVER_TOO_BUSY
            | NCA_UNSPEC_REJECT
            | NCA_FAULT_CONTEXT_MISMATCH
            | RPC_E_DISCONNECTED
            | RPC_E_VERSION_MISMATCH
            | RPC_E_INVALID_HEADER
            | RPC_E_INVALID_IPID
            | RPC_E_INVALID_OBJECT
    )
}

/// The status of a fault for a call of which nobody knows whether it ran: this one, unless that says that it did not.
#[cold]
pub(crate) fn not_denying(status: u32) -> u32 {
    if denies(status) { RPC_E_SERVERFAULT } else { status }
}

/// The status of the fault that reports a failure between the caller and the servant, and says no more of the call than is known. `None`:
/// the failure is the servant's own, or of a kind that a servant's may have as well; it goes as the HRESULT of the method.
#[cold]
pub(crate) fn of_no_method(kind: Kind, completed: Completed) -> Option<u32> {
    match (kind, completed) {
        (_, Completed::Yes) => None,
        (Kind::Busy, Completed::No) => Some(NCA_SERVER_TOO_BUSY),
        (Kind::TimedOut, Completed::No) => Some(RPC_E_TIMEOUT),
        (Kind::Busy, Completed::Maybe) => Some(RPC_S_SERVER_TOO_BUSY),
        // The status of a fault for a login that is refused is another one.
        (Kind::Refused, _) => Some(E_ACCESSDENIED),
        (Kind::Violation, Completed::No) => Some(RPC_E_INVALID_HEADER),
        (Kind::Violation, Completed::Maybe) => Some(RPC_E_SERVERFAULT),
        (Kind::Unreachable | Kind::WrongWire, _) => Some(RPC_S_SERVER_UNAVAILABLE),
        _ => None,
    }
}

/// The status of a fault PDU that reports this failure: its code, if that is one, else by its kind.
#[cold]
pub fn fault_status(failure: &Failure) -> u32 {
    if let Some(code) = code(failure).filter(|code| *code != S_OK) {
        return code;
    }
    of_kind(failure.kind()).1
}

/// What reports a failure of a kind that came without a code: the HRESULT of a method, and the status of a fault PDU.
fn of_kind(kind: Kind) -> (u32, u32) {
    match kind {
        Kind::Refused => (E_ACCESSDENIED, NCA_ACCESS_DENIED),
        Kind::TimedOut => (RPC_E_TIMEOUT, RPC_E_SERVERFAULT),
        Kind::Cancelled => (RPC_E_CALL_CANCELED, NCA_FAULT_CANCEL),
        Kind::NoObject => (RPC_E_DISCONNECTED, RPC_E_DISCONNECTED),
        Kind::NoOperation => (DISP_E_MEMBERNOTFOUND, NCA_OP_RNG_ERROR),
        Kind::BadArgument => (E_INVALIDARG, NCA_FAULT_NDR),
        Kind::BadReference => (RPC_E_INVALID_OBJREF, NCA_FAULT_NDR),
        Kind::Malformed => (RPC_X_BAD_STUB_DATA, NCA_FAULT_NDR),
        Kind::LimitExceeded => (E_OUTOFMEMORY, NCA_FAULT_REMOTE_NO_MEMORY),
        Kind::Busy => (RPC_S_SERVER_TOO_BUSY, NCA_SERVER_TOO_BUSY),
        Kind::Unsupported => (E_NOTIMPL, RPC_E_SERVERFAULT),
        Kind::Unreachable | Kind::WrongWire => (RPC_S_SERVER_UNAVAILABLE, RPC_E_SERVERFAULT),
        Kind::Violation => (RPC_E_INVALID_HEADER, NCA_PROTO_ERROR),
        Kind::Internal => (E_FAIL, RPC_E_SERVERFAULT),
    }
}

/// The HRESULT of a COMVERSION that is not spoken here, if so: it has to have the same major version, and no greater minor one (MS-DCOM
/// 2.2.11).
#[inline]
pub(crate) fn check_version((major, minor): (u16, u16)) -> Result<(), u32> {
    let (ours, newest) = crate::VERSION;
    if major == ours.into() && minor <= newest.into() { Ok(()) } else { Err(RPC_E_VERSION_MISMATCH) }
}

/// Whether an HRESULT tells of a failure.
pub fn is_failure(hresult: u32) -> bool {
    hresult & 0x8000_0000 != 0
}

/// A code for people: symbol and meaning if it is known.
pub fn describe(code: u32) -> String {
    match name(code) {
        Some((symbol, meaning)) => format!("{meaning} ({symbol})"),
        None => format!("the peer answered {code:#010x}"),
    }
}

/// The code that a failure came with, if it is a number of this space.
fn code(failure: &Failure) -> Option<u32> {
    failure.status().map(i32::cast_unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_survives_the_way_there_and_back() {
        for code in [CONNECT_E_NOCONNECTION, 0x8004_1234, E_NOTIMPL, RPC_E_DISCONNECTED] {
            let failure = failure(code, None);
            assert_eq!(failure.completed(), Completed::Yes);
            assert_eq!(of(&failure), code);
            assert_eq!(fault_status(&failure), code);
        }
        assert_eq!(failure(RPC_E_TIMEOUT, None).completed(), Completed::Maybe);
        assert_eq!(failure(0x8004_0200, None).code(), Some("0x80040200"));
        assert_eq!(failure(E_NOTIMPL, None).message(), "Not implemented. (E_NOTIMPL)");
    }

    #[test]
    fn every_kind_has_codes_that_mean_failure() {
        for kind in
            [Kind::Refused, Kind::NoObject, Kind::NoOperation, Kind::BadArgument, Kind::Internal, Kind::Busy]
        {
            let failure = Failure::new(kind, Initiator::Here, "so").with_code("ndr Truncated");
            assert!(is_failure(of(&failure)), "{kind:?}");
            assert_eq!(fault_failure(fault_status(&failure), false).kind(), kind);
        }
    }

    #[test]
    fn error_information_is_what_the_failure_says() {
        let info =
            ErrorInfo { source: "Bank".into(), description: "overdrawn".into(), ..ErrorInfo::default() };
        let failure = failure(0x8004_0201, Some(&info));
        assert_eq!((failure.message(), failure.place()), ("overdrawn", "Bank"));
    }

    #[test]
    fn a_fault_tells_whether_the_method_ran() {
        assert_eq!(fault_failure(NCA_FAULT_UNSPEC, false).completed(), Completed::Maybe);
        assert_eq!(fault_failure(NCA_FAULT_UNSPEC, true).completed(), Completed::No);
        assert_eq!(fault_failure(NCA_UNK_IF, false).completed(), Completed::No);
    }
}
