//! The data contract mapping: captured bodies of DataContractSerializer, every shape there and back, what is missing.

#![allow(clippy::unwrap_used)]

use everywire_model::shape::{Arm, Array, Enum, Field, Hold, Map, Pointer, PointerKind, Struct, Text, Union};
use everywire_model::{Body, Budget, Bytes, Codec, Failure, Kind, Shape, Value, value::TypedShape};
use everywire_wcf::dictionary::{Incoming, Outgoing, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::nbfx::{self, Prefix, Record, Word, Writer};
use everywire_wcf::{BINARY_XML, BinaryXmlSink, BinaryXmlSource, Layout, values};

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

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The bodies of a captured conversation, each with the words known when it was read.
fn bodies(capture: &str, direction: &str) -> Vec<(Vec<u8>, Incoming)> {
    let mut words = Incoming::default();
    let rows = include_str!("golden/envelopes.tsv").lines().map(|row| row.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[0] == capture && row[2] == direction)
        .map(|row| {
            let payload = unhex(row[3]);
            let document = words.receive(&payload).unwrap();
            (document[nbfx::body(document, &words).unwrap()].to_vec(), words.clone())
        })
        .collect()
}

fn decode(element: &[u8], words: &Incoming, layout: &Layout, shape: &Shape) -> Value {
    let mut source = BinaryXmlSource::new(element, words, layout, Budget::default());
    let value = Value::decode(shape, &mut source).unwrap();
    assert_eq!(source.position(), element.len());
    value
}

fn encode(value: &Value, words: &mut Outgoing, layout: &Layout, shape: &Shape) -> Vec<u8> {
    let mut sink = BinaryXmlSink::new(layout, words);
    value.encode(shape, &mut sink).unwrap();
    sink.into_bytes().unwrap()
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
        let layout = Layout::arguments(operation, "http://peers.test/");
        let list = parameters(&[("v", shape.clone())]);
        let expected_of = |name: &str| Value::Struct(vec![field(name, expected.clone())]);
        assert_eq!(decode(element, words, &layout, &list), expected_of("v"), "{operation}");

        let (element, words) = &replies[index];
        let layout = Layout::results(operation, "http://peers.test/");
        let list = parameters(&[("return", shape)]);
        assert_eq!(decode(element, words, &layout, &list), expected_of("return"), "{operation}");
        let again = encode(&expected_of("return"), &mut Outgoing::known(words), &layout, &list);
        assert_eq!(again, *element, "{operation}");
    }
}

/// The data contract of the captured `EchoAll`, in its (alphabetical) order, without the members that NBFX has no
/// neutral shape for: those are skipped.
fn all_types() -> Shape {
    let members = vec![("Red".into(), 0), ("Grn".into(), 1)].into();
    let color = Enum { name: "Color".into(), id: "".into(), members, bits: 32 };
    let map = Map { key: text(), value: Shape::I32 };
    let offset = structure("DateTimeOffset", &[("DateTime", text()), ("OffsetMinutes", Shape::I16)]);
    structure(
        "AllTypes",
        &[
            ("Blob", Shape::sequence(Shape::U8)),
            ("Bool", Shape::Bool),
            ("Boxed", Shape::Variant),
            ("Ch", Shape::WideChar),
            ("Color", Shape::Enum(Hold::new(color))),
            ("Dec", text()),
            ("Doubles", Shape::sequence(Shape::F64)),
            ("Dto", offset),
            ("F32", Shape::F32),
            ("F64", Shape::F64),
            ("Guid", text()),
            ("I16", Shape::I16),
            ("I32", Shape::I32),
            ("I64", Shape::I64),
            ("I8", Shape::I8),
            ("Ints", Shape::sequence(Shape::I32)),
            ("Map", Shape::Map(Hold::new(map))),
            ("NInt", optional(Shape::I32)),
            ("NIntNull", optional(Shape::I32)),
            ("NullStr", optional(text())),
            ("Str", text()),
            ("Strs", Shape::sequence(optional(text()))),
            ("U16", Shape::U16),
            ("U32", Shape::U32),
            ("U64", Shape::U64),
            ("U8", Shape::U8),
            ("Utc", text()),
        ],
    )
}

