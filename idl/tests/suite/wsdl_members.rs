//! Members of types as XmlSerializer has them: what is read of them, what is printed, and what is refused.

use crate::common::data;
use everywire_idl::wsdl::marks::{Attribute, Mark, namespace, unmarked};
use everywire_idl::wsdl::{describe, parse, print};
use everywire_model::contract::note;
use everywire_model::{Contract, Definition, Shape};

/// A description whose schema has this in it.
pub(crate) fn described(schema: &str) -> String {
    format!(
        r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" xmlns:t="urn:t"><types>
        <s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">{schema}</s:schema>
        </types><portType name="T"/></definitions>"#
    )
}

pub(crate) fn read(schema: &str) -> Contract {
    parse(&described(schema), "t.wsdl").unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn fields(contract: &Contract, name: &str) -> Vec<String> {
    let found = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Struct(shape)) if shape.name == name => Some(shape.clone()),
        _ => None,
    });
    let shape = found.unwrap_or_else(|| panic!("{name} is missing"));
    let line = |field: &everywire_model::shape::Field| {
        let mark = Mark::of(&field.shape).map(|mark| mark.to_string()).filter(|mark| !mark.is_empty());
        let mark = mark.map_or(String::new(), |mark| format!(" {mark}"));
        let mark =
            namespace(&field.shape).map_or_else(|| mark.clone(), |space| format!("{mark} in {space:?}"));
        let shape = unmarked(&field.shape);
        let noun = match shape {
            Shape::Optional(target) => format!("optional {}", target.noun()),
            Shape::Sequence(list) => format!("list of {}", list.element.noun()),
            other => other.noun().into_owned(),
        };
        format!("{}: {noun}{mark}", field.name)
    };
    shape.fields.iter().map(line).collect()
}

pub(crate) fn unread(contract: &Contract) -> Vec<String> {
    let notes =
        contract.interfaces().flat_map(|interface| interface.notes.iter().cloned().collect::<Vec<_>>());
    notes.filter(|(what, _)| what == "wcf:unread").map(|(_, what)| what.into_owned()).collect()
}

#[test]
fn asmx_is_read() {
    let contract = everywire_idl::read(data("mono/mill.asmx.wsdl")).unwrap_or_else(|e| panic!("{e}"));
    let sack = [
        "Filled: xs::dateTime @{http://everywire.test/mill}Filled!",
        "Grain: mill::Grain @Grain=Wheat",
        "Id: i32 @Id!",
        "lang: text @{http://www.w3.org/XML/1998/namespace}lang",
        "Mark: text @Mark",
        "Rank: optional i16 @Rank",
        "Seal: list of u8 @Seal",
        "Sieves: mill::Sieve @Sieves!",
        "Sizes: list of i32 @Sizes!",
        "Count: optional i32 ?",
        "From: optional mill::AnyParty ?",
        "Items: list of mill::SackItem *|",
        "Label: list of mill::Label *",
        "Lines: mill::ArrayOfLabel",
        "Note: text",
        "Number: list of i32 *",
        "Card: optional text ?1",
        "Cash: optional xs::decimal ?1",
        "Weeks: i32 ?=7",
        "Weight: xs::decimal",
    ];
    assert_eq!(fields(&contract, "mill::Sack"), sack);
    assert_eq!(fields(&contract, "mill::Label"), ["Count: u32 @Count!", "Value: text #"]);
    assert_eq!(
        fields(&contract, "mill::Firm"),
        ["Key: text @Key", "Name: text", "Register: i64 @Register!", "Seat: text"]
    );
    // What is for forms of HTTP is no interface of messages; the action is the binding's.
    let [service] = &contract.interfaces().collect::<Vec<_>>()[..] else { panic!() };
    let add = service.operations.iter().find(|operation| operation.name == "Add").unwrap();
    assert_eq!(note(&add.notes, "wcf:action"), Some("http://everywire.test/mill/Add"));
    let sum = service.operations.iter().find(|operation| operation.name == "Sum").unwrap();
    assert_eq!(Mark::of(&sum.arguments.fields()[0].shape), Some(Mark::Items));
    assert!(unread(&contract).iter().all(|what| what.contains("AbstractTypes")), "{:?}", unread(&contract));
}

