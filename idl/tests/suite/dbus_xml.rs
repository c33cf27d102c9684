//! Introspection data: real ones, everything the format has, mistakes with their places, and hostile texts.

use crate::common::{data, outline};
use everywire_idl::dbus_xml::{self, names, parse, parse_node, print, print_node};
use everywire_model::{Contract, Definition, Direction, Hold, Interface, Notify, Operation, Shape};
use std::path::Path;
use std::process::Command;

const FILES: [&str; 4] = ["bench.dbus.xml", "dbus_daemon.xml", "dbus_daemon_root.xml", "manager.xml"];

fn settled(contract: &Contract, file: &str) -> String {
    let printed = print(contract).unwrap_or_else(|e| panic!("{file}: {e}"));
    let again = parse(&printed, "printed.xml").unwrap_or_else(|e| panic!("{file}:\n{printed}\n{e}"));
    assert_eq!(outline(&again), outline(contract), "{file}:\n{printed}");
    assert_eq!(print(&again).unwrap(), printed, "printing settles");
    printed
}

#[test]
fn contracts_survive_printing() {
    for file in FILES {
        let contract = everywire_idl::read(data(file)).unwrap_or_else(|e| panic!("{e}"));
        assert!(contract.interfaces().count() > 0);
        settled(&contract, file);
    }
}

#[test]
fn a_file_may_be_one_interface() {
    let text = "<interface name='org.example.Alone'><method name='Ask'><arg type='s' direction='out'/></method></interface>";
    let contract = parse(text, "alone.xml").unwrap();
    assert_eq!(contract.interfaces().next().unwrap().id, "org.example.Alone");
    assert!(parse_node(text).is_err(), "an object tells a node");
}

/// Qt's compiler refuses `a{sv}` where no annotation says which class of Qt's it is.
#[test]
fn the_classes_of_qt_are_printed_as_they_were_read() {
    let annotation =
        |name: &str, value: &str| format!("      <annotation name=\"{name}\" value=\"{value}\"/>\n");
    let qt = "org.qtproject.QtDBus.QtTypeName";
    let members = [
        (
            "method",
            "Find",
            annotation(&format!("{qt}.In0"), "QVariantMap")
                + &annotation(&format!("{qt}.Out0"), "QMap&lt;int,Pair&gt;"),
        ),
        ("signal", "Find", annotation(&format!("{qt}.Out0"), "QVariantMap")),
        ("signal", "Found", annotation("com.trolltech.QtDBus.QtTypeName.In0", "QVariantMap")),
        ("property", "Facts", annotation(qt, "QVariantMap")),
    ];
    let mut text = String::from("<node><interface name=\"org.example.Qt\">\n");
    for (element, name, annotations) in &members {
        let rest = match *element {
            "property" => " type=\"a{sv}\" access=\"readwrite\"",
            _ => "",
        };
        let strange = "<annotation name=\"org.example.Strange\" value=\"x\"/><annotation name=\"org.example.Found:org.qtproject.QtDBus.X\" value=\"x\"/>";
        text += &format!("<{element} name=\"{name}\"{rest}>{annotations}{strange}");
        if *element != "property" {
            text += "<arg name=\"v\" type=\"a{sv}\"/>";
        }
        text += &format!("</{element}>");
    }
    text += "</interface></node>";
    let contract = parse(&text, "qt.xml").unwrap_or_else(|e| panic!("{e}"));
    let printed = settled(&contract, "qt.xml");
    for (element, name, annotations) in &members {
        let (_, rest) =
            printed.split_once(&format!("    <{element} name=\"{name}\"")).expect("it is printed");
        let (body, _) = rest.split_once(&format!("    </{element}>")).expect("it has a body");
        let (_, body) = body.split_once(">\n").expect("an element begins");
        let all: String = body
            .lines()
            .filter(|line| line.contains("annotation"))
            .map(|line| line.to_owned() + "\n")
            .collect();
        assert_eq!(&all, annotations, "{printed}");
    }
    // A served object says it too.
    let interfaces: Vec<&Interface> = contract.interfaces().map(|interface| &**interface).collect();
    assert_eq!(print_node(&interfaces, &[]).matches("QtTypeName").count(), 5);
}

