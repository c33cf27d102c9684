//! What the bodies of a connection carry with them.

use super::Exporter;
use crate::security::Security;
use everywire_model::{Reference, Request, Servant, WireState};
use std::any::Any;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// What a connection's bodies carry in [`everywire_model::body::Beside::wire_state`]: the exporter, and the security of references
/// that come in. A body in which there may be references has one of its own ([`Correspondence::of_one_body`]).
pub struct Correspondence {
    exporter: Arc<Exporter>,
    security: Arc<Security>,
    principal: String,
    pub(super) local: bool,
    pub(super) address: Option<IpAddr>,
    association: u32,
    /// The references that were read from one body, by their offset. They are the body's, however often it is read: an OBJREF
    /// brings its counted references once.
    pub(super) read: Option<Mutex<HashMap<usize, Reference>>>,
}

impl Correspondence {
    /// For a connection with this security, to or from this principal (empty if unknown).
    pub fn new(exporter: Arc<Exporter>, security: Arc<Security>, principal: impl Into<String>) -> Self {
        let (local, address, association) = (false, None, 0);
        Self { exporter, security, principal: principal.into(), local, address, association, read: None }
    }

    /// The same for a connection within this machine, over which its sockets may be told.
    #[must_use]
    pub fn with_local(mut self, local: bool) -> Self {
        self.local = local;
        self
    }

    /// The same for a connection that ends here at this address of the machine.
    #[must_use]
    pub fn with_address(mut self, address: Option<IpAddr>) -> Self {
        self.address = address;
        self
    }

    /// The same for a connection of this association group.
    #[must_use]
    pub fn with_association(mut self, group: u32) -> Self {
        self.association = group;
        self
    }

    /// The same for a single body.
    /// Cloning is cheap beside what it is for: only bodies in which the word `MEOW` stands get one.
    #[must_use]
    pub fn of_one_body(&self) -> Self {
        Self {
            exporter: Arc::clone(&self.exporter),
            security: Arc::clone(&self.security),
            principal: self.principal.clone(),
            local: self.local,
            address: self.address,
            association: self.association,
            read: Some(Mutex::default()),
        }
    }

    /// The node's exporter.
    pub fn exporter(&self) -> &Arc<Exporter> {
        &self.exporter
    }

    /// The security of the connection.
    pub fn security(&self) -> &Arc<Security> {
        &self.security
    }

    /// That of the connection by which a call came.
    pub fn of_call(request: &Request) -> Option<&Self> {
        let wire_state: &dyn Any = &**request.body().wire_state()?;
        wire_state.downcast_ref()
    }

    /// The address of this machine by which the peer of the connection knows it.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The association group of the connection, where context handles are good (C706 5.1.6); 0 on the calling side.
    pub fn association(&self) -> u32 {
        self.association
    }

    /// Who is at the other end.
    pub fn principal(&self) -> &str {
        &self.principal
    }
}

impl WireState for Correspondence {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        Vec::new()
    }

    fn onward(&self, key: &[u8], to: &Reference) -> Option<Reference> {
        self.exporter.onward(key, to)
    }
}

impl Exporter {
    /// The exporter behind what a session or a servant was given: itself, or a [`Correspondence`].
    pub fn of(wire_state: &Arc<dyn WireState>) -> Option<Arc<Self>> {
        Self::known(Arc::clone(wire_state) as _)
    }

    /// The same behind what a body was given.
    pub(crate) fn known(wire_state: Arc<dyn Any + Send + Sync>) -> Option<Arc<Self>> {
        match wire_state.downcast::<Self>() {
            Ok(exporter) => Some(exporter),
            Err(other) => other.downcast_ref::<Correspondence>().map(|held| Arc::clone(held.exporter())),
        }
    }
}
