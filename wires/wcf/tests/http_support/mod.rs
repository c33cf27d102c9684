//! What the tests of HTTP sessions share: a node without a network, two sessions tied together, requests made by hand.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::missing_panics_doc)]

use crate::shelf::Shelf;
use bytes::BytesMut;
use everywire_model::shape::{Field, Hold, Struct, Text};
use everywire_model::*;
use everywire_wcf::wire_state::Node;
use everywire_wcf::{address, http};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

pub const ACTION: &str = "http://tempuri.org/IEcho/";

fn parameter(direction: Direction, name: &'static str, shape: Shape) -> Parameter {
    Parameter { direction, field: Field { name: name.into(), shape } }
}

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

/// A contract: `Say` answers text with text, `Turn` octets with octets, `Tell` is one-way, `Give` asks with an
/// empty body and without an action, and has an `out` parameter.
pub fn interface() -> Interface {
    let operations = vec![
        Operation {
            raises: vec![Hold::new(trouble())].into(),
            ..Operation::new("Say", vec![parameter(Direction::In, "text", text())], text())
        },
        Operation::new(
            "Turn",
            vec![parameter(Direction::In, "data", Shape::sequence(Shape::U8))],
            Shape::sequence(Shape::U8),
        ),
        Operation {
            oneway: true,
            ..Operation::new("Tell", vec![parameter(Direction::In, "text", text())], Shape::Void)
        },
        Operation {
            notes: vec![("wcf:bare".into(), "".into()), ("wcf:soapAction".into(), "".into())].into(),
            ..Operation::new("Give", vec![parameter(Direction::Out, "return", text())], Shape::Void)
        },
    ];
    Interface {
        name: "IEcho".into(),
        id: "{http://tempuri.org/}IEcho".into(),
        identities: vec![].into(),
        types: None,
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: operations.into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![].into(),
        doc: "".into(),
    }
}

pub fn trouble() -> Struct {
    Struct {
        name: "Trouble".into(),
        id: "{http://tempuri.org/}Trouble".into(),
        fields: vec![Field { name: "why".into(), shape: text() }].into(),
    }
}

/// A servant whose calls the test answers itself.
struct Quiet(Interface);

impl Servant for Quiet {
    fn interface(&self) -> &Interface {
        &self.0
    }
    fn dispatch(&self, _: Request) {
        panic!("the test answers")
    }
}

/// An accepting session at this address.
pub fn accepting(address: &str) -> http::Accepting {
    http::Accepting::new(&place(address))
}

/// What accepting sessions at this address have in common.
pub fn place(address: &str) -> Config {
    place_with(address, &interface())
}

/// The same, with another contract.
pub fn place_with(address: &str, contract: &Interface) -> Config {
    place_of(address, Shelf::with("echo", Arc::new(Quiet(contract.clone()))))
}

/// The same, where the wire may keep so many bytes beside its connections; what it keeps is told there.
pub fn keeping(address: &str, most: usize, kept: &Arc<AtomicUsize>) -> Config {
    place_of(address, Shelf::with("echo", Arc::new(Quiet(interface()))).keeping(most, kept))
}

fn place_of(address: &str, shelf: Shelf) -> Config {
    let place = address::listen(address).unwrap();
    let node = Node::new(Arc::new(shelf));
    Config { profile: place.profile().clone(), wire_state: Some(node as _), ..Config::default() }
}

/// The way to an address.
pub fn way(address: &str) -> Profile {
    address::parse(address).unwrap().profiles.remove(0)
}

/// A connecting session.
pub fn connecting(profile: &Profile) -> http::Connecting {
    http::Connecting::new(&Config { profile: profile.clone(), ..Config::default() })
}

/// Sends bytes to a session.
pub fn send(session: &mut dyn Session, bytes: &[u8]) -> Result<(), Violation> {
    session.receive(Instant::now(), &mut BytesMut::from(bytes), &mut Vec::new())
}

/// What a session sends now.
pub fn sent(session: &mut dyn Session) -> Vec<u8> {
    let bytes = session.transmit().to_vec();
    session.transmit().consume(bytes.len());
    bytes
}

/// What a session sends now, as text.
pub fn told(session: &mut dyn Session) -> String {
    String::from_utf8_lossy(&sent(session)).into_owned()
}

/// The calls that came.
pub fn calls(session: &mut dyn Session) -> Vec<Incoming> {
    std::iter::from_fn(|| session.poll())
        .filter_map(|event| if let Event::Call(incoming) = event { Some(*incoming) } else { None })
        .collect()
}

/// The replies that came.
pub fn replies(session: &mut dyn Session) -> Vec<(CallId, Outcome<Body>)> {
    std::iter::from_fn(|| session.poll())
        .filter_map(|event| if let Event::Reply { id, outcome } = event { Some((id, outcome)) } else { None })
        .collect()
}

/// A SOAP 1.1 envelope around a body.
pub fn envelope(body: &str) -> String {
    format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{body}</s:Body></s:Envelope>"
    )
}

/// `Say` as a body.
pub fn say(text: &str) -> String {
    envelope(&format!("<Say xmlns=\"http://tempuri.org/\"><text>{text}</text></Say>"))
}

/// A request by hand.
pub fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// The headers of a Basic call.
pub fn basic(operation: &str) -> String {
    format!("Content-Type: text/xml; charset=utf-8\r\nSOAPAction: \"{ACTION}{operation}\"\r\n")
}

/// Values of an operation's arguments or results, as one struct.
pub struct Values<'a>(pub &'a Shape, pub Vec<Value>);

impl Encode for Values<'_> {
    fn encode(&self, sink: &mut dyn Sink) -> everywire_model::visit::Visit<()> {
        let Shape::Struct(fields) = self.0 else { panic!("no struct") };
        let named =
            fields.fields.iter().zip(&self.1).map(|(field, value)| (field.name.to_string(), value.clone()));
        Value::Struct(named.collect()).encode(self.0, sink)
    }
}

/// The first value in a body.
pub fn first(body: &Body, shape: &Shape) -> Value {
    let value = body.read(|source| Value::decode(shape, source)).unwrap();
    let Value::Struct(mut fields) = value else { panic!("no struct") };
    fields.remove(0).1
}