/// As `qdbuscpp2xml` prints them: without, `qdbusxml2cpp` refuses lists of numbers and `a{sv}`.
#[test]
fn types_that_qts_compiler_refuses_have_the_classes_of_qt() {
    let text = "<node><interface name='a.B'>\
        <method name='M'><arg type='s' direction='in'/><arg type='ai' direction='in'/>\
        <arg type='as' direction='out'/><arg type='a{sv}' direction='out'/></method>\
        <signal name='S'><arg type='ab'/><arg type='av'/><arg type='ad'/></signal>\
        <property name='P' type='at' access='readwrite'/><property name='Q' type='a(ii)' access='read'/>\
        </interface></node>";
    let contract = parse(text, "plain.xml").unwrap_or_else(|e| panic!("{e}"));
    let printed = settled(&contract, "plain.xml");
    let found: Vec<&str> = printed
        .split("<annotation name=\"org.qtproject.QtDBus.QtTypeName")
        .skip(1)
        .map(|rest| rest.split("\"/>").next().unwrap())
        .collect();
    let wanted = [
        ".In1\" value=\"QList&lt;int&gt;",
        ".Out1\" value=\"QVariantMap",
        ".Out0\" value=\"QList&lt;bool&gt;",
        ".Out2\" value=\"QList&lt;double&gt;",
        "\" value=\"QList&lt;qulonglong&gt;",
    ];
    assert_eq!(found, wanted, "{printed}");
}

/// QtDBus tells a signal once for each list of arguments that it may have.
#[test]
fn signals_of_one_name_keep_their_own_classes_of_qt() {
    let qt = |class: &str| {
        format!(
            "<annotation name='org.qtproject.QtDBus.QtTypeName.Out0' value='{class}'/><arg type='a{{sv}}'/>"
        )
    };
    let signal = |class: &str| format!("<signal name='Changed'>{}</signal>", qt(class));
    let other = "<method name='Changed_2'/><signal name='Changed_2'/>";
    let text = format!(
        "<node><interface name='org.example.Qt'>{}{other}{}</interface></node>",
        signal("First"),
        signal("Second")
    );
    let printed = settled(&parse(&text, "qt.xml").unwrap(), "qt.xml");
    let found: Vec<&str> = printed
        .split('"')
        .filter(|word| ["Changed", "Changed_2", "First", "Second"].contains(word))
        .collect();
    assert_eq!(found, ["Changed_2", "Changed", "First", "Changed_2", "Changed", "Second"], "{printed}");
}

/// Else 4 MiB of a peer would be printed as thousands of megabytes.
#[test]
fn annotations_of_many_signals_of_one_name_are_printed_once() {
    let signal = "<signal name='S'><annotation name='org.qtproject.QtDBus.X' value='x'/></signal>";
    let text = format!("<node><interface name='a.B'>{}</interface></node>", signal.repeat(2000));
    let printed = print(&parse(&text, "many.xml").unwrap()).unwrap();
    assert_eq!(printed.matches("QtDBus").count(), 2000);
}

#[test]
fn of_equal_annotations_the_last_is_kept() {
    let annotation =
        |value: &str| format!("<annotation name='org.qtproject.QtDBus.QtTypeName' value='{value}'/>");
    let all = annotation("First") + &annotation("Last");
    let text = format!(
        "<node><interface name='org.example.Qt'><method name='Ask'>{all}</method><signal name='Told'>{all}</signal>\
         <property name='Fact' type='a{{sv}}' access='read'>{all}</property></interface></node>"
    );
    let printed = settled(&parse(&text, "qt.xml").unwrap(), "qt.xml");
    assert_eq!((printed.matches("First").count(), printed.matches("Last").count()), (0, 3), "{printed}");
}

