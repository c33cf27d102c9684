//! OpcEnum: which servers there are, for clients that look for them (OPC Common 1.10, 6).
//!
//! A class of its own, `13486d51-...`, that every OPC client knows. Several servers of one process, or of a whole machine, are put on one
//! list.

use super::ServerInfo;
use super::categories::{CATEGORY_MANAGER, is_ours};
use super::enumerators::{EnumeratorState, lend};
use super::wire::guid_of;
use crate::Code;
use crate::contract::{
    GUID, ICatInformation, IEnumGUID, IOPCEnumGUID, IOPCServerList, IOPCServerList2, OpcServerList,
};
use crate::share::{EnumeratorCharge, Share};
use crate::sync::lock;
pub use crate::wire::OPC_ENUM;
use crate::wire::{DA_2, DA_3, text_of};
use everywire::{Failure, Initiator, Kind, Ref, WeakNode};
use std::sync::{Arc, Mutex};

/// The categories that our servers are in: Data Access 2.0 and 3.0, and how people call them.
pub(super) const CATEGORIES: [(&str, &str); 2] =
    [(DA_2, "OPC Data Access Servers Version 2.0"), (DA_3, "OPC Data Access Servers Version 3.0")];

/// The list of the servers of a machine. Clones are the same list.
#[derive(Clone, Default)]
pub struct OpcEnum {
    servers: Arc<Mutex<Vec<ServerInfo>>>,
    /// What its enumerators cost, whoever has them.
    share: Arc<Share>,
}

/// Enumerators of a list that are not released.
const ENUMERATORS: usize = 4096;

impl OpcEnum {
    /// Serves the list on a node, and the categories of its servers.
    #[must_use]
    pub fn serve(node: &everywire::Node) -> Self {
        let list = Self::default();
        let (held, node_of) = (list.clone(), node.downgrade());
        node.export_class::<dyn OpcServerList>(OPC_ENUM, move |_| {
            let list: Arc<dyn OpcServerList> =
                Arc::new(ListObject { list: held.clone(), node: node_of.clone() });
            Ok(list)
        });
        let (held, node_of) = (list.clone(), node.downgrade());
        node.export_class::<dyn ICatInformation>(CATEGORY_MANAGER, move |_| {
            let list: Arc<dyn ICatInformation> =
                Arc::new(ListObject { list: held.clone(), node: node_of.clone() });
            Ok(list)
        });
        list
    }

    /// Puts a server on the list, in place of another one of the same class.
    pub fn add(&self, server: &ServerInfo) {
        let mut servers = lock(&self.servers);
        servers.retain(|held| held.class != server.class);
        servers.push(server.clone());
    }

    /// Takes a server off the list. Whether it was there.
    pub fn remove(&self, class: &str) -> bool {
        let mut servers = lock(&self.servers);
        let before = servers.len();
        servers.retain(|held| !held.class.eq_ignore_ascii_case(class));
        servers.len() < before
    }

    /// The servers on it.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerInfo> {
        lock(&self.servers).clone()
    }
}

pub(super) struct ListObject {
    pub(super) list: OpcEnum,
    pub(super) node: WeakNode,
}

impl ListObject {
    /// The classes that are in one of the categories: all, if none is named. Our servers require nothing of who uses them.
    fn classes(&self, implemented: &[GUID]) -> Vec<GUID> {
        if !implemented.is_empty() && !implemented.iter().any(is_ours) {
            return Vec::new();
        }
        self.list.servers().iter().map(|server| guid_of(&server.class)).collect()
    }

    /// Room for one more enumerator.
    pub(super) fn seat(&self) -> Result<EnumeratorCharge, Code> {
        self.list.share.enumerator(ENUMERATORS)
    }

    pub(super) fn server(&self, class: &GUID) -> Result<ServerInfo, Failure> {
        let class = text_of(class);
        let found = self.list.servers().into_iter().find(|server| server.class == class);
        found.ok_or_else(|| {
            let message = format!("no server of class {class} is on the list");
            Failure::new(Kind::NoObject, Initiator::User, message).with_code("0x80040154")
        })
    }

    fn class(&self, prog_id: &str) -> Result<GUID, Failure> {
        let is_it = |server: &ServerInfo| {
            server.prog_id.eq_ignore_ascii_case(prog_id)
                || server.version_independent.eq_ignore_ascii_case(prog_id)
        };
        let found = self.list.servers().into_iter().find(is_it);
        found.map(|server| guid_of(&server.class)).ok_or_else(|| {
            let message = format!("no server is called `{prog_id}`");
            // CO_E_CLASSSTRING.
            Failure::new(Kind::NoObject, Initiator::User, message).with_code("0x800401f3")
        })
    }
}

impl IOPCServerList for ListObject {
    fn enum_classes_of_categories(
        &self,
        implemented: &[GUID],
        _required: &[GUID],
    ) -> Result<Option<Ref<dyn IEnumGUID>>, Failure> {
        let tape: Arc<dyn IEnumGUID> = Arc::new(EnumeratorState::<GUID>::of(
            self.node.clone(),
            self.seat()?,
            self.classes(implemented),
        )?);
        lend(&self.node, tape).map(Some)
    }

    fn get_class_details(&self, class_id: &GUID) -> Result<(Option<String>, Option<String>), Failure> {
        let server = self.server(class_id)?;
        Ok((Some(server.prog_id), Some(server.name)))
    }

    fn clsid_from_prog_id(&self, prog_id: &str) -> Result<GUID, Failure> {
        self.class(prog_id)
    }
}

impl IOPCServerList2 for ListObject {
    fn enum_classes_of_categories(
        &self,
        implemented: &[GUID],
        _required: &[GUID],
    ) -> Result<Option<Ref<dyn IOPCEnumGUID>>, Failure> {
        let tape: Arc<dyn IOPCEnumGUID> = Arc::new(EnumeratorState::<GUID>::of(
            self.node.clone(),
            self.seat()?,
            self.classes(implemented),
        )?);
        lend(&self.node, tape).map(Some)
    }

    fn get_class_details(
        &self,
        class_id: &GUID,
    ) -> Result<(Option<String>, Option<String>, Option<String>), Failure> {
        let server = self.server(class_id)?;
        Ok((Some(server.prog_id), Some(server.name), Some(server.version_independent)))
    }

    fn clsid_from_prog_id(&self, prog_id: &str) -> Result<GUID, Failure> {
        self.class(prog_id)
    }
}

impl OpcServerList for ListObject {}
