//! Responses whose head has come before: what the client makes of them is what the library would.

use bytes::{Bytes, BytesMut};
use everywire_http::{Client, ClientOutcome};
use http::{Method, Request};

fn request(method: Method, bytes: &'static [u8]) -> Request<Vec<Bytes>> {
    let mut request = Request::new(vec![Bytes::from_static(bytes), Bytes::from_static(b" and more")]);
    *request.method_mut() = method;
    *request.uri_mut() = "/service?a=b".parse().unwrap();
    let headers = request.headers_mut();
    headers.insert("host", "here:80".parse().unwrap());
    headers.insert("content-type", "text/xml; charset=utf-8".parse().unwrap());
    headers.insert("soapaction", "\"urn:a\"".parse().unwrap());
    request
}

/// Takes what has to go.
fn sent(client: &mut Client) -> String {
    let sent = client.transmit().to_vec();
    client.transmit().consume(sent.len());
    String::from_utf8(sent).unwrap()
}

/// Asks, and takes what has to go.
fn ask(client: &mut Client) {
    client.send(request(Method::POST, b"what"));
    assert!(client.advance().is_none());
    assert!(sent(client).starts_with("POST /service"));
}

/// Feeds what came; what it was, in words.
fn come(client: &mut Client, bytes: &str) -> Option<String> {
    client.feed(&mut BytesMut::from(bytes));
    outcome(client)
}

fn outcome(client: &mut Client) -> Option<String> {
    Some(match client.advance()? {
        ClientOutcome::Response(parts, body) => {
            let kind = parts.headers.get("content-type").map_or(&b""[..], |kind| kind.as_bytes());
            format!("{} {} {}", parts.status.as_u16(), kind.escape_ascii(), body.escape_ascii())
        }
        ClientOutcome::TooLarge => String::from("too large"),
        ClientOutcome::Failed { foreign, unsent, .. } => {
            format!("failed: foreign {foreign}, unsent {unsent}")
        }
    })
}

/// A response with the usual head.
fn usual(second: u32, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/xml\r\ncontent-length: {}\r\ndate: Sun, 06 Nov 1994 08:49:{second:02} GMT\r\n\r\n{body}",
        body.len()
    )
}

/// A client that knows the usual head.
fn knowing(most: u64) -> Client {
    let mut client = Client::new(most);
    ask(&mut client);
    assert_eq!(come(&mut client, &usual(1, "one")).as_deref(), Some("200 text/xml one"));
    ask(&mut client);
    client
}

#[test]
fn requests_are_written_as_the_library_writes_them() {
    for bytes in [&b""[..], b"some", &[b'x'; 20_000]] {
        // Only POST is written without the library.
        let [own, library] = [Method::POST, Method::PUT].map(|method| {
            let mut client = Client::new(100);
            client.send(request(method, bytes));
            assert!(client.advance().is_none());
            sent(&mut client)
        });
        assert_eq!(own.strip_prefix("POST"), library.strip_prefix("PUT"));
    }
}

#[test]
fn a_known_head_is_taken_with_its_body_in_pieces_of_any_size() {
    let mut client = knowing(100);
    for (second, body) in ["two", "", "a longer one", "the last"].into_iter().enumerate() {
        let response = usual(second as u32, body);
        for at in 1..response.len() {
            assert_eq!(come(&mut client, &response[..at]), None, "{at}");
            if at > response.len() - body.len() {
                assert_eq!(client.arriving(), Some(response.len() - at));
            }
            assert_eq!(come(&mut client, &response[at..]), Some(format!("200 text/xml {body}")), "{at}");
            assert!(client.is_idle() && !client.is_over());
            ask(&mut client);
        }
    }
}

/// So that the link reads the rest of a large body into the same memory.
#[test]
fn the_link_gets_the_beginning_of_a_response_back_and_feeds_it_again() {
    let mut client = knowing(100);
    let response = usual(2, "the body");
    let mut input = BytesMut::with_capacity(1000);
    input.extend_from_slice(&response.as_bytes()[..response.len() - 3]);
    let place = input.as_ptr();
    client.feed(&mut input);
    assert_eq!(outcome(&mut client), None);
    client.give_back(&mut input);
    assert_eq!((client.arriving(), input.as_ptr(), input.len()), (Some(3), place, response.len() - 3));
    input.extend_from_slice(b"ody");
    client.feed(&mut input);
    assert_eq!(outcome(&mut client).as_deref(), Some("200 text/xml the body"));
    client.give_back(&mut input);
    assert!(input.is_empty() && input.capacity() > 0, "what is behind it is the link's again");
}

