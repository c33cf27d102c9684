//! Limits: calls under way on a route, of one caller, and calls a second.
//!
//! State: counters of what is taken; each call that was let in holds a `Permit`, whose end gives its part
//! back. Objects behind references that a route has passed on share the limits of the route. Invariants: a
//! count is raised before it is compared, and given back on refusal, so that two calls never get the last
//! place both; the table of callers has only those who have calls under way, so it is no longer than `calls`,
//! or what the listeners let in.

use crate::config::LimitConfig;
use everywire::{Failure, Initiator, Kind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The limits of a route, and what is taken of them.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The limits.
    settings: LimitConfig,
    /// Calls under way on the route.
    under_way: AtomicU64,
    /// Calls under way of each caller; none is kept that has none.
    sources: Mutex<HashMap<String, u64>>,
    /// Calls of this second.
    bucket: Mutex<Bucket>,
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
}

impl Limits {
    pub(crate) fn new(settings: LimitConfig, now: Instant) -> Arc<Self> {
        let left = settings.rate.map_or(0.0, as_float);
        Arc::new(Self {
            settings,
            under_way: AtomicU64::new(0),
            sources: Mutex::default(),
            bucket: Mutex::new(Bucket { left, at: now }),
        })
    }

    /// Whether they are these.
    pub(crate) fn are(&self, settings: LimitConfig) -> bool {
        self.settings == settings
    }

    /// Whether callers are told apart.
    pub(crate) fn counts_sources(&self) -> bool {
        self.settings.per_peer.is_some()
    }

    /// Takes the share of a call. `source` is who calls, where callers are told apart; `now` only fills the
    /// bucket.
    ///
    /// # Errors
    /// A limit is reached. The call did not run.
    pub(crate) fn take(self: &Arc<Self>, source: Option<String>, now: Instant) -> Result<Permit, Failure> {
        let before = self.under_way.fetch_add(1, Ordering::AcqRel);
        // From here on it is given back whatever happens.
        let mut permit = Permit { of: Arc::clone(self), source: None };
        if self.settings.calls.is_some_and(|most| before >= most) {
            return Err(busy("too many calls are under way on this route"));
        }
        if let (Some(most), Some(source)) = (self.settings.per_peer, source) {
            let mut sources = self.sources();
            let held = sources.get(&source).copied().unwrap_or_default();
            if held >= most {
                return Err(busy("too many calls of this caller are under way"));
            }
            sources.insert(source.clone(), held + 1);
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

    fn sources(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.under_way.fetch_sub(1, Ordering::AcqRel);
        if let Some(source) = &self.source {
            let mut sources = self.of.sources();
            match sources.get_mut(source) {
                Some(held) if *held > 1 => *held -= 1,
                _ => {
                    sources.remove(source);
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
        assert!(limits.sources().is_empty());
        assert!(limits.take(Some("ada".into()), now).is_ok());
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
