//! Values through the visit: bodies of captured calls, round trips, and values made to harm.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, body, body_with, each_document, encode, records, results, unhex};
use everywire_model::fixed::Fixed;
use everywire_model::shape::{
    Array, Enum, Field, Hold, Order, Pointer, PointerKind, Sequence, Shape, Struct, Text,
};
use everywire_model::{Budget, Codec, Failure, Kind, Sink, TypeCode, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable};
use everywire_wcf::limits::MAX_DEPTH;
use everywire_wcf::nbfx::{Reader, Record, Word};
use everywire_wcf::values::{BodyContext, Form, XML};
use std::sync::Arc;

fn structure(name: &'static str, fields: Vec<(&'static str, Shape)>) -> Shape {
    let fields: Vec<_> = fields.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect();
    Shape::Struct(Hold::new(Struct { name: name.into(), id: "".into(), fields: fields.into() }))
}

fn text() -> Shape {
    Shape::Text(Text::NARROW)
}

fn colour() -> Shape {
    let members = vec![("Red".into(), 0), ("Green".into(), 5)];
    Shape::Enum(Hold::new(Enum {
        name: "m::Colour".into(),
        id: "".into(),
        members: members.into(),
        bits: 32,
        open: false,
    }))
}

/// The element in the SOAP body of a document.
fn body_element<'a>(document: &'a [u8], words: &StringTable) -> &'a [u8] {
    let mut reader = Reader::new(document);
    let (mut in_body, mut start) = (false, None);
    loop {
        let at = reader.position();
        match reader.read().unwrap().unwrap() {
            Record::Element(_, Word::Id(id)) if reader.depth() == 2 => {
                in_body = words.word(id) == Some("Body")
            }
            Record::Element(..) if in_body && reader.depth() == 3 => start = Some(at),
            Record::End if in_body && reader.depth() == 2 => {
                return &document[start.unwrap()..reader.position()];
            }
            _ => {}
        }
    }
}

/// The same with octets in one record, as ours are: where they are parted is the writer's choice. Microsoft's keeps whole groups of
/// three apart from the rest.
fn joined(element: &[u8]) -> Vec<u8> {
    const OCTETS: u8 = 0x9e;
    const LAST_OCTETS: u8 = 0x9f;
    let Some(at) = element.windows(2).position(|head| head == [OCTETS, 99]) else { return element.to_vec() };
    let (groups, rest) = element[at + 2..].split_at(99);
    assert_eq!(rest[..2], [LAST_OCTETS, 1]);
    [&element[..at], &[LAST_OCTETS, 100], groups, &rest[2..]].concat()
}

/// Reads the bodies of a captured call at these shapes, compares, and writes them with the words of the session again.
fn check_call(capture: &str, operation: &str, arguments_: (Shape, Value), results_: (Shape, Value)) {
    let mut count = 0;
    each_document(|envelope, document, words| {
        if envelope.capture != capture {
            return;
        }
        let ((shape, value), layout) = match envelope.side {
            "C" => (&arguments_, arguments(operation, "http://tempuri.org/", &arguments_.0)),
            _ => (&results_, results(operation, "http://tempuri.org/", &results_.0)),
        };
        let element = body_element(document, words);
        // From its place in the envelope, and alone.
        let base = element.as_ptr().addr() - document.as_ptr().addr();
        let reading = BodyContext { words: Arc::new(words.clone()), ..BodyContext::default() };
        let whole = body_with(Form::Binary, document.to_vec(), base, reading, Budget::default());
        assert_eq!(&whole.read(|source| Value::decode(shape, source)).unwrap(), value, "{capture}");
        let body = body(element.to_vec(), Some(words), Budget::default());
        assert_eq!(&body.read(|source| Value::decode(shape, source)).unwrap(), value, "{capture}");
        let again = encode(Form::Binary, value, &mut Outgoing::known(words), &layout, shape);
        assert_eq!(again, joined(element), "{capture}");
        count += 1;
    });
    assert_eq!(count, 2, "{capture}");
}

