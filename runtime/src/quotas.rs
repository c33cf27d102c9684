//! Quotas for what peers may hold of a listening process.

use crate::shares;
use std::time::Duration;

/// What all peers together, and each connection, may take. Message sizes and counts are in
/// [`everywire_model::Limits`].
#[derive(Debug, Clone)]
pub struct Quotas {
    /// Accepted connections at one time, or as many as the process may have descriptors for. When it is reached, the oldest that
    /// has not sent a whole message yet makes room, or one that is quiet, of the source (address or user) that has most of them;
    /// if there is none, the newcomer is told so in the wire's words, and closed.
    pub connections: usize,
    /// Bytes that all accepted connections may hold together: half-received messages, requests under way, answers that are not
    /// read. When it is reached, the connection that holds most of the source that holds most is closed. `None`: a quarter of the
    /// memory that this process can have (machine, control group, address space); never less than the largest message needs.
    pub memory: Option<usize>,
    /// How long a new connection may take to send its first whole message.
    pub first_message: Duration,
    /// How long a connection may be silent with no call under way, or take nothing of an answer; `None`: for ever. Where
    /// objects have signals or attributes to tell of, connections of wires that carry those may be silent for ever.
    pub idle: Option<Duration>,
    /// Bytes of replies that may wait for a peer that does not read; beyond that its requests are neither read nor served.
    pub unsent: usize,
    /// Threads that servants which block may tie up: in the pool of the node, where operations run that were seen to block, and in
    /// each shard.
    pub blocked_threads: usize,
}

impl Quotas {
    /// The bytes that all connections may hold, where the largest message has so many.
    pub(crate) fn budget(&self, largest: u64) -> usize {
        let least = usize::try_from(largest).unwrap_or(usize::MAX).saturating_mul(2);
        self.memory.unwrap_or_else(shares::memory_here).max(least)
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            connections: 16_384,
            memory: None,
            first_message: Duration::from_secs(60),
            idle: Some(Duration::from_secs(600)),
            unsent: 8 << 20,
            blocked_threads: 1024,
        }
    }
}
