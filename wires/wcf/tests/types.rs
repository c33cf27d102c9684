//! Every type of the data contract, as DataContractSerializer writes it: captured bodies in both forms, there and back.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, body_of, body_with, each_document, results};
use everywire_model::shape::{Alias, Arm, Enum, Field, Hold, Map, Struct, Text, Union};
use everywire_model::{Budget, SendBuffer, Shape, Sink, Value, value::TypedShape};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::{self, xml::to_xml};
use everywire_wcf::text::{Event, Reader};
use everywire_wcf::values::{BodyContext, Form, Layout, QName, ReaderQuotas, write_body, write_detail};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

const PEERS: &str = "http://peers.test/";
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";

fn fields(fields: Vec<(&'static str, Shape)>) -> Vec<Field> {
    fields.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect()
}

fn structure(id: &'static str, members: Vec<(&'static str, Shape)>) -> Shape {
    let name = id.rsplit('}').next().unwrap();
    Shape::Struct(Hold::new(Struct { name: name.into(), id: id.into(), fields: fields(members).into() }))
}

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn typed(namespace: &str, name: &'static str) -> Shape {
    let id = format!("{{{namespace}}}{name}").into();
    Shape::Alias(Hold::new(Alias { name: name.into(), id, target: text() }))
}

fn optional(shape: Shape) -> Shape {
    Shape::Optional(Hold::new(shape))
}

/// `Base`, which `Derived` derives from.
fn poly() -> Shape {
    let arm = |label: i64, name: &'static str, members| Arm {
        labels: vec![label].into(),
        default: false,
        field: Field { name: name.into(), shape: structure(name, members) },
    };
    let base = arm(0, "{urn:peers}Base", vec![("Id", Shape::I32)]);
    let derived = arm(1, "{urn:peers}Derived", vec![("Id", Shape::I32), ("Name", text())]);
    let kinds = vec![("Base".into(), 0), ("Derived".into(), 1)].into();
    let kinds = Enum { name: "BaseKind".into(), id: "".into(), members: kinds, bits: 32, open: false };
    Shape::Union(Hold::new(Union {
        name: "Base".into(),
        id: "{urn:peers}Base".into(),
        discriminator: Shape::Enum(Hold::new(kinds)),
        arms: vec![base, derived].into(),
    }))
}

/// The contract of the captured `EchoAll`.
fn all_types() -> Shape {
    let members = vec![("Red".into(), 0), ("Grn".into(), 1)].into();
    let color = Enum { name: "Color".into(), id: "{urn:peers}Color".into(), members, bits: 32, open: false };
    let map = Map { key: text(), value: Shape::I32 };
    let date = || typed(SCHEMA, "dateTime");
    let offset = structure(
        "{http://schemas.datacontract.org/2004/07/System}DateTimeOffset",
        vec![("DateTime", date()), ("OffsetMinutes", Shape::I16)],
    );
    let char_ =
        Alias { name: "char".into(), id: format!("{{{SERIALIZATION}}}char").into(), target: Shape::WideChar };
    structure(
        "{urn:peers}AllTypes",
        vec![
            ("Blob", Shape::sequence(Shape::U8)),
            ("Bool", Shape::Bool),
            ("Boxed", Shape::Variant),
            ("Ch", Shape::Alias(Hold::new(char_))),
            ("Color", Shape::Enum(Hold::new(color))),
            ("Dec", typed(SCHEMA, "decimal")),
            ("Doubles", Shape::sequence(Shape::F64)),
            ("Dto", offset),
            ("F32", Shape::F32),
            ("F64", Shape::F64),
            ("Guid", typed(SERIALIZATION, "guid")),
            ("I16", Shape::I16),
            ("I32", Shape::I32),
            ("I64", Shape::I64),
            ("I8", Shape::I8),
            ("Ints", Shape::sequence(Shape::I32)),
            ("Map", Shape::Map(Hold::new(map))),
            ("NInt", optional(Shape::I32)),
            ("NIntNull", optional(Shape::I32)),
            ("NullStr", optional(text())),
            ("Poly", poly()),
            ("QName", typed(SCHEMA, "QName")),
            ("Span", typed(SERIALIZATION, "duration")),
            ("Str", text()),
            ("Strs", Shape::sequence(optional(text()))),
            ("U16", Shape::U16),
            ("U32", Shape::U32),
            ("U64", Shape::U64),
            ("U8", Shape::U8),
            ("Unspec", date()),
            ("Uri", typed(SCHEMA, "anyURI")),
            ("Utc", date()),
        ],
    )
}

