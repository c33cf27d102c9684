//! Two sessions with a wire between them, and messages made by hand.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use bytes::BytesMut;
use everywire_dbus::DBUS;
use everywire_model::describe::*;
use everywire_model::visit::Nothing;
use everywire_model::{
    Call, CallId, Config, Encode, Endpoint, Event, Expects, Handle, MarshalList, Method, Outcome,
    PeerAddress, Profile, Session, Sink, Violation, Wire,
};
use std::time::Instant;

pub static OPERATIONS: [Operation; 6] = [
    operation!("Echo", (in "text": TEXT) -> TEXT, raises [&REFUSED]),
    operation!("Ping", () -> Shape::Void),
    operation!(oneway "Note", (in "text": TEXT) -> Shape::Void),
    operation!("_get_Title", () -> TEXT),
    operation!("_set_Title", (in "value": TEXT) -> Shape::Void),
    operation!("Open", (in "file": Shape::Handle, in "any": Shape::Variant) -> Shape::Handle),
];
pub static SIGNALS: [Signal; 1] = [signal!("Changed", { "to": TEXT })];
pub static REFUSED: Struct = record!("Example::Refused", "", { "why": TEXT, "code": Shape::U32 });
pub static EXAMPLE: Interface = interface!(
    "org::example::Example",
    "org.example.Example",
    [],
    0,
    &OPERATIONS,
    [attribute("Title", TEXT, 3, Some(4))],
    signals & SIGNALS
);

pub fn operation(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).unwrap()
}

pub fn config() -> Config {
    let endpoint = Endpoint::Unix { path: "/nowhere".into() };
    Config {
        peer: PeerAddress { text: "unix:/nowhere".into(), credentials: Some((1, everywire_auth::own_uid())) },
        profile: Profile { wire: "dbus", endpoints: vec![endpoint], ..Profile::default() },
        ..Config::default()
    }
}

/// A side: a session and what it has received.
pub struct Side {
    pub session: Box<dyn Session>,
    pub input: BytesMut,
    pub handles: Vec<Handle>,
}

impl Side {
    pub fn new(session: Box<dyn Session>) -> Self {
        Self { session, input: BytesMut::new(), handles: Vec::new() }
    }

    /// A side that is past the greeting.
    pub fn admitted() -> Self {
        let mut side = Self::new(DBUS.admitted(&config()));
        assert!(matches!(side.session.poll(), Some(Event::Ready(_))));
        side
    }

    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        self.input.extend_from_slice(bytes);
        self.session.receive(Instant::now(), &mut self.input, &mut self.handles)
    }

    /// The name of the violation that these bytes are.
    pub fn refuses(&mut self, bytes: &[u8]) -> &'static str {
        self.hear(bytes).expect_err("a violation").name
    }

    pub fn said(&mut self) -> Vec<u8> {
        let said = self.session.transmit().to_vec();
        self.session.transmit().consume(said.len());
        said
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.session.poll()).collect()
    }

    pub fn event(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    pub fn call<A: MarshalList>(&mut self, key: &'static [u8], name: &str, arguments: A) -> CallId {
        let profile = Profile { wire: "dbus", key: key.into(), ..Profile::default() };
        let operation = operation(name);
        let arguments = |sink: &mut dyn Sink| arguments.marshal_list(&operation.arguments, sink);
        let expects = if operation.oneway { Expects::Nothing } else { Expects::Reply };
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: Some(&EXAMPLE), operation },
            arguments: &arguments,
            expects,
        };
        self.session.start(Instant::now(), &call).unwrap()
    }
}

/// Moves what either side says to the other, `step` bytes at a time, until both are quiet.
pub fn exchange(one: &mut Side, other: &mut Side, step: usize) {
    loop {
        let moved = pass(one, other, step) + pass(other, one, step);
        if moved == 0 {
            return;
        }
    }
}

