//! HTTP sessions: calls of every binding through both of ours, requests as others write them, and what responses without an
//! envelope come to.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use bytes::{Bytes, BytesMut};
use everywire_model::*;
use everywire_wcf::http;
use std::time::Instant;

const BINDINGS: [&str; 4] = ["basic", "wshttp", "binhttp", "http?binding=mtom"];

fn address(binding: &str, path: &str, options: &str) -> String {
    let (scheme, query) = binding.split_once('?').unwrap_or((binding, ""));
    let query = [query, options].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { query } else { format!("?{query}") };
    format!("{scheme}://127.0.0.1:8000{path}{query}")
}

/// Two sessions of one connection.
struct Pair {
    client: http::Connecting,
    server: http::Accepting,
    way: Profile,
    interface: Interface,
}

impl Pair {
    fn new(binding: &str, options: &str) -> Self {
        let way = way(&address(binding, "/echo", options));
        let server = ["security=none", options].join("&");
        Self {
            client: connecting(&way),
            server: accepting(&address(binding, "", server.trim_end_matches('&'))),
            way,
            interface: interface(),
        }
    }

    fn operation(&self, index: usize) -> Operation {
        self.interface.operations[index].clone()
    }

    fn start(&mut self, index: usize, arguments: Vec<Value>) -> CallId {
        let operation = self.operation(index);
        let values = Values(&operation.arguments, arguments);
        let expects = if operation.oneway { Expects::Nothing } else { Expects::Reply };
        let call = Call {
            profile: &self.way,
            method: Method::Typed { interface: Some(&self.interface), operation: &operation },
            arguments: &values,
            expects,
        };
        self.client.start(Instant::now(), &call).unwrap()
    }

    fn carry(&mut self) {
        let mut input = BytesMut::from(&sent(&mut self.client)[..]);
        self.server.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
        assert!(input.is_empty());
    }

    fn back(&mut self) -> Vec<(CallId, Outcome<Body>)> {
        let mut input = BytesMut::from(&sent(&mut self.server)[..]);
        self.client.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
        replies(&mut self.client)
    }

