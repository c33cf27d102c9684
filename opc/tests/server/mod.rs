//! A server of ours over DCOM, and a client that uses the generated interfaces, on TCP of this machine.

mod callbacks;
mod faults;
mod hostile;
mod mangled;
mod objects;

use everywire::model::guid;
use everywire::{Failure, Node, Ref, Remote};
use everywire_opc::contract::{DataAccessServer, GUID, OPCITEMDEF};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Code, Data, Item, Settings, Table, VarType};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As long as nothing is wrong nobody waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a90";

/// A plant and a client, each on a node of its own.
pub(crate) struct Site {
    pub(crate) table: Arc<Table>,
    pub(crate) server: Server,
    pub(crate) node: Node,
    pub(crate) client: Node,
    pub(crate) address: String,
}

pub(crate) fn table() -> Arc<Table> {
    let table = Arc::new(Table::new());
    table.extend([
        (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
        (Item::new("Tank.Valve", VarType::BOOL).writable(), Data::Bool(false)),
        (Item::new("Tank.Setpoint", VarType::I2).writable(), Data::I2(10)),
        (Item::new("Name", VarType::BSTR), "tank one".into()),
    ]);
    table
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::at(Node::new())
    }

    /// On a node of the test's.
    pub(crate) fn at(node: Node) -> Self {
        Self::served(node, "level=none")
    }

    /// The same with options of its address.
    pub(crate) fn served(node: Node, options: &str) -> Self {
        Self::with(node, options, Settings::default())
    }

    /// The same with settings of its engine.
    pub(crate) fn with(node: Node, options: &str, settings: Settings) -> Self {
        let table = table();
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        let server = Server::serve(&node, info, Arc::clone(&table) as Arc<_>, settings).expect("a thread");
        let address = node.listen(&format!("dcom://127.0.0.1:0?{options}")).expect("a port");
        let client = Node::new();
        client.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        Self { table, server, node, client, address }
    }

    /// An object of the class, known by one of its interfaces.
    pub(crate) fn connect<I: Remote + ?Sized>(&self) -> Ref<I> {
        self.client.connect::<I>(&self.class_address()).expect("an address")
    }

    /// Where objects of the class are to be had.
    pub(crate) fn class_address(&self) -> String {
        let place = self.address.trim_end_matches('/');
        let place = place.split('?').next().unwrap_or(place).trim_end_matches('/');
        format!("{place}/{CLASS}?level=none")
    }
}

/// A place at an address of the loopback network that no other process has: what listens there and ends may listen at its port again,
/// which nobody else takes meanwhile, and least of all whoever looks for it there.
pub(crate) fn own_place() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}:0", 64 | (high & 0x3f))
}

/// Waits until something is so: objects end with the next calls or a moment later.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

pub(crate) fn guid_of(text: &str) -> GUID {
    let (data1, data2, data3, data4) = guid::parse(text).expect("a GUID");
    GUID { data1, data2, data3, data4 }
}

pub(crate) fn iid<I: Remote + ?Sized>() -> GUID {
    guid_of(&I::interface().id)
}

/// Adds a group, known by an interface.
pub(crate) fn add_group<I: Remote + ?Sized>(
    site: &Site,
    server: &Ref<dyn DataAccessServer>,
    name: &str,
    rate: u32,
) -> (u32, Ref<I>) {
    let added = server.add_group(name, 1, rate, 77, &None, &None, 0x409, &iid::<I>()).expect("a group");
    let (handle, _, reference) = added.value;
    (handle, site.client.narrow(reference.expect("an object")).expect("of this interface"))
}

pub(crate) fn def(id: &str, client: u32) -> OPCITEMDEF {
    OPCITEMDEF {
        access_path: Some(String::new()),
        item_id: Some(id.to_owned()),
        active: 1,
        client,
        blob: everywire::Bytes::new(),
        requested_type: 0,
        reserved: 0,
    }
}

pub(crate) fn code_of<T>(result: Result<T, Failure>) -> Option<Code> {
    result.err().map(|failure| Code::of(&failure))
}
