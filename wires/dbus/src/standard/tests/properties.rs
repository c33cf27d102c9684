//! `Properties`: Get, Set, GetAll, and all that may go wrong with them.

use super::lamp::{Lamp, Slow, handle, nested};
use super::store::{House, call_with, finish};
use crate::standard::PROPERTIES;
use crate::values::VALUES;
use everywire_model::describe::TEXT;
use everywire_model::shape::{Hold, Shape};
use everywire_model::value::{TypedShape, Value};
use everywire_model::{Body, Codec, Failure, Kind, MarshalList, Outcome, Raised, Sink, Variant};
use std::sync::Arc;

const ID: &str = "org.freedesktop.DBus.Properties";

fn house() -> (House, Arc<Lamp>) {
    let (house, lamp) = (House::new(), Lamp::new("desk"));
    house.export("room/lamp", Arc::clone(&lamp) as _);
    (house, lamp)
}

fn get(house: &House, key: &str, interface: &str, name: &str) -> Result<Variant, Failure> {
    house.call(key, ID, "Get", (interface.to_owned(), name.to_owned())).map(|(value,): (Variant,)| value)
}

fn set(house: &House, key: &str, interface: &str, name: &str, value: Variant) -> Result<(), Failure> {
    house.call(key, ID, "Set", (interface.to_owned(), name.to_owned(), value))
}

type Pairs = Vec<(String, Variant)>;

fn get_all(house: &House, key: &str, interface: &str) -> Result<Pairs, Failure> {
    house.call(key, ID, "GetAll", (interface.to_owned(),)).map(|(values,): (Pairs,)| values)
}

fn names(pairs: &Pairs) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

fn integer(value: i128) -> Variant {
    Variant::new(Shape::I32, Value::Integer(value))
}

fn code(result: Result<impl std::fmt::Debug, Failure>) -> String {
    let failure = result.unwrap_err();
    failure.code().unwrap().strip_prefix("org.freedesktop.DBus.Error.").unwrap().to_owned()
}

#[test]
fn a_value_comes_as_a_variant_of_its_own_type() {
    let (house, _) = house();
    let found = get(&house, "room/lamp", "demo.Lamp", "level").unwrap();
    assert_eq!(found, integer(40));
    let color = get(&house, "room/lamp", "demo.Lamp", "color").unwrap();
    assert_eq!(color, Variant::from(4));
    let ticks = get(&house, "room/lamp", "demo.Lamp", "ticks").unwrap();
    assert_eq!(ticks, Variant::from(u64::MAX));
}

