//! What an object tells is as good as its file: for each language of contracts, wire and shape, `call` without a file gives what `call -c` gives.

use crate::support::{Running, Said, Scratch, run_in};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;

/// What objects of a wire cannot tell. DCOP's functions name types, and nothing says what a struct is made of. CORBA's repository has no
/// operations with maps, which cannot travel there either.
const UNTOLD: &[(&str, &[&str])] =
    &[("dcop", &["Point", "Points", "(id)", "a(id)"]), ("iiop", &["a{su}", "a{sv}", "QMap<QString,int>"])];

/// Where the object is served, at a path of the test's own.
const WIRES: [(&str, &str); 6] = [
    ("iiop", "iiop://127.0.0.1:0"),
    ("dbus", "dbus+unix://SCRATCH/dbus"),
    ("dcop", "dcop:echo"),
    ("dcom", "dcom+unix://SCRATCH/dcom"),
    ("net.tcp", "net.tcp://127.0.0.1:0?security=none"),
    ("basic", "basic://127.0.0.1:0?security=none"),
];

/// Answers each call with its argument.
const ECHO: &str = r#"
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({"id": call["id"], "results": {"return": call["arguments"]["x"]}}), flush=True)
"#;

/// A type of a language, and a value of it.
type Shape = (&'static str, &'static str);

const OMG: &[Shape] = &[
    ("boolean", "true"),
    ("octet", "200"),
    ("short", "-300"),
    ("unsigned short", "60000"),
    ("long", "-70000"),
    ("unsigned long", "4000000000"),
    ("long long", "-9007199254740993"),
    ("unsigned long long", "18446744073709551615"),
    ("float", "0.5"),
    ("double", "0.1"),
    ("char", "\"a\""),
    ("string", "\"gr\u{fc}n\""),
    ("wstring", "\"\u{4e16}\""),
    ("Longs", "[1, -2]"),
    ("Octets", "{\"base64\": \"AP8=\"}"),
    ("Texts", "[\"a\", \"\"]"),
    ("Colour", "\"GREEN\""),
    ("Point", "{\"x\": 1, \"y\": 0.5}"),
    ("Points", "[{\"x\": 1, \"y\": 0.5}]"),
];

const DBUS: &[Shape] = &[
    ("b", "true"),
    ("y", "200"),
    ("n", "-300"),
    ("q", "60000"),
    ("i", "-70000"),
    ("u", "4000000000"),
    ("x", "-9007199254740993"),
    ("t", "18446744073709551615"),
    ("d", "0.1"),
    ("s", "\"gr\u{fc}n\""),
    ("o", "\"/a/b\""),
    ("g", "\"a{sv}\""),
    ("ai", "[1, -2]"),
    ("ay", "{\"base64\": \"AP8=\"}"),
    ("as", "[\"a\", \"\"]"),
    ("(id)", "{\"field_1\": 1, \"field_2\": 0.5}"),
    ("a(id)", "[{\"field_1\": 1, \"field_2\": 0.5}]"),
    ("a{su}", "{\"a\": 1}"),
    ("v", "{\"shape\": \"i32\", \"value\": 5}"),
    ("a{sv}", "{\"a\": {\"shape\": \"text\", \"value\": \"b\"}}"),
];

const KIDL: &[Shape] = &[
    ("bool", "true"),
    ("uchar", "200"),
    ("short", "-300"),
    ("int", "-70000"),
    ("uint", "4000000000"),
    ("double", "0.1"),
    ("QString", "\"gr\u{fc}n\""),
    ("QCString", "\"abc\""),
    ("QStringList", "[\"a\", \"\"]"),
    ("QByteArray", "{\"base64\": \"AP8=\"}"),
    ("QValueList<int>", "[1, -2]"),
    ("QMap<QString,int>", "{\"a\": 1}"),
];

const MIDL: &[Shape] = &[
    ("VARIANT_BOOL", "true"),
    ("BYTE", "200"),
    ("short", "-300"),
    ("long", "-70000"),
    ("hyper", "-9007199254740993"),
    ("float", "0.5"),
    ("double", "0.1"),
    ("BSTR", "\"gr\u{fc}n\""),
    ("Point", "{\"x\": 1, \"y\": 0.5}"),
    ("VARIANT", "{\"shape\": \"i32\", \"value\": 5}"),
];

