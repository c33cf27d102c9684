//! The places that a node has for sessions over HTTP, and who gets them when they are scarce.
//!
//! Whoever is known by nothing but an address may begin a session, and each takes a place for as long as it might go on. While
//! there are places, everybody gets one. When there are none, one is taken from whoever has most of them, if the newcomer has
//! less: so nobody who begins many sessions, whatever is said in them, shuts others out. Among those who have as many, only a
//! session that is silent, or in which nothing was said yet, makes room.
//!
//! What all sessions keep for their clients (answers that are not acknowledged, requests before which one is missing) is counted in
//! `kept`, and has one bound, which the node tells. When it is more, sessions give way: each time the one that keeps most of whoever
//! keeps most.
//!
//! A user is one who proved it to the transport (Windows, a certificate): by the account in the table of users, whichever way he
//! writes its name. A name in messages or in HTTP Basic is another's in the next request, so those who send such count as the
//! machine that they call from.

use super::MAX_SESSIONS;
use super::session::Session;
use super::shared::{Reliable, lock};
use crate::soap::ids::MessageId;
use everywire_model::{Objects, PeerAddress};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Sessions of which each may keep as many bytes of answers as one alone; if there are more, they share what these may keep.
const FREE: u64 = 64;

/// How long nothing must have been said in a session for it to make room for somebody who has no fewer than its client.
const SILENCE: Duration = Duration::from_secs(30);

/// Bytes by which what is kept has changed before the node is told.
const GRAIN: usize = 4 << 10;

/// Whose places are counted together: a user who has proved to be one, or else a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::soap) struct Owner(Arc<str>);

impl Owner {
    /// What is known from the transport: the user of a local socket, the IPv4 address, the network of an IPv6 address, of
    /// which one machine has as many as it likes.
    pub(in crate::soap) fn at(peer: &PeerAddress) -> Self {
        if let Some((_, uid)) = peer.credentials {
            return Self(format!("uid {uid}").into());
        }
        let address = peer.text.strip_prefix("tcp:").and_then(|text| text.parse::<SocketAddr>().ok());
        Self(match address.map(|address| address.ip().to_canonical()) {
            Some(IpAddr::V4(address)) => address.to_string().into(),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}::").into()
            }
            None => peer.text.as_str().into(),
        })
    }

    /// Somebody who has proved to be called so.
    pub(in crate::soap) fn named(name: &str) -> Self {
        Self(format!("={name}").into())
    }
}

/// The sessions over HTTP at one node, by the identifiers of their clients' sequences, which nobody can guess.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    places: Mutex<Places>,
    /// Bytes that all sessions keep.
    kept: Arc<AtomicUsize>,
    /// What the node was told of them.
    told: AtomicUsize,
}

/// Locked before any session in it, and never while one is locked.
#[derive(Debug, Default)]
struct Places {
    taken: HashMap<String, Place>,
    /// Sequences whose place was given to others, the latest last.
    /// So that their clients are told why, for as long as they are remembered.
    displaced: VecDeque<String>,
}

#[derive(Debug)]
struct Place {
    owner: Owner,
    session: Arc<Mutex<Session>>,
}

impl Sequences {
    /// The session of this sequence.
    pub(in crate::soap) fn find(&self, id: &str) -> Option<Reliable> {
        lock(&self.places).taken.get(id).map(|place| Reliable::of(Arc::clone(&place.session)))
    }

    /// Bytes of answers that each session may keep, where one alone might keep `most`.
    pub(in crate::soap) fn share(&self, most: u64) -> u64 {
        let sessions = lock(&self.places).taken.len() as u64;
        if sessions <= FREE { most } else { most.saturating_mul(FREE) / sessions }
    }

    /// Whether there was a session of this sequence that had to make room.
    pub(in crate::soap) fn was_displaced(&self, id: &str) -> bool {
        lock(&self.places).displaced.iter().any(|known| known == id)
    }

    /// The session that this message asked for before.
    pub(in crate::soap) fn asked_by(&self, id: &MessageId) -> Option<Reliable> {
        self.first(|session| session.was_asked_by(id))
    }

    /// The session whose answers are of this sequence.
    pub(in crate::soap) fn answering_as(&self, id: &str) -> Option<Reliable> {
        self.first(|session| session.out.id.as_deref() == Some(id))
    }

    /// One after the other: it is asked for messages that begin a session or name none, not for each one.
    fn first(&self, is: impl Fn(&Session) -> bool) -> Option<Reliable> {
        let places = lock(&self.places);
        let known = places.taken.values().find(|place| is(&lock(&place.session)));
        known.map(|place| Reliable::of(Arc::clone(&place.session)))
    }

