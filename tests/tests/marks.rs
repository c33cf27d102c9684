//! Exceptions of introspection XML, signals of OMG IDL, and operations that their contract lets run twice: by every wire, and as programs
//! that none of us wrote see them.

use crate::common::foreign::{BUSES, Beside, bus, run, run_with, until};
use crate::common::python::{succeeds, zeep};
use crate::common::scratch;
use everywire::layer::{Layer, Next, Retry};
use everywire::model::{Answer, Completed, Request};
use everywire::{Failure, Initiator, Kind, Node, Ref};
use everywire_tests::bell::org::example::{Bell, BellRang};
use everywire_tests::peers::here;
use everywire_tests::vault::org::example::error::{Frozen, Overdrawn};
use everywire_tests::vault::org::example::{Vault, WithdrawError};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Ada has eight in it.
struct Room;

impl Vault for Room {
    fn balance(&self, _: &str) -> Result<f64, Failure> {
        Ok(8.0)
    }
    fn withdraw(&self, account: &str, amount: f64) -> Result<(), WithdrawError> {
        match amount {
            ..0.0 => Err(Frozen {}.into()),
            8.5.. => Err(Overdrawn { missing: amount - 8.0, account: account.to_owned() }.into()),
            _ => Ok(()),
        }
    }
}

/// A bell that can be rung.
#[derive(Default)]
struct Brass(OnceLock<Ref<dyn Bell>>, AtomicU32);

impl Bell for Brass {
    fn ring(&self, who: &str) -> Result<(), Failure> {
        let times = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        let rang = BellRang { who: who.to_owned(), times: times.into() };
        self.0.get().expect("it is served").signals().emit(&rang)
    }
}

const NAME: &str = "org.example.Vault";
const PATH: &str = "/vault";

