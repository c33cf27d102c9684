//! Elements in another namespace than that of their type, or in none, in both forms.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, decode};
use everywire_idl::wsdl::marks::{Mark, within};
use everywire_model::shape::{Alias, Field, Hold, Struct, Text};
use everywire_model::{SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::{Form, Layout, QName, write_body};

const FORMS: [Form; 2] = [Form::Text, Form::Binary];
const XSI: &str = r#" xmlns:i="http://www.w3.org/2001/XMLSchema-instance""#;

fn structure(id: &'static str, members: Vec<(&'static str, Shape)>) -> Shape {
    let fields: Vec<Field> =
        members.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect();
    let name = id.rsplit('}').next().unwrap();
    Shape::Struct(Hold::new(Struct { name: name.into(), id: id.into(), fields: fields.into() }))
}

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn said(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn record(fields: Vec<(&str, Value)>) -> Value {
    Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The body and the headers that these values are, as text.
fn written(form: Form, layout: &Layout, fields: &Shape, value: &Value) -> (Vec<u8>, String, String) {
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| value.encode(fields, sink);
    let headers = write_body(form, layout, &mut Outgoing::statics(), &visit, &mut out).unwrap();
    let shown = |bytes: &[u8]| match form {
        Form::Text => String::from_utf8(bytes.to_vec()).unwrap(),
        Form::Binary if bytes.is_empty() => String::new(),
        Form::Binary => to_xml(bytes, static_word).unwrap(),
    };
    let body = out.to_vec();
    let (told, apart) = (shown(&body), shown(&headers.unwrap_or_default()));
    (body, told, apart)
}

#[test]
fn members_in_no_namespace_are_written_without_one() {
    let inner = structure("{urn:o}In", vec![("q", Shape::I32), ("u", within("", text()))]);
    let members = vec![
        ("a", within("", Shape::I32)),
        ("b", within("", text())),
        ("c", text()),
        ("d", within("", inner.clone())),
        ("e", within("", Mark::Items.on(Shape::sequence(text())))),
        ("f", inner.clone()),
        ("g", within("", Mark::Left(None, None).on(Shape::Optional(Hold::new(Shape::I32))))),
        ("h", within("", Shape::Optional(Hold::new(text())))),
        ("i", within("urn:p", text())),
        ("j", within("urn:p", Mark::Items.on(Shape::sequence(inner)))),
        ("k", text()),
    ];
    let fields = structure("", vec![("o", structure("{urn:o}O", members))]);
    let inside = |q: i128| record(vec![("q", Value::Integer(q)), ("u", said("u"))]);
    let value = record(vec![(
        "o",
        record(vec![
            ("a", Value::Integer(5)),
            ("b", said("x")),
            ("c", said("y")),
            ("d", inside(1)),
            ("e", Value::List(vec![said("1"), said("2")])),
            ("f", inside(2)),
            ("g", Value::Integer(7)),
            ("h", Value::Nothing),
            ("i", said("z")),
            ("j", Value::List(vec![inside(3), inside(4)])),
            ("k", said("k")),
        ]),
    )]);
    let wanted = concat!(
        r#"<Op xmlns="urn:o"><o xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a xmlns="">5</a><b xmlns="">x</b><c>y</c>"#,
        r#"<d xmlns="" xmlns:b="urn:o"><b:q>1</b:q><u>u</u></d>"#,
        r#"<e xmlns="">1</e><e xmlns="">2</e><f><q>2</q><u xmlns="">u</u></f><g xmlns="">7</g>"#,
        r#"<h xmlns="" i:nil="true"/>"#,
        r#"<b:i xmlns:b="urn:p">z</b:i>"#,
        r#"<b:j xmlns:b="urn:p"><q>3</q><u xmlns="">u</u></b:j><b:j xmlns:b="urn:p"><q>4</q><u xmlns="">u</u></b:j>"#,
        r#"<k>k</k></o></Op>"#
    );
    let layout = arguments("Op", "urn:o", &fields);
    for form in FORMS {
        let (bytes, told, _) = written(form, &layout, &fields, &value);
        assert_eq!(told, wanted, "{form:?}");
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value, "{form:?}");
    }
}

/// A qualified name has a prefix of its own, beside the one that its element declares.
#[test]
fn a_qualified_name_in_another_namespace_has_one_declaration_for_each() {
    let named =
        Alias { name: "QName".into(), id: "{http://www.w3.org/2001/XMLSchema}QName".into(), target: text() };
    let members =
        vec![("a", within("urn:p", Shape::Alias(Hold::new(named)))), ("b", within("urn:p", text()))];
    let fields = structure("", vec![("o", structure("{urn:o}O", members))]);
    let layout = arguments("Op", "urn:o", &fields);
    for (namespace, wanted) in [
        ("urn:q", r#"<b:a xmlns:b="urn:p" xmlns:c="urn:q">c:l</b:a><b:b xmlns:b="urn:p">x</b:b>"#),
        ("urn:p", r#"<b:a xmlns:b="urn:p" xmlns:c="urn:p">c:l</b:a><b:b xmlns:b="urn:p">x</b:b>"#),
    ] {
        let name = said(&format!("{{{namespace}}}l"));
        let value = record(vec![("o", record(vec![("a", name), ("b", said("x"))]))]);
        for form in FORMS {
            let (bytes, told, _) = written(form, &layout, &fields, &value);
            assert!(told.contains(wanted), "{form:?}: {told}");
            assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value, "{form:?}");
        }
    }
}

/// A name of no namespace stays in none, in whichever namespace elements without a prefix are.
#[test]
fn a_qualified_name_of_no_namespace_stays_in_none() {
    let named = || {
        let id = "{http://www.w3.org/2001/XMLSchema}QName".into();
        Shape::Alias(Hold::new(Alias { name: "QName".into(), id, target: text() }))
    };
    let members = vec![("a", named()), ("b", text()), ("l", Shape::sequence(named()))];
    let far = structure("{urn:p}P", vec![("a", named())]);
    let fields =
        structure("", vec![("q", named()), ("o", structure("{urn:o}O", members)), ("p", far), ("r", text())]);
    let layout = arguments("Op", "urn:o", &fields);
    let own = record(vec![
        ("a", said("one")),
        ("b", said("x")),
        ("l", Value::List(vec![said("two"), said("{urn:o}three")])),
    ]);
    let value = record(vec![
        ("q", said("none")),
        ("o", own),
        ("p", record(vec![("a", said("four"))])),
        ("r", said("r")),
    ]);
    for form in FORMS {
        let (bytes, told, _) = written(form, &layout, &fields, &value);
        for wanted in [
            r#"<b:q xmlns:b="urn:o" xmlns="">none</b:q>"#,
            r#"<b:a xmlns:b="urn:o" xmlns="">one</b:a><b>x</b>"#,
            r#"<b:a xmlns="">four</b:a>"#,
            "<r>r</r>",
        ] {
            assert!(told.contains(wanted), "{form:?}: {told}");
        }
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value, "{form:?}: {told}");
    }
}

/// What Mono's XmlSerializer writes of a class whose members have `Form = Unqualified`, or a namespace: read, and written so.
#[test]
fn items_and_members_are_where_mono_has_them() {
    let items = Alias {
        name: "ArrayOfInt".into(),
        id: "{urn:o}ArrayOfInt;-it".into(),
        target: Shape::sequence(Shape::I32),
    };
    let members = vec![
        ("a", within("", Shape::I32)),
        ("c", text()),
        ("e", within("", Mark::Items.on(Shape::sequence(text())))),
        ("l", Shape::Alias(Hold::new(items))),
        ("i", within("urn:p", text())),
    ];
    let fields = structure("", vec![("o", structure("{urn:o}O", members))]);
    let number = |value| Value::Integer(value);
    let value = record(vec![(
        "o",
        record(vec![
            ("a", number(5)),
            ("c", said("y")),
            ("e", Value::List(vec![said("1"), said("2")])),
            ("l", Value::List(vec![number(1), number(2)])),
            ("i", said("z")),
        ]),
    )]);
    let mono = concat!(
        r#"<Op xmlns="urn:o"><o xmlns="urn:o"><a xmlns="">5</a><c>y</c><e xmlns="">1</e><e xmlns="">2</e>"#,
        r#"<l xmlns="urn:o"><it xmlns="">1</it><it xmlns="">2</it></l><i xmlns="urn:p">z</i></o></Op>"#
    );
    assert_eq!(decode(Form::Text, mono.as_bytes(), &StringTable::default(), &fields), value);
    let layout = arguments("Op", "urn:o", &fields);
    for form in FORMS {
        let (bytes, told, _) = written(form, &layout, &fields, &value);
        let wanted = concat!(
            r#"<a xmlns="">5</a><c>y</c><e xmlns="">1</e><e xmlns="">2</e>"#,
            r#"<l><it xmlns="">1</it><it xmlns="">2</it></l><b:i xmlns:b="urn:p">z</b:i></o></Op>"#
        );
        assert!(told.ends_with(wanted), "{form:?}: {told}");
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value, "{form:?}");
    }
}