fn one(name: &str, value: Value) -> Value {
    Value::Struct(vec![(name.to_owned(), value)])
}

#[test]
fn captured_inoutint_reads_and_writes_the_same_bytes() {
    for capture in ["tcp-InOutInt", "msclient-tcp-InOutInt"] {
        let shape = || structure("", vec![("x", Shape::I32)]);
        let value = |number| one("x", Value::Integer(number));
        check_call(capture, "InOutInt", (shape(), value(5)), (shape(), value(6)));
    }
}

#[test]
fn captured_inoutstring_reads_and_writes_the_same_bytes() {
    for capture in ["tcp-InOutString", "msclient-tcp-InOutString"] {
        let shape = || structure("", vec![("s", text())]);
        let value = |text: &str| one("s", Value::Text(text.into()));
        check_call(capture, "InOutString", (shape(), value("abc")), (shape(), value("abc!")));
    }
}

#[test]
fn captured_octets_read_and_write_the_same_bytes() {
    for capture in ["tcp-100", "msclient-tcp-100"] {
        let arguments = (structure("", vec![("numBytes", Shape::I32)]), one("numBytes", Value::Integer(100)));
        let octets: Vec<u8> = (0..100).collect();
        let results = (
            structure("", vec![("return", Shape::sequence(Shape::U8))]),
            one("return", Value::Bytes(octets.into())),
        );
        check_call(capture, "GetBytes", arguments, results);
    }
}

/// Writes a value, pipes it into another body, and reads that.
fn round(shape: &Shape, value: &Value) {
    let first = XML.write(&mut |sink| value.encode(shape, sink)).unwrap();
    records(&first.bytes).unwrap();
    let second = XML.write(&mut |sink| first.pipe(shape, sink)).unwrap();
    assert_eq!(second.bytes, first.bytes, "{value:?}");
    assert_eq!(&second.read(|source| Value::decode(shape, source)).unwrap(), value);
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().collect())
}

#[test]
fn values_pass_the_pipe_and_stay_what_they_were() {
    let integers = |items: &[i128]| list(items.iter().map(|item| Value::Integer(*item)));
    let floats = |items: &[f64]| list(items.iter().map(|item| Value::Float(*item)));
    let texts = |items: &[&str]| list(items.iter().map(|item| Value::Text((*item).to_owned())));
    let point = || structure("m::Point", vec![("X", Shape::I32), ("Y", Shape::F64)]);
    let at = |x, y| Value::Struct(vec![("X".into(), Value::Integer(x)), ("Y".into(), Value::Float(y))]);
    let optional = |shape| Shape::Optional(Hold::new(shape));
    let pointer = |target| Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Unique, target }));
    let octets = |len: usize| Value::Bytes(vec![0xa5; len].into());
    let cases = [
        (Shape::Bool, Value::Bool(true)),
        (Shape::U64, Value::Integer(u64::MAX.into())),
        (Shape::I64, Value::Integer(i64::MIN.into())),
        (Shape::F64, Value::Float(0.1)),
        (Shape::F64, Value::Float(9_223_372_036_854_775_808.0)),
        (Shape::F64, Value::Float(f64::NEG_INFINITY)),
        (Shape::WideChar, Value::Char('é')),
        (text(), Value::Text("<&> héllo".into())),
        (text(), Value::Text(String::new())),
        (text(), Value::Text("x".repeat(70_000))),
        (colour(), Value::Member("Green".into())),
        (point(), at(-3, 0.25)),
        (Shape::sequence(Shape::Bool), list([Value::Bool(true), Value::Bool(false)])),
        (Shape::sequence(Shape::I16), integers(&[1, -2, 30_000])),
        (Shape::sequence(Shape::U16), integers(&[1, 65_535])),
        (Shape::sequence(Shape::I32), integers(&[0, 1, -70_000])),
        (Shape::sequence(Shape::I32), integers(&[])),
        (Shape::sequence(Shape::U64), integers(&[0, u64::MAX.into()])),
        (Shape::sequence(Shape::F64), floats(&[0.5, -0.0, 1e300])),
        (Shape::sequence(text()), texts(&["", "a", "bc"])),
        (Shape::sequence(point()), list([at(1, 2.5), at(2, 0.0)])),
        (Shape::sequence(Shape::sequence(Shape::I32)), list([integers(&[]), integers(&[7, 8])])),
        (Shape::sequence(Shape::sequence(Shape::U8)), list([octets(1), octets(0), octets(4)])),
        (Shape::Array(Hold::new(Array { element: Shape::I32, len: 3 })), integers(&[1, 2, 3])),
        (
            Shape::sequence(structure("m::Nothing", vec![])),
            list([Value::Struct(vec![]), Value::Struct(vec![])]),
        ),
        (optional(Shape::I32), Value::Nothing),
        (optional(text()), Value::Text("t".into())),
        (pointer(point()), at(1, 1.5)),
        (pointer(point()), Value::Nothing),
        (Shape::sequence(optional(Shape::I32)), list([Value::Nothing, Value::Integer(4), Value::Nothing])),
    ];
    for (shape, value) in cases {
        round(&shape, &value);
        // The same as an argument between others.
        let arguments = structure("", vec![("a", Shape::I32), ("v", shape), ("z", text())]);
        let value = Value::Struct(vec![
            ("a".into(), Value::Integer(5)),
            ("v".into(), value),
            ("z".into(), Value::Text("end".into())),
        ]);
        round(&arguments, &value);
    }
    for len in [0, 1, 2, 3, 99, 100, 255, 256, 65_535, 65_536, 100_000] {
        round(&Shape::sequence(Shape::U8), &octets(len));
    }
}

