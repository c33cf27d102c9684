//! What calls and items succeed or fail with: HRESULTs of OPC (OPC DA 2.05a, appendix A; 3.0, 4.2.15) and of COM (MS-ERREF 2.1).

use everywire_model::{Completed, Failure, Initiator, Kind};
use std::fmt;

/// An HRESULT: of an item, a whole call, or a value (`VT_ERROR`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident $value:literal $symbol:literal $text:literal,)*) => {
        impl Code {
            $(#[doc = concat!("`", $symbol, "`: ", $text)] pub const $name: Self = Self($value);)*
        }

        /// Symbol and text of each code.
        const KNOWN: &[(Code, &str, &str)] = &[$((Code::$name, $symbol, $text),)*];
    };
}

codes! {
    OK 0x0000_0000 "S_OK" "The operation succeeded.",
    FALSE 0x0000_0001 "S_FALSE" "The operation succeeded for a part of the items.",
    UNSUPPORTED_RATE 0x0004_000d "OPC_S_UNSUPPORTEDRATE" "The server does not support the requested rate and uses the closest one.",
    CLAMP 0x0004_000e "OPC_S_CLAMP" "The value was accepted and limited to what the item takes.",
    IN_USE 0x0004_000f "OPC_S_INUSE" "The group is removed when its last reference is released.",
    DATA_QUEUE_OVERFLOW 0x0004_0404 "OPC_S_DATAQUEUEOVERFLOW" "Samples were lost, since the buffer of the item was full.",
    INVALID_HANDLE 0xc004_0001 "OPC_E_INVALIDHANDLE" "The handle is none of this group or server.",
    BAD_TYPE 0xc004_0004 "OPC_E_BADTYPE" "The value cannot be converted between the requested and the canonical type.",
    PUBLIC 0xc004_0005 "OPC_E_PUBLIC" "The operation is not for public groups.",
    BAD_RIGHTS 0xc004_0006 "OPC_E_BADRIGHTS" "The access rights of the item do not allow the operation.",
    UNKNOWN_ITEM 0xc004_0007 "OPC_E_UNKNOWNITEMID" "The item is not in the server's address space.",
    INVALID_ITEM 0xc004_0008 "OPC_E_INVALIDITEMID" "The item's name breaks the server's syntax.",
    INVALID_FILTER 0xc004_0009 "OPC_E_INVALIDFILTER" "The filter is not valid.",
    UNKNOWN_PATH 0xc004_000a "OPC_E_UNKNOWNPATH" "The access path is not known.",
    RANGE 0xc004_000b "OPC_E_RANGE" "The value is out of range.",
    DUPLICATE_NAME 0xc004_000c "OPC_E_DUPLICATENAME" "A group of this name exists.",
    INVALID_CONFIG 0xc004_0010 "OPC_E_INVALIDCONFIGFILE" "The server's configuration is not valid.",
    NOT_FOUND 0xc004_0011 "OPC_E_NOTFOUND" "The object does not exist.",
    INVALID_PROPERTY 0xc004_0203 "OPC_E_INVALID_PID" "The item has no such property.",
    DEADBAND_NOT_SET 0xc004_0400 "OPC_E_DEADBANDNOTSET" "The item has no deadband of its own.",
    DEADBAND_NOT_SUPPORTED 0xc004_0401 "OPC_E_DEADBANDNOTSUPPORTED" "The item has no range, so it has no deadband.",
    NO_BUFFERING 0xc004_0402 "OPC_E_NOBUFFERING" "The server does not buffer this item.",
    INVALID_CONTINUATION 0xc004_0403 "OPC_E_INVALIDCONTINUATIONPOINT" "The continuation point is not of this browsing.",
    RATE_NOT_SET 0xc004_0405 "OPC_E_RATENOTSET" "The item has no sampling rate of its own.",
    NOT_SUPPORTED 0xc004_0406 "OPC_E_NOTSUPPORTED" "The server does not write quality or time of this item.",
    NO_CONNECTION 0x8004_0200 "CONNECT_E_NOCONNECTION" "Nobody is connected for callbacks.",
    NOT_IMPLEMENTED 0x8000_4001 "E_NOTIMPL" "Not implemented.",
    NO_INTERFACE 0x8000_4002 "E_NOINTERFACE" "No such interface.",
    FAIL 0x8000_4005 "E_FAIL" "Unspecified error.",
    ACCESS_DENIED 0x8007_0005 "E_ACCESSDENIED" "Access is denied.",
    OUT_OF_MEMORY 0x8007_000e "E_OUTOFMEMORY" "Out of memory, or beyond what a client may hold.",
    INVALID_ARGUMENT 0x8007_0057 "E_INVALIDARG" "The parameter is incorrect.",
    TYPE_MISMATCH 0x8002_0005 "DISP_E_TYPEMISMATCH" "Type mismatch.",
    BAD_VARTYPE 0x8002_0008 "DISP_E_BADVARTYPE" "Bad variable type.",
    OVERFLOW 0x8002_000a "DISP_E_OVERFLOW" "Out of present range.",
}

