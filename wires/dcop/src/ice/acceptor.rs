//! The side that is connected to.
//!
//! States (`HandshakeState`): byte order, connection set-up, cookie for the connection, protocol set-up, cookie for
//! the protocol; then it is done, and `Framing` takes over. There is no way back, and no message is taken out
//! of turn but a Ping. Each failure is told to the peer as an ICE error, and the connection ends.
//!
//! The peer is nobody before it has shown the cookie: messages are bounded (`ICE_LIMIT`), nothing is kept of
//! them but numbers, and the caller bounds the time and the answers. Cookies are compared in constant time.

use super::core::{Class, Core, Severity, put_byte_order, put_core, put_error};
use super::handshake::{Handshake, Received};
use super::{MAGIC_COOKIE, NATIVE_LITTLE, PROTOCOL, Progress, ProtocolError, RELEASE, VENDOR, VERSION};
use bytes::BytesMut;
use everywire_model::Violation;
use std::sync::Arc;

/// The opcode that this side gives to DCOP. Not 1, as initiators use: whoever takes the two for one shows it
/// at once. (The real server has 2 as well.)
const OPCODE: u8 = 2;

/// The handshake of the side that is connected to. It demands the cookie twice, for the connection and for
/// the protocol, as every DCOP server does. It is dropped when the handshake is over.
#[derive(Debug)]
pub struct Acceptor {
    /// The secret of this server, shared by all its connections.
    cookie: Arc<[u8]>,
    /// What has to come next.
    awaits: HandshakeState,
    /// The peer's opcode for DCOP.
    peer_opcode: u8,
    /// Indices of the versions chosen.
    version: u8,
    received: Received,
}

/// What has to come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandshakeState {
    ByteOrder,
    ConnectionSetup,
    ConnectionCookie,
    ProtocolSetup,
    ProtocolCookie,
}

impl Acceptor {
    /// With the cookie that peers must show, and that stands in the authority file for protocol `ICE`.
    pub fn new(cookie: Arc<[u8]>) -> Self {
        Self {
            cookie,
            awaits: HandshakeState::ByteOrder,
            peer_opcode: 0,
            version: 0,
            received: Received::default(),
        }
    }

    /// What to send first.
    pub fn greet(&self, out: &mut Vec<u8>) {
        put_byte_order(out);
    }

    /// Takes complete messages from `input` and appends to `out` what is to be sent: on an error too.
    ///
    /// # Errors
    /// The peer broke the protocol or could not authenticate; the connection is to be closed.
    pub fn receive(&mut self, input: &mut BytesMut, out: &mut Vec<u8>) -> Result<Progress, Violation> {
        self.take(input, out)
    }

    /// Bytes missing from the message that has begun; 0 if none.
    pub fn wanted(&self) -> usize {
        self.received.wanted
    }

    /// Bytes taken from the input.
    pub fn offset(&self) -> u64 {
        self.received.offset
    }

    /// The same cookie is wanted both times.
    fn check(&self, cookie: &[u8]) -> Result<(), ProtocolError> {
        if everywire_auth::same_secret(&self.cookie, cookie) {
            Ok(())
        } else {
            Err(ProtocolError::WrongCookie)
        }
    }
}

impl Handshake for Acceptor {
    fn received(&mut self) -> &mut Received {
        &mut self.received
    }

