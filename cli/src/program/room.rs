//! Room for what a program has not read yet, so that one caller does not take the queue of all.
//!
//! State: lines and octets that wait, of all callers and of each that has any. Invariants: each line that waits has a [`Ticket`], which gives
//! its room back; nobody gets more who has as much as is left, so one caller can have half of it, and whoever has nothing gets a line in
//! as long as there is any room.

use super::child::QUEUE;
use super::pending::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Octets of lines that may wait for a program; one line alone may be larger.
const OCTETS: usize = 64 << 20;

/// What a program has to read.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    all: Lines,
    of: HashMap<Arc<str>, Lines>,
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
        let mut held = lock(&self.0);
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
        drop(held);
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
        let mut held = lock(&self.room.0);
        held.all.remove(self.octets);
        if let Some(own) = held.of.get_mut(&self.caller) {
            own.remove(self.octets);
            if own.count == 0 {
                held.of.remove(&self.caller);
            }
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
        let held = lock(&room.0);
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