/// A fixed-point number has a remark, as text beside attributes has: it is an element all the same.
#[test]
fn fixed_point_numbers_are_octets_in_an_element() {
    let price = Fixed { digits: 7, scale: 2 };
    let octets = Value::Bytes(price.read("-12.50").unwrap().into());
    let shape = structure("m::Item", vec![("name", text()), ("price", price.shape()), ("more", Shape::I32)]);
    let fields = [("name", Value::Text("x".into())), ("price", octets.clone()), ("more", Value::Integer(1))];
    round(&shape, &Value::Struct(fields.map(|(name, value)| (name.to_owned(), value)).into()));
    round(&structure("", vec![("return", price.shape())]), &one("return", octets));
}

#[test]
fn variants_carry_their_types() {
    use everywire_model::value::TypedShape;
    let text = || Shape::Text(Text::WIDE);
    for (shape, value) in [
        (Shape::Bool, Value::Bool(true)),
        (Shape::I32, Value::Integer(-5)),
        (Shape::U8, Value::Integer(200)),
        (Shape::F64, Value::Float(2.5)),
        (text(), Value::Text("s".into())),
        (Shape::sequence(Shape::U8), Value::Bytes(vec![1, 2].into())),
        (Shape::sequence(Shape::I32), list([Value::Integer(1)])),
    ] {
        let variant = Value::Variant(Box::new((TypedShape(shape), value)));
        round(&Shape::Variant, &variant);
        round(&Shape::sequence(Shape::Variant), &list([variant.clone(), variant]));
    }
}

#[test]
fn arrays_read_from_array_records_and_from_repeated_elements_alike() {
    for element in [
        "400176 0340016901 8d 03 01000000 02000000 70110100 01",
        "400176 40016983 4001698902 4001698d70110100 01",
    ] {
        let body = body(unhex(&element.replace(' ', "")), None, Budget::default());
        for shape in [Shape::I32, Shape::U32, Shape::I64, Shape::U64] {
            let value = body.read(|source| Value::decode(&Shape::sequence(shape.clone()), source)).unwrap();
            assert_eq!(value, list([1, 2, 70_000].map(Value::Integer)), "{element} as {}", shape.noun());
        }
        let mut items = [0_i32; 3];
        body.read(|source| {
            let shape = Shape::sequence(Shape::I32);
            assert_eq!(source.open(&shape)?, 3);
            source.numbers(everywire_model::visit::NumbersMut::I32(&mut items))?;
            source.close(&shape)
        })
        .unwrap();
        assert_eq!(items, [1, 2, 70_000]);
    }
}

