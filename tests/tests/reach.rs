//! References that others can call: a server that listens at every address of its machine publishes those that others
//! reach, or what `?publish=` says; shown between two networks.

use crate::common::cable::{Cable, HERE, THERE};
use crate::common::dcom::{DOMAIN, PASSWORD, USER, alone};
use crate::common::foreign::{run, script, until};
use crate::common::{IN_ORDER, Server, dcom_pantry, omniorb, scratch};
use everywire::model::{Address, Endpoint, Reference};
use everywire::{Kind, Node, Ref};
use everywire_tests::bench::{FiringSource, Sink};
use everywire_tests::peers::cached;
use everywire_tests::servants::{Bench, CountingSink};
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
