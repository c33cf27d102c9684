//! What the tests share: captures, shapes, two sessions tied together.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::type_complexity)]

use bytes::{Bytes, BytesMut};
use everywire_giop::GIOP;
use everywire_model::shape::{Field, Hold, Struct, Text};
use everywire_model::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// One direction of one connection of a capture.
pub struct Stream {
    pub from: u16,
    pub to: u16,
    pub bytes: Vec<u8>,
}

/// The captures, by name.
pub fn captures() -> Vec<(String, Vec<Stream>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), streams(&std::fs::read(path).unwrap()))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// The streams of one capture (pcapng, Ethernet, IPv4, TCP), joined by sequence number.
fn streams(file: &[u8]) -> Vec<Stream> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut flows: BTreeMap<(u16, u16), Vec<(u32, Vec<u8>)>> = BTreeMap::new();
    let mut at = 0;
    while at + 12 <= file.len() {
        let (kind, len) = (word(at), word(at + 4));
        if kind == 6 {
            let frame = &file[at + 28..at + 28 + word(at + 20)];
            let ip = &frame[14..];
            let header = usize::from(ip[0] & 15) * 4;
            let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            let tcp = &ip[header..total];
            let ports = (u16::from_be_bytes([tcp[0], tcp[1]]), u16::from_be_bytes([tcp[2], tcp[3]]));
            let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
            let data = &tcp[usize::from(tcp[12] >> 4) * 4..];
            if !data.is_empty() {
                flows.entry(ports).or_default().push((sequence, data.to_vec()));
            }
        }
        at += len;
    }
    let join = |((from, to), mut parts): ((u16, u16), Vec<(u32, Vec<u8>)>)| {
        parts.sort_by_key(|part| part.0);
        parts.dedup_by_key(|part| part.0);
        Stream { from, to, bytes: parts.into_iter().flat_map(|part| part.1).collect() }
    };
    flows.into_iter().map(join).collect()
}

/// Whole messages of a stream.
pub fn messages(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while rest.len() >= 12 {
        let size = [rest[8], rest[9], rest[10], rest[11]];
        let size = if rest[6] & 1 == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
        let (message, after) = rest.split_at(12 + size as usize);
        all.push(message.to_vec());
        rest = after;
    }
    assert!(rest.is_empty(), "a capture ends inside a message");
    all
}

pub fn field(name: &'static str, shape: Shape) -> Parameter {
    parameter(Direction::In, name, shape)
}

pub fn parameter(direction: Direction, name: &'static str, shape: Shape) -> Parameter {
    Parameter { direction, field: Field { name: name.into(), shape } }
}

pub fn text() -> Shape {
    Shape::Text(Text::NARROW)
}

pub fn wide_text() -> Shape {
    Shape::Text(Text::WIDE)
}

pub fn structure(name: &'static str, fields: Vec<(&'static str, Shape)>) -> Shape {
    let fields: Vec<_> = fields.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect();
    let id = if name.is_empty() { String::new() } else { format!("IDL:{}:1.0", name.replace("::", "/")) };
    Shape::Struct(Hold::new(Struct { name: name.into(), id: id.into(), fields: fields.into() }))
}

/// `inout` of one shape.
pub fn in_out(name: &'static str, shape: Shape) -> Operation {
    Operation::new(name, vec![parameter(Direction::InOut, "v", shape)], Shape::Void)
}

/// A profile with this key, and this side's components if `components`.
pub fn profile(key: &[u8]) -> Profile {
    GIOP.publish(
        "IDL:x:1.0",
        &[BindAddress::socket("giop", Endpoint::Tcp { host: "h".into(), port: 1 })],
        key,
    )
    .profiles
    .remove(0)
}

/// Everything a session would send, taken.
pub fn drain(session: &mut dyn Session) -> Vec<u8> {
    let out = session.transmit();
    let bytes = out.to_vec();
    let len = out.len();
    out.consume(len);
    bytes
}

/// Feeds bytes at once.
pub fn feed(session: &mut dyn Session, bytes: &[u8]) -> Result<(), Violation> {
    let mut input = BytesMut::from(bytes);
    session.receive(Instant::now(), &mut input, &mut Vec::new())
}

/// Events, taken.
pub fn events(session: &mut dyn Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll()).filter(|event| !matches!(event, Event::Ready(_))).collect()
}

/// Two sessions of one connection.
pub struct Pair {
    pub client: Box<dyn Session>,
    pub server: Box<dyn Session>,
    to_server: BytesMut,
    to_client: BytesMut,
}

impl Pair {
    pub fn new(limits: Limits) -> Self {
        Self::with(&GIOP, limits.clone(), limits)
    }

    pub fn with(wire: &dyn Wire, client: Limits, server: Limits) -> Self {
        let config = |limits| Config { limits, ..Config::default() };
        Self {
            client: wire.connect(&config(client)),
            server: wire.accept(&config(server)),
            to_server: BytesMut::new(),
            to_client: BytesMut::new(),
        }
    }

    /// Moves what the client sent; the server's events.
    pub fn forth(&mut self) -> Result<Vec<Event>, Violation> {
        self.to_server.extend_from_slice(&drain(&mut *self.client));
        self.server.receive(Instant::now(), &mut self.to_server, &mut Vec::new())?;
        Ok(events(&mut *self.server))
    }

    /// Moves what the server sent; the client's events.
    pub fn back(&mut self) -> Result<Vec<Event>, Violation> {
        self.to_client.extend_from_slice(&drain(&mut *self.server));
        self.client.receive(Instant::now(), &mut self.to_client, &mut Vec::new())?;
        Ok(events(&mut *self.client))
    }

    /// One call there and its incoming event.
    pub fn call(
        &mut self,
        profile: &Profile,
        operation: &Operation,
        value: &dyn Encode,
    ) -> (CallId, Incoming) {
        let call = Call {
            profile,
            method: Method::Typed { interface: None, operation },
            arguments: value,
            expects: Expects::Reply,
        };
        let id = self.client.start(Instant::now(), &call).unwrap();
        match self.forth().unwrap().pop() {
            Some(Event::Call(incoming)) => (id, *incoming),
            other => panic!("a call was expected, not {other:?}"),
        }
    }

    /// The outcome of a call after an answer.
    pub fn outcome(&mut self, id: CallId, incoming: &Incoming, answer: Answer<'_>) -> Outcome<Body> {
        let _ = self.server.answer(incoming.id, answer);
        match self.back().unwrap().pop() {
            Some(Event::Reply { id: of, outcome }) if of == id => outcome,
            other => panic!("a reply was expected, not {other:?}"),
        }
    }
}

/// The value of a list of one field.
pub fn value(shape: &Shape, body: &Body) -> Value {
    let list = structure("", vec![("v", shape.clone())]);
    match body.read(|source| Value::decode(&list, source)).unwrap() {
        Value::Struct(mut fields) => fields.remove(0).1,
        other => panic!("{other:?}"),
    }
}

pub fn int() -> Operation {
    in_out("in_out_int_call", Shape::I32)
}

pub fn put_int(value: i32) -> impl Fn(&mut dyn Sink) -> Visit<()> {
    move |sink: &mut dyn Sink| sink.i32(value)
}

pub fn failure<T: std::fmt::Debug>(outcome: Outcome<T>) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("a failure was expected, not {other:?}"),
    }
}

pub fn bytes(text: &[u8]) -> Bytes {
    Bytes::copy_from_slice(text)
}
