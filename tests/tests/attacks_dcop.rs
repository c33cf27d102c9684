//! Peers of DCOP that are silent, slow, broken or hostile: none of them may harm anybody else.

use crate::common::dcopserver::DcopServer;
use crate::common::foreign::until;
use crate::common::slow::{trickle, until_cut_off};
use everywire::Node;
use everywire_tests::dcop_kitchen::Kitchen;
use everywire_tests::peers::peak;
use everywire_tests::servants::Scullery;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// A server with an application.
fn target(name: &str) -> (DcopServer, Node) {
    frugal(name, &[])
}

fn frugal(name: &str, options: &[&str]) -> (DcopServer, Node) {
    let server = DcopServer::start(&format!("dcop-attack-{name}"), options);
    let node = Node::new();
    Scullery::export(&node, "kitchen");
    node.listen(&server.at("app")).expect("it is registered");
    (server, node)
}

/// An honest client; all its calls must succeed.
fn honest(server: &DcopServer) {
    let node = Node::new();
    let kitchen = node.connect::<dyn Kitchen>(&server.at("app/kitchen")).expect("it parses");
    for _ in 0..30 {
        assert_eq!(kitchen.divide(17, 5).expect("an honest call"), 3);
    }
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = u16::try_from(text.len()).expect("short").to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn ice(minor: u8, d0: u8, d1: u8, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(8), 0);
    let units = u32::try_from(body.len() / 8).expect("small");
    [&[0, minor, d0, d1][..], &units.to_le_bytes(), &body].concat()
}

/// What a client says until it is admitted, message by message.
fn handshake(cookie: &[u8]) -> Vec<Vec<u8>> {
    let method = string("MIT-MAGIC-COOKIE-1");
    let setup = [&[0; 8][..], &string("MIT"), &string("1.0"), &method, &[1, 0, 0, 0]].concat();
    let names = [string("DCOP"), string("KDE"), string("2.0")].concat();
    let protocol = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &names, &method, &[2, 0, 0, 0]].concat();
    let size = u16::try_from(cookie.len()).expect("short").to_le_bytes();
    let proof = [&size[..], &[0; 6], cookie].concat();
    vec![
        ice(1, 0, 0, vec![]),
        ice(2, 1, 1, setup),
        ice(4, 0, 0, proof.clone()),
        ice(7, 1, 0, protocol),
        ice(4, 0, 0, proof),
    ]
}

fn receive(stream: &mut UnixStream) -> (u8, Vec<u8>) {
    let mut head = [0; 8];
    stream.read_exact(&mut head).expect("an answer");
    let units = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut body = vec![0; usize::try_from(units).expect("small") * 8];
    stream.read_exact(&mut body).expect("the rest of an answer");
    (head[1], body)
}

/// A connection whose handshake is over.
fn admitted(server: &DcopServer) -> UnixStream {
    let mut stream = server.connect();
    let steps = handshake(&server.cookie("ICE"));
    for (step, answer) in steps.iter().zip([1, 3, 6, 3, 8]) {
        stream.write_all(step).expect("sent");
        assert_eq!(receive(&mut stream).0, answer);
    }
    stream
}

fn narrow(text: &[u8]) -> Vec<u8> {
    let size = u32::try_from(text.len() + 1).expect("small").to_be_bytes();
    [&size[..], text, b"\0"].concat()
}

fn octets(data: &[u8]) -> Vec<u8> {
    let size = u32::try_from(data.len()).expect("small").to_be_bytes();
    [&size[..], data].concat()
}

/// A DCOP message.
fn message(kind: u8, key: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_le_bytes();
    [&[1, kind, 0, 0][..], &length, &key.to_le_bytes(), payload].concat()
}

fn call(from: &[u8], to: &[u8], object: &[u8], function: &[u8], data: &[u8]) -> Vec<u8> {
    let payload = [narrow(from), narrow(to), narrow(object), narrow(function), octets(data)].concat();
    message(2, 57, &payload)
}

fn until_closed(mut stream: UnixStream) {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
}

/// The kind, and the payload, of the next DCOP message.
fn answer(stream: &mut UnixStream) -> (u8, Vec<u8>) {
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer");
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut payload = vec![0; usize::try_from(length).expect("small")];
    stream.read_exact(&mut payload).expect("the rest of an answer");
    (head[1], payload)
}

const REPLY: u8 = 3;
const REPLY_FAILED: u8 = 4;

/// C1: KDE's CVE-2005-0396.
#[test]
fn cve_2005_0396_silent_peers_harm_nobody_and_are_closed() {
    let (server, _application) = target("silent");
    let steps = handshake(&[0; 16]);
    let silent: Vec<UnixStream> = (0..200)
        .map(|i| {
            let mut stream = server.connect();
            // The cookie is the third step, and a wrong one.
            for step in steps.iter().take(i % 3) {
                stream.write_all(step).expect("it is not over yet");
            }
            stream.write_all(&steps[i % 3][..i % 8]).expect("it is not over yet");
            stream
        })
        .collect();
    for _ in 0..5 {
        honest(&server);
    }
    // None is held longer than a handshake may take.
    silent.into_iter().for_each(until_closed);
    // Nor is anybody who goes on sending, octet by octet.
    let slow: Vec<_> = (0..10).map(|_| server.connect()).collect();
    let begun = [steps[0].clone(), vec![0, 2, 1, 1, 0, 1, 0, 0]].concat();
    until_cut_off(slow, |at| begun.get(at).copied().unwrap_or_default());
    honest(&server);
}

