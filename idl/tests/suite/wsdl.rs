//! Descriptions as .NET and Mono write them, what other languages become, what other programs make of ours, mistakes with
//! their places, and hostile texts.

use crate::common::{contracts, corpus, data, outline};
use everywire_idl::wsdl::{self, Port, imports, names, parse, parse_all, parse_file, print};
use everywire_model::contract::note;
use everywire_model::{Contract, Definition, Direction, Interface, Operation, Shape};
use std::path::{Path, PathBuf};
use std::process::Command;

const FILES: [&str; 4] = ["dotnet/Clock.wsdl", "mono/shop.wsdl", "mono/hello.wsdl", "mono/mill.asmx.wsdl"];

/// What a contract means, with the notes of its interfaces. What could not be read is not printed.
fn meaning(contract: &Contract) -> Vec<String> {
    let mut lines = outline(contract);
    for interface in contract.interfaces() {
        let told = interface.notes.iter().filter(|(what, _)| what != "wcf:unread");
        lines.extend(told.map(|(what, value)| format!("{}: {what} {value}", interface.name)));
        for operation in interface.operations.iter() {
            let notes = operation.notes.iter();
            let name = format!("{}.{}", interface.name, operation.name);
            lines.extend(notes.map(|(what, value)| format!("{name}: {what} {value}")));
        }
        for signal in interface.signals.iter() {
            let (sink, number) = signal.sink.as_ref().unwrap();
            lines.push(format!("{}: {} is {}.{number}", interface.name, signal.name, sink.id));
        }
    }
    lines.sort();
    lines
}

fn settled(contract: &Contract, file: &str) -> String {
    let printed = print(contract).unwrap_or_else(|e| panic!("{file}: {e}"));
    let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{file}:\n{printed}\n{e}"));
    assert_eq!(meaning(&again), meaning(contract), "{file}:\n{printed}");
    assert_eq!(print(&again).unwrap(), printed, "printing settles");
    printed
}

fn read(file: &str) -> Contract {
    everywire_idl::read(data(file)).unwrap_or_else(|e| panic!("{e}"))
}

fn interface<'c>(contract: &'c Contract, id: &str) -> &'c Interface {
    contract.interface(id).unwrap_or_else(|| panic!("{id} is missing"))
}

fn operation<'i>(interface: &'i Interface, name: &str) -> &'i Operation {
    &interface.operations[interface.index_of(name.as_bytes()).unwrap()]
}

fn directions(operation: &Operation) -> Vec<(Direction, &str)> {
    operation.parameters.iter().map(|p| (p.direction, p.field.name.as_ref())).collect()
}

#[test]
fn contracts_survive_printing() {
    for file in FILES {
        let contract = read(file);
        assert!(contract.interfaces().count() > 0, "{file}");
        settled(&contract, file);
    }
}

#[test]
fn sessions_callbacks_and_headers_are_read() {
    let contract = read("dotnet/Clock.wsdl");
    let clock = interface(&contract, "{http://example.org/clock}IClock");
    assert_eq!(clock.doc, "Tells the time.");
    assert_eq!(note(&clock.notes, "wcf:session"), Some("true"));
    assert_eq!(note(&clock.notes, "wcf:callback"), Some("{http://example.org/clock}IClockCallback"));
    let names: Vec<&str> = clock.operations.iter().map(|operation| operation.name.as_ref()).collect();
    assert_eq!(names, ["Begin", "Set", "End", "Ask"]);

    let set = operation(clock, "Set");
    let expected = [
        (Direction::InOut, "when"),
        (Direction::In, "hands"),
        (Direction::In, "dial"),
        (Direction::In, "names"),
        (Direction::Out, "left"),
    ];
    assert_eq!(directions(set), expected);
    assert!(matches!(&set.returns, Shape::Optional(of) if matches!(**of, Shape::I32)));
    assert_eq!(names::action(Some(clock), set), "http://example.org/clock/IClock/Set");
    assert_eq!(names::reply_action(Some(clock), set), "urn:set");
    assert_eq!(note(&set.notes, "wcf:initiating"), Some("false"));

    let end = operation(clock, "End");
    assert!(end.oneway);
    assert_eq!(note(&end.notes, "wcf:terminating"), Some("true"));

    let ask = operation(clock, "Ask");
    assert_eq!(directions(ask), [(Direction::In, "Text"), (Direction::In, "Zone"), (Direction::Out, "Time")]);
    assert_eq!(note(&ask.notes, "wcf:header:Zone"), Some("{http://example.org/clock}Zone"));
    assert_eq!(names::request_wrapper(Some(clock), ask).unwrap().local, "Question");
    assert_eq!(names::response_wrapper(Some(clock), ask).unwrap().local, "Answer");

    let callback = interface(&contract, "{http://example.org/clock}IClockCallback");
    let (tick, which) = (operation(callback, "Tick"), operation(callback, "Which"));
    assert!(tick.oneway && !which.oneway);
    assert_eq!(names::action(Some(callback), which), "http://example.org/clock/IClock/Which");
    assert_eq!(names::reply_action(Some(callback), which), "http://example.org/clock/IClock/WhichResponse");
    let signals: Vec<_> =
        clock.signals.iter().map(|signal| (signal.name.as_ref(), signal.sink.as_ref())).collect();
    assert!(matches!(&signals[..], [("Tick", Some((sink, 0)))] if sink.id == callback.id));
}

