//! Programs that use other libraries of D-Bus, and one that uses none: GLib's GDBus, Python's dbus-fast and dbus-python,
//! and messages made by hand in both byte orders.

use crate::common::foreign::{
    BUSES, Beside, bus, contract, dbus_fast, glib_peer, run, script, socket, until,
};
use crate::common::galley::{self, NAME, PATH};
use everywire::{Node, Ref};
use everywire_derby::buses::{Bus, Program};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A kitchen on this bus.
fn serving(bus: &Bus) -> Node {
    let node = Node::new();
    node.listen(&format!("dbus:{}#{NAME}", bus.address())).expect("the bus lets it in");
    Galley::export(&node, KEY);
    node
}

fn glib_calls(test: &str, program: Program) {
    let (Some(peer), Some(bus)) = (glib_peer(test), bus(test, program)) else { return };
    let _server = serving(&bus);
    let said = run(Command::new(&peer).args(["call", "bus", bus.address(), NAME, PATH]));
    assert!(said.starts_with("ok "), "{said}");
}

fn glib_serves(test: &str, program: Program) {
    let (Some(peer), Some(bus)) = (glib_peer(test), bus(test, program)) else { return };
    let its = Beside::start(
        Command::new(&peer).args(["serve", "bus", bus.address(), NAME]).arg(contract("kitchen.dbus.xml")),
    );
    its.hear("ready");
    let client = Node::new();
    galley::everything(&client, &galley::on_bus(&client, bus.address()));
    galley::same_handles(&*galley::on_bus(&client, bus.address()));
}

#[test]
fn glib_calls_us_over_dbus_daemon() {
    glib_calls("glib_calls_us_over_dbus_daemon", Program::Daemon);
}

#[test]
fn glib_calls_us_over_dbus_broker() {
    glib_calls("glib_calls_us_over_dbus_broker", Program::Broker);
}

#[test]
fn glib_serves_us_over_dbus_daemon() {
    glib_serves("glib_serves_us_over_dbus_daemon", Program::Daemon);
}

#[test]
fn glib_serves_us_over_dbus_broker() {
    glib_serves("glib_serves_us_over_dbus_broker", Program::Broker);
}

#[test]
fn glib_calls_us_peer_to_peer() {
    let Some(peer) = glib_peer("glib_calls_us_peer_to_peer") else { return };
    let (_, socket) = socket("glib-ours");
    let node = Node::new();
    node.listen(&format!("dbus+unix://{}", socket.display())).expect("it listens");
    Galley::export(&node, KEY);
    let said =
        run(Command::new(&peer).args(["call", "peer", &format!("unix:path={}", socket.display()), PATH]));
    assert!(said.starts_with("ok "), "{said}");
}

#[test]
fn glib_serves_us_peer_to_peer() {
    let Some(peer) = glib_peer("glib_serves_us_peer_to_peer") else { return };
    let (_, socket) = socket("glib-theirs");
    let address = format!("unix:path={}", socket.display());
    let its = Beside::start(
        Command::new(&peer).args(["serve", "peer", &address]).arg(contract("kitchen.dbus.xml")),
    );
    its.hear("ready");
    let client = Node::new();
    let kitchen: Ref<dyn Kitchen> = client.connect(&format!("dbus:{address}#{PATH}")).expect("it parses");
    galley::everything(&client, &kitchen);
    galley::same_handles(&*kitchen);
}

#[test]
fn glibs_object_manager_sees_our_objects_come_and_go() {
    let test = "glibs_object_manager_sees_our_objects_come_and_go";
    let Some(peer) = glib_peer(test) else { return };
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let server = serving(&bus);
        Galley::export(&server, "org/example/Kitchen/first");
        let manager = Beside::start(Command::new(&peer).args(["manager", bus.address(), NAME, PATH]));
        let seen = manager.hear("ready");
        let first = seen
            .iter()
            .find(|line| line.starts_with("object /org/example/Kitchen/first "))
            .expect("it is there");
        // With its properties, so no further call is needed.
        assert!(first.contains("org.example.Kitchen='kitchen'"), "{first}");
        Galley::export(&server, "org/example/Kitchen/second");
        let added = manager.hear("added /org/example/Kitchen/second");
        assert!(added.last().expect("a line").contains("org.example.Kitchen='kitchen'"), "{added:?}");
        server.withdraw("org/example/Kitchen/first");
        manager.hear("removed /org/example/Kitchen/first");
    }
}

