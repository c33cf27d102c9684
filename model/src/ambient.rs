//! What a wire's peers expect of everybody who serves.

use crate::contract::{Attribute, Interface, Signal};
use crate::failure::Failure;
use crate::object::Servant;
use crate::session::{Answer, Link};
use crate::visit::Encode;
use bytes::Bytes;
use std::sync::Arc;

/// The objects that a process serves, as [`Ambient`] servants see them; implemented by the runtime.
pub trait Objects: Send + Sync {
    /// The keys, sorted.
    fn keys(&self) -> Vec<Bytes>;
    /// The servants under a key, one for each interface.
    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>>;
    /// Sends a signal on connections of this wire only.
    fn emit(
        &self,
        key: &[u8],
        interface: &Interface,
        signal: &Signal,
        arguments: &dyn Encode,
    ) -> Result<(), Failure>;
    /// A link whose answers go nowhere but to `done`: for asking a servant on one's own account. `done` runs once, unless
    /// the servant never answers.
    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link>;
}

/// What a wire's peers expect of everybody who serves, beside the exported objects: introspection, properties. A call
/// that no exported servant answers is offered to these servants, whatever its key.
pub trait Ambient: Send + Sync {
    /// The servants. A request knows the key that was asked ([`crate::Request::key`]).
    fn servants(&self) -> Vec<Arc<dyn Servant>>;
    /// An object was exported.
    fn exported(&self, _key: &[u8], _servant: &Arc<dyn Servant>) {}
    /// An object is served no longer.
    fn withdrawn(&self, _key: &[u8], _interface: &Interface) {}
    /// An attribute changed.
    fn changed(&self, _key: &[u8], _interface: &Interface, _attribute: &Attribute) -> Result<(), Failure> {
        Ok(())
    }
}
