//! Association groups: connections of one client (C706 9.3.3.3, MS-RPCE 3.3.1.5.6).
//!
//! States: a group is made by the first connection (`join` with 0), counts its connections, and is gone with
//! the last one. Its owner is the empty name until a caller of a group with one connection proves who it is;
//! after that it never changes.
//!
//! Invariants: there are `ASSOCIATION_GROUPS` at the most. A connection that says nothing of who calls joins
//! only groups without an owner; one that will prove it may enter any, and is refused in `own` if the group
//! is somebody else's.

use super::numbers::unguessable;
use crate::limits::ASSOCIATION_GROUPS;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The groups.
#[derive(Default)]
pub(super) struct Associations {
    groups: Mutex<HashMap<u32, Group>>,
}

/// Connections that belong together, as the client says in its binds (C706 9.3.3.3).
struct Group {
    /// The account; empty while nobody has proved to be one.
    owner: Arc<str>,
    /// Connections that are open, never 0.
    connections: usize,
}

impl Associations {
    /// Joins a connection to the group asked for, or to a new one if that is 0.
    /// `None`: no such group, another's, or too many.
    pub(super) fn join(&self, asked: u32, principal: &str) -> Option<u32> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if asked != 0 {
            let group = groups.get_mut(&asked).filter(|group| &*group.owner == principal)?;
            group.connections += 1;
            return Some(asked);
        }
        if groups.len() >= ASSOCIATION_GROUPS {
            return None;
        }
        loop {
            // The low half is as good as the whole.
            let id = (unguessable() & u64::from(u32::MAX)) as u32;
            if id != 0 && !groups.contains_key(&id) {
                groups.insert(id, Group { owner: principal.into(), connections: 1 });
                return Some(id);
            }
        }
    }

    /// Joins a connection whose caller will prove who it is to the group asked for, or to a new one if that is 0.
    pub(super) fn enter(&self, asked: u32) -> Option<u32> {
        if asked == 0 {
            return self.join(0, "");
        }
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.get_mut(&asked).map(|group| {
            group.connections += 1;
            asked
        })
    }

    /// A connection's caller proved who it is: whether the group is of the same one. A group of one connection that
    /// belonged to nobody becomes the caller's.
    pub(super) fn own(&self, id: u32, principal: &str) -> bool {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(group) = groups.get_mut(&id) else { return false };
        if group.owner.is_empty() && group.connections == 1 {
            group.owner = principal.into();
        }
        *group.owner == *principal
    }

    /// A connection ended; with the last one, the group does.
    pub(super) fn leave(&self, id: u32) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.get_mut(&id) {
            group.connections = group.connections.saturating_sub(1);
            if group.connections == 0 {
                groups.remove(&id);
            }
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
