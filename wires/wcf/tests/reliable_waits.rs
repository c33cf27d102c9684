//! What waits in reliable sessions: for a peer that is silent, for an answer that another connection brings, for a client that takes
//! its answers.

#![allow(clippy::unwrap_used)]

use crate::http_support;
use crate::reliable_http::{granted_to, said};
use crate::soap_support::strangers::*;
use crate::soap_support::*;
use everywire_model::visit::Nothing;
use everywire_model::*;
use everywire_wcf::http;
use everywire_wcf::settings::Binding;
use everywire_wcf::soap::Dialect;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const TEXT: Dialect = Dialect { session: false, ..Dialect::WS };

/// A connection over HTTP whose requests wait with this bell.
fn connection(node: &Arc<dyn WireState>, bell: &Arc<Bell>) -> Pair {
    let waker = Some(Arc::clone(bell).into());
    let config = Config { wire_state: Some(Arc::clone(node)), waker, ..Config::default() };
    Pair::with(TEXT, &config, |settings| settings.binding = Binding::Ws)
}

fn node() -> Arc<dyn WireState> {
    wire_state(remote_object(), KEY)
}

/// A client that has a session, in which one call was answered.
fn opened(dialect: Dialect, contract: &Interface) -> Pair {
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let mut pair = Pair::with(dialect, &config, |settings| settings.reliable = true);
    pair.start(contract, "VoidCall", Vec::new());
    let (_, create) = pair.client_says().unwrap();
    pair.hand_over(&create, None).unwrap();
    let (_, granted) = pair.server_says().unwrap();
    pair.bring_back(&granted).unwrap();
    let (_, question) = pair.client_says().unwrap();
    pair.hand_over(&question, None).unwrap();
    let incoming = pair.incoming();
    let mut answer = pair.answer(incoming.id, Answer::Done(&Nothing)).1;
    if answer.is_empty() {
        answer = pair.server_says().unwrap().1;
    }
    pair.bring_back(&answer).unwrap();
    assert!(matches!(pair.outcome().1, Outcome::Done(_)));
    while pair.client_says().is_some() {}
    pair
}

/// Why a call is not begun, if so.
fn refusal(pair: &mut Pair, contract: &Interface) -> Option<Failure> {
    let operation = find(contract, "VoidCall");
    let profile = &pair.profile;
    let call = Call {
        profile,
        method: Method::Typed { interface: Some(contract), operation },
        arguments: &Nothing,
        expects: Expects::Reply,
    };
    pair.client.start(pair.now, &call, &mut SendBuffer::new()).err()
}

#[test]
fn a_session_that_was_silent_for_too_long_is_given_no_call() {
    let contract = remote_object();
    for dialect in [Dialect::NET_TCP, Dialect::WS] {
        let mut pair = opened(dialect, &contract);
        pair.now += Duration::from_secs(600);
        let failure = refusal(&mut pair, &contract).expect("the peer has left it");
        assert_eq!((failure.kind(), failure.code()), (Kind::Unreachable, Some("rm InactivityTimeout")));
        assert_eq!(failure.completed(), Completed::No, "nothing was sent");
        assert_eq!(pair.client.outstanding(), 0);
        while let Some((flushed, _)) = pair.client_says() {
            assert_eq!(flushed.call, None, "what came is acknowledged, and nothing is asked");
        }
        let failure = pair.client.expire(pair.now).unwrap_err();
        assert_eq!((failure.code(), failure.completed()), (Some("rm InactivityTimeout"), Completed::Maybe));
    }
}

#[test]
fn a_late_call_has_as_much_time_as_an_early_one() {
    let contract = remote_object();
    for dialect in [Dialect::NET_TCP, Dialect::WS] {
        let mut pair = opened(dialect, &contract);
        pair.now += Duration::from_secs(599);
        assert!(refusal(&mut pair, &contract).is_none());
        assert!(pair.client_says().is_some());
        pair.now += Duration::from_secs(10);
        pair.client.expire(pair.now).unwrap();
        assert!(refusal(&mut pair, &contract).is_none());
        // Its repetitions are no words of the peer's.
        pair.now += Duration::from_secs(590);
        assert!(refusal(&mut pair, &contract).is_some());
    }
}

