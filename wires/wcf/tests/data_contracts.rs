//! The data contract mapping: captured bodies of DataContractSerializer, every shape there and back, what is missing.

#![allow(clippy::unwrap_used)]

use crate::common::{
    arguments, body, body_in, body_of, decode, encode, payload_of, received, results, unhex,
};
use everywire_model::shape::{Arm, Array, Field, Hold, Map, Pointer, PointerKind, Struct, Text, Union};
use everywire_model::{
    Budget, Bytes, Codec, Failure, Kind, SendBuffer, Shape, Sink, Value, value::TypedShape,
};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::nbfx::{self, Prefix, Record, Word, Writer};
use everywire_wcf::values::{Form, XML, write_body};

const TEMPURI: &str = "http://tempuri.org/";

fn structure(name: &str, fields: &[(&str, Shape)]) -> Shape {
    let fields =
        fields.iter().map(|(name, shape)| Field { name: (*name).to_owned().into(), shape: shape.clone() });
    let fields: Vec<Field> = fields.collect();
    Shape::Struct(Hold::new(Struct { name: name.to_owned().into(), id: "".into(), fields: fields.into() }))
}

fn parameters(fields: &[(&str, Shape)]) -> Shape {
    structure("", fields)
}

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn optional(shape: Shape) -> Shape {
    Shape::Optional(Hold::new(shape))
}

fn field(name: &str, value: Value) -> (String, Value) {
    (name.to_owned(), value)
}

fn integers(list: &[i128]) -> Value {
    Value::List(list.iter().map(|value| Value::Integer(*value)).collect())
}

/// The bodies of a captured conversation, each with the words known when it was read.
fn bodies(capture: &str, direction: &str) -> Vec<(Vec<u8>, StringTable)> {
    let mut words = StringTable::default();
    let rows = include_str!("golden/envelopes.tsv").lines().map(|row| row.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[0] == capture && row[2] == direction)
        .map(|row| {
            let payload = unhex(row[3]);
            let document = received(&mut words, &payload).unwrap();
            (document[body_of(document, &words).unwrap()].to_vec(), words.clone())
        })
        .collect()
}

#[test]
fn captured_arrays_of_datacontractserializer_are_the_same_bytes_both_ways() {
    let doubles = |list: &[f64]| Value::List(list.iter().map(|value| Value::Float(*value)).collect());
    let texts = Value::List(vec![Value::Text("a".into()), Value::Text("b".into())]);
    let cases = [
        ("EchoLong", Shape::I64, Value::Integer(-5_000_000_000)),
        ("EchoInts", Shape::sequence(Shape::I32), integers(&[1, 200, 70000, 0])),
        ("EchoDoubles", Shape::sequence(Shape::F64), doubles(&[1.5, 2.0])),
        ("EchoBools", Shape::sequence(Shape::Bool), Value::List(vec![Value::Bool(true), Value::Bool(false)])),
        ("EchoStrings", Shape::sequence(text()), texts),
        ("EchoBytes", Shape::sequence(Shape::U8), Value::Bytes(vec![1, 2, 3].into())),
    ];
    let (requests, replies) = (bodies("msclient-tcp-types", "C"), bodies("msclient-tcp-types", "S"));
    for (index, (operation, shape, expected)) in cases.into_iter().enumerate() {
        let (element, words) = &requests[index];
        let list = parameters(&[("v", shape.clone())]);
        let expected_of = |name: &str| Value::Struct(vec![field(name, expected.clone())]);
        assert_eq!(decode(Form::Binary, element, words, &list), expected_of("v"), "{operation}");

        let (element, words) = &replies[index];
        let list = parameters(&[("return", shape)]);
        let layout = results(operation, "http://peers.test/", &list);
        assert_eq!(decode(Form::Binary, element, words, &list), expected_of("return"), "{operation}");
        let known = &mut Outgoing::known(words);
        let again = encode(Form::Binary, &expected_of("return"), known, &layout, &list);
        assert_eq!(again, *element, "{operation}");
    }
}

