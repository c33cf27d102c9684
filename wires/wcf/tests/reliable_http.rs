//! Reliable sessions over HTTP, whose messages come by any connection and whose answers are responses: what is lost, and what
//! stands beside a session.

#![allow(clippy::unwrap_used)]

use crate::http_support;
use crate::soap_support::strangers::between;
use crate::soap_support::*;
use everywire_model::*;
use everywire_wcf::http;
use everywire_wcf::soap::Dialect;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const RM: &str = "http://schemas.xmlsoap.org/ws/2005/02/rm";

fn gone() -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Peer, "gone")
}

/// A connection between two nodes.
fn connection(config: &Config) -> Pair {
    Pair::with(Dialect { session: false, ..Dialect::WS }, config, |settings| {
        settings.reliable = true;
        settings.binding = everywire_wcf::settings::Binding::Ws;
    })
}

fn node(contract: &Interface) -> Config {
    Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() }
}

fn start(pair: &mut Pair, contract: &Interface) -> CallId {
    pair.start(contract, "InOutInt", vec![Arg::Int(1)]).0.id
}

/// A connection whose client has a session.
fn opened(config: &Config, contract: &Interface) -> (Pair, CallId) {
    let mut pair = connection(config);
    let call = start(&mut pair, contract);
    let (_, create) = pair.client_says().unwrap();
    pair.hand_over(&create, None).unwrap();
    let (_, granted) = pair.server_says().unwrap();
    pair.bring_back(&granted).unwrap();
    (pair, call)
}

/// What the server says to a message that leads to a call.
fn served(pair: &mut Pair, contract: &Interface, question: &[u8], result: i32) -> Vec<u8> {
    pair.hand_over(question, None).unwrap();
    let incoming = pair.incoming();
    let results = List(&find(contract, "InOutInt").results, vec![Arg::Int(result)]);
    pair.answer(incoming.id, Answer::Done(&results)).1
}

fn result(pair: &mut Pair, contract: &Interface) -> (CallId, i32) {
    let (id, outcome) = pair.outcome();
    let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
    let [Arg::Int(told)] = read(&body, &find(contract, "InOutInt").results).unwrap()[..] else { panic!() };
    (id, told)
}

#[test]
fn an_answer_does_not_wait_for_one_that_was_lost() {
    let contract = remote_object();
    let (mut pair, first) = opened(&node(&contract), &contract);
    let (_, question) = pair.client_says().unwrap();
    served(&mut pair, &contract, &question, 1);
    // Its answer is lost; the next one acknowledges both questions, and is the second of its sequence.
    let second = start(&mut pair, &contract);
    let (_, other) = pair.client_says().unwrap();
    let answer = served(&mut pair, &contract, &other, 2);
    pair.bring_back(&answer).unwrap();
    assert_eq!(result(&mut pair, &contract), (second, 2));
    // The first question has arrived, but its answer has not: it goes out again.
    pair.now += Duration::from_secs(1);
    let (flushed, again) = pair.client_says().expect("the question again");
    assert_eq!(flushed.call, Some(first));
    pair.hand_over(&again, None).unwrap();
    assert!(pair.server.poll().is_none(), "it was served before");
    let (_, answer) = pair.server_says().unwrap();
    pair.bring_back(&answer).unwrap();
    assert_eq!(result(&mut pair, &contract), (first, 1));
    // Nothing is left to repeat, and both answers are acknowledged with the next question.
    pair.now += Duration::from_secs(60);
    assert!(pair.client_says().is_none());
    start(&mut pair, &contract);
    let text = String::from_utf8(pair.client_says().unwrap().1).unwrap();
    assert!(text.contains("Lower=\"1\" Upper=\"2\""), "{text}");
}

