//! The places that a node has for sessions over HTTP, and who gets them when they are scarce.
//!
//! Whoever is known by nothing but an address may begin a session, and each takes a place for as long as it might go on. While
//! there are places, everybody gets one. When there are none, one is taken from whoever has most of them, if the newcomer has
//! less: so nobody who begins many sessions, whatever is said in them, shuts others out. Among those who have as many, only a
//! session that is silent, or in which nothing was said yet, makes room.
//!
//! What all sessions keep for their clients (answers that are not acknowledged, requests before which one is missing) is counted in
//! `kept`, and has one bound, which the node tells. When it is more, sessions give way: those that are over, then each time the one that keeps
//! most of whoever keeps most.
//!
//! State: a table of sessions with three orders beside it, so that no request walks over all sessions, however many strangers have
//! begun: by the message that asked for them, by the sequence of their answers, and by owner and age. The age of a session stands there as
//! it was when it was looked at last: it only grows, so the first one whose age is still true is the oldest.
//!
//! Invariants: each session in `taken` stands once among the ages of its owner, and each owner with sessions has one rank. Sessions that are
//! forsaken are looked for every `SWEEP` at the most. Who keeps most stands in an order of its own (`retained_bytes`), so that nobody walks over
//! all sessions when memory is short, either.

use super::MAX_SESSIONS;
use super::owner::Owner;
use super::retained_bytes::{RetainedBytes, RetainedSum};
use super::session::Session;
use super::shared::{Reliable, lock};
use crate::soap::ids::MessageId;
use everywire_model::Objects;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Sessions of which each may keep as many bytes of answers as one alone; if there are more, they share what these may keep.
const FREE: u64 = 64;

/// How long nothing must have been said in a session for it to make room for somebody who has no fewer than its client.
const SILENCE: Duration = Duration::from_secs(30);

/// How long after a look for sessions to which nobody comes back the next one is worth its time.
const SWEEP: Duration = Duration::from_millis(100);

/// Bytes by which what is kept has changed before the node is told.
const GRAIN: usize = 4 << 10;

/// The sessions over HTTP at one node, by the identifiers of their clients' sequences, which nobody can guess.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    places: Mutex<SessionTable>,
    /// Bytes that all sessions keep.
    kept: Arc<RetainedSum>,
    /// What the node was told of them.
    told: AtomicUsize,
}

/// Locked before any session in it, and never while one is locked.
#[derive(Debug, Default)]
struct SessionTable {
    taken: HashMap<String, SessionEntry>,
    /// Sequences by the messages that asked for them; of equal messages the first.
    asked: HashMap<MessageId, String>,
    /// The sequences of answers, each with that of its session.
    answers: BTreeSet<(String, String)>,
    /// The sessions of each owner, the oldest first.
    owners: HashMap<Owner, BTreeSet<Age>>,
    /// Owners by how many sessions they have, and how old the oldest one is: the last one has most, and the oldest of those with as many.
    ranks: BTreeSet<(usize, Reverse<Age>, Owner)>,
    /// When sessions to which nobody comes back were looked for.
    swept: Option<Instant>,
    /// Sequences whose place was given to others, the latest last.
    /// So that their clients are told why, for as long as they are remembered.
    displaced: VecDeque<String>,
}

#[derive(Debug)]
struct SessionEntry {
    owner: Owner,
    session: Arc<Mutex<Session>>,
    /// As it stands among the ages of its owner.
    age: Age,
    asked: MessageId,
    answers: Option<String>,
}

