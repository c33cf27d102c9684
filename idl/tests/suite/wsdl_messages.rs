//! Messages of descriptions that others wrote by hand: which elements they are, and in which order.

use everywire_idl::wsdl::marks::{self, Mark};
use everywire_idl::wsdl::{names, parse, print};
use everywire_model::shape::{Hold, Struct};
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

/// A validating reader wants the elements of an answer in the order of the schema; DataContractSerializer loses those that
/// come late.
#[test]
fn answers_have_the_order_of_their_schema() {
    let elements = |names: &str| {
        let element = |name: &str| format!("<xs:element name=\"{name}\" type=\"xs:int\"/>");
        names.split_whitespace().map(element).collect::<String>()
    };
    let wrapper = |name: &str, members: &str| {
        format!(
            "<xs:element name=\"{name}\"><xs:complexType><xs:sequence>{}</xs:sequence></xs:complexType></xs:element>",
            elements(members)
        )
    };
    for (asked, answered, wanted) in [
        ("a b", "return b", "in a, out return, inout b"),
        ("a b", "AskResult x a y b z", "out x, inout a, out y, inout b, out z"),
        // No order of parameters gives both: what goes both ways follows the request.
        ("a b", "b x a", "out x, inout a, inout b"),
        ("a", "x y", "in a, out x, out y"),
    ] {
        let schema = wrapper("Ask", asked) + &wrapper("AskResponse", answered);
        let contract = read(&described(&schema, "s:Ask", "s:AskResponse"));
        let list: Vec<String> = (only(&contract).operations[0].parameters.iter())
            .map(|parameter| format!("{:?} {}", parameter.direction, parameter.field.name))
            .map(|text| {
                text.replacen("InOut", "inout", 1).replacen("In ", "in ", 1).replacen("Out ", "out ", 1)
            })
            .collect();
        assert_eq!(list.join(", "), wanted);
        printed(&contract);
    }
}

