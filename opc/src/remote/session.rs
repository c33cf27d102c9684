//! One object of a server, from its activation until it or the connection to it is no more.

use super::address::Address;
use super::list;
use super::trouble::{advised, leaves_nobody};
use super::wire::{iid, missing};
use crate::contract::{
    DataAccessServer, DataAccessServerShutdownRequest, IOPCBrowse, IOPCBrowseServerAddressSpace, IOPCCommon,
    IOPCGroupStateMgt, IOPCItemIO, IOPCItemProperties, IOPCServer, OPCSERVERSTATUS,
};
use crate::sync::lock;
use everywire::{Failure, Initiator, Kind, Node, Object, Ref, Remote, Subscription};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How long a server may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a client calls itself where nobody says (IOPCCommon::SetClientName).
const CLIENT: &str = "Everywire";

/// Who is told that the server asks its clients to leave, as long as something is held.
type ShutdownListener = (Weak<()>, Box<dyn Fn(&str) + Send>);

/// An object of a server.
pub(super) struct Session {
    pub(super) server: Ref<dyn IOPCServer>,
    /// By it the server is asked how it is: it does not wait for ever.
    asking: Ref<dyn IOPCServer>,
    object: Object,
    /// 3.0: none, if it is to be left alone.
    pub(super) browse: Option<Ref<dyn IOPCBrowse>>,
    pub(super) items: Option<Ref<dyn IOPCItemIO>>,
    pub(super) is_plain: bool,
    /// The position of a browser is the object's: one browses at a time.
    pub(super) position: Mutex<()>,
    pub(super) reading: Mutex<Option<super::items::ReadGroup>>,
    leavers: Arc<Mutex<Vec<ShutdownListener>>>,
    shutdown: Mutex<Option<Subscription>>,
    /// Last, so that it is dropped last: where nobody else holds it, it ends then, and can give back only what was let go before.
    pub(super) node: Node,
}

impl Session {
    pub(super) fn open(node: &Node, address: &Address) -> Result<Self, Failure> {
        let object = match address.object() {
            Some(object) => node.object(&object)?,
            None => activated(node, address)?,
        };
        let server = object.clone().into_typed::<dyn IOPCServer>();
        // The first call activates the object, so it tells what is wrong.
        if let Some(common) = server.query::<dyn IOPCCommon>().map_err(advised)? {
            // What it makes of the name is its own affair.
            let _ = common.set_client_name(CLIENT);
        }
        let asking = object.with_deadline(Some(PATIENCE)).into_typed::<dyn IOPCServer>();
        let is_plain = address.is_plain();
        let (browse, items) = if is_plain { (None, None) } else { (server.query()?, server.query()?) };
        Ok(Self {
            server,
            asking,
            object,
            browse,
            items,
            is_plain,
            position: Mutex::default(),
            reading: Mutex::default(),
            leavers: Arc::default(),
            shutdown: Mutex::default(),
            node: node.clone(),
        })
    }

    /// How the server says it is.
    pub(super) fn status(&self) -> Result<OPCSERVERSTATUS, Failure> {
        self.asking.get_status().map_err(advised)?.ok_or_else(|| missing("status"))
    }

    /// The address space, by position.
    pub(super) fn space(&self) -> Result<Ref<dyn IOPCBrowseServerAddressSpace>, Failure> {
        self.required("IOPCBrowseServerAddressSpace", "it cannot be browsed; its items are to be named")
    }

    /// Properties, as 2.05a has them.
    pub(super) fn properties(&self) -> Result<Ref<dyn IOPCItemProperties>, Failure> {
        self.required("IOPCItemProperties", "it tells no properties")
    }

    /// Adds a group and makes something of it: of its handle, the rate that the server chose, and itself. One of which nothing can be made
    /// is not left behind.
    pub(super) fn with_group<T>(
        &self,
        is_active: bool,
        rate: u32,
        client: u32,
        deadband: Option<f32>,
        make: impl FnOnce(u32, u32, Ref<dyn IOPCGroupStateMgt>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (active, riid) = (i32::from(is_active), iid::<dyn IOPCGroupStateMgt>());
        let added = self.server.add_group("", active, rate, client, &None, &deadband, 0, &riid)?.value;
        let (handle, revised, group) = added;
        let group = group.ok_or_else(|| missing("group")).and_then(|group| self.node.narrow(group));
        group.and_then(|group| make(handle, revised, group)).inspect_err(|failure| {
            if !leaves_nobody(failure) {
                self.remove_group(handle);
            }
        })
    }

    /// Has a group removed. By force, since references to the group are still held here: else it would end only when they are given back, some
    /// time later. A server that does not remove it does so when the object is released.
    pub(super) fn remove_group(&self, handle: u32) {
        let _ = self.server.remove_group(handle, 1);
    }

    fn required<I: Remote + ?Sized>(&self, name: &str, so: &str) -> Result<Ref<I>, Failure> {
        self.server.query()?.ok_or_else(|| {
            Failure::new(Kind::Unsupported, Initiator::Peer, format!("the server has no {name}: {so}"))
        })
    }

    /// Has somebody told when the server asks its clients to leave (IOPCShutdown), as long as `held` is. One sink serves all.
    pub(super) fn on_shutdown(
        &self,
        held: &Arc<()>,
        leaver: impl Fn(&str) + Send + 'static,
    ) -> Result<(), Failure> {
        {
            let mut leavers = lock(&self.leavers);
            leavers.retain(|(held, _)| held.strong_count() > 0);
            leavers.push((Arc::downgrade(held), Box::new(leaver)));
        }
        let mut shutdown = lock(&self.shutdown);
        if shutdown.is_some() {
            return Ok(());
        }
        let leavers = Arc::clone(&self.leavers);
        let object = self.object.clone().into_typed::<dyn DataAccessServer>();
        *shutdown = Some(object.signals().on(move |asked: DataAccessServerShutdownRequest| {
            lock(&leavers).iter().for_each(|(_, leaver)| leaver(&asked.reason));
        })?);
        Ok(())
    }
}

/// A new object of the server that an address names, once it is called.
fn activated(node: &Node, address: &Address) -> Result<Object, Failure> {
    let server = address.server().ok_or_else(|| {
        Failure::new(Kind::BadReference, Initiator::User, format!("`{address}` names no server"))
            .with_hint("write opcda://HOST/PROGID; `everywire list opcda://HOST` tells which there are")
    })?;
    let class = match address.class() {
        Some(class) => class,
        None => list::class_of(node, address, server)?,
    };
    node.object(&address.of_class(&class)?)
}
