//! One-way calls on connections that carry one call at a time: nobody waits for an answer, and none is lost without a word.

#![allow(clippy::unwrap_used)]

use crate::channels;
use crate::http_support;
use crate::http_support::{Values, interface, replies, sent, way};
use crate::reliable_http::{calling_by, response};
use crate::soap_support::strangers::between;
use crate::soap_support::{KEY, remote_object, wire_state};
use everywire_model::*;
use everywire_wcf::WCF;
use std::time::Instant;

fn gone() -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Peer, "the peer closed the connection")
}

/// A session and the one-way call that it was given.
fn told(address: &str) -> (everywire_wcf::http::Connecting, CallId) {
    let way = way(address);
    let mut session = http_support::connecting(&way);
    let id = tell(&mut session, &way);
    (session, id)
}

fn tell(session: &mut dyn Session, way: &Profile) -> CallId {
    let interface = interface();
    let operation = &interface.operations[2];
    let arguments = Values(&operation.arguments, vec![Value::Text("x".to_owned())]);
    let expects = Expects::Nothing;
    let call = Call {
        profile: way,
        method: Method::Typed { interface: Some(&interface), operation },
        arguments: &arguments,
        expects,
    };
    session.start(Instant::now(), &call).unwrap()
}

/// What became of a one-way call that was answered so.
fn answered(address: &str, status: &str, content_type: &str, body: &str) -> Outcome<Body> {
    let (mut session, id) = told(address);
    sent(&mut session);
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    http_support::send(&mut session, response.as_bytes()).unwrap();
    let mut replies = replies(&mut session);
    let (replied, outcome) = replies.remove(0);
    assert_eq!((replied, session.outstanding()), (id, 0));
    outcome
}

#[test]
fn the_status_of_a_one_way_call_is_its_outcome() {
    let address = "basic://127.0.0.1:8000/echo";
    for status in ["202 Accepted", "200 OK", "204 No Content"] {
        assert!(matches!(answered(address, status, "text/xml", ""), Outcome::Done(_)), "{status}");
    }
    for (status, kind) in [
        ("401 Unauthorized", Kind::Refused),
        ("404 Not Found", Kind::NoObject),
        ("413 Payload Too Large", Kind::LimitExceeded),
        ("500 Internal Server Error", Kind::Internal),
        ("503 Service Unavailable", Kind::Busy),
    ] {
        let Outcome::Failed(failure) = answered(address, status, "text/html", "<p>no</p>") else {
            panic!("{status} was swallowed")
        };
        assert_eq!(failure.kind(), kind, "{failure}");
    }
    // A fault says more than its status, whichever that is.
    let fault = http_support::envelope(
        "<s:Fault><faultcode>s:Client</faultcode><faultstring>not like this</faultstring></s:Fault>",
    );
    for status in ["500 Internal Server Error", "200 OK"] {
        let Outcome::Failed(failure) = answered(address, status, "text/xml; charset=utf-8", &fault) else {
            panic!("{status} was swallowed")
        };
        assert_eq!(failure.message(), "not like this");
    }
    // Other envelopes are nothing that anybody waits for.
    let empty = http_support::envelope("");
    assert!(matches!(answered(address, "200 OK", "text/xml; charset=utf-8", &empty), Outcome::Done(_)));
}

/// An envelope that is no fault says nothing of why the status is an error, but somebody read the request.
#[test]
fn an_envelope_behind_an_error_does_not_say_that_nothing_was_done() {
    let address = "basic://127.0.0.1:8000/echo";
    let envelope = http_support::envelope("<TellResponse xmlns=\"http://tempuri.org/\"/>");
    for status in ["400 Bad Request", "404 Not Found", "503 Busy", "500 Broken"] {
        let Outcome::Failed(failure) = answered(address, status, "text/xml", &envelope) else {
            panic!("{status} was swallowed")
        };
        assert_eq!(failure.completed(), Completed::Maybe, "{status}: {failure}");
    }
}

