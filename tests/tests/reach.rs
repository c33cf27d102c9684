//! References that others can call: a server that listens at every address of its machine publishes those that others
//! reach, or what `?publish=` says; shown between two networks.

use crate::common::cable::{Cable, HERE, THERE};
use crate::common::dcom::{DOMAIN, PASSWORD, USER, alone};
use crate::common::foreign::{patient, run, script, until};
use crate::common::hello::Remote;
use crate::common::hello::bench::IRemoteObject;
use crate::common::mono::{BASIC, Mono, TCP};
use crate::common::{IN_ORDER, Server, dcom_pantry, omniorb, scratch};
use everywire::model::{Address, Endpoint, Reference};
use everywire::{Kind, Node, Ref};
use everywire_tests::bench::{FiringSource, Sink};
use everywire_tests::peers::{cached, here};
use everywire_tests::servants::dbus::KEY;
use everywire_tests::servants::{Bench, CountingSink, Galley};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Addresses to listen at, one for each wire that has a TCP port, without what is asked for behind `?`.
const LISTENERS: [&str; 4] = [
    "iiop://HOST:0?",
    "dcom://HOST:0?level=none&",
    "net.tcp://HOST:0?security=none&",
    "dbus://HOST:0?auth=anonymous&",
];

fn bare(listener: &str, host: &str) -> String {
    listener.replace("HOST", host).trim_end_matches(['?', '&']).to_owned()
}

fn hosts(reference: &Reference) -> Vec<(&str, u16)> {
    let endpoints = reference.profiles.iter().flat_map(|profile| &profile.endpoints);
    let tcp = endpoints.filter_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Some((host.as_str(), *port)),
        _ => None,
    });
    tcp.collect()
}

