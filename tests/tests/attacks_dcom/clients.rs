//! R8: servers that lie to our clients.

use super::attacker::{bare, bind};
use super::pantry::{CLASS, PANTRY};
use super::target::resident;
use crate::common::foreign::PATIENCE;
use everywire::model::{Completed, Hold};
use everywire::{Failure, Kind, Node};
use everywire_dcom::OBJECT_EXPORTER;
use everywire_dcom::frame::{FIRST, LAST, MULTIPLEX, PduKind};
use everywire_dcom::pdu::{BindAck, BindNak, ContextResult, NDR, Pdu, Response};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Serves everybody in this way, and is called by an honest client; how that ended.
fn called(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> Failure {
    called_for(PATIENCE, serve)
}

/// The same by a client that waits for its answer this long.
fn called_for(deadline: Duration, serve: impl Fn(TcpStream) + Send + Clone + 'static) -> Failure {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    let node: Node = Node::builder().deadline(Some(deadline)).build().into();
    let object = node.object(&format!("dcom://127.0.0.1:{port}/{CLASS}?level=none")).expect("it parses");
    let object = object.typed(Hold::Static(&PANTRY));
    let before = resident(std::process::id());
    let sum: Result<(i32,), Failure> = object.call(&PANTRY.operations[0], (1, 2));
    let failure = sum.expect_err("nobody can add there");
    let grown = resident(std::process::id()).saturating_sub(before);
    assert!(grown < 128 << 20, "{failure}: the client grew by {grown} bytes");
    failure
}

/// Reads a PDU; its call number.
fn heard(stream: &mut TcpStream) -> u32 {
    let mut header = [0; 16];
    if stream.read_exact(&mut header).is_err() {
        return 0;
    }
    let rest = usize::from(u16::from_le_bytes([header[8], header[9]])) - 16;
    // The client may have gone.
    let _ = stream.read_exact(&mut vec![0; rest]);
    u32::from_le_bytes([header[12], header[13], header[14], header[15]])
}

fn ack(call: u32, results: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let results = vec![ContextResult::accepted(NDR); results];
    let ack = BindAck { max_xmit: 5840, max_recv: 5840, group: 1, address: b"135".to_vec(), results };
    Pdu::BindAck(ack).write(&mut out, FIRST | LAST | MULTIPLEX, call, &[]);
    out
}

fn response(call: u32, flags: u8, hint: u32, stub: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let response = Response { alloc_hint: hint, context: 0, cancels: 0, stub: 0..0 };
    Pdu::Response(response).write(&mut out, flags, call, stub);
    out
}

#[test]
fn r8_servers_that_say_nothing_or_nonsense_are_left() {
    let gone = called(drop);
    assert_eq!((gone.kind(), gone.completed()), (Kind::Unreachable, Completed::No), "{gone}");
    let silent = called_for(Duration::from_secs(1), |mut stream| while heard(&mut stream) > 0 {});
    assert_eq!((silent.kind(), silent.completed()), (Kind::TimedOut, Completed::No), "{silent}");
    let nonsense = called(|mut stream| {
        let _ = stream.write_all(&[0x5a; 4000]);
        while heard(&mut stream) > 0 {}
    });
    assert_broken(&nonsense, "Version");
    let reversed = called(|mut stream| {
        heard(&mut stream);
        let _ = stream.write_all(&bind(0, &[(OBJECT_EXPORTER, 0)]));
        heard(&mut stream);
    });
    assert_broken(&reversed, "Unexpected");
    let busy = called(|mut stream| {
        let call = heard(&mut stream);
        let mut nak = Vec::new();
        Pdu::BindNak(BindNak { reason: 2, versions: vec![(5, 0)] }).write(&mut nak, FIRST | LAST, call, &[]);
        let _ = stream.write_all(&nak);
        heard(&mut stream);
    });
    assert_eq!((busy.kind(), busy.code()), (Kind::Busy, Some("bind_nak 2")), "{busy}");
}

/// The server broke the rules, and the client says in which way.
#[track_caller]
fn assert_broken(failure: &Failure, violation: &str) {
    assert!(failure.message().contains(&format!("({violation}, at byte ")), "{failure}");
}

#[test]
fn r8_answers_without_end_are_bounded() {
    // A hint that is a lie, and fragments that never end.
    let failure = called(|mut stream| {
        let call = heard(&mut stream);
        let _ = stream.write_all(&ack(call, 2));
        let call = heard(&mut stream);
        let mut flags = FIRST;
        while stream.write_all(&response(call, flags, u32::MAX, &[0; 5000])).is_ok() {
            flags = 0;
        }
    });
    assert_broken(&failure, "OverLimit");
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    // Accepted contexts without end.
    let failure = called(|mut stream| {
        let call = heard(&mut stream);
        let _ = stream.write_all(&ack(call, 255));
        heard(&mut stream);
    });
    assert_broken(&failure, "Results");
    // Answers to calls that nobody made are dropped: what ends the call is the end of the connection.
    let failure = called(|mut stream| {
        let call = heard(&mut stream);
        let _ = stream.write_all(&ack(call, 2));
        heard(&mut stream);
        for call in 1000..2000 {
            let _ = stream.write_all(&response(call, FIRST | LAST, 0, &[0; 100]));
        }
    });
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
    // A goodbye in place of an answer.
    let failure = called(|mut stream| {
        let call = heard(&mut stream);
        let _ = stream.write_all(&ack(call, 2));
        heard(&mut stream);
        let _ = stream.write_all(&bare(PduKind::Shutdown, 0));
        heard(&mut stream);
    });
    assert!(
        failure.kind() == Kind::Unreachable && failure.message().contains("closes the connection"),
        "{failure}"
    );
}

/// Results whose every word lies: an activation that never was.
#[test]
fn r8_activations_that_lie_are_not_believed() {
    use everywire::model::Endpoint;
    use everywire_dcom::activation::{Activated, scm};
    use everywire_dcom::bindings::DualStringArray;
    use everywire_dcom::objref::{ObjRef, StdObjRef};
    use everywire_dcom::resolver::OxidResolution;
    use uuid::Uuid;

    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: 9 };
    let bindings = DualStringArray::of(&[endpoint], Vec::new());
    let std = StdObjRef { flags: 0, public_refs: u32::MAX, oxid: 7, oid: 8, ipid: Uuid::from_u128(9) };
    let iid = everywire_dcom::iid_of(&PANTRY);
    let objref = ObjRef::Standard { iid, std, resolver: bindings.clone() }.write();
    let resolved =
        OxidResolution { bindings, rem_unknown: Uuid::from_u128(3), authn_hint: 1, version: (5, 7) };
    let activated = Activated { oxid: 7, resolved, hresult: 0, interfaces: vec![(iid, 0, Some(objref))] };
    let good = [vec![0; 8], scm::write_reply(&activated)].concat();
    let mut malformed = BTreeSet::new();
    for at in (0..good.len() & !3).step_by(4) {
        let mut stub = good.clone();
        stub[at..at + 4].copy_from_slice(&0x7fff_fff1_u32.to_le_bytes());
        let failure = called_for(Duration::from_secs(5), move |mut stream| {
            let call = heard(&mut stream);
            let _ = stream.write_all(&ack(call, 2));
            loop {
                match heard(&mut stream) {
                    0 => return,
                    call => {
                        let _ = stream.write_all(&response(call, FIRST | LAST, 0, &stub));
                    }
                }
            }
        });
        match failure.kind() {
            Kind::Malformed => {
                let name = failure.code().and_then(|code| code.strip_prefix("ndr "));
                malformed.insert(name.unwrap_or_else(|| panic!("no name: {failure}")).to_owned());
            }
            // Led to a place where nobody is, or to this server, which knows no answer.
            Kind::Unreachable | Kind::TimedOut => {}
            _ => panic!("word at {at}: {failure:?}"),
        }
    }
    let known = [
        "BadActivation",
        "BadObjref",
        "BadSerialization",
        "BadVariance",
        "BoundExceeded",
        "CountBeyondMessage",
        "Truncated",
    ];
    assert_eq!(malformed.iter().map(String::as_str).collect::<Vec<_>>(), known);
}