#[test]
fn faults_are_exceptions() {
    let contract = read("dotnet/Clock.wsdl");
    let clock = interface(&contract, "{http://example.org/clock}IClock");
    let begin = operation(clock, "Begin");
    let [trouble, text] = &begin.raises[..] else { panic!("two faults are typed") };
    assert_eq!(trouble.id, "{http://schemas.datacontract.org/2004/07/Example.Clocks}Trouble");
    let action = names::fault_action(Some(clock), begin, trouble);
    assert_eq!(action, "http://example.org/clock/IClock/BeginTroubleFault");
    let known =
        contract.definitions.iter().any(|d| matches!(d, Definition::Exception(e) if e.id == trouble.id));
    assert!(known);
    // A detail without members is the serializer's own element.
    assert_eq!(
        names::detail(begin, text).to_string(),
        "{http://schemas.microsoft.com/2003/10/Serialization/}string"
    );
}

#[test]
fn data_contracts_become_shapes() {
    let contract = read("dotnet/Clock.wsdl");
    let shape = |name: &str| {
        let named = |shape: &&Shape| shape.noun() == name;
        let types = contract.definitions.iter().filter_map(|definition| match definition {
            Definition::Type(shape) => Some(shape),
            _ => None,
        });
        types.clone().find(named).unwrap_or_else(|| panic!("{name} is missing"))
    };
    let Shape::Enum(kind) = shape("Example::Clocks::Kind") else { panic!() };
    let members: Vec<(&str, i32)> =
        kind.members.iter().map(|(name, value)| (name.as_ref(), *value)).collect();
    assert_eq!(members, [("Wall", 0), ("Tower", 12), ("Wrist", 13)]);
    let Shape::Alias(kinds) = shape("Example::Clocks::Kinds") else { panic!() };
    assert!(kinds.id.ends_with("}Kinds;list,Wall=1,Tower=2") && matches!(kinds.target, Shape::Text(_)));
    let Shape::Alias(palette) = shape("Example::Clocks::Palette") else { panic!() };
    assert!(palette.id.ends_with("}Palette;Colour") && matches!(palette.target, Shape::Sequence(_)));

    let dial = shape("Example::Clocks::Dial");
    let field = |name: &str| &dial.fields().iter().find(|field| field.name == name).unwrap().shape;
    assert!(matches!(field("Alarm"), Shape::Optional(of) if of.noun() == "xs::dateTime"));
    assert!(matches!(field("Hands"), Shape::Struct(_)), "a value type is there");
    assert!(matches!(field("Span"), Shape::Alias(of) if of.id.ends_with("Serialization/}duration")));
    // A type that others extend is any of them where it is used.
    let Shape::Optional(inner) = field("Inner") else { panic!() };
    let Shape::Union(any) = &**inner else { panic!() };
    assert_eq!(any.id, "{http://schemas.datacontract.org/2004/07/Example.Clocks}Dial");
    let arms: Vec<String> = any.arms.iter().map(|arm| arm.field.shape.noun().into_owned()).collect();
    assert_eq!(arms, ["Example::Clocks::Dial", "Example::Clocks::SunDial"]);
    let sun = shape("Example::Clocks::SunDial").fields();
    assert_eq!(sun.last().unwrap().name, "Latitude");
    assert_eq!(sun.len(), dial.fields().len() + 1);
}

