//! Contracts of one language that are printed in another, and read there again: what only the first language allows must not
//! make the text of the second one wrong.

use everywire_idl::{dbus_xml, kidl, midl, omg, wsdl};
use everywire_model::shape::{Field, Name, Struct};
use everywire_model::{Contract, Definition, Hold, Shape};
use std::borrow::Cow;

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
    // The base is no part of the contract, and stands before its first use all the same.
    let text = midl::print(&contract).unwrap();
    let again = midl::parse(&text, "again.midl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    assert_eq!(operations(&again, "IMore").len(), 3);
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

/// C tells `_KIND` and `KIND` apart; in OMG IDL the `_` before a name only escapes it. Two interfaces of a class have operations of one
/// name, which no interface of OMG IDL inherits; one of them is listed twice.
#[test]
fn names_that_an_underscore_tells_apart_and_classes_are_printed_as_omg_idl() {
    let text = "import \"oaidl.idl\";
        enum _KIND { RYE, OATS }; typedef long KIND;
        struct __odd__ { enum _KIND kind; long _in; };
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B210)] interface IFirst : IUnknown {
            HRESULT Grind([in] KIND kind); [propget] HRESULT Name([out, retval] BSTR *name); }
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B211)] interface ISecond : IUnknown {
            HRESULT Take([in] struct __odd__ *odd, [in] enum _KIND kind);
            HRESULT Grind([in] long much); [propget] HRESULT Name([out, retval] BSTR *name); }
        [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B212)] library Mills {
            [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B213)] coclass Mill {
                [default] interface IFirst; interface ISecond; interface IFirst; } }";
    let contract = midl::parse(text, "mill.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let again = stable_omg(&contract);
    assert_eq!(members(&again, "KIND"), ["RYE", "OATS"]);
    // What the first interface has not stands in the class itself.
    let expected = ["Grind", "_get_Name", "Take", "ISecond_Grind", "ISecond_get_Name"];
    assert_eq!(operations(&again, "Mill"), expected);
    assert_eq!(operations(&again, "ISecond").len(), 3);
}

/// A type that comes in two lists: each is used where the other is not complete.
const TREE: &str = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' \
    xmlns:t='urn:tree' targetNamespace='urn:tree'><w:types><s:schema targetNamespace='urn:tree' elementFormDefault='qualified'>\
    <s:complexType name='Branch'><s:complexContent><s:extension base='t:Node'><s:sequence>\
    <s:element name='twigs' type='t:Node' maxOccurs='unbounded' minOccurs='0'/></s:sequence></s:extension></s:complexContent></s:complexType>\
    <s:complexType name='Forest'><s:sequence><s:element name='trees' type='t:Node' maxOccurs='unbounded' minOccurs='0'/>\
    <s:element name='owner' type='t:Owner'/></s:sequence></s:complexType>\
    <s:complexType name='Owner'><s:sequence><s:element name='woods' type='t:Woods'/></s:sequence></s:complexType>\
    <s:complexType name='Woods'><s:sequence><s:element name='Owner' type='t:Owner' maxOccurs='unbounded' minOccurs='0' nillable='true'/>\
    </s:sequence></s:complexType>\
    <s:complexType name='Node'><s:sequence><s:element name='name' type='s:string'/></s:sequence></s:complexType>\
    <s:element name='grow'><s:complexType><s:sequence><s:element name='where' type='t:Forest'/></s:sequence></s:complexType></s:element>\
    <s:element name='done'><s:complexType><s:sequence/></s:complexType></s:element>\
    </s:schema></w:types>\
    <w:message name='ask'><w:part name='p' element='t:grow'/></w:message>\
    <w:message name='say'><w:part name='p' element='t:done'/></w:message>\
    <w:portType name='Growing'><w:operation name='grow'><w:input message='t:ask'/><w:output message='t:say'/></w:operation></w:portType>\
    </w:definitions>";

#[test]
fn types_in_any_order_stand_behind_what_they_need() {
    let contract = wsdl::parse(TREE, "tree.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    stable_omg(&contract);
    let text = midl::print(&contract).unwrap();
    midl::parse(&text, "again.midl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
}

/// Announced inside an interface, and a list of interfaces that come later.
#[test]
fn types_inside_an_interface_are_announced_inside_it() {
    let text = "interface Mill { struct Sack; typedef sequence<Sack> Sacks; struct Sack { Sacks inner; }; void take(in Sacks all); };";
    let contract = omg::parse(text, "mill.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    stable_omg(&contract);
    let text = "import \"oaidl.idl\"; interface ISack;
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B214)] interface IMill : IUnknown {
            HRESULT Next([in] ULONG count, [out, size_is(count), length_is(*got)] ISack **sacks, [out] ULONG *got); }
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B215)] interface ISack : IUnknown { HRESULT Open(); }";
    let contract = midl::parse(text, "mill.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    stable_omg(&contract);
}

