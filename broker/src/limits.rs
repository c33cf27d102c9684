//! Limits: calls under way on a route, of one caller, and calls a second.
//!
//! A target takes all callers behind the broker for one, so it cannot see to it that each of them gets something: the broker does. Where it is
//! known how many calls may be under way (the route says so, or the target has refused one as busy), nobody gets more who has as many as are
//! left: one caller can have half of them, and whoever has nothing gets through as long as there is any room. How many a target takes is
//! believed for some calls only (`BELIEVED`), since it may soon take more.
//!
//! State: counters of what is taken; each call that was let in holds a `Permit`, whose end gives its part
//! back. Objects behind references that a route has passed on share the limits of the route. Invariants: a
//! count is raised before it is compared, and given back on refusal, so that two calls never get the last
//! place both; the table of callers has only those who have calls under way, so it is no longer than `calls`,
//! or what the listeners let in; while nobody has a limit and no target was busy, callers are not told apart, and nothing is locked.

use crate::config::LimitConfig;
use everywire::{Failure, Initiator, Kind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A target that is busy with fewer calls is not so by what its callers have under way.
const FEW: u64 = 8;
/// For so many times as many calls as a target took is it believed that it takes no more.
const BELIEVED: u64 = 64;

/// The limits of a route, and what is taken of them.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The limits.
    settings: LimitConfig,
    /// Calls under way on the route.
    under_way: AtomicU64,
    /// What is known of callers.
    sources: Mutex<Sources>,
    /// Whether a target's room is known: looked at without the lock.
    crowded: AtomicBool,
    /// Calls of this second.
    bucket: Mutex<Bucket>,
}

/// Who has calls under way, and how many more there may be.
#[derive(Debug, Default)]
struct Sources {
    /// Calls of each caller; none is kept that has none. Those that were let in while nobody counted are not among them.
    of: HashMap<String, u64>,
    /// How many calls the targets took when one of them was busy.
    room: Option<u64>,
    /// For how many more calls that is believed.
    believed: u64,
}

/// What is left of the calls of this second; it fills again as time passes, up to a second's worth.
#[derive(Debug)]
struct Bucket {
    /// Calls that may begin now.
    left: f64,
    /// When that was counted.
    at: Instant,
}

/// The share of one call; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    /// The limits that it was taken of.
    of: Arc<Limits>,
    /// The caller, if calls are counted by that.
    source: Option<String>,
    /// Calls that were under way when it was taken.
    before: u64,
}

impl Limits {
    pub(crate) fn new(settings: LimitConfig, now: Instant) -> Arc<Self> {
        let left = settings.rate.map_or(0.0, as_float);
        Arc::new(Self {
            settings,
            under_way: AtomicU64::new(0),
            sources: Mutex::default(),
            crowded: AtomicBool::new(false),
            bucket: Mutex::new(Bucket { left, at: now }),
        })
    }

    /// Whether they are these.
    pub(crate) fn are(&self, settings: LimitConfig) -> bool {
        self.settings == settings
    }

    /// Whether callers are told apart whatever the targets say.
    pub(crate) fn counts_sources(&self) -> bool {
        self.settings.per_peer.is_some() || self.settings.calls.is_some()
    }

    /// Whether a target was busy, so that callers are told apart for now.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Acquire)
    }

    /// A target has refused a call as busy that has this permit: it takes as many as were under way when the call came. Of calls that are
    /// refused together the first tells how many that are; the others counted those that were refused as well.
    pub(crate) fn is_full(&self, permit: &Permit) {
        if permit.before < FEW {
            return;
        }
        let mut sources = self.sources();
        let room = sources.room.map_or(permit.before, |room| room.min(permit.before));
        let believed = if sources.room.is_some() { sources.believed } else { u64::MAX };
        sources.room = Some(room);
        sources.believed = believed.min(room.saturating_mul(BELIEVED));
        self.crowded.store(true, Ordering::Release);
    }

    /// Takes the share of a call. `source` is who calls, where callers are told apart; `now` only fills the
    /// bucket.
    ///
    /// # Errors
    /// A limit is reached. The call did not run.
    pub(crate) fn take(self: &Arc<Self>, source: Option<String>, now: Instant) -> Result<Permit, Failure> {
        let before = self.under_way.fetch_add(1, Ordering::AcqRel);
        // From here on it is given back whatever happens.
        let mut permit = Permit { of: Arc::clone(self), source: None, before };
        if self.settings.calls.is_some_and(|most| before >= most) {
            return Err(busy("too many calls are under way on this route"));
        }
        if let Some(source) = source {
            let mut sources = self.sources();
            let held = sources.of.get(&source).copied().unwrap_or_default();
            match self.settings.per_peer {
                Some(most) if held >= most => {
                    return Err(busy("too many calls of this caller are under way"));
                }
                None if self.settings.calls.is_some_and(|calls| held >= calls - before.min(calls)) => {
                    return Err(busy("this caller has as many calls under way as are left to all others"));
                }
                _ => {}
            }
            if let Some(room) = sources.room {
                // Who has nothing under way is the target's to refuse.
                if held > 0 && held >= room - before.min(room) {
                    return Err(busy("the target is busy, and this caller has its share of it"));
                }
                sources.believed -= 1;
                if sources.believed == 0 {
                    sources.room = None;
                    self.crowded.store(false, Ordering::Release);
                }
            }
            *sources.of.entry(source.clone()).or_default() += 1;
            permit.source = Some(source);
        }
        if let Some(rate) = self.settings.rate {
            let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            let passed: Duration = now.saturating_duration_since(bucket.at);
            bucket.left = (bucket.left + passed.as_secs_f64() * as_float(rate)).min(as_float(rate));
            bucket.at = bucket.at.max(now);
            if bucket.left < 1.0 {
                return Err(busy("too many calls came within a second"));
            }
            bucket.left -= 1.0;
        }
        Ok(permit)
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.under_way.fetch_sub(1, Ordering::AcqRel);
        if let Some(source) = &self.source {
            let mut sources = self.of.sources();
            match sources.of.get_mut(source) {
                Some(held) if *held > 1 => *held -= 1,
                _ => {
                    sources.of.remove(source);
                }
            }
        }
    }
}

