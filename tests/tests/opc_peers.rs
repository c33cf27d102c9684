//! OPC Data Access with clients that none of us wrote, on port 135 as they look for it, at the levels that Windows demands.

use crate::common::dcom::{address_of, alone, listening, node_opc_da, opc_impacket, utgard};
use crate::common::foreign::{PATIENCE, run, until};
use everywire::Node;
use everywire::model::guid;
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, DataAccessServer, GUID, IOPCItemMgt, OPCITEMDEF,
};
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Code, Data, Item, Settings, Table, VarType};
use std::sync::Arc;
use std::sync::mpsc::channel;

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a91";

/// A server with a tank on port 135, and OpcEnum.
fn serving(options: &str) -> (Node, Server, Arc<Table>) {
    let table = Arc::new(Table::new());
    table.extend([
        (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
        (Item::new("Tank.Valve", VarType::BOOL).writable(), Data::Bool(false)),
        (Item::new("Tank.Setpoint", VarType::I2).writable(), Data::I2(10)),
        (Item::new("Name", VarType::BSTR), "tank one".into()),
    ]);
    let node = listening(options);
    let info = ServerInfo::new(CLASS, "Everywire.Tank");
    OpcEnum::serve(&node).add(&info);
    let server =
        Server::serve(&node, info, Arc::clone(&table) as Arc<_>, Settings::default()).expect("a thread");
    (node, server, table)
}

#[test]
fn impacket_finds_opc_servers_by_opc_enum() {
    let test = "impacket_finds_opc_servers_by_opc_enum";
    let Some(impacket) = opc_impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _server, _) = serving("");
    let said = run(&mut impacket("list_servers", CLASS));
    assert!(said.contains("server Everywire.Tank.1 Everywire.Tank"), "{said}");
    assert!(said.contains("independent Everywire.Tank\n") && said.ends_with("ok\n"), "{said}");
}

#[test]
fn impacket_finds_opc_servers_by_their_categories() {
    let test = "impacket_finds_opc_servers_by_their_categories";
    let Some(impacket) = opc_impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _server, _) = serving("");
    let said = run(&mut impacket("categories", CLASS));
    assert!(
        said.contains("categories OPC Data Access Servers Version 2.0 | ") && said.ends_with("ok\n"),
        "{said}"
    );
}

#[test]
fn impacket_has_a_whole_session_with_an_opc_server() {
    let test = "impacket_has_a_whole_session_with_an_opc_server";
    let Some(impacket) = opc_impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, server, table) = serving("");
    let said = run(&mut impacket("session", CLASS));
    assert!(said.contains("read and written") && said.ends_with("ok\n"), "{said}");
    assert_eq!(table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(123)));
    until("the client's objects end", || server.engine().clients() == 0);
    assert_eq!(server.engine().items_in_use(), 0);
}

/// Utgard has callbacks; it signs nothing, so it is let in only where that is said.
#[test]
fn utgard_has_a_whole_session_with_callbacks() {
    let test = "utgard_has_a_whole_session_with_callbacks";
    let Some(mut utgard) = utgard(test, CLASS) else { return };
    if !alone(test) {
        return;
    }
    let (_node, server, table) = serving("&level=connect&ntlm1=session");
    let written = Arc::downgrade(&table);
    table.on_write(move |write| {
        // What the client writes at last makes the level move, so that it hears of it.
        if let (true, Some(table)) = (write.item.id == "Tank.Valve", written.upgrade()) {
            table.set("Tank.Level", 60.0_f32).expect("an item");
        }
        Code::OK
    });
    let said = run(&mut utgard);
    for line in [
        "server Everywire.Tank.1 Everywire.Tank",
        "flat [Name, Tank.Level, Tank.Setpoint, Tank.Valve]",
        "filtered [Tank.Level, Tank.Setpoint]",
        "tree [Name, Tank/Level=Tank.Level, Tank/Setpoint=Tank.Setpoint, Tank/Valve=Tank.Valve]",
        "read and written",
        "called back",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.ends_with("ok\n"), "{said}");
    assert_eq!(table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(321)));
    // The server's own object stays until pings are missing. j-Interop gets IOPCBrowseServerAddressSpace three times, five references with
    // the OBJREF and five by RemAddRef each time, and gives ten of these thirty back; so it does with the enumerators. What was not given
    // back is held until its owner is silent for three periods of pings (MS-DCOM 3.1.1.5.6.1.3, 3.1.1.6.2).
    assert_eq!(server.engine().items_in_use(), 0);
}

/// node-opc-da has no callbacks; it signs nothing, so it is let in only where that is said.
#[test]
fn node_opc_da_has_a_whole_session() {
    let test = "node_opc_da_has_a_whole_session";
    let Some(mut node) = node_opc_da(test, CLASS) else { return };
    if !alone(test) {
        return;
    }
    let (_node, server, table) = serving("&level=connect&ntlm1=session");
    let said = run(&mut node);
    for line in [
        r#"flat ["Name","Tank.Level","Tank.Setpoint","Tank.Valve"]"#,
        r#"tree {"Name":"Name","Tank":{"Level":"Tank.Level","Setpoint":"Tank.Setpoint","Valve":"Tank.Valve"}}"#,
        "read and written",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.ends_with("ok\n"), "{said}");
    assert_eq!(table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(222)));
    // The items were removed; the object of the server itself it leaves to the end of its pings.
    assert_eq!(server.engine().items_in_use(), 0);
}

/// impacket holds no sinks: callbacks at these levels are shown by a client of ours.
#[test]
fn values_come_signed_and_sealed() {
    let test = "values_come_signed_and_sealed";
    if !alone(test) {
        return;
    }
    let (_node, server, table) = serving("");
    for level in ["integrity", "privacy"] {
        let client = Node::new();
        let address = address_of(CLASS, &format!("?level={level}"));
        let object = client.connect::<dyn DataAccessServer>(&address).expect("an address");
        let (data1, data2, data3, data4) = guid::of::<dyn IOPCItemMgt>();
        let riid = GUID { data1, data2, data3, data4 };
        let added = object.add_group("", 1, 10, 7, &None, &None, 0, &riid).expect("a group").value;
        let group = client.narrow::<dyn DataAccessGroup>(added.2.expect("an object")).expect("a group");
        let def = OPCITEMDEF {
            access_path: Some(String::new()),
            item_id: Some("Tank.Level".to_owned()),
            active: 1,
            client: 1,
            blob: everywire::Bytes::new(),
            requested_type: 0,
            reserved: 0,
        };
        assert_eq!(group.add_items(&[def]).expect("it lives").value.1, [0]);
        let (tell, told) = channel();
        let listening =
            group.signals().on(move |change: DataAccessGroupOnDataChange| drop(tell.send(change)));
        let _listening = listening.expect("callbacks");
        let value = |change: &DataAccessGroupOnDataChange| change.values.first().map(Data::from_variant);
        let before = table.get("Tank.Level").map(|value| Ok(value.data));
        assert_eq!(value(&told.recv_timeout(PATIENCE).expect("the first values")), before, "{level}");
        let next = Data::R4(if level == "integrity" { 51.0 } else { 52.0 });
        table.set("Tank.Level", next.clone()).expect("an item");
        assert_eq!(value(&told.recv_timeout(PATIENCE).expect("a change")), Some(Ok(next)), "{level}");
    }
    until("the clients' objects end", || server.engine().clients() == 0);
}
