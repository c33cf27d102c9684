//! What a server permits, and the defaults.

use std::time::Duration;

/// Quotas of a server. Each has a default; the program's options raise some. They bound what one application
/// can do to the others, and what all of them can make the server hold.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The largest message, in bytes, header included. The call that a larger one belongs to fails.
    pub message: u64,
    /// Connections at a time; the next one is closed at once.
    pub connections: usize,
    /// Connections whose handshake is not over; when one more comes, the oldest of them is closed.
    pub half_open: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a message that has begun may take to arrive, for each started MiB.
    pub message_time: Duration,
    /// Bytes that may wait to be sent to one connection of what others send. A call that finds no room fails; a send, a
    /// signal or news are dropped. Answers have as much room once more; a connection that lets more of them pile up is
    /// closed.
    pub queue: usize,
    /// Bytes that may wait to be sent to all connections. Beyond that each may have its even share of them only.
    pub queues: usize,
    /// Bytes that may wait to be sent to a connection whose handshake is not over.
    pub greeting: usize,
    /// Calls of one connection that may be unanswered at a time; the next one fails.
    pub outstanding: usize,
    /// Calls to one application that may be unanswered at a time; the next one fails.
    pub waiting: usize,
    /// How deep calls made while serving a call with the same key may nest; the next one fails.
    pub depth: u32,
    /// Signal connections of one application.
    pub signals: usize,
    /// Signal connections of all applications.
    pub all_signals: usize,
    /// Bytes of the names in the signal connections of one application.
    pub signal_bytes: usize,
    /// The same of all applications.
    pub all_signal_bytes: usize,
    /// Bytes of an application's id.
    pub name: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            message: 4 << 20,
            connections: 1024,
            half_open: 64,
            handshake: Duration::from_secs(5),
            message_time: Duration::from_secs(30),
            queue: 8 << 20,
            queues: 64 << 20,
            greeting: 64 << 10,
            outstanding: 1024,
            waiting: 4096,
            depth: 16,
            signals: 4096,
            all_signals: 64 << 10,
            signal_bytes: 1 << 20,
            all_signal_bytes: 16 << 20,
            name: 255,
        }
    }
}

impl Settings {
    /// The same with another largest message, in bytes; a queue holds at least two of that size, and all of them sixteen.
    #[must_use]
    pub fn with_message(mut self, bytes: u64) -> Self {
        self.message = bytes;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.queue = self.queue.max(bytes.saturating_mul(2));
        self.queues = self.queues.max(bytes.saturating_mul(16));
        self
    }
}
