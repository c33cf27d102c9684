//! The sequence of the peer's messages.
//!
//! What always holds: all messages up to `delivered` were handed on, once; `held` has numbers above that,
//! less than `reach` above it; a number that is in neither has not come. Where there is an order, what comes
//! behind a gap waits, and a gap that stays for `GAP` ends the session.

use super::headers::Acknowledgement;
use super::{ACKNOWLEDGE_AFTER, GAP, ReceivedMessage, WINDOW};
use std::collections::BTreeMap;
use std::time::Instant;

/// Which messages arrived, and those that wait for one before them.
#[derive(Debug)]
pub(in crate::soap) struct Incoming {
    /// Its identifier, once there is one.
    pub(in crate::soap) id: Option<String>,
    /// Whether messages are handed on in order. Answers of a client in turns are not: what they relate to says whose they are.
    ordered: bool,
    /// How far above those that were handed on a message may be that is kept.
    reach: u64,
    /// All up to this number were handed on.
    delivered: u64,
    /// Messages behind a missing one; they wait for it if there is an order.
    /// `None` for a message that is nothing but its number.
    held: BTreeMap<u64, Option<ReceivedMessage>>,
    /// Since when a message is missing.
    gap: Option<Instant>,
    /// When the peer must be told what arrived; it counts once anything has (`told_by`).
    due: Option<Instant>,
    /// Messages that it has not been told of.
    /// Half a window of them is told at once, so that the sender can go on.
    untold: u64,
}

/// What became of a message.
pub(super) enum Acceptance {
    /// These are to be handed on.
    Now(Vec<ReceivedMessage>),
    /// It came before.
    Again,
    /// It waits for another, or is beyond the window.
    Later,
}

impl Incoming {
    pub(super) fn new(id: Option<String>, ordered: bool, reach: u64) -> Self {
        Self { id, ordered, reach, delivered: 0, held: BTreeMap::new(), gap: None, due: None, untold: 0 }
    }

    /// Takes a message; one that is nothing but a number hands on nothing.
    pub(super) fn take(&mut self, now: Instant, number: u64, message: Option<ReceivedMessage>) -> Acceptance {
        self.untold += 1;
        let soon = if self.untold > WINDOW / 2 { now } else { now + ACKNOWLEDGE_AFTER };
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        // Its acknowledgement was lost, or is under way: it is told again, and nothing else happens.
        if self.has(number) {
            self.due = Some(now);
            return Acceptance::Again;
        }
        if !self.ordered {
            return self.note(number, message);
        }
        if number > self.delivered + self.reach {
            // Nothing is kept for it: its sender repeats it when the window has moved.
            self.due = Some(now);
            return Acceptance::Later;
        }
        self.held.insert(number, message);
        let mut ready = Vec::new();
        while let Some(message) = self.held.remove(&(self.delivered + 1)) {
            self.delivered += 1;
            ready.extend(message);
        }
        // The time of a gap begins when it opens, and anew when the first message behind it is handed on.
        self.gap = match (self.held.is_empty(), ready.is_empty()) {
            (true, _) => None,
            (false, true) => self.gap.or(Some(now)),
            (false, false) => Some(now),
        };
        if self.gap.is_some() {
            self.due = Some(now);
        }
        if number <= self.delivered { Acceptance::Now(ready) } else { Acceptance::Later }
    }

    /// Takes a message whatever is missing before it; one that is beyond the window is not acknowledged.
    fn note(&mut self, number: u64, message: Option<ReceivedMessage>) -> Acceptance {
        if number <= self.delivered + self.reach {
            self.held.insert(number, None);
            while self.held.remove(&(self.delivered + 1)).is_some() {
                self.delivered += 1;
            }
        }
        Acceptance::Now(message.into_iter().collect())
    }

    /// Whether a message came before.
    pub(super) fn has(&self, number: u64) -> bool {
        number <= self.delivered || self.held.contains_key(&number)
    }

    /// Bytes of the messages that wait for one before them.
    pub(super) fn kept(&self) -> usize {
        self.held.values().flatten().map(|(bytes, ..)| bytes.len()).sum()
    }

    /// What waits is not handed on any more.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }

    /// Whether no message has come yet.
    pub(super) fn is_unused(&self) -> bool {
        self.delivered == 0 && self.held.is_empty()
    }

    /// The peer wants to know now.
    pub(super) fn ask(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Whether the peer must be told now.
    /// A message of this side's would carry it along; this is asked when there is none.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.told_by().is_some_and(|due| due <= now)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let gap = self.gap.map(|since| since + GAP);
        self.told_by().into_iter().chain(gap).min()
    }

    /// Nothing is due while nothing has arrived: `tell` would say nothing, again and again.
    fn told_by(&self) -> Option<Instant> {
        self.due.filter(|_| !self.is_unused())
    }

    /// Whether a message has been missing for too long.
    pub(super) fn is_torn(&self, now: Instant) -> bool {
        self.gap.is_some_and(|since| since + GAP <= now)
    }

    /// Whether all messages up to this number were handed on.
    pub(super) fn is_whole(&self, last: u64) -> bool {
        self.delivered >= last
    }

    /// What arrived, if anything did, or if nothing more is taken; whoever asks tells the peer.
    pub(super) fn tell(&mut self, last: bool) -> Option<Acknowledgement> {
        let id = self.id.clone()?;
        if self.is_unused() && !last {
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
        Some(Acknowledgement { id, ranges, room: Some(room), last })
    }
}
