//! Numbers at their alignment in a run of octets, in either byte order: what CDR and the encoding of D-Bus have in common.
//!
//! `AlignedWriter` writes to a growing buffer, `AlignedReader` reads from a slice. Both count alignment from where the message, or a part
//! that is aligned on its own, began, and not from the place in memory. Neither knows types; what strings look like is each wire's.
//!
//! Invariants:
//! * The reader never reads past its slice, and never panics: each read is checked, and a failed one says what was wanted and at which
//!   offset. Where padding is not looked at, `pos` may stand behind the end after an alignment; every read fails then.
//! * A count that was read allocates nothing here. Whoever reads a list checks the count against what is left before he reserves
//!   memory.
//! * Padding is written as zeros.

use crate::failure::Failure;

/// The byte order that this machine writes.
pub const NATIVE_LITTLE: bool = cfg!(target_endian = "little");

/// What is wrong with padding, where it must be zero.
pub const PADDING: &str = "padding is not zero";

/// Octets that do not hold what they should. It becomes a `Failure` for one call where a body is read; where a message's own header is
/// read, the wire makes a violation of it, which ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub what: &'static str,
    /// Offset in what was being read.
    pub at: usize,
}

impl DecodeError {
    /// Within something else whose part that was read begins at `base`.
    #[must_use]
    pub fn after(self, base: usize) -> Self {
        Self { at: self.at + base, ..self }
    }
}

impl From<DecodeError> for Failure {
    fn from(bad: DecodeError) -> Self {
        Self::malformed(bad.what, bad.at)
    }
}

/// Writes to a flat buffer.
#[derive(Debug)]
pub struct AlignedWriter<'r> {
    /// The buffer; what stands in it already is left as it is.
    pub out: &'r mut Vec<u8>,
    /// Added (wrapping) to the buffer's length, gives the offset in the message.
    pub shift: usize,
    /// Whether numbers are written in the other byte order than this machine's.
    pub swap: bool,
}

macro_rules! put_numbers {
    ($($name:ident)*) => {$(
        /// A number at its alignment.
        #[inline]
        pub fn $name(&mut self, value: $name) {
            self.align(size_of::<$name>());
            let value = if self.swap { value.swap_bytes() } else { value };
            self.out.extend_from_slice(&value.to_ne_bytes());
        }
    )*};
}

impl<'r> AlignedWriter<'r> {
    /// Writes a message, or a part that is aligned like one, at the end of `out`. Offset 0 is the present end of `out`.
    #[inline]
    pub fn new(out: &'r mut Vec<u8>, little: bool) -> Self {
        let shift = 0usize.wrapping_sub(out.len());
        Self { out, shift, swap: little != NATIVE_LITTLE }
    }

    /// Offset in the message.
    #[inline]
    pub fn at(&self) -> usize {
        self.out.len().wrapping_add(self.shift)
    }

    /// Whether it writes little-endian.
    #[inline]
    pub fn little(&self) -> bool {
        self.swap != NATIVE_LITTLE
    }

    /// Pads with zeros to a multiple of `to`: 1, 2, 4 or 8.
    #[inline]
    pub fn align(&mut self, to: usize) {
        let pad = self.at().wrapping_neg() & (to - 1);
        if pad != 0 {
            let end = self.out.len() + pad;
            // As many as there can be are written in one go.
            self.out.extend_from_slice(&[0; 8]);
            self.out.truncate(end);
        }
    }

    /// An octet.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    put_numbers!(u16 u32 u64);

    /// A count or a length. One beyond 32 bits is written as the greatest; the check of the whole message's size, which every message
    /// passes before it is sent, then refuses it.
    #[inline]
    pub fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// A counted run of octets.
    #[inline]
    pub fn octets(&mut self, octets: &[u8]) {
        self.count(octets.len());
        self.out.extend_from_slice(octets);
    }

    /// Replaces the number at an index of the buffer. An index without room for four octets changes nothing.
    #[inline]
    pub fn patch(&mut self, index: usize, value: u32) {
        patch(self.out, index, if self.swap { value.swap_bytes() } else { value });
    }
}

/// Replaces the number at an index of a buffer, in this machine's byte order.
#[inline]
pub fn patch(out: &mut [u8], index: usize, value: u32) {
    if let Some(place) = out.get_mut(index..).and_then(<[u8]>::first_chunk_mut) {
        *place = value.to_ne_bytes();
    }
}

/// Reads; never past the end. `ZEROS`: padding must be there and zero, or else nobody looks at it. It is `Copy`, so that a reader can
/// look ahead with a copy and go on from there, or not.
#[derive(Debug, Clone, Copy)]
pub struct AlignedReader<'a, const ZEROS: bool> {
    /// What is read: a message, a part of one, or the values of a body.
    pub bytes: &'a [u8],
    /// Index of the next octet in `bytes`.
    pub pos: usize,
    /// Offset of the first octet in what alignment is counted from.
    pub base: usize,
    /// Byte order of the numbers.
    pub little: bool,
}

