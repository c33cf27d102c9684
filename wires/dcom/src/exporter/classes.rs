//! Classes and running objects by CLSID.

use crate::iid_of;
use crate::lock::lock;
use bytes::Bytes;
use everywire_idl::midl::clsid_of_key;
use everywire_model::{Interface, InterfaceKind};
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use uuid::Uuid;

/// Which exported objects are found by which CLSID: that of their key, or that of the class they are of. Those that serve
/// plain DCE/RPC are found by their interface as well, so that anybody's question for it takes no search.
#[derive(Default)]
pub(super) struct RunningObjectTable {
    /// Several keys may be of one class: the running object is the first of them.
    keys: Mutex<HashMap<Uuid, BTreeSet<Bytes>>>,
}

impl RunningObjectTable {
    /// An object was exported; `interface` is what one of its servants serves.
    pub(super) fn enter(&self, key: &[u8], interface: Option<&Interface>) {
        let key = Bytes::copy_from_slice(key);
        let mut keys = lock(&self.keys);
        for clsid in clsids(&key, interface) {
            keys.entry(clsid).or_default().insert(key.clone());
        }
    }

    /// It is served no longer.
    pub(super) fn leave(&self, key: &[u8], interface: &Interface) {
        let mut keys = lock(&self.keys);
        for clsid in clsids(key, Some(interface)) {
            if let Some(held) = keys.get_mut(&clsid) {
                held.remove(key);
                if held.is_empty() {
                    keys.remove(&clsid);
                }
            }
        }
    }

    /// The keys of all objects that an identity leads to.
    pub(super) fn all(&self, id: Uuid) -> Vec<Bytes> {
        lock(&self.keys).get(&id).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// The key of the first of them.
    pub(super) fn find(&self, clsid: Uuid) -> Option<Bytes> {
        lock(&self.keys).get(&clsid)?.first().cloned()
    }
}

/// The identities by which an object is found: that which follows from its key, and that of a class or of
/// procedures that it serves.
fn clsids(key: &[u8], interface: Option<&Interface>) -> impl Iterator<Item = Uuid> {
    let found = |kind| matches!(kind, InterfaceKind::Class | InterfaceKind::Procedures);
    let class = interface.filter(|interface| found(interface.kind)).map(iid_of);
    std::iter::once(clsid_of_key(key)).chain(class)
}