/// Whether anything was said in a session, when something was heard of it, and its sequence.
type Age = (bool, Option<Instant>, String);

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
        let places = lock(&self.places);
        let place = places.taken.get(places.asked.get(id)?)?;
        let is = lock(&place.session).was_asked_by(id);
        is.then(|| Reliable::of(Arc::clone(&place.session)))
    }

    /// The session whose answers are of this sequence.
    pub(in crate::soap) fn answering_as(&self, id: &str) -> Option<Reliable> {
        let places = lock(&self.places);
        let from = (id.to_owned(), String::new());
        let (_, sequence) = places.answers.range(from..).next().filter(|(answers, _)| answers == id)?;
        places.taken.get(sequence).map(|place| Reliable::of(Arc::clone(&place.session)))
    }

    /// Makes room for another session of this owner, if there may be one: forgets those to which nobody will come back, and if
    /// need be has one give way.
    pub(in crate::soap) fn make_room(&self, now: Instant, owner: &Owner) -> bool {
        let mut places = lock(&self.places);
        if places.swept.is_none_or(|swept| swept + SWEEP <= now) {
            places.swept = Some(now);
            // Half full: unused sessions are not kept for ten minutes any more.
            let crowded = places.taken.len() >= MAX_SESSIONS / 2;
            places.forget(|session| session.is_forsaken(now, crowded));
        }
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
        let (id, asked, answers) = {
            let session = reliable.session();
            (session.came.id.clone(), session.asked.clone(), session.out.id.clone())
        };
        if let Some(id) = id {
            let (owner, session) = (owner.clone(), reliable.share());
            let mut places = lock(&self.places);
            places.enter(id.clone(), owner.clone(), session, asked, answers);
            let mut session = reliable.session();
            session.kept = RetainedBytes::at(&self.kept, owner, &id);
            session.count();
        }
    }

    /// Tells the node what is kept, and has sessions give way until that is no more than it may be. No session is locked by the
    /// caller.
    pub(in crate::soap) fn settle(&self, objects: &dyn Objects) {
        self.give_back(|before, now| objects.keeps(before, now));
    }

    /// The same; `tell` hears what was kept and what is, and says how much may be.
    fn give_back(&self, tell: impl Fn(usize, usize) -> usize) {
        let mut short = false;
        loop {
            if !short && self.kept.bytes().abs_diff(self.told.load(Ordering::Relaxed)) < GRAIN {
                return;
            }
            // One after the other: the node is told each change once.
            let mut places = lock(&self.places);
            let kept = self.kept.bytes();
            if kept <= tell(self.told.swap(kept, Ordering::Relaxed), kept) {
                return;
            }
            short = true;
            let went = match (self.kept.over(), self.kept.heaviest()) {
                // Nobody comes back to it.
                (Some(id), _) => places.leave(&id).is_some(),
                (None, Some(id)) => places.displace(&id),
                (None, None) => false,
            };
            if !went {
                return;
            }
        }
    }
}

impl SessionTable {
    /// Which session makes room for one of this owner: before all others one in which nothing was said, then the one that has
    /// been silent for longest.
    fn gives_way(&mut self, now: Instant, owner: &Owner) -> Option<String> {
        let most = self.ranks.last().map_or(0, |(count, ..)| *count);
        // How many the newcomer's owner would have.
        let then = self.owners.get(owner).map_or(0, BTreeSet::len) + 1;
        if then < most {
            // Whoever has most already makes room himself.
            return self.oldest().map(|(.., id)| id);
        }
        let own = self.oldest_of(owner);
        let oldest = if then == most { own.into_iter().chain(self.oldest()).min() } else { own };
        let is_quiet = |(used, heard, _): &Age| !used || heard.is_none_or(|heard| heard + SILENCE <= now);
        oldest.filter(is_quiet).map(|(.., id)| id)
    }

    /// The oldest session of those who have most.
    fn oldest(&mut self) -> Option<Age> {
        loop {
            let (_, Reverse(known), owner) = self.ranks.last()?.clone();
            // If it was younger than was known, somebody else's may be older.
            let oldest = self.oldest_of(&owner)?;
            if oldest == known {
                return Some(oldest);
            }
        }
    }

    /// The oldest session of this owner.
    fn oldest_of(&mut self, owner: &Owner) -> Option<Age> {
        loop {
            let known = self.owners.get(owner)?.first()?.clone();
            let place = self.taken.get_mut(&known.2)?;
            place.age = age(&place.session, &known.2);
            if place.age == known {
                return Some(known);
            }
            let now = place.age.clone();
            self.change(owner, |ages| {
                ages.remove(&known);
                ages.insert(now);
            });
        }
    }

