//! Peers that break the rules, by accident or on purpose: each gets a named breach or an answer, never more.

#![allow(clippy::unwrap_used, clippy::panic)]

mod binding;
mod callers;
mod calls;
mod servers;

use crate::support::*;
use everywire_dcom::frame::{self, FIRST, LAST, MULTIPLEX, PduKind};
use everywire_dcom::pdu::{Pdu, Syntax};
use everywire_dcom::{DCOM, Level, MANAGEMENT, OBJECT_EXPORTER, hresult};
use everywire_model::*;
use uuid::Uuid;

const COUNTER_ID: Uuid = uuid::uuid!("5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a001");
const STRANGER: &str = "tcp:192.0.2.66:4444";

/// A server without protection, and the node behind it.
fn open_server() -> (Box<dyn Session>, Node) {
    server(Terms::OPEN, STRANGER)
}

fn server(terms: Terms, peer: &str) -> (Box<dyn Session>, Node) {
    let node = Node::serving();
    let session = DCOM.accept(&place(terms.place(), &node, peer, Limits::default()));
    (session, node)
}

/// A server that is bound to the counter's interface (context 0), the node's (1) and the management interface (2), and an
/// IPID of the counter.
fn bound() -> (Box<dyn Session>, Node, Uuid) {
    bound_as(FIRST | LAST | MULTIPLEX)
}

fn bound_as(flags: u8) -> (Box<dyn Session>, Node, Uuid) {
    let (mut session, node) = open_server();
    let interfaces = [(COUNTER_ID, 0), (OBJECT_EXPORTER, 0), (MANAGEMENT, 1)];
    feed(&mut *session, &raw::bind_as(1, flags, 5840, 5840, &interfaces)).unwrap();
    let ack = raw::pdus(&drain(&mut *session));
    assert!(
        matches!(&ack[..], [(_, Pdu::BindAck(ack), _)] if ack.results.iter().all(|result| result.result == 0))
    );
    let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    (session, node, ipid)
}

fn events(session: &mut dyn Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll()).filter(|event| !matches!(event, Event::Ready(_))).collect()
}

/// A call of the counter with a number.
fn add(call: u32, flags: u8, ipid: Uuid, value: i32) -> Vec<u8> {
    let mut stub = raw::orpc_this();
    stub.extend_from_slice(&value.to_le_bytes());
    raw::request(call, flags, 0, 3, Some(ipid), &stub)
}

fn breach(result: Result<(), Violation>) -> &'static str {
    let violation = result.unwrap_err();
    assert_eq!(violation.wire, "dcom");
    violation.name
}

/// What a client with a password sent until it was let in, up to its first call of the counter, and a server to play with.
fn recorded(level: Level) -> (Pair, Profile, Interface) {
    let terms = Terms::at(level);
    let mut pair = Pair::new(terms);
    let counter = interface("Counter", COUNTER);
    let way = pair.activate(&class_way(terms.way()), &counter);
    let id = pair.call(&way, &counter, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    done(pair.outcome(id));
    (pair, way, counter)
}
