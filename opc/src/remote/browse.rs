//! The address space of a server: by IOPCBrowse where it is offered (3.0, 6.5), else by position (2.05a, 4.4.5).

use super::session::Session;
use super::trouble::{advised, is_gone};
use super::wire::violation;
use crate::contract::{
    IOPCBrowse, IOPCBrowseServerAddressSpace, OPCBROWSEDIRECTION, OPCBROWSEFILTER, OPCBROWSETYPE,
    OPCNAMESPACETYPE,
};
use crate::sync::lock;
use crate::wire::{HAS_CHILDREN, IS_ITEM};
use everywire::{Failure, Ref};
use std::collections::{HashMap, HashSet};

/// Names that a branch may have.
const MOST: usize = 1_000_000;
/// Pages without a name after which a server is not asked for more.
const EMPTY: usize = 100;
/// How many are asked for at a time.
const PAGE: u32 = 1000;
/// Branches in branches that are left to come to the root.
const DEPTH: usize = 256;

/// A branch of an address space, or its root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branch {
    id: String,
    /// The names from the root, where it was found by position.
    names: Vec<String>,
}

impl Branch {
    /// The root.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// A branch by its id, as servers write it.
    #[must_use]
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), names: Vec::new() }
    }

    /// Its id; empty for the root.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    fn is_root(&self) -> bool {
        self.id.is_empty() && self.names.is_empty()
    }
}

/// What is in a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Its name in the branch.
    pub name: String,
    /// Its id: of an item, what it is read by.
    pub id: String,
    /// Whether something is beneath it.
    pub has_children: bool,
    /// Whether it is an item.
    pub is_item: bool,
    /// It as a branch.
    pub branch: Branch,
}

/// What is in a branch.
pub(super) fn elements(session: &Session, branch: &Branch) -> Result<Vec<Element>, Failure> {
    let found = match &session.browse {
        Some(browse) => paged(browse, branch),
        None => by_position(session, branch),
    };
    found.map_err(|failure| advised(failure.at(format_args!("branch `{}`", branch.id))))
}

/// By pages with continuation points.
fn paged(browse: &Ref<dyn IOPCBrowse>, branch: &Branch) -> Result<Vec<Element>, Failure> {
    let filter = OPCBROWSEFILTER::OpcBrowseFilterAll;
    let (mut found, mut point) = (Vec::new(), Some(String::new()));
    let mut empty = 0;
    loop {
        let page = browse.browse(&branch.id, &point, PAGE, filter, "", "", 0, 0, &[])?;
        let (next, more, elements) = page.value;
        let nothing = elements.is_empty();
        found.extend(elements.into_iter().map(|element| {
            let (name, id) = (element.name.unwrap_or_default(), element.item_id.unwrap_or_default());
            let (has_children, is_item) = (element.flags & HAS_CHILDREN != 0, element.flags & IS_ITEM != 0);
            Element { name, branch: Branch::named(id.clone()), id, has_children, is_item }
        }));
        if found.len() > MOST {
            return Err(super::list::too_many(MOST));
        }
        // A server without continuation points says that there is more, and cannot be asked for it.
        let ended = next.as_deref().is_none_or(str::is_empty);
        if ended {
            return if more == 0 {
                Ok(found)
            } else {
                Err(violation("the branch has more than the server tells"))
            };
        }
        empty += usize::from(nothing);
        if empty > EMPTY || (nothing && next == point) {
            return Err(violation("the server goes on without end"));
        }
        point = next;
    }
}

