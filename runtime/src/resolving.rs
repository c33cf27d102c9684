//! From references to objects: of this process, of a node elsewhere, or the servant itself.

use crate::connection::backward::way_back;
use crate::failures::stopped;
use crate::local_target::here;
use crate::private_connections::PrivateConnections;
use crate::shared::{Shared, named};
use crate::sync::lock;
use crate::target::Remote;
use bytes::Bytes;
use everywire_model::object::Local;
use everywire_model::{
    BindAddress, Emitter, Endpoint, Failure, Object, Profile, Reference, Resolver, Target,
};
use std::sync::Arc;

impl Resolver for Shared {
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        Ok(object(self.arc().ok_or_else(stopped)?, reference, None))
    }

    fn local(&self, reference: &Reference, type_id: &str) -> Option<Local> {
        reference.ways().find_map(|(profile, endpoint)| match endpoint {
            Endpoint::InProcess { name } => named(name)?.local_at(&profile.key, type_id),
            _ if self.is_here(profile, endpoint) => self.local_at(&profile.key, type_id),
            _ => None,
        })
    }
}

impl Shared {
    /// Whether this node serves at an endpoint, by the address that it is bound to or by one under which it
    /// is published. Behind a router, the profile must also name this process (its components): the endpoint
    /// is the router's.
    fn is_here(&self, profile: &Profile, endpoint: &Endpoint) -> bool {
        lock(&self.places).iter().any(|(place, _)| {
            let own = place.profile();
            let known = || {
                self.addresses.is_known_otherwise(place)
                    && self.addresses.reach(place).endpoints.iter().any(|known| known.is_at(endpoint))
            };
            own.wire == profile.wire
                && (own.endpoints.iter().any(|own| own.is_at(endpoint)) || known())
                && (matches!(place, BindAddress::Listen(_)) || own.components == profile.components)
        })
    }

    /// The typed servant under a key, as an `Arc` of the trait of this interface, with its key and what emits
    /// its signals. `None` where layers stand before it, or its type is another one.
    fn local_at(&self, key: &[u8], type_id: &str) -> Option<Local> {
        let emitter: Arc<dyn Emitter> = self.arc()?;
        let held = self.directory.get(key);
        let local = held.iter().find_map(|entry| entry.local.as_ref()?.of_type(type_id))?;
        Some((Bytes::copy_from_slice(key), emitter, local))
    }
}

impl PrivateConnections {
    /// The object behind a reference, called over these connections.
    ///
    /// # Errors
    /// The node has ended.
    pub fn resolve(self: &Arc<Self>, reference: &Reference) -> Result<Object, Failure> {
        Ok(object(self.node.upgrade().ok_or_else(stopped)?, reference, Some(Arc::clone(self))))
    }
}

/// The object behind a reference, called within this process if it is here, and else over the connections that all objects of the
/// node use, or over those `apart`.
fn object(node: Arc<Shared>, reference: &Reference, apart: Option<Arc<PrivateConnections>>) -> Object {
    let deadline = node.builder.deadline;
    if let Some(here) = here(&node, reference, deadline) {
        return Object::new(Arc::new(here));
    }
    let remote: Arc<dyn Target> = Arc::new(Remote::new(node, reference.clone(), deadline, apart));
    Object::new(way_back(reference, &remote).unwrap_or(remote))
}
