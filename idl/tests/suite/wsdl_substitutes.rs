//! Elements that stand for others: substitution groups are read as choices (XML Schema 1.0, part 1, 3.3.2).

use super::wsdl_members::{described, fields, read, unread};
use everywire_idl::wsdl::marks::namespace;
use everywire_idl::wsdl::{parse, print};
use everywire_model::{Contract, Definition, Shape};

/// A reference to an element for which others stand is a choice of all of them; where it is repeated, a list of unions.
#[test]
fn elements_that_stand_for_others_are_choices() {
    let types = r#"<s:element name="animal" type="t:Animal"/><s:element name="dog" type="t:Dog" substitutionGroup=" t:animal"/>
        <s:element name="puppy" type="t:Dog" nillable="true" substitutionGroup="t:dog"/><s:element name="nobody" abstract="true" substitutionGroup="t:animal"/>
        <s:element name="thing" abstract="true"/><s:element name="stone" type="s:int" substitutionGroup="t:thing"/>
        <s:element name="closed" type="s:int" block="substitution"/><s:element name="open" type="s:int" substitutionGroup="t:closed"/>
        <s:complexType name="Animal"><s:sequence><s:element name="name" type="s:string"/></s:sequence></s:complexType>
        <s:complexType name="Dog"><s:sequence><s:element name="tail" type="s:int"/></s:sequence></s:complexType>
        <s:complexType name="Zoo"><s:sequence><s:element ref="t:animal" maxOccurs="unbounded"/></s:sequence></s:complexType>
        <s:complexType name="Pair"><s:sequence><s:element ref="t:animal"/><s:element ref="t:thing"/><s:element ref="t:closed"/>
            <s:element name="next" type="s:int"/></s:sequence></s:complexType>
        <s:complexType name="Row"><s:sequence><s:element ref="t:thing" minOccurs="0" maxOccurs="9"/></s:sequence></s:complexType>
        <s:complexType name="Mix"><s:sequence><s:choice maxOccurs="9"><s:element ref="t:animal"/><s:element name="n" type="s:int"/></s:choice>
            <s:element ref="t:animal" maxOccurs="9"/></s:sequence></s:complexType>
        <s:element name="lost" substitutionGroup="nowhere:x"/>"#;
    let contract = read(types);
    let pair = [
        "animal: optional t::Animal ?1",
        "dog: optional t::Dog ?1",
        "puppy: optional t::Dog ?1",
        "stone: i32",
        "closed: i32",
        "next: i32",
    ];
    assert_eq!(fields(&contract, "t::Pair"), pair);
    let arms = |contract: &Contract, name: &str| -> Vec<String> {
        let union = contract.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Union(union)) if union.name == name => Some(union.clone()),
            _ => None,
        });
        let union = union.unwrap_or_else(|| panic!("no {name}"));
        union.arms.iter().map(|arm| format!("{} {:?}", arm.field.name, namespace(&arm.field.shape))).collect()
    };
    assert_eq!(fields(&contract, "t::Zoo"), ["animal: list of t::ZooItem *|"]);
    assert_eq!(arms(&contract, "t::ZooItem"), ["animal None", "dog None", "puppy None"]);
    assert_eq!(fields(&contract, "t::Row"), ["stone: list of i32 *"]);
    assert_eq!(
        fields(&contract, "t::Mix"),
        ["Items: list of t::MixItem *|", "animal: list of t::MixItem2 *|"]
    );
    assert_eq!(arms(&contract, "t::MixItem"), ["animal None", "dog None", "puppy None", "n None"]);
    assert_eq!(
        unread(&contract),
        [
            "the prefix `nowhere` is not declared: what needs it is left out",
            "{urn:t}Pair: elements that stand for {urn:t}closed are left out"
        ]
    );
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(fields(&again, "t::Pair"), pair, "{printed}");
    assert_eq!(fields(&again, "t::Zoo"), ["Items: list of t::ZooItem *|"], "{printed}");
    assert_eq!(print(&again).unwrap(), printed);
}

/// An element for which very many stand would make each type that names it as large; one whose type is nowhere is left out.
#[test]
fn elements_that_stand_for_others_are_bounded_and_may_be_missing() {
    let many = |count: usize| {
        let others: String = (0..count)
            .map(|n| format!(r#"<s:element name="e{n}" type="s:int" substitutionGroup="t:head"/>"#))
            .collect();
        let text = described(&format!(
            r#"<s:element name="head" type="s:int"/>{others}<s:element name="torn" type="t:Nowhere" substitutionGroup="t:head"/>
            <s:complexType name="A"><s:sequence><s:element ref="t:head"/></s:sequence></s:complexType>"#
        ));
        let used = r#"<message name="M"/><portType name="T"><operation name="Go"><input message="t:M"/></operation></portType>"#;
        parse(&text.replace(r#"<portType name="T"/>"#, used), "t.wsdl").unwrap_or_else(|e| panic!("{e}"))
    };
    let few = many(2);
    assert_eq!(fields(&few, "t::A"), ["head: optional i32 ?1", "e0: optional i32 ?1", "e1: optional i32 ?1"]);
    let told = unread(&few);
    assert!(
        matches!(&*told, [one] if one.starts_with("{urn:t}A: {urn:t}torn is left out: the type `Nowhere`")),
        "{told:?}"
    );
    assert_eq!(fields(&many(62), "t::A").len(), 63);
    let much = many(63);
    assert_eq!(fields(&much, "t::A"), ["head: i32"]);
    assert_eq!(unread(&much), ["{urn:t}A: elements that stand for {urn:t}head are left out"]);
}

/// Each element of a choice that is repeated is written in its own namespace.
#[test]
fn elements_of_several_namespaces_may_be_in_a_choice() {
    let text = described(
        r#"<s:complexType name="A"><s:sequence><s:element ref="o:far" maxOccurs="9"/></s:sequence></s:complexType>
        <s:complexType name="B"><s:choice maxOccurs="9"><s:element ref="o:far"/><s:element ref="o:other"/></s:choice></s:complexType>
        <s:element name="near" type="s:string" substitutionGroup="o:far"/>"#,
    );
    let schema = r#"<types><s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o" elementFormDefault="qualified">
        <s:element name="far" type="s:int" nillable="true"/><s:element name="other" type="s:int"/></s:schema>"#;
    let text =
        text.replacen("<types>", schema, 1).replacen("<definitions ", r#"<definitions xmlns:o="urn:o" "#, 1);
    let contract = parse(&text, "t.wsdl").unwrap_or_else(|e| panic!("{text}\n{e}"));
    let printed = print(&contract).unwrap();
    for part in [r#"ref="q0:far"/>"#, r#"<xs:element name="near""#] {
        assert!(printed.contains(part), "{printed}");
    }
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(print(&again).unwrap(), printed);
    assert_eq!(unread(&contract), Vec::<String>::new());
}
