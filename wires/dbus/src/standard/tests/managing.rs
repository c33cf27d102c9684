//! `ObjectManager`, and news of objects.

use super::lamp::{LAMP, Lamp, Slow};
use super::store::{House, Sent, finish};
use crate::standard::OBJECT_MANAGER;
use everywire_model::describe::Shape;
use everywire_model::value::Value;
use everywire_model::{Failure, Servant, Variant};
use std::sync::Arc;

const ID: &str = "org.freedesktop.DBus.ObjectManager";

pub(super) type Interfaces = Vec<(String, Vec<(String, Variant)>)>;
pub(super) type Managed = Vec<(String, Interfaces)>;

pub(super) fn managed(house: &House, key: &str) -> Result<Managed, Failure> {
    house.call(key, ID, "GetManagedObjects", ()).map(|(objects,): (Managed,)| objects)
}

fn paths(managed: &Managed) -> Vec<&str> {
    managed.iter().map(|(path, _)| path.as_str()).collect()
}

fn house() -> House {
    let house = House::new();
    for key in ["room", "room/lamp", "room/shelf/lamp", "roomy"] {
        house.export(key, Lamp::new(key));
    }
    house
}

/// Asks each of them, so that it tells news from now on.
fn heard(house: House, managers: &[&str]) -> House {
    for manager in managers {
        managed(&house, manager).unwrap();
    }
    house
}

#[test]
fn a_manager_knows_all_objects_below_it_and_their_values() {
    let house = house();
    assert_eq!(paths(&managed(&house, "/").unwrap()), ["/room", "/room/lamp", "/room/shelf/lamp", "/roomy"]);
    assert_eq!(paths(&managed(&house, "room").unwrap()), ["/room/lamp", "/room/shelf/lamp"]);
    assert!(managed(&house, "roomy").unwrap().is_empty());
    let objects = managed(&house, "room").unwrap();
    let interfaces: Vec<_> =
        objects[0].1.iter().map(|(name, values)| (name.as_str(), values.len())).collect();
    assert_eq!(interfaces, [("demo.Lamp", 4), ("demo.Named", 1)]);
    assert_eq!(*objects[1].1[1].1[0].1.value(), Value::Text("room/shelf/lamp".into()));
}

#[test]
fn the_root_manages_even_nothing_and_nodes_without_interfaces_do_not() {
    assert!(managed(&House::new(), "/").unwrap().is_empty());
    for key in ["room/shelf", "door"] {
        let failure = managed(&house(), key).unwrap_err();
        assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.UnknownObject"));
    }
}

