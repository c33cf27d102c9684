//! `PropertiesChanged`.

use super::lamp::{LAMP, Lamp, NAMED, Slow, lamp_attribute};
use super::store::{House, Sent};
use everywire_model::describe::Shape;
use everywire_model::value::Value;
use everywire_model::{Interface, Servant, Variant};
use std::sync::Arc;

type News = (String, Vec<(String, Variant)>, Vec<String>);

fn news(sent: &Sent) -> News {
    assert_eq!(sent.signal, "PropertiesChanged");
    assert_eq!(sent.interface, "org.freedesktop.DBus.Properties");
    sent.body.decode(&crate::standard::PROPERTIES.signals[0].fields).unwrap()
}

fn tell(house: &House, key: &str, interface: &Interface, name: &str) {
    let attribute = interface.attributes.iter().find(|held| held.name == name).unwrap();
    house.wire_state.changed(key.as_bytes(), interface, attribute).unwrap();
}

#[test]
fn each_attribute_is_told_of_in_its_own_way() {
    let house = House::new();
    house.export("lamp", Lamp::new("desk"));
    for name in ["level", "color", "model", "ticks"] {
        house.wire_state.changed(b"lamp", &LAMP, lamp_attribute(name)).unwrap();
    }
    let sent = house.sent();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|sent| sent.key == "lamp"));
    // A value is asked for first.
    assert_eq!(news(&sent[0]), ("demo.Lamp".to_owned(), vec![], vec!["color".to_owned()]));
    let level = vec![("level".to_owned(), Variant::new(Shape::I32, Value::Integer(40)))];
    assert_eq!(news(&sent[1]), ("demo.Lamp".to_owned(), level, vec![]));
}

#[test]
fn an_inherited_attribute_changes_in_the_interface_that_has_it() {
    let house = House::new();
    house.export("lamp", Lamp::new("desk"));
    tell(&house, "lamp", &LAMP, "name");
    tell(&house, "lamp", &NAMED, "name");
    for sent in house.sent() {
        let (interface, changed, _) = news(&sent);
        assert_eq!((interface.as_str(), changed.len()), ("demo.Named", 1));
    }
}

#[test]
fn a_value_that_cannot_be_had_is_invalidated() {
    let house = House::new();
    house.export("lamp", Lamp::new("desk"));
    // Write-only.
    tell(&house, "lamp", &LAMP, "pin");
    // Not served any longer.
    tell(&house, "gone", &LAMP, "level");
    let slow = Slow::new(&["a"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    tell(&house, "slow", slow.interface(), "a");
    house.settle();
    slow.fail(0, "demo.Error.Broken");
    let sent = house.sent();
    let invalidated: Vec<News> = sent.iter().map(news).collect();
    let expected = [("demo.Lamp", "pin"), ("demo.Lamp", "level"), ("demo.Slow", "a")];
    assert_eq!(invalidated, expected.map(|(i, name)| (i.to_owned(), vec![], vec![name.to_owned()])));
}

#[test]
fn an_old_value_never_follows_a_new_one() {
    let house = House::new();
    let slow = Slow::new(&["a", "b"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    for name in ["a", "a", "b"] {
        tell(&house, "slow", slow.interface(), name);
    }
    house.settle();
    // The accessors answer in the opposite order.
    slow.answer(2, (30,));
    slow.answer(1, (20,));
    slow.answer(0, (10,));
    let told: Vec<_> = house.sent().iter().map(|sent| news(sent).1.remove(0)).collect();
    let expected = [("b", 30), ("a", 20)];
    assert_eq!(
        told,
        expected.map(|(name, n)| (name.to_owned(), Variant::new(Shape::I32, Value::Integer(n))))
    );
}

#[test]
fn a_change_ends_with_its_object() {
    let house = House::new();
    let slow = Slow::new(&["a"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    tell(&house, "slow", slow.interface(), "a");
    house.settle();
    house.remove("slow");
    house.wire_state.withdrawn(b"slow", slow.interface());
    // Its accessor may answer never, or now.
    slow.answer(0, (10,));
    assert!(house.sent().is_empty());
}

#[test]
fn a_servant_may_tell_while_it_holds_its_lock() {
    let (house, lamp) = (House::new(), Lamp::new("desk"));
    house.export("lamp", Arc::clone(&lamp) as _);
    // Whoever asks for the objects is told of new ones.
    super::managing::managed(&house, "lamp").unwrap();
    {
        let mut level = lamp.level.lock().unwrap();
        *level = 41;
        house.wire_state.changed(b"lamp", &LAMP, lamp_attribute("level")).unwrap();
        let name = lamp.name.lock().unwrap();
        house.export_and_tell("lamp/bulb", Arc::clone(&lamp) as _);
        drop(name);
    }
    let sent = house.sent();
    let level = vec![("level".to_owned(), Variant::new(Shape::I32, Value::Integer(41)))];
    assert_eq!(news(&sent[0]).1, level);
    assert_eq!(sent[1].signal, "InterfacesAdded");
}