#[test]
fn glib_sees_our_name_come_and_go() {
    let test = "glib_sees_our_name_come_and_go";
    let Some(peer) = glib_peer(test) else { return };
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let watch = Beside::start(Command::new(&peer).args(["watch", bus.address(), NAME]));
        watch.hear("vanished");
        let server = serving(&bus);
        watch.hear("appeared org.example.Kitchen :1.");
        server.stop();
        watch.hear("vanished");
        assert!(watch.wait());
    }
}

/// A library of Python calls us and serves us, over both buses.
fn in_python(test: &str, python: &Path, peer: &str) {
    let peer = script(peer);
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let does = |what: &str| {
            let mut command = Command::new(python);
            command.arg(&peer).args([what, bus.address(), NAME]);
            command
        };
        {
            let _server = serving(&bus);
            let said = run(&mut does("call"));
            assert!(said.starts_with("ok"), "{said}");
        }
        let its = Beside::start(&mut does("serve"));
        its.hear("ready");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        galley::values(&*kitchen);
        galley::large(&*kitchen, &[0, 1, 100_000, 8 << 20]);
        galley::handles(&*kitchen);
        // dbus-fast gives up where a socket is full: no flood.
        galley::signals(&kitchen, 20);
        galley::properties(&client, &kitchen);
        galley::oneways(&*kitchen);
    }
}

#[test]
fn dbus_fast_calls_us_and_serves_us() {
    let test = "dbus_fast_calls_us_and_serves_us";
    let Some(python) = dbus_fast(test) else { return };
    in_python(test, &python, "dbus_fast_peer.py");
}

#[test]
fn dbus_python_calls_us_and_serves_us() {
    let test = "dbus_python_calls_us_and_serves_us";
    if here(test, &["dbus-python"]) {
        // Debian's own Python has it.
        in_python(test, Path::new("/usr/bin/python3"), "dbus_python_peer.py");
    }
}

/// What a server made by hand can do.
pub(crate) fn check_raw(kitchen: &Ref<dyn Kitchen>) {
    galley::values(&**kitchen);
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ticks);
    let _subscription = kitchen
        .signals()
        .on(move |tick: KitchenTick| noted.lock().expect("whole").push((tick.i, tick.text)))
        .expect("a subscription");
    kitchen.fire(3).expect("fire");
    until("its signals come", || ticks.lock().expect("whole").len() == 3);
    assert_eq!(ticks.lock().expect("whole")[2], (2, "tick 2".to_owned()));
    assert_eq!(kitchen.title().expect("title"), "raw");
}

fn raw(arguments: &[&str], address: &Path, name: &str, order: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(script("dbus_raw.py")).args(arguments).arg(address).args([name, order]);
    command
}

#[test]
fn both_byte_orders_work_over_both_buses() {
    let test = "both_byte_orders_work_over_both_buses";
    if !here(test, &["python3"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        for order in ["l", "B"] {
            {
                let _server = serving(&bus);
                let said = run(&mut raw(&["call"], &bus.socket(), NAME, order));
                assert!(said.starts_with("ok "), "{said}");
            }
            let its = Beside::start(&mut raw(&["serve"], &bus.socket(), NAME, order));
            its.hear("ready");
            let client = Node::new();
            check_raw(&galley::on_bus(&client, bus.address()));
        }
    }
}

#[test]
fn both_byte_orders_work_peer_to_peer() {
    if !here("both_byte_orders_work_peer_to_peer", &["python3"]) {
        return;
    }
    for order in ["l", "B"] {
        let (_, ours) = socket(&format!("raw-ours-{order}"));
        let (_, theirs) = socket(&format!("raw-theirs-{order}"));
        let node = Node::new();
        node.listen(&format!("dbus+unix://{}", ours.display())).expect("it listens");
        Galley::export(&node, KEY);
        let mut call = raw(&["call"], &ours, "-", order);
        let said = run(&mut call);
        assert!(said.starts_with("ok "), "{said}");
        let its = Beside::start(&mut raw(&["listen"], &theirs, "-", order));
        its.hear("ready");
        let client = Node::new();
        let kitchen: Ref<dyn Kitchen> =
            client.connect(&format!("dbus+unix://{}#{KEY}", theirs.display())).expect("it parses");
        check_raw(&kitchen);
    }
}
