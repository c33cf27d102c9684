//! D-Bus from the command line, as a user has it.

use crate::common;
use crate::common::foreign::{
    BUSES, Beside, bus, bus_with, contract, everywire, run, run_with, script, socket, until,
};
use crate::common::galley::{NAME, PATH};
use everywire::Node;
use everywire_derby::buses::{Bus, Program, Settings};
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::{DIVISION_BY_ZERO, KEY};
use std::process::Command;

fn serving(bus: &Bus) -> Node {
    let node = Node::new();
    node.listen(&format!("dbus:{}#{NAME}", bus.address())).expect("the bus lets it in");
    Galley::export(&node, KEY);
    node
}

/// The program on the session of this bus.
fn program(bus: &Bus, arguments: &[&str]) -> Command {
    let mut command = everywire();
    command.env("DBUS_SESSION_BUS_ADDRESS", bus.address()).args(arguments);
    command
}

const KITCHEN: &str = "dbus:session/org.example.Kitchen/org/example/Kitchen";

#[test]
fn list_shows_who_is_there() {
    for which in BUSES {
        let Some(bus) = bus("list_shows_who_is_there", which) else { return };
        let _server = serving(&bus);
        let names = run(&mut program(&bus, &["list", "dbus:session"]));
        let line = names.lines().find(|line| line.starts_with(NAME)).unwrap_or_else(|| panic!("{names}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1], std::process::id().to_string());
        assert!(words.iter().any(|word| word.starts_with(":1.")), "{line}");
        let objects = run(&mut program(&bus, &["list", &format!("dbus:session/{NAME}")]));
        assert!(objects.lines().any(|line| line.starts_with(PATH) && line.contains(NAME)), "{objects}");
        let json = run(&mut program(&bus, &["list", "dbus:session", "--json"]));
        assert!(
            json.contains(r#""name":"org.example.Kitchen","address":"dbus:session/org.example.Kitchen""#),
            "{json}"
        );
    }
}

#[test]
fn describe_and_call_need_no_files() {
    for which in BUSES {
        let Some(bus) = bus("describe_and_call_need_no_files", which) else { return };
        let _server = serving(&bus);
        let described = run(&mut program(&bus, &["describe", KITCHEN]));
        for part in [
            "Divide(a: i32, b: i32, out quotient: i32, out remainder: i32)",
            "attribute text Title",
            "signal Tick(u32 i, text text)",
        ] {
            assert!(described.contains(part), "no `{part}` in\n{described}");
        }
        let call = |arguments: &[&str]| run(&mut program(&bus, &[&["call", KITCHEN], arguments].concat()));
        assert_eq!(call(&["Divide", "17", "5"]), "quotient = 3\nremainder = 2\n");
        assert_eq!(call(&["Title"]), "kitchen\n");
        call(&["Title=galley"]);
        assert_eq!(call(&["Title"]), "galley\n");
        assert_eq!(call(&["Total", "[1, 2, 3]"]), "6\n");
        let told = call(&[
            "EchoDicts",
            r#"[[1,"one"]]"#,
            r#"{"/p":["x"]}"#,
            r#"{"k":{"v":{"shape":"f64","value":2.5}}}"#,
        ]);
        assert!(told.contains("one") && told.contains("/p") && told.contains("2.5"), "{told}");
        let failed = run_with(&mut program(&bus, &["call", KITCHEN, "Divide", "1", "0"]), b"");
        assert!(!failed.success && failed.err.contains(DIVISION_BY_ZERO), "{}", failed.err);
        // The bus is an object like others.
        let owner = run(&mut program(
            &bus,
            &["call", "dbus:session/org.freedesktop.DBus/org/freedesktop/DBus", "NameHasOwner", NAME],
        ));
        assert_eq!(owner, "true\n");
    }
}

/// dbus-python's objects list no `Peer`, which libdbus answers for them.
#[test]
fn what_every_object_has_is_called_though_it_does_not_tell() {
    let test = "what_every_object_has_is_called_though_it_does_not_tell";
    if !here(test, &["dbus-python"]) {
        return;
    }
    let Some(bus) = bus(test, Program::Daemon) else { return };
    let mut command = Command::new("/usr/bin/python3");
    command.arg(script("dbus_python_peer.py")).args(["serve", bus.address(), NAME]);
    let server = Beside::start(&mut command);
    server.hear("ready");
    let described = run(&mut program(&bus, &["describe", KITCHEN]));
    assert!(!described.contains("org.freedesktop.DBus.Peer"), "{described}");
    let call = |arguments: &[&str]| run(&mut program(&bus, &[&["call", KITCHEN], arguments].concat()));
    let contract = contract("kitchen.dbus.xml").display().to_string();
    assert_eq!(call(&["Ping", "--interface", "org.freedesktop.DBus.Peer"]), "");
    assert_eq!(call(&["org.freedesktop.DBus.Peer.Ping"]), "");
    assert_eq!(call(&["Ping", "-c", &contract]), "");
    let machine = call(&["GetMachineId"]);
    assert!(machine.trim().len() == 32, "{machine}");
    let told = call(&["Get", NAME, "Title", "--interface", "org.freedesktop.DBus.Properties"]);
    assert!(told.contains("kitchen"), "{told}");
}

/// Ends what a thread does again and again, also where the test fails.
struct Over<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn watch_prints_signals_and_changes() {
    for which in BUSES {
        let Some(bus) = bus("watch_prints_signals_and_changes", which) else { return };
        let server = serving(&bus);
        let client = Node::new();
        let kitchen = common::galley::on_bus(&client, bus.address());
        for (extra, parts) in [
            (&["--count", "3"][..], ["org.example.Kitchen.Tick {i: 0, text: \"tick 0\"}", "tick 1"]),
            (&["--count", "3", "--json"], [r#""signal":"Tick","fields":{"i":0,"text":"tick 0"}"#, "tick 1"]),
        ] {
            let watch = Beside::start(&mut program(&bus, &[&["watch", KITCHEN], extra].concat()));
            // It says nothing before the first signal: fire until it has come. The first may be either of both.
            let over = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                let _over = Over(&over);
                scope.spawn(|| {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        kitchen.fire(2).expect("fire");
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                });
                watch.hear(parts[0]);
                watch.hear(parts[1]);
                assert!(watch.wait());
            });
        }
        let watch = Beside::start(&mut program(&bus, &["watch", &format!("dbus:session/{NAME}")]));
        // Titles change until it has heard of one: it says nothing before.
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = Over(&over);
            scope.spawn(|| {
                for title in 0.. {
                    kitchen.set_title(&format!("title {title}")).expect("set_title");
                    if over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            });
            watch.hear("PropertiesChanged");
        });
        server.stop();
        until("the loss is told", || watch.errors().contains("lost"));
    }
}

#[test]
fn trace_overhears_a_bus() {
    for which in BUSES {
        let Some(bus) = bus("trace_overhears_a_bus", which) else { return };
        let _server = serving(&bus);
        let trace = Beside::start(&mut program(&bus, &["trace", "dbus:session"]));
        let client = Node::new();
        let kitchen = common::galley::on_bus(&client, bus.address());
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    kitchen.divide(17, 5).expect("divide");
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            });
            trace.hear("METHOD_CALL");
            trace.hear("Divide for org.example.Kitchen");
            trace.hear("METHOD_RETURN");
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}

/// A kitchen in a program that knows nothing but lines of JSON.
const SCRIPT: &str = r#"
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    operation, arguments = call["operation"], call["arguments"]
    if operation == "Divide" and arguments["b"] == 0:
        answer = {"fail": "nothing can be divided by zero"}
    elif operation == "Divide":
        answer = {"results": {"quotient": arguments["a"] // arguments["b"], "remainder": arguments["a"] % arguments["b"]}}
    elif operation == "_get_Title":
        answer = {"results": {"return": "by a script"}}
    elif operation == "EchoVariant":
        answer = {"results": {"return": arguments["v"]}}
    else:
        answer = {"fail": operation}
    print(json.dumps({"id": call["id"], **answer}), flush=True)
"#;

#[test]
fn serve_offers_a_script_to_every_tool() {
    if !here("serve_offers_a_script_to_every_tool", &["python3", "busctl"]) {
        return;
    }
    let (dir, path) = socket("serve");
    let script = dir.join("kitchen.py");
    std::fs::write(&script, SCRIPT).expect("a script");
    for which in BUSES {
        let Some(bus) = bus("serve_offers_a_script_to_every_tool", which) else { return };
        // Left by the other bus's server.
        let _ = std::fs::remove_file(&path);
        let contract = contract("kitchen.dbus.xml").display().to_string();
        let exec = format!("python3 {}", script.display());
        let (on_bus, direct) = (format!("dbus:session/{NAME}"), format!("dbus+unix://{}", path.display()));
        let server = Beside::start(&mut program(
            &bus,
            &[
                "serve",
                &contract,
                "--interface",
                NAME,
                "--exec",
                &exec,
                "--key",
                KEY,
                "--on",
                &on_bus,
                "--on",
                &direct,
            ],
        ));
        until("it listens", || {
            let said = run_with(&mut program(&bus, &["call", KITCHEN, "Divide", "17", "5"]), b"");
            said.out == "quotient = 3\nremainder = 2\n"
        });
        let busctl = |arguments: &[&str]| {
            run(Command::new("busctl").arg(format!("--address={}", bus.address())).args(arguments))
        };
        assert_eq!(busctl(&["call", NAME, PATH, NAME, "Divide", "ii", "17", "5"]).trim(), "ii 3 2");
        assert_eq!(busctl(&["get-property", NAME, PATH, NAME, "Title"]).trim(), r#"s "by a script""#);
        assert_eq!(
            busctl(&["call", NAME, PATH, NAME, "EchoVariant", "v", "as", "2", "a", "b"]).trim(),
            r#"v as 2 "a" "b""#
        );
        let failed =
            run_with(&mut program(&bus, &["call", &format!("{direct}#{KEY}"), "Divide", "1", "0"]), b"");
        assert!(!failed.success && failed.err.contains("nothing can be divided by zero"), "{}", failed.err);
        drop(server);
    }
}

/// The bus starts the program for the first call, which waits at the bus until the name is taken: by then the object must be there.
#[test]
fn a_bus_starts_a_server_and_its_first_call_finds_the_object() {
    let test = "a_bus_starts_a_server_and_its_first_call_finds_the_object";
    if !here(test, &["python3"]) {
        return;
    }
    let (dir, _) = socket("started");
    let script = dir.join("kitchen.py");
    std::fs::write(&script, SCRIPT).expect("a script");
    let serve = everywire();
    let command = format!(
        "{} serve {} --interface {NAME} --exec 'python3 {}' --key {KEY} --on dbus:session/{NAME}",
        serve.get_program().to_string_lossy(),
        contract("kitchen.dbus.xml").display(),
        script.display()
    );
    let service = format!("[D-BUS Service]\nName={NAME}\nExec={command}\n");
    std::fs::write(dir.join("kitchen.service"), service).expect("a service file");
    let extra = format!("<servicedir>{}</servicedir>", dir.display());
    let Some(bus) = bus_with(test, Program::Daemon, &Settings { extra, ..Settings::default() }) else {
        return;
    };
    let the_bus = "dbus:session/org.freedesktop.DBus/org/freedesktop/DBus";
    for _ in 0..3 {
        assert_eq!(
            run(&mut program(&bus, &["call", KITCHEN, "Divide", "17", "5"])),
            "quotient = 3\nremainder = 2\n"
        );
        let pid = run(&mut program(&bus, &["call", the_bus, "GetConnectionUnixProcessID", NAME]));
        // It was started by this test's own bus.
        run(Command::new("sh").args(["-c", &format!("kill {pid}")]));
        until("it has ended", || {
            run(&mut program(&bus, &["call", the_bus, "NameHasOwner", NAME])).contains("false")
        });
    }
}
