//! Contracts of one language that are printed in another, and read there again: what only the first language allows must not
//! make the text of the second one wrong.

use everywire_idl::{dbus_xml, midl, omg, wsdl};
use everywire_model::{Contract, Definition, Shape};

/// Two enumerations with the same members, built-in types of schemas, and a class without members.
const MILL: &str = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' \
    xmlns:t='urn:mill' targetNamespace='urn:mill'><w:types><s:schema targetNamespace='urn:mill' elementFormDefault='qualified'>\
    <s:simpleType name='Grain'><s:restriction base='s:string'><s:enumeration value='Rye'/><s:enumeration value='Other'/>\
    </s:restriction></s:simpleType>\
    <s:simpleType name='Grade'><s:restriction base='s:string'><s:enumeration value='Fine'/><s:enumeration value='Other'/>\
    <s:enumeration value='Grade'/></s:restriction></s:simpleType>\
    <s:complexType name='Nothing'><s:sequence/></s:complexType>\
    <s:complexType name='Sack'><s:sequence><s:element name='grain' type='t:Grain'/><s:element name='grade' type='t:Grade'/>\
    <s:element name='filled' type='s:dateTime'/><s:element name='took' type='s:duration'/>\
    <s:element name='rest' type='t:Nothing' nillable='true'/></s:sequence></s:complexType>\
    <s:element name='weigh'><s:complexType><s:sequence><s:element name='sack' type='t:Sack'/></s:sequence></s:complexType></s:element>\
    <s:element name='done'><s:complexType><s:sequence><s:element name='doneResult' type='t:Grade'/></s:sequence></s:complexType></s:element>\
    </s:schema></w:types>\
    <w:message name='ask'><w:part name='p' element='t:weigh'/></w:message>\
    <w:message name='say'><w:part name='p' element='t:done'/></w:message>\
    <w:portType name='Weighing'><w:operation name='weigh'><w:input message='t:ask'/><w:output message='t:say'/></w:operation></w:portType>\
    </w:definitions>";

fn mill() -> Contract {
    wsdl::parse(MILL, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The members of an enumeration, by the end of its name.
fn members(contract: &Contract, name: &str) -> Vec<String> {
    let found = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Enum(body)) if body.name.ends_with(name) => Some(body),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no {name}")).members.iter().map(|(name, _)| name.to_string()).collect()
}

/// A text without empty lines, and without the comments that say what could not be said.
fn bare(text: &str) -> String {
    let text = text.replace("\n\n", "\n");
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text.trim_end().to_owned() + part.split_once("*/").map_or("", |(_, rest)| rest)
    })
}