    /// Changes which sessions an owner has, and his rank with it.
    fn change(&mut self, owner: &Owner, change: impl FnOnce(&mut BTreeSet<Age>)) {
        let ages = self.owners.entry(owner.clone()).or_default();
        let rank = |ages: &BTreeSet<Age>| {
            ages.first().map(|first| (ages.len(), Reverse(first.clone()), owner.clone()))
        };
        let before = rank(ages);
        change(ages);
        let after = rank(ages);
        if after.is_none() {
            self.owners.remove(owner);
        }
        if before != after {
            before.map(|before| self.ranks.remove(&before));
            self.ranks.extend(after);
        }
    }

    /// A session takes a place.
    fn enter(
        &mut self,
        id: String,
        owner: Owner,
        session: Arc<Mutex<Session>>,
        asked: MessageId,
        answers: Option<String>,
    ) {
        // Its client asked again.
        self.leave(&id);
        let age = age(&session, &id);
        self.change(&owner, |ages| _ = ages.insert(age.clone()));
        self.asked.entry(asked.clone()).or_insert_with(|| id.clone());
        self.answers.extend(answers.clone().map(|answers| (answers, id.clone())));
        self.taken.insert(id, SessionEntry { owner, session, age, asked, answers });
    }

    /// The session of this sequence gives its place back, if it has one.
    fn leave(&mut self, id: &str) -> Option<SessionEntry> {
        let place = self.taken.remove(id)?;
        lock(&place.session).kept.unrank();
        self.change(&place.owner, |ages| _ = ages.remove(&place.age));
        if self.asked.get(&place.asked).is_some_and(|known| known == id) {
            self.asked.remove(&place.asked);
        }
        if let Some(answers) = place.answers.clone() {
            self.answers.remove(&(answers, id.to_owned()));
        }
        Some(place)
    }

    /// Forgets the sessions of which this is true.
    fn forget(&mut self, is: impl Fn(&Session) -> bool) {
        let gone = self.taken.iter().filter(|(_, place)| is(&look(&place.session)));
        let gone: Vec<String> = gone.map(|(id, _)| id.clone()).collect();
        gone.iter().for_each(|id| drop(self.leave(id)));
    }

    /// The session of this sequence makes room. Returns whether it had a place.
    fn displace(&mut self, id: &str) -> bool {
        let Some(place) = self.leave(id) else { return false };
        lock(&place.session).displace();
        if self.displaced.len() >= MAX_SESSIONS {
            self.displaced.pop_front();
        }
        self.displaced.push_back(id.to_owned());
        true
    }
}

/// A session among others. Tests count how many are looked at.
fn look(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    #[cfg(test)]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
    lock(session)
}