#[test]
fn an_answer_that_was_under_way_when_its_connection_ended_is_kept() {
    let contract = remote_object();
    let config = node(&contract);
    let (mut pair, call) = opened(&config, &contract);
    let (_, question) = pair.client_says().unwrap();
    pair.hand_over(&question, None).unwrap();
    let incoming = pair.incoming();
    // Asked again while it is served: there is nothing to answer yet.
    pair.server.disconnected(&gone());
    let mut second = connection(&config);
    second.hand_over(&question, None).unwrap();
    assert!(second.server.poll().is_none(), "it is being served");
    assert!(second.server_says().is_none());
    // The servant comes to its end behind the connection that asked.
    let results = List(&find(&contract, "InOutInt").results, vec![Arg::Int(5)]);
    pair.answer(incoming.id, Answer::Done(&results));
    pair.now += Duration::from_secs(1);
    let (flushed, question) = pair.client_says().expect("the question again");
    assert_eq!(flushed.call, Some(call));
    let mut third = connection(&config);
    for _ in 0..2 {
        third.hand_over(&question, None).unwrap();
        assert!(third.server.poll().is_none(), "it was served before");
        let (_, answer) = third.server_says().unwrap();
        assert!(String::from_utf8(answer.clone()).unwrap().contains("InOutIntResponse"));
        pair.bring_back(&answer).unwrap();
    }
    assert_eq!(result(&mut pair, &contract), (call, 5));
    assert!(pair.client.poll().is_none());
    // What it says next acknowledges the answer: it is kept no longer.
    start(&mut pair, &contract);
    let (_, next) = pair.client_says().unwrap();
    served(&mut third, &contract, &next, 6);
    third.hand_over(&question, None).unwrap();
    let text = String::from_utf8(third.server_says().unwrap().1).unwrap();
    assert!(!text.contains("InOutIntResponse"), "{text}");
}

#[test]
fn a_call_whose_connection_ended_before_its_turn_is_answered_with_a_fault() {
    let place = http_support::place("wshttp://127.0.0.1:8000?MaxConcurrentCalls=1");
    let connection = || http::Accepting::new(&place);
    let (mut first, mut second) = (connection(), connection());
    let ask = |session: &mut http::Accepting, number: u32| {
        let id = granted_to(session, number);
        http_support::send(session, &said(&id, 1)).unwrap();
        (id, http_support::calls(session))
    };
    let (_, served) = ask(&mut first, 1);
    let (id, waiting) = ask(&mut second, 2);
    assert_eq!((served.len(), waiting.len()), (1, 0));
    second.disconnected(&gone());
    assert!(http_support::calls(&mut second).is_empty());
    let mut third = connection();
    http_support::send(&mut third, &said(&id, 1)).unwrap();
    assert!(http_support::calls(&mut third).is_empty());
    let text = http_support::told(&mut third);
    assert!(text.contains("EndpointUnavailable") && text.contains("nothing of it was done"), "{text}");
}

#[test]
fn one_way_calls_that_have_arrived_are_served_though_their_connection_ends() {
    let place = http_support::place("wshttp://127.0.0.1:8000?MaxConcurrentCalls=1");
    let (mut busy, mut ended) = (http::Accepting::new(&place), http::Accepting::new(&place));
    let id = granted_to(&mut busy, 1);
    http_support::send(&mut busy, &said(&id, 1)).unwrap();
    assert_eq!(http_support::calls(&mut busy).len(), 1);
    let id = granted_to(&mut ended, 2);
    let header = format!(
        "<r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{id}</r:Identifier><r:MessageNumber>2</r:MessageNumber>\
         </r:Sequence>"
    );
    let tell = "<Tell xmlns=\"http://tempuri.org/\"><text>told</text></Tell>";
    let tell = strangers::envelope(&format!("{}Tell", http_support::ACTION), &header, tell);
    // It comes first, and waits for the other, which waits for its turn.
    http_support::send(&mut ended, &post(&tell)).unwrap();
    assert!(http_support::told(&mut ended).contains("Lower=\"2\" Upper=\"2\""), "it is acknowledged");
    http_support::send(&mut ended, &said(&id, 1)).unwrap();
    assert!(http_support::calls(&mut ended).is_empty());
    ended.disconnected(&gone());
    let left = http_support::calls(&mut ended);
    assert_eq!(left.iter().map(|call| call.expects).collect::<Vec<_>>(), [Expects::Nothing]);
}

