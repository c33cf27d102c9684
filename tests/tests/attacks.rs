//! Peers that are idle, slow, broken or hostile: none of them may harm anybody else.

use crate::common::foreign::{PATIENCE, until};
use crate::common::slow::{IMPATIENT, trickle, until_cut_off};
use crate::common::{Server, scratch};
use everywire::model::Kind;
use everywire::{Latency, Node};
use everywire_tests::bench::{Benchmarking, IRemoteObject};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// A header that announces `size` bytes: magic, version 1.2, little-endian, Request.
fn header(size: u32) -> Vec<u8> {
    let mut bytes = b"GIOP\x01\x02\x01\x00".to_vec();
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes
}

/// A whole `void_call` of `benchmarking`, as omniORB would send it.
pub(crate) fn request() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&1u32.to_le_bytes());
    body.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0]);
    body.extend_from_slice(&12u32.to_le_bytes());
    body.extend_from_slice(b"benchmarking");
    body.extend_from_slice(&10u32.to_le_bytes());
    body.extend_from_slice(b"void_call\0");
    body.extend_from_slice(&[0, 0]);
    body.extend_from_slice(&0u32.to_le_bytes());
    let mut bytes = header(u32::try_from(body.len()).expect("small"));
    bytes.extend(body);
    bytes
}