/// What a service says of itself without being told its types has them all, and who extends whom.
#[test]
fn types_that_only_interfaces_name_extend_one_another() {
    let contract = everywire_idl::read(data("mono/mill.asmx.wsdl")).unwrap_or_else(|e| panic!("{e}"));
    let interfaces: Vec<_> = contract.interfaces().map(|interface| &**interface).collect();
    let told = describe(&interfaces, &[], &|_| Vec::new());
    assert!(told.left_out.is_empty(), "{:?}", told.left_out);
    let again = parse(&told.whole(), "told.wsdl").unwrap_or_else(|e| panic!("{e}"));
    for name in ["mill::Sack", "mill::Firm"] {
        assert_eq!(fields(&again, name), fields(&contract, name), "{}", told.whole());
    }
}

#[test]
fn attributes_are_read_wherever_they_are_declared() {
    let contract = read(
        r#"<s:attribute name="far" type="s:int" default="3"/>
        <s:attributeGroup name="Outer"><s:attributeGroup ref="t:Inner"/><s:attribute name="o" type="s:token"/></s:attributeGroup>
        <s:attributeGroup name="Inner"><s:attribute name="i" type="s:boolean"/></s:attributeGroup>
        <s:group name="Parts"><s:sequence><s:element name="part" type="s:string"/></s:sequence></s:group>
        <s:complexType name="A">
          <s:sequence><s:group ref="t:Parts"/><s:element name="a" type="s:int"/></s:sequence>
          <s:attribute name="a" type="s:int"/>
          <s:attribute name="gone" type="s:int" use="prohibited"/>
          <s:attribute name="any"/>
          <s:attribute name="fixed" type="s:string" fixed="a=b~c"/>
          <s:attribute name="list"><s:simpleType><s:list itemType="t:Kind"/></s:simpleType></s:attribute>
          <s:attribute name="kind" type="t:Kind"/>
          <s:attribute ref="t:far"/><s:attributeGroup ref="t:Outer"/>
          <s:attribute name="own"><s:simpleType><s:restriction base="s:string"><s:enumeration value="x"/></s:restriction></s:simpleType></s:attribute>
        </s:complexType>
        <s:complexType name="B"><s:simpleContent><s:extension base="t:C"><s:attribute name="b" type="s:int" use="required"/></s:extension></s:simpleContent></s:complexType>
        <s:complexType name="C"><s:simpleContent><s:extension base="t:Kind"><s:attribute name="c" type="s:int"/></s:extension></s:simpleContent></s:complexType>
        <s:simpleType name="Kind"><s:restriction base="s:string"><s:enumeration value="one"/><s:enumeration value="two"/></s:restriction></s:simpleType>"#,
    );
    let a = [
        "aAttribute: optional i32 @a",
        "any: text @any",
        "fixed: text @fixed~a=b~c",
        "list: list of t::Kind @list",
        "kind: optional t::Kind @kind",
        "far: i32 @{urn:t}far=3",
        "i: optional boolean @i",
        "o: xs::token @o",
        "own: optional t::Aown @own",
        "part: text",
        "a: i32",
    ];
    let got = fields(&contract, "t::A");
    assert_eq!(got, a, "an element of an attribute's name is named");
    assert_eq!(fields(&contract, "t::B"), ["c: optional i32 @c", "Value: t::Kind #", "b: i32 @b!"]);
    let any = contract.definitions.iter().any(|definition| match definition {
        Definition::Type(Shape::Union(union)) => union.name == "t::AnyC" && union.arms.len() == 2,
        _ => false,
    });
    assert!(any, "types of text are extended too");
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(fields(&again, "t::A"), a, "{printed}");
    assert_eq!(print(&again).unwrap(), printed);
    assert!(unread(&contract).is_empty(), "{:?}", unread(&contract));
}