/// One connection brings the message that another one's waits for, and ends with its response: the other one's call has been
/// taken, and waits for its turn there.
#[test]
fn a_call_that_waits_for_its_turn_goes_before_the_end_of_its_connection() {
    let place = http_support::place("wshttp://127.0.0.1:8000?MaxConcurrentCalls=1");
    let connection = || http::Accepting::new(&place);
    let (mut first, mut second, mut third) = (connection(), connection(), connection());
    let results = http_support::interface().operations[0].results.clone();
    let values = http_support::Values(&results, vec![Value::Text("y".into())]);
    let (id, other) = (granted_to(&mut first, 1), granted_to(&mut third, 2));
    http_support::send(&mut first, &said(&id, 2)).unwrap();
    assert!(http_support::calls(&mut first).is_empty(), "it waits for the message before it");
    let last = String::from_utf8(said(&id, 1)).unwrap();
    let last = last.replacen("Host:", "Connection: close\r\nHost:", 1);
    http_support::send(&mut second, last.as_bytes()).unwrap();
    let call = std::iter::from_fn(|| second.poll()).find_map(|event| match event {
        Event::Call(call) => Some(call),
        _ => None,
    });
    http_support::send(&mut third, &said(&other, 1)).unwrap();
    assert!(http_support::calls(&mut third).is_empty(), "it waits for its turn");
    second.answer(call.unwrap().id, Answer::Done(&values)).unwrap();
    assert!(http_support::told(&mut second).starts_with("HTTP/1.1 200"));
    let late = Instant::now();
    second.expire(late).unwrap();
    assert!(second.poll().is_none(), "its turn has not come");
    assert!(second.deadline().is_none_or(|due| due > late), "it need not look again and again");
    let call = http_support::calls(&mut third).remove(0);
    third.answer(call.id, Answer::Done(&values)).unwrap();
    assert!(matches!(second.poll(), Some(Event::Call(_))));
    assert!(matches!(second.poll(), Some(Event::Closed)));
}

#[test]
fn what_an_earlier_connection_left_open_goes_before_the_next_call() {
    let contract = remote_object();
    let config = node(&contract);
    let (mut first, given_up) = opened(&config, &contract);
    let (_, question) = first.client_says().unwrap();
    served(&mut first, &contract, &question, 1);
    // The answer is lost with the connection, and nobody waits for it any more.
    first.client.cancel(given_up);
    first.client.disconnected(&gone());
    let mut second = connection(&config);
    second.now = first.now;
    let call = start(&mut second, &contract);
    let (flushed, again) = second.client_says().unwrap();
    assert_eq!(flushed.call, None, "no time has passed, and the lost one goes first all the same");
    second.hand_over(&again, None).unwrap();
    assert!(second.server.poll().is_none(), "it was served before");
    let (_, answer) = second.server_says().unwrap();
    second.bring_back(&answer).unwrap();
    assert!(second.client.poll().is_none(), "nobody waits for it");
    let (flushed, question) = second.client_says().unwrap();
    assert_eq!(flushed.call, Some(call));
    let answer = served(&mut second, &contract, &question, 2);
    second.bring_back(&answer).unwrap();
    assert_eq!(result(&mut second, &contract), (call, 2));
    second.now += Duration::from_secs(60);
    assert!(second.client_says().is_none());
}

