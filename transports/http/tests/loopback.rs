//! Both halves, driven in memory against each other.

use bytes::{Bytes, BytesMut};
use everywire_http::{Bounds, Client, ClientOutcome, Server, ServerEvent};
use everywire_model::SendBuffer;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn server(body: u64) -> Server<&'static str> {
    let too_large = |most| format!("at most {most}");
    Server::new(Bounds { body, idle: Duration::from_secs(100), too_large }, Arc::new(|_| None))
}

fn post(parts: Vec<Bytes>) -> Request<Vec<Bytes>> {
    let mut request = Request::new(parts);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = "/service".parse().unwrap();
    request.headers_mut().insert("host", "here".parse().unwrap());
    request
}

/// At most so many bytes of what has to go.
fn some(from: &mut SendBuffer, most: usize) -> BytesMut {
    let mut taken = BytesMut::new();
    for slice in from.slices(usize::MAX, most) {
        taken.extend_from_slice(&slice);
    }
    from.consume(taken.len());
    taken
}

/// Feeds a server what came. The request that is whole by then.
fn fed(server: &mut Server<&'static str>, mut input: BytesMut) -> Option<ServerEvent<&'static str>> {
    let now = Instant::now();
    server.feed(now, &mut input);
    let received = server.next(now).unwrap();
    server.give_back(&mut input);
    received
}

/// The same; it has a head that is not known.
fn parsed(server: &mut Server<&'static str>, input: BytesMut) -> Option<(Parts, Bytes)> {
    match fed(server, input)? {
        ServerEvent::New(parts, body) => Some((parts, body)),
        ServerEvent::Known(..) => panic!("nothing was kept"),
    }
}

/// Answers, and takes nothing more.
fn answer(server: &mut Server<&'static str>, response: Response<Vec<Bytes>>) {
    server.respond(response);
    assert!(server.next(Instant::now()).unwrap().is_none());
}

#[test]
fn requests_go_in_and_responses_come_later_on_one_connection() {
    let (mut client, mut server) = (Client::new(1 << 20), server(1 << 20));
    for round in 0..5_u8 {
        client.send(post(vec![Bytes::from(vec![round; 100])]));
        assert!(client.advance().is_none() && !client.is_idle());
        let (parts, body) = parsed(&mut server, some(client.transmit(), usize::MAX)).unwrap();
        assert_eq!((parts.uri.path(), &body[..]), ("/service", &[round; 100][..]));
        // The servant takes its time.
        assert!(server.next(Instant::now()).unwrap().is_none() && server.transmit().is_empty());
        answer(&mut server, Response::new(vec![Bytes::from(vec![round; 50]), Bytes::from(vec![9; 50])]));
        client.feed(&mut some(server.transmit(), usize::MAX));
        let Some(ClientOutcome::Response(parts, body)) = client.advance() else { panic!("no response") };
        assert_eq!((parts.status, body.len(), body[0], body[99]), (StatusCode::OK, 100, round, 9));
        assert!(client.is_idle() && !client.is_over());
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri takes many minutes to carry megabytes")]
fn large_bodies_arrive_whole_in_pieces_of_any_size() {
    let body: Vec<u8> = (0..1_400_000_u32).map(|i| (i / 7) as u8).collect();
    for piece in [1_000, 65_536, 10_000_000] {
        let (mut client, mut server) = (Client::new(2 << 20), server(2 << 20));
        client.send(post(vec![Bytes::from(body.clone())]));
        assert!(client.advance().is_none());
        let mut received = None;
        while received.is_none() && !client.transmit().is_empty() {
            received = parsed(&mut server, some(client.transmit(), piece));
        }
        let (_, received) = received.expect("a request");
        assert_eq!(received, body);
        answer(&mut server, Response::new(vec![received]));
        let mut returned = None;
        while returned.is_none() && !server.transmit().is_empty() {
            client.feed(&mut some(server.transmit(), piece));
            returned = client.advance();
        }
        let Some(ClientOutcome::Response(_, returned)) = returned else { panic!("no response") };
        assert_eq!(returned, body);
    }
}

#[test]
fn large_bodies_go_out_by_reference() {
    let mut client = Client::new(0);
    let body = Bytes::from(vec![7; 1 << 20]);
    client.send(post(vec![body.clone()]));
    assert!(client.advance().is_none());
    assert!(client.transmit().contiguous().is_none());
    let slices = client.transmit().slices(8, usize::MAX);
    assert!(slices.iter().any(|slice| slice.as_ptr() == body.as_ptr() && slice.len() == body.len()));
}

/// The body of the first request ends with its last chunk (RFC 9112 §7.1), wherever the read ends that brings it.
#[test]
fn what_follows_a_body_in_chunks_is_the_next_request() {
    let chunked = "POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\non\r\n1;x=y\r\ne\r\n0\r\nA: b\r\n\r\n";
    let sized = "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\ntwo";
    for (first, second) in [(chunked, sized), (chunked, chunked), (sized, chunked)] {
        let all = format!("{first}{second}{first}");
        for step in [1, 5, first.len() - 1, first.len() + 1, all.len()] {
            let mut server = server(100);
            let mut bodies = String::new();
            for piece in all.as_bytes().chunks(step) {
                let mut input = BytesMut::from(piece);
                while let Some((_, body)) = parsed(&mut server, std::mem::take(&mut input)) {
                    bodies.push_str(std::str::from_utf8(&body).unwrap());
                    server.respond(Response::new(Vec::new()));
                }
            }
            let word = |request| if request == chunked { "one" } else { "two" };
            assert_eq!(bodies, [first, second, first].map(word).concat(), "in steps of {step}");
        }
    }
}

#[test]
fn pipelined_requests_are_served_in_order() {
    let mut server = server(100);
    let one = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none";
    let two = "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\ntwo";
    let mut input = BytesMut::from(&*format!("{one}{two}"));
    for wanted in ["one", "two"] {
        let (_, body) = parsed(&mut server, std::mem::take(&mut input)).unwrap();
        assert_eq!(body, wanted);
        server.respond(Response::new(vec![Bytes::from_static(wanted.as_bytes())]));
    }
    assert!(server.next(Instant::now()).unwrap().is_none());
    let output = String::from_utf8(server.transmit().to_vec()).unwrap();
    assert_eq!(output.matches("HTTP/1.1 200 OK").count(), 2);
    assert!(output.find("one").unwrap() < output.find("two").unwrap());
}

#[test]
fn a_known_head_needs_no_library_and_its_response_is_the_same() {
    let mut server = server(100);
    let request = || BytesMut::from("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none");
    let kind = HeaderValue::from_static("text/plain");
    let reply = |server: &mut Server<&'static str>, status| {
        let mut body = SendBuffer::new();
        body.flat().extend_from_slice(b"said");
        server.reply(status, &kind, body);
    };
    let respond = |server: &mut Server<&'static str>, status| {
        let mut response = Response::new(vec![Bytes::from_static(b"said")]);
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", kind.clone());
        server.respond(response);
    };
    let told = |server: &mut Server<&'static str>| {
        assert!(server.next(Instant::now()).unwrap().is_none());
        let told = String::from_utf8(some(server.transmit(), usize::MAX).to_vec()).unwrap();
        // But for the time, which may go on meanwhile.
        let (before, after) = told.split_once("date: ").unwrap();
        (before.to_owned(), after.split_once("\r\n").map(|(time, rest)| (time.len(), rest.to_owned())))
    };
    for status in [StatusCode::OK, StatusCode::ACCEPTED, StatusCode::INTERNAL_SERVER_ERROR] {
        let (parts, _) = parsed(&mut server, request()).expect("nothing is known yet");
        server.keep(&parts, || "what it means");
        reply(&mut server, status);
        let library = told(&mut server);
        for answer in [&reply as &dyn Fn(&mut _, _), &respond] {
            let Some(ServerEvent::Known(known, body)) = fed(&mut server, request()) else {
                panic!("forgotten")
            };
            assert_eq!((*known, &body[..]), ("what it means", &b"one"[..]));
            assert!(server.next(Instant::now()).unwrap().is_none(), "it is not answered yet");
            answer(&mut server, status);
            assert_eq!(told(&mut server), library);
            assert!(!server.is_over());
        }
        // The next one is the library's again.
        server.forget();
    }
}

