//! Round trips and exact mistakes.
//!
//! Each test gives a shape and JSON and compares what is read, what is written of that again, or the whole
//! message of a mistake: messages are what people see of this crate, so their words are part of it.
//! References are parsed by `Plain`, which knows no wire.
//!
//! Nothing is called and no file is opened, except where a test says so: all of it is text and values. Shapes
//! are made by hand, so that a test does not depend on a language of contracts; how contracts become shapes
//! is tested in `everywire-idl`.

#![allow(clippy::unwrap_used)]

use super::{JsonMismatch, Notation, read, read_word, template, write};
use everywire::{Failure, Initiator, Kind, Reference, Value};
use everywire_model::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Map, Referent, Sequence, Shape, Struct, Text, Union,
};
use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// References by their type's identity.
struct Plain;

impl Notation for Plain {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        match text.strip_prefix("ref:") {
            Some(id) => Ok(Reference { type_id: id.into(), ..Reference::default() }),
            None => Err(Failure::new(
                Kind::BadReference,
                Initiator::User,
                format!("`{text}` is of no known kind"),
            )),
        }
    }

    fn print(&self, reference: &Reference) -> String {
        format!("ref:{}", reference.type_id)
    }
}

fn text() -> Shape {
    Shape::Text(Text::NARROW)
}

fn field(name: &'static str, shape: Shape) -> Field {
    Field { name: name.into(), shape }
}

fn record(name: &'static str, fields: Vec<Field>) -> Shape {
    Shape::Struct(Hold::new(Struct { name: name.into(), id: "".into(), fields: Cow::Owned(fields) }))
}

fn colour() -> Shape {
    let members = vec![("red".into(), 0), ("green".into(), 1)];
    Shape::Enum(Hold::new(Enum {
        name: "Colour".into(),
        id: "".into(),
        members: Cow::Owned(members),
        bits: 32,
        open: false,
    }))
}

/// An enumeration of C.
fn flags() -> Shape {
    let members = vec![("A".into(), 1), ("B".into(), 2), ("TOP".into(), i32::MIN)];
    let members = Cow::Owned(members);
    Shape::Enum(Hold::new(Enum { name: "Flags".into(), id: "".into(), members, bits: 32, open: true }))
}

fn figure() -> Shape {
    let arm = |labels: &'static [i64], default, name, shape| Arm {
        labels: Cow::Borrowed(labels),
        default,
        field: field(name, shape),
    };
    let arms = vec![arm(&[0], false, "radius", Shape::F64), arm(&[1], false, "side", Shape::I32)];
    Shape::Union(Hold::new(Union {
        name: "Figure".into(),
        id: "".into(),
        discriminator: colour(),
        arms: Cow::Owned(arms),
    }))
}

fn order() -> Shape {
    let item = record("Item", vec![field("name", text()), field("count", Shape::U16)]);
    record("", vec![field("items", Shape::sequence(item)), field("total", Shape::U64)])
}

fn both_ways(shape: &Shape, json: &Json) -> Value {
    let value = read(shape, json, "value", &Plain).unwrap();
    assert_eq!(write(shape, &value, &Plain), *json);
    super::pass_tests::agree(shape, &value, &Plain);
    value
}

fn wrong(shape: &Shape, json: &Json) -> String {
    read(shape, json, "arguments", &Plain).unwrap_err().to_string()
}

#[test]
fn an_open_enumeration_takes_numbers_and_several_names() {
    let flags = flags();
    assert_eq!(both_ways(&flags, &json!("A")), Value::Member("A".into()));
    assert_eq!(both_ways(&flags, &json!(3)), Value::Integer(3));
    assert_eq!(both_ways(&flags, &json!(-5)), Value::Integer(-5));
    let taken = |word: &str| read_word(&flags, word, "arguments.v", &Plain).unwrap();
    assert_eq!(taken("A|B"), Value::Integer(3));
    assert_eq!(taken("A | A"), Value::Member("A".into()));
    assert_eq!(taken("2147483648"), Value::Member("TOP".into()));
    assert_eq!(taken("0"), Value::Integer(0));
    let expected = "a member of Flags, several with | between them, or a number of 32 bits";
    assert_eq!(
        wrong(&flags, &json!(4_294_967_296_u64)),
        format!("arguments: {expected} is expected, not a number")
    );
    assert_eq!(wrong(&flags, &json!("A|C")), "arguments: `A|C` is no member of Flags; members are A, B, TOP");
    // One of another wire has its names only.
    assert!(wrong(&colour(), &json!(1)).contains("the name of a member of Colour is expected"));
}

