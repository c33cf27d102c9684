//! Attacks on the memory and the places of a server, over every wire that strangers reach by TCP, and over Unix sockets: what they hold stays
//! below the budget, somebody else is served, and whoever finds no place is told why in the words of the wire.
//!
//! What the server's process had in memory at the most is printed and compared (`bounded`), not only what it has in the end.

use crate::attacks::request;
use crate::common::foreign::{PATIENCE, until};
use crate::common::{Server, scratch};
use everywire::Node;
use everywire_tests::bench::IRemoteObject;
use everywire_tests::peers::peak;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Bytes of a large message that its sender ends never.
const LARGE: u32 = (4 << 20) - 4096;
/// Of each the last ones are held back.
const HELD_BACK: u32 = 1 << 10;
/// The budget of the servers, in mebibytes, and what their processes may have in memory beside what they have without peers (one of
/// their objects holds 64 MiB): 128 MiB, less what a server needs by itself. On a machine that does much else, more threads are under way
/// at a time, and each keeps some memory that it has used.
const BUDGET: u32 = 64;
const MORE: u64 = 118 << 20;

/// A wire, and how its peers misbehave. Where the address says `HERE`, the directory of the server is put in.
struct Attack {
    name: &'static str,
    address: &'static str,
    /// What a peer sends first, and what it waits for.
    greeting: fn(u16) -> (Vec<u8>, usize),
    /// A message without its end.
    unfinished: fn() -> Vec<u8>,
}

/// A connection from the address 127.0.0.`last`.
fn from(last: u8, port: u16) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), 0)).expect("an address of loopback");
    // What nobody reads waits in the server, not here.
    sockopt::set_socket_recv_buffer_size(&socket, 4 << 10).expect("a small buffer");
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).expect("it listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// The same to the server, if it has a port; else a connection to its Unix socket, which is a stream like others.
fn reach(last: u8, server: &Server) -> TcpStream {
    let Some((_, path)) = server.address.split_once(":///") else { return from(last, port(server)) };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let stream = UnixStream::connect(format!("/{}", path.trim_end_matches('/'))).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    TcpStream::from(OwnedFd::from(stream))
}

/// A server on the wire, with the budget.
fn target(name: &str, address: &str, connections: u32) -> Server {
    let dir = scratch(name);
    Server::frugal(&address.replace("HERE", &dir.display().to_string()), &dir, BUDGET, connections)
}

fn filler() -> Vec<u8> {
    vec![b' '; (LARGE - HELD_BACK) as usize]
}

fn giop() -> Vec<u8> {
    let mut bytes = b"GIOP\x01\x02\x01\x00".to_vec();
    bytes.extend(LARGE.to_le_bytes());
    bytes.extend(filler());
    bytes
}

/// Fragments of a request, all but the last: in GIOP they are joined by the session.
fn giop_fragments() -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in 0..60u32 {
        let mut body = 9u32.to_le_bytes().to_vec();
        body.resize(64 << 10, 0);
        let kind = if part == 0 { 0 } else { 7 };
        bytes.extend(b"GIOP\x01\x02\x03");
        bytes.push(kind);
        bytes.extend(u32::try_from(body.len() + 4).expect("small").to_le_bytes());
        bytes.extend(body);
        bytes.extend([0; 4]);
    }
    bytes
}

fn http() -> Vec<u8> {
    let head = format!(
        "POST /IRemoteObject HTTP/1.1\r\nHost: here\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: {LARGE}\r\n\r\n"
    );
    [head.into_bytes(), filler()].concat()
}

/// Version 1.0, duplex, the place, binary with sessions, the end of the preamble (MC-NMF 2.2.3); then one octet of acknowledgement.
fn preamble(port: u16) -> (Vec<u8>, usize) {
    let via = format!("net.tcp://127.0.0.1:{port}/IRemoteObject");
    let mut bytes = vec![0, 1, 0, 1, 2, 2, u8::try_from(via.len()).expect("short")];
    bytes.extend(via.as_bytes());
    bytes.extend([3, 8, 12]);
    (bytes, 1)
}

fn envelope() -> Vec<u8> {
    let mut bytes = vec![6];
    let mut size = LARGE;
    while size >= 0x80 {
        bytes.push(u8::try_from(size & 0x7f).expect("seven bits") | 0x80);
        size >>= 7;
    }
    bytes.push(u8::try_from(size).expect("seven bits"));
    bytes.extend(filler());
    bytes
}