fn said(text: &str) -> Value {
    Value::Text(text.into())
}

fn integers(list: &[i128]) -> Value {
    Value::List(list.iter().map(|value| Value::Integer(*value)).collect())
}

fn record(fields: Vec<(&str, Value)>) -> Value {
    Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn all_values() -> Value {
    let floats = |list: &[f64]| Value::List(list.iter().map(|value| Value::Float(*value)).collect());
    let pair = |key: &str, value| (said(key), Value::Integer(value));
    let derived = record(vec![("Id", Value::Integer(7)), ("Name", said("n"))]);
    record(vec![
        ("Blob", Value::Bytes(vec![0, 1, 2, 3, 0xfe, 0xff].into())),
        ("Bool", Value::Bool(true)),
        ("Boxed", Value::Variant(Box::new((TypedShape(Shape::I32), Value::Integer(42))))),
        ("Ch", Value::Char('A')),
        ("Color", Value::Member("Grn".into())),
        ("Dec", said("12.34")),
        ("Doubles", floats(&[0.5, f64::NAN, f64::INFINITY])),
        (
            "Dto",
            record(vec![("DateTime", said("2020-01-02T01:04:05Z")), ("OffsetMinutes", Value::Integer(120))]),
        ),
        ("F32", Value::Float(1.5)),
        ("F64", Value::Float(-2.25)),
        ("Guid", said("00112233-4455-6677-8899-aabbccddeeff")),
        ("I16", Value::Integer(-1600)),
        ("I32", Value::Integer(-320_000)),
        ("I64", Value::Integer(-64_000_000_000)),
        ("I8", Value::Integer(-8)),
        ("Ints", integers(&[1, 200, 70_000, 0])),
        ("Map", Value::Map(vec![pair("k1", 1), pair("k2", 2)])),
        ("NInt", Value::Integer(5)),
        ("NIntNull", Value::Nothing),
        ("NullStr", Value::Nothing),
        ("Poly", Value::Union(1, Some(Box::new(("{urn:peers}Derived".into(), derived))))),
        ("QName", said("{urn:q}l")),
        ("Span", said("P1DT2H3M4.005S")),
        ("Str", said("h\u{e9}llo <&>")),
        ("Strs", Value::List(vec![said("a"), Value::Nothing, said("")])),
        ("U16", Value::Integer(60_000)),
        ("U32", Value::Integer(4_000_000_000)),
        ("U64", Value::Integer(18_000_000_000_000_000_000)),
        ("U8", Value::Integer(200)),
        ("Unspec", said("2020-01-02T03:04:05")),
        ("Uri", said("http://x.test/p")),
        ("Utc", said("2020-01-02T03:04:05Z")),
    ])
}

/// What each operation of the captured contract echoes.
fn echoed(operation: &str) -> Option<(Shape, Value)> {
    Some(match operation {
        "EchoLong" => (Shape::I64, Value::Integer(-5_000_000_000)),
        "EchoInts" => (Shape::sequence(Shape::I32), integers(&[1, 200, 70_000, 0])),
        "EchoDoubles" => {
            (Shape::sequence(Shape::F64), Value::List(vec![Value::Float(1.5), Value::Float(2.0)]))
        }
        "EchoBools" => {
            (Shape::sequence(Shape::Bool), Value::List(vec![Value::Bool(true), Value::Bool(false)]))
        }
        "EchoStrings" => (Shape::sequence(text()), Value::List(vec![said("a"), said("b")])),
        "EchoBytes" => (Shape::sequence(Shape::U8), Value::Bytes(vec![1, 2, 3].into())),
        "EchoAll" => (all_types(), all_values()),
        _ => return None,
    })
}

/// Elements with their namespaces and without prefixes: what two documents that mean the same have in common.
fn meaning(xml: &str) -> String {
    let mut reader = Reader::new(xml.as_bytes(), &ReaderQuotas::default());
    let (mut out, mut is_name) = (String::new(), false);
    while let Some(event) = reader.next().unwrap() {
        match event {
            Event::Start(tag) => {
                let _ = write!(out, "<{{{}}}{}", reader.namespace(tag.prefix).unwrap(), tag.local);
                is_name = tag.local == "QName";
                let mut shown = BTreeSet::new();
                for attribute in tag.attributes().map(Result::unwrap) {
                    match (attribute.prefix, attribute.local) {
                        ("xmlns", _) | (_, "xmlns") => {}
                        (_, "type") => {
                            let (prefix, local) = attribute.value.split_once(':').unwrap();
                            shown.insert(format!(" type={{{}}}{local}", reader.namespace(prefix).unwrap()));
                        }
                        (_, local) => {
                            shown.insert(format!(" {local}={}", attribute.value));
                        }
                    }
                }
                out.extend(shown);
                out.push('>');
            }
            Event::End => out.push_str("</>"),
            Event::Text(text) => match text.split_once(':').filter(|_| is_name) {
                Some((prefix, local)) => {
                    let _ = write!(out, "{{{}}}{local}", reader.namespace(prefix).unwrap());
                }
                None => out.push_str(&text),
            },
        }
    }
    out
}

fn written(form: Form, value: &Value, words: &mut Outgoing, layout: &Layout, fields: &Shape) -> Vec<u8> {
    let mut out = SendBuffer::new();
    write_body(form, layout, words, &|sink: &mut dyn Sink| value.encode(fields, sink), &mut out).unwrap();
    out.to_vec()
}

/// What a body's first element is called says the operation and the direction.
fn expected(wrapper: &str) -> Option<(Shape, Value, Layout)> {
    let operation = wrapper.trim_end_matches("Response");
    let (shape, value) = echoed(operation)?;
    let field = if wrapper == operation { "v" } else { "return" };
    let list = Shape::Struct(Hold::new(Struct {
        name: "".into(),
        id: "".into(),
        fields: fields(vec![(field, shape)]).into(),
    }));
    let layout = if wrapper == operation {
        arguments(operation, PEERS, &list)
    } else {
        results(operation, PEERS, &list)
    };
    Some((list, record(vec![(field, value)]), layout))
}

#[test]
fn captured_text_of_every_type_is_read_and_written_with_the_same_meaning() {
    let (mut count, mut same) = (0, 0);
    for row in include_str!("golden/documents.tsv").lines() {
        let [capture, _, document] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let start = document.find("<s:Body").unwrap();
        let base = start + document[start..].find('>').unwrap() + 1;
        let body = &document[base..document.rfind("</s:Body>").unwrap()];
        let wrapper = body[1..].split([' ', '>', '/']).next().unwrap();
        // Other captures echo other numbers.
        let echoes = capture.ends_with("-types");
        let Some((list, value, layout)) = expected(wrapper).filter(|_| echoes) else { continue };
        let read = body_with(Form::Text, document.into(), base, BodyContext::default(), Budget::default())
            .read(|source| Value::decode(&list, source));
        // NaN is not equal to itself: what was read is compared as people see it.
        assert_eq!(format!("{:?}", read.unwrap()), format!("{value:?}"), "{capture} {wrapper}");
        let again = written(Form::Text, &value, &mut Outgoing::inline(), &layout, &list);
        let again = String::from_utf8(again).unwrap();
        assert_eq!(meaning(&again), meaning(body), "{capture} {wrapper}");
        same += usize::from(again == body);
        count += 1;
    }
    assert_eq!(count, 56);
    // The rest differs in prefixes.
    assert!(same >= 16, "{same}");
}

/// Microsoft's own text, but for the element of a qualified name, which it gives a prefix of its own.
#[test]
fn microsofts_text_of_all_types_is_written_byte_for_byte() {
    let documents = include_str!("golden/documents.tsv").lines();
    let all = documents.filter(|row| row.starts_with("msclient-ws-types\tC") && row.contains("<EchoAll "));
    let [document] = all.collect::<Vec<_>>()[..] else { panic!("one such capture") };
    let (_, body) = document.split_once("<s:Body>").unwrap();
    let (body, _) = body.split_once("</s:Body>").unwrap();
    let body = body.replace(
        "<q:QName xmlns:q=\"urn:peers\" xmlns:c=\"urn:q\">c:l</q:QName>",
        "<b:QName xmlns:c=\"urn:q\">c:l</b:QName>",
    );
    let (list, value, layout) = expected("EchoAll").unwrap();
    let again = written(Form::Text, &value, &mut Outgoing::inline(), &layout, &list);
    assert_eq!(String::from_utf8(again).unwrap(), body);
}

#[test]
fn captured_binary_of_every_type_is_read_and_written_with_the_same_meaning() {
    let (mut count, mut same) = (0, 0);
    each_document(|envelope, document, words| {
        let range = body_of(document, words).unwrap();
        let body = &document[range.clone()];
        let shown = to_xml(body, |id| words.word(id)).unwrap();
        let wrapper = shown.get(1..).unwrap_or_default().split([' ', '>', '/']).next().unwrap();
        // Other captures echo other numbers.
        let Some((list, value, layout)) = expected(wrapper).filter(|_| envelope.capture.ends_with("-types"))
        else {
            return;
        };
        let reading = BodyContext { words: Arc::new(words.clone()), ..BodyContext::default() };
        let read = body_with(Form::Binary, document.to_vec(), range.start, reading, Budget::default())
            .read(|source| Value::decode(&list, source));
        assert_eq!(format!("{:?}", read.unwrap()), format!("{value:?}"), "{} {wrapper}", envelope.capture);
        let again = written(Form::Binary, &value, &mut Outgoing::known(words), &layout, &list);
        let again_shown = to_xml(&again, |id| words.word(id)).unwrap();
        assert_eq!(meaning(&again_shown), meaning(&shown), "{} {wrapper}", envelope.capture);
        same += usize::from(again == body);
        count += 1;
    });
    assert_eq!(count, 28);
    assert!(same >= 15, "{same}");
}

#[test]
fn a_fault_detail_is_an_element_of_its_own() {
    let shape = Struct {
        name: "Peers::MyFault".into(),
        id: "{urn:peers}MyFault".into(),
        fields: fields(vec![("Code", Shape::I32), ("Reason", text())]).into(),
    };
    let value = record(vec![("Code", Value::Integer(7)), ("Reason", said("typed"))]);
    let whole = Shape::Struct(Hold::new(shape.clone()));
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| value.encode(&whole, sink);
    write_detail(Form::Text, &shape, None, false, &mut Outgoing::inline(), &visit, &mut out).unwrap();
    let detail = String::from_utf8(out.to_vec()).unwrap();
    let expected = "<MyFault xmlns=\"urn:peers\" xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Code>7</Code>\
                    <Reason>typed</Reason></MyFault>";
    assert_eq!(detail, expected);
    // The contract may call the element otherwise than the type (JAX-WS).
    let element = QName::new("urn:shop", "Fault");
    let mut out = SendBuffer::new();
    write_detail(Form::Text, &shape, Some(&element), false, &mut Outgoing::inline(), &visit, &mut out)
        .unwrap();
    let named = String::from_utf8(out.to_vec()).unwrap();
    let members =
        "<b:Code xmlns:b=\"urn:peers\">7</b:Code><b:Reason xmlns:b=\"urn:peers\">typed</b:Reason></Fault>";
    assert!(named.starts_with("<Fault xmlns=\"urn:shop\"") && named.ends_with(members), "{named}");
    let mut count = 0;
    for row in include_str!("golden/documents.tsv").lines() {
        let Some((_, document)) = row.split_once("<s:Envelope") else { panic!("{row}") };
        let document = format!("<s:Envelope{document}");
        let Some(base) = document.find("<MyFault") else { continue };
        let end = document.find("</MyFault>").unwrap() + "</MyFault>".len();
        assert_eq!(meaning(&document[base..end]), meaning(&detail));
        let body =
            body_with(Form::Text, document.into_bytes(), base, BodyContext::default(), Budget::default());
        assert_eq!(body.read(|source| Value::decode(&whole, source)).unwrap(), value);
        count += 1;
    }
    assert_eq!(count, 2);

    let mut out = SendBuffer::new();
    write_detail(Form::Binary, &shape, None, false, &mut Outgoing::statics(), &visit, &mut out).unwrap();
    assert_eq!(meaning(&to_xml(&out.to_vec(), static_word).unwrap()), meaning(&detail));
    let body = body_with(Form::Binary, out.to_vec(), 0, BodyContext::default(), Budget::default());
    assert_eq!(body.read(|source| Value::decode(&whole, source)).unwrap(), value);
    assert_eq!(StringTable::default().len(), 0);
}

fn nameless(members: Vec<(&'static str, Shape)>) -> Shape {
    Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: fields(members).into() }))
}

