//! Somebody on the way between an honest client and its server, and servers that send their clients to somebody else.

use super::pantry::{CLASS, PANTRY};
use super::target::{COOK, DOMAIN, PASSWORD, Settings, Target};
use everywire::model::{Completed, Hold};
use everywire::{Failure, Kind, Node, Object};
use everywire_dcom::frame::{DID_NOT_EXECUTE, FIRST, LAST, PduKind};
use everywire_dcom::hresult;
use everywire_dcom::pdu::{Fault, Pdu};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// `IPantry.Add`, behind IUnknown and IDispatch.
const ADD: u16 = 7;

/// What is done to the answers to `Add`.
#[derive(Debug, Clone, Copy)]
struct Deed {
    /// The status of a fault that is put in front.
    status: u32,
    /// Whether the answer itself is held back.
    withhold: bool,
}

/// Passes everything on between clients and the server at that port, but for the deed; its port, and how many times `Add` was
/// asked for.
fn relay(server: u16, deed: Deed) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server)).expect("the server listens");
            let calls = Arc::new(Mutex::new(HashSet::new()));
            let (noted, counter) = (Arc::clone(&calls), Arc::clone(&counter));
            let ends = || (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            let (from, to) = ends();
            std::thread::spawn(move || {
                pass(from, to, |pdu| {
                    if pdu[2] == PduKind::Request as u8 && pdu[22..24] == ADD.to_le_bytes() {
                        counter.fetch_add(1, Ordering::SeqCst);
                        noted.lock().expect("whole").insert(call_of(pdu));
                    }
                    pdu.to_vec()
                });
            });
            let (to, from) = ends();
            std::thread::spawn(move || {
                pass(from, to, |pdu| {
                    let kind = pdu[2];
                    let answers = kind == PduKind::Response as u8 || kind == PduKind::Fault as u8;
                    if !answers || !calls.lock().expect("whole").contains(&call_of(pdu)) {
                        return pdu.to_vec();
                    }
                    let mut out = forged(call_of(pdu), deed.status);
                    if !deed.withhold {
                        out.extend_from_slice(pdu);
                    }
                    out
                });
            });
        }
    });
    (port, asked)
}

/// Passes PDUs on as `change` has them, until either side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&[u8]) -> Vec<u8>) {
    loop {
        let mut pdu = vec![0; 16];
        if from.read_exact(&mut pdu).is_err() {
            break;
        }
        pdu.resize(u16::from_le_bytes([pdu[8], pdu[9]]).into(), 0);
        if from.read_exact(&mut pdu[16..]).is_err() || to.write_all(&change(&pdu)).is_err() {
            break;
        }
    }
    for end in [from, to] {
        // It may have ended by itself.
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn call_of(pdu: &[u8]) -> u32 {
    u32::from_le_bytes([pdu[12], pdu[13], pdu[14], pdu[15]])
}

fn forged(call: u32, status: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let fault = Fault { context: 0, cancels: 0, flags: 0, status, stub: 0..0 };
    Pdu::Fault(fault).write(&mut out, FIRST | LAST | DID_NOT_EXECUTE, call, &[]);
    out
}

/// The pantry behind a port of this machine, for the cook; objects are called through the same port.
fn through(node: &Node, port: u16, level: &str) -> Object {
    let address =
        format!("dcom://{DOMAIN};{COOK}:{PASSWORD}@127.0.0.1:{port}/{CLASS}?level={level}&exporter=here");
    node.object(&address).expect("it parses").typed(Hold::Static(&PANTRY))
}

/// A fault that nobody signed may say that a call never ran, so that the client makes it again; it is made once.
#[test]
fn r3_a_forged_fault_has_no_call_made_again() {
    let target = Target::new();
    for level in ["packet", "integrity", "privacy"] {
        for status in
            [hresult::RPC_E_DISCONNECTED, hresult::RPC_E_VERSION_MISMATCH, hresult::NCA_ACCESS_DENIED]
        {
            for withhold in [true, false] {
                let deed = Deed { status, withhold };
                let (port, asked) = relay(target.port, deed);
                let node = Node::new();
                let sum: Result<(i32,), Failure> =
                    through(&node, port, level).call(&PANTRY.operations[0], (1, 2));
                let failure = sum.expect_err("the answer was kept from us");
                assert_eq!(asked.load(Ordering::SeqCst), 1, "{level} {deed:?}: {failure}");
                assert_eq!(failure.completed(), Completed::Maybe, "{level} {deed:?}: {failure}");
                // Where both come at once, the lie is plain.
                let told = failure.message();
                let right =
                    told.contains("without a signature") || (!withhold && told.contains("it was forged"));
                assert!(right, "{level} {deed:?}: {failure}");
                drop(node);
            }
        }
    }
    target.honest();
    target.recovers();
}

/// Says that everything is at 127.0.0.9, where no message is signed; the port to be called.
fn liar(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let (truth, lie) = (wide("127.0.0.1["), wide("127.0.0.9["));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server)).expect("the server listens");
            let ends = || (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            let (from, to) = ends();
            std::thread::spawn(move || pass(from, to, <[u8]>::to_vec));
            let ((to, from), truth, lie) = (ends(), truth.clone(), lie.clone());
            std::thread::spawn(move || {
                pass(from, to, |pdu| {
                    let mut pdu = pdu.to_vec();
                    for at in 0..pdu.len() {
                        if pdu[at..].starts_with(&truth) {
                            pdu[at..at + lie.len()].copy_from_slice(&lie);
                        }
                    }
                    pdu
                });
            });
        }
    });
    port
}

/// An object that is said to be at another host than the one it was asked of: that one hears nothing of the account, unless the
/// client was told that it is right.
#[test]
fn o3_a_server_cannot_send_its_client_to_another_host() {
    let target = Target::with(&Settings { options: "&level=connect".into(), ..Settings::default() });
    let port = liar(target.port);
    let elsewhere = TcpListener::bind(("127.0.0.9", target.port)).expect("the same port of another address");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in elsewhere.incoming() {
            let mut stream = stream.expect("a connection");
            let mut piece = vec![0; 4096];
            let len = stream.read(&mut piece).unwrap_or(0);
            noted.lock().expect("whole").extend_from_slice(&piece[..len]);
        }
    });
    let told = || heard.lock().expect("whole").windows(8).any(|part| part == b"NTLMSSP\0");
    let add = |options: &str| {
        let address =
            format!("dcom://{DOMAIN};{COOK}:{PASSWORD}@127.0.0.1:{port}/{CLASS}?level=connect{options}");
        let node = Node::new();
        let object = node.object(&address).expect("it parses").typed(Hold::Static(&PANTRY));
        let sum: Result<(i32,), Failure> = object.call(&PANTRY.operations[0], (1, 2));
        sum
    };
    for options in ["", "&hosts=127.0.0.8,other.example.org"] {
        let failure = add(options).expect_err("it is led astray");
        assert_eq!(failure.kind(), Kind::Refused, "{failure}");
        assert!(failure.message().contains("127.0.0.9"), "{failure}");
        let hint = failure.hint().unwrap_or_default();
        assert!(hint.contains("hosts=127.0.0.9") && hint.contains("exporter=here"), "{hint}");
        assert!(!told(), "with `{options}` the account is shown to whoever the server names");
    }
    assert_eq!(add("&exporter=here").expect("the same host").0, 3);
    assert!(!told());
    for options in ["&hosts=127.0.0.9", "&hosts=*"] {
        add(options).expect_err("nobody answers there");
        assert!(told(), "with `{options}`");
        heard.lock().expect("whole").clear();
    }
    target.recovers();
}
