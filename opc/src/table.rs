//! A source for values that the program has in its own hands: items by name, values that it sets, writes that
//! it hears of.
//!
//! What there is. The `Tree` has one `Row` for each item, by the item's name; a row has its value and those
//! who hear of it (`Feed`). Branches are not kept: a branch is there exactly while some name begins with it.
//! Items are added, never removed. A name has one row for good, since groups and points hold on to it: an
//! item that is added again changes what is in the row.
//!
//! Invariants.
//! * A point parts a name where something else than a point stands on both of its sides; other points belong to the part they stand
//!   in. So no part is empty, and the root, which has no name, is beneath nothing.
//! * The tree of names is copied when items are added while somebody walks it, so that each walk sees one
//!   state of it.
//! * A value is told to its feeds under the lock of its row, so they hear of values in the order in which
//!   they were set, and one that begins to listen hears the last value first. A feed sets a cell and no more.
//! * No lock is held while the program's own writer runs; two writes of one item at once may be heard in
//!   another order than they are kept.
//! * A feed that nobody wants any more is let go of at the next value, or by the next that comes.
//!
//! Bounds. None of its own: it holds as much as the program puts in. A name with a NUL is not taken, since
//! names on the wire end there.

use crate::data::{Data, Vqt};
use crate::item::Item;
use crate::source::{Child, Children, Feed, ServerState, Source, Write};
use crate::sync::lock;
use crate::{Code, FileTime, Quality};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Items with their values. Names are parted by points into branches: `Plant.Boiler.Temperature`. A point at the begin or the end of a
/// name or beside another point parts nothing: `.a` and `a..b` are names without branches.
///
/// ```
/// use everywire_opc::{Item, Table, VarType};
///
/// let table = Table::new();
/// table.add(Item::new("Plant.Boiler.Temperature", VarType::R4).analog(0.0, 200.0, "°C"), 20.0_f32);
/// table.set("Plant.Boiler.Temperature", 21.5_f32).expect("it is there");
/// ```
#[derive(Default)]
pub struct Table {
    /// The rows by name. Copied when it is changed while somebody walks it.
    tree: RwLock<Arc<Tree>>,
    /// The program's own writer.
    on_write: Mutex<Option<Arc<Writer>>>,
    /// How it is, as `ServerState`.
    state: AtomicU8,
    /// Whether points in names mean nothing.
    is_flat: bool,
}

/// By name, with [`PART`] for points that part names: so what is beneath a branch comes directly behind it, whatever other names begin with.
type Tree = BTreeMap<String, Arc<Row>>;
/// Less than any character that a name can have.
const PART: &str = "\0";
/// Hears of writes of clients.
type Writer = dyn Fn(&Write) -> Code + Send + Sync;

/// An item of a table, for whoever sets it often: no name is looked for.
#[derive(Clone)]
pub struct Point(Arc<Row>);

impl Point {
    /// The item has a new value, of good quality, now.
    pub fn set(&self, value: impl Into<Data>) {
        self.put(Vqt::good(value, FileTime::now()));
    }

    /// The item has a new value, quality and time.
    pub fn put(&self, value: Vqt) {
        self.0.put(value);
    }
}

/// An item and its value.
struct Row {
    held: Mutex<ItemState>,
}

/// What of an item changes.
struct ItemState {
    /// As it was described last.
    item: Arc<Item>,
    /// The last value.
    value: Vqt,
    /// Cells that are told of each.
    feeds: Vec<Feed>,
}

impl Table {
    /// Without items.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Without items, and without branches: points in names mean nothing.
    #[must_use]
    pub fn flat() -> Self {
        Self { is_flat: true, ..Self::default() }
    }

    /// Adds an item with its first value, of good quality, now. An item that is there already is described anew, and whoever has it in a
    /// group hears of the value.
    pub fn add(&self, item: Item, value: impl Into<Data>) {
        self.extend([(item, value.into())]);
    }

