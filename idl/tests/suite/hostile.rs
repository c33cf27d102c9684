//! Small texts that once cost memory without a bound: each is a smaller multiple of the attack, and the memory of the process shows
//! whether its parts are multiplied. Each test is a process of its own, so nobody else's memory counts.

use everywire_idl::{language_of, midl, omg, wsdl};
use everywire_model::{Contract, Definition, Hold, Interface, Shape, Value};
use std::path::Path;

/// What a text of some MiB may take beside itself.
const ROOM: usize = 96 << 20;

/// The most memory that this process has had so far, in bytes; 0 where the system does not say.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or_default() << 10
}

/// Runs something that may need `ROOM` and no more.
fn bounded<T>(run: impl FnOnce() -> T) -> T {
    let before = peak();
    let result = run();
    let grown = peak() - before;
    assert!(grown < ROOM, "{} MiB", grown >> 20);
    result
}

fn description(namespace: &str, schema: &str, rest: &str) -> String {
    format!(
        "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' \
         xmlns:p='http://www.w3.org/ns/ws-policy' xmlns:t='{namespace}' targetNamespace='{namespace}'>\
         <w:types><s:schema targetNamespace='{namespace}'>{schema}\
         <s:element name='ask'><s:complexType><s:sequence/></s:complexType></s:element></s:schema></w:types>\
         <w:message name='ask'><w:part name='p' element='t:ask'/></w:message>\
         <w:portType name='Mill'><w:operation name='weigh'><w:input message='t:ask'/></w:operation></w:portType>\
         {rest}</w:definitions>"
    )
}

/// Each definition holds its namespace.
#[test]
fn namespaces_of_descriptions_are_short() {
    let elements: String = (0..1000).map(|n| format!("<s:element name='e{n}' type='s:int'/>")).collect();
    for (letters, good) in [(1000, true), (1 << 20, false)] {
        let text = description(&format!("urn:{}", "n".repeat(letters)), &elements, "");
        let read = bounded(|| wsdl::parse(&text, "long.wsdl").map_err(|mistakes| mistakes.to_string()));
        assert_eq!(read.is_ok(), good);
        assert!(good || read.unwrap_err().contains("is longer than 1024 bytes"));
    }
    // So is a name that a reference holds again and again.
    let long = "b".repeat(1 << 20);
    let operations: String = (0..500)
        .map(|n| format!("<w:operation name='o{n}'><b:operation style='rpc'/></w:operation>"))
        .collect();
    let binding = format!(
        "<w:binding name='B' type='t:{long}' xmlns:b='http://schemas.xmlsoap.org/wsdl/soap/'>{operations}</w:binding>"
    );
    let text = description("urn:mill", "", &binding);
    assert!(bounded(|| wsdl::parse(&text, "long.wsdl")).is_err());
}

