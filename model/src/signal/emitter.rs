//! What tells the world of signals.

use super::events::{Backlog, Listener, Subscription};
use crate::contract::{Attribute, Interface};
use crate::failure::Failure;
use crate::message::{Emission, SignalFilter};
use crate::object::Resolver;
use crate::visit::Encode;
use std::sync::Arc;

/// What tells the world of signals; implemented by the runtime.
pub trait Emitter: Send + Sync {
    /// Sends a signal of an object that is exported here to everybody who listens, on every wire that carries signals.
    ///
    /// # Errors
    /// The arguments do not encode. That nobody listens is no error.
    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure>;

    /// Tells whoever listens that an attribute has changed, in the way of each wire.
    fn changed(&self, key: &[u8], interface: &Interface, attribute: &Attribute) -> Result<(), Failure>;

    /// The same, where the new value is known already: `answer` writes what the operation that reads the attribute would answer. It is
    /// told at once, in order with signals and answers, while [`Emitter::changed`] asks for the value afterwards.
    ///
    /// # Errors
    /// The value does not encode.
    fn changed_to(
        &self,
        key: &[u8],
        interface: &Interface,
        attribute: &Attribute,
        _answer: &dyn Encode,
    ) -> Result<(), Failure> {
        self.changed(key, interface, attribute)
    }

    /// Listens within this process.
    fn listen(&self, key: &[u8], filter: SignalFilter<'_>, listener: Listener) -> Subscription;

    /// What waits for the listener of an object that is furthest behind: for emitters that would rather tell the newest later.
    fn backlog(&self, _key: &[u8]) -> Backlog {
        Backlog::default()
    }

    /// Tells whoever looks after the node that a listener does not get what it asked for.
    fn undelivered(&self, _failure: &Failure) {}

    /// Whether the object that is served under a key has an interface.
    fn offers(&self, _key: &[u8], _interface: &str) -> bool {
        false
    }

    /// Turns references into objects, as long as the node runs.
    fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        None
    }
}
