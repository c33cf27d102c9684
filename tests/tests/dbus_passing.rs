//! A hop of D-Bus between programs that use other libraries, without any contract: GDBus, sd-bus, and messages made by hand in both
//! byte orders; peer to peer, and with a bus on either side.

use crate::common::foreign::{
    BUSES, Beside, bus, contract, glib_peer, run, script, sdbus_peer, socket, until,
};
use crate::common::forwarder::Hop;
use crate::common::galley::{self, NAME, PATH};
use crate::dbus_peers::check_raw;
use everywire::{Node, Ref};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A hop at a socket of its own, to whoever is behind this reference.
fn hop_to(name: &str, backend: &str) -> (Node, PathBuf) {
    let (_, path) = socket(name);
    (Hop::between(&format!("dbus+unix://{}", path.display()), backend, &[]), path)
}

/// A kitchen on GLib that serves at a socket.
fn glib_kitchen(peer: &Path, name: &str) -> (Beside, String) {
    let (_, path) = socket(name);
    let address = format!("unix:path={}", path.display());
    let its =
        Beside::start(Command::new(peer).args(["serve", "peer", &address]).arg(contract("kitchen.dbus.xml")));
    its.hear("ready");
    (its, format!("dbus:{address}#{PATH}"))
}

#[test]
fn a_hop_passes_everything_peer_to_peer() {
    let Some(peer) = glib_peer("a_hop_passes_everything_peer_to_peer") else { return };
    let (_its, backend) = glib_kitchen(&peer, "pass-glib");
    let (_hop, path) = hop_to("pass-hop", &backend);
    let address = format!("unix:path={}", path.display());
    let said = run(Command::new(&peer).args(["call", "peer", &address, PATH]));
    assert!(said.starts_with("ok "), "{said}");
    let client = Node::new();
    let kitchen: Ref<dyn Kitchen> = client.connect(&format!("dbus:{address}#{PATH}")).expect("it parses");
    galley::everything(&client, &kitchen);
    galley::same_handles(&*kitchen);
    // One hop behind the other.
    let (_second, path) = hop_to("pass-second", &format!("dbus:{address}#{PATH}"));
    let kitchen: Ref<dyn Kitchen> =
        client.connect(&format!("dbus+unix://{}#{KEY}", path.display())).expect("it parses");
    galley::everything(&client, &kitchen);
}

#[test]
fn a_hop_on_a_bus_passes_to_a_peer() {
    let test = "a_hop_on_a_bus_passes_to_a_peer";
    let Some(peer) = glib_peer(test) else { return };
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let (_its, backend) = glib_kitchen(&peer, "pass-behind");
        let _hop = Hop::between(&format!("dbus:{}#{NAME}", bus.address()), &backend, &[]);
        let said = run(Command::new(&peer).args(["call", "bus", bus.address(), NAME, PATH]));
        assert!(said.starts_with("ok "), "{said}");
        let client = Node::new();
        galley::everything(&client, &galley::on_bus(&client, bus.address()));
    }
}

#[test]
fn a_hop_passes_a_peer_to_a_bus() {
    let test = "a_hop_passes_a_peer_to_a_bus";
    let Some(peer) = glib_peer(test) else { return };
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let its = Beside::start(
            Command::new(&peer).args(["serve", "bus", bus.address(), NAME]).arg(contract("kitchen.dbus.xml")),
        );
        its.hear("ready");
        let (_hop, path) = hop_to("pass-to-bus", &format!("dbus:{}#{NAME}{PATH}", bus.address()));
        let address = format!("unix:path={}", path.display());
        let said = run(Command::new(&peer).args(["call", "peer", &address, PATH]));
        assert!(said.starts_with("ok "), "{said}");
        let client = Node::new();
        let kitchen: Ref<dyn Kitchen> = client.connect(&format!("dbus:{address}#{PATH}")).expect("it parses");
        galley::everything(&client, &kitchen);
    }
}