#[test]
fn numbers_are_exact() {
    assert_eq!(both_ways(&Shape::U64, &json!(u64::MAX)), Value::Integer(u64::MAX.into()));
    assert_eq!(both_ways(&Shape::I64, &json!(i64::MIN)), Value::Integer(i64::MIN.into()));
    both_ways(&Shape::F64, &json!(0.1));
    both_ways(&Shape::F64, &json!("NaN"));
    both_ways(&Shape::F64, &json!("-Infinity"));
    assert_eq!(write(&Shape::F32, &Value::Float(f64::from(0.1_f32)), &Plain), json!(0.1));
    assert_eq!(wrong(&Shape::U8, &json!(300)), "arguments: 300 does not fit u8");
    assert_eq!(wrong(&Shape::I32, &json!(1.5)), "arguments: 1.5 does not fit i32");
    assert_eq!(wrong(&Shape::U32, &json!(-1)), "arguments: -1 does not fit u32");
}

#[test]
fn composites_survive_a_round_trip() {
    both_ways(&order(), &json!({"items": [{"name": "pen", "count": 3}], "total": 7}));
    both_ways(&colour(), &json!("green"));
    both_ways(&figure(), &json!({"discriminator": "red", "arm": 1.5}));
    let by_name = read(&figure(), &json!({"discriminator": "green", "side": 4}), "value", &Plain).unwrap();
    assert_eq!(by_name, Value::Union(1, Some(Box::new(("side".into(), Value::Integer(4))))));
    both_ways(&Shape::Map(Hold::new(Map { key: text(), value: Shape::Bool })), &json!({"a": true}));
    both_ways(&Shape::Optional(Hold::new(Shape::I32)), &Json::Null);
    both_ways(&Shape::Optional(Hold::new(Shape::I32)), &json!(5));
    let referent = Shape::Reference(Hold::new(Referent { name: "Sink".into(), id: "".into() }));
    both_ways(&referent, &json!("ref:Sink"));
    both_ways(&referent, &Json::Null);
    assert_eq!(wrong(&referent, &json!("x")), "arguments: `x` is of no known kind");
}

#[test]
fn maps_are_objects_where_keys_can_be_told_as_text() {
    let map = |key, value| Shape::Map(Hold::new(Map { key, value }));
    let numbers = map(Shape::I32, text());
    let value = both_ways(&numbers, &json!({"1": "a", "-2": "b"}));
    assert_eq!(read(&numbers, &json!([[1, "a"], [-2, "b"]]), "value", &Plain).unwrap(), value);
    both_ways(&map(Shape::Bool, text()), &json!({"true": "a"}));
    both_ways(&map(Shape::F64, text()), &json!({"0.5": "a", "NaN": "b"}));
    both_ways(&map(colour(), text()), &json!({"red": "a"}));
    // Text stays text, also if it looks like a number.
    let texts = both_ways(&map(text(), text()), &json!({"1": "a"}));
    assert_eq!(texts, Value::Map(vec![(Value::Text("1".into()), Value::Text("a".into()))]));
    // Nothing is lost where keys repeat, or are no words.
    both_ways(&numbers, &json!([[1, "a"], [1, "b"]]));
    both_ways(&map(order(), Shape::Bool), &json!([[{"items": [], "total": 1}, true]]));
    assert_eq!(wrong(&numbers, &json!({"x": "a"})), "arguments[\"x\"]: a number (i32) is expected, not text");
    assert_eq!(
        wrong(&map(Shape::U8, text()), &json!({"300": "a"})),
        "arguments[\"300\"]: 300 does not fit u8"
    );
}

#[test]
fn structs_without_names_are_lists() {
    let pair = record("", vec![field("field_1", Shape::I32), field("field_2", text())]);
    let value = both_ways(&pair, &json!([1, "a"]));
    assert_eq!(read(&pair, &json!({"field_1": 1, "field_2": "a"}), "value", &Plain).unwrap(), value);
    assert_eq!(wrong(&pair, &json!([1])), "arguments: 2 values are expected, not 1");
    assert_eq!(wrong(&pair, &json!([1, 2])), "arguments[1]: text is expected, not a number");
    assert_eq!(wrong(&pair, &json!(5)), "arguments: a list (i32, text) is expected, not a number");
    // Whoever has a name keeps it.
    for named in [record("Pair", vec![field("field_1", Shape::I32)]), record("", vec![field("song", text())])]
    {
        assert!(template(&named).is_object());
        assert!(read(&named, &json!([1]), "value", &Plain).is_err());
    }
    assert!(template(&record("", Vec::new())).is_object());
}