/// A contract with an operation for each shape.
fn contract(language: &str) -> (&'static str, &'static str, String, &'static [Shape]) {
    let each = |shapes: &[Shape], one: &dyn Fn(usize, &str) -> String| {
        shapes.iter().enumerate().fold(String::new(), |mut all, (number, (name, _))| {
            let _ = writeln!(all, "{}", one(number, name));
            all
        })
    };
    match language {
        "omg" => {
            let operations = each(OMG, &|number, name| format!("    {name} e{number}(in {name} x);"));
            let text = format!(
                "module Shapes {{\n  enum Colour {{ RED, GREEN }};\n  struct Point {{ long x; double y; }};\n  typedef sequence<long> Longs;\n  \
                 typedef sequence<octet> Octets;\n  typedef sequence<string> Texts;\n  typedef sequence<Point> Points;\n  \
                 interface Echo {{\n{operations}  }};\n}};\n"
            );
            ("echo.idl", "Echo", text, OMG)
        }
        "dbus" => {
            let operations = each(DBUS, &|number, name| {
                format!(
                    "<method name='e{number}'><arg name='x' type='{name}' direction='in'/><arg name='return' type='{name}' direction='out'/></method>"
                )
            });
            let text =
                format!("<node><interface name='org.example.Echo'>\n{operations}</interface></node>\n");
            ("echo.xml", "org.example.Echo", text, DBUS)
        }
        "kidl" => {
            let operations = each(KIDL, &|number, name| {
                let name = name.replace('<', "&lt;").replace('>', "&gt;");
                format!(
                    "<FUNC><TYPE>{name}</TYPE><NAME>e{number}</NAME><ARG><TYPE>{name}</TYPE><NAME>x</NAME></ARG></FUNC>"
                )
            });
            let text = format!(
                "<!DOCTYPE DCOP-IDL><DCOP-IDL><CLASS><NAME>Echo</NAME>\n{operations}</CLASS></DCOP-IDL>\n"
            );
            ("echo.kidl", "Echo", text, KIDL)
        }
        _ => {
            let operations = each(MIDL, &|number, name| {
                format!("  HRESULT e{number}([in] {name} x, [out, retval] {name} *result);")
            });
            let text = format!(
                "import \"oaidl.idl\";\ntypedef struct Point {{ long x; double y; }} Point;\n\
                 [object, uuid(9fd8ca65-850d-4f8d-b1bb-a2fcc8d6d1e0), oleautomation]\ninterface IEcho : IUnknown\n{{\n{operations}}};\n"
            );
            ("echo.midl", "IEcho", text, MIDL)
        }
    }
}

/// A value without the names of what has none on some wires, as all of them can be compared: structs are lists, maps are lists of pairs,
/// members of enumerations numbers, and all texts in an any alike.
fn nameless(value: &Json) -> Json {
    match value {
        Json::Object(fields) if fields.contains_key("base64") => value.clone(),
        Json::Object(fields) if fields.contains_key("shape") => {
            let shape = fields["shape"].as_str().map(|shape| shape.replace("wide text", "text"));
            json!({"shape": shape, "value": nameless(&fields["value"])})
        }
        Json::Object(fields) if fields.contains_key("x") || fields.contains_key("field_1") => {
            fields.values().map(nameless).collect()
        }
        Json::Object(fields) => fields.iter().map(|(key, value)| json!([key, nameless(value)])).collect(),
        Json::Array(items) => items.iter().map(nameless).collect(),
        Json::String(text) if text == "GREEN" => json!(1),
        other => other.clone(),
    }
}

/// The same as an argument, on wires whose types have no names.
fn unnamed(value: &Json) -> Json {
    let is_map = value.as_object().is_some_and(|fields| fields.contains_key("a"));
    if is_map { value.clone() } else { nameless(value) }
}