/// Goes to the branch, and asks for branches and leaves. The position is the object's, so one browses at a time.
fn by_position(session: &Session, branch: &Branch) -> Result<Vec<Element>, Failure> {
    let space = session.space()?;
    let _alone = lock(&session.position);
    if space.query_organization()? == OPCNAMESPACETYPE::OpcNsFlat {
        let flat = if branch.is_root() { names(&space, OPCBROWSETYPE::OpcFlat)? } else { Vec::new() };
        return Ok(flat.into_iter().map(|id| leaf(id.clone(), id)).collect());
    }
    go(&space, branch)?;
    let mut found: Vec<Element> = Vec::new();
    for name in names(&space, OPCBROWSETYPE::OpcBranch)? {
        let id = space.get_item_id(&name).ok().flatten().unwrap_or_default();
        let mut path = branch.names.clone();
        path.push(name.clone());
        found.push(Element {
            // A branch found by its id has no names that lead to it from the root.
            branch: Branch {
                id: id.clone(),
                names: if branch.names.is_empty() && !branch.is_root() { Vec::new() } else { path },
            },
            name,
            id,
            has_children: true,
            is_item: false,
        });
    }
    let places: HashMap<String, usize> =
        (0..).zip(&found).map(|(at, branch)| (branch.name.clone(), at)).collect();
    for name in names(&space, OPCBROWSETYPE::OpcLeaf)? {
        let id = space.get_item_id(&name)?.unwrap_or_else(|| name.clone());
        // What is a branch and an item at once is told twice.
        match places.get(&name).and_then(|at| found.get_mut(*at)) {
            Some(element) => (element.is_item, element.id) = (true, id),
            None => found.push(leaf(name, id)),
        }
    }
    Ok(found)
}

fn leaf(name: String, id: String) -> Element {
    Element { name, branch: Branch::named(id.clone()), id, has_children: false, is_item: true }
}

/// Changes the position to a branch: down from the root by names, or at once by its id.
fn go(space: &Ref<dyn IOPCBrowseServerAddressSpace>, branch: &Branch) -> Result<(), Failure> {
    if branch.names.is_empty() && !branch.is_root() {
        return space.change_browse_position(OPCBROWSEDIRECTION::OpcBrowseTo, &branch.id);
    }
    // Servers of 1.0 do not know the way to the root, only the way up, which fails there.
    if space.change_browse_position(OPCBROWSEDIRECTION::OpcBrowseTo, "").is_err() {
        let up = || space.change_browse_position(OPCBROWSEDIRECTION::OpcBrowseUp, "").is_ok();
        let _root = (0..DEPTH).find(|_| !up());
    }
    branch
        .names
        .iter()
        .try_for_each(|name| space.change_browse_position(OPCBROWSEDIRECTION::OpcBrowseDown, name))
}

/// The names of one kind at the position.
fn names(space: &Ref<dyn IOPCBrowseServerAddressSpace>, kind: OPCBROWSETYPE) -> Result<Vec<String>, Failure> {
    let Some(found) = space.browse_opc_item_ids(kind, "", 0, 0)?.value else { return Ok(Vec::new()) };
    let names: Vec<Option<String>> = super::enumerated(MOST, PAGE, |count| found.next(count))?;
    Ok(names.into_iter().flatten().collect())
}

/// All items, whatever branch they are in: at once where the server tells them so, else branch by branch.
pub(super) fn flat(session: &Session) -> Result<Vec<String>, Failure> {
    let space = match (session.space(), &session.browse) {
        (Ok(space), _) => space,
        (Err(_), Some(browse)) => return walked(browse).map_err(advised),
        (Err(failure), None) => return Err(failure),
    };
    let found = {
        let _alone = lock(&session.position);
        // From wherever the position is, a flat list begins there.
        go(&space, &Branch::root()).and_then(|()| names(&space, OPCBROWSETYPE::OpcFlat))
    };
    match (found, &session.browse) {
        (Err(failure), Some(browse)) if !is_gone(&failure) => walked(browse).map_err(advised),
        (found, _) => found.map_err(advised),
    }
}

/// All items by IOPCBrowse: the branches that were not looked at yet, and no branch twice, whatever leads back to it.
fn walked(browse: &Ref<dyn IOPCBrowse>) -> Result<Vec<String>, Failure> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut left = vec![Branch::root()];
    while let Some(branch) = left.pop() {
        let mut beneath = Vec::new();
        for element in paged(browse, &branch)? {
            if element.is_item {
                found.push(element.id.clone());
            }
            if element.has_children && seen.insert(element.id) {
                beneath.push(element.branch);
            }
        }
        left.extend(beneath.into_iter().rev());
        if found.len() > MOST || seen.len() > MOST {
            return Err(super::list::too_many(MOST));
        }
    }
    Ok(found)
}
