//! Types that hold one another in circles.

use everywire_codegen::{Options, rust};
use std::fmt::Write;

/// A description with this many types, each of which may have every other one: by value, in lists, or not at all.
fn circles(types: usize) -> String {
    let mut out = String::from(
        r#"<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:t="urn:t" targetNamespace="urn:t"><wsdl:types><xs:schema targetNamespace="urn:t" elementFormDefault="qualified">"#,
    );
    for own in 0..types {
        write!(out, r#"<xs:complexType name="T{own}"><xs:sequence>"#).unwrap();
        for other in (0..types).filter(|other| *other != own) {
            let most = if (own + other) % 2 == 0 { "1" } else { "unbounded" };
            write!(
                out,
                r#"<xs:element name="m{other}" type="t:T{other}" minOccurs="0" maxOccurs="{most}"/>"#
            )
            .unwrap();
        }
        out.push_str("</xs:sequence></xs:complexType>");
    }
    out.push_str(
        r#"<xs:element name="Put"><xs:complexType><xs:sequence><xs:element name="x" type="t:T0" minOccurs="0"/>
</xs:sequence></xs:complexType></xs:element><xs:element name="PutResponse"><xs:complexType><xs:sequence/></xs:complexType>
</xs:element></xs:schema></wsdl:types>
<wsdl:message name="PutIn"><wsdl:part name="parameters" element="t:Put"/></wsdl:message>
<wsdl:message name="PutOut"><wsdl:part name="parameters" element="t:PutResponse"/></wsdl:message>
<wsdl:portType name="Circles"><wsdl:operation name="Put"><wsdl:input message="t:PutIn"/>
<wsdl:output message="t:PutOut"/></wsdl:operation></wsdl:portType></wsdl:definitions>"#,
    );
    out
}

#[test]
fn sixty_types_that_all_have_one_another_are_generated() {
    let mut idl: String =
        (0..60).map(|own| format!("struct T{own}; typedef sequence<T{own}> L{own};\n")).collect();
    for own in 0..60 {
        let others = (0..60).filter(|other| *other != own);
        let fields: String = others.map(|other| format!("L{other} m{other}; ")).collect();
        writeln!(idl, "struct T{own} {{ {fields} }};").unwrap();
    }
    idl.push_str("interface Circles { void put(in T0 x); };");
    let contract = everywire_idl::omg::parse(&idl, "circles.idl").unwrap_or_else(|it| panic!("{it}"));
    let generated = rust::generate(&contract, &Options::default());
    assert!(generated.contains("pub struct T59"));
    assert_eq!(generated.matches("#[derive(Debug, Clone, PartialEq)]").count(), 60, "all can be compared");
}

#[test]
fn types_that_all_hold_one_another_are_kept_in_boxes() {
    let contract =
        everywire_idl::wsdl::parse(&circles(30), "circles.wsdl").unwrap_or_else(|it| panic!("{it}"));
    let generated = rust::generate(&contract, &Options::default());
    assert!(generated.contains("pub struct T29"));
    // Half of them are held by value, so in a box.
    assert!(generated.contains("Option<Box<T28>>") && generated.contains("Vec<T29>"));
    assert_eq!(generated.matches("#[derive(Debug, Clone, PartialEq)]").count(), 30, "all can be compared");
}

/// A struct that holds one twice which holds one twice, and so on, is looked at as often as it may have cells.
#[test]
fn structs_that_double_at_each_level_are_no_rows() {
    let mut text = String::from("struct S0 { long a; long b; };\n");
    for n in 1..30 {
        writeln!(text, "struct S{n} {{ S{} a; S{} b; }};", n - 1, n - 1).unwrap();
    }
    text.push_str("typedef sequence<S29> All;\ninterface I { void put(in All all); };");
    let contract = everywire_idl::omg::parse(&text, "doubles.idl").unwrap();
    let generated = rust::generate(&contract, &Options::default());
    assert!(generated.contains("pub struct S29"));
}
