//! Ways to a bus or a peer: authentication, transports, and what the environment says. Programs of their own, because what
//! they do hangs on their environment.

use crate::common::foreign::{BUSES, Beside, Said, bus, bus_with, everywire, run, run_with, socket};
use crate::common::scratch;
use everywire::Node;
use everywire_derby::buses::{Bus, Program, Settings};
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user's home without anything in it.
fn home(name: &str) -> PathBuf {
    let dir = scratch(name);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("it is ours");
    dir
}

/// The program in an environment that says nothing else.
fn in_environment(home: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = everywire();
    for name in ["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY"] {
        command.env_remove(name);
    }
    command.env("HOME", home).envs(variables.iter().copied());
    command
}

/// Who is at this address.
fn list(home: &Path, address: &str) -> Said {
    run_with(in_environment(home, &[]).args(["list", address]), b"")
}

fn reaches(home: &Path, address: &str) {
    let said = list(home, address);
    assert!(said.success && said.out.contains("org.freedesktop.DBus"), "{address}: {}", said.err);
}

/// A daemon that lets in by these mechanisms only, with all kinds of sockets.
fn daemon(test: &str, home: &Path, auth: &[&str], extra: &str) -> Option<Bus> {
    let listen = ["tcp:host=127.0.0.1,port=0", "nonce-tcp:host=127.0.0.1,port=0"];
    let name = format!("unix:abstract=everywire-{test}-{}", std::process::id());
    let settings = Settings {
        listen: listen
            .iter()
            .map(ToString::to_string)
            .chain([name, format!("unix:tmpdir={}", home.display())])
            .collect(),
        auth: auth.iter().map(ToString::to_string).collect(),
        extra: extra.to_owned(),
        environment: vec![("HOME".into(), home.display().to_string())],
        ..Settings::default()
    };
    bus_with(test, Program::Daemon, &settings)
}

#[test]
fn cookies_open_every_transport() {
    let home = home("cookies");
    let Some(bus) = daemon("cookies_open_every_transport", &home, &["DBUS_COOKIE_SHA1"], "") else { return };
    let address = |transport: &str| bus.address_of(transport).unwrap_or_else(|| panic!("no {transport}"));
    reaches(&home, &format!("dbus:{}", address("tcp:")));
    reaches(&home, &format!("dbus:{}", address("nonce-tcp:")));
    reaches(&home, &format!("dbus:{}?auth=cookie", address("unix:path=")));
    reaches(&home, &format!("dbus:{}?auth=cookie", address("unix:abstract=")));
    // A server that does not take what is tried first is tried with what it offers.
    reaches(&home, &format!("dbus:{}", address("unix:path=")));
    // Somebody who cannot read the cookie.
    let stranger = self::home("stranger");
    let said = list(&stranger, &format!("dbus:{}", address("tcp:")));
    assert!(!said.success, "a stranger is let in");
    // Nobody got anything but the cookie of the right home.
    let keyring = home.join(".dbus-keyrings");
    assert_eq!(fs::metadata(&keyring).expect("a keyring").permissions().mode() & 0o777, 0o700);
}

#[test]
fn anonymous_opens_where_it_is_allowed() {
    let home = home("anonymous");
    let test = "anonymous_opens_where_it_is_allowed";
    let Some(bus) = daemon(test, &home, &["ANONYMOUS"], "<allow_anonymous/>") else { return };
    reaches(&home, &format!("dbus:{}", bus.address_of("tcp:").expect("tcp")));
    reaches(&home, &format!("dbus:{}?auth=anonymous", bus.address()));
}

#[test]
fn external_opens_unix_sockets_of_every_kind() {
    let home = home("external");
    let Some(bus) = daemon("external_opens_unix_sockets_of_every_kind", &home, &["EXTERNAL"], "") else {
        return;
    };
    for address in bus.addresses().split(';').filter(|address| address.starts_with("unix:")) {
        reaches(&home, &format!("dbus:{address}"));
    }
    // A list is tried in its order.
    reaches(&home, &format!("dbus:unix:path=/nonexistent/bus;{}", bus.address()));
    // Credentials do not pass TCP.
    let said = list(&home, &format!("dbus:{}", bus.address_of("tcp:").expect("tcp")));
    assert!(!said.success && said.err.contains("EXTERNAL"), "{}", said.err);
}

