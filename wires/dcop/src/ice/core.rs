//! The messages of the ICE core protocol (Inter-Client Exchange 1.0, sections 6 and 7): all that have major
//! opcode 0.
//!
//! A message is a header of 8 bytes and a body, padded to a multiple of 8; its length counts units of 8 bytes
//! behind the header. Numbers are in the sender's byte order. Strings have a length of 16 bits and are padded
//! so that length and text together are a multiple of 4; padding may hold anything.
//!
//! `Core::read` takes a whole message and borrows from it; `put_core` writes one in this machine's byte
//! order. Nothing is kept here. Bounds: `IceHeader::read` refuses messages over `ICE_LIMIT` before anybody
//! waits for them; all counts are of 8 bits, and each item is checked against what is left, so a message
//! cannot make more than it is long.

use super::{ICE_LIMIT, NATIVE_LITTLE, ProtocolError};
use everywire_model::named_numbers;

/// Bytes in an ICE header.
pub const HEADER: usize = 8;

/// The first eight bytes of an ICE message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IceHeader {
    /// Minor opcode: the kind of message.
    pub minor: u8,
    /// Two bytes that each kind uses in its own way.
    pub data: [u8; 2],
    /// Length of the whole message in bytes, header included.
    pub len: usize,
}

impl IceHeader {
    /// Reads the header of a core message; `little` is the sender's byte order.
    ///
    /// # Errors
    /// The major opcode is not 0, or the message is larger than [`ICE_LIMIT`].
    pub fn read(raw: &[u8; HEADER], little: bool) -> Result<Self, ProtocolError> {
        let [major, minor, d0, d1, l0, l1, l2, l3] = *raw;
        if major != 0 {
            return Err(ProtocolError::Major { major });
        }
        let len = 8 * (u64::from(card32([l0, l1, l2, l3], little)) + 1);
        match usize::try_from(len) {
            Ok(len) if len <= ICE_LIMIT => Ok(Self { minor, data: [d0, d1], len }),
            _ => Err(ProtocolError::OverLimit { size: len, limit: ICE_LIMIT as u64 }),
        }
    }
}

/// Classes of errors (section 7.1 and 7.2).
pub struct Class;

impl Class {
    named_numbers! { u16 {
        /// No protocol was set up under this major opcode.
        BAD_MAJOR = 0 "BadMajor";
        /// No common authentication method.
        NO_AUTH = 1 "NoAuthentication";
        /// No common version.
        NO_VERSION = 2 "NoVersion";
        /// The set-up failed.
        SETUP_FAILED = 3 "SetupFailed";
        /// The peer is not who it must be.
        AUTH_REJECTED = 4 "AuthenticationRejected";
        /// Authentication could not be carried out.
        AUTH_FAILED = 5 "AuthenticationFailed";
        /// The protocol is set up already.
        PROTOCOL_DUPLICATE = 6 "ProtocolDuplicate";
        /// The opcode is taken already.
        MAJOR_OPCODE_DUPLICATE = 7 "MajorOpcodeDuplicate";
        /// The protocol to set up is unknown.
        UNKNOWN_PROTOCOL = 8 "UnknownProtocol";
        /// No such minor opcode.
        BAD_MINOR = 0x8000 "BadMinor";
        /// Not now.
        BAD_STATE = 0x8001 "BadState";
        /// Length and contents do not agree.
        BAD_LENGTH = 0x8002 "BadLength";
        /// A value that means nothing.
        BAD_VALUE = 0x8003 "BadValue";
        _ => "unknown class";
    } }
}

/// What an error ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Severity {
    /// Nothing.
    Continue = 0,
    /// The protocol.
    Protocol = 1,
    /// The connection.
    Connection = 2,
}