macro_rules! get_numbers {
    ($($name:ident)*) => {$(
        /// A number at its alignment.
        ///
        /// # Errors
        /// It is not there.
        #[inline]
        pub fn $name(&mut self) -> Result<$name, DecodeError> {
            let raw = self.number()?;
            Ok(if self.little { $name::from_le_bytes(raw) } else { $name::from_be_bytes(raw) })
        }
    )*};
}

impl<'a, const ZEROS: bool> AlignedReader<'a, ZEROS> {
    /// Octets that are left; 0 too where an alignment has moved behind the end.
    #[inline]
    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    /// An error at the present place.
    #[cold]
    pub fn bad(&self, what: &'static str) -> DecodeError {
        DecodeError { what, at: self.pos }
    }

    /// Octets up to a multiple of `to`, a power of 2.
    #[inline]
    fn padding(&self, to: usize) -> usize {
        self.base.wrapping_add(self.pos).wrapping_neg() & (to - 1)
    }

    /// Steps over padding, which must be there and zero.
    #[inline]
    fn zeros(&mut self, to: usize) -> Result<(), DecodeError> {
        let pad = self.padding(to);
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

    /// The octets of a primitive, behind its padding. The position moves only if all of them are there.
    #[inline]
    fn number<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = if ZEROS {
            self.zeros(N)?;
            self.pos
        } else {
            self.pos + self.padding(N)
        };
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(chunk) => {
                self.pos = start + N;
                Ok(*chunk)
            }
            None => Err(self.bad("the message ends inside a number")),
        }
    }

    /// An octet.
    ///
    /// # Errors
    /// It is not there.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.number::<1>().map(|[octet]| octet)
    }

    get_numbers!(u16 u32 u64);

    /// A run of octets without a count.
    ///
    /// # Errors
    /// It is longer than what is left.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(taken) => {
                self.pos += len;
                Ok(taken)
            }
            None => Err(self.bad("a length exceeds the rest of the message")),
        }
    }

    /// A count or a length, as an index.
    ///
    /// # Errors
    /// It is not there.
    #[inline]
    pub fn count(&mut self) -> Result<usize, DecodeError> {
        // 32 bits fit `usize` on every platform this runs on; elsewhere `take` refuses what does not.
        self.u32().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// A counted run of octets.
    ///
    /// # Errors
    /// It is longer than what is left.
    #[inline(always)]
    pub fn octets(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.count()?;
        self.take(len)
    }
}

impl AlignedReader<'_, false> {
    /// Moves to a multiple of `to` (a power of 2) without a check; the next read notices an end.
    #[inline]
    pub fn align(&mut self, to: usize) {
        self.pos += self.padding(to);
    }
}

impl AlignedReader<'_, true> {
    /// Steps over padding to a multiple of `to`, a power of 2.
    ///
    /// # Errors
    /// It is not there, or not zero.
    #[inline]
    pub fn align(&mut self, to: usize) -> Result<(), DecodeError> {
        self.zeros(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An octet, and numbers of each width behind their padding.
    fn written(little: bool) -> Vec<u8> {
        let mut out = b"before".to_vec();
        let mut put = AlignedWriter::new(&mut out, little);
        put.u8(1);
        put.u16(0x0203);
        put.u32(0x0405_0607);
        put.u8(8);
        put.u64(9);
        put.octets(b"abc");
        assert_eq!((put.at(), put.little()), (31, little));
        out.split_off(6)
    }

    #[test]
    fn what_is_written_reads_the_same_in_either_byte_order() {
        for little in [true, false] {
            let bytes = &written(little);
            let mut get = AlignedReader::<'_, true> { bytes, pos: 0, base: 0, little };
            assert_eq!((get.u8(), get.u16(), get.u32()), (Ok(1), Ok(0x0203), Ok(0x0405_0607)));
            assert_eq!((get.u8(), get.u64(), get.octets()), (Ok(8), Ok(9), Ok(&b"abc"[..])));
            assert_eq!((get.left(), get.u8()), (0, Err(get.bad("the message ends inside a number"))));
        }
    }

    #[test]
    fn padding_is_looked_at_where_it_must_be_zero() {
        let bytes = &[1, 2, 3, 4, 5, 6, 7, 8];
        let mut strict = AlignedReader::<'_, true> { bytes, pos: 1, base: 0, little: true };
        assert_eq!(strict.u32(), Err(DecodeError { what: PADDING, at: 1 }));
        let mut lenient = AlignedReader::<'_, false> { bytes, pos: 1, base: 0, little: true };
        assert_eq!(lenient.u32(), Ok(0x0807_0605));
        lenient.align(16);
        assert_eq!((lenient.left(), lenient.take(0).is_err()), (0, true));
    }
}