#[test]
fn a_call_may_take_longer_than_the_connection_may_be_quiet() {
    let (mut client, mut server) = (Client::new(1 << 20), server(1 << 20));
    client.send(post(vec![Bytes::from_static(b"slow")]));
    assert!(client.advance().is_none());
    let request = some(client.transmit(), usize::MAX);
    assert!(parsed(&mut server, request).is_some());
    assert_eq!(server.deadline(), None);
    let late = Instant::now() + Duration::from_secs(1000);
    server.respond(Response::new(vec![Bytes::from_static(b"done")]));
    assert!(server.next(late).unwrap().is_none());
    some(server.transmit(), usize::MAX);
    assert_eq!(server.deadline(), Some(late + Duration::from_secs(100)));
}

/// A server whose peer has asked for so much, and has read nothing of it. When it answered.
fn answering(bytes: usize) -> (Server<&'static str>, Instant) {
    let (mut client, mut server) = (Client::new(1 << 20), server(1 << 20));
    client.send(post(vec![]));
    client.advance();
    let asked = some(client.transmit(), usize::MAX);
    parsed(&mut server, asked).unwrap();
    let now = Instant::now();
    server.respond(Response::new(vec![vec![7; bytes].into()]));
    assert!(server.next(now).unwrap().is_none());
    (server, now)
}

