//! Values at their lowest: aligned primitives, strings, padding (specification, "Marshaling").
//!
//! `BasicWriter` writes to a growing buffer, `Get` reads from a slice. Both count alignment from the beginning of the
//! message, not from the place in memory; a body begins at a multiple of 8, so its alignment is that of the
//! message.
//!
//! Invariants:
//! * `Get` never reads past its slice and never panics: each read is checked, and a failed one says what was
//!   wanted and at which offset.
//! * Padding must be there and zero: the specification calls other messages invalid, and a bus closes the
//!   connection of whoever sends one.
//! * A length that was read allocates nothing here; that of an array is checked against 64 MiB first.

use crate::limits;
use crate::violations::ProtocolError;
use everywire_model::Failure;

/// The byte order that this machine writes.
pub(crate) const NATIVE_LITTLE: bool = cfg!(target_endian = "little");

/// Bytes that do not hold what they should. In a header it ends the connection (`ProtocolError`), in a body it fails
/// one call (`Failure`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeError {
    /// What is wrong.
    pub(crate) what: &'static str,
    /// Offset in what was being read.
    pub(crate) at: usize,
}

/// What is wrong with padding. `ProtocolError` has a variant of its own for it, found by this text.
pub(crate) const PADDING: &str = "padding is not zero";

impl From<DecodeError> for Failure {
    fn from(bad: DecodeError) -> Self {
        Self::malformed(bad.what, bad.at)
    }
}

impl From<DecodeError> for ProtocolError {
    fn from(bad: DecodeError) -> Self {
        if bad.what == PADDING {
            Self::Padding { at: bad.at }
        } else {
            Self::Header { what: bad.what, at: bad.at }
        }
    }
}

/// Writes to a flat buffer; alignment is counted from where the message began.
pub(crate) struct BasicWriter<'r> {
    /// The buffer; what stands in it already is left as it is.
    pub(crate) out: &'r mut Vec<u8>,
    /// Added (wrapping) to the buffer's length, gives the offset in the message.
    pub(crate) shift: usize,
    /// Whether numbers are written in the other byte order than this machine's.
    pub(crate) swap: bool,
}

/// Numbers at their alignment.
macro_rules! put_numbers {
    ($($name:ident)*) => {$(
        #[inline]
        pub(crate) fn $name(&mut self, value: $name) {
            self.align(size_of::<$name>());
            let value = if self.swap { value.swap_bytes() } else { value };
            self.out.extend_from_slice(&value.to_ne_bytes());
        }
    )*};
}

impl<'r> BasicWriter<'r> {
    /// Writes a message at the end of `out`, in this machine's byte order.
    #[inline]
    pub(crate) fn new(out: &'r mut Vec<u8>) -> Self {
        let shift = 0usize.wrapping_sub(out.len());
        Self { out, shift, swap: false }
    }

