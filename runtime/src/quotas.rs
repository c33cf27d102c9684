//! Quotas for what peers may hold of a listening process.

use std::time::Duration;

/// What all peers together, and each connection, may take. Message sizes and counts are in
/// [`everywire_model::Limits`].
#[derive(Debug, Clone)]
pub struct Quotas {
    /// Accepted connections at one time. When it is reached, the oldest that has not sent a whole message yet makes room;
    /// if there is none, the newcomer is closed.
    pub connections: usize,
    /// How long a new connection may take to send its first whole message.
    pub first_message: Duration,
    /// How long a connection may be silent with no call under way; `None`: for ever.
    pub idle: Option<Duration>,
    /// Bytes of replies that may wait for a peer that does not read; beyond that its requests are not read either.
    pub unsent: usize,
    /// Threads that blocked servants may tie up in each shard.
    pub blocked_threads: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            connections: 16_384,
            first_message: Duration::from_secs(60),
            idle: None,
            unsent: 8 << 20,
            blocked_threads: 256,
        }
    }
}
