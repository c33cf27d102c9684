//! The engine: a source's items in use, and when which group is to be updated. Without I/O and threads; time
//! is told.
//!
//! States. It holds three tables and nothing else that changes but counters: the cells of items that some
//! group has, the groups that are due and when, and, held by others, its clients.
//!
//! Invariants.
//! * A cell stands for an item as long as a group has it (`crate::cell`). The table holds it weakly, and
//!   forgets it when the last group lets go; if another group takes the item at that moment, its new cell
//!   stays.
//! * A group is in the schedule exactly while it is active, enabled and heard by somebody, but for the time
//!   from `due` to the end of its update. Whoever drives the engine asks for what is due, has those groups
//!   updated (`crate::Group::update`), and sleeps until the next is due, or until the waker says that one is
//!   due earlier.
//! * Handles of groups and items come from one counter of 32 bits, so one of another group is not taken for
//!   one's own. When the counter begins anew, those that are in use are passed over: of groups in the whole
//!   engine, of items in their group.
//! * The source is never asked under a lock of the engine.
//!
//! Bounds. `Quotas`: what a client may hold, how many clients there may be, and of one account no more than places
//! are left; what goes beyond is `Code::OUT_OF_MEMORY`.

use crate::Code;
use crate::cell::Cell;
use crate::client::Client;
use crate::group::Group;
use crate::item::Item;
use crate::share::Usage;
use crate::source::{Feed, Source};
use crate::sync::lock;
use crate::time::{FileTime, Moment};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// What a client may hold. What goes beyond is refused with [`Code::OUT_OF_MEMORY`]. Of items and bytes there are four times as many
/// for all clients together: a client may hold no more than the others leave, or its part of that, divided by `clients`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Groups of a client.
    pub groups: usize,
    /// Items in all groups of a client.
    pub items: usize,
    /// Bytes of names and values that are kept for a client.
    pub bytes: usize,
    /// Asynchronous calls of a group that wait to be begun.
    pub pending: usize,
    /// Samples in the buffer of an item.
    pub buffer: usize,
    /// Bytes of texts and arrays in one answer, or in one update.
    pub answer: usize,
    /// Enumerators that a client has not released.
    pub enumerators: usize,
    /// Clients at one time. An account has no more of them than are left, so one alone has half.
    pub clients: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            groups: 1024,
            items: 500_000,
            bytes: 256 << 20,
            pending: 64,
            buffer: 100,
            answer: 16 << 20,
            enumerators: 1024,
            clients: 1024,
        }
    }
}

/// How an engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The fastest update rate in milliseconds; others are multiples of it.
    pub fastest: u32,
    /// What a client may hold.
    pub quotas: Quotas,
}

impl Default for Settings {
    fn default() -> Self {
        Self { fastest: 10, quotas: Quotas::default() }
    }
}

/// Clients that there are.
#[derive(Default)]
struct Clients {
    all: usize,
    /// Those of each account that has any.
    of: HashMap<Arc<str>, usize>,
}

/// Called when a group is due earlier than was known before.
type Waker = dyn Fn() + Send + Sync;

/// Groups and items over a source.
pub struct Engine {
    /// Where items and values come from.
    pub(crate) source: Arc<dyn Source>,
    /// As they were when the engine was made.
    pub(crate) settings: Settings,
    /// Itself, for cells and clients.
    weak: Weak<Self>,
    /// The cell of each item that some group has, by the item's id. Cells are owned by the members of groups.
    cells: Mutex<HashMap<String, Weak<Cell>>>,
    /// When which group is due.
    schedule: Mutex<Schedule>,
    /// The next number for a group or an item.
    next_handle: AtomicU32,
    /// The handles of all groups, until they are dropped.
    groups: Mutex<HashSet<u32>>,
    /// How many clients there are, against the quota, and of whom.
    clients: Mutex<Clients>,
    /// What they hold.
    pub(crate) held: Arc<Usage>,
    /// When values were last sent, in units of `FileTime`.
    last_update: AtomicU64,
    /// The driver's, told outside the lock of the schedule.
    waker: OnceLock<Box<Waker>>,
}