    /// Offset in the message.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.out.len().wrapping_add(self.shift)
    }

    /// Pads with zeros to a multiple of `to`: 1, 2, 4 or 8.
    #[inline]
    pub(crate) fn align(&mut self, to: usize) {
        let pad = self.at().wrapping_neg() & (to - 1);
        if pad != 0 {
            self.out.extend_from_slice([0; 8].get(..pad).unwrap_or_default());
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    put_numbers!(u16 u32 u64);

    /// A length. One beyond 32 bits is written as the greatest; the check of the whole message's size, which every
    /// message passes before it is sent, then refuses it.
    #[inline]
    pub(crate) fn length(&mut self, length: usize) {
        self.u32(u32::try_from(length).unwrap_or(u32::MAX));
    }

    /// A string: its length, the bytes, NUL. The text must have no NUL inside; the sink refuses one.
    #[inline]
    pub(crate) fn string(&mut self, text: &[u8]) {
        self.length(text.len());
        self.out.extend_from_slice(text);
        self.out.push(0);
    }

    /// A signature: its length in one byte, the bytes, NUL. Signatures are at most 255 octets long, which
    /// whoever spells one checks.
    #[inline]
    pub(crate) fn signature(&mut self, text: &[u8]) {
        self.out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.out.extend_from_slice(text);
        self.out.push(0);
    }

    /// Replaces the number at an index of the buffer.
    #[inline]
    pub(crate) fn patch(&mut self, index: usize, value: u32) {
        let value = if self.swap { value.swap_bytes() } else { value };
        patch(self.out, index, value);
    }
}

/// Replaces the number at an index of a buffer, in this machine's byte order.
#[inline]
pub(crate) fn patch(out: &mut [u8], index: usize, value: u32) {
    if let Some(place) = out.get_mut(index..).and_then(<[u8]>::first_chunk_mut) {
        *place = value.to_ne_bytes();
    }
}

/// Reads; never past the end. It is `Copy`, so that a reader can look ahead with a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Get<'a> {
    /// What is read: header fields, or the values of a body.
    pub(crate) bytes: &'a [u8],
    /// Index of the next octet in `bytes`.
    pub(crate) pos: usize,
    /// Offset of the first byte in what alignment is counted from.
    pub(crate) base: usize,
    /// Byte order of the numbers: that of the message.
    pub(crate) little: bool,
}

/// Numbers at their alignment.
macro_rules! get_numbers {
    ($($name:ident)*) => {$(
        #[inline]
        pub(crate) fn $name(&mut self) -> Result<$name, DecodeError> {
            let raw = self.chunk()?;
            Ok(if self.little { $name::from_le_bytes(raw) } else { $name::from_be_bytes(raw) })
        }
    )*};
}

impl<'a> Get<'a> {
    /// Octets that are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    /// An error at the present place.
    #[cold]
    pub(crate) fn bad(&self, what: &'static str) -> DecodeError {
        DecodeError { what, at: self.pos }
    }

    /// Steps over padding, which must be there and zero.
    #[inline]
    pub(crate) fn align(&mut self, to: usize) -> Result<(), DecodeError> {
        let pad = self.base.wrapping_add(self.pos).wrapping_neg() & (to - 1);
        if pad == 0 {
            return Ok(());
        }
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..pad)) {
            Some(padding) if padding.iter().all(|&octet| octet == 0) => {
                self.pos += pad;
                Ok(())
            }
            Some(_) => Err(self.bad(PADDING)),
            None => Err(self.bad("the message ends inside padding")),
        }
    }

    /// The octets of a primitive, behind its padding.
    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.align(N)?;
        match self.bytes.get(self.pos..).and_then(<[u8]>::first_chunk) {
            Some(chunk) => {
                self.pos += N;
                Ok(*chunk)
            }
            None => Err(self.bad("the message ends inside a number")),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.chunk::<1>().map(|[octet]| octet)
    }

    get_numbers!(u16 u32 u64);

    /// A run of octets.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(taken) => {
                self.pos += len;
                Ok(taken)
            }
            None => Err(self.bad("a length exceeds the rest of the message")),
        }
    }

    /// A length, as an index.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize, DecodeError> {
        // 32 bits fit `usize` on every platform this runs on; elsewhere `take` refuses what does not.
        self.u32().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The length of an array: the bytes of its elements, without the padding before the first.
    #[inline]
    pub(crate) fn array(&mut self) -> Result<usize, DecodeError> {
        let length = self.length()?;
        if length > limits::ARRAY { Err(self.bad("an array is longer than 64 MiB")) } else { Ok(length) }
    }

    /// A string, without its NUL.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length()?;
        self.terminated(length)
    }

    /// A signature, without its NUL.
    #[inline]
    pub(crate) fn signature(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u8()?;
        self.terminated(length.into())
    }

    /// Text of this length and its NUL.
    #[inline]
    fn terminated(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let at = self.pos;
        match self.take(length.saturating_add(1))?.split_last() {
            Some((0, text)) => Ok(text),
            _ => Err(DecodeError { what: "a string does not end with NUL", at }),
        }
    }
}
