//! Captured sessions of KDE's server and clients, played again: the clients' bytes go in, and what comes out must be the
//! captured bytes. Free are only: two bytes of DCOP headers and six of `AuthenticationRequired` that mean nothing, where
//! the capture has what was left in a buffer; padding; the keys that the server chooses (it counts from 42, and had
//! counted before); the order of `registeredApplications()`.

use crate::server::net::{COOKIE, Net, arguments, call, frame, framed, text};
use bytes::BytesMut;
use everywire_dcop::ice::{Core, Initiator, NATIVE_LITTLE, Progress, minor};
use std::collections::HashMap;

const SESSION: &str = include_str!("../data/session.txt");
const RAW: &str = include_str!("../data/raw-client.txt");
const PIPELINE: &str = include_str!("../data/pipeline.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// One message of a captured session.
struct Step {
    client: String,
    from_client: bool,
    title: String,
    raw: Vec<u8>,
}

fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in SESSION.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with(' ') {
            steps.last_mut().unwrap().raw.extend(bytes(line));
            continue;
        }
        let (way, title) = line.split_once(' ').unwrap();
        let (from, to) = way.split_once("->").unwrap();
        let from_client = to == "S";
        let client = if from_client { from } else { to }.to_owned();
        steps.push(Step { client, from_client, title: title.to_owned(), raw: Vec::new() });
    }
    steps
}

/// Plays the session, each client's message in pieces of so many bytes.
fn play(piece: usize) {
    let mut net = Net::new();
    let mut clients: HashMap<String, u64> = HashMap::new();
    let mut got: HashMap<String, Vec<u8>> = HashMap::new();
    let mut key_is_free = false;
    let steps = steps();
    assert!(steps.len() > 100);
    for step in &steps {
        let id = *clients.entry(step.client.clone()).or_insert_with(|| net.connect());
        if step.from_client {
            for piece in step.raw.chunks(piece) {
                net.feed(id, piece);
            }
            key_is_free = step.raw[0] == 1 && step.raw[8..12] == [0; 4];
            assert!(net.closed.is_empty(), "{}: {:?}", step.title, net.closed);
            continue;
        }
        let buffer = got.entry(step.client.clone()).or_default();
        buffer.extend(net.take(id));
        let mut expected = step.raw.clone();
        assert!(buffer.len() >= expected.len(), "{} is missing; there is {buffer:02x?}", step.title);
        let mut ours: Vec<u8> = buffer.drain(..expected.len()).collect();
        let free: &[(usize, usize)] = match (expected[0], expected[1]) {
            (0, 3) => &[(10, 16)],
            (0, _) => &[],
            _ if key_is_free => &[(2, 4), (8, 12)],
            _ => &[(2, 4)],
        };
        for &(start, end) in free {
            ours[start..end].fill(0);
            expected[start..end].fill(0);
        }
        if step.title.contains("QCStringList") && step.title.contains("from='DCOPServer'") {
            // Two ids of 11 and 12 bytes, in any order.
            ours[66 - 16..].sort_unstable();
            expected[66 - 16..].sort_unstable();
        }
        assert_eq!(ours, expected, "{}", step.title);
    }
    for (client, id) in clients {
        let mut rest = got.remove(&client).unwrap_or_default();
        rest.extend(net.take(id));
        assert!(rest.is_empty(), "{client} got more: {rest:02x?}");
        net.hang_up(id);
    }
    assert_eq!(net.server.entries(), 0);
}

#[test]
fn the_captured_session_comes_out_byte_for_byte() {
    play(usize::MAX);
}

#[test]
fn the_captured_session_may_come_in_any_pieces() {
    for piece in [1, 2, 3, 7, 8, 11, 12, 13, 40] {
        play(piece);
    }
}

/// What stands behind a title in the log of the raw client.
fn logged(title: &str) -> Vec<u8> {
    let mut lines = RAW.lines().filter_map(|line| line.strip_prefix(title));
    let line = lines.next_back().unwrap_or_else(|| panic!("{title} is not in the log"));
    bytes(line.rsplit(' ').next().unwrap())
}

/// The messages of the captured client's handshake.
fn handshake() -> Vec<Vec<u8>> {
    let ours = steps().into_iter().filter(|step| step.client == "C1" && step.from_client);
    ours.take(5).map(|step| step.raw).collect()
}

