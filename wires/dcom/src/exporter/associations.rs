//! Association groups: connections of one client (C706 9.3.3.3, MS-RPCE 3.3.1.5.6).
//!
//! States: a group is made by the first connection (`join` with 0), counts its connections, and is gone with
//! the last one. Its owner is the empty name until a caller proves who it is; after that it never changes. A group
//! stays nobody's that another connection joined which says nothing of who calls.
//!
//! Invariants: there are `ASSOCIATION_GROUPS` at the most. A connection that says nothing of who calls joins
//! only groups without an owner; one that will prove it may enter any, and is refused in `own` if the group
//! is somebody else's.

use super::numbers::unused;
use crate::limits::ASSOCIATION_GROUPS;
use crate::lock::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The groups.
#[derive(Default)]
pub struct Associations {
    groups: Mutex<HashMap<u32, Group>>,
}

/// Connections that belong together, as the client says in its binds (C706 9.3.3.3).
struct Group {
    /// The account; empty while nobody has proved to be one.
    owner: Arc<str>,
    /// Whether a connection joined that says nothing of who calls.
    anonymous: bool,
    /// Connections that are open, never 0.
    connections: usize,
}

impl Associations {
    /// Joins a connection to the group asked for, or to a new one if that is 0.
    /// `None`: no such group, another's, or too many.
    pub fn join(&self, asked: u32, principal: &str) -> Option<u32> {
        let mut groups = lock(&self.groups);
        if asked != 0 {
            let group = groups.get_mut(&asked).filter(|group| &*group.owner == principal)?;
            group.connections += 1;
            group.anonymous |= principal.is_empty();
            return Some(asked);
        }
        make(&mut groups, Group { owner: principal.into(), anonymous: principal.is_empty(), connections: 1 })
    }

    /// Joins a connection whose caller will prove who it is to the group asked for, or to a new one if that is 0.
    pub fn enter(&self, asked: u32) -> Option<u32> {
        let mut groups = lock(&self.groups);
        if asked == 0 {
            return make(&mut groups, Group { owner: "".into(), anonymous: false, connections: 1 });
        }
        groups.get_mut(&asked).map(|group| {
            group.connections += 1;
            asked
        })
    }

    /// A connection's caller proved who it is: whether the group is of the same one. A group that belonged to nobody becomes
    /// the caller's, who may have entered it by several connections by now.
    pub fn own(&self, id: u32, principal: &str) -> bool {
        let mut groups = lock(&self.groups);
        let Some(group) = groups.get_mut(&id) else { return false };
        if group.owner.is_empty() && (!group.anonymous || group.connections == 1) {
            group.owner = principal.into();
        }
        *group.owner == *principal
    }

    /// A connection ended; with the last one, the group does.
    pub fn leave(&self, id: u32) {
        let mut groups = lock(&self.groups);
        if let Some(group) = groups.get_mut(&id) {
            group.connections = group.connections.saturating_sub(1);
            if group.connections == 0 {
                groups.remove(&id);
            }
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        lock(&self.groups).len()
    }
}

/// Enters a new group, if there is room for it.
fn make(groups: &mut HashMap<u32, Group>, group: Group) -> Option<u32> {
    if groups.len() >= ASSOCIATION_GROUPS {
        return None;
    }
    // The low half is as good as the whole.
    let low = |id: u64| (id & u64::from(u32::MAX)) as u32;
    let id = low(unused(|id| low(id) == 0 || groups.contains_key(&low(id))));
    groups.insert(id, group);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_connection_may_come_before_the_first_has_proved_who_calls() {
        let groups = Associations::default();
        let id = groups.enter(0).unwrap_or_default();
        assert_eq!(groups.enter(id), Some(id));
        assert_eq!(
            [groups.own(id, "ali"), groups.own(id, "ali"), groups.own(id, "eve")],
            [true, true, false]
        );
    }

    #[test]
    fn a_group_that_somebody_unknown_joined_is_nobodys() {
        let groups = Associations::default();
        let id = groups.enter(0).unwrap_or_default();
        assert_eq!(groups.join(id, ""), Some(id));
        assert!(!groups.own(id, "ali"));
    }
}
