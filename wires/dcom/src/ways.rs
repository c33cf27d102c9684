//! What the options, leases and components of a profile of this wire say: where it leads, and how calls are
//! protected there.
//!
//! Invariant: a profile of this wire leads to one of four: an object elsewhere (a `Proxy` as its lease, or
//! `TAG_OBJREF` while it is not unmarshalled), an object passed on by this node (`TAG_PASSED`), an interface
//! of a node (`TAG_SYSTEM`), or a class to be activated (none of them, and a key).

use crate::exporter::Proxy;
use crate::security::Security;
use crate::tags::{TAG_OBJREF, TAG_PASSED, TAG_SYSTEM};
use crate::wine::interface_of;
use bytes::Bytes;
use everywire_idl::midl::clsid_of_key;
use everywire_model::{Endpoint, Options, Profile};
use std::sync::Arc;
use uuid::Uuid;

impl Security {
    /// The security of a profile: its options, or else what is usual for its first endpoint.
    pub fn of(profile: &Profile) -> Arc<Self> {
        profile.options.get().unwrap_or_else(|| Arc::new(Self::of_endpoint(profile.endpoints.first())))
    }
}

impl Options for Security {
    /// What must be the same, beside endpoint and options, for two profiles to share a connection: the
    /// interface, where the peer is Wine, whose connections carry one; nothing elsewhere.
    fn scope(&self, profile: &Profile) -> Bytes {
        let interface = interface_of(profile, &self.dialect);
        interface.map(|iid| Bytes::copy_from_slice(&iid.to_bytes_le())).unwrap_or_default()
    }
}

/// The class that a way leads to, if it does not lead to an object.
pub fn class_of(profile: &Profile) -> Option<Uuid> {
    let object = profile.lease.get::<Proxy>().is_some()
        || profile.component(TAG_OBJREF).is_some()
        || profile.component(TAG_PASSED).is_some()
        || profile.component(TAG_SYSTEM).is_some();
    (!object && !profile.key.is_empty()).then(|| clsid_of_key(&profile.key))
}

/// A way to an interface of the node at an endpoint; `ipid` is the object, where the interface has one.
pub fn system(endpoints: Vec<Endpoint>, security: &Arc<Security>, ipid: Option<Uuid>) -> Profile {
    Profile {
        wire: "dcom",
        version: crate::VERSION,
        endpoints,
        key: ipid.map(|ipid| Bytes::copy_from_slice(&ipid.to_bytes_le())).unwrap_or_default(),
        components: vec![(TAG_SYSTEM, Bytes::new())],
        options: Arc::clone(security).into(),
        ..Profile::default()
    }
}