fn pass(from: &mut Side, to: &mut Side, step: usize) -> usize {
    let mut moved = 0;
    while !from.session.transmit().is_empty() {
        let buffer = from.session.transmit();
        let (handles, most) = buffer.handles();
        to.handles.extend(handles.unwrap_or_default().iter().cloned());
        let slices = buffer.slices(1, step.min(most));
        let piece = slices[0].to_vec();
        buffer.consume(piece.len());
        moved += piece.len();
        to.hear(&piece).unwrap();
    }
    moved
}

/// Two sides past their greeting, one connected to the other.
pub fn pair() -> (Side, Side) {
    let (mut client, mut server) = (Side::new(DBUS.connect(&config())), Side::new(DBUS.accept(&config())));
    exchange(&mut client, &mut server, usize::MAX);
    assert!(matches!(client.event(), Event::Ready(_)));
    assert!(matches!(server.event(), Event::Ready(_)));
    (client, server)
}

pub fn done(event: Event) -> everywire_model::Body {
    match event {
        Event::Reply { outcome: Outcome::Done(body), .. } => body,
        other => panic!("{other:?}"),
    }
}

/// A message by hand, little-endian.
pub struct Message {
    pub kind: u8,
    pub flags: u8,
    pub serial: u32,
    pub fields: Vec<u8>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn new(kind: u8) -> Self {
        Self { kind, flags: 0, serial: 1, fields: Vec::new(), body: Vec::new() }
    }

    /// A call of `member` of an object at `/a`.
    pub fn call(member: &str) -> Self {
        Self::new(1).text(1, 'o', "/a").text(3, 's', member)
    }

    pub fn raw(mut self, field: &[u8]) -> Self {
        self.fields.resize(self.fields.len().next_multiple_of(8), 0);
        self.fields.extend_from_slice(field);
        self
    }

    pub fn text(self, code: u8, kind: char, text: &str) -> Self {
        let mut field = vec![code, 1, kind as u8, 0];
        field.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        field.extend_from_slice(text.as_bytes());
        field.push(0);
        self.raw(&field)
    }

    pub fn number(self, code: u8, number: u32) -> Self {
        let mut field = vec![code, 1, b'u', 0];
        field.extend_from_slice(&number.to_le_bytes());
        self.raw(&field)
    }

    pub fn body(self, signature: &str, body: &[u8]) -> Self {
        let mut field = vec![8, 1, b'g', 0, u8::try_from(signature.len()).unwrap()];
        field.extend_from_slice(signature.as_bytes());
        field.push(0);
        let mut message = self.raw(&field);
        message.body = body.to_vec();
        message
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![b'l', self.kind, self.flags, 1];
        out.extend_from_slice(&u32::try_from(self.body.len()).unwrap().to_le_bytes());
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.fields.len()).unwrap().to_le_bytes());
        out.extend_from_slice(&self.fields);
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend_from_slice(&self.body);
        out
    }
}

pub fn nothing() -> &'static dyn Encode {
    &Nothing
}

/// The bus, as a name.
pub const BUS: &str = "org.freedesktop.DBus";

/// A string in a body.
pub fn string(text: &str) -> Vec<u8> {
    let mut body = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
    body.extend_from_slice(text.as_bytes());
    body.push(0);
    body
}

/// A configuration for a bus.
pub fn bus_config() -> Config {
    let mut on_bus = config();
    on_bus.profile.components = vec![(everywire_dbus::TAG_BUS, bytes::Bytes::from_static(b"session"))];
    on_bus
}

/// A side that a bus has let in and not greeted yet.
pub fn before_hello(config: &Config) -> Side {
    let mut side = Side::new(DBUS.connect(config));
    side.hear(b"OK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n").unwrap();
    side.said();
    side
}

/// A side on a bus; its next serial number is 2.
pub fn on_bus(config: &Config) -> Side {
    let mut side = before_hello(config);
    side.hear(&reply(1).text(7, 's', BUS).body("s", &string(":1.9")).bytes()).unwrap();
    side
}

/// An answer to the call with this number.
pub fn reply(serial: u32) -> Message {
    Message::new(2).number(5, serial)
}

/// An error that answers the call with this number.
pub fn error(serial: u32, name: &str) -> Message {
    Message::new(3).number(5, serial).text(4, 's', name)
}

pub fn says(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}
