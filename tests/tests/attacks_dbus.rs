//! Peers of D-Bus that are silent, slow, broken or hostile: none of them may harm anybody else.

mod attacker;

use crate::common::foreign::{BUSES, PATIENCE, bus, run, until};
use crate::common::galley::{self, NAME};
use crate::common::scratch;
use crate::common::slow::{trickle, until_cut_off};
use attacker::{
    Bytes, RETURN, assert_answered, assert_error, call, call_at, good, greeting, message, send_with, target,
    try_send_with, until_closed,
};
use everywire::model::{Request, Servant};
use everywire::{Interface, Kind, Node, Ref, Remote};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::peers::{here, peak};
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

#[test]
fn the_call_of_these_tests_is_a_good_one() {
    let target = target("good");
    let mut stream = target.admitted();
    stream.write_all(&good()).expect("sent");
    assert_answered(&mut stream);
}

/// D1: CVE-2010-4352.
#[test]
fn cve_2010_4352_variants_in_variants_are_bounded() {
    let target = target("nesting");
    let nested = |depth: usize| {
        let body = [b"\x01v\0".repeat(depth), b"\x01y\0\x07".to_vec()].concat();
        call("EchoVariant", "v", &body, 0)
    };
    let mut stream = target.admitted();
    stream.write_all(&nested(60)).expect("sent");
    assert_eq!(message(&mut stream).expect("an answer").kind, RETURN, "that deep is allowed");
    for depth in [65, 200, 100_000] {
        // An error for this one call; the connection is as good as ever.
        stream.write_all(&nested(depth)).expect("sent");
        assert_error(&mut stream, "org.freedesktop.DBus.Error.LimitsExceeded");
        stream.write_all(&good()).expect("sent");
        assert_answered(&mut stream);
    }
    target.honest();
}

/// D2: CVE-2022-42010, -42011, -42012.
#[test]
fn cve_2022_42011_arrays_and_brackets_are_checked() {
    let target = target("arrays");
    // A descriptor's index in the other byte order, beyond those that came.
    let mut index = Bytes::default();
    index.u32(0x0100_0000).u32(0);
    let bad: [(&str, &str, &[u8]); 3] = [
        // Seven bytes of four-byte integers.
        ("Total", "ai", &[7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0]),
        // More than there is.
        ("Total", "ai", &[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]),
        ("ReadAll", "hah", &index.0),
    ];
    for (member, signature, body) in bad {
        let mut stream = target.admitted();
        stream.write_all(&call(member, signature, body, 0)).expect("sent");
        assert_error(&mut stream, "org.freedesktop.DBus.Error.InvalidArgs");
        target.honest();
    }
    // Brackets that do not close, and close too often: of the header itself.
    for signature in ["(ii", "ii)"] {
        target.refuses(&call("Total", signature, &[0; 8], 0), "Signature");
    }
}

/// D4: CVE-2014-3635, -7824, CVE-2020-12049.
#[test]
fn cve_2020_12049_descriptors_do_not_leak() {
    let target = target("descriptors");
    target.honest();
    let before = target.server.threads_and_descriptors().1;
    for round in 0..100 {
        // Before the greeting is over, more than announced, fewer than announced, too many.
        let stream = target.connect();
        send_with(&stream, &greeting(), 5);
        for (announced, sent) in [(0, 3), (1, 4), (3, 1), (16, 16), (17, 17), (200, 253)] {
            let stream = target.admitted();
            send_with(&stream, &call("Nothing", "", &[], announced), sent);
        }
        if round % 20 == 0 {
            target.honest();
        }
    }
    target.honest();
    until("all descriptors are given back", || target.server.threads_and_descriptors().1 <= before);
}

/// D4: whoever was refused may finish talking for a moment, and passes descriptors all the time.
#[test]
fn descriptors_behind_a_refused_message_are_closed_at_once() {
    let target = target("descriptors-late");
    target.honest();
    let before = target.server.threads_and_descriptors().1;
    let stream = target.admitted();
    send_with(&stream, &call("Nothing", "", &[], 17), 17);
    target.server.complains("TooManyHandles");
    let mut most = 0;
    for _ in 0..1000 {
        // It ends when the moment is over.
        if !try_send_with(&stream, b"more", 16) {
            break;
        }
        most = most.max(target.server.threads_and_descriptors().1);
    }
    assert!(most <= before + 100, "{most} descriptors are open; before, {before} were");
}