/// A message of the core protocol. Strings are bytes, without their length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Core<'a> {
    /// Something was wrong with a message of the receiver.
    Error {
        /// See [`Class`].
        class: u16,
        /// Minor opcode of the message that was wrong.
        offending: u8,
        /// See [`Severity`].
        severity: u8,
        /// Its number among the messages of its sender, from 1.
        sequence: u32,
        /// What follows, mostly a string.
        values: &'a [u8],
    },
    /// The first message of each side.
    ByteOrder {
        /// Whether the sender writes the least significant byte first.
        little: bool,
    },
    /// The initiator's offer.
    ConnectionSetup {
        /// Whether it insists on being authenticated.
        must_authenticate: bool,
        /// Vendor of its ICE.
        vendor: &'a [u8],
        /// Release of its ICE.
        release: &'a [u8],
        /// Authentication methods, the preferred first.
        methods: Vec<&'a [u8]>,
        /// Versions of ICE: major, minor.
        versions: Vec<(u16, u16)>,
    },
    /// The acceptor demands authentication.
    AuthRequired {
        /// Index into the methods offered.
        index: u8,
        /// Data of the method.
        data: &'a [u8],
    },
    /// The initiator's answer.
    AuthReply {
        /// Data of the method.
        data: &'a [u8],
    },
    /// One more turn.
    AuthNextPhase {
        /// Data of the method.
        data: &'a [u8],
    },
    /// The connection stands.
    ConnectionReply {
        /// Index into the versions offered.
        version: u8,
        /// Vendor of the acceptor's ICE.
        vendor: &'a [u8],
        /// Release of the acceptor's ICE.
        release: &'a [u8],
    },
    /// A protocol is to be spoken.
    ProtocolSetup {
        /// The sender's opcode for it.
        opcode: u8,
        /// Whether it insists on being authenticated.
        must_authenticate: bool,
        /// Its name.
        protocol: &'a [u8],
        /// Vendor of its implementation.
        vendor: &'a [u8],
        /// Release of its implementation.
        release: &'a [u8],
        /// Authentication methods, the preferred first.
        methods: Vec<&'a [u8]>,
        /// Versions of it: major, minor.
        versions: Vec<(u16, u16)>,
    },
    /// The protocol is set up.
    ProtocolReply {
        /// Index into the versions offered.
        version: u8,
        /// The replier's opcode for it.
        opcode: u8,
        /// Vendor of its implementation.
        vendor: &'a [u8],
        /// Release of its implementation.
        release: &'a [u8],
    },
    /// Are you there?
    Ping,
    /// Yes.
    PingReply,
    /// May I close?
    WantToClose,
    /// No.
    NoClose,
}

impl<'a> Core<'a> {
    /// Reads a whole message; `little` is the sender's byte order. (A `ByteOrder` reads the same in both.)
    ///
    /// # Errors
    /// Unknown kinds; lengths that do not fit to the byte, apart from the padding to 8.
    pub fn read(raw: &'a [u8], little: bool) -> Result<Self, ProtocolError> {
        let Some((first, body)) = raw.split_first_chunk::<HEADER>() else {
            return Err(ProtocolError::Length { minor: 0 });
        };
        let header = IceHeader::read(first, little)?;
        let ([d0, d1], minor) = (header.data, header.minor);
        if header.len != raw.len() {
            return Err(ProtocolError::Length { minor });
        }
        let mut fields = Fields { rest: body, little, minor };
        let core = match minor {
            0 => {
                let [offending, severity] = fields.take()?;
                fields.take::<2>()?;
                let sequence = card32(fields.take()?, little);
                let class = card16([d0, d1], little);
                let values = std::mem::take(&mut fields.rest);
                Self::Error { class, offending, severity, sequence, values }
            }
            1 if d0 > 1 => return Err(ProtocolError::Value { what: "byte order", value: d0.into() }),
            1 => Self::ByteOrder { little: d0 == 0 },
            2 => {
                let [must] = fields.take()?;
                fields.take::<7>()?;
                let (vendor, release) = (fields.string()?, fields.string()?);
                let methods = fields.strings(d1)?;
                let versions = fields.versions(d0)?;
                let must_authenticate = must != 0;
                Self::ConnectionSetup { must_authenticate, vendor, release, methods, versions }
            }
            3 => Self::AuthRequired { index: d0, data: fields.authentication()? },
            4 => Self::AuthReply { data: fields.authentication()? },
            5 => Self::AuthNextPhase { data: fields.authentication()? },
            6 => Self::ConnectionReply { version: d0, vendor: fields.string()?, release: fields.string()? },
            7 => {
                let [versions, methods] = fields.take()?;
                fields.take::<6>()?;
                let (protocol, vendor, release) = (fields.string()?, fields.string()?, fields.string()?);
                let methods = fields.strings(methods)?;
                let versions = fields.versions(versions)?;
                let must_authenticate = d1 != 0;
                Self::ProtocolSetup {
                    opcode: d0,
                    must_authenticate,
                    protocol,
                    vendor,
                    release,
                    methods,
                    versions,
                }
            }
            8 => {
                let (vendor, release) = (fields.string()?, fields.string()?);
                Self::ProtocolReply { version: d0, opcode: d1, vendor, release }
            }
            9 => Self::Ping,
            10 => Self::PingReply,
            11 => Self::WantToClose,
            12 => Self::NoClose,
            minor => return Err(ProtocolError::Minor { minor }),
        };
        // The rest is the padding to a multiple of 8; its bytes mean nothing.
        if fields.rest.len() >= 8 { Err(ProtocolError::Length { minor }) } else { Ok(core) }
    }