fn busy(what: &str) -> Failure {
    Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again later")
}

// Counts above 2^53 lose their last digits: such a limit is none.
#[allow(clippy::cast_precision_loss)]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_back() {
        let now = Instant::now();
        let limits = Limits::new(LimitConfig { calls: Some(2), rate: None, per_peer: Some(1) }, now);
        let ada = limits.take(Some("ada".into()), now).unwrap();
        assert!(limits.take(Some("ada".into()), now).unwrap_err().message().contains("this caller"));
        let bob = limits.take(Some("bob".into()), now).unwrap();
        let failure = limits.take(Some("eve".into()), now).unwrap_err();
        assert!(failure.message().contains("this route") && failure.kind() == Kind::Busy);
        drop((ada, bob));
        assert_eq!(limits.under_way.load(Ordering::Relaxed), 0);
        assert!(limits.sources().of.is_empty());
        assert!(limits.take(Some("ada".into()), now).is_ok());
    }

    fn all(limits: &Arc<Limits>, who: &str) -> Vec<Permit> {
        let now = Instant::now();
        std::iter::from_fn(|| limits.take(Some(who.into()), now).ok()).collect()
    }

    #[test]
    fn one_caller_leaves_as_much_of_a_route_as_it_has() {
        let limits = Limits::new(LimitConfig { calls: Some(16), ..LimitConfig::default() }, Instant::now());
        assert!(limits.counts_sources() && !limits.is_crowded());
        let ada = all(&limits, "ada");
        assert_eq!(ada.len(), 8);
        let bob = all(&limits, "bob");
        assert_eq!((bob.len(), all(&limits, "eve").len()), (4, 2));
        drop(ada);
        assert_eq!(bob.len() + all(&limits, "bob").len(), 8);
    }

    #[test]
    fn what_a_busy_target_takes_is_shared_until_it_may_take_more() {
        let limits = Limits::new(LimitConfig::default(), Instant::now());
        assert!(!limits.counts_sources() && !limits.is_crowded());
        // Nobody counts them: the target has said nothing.
        let mut first: Vec<_> = (0..12).map(|_| limits.take(None, Instant::now()).unwrap()).collect();
        // It takes eight, and refuses four; the last of these answers comes first, and late.
        for refused in first.split_off(8).into_iter().rev() {
            limits.is_full(&refused);
        }
        assert!(limits.is_crowded());
        let ada = all(&limits, "ada");
        assert_eq!(ada.len(), 1, "nothing is left, and the target may say so itself");
        let refused = limits.take(Some("ada".into()), Instant::now()).unwrap_err();
        assert!(refused.kind() == Kind::Busy && refused.message().contains("its share"), "{refused:?}");
        drop(ada);
        drop(first);
        let ada = all(&limits, "ada");
        assert_eq!(ada.len(), 4, "half of what it took");
        assert_eq!(all(&limits, "bob").len(), 2);
        drop(ada);
        let let_in = |calls: u64| (0..calls).all(|_| limits.take(Some("ada".into()), Instant::now()).is_ok());
        assert!(let_in(8 * BELIEVED - 8) && limits.is_crowded());
        assert!(let_in(1) && !limits.is_crowded(), "it may take more by now");
        assert!(limits.sources().of.is_empty());
    }

    #[test]
    fn a_rate_fills_again_as_time_passes() {
        let now = Instant::now();
        let limits = Limits::new(LimitConfig { rate: Some(2), ..LimitConfig::default() }, now);
        let taken = |at| limits.take(None, at).is_ok();
        assert!(taken(now) && taken(now) && !taken(now));
        assert!(taken(now + Duration::from_millis(500)));
        assert!(!taken(now + Duration::from_millis(500)));
        let later = now + Duration::from_secs(100);
        assert!(taken(later) && taken(later) && !taken(later), "no more than a second's worth is kept");
    }
}