#[test]
fn fields_that_are_headers_stand_apart_and_are_found_in_the_envelope() {
    let list = nameless(vec![
        ("token", text()),
        ("x", Shape::I32),
        ("point", structure("{urn:g}P", vec![("X", Shape::I32)])),
    ]);
    let value = record(vec![
        ("token", said("<secret>")),
        ("x", Value::Integer(5)),
        ("point", record(vec![("X", Value::Integer(3))])),
    ]);
    let headers = ["token", "point"].map(|name| (name.to_owned(), QName::new("urn:h", name.to_owned())));
    let layout = Layout::new(Some(QName::new("urn:o", "Op")), "urn:o", &list, "", &headers);
    let visit = |sink: &mut dyn Sink| value.encode(&list, sink);
    for (form, soap) in [(Form::Text, "http://schemas.xmlsoap.org/soap/envelope/"), (Form::Binary, "")] {
        let (mut out, mut words) = (SendBuffer::new(), Outgoing::statics());
        out.flat().extend_from_slice(b"before");
        let headers = write_body(form, &layout, &mut words, &visit, &mut out).unwrap().unwrap();
        let body = out.to_vec()[6..].to_vec();
        let shown = |bytes: &[u8]| match form {
            Form::Text => String::from_utf8(bytes.to_vec()).unwrap(),
            Form::Binary => to_xml(bytes, static_word).unwrap(),
        };
        assert_eq!(shown(&body), "<Op xmlns=\"urn:o\"><x>5</x></Op>");
        let expected = "<h:token xmlns:h=\"urn:h\">&lt;secret&gt;</h:token><h:point xmlns:h=\"urn:h\" \
                        xmlns:b=\"urn:g\" xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><b:X>3</b:X></h:point>";
        assert_eq!(shown(&headers), expected);

        let (document, base) = match form {
            Form::Text => {
                let head = format!(
                    "<s:Envelope xmlns:s=\"{soap}\"><s:Header>{}</s:Header><s:Body>",
                    shown(&headers)
                );
                let base = head.len();
                ([head.as_bytes(), &body, b"</s:Body></s:Envelope>"].concat(), base)
            }
            Form::Binary => {
                let head = [b"\x56\x02\x0b\x01s\x04\x56\x08", &headers[..], b"\x01\x56\x0e"].concat();
                let base = head.len();
                ([head, body, vec![1, 1]].concat(), base)
            }
        };
        let body = body_with(form, document, base, BodyContext::default(), Budget::default());
        assert_eq!(body.read(|source| Value::decode(&list, source)).unwrap(), value, "{form:?}");
    }
}

