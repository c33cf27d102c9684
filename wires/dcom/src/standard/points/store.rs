//! Signals that wait for a sink, and what they hold of its principal's room.
//!
//! Invariants: a store has `WAITING` signals and `WAITING_BYTES` at the most, all stores of a principal
//! `PRINCIPAL_BYTES` together; one signal alone may exceed any of them, or it could never be sent. What is
//! charged for a signal stands beside it and is given back when it leaves, so the account is exact however
//! the weight is estimated.

use everywire_model::value::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Signals that wait for a sink. When there are more the oldest is lost: an emitter is never held up by a listener.
pub const WAITING: usize = 4096;

/// Bytes that these may hold. One signal alone may hold more.
pub const WAITING_BYTES: usize = 64 << 20;

/// Bytes of signals that wait for all sinks of a principal.
pub const PRINCIPAL_BYTES: usize = 256 << 20;

/// Bytes of signals that wait for the sinks of a principal.
#[derive(Debug, Default)]
pub(super) struct Account(AtomicUsize);

impl Account {
    /// Charges bytes, if there is room for them. The first of a principal always are.
    fn charge(&self, bytes: usize) -> bool {
        let grown = |held: usize| {
            let sum = held.saturating_add(bytes);
            (held == 0 || sum <= PRINCIPAL_BYTES).then_some(sum)
        };
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, grown).is_ok()
    }
}

/// The signals of one sink, the oldest first: numbers of operations, and their arguments.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Number of the operation, arguments, bytes charged; the oldest first.
    signals: VecDeque<(usize, Value, usize)>,
    /// The sum of the charges.
    bytes: usize,
    account: Arc<Account>,
}

impl Store {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self { signals: VecDeque::new(), bytes: 0, account }
    }

    pub(super) fn len(&self) -> usize {
        self.signals.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.signals.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a signal behind the others. Where there is no room the oldest are lost, or this one itself: how many.
    pub(super) fn push(&mut self, index: usize, value: Value) -> u64 {
        let (bytes, mut lost) = (weight(&value), 0);
        let is_full = |held: &Self| held.len() >= WAITING || held.bytes.saturating_add(bytes) > WAITING_BYTES;
        while !self.is_empty() && is_full(self) {
            drop(self.pop());
            lost += 1;
        }
        while !self.account.charge(bytes) {
            lost += 1;
            if self.pop().is_none() {
                return lost;
            }
        }
        self.bytes += bytes;
        self.signals.push_back((index, value, bytes));
        lost
    }

    /// Puts a signal before the others: one that was taken out, and has to be sent in another way.
    pub(super) fn put_back(&mut self, index: usize, value: Value) {
        let bytes = weight(&value);
        if self.account.charge(bytes) {
            self.bytes += bytes;
            self.signals.push_front((index, value, bytes));
        }
    }

    /// The oldest.
    pub(super) fn pop(&mut self) -> Option<(usize, Value)> {
        let (index, value, bytes) = self.signals.pop_front()?;
        self.give_back(bytes);
        Some((index, value))
    }

    /// Takes out all signals. The caller has to drop them without a lock: references in them may be the last
    /// ones.
    pub(super) fn clear(&mut self) -> VecDeque<(usize, Value, usize)> {
        self.give_back(self.bytes);
        std::mem::take(&mut self.signals)
    }

    /// Bytes that are held no longer.
    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.account.0.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

/// About how many bytes a value holds. Values here were written by this process, and are no deeper than its types are.
fn weight(value: &Value) -> usize {
    let beneath: usize = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(values) => values.iter().map(weight).sum(),
        Value::Struct(fields) => fields.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        Value::Variant(held) => weight(&held.1),
        _ => 0,
    };
    size_of::<Value>() + beneath
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_lost_and_counted_and_room_is_given_back() {
        let account = Arc::<Account>::default();
        let mut store = Store::new(Arc::clone(&account));
        let lost: u64 = (0..WAITING + 3).map(|index| store.push(index, Value::Integer(1))).sum();
        assert_eq!((lost, store.len(), store.pop().map(|(index, _)| index)), (3, WAITING, Some(3)));
        drop(store);
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn large_signals_are_lost_by_their_bytes_and_the_last_one_stays() {
        let mut store = Store::default();
        let large = || Value::Bytes(vec![0; WAITING_BYTES / 2].into());
        assert_eq!((store.push(0, large()), store.push(1, large()), store.len()), (0, 1, 1));
        assert_eq!(store.push(2, Value::Bytes(vec![0; WAITING_BYTES * 2].into())), 1);
        assert_eq!(store.pop().map(|(index, _)| index), Some(2));
        assert_eq!(store.bytes(), 0);
    }

    #[test]
    fn sinks_of_one_principal_share_their_room() {
        let account = Arc::<Account>::default();
        let mut stores: Vec<_> = (0..8).map(|_| Store::new(Arc::clone(&account))).collect();
        let large = || Value::Bytes(vec![0; PRINCIPAL_BYTES / 4].into());
        let lost: Vec<_> = stores.iter_mut().map(|store| store.push(0, large())).collect();
        assert_eq!(lost, [0, 0, 0, 1, 1, 1, 1, 1]);
        assert!(account.0.load(Ordering::Relaxed) <= PRINCIPAL_BYTES);
        drop(stores);
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }
}
