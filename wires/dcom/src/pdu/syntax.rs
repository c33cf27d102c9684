//! Abstract and transfer syntaxes, and what a bind asks and answers about them (C706 12.6.3.1, MS-RPCE 2.2.2.4).
//!
//! States: none.
//!
//! Invariants: a `Syntax` is 20 octets on the wire, a UUID and a version whose halves follow the byte order.
//! Bind-time features (MS-RPCE 2.2.2.14) travel disguised as the transfer syntax of a presentation context; a
//! server that does not know them refuses that one context, and the client goes on without.

use super::ProtocolError;
use super::cursor::Cursor;
use uuid::{Uuid, uuid};

/// An interface or an encoding, with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Syntax {
    /// The UUID of the interface or of the encoding.
    pub id: Uuid,
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
}

/// NDR 2.0, with 32 bits.
pub const NDR: Syntax = Syntax { id: uuid!("8a885d04-1ceb-11c9-9fe8-08002b104860"), major: 2, minor: 0 };

/// NDR64 1.0, which is not spoken here.
pub const NDR64: Syntax = Syntax { id: uuid!("71710533-beba-4937-8319-b5dbef9ccc36"), major: 1, minor: 0 };

/// Bind-time feature: calls of several security contexts may share the connection (MS-RPCE 2.2.2.14).
pub const FEATURE_SECURITY_MULTIPLEX: u16 = 1;

/// Bind-time feature: the connection outlives an orphaned call.
pub const FEATURE_KEEP_ON_ORPHAN: u16 = 2;

/// Bind-time feature: faults are signed as the calls are that they answer. It is of this implementation: others clear what they
/// do not know (MS-RPCE 3.3.1.5.3). Without it faults come and go without a signature, for most clients take none on them.
pub const FEATURE_SIGNED_FAULTS: u16 = 0x8000;

/// The first eight octets of the pseudo syntax of bind-time feature negotiation; the next two are the features.
const FEATURES: [u8; 8] = [0x2c, 0x1c, 0xb7, 0x6c, 0x12, 0x98, 0x40, 0x45];

impl Syntax {
    /// A syntax with major version only.
    pub const fn new(id: Uuid, major: u16) -> Self {
        Self { id, major, minor: 0 }
    }

    /// The pseudo syntax that asks for these features.
    pub fn features(bits: u16) -> Self {
        let [f0, f1, f2, f3, f4, f5, f6, f7] = FEATURES;
        let [b0, b1] = bits.to_le_bytes();
        let raw = [f0, f1, f2, f3, f4, f5, f6, f7, b0, b1, 0, 0, 0, 0, 0, 0];
        Self { id: Uuid::from_bytes_le(raw), major: 1, minor: 0 }
    }

    /// The features, if this is the pseudo syntax that asks for them.
    pub fn asks_features(&self) -> Option<u16> {
        let raw = self.id.to_bytes_le();
        let bits = raw.strip_prefix(&FEATURES)?.first_chunk()?;
        Some(u16::from_le_bytes(*bits))
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "syntax";
        let id = cursor.uuid(WHAT)?;
        // One 32-bit number, the minor version in its high half: the order of the halves follows the byte order.
        let version = cursor.u32(WHAT)?.to_le_bytes();
        let [m0, m1, n0, n1] = version;
        Ok(Self { id, major: u16::from_le_bytes([m0, m1]), minor: u16::from_le_bytes([n0, n1]) })
    }

    /// Appends it, little-endian.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_bytes_le());
        out.extend_from_slice(&self.major.to_le_bytes());
        out.extend_from_slice(&self.minor.to_le_bytes());
    }
}

/// A presentation context that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextElement {
    /// The number that the client gives the context; calls name it. Numbers need not be dense, and the same
    /// one may be negotiated again.
    pub id: u16,
    /// The interface.
    pub interface: Syntax,
    /// The encodings that the client can use, in its order of preference. A bind with none is an error
    /// (`ProtocolError::Empty`), which the session finds.
    pub transfers: Vec<Syntax>,
}

impl ContextElement {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "presentation context";
        let id = cursor.u16(WHAT)?;
        let [count, _] = cursor.octets(WHAT)?;
        let interface = Syntax::read(cursor)?;
        let transfers = (0..count).map(|_| Syntax::read(cursor)).collect::<Result<_, _>>()?;
        Ok(Self { id, interface, transfers })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_le_bytes());
        let count = u8::try_from(self.transfers.len()).unwrap_or(u8::MAX);
        out.extend_from_slice(&[count, 0]);
        self.interface.write(out);
        for transfer in self.transfers.iter().take(count.into()) {
            transfer.write(out);
        }
    }
}

/// What a server says to a presentation context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextResult {
    /// 0 accepted, 1 refused by the user, 2 by the provider, 3 features were negotiated.
    pub result: u16,
    /// For result 2: 1 the interface is unknown, 2 no encoding is known, 3 a limit. For result 3: the bits of
    /// the accepted features. Otherwise 0.
    pub reason: u16,
    /// The encoding that was chosen; all zero if the context was refused, or for features.
    pub transfer: Syntax,
}

impl ContextResult {
    /// The encoding will be used.
    pub fn accepted(transfer: Syntax) -> Self {
        Self { result: 0, reason: 0, transfer }
    }

    /// There is no such interface.
    pub const UNKNOWN_INTERFACE: Self = Self::refused(1);
    /// None of the encodings is spoken.
    pub const UNKNOWN_TRANSFER: Self = Self::refused(2);
    /// A limit.
    pub const LIMIT: Self = Self::refused(3);

    const fn refused(reason: u16) -> Self {
        Self { result: 2, reason, transfer: Syntax { id: Uuid::nil(), major: 0, minor: 0 } }
    }

    /// These features were accepted.
    pub fn features(bits: u16) -> Self {
        Self { result: 3, reason: bits, transfer: Syntax::default() }
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "result";
        let (result, reason) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
        Ok(Self { result, reason, transfer: Syntax::read(cursor)? })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.result.to_le_bytes());
        out.extend_from_slice(&self.reason.to_le_bytes());
        self.transfer.write(out);
    }
}