#[test]
fn bare_bodies_have_no_wrapper_and_wrappers_may_be_called_like_their_field() {
    let list = nameless(vec![("x", Shape::I32), ("s", text())]);
    let value = record(vec![("x", Value::Integer(5)), ("s", said("t"))]);
    let bare = Layout::new(None, "urn:o", &list, "", &[]);
    for form in [Form::Text, Form::Binary] {
        let bytes = written(form, &value, &mut Outgoing::statics(), &bare, &list);
        if form == Form::Text {
            assert_eq!(bytes, b"<x xmlns=\"urn:o\">5</x><s xmlns=\"urn:o\">t</s>");
        }
        let (head, tail) = match form {
            Form::Text => (&b"<E><B>"[..], &b"</B></E>"[..]),
            Form::Binary => (&b"\x56\x02\x56\x0e"[..], &b"\x01\x01"[..]),
        };
        let document = [head, &bytes, tail].concat();
        let body = body_with(form, document, head.len(), BodyContext::default(), Budget::default());
        assert_eq!(body.read(|source| Value::decode(&list, source)).unwrap(), value);

        let list = nameless(vec![("Echo", text())]);
        let value = record(vec![("Echo", said("e"))]);
        let bytes = written(form, &value, &mut Outgoing::statics(), &arguments("Echo", PEERS, &list), &list);
        let body = body_with(form, bytes, 0, BodyContext::default(), Budget::default());
        assert_eq!(body.read(|source| Value::decode(&list, source)).unwrap(), value);
    }
}