/// A bind to IObjectExporter in NDR, without authentication (C706 12.6.4.3), and the length of the answer.
fn bind_pdu(_: u16) -> (Vec<u8>, usize) {
    const EXPORTER: [u8; 16] =
        [0xc4, 0xfe, 0xfc, 0x99, 0x60, 0x52, 0x1b, 0x10, 0xbb, 0xcb, 0x00, 0xaa, 0x00, 0x21, 0x34, 0x7a];
    const NDR: [u8; 16] =
        [0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60];
    let mut bytes = vec![5, 0, 11, 3, 0x10, 0, 0, 0, 72, 0, 0, 0, 1, 0, 0, 0];
    bytes.extend([0xd0, 0x16, 0xd0, 0x16, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0]);
    bytes.extend(EXPORTER);
    bytes.extend([0, 0, 0, 0]);
    bytes.extend(NDR);
    bytes.extend([2, 0, 0, 0]);
    (bytes, 60)
}

/// Fragments of a request, the first and all but the last.
fn dcom_fragments() -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in 0..680u32 {
        let len = 5840u16;
        bytes.extend([5, 0, 0, u8::from(part == 0), 0x10, 0, 0, 0]);
        bytes.extend(len.to_le_bytes());
        bytes.extend([0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.resize(bytes.len() + usize::from(len) - 24, 0);
    }
    bytes
}

/// What a client says that anybody may be, or this user; the answer is `OK` and the 32 digits of the server.
fn anonymous(_: u16) -> (Vec<u8>, usize) {
    (b"\0AUTH ANONYMOUS\r\nBEGIN\r\n".to_vec(), 37)
}

fn external(_: u16) -> (Vec<u8>, usize) {
    let user: String =
        rustix::process::getuid().as_raw().to_string().bytes().map(|digit| format!("{digit:02x}")).collect();
    (format!("\0AUTH EXTERNAL {user}\r\nBEGIN\r\n").into_bytes(), 37)
}

/// A call of `GetBytes` in D-Bus (specification, "Header Fields"): a path, a member, and the signature of a body that is not here yet.
fn dbus_call(signature: &str, size: u32) -> Vec<u8> {
    let mut fields = Vec::new();
    for (code, kind, text) in [(1, b'o', "/IRemoteObject"), (3, b's', "GetBytes"), (8, b'g', signature)] {
        if text.is_empty() {
            continue;
        }
        fields.resize(fields.len().next_multiple_of(8), 0);
        fields.extend([code, 1, kind, 0]);
        let length = u32::try_from(text.len()).expect("short").to_le_bytes();
        // The length of a signature is one octet.
        fields.extend(if kind == b'g' { &length[..1] } else { &length[..] });
        fields.extend(text.as_bytes());
        fields.push(0);
    }
    let mut says = b"l\x01\0\x01".to_vec();
    says.extend([size, 1, u32::try_from(fields.len()).expect("short")].iter().flat_map(|n| n.to_le_bytes()));
    fields.resize(fields.len().next_multiple_of(8), 0);
    says.extend(fields);
    says
}

fn dbus() -> Vec<u8> {
    [dbus_call("ay", LARGE), (LARGE - 4).to_le_bytes().to_vec(), filler()].concat()
}

fn nothing(_: u16) -> (Vec<u8>, usize) {
    (Vec::new(), 0)
}

const ATTACKS: [Attack; 9] = [
    Attack { name: "giop", address: "iiop://127.0.0.1:0", greeting: nothing, unfinished: giop },
    Attack {
        name: "giop-fragments",
        address: "iiop://127.0.0.1:0",
        greeting: nothing,
        unfinished: giop_fragments,
    },
    Attack {
        name: "http",
        address: "basic://127.0.0.1:0?MaxReceivedMessageSize=4194304",
        greeting: nothing,
        unfinished: http,
    },
    Attack {
        name: "net.tcp",
        address: "net.tcp://127.0.0.1:0?security=none&MaxReceivedMessageSize=4194304",
        greeting: preamble,
        unfinished: envelope,
    },
    Attack {
        name: "dcom",
        address: "dcom://127.0.0.1:0?level=none",
        greeting: bind_pdu,
        unfinished: dcom_fragments,
    },
    Attack {
        name: "dbus",
        address: "dbus://127.0.0.1:0?auth=anonymous",
        greeting: anonymous,
        unfinished: dbus,
    },
    Attack { name: "dbus-unix", address: "dbus+unix://HERE/s", greeting: external, unfinished: dbus },
    Attack { name: "giop-unix", address: "iiop+unix://HERE/s", greeting: nothing, unfinished: giop },
    Attack {
        name: "net-uds",
        address: "net.uds://HERE/s.sock?MaxReceivedMessageSize=4194304",
        greeting: preamble,
        unfinished: envelope,
    },
];

/// Somebody from another address than the attackers, whose calls must succeed.
fn honest(server: &Server) {
    // How soon it is served on a busy machine is measured elsewhere.
    let node: Node = Node::builder().deadline(Some(PATIENCE)).build().into();
    let object = node.connect::<dyn IRemoteObject>(&server.reference("IRemoteObject")).expect("it parses");
    for _ in 0..20 {
        let bytes = object.get_bytes(100);
        let bytes = bytes.unwrap_or_else(|failure| panic!("an honest call: {failure}\n{}", server.log()));
        assert_eq!(bytes.len(), 100);
    }
}

/// What the server has in memory; the most that it has counts from now on.
fn before(server: &Server) -> u64 {
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").expect("a process of ours");
    server.resident()
}

/// The server has not held much more than before.
fn bounded(name: &str, server: &Server, before: u64) {
    let more = peak(server.pid()).saturating_sub(before);
    let now = server.resident().saturating_sub(before);
    println!("{name}: {} MiB more in memory at the most, {} in the end", more >> 20, now >> 20);
    assert!(more < MORE, "{name}: {} MiB more in memory", more >> 20);
}

/// Where it listens.
fn port(server: &Server) -> u16 {
    let place = server.address.split(['?', '#']).next().expect("an address").trim_end_matches('/');
    place.rsplit(':').next().expect("a port").parse().expect("a number")
}

/// 400 peers hold back the end of a large message each.
fn hold_back(attack: &Attack) {
    let server = target(&format!("shares-{}", attack.name), attack.address, 16_000);
    // Over a Unix socket nobody asks for it.
    let port = if server.address.contains(":///") { 1 } else { port(&server) };
    honest(&server);
    let before = before(&server);
    let crowd: Vec<TcpStream> = thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let server = &server;
                scope.spawn(move || {
                    let message = (attack.unfinished)();
                    let mut peers = Vec::new();
                    for _ in 0..100 {
                        let mut peer = reach(3, server);
                        let (greeting, answer) = (attack.greeting)(port);
                        // Whoever has lost its place is of no use, but stays.
                        if peer.write_all(&greeting).is_ok() && peer.read_exact(&mut vec![0; answer]).is_ok()
                        {
                            let _ = peer.write_all(&message);
                        }
                        peers.push(peer);
                    }
                    peers
                })
            })
            .collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("a sender")).collect()
    });
    until("the budget is asked for", || server.log().contains("`memory`"));
    honest(&server);
    bounded(attack.name, &server, before);
    drop(crowd);
    honest(&server);
}

