//! The side that connects.
//!
//! States (`HandshakeState`): byte order, then the connection, then the protocol; before each of the latter the peer
//! may demand the cookie, or not. Then it is done, and `Framing` takes over. An error of the peer is a
//! refusal, whenever it comes; what this side does not expect is a violation, which nothing tells the peer.

use super::core::{Core, put_byte_order, put_core, reason};
use super::handshake::{Handshake, Received};
use super::{MAGIC_COOKIE, NATIVE_LITTLE, PROTOCOL, Progress, ProtocolError, RELEASE, VENDOR, VERSION};
use bytes::BytesMut;
use everywire_model::Violation;

/// The opcode that this side gives to DCOP. The first number that is free, as in all clients.
const OPCODE: u8 = 1;

/// The handshake of the side that connects.
#[derive(Debug)]
pub struct Initiator {
    /// Shown when the peer demands it; nothing: no method is offered.
    cookie: Option<Vec<u8>>,
    /// What has to come next.
    awaits: HandshakeState,
    received: Received,
}

/// What has to come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandshakeState {
    ByteOrder,
    /// An `AuthRequired`, or that the connection stands at once.
    Connection,
    ConnectionReply,
    /// The same for the protocol.
    Protocol,
    ProtocolReply,
}

impl Initiator {
    /// With the cookie of the authority file's entry for protocol `ICE` and the server's network id. Without one no
    /// authentication is offered, and most acceptors refuse.
    pub fn new(cookie: Option<Vec<u8>>) -> Self {
        Self { cookie, awaits: HandshakeState::ByteOrder, received: Received::default() }
    }

    /// What to send first.
    pub fn greet(&self, out: &mut Vec<u8>) {
        put_byte_order(out);
    }

    /// Takes complete messages from `input` and appends to `out` what is to be sent.
    ///
    /// # Errors
    /// The peer broke the protocol, or it refused: then the violation's name is [`ProtocolError::REFUSED`].
    pub fn receive(&mut self, input: &mut BytesMut, out: &mut Vec<u8>) -> Result<Progress, Violation> {
        self.take(input, out)
    }

    /// Bytes missing from the message that has begun; 0 if none.
    pub fn wanted(&self) -> usize {
        self.received.wanted
    }

    /// Answers with the cookie; `index` is the method that the peer has chosen of those offered.
    fn authenticate(&self, index: u8, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match &self.cookie {
            Some(cookie) if index == 0 => {
                put_core(out, &Core::AuthReply { data: cookie });
                Ok(())
            }
            _ => {
                let what = "index of an authentication method offered";
                Err(ProtocolError::Value { what, value: index.into() })
            }
        }
    }
}

impl Handshake for Initiator {
    fn received(&mut self) -> &mut Received {
        &mut self.received
    }

    fn message(&mut self, core: &Core<'_>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        use HandshakeState::{ByteOrder, Connection, ConnectionReply, Protocol, ProtocolReply};
        let methods: Vec<&[u8]> = self.cookie.iter().map(|_| MAGIC_COOKIE).collect();
        self.awaits = match (self.awaits, core) {
            (_, Core::Error { class, values, .. }) => {
                return Err(ProtocolError::Refused {
                    class: *class,
                    reason: reason(values, self.received.little),
                });
            }
            (ByteOrder, Core::ByteOrder { little }) => {
                self.received.little = *little;
                let (vendor, release): (&[u8], &[u8]) = (b"MIT", b"1.0");
                let versions = vec![(1, 0)];
                let must_authenticate = false;
                put_core(
                    out,
                    &Core::ConnectionSetup { must_authenticate, vendor, release, methods, versions },
                );
                Connection
            }
            (Connection, Core::AuthRequired { index, .. }) => {
                self.authenticate(*index, out)?;
                ConnectionReply
            }
            (Connection | ConnectionReply, Core::ConnectionReply { version, .. }) => {
                only_version(*version)?;
                let setup = Core::ProtocolSetup {
                    opcode: OPCODE,
                    must_authenticate: false,
                    protocol: PROTOCOL,
                    vendor: VENDOR,
                    release: RELEASE,
                    methods,
                    versions: vec![VERSION],
                };
                put_core(out, &setup);
                Protocol
            }
            (Protocol, Core::AuthRequired { index, .. }) => {
                self.authenticate(*index, out)?;
                ProtocolReply
            }
            (Protocol | ProtocolReply, Core::ProtocolReply { version, opcode, .. }) => {
                only_version(*version)?;
                if *opcode == 0 {
                    return Err(ProtocolError::Value { what: "opcode of a protocol", value: 0 });
                }
                let swap = self.received.little != NATIVE_LITTLE;
                return Ok(Progress::Done { peer_opcode: *opcode, my_opcode: OPCODE, swap });
            }
            (Connection | ConnectionReply | Protocol | ProtocolReply, Core::Ping) => {
                put_core(out, &Core::PingReply);
                self.awaits
            }
            (awaits, core) => {
                return Err(ProtocolError::State { minor: core.minor(), awaited: awaits.word() });
            }
        };
        Ok(Progress::More)
    }
}

/// One version was offered, and so it is that of index 0.
fn only_version(index: u8) -> Result<(), ProtocolError> {
    match index {
        0 => Ok(()),
        _ => Err(ProtocolError::Value { what: "index of a version offered", value: index.into() }),
    }
}

impl HandshakeState {
    /// What is awaited, as the specification calls it.
    fn word(self) -> &'static str {
        match self {
            Self::ByteOrder => "ByteOrder",
            Self::Connection => "AuthenticationRequired or ConnectionReply",
            Self::ConnectionReply => "ConnectionReply",
            Self::Protocol => "AuthenticationRequired or ProtocolReply",
            Self::ProtocolReply => "ProtocolReply",
        }
    }
}