#[test]
fn a_one_way_request_that_meets_the_end_of_its_connection_has_failed() {
    let (mut session, first) = told("basic://127.0.0.1:8000/echo");
    let second = tell(&mut session, &way("basic://127.0.0.1:8000/echo"));
    sent(&mut session);
    session.disconnected(&gone());
    let mut ends = replies(&mut session);
    ends.sort_by_key(|(id, _)| *id);
    let [(one, Outcome::Failed(sent)), (two, Outcome::Failed(waited))] = &ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!((*one, *two), (first, second));
    // The first left whole, the second never.
    assert_eq!((sent.completed(), waited.completed()), (Completed::Maybe, Completed::No));
}

#[test]
fn a_one_way_message_of_a_reliable_session_fails_with_its_connection() {
    let (mut session, id) = told("wshttp://127.0.0.1:8000/echo?reliable=on");
    sent(&mut session);
    session.disconnected(&gone());
    let ends = replies(&mut session);
    let [(failed, Outcome::Failed(failure))] = &ends[..] else { panic!("{ends:?}") };
    // Only the question for a session has left.
    assert_eq!((*failed, failure.completed()), (id, Completed::No));
}

/// What says that a one-way message was not taken does not say that it has arrived.
#[test]
fn a_one_way_message_that_was_not_taken_has_not_arrived() {
    let way = || http_support::way("wshttp://127.0.0.1:8000/echo?reliable=on");
    let wire_state = wire_state(remote_object(), KEY);
    let (mut session, _) = calling_by(way(), &wire_state, 2);
    // A gateway without its service: the session sends the message again.
    http_support::send(&mut session, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert!(http_support::replies(&mut session).is_empty() && session.outstanding() == 1);
    let (mut session, _) = calling_by(way(), &wire_state, 2);
    let fault = "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:a=\"http://www.w3.org/2005/08/addressing\">\
        <s:Header><a:Action>http://www.w3.org/2005/08/addressing/fault</a:Action></s:Header><s:Body><s:Fault><s:Code>\
        <s:Value>s:Sender</s:Value><s:Subcode><s:Value>a:ActionNotSupported</s:Value></s:Subcode></s:Code><s:Reason>\
        <s:Text xml:lang=\"en\">not here</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>";
    http_support::send(&mut session, &response(fault)).unwrap();
    let [(_, Outcome::Failed(failure))] = &http_support::replies(&mut session)[..] else {
        panic!("it was refused")
    };
    assert_eq!(failure.message(), "not here");
}

/// The response to a message of a reliable session may be the answer to another: its fault is that one's.
#[test]
fn a_fault_of_another_call_does_not_fail_a_one_way_message() {
    let way = way("wshttp://127.0.0.1:8000/echo?reliable=on");
    let (mut session, said) = calling_by(way.clone(), &wire_state(remote_object(), KEY), 0);
    let first = between(said.rsplit_once("<s:Envelope").unwrap().1, "MessageID>", "<").to_owned();
    let two = tell(&mut session, &way);
    // The first gets no response of its own.
    http_support::send(&mut session, b"HTTP/1.1 504 Late\r\nContent-Length: 0\r\n\r\n").unwrap();
    let next = http_support::told(&mut session);
    assert!(next.contains("MessageNumber>2<"), "{next}");
    let fault = format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:a=\"http://www.w3.org/2005/08/addressing\">\
         <s:Header><a:Action>http://www.w3.org/2005/08/addressing/fault</a:Action><a:RelatesTo>{first}</a:RelatesTo></s:Header>\
         <s:Body><s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code><s:Reason><s:Text xml:lang=\"en\">not like this</s:Text>\
         </s:Reason></s:Fault></s:Body></s:Envelope>"
    );
    http_support::send(&mut session, &response(&fault)).unwrap();
    let ends = replies(&mut session);
    let [(one, Outcome::Failed(failure)), (done, Outcome::Done(_))] = &ends[..] else { panic!("{ends:?}") };
    assert!(*done == two && *one != two && failure.message() == "not like this", "{failure}");
}

