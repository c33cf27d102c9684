//! The object directory: which servant answers for which key.

use crate::sync::{read, write};
use bytes::Bytes;
use everywire_model::Servant;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// What an exported object is.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Answers calls.
    pub(crate) servant: Arc<dyn Servant>,
    /// The typed servant (an `Arc<dyn Trait>`), for callers in this process.
    pub(crate) local: Option<Arc<dyn Any + Send + Sync>>,
}

/// Keys and servants.
#[derive(Default)]
pub(crate) struct Directory {
    entries: RwLock<HashMap<Bytes, Entry>>,
    /// Grows with each change, so that what connections remember of look-ups goes stale.
    version: AtomicU64,
    /// Numbers keys for objects that were exported without one.
    next: AtomicU64,
}

/// What a connection remembers of its last look-up: a peer mostly asks the same thing again.
pub(crate) struct Remembered {
    version: u64,
    key: Vec<u8>,
    operation: Vec<u8>,
    servant: Arc<dyn Servant>,
    index: usize,
}

/// What a look-up found.
pub(crate) enum Found {
    /// The servant, and the number of the operation.
    Operation(Arc<dyn Servant>, usize),
    /// The object, but no such operation.
    NoOperation(Arc<dyn Servant>),
    /// No object.
    NoObject,
}

impl Directory {
    pub(crate) fn insert(&self, key: Bytes, entry: Entry) {
        write(&self.entries).insert(key, entry);
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn remove(&self, key: &[u8]) -> bool {
        let removed = write(&self.entries).remove(key).is_some();
        self.version.fetch_add(1, Ordering::Release);
        removed
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let entries = std::mem::take(&mut *write(&self.entries));
        self.version.fetch_add(1, Ordering::Release);
        // Without the lock: dropping servants runs code of the user's.
        drop(entries);
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry> {
        read(&self.entries).get(key).cloned()
    }

    /// The keys, sorted.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        let mut keys: Vec<_> = read(&self.entries).keys().cloned().collect();
        keys.sort();
        keys
    }

    /// A key nobody has.
    pub(crate) fn fresh_key(&self) -> Bytes {
        Bytes::from(format!("object-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Who answers. No text is searched when the connection asks what it asked the last time.
    pub(crate) fn find(&self, key: &[u8], operation: &[u8], remembered: &mut Option<Remembered>) -> Found {
        let version = self.version.load(Ordering::Acquire);
        if let Some(last) = remembered
            && last.version == version
            && last.operation == operation
            && last.key == key
        {
            return Found::Operation(Arc::clone(&last.servant), last.index);
        }
        let Some(entry) = self.get(key) else { return Found::NoObject };
        let Some(index) = entry.servant.interface().index_of(operation) else {
            return Found::NoOperation(entry.servant);
        };
        *remembered = Some(Remembered {
            version,
            key: key.to_vec(),
            operation: operation.to_vec(),
            servant: Arc::clone(&entry.servant),
            index,
        });
        Found::Operation(entry.servant, index)
    }
}
