//! Both halves of the HTTP library, driven in memory against each other.

use super::client::{Client, Returned};
use super::server::Server;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use std::sync::Arc;

fn server(most: u64) -> Server {
    Server::new(most, Arc::new(|_| None))
}

fn post(parts: Vec<Bytes>) -> Request<Vec<Bytes>> {
    let mut request = Request::new(parts);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = "/service".parse().unwrap();
    request.headers_mut().insert("host", "here".parse().unwrap());
    request
}

/// Carries bytes from one half to the other, in pieces.
fn carry(from: &super::pipe::End, to: &super::pipe::End, most: usize) -> usize {
    let mut from = from.pipe();
    let mut n = 0;
    for slice in from.output.slices(usize::MAX, most) {
        to.pipe().input.extend_from_slice(&slice);
        n += slice.len();
    }
    from.output.consume(n);
    n
}

#[test]
fn requests_go_in_and_responses_come_later_on_one_connection() {
    let (mut client, mut server) = (Client::new(1 << 20).unwrap(), server(1 << 20));
    for round in 0..5_u8 {
        client.send(post(vec![Bytes::from(vec![round; 100])]));
        assert!(client.advance().is_none() && !client.is_idle());
        carry(&client.end, &server.end, usize::MAX);
        server.advance();
        let received = server.received().unwrap();
        assert_eq!(received.parts.uri.path(), "/service");
        assert_eq!(received.body, vec![round; 100]);
        // The servant takes its time.
        server.advance();
        assert!(server.is_busy() && server.end.pipe().output.is_empty());
        server.respond(Response::new(vec![Bytes::from(vec![round; 50]), Bytes::from(vec![9; 50])]));
        server.advance();
        carry(&server.end, &client.end, usize::MAX);
        let Some(Returned::Response(parts, body)) = client.advance() else { panic!("no response") };
        assert_eq!((parts.status, body.len(), body[0], body[99]), (StatusCode::OK, 100, round, 9));
        assert!(client.is_idle() && !client.is_over());
    }
}

#[test]
fn large_bodies_arrive_whole_in_pieces_of_any_size() {
    let body: Vec<u8> = (0..1_400_000_u32).map(|i| (i / 7) as u8).collect();
    for piece in [1_000, 65_536, 10_000_000] {
        let (mut client, mut server) = (Client::new(2 << 20).unwrap(), server(2 << 20));
        client.send(post(vec![Bytes::from(body.clone())]));
        client.advance();
        while carry(&client.end, &server.end, piece) > 0 {
            server.advance();
        }
        let received = server.received().unwrap();
        assert_eq!(received.body, body);
        server.respond(Response::new(vec![received.body]));
        server.advance();
        let mut answer = None;
        while answer.is_none() && carry(&server.end, &client.end, piece) > 0 {
            answer = client.advance();
        }
        let Some(Returned::Response(_, returned)) = answer else { panic!("no response") };
        assert_eq!(returned, body);
    }
}

#[test]
fn large_bodies_go_out_by_reference() {
    let mut client = Client::new(0).unwrap();
    let body = Bytes::from(vec![7; 1 << 20]);
    client.send(post(vec![body.clone()]));
    client.advance();
    let pipe = client.end.pipe();
    assert!(pipe.output.contiguous().is_none());
    let slices = pipe.output.slices(8, usize::MAX);
    assert!(slices.iter().any(|slice| slice.as_ptr() == body.as_ptr() && slice.len() == body.len()));
}

#[test]
fn pipelined_requests_are_served_in_order() {
    let mut server = server(100);
    let one = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none";
    let two = "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\ntwo";
    server.end.pipe().input.extend_from_slice(format!("{one}{two}").as_bytes());
    server.advance();
    for body in ["one", "two"] {
        assert_eq!(server.received().unwrap().body, body);
        assert!(server.received().is_none());
        server.respond(Response::new(vec![Bytes::from_static(body.as_bytes())]));
        server.advance();
    }
    let output = String::from_utf8(server.end.pipe().output.to_vec()).unwrap();
    assert_eq!(output.matches("HTTP/1.1 200 OK").count(), 2);
    assert!(output.find("one").unwrap() < output.find("two").unwrap());
}

#[test]
fn a_known_head_needs_no_library_and_its_response_is_the_same() {
    let mut server = server(100);
    let request = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none";
    let response = |status: StatusCode| {
        let mut response = Response::new(vec![Bytes::from_static(b"said")]);
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", "text/plain".parse().unwrap());
        response
    };
    let told = |server: &Server| {
        let mut pipe = server.end.pipe();
        let told = String::from_utf8(pipe.output.to_vec()).unwrap();
        let length = told.len();
        pipe.output.consume(length);
        // But for the time, which may go on meanwhile.
        let (before, after) = told.split_once("date: ").unwrap();
        (before.to_owned(), after.split_once("\r\n").map(|(time, rest)| (time.len(), rest.to_owned())))
    };
    server.end.pipe().input.extend_from_slice(request.as_bytes());
    assert!(server.repeated().is_none(), "nothing is known yet");
    for status in [StatusCode::OK, StatusCode::ACCEPTED, StatusCode::INTERNAL_SERVER_ERROR] {
        server.advance();
        let received = server.received().unwrap();
        assert_eq!(server.keep(&received.parts), Some(0));
        server.respond(response(status));
        server.advance();
        let library = told(&server);
        server.end.pipe().input.extend_from_slice(request.as_bytes());
        assert_eq!(server.repeated(), Some((0, Bytes::from_static(b"one"))));
        server.advance();
        assert!(server.received().is_none() && server.repeated().is_none() && server.is_busy());
        server.respond(response(status));
        assert_eq!(told(&server), library);
        assert!(!server.is_busy() && server.rests() && !server.is_over());
        // The next one is the library's again.
        server.forget();
        server.end.pipe().input.extend_from_slice(request.as_bytes());
        assert!(server.repeated().is_none() && !server.rests());
    }
}