fn server(name: &str, mebibytes: u32) -> Server {
    Server::ours("iiop://127.0.0.1:0", &scratch(name), mebibytes)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// An honest client makes calls; all of them must succeed.
fn honest(server: &Server, calls: i32) {
    let node = Node::new();
    let object = node.connect::<dyn Benchmarking>(&server.reference("benchmarking")).expect("it parses");
    for v in 0..calls {
        assert_eq!(object.in_out_int_call(v).expect("an honest call"), v + 1);
    }
}

/// Reads until the server closes; what it said before.
fn last_words(mut stream: TcpStream) -> Vec<u8> {
    let mut words = Vec::new();
    match stream.read_to_end(&mut words) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
    words
}

/// The reply to [`request`] comes.
fn assert_answered(stream: &mut TcpStream) {
    let mut reply = [0; 24];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!(&reply[..8], b"GIOP\x01\x02\x01\x01");
    assert_eq!(&reply[16..20], [0; 4], "no exception");
}

#[test]
fn the_request_of_these_tests_is_a_good_one() {
    let server = server("good", 4);
    let mut stream = connect(&server);
    stream.write_all(&request()).expect("sent");
    assert_answered(&mut stream);
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_harm_nobody() {
    const PEERS: usize = 10_000;
    let limit = everywire_tests::peers::descriptor_limit();
    let peers = PEERS.min(usize::try_from(limit).unwrap_or(PEERS).saturating_sub(500));
    assert!(peers == PEERS || std::env::var("CI").is_err(), "only {limit} descriptors are allowed");
    let server = server("idle", 4);
    honest(&server, 50);
    let before = server.resident();
    let mut idle: Vec<TcpStream> = Vec::with_capacity(peers);
    for i in 0..peers {
        let mut stream = connect(&server);
        match i % 4 {
            // Some say nothing, some begin a header, some a message, and some have had a call and are idle now.
            0 => {}
            1 => stream.write_all(b"GIOP").expect("sent"),
            2 => stream.write_all(&request()[..40]).expect("sent"),
            _ => {
                stream.write_all(&request()).expect("sent");
                assert_answered(&mut stream);
            }
        }
        idle.push(stream);
    }
    honest(&server, 500);
    let each = server.resident().saturating_sub(before) / u64::try_from(peers).expect("many");
    println!("{peers} idle connections cost {each} bytes each");
    assert!(each <= 16 << 10, "an idle connection costs {each} bytes");
    drop(idle);
    honest(&server, 50);
}

#[test]
fn slow_senders_harm_nobody() {
    let server = server("slow", 4);
    let node = Node::new();
    let object = node.connect::<dyn Benchmarking>(&server.reference("benchmarking")).expect("it parses");
    let mut slow: Vec<_> = (0..200).map(|_| connect(&server)).collect();
    trickle(&mut slow, &request(), || {
        for v in 0..20 {
            assert_eq!(object.in_out_int_call(v).expect("an honest call"), v + 1);
        }
    });
    // All of them were in the middle of a request, and nothing of it was lost.
    for stream in &mut slow {
        assert_answered(stream);
    }
}

#[test]
fn slow_senders_are_cut_off_in_time() {
    let dir = scratch("too-slow");
    let server = Server::impatient("iiop://127.0.0.1:0", &dir, 4, IMPATIENT);
    let slow: Vec<_> = (0..10).map(|_| connect(&server)).collect();
    until_cut_off(slow, |at| header(1 << 20).get(at).copied().unwrap_or_default());
    for _ in 0..10 {
        server.refuses_by("first_message");
    }
    honest(&server, 50);
}

#[test]
fn a_message_that_announces_too_much_is_refused_by_name() {
    let server = server("oversize", 4);
    for size in [u32::MAX, u32::MAX - 11, 0x8000_0000, (4 << 20) + 1] {
        let mut stream = connect(&server);
        stream.write_all(&header(size)).expect("sent");
        stream.write_all(&request()[12..]).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        let words = last_words(stream);
        assert!(words.starts_with(b"GIOP"), "size {size}: {words:?}");
        if size > 64 << 20 {
            assert_eq!(words[7], 6, "a MessageError");
            server.complains("OverLimit");
        } else {
            // It could have been let pass and thrown away, had it been sent to its end: this call alone is refused.
            assert_eq!(words[7], 1, "a reply");
            assert!(words.windows(14).any(|part| part == b"limit-exceeded"), "{words:?}");
        }
    }
    assert_eq!(server.log().matches("violation ").count(), 3, "{}", server.log());
    honest(&server, 50);
}

#[test]
fn a_call_over_the_limit_is_a_clear_error_on_both_sides() {
    let server = server("limits", 4);
    let big = "x".repeat(5 << 20);
    // This side's own limit.
    let node = Node::new();
    let object = node.connect::<dyn Benchmarking>(&server.reference("benchmarking")).expect("it parses");
    let failure = object.in_string_call(&big).expect_err("over the limit here");
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
    assert!(failure.hint().is_some(), "it must say how to raise the limit");
    assert_eq!(object.in_out_int_call(1).expect("the connection lives on"), 2);
    // The other side's: a request and a reply.
    let raised: Node = Node::builder().max_message(100 << 20).build().into();
    let object = raised.connect::<dyn Benchmarking>(&server.reference("benchmarking")).expect("it parses");
    let failure = object.in_string_call(&big).expect_err("over the limit there");
    assert!(matches!(failure.kind(), Kind::LimitExceeded | Kind::Malformed), "{failure:?}");
    assert_eq!(object.in_out_int_call(1).expect("a new connection"), 2);
    let bytes = raised.connect::<dyn IRemoteObject>(&server.reference("IRemoteObject")).expect("it parses");
    let failure = bytes.get_bytes(5 << 20).expect_err("its reply is over the limit");
    assert!(matches!(failure.kind(), Kind::LimitExceeded | Kind::Malformed), "{failure:?}");
    assert_eq!(bytes.get_bytes(100).expect("the connection lives on").len(), 100);
    // A reply over this side's limit.
    let large = self::server("limits-large", 64);
    let bytes = node.connect::<dyn IRemoteObject>(&large.reference("IRemoteObject")).expect("it parses");
    let failure = bytes.get_bytes(5 << 20).expect_err("over the limit here");
    assert!(matches!(failure.kind(), Kind::LimitExceeded | Kind::Violation), "{failure:?}");
    assert!(failure.message().contains("4194304"), "{failure}");
}

#[test]
fn requests_cut_anywhere_harm_nobody() {
    let server = server("cut", 4);
    let whole = request();
    for end in 0..whole.len() {
        let mut stream = connect(&server);
        stream.write_all(&whole[..end]).expect("sent");
        drop(stream);
    }
    honest(&server, 50);
}

#[test]
fn random_bytes_harm_nobody() {
    let server = server("random", 4);
    honest(&server, 50);
    let before = server.threads_and_descriptors();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..2000 {
        let mut bytes =
            if round % 2 == 0 { request() } else { header(u32::try_from(next() % 5000).expect("small")) };
        let flips = 1 + next() % 8;
        for _ in 0..flips {
            let at = usize::try_from(next()).unwrap_or(0) % bytes.len();
            bytes[at] = u8::try_from(next() & 0xff).expect("a byte");
        }
        let tail = next() % 200;
        bytes.extend((0..tail).map(|_| u8::try_from(next() & 0xff).expect("a byte")));
        let mut stream = connect(&server);
        // The server may close before everything is sent.
        let _ = stream.write_all(&bytes);
    }
    honest(&server, 50);
    // A few spare threads may wait for work; descriptors must all be back.
    until("threads and descriptors are given back", || {
        let now = server.threads_and_descriptors();
        now.1 <= before.1 && now.0 <= before.0 + 4
    });
    // What was refused was refused by name.
    for violation in ["NotGiop", "Version", "OverLimit"] {
        assert!(server.log().contains(&format!("violation {violation}\n")), "{violation}: {}", server.log());
    }
}

#[test]
fn a_server_out_of_descriptors_recovers() {
    let server = Server::starved("iiop://127.0.0.1:0", &scratch("starved"), 64);
    let crowd: Vec<_> = (0..120).map(|_| connect(&server)).collect();
    until("the server wants descriptors", || server.log().contains("starved accepting at"));
    drop(crowd);
    honest(&server, 1);
}

#[test]
fn a_large_reply_is_held_once_on_each_side() {
    const N: u64 = 64 << 20;
    for transport in ["tcp", "unix", "shm"] {
        let dir = scratch(&format!("large-{transport}"));
        let address = match transport {
            "tcp" => "iiop://127.0.0.1:0".to_owned(),
            other => format!("iiop+{other}://{}/peer.sock", dir.display()),
        };
        let server = Server::ours(&address, &dir, 128);
        // The servant's own buffer is there before: the reply must not be copied.
        let before = server.resident();
        let output = Command::new(env!("CARGO_BIN_EXE_fetch"))
            .arg(server.reference("IRemoteObject"))
            .arg(N.to_string())
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().expect("a number"));
        assert_eq!(numbers.next(), Some(N), "{}", String::from_utf8_lossy(&output.stderr));
        let client = numbers.next().expect("the client's memory");
        let grown = everywire_tests::peers::peak(server.pid()).saturating_sub(before);
        println!("{transport}: the client grew by {client} bytes, the server by {grown}");
        assert!(client <= N + N / 8, "{transport}: the client grew by {client} bytes");
        assert!(grown <= N / 8, "{transport}: the server grew by {grown} bytes");
    }
}

#[test]
fn callers_that_die_leave_nothing_behind() {
    let server = server("dying", 4);
    honest(&server, 10);
    let before = server.threads_and_descriptors();
    for _ in 0..300 {
        let mut stream = connect(&server);
        for _ in 0..50 {
            stream.write_all(&request()).expect("sent");
        }
        // Closed with replies unread: the server gets a reset.
        drop(stream);
    }
    honest(&server, 50);
    until("descriptors are given back", || server.threads_and_descriptors().1 <= before.1);
}

#[test]
fn an_idle_server_uses_no_cpu() {
    let server = server("idle-cpu", 4);
    let lowest: Node = Node::builder().latency(Latency::Default).build().into();
    let object = lowest.connect::<dyn Benchmarking>(&server.reference("benchmarking")).expect("it parses");
    for v in 0..200 {
        object.in_out_int_call(v).expect("a call");
    }
    // Patience ends, the supervisor falls asleep.
    server.rests();
}