#[test]
fn a_session_that_leads_nowhere_is_left_in_the_end() {
    let contract = remote_object();
    let config = node(&contract);
    let (mut pair, mut call) = opened(&config, &contract);
    pair.client_says().unwrap();
    // Whatever it asks, the connection ends, and nobody waits any more.
    for _ in 0..8 {
        pair.client.cancel(call);
        pair.client.disconnected(&gone());
        pair = connection(&config);
        call = start(&mut pair, &contract);
        let (flushed, _) = pair.client_says().unwrap();
        assert!(flushed.action.unwrap().ends_with("InOutInt"));
    }
    pair.client.cancel(call);
    pair.client.disconnected(&gone());
    let mut last = connection(&config);
    start(&mut last, &contract);
    let (flushed, _) = last.client_says().unwrap();
    assert!(flushed.action.unwrap().ends_with("CreateSequence"));
}

#[test]
fn a_fault_that_answers_nothing_in_particular_fails_one_call_only() {
    let contract = remote_object();
    let (mut pair, first) = opened(&node(&contract), &contract);
    pair.client_says().unwrap();
    let fault = "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\"><s:Body><s:Fault><s:Code><s:Value>s:Receiver\
         </s:Value></s:Code><s:Reason><s:Text xml:lang=\"en\">no</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>";
    pair.bring_back(fault.as_bytes()).unwrap();
    let (id, outcome) = pair.outcome();
    assert!(id == first && matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    // It is not asked again, whatever the time.
    pair.now += Duration::from_secs(60);
    assert!(pair.client_says().is_none());
}

#[test]
fn plain_calls_stand_beside_sessions_on_one_connection() {
    let contract = remote_object();
    let config = node(&contract);
    let (mut pair, call) = opened(&config, &contract);
    let mut plain = Pair::with(Dialect { session: false, ..Dialect::WS }, &config, |settings| {
        settings.binding = everywire_wcf::settings::Binding::Ws;
    });
    for round in 0..3 {
        // The head is new the first time, and known afterwards.
        let (started, question) = plain.start(&contract, "InOutInt", vec![Arg::Int(1)]);
        let answer = served(&mut pair, &contract, &question, 7);
        let text = String::from_utf8(answer.clone()).unwrap();
        assert!(!text.contains(RM), "round {round}: {text}");
        plain.bring_back(&answer).unwrap();
        assert_eq!(result(&mut plain, &contract), (started.id, 7));
        let asked = if round == 0 { call } else { start(&mut pair, &contract) };
        let (_, question) = pair.client_says().unwrap();
        let answer = served(&mut pair, &contract, &question, round);
        pair.bring_back(&answer).unwrap();
        assert_eq!(result(&mut pair, &contract), (asked, round));
    }
}

/// An envelope in a request.
fn post(envelope: &[u8]) -> Vec<u8> {
    http_support::post("/echo", "Content-Type: application/soap+xml; charset=utf-8\r\n", envelope)
}

/// A sequence that a stranger asked for.
pub(crate) fn granted_to(session: &mut http::Accepting, number: u32) -> String {
    http_support::send(session, &post(&strangers::create(number))).unwrap();
    between(&http_support::told(session), "<Identifier>", "<")
}

/// His message with a number.
pub(crate) fn said(id: &str, number: u32) -> Vec<u8> {
    let header = format!(
        "<a:MessageID>urn:m{number}</a:MessageID><r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{id}</r:Identifier>\
         <r:MessageNumber>{number}</r:MessageNumber></r:Sequence>"
    );
    let body = format!("<Say xmlns=\"http://tempuri.org/\"><text>{number}</text></Say>");
    post(&strangers::envelope(&format!("{}Say", http_support::ACTION), &header, &body))
}

#[test]
fn what_all_sessions_keep_has_one_bound_and_whoever_keeps_most_gives_way() {
    let kept = Arc::default();
    let config = http_support::keeping("wshttp://127.0.0.1:8000", 100_000, &kept);
    let of = |user: u32| Config {
        peer: PeerAddress { text: format!("tcp:10.0.0.{user}:1"), credentials: None },
        ..config.clone()
    };
    let interface = http_support::interface();
    // Each question is answered with 20,000 bytes, which nobody acknowledges.
    let ask = |session: &mut http::Accepting, id: &str, number: u32| {
        http_support::send(session, &said(id, number)).unwrap();
        let calls = http_support::calls(session);
        for call in &calls {
            let values = vec![Value::Text("x".repeat(20_000))];
            let results = http_support::Values(&interface.operations[0].results, values);
            session.answer(call.id, Answer::Done(&results)).unwrap();
        }
        http_support::told(session)
    };
    let mut honest = http::Accepting::new(&of(1));
    let own = granted_to(&mut honest, 1);
    assert!(ask(&mut honest, &own, 1).contains("SayResponse"));
    let mut greedy = Vec::new();
    for number in 2..=4 {
        let mut session = http::Accepting::new(&of(2));
        let id = granted_to(&mut session, number);
        for question in 1..=2 {
            ask(&mut session, &id, question);
        }
        // What is kept does not go with the connection.
        session.disconnected(&gone());
        greedy.push(id);
        assert!((20_000..=100_000).contains(&kept.load(Ordering::Relaxed)), "{kept:?}");
    }
    // One of the three gave way, and is told so; he who keeps less goes on.
    let mut again = http::Accepting::new(&of(2));
    let told: Vec<_> = greedy.iter().map(|id| ask(&mut again, id, 3)).collect();
    let gone = told.iter().filter(|told| told.contains("UnknownSequence")).count();
    assert!((1..=2).contains(&gone), "{told:?}");
    assert!(ask(&mut honest, &own, 1).contains("SayResponse"), "its answer is there still");
    assert!(ask(&mut honest, &own, 2).contains("SayResponse"));
}

#[test]
fn each_request_gets_its_own_answer_whatever_waited_for_it() {
    let mut session = http_support::accepting("wshttp://127.0.0.1:8000");
    let id = granted_to(&mut session, 9);
    let question = |number: u32| said(&id, number);
    // The second comes first, and waits; WCF's clients take any envelope for its answer.
    http_support::send(&mut session, &question(2)).unwrap();
    let text = http_support::told(&mut session);
    assert!(text.starts_with("HTTP/1.1 202 ") && text.contains("content-length: 0\r\n"), "{text}");
    assert!(http_support::calls(&mut session).is_empty());
    http_support::send(&mut session, &question(1)).unwrap();
    let calls = http_support::calls(&mut session);
    assert_eq!(calls.len(), 2);
    let interface = http_support::interface();
    let results = |text: &str| {
        http_support::Values(&interface.operations[0].results, vec![Value::Text(text.to_owned())])
    };
    session.answer(calls[0].id, Answer::Done(&results("one"))).unwrap();
    let text = http_support::told(&mut session);
    assert!(text.contains("RelatesTo>urn:m1<") && text.contains("one"), "{text}");
    // A message of nobody's comes before the other has its answer, which is kept for whoever asks again.
    let plain = post(&strangers::envelope(
        &format!("{}Say", http_support::ACTION),
        "<a:MessageID>urn:plain</a:MessageID>",
        "<Say xmlns=\"http://tempuri.org/\"><text>x</text></Say>",
    ));
    http_support::send(&mut session, &plain).unwrap();
    let between = http_support::calls(&mut session);
    session.answer(calls[1].id, Answer::Done(&results("two"))).unwrap();
    assert!(http_support::told(&mut session).is_empty());
    session.answer(between[0].id, Answer::Done(&results("plain"))).unwrap();
    let text = http_support::told(&mut session);
    assert!(text.contains("RelatesTo>urn:plain<") && !text.contains("Sequence"), "{text}");
    http_support::send(&mut session, &question(2)).unwrap();
    assert!(http_support::calls(&mut session).is_empty(), "it was served before");
    let text = http_support::told(&mut session);
    assert!(text.contains("RelatesTo>urn:m2<") && text.contains("two"), "{text}");
}

#[test]
fn a_call_goes_on_over_the_next_connection_until_it_has_its_answer() {
    let contract = remote_object();
    let config = node(&contract);
    let (mut first, call) = opened(&config, &contract);
    let (_, question) = first.client_says().unwrap();
    first.hand_over(&question, None).unwrap();
    let incoming = first.incoming();
    let mut servant = first;
    servant.server.disconnected(&gone());
    servant.client.disconnected(&gone());
    let moved = |pair: &mut Pair, call| match pair.outcome() {
        (id, Outcome::Moved(reference)) if id == call => reference.profiles[0].clone(),
        other => panic!("{other:?}"),
    };
    let way = moved(&mut servant, call);
    assert!(way.component(RESUME_TOKEN).is_some());
    // Others begin sessions of their own meanwhile.
    let mut other = connection(&config);
    start(&mut other, &contract);
    let asked = other.client_says().unwrap().0.action.unwrap();
    assert!(asked.ends_with("CreateSequence"), "{asked}");
    // The same message again, over a connection that knows of nothing, and once more over one for which it was made.
    for made_for_it in [false, true] {
        let profile = if made_for_it { way.clone() } else { Profile::default() };
        let mut next = connection(&Config { profile, ..config.clone() });
        next.profile = way.clone();
        next.now = servant.now + Duration::from_secs(1);
        let again = start(&mut next, &contract);
        let (flushed, repeated) = next.client_says().expect("the question again");
        assert_eq!(flushed.call, Some(again));
        let number = |said: &[u8]| between(std::str::from_utf8(said).unwrap(), "MessageNumber>", "<");
        let identifier = |said: &[u8]| between(std::str::from_utf8(said).unwrap(), "MessageID>", "<");
        assert_eq!((number(&repeated), identifier(&repeated)), (number(&question), identifier(&question)));
        next.hand_over(&repeated, None).unwrap();
        assert!(next.server.poll().is_none(), "it is being served");
        assert!(next.server_says().is_none(), "there is no answer yet");
        if made_for_it {
            let results = List(&find(&contract, "InOutInt").results, vec![Arg::Int(8)]);
            servant.answer(incoming.id, Answer::Done(&results));
            next.now += Duration::from_secs(30);
            let (_, repeated) = next.client_says().unwrap();
            next.hand_over(&repeated, None).unwrap();
            assert!(next.server.poll().is_none(), "it was served before");
            let (_, answer) = next.server_says().unwrap();
            next.bring_back(&answer).unwrap();
            assert_eq!(result(&mut next, &contract), (again, 8));
            next.now += Duration::from_secs(60);
            assert!(next.client_says().is_none(), "nothing is left to ask");
        } else {
            next.client.disconnected(&gone());
            assert_eq!(moved(&mut next, again).component(RESUME_TOKEN), way.component(RESUME_TOKEN));
        }
    }
    // It has its answer: whoever comes for it once more is told that it may have run.
    let mut late = connection(&config);
    late.profile = way;
    let operation = find(&contract, "InOutInt");
    let arguments = List(&operation.arguments, vec![Arg::Int(1)]);
    let call = Call {
        profile: &late.profile,
        method: Method::Typed { interface: Some(&contract), operation },
        arguments: &arguments,
        expects: Expects::Reply,
    };
    let failure = late.client.start(late.now, &call, &mut SendBuffer::new()).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe));
}

