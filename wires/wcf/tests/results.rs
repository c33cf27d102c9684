//! What an operation returns, beside parameters that are called as its element is, or as the model calls it.

#![allow(clippy::unwrap_used)]

use crate::common::{body_in, encode};
use everywire_model::{Budget, Operation, Shape, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable};
use everywire_wcf::plan::Plan;
use everywire_wcf::values::{Form, Layout};

/// The operation `Get` and how it is written, where its request and its reply have elements of these names.
fn get(request: &[&str], reply: &[&str]) -> (Operation, std::sync::Arc<Plan>) {
    let elements = |names: &[&str]| {
        let element = |name: &&str| format!("<s:element name=\"{name}\" type=\"s:int\"/>");
        names.iter().map(element).collect::<String>()
    };
    let description = format!(
        r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" targetNamespace="urn:t" xmlns:s="http://www.w3.org/2001/XMLSchema"><types>
  <s:schema targetNamespace="urn:t" elementFormDefault="qualified">
    <s:element name="Get"><s:complexType><s:sequence>{}</s:sequence></s:complexType></s:element>
    <s:element name="GetResponse"><s:complexType><s:sequence>{}</s:sequence></s:complexType></s:element>
  </s:schema></types>
  <message name="in"><part name="parameters" element="t:Get"/></message>
  <message name="out"><part name="parameters" element="t:GetResponse"/></message>
  <portType name="M"><operation name="Get"><input message="t:in"/><output message="t:out"/></operation></portType></definitions>"#,
        elements(request),
        elements(reply)
    );
    let contract = everywire_idl::wsdl::parse(&description, "t.wsdl").unwrap();
    // What is printed of it is the same.
    let printed = everywire_idl::wsdl::print(&contract).unwrap();
    let again = everywire_idl::wsdl::parse(&printed, "printed.wsdl").unwrap();
    let [one, other] =
        [contract, again].map(|contract| contract.interfaces().next().unwrap().operations[0].clone());
    assert_eq!(format!("{:?}", one.parameters), format!("{:?}", other.parameters));
    let contract = everywire_idl::wsdl::parse(&description, "t.wsdl").unwrap();
    let plan = Plan::of(Some(contract.interfaces().next().unwrap()), &one);
    (one, plan)
}

/// The numbers from 1 on, as the fields of a shape.
fn numbers(shape: &Shape) -> Value {
    let fields = (1..).zip(shape.fields());
    Value::Struct(fields.map(|(at, field)| (field.name.to_string(), Value::Integer(at))).collect())
}

fn written(layout: &Layout, shape: &Shape) -> String {
    let bytes = encode(Form::Text, &numbers(shape), &mut Outgoing::statics(), layout, shape);
    String::from_utf8(bytes).unwrap()
}

fn read(shape: &Shape, xml: &str) -> Value {
    let body = body_in(Form::Text, xml.as_bytes().to_vec(), &StringTable::default(), Budget::default());
    body.read(|source| Value::decode(shape, source)).unwrap()
}

#[test]
fn an_out_parameter_may_be_called_as_the_result() {
    for reply in [
        &["GetResult", "GetResult"][..],
        &["GetResult", "a", "GetResult"],
        &["GetResult", "return"],
        &["a", "GetResult"],
        &["return", "GetResult"],
    ] {
        let (operation, plan) = get(&["v"], reply);
        let fields = operation.results.fields();
        assert_eq!(fields.len(), reply.len(), "{reply:?}");
        let elements = (1..).zip(reply).map(|(at, name)| format!("<{name}>{at}</{name}>"));
        let inside: String = elements.collect();
        let body = format!("<GetResponse xmlns=\"urn:t\">{inside}</GetResponse>");
        assert_eq!(written(&plan.results, &operation.results), body);
        assert_eq!(read(&operation.results, &body), numbers(&operation.results), "{body}");
        // Elements that nobody knows may stand between them.
        let mut spread = body.replace("</a>", "</a><x/>");
        // One of them may be what an operation returns, where the contract calls that `return` itself.
        if !reply.contains(&"return") {
            spread = spread.replace("</GetResult><", "</GetResult><y/><");
        }
        assert_eq!(read(&operation.results, &spread), numbers(&operation.results), "{spread}");
    }
    // Members in another order are sought by name; of one name the result comes first.
    let (operation, _) = get(&["v"], &["GetResult", "a", "GetResult"]);
    let mixed = "<GetResponse><a>2</a><GetResult>1</GetResult><GetResult>3</GetResult></GetResponse>";
    assert_eq!(read(&operation.results, mixed), numbers(&operation.results));
    // Twice is not three times.
    let thrice = mixed.replace("<a>", "<GetResult>4</GetResult><a>");
    let body = body_in(Form::Text, thrice.into_bytes(), &StringTable::default(), Budget::default());
    let failure = body.read(|source| Value::decode(&operation.results, source)).unwrap_err();
    assert_eq!(failure.code(), Some("nbfx RepeatedElement"));
}

#[test]
fn a_parameter_of_the_request_may_be_called_return() {
    let (operation, plan) = get(&["return"], &["GetResult"]);
    let body = "<Get xmlns=\"urn:t\"><return>1</return></Get>";
    assert_eq!(written(&plan.arguments, &operation.arguments), body);
    assert_eq!(read(&operation.arguments, body), numbers(&operation.arguments));
}
