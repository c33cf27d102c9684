//! What the calls by a presentation context go to.

use super::state::{Accepting, Target};
use crate::pdu::Syntax;

use crate::{
    ENDPOINT_MAPPER, MANAGEMENT, OBJECT_EXPORTER, REMOTE_ACTIVATION, SCM_ACTIVATOR, iid_of, version_of,
};
use bytes::Bytes;
use everywire_model::InterfaceKind;
use uuid::Uuid;

impl Accepting {
    /// What an interface's calls go to. COM's interfaces have no versions, and each call names its object; which interfaces
    /// that has is decided then. `None`: there is no such interface.
    pub(super) fn target(&self, syntax: &Syntax) -> Option<Target> {
        let objects = (syntax.major, syntax.minor) == (0, 0);
        match syntax.id {
            ENDPOINT_MAPPER => (syntax.major == 3).then_some(Target::Node),
            MANAGEMENT => (syntax.major == 1).then_some(Target::Node),
            OBJECT_EXPORTER => objects.then_some(Target::Node),
            REMOTE_ACTIVATION | SCM_ACTIVATOR => (syntax.major == 0).then_some(Target::Activation),
            id if id == Uuid::nil() => None,
            _ => match self.procedures(syntax) {
                Some(key) => Some(Target::Procedures(key)),
                None => objects.then_some(Target::Objects),
            },
        }
    }

    /// The object that serves an interface of plain DCE/RPC: of this major version, and of no lower minor one (C706 6.2.4.2).
    fn procedures(&self, syntax: &Syntax) -> Option<Bytes> {
        let exporter = self.exporter.as_ref()?;
        exporter.serving(syntax.id).into_iter().find(|key| {
            exporter.objects().servants(key).iter().any(|servant| {
                let interface = servant.interface();
                let (major, minor) = version_of(interface);
                interface.kind == InterfaceKind::Procedures
                    && iid_of(interface) == syntax.id
                    && major == syntax.major
                    && minor >= syntax.minor
            })
        })
    }
}
