//! What comes on one connection is told in the order in which it came, where somebody passes it on.

#![allow(clippy::unwrap_used)]

use crate::plain::{Does, Frame, LONG, PLAINBACK, Probe, Raw, Router, Ticked, call, interface, name, ticked};
use everywire_model::signal::Subscription;
use everywire_model::*;
use everywire_runtime::{Builder, Node, Notice, PrivateConnections};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};

/// What a hop was told, and on which thread.
type Told = (String, ThreadId);

/// Somebody who passes signals on, with one event loop, and the target behind it, played by hand.
struct Hop {
    far: Object,
    peer: Raw,
    tell: mpsc::Sender<Told>,
    told: mpsc::Receiver<Told>,
    _held: (Node, Arc<PrivateConnections>, Subscription),
}

impl Hop {
    fn new(test: &str, observer: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        let name = name(test);
        let router = Router::open(&name);
        let client = Builder::new(&[&PLAINBACK]).shards(1).observer(Arc::new(observer)).build();
        let (tell, told) = mpsc::channel();
        let called = tell.clone();
        let servant = move |v| {
            called.send((format!("call {v}"), thread::current().id())).unwrap();
            v
        };
        client.export::<dyn Probe>("probe", Arc::new(Does(servant)));
        let reference =
            client.object(&format!("plainback+unix://@{name}#probe")).unwrap().reference().clone();
        let apart = client.apart();
        let far = apart.resolve(&reference).unwrap();
        let heard = tell.clone();
        let listener = move |Ticked(n)| heard.send((format!("signal {n}"), thread::current().id())).unwrap();
        let listening = far.clone().into_typed::<dyn Probe>().signals().on(listener).unwrap();
        let peer = router.accept();
        Self { far, peer, tell, told, _held: (client, apart, listening) }
    }

    /// Begins a call that no thread waits for, and says its number to the peer.
    fn asks(&mut self, then: impl FnOnce() + Send + 'static) -> u64 {
        let tell = self.tell.clone();
        let method = Method::Typed { interface: Some(interface()), operation: &interface().operations[0] };
        let done = move |outcome: Outcome<Body>| {
            let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
            let n = i32::from_le_bytes(*body.bytes.last_chunk().unwrap());
            tell.send((format!("answer {n}"), thread::current().id())).unwrap();
            then();
        };
        self.far.target().submit(method, &|sink: &mut dyn Sink| sink.i32(1), Box::new(done));
        self.peer.read().id
    }

    /// What it is told next, so many times.
    fn hears(&self, times: usize) -> Vec<String> {
        (0..times).map(|_| self.told.recv_timeout(LONG).unwrap().0).collect()
    }
}

fn answer(id: u64, n: i32) -> Vec<u8> {
    Frame { kind: 1, id, body: n.to_le_bytes().into() }.bytes()
}

fn signal(n: i32) -> Vec<u8> {
    Frame { kind: 5, id: 0, body: ticked(n) }.bytes()
}

#[test]
fn an_answer_is_told_behind_a_call_of_the_peer_that_came_before_it() {
    let mut hop = Hop::new("order-call", |_| {});
    for n in 0..20 {
        let (first, second) = (hop.asks(|| {}), hop.asks(|| {}));
        hop.peer.send(&[call(1, "add_one", n), answer(first, n)].concat());
        assert_eq!(hop.hears(2), [format!("call {n}"), format!("answer {n}")]);
        assert_eq!(hop.peer.read().kind, 1);
        // Now that it was handed over, an answer is told at once, and a call behind it comes behind it.
        hop.peer.send(&[answer(second, n), call(2, "add_one", n)].concat());
        assert_eq!(hop.hears(2), [format!("answer {n}"), format!("call {n}")]);
        assert_eq!(hop.peer.read().kind, 1);
    }
}

#[test]
fn answers_and_signals_are_told_in_the_order_in_which_they_came() {
    let mut hop = Hop::new("order-signal", |_| {});
    for _ in 0..20 {
        let (first, second) = (hop.asks(|| {}), hop.asks(|| {}));
        hop.peer.send(&[answer(first, 1), signal(2), answer(second, 3)].concat());
        assert_eq!(hop.hears(3), ["answer 1", "signal 2", "answer 3"]);
    }
}

#[test]
fn a_thread_that_reads_for_itself_keeps_no_signal_waiting_for_an_answer() {
    let mut hop = Hop::new("order-thread", |_| {});
    for n in 0..20 {
        let id = hop.asks(|| {});
        let far = hop.far.clone().into_typed::<dyn Probe>();
        let waiting = thread::spawn(move || far.add_one(n).unwrap());
        let reader = waiting.thread().id();
        let own = hop.peer.read().id;
        hop.peer.send(&[answer(id, n), signal(n), answer(own, n)].concat());
        assert_eq!(waiting.join().unwrap(), n);
        for what in ["answer", "signal"] {
            let (told, by) = hop.told.recv_timeout(LONG).unwrap();
            assert_eq!(told, format!("{what} {n}"));
            assert_ne!(by, reader, "the {what} waited until the thread had let go of its connection");
        }
    }
}

#[test]
fn who_panics_when_it_is_told_keeps_nothing_from_those_behind_it() {
    let observer = |notice: &Notice| assert!(!matches!(notice, Notice::Withdrawn { .. }), "as asked");
    let mut hop = Hop::new("order-panic", observer);
    for _ in 0..3 {
        let (first, second) = (hop.asks(|| {}), hop.asks(|| panic!("as asked")));
        // Whoever is told of the withdrawn call panics, with the lock let go and the answer in its hands.
        let withdrawn = Frame { kind: 8, id: 77, body: Vec::new() }.bytes();
        hop.peer.send(&[withdrawn, answer(first, 1), signal(2)].concat());
        assert_eq!(hop.hears(2), ["answer 1", "signal 2"]);
        hop.peer.send(&[answer(second, 3), signal(4)].concat());
        assert_eq!(hop.hears(2), ["answer 3", "signal 4"]);
    }
}