    /// The number of the message, and the specification's word for it.
    fn kind(&self) -> (u8, &'static str) {
        match self {
            Self::Error { .. } => (0, "Error"),
            Self::ByteOrder { .. } => (1, "ByteOrder"),
            Self::ConnectionSetup { .. } => (2, "ConnectionSetup"),
            Self::AuthRequired { .. } => (3, "AuthenticationRequired"),
            Self::AuthReply { .. } => (4, "AuthenticationReply"),
            Self::AuthNextPhase { .. } => (5, "AuthenticationNextPhase"),
            Self::ConnectionReply { .. } => (6, "ConnectionReply"),
            Self::ProtocolSetup { .. } => (7, "ProtocolSetup"),
            Self::ProtocolReply { .. } => (8, "ProtocolReply"),
            Self::Ping { .. } => (9, "Ping"),
            Self::PingReply { .. } => (10, "PingReply"),
            Self::WantToClose { .. } => (11, "WantToClose"),
            Self::NoClose { .. } => (12, "NoClose"),
        }
    }

    /// The minor opcode.
    pub fn minor(&self) -> u8 {
        self.kind().0
    }

    /// The specification's word.
    pub fn word(&self) -> &'static str {
        self.kind().1
    }
}

/// Appends a message in this machine's byte order, padded with zeros. Strings longer than 65535 bytes are cut; no caller
/// has any.
pub fn put_core(out: &mut Vec<u8>, core: &Core<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0, core.minor(), 0, 0, 0, 0, 0, 0]);
    let data: [u8; 2] = match core {
        Core::Error { class, offending, severity, sequence, values } => {
            out.extend_from_slice(&[*offending, *severity, 0, 0]);
            out.extend_from_slice(&sequence.to_ne_bytes());
            out.extend_from_slice(values);
            class.to_ne_bytes()
        }
        Core::ByteOrder { little } => [u8::from(!little), 0],
        Core::ConnectionSetup { must_authenticate, vendor, release, methods, versions } => {
            out.extend_from_slice(&[u8::from(*must_authenticate), 0, 0, 0, 0, 0, 0, 0]);
            [*vendor, *release]
                .into_iter()
                .chain(methods.iter().copied())
                .for_each(|text| put_string(out, text));
            put_versions(out, versions);
            [count(versions), count(methods)]
        }
        Core::AuthRequired { index, data } => {
            put_authentication(out, data);
            [*index, 0]
        }
        Core::AuthReply { data } | Core::AuthNextPhase { data } => {
            put_authentication(out, data);
            [0, 0]
        }
        Core::ConnectionReply { version, vendor, release } => {
            put_string(out, vendor);
            put_string(out, release);
            [*version, 0]
        }
        Core::ProtocolSetup { opcode, must_authenticate, protocol, vendor, release, methods, versions } => {
            out.extend_from_slice(&[count(versions), count(methods), 0, 0, 0, 0, 0, 0]);
            let names = [*protocol, *vendor, *release].into_iter();
            names.chain(methods.iter().copied()).for_each(|text| put_string(out, text));
            put_versions(out, versions);
            [*opcode, u8::from(*must_authenticate)]
        }
        Core::ProtocolReply { version, opcode, vendor, release } => {
            put_string(out, vendor);
            put_string(out, release);
            [*version, *opcode]
        }
        Core::Ping | Core::PingReply | Core::WantToClose | Core::NoClose => [0, 0],
    };
    pad(out, start, 8);
    let units = u32::try_from((out.len() - start) / 8 - 1).unwrap_or_default();
    if let Some([_, _, d0, d1, length @ ..]) = out.get_mut(start..start + HEADER) {
        [*d0, *d1] = data;
        length.copy_from_slice(&units.to_ne_bytes());
    }
}