    fn message(&mut self, core: &Core<'_>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        use HandshakeState::{ByteOrder, ConnectionCookie, ConnectionSetup, ProtocolCookie, ProtocolSetup};
        self.awaits = match (self.awaits, core) {
            (ByteOrder, Core::ByteOrder { little }) => {
                self.received.little = *little;
                ConnectionSetup
            }
            (ConnectionSetup, Core::ConnectionSetup { methods, versions, .. }) => {
                self.version = index(versions, &(1, 0)).ok_or(ProtocolError::NoVersion { what: "ICE" })?;
                demand_cookie(methods, out)?;
                ConnectionCookie
            }
            (ConnectionCookie, Core::AuthReply { data }) => {
                self.check(data)?;
                let (version, vendor, release): (_, &[u8], &[u8]) = (self.version, b"MIT", b"1.0");
                put_core(out, &Core::ConnectionReply { version, vendor, release });
                ProtocolSetup
            }
            (ProtocolSetup, Core::ProtocolSetup { opcode, protocol, methods, versions, .. }) => {
                if *protocol != PROTOCOL {
                    // The error names the protocol: it is written here, where the name is at hand.
                    let (class, sequence) = (Class::UNKNOWN_PROTOCOL, self.received.sequence);
                    put_error(out, class, core.minor(), Severity::Protocol, sequence, protocol);
                    return Err(ProtocolError::UnknownProtocol);
                }
                if *opcode == 0 {
                    return Err(ProtocolError::Value { what: "opcode of a protocol", value: 0 });
                }
                self.peer_opcode = *opcode;
                self.version = index(versions, &VERSION).ok_or(ProtocolError::NoVersion { what: "DCOP" })?;
                demand_cookie(methods, out)?;
                ProtocolCookie
            }
            (ProtocolCookie, Core::AuthReply { data }) => {
                self.check(data)?;
                let (version, opcode) = (self.version, OPCODE);
                put_core(out, &Core::ProtocolReply { version, opcode, vendor: VENDOR, release: RELEASE });
                let (peer_opcode, swap) = (self.peer_opcode, self.received.little != NATIVE_LITTLE);
                return Ok(Progress::Done { peer_opcode, my_opcode: OPCODE, swap });
            }
            (ConnectionSetup | ConnectionCookie | ProtocolSetup | ProtocolCookie, Core::Ping) => {
                put_core(out, &Core::PingReply);
                self.awaits
            }
            (awaits, core) => {
                return Err(ProtocolError::State { minor: core.minor(), awaited: awaits.word() });
            }
        };
        Ok(Progress::More)
    }

    fn complain(&self, wrong: &ProtocolError, minor: u8, out: &mut Vec<u8>) {
        let (class, severity, reason): (u16, Severity, &[u8]) = match wrong {
            ProtocolError::UnknownProtocol => return,
            ProtocolError::WrongCookie => {
                let reason = b"MIT-MAGIC-COOKIE-1 authentication rejected";
                (Class::AUTH_REJECTED, Severity::Protocol, reason)
            }
            ProtocolError::NoAuthentication => {
                let reason = b"only MIT-MAGIC-COOKIE-1 is accepted, and it was not offered";
                (Class::AUTH_REJECTED, Severity::Protocol, reason)
            }
            ProtocolError::NoVersion { .. } => (Class::NO_VERSION, Severity::Protocol, b""),
            ProtocolError::Major { .. } => (Class::BAD_MAJOR, Severity::Connection, b""),
            ProtocolError::Minor { .. } => (Class::BAD_MINOR, Severity::Connection, b""),
            ProtocolError::State { .. } => (Class::BAD_STATE, Severity::Connection, b""),
            ProtocolError::Value { .. } => (Class::BAD_VALUE, Severity::Connection, b""),
            _ => (Class::BAD_LENGTH, Severity::Connection, b""),
        };
        put_error(out, class, minor, severity, self.received.sequence, reason);
    }
}

/// Demands the cookie, if the peer can show one.
fn demand_cookie(methods: &[&[u8]], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    let index = index(methods, &MAGIC_COOKIE).ok_or(ProtocolError::NoAuthentication)?;
    put_core(out, &Core::AuthRequired { index, data: b"" });
    Ok(())
}

/// Its place in what the peer has offered.
fn index<T: PartialEq>(all: &[T], one: &T) -> Option<u8> {
    all.iter().position(|held| held == one).and_then(|at| u8::try_from(at).ok())
}

impl HandshakeState {
    /// What is awaited, as the specification calls it.
    fn word(self) -> &'static str {
        match self {
            Self::ByteOrder => "ByteOrder",
            Self::ConnectionSetup => "ConnectionSetup",
            Self::ConnectionCookie | Self::ProtocolCookie => "AuthenticationReply",
            Self::ProtocolSetup => "ProtocolSetup",
        }
    }
}