/// What one body holds of each type, written in a form and read again.
fn there_and_back(shape: &Shape, value: &Value) -> String {
    let list = nameless(vec![("v", shape.clone())]);
    let whole = record(vec![("v", value.clone())]);
    let layout = arguments("Op", "urn:o", &list);
    let binary = written(Form::Binary, &whole, &mut Outgoing::statics(), &layout, &list);
    let body = body_with(Form::Binary, binary, 0, BodyContext::default(), Budget::default());
    assert_eq!(body.read(|source| Value::decode(&list, source)).unwrap(), whole);
    let text = written(Form::Text, &whole, &mut Outgoing::inline(), &layout, &list);
    let shown = String::from_utf8(text.clone()).unwrap();
    let body = body_with(Form::Text, text, 0, BodyContext::default(), Budget::default());
    assert_eq!(body.read(|source| Value::decode(&list, source)).unwrap(), whole, "{shown}");
    shown
}

#[test]
fn collections_and_dictionaries_have_the_names_that_their_contract_gives() {
    let alias =
        |id: &'static str, target| Shape::Alias(Hold::new(Alias { name: "C".into(), id: id.into(), target }));
    let list = alias("{urn:c}Bag;Thing", Shape::sequence(text()));
    let shown = there_and_back(&list, &Value::List(vec![said("a"), said("b")]));
    assert!(
        shown.contains("xmlns:b=\"urn:c\"") && shown.contains("<b:Thing>a</b:Thing><b:Thing>b</b:Thing>"),
        "{shown}"
    );
    let map = Shape::Map(Hold::new(Map { key: Shape::I32, value: list }));
    let map = alias("{urn:c}Bags;Pair,No,Bag", map);
    let pair = (Value::Integer(1), Value::List(vec![said("a")]));
    let shown = there_and_back(&map, &Value::Map(vec![pair]));
    assert!(shown.contains("<b:Pair><b:No>1</b:No><b:Bag><b:Thing>a</b:Thing></b:Bag></b:Pair>"), "{shown}");
    // Collections of types: named and namespaced by them.
    let guids = Shape::sequence(typed(SERIALIZATION, "guid"));
    let shown = there_and_back(&guids, &Value::List(vec![said("00112233-4455-6677-8899-aabbccddeeff")]));
    assert!(shown.contains("Serialization/Arrays") && shown.contains("<b:guid>0011"), "{shown}");
    let nested =
        there_and_back(&Shape::sequence(Shape::sequence(Shape::I32)), &Value::List(vec![integers(&[1])]));
    assert!(nested.contains("<b:ArrayOfint><b:int>1</b:int></b:ArrayOfint>"), "{nested}");
}

