//! A hasher for numbers that this side made: they spread well enough as they are.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes one number by one multiplication. Not for numbers that a peer chooses: it could choose ones that
/// collide.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Multiply(u64);

/// Makes them.
pub(crate) type Plain = BuildHasherDefault<Multiply>;

impl Hasher for Multiply {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The table looks at the low bits as well as the high ones.
        self.0 = mixed ^ (mixed >> 32);
    }
}
