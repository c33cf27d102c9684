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