#[test]
fn whatever_else_comes_behind_a_known_head_is_read_by_the_library() {
    let responses = [
        ("HTTP/1.1 500 Oh\r\ncontent-type: text/xml\r\ncontent-length: 3\r\n\r\nbad", "500 text/xml bad"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/xml\r\ntransfer-encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n",
            "200 text/xml two",
        ),
        (&*format!("HTTP/1.1 100 Continue\r\n\r\n{}", usual(3, "three")), "200 text/xml three"),
        ("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", "202  "),
        ("HTTP/1.1 204 No Content\r\n\r\n", "204  "),
    ];
    let mut client = knowing(100);
    for _ in 0..3 {
        for (response, said) in &responses {
            assert_eq!(come(&mut client, response).as_deref(), Some(*said));
            ask(&mut client);
            assert_eq!(come(&mut client, &usual(2, "again")).as_deref(), Some("200 text/xml again"));
            assert!(client.is_idle() && !client.is_over());
            ask(&mut client);
        }
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_behind_a_known_head() {
    let mut client = knowing(10);
    assert_eq!(come(&mut client, &usual(2, "eleven more")).as_deref(), Some("too large"));
}

#[test]
fn a_connection_that_ends_within_a_body_has_no_response() {
    let mut client = knowing(100);
    let response = usual(2, "cut off");
    assert_eq!(come(&mut client, &response[..response.len() - 1]), None);
    client.end();
    assert_eq!(outcome(&mut client).as_deref(), Some("failed: foreign false, unsent false"));
    assert!(client.is_over());
}

#[test]
fn a_peer_that_ends_the_connection_is_heard() {
    let mut client = knowing(100);
    let last = usual(2, "last").replace("content-type", "connection: close\r\ncontent-type");
    assert_eq!(come(&mut client, &last).as_deref(), Some("200 text/xml last"));
    assert!(client.is_over());
}

#[test]
fn a_second_response_is_not_taken_for_that_of_the_next_request() {
    // It comes with the first one, or between the requests.
    let mut client = knowing(100);
    let two = format!("{}{}", usual(2, "first"), usual(2, "second"));
    assert_eq!(come(&mut client, &two).as_deref(), Some("200 text/xml first"));
    client.send(request(Method::POST, b"what"));
    assert!(client.is_over(), "nothing is sent any more");
    assert_eq!(outcome(&mut client).as_deref(), Some("failed: foreign false, unsent true"));
    assert_eq!(sent(&mut client), "");

    let mut client = knowing(100);
    assert_eq!(come(&mut client, &usual(2, "first")).as_deref(), Some("200 text/xml first"));
    assert_eq!(come(&mut client, &usual(2, "second")), None);
    assert!(client.is_over());
}

#[test]
fn heads_that_never_come_again_do_no_harm() {
    let mut client = Client::new(100);
    for number in 0..100 {
        ask(&mut client);
        let response =
            usual(1, "one").replace("content-type", &format!("x-number: {number}\r\ncontent-type"));
        assert_eq!(come(&mut client, &response).as_deref(), Some("200 text/xml one"));
    }
    assert!(client.is_idle() && !client.is_over());
}

/// The next of a row of numbers that look random, and are the same each time (Numerical Recipes, a linear congruential generator).
fn next(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

#[test]
#[cfg_attr(miri, ignore = "Miri takes many minutes for so many responses")]
fn changed_responses_mean_the_same_whether_the_head_is_known_or_not() {
    let pieces = [
        "\r\n",
        "\n",
        "0",
        "9",
        ":",
        " ",
        "\t",
        ",",
        "\0",
        "\u{e9}",
        "content-length: 3\r\n",
        "HTTP/1.1 200 OK\r\n",
    ];
    let (mut state, mut known) = (1, 0);
    for round in 0..3_000 {
        let mut response = usual(2, "the body").into_bytes();
        for _ in 0..next(&mut state, 3) {
            let (at, piece) = (next(&mut state, response.len()), pieces[next(&mut state, pieces.len())]);
            let taken = next(&mut state, 2).min(response.len() - at);
            response.splice(at..at + taken, piece.bytes());
        }
        let cut = next(&mut state, response.len() + 1);
        let outcomes = [true, false].map(|knows| {
            let mut client = if knows { knowing(100) } else { Client::new(100) };
            if !knows {
                ask(&mut client);
            }
            let mut outcomes = Vec::new();
            for part in [&response[..cut], &response[cut..]] {
                client.feed(&mut BytesMut::from(part));
                outcomes.extend(outcome(&mut client));
            }
            client.end();
            outcomes.extend(outcome(&mut client));
            (outcomes, client.is_over())
        });
        assert_eq!(outcomes[0], outcomes[1], "round {round}: {}", response.escape_ascii());
        known += usize::from(outcomes[0].0.iter().any(|said| said == "200 text/xml the body"));
    }
    assert!(known > 1_000, "{known} of them were read");
}