/// Appends an error about message number `sequence` of the peer, with a reason or none.
pub fn put_error(
    out: &mut Vec<u8>,
    class: u16,
    offending: u8,
    severity: Severity,
    sequence: u32,
    reason: &[u8],
) {
    let mut values = Vec::new();
    if !reason.is_empty() {
        put_string(&mut values, reason);
    }
    put_core(out, &Core::Error { class, offending, severity: severity as u8, sequence, values: &values });
}

/// The string that an error carries, if that is what its values are; else empty. `little` is the sender's
/// byte order.
pub(super) fn reason(values: &[u8], little: bool) -> String {
    let mut fields = Fields { rest: values, little, minor: 0 };
    fields.string().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

/// What is left of a message's body. Every read is checked; one that fails names the message by its minor
/// opcode.
struct Fields<'a> {
    rest: &'a [u8],
    little: bool,
    minor: u8,
}

impl<'a> Fields<'a> {
    /// So many bytes.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or(ProtocolError::Length { minor: self.minor })?;
        self.rest = rest;
        Ok(*taken)
    }

    /// As many bytes as a count says.
    fn slice(&mut self, len: usize) -> Result<&'a [u8], ProtocolError> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or(ProtocolError::Length { minor: self.minor })?;
        self.rest = rest;
        Ok(taken)
    }

    /// A counted string, with its padding.
    fn string(&mut self) -> Result<&'a [u8], ProtocolError> {
        let len = usize::from(card16(self.take()?, self.little));
        let text = self.slice(len)?;
        self.slice((2 + len).wrapping_neg() % 4)?;
        Ok(text)
    }

    /// So many strings.
    fn strings(&mut self, count: u8) -> Result<Vec<&'a [u8]>, ProtocolError> {
        (0..count).map(|_| self.string()).collect()
    }

    /// So many pairs of major and minor.
    fn versions(&mut self, count: u8) -> Result<Vec<(u16, u16)>, ProtocolError> {
        let mut one = || Ok((card16(self.take()?, self.little), card16(self.take()?, self.little)));
        (0..count).map(|_| one()).collect()
    }

    /// Data of an authentication method: a length of 16 bits, 6 bytes without meaning, the data.
    fn authentication(&mut self) -> Result<&'a [u8], ProtocolError> {
        let len = card16(self.take()?, self.little);
        self.take::<6>()?;
        self.slice(len.into())
    }
}

/// ICE's name for an unsigned number of 16 bits.
fn card16(raw: [u8; 2], little: bool) -> u16 {
    if little { u16::from_le_bytes(raw) } else { u16::from_be_bytes(raw) }
}

/// ICE's name for an unsigned number of 32 bits.
pub(super) fn card32(raw: [u8; 4], little: bool) -> u32 {
    if little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) }
}

/// With its length and its padding.
fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let start = out.len();
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend(text.iter().take(len.into()));
    pad(out, start, 4);
}

fn put_versions(out: &mut Vec<u8>, versions: &[(u16, u16)]) {
    for (major, minor) in versions {
        out.extend_from_slice(&major.to_ne_bytes());
        out.extend_from_slice(&minor.to_ne_bytes());
    }
}

/// Data over 65535 bytes are cut; a cookie has 16.
fn put_authentication(out: &mut Vec<u8>, data: &[u8]) {
    let len = u16::try_from(data.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend_from_slice(&[0; 6]);
    out.extend(data.iter().take(len.into()));
}

/// Pads what was written since `start` to a multiple of `to`.
fn pad(out: &mut Vec<u8>, start: usize, to: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(to), 0);
}

/// As the header counts things; no caller has as many as 255.
fn count<T>(of: &[T]) -> u8 {
    u8::try_from(of.len()).unwrap_or(u8::MAX)
}

/// The greeting of both sides.
pub(super) fn put_byte_order(out: &mut Vec<u8>) {
    put_core(out, &Core::ByteOrder { little: NATIVE_LITTLE });
}
