//! The sequence of the peer's messages.

use super::headers::Acknowledgement;
use super::{ACKNOWLEDGE_AFTER, Arrived, GAP, WINDOW};
use std::collections::BTreeMap;
use std::time::Instant;

/// Which messages arrived, and those that wait for one before them.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Its identifier, once there is one.
    pub(super) id: Option<String>,
    /// All up to this number were handed on.
    delivered: u64,
    held: BTreeMap<u64, Option<Arrived>>,
    /// Since when a message is missing.
    gap: Option<Instant>,
    /// When the peer must be told what arrived.
    due: Option<Instant>,
    /// Messages that it has not been told of.
    untold: u64,
}

/// What became of a message.
pub(super) enum Taken {
    /// These are to be handed on.
    Now(Vec<Arrived>),
    /// It came before.
    Again,
    /// It waits for another, or is beyond the window.
    Later,
}

impl Incoming {
    pub(super) fn new(id: Option<String>) -> Self {
        Self { id, delivered: 0, held: BTreeMap::new(), gap: None, due: None, untold: 0 }
    }

    /// Takes a message; one that is nothing but a number hands on nothing.
    pub(super) fn take(&mut self, now: Instant, number: u64, message: Option<Arrived>) -> Taken {
        self.untold += 1;
        let soon = if self.untold > WINDOW / 2 { now } else { now + ACKNOWLEDGE_AFTER };
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        if number <= self.delivered || self.held.contains_key(&number) {
            self.due = Some(now);
            return Taken::Again;
        }
        if number > self.delivered + WINDOW {
            // Nothing is kept for it: its sender repeats it when the window has moved.
            self.due = Some(now);
            return Taken::Later;
        }
        self.held.insert(number, message);
        let mut ready = Vec::new();
        while let Some(message) = self.held.remove(&(self.delivered + 1)) {
            self.delivered += 1;
            ready.extend(message);
        }
        self.gap = match (self.held.is_empty(), ready.is_empty()) {
            (true, _) => None,
            (false, true) => self.gap.or(Some(now)),
            (false, false) => Some(now),
        };
        if self.gap.is_some() {
            self.due = Some(now);
        }
        if number <= self.delivered { Taken::Now(ready) } else { Taken::Later }
    }

    /// The peer wants to know now.
    pub(super) fn ask(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Whether the peer must be told now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let gap = self.gap.map(|since| since + GAP);
        self.due.into_iter().chain(gap).min()
    }

    /// Whether a message has been missing for too long.
    pub(super) fn is_torn(&self, now: Instant) -> bool {
        self.gap.is_some_and(|since| since + GAP <= now)
    }

    /// What arrived, if anything did; whoever asks tells the peer.
    pub(super) fn tell(&mut self) -> Option<Acknowledgement> {
        let id = self.id.clone()?;
        if self.delivered == 0 && self.held.is_empty() {
            return None;
        }
        (self.due, self.untold) = (None, 0);
        let mut ranges = Vec::new();
        if self.delivered > 0 {
            ranges.push((1, self.delivered));
        }
        for number in self.held.keys() {
            match ranges.last_mut() {
                Some((_, upper)) if *upper + 1 == *number => *upper = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let room = WINDOW - (self.held.len() as u64).min(WINDOW);
        Some(Acknowledgement { id, ranges, room: Some(room) })
    }
}
