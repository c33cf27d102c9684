//! What the tests of envelopes share: contracts, and two channels tied together without framing.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::missing_panics_doc)]

pub mod strangers;

use crate::shelf::Shelf;
use bytes::Bytes;
use everywire_model::shape::{Field, Hold, Struct, Text};
use everywire_model::visit::{Encode, Sink};
use everywire_model::*;
use everywire_wcf::settings::{Binding, Settings};
use everywire_wcf::soap::{Dialect, Flushed, Side, SoapChannel, WrittenCall, WrittenReply};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Wake;
use std::time::Instant;

pub const KEY: &str = "tcp/ro";

pub fn parameter(direction: Direction, name: &'static str, shape: Shape) -> Parameter {
    Parameter { direction, field: Field { name: name.into(), shape } }
}

pub fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

pub fn operation(name: &'static str, parameters: Vec<Parameter>, returns: Shape) -> Operation {
    Operation::new(name, parameters, returns)
}

pub fn interface(id: &'static str, operations: Vec<Operation>, signals: Vec<Signal>) -> Interface {
    let name = id.rsplit('}').next().unwrap();
    Interface {
        name: name.into(),
        id: id.into(),
        identities: vec![].into(),
        types: None,
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: operations.into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: signals.into(),
        doc: "".into(),
    }
}

/// The contract of the races.
pub fn remote_object() -> Interface {
    let inout = |name, shape: Shape, field| {
        operation(name, vec![parameter(Direction::InOut, field, shape)], Shape::Void)
    };
    let input = |name, shape: Shape, field| {
        operation(name, vec![parameter(Direction::In, field, shape)], Shape::Void)
    };
    let output = |name, shape: Shape, field| {
        operation(name, vec![parameter(Direction::Out, field, shape)], Shape::Void)
    };
    let octets = Shape::sequence(Shape::U8);
    interface(
        "{http://tempuri.org/}IRemoteObject",
        vec![
            operation("GetBytes", vec![parameter(Direction::In, "numBytes", Shape::I32)], octets.clone()),
            operation("PutBytes", vec![parameter(Direction::In, "data", octets)], Shape::I32),
            operation("VoidCall", vec![], Shape::Void),
            input("InInt", Shape::I32, "x"),
            output("OutInt", Shape::I32, "x"),
            inout("InOutInt", Shape::I32, "x"),
            input("InString", text(), "s"),
            output("OutString", text(), "s"),
            inout("InOutString", text(), "s"),
        ],
        vec![],
    )
}

/// The duplex contract of the races.
pub fn hello() -> (Interface, Hold<Interface>) {
    let mut heard = operation("OnHello", vec![parameter(Direction::In, "message", text())], Shape::Void);
    heard.oneway = true;
    let ask = operation("Ask", vec![parameter(Direction::In, "x", Shape::I32)], Shape::I32);
    let callbacks =
        Hold::new(interface("{http://tempuri.org/}IHelloCallback", vec![heard.clone(), ask], vec![]));
    let mut signal = Signal::new("OnHello", heard.arguments.fields().to_vec());
    signal.sink = Some((callbacks.clone(), 0));
    let service = interface(
        "{http://tempuri.org/}IHello",
        vec![
            operation("Subscribe", vec![], Shape::Void),
            operation("Unsubscribe", vec![], Shape::Void),
            operation("SayHello", vec![parameter(Direction::In, "message", text())], Shape::Void),
            operation("AskBack", vec![parameter(Direction::In, "x", Shape::I32)], Shape::I32),
        ],
        vec![signal],
    );
    (service, callbacks)
}

pub fn find<'i>(interface: &'i Interface, name: &str) -> &'i Operation {
    interface.operations.iter().find(|operation| operation.name == name).unwrap()
}