#[test]
fn what_is_left_out_is_named() {
    let contract = read(
        r#"<s:complexType name="A" mixed="true"><s:sequence><s:any/><s:group ref="t:None"/></s:sequence>
          <s:attribute ref="t:none"/><s:attributeGroup ref="t:None"/><s:anyAttribute/></s:complexType>
        <s:complexType name="B"><s:sequence maxOccurs="unbounded"><s:element name="x" type="s:int"/></s:sequence></s:complexType>"#,
    );
    let said = unread(&contract).join("\n");
    for wanted in [
        "text between its elements",
        "any is left out",
        "the group {urn:t}None",
        "the attribute {urn:t}none",
        "the attributes {urn:t}None",
        "any attribute",
        "a sequence that is repeated",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}

/// Members are known by their local names: of two that differ by their namespace alone the second has none.
#[test]
fn a_member_that_is_called_as_another_one_is_named() {
    let contract = read(
        r#"<s:element name="x" type="s:int"/>
        <s:complexType name="A"><s:sequence><s:element name="x" form="unqualified" type="s:int"/><s:element ref="t:x"/></s:sequence></s:complexType>"#,
    );
    let wanted = "{urn:t}A: a second member {urn:t}x is left out; a message that has both is refused";
    assert_eq!(unread(&contract), [wanted]);
}

#[test]
fn circles_and_floods_are_refused() {
    let message = |schema: &str| parse(&described(schema), "t.wsdl").expect_err("it is wrong").to_string();
    let circle = r#"<s:attributeGroup name="G"><s:attributeGroup ref="t:G"/></s:attributeGroup>
        <s:complexType name="A"><s:attributeGroup ref="t:G"/></s:complexType>"#;
    assert!(message(circle).contains("groups of attributes are inside one another"));
    let circle = r#"<s:group name="G"><s:sequence><s:group ref="t:G"/></s:sequence></s:group>
        <s:complexType name="A"><s:group ref="t:G"/></s:complexType>"#;
    assert!(message(circle).contains("inside one another"));
    // Groups that name groups twice: 2^30 of them, if somebody counted them all.
    let group = |at: usize| {
        let next = at + 1;
        format!(
            r#"<s:attributeGroup name="G{at}"><s:attributeGroup ref="t:G{next}"/><s:attributeGroup ref="t:G{next}"/></s:attributeGroup>"#
        )
    };
    let groups: String = (0..30).map(group).collect();
    let flood = format!(
        r#"{groups}<s:attributeGroup name="G30"/>
        <s:complexType name="A"><s:attributeGroup ref="t:G0"/></s:complexType>"#
    );
    assert!(message(&flood).contains("members"));
    let flood = flood.replace("attributeGroup", "group");
    assert!(message(&flood).contains("members"));
    let odd = r#"<s:complexType name="B"><s:sequence/></s:complexType>
        <s:complexType name="A"><s:attribute name="a" type="t:B"/></s:complexType>"#;
    assert!(message(odd).contains("of a type with members"));
    let odd = r#"<s:complexType name="A"><s:attribute name="a b" type="s:int"/></s:complexType>"#;
    assert!(message(odd).contains("is no name of XML"));
}

#[test]
fn marks_are_written_as_they_are_read() {
    let attribute = |text| match Mark::parse(text) {
        Some(Mark::Attribute(attribute)) => attribute,
        other => panic!("{text}: {other:?}"),
    };
    let all = Attribute { namespace: "urn:x", name: "a", required: true, default: Some("=~!"), fixed: true };
    assert_eq!(attribute("@{urn:x}a!~=~!"), all);
    assert_eq!(attribute("@a="), Attribute { name: "a", default: Some(""), ..Attribute::default() });
    for text in ["@{urn:x}a!~=~!", "@a=", "@a", "#", "*", "*|", "?", "?7", "?=x=y"] {
        assert_eq!(Mark::parse(text).unwrap().to_string(), text);
    }
    for text in ["", "@{urn:x", "##", "**", "?x", "{urn:x}a", "a", "é"] {
        assert_eq!(Mark::parse(text), None, "{text}");
    }
}

/// No element has two attributes of one name, however often they are declared.
#[test]
fn attributes_that_are_declared_again_are_one() {
    let contract = read(
        r#"<s:complexType name="C"><s:simpleContent><s:extension base="s:string">
          <s:attribute name="b" type="s:int"/><s:attribute name="c" type="s:int"/></s:extension></s:simpleContent></s:complexType>
        <s:complexType name="D"><s:simpleContent><s:restriction base="t:C">
          <s:attribute name="c" type="s:int" use="required"/><s:attribute name="d" type="s:int"/></s:restriction></s:simpleContent></s:complexType>
        <s:complexType name="E"><s:simpleContent><s:extension base="t:C">
          <s:attribute name="c" type="s:int" use="required"/></s:extension></s:simpleContent></s:complexType>
        <s:complexType name="H"><s:simpleContent><s:restriction base="t:C">
          <s:attribute name="b" use="prohibited"/><s:attribute ref="t:gone" use="prohibited"/></s:restriction></s:simpleContent></s:complexType>
        <s:complexType name="I"><s:simpleContent><s:extension base="t:C">
          <s:attribute name="b" use="prohibited"/></s:extension></s:simpleContent></s:complexType>
        <s:attributeGroup name="G"><s:attribute name="g" type="s:int"/></s:attributeGroup>
        <s:complexType name="F"><s:attribute name="g" type="s:int" use="required"/><s:attributeGroup ref="t:G"/>
          <s:attribute name="g" type="s:int" form="qualified"/></s:complexType>"#,
    );
    assert_eq!(
        fields(&contract, "t::D"),
        ["b: optional i32 @b", "c: i32 @c!", "Value: text #", "d: optional i32 @d"]
    );
    assert_eq!(fields(&contract, "t::E"), ["b: optional i32 @b", "c: optional i32 @c", "Value: text #"]);
    // Only a restriction takes something away.
    assert_eq!(fields(&contract, "t::H"), ["c: optional i32 @c", "Value: text #"]);
    assert_eq!(fields(&contract, "t::I"), ["b: optional i32 @b", "c: optional i32 @c", "Value: text #"]);
    assert_eq!(fields(&contract, "t::F"), ["g: i32 @g!", "gAttribute: optional i32 @{urn:t}g"]);
    let said = unread(&contract);
    assert_eq!(said.iter().filter(|what| what.contains("a second attribute")).count(), 2, "{said:?}");
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    for name in ["t::D", "t::E", "t::F", "t::H", "t::I"] {
        let sorted = |contract| {
            let mut fields = fields(contract, name);
            fields.sort();
            fields
        };
        assert_eq!(sorted(&again), sorted(&contract), "{printed}");
    }
}

/// What stands in a group is walked at each place that names the group: all of it counts, even what is left out.
#[test]
fn what_is_left_out_of_groups_counts() {
    let message = |schema: &str| parse(&described(schema), "t.wsdl").expect_err("it is too much").to_string();
    let flood = |inside: &str, wrap: [&str; 2]| {
        format!(
            r#"<s:group name="G"><s:sequence>{}{}{}</s:sequence></s:group>
            <s:complexType name="A"><s:sequence>{}</s:sequence></s:complexType>"#,
            wrap[0],
            inside.repeat(400),
            wrap[1],
            r#"<s:group ref="t:G"/>"#.repeat(300)
        )
    };
    for inside in ["<s:any/>", "<s:sequence/>", "<s:annotation/>", "<s:odd/>", r#"<odd xmlns="urn:odd"/>"#] {
        assert!(message(&flood(inside, ["", ""])).contains("more than 100000 members"), "{inside}");
        let choice = [r#"<s:choice maxOccurs="unbounded">"#, "</s:choice>"];
        assert!(message(&flood(inside, choice)).contains("more than 100000 members"), "{inside}");
    }
    for inside in ["<s:anyAttribute/>", "<s:annotation/>", "<s:odd/>", r#"<odd xmlns="urn:odd"/>"#] {
        let flood = format!(
            r#"<s:attributeGroup name="G">{}</s:attributeGroup><s:complexType name="A">{}</s:complexType>"#,
            inside.repeat(400),
            r#"<s:attributeGroup ref="t:G"/>"#.repeat(300)
        );
        assert!(message(&flood).contains("more than 100000 members"), "{inside}");
    }
}

/// What is looked through wherever it is named counts by its size.
#[test]
fn what_is_named_again_and_again_counts() {
    let message = |schema: &str| parse(&described(schema), "t.wsdl").expect_err("it is too much").to_string();
    let inside = "<s:annotation/>".repeat(16_000);
    let flood = [
        format!(
            r#"<s:element name="E">{inside}</s:element><s:complexType name="A"><s:sequence>{}</s:sequence></s:complexType>"#,
            r#"<s:element ref="t:E"/>"#.repeat(101)
        ),
        format!(
            r#"<s:attribute name="E">{inside}</s:attribute><s:complexType name="A">{}</s:complexType>"#,
            r#"<s:attribute ref="t:E"/>"#.repeat(101)
        ),
        format!(
            r#"<s:simpleType name="E">{inside}<s:restriction base="s:string"/></s:simpleType><s:complexType name="A">{}</s:complexType>"#,
            r#"<s:attribute name="a" type="t:E"/>"#.repeat(101)
        ),
    ];
    for flood in flood {
        assert!(
            message(&flood).contains("more than 100000 members"),
            "{}",
            flood.get(..40).unwrap_or_default()
        );
    }
}

#[test]
fn namespaces_do_not_break_marks() {
    let odd = r#"<s:complexType name="A"><s:attribute ref="o:a" xmlns:o="urn:o}b!"/></s:complexType>"#;
    let schema = r#"</s:schema><s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o}b!">
        <s:attribute name="a" type="s:int"/></s:schema><s:schema xmlns:s="http://www.w3.org/2001/XMLSchema">"#;
    let mistakes =
        parse(&described(&format!("{odd}{schema}")), "t.wsdl").expect_err("it is wrong").to_string();
    assert!(mistakes.contains("is no namespace of an attribute"), "{mistakes}");
}

/// Only forms of HTTP are no messages; a binding that nobody knows may be of messages.
#[test]
fn port_types_of_odd_bindings_are_read() {
    let bound = |inside: &str| {
        let text = format!(
            r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" xmlns:t="urn:t">
            <portType name="T"/><binding name="B" type="t:T">{inside}</binding></definitions>"#
        );
        parse(&text, "t.wsdl").unwrap_or_else(|e| panic!("{e}")).interfaces().count()
    };
    let form = r#"<h:binding xmlns:h="http://schemas.xmlsoap.org/wsdl/http/" verb="GET"/>"#;
    assert_eq!(bound(""), 1);
    assert_eq!(bound(r#"<p:policy xmlns:p="urn:p"/>"#), 1);
    assert_eq!(bound(form), 0);
    assert_eq!(bound(&format!(r#"{form}</binding><binding name="C" type="t:T">"#)), 1);
}

#[test]
fn headers_are_counted() {
    let bound = |headers: usize| {
        let headers: String =
            (0..headers).map(|n| format!(r#"<h:header message="t:M" part="p{n}"/>"#)).collect();
        let text = format!(
            r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" xmlns:t="urn:t">
            <message name="M"/><portType name="T"><operation name="O"><input message="t:M"/></operation></portType>
            <binding name="B" type="t:T"><h:binding xmlns:h="http://schemas.xmlsoap.org/wsdl/soap/"/>
            <operation name="O"><input xmlns:h="http://schemas.xmlsoap.org/wsdl/soap/">{headers}</input></operation></binding></definitions>"#
        );
        parse(&text, "t.wsdl").map_err(|mistakes| mistakes.to_string())
    };
    assert!(bound(256).is_ok());
    assert!(bound(257).is_err_and(|mistakes| mistakes.contains("more than 256 headers")));
}

#[test]
fn choices_are_told_apart() {
    let contract = read(
        r#"<s:group name="Pair"><s:sequence><s:element name="p" type="s:string"/><s:element name="q" type="s:int"/></s:sequence></s:group>
        <s:group name="One"><s:sequence><s:annotation/><s:element name="o" type="s:int"/></s:sequence></s:group>
        <s:complexType name="A"><s:choice>
          <s:element name="a" type="s:int"/>
          <s:sequence><s:element name="b" type="s:int"/><s:choice><s:element name="c" type="s:int"/><s:element name="d" type="s:int"/></s:choice></s:sequence>
          <s:group ref="t:Pair"/><s:group ref="t:One"/>
          <s:choice><s:element name="e" type="s:int"/><s:element name="f" type="s:int"/></s:choice>
        </s:choice></s:complexType>
        <s:complexType name="B"><s:complexContent><s:extension base="t:A"><s:choice>
          <s:element name="x" type="s:int"/><s:element name="y" type="s:int"/></s:choice></s:extension></s:complexContent></s:complexType>"#,
    );
    let a = [
        "a: optional i32 ?1",
        "b: optional i32 ?",
        "c: optional i32 ?2",
        "d: optional i32 ?2",
        "p: optional text ?",
        "q: optional i32 ?",
        "o: optional i32 ?1",
        "e: optional i32 ?1",
        "f: optional i32 ?1",
    ];
    assert_eq!(fields(&contract, "t::A"), a);
    let b = fields(&contract, "t::B");
    assert_eq!(b[a.len()..], ["x: optional i32 ?3", "y: optional i32 ?3"]);
    // An alternative to nothing is none, but it is left out; its text is not an empty one.
    let alone = read(
        r#"<s:complexType name="A"><s:sequence>
          <s:choice><s:element name="a" type="s:string"/></s:choice>
          <s:choice><s:sequence><s:element name="b" type="s:string"/><s:element name="c" type="s:base64Binary"/></s:sequence>
            <s:element name="d" type="s:int"/><s:element name="e" type="s:string"/></s:choice>
          <s:element name="f" type="s:string" minOccurs="0"/></s:sequence></s:complexType>"#,
    );
    let members = [
        "a: optional text ?",
        "b: optional text ?",
        "c: optional sequence ?",
        "d: optional i32 ?1",
        "e: optional text ?1",
    ];
    let members = [&members[..], &["f: text"]].concat();
    assert_eq!(fields(&alone, "t::A"), members);
    let printed = print(&alone).unwrap();
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(fields(&again, "t::A"), members, "{printed}");
}

/// A list's items and an interface may be called the same.
#[test]
fn names_of_choices_are_theirs_alone() {
    let text = described(
        r#"<s:complexType name="A"><s:choice maxOccurs="unbounded"><s:element name="x" type="s:int"/></s:choice></s:complexType>"#,
    );
    let contract =
        parse(&text.replace(r#"name="T""#, r#"name="AItem""#), "t.wsdl").unwrap_or_else(|e| panic!("{e}"));
    let union = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Union(union)) => Some(union.name.clone()),
        _ => None,
    });
    let interface = contract.interfaces().next().map(|interface| interface.name.clone());
    assert_eq!(union.as_deref(), Some("t::AItem"));
    assert_eq!(interface.as_deref(), Some("t::AItem_2"));
}

/// Elements inside of types are in the namespace of these only if the schema says so.
#[test]
fn elements_are_in_the_namespace_that_their_form_says() {
    let types = r#"<s:complexType name="A"><s:sequence>
          <s:element name="a" type="s:int"/><s:element name="b" type="s:string" form="FORM"/>
          <s:element name="c" type="s:int" minOccurs="0" form="FORM"/>
          <s:element name="d" type="t:B" maxOccurs="unbounded" form="FORM"/>
          <s:element name="e" type="s:int" default="5" minOccurs="0" form="FORM"/>
          <s:element name="f" type="s:int" nillable="true" form="FORM"/>
          <s:choice maxOccurs="unbounded"><s:element name="x" type="s:int" form="FORM"/><s:element name="y" type="s:string" form="FORM"/></s:choice>
        </s:sequence></s:complexType>
        <s:complexType name="B"><s:sequence><s:element name="q" type="s:int"/></s:sequence></s:complexType>
        <s:complexType name="ArrayOfInt"><s:sequence><s:element name="int" type="s:int" minOccurs="0" maxOccurs="unbounded"/></s:sequence></s:complexType>
        <s:complexType name="C"><s:sequence><s:element name="l" type="t:ArrayOfInt"/></s:sequence></s:complexType>"#;
    let members = |mark: &str| {
        [
            "b: text",
            "c: optional i32 ?",
            "d: list of t::B *",
            "e: i32 ?=5",
            "f: optional i32",
            "Items: list of t::AItem *|",
        ]
        .map(|member| format!("{member}{mark}"))
        .to_vec()
    };
    let stable = |contract: &Contract| {
        let printed = print(contract).unwrap();
        let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
        for name in ["t::A", "t::B", "t::C"] {
            assert_eq!(fields(&again, name), fields(contract, name), "{printed}");
        }
        printed
    };
    let contract = read(&types.replace("FORM", "unqualified"));
    assert_eq!(fields(&contract, "t::A"), [vec!["a: i32".to_owned()], members(" in \"\"")].concat());
    assert_eq!(fields(&contract, "t::B"), ["q: i32"]);
    stable(&contract);
    // Where the schema says nothing, none is.
    let text = described(&types.replace("FORM", "qualified"));
    let plain = text.replace(" elementFormDefault=\"qualified\"", "");
    assert_ne!(plain, text);
    let contract = parse(&plain, "t.wsdl").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(fields(&contract, "t::A"), [vec!["a: i32 in \"\"".to_owned()], members("")].concat());
    assert_eq!(fields(&contract, "t::B"), ["q: i32 in \"\""]);
    let printed = stable(&contract);
    assert!(printed.contains(r#"<xs:element form="unqualified" name="q""#), "{printed}");
    let lists = printed.matches("form=\"unqualified\"").count();
    assert_eq!(lists, 4, "a, q, l and int: {printed}");
    assert_eq!(fields(&parse(&text, "t.wsdl").unwrap(), "t::B"), ["q: i32"]);
}

/// An element that is defined for itself is in the namespace where it is.
#[test]
fn elements_of_other_namespaces_keep_these() {
    let text = described(
        r#"<s:import namespace="urn:o"/><s:complexType name="A"><s:sequence><s:element name="a" type="s:int" minOccurs="0"/>
          <s:element ref="o:b"/><s:element ref="o:c" maxOccurs="unbounded"/><s:element ref="o:d" minOccurs="0"/><s:element ref="t:e"/>
          <s:element name="f" type="s:string" minOccurs="0"/></s:sequence></s:complexType><s:element name="e" type="s:int"/>"#,
    );
    let other = r#"<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o">
        <s:element name="b" type="s:string"/><s:element name="c" type="s:int"/><s:element name="d" type="s:long"/></s:schema></types>"#;
    let text = text.replace("</types>", other).replace("<s:schema ", "<s:schema xmlns:o=\"urn:o\" ");
    let contract = parse(&text, "t.wsdl").unwrap_or_else(|e| panic!("{e}"));
    let members = [
        "a: optional i32 ?",
        "b: text in \"urn:o\"",
        "c: list of i32 * in \"urn:o\"",
        "d: optional i64 ? in \"urn:o\"",
        "e: i32",
        "f: text",
    ];
    assert_eq!(fields(&contract, "t::A"), members);
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(fields(&again, "t::A"), members, "{printed}");
}

/// Parameters are elements inside of a type as others are: those of many services that are not .NET's are in no namespace.
#[test]
fn parameters_are_in_the_namespace_that_the_schema_says() {
    let text = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" xmlns:t="urn:t"><types>
        <s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
        <s:element name="add"><s:complexType><s:sequence><s:element name="a" type="s:int"/><s:element name="b" type="s:int"/>
          <s:element name="c" type="s:int" form="qualified"/></s:sequence></s:complexType></s:element>
        <s:element name="addResponse"><s:complexType><s:sequence><s:element name="a" type="s:int"/><s:element name="b" type="s:string"/>
          <s:element name="c" type="s:int"/></s:sequence></s:complexType></s:element>
        </s:schema></types>
        <message name="I"><part name="parameters" element="t:add"/></message><message name="O"><part name="parameters" element="t:addResponse"/></message>
        <portType name="T"><operation name="add"><input message="t:I"/><output message="t:O"/></operation></portType></definitions>"#;
    let contract = parse(text, "t.wsdl").unwrap_or_else(|e| panic!("{e}"));
    let spaces = |contract: &Contract| {
        let interface = contract.interfaces().next().expect("one");
        let operation = &interface.operations[0];
        let told = |shape: &Shape| -> Vec<String> {
            let told = |field: &everywire_model::shape::Field| {
                format!("{} {:?}", field.name, namespace(&field.shape))
            };
            shape.fields().iter().map(told).collect()
        };
        (told(&operation.arguments), told(&operation.results))
    };
    let none = |name: &str| format!("{name} Some(\"\")");
    // What goes there and comes back in one namespace and of one type is one parameter.
    let wanted = (vec![none("a"), none("b"), "c None".to_owned()], vec![none("a"), none("b"), none("c")]);
    assert_eq!(spaces(&contract), wanted);
    let interface = contract.interfaces().next().expect("one");
    assert_eq!(interface.operations[0].parameters.len(), 5);
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(spaces(&again), wanted, "{printed}");
}