/// What GLib's compiler accepts is well-formed and valid.
#[test]
fn printed_contracts_are_accepted_by_gdbus_codegen() {
    if !everywire_peers::here("printed_contracts_are_accepted_by_gdbus_codegen", &["gdbus-codegen"]) {
        return;
    }
    for file in FILES {
        let printed = print(&dbus_xml::parse_file(data(file)).unwrap()).unwrap();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        std::fs::write(&path, printed).unwrap();
        let arguments = ["--interface-info-header", "--output", "/dev/null"];
        let out = Command::new("gdbus-codegen").args(arguments).arg(&path).output().unwrap();
        assert!(out.status.success(), "{file}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

/// Interfaces that packages of a system ship, where there are any.
#[test]
fn shipped_contracts_are_read() {
    let Ok(folder) = std::fs::read_dir("/usr/share/dbus-1/interfaces") else { return };
    for entry in folder {
        let path = entry.unwrap().path();
        let contract = dbus_xml::parse_file(&path).unwrap_or_else(|e| panic!("{e}"));
        settled(&contract, &path.to_string_lossy());
    }
}

#[test]
fn everything_the_format_has_is_read() {
    let contract = dbus_xml::parse_file(data("manager.xml")).unwrap();
    let names: Vec<&str> = contract.interfaces().map(|interface| interface.id.as_ref()).collect();
    assert_eq!(names, ["org.example.Manager1", "org.example.Reloadable", "org.example.Unit"]);
    let manager = contract.interface("org::example::Manager1").unwrap();
    assert_eq!(manager.doc, "Units & jobs,\none manager.");
    let operations: Vec<(&str, &str)> =
        manager.operations.iter().map(|o| (o.name.as_ref(), o.label.as_ref())).collect();
    assert_eq!(
        operations,
        [
            ("ListUnits", "ListUnits"),
            ("StartTransientUnit", "StartTransientUnit"),
            ("GetUnitProcesses", "GetUnitProcesses"),
            ("Reexecute", "Reexecute"),
            ("Status", "Status"),
            ("_get_Version", "Version"),
            ("_get_Environment", "Environment"),
            ("_set_Environment", "set_Environment"),
            ("_get_Secret", "Secret"),
            ("_set_Secret", "set_Secret"),
            ("_get_Status", "get_Status"),
        ]
    );
    assert!(matches!(manager.operations[0].returns, Shape::Sequence(_)));
    let processes = &manager.operations[2];
    let parameters: Vec<(Direction, &str)> =
        processes.parameters.iter().map(|p| (p.direction, p.field.name.as_ref())).collect();
    use Direction::{In, Out};
    assert_eq!(parameters, [(In, "unit_name"), (Out, "arg_2"), (Out, "name"), (Out, "name_2")]);
    assert!(manager.operations[3].oneway && manager.operations[3].doc == "Deprecated.");
    assert_eq!(manager.operations[4].doc, "How it <goes>.\nIn words.");
    let notify: Vec<(&str, Notify, Option<usize>)> =
        manager.attributes.iter().map(|a| (a.name.as_ref(), a.notify, a.setter)).collect();
    assert_eq!(
        notify,
        [
            ("Version", Notify::Constant, None),
            ("Environment", Notify::Value, Some(7)),
            ("Secret", Notify::Nothing, Some(9)),
            ("Status", Notify::Change, None),
        ]
    );
    let fields: Vec<&str> = manager.signals[0].fields.fields().iter().map(|f| f.name.as_ref()).collect();
    assert_eq!(fields, ["id", "job", "unit", "arg_4"]);
    assert_eq!(manager.attribute_of(7).map(|(a, set)| (a.name.as_ref(), set)), Some(("Environment", true)));
}

/// QtDBus has methods of one name with different arguments. On D-Bus they keep it; on the other wires each has a name of its own, which
/// is no other method's either.
#[test]
fn methods_of_one_name_have_names_of_their_own() {
    let text = |members: &str| format!("<node><interface name='a.b'>{members}</interface></node>");
    let overloads = text(
        "<method name='M'><arg type='s' direction='in'/></method><method name='M'><arg type='i' direction='in'/></method>
         <method name='M_2'/><method name='M'/><property name='M' type='i' access='read'/>",
    );
    let contract = parse(&overloads, "overloads.xml").unwrap();
    let names = |contract: &Contract| -> Vec<[String; 3]> {
        let interface = contract.interfaces().next().unwrap();
        let own =
            |o: &Operation| [o.name.to_string(), o.label.to_string(), names::of_operation(o).to_owned()];
        interface.operations.iter().map(own).collect()
    };
    let wanted = [
        ["M", "M", "M"],
        ["M_3", "M_3", "M"],
        ["M_2", "M_2", "M_2"],
        ["M_4", "M_4", "M"],
        ["_get_M", "get_M", "_get_M"],
    ];
    assert_eq!(names(&contract), wanted);
    let printed = print(&contract).unwrap();
    assert_eq!(printed.matches("<method name=\"M\"").count(), 3, "{printed}");
    assert_eq!(names(&parse(&printed, "again.xml").unwrap()), wanted);
}

/// A call, its answer and a signal have one signature each, of 255 octets at most (specification, "Valid Signatures").
#[test]
fn more_arguments_than_a_signature_holds_are_refused_where_they_stand() {
    let arguments =
        |direction: &str, number: usize| format!("<arg type='y' direction='{direction}'/>\n").repeat(number);
    let member = |kind: &str, inner: &str| {
        format!("<node><interface name='a.b'><{kind} name='m'>\n{inner}</{kind}></interface></node>")
    };
    for (kind, direction) in [("method", "in"), ("method", "out"), ("signal", "out")] {
        assert!(parse(&member(kind, &arguments(direction, 255)), "most.xml").is_ok());
        let found = parse(&member(kind, &arguments(direction, 256)), "more.xml").unwrap_err();
        assert_eq!((found.list.len(), found.list[0].line, found.list[0].column), (1, 257, 12), "{found}");
        assert!(found.to_string().contains("at most 255 octets"), "{found}");
    }
    let both = [arguments("in", 255), arguments("out", 255)].concat();
    assert!(parse(&member("method", &both), "both.xml").is_ok());
}

#[test]
fn a_node_is_one_object() {
    let node = parse_node(&std::fs::read_to_string(data("manager.xml")).unwrap()).unwrap();
    assert_eq!(node.name, "/org/example/manager");
    assert_eq!(node.children, ["unit", "jobs/one"]);
    assert_eq!(node.contract.interfaces().count(), 2);
    let interfaces: Vec<_> = node.contract.interfaces().map(|interface| &**interface).collect();
    let again = parse_node(&print_node(&interfaces, &node.children)).unwrap();
    assert_eq!(again.children, node.children);
    assert_eq!(outline(&again.contract), outline(&node.contract));
    let empty = parse_node(&print_node(&[], &[])).unwrap();
    assert!(empty.contract.definitions.is_empty() && empty.children.is_empty() && empty.name.is_empty());
}

/// No file can say a method without a reply that raises something; an object that serves one shows it without.
#[test]
fn an_object_shows_methods_without_a_reply_that_raise_something() {
    let idl = "exception Closed { long since; }; interface Shop { void poke(in long a) raises (Closed); };";
    let mut contract = everywire_idl::omg::parse(idl, "shop.idl").unwrap();
    let mut shop = Interface::clone(contract.interface("Shop").unwrap());
    shop.operations.to_mut()[0].oneway = true;
    contract.definitions.retain(|definition| !matches!(definition, Definition::Interface(_)));
    contract.definitions.push(Definition::Interface(Hold::new(shop.clone())));
    let refused = print(&contract).unwrap_err();
    assert!(refused.to_string().contains("raises nothing"), "{refused}");
    let text = print_node(&[&shop], &[]);
    let node = parse_node(&text).unwrap();
    let shown = &node.contract.interfaces().next().unwrap().operations;
    assert!(shown.len() == 1 && shown[0].oneway && shown[0].raises.is_empty(), "{text}");
}

#[test]
fn contracts_of_other_languages_are_printed() {
    let idl = "struct P { string name; sequence<long> n; };
        interface Base { attribute long n; void f(inout long v, out string s); };
        interface Shop : Base { P find(in string key); oneway void poke(in wchar c); };
        module M { interface Deep { any ask(in Shop who); }; };";
    let contract = everywire_idl::omg::parse(idl, "shop.idl").unwrap();
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.xml").unwrap();
    let names: Vec<&str> = again.interfaces().map(|interface| interface.id.as_ref()).collect();
    assert_eq!(names, ["everywire.Base", "everywire.Shop", "M.Deep"]);
    assert!(printed.contains(r#"<arg type="(sai)" name="result" direction="out"/>"#), "{printed}");
    assert!(printed.contains(r#"<property name="n" type="i" access="readwrite"/>"#), "{printed}");
    let shop = again.interface("everywire.Shop").unwrap();
    assert_eq!((shop.operations.len(), shop.operations[1].oneway), (2, true));
    let base = again.interface("everywire.Base").unwrap();
    assert_eq!(base.operations[0].parameters.len(), 3);
    // An object shows what it inherits under the name of the base, once.
    let shop = contract.interface("Shop").unwrap();
    let node = print_node(&[shop, contract.interface("Base").unwrap()], &[]);
    let names: Vec<String> =
        parse_node(&node).unwrap().contract.interfaces().map(|interface| interface.id.to_string()).collect();
    assert_eq!(names, ["everywire.Base", "everywire.Shop"]);
}

#[test]
fn what_has_no_signature_is_said() {
    let idl = "struct L { sequence<L> next; }; interface Tree { void good(); L bad(); };";
    let contract = everywire_idl::omg::parse(idl, "tree.idl").unwrap();
    let text = print(&contract).unwrap();
    assert!(text.contains("<!-- bad: ") && text.contains("<method name=\"good\""), "{text}");
    // Of this one nothing is left.
    let alone = everywire_idl::omg::parse(&idl.replace("void good(); ", ""), "tree.idl").unwrap();
    let refused = print(&alone).unwrap_err();
    assert_eq!(refused.place, "Tree.bad");
    assert!(refused.to_string().starts_with("D-Bus introspection XML cannot say Tree.bad: "), "{refused}");
    let node = print_node(&[contract.interface("Tree").unwrap()], &[]);
    assert!(node.contains("<!-- bad: "), "{node}");
    assert_eq!(parse_node(&node).unwrap().contract.interfaces().next().unwrap().operations.len(), 1);
}

#[test]
fn names_are_those_of_the_specification() {
    for good in ["a.b", "org.freedesktop.DBus", "_._", "a1.b2"] {
        assert!(names::is_interface(good), "{good}");
    }
    let long = format!("a.{}", "b".repeat(254));
    for bad in ["", "a", ".a", "a.", "a..b", "1a.b", "a.1b", "a-b.c", "a.é", &long] {
        assert!(!names::is_interface(bad), "{bad}");
    }
    assert!(names::is_member("_a1") && names::is_member("a".repeat(255)));
    assert!(!names::is_member("") && !names::is_member("1a") && !names::is_member("a.b"));
    assert!(!names::is_member("a".repeat(256)));
    for good in ["/", "/a", "/a/_/1"] {
        assert!(names::is_path(good), "{good}");
    }
    for bad in ["", "a", "//", "/a/", "/a//b", "/a-b", "/é"] {
        assert!(!names::is_path(bad), "{bad}");
    }
}

/// Each mistake, its line and column, and what was expected.
#[test]
fn mistakes_have_a_place() {
    let inside = |body: &str| format!("<node>\n <interface name=\"a.b\">\n{body}\n </interface>\n</node>");
    let cases = [
        ("<method name=\"M\"/>".to_owned(), 1, 2, "`<node>`"),
        ("<node><interface/></node>".to_owned(), 1, 8, "attribute `name`"),
        ("<node>\n<interface name=\"plain\"/></node>".to_owned(), 2, 18, "at least two names"),
        ("<node name=\"a-b\"/>".to_owned(), 1, 13, "joined by `/`"),
        (inside("<method name=\"1\"/>"), 3, 15, "no digit first"),
        (inside("<method/>"), 3, 2, "attribute `name`"),
        (inside("<method name=\"m\"><arg/></method>"), 3, 19, "attribute `type`"),
        (inside("<method name=\"m\"><arg type=\"ii\"/></method>"), 3, 29, "one complete type"),
        (inside("<method name=\"m\"><arg type=\"\u{e9}\"/></method>"), 3, 29, "one complete type"),
        (inside("<method name=\"m\"><arg type=\"i\" direction=\"up\"/></method>"), 3, 43, "`in` or `out`"),
        (inside("<property name=\"p\" type=\"i\"/>"), 3, 2, "attribute `access`"),
        (inside("<property name=\"p\" type=\"i\" access=\"rw\"/>"), 3, 37, "`readwrite`"),
        (inside("<signal name=\"s\"><arg type=\"a{vs}\"/></signal>"), 3, 29, "one complete type"),
        (inside("</method>"), 3, 1, "`</interface>`"),
        (inside("&evil;"), 3, 1, "`&amp;`"),
        ("<node>\n  <interface name='a.b'>".to_owned(), 2, 4, "`</interface>`"),
        ("<node name=\"&evil;\"/>".to_owned(), 1, 13, "evil"),
        ("<node name=\"/\" name=\"/\"/>".to_owned(), 1, 16, "duplicate"),
        ("<node/><node/>".to_owned(), 1, 8, "second element"),
        ("<node/>text".to_owned(), 1, 8, "outside"),
        ("".to_owned(), 1, 1, "no element"),
        ("<node>\u{1}</node>".to_owned(), 1, 7, "no character"),
        ("<node>&#1;</node>".to_owned(), 1, 7, "has not"),
        ("<node/><!DOCTYPE node>".to_owned(), 1, 8, "before the first element"),
        ("<?xml version='1.0' encoding='UTF-16'?><node a='\u{e9}'/>".to_owned(), 1, 1, "UTF-8"),
    ];
    for (text, line, column, told) in cases {
        let found = parse(&text, "bad.xml").expect_err(&text);
        let first = &found.list[0];
        assert_eq!((first.line, first.column), (line, column), "{text}\n{found}");
        assert!(found.to_string().contains(told), "{text}\n{found}");
    }
    let both = inside("<method name=\"1\"/><signal name=\"2\"/>");
    assert_eq!(parse(&both, "two.xml").unwrap_err().list.len(), 2);
    let not_text = Path::new(env!("CARGO_TARGET_TMPDIR")).join("latin1.xml");
    std::fs::write(&not_text, b"<node name=\"\xe9\"/>").unwrap();
    assert!(dbus_xml::parse_file(&not_text).unwrap_err().to_string().contains("not UTF-8 (byte 12)"));
}

/// Services say all of this of themselves, and others call them all the same.
#[test]
fn what_is_wrong_in_the_words_of_an_object_is_left_out_and_named() {
    let good = "<method name='Good'><arg name='a' type='i' direction='in'/></method>";
    let odd =
        "<annotation/><annotation name='org.freedesktop.DBus.Property.EmitsChangedSignal' value='yes'/>";
    let text = format!(
        "<node name='/a-b'>
           <node name='a-b'/><node/><node name='fine'/>
           <interface name='Plain'>{good}</interface>
           <interface name='org.example.W'>
             <method name='Pair'><arg type='tt' direction='out'/></method><method name='do-it'/><method/>
             <method name='Both'><arg type='i' direction='inout'/></method>{odd}{good}
             <property name='Open' type='i'/><property name='Level' type='d' access='read'>{odd}</property>
             <signal name='Gone'><arg type='a{{vs}}'/></signal><signal name='Told'><arg type='s'/></signal>
             <property name='Rate' type='i' access='readwrite'>
               <annotation name='everywire.Property.SetRaises' value='plain'/></property>
           </interface>
           <interface name='org.example.W'><method name='Second'/></interface>
         </node>"
    );
    let node = parse_node(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!((node.name.as_str(), node.children.as_slice()), ("", &["fine".to_owned()][..]));
    assert_eq!(node.contract.interfaces().count(), 1);
    let told = node.contract.interface("org::example::W").unwrap();
    let operations: Vec<&str> = told.operations.iter().map(|operation| operation.name.as_ref()).collect();
    assert_eq!(operations, ["Good", "_get_Level"]);
    assert_eq!((told.attributes.len(), told.attributes[0].getter, told.signals.len()), (1, 1, 1));
    let left_out: Vec<&str> = everywire_model::contract::left_out(&told.notes).collect();
    assert_eq!(
        left_out,
        [
            "`Pair`: `tt` is no type: exactly one complete type is needed here",
            "`do-it`: `do-it` is no name of a method",
            "a method: this method has no name",
            "`Both`: this is no direction of an argument",
            "`Gone`: `a{vs}` is no type: the key of a dict entry is a basic type (byte 2)",
            "`Open`: this property has no access",
            "`Rate`: `plain` is no name of an error",
        ]
    );
    // Who writes a file can mend it.
    assert!(parse(&text, "weird.xml").is_err());
    // A peer's text may be long; the notes of it are not.
    let many = format!("<node><interface name='a.b'>{}{good}</interface></node>", "<method/>".repeat(1000));
    let node = parse_node(&many).unwrap();
    let told = node.contract.interfaces().next().unwrap();
    assert_eq!((told.operations.len(), told.notes.len()), (1, 41));
    assert_eq!(told.notes[40].1, "more members that are wrong");
}

/// Text made to be dear: each is answered, and none takes long or much.
#[test]
fn hostile_data_are_answered() {
    let interface = |body: &str| format!("<node><interface name=\"a.b\">{body}</interface></node>");
    let attributes: String = (0..65).map(|n| format!(" a{n}=\"\"")).collect();
    let cases = [
        "<a>".repeat(1_000_000),
        "<node>".repeat(65) + &"</node>".repeat(65),
        format!("<node{attributes}/>"),
        format!("<node>{}</node>", "<a/>".repeat(300_000)),
        format!("<{}/>", "n".repeat(1_000_000)),
        format!("<node name=\"{}\"/>", "-".repeat(1_000_000)),
        interface(&format!("<method name=\"{}\"/>", "m".repeat(256))),
        interface(&"<method name=\"1\"/>".repeat(10_000)),
        interface(&format!("<method name=\"m\"><arg type=\"{}\"/></method>", "a".repeat(1_000_000))),
        interface(&format!("<method name=\"m\"><arg type=\"{}y\"/></method>", "y".repeat(254)).repeat(2000)),
        "<node ".repeat(100_000),
        "<!--".to_owned(),
        "<node><![CDATA[".to_owned(),
        "<!DOCTYPE ".repeat(1000),
        "&".repeat(1000),
        "<".repeat(100_000),
        "\u{feff}".repeat(1000),
        " ".repeat((4 << 20) + 1),
    ];
    for (number, text) in cases.iter().enumerate() {
        let refused = parse(text, "hostile.xml").expect_err(&format!("case {number}"));
        assert!(refused.list.len() <= 40 && refused.to_string().len() < 60_000, "case {number}: {refused}");
        // What is wrong in a member is left out of what an object tells.
        let notes: usize = parse_node(text).map_or(0, |node| {
            node.contract.interfaces().flat_map(|told| told.notes.iter()).map(|(_, note)| note.len()).sum()
        });
        assert!(notes < 10_000, "case {number}");
    }
    let deep = "<node>".repeat(64) + &"</node>".repeat(64);
    assert!(parse(&deep, "deep.xml").is_ok());
}

/// What a document type declares is neither fetched nor expanded.
#[test]
fn entities_are_never_expanded() {
    let lol: String =
        (1..10).map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10))).collect();
    let file = "<!ENTITY f SYSTEM \"file:///etc/passwd\">";
    let text = |body: &str| {
        format!(
            "<!DOCTYPE node SYSTEM \"file:///etc/passwd\" [<!ENTITY l0 \"lol\">{lol}{file}]><node>{body}</node>"
        )
    };
    let doc = "<interface name=\"a.b\"><doc:doc>see &l9;&f;&lt;</doc:doc></interface>";
    let contract = parse(&text(doc), "lol.xml").unwrap();
    assert_eq!(contract.interface("a.b").unwrap().doc, "see &l9;&f;<");
    let name = parse(&text("<interface name=\"a.&l9;\"/>"), "lol.xml").unwrap_err();
    assert!(name.to_string().contains("`a.&l9;` is no name of an interface"), "{name}");
    assert!(parse("<!DOCTYPE node><node>&l9;</node>", "lol.xml").is_err());
    settled(&contract, "lol.xml");
}

/// Whatever stands in the middle of a file, reading ends with an answer.
#[test]
fn damaged_data_are_answered() {
    for file in FILES {
        let text = std::fs::read_to_string(data(file)).unwrap();
        for (at, _) in text.char_indices().step_by(17) {
            let _ = parse(&text[..at], "cut.xml");
            let _ = parse(&text[at..], "cut.xml");
            let _ = parse_node(&format!("{}\"{}", &text[..at], &text[at..]));
        }
    }
}

/// What is printed can be read: a member whose arguments are too long together is left out, and the rest stays.
#[test]
fn more_arguments_than_a_signature_holds_are_not_printed() {
    let nine = format!("struct S {{ {} }};", (0..50).map(|n| format!("long a{n};")).collect::<String>());
    let five = "in S a, in S b, in S c, in S d, in S e";
    let text = format!("{nine}\ninterface I {{ void much({five}); void little(in S a); }};\n");
    let printed = print(&everywire_idl::omg::parse(&text, "much.idl").unwrap()).unwrap();
    assert!(printed.contains("much: a signature has at most 255 bytes"), "{printed}");
    assert_eq!(parse(&printed, "much.xml").unwrap().interfaces().next().unwrap().operations.len(), 1);
}
