//! The broker between peers that none of us wrote and that speak of different systems, by the contracts that all share: each hears what
//! it hears of its own kind, exceptions and callbacks too where both wires have them.
//!
//! Invariants: on both sides of a broker stands a library of somebody else's, or on one of them a node of ours in the place of one that is
//! not to be had; and the programs of a test end with it.

use crate::common::dcom_pantry;
use crate::common::dcopserver::DcopServer;
use crate::common::foreign::{
    Beside, bus, contract, glib_peer, run, run_with, script, sdbus_peer, socket, until,
};
use crate::common::hello::use_hello;
use crate::common::mono::{BASIC, BASICS, Binding, Mono, TCP, WSS};
use crate::common::papers::Papers;
use crate::common::python;
use crate::common::{IN_ORDER, omniorb, scratch, shelf};
use everywire::Node;
use everywire_broker::{Broker, Config};
use everywire_derby::buses::{Bus, Program};
use everywire_tests::peers::{here, root};
use everywire_tests::servants::family::{house, without_leaf};
use everywire_tests::workshop::once;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const BENCH: &str = "derby/contracts/bench.idl";
const CALLBACKS: &str = "derby/contracts/callbacks.idl";
const INTEROP: &str = "derby/rivals/omniorb/interop.idl";

/// A broker, and what it has told its log.
struct Running {
    broker: Broker,
    log: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(text: &str) -> Self {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&log);
        let sink = Arc::new(move |line: &str| kept.lock().expect("whole").push(line.to_owned()));
        let config =
            Config::parse(text, "broker.toml", &root()).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let broker = Broker::start(config.verbose(), sink).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        Self { broker, log }
    }

    /// The port of a listener.
    fn port(&self, name: &str) -> u16 {
        let address = self.broker.address(name).expect("a listener");
        let port = address.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse().ok());
        port.unwrap_or_else(|| panic!("no port in {address}"))
    }

    /// The reference of a route, as foreign programs read it.
    fn foreign(&self, route: &str) -> String {
        let all = self.broker.references();
        all.into_iter().find(|(name, ..)| name == route).expect("a route").2
    }

    fn told(&self) -> String {
        self.log.lock().expect("whole").join("\n")
    }
}

/// A route with a contract.
fn route(name: &str, from: &str, to: &str, contract: &str, interface: &str) -> String {
    let contract = root().join(contract);
    format!(
        "[[route]]\nname = \"{name}\"\nfrom = \"{from}\"\nmatch = {{ key = \"{name}\" }}\nto = \"{to}\"\ncontract = \"{}\"\ninterface = \"{interface}\"\n",
        contract.display()
    )
}

/// omniORB's server of the shared contracts, and the reference of each of its objects.
fn omniorb_server(test: &str, name: &str) -> Option<(Beside, impl Fn(&str) -> String)> {
    let peer = omniorb(test)?;
    let file = scratch(name).join("refs");
    let server = Beside::start(
        Command::new(&peer.server)
            .arg("--ref-file")
            .arg(&file)
            .args(["-ORBendPoint", "giop:tcp:127.0.0.1:"])
            .args(IN_ORDER),
    );
    until("omniORB's server is up", || fs::read_to_string(&file).is_ok_and(|text| text.contains("Pantry\t")));
    let text = fs::read_to_string(&file).expect("references");
    let at = move |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key}\t")));
        line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
    };
    Some((server, at))
}

/// What Mono prints of the seven functions and of the kitchen.
const SEVEN: [&str; 7] = [
    "out_int_call 42",
    "in_out_int_call.0 1",
    "in_out_int_call.41 42",
    "in_out_int_call.-1 0",
    "in_out_int_call.2147483646 2147483647",
    "out_string_call \"Hello, World! 0123456789\"",
    "in_out_string_call 100000",
];
const KITCHEN: [&str; 8] = [
    "echo_names [\"\", \"a\", \"more\"]",
    "next_colour red",
    "mix [\"-7\", -6.75, 4, 3]",
    "judge 2",
    "judge.-5 [\"negative\", -5, \"blue\"]",
    "judge.0 \"Empty\"",
    "judge.again 3",
    "noted 20",
];

