//! What belongs to one document of a schema, and what a description says several times of one name.

use crate::wsdl_members::fields;
use everywire_idl::wsdl::marks::Mark;
use everywire_idl::wsdl::{names, parse};
use everywire_model::{Contract, Definition, Shape};

fn described(schemas: &str) -> Contract {
    let text = format!(
        r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" xmlns:t="urn:t"><types>
        {schemas}</types><portType name="T"/></definitions>"#
    );
    parse(&text, "t.wsdl").unwrap_or_else(|e| panic!("{e}"))
}

/// The namespace of the only attribute of a type.
fn namespace(contract: &Contract, name: &str) -> String {
    let found = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Struct(shape)) if shape.name == name => Some(shape.clone()),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{name} is missing"));
    let attribute = found.fields.iter().find_map(|field| match Mark::of(&field.shape) {
        Some(Mark::Attribute(attribute)) => Some(attribute.namespace.to_owned()),
        _ => None,
    });
    attribute.unwrap_or_else(|| panic!("{name} has no attribute"))
}

/// XML Schema part 1, 3.3.2: `elementFormDefault` speaks of the document that it stands in.
#[test]
fn each_document_of_a_namespace_says_what_is_qualified_in_it() {
    let schema = |name: &str, forms: &str| {
        format!(
            r#"<s:schema targetNamespace="urn:t"{forms}><s:complexType name="{name}"><s:sequence><s:element name="a" type="s:int"/>
            </s:sequence><s:attribute name="b" type="s:int"/></s:complexType></s:schema>"#
        )
    };
    let qualified = schema("A", r#" elementFormDefault="qualified" attributeFormDefault="qualified""#);
    let plain = schema("B", "");
    for schemas in [format!("{qualified}{plain}"), format!("{plain}{qualified}")] {
        let contract = described(&schemas);
        assert!(fields(&contract, "t::A").contains(&"a: i32".to_owned()), "{:?}", fields(&contract, "t::A"));
        assert!(fields(&contract, "t::B").contains(&"a: i32 in \"\"".to_owned()));
        assert_eq!((namespace(&contract, "t::A"), namespace(&contract, "t::B")), ("urn:t".into(), "".into()));
    }
}

/// XML Schema part 1, 4.2.2: the base of a type that redefines itself is what it was.
#[test]
fn a_type_that_extends_itself_has_what_it_had_before() {
    let redefining = r#"<s:schema targetNamespace="urn:t" elementFormDefault="qualified"><s:redefine schemaLocation="r.xsd"><s:complexType name="R">
        <s:complexContent><s:extension base="t:R"><s:sequence><s:element name="added" type="s:int"/></s:sequence></s:extension>
        </s:complexContent></s:complexType></s:redefine></s:schema>"#;
    let redefined = r#"<s:schema targetNamespace="urn:t" elementFormDefault="qualified"><s:complexType name="R"><s:sequence>
        <s:element name="old" type="s:int"/></s:sequence></s:complexType></s:schema>"#;
    for schemas in [format!("{redefining}{redefined}"), format!("{redefined}{redefining}")] {
        assert_eq!(fields(&described(&schemas), "t::R"), ["old: i32", "added: i32"]);
    }
}

/// WSDL 1.1, 2.5: operations of one name are told apart by the names of their messages.
#[test]
fn operations_of_one_name_have_actions_of_their_own() {
    for (names, bound) in [
        (["name=\"overA\"", "name=\"overB\""], ["name=\"overA\"", "name=\"overB\""]),
        // What is not said is what it would be called.
        (["", "name=\"overB\""], ["name=\"overRequest\"", "name=\"overB\""]),
    ] {
        let operation = |at: usize, kind: &str| {
            format!(
                "<operation name=\"over\"><input {} message=\"t:{kind}\"/><output message=\"t:{kind}\"/></operation>",
                names[at]
            )
        };
        let binding = |at: usize, action: &str| {
            format!(
                "<operation name=\"over\"><p:operation soapAction=\"urn:t/{action}\"/><input {}><p:body use=\"literal\"/></input><output/></operation>",
                bound[at]
            )
        };
        let text = format!(
            r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:p="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:s="http://www.w3.org/2001/XMLSchema"
            targetNamespace="urn:t" xmlns:t="urn:t"><types><s:schema targetNamespace="urn:t"><s:element name="A" type="s:int"/>
            <s:element name="B" type="s:string"/></s:schema></types><message name="A"><part name="p" element="t:A"/></message>
            <message name="B"><part name="p" element="t:B"/></message><portType name="T">{}{}</portType>
            <binding name="N" type="t:T"><p:binding transport="http://schemas.xmlsoap.org/soap/http"/>{}{}</binding></definitions>"#,
            operation(0, "A"),
            operation(1, "B"),
            binding(1, "overB"),
            binding(0, "overA"),
        );
        let contract = parse(&text, "t.wsdl").unwrap_or_else(|e| panic!("{e}"));
        let interface = contract.interfaces().next().unwrap_or_else(|| panic!("no interface"));
        let actions = interface.operations.iter().map(|operation| names::action(Some(interface), operation));
        assert_eq!(actions.collect::<Vec<_>>(), ["urn:t/overA", "urn:t/overB"]);
    }
}

/// XML Schema part 1, 3.14.6: a list or a union of itself, on whatever way, has no values.
#[test]
fn a_list_or_a_union_of_itself_is_a_mistake() {
    let list = |name: &str, of: &str| {
        format!(r#"<s:simpleType name="{name}"><s:list itemType="{of}"/></s:simpleType>"#)
    };
    let union = |name: &str, of: &str| {
        format!(r#"<s:simpleType name="{name}"><s:union memberTypes="{of}"/></s:simpleType>"#)
    };
    let narrow = |name: &str, of: &str| {
        format!(r#"<s:simpleType name="{name}"><s:restriction base="{of}"/></s:simpleType>"#)
    };
    let inner = r#"<s:simpleType name="A"><s:union><s:simpleType><s:list itemType="t:A"/></s:simpleType></s:union></s:simpleType>"#;
    for (types, wrong) in [
        (list("A", "t:A"), true),
        (union("A", "s:int t:A"), true),
        (list("A", "t:B") + &union("B", "s:int t:C") + &narrow("C", "t:A"), true),
        (inner.to_owned(), true),
        (list("A", "t:B") + &union("B", "s:int t:C") + &narrow("C", "s:int"), false),
        // In a union many may be of one type.
        (
            union("A", "t:B t:C")
                + &union("B", "t:D s:int")
                + &union("C", "t:D s:int")
                + &narrow("D", "s:int"),
            false,
        ),
    ] {
        let text = format!(
            r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" xmlns:t="urn:t"><types>
            <s:schema targetNamespace="urn:t">{types}</s:schema></types><portType name="T"/></definitions>"#
        );
        let mistakes = parse(&text, "t.wsdl").map_or_else(|mistakes| mistakes.to_string(), |_| String::new());
        assert_eq!(mistakes.contains("is a list or a union of itself"), wrong, "{types}: {mistakes}");
    }
}
