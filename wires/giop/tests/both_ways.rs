//! Calls over a connection that the peer has made: what peers tell by the service context `BI_DIR_IIOP`, and what they may try with it.

use crate::support::*;
use everywire_giop::{CDR, GIOP};
use everywire_model::*;
use std::sync::Arc;
use std::time::Instant;

/// The accepting side of a connection to a listener with this option, and the lease of that connection.
fn accepting(option: &str) -> (Box<dyn Session>, Arc<u8>) {
    let place = GIOP.listen(&format!("iiop://127.0.0.1:0{option}")).unwrap();
    let lease = Arc::new(7_u8);
    let way_back = Lease::new(lease.clone());
    (GIOP.accept(&Config { profile: place.profile().clone(), way_back, ..Config::default() }), lease)
}

/// A big-endian encapsulation of listen points.
fn points(points: &[(&str, u16)]) -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0];
    data.extend((points.len() as u32).to_be_bytes());
    for (host, port) in points {
        data.resize(data.len().next_multiple_of(4), 0);
        data.extend((host.len() as u32 + 1).to_be_bytes());
        data.extend(host.as_bytes());
        data.push(0);
        data.resize(data.len().next_multiple_of(2), 0);
        data.extend(port.to_be_bytes());
    }
    data
}

/// A big-endian request of GIOP 1.2 for the object `k` with this service context and this body.
fn request(id: u32, context: &[u8], body: &[u8]) -> Vec<u8> {
    let mut content = id.to_be_bytes().to_vec();
    content.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'k', 0, 0, 0, 0, 0, 0, 3, b'o', b'p', 0, 0]);
    content.extend([0, 0, 0, 1, 0, 0, 0, 5]);
    content.extend((context.len() as u32).to_be_bytes());
    content.extend(context);
    content.resize((content.len() + 12).next_multiple_of(8) - 12, 0);
    content.extend(body);
    let mut all = b"GIOP\x01\x02\0\0".to_vec();
    all.extend((content.len() as u32).to_be_bytes());
    all.extend(content);
    all
}

/// A reference to an object at a host and port, as a body has it.
fn reference(host: &str, port: u16) -> Vec<u8> {
    let endpoint = Endpoint::Tcp { host: host.into(), port };
    let sink = GIOP.publish("IDL:x:1.0", &[BindAddress::socket("giop", endpoint)], b"sink");
    let mut raw = CDR.write(&mut |to| to.reference(Some(&sink))).unwrap().bytes.to_vec();
    // Written in the byte order of this machine, but for the profile, which tells its own.
    let swap = |raw: &mut Vec<u8>, at: usize| raw[at..at + 4].reverse();
    if cfg!(target_endian = "little") {
        let id = 4 + "IDL:x:1.0\0".len().next_multiple_of(4);
        [0, id, id + 4, id + 8].into_iter().for_each(|at| swap(&mut raw, at));
    }
    raw
}

/// Whether references that come with the next request lead over its connection.
fn leads_back(session: &mut dyn Session, id: u32, context: &[u8], host: &str, port: u16) -> bool {
    let read = passed(session, id, context, host, port);
    read.profiles.iter().any(|profile| profile.lease.get::<u8>() == Some(&7))
}

/// The reference that comes with the next request.
fn passed(session: &mut dyn Session, id: u32, context: &[u8], host: &str, port: u16) -> Reference {
    feed(session, &request(id, context, &reference(host, port))).unwrap();
    let Some(Event::Call(incoming)) = events(session).pop() else { panic!("a call was expected") };
    let read = incoming.body.read(|source| source.reference()).unwrap().expect("not nil");
    session.answer(incoming.id, Answer::Done(&visit::Nothing)).unwrap();
    drain(session);
    read
}

/// Calls the peer; the number that the request has.
fn asked(session: &mut dyn Session) -> Result<u32, Failure> {
    let (way, operation) = (profile(b"sink"), int());
    let method = Method::Typed { interface: None, operation: &operation };
    let call = Call { profile: &way, method, arguments: &put_int(1), expects: Expects::Reply };
    session.start(Instant::now(), &call)?;
    let sent = drain(session);
    assert_eq!((&sent[..4], sent[7]), (&b"GIOP"[..], 0), "a request");
    Ok(u32::from_ne_bytes(sent[12..16].try_into().unwrap()))
}

#[test]
fn references_at_points_that_a_peer_has_told_lead_back_to_it() {
    let (mut session, _lease) = accepting("?bidirectional=on");
    let session = &mut *session;
    assert_eq!(asked(session).unwrap_err().kind(), Kind::Unsupported, "nothing was told yet");
    assert!(!session.peer_serves());
    assert!(leads_back(session, 2, &points(&[("client", 9), ("10.0.0.7", 9)]), "CLIENT", 9));
    assert!(session.peer_serves());
    assert!(!leads_back(session, 4, &points(&[]), "client", 8), "another port");
    assert!(!leads_back(session, 6, &points(&[]), "server", 9), "another host");
    // Further points stand beside those before.
    assert!(leads_back(session, 8, &points(&[("next", 9)]), "10.0.0.7", 9));
    assert!(leads_back(session, 10, &points(&[]), "next", 9));
    // Requests of this side have odd numbers.
    assert_eq!([asked(session).unwrap(), asked(session).unwrap()], [1, 3]);
}