/// A name of D-Bus that is no name here stays what it is on the bus.
#[test]
fn renamed_interfaces_keep_their_names_on_the_bus() {
    let text = "<node><interface name='org.mill.Desk'><method name='Ring'/></interface>
        <interface name='org._2mill.Desk.Lamp'><method name='Light'/></interface>
        <interface name='org.mill.Desk.Lamp'><method name='Light'/></interface></node>";
    let contract = dbus_xml::parse(text, "desk.xml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let again = stable_omg(&contract);
    let names: Vec<String> =
        again.interfaces().map(|interface| dbus_xml::names::of_interface(interface).into_owned()).collect();
    assert_eq!(names, ["org.mill.Desk", "org._2mill.Desk.Lamp", "org.mill.Desk.Lamp"]);
}

/// A service with names of other scripts, which some languages have not.
fn foreign_names() -> Contract {
    let text = MILL
        .replace("name='weigh'", "name='\u{432}\u{435}\u{441}'")
        .replace("t:weigh", "t:\u{432}\u{435}\u{441}")
        .replace("name='filled'", "name='\u{434}\u{430}'")
        .replace("name='took'", "name='\u{43d}\u{435}'")
        .replace("Sack", "\u{41c}\u{435}\u{448}");
    wsdl::parse(&text, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn names_of_other_scripts_stay_different_in_omg_idl_and_midl() {
    stable_omg(&foreign_names());
    let text = midl::print(&foreign_names()).unwrap();
    midl::parse(&text, "again.midl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
}

/// Messages have the names of methods and functions: such a name is not changed, and the error says what is wrong with it.
#[test]
fn names_that_messages_have_are_refused_where_a_language_has_no_such_names() {
    let why = dbus_xml::print(&foreign_names()).unwrap_err().to_string();
    assert!(why.contains("\u{432}\u{435}\u{441}: a name on D-Bus has letters, digits and `_`"), "{why}");
    let text = "<node><interface name='org.mill.Desk'><method name='Ring'><arg name='a.b' type='i' direction='in'/>\
        <arg name='a-b' type='i' direction='in'/></method></interface></node>";
    let contract = dbus_xml::parse(text, "desk.xml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let text = kidl::print(&contract).unwrap();
    assert!(text.contains("<NAME>a_b</NAME>") && text.contains("<NAME>a_b_2</NAME>"), "{text}");
    kidl::parse(&text, "again.kidl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    let text = MILL.replace("name='weigh'", "name='weigh-in'").replace("t:weigh", "t:weigh-in");
    let text =
        text.replace("<s:element name='sack' type='t:Sack'/>", "<s:element name='sack' type='s:int'/>");
    let text = text.replace("<s:element name='doneResult' type='t:Grade'/>", "");
    let contract = wsdl::parse(&text, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let why = kidl::print(&contract).unwrap_err().to_string();
    assert!(why.contains("`weigh-in` is no name of a C++ declaration"), "{why}");
}

/// Interfaces that are only referred to, and dispinterfaces between others.
#[test]
fn the_text_of_midl_is_printed_again_as_it_is() {
    let text = "import \"oaidl.idl\"; interface IUnseen;
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B216)] interface IMill : IUnknown { HRESULT Take([in] IUnseen *unseen); }
        [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B217)] library Mills {
            [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B218)] dispinterface DMill { properties: methods: [id(1)] void Ring(); }
            [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B219)] interface IAfter : IUnknown { HRESULT Go(); } }";
    let print = |text: &str| {
        let contract = midl::parse(text, "mill.midl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        midl::print(&contract).unwrap()
    };
    let first = print(text);
    assert_eq!(print(&first), first);
}

/// Letters of other scripts become numbers, with which a name may be longer than readers take: it is cut, and stays apart from a name
/// that begins alike.
#[test]
fn long_names_in_other_scripts_are_cut_and_stay_apart() {
    let start = "\u{44f}".repeat(60);
    let body = |end: &str| {
        let name = Name::from(format!("{start}{end}"));
        let fields = [1, 2].map(|n| Field { name: Name::from(format!("{start}{n}")), shape: Shape::I32 });
        let body = Struct { name, id: Name::default(), fields: Cow::Owned(fields.to_vec()) };
        Definition::Type(Shape::Struct(Hold::new(body)))
    };
    let contract = Contract { definitions: vec![body("a"), body("b")] };
    let of_omg = stable_omg(&contract);
    let text = midl::print(&contract).unwrap();
    let of_midl = midl::parse(&text, "again.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    for again in [of_omg, of_midl] {
        let found: Vec<Vec<usize>> = again
            .definitions
            .iter()
            .filter_map(|definition| match definition {
                Definition::Type(Shape::Struct(body)) => Some(body),
                _ => None,
            })
            .map(|body| body.fields.iter().map(|field| field.name.len()).chain([body.name.len()]).collect())
            .collect();
        assert_eq!(found.len(), 2, "{again:?}");
        assert!(found.iter().flatten().all(|len| (230..256).contains(len)), "{found:?}");
    }
}

/// A field that gets a number must not be called like its struct then.
#[test]
fn a_name_with_a_number_is_not_that_of_the_scope() {
    let fields = ["a", "A"].map(|name| Field { name: Name::from(name.to_owned()), shape: Shape::I32 });
    let name = Name::from("a_2".to_owned());
    let body = Struct { name, id: Name::default(), fields: Cow::Owned(fields.to_vec()) };
    let again = stable_omg(&Contract { definitions: vec![Definition::Type(Shape::Struct(Hold::new(body)))] });
    let Some(Definition::Type(Shape::Struct(body))) = again.definitions.first() else { panic!("{again:?}") };
    let names: Vec<&str> = body.fields.iter().map(|field| field.name.as_ref()).collect();
    assert_eq!(names, ["a", "A_3"]);
}

#[test]
fn negative_octets_are_constants_of_a_type_with_a_sign() {
    let text = "import \"oaidl.idl\"; const small LEAST = -128; const small MOST = 127;";
    let contract = everywire_idl::midl::parse(text, "small.midl").unwrap();
    let printed = everywire_idl::omg::print(&contract);
    let again =
        everywire_idl::omg::parse(&printed, "small.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(printed.contains("short /* a signed octet */ LEAST = -128;"), "{printed}");
    assert_eq!(again.definitions.len(), 2);
}