#[test]
fn bindings_and_policies_are_read() {
    let contract = read("dotnet/Clock.wsdl");
    let clock = interface(&contract, "{http://example.org/clock}IClock");
    let ports: Vec<Port> = clock
        .notes
        .iter()
        .filter(|(what, _)| what == "wcf:port")
        .map(|(_, port)| Port::parse(port))
        .collect();
    let [tcp, ws] = &ports[..] else { panic!("{ports:?}") };
    assert_eq!((tcp.address.as_str(), tcp.transport.as_str()), ("net.tcp://localhost:808/Clock.svc", "tcp"));
    assert_eq!(
        (tcp.security.as_str(), tcp.encoding.as_str(), tcp.addressing.as_str()),
        ("windows", "binary", "1.0")
    );
    assert_eq!(tcp.unknown, ["{http://schemas.xmlsoap.org/ws/2004/10/wsat}ATAssertion"]);
    assert_eq!(
        (ws.transport.as_str(), ws.security.as_str(), ws.credential.as_str()),
        ("https", "tls", "username")
    );
    assert_eq!(ports.iter().map(|port| Port::parse(&port.to_string())).collect::<Vec<_>>(), ports);

    // Java's JAX-WS looks for addressing in the binding itself, and only over HTTP.
    let printed = print(&contract).unwrap();
    for (name, said) in [("NetTcpBinding_IClock", 0), ("WSHttpBinding_IClock", 1)] {
        let (_, binding) = printed.split_once(&format!("<wsdl:binding name=\"{name}\"")).unwrap();
        let (binding, _) = binding.split_once("</wsdl:binding>").unwrap();
        assert_eq!(binding.matches("<wsaw:UsingAddressing/>").count(), said, "{binding}");
    }
}

/// Mono exchanges the names of a callback's elements in its description, though not in its messages.
#[test]
fn monos_callbacks_are_read_as_they_are_meant() {
    let contract = read("mono/hello.wsdl");
    let callback = interface(&contract, "{http://tempuri.org/}IHelloCallback");
    for operation in callback.operations.iter() {
        let wrapper = names::request_wrapper(Some(callback), operation).unwrap();
        assert_eq!(wrapper.local, operation.name);
    }
    let ask = operation(callback, "Ask");
    assert!(matches!(ask.returns, Shape::I32));
    assert_eq!(directions(ask), [(Direction::In, "x")]);
}

#[test]
fn pages_of_a_service_are_read_together() {
    let folder = data("dotnet");
    let page = |file: &str| (format!("?{file}"), std::fs::read_to_string(folder.join(file)).unwrap());
    let first = page("Clock.wsdl");
    let wanted: Vec<String> = imports(&first.1).into_iter().map(|import| import.location).collect();
    assert_eq!(wanted, ["http://localhost:8080/Clock.svc?wsdl=wsdl0"]);
    let all: Vec<(String, String)> =
        ["xsd3.xsd", "xsd2.xsd", "xsd1.xsd", "xsd0.xsd", "wsdl0.wsdl"].map(page).into();
    let all: Vec<(String, String)> = std::iter::once(first).chain(all).collect();
    assert_eq!(meaning(&parse_all(&all).unwrap()), meaning(&read("dotnet/Clock.wsdl")));
}

/// Metadata comes as sections in an envelope.
#[test]
fn sections_in_an_envelope_are_read() {
    let contract = read("dotnet/Clock.wsdl");
    let interfaces: Vec<&Interface> = contract.interfaces().map(|interface| &**interface).collect();
    let description = wsdl::describe(&interfaces, &[], &|_| Vec::new());
    assert_eq!(description.left_out, []);
    let sections = description.sections();
    let envelope = format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\"><s:Body>\
         <Metadata xmlns=\"http://schemas.xmlsoap.org/ws/2004/09/mex\">{sections}</Metadata></s:Body></s:Envelope>"
    );
    let again = parse(&envelope, "metadata").unwrap_or_else(|e| panic!("{e}"));
    let named = |contract: &Contract| contract.interfaces().map(|i| i.id.to_string()).collect::<Vec<_>>();
    assert_eq!(named(&again), named(&contract));
}

