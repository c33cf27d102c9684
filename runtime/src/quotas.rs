//! Quotas for what peers may hold of a listening process.

use crate::clock::lately;
use crate::heap;
use crate::memory_here::memory_here;
use crate::shares::{Shares, Source};
use everywire_model::{Failure, Initiator, Kind, options, units};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The options of an address to listen at that say what its own peers may take; on every wire the same, named as those of
/// `everywire serve`.
pub(crate) const OPTIONS: [&str; 5] = ["max-connections", "memory", "idle", "first-message", "max-unsent"];

/// What the hint of a wrong option says.
const NOTATION: &str = "write max-connections=COUNT, memory=SIZE (64MiB), idle=TIME (5m, or none), first-message=TIME (10s), \
                        max-unsent=SIZE (1MiB)";

/// How long a connection has been quiet before it makes room for another one.
const REST: Duration = Duration::from_secs(1);
/// Connections that end at the most in one go for want of memory. Each ends under its own lock; what is still
/// too much is seen when the next one is weighed.
const EVICTED: usize = 64;
/// What the peers of a listener may take, and what they hold of it.
pub(crate) struct Allowance {
    pub(crate) quotas: Quotas,
    pub(crate) shares: Arc<Shares>,
}

impl Allowance {
    /// For these quotas, where the largest message that a wire allows has so many bytes: memory for two of
    /// them is always there.
    pub(crate) fn new(quotas: Quotas, largest: u64) -> Self {
        let shares = Arc::new(Shares::new(quotas.budget(largest), quotas.connections));
        Self { quotas, shares }
    }

    /// That of a listener whose address has options of its own, and the rest of the address. Nothing, if it has none. Connections or
    /// memory of its own are apart from those of the node: neither has to make room for the other.
    ///
    /// # Errors
    ///
    /// An option has no such value, or stands there twice.
    pub(crate) fn of_address<'a>(
        &self,
        address: &'a str,
        largest: u64,
    ) -> Result<(Cow<'a, str>, Option<Self>), Failure> {
        let (rest, found) =
            options::take(address, &OPTIONS).map_err(|failure| failure.with_hint(NOTATION))?;
        if found.is_empty() {
            return Ok((rest, None));
        }
        let mut quotas = self.quotas.clone();
        let mut apart = false;
        for (name, value) in found {
            let wrong = |why: String| {
                options::wrong(address, &format!("`{name}={value}`: {why}")).with_hint(NOTATION)
            };
            let size = || {
                let bytes = units::size(value).map_err(wrong)?;
                Ok::<_, Failure>(usize::try_from(bytes).unwrap_or(usize::MAX))
            };
            match name {
                "max-connections" => {
                    let count = value.parse().ok().filter(|count| *count > 0);
                    quotas.connections = count.ok_or_else(|| wrong("a count is expected".to_owned()))?;
                    apart = true;
                }
                "memory" => {
                    quotas.memory = Some(size()?);
                    apart = true;
                }
                "idle" => quotas.idle = units::deadline(value).map_err(wrong)?.0,
                "first-message" => quotas.first_message = units::time(value).map_err(wrong)?,
                _ => quotas.unsent = size()?,
            }
        }
        let shares = if apart { Self::new(quotas.clone(), largest).shares } else { Arc::clone(&self.shares) };
        Ok((rest, Some(Self { quotas, shares })))
    }

    /// Why a newcomer finds no place.
    pub(crate) fn crowded(&self) -> Failure {
        let most = self.shares.most();
        let what = if self.shares.open() < most {
            // With those that a hop has made for its callers.
            "as many connections are open as this process has descriptors for".to_owned()
        } else {
            format!("{most} connections are open, the quota `connections`; raise it if they are wanted")
        };
        Failure::new(Kind::Busy, Initiator::Peer, what)
            .with_hint("try again later: the call was not executed")
    }

    /// Ends a connection in favour of one of this source: the oldest that has not sent a whole message yet
    /// and has a smaller number than `before`, or whose source has more connections than this one will have; else one that has been quiet for `REST`, of a source that has
    /// at least as many connections. Returns whether one ended. Its descriptor is closed when the last thread
    /// lets go of it, which may be a moment later.
    pub(crate) fn make_way(&self, newcomer: Source, before: u64) -> bool {
        let quiet = || {
            let now = lately();
            let found = self.shares.maybe_quiet(newcomer);
            found.into_iter().find_map(|of_one| {
                let resting = of_one.into_iter().filter(|held| held.is_quiet() && now >= held.used() + REST);
                resting.min_by_key(|held| held.used())
            })
        };
        let Some(leaving) = self.shares.oldest_fresh(newcomer, before).or_else(quiet) else { return false };
        leaving.make_way();
        true
    }

    /// Ends connections until all together hold no more memory than they may, but not more than `EVICTED`.
    /// Called without any lock of a connection.
    pub(crate) fn make_room(&self) {
        let before = self.shares.used();
        for _ in 0..EVICTED {
            if self.shares.used() <= self.shares.memory() {
                break;
            }
            let Some(heaviest) = self.shares.heaviest() else { break };
            heaviest.make_room();
        }
        if self.shares.freed(before.saturating_sub(self.shares.used())) {
            heap::give_back();
        }
    }
}

