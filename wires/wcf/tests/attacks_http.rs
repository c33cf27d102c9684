//! Attacks on HTTP sessions, each by name: smuggling, slow senders, floods, packages.

use crate::http_support::*;
use everywire_http::{HEAD_TIME, MAX_HEAD, MAX_PIPELINED};
use everywire_model::{Event, Session, Violation};
use std::io::Write;
use std::time::{Duration, Instant};

const BASIC: &str = "basic://127.0.0.1:8000?security=none";

/// Sends; what came back, and how the session took it. Nothing may have become a call.
fn attack(bytes: &[u8]) -> (String, Result<(), Violation>) {
    let mut session = accepting(BASIC);
    let result = send(&mut session, bytes);
    assert!(calls(&mut session).is_empty());
    (told(&mut session), result)
}

fn name(result: Result<(), Violation>) -> &'static str {
    result.map_or_else(|violation| violation.name, |()| "none")
}

#[test]
fn s3_two_lengths_are_refused() {
    for headers in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "transfer-encoding: chunked\r\nCONTENT-LENGTH: 3",
        "Content-Length: 3\r\nContent-Length: 3",
        "Content-Length: 3\r\nContent-Length: 4",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ] {
        let request = format!("POST /echo HTTP/1.1\r\nHost: h\r\n{headers}\r\n\r\n0\r\n\r\n");
        let (told, result) = attack(request.as_bytes());
        assert!(told.starts_with("HTTP/1.1 400"), "{headers}: {told}");
        assert!(told.contains("connection: close"), "{headers}");
        assert!(["Ambiguous", "Request"].contains(&name(result)), "{headers}");
    }
}

/// RFC 9112, 3.2: what stands in front may have chosen by another name.
#[test]
fn s3_a_request_names_one_host() {
    let ask = |version: &str, headers: &str| {
        attack(format!("POST /none HTTP/{version}\r\n{headers}Content-Length: 0\r\n\r\n").as_bytes())
    };
    for hosts in [
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: a\r\nHOST: a\r\n",
        "Host: a, b\r\n",
        "Host: a b\r\n",
        "Host: b@a\r\n",
        "Host: a/b\r\n",
        "Host: a\r\nHost:\r\n",
    ] {
        let (told, result) = ask("1.1", hosts);
        assert!(told.starts_with("HTTP/1.1 400") && told.contains("connection: close"), "{hosts:?}: {told}");
        assert_eq!(name(result), "Host", "{hosts:?}");
    }
    // Only what came before HTTP/1.1 may be without.
    assert_eq!(name(ask("1.0", "Host: a\r\nHost: b\r\n").1), "Host");
    for (version, host) in
        [("1.0", ""), ("1.1", "Host:\r\n"), ("1.1", "Host: [::1]:80\r\n"), ("1.1", "host: a_b.c:8000\r\n")]
    {
        let (told, result) = ask(version, host);
        assert!(told.contains(" 404 ") && result.is_ok(), "{version} {host:?}: {told}");
    }
}

#[test]
fn s3_folded_lines_and_odd_names_are_refused() {
    for headers in [
        "X: a\r\n b",
        "X: a\r\n\tb: c",
        "Transfer-Encoding : chunked",
        "Content-Length: +3",
        "Content-Length: 3, 3",
        "Content-Length: 0x3",
        "Content-Length: 18446744073709551616",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, gzip",
        "X\0: a",
        "X: a\0b",
        ": a",
    ] {
        let request = format!("POST /echo HTTP/1.1\r\nHost: h\r\n{headers}\r\n\r\nabc");
        let (told, result) = attack(request.as_bytes());
        assert!(told.starts_with("HTTP/1.1 4"), "{headers:?}: {told}");
        assert_ne!(name(result), "none", "{headers:?}");
    }
}

/// A proxy in front may unpack what here would be taken for the body.
#[test]
fn s3_no_transfer_coding_but_chunks_is_taken() {
    let ask = |coding: &str| {
        let head = format!("POST /none HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {coding}\r\n");
        attack(format!("{head}\r\n3\r\nabc\r\n0\r\n\r\n").as_bytes())
    };
    for coding in ["gzip, chunked", "identity, chunked", "chunked, chunked", "gzip,chunked"] {
        let (told, result) = ask(coding);
        assert!(told.starts_with("HTTP/1.1 501") && told.contains("connection: close"), "{coding}: {told}");
        assert_eq!(name(result), "Coding", "{coding}");
    }
    for coding in ["chunked", "Chunked", " \tchunked "] {
        let (told, result) = ask(coding);
        assert!(told.contains(" 404 ") && result.is_ok(), "{coding}: {told}");
    }
}

