//! What is to be told of objects: that they are served no longer, and who listens to them.

use crate::sync::lock;
use bytes::Bytes;
use everywire_model::signal::Audience;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Is told that an object is served no longer.
type Ending = Box<dyn FnOnce() + Send>;
/// Is told who listens to an object.
type Watcher = Arc<dyn Fn(&Audience) + Send + Sync>;

/// What is to be told of objects, by their keys.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) endings: Mutex<HashMap<Bytes, Vec<Ending>>>,
    pub(crate) watchers: Mutex<HashMap<Bytes, Vec<Watcher>>>,
}

impl Hooks {
    /// The object is served no longer. No lock is held while it is told.
    pub(crate) fn ended(&self, key: &[u8]) {
        let watchers = lock(&self.watchers).remove(key);
        drop(watchers);
        let endings = lock(&self.endings).remove(key);
        endings.into_iter().flatten().for_each(|ending| ending());
    }

    /// Something happened among those who listen to an object.
    pub(crate) fn audience(&self, key: &[u8], told: &Audience) {
        let watchers = lock(&self.watchers).get(key).cloned();
        watchers.iter().flatten().for_each(|watcher| watcher(told));
    }

    /// Forgets all: what is held may hold the node.
    pub(crate) fn clear(&self) {
        let endings = std::mem::take(&mut *lock(&self.endings));
        let watchers = std::mem::take(&mut *lock(&self.watchers));
        // Without the locks: dropping them runs code of the user's.
        drop((endings, watchers));
    }
}