/// Interfaces of two namespaces are sections of metadata.
#[test]
fn several_namespaces_are_printed() {
    let mut both = read("dotnet/Clock.wsdl");
    both.definitions.extend(read("mono/shop.wsdl").definitions);
    let printed = settled(&both, "both");
    assert_eq!(printed.matches("<wsx:MetadataSection").count(), 2);
}

#[test]
fn other_languages_become_descriptions() {
    let mut files: Vec<PathBuf> = contracts(&corpus("good"));
    // XML has no type codes.
    files.retain(|file| !file.ends_with("main.idl") && !file.ends_with("typecodes.idl"));
    files.extend(
        [
            "bench.kidl",
            "bench_iface.kidl",
            "types.kidl",
            "inherited.kidl",
            "bench.dbus.xml",
            "dbus_daemon.xml",
        ]
        .map(data),
    );
    files.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts/derby.midl"));
    for file in files {
        let contract = everywire_idl::read(&file).unwrap_or_else(|e| panic!("{e}"));
        let file = file.display().to_string();
        let printed = print(&contract).unwrap_or_else(|e| panic!("{file}: {e}"));
        let again = parse(&printed, "printed.wsdl").unwrap_or_else(|e| panic!("{file}:\n{printed}\n{e}"));
        // Unions become structs, so that only what was read once settles.
        settled(&again, &file);
        for interface in contract.interfaces() {
            let name = names::contract(interface);
            let Some(found) = again.interface(&name.to_string()) else { continue };
            assert_eq!(found.operations.len(), interface.operations.len(), "{file}: {name}");
            for (old, new) in interface.operations.iter().zip(found.operations.iter()) {
                assert_eq!(names::action(Some(interface), old), names::action(Some(found), new), "{file}");
                assert_eq!(old.oneway, new.oneway, "{file}: {}", old.name);
            }
        }
    }
}

#[test]
fn what_does_not_go_is_said() {
    let text = "interface A { void same(in long x); }; interface B { void same(in string x); };";
    let contract = everywire_idl::omg::parse(text, "two.idl").unwrap();
    let refused = print(&contract).unwrap_err();
    assert_eq!(refused.place, "B.same");
    assert!(refused.reason.contains("{http://tempuri.org/}same would be two things"), "{refused}");
    let handles = everywire_idl::read(data("manager.xml")).unwrap();
    assert!(print(&handles).unwrap_err().reason.contains("handles of the operating system"));
    // Where a service tells of itself, the rest stands.
    let interfaces: Vec<&Interface> = contract.interfaces().map(|interface| &**interface).collect();
    let description = wsdl::describe(&interfaces, &[], &|_| Vec::new());
    assert_eq!(description.left_out.len(), 1);
    let told = parse(&description.whole(), "told.wsdl").unwrap();
    assert_eq!(interface(&told, "{http://tempuri.org/}A").operations.len(), 1);
    assert_eq!(interface(&told, "{http://tempuri.org/}B").operations.len(), 0);
}

/// Mono's tool for web services makes code of ours.
#[test]
fn printed_contracts_are_accepted_by_mono() {
    if !everywire_peers::here("printed_contracts_are_accepted_by_mono", &["wsdl"]) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wsdl");
    std::fs::create_dir_all(&folder).unwrap();
    for (number, file) in [data("types.kidl"), data("dbus_daemon.xml"), corpus("good").join("bench.idl")]
        .into_iter()
        .enumerate()
    {
        let (path, code) = (folder.join(format!("{number}.wsdl")), folder.join(format!("{number}.cs")));
        std::fs::write(&path, print(&everywire_idl::read(&file).unwrap()).unwrap()).unwrap();
        let out = format!("/out:{}", code.display());
        let told = Command::new("wsdl").arg(&path).arg(out).output().unwrap();
        assert!(told.status.success(), "{file:?}: {}", String::from_utf8_lossy(&told.stdout));
        assert!(std::fs::read_to_string(code).unwrap().contains("class "), "{file:?}");
    }
}

fn described(types: &str) -> String {
    format!(
        "<wsdl:definitions xmlns:wsdl='http://schemas.xmlsoap.org/wsdl/' xmlns:xs='http://www.w3.org/2001/XMLSchema' \
         xmlns:t='urn:t' targetNamespace='urn:t'>\n<wsdl:types><xs:schema targetNamespace='urn:t' \
         elementFormDefault='qualified'>\n{types}\n</xs:schema></wsdl:types>\n</wsdl:definitions>"
    )
}

