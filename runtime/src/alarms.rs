//! Alarms: when a shard has to look at which of its connections.
//!
//! State: one ordered set of times and tokens. Whoever moves an alarm names the time before, so that the set
//! does not grow with each call. A connection that ended may leave an entry; its token leads to nothing any
//! more, and the entry goes when it is due.

use crate::sync::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

/// Connections that are looked at in one go; the others are due at the next look, after the calls that have
/// come meanwhile.
const BATCH: usize = 64;

/// Times and tokens, the earliest first.
#[derive(Default)]
pub(crate) struct Alarms(Mutex<BTreeSet<(Instant, u64)>>);

impl Alarms {
    /// Has a connection looked at by `when`, and no longer at `before`. Returns whether it is the first to be looked at now.
    pub(crate) fn set(&self, when: Instant, token: u64, before: Option<Instant>) -> bool {
        let mut alarms = lock(&self.0);
        if let Some(before) = before {
            alarms.remove(&(before, token));
        }
        alarms.insert((when, token));
        alarms.first() == Some(&(when, token))
    }

    /// When the next connection is to be looked at.
    pub(crate) fn next(&self) -> Option<Instant> {
        lock(&self.0).first().map(|(when, _)| *when)
    }

    /// Some of those that are due, which are set no longer.
    pub(crate) fn due(&self, now: Instant) -> Vec<u64> {
        let mut alarms = lock(&self.0);
        let mut due = Vec::new();
        while due.len() < BATCH
            && let Some((when, token)) = alarms.first().copied()
            && when <= now
        {
            alarms.pop_first();
            due.push(token);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn those_that_are_due_are_looked_at_and_nobody_else() {
        let (alarms, now) = (Alarms::default(), Instant::now());
        let later = |token| now + Duration::from_secs(60 + token);
        for token in 0..10_000 {
            assert_eq!(alarms.set(later(token), token, None), token == 0);
        }
        assert_eq!((alarms.due(now), alarms.next()), (Vec::new(), Some(later(0))));
        for token in [7, 9999] {
            assert!(alarms.set(now - Duration::from_millis(token), token, Some(later(token))));
        }
        assert_eq!(alarms.due(now), [9999, 7]);
        // Whoever was moved has one alarm, and who was looked at none.
        assert_eq!(lock(&alarms.0).len(), 9998);
        // Of a crowd some at a time.
        let crowd = later(999);
        let mut all = Vec::new();
        loop {
            let some = alarms.due(crowd);
            assert!(some.len() <= BATCH);
            if some.is_empty() {
                break;
            }
            all.extend(some);
        }
        assert_eq!(all, (0..1000).filter(|token| *token != 7).collect::<Vec<u64>>());
    }
}