#[test]
fn derived_types_are_told_and_their_bases_are_not() {
    let union = |label, name: &str, value| Value::Union(label, Some(Box::new((name.to_owned(), value))));
    let base = union(0, "{urn:peers}Base", record(vec![("Id", Value::Integer(1))]));
    let members = record(vec![("Id", Value::Integer(2)), ("Name", said("n"))]);
    let derived = union(1, "{urn:peers}Derived", members);
    let shown = there_and_back(&poly(), &base);
    assert!(!shown.contains("i:type"), "{shown}");
    let shown = there_and_back(&Shape::sequence(poly()), &Value::List(vec![base, derived.clone()]));
    assert!(
        shown.contains("<b:Base><b:Id>1</b:Id></b:Base><b:Base i:type=\"b:Derived\"><b:Id>2</b:Id><b:Name>n</b:Name></b:Base>"),
        "{shown}"
    );
    let shown = there_and_back(&optional(poly()), &derived);
    assert!(shown.contains("<v i:type=\"b:Derived\" xmlns:b=\"urn:peers\""), "{shown}");
    there_and_back(&optional(poly()), &Value::Nothing);
}

#[test]
fn dates_of_operations_are_records_and_those_of_types_text() {
    let date = || typed(SCHEMA, "dateTime");
    let list =
        nameless(vec![("d", date()), ("local", date()), ("t", structure("{urn:t}T", vec![("D", date())]))]);
    let value = record(vec![
        ("d", said("2020-01-02T03:04:05Z")),
        ("local", said("2020-01-02T03:04:05+02:00")),
        ("t", record(vec![("D", said("2020-01-02T03:04:05Z"))])),
    ]);
    let layout = arguments("Op", "urn:o", &list);
    let bytes = written(Form::Binary, &value, &mut Outgoing::statics(), &layout, &list);
    let mut reader = nbfx::Reader::new(&bytes);
    let mut kinds = Vec::new();
    while let Some(record) = reader.read().unwrap() {
        if let nbfx::Record::Text(text, _) = record {
            kinds.push(matches!(text, nbfx::Text::DateTime(_)));
        }
    }
    assert_eq!(kinds, [true, false, false]);
    let body = body_with(Form::Binary, bytes, 0, BodyContext::default(), Budget::default());
    assert_eq!(body.read(|source| Value::decode(&list, source)).unwrap(), value);
}

