//! Room for what a program has not read yet, so that one caller does not take the queue of all.
//!
//! State: lines and octets that wait, of all callers and of each that has any. Invariants: each line that waits has a [`Ticket`], which gives
//! its room back; nobody gets more who has as much as is left, so one caller can have half of it, and whoever has nothing gets a line in
//! as long as there is any room.
//!
//! Whoever hears of no refusal may wait for room ([`Room::wait`]): a thread each, so only [`WAITERS`] do, and half of those that may be left
//! are one caller's.

use super::child::QUEUE;
use super::pending::lock;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Octets of lines that may wait for a program; one line alone may be larger.
const OCTETS: usize = 64 << 20;

/// Threads that may wait for room.
const WAITERS: usize = 64;

/// What a program has to read.
#[derive(Debug, Default)]
pub(super) struct Room {
    held: Mutex<Held>,
    /// Some of it is free again.
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    all: Lines,
    of: HashMap<Arc<str>, Lines>,
    /// The callers whose threads wait, each as often as threads do.
    waiting: Vec<Arc<str>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Lines {
    count: usize,
    octets: usize,
}

/// A line that waits.
#[derive(Debug)]
pub(super) struct Ticket {
    room: Arc<Room>,
    caller: Arc<str>,
    octets: usize,
}

impl Room {
    /// Room for a line of so many octets of this caller.
    ///
    /// # Errors
    /// There is none: how many lines wait, and how many of them are the caller's.
    pub(super) fn take(self: &Arc<Self>, caller: &str, octets: usize) -> Result<Ticket, (usize, usize)> {
        self.take_of(&mut lock(&self.held), caller, octets)
    }

    /// The same; waits until then for room, if few others do.
    ///
    /// # Errors
    /// There was none, or too many wait: how many lines wait, and how many of them are the caller's.
    pub(super) fn wait(
        self: &Arc<Self>,
        caller: &str,
        octets: usize,
        until: Instant,
    ) -> Result<Ticket, (usize, usize)> {
        let mut held = lock(&self.held);
        let full = match self.take_of(&mut held, caller, octets) {
            Err(full) => full,
            taken => return taken,
        };
        let own = held.waiting.iter().filter(|waiting| ***waiting == *caller).count();
        if own >= WAITERS.saturating_sub(held.waiting.len()) {
            return Err(full);
        }
        held.waiting.push(caller.into());
        drop(held);
        // Its event loop goes on with other connections.
        let taken = everywire::blocking(|| self.wait_on(caller, octets, until));
        let mut held = lock(&self.held);
        if let Some(at) = held.waiting.iter().position(|waiting| **waiting == *caller) {
            held.waiting.swap_remove(at);
        }
        taken
    }

    fn wait_on(
        self: &Arc<Self>,
        caller: &str,
        octets: usize,
        until: Instant,
    ) -> Result<Ticket, (usize, usize)> {
        let mut held = lock(&self.held);
        loop {
            let taken = self.take_of(&mut held, caller, octets);
            let left = until.saturating_duration_since(Instant::now());
            if taken.is_ok() || left.is_zero() {
                return taken;
            }
            held = self.freed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn take_of(
        self: &Arc<Self>,
        held: &mut Held,
        caller: &str,
        octets: usize,
    ) -> Result<Ticket, (usize, usize)> {
        let own = held.of.get(caller).copied().unwrap_or_default();
        let left = OCTETS.saturating_sub(held.all.octets);
        let fits = held.all.count == 0 || own.octets.saturating_add(octets) <= left;
        if own.count >= QUEUE - held.all.count.min(QUEUE) || !fits {
            return Err((held.all.count, own.count));
        }
        let caller = match held.of.get_key_value(caller) {
            Some((known, _)) => Arc::clone(known),
            None => caller.into(),
        };
        held.all.add(octets);
        held.of.entry(Arc::clone(&caller)).or_default().add(octets);
        Ok(Ticket { room: Arc::clone(self), caller, octets })
    }
}

impl Lines {
    fn add(&mut self, octets: usize) {
        self.count += 1;
        self.octets += octets;
    }

    fn remove(&mut self, octets: usize) {
        self.count -= 1;
        self.octets -= octets;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut held = lock(&self.room.held);
        held.all.remove(self.octets);
        if let Some(own) = held.of.get_mut(&self.caller) {
            own.remove(self.octets);
            if own.count == 0 {
                held.of.remove(&self.caller);
            }
        }
        if !held.waiting.is_empty() {
            self.room.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(room: &Arc<Room>, caller: &str, octets: usize) -> Vec<Ticket> {
        std::iter::from_fn(|| room.take(caller, octets).ok()).collect()
    }

    #[test]
    fn one_caller_leaves_as_many_places_as_it_has() {
        let room = Arc::new(Room::default());
        let ann = all(&room, "ann", 10);
        assert_eq!(ann.len(), QUEUE / 2);
        assert_eq!(room.take("ann", 10).unwrap_err(), (QUEUE / 2, QUEUE / 2));
        let bob = all(&room, "bob", 10);
        assert_eq!(bob.len(), QUEUE / 4);
        assert!(room.take("eve", 10).is_ok());
        drop(ann);
        assert_eq!(bob.len() + all(&room, "bob", 10).len(), QUEUE / 2);
        drop(bob);
        let held = lock(&room.held);
        assert!(held.of.is_empty() && held.all.count == 0 && held.all.octets == 0);
    }

    #[test]
    fn large_lines_are_bounded_together_and_one_alone_is_not() {
        let room = Arc::new(Room::default());
        let ann = all(&room, "ann", 4 << 20);
        assert_eq!(ann.len(), 8, "half of 64 MiB");
        assert!(room.take("bob", 4 << 20).is_ok());
        drop(ann);
        let alone = room.take("ann", 100 << 20);
        assert!(alone.is_ok() && room.take("bob", 1).is_err());
    }
}