/// A side that has accepted a peer without character sets tells those of its own requests; the replies to them are in these.
#[test]
fn replies_to_the_accepting_side_are_in_the_sets_that_it_told() {
    let (mut session, _lease) = accepting("?bidirectional=on");
    let session = &mut *session;
    assert!(leads_back(session, 2, &points(&[("client", 9)]), "client", 9));
    let code_sets = |sent: &[u8]| {
        sent.windows(8).any(|bytes| bytes == [1_u32.to_ne_bytes(), 12_u32.to_ne_bytes()].concat())
    };
    for (id, tells) in [(1_u32, true), (3, false)] {
        let (way, operation) = (profile(b"sink"), int());
        let method = Method::Typed { interface: None, operation: &operation };
        let call = Call { profile: &way, method, arguments: &put_int(1), expects: Expects::Reply };
        session.start(Instant::now(), &call).unwrap();
        assert_eq!(code_sets(&drain(session)), tells, "request {id}");
        let mut reply = b"GIOP\x01\x02\0\x01\0\0\0\x13".to_vec();
        reply.extend(id.to_be_bytes());
        reply.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
        reply.extend("é\0".as_bytes());
        feed(session, &reply).unwrap();
        let Some(Event::Reply { outcome: Outcome::Done(body), .. }) = events(session).pop() else {
            panic!("a reply was expected")
        };
        assert_eq!(
            body.read(|source| source.text(&shape::Text::NARROW).map(|text| text.into_owned())).unwrap(),
            "é"
        );
    }
}

/// Whoever keeps one reference for all equal ones must not call a liar in the place of an honest peer.
#[test]
fn references_of_two_connections_are_two() {
    let claim = points(&[("client", 9)]);
    let ((mut liar, _), (mut honest, _)) = (accepting("?bidirectional=on"), accepting("?bidirectional=on"));
    let claimed = passed(&mut *liar, 2, &claim, "client", 9);
    assert_ne!(claimed, passed(&mut *honest, 2, &claim, "client", 9), "told alike");
    let (mut plain, _) = accepting("?bidirectional=on");
    assert_ne!(claimed, passed(&mut *plain, 2, &points(&[]), "client", 9), "told by one alone");
    assert_eq!(claimed, passed(&mut *liar, 4, &claim, "client", 9), "of one connection");
}

#[test]
fn nothing_is_believed_without_the_option() {
    for option in ["", "?bidirectional=off"] {
        let (mut session, _lease) = accepting(option);
        assert!(!leads_back(&mut *session, 2, &points(&[("client", 9)]), "client", 9));
        assert_eq!(asked(&mut *session).unwrap_err().kind(), Kind::Unsupported);
        assert!(!session.peer_serves());
    }
}

#[test]
fn a_flood_of_points_is_bounded_and_broken_ones_end_the_connection() {
    let (mut session, _lease) = accepting("?bidirectional=on");
    let names: Vec<String> = (0..200).map(|number| format!("host{number}")).collect();
    let many: Vec<(&str, u16)> = names.iter().map(|name| (&**name, 9)).collect();
    assert!(leads_back(&mut *session, 2, &points(&many), "host0", 9));
    assert!(!leads_back(&mut *session, 4, &points(&[]), "host100", 9), "there is room for a few");
    let long = "h".repeat(300);
    let (mut session, _lease) = accepting("?bidirectional=on");
    assert!(!leads_back(&mut *session, 2, &points(&[(&long, 9)]), &long, 9), "no host has such a name");
    for broken in [
        &[][..],
        &[0, 0, 0, 0, 0, 0, 0, 9],
        &points(&[("client", 9)])[..14],
        &[0, 0, 0, 0, 255, 255, 255, 255],
    ] {
        let (mut session, _lease) = accepting("?bidirectional=on");
        let violation = feed(&mut *session, &request(2, broken, b"")).unwrap_err();
        assert_eq!(violation.name, "Header", "{broken:?}");
    }
}

/// The address of a listener says which it is, and others share no connection with it.
#[test]
fn the_option_is_part_of_the_place() {
    let on = GIOP.listen("iiop://127.0.0.1:0?bidirectional=on").unwrap();
    assert_eq!(on.profile().options.to_string(), "bidirectional=on");
    assert_ne!(on, GIOP.listen("iiop://127.0.0.1:0").unwrap());
    assert_eq!(
        GIOP.listen("iiop://127.0.0.1:0?bidirectional=off").unwrap(),
        GIOP.listen("iiop://127.0.0.1:0").unwrap()
    );
    for wrong in ["?bidirectional=yes", "?bidirectional=on&bidirectional=on", "?bidirectional"] {
        GIOP.listen(&format!("iiop://127.0.0.1:0{wrong}")).unwrap_err();
    }
    let failure = GIOP.listen("iiop+unix:///tmp/x?bidirectional=on").unwrap_err();
    assert!(failure.to_string().contains("over TCP"), "{failure}");
}