fn mono_on_omniorb(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let Some((_server, at)) = omniorb_server(test, test) else { return };
    let broker = Running::start(&format!(
        "[listen.web]\naddress = \"{}\"\n[listen.orb]\naddress = \"iiop://127.0.0.1:0\"\n{}{}",
        binding.listen(),
        route("benchmarking", "web", &at("benchmarking"), BENCH, "benchmarking"),
        route("Kitchen", "web", &at("Kitchen"), INTEROP, "interop::Kitchen"),
    ));
    let port = broker.port("web");
    assert_eq!(mono.call("benchmarking", binding, port, &["seven"]), SEVEN, "{}", broker.told());
    let mut said = mono.call("Kitchen", binding, port, &["kitchen"]);
    // A system exception of CORBA is a fault, whose code depends on the version of SOAP.
    let code = said.remove(6);
    assert!(["judge.13 \"Sender\"", "judge.13 \"FailedAuthentication\""].contains(&&*code), "{code}");
    assert_eq!(said, KITCHEN, "{}", broker.told());
}

#[test]
fn mono_calls_omniorb_over_net_tcp() {
    mono_on_omniorb("mono_calls_omniorb_over_net_tcp", TCP);
}

#[test]
fn mono_calls_omniorb_over_basic_http() {
    mono_on_omniorb("mono_calls_omniorb_over_basic_http", BASIC);
}

/// omniORB's client of a part of the kitchen, compiled; or nothing, said loudly.
fn omniorb_client(test: &str) -> Option<PathBuf> {
    here(test, &["g++", "omniorb"]).then(|| {
        let sources = [script("cross_omniorb.cc"), script("crosswise.idl")];
        once(env!("CARGO_TARGET_TMPDIR"), "cross_omniorb", &sources, |fresh| {
            let dir = shelf().join("cross_omniorb");
            fs::create_dir_all(&dir).expect("a directory");
            run(Command::new("omniidl").args(["-bcxx", "-C"]).arg(&dir).arg(&sources[1]));
            run(Command::new("g++")
                .args(["-O1", "-o"])
                .arg(fresh)
                .arg("-I")
                .arg(&dir)
                .arg(&sources[0])
                .arg(dir.join("crosswiseSK.cc"))
                .args(["-lomniORB4", "-lomnithread", "-lpthread"]));
        })
    })
}

/// The service on sd-bus, compiled; or nothing, said loudly.
fn sdbus_service(test: &str) -> Option<PathBuf> {
    here(test, &["cc", "pkg-config", "sd-bus"]).then(|| {
        let flags = run(Command::new("pkg-config").args(["--cflags", "--libs", "libsystemd"]));
        let source = script("cross_sdbus.c");
        once(env!("CARGO_TARGET_TMPDIR"), "cross_sdbus", std::slice::from_ref(&source), |fresh| {
            run(Command::new("cc")
                .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
                .arg(fresh)
                .arg(&source)
                .args(flags.split_whitespace()));
        })
    })
}

/// omniORB's client on a service on sd-bus: the contract of the races, whose source calls the client's own objects back, and
/// exceptions with fields and without.
#[test]
fn omniorb_calls_a_service_on_sd_bus_and_is_called_back() {
    const NAME: &str = "org.example.Cross";
    let test = "omniorb_calls_a_service_on_sd_bus_and_is_called_back";
    let (Some(peer), Some(client), Some(service)) =
        (omniorb(test), omniorb_client(test), sdbus_service(test))
    else {
        return;
    };
    let Some(bus) = bus(test, Program::Daemon) else { return };
    let service = Beside::start(Command::new(service).args([bus.address(), NAME]));
    service.hear("ready");
    let at = |path: &str| format!("dbus:{}#{NAME}/{path}", bus.address());
    let routes: String = [
        ("benchmarking", BENCH, "benchmarking"),
        ("IRemoteObject", BENCH, "IRemoteObject"),
        ("Sink", BENCH, "Sink"),
        ("Source", BENCH, "FiringSource"),
        ("Kitchen", INTEROP, "interop::Kitchen"),
    ]
    .iter()
    .map(|(key, contract, interface)| route(key, "orb", &at(key), contract, interface))
    .collect();
    let broker = Running::start(&format!(
        "[listen.orb]\naddress = \"iiop://127.0.0.1:0\"\n[listen.bus]\naddress = \"dbus:{}#org.example.Hop\"\n{routes}",
        bus.address()
    ));
    let file = scratch("cross-omniorb").join("refs");
    let lines: String =
        broker.broker.references().iter().map(|(name, _, foreign)| format!("{name}\t{foreign}\n")).collect();
    fs::write(&file, lines).expect("a file");
    let said = run_with(
        Command::new(&peer.client)
            .arg(&file)
            .args(["check", "--largest", "1000000"])
            .args(["-ORBendPoint", "giop:tcp:127.0.0.1:"])
            .args(IN_ORDER),
        b"",
    );
    assert!(said.success, "{}{}\n{}\n{}", said.out, said.err, service.errors(), broker.told());
    let said = run_with(Command::new(&client).arg(broker.foreign("Kitchen")), b"");
    assert!(said.success && said.out == "ok\n", "{}{}\n{}", said.out, said.err, broker.told());
}