pub(crate) fn response(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/soap+xml; charset=utf-8\r\nContent-Length: ";
    format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A client over HTTP whose call has left in a session.
fn calling(wire_state: &Arc<dyn WireState>) -> (http::Connecting, String) {
    let way = http_support::way("wshttp://127.0.0.1:8000/echo?reliable=on");
    calling_by(way, wire_state, 0)
}

/// The same by this way, with the operation of this number.
pub(crate) fn calling_by(
    way: Profile,
    wire_state: &Arc<dyn WireState>,
    operation: usize,
) -> (http::Connecting, String) {
    let config =
        Config { profile: way.clone(), wire_state: Some(Arc::clone(wire_state)), ..Config::default() };
    let mut session = http::Connecting::new(&config);
    let interface = http_support::interface();
    let operation = &interface.operations[operation];
    let arguments = http_support::Values(&operation.arguments, vec![Value::Text("x".to_owned())]);
    let call = Call {
        profile: &way,
        method: Method::Typed { interface: Some(&interface), operation },
        arguments: &arguments,
        expects: if operation.oneway { Expects::Nothing } else { Expects::Reply },
    };
    session.start(Instant::now(), &call).unwrap();
    let mut asked = http_support::told(&mut session);
    if !asked.contains("CreateSequence") {
        return (session, asked);
    }
    let body = format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:a=\"http://www.w3.org/2005/08/addressing\"><s:Header><a:Action>{RM}/CreateSequenceResponse</a:Action>\
         <a:RelatesTo>{}</a:RelatesTo></s:Header><s:Body><CreateSequenceResponse xmlns=\"{RM}\">\
         <Identifier>urn:theirs</Identifier></CreateSequenceResponse></s:Body></s:Envelope>",
        between(&asked, "MessageID>", "<")
    );
    http_support::send(&mut session, &response(&body)).unwrap();
    asked.push_str(&http_support::told(&mut session));
    assert!(asked.contains("MessageNumber>1<"));
    (session, asked)
}