impl Code {
    /// Whether it tells of a failure: its highest bit.
    #[must_use]
    pub fn is_failure(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }

    /// Its name in the standard, if it is one that OPC uses.
    #[must_use]
    pub fn symbol(self) -> Option<&'static str> {
        KNOWN.iter().find(|(code, ..)| *code == self).map(|(_, symbol, _)| *symbol)
    }

    /// The code of this name in the standard.
    #[must_use]
    pub fn named(symbol: &str) -> Option<Self> {
        KNOWN.iter().find(|(_, own, _)| *own == symbol).map(|(code, ..)| *code)
    }

    /// What it means, in English: the text of GetErrorString.
    #[must_use]
    pub fn text(self) -> Option<&'static str> {
        KNOWN.iter().find(|(code, ..)| *code == self).map(|(.., text)| *text)
    }

    /// As a signed number, as methods carry it.
    #[must_use]
    pub fn signed(self) -> i32 {
        self.0.cast_signed()
    }

    /// `S_OK` if all are, else `S_FALSE`: what a method says whose items have codes of their own.
    #[must_use]
    pub fn of_items(codes: impl IntoIterator<Item = Self>) -> Self {
        if codes.into_iter().all(|code| code == Self::OK) { Self::OK } else { Self::FALSE }
    }

    /// The code that a failure carries, or that stands for its kind.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        let digits = failure.code().and_then(|code| code.strip_prefix("0x")?.get(..8));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => Self(code),
            None => match failure.kind() {
                Kind::Refused => Self::ACCESS_DENIED,
                Kind::BadArgument | Kind::BadReference => Self::INVALID_ARGUMENT,
                Kind::LimitExceeded => Self::OUT_OF_MEMORY,
                Kind::Unsupported => Self::NOT_IMPLEMENTED,
                _ => Self::FAIL,
            },
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => write!(f, "{symbol} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        let kind = match code {
            Code::ACCESS_DENIED | Code::BAD_RIGHTS => Kind::Refused,
            Code::OUT_OF_MEMORY => Kind::LimitExceeded,
            Code::NOT_IMPLEMENTED | Code::NOT_SUPPORTED | Code::NO_BUFFERING => Kind::Unsupported,
            Code::NO_INTERFACE => Kind::NoOperation,
            Code::FAIL | Code::NO_CONNECTION => Kind::Internal,
            _ => Kind::BadArgument,
        };
        let text = match (code.text(), code.symbol()) {
            (Some(text), Some(symbol)) => format!("{text} ({symbol})"),
            _ => format!("the server answers {code}"),
        };
        Self::new(kind, Initiator::User, text)
            .with_code(format!("{:#010x}", code.0))
            .with_completed(Completed::Yes)
    }
}