/// omniORB's client on omniORB's server, behind two brokers that have the contract: each reference that passes leads to the next of them,
/// so what the server calls back comes by both.
#[test]
fn omniorb_calls_omniorb_and_is_called_back_by_two_brokers() {
    const OBJECTS: [(&str, &str, &str); 8] = [
        ("benchmarking", BENCH, "benchmarking"),
        ("IRemoteObject", BENCH, "IRemoteObject"),
        ("Sink", BENCH, "Sink"),
        ("Source", BENCH, "FiringSource"),
        ("Factory", CALLBACKS, "derby::CallbackFactory"),
        ("Kitchen", INTEROP, "interop::Kitchen"),
        ("Both", INTEROP, "interop::Both"),
        ("Pantry", INTEROP, "interop::Pantry"),
    ];
    let test = "omniorb_calls_omniorb_and_is_called_back_by_two_brokers";
    let (Some(peer), Some((server, at))) = (omniorb(test), omniorb_server(test, "cross-omniorb-behind"))
    else {
        return;
    };
    let before = |at: &dyn Fn(&str) -> String| {
        let routes =
            OBJECTS.map(|(key, contract, interface)| route(key, "orb", &at(key), contract, interface));
        Running::start(&format!("[listen.orb]\naddress = \"iiop://127.0.0.1:0\"\n{}", routes.concat()))
    };
    let far = before(&at);
    let near = before(&|key| far.foreign(key));
    let file = scratch("cross-omniorb-before").join("refs");
    let lines: String =
        near.broker.references().iter().map(|(name, _, foreign)| format!("{name}\t{foreign}\n")).collect();
    fs::write(&file, lines).expect("a file");
    for mode in
        [&["check", "--largest", "1000000"][..], &["check-interop"], &["race", "callbacks", "--calls", "3"]]
    {
        let said = run_with(
            Command::new(&peer.client)
                .arg(&file)
                .args(mode)
                .args(["-ORBendPoint", "giop:tcp:127.0.0.1:"])
                .args(IN_ORDER),
            b"",
        );
        let told = || format!("{}\n{}\n{}", server.errors(), far.told(), near.told());
        assert!(said.success, "{mode:?}: {}{}\n{}", said.out, said.err, told());
    }
}

/// omniORB's client gets objects by a broker whose contract does not know what they are, or whose references say too little, and narrows
/// them to what the contract knows.
#[test]
fn omniorb_narrows_what_it_gets_by_a_broker() {
    let test = "omniorb_narrows_what_it_gets_by_a_broker";
    let Some(client) = omniorb_client(test) else { return };
    let node = house("iiop://127.0.0.1:0");
    let home = node.print_friendly(&node.reference("home").expect("it is served"));
    let contract = without_leaf(&scratch(test));
    let broker = Running::start(&format!(
        "[listen.orb]\naddress = \"iiop://127.0.0.1:0\"\n{}",
        route("home", "orb", &home, &contract.display().to_string(), "family::Home"),
    ));
    let said = run_with(Command::new(&client).args([&broker.foreign("home"), "narrow"]), b"");
    assert!(said.success && said.out == "ok\n", "{}{}\n{}", said.out, said.err, broker.told());
}

/// zeep reads the contract of a DCOP application from the broker, and calls it.
#[test]
fn zeep_calls_a_dcop_application() {
    let test = "zeep_calls_a_dcop_application";
    let Some(mut zeep) = python::zeep(test) else { return };
    if !here(test, &["python3"]) {
        return;
    }
    let server = DcopServer::start("cross-dcop", &[]);
    let application = Beside::start(&mut server.by_hand(&["serve", "cook", "l"]));
    application.hear("ready");
    let broker = Running::start(&format!(
        "[listen.web]\naddress = \"{}\"\n{}",
        BASIC.listen(),
        route("kitchen", "web", &server.at("cook/kitchen"), "tests/contracts/kitchen.kidl", "Kitchen"),
    ));
    zeep.arg("dcop").arg(format!("http://127.0.0.1:{}/kitchen?wsdl", broker.port("web")));
    let said = run_with(&mut zeep, b"");
    assert!(said.success && said.out.ends_with("ok\n"), "{}{}\n{}", said.out, said.err, broker.told());
}

