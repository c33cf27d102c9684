//! Places that bound what they serve at once: whoever comes beyond waits for its turn, over every binding.

use crate::common;
use crate::common::foreign::{PATIENCE, until};
use crate::common::hello::bench::IRemoteObject;
use crate::common::python::{nettcp, serving, succeeds};
use crate::common::waiting::place;
use everywire::{Node, Ref};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread;

/// Eight clients, each with a connection of its own; two are served at once.
fn two_at_once(address: &str) {
    let (_server, servant, object) = place(&format!("{address}MaxConcurrentCalls=2"));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let object = object.clone();
            thread::spawn(move || {
                let node = Node::new();
                let remote: Ref<dyn IRemoteObject> = node.connect(&object).expect("an address");
                remote.void_call()
            })
        })
        .collect();
    for left in (1..=8).rev() {
        until(&format!("the next ones are served at {address}, {left} left"), || {
            servant.inside() == left.min(2)
        });
        servant.let_go(1);
    }
    for client in clients {
        client.join().expect("a client").expect("its call");
    }
    assert_eq!(servant.most(), 2);
    // The places are free again.
    servant.let_go(2);
    let remote: Ref<dyn IRemoteObject> = Node::new().connect(&object).expect("an address");
    remote.void_call().expect("VoidCall");
    remote.void_call().expect("VoidCall");
}

/// The clients do nothing more when they have opened sessions: they neither answer the goodbye nor end the connection.
#[test]
fn sessions_that_are_silent_for_too_long_give_their_places_back() {
    let (server, _servant, object) = place("net.tcp://127.0.0.1:0?security=none&ReceiveTimeout=200ms");
    let via = object.split('?').next().expect("an address");
    let host = via.split('/').nth(2).expect("a port");
    let length = u8::try_from(via.len()).expect("short");
    // Version 1.0, duplex, the address, binary with a dictionary, the end of the preamble (MC-NMF, 2.2.3).
    let preamble = [&[0, 1, 0, 1, 2, 2, length], via.as_bytes(), &[3, 8, 12]].concat();
    let mut clients: Vec<_> = (0..20).map(|_| TcpStream::connect(host).expect("it listens")).collect();
    for client in &mut clients {
        client.write_all(&preamble).expect("it is read");
    }
    for client in &mut clients {
        let mut answer = [0; 2];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, [11, 7], "the session is open, and ends");
    }
    until("the places are free", || server.connections() == 0);
}

#[test]
fn calls_wait_for_their_turn_over_net_tcp() {
    two_at_once("net.tcp://127.0.0.1:0?security=none&");
}

#[test]
fn calls_wait_for_their_turn_over_http() {
    for scheme in ["basic", "wshttp", "binhttp"] {
        two_at_once(&format!("{scheme}://127.0.0.1:0?"));
    }
}

#[test]
fn calls_wait_for_their_turn_on_sockets_and_in_shared_memory() {
    let dir = common::scratch("turns");
    two_at_once(&format!("net.tcp+unix://{}?", dir.join("turns.sock").display()));
    two_at_once(&format!("net.tcp+shm://{}?", dir.join("shared.sock").display()));
}

/// Many calls on one connection: they wait in their order, and what comes behind them is read when there is room.
#[test]
fn calls_of_one_session_wait_for_those_of_others() {
    let (_server, servant, object) = place("net.tcp://127.0.0.1:0?security=none&MaxConcurrentCalls=1");
    let node = Node::new();
    let remote: Ref<dyn IRemoteObject> = node.connect(&object).expect("an address");
    let others: Vec<_> = (0..20)
        .map(|_| {
            let remote = remote.clone();
            thread::spawn(move || remote.void_call())
        })
        .collect();
    until("one is served", || servant.inside() == 1);
    servant.let_go(20);
    for other in others {
        other.join().expect("a thread").expect("its call");
    }
    assert_eq!(servant.most(), 1);
}

/// Two connections ask for a session while there is one: one waits until it ends, the other is refused.
#[test]
fn sessions_wait_for_others_to_end_and_too_many_are_refused() {
    let options = "security=none&MaxConcurrentSessions=1&MaxPendingConnections=1";
    let (_server, _servant, object) = place(&format!("net.tcp://127.0.0.1:0?{options}"));
    let first = Node::new();
    let remote: Ref<dyn IRemoteObject> = first.connect(&object).expect("an address");
    assert_eq!(remote.out_int().expect("OutInt"), 42);

    let via = object.split('?').next().expect("an address");
    let place = via.trim_start_matches("net.tcp://").trim_end_matches("/bench");
    let (tell, heard) = channel();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(place).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let length = u8::try_from(via.len()).expect("it is short");
        stream
            .write_all(&[&[0, 1, 0, 1, 2, 2, length], via.as_bytes(), &[3, 8, 12]].concat())
            .expect("it is sent");
        let tell = tell.clone();
        thread::spawn(move || {
            let mut told = [0; 200];
            let many = stream.read(&mut told).expect("a word");
            // The test may have failed.
            let _ = tell.send((told[..many].to_vec(), stream));
        });
    }
    let (refused, _) = heard.recv_timeout(PATIENCE).expect("one is refused");
    assert!(String::from_utf8_lossy(&refused).ends_with("ServerTooBusy"), "{refused:?}");
    drop((remote, first));
    let (told, waited) = heard.recv_timeout(PATIENCE).expect("the other's turn comes");
    assert_eq!(told, [0x0b]);
    drop(waited);
    let remote: Ref<dyn IRemoteObject> = Node::new().connect(&object).expect("an address");
    assert_eq!(remote.out_int().expect("OutInt"), 42);
}

/// Four sessions of Python's client, and one at a time.
#[test]
fn pynettcps_sessions_wait_for_each_other() {
    let Some(mut python) = nettcp("pynettcps_sessions_wait_for_each_other") else { return };
    let (_node, place) = serving("net.tcp", "security=none&MaxConcurrentSessions=1&MaxConcurrentCalls=1");
    succeeds(python.arg("session").arg(format!("net.tcp://{place}/cellar")));
}