#[test]
fn inherited_properties_are_found_by_either_interface_or_none() {
    let (house, _) = house();
    for interface in ["demo.Named", "demo.Lamp", ""] {
        let found = get(&house, "room/lamp", interface, "name").unwrap();
        assert_eq!(*found.value(), Value::Text("desk".into()), "{interface}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let (house, _) = house();
    for (key, interface, name, expected) in [
        ("room/door", "demo.Lamp", "level", "UnknownObject"),
        ("room", "demo.Lamp", "level", "UnknownObject"),
        ("/", "demo.Lamp", "level", "UnknownInterface"),
        ("room/lamp", "demo.Door", "level", "UnknownInterface"),
        ("room/lamp", "demo.Lamp", "height", "UnknownProperty"),
        ("room/lamp", "demo.Named", "level", "UnknownProperty"),
        ("room/lamp", "", "height", "UnknownProperty"),
        ("room/lamp", "org.freedesktop.DBus.Peer", "level", "UnknownProperty"),
        ("room/lamp", "demo.Lamp", "pin", "InvalidArgs"),
    ] {
        assert_eq!(code(get(&house, key, interface, name)), expected, "{key} {interface} {name}");
        if name != "pin" {
            assert_eq!(
                code(set(&house, key, interface, name, integer(1))),
                expected,
                "{key} {interface} {name}"
            );
        }
    }
    assert_eq!(code(get_all(&house, "room/lamp", "demo.Door")), "UnknownInterface");
    assert_eq!(code(get_all(&house, "nowhere", "")), "UnknownObject");
    assert_eq!(get(&house, "nowhere", "", "x").unwrap_err().kind(), Kind::NoObject);
}

#[test]
fn a_value_that_is_set_reaches_the_servant_and_nobody_else_hears_of_it() {
    let (house, lamp) = house();
    set(&house, "room/lamp", "demo.Lamp", "level", integer(55)).unwrap();
    assert_eq!(*lamp.level.lock().unwrap(), 55);
    set(&house, "room/lamp", "demo.Lamp", "color", integer(0)).unwrap();
    assert_eq!(*lamp.color.lock().unwrap(), 0);
    set(&house, "room/lamp", "", "name", Variant::new(TEXT, Value::Text("bed".into()))).unwrap();
    assert_eq!(*lamp.name.lock().unwrap(), "bed");
    assert!(house.sent().is_empty());
}

#[test]
fn what_cannot_be_set_says_why() {
    let (house, lamp) = house();
    let set = |name, value| set(&house, "room/lamp", "demo.Lamp", name, value);
    assert_eq!(code(set("model", Variant::new(TEXT, Value::Text("x".into())))), "PropertyReadOnly");
    assert_eq!(code(set("level", Variant::new(TEXT, Value::Text("x".into())))), "InvalidArgs");
    assert_eq!(code(set("level", Variant::new(Shape::U32, Value::Integer(1)))), "InvalidArgs");
    // The type fits, the value is no member.
    assert!(set("color", integer(3)).is_err());
    assert_eq!((*lamp.level.lock().unwrap(), *lamp.color.lock().unwrap()), (40, 4));
}

#[test]
fn an_exception_of_a_setter_passes_through() {
    let (house, _) = house();
    let arguments = ("demo.Lamp".to_owned(), "level".to_owned(), integer(101));
    match house.begin("room/lamp", ID, "Set", arguments).try_recv().unwrap() {
        Outcome::Raised(raised) => {
            let Raised { id, body, .. } = *raised;
            assert_eq!(id, "demo.TooBright");
            let fields = everywire_idl::signature::nameless(vec![Shape::I32]);
            assert_eq!(body.decode::<(i32,)>(&fields).unwrap(), (100,));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_of_another_type_are_refused() {
    let (house, _) = house();
    let servants = house.wire_state.servants();
    let servant = servants.iter().find(|servant| servant.interface().id == ID).unwrap();
    let list = everywire_idl::signature::nameless(vec![Shape::I32]);
    let wrong: Body = VALUES.write(&mut |sink: &mut dyn Sink| (7i32,).marshal_list(&list, sink)).unwrap();
    for operation in ["Get", "Set", "GetAll"] {
        let outcome = call_with(servant, "room/lamp", operation, wrong.clone()).try_recv().unwrap();
        assert!(matches!(outcome, Outcome::Failed(_)), "{operation}: {outcome:?}");
    }
}

#[test]
fn all_values_of_an_interface_are_its_own() {
    let (house, _) = house();
    let found = get_all(&house, "room/lamp", "demo.Lamp").unwrap();
    assert_eq!(names(&found), ["level", "color", "model", "ticks"]);
    assert_eq!(names(&get_all(&house, "room/lamp", "demo.Named").unwrap()), ["name"]);
    assert_eq!(
        names(&get_all(&house, "room/lamp", "").unwrap()),
        ["level", "color", "model", "ticks", "name"]
    );
    assert!(get_all(&house, "room/lamp", "org.freedesktop.DBus.Introspectable").unwrap().is_empty());
}

#[test]
fn all_values_wait_for_the_last_in_whatever_order_they_come() {
    let house = House::new();
    let slow = Slow::new(&["a", "b", "c"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    let receiver = house.begin("slow", ID, "GetAll", ("demo.Slow".to_owned(),));
    slow.answer(2, (3,));
    slow.answer(0, (1,));
    assert!(receiver.try_recv().is_err());
    slow.answer(0, (2,));
    let (pairs,): (Pairs,) = finish(&PROPERTIES.operations[2].results, receiver.try_recv().unwrap()).unwrap();
    let expected: Pairs =
        [("a", 1), ("b", 2), ("c", 3)].map(|(name, n)| (name.to_owned(), integer(n))).into();
    assert_eq!(pairs, expected);
}

#[test]
fn the_failure_of_one_value_is_that_of_all() {
    let house = House::new();
    let slow = Slow::new(&["a", "b"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    let receiver = house.begin("slow", ID, "GetAll", ("demo.Slow".to_owned(),));
    slow.fail(0, "demo.Error.Broken");
    assert!(receiver.try_recv().is_err(), "the other one is still awaited");
    slow.answer(0, (2,));
    let failed = finish::<(Pairs,)>(&PROPERTIES.operations[2].results, receiver.try_recv().unwrap());
    assert_eq!(failed.unwrap_err().code(), Some("demo.Error.Broken"));
}

#[test]
fn a_servant_that_forgets_to_answer_does_not_keep_the_caller() {
    let house = House::new();
    let slow = Slow::new(&["a", "b"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    let one = house.begin("slow", ID, "Get", ("demo.Slow".to_owned(), "a".to_owned()));
    let all = house.begin("slow", ID, "GetAll", ("".to_owned(),));
    slow.waiting.lock().unwrap().clear();
    for receiver in [one, all] {
        assert!(matches!(receiver.try_recv().unwrap(), Outcome::Failed(_)));
    }
}

#[test]
fn an_accessor_that_answers_something_else_is_a_failure() {
    let house = House::new();
    let slow = Slow::new(&["a"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    let receiver = house.begin("slow", ID, "Get", ("demo.Slow".to_owned(), "a".to_owned()));
    slow.answer(0, (1i32, 2i32));
    assert!(
        matches!(receiver.try_recv().unwrap(), Outcome::Failed(failure) if failure.kind() == Kind::Internal)
    );
}

#[test]
fn every_shape_survives_as_a_property() {
    let list = Shape::sequence(Shape::F64);
    let bytes = Shape::sequence(Shape::U8);
    for (shape, value, seen) in [
        (list.clone(), Value::List(vec![Value::Float(0.5), Value::Float(2.0)]), None),
        (bytes.clone(), Value::Bytes(vec![7; 100_000].into()), None),
        // Octets that a servant writes one by one are octets.
        (bytes, Value::List(vec![Value::Integer(7)]), Some(Value::Bytes(vec![7].into()))),
        (
            nested(),
            Value::Struct(vec![("most".into(), Value::Integer(9))]),
            Some(Value::List(vec![Value::Struct(vec![("field_1".into(), Value::Integer(9))])])),
        ),
        (Shape::Variant, Value::Variant(Box::new((TypedShape(Shape::I32), Value::Integer(1)))), None),
        (Shape::Optional(Hold::new(TEXT)), Value::Nothing, Some(Value::List(vec![]))),
    ] {
        let house = House::new();
        let slow = Slow::new(&["a"], &shape);
        house.export("slow", Arc::clone(&slow) as _);
        let receiver = house.begin("slow", ID, "Get", (String::new(), "a".to_owned()));
        let mut request = slow.waiting.lock().unwrap().remove(0);
        let results = everywire_idl::signature::nameless(vec![shape.clone()]);
        request.answer(everywire_model::Answer::Done(&|sink: &mut dyn Sink| {
            sink.open(&results, 1)?;
            value.encode(&shape, sink)?;
            sink.close(&results)
        }));
        let (found,): (Variant,) =
            finish(&PROPERTIES.operations[0].results, receiver.try_recv().unwrap()).unwrap();
        assert_eq!(*found.value(), seen.clone().unwrap_or_else(|| value.clone()));

        // And back: what was got can be set.
        let receiver = house.begin("slow", ID, "Set", (String::new(), "a".to_owned(), found));
        let mut request = slow.waiting.lock().unwrap().remove(0);
        let list = everywire_idl::signature::nameless(vec![shape.clone()]);
        let back = request.body().read(|source| Value::decode(&list, source)).unwrap();
        let octets = seen.filter(|seen| matches!(seen, Value::Bytes(_)));
        assert_eq!(back, Value::Struct(vec![("field_1".into(), octets.unwrap_or(value))]));
        request.reply::<(), Failure>(Ok(())).unwrap();
        assert!(matches!(receiver.try_recv().unwrap(), Outcome::Done(_)));
    }
}

#[test]
fn a_handle_can_be_a_property() {
    let house = House::new();
    let slow = Slow::new(&["a"], &Shape::Handle);
    house.export("slow", Arc::clone(&slow) as _);
    let receiver = house.begin("slow", ID, "Get", (String::new(), "a".to_owned()));
    slow.answer(0, (handle(),));
    match receiver.try_recv().unwrap() {
        Outcome::Done(body) => assert_eq!(body.handles().len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_that_no_path_may_have_is_found_by_its_spelling() {
    let house = House::new();
    house.export("my lamp/1.0", Lamp::new("odd"));
    let found = get(&house, "my_20lamp/1_2e0", "demo.Named", "name").unwrap();
    assert_eq!(*found.value(), Value::Text("odd".into()));
}

#[test]
fn the_caller_is_known_to_the_accessor() {
    let house = House::new();
    let slow = Slow::new(&["a"], &Shape::I32);
    house.export("slow", Arc::clone(&slow) as _);
    let _receiver = house.begin("slow", ID, "Get", (String::new(), "a".to_owned()));
    let waiting = slow.waiting.lock().unwrap();
    assert_eq!((waiting[0].sender(), waiting[0].key()), (&b":1.7"[..], &b"slow"[..]));
}
