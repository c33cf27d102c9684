//! OPC Data Access, over DCOM.

use super::shop::listen;
use super::tape::{Order, Tape};
use super::{Scene, Set};
use crate::common::foreign::PATIENCE;
use everywire::model::guid;
use everywire::{Node, Ref, Remote};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, DataAccessGroupOnReadComplete,
    DataAccessGroupOnWriteComplete, DataAccessServer, DataAccessServerShutdownRequest, GUID, IOPCAsyncIO2,
    IOPCBrowseServerAddressSpace, IOPCGroupStateMgt, IOPCItemMgt, IOPCItemProperties, IOPCServer,
    IOPCServerList, IOPCSyncIO, OPCBROWSETYPE, OPCDATASOURCE, OPCITEMDEF,
};
use everywire_opc::server::{OPC_ENUM, OpcEnum, Server, ServerInfo};
use everywire_opc::{Data, FileTime, Item, Settings, Table, VarType, Vqt};
use std::sync::Arc;
use std::sync::mpsc::channel;

pub const SET: Set = Set {
    folder: "opc",
    wire: "dcom",
    title: "OPC Data Access, over DCOM",
    scenes: &[
        Scene {
            name: "list-of-servers",
            about: "OpcEnum is the object that knows the servers of a machine. The client asks it for the classes of a category.",
            read: "OPC Common Definitions 1.1, OPC server browser",
            play: |tape| {
                let plant = Plant::new(tape);
                let address = format!("dcom://127.0.0.1:{}/{OPC_ENUM}?level=none", plant.port);
                let list = plant.client.connect::<dyn IOPCServerList>(&address).expect("an address");
                list.clsid_from_prog_id("Everywire.Tank").unwrap();
                tape.begin();
                let found = list
                    .enum_classes_of_categories(&[guid_of(DATA_ACCESS_2)], &[])
                    .unwrap()
                    .expect("an enumerator");
                assert_eq!(found.next(10).unwrap().value.len(), 1);
                tape.stop();
            },
        },
        Scene {
            name: "class-of-a-name",
            about: "The client knows the name of a server and asks OpcEnum for its class.",
            read: "OPC Common Definitions 1.1, IOPCServerList::CLSIDFromProgID",
            play: |tape| {
                let plant = Plant::new(tape);
                let address = format!("dcom://127.0.0.1:{}/{OPC_ENUM}?level=none", plant.port);
                let list = plant.client.connect::<dyn IOPCServerList>(&address).expect("an address");
                list.clsid_from_prog_id("Everywire.Tank").unwrap();
                tape.begin();
                list.clsid_from_prog_id("Everywire.Tank").unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "status",
            about: "The client asks the server how it is: GetStatus has the times of start, of now and of the last update, the state, \
                    the number of groups and the vendor.",
            read: "OPC Data Access 2.05a, IOPCServer::GetStatus",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.connect::<dyn IOPCServer>();
                server.get_error_string(0, 0x409).ok();
                tape.begin();
                assert!(server.get_status().unwrap().is_some());
                tape.stop();
            },
        },
        Scene {
            name: "error-text",
            about: "The client asks for the text of an error code, here OPC_E_UNKNOWNITEMID.",
            read: "OPC Data Access 2.05a, GetErrorString",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.connect::<dyn IOPCServer>();
                server.get_status().unwrap();
                tape.begin();
                server.get_error_string(0xC004_0007_u32.cast_signed(), 0x409).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "browse",
            about: "The client browses the names of all items as a flat list. The answer is an enumerator, an object of its own, whose \
                    Next gives the names.",
            read: "OPC Data Access 2.05a, IOPCBrowseServerAddressSpace",
            play: |tape| {
                let plant = Plant::new(tape);
                let browsing = plant.connect::<dyn IOPCBrowseServerAddressSpace>();
                browsing.query_organization().unwrap();
                tape.begin();
                let found = browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "", 0, 0).unwrap();
                let names = found.value.expect("an enumerator").next(10).unwrap();
                assert_eq!(names.value.len(), 2);
                tape.stop();
            },
        },
        Scene {
            name: "item-properties",
            about: "Properties of an item by their numbers: 2 is its value, 100 its unit, and 999 is not there. The second array of the \
                    answer has a code for each.",
            read: "OPC Data Access 2.05a, IOPCItemProperties",
            play: |tape| {
                let plant = Plant::new(tape);
                let properties = plant.connect::<dyn IOPCItemProperties>();
                properties.query_available_properties("x").ok();
                tape.begin();
                let found = properties.get_item_properties("Level", &[2, 100, 999]).unwrap();
                assert_eq!(found.value.1.len(), 3);
                tape.stop();
            },
        },
        Scene {
            name: "add-group",
            about: "The client adds a group: its name, whether it is active, the update rate that it wants in milliseconds, and a number \
                    of its own. The server answers with its own number, the rate that it can do, and the object.",
            read: "OPC Data Access 2.05a, AddGroup",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.server_object();
                tape.begin();
                let iid = iid::<dyn IOPCItemMgt>();
                server.add_group("g", 1, 1000, 77, &None, &None, 0x409, &iid).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "add-items",
            about: "Two items are added to the group, each with a number of the client. One is there: the server gives it a number, its type \
                    and its rights. The other is unknown, so the method succeeds in part: S_FALSE, and a code for each item.",
            read: "OPC Data Access 2.05a, IOPCItemMgt::AddItems",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.server_object();
                let (_, group) = plant.group(&server);
                group.validate_items(&[], 0).ok();
                tape.begin();
                let added = group.add_items(&[def("Level", 1), def("Nothing", 2)]).unwrap();
                assert_eq!(added.code, 1);
                tape.stop();
            },
        },
        Scene {
            name: "synchronous-read",
            about: "A read from the cache: for each item the number of the client, the time, the quality (192: good) and the value as a VARIANT.",
            read: "OPC Data Access 2.05a, IOPCSyncIO::Read, quality",
            play: |tape| {
                let plant = Plant::new(tape);
                let (_server, items, group) = plant.items_that_are(0);
                let io = group.query::<dyn IOPCSyncIO>().unwrap().expect("it has it");
                io.read(OPCDATASOURCE::OpcDsCache, &items[..1]).unwrap();
                tape.begin();
                io.read(OPCDATASOURCE::OpcDsCache, &items[..1]).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "synchronous-write",
            about: "A write of two items. The first may not be written: OPC_E_BADRIGHTS for it, and S_FALSE for the whole.",
            read: "OPC Data Access 2.05a, IOPCSyncIO::Write",
            play: |tape| {
                let plant = Plant::new(tape);
                let (_server, items, group) = plant.items_that_are(0);
                let io = group.query::<dyn IOPCSyncIO>().unwrap().expect("it has it");
                io.read(OPCDATASOURCE::OpcDsCache, &items).unwrap();
                tape.begin();
                let values = [Data::R4(1.5), Data::I2(99)].map(|data| data.to_variant());
                assert_eq!(io.write(&items, &values).unwrap().code, 1);
                tape.stop();
            },
        },
        Scene {
            name: "data-change",
            about: "The client advises its sink. The server calls OnDataChange with all values first, and then with each that changes: \
                    arrays of the client's numbers, values, qualities, times and errors.",
            read: "OPC Data Access 2.05a, IOPCDataCallback, connection points",
            play: |tape| {
                let plant = Plant::new(tape);
                let (_server, _, group) = plant.items();
                let (tell, told) = channel();
                let _listening = group
                    .signals()
                    .on(move |change: DataAccessGroupOnDataChange| {
                        tell.send(change.items).unwrap_or_default()
                    })
                    .unwrap();
                told.recv_timeout(PATIENCE).expect("all values");
                tape.wait_until_answered("dcom");
                tape.begin();
                plant.table.put("Level", Vqt::good(51.0_f32, FileTime::now())).unwrap();
                told.recv_timeout(PATIENCE).expect("a change");
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "asynchronous-read",
            about: "The client begins a read with a number of its own (1001) and goes on. The server answers with a number to cancel it by, \
                    and calls OnReadComplete when the values are there.",
            read: "OPC Data Access 2.05a, IOPCAsyncIO2::Read, OnReadComplete",
            play: |tape| {
                let plant = Plant::new(tape);
                let (_server, items, group) = plant.items_that_are(0);
                let (tell, told) = channel();
                let _listening = group
                    .signals()
                    .on(move |done: DataAccessGroupOnReadComplete| {
                        tell.send(done.transaction).unwrap_or_default()
                    })
                    .unwrap();
                let io = group.query::<dyn IOPCAsyncIO2>().unwrap().expect("it has it");
                io.read(&items[..1], 1000).unwrap();
                told.recv_timeout(PATIENCE).expect("an end");
                tape.wait_until_answered("dcom");
                tape.begin();
                tape.order(Order::ByConnection);
                io.read(&items[..1], 1001).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(1001));
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "asynchronous-write",
            about: "The same for a write: OnWriteComplete has a code for each item, and no values.",
            read: "OPC Data Access 2.05a, IOPCAsyncIO2::Write, OnWriteComplete",
            play: |tape| {
                let plant = Plant::new(tape);
                let (_server, items, group) = plant.items_that_are(0);
                let (tell, told) = channel();
                let _listening = group
                    .signals()
                    .on(move |done: DataAccessGroupOnWriteComplete| {
                        tell.send(done.transaction).unwrap_or_default()
                    })
                    .unwrap();
                let io = group.query::<dyn IOPCAsyncIO2>().unwrap().expect("it has it");
                let value = [Data::I2(5).to_variant()];
                io.write(&items[1..], &value, 1000).unwrap();
                told.recv_timeout(PATIENCE).expect("an end");
                tape.wait_until_answered("dcom");
                tape.begin();
                tape.order(Order::ByConnection);
                io.write(&items[1..], &value, 1001).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(1001));
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "group-state",
            about: "The client reads the state of a group: rate, whether it is active, name, time bias, deadband, locale and both numbers.",
            read: "OPC Data Access 2.05a, IOPCGroupStateMgt::GetState",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.server_object();
                let (_, group) = plant.group(&server);
                let state = group.query::<dyn IOPCGroupStateMgt>().unwrap().expect("it has it");
                state.get_state().unwrap();
                tape.begin();
                state.get_state().unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "remove-group",
            about: "The client removes the group by the server's number.",
            read: "OPC Data Access 2.05a, RemoveGroup",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.server_object();
                let (handle, _group) = plant.group(&server);
                tape.begin();
                server.remove_group(handle, 0).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "shutdown-request",
            about: "The server asks its clients to leave, by IOPCShutdown, with a reason.",
            read: "OPC Common Definitions 1.1, IOPCShutdown",
            play: |tape| {
                let plant = Plant::new(tape);
                let server = plant.server_object();
                let (tell, told) = channel();
                let _listening = server
                    .signals()
                    .on(move |asked: DataAccessServerShutdownRequest| {
                        tell.send(asked.reason).unwrap_or_default()
                    })
                    .unwrap();
                plant.service.request_shutdown("maintenance").expect("a reason");
                told.recv_timeout(PATIENCE).expect("a reason");
                tape.wait_until_answered("dcom");
                tape.begin();
                plant.service.request_shutdown("maintenance").expect("a reason");
                told.recv_timeout(PATIENCE).expect("a reason");
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
    ],
};

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a90";
const AT: &str = "dcom://127.0.0.1:0?level=none&publish=127.0.0.1:PORT";

/// A plant of two items, and a client.
struct Plant {
    table: Arc<Table>,
    service: Server,
    _node: Node,
    client: Node,
    port: u16,
}

impl Plant {
    fn new(tape: &Tape) -> Self {
        let table = Arc::new(Table::new());
        table.extend([
            (Item::new("Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
            (Item::new("Setpoint", VarType::I2).writable(), Data::I2(10)),
        ]);
        let (node, client) = (Node::new(), Node::new());
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        OpcEnum::serve(&node).add(&info);
        let service =
            Server::serve(&node, info, Arc::clone(&table) as Arc<_>, Settings::default()).expect("a thread");
        let relay = tape.relay("client", "server");
        relay.to(&listen(&node, AT, relay.port));
        let back = tape.relay("server", "client");
        back.to(&listen(&client, AT, back.port));
        Self { table, service, _node: node, client, port: relay.port }
    }

    fn connect<I: Remote + ?Sized>(&self) -> Ref<I> {
        let address = format!("dcom://127.0.0.1:{}/{CLASS}?level=none", self.port);
        self.client.connect::<I>(&address).expect("an address")
    }

    /// An object of the server, which was called before.
    fn server_object(&self) -> Ref<dyn DataAccessServer> {
        let server = self.connect::<dyn DataAccessServer>();
        server.get_status().expect("it answers");
        server
    }

    fn group(&self, server: &Ref<dyn DataAccessServer>) -> (u32, Ref<dyn DataAccessGroup>) {
        self.group_that_is(1, server)
    }

    fn group_that_is(
        &self,
        active: i32,
        server: &Ref<dyn DataAccessServer>,
    ) -> (u32, Ref<dyn DataAccessGroup>) {
        let iid = iid::<dyn DataAccessGroup>();
        let (handle, _, group) =
            server.add_group("g", active, 10, 77, &None, &None, 0x409, &iid).expect("a group").value;
        (handle, self.client.narrow(group.expect("an object")).expect("of this interface"))
    }

    /// A group with both items.
    fn items(&self) -> (Ref<dyn DataAccessServer>, Vec<u32>, Ref<dyn DataAccessGroup>) {
        self.items_that_are(1)
    }

    /// The same; whether the group tells of changes.
    fn items_that_are(&self, active: i32) -> (Ref<dyn DataAccessServer>, Vec<u32>, Ref<dyn DataAccessGroup>) {
        let server = self.server_object();
        let (_, group) = self.group_that_is(active, &server);
        let added = group.add_items(&[def("Level", 1), def("Setpoint", 2)]).expect("it lives");
        // A group ends with its server object.
        (server, added.value.0.iter().map(|result| result.server).collect(), group)
    }
}

/// The category of servers of Data Access 2.0.
const DATA_ACCESS_2: &str = "63d5f432-cfe4-11d1-b2c8-0060083ba1fb";

fn iid<I: Remote + ?Sized>() -> GUID {
    guid_of(&I::interface().id)
}

fn guid_of(text: &str) -> GUID {
    let (data1, data2, data3, data4) = guid::parse(text).expect("a GUID");
    GUID { data1, data2, data3, data4 }
}

fn def(id: &str, client: u32) -> OPCITEMDEF {
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
