//! The address space as clients see it: from a position (OPC DA 2.05a, 4.4.5), and page by page (3.0, 4.4.3).
//!
//! States. The server keeps one thing between two calls, a client's `Position`, which is the id of a branch
//! and begins at the root (the empty text). Everything else is walked anew:
//! * `Names` is a walk in progress: it is behind the name that it gave last, and holds one iterator of the
//!   source for each level.
//! * A continuation point is the name behind which to go on, and so lives with the client. It begins with a
//!   `mark` of the branch and the filters, and is refused for any others; it is only checked, not trusted
//!   with more than a name.
//!
//! Invariants.
//! * Nothing is collected that is not asked for: names come from the source's iterators, and a page ends
//!   where the client's number is reached.
//! * A position is changed only if the place to go to is there; after a failure it is where it was.
//! * A branch that has gone since is noticed by whoever asks next (`Code::FAIL`, or `Code::UNKNOWN_ITEM` for
//!   a page).
//!
//! Bounds. A page has at most `PAGE` elements, whatever the client says. A flat list goes `DEPTH` branches
//! deep, so that a source whose branches lead back to themselves has an end at each way down.

use crate::Code;
use crate::data::VarType;
use crate::item::{Access, Item};
use crate::pattern::Pattern;
use crate::source::{Child, Children, Source};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Elements of a page if the client says no number.
pub const PAGE: usize = 10_000;
/// How deep a flat list of all items goes.
const DEPTH: usize = 64;

/// What is listed from a position (OPCBROWSETYPE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The names of branches.
    Branches,
    /// The names of items.
    Leaves,
    /// The ids of all items at any depth.
    Flat,
}

/// Where to go (OPCBROWSEDIRECTION).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the branch above.
    Up,
    /// To a branch beneath.
    Down,
    /// To a branch by its whole name; the root is the empty text.
    To,
}

/// Which items are listed.
#[derive(Debug, Clone)]
pub struct Filter {
    names: Pattern,
    canonical: VarType,
    access: u32,
}

impl Filter {
    /// By name ([`Pattern`]), canonical type and access rights; those that are empty or 0 filter nothing.
    ///
    /// # Errors
    /// [`Code::INVALID_FILTER`].
    pub fn new(names: &str, canonical: VarType, access: u32) -> Result<Self, Code> {
        if access & !Access::BOTH.0 != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        Ok(Self { names: Pattern::new(names)?, canonical, access })
    }

    /// Whether an item is of the type and has one of the rights. The source is asked for the item only if one
    /// of the two is filtered by.
    fn takes(&self, source: &dyn Source, id: &str) -> bool {
        if self.canonical == VarType::EMPTY && self.access == 0 {
            return true;
        }
        source.find(id).is_some_and(|item| {
            (self.canonical == VarType::EMPTY || item.canonical == self.canonical)
                && (self.access == 0 || item.access.0 & self.access != 0)
        })
    }
}

/// A client's position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position(String);

impl Position {
    /// The branch.
    #[must_use]
    pub fn branch(&self) -> &str {
        &self.0
    }

    /// Goes somewhere else.
    ///
    /// # Errors
    /// [`Code::FAIL`]: there are no branches, or none above. [`Code::INVALID_ARGUMENT`]: no such branch.
    pub fn go(&mut self, source: &dyn Source, direction: Direction, name: &str) -> Result<(), Code> {
        if !source.is_hierarchical() {
            return Err(Code::FAIL);
        }
        self.0 = match direction {
            Direction::Up => source.parent(&self.0).ok_or(Code::FAIL)?,
            Direction::Down => {
                let child = source.child(&self.0, name).ok_or(Code::INVALID_ARGUMENT)?;
                child.branch.ok_or(Code::INVALID_ARGUMENT)?
            }
            Direction::To if name.is_empty() => String::new(),
            Direction::To => {
                let is_branch = source.children(name, None).is_some();
                if is_branch { name.to_owned() } else { return Err(Code::INVALID_ARGUMENT) }
            }
        };
        Ok(())
    }

    /// The names from here.
    ///
    /// # Errors
    /// [`Code::FAIL`]: the branch is no more.
    pub fn names(&self, source: &Arc<dyn Source>, kind: Kind, filter: Filter) -> Result<Names, Code> {
        let children = source.children(&self.0, None).ok_or(Code::FAIL)?;
        // One level to begin with; `Names::next` adds those beneath it for a flat list.
        Ok(Names { source: Arc::clone(source), kind, filter, levels: vec![children] })
    }

