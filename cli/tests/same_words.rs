//! The same words on each wire: what the demo's object is asked, by the same command on all of them.

use crate::support::{Running, Said, Scratch, run_in};
use serde_json::{Value as Json, json};
use std::os::unix::fs::PermissionsExt as _;

/// A demo of the test's own.
struct Demo {
    _running: Running,
    env: Vec<(&'static str, String)>,
    /// Wire and address of the tank.
    tanks: Vec<(String, String)>,
    contract: String,
    _scratch: Scratch,
}

impl Demo {
    fn start() -> Self {
        let scratch = Scratch::new();
        std::fs::set_permissions(scratch.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
        let env = vec![
            ("HOME", scratch.path("")),
            ("XDG_RUNTIME_DIR", scratch.path("")),
            ("ICEAUTHORITY", scratch.path("cookies")),
        ];
        let mut running = Running::start_in(&env, &["demo", "--json"]);
        let told: Json = serde_json::from_str(&running.line()).unwrap();
        let groups = told["value"].as_array().unwrap();
        let text = |group: &Json, what: &str| group[what].as_str().unwrap().to_owned();
        let tanks: Vec<(String, String)> = groups
            .iter()
            .filter(|group| group["wire"] != "opcda")
            .map(|group| (text(group, "wire"), text(group, "address")))
            .collect();
        assert_eq!(tanks.len(), 6, "{told}");
        let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/tank.xml");
        Self {
            _running: running,
            env,
            tanks,
            contract: contract.to_string_lossy().into_owned(),
            _scratch: scratch,
        }
    }

    fn run(&self, words: &[&str]) -> Said {
        run_in(&self.env, words)
    }

    /// Without a file: the object tells its contract.
    fn call(&self, address: &str, words: &[&str]) -> Said {
        self.run(&[&["call", address], words].concat())
    }
}

#[test]
fn an_object_that_is_not_there_is_exit_code_1_on_each_wire() {
    let demo = Demo::start();
    let mut wrong = Vec::new();
    for (wire, address) in &demo.tanks {
        let nobody = address.replace("tank", "nobody");
        assert_ne!(nobody, *address);
        for words in [
            vec!["describe", &nobody],
            vec!["describe", &nobody, "-c", &demo.contract],
            vec!["call", &nobody, "Fill", "5"],
            vec!["call", &nobody, "Fill", "5", "-c", &demo.contract],
        ] {
            let said = demo.run(&[&words[..], &["--json"]].concat());
            let no_object = said.json()["error"]["kind"] == "no-object";
            if said.code != 1 || !no_object {
                wrong.push(format!("{wire}: {words:?}: {} {}{}", said.code, said.out, said.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn attributes_are_called_by_their_names_on_each_wire() {
    let demo = Demo::start();
    let mut wrong = Vec::new();
    for (number, (wire, address)) in demo.tanks.iter().enumerate() {
        let contract: [&[&str]; 2] = [&["-c", &demo.contract], &[]];
        for (way, file) in contract.iter().enumerate() {
            let call = |words: &[&str]| demo.run(&[&["call", address.as_str()], words, file].concat());
            let name = format!("Tank {number}.{way}");
            for words in [vec![format!("Name={name}")], vec!["Name".to_owned(), format!("{name}!")]] {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let set = call(&words);
                let told = call(&["Name"]);
                let expected = words.last().unwrap().trim_start_matches("Name=");
                if set.code != 0 || told.code != 0 || told.out.trim_end() != expected {
                    wrong.push(format!("{wire}: {words:?} {file:?}: {}{}{}", set.err, told.out, told.err));
                }
            }
            let level = call(&["Level", "--json"]);
            if level.code != 0
                || !level.json()["value"]["return"].is_f64() && !level.json()["value"]["Level"].is_f64()
            {
                wrong.push(format!("{wire}: Level {file:?}: {}{}", level.out, level.err));
            }
            let written = call(&["Level=5"]);
            if written.code == 0 {
                wrong.push(format!("{wire}: what is read-only was written {file:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As docs/cli.md has it.
#[test]
fn a_failure_of_a_servant_is_told_as_the_documents_say() {
    let demo = Demo::start();
    for (wire, address) in &demo.tanks {
        let said = demo.call(address, &["Drain", "100000", "--json"]);
        assert_eq!(said.code, 1, "{wire}: {}", said.out);
        let error = said.json()["error"].clone();
        let (kind, code) = match wire.as_str() {
            // The name of an error is all that travels.
            "dbus" => ("internal", "org.example.Tank.Error.Empty"),
            // There are no errors, but that there was one.
            "dcop" => ("internal", ""),
            "iiop" => ("bad-argument", "CORBA::BAD_PARAM"),
            "dcom" => ("bad-argument", "0x80070057"),
            _ => ("bad-argument", "DeserializationFailed"),
        };
        assert_eq!(error["kind"], kind, "{wire}: {error}");
        assert!(error["code"].as_str().unwrap_or_default().contains(code), "{wire}: {error}");
        let text = error["message"].as_str().unwrap();
        assert!(wire == "dcop" || text.contains("litres are in the tank"), "{wire}: {error}");
    }
}

/// As docs/cli.md has it, too.
#[test]
fn codes_of_ones_own_arrive_where_the_wire_has_such_codes() {
    let scratch = Scratch::new();
    let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
    let mut dcop = Running::start_in(&env, &["dcopserver", "--socket", &scratch.path("dcop")]);
    dcop.line();
    let (file, program) = (scratch.path("failing.idl"), scratch.path("failing.py"));
    std::fs::write(&file, "interface Failing { void fail(in string code); };\n").unwrap();
    let text = "import json, sys\nfor line in sys.stdin:\n    call = json.loads(line)\n    \
                print(json.dumps({'id': call['id'], 'fail': 'so', 'code': call['arguments']['code']}), flush=True)\n";
    std::fs::write(&program, text).unwrap();
    let exec = format!("python3 {program}");
    let (bus, com) =
        (format!("dbus+unix://{}", scratch.path("bus")), format!("dcom+unix://{}", scratch.path("com")));
    let mut words = vec!["serve", &file, "--interface", "Failing", "--exec", &exec, "--json"];
    for on in ["iiop://127.0.0.1:0", &bus, "dcop:failing", &com, "net.tcp://127.0.0.1:0?security=none"] {
        words.extend(["--on", on]);
    }
    let mut server = Running::start_in(&env, &words);
    let told: Json = serde_json::from_str(&server.line()).unwrap();
    let own = ["org.example.Full", "0x80040a01", "{urn:x}Full", "CORBA::TRANSIENT"];
    for (wire, kept) in [("iiop", 3), ("dbus", 0), ("dcop", 9), ("dcom", 1), ("net.tcp", 2)] {
        let addresses = told["value"]["addresses"].as_array().unwrap();
        let address =
            addresses.iter().filter_map(Json::as_str).find(|address| address.starts_with(wire)).unwrap();
        for (number, code) in own.iter().enumerate() {
            let said = run_in(&env, &["call", address, "fail", code, "-c", &file, "--json"]);
            let error = said.json()["error"].clone();
            let arrived = error["code"].as_str().unwrap_or_default().contains(code);
            assert_eq!(arrived, number == kept, "{wire}: {code}: {error}");
            assert_eq!(error["kind"], "internal", "{wire}: {error}");
        }
    }
}

#[test]
fn describe_tells_what_attributes_hold() {
    let demo = Demo::start();
    for (wire, address) in &demo.tanks {
        let text = demo.run(&["describe", address]);
        let lines: Vec<&str> =
            text.good().lines().map(str::trim_start).filter(|line| line.contains(" = ")).collect();
        let told = |what: &str| lines.iter().any(|line| line.starts_with(what));
        assert!(told("attribute text Name") || told("attribute optional text Name"), "{wire}: {}", text.out);
        assert!(
            told("readonly attribute f64 Level") && text.out.contains("\"Tank 1\""),
            "{wire}: {}",
            text.out
        );
        assert!(!text.out.contains("_get_") && !text.out.contains("put_"), "{wire}: {}", text.out);
        if !["dbus", "dcom"].contains(&wire.as_str()) {
            // Their contracts know operations alone.
            continue;
        }
        let told = demo.run(&["describe", address, "--json"]).json();
        let all = told["value"]["interfaces"].as_array().unwrap();
        let mut attributes = all.iter().flat_map(|interface| interface["attributes"].as_array().unwrap());
        let name = attributes.find(|attribute| attribute["name"] == "Name").unwrap();
        assert_eq!(name["value"], "Tank 1", "{wire}: {told}");
        if wire == "dbus" {
            assert!(
                text.out.contains("attribute f64 Level = 100") && text.out.contains("[signature d, "),
                "{}",
                text.out
            );
            assert_eq!((&name["signature"], &name["notify"]), (&json!("s"), &json!("value")), "{told}");
            assert_eq!(name["readonly"], false, "{told}");
        }
    }
}

/// Every verb tells a mistake of the command line whole: what is wrong, and by which names.
#[test]
fn mistakes_of_a_command_line_are_whole_as_json() {
    let help = run_in(&[], &["--help"]);
    let verbs: Vec<&str> = help
        .good()
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // A text that goes on stands further in.
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() >= 15, "{verbs:?}");
    for verb in verbs {
        let said = run_in(&[], &[verb, "--quux", "--json"]);
        assert_eq!((said.code, said.err.as_str()), (2, ""), "{verb}");
        let error = said.json()["error"].clone();
        assert_eq!((&error["kind"], &error["completed"]), (&json!("usage"), &Json::Null), "{verb}: {error}");
        assert!(error["message"].as_str().unwrap().contains("--quux"), "{verb}: {error}");
        assert!(error["hint"].is_string(), "{verb}: {error}");
    }
    for (words, names) in [
        (vec!["call", "--json"], vec!["<REFERENCE>", "<OPERATION>"]),
        (vec!["describe", "--json"], vec!["<TARGET>"]),
        (vec!["serve", "--json"], vec!["<CONTRACT>", "--exec", "--on"]),
        (vec!["emit", "--json"], vec!["<REFERENCE>", "<SIGNAL>"]),
        (vec!["call", "x", "y", "--deadline", "soon", "--json"], vec!["soon", "--deadline"]),
        (vec!["serve", "x", "--latency", "high", "--json"], vec!["high", "--latency", "lowest"]),
        (vec!["call", "x", "y", "-c", "f", "--signature", "s", "--json"], vec!["--contract", "--signature"]),
        (vec!["frobnicate", "--json"], vec!["frobnicate"]),
    ] {
        let said = run_in(&[], &words);
        let told = said.json().to_string();
        assert_eq!(said.code, 2, "{words:?}");
        names.iter().for_each(|name| assert!(told.contains(name), "{name} of {words:?} in {told}"));
    }
}
