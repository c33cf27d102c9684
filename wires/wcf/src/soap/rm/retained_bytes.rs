//! What sessions keep for their clients, added up for a node: `Sequences` asks for the sum, each session says its part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a session keeps, counted among all of its node once it has a place there.
#[derive(Debug, Default)]
pub(super) struct RetainedBytes {
    pub(super) bytes: usize,
    pub(super) all: Option<Arc<AtomicUsize>>,
}

impl RetainedBytes {
    /// It keeps so many bytes now.
    pub(super) fn set(&mut self, bytes: usize) {
        let Some(all) = &self.all else { return };
        let before = std::mem::replace(&mut self.bytes, bytes);
        // By the difference alone: whoever reads the sum meanwhile must not find more than is kept.
        if bytes >= before {
            all.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            all.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }

    /// Whether it is counted among others.
    pub(super) fn is_counted(&self) -> bool {
        self.all.is_some()
    }
}

impl Drop for RetainedBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}
