//! Against a bus of D-Bus that none of us wrote.

use crate::support::scratch;
use everywire::{Failure, Kind, Node};
use everywire_dynamic::DynamicObject;
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A dbus-daemon; it ends with this value.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_bus_is_asked_by_what_it_tells_and_by_signatures() {
    if !everywire_peers::here("a_bus_is_asked_by_what_it_tells_and_by_signatures", &["dbus-daemon"]) {
        return;
    }
    let socket = scratch("bus").join("socket").display().to_string();
    let mut child = Command::new("dbus-daemon")
        .args(["--session", "--nofork", "--print-address", &format!("--address=unix:path={socket}")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let _daemon = Daemon(child);
    // It says where it is once it is there.
    BufReader::new(out).read_line(&mut String::new()).unwrap();

    let node = Node::new();
    let address = format!("dbus:unix:path={socket}#org.freedesktop.DBus/org/freedesktop/DBus");
    let bus = DynamicObject::connect(&node, &address).unwrap();
    let names = bus.call("org.freedesktop.DBus.ListNames", json!(null)).unwrap();
    assert!(names.to_string().contains("org.freedesktop.DBus"), "{names}");
    assert!(bus.get("Features").unwrap().is_array());
    let failure = Failure::from(bus.call("GetNameOwner", json!(["a.b"])).unwrap_err());
    assert_eq!(
        (failure.kind(), failure.code()),
        (Kind::Unreachable, Some("org.freedesktop.DBus.Error.NameHasNoOwner"))
    );

    let ask = |name: &str, signature: &str, arguments| {
        DynamicObject::call_by_signature(&node, &address, name, signature, arguments)
    };
    let has = ask("org.freedesktop.DBus.NameHasOwner", "s->b", json!(["org.freedesktop.DBus"])).unwrap();
    assert!(has.to_string().contains("true"), "{has}");
    // What the signature leaves open, the answer tells.
    let open = ask("org.freedesktop.DBus.GetNameOwner", "s", json!(["org.freedesktop.DBus"])).unwrap();
    assert!(open.to_string().contains("org.freedesktop.DBus"), "{open}");
    let unread = ask("org.freedesktop.DBus.NameHasOwner", "s(", json!([])).unwrap_err();
    assert_eq!(Failure::from(unread).kind(), Kind::BadArgument);
    let unscoped = Failure::from(ask("NameHasOwner", "s", json!(["a"])).unwrap_err());
    assert_eq!(unscoped.hint(), Some("write INTERFACE.NameHasOwner, or name the interface"));
}