/// Makers of classes for Java give both elements one method, and refuse a description with two such.
#[test]
fn no_element_beside_a_type_differs_from_another_in_capitals_alone() {
    let schema = "<xs:complexType name=\"Order\"><xs:sequence><xs:element name=\"n\" type=\"xs:int\"/></xs:sequence></xs:complexType>\
        <xs:element name=\"order\" type=\"s:Order\"/><xs:element name=\"Out\" type=\"xs:int\"/>";
    let text = printed(&read(&described(schema, "s:order", "s:Out")));
    assert!(
        text.contains("<xs:element name=\"order\" ") && text.contains("<xs:complexType name=\"Order\">"),
        "{text}"
    );
    assert!(!text.contains("<xs:element name=\"Order\" "), "{text}");
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

/// An element is in the namespace of the schema that declares it (XML Schema 1.0, 3.3.2): one that is referred to says nothing
/// about those beside it.
#[test]
fn a_parameter_of_another_namespace_leaves_the_others_in_theirs() {
    let wrapper = |name: &str, members: &str| {
        format!(
            "<xs:element name=\"{name}\"><xs:complexType><xs:sequence>{members}</xs:sequence></xs:complexType></xs:element>"
        )
    };
    let (far, near) = ("<xs:element ref=\"u:Far\"/>", "<xs:element ref=\"u:Near\" minOccurs=\"0\"/>");
    let (b, c) = ("<xs:element name=\"B\" type=\"xs:string\"/>", "<xs:element name=\"C\" type=\"xs:int\"/>");
    let schema = wrapper("Ask", &[b, far, c].concat()) + &wrapper("AskResponse", &[b, far, near].concat());
    let contract = read(&described(&schema, "s:Ask", "s:AskResponse"));
    let spaces = |contract: &Contract| {
        let interface = only(contract);
        let operation = &interface.operations[0];
        [(false, &operation.arguments), (true, &operation.results)].map(|(reply, shape)| {
            let around = names::members(Some(interface), operation, reply);
            let placed = |field: &everywire_model::shape::Field| {
                format!("{{{}}}{}", marks::namespace(&field.shape).unwrap_or(&around), field.name)
            };
            shape.fields().iter().map(placed).collect::<Vec<_>>().join(" ")
        })
    };
    let wanted = ["{urn:s}B {urn:u}Far {urn:s}C", "{urn:s}B {urn:u}Far {urn:u}Near"];
    assert_eq!(spaces(&contract), wanted);
    let text = printed(&contract);
    assert_eq!(spaces(&read(&text)), wanted, "{text}");
    assert!(
        text.contains("name=\"B\"") && !text.contains(":B\"/>"),
        "only what is elsewhere is referred to: {text}"
    );
}

/// Details that are a text alone, as `FaultException<string>` has them, and those of rpc/encoded services, whose parts have
/// types and no elements.
#[test]
fn faults_without_members_and_of_parts_with_types_are_exceptions() {
    let schema = "<xs:element name=\"In\" type=\"xs:int\"/><xs:element name=\"Out\" type=\"xs:int\"/>\
        <xs:complexType name=\"Broke\"><xs:sequence><xs:element name=\"missing\" type=\"xs:int\"/></xs:sequence></xs:complexType>\
        <xs:simpleType name=\"Code\"><xs:restriction base=\"xs:string\"/></xs:simpleType><xs:element name=\"Code\" type=\"s:Code\"/>\
        <xs:element name=\"Why\" type=\"xs:string\"/>";
    let text = described(schema, "s:In", "s:Out")
        .replace(
            "<portType",
            "<message name=\"Why\"><part name=\"fault\" element=\"s:Why\"/></message><message name=\"Broke\"><part name=\"fault\" type=\"s:Broke\"/></message>\
             <message name=\"Code\"><part name=\"fault\" element=\"s:Code\"/></message><portType",
        )
        .replace(
            "</operation></portType>",
            "<fault name=\"a\" message=\"t:Why\"/><fault name=\"b\" message=\"t:Broke\"/><fault name=\"c\" message=\"t:Code\"/></operation></portType>",
        );
    let contract = read(&text);
    let operation = &only(&contract).operations[0];
    let raised: Vec<&str> = operation.raises.iter().map(|detail| detail.id.as_ref()).collect();
    // An element that is called as a type is: its exception has another name than that.
    assert_eq!(raised, ["{urn:s}Why", "{urn:s}Broke", "{urn:s}CodeFault"]);
    assert_eq!(names::detail(operation, &operation.raises[2]).to_string(), "{urn:s}Code");
    let why = &operation.raises[0].fields;
    assert_eq!((why.len(), Mark::of(&why[0].shape)), (1, Some(Mark::Text)));
    assert_eq!(names::detail(operation, &operation.raises[1]).to_string(), "{urn:t}fault");
    printed(&contract);
}

/// `FaultContract` of .NET's plain types (`typeof(int)`, `typeof(string)`, `typeof(Guid)`) and of an enumeration: their details
/// are elements that are there anyway, which the printed description names again.
#[test]
fn faults_of_plain_types_are_exceptions() {
    const ELEMENTS: [&str; 4] = ["z:int", "z:string", "z:guid", "s:Colour"];
    let schema = "<xs:element name=\"In\" type=\"xs:int\"/><xs:element name=\"Out\" type=\"xs:int\"/>\
        <xs:simpleType name=\"Colour\"><xs:restriction base=\"xs:string\"><xs:enumeration value=\"Red\"/>\
        <xs:enumeration value=\"Green\"/></xs:restriction></xs:simpleType>\
        <xs:element name=\"Colour\" nillable=\"true\" type=\"s:Colour\"/>";
    let (mut messages, mut faults) = (String::new(), String::new());
    for (number, element) in ELEMENTS.iter().enumerate() {
        messages.push_str(&format!(
            "<message name=\"F{number}\"><part xmlns:z=\"http://schemas.microsoft.com/2003/10/Serialization/\" name=\"detail\" \
             element=\"{element}\"/></message>"
        ));
        faults.push_str(&format!("<fault name=\"f{number}\" message=\"t:F{number}\"/>"));
    }
    let text = described(schema, "s:In", "s:Out")
        .replace("<portType", &format!("{messages}<portType"))
        .replace("</operation></portType>", &format!("{faults}</operation></portType>"));
    let contract = read(&text);
    let print = printed(&contract);
    for contract in [&contract, &read(&print)] {
        let operation = &only(contract).operations[0];
        let raised: Vec<String> = operation
            .raises
            .iter()
            .map(|detail| {
                let element = names::detail(operation, detail);
                format!(
                    "{} {} {}",
                    detail.name,
                    element.local,
                    marks::unmarked(&detail.fields[0].shape).noun()
                )
            })
            .collect();
        let wanted =
            ["ser::intFault int i32", "ser::stringFault string text", "ser::guidFault guid ser::guid"];
        assert_eq!(raised[..3], wanted);
        assert!(raised[3].ends_with("::ColourFault Colour s::Colour"), "{raised:?}");
    }
    assert!(print.contains("<xs:element name=\"int\" nillable=\"true\" type=\"xs:int\"/>"), "{print}");
    assert_eq!(printed(&read(&print)), print);
    assert!(!print.contains("<xs:complexType"), "{print}");
}

/// Axis calls the parts of all faults `fault`: one element for exceptions of several types, in one operation or in two.
#[test]
fn faults_of_one_name_and_several_types_are_printed() {
    let kind = |name: &str, inner: &str| {
        format!(
            "<xs:complexType name=\"{name}\"><xs:sequence><xs:element name=\"{inner}\" type=\"xs:int\"/></xs:sequence></xs:complexType>"
        )
    };
    let schema = format!(
        "<xs:element name=\"In\" type=\"xs:int\"/><xs:element name=\"Out\" type=\"xs:int\"/>{}{}{}",
        kind("Broke", "missing"),
        kind("Shut", "until"),
        kind("Odd", "code")
    );
    let messages = |part: &str| {
        let of = |name: &str| {
            format!("<message name=\"{name}\"><part name=\"{part}\" type=\"s:{name}\"/></message>")
        };
        ["Broke", "Shut", "Odd"].map(of).concat()
    };
    let second = "<operation name=\"Tell\"><input message=\"t:Asked\"/><output message=\"t:Answered\"/><fault name=\"c\" message=\"t:Odd\"/></operation>";
    let text = |part: &str| {
        described(&schema, "s:In", "s:Out")
            .replace("<portType", &format!("{}<portType", messages(part)))
            .replace(
                "</operation></portType>",
                &format!("<fault name=\"a\" message=\"t:Broke\"/><fault name=\"b\" message=\"t:Shut\"/></operation>{second}</portType>"),
            )
    };
    let contract = read(&text("fault"));
    let again = read(&printed(&contract));
    for contract in [&contract, &again] {
        let told = only(contract).operations.iter().map(|operation| {
            let told = |detail: &Hold<Struct>| format!("{} {}", detail.id, names::detail(operation, detail));
            operation.raises.iter().map(told).collect::<Vec<_>>()
        });
        let one = ["{urn:s}Broke {urn:t}fault", "{urn:s}Shut {urn:t}fault"];
        assert_eq!(told.collect::<Vec<_>>(), [&one[..], &["{urn:s}Odd {urn:t}fault"]]);
    }
    // What is no name of XML is no element either.
    let contract = read(&text("a fault"));
    assert!(only(&contract).operations.iter().all(|operation| operation.raises.is_empty()));
    printed(&contract);
}

/// One type for the elements of several faults, as services in Java have it: each element is an exception of its own (WSDL 1.1,
/// 2.4), here and in the description that is printed. An element that is called as the type keeps that name to itself.
#[test]
fn faults_of_one_type_and_several_elements_are_several_exceptions() {
    let schema = "<xs:element name=\"In\" type=\"xs:int\"/><xs:element name=\"Out\" type=\"xs:int\"/>\
        <xs:complexType name=\"Info\"><xs:sequence><xs:element name=\"code\" type=\"xs:int\"/></xs:sequence></xs:complexType>\
        <xs:complexType name=\"Once\"><xs:sequence><xs:element name=\"code\" type=\"xs:int\"/></xs:sequence></xs:complexType>\
        <xs:element name=\"Gone\" type=\"s:Info\"/><xs:element name=\"Denied\" type=\"s:Info\"/>\
        <xs:element name=\"Info\" type=\"s:Info\"/><xs:element name=\"Single\" type=\"s:Once\"/>";
    let (mut messages, mut faults) = (String::new(), String::new());
    for name in ["Gone", "Denied", "Info", "Single"] {
        messages +=
            &format!("<message name=\"{name}\"><part name=\"fault\" element=\"s:{name}\"/></message>");
        faults += &format!("<fault name=\"{name}\" message=\"t:{name}\"/>");
    }
    // The second operation has one of them, and it is the same exception there.
    let second = "<operation name=\"Tell\"><input message=\"t:Asked\"/><output message=\"t:Answered\"/><fault name=\"c\" message=\"t:Denied\"/></operation>";
    let text = described(schema, "s:In", "s:Out")
        .replace("<portType", &format!("{messages}<portType"))
        .replace("</operation></portType>", &format!("{faults}</operation>{second}</portType>"));
    let contract = read(&text);
    let print = printed(&contract);
    for contract in [&contract, &read(&print)] {
        let told = only(contract).operations.iter().map(|operation| {
            let told = |detail: &Hold<Struct>| {
                assert_eq!(detail.fields[0].name, "code");
                format!("{} {}", detail.id, names::detail(operation, detail).local)
            };
            operation.raises.iter().map(told).collect::<Vec<_>>()
        });
        let first =
            ["{urn:s}Gone Gone", "{urn:s}Denied Denied", "{urn:s}InfoFault Info", "{urn:s}Once Single"];
        assert_eq!(told.collect::<Vec<_>>(), [&first[..], &["{urn:s}Denied Denied"]]);
    }
    for element in ["Gone", "Denied", "Info", "Single"] {
        assert!(print.contains(&format!("<xs:element name=\"{element}\" ")), "{print}");
    }
}

/// A header may be called as a parameter of either body is, or as another header, in another namespace: each is a parameter.
#[test]
fn headers_that_are_called_as_other_parameters_have_names_of_their_own() {
    let schema = "<xs:element name=\"In\"><xs:complexType><xs:sequence><xs:element name=\"Far\" type=\"xs:string\"/></xs:sequence></xs:complexType></xs:element>\
        <xs:element name=\"Out\"><xs:complexType><xs:sequence><xs:element name=\"Near\" type=\"xs:int\"/></xs:sequence></xs:complexType></xs:element>\
        <xs:element name=\"Far\" type=\"xs:int\"/><xs:element name=\"Own\" type=\"xs:int\"/>";
    let header = |part: &str| format!("<b:header message=\"t:H\" part=\"{part}\" use=\"literal\"/>");
    let binding = format!(
        "<binding name=\"B\" type=\"t:T\" xmlns:b=\"http://schemas.xmlsoap.org/wsdl/soap/\">\
         <b:binding transport=\"http://schemas.xmlsoap.org/soap/http\"/><operation name=\"Ask\"><b:operation soapAction=\"\"/>\
         <input><b:body use=\"literal\"/>{}</input><output><b:body use=\"literal\"/>{}</output></operation></binding>",
        ["far", "near", "again", "own"].map(header).concat(),
        ["near", "own"].map(header).concat(),
    );
    let parts = [("far", "u:Far"), ("near", "u:Near"), ("again", "s:Far"), ("own", "s:Own")];
    let parts =
        parts.map(|(name, element)| format!("<part name=\"{name}\" element=\"{element}\"/>")).concat();
    // What is called as the operation is stands around parameters.
    let text = described(schema, "s:In", "s:Out")
        .replace("<portType", &format!("<message name=\"H\">{parts}</message><portType"))
        .replace("</definitions>", &format!("{binding}</definitions>"))
        .replace("name=\"In\"", "name=\"Ask\"")
        .replace("element=\"s:In\"", "element=\"s:Ask\"")
        .replace("name=\"Out\"", "name=\"AskResponse\"")
        .replace("element=\"s:Out\"", "element=\"s:AskResponse\"");
    let contract = read(&text);
    let operation = &only(&contract).operations[0];
    let header =
        |name: &str| everywire_model::contract::note(&operation.notes, &format!("wcf:header:{name}"));
    let arguments: Vec<_> =
        operation.arguments.fields().iter().map(|f| (&*f.name, header(&f.name))).collect();
    let near = ("NearHeader", Some("{urn:u}Near"));
    let own = ("Own", Some("{urn:s}Own"));
    let second = ("FarHeader2", Some("{urn:s}Far"));
    assert_eq!(arguments, [("Far", None), ("FarHeader", Some("{urn:u}Far")), near, second, own]);
    let results: Vec<_> = operation.results.fields().iter().map(|f| (&*f.name, header(&f.name))).collect();
    assert_eq!(results, [("Near", None), near, own]);
    printed(&contract);
}

/// The action of WS-Addressing where a binding says that there is none: WS-Addressing 1.0 Metadata, 4.4.4.
#[test]
fn a_message_of_which_bindings_say_no_action_has_the_default_one() {
    let bound = |name: &str, said: &str| {
        let binding = format!(
            "<binding name=\"B\" type=\"t:T\"><b:binding xmlns:b=\"http://schemas.xmlsoap.org/wsdl/soap/\" \
             transport=\"http://schemas.xmlsoap.org/soap/http\"/><operation name=\"Ask\">\
             <b:operation xmlns:b=\"http://schemas.xmlsoap.org/wsdl/soap/\" {said}/></operation></binding></definitions>"
        );
        let text = described("<xs:element name=\"In\" type=\"xs:int\"/>", "s:In", "s:In")
            .replace("<input ", &format!("<input {name} "))
            .replace("</definitions>", &binding);
        let contract = read(&text);
        printed(&contract);
        let (interface, operation) = (only(&contract), &only(&contract).operations[0]);
        [
            names::action(Some(interface), operation),
            names::reply_action(Some(interface), operation),
            names::soap_action(Some(interface), operation),
        ]
    };
    assert_eq!(bound("", "soapAction=\"\""), ["urn:t:T:AskRequest", "urn:t:T:AskResponse", ""]);
    assert_eq!(bound("name=\"Asking\"", "soapAction=\"\""), ["urn:t:T:Asking", "urn:t:T:AskResponse", ""]);
    assert_eq!(bound("", "soapAction=\"urn:a\"")[0], "urn:a");
    assert_eq!(names::default_action("http://h/", "T", "AskRequest"), "http://h/T/AskRequest");
    assert_eq!(names::default_action("http://h", "T", "AskRequest"), "http://h/T/AskRequest");
}