/// What all peers together, and each connection, may take. Message sizes and counts are in
/// [`everywire_model::Limits`].
#[derive(Debug, Clone)]
pub struct Quotas {
    /// Accepted connections at one time, or as many as the process may have descriptors for. When it is reached, the oldest that
    /// has not sent a whole message yet makes room, or one that is quiet, of the source (address or user) that has most of them;
    /// if there is none, the newcomer is told so in the wire's words, and closed.
    pub connections: usize,
    /// Bytes that all peers may hold together: half-received messages, requests under way, answers that are not read, and calls of
    /// servers that wait for servants here. When it is reached, the connection that holds most of the source that holds most is closed. `None`: a quarter of the
    /// memory that this process can have (machine, control group, address space); never less than the largest message needs.
    pub memory: Option<usize>,
    /// How long a new connection may take to send its first whole message.
    pub first_message: Duration,
    /// How long a connection may be silent with no call under way, or take nothing of an answer; `None`: for ever. For silence it
    /// ends connections of wires whose clients connect again by themselves. Where calls go both ways on a connection
    /// ([`everywire_model::Wire::calls_both_ways`]) whoever is silent may wait to be called, and a foreign
    /// client that was cut off would not come back: there a connection may be silent for ever, unless its wire has limits of
    /// its own for that. So it may where objects have signals or attributes to tell of and the wire sends them to everybody
    /// who is connected. A peer that takes nothing of an answer is ended on every wire.
    pub idle: Option<Duration>,
    /// Bytes of replies that may wait for a peer that does not read; beyond that its requests are neither read nor served.
    pub unsent: usize,
    /// Threads that servants which block may tie up: in the pool of the node, where operations run that were seen to block, and in
    /// each shard.
    pub blocked_threads: usize,
}

impl Quotas {
    /// The bytes that all connections may hold, where the largest message has so many.
    pub(crate) fn budget(&self, largest: u64) -> usize {
        self.memory.unwrap_or_else(memory_here).max(least(largest))
    }
}

/// The bytes that are always there, where the largest message has so many: two of them.
pub(crate) fn least(largest: u64) -> usize {
    usize::try_from(largest).unwrap_or(usize::MAX).saturating_mul(2)
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            connections: 16_384,
            memory: None,
            first_message: Duration::from_secs(60),
            idle: Some(Duration::from_secs(600)),
            unsent: 8 << 20,
            blocked_threads: 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::Tenant;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Weak;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    /// Somebody who is always busy, and counts who asks.
    struct BusyTenant(Arc<AtomicUsize>);

    impl Tenant for BusyTenant {
        fn is_quiet(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }

        fn used(&self) -> Instant {
            Instant::now()
        }

        fn make_room(&self) {}

        fn make_way(self: Arc<Self>) {}
    }

    #[test]
    fn a_newcomer_has_few_connections_looked_at_however_many_there_are() {
        const OPEN: u32 = 10_000;
        let of = |last: u32| Source::at(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + last)));
        // All of one address, and each of its own.
        for sources in [1, OPEN] {
            let allowance = Allowance::new(Quotas::default(), 1000);
            let looks = Arc::new(AtomicUsize::new(0));
            let tenants: Vec<Arc<dyn Tenant>> = (0..OPEN)
                .map(|number| {
                    let tenant: Arc<dyn Tenant> = Arc::new(BusyTenant(Arc::clone(&looks)));
                    let weak: Weak<dyn Tenant> = Arc::downgrade(&tenant);
                    allowance.shares.enter(number.into(), of(number % sources), weak);
                    allowance.shares.establish(number.into());
                    tenant
                })
                .collect();
            for _ in 0..100 {
                assert!(!allowance.make_way(of(OPEN), u64::MAX), "nobody is quiet");
                let looked = looks.swap(0, Ordering::Relaxed);
                assert!((1..=16).contains(&looked), "{looked} of {}", tenants.len());
            }
        }
    }

    #[test]
    fn a_listener_has_what_its_address_says_and_the_rest_of_its_node() {
        let node = Allowance::new(Quotas { unsent: 77, ..Quotas::default() }, 1000);
        assert!(node.of_address("x://h:1?publish=nat", 1000).unwrap().1.is_none());
        let (rest, own) = node.of_address("x://h:1?idle=none&a=b&first-message=2s#k", 1000).unwrap();
        let own = own.unwrap();
        assert_eq!(rest, "x://h:1?a=b#k");
        assert_eq!((own.quotas.idle, own.quotas.first_message), (None, Duration::from_secs(2)));
        assert_eq!(own.quotas.unsent, 77);
        assert!(Arc::ptr_eq(&own.shares, &node.shares));
        let (_, own) = node.of_address("x://h:1?memory=3MiB&max-connections=5&max-unsent=1kB", 1000).unwrap();
        let own = own.unwrap();
        assert_eq!((own.shares.memory(), own.shares.most(), own.quotas.unsent), (3 << 20, 5, 1000));
        let (_, own) = node.of_address("x://h:1?memory=1", 1000).unwrap();
        assert_eq!(own.unwrap().shares.memory(), 2000, "room for the largest message");
    }

    #[test]
    fn a_wrong_option_says_which_and_why() {
        let node = Allowance::new(Quotas::default(), 1000);
        for (option, word) in [
            ("max-connections=0", "count"),
            ("max-connections=-1", "count"),
            ("memory=much", "size"),
            ("idle=5 fortnights", "fortnights"),
            ("first-message=none", "time"),
            ("max-unsent=0", "range"),
            ("idle=1s&idle=2s", "twice"),
        ] {
            let failure = node.of_address(&format!("x://h:1?{option}"), 1000).err().unwrap();
            assert!(failure.message().contains(word), "{option}: {failure}");
            assert!(failure.hint().is_some_and(|hint| hint.contains("max-connections=COUNT")), "{failure}");
        }
    }
}