/// An answer that is read more slowly than a connection may be idle is no idle connection.
#[test]
fn a_connection_whose_answer_is_being_read_is_not_idle() {
    let (mut server, mut now) = answering(1 << 20);
    for _ in 0..4 {
        some(server.transmit(), 310_000);
        let due = server.deadline().unwrap();
        assert!(due > now, "it has moved on");
        now = due;
        assert!(!server.expire(now).unwrap());
    }
    assert!(server.transmit().is_empty());
    now = server.deadline().unwrap();
    assert!(server.expire(now).unwrap(), "now it is idle");
}

/// Linux wakes whoever writes when a third of its send buffer is free: a reader of 5 KiB/s is seen once in minutes.
#[test]
fn an_answer_that_leaves_in_large_steps_does_not_end_its_connection() {
    const STEP: u64 = 1_300 << 10;
    let (mut server, begun) = answering(4 * STEP as usize);
    let mut left = 0;
    while !server.transmit().is_empty() {
        let due = server.deadline().unwrap();
        let read = (due - begun).as_secs() * (5 << 10) / STEP * STEP;
        some(server.transmit(), (read - left) as usize);
        left = read;
        assert!(!server.expire(due).unwrap(), "{read} bytes were read");
    }
}

/// A byte now and then does not hold a connection.
#[test]
fn an_answer_that_is_hardly_read_ends_its_connection() {
    for (bytes, step) in [(1 << 20, 1000), (1 << 20, 0), (300, 1)] {
        let (mut server, _) = answering(bytes);
        let looks = (0..5).take_while(|_| {
            some(server.transmit(), step);
            let due = server.deadline().unwrap();
            server.expire(due).is_ok_and(|idle| !idle)
        });
        // The operating system may have taken what was read later: one look alone decides nothing.
        assert_eq!(looks.count(), 1, "{bytes} {step}");
    }
}

/// RFC 9112, section 5.2: whoever gets a header that goes on in the next line takes the end of line and the blanks as one blank.
#[test]
fn headers_of_responses_may_be_folded() {
    let mut client = Client::new(1 << 20);
    for _ in 0..2 {
        client.send(post(vec![Bytes::from_static(b"x")]));
        assert!(client.advance().is_none());
        some(client.transmit(), usize::MAX);
        let response =
            "HTTP/1.1 200 OK\r\nContent-Type: text/xml;\r\n\tcharset=utf-8\r\nContent-Length: 2\r\n\r\nok";
        client.feed(&mut BytesMut::from(response));
        let Some(ClientOutcome::Response(parts, body)) = client.advance() else { panic!("no response") };
        let kind = parts.headers["content-type"].to_str().unwrap();
        let words: Vec<&str> = kind.split_whitespace().collect();
        assert_eq!((words, &body[..]), (vec!["text/xml;", "charset=utf-8"], &b"ok"[..]));
    }
}