    fn answer(&mut self, index: usize, id: CallId, results: Vec<Value>) {
        let operation = self.operation(index);
        self.server.answer(id, Answer::Done(&Values(&operation.results, results))).unwrap();
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn calls_and_answers_of_every_binding() {
    for binding in BINDINGS {
        let mut pair = Pair::new(binding, "MaxReceivedMessageSize=4000000");
        for round in 0..3 {
            let said = format!("<{round}> & \u{e4}");
            let id = pair.start(0, vec![text(&said)]);
            pair.carry();
            let call = calls(&mut pair.server).remove(0);
            assert_eq!((&call.key[..], call.expects), (&b"echo"[..], Expects::Reply), "{binding}");
            assert_eq!(first(&call.body, &pair.operation(0).arguments), text(&said), "{binding}");
            assert_eq!(pair.server.outstanding(), 1);
            pair.answer(0, call.id, vec![text("heard")]);
            let replies = pair.back();
            let [(replied, Outcome::Done(body))] = &replies[..] else { panic!("{binding}: {replies:?}") };
            assert_eq!(*replied, id);
            assert_eq!(first(body, &pair.operation(0).results), text("heard"));
            assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
        }
    }
}

#[test]
fn large_octets_of_every_binding() {
    let octets: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    for binding in BINDINGS {
        let mut pair = Pair::new(binding, "MaxReceivedMessageSize=4000000");
        pair.start(1, vec![Value::Bytes(Bytes::from(octets.clone()))]);
        // In pieces, as sockets deliver them.
        for piece in sent(&mut pair.client).chunks(50_000) {
            send(&mut pair.server, piece).unwrap();
        }
        let call = calls(&mut pair.server).remove(0);
        let Value::Bytes(came) = first(&call.body, &pair.operation(1).arguments) else { panic!("no octets") };
        assert_eq!(came, octets, "{binding}");
        pair.answer(1, call.id, vec![Value::Bytes(came)]);
        let replies = pair.back();
        let [(_, Outcome::Done(body))] = &replies[..] else { panic!("{binding}: {replies:?}") };
        assert_eq!(first(body, &pair.operation(1).results), Value::Bytes(Bytes::from(octets.clone())));
    }
}

#[test]
fn calls_wait_for_their_turn() {
    let mut pair = Pair::new("basic", "");
    assert!(pair.client.one_at_a_time());
    let ids: Vec<CallId> = ["a", "b", "c"].iter().map(|said| pair.start(0, vec![text(said)])).collect();
    assert_eq!(pair.client.outstanding(), 3);
    for (id, said) in ids.into_iter().zip(["a", "b", "c"]) {
        pair.carry();
        let mut came = calls(&mut pair.server);
        let call = came.remove(0);
        assert!(came.is_empty());
        assert_eq!(first(&call.body, &pair.operation(0).arguments), text(said));
        pair.answer(0, call.id, vec![text(said)]);
        let replies = pair.back();
        assert!(matches!(&replies[..], [(replied, Outcome::Done(_))] if *replied == id));
    }
}

#[test]
fn one_way_calls_are_accepted_with_202() {
    for binding in BINDINGS {
        let mut pair = Pair::new(binding, "");
        pair.start(2, vec![text("told")]);
        let request = sent(&mut pair.client);
        send(&mut pair.server, &request).unwrap();
        let call = calls(&mut pair.server).remove(0);
        assert_eq!(call.expects, Expects::Nothing, "{binding}");
        assert!(
            String::from_utf8_lossy(&pair.server.transmit().to_vec()).starts_with("HTTP/1.1 202"),
            "{binding}"
        );
        assert!(matches!(&pair.back()[..], [(_, Outcome::Done(_))]));
        // The connection is free for the next one.
        assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
        pair.start(0, vec![text("next")]);
        pair.carry();
        assert_eq!(calls(&mut pair.server).len(), 1);
    }
}

#[test]
fn faults_come_with_500_and_their_detail() {
    for binding in BINDINGS {
        let mut pair = Pair::new(binding, "");
        let trouble = trouble();
        let shape = Shape::Struct(everywire_model::shape::Hold::new(trouble.clone()));
        let id = pair.start(0, vec![text("x")]);
        pair.carry();
        let call = calls(&mut pair.server).remove(0);
        let fields = Values(&shape, vec![text("because")]);
        pair.server.answer(call.id, Answer::Raised { shape: &trouble, fields: &fields }).unwrap();
        assert!(
            String::from_utf8_lossy(&pair.server.transmit().to_vec()).starts_with("HTTP/1.1 500"),
            "{binding}"
        );
        let replies = pair.back();
        let [(replied, Outcome::Raised(told))] = &replies[..] else { panic!("{binding}: {replies:?}") };
        assert_eq!(*replied, id);
        let Raised { id: raised, body, .. } = &**told;
        assert!(raised.ends_with("Trouble"), "{raised}");
        assert_eq!(first(body, &shape), text("because"));

        pair.start(0, vec![text("x")]);
        pair.carry();
        let call = calls(&mut pair.server).remove(0);
        let busy = Failure::new(Kind::Internal, Initiator::Peer, "broken");
        pair.server.answer(call.id, Answer::Failed(&busy)).unwrap();
        let replies = pair.back();
        assert!(matches!(&replies[..], [(_, Outcome::Failed(_))]), "{binding}: {replies:?}");
    }
}

#[test]
fn a_basic_request_is_what_microsoft_s_is() {
    let mut pair = Pair::new("basic", "");
    pair.start(0, vec![text("x")]);
    let request = told(&mut pair.client);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /echo HTTP/1.1\r\n"), "{head}");
    let lower = head.to_ascii_lowercase();
    for header in [
        "host: 127.0.0.1:8000",
        "content-type: text/xml; charset=utf-8",
        "soapaction: \"http://tempuri.org/iecho/say\"",
    ] {
        assert!(lower.lines().any(|line| line == header), "{header} is missing in {head}");
    }
    assert!(!lower.contains("expect:") && !lower.contains("accept-encoding:"));
    assert!(lower.contains(&format!("content-length: {}", body.len())));
}

/// JAX-WS calls the element of a result so, which is an `out` parameter to us. Its services of bare messages are asked for
/// nothing by an empty body, without an action.
#[test]
fn an_out_parameter_may_be_called_return() {
    let mut pair = Pair::new("basic", "");
    pair.start(3, Vec::new());
    pair.carry();
    let call = calls(&mut pair.server).remove(0);
    pair.answer(3, call.id, vec![text("given")]);
    let response = told(&mut pair.server);
    assert!(response.contains("<return ") && response.contains(">given</return>"), "{response}");
}

/// WS-I Basic Profile 1.1, R2745. Apache CXF refuses every other action then.
#[test]
fn what_bindings_say_stands_in_soap_action() {
    for (binding, said) in
        [("basic", "SOAPAction: \"\""), ("wshttp", ">http://tempuri.org/IEcho/Say</a:Action>")]
    {
        let mut pair = Pair::new(binding, "");
        let operations = pair.interface.operations.to_mut();
        operations[0].notes = vec![("wcf:soapAction".into(), "".into())].into();
        pair.start(0, vec![text("x")]);
        let request = told(&mut pair.client).to_ascii_lowercase();
        assert!(request.contains(&said.to_ascii_lowercase()), "{request}");
    }
}

#[test]
fn requests_as_others_write_them_are_served() {
    let utf16: Vec<u8> = format!("\u{FEFF}{}", say("x")).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let chunked = |body: &str| {
        let (one, two) = body.split_at(body.len() / 2);
        let chunks =
            format!("{:x};ext=1\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\nTrailer: t\r\n\r\n", one.len(), two.len());
        let headers = basic("Say");
        format!("POST /echo HTTP/1.1\r\nHost: h\r\n{headers}Transfer-Encoding: chunked\r\n\r\n{chunks}")
            .into_bytes()
    };
    let action = format!("SOAPAction: \"{ACTION}Say\"\r\n");
    let requests = [
        chunked(&say("x")),
        post("/echo", &format!("Content-Type: text/xml; charset=utf-16\r\n{action}"), &utf16),
        post("/echo", &format!("content-type: TEXT/XML;charset=\"UTF-8\"\r\n{action}"), say("x").as_bytes()),
        post("/echo", &basic("Say"), format!("\u{FEFF}<?xml version=\"1.0\"?>{}", say("x")).as_bytes()),
        // Bindings without an action name the operation by the body.
        post("/echo", "Content-Type: text/xml\r\nSOAPAction: \"\"\r\n", say("x").as_bytes()),
        post("/ECHO/", &basic("Say"), say("x").as_bytes()),
        post("http://127.0.0.1:8000/echo", &basic("Say"), say("x").as_bytes()),
    ];
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    let operation = interface().operations[0].clone();
    for request in requests {
        send(&mut session, &request).unwrap();
        let mut came = calls(&mut session);
        assert_eq!(came.len(), 1, "{}", String::from_utf8_lossy(&request));
        let call = came.remove(0);
        assert_eq!(&call.key[..], b"echo");
        assert_eq!(first(&call.body, &operation.arguments), text("x"));
        session.answer(call.id, Answer::Done(&Values(&operation.results, vec![text("y")]))).unwrap();
        let response = told(&mut session);
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains(">y<"), "{response}");
        assert!(response.contains("content-type: text/xml; charset=utf-8\r\n"), "{response}");
        assert!(!response.contains("connection: close"));
    }
}

#[test]
fn whoever_expects_to_be_asked_on_is_asked_on() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    let body = say("x");
    let request = post("/echo", &format!("{}Expect: 100-continue\r\n", basic("Say")), body.as_bytes());
    let (head, _) = request.split_at(request.len() - body.len());
    send(&mut session, head).unwrap();
    assert_eq!(told(&mut session), "HTTP/1.1 100 Continue\r\n\r\n");
    send(&mut session, body.as_bytes()).unwrap();
    assert_eq!(calls(&mut session).len(), 1);
}

