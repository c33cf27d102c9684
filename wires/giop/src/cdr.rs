//! CDR at its lowest: aligned primitives, counted octets, encapsulations (CORBA 3.3 part 2, section 9.3).
//!
//! CDR aligns every primitive to its size *counted from the beginning of the message*, or of the innermost encapsulation; padding is not
//! looked at when it is read, as the specification says. Neither writer nor reader knows types; `sink` and `source` stand on them.

use crate::limits::REFERENCE_PARTS;
use crate::violations::ProtocolError;
use everywire_model::aligned::{AlignedReader, AlignedWriter};

pub(crate) use everywire_model::aligned::{DecodeError, NATIVE_LITTLE};

/// Writes a message, or an encapsulation.
pub(crate) type CdrWriter<'r> = AlignedWriter<'r>;

/// Reads a message, the content of an encapsulation, or the values of a body.
pub(crate) type Get<'a> = AlignedReader<'a, false>;

impl From<DecodeError> for ProtocolError {
    fn from(bad: DecodeError) -> Self {
        Self::Header { what: bad.what, at: bad.at }
    }
}

/// What CDR writes beside numbers and octets.
pub(crate) trait WriteCdr {
    /// Several numbers, one behind the other.
    fn u32s<const N: usize>(&mut self, values: [u32; N]);

    /// A narrow string: its length with the NUL, the bytes, NUL. The text must have no NUL inside: the sink
    /// refuses one, since a reader in C would cut it there.
    fn string(&mut self, text: &[u8]);

    /// An encapsulation: a counted run of octets, aligned on its own, that begins with its byte order. The
    /// count is written as 0 first and patched when the content is complete. The byte order is that of the
    /// message around.
    fn encapsulate<E>(&mut self, fill: impl FnOnce(&mut CdrWriter<'_>) -> Result<(), E>) -> Result<(), E>;

    /// The same for a content that cannot fail.
    fn encapsulated(&mut self, fill: impl FnOnce(&mut CdrWriter<'_>)) {
        let filled = self.encapsulate(|put| {
            fill(put);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = filled;
    }
}

impl WriteCdr for CdrWriter<'_> {
    #[inline]
    fn u32s<const N: usize>(&mut self, values: [u32; N]) {
        self.align(size_of::<u32>());
        let values = values.map(|value| if self.swap { value.swap_bytes() } else { value }.to_ne_bytes());
        self.out.extend_from_slice(values.as_flattened());
    }

    #[inline]
    fn string(&mut self, text: &[u8]) {
        self.count(text.len() + 1);
        self.out.extend_from_slice(text);
        self.out.push(0);
    }

    fn encapsulate<E>(&mut self, fill: impl FnOnce(&mut CdrWriter<'_>) -> Result<(), E>) -> Result<(), E> {
        self.u32(0);
        let (start, little) = (self.out.len(), self.little());
        let mut inner = CdrWriter::new(&mut *self.out, little);
        inner.u8(little.into());
        let result = fill(&mut inner);
        let len = self.out.len() - start;
        self.patch(start - 4, u32::try_from(len).unwrap_or(u32::MAX));
        result
    }
}

/// An encapsulation as it stands in a tagged component or context, without the count in front.
pub(crate) fn encapsulation(fill: impl FnOnce(&mut CdrWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = CdrWriter::new(&mut out, NATIVE_LITTLE);
    put.u8(NATIVE_LITTLE.into());
    fill(&mut put);
    out
}

/// What CDR reads beside numbers and octets.
pub(crate) trait ReadCdr<'a>: Sized {
    /// The content of an encapsulation (its count already taken off).
    fn encapsulation(bytes: &'a [u8]) -> Result<Self, DecodeError>;

    /// Other values than 0 and 1 are refused, not taken as true, so that what is passed on is what was read.
    fn boolean(&mut self) -> Result<bool, DecodeError>;

    /// A count of profiles or components of a reference, each a tag and a count at least.
    fn parts(&mut self) -> Result<usize, DecodeError>;

    /// A narrow string, without its NUL.
    fn string(&mut self) -> Result<&'a [u8], DecodeError>;

    /// A narrow string as text; bytes that are no UTF-8 are shown as the replacement character.
    fn text(&mut self) -> Result<String, DecodeError> {
        self.string().map(|raw| String::from_utf8_lossy(raw).into_owned())
    }
}

impl<'a> ReadCdr<'a> for Get<'a> {
    fn encapsulation(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match bytes.first() {
            Some(0) => Ok(Self { bytes, pos: 1, base: 0, little: false }),
            Some(1) => Ok(Self { bytes, pos: 1, base: 0, little: true }),
            _ => Err(DecodeError { what: "an encapsulation does not begin with its byte order", at: 0 }),
        }
    }

    fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError { what: "a boolean is neither 0 nor 1", at: self.pos - 1 }),
        }
    }

    fn parts(&mut self) -> Result<usize, DecodeError> {
        let count = self.count()?;
        if count > REFERENCE_PARTS || count > self.left() / 8 {
            return Err(self.bad("a reference has too many profiles or components"));
        }
        Ok(count)
    }

    #[inline(always)]
    fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let at = self.pos;
        match self.octets()?.split_last() {
            Some((0, text)) => Ok(text),
            Some(_) => Err(DecodeError { what: "a string does not end with NUL", at }),
            None => Err(DecodeError { what: "a string of length 0 lacks its NUL", at }),
        }
    }
}
