//! Which managers of objects anybody listens to, see [`super::manager`].

use everywire_model::Bytes;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The managers that somebody has asked for their objects, by key; the root is `/`.
///
/// An object that is withdrawn is forgotten, so there are never more than exported objects, and the root.
#[derive(Default)]
pub(super) struct ObjectManagers {
    /// Whether there are any; most services have none, and then an object that comes or goes costs one look.
    any: AtomicBool,
    managers: Mutex<BTreeSet<Bytes>>,
}

impl ObjectManagers {
    /// Somebody asks this manager. It stays noted until its object is withdrawn.
    pub(super) fn note(&self, manager: &[u8]) {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner).insert(Bytes::copy_from_slice(manager));
        self.any.store(true, Ordering::SeqCst);
    }

    /// Whether any was asked. Looked at for every object that comes or goes, without a lock.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// Those of the managers that were asked.
    pub(super) fn among(&self, mut managers: Vec<Bytes>) -> Vec<Bytes> {
        let asked = self.managers.lock().unwrap_or_else(PoisonError::into_inner);
        managers.retain(|manager| asked.contains(manager));
        managers
    }

    /// The object is gone. The root stays, for it needs no object.
    pub(super) fn forget(&self, manager: &[u8]) {
        if manager == b"/" {
            return;
        }
        self.managers.lock().unwrap_or_else(PoisonError::into_inner).remove(manager);
    }
}