pub fn exception() -> Hold<Struct> {
    let field = |name: &'static str, shape| Field { name: name.into(), shape };
    Hold::new(Struct {
        name: "Demo::Broken".into(),
        id: "{http://schemas.datacontract.org/2004/07/Demo}Broken".into(),
        fields: vec![field("Code", Shape::I32), field("What", text())].into(),
    })
}

/// Values of a list: integers and texts.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    Int(i32),
    Said(String),
    Octets(Vec<u8>),
}

/// Arguments or results at the shape that their operation gives them.
pub struct List<'a>(pub &'a Shape, pub Vec<Arg>);

impl Encode for List<'_> {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        sink.open(self.0, self.1.len())?;
        for (arg, field) in self.1.iter().zip(self.0.fields()) {
            match arg {
                Arg::Int(number) => sink.i32(*number)?,
                Arg::Said(text) => sink.text(&Text::WIDE, text)?,
                Arg::Octets(octets) => sink.bytes(&field.shape, octets)?,
            }
        }
        sink.close(self.0)
    }
}

/// Reads a list of the shape.
pub fn read(body: &Body, shape: &Shape) -> Visit<Vec<Arg>> {
    body.read(|source| {
        source.open(shape)?;
        let mut args = Vec::new();
        for field in shape.fields() {
            args.push(match field.shape.resolved() {
                Shape::I32 => Arg::Int(source.i32()?),
                Shape::Text(_) => Arg::Said(source.text(&Text::WIDE)?.into_owned()),
                shape => Arg::Octets(source.bytes(shape)?.into_owned()),
            });
        }
        source.close(shape)?;
        Ok(args)
    })
}

pub fn settings(binding: Binding, uri: &str) -> Settings {
    let mut settings = Settings::new(binding);
    settings.authority = uri.into();
    settings
}

pub fn binding(dialect: Dialect) -> Binding {
    match dialect {
        Dialect::BASIC => Binding::Basic,
        Dialect::WS => Binding::Ws,
        Dialect::BINARY => Binding::BinaryHttp,
        _ => Binding::NetTcp,
    }
}

/// When every pair of a test begins. Pairs that share a session must tell the same time: if each asked the clock, a thousand of
/// them would be as far apart as a busy machine takes to make them, which is long enough for sessions to count as silent.
pub fn beginning() -> Instant {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    *BEGINNING.get_or_init(Instant::now)
}

/// A client's channel and a server's.
pub struct Pair {
    pub dialect: Dialect,
    pub client: SoapChannel,
    pub server: SoapChannel,
    pub key: Bytes,
    pub profile: Profile,
    pub now: Instant,
}

impl Pair {
    pub fn new(dialect: Dialect) -> Self {
        Self::with(dialect, &Config::default(), |_| {})
    }

    pub fn with(dialect: Dialect, config: &Config, change: impl Fn(&mut Settings)) -> Self {
        let mut settings = settings(binding(dialect), "localhost:10170");
        change(&mut settings);
        let settings = Arc::new(settings);
        let key = Bytes::from_static(KEY.as_bytes());
        let mut server = SoapChannel::new(dialect, config, &settings, Side::Server);
        server.opened(key.clone());
        Self {
            dialect,
            client: SoapChannel::new(dialect, config, &settings, Side::Client),
            server,
            profile: Profile { wire: "wcf", key: key.clone(), ..Profile::default() },
            key,
            now: beginning(),
        }
    }

