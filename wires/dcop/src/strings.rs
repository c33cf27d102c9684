//! The counted strings that name things in every message: `QCString`s, with their NUL counted.

use crate::limits::NAME;
use everywire_model::Shape;
use everywire_model::shape::{Text, TextKind};

pub(crate) use everywire_model::aligned::DecodeError;

/// A walk over the front of a message's payload. It never reads past the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StringReader<'a> {
    /// The payload.
    pub(crate) bytes: &'a [u8],
    /// Index of the next octet.
    pub(crate) pos: usize,
}

impl<'a> StringReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    /// An error at the present place.
    #[cold]
    fn bad(&self, what: &'static str) -> DecodeError {
        DecodeError { what, at: self.pos }
    }

    /// Octets that are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    /// A number, big-endian as all of Qt's.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        let Some(raw) = self.bytes.get(self.pos..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.bad("a number is cut off"));
        };
        self.pos += 4;
        Ok(u32::from_be_bytes(*raw))
    }

    /// A name: the range of its bytes, without the NUL. Null and empty are the same.
    ///
    /// # Errors
    /// It is longer than names may be, or than the message; it has no NUL at its end, or one inside.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<std::ops::Range<usize>, DecodeError> {
        let len = self.u32()? as usize;
        if len > NAME {
            return Err(self.bad("a name is too long"));
        }
        let start = self.pos;
        let Some(raw) = self.bytes.get(start..start + len) else {
            return Err(self.bad("a name is longer than the message"));
        };
        self.pos += len;
        match raw.split_last() {
            None => Ok(start..start),
            Some((0, name)) if !name.contains(&0) => Ok(start..start + len - 1),
            Some((0, _)) => Err(self.bad("a name has a NUL inside")),
            Some(_) => Err(self.bad("a name does not end with NUL")),
        }
    }

    /// The data at the end: its range. What follows it is nobody's.
    #[inline]
    pub(crate) fn data(&mut self) -> Result<std::ops::Range<usize>, DecodeError> {
        let len = self.u32()? as usize;
        // A null array is counted as 2^32 - 1 by nobody; longer than the rest is wrong in any case.
        if len > self.left() {
            return Err(self.bad("data are longer than the message"));
        }
        let start = self.pos;
        self.pos += len;
        Ok(start..start + len)
    }
}

/// What stands for no text, where a shape is a text that may be null: a `QString` without a length, or a `QCString`
/// without even its NUL. Every string of Qt's may be null; where that matters, its shape is optional.
#[inline]
pub(crate) fn null(shape: &Shape) -> Option<[u8; 4]> {
    let Shape::Optional(target) = shape else { return None };
    match target.resolved() {
        Shape::Text(Text { kind: TextKind::Wide | TextKind::Counted, .. }) => Some([0xff; 4]),
        Shape::Text(_) => Some([0; 4]),
        _ => None,
    }
}

/// Appends a name. Its length counts the NUL. The caller has checked that none is inside.
#[inline]
pub(crate) fn put_name(out: &mut Vec<u8>, name: &[u8]) {
    put_len(out, name.len() + 1);
    out.extend_from_slice(name);
    out.push(0);
}

/// Appends a name that is null where it is empty, as in references and of senders without an id.
#[inline]
pub(crate) fn put_nullable(out: &mut Vec<u8>, name: &[u8]) {
    if name.is_empty() { put_len(out, 0) } else { put_name(out, name) }
}

/// Appends counted bytes.
#[inline]
pub(crate) fn put_data(out: &mut Vec<u8>, data: &[u8]) {
    put_len(out, data.len());
    out.extend_from_slice(data);
}

/// Appends a count. Counts are bounded by the largest message, which has 32 bits for its length.
#[inline]
pub(crate) fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
}

/// Writes a length into the place that was left for it.
#[inline]
pub(crate) fn patch_len(out: &mut [u8], at: usize, len: usize) {
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
    }
}
