//! The programs that everybody uses to look at D-Bus: systemd's `busctl`, GLib's `gdbus`, and those of the reference
//! implementation, against our servers and beside our clients.

use crate::common::foreign::{BUSES, Beside, bus, run, run_with, socket, until};
use crate::common::galley::{self, NAME, PATH};
use everywire::model::Hold;
use everywire::{Kind, Node};
use everywire_derby::buses::Bus;
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::{DIVISION_BY_ZERO, KEY};
use std::process::Command;
use std::time::Duration;

const INTERFACE: &str = NAME;

/// A kitchen on this bus.
fn serving(bus: &Bus) -> Node {
    let node = Node::new();
    node.listen(&format!("dbus:{}#{NAME}", bus.address())).expect("the bus lets it in");
    Galley::export(&node, KEY);
    node
}

fn tools(test: &str, programs: &[&str]) -> bool {
    here(test, programs)
}

fn busctl(bus: &Bus, arguments: &[&str]) -> String {
    run(Command::new("busctl")
        .args([&format!("--address={}", bus.address()), "--timeout=300", "--"])
        .args(arguments))
}

#[test]
fn busctl_calls_our_server() {
    let test = "busctl_calls_our_server";
    if !tools(test, &["busctl"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let _server = serving(&bus);
        let call = |arguments: &[&str]| busctl(&bus, &[&["call", NAME, PATH, INTERFACE], arguments].concat());
        assert_eq!(call(&["Nothing"]), "");
        assert_eq!(call(&["Divide", "ii", "17", "5"]).trim(), "ii 3 2");
        let basics = ["255", "true", "-2", "65534", "-3", "4294967293", "-4", "18446744073709551611", "0.25"];
        let got =
            call(&[&["EchoBasics", "ybnqiuxtdsog"], &basics[..], &["Grüße €", "/a/b", "a{sv}"]].concat());
        // Only what ASCII has is printed as it is.
        let prefix = format!("ybnqiuxtdsog {} \"Gr", basics.join(" "));
        assert!(got.starts_with(&prefix) && got.trim().ends_with("\"/a/b\" \"a{sv}\""), "{got}");
        let dicts = [
            "a{ys}a{oas}a{sa{sv}}",
            "2",
            "1",
            "one",
            "2",
            "two",
            "1",
            "/p",
            "2",
            "x",
            "y",
            "1",
            "k",
            "1",
            "v",
            "(yt)",
            "3",
            "4",
        ];
        let got = call(&[&["EchoDicts"], &dicts[..]].concat());
        assert_eq!(
            got.trim(),
            r#"a{ys}a{oas}a{sa{sv}} 2 1 "one" 2 "two" 1 "/p" 2 "x" "y" 1 "k" 1 "v" (yt) 3 4"#
        );
        assert_eq!(
            call(&["EchoVariant", "v", "a(is)", "2", "1", "a", "2", "b"]).trim(),
            r#"v a(is) 2 1 "a" 2 "b""#
        );
        assert_eq!(call(&["Total", "ai", "3", "1", "-2", "2147483647"]).trim(), "x 2147483646");

        let property = |name: &str| busctl(&bus, &["get-property", NAME, PATH, INTERFACE, name]);
        assert_eq!(property("Title").trim(), r#"s "kitchen""#);
        assert_eq!(property("Fixed").trim(), r#"(su) "fixed" 7"#);
        assert_eq!(property("Facts").trim(), r#"a{sv} 1 "answer" i 42"#);
        busctl(&bus, &["set-property", NAME, PATH, INTERFACE, "Title", "s", "galley"]);
        assert_eq!(property("Title").trim(), r#"s "galley""#);
        let refused = run_with(
            Command::new("busctl").arg(format!("--address={}", bus.address())).args([
                "set-property",
                NAME,
                PATH,
                INTERFACE,
                "Changes",
                "u",
                "1",
            ]),
            b"",
        );
        assert!(!refused.success && refused.err.contains("read-only"), "{}", refused.err);
        let failed = run_with(
            Command::new("busctl")
                .arg(format!("--address={}", bus.address()))
                .args(["call", NAME, PATH, INTERFACE, "Divide", "ii", "1", "0"]),
            b"",
        );
        assert!(!failed.success && failed.err.contains("1 cannot be divided by 0"), "{}", failed.err);
    }
}

#[test]
fn busctl_introspects_our_server() {
    let test = "busctl_introspects_our_server";
    if !tools(test, &["busctl"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let server = serving(&bus);
        Galley::export(&server, "org/example/Kitchen/pantry");
        Galley::export(&server, "deep/down/an odd-key");
        let introspected = busctl(&bus, &["introspect", NAME, PATH]);
        for (member, kind, rest) in [
            (".EchoDeep", "method", "aaaa(aya{t(ia(sv))})"),
            (".Divide", "method", "ii"),
            (".Title", "property", "\"kitchen\""),
            (".Changes", "property", "emits-invalidation"),
            (".Fixed", "property", "const"),
            (".Silent", "property", "-1"),
            (".Rich", "signal", "a{sv}(is)aov"),
            ("org.freedesktop.DBus.Introspectable", "interface", "-"),
            ("org.freedesktop.DBus.Peer", "interface", "-"),
            ("org.freedesktop.DBus.Properties", "interface", "-"),
            (".PropertiesChanged", "signal", "sa{sv}as"),
        ] {
            let line = introspected.lines().find(|line| line.split_whitespace().next() == Some(member));
            let line = line.unwrap_or_else(|| panic!("no {member} in\n{introspected}"));
            assert!(line.contains(kind) && line.contains(rest), "{line}");
        }
        let tree = run(Command::new("busctl")
            .arg(format!("--address={}", bus.address()))
            .args(["tree", "--list", NAME]));
        let mut paths: Vec<&str> = tree.lines().filter(|line| line.starts_with('/')).collect();
        paths.sort_unstable();
        let odd = "/deep/down/an_20odd_2dkey";
        for path in [odd, PATH, "/org/example/Kitchen/pantry"] {
            assert!(paths.contains(&path), "{path} is missing in {tree}");
        }
        // What could not be a path is spelled otherwise, and means the same object.
        assert_eq!(busctl(&bus, &["get-property", NAME, odd, INTERFACE, "Title"]).trim(), r#"s "kitchen""#);
        let listed = busctl(&bus, &["list"]);
        let line = listed.lines().find(|line| line.starts_with(NAME)).expect("the name is listed");
        assert!(line.contains(&std::process::id().to_string()), "{line}");
    }
}

#[test]
fn busctl_overhears_our_calls_and_signals() {
    let test = "busctl_overhears_our_calls_and_signals";
    if !tools(test, &["busctl"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let monitor = Beside::start(
            Command::new("stdbuf")
                .args(["-oL", "busctl", "monitor"])
                .arg(format!("--address={}", bus.address())),
        );
        until("it listens", || monitor.errors().contains("Monitoring"));
        let _server = serving(&bus);
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        kitchen.divide(17, 5).expect("divide");
        monitor.hear("Member=Divide");
        kitchen.fire(1).expect("fire");
        monitor.hear("Member=Tick");
        monitor.hear("\"tick 0\"");
        kitchen.divide(1, 0).expect_err("division by zero");
        monitor.hear(DIVISION_BY_ZERO);
    }
}

#[test]
fn gdbus_calls_introspects_monitors_and_waits() {
    let test = "gdbus_calls_introspects_monitors_and_waits";
    if !tools(test, &["gdbus"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let gdbus = |verb: &str, arguments: &[&str]| {
            let mut command = Command::new("gdbus");
            command.args([verb, "--address", bus.address()]).args(arguments);
            command
        };
        let mut wait = Command::new("gdbus");
        wait.env("DBUS_SESSION_BUS_ADDRESS", bus.address()).args([
            "wait",
            "--session",
            "--timeout",
            "300",
            NAME,
        ]);
        let waiting = Beside::start(&mut wait);
        let _server = serving(&bus);
        assert!(waiting.wait(), "gdbus sees the name come");
        let call = |method: &str, arguments: &[&str]| {
            let method = format!("{INTERFACE}.{method}");
            let words = ["--timeout", "300", "--dest", NAME, "--object-path", PATH, "--method", &method];
            run(gdbus("call", &words).args(arguments))
        };
        assert_eq!(call("Divide", &["17", "5"]).trim(), "(3, 2)");
        assert_eq!(
            call(
                "EchoDicts",
                &["{byte 1: 'one'}", "{objectpath '/p': ['x']}", "{'k': {'v': <(byte 3, uint64 4)>}}"]
            )
            .trim(),
            "({byte 0x01: 'one'}, {objectpath '/p': ['x']}, {'k': {'v': <(byte 0x03, uint64 4)>}})"
        );
        assert_eq!(call("EchoVariant", &["<[('a', 1.5)]>"]).trim(), "(<[('a', 1.5)]>,)");
        let xml = run(&mut gdbus("introspect", &["--dest", NAME, "--object-path", PATH, "--xml"]));
        assert!(xml.contains("interface name=\"org.example.Kitchen\""), "{xml}");
        let shown = run(&mut gdbus("introspect", &["--dest", NAME, "--object-path", PATH]));
        assert!(shown.contains("Title = 'kitchen'"), "{shown}");
        let monitor = Beside::start(&mut gdbus("monitor", &["--dest", NAME]));
        monitor.hear("is owned by");
        call("Fire", &["2"]);
        monitor.hear("org.example.Kitchen.Tick (uint32 1, 'tick 1')");
        call("FireRich", &["{'a': <1>}", "(7, 'seven')", "[objectpath '/a']", "<2.5>"]);
        monitor.hear("org.example.Kitchen.Rich ({'a': <1>}, (7, 'seven'), [objectpath '/a'], <2.5>)");
    }
}

#[test]
fn dbus_send_calls_over_buses_and_peer_to_peer() {
    let test = "dbus_send_calls_over_buses_and_peer_to_peer";
    if !tools(test, &["dbus-send"]) {
        return;
    }
    let check = |target: &[&str]| {
        let send = |arguments: &[&str]| {
            run(Command::new("dbus-send")
                .args(target)
                .args(["--print-reply=literal", "--reply-timeout=300000", PATH])
                .args(arguments))
        };
        let divided = send(&["org.example.Kitchen.Divide", "int32:17", "int32:5"]);
        assert_eq!(divided.split_whitespace().collect::<Vec<_>>(), ["int32", "3", "int32", "2"]);
        let echoed = send(&["org.example.Kitchen.EchoTexts", "array:string:a,b", "array:objpath:/x"]);
        assert!(echoed.contains('a') && echoed.contains("/x"), "{echoed}");
        let got =
            send(&["org.freedesktop.DBus.Properties.Get", "string:org.example.Kitchen", "string:Title"]);
        assert!(got.contains("kitchen"), "{got}");
        send(&["org.freedesktop.DBus.Peer.Ping"]);
        let id = send(&["org.freedesktop.DBus.Peer.GetMachineId"]);
        assert_eq!(id.trim().len(), 32, "{id}");
        let xml = send(&["org.freedesktop.DBus.Introspectable.Introspect"]);
        assert!(xml.contains("EchoDeep"), "{xml}");
        let failed = run_with(
            Command::new("dbus-send").args(target).arg("--print-reply").arg(PATH).args([
                "org.example.Kitchen.Divide",
                "int32:1",
                "int32:0",
            ]),
            b"",
        );
        assert!(!failed.success && failed.err.contains(DIVISION_BY_ZERO), "{}", failed.err);
    };
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let _server = serving(&bus);
        let (address, name) = (format!("--bus={}", bus.address()), format!("--dest={NAME}"));
        check(&[&address, &name]);
    }
    let (_, path) = socket("dbus-send");
    let node = Node::new();
    node.listen(&format!("dbus+unix://{}", path.display())).expect("it listens");
    Galley::export(&node, KEY);
    check(&[&format!("--peer=unix:path={}", path.display())]);
}

#[test]
fn dbus_monitor_sees_our_calls_and_signals() {
    let test = "dbus_monitor_sees_our_calls_and_signals";
    if !tools(test, &["dbus-monitor"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let monitor =
            Beside::start(Command::new("stdbuf").args(["-oL", "dbus-monitor", "--address", bus.address()]));
        // It is told of its own loss of a name when it begins.
        monitor.hear("NameLost");
        let _server = serving(&bus);
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        kitchen.divide(17, 5).expect("divide");
        let heard = monitor.hear("member=Divide").join("\n");
        assert!(heard.contains("path=/org/example/Kitchen; interface=org.example.Kitchen"), "{heard}");
        kitchen.fire(1).expect("fire");
        monitor.hear("member=Tick");
        monitor.hear("\"tick 0\"");
        kitchen.set_title("seen").expect("set_title");
        monitor.hear("member=PropertiesChanged");
        monitor.hear("\"seen\"");
    }
}

/// A oneway and a call without contract, of somebody else's interface.
fn object(node: &Node, bus: &Bus, name: &str) -> everywire::Object {
    node.object(&format!("dbus:{}#{name}/", bus.address())).expect("it parses")
}

/// `Spam` of `com.example`, as dbus-test-tool calls it.
fn spam() -> (everywire::Interface, everywire::model::Operation) {
    use everywire::model::describe::{Shape, TEXT};
    use everywire::model::shape::Field;
    use everywire::model::{Direction, Operation, Parameter};
    let field = Field { name: "payload".into(), shape: TEXT };
    let parameter = Parameter { direction: Direction::In, field };
    let operation = Operation::new("Spam", vec![parameter], Shape::Void);
    let mut interface =
        <dyn everywire_tests::dbus_kitchen::org::example::Kitchen as everywire::Remote>::interface().clone();
    interface.name = "com::example".into();
    interface.id = "com.example".into();
    interface.operations = vec![operation.clone()].into();
    interface.attributes = vec![].into();
    interface.signals = vec![].into();
    (interface, operation)
}

#[test]
fn dbus_test_tool_answers_and_keeps_silent() {
    let test = "dbus_test_tool_answers_and_keeps_silent";
    if !tools(test, &["dbus-test-tool"]) {
        return;
    }
    let (interface, operation) = spam();
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let start = |verb: &str, name: &str| {
            let mut tool = Command::new("dbus-test-tool");
            tool.env("DBUS_SESSION_BUS_ADDRESS", bus.address()).args([verb, &format!("--name={name}")]);
            let tool = Beside::start(&mut tool);
            let client = Node::new();
            let driver = format!("dbus:{}", bus.address());
            until("the tool has its name", || {
                client.list(&driver).expect("a list").iter().any(|one| one.name == name)
            });
            tool
        };
        let _echo = start("echo", "com.example.Echo");
        let client = Node::new();
        let echo = object(&client, &bus, "com.example.Echo").typed(Hold::new(interface.clone()));
        for payload in ["", "hello", &"x".repeat(1 << 20)] {
            let answered: Result<(), everywire::Failure> = echo.call(&operation, (payload,));
            answered.expect("it answers");
        }
        let _hole = start("black-hole", "com.example.BlackHole");
        let hole = object(&client, &bus, "com.example.BlackHole")
            .typed(Hold::new(interface.clone()))
            .with_deadline(Some(Duration::from_millis(200)));
        let answered: Result<(), everywire::Failure> = hole.call(&operation, ("hello",));
        assert_eq!(answered.expect_err("nobody answers").kind(), Kind::TimedOut);
        // The connection lives on, and so do its other calls.
        let answered: Result<(), everywire::Failure> = echo.call(&operation, ("again",));
        answered.expect("it answers");
    }
}

#[test]
fn dbus_test_tool_spams_our_server() {
    let test = "dbus_test_tool_spams_our_server";
    if !tools(test, &["dbus-test-tool"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let _server = serving(&bus);
        for way in [
            &["--count=500", "--queue=50"][..],
            &["--count=500", "--flood", "--bytes"],
            &["--count=500", "--no-reply"],
        ] {
            // It calls a method that nobody has: each call must be answered nevertheless.
            run(Command::new("dbus-test-tool")
                .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
                .args(["spam", "--ignore-errors", &format!("--dest={NAME}")])
                .args(way));
        }
        let client = Node::new();
        galley::results(&*galley::on_bus(&client, bus.address()));
    }
}