#[test]
fn a_broken_property_does_not_hide_the_others() {
    let house = House::new();
    let slow = Slow::new(&["a", "b"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    let receiver = house.begin("/", ID, "GetManagedObjects", ());
    slow.fail(0, "demo.Error.Broken");
    assert!(receiver.try_recv().is_err());
    slow.answer(0, (2,));
    let (objects,): (Managed,) =
        finish(&OBJECT_MANAGER.operations[0].results, receiver.try_recv().unwrap()).unwrap();
    let b = ("b".to_owned(), Variant::new(Shape::I32, Value::Integer(2)));
    assert_eq!(objects, [("/slow".to_owned(), vec![("demo.Slow".to_owned(), vec![b])])]);
}

fn added(sent: &Sent) -> (String, Interfaces) {
    assert_eq!((sent.interface.as_str(), sent.signal.as_str()), (ID, "InterfacesAdded"));
    sent.body.decode(&OBJECT_MANAGER.signals[0].fields).unwrap()
}

fn removed(sent: &Sent) -> (String, Vec<String>) {
    assert_eq!((sent.interface.as_str(), sent.signal.as_str()), (ID, "InterfacesRemoved"));
    sent.body.decode(&OBJECT_MANAGER.signals[1].fields).unwrap()
}

#[test]
fn a_manager_that_nobody_asked_for_its_objects_tells_no_news() {
    let house = house();
    house.export_and_tell("room/lamp/bulb", Lamp::new("bulb"));
    house.remove("room/lamp/bulb");
    house.wire_state.withdrawn(b"room/lamp/bulb", &LAMP);
    assert!(house.sent().is_empty());

    let house = heard(house, &["room"]);
    house.export_and_tell("room/lamp/bulb", Lamp::new("bulb"));
    let managers: Vec<_> = house.sent().iter().map(|sent| sent.key.clone()).collect();
    assert_eq!(managers, ["room"]);
}

#[test]
fn each_manager_above_tells_of_a_new_object() {
    let house = heard(house(), &["/", "room", "room/shelf/lamp"]);
    house.export_and_tell("room/shelf/lamp/bulb", Lamp::new("bulb"));
    let sent = house.sent();
    let managers: Vec<_> = sent.iter().map(|sent| sent.key.clone()).collect();
    assert_eq!(managers, ["/", "room", "room/shelf/lamp"]);
    for sent in &sent {
        let (path, interfaces) = added(sent);
        assert_eq!((path.as_str(), interfaces[0].0.as_str()), ("/room/shelf/lamp/bulb", "demo.Lamp"));
        assert_eq!(*interfaces[1].1[0].1.value(), Value::Text("bulb".into()));
    }
}

#[test]
fn nobody_manages_the_root() {
    let house = heard(House::new(), &["/"]);
    house.export_and_tell("/", Lamp::new("root"));
    house.wire_state.withdrawn(b"/", &LAMP);
    assert!(house.sent().is_empty());
}

#[test]
fn each_manager_above_tells_of_what_is_gone() {
    let house = heard(house(), &["/", "room"]);
    house.remove("room/lamp");
    house.wire_state.withdrawn(b"room/lamp", &LAMP);
    let sent = house.sent();
    let managers: Vec<_> = sent.iter().map(|sent| sent.key.clone()).collect();
    assert_eq!(managers, ["/", "room"]);
    let expected = ("/room/lamp".to_owned(), vec!["demo.Lamp".to_owned(), "demo.Named".to_owned()]);
    assert!(sent.iter().all(|sent| removed(sent) == expected));
}

#[test]
fn what_another_servant_has_is_not_gone() {
    let house = heard(house(), &["/"]);
    let slow = Slow::new(&["a"], &Shape::I32);
    house.wire_state.withdrawn(b"room/lamp", slow.interface());
    assert_eq!(removed(&house.sent()[0]).1, ["demo.Slow"]);
    // The lamp has the base too.
    house.wire_state.withdrawn(b"room/lamp", &super::lamp::NAMED);
    assert!(house.sent().is_empty());
}

#[test]
fn keys_that_no_path_may_have_are_managed_by_their_spelling() {
    let house = House::new();
    house.export("my room", Lamp::new("outer"));
    let house = heard(house, &["/", "my_20room"]);
    house.export_and_tell("my room/lamp 1", Lamp::new("inner"));
    let sent = house.sent();
    let managers: Vec<_> = sent.iter().map(|sent| sent.key.clone()).collect();
    assert_eq!(managers, ["/", "my room"]);
    assert_eq!(added(&sent[0]).0, "/my_20room/lamp_201");
    assert_eq!(paths(&managed(&house, "my_20room").unwrap()), ["/my_20room/lamp_201"]);
}

#[test]
fn an_object_that_is_gone_before_its_values_came_is_not_told_of() {
    let house = heard(House::new(), &["/"]);
    let slow = Slow::new(&["a"], &Shape::I32);
    house.export_and_tell("slow", Arc::clone(&slow) as _);
    assert!(house.sent().is_empty());
    house.remove("slow");
    slow.answer(0, (1,));
    assert!(house.sent().is_empty());

    house.export_and_tell("slow", Arc::clone(&slow) as _);
    house.settle();
    slow.answer(0, (1,));
    let a = ("a".to_owned(), Variant::new(Shape::I32, Value::Integer(1)));
    assert_eq!(added(&house.sent()[0]), ("/slow".to_owned(), vec![("demo.Slow".to_owned(), vec![a])]));
}