/// D7: CVE-2014-3639.
#[test]
fn cve_2014_3639_silent_peers_harm_nobody_and_are_closed() {
    let target = target("silent");
    let silent: Vec<UnixStream> = (0..300)
        .map(|i| {
            let mut stream = target.connect();
            let said: &[u8] = match i % 4 {
                0 => b"",
                1 => b"\0",
                2 => b"\0AUTH",
                _ => b"\0AUTH EXTERNAL\r\n",
            };
            stream.write_all(said).expect("it is not over yet");
            stream
        })
        .collect();
    for _ in 0..5 {
        target.honest();
    }
    // None is held longer than a greeting may take.
    let count = silent.len();
    silent.into_iter().for_each(until_closed);
    for _ in 0..count {
        target.server.complains("TooSlow");
    }
}

/// D9: systemd's CVE-2019-6454.
#[test]
fn cve_2019_6454_a_long_path_is_refused() {
    let target = target("path");
    for (length, violation) in [(5_000, "FieldValue"), (1 << 20, "Fields"), (3 << 20, "Fields")] {
        let path = "/a".repeat(length / 2);
        let mut stream = target.admitted();
        // It may close before everything is sent.
        let _ = stream.write_all(&call_at(&path, "Nothing", "", &[], 0));
        until_closed(stream);
        target.server.complains(violation);
        target.honest();
    }
}

/// D10: GLib's CVE-2024-34397.
#[test]
fn cve_2024_34397_nobody_speaks_for_the_bus() {
    let test = "cve_2024_34397_nobody_speaks_for_the_bus";
    if !here(test, &["gdbus"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let server = Node::new();
        Galley::export(&server, KEY);
        server.listen(&format!("dbus:{}#{NAME}", bus.address())).expect("the bus lets it in");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heard);
        let _subscription = kitchen
            .signals()
            .watch(move |event: everywire::model::SignalEvent<KitchenTick>| {
                noted.lock().expect("whole").push(format!("{event:?}"));
            })
            .expect("a subscription");
        kitchen.nothing().expect("it answers");
        let everybody = client.list(&format!("dbus:{}", bus.address())).expect("a list");
        let emit = |dest: &str, path: &str, signal: &str, arguments: &[&str]| {
            run(Command::new("gdbus")
                .args([
                    "emit",
                    "--address",
                    bus.address(),
                    "--dest",
                    dest,
                    "--object-path",
                    path,
                    "--signal",
                    signal,
                ])
                .args(arguments));
        };
        for one in everybody.iter().filter(|one| one.name.starts_with(':')) {
            // Straight to each connection, past all match rules: a lie about who owns the name, and a signal of it.
            let name = format!("'{NAME}'");
            let signal = "org.freedesktop.DBus.NameOwnerChanged";
            // Those who listed are gone by now.
            if kitchen.nothing().is_ok() {
                emit(&one.name, "/org/freedesktop/DBus", signal, &[&name, "':1.1'", "''"]);
                emit(&one.name, galley::PATH, "org.example.Kitchen.Tick", &["uint32 666", "'forged'"]);
            }
        }
        kitchen.fire(1).expect("fire");
        until("the true signal comes", || !heard.lock().expect("whole").is_empty());
        let heard = heard.lock().expect("whole").clone();
        assert!(heard.len() == 1 && heard[0].contains("tick 0"), "{heard:?}");
    }
}