    /// What the framing would carry outside the envelope.
    pub fn outside<'a>(&self, action: Option<&'a str>) -> Option<&'a str> {
        action.filter(|_| !self.dialect.addressing)
    }

    pub fn start(&mut self, interface: &Interface, name: &str, args: Vec<Arg>) -> (WrittenCall, Vec<u8>) {
        let operation = find(interface, name);
        let arguments = List(&operation.arguments, args);
        let expects = if operation.oneway { Expects::Nothing } else { Expects::Reply };
        let call = Call {
            profile: &self.profile,
            method: Method::Typed { interface: Some(interface), operation },
            arguments: &arguments,
            expects,
        };
        let mut out = SendBuffer::new();
        let started = self.client.start(self.now, &call, &mut out).unwrap();
        (started, out.to_vec())
    }

    /// A message to the server.
    pub fn hand_over(&mut self, payload: &[u8], action: Option<&str>) -> Result<(), Failure> {
        let outside = self.outside(action);
        self.server.receive(self.now, Bytes::copy_from_slice(payload), outside, &self.key)
    }

    /// A message to the client.
    pub fn bring_back(&mut self, payload: &[u8]) -> Result<(), Failure> {
        self.client.receive(self.now, Bytes::copy_from_slice(payload), None, &Bytes::new())
    }

    /// The call that came to the server.
    pub fn incoming(&mut self) -> Box<Incoming> {
        match self.server.poll() {
            Some(Event::Call(incoming)) => incoming,
            other => panic!("a call was expected: {other:?}"),
        }
    }

    pub fn answer(&mut self, id: CallId, answer: Answer<'_>) -> (WrittenReply, Vec<u8>) {
        let mut out = SendBuffer::new();
        let answered = self.server.answer(id, answer, &mut out).unwrap();
        (answered, out.to_vec())
    }

    /// What the client got.
    pub fn outcome(&mut self) -> (CallId, Outcome<Body>) {
        match self.client.poll() {
            Some(Event::Reply { id, outcome }) => (id, outcome),
            other => panic!("an answer was expected: {other:?}"),
        }
    }

    /// A whole call: what the server saw, and what came back.
    pub fn call(
        &mut self,
        interface: &Interface,
        name: &str,
        args: Vec<Arg>,
        answer: Answer<'_>,
    ) -> (Box<Incoming>, Outcome<Body>) {
        let (started, payload) = self.start(interface, name, args);
        self.hand_over(&payload, started.action.as_deref()).unwrap();
        let incoming = self.incoming();
        let (answered, payload) = self.answer(incoming.id, answer);
        assert!(answered.sends);
        self.bring_back(&payload).unwrap();
        let (id, outcome) = self.outcome();
        assert_eq!(id, started.id);
        (incoming, outcome)
    }

    /// What the server sends on its own account.
    pub fn server_says(&mut self) -> Option<(Flushed, Vec<u8>)> {
        let mut out = SendBuffer::new();
        let flushed = self.server.flush(self.now, &mut out)?;
        Some((flushed, out.to_vec()))
    }

    /// What the client sends on its own account.
    pub fn client_says(&mut self) -> Option<(Flushed, Vec<u8>)> {
        let mut out = SendBuffer::new();
        let flushed = self.client.flush(self.now, &mut out)?;
        Some((flushed, out.to_vec()))
    }
}

pub const DIALECTS: [Dialect; 4] = [Dialect::NET_TCP, Dialect::BINARY, Dialect::WS, Dialect::BASIC];

/// A pair whose server serves this contract.
pub fn serving(dialect: Dialect, contract: &Interface) -> Pair {
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    Pair::with(dialect, &config, |_| {})
}

/// Counts how often it is woken.
#[derive(Default)]
pub struct Bell(pub AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A node that serves one object.
pub fn wire_state(interface: Interface, key: &'static str) -> Arc<dyn WireState> {
    let servant: Arc<dyn Servant> = Arc::new(Silent(Hold::new(interface)));
    everywire_wcf::wire_state::Node::new(Arc::new(Shelf::with(key, servant)))
}

/// A node where somebody without a contract answers for all keys that begin so.
pub fn hop(prefix: &'static str) -> Arc<dyn WireState> {
    let servant: Arc<dyn Servant> = Arc::new(Silent(Hold::new(interface("{}Any", vec![], vec![]))));
    everywire_wcf::wire_state::Node::new(Arc::new(Shelf::of_prefix(prefix, servant)))
}

struct Silent(Hold<Interface>);

impl Servant for Silent {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, _: Request) {}
}

/// Where a part stands in bytes.
pub fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
