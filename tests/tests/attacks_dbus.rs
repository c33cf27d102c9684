//! Peers of D-Bus that are silent, slow, broken or hostile: none of them may harm anybody else.

use crate::common::foreign::{BUSES, PATIENCE, bus, run, until};
use crate::common::galley::{self, NAME};
use crate::common::slow::{trickle, until_cut_off};
use crate::common::{Server, scratch};
use everywire::model::{Request, Servant};
use everywire::{Interface, Kind, Node, Ref, Remote};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::peers::{here, peak};
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

/// A server peer to peer, in a process of its own.
struct Target {
    server: Server,
    socket: PathBuf,
}

fn target(name: &str) -> Target {
    let dir = scratch(&format!("dbus-{name}"));
    let socket = dir.join("s");
    let server = Server::ours(&format!("dbus+unix://{}", socket.display()), &dir, 4);
    Target { server, socket }
}

impl Target {
    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A connection whose greeting is over; descriptors may be passed.
    fn admitted(&self) -> UnixStream {
        let mut stream = self.connect();
        stream.write_all(&greeting()).expect("sent");
        let mut said = Vec::new();
        while !said.ends_with(b"AGREE_UNIX_FD\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("it answers the greeting");
            said.push(byte[0]);
        }
        stream
    }

    fn kitchen(&self, node: &Node) -> Ref<dyn Kitchen> {
        node.connect(&format!("dbus+unix://{}#{KEY}", self.socket.display())).expect("it parses")
    }

    /// An honest client; all its calls must succeed.
    fn honest(&self) {
        let node = Node::new();
        let kitchen = self.kitchen(&node);
        for _ in 0..50 {
            assert_eq!(kitchen.divide(17, 5).expect("an honest call"), (3, 2));
        }
    }

    /// Sends this to a connection of its own, and reads until the server closes.
    fn refuses(&self, bytes: &[u8], violation: &str) {
        let mut stream = self.admitted();
        // It may close before everything is sent.
        let _ = stream.write_all(bytes);
        until_closed(stream);
        self.server.complains(violation);
        self.honest();
    }
}

fn greeting() -> Vec<u8> {
    // SAFETY: the call takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let hex: String = uid.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("\0AUTH EXTERNAL {hex}\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n").into_bytes()
}

fn until_closed(mut stream: UnixStream) {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
}

/// Little-endian values at their alignment.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn pad(&mut self, n: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(n), 0);
        self
    }
    fn u32(&mut self, value: usize) -> &mut Self {
        self.pad(4).0.extend(u32::try_from(value).expect("32 bits").to_le_bytes());
        self
    }
    fn text(&mut self, value: &str) -> &mut Self {
        self.u32(value.len()).0.extend(value.as_bytes());
        self.0.push(0);
        self
    }
    fn signature(&mut self, value: &str) -> &mut Self {
        self.0.push(u8::try_from(value.len()).expect("short"));
        self.0.extend(value.as_bytes());
        self.0.push(0);
        self
    }
}

/// A call of the kitchen.
fn call(member: &str, signature: &str, body: &[u8], descriptors: usize) -> Vec<u8> {
    call_at(galley::PATH, member, signature, body, descriptors)
}

fn call_at(path: &str, member: &str, signature: &str, body: &[u8], descriptors: usize) -> Vec<u8> {
    let mut fields = Bytes::default();
    for (code, kind, value) in [(1, "o", path), (2, "s", NAME), (3, "s", member)] {
        fields.pad(8).0.push(code);
        fields.signature(kind).text(value);
    }
    if !signature.is_empty() {
        fields.pad(8).0.push(8);
        fields.signature("g").signature(signature);
    }
    if descriptors > 0 {
        fields.pad(8).0.push(9);
        fields.signature("u").u32(descriptors);
    }
    let mut message = Bytes(vec![b'l', 1, 0, 1]);
    message.u32(body.len()).u32(7).u32(fields.0.len());
    message.0.extend(&fields.0);
    message.pad(8).0.extend(body);
    message.0
}

/// `Divide(17, 5)`.
fn good() -> Vec<u8> {
    call("Divide", "ii", &[17, 0, 0, 0, 5, 0, 0, 0], 0)
}

/// The answer to [`good`] comes.
fn assert_answered(stream: &mut UnixStream) {
    let reply = message(stream).expect("an answer");
    assert_eq!((reply.kind, reply.body.as_slice()), (RETURN, &[3, 0, 0, 0, 2, 0, 0, 0][..]));
}

const RETURN: u8 = 2;
const ERROR: u8 = 3;

/// A message of the server.
struct Message {
    kind: u8,
    /// The header's fields, among them the error's name.
    fields: Vec<u8>,
    body: Vec<u8>,
}

const SIGNAL: u8 = 4;

/// The next message that is no signal: the server tells of its objects whenever it likes. Nothing if the server closed.
fn message(stream: &mut UnixStream) -> Option<Message> {
    std::iter::from_fn(|| any_message(stream)).find(|message| message.kind != SIGNAL)
}

fn any_message(stream: &mut UnixStream) -> Option<Message> {
    let mut head = [0; 16];
    match stream.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            return None;
        }
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
    assert_eq!(head[0], b'l', "little-endian as we are");
    let word = |at: usize| {
        usize::try_from(u32::from_le_bytes(head[at..at + 4].try_into().expect("four"))).expect("small")
    };
    let mut fields = vec![0; word(12).next_multiple_of(8)];
    stream.read_exact(&mut fields).expect("the rest of a header");
    let mut body = vec![0; word(4)];
    stream.read_exact(&mut body).expect("the body");
    Some(Message { kind: head[1], fields, body })
}

/// The next message is an error with this name.
#[track_caller]
fn assert_error(stream: &mut UnixStream, name: &str) {
    let reply = message(stream).expect("an answer");
    let text = String::from_utf8_lossy(&reply.fields).into_owned();
    assert!(
        reply.kind == ERROR && text.contains(&format!("{name}\0")),
        "{} {text:?} {:?}",
        reply.kind,
        String::from_utf8_lossy(&reply.body)
    );
}

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

fn send_with(stream: &UnixStream, bytes: &[u8], descriptors: usize) {
    let sent = try_send_with(stream, bytes, descriptors);
    assert!(sent, "descriptors cannot be sent: {}", std::io::Error::last_os_error());
}

fn try_send_with(stream: &UnixStream, bytes: &[u8], descriptors: usize) -> bool {
    let null = std::fs::File::open("/dev/null").expect("it is there");
    let held: Vec<libc::c_int> = vec![null.as_raw_fd(); descriptors];
    let size = u32::try_from(size_of_val(held.as_slice())).expect("small");
    let mut control = [0u64; 256];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr is plain numbers and pointers, for which zero is valid; the control message fits its buffer (at
    // most 253 descriptors of 4 bytes), all pointers are to local variables, and the bytes are only read.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size) as _;
        std::ptr::copy_nonoverlapping(held.as_ptr(), libc::CMSG_DATA(first).cast(), held.len());
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    sent > 0
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