/// How old a session is, as its order wants it.
fn age(session: &Mutex<Session>, id: &str) -> Age {
    let session = look(session);
    (!session.came.is_unused(), session.heard, id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soap::Dialect;
    use std::cell::Cell;

    thread_local! {
        /// Sessions that this thread has looked at among others.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_flood_of_requests_looks_at_few_sessions() {
        let sequences = Sequences::default();
        let begun = Instant::now();
        let crowd = Owner::named("crowd");
        let begins = |number: u32| {
            // A thousand of them in a second.
            let now = begun + Duration::from_millis(number.into());
            assert!(sequences.make_room(now, &crowd));
            let mut session = Session::asked(Dialect::WS, true);
            session.heard = Some(now);
            let id = number.to_string();
            assert!(sequences.asked_by(&MessageId::Text(id.as_str().into())).is_none());
            let asked = MessageId::Text(id.as_str().into());
            lock(&sequences.places).enter(id, crowd.clone(), Arc::new(Mutex::new(session)), asked, None);
        };
        (0..2000).for_each(begins);
        LOOKS.set(0);
        (2000..3000).for_each(begins);
        // Ten times a second at all of them, else at a few.
        let looks = LOOKS.get();
        assert!(looks < 15 * MAX_SESSIONS, "{looks} sessions were looked at for 1000 requests");
    }

    #[test]
    fn short_memory_looks_at_those_only_that_make_room() {
        let sequences = Sequences::default();
        for number in 0..1000_usize {
            let mut session = Session::asked(Dialect::WS, true);
            session.heard = Some(Instant::now());
            session.came.id = Some(number.to_string());
            session.asked = MessageId::Text(number.to_string().as_str().into());
            let reliable = Reliable::new(session);
            // The third has most together, the last of his sessions most of them.
            sequences.keep(&reliable, &Owner::named(&(number % 10).to_string()));
            let bytes = if number % 10 == 3 { 2000 + number } else { 1000 };
            reliable.session().kept.set(bytes, number == 500);
        }
        LOOKS.set(0);
        let before = sequences.kept.bytes();
        // As little too much as three of them keep: the one that is over, and two of his.
        let may = before - 1000 - (2993 + 2983);
        sequences.give_back(|_, _| may);
        let gone = |id: &str| sequences.find(id).is_none();
        let displaced = ["993", "983"].map(|id| sequences.was_displaced(id));
        assert!(gone("500") && !sequences.was_displaced("500") && displaced == [true; 2]);
        assert_eq!(lock(&sequences.places).taken.len(), 997);
        assert_eq!((sequences.kept.bytes(), LOOKS.get()), (may, 0), "nobody else was looked at");
        // As soon as nobody has anything more to give, that is the end.
        sequences.find("0").unwrap().session().kept.set(1000 + GRAIN, false);
        sequences.give_back(|_, _| 0);
        assert!(lock(&sequences.places).taken.is_empty() && sequences.kept.is_empty());
    }

    /// As `gives_way` was before there were orders: a walk over all sessions.
    fn walked(places: &SessionTable, now: Instant, owner: &Owner) -> Option<String> {
        let count = |of: &Owner| places.taken.values().filter(|place| place.owner == *of).count();
        let most = places.taken.values().map(|place| count(&place.owner)).max().unwrap_or_default();
        let then = count(owner) + 1;
        let candidates = places.taken.iter().filter_map(|(id, place)| {
            let theirs = count(&place.owner);
            let (used, heard, _) = age(&place.session, id);
            let quiet = !used || heard.is_none_or(|heard| heard + SILENCE <= now);
            let is = theirs == most || place.owner == *owner;
            let may = match then < most {
                true => theirs == most,
                false => quiet && (then == most || place.owner == *owner),
            };
            (is && may).then_some((used, heard, id.clone()))
        });
        candidates.min().map(|(.., id)| id)
    }

    #[test]
    fn the_orders_find_whom_a_walk_over_all_sessions_finds() {
        let mut places = SessionTable::default();
        let begun = Instant::now();
        let mut state = 7_u64;
        let mut dice = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        let owners: Vec<Owner> = (0..5).map(|number| Owner::named(&number.to_string())).collect();
        for step in 0..(if cfg!(miri) { 150 } else { 3000_u64 }) {
            let now = begun + Duration::from_secs(step);
            let owner = owners[dice(5) as usize].clone();
            match dice(4) {
                0 | 1 if places.taken.len() < 60 => {
                    let mut session = Session::asked(Dialect::WS, true);
                    session.heard = Some(now);
                    let id = format!("{:04}", dice(10_000));
                    let (asked, answers) = (MessageId::Text(id.as_str().into()), Some("urn:one".to_owned()));
                    places.enter(id, owner, Arc::new(Mutex::new(session)), asked, answers);
                }
                2 => {
                    // Something is said in one of them.
                    let at = dice(60) as usize;
                    if let Some(place) = places.taken.values().nth(at) {
                        lock(&place.session).heard = Some(now);
                    }
                }
                _ => {
                    let wanted = walked(&places, now, &owner);
                    assert_eq!(places.gives_way(now, &owner), wanted, "step {step}");
                    if let Some(id) = wanted {
                        places.displace(&id);
                    }
                }
            }
            let all: usize = places.owners.values().map(BTreeSet::len).sum();
            assert_eq!((all, places.ranks.len()), (places.taken.len(), places.owners.len()));
            assert!(places.asked.len() == all && places.answers.len() == all);
        }
        let left: Vec<String> = places.taken.keys().cloned().collect();
        left.iter().for_each(|id| drop(places.leave(id)));
        assert!(places.owners.is_empty() && places.ranks.is_empty() && places.asked.is_empty());
    }
}