macro_rules! held_back {
    ($($name:ident: $at:literal,)*) => {$(
        #[test]
        fn $name() {
            hold_back(&ATTACKS[$at]);
        }
    )*};
}

held_back! {
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_iiop: 0,
    ends_of_fragmented_messages_held_back_cost_no_more_than_the_budget_over_iiop: 1,
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_http: 2,
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_net_tcp: 3,
    ends_of_fragmented_messages_held_back_cost_no_more_than_the_budget_over_dcom: 4,
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_dbus: 5,
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_dbus_and_unix: 6,
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_giop_and_unix: 7,
    ends_of_large_messages_held_back_cost_no_more_than_the_budget_over_net_uds: 8,
}

/// Peers pipeline requests and read none of the answers, which begin like this where somebody reads them.
fn pipeline(name: &str, address: &str, peers: usize, requests: &[u8], begins: &[u8]) {
    let server = target(&format!("unread-{name}"), address, 16_000);
    honest(&server);
    // The requests are good ones: whoever reads gets a large answer.
    let mut reader = reach(2, &server);
    reader.write_all(requests.get(..requests.len() / 2).expect("some")).expect("sent");
    let mut answer = [0; 100_000];
    reader.read_exact(&mut answer).expect("answers");
    assert!(answer.starts_with(begins), "{}", answer[..200].escape_ascii());
    drop(reader);
    let before = before(&server);
    let mut crowd: Vec<(TcpStream, &[u8])> = (0..peers).map(|_| (reach(3, &server), requests)).collect();
    for _ in 0..5 {
        for (peer, left) in &mut crowd {
            peer.set_nonblocking(true).expect("a socket");
            // What the server does not read now may go later, or never; a peer that it has closed sends nothing more.
            while let Ok(sent) = peer.write(left)
                && sent > 0
            {
                *left = &left[sent..];
            }
        }
        honest(&server);
    }
    server.rests();
    bounded(name, &server, before);
    honest(&server);
    drop(crowd);
    honest(&server);
}