#[test]
fn s3_broken_chunks_are_refused() {
    for chunks in [
        "fffffffffffffffff\r\nabc",
        "-1\r\nabc\r\n0\r\n\r\n",
        "3 x\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "g\r\nabc\r\n0\r\n\r\n",
    ] {
        let request = format!("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let (told, result) = attack(request.as_bytes());
        assert!(told.starts_with("HTTP/1.1 400"), "{chunks:?}: {told}");
        assert_eq!(name(result), "Request", "{chunks:?}");
    }
}

#[test]
fn s3_chunk_extensions_and_trailers_are_bounded() {
    for chunks in [format!("3;{}", "e".repeat(40_000)), format!("0\r\n{}", "T: x\r\n".repeat(20_000))] {
        let request = format!("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let (told, result) = attack(request.as_bytes());
        assert!(told.starts_with("HTTP/1.1 400"), "{told}");
        assert_eq!(name(result), "Request");
    }
}

/// What stands behind the last chunk is a request of its own (RFC 9112 §9.3.2), and no less suspect than any other.
#[test]
fn s3_a_request_behind_a_chunked_one_is_judged_as_any_other() {
    for (more, status, breach) in [
        ("\r\n", "HTTP/1.1 404", "none"),
        ("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400", "Ambiguous"),
        ("Content-Length: 0\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 400", "Ambiguous"),
        ("Host: g\r\n\r\n", "HTTP/1.1 400", "Host"),
    ] {
        let mut session = accepting(BASIC);
        let behind = format!("GET /behind HTTP/1.1\r\nHost: h\r\n{more}");
        let request =
            format!("POST /none HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{behind}");
        let result = send(&mut session, request.as_bytes());
        let told = told(&mut session);
        let (first, second) = told.split_once("there is no endpoint at /none").unwrap();
        assert!(first.starts_with("HTTP/1.1 404") && second.starts_with(status), "{more:?}: {told}");
        assert_eq!(name(result), breach, "{more:?}");
    }
}

#[test]
fn s3_what_is_no_http_is_refused() {
    for bytes in [
        &b"\x00\x01\x00\x01\x02"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GIOP\x01\x02\x01\x00\r\n\r\n",
    ] {
        let (told, result) = attack(bytes);
        assert!(
            told.is_empty() || told.starts_with("HTTP/1.1 4") || told.starts_with("HTTP/1.1 505"),
            "{told}"
        );
        assert_ne!(name(result), "none", "{bytes:?}");
    }
}

#[test]
fn s4_a_head_that_trickles_in_is_cut_off() {
    let mut session = accepting(BASIC);
    let begun = Instant::now();
    send(&mut session, b"POST /echo HTTP/1.1\r\nX: ").unwrap();
    let deadline = session.deadline().unwrap();
    assert!(deadline >= begun + HEAD_TIME && deadline <= Instant::now() + HEAD_TIME);
    // More of it does not buy more time.
    send(&mut session, b"y").unwrap();
    assert_eq!(session.deadline(), Some(deadline));
    session.expire(deadline - Duration::from_secs(1)).unwrap();
    assert_eq!(name(session.expire(deadline)), "SlowHead");
    assert!(told(&mut session).starts_with("HTTP/1.1 408"));
}

#[test]
fn s4_a_body_must_arrive_at_a_kibibyte_a_second() {
    let mut session = accepting(BASIC);
    let head = format!("POST /echo HTTP/1.1\r\nHost: h\r\n{}Content-Length: 60000\r\n\r\n", basic("Say"));
    send(&mut session, head.as_bytes()).unwrap();
    let first = session.deadline().unwrap();
    assert_eq!(session.wanted(), 60_000);
    send(&mut session, &[b' '; 5 << 10]).unwrap();
    assert_eq!(session.deadline(), Some(first + Duration::from_secs(5)));
    assert_eq!(session.wanted(), 60_000 - (5 << 10));
    assert_eq!(name(session.expire(first + Duration::from_secs(5))), "SlowBody");
    assert!(told(&mut session).starts_with("HTTP/1.1 408"));
}

/// The time of a body begins with its first byte, though it came in one read with the end of another.
#[test]
fn s4_each_body_has_its_own_time() {
    let mut session = accepting(BASIC);
    let request = post("/nowhere", &basic("Say"), &[b' '; 100]);
    let begun = Instant::now();
    let mut said = |at: u64, bytes: &[u8]| {
        session.receive(begun + Duration::from_secs(at), &mut bytes.into(), &mut Vec::new()).unwrap();
        session.deadline().unwrap()
    };
    let (first, rest) = request.split_at(request.len() - 50);
    assert_eq!(said(0, first), begun + HEAD_TIME);
    assert_eq!(said(5, &[rest, first].concat()), begun + Duration::from_secs(5) + HEAD_TIME);
    // As for heads.
    let head = &request[..20];
    assert_eq!(said(6, &[rest, head].concat()), begun + Duration::from_secs(6) + HEAD_TIME);
    assert_eq!(said(7, &[&request[20..], head].concat()), begun + Duration::from_secs(7) + HEAD_TIME);
}

#[test]
fn s4_chunked_bodies_have_the_same_deadline() {
    let mut session = accepting(BASIC);
    let head =
        format!("POST /echo HTTP/1.1\r\nHost: h\r\n{}Transfer-Encoding: chunked\r\n\r\n", basic("Say"));
    send(&mut session, head.as_bytes()).unwrap();
    let first = session.deadline().unwrap();
    send(&mut session, b"400\r\n").unwrap();
    send(&mut session, &[b' '; 1024]).unwrap();
    assert_eq!(session.deadline(), Some(first + Duration::from_secs(1)));
    assert_eq!(name(session.expire(first + Duration::from_secs(1))), "SlowBody");
}

#[test]
fn s5_header_floods_are_refused() {
    let many = "X: y\r\n".repeat(200);
    let long = format!("X: {}\r\n", "y".repeat(MAX_HEAD));
    let endless = "y".repeat(3 * MAX_HEAD);
    for head in [format!("{many}\r\n"), format!("{long}\r\n"), format!("X: {endless}")] {
        let (told, result) = attack(format!("POST /echo HTTP/1.1\r\nHost: h\r\n{head}").as_bytes());
        assert!(told.starts_with("HTTP/1.1 431"), "{told}");
        assert_eq!(name(result), "HeadTooLong");
    }
    let (told, result) = attack(format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(2 * MAX_HEAD)).as_bytes());
    assert!(told.starts_with("HTTP/1.1 4"), "{told}");
    assert_eq!(name(result), "HeadTooLong");
}

#[test]
fn s5_pipelines_are_bounded() {
    let mut session = accepting(BASIC);
    send(&mut session, &post("/echo", &basic("Say"), say("x").as_bytes())).unwrap();
    assert_eq!(calls(&mut session).len(), 1);
    let more = post("/echo", &basic("Say"), say("y").as_bytes());
    let result = (0..=MAX_PIPELINED / more.len()).try_for_each(|_| send(&mut session, &more));
    assert_eq!(name(result), "Pipelined");
    assert!(calls(&mut session).is_empty());
}

#[test]
fn s7_a_body_over_the_quota_is_refused_before_it_comes() {
    let head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n";
    let (told, result) = attack(head.as_bytes());
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");
    let violation = result.unwrap_err();
    assert_eq!(violation.name, Violation::OVER_LIMIT);
    assert!(violation.message.contains("(65536)") && violation.message.contains("MaxReceivedMessageSize"));
}

#[test]
fn s7_a_chunked_body_is_refused_as_it_grows() {
    let mut session = accepting(BASIC);
    let head =
        format!("POST /echo HTTP/1.1\r\nHost: h\r\n{}Transfer-Encoding: chunked\r\n\r\n", basic("Say"));
    send(&mut session, head.as_bytes()).unwrap();
    let chunk = [&b"1000\r\n"[..], &[b' '; 0x1000], b"\r\n"].concat();
    let sent = (0..17).position(|_| send(&mut session, &chunk).is_err());
    assert_eq!(sent, Some(16));
    assert!(told(&mut session).starts_with("HTTP/1.1 413"));
}

#[test]
fn s7_nothing_is_decompressed() {
    let body = say("x");
    let request = post("/echo", &format!("{}Content-Encoding: gzip\r\n", basic("Say")), body.as_bytes());
    let (told, _) = attack(&request);
    assert!(told.starts_with("HTTP/1.1 415"), "{told}");
}

/// A few kilobytes that mean megabytes, to somebody who takes gzip; the same inside another; and two in a row.
#[test]
fn s7_what_comes_out_counts_where_gzip_is_taken() {
    let pack = |body: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    };
    let bomb = pack(say(&"x".repeat(8 << 20)).as_bytes());
    let ask = |coding: &str, body: &[u8]| {
        let mut session = accepting(&format!("{BASIC}&compression=gzip"));
        let result = send(
            &mut session,
            &post("/echo", &format!("{}Content-Encoding: {coding}\r\n", basic("Say")), body),
        );
        let calls = calls(&mut session).len();
        (told(&mut session), name(result), calls)
    };
    let (told, why, calls) = ask("gzip", &bomb);
    assert!(told.starts_with("HTTP/1.1 413") && told.contains("(65536)"), "{told}");
    assert_eq!((why, calls), ("Envelope", 0));
    for (coding, body, status) in [
        ("gzip, gzip", pack(&bomb), "415"),
        ("deflate", bomb.clone(), "415"),
        ("gzip", pack(&bomb), "400"),
        ("gzip", [pack(say("x").as_bytes()), pack(b"more")].concat(), "400"),
        ("gzip", b"\x1f\x8b\x08".to_vec(), "400"),
    ] {
        let (told, _, calls) = ask(coding, &body);
        assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{coding}: {told}");
        assert_eq!(calls, 0);
    }
    assert_eq!(ask("gzip", &pack(say("x").as_bytes())).2, 1);
}

