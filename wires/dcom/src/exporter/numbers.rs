//! Numbers of what this node hands out.

use uuid::Uuid;

/// A number that nobody can guess: where one half of a random UUID has fixed bits, the other has random ones.
/// Who knows a number may use it: OXIDs, OIDs and sets are not secret, but must not be found by counting.
pub(super) fn unguessable() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    high.rotate_left(32) ^ low
}

/// Such a number that is not 0 and not taken.
pub(super) fn unused(is_taken: impl Fn(u64) -> bool) -> u64 {
    std::iter::repeat_with(unguessable).find(|id| *id != 0 && !is_taken(*id)).unwrap_or_default()
}