/// Each port holds what its binding's policy says, and each interface what was left out of the types.
#[test]
fn ports_and_remarks_are_not_multiplied() {
    let unknown: String = (0..64).map(|n| format!("<x:{}{n}/>", "u".repeat(900))).collect();
    let ports: String = (0..3000).map(|_| "<w:port binding='t:B'/>").collect();
    let rest = format!(
        "<w:binding name='B' type='t:Mill'><p:Policy xmlns:x='urn:x'>{unknown}</p:Policy></w:binding><w:service>{ports}</w:service>"
    );
    let mistakes = bounded(|| wsdl::parse(&description("urn:mill", "", &rest), "ports.wsdl")).unwrap_err();
    assert!(mistakes.to_string().contains("the endpoints are too large"), "{mistakes}");
    let types: String = (0..64)
        .map(|n| {
            let name = format!("{}{n}", "r".repeat(900));
            format!("<s:complexType name='{name}'><s:sequence><s:element name='a' type='s:int'/><s:any/></s:sequence></s:complexType>")
        })
        .collect();
    let interfaces: String = (0..3000).map(|n| format!("<w:portType name='I{n}'/>")).collect();
    let text = description("urn:mill", &types, &interfaces);
    let contract =
        bounded(|| wsdl::parse(&text, "remarks.wsdl")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let unread = |name: &str| {
        let mut found = contract.interfaces().filter(|one| one.name == name);
        found.next().unwrap().notes.iter().filter(|(what, _)| what == "wcf:unread").count()
    };
    assert_eq!((unread("mill::Mill"), unread("mill::I2999")), (64, 0));
}

/// A schema without a namespace is read once for each that includes it.
#[test]
fn adopted_schemas_are_not_multiplied() {
    let elements: String = (0..20_000).map(|n| format!("<s:element name='e{n}'/>")).collect();
    let schema = |head: &str, body: &str| {
        format!("<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'{head}>{body}</s:schema>")
    };
    let mut documents = vec![
        ("mill.wsdl".to_owned(), description("urn:mill", "", "")),
        ("plain.xsd".to_owned(), schema("", &elements)),
    ];
    for n in 0..200 {
        let including =
            schema(&format!(" targetNamespace='urn:{n}'"), "<s:include schemaLocation='plain.xsd'/>");
        documents.push((format!("{n}.xsd"), including));
    }
    let mistakes = bounded(|| wsdl::parse_all(&documents)).unwrap_err().to_string();
    assert!(mistakes.contains("is included by too many"), "{mistakes}");
}

/// Each pair of brackets of a list of SOAP's encoding is a level.
#[test]
fn dimensions_of_encoded_lists_are_levels() {
    for (dimensions, good) in [(60, true), (64, false), (1000, false)] {
        let list = format!(
            "<s:complexType name='L'><s:complexContent><s:restriction xmlns:e='http://schemas.xmlsoap.org/soap/encoding/' \
             base='e:Array'><s:attribute ref='e:arrayType' w:arrayType='s:int{}'/></s:restriction></s:complexContent></s:complexType>",
            "[]".repeat(dimensions)
        );
        assert_eq!(
            wsdl::parse(&description("urn:mill", &list, ""), "deep.wsdl").is_ok(),
            good,
            "{dimensions}"
        );
    }
}

/// All names that are declared with one type share it.
#[test]
fn types_of_several_fields_are_read_once() {
    let members: String = (0..1500).map(|n| format!("M{n},")).collect();
    let names = (0..1500).map(|n| format!("a{n}")).collect::<Vec<_>>().join(",");
    for body in
        [format!("enum {{ {members} }}"), format!("struct {{ long {} b; }}", members.replace('M', "m"))]
    {
        let text = format!("struct S {{ {body} {names}; }};");
        let contract =
            bounded(|| midl::parse(&text, "many.idl")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(contract.definitions.len(), 2, "{body}");
    }
    let size = "1+".repeat(100);
    let text = format!("struct S {{ SAFEARRAY(long a[{size}1]) {names}; }};");
    assert!(bounded(|| midl::parse(&text, "many.idl")).is_ok());
}

/// An attribute is written once and kept with each name.
#[test]
fn attributes_of_many_names_are_not_multiplied() {
    let long = vec!["X".repeat(250); 100].join("+");
    let names = (0..8_000).map(|n| format!("a{n}")).collect::<Vec<_>>().join(",");
    let text = format!("const long {} = 0; struct S {{ [range(0,{long})] long {names}; }};", "X".repeat(250));
    let mistakes = bounded(|| midl::parse(&text, "many.idl")).unwrap_err().to_string();
    assert!(mistakes.contains("8 MiB"), "{}", mistakes.lines().next().unwrap_or_default());
}

/// A name of a name is a level like any other: destructors walk them.
#[test]
fn names_of_names_are_levels() {
    let chain: String = (0..50_000).map(|n| format!("typedef A{n} A{};", n + 1)).collect();
    let mistakes = midl::parse(&format!("typedef long A0;{chain}"), "chain.idl").unwrap_err().to_string();
    assert!(mistakes.contains("levels"), "{}", mistakes.lines().next().unwrap_or_default());
}

/// What a macro makes has the documentation of its use once.
#[test]
fn documentation_of_a_macro_is_not_multiplied() {
    let doc = format!("/** {} */", "long ".repeat(200_000));
    let body: String = (0..300).map(|n| format!("typedef long T{n}; ")).collect();
    let interface: String = (0..300).map(|n| format!("HRESULT f{n}(); ")).collect();
    let text = format!("#define MANY {body}\n{doc} MANY");
    assert_eq!(bounded(|| omg::parse(&text, "doc.idl")).unwrap().definitions.len(), 300);
    assert_eq!(bounded(|| midl::parse(&text, "doc.idl")).unwrap().definitions.len(), 300);
    let text = format!("#define MANY(X) {body}\n{doc} MANY(1)");
    assert_eq!(bounded(|| omg::parse(&text, "doc.idl")).unwrap().definitions.len(), 300);
    let text = format!("#define MANY {interface}\n[object] interface I : IUnknown {{ {doc} MANY }}");
    let contract = bounded(|| midl::parse(&text, "doc.idl")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let operations = &contract.interfaces().last().unwrap().operations;
    let doc = |name: &str| operations.iter().find(|one| one.name == name).unwrap().doc.len();
    assert_eq!((doc("f0") > 900_000, doc("f1")), (true, 0));
}

/// A constant that is another one holds its text once more, so texts have a bound.
#[test]
fn texts_of_constants_are_not_multiplied() {
    for letters in [10_000, 1 << 20] {
        let first = format!("const string A0 = \"{}\";", "x".repeat(letters));
        let more: String = (0..300).map(|n| format!("const string A{} = A{n};", n + 1)).collect();
        let contract = bounded(|| omg::parse(&(first + &more), "text.idl"));
        assert_eq!(contract.is_ok(), letters == 10_000);
        if let Ok(contract) = contract {
            assert!(contract.definitions.iter().all(|one| matches!(one, Definition::Constant(one)
                if matches!(&one.value, Value::Text(text) if text.len() == letters) && matches!(one.shape, Shape::Text(_)))));
        }
    }
}

/// Inherited operations bring their documentation and parameters with them.
#[test]
fn what_is_inherited_is_not_multiplied() {
    let doc = format!("/** {} */", "long ".repeat(200_000));
    let derived =
        |head: &str| (0..300).map(|n| format!("{head}interface I{n} : A {{}};")).collect::<String>();
    let text = format!("interface A {{ {doc} void f(); }}; {}", derived(""));
    let contract = bounded(|| omg::parse(&text, "doc.idl")).unwrap();
    assert!(contract.interfaces().last().unwrap().operations[0].doc.is_empty());
    let text = format!("[object] interface A : IUnknown {{ {doc} HRESULT f(); }}; {}", derived("[object] "));
    let contract = bounded(|| midl::parse(&text, "doc.idl")).unwrap();
    assert!(contract.interfaces().last().unwrap().operations.iter().all(|one| one.doc.is_empty()));
    let parameters: Vec<String> = (0..1000).map(|n| format!("[in] long p{n}")).collect();
    let text = format!(
        "[object] interface A : IUnknown {{ HRESULT f({}); }}; {}",
        parameters.join(","),
        derived("[object] ")
    );
    assert!(midl::parse(&text, "many.idl").unwrap_err().to_string().contains("too many operations"));
}

/// Of a file that may be endless, no more is read than a contract may have.
#[test]
fn files_are_read_up_to_their_bound() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("endless");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["endless.idl", "endless.xml"] {
        let path = folder.join(name);
        std::fs::File::create(&path).unwrap().set_len(1 << 29).unwrap();
        let read = bounded(|| (language_of(&path).is_some(), everywire_idl::read(&path)));
        assert!(read.0 && read.1.unwrap_err().to_string().contains("larger than"), "{name}");
        std::fs::remove_file(&path).unwrap();
    }
}

/// Names that mean nothing are not compared with all others once there are more mistakes than are kept.
#[test]
fn unknown_names_are_compared_a_few_times() {
    let known: String = (0..8000).map(|n| format!("typedef long Known{n:05};")).collect();
    let unknown: String = (0..8000).map(|n| format!("typedef Gone{n:06} Use{n:07};")).collect();
    assert!(omg::parse(&(known + &unknown), "names.idl").is_err());
    let known: String = (0..8000).map(|n| format!("interface IKnown{n:05};")).collect();
    let used: String = (0..8000).map(|n| format!("typedef iknown{n:05} *Use{n:07};")).collect();
    assert!(midl::parse(&(known + &used), "names.idl").is_ok());
}

/// Each base is asked once for a name, by however many ways it is a base.
#[test]
fn diamonds_are_walked_once() {
    let interface = |name: String, bases: Vec<Hold<Interface>>| {
        let mut made =
            (**omg::parse("interface A {};", "a.idl").unwrap().interfaces().next().unwrap()).clone();
        made.name = name.into();
        made.bases = bases.into();
        Hold::new(made)
    };
    let mut all = vec![interface("D0".to_owned(), Vec::new())];
    for n in 1..=24 {
        let below = all.last().unwrap().clone();
        let (left, right) =
            (interface(format!("L{n}"), vec![below.clone()]), interface(format!("R{n}"), vec![below]));
        all.extend([left.clone(), right.clone(), interface(format!("D{n}"), vec![left, right])]);
    }
    let mut top = (**all.last().unwrap()).clone();
    let returns = Shape::Reference(Hold::new(everywire_model::shape::Referent {
        name: "D0".into(),
        id: "IDL:D0:1.0".into(),
    }));
    top.operations = vec![everywire_model::Operation::new("get", Vec::new(), returns)].into();
    all.push(Hold::new(Interface { name: "Top".into(), ..top }));
    let contract = Contract { definitions: all.into_iter().map(Definition::Interface).collect() };
    assert!(omg::print(&contract).contains("D0 get()"));
}

/// What holds a struct that proves to have no form on a wire is found by what each says itself, not by all that it leads to.
#[test]
fn structs_that_are_used_by_many_are_found_once() {
    let mut text = String::from("struct L; struct X { struct L *p; };");
    for at in 0..600 {
        text.push_str(&format!("struct S0_{at} {{ long n; }};"));
    }
    for layer in 1..20 {
        for at in 0..600 {
            let [a, b] = [at, (at + layer * 7) % 600].map(|at| format!("S{}_{at}", layer - 1));
            text.push_str(&format!("struct S{layer}_{at} {{ struct {a} *a; struct {b} *b; }};"));
        }
    }
    text.push_str("struct L { void *d; };");
    let read = bounded(|| midl::parse(&text, "layers.idl")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(read.definitions.len() > 10_000);
}
