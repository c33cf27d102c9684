//! Numbers of what this node hands out.

use std::hash::{BuildHasher, RandomState};

use everywire_auth::system_random;
use uuid::{Builder, Uuid};

/// A UUID that nobody can guess (version 4). Without the kernel's random numbers it is made of the random keys of a hash map,
/// which the standard library took when they could still be had.
pub(crate) fn random_uuid() -> Uuid {
    let mut octets = [0; 16];
    if system_random(&mut octets).is_err() {
        for half in octets.chunks_exact_mut(8) {
            half.copy_from_slice(&RandomState::new().hash_one(half.len()).to_le_bytes());
        }
    }
    Builder::from_random_bytes(octets).into_uuid()
}

/// A number that nobody can guess: where one half of a random UUID has fixed bits, the other has random ones.
/// Who knows a number may use it: OXIDs, OIDs and sets are not secret, but must not be found by counting.
pub(super) fn unguessable() -> u64 {
    let (high, low) = random_uuid().as_u64_pair();
    high.rotate_left(32) ^ low
}

/// Such a number that is not 0 and not taken.
pub(super) fn unused(is_taken: impl Fn(u64) -> bool) -> u64 {
    std::iter::repeat_with(unguessable).find(|id| *id != 0 && !is_taken(*id)).unwrap_or_default()
}
