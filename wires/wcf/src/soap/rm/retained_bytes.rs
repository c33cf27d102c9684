//! What sessions keep for their clients, added up for a node, and who keeps most.
//!
//! Each session says its part when that changes; `Sequences` asks for the sum, and in shortage for a session that is to make room: so nobody
//! walks over all sessions, however many strangers have begun.
//!
//! State: the sum, and orders of the sessions that keep something and have a place. A session stands in them from when it gets its place (`at`)
//! until it gives that back (`unrank`), and counts in the sum until it is dropped. The lock here is the innermost: it is taken while a
//! session is locked, and nothing is locked under it.

use super::owner::Owner;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all sessions of a node keep.
#[derive(Debug, Default)]
pub(super) struct RetainedSum {
    bytes: AtomicUsize,
    ranks: Mutex<Ranks>,
}

/// Those who keep something, in the order of how much.
#[derive(Debug, Default)]
struct Ranks {
    sessions: HashMap<Owner, BTreeSet<(usize, Arc<str>)>>,
    sums: HashMap<Owner, usize>,
    owners: BTreeSet<(usize, Owner)>,
    /// Those that are over, to which nobody comes back.
    over: BTreeSet<Arc<str>>,
}

impl RetainedSum {
    fn ranks(&self) -> MutexGuard<'_, Ranks> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that all keep.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A session that is over and keeps something.
    pub(super) fn over(&self) -> Option<Arc<str>> {
        self.ranks().over.first().cloned()
    }

    /// The session that keeps most of the owner whose sessions keep most.
    pub(super) fn heaviest(&self) -> Option<Arc<str>> {
        let ranks = self.ranks();
        let (_, owner) = ranks.owners.last()?;
        ranks.sessions.get(owner)?.last().map(|(_, id)| Arc::clone(id))
    }

    /// Whether nobody keeps anything, and nobody stands in the orders.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let ranks = self.ranks();
        let none = ranks.sessions.is_empty() && ranks.sums.is_empty();
        none && ranks.owners.is_empty() && ranks.over.is_empty() && self.bytes() == 0
    }
}

impl Ranks {
    /// A session of this owner keeps so many bytes, and kept `before`.
    fn shift(&mut self, owner: &Owner, id: &Arc<str>, before: usize, now: usize) {
        if before == now {
            return;
        }
        let sessions = self.sessions.entry(owner.clone()).or_default();
        sessions.remove(&(before, Arc::clone(id)));
        if now > 0 {
            sessions.insert((now, Arc::clone(id)));
        }
        if sessions.is_empty() {
            self.sessions.remove(owner);
        }
        let sum = self.sums.entry(owner.clone()).or_default();
        self.owners.remove(&(*sum, owner.clone()));
        *sum = *sum - before + now;
        if *sum > 0 {
            self.owners.insert((*sum, owner.clone()));
        } else {
            self.sums.remove(owner);
        }
    }
}

/// What a session keeps, counted among all of its node once it has a place there.
#[derive(Debug, Default)]
pub(super) struct RetainedBytes {
    bytes: usize,
    is_over: bool,
    all: Option<Arc<RetainedSum>>,
    /// Whose it is, and its sequence, while it has its place.
    rank: Option<(Owner, Arc<str>)>,
}

impl RetainedBytes {
    /// Of a session of this owner that gets a place, and keeps nothing as far as anybody has counted.
    pub(super) fn at(all: &Arc<RetainedSum>, owner: Owner, id: &str) -> Self {
        let (all, rank) = (Some(Arc::clone(all)), Some((owner, id.into())));
        Self { bytes: 0, is_over: false, all, rank }
    }

    /// It keeps so many bytes now, and is over or not.
    pub(super) fn set(&mut self, bytes: usize, is_over: bool) {
        let Some(all) = &self.all else { return };
        if (self.bytes, self.is_over) == (bytes, is_over) {
            return;
        }
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.is_over = is_over;
        if let Some((owner, id)) = &self.rank {
            let mut ranks = all.ranks();
            ranks.shift(owner, id, before, bytes);
            if is_over && bytes > 0 {
                ranks.over.insert(Arc::clone(id));
            } else {
                ranks.over.remove(id);
            }
        }
        // By the difference alone: whoever reads the sum meanwhile must not find more than is kept.
        if bytes >= before {
            all.bytes.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            all.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }

    /// Its place is given back: it still counts, and cannot make room.
    pub(super) fn unrank(&mut self) {
        if let (Some(all), Some((owner, id))) = (&self.all, self.rank.take()) {
            let mut ranks = all.ranks();
            ranks.shift(&owner, &id, self.bytes, 0);
            ranks.over.remove(&id);
        }
    }

    /// Whether it is counted among others.
    pub(super) fn is_counted(&self) -> bool {
        self.all.is_some()
    }
}

impl Drop for RetainedBytes {
    fn drop(&mut self) {
        self.set(0, self.is_over);
        // One that kept nothing may stand nowhere, and one that is over has left with its bytes.
        self.unrank();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orders_find_whom_a_walk_over_all_sessions_finds() {
        let all = Arc::<RetainedSum>::default();
        let owners: Vec<Owner> = (0..5).map(|number: u32| Owner::named(&number.to_string())).collect();
        let mut held: Vec<(usize, RetainedBytes)> = Vec::new();
        let mut state = 7_usize;
        let mut dice = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for step in 0..(if cfg!(miri) { 150 } else { 3000 }) {
            match dice(4) {
                0 if held.len() < 60 => {
                    let owner = dice(5);
                    let id = step.to_string();
                    held.push((owner, RetainedBytes::at(&all, owners[owner].clone(), &id)));
                }
                1 if !held.is_empty() => drop(held.swap_remove(dice(held.len()))),
                2 if !held.is_empty() => {
                    let at = dice(held.len());
                    held[at].1.unrank();
                }
                _ if !held.is_empty() => {
                    let (at, bytes) = (dice(held.len()), dice(1000));
                    held[at].1.set(bytes, dice(8) == 0);
                }
                _ => {}
            }
            assert_eq!(all.bytes(), held.iter().map(|(_, one)| one.bytes).sum::<usize>());
            let ranked = || held.iter().filter(|(_, one)| one.rank.is_some());
            let sum = |owner: usize| ranked().filter(|(of, _)| *of == owner).map(|(_, one)| one.bytes).sum();
            let most: usize = (0..5).map(sum).max().unwrap();
            match all.heaviest() {
                None => assert_eq!(most, 0),
                Some(id) => {
                    let is = |one: &RetainedBytes| one.rank.as_ref().is_some_and(|(_, own)| *own == id);
                    let (owner, found) = ranked().find(|(_, one)| is(one)).unwrap();
                    let theirs = ranked().filter(|(of, _)| of == owner).map(|(_, one)| one.bytes).max();
                    assert_eq!((sum(*owner), theirs), (most, Some(found.bytes)), "step {step}");
                }
            }
            let over = ranked().filter(|(_, one)| one.is_over && one.bytes > 0).count();
            assert_eq!(all.ranks().over.len(), over);
        }
        drop(held);
        assert!(all.is_empty());
    }
}