#[test]
fn any_value_brings_its_shape() {
    both_ways(
        &Shape::Variant,
        &json!({"shape": "(i32, map<text, (u8, path)>)", "value": [1, {"a": [2, "/b"]}]}),
    );
    both_ways(&Shape::Variant, &json!({"shape": "map<u32, sequence<any value>>", "value": {}}));
    for broken in ["(i32", "()", "(i32,)", "map<text>", "map<text, >", "sequence<>", &"(".repeat(1000)] {
        wrong(&Shape::Variant, &json!({"shape": broken, "value": []}));
    }
    both_ways(&Shape::Variant, &json!({"shape": "i32", "value": -5}));
    both_ways(&Shape::Variant, &json!({"shape": "sequence<text>", "value": ["a"]}));
    both_ways(&Shape::Variant, &json!({"shape": "octets", "value": {"base64": "AAE="}}));
    let boxed = "wide text #boxed IDL:omg.org/CORBA/WStringValue:1.0 = WStringValue";
    both_ways(&Shape::Variant, &json!({"shape": boxed, "value": "hi"}));
    for (plain, shape) in
        [(json!(1), "i32"), (json!("x"), "text"), (json!(true), "boolean"), (json!(1.5), "f64")]
    {
        let value = read(&Shape::Variant, &plain, "value", &Plain).unwrap();
        assert_eq!(write(&Shape::Variant, &value, &Plain), json!({"shape": shape, "value": plain}));
    }
    assert!(
        wrong(&Shape::Variant, &json!({"shape": "quux", "value": 1})).contains("shape `quux` is unknown")
    );
}

#[test]
fn octets_are_read_in_four_forms() {
    let shape = Shape::sequence(Shape::U8);
    let base64 = json!({"base64": "aGk="});
    let value = both_ways(&shape, &base64);
    for form in [json!([104, 105]), json!("hi"), json!({"hex": "68 69"})] {
        assert_eq!(read(&shape, &form, "value", &Plain).unwrap(), value);
    }
    assert_eq!(wrong(&shape, &json!([1, 256])), "arguments[1]: 256 does not fit u8");
    assert!(wrong(&shape, &json!({"base64": "?"})).contains("not base64"));
    assert!(wrong(&shape, &json!({"hex": "123"})).contains("hexadecimal"));
    assert!(wrong(&shape, &json!(5)).contains("octets are"));
    let array = Shape::Array(Hold::new(Array { element: Shape::U8, len: 3 }));
    assert_eq!(wrong(&array, &json!("hi")), "arguments: 3 elements are expected, not 2");
}

#[test]
fn mistakes_say_where_and_what() {
    let cases = [
        (
            json!({"items": [{"name": 5, "count": 1}], "total": 1}),
            "arguments.items[0].name: text is expected, not a number",
        ),
        (
            json!({"items": [{"name": "a"}], "total": 1}),
            "arguments.items[0]: `count` is missing; the fields are name, count",
        ),
        (json!({"items": {}, "total": 1}), "arguments.items: a list is expected, not an object"),
        (
            json!({"items": [], "total": 1, "x": 1}),
            "arguments: there is no field `x`; there are items, total",
        ),
        (json!({"items": [], "total": true}), "arguments.total: a number (u64) is expected, not a boolean"),
    ];
    for (json, message) in cases {
        assert_eq!(wrong(&order(), &json), message);
    }
    assert_eq!(
        wrong(&colour(), &json!("blue")),
        "arguments: `blue` is no member of Colour; members are red, green"
    );
    assert_eq!(
        wrong(&figure(), &json!({"discriminator": "red"})),
        "arguments: discriminator \"red\" selects `radius`: give `arm`, a f64"
    );
    let bounded = Shape::Text(Text { bound: Some(2), ..Text::NARROW });
    assert_eq!(wrong(&bounded, &json!("abc")), "arguments: at most 2 characters are allowed, not 3");
    let few = Shape::Sequence(Hold::new(Sequence {
        element: Shape::I32,
        bound: Some(1),
        order: everywire_model::shape::Order::Free,
        size: None,
    }));
    assert_eq!(wrong(&few, &json!([1, 2])), "arguments: at most 1 elements are allowed, not 2");
}

