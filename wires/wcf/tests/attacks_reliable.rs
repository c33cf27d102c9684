//! Strangers who begin reliable sessions over HTTP until there is no place left: who has most of them makes room.

#![allow(clippy::unwrap_used)]

use crate::soap_support::strangers::*;
use crate::soap_support::*;
use everywire_model::*;
use everywire_wcf::settings::Binding;
use everywire_wcf::soap::Dialect;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Places of a node.
const ALL: usize = 1024;

/// A node, and connections to it from wherever the test says.
struct Node(Arc<dyn WireState>);

impl Node {
    fn new() -> Self {
        Self(wire_state(remote_object(), KEY))
    }

    fn from(&self, address: &str) -> Pair {
        let peer = PeerAddress { text: format!("tcp:{address}"), credentials: None };
        let config = Config { wire_state: Some(Arc::clone(&self.0)), peer, ..Config::default() };
        Pair::with(Dialect { session: false, ..Dialect::WS }, &config, |settings| {
            settings.binding = Binding::Ws
        })
    }
}

/// So many sessions by a connection, in each of which something was said.
fn used(pair: &mut Pair, from: u32, many: usize) -> Vec<String> {
    let mut sessions = Vec::new();
    for id in (from..).take(many) {
        let id = ask(pair, id).expect("there is room");
        call(pair, &id, 1).expect("it is served");
        sessions.push(id);
    }
    sessions
}

#[test]
fn n8_a_thousand_sessions_of_one_machine_shut_nobody_out() {
    let node = Node::new();
    let mut other = node.from("10.0.0.2:1");
    let [first] = &used(&mut other, 1, 1)[..] else { panic!("one session") };
    let mut attacker = node.from("10.0.0.1:1");
    let taken = used(&mut attacker, 10_000, ALL - 1);
    // No more for it, over whichever connection and however new.
    let mut again = node.from("10.0.0.1:2");
    assert!(ask(&mut again, 20_000).unwrap_err().contains("CreateSequenceRefused"));
    // Everybody else gets places, of those that are its, as long as they have fewer.
    let more = used(&mut other, 2, 400);
    let mut third = node.from("10.0.0.3:1");
    used(&mut third, 30_000, 100);
    for id in std::iter::once(first).chain(&more) {
        call(&mut other, id, 2).expect("nobody takes it from them");
    }
    // Those that have gone are told why, on their own connection and on others.
    let lost: Vec<&String> = taken.iter().filter(|id| call(&mut attacker, id, 2).is_err()).collect();
    assert_eq!(lost.len(), 500);
    for pair in [&mut attacker, &mut again] {
        let said = call(pair, lost[0], 2).unwrap_err();
        assert!(said.contains("UnknownSequence") && said.contains("made room"), "{said}");
    }
    let said = call(&mut node.from("10.0.0.9:1"), "urn:never", 1).unwrap_err();
    assert!(said.contains("UnknownSequence") && !said.contains("made room"), "{said}");
}

#[test]
fn n8_a_request_that_is_held_when_its_session_makes_room_is_held_no_longer() {
    let node = Node::new();
    let bell = Arc::<Bell>::default();
    let config = Config {
        wire_state: Some(Arc::clone(&node.0)),
        peer: PeerAddress { text: "tcp:10.0.0.1:1".into(), credentials: None },
        waker: Some(Arc::clone(&bell).into()),
        ..Config::default()
    };
    let mut held = Pair::with(Dialect { session: false, ..Dialect::WS }, &config, |settings| {
        settings.binding = Binding::Ws;
    });
    let id = ask(&mut held, 1).expect("there is room");
    // The message before it stays away.
    held.hand_over(&message(&id, "2"), None).unwrap();
    assert!(held.server_says().is_none());
    let mut crowd = node.from("10.0.0.1:2");
    crowd.now += Duration::from_secs(1);
    used(&mut crowd, 2, ALL - 1);
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
    // The one that is silent longest makes room.
    used(&mut node.from("10.0.0.2:1"), 5_000, 1);
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    let said = fault(&mut held);
    assert!(
        said.contains("UnknownSequence") && said.contains("made room") && said.contains("urn:m2"),
        "{said}"
    );
    assert!(held.server_says().is_none() && !held.server.is_awaiting());
}