#[test]
fn slow_senders_harm_nobody() {
    let (server, _application) = target("slow");
    let mut slow: Vec<_> = (0..50).map(|_| admitted(&server)).collect();
    let node = Node::new();
    let kitchen = node.connect::<dyn Kitchen>(&server.at("app/kitchen")).expect("it parses");
    // Any name will do: who asks for one that is taken gets one with a number.
    let register = call(b"", b"DCOPServer", b"", b"registerAs(QCString)", &narrow(b"slow"));
    trickle(&mut slow, &register, || {
        for _ in 0..3 {
            assert_eq!(kitchen.divide(17, 5).expect("an honest call"), 3);
        }
    });
    // All of them were in the middle of a call, and nothing of it was lost.
    for stream in &mut slow {
        assert_eq!(answer(stream).0, REPLY, "it is registered");
    }
}

/// C2: libICE's CVE-2017-2626.
#[test]
fn cve_2017_2626_cookies_are_strong_and_private() {
    let mut server = DcopServer::start("dcop-attack-cookie", &[]);
    let (first, other) = (server.cookie("ICE"), server.cookie("DCOP"));
    assert_eq!((first.len(), other.len()), (16, 16));
    assert_ne!(first, other);
    let file = std::env::var_os("ICEAUTHORITY").expect("it is set");
    assert_eq!(fs::metadata(&file).expect("cookies").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(server.file()).expect("a file").permissions().mode() & 0o077, 0);
    server.terminate();
    server.again();
    assert_ne!(server.cookie("ICE"), first, "each server has cookies of its own");
    // The other protocol's cookie, a part of the right one, none, one with more behind.
    let right = server.cookie("ICE");
    let longer = [&right[..], b"x"].concat();
    for wrong in [&server.cookie("DCOP")[..], &right[..15], &[], &longer] {
        let mut stream = server.connect();
        for step in handshake(wrong) {
            // It closes before everything is sent.
            let _ = stream.write_all(&step);
        }
        server.complains("WrongCookie");
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        // No protocol reply.
        assert!(!said.windows(2).any(|pair| pair == [0, 8]), "{said:?}");
    }
    drop(admitted(&server));
}

/// C3: gnome-session's CVE-2017-11171.
#[test]
fn cve_2017_11171_refused_peers_leave_nothing_behind() {
    let (server, _application) = target("refused");
    honest(&server);
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs").count();
    let before = descriptors();
    let bytes = handshake(&[7; 16]).concat();
    for _ in 0..1100 {
        let mut stream = server.connect();
        // It closes before everything is sent.
        let _ = stream.write_all(&bytes);
        until_closed(stream);
    }
    honest(&server);
    until("each is refused by name", || server.log().matches("(WrongCookie, at byte ").count() == 1100);
    until("descriptors are given back", || descriptors() <= before);
    crate::common::rests(server.pid());
}

