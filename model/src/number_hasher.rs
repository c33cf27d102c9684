//! A hasher for numbers that this side gives, one after the other: they spread well enough as they are.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes one number by one multiplication. Not for numbers that a peer chooses: it could choose ones that
/// collide.
#[derive(Debug, Clone, Copy, Default)]
pub struct Multiply(u64);

/// Makes them.
pub type NumberHasher = BuildHasherDefault<Multiply>;

impl Hasher for Multiply {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((self.0 << 8) | u64::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // The golden ratio in 64 bits. It is odd, so numbers that follow each other differ in the low bits, too.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
