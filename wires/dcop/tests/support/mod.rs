//! What the tests share: captures, a session that is ready, a session and a server tied together.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use bytes::{Bytes, BytesMut};
use everywire_dcop::{APPLICATION, DATA_STREAM, DCOP};
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::path::PathBuf;
use std::time::Instant;

pub const COOKIE: &[u8] =
    &[0x65, 0xe1, 0x7f, 0x6c, 0xd6, 0x07, 0xde, 0xf5, 0xd5, 0x4f, 0x12, 0x86, 0xc0, 0xb0, 0xe1, 0x0c];

/// One message of the capture.
pub struct Captured {
    /// `C1->S`, `S->C2`, ...
    pub way: String,
    pub title: String,
    pub bytes: Vec<u8>,
}

pub fn golden(name: &str) -> String {
    std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The capture of a session between an application, the server of KDE 3.5 and another application.
pub fn captured() -> Vec<Captured> {
    let mut all: Vec<Captured> = Vec::new();
    for line in golden("session.txt").lines() {
        if line.starts_with(' ') {
            let bytes = unhex(line);
            all.last_mut().unwrap().bytes.extend(bytes);
        } else if !line.starts_with('#') {
            let (way, title) = line.split_once(' ').unwrap();
            all.push(Captured { way: way.into(), title: title.into(), bytes: Vec::new() });
        }
    }
    all
}

/// The strings and the data at the front of a payload.
pub struct Walk<'a>(pub &'a [u8]);

impl<'a> Walk<'a> {
    pub fn u32(&mut self) -> u32 {
        let (raw, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        u32::from_be_bytes(*raw)
    }

    pub fn data(&mut self) -> &'a [u8] {
        let len = self.u32() as usize;
        let (data, rest) = self.0.split_at(len);
        self.0 = rest;
        data
    }

    pub fn name(&mut self) -> String {
        String::from_utf8(self.data().strip_suffix(b"\0").unwrap_or_default().to_vec()).unwrap()
    }
}

pub fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend(u32::try_from(name.len() + 1).unwrap().to_be_bytes());
    out.extend(name.as_bytes());
    out.push(0);
}

/// A DCOP message of the server (opcode 2), little-endian.
pub fn message(minor: u8, key: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![2, minor, 0, 0];
    out.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    out.extend(key.to_le_bytes());
    out.extend(payload);
    out
}

pub fn names(names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    names.iter().for_each(|name| put_name(&mut out, name));
    out
}

pub fn reply(key: u32, kind: &str, data: &[u8]) -> Vec<u8> {
    let mut payload = names(&["callee", "me", kind]);
    payload.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    payload.extend(data);
    message(3, key, &payload)
}

pub fn call(minor: u8, key: u32, from: &str, object: &str, function: &str, data: &[u8]) -> Vec<u8> {
    let mut payload = names(&[from, "me", object, function]);
    payload.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    payload.extend(data);
    message(minor, key, &payload)
}

/// An object at a server that the test has for itself: tests of one process take over no call trees from each other.
pub fn profile(app: &str, object: &str) -> Profile {
    let test = std::thread::current().name().unwrap_or_default().replace("::", "-");
    Profile {
        wire: "dcop",
        version: (2, 0),
        endpoints: vec![Endpoint::Unix { path: format!("/tmp/.ICE-unix/dcop-{test}") }],
        key: Bytes::copy_from_slice(object.as_bytes()),
        components: vec![(APPLICATION, Bytes::copy_from_slice(app.as_bytes()))],
        ..Profile::default()
    }
}

pub fn config(app: &str, purpose: Purpose) -> Config {
    Config { profile: profile(app, ""), purpose, ..Config::default() }
}

pub fn feed(session: &mut dyn Session, bytes: &[u8]) -> Result<(), Violation> {
    let mut input = BytesMut::from(bytes);
    session.receive(Instant::now(), &mut input, &mut Vec::new())
}

pub fn drain(session: &mut dyn Session) -> Vec<u8> {
    let out = session.transmit();
    let bytes = out.to_vec();
    out.consume(bytes.len());
    bytes
}

pub fn events(session: &mut dyn Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll()).collect()
}

/// What the server says until the protocol is set up.
pub fn handshake() -> Vec<u8> {
    let mut all = Vec::new();
    for captured in
        captured().iter().filter(|captured| captured.way == "S->C1" && captured.title.starts_with("ICE"))
    {
        all.extend(&captured.bytes);
    }
    all
}

/// A session that the server has admitted under this name, by the captured handshake.
pub fn ready(app: &str, purpose: Purpose) -> Box<dyn Session> {
    ready_with(&config(app, purpose), app)
}

pub fn ready_with(config: &Config, granted: &str) -> Box<dyn Session> {
    let mut session = DCOP.connect_with(config, COOKIE);
    drain(&mut *session);
    feed(&mut *session, &handshake()).unwrap();
    drain(&mut *session);
    feed(&mut *session, &reply(56, "QCString", &names(&[granted]))).unwrap();
    let Some(Event::Ready(peer)) = session.poll() else { panic!("not ready") };
    assert_eq!(peer.authentication, "MIT-MAGIC-COOKIE-1");
    session
}

/// An operation by its signature, with shapes by the names of the types.
pub fn operation(signature: &str, result: &str) -> Operation {
    let types = signature.split_once('(').unwrap().1.strip_suffix(')').unwrap();
    let mut operation = Operation::new(signature.to_owned(), vec![], Shape::Void);
    operation.arguments = shape(types);
    operation.results = shape(result);
    operation
}

/// The shape of values of these types.
pub fn shape(types: &str) -> Shape {
    DATA_STREAM.shape(&body(b"", types)).unwrap()
}

pub fn body(bytes: &[u8], types: &str) -> Body {
    let bytes = Bytes::copy_from_slice(bytes);
    everywire_dcop::DataStream::body(bytes, types.as_bytes().into(), 0, Budget::default())
}

pub fn start(session: &mut dyn Session, app: &str, object: &str, operation: &Operation) -> CallId {
    let profile = profile(app, object);
    let expects = Expects::Reply;
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation },
        arguments: &Nothing,
        expects,
    };
    session.start(Instant::now(), &call).unwrap()
}

/// The key that stands in a message.
pub fn key(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[8..12].try_into().unwrap())
}

/// Whole DCOP messages.
pub fn messages(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let len = 12 + u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        all.push(rest[..len].to_vec());
        rest = &rest[len..];
    }
    all
}