#[test]
fn a_captured_data_contract_of_all_types_decodes_and_survives() {
    for (direction, name) in [("C", "v"), ("S", "return")] {
        let (element, words) = &bodies("msclient-tcp-types", direction)[6];
        let layout = match direction {
            "C" => Layout::arguments("EchoAll", "http://peers.test/"),
            _ => Layout::results("EchoAll", "http://peers.test/"),
        };
        let layout = layout.with_data_namespace(|name| match name {
            "DateTimeOffset" => "http://schemas.datacontract.org/2004/07/System".into(),
            _ => "urn:peers".into(),
        });
        let list = parameters(&[(name, all_types())]);
        let value = decode(element, words, &layout, &list);
        let Value::Struct(top) = &value else { panic!("no struct") };
        let Value::Struct(fields) = &top[0].1 else { panic!("no struct") };
        let get = |name: &str| &fields.iter().find(|(found, _)| found == name).unwrap().1;
        assert_eq!(*get("Boxed"), Value::Variant(Box::new((TypedShape(Shape::I32), Value::Integer(42)))));
        assert_eq!(*get("Ch"), Value::Char('A'));
        assert_eq!(*get("Color"), Value::Member("Grn".into()));
        assert_eq!(*get("Dec"), Value::Text("12.34".into()));
        assert_eq!(*get("Guid"), Value::Text("00112233-4455-6677-8899-aabbccddeeff".into()));
        assert_eq!(*get("I64"), Value::Integer(-64_000_000_000));
        assert_eq!(*get("NIntNull"), Value::Nothing);
        assert_eq!(*get("Str"), Value::Text("h\u{e9}llo <&>".into()));
        assert_eq!(*get("U64"), Value::Integer(18_000_000_000_000_000_000));
        assert_eq!(*get("Utc"), Value::Text("2020-01-02T03:04:05Z".into()));
        let texts = [Value::Text("a".into()), Value::Nothing, Value::Text(String::new())];
        assert_eq!(*get("Strs"), Value::List(texts.to_vec()));
        let Value::List(doubles) = get("Doubles") else { panic!("no list") };
        let [Value::Float(half), Value::Float(nan), Value::Float(infinity)] = doubles[..] else {
            panic!("no floats")
        };
        assert!(half == 0.5 && nan.is_nan() && infinity == f64::INFINITY);

        // NaN is not equal to itself: what is written and read anew is compared as people see it.
        let again = encode(&value, &mut Outgoing::statics(), &layout, &list);
        let reread = decode(&again, &Incoming::default(), &layout, &list);
        assert_eq!(format!("{reread:?}"), format!("{value:?}"));
    }
}

