//! A hop of DCOM without any contract, between programs that use other libraries and ours, and between two of ours.

use crate::common::dcom::{DOMAIN, PASSWORD, USER, alone, impacket, j_interop, users};
use crate::common::dcom_pantry::contract::{IScales, Pantry, PantryTicked};
use crate::common::dcom_pantry::{CLASS, NO_CLASS, serve};
use crate::common::foreign::{run, until};
use crate::common::forwarder::Hop;
use crate::common::scratch;
use everywire::{Bytes, Failure, Kind, Node};
use everywire_broker::{Broker, Config};
use everywire_tests::peers::root;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a test waits at the most; it ends with an event.
const PATIENCE: Duration = Duration::from_secs(300);

/// Of a route whose callers go to its target.
const REDIRECT: &str = "mode = \"redirect\"\n";

fn succeeds(command: &mut Command) {
    let said = run(command);
    assert!(said.lines().last() == Some("ok"), "{command:?}: {said}");
}

/// A backend at a port of its own, how many of its objects live, and a hop on port 135. `options` are those of both places.
fn hop(options: &str) -> (Node, Node, Arc<AtomicUsize>) {
    let file = users(&scratch("passing-users"));
    let file = file.display();
    let backend = Node::new();
    let living = serve(&backend);
    backend.listen(&format!("dcom://127.0.0.1:1135?users={file}{options}")).expect("it listens");
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let level = if options.contains("level=connect") { "connect" } else { "privacy" };
    let to = format!("dcom://{DOMAIN};{USER}:{password}@127.0.0.1:1135?level={level}");
    let hop = Hop::between(&format!("dcom://127.0.0.1:135?users={file}{options}"), &to, &[]);
    (backend, hop, living)
}

#[test]
fn impacket_calls_us_through_a_hop() {
    let test = "impacket_calls_us_through_a_hop";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_backend, _hop, living) = hop("");
    for level in ["integrity", "privacy"] {
        succeeds(impacket("pantry").arg(level));
    }
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn j_interop_calls_us_through_a_hop_and_is_called_back() {
    let test = "j_interop_calls_us_through_a_hop_and_is_called_back";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let (_backend, _hop, living) = hop("&level=connect&ntlm1=session");
    for ntlm in ["session", "ntlmv2"] {
        succeeds(&mut j_interop("calls", ntlm));
    }
    until("the objects that were let go end", || living.load(SeqCst) == 0);
    // Its sink is an OBJREF in a stub: the backend calls it past the hop.
    succeeds(&mut j_interop("events", "session"));
}

