//! Responses over HTTP that end with their connection.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::*;
use std::time::Instant;

/// What becomes of a call of `Say` that is answered so, before the connection ends.
fn answered(response: &str) -> Outcome<Body> {
    let way = way("basic://127.0.0.1:8000/echo");
    let mut session = connecting(&way);
    let interface = interface();
    let operation = &interface.operations[0];
    let call = Call {
        profile: &way,
        method: Method::Typed { interface: Some(&interface), operation },
        arguments: &Values(&operation.arguments, vec![Value::Text("a".into())]),
        expects: Expects::Reply,
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
