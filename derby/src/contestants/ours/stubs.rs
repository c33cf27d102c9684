//! What a client calls, whatever the wire.

use super::servants::{Benchmarking, IRemoteObject};
use everywire::Failure;
use std::sync::Arc;

/// What a client calls, whatever the wire. The two faces may be one object.
pub(super) struct Stubs {
    pub(super) calls: Arc<dyn Benchmarking>,
    pub(super) bytes: Arc<dyn IRemoteObject>,
    /// Has so many signals sent, and returns when all of them have come; `None` on wires without
    /// signals.
    pub(super) hear: Option<Hear>,
}

/// Takes the number of signals in a burst.
pub(super) type Hear = Box<dyn FnMut(u32) -> Result<(), Failure>>;