#[test]
fn s7_packages_cannot_grow_by_including_a_part_again() {
    let include = "<x:Include xmlns:x=\"http://www.w3.org/2004/08/xop/include\" href=\"cid:a\"/>";
    let root =
        envelope(&format!("<Turn xmlns=\"http://tempuri.org/\"><data>{}</data></Turn>", include.repeat(500)));
    let part = "z".repeat(20_000);
    let body = format!(
        "--B\r\nContent-ID: <r>\r\n\r\n{root}\r\n--B\r\nContent-ID: <a>\r\nContent-Transfer-Encoding: binary\r\n\r\n{part}\r\n--B--"
    );
    let headers = format!(
        "Content-Type: multipart/related; type=\"application/xop+xml\"; start=\"<r>\"; boundary=B; start-info=\"text/xml\"\r\n\
         SOAPAction: \"{ACTION}Turn\"\r\n"
    );
    let (told, result) = attack(&post("/echo", &headers, body.as_bytes()));
    assert!(told.starts_with("HTTP/1.1 400") && told.contains("twice"), "{told}");
    assert_eq!(name(result), "Envelope");
}

#[test]
fn s1_document_types_and_entities_are_refused() {
    for body in [
        format!("<!DOCTYPE a [<!ENTITY b \"c\">]>{}", say("&b;")),
        format!("<!DOCTYPE x SYSTEM \"file:///etc/passwd\">{}", say("&x;")),
        say("&b;"),
        say("&#0;"),
        envelope("<!DOCTYPE x><Say xmlns=\"http://tempuri.org/\"/>"),
    ] {
        let (told, result) = attack(&post("/echo", &basic("Say"), body.as_bytes()));
        assert!(told.starts_with("HTTP/1.1 400") && told.contains("connection: close"), "{told}");
        assert_eq!(name(result), "Envelope");
    }
}