    /// The id of an item or a branch beneath; of the branch itself, if the name is empty. An id is its own.
    ///
    /// # Errors
    /// [`Code::INVALID_ARGUMENT`]: there is no such name.
    pub fn id(&self, source: &dyn Source, name: &str) -> Result<String, Code> {
        if name.is_empty() {
            return Ok(self.0.clone());
        }
        if let Some(child) = source.child(&self.0, name) {
            return child.item.or(child.branch).ok_or(Code::INVALID_ARGUMENT);
        }
        source.find(name).map(|item| item.id.clone()).ok_or(Code::INVALID_ARGUMENT)
    }
}

/// Names, as they are asked for.
pub struct Names {
    source: Arc<dyn Source>,
    kind: Kind,
    filter: Filter,
    /// The branches that are being walked, the innermost last; only the flat list has more than one.
    levels: Vec<Children>,
}

impl Iterator for Names {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let Some(child) = self.levels.last_mut()?.next() else {
                self.levels.pop();
                continue;
            };
            let Child { name, branch, item } = child;
            match self.kind {
                Kind::Branches if branch.is_some() && self.filter.names.fits(&name) => return Some(name),
                Kind::Leaves => {
                    let Some(id) = item else { continue };
                    if self.filter.names.fits(&name) && self.filter.takes(&*self.source, &id) {
                        return Some(name);
                    }
                }
                Kind::Branches => {}
                Kind::Flat => {
                    // What is deeper than `DEPTH` is not walked, without a word: the list has what is above.
                    let inner = branch.filter(|_| self.levels.len() < DEPTH);
                    self.levels.extend(inner.and_then(|branch| self.source.children(&branch, None)));
                    let Some(id) = item else { continue };
                    if self.filter.names.fits(&id) && self.filter.takes(&*self.source, &id) {
                        return Some(id);
                    }
                }
            }
        }
    }
}

/// Which elements a page has (OPCBROWSEFILTER).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elements {
    /// All.
    All,
    /// Those with something beneath.
    Branches,
    /// Those that are items.
    Items,
}

/// An element of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its id, as an item or as a branch.
    pub id: String,
    /// Whether there is something beneath it.
    pub has_children: bool,
    /// The item that it is, if it is one.
    pub item: Option<Arc<Item>>,
}

/// A part of what is beneath a branch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// What there is.
    pub elements: Vec<Element>,
    /// Where to go on; empty at the end.
    pub continuation: String,
}

/// What is beneath a branch, from a continuation point on (empty: from the beginning), at most `most` elements (0: as many as the
/// server gives).
///
/// # Errors
/// [`Code::UNKNOWN_ITEM`]: there is no such branch or item. [`Code::INVALID_FILTER`]. [`Code::INVALID_CONTINUATION`]: it is of another
/// browsing.
pub fn page(
    source: &dyn Source,
    branch: &str,
    continuation: &str,
    most: usize,
    wanted: Elements,
    names: &str,
) -> Result<Page, Code> {
    let filter = Pattern::new(names)?;
    let mark = mark(branch, wanted, names);
    let after = match continuation {
        "" => None,
        text => Some(text.strip_prefix(&mark).ok_or(Code::INVALID_CONTINUATION)?),
    };
    let Some(children) = source.children(branch, after) else {
        // An item without anything beneath it has an empty page.
        return source.find(branch).map(|_| Page::default()).ok_or(Code::UNKNOWN_ITEM);
    };
    let most = if most == 0 { PAGE } else { most.min(PAGE) };
    let mut page = Page::default();
    let mut last = String::new();
    for Child { name, branch, item } in children {
        let fits = match wanted {
            Elements::All => true,
            Elements::Branches => branch.is_some(),
            Elements::Items => item.is_some(),
        };
        if !fits || !filter.fits(&name) {
            continue;
        }
        if page.elements.len() >= most {
            page.continuation = mark + &last;
            break;
        }
        // An element that is a branch and an item has the item's id, by which it can be added to a group.
        let has_children = branch.is_some();
        let item = item.and_then(|id| source.find(&id));
        let id = item.as_ref().map(|item| item.id.clone()).or(branch).unwrap_or_default();
        last.clone_from(&name);
        page.elements.push(Element { name, id, has_children, item });
    }
    Ok(page)
}

/// What a continuation point begins with, so that it goes on in the same list only.
fn mark(branch: &str, wanted: Elements, names: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (branch, wanted, names).hash(&mut hasher);
    format!("{:016x}:", hasher.finish())
}