#[test]
fn words_of_a_command_line_need_few_quotes() {
    let word = |shape: &Shape, word: &str| read_word(shape, word, "arguments.v", &Plain);
    assert_eq!(word(&text(), "5"), Ok(Value::Text("5".into())));
    assert_eq!(word(&text(), "\"5\""), Ok(Value::Text("5".into())));
    assert_eq!(word(&text(), "true"), Ok(Value::Text("true".into())));
    assert_eq!(word(&Shape::I32, "-5"), Ok(Value::Integer(-5)));
    assert_eq!(word(&Shape::F64, "Infinity"), Ok(Value::Float(f64::INFINITY)));
    assert_eq!(word(&colour(), "red"), Ok(Value::Member("red".into())));
    assert_eq!(word(&Shape::Char, "7"), Ok(Value::Char('7')));
    assert_eq!(
        word(&Shape::sequence(Shape::U8), "hi there"),
        word(&Shape::sequence(Shape::U8), "\"hi there\"")
    );
    assert_eq!(word(&Shape::sequence(Shape::U8), "7"), Ok(Value::Bytes("7".into())));
    let error = word(&Shape::I32, "five").unwrap_err();
    assert_eq!(error.to_string(), "arguments.v: a number (i32) is expected, not text");
    let missing = read(&order(), &json!({}), "arguments", &Plain).unwrap_err();
    assert!(matches!(missing, JsonMismatch { missing: true, .. }));
}

/// As [`Plain`], on a machine whose files the JSON may name.
struct Local;

impl Notation for Local {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        Plain.parse(text)
    }

    fn print(&self, reference: &Reference) -> String {
        Plain.print(reference)
    }

    fn opens_files(&self) -> bool {
        true
    }
}

#[test]
fn files_are_opened_only_where_that_is_allowed() {
    let file = json!({"handle": file!()});
    assert!(wrong(&Shape::Handle, &file).contains("is not opened"));
    assert!(read_word(&Shape::Handle, concat!("@", file!()), "v", &Plain).is_err());
    let octets = Shape::sequence(Shape::U8);
    assert_eq!(
        read_word(&octets, "@/etc/hostname", "v", &Plain),
        Ok(Value::Bytes("@/etc/hostname".into())),
        "text, and no name of a file"
    );
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(read(&Shape::Handle, &json!({"handle": manifest}), "v", &Local).is_ok());
    let text = std::fs::read(manifest).unwrap();
    assert_eq!(read_word(&octets, &format!("@{manifest}"), "v", &Local), Ok(Value::Bytes(text.into())));
}

#[test]
fn templates_fit_their_shape() {
    let pair = record("", vec![field("field_1", Shape::I32), field("field_2", text())]);
    for shape in [pair, order(), figure(), colour(), Shape::Variant, Shape::sequence(Shape::U8)] {
        let json = template(&shape);
        read(&shape, &json, "template", &Plain).unwrap();
    }
}

/// What is filled in is a value of its type, and of members of which a message has one only the first is there.
#[test]
fn templates_of_types_of_xml_are_values_of_them() {
    let typed = |local: &str| {
        let id = format!("{{http://www.w3.org/2001/XMLSchema}}{local}").into();
        Shape::Alias(Hold::new(Alias { name: local.to_owned().into(), id, target: text() }))
    };
    let either = |target| {
        let target = Shape::Optional(Hold::new(target));
        Shape::Alias(Hold::new(Alias { name: "".into(), id: "?1".into(), target }))
    };
    let fields = vec![
        field("price", typed("decimal")),
        field("day", Shape::Optional(Hold::new(typed("date")))),
        field("cash", either(Shape::I32)),
        field("card", either(text())),
    ];
    let wanted = json!({"price": "0.0", "day": "2000-01-01", "cash": 0, "card": null});
    assert_eq!(template(&record("Order", fields)), wanted);
}

