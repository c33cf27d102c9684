//! Messages of descriptions that others wrote by hand: which elements they are, and in which order.

use everywire_idl::wsdl::{names, parse, print};
use everywire_model::{Contract, Interface};

/// A description of one operation, `Ask`, whose messages have these parts, beside these elements and types in the namespace
/// `urn:s` (another than that of the port type, `urn:t`).
fn described(schema: &str, asked: &str, answered: &str) -> String {
    let part =
        |element: &str| format!("<part name=\"{}\" element=\"{element}\"/>", element.replace(':', "_"));
    let parts = |elements: &str| elements.split_whitespace().map(part).collect::<String>();
    format!(
        r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:u="urn:u" xmlns:s="urn:s" xmlns:xs="http://www.w3.org/2001/XMLSchema"><types>
        <xs:schema targetNamespace="urn:u" elementFormDefault="qualified"><xs:element name="Far" type="xs:int"/><xs:element name="Near" type="xs:int"/></xs:schema>
        <xs:schema targetNamespace="urn:s" elementFormDefault="qualified"><xs:import namespace="urn:u"/>{schema}</xs:schema></types>
        <message name="Asked">{}</message><message name="Answered">{}</message>
        <portType name="T"><operation name="Ask"><input message="t:Asked"/><output message="t:Answered"/></operation></portType></definitions>"#,
        parts(asked),
        parts(answered)
    )
}

fn read(text: &str) -> Contract {
    parse(text, "t.wsdl").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn only(contract: &Contract) -> &Interface {
    contract.interfaces().next().unwrap_or_else(|| panic!("no interface"))
}

/// What is printed is read as the same again.
fn printed(contract: &Contract) -> String {
    let text = print(contract).unwrap_or_else(|e| panic!("{e:?}"));
    let again = read(&text);
    let told = |contract| format!("{:?}", only(contract).operations[0].notes);
    assert_eq!(told(&again), told(contract), "{text}");
    assert_eq!(print(&again).unwrap(), text);
    text
}

/// Elements that stand alone are of their schema, whose namespace need not be that of the port type.
#[test]
fn elements_that_stand_alone_are_in_their_schemas_namespace() {
    let text = described(
        "<xs:element name=\"In\" type=\"xs:int\"/><xs:element name=\"Out\" type=\"xs:int\"/>",
        "s:In u:Far",
        "s:Out",
    );
    let contract = read(&text);
    let interface = only(&contract);
    let members = |reply| names::members(Some(interface), &interface.operations[0], reply);
    assert_eq!((members(false), members(true)), ("urn:s".to_owned(), "urn:s".to_owned()));
    let placed = |field: &everywire_model::shape::Field| {
        everywire_idl::wsdl::marks::namespace(&field.shape).map(str::to_owned)
    };
    let arguments: Vec<_> = interface.operations[0].arguments.fields().iter().map(placed).collect();
    assert_eq!(arguments, [None, Some("urn:u".to_owned())]);
    let text = printed(&contract);
    assert!(text.contains("<wsdl:part name=\"Far\" element=\"i1:Far\"/>"), "{text}");
    assert!(!text.contains("targetNamespace=\"urn:t\" xmlns"), "no element is in it: {text}");
}

/// Parameters of another namespace that come as often as need be.
#[test]
fn repeated_parameters_of_another_namespace_are_printed_so() {
    let schema = "<xs:element name=\"Ask\"><xs:complexType><xs:sequence><xs:element ref=\"u:Far\" minOccurs=\"0\" maxOccurs=\"unbounded\"/>\
        <xs:element ref=\"u:Near\"/></xs:sequence></xs:complexType></xs:element>\
        <xs:element name=\"AskResponse\"><xs:complexType/></xs:element>";
    let text = printed(&read(&described(schema, "s:Ask", "s:AskResponse")));
    let element =
        text.lines().find(|line| line.contains("ref=") && line.contains(":Far")).unwrap_or_default();
    assert!(element.contains("maxOccurs=\"unbounded\""), "{text}");
    assert!(text.contains("<xs:element name=\"Far\" type=\"xs:int\"/>"), "{text}");
}