#[test]
fn answers_that_nobody_reads_cost_no_more_than_the_budget_over_http() {
    let call = |operation: &str, body: &str| {
        let envelope = format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{body}</s:Body></s:Envelope>"
        );
        format!(
            "POST /IRemoteObject HTTP/1.1\r\nHost: here\r\nContent-Type: text/xml; charset=utf-8\r\nSOAPAction: \"{operation}\"\r\n\
             Content-Length: {}\r\n\r\n{envelope}",
            envelope.len()
        )
    };
    let bytes = call(
        "http://tempuri.org/IRemoteObject/GetBytes",
        "<GetBytes xmlns=\"http://tempuri.org/\"><n>200000</n></GetBytes>",
    );
    pipeline("http-calls", "basic://127.0.0.1:0", 100, bytes.repeat(200).as_bytes(), b"HTTP/1.1 200 OK\r\n");
}

#[test]
fn pages_that_nobody_reads_cost_no_more_than_the_budget_over_http() {
    let page = "GET /IRemoteObject?wsdl HTTP/1.1\r\nHost: here\r\n\r\n";
    pipeline("http-pages", "basic://127.0.0.1:0", 20, page.repeat(2000).as_bytes(), b"HTTP/1.1 200 OK\r\n");
}

/// A preamble, and requests for 200,000 octets as text (SOAP 1.2): each of the octets is more than one in the answer, and is made for it.
fn soap_in_records() -> Vec<u8> {
    let place = "net.tcp://127.0.0.1:1/IRemoteObject";
    let mut all = preamble(1).0;
    // The encoding is UTF-8 (MC-NMF, 2.2.3.4.1).
    let at = all.len() - 2;
    all[at] = 3;
    for number in 0..200 {
        let envelope = format!(
            "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:a=\"http://www.w3.org/2005/08/addressing\"><s:Header>\
             <a:Action s:mustUnderstand=\"1\">http://tempuri.org/IRemoteObject/GetBytes</a:Action>\
             <a:MessageID>urn:uuid:00000000-0000-0000-0000-{number:012}</a:MessageID>\
             <a:ReplyTo><a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address></a:ReplyTo>\
             <a:To s:mustUnderstand=\"1\">{place}</a:To></s:Header>\
             <s:Body><GetBytes xmlns=\"http://tempuri.org/\"><n>200000</n></GetBytes></s:Body></s:Envelope>"
        );
        let size = envelope.len();
        all.extend([
            6,
            u8::try_from(size & 0x7f).expect("seven bits") | 0x80,
            u8::try_from(size >> 7).expect("small"),
        ]);
        all.extend(envelope.as_bytes());
    }
    all
}

#[test]
fn answers_that_nobody_reads_cost_no_more_than_the_budget_over_net_tcp() {
    let address = "net.tcp://127.0.0.1:0?security=none&encoding=text";
    pipeline("net.tcp-calls", address, 100, &soap_in_records(), b"\x0b\x06");
}

#[test]
fn answers_that_nobody_reads_cost_no_more_than_the_budget_over_net_uds() {
    pipeline("net-uds-calls", "net.uds://HERE/s.sock?encoding=text", 100, &soap_in_records(), b"\x0b\x06");
}

fn dbus_calls(greeting: (Vec<u8>, usize)) -> Vec<u8> {
    let call = [dbus_call("i", 4), 200_000u32.to_le_bytes().to_vec()].concat();
    [greeting.0, call.repeat(200)].concat()
}

#[test]
fn answers_that_nobody_reads_cost_no_more_than_the_budget_over_dbus() {
    let requests = dbus_calls(anonymous(0));
    pipeline("dbus-calls", "dbus://127.0.0.1:0?auth=anonymous", 100, &requests, b"OK ");
    pipeline("dbus-unix-calls", "dbus+unix://HERE/s", 100, &dbus_calls(external(0)), b"OK ");
}

