//! What the bodies of a connection carry with them.

use super::{Exporter, marshalling};
use crate::ndr::References;
use crate::security::Security;
use bytes::Bytes;
use everywire_model::{Ambient, Reference, Servant, Visit};
use std::sync::Arc;

/// What a connection's bodies carry in [`everywire_model::body::Beside::ambient`]: the exporter, and the security of references
/// that come in.
pub struct Correspondence {
    exporter: Arc<Exporter>,
    security: Arc<Security>,
    principal: String,
    local: bool,
}

impl Correspondence {
    /// For a connection with this security, to or from this principal (empty if unknown).
    pub fn new(exporter: Arc<Exporter>, security: Arc<Security>, principal: impl Into<String>) -> Self {
        Self { exporter, security, principal: principal.into(), local: false }
    }

    /// The same for a connection within this machine, over which its sockets may be told.
    #[must_use]
    pub fn with_local(mut self, local: bool) -> Self {
        self.local = local;
        self
    }

    /// The node's exporter.
    pub fn exporter(&self) -> &Arc<Exporter> {
        &self.exporter
    }

    /// The security of the connection.
    pub fn security(&self) -> &Arc<Security> {
        &self.security
    }

    /// Who is at the other end.
    pub fn principal(&self) -> &str {
        &self.principal
    }
}

impl References for Correspondence {
    fn unmarshal(&self, objref: Bytes, offset: usize) -> Visit<Reference> {
        let objref = marshalling::parse(&objref, offset)?;
        self.exporter.adopt_from(&objref, &self.security, self.local, None)
    }

    fn marshal(&self, reference: &Reference) -> Visit<Bytes> {
        self.exporter.marshal(reference).map(|objref| objref.write())
    }
}

impl Ambient for Correspondence {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        Vec::new()
    }
}