#[test]
fn the_environment_says_where_buses_are() {
    let home = home("environment");
    for program in BUSES {
        let Some(bus) = bus("the_environment_says_where_buses_are", program) else { return };
        let runtime = bus.dir().display().to_string();
        let socket = format!("unix:path={}", bus.socket().display());
        for (variables, target) in [
            (&[("DBUS_SESSION_BUS_ADDRESS", socket.as_str())][..], "dbus:session"),
            (&[("DBUS_SYSTEM_BUS_ADDRESS", socket.as_str())], "dbus:system"),
            // The socket is called `bus`, as in a user's directory.
            (&[("XDG_RUNTIME_DIR", runtime.as_str())], "dbus:session"),
            (&[("XDG_RUNTIME_DIR", runtime.as_str())], "dbus:autolaunch:"),
            (
                &[("XDG_RUNTIME_DIR", runtime.as_str()), ("DBUS_SESSION_BUS_ADDRESS", "autolaunch:")],
                "dbus:session",
            ),
        ] {
            let said = run_with(in_environment(&home, variables).args(["list", target]), b"");
            assert!(
                said.success && said.out.contains("org.freedesktop.DBus"),
                "{variables:?} {target}: {}",
                said.err
            );
        }
    }
    let said = run_with(
        in_environment(&home, &[("DBUS_SYSTEM_BUS_ADDRESS", "carrier:pigeon=1")])
            .args(["list", "dbus:system"]),
        b"",
    );
    assert!(!said.success && said.err.contains("DBUS_SYSTEM_BUS_ADDRESS"), "{}", said.err);
}

/// A server of ours in this home; its address.
fn peer(home: &Path, address: &str) -> (Beside, String) {
    let peer = Beside::start(
        Command::new(env!("CARGO_BIN_EXE_peer")).arg(address).arg(home.join("refs")).env("HOME", home),
    );
    let said = peer.hear("ready");
    (peer, said[0].clone())
}

/// dbus-send, as a client of a peer that listens so.
fn dbus_send(home: &Path, address: &str) -> Said {
    run_with(
        Command::new("dbus-send").env("HOME", home).args([
            &format!("--peer={address}"),
            "--print-reply=literal",
            "/org/example/Kitchen",
            "org.example.Kitchen.Divide",
            "int32:17",
            "int32:5",
        ]),
        b"",
    )
}

/// The port in what a listener says.
fn port(address: &str) -> String {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let at = address.rsplit(':').map(digits).find(|digits| !digits.is_empty());
    at.or_else(|| address.split("port=").nth(1).map(digits)).unwrap_or_else(|| panic!("no port in {address}"))
}

#[test]
fn our_tcp_listeners_want_a_cookie() {
    if !here("our_tcp_listeners_want_a_cookie", &["dbus-send"]) {
        return;
    }
    let home = home("tcp-cookie");
    let (_peer, address) = peer(&home, "dbus://127.0.0.1:0");
    let address = format!("tcp:host=127.0.0.1,port={}", port(&address));
    let said = dbus_send(&home, &address);
    assert!(said.success, "{}", said.err);
    assert_eq!(said.out.split_whitespace().collect::<Vec<_>>(), ["int32", "3", "int32", "2"]);
    let stranger = self::home("tcp-stranger");
    assert!(!dbus_send(&stranger, &address).success, "a stranger is let in");
    // Ours, too.
    let call = |home: &Path| {
        let reference = format!("dbus:{address}#/org/example/Kitchen");
        run_with(in_environment(home, &[]).args(["call", &reference, "Divide", "17", "5"]), b"")
    };
    assert!(call(&home).out.contains("quotient = 3"));
    assert!(!call(&stranger).success);
}

#[test]
fn our_listeners_take_what_they_are_told_to() {
    if !here("our_listeners_take_what_they_are_told_to", &["dbus-send", "busctl"]) {
        return;
    }
    let (home, stranger) = (home("told"), self::home("told-stranger"));
    let (_tcp, address) = peer(&home, "dbus://127.0.0.1:0?auth=anonymous");
    let said = dbus_send(&stranger, &format!("tcp:host=127.0.0.1,port={}", port(&address)));
    assert!(said.success, "{}", said.err);
    let (_, path) = socket("told-unix");
    let (_unix, _) = peer(&home, &format!("dbus+unix://{}?auth=cookie", path.display()));
    let address = format!("unix:path={}", path.display());
    assert!(dbus_send(&home, &address).success);
    assert!(!dbus_send(&stranger, &address).success);
    // An abstract socket, with the usual authentication.
    let name = format!("everywire-told-{}", std::process::id());
    let (_abstract, _) = peer(&home, &format!("dbus:unix:abstract={name}"));
    let said = dbus_send(&stranger, &format!("unix:abstract={name}"));
    assert!(said.success, "{}", said.err);
}

#[test]
fn a_service_of_the_session_is_found_by_everybody() {
    let home = home("session");
    for program in BUSES {
        let Some(bus) = bus("a_service_of_the_session_is_found_by_everybody", program) else { return };
        let node = Node::new();
        node.listen(&format!("dbus:{}#org.example.Kitchen", bus.address())).expect("the bus lets it in");
        Galley::export(&node, KEY);
        let session = [("DBUS_SESSION_BUS_ADDRESS", bus.address())];
        let said = run(in_environment(&home, &session).args([
            "call",
            "dbus:session/org.example.Kitchen/org/example/Kitchen",
            "Divide",
            "17",
            "5",
        ]));
        assert!(said.contains("remainder = 2"), "{said}");
    }
}
