//! Values at their lowest: aligned primitives, strings, padding (specification, "Marshaling").
//!
//! Alignment is counted from the beginning of the message; a body begins at a multiple of 8, so its alignment is that of the message.
//! Padding must be there and zero: the specification calls other messages invalid, and a bus closes the connection of whoever sends one.
//! A length that was read allocates nothing here; that of an array is checked against 64 MiB first.

use crate::limits;
use crate::violations::ProtocolError;
use everywire_model::aligned::{AlignedReader, AlignedWriter};

pub(crate) use everywire_model::aligned::{DecodeError, NATIVE_LITTLE, PADDING, patch};

/// Writes a message.
pub(crate) type BasicWriter<'r> = AlignedWriter<'r>;

/// Reads header fields, or the values of a body.
pub(crate) type Get<'a> = AlignedReader<'a, true>;

impl From<DecodeError> for ProtocolError {
    fn from(bad: DecodeError) -> Self {
        if bad.what == PADDING {
            Self::Padding { at: bad.at }
        } else {
            Self::Header { what: bad.what, at: bad.at }
        }
    }
}

/// The texts that D-Bus writes.
pub(crate) trait WriteText {
    /// A string: its length, the bytes, NUL. The text must have no NUL inside; the sink refuses one.
    fn string(&mut self, text: &[u8]);

    /// A signature: its length in one byte, the bytes, NUL. Signatures are at most 255 octets long, which
    /// whoever spells one checks.
    fn signature(&mut self, text: &[u8]);
}

impl WriteText for BasicWriter<'_> {
    #[inline]
    fn string(&mut self, text: &[u8]) {
        self.octets(text);
        self.out.push(0);
    }

    #[inline]
    fn signature(&mut self, text: &[u8]) {
        self.out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.out.extend_from_slice(text);
        self.out.push(0);
    }
}

/// What D-Bus reads beside numbers and octets.
pub(crate) trait ReadText<'a> {
    /// The length of an array: the bytes of its elements, without the padding before the first.
    fn array(&mut self) -> Result<usize, DecodeError>;

    /// A string, without its NUL.
    fn string(&mut self) -> Result<&'a [u8], DecodeError>;

    /// A signature, without its NUL.
    fn signature(&mut self) -> Result<&'a [u8], DecodeError>;
}

impl<'a> ReadText<'a> for Get<'a> {
    #[inline]
    fn array(&mut self) -> Result<usize, DecodeError> {
        let length = self.count()?;
        if length > limits::ARRAY { Err(self.bad("an array is longer than 64 MiB")) } else { Ok(length) }
    }

    #[inline]
    fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.count()?;
        terminated(self, length)
    }

    #[inline]
    fn signature(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u8()?;
        terminated(self, length.into())
    }
}

/// Text of this length and its NUL.
#[inline]
fn terminated<'a>(get: &mut Get<'a>, length: usize) -> Result<&'a [u8], DecodeError> {
    let at = get.pos;
    match get.take(length.saturating_add(1))?.split_last() {
        Some((0, text)) => Ok(text),
        _ => Err(DecodeError { what: "a string does not end with NUL", at }),
    }
}
