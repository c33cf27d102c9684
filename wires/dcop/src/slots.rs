//! Subscriptions to signals, and the slots that the server connects them to.

use crate::strings::put_name;
use bytes::Bytes;

/// What the ids of slots begin with.
const SLOT: &[u8] = b"everywire-signal-";

/// A subscription.
pub(crate) struct Sub {
    /// The emitter; empty: anybody.
    pub(crate) app: Bytes,
    pub(crate) slots: Vec<u64>,
    /// Slots that the server has not confirmed.
    pub(crate) unconfirmed: usize,
}

/// One signal of a subscription.
pub(crate) struct Slot {
    pub(crate) subscription: u64,
    /// The application that emits it; empty: any.
    pub(crate) app: Bytes,
    /// The object that emits it; empty: any.
    pub(crate) object: Bytes,
    /// The name that the contract gives it.
    pub(crate) name: Bytes,
    pub(crate) signature: Bytes,
}

/// The number of the slot with this object id.
pub(crate) fn slot_of(object: &[u8]) -> Option<u64> {
    std::str::from_utf8(object.strip_prefix(SLOT)?).ok()?.parse().ok()
}

/// The object id of a slot.
pub(crate) fn slot_id(number: u64) -> Vec<u8> {
    [SLOT, number.to_string().as_bytes()].concat()
}

/// What connecting and disconnecting have in common: sender, its object, signal, receiver, slot.
pub(crate) fn connection(number: u64, slot: &Slot) -> Vec<u8> {
    let mut arguments = Vec::new();
    let receiver = slot_id(number);
    for part in [&slot.app[..], &slot.object, &slot.signature, &receiver, &slot.signature] {
        put_name(&mut arguments, part);
    }
    arguments
}