fn refused(text: &str, wanted: &str) {
    let mistakes = parse(text, "wrong.wsdl").map(|_| ()).unwrap_err().to_string();
    assert!(mistakes.contains(wanted), "{mistakes}");
}

#[test]
fn mistakes_have_places() {
    let message = "<wsdl:message name='m'><wsdl:part name='parameters' element='t:Gone'/></wsdl:message>";
    let port = "<wsdl:portType name='I'><wsdl:operation name='Do'><wsdl:input message='t:m'/></wsdl:operation></wsdl:portType>";
    let text = described("").replace("</wsdl:definitions>", &format!("{message}{port}</wsdl:definitions>"));
    let mistakes = parse(&text, "wrong.wsdl").unwrap_err();
    assert_eq!(mistakes.list.len(), 1);
    assert_eq!(mistakes.list[0].message, "the element `Gone` of the namespace `urn:t` is not defined");
    assert_eq!(mistakes.list[0].line, 5);
    let member = "<xs:complexType name='A'><xs:sequence><xs:element name='b' type='t:B'/></xs:sequence></xs:complexType>";
    refused(&described(member), "the type `B` of the namespace `urn:t` is not defined");
    refused(&described(&member.replace("t:B", "q:B")), "the prefix of the type `q:B` is not declared");
    refused("<a/>", "the file is about `a`, not about a service");
    refused("<q:a/>", "the prefix of `q:a` is not declared");
    refused(
        &text.replace("message='t:m'", "message='t:n'"),
        "the message `n` of the namespace `urn:t` is not defined",
    );
}

#[test]
fn entities_are_refused() {
    let bomb = "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>]>";
    refused(&format!("{bomb}{}", described("&b;")), "no document types, and no entities");
    refused("<!DOCTYPE d SYSTEM 'http://example.org/x.dtd'><d/>", "no document types");
    refused(&described("&b;"), "the entity `b` is not defined");
}

#[test]
fn floods_are_refused() {
    let many: String = (0..200).map(|n| format!(" xmlns:p{n}='urn:{n}'")).collect();
    refused(&format!("<a{many}/>"), "more than 64 attributes");
    let nested: String = (0..40)
        .map(|level| {
            let declared: String =
                (0..10).map(|n| format!(" xmlns:p{level}x{n}='urn:{level}:{n}'")).collect();
            format!("<a{declared}>")
        })
        .collect();
    refused(&format!("{nested}{}", "</a>".repeat(40)), "more than 128 namespaces are declared at one place");
    refused(
        &format!("{}{}", "<a>".repeat(5000), "</a>".repeat(5000)),
        "more than 64 elements inside one another",
    );
    let attributes: String = (0..100).map(|n| format!(" a{n}='1'")).collect();
    refused(&format!("<a{attributes}/>"), "more than 64 attributes");
}

#[test]
fn depth_of_types_is_bounded() {
    let part = |n: usize| {
        format!(
            "<xs:complexType name='T{n}'><xs:sequence><xs:element name='x' type='t:T{}'/></xs:sequence></xs:complexType>",
            n + 1
        )
    };
    let last = |n: usize| format!("<xs:complexType name='T{n}'><xs:sequence/></xs:complexType>");
    let down: String = (0..5000).map(part).chain([last(5000)]).collect();
    refused(&described(&down), "types are inside one another more than 64 deep");
    let up: String = [last(5000)].into_iter().chain((0..5000).rev().map(part)).collect();
    refused(&described(&up), "types are inside one another more than 64 deep");
    let extended = |n: usize| {
        format!(
            "<xs:complexType name='T{n}'><xs:complexContent><xs:extension base='t:T{}'/></xs:complexContent></xs:complexType>",
            n + 1
        )
    };
    let chain: String = (0..2000).map(extended).chain([last(2000)]).collect();
    refused(&described(&chain), "more than 64 types extend one another");
    // Types that extend one another in a circle end as well.
    refused(
        &described(&(extended(0) + &extended(1).replace("T2", "T0"))),
        "more than 64 types extend one another",
    );
    let groups = format!(
        "<xs:complexType name='G'>{}{}</xs:complexType>",
        "<xs:sequence>".repeat(50),
        "</xs:sequence>".repeat(50)
    );
    parse(&described(&groups), "groups.wsdl").unwrap();
}