#[test]
fn packages_are_answered_with_packages() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    let include = "<x:Include xmlns:x=\"http://www.w3.org/2004/08/xop/include\" href=\"cid:part%40x\"/>";
    let root = envelope(&format!("<Turn xmlns=\"http://tempuri.org/\"><data>{include}</data></Turn>"));
    let body = [
        format!("--B+1\r\nContent-ID: <r>\r\nContent-Type: application/xop+xml\r\n\r\n{root}\r\n--B+1\r\n").as_bytes(),
        b"Content-ID: <part@x>\r\nContent-Transfer-Encoding: binary\r\n\r\n\x00\x01\r\n--B\xff\r\n--B+1--\r\n",
    ]
    .concat();
    let headers = format!(
        "MIME-Version: 1.0\r\nContent-Type: multipart/related; type=\"application/xop+xml\"; start=\"<r>\"; \
         boundary=\"B+1\"; start-info=\"text/xml\"\r\nSOAPAction: \"{ACTION}Turn\"\r\n"
    );
    send(&mut session, &post("/echo", &headers, &body)).unwrap();
    let call = calls(&mut session).remove(0);
    let operation = interface().operations[1].clone();
    let octets = first(&call.body, &operation.arguments);
    assert_eq!(octets, Value::Bytes(Bytes::from_static(b"\x00\x01\r\n--B\xff")));
    session.answer(call.id, Answer::Done(&Values(&operation.results, vec![octets]))).unwrap();
    let response = told(&mut session);
    assert!(response.starts_with("HTTP/1.1 200") && response.contains("mime-version: 1.0"), "{response}");
    assert!(response.contains("content-type: multipart/related; type=\"application/xop+xml\""), "{response}");
}