#[test]
fn a_megabyte_is_two_records_and_in_one_record_is_shared() {
    let octets: Vec<u8> = (0..1_000_000_u32).map(|at| at as u8).collect();
    let list = parameters(&[("return", Shape::sequence(Shape::U8))]);
    let layout = Layout::results("GetBytes", TEMPURI);
    let value = Value::Struct(vec![field("return", Value::Bytes(octets.clone().into()))]);
    let element = encode(&value, &mut Outgoing::inline(), &layout, &list);
    let start = b"\x40\x10GetBytesResponse\x08\x13http://tempuri.org/\x40\x0eGetBytesResult\xa2\x3f\x42\x0f\x00\x00\x01";
    assert_eq!(element[..start.len()], start[..]);
    assert_eq!(element[element.len() - 4..], [0x9f, 1, 0x3f, 0x01]);
    assert_eq!(decode(&element, &Incoming::default(), &layout, &list), value);

    let mut writer = Writer::new();
    writer.put(&Record::Element(Prefix::None, Word::Inline("R")));
    writer.put(&Record::Element(Prefix::None, Word::Inline("xResult")));
    writer.text(nbfx::Text::Bytes(&octets));
    writer.end();
    writer.end();
    let body = values::body(writer.into_bytes(), None, Budget::default());
    let (shared,) = body.decode::<(Bytes,)>(&list).unwrap();
    assert!(body.bytes.as_ptr_range().contains(&shared.as_ptr()), "the octets were copied");
    assert_eq!(shared, octets);
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
fn every_shape_survives_with_any_dictionary() {
    let (shape, value) = every_shape();
    let layout = Layout::arguments("Op", TEMPURI);
    for mut outgoing in [Outgoing::inline(), Outgoing::statics(), Outgoing::session()] {
        let element = encode(&value, &mut outgoing, &layout, &shape);
        let payload = outgoing.payload(&element);
        let mut words = Incoming::default();
        let document = words.receive(&payload).unwrap();
        assert_eq!(document, element);
        assert_eq!(words.is_empty(), !outgoing.learns);
        assert_eq!(decode(document, &words, &layout, &shape), value);

        // The second message of a session needs no new words.
        let again = encode(&value, &mut outgoing, &layout, &shape);
        assert_eq!((again.as_slice(), outgoing.payload(&[])), (document, vec![0]));
    }
}

#[test]
fn bodies_are_piped_and_carry_their_words() {
    let (shape, value) = every_shape();
    let body = BINARY_XML.write(&mut |sink| value.encode(&shape, sink)).unwrap();
    assert_eq!(body.read(|source| Value::decode(&shape, source)).unwrap(), value);
    let piped = BINARY_XML.write(&mut |sink| body.pipe(&shape, sink)).unwrap();
    assert_eq!(piped.bytes, body.bytes);

    let mut session = Outgoing::session();
    let element = encode(&value, &mut session, &Layout::arguments("Op", TEMPURI), &shape);
    let mut words = Incoming::default();
    words.receive(&session.payload(&element)).unwrap();
    let body: Body = values::body(element, Some(&words), Budget::default());
    assert_eq!(body.dialect, values::WITH_TABLE);
    assert_eq!(BINARY_XML.write(&mut |sink| body.pipe(&shape, sink)).unwrap().bytes, piped.bytes);
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
    let element = encode(&whole, &mut Outgoing::statics(), &Layout::arguments("Op", "urn:o"), &shape);
    let geo = "xmlns:b=\"http://schemas.datacontract.org/2004/07/Geo\"";
    let xsi = "xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"";
    assert_eq!(
        to_xml(&element, static_word).unwrap(),
        format!(
            "<Op xmlns=\"urn:o\"><p {geo} {xsi}><b:X>1</b:X><b:Name i:nil=\"true\"/></p><list {geo} {xsi}><b:Point>\
             <b:X>2</b:X><b:Name>b</b:Name></b:Point></list><n i:nil=\"true\" {xsi}/></Op>"
        )
    );
}

fn read(elements: &[(&str, &str)], shape: &Shape) -> Result<Value, Failure> {
    let mut writer = Writer::new();
    let start = |writer: &mut Writer, name| writer.put(&Record::Element(Prefix::None, Word::Inline(name)));
    start(&mut writer, "Op");
    for (name, text) in elements {
        start(&mut writer, name);
        writer.chars(text);
        writer.end();
    }
    writer.end();
    values::body(writer.into_bytes(), None, Budget::default()).read(|source| Value::decode(shape, source))
}

#[test]
fn unknown_elements_are_skipped_and_missing_ones_are_named() {
    let shape = parameters(&[("a", Shape::I32), ("b", optional(Shape::I32)), ("c", Shape::Bool)]);
    let value =
        |b| Value::Struct(vec![field("a", Value::Integer(1)), field("b", b), field("c", Value::Bool(true))]);
    assert_eq!(
        read(&[("new", "x"), ("a", "1"), ("c", "true"), ("z", "")], &shape).unwrap(),
        value(Value::Nothing)
    );
    assert_eq!(read(&[("a", " 1 "), ("b", "2"), ("c", "1")], &shape).unwrap(), value(Value::Integer(2)));
    for (elements, name) in [
        (&[("c", "true"), ("a", "1")][..], "nbfx MissingElement"),
        (&[("a", "1")], "nbfx MissingElement"),
        (&[("a", "x"), ("c", "true")], "nbfx BadValue"),
        (&[("a", "2147483648"), ("c", "true")], "nbfx BadValue"),
        (&[("a", ""), ("c", "true")], "nbfx BadValue"),
        (&[("a", "1"), ("c", "yes")], "nbfx BadValue"),
    ] {
        let failure = read(elements, &shape).unwrap_err();
        assert_eq!((failure.code().unwrap(), failure.kind()), (name, Kind::Malformed), "{elements:?}");
    }
}

#[test]
fn damaged_bodies_are_values_or_named_failures() {
    let (shape, value) = every_shape();
    let element = encode(&value, &mut Outgoing::statics(), &Layout::arguments("Op", TEMPURI), &shape);
    let read = |bytes: &[u8]| {
        let body = values::body(bytes.to_vec(), None, Budget::default());
        body.read(|source| Value::decode(&shape, source))
    };
    for cut in 0..element.len() {
        let failure = read(&element[..cut]).unwrap_err();
        assert!(failure.code().unwrap().starts_with("nbfx "), "cut at {cut}: {failure}");
    }
    for at in 0..element.len() {
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut bytes = element.clone();
            bytes[at] = byte;
            if let Err(failure) = read(&bytes) {
                let kinds = [Kind::Malformed, Kind::LimitExceeded, Kind::Unsupported];
                assert!(kinds.contains(&failure.kind()), "byte {at} as {byte:02x}: {failure}");
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
    let body = values::body(bytes, None, Budget::default());
    let (v,) = body.decode::<(Vec<i32>,)>(&shape).unwrap();
    assert_eq!(v, [7]);
}
