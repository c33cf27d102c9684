//! Signals that wait for a sink, and what they hold of its principal's room.
//!
//! Invariants: a store has `WAITING` signals and `WAITING_BYTES` at the most, all stores of a principal
//! `PRINCIPAL_BYTES` together; one signal alone may exceed any of them, or it could never be sent. What is
//! charged for a signal stands beside it and is given back when it leaves, so the account is exact however
//! the weight is estimated.

use bytes::Bytes;
use everywire_model::{Body, Profile, Reference};
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
    signals: VecDeque<(usize, Body, usize)>,
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

    /// Puts a signal behind the others. Where there is no room the oldest are lost, or this one itself: which. The caller has
    /// to drop them without a lock.
    pub(super) fn push(&mut self, index: usize, arguments: Body) -> Vec<Body> {
        let (bytes, mut lost) = (weight(&arguments), Vec::new());
        let is_full = |held: &Self| held.len() >= WAITING || held.bytes.saturating_add(bytes) > WAITING_BYTES;
        while is_full(self)
            && let Some((_, oldest)) = self.pop()
        {
            lost.push(oldest);
        }
        while !self.account.charge(bytes) {
            let Some((_, oldest)) = self.pop() else {
                lost.push(arguments);
                return lost;
            };
            lost.push(oldest);
        }
        self.bytes += bytes;
        self.signals.push_back((index, arguments, bytes));
        lost
    }

    /// Puts a signal before the others: one that was taken out, and has to be sent in another way. Where there is no room it
    /// is lost, and comes back.
    pub(super) fn put_back(&mut self, index: usize, arguments: Body) -> Option<Body> {
        let bytes = weight(&arguments);
        if !self.account.charge(bytes) {
            return Some(arguments);
        }
        self.bytes += bytes;
        self.signals.push_front((index, arguments, bytes));
        None
    }

    /// The oldest.
    pub(super) fn pop(&mut self) -> Option<(usize, Body)> {
        let (index, arguments, bytes) = self.signals.pop_front()?;
        self.give_back(bytes);
        Some((index, arguments))
    }

    /// Takes out all signals. The caller has to drop them without a lock: references in them may be the last
    /// ones.
    pub(super) fn clear(&mut self) -> VecDeque<(usize, Body, usize)> {
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

/// About how many bytes the arguments of a signal hold.
fn weight(arguments: &Body) -> usize {
    let parts = arguments.beside.as_ref().map_or(0, |beside| beside.parts.size());
    let references = arguments.beside.iter().flat_map(|beside| beside.parts.references());
    size_of::<Body>() + arguments.bytes.len() + parts + references.map(weight_of).sum::<usize>()
}

/// About how many bytes a reference holds. What its leases keep is no part of it.
fn weight_of(reference: &Reference) -> usize {
    let data = |all: &[(u32, Bytes)]| all.iter().map(|(_, data)| data.len()).sum::<usize>();
    let ways = reference.profiles.iter();
    let ways = ways.map(|way| size_of::<Profile>() + way.key.len() + data(&way.components)).sum::<usize>();
    reference.type_id.len() + ways + data(&reference.foreign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard::values::body_of;
    use everywire_model::describe::{ANY_OBJECT, Union, arms, sequence, union};
    use everywire_model::shape::Map;
    use everywire_model::value::Value;
    use everywire_model::{Hold, Lease, Shape};
    use std::sync::Mutex;

    fn number() -> Body {
        body_of(&Value::Integer(1), &Shape::I32).unwrap()
    }

    fn octets(len: usize) -> Body {
        body_of(&Value::Bytes(vec![0; len].into()), &Shape::sequence(Shape::U8)).unwrap()
    }

    fn referring(profile: Profile) -> Body {
        let reference = Reference { profiles: vec![profile], ..Reference::default() };
        body_of(&Value::Reference(Some(reference)), &ANY_OBJECT).unwrap()
    }

    #[test]
    fn the_oldest_are_lost_and_counted_and_room_is_given_back() {
        let account = Arc::<Account>::default();
        let mut store = Store::new(Arc::clone(&account));
        let lost = (0..WAITING + 3).map(|index| store.push(index, number()).len());
        assert_eq!(
            (lost.sum::<usize>(), store.len(), store.pop().map(|(index, _)| index)),
            (3, WAITING, Some(3))
        );
        drop(store);
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn large_signals_are_lost_by_their_bytes_and_the_last_one_stays() {
        let mut store = Store::default();
        let large = || octets(WAITING_BYTES / 2);
        assert_eq!((store.push(0, large()).len(), store.push(1, large()).len(), store.len()), (0, 1, 1));
        assert_eq!(store.push(2, octets(WAITING_BYTES * 2)).len(), 1);
        assert_eq!(store.pop().map(|(index, _)| index), Some(2));
        assert_eq!(store.bytes(), 0);
    }

    static ARMS: Union = arms!("Arms", "", Shape::I32, { [1] "arm": sequence!(Shape::U8, None, Conformant) });

    #[test]
    fn whatever_a_value_is_it_has_its_weight() {
        let octets = || Value::Bytes(vec![0; WAITING_BYTES / 2 + 1].into());
        let map = Shape::Map(Hold::new(Map { key: Shape::I32, value: Shape::sequence(Shape::U8) }));
        let key = vec![0; WAITING_BYTES / 2 + 1].into();
        for large in [
            body_of(&Value::Map(vec![(Value::Integer(1), octets())]), &map).unwrap(),
            body_of(&Value::Union(1, Some(Box::new(("arm".to_owned(), octets())))), &union(&ARMS)).unwrap(),
            referring(Profile { key, ..Profile::default() }),
        ] {
            let mut store = Store::default();
            drop(store.push(0, large.clone()));
            drop(store.push(1, large));
            assert_eq!(store.len(), 1);
        }
    }

    /// What a value holds: looks whether the store is locked when it is let go.
    struct DropProbe(Arc<Mutex<Store>>, Arc<AtomicUsize>);

    impl Drop for DropProbe {
        fn drop(&mut self) {
            self.1.fetch_add(usize::from(self.0.try_lock().is_ok()), Ordering::Relaxed);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "many signals, which takes minutes")]
    fn what_is_lost_is_let_go_without_the_lock() {
        let (store, free) = (Arc::new(Mutex::new(Store::default())), Arc::<AtomicUsize>::default());
        for index in 0..WAITING + 3 {
            let lease = Lease::new(Arc::new(DropProbe(Arc::clone(&store), Arc::clone(&free))));
            let kept = referring(Profile { lease, ..Profile::default() });
            let lost = store.lock().unwrap().push(index, kept);
            drop(lost);
        }
        assert_eq!(free.load(Ordering::Relaxed), 3);
        let rest = store.lock().unwrap().clear();
        drop(rest);
    }

    #[test]
    fn sinks_of_one_principal_share_their_room() {
        let account = Arc::<Account>::default();
        let mut stores: Vec<_> = (0..8).map(|_| Store::new(Arc::clone(&account))).collect();
        let large = || octets(PRINCIPAL_BYTES / 4);
        let lost: Vec<_> = stores.iter_mut().map(|store| store.push(0, large()).len()).collect();
        assert_eq!(lost, [0, 0, 0, 1, 1, 1, 1, 1]);
        assert!(account.0.load(Ordering::Relaxed) <= PRINCIPAL_BYTES);
        drop(stores);
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }
}