/// What a server answers to a request by hand.
fn asked(address: &str, request: &[u8]) -> String {
    let mut session = accepting(address);
    let _ = send(&mut session, request);
    told(&mut session)
}

#[test]
fn refusals_have_the_right_status() {
    let address = "basic://127.0.0.1:8000?security=none";
    for (request, status) in [
        (post("/other", &basic("Say"), say("x").as_bytes()), 404),
        (post("/", &basic("Say"), say("x").as_bytes()), 404),
        (b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".to_vec(), 405),
        (b"GET /other HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), 404),
        (post("/echo", "Content-Type: application/soap+xml\r\n", say("x").as_bytes()), 415),
        (post("/echo", "Content-Type: text/xml; charset=koi8-r\r\n", say("x").as_bytes()), 415),
        (post("/echo", "", say("x").as_bytes()), 415),
        (post("/echo", &basic("Say"), b"<not-an-envelope/>"), 400),
        (post("/echo", &basic("Say"), b"no xml at all"), 400),
    ] {
        let told = asked(address, &request);
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {told}");
    }
    let refused = asked(address, b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert!(refused.contains("allow: POST, GET, HEAD"), "{refused}");
}

#[test]
fn a_connection_survives_refusals() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    for request in [
        post("/other", &basic("Say"), say("x").as_bytes()),
        b"DELETE /echo HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        post("/echo", "Content-Type: text/plain\r\n", b"x"),
    ] {
        send(&mut session, &request).unwrap();
        assert!(told(&mut session).starts_with("HTTP/1.1 4"));
    }
    send(&mut session, &post("/echo", &basic("Say"), say("x").as_bytes())).unwrap();
    assert_eq!(calls(&mut session).len(), 1);
}

#[test]
fn a_client_that_wants_to_close_is_let_go_behind_the_response() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    send(&mut session, &post("/none", "Connection: close\r\n", b"")).unwrap();
    let events: Vec<Event> = std::iter::from_fn(|| session.poll()).collect();
    assert!(matches!(&events[..], [Event::Ready(_)]), "not before the response has gone: {events:?}");
    assert!(told(&mut session).contains("connection: close"));
    assert!(matches!(session.poll(), Some(Event::Closed)));
    assert!(session.poll().is_none());
}

/// A client's call, answered by this text.
fn answered(response: &str) -> Failure {
    let mut pair = Pair::new("basic", "");
    let id = pair.start(0, vec![text("x")]);
    sent(&mut pair.client);
    let _ = send(&mut pair.client, response.as_bytes());
    let mut replies = replies(&mut pair.client);
    let (replied, Outcome::Failed(failure)) = replies.remove(0) else { panic!("no failure") };
    assert!(replied == id && replies.is_empty() && pair.client.outstanding() == 0);
    failure
}

#[test]
fn responses_without_an_envelope_say_what_to_do() {
    for (status, kind) in [
        ("401 Unauthorized", Kind::Refused),
        ("403 Forbidden", Kind::Refused),
        ("404 Not Found", Kind::NoObject),
        ("413 Too Large", Kind::LimitExceeded),
        ("415 Unsupported", Kind::Unsupported),
        ("503 Busy", Kind::Busy),
        ("301 Moved", Kind::BadReference),
        ("500 Error", Kind::Internal),
        ("202 Accepted", Kind::Malformed),
    ] {
        let failure = answered(&format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<a/>"
        ));
        assert_eq!(failure.kind(), kind, "{status}: {failure}");
        assert!(failure.hint().is_some(), "{status}: {failure}");
    }
    let failure =
        answered("HTTP/1.1 200 OK\r\nContent-Type: application/soap+xml\r\nContent-Length: 4\r\n\r\n<a/>");
    assert!(failure.message().contains("application/soap+xml"), "{failure}");
    // A fault of the other version of SOAP, as spyne answers: no envelope of this binding, but one.
    let failure =
        answered("HTTP/1.1 500 Oops\r\nContent-Type: application/soap+xml\r\nContent-Length: 4\r\n\r\n<a/>");
    assert!(failure.hint().is_some_and(|hint| hint.contains("soap12://")), "{failure}");
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unsupported, Completed::Maybe));
    let failure = answered("HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n");
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    assert!(failure.message().contains("(65536)"), "{failure}");
    assert_eq!(answered("SSH-2.0-OpenSSH\r\n\r\n").kind(), Kind::Violation);
}

