//! Peers that none of us wrote, on both sides of the broker and across wires.

use super::{Running, Scratch, Store, contract, place, start, until};
use everywire::Node;
use everywire_derby::buses::Bus;
use everywire_derby::contestants::omniorb::{BuiltPrograms, build};
use everywire_peers::here;
use everywire_tests::servants;
use everywire_tests::shop::market::Shop;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn omniorb(test: &str) -> Option<BuiltPrograms> {
    here(test, &["g++", "omniorb"]).then(|| build().unwrap_or_else(|missing| panic!("{}", missing.what)))
}

/// Objects of the shared contracts: key, contract, interface.
const OBJECTS: [(&str, &str, &str); 5] = [
    ("benchmarking", "derby/contracts/bench.idl", "benchmarking"),
    ("IRemoteObject", "derby/contracts/bench.idl", "IRemoteObject"),
    ("Sink", "derby/contracts/bench.idl", "Sink"),
    ("Source", "derby/contracts/bench.idl", "FiringSource"),
    ("FiringSource", "derby/contracts/bench.idl", "FiringSource"),
];

/// Routes to these objects, each named as its key.
fn routes(objects: &[(&str, &str, &str)], target: impl Fn(&str) -> String) -> String {
    let one = |(key, contract, interface): &(&str, &str, &str)| {
        let (contract, to) = (root().join(contract), target(key));
        format!(
            "[[route]]\nname = \"{key}\"\nfrom = \"front\"\nmatch = {{ key = \"{key}\" }}\nto = \"{to}\"\ncontract = \"{}\"\ninterface = \"{interface}\"\n",
            contract.display()
        )
    };
    objects.iter().map(one).collect()
}

/// The references of a broker's routes, as omniORB's client reads them.
fn write(broker: &Running, file: &str) {
    let lines: String =
        broker.broker.references().iter().map(|(name, _, foreign)| format!("{name}\t{foreign}\n")).collect();
    fs::write(file, lines).unwrap();
}

