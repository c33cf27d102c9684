//! The text that is written while a message is read: the same as that of the value, and no longer than it may be.

#![allow(clippy::unwrap_used)]

use super::{LimitedText, Notation, write};
use everywire::{Failure, Kind, Reference, Value};
use everywire_model::native::NATIVE;
use everywire_model::shape::{Field, Hold, Map, Shape, Struct, Text, TypedShape};
use everywire_model::{Body, Codec as _};
use std::borrow::Cow;

/// Values without references.
struct Nothing;

impl Notation for Nothing {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        Err(Failure::bad_argument(text))
    }

    fn print(&self, _: &Reference) -> String {
        String::new()
    }
}

fn body(shape: &Shape, value: &Value) -> Body {
    NATIVE.write(&mut |sink| value.encode(shape, sink)).unwrap()
}

fn text(body: &Body, shape: &Shape, notation: &dyn Notation) -> Result<String, Failure> {
    let mut text = LimitedText::new(usize::MAX);
    body.read(|source| text.pass(shape, source, notation))?;
    Ok(String::from_utf8(text.into_bytes()).unwrap())
}

/// What is written of a message is what is written of the value in it, to the octet.
pub(super) fn agree(shape: &Shape, value: &Value, notation: &dyn Notation) {
    let passed = text(&body(shape, value), shape, notation).unwrap();
    assert_eq!(passed, write(shape, value, notation).to_string());
    let mut written = LimitedText::new(usize::MAX);
    written.push(&super::Written { shape, value, notation }).unwrap();
    assert_eq!(passed.as_bytes(), written.into_bytes());
}

fn record(names: &[&'static str]) -> Shape {
    let field = |name: &&'static str| Field { name: Cow::Borrowed(*name), shape: Shape::I32 };
    let fields = names.iter().map(field).collect();
    Shape::Struct(Hold::new(Struct { name: "S".into(), id: "".into(), fields }))
}

fn numbers(names: &[&'static str]) -> Value {
    Value::Struct((1..).zip(names).map(|(n, name)| ((*name).to_owned(), Value::Integer(n))).collect())
}

/// A peer that describes its types itself may give a name twice. The member stands at its first place and has its last value.
#[test]
fn an_object_has_no_member_twice() {
    let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "a", "j"];
    for (names, expected) in [
        (&["a", "b", "a"][..], r#"{"a":3,"b":2}"#),
        (&["a", "a", "a", "b"], r#"{"a":3,"b":4}"#),
        (&["a", "b"], r#"{"a":1,"b":2}"#),
        (&many, r#"{"a":10,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":11}"#),
    ] {
        let (shape, value) = (record(names), numbers(names));
        assert_eq!(text(&body(&shape, &value), &shape, &Nothing).unwrap(), expected);
        agree(&shape, &value, &Nothing);
    }
    let map = Shape::Map(Hold::new(Map { key: Shape::Text(Text::NARROW), value: Shape::Bool }));
    let key = || Value::Text("k".into());
    let twice = Value::Map(vec![(key(), Value::Bool(true)), (key(), Value::Bool(false))]);
    assert_eq!(text(&body(&map, &twice), &map, &Nothing).unwrap(), r#"[["k",true],["k",false]]"#);
    agree(&map, &twice, &Nothing);
}

/// An empty list is four octets in most messages, and two or three as text; a value of any type is some thirty.
#[test]
fn text_costs_what_the_message_may() {
    let shape = Shape::sequence(Shape::Variant);
    let one = || Value::Variant(Box::new((TypedShape(Shape::U8), Value::Integer(1))));
    let value = Value::List((0..1000).map(|_| one()).collect());
    let mut message = body(&shape, &value);
    let whole = text(&message, &shape, &Nothing).unwrap();
    message.budget.bytes = whole.len() as u64;
    assert_eq!(text(&message, &shape, &Nothing).unwrap(), whole);
    message.budget.bytes -= 1;
    let mut line = LimitedText::new(usize::MAX);
    line.push_str("before,").unwrap();
    let refused = message.read(|source| line.pass(&shape, source, &Nothing)).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitExceeded, "{refused}");
    assert!(refused.message().contains("as JSON") && refused.message().contains("limit"), "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("--max-message")), "{refused:?}");
    line.push_str("behind").unwrap();
    assert_eq!(line.into_bytes(), b"before,behind", "what did not fit is cut off");
}

#[test]
fn what_the_source_says_is_told() {
    let message = body(&Shape::I32, &Value::Integer(7));
    let told = text(&message, &Shape::sequence(Shape::Variant), &Nothing).unwrap_err();
    let decoded = message.read(|source| Value::decode(&Shape::sequence(Shape::Variant), source)).unwrap_err();
    assert_eq!((told.kind(), told.message()), (decoded.kind(), decoded.message()));
}

/// Threads that serve have stacks of 2 MiB, and values may nest in a thousand levels.
#[test]
fn the_deepest_value_exhausts_no_stack() {
    let of = |shape: fn(Shape) -> Shape, value: fn(Shape, Value) -> Value| {
        let (mut told, mut deepest) = (Shape::U16, Value::Integer(7));
        for _ in 0..everywire_model::budget::MOST_LEVELS - 1 {
            (deepest, told) = (value(told.clone(), deepest), shape(told));
        }
        let message = body(&told, &deepest);
        let serves = std::thread::Builder::new().stack_size(2 << 20);
        let passes = || assert!(text(&message, &told, &Nothing).unwrap().contains('7'));
        std::thread::scope(|scope| serves.spawn_scoped(scope, passes).unwrap().join().unwrap());
    };
    // Making such a value, and letting go of it, takes more.
    let makes = std::thread::Builder::new().stack_size(64 << 20);
    let run = move || {
        of(|_| Shape::Variant, |shape, value| Value::Variant(Box::new((TypedShape(shape), value))));
        of(Shape::sequence, |_, value| Value::List(vec![value]));
        of(|shape| Shape::Optional(Hold::new(shape)), |_, value| value);
    };
    makes.spawn(run).unwrap().join().unwrap();
}
