//! Tables by numbers that this program gives out, such as those of connections and calls: each message looks into them some five times,
//! and the hash of the standard library, which is made for keys of any length, took a thirtieth of a message's instructions.
//!
//! The numbers are no peer's choice. All the same each table has a secret of its own, so that nobody can tell which numbers meet.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A table by such numbers.
pub(crate) type ByNumber<K, V> = HashMap<K, V, Secret>;

/// What the hashes of one table begin with.
#[derive(Clone)]
pub(crate) struct Secret(u64);

impl Default for Secret {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0_u8))
    }
}

impl BuildHasher for Secret {
    type Hasher = Number;

    #[inline]
    fn build_hasher(&self) -> Number {
        Number(self.0)
    }
}

/// The hash of some numbers.
pub(crate) struct Number(u64);

impl Hasher for Number {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        // Both halves of the product: tables look at the highest bits and at the lowest.
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        #[allow(clippy::cast_possible_truncation)]
        let halves = (product as u64, (product >> 64) as u64);
        self.0 = halves.0 ^ halves.1;
    }

    /// Of anything else: octet by octet.
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.write_u64(u64::from(*octet)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_in_a_row_are_spread_over_all_bits() {
        let secret = Secret::default();
        let hashes: Vec<u64> = (0..4096_u64).map(|number| secret.hash_one((7_u64, number))).collect();
        let differ =
            |bits: fn(u64) -> u64| hashes.iter().map(|hash| bits(*hash)).collect::<HashSet<_>>().len();
        assert_eq!(differ(|hash| hash), 4096);
        // Of 128 there are all; of 4096 places chance fills 63 in a hundred, and no secret leaves much less.
        assert_eq!(differ(|hash| hash >> 57), 128);
        assert!(differ(|hash| hash & 4095) > 1500, "{}", differ(|hash| hash & 4095));
        assert_ne!(
            secret.hash_one(1_u64),
            Secret::default().hash_one(1_u64),
            "each table has its own secret"
        );
    }
}