/// `busctl` calls what a broker serves on a bus.
struct Busctl<'b>(&'b Bus);

impl Busctl<'_> {
    fn call(&self, arguments: &[&str]) -> Result<String, String> {
        let said = run_with(
            Command::new("busctl")
                .arg(format!("--address={}", self.0.address()))
                // Numbers may be negative.
                .args(["--", "call", "org.example.Hop"])
                .args(arguments)
                .stdin(Stdio::null()),
            b"",
        );
        if said.success { Ok(said.out.trim().to_owned()) } else { Err(said.err.trim().to_owned()) }
    }
}

/// What `busctl` hears of a COM object, which one of another kind would tell in the same words.
#[test]
fn busctl_calls_a_com_object_of_ours() {
    let test = "busctl_calls_a_com_object_of_ours";
    if !here(test, &["busctl"]) {
        return;
    }
    let Some(bus) = bus(test, Program::Daemon) else { return };
    let backend = Node::new();
    backend.listen("dcom://127.0.0.1:0?level=none").expect("a free port");
    let shelf = backend.print_friendly(dcom_pantry::serve_one(&backend).reference());
    let contract = "tests/contracts/pantry.midl";
    let broker = Running::start(&format!(
        "[listen.bus]\naddress = \"dbus:{}#org.example.Hop\"\n[listen.com]\naddress = \"dcom://127.0.0.1:0?level=none\"\n{}{}",
        bus.address(),
        route("pantry", "bus", &shelf, contract, "IPantry"),
        route("scales", "bus", &shelf, contract, "IScales"),
    ));
    let busctl = Busctl(&bus);
    let good = |arguments: &[&str]| {
        busctl.call(arguments).unwrap_or_else(|err| panic!("{arguments:?}: {err}\n{}", broker.told()))
    };
    assert_eq!(good(&["/pantry", "everywire.IPantry", "Add", "ii", "40", "2"]), "i 42");
    assert_eq!(
        good(&["/pantry", "everywire.IPantry", "Echo", "s", "plain & <marked>"]),
        "s \"plain & <marked>\""
    );
    // Two results, one of them an argument too.
    assert_eq!(good(&["/scales", "everywire.IScales", "Weigh", "ix", "4", "6"]), "xd 12 1.5");
    assert_eq!(
        good(&["/scales", "everywire.IScales", "Reverse", "uay", "3", "3", "1", "2", "3"]),
        "ay 3 3 2 1"
    );
    // A callback: the object that the caller names is asked by the COM object, through the broker.
    let scales = format!("dbus:{}#org.example.Hop/scales", bus.address());
    let delegated = good(&["/pantry", "everywire.IPantry", "Delegate", "ss", &scales, "four"]);
    assert_eq!(delegated, "i 4");
    let refused = busctl.call(&["/pantry", "everywire.IPantry", "Refuse", "i", "-2147467259"]);
    let said = refused.expect_err("an HRESULT is an error of D-Bus");
    assert!(said.contains("refused, as was asked for"), "{said}");
}

/// What a client on sd-bus tells unasked reaches a service on sd-bus, before what it asks then.
#[test]
fn signals_of_a_client_on_sd_bus_pass_to_a_service_on_sd_bus() {
    let Some(peer) = sdbus_peer("signals_of_a_client_on_sd_bus_pass_to_a_service_on_sd_bus") else { return };
    let ((_, theirs), (_, ours)) = (socket("told-theirs"), socket("told-ours"));
    let service = Beside::start(Command::new(&peer).arg("serve").arg(&theirs));
    service.hear("ready");
    let broker = Running::start(&format!(
        "[listen.front]\naddress = \"dbus+unix://{}\"\n[[route]]\nname = \"all\"\nto = \"dbus+unix://{}\"\n",
        ours.display(),
        theirs.display()
    ));
    let said = run_with(Command::new(&peer).arg("tell").arg(&ours), b"");
    assert!(said.success && said.out == "ok\n", "{}{}\n{}", said.out, said.err, broker.told());
}