/// What came back: the value, or the kind of failure.
fn outcome(said: &Said) -> Json {
    let told = said.json();
    if said.code == 0 {
        let value = told["value"].as_object().and_then(|results| results.values().next().cloned());
        return json!({"value": value.map(|value| nameless(&value))});
    }
    json!({"failed": told["error"]["kind"]})
}

/// The pairs of calls of one language on one wire: what differs, and how many gave the value back.
fn compare(
    address: &str,
    wire: &str,
    file: &str,
    shapes: &[Shape],
    env: &[(&str, String)],
) -> (Vec<String>, usize) {
    let mut differ = Vec::new();
    let mut good = 0;
    for (number, (name, value)) in shapes.iter().enumerate() {
        let operation = format!("e{number}");
        let given: Json = serde_json::from_str(value).unwrap();
        let of =
            |list: &[(&str, &[&str])]| list.iter().any(|(on, types)| *on == wire && types.contains(name));
        if of(UNTOLD) {
            continue;
        }
        let call = |given: &Json, more: &[&str]| {
            let data = json!([given]).to_string();
            let words = ["call", address, operation.as_str(), "-d", data.as_str(), "--json"];
            run_in(env, &[&words[..], more].concat())
        };
        let with = call(&given, &["-c", file]);
        let plain = if ["dbus", "dcop"].contains(&wire) { unnamed(&given) } else { given.clone() };
        let without = call(&plain, &[]);
        let (told, expected) = (outcome(&without), outcome(&with));
        if told != expected {
            let (without, with) = (without.out.trim(), with.out.trim());
            differ.push(format!("{wire}: {name} {value}:\n    without {without}\n    with    {with}"));
        } else if told["value"] != nameless(&given) {
            differ.push(format!("{wire}: {name}: {given} came back as {expected}"));
        } else {
            good += 1;
        }
    }
    (differ, good)
}

#[test]
fn a_call_without_a_file_gives_what_a_call_with_it_gives() {
    let mut differ = Vec::new();
    for language in ["omg", "dbus", "kidl", "midl", "wsdl"] {
        let scratch = Scratch::new();
        let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
        let mut dcop = Running::start_in(&env, &["dcopserver", "--socket", &scratch.path("dcop")]);
        dcop.line();
        let program = scratch.path("echo.py");
        std::fs::write(&program, ECHO).unwrap();
        let (name, interface, text, shapes) = contract(if language == "wsdl" { "omg" } else { language });
        let mut file = scratch.path(name);
        std::fs::write(&file, text).unwrap();
        if language == "wsdl" {
            let printed = run_in(&[], &["describe", &file, "--as", "wsdl"]);
            file = scratch.path("echo.wsdl");
            std::fs::write(&file, printed.good()).unwrap();
        }
        let exec = format!("python3 {program}");
        let on: Vec<String> = WIRES.iter().map(|(_, on)| on.replace("SCRATCH", &scratch.path(""))).collect();
        let mut words =
            vec!["serve", &file, "--interface", interface, "--key", "echo", "--exec", &exec, "--json"];
        on.iter().for_each(|address| words.extend(["--on", address.as_str()]));
        let mut server = Running::start_in(&env, &words);
        let told: Json = serde_json::from_str(&server.line()).unwrap();
        let addresses: Vec<String> = told["value"]["addresses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect();
        let found: Vec<(Vec<String>, usize, &str)> = std::thread::scope(|scope| {
            let asked: Vec<_> = WIRES
                .iter()
                .map(|(wire, _)| {
                    let address = addresses.iter().find(|address| address.starts_with(wire));
                    let address = address.unwrap_or_else(|| panic!("{language} is not on {wire}: {told}"));
                    let (file, env) = (&file, &env);
                    scope.spawn(move || {
                        let (differ, good) = compare(address, wire, file, shapes, env);
                        (differ, good, *wire)
                    })
                })
                .collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        for (wrong, good, wire) in found {
            differ.extend(wrong.into_iter().map(|wrong| format!("{language} on {wrong}")));
            eprintln!("{language} on {wire}: {good} of {} shapes", shapes.len());
            if good + 4 < shapes.len() {
                differ.push(format!(
                    "{language} on {wire}: only {good} of {} shapes go there and back",
                    shapes.len()
                ));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
