//! D-Bus among ourselves: over both real buses and peer to peer, with everything that the wire can carry.

use crate::common::foreign::{bus, socket};
use crate::common::galley::{self, NAME};
use everywire::{Kind, Node};
use everywire_derby::buses::Program;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;

/// A node that takes 40 MiB.
fn roomy() -> Node {
    Node::builder().max_message(40 << 20).build().into()
}

fn over(test: &str, program: Program) {
    let Some(bus) = bus(test, program) else { return };
    let (server, client) = (roomy(), roomy());
    server.listen(&format!("dbus:{}#{NAME}", bus.address())).expect("the bus lets it in");
    let own = Galley::export(&server, KEY);
    // What a server prints of its object is what a client needs.
    let kitchen = client.connect(&server.print(own.reference())).expect("it parses");
    galley::everything(&client, &kitchen);
    galley::same_handles(&*kitchen);
    galley::large(&*kitchen, &[32 << 20]);
}

#[test]
fn our_client_calls_our_server_over_dbus_daemon() {
    over("our_client_calls_our_server_over_dbus_daemon", Program::Daemon);
}

#[test]
fn our_client_calls_our_server_over_dbus_broker() {
    over("our_client_calls_our_server_over_dbus_broker", Program::Broker);
}

fn peer_to_peer(transport: &str) {
    let (server, client) = (roomy(), roomy());
    let (_, path) = socket(&format!("p2p-{transport}"));
    let address = match transport {
        "tcp" => "dbus://127.0.0.1:0?auth=anonymous".to_owned(),
        other => format!("dbus+{other}://{}", path.display()),
    };
    server.listen(&address).expect("it listens");
    let own = Galley::export(&server, KEY);
    let notations = [server.print_friendly(own.reference()), server.print(own.reference())];
    for text in notations.iter().filter(|text| !text.is_empty()) {
        let kitchen = client.connect(text).expect("it parses");
        galley::values(&*kitchen);
        galley::signals(&kitchen, 500);
        galley::properties(&client, &kitchen);
        galley::oneways(&*kitchen);
        galley::large(&*kitchen, &[0, 1, 100_000, 8 << 20]);
        if transport == "unix" {
            galley::handles(&*kitchen);
            galley::same_handles(&*kitchen);
        } else {
            let failure = kitchen.open("text").expect_err("only Unix sockets pass descriptors");
            assert_eq!(failure.kind(), Kind::Unsupported, "{failure}");
        }
    }
    if transport != "tcp" {
        galley::large(&*client.connect(&notations[0]).expect("it parses"), &[32 << 20]);
    }
}

#[test]
fn our_client_calls_our_server_by_a_unix_socket() {
    peer_to_peer("unix");
}

#[test]
fn our_client_calls_our_server_by_tcp() {
    peer_to_peer("tcp");
}

#[test]
fn our_client_calls_our_server_by_shared_memory() {
    peer_to_peer("shm");
}

#[test]
fn the_usual_limit_lets_eight_mebibytes_pass() {
    let (server, client) = (Node::new(), Node::new());
    let (_, path) = socket("usual");
    server.listen(&format!("dbus+unix://{}", path.display())).expect("it listens");
    let own = Galley::export(&server, KEY);
    galley::large(&*client.connect(&server.print(own.reference())).expect("it parses"), &[8 << 20, 32 << 20]);
}