#[test]
fn a_megabyte_is_one_record_and_shared_both_ways() {
    let octets: Bytes = (0..1_000_000_u32).map(|at| at as u8).collect::<Vec<u8>>().into();
    let list = parameters(&[("return", Shape::sequence(Shape::U8))]);
    let layout = results("GetBytes", TEMPURI, &list);
    let value = Value::Struct(vec![field("return", Value::Bytes(octets.clone()))]);
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| value.encode(&list, sink);
    write_body(Form::Binary, &layout, &mut Outgoing::inline(), &visit, &mut out).unwrap();
    let parts = out.slices(usize::MAX, usize::MAX);
    assert_eq!(parts[1].as_ptr(), octets.as_ptr(), "the octets were copied");
    let element = out.to_vec();
    let start =
        b"\x40\x10GetBytesResponse\x08\x13http://tempuri.org/\x40\x0eGetBytesResult\xa3\x40\x42\x0f\x00";
    assert_eq!(element[..start.len()], start[..]);
    assert_eq!(element.len(), start.len() + octets.len() + 1);
    let body = body(element, None, Budget::default());
    let (shared,) = body.decode::<(Bytes,)>(&list).unwrap();
    assert!(body.bytes.as_ptr_range().contains(&shared.as_ptr()), "the octets were copied");
    assert_eq!(shared, octets);
}

/// Microsoft's writer keeps whole groups of three octets apart from the rest.
#[test]
fn a_megabyte_in_two_records_is_joined() {
    let octets: Bytes = (0..1_000_000_u32).map(|at| at as u8).collect::<Vec<u8>>().into();
    let list = parameters(&[("return", Shape::sequence(Shape::U8))]);
    let mut writer = Writer::new();
    writer.put(&Record::Element(Prefix::None, Word::Inline("R")));
    writer.put(&Record::Element(Prefix::None, Word::Inline("xResult")));
    writer.text(nbfx::Text::Bytes(&octets[..999_999]));
    writer.text(nbfx::Text::Bytes(&octets[999_999..]));
    writer.end();
    writer.end();
    let body = body(writer.into_bytes(), None, Budget::default());
    let (joined,) = body.decode::<(Bytes,)>(&list).unwrap();
    assert_eq!(joined, octets);
}

fn every_shape() -> (Shape, Value) {
    let point = structure("Geo::Point", &[("X", Shape::F64), ("Y", Shape::F32)]);
    let arm = |label: i64, name: &'static str, shape| {
        let field = Field { name: name.into(), shape };
        Arm { labels: vec![label].into(), default: false, field }
    };
    let union = Shape::Union(Hold::new(Union {
        name: "Geo::Either".into(),
        id: "".into(),
        discriminator: Shape::I32,
        arms: vec![arm(1, "Text", text()), arm(2, "Point", point.clone())].into(),
    }));
    let pointer = |target| Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Unique, target }));
    let array = |len, element| Shape::Array(Hold::new(Array { element, len }));
    let point_of =
        |x: f64, y: f64| Value::Struct(vec![field("X", Value::Float(x)), field("Y", Value::Float(y))]);
    let variant = |shape: Shape, value| Value::Variant(Box::new((TypedShape(shape), value)));
    let either = |label, name: &str, value| Value::Union(label, Some(Box::new(field(name, value))));
    let map = Shape::Map(Hold::new(Map { key: text(), value: point.clone() }));
    let pair = |key: &str, value| (Value::Text(key.into()), value);
    let eithers = vec![either(1, "Text", Value::Text("x".into())), either(2, "Point", point_of(0.0, 0.5))];
    let flags = vec![Value::Bool(true), Value::Bool(false), Value::Bool(true)];
    let floats = Value::List(vec![Value::Float(0.1)]);
    let cases = vec![
        (
            "points",
            Shape::sequence(point.clone()),
            Value::List(vec![point_of(1.5, 2.0), point_of(-0.25, 1e10)]),
        ),
        ("none", Shape::sequence(point.clone()), Value::List(vec![])),
        (
            "grid",
            Shape::sequence(Shape::sequence(Shape::I32)),
            Value::List(vec![integers(&[1, 2]), integers(&[])]),
        ),
        (
            "blobs",
            Shape::sequence(Shape::sequence(Shape::U8)),
            Value::List(vec![Value::Bytes(vec![1; 4].into())]),
        ),
        ("words", array(2, Shape::U16), integers(&[1, 65535])),
        ("flags", array(3, Shape::Bool), Value::List(flags)),
        ("longs", Shape::sequence(Shape::I64), integers(&[i64::MIN.into(), 0, i64::MAX.into()])),
        ("huge", Shape::U64, Value::Integer(u64::MAX.into())),
        ("either", Shape::sequence(union), Value::List(eithers)),
        ("map", map, Value::Map(vec![pair("a", point_of(1.0, 1.0)), pair("b", point_of(2.0, 2.0))])),
        ("nil", pointer(point.clone()), Value::Nothing),
        ("some", pointer(point), point_of(3.0, 4.0)),
        ("maybe", optional(Shape::sequence(Shape::I32)), integers(&[7])),
        ("deep", optional(optional(Shape::I8)), Value::Integer(-1)),
        ("any", Shape::Variant, variant(text(), Value::Text("t".into()))),
        ("numbers", Shape::Variant, variant(Shape::sequence(Shape::F64), floats)),
        ("octets", Shape::Variant, variant(Shape::sequence(Shape::U8), Value::Bytes(vec![9].into()))),
        ("nothing", Shape::Variant, variant(Shape::Void, Value::Nothing)),
        ("last", Shape::Char, Value::Char('z')),
    ];
    let shape = parameters(&cases.iter().map(|(name, shape, _)| (*name, shape.clone())).collect::<Vec<_>>());
    (shape, Value::Struct(cases.into_iter().map(|(name, _, value)| field(name, value)).collect()))
}

