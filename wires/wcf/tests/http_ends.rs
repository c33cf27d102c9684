//! Responses over HTTP that end with their connection.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::*;
use std::time::Instant;

/// What becomes of a call of `Say` that is answered so, before the connection ends.
fn answered(response: &str) -> Outcome<Body> {
    answered_call(0, Expects::Reply, response)
}

/// What becomes of a call of this operation.
fn answered_call(operation: usize, expects: Expects, response: &str) -> Outcome<Body> {
    let way = way("basic://127.0.0.1:8000/echo");
    let mut session = connecting(&way);
    let interface = interface();
    let operation = &interface.operations[operation];
    let call = Call {
        profile: &way,
        method: Method::Typed { interface: Some(&interface), operation },
        arguments: &Values(&operation.arguments, vec![Value::Text("a".into())]),
        expects,
    };
    let id = session.start(Instant::now(), &call).unwrap();
    sent(&mut session);
    send(&mut session, response.as_bytes()).unwrap();
    assert!(replies(&mut session).is_empty());
    session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "the peer closed the connection"));
    let mut replies = replies(&mut session);
    assert_eq!((replies.len(), session.outstanding()), (1, 0));
    let (replied, outcome) = replies.remove(0);
    assert_eq!(replied, id);
    outcome
}

/// RFC 9112, section 6.3: a response without a length ends with its connection.
#[test]
fn a_body_may_end_with_its_connection() {
    let reply = "<SayResponse xmlns=\"http://tempuri.org/\"><SayResult>heard</SayResult></SayResponse>";
    let fault = "<s:Fault><faultcode>s:Server</faultcode><faultstring>heard</faultstring></s:Fault>";
    let said = |status: &str, body: &str| {
        let head = format!("HTTP/{status}\r\nContent-Type: text/xml; charset=utf-8\r\n\r\n");
        answered(&format!("{head}{}", envelope(body)))
    };
    for status in ["1.1 200 OK", "1.0 200 OK"] {
        let Outcome::Done(body) = said(status, reply) else { panic!("{status}") };
        assert_eq!(first(&body, &interface().operations[0].results), Value::Text("heard".into()));
    }
    let Outcome::Failed(failure) = said("1.1 500 Broken", fault) else { panic!("a fault") };
    assert_eq!(failure.message(), "heard");
}

/// One whose length is known, or that comes in chunks, is not whole when its connection ends early.
#[test]
fn a_body_that_is_cut_off_is_no_answer() {
    for (length, body) in [("Content-Length: 999", ""), ("Transfer-Encoding: chunked", "5\r\n")] {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n{length}\r\n\r\n{body}<s:En");
        let Outcome::Failed(failure) = answered(&response) else { panic!("{length}") };
        assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe), "{failure}");
    }
    let Outcome::Failed(failure) = answered("HTTP/1.1 200 OK\r\nContent-Ty") else { panic!("no head") };
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe), "{failure}");
}

/// Who has answered may have done what was asked, whatever the answer looks like. Behind the status of an error text stands for
/// people, also where its type says XML (strong-soap sends its stack so).
#[test]
fn an_answer_that_cannot_be_read_does_not_say_that_nothing_was_done() {
    let said = |status: &str, body: &str| {
        answered(&format!("HTTP/1.1 {status}\r\nContent-Type: text/xml; charset=utf-8\r\n\r\n{body}"))
    };
    let undeclared = "<SayResponse xmlns=\"http://tempuri.org/\"><SayResult xsi:nil=\"true\"/></SayResponse>";
    let broken_fault = "<s:Fault><faultcode>s:Server</faultcode><faultstring>&x;</faultstring></s:Fault>";
    for (status, body, code) in [
        ("200 OK", "Error: it crashed", "xml Markup"),
        ("200 OK", &envelope(undeclared), "xml UnknownPrefix"),
        ("200 OK", &envelope(broken_fault), "xml Entity"),
        ("500 Broken", "Error: it crashed\n    at line 9", "HTTP 500 Internal Server Error"),
        ("500 Broken", &envelope(broken_fault), "HTTP 500 Internal Server Error"),
        ("400 Bad Request", &envelope(broken_fault), "HTTP 400 Bad Request"),
        ("503 Busy", &envelope(broken_fault), "HTTP 503 Service Unavailable"),
    ] {
        let Outcome::Failed(failure) = said(status, body) else { panic!("{status} {body}") };
        assert_eq!((failure.code(), failure.completed()), (Some(code), Completed::Maybe), "{failure}");
    }
    let Outcome::Failed(failure) = said("500 Broken", "Error: it crashed") else { panic!("no failure") };
    assert_eq!(failure.kind(), Kind::Internal);
    assert!(failure.message().contains("it crashed"), "{failure}");
}

/// The same of calls that expect nothing.
#[test]
fn a_oneway_call_that_is_answered_with_other_text_has_the_status_s_meaning() {
    for (status, code) in [
        ("500 Broken", "HTTP 500 Internal Server Error"),
        ("400 Bad Request", "HTTP 400 Bad Request"),
        ("200 OK", "xml Markup"),
    ] {
        let response = format!("HTTP/1.1 {status}\r\nContent-Type: text/xml\r\n\r\nError: it crashed");
        let outcome = answered_call(2, Expects::Nothing, &response);
        let Outcome::Failed(failure) = outcome else { panic!("{status}: {outcome:?}") };
        assert_eq!((failure.code(), failure.completed()), (Some(code), Completed::Maybe), "{failure}");
    }
}

/// Behind an answer from another thread nobody asks for events: the end that follows it is due at once. Clients of HTTP/1.0
/// (Axis 1) read on until it comes.
#[test]
fn the_end_behind_an_answer_is_due_at_once() {
    for (version, headers) in [("1.0", ""), ("1.1", "Connection: close\r\n")] {
        let mut session = accepting("basic://127.0.0.1:8000?security=none");
        let request = post("/echo", &(basic("Say") + headers), say("x").as_bytes());
        let request = String::from_utf8(request).unwrap().replace("HTTP/1.1", &format!("HTTP/{version}"));
        send(&mut session, request.as_bytes()).unwrap();
        let call = calls(&mut session).remove(0);
        let results = interface().operations[0].results.clone();
        let values = Values(&results, vec![Value::Text("y".into())]);
        session.answer(call.id, Answer::Done(&values)).unwrap();
        assert!(told(&mut session).starts_with(&format!("HTTP/{version} 200 OK")));
        let now = Instant::now();
        assert!(session.deadline().is_some_and(|due| due <= now), "{version}");
        session.expire(now).unwrap();
        assert!(matches!(session.poll(), Some(Event::Closed)), "{version}");
        assert!(session.poll().is_none() && session.deadline().is_none_or(|due| due > now));
    }
}