#[test]
fn n8_a_call_that_runs_when_its_session_makes_room_has_its_answer() {
    let node = Node::new();
    let bell = Arc::<Bell>::default();
    let config = |bell: &Arc<Bell>| Config {
        wire_state: Some(Arc::clone(&node.0)),
        peer: PeerAddress { text: "tcp:10.0.0.1:1".into(), credentials: None },
        waker: Some(Arc::clone(bell).into()),
        ..Config::default()
    };
    let connection = |bell| {
        let dialect = Dialect { session: false, ..Dialect::WS };
        Pair::with(dialect, &config(bell), |settings| settings.binding = Binding::Ws)
    };
    let (mut serving, mut again) = (connection(&Arc::default()), connection(&bell));
    let id = ask(&mut serving, 1).expect("there is room");
    // One is being served, and was asked for again over another connection; one was kept back by the window.
    for number in 1..=9 {
        call(&mut serving, &id, number).expect("it is served");
    }
    serving.hand_over(&message(&id, "10"), None).unwrap();
    let incoming = serving.incoming();
    again.hand_over(&message(&id, "10"), None).unwrap();
    assert!(again.server_says().is_none() && again.server.is_awaiting());
    let mut crowd = node.from("10.0.0.1:2");
    crowd.now += Duration::from_secs(1);
    used(&mut crowd, 2, ALL - 1);
    used(&mut node.from("10.0.0.2:1"), 5_000, 1);
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    // It has begun: to say that the sequence is unknown would be to say that it has not.
    assert!(again.server_says().is_none() && again.server.is_awaiting());
    let (answered, own) = serving.answer(incoming.id, Answer::Done(&visit::Nothing));
    assert!(answered.sends && !answered.fault);
    assert_eq!(bell.0.load(Ordering::Relaxed), 2);
    let (_, other) = again.server_says().expect("the same answer");
    for answer in [own, other] {
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("VoidCallResponse") && answer.contains("RelatesTo>urn:m10<"), "{answer}");
    }
    // What comes now is of no session.
    assert!(call(&mut serving, &id, 11).unwrap_err().contains("made room"));
}

#[test]
fn n8_a_call_whose_answer_is_lost_with_its_session_is_told_so() {
    let node = Node::new();
    let bell = Arc::<Bell>::default();
    let config = Config {
        wire_state: Some(Arc::clone(&node.0)),
        peer: PeerAddress { text: "tcp:10.0.0.1:1".into(), credentials: None },
        waker: Some(Arc::clone(&bell).into()),
        ..Config::default()
    };
    let mut held = Pair::with(Dialect { session: false, ..Dialect::WS }, &config, |settings| {
        settings.binding = Binding::Ws;
    });
    let id = ask(&mut held, 1).expect("there is room");
    for number in 1..=9 {
        call(&mut held, &id, number).expect("it is served");
    }
    // Its answer is there, and waits until others are acknowledged.
    held.hand_over(&message(&id, "9"), None).unwrap();
    assert!(held.server_says().is_none() && held.server.is_awaiting());
    bell.0.store(0, Ordering::Relaxed);
    let mut crowd = node.from("10.0.0.1:2");
    crowd.now += Duration::from_secs(1);
    used(&mut crowd, 2, ALL - 1);
    used(&mut node.from("10.0.0.2:1"), 5_000, 1);
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    // To say nothing would be to say that it has no answer; that the sequence is unknown, that it has not begun.
    let said = fault(&mut held);
    assert!(said.contains("SequenceTerminated") && said.contains("urn:m9"), "{said}");
    assert!(held.server_says().is_none() && !held.server.is_awaiting());
}

#[test]
fn n8_among_equals_the_session_that_is_silent_longest_makes_room() {
    let node = Node::new();
    let addresses = (0..ALL).map(|number| format!("10.1.{}.{}:1", number / 256, number % 256));
    let mut clients: Vec<(Pair, String)> = Vec::new();
    for (number, address) in (1..).zip(addresses) {
        let mut pair = node.from(&address);
        let [id] = &used(&mut pair, number, 1)[..] else { panic!("one session") };
        clients.push((pair, id.clone()));
    }
    let mut late = node.from("10.2.0.1:1");
    assert!(
        ask(&mut late, 5_000).unwrap_err().contains("CreateSequenceRefused"),
        "all were heard of just now"
    );
    // All but one say something; the other is silent for half a minute.
    let soon = Duration::from_secs(20);
    for (number, (pair, id)) in clients.iter_mut().enumerate() {
        pair.now += soon;
        if number != 7 {
            call(pair, id, 2).expect("it is served");
        }
    }
    late.now += Duration::from_secs(31);
    used(&mut late, 5_001, 1);
    // It has as many as the others now, whose sessions it cannot have as well.
    assert!(ask(&mut late, 5_002).is_err());
    for (number, (pair, id)) in clients.iter_mut().enumerate() {
        assert_eq!(call(pair, id, 3).is_err(), number == 7, "client {number}");
    }
}

#[test]
fn n8_sessions_of_a_user_are_not_those_of_others_on_the_same_machine() {
    let node = Node::new();
    let mut crowd = node.from("10.0.0.1:1");
    used(&mut crowd, 1, ALL);
    let mut known = node.from("10.0.0.1:2");
    assert!(ask(&mut known, 2_000).is_err());
    known.server.known_as("CN=somebody");
    used(&mut known, 2_001, 10);
}
