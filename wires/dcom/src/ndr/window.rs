//! The bytes of a stub, read with alignment.
//!
//! Invariants: `at` may pass the end by padding alone, and the next read then fails; nothing is allocated.
//! `base` counts in alignment, so that a body cut out of its stub is read as it was written.

use crate::violations::Violation;
use everywire_model::visit::Visit;

/// A stub and a place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset of `bytes` in the stub.
    pub(super) base: usize,
    /// The next byte.
    pub(super) at: usize,
    pub(super) little: bool,
    /// Whether the values are Wine's.
    pub(super) wine: bool,
    /// Whether the next value follows without padding.
    /// Set around one value by the source, for Wine's packed structs.
    pub(super) loose: bool,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        pub(super) fn $name(&mut self) -> Visit<$type> {
            self.align(size_of::<$type>());
            let raw = self.take(size_of::<$type>())?;
            let raw = raw.try_into().map_err(|_| Violation::Truncated.at(self.at))?;
            Ok(if self.little { <$type>::from_le_bytes(raw) } else { <$type>::from_be_bytes(raw) })
        }
    )*};
}

impl<'a> Window<'a> {
    number!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);

    /// Skips padding to a multiple of a power of two; nobody looks at its content.
    #[inline]
    pub(super) fn align(&mut self, alignment: usize) {
        let over = (self.base + self.at) & (alignment - 1);
        if over != 0 && !self.loose {
            self.at += alignment - over;
        }
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Visit<&'a [u8]> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => Err(Violation::Truncated.at(self.at)),
        }
    }

    /// An OBJREF as Wine sends it, without padding and a referent: empty if there is none.
    pub(super) fn bare(&mut self) -> Visit<&'a [u8]> {
        let outer = std::mem::replace(&mut self.loose, true);
        let len = self.u32();
        self.loose = outer;
        self.take(len? as usize)
    }

    /// What is left of the stub.
    pub(super) fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }
}
