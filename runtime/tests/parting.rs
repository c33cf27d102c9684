//! Ends of connections that a caller had for its own.

#![allow(clippy::unwrap_used)]

use crate::plain::{
    self, Honest, LONG, PLAIN, Raw, Router, descriptors, interface, name, until, until_all_sleep,
};
use everywire_model::{Method, Outcome, Shape, Sink};
use everywire_runtime::{Builder, Node, Quotas};
use std::sync::{Arc, mpsc};

/// More calls than a Unix socket holds, and the octets of each.
const MANY: usize = 500;
const SIZE: usize = 4000;

fn of(operation: usize) -> Method<'static> {
    Method::Typed { interface: Some(interface()), operation: &interface().operations[operation] }
}

/// Somebody says much over a connection of its own and leaves at once. Returns the peer, who has read nothing yet.
fn says_much_and_leaves(client: &Node, test: &str) -> Raw {
    let name = name(test);
    let router = Router::open(&name);
    let apart = client.apart();
    let far =
        apart.resolve(client.object(&format!("plain+unix://@{name}#probe")).unwrap().reference()).unwrap();
    let long = |sink: &mut dyn Sink| sink.bytes(&Shape::U8, &[0; SIZE]);
    (0..MANY).for_each(|_| {
        let _ = far.target().submit(of(4), &long, Box::new(drop));
    });
    let peer = router.accept();
    drop((far, apart));
    until_all_sleep();
    peer
}

#[test]
fn what_was_said_is_sent_though_whoever_said_it_has_left() {
    let client = plain::node(1);
    let mut peer = says_much_and_leaves(&client, "parting-sent");
    (0..MANY).for_each(|_| assert_eq!(peer.read().kind, 0));
    peer.drain();
}

/// Its event loop says the goodbye itself.
#[test]
fn what_was_said_is_sent_by_a_node_without_threads_for_what_blocks() {
    let quotas = Quotas { blocked_threads: 0, ..Quotas::default() };
    let client = Builder::new(&[&PLAIN]).shards(1).quotas(quotas).build();
    let mut peer = says_much_and_leaves(&client, "parting-alone");
    (0..MANY).for_each(|_| assert_eq!(peer.read().kind, 0));
    peer.drain();
}

#[test]
fn a_peer_that_does_not_read_holds_nobody_up_and_nothing_for_ever() {
    let (_server, _, bound) =
        plain::serve(&format!("plain+unix://@{}", name("parting-other")), Arc::new(Honest::default()));
    let client = plain::node(1);
    let other = client.object(&bound).unwrap();
    let peer = says_much_and_leaves(&client, "parting-unread");
    let (tell, told) = mpsc::channel();
    let done = move |outcome: Outcome<_>| tell.send(matches!(outcome, Outcome::Done(_))).unwrap();
    other.target().submit(of(0), &|sink: &mut dyn Sink| sink.i32(1), Box::new(done));
    assert!(told.recv_timeout(LONG).unwrap(), "the event loop is free for others");
    let open = descriptors();
    until("its connection ends", || descriptors() < open);
    drop(peer);
}
