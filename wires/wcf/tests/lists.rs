//! Lists of XmlSerializer where others have none: in attributes, and as what an operation returns; in both forms.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, binary, body_in, decode, encode, results};
use everywire_idl::wsdl::marks::{Attribute, Mark};
use everywire_idl::wsdl::names::{self, QName};
use everywire_model::shape::{Enum, Field, Hold, Struct, Text};
use everywire_model::{Budget, Failure, Kind, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::{Form, write_body};

const FORMS: [Form; 2] = [Form::Text, Form::Binary];

fn structure(id: &'static str, members: Vec<(&'static str, Shape)>) -> Shape {
    let fields: Vec<Field> =
        members.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect();
    let name = id.rsplit('}').next().unwrap();
    Shape::Struct(Hold::new(Struct { name: name.into(), id: id.into(), fields: fields.into() }))
}

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn attribute(name: &str, default: Option<&str>, target: Shape) -> Shape {
    Mark::Attribute(Attribute { name, default, ..Attribute::default() }).on(target)
}

fn said(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().copied().map(said).collect())
}

fn record(fields: Vec<(&str, Value)>) -> Value {
    Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// One argument `o`, whose type has one member `V`.
fn holding(member: Shape) -> Shape {
    structure("", vec![("o", structure("{urn:o}O", vec![("V", member)]))])
}

fn held(value: Value) -> Value {
    record(vec![("o", record(vec![("V", value)]))])
}

fn write(form: Form, fields: &Shape, value: &Value) -> Result<Vec<u8>, Failure> {
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| value.encode(fields, sink);
    write_body(form, &arguments("Op", "urn:o", fields), &mut Outgoing::statics(), &visit, &mut out)?;
    Ok(out.to_vec())
}

fn shown(form: Form, bytes: &[u8]) -> String {
    match form {
        Form::Text => String::from_utf8(bytes.to_vec()).unwrap(),
        Form::Binary => to_xml(bytes, static_word).unwrap(),
    }
}

#[test]
fn items_that_an_operation_returns_are_called_as_its_result() {
    let fields = structure("", vec![("return", Mark::Items.on(Shape::sequence(Shape::I32)))]);
    let value = record(vec![("return", Value::List(vec![Value::Integer(1), Value::Integer(2)]))]);
    for form in FORMS {
        let layout = results("Foo", "urn:o", &fields);
        let bytes = encode(form, &value, &mut Outgoing::statics(), &layout, &fields);
        let wanted =
            "<FooResponse xmlns=\"urn:o\"><FooResult>1</FooResult><FooResult>2</FooResult></FooResponse>";
        assert_eq!(shown(form, &bytes), wanted);
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value);
    }
}

/// Blanks are what stands between items: what holds one, or nothing, would be read as another list.
#[test]
fn texts_that_are_no_items_of_attributes_are_refused() {
    let fields = holding(attribute("V", None, Shape::sequence(text())));
    for form in FORMS {
        let value = held(list(&["a", "\u{a0}b", "c"]));
        let bytes = write(form, &fields, &value).unwrap();
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value);
        for wrong in ["", " ", "a b", "a\tb", "a\n", "\rb"] {
            let failure = write(form, &fields, &held(list(&["a", wrong]))).unwrap_err();
            assert_eq!(failure.kind(), Kind::BadArgument, "{wrong:?}");
            assert!(failure.message().contains("holds white space"), "{failure}");
        }
    }
    // Alone in an attribute, or in elements, they are texts as any other.
    for fields in [
        structure("", vec![("o", structure("{urn:o}O", vec![("V", attribute("V", None, text()))]))]),
        structure("", vec![("o", structure("{urn:o}O", vec![("V", text())]))]),
    ] {
        let value = held(said("a b"));
        assert_eq!(
            decode(
                Form::Text,
                &write(Form::Text, &fields, &value).unwrap(),
                &StringTable::default(),
                &fields
            ),
            value
        );
    }
}

