//! What the management interface tells of: how much a node was called.

use std::sync::atomic::{AtomicU32, Ordering};

/// What a node counts: calls and packets, in and out (C706, `rpc_c_stats_*`).
#[derive(Default)]
pub struct Traffic([AtomicU32; 4]);

impl Traffic {
    /// A call came in, in so many fragments.
    pub fn called(&self, fragments: u32) {
        self.add(0, 1);
        self.add(2, fragments);
    }

    /// Fragments went out.
    pub fn sent(&self, fragments: u32) {
        self.add(3, fragments);
    }

    /// Counters wrap, as those of the specification do.
    fn add(&self, index: usize, count: u32) {
        if let Some(counter) = self.0.get(index) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Calls in and out, packets in and out.
    pub(super) fn counts(&self) -> Vec<u32> {
        self.0.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }
}
