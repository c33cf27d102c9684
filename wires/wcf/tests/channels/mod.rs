//! Two sides of a channel without a network between them.
#![allow(dead_code)]

use bytes::BytesMut;
use everywire_model::visit::Nothing;
use everywire_model::*;
use everywire_wcf::address;
use everywire_wcf::framing::{Accepting, Connecting};
use std::time::Instant;

/// The URI of every service here.
pub(crate) const VIA: &str = "net.tcp://localhost:8898/Demo";

/// The preamble of Microsoft's client to it, its end included.
pub(crate) const PREAMBLE: &str =
    "0001000102021d6e65742e7463703a2f2f6c6f63616c686f73743a383839382f44656d6f03080c";

/// What every fault begins with.
pub(crate) const FAULTS: &str = "http://schemas.microsoft.com/ws/2006/05/framing/faults/";

/// A session for calls to an address.
pub(crate) fn connecting(address: &str) -> Connecting {
    let reference = address::parse(address).unwrap();
    Connecting::new(&Config { profile: reference.profiles[0].clone(), ..Config::default() })
}

/// A session for connections to a place; `options` as behind the `?` of its address.
pub(crate) fn accepting(options: &str) -> Accepting {
    Accepting::new(&place(options))
}

pub(crate) fn place(options: &str) -> Config {
    place_at(&format!("net.tcp://127.0.0.1:0?{options}"))
}

pub(crate) fn place_at(address: &str) -> Config {
    let place = address::listen(address).unwrap();
    Config { profile: place.profile().clone(), ..Config::default() }
}

/// The same where objects are served under these keys and no others.
pub(crate) fn accepting_for(keys: &'static [&'static str]) -> Accepting {
    serving(keys, place("security=none"))
}

/// The same at this place.
pub(crate) fn serving(keys: &'static [&'static str], place: Config) -> Accepting {
    let node = everywire_wcf::wire_state::Node::new(std::sync::Arc::new(crate::shelf::Shelf::of_keys(keys)));
    Accepting::new(&Config { wire_state: Some(node as _), ..place })
}

/// What a session has to send, taken from it.
pub(crate) fn sent(session: &mut dyn Session) -> Vec<u8> {
    let bytes = session.transmit().to_vec();
    session.transmit().consume(bytes.len());
    bytes
}

/// Hands bytes over in one go.
pub(crate) fn give(session: &mut dyn Session, bytes: &[u8]) -> Result<(), Violation> {
    let mut input = BytesMut::from(bytes);
    session.receive(Instant::now(), &mut input, &mut Vec::new())
}

/// All events that wait.
pub(crate) fn events(session: &mut dyn Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll()).collect()
}

/// The calls among the events that wait.
pub(crate) fn calls(session: &mut dyn Session) -> Vec<Incoming> {
    let call = |event| if let Event::Call(call) = event { Some(*call) } else { None };
    events(session).into_iter().filter_map(call).collect()
}

/// The failures of calls among the events that wait.
pub(crate) fn failures(session: &mut dyn Session) -> Vec<Failure> {
    let failed = |event| match event {
        Event::Reply { outcome: Outcome::Failed(failure), .. } => Some(failure),
        _ => None,
    };
    events(session).into_iter().filter_map(failed).collect()
}

/// Two sessions that talk, byte by byte if wanted.
pub(crate) struct Pair {
    pub(crate) client: Box<dyn Session>,
    pub(crate) server: Box<dyn Session>,
    inputs: [BytesMut; 2],
    /// Bytes handed over at a time.
    pub(crate) piece: usize,
}

impl Pair {
    pub(crate) fn new(client: Connecting, server: Accepting) -> Self {
        let inputs = [BytesMut::new(), BytesMut::new()];
        Self { client: Box::new(client), server: Box::new(server), inputs, piece: usize::MAX }
    }

    pub(crate) fn buffered() -> Self {
        Self::new(connecting(VIA), accepting("security=none"))
    }

    pub(crate) fn streamed() -> Self {
        Self::new(connecting(&format!("{VIA}?mode=streamed")), accepting("security=none"))
    }

    /// Moves bytes both ways until there are none.
    pub(crate) fn carry(&mut self) {
        loop {
            let moved = hand(&mut *self.client, &mut *self.server, &mut self.inputs[0], self.piece)
                + hand(&mut *self.server, &mut *self.client, &mut self.inputs[1], self.piece);
            if moved == 0 {
                return;
            }
        }
    }

    /// Begins a call.
    pub(crate) fn call(&mut self, expects: Expects) -> CallId {
        call(&mut *self.client, expects).unwrap()
    }

    /// Answers each call that the server has, and returns how many there were.
    pub(crate) fn serve(&mut self) -> usize {
        let calls = calls(&mut *self.server);
        for call in &calls {
            self.server.answer(call.id, Answer::Done(&Nothing)).unwrap();
        }
        calls.len()
    }
}

/// The operation of every call here.
pub(crate) fn operation() -> Operation {
    let mut operation = Operation::new("Echo", vec![], Shape::Void);
    operation.notes = vec![
        ("wcf:action".into(), "urn:DemoService/IDemoService/Echo".into()),
        ("wcf:reply".into(), "urn:DemoService/IDemoService/EchoResponse".into()),
    ]
    .into();
    operation
}

pub(crate) fn call(session: &mut dyn Session, expects: Expects) -> Result<CallId, Failure> {
    let profile = address::parse(VIA).unwrap().profiles[0].clone();
    let mut operation = operation();
    operation.oneway = expects == Expects::Nothing;
    let arguments: &dyn Encode = &Nothing;
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments,
        expects,
    };
    session.start(Instant::now(), &call)
}

fn hand(from: &mut dyn Session, to: &mut dyn Session, input: &mut BytesMut, piece: usize) -> usize {
    let bytes = sent(from);
    for part in bytes.chunks(piece.min(bytes.len()).max(1)) {
        input.extend_from_slice(part);
        to.receive(Instant::now(), input, &mut Vec::new()).unwrap();
    }
    bytes.len()
}

/// What went over one captured connection, in order: the direction (`C` from the client) and the bytes.
pub(crate) fn segments(capture: &str, connection: usize) -> Vec<(&'static str, Vec<u8>)> {
    let rows = include_str!("../golden/sessions.tsv").lines();
    let rows = rows.map(|row| row.split('\t').collect::<Vec<_>>());
    let number = connection.to_string();
    rows.filter(|row| row[0] == capture && row[1] == number).map(|row| (row[2], unhex(row[3]))).collect()
}

/// All that the client said on a captured connection, and all that the server said.
pub(crate) fn streams(capture: &str, connection: usize) -> (Vec<u8>, Vec<u8>) {
    let all = segments(capture, connection);
    let said =
        |side: &str| all.iter().filter(|(by, _)| *by == side).flat_map(|(_, bytes)| bytes.clone()).collect();
    (said("C"), said("S"))
}

/// All captured connections.
pub(crate) fn connections() -> Vec<(String, usize)> {
    let rows = include_str!("../golden/sessions.tsv").lines().map(|row| row.split('\t'));
    let mut known: Vec<(String, usize)> = rows
        .map(|mut columns| (columns.next().unwrap().to_owned(), columns.next().unwrap().parse().unwrap()))
        .collect();
    known.sort();
    known.dedup();
    known
}

/// The bytes behind hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