fn vault(address: &str) -> (Node, String) {
    let node = Node::new();
    node.listen(address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let exported = node.export::<dyn Vault>("vault", Arc::new(Room));
    let reference = node.print_friendly(exported.reference());
    (node, reference)
}

#[test]
fn an_exception_of_introspection_xml_is_raised_typed_on_each_wire() {
    let sockets = scratch("marks-exceptions");
    for address in [
        "iiop://127.0.0.1:0".to_owned(),
        "net.tcp://127.0.0.1:0?security=none".to_owned(),
        "basic://127.0.0.1:0?security=none".to_owned(),
        format!("dbus+unix://{}", sockets.join("bus").display()),
    ] {
        let (_node, reference) = vault(&address);
        let client = Node::new();
        let vault =
            client.connect::<dyn Vault>(&reference).unwrap_or_else(|failure| panic!("{address}: {failure}"));
        assert!((vault.balance("ada").unwrap() - 8.0).abs() < 1e-9, "{address}");
        vault.withdraw("ada", 1.0).unwrap_or_else(|error| panic!("{address}: {error}"));
        match vault.withdraw("ada", 10.0) {
            Err(WithdrawError::Overdrawn(Overdrawn { missing, account })) => {
                assert!((missing - 2.0).abs() < 1e-9 && account == "ada", "{address}: {missing} {account}");
            }
            other => panic!("{address}: {other:?}"),
        }
        let frozen = vault.withdraw("ada", -1.0);
        assert!(matches!(frozen, Err(WithdrawError::Frozen(Frozen {}))), "{address}: {frozen:?}");
    }
}

/// Without a file, a caller has the exceptions that the object tells; GLib's tool sees an error of that name.
#[test]
fn an_object_on_d_bus_tells_its_exceptions() {
    let test = "an_object_on_d_bus_tells_its_exceptions";
    if !here(test, &["gdbus"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let (_node, _) = vault(&format!("dbus:{}#{NAME}", bus.address()));
        let gdbus = |verb: &str| {
            let mut command = Command::new("gdbus");
            command.args([verb, "--address", bus.address(), "--dest", NAME, "--object-path", PATH]);
            command
        };
        let xml = run(gdbus("introspect").arg("--xml"));
        assert!(xml.contains("org.example.Error.Overdrawn(d missing, s account)"), "{xml}");
        let method = format!("{NAME}.Withdraw");
        let failed = run_with(gdbus("call").args(["--method", &method, "ada", "10.0"]), b"");
        assert!(!failed.success && failed.err.contains("org.example.Error.Overdrawn"), "{}", failed.err);
        let client = Node::new();
        let object = client.object(&format!("dbus:{}#{NAME}{PATH}", bus.address())).unwrap();
        let told = everywire::wires::named("dbus").expect("the wire").discover(&object).unwrap();
        let interface = told.contract.interface(NAME).expect("it tells its interface").clone();
        assert!(interface.is_idempotent(0) && !interface.is_idempotent(1));
        let raises: Vec<_> = interface.operations[1].raises.iter().map(|raised| raised.id.as_ref()).collect();
        assert_eq!(raises, ["org.example.Error.Overdrawn", "org.example.Error.Frozen"]);
    }
}

/// A client of SOAP in Python raises it as a fault with these members, and Mono's tool makes a fault contract of it.
#[test]
fn an_exception_of_introspection_xml_is_a_fault_for_others() {
    let test = "an_exception_of_introspection_xml_is_a_fault_for_others";
    let (_node, reference) = vault("basic://127.0.0.1:0?security=none");
    let place =
        reference.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()).expect("a place");
    let described = format!("http://{place}/vault?wsdl");
    if let Some(mut python) = zeep(test) {
        succeeds(python.args(["vault", &described]));
    }
    if here(test, &["svcutil"]) {
        let folder = scratch("marks-svcutil");
        let _ = run(Command::new("svcutil").current_dir(&folder).args(["/out:vault.cs", &described]));
        let code = std::fs::read_to_string(folder.join("vault.cs")).expect("code");
        assert_eq!(code.matches("OperationContractAttribute(").count(), 2, "{code}");
    }
}

#[test]
fn a_signal_of_omg_idl_is_heard_on_d_bus() {
    let test = "a_signal_of_omg_idl_is_heard_on_d_bus";
    if !here(test, &["busctl", "gdbus"]) {
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
        let node = Node::new();
        node.listen(&format!("dbus:{}#org.example.Bell", bus.address())).expect("the bus lets it in");
        let brass = Arc::new(Brass::default());
        assert!(brass.0.set(node.export::<dyn Bell>("bell", brass.clone())).is_ok());
        let (tell, heard) = channel();
        let client = Node::new();
        let address = format!("dbus:{}#org.example.Bell/bell", bus.address());
        let bell = client.connect::<dyn Bell>(&address).unwrap();
        let tell = Mutex::new(tell);
        let hears = move |rang: BellRang| drop(tell.lock().expect("whole").send((rang.who, rang.times)));
        let _subscription = bell.signals().on(hears).unwrap();
        let method = ["--object-path", "/bell", "--method", "org.example.Bell.ring", "ada"];
        run(Command::new("gdbus")
            .args(["call", "--address", bus.address(), "--dest", "org.example.Bell"])
            .args(method));
        monitor.hear("Member=rang");
        monitor.hear("\"ada\"");
        assert_eq!(heard.recv_timeout(Duration::from_secs(300)).unwrap(), ("ada".to_owned(), 1));
        let shown = run(Command::new("busctl").arg(format!("--address={}", bus.address())).args([
            "introspect",
            "org.example.Bell",
            "/bell",
            "org.example.Bell",
        ]));
        assert!(shown.lines().any(|line| line.starts_with(".rang") && line.contains("signal")), "{shown}");
    }
}

/// Fails the first attempt of each call, of which nobody knows whether it ran.
struct Falters(Arc<AtomicU32>);

impl Layer for Falters {
    fn serve(&self, mut request: Request, next: Next<'_>) {
        if !self.0.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return next.serve(request);
        }
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the store is away");
        request.answer(Answer::Failed(&failure.with_completed(Completed::Maybe)));
    }
}

#[test]
fn what_the_contract_lets_run_twice_is_served_again() {
    let seen = Arc::new(AtomicU32::new(0));
    let node: Node = Node::builder().layer(Retry::new(1)).layer(Falters(Arc::clone(&seen))).build().into();
    node.listen("iiop://127.0.0.1:0").unwrap();
    let exported = node.export::<dyn Vault>("vault", Arc::new(Room));
    let reference = node.print_friendly(exported.reference());
    let client = Node::new();
    let vault = client.connect::<dyn Vault>(&reference).unwrap();
    assert!((vault.balance("ada").unwrap() - 8.0).abs() < 1e-9);
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    let failed = vault.withdraw("ada", 1.0);
    assert!(
        matches!(&failed, Err(WithdrawError::Failure(failure)) if failure.completed() == Completed::Maybe),
        "{failed:?}"
    );
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}
