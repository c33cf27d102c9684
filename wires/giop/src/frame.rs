//! Message headers (CORBA 3.3 part 2, section 9.4.1).
//!
//! Twelve octets: the magic `GIOP`, major and minor version, flags (bit 0: little-endian; bit 1: fragments
//! follow), the kind of message, and the size of what follows, in the byte order that the flags say.
//! `Header::read` refuses whatever this side does not know, so all that stands behind it relies on a valid
//! version and kind. The size is checked by the session, against its limit.

use crate::cdr::NATIVE_LITTLE;
use crate::violations::ProtocolError;
use everywire_model::named_variants;

/// Bytes in a message header.
pub const HEADER: usize = 12;

/// The first four bytes of every message.
pub const MAGIC: [u8; 4] = *b"GIOP";

named_variants! {
    /// Kinds of messages, with the numbers of the wire and the specification's words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MessageKind: u8 {
        /// A call.
        Request = 0 "Request",
        /// The answer to a call.
        Reply = 1 "Reply",
        /// The client withdraws a call.
        CancelRequest = 2 "CancelRequest",
        /// The client asks where an object is.
        LocateRequest = 3 "LocateRequest",
        /// The answer to that.
        LocateReply = 4 "LocateReply",
        /// Goodbye.
        CloseConnection = 5 "CloseConnection",
        /// The sender got a message it cannot understand.
        MessageError = 6 "MessageError",
        /// More of a message that began before (GIOP 1.1 and later).
        Fragment = 7 "Fragment",
    }
}

impl MessageKind {
    /// Whether a message of this kind may be sent in fragments. GIOP 1.0 has no fragments; 1.1 has them for
    /// requests and replies, 1.2 for locate messages too.
    fn fragments(self, minor: u8) -> bool {
        match self {
            Self::Request | Self::Reply | Self::Fragment => minor >= 1,
            Self::LocateRequest | Self::LocateReply => minor >= 2,
            _ => false,
        }
    }
}

/// A message header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The minor version; the major is 1.
    pub minor: u8,
    /// Byte order of the rest.
    pub little: bool,
    /// Whether fragments follow.
    pub more: bool,
    /// Kind of message.
    pub kind: MessageKind,
    /// Bytes after the header.
    pub size: u32,
}

impl Header {
    /// Reads a header. Bits of the flags that the specification reserves must be 0: a set one most likely
    /// shows that the stream is out of step.
    ///
    /// # Errors
    /// Another protocol, a version, flag or kind that this crate does not know.
    #[inline]
    pub fn read(raw: &[u8; HEADER]) -> Result<Self, ProtocolError> {
        let [m0, m1, m2, m3, major, minor, flags, octet, s0, s1, s2, s3] = *raw;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(ProtocolError::NotGiop { found: [m0, m1, m2, m3] });
        }
        if major != 1 || minor > 2 {
            return Err(ProtocolError::Version { major, minor });
        }
        // In 1.0 the octet is a boolean; later its second bit says that fragments follow.
        if flags > 3 || (minor == 0 && flags > 1) {
            return Err(ProtocolError::Flags { flags });
        }
        let Some(kind) = MessageKind::of_number(octet) else { return Err(ProtocolError::Kind { octet }) };
        let (little, more) = (flags & 1 != 0, flags & 2 != 0);
        if (more && !kind.fragments(minor)) || (kind == MessageKind::Fragment && minor == 0) {
            return Err(ProtocolError::NotFragmentable { kind: kind.word(), minor });
        }
        let size = [s0, s1, s2, s3];
        let size = if little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
        Ok(Self { minor, little, more, kind, size })
    }

    /// Whole length of the message, header included.
    #[inline]
    pub fn len(&self) -> u64 {
        u64::from(self.size) + HEADER as u64
    }

    /// Whether nothing follows the header.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }
}

/// Appends a header in this machine's byte order; the size is patched in by [`set_size`].
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, minor: u8, kind: MessageKind) {
    let [m0, m1, m2, m3] = MAGIC;
    out.extend_from_slice(&[m0, m1, m2, m3, 1, minor, u8::from(NATIVE_LITTLE), kind as u8, 0, 0, 0, 0]);
}

/// Sets the size in the header that begins at `header`. `size` is in octets after the header.
#[inline]
pub(crate) fn set_size(out: &mut [u8], header: usize, size: u32) {
    if let Some(place) = out.get_mut(header + 8..).and_then(<[u8]>::first_chunk_mut) {
        *place = size.to_ne_bytes();
    }
}

/// Says of the header that begins at `header`, and is whole, that its message is in the other byte order.
pub(crate) fn turn(out: &mut [u8], header: usize) {
    if let Some(flags) = out.get_mut(header + 6) {
        *flags ^= 1;
    }
    if let Some(size) = out.get_mut(header + 8..header + 12) {
        size.reverse();
    }
}

/// Sets the bit that says fragments follow.
pub(crate) fn set_more(out: &mut [u8], header: usize) {
    if let Some(flags) = out.get_mut(header + 6) {
        *flags |= 2;
    }
}
