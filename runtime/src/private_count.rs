//! How many connections there are that were made for single peers: known below the connections themselves, and below the quotas that ask.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are in this process.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// How many connections there are in this process that were made for single peers: each takes a descriptor beside that of the peer.
pub(crate) fn count() -> usize {
    OPEN.load(Ordering::Relaxed)
}

/// One of them, while it is there.
pub(crate) struct PrivateConnection(());

impl Default for PrivateConnection {
    fn default() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for PrivateConnection {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}