    /// Adds many items, each as [`Table::add`] does. One whose name has a NUL is left out: names on the wire end there, so nobody could
    /// ask for it.
    pub fn extend(&self, items: impl IntoIterator<Item = (Item, Data)>) {
        let now = FileTime::now();
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        // Whoever browses meanwhile goes on in what was.
        let tree = Arc::make_mut(&mut tree);
        for (item, data) in items.into_iter().filter(|(item, _)| !item.id.contains(PART)) {
            let (key, item, value) = (self.key(&item.id), Arc::new(item), Vqt::good(data, now));
            match tree.entry(key) {
                // Whoever has the item in a group asks no second time to be told: the row keeps its feeds.
                Entry::Occupied(row) => row.get().describe(item, value),
                Entry::Vacant(place) => {
                    let held = Mutex::new(ItemState { item, value, feeds: Vec::new() });
                    place.insert(Arc::new(Row { held }));
                }
            }
        }
    }

    /// An item that is there is described anew; its value stays as it is.
    ///
    /// # Errors
    /// [`Code::UNKNOWN_ITEM`].
    pub fn describe(&self, item: Item) -> Result<(), Code> {
        let row = self.row(&item.id).ok_or(Code::UNKNOWN_ITEM)?;
        lock(&row.held).describe(Arc::new(item));
        Ok(())
    }

    /// Hears of each write of a client, and says how it went; a value that was taken becomes the item's. Without it, writes
    /// are taken as they are.
    pub fn on_write(&self, writer: impl Fn(&Write) -> Code + Send + Sync + 'static) {
        *lock(&self.on_write) = Some(Arc::new(writer));
    }

    /// The item has a new value, of good quality, now.
    ///
    /// # Errors
    /// [`Code::UNKNOWN_ITEM`].
    pub fn set(&self, id: &str, value: impl Into<Data>) -> Result<(), Code> {
        self.put(id, Vqt::good(value, FileTime::now()))
    }

    /// The item has a new value, quality and time.
    ///
    /// # Errors
    /// [`Code::UNKNOWN_ITEM`].
    pub fn put(&self, id: &str, value: Vqt) -> Result<(), Code> {
        self.row(id).ok_or(Code::UNKNOWN_ITEM)?.put(value);
        Ok(())
    }

