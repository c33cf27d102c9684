//! The time that a message has to arrive once its first byte is there.

use std::time::{Duration, Instant};

/// See the module. It stands while no message has begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageClock(Option<(Instant, Duration)>);

impl MessageClock {
    /// A message has this time in all. What counts is when this was said of it first; more is given when its size becomes known.
    pub fn allow(&mut self, now: Instant, time: Duration) {
        let due = match self.0 {
            Some((due, given)) if given < time => due.checked_add(time.saturating_sub(given)).or(Some(due)),
            Some(_) => return,
            None => now.checked_add(time),
        };
        self.0 = due.map(|due| (due, time));
    }

    /// Its bytes lay unread for so long, by no fault of whoever sends it.
    pub fn postpone(&mut self, by: Duration) {
        self.0 = self.0.map(|(due, given)| (due.checked_add(by).unwrap_or(due), given));
    }

    /// The message is there, or nobody waits for it.
    pub fn stop(&mut self) {
        self.0 = None;
    }

    /// When the message must be there.
    pub fn due(self) -> Option<Instant> {
        self.0.map(|(due, _)| due)
    }

    /// The seconds that it had, if it is late.
    pub fn late(self, now: Instant) -> Option<u64> {
        self.0.filter(|(due, _)| *due <= now).map(|(_, given)| given.as_secs())
    }
}

/// The time of a message of so many bytes, where each started MiB may take `each`.
pub fn time_for(each: Duration, bytes: u64) -> Duration {
    each.saturating_mul(u32::try_from((bytes >> 20) + 1).unwrap_or(u32::MAX))
}
