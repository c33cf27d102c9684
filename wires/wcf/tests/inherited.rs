//! Types that extend one another across namespaces: a member is in the namespace of the type that declares it.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, decode, encode};
use everywire_model::{Shape, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::Form;

/// Three types, each of which extends the one before, and one more that is in the first one's namespace again.
const CONTRACT: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" xmlns:b="urn:base" xmlns:q="urn:der"
  xmlns:k="urn:kit" targetNamespace="urn:t" xmlns:s="http://www.w3.org/2001/XMLSchema"><types>
  <s:schema targetNamespace="urn:base" elementFormDefault="qualified">
    <s:complexType name="Animal"><s:sequence><s:element name="Zname" type="s:string"/><s:element name="In" form="unqualified" type="s:int"/></s:sequence></s:complexType>
    <s:complexType name="Old"><s:complexContent><s:extension base="q:Cat"><s:sequence><s:element name="Age" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:der" elementFormDefault="qualified">
    <s:complexType name="Cat"><s:complexContent><s:extension base="b:Animal"><s:sequence><s:element name="Lives" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:kit" elementFormDefault="qualified">
    <s:complexType name="Kitten"><s:complexContent><s:extension base="q:Cat"><s:sequence><s:element name="Mice" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:t" elementFormDefault="qualified">
    <s:element name="Put"><s:complexType><s:sequence><s:element name="v" nillable="true" type="TYPE"/></s:sequence></s:complexType></s:element>
    <s:element name="PutResponse"><s:complexType><s:sequence/></s:complexType></s:element>
  </s:schema></types>
  <message name="in"><part name="parameters" element="t:Put"/></message>
  <message name="out"><part name="parameters" element="t:PutResponse"/></message>
  <portType name="M"><operation name="Put"><input message="t:in"/><output message="t:out"/></operation></portType></definitions>"#;

/// The parameters of `Put` where `v` is of this type; of the contract itself and of what is printed of it.
fn parameters(kind: &str) -> [Shape; 2] {
    let contract = everywire_idl::wsdl::parse(&CONTRACT.replace("TYPE", kind), "t.wsdl").unwrap();
    let printed = everywire_idl::wsdl::print(&contract).unwrap();
    let again = everywire_idl::wsdl::parse(&printed, "printed.wsdl").unwrap();
    [contract, again].map(|contract| contract.interfaces().next().unwrap().operations[0].arguments.clone())
}

fn record(fields: &[(&str, Value)]) -> Value {
    Value::Struct(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// The namespace and name of each element, in their order.
fn elements(shown: &str) -> Vec<String> {
    let declared = |prefix: &str, element: &str| {
        let name = if prefix.is_empty() { "xmlns=\"".to_owned() } else { format!("xmlns:{prefix}=\"") };
        // The element says it itself, or one before it did.
        let text = if element.contains(&name) { element } else { shown };
        text.split(&name).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("?").to_owned()
    };
    let starts = shown.split('<').filter(|start| !start.is_empty() && !start.starts_with('/'));
    starts
        .map(|start| {
            let element = start.split('>').next().unwrap();
            let name = element.split([' ', '/']).next().unwrap();
            let (prefix, local) = name.split_once(':').unwrap_or(("", name));
            format!("{{{}}}{local}", declared(prefix, element))
        })
        .collect()
}

#[test]
fn inherited_members_are_in_the_namespace_of_their_declaration() {
    let inherited =
        [("Zname", Value::Text("z".to_owned())), ("In", Value::Integer(1)), ("Lives", Value::Integer(9))];
    let with = |name| [&inherited[..], &[(name, Value::Integer(3))]].concat();
    let arm = |number, name: &str, value| Value::Union(number, Some(Box::new((name.to_owned(), value))));
    let common = ["{urn:t}Put", "{urn:t}v", "{urn:base}Zname", "{}In", "{urn:der}Lives"];
    for (kind, value, last) in [
        // Nothing extends it.
        ("k:Kitten", record(&with("Mice")), Some("{urn:kit}Mice")),
        ("b:Old", record(&with("Age")), Some("{urn:base}Age")),
        // Others extend it, and it is not the first of its line.
        ("q:Cat", arm(0, "Cat", record(&inherited)), None),
        ("q:Cat", arm(2, "Kitten", record(&with("Mice"))), Some("{urn:kit}Mice")),
        // It is the first.
        ("b:Animal", arm(1, "Cat", record(&inherited)), None),
    ] {
        let wanted: Vec<&str> = common.into_iter().chain(last).collect();
        for shape in parameters(kind) {
            let value = record(&[("v", value.clone())]);
            for form in [Form::Text, Form::Binary] {
                let mut words = Outgoing::statics();
                let bytes = encode(form, &value, &mut words, &arguments("Put", "urn:t", &shape), &shape);
                assert_eq!(decode(form, &bytes, &StringTable::default(), &shape), value, "{kind} {form:?}");
                let shown = match form {
                    Form::Text => String::from_utf8(bytes).unwrap(),
                    Form::Binary => to_xml(&bytes, static_word).unwrap(),
                };
                assert_eq!(elements(&shown), wanted, "{kind} {form:?}: {shown}");
            }
        }
    }
}

/// Two types of one name, and values of any type.
const NAMESAKES: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" xmlns:b="urn:base" targetNamespace="urn:t"
  xmlns:s="http://www.w3.org/2001/XMLSchema"><types>
  <s:schema targetNamespace="urn:base" elementFormDefault="qualified">
    <s:complexType name="Animal"><s:sequence><s:element name="Zname" type="s:string"/></s:sequence></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:v1" elementFormDefault="qualified">
    <s:complexType name="Cat"><s:complexContent><s:extension base="b:Animal"><s:sequence><s:element name="Lives" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
    <s:complexType name="Dog"><s:complexContent><s:extension base="b:Animal"/></s:complexContent></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:v2" elementFormDefault="qualified">
    <s:complexType name="Cat"><s:complexContent><s:extension base="b:Animal"><s:sequence><s:element name="Mice" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:t" elementFormDefault="qualified">
    <s:element name="Put"><s:complexType><s:sequence><s:element name="v" type="b:Animal"/><s:element name="o" type="s:anyType"/></s:sequence></s:complexType></s:element>
    <s:element name="PutResponse"><s:complexType><s:sequence/></s:complexType></s:element>
  </s:schema></types>
  <message name="in"><part name="parameters" element="t:Put"/></message>
  <message name="out"><part name="parameters" element="t:PutResponse"/></message>
  <portType name="M"><operation name="Put"><input message="t:in"/><output message="t:out"/></operation></portType></definitions>"#;

/// What a call reads as whose envelope declares a prefix for each namespace.
fn called(content: &str) -> Result<Value, String> {
    use crate::http_support::*;
    let contract = everywire_idl::wsdl::parse(NAMESAKES, "t.wsdl").unwrap();
    let interface = contract.interfaces().next().unwrap().clone();
    let place = place_with("basic://127.0.0.1:8000?security=none", &interface);
    let mut session = everywire_wcf::http::Accepting::new(&place);
    let declared = "xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:b='urn:base' xmlns:one='urn:v1' xmlns:two='urn:v2' \
        xmlns:other='urn:other' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'";
    let whole =
        format!("<s:Envelope {declared}><s:Body><Put xmlns='urn:t'>{content}</Put></s:Body></s:Envelope>");
    let headers = "Content-Type: text/xml\r\nSOAPAction: \"\"\r\n";
    send(&mut session, &post("/echo", headers, whole.as_bytes())).unwrap();
    let call = calls(&mut session).remove(0);
    let fields = &interface.operations[0].arguments;
    call.body.read(|source| Value::decode(fields, source)).map_err(|failure| failure.to_string())
}

#[test]
fn types_of_one_name_are_told_apart_by_their_namespaces() {
    let members = "<Zname>z</Zname><Lives>9</Lives><Mice>3</Mice>";
    let value = |content: &str| -> Result<Value, String> {
        match called(content)? {
            Value::Struct(mut fields) => Ok(fields.remove(0).1),
            other => panic!("{other:?}"),
        }
    };
    let read = |kind: &str| value(&format!("<v i:type='{kind}' xmlns:near='urn:v2'>{members}</v>"));
    let arm = |number, label: &str, own: &[(&str, Value)]| {
        let fields = [&[("Zname", Value::Text("z".to_owned()))], own].concat();
        Ok(Value::Union(number, Some(Box::new((label.to_owned(), record(&fields))))))
    };
    let second = |value: &Value| match value {
        Value::Union(number, Some(arm)) => (*number, format!("{:?}", arm.1)),
        other => panic!("{other:?}"),
    };
    assert_eq!(read("b:Animal"), arm(0, "Animal", &[]));
    assert_eq!(read("one:Cat"), arm(1, "Cat", &[("Lives", Value::Integer(9))]));
    let wanted = (3, r#"Struct([("Zname", Text("z")), ("Mice", Integer(3))])"#.to_owned());
    assert_eq!(second(&read("two:Cat").unwrap()), wanted);
    // Declared where it is used.
    assert_eq!(second(&read("near:Cat").unwrap()), wanted);
    assert_eq!(second(&value(&format!("<v i:type='Cat' xmlns='urn:v2'>{members}</v>")).unwrap()), wanted);
    for (kind, says) in [
        ("other:Cat", "type `{urn:other}Cat`"),
        ("two:Dog", "type `{urn:v2}Dog`"),
        ("Cat", "type `{urn:t}Cat`"),
        ("nobody:Cat", "a prefix stands for no namespace"),
    ] {
        let failure = read(kind).unwrap_err();
        assert!(failure.contains(says), "{kind}: {failure}");
    }
}

#[test]
fn a_value_of_any_type_is_of_the_namespace_that_it_tells() {
    let read = |kind: &str| {
        let content = format!("<v><Zname/></v><o i:type='{kind}'><Zname>z</Zname><Lives>9</Lives></o>");
        called(&content).map(|value| match value {
            Value::Struct(mut fields) => match fields.remove(1).1 {
                Value::Variant(held) => format!("{:?}", held.1),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
    };
    let known = r#"Struct([("Zname", Text("z")), ("Lives", Integer(9))])"#;
    assert_eq!(read("one:Cat").as_deref(), Ok(known));
    assert_eq!(read("two:Cat").as_deref(), Ok(r#"Struct([("Zname", Text("z")), ("Mice", Integer(0))])"#));
    // What nobody knows is what its elements show.
    let shown = r#"Struct([("Zname", Text("z")), ("Lives", Text("9"))])"#;
    assert_eq!(read("other:Cat").as_deref(), Ok(shown));
    assert_eq!(read("two:Dog").as_deref(), Ok(shown));
    assert_eq!(read("one:Dog").as_deref(), Ok(r#"Struct([("Zname", Text("z"))])"#));
    assert!(read("nobody:Cat").unwrap_err().contains("a prefix stands for no namespace"));
}

#[test]
fn types_of_one_name_are_told_apart_in_binary_form() {
    let contract = everywire_idl::wsdl::parse(NAMESAKES, "t.wsdl").unwrap();
    let shape = contract.interfaces().next().unwrap().operations[0].arguments.clone();
    let read = |kind: &str| {
        let bytes = crate::common::binary(&format!(
            "<Put xmlns='urn:t' xmlns:a='urn:v1' xmlns:two='urn:v2' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>\
             <v i:type='{kind}' xmlns:c='urn:c'><Zname>z</Zname><Lives>9</Lives><Mice>3</Mice></v></Put>"
        ));
        let body = crate::common::body(bytes, None, everywire_model::Budget::default());
        body.read(|source| Value::decode(&shape, source)).map_err(|failure| failure.to_string())
    };
    let shown = |kind: &str| format!("{:?}", read(kind).unwrap());
    assert!(shown("a:Cat").contains("(\"Lives\", Integer(9))"), "{}", shown("a:Cat"));
    assert!(shown("two:Cat").contains("(\"Mice\", Integer(3))"), "{}", shown("two:Cat"));
    assert!(read("c:Cat").unwrap_err().contains("type `{urn:c}Cat`"));
    assert!(read("d:Cat").unwrap_err().contains("a prefix stands for no namespace"));
}
