//! What whoever has data implements: one trait, of which five methods are needed. All else of OPC is the server's.

use crate::cell::Cell;
use crate::data::{Data, Vqt};
use crate::item::Item;
use crate::{Code, FileTime, Quality};
use std::sync::{Arc, Weak};

/// How a server is (OPCSERVERSTATE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerState {
    /// As it should be.
    #[default]
    Running,
    /// Broken for good.
    Failed,
    /// Without a configuration.
    NoConfig,
    /// Neither reading nor writing, for now.
    Suspended,
    /// Cut off from the plant, for tests.
    Test,
    /// The plant cannot be reached.
    CommFault,
}

/// Something directly beneath a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its name beneath the branch, unique there.
    pub name: String,
    /// The branch that it is, as [`Source::children`] takes it, if there is something beneath it.
    pub branch: Option<String>,
    /// The item that it is, if it is one.
    pub item: Option<String>,
}

/// What is beneath a branch, in the order of names.
pub type Children = Box<dyn Iterator<Item = Child> + Send>;

/// A value for an item.
#[derive(Debug, Clone)]
pub struct Write {
    /// The item.
    pub item: Arc<Item>,
    /// The value, in the item's canonical type; [`Data::Empty`] if a client writes only quality or time, and the value is to stay.
    pub data: Data,
    /// The quality to go with it, if a client of version 3.0 says one.
    pub quality: Option<Quality>,
    /// The time to go with it, likewise.
    pub time: Option<FileTime>,
}

/// Whoever has data: a device, a simulation, another protocol. Its methods are called from several threads, and may wait; what clients
/// read from the cache and what they subscribe to does not wait for them.
///
/// [`crate::Table`] is one for values that the program has in its own hands.
pub trait Source: Send + Sync + 'static {
    /// The item with this name.
    fn find(&self, id: &str) -> Option<Arc<Item>>;

    /// An item of a group as it is described now. To be written anew by sources that describe items anew while clients have them
    /// ([`Feed::describe`] tells those of it that have deadbands); by default it stays as it was when it was added.
    fn current(&self, item: &Arc<Item>) -> Arc<Item> {
        Arc::clone(item)
    }

    /// What is directly beneath a branch, behind the name `after` if there is one; the root is the empty text. Nothing if there is no
    /// such branch. Nothing is to be collected: a client that looks at ten of a million children takes ten from the iterator.
    fn children(&self, branch: &str, after: Option<&str>) -> Option<Children>;

    /// The values that these items have now, one for each, in their order.
    fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>>;

    /// Writes values, in their order. Each answer is [`Code::OK`], [`Code::CLAMP`] where less was written, or why not:
    /// [`Code::NOT_SUPPORTED`] for a quality or time that cannot be written, or not without a value, [`Code::RANGE`], ...
    fn write(&self, writes: &[Write]) -> Vec<Code>;

    /// "Tell me when it changes": from now on `feed.tell()` is called with each new value of the item, and once with the value that it
    /// has, before this returns or soon after. Returns `false` if the source cannot do that: then the server reads the item at the rate
    /// of the groups that have it. [`Feed::tell`] returns `false` when nobody wants to hear any more.
    fn watch(&self, item: &Arc<Item>, feed: Feed) -> bool {
        let _ = (item, feed);
        false
    }

    /// Whether there are branches at all; without, all items are beneath the root.
    fn is_hierarchical(&self) -> bool {
        true
    }

    /// The branch above another one; nothing above the root. By default names are parted by points.
    fn parent(&self, branch: &str) -> Option<String> {
        if branch.is_empty() {
            return None;
        }
        Some(branch.rsplit_once('.').map_or_else(String::new, |(above, _)| above.to_owned()))
    }

    /// The child of a branch that has this name. To be written anew by whoever need not go through all of them.
    fn child(&self, branch: &str, name: &str) -> Option<Child> {
        self.children(branch, None)?.find(|child| child.name == name)
    }

    /// The ways by which an item can be reached, if there are several.
    fn access_paths(&self, item: &str) -> Vec<String> {
        let _ = item;
        Vec::new()
    }

    /// How it is.
    fn state(&self) -> ServerState {
        ServerState::Running
    }
}

/// Where a source tells the values of one item. Clones are the same place; it holds nothing.
#[derive(Debug, Clone)]
pub struct Feed(pub(crate) Weak<Cell>);

impl Feed {
    /// The item has a new value. `false`: nobody wants to hear of it any more, and the feed may be dropped.
    pub fn tell(&self, value: Vqt) -> bool {
        match self.0.upgrade() {
            Some(cell) => {
                cell.tell(value);
                true
            }
            None => false,
        }
    }

    /// The item is described anew: deadbands are percentages of its range from now on. `false`: as of [`Feed::tell`].
    pub fn describe(&self, item: &Item) -> bool {
        match self.0.upgrade() {
            Some(cell) => {
                cell.describe(item);
                true
            }
            None => false,
        }
    }

    /// Whether anybody wants to hear.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }
}
