//! Shares: what each source of peers holds of a node, and who makes room when there is too little.
//!
//! A *source* is whoever may be one person: an account, once somebody has proved to be it; else a user of this machine, or an address
//! of the network (of IPv6 a /64, which is what one customer gets). Of each source two things are counted: accepted connections, and the bytes that they hold: half-received
//! messages, requests under way, answers that the peer has not read. A connection that this process made takes no place, and counts
//! with the calls of its peer that wait for servants here, as long as they are many.
//!
//! Who makes room: where memory is short, the connection that holds most of the source that holds most; so callers behind one
//! address translation lose the one among them that is to blame. Where connections are short, of the source with the most of
//! them: the oldest that has not sent a whole message, else the one that has been quiet for long and has no call under way. A
//! source gives up a connection that has been used only to sources that have no more than it has itself.
//!
//! Invariants: `used` is the sum of all weights and of what wires keep beside connections (`beside`); each ordered set has one entry for each source or connection that belongs in it;
//! no look goes over all connections. A connection weighs itself under its own lock, so the lock here is the inner one: nobody
//! takes the lock of a connection while holding this one.

use crate::sync::lock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

/// Bytes that a connection may hold without being told of here, and the step in which more is told.
pub(crate) const GRAIN: usize = 4 << 10;
/// The most sources, and connections, that are looked at for one that can make room: a look costs the same
/// however many there are.
const LOOKS: usize = 16;

/// Whoever may be one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Whoever proved to be an account, by whatever connection; the hash of its name, which nobody can find another name for.
    Account(u64),
    /// A user of this machine.
    User(u32),
    /// An address; of IPv6 the first 64 bits.
    Address(IpAddr),
    /// Somebody of whom the system says nothing.
    Unknown,
}

impl Source {
    /// An account.
    pub(crate) fn account(name: &str) -> Self {
        static KEY: OnceLock<RandomState> = OnceLock::new();
        Self::Account(KEY.get_or_init(RandomState::new).hash_one(name))
    }

    /// The source at this address.
    pub(crate) fn at(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Address(address),
            IpAddr::V6(long) => match long.to_ipv4_mapped() {
                Some(short) => Self::Address(IpAddr::V4(short)),
                None => Self::Address(IpAddr::V6((u128::from(long) >> 64 << 64).into())),
            },
        }
    }
}

/// A connection, as far as it can make room for others.
/// Implemented by connections; a trait, so that shares stand below them. All methods are called without the
/// lock of the shares, since they take the connection's.
pub(crate) trait Tenant: Send + Sync {
    /// Whether nobody misses it for the moment.
    fn is_quiet(&self) -> bool;

    /// When bytes came or went last, of one that is quiet.
    fn used(&self) -> Instant;

    /// It holds most of the memory, which is short: it lets go of some, or ends.
    fn make_room(&self);

    /// Connections are short: it ends in favour of another.
    fn make_way(self: Arc<Self>);
}

/// The shares of one listener, or of all listeners of a node that have no quotas of their own.
pub(crate) struct Shares {
    /// Bytes that all connections may hold together.
    memory: AtomicUsize,
    /// Accepted connections that may be open: the quota, or what there are descriptors for.
    connections: AtomicUsize,
    /// Connections that there are descriptors for.
    descriptors: AtomicUsize,
    /// The sum of all weights, and what wires keep beside them, in bytes. Changed under the lock of the table, read without it.
    used: AtomicUsize,
    /// Bytes that made room since the heaps were given back last.
    freed: AtomicUsize,
    /// The next number of a connection, or of a turn.
    numbers: AtomicU64,
    table: Mutex<Table>,
}

/// All under one lock. The two ordered sets have the sources in the order of what they hold; a source without
/// connections is in neither.
#[derive(Default)]
struct Table {
    members: HashMap<u64, Member>,
    /// Those that have a place.
    placed: usize,
    sources: HashMap<Source, Share>,
    by_bytes: BTreeSet<(usize, Source)>,
    by_connections: BTreeSet<(usize, Source)>,
}

/// A connection.
struct Member {
    source: Source,
    connection: Weak<dyn Tenant>,
    bytes: usize,
    /// Whether it has one of the places: it was accepted.
    placed: bool,
    /// Its place among those of its source: of those that have sent a whole message, once it has.
    turn: u64,
    established: bool,
}

