//! What the bodies of a connection carry with them.

use super::Exporter;
use crate::security::Security;
use everywire_model::{Reference, Request, WireState};
use std::any::Any;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// What a connection's bodies carry in [`everywire_model::body::Attachments::wire_state`]: the exporter, and the security of references
/// that come in. A body in which there may be references has one of its own ([`Correspondence::of_one_body`]).
pub struct Correspondence {
    /// The node's exporter.
    pub exporter: Arc<Exporter>,
    /// The security of the connection.
    pub security: Arc<Security>,
    /// Who is at the other end; empty if that is not known.
    pub principal: String,
    /// Whether it is a connection within this machine, over which its sockets may be told.
    pub local: bool,
    /// The address of this machine by which the peer of the connection knows it.
    pub address: Option<IpAddr>,
    /// The association group of the connection, where context handles are good (C706 5.1.6); 0 on the calling side.
    pub association: u32,
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

    /// That of the connection by which a call came.
    pub fn of_call(request: &Request) -> Option<&Self> {
        let wire_state: &dyn Any = &**request.body().wire_state()?;
        wire_state.downcast_ref()
    }
}

impl WireState for Correspondence {
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
            Err(other) => other.downcast_ref::<Correspondence>().map(|held| Arc::clone(&held.exporter)),
        }
    }
}
