//! Call trees that this process serves in, one place for each server.
//!
//! A program of KDE's that waits for an answer serves only calls with the key of the call it waits in: its own call
//! tree. What a servant calls belongs to the tree of the call that it serves. But it calls on another connection of this
//! process, and nothing tells for which of the open calls; so a key is taken over as long as all calls that are open
//! have it.

use crate::limits::FIRST_KEY;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The calls of a server's clients that this process serves: their number in the upper half, in the lower one
/// the key that all of them have, or 0. And whether the server is one of Trinity. One atomic number, so that
/// calls are counted without a lock. No other memory depends on it, so its order does not matter.
#[derive(Debug, Default)]
pub(crate) struct Tree(AtomicU64, AtomicBool);

/// A call that is open, as long as this lives. It is held in `Serving`, and counts itself out when that goes.
#[derive(Debug)]
pub(crate) struct TreeCall(&'static Tree);

impl Tree {
    /// A call with this key begins to be served.
    pub(crate) fn enter(&'static self, key: u32) -> TreeCall {
        let key = if key >= FIRST_KEY { key } else { 0 };
        // The update cannot fail: it always has a next state.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            let (open, common) = split(state);
            Some(join(open + 1, if open == 0 || common == key { key } else { 0 }))
        });
        TreeCall(self)
    }

    /// Notes whether the server is one of Trinity.
    pub(crate) fn set_trinity(&self, trinity: bool) {
        self.1.store(trinity, Ordering::Relaxed);
    }

    /// Whether the server is one of Trinity.
    pub(crate) fn is_of_trinity(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }

    /// The key of all calls that are open. Nothing, if no call is open, or several keys are.
    #[inline]
    pub(crate) fn key(&self) -> Option<u32> {
        match split(self.0.load(Ordering::Relaxed)) {
            (_, 0) => None,
            (_, key) => Some(key),
        }
    }
}

impl Drop for TreeCall {
    fn drop(&mut self) {
        let _ = self.0.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            let (open, common) = split(state);
            let open = open.saturating_sub(1);
            Some(join(open, if open == 0 { 0 } else { common }))
        });
    }
}

/// The number of open calls, and their key.
#[allow(clippy::cast_possible_truncation)]
fn split(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

fn join(open: u32, key: u32) -> u64 {
    u64::from(open) << 32 | u64::from(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_as_long_as_all_open_calls_have_it() {
        static TREE: Tree = Tree(AtomicU64::new(0), AtomicBool::new(false));
        assert_eq!(TREE.key(), None);
        let one = TREE.enter(50);
        assert_eq!(TREE.key(), Some(50));
        let two = TREE.enter(50);
        drop(one);
        assert_eq!(TREE.key(), Some(50));
        let other = TREE.enter(51);
        assert_eq!(TREE.key(), None);
        drop(two);
        assert_eq!(TREE.key(), None, "which of them had it is not kept");
        drop(other);
        let send = TREE.enter(1);
        assert_eq!(TREE.key(), None);
        drop(send);
        assert_eq!(TREE.0.load(Ordering::Relaxed), 0);
    }
}
