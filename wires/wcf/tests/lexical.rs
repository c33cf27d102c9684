//! Values that are texts in the neutral model and not any text in XML Schema: decimals, dates, qualified names; and members of which a
//! message has one.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, body_in, decode};
use everywire_model::{Budget, Failure, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable};
use everywire_wcf::values::{Form, write_body};

const FORMS: [Form; 2] = [Form::Text, Form::Binary];

/// The parameters of an operation with these elements as its request.
fn parameters(elements: &str) -> Shape {
    let contract = format!(
        r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:m" targetNamespace="urn:m"
  xmlns:s="http://www.w3.org/2001/XMLSchema"><types><s:schema targetNamespace="urn:m" elementFormDefault="qualified">
  <s:complexType name="Order"><s:sequence>
    <s:element name="Price" type="s:decimal"/><s:element name="Day" type="s:date" minOccurs="0"/></s:sequence></s:complexType>
  <s:complexType name="Tagged"><s:sequence><s:element name="Price" type="s:decimal"/></s:sequence>
    <s:attribute name="Kind" type="s:QName"/></s:complexType>
  <s:element name="Put"><s:complexType><s:sequence>{elements}</s:sequence></s:complexType></s:element>
  <s:element name="PutResponse"><s:complexType><s:sequence/></s:complexType></s:element></s:schema></types>
  <message name="in"><part name="parameters" element="t:Put"/></message>
  <message name="out"><part name="parameters" element="t:PutResponse"/></message>
  <portType name="M"><operation name="Put"><input message="t:in"/><output message="t:out"/></operation></portType></definitions>"#
    );
    let contract = everywire_idl::wsdl::parse(&contract, "m.wsdl").unwrap();
    contract.interfaces().next().unwrap().operations[0].arguments.clone()
}

/// What a request with this content is read as.
fn read(form: Form, shape: &Shape, content: &str) -> Result<Value, Failure> {
    let document = format!(
        "<Put xmlns='urn:m' xmlns:q='urn:q' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>{content}</Put>"
    );
    let bytes = match form {
        Form::Text => document.into_bytes(),
        Form::Binary => crate::common::binary(&document),
    };
    let body = body_in(form, bytes, &StringTable::default(), Budget::default());
    body.read(|source| Value::decode(shape, source))
}

fn write(form: Form, shape: &Shape, value: &Value) -> Result<Vec<u8>, Failure> {
    let (mut out, layout) = (SendBuffer::new(), arguments("Put", "urn:m", shape));
    let encode = |sink: &mut dyn Sink| value.encode(shape, sink);
    write_body(form, &layout, &mut Outgoing::inline(), &encode, &mut out)?;
    Ok(out.to_vec())
}

fn said(text: &str) -> Value {
    Value::Text(text.into())
}

fn record<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// No empty text says that there is no name: what may be missing or nil is an optional value, and all else is a mistake of the sender.
#[test]
fn a_qualified_name_that_is_missing_or_nil_is_no_empty_text() {
    let shape = parameters(
        r#"<s:element name="must" type="s:QName"/><s:element name="nil" type="s:QName" nillable="true"/>
        <s:element name="may" type="s:QName" minOccurs="0"/><s:element name="of" type="t:Tagged"/>"#,
    );
    for form in FORMS {
        let of = "<of Kind='q:k'><Price>1</Price></of>";
        let all = format!("<must>q:m</must><nil>q:n</nil><may>q:y</may>{of}");
        let order = |kind| record([("Kind", kind), ("Price", said("1"))]);
        let whole = record([
            ("must", said("{urn:q}m")),
            ("nil", said("{urn:q}n")),
            ("may", said("{urn:q}y")),
            ("of", order(said("{urn:q}k"))),
        ]);
        let value = read(form, &shape, &all).unwrap();
        assert_eq!(value, whole, "{form:?}");
        let value =
            read(form, &shape, "<must>q:m</must><nil i:nil='true'/><of><Price>1</Price></of>").unwrap();
        let Value::Struct(fields) = &value else { panic!("{value:?}") };
        assert_eq!(
            fields[1..3],
            [("nil".into(), Value::Nothing), ("may".into(), Value::Nothing)],
            "{form:?}"
        );
        let Value::Struct(order) = &fields[3].1 else { panic!("{value:?}") };
        assert_eq!(order[0], ("Kind".into(), Value::Nothing), "{form:?}");
        assert_eq!(
            decode(form, &write(form, &shape, &value).unwrap(), &StringTable::default(), &shape),
            value
        );
        let failure = read(form, &shape, &all.replace("<must>q:m</must>", "")).unwrap_err().to_string();
        assert!(failure.contains("missing") && failure.contains("must"), "{form:?}: {failure}");
        let nil = all.replace("<must>q:m</must>", "<must i:nil='true'/>");
        let failure = read(form, &shape, &nil).unwrap_err();
        assert!(failure.code().is_some_and(|code| code.ends_with("Nil")), "{form:?}: {failure}");
    }
}

