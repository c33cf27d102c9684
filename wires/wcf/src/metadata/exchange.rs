//! The answering side of WS-MetadataExchange.
//!
//! One servant stands by for every object of a node (`wire_state::Node`). It is called at `KEY/mex`, as
//! WCF's clients expect, at `mex` for the whole node, and at the object itself, since some clients ask
//! there.

use super::contract;
use super::service::Service;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Initiator, Interface, Kind, Objects, Request, Servant};
use std::sync::Arc;

/// Answers for every object, and for the node as a whole.
pub(super) struct MetadataServant {
    pub(super) objects: Arc<dyn Objects>,
}

impl MetadataServant {
    /// The sections about the object that a key is below, or is.
    fn sections(&self, key: &[u8]) -> Result<String, Failure> {
        let service =
            Service::of(&*self.objects, described(key)).or_else(|| Service::of(&*self.objects, key));
        let none = || Failure::new(Kind::NoObject, Initiator::Peer, "there is nothing here to be described");
        service.map(|service| service.describe(None).sections()).ok_or_else(none)
    }
}

/// The key of the object that a path of metadata is about.
pub(crate) fn described(key: &[u8]) -> &[u8] {
    let (rest, last) = match key.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (key.get(..at).unwrap_or_default(), key.get(at + 1..).unwrap_or_default()),
        None => (&b""[..], key),
    };
    if last.eq_ignore_ascii_case(b"mex") { rest } else { key }
}

impl Servant for MetadataServant {
    fn interface(&self) -> &Interface {
        contract::interface()
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            if request.index() != 0 {
                return Err(no_operation(contract::interface()));
            }
            let sections = self.sections(request.key());
            request.reply(sections.map(|sections| (sections,)))
        });
    }
}