#[test]
fn members_with_blanks_are_no_items_of_attributes() {
    let members = vec![("Red".into(), 0), ("Dark Blue".into(), 1)];
    let colour =
        Enum { name: "C".into(), id: "{urn:o}C".into(), members: members.into(), bits: 32, open: false };
    let fields = holding(attribute("V", None, Shape::sequence(Shape::Enum(Hold::new(colour)))));
    let member = |name: &str| Value::Member(name.to_owned());
    for form in FORMS {
        let value = held(Value::List(vec![member("Red"), member("Red")]));
        assert_eq!(
            decode(form, &write(form, &fields, &value).unwrap(), &StringTable::default(), &fields),
            value
        );
        let failure = write(form, &fields, &held(Value::List(vec![member("Dark Blue")]))).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
    }
}

#[test]
fn octets_without_any_are_no_items_of_attributes() {
    let fields = holding(attribute("V", None, Shape::sequence(Shape::sequence(Shape::U8))));
    let octets = |octets: &[u8]| Value::Bytes(octets.to_vec().into());
    for form in FORMS {
        let value = held(Value::List(vec![octets(&[1]), octets(&[2, 3])]));
        assert_eq!(
            decode(form, &write(form, &fields, &value).unwrap(), &StringTable::default(), &fields),
            value
        );
        let failure = write(form, &fields, &held(Value::List(vec![octets(&[])]))).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
    }
}

/// An empty list is left out, and what is left out has the default.
#[test]
fn an_empty_list_with_a_default_is_refused() {
    let with = |default| holding(attribute("V", default, Shape::sequence(Shape::I32)));
    let none = held(Value::List(vec![]));
    for form in FORMS {
        let failure = write(form, &with(Some("1 2")), &none).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
        assert!(failure.message().contains("attribute V"), "{failure}");
        for default in [None, Some("")] {
            let fields = with(default);
            let bytes = write(form, &fields, &none).unwrap();
            assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), none);
        }
    }
}

#[test]
fn items_of_attributes_are_taken_from_the_budget() {
    let fields = holding(attribute("V", None, Shape::sequence(text())));
    let bytes = format!("<Op xmlns=\"urn:o\"><o V=\"{}\"/></Op>", "a ".repeat(101)).into_bytes();
    let read = |elements| {
        let budget = Budget { elements, ..Budget::default() };
        let body = body_in(Form::Text, bytes.clone(), &StringTable::default(), budget);
        body.read(|source| Value::decode(&fields, source))
    };
    let failure = read(100).unwrap_err();
    assert!(failure.message().contains("elements in one message"), "{failure}");
    assert_eq!(read(1000).unwrap(), held(list(&["a"; 101])));
}

/// Prefixes of attributes are those of their own element, also where they are looked for behind others.
#[test]
fn a_late_attribute_has_the_prefixes_of_its_element() {
    let late =
        Mark::Attribute(Attribute { namespace: "urn:q", name: "V", ..Attribute::default() }).on(text());
    let of = structure("{urn:o}O", vec![("A", text()), ("B", text()), ("V", late)]);
    let fields = structure("", vec![("o", of)]);
    let value = |a, b| record(vec![("o", record(vec![("A", said(a)), ("B", said(b)), ("V", said("v"))]))]);
    let other = "xmlns:q=\"urn:other\"";
    for (inside, wanted) in [
        (format!("<A {other}>a</A><B {other}>b</B>"), value("a", "b")),
        (format!("<B {other}>b</B>"), value("", "b")),
        (format!("<B {other}>b</B><A {other}>a</A>"), value("a", "b")),
        (format!("<A {other}>a</A><C {other}/>"), value("a", "")),
    ] {
        let whole = format!("<Op xmlns=\"urn:o\"><o xmlns:q=\"urn:q\" q:V=\"v\">{inside}</o></Op>");
        assert_eq!(
            decode(Form::Text, whole.as_bytes(), &StringTable::default(), &fields),
            wanted,
            "{inside}"
        );
    }
    // MC-NBFX: <Op><o xmlns:q="urn:q" q:V="v"><B xmlns:q="urn:other">b</B></o></Op>.
    let q = b"\x09\x01q\x05urn:q\x05\x01q\x01V\x98\x01v";
    let inside = b"\x40\x01B\x09\x01q\x09urn:other\x99\x01b";
    let whole = [&b"\x40\x02Op\x40\x01o"[..], q, inside, b"\x01\x01"].concat();
    assert_eq!(decode(Form::Binary, &whole, &StringTable::default(), &fields), value("", "b"));
}

