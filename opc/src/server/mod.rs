//! A server of OPC Data Access over DCOM: the objects that clients see, over the engine.
//!
//! * Whoever asks for the class gets an object of their own (`object`), which is one [`Client`](crate::Client) of the engine. When the last reference
//!   to it is released, or its client dies, it is dropped, and its groups with it.
//! * A group is an object that is served under a key from AddGroup to RemoveGroup, or to the end of its client, whoever refers to it.
//! * Enumerators are lent: they end with the last reference.
//! * Servants hold the house weakly, and the house holds the node weakly: whoever made the [`Server`] decides how long it lives.

mod browsing;
mod categories;
mod driver;
mod enumerators;
mod group;
mod later;
mod list;
mod object;
mod outbox;
mod pool;
mod wire;

pub use categories::CATEGORY_MANAGER;
pub use list::{OPC_ENUM, OpcEnum};

use crate::Code;
use crate::contract::{DataAccessServer, DataAccessServerShutdownRequest};
use crate::engine::{Engine, Settings};
use crate::group::{Group, Report};
use crate::source::Source;
use crate::sync::lock;
use crate::time::{FileTime, Moment};
use driver::{Clock, Driver, Hearers};
use everywire::{Failure, Initiator, Kind, Signaller, WeakNode};
use everywire_model::signal::Backlog;
use outbox::Outbox;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use uuid::Uuid;

/// What a server is called, and of whom it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its CLSID: `4f0b2d8e-...`. Each server has one of its own, which it keeps for ever.
    pub class: String,
    /// Its name for programs, with a version: `Vendor.Server.1`.
    pub prog_id: String,
    /// The same without a version: `Vendor.Server`.
    pub version_independent: String,
    /// Its name for people.
    pub name: String,
    /// Whose it is, for GetStatus.
    pub vendor: String,
    /// Its version: major, minor, build.
    pub version: (u16, u16, u16),
}

impl ServerInfo {
    /// A server of this class and name, `Vendor.Server`, version 1.0.
    #[must_use]
    pub fn new(class: impl Into<String>, name: &str) -> Self {
        Self {
            class: class.into().to_ascii_lowercase(),
            prog_id: format!("{name}.1"),
            version_independent: name.to_owned(),
            name: name.to_owned(),
            vendor: "Everywire".to_owned(),
            version: (1, 0, 0),
        }
    }
}

impl ServerInfo {
    /// A server of this name, whose CLSID is made from the name: always the same one (RFC 9562, 5.5).
    #[must_use]
    pub fn named(name: &str) -> Self {
        let class = Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("opcda:{name}").as_bytes());
        Self::new(class.to_string(), name)
    }
}

/// A server that is served.
pub struct Server {
    house: Arc<ServerContext>,
}

/// What a server's objects share.
struct ServerContext {
    info: ServerInfo,
    engine: Arc<Engine>,
    node: WeakNode,
    clock: Clock,
    started: FileTime,
    driver: OnceLock<Driver>,
    /// What groups have to tell, by their handles.
    groups: Mutex<HashMap<u32, Arc<Outbox>>>,
    /// How to tell those who use an object of the class, by its key.
    objects: Mutex<HashMap<everywire::Bytes, Signaller<dyn DataAccessServer>>>,
}

