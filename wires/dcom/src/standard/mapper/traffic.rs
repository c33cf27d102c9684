//! What the management interface tells of: how much a node was called.

use std::sync::atomic::{AtomicU32, Ordering};

/// What a node counts: calls and packets, in and out (C706, `rpc_c_stats_*`).
#[derive(Default)]
pub struct Traffic([AtomicU32; 4]);

impl Traffic {
    /// So many calls came in, and answers went out, each taken for one packet. Counters wrap, as those of the specification do.
    pub fn add(&self, calls: u32, answers: u32) {
        for (counter, count) in self.0.iter().zip([calls, 0, calls, answers]) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Calls in and out, packets in and out.
    pub(super) fn counts(&self) -> Vec<u32> {
        self.0.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }
}