/// A backend as that of `hop`, and a broker on port 135 with a route there, of which `more` says more.
fn brokered(options: &str, more: &str) -> (Node, Broker, Arc<AtomicUsize>) {
    let file = users(&scratch("redirect-users"));
    let file = file.display();
    let backend = Node::new();
    let living = serve(&backend);
    backend.listen(&format!("dcom://127.0.0.1:1135?users={file}{options}")).expect("it listens");
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let level = if options.contains("level=connect") { "connect" } else { "privacy" };
    let text = format!(
        "[listen.front]\naddress = \"dcom://127.0.0.1:135?users={file}{options}\"\n[[route]]\nname = \"all\"\nto = \"dcom://{DOMAIN};{USER}:{password}@127.0.0.1:1135/{CLASS}?level={level}\"\n{more}"
    );
    let config = Config::parse(&text, "broker.toml", &root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let broker = Broker::start(config, Arc::new(|_: &str| ())).unwrap_or_else(|wrong| panic!("{wrong}"));
    (backend, broker, living)
}

/// How many calls the broker has seen: those that ask for an object.
fn seen(broker: &Broker) -> u32 {
    let page = broker.metrics();
    let name = "everywire_broker_calls_total{route=\"all\",outcome=\"done\"} ";
    page.lines().find_map(|line| line.strip_prefix(name)).map_or(0, |count| count.parse().expect("a count"))
}

#[test]
fn impacket_is_sent_to_the_target_by_a_broker() {
    let test = "impacket_is_sent_to_the_target_by_a_broker";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_backend, broker, living) = brokered("", REDIRECT);
    for (turn, level) in ["integrity", "privacy"].into_iter().enumerate() {
        succeeds(impacket("pantry").arg(level));
        let made = u32::try_from(turn + 1).expect("few");
        assert_eq!(seen(&broker), made);
    }
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn j_interop_is_sent_to_the_target_by_a_broker() {
    let test = "j_interop_is_sent_to_the_target_by_a_broker";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let (_backend, broker, living) = brokered("&level=connect&ntlm1=session", REDIRECT);
    succeeds(&mut j_interop("calls", "ntlmv2"));
    let made = seen(&broker);
    assert!((1..10).contains(&made), "{made}");
    until("the objects that were let go end", || living.load(SeqCst) == 0);
    succeeds(&mut j_interop("events", "session"));
}

/// With a contract all that passes as a reference is one of the broker's, so j-Interop's objects and sinks are called by it.
#[test]
fn foreign_clients_are_called_back_by_a_broker_with_the_contract() {
    let test = "foreign_clients_are_called_back_by_a_broker_with_the_contract";
    let (Some(j_interop), Some(impacket)) = (j_interop(test), impacket(test)) else { return };
    if !alone(test) {
        return;
    }
    let contract = root().join("tests/contracts/pantry.midl");
    let typed = format!("contract = \"{}\"\ninterface = \"Pantry\"\n", contract.display());
    let (_backend, broker, _) = brokered("&level=connect&ntlm1=session", &typed);
    succeeds(&mut j_interop("serves", "session"));
    assert!(seen(&broker) >= 4, "calls, and calls back: {}", seen(&broker));
    succeeds(&mut j_interop("events", "session"));
    succeeds(impacket("pantry").arg("connect"));
}

struct Scales;

impl IScales for Scales {
    fn weigh(&self, _: i32, _: i64) -> Result<(i64, f64), Failure> {
        Ok((0, 0.0))
    }
    fn reverse(&self, load: Bytes) -> Result<Bytes, Failure> {
        Ok(load)
    }
    fn label(&self, text: &str) -> Result<u32, Failure> {
        Ok(u32::try_from(text.len()).unwrap_or(u32::MAX))
    }
}

#[test]
fn two_hops_pass_all_that_an_object_has() {
    const OPEN: &str = "dcom://127.0.0.1:0?level=none";
    let backend = Node::new();
    let living = serve(&backend);
    let place = |at: &str| format!("{}?level=none", at.split('?').next().unwrap_or_default());
    let to = place(&backend.listen(OPEN).expect("it listens"));
    let (first, port) = Hop::before(&to, OPEN);
    let (_second, port) = Hop::before(&format!("dcom://127.0.0.1:{port}?level=none"), OPEN);
    let at = |class: &str| format!("dcom://127.0.0.1:{port}/{class}?level=none");
    let client = Node::new();
    client.listen(OPEN).expect("it listens");
    let pantry = client.connect::<dyn Pantry>(&at(CLASS)).expect("an address");
    assert_eq!(pantry.add(40, 2).expect("a sum"), 42);
    assert_eq!(pantry.echo("Käse").expect("an echo"), "Käse");
    assert_eq!(pantry.weigh(4, 1_000_000).expect("a weight"), (2_000_000, 250_000.0));
    let load: Bytes = (0..300_000_u32).map(|i| i.to_le_bytes()[1]).collect::<Vec<_>>().into();
    assert!(pantry.reverse(load.clone()).expect("octets").iter().eq(load.iter().rev()));
    let refused = pantry.refuse(0x8007_000e_u32.cast_signed()).expect_err("it refuses");
    assert_eq!((refused.code(), refused.message()), (Some("0x8007000e"), "refused, as was asked for"));
    assert_eq!(living.load(SeqCst), 1);
    assert_eq!((first.connections(), backend.connections()), (1, 1), "each is called by the one before only");
    // Objects of the caller's are called by the backend itself, and so are its sinks.
    let scales = client.export::<dyn IScales>("scales", Arc::new(Scales));
    assert_eq!(
        pantry.delegate(Some(scales), "twelve octets".get(..12).unwrap_or("")).expect("called back"),
        12
    );
    let (tell, told) = channel();
    let listening = pantry.signals().on(move |ticked: PantryTicked| {
        // Whoever asked may have heard enough.
        let _ = tell.send(ticked.number);
    });
    let listening = listening.expect("a connection point");
    pantry.fire(3).expect("it fires");
    for number in 0..3 {
        assert_eq!(told.recv_timeout(PATIENCE), Ok(number));
    }
    drop(listening);
    let nobody = client.connect::<dyn Pantry>(&at(NO_CLASS)).expect("an address").add(1, 1);
    assert_eq!(nobody.expect_err("no such class").code(), Some("0x80040154"));
    drop(pantry);
    until("the backend's object ends", || living.load(SeqCst) == 0);
    // Who is there no more is told so.
    let pantry = client.connect::<dyn Pantry>(&at(CLASS)).expect("an address");
    assert_eq!(pantry.add(1, 1).expect("a sum"), 2);
    backend.stop();
    let gone = pantry.add(1, 1).expect_err("the backend has ended");
    assert!(matches!(gone.kind(), Kind::Unreachable | Kind::NoObject), "{gone}");
}