/// `struct Node { long v; sequence<Node> next; }` and what else has no word, as `describe --json` tells it.
#[test]
fn any_value_of_a_type_that_no_contract_names_brings_its_description() {
    let field = |name: &str, shape: Json| json!({"name": name, "shape": shape});
    let node = json!({
        "kind": "struct", "name": "m::Node", "id": "IDL:m/Node:1.0",
        "fields": [field("v", json!("i32")), field("next", json!("sequence<m::Node>"))],
    });
    let colour = json!({
        "kind": "enum", "name": "m::Colour", "id": "IDL:m/Colour:1.0",
        "members": [{"name": "red", "value": 0}, {"name": "blue", "value": 1}],
    });
    let figure = json!({
        "kind": "union", "name": "m::Figure", "id": "IDL:m/Figure:1.0", "discriminator": colour,
        "arms": [
            {"labels": [0], "default": false, "name": "size", "shape": "f64"},
            {"labels": [], "default": true, "name": "parts", "shape": "sequence<m::Figure>"},
        ],
    });
    let text = json!({"kind": "text", "bound": 5, "text": "wide"});
    let leaf = json!({"v": 2, "next": []});
    let cases = [
        (node.clone(), json!({"v": 1, "next": [leaf, {"v": 3, "next": [leaf]}]})),
        (json!({"kind": "sequence", "element": node, "bound": 2}), json!([leaf])),
        (json!({"kind": "array", "element": text, "len": 1}), json!(["a"])),
        (json!({"kind": "alias", "name": "m::Count", "id": "IDL:m/Count:1.0", "shape": "u16"}), json!(7)),
        (json!({"kind": "reference", "interface": "m::I", "id": "IDL:m/I:1.0"}), json!("ref:x")),
        (
            json!({"kind": "exception", "name": "m::E", "id": "IDL:m/E:1.0", "fields": [field("n", json!("u8"))]}),
            json!({"n": 1}),
        ),
        (figure, json!({"discriminator": "blue", "arm": [{"discriminator": "red", "arm": 0.5}]})),
        (colour, json!("blue")),
        (json!("sequence<(i32, text)>"), json!([[1, "a"]])),
    ];
    for (shape, value) in &cases {
        both_ways(&Shape::Variant, &json!({"shape": shape, "value": value}));
        both_ways(&Shape::TypeCode, shape);
    }
    for (broken, why) in [
        (json!({"kind": "quux"}), "`quux` is no kind"),
        (json!({"kind": "struct"}), "no `fields`"),
        (json!({"kind": "struct", "fields": 1}), "a list is expected"),
        (json!({"kind": "array", "element": "i32", "len": -1}), "a number is expected"),
        (json!({"kind": "sequence", "element": "m::Nothing"}), "shape `m::Nothing` is unknown"),
        (json!(7), "a shape is a word"),
    ] {
        let told = wrong(&Shape::Variant, &json!({"shape": broken, "value": null}));
        assert!(told.contains(why), "{told}");
    }
    let deep = (0..100).fold(json!("i32"), |inner, _| json!({"kind": "optional", "target": inner}));
    assert!(wrong(&Shape::TypeCode, &deep).contains("32 levels"));
}

#[test]
fn type_codes_are_spelled_as_shapes() {
    for told in [json!(null), json!("i32"), json!("nothing"), json!("type code"), json!("sequence<text>")] {
        both_ways(&Shape::TypeCode, &told);
    }
    let octets = json!({"base64": "AAAAHQA="});
    let passed = json!({"kind": "valuetype", "name": "V", "id": "IDL:V:1.0", "encoded": octets});
    both_ways(&Shape::TypeCode, &passed);
    let Ok(Value::TypeCode(code)) = read_word(&Shape::TypeCode, "sequence<u8>", "v", &Plain) else {
        panic!("a word needs no quotes")
    };
    assert_eq!(code.kind(), "sequence");
    assert!(wrong(&Shape::TypeCode, &json!("quux")).contains("shape `quux` is unknown"));
}

