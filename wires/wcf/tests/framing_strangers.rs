//! Sessions of framing that meet another protocol: each side says which one it is.

#![allow(clippy::unwrap_used)]

use crate::channels::*;
use everywire_model::*;

#[test]
fn other_protocols_are_told_by_name() {
    let mut server = accepting("security=none");
    let breach = give(&mut server, b"POST /a HTTP/1.1\r\n").unwrap_err();
    assert!(breach.name == "Foreign" && breach.message.contains("basic://"), "{breach:?}");
    let said = String::from_utf8(sent(&mut server)).unwrap();
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("net.tcp://"), "{said}");
    let mut client = connecting(VIA);
    call(&mut client, Expects::Reply).unwrap();
    give(&mut client, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert!(failures(&mut client)[0].message().contains("this is HTTP"));
}

/// Whichever of its answers comes first, and if the other one never does.
#[test]
fn a_server_of_net_tcp_answers_its_own_greeting_alone() {
    let said = |greeting: &wire::Greeting| {
        let mut server = accepting("security=none");
        // The greeting of HTTP is a breach, and is answered all the same.
        let _ = give(&mut server, greeting.octets);
        let said = sent(&mut server);
        assert!(!said.is_empty(), "{}", greeting.protocol);
        said
    };
    let [framing, http] = everywire_wcf::WCF.greetings() else { panic!("there are two") };
    assert_eq!((framing.answers)(&said(framing)), wire::Sniff::Yes);
    assert_eq!((http.answers)(&said(http)), wire::Sniff::No);
    assert_eq!((http.answers)(b"HTTP/1.1 400 Bad Request\r\n\r\n"), wire::Sniff::Yes);
}

#[test]
fn whoever_answers_in_another_protocol_is_named() {
    for (answer, protocol, scheme) in [
        (&b"GIOP\x01\x00\x01\x06\x00\x00\x00\x00"[..], "this is GIOP", "iiop://"),
        (b"REJECTED EXTERNAL\r\n", "this is D-Bus", "dbus:"),
        (b"ERROR \"Unknown command\"\r\n", "this is D-Bus", "dbus:"),
        (&[5, 0, 13, 3, 16, 0, 0, 0], "this is DCE/RPC", "dcom://"),
        (b"GET / HTTP/1.1\r\n", "this is HTTP", "basic://"),
    ] {
        let mut client = connecting(VIA);
        call(&mut client, Expects::Reply).unwrap();
        give(&mut client, answer).unwrap_err();
        let failures = failures(&mut client);
        let told = failures[0].message();
        assert!(told.contains(protocol) && told.contains(scheme), "{told}");
    }
    let mut server = accepting("security=none");
    let breach = give(&mut server, b"GIOP\x01\x02\x01\x00").unwrap_err();
    assert!(breach.name == "Foreign" && breach.message.contains("this is GIOP"), "{breach:?}");
    assert!(sent(&mut server).is_empty(), "what HTTP is told is for HTTP");
}

/// What a listener says of bytes that come in parts of this size.
fn met(bytes: &[u8], step: usize) -> Option<&'static str> {
    let mut server = accepting("security=none");
    let mut input = bytes::BytesMut::new();
    let met = bytes.chunks(step).find_map(|part| {
        input.extend_from_slice(part);
        server.receive(std::time::Instant::now(), &mut input, &mut Vec::new()).err()
    });
    let foreign = met.as_ref().is_some_and(|breach| breach.name == "Foreign");
    assert!(foreign || sent(&mut server).is_empty(), "{bytes:?}: nothing in words of HTTP");
    met.map(|breach| breach.name)
}

/// Random bytes begin like another protocol once in fifty times.
#[test]
fn only_whole_words_are_taken_for_another_protocol() {
    for bytes in [&b"GET\0 /"[..], b"G\xffIOP", b"POSE", b"HT\0", b"OPQ", b"REX", b"\x16\x07"] {
        assert_eq!(met(bytes, bytes.len()), Some("UnknownRecord"), "{bytes:?}");
        assert_eq!(met(bytes, 1), Some("UnknownRecord"), "{bytes:?} octet by octet");
    }
    for bytes in [&b"POST /a HTTP/1.1\r\n"[..], b"PUT /a", b"GIOP\x01", b"\x16\x03"] {
        assert_eq!(met(bytes, bytes.len()), Some("Foreign"), "{bytes:?}");
        assert_eq!(met(bytes, 1), Some("Foreign"), "{bytes:?} octet by octet");
    }
    // They may become either.
    for bytes in [&b"G"[..], b"OP", b"PR"] {
        assert_eq!(met(bytes, 1), None, "{bytes:?}");
    }
}

#[test]
fn a_listener_of_http_is_told_from_one_of_framing() {
    let place = everywire_wcf::address::listen("basic://127.0.0.1:0").unwrap();
    let config = Config { profile: place.profile().clone(), ..Config::default() };
    let mut server = everywire_wcf::http::Accepting::new(&config);
    let mut client = connecting(VIA);
    call(&mut client, Expects::Reply).unwrap();
    give(&mut server, &sent(&mut client)).unwrap_err();
    give(&mut client, &sent(&mut server)).unwrap_err();
    assert!(failures(&mut client)[0].message().contains("this is HTTP"));
}