    /// The value that an item has.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Vqt> {
        self.row(id).map(|row| lock(&row.held).value.clone())
    }

    /// How it is, for GetStatus.
    pub fn set_state(&self, state: ServerState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// The tree as it is now.
    fn tree(&self) -> Arc<Tree> {
        Arc::clone(&self.tree.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The item of this name, to set it often.
    #[must_use]
    pub fn point(&self, id: &str) -> Option<Point> {
        self.row(id).map(Point)
    }

    /// The key of a name: with `PART` for points that part names, unless there are no branches.
    fn key(&self, id: &str) -> String {
        if self.is_flat {
            return id.to_owned();
        }
        let is_name =
            |at: Option<usize>| at.and_then(|at| id.as_bytes().get(at)).is_some_and(|sign| *sign != b'.');
        let parts = |at: usize| is_name(at.checked_sub(1)) && is_name(at.checked_add(1));
        let mut key = String::with_capacity(id.len());
        for (at, sign) in id.char_indices() {
            if sign == '.' && parts(at) { key.push_str(PART) } else { key.push(sign) }
        }
        key
    }

    fn row(&self, id: &str) -> Option<Arc<Row>> {
        if id.contains(PART) {
            // It would be taken for the name that has points there.
            return None;
        }
        let key = self.key(id);
        self.tree.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

impl Row {
    /// Sets the value, and tells it.
    fn put(&self, value: Vqt) {
        lock(&self.held).put(value);
    }

    /// Sets what a client writes: without a value, the one that is there stays, and its quality unless that is written.
    fn write(&self, write: &Write) {
        let mut held = lock(&self.held);
        let (data, quality) = match &write.data {
            Data::Empty => (held.value.data.clone(), held.value.quality),
            data => (data.clone(), Quality::GOOD),
        };
        held.put(Vqt {
            data,
            quality: write.quality.unwrap_or(quality),
            time: write.time.unwrap_or_else(FileTime::now),
        });
    }

    /// The item is another one from now on, with this value.
    fn describe(&self, item: Arc<Item>, value: Vqt) {
        let mut held = lock(&self.held);
        held.describe(item);
        held.put(value);
    }

    fn item(&self) -> Arc<Item> {
        Arc::clone(&lock(&self.held).item)
    }
}

impl ItemState {
    fn describe(&mut self, item: Arc<Item>) {
        self.feeds.retain(|feed| feed.describe(&item));
        self.item = item;
    }

    fn put(&mut self, value: Vqt) {
        self.feeds.retain(|feed| feed.tell(value.clone()));
        self.value = value;
    }
}

impl Source for Table {
    fn find(&self, id: &str) -> Option<Arc<Item>> {
        self.row(id).map(|row| row.item())
    }

    fn current(&self, item: &Arc<Item>) -> Arc<Item> {
        self.find(&item.id).unwrap_or_else(|| Arc::clone(item))
    }

    fn children(&self, branch: &str, after: Option<&str>) -> Option<Children> {
        let tree = self.tree();
        let prefix = match branch {
            "" => String::new(),
            branch if self.is_flat || branch.contains(PART) => return None,
            branch => self.key(branch) + PART,
        };
        if !prefix.is_empty() && !has_beneath(&tree, &prefix) {
            return None;
        }
        let next = match after {
            None => Bound::Included(prefix.clone()),
            Some(name) => past(&format!("{prefix}{name}"), self.is_flat),
        };
        Some(Box::new(Walk { tree, prefix, next, is_flat: self.is_flat }))
    }

    fn parent(&self, branch: &str) -> Option<String> {
        if branch.is_empty() {
            return None;
        }
        let key = self.key(branch);
        Some(key.rsplit_once(PART).map_or_else(String::new, |(above, _)| above.replace(PART, ".")))
    }

    fn child(&self, branch: &str, name: &str) -> Option<Child> {
        if self.is_flat {
            let item = (branch.is_empty() && self.row(name).is_some()).then(|| name.to_owned())?;
            return Some(Child { name: name.to_owned(), branch: None, item: Some(item) });
        }
        if name.contains(PART) || branch.contains(PART) {
            return None;
        }
        let key = if branch.is_empty() { name.to_owned() } else { self.key(branch) + PART + name };
        let tree = self.tree();
        let item = tree.get(&key).map(|row| row.item().id.clone());
        let branch = has_beneath(&tree, &format!("{key}{PART}")).then(|| key.replace(PART, "."));
        (branch.is_some() || item.is_some()).then(|| Child { name: name.to_owned(), branch, item })
    }

    fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
        items.iter().map(|item| self.get(&item.id).ok_or(Code::UNKNOWN_ITEM)).collect()
    }

    fn write(&self, writes: &[Write]) -> Vec<Code> {
        let writer = lock(&self.on_write).clone();
        let one = |write: &Write| {
            let Some(row) = self.row(&write.item.id) else { return Code::UNKNOWN_ITEM };
            let code = writer.as_ref().map_or(Code::OK, |writer| writer(write));
            // What was limited is the writer's to set.
            if code == Code::OK {
                row.write(write);
            }
            code
        };
        writes.iter().map(one).collect()
    }

    fn watch(&self, item: &Arc<Item>, feed: Feed) -> bool {
        let Some(row) = self.row(&item.id) else { return false };
        let mut held = lock(&row.held);
        // It may have been described anew since it was looked for.
        feed.describe(&held.item);
        feed.tell(held.value.clone());
        held.feeds.retain(Feed::is_wanted);
        held.feeds.push(feed);
        true
    }

    fn is_hierarchical(&self) -> bool {
        !self.is_flat
    }

    fn state(&self) -> ServerState {
        const STATES: [ServerState; 6] = [
            ServerState::Running,
            ServerState::Failed,
            ServerState::NoConfig,
            ServerState::Suspended,
            ServerState::Test,
            ServerState::CommFault,
        ];
        STATES.get(usize::from(self.state.load(Ordering::Relaxed))).copied().unwrap_or_default()
    }
}

/// Whether any name begins so.
fn has_beneath(tree: &Tree, prefix: &str) -> bool {
    let from = (Bound::Included(prefix), Bound::Unbounded);
    tree.range::<str, _>(from).next().is_some_and(|(key, _)| key.starts_with(prefix))
}

/// Behind a name and all that is beneath it.
fn past(path: &str, is_flat: bool) -> Bound<String> {
    if is_flat { Bound::Excluded(path.to_owned()) } else { Bound::Included(format!("{path}\u{1}")) }
}

/// The children of a branch, each found where the one before ends.
struct Walk {
    /// The tree as it was when the walk began.
    tree: Arc<Tree>,
    /// What the keys of all children begin with.
    prefix: String,
    /// Where the next child is looked for.
    next: Bound<String>,
    /// Whether there are no branches.
    is_flat: bool,
}

impl Iterator for Walk {
    type Item = Child;

    fn next(&mut self) -> Option<Child> {
        let (key, row) = self.tree.range((self.next.clone(), Bound::Unbounded)).next()?;
        let rest = key.strip_prefix(&self.prefix)?;
        if self.is_flat {
            self.next = past(key, true);
            return Some(Child { name: rest.to_owned(), branch: None, item: Some(row.item().id.clone()) });
        }
        let name = rest.split(PART).next().unwrap_or(rest);
        let path = format!("{}{name}", self.prefix);
        let is_item = key.len() == path.len();
        let is_branch = !is_item || has_beneath(&self.tree, &format!("{path}{PART}"));
        let child = Child {
            name: name.to_owned(),
            branch: is_branch.then(|| path.replace(PART, ".")),
            item: is_item.then(|| row.item().id.clone()),
        };
        self.next = past(&path, false);
        Some(child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VarType;
    use crate::browse::{Filter, Kind, Position};

    #[test]
    fn points_without_a_name_on_both_sides_make_no_branches() {
        let ids = [".", "..", ".B", "B.", "C.D", "C.D.", "C..D", "C.D..E.F", "C.D..E", ".B.x", "G.H"];
        let table = Table::new();
        for id in ids {
            table.add(Item::new(id, VarType::I2), 1_i16);
        }
        let source: Arc<dyn Source> = Arc::new(table);
        // Each item is found once, at the root or by its branches.
        let most = ids.len() + 1;
        let all = Filter::new("", VarType::EMPTY, 0).unwrap();
        let mut found: Vec<_> =
            Position::default().names(&source, Kind::Flat, all).unwrap().take(most).collect();
        found.sort_unstable();
        let mut sorted = ids;
        sorted.sort_unstable();
        assert_eq!(found, sorted);
        let mut branches = vec![String::new()];
        let mut walked = 0;
        while let Some(branch) = branches.pop() {
            for child in source.children(&branch, None).unwrap().take(most) {
                assert_eq!(source.child(&branch, &child.name).as_ref(), Some(&child), "{branch:?}");
                walked += usize::from(child.item.is_some());
                if let Some(inner) = child.branch {
                    assert_eq!(source.parent(&inner).as_deref(), Some(&*branch), "{inner:?}");
                    branches.push(inner);
                }
            }
        }
        assert_eq!(walked, ids.len());
        let names = |branch: &str| -> Vec<_> {
            source.children(branch, None).unwrap().map(|child| child.name).collect()
        };
        assert_eq!(names(""), [".", "..", ".B", "B.", "C", "C..D", "G"]);
        assert_eq!(names("C"), ["D", "D.", "D..E"]);
        assert!(source.child("", "C.D").is_none() && source.child("", "").is_none());
        assert!(source.children("C.", None).is_none());
    }
}
