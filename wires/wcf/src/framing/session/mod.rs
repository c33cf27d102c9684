//! One connection's framing: the side that made it and the side that took it.
//!
//! Both are state machines without I/O (`everywire_model::Session`): `receive` takes bytes, `transmit`
//! shows what is to be sent, `poll` tells what happened, `deadline` and `expire` are their clock. Each
//! holds a `Channel` for the records and a `SoapChannel` for what is in the envelopes.

mod accepting;
mod connecting;

pub use accepting::Accepting;
pub use connecting::Connecting;

use super::preamble::{Encoding, Mode};
use crate::settings;
use crate::soap::{Dialect, Soap};
use crate::violations::Breach;

/// What the first bytes of a connection say if they are of another protocol, which people meet by a wrong scheme.
/// They are told so, instead of that record 0x47 does not exist.
fn foreign(input: &[u8]) -> Option<Breach> {
    let (protocol, schemes) = match input {
        [] => return None,
        // GET begins with the same letter.
        [b'G', b'I', ..] => ("GIOP", "use iiop:// or corbaloc:"),
        // A method, or a status line.
        [b'P' | b'G' | b'H' | b'O', ..] => ("HTTP", "use basic://, wshttp:// or binhttp://"),
        // What a bus answers while it knows nobody yet: REJECTED, ERROR.
        [b'R', b'E', ..] | [b'E', b'R', ..] => ("D-Bus", "use dbus:"),
        // Version 5.0 of DCE/RPC. The record with this number begins nothing.
        [5, 0, ..] => ("DCE/RPC", "use dcom://"),
        // A handshake's record.
        [0x16, ..] => ("TLS", "use basics://, wshttps:// or binhttps://, or net.tcp with ?security=tls"),
        _ => return None,
    };
    Some(Breach::Foreign { protocol, schemes })
}

/// Whether a message's encoding is the one that a place was told to take.
/// The place was told by `encoding=`.
fn is_of(encoding: Encoding, told: settings::Encoding) -> bool {
    match told {
        settings::Encoding::Session => encoding == Encoding::BinarySession,
        settings::Encoding::Binary => encoding == Encoding::Binary,
        settings::Encoding::Text => matches!(encoding, Encoding::Soap11Utf8 | Encoding::Soap12Utf8),
        settings::Encoding::Mtom => encoding == Encoding::Mtom,
    }
}

/// How envelopes are written, if this side speaks the encoding.
/// The other encodings of the specification (UTF-16, MTOM) are refused with ContentTypeInvalid.
fn dialect(encoding: Encoding) -> Option<Dialect> {
    match encoding {
        Encoding::BinarySession => Some(Dialect::NET_TCP),
        Encoding::Binary => Some(Dialect::BINARY),
        Encoding::Soap12Utf8 => Some(Dialect::WS),
        Encoding::Soap11Utf8 => Some(Dialect { soap: Soap::V11, ..Dialect::WS }),
        _ => None,
    }
}

/// What the connecting side speaks: as its address says, where the mode allows for it.
fn spoken(asked: settings::Encoding, mode: Mode) -> (Encoding, Dialect) {
    match asked {
        settings::Encoding::Session if Encoding::BinarySession.fits(mode) => {
            (Encoding::BinarySession, Dialect::NET_TCP)
        }
        settings::Encoding::Session | settings::Encoding::Binary => (Encoding::Binary, Dialect::BINARY),
        settings::Encoding::Text | settings::Encoding::Mtom => (Encoding::Soap12Utf8, Dialect::WS),
    }
}