/// C4.
#[test]
fn lengths_that_lie_harm_nobody() {
    let (server, _application) = target("lengths");
    let good = call(b"x", b"app", b"kitchen", b"divide(int,int)", &[0, 0, 0, 17, 0, 0, 0, 5]);
    let registered = || {
        let mut stream = admitted(&server);
        stream
            .write_all(&call(b"", b"DCOPServer", b"", b"registerAs(QCString)", &narrow(b"x")))
            .expect("sent");
        assert_eq!(answer(&mut stream).0, REPLY, "it is registered");
        stream
    };
    let mut stream = registered();
    stream.write_all(&good).expect("sent");
    assert_eq!(answer(&mut stream).0, REPLY, "the call of this test is a good one");
    drop(stream);
    let mut huge = good.clone();
    huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let string = |size: u32| message(2, 57, &[&size.to_be_bytes()[..], b"abc\0"].concat());
    let body = |data: &[u8]| call(b"x", b"app", b"kitchen", b"echoText(QString)", data);
    for (name, violation, bytes) in [
        ("a huge message", "OverLimit", huge),
        ("a string beyond the end", "Payload", string(0x7fff_ffff)),
        ("a null string", "Payload", string(u32::MAX)),
        ("a string without NUL", "Payload", message(2, 57, b"\0\0\0\x02ab")),
        ("nothing", "Payload", message(2, 57, b"")),
        ("an unknown kind", "Minor", message(99, 57, b"")),
        ("an ICE message of an unknown protocol", "Major", vec![3, 1, 0, 0, 0, 0, 0, 0]),
        ("an ICE message that is too long", "OverLimit", vec![0, 9, 0, 0, 0xff, 0xff, 0xff, 0xff]),
    ] {
        let mut stream = registered();
        stream.write_all(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        until_closed(stream);
        server.complains(violation);
        honest(&server);
    }
    // What only the application can read fails this one call.
    for (name, bytes) in [
        ("a text beyond the end", body(&[0x7f, 0xff, 0xff, 0xfe])),
        ("half a character", body(&[0, 0, 0, 1, 0])),
    ] {
        let mut stream = registered();
        stream.write_all(&bytes).expect("sent");
        assert_eq!(answer(&mut stream).0, REPLY_FAILED, "{name}");
        stream.write_all(&good).expect("sent");
        assert_eq!(answer(&mut stream).0, REPLY, "after {name}");
    }
    // A reply to nobody is dropped.
    let mut stream = registered();
    stream.write_all(&message(3, 57, &[narrow(b"x"), narrow(b"app")].concat())).expect("sent");
    stream.write_all(&good).expect("sent");
    assert_eq!(answer(&mut stream).0, REPLY);
}

/// C6.
#[test]
fn names_cannot_be_squatted() {
    let (server, _application) = target("names");
    // The name that is granted: the last of the strings in the answer.
    let register = |name: &[u8]| {
        let mut stream = admitted(&server);
        stream
            .write_all(&call(b"", b"DCOPServer", b"", b"registerAs(QCString)", &narrow(name)))
            .expect("sent");
        let (kind, payload) = answer(&mut stream);
        assert_eq!(kind, REPLY);
        let text = String::from_utf8_lossy(&payload).into_owned();
        text.rsplit_once("QCString\0").expect("a string").1[4..].to_owned()
    };
    // Whoever has a name keeps it.
    assert_eq!(register(b"app"), "\0\0\0\x06app-2\0");
    assert_eq!(register(b"DCOPServer"), "\0\0\0\rDCOPServer-2\0");
    assert_eq!(register(&[b'x'; 100_000]), "\0\0\0\0", "too long a name is none");
    honest(&server);
}

#[test]
fn random_bytes_harm_nobody() {
    let (server, _application) = target("random");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let secret = server.cookie("ICE");
    for round in 0..500 {
        let admit = round % 2 == 0;
        let mut bytes = if admit {
            [
                call(b"x", b"app", b"kitchen", b"divide(int,int)", &[0, 0, 0, 17, 0, 0, 0, 5]),
                call(
                    b"x",
                    b"DCOPServer",
                    b"",
                    b"connectSignal(QCString,QCString,QCString,QCString,QCString,bool)",
                    &[0; 40],
                ),
            ]
            .concat()
        } else {
            handshake(&secret).concat()
        };
        for _ in 0..1 + next() % 6 {
            let at = usize::try_from(next() >> 1).unwrap_or(0) % bytes.len();
            bytes[at] = u8::try_from(next() & 0xff).expect("a byte");
        }
        let mut stream = if admit { admitted(&server) } else { server.connect() };
        // It may close before everything is sent.
        let _ = stream.write_all(&bytes);
    }
    honest(&server);
    // What was refused was refused by name.
    for violation in ["Minor", "OverLimit", "Payload"] {
        until(violation, || server.log().contains(&format!("({violation}, at byte ")));
    }
}

/// Has a crowd say this once it is admitted, as far as the server takes it, and read nothing. The server has little more in memory than it may
/// hold for all of them, and serves others.
fn costs_little(name: &str, peers: usize, says: &[u8]) {
    let (server, _application) = frugal(name, &["--memory", "64MiB"]);
    honest(&server);
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").expect("a process of ours");
    let before = peak(server.pid());
    let mut crowd: Vec<(UnixStream, &[u8])> = (0..peers).map(|_| (admitted(&server), says)).collect();
    for _ in 0..5 {
        for (peer, left) in &mut crowd {
            peer.set_nonblocking(true).expect("a socket");
            // One that was closed sends nothing more.
            while let Ok(sent) = peer.write(left)
                && sent > 0
            {
                *left = &left[sent..];
            }
        }
    }
    crate::common::rests(server.pid());
    honest(&server);
    let more = peak(server.pid()).saturating_sub(before) >> 20;
    println!("dcop-{name}: {more} MiB more in memory at the most");
    assert!(more < 118, "{more} MiB more in memory");
}

#[test]
fn ends_of_large_messages_held_back_cost_no_more_than_the_memory_of_the_server() {
    let mut half = call(b"x", b"app", b"kitchen", b"echoText(QString)", &vec![0; (4 << 20) - 4096]);
    half.truncate(half.len() - 1024);
    costs_little("held-back", 400, &half);
}

#[test]
fn answers_that_nobody_reads_cost_no_more_than_the_memory_of_the_server() {
    let register = call(b"", b"DCOPServer", b"", b"registerAs(QCString)", &narrow(b"x"));
    let asks = call(b"x", b"app", b"kitchen", b"bytes(int)", &200_000i32.to_be_bytes());
    costs_little("unread", 100, &[register, asks.repeat(60)].concat());
}