#[test]
fn types_that_contain_themselves_end() {
    let types = "<xs:complexType name='A'><xs:sequence><xs:element name='b' type='t:B'/><xs:element name='l' type='t:L'/>\
                 </xs:sequence></xs:complexType>\
                 <xs:complexType name='B'><xs:sequence><xs:element name='a' type='t:A'/></xs:sequence></xs:complexType>\
                 <xs:complexType name='L'><xs:sequence><xs:element name='A' type='t:A' minOccurs='0' maxOccurs='unbounded'/>\
                 </xs:sequence></xs:complexType>";
    let contract = parse(&described(types), "self.wsdl").unwrap_or_else(|e| panic!("{e}"));
    settled(&contract, "self");
    let endless = "<xs:complexType name='L'><xs:sequence><xs:element name='L' type='t:L' maxOccurs='unbounded'/>\
                   </xs:sequence></xs:complexType>";
    refused(&described(endless), "complexType");
}

/// A description of many types that all extend one multiplies members: that is counted.
#[test]
fn members_are_counted() {
    let fields: String = (0..300).map(|n| format!("<xs:element name='f{n}' type='xs:int'/>")).collect();
    let base = format!("<xs:complexType name='B'><xs:sequence>{fields}</xs:sequence></xs:complexType>");
    let derived: String = (0..500)
        .map(|n| {
            format!("<xs:complexType name='D{n}'><xs:complexContent><xs:extension base='t:B'/></xs:complexContent></xs:complexType>")
        })
        .collect();
    refused(&described(&(base + &derived)), "more than 100000 members");
}

/// An import leads to a schema by a path from the document, and nowhere else: to no absolute path, no address, no other file.
#[test]
fn imports_lead_nowhere_else() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("imports");
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    let schema = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:o'>\
                  <xs:complexType name='O'><xs:sequence/></xs:complexType></xs:schema>";
    std::fs::write(folder.join("outside.xsd"), schema).unwrap();
    let types = |location: &str| {
        described(&format!(
            "<xs:import namespace='urn:o' schemaLocation='{location}'/><xs:complexType name='A'><xs:sequence>\
             <xs:element name='o' xmlns:o='urn:o' type='o:O'/></xs:sequence></xs:complexType>"
        ))
    };
    let path = folder.join("inner/a.wsdl");
    let absolute = folder.join("outside.xsd").display().to_string();
    std::fs::write(folder.join("outside.txt"), schema).unwrap();
    for location in [
        absolute.as_str(),
        &format!("file://{absolute}"),
        "/etc/passwd",
        "../../../../../../../../../../../etc/passwd",
        "../outside.txt",
        "http://192.0.2.1/outside.xsd",
        "file:///etc/passwd",
        "a/../../outside.xsd",
        "classpath:/../outside.xsd",
    ] {
        std::fs::write(&path, types(location)).unwrap();
        let mistakes = parse_file(&path).unwrap_err().to_string();
        assert!(
            mistakes.contains("the type `O` of the namespace `urn:o` is not defined"),
            "{location}: {mistakes}"
        );
    }
    std::fs::write(&path, types("../outside.xsd")).unwrap();
    parse_file(&path).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(folder.join("b.wsdl"), types("outside.xsd")).unwrap();
    parse_file(folder.join("b.wsdl")).unwrap_or_else(|e| panic!("{e}"));
    // Without a location, the namespace tells.
    std::fs::write(folder.join("c.wsdl"), types("").replace("schemaLocation=''", "")).unwrap();
    parse_file(folder.join("c.wsdl")).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn documents_of_a_description_are_counted() {
    let one = ("a.wsdl".to_owned(), described(""));
    let mistakes = parse_all(&vec![one; 257]).unwrap_err().to_string();
    assert!(mistakes.contains("more than 256 documents"), "{mistakes}");
}

#[test]
fn cut_texts_are_refused_or_read() {
    let whole = print(&read("dotnet/Clock.wsdl")).unwrap();
    for at in (0..whole.len()).step_by(97) {
        if let Some(cut) = whole.get(..at) {
            assert!(parse(cut, "cut.wsdl").is_err(), "cut at {at}");
        }
    }
}