/// GDBus on both sides of a route with a contract: every value, object paths among them, properties, signals, descriptors.
#[test]
fn gdbus_calls_gdbus_by_a_contract() {
    let test = "gdbus_calls_gdbus_by_a_contract";
    let Some(peer) = glib_peer(test) else { return };
    let (_, theirs) = socket("crosswise-gdbus-theirs");
    let (_, ours) = socket("crosswise-gdbus-ours");
    let at = format!("unix:path={}", theirs.display());
    let its =
        Beside::start(Command::new(&peer).args(["serve", "peer", &at]).arg(contract("kitchen.dbus.xml")));
    its.hear("ready");
    let broker = Running::start(&format!(
        "[listen.front]\naddress = \"dbus+unix://{}\"\n[[route]]\nname = \"kitchen\"\nto = \"dbus:{at}#/org/example/Kitchen\"\n\
         contract = \"tests/contracts/kitchen.dbus.xml\"\ninterface = \"org.example.Kitchen\"\n",
        ours.display(),
    ));
    let place = format!("unix:path={}", ours.display());
    let said = run_with(Command::new(&peer).args(["call", "peer", &place, "/org/example/Kitchen"]), b"");
    assert!(said.success && said.out.starts_with("ok "), "{}{}\n{}", said.out, said.err, broker.told());
}

/// A route without a contract, from a place of a binding to a service there.
fn passing(binding: Binding, port: u16, key: &str, more: &str) -> Running {
    Running::start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"all\"\nto = \"{}\"\n{more}",
        binding.listen(),
        binding.object(port, key)
    ))
}

/// Mono on both sides with TLS on both, without a contract and with one.
#[test]
fn mono_calls_mono_through_a_broker_with_tls_on_both_sides() {
    let test = "mono_calls_mono_through_a_broker_with_tls_on_both_sides";
    let (Some(mono), Some(papers)) = (Mono::awake(test), Papers::get(test)) else { return };
    let mono = mono.with(papers);
    let contract = "contract = \"tests/contracts/cellar.wsdl\"\ninterface = \"ICellar\"\n";
    for binding in [BASICS, WSS] {
        let checks = ["types", "arrays", "classes", "operations"];
        let direct = {
            let (_server, port) = mono.serve(binding, "cellar");
            mono.call("cellar", binding, port, &checks)
        };
        for more in ["", contract] {
            let (_server, port) = mono.serve(binding, "cellar");
            let broker = Running::start(&format!(
                "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"all\"\nmatch = {{ key = \"cellar\" }}\nto = \"{}\"\n{more}",
                binding.listen_with(papers),
                binding.object_with(port, "cellar", papers),
            ));
            let said = mono.call("cellar", binding, broker.port("front"), &checks);
            // By the contract an array of texts has no nil among them.
            let nil = |line: &String| {
                if more.is_empty() { line.clone() } else { line.replace("\"\", null,", "\"\", \"\",") }
            };
            let wanted: Vec<String> = direct.iter().map(nil).collect();
            assert_eq!(said, wanted, "{} {more}{}", binding.name, broker.told());
        }
    }
}

/// What the service asks and tells on the caller's session comes through a hop without a contract, and the answers go back.
#[test]
fn callbacks_of_wcf_pass_a_hop_without_a_contract() {
    let Some(mono) = Mono::awake("callbacks_of_wcf_pass_a_hop_without_a_contract") else { return };
    let (_server, port) = mono.serve(TCP, "hello");
    // Mono's service may tell whoever has left once more.
    let direct = mono.call("hello", TCP, port, &["duplex"]);
    let (_server, port) = mono.serve(TCP, "hello");
    let broker = passing(TCP, port, "hello", "");
    assert_eq!(mono.call("hello", TCP, broker.port("front"), &["duplex"]), direct, "{}", broker.told());
    assert_eq!(direct[..4], ["OnHello \"first\"", "OnHello.20 true", "AskBack 41", "AskBack.again -1"]);
    use_hello(&TCP.object(broker.port("front"), "hello"));
}

/// The same by a contract: Mono's client on Mono's service, and ours on it, with arguments that are read first, a copy, and a changed header.
#[test]
fn callbacks_of_wcf_pass_a_hop_with_a_contract() {
    let Some(mono) = Mono::awake("callbacks_of_wcf_pass_a_hop_with_a_contract") else { return };
    let contract = "contract = \"tests/contracts/hello.wsdl\"\ninterface = \"IHello\"\n";
    let more = format!(
        "{contract}validate = true\ncopy = {{ count = true, required = true }}\nedits = [{{ put = \"{{urn:a}}b\", value = \"c\" }}]\n"
    );
    for more in [contract, more.as_str()] {
        let (_server, port) = mono.serve(TCP, "hello");
        let broker = passing(TCP, port, "hello", more);
        let said = mono.call("hello", TCP, broker.port("front"), &["duplex"]);
        let direct = ["OnHello \"first\"", "OnHello.20 true", "AskBack 41", "AskBack.again -1"];
        assert_eq!(said[..4], direct, "{}", broker.told());
        use_hello(&TCP.object(broker.port("front"), "hello"));
    }
}