#[test]
fn a_wildcard_publishes_what_others_reach() {
    let test = "a_wildcard_publishes_what_others_reach";
    if !alone(test) {
        return;
    }
    // A machine without a network: only its own programs can call.
    for listener in LISTENERS {
        let node = Node::new();
        node.listen(&bare(listener, "0.0.0.0")).unwrap();
        node.export::<dyn everywire_tests::bench::Benchmarking>("bench", Arc::new(Bench));
        let reference = node.reference("bench").unwrap();
        assert!(
            hosts(&reference).iter().all(|(host, port)| *host == "127.0.0.1" && *port != 0),
            "{reference:?}"
        );
    }
    let _cable = Cable::lay();
    for (any, listener) in
        LISTENERS.into_iter().flat_map(|listener| [("0.0.0.0", listener), ("[::]", listener)])
    {
        let node = Node::new();
        let bound =
            node.listen(&bare(listener, any)).unwrap_or_else(|failure| panic!("{listener} {failure}"));
        let port = match Address::parse(bound.split('?').next().unwrap(), None).unwrap().endpoint {
            Endpoint::Tcp { port, .. } => port,
            other => panic!("{other}"),
        };
        node.export::<dyn everywire_tests::bench::Benchmarking>("bench", Arc::new(Bench));
        let reference = node.reference("bench").unwrap();
        assert_eq!(hosts(&reference), [(HERE, port)], "{listener}");
        let text = node.print(&reference);
        // What was printed leads here again, also for whoever reads it.
        let read = node.parse(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert!(hosts(&read).contains(&(HERE, port)), "{text}");
    }
}

/// A machine with several addresses, as servers have them.
#[test]
fn every_address_of_the_machine_is_published_and_the_one_that_was_asked_comes_first() {
    let test = "every_address_of_the_machine_is_published_and_the_one_that_was_asked_comes_first";
    if !alone(test) {
        return;
    }
    let own = ["10.88.0.1", "10.89.0.1"];
    for address in own {
        run(Command::new("ip").args(["address", "add", &format!("{address}/24"), "dev", "lo"]));
    }
    for listener in LISTENERS {
        let node = Node::new();
        let bound = node.listen(&bare(listener, "0.0.0.0")).unwrap();
        node.export::<dyn everywire_tests::bench::Benchmarking>("bench", Arc::new(Bench));
        let reference = node.reference("bench").unwrap();
        let told = hosts(&reference);
        assert_eq!(told.iter().map(|(host, _)| *host).collect::<Vec<_>>(), own, "{listener}");
        // What was bound is one address, which nobody can call; what is published are these.
        assert!(bound.contains("0.0.0.0"), "{bound}");
        let published = node.published();
        assert_eq!(published, own.map(|host| bound.replace("0.0.0.0", host)), "{listener}");
        // Each of them is called by its own name.
        for (address, host) in node.addresses(&reference).iter().zip(own) {
            let caller = Node::new();
            let bench = caller.connect::<dyn everywire_tests::bench::Benchmarking>(address);
            assert_eq!(bench.unwrap().in_out_int_call(7).unwrap(), 8, "{address}");
            assert!(address.contains(host), "{address}");
        }
    }
    // The resolver of DCOM tells whoever asks by which address it is known to him, before all others.
    let node = Node::new();
    let bound = node.listen(&bare(LISTENERS[1], "0.0.0.0")).unwrap();
    for host in own {
        let told = Node::new().list(&bound.replace("0.0.0.0", host)).unwrap();
        let (_, text) = told[0].details.iter().find(|(what, _)| *what == "endpoint").unwrap();
        let at = |host: &str| text.find(host).unwrap_or_else(|| panic!("{host} is not in {text}"));
        assert!(own.iter().all(|other| at(host) <= at(other)), "asked by {host}: {text}");
    }
}

/// On WCF a message names the address that it is meant for, so each one has a profile of its own.
#[test]
fn a_reference_of_wcf_names_each_address_as_one_of_its_own() {
    let test = "a_reference_of_wcf_names_each_address_as_one_of_its_own";
    if !alone(test) {
        return;
    }
    let own = ["10.88.0.1", "10.89.0.1"];
    for address in own {
        run(Command::new("ip").args(["address", "add", &format!("{address}/24"), "dev", "lo"]));
    }
    for listener in ["net.tcp://0.0.0.0:0?security=none", "basic://0.0.0.0:0?security=none"] {
        let node = Node::new();
        node.listen(listener).unwrap();
        node.export::<dyn everywire_tests::bench::Benchmarking>("bench", Arc::new(Bench));
        let reference = node.reference("bench").unwrap();
        let printed = reference.profiles.iter().map(|profile| {
            node.print(&Reference { profiles: vec![profile.clone()], ..Reference::default() })
        });
        let printed: Vec<String> = printed.collect();
        let named = own.iter().zip(&printed).all(|(host, text)| text.contains(&format!("//{host}:")));
        assert!(printed.len() == own.len() && named, "{printed:?}");
    }
}

#[test]
fn a_publish_option_is_what_references_say() {
    for listener in LISTENERS {
        for (said, host, port) in [
            ("nat.example:99", "nat.example", Some(99)),
            ("[2001:db8::7]:99", "2001:db8::7", Some(99)),
            ("10.0.0.9", "10.0.0.9", None),
        ] {
            let node = Node::new();
            let address = format!("{}publish={said}", listener.replace("HOST", "127.0.0.1"));
            let bound = node.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
            node.export::<dyn everywire_tests::bench::Benchmarking>("bench", Arc::new(Bench));
            let reference = node.reference("bench").unwrap();
            let told = hosts(&reference);
            assert_eq!(told.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [host], "{address}");
            match port {
                Some(port) => assert_eq!(told[0].1, port, "{address}"),
                None => assert!(bound.contains(&format!(":{}", told[0].1)), "{bound} {told:?}"),
            }
        }
        for (said, word) in
            [("", "no host"), ("2001:db8::7", "brackets"), ("h:0", "port"), ("0.0.0.0", "nobody can call")]
        {
            let failure = Node::new()
                .listen(&format!("{}publish={said}", listener.replace("HOST", "127.0.0.1")))
                .unwrap_err();
            assert!(failure.message().contains(word), "{listener} {said}: {failure}");
            assert_eq!(failure.kind(), Kind::BadReference);
        }
    }
    let failure = Node::new().listen("iiop+unix:///nowhere/x?publish=host").unwrap_err();
    assert!(failure.message().contains("TCP"), "{failure}");
}

/// omniORB's client is in another network than our server, which listens at every address.
#[test]
fn omniorb_calls_a_wildcard_from_another_network() {
    let test = "omniorb_calls_a_wildcard_from_another_network";
    let Some(peer) = omniorb(test) else { return };
    if !alone(test) {
        return;
    }
    let cable = Cable::lay();
    let server = Server::ours("iiop://0.0.0.0:0", &scratch("wildcard"), 128);
    let endpoint = format!("giop:tcp:{THERE}:");
    let mut client = cable.there(&peer.client);
    client
        .arg(server.references())
        .args(["check", "--largest", "65536", "-ORBendPoint", &endpoint])
        .args(IN_ORDER);
    run(&mut client);
}

/// Our client listens for callbacks at every address, and omniORB's server is in another network.
#[test]
fn omniorb_calls_back_to_a_wildcard_from_another_network() {
    let test = "omniorb_calls_back_to_a_wildcard_from_another_network";
    let Some(peer) = omniorb(test) else { return };
    if !alone(test) {
        return;
    }
    let node = Node::new();
    node.listen("iiop://0.0.0.0:0").unwrap();
    let counter = Arc::new(CountingSink::default());
    // Before there is a network: the connection tells which address the server knows this machine by.
    let sink: Ref<dyn Sink> = node.export_anonymous(counter.clone());
    let cable = Cable::lay();
    let program = cable.there(&peer.server);
    let server = Server::omniorb_by(program, &format!("giop:tcp:{THERE}:"), &scratch("there"));
    let source = node.connect::<dyn FiringSource>(&server.reference("Source")).unwrap();
    let cookie = source.advise(Some(sink)).unwrap();
    source.fire(7).unwrap();
    assert_eq!((counter.hellos(), counter.syncs()), (7, 1));
    source.unadvise(cookie).unwrap();
}

/// impacket follows what the resolver tells: the machine's addresses, and what `?publish=` says where ports are translated.
#[test]
fn impacket_calls_a_wildcard_from_another_network() {
    let test = "impacket_calls_a_wildcard_from_another_network";
    let Some(directory) = cached(test, "impacket") else { return };
    if !alone(test) {
        return;
    }
    let cable = Cable::lay();
    let users = scratch("users").join("users");
    fs::write(&users, format!("{DOMAIN}\\{USER}:{PASSWORD}\n")).unwrap();
    fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).unwrap();
    let impacket = || {
        let mut command = cable.there(directory.join("bin/python"));
        command.arg(script("dcom_impacket.py")).args(["pantry", HERE, DOMAIN, USER, PASSWORD, "integrity"]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let serve = |options: &str| {
        let node = Node::new();
        node.listen(&format!("dcom://0.0.0.0:135?users={}{options}", users.display())).unwrap();
        let living = dcom_pantry::serve(&node);
        (node, living)
    };
    {
        let (_node, living) = serve("");
        succeeds(&mut impacket());
        until("the objects that were let go end", || living.load(SeqCst) == 0);
    }
    let (_node, _) = serve(&format!("&publish={HERE}:4135"));
    let passed = translate(&format!("{HERE}:4135"), "127.0.0.1:135");
    succeeds(&mut impacket());
    assert!(passed.load(SeqCst) > 0, "it went past the translated port");
}

/// libdbus calls the address that a reference has, as it stands there.
#[test]
fn libdbus_calls_a_wildcard_from_another_network() {
    let test = "libdbus_calls_a_wildcard_from_another_network";
    if !here(test, &["dbus-tools"]) || !alone(test) {
        return;
    }
    let cable = Cable::lay();
    let node = Node::new();
    node.listen("dbus://0.0.0.0:0?auth=anonymous").unwrap();
    Galley::export(&node, KEY);
    let told = node.print(&node.reference(KEY).unwrap());
    let address = told.strip_prefix("dbus:").and_then(|text| text.split('#').next()).unwrap();
    assert!(address.starts_with(&format!("tcp:host={HERE},")), "{told}");
    let mut send = cable.there("dbus-send");
    send.arg(format!("--peer={address}")).args(["--print-reply=literal", "/org/example/Kitchen"]);
    let said = run(send.args(["org.example.Kitchen.Divide", "int32:17", "int32:5"]));
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["int32", "3", "int32", "2"]);
}

/// Mono calls the address that a reference has, and that which the service's own description has.
#[test]
fn mono_calls_a_wildcard_from_another_network() {
    let test = "mono_calls_a_wildcard_from_another_network";
    let Some(mono) = Mono::awake(test) else { return };
    if !here(test, &["curl"]) || !alone(test) {
        return;
    }
    let cable = Cable::lay();
    for binding in [TCP, BASIC] {
        let node = patient();
        node.listen(&binding.listen().replace("127.0.0.1", "0.0.0.0")).unwrap();
        let bench = node.export::<dyn IRemoteObject>("bench", Arc::new(Remote));
        let told = node.print(bench.reference());
        let place = told.split_once("://").and_then(|(_, rest)| rest.split('?').next()).unwrap();
        assert!(place.starts_with(&format!("{HERE}:")), "{told}");
        let mut addresses = vec![format!("{}://{place}", binding.theirs)];
        if binding.theirs == "http" {
            let text = run(cable.there("curl").args(["-s", &format!("http://{place}?wsdl")]));
            let address = text.split("address location=\"").nth(1).and_then(|rest| rest.split('"').next());
            addresses.push(address.unwrap_or_else(|| panic!("no address in {text}")).to_owned());
        }
        for address in addresses {
            let mut call = mono.run();
            call.args(["call", "bench", binding.name, &address, "bench=65536"]);
            succeeds(&mut cable.instead(&call));
        }
    }
}

fn succeeds(command: &mut Command) {
    let said = run(command);
    assert_eq!(said.lines().last(), Some("ok"), "{said}");
}

/// Passes on what connects to one address to another, and counts.
fn translate(from: &str, to: &str) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(from).unwrap();
    let passed = Arc::new(AtomicUsize::new(0));
    let (count, to) = (Arc::clone(&passed), to.to_owned());
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, SeqCst);
            let far = TcpStream::connect(&to).unwrap();
            let ends = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || copy(near, far));
            std::thread::spawn(move || copy(ends.1, ends.0));
        }
    });
    passed
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut room = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut room) {
        if to.write_all(&room[..n]).is_err() {
            break;
        }
    }
    // The other end may be gone.
    let _ = to.shutdown(Shutdown::Write);
}
