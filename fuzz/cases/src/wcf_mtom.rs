//! Packages of MTOM (XOP in multipart/related) at both ends: the content type is given, its parts are the fuzzer's. A
//! package means at most a third more than it is long.

use bytes::{Bytes, BytesMut};
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Event, Expects, Failure, Initiator, Kind, Method, Operation, Outcome, Profile,
    Session, Shape, Value,
};
use everywire_wcf::{address, http};
use std::time::Instant;

/// What is named at the beginning of each input: boundary, name of the root, and what it is.
const TYPES: [&str; 3] = [
    "multipart/related; type=\"application/xop+xml\"; start=\"<0>\"; boundary=\"b\"; start-info=\"text/xml\"",
    "multipart/related; type=\"application/xop+xml\"; boundary=b",
    "multipart/related; type=\"application/xop+xml\"; start=0; boundary=\"uuid:1+id=1\"; start-info=\"text/xml\"",
];

fn shape() -> Shape {
    let field = |name: &'static str, shape| Field { name: name.into(), shape };
    let fields = vec![
        field("v", Shape::sequence(Shape::U8)),
        field("w", Shape::sequence(Shape::sequence(Shape::U8))),
        field("n", Shape::I32),
    ];
    Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: fields.into() }))
}

/// Gives the octets to this case.
pub fn wcf_mtom(data: &[u8]) {
    let [choice, package @ ..] = data else { return };
    let accepting = choice & 1 == 0;
    let kind = TYPES[usize::from(choice >> 1) % TYPES.len()];
    let way = address::parse("basic://h:8000/echo?security=none&encoding=mtom")
        .expect("it is an address")
        .profiles
        .remove(0);
    let place = Profile { key: Bytes::new(), ..way.clone() };
    let config = Config { profile: if accepting { place } else { way.clone() }, ..Config::default() };
    let mut operation = Operation::new("Op", vec![], Shape::Void);
    (operation.arguments, operation.results) = (shape(), shape());
    let first = if accepting {
        "POST /echo HTTP/1.1\r\nHost: h\r\nSOAPAction: \"urn:o/Op\""
    } else {
        "HTTP/1.1 200 OK"
    };
    let head = format!("{first}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", package.len());
    let mut input = BytesMut::from(head.as_bytes());
    input.extend_from_slice(package);
    let now = Instant::now();
    let mut session: Box<dyn Session> = if accepting {
        Box::new(http::Accepting::new(&config))
    } else {
        let mut session = Box::new(http::Connecting::new(&config));
        let call = Call {
            profile: &way,
            method: Method::Typed { interface: None, operation: &operation },
            arguments: &Nothing,
            expects: Expects::Reply,
        };
        drop(session.start(now, &call));
        session
    };
    drop(session.receive(now, &mut input, &mut Vec::new()));
    while let Some(event) = session.poll() {
        let body = match &event {
            Event::Call(call) => &call.body,
            Event::Reply { outcome: Outcome::Done(body), .. } => body,
            _ => continue,
        };
        assert!(body.bytes.len() <= package.len() * 4 / 3 + 4, "{} of {}", body.bytes.len(), package.len());
        let _ = body.read(|source| Value::decode(&operation.arguments, source));
        if let Event::Call(call) = &event {
            drop(session.answer(call.id, Answer::Done(&Nothing)));
        }
    }
    session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
    while session.poll().is_some() {}
}
