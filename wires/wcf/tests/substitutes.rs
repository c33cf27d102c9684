//! Elements that stand for others, and choices of elements of several namespaces: each is written in its own.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, decode, encode};
use everywire_model::{Shape, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::Form;

const CONTRACT: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" xmlns:o="urn:o" targetNamespace="urn:t"
  xmlns:s="http://www.w3.org/2001/XMLSchema"><types>
  <s:schema targetNamespace="urn:o" elementFormDefault="qualified"><s:element name="far" type="s:int"/><s:element name="odd" type="s:int"/></s:schema>
  <s:schema targetNamespace="urn:t" elementFormDefault="qualified"><s:element name="near" type="s:string" substitutionGroup="o:far"/>
  <s:complexType name="Two"><s:sequence><s:element ref="o:far"/><s:element name="next" type="s:int"/></s:sequence></s:complexType>
  <s:element name="Put"><s:complexType><s:sequence><s:element name="list"><s:complexType><s:sequence>
    <s:element ref="o:far" maxOccurs="9"/><s:choice maxOccurs="9"><s:element name="n" type="s:int"/><s:element ref="o:odd"/></s:choice>
    <s:choice maxOccurs="9"><s:element name="z" type="s:int"/></s:choice></s:sequence></s:complexType></s:element>
    <s:element name="two" type="t:Two"/></s:sequence></s:complexType></s:element>
  <s:element name="PutResponse"><s:complexType><s:sequence/></s:complexType></s:element></s:schema></types>
  <message name="in"><part name="parameters" element="t:Put"/></message>
  <message name="out"><part name="parameters" element="t:PutResponse"/></message>
  <portType name="M"><operation name="Put"><input message="t:in"/><output message="t:out"/></operation></portType></definitions>"#;

fn parameters(text: &str) -> Shape {
    let contract = everywire_idl::wsdl::parse(text, "t.wsdl").unwrap();
    contract.interfaces().next().unwrap().operations[0].arguments.clone()
}

#[test]
fn each_element_of_a_choice_is_in_its_own_namespace() {
    let arm = |number, name: &str, value| Value::Union(number, Some(Box::new((name.to_owned(), value))));
    let number = Value::Integer;
    let text = |text: &str| Value::Text(text.to_owned());
    let value = |lists: [&str; 3]| {
        let items = [
            vec![arm(1, "near", text("a")), arm(0, "far", number(1))],
            vec![arm(1, "odd", number(2)), arm(0, "n", number(3))],
            vec![arm(0, "z", number(4))],
        ];
        let named = lists.iter().zip(items).map(|(name, items)| ((*name).to_owned(), Value::List(items)));
        let two = [("far", Value::Nothing), ("near", text("b")), ("next", number(5))];
        let two = two.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Value::Struct(vec![
            ("list".to_owned(), Value::Struct(named.collect())),
            ("two".to_owned(), Value::Struct(two)),
        ])
    };
    let printed = everywire_idl::wsdl::parse(CONTRACT, "t.wsdl").unwrap();
    let printed = everywire_idl::wsdl::print(&printed).unwrap();
    // A contract that is printed has choices in place of elements for which others stand; all lists are in it.
    for (contract, names) in
        [(CONTRACT, ["far", "Items", "ItemsChoices"]), (&printed, ["Items", "ItemsChoices", "Items3"])]
    {
        let (shape, value) = (parameters(contract), value(names));
        for form in [Form::Text, Form::Binary] {
            let mut words = Outgoing::statics();
            let bytes = encode(form, &value, &mut words, &arguments("Put", "urn:t", &shape), &shape);
            assert_eq!(decode(form, &bytes, &StringTable::default(), &shape), value, "{form:?}");
            let shown = match form {
                Form::Text => String::from_utf8(bytes).unwrap(),
                Form::Binary => to_xml(&bytes, static_word).unwrap(),
            };
            let (first, all) =
                (shown.find("near>a<").unwrap(), ["far", "odd"].map(|name| format!(":{name}")));
            assert!(shown.find(&all[0]).is_some_and(|far| far > first), "in the order of the list: {shown}");
            for name in all {
                let at = shown.find(&name).unwrap_or_else(|| panic!("{name}: {shown}"));
                let start = shown[..at].rfind('<').unwrap();
                let prefix = &shown[start + 1..at];
                assert!(shown.contains(&format!("xmlns:{prefix}=\"urn:o\"")), "{shown}");
            }
            assert!(shown.contains("<n>3</n>") && shown.contains("<near>b</near>"), "{shown}");
        }
    }
}
