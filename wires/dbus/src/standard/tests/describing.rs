//! `Peer` and `Introspectable`.

use super::lamp::{LAMP, Lamp};
use super::store::House;
use crate::standard::discover::{own_interfaces, read};
use everywire_model::{Bytes, Discovery, Failure, Interface, Request, Servant, Variant};
use std::borrow::Cow;
use std::sync::Arc;

fn describe(house: &House, key: &str) -> Result<Discovery, Failure> {
    let (xml,): (String,) = house.call(key, "org.freedesktop.DBus.Introspectable", "Introspect", ())?;
    read(&xml, key.as_bytes())
}

fn house() -> House {
    let house = House::new();
    for key in ["room/lamp", "room/lamp/bulb", "room/shelf/lamp", "odd key"] {
        house.export(key, Lamp::new(key));
    }
    house
}

fn all(discovery: &Discovery) -> Vec<&str> {
    let dotted = discovery.contract.interfaces().skip(discovery.own);
    dotted.map(|interface| interface.id.rsplit('.').next().unwrap()).collect()
}

#[test]
fn everybody_answers_a_ping() {
    for key in ["/", "room/lamp", "nowhere"] {
        house().call::<(), ()>(key, "org.freedesktop.DBus.Peer", "Ping", ()).unwrap();
    }
}

#[test]
fn the_machine_id_is_that_of_the_host() {
    let asked: Result<(String,), Failure> =
        house().call("/", "org.freedesktop.DBus.Peer", "GetMachineId", ());
    let files = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let on_disk =
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).find(|id| id.trim().len() == 32);
    match on_disk {
        Some(id) => assert_eq!(asked.unwrap().0, id.trim()),
        None => assert_eq!(asked.unwrap_err().code(), Some("org.freedesktop.DBus.Error.FileNotFound")),
    }
}

#[test]
fn an_object_tells_all_its_interfaces() {
    let lamp = describe(&house(), "room/lamp").unwrap();
    assert_eq!(own_interfaces(&lamp), ["demo.Named", "demo.Lamp"]);
    assert_eq!(all(&lamp), ["Properties", "ObjectManager", "Introspectable", "Peer"]);
    assert_eq!(lamp.children, [Bytes::from_static(b"room/lamp/bulb")]);
    let own = lamp.contract.interface("demo.Lamp").unwrap();
    let attributes: Vec<_> =
        own.attributes.iter().map(|held| (held.name.as_ref(), held.setter.is_some(), held.notify)).collect();
    use everywire_model::Notify::{Change, Constant, Nothing, Value};
    let expected = [
        ("level", true, Value),
        ("color", true, Change),
        ("model", false, Constant),
        ("ticks", false, Nothing),
        ("pin", true, Value),
    ];
    assert_eq!(attributes, expected);
    assert!(own.index_of(b"toggle").is_some());
}

/// A lamp under another name.
struct Renamed(Interface, Arc<Lamp>);

impl Servant for Renamed {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, request: Request) {
        self.1.dispatch(request);
    }
}

#[test]
fn an_interface_has_the_name_that_is_given_for_this_wire() {
    let identities = Cow::Owned(vec![("dbus".into(), "org.given.Lamp".into())]);
    let house = House::new();
    house.export("lamp", Arc::new(Renamed(Interface { identities, ..LAMP.clone() }, Lamp::new("given"))));
    assert_eq!(own_interfaces(&describe(&house, "lamp").unwrap()), ["demo.Named", "org.given.Lamp"]);
    let get = |interface: &'static str| {
        let arguments = (interface, "level");
        house.call::<_, (Variant,)>("lamp", "org.freedesktop.DBus.Properties", "Get", arguments)
    };
    get("org.given.Lamp").unwrap();
    let unknown = get("demo.Lamp").unwrap_err();
    assert_eq!(unknown.code(), Some("org.freedesktop.DBus.Error.UnknownInterface"));
}

#[test]
fn a_leaf_manages_nothing() {
    let bulb = describe(&house(), "room/lamp/bulb").unwrap();
    assert_eq!(all(&bulb), ["Properties", "Introspectable", "Peer"]);
    assert!(bulb.children.is_empty());
}

#[test]
fn nodes_above_objects_are_there_for_their_children() {
    let house = house();
    let room = describe(&house, "room").unwrap();
    assert_eq!((room.own, all(&room)), (0, vec!["Introspectable", "Peer"]));
    assert_eq!(room.children, [&b"room/lamp"[..], b"room/shelf"]);
    let root = describe(&house, "/").unwrap();
    assert_eq!(all(&root), ["ObjectManager", "Introspectable", "Peer"]);
    assert_eq!(root.children, [&b"odd_20key"[..], b"room"]);
    assert_eq!(own_interfaces(&describe(&house, "odd_20key").unwrap()).len(), 2);
}

#[test]
fn the_root_is_always_there_and_nothing_else_is() {
    let house = House::new();
    assert!(describe(&house, "/").unwrap().children.is_empty());
    for key in ["room", "roo", "room/lamp/x"] {
        let failure = describe(&house, key).unwrap_err();
        assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.UnknownObject"), "{key}");
    }
}

#[test]
fn a_description_that_is_none_is_refused() {
    for xml in ["", "hello", "<node>"] {
        let failure = read(xml, b"/").unwrap_err();
        assert_eq!(failure.kind(), everywire_model::Kind::Malformed, "{xml}");
    }
    // What is wrong in a part of one is left out, and the rest is known.
    for xml in [
        "<node><interface/><interface name='a.b'><method name='y'/></interface></node>",
        "<node><interface name='a.b'><method name='x'><arg type='('/></method><method name='y'/></interface></node>",
    ] {
        let known = read(xml, b"/").unwrap();
        let interface = known.contract.interface("a::b").unwrap();
        let names: Vec<_> =
            interface.operations.iter().map(|operation| operation.label.to_string()).collect();
        assert_eq!(names, ["y"], "{xml}");
    }
}