#[test]
fn s4_silent_connections_end() {
    let mut session = accepting(BASIC);
    send(&mut session, b"\r\n").unwrap();
    let idle = session.deadline().unwrap();
    assert!(idle <= Instant::now() + Duration::from_secs(120));
    session.expire(idle).unwrap();
    let closed = std::iter::from_fn(|| session.poll()).any(|event| matches!(event, Event::Closed));
    assert!(closed && session.deadline().is_none());
}

#[test]
fn every_cut_of_a_request_is_survived() {
    let whole = post("/echo", &basic("Say"), say("x").as_bytes());
    for cut in 0..whole.len() {
        let mut session = accepting(BASIC);
        send(&mut session, &whole[..cut]).unwrap();
        assert!(calls(&mut session).is_empty() && sent(&mut session).is_empty(), "cut at {cut}");
        let gone = everywire_model::Failure::new(
            everywire_model::Kind::Unreachable,
            everywire_model::Initiator::Peer,
            "gone",
        );
        session.disconnected(&gone);
        assert!(session.deadline().is_none());
    }
}

#[test]
fn every_byte_of_a_request_may_be_wrong() {
    let whole = post("/echo", &basic("Say"), say("x").as_bytes());
    for at in 0..whole.len() {
        for wrong in [0, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = wrong;
            let mut session = accepting(BASIC);
            // A call, a refusal, or waiting for the rest: nothing else.
            match send(&mut session, &bytes) {
                Ok(()) => {}
                Err(violation) => assert!(!violation.name.is_empty()),
            }
        }
    }
}