#[test]
fn every_shape_survives_in_both_forms_with_any_dictionary() {
    let (shape, value) = every_shape();
    let layout = arguments("Op", TEMPURI, &shape);
    for mut outgoing in [Outgoing::inline(), Outgoing::statics(), Outgoing::session()] {
        let element = encode(Form::Binary, &value, &mut outgoing, &layout, &shape);
        let payload = payload_of(&mut outgoing, &element);
        let mut words = StringTable::default();
        let document = received(&mut words, &payload).unwrap();
        assert_eq!(document, element);
        assert_eq!(words.is_empty(), !outgoing.learns);
        assert_eq!(decode(Form::Binary, document, &words, &shape), value);

        // The second message of a session needs no new words.
        let again = encode(Form::Binary, &value, &mut outgoing, &layout, &shape);
        assert_eq!((again.as_slice(), payload_of(&mut outgoing, &[])), (document, vec![0]));
    }
    let element = encode(Form::Text, &value, &mut Outgoing::inline(), &layout, &shape);
    assert_eq!(decode(Form::Text, &element, &StringTable::default(), &shape), value);
}

#[test]
fn bodies_are_piped_from_one_form_to_the_other() {
    let (shape, value) = every_shape();
    let first = XML.write(&mut |sink| value.encode(&shape, sink)).unwrap();
    assert_eq!(first.read(|source| Value::decode(&shape, source)).unwrap(), value);
    let layout = arguments("Op", TEMPURI, &shape);
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| first.pipe(&shape, sink);
    write_body(Form::Text, &layout, &mut Outgoing::inline(), &visit, &mut out).unwrap();
    let text = body_in(Form::Text, out.to_vec(), &StringTable::default(), Budget::default());
    assert_eq!(XML.write(&mut |sink| text.pipe(&shape, sink)).unwrap().bytes, first.bytes);
}