/// What stands around parameters may be of one namespace, and they of another.
#[test]
fn parameters_are_in_the_namespace_that_is_theirs() {
    let fields = structure(
        "",
        vec![("a", Shape::I32), ("b", within("", text())), ("c", Mark::Items.on(Shape::sequence(text())))],
    );
    let list = || Value::List(vec![said("1"), said("2")]);
    let value = record(vec![("a", Value::Integer(5)), ("b", said("x")), ("c", list())]);
    for form in FORMS {
        let wrapper = QName::new("urn:w".to_owned(), "Op".to_owned());
        let layout = Layout::new(Some(wrapper), "urn:m", &fields, "", &[]);
        let (bytes, told, _) = written(form, &layout, &fields, &value);
        let wanted = concat!(
            r#"<Op xmlns="urn:w"><b:a xmlns:b="urn:m">5</b:a><b xmlns="">x</b>"#,
            r#"<b:c xmlns:b="urn:m">1</b:c><b:c xmlns:b="urn:m">2</b:c></Op>"#
        );
        assert_eq!(told, wanted, "{form:?}");
        assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value, "{form:?}");
    }
}

#[test]
fn items_without_an_element_around_them_say_their_namespace() {
    let fields = structure("", vec![("c", Mark::Items.on(Shape::sequence(text())))]);
    let value = record(vec![("c", Value::List(vec![said("1"), said("2")]))]);
    for form in FORMS {
        let layout = Layout::new(None, "urn:m", &fields, "", &[]);
        let (_, told, _) = written(form, &layout, &fields, &value);
        assert_eq!(told, r#"<c xmlns="urn:m">1</c><c xmlns="urn:m">2</c>"#, "{form:?}");
        // Each item of a header is a header.
        let header = [("c".to_owned(), QName::new("urn:h".to_owned(), "C".to_owned()))];
        let wrapper = QName::new("urn:m".to_owned(), "Op".to_owned());
        let layout = Layout::new(Some(wrapper), "urn:m", &fields, "", &header);
        let (_, told, apart) = written(form, &layout, &fields, &value);
        assert!(told.starts_with(r#"<Op xmlns="urn:m""#) && !told.contains("<c"), "{form:?}: {told}");
        assert_eq!(apart, r#"<h:C xmlns:h="urn:h">1</h:C><h:C xmlns:h="urn:h">2</h:C>"#, "{form:?}");
    }
}

/// Parameters that stand alone are elements of their own namespace, which need not be that of the others.
#[test]
fn parameters_that_stand_alone_are_in_their_own_namespace() {
    let inner = structure("{urn:o}In", vec![("q", Shape::I32)]);
    let fields = structure(
        "",
        vec![
            ("Near", Shape::I32),
            ("Far", within("urn:u", Shape::I32)),
            ("Deep", within("urn:u", inner)),
            ("None", within("", text())),
            ("Last", text()),
        ],
    );
    let value = record(vec![
        ("Near", Value::Integer(1)),
        ("Far", Value::Integer(2)),
        ("Deep", record(vec![("q", Value::Integer(3))])),
        ("None", said("4")),
        ("Last", said("5")),
    ]);
    let wanted = concat!(
        r#"<Near xmlns="urn:s">1</Near><Far xmlns="urn:u">2</Far>"#,
        r#"<Deep xmlns="urn:u" xmlns:b="urn:o"><b:q>3</b:q></Deep><None xmlns="">4</None><Last xmlns="urn:s">5</Last>"#
    );
    let layout = Layout::new(None, "urn:s", &fields, "", &[]);
    for form in FORMS {
        let (_, told, _) = written(form, &layout, &fields, &value);
        assert_eq!(told.replace(XSI, ""), wanted, "{form:?}");
    }
}

/// A value of any type whose elements are in no namespace, or in another than those around them.
#[test]
fn values_of_any_type_keep_the_namespaces_of_their_elements() {
    let fields = structure("", vec![("v", Shape::Variant), ("w", text())]);
    let layout = arguments("Op", "urn:o", &fields);
    for (content, wanted) in [
        ("<v><a xmlns=''>1</a></v>", "<a xmlns=\"\">1</a>"),
        ("<v><a xmlns=''>1</a><a xmlns=''>2</a></v>", ""),
        ("<v xmlns:q='urn:q'><q:a>1</q:a><q:b>2</q:b></v>", "=\"urn:q\""),
        ("<v><a>1</a></v>", "=\"urn:o\""),
        ("<v i:type='n' xmlns=''><a>1</a></v>", " i:type=\"n\""),
    ] {
        let document = format!(
            "<Op xmlns='urn:o' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>{content}<w>after</w></Op>"
        );
        let value = decode(Form::Text, document.as_bytes(), &StringTable::default(), &fields);
        for form in FORMS {
            let (bytes, told, _) = written(form, &layout, &fields, &value);
            assert!(told.contains(wanted) && told.contains("<w>after</w></Op>"), "{content}: {told}");
            // A prefix stands for some namespace (Namespaces in XML 1.0, 2.2).
            let empty = told.match_indices("=\"\"").map(|(at, _)| told[..at].rsplit(' ').next().unwrap());
            assert!(empty.clone().all(|name| name == "xmlns"), "{content}: {told}");
            assert_eq!(decode(form, &bytes, &StringTable::default(), &fields), value, "{form:?}: {told}");
        }
    }
}