#[test]
fn only_the_end_of_a_connection_leaves_a_session_to_go_on_with() {
    let strange: [&[u8]; 4] = [
        b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\noops",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\noops",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/soap+xml\r\nContent-Length: 99999999\r\n\r\n<",
        b"nonsense\r\n\r\n",
    ];
    for response in strange {
        let wire_state = wire_state(remote_object(), KEY);
        let (mut session, _) = calling(&wire_state);
        http_support::send(&mut session, response).unwrap_err();
        session.disconnected(&gone());
        let (_, asked) = calling(&wire_state);
        assert!(asked.contains("CreateSequence"), "{}: {asked}", String::from_utf8_lossy(response));
    }
    let wire_state = wire_state(remote_object(), KEY);
    let (mut session, _) = calling(&wire_state);
    session.cancel(CallId(1));
    session.disconnected(&gone());
    let (_, asked) = calling(&wire_state);
    assert!(asked.contains("MessageNumber>1<") && !asked.contains("CreateSequence"), "{asked}");
}

#[test]
fn a_one_way_call_goes_on_over_the_next_connection_until_it_has_arrived() {
    let wire_state = wire_state(remote_object(), KEY);
    let (mut session, _) =
        calling_by(http_support::way("wshttp://127.0.0.1:8000/echo?reliable=on"), &wire_state, 2);
    for _ in 0..2 {
        session.disconnected(&gone());
        let [(_, Outcome::Moved(reference))] = &http_support::replies(&mut session)[..] else {
            panic!("it goes on")
        };
        assert!(reference.is_under_way());
        // Others do not take its session meanwhile.
        let (_, other) =
            calling_by(http_support::way("wshttp://127.0.0.1:8000/echo?reliable=on"), &wire_state, 2);
        assert!(other.contains("CreateSequence"), "{other}");
        let (next, again) = calling_by(reference.profiles[0].clone(), &wire_state, 2);
        assert!(again.contains("/Tell<") && again.contains("MessageNumber>1<"), "{again}");
        session = next;
    }
    let arrived = format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:r=\"{RM}\" \
         xmlns:a=\"http://www.w3.org/2005/08/addressing\"><s:Header><a:Action>{RM}/SequenceAcknowledgement</a:Action>\
         <r:SequenceAcknowledgement><r:Identifier>urn:theirs</r:Identifier><r:AcknowledgementRange Lower=\"1\" Upper=\"1\"/>\
         </r:SequenceAcknowledgement></s:Header><s:Body/></s:Envelope>"
    );
    http_support::send(&mut session, &response(&arrived)).unwrap();
    let [(_, Outcome::Done(_))] = &http_support::replies(&mut session)[..] else { panic!("it has arrived") };
    session.disconnected(&gone());
    assert!(http_support::replies(&mut session).is_empty());
}