/// Decimals, dates and so on are checked before they leave and when they come, and what is missing is what .NET has for it.
#[test]
fn texts_that_are_no_value_of_their_type_neither_leave_nor_arrive() {
    let shape = parameters(
        r#"<s:element name="when" type="s:dateTime" minOccurs="0"/><s:element name="took" type="s:duration" minOccurs="0"/>
        <s:element name="days" type="s:gYear" minOccurs="0" maxOccurs="unbounded"/><s:element name="of" type="t:Order"/>
        <s:element name="name" type="s:QName"/>"#,
    );
    let value = |when, took, day, price, name| {
        let order = record([("Price", said(price)), ("Day", said("2003-01-31"))]);
        let days = Value::List(vec![said("2003"), said(day)]);
        record([
            ("when", said(when)),
            ("took", said(took)),
            ("days", days),
            ("of", order),
            ("name", said(name)),
        ])
    };
    let right = value("2003-01-31T12:30:00Z", "PT1S", "2004", "-12.50", "{urn:q}n");
    for form in FORMS {
        assert_eq!(
            decode(form, &write(form, &shape, &right).unwrap(), &StringTable::default(), &shape),
            right
        );
        for (wrong, member) in [
            (value("yesterday", "PT1S", "2004", "1", "n"), "when"),
            (value("2003-01-31T12:30:00Z", "1s", "2004", "1", "n"), "took"),
            (value("2003-01-31T12:30:00Z", "PT1S", "04", "1", "n"), "days"),
            (value("2003-01-31T12:30:00Z", "PT1S", "2004", "abc", "n"), "Price"),
            (value("2003-01-31T12:30:00Z", "PT1S", "2004", "1", "{urn:q}a b"), "name"),
            (value("2003-01-31T12:30:00Z", "PT1S", "2004", "1", "p:n"), "name"),
        ] {
            let failure = write(form, &shape, &wrong).unwrap_err().to_string();
            assert!(failure.contains(&format!("`{member}`")), "{form:?}: {failure}");
        }
        let all = "<when>2003-01-31T12:30:00Z</when><took>PT1S</took><days>2003</days>\
                   <of><Price> 1.5\n</Price></of><name>q:n</name>";
        let (whole, price) =
            (read(form, &shape, all).unwrap(), |text: &str| format!("{:?}", ("Price", said(text))));
        assert!(format!("{whole:?}").contains(&price("1.5")), "{form:?}: {whole:?}");
        for (from, to, member) in [
            ("2003-01-31T12:30:00Z", "31.1.2003", "when"),
            ("PT1S", "", "took"),
            ("2003<", "03<", "days"),
            (" 1.5\n", "1,5", "Price"),
            ("q:n", "q:a b", "name"),
        ] {
            let failure = read(form, &shape, &all.replace(from, to)).unwrap_err();
            assert!(failure.code().is_some_and(|code| code.ends_with("BadValue")), "{form:?}: {failure}");
            assert!(failure.to_string().contains(&format!("`{member}`")), "{form:?}: {failure}");
        }
        let nil = all.replace("<Price> 1.5\n</Price>", "<Price i:nil='true'/>");
        let failure = read(form, &shape, &nil).unwrap_err();
        assert!(failure.code().is_some_and(|code| code.ends_with("Nil")), "{form:?}: {failure}");
        let bare = read(form, &shape, "<of/><name>q:n</name>").unwrap();
        assert!(format!("{bare:?}").contains(&price("0")), "{form:?}: {bare:?}");
        assert!(format!("{bare:?}").contains("\"0001-01-01\""), "{form:?}: {bare:?}");
    }
}