/// Mono's one-way messages ask for an answer that never comes: a route that knows them holds nothing for them.
#[test]
fn one_way_messages_of_mono_are_not_held() {
    let Some(mono) = Mono::awake("one_way_messages_of_mono_are_not_held") else { return };
    for (more, held) in [("", 1), ("oneway = \"*/Note\"\n", 0)] {
        let (_server, port) = mono.serve(TCP, "cellar");
        let broker = passing(TCP, port, "cellar", more);
        let said = mono.call("cellar", TCP, broker.port("front"), &["oneway"]);
        assert_eq!(said, ["Notes [\"one-way\"]"], "{}", broker.told());
        let under_way = format!("everywire_broker_calls_under_way{{route=\"all\"}} {held}\n");
        // An answer is counted behind its leave.
        until("the answered call is counted", || broker.broker.metrics().contains(&under_way));
    }
}

/// What a hop tells of Mono's service leads to the hop; zeep reads such a description, and calls where that leads.
#[test]
fn descriptions_of_a_service_lead_back_to_the_hop() {
    let test = "descriptions_of_a_service_lead_back_to_the_hop";
    let (Some(mono), Some(mut zeep)) = (Mono::awake(test), python::zeep(test)) else { return };
    let (_server, port) = mono.serve(BASIC, "bench");
    let broker = passing(BASIC, port, "bench", "");
    let front = broker.port("front");
    let page = get(front, "/bench?wsdl");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/xml"), "{page}");
    assert!(page.contains(&format!("http://127.0.0.1:{front}/bench")), "{page}");
    assert!(!page.contains(&format!(":{port}/")), "{page}");
    for missing in ["/other?wsdl", "/bench?other"] {
        assert!(get(front, missing).starts_with("HTTP/1.1 404"), "{missing}: {}", get(front, missing));
    }
    // Mono's own description names a page that it does not have: zeep reads that of a service of ours.
    let (_backend, place) = python::serving("basic", "security=none&MaxReceivedMessageSize=67108864");
    let port = place.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
    let broker = passing(BASIC, port, "bench", "");
    let front = broker.port("front");
    zeep.arg("bench").arg(format!("http://127.0.0.1:{front}/bench?wsdl"));
    let said = run_with(&mut zeep, b"");
    assert!(said.success && said.out.ends_with("ok\n"), "{}{}\n{}", said.out, said.err, broker.told());
}

/// Whoever is sent elsewhere finds the service's own address in what the broker tells of it, with a contract and without.
#[test]
fn descriptions_of_a_redirecting_route_lead_to_the_service() {
    let test = "descriptions_of_a_redirecting_route_lead_to_the_service";
    let (Some(mono), Some(mut zeep)) = (Mono::awake(test), python::zeep(test)) else { return };
    let (_server, port) = mono.serve(BASIC, "bench");
    let broker = passing(BASIC, port, "bench", "mode = \"redirect\"\n");
    let page = get(broker.port("front"), "/bench?wsdl");
    let there = format!("http://127.0.0.1:{port}/bench");
    assert!(page.starts_with("HTTP/1.1 307") && page.contains(&format!("{there}?wsdl")), "{page}");
    let contract = root().join("derby/contracts/bench.wsdl");
    let more = format!(
        "mode = \"redirect\"\ncontract = \"{}\"\ninterface = \"IRemoteObject\"\n",
        contract.display()
    );
    let broker = passing(BASIC, port, "bench", &more);
    let front = broker.port("front");
    let page = get(front, "/bench?wsdl");
    assert!(page.contains(&format!("location=\"{there}\"")), "{page}");
    zeep.arg("bench").arg(format!("http://127.0.0.1:{front}/bench?wsdl"));
    let said = run_with(&mut zeep, b"");
    assert!(said.success && said.out.ends_with("ok\n"), "{}{}\n{}", said.out, said.err, broker.told());
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("to connect");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        .expect("to ask");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}