#[test]
fn a_hop_keeps_both_byte_orders() {
    if !here("a_hop_keeps_both_byte_orders", &["python3"]) {
        return;
    }
    for order in ["l", "B"] {
        let raw = |arguments: &[&str], address: &Path| {
            let mut command = Command::new("python3");
            command.arg(script("dbus_raw.py")).args(arguments).arg(address).args(["-", order]);
            command
        };
        let (_, ours) = socket(&format!("pass-ours-{order}"));
        let server = Node::new();
        server.listen(&format!("dbus+unix://{}", ours.display())).expect("it listens");
        Galley::export(&server, KEY);
        let backend = format!("dbus+unix://{}#{KEY}", ours.display());
        let (_hop, path) = hop_to(&format!("pass-from-{order}"), &backend);
        let said = run(&mut raw(&["call"], &path));
        assert!(said.starts_with("ok "), "{said}");
        let (_, theirs) = socket(&format!("pass-theirs-{order}"));
        let its = Beside::start(&mut raw(&["listen"], &theirs));
        its.hear("ready");
        let backend = format!("dbus+unix://{}#{KEY}", theirs.display());
        let (_hop, path) = hop_to(&format!("pass-to-{order}"), &backend);
        let client = Node::new();
        check_raw(&client.connect(&format!("dbus+unix://{}#{KEY}", path.display())).expect("it parses"));
    }
}

#[test]
fn sd_bus_calls_gdbus_by_a_hop() {
    let test = "sd_bus_calls_gdbus_by_a_hop";
    let (Some(sdbus), Some(glib)) = (sdbus_peer(test), glib_peer(test)) else { return };
    let (_its, backend) = glib_kitchen(&glib, "pass-gdbus");
    let (_hop, path) = hop_to("pass-sdbus", &backend);
    assert_eq!(run(Command::new(&sdbus).arg("call").arg(&path)), "ok sd-bus\n");
}

#[test]
fn gdbus_and_we_call_sd_bus_by_a_hop() {
    let test = "gdbus_and_we_call_sd_bus_by_a_hop";
    let Some(sdbus) = sdbus_peer(test) else { return };
    let (_, theirs) = socket("pass-sd");
    let its = Beside::start(Command::new(&sdbus).arg("serve").arg(&theirs));
    its.hear("ready");
    let backend = format!("dbus+unix://{}#{KEY}", theirs.display());
    let (_hop, path) = hop_to("pass-to-sd", &backend);
    assert_eq!(run(Command::new(&sdbus).arg("call").arg(&path)), "ok sd-bus\n");
    let client = Node::new();
    let kitchen: Ref<dyn Kitchen> =
        client.connect(&format!("dbus+unix://{}#{KEY}", path.display())).expect("it parses");
    galley::values(&*kitchen);
    galley::same_handles(&*kitchen);
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ticks);
    let _subscription = kitchen
        .signals()
        .on(move |tick: KitchenTick| noted.lock().expect("whole").push(tick.i))
        .expect("a subscription");
    kitchen.fire(300).expect("fire");
    until("signals come", || ticks.lock().expect("whole").len() == 300);
    assert!(ticks.lock().expect("whole").iter().copied().eq(0..300));
    let failure = kitchen.open("x").expect_err("it has no such method");
    assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.UnknownMethod"), "{failure}");
    assert!(failure.message().contains("Open"), "in its own words: {failure}");
    for program in BUSES {
        let (true, Some(bus)) = (here(test, &["busctl", "gdbus"]), bus(test, program)) else { return };
        let _hop = Hop::between(&format!("dbus:{}#{NAME}", bus.address()), &backend, &[]);
        let busctl = |arguments: &[&str]| {
            let mut command = Command::new("busctl");
            command.arg(format!("--address={}", bus.address())).args(arguments);
            run(&mut command)
        };
        let said = busctl(&["call", NAME, PATH, "org.example.Kitchen", "Divide", "ii", "17", "5"]);
        assert_eq!(said, "ii 3 2\n");
        assert!(busctl(&["introspect", NAME, PATH]).contains(".EchoDeep"));
        busctl(&["set-property", NAME, PATH, "org.example.Kitchen", "Title", "s", "by a bus"]);
        let gdbus = |arguments: &[&str]| {
            let mut command = Command::new("gdbus");
            command.args([arguments[0], "--address", bus.address(), "--dest", NAME, "--object-path", PATH]);
            run(command.args(&arguments[1..]))
        };
        assert_eq!(gdbus(&["call", "--method", "org.example.Kitchen.Divide", "17", "5"]), "(3, 2)\n");
        assert!(gdbus(&["introspect", "--xml"]).contains("EchoDeep"));
    }
}
