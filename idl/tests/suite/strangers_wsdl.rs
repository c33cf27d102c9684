//! Descriptions as others write them: files in folders, schemas of many kinds, and what is missing.

use everywire_idl::wsdl::names::{self, QName};
use everywire_idl::wsdl::{self, parse, parse_file, print};
use everywire_model::contract::left_out;
use everywire_model::{Contract, Definition, Interface, Shape};
use std::path::PathBuf;

/// A folder of a test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("strangers").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(folder: &std::path::Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// A service with one operation, `weigh`, whose request holds what is given.
fn service(head: &str, members: &str) -> String {
    format!(
        "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' \
         xmlns:t='urn:mill' xmlns:k='urn:kinds' targetNamespace='urn:mill'><w:types>\
         <s:schema targetNamespace='urn:mill' elementFormDefault='qualified'>{head}\
         <s:element name='weigh'><s:complexType><s:sequence>{members}</s:sequence></s:complexType></s:element>\
         <s:element name='weighResponse'><s:complexType/></s:element></s:schema></w:types>\
         <w:message name='ask'><w:part name='p' element='t:weigh'/></w:message>\
         <w:message name='say'><w:part name='p' element='t:weighResponse'/></w:message>\
         <w:portType name='Mill'><w:operation name='weigh'><w:input message='t:ask'/><w:output message='t:say'/>\
         </w:operation></w:portType></w:definitions>"
    )
}

/// A schema of the namespace `urn:kinds` with a type `Sack`.
const KINDS: &str = "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:kinds'>\
    <s:complexType name='Sack'><s:sequence><s:element name='kilos' type='s:int'/></s:sequence></s:complexType></s:schema>";

fn wanted(location: &str) -> String {
    let import = format!("<s:import namespace='urn:kinds' schemaLocation='{location}'/>");
    service(&import, "<s:element name='sack' type='k:Sack'/>")
}

fn read(text: &str) -> Contract {
    parse(text, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn first(contract: &Contract) -> &Interface {
    contract.interfaces().next().unwrap()
}

fn fields(contract: &Contract, name: &str) -> Vec<String> {
    let found = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Struct(shape)) if shape.name == name => Some(shape.clone()),
        _ => None,
    });
    found.unwrap().fields.iter().map(|field| format!("{}: {}", field.name, field.shape.noun())).collect()
}

