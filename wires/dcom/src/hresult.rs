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
    ($($name:ident $value:literal $text:literal,)*) => {
        $(#[doc = $text] pub const $name: u32 = $value;)*
        /// The symbol and meaning of a code.
        pub fn name(code: u32) -> Option<(&'static str, &'static str)> {
            #[allow(unreachable_patterns)]
            match code {
                $($value => Some((stringify!($name), $text)),)*
                _ => None,
            }
        }
    };
}

codes! {
    S_OK 0 "Success.",
    S_FALSE 1 "Success, with less than was asked for.",
    E_NOTIMPL 0x8000_4001 "Not implemented.",
    E_NOINTERFACE 0x8000_4002 "No such interface.",
    E_POINTER 0x8000_4003 "Invalid pointer.",
    E_ABORT 0x8000_4004 "Operation aborted.",
    E_FAIL 0x8000_4005 "Unspecified error.",
    E_UNEXPECTED 0x8000_ffff "Catastrophic failure.",
    E_ACCESSDENIED 0x8007_0005 "Access is denied.",
    E_HANDLE 0x8007_0006 "Invalid handle.",
    E_OUTOFMEMORY 0x8007_000e "Out of memory.",
    E_INVALIDARG 0x8007_0057 "The parameter is incorrect.",
    RPC_S_SERVER_UNAVAILABLE 0x8007_06ba "The RPC server is unavailable.",
    RPC_S_SERVER_TOO_BUSY 0x8007_06bb "The RPC server is too busy.",
    RPC_S_PROCNUM_OUT_OF_RANGE 0x8007_06d1 "The procedure number is out of range.",
    RPC_X_BAD_STUB_DATA 0x8007_06f7 "The stub received bad data.",
    RPC_E_CALL_REJECTED 0x8001_0001 "Call was rejected by callee.",
    RPC_E_CALL_CANCELED 0x8001_0002 "Call was canceled by the message filter.",
    RPC_E_SERVERFAULT 0x8001_0105 "The server threw an exception.",
    RPC_E_DISCONNECTED 0x8001_0108 "The object invoked has disconnected from its clients.",
    RPC_E_RETRY 0x8001_0109 "The object invoked chose not to process the call now.",
    RPC_E_VERSION_MISMATCH 0x8001_0110 "The version of OLE on the client and server machines does not match.",
    RPC_E_INVALID_HEADER 0x8001_0111 "OLE received a packet with an invalid header.",
    RPC_E_INVALID_EXTENSION 0x8001_0112 "OLE received a packet with an invalid extension.",
    RPC_E_INVALID_IPID 0x8001_0113 "The requested object or interface does not exist.",
    RPC_E_INVALID_OBJECT 0x8001_0114 "The requested object does not exist.",
    RPC_E_INVALID_OBJREF 0x8001_011d "The marshalled interface pointer is invalid.",
    RPC_E_TIMEOUT 0x8001_011f "This operation returned because the timeout period expired.",
    RPC_E_UNEXPECTED 0x8001_ffff "An internal error occurred.",
    REGDB_E_CLASSNOTREG 0x8004_0154 "Class not registered.",
    REGDB_E_IIDNOTREG 0x8004_0155 "Interface not registered.",
    CLASS_E_NOAGGREGATION 0x8004_0110 "Class does not support aggregation.",
    CONNECT_E_NOCONNECTION 0x8004_0200 "There is no connection for this connection ID.",
    CONNECT_E_ADVISELIMIT 0x8004_0201 "This implementation's limit for advisory connections has been reached.",
    CONNECT_E_CANNOTCONNECT 0x8004_0202 "Connection attempt failed.",
    DISP_E_UNKNOWNINTERFACE 0x8002_0001 "Unknown interface.",
    DISP_E_MEMBERNOTFOUND 0x8002_0003 "Member not found.",
    DISP_E_PARAMNOTFOUND 0x8002_0004 "Parameter not found.",
    DISP_E_TYPEMISMATCH 0x8002_0005 "Type mismatch.",
    DISP_E_UNKNOWNNAME 0x8002_0006 "Unknown name.",
    DISP_E_NONAMEDARGS 0x8002_0007 "No named arguments.",
    DISP_E_BADVARTYPE 0x8002_0008 "Bad variable type.",
    DISP_E_EXCEPTION 0x8002_0009 "Exception occurred.",
    DISP_E_OVERFLOW 0x8002_000a "Out of present range.",
    DISP_E_BADINDEX 0x8002_000b "Invalid index.",
    DISP_E_UNKNOWNLCID 0x8002_000c "Unknown language.",
    DISP_E_ARRAYISLOCKED 0x8002_000d "Memory is locked.",
    DISP_E_BADPARAMCOUNT 0x8002_000e "Invalid number of parameters.",
    DISP_E_PARAMNOTOPTIONAL 0x8002_000f "Parameter not optional.",
    TYPE_E_ELEMENTNOTFOUND 0x8002_802b "Element not found.",
    CO_S_NOTALLINTERFACES 0x0008_0012 "Not all the requested interfaces were available.",
    CO_E_CLASS_CREATE_FAILED 0x8008_0001 "Attempt to create a class object failed.",
    CO_E_SERVER_EXEC_FAILURE 0x8008_0005 "Server execution failed.",
    CO_E_OBJNOTCONNECTED 0x8004_01fd "Object is not connected to server.",
    OR_INVALID_OXID 0x776 "The object exporter specified was not found.",
    OR_INVALID_OID 0x777 "The object specified was not found.",
    OR_INVALID_SET 0x778 "The object resolver set specified was not found.",
    NCA_ACCESS_DENIED 0x5 "Access is denied.",
    NCA_FAULT_NDR 0x6f7 "The stub received bad data.",
    NCA_SEC_PKG_ERROR 0x721 "A security package specific error occurred.",
    NCA_OP_RNG_ERROR 0x1c01_0002 "The operation number is out of range.",
    NCA_UNK_IF 0x1c01_0003 "The interface is unknown.",
    NCA_WRONG_BOOT_TIME 0x1c01_0006 "The server was restarted.",
    NCA_YOU_CRASHED 0x1c01_0009 "The client was restarted.",
    NCA_PROTO_ERROR 0x1c01_000b "A protocol error.",
    NCA_OUT_ARGS_TOO_BIG 0x1c01_0013 "The results are too big.",
    NCA_SERVER_TOO_BUSY 0x1c01_0014 "The server is too busy.",
    NCA_FAULT_STRING_TOO_LONG 0x1c01_0015 "A string is too long.",
    NCA_UNSPEC_REJECT 0x1c00_0009 "The server rejected the call.",
    NCA_FAULT_ADDR_ERROR 0x1c00_0002 "An address error.",
    NCA_FAULT_CONTEXT_MISMATCH 0x1c00_001a "The context handle is not known.",
    NCA_FAULT_CANCEL 0x1c00_000d "The call was cancelled.",
    NCA_FAULT_REMOTE_NO_MEMORY 0x1c00_001b "The server is out of memory.",
    NCA_FAULT_INVALID_BOUND 0x1c00_0007 "An array bound is invalid.",
    NCA_FAULT_UNSPEC 0x1c00_0012 "An unspecified error.",
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
    match failure.kind() {
        Kind::Refused => E_ACCESSDENIED,
        Kind::TimedOut => RPC_E_TIMEOUT,
        Kind::Cancelled => RPC_E_CALL_CANCELED,
        Kind::NoObject => RPC_E_DISCONNECTED,
        Kind::NoOperation => DISP_E_MEMBERNOTFOUND,
        Kind::BadArgument => E_INVALIDARG,
        Kind::BadReference => RPC_E_INVALID_OBJREF,
        Kind::Malformed => RPC_X_BAD_STUB_DATA,
        Kind::LimitExceeded => E_OUTOFMEMORY,
        Kind::Busy => RPC_S_SERVER_TOO_BUSY,
        Kind::Unsupported => E_NOTIMPL,
        Kind::Unreachable | Kind::WrongWire => RPC_S_SERVER_UNAVAILABLE,
        Kind::Violation => RPC_E_INVALID_HEADER,
        Kind::Internal => E_FAIL,
    }
}