#[test]
fn a_message_that_left_may_have_led_to_its_call_whatever_ends_the_session() {
    let contract = remote_object();
    for dialect in [Dialect::NET_TCP, Dialect::WS] {
        let mut pair = opened(dialect, &contract);
        pair.start(&contract, "VoidCall", Vec::new());
        let failure = loop {
            // Everything is lost.
            while pair.client_says().is_some() {}
            pair.now = pair.client.deadline().unwrap();
            if let Err(failure) = pair.client.expire(pair.now) {
                break failure;
            }
        };
        assert_eq!((failure.code(), failure.completed()), (Some("rm MaxRetryCount"), Completed::Maybe));
    }
}

#[test]
fn a_request_that_is_looked_after_often_waits_on() {
    let (node, bell) = (node(), Arc::default());
    let (mut pair, id) = granted(connection(&node, &bell));
    pair.hand_over(&message(&id, "2"), None).unwrap();
    for _ in 0..200 {
        assert!(pair.server_says().is_none());
        assert!(pair.server.is_awaiting());
    }
    // One waker for all that.
    call(&mut connection(&node, &Arc::default()), &id, 1).unwrap();
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
}

#[test]
fn an_answer_that_waited_for_the_window_goes_when_others_are_acknowledged() {
    let (node, bell) = (node(), Arc::default());
    let (mut pair, id) = granted(connection(&node, &bell));
    for number in 1..=9 {
        call(&mut pair, &id, number).unwrap();
    }
    // Eight are under way, and whoever asks for the next one again waits.
    pair.hand_over(&message(&id, "9"), None).unwrap();
    assert!(pair.server_says().is_none() && pair.server.is_awaiting());
    bell.0.store(0, Ordering::Relaxed);
    let said = "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>\
         <r:AcknowledgementRange Lower=\"1\" Upper=\"8\"/></r:SequenceAcknowledgement>";
    let action = "http://schemas.xmlsoap.org/ws/2005/02/rm/SequenceAcknowledgement";
    let mut other = connection(&node, &Arc::default());
    other.hand_over(&envelope(action, said, ""), None).unwrap();
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    let answer = String::from_utf8(pair.server_says().expect("the answer that waited").1).unwrap();
    assert!(answer.contains("RelatesTo>urn:m9<"), "{answer}");
}

#[test]
fn a_request_that_overtook_another_gets_its_answer_when_that_has_come() {
    let place = http_support::place("wshttp://127.0.0.1:8000");
    let bells = [Arc::<Bell>::default(), Arc::default()];
    let [mut one, mut other] = bells.each_ref().map(|bell| {
        let waker = Some(Arc::clone(bell).into());
        http::Accepting::new(&Config { waker, ..place.clone() })
    });
    let id = granted_to(&mut one, 9);
    // By the other connection the second question comes first: its response waits.
    http_support::send(&mut other, &said(&id, 2)).unwrap();
    assert_eq!(http_support::told(&mut other), "");
    assert!(http_support::calls(&mut other).is_empty());
    // That is no idle connection.
    assert_eq!(other.outstanding(), 1);
    assert!(other.deadline().unwrap() > Instant::now() + Duration::from_secs(300));
    http_support::send(&mut one, &said(&id, 1)).unwrap();
    let calls = http_support::calls(&mut one);
    assert_eq!(calls.len(), 2);
    let interface = http_support::interface();
    for (call, text) in calls.iter().zip(["one", "two"]) {
        let values = vec![Value::Text(text.to_owned())];
        let results = http_support::Values(&interface.operations[0].results, values);
        one.answer(call.id, Answer::Done(&results)).unwrap();
        // Woken for another's answer, it goes on waiting.
        assert!(bells[1].0.swap(0, Ordering::Relaxed) > 0);
        assert!(http_support::calls(&mut other).is_empty());
        let told = http_support::told(&mut other);
        assert_eq!(told.contains("RelatesTo>urn:m2<"), text == "two", "{told}");
        assert_eq!(told.contains("two"), text == "two", "{told}");
    }
    let told = http_support::told(&mut one);
    assert!(told.contains("RelatesTo>urn:m1<") && told.contains("one") && !told.contains("two"), "{told}");
    assert_eq!(bells[0].0.load(Ordering::Relaxed), 0);
    // Both connections go on.
    http_support::send(&mut other, &said(&id, 3)).unwrap();
    assert_eq!(http_support::calls(&mut other).len(), 1);
}

