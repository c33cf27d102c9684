//! Bare parts and headers that are nil: nothing, and no object whose members are all missing.

#![allow(clippy::unwrap_used)]

use crate::common::body_in;
use everywire_model::{Budget, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable};
use everywire_wcf::plan::Plan;
use everywire_wcf::values::{Form, write_body};

/// A message contract: an order as the body, and a card as a header of request and reply.
const CONTRACT: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" targetNamespace="urn:t"
  xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"><types>
  <s:schema targetNamespace="urn:t" elementFormDefault="qualified">
    <s:complexType name="Order"><s:sequence><s:element name="Count" type="s:int"/></s:sequence></s:complexType>
    <s:complexType name="Card"><s:sequence><s:element name="Number" type="s:int"/></s:sequence></s:complexType>
    <s:element name="TheOrder" nillable="true" type="t:Order"/>
    <s:element name="TheCard" nillable="true" type="t:Card"/>
    <s:element name="Always" type="t:Order"/>
  </s:schema></types>
  <message name="in"><part name="p" element="t:TheOrder"/></message>
  <message name="in_Headers"><part name="TheCard" element="t:TheCard"/></message>
  <message name="out"><part name="p" element="t:Always"/></message>
  <portType name="M"><operation name="Put"><input message="t:in"/><output message="t:out"/></operation></portType>
  <binding name="B" type="t:M"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/><operation name="Put">
    <soap:operation soapAction="urn:t/M/Put" style="document"/>
    <input><soap:header message="t:in_Headers" part="TheCard" use="literal"/><soap:body use="literal"/></input>
    <output><soap:body use="literal"/></output></operation></binding></definitions>"#;

#[test]
fn a_part_or_a_header_may_be_nil() {
    let contract = everywire_idl::wsdl::parse(CONTRACT, "t.wsdl").unwrap();
    let printed = everywire_idl::wsdl::print(&contract).unwrap();
    let again = everywire_idl::wsdl::parse(&printed, "printed.wsdl").unwrap();
    for contract in [contract, again] {
        let interface = contract.interfaces().next().unwrap();
        let operation = &interface.operations[0];
        let shape = &operation.arguments;
        let names: Vec<_> = shape.fields().iter().map(|field| field.name.to_string()).collect();
        assert_eq!(names, ["TheOrder", "TheCard"]);
        assert!(matches!(operation.results.fields()[0].shape, Shape::Struct(_)), "{:?}", operation.results);
        let plan = Plan::of(Some(interface), operation);
        let of = |name: &str, value: i128| Value::Struct(vec![(name.to_owned(), Value::Integer(value))]);
        for (order, card) in [
            (Value::Nothing, Value::Nothing),
            (of("Count", 0), of("Number", 0)),
            (of("Count", 5), Value::Nothing),
        ] {
            let value = Value::Struct(names.iter().cloned().zip([order, card]).collect());
            let mut out = SendBuffer::new();
            let encode = |sink: &mut dyn Sink| value.encode(shape, sink);
            let headers =
                write_body(Form::Text, &plan.arguments, &mut Outgoing::statics(), &encode, &mut out);
            let headers = String::from_utf8(headers.unwrap().unwrap()).unwrap();
            let body = String::from_utf8(out.to_vec()).unwrap();
            // What .NET writes in place of null.
            let is_nil = |value: &Value| matches!(value, Value::Nothing);
            let Value::Struct(fields) = &value else { unreachable!() };
            assert_eq!(body.contains("i:nil=\"true\""), is_nil(&fields[0].1), "{body}");
            assert_eq!(headers.contains("i:nil=\"true\""), is_nil(&fields[1].1), "{headers}");
            let (start, end) = ("<Envelope><Header>", "</Body></Envelope>");
            let start = format!("{start}{headers}</Header><Body>");
            let envelope = format!("{start}{body}{end}").into_bytes();
            let body = crate::common::body_with(
                Form::Text,
                envelope,
                start.len(),
                everywire_wcf::values::BodyContext::default(),
                Budget::default(),
            );
            assert_eq!(body.read(|source| Value::decode(shape, source)).unwrap(), value);
        }
        // A header that is missing is nothing, too.
        let bare = b"<TheOrder xmlns=\"urn:t\"><Count>1</Count></TheOrder>".to_vec();
        let body = body_in(Form::Text, bare, &StringTable::default(), Budget::default());
        let read = body.read(|source| Value::decode(shape, source)).unwrap();
        let fields = names.into_iter().zip([of("Count", 1), Value::Nothing]);
        assert_eq!(read, Value::Struct(fields.collect()));
    }
}
