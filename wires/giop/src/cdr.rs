//! CDR at its lowest: aligned primitives, counted octets, encapsulations (CORBA 3.3 part 2, section 9.3).
//!
//! `CdrWriter` writes to a growing buffer, `Get` reads from a slice. Both know where the message began, because CDR
//! aligns every primitive to its size *counted from the beginning of the message*, or of the innermost
//! encapsulation, and not from the place in memory. Neither knows types; `sink` and `source` stand on them.
//!
//! Invariants:
//! * `Get` never reads past its slice, and never panics: each read is checked, and a failed one says what was
//!   wanted and at which offset. `pos` may stand behind the end after an alignment; every read fails then.
//! * A count read from a message allocates nothing here. Whoever reads a list checks the count against what
//!   is left (`parts`, `take`) before he reserves memory.
//! * Padding is written as zeros and not looked at when read, as the specification says.

use crate::limits::REFERENCE_PARTS;
use crate::violations::ProtocolError;
use everywire_model::Failure;

/// The byte order that this machine writes.
pub(crate) const NATIVE_LITTLE: bool = cfg!(target_endian = "little");

/// Bytes that do not hold what they should. It becomes a `Failure` for one call where a body is read, and a
/// `ProtocolError`, which ends the connection, where a message's own header is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeError {
    /// What is wrong.
    pub(crate) what: &'static str,
    /// Offset in what was being read.
    pub(crate) at: usize,
}

impl From<DecodeError> for Failure {
    fn from(bad: DecodeError) -> Self {
        Self::malformed(bad.what, bad.at)
    }
}

impl From<DecodeError> for ProtocolError {
    fn from(bad: DecodeError) -> Self {
        Self::Header { what: bad.what, at: bad.at }
    }
}

/// Writes to a flat buffer; alignment is counted from where the message, or the encapsulation, began.
pub(crate) struct CdrWriter<'r> {
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

impl<'r> CdrWriter<'r> {
    /// Writes a message, or a part that is aligned like one, at the end of `out`. Offset 0 is the present end
    /// of `out`.
    pub(crate) fn new(out: &'r mut Vec<u8>, little: bool) -> Self {
        let shift = 0usize.wrapping_sub(out.len());
        Self { out, shift, swap: little != NATIVE_LITTLE }
    }