/// Groups by the time when they are due, and by handle.
#[derive(Default)]
struct Schedule {
    /// When, and which: the first is due first.
    due: BTreeSet<(u64, u32)>,
    /// The same by handle, so that a group can be moved. A handle is in both or in neither.
    groups: HashMap<u32, (u64, Weak<Group>)>,
}

impl Engine {
    /// An engine over a source.
    #[must_use]
    pub fn new(source: Arc<dyn Source>, settings: Settings) -> Arc<Self> {
        Arc::new_cyclic(|weak| Self {
            source,
            settings,
            weak: weak.clone(),
            cells: Mutex::default(),
            schedule: Mutex::default(),
            next_handle: AtomicU32::new(1),
            groups: Mutex::default(),
            clients: Mutex::default(),
            held: Arc::default(),
            last_update: AtomicU64::new(0),
            waker: OnceLock::new(),
        })
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// A client: what an object of a server is for whoever asked for it.
    ///
    /// # Errors
    /// [`Code::OUT_OF_MEMORY`]: there are as many as the quota allows.
    pub fn client(&self) -> Result<Arc<Client>, Code> {
        self.client_of(None)
    }

    /// A client of this account. Nobody gets another place who has as many as are left: so one account can take half of them, the next
    /// one half of the rest, and whoever has none gets one as long as there is any.
    ///
    /// # Errors
    /// [`Code::OUT_OF_MEMORY`]: there are as many as the quota allows, or the account has as many as are left.
    pub fn client_of(&self, account: Option<&Arc<str>>) -> Result<Arc<Client>, Code> {
        let engine = self.weak.upgrade().ok_or(Code::FAIL)?;
        {
            let mut clients = lock(&self.clients);
            let left = self.settings.quotas.clients.saturating_sub(clients.all);
            let own = account.and_then(|account| clients.of.get(account)).copied().unwrap_or_default();
            if own >= left {
                return Err(Code::OUT_OF_MEMORY);
            }
            clients.all += 1;
            if let Some(account) = account {
                *clients.of.entry(Arc::clone(account)).or_default() += 1;
            }
        }
        Ok(Client::new(engine, account.cloned()))
    }

    /// How many clients there are.
    #[must_use]
    pub fn clients(&self) -> usize {
        lock(&self.clients).all
    }

    /// A client was dropped: its place is free.
    pub(crate) fn client_left(&self, account: Option<&Arc<str>>) {
        let mut clients = lock(&self.clients);
        clients.all -= 1;
        let Some(account) = account else { return };
        if let Some(own) = clients.of.get_mut(account) {
            *own -= 1;
            if *own == 0 {
                clients.of.remove(account);
            }
        }
    }

    /// Items that some group has.
    #[must_use]
    pub fn items_in_use(&self) -> usize {
        lock(&self.cells).len()
    }

    /// Called, on any thread, when a group is due earlier than [`Engine::next_due`] said. Only the first one counts.
    pub fn on_earlier(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A second driver would update the same groups.
        let _ = self.waker.set(Box::new(wake));
    }

    /// When the next group is due, in ticks of [`Moment`].
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        lock(&self.schedule).due.first().map(|(due, _)| *due)
    }

    /// The groups that are due, earliest first. Each is to be updated, which puts it into the schedule again.
    #[must_use]
    pub fn due(&self, now: Moment) -> Vec<Arc<Group>> {
        let mut found = Vec::new();
        let mut schedule = lock(&self.schedule);
        while let Some((due, handle)) = schedule.due.first().copied().filter(|(due, _)| *due <= now.ticks) {
            schedule.due.remove(&(due, handle));
            found.extend(schedule.groups.remove(&handle).and_then(|(_, group)| group.upgrade()));
        }
        found
    }

    /// When values were last sent to anybody.
    #[must_use]
    pub fn last_update(&self) -> FileTime {
        FileTime(self.last_update.load(Ordering::Relaxed))
    }

    /// Values were sent at this time; an earlier one changes nothing.
    pub(crate) fn updated(&self, time: FileTime) {
        self.last_update.fetch_max(time.0, Ordering::Relaxed);
    }