#[test]
fn what_is_given_up_in_its_turn_stays_outstanding_until_the_peer_is_done() {
    let (mut session, id) = told("basic://127.0.0.1:8000/echo");
    sent(&mut session);
    session.cancel(id);
    assert_eq!(session.outstanding(), 1);
    http_support::send(&mut session, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert!(replies(&mut session).is_empty());
    assert_eq!(session.outstanding(), 0);

    let mut pair = channels::Pair::streamed();
    pair.carry();
    let id = pair.call(Expects::Reply);
    pair.carry();
    pair.client.cancel(id);
    assert_eq!(pair.client.outstanding(), 1);
    assert_eq!(pair.serve(), 1);
    pair.carry();
    assert_eq!(pair.client.outstanding(), 0);
}

#[test]
fn a_streamed_one_way_call_is_heard_to_its_end() {
    let mut pair = channels::Pair::streamed();
    pair.carry();
    for _ in 0..2 {
        let id = pair.call(Expects::Nothing);
        assert_eq!(pair.client.outstanding(), 1);
        pair.carry();
        assert_eq!(pair.serve(), 1);
        pair.carry();
        let ends = replies(&mut *pair.client);
        assert!(matches!(&ends[..], [(ended, Outcome::Done(_))] if *ended == id), "{ends:?}");
        assert_eq!(pair.client.outstanding(), 0);
    }
}

#[test]
fn a_streamed_one_way_call_that_meets_the_end_of_its_connection_has_failed() {
    let mut pair = channels::Pair::streamed();
    pair.carry();
    let first = pair.call(Expects::Nothing);
    let second = pair.call(Expects::Nothing);
    channels::sent(&mut *pair.client);
    pair.client.disconnected(&gone());
    let mut ends = replies(&mut *pair.client);
    ends.sort_by_key(|(id, _)| *id);
    let [(one, Outcome::Failed(sent)), (two, Outcome::Failed(waited))] = &ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!((*one, *two), (first, second));
    assert_eq!((sent.completed(), waited.completed()), (Completed::Maybe, Completed::No));
}

#[test]
fn what_was_handed_over_whole_may_have_been_executed_whatever_tls_says_behind_it() {
    let papers = Papers::new();
    let path = papers.0.display();
    let address = format!("basic://localhost:8000/echo?security=tls&ca={path}/own.pem");
    let way = way(&address);
    // Half of the request, then all of it: behind it TLS says goodbye, and that does not leave any more.
    for (half, completed) in [(true, Completed::No), (false, Completed::Maybe)] {
        let place = http_support::place(&format!(
            "basic://127.0.0.1:8000?security=tls&cert={path}/own.pem&key={path}/own.key"
        ));
        let mut client = WCF.connect(&Config { profile: way.clone(), ..Config::default() });
        let mut server = WCF.accept(&place);
        loop {
            let said = sent(&mut *client);
            http_support::send(&mut *server, &said).unwrap();
            let back = sent(&mut *server);
            if said.is_empty() && back.is_empty() {
                break;
            }
            http_support::send(&mut *client, &back).unwrap();
        }
        tell(&mut *client, &way);
        let whole = client.transmit().len();
        let taken = if half { whole / 2 } else { whole };
        client.transmit().consume(taken);
        client.close();
        assert!(client.transmit().len() > whole - taken, "TLS says no goodbye");
        client.disconnected(&gone());
        let ends = replies(&mut *client);
        let [(_, Outcome::Failed(failure))] = &ends[..] else { panic!("{ends:?}") };
        assert_eq!(failure.completed(), completed, "{taken} of {whole} bytes");
    }
}

/// A key and a certificate by nobody else, in a directory of their own.
struct Papers(std::path::PathBuf);

impl Papers {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("told-papers-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                       -addext subjectAltName=DNS:localhost -keyout own.key -out own.pem";
        let made = std::process::Command::new("openssl")
            .args(request.split_whitespace())
            .current_dir(&path)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::set_permissions(path.join("own.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        Self(path)
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
