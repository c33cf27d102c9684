//! Calls that are open, by their numbers.
//!
//! One list is enough for what a channel holds at a time: `Limits::outstanding` bounds it. Numbers only
//! ascend, so it is sorted by itself, and an answer out of order is found by bisection.

use everywire_model::CallId;
use std::collections::VecDeque;

/// Calls in ascending order of their numbers: mostly one, mostly the oldest is answered first.
#[derive(Debug)]
pub(super) struct Open<T> {
    calls: VecDeque<(CallId, T)>,
}

impl<T> Open<T> {
    pub(super) const fn new() -> Self {
        Self { calls: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Numbers ascend.
    #[inline]
    pub(super) fn insert(&mut self, id: CallId, call: T) {
        self.calls.push_back((id, call));
    }

    #[inline]
    pub(super) fn remove(&mut self, id: CallId) -> Option<T> {
        match self.calls.front() {
            Some((first, _)) if *first == id => self.calls.pop_front(),
            _ => {
                let at = self.calls.binary_search_by_key(&id, |(held, _)| *held).ok()?;
                self.calls.remove(at)
            }
        }
        .map(|(_, call)| call)
    }

    pub(super) fn get(&self, id: CallId) -> Option<&T> {
        let at = self.calls.binary_search_by_key(&id, |(held, _)| *held).ok()?;
        self.calls.get(at).map(|(_, call)| call)
    }

    /// Where answers do not say what they answer, they come in order.
    pub(super) fn oldest(&self) -> Option<CallId> {
        self.calls.front().map(|(id, _)| *id)
    }

    /// The only call with a number greater than this, if there is one such.
    /// With more than one nobody could say whose an answer is.
    pub(super) fn only_after(&self, number: u64) -> Option<CallId> {
        let mut last = self.calls.iter().rev().map(|(id, _)| *id);
        let newest = last.next().filter(|id| id.0 > number)?;
        last.next().is_none_or(|id| id.0 <= number).then_some(newest)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(CallId) -> bool) {
        self.calls.retain(|(id, _)| keep(*id));
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (CallId, T)> + '_ {
        self.calls.drain(..)
    }
}