#[test]
fn doubles_are_read_to_the_last_bit() {
    for double in [-1.25e-300, 0.300_000_000_000_000_04, f64::MAX, f64::MIN_POSITIVE, 5e-324] {
        let given: Json = serde_json::from_str(&format!("{double:e}")).unwrap();
        assert_eq!(read(&Shape::F64, &given, "v", &Plain).unwrap(), Value::Float(double));
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused_and_not_rounded() {
    assert_eq!(wrong(&Shape::F32, &json!(1e300)), "arguments: 1e+300 does not fit f32");
    both_ways(&Shape::F32, &json!(1.5));
    let amount = super::spelled::named("CURRENCY").unwrap();
    let sum = read(&amount, &json!(12.5), "v", &Plain);
    assert_eq!(sum, read(&amount, &json!("12.5"), "v", &Plain));
    let decimal = super::spelled::named("DECIMAL").unwrap();
    for (shape, digits) in [(&amount, "92233720368547.7581"), (&decimal, "0.12345678901234567891")] {
        let number: Json = serde_json::from_str(digits).unwrap();
        assert!(wrong(shape, &number).contains("as text"), "{digits}");
        assert!(read(shape, &json!(digits), "v", &Plain).is_ok(), "{digits}");
        assert!(read_word(shape, digits, "v", &Plain).is_ok(), "{digits}");
    }
    assert!(read(&decimal, &json!(u64::MAX), "v", &Plain).is_ok());
    let price = everywire_model::fixed::Fixed { digits: 7, scale: 2 }.shape();
    let octets = Value::Bytes(everywire::Bytes::from_static(&[0x00, 0x12, 0x50, 0x0d]));
    for given in [json!("-125"), json!(-125), json!("-125.00"), json!({"base64": "ABJQDQ=="})] {
        assert!(read(&price, &given, "v", &Plain).unwrap() == octets, "{given}");
    }
    assert_eq!(write(&price, &octets, &Plain), json!("-125.00"));
    for given in [json!("0.001"), json!(100_000), json!("a"), json!([0, 0, 0, 12])] {
        assert!(wrong(&price, &given).contains("a decimal number with no more digits"), "{given}");
    }
    let exact = super::spelled::named("long double").unwrap();
    both_ways(&exact, &json!("0.1"));
    both_ways(&exact, &json!("-1e4000"));
    both_ways(&exact, &json!("Infinity"));
    assert_eq!(read(&exact, &json!(1.5), "v", &Plain), read(&exact, &json!("1.5"), "v", &Plain));
    assert!(wrong(&exact, &json!("1e5000")).contains("a number such as 0.1"));
    both_ways(&Shape::Variant, &json!({"shape": "long double", "value": "0.1"}));
    // What a template has is read as it is.
    for shape in [&price, &exact] {
        assert_eq!(super::template(shape), json!("0"));
        assert!(read(shape, &json!("0"), "v", &Plain).is_ok());
    }
    // What is no number is told as what it is.
    assert_eq!(
        write(&price, &Value::Bytes(everywire::Bytes::from_static(&[0xff; 4])), &Plain),
        json!({"base64": "/////w=="})
    );
    let uuid = super::spelled::named("GUID").unwrap();
    assert!(read(&uuid, &json!("+06de2c5-1a8c-11d3-b68f-00c04f8b7211"), "v", &Plain).is_err());
}

#[test]
fn remarks_of_a_word_do_not_nest() {
    let word = format!("u8{}", " #a".repeat(100_000));
    assert!(read(&Shape::Variant, &json!({"shape": word, "value": 1}), "v", &Plain).is_ok());
    let shape = super::kinds::shape_of("u8 #a #b", &Plain).unwrap();
    assert_eq!(super::kinds::word_of(&shape), "u8 #b");
}

#[test]
fn templates_are_not_larger_than_people_read() {
    fn parts(json: &Json) -> usize {
        1 + match json {
            Json::Array(items) => items.iter().map(parts).sum(),
            Json::Object(fields) => fields.values().map(parts).sum(),
            _ => 0,
        }
    }
    let cube = (0..2).fold(Shape::I32, |element, _| Shape::Array(Hold::new(Array { element, len: 1024 })));
    let twice = (0..18)
        .fold(Shape::I32, |part, _| record("Twice", vec![field("one", part.clone()), field("other", part)]));
    for shape in [cube, twice] {
        let parts = parts(&template(&shape));
        assert!((1024..100_000).contains(&parts), "{parts}");
    }
}

/// `describe` calls the types of XML Schema so, and a value of any type may be of one.
#[test]
fn types_of_xml_schema_have_words() {
    for (word, id) in [
        ("xs::decimal", "{http://www.w3.org/2001/XMLSchema}decimal"),
        ("xs::dateTime", "{http://www.w3.org/2001/XMLSchema}dateTime"),
        ("ser::guid", "{http://schemas.microsoft.com/2003/10/Serialization/}guid"),
    ] {
        let told = json!({"shape": word, "value": "1.50"});
        let value =
            read(&Shape::Variant, &told, "v", &Plain).unwrap_or_else(|wrong| panic!("{word}: {wrong}"));
        let written = write(&Shape::Variant, &value, &Plain);
        assert_eq!((&written["shape"]["id"], &written["value"]), (&json!(id), &json!("1.50")));
        both_ways(&Shape::Variant, &written);
    }
    assert!(wrong(&Shape::Variant, &json!({"shape": "xs::deximal", "value": "1"})).contains("is unknown"));
}

/// A type of the contract that is called as a built-in word is described, because its name alone would mean the other one.
#[test]
fn types_called_like_words_are_described() {
    let own = Struct {
        name: "path".into(),
        id: "IDL:path:1.0".into(),
        fields: Cow::Owned(vec![field("x", Shape::I32)]),
    };
    let own = Shape::Struct(Hold::new(own));
    let definitions = vec![everywire_model::Definition::Type(own.clone())];
    let notation = Knowing(super::Types::of(&everywire_model::Contract { definitions }));
    let value = Value::Variant(Box::new((
        everywire_model::value::TypedShape(own),
        Value::Struct(vec![("x".to_owned(), Value::Integer(5))]),
    )));
    let told = write(&Shape::Variant, &value, &notation);
    let again =
        read(&Shape::Variant, &told, "v", &notation).unwrap_or_else(|misfit| panic!("{misfit}: {told}"));
    assert_eq!(write(&Shape::Variant, &again, &notation), told);
    assert_eq!(told["shape"]["id"], "IDL:path:1.0");
}

/// A type code of CORBA has the bare name and the id, and a prefix (`#pragma prefix`) stands in the id only.
#[test]
fn types_of_the_contract_are_known_by_their_ids() {
    let record = |name: &'static str, id: &'static str| {
        let fields = Cow::Owned(vec![field("x", Shape::I32)]);
        Shape::Struct(Hold::new(Struct { name: name.into(), id: id.into(), fields }))
    };
    let alias = |name: &'static str, target: Shape| {
        let id = "IDL:p.q/M/Ss:1.0".into();
        Shape::Alias(Hold::new(Alias { name: name.into(), id, target: Shape::sequence(target) }))
    };
    let own = record("M::S", "IDL:p.q/M/S:1.0");
    let hidden = record("path", "IDL:p.q/path:1.0");
    let all = [own.clone(), alias("M::Ss", own), hidden];
    let definitions = all.into_iter().map(everywire_model::Definition::Type).collect();
    let notation = Knowing(super::Types::of(&everywire_model::Contract { definitions }));
    let one = Value::Struct(vec![("x".to_owned(), Value::Integer(5))]);
    let told = |shape: Shape, value: Value| {
        let value = Value::Variant(Box::new((everywire_model::value::TypedShape(shape), value)));
        let told = write(&Shape::Variant, &value, &notation);
        let again =
            read(&Shape::Variant, &told, "v", &notation).unwrap_or_else(|misfit| panic!("{misfit}: {told}"));
        assert_eq!(write(&Shape::Variant, &again, &notation), told);
        told["shape"].clone()
    };
    let came = record("p.q::M::S", "IDL:p.q/M/S:1.0");
    assert_eq!(told(came.clone(), one.clone()), "M::S");
    assert_eq!(told(alias("p.q::M::Ss", came), Value::List(vec![one.clone()])), "M::Ss");
    // Its name in the contract would mean a built-in word; this one is another type; and this one has no id.
    assert_eq!(told(record("p.q::path", "IDL:p.q/path:1.0"), one.clone())["id"], "IDL:p.q/path:1.0");
    assert_eq!(told(record("M::S", "IDL:other/M/S:1.0"), one.clone())["id"], "IDL:other/M/S:1.0");
    assert_eq!(told(record("N", ""), one)["name"], "N");
}

/// As [`Plain`], with the types of a contract.
struct Knowing(super::Types);

impl Notation for Knowing {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        Plain.parse(text)
    }

    fn print(&self, reference: &Reference) -> String {
        Plain.print(reference)
    }

    fn types(&self) -> super::Types {
        self.0.clone()
    }
}