#[test]
fn variants_tell_plain_types_and_arrays_of_them() {
    let variant = |shape: Shape, value| Value::Variant(Box::new((TypedShape(shape), value)));
    for (value, told) in [
        (
            variant(Shape::I64, Value::Integer(1)),
            "i:type=\"b:long\" xmlns:b=\"http://www.w3.org/2001/XMLSchema\"",
        ),
        (variant(Shape::WideChar, Value::Char('x')), "i:type=\"b:char\""),
        (variant(typed(SCHEMA, "decimal"), said("1.50")), "i:type=\"b:decimal\""),
        (
            variant(typed(SERIALIZATION, "guid"), said("00112233-4455-6677-8899-aabbccddeeff")),
            "i:type=\"b:guid\"",
        ),
        (variant(Shape::sequence(text()), Value::List(vec![said("a")])), "i:type=\"b:ArrayOfstring\""),
        (variant(Shape::sequence(Shape::U8), Value::Bytes(vec![1].into())), "i:type=\"b:base64Binary\""),
        (variant(Shape::Void, Value::Nothing), "i:nil=\"true\""),
    ] {
        let shown = there_and_back(&Shape::Variant, &value);
        assert!(shown.contains(told), "{shown}");
    }
}

/// Parts of messages of the style `rpc` are in no namespace, whatever the element around them is in.
#[test]
fn parts_of_rpc_have_no_namespace() {
    let whole = Shape::Struct(Hold::new(Struct {
        name: "".into(),
        id: "".into(),
        fields: fields(vec![("who", text())]).into(),
    }));
    let value = record(vec![("who", said("x"))]);
    let layout = Layout::new(Some(QName::new("urn:asked", "call")), "", &whole, "", &[]);
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| value.encode(&whole, sink);
    write_body(Form::Text, &layout, &mut Outgoing::inline(), &visit, &mut out).unwrap();
    let body = String::from_utf8(out.to_vec()).unwrap();
    assert_eq!(body, "<call xmlns=\"urn:asked\"><who xmlns=\"\">x</who></call>");
}