#[test]
fn the_bulk_lane_writes_what_one_by_one_writes() {
    let shape = Shape::sequence(Shape::I32);
    let write = |bulk: bool| {
        let visit = &mut |sink: &mut dyn Sink| {
            sink.open(&shape, 3)?;
            match bulk {
                true => sink.numbers(everywire_model::visit::Numbers::I32(&[1, 0, -9]))?,
                false => [1, 0, -9].into_iter().try_for_each(|item| sink.i32(item))?,
            }
            sink.close(&shape)
        };
        XML.write(visit).unwrap().bytes
    };
    assert_eq!(write(true), write(false));
}

#[test]
fn what_xml_has_no_place_for_is_refused_by_name() {
    let refused =
        |visit: &mut dyn FnMut(&mut dyn Sink) -> Result<(), Failure>| XML.write(visit).unwrap_err().kind();
    let handle: everywire_model::Handle =
        std::sync::Arc::new(std::fs::File::open("Cargo.toml").unwrap().into());
    assert_eq!(refused(&mut |sink| sink.handle(&handle)), Kind::Unsupported);
    assert_eq!(refused(&mut |sink| sink.type_code(&TypeCode::null())), Kind::Unsupported);
    assert_eq!(refused(&mut |sink| sink.char('\u{1f600}', true)), Kind::Unsupported);
}

/// Decodes a body with a budget.
fn decode(shape: &Shape, element: Vec<u8>, budget: Budget) -> Result<Value, Failure> {
    body(element, None, budget).read(|source| Value::decode(shape, source))
}

#[test]
fn n4_counts_and_depth_are_charged_to_the_budget() {
    let small = Budget { bytes: 1000, elements: 100, depth: 8, handles: 0 };
    // 200 booleans in an array record, and 200 empty elements.
    let array = [unhex("400176 0340016901b5c801".replace(' ', "").as_str()), vec![1; 200], vec![1]].concat();
    let repeated = [unhex("400176"), unhex("40016983").repeat(200), vec![1]].concat();
    for element in [array, repeated] {
        decode(&Shape::sequence(Shape::Bool), element.clone(), Budget::default()).unwrap();
        let failure = decode(&Shape::sequence(Shape::Bool), element, small).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
    }
    let mut nested = Shape::I32;
    for _ in 0..12 {
        nested = Shape::sequence(nested);
    }
    let element = [unhex("400176").repeat(12), vec![1; 12]].concat();
    decode(&nested, element.clone(), Budget::default()).unwrap();
    assert_eq!(decode(&nested, element, small).unwrap_err().kind(), Kind::LimitExceeded);
}