    /// Makes room for another session of this owner, if there may be one: forgets those to which nobody will come back, and if
    /// need be has one give way.
    pub(in crate::soap) fn make_room(&self, now: Instant, owner: &Owner) -> bool {
        let mut places = lock(&self.places);
        // Half full: unused sessions are not kept for ten minutes any more.
        let crowded = places.taken.len() >= MAX_SESSIONS / 2;
        places.taken.retain(|_, place| !lock(&place.session).is_forsaken(now, crowded));
        if places.taken.len() < MAX_SESSIONS {
            return true;
        }
        let gives_way = places.gives_way(now, owner);
        if let Some(id) = &gives_way {
            places.displace(id);
        }
        gives_way.is_some()
    }

    /// Keeps a session that was granted.
    pub(in crate::soap) fn keep(&self, reliable: &Reliable, owner: &Owner) {
        let id = {
            let mut session = reliable.session();
            session.kept.all = Some(Arc::clone(&self.kept));
            session.came.id.clone()
        };
        if let Some(id) = id {
            lock(&self.places).taken.insert(id, Place { owner: owner.clone(), session: reliable.share() });
        }
    }

    /// Tells the node what is kept, and has sessions give way until that is no more than it may be. No session is locked by the
    /// caller.
    pub(in crate::soap) fn settle(&self, objects: &dyn Objects) {
        loop {
            let kept = || self.kept.load(Ordering::Relaxed);
            if kept().abs_diff(self.told.load(Ordering::Relaxed)) < GRAIN {
                return;
            }
            // One after the other: the node is told each change once.
            let mut places = lock(&self.places);
            // Nobody comes back to those that are over.
            places.taken.retain(|_, place| !lock(&place.session).is_over());
            let kept = kept();
            if kept <= objects.keeps(self.told.swap(kept, Ordering::Relaxed), kept) {
                return;
            }
            let Some(id) = places.heaviest() else { return };
            places.displace(&id);
        }
    }
}

impl Places {
    /// The session that keeps most of the owner whose sessions keep most.
    fn heaviest(&self) -> Option<String> {
        let bytes = |place: &Place| lock(&place.session).kept.bytes;
        let mut sums: HashMap<&Owner, usize> = HashMap::new();
        self.taken.values().for_each(|place| *sums.entry(&place.owner).or_default() += bytes(place));
        let (most, _) = sums.into_iter().max_by_key(|(_, sum)| *sum)?;
        let theirs = self.taken.iter().filter(|(_, place)| place.owner == *most && bytes(place) > 0);
        theirs.max_by_key(|(_, place)| bytes(place)).map(|(id, _)| id.clone())
    }

    /// Which session makes room for one of this owner: before all others one in which nothing was said, then the one that has
    /// been silent for longest.
    fn gives_way(&self, now: Instant, owner: &Owner) -> Option<String> {
        let mut counts: HashMap<&Owner, usize> = HashMap::new();
        self.taken.values().for_each(|place| *counts.entry(&place.owner).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or_default();
        // How many the newcomer's owner would have.
        let then = counts.get(owner).copied().unwrap_or_default() + 1;
        let candidates = self.taken.iter().filter_map(|(id, place)| {
            let theirs = counts.get(&place.owner).copied().unwrap_or_default();
            if theirs != most && place.owner != *owner {
                return None;
            }
            let session = lock(&place.session);
            let (used, heard) = (!session.came.is_unused(), session.heard);
            let quiet = !used || heard.is_none_or(|heard| heard + SILENCE <= now);
            // Whoever has most already makes room himself.
            let may =
                if then < most { theirs == most } else { quiet && (then == most || place.owner == *owner) };
            may.then_some((used, heard, id))
        });
        candidates.min().map(|(_, _, id)| id.clone())
    }

    fn displace(&mut self, id: &str) {
        if let Some(place) = self.taken.remove(id) {
            lock(&place.session).displace();
            if self.displaced.len() >= MAX_SESSIONS {
                self.displaced.pop_front();
            }
            self.displaced.push_back(id.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_and_their_ports_are_not() {
        let at = |text: &str| Owner::at(&PeerAddress { text: text.into(), credentials: None });
        assert_eq!(at("tcp:10.1.2.3:4000"), at("tcp:10.1.2.3:4001"));
        assert_eq!(at("tcp:10.1.2.3:4000"), at("tcp:[::ffff:10.1.2.3]:4000"));
        assert_eq!(at("tcp:[2001:db8:1:2:3::4]:1"), at("tcp:[2001:db8:1:2:ffff::1]:1"));
        assert_ne!(at("tcp:[2001:db8:1:2::4]:1"), at("tcp:[2001:db8:1:3::4]:1"));
        assert_ne!(at("tcp:10.1.2.3:4000"), at("tcp:10.1.2.4:4000"));
        let of = |pid, uid| {
            Owner::at(&PeerAddress { text: format!("unix pid {pid}"), credentials: Some((pid, uid)) })
        };
        assert_eq!(of(1, 1000), of(2, 1000));
        assert_ne!(of(1, 1000), of(1, 1001));
        // Nobody is taken for an address because he is called so.
        assert_ne!(Owner::named("10.1.2.3"), at("tcp:10.1.2.3:1"));
    }
}