#[test]
fn answers_that_nobody_reads_cost_no_more_than_the_budget_over_iiop() {
    // Requests of GIOP 1.2 for 200,000 octets (CORBA 3.0, 15.4.2): a number, that an answer is wanted, the object's key.
    let mut body = vec![0; 4];
    body.extend([3, 0, 0, 0, 0, 0, 0, 0]);
    body.extend(13u32.to_le_bytes());
    body.extend(b"IRemoteObject\0\0\0");
    body.extend(9u32.to_le_bytes());
    body.extend(b"GetBytes\0\0\0\0");
    // No service contexts; what follows stands at a multiple of eight from the head of twelve octets on.
    body.extend(0u32.to_le_bytes());
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    body.extend(200_000u32.to_le_bytes());
    let mut request = b"GIOP\x01\x02\x01\x00".to_vec();
    request.extend(u32::try_from(body.len()).expect("small").to_le_bytes());
    request.extend(body);
    // Each has a number of its own while it is open.
    let requests: Vec<u8> = (0..200u32)
        .flat_map(|number| {
            request[12..16].copy_from_slice(&number.to_le_bytes());
            request.clone()
        })
        .collect();
    // A reply without fragments that holds more than the octets: little-endian as ours are.
    pipeline("iiop-calls", "iiop://127.0.0.1:0", 100, &requests, b"GIOP\x01\x02\x01\x01");
    pipeline("iiop-unix-calls", "iiop+unix://HERE/s", 100, &requests, b"GIOP\x01\x02\x01\x01");
}

/// Two clients hold both places that there are, and call all the time. Who comes beside them is told why in these words.
fn turned_away(attack: &Attack, says: &[u8], told: impl Fn(&[u8]) -> bool) {
    let server = Server::frugal(attack.address, &scratch(&format!("places-{}", attack.name)), BUDGET, 2);
    let port = port(&server);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let node = Node::new();
                let object =
                    node.connect::<dyn IRemoteObject>(&server.reference("IRemoteObject")).expect("it parses");
                while !over.load(Ordering::Relaxed) {
                    // One that has lost its place is told so, too.
                    let _ = object.get_bytes(100);
                }
            });
        }
        // On a busy machine one of them may have been quiet for too long, and lose its place.
        until("somebody is told that there is no place", || {
            let mut newcomer = from(3, port);
            let mut said = Vec::new();
            let _ = newcomer.write_all(says).and_then(|()| newcomer.read_to_end(&mut said));
            told(&said) && server.log().contains("`connections`")
        });
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn newcomers_without_a_place_are_told_why_over_iiop() {
    // NO_RESOURCES, not executed, and a goodbye.
    turned_away(&ATTACKS[0], &request(), |said| {
        let refused = String::from_utf8_lossy(said).contains("IDL:omg.org/CORBA/NO_RESOURCES:1.0");
        refused && said.ends_with(b"\x05\0\0\0\0")
    });
}

#[test]
fn newcomers_without_a_place_are_told_why_over_http() {
    let page = b"GET /IRemoteObject?wsdl HTTP/1.1\r\nHost: here\r\n\r\n";
    turned_away(&ATTACKS[2], page, |said| {
        let said = String::from_utf8_lossy(said).to_lowercase();
        said.starts_with("http/1.1 503 ") && said.contains("retry-after: 1") && said.contains("`connections`")
    });
}

#[test]
fn newcomers_without_a_place_are_told_why_over_net_tcp() {
    turned_away(&ATTACKS[3], &preamble(1).0, |said| {
        let fault = b"http://schemas.microsoft.com/ws/2006/05/framing/faults/ServerTooBusy";
        said.first() == Some(&8) && said.ends_with(fault)
    });
}

#[test]
fn newcomers_without_a_place_are_told_why_over_dbus() {
    // Anybody may come here. The greeting in one piece, then a call.
    let says = [anonymous(0).0, dbus_call("", 0)].concat();
    let address = "dbus://127.0.0.1:0?auth=anonymous";
    let attack = Attack { name: "dbus", address, greeting: nothing, unfinished: Vec::new };
    turned_away(&attack, &says, |said| {
        let said = String::from_utf8_lossy(said);
        said.starts_with("OK ")
            && said.contains("org.freedesktop.DBus.Error.LimitsExceeded")
            && said.contains("`connections`")
    });
}

#[test]
fn newcomers_without_a_place_are_told_why_over_dcom() {
    // bind_nak, for a limit of this side (C706 12.6.4.5).
    turned_away(&ATTACKS[4], &bind_pdu(0).0, |said| {
        said.get(2) == Some(&13) && said.get(16..18) == Some(&[2, 0])
    });
}