#[test]
fn headers_that_announce_too_much_are_refused_by_name() {
    let target = target("oversize");
    // The body's length, and that of the header's fields.
    for (at, violation) in [(4, "OverLimit"), (12, "Fields")] {
        let mut bytes = good();
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut stream = target.admitted();
        stream.write_all(&bytes).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        until_closed(stream);
        target.server.complains(violation);
        target.honest();
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    let target = target("nonsense");
    let mut version = good();
    version[3] = 9;
    target.refuses(&version, "Version");
    let mut order = good();
    order[0] = b'x';
    target.refuses(&order, "NotDbus");
}

#[test]
fn calls_cut_anywhere_harm_nobody() {
    let target = target("cut");
    let whole = [greeting(), good()].concat();
    for end in 0..whole.len() {
        let mut stream = target.connect();
        stream.write_all(&whole[..end]).expect("sent");
    }
    target.honest();
}

#[test]
fn random_bytes_harm_nobody() {
    let target = target("random");
    target.honest();
    let before = target.server.threads_and_descriptors();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..1000 {
        let mut bytes = match round % 3 {
            0 => greeting(),
            _ => [greeting(), call("EchoDicts", "a{ys}a{oas}a{sa{sv}}", &[0; 64], 0), good()].concat(),
        };
        // The greeting of most rounds is left whole.
        let from = if round % 3 == 2 { greeting().len() } else { 0 };
        for _ in 0..1 + next() % 8 {
            let at = from + usize::try_from(next() >> 1).unwrap_or(0) % (bytes.len() - from);
            bytes[at] = u8::try_from(next() & 0xff).expect("a byte");
        }
        let mut stream = target.connect();
        // The server may close before everything is sent.
        let _ = stream.write_all(&bytes);
    }
    target.honest();
    until("descriptors are given back", || target.server.threads_and_descriptors().1 <= before.1);
    // What was refused was refused by name.
    for violation in ["Authentication", "NotDbus", "Version"] {
        assert!(
            target.server.log().contains(&format!("violation {violation}\n")),
            "{violation}: {}",
            target.server.log()
        );
    }
}

/// The greeting has a time limit of its own, which [`cve_2014_3639_silent_peers_harm_nobody_and_are_closed`] is about.
#[test]
fn slow_senders_harm_nobody() {
    let target = target("slow");
    let mut slow: Vec<_> = (0..100).map(|_| target.admitted()).collect();
    let node = Node::new();
    let kitchen = target.kitchen(&node);
    trickle(&mut slow, &good(), || {
        for _ in 0..10 {
            assert_eq!(kitchen.divide(17, 5).expect("an honest call"), (3, 2));
        }
    });
    // All of them were in the middle of a call, and nothing of it was lost.
    slow.iter_mut().for_each(assert_answered);
}

#[test]
fn slow_senders_are_cut_off_in_time() {
    let target = target("too-slow");
    let slow: Vec<_> = (0..10).map(|_| target.connect()).collect();
    until_cut_off(slow, |at| *b"\0AUTH EXTERNAL ".get(at).unwrap_or(&b'3'));
    for _ in 0..10 {
        target.server.complains("TooSlow");
    }
    target.honest();
}

/// D6, and whoever asks for much and reads nothing.
#[test]
fn a_caller_that_never_reads_costs_little() {
    let target = target("unread");
    target.honest();
    let before = peak(target.server.pid());
    let mut stream = target.admitted();
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    let mut body = Bytes::default();
    body.u32(1 << 20);
    let call = call("Bytes", "u", &body.0, 0);
    for _ in 0..5000 {
        // The server stops reading at some time.
        if stream.write_all(&call).is_err() {
            break;
        }
    }
    target.honest();
    let grown = peak(target.server.pid()).saturating_sub(before);
    assert!(grown < 256 << 20, "the server grew by {grown} bytes");
}

/// A servant in a client that takes no call to its end until a gate is open.
struct Gated(Arc<RwLock<()>>);

impl Servant for Gated {
    fn interface(&self) -> &Interface {
        <dyn Kitchen as Remote>::interface()
    }

    fn dispatch(&self, _request: Request) {
        drop(self.0.read().expect("whole"));
    }
}

/// A server sends calls that want no answer, and behind them the reply that its client waits for: the client keeps so many of them
/// and no more.
#[test]
fn calls_of_a_server_that_want_no_answer_do_not_pile_up_in_its_client() {
    let socket = scratch("dbus-notes").join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let node = Node::new();
    let gate = Arc::new(RwLock::new(()));
    node.export_servant(KEY, Arc::new(Gated(Arc::clone(&gate))));
    let kitchen: Ref<dyn Kitchen> =
        node.connect(&format!("dbus+unix://{}#{KEY}", socket.display())).expect("it parses");
    let closed = gate.write().expect("whole");
    let calling = std::thread::spawn(move || kitchen.divide(17, 5));
    let (mut peer, _) = listener.accept().expect("a client");
    peer.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    peer.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let mut line = Vec::new();
    while line != b"BEGIN\r\n" {
        line.clear();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            peer.read_exact(&mut byte).expect("a greeting");
            line.push(byte[0]);
        }
        if line.windows(4).any(|word| word == b"AUTH") {
            peer.write_all(b"OK 0123456789abcdef0123456789abcdef\r\n").expect("sent");
        } else if line.starts_with(b"NEGOTIATE") {
            peer.write_all(b"ERROR\r\n").expect("sent");
        }
    }
    assert!(message(&mut peer).is_some(), "the call");
    let mut body = Bytes::default();
    body.u32(1 << 20).0.resize(4 + (1 << 20), 0);
    let mut note = call("Divide", "ay", &body.0, 0);
    // No answer is wanted.
    note[2] = 1;
    let all = (0..300).all(|_| peer.write_all(&note).is_ok());
    assert!(!all, "the client has read 300 MiB of calls that no servant has taken");
    let failure = calling.join().expect("no panic").expect_err("the reply never came");
    drop(closed);
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
}