#[test]
fn elements_are_named_and_declared_as_datacontractserializer_does() {
    let point = structure("Geo::Point", &[("X", Shape::I32), ("Name", optional(text()))]);
    let shape =
        parameters(&[("p", point.clone()), ("list", Shape::sequence(point)), ("n", optional(Shape::I32))]);
    let point_of = |x, name| Value::Struct(vec![field("X", Value::Integer(x)), field("Name", name)]);
    let whole = Value::Struct(vec![
        field("p", point_of(1, Value::Nothing)),
        field("list", Value::List(vec![point_of(2, Value::Text("b".into()))])),
        field("n", Value::Nothing),
    ]);
    let layout = arguments("Op", "urn:o", &shape);
    let element = encode(Form::Binary, &whole, &mut Outgoing::statics(), &layout, &shape);
    let geo = "xmlns:b=\"http://schemas.datacontract.org/2004/07/Geo\"";
    let xsi = "xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"";
    let expected = format!(
        "<Op xmlns=\"urn:o\"><p {geo} {xsi}><b:X>1</b:X><b:Name i:nil=\"true\"/></p><list {geo} {xsi}><b:Point>\
         <b:X>2</b:X><b:Name>b</b:Name></b:Point></list><n i:nil=\"true\" {xsi}/></Op>"
    );
    assert_eq!(to_xml(&element, static_word).unwrap(), expected);
    let text = encode(Form::Text, &whole, &mut Outgoing::inline(), &layout, &shape);
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

/// A body of elements with text in them, in both forms; what is read of it must be the same.
fn read(elements: &[(&str, &str)], shape: &Shape) -> Result<Value, Failure> {
    let mut writer = Writer::new();
    let start = |writer: &mut Writer, name| writer.put(&Record::Element(Prefix::None, Word::Inline(name)));
    start(&mut writer, "Op");
    let mut text = "<Op>".to_owned();
    for (name, content) in elements {
        start(&mut writer, name);
        writer.chars(content);
        writer.end();
        text.push_str(&format!("\n <{name} >{content}</{name}><!-- -->"));
    }
    writer.end();
    text.push_str("</Op>");
    let value =
        body(writer.into_bytes(), None, Budget::default()).read(|source| Value::decode(shape, source));
    let text = body_in(Form::Text, text.into_bytes(), &StringTable::default(), Budget::default());
    let of_text = text.read(|source| Value::decode(shape, source));
    match (&value, &of_text) {
        (Ok(value), Ok(of_text)) => assert_eq!(value, of_text),
        (Err(failure), Err(of_text)) => assert_eq!(failure.code(), of_text.code()),
        _ => panic!("{value:?} in binary, {of_text:?} in text"),
    }
    value
}

#[test]
fn unknown_elements_are_skipped_missing_ones_are_zero_and_order_does_not_matter() {
    let shape = parameters(&[("a", Shape::I32), ("b", optional(Shape::I32)), ("c", Shape::Bool)]);
    let value = |a, b, c| {
        Value::Struct(vec![field("a", Value::Integer(a)), field("b", b), field("c", Value::Bool(c))])
    };
    for (elements, expected) in [
        (&[("new", "x"), ("a", "1"), ("c", "true"), ("z", "")][..], value(1, Value::Nothing, true)),
        (&[("a", " 1 "), ("b", "2"), ("c", "1")], value(1, Value::Integer(2), true)),
        (&[("c", "true"), ("y", "?"), ("b", "2"), ("a", "1"), ("z", "")], value(1, Value::Integer(2), true)),
        (&[("c", "true"), ("a", "1")], value(1, Value::Nothing, true)),
        (&[("a", "1")], value(1, Value::Nothing, false)),
        (&[], value(0, Value::Nothing, false)),
    ] {
        assert_eq!(read(elements, &shape).unwrap(), expected, "{elements:?}");
    }
    for elements in [
        [("a", "x"), ("c", "true")],
        [("a", "2147483648"), ("c", "true")],
        [("a", ""), ("c", "true")],
        [("a", "1"), ("c", "yes")],
    ] {
        let failure = read(&elements, &shape).unwrap_err();
        assert_eq!(
            (failure.code().unwrap(), failure.kind()),
            ("nbfx BadValue", Kind::Malformed),
            "{elements:?}"
        );
    }
}

#[test]
fn damaged_bodies_are_values_or_named_failures() {
    let (shape, value) = every_shape();
    let layout = arguments("Op", TEMPURI, &shape);
    for form in [Form::Binary, Form::Text] {
        let element = encode(form, &value, &mut Outgoing::statics(), &layout, &shape);
        let read = |bytes: &[u8]| {
            let body = body_in(form, bytes.to_vec(), &StringTable::default(), Budget::default());
            body.read(|source| Value::decode(&shape, source))
        };
        for cut in (0..element.len()).step_by(3) {
            if let Err(failure) = read(&element[..cut]) {
                assert!(failure.code().is_some(), "cut at {cut}: {failure}");
            } else {
                // An empty document is no fields.
                assert_eq!(cut, 0);
            }
        }
        for at in (0..element.len()).step_by(3) {
            for byte in [0x00, b'<', 0xff] {
                let mut bytes = element.clone();
                bytes[at] = byte;
                if let Err(failure) = read(&bytes) {
                    let kinds = [Kind::Malformed, Kind::LimitExceeded, Kind::Unsupported];
                    assert!(kinds.contains(&failure.kind()), "byte {at} as {byte:02x}: {failure}");
                }
            }
        }
    }
}

#[test]
fn empty_arrays_and_comments_in_any_number_cost_no_stack() {
    let shape = parameters(&[("v", Shape::sequence(Shape::I32))]);
    let mut bytes = b"\x40\x02Op\x40\x01v".to_vec();
    for _ in 0..200_000 {
        bytes.extend(b"\x03\x40\x01i\x01\x8d\x00\x02\x00");
    }
    bytes.extend(b"\x40\x01i\x89\x07\x01\x01");
    let body = body(bytes, None, Budget::default());
    let (v,) = body.decode::<(Vec<i32>,)>(&shape).unwrap();
    assert_eq!(v, [7]);
}

/// Refuses an element that comes twice, and names it.
fn refuses_repeated(elements: &[(&str, &str)], shape: &Shape, name: &str) {
    let failure = read(elements, shape).unwrap_err();
    let found = (failure.code().unwrap(), failure.place(), failure.kind());
    assert_eq!(
        found,
        ("nbfx RepeatedElement", &*format!("element `{name}`"), Kind::Malformed),
        "{elements:?}"
    );
}

#[test]
fn a_second_element_for_one_member_is_refused_by_name() {
    let shape = parameters(&[("a", Shape::I32), ("b", optional(Shape::I32)), ("c", Shape::Bool)]);
    for (elements, name) in [
        (&[("a", "5"), ("a", "6")][..], "a"),
        (&[("a", "5"), ("b", "1"), ("c", "true"), ("a", "5")], "a"),
        (&[("a", "5"), ("b", "1"), ("b", "2"), ("c", "true")], "b"),
        (&[("b", "2"), ("b", "3"), ("c", "true")], "b"),
        (&[("c", "true"), ("a", "5"), ("new", ""), ("c", "true")], "c"),
        (&[("a", "5"), ("b", "1"), ("c", "true"), ("new", ""), ("new", ""), ("c", "")], "c"),
    ] {
        refuses_repeated(elements, &shape, name);
    }
    // Members of a struct, and what an operation returns under whichever name.
    let held = parameters(&[("return", Shape::I32), ("more", Shape::I32)]);
    refuses_repeated(&[("AddResult", "1"), ("AddResult", "2"), ("more", "3")], &held, "AddResult");
    refuses_repeated(&[("AddResult", "1"), ("more", "3"), ("AddResult", "2")], &held, "AddResult");
    let result = Value::Struct(vec![field("return", Value::Integer(1)), field("more", Value::Integer(3))]);
    for unknown in ["OtherResult", "other"] {
        let elements = [("AddResult", "1"), ("more", "3"), (unknown, "2"), (unknown, "2")];
        assert_eq!(read(&elements, &held).unwrap(), result, "{unknown}");
    }
    let inner = parameters(&[("s", structure("S", &[("x", Shape::I32), ("y", Shape::I32)]))]);
    let document = |inside: &str| {
        let text = format!("<Op><s>{inside}</s></Op>").into_bytes();
        let body = body_in(Form::Text, text, &StringTable::default(), Budget::default());
        body.read(|source| Value::decode(&inner, source))
    };
    assert!(document("<x>1</x><y>2</y> <!-- --> <z/><z/>").is_ok());
    for inside in ["<x>1</x><x>2</x><y>2</y>", "<x>1</x><y>2</y><z/><y>2</y>", "<y>1</y><x>1</x><y>2</y>"] {
        assert_eq!(document(inside).unwrap_err().code(), Some("nbfx RepeatedElement"), "{inside}");
    }
}

/// A binary body `<Op>` with these records in it.
fn of_records(records: &[u8], shape: &Shape) -> Result<Value, Failure> {
    let document = [b"\x40\x02Op", records, b"\x01"].concat();
    body(document, None, Budget::default()).read(|source| Value::decode(shape, source))
}

/// The array record of elements of this name, of 32-bit numbers.
fn array_of(name: &str, items: &[i32]) -> Vec<u8> {
    let [length, count] = [name.len(), items.len()].map(|len| u8::try_from(len).unwrap());
    let mut record = vec![0x03, 0x40, length];
    record.extend_from_slice(name.as_bytes());
    record.extend_from_slice(&[0x01, 0x8d, count]);
    items.iter().for_each(|item| record.extend_from_slice(&item.to_le_bytes()));
    record
}

#[test]
fn an_array_record_is_never_lost() {
    let shape = parameters(&[("x", Shape::I32), ("y", optional(Shape::I32))]);
    let y = b"\x40\x01y\x89\x07";
    for records in [
        array_of("x", &[5]),
        array_of("x", &[5, 6]),
        [&array_of("x", &[5]), &y[..]].concat(),
        [&b"\x40\x01x\x89\x05"[..], &array_of("x", &[5])].concat(),
        [&y[..], &array_of("x", &[5])].concat(),
        [&b"\x40\x03new\x01"[..], &array_of("x", &[5])].concat(),
    ] {
        let failure = of_records(&records, &shape).unwrap_err();
        let found = (failure.code(), failure.place());
        assert_eq!(found, (Some("nbfx ArrayForOne"), "element `x`"), "{records:02x?}");
    }
    // Of elements that the contract does not know, and of none.
    let x = b"\x40\x01x\x89\x05";
    let expected = Value::Struct(vec![field("x", Value::Integer(5)), field("y", Value::Integer(7))]);
    for records in [
        [&array_of("new", &[1, 2]), &x[..], y].concat(),
        [&x[..], y, &array_of("new", &[1, 2])].concat(),
        [&y[..], &array_of("new", &[1]), x].concat(),
        [&array_of("x", &[]), &x[..], y, &array_of("y", &[])].concat(),
    ] {
        assert_eq!(of_records(&records, &shape).unwrap(), expected, "{records:02x?}");
    }
    // The value of a pair.
    let map = Shape::Map(Hold::new(Map { key: Shape::I32, value: Shape::I32 }));
    let pair = [&b"\x40\x01m\x40\x01p\x40\x01k\x89\x01"[..], &array_of("v", &[5]), b"\x01\x01"].concat();
    let failure = of_records(&pair, &parameters(&[("m", map)])).unwrap_err();
    assert_eq!((failure.code(), failure.place()), (Some("nbfx ArrayForOne"), "element `v`"));
}

#[test]
fn lists_and_qualified_names_read_as_the_text_that_they_stand_for() {
    let shape = parameters(&[("t", text())]);
    let read = |content: &[u8]| of_records(&[b"\x40\x01t", content].concat(), &shape);
    let is = |content: &[u8], expected: &str| {
        let expected = Value::Struct(vec![field("t", Value::Text(expected.into()))]);
        assert_eq!(read(content).unwrap(), expected, "{content:02x?}");
    };
    // A list of 5 and 6, whose end ends the element, and beside other text.
    is(b"\xa4\x88\x05\x88\x06\xa7", "5 6");
    is(b"\xa4\x88\x05\x88\x06\xa6\x01", "5 6");
    is(b"\xa4\x98\x01a\x86\x98\x01b\xa7", "a true b");
    is(b"\xa4\x88\x05\xa7", "5");
    is(b"\xa4\xa7", "");
    // Pieces of one text have nothing between them.
    is(b"\x98\x01a\x98\x01b\x99\x01c", "abc");
    // A name with the prefix p, and the word 2 of the dictionary of SOAP.
    is(b"\xbd\x0f\x02", "p:Envelope");
    is(b"\xa4\xbc\x0f\x02\xbc\x00\x02\xa7", "p:Envelope a:Envelope");
    assert_eq!(read(b"\xbd\x0f\xfd\x7f").unwrap_err().code(), Some("nbfx UnknownWord"));
}