/// omniORB's client checks the contract of the races, callbacks among it, on objects that are a D-Bus service.
#[test]
fn a_program_on_omniorb_calls_a_service_on_dbus() {
    let Some(peer) = omniorb("a_program_on_omniorb_calls_a_service_on_dbus") else { return };
    let scratch = Scratch::new();
    let backend = Node::from(Node::builder().max_message(128 << 20).build());
    backend.listen(&format!("dbus+unix://{}", scratch.path("service.bus"))).unwrap();
    let objects = servants::export_all(&backend);
    let at = |key: &str| {
        let (_, reference) = objects.iter().find(|(name, _)| *name == key).unwrap();
        backend.print_friendly(reference)
    };
    let broker = start(&format!(
        "max-message = \"128MiB\"\n[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[listen.back]\naddress = \"dbus+unix://{}\"\n{}",
        scratch.path("back.bus"),
        routes(&OBJECTS, at)
    ));
    let file = scratch.path("refs");
    write(&broker, &file);
    let output = Command::new(&peer.client)
        .arg(&file)
        .args(["check", "--largest", "16777216"])
        .args(["-ORBgiopMaxMsgSize", "134217728", "-ORBendPoint", "giop:tcp:127.0.0.1:"])
        .args(["-ORBmaxServerThreadPerConnection", "1"])
        .output()
        .unwrap();
    let said = format!(
        "{}{}\n{:#?}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        broker.log.lock().unwrap()
    );
    assert!(output.status.success(), "{said}");
    assert!(
        broker.metric(r#"references{route="FiringSource"}"#) + broker.metric(r#"references{route="Source"}"#)
            >= 1.0
    );
}

/// A server that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `busctl`, systemd's, calls an object of omniORB's server by a name on a bus.
#[test]
fn busctl_calls_an_object_of_omniorb() {
    let test = "busctl_calls_an_object_of_omniorb";
    let Some(peer) = omniorb(test).filter(|_| here(test, &["busctl", "dbus-daemon"])) else { return };
    let scratch = Scratch::new();
    let file = scratch.path("refs");
    let server = Command::new(&peer.server)
        .args(["--ref-file", &file, "-ORBendPoint", "giop:tcp:127.0.0.1:"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Server(server);
    until("the server is up", || fs::read_to_string(&file).is_ok_and(|text| text.contains("Kitchen")));
    let references = fs::read_to_string(&file).unwrap();
    let at = |key: &str| {
        let line = references.lines().find_map(|line| line.strip_prefix(&format!("{key}\t"))).unwrap();
        line.to_owned()
    };
    let bus = Bus::daemon().unwrap_or_else(|failure| panic!("{failure}"));
    let kitchen = ("Kitchen", "derby/rivals/omniorb/interop.idl", "interop::Kitchen");
    let bench = ("benchmarking", "derby/contracts/bench.idl", "benchmarking");
    let _broker = start(&format!(
        "[listen.front]\naddress = \"dbus:{}#org.example.Hop\"\n[listen.orb]\naddress = \"iiop://127.0.0.1:0\"\n{}",
        bus.address(),
        routes(&[kitchen, bench], at)
    ));
    let busctl = |arguments: &[&str]| {
        let output = Command::new("busctl")
            .arg(format!("--address={}", bus.address()))
            // Numbers may be negative.
            .args(["--", "call", "org.example.Hop"])
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let good = |arguments: &[&str]| {
        let (success, out, err) = busctl(arguments);
        assert!(success, "{arguments:?}: {err}");
        out
    };
    fn call<'w>(words: &[&'w str]) -> Vec<&'w str> {
        [&["/Kitchen", "interop.Kitchen"], words].concat()
    }
    assert_eq!(good(&["/benchmarking", "everywire.benchmarking", "in_out_int_call", "i", "41"]), "i 42");
    assert_eq!(
        good(&call(&["echo_names", "as", "2", "a", "ö"])),
        r#"as 2 "a" "ö""#.replace('ö', "\\303\\266")
    );
    // A result, an out and an inout parameter at once.
    assert_eq!(good(&call(&["mix", "id(ii)", "7", "0.5", "1", "2"])), r#"sd(ii) "7" 7.5 2 1"#);
    let (success, _, err) = busctl(&call(&["judge", "i", "-3"]));
    assert!(!success, "an exception of CORBA is an error of D-Bus");
    assert!(err.contains("negative") || err.contains("Refused"), "{err}");
}

/// `dbus-send` without `--print-reply` asks for an answer, does not wait for it, and leaves at once. D-Bus has no word for withdrawal, and a
/// daemon or a server of libdbus carries such a call out; so does the broker.
#[test]
fn calls_of_dbus_send_that_leaves_at_once_are_carried_out() {
    const CALLS: usize = 20;
    let test = "calls_of_dbus_send_that_leaves_at_once_are_carried_out";
    if !here(test, &["dbus-send"]) {
        return;
    }
    for typed in [false, true] {
        let scratch = Scratch::new();
        let (node, store) = (Node::new(), Store::new());
        node.listen(&place("dbus", "backend", &scratch)).unwrap();
        let target = node.print_friendly(node.export::<dyn Shop>("shop", store.clone()).reference());
        let contract = match typed {
            true => {
                format!("contract = \"{}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}", contract())
            }
            false => String::new(),
        };
        let broker = start(&format!(
            "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"all\"\nto = [\"{target}\"]\n{contract}\n",
            place("dbus", "front", &scratch)
        ));
        let front = broker.reference("all");
        let path = front.trim_start_matches("dbus+unix://").split('#').next().unwrap().to_owned();
        for n in 0..CALLS {
            let sent = Command::new("dbus-send")
                .args([&format!("--peer=unix:path={path}"), "--type=method_call", "--dest=a.b", "/shop"])
                .args(["market.Shop.count", &format!("int32:{n}")])
                .status()
                .unwrap();
            assert!(sent.success(), "typed {typed}");
        }
        until("all calls came", || store.counted.lock().unwrap().len() == CALLS);
        assert!(store.counted.lock().unwrap().values().all(|count| *count == 1), "typed {typed}: once each");
        until("no call is under way", || broker.metric(r#"calls_under_way{route="all"}"#).abs() < 0.1);
    }
}