/// Metro asks by as many connections as it has callers, in any order, and heeds no window.
#[test]
fn requests_of_more_callers_than_the_window_has_room_for_wait_for_their_turn() {
    let place = http_support::place("wshttp://127.0.0.1:8000");
    let connection = || {
        let waker = Some(Arc::<Bell>::default().into());
        http::Accepting::new(&Config { waker, ..place.clone() })
    };
    let mut first = connection();
    let id = granted_to(&mut first, 9);
    let mut others: Vec<_> = (2..=32).map(|_| connection()).collect();
    for (other, number) in others.iter_mut().rev().zip((2..=32).rev()) {
        http_support::send(other, &said(&id, number)).unwrap();
        assert_eq!((http_support::told(other).as_str(), other.outstanding()), ("", 1), "{number}");
    }
    // What nothing is kept of is responded to at once: there will be no answer.
    let mut far = connection();
    http_support::send(&mut far, &said(&id, 65)).unwrap();
    let told = http_support::told(&mut far);
    assert!(told.starts_with("HTTP/1.1 202 ") && told.ends_with("\r\n\r\n"), "{told}");
    assert_eq!(far.outstanding(), 0);
    http_support::send(&mut first, &said(&id, 1)).unwrap();
    assert_eq!(http_support::calls(&mut first).len(), 32);
    // There is room now, and its turn has not come.
    http_support::send(&mut far, &said(&id, 65)).unwrap();
    assert_eq!((http_support::told(&mut far).as_str(), far.outstanding()), ("", 1));
}

#[test]
fn an_answer_that_the_window_keeps_back_is_the_response_to_its_own_request() {
    let place = http_support::place("wshttp://127.0.0.1:8000");
    let bell = Arc::<Bell>::default();
    let mut asking = http::Accepting::new(&Config { waker: Some(Arc::clone(&bell).into()), ..place.clone() });
    let mut other = http::Accepting::new(&place);
    let post = |envelope: &[u8]| {
        http_support::post("/echo", "Content-Type: application/soap+xml; charset=utf-8\r\n", envelope)
    };
    http_support::send(&mut asking, &post(&create(1))).unwrap();
    let id = between(&http_support::told(&mut asking), "<Identifier>", "<");
    let interface = http_support::interface();
    let mut serve = |number: u32| {
        let header = format!(
            "<a:MessageID>urn:m{number}</a:MessageID><r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{id}</r:Identifier>\
             <r:MessageNumber>{number}</r:MessageNumber></r:Sequence>"
        );
        let body = "<Say xmlns=\"http://tempuri.org/\"><text>x</text></Say>";
        let message = envelope(&format!("{}Say", http_support::ACTION), &header, body);
        http_support::send(&mut asking, &post(&message)).unwrap();
        let [call] = &http_support::calls(&mut asking)[..] else { panic!("one call") };
        let results = vec![Value::Text(format!("answer {number}"))];
        let results = http_support::Values(&interface.operations[0].results, results);
        asking.answer(call.id, Answer::Done(&results)).unwrap();
        http_support::told(&mut asking)
    };
    for number in 1..=8 {
        assert!(serve(number).contains(&format!("answer {number}<")));
    }
    // Eight are under way: the client has not said that it has any of them.
    assert_eq!(serve(9), "");
    assert_eq!(asking.outstanding(), 1);
    bell.0.store(0, Ordering::Relaxed);
    let said = "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>\
         <r:AcknowledgementRange Lower=\"1\" Upper=\"1\"/></r:SequenceAcknowledgement>";
    let action = "http://schemas.xmlsoap.org/ws/2005/02/rm/SequenceAcknowledgement";
    http_support::send(&mut other, &post(&envelope(action, said, ""))).unwrap();
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert!(http_support::calls(&mut asking).is_empty());
    let answer = http_support::told(&mut asking);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("answer 9<"), "{answer}");
    assert!(answer.contains("RelatesTo>urn:m9<"), "{answer}");
    assert_eq!(asking.outstanding(), 0);
}

