//! Reading the fixed parts of a PDU, in the byte order of its header.
//!
//! Invariant: the position never exceeds the length of the slice; a read beyond it is `ProtocolError::Truncated`
//! with the name of the part. Nothing is allocated here.

use super::ProtocolError;
use std::ops::Range;
use uuid::Uuid;

/// A place in a PDU; every read is checked.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Octets from the beginning of the PDU, where C706 counts alignment from.
    at: usize,
    little: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize, little: bool) -> Self {
        Self { bytes, at, little }
    }

    /// An array of octets.
    #[inline]
    pub(crate) fn octets<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ProtocolError> {
        let found = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        let found = *found.ok_or(ProtocolError::Truncated { what })?;
        self.at += N;
        Ok(found)
    }

    #[inline]
    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, ProtocolError> {
        let raw = self.octets(what)?;
        Ok(if self.little { u16::from_le_bytes(raw) } else { u16::from_be_bytes(raw) })
    }

    #[inline]
    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, ProtocolError> {
        let raw = self.octets(what)?;
        Ok(if self.little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) })
    }

    /// A UUID, whose first three parts are numbers.
    #[inline]
    pub(crate) fn uuid(&mut self, what: &'static str) -> Result<Uuid, ProtocolError> {
        let raw = self.octets(what)?;
        Ok(if self.little { Uuid::from_bytes_le(raw) } else { Uuid::from_bytes(raw) })
    }

    /// `len` comes from the peer; the sum is checked before the slice is.
    pub(crate) fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], ProtocolError> {
        let end = self.at.checked_add(len).ok_or(ProtocolError::Truncated { what })?;
        let found = self.bytes.get(self.at..end).ok_or(ProtocolError::Truncated { what })?;
        self.at = end;
        Ok(found)
    }

    /// Skips to a multiple of `to`, counted from the beginning of the PDU.
    pub(crate) fn align(&mut self, to: usize, what: &'static str) -> Result<(), ProtocolError> {
        let pad = self.at.next_multiple_of(to) - self.at;
        self.take(pad, what).map(|_| ())
    }

    /// What is left.
    #[inline]
    pub(crate) fn rest(&self) -> Range<usize> {
        self.at..self.bytes.len()
    }
}