    /// Puts a group into the schedule, or takes it out.
    pub(crate) fn schedule(&self, group: &Arc<Group>, due: Option<u64>) {
        let handle = group.server_handle();
        let is_earlier = {
            let mut schedule = lock(&self.schedule);
            if let Some((before, _)) = schedule.groups.remove(&handle) {
                schedule.due.remove(&(before, handle));
            }
            let Some(due) = due else { return };
            let is_earlier = schedule.due.first().is_none_or(|(first, _)| due < *first);
            schedule.due.insert((due, handle));
            schedule.groups.insert(handle, (due, Arc::downgrade(group)));
            is_earlier
        };
        if let Some(wake) = self.waker.get().filter(|_| is_earlier) {
            wake();
        }
    }

    /// A handle that is not in use; 0 is none.
    pub(crate) fn fresh_handle(&self, is_used: impl Fn(u32) -> bool) -> u32 {
        loop {
            let next = self.next_handle.fetch_add(1, Ordering::Relaxed);
            if next != 0 && !is_used(next) {
                return next;
            }
        }
    }

    /// A handle for a group, which no other has until [`Engine::group_left`].
    pub(crate) fn group_handle(&self) -> u32 {
        let mut groups = lock(&self.groups);
        let handle = self.fresh_handle(|handle| groups.contains(&handle));
        groups.insert(handle);
        handle
    }

    /// A group was dropped: its handle may be given out anew.
    pub(crate) fn group_left(&self, handle: u32) {
        lock(&self.groups).remove(&handle);
    }

    /// The cell of an item: the one in use, or a new one that the source is asked to fill.
    pub(crate) fn cell(&self, item: &Arc<Item>, now: FileTime) -> Arc<Cell> {
        let cell = {
            let mut cells = lock(&self.cells);
            match cells.get(&item.id).and_then(Weak::upgrade) {
                Some(cell) => cell,
                None => {
                    let cell = Arc::new(Cell::new(Arc::clone(item), self.weak.clone(), now));
                    cells.insert(item.id.clone(), Arc::downgrade(&cell));
                    cell
                }
            }
        };
        // Not under the lock: the source may tell a value at once.
        cell.begin(|| self.source.watch(&cell.item, Feed(Arc::downgrade(&cell))));
        cell
    }

    /// The cell of an item that some group has.
    pub(crate) fn held(&self, id: &str) -> Option<Arc<Cell>> {
        lock(&self.cells).get(id).and_then(Weak::upgrade)
    }

    /// A cell is no more.
    pub(crate) fn forget(&self, id: &str) {
        let mut cells = lock(&self.cells);
        // Somebody may have made another one meanwhile.
        if cells.get(id).is_some_and(|cell| cell.strong_count() == 0) {
            cells.remove(id);
        }
    }

    /// The update rate that is used where another one is asked for.
    #[must_use]
    pub fn revised(&self, rate: u32) -> u32 {
        let fastest = self.settings.fastest.max(1);
        rate.max(fastest).div_ceil(fastest).saturating_mul(fastest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupState, Item, ItemDef, Table, VarType};

    #[test]
    fn numbers_that_begin_anew_are_not_those_that_somebody_has() {
        let table = Table::new();
        table.extend([(Item::new("a", VarType::I4), crate::Data::I4(1))]);
        let engine = Engine::new(Arc::new(table), Settings::default());
        let client = engine.client().expect("a client");
        let group =
            |name: &str| client.add_group(GroupState { name: name.to_owned(), ..GroupState::default() });
        let first = group("first").expect("a group");
        let add = || {
            let defs = vec![ItemDef { id: "a".to_owned(), ..ItemDef::default() }; 2];
            let added = first.add_items(&defs, Moment::default()).expect("it lives");
            added.into_iter().map(|added| added.expect("an item").server).collect::<Vec<_>>()
        };
        let mut items = add();
        engine.next_handle.store(u32::MAX, Ordering::Relaxed);
        let second = group("second").expect("a group");
        let third = group("third").expect("a group");
        items.extend(add());
        let groups = [&first, &second, &third].map(|group| group.server_handle());
        for mut numbers in [items, groups.to_vec()] {
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert!(numbers.len() == all && !numbers.contains(&0), "{numbers:?}");
        }
        assert_eq!(client.groups().len(), 3);
    }
}