    /// Offset in the message.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.out.len().wrapping_add(self.shift)
    }

    /// Whether it writes little-endian.
    pub(crate) fn little(&self) -> bool {
        self.swap != NATIVE_LITTLE
    }

    /// Pads with zeros to a multiple of `to`, which is a power of 2.
    #[inline]
    pub(crate) fn align(&mut self, to: usize) {
        let pad = self.at().wrapping_neg() & (to - 1);
        if pad != 0 {
            self.out.resize(self.out.len() + pad, 0);
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    put_numbers!(u16 u32 u64);

    /// Several numbers, one behind the other.
    #[inline]
    pub(crate) fn u32s<const N: usize>(&mut self, values: [u32; N]) {
        self.align(size_of::<u32>());
        let values = values.map(|value| if self.swap { value.swap_bytes() } else { value }.to_ne_bytes());
        self.out.extend_from_slice(values.as_flattened());
    }

    /// A count. One beyond 32 bits is written as the greatest; the check of the whole message's size, which every
    /// message passes before it is sent, then refuses it.
    #[inline]
    pub(crate) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// A counted run of octets.
    #[inline]
    pub(crate) fn octets(&mut self, octets: &[u8]) {
        self.count(octets.len());
        self.out.extend_from_slice(octets);
    }

    /// A narrow string: its length with the NUL, the bytes, NUL. The text must have no NUL inside: the sink
    /// refuses one, since a reader in C would cut it there.
    #[inline]
    pub(crate) fn string(&mut self, text: &[u8]) {
        self.count(text.len() + 1);
        self.out.extend_from_slice(text);
        self.out.push(0);
    }

    /// An encapsulation: a counted run of octets, aligned on its own, that begins with its byte order. The
    /// count is written as 0 first and patched when the content is complete. The byte order is that of the
    /// message around.
    pub(crate) fn encapsulate<E>(
        &mut self,
        fill: impl FnOnce(&mut CdrWriter<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.u32(0);
        let start = self.out.len();
        let mut inner = CdrWriter { shift: 0usize.wrapping_sub(start), swap: self.swap, out: &mut *self.out };
        inner.u8(inner.little().into());
        let result = fill(&mut inner);
        let len = self.out.len() - start;
        self.patch(start - 4, u32::try_from(len).unwrap_or(u32::MAX));
        result
    }

    /// The same for a content that cannot fail.
    pub(crate) fn encapsulated(&mut self, fill: impl FnOnce(&mut CdrWriter<'_>)) {
        let filled = self.encapsulate(|put| {
            fill(put);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = filled;
    }

    /// Replaces the number at an index of the buffer. An index without room for four octets changes nothing.
    pub(crate) fn patch(&mut self, index: usize, value: u32) {
        let value = if self.swap { value.swap_bytes() } else { value };
        if let Some(place) = self.out.get_mut(index..).and_then(<[u8]>::first_chunk_mut) {
            *place = value.to_ne_bytes();
        }
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

/// Reads; never past the end. It is `Copy`, so that a reader can look ahead with a copy and go on from there,
/// or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Get<'a> {
    /// What is read: a message, the content of an encapsulation, or the values of a body.
    pub(crate) bytes: &'a [u8],
    /// Index of the next octet in `bytes`.
    pub(crate) pos: usize,
    /// Offset of the first byte in what alignment is counted from.
    pub(crate) base: usize,
    /// Byte order of the numbers: that of the message, or of the encapsulation.
    pub(crate) little: bool,
}

/// Numbers at their alignment.
macro_rules! get_numbers {
    ($($name:ident)*) => {$(
        #[inline]
        pub(crate) fn $name(&mut self) -> Result<$name, DecodeError> {
            let raw = self.array()?;
            Ok(if self.little { $name::from_le_bytes(raw) } else { $name::from_be_bytes(raw) })
        }
    )*};
}

impl<'a> Get<'a> {
    /// The content of an encapsulation (its count already taken off).
    pub(crate) fn encapsulation(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match bytes.first() {
            Some(0) => Ok(Self { bytes, pos: 1, base: 0, little: false }),
            Some(1) => Ok(Self { bytes, pos: 1, base: 0, little: true }),
            _ => Err(DecodeError { what: "an encapsulation does not begin with its byte order", at: 0 }),
        }
    }

    /// Octets that are left; 0 too where an alignment has moved behind the end.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    /// An error at the present place.
    #[cold]
    pub(crate) fn bad(&self, what: &'static str) -> DecodeError {
        DecodeError { what, at: self.pos }
    }

    /// Moves to a multiple of `to` (a power of 2) without a check; the next read notices an end.
    #[inline]
    pub(crate) fn align(&mut self, to: usize) {
        self.pos += self.base.wrapping_add(self.pos).wrapping_neg() & (to - 1);
    }

    /// The octets of a primitive, behind its padding. The position moves only if all of them are there.
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.pos + (self.base.wrapping_add(self.pos).wrapping_neg() & (N - 1));
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(chunk) => {
                self.pos = start + N;
                Ok(*chunk)
            }
            None => Err(self.bad("the message ends inside a number")),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[octet]| octet)
    }

    get_numbers!(u16 u32 u64);

    /// Other values than 0 and 1 are refused, not taken as true, so that what is passed on is what was read.
    pub(crate) fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError { what: "a boolean is neither 0 nor 1", at: self.pos - 1 }),
        }
    }

    /// A run of octets without a count.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(taken) => {
                self.pos += len;
                Ok(taken)
            }
            None => Err(self.bad("a count exceeds the rest of the message")),
        }
    }

    /// A count, as an index.
    #[inline]
    pub(crate) fn count(&mut self) -> Result<usize, DecodeError> {
        // 32 bits fit `usize` on every platform this runs on; elsewhere `take` refuses what does not.
        self.u32().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// A count of profiles or components of a reference, each a tag and a count at least.
    pub(crate) fn parts(&mut self) -> Result<usize, DecodeError> {
        let count = self.count()?;
        if count > REFERENCE_PARTS || count > self.left() / 8 {
            return Err(self.bad("a reference has too many profiles or components"));
        }
        Ok(count)
    }

    /// A counted run of octets.
    #[inline(always)]
    pub(crate) fn octets(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.count()?;
        self.take(len)
    }

    /// A narrow string, without its NUL.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let at = self.pos;
        match self.octets()?.split_last() {
            Some((0, text)) => Ok(text),
            Some(_) => Err(DecodeError { what: "a string does not end with NUL", at }),
            None => Err(DecodeError { what: "a string of length 0 lacks its NUL", at }),
        }
    }

    /// A narrow string as text; bytes that are no UTF-8 are shown as the replacement character.
    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        self.string().map(|raw| String::from_utf8_lossy(raw).into_owned())
    }
}