#[test]
fn a_request_that_was_refused_is_acknowledged_when_it_is_repeated() {
    let place = http_support::place("wshttp://127.0.0.1:8000");
    let bell = Arc::<Bell>::default();
    let mut asking = http::Accepting::new(&Config { waker: Some(Arc::clone(&bell).into()), ..place });
    let post = |envelope: &[u8]| {
        http_support::post("/echo", "Content-Type: application/soap+xml; charset=utf-8\r\n", envelope)
    };
    http_support::send(&mut asking, &post(&create(1))).unwrap();
    let id = between(&http_support::told(&mut asking), "<Identifier>", "<");
    let header = format!(
        "<a:MessageID>urn:m1</a:MessageID><r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{id}</r:Identifier>\
         <r:MessageNumber>1</r:MessageNumber></r:Sequence><x:Odd xmlns:x=\"urn:x\" s:mustUnderstand=\"1\"/>"
    );
    let body = "<Say xmlns=\"http://tempuri.org/\"><text>x</text></Say>";
    let message = envelope(&format!("{}Say", http_support::ACTION), &header, body);
    for expected in ["MustUnderstand", "SequenceAcknowledgement"] {
        http_support::send(&mut asking, &post(&message)).unwrap();
        assert!(http_support::calls(&mut asking).is_empty());
        let told = http_support::told(&mut asking);
        assert!(told.contains(expected), "{expected}: {told}");
        // Nobody waits for an answer that will not come.
        assert_eq!(asking.outstanding(), 0);
    }
}

#[test]
fn n8_answers_that_nobody_acknowledges_are_kept_up_to_a_size() {
    let contract = remote_object();
    let (node, bell) = (node(), Arc::default());
    let (mut pair, id) = granted(connection(&node, &bell));
    let operation = find(&contract, "GetBytes");
    let mut ask = |number: u32, acknowledged: &str| {
        let header = format!(
            "<a:MessageID>urn:m{number}</a:MessageID><r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{id}</r:Identifier>\
             <r:MessageNumber>{number}</r:MessageNumber></r:Sequence>{acknowledged}"
        );
        let body = "<GetBytes xmlns=\"http://tempuri.org/\"><numBytes>1</numBytes></GetBytes>";
        let message = envelope("http://tempuri.org/IRemoteObject/GetBytes", &header, body);
        pair.hand_over(&message, None).unwrap();
        let Some(event) = pair.server.poll() else { return false };
        let Event::Call(incoming) = event else { panic!("{event:?}") };
        let results = List(&operation.results, vec![Arg::Octets(vec![7; 500_000])]);
        !pair.answer(incoming.id, Answer::Done(&results)).1.is_empty()
    };
    // Two of them are more than a megabyte.
    assert_eq!([1, 2, 3, 3].map(|number| ask(number, "")), [true, true, false, false]);
    let said = "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>\
         <r:AcknowledgementRange Lower=\"1\" Upper=\"2\"/></r:SequenceAcknowledgement>";
    assert!(ask(3, said), "it is taken when those before it have arrived");
}

#[test]
fn n8_identifiers_that_a_session_would_keep_have_an_end() {
    let (node, bell) = (node(), Arc::default());
    let (mut pair, id) = granted(connection(&node, &bell));
    let long = "x".repeat(3_000);
    let text = String::from_utf8(message(&id, "1")).unwrap().replace("urn:m1", &format!("urn:{long}"));
    let failure = pair.hand_over(text.as_bytes(), None).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    assert!(pair.server.poll().is_none());
    let offer = String::from_utf8(create(2)).unwrap().replace("urn:offer", &format!("urn:{long}"));
    pair.hand_over(offer.as_bytes(), None).unwrap();
    assert!(fault(&mut pair).contains("CreateSequenceRefused"));
}

#[test]
fn a_request_behind_one_that_is_answered_late_is_noticed() {
    let bell = Arc::<Bell>::default();
    let place = http_support::place("http://127.0.0.1:8000");
    let mut session = http::Accepting::new(&Config { waker: Some(Arc::clone(&bell).into()), ..place });
    let request = http_support::post("/echo", &http_support::basic("Say"), http_support::say("x").as_bytes());
    http_support::send(&mut session, &request.repeat(2)).unwrap();
    let calls = http_support::calls(&mut session);
    assert_eq!((calls.len(), bell.0.load(Ordering::Relaxed)), (1, 0));
    let interface = http_support::interface();
    let results = http_support::Values(&interface.operations[0].results, vec![Value::Text("x".to_owned())]);
    session.answer(calls[0].id, Answer::Done(&results)).unwrap();
    assert!(bell.0.load(Ordering::Relaxed) > 0);
    let next = http_support::calls(&mut session);
    assert_eq!(next.len(), 1);
    // Behind the last there is nothing to look for.
    bell.0.store(0, Ordering::Relaxed);
    session.answer(next[0].id, Answer::Done(&results)).unwrap();
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
}
