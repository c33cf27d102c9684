//! Values that have a place in a list, a map or a union, when something else stands there; in both forms.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, binary, body_in, encode};
use everywire_model::shape::{Alias, Arm, Field, Hold, Map, Struct, Text, Union};
use everywire_model::{Budget, Failure, SendBuffer, Shape, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::nbfx::{Prefix, Record, Text as Content, Word, Writer};
use everywire_wcf::values::Form;

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn said(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// One parameter `p`.
fn parameter(shape: Shape) -> Shape {
    let fields = vec![Field { name: "p".into(), shape }];
    Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: fields.into() }))
}

fn named(id: &'static str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: "Named".into(), id: id.into(), target }))
}

fn map() -> Shape {
    Shape::Map(Hold::new(Map { key: text(), value: text() }))
}

/// What the parameter reads as, the same in both forms.
fn read(shape: &Shape, inside: &str) -> Result<Value, Failure> {
    let fields = parameter(shape.clone());
    let xml = format!("<Op xmlns=\"urn:o\"><p>{inside}</p></Op>");
    let read = |form, bytes| {
        let body = body_in(form, bytes, &StringTable::default(), Budget::default());
        let one = body.read(|source| Value::decode(&fields, source));
        // Bodies that pass a bridge are read without their values being built.
        let mut out = SendBuffer::new();
        let layout = arguments("Op", "urn:o", &fields);
        let piped = everywire_wcf::values::write_body(
            form,
            &layout,
            &mut Outgoing::statics(),
            &|sink: &mut dyn everywire_model::Sink| body.pipe(&fields, sink),
            &mut out,
        );
        assert_eq!(one.is_ok(), piped.is_ok(), "{form:?} {inside}");
        one.map(|value| match value {
            Value::Struct(mut fields) => fields.remove(0).1,
            other => panic!("{other:?}"),
        })
    };
    let in_text = read(Form::Text, xml.clone().into_bytes());
    let in_binary = read(Form::Binary, binary(&xml));
    match (&in_text, &in_binary) {
        (Ok(one), Ok(other)) => assert_eq!(one, other),
        (Err(one), Err(other)) => assert_eq!(one.code(), other.code(), "{inside}"),
        _ => panic!("{inside}: {in_text:?}, {in_binary:?}"),
    }
    in_text
}

#[track_caller]
fn refused(shape: &Shape, inside: &str, code: &str, element: &str) {
    let failure = read(shape, inside).unwrap_err();
    assert_eq!(failure.code(), Some(code), "{inside}: {failure}");
    assert!(failure.to_string().contains(element), "{inside}: {failure}");
}

/// DataContractSerializer refuses the same pairs: both members are required, in their order (tried with Mono 6.8).
#[test]
fn a_pair_is_its_key_and_then_its_value() {
    let pair = |inside: &str| format!("<e>{inside}</e>");
    for (shape, key, value) in
        [(map(), "Key", "Value"), (named("{urn:o}Map;e,Name,Content", map()), "Name", "Content")]
    {
        let (k, v) = (format!("<{key}>k</{key}>"), format!("<{value}>v</{value}>"));
        let one = Value::Map(vec![(said("k"), said("v"))]);
        assert_eq!(read(&shape, &pair(&format!("{k}{v}"))).unwrap(), one);
        // Elements that nobody knows are skipped, as in other types.
        assert_eq!(read(&shape, &pair(&format!("<x/>{k}<y><Key/></y>{v}<z/>"))).unwrap(), one);
        for (wrong, code, element) in [
            (format!("{v}{k}"), "nbfx UnexpectedElement", value),
            (v.clone(), "nbfx UnexpectedElement", value),
            (k.clone(), "nbfx MissingElement", ""),
            (String::new(), "nbfx MissingElement", ""),
            ("<a>k</a><b>v</b>".to_owned(), "nbfx MissingElement", ""),
            (format!("{k}{k}{v}"), "nbfx RepeatedElement", key),
            (format!("{k}{v}{v}"), "nbfx RepeatedElement", value),
            (format!("{k}{v}<x/>{k}"), "nbfx RepeatedElement", key),
        ] {
            refused(&shape, &pair(&wrong), code, element);
            // As well before another pair.
            refused(&shape, &[pair(&wrong), pair(&format!("{k}{v}"))].concat(), code, element);
        }
    }
}