#[test]
fn n4_no_value_is_written_deeper_than_it_may_be_read() {
    let (mut shape, mut value) = (Shape::I32, Value::Integer(1));
    for _ in 0..MAX_DEPTH {
        (shape, value) = (Shape::sequence(shape), list([value]));
    }
    let failure = XML.write(&mut |sink| value.encode(&shape, sink)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
}

/// The type of a value names an array of arrays of arrays, a hundred thousand deep.
#[test]
fn n4_a_type_nests_no_deeper_than_values_may() {
    let kind = format!("x:{}int", "ArrayOf".repeat(100_000));
    let mut element = unhex("4001762e04747970659c");
    element.extend_from_slice(&u32::try_from(kind.len()).unwrap().to_le_bytes());
    element.extend_from_slice(kind.as_bytes());
    element.push(0x01);
    let failure = decode(&Shape::Variant, element, Budget::default()).unwrap_err();
    assert!(matches!(failure.kind(), Kind::Unsupported | Kind::LimitExceeded | Kind::Malformed), "{failure}");
}

#[test]
fn n5_chained_octets_and_texts_are_charged_to_the_budget() {
    let small = Budget { bytes: 1000, ..Budget::default() };
    let octets = [unhex("400176"), unhex("9e0141").repeat(50_000), vec![1]].concat();
    let value = decode(&Shape::sequence(Shape::U8), octets.clone(), Budget::default()).unwrap();
    assert_eq!(value, Value::Bytes(vec![0x41; 50_000].into()));
    let failure = decode(&Shape::sequence(Shape::U8), octets, small).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    let chars = [unhex("400176"), unhex("980141").repeat(50_000), vec![1]].concat();
    assert_eq!(decode(&text(), chars.clone(), Budget::default()).unwrap(), Value::Text("A".repeat(50_000)));
    assert_eq!(decode(&text(), chars, small).unwrap_err().kind(), Kind::LimitExceeded);
}

/// A word of 2000 bytes, named a thousand times by two bytes each.
#[test]
fn n5_words_that_repeat_are_charged_as_often() {
    let mut words = StringTable::default();
    words.learn(&[unhex("d00f"), vec![b'w'; 2000]].concat()).unwrap();
    let element = [unhex("400176"), unhex("aa01").repeat(1000), vec![1]].concat();
    for shape in [text(), Shape::sequence(Shape::U8), Shape::I32, colour(), Shape::Bool] {
        let body = body(element.clone(), Some(&words), Budget { bytes: 10_000, ..Budget::default() });
        let failure = body.read(|source| Value::decode(&shape, source)).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded, "{}: {failure}", shape.noun());
    }
}

/// Values cut at each byte or with each byte changed: refused, or read as something that can be written and read.
#[test]
fn damaged_values_are_refused_or_read() {
    let (mut tried, mut refused) = (0, 0);
    let sample = structure(
        "",
        vec![
            ("a", Shape::I32),
            ("b", text()),
            ("c", Shape::sequence(Shape::I32)),
            ("d", Shape::sequence(structure("m::P", vec![("X", Shape::F64), ("C", colour())]))),
            ("e", Shape::Optional(Hold::new(Shape::Bool))),
            (
                "f",
                Shape::Sequence(Hold::new(Sequence {
                    element: Shape::U8,
                    bound: Some(9),
                    order: Order::Free,
                    size: None,
                })),
            ),
            ("g", Shape::Variant),
        ],
    );
    let member = |x: f64| {
        Value::Struct(vec![("X".into(), Value::Float(x)), ("C".into(), Value::Member("Red".into()))])
    };
    let variant = (everywire_model::value::TypedShape(Shape::I32), Value::Integer(3));
    let fields = [
        Value::Integer(300),
        Value::Text("text".into()),
        list([1, 2].map(Value::Integer)),
        list([member(0.5), member(2.0)]),
        Value::Bool(true),
        Value::Bytes(vec![1, 2, 3, 4].into()),
        Value::Variant(Box::new(variant)),
    ];
    let value = Value::Struct(
        ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).into_iter().zip(fields).collect(),
    );
    let whole = XML.write(&mut |sink| value.encode(&sample, sink)).unwrap().bytes.to_vec();
    assert_eq!(decode(&sample, whole.clone(), Budget::default()).unwrap(), value);
    let mut attempt = |element: Vec<u8>| {
        tried += 1;
        match decode(&sample, element, Budget::for_message(1000)) {
            Ok(value) => {
                if let Ok(again) = XML.write(&mut |sink| value.encode(&sample, sink)) {
                    again.read(|source| Value::decode(&sample, source)).unwrap();
                }
            }
            Err(_) => refused += 1,
        }
    };
    for at in 0..whole.len() {
        attempt(whole[..at].to_vec());
        for octet in [0x00, 0x7f, 0x80, 0xff, whole[at] ^ 1] {
            let mut damaged = whole.clone();
            damaged[at] = octet;
            attempt(damaged);
        }
    }
    assert!(refused > whole.len() && refused < tried, "{refused} of {tried}");
}