impl Server {
    /// Serves a source's items as an OPC server on a node, which listens where it is told to. It ends when what this returns is dropped.
    ///
    /// # Errors
    /// The class is no CLSID; the system gives no thread.
    pub fn serve(
        node: &everywire::Node,
        info: ServerInfo,
        source: Arc<dyn Source>,
        settings: Settings,
    ) -> Result<Self, Failure> {
        if everywire_model::guid::parse(&info.class).is_none() {
            let message = format!("`{}` is no CLSID", info.class);
            return Err(Failure::new(Kind::BadArgument, Initiator::User, message)
                .with_hint("a CLSID is written as 4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a90"));
        }
        let clock = Clock::new();
        let engine = Engine::new(source, settings);
        let house = Arc::new(ServerContext {
            engine: Arc::clone(&engine),
            node: node.downgrade(),
            clock,
            started: FileTime::now(),
            driver: OnceLock::new(),
            groups: Mutex::default(),
            objects: Mutex::default(),
            info,
        });
        // What is kept for clients counts as what their connections hold.
        let kept_by = node.downgrade();
        engine.held.count_in(Box::new(move |before, now| {
            kept_by.upgrade().map_or(usize::MAX, |node| node.keeps(before, now))
        }));
        let weak = Arc::downgrade(&house);
        let hearers = Arc::new(GroupListener(Weak::clone(&weak)));
        let driver = Driver::start(&engine, clock, hearers).map_err(|error| {
            Failure::new(Kind::Internal, Initiator::Here, format!("the system gives no thread: {error}"))
        })?;
        // It is set once, here.
        let _ = house.driver.set(driver);
        node.export_class::<dyn DataAccessServer>(&house.info.class, move |key| {
            let house = weak.upgrade().ok_or(Code::FAIL)?;
            let object: Arc<dyn DataAccessServer> = object::ServerObject::open(&house, key)?;
            Ok(object)
        });
        Ok(Self { house })
    }

    /// What it is called.
    #[must_use]
    pub fn info(&self) -> &ServerInfo {
        &self.house.info
    }

    /// Its engine: who uses it, and what.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.house.engine
    }

    /// Asks all clients to leave, and says why (IOPCShutdown).
    ///
    /// # Errors
    /// The reason cannot be sent to one of them; the others are asked.
    pub fn request_shutdown(&self, reason: &str) -> Result<(), Failure> {
        let objects: Vec<_> = lock(&self.house.objects).values().cloned().collect();
        let request = DataAccessServerShutdownRequest { reason: reason.to_owned() };
        objects.iter().map(|signaller| signaller.emit(&request)).fold(Ok(()), Result::and)
    }
}

/// Signals of a group, and their bytes, that may wait for a listener before updates do.
const SIGNALS: usize = 4;
const BYTES: usize = 1 << 20;

/// Those who listen to the groups of a server.
struct GroupListener(Weak<ServerContext>);

impl Hearers for GroupListener {
    fn tell(&self, group: &Group, report: Report) {
        if let Some(house) = self.0.upgrade() {
            house.tell(group.server_handle(), report);
        }
    }

    fn are_behind(&self, group: &Group) -> bool {
        let outbox = self.0.upgrade().and_then(|house| house.outbox(group.server_handle()));
        let Backlog { signals, bytes, .. } = outbox.map(|outbox| outbox.backlog()).unwrap_or_default();
        signals >= SIGNALS || bytes >= BYTES
    }

    fn are_late(&self, group: &Group) {
        let Some(house) = self.0.upgrade() else { return };
        let Some(outbox) = house.outbox(group.server_handle()) else { return };
        let listener = outbox.backlog().listener;
        let name = group.state().map(|state| state.name).unwrap_or_default();
        // What others chose is not to command a terminal.
        let (listener, name) = (listener.escape_debug(), name.escape_debug());
        let what = format!(
            "the listener of {listener} takes updates of its group \"{name}\" more slowly than they come: it gets the newest values later, with OPC_S_DATAQUEUEOVERFLOW"
        );
        outbox.undelivered(&Failure::new(Kind::LimitExceeded, Initiator::Peer, what));
    }
}

impl ServerContext {
    /// What a group has to tell.
    fn outbox(&self, group: u32) -> Option<Arc<Outbox>> {
        lock(&self.groups).get(&group).cloned()
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Tells those who listen to a group; it does not wait for them.
    fn tell(&self, group: u32, report: Report) {
        let Some(outbox) = self.outbox(group) else { return };
        let Some(driver) = self.driver.get() else { return };
        if outbox.post(report) {
            let sending = Arc::clone(&outbox);
            if !driver.tellers.spawn(move || sending.send()) {
                // Nobody else would send what is in there.
                outbox.send();
            }
        }
    }

    /// Has something done that may wait for the source.
    fn spawn(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Code> {
        let driver = self.driver.get().ok_or(Code::FAIL)?;
        if driver.readers.spawn(job) { Ok(()) } else { Err(Code::OUT_OF_MEMORY) }
    }
}