#[test]
fn the_initiator_says_what_the_captured_client_said() {
    let mut initiator = Initiator::new(Some(COOKIE.to_vec()));
    let (mut input, mut out, mut progress) = (BytesMut::new(), Vec::new(), Progress::More);
    initiator.greet(&mut out);
    let handshake = steps().into_iter().filter(|step| step.client == "C1").take(10);
    let mut said = 0;
    for step in handshake {
        if step.from_client {
            // Equal but for padding and unused bytes, where the capture has garbage.
            assert_eq!(out.len(), step.raw.len(), "{}", step.title);
            assert_eq!(Core::read(&out, NATIVE_LITTLE), Core::read(&step.raw, true), "{}", step.title);
            assert!(NATIVE_LITTLE && step.raw[0] == out[0] && step.raw[1] == out[1]);
            out.clear();
            said += 1;
        } else {
            assert_eq!(progress, Progress::More);
            input.extend_from_slice(&step.raw);
            progress = initiator.receive(&mut input, &mut out).unwrap();
        }
    }
    assert_eq!((said, progress), (5, Progress::Done { peer_opcode: 2, my_opcode: 1, swap: false }));
}

#[test]
fn the_raw_clients_handshakes_fail_as_captured() {
    for (title, message, at, with) in [
        ("bad cookie: ", 2, 16, [0xff]),
        ("bad DCOP version: ", 3, 60, [9]),
        ("bad protocol: ", 3, 18, [b'X']),
    ] {
        let mut net = Net::new();
        let id = net.connect();
        let mut messages = handshake();
        messages[message][at..=at].copy_from_slice(&with);
        if title == "bad protocol: " {
            messages[message][18..22].copy_from_slice(b"XSMP");
        }
        let before: Vec<u8> = messages[..message].concat();
        net.feed(id, &before);
        net.take(id);
        net.feed(id, &messages[message]);
        let (mut ours, mut expected) = (net.take(id), logged(title));
        // The bytes between severity and sequence number mean nothing, nor does the padding.
        ours[10..12].fill(0);
        expected[10..12].fill(0);
        let padding = if title == "bad cookie: " { expected.len() - 4 } else { expected.len() };
        assert_eq!(ours.len(), expected.len(), "{title}");
        assert_eq!(ours[..padding], expected[..padding], "{title}");
        assert!(net.closed.contains_key(&id));
        assert_eq!(net.server.entries(), 0);
    }
}

#[test]
fn the_raw_clients_calls_are_answered_as_captured() {
    let mut net = Net::new();
    let bench = net.application("benchserver");
    let first = net.client();
    net.feed(
        first,
        &frame(minor::CALL, 0, &arguments("", "DCOPServer", "", "registerAs(QCString)", &text("pyclient"))),
    );
    let reply = net.one(first);
    assert!(reply.key >= 42, "a call without key gets one");
    assert_eq!(reply.fields()[3], "pyclient");
    let second = net.client();
    assert_eq!(net.register(second, "pyclient"), "pyclient-2");

    net.feed(first, &call("pyclient", "benchserver", "bench", "in_out_int_call(int)", &[0, 0, 0, 7]));
    assert_eq!(net.one(bench).fields()[..4], ["pyclient", "benchserver", "bench", "in_out_int_call(int)"]);
    net.feed(bench, &crate::server::net::reply("benchserver", "pyclient", "int", &[0, 0, 0, 7]));
    let expected =
        [text("benchserver"), text("pyclient"), text("int"), vec![0, 0, 0, 4, 0, 0, 0, 7]].concat();
    assert_eq!(net.one(first).payload, expected);

    let apps = net.ask(first, "registeredApplications()", b"").payload;
    let listed = ["benchserver", "pyclient", "pyclient-2"].map(text).concat();
    assert!(apps.ends_with(&[[0, 0, 0, 3].as_slice(), &listed].concat()), "{apps:02x?}");
    assert!(RAW.contains(&format!("apps b'{}", r"\x00\x00\x00\x03")), "as many as captured");

    net.ask(first, "setNotifications(bool)", &[1]);
    let third = net.application("tmpapp");
    let notice = |net: &mut Net| {
        let mut raw = net.take(first);
        raw[2..4].copy_from_slice(&[0, 2]);
        raw
    };
    let logged_notices: Vec<Vec<u8>> =
        RAW.lines().filter_map(|line| line.strip_prefix("notify ")).map(bytes).collect();
    assert_eq!(notice(&mut net), without_padding(&logged_notices[0]));
    net.hang_up(third);
    assert_eq!(notice(&mut net), without_padding(&logged_notices[1]));

    net.feed(second, &call("pyclient-2", "benchserver", "bench", "f()", b""));
    net.hang_up(bench);
    let mut raw = net.take(second);
    raw[2..4].copy_from_slice(&[0, 2]);
    assert_eq!(raw, logged("callee died: "));
}