/// Imports lead to folders, from the document that says them, up and down; and to copies of what is published elsewhere.
#[test]
fn imports_lead_through_folders() {
    let folder = folder("folders");
    write(&folder, "common kinds/sack.xsd", KINDS);
    write(&folder, "ver1/schema/sack.xsd", KINDS);
    write(&folder, "farm.test/kinds/sack.xsd", KINDS);
    for (path, location) in [
        ("a.wsdl", "common kinds/sack.xsd"),
        ("b.wsdl", "./common%20kinds/sack.xsd"),
        ("c.wsdl", "common kinds\\sack.xsd"),
        ("services/mill/d.wsdl", "../../common kinds/sack.xsd"),
        ("ver1/mill/e.wsdl", "http://plant.test/standard/ver1/schema/sack.xsd"),
        ("f.wsdl", "http://farm.test/kinds/sack.xsd"),
        ("ver1/schema/f.wsdl", "flattened/sack.xsd"),
        ("project/main/resources/mill/g.wsdl", "ver1/schema/sack.xsd"),
        ("project/main/resources/mill/h.wsdl", "classpath:ver1/schema/sack.xsd"),
        ("project/main/resources/mill/i.wsdl", "classpath:/ver1/schema/sack.xsd"),
    ] {
        let contract = parse_file(write(&folder, path, &wanted(location)));
        assert!(contract.is_ok(), "{path}: {location}: {}", contract.unwrap_err());
    }
    // A description that imports one that imports schemas, in folders of their own, in a circle.
    let outer = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' targetNamespace='urn:mill'>\
        <w:import namespace='urn:mill' location='services/mill/d.wsdl'/>\
        <w:import namespace='urn:mill' location='outer.wsdl'/></w:definitions>";
    let contract = parse_file(write(&folder, "outer.wsdl", outer)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(first(&contract).operations.len(), 1);
}

/// A schema without a namespace is of the namespace of whoever includes it, through others without one, too.
#[test]
fn included_schemas_without_a_namespace_are_adopted() {
    let folder = folder("adopted");
    let plain =
        |body: &str| format!("<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'>{body}</s:schema>");
    write(
        &folder,
        "inner.xsd",
        &plain("<s:simpleType name='Kilos'><s:restriction base='s:int'/></s:simpleType>"),
    );
    let sack = "<s:include schemaLocation='inner.xsd'/><s:complexType name='Sack'><s:sequence>\
                <s:element name='kilos' type='Kilos'/></s:sequence></s:complexType>";
    write(&folder, "parts/inner.xsd", &plain(""));
    write(&folder, "sack.xsd", &plain(sack));
    let text = service("<s:include schemaLocation='sack.xsd'/>", "<s:element name='sack' type='t:Sack'/>");
    let contract = parse_file(write(&folder, "mill.wsdl", &text)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(fields(&contract, "mill::Sack"), ["kilos: mill::Kilos"]);
}

/// An element that holds a reference to itself has one type, which contains itself.
#[test]
fn elements_contain_themselves_by_reference() {
    let head = "<s:element name='Node'><s:complexType><s:sequence><s:element name='x' type='s:int'/>\
        <s:element ref='t:Node' minOccurs='0' maxOccurs='unbounded'/></s:sequence></s:complexType></s:element>";
    let contract = read(&service(head, "<s:element ref='t:Node'/>"));
    assert_eq!(fields(&contract, "mill::Node").len(), 2);
    print(&contract).unwrap_or_else(|e| panic!("{e}"));
}

/// A named type and a type without a name at the element of the same name are two.
#[test]
fn types_without_a_name_do_not_take_those_of_others() {
    let head = "<s:complexType name='Sack'><s:sequence><s:element name='a' type='s:int'/></s:sequence></s:complexType>\
        <s:element name='Sack'><s:complexType><s:sequence><s:element name='b' type='t:Sack'/></s:sequence></s:complexType></s:element>";
    let contract = read(&service(head, "<s:element ref='t:Sack'/>"));
    assert_eq!(fields(&contract, "mill::Sack"), ["a: i32"]);
    assert_eq!(fields(&contract, "mill::SackElement"), ["b: mill::Sack"]);
}

/// A data set is its XML, with its schema; beside other members it is left out, and the operation can be called.
#[test]
fn data_sets_are_xml() {
    let set = "<s:element name='set'><s:complexType><s:sequence><s:element ref='s:schema'/><s:any/></s:sequence></s:complexType>\
        </s:element><s:element ref='s:schema'/><s:element name='n' type='s:int'/>";
    let contract = read(&service("", set));
    let arguments = &first(&contract).operations[0].arguments;
    let names: Vec<&str> = arguments.fields().iter().map(|field| field.name.as_ref()).collect();
    assert_eq!(names, ["set", "n"]);
    assert!(
        matches!(&arguments.fields()[0].shape, Shape::Alias(alias) if alias.id == everywire_idl::wsdl::names::MARKUP)
    );
    let beside = "<s:complexType name='Sack'><s:sequence><s:element ref='s:schema'/><s:any/><s:element name='a' type='s:int'/>\
        </s:sequence></s:complexType>";
    let contract = read(&service(beside, "<s:element name='sack' type='t:Sack'/>"));
    let unread = first(&contract).notes.iter().filter(|(what, _)| what == "wcf:unread");
    assert!(unread.into_iter().any(|(_, value)| value.contains("a data set is left out")));
}

/// A restriction has the elements that it says again, and the attributes of its base that it does not prohibit.
#[test]
fn restrictions_keep_what_they_say() {
    let head = "<s:complexType name='Sack'><s:sequence><s:element name='a' type='s:int'/><s:element name='b' type='s:int' \
        minOccurs='0'/></s:sequence><s:attribute name='lot' type='s:string'/><s:attribute name='old' type='s:string'/></s:complexType>\
        <s:complexType name='Small'><s:complexContent><s:restriction base='t:Sack'><s:sequence><s:element name='a' type='s:int'/>\
        </s:sequence><s:attribute name='old' use='prohibited'/></s:restriction></s:complexContent></s:complexType>";
    let contract = read(&service(head, "<s:element name='sack' type='t:Small'/>"));
    let names: Vec<String> =
        fields(&contract, "mill::Small").iter().map(|f| f.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["lot", "a"]);
}

/// Axis describes Java's `Integer` so, which may be null.
#[test]
fn numbers_of_the_encoding_may_be_nil() {
    let part = |kind: &str| {
        let text = service("", "").replace(
            "<w:part name='p' element='t:weigh'/>",
            &format!("<w:part name='p' xmlns:e='http://schemas.xmlsoap.org/soap/encoding/' type='{kind}'/>"),
        );
        let contract = read(&text);
        matches!(first(&contract).operations[0].arguments.fields()[0].shape, Shape::Optional(_))
    };
    assert!(part("e:int") && part("e:boolean") && part("e:dateTime"));
    assert!(!part("s:int") && !part("e:string") && !part("e:base64"));
    let member = "<s:element name='n' xmlns:e='http://schemas.xmlsoap.org/soap/encoding/' type='e:double'/>";
    let contract = read(&service("", member));
    let shape = &first(&contract).operations[0].arguments.fields()[0].shape;
    assert!(matches!(shape, Shape::Optional(_)), "{shape:?}");
    assert!(print(&contract).unwrap().contains("nillable=\"true\""));
}

/// Lists of SOAP's encoding say what their items are in an attribute, or by an element.
#[test]
fn encoded_lists_are_lists() {
    let array = |name: &str, inner: &str| {
        format!(
            "<s:complexType name='{name}'><s:complexContent><s:restriction xmlns:e='http://schemas.xmlsoap.org/soap/encoding/' \
             base='e:Array'>{inner}</s:restriction></s:complexContent></s:complexType>"
        )
    };
    let told = |kind: &str| {
        format!(
            "<s:attribute ref='e:arrayType' xmlns:w='http://schemas.xmlsoap.org/wsdl/' w:arrayType='{kind}'/>"
        )
    };
    let head = array("Ints", &told("s:int[]"))
        + &array("Rows", &told("s:int[][]"))
        + &array(
            "Sacks",
            "<s:sequence><s:element name='sack' type='s:string' maxOccurs='unbounded'/></s:sequence>",
        )
        + &array("Ring", &told("t:Ring[]"))
        + &array("Anything", "");
    let members = "<s:element name='a' type='t:Ints'/><s:element name='b' type='t:Rows'/><s:element name='c' type='t:Sacks'/>\
        <s:element name='d' type='t:Anything'/>";
    // A list of lists of itself has no end.
    let mistakes = parse(&service(&head, members), "ring.wsdl").unwrap_err().to_string();
    assert!(mistakes.contains("cannot be read"), "{mistakes}");
    let head = head.replace("t:Ring[]", "s:int[]");
    let contract = read(&service(&head, members));
    let shapes: Vec<String> = first(&contract).operations[0]
        .arguments
        .fields()
        .iter()
        .map(|field| field.shape.resolved().element().unwrap().noun().into_owned())
        .collect();
    assert_eq!(shapes.first().map(String::as_str), Some("i32"));
    assert_eq!(shapes.len(), 4);
    let again = read(&print(&contract).unwrap_or_else(|e| panic!("{e}")));
    assert_eq!(first(&again).operations[0].arguments.fields().len(), 4);
}

/// An operation whose types are in no document is left out and named; if no operation is left, the description is refused.
#[test]
fn operations_without_their_types_are_left_out() {
    let whole = service("", "<s:element name='sack' type='k:Gone'/>");
    let mistakes = parse(&whole, "mill.wsdl").unwrap_err().to_string();
    assert!(mistakes.contains("the type `Gone` of the namespace `urn:kinds` is not defined"), "{mistakes}");
    let more = "<w:operation name='clean'><w:input message='t:say'/></w:operation>\
        <w:operation name='grind'><w:input message='t:missing'/></w:operation></w:portType>";
    let contract = read(&whole.replace("</w:portType>", more));
    let names: Vec<&str> =
        first(&contract).operations.iter().map(|operation| operation.name.as_ref()).collect();
    assert_eq!(names, ["clean"]);
    let lost: Vec<&str> = left_out(&first(&contract).notes).collect();
    assert_eq!(
        lost,
        [
            "weigh: the type `Gone` of the namespace `urn:kinds` is not defined",
            "grind: the message `missing` of the namespace `urn:mill` is not defined",
        ]
    );
}

/// What an element in messages and the element beside a type have in common is a name: the messages' counts.
#[test]
fn elements_may_be_called_as_their_types_are() {
    let text = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' \
        xmlns:t='urn:mill' targetNamespace='urn:mill'><w:types><s:schema targetNamespace='urn:mill'>\
        <s:element name='weigh' type='t:weigh'/><s:complexType name='weigh'><s:sequence><s:element name='a' type='s:int'/>\
        </s:sequence></s:complexType><s:element name='weighResponse' type='t:weighResponse'/><s:complexType name='weighResponse'>\
        <s:sequence><s:element name='return' type='s:string' minOccurs='0'/></s:sequence></s:complexType>\
        <s:element name='Torn' type='t:Torn'/><s:complexType name='Torn'><s:sequence/></s:complexType></s:schema></w:types>\
        <w:message name='ask'><w:part name='p' element='t:weigh'/></w:message>\
        <w:message name='say'><w:part name='p' element='t:weighResponse'/></w:message>\
        <w:message name='torn'><w:part name='p' element='t:Torn'/></w:message>\
        <w:portType name='Mill'><w:operation name='weigh'><w:input message='t:ask'/><w:output message='t:say'/>\
        <w:fault name='torn' message='t:torn'/></w:operation></w:portType></w:definitions>";
    let contract = read(text);
    let printed = print(&contract).unwrap_or_else(|e| panic!("{e}"));
    let again = read(&printed);
    assert_eq!(print(&again).unwrap(), printed);
    assert_eq!(first(&again).operations[0].raises.len(), 1);
}

/// A description is one by its first element, whatever the file's name ends in.
#[test]
fn descriptions_may_end_in_xml() {
    let folder = folder("ending");
    let text = format!("<?xml version='1.0'?>\n<!-- <node/> -->\n{}", service("", ""));
    let path = write(&folder, "mill.wsdl.xml", &text);
    let contract = everywire_idl::read(&path).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(first(&contract).operations.len(), 1);
    assert_eq!(everywire_idl::language_of(&path).unwrap().name, "wsdl");
    assert!(!wsdl::is_wsdl("<!DOCTYPE node><node><interface name='a.b'/></node>") && !wsdl::is_wsdl("<"));
}

/// Types that everybody knows without their schemas, and the drafts of XML Schema.
#[test]
fn well_known_types_are_known() {
    let members = "<s:element name='a' xmlns:x='http://www.w3.org/2005/05/xmlmime' type='x:base64Binary'/>\
        <s:element name='b' xmlns:x='http://schemas.xmlsoap.org/soap/encoding/' type='x:string'/>\
        <s:element xmlns:x='http://www.w3.org/2005/08/addressing' ref='x:EndpointReference'/>\
        <s:element name='d' xmlns:x='http://www.w3.org/1999/XMLSchema' type='x:int'/>\
        <s:element name='e' xmlns:x='http://www.w3.org/2000/10/XMLSchema' type='x:timeInstant'/>";
    let contract = read(&service("", members));
    let shapes: Vec<String> = first(&contract).operations[0]
        .arguments
        .fields()
        .iter()
        .map(|field| field.shape.resolved().noun().into_owned())
        .collect();
    assert_eq!(shapes.len(), 5);
    assert_eq!(shapes[3], "i32");
    print(&contract).unwrap_or_else(|e| panic!("{e}"));
}

/// As JAX-WS declares them: an element with a named type around parameters, and a fault whose element is called otherwise than
/// its type. `Style::Rpc` names the namespace of the element around parts, which have none; without parts the element is empty.
/// A binding that says no action has an empty one outside of the envelope (WS-I Basic Profile 1.1, R2745).
#[test]
fn descriptions_of_jax_ws_are_read() {
    let text = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:w="http://schemas.xmlsoap.org/wsdl/soap/"
      targetNamespace="urn:shop" xmlns:t="urn:shop" xmlns:y="urn:types" xmlns:x="http://www.w3.org/2001/XMLSchema"><types>
      <x:schema targetNamespace="urn:types"><x:complexType name="shortage"><x:sequence><x:element name="code" type="x:int"/></x:sequence>
        </x:complexType></x:schema>
      <x:schema targetNamespace="urn:shop"><x:import namespace="urn:types"/>
        <x:element name="add" type="t:add"/><x:element name="addResponse" type="t:addResponse"/>
        <x:complexType name="add"><x:sequence><x:element name="a" type="x:int"/><x:element name="b" type="x:int"/></x:sequence></x:complexType>
        <x:complexType name="addResponse"><x:sequence><x:element name="return" type="x:int"/></x:sequence></x:complexType>
        <x:element name="find" type="t:find"/><x:element name="found" type="t:found"/>
        <x:complexType name="find"><x:sequence><x:element name="id" type="x:int"/><x:element name="deep" type="x:boolean"/></x:sequence></x:complexType>
        <x:complexType name="found"><x:sequence><x:element name="text" type="x:string"/></x:sequence></x:complexType>
        <x:element name="Shortage" nillable="true" type="y:shortage"/></x:schema></types>
      <message name="A"><part name="parameters" element="t:add"/></message>
      <message name="AR"><part name="parameters" element="t:addResponse"/></message>
      <message name="F"><part name="parameters" element="t:find"/></message><message name="FR"><part name="result" element="t:found"/></message>
      <message name="S"><part name="fault" element="t:Shortage"/></message>
      <message name="P"/><message name="PR"/>
      <message name="C"><part name="who" type="x:string"/></message><message name="CR"><part name="return" type="x:string"/></message>
      <portType name="Shop">
        <operation name="add"><input message="t:A"/><output message="t:AR"/><fault name="S" message="t:S"/></operation>
        <operation name="find"><input message="t:F"/><output message="t:FR"/></operation>
        <operation name="ping"><input message="t:P"/><output message="t:PR"/></operation>
        <operation name="call"><input message="t:C" a:Action="urn:called" xmlns:a="http://www.w3.org/2007/05/addressing/metadata"/>
          <output message="t:CR"/></operation></portType>
      <binding name="B" type="t:Shop"><w:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
        <operation name="add"><w:operation soapAction=""/></operation>
        <operation name="find"><w:operation soapAction="urn:find"/></operation>
        <operation name="ping"><w:operation soapAction="" style="rpc"/><input><w:body use="literal" namespace="urn:asked"/></input></operation>
        <operation name="call"><w:operation style="rpc"/><input><w:body use="literal" namespace="urn:asked"/></input>
          <output><w:body use="literal" namespace="urn:told"/></output></operation></binding></definitions>"#;
    let check = |contract: &Contract, shown: &str| {
        let shop = contract.interfaces().next().expect("one");
        let of = |name: &str| shop.operations.iter().find(|operation| operation.name == name).expect("read");
        let names = |shape: &Shape| -> Vec<String> {
            shape.fields().iter().map(|field| field.name.to_string()).collect()
        };
        let add = of("add");
        assert_eq!(
            (names(&add.arguments), names(&add.results)),
            (vec!["a".into(), "b".into()], vec!["return".into()]),
            "{shown}"
        );
        assert_eq!(names::request_wrapper(Some(shop), add), Some(QName::new("urn:shop", "add")), "{shown}");
        assert_eq!(add.raises[0].id, "{urn:types}shortage", "{shown}");
        assert_eq!(names::detail(add, &add.raises[0]), QName::new("urn:shop", "Shortage"), "{shown}");
        // Beside a reply that no element of the usual name stands around, the request is a value, too.
        let find = of("find");
        assert_eq!(
            (names(&find.arguments), names(&find.results)),
            (vec!["find".into()], vec!["found".into()]),
            "{shown}"
        );
        assert_eq!(names::request_wrapper(Some(shop), find), None, "{shown}");
        let call = of("call");
        assert_eq!(
            names::request_wrapper(Some(shop), call),
            Some(QName::new("urn:asked", "call")),
            "{shown}"
        );
        let answered = names::response_wrapper(Some(shop), call);
        assert_eq!(answered, Some(QName::new("urn:told", "callResponse")), "{shown}");
        assert_eq!(names::members(Some(shop), call, false), "", "{shown}");
        let ping = names::request_wrapper(Some(shop), of("ping"));
        assert_eq!(ping, Some(QName::new("urn:asked", "ping")), "{shown}");
        for (name, action, soap) in [
            ("add", "urn:shop:Shop:addRequest", ""),
            ("find", "urn:find", "urn:find"),
            ("call", "urn:called", ""),
        ] {
            let told = (names::action(Some(shop), of(name)), names::soap_action(Some(shop), of(name)));
            assert_eq!(told, (action.to_owned(), soap.to_owned()), "{shown}");
        }
    };
    let contract = parse(text, "shop.wsdl").unwrap_or_else(|e| panic!("{e}"));
    check(&contract, "as it came");
    let printed = print(&contract).unwrap();
    check(&parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{printed}\n{e}")), &printed);
}

/// `Leaf` holds `Tree` while `Tree` is read, and only then `Tree` turns out to need what is nowhere.
#[test]
fn types_inside_one_that_cannot_be_read_are_left_out_with_it() {
    let text = service(
        "<s:complexType name='Tree'><s:sequence><s:element name='leaf' type='t:Leaf'/>\
         <s:element name='bark' type='t:Nowhere'/></s:sequence></s:complexType>\
         <s:complexType name='Leaf'><s:sequence><s:element name='tree' type='t:Tree' minOccurs='0'/></s:sequence></s:complexType>\
         <s:element name='prune'><s:complexType><s:sequence><s:element name='leaf' type='t:Leaf'/></s:sequence></s:complexType></s:element>",
        "<s:element name='n' type='s:int'/>",
    );
    let text = text.replace(
        "</w:portType>",
        "<w:operation name='prune'><w:input message='t:prune'/></w:operation></w:portType>\
         <w:message name='prune'><w:part name='parameters' element='t:prune'/></w:message>",
    );
    let contract = read(&text);
    let names: Vec<&str> =
        first(&contract).operations.iter().map(|operation| operation.name.as_ref()).collect();
    assert_eq!(names, ["weigh"]);
    assert!(left_out(&first(&contract).notes).any(|left| left.contains("prune")), "{contract:?}");
    // Every printer walks all types.
    for language in everywire_idl::languages() {
        (language.print)(&contract).unwrap();
    }
}

/// The element of the request is a header of the answer as well, and its type has a name.
#[test]
fn an_element_may_be_around_parameters_and_a_header() {
    let text = service(
        "<s:complexType name='Names'><s:sequence><s:element name='name' type='s:string' minOccurs='0' \
         maxOccurs='unbounded'/></s:sequence></s:complexType><s:element name='grind' type='t:Names'/>",
        "<s:element name='n' type='s:int'/>",
    );
    let text = text.replace(
        "</w:portType>",
        "<w:operation name='grind'><w:input message='t:grind'/><w:output message='t:grind'/></w:operation></w:portType>\
         <w:message name='grind'><w:part name='p' element='t:grind'/></w:message>\
         <w:binding name='B' type='t:Mill' xmlns:b='http://schemas.xmlsoap.org/wsdl/soap/'>\
         <b:binding transport='http://schemas.xmlsoap.org/soap/http'/><w:operation name='grind'><b:operation soapAction=''/>\
         <w:input><b:body use='literal'/></w:input><w:output><b:body use='literal' parts=''/>\
         <b:header message='t:grind' part='p' use='literal'/></w:output></w:operation></w:binding>",
    );
    let contract = read(&text);
    let printed = print(&contract).unwrap();
    let again = read(&printed);
    let parameters = |contract: &Contract| -> Vec<String> {
        let grind = &first(contract).operations[1];
        grind.parameters.iter().map(|one| format!("{:?} {}", one.direction, one.field.name)).collect()
    };
    assert_eq!(parameters(&again), parameters(&contract), "{printed}");
}

/// `Fault` is what the operation raises, and a member of its answer.
#[test]
fn what_is_raised_may_be_a_value_too() {
    let text = service(
        "<s:complexType name='Fault'><s:sequence><s:element name='n' type='s:int'/></s:sequence></s:complexType>\
         <s:element name='fault' type='t:Fault'/>",
        "<s:element name='last' type='t:Fault'/>",
    );
    let text = text.replace(
        "<w:output message='t:say'/>",
        "<w:output message='t:say'/><w:fault name='f' message='t:bad'/>",
    );
    let text = text.replace(
        "<w:portType",
        "<w:message name='bad'><w:part name='d' element='t:fault'/></w:message><w:portType",
    );
    let contract = read(&text);
    for language in
        everywire_idl::languages().iter().filter(|language| ["omg", "midl"].contains(&language.name))
    {
        let printed = (language.print)(&contract).unwrap();
        let path = write(
            &folder("raised"),
            &format!("again.{}", if language.name == "midl" { "midl" } else { "idl" }),
            &printed,
        );
        let again = everywire_idl::read(&path).unwrap_or_else(|mistakes| panic!("{printed}\n{mistakes}"));
        let weigh = &first(&again).operations[0];
        assert_eq!(weigh.raises.len(), 1, "{printed}");
        assert_eq!(weigh.raises[0].id, "{urn:mill}Fault", "the wire finds the exception by its identity");
        assert!(
            matches!(weigh.parameters[0].field.shape.resolved(), Shape::Struct(_) | Shape::Optional(_)),
            "{printed}"
        );
    }
}

/// A list without a name of its own whose items hold the type that it stands in, and what extends that type: `Wheel` has the list
/// again while the list is read.
#[test]
fn lists_without_a_name_may_hold_what_they_stand_in() {
    let part = "<s:element name='parts' minOccurs='0'><s:complexType><s:sequence>\
        <s:element name='part' type='t:Part' minOccurs='0' maxOccurs='unbounded'/></s:sequence></s:complexType></s:element>";
    let head = format!(
        "<s:complexType name='Part'><s:sequence>{part}</s:sequence></s:complexType><s:complexType name='Wheel'><s:complexContent>\
         <s:extension base='t:Part'><s:sequence><s:element name='n' type='s:int'/></s:sequence></s:extension></s:complexContent>\
         </s:complexType>"
    );
    let contract = read(&service(&head, "<s:element name='part' type='t:Part'/>"));
    // D-Bus has no types that contain themselves.
    for language in
        everywire_idl::languages().iter().filter(|one| ["omg", "midl", "wsdl"].contains(&one.name))
    {
        (language.print)(&contract).unwrap();
    }
    assert_eq!(fields(&contract, "mill::Part").len(), 1);
    assert_eq!(fields(&contract, "mill::Wheel").len(), 2);
}

/// Tools that check a description (Apache CXF's) take no two ports of one name, and others (node-soap) lose one of them.
#[test]
fn ports_that_are_called_alike_are_told_apart() {
    let text = service("", "<s:element name='n' type='s:int'/>").replace(
        "</w:definitions>",
        "<w:binding name='B' type='t:Mill'><b:binding xmlns:b='http://schemas.xmlsoap.org/wsdl/soap/' \
         transport='http://schemas.xmlsoap.org/soap/http'/></w:binding>\
         <w:service name='S'><w:port name='P' binding='t:B'><b:address xmlns:b='http://schemas.xmlsoap.org/wsdl/soap/' \
         location='http://h/1'/></w:port></w:service><w:service name='S2'><w:port name='P' binding='t:B'>\
         <b:address xmlns:b='http://schemas.xmlsoap.org/wsdl/soap/' location='http://h/2'/></w:port></w:service>\
         </w:definitions>",
    );
    let printed = print(&parse(&text, "mill.wsdl").unwrap_or_else(|e| panic!("{e}"))).unwrap();
    for (name, location) in [("P", "http://h/1"), ("P1", "http://h/2")] {
        let port = format!("<wsdl:port name=\"{name}\" binding=\"tns:{name}\">");
        let (_, after) = printed.split_once(&port).unwrap_or_else(|| panic!("{name} in {printed}"));
        assert!(
            after.trim_start().starts_with(&format!("<soap:address location=\"{location}\"/>")),
            "{printed}"
        );
    }
}

/// A type that contains itself by one that extends it, where that one cannot be read: what was read of it before counts no more.
#[test]
fn types_around_one_that_is_left_out_are_whole() {
    let extended = |name: &str, members: &str| {
        format!(
            "<s:complexType name='{name}'><s:complexContent><s:extension base='t:Base'><s:sequence>{members}\
             </s:sequence></s:extension></s:complexContent></s:complexType>"
        )
    };
    let leaf = "<s:element name='leaf' type='t:Leaf' minOccurs='0' nillable='true'/>";
    let head = [
        "<s:complexType name='Base'><s:sequence><s:element name='next' type='t:Base' minOccurs='0' nillable='true'/>\
         </s:sequence></s:complexType>",
        &extended("Ext", &format!("{leaf}<s:element name='bark' type='t:Nowhere'/>")),
        &extended("Ext2", leaf),
        "<s:complexType name='Leaf'><s:sequence><s:element name='ext' type='t:Ext' minOccurs='0' nillable='true'/>\
         </s:sequence></s:complexType>",
    ];
    let contract = read(&service(
        &head.concat(),
        "<s:element name='base' type='t:Base' minOccurs='0' nillable='true'/>",
    ));
    for language in everywire_idl::languages() {
        // A language may be unable to say it, and says so.
        let printed = (language.print)(&contract).unwrap_or_else(|cannot| cannot.to_string());
        assert!(printed.contains("weigh") && !printed.contains("Ext2"), "{printed}");
    }
}

/// What follows the brace of a name with its namespace has none.
#[test]
fn flags_with_braces_are_text() {
    let flags = |value: &str| {
        let head = format!(
            "<s:simpleType name='Grain'><s:list><s:simpleType><s:restriction base='s:string'><s:enumeration value='{value}'/>\
             </s:restriction></s:simpleType></s:list></s:simpleType>"
        );
        let contract = read(&service(&head, "<s:element name='grain' type='t:Grain'/>"));
        let printed = print(&contract).unwrap_or_else(|cannot| panic!("{cannot}"));
        assert!(printed.contains("name=\"Grain\""), "{printed}");
        printed.contains(&format!("value=\"{value}\""))
    };
    assert!(flags("rye") && !flags("r}ye"));
}

/// Axis imports the schemas of its own document by their namespaces alone. Another description of those namespaces that lies
/// beside it is another service, whose elements are qualified here.
#[test]
fn schemas_of_the_same_document_are_not_looked_for_beside_it() {
    let folder = folder("beside");
    let of = |form: &str| {
        format!(
            "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' xmlns:k='urn:kinds' \
             xmlns:t='urn:mill' targetNamespace='urn:mill'><w:types><s:schema targetNamespace='urn:mill' {form}><s:import namespace='urn:kinds'/>\
             </s:schema><s:schema targetNamespace='urn:kinds' {form}><s:import namespace='urn:mill'/><s:complexType name='Sack'><s:sequence>\
             <s:element name='n' type='s:int'/></s:sequence></s:complexType></s:schema></w:types>\
             <w:message name='M'><w:part name='sack' type='k:Sack'/></w:message><w:portType name='Mill'><w:operation name='weigh'>\
             <w:input message='t:M'/></w:operation></w:portType></w:definitions>"
        )
    };
    let path = write(&folder, "encoded.wsdl", &of(""));
    write(&folder, "wrapped.wsdl", &of("elementFormDefault='qualified'"));
    let contract = everywire_idl::read(&path).unwrap_or_else(|e| panic!("{e}"));
    let sack = &first(&contract).operations[0].arguments.fields()[0].shape;
    let Shape::Struct(sack) = sack.resolved() else { panic!("{sack:?}") };
    assert_eq!(everywire_idl::wsdl::marks::namespace(&sack.fields[0].shape), Some(""));
}