/// What one source holds.
#[derive(Default)]
struct Share {
    connections: usize,
    bytes: usize,
    /// Those that hold something, by how much.
    heavy: BTreeSet<(usize, u64)>,
    /// Those that have not sent a whole message, in the order of coming.
    fresh: BTreeSet<u64>,
    /// The others, in the order in which they were looked at last.
    established: BTreeMap<u64, u64>,
}

impl Shares {
    /// With so many bytes and connections for all.
    pub(crate) fn new(memory: usize, connections: usize) -> Self {
        Self {
            memory: memory.into(),
            connections: AtomicUsize::new(connections),
            descriptors: AtomicUsize::new(usize::MAX),
            used: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
            numbers: AtomicU64::new(1),
            table: Mutex::default(),
        }
    }

    /// A number that no connection had; those that come later have greater ones.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Accepted connections that are open.
    pub(crate) fn open(&self) -> usize {
        lock(&self.table).placed
    }

    /// Accepted connections that may be open.
    pub(crate) fn most(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether no other one may be accepted. So many connections were made for single peers that were accepted (a hop's): each takes
    /// a descriptor, too.
    pub(crate) fn is_full(&self, beside: usize) -> bool {
        let open = self.open();
        open >= self.most() || open.saturating_add(beside) >= self.descriptors.load(Ordering::Relaxed)
    }

    /// The system lets a process have no more than so many connections.
    pub(crate) fn at_most(&self, connections: usize) {
        self.descriptors.fetch_min(connections.max(1), Ordering::Relaxed);
        self.connections.fetch_min(connections.max(1), Ordering::Relaxed);
    }

    /// A connection was accepted.
    pub(crate) fn enter(&self, number: u64, source: Source, connection: Weak<dyn Tenant>) {
        let mut table = lock(&self.table);
        table.placed += 1;
        let member = Member { source, connection, bytes: 0, placed: true, turn: number, established: false };
        table.change(source, |share| share.join(number, &member));
        table.members.insert(number, member);
    }

    /// A connection that was made to this source is to be weighed, and takes no place; it gets a number for that.
    pub(crate) fn attend(&self, source: Source, connection: Weak<dyn Tenant>) -> u64 {
        let number = self.number();
        let member = Member { source, connection, bytes: 0, placed: false, turn: number, established: false };
        lock(&self.table).members.insert(number, member);
        number
    }

    /// The peer of a connection proved who it is: what it holds is that source's from now on.
    pub(crate) fn name(&self, number: u64, source: Source) {
        self.change(number, |member| member.source = source);
    }

    /// A connection has ended. What it holds counts on, until it leaves.
    pub(crate) fn give_up_place(&self, number: u64) {
        let was_placed = self.change(number, |member| std::mem::take(&mut member.placed));
        lock(&self.table).placed -= usize::from(was_placed.unwrap_or_default());
    }

    /// Changes what is known of a connection, and the orders with it.
    fn change<T>(&self, number: u64, change: impl FnOnce(&mut Member) -> T) -> Option<T> {
        let mut table = lock(&self.table);
        let mut member = table.members.remove(&number)?;
        table.change(member.source, |share| share.leave(number, &member));
        let changed = change(&mut member);
        table.change(member.source, |share| share.join(number, &member));
        table.members.insert(number, member);
        Some(changed)
    }

    /// A connection has sent its first whole message.
    pub(crate) fn establish(&self, number: u64) {
        let turn = self.number();
        let table = &mut *lock(&self.table);
        let Some(member) =
            table.members.get_mut(&number).filter(|member| member.placed && !member.established)
        else {
            return;
        };
        (member.established, member.turn) = (true, turn);
        if let Some(share) = table.sources.get_mut(&member.source) {
            share.fresh.remove(&number);
            share.established.insert(turn, number);
        }
    }

    /// A connection holds so many bytes now. Returns whether all together hold more than they may: then the
    /// caller sees to `crate::quotas::Allowance::make_room`, without its lock.
    pub(crate) fn weigh(&self, number: u64, bytes: usize) -> bool {
        let table = &mut *lock(&self.table);
        let Some(member) = table.members.get_mut(&number) else { return false };
        let before = std::mem::replace(&mut member.bytes, bytes);
        let source = member.source;
        table.change(source, |share| share.shift(number, before, bytes));
        if bytes >= before {
            self.used.fetch_add(bytes - before, Ordering::Relaxed) + (bytes - before) > self.memory()
        } else {
            self.used.fetch_sub(before - bytes, Ordering::Relaxed);
            false
        }
    }

    /// So many bytes were made free for others. Returns whether they have become an eighth of all that may be held: then the allocator is to
    /// give back what it keeps of them.
    pub(crate) fn freed(&self, bytes: usize) -> bool {
        let most = self.memory() / 8;
        let before = self.freed.fetch_add(bytes, Ordering::Relaxed);
        let enough = before + bytes >= most;
        if enough {
            self.freed.store(0, Ordering::Relaxed);
        }
        enough
    }

    /// The bytes that may be held.
    pub(crate) fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// So many bytes may be held at least.
    pub(crate) fn allow(&self, bytes: usize) {
        self.memory.fetch_max(bytes, Ordering::Relaxed);
    }

    /// A wire keeps so many bytes beside all connections, and kept `before`. Returns how many it may keep: a quarter of all.
    pub(crate) fn beside(&self, before: usize, now: usize) -> usize {
        let _table = lock(&self.table);
        self.used.store((self.used() + now).saturating_sub(before), Ordering::Relaxed);
        self.memory() / 4
    }

    /// A connection is over, and holds nothing any more.
    pub(crate) fn leave(&self, number: u64) {
        let mut table = lock(&self.table);
        let Some(member) = table.members.remove(&number) else { return };
        table.placed -= usize::from(member.placed);
        self.used.fetch_sub(member.bytes, Ordering::Relaxed);
        table.change(member.source, |share| share.leave(number, &member));
    }

    /// The connection that holds most of the source that holds most.
    pub(crate) fn heaviest(&self) -> Option<Arc<dyn Tenant>> {
        let table = lock(&self.table);
        let (_, source) = table.by_bytes.last()?;
        let (_, number) = table.sources.get(source)?.heavy.last()?;
        table.members.get(number)?.connection.upgrade()
    }

    /// The oldest connection that has not sent a whole message yet, of the source with the most that has one to give up for a newcomer
    /// of this source: one that came before this number, or a later one if the source has more than the newcomer's will have. So
    /// those of a crowd that come at one time do not end each other, but make way for others.
    pub(crate) fn oldest_fresh(&self, newcomer: Source, before: u64) -> Option<Arc<dyn Tenant>> {
        let table = lock(&self.table);
        let most = match newcomer {
            // It may be nobody: where descriptors are short, that is said before it is seen whether anybody waits.
            Source::Unknown => usize::MAX,
            _ => table.sources.get(&newcomer).map_or(0, |share| share.connections) + 1,
        };
        let found = table.by_connections.iter().rev().take(LOOKS).find_map(|(count, source)| {
            let first = table.sources.get(source)?.fresh.first()?;
            (*first < before || *count > most).then_some(first)
        })?;
        table.members.get(found)?.connection.upgrade()
    }

    /// Connections that may have been quiet for long, for a newcomer of this source: those of one source together, that with the
    /// most first. Whoever calls looks whether they have been quiet; each is the last to be looked at again.
    pub(crate) fn maybe_quiet(&self, newcomer: Source) -> Vec<Vec<Arc<dyn Tenant>>> {
        let mut found = Vec::new();
        let mut left = LOOKS;
        let table = &mut *lock(&self.table);
        let poor = table.sources.get(&newcomer).map_or(0, |share| share.connections);
        let rich: Vec<_> = table.by_connections.iter().rev().take(LOOKS).copied().collect();
        for (count, source) in rich {
            let Some(share) = table.sources.get_mut(&source) else { continue };
            if count < poor {
                break;
            }
            let looks = share.established.len().min(left);
            left -= looks;
            let mut own = Vec::with_capacity(looks);
            for _ in 0..looks {
                let Some((_, number)) = share.established.pop_first() else { break };
                let turn = self.number();
                share.established.insert(turn, number);
                if let Some(member) = table.members.get_mut(&number) {
                    member.turn = turn;
                    own.extend(member.connection.upgrade());
                }
            }
            found.push(own);
        }
        found
    }
}

impl Table {
    /// Changes what a source holds, and its places in the orders with it.
    fn change(&mut self, source: Source, change: impl FnOnce(&mut Share)) {
        let share = self.sources.entry(source).or_default();
        let before = (share.bytes, share.connections);
        change(share);
        let after = (share.bytes, share.connections);
        if before.0 != after.0 {
            self.by_bytes.remove(&(before.0, source));
            if after.0 > 0 {
                self.by_bytes.insert((after.0, source));
            }
        }
        if before.1 != after.1 {
            self.by_connections.remove(&(before.1, source));
            if after.1 > 0 {
                self.by_connections.insert((after.1, source));
            }
        }
        if after == (0, 0) {
            self.sources.remove(&source);
        }
    }
}

impl Share {
    /// A connection counts here no longer.
    fn leave(&mut self, number: u64, member: &Member) {
        self.shift(number, member.bytes, 0);
        if !member.placed {
            return;
        }
        self.connections -= 1;
        self.fresh.remove(&number);
        self.established.remove(&member.turn);
    }

    /// A connection comes, with what it holds.
    fn join(&mut self, number: u64, member: &Member) {
        self.shift(number, 0, member.bytes);
        if !member.placed {
            return;
        }
        self.connections += 1;
        if member.established {
            self.established.insert(member.turn, number);
        } else {
            self.fresh.insert(number);
        }
    }

    /// One of its connections holds `after` bytes, and held `before`.
    fn shift(&mut self, number: u64, before: usize, after: usize) {
        self.heavy.remove(&(before, number));
        if after > 0 {
            self.heavy.insert((after, number));
        }
        self.bytes = self.bytes - before + after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn source(last: u8) -> Source {
        Source::at(Ipv4Addr::new(10, 0, 0, last).into())
    }

    struct NullServant;

    impl Tenant for NullServant {
        fn is_quiet(&self) -> bool {
            true
        }

        fn used(&self) -> Instant {
            Instant::now()
        }

        fn make_room(&self) {}

        fn make_way(self: Arc<Self>) {}
    }

    fn nobody() -> Weak<dyn Tenant> {
        Weak::<NullServant>::new()
    }

    /// A hop has a connection to its target for each of its callers: both take a descriptor, and one a place of the quota.
    #[test]
    fn connections_beside_take_descriptors_and_no_places() {
        let shares = Shares::new(1 << 20, 3);
        (1..=2).for_each(|number| shares.enter(number, source(1), nobody()));
        assert!(!shares.is_full(1_000_000), "nobody knows of a limit");
        shares.at_most(5);
        assert!(!shares.is_full(2) && shares.is_full(3));
        shares.enter(3, source(1), nobody());
        assert!(shares.is_full(0));
    }

    /// Numbers of the table, as nothing is connected here.
    impl Shares {
        fn heaviest_number(&self) -> Option<u64> {
            let table = lock(&self.table);
            let (_, source) = table.by_bytes.last()?;
            table.sources.get(source)?.heavy.last().map(|(_, number)| *number)
        }

        fn is_empty(&self) -> bool {
            let table = lock(&self.table);
            let orders = table.by_bytes.is_empty() && table.by_connections.is_empty();
            orders && table.members.is_empty() && table.sources.is_empty() && self.used() == 0
        }
    }

    #[test]
    fn the_source_that_holds_most_gives_up_its_largest() {
        let shares = Shares::new(1000, 10);
        for (number, last) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
            shares.enter(number, source(last), nobody());
        }
        assert!(!shares.weigh(1, 400));
        assert!(!shares.weigh(2, 200));
        assert!(!shares.weigh(3, 250));
        assert_eq!(shares.heaviest_number(), Some(3), "450 bytes of the second source, 400 of the first");
        assert!(shares.weigh(4, 200), "1050 bytes are more than 1000");
        shares.leave(3);
        assert_eq!((shares.used(), shares.heaviest_number()), (800, Some(4)));
        assert!(!shares.weigh(4, 100));
        assert_eq!(shares.heaviest_number(), Some(1));
        for number in [1, 2, 4] {
            shares.leave(number);
            shares.leave(number);
        }
        assert!(shares.is_empty());
    }

    #[test]
    fn a_crowd_that_has_just_come_makes_way_before_a_source_with_fewer() {
        let shares = Shares::new(1000, 5);
        let (alone, crowd) = (Arc::new(NullServant), Arc::new(NullServant));
        let is = |found: Option<Arc<dyn Tenant>>, who: &Arc<NullServant>| {
            found.is_some_and(|found| std::ptr::addr_eq(Arc::as_ptr(&found), Arc::as_ptr(who)))
        };
        let weakly = |who: &Arc<NullServant>| Arc::downgrade(who) as Weak<dyn Tenant>;
        shares.enter(1, source(2), weakly(&alone));
        let before = 2;
        (3..7).for_each(|number| shares.enter(number, source(1), weakly(&crowd)));
        assert!(is(shares.oldest_fresh(source(3), before), &crowd), "somebody else needs a place");
        assert!(
            is(shares.oldest_fresh(source(1), before), &alone),
            "the crowd does not end what came with it"
        );
        assert!(is(shares.oldest_fresh(Source::Unknown, before), &alone), "perhaps nobody needs a place");
    }

    #[test]
    fn a_connection_that_was_made_counts_with_its_bytes_and_takes_no_place() {
        let shares = Shares::new(1000, 1);
        let accepted = shares.number();
        shares.enter(accepted, source(1), nobody());
        shares.weigh(accepted, 300);
        let made = shares.attend(source(2), nobody());
        assert_eq!(shares.open(), 1);
        assert!(shares.weigh(made, 800), "1100 bytes are more than 1000");
        assert_eq!(shares.heaviest_number(), Some(made));
        assert!(
            shares.oldest_fresh(source(3), u64::MAX).is_none(),
            "the accepted one is nobody, the other no newcomer"
        );
        assert!(!shares.weigh(made, 0));
        assert!(!shares.weigh(made, 200));
        for number in [made, accepted] {
            shares.leave(number);
        }
        assert!(shares.is_empty() && shares.open() == 0);
    }

    #[test]
    fn addresses_of_one_customer_are_one_source() {
        let long = |text: &str| Source::at(text.parse().unwrap());
        assert_eq!(long("2001:db8::1"), long("2001:db8::ffff:1"));
        assert_ne!(long("2001:db8::1"), long("2001:db8:0:1::1"));
        assert_eq!(long("::ffff:10.0.0.7"), source(7));
    }

    #[test]
    fn what_an_account_holds_is_its_own_wherever_it_comes_from() {
        let shares = Shares::new(1000, 10);
        for (number, last) in [(1, 1), (2, 1), (3, 2)] {
            shares.enter(number, source(last), nobody());
        }
        shares.establish(1);
        shares.weigh(1, 300);
        shares.weigh(2, 200);
        shares.weigh(3, 250);
        assert_eq!(shares.heaviest_number(), Some(1), "two of one address");
        let (ann, bob) = (Source::account("ann"), Source::account("bob"));
        assert_ne!(ann, bob);
        shares.name(1, bob);
        shares.name(2, ann);
        shares.name(3, ann);
        shares.name(3, ann);
        assert_eq!(shares.heaviest_number(), Some(3), "450 bytes of one account, 300 of the other");
        shares.name(9, bob);
        assert_eq!(shares.used(), 750);
        for number in [1, 2, 3] {
            shares.leave(number);
        }
        assert!(shares.is_empty());
    }

    #[test]
    fn what_comes_and_goes_leaves_nothing() {
        let shares = Shares::new(1 << 20, 10);
        for round in 0..1000 {
            let number = shares.number();
            shares.enter(number, source(u8::try_from(round % 7).unwrap()), nobody());
            if round % 2 == 0 {
                shares.establish(number);
            }
            shares.weigh(number, round);
            assert!(shares.maybe_quiet(source(1)).iter().all(Vec::is_empty));
            shares.leave(number);
        }
        assert!(shares.is_empty());
    }
}