/// Of alternatives a message has one; each struct, and each choice of it, has its own.
#[test]
fn only_one_alternative_of_a_choice_is_written() {
    let shape = parameters(
        r#"<s:element name="of"><s:complexType><s:sequence><s:choice><s:element name="a" type="s:int"/><s:element name="b" type="t:Order"/></s:choice>
        <s:element name="each" minOccurs="0" maxOccurs="unbounded"><s:complexType><s:sequence>
          <s:choice><s:element name="c" type="s:string"/><s:element name="d" type="s:int"/></s:choice>
          <s:choice><s:element name="e" type="s:int"/><s:element name="f" type="s:int"/></s:choice>
        </s:sequence></s:complexType></s:element></s:sequence></s:complexType></s:element>"#,
    );
    let number = |number: Option<i128>| number.map_or(Value::Nothing, Value::Integer);
    let item = |c: Option<&str>, d, e, f| {
        let c = c.map_or(Value::Nothing, said);
        record([("c", c), ("d", number(d)), ("e", number(e)), ("f", number(f))])
    };
    let order = || record([("Price", said("1")), ("Day", said("2003-01-31"))]);
    let value = |a, b, each: &[Value]| {
        let of = record([("a", number(a)), ("b", b), ("each", Value::List(each.to_vec()))]);
        record([("of", of)])
    };
    let one = item(Some(""), None, None, Some(2));
    let other = item(None, Some(1), Some(2), None);
    for form in FORMS {
        for right in [
            value(Some(1), Value::Nothing, &[one.clone(), other.clone(), one.clone()]),
            value(None, order(), &[other.clone(), one.clone()]),
        ] {
            assert_eq!(
                decode(form, &write(form, &shape, &right).unwrap(), &StringTable::default(), &shape),
                right
            );
        }
        for (wrong, names) in [
            (value(Some(1), order(), &[]), "`a` and `b` are alternatives"),
            (
                value(Some(1), Value::Nothing, &[one.clone(), item(Some("x"), Some(1), None, None)]),
                "`c` and `d`",
            ),
            (value(None, Value::Nothing, &[item(None, Some(1), Some(1), Some(1))]), "`e` and `f`"),
        ] {
            let failure = write(form, &shape, &wrong).unwrap_err().to_string();
            assert!(failure.contains(names), "{form:?}: {failure}");
        }
    }
}

/// An element that is there and empty has the default (XML Schema part 1, 3.3.1), where nothing is no value of its type. An empty text is
/// one: .NET takes it as it is, and so is it here.
#[test]
fn an_empty_element_has_its_default() {
    let shape = parameters(
        r#"<s:element name="i" type="s:int" default="7" minOccurs="0"/><s:element name="f" type="s:double" default="0.5" minOccurs="0"/>
        <s:element name="b" type="s:boolean" default="true" minOccurs="0"/><s:element name="d" type="s:decimal" default="1.5" minOccurs="0"/>
        <s:element name="t" type="s:string" default="x" minOccurs="0"/><s:element name="none" type="s:int"/>"#,
    );
    for form in FORMS {
        for (empty, rest) in
            [("<i/><f></f><b/><d/><t/>", "<none>1</none>"), ("<d/><b/><t/><f/><i/>", "<none>1</none>")]
        {
            let value =
                read(form, &shape, &format!("{empty}{rest}")).unwrap_or_else(|e| panic!("{form:?}: {e}"));
            let wanted = record([
                ("i", Value::Integer(7)),
                ("f", Value::Float(0.5)),
                ("b", Value::Bool(true)),
                ("d", said("1.5")),
                ("t", said("")),
                ("none", Value::Integer(1)),
            ]);
            assert_eq!(value, wanted, "{form:?}");
        }
        let failure = read(form, &shape, "<i/><f/><b/><d/><t/><none/>").unwrap_err();
        assert_eq!(failure.code(), Some("nbfx BadValue"), "{form:?}: {failure}");
        assert!(read(form, &shape, "<i>x</i><none>1</none>").is_err(), "a wrong value is no empty one");
    }
}