#[test]
fn what_was_not_sent_was_not_executed() {
    let gone = Failure::new(Kind::Unreachable, Initiator::Peer, "gone").with_completed(Completed::Maybe);
    // Who streams begins before the whole request is there.
    for (left, completed) in
        [("all", Completed::Maybe), ("some", Completed::Maybe), ("nothing", Completed::No)]
    {
        let mut pair = Pair::new("basic", "");
        let first = pair.start(0, vec![text("x")]);
        let second = pair.start(0, vec![text("y")]);
        let whole = pair.client.transmit().len();
        pair.client.transmit().consume(match left {
            "all" => whole,
            "some" => 1,
            _ => 0,
        });
        pair.client.disconnected(&gone);
        let ended: Vec<_> = replies(&mut pair.client)
            .into_iter()
            .map(|(id, outcome)| match outcome {
                Outcome::Failed(failure) => (id, failure.kind(), failure.completed()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(ended.contains(&(first, Kind::Unreachable, completed)), "{ended:?}");
        assert!(ended.contains(&(second, Kind::Unreachable, Completed::No)), "{ended:?}");
    }
}

#[test]
fn a_server_that_closes_behind_a_response_ends_the_connection() {
    let mut pair = Pair::new("basic", "");
    pair.start(0, vec![text("x")]);
    let waiting = pair.start(0, vec![text("y")]);
    sent(&mut pair.client);
    let body = envelope("<SayResponse xmlns=\"http://tempuri.org/\"><SayResult>z</SayResult></SayResponse>");
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    send(&mut pair.client, format!("{head}{body}").as_bytes()).unwrap();
    let events: Vec<Event> = std::iter::from_fn(|| pair.client.poll()).collect();
    assert!(matches!(events.last(), Some(Event::Closed)), "{events:?}");
    assert!(pair.client.transmit().is_empty(), "the second call must not be sent");
    pair.client.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "closed"));
    let replies = replies(&mut pair.client);
    assert!(
        matches!(&replies[..], [(id, Outcome::Failed(failure))] if *id == waiting && failure.completed() == Completed::No)
    );
}

#[test]
fn a_cancelled_call_s_response_is_nobody_else_s() {
    let mut pair = Pair::new("basic", "");
    let cancelled = pair.start(0, vec![text("x")]);
    let kept = pair.start(0, vec![text("y")]);
    pair.client.cancel(cancelled);
    for (said, replies) in [("x", 0), ("y", 1)] {
        pair.carry();
        let call = calls(&mut pair.server).remove(0);
        pair.answer(0, call.id, vec![text(said)]);
        let back = pair.back();
        assert_eq!(back.len(), replies);
        assert!(back.iter().all(|(id, _)| *id == kept));
    }
}

#[test]
fn probes_ask_for_the_page() {
    for (status, expected) in
        [(200, None), (400, None), (405, None), (404, Some(Kind::NoObject)), (401, Some(Kind::Refused))]
    {
        let mut pair = Pair::new("wshttp", "");
        let id = pair.client.probe(Instant::now(), &pair.way).unwrap();
        assert!(told(&mut pair.client).starts_with("GET /echo HTTP/1.1\r\n"));
        send(&mut pair.client, format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes())
            .unwrap();
        let replies = replies(&mut pair.client);
        match (&replies[..], expected) {
            ([(replied, Outcome::Done(_))], None) => assert_eq!(*replied, id),
            ([(replied, Outcome::Failed(failure))], Some(kind)) => {
                assert_eq!((*replied, failure.kind()), (id, kind))
            }
            other => panic!("{status}: {other:?}"),
        }
    }
}

#[test]
fn pages_are_got_by_a_noted_operation() {
    let mut pair = Pair::new("basic", "");
    let operation = Operation {
        notes: vec![(http::GET.into(), "wsdl".into())].into(),
        ..Operation::new("Page", vec![], Shape::Void)
    };
    let call = Call {
        profile: &pair.way,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &everywire_model::visit::Nothing,
        expects: Expects::Reply,
    };
    let id = pair.client.start(Instant::now(), &call).unwrap();
    assert!(told(&mut pair.client).starts_with("GET /echo?wsdl HTTP/1.1\r\n"));
    send(
        &mut pair.client,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<a/\r\n1\r\n>\r\n0\r\n\r\n",
    )
    .unwrap();
    let replies = replies(&mut pair.client);
    assert!(
        matches!(&replies[..], [(replied, Outcome::Done(body))] if *replied == id && body.bytes == "<a/>")
    );
}

/// What the client asks and the server answers until both are silent, with the calls that came on the way answered.
fn talk(pair: &mut Pair, asked: &mut Vec<String>) -> Vec<(CallId, Outcome<Body>)> {
    let mut outcomes = Vec::new();
    for _ in 0..50 {
        let request = sent(&mut pair.client);
        if request.is_empty() {
            return outcomes;
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        assert_eq!(text.matches("POST /echo HTTP/1.1").count(), 1, "one message in each request");
        let action = text.split("Action ").nth(1).unwrap().split('<').next().unwrap();
        asked.push(action.rsplit('/').next().unwrap().to_owned());
        send(&mut pair.server, &request).unwrap();
        for call in calls(&mut pair.server) {
            if call.expects == Expects::Reply {
                let said = first(&call.body, &pair.operation(0).arguments);
                pair.answer(0, call.id, vec![said]);
            }
        }
        outcomes.extend(pair.back());
    }
    panic!("the two sides never stop talking");
}

#[test]
fn reliable_sessions_are_requests_in_turn() {
    let mut pair = Pair::new("wshttp", "reliable=on");
    let ids: Vec<CallId> = ["a", "b", "c"].iter().map(|said| pair.start(0, vec![text(said)])).collect();
    pair.start(2, vec![text("told")]);
    assert_eq!(pair.client.outstanding(), 4);
    let mut asked = Vec::new();
    let outcomes = talk(&mut pair, &mut asked);
    assert_eq!(asked, ["CreateSequence", "Say", "Say", "Say", "Tell"]);
    assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
    // What expects nothing has an outcome, too.
    assert_eq!(outcomes.len(), 4);
    for ((id, said), (replied, outcome)) in ids.into_iter().zip(["a", "b", "c"]).zip(outcomes) {
        let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
        assert_eq!((replied, first(&body, &pair.operation(0).results)), (id, text(said)));
    }
    // A later call is of the same session, which ends in order.
    asked.clear();
    pair.start(0, vec![text("d")]);
    assert_eq!(talk(&mut pair, &mut asked).len(), 1);
    pair.client.close();
    assert!(talk(&mut pair, &mut asked).is_empty());
    assert_eq!(asked, ["Say", "LastMessage", "TerminateSequence"]);
}

#[test]
fn reliable_sessions_that_nobody_grants_fail_their_calls() {
    let mut pair = Pair::new("wshttp", "reliable=on");
    let id = pair.start(0, vec![text("a")]);
    sent(&mut pair.client);
    let response = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    assert!(send(&mut pair.client, response).is_err());
    let replies = replies(&mut pair.client);
    let [(replied, Outcome::Failed(failure))] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((*replied, failure.kind()), (id, Kind::NoObject), "{failure}");
    assert!(pair.client.refusal().is_some());
}

#[test]
fn nobody_listens_over_http() {
    let mut pair = Pair::new("basic", "");
    let filter = SignalFilter { interface: Some(&pair.interface), signal: None };
    let failure = pair.client.subscribe(Instant::now(), &pair.way, filter).unwrap_err();
    // Not a thing that a contract would help with.
    assert_eq!(failure.kind(), Kind::BadReference);
    assert!(failure.message().contains("no callbacks over HTTP"), "{failure}");
}