#[test]
fn items_of_a_list_have_one_name() {
    let list = Shape::sequence(Shape::I32);
    let numbers = |all: &[i128]| Value::List(all.iter().map(|one| Value::Integer(*one)).collect());
    assert_eq!(read(&list, "<int>1</int><int>3</int>").unwrap(), numbers(&[1, 3]));
    refused(&list, "<int>1</int><foo>2</foo><int>3</int>", "nbfx UnexpectedElement", "foo");
    let pair = |name: &str| format!("<{name}><Key>k</Key><Value>v</Value></{name}>");
    refused(&map(), &[pair("e"), pair("x")].concat(), "nbfx UnexpectedElement", "`x`");
    // What they are called is as the peer likes, and in lists of SOAP's encoding each may be called otherwise.
    assert_eq!(read(&list, "<item>1</item>").unwrap(), numbers(&[1]));
    let encoded = named("{urn:o}ArrayOfInt;-item", list);
    assert_eq!(read(&encoded, "<a>1</a><b>3</b>").unwrap(), numbers(&[1, 3]));
}

/// A dictionary may have the name of some items, and others come with theirs in place.
#[test]
fn the_name_of_an_item_may_be_a_word_or_stand_in_place() {
    let fields = parameter(Shape::sequence(text()));
    let read = |names: [Word<'static>; 2]| {
        let mut writer = Writer::new();
        for name in ["Op", "p"] {
            writer.put(&Record::Element(Prefix::None, Word::Inline(name)));
        }
        for name in names {
            writer.put(&Record::Element(Prefix::None, name));
            writer.text(Content::Chars("x"));
            writer.end();
        }
        writer.end();
        writer.end();
        let body = body_in(Form::Binary, writer.into_bytes(), &StringTable::default(), Budget::default());
        body.read(|source| Value::decode(&fields, source))
    };
    let id = (0..).step_by(2).find(|id| static_word(*id) == Some("string")).unwrap();
    assert!(read([Word::Inline("string"), Word::Id(id)]).is_ok());
    assert!(read([Word::Id(id), Word::Inline("string")]).is_ok());
    let failure = read([Word::Id(id), Word::Inline("other")]).unwrap_err();
    assert_eq!(failure.code(), Some("nbfx UnexpectedElement"));
}

/// As Mono reads them. What lies between two numbers of the type is the nearer one.
#[test]
fn numbers_beyond_their_type_are_refused() {
    for wrong in ["1E39", "-1e39", "3.5E38"] {
        refused(&Shape::F32, wrong, "nbfx BadValue", "");
        assert!(read(&Shape::F64, wrong).is_ok());
    }
    for (text, value) in [("1E-60", 0.0), ("3.40282347E+38", f32::MAX), ("INF", f32::INFINITY)] {
        assert_eq!(read(&Shape::F32, text).unwrap(), Value::Float(value.into()));
    }
    for wrong in ["65536", "-1", "1114112"] {
        refused(&Shape::WideChar, wrong, "nbfx BadValue", "");
    }
    assert_eq!(read(&Shape::WideChar, "65533").unwrap(), Value::Char('\u{fffd}'));
}

#[test]
fn a_union_is_its_discriminator_and_the_arm_that_this_selects() {
    let arm = |label: i64, name: &'static str| Arm {
        labels: vec![label].into(),
        default: false,
        field: Field { name: name.into(), shape: Shape::I32 },
    };
    let union = Shape::Union(Hold::new(Union {
        name: "Either".into(),
        id: "".into(),
        discriminator: Shape::I32,
        arms: vec![arm(1, "One"), arm(2, "Two")].into(),
    }));
    let one = Value::Union(1, Some(Box::new(("One".to_owned(), Value::Integer(7)))));
    assert_eq!(read(&union, "<discriminator>1</discriminator><One>7</One>").unwrap(), one);
    let none = Value::Union(3, None);
    assert_eq!(read(&union, "<discriminator>3</discriminator>").unwrap(), none);
    refused(&union, "<One>1</One><discriminator>1</discriminator>", "nbfx UnexpectedElement", "One");
    refused(&union, "<discriminator>1</discriminator><Two>7</Two>", "nbfx UnexpectedElement", "Two");
    refused(&union, "<discriminator>1</discriminator>", "nbfx MissingElement", "");
    // What is written reads again.
    let fields = parameter(union);
    let value = Value::Struct(vec![("p".to_owned(), one)]);
    let bytes =
        encode(Form::Binary, &value, &mut Outgoing::statics(), &arguments("Op", "urn:o", &fields), &fields);
    assert!(to_xml(&bytes, static_word).unwrap().contains("discriminator"));
}