/// The failure that a fault PDU reports by this status. Without `did_not_execute`, nobody knows whether the method ran,
/// unless the status says so.
#[cold]
pub fn fault_failure(status: u32, did_not_execute: bool) -> Failure {
    let before = matches!(
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
    );
    let completed = if before || did_not_execute { Completed::No } else { Completed::Maybe };
    Failure::new(kind(status), Initiator::Peer, describe(status))
        .with_code(format!("{status:#010x}"))
        .with_completed(completed)
}

/// The status of a fault PDU that reports this failure: its code, if that is one, else by its kind.
#[cold]
pub fn fault_status(failure: &Failure) -> u32 {
    if let Some(code) = code(failure).filter(|code| *code != S_OK) {
        return code;
    }
    match failure.kind() {
        Kind::Refused => NCA_ACCESS_DENIED,
        Kind::NoOperation => NCA_OP_RNG_ERROR,
        Kind::BadArgument | Kind::BadReference | Kind::Malformed => NCA_FAULT_NDR,
        Kind::LimitExceeded => NCA_FAULT_REMOTE_NO_MEMORY,
        Kind::Busy => NCA_SERVER_TOO_BUSY,
        Kind::Cancelled => NCA_FAULT_CANCEL,
        Kind::Violation => NCA_PROTO_ERROR,
        Kind::NoObject => RPC_E_DISCONNECTED,
        Kind::TimedOut | Kind::Unsupported | Kind::Unreachable | Kind::WrongWire | Kind::Internal => {
            RPC_E_SERVERFAULT
        }
    }
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

/// What a code means in neutral terms; several codes are one kind.
fn kind(code: u32) -> Kind {
    match code {
        E_ACCESSDENIED | NCA_ACCESS_DENIED | NCA_SEC_PKG_ERROR | NCA_UNSPEC_REJECT => Kind::Refused,
        RPC_E_TIMEOUT => Kind::TimedOut,
        E_ABORT | RPC_E_CALL_CANCELED | NCA_FAULT_CANCEL => Kind::Cancelled,
        RPC_E_DISCONNECTED
        | RPC_E_INVALID_OBJECT
        | RPC_E_INVALID_IPID
        | CO_E_OBJNOTCONNECTED
        | REGDB_E_CLASSNOTREG
        | OR_INVALID_OXID
        | OR_INVALID_OID
        | OR_INVALID_SET
        | NCA_FAULT_CONTEXT_MISMATCH => Kind::NoObject,
        E_NOINTERFACE
        | NCA_UNK_IF
        | NCA_OP_RNG_ERROR
        | RPC_S_PROCNUM_OUT_OF_RANGE
        | DISP_E_MEMBERNOTFOUND
        | DISP_E_UNKNOWNNAME
        | DISP_E_UNKNOWNINTERFACE
        | REGDB_E_IIDNOTREG => Kind::NoOperation,
        E_INVALIDARG
        | E_POINTER
        | E_HANDLE
        | DISP_E_PARAMNOTFOUND
        | DISP_E_TYPEMISMATCH
        | DISP_E_NONAMEDARGS
        | DISP_E_BADVARTYPE
        | DISP_E_OVERFLOW
        | DISP_E_BADINDEX
        | DISP_E_BADPARAMCOUNT
        | DISP_E_PARAMNOTOPTIONAL
        // The server could not decode the arguments.
        | RPC_X_BAD_STUB_DATA
        | NCA_FAULT_NDR
        | NCA_FAULT_INVALID_BOUND
        | NCA_FAULT_STRING_TOO_LONG => Kind::BadArgument,
        // Codes of FACILITY_ITF from 0x0200 on, such as CONNECT_E_*, mean what the interface says they mean.
        E_OUTOFMEMORY | NCA_FAULT_REMOTE_NO_MEMORY | NCA_OUT_ARGS_TOO_BIG => Kind::LimitExceeded,
        RPC_E_CALL_REJECTED | RPC_E_RETRY | RPC_S_SERVER_TOO_BUSY | NCA_SERVER_TOO_BUSY => Kind::Busy,
        E_NOTIMPL | CLASS_E_NOAGGREGATION | DISP_E_UNKNOWNLCID => Kind::Unsupported,
        RPC_E_VERSION_MISMATCH | RPC_E_INVALID_HEADER | RPC_E_INVALID_EXTENSION | NCA_PROTO_ERROR => {
            Kind::Violation
        }
        RPC_E_INVALID_OBJREF => Kind::BadReference,
        RPC_S_SERVER_UNAVAILABLE => Kind::Unreachable,
        _ => Kind::Internal,
    }
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
