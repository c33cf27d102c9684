//! Ping sets: which objects a client says it still holds (MS-DCOM 3.1.2.5.1.2, 3.1.2.5.1.3, 3.1.2.6).
//!
//! States: a set is made by a ComplexPing with number 0 and has the OIDs that its owner added and not
//! removed. `alive` is set by each ping, and taken by each period; `missed` counts periods without one. At
//! `MISSES` the set is gone, and objects that were in no other set and were not called go with it.
//!
//! Invariants: `PING_SETS` in all, `PRINCIPAL_PING_SETS` of one account, `PING_SET_OBJECTS` in one; only the
//! owner changes a set, for its removals end objects. A ComplexPing that was overtaken by a later one is
//! acknowledged and changes nothing.

use super::exports::{Exports, MISSES, ReleasedObject};
use super::numbers::unused;
use crate::hresult::{E_OUTOFMEMORY, NCA_ACCESS_DENIED, OR_INVALID_OID, OR_INVALID_SET, S_OK};
use crate::limits::{PING_SET_OBJECTS, PING_SETS, PRINCIPAL_PING_SETS};
use crate::lock::lock;
use crate::resolver::ComplexPing;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// The sets. The lock stands before those of [`Exports`].
#[derive(Default)]
pub(super) struct Sets {
    sets: Mutex<HashMap<u64, Set>>,
}

/// A ping set (MS-DCOM 3.1.2.1): OIDs whose holder pings them all with one number.
struct Set {
    /// Who made it: whoever knows the set's number may ping it, but only its owner may change it.
    owner: Arc<str>,
    /// Of the last ComplexPing that was applied.
    sequence: u16,
    objects: HashSet<u64>,
    alive: bool,
    /// Periods in a row without a ping.
    missed: u8,
}

impl Sets {
    /// SimplePing: the status.
    pub(super) fn ping(&self, id: u64) -> u32 {
        match lock(&self.sets).get_mut(&id) {
            Some(set) => {
                set.alive = true;
                S_OK
            }
            None => OR_INVALID_SET,
        }
    }

    /// ComplexPing: the set and the status, and objects that nobody holds any more.
    pub(super) fn change(&self, exports: &Exports, ping: &ComplexPing, who: &Arc<str>) -> (u64, u32) {
        let mut sets = lock(&self.sets);
        // A number of 0 asks for a new set.
        let id = if ping.set == 0 {
            let own = sets.values().filter(|set| set.owner == *who).count();
            if sets.len() >= PING_SETS || own >= PRINCIPAL_PING_SETS {
                return (0, E_OUTOFMEMORY);
            }
            let id = unused(|id| sets.contains_key(&id));
            let (owner, sequence) = (Arc::clone(who), ping.sequence);
            sets.insert(id, Set { owner, sequence, objects: HashSet::new(), alive: true, missed: 0 });
            id
        } else {
            ping.set
        };
        let Some(set) = sets.get_mut(&id) else { return (ping.set, OR_INVALID_SET) };
        if set.owner != *who {
            return (ping.set, NCA_ACCESS_DENIED);
        }
        if is_older(ping.sequence, set.sequence) {
            return (id, S_OK);
        }
        set.sequence = ping.sequence;
        set.alive = true;
        let mut status = S_OK;
        for oid in &ping.add {
            if set.objects.contains(oid) {
                continue;
            }
            if set.objects.len() >= PING_SET_OBJECTS {
                return (id, E_OUTOFMEMORY);
            }
            if exports.join_set(*oid) {
                set.objects.insert(*oid);
            } else if ping.set != 0 {
                status = OR_INVALID_OID;
            }
        }
        for oid in &ping.remove {
            if set.objects.remove(oid) {
                // Not expired, so nothing is dropped yet.
                let _ = exports.leave_set(*oid, false);
            }
        }
        (id, status)
    }

    /// A period is over: sets that were not pinged for three of them are gone, and what only they held.
    pub(super) fn tick(&self, exports: &Exports) -> Vec<ReleasedObject> {
        let mut sets = lock(&self.sets);
        for set in sets.values_mut() {
            set.missed = if std::mem::take(&mut set.alive) { 0 } else { set.missed + 1 };
        }
        let dead: Vec<_> = sets.extract_if(|_, set| set.missed >= MISSES).collect();
        drop(sets);
        let objects = dead.iter().flat_map(|(_, set)| &set.objects);
        objects.filter_map(|oid| exports.leave_set(*oid, true)).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        lock(&self.sets).len()
    }
}

/// Whether a sequence number is older than another; they start again after 65535.
/// Half of all numbers count as older, as sequence numbers that wrap do.
fn is_older(sequence: u16, than: u16) -> bool {
    let ahead = than.wrapping_sub(sequence);
    ahead != 0 && ahead < 0x8000
}