/// A logged message without what the log has behind it.
fn without_padding(raw: &[u8]) -> &[u8] {
    let len = u32::from_le_bytes(raw[4..8].try_into().unwrap()) as usize;
    &raw[..12 + len]
}

#[test]
fn a_big_endian_client_is_served() {
    let mut net = Net::new();
    let bench = net.application("benchserver");
    let id = net.connect();
    let version = |major: u8| vec![0, major, 0, 0];
    let string = |text: &[u8]| {
        let mut out = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(text);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let message = |minor: u8, data: [u8; 2], parts: &[Vec<u8>]| {
        let mut body = parts.concat();
        body.resize(body.len().next_multiple_of(8), 0);
        let units = u32::try_from(body.len() / 8).unwrap().to_be_bytes();
        [vec![0, minor, data[0], data[1]], units.to_vec(), body].concat()
    };
    let cookie = || message(4, [0, 0], &[vec![0, 16, 0, 0, 0, 0, 0, 0], COOKIE.to_vec()]);
    net.feed(id, &message(1, [1, 0], &[]));
    let method = || string(b"MIT-MAGIC-COOKIE-1");
    net.feed(id, &message(2, [1, 1], &[vec![0; 8], string(b"MIT"), string(b"1.0"), method(), version(1)]));
    net.feed(id, &cookie());
    let names = [string(b"DCOP"), string(b"KDE"), string(b"2.0"), method(), version(2)].concat();
    net.feed(id, &message(7, [1, 0], &[vec![1, 1, 0, 0, 0, 0, 0, 0], names]));
    net.feed(id, &cookie());
    assert!(net.closed.is_empty(), "{:?}", net.closed);
    net.take(id);
    let register = arguments("", "DCOPServer", "", "registerAs(QCString)", &text("bigend"));
    net.feed(id, &framed(false, minor::CALL, 42, &register));
    let reply = net.one(id);
    assert_eq!((reply.key.to_ne_bytes(), reply.fields()[3].as_str()), (42_u32.to_be_bytes(), "bigend"));
    let arguments = arguments("bigend", "benchserver", "bench", "in_out_int_call(int)", &[0, 0, 0, 7]);
    net.feed(id, &framed(false, minor::CALL, 0x0102_0304, &arguments));
    let call = net.one(bench);
    assert_eq!((call.key.to_ne_bytes(), call.payload), ([1, 2, 3, 4], arguments));
    net.feed(
        bench,
        &crate::server::net::keyed_reply(call.key, "benchserver", "bigend", "int", &[0, 0, 0, 7]),
    );
    let reply = net.one(id);
    assert_eq!(reply.key.to_ne_bytes(), [1, 2, 3, 4]);
}

#[test]
fn calls_in_flight_are_told_apart_by_their_keys_as_captured() {
    let mut net = Net::new();
    let bench = net.application("benchserver");
    let pipe = net.application("pipe");
    for key in [0x7000_0001, 0x7000_0002, 0x7000_0003] {
        net.feed(pipe, &frame(minor::CALL, key, &arguments("pipe", "benchserver", "bench", "f()", b"")));
    }
    assert_eq!(net.messages(bench).len(), 3);
    let mut answers = 0;
    for line in PIPELINE.lines().filter_map(|line| line.strip_prefix("reply op ")) {
        let parts: Vec<&str> = line.split(' ').collect();
        let (minor, payload) = (parts[0].parse().unwrap(), bytes(parts[3]));
        let key = u32::from_str_radix(parts[2].trim_start_matches("0x"), 16).unwrap();
        net.feed(bench, &frame(minor, key, &payload));
        let got = net.one(pipe);
        assert_eq!((got.minor, got.key, got.payload), (minor, key, payload));
        answers += 1;
    }
    assert_eq!(answers, 4);
    net.hang_up(bench);
    assert!(net.messages(pipe).is_empty(), "no call is open any more");
}