/// Reads what was printed, and prints it again: the same text.
fn stable_omg(contract: &Contract) -> Contract {
    let text = omg::print(contract);
    let again = omg::parse(&text, "again.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    assert_eq!(bare(&omg::print(&again)), bare(&text));
    again
}

#[test]
fn enumerations_with_equal_members_and_types_of_schemas_are_printed_as_omg_idl() {
    let again = stable_omg(&mill());
    assert_eq!(members(&again, "Grain"), ["Rye", "Other"]);
    // The place in the list is what travels; a name that is taken gets that of its enumeration before it.
    assert_eq!(members(&again, "Grade"), ["Fine", "Grade_Other", "Grade_Grade"]);
}

#[test]
fn enumerations_with_equal_members_are_printed_as_midl() {
    let text = midl::print(&mill()).unwrap();
    let again = midl::parse(&text, "again.midl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    assert_eq!(members(&again, "Grain"), ["Rye", "Other"]);
    assert_eq!(members(&again, "Grade")[0], "Fine");
    assert!(members(&again, "Grade")[1].ends_with("Grade_Other"), "{text}");
}

#[test]
fn arms_without_a_value_are_no_arms_in_omg_idl() {
    let text = "import \"oaidl.idl\";
        typedef union Stock switch (long kind) { case 1: long sacks; case 2: ; default: ; } Stock;
        typedef union Full switch (long kind) { case 1: ; default: double kilos; } Full;
        typedef union Empty switch (long kind) { case 1: ; case 2: ; } Empty;
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B207)]
        interface IMill : IUnknown { HRESULT Look([out] Stock *stock, [in] Full *full, [in] Empty *empty); };";
    let contract = midl::parse(text, "mill.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let again = stable_omg(&contract);
    let arms = |name: &str| {
        again.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Union(body)) if body.name == name => {
                Some(body.arms.iter().map(|arm| arm.field.name.to_string()).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    assert_eq!(arms("Stock").unwrap(), ["sacks"]);
    // Here the label must stand, since the default arm would take its value.
    assert_eq!(arms("Full").unwrap(), ["case_1", "kilos"]);
}

/// IDL 4.2, 7.4.13.4.2.
#[test]
fn structs_without_members_are_read() {
    let text = "module M { struct Nothing { }; interface I { Nothing take(in Nothing it); }; };";
    let contract = omg::parse(text, "m.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    stable_omg(&contract);
}

fn operations(contract: &Contract, name: &str) -> Vec<String> {
    let found = contract.interfaces().find(|interface| interface.name == name);
    let found = found.unwrap_or_else(|| panic!("no {name}: {}", omg::print(contract)));
    found.operations.iter().map(|operation| operation.name.to_string()).collect()
}

/// The getter and the setter of a property have one name, and two parameters may differ in case alone.
#[test]
fn two_operations_of_one_name_are_two_in_omg_idl() {
    let text = "import \"oaidl.idl\";
        [local, object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B208)]
        interface IMill : IUnknown {
            [propget] HRESULT Speed([out, retval] long *speed);
            [propput] HRESULT Speed([in] long speed);
        };
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)]
        interface IMore : IMill { HRESULT Grind([in] long Sacks, [out] long *sacks); };";
    let contract = midl::parse(text, "mill.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(operations(&stable_omg(&contract), "IMore"), ["Speed", "Speed_2", "Grind"]);
}

/// A name of D-Bus is an interface, and what others begin with.
#[test]
fn an_interface_and_a_module_of_one_name_are_two_in_omg_idl() {
    let text = "<node><interface name='org.mill.Desk'><method name='Ring'/></interface>
        <interface name='org.mill.Desk.Lamp.Bulb'><method name='Light'/></interface>
        <interface name='org.mill.Desk.Lamp'><method name='Bulb'/></interface></node>";
    let contract = dbus_xml::parse(text, "desk.xml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let again = stable_omg(&contract);
    assert_eq!(operations(&again, "org::mill::Desk_2"), ["Ring"]);
    assert_eq!(operations(&again, "org::mill::Desk::Lamp::Bulb"), ["Light"]);
    assert_eq!(operations(&again, "org::mill::Desk::Lamp_2"), ["Bulb"]);
}

/// A port that is called like its service, a member like its type, a type like another but for case; a parameter like its type.
#[test]
fn names_of_the_scope_around_are_others_in_omg_idl() {
    let text = MILL
        .replace("portType name='Weighing'", "portType name='Mill'")
        .replace("name='filled' type='s:dateTime'", "name='Sack' type='s:int'")
        .replace(
            "<s:complexType name='Nothing'>",
            "<s:complexType name='sack'><s:sequence/></s:complexType><s:complexType name='Nothing'>",
        )
        .replace("name='sack' type='t:Sack'", "name='Sack' type='t:Sack' maxOccurs='unbounded'");
    let contract = wsdl::parse(&text, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let again = stable_omg(&contract);
    assert_eq!(operations(&again, "mill::Mill_2"), ["weigh"]);
}

/// A label that is no member of the enumeration: the numbers stand in the text.
#[test]
fn labels_may_be_no_members_of_the_enumeration() {
    let text = "import \"oaidl.idl\";
        typedef enum Kind { SACKS = 1, KILOS = 2 } Kind;
        typedef [switch_type(Kind)] union Stock { [case(SACKS)] long sacks; [case(KILOS, 7)] double kilos; } Stock;
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)]
        interface IMill : IUnknown { HRESULT Look([in] Kind kind, [in, switch_is(kind)] Stock *stock); };";
    let contract = midl::parse(text, "mill.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let text = omg::print(&contract);
    assert!(text.contains("case 2: case 7: double kilos;"), "{text}");
    omg::parse(&text, "again.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
}

/// A schema has one list for arrays and sequences of the same type.
#[test]
fn arrays_and_sequences_of_one_type_are_one_list_of_a_schema() {
    let text = "typedef sequence<long> Sacks; struct Row { long places[6]; Sacks sacks; }; interface Mill { Row row(in Sacks sacks); };";
    let contract = omg::parse(text, "mill.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let text = wsdl::print(&contract).unwrap_or_else(|why| panic!("{why}"));
    wsdl::parse(&text, "again.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
}
