//! Overhearing what others say, where a wire has a router that lets one.

use crate::connection::Connection;
use bytes::Bytes;
use everywire_model::{Failure, Initiator, Kind, Wire};
use std::sync::Arc;
use std::time::Instant;

/// A connection that gets copies of what others send. Ends when dropped.
pub struct Monitor {
    pub(crate) connection: Arc<Connection>,
}

impl Monitor {
    /// The wire whose messages these are.
    pub fn wire(&self) -> &'static dyn Wire {
        self.connection.wire
    }

    /// Waits for the next message, as it was sent; `None` when `until` has passed.
    ///
    /// # Errors
    /// The connection ended.
    pub fn next(&self, until: Option<Instant>) -> Result<Option<Bytes>, Failure> {
        self.connection.next_overheard(until)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let why = Failure::new(Kind::Cancelled, Initiator::User, "the monitor was dropped");
        self.connection.cut(&why);
    }
}