/// What a list of lists holds is in the namespace that the description of the list names, not in that of plain arrays.
#[test]
fn lists_in_a_list_are_called_as_the_description_calls_them() {
    let thing = structure("{urn:things}Thing", vec![("Id", Shape::I32)]);
    let inner = Shape::sequence(thing);
    let name = names::of_shape(&inner);
    assert_eq!(name, QName::new("urn:things", "ArrayOfThing"));
    let fields = structure("", vec![("lists", Shape::sequence(inner))]);
    let thing = record(vec![("Id", Value::Integer(1))]);
    let value = record(vec![("lists", Value::List(vec![Value::List(vec![thing])]))]);
    for form in FORMS {
        let bytes = write(form, &fields, &value).unwrap();
        let shown = shown(form, &bytes);
        assert!(shown.contains(&format!(" xmlns:b=\"{}\"", name.namespace)), "{shown}");
        assert!(shown.contains("<b:ArrayOfThing><b:Thing><b:Id>1</b:Id>"), "{shown}");
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value);
    }
}

/// JAX-RPC has no element around a list that could be nil: Axis 1 writes one nil item for null. Items that can be nil, and texts,
/// are what they are.
#[test]
fn a_list_that_is_nil_has_one_item_that_is() {
    let point = structure("{urn:o}Point", vec![("x", Shape::I32)]);
    let optional = Shape::Optional(Hold::new(Shape::I32));
    for (item, wanted) in
        [(Shape::I32, vec![]), (point, vec![]), (optional, vec![Value::Nothing]), (text(), vec![said("")])]
    {
        let fields = structure("", vec![("v", Mark::Items.on(Shape::sequence(item))), ("n", Shape::I32)]);
        let nil = "<v xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" i:nil=\"true\"/>";
        for order in [format!("{nil}<n>5</n>"), format!("<n>5</n>{nil}")] {
            let body = format!("<Op xmlns=\"urn:o\">{order}</Op>");
            let value = decode(Form::Text, body.as_bytes(), &StringTable::default(), &fields);
            assert_eq!(value, record(vec![("v", Value::List(wanted.clone())), ("n", Value::Integer(5))]));
        }
    }
}

/// Null among objects (`List<Point>` of .NET) is none of zeros: the contract's items cannot be nothing, so the message is
/// refused. Items that can be, and texts, are read.
#[test]
fn an_object_that_is_nil_in_a_list_is_refused() {
    let point = structure("{urn:o}P", vec![("x", Shape::I32)]);
    let map = |value: Shape| Shape::Map(Hold::new(everywire_model::shape::Map { key: Shape::I32, value }));
    let pair = "<o><V xmlns:a='http://schemas.microsoft.com/2003/10/Serialization/Arrays'>\
                <a:KeyValueOfintP><a:Key>1</a:Key><a:Value xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:nil='true'/>\
                </a:KeyValueOfintP></V></o>";
    let nil = "<P xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:nil='true'/>";
    let items = format!("<o><V><P><x>1</x></P>{nil}</V></o>");
    for form in FORMS {
        let read = |member: Shape, content: &str| {
            let fields = holding(member);
            let document = format!("<Op xmlns='urn:o'>{content}</Op>");
            let bytes = match form {
                Form::Text => document.into_bytes(),
                Form::Binary => binary(&document),
            };
            let body = body_in(form, bytes, &StringTable::default(), Budget::default());
            body.read(|source| Value::decode(&fields, source))
        };
        for (member, content) in [(Shape::sequence(point.clone()), &*items), (map(point.clone()), pair)] {
            let failure = read(member, content).unwrap_err();
            assert!(failure.to_string().contains("is nil where a value is promised"), "{failure}");
        }
        let optional = Shape::sequence(Shape::Optional(Hold::new(point.clone())));
        let read_optional = format!("{:?}", read(optional, &items).unwrap());
        assert!(read_optional.contains("Nothing"), "{read_optional}");
        assert_eq!(
            read(Shape::sequence(text()), &items.replace("<x>1</x>", "1")).unwrap(),
            held(list(&["1", ""]))
        );
    }
}
