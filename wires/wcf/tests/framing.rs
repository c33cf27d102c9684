//! Sessions of framing: how they open, call, are refused, and end.

#![allow(clippy::unwrap_used)]

use crate::channels::*;
use bytes::BytesMut;
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::time::{Duration, Instant};

#[test]
fn the_preamble_is_microsofts_and_goes_in_one_write() {
    let mut client = connecting(VIA);
    assert_eq!(sent(&mut client), unhex(PREAMBLE));
    let mut client = connecting(&format!("{VIA}?mode=streamed"));
    let streamed = PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1);
    assert_eq!(sent(&mut client), unhex(&streamed));
}

/// What .NET's client of Unix sockets sends: it knows no path behind the socket's, and writes no authority.
#[test]
fn a_socket_by_itself_leads_to_the_only_object() {
    let opening = |via: &str| {
        let head = [0x02, u8::try_from(via.len()).unwrap()];
        [&unhex("0001000102")[..], &head, via.as_bytes(), &[0x03, 0x08, 0x0c]].concat()
    };
    let place = || place_at("net.uds:///run/shop/d.sock");
    for via in
        ["net.uds:/run/shop/d.sock", "net.uds:///run/shop/d.sock/", "net.uds://localhost/run/shop/d.sock"]
    {
        let mut server = serving(&["Demo"], place());
        give(&mut server, &opening(via)).unwrap();
        assert_eq!(sent(&mut server), [0x0b], "{via}");
        // Which of several is not said.
        let mut server = serving(&["Demo", "Other"], place());
        assert_eq!(give(&mut server, &opening(via)).unwrap_err().name, "NoEndpoint", "{via}");
    }
    let mut server = serving(&["Demo", "Other"], place());
    give(&mut server, &opening("net.uds:/run/shop/d.sock/Other")).unwrap();
    assert_eq!(sent(&mut server), [0x0b]);
    for via in ["net.uds:/run/shop/d.sockDemo", "net.uds:/run/shop/e.sock", "net.uds:run"] {
        let mut server = serving(&["Demo"], place());
        assert_eq!(give(&mut server, &opening(via)).unwrap_err().name, "NoEndpoint", "{via}");
    }
    // Over TCP an object has a path.
    let mut server = accepting_for(&["Demo"]);
    assert_eq!(give(&mut server, &opening("net.tcp://h/")).unwrap_err().name, "NoEndpoint");
}

#[test]
fn no_call_goes_before_the_preamble_is_acknowledged() {
    let mut client = connecting(VIA);
    sent(&mut client);
    call(&mut client, Expects::Reply).unwrap();
    call(&mut client, Expects::Nothing).unwrap();
    assert!(sent(&mut client).is_empty());
    assert_eq!(client.outstanding(), 2);
    give(&mut client, &[0x0b]).unwrap();
    let bytes = sent(&mut client);
    assert_eq!(bytes[0], 0x06);
    assert_eq!(client.outstanding(), 1);
    assert!(matches!(events(&mut client)[..], [Event::Ready(_)]));
}

#[test]
fn both_sides_are_ready_when_it_was_acknowledged() {
    let mut pair = Pair::buffered();
    assert!(events(&mut *pair.client).is_empty());
    pair.carry();
    for side in [&mut pair.client, &mut pair.server] {
        let events = events(&mut **side);
        assert!(matches!(&events[..], [Event::Ready(peer)] if peer.authentication == "none"), "{events:?}");
    }
}

#[test]
fn calls_and_replies_pass_in_pieces_of_any_size() {
    for piece in [1, 2, 3, 7, usize::MAX] {
        for mut pair in [Pair::buffered(), Pair::streamed()] {
            pair.piece = piece;
            for _ in 0..3 {
                let id = pair.call(Expects::Reply);
                pair.carry();
                assert_eq!(pair.serve(), 1, "in pieces of {piece}");
                pair.carry();
                let events = events(&mut *pair.client);
                let reply = |event: &Event| matches!(event, Event::Reply { id: replied, outcome: Outcome::Done(_) } if *replied == id);
                assert!(events.iter().any(reply), "{events:?}");
            }
            assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
            assert_eq!((pair.client.wanted(), pair.server.wanted()), (0, 0));
        }
    }
}

#[test]
fn many_calls_are_under_way_at_once_in_buffered_mode() {
    let mut pair = Pair::buffered();
    let ids: Vec<CallId> = (0..10).map(|_| pair.call(Expects::Reply)).collect();
    pair.carry();
    assert_eq!(pair.serve(), 10);
    pair.carry();
    let replies = events(&mut *pair.client).into_iter().filter(|event| matches!(event, Event::Reply { .. }));
    assert_eq!(replies.count(), ids.len());
}

#[test]
fn streamed_calls_take_turns() {
    let mut pair = Pair::streamed();
    assert!(pair.client.one_at_a_time());
    for _ in 0..3 {
        pair.call(Expects::Reply);
    }
    pair.call(Expects::Nothing);
    pair.call(Expects::Reply);
    let mut served = Vec::new();
    loop {
        pair.carry();
        match pair.serve() {
            0 => break,
            count => served.push(count),
        }
    }
    assert_eq!(served, [1, 1, 1, 1, 1]);
    assert_eq!(pair.client.outstanding(), 0);
    let done = |event: &Event| matches!(event, Event::Reply { outcome: Outcome::Done(_), .. });
    assert_eq!(events(&mut *pair.client).iter().filter(|event| done(event)).count(), 5);
}

#[test]
fn a_streamed_call_that_is_withdrawn_unsent_leaves_its_turn_to_the_next() {
    let mut pair = Pair::streamed();
    let first = pair.call(Expects::Reply);
    pair.call(Expects::Reply);
    pair.call(Expects::Nothing);
    // The channel is not open yet.
    pair.client.cancel(first);
    let mut served = 0;
    for _ in 0..4 {
        pair.carry();
        served += pair.serve();
    }
    assert_eq!((served, pair.client.outstanding()), (2, 0));
}

#[test]
fn an_envelope_is_the_buffer_that_it_was_read_into() {
    let mut server = accepting("security=none&MaxReceivedMessageSize=2000000");
    let mut client = connecting(VIA);
    give(&mut server, &unhex(PREAMBLE)).unwrap();
    sent(&mut client);
    give(&mut client, &[0x0b]).unwrap();
    call(&mut client, Expects::Nothing).unwrap();
    let message = sent(&mut client);
    let mut input = BytesMut::with_capacity(message.len());
    input.extend_from_slice(&message);
    let held = input.as_ptr_range();
    server.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
    let calls = calls(&mut server);
    assert!(held.contains(&calls[0].body.bytes.as_ptr()), "the envelope was copied");
}

#[test]
fn the_missing_bytes_of_a_message_are_wanted() {
    let mut server = accepting("security=none&MaxReceivedMessageSize=2000000");
    let mut input = BytesMut::from(&unhex(PREAMBLE)[..]);
    input.extend_from_slice(&[0x06, 0xc0, 0x84, 0x3d, 0, 0]);
    server.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
    assert_eq!(server.wanted(), 1_000_000 - 2);
}

#[test]
fn both_ends_make_room_for_another_preamble() {
    let mut server = accepting("security=none");
    for _ in 0..3 {
        give(&mut server, &unhex(PREAMBLE)).unwrap();
        assert_eq!(sent(&mut server), [0x0b]);
        give(&mut server, &[0x07]).unwrap();
        assert_eq!(sent(&mut server), [0x07]);
    }
    let ready = events(&mut server).into_iter().filter(|event| matches!(event, Event::Ready(_)));
    assert_eq!(ready.count(), 1);
}

#[test]
fn the_end_waits_for_answers_that_somebody_waits_for() {
    let mut pair = Pair::buffered();
    pair.call(Expects::Reply);
    pair.carry();
    give(&mut *pair.server, &[0x07]).unwrap();
    assert!(sent(&mut *pair.server).is_empty());
    assert_eq!(pair.serve(), 1);
    let said = sent(&mut *pair.server);
    assert_eq!((said.first(), said.last()), (Some(&0x06), Some(&0x07)));
}

#[test]
fn a_late_answer_is_not_taken_for_that_of_another_channel() {
    let mut pair = Pair::buffered();
    pair.call(Expects::Reply);
    pair.carry();
    let late = calls(&mut *pair.server).remove(0);
    pair.server.answer(late.id, Answer::Done(&Nothing)).unwrap();
    give(&mut *pair.server, &[0x07]).unwrap();
    sent(&mut *pair.server);
    let mut again = Pair::buffered();
    again.call(Expects::Reply);
    let hello = sent(&mut *again.client);
    give(&mut *pair.server, &hello).unwrap();
    give(&mut *again.client, &sent(&mut *pair.server)).unwrap();
    give(&mut *pair.server, &sent(&mut *again.client)).unwrap();
    let call = calls(&mut *pair.server).remove(0);
    assert_ne!(call.id, late.id);
    pair.server.answer(late.id, Answer::Done(&Nothing)).unwrap();
    assert!(sent(&mut *pair.server).is_empty());
    pair.server.answer(call.id, Answer::Done(&Nothing)).unwrap();
    assert_eq!(sent(&mut *pair.server)[0], 0x06);
}

#[test]
fn closing_says_end_and_nothing_more() {
    let mut pair = Pair::buffered();
    pair.carry();
    pair.client.close();
    assert_eq!(sent(&mut *pair.client), [0x07]);
    assert!(call(&mut *pair.client, Expects::Reply).is_err());
    pair.server.close();
    assert_eq!(sent(&mut *pair.server), [0x07]);
}

#[test]
fn an_end_of_the_server_ends_the_calls_too() {
    let mut pair = Pair::buffered();
    pair.call(Expects::Reply);
    pair.carry();
    events(&mut *pair.client);
    give(&mut *pair.client, &[0x07]).unwrap();
    assert_eq!(failures(&mut *pair.client)[0].completed(), Completed::Maybe);
    // Whoever is told of the end transmits no more.
    assert!(pair.client.deadline().is_some());
    assert_eq!(sent(&mut *pair.client), [0x07]);
    assert!(matches!(events(&mut *pair.client)[..], [Event::Closed]));
    assert!(pair.client.deadline().is_none());
}

#[test]
fn an_endpoint_is_probed_by_opening_the_channel() {
    let mut pair = Pair::buffered();
    let profile = everywire_wcf::address::parse(VIA).unwrap().profiles[0].clone();
    let id = pair.client.probe(Instant::now(), &profile).unwrap();
    assert!(events(&mut *pair.client).is_empty());
    pair.carry();
    let found = |event: &Event| matches!(event, Event::Reply { id: replied, outcome: Outcome::Done(_) } if *replied == id);
    assert!(events(&mut *pair.client).iter().any(found));
    let mut client = connecting(VIA);
    client.probe(Instant::now(), &profile).unwrap();
    give(&mut client, &fault("EndpointNotFound")).unwrap_err();
    assert_eq!(failures(&mut client)[0].kind(), Kind::NoObject);
}

fn fault(name: &str) -> Vec<u8> {
    let uri = format!("{FAULTS}{name}");
    [&[0x08, u8::try_from(uri.len()).unwrap()], uri.as_bytes()].concat()
}

/// What Microsoft's client makes of each fault, in the terms of failures.
const MEANINGS: [(&str, Kind); 13] = [
    ("ContentTypeInvalid", Kind::Unsupported),
    ("ContentTypeTooLong", Kind::LimitExceeded),
    ("ConnectionDispatchFailed", Kind::Internal),
    ("EndpointNotFound", Kind::NoObject),
    ("EndpointUnavailable", Kind::Busy),
    ("MaxMessageSizeExceededFault", Kind::LimitExceeded),
    ("ServerTooBusy", Kind::Busy),
    ("ServiceActivationFailed", Kind::Unreachable),
    ("UnsupportedMode", Kind::Unsupported),
    ("UnsupportedVersion", Kind::Unsupported),
    ("UpgradeInvalid", Kind::Refused),
    ("ViaTooLong", Kind::LimitExceeded),
    ("Bogus", Kind::Violation),
];

#[test]
fn every_fault_in_place_of_the_acknowledgement_is_what_the_call_fails_with() {
    for (name, kind) in MEANINGS {
        let mut client = connecting(VIA);
        call(&mut client, Expects::Reply).unwrap();
        let violation = give(&mut client, &fault(name)).unwrap_err();
        assert_eq!(violation.name, "Refused");
        let failure = failures(&mut client).remove(0);
        assert_eq!((failure.kind(), failure.completed()), (kind, Completed::No), "{name}");
        assert_eq!(failure.code(), Some(&*format!("{FAULTS}{name}")));
    }
}

#[test]
fn every_fault_after_a_request_is_what_the_call_fails_with() {
    for (name, kind) in MEANINGS {
        for address in [VIA.to_owned(), format!("{VIA}?mode=streamed")] {
            let mut client = connecting(&address);
            call(&mut client, Expects::Reply).unwrap();
            give(&mut client, &[0x0b]).unwrap();
            give(&mut client, &fault(name)).unwrap_err();
            let failure = failures(&mut client).remove(0);
            assert_eq!((failure.kind(), failure.completed()), (kind, Completed::Maybe), "{name}");
        }
    }
}

/// The fault that a server says to these bytes, and the name of the violation.
fn refusal(options: &str, bytes: &[u8]) -> (String, &'static str) {
    let mut server = accepting(options);
    let violation = give(&mut server, bytes).unwrap_err();
    let said = sent(&mut server);
    let start = said.iter().position(|octet| *octet == 0x08);
    let fault = start.map(|start| String::from_utf8_lossy(&said[start + 2..]).replace(FAULTS, ""));
    (fault.unwrap_or_default(), violation.name)
}

#[test]
fn a_server_tells_what_it_does_not_take() {
    let version = unhex(&PREAMBLE.replacen("000100", "000200", 1));
    assert_eq!(refusal("security=none", &version), ("UnsupportedVersion".into(), "Version"));
    for mode in ["0104", "0105"] {
        let mode = unhex(&PREAMBLE.replacen("0102", mode, 1));
        assert_eq!(refusal("security=none", &mode), ("UnsupportedMode".into(), "Mode"));
    }
    for encoding in ["0301", "0306", "0309"] {
        let encoding = unhex(&PREAMBLE.replacen("0308", encoding, 1));
        assert_eq!(refusal("security=none", &encoding), ("ContentTypeInvalid".into(), "ContentType"));
    }
    let gzip = b"\x04\x23application/soap+msbinsession1+gzip\x0c";
    let gzip = [&unhex(&PREAMBLE[..PREAMBLE.len() - 6])[..], gzip].concat();
    assert_eq!(refusal("security=none", &gzip), ("ContentTypeInvalid".into(), "ContentType"));
    let upgrade = [&unhex(&PREAMBLE[..PREAMBLE.len() - 2])[..], b"\x09\x13application/ssl-tls"].concat();
    assert_eq!(refusal("security=none", &upgrade), ("UpgradeInvalid".into(), "Upgrade"));
    let http = [&unhex("00010001020211")[..], b"http://host:80/xy", &[0x03, 0x08, 0x0c]].concat();
    assert_eq!(refusal("security=none", &http), ("EndpointNotFound".into(), "NoEndpoint"));
}

#[test]
fn the_minor_version_does_not_matter() {
    let mut server = accepting("security=none");
    give(&mut server, &unhex(&PREAMBLE.replacen("000100", "000107", 1))).unwrap();
    assert_eq!(sent(&mut server), [0x0b]);
}

/// A content type of the list is as good as its number.
#[test]
fn a_known_encoding_may_come_as_a_content_type() {
    let mut server = accepting("security=none");
    let named =
        [&unhex(&PREAMBLE[..PREAMBLE.len() - 6])[..], b"\x04\x1eapplication/soap+msbinsession1\x0c"].concat();
    give(&mut server, &named).unwrap();
    assert_eq!(sent(&mut server), [0x0b]);
}

/// Nobody acknowledges, nobody answers, calls come all the same.
#[test]
fn simplex_calls_are_not_answered() {
    let mut pair = Pair::buffered();
    pair.call(Expects::Nothing);
    pair.carry();
    pair.serve();
    let mut client = connecting(VIA);
    call(&mut client, Expects::Nothing).unwrap();
    sent(&mut client);
    give(&mut client, &[0x0b]).unwrap();
    let message = sent(&mut client);
    for end in [&b""[..], b"\x0c"] {
        let mut server = accepting("security=none");
        let preamble = unhex(&PREAMBLE[..PREAMBLE.len() - 2].replacen("0102", "0103", 1));
        give(&mut server, &[&preamble, end, &message, &message, &[0x07]].concat()).unwrap();
        assert!(sent(&mut server).is_empty());
        assert_eq!(calls(&mut server).len(), 2);
    }
}

/// Ported: a service whose quota is 50 bytes, and a message of ten thousand.
#[test]
fn a_message_over_the_quota_is_refused_on_the_word_of_its_size() {
    let mut server = accepting("security=none&MaxReceivedMessageSize=50");
    give(&mut server, &unhex(PREAMBLE)).unwrap();
    sent(&mut server);
    let violation = give(&mut server, &[0x06, 0xc4, 0x4e]).unwrap_err();
    assert_eq!(violation.name, "OverLimit");
    assert!(
        violation.message.contains("maximum message size quota for incoming messages (50)"),
        "{violation}"
    );
    assert_eq!(sent(&mut server), fault("MaxMessageSizeExceededFault"));
    assert!(server.transmit().is_empty());
}

#[test]
fn chunks_count_together() {
    let mut server = accepting("security=none&MaxReceivedMessageSize=50");
    give(&mut server, &unhex(&PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1))).unwrap();
    sent(&mut server);
    let mut chunk = vec![0x05, 30];
    chunk.extend_from_slice(&[0x56; 30]);
    give(&mut server, &chunk).unwrap();
    let violation = give(&mut server, &[21]).unwrap_err();
    assert_eq!(violation.name, "OverLimit");
    assert_eq!(sent(&mut server), fault("MaxMessageSizeExceededFault"));
}

#[test]
fn a_reply_over_the_quota_says_how_to_raise_it() {
    let mut client = connecting(VIA);
    call(&mut client, Expects::Reply).unwrap();
    give(&mut client, &[0x0b]).unwrap();
    sent(&mut client);
    give(&mut client, &[0x06, 0xc0, 0x84, 0x3d]).unwrap_err();
    let failure = failures(&mut client).remove(0);
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    assert!(
        failure.message().contains("maximum message size quota for incoming messages (65536)"),
        "{failure}"
    );
    assert!(failure.hint().is_some_and(|hint| hint.contains("MaxReceivedMessageSize")));
    // A client has no words for it (MC-NMF 3.1.1.2).
    assert!(sent(&mut client).is_empty());
}

#[test]
fn a_channel_that_does_not_open_in_time_fails_its_calls() {
    let mut client = connecting(&format!("{VIA}?OpenTimeout=5"));
    call(&mut client, Expects::Reply).unwrap();
    let due = client.deadline().unwrap();
    client.expire(due - Duration::from_millis(1)).unwrap();
    assert_eq!(client.expire(due).unwrap_err().name, "NoPreamble");
    let failure = failures(&mut client).remove(0);
    assert_eq!((failure.kind(), failure.completed()), (Kind::TimedOut, Completed::No));
}

#[test]
fn sessions_and_calls_wait_where_the_address_bounds_them() {
    let place = place("security=none&MaxConcurrentSessions=1&MaxConcurrentCalls=1&MaxPendingConnections=1");
    let session = || everywire_wcf::framing::Accepting::new(&place);
    let mut pair = Pair::new(connecting(VIA), session());
    pair.call(Expects::Reply);
    pair.call(Expects::Reply);
    pair.carry();
    // One call is told of; the other waits, and nothing is read behind it.
    let calls: Vec<_> = std::iter::from_fn(|| pair.server.poll()).collect();
    let ids: Vec<CallId> = calls.iter().filter_map(call_id).collect();
    assert_eq!((ids.len(), pair.server.read_paused(), pair.server.outstanding()), (1, true, 2));
    let gone = Failure::new(Kind::NoObject, everywire_model::Initiator::Peer, "gone");
    pair.server.answer(ids[0], Answer::Failed(&gone)).unwrap();
    let next: Vec<_> = std::iter::from_fn(|| pair.server.poll()).collect();
    assert_eq!((next.iter().filter_map(call_id).count(), pair.server.read_paused()), (1, false));

    // One session waits, unacknowledged, and is full; the next one is refused.
    let mut other = session();
    give(&mut other, &unhex(PREAMBLE)).unwrap();
    assert!(events(&mut other).is_empty() && sent(&mut other).is_empty() && other.read_paused());
    let mut third = session();
    assert_eq!(give(&mut third, &unhex(PREAMBLE)).unwrap_err().name, "Busy");
    assert!(String::from_utf8_lossy(&sent(&mut third)).ends_with("ServerTooBusy"));
    drop(pair);
    assert!(matches!(events(&mut other)[..], [Event::Ready(_)]));
    assert_eq!((sent(&mut other), other.read_paused()), (vec![0x0b], false));
    // Whoever waits and leaves is forgotten; whoever waits for too long is told.
    let mut late = session();
    give(&mut late, &unhex(PREAMBLE)).unwrap();
    late.disconnected(&gone);
    let mut late = session();
    give(&mut late, &unhex(PREAMBLE)).unwrap();
    let due = late.deadline().unwrap();
    assert_eq!(late.expire(due).unwrap_err().name, "Busy");
}

#[test]
fn a_burst_of_calls_waits_without_being_refused() {
    let place = place("security=none&MaxConcurrentCalls=1");
    let mut pair = Pair::new(connecting(VIA), everywire_wcf::framing::Accepting::new(&place));
    pair.carry();
    pair.call(Expects::Reply);
    for _ in 0..300 {
        pair.call(Expects::Nothing);
        pair.call(Expects::Reply);
    }
    pair.carry();
    assert_eq!(std::iter::from_fn(|| Some(pair.serve()).filter(|served| *served > 0)).sum::<usize>(), 601);
    pair.carry();
    assert!(failures(&mut *pair.client).is_empty());
}

/// What says that nobody waits for an answer.
const TELLS: &str = "<a:ReplyTo><a:Address>http://www.w3.org/2005/08/addressing/none</a:Address></a:ReplyTo>";

/// A request as text, in its record.
fn request(headers: &str) -> Vec<u8> {
    let text = format!(
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope' xmlns:a='http://www.w3.org/2005/08/addressing'>\
         <s:Header><a:Action>urn:x</a:Action>{headers}</s:Header><s:Body/></s:Envelope>"
    );
    let len = u16::try_from(text.len()).unwrap();
    // Seven bits an octet.
    let [low, high] = [len & 0x7f | 0x80, len >> 7].map(|octet| u8::try_from(octet).unwrap());
    [&[0x06, low, high][..], text.as_bytes()].concat()
}

#[test]
fn who_has_to_read_on_refuses_what_is_too_much() {
    let mut server = accepting("security=none&MaxConcurrentCalls=1");
    give(&mut server, &unhex(&PREAMBLE.replacen("03080c", "03030c", 1))).unwrap();
    let asks = request("<a:MessageID>urn:1</a:MessageID>");
    give(&mut server, &asks).unwrap();
    assert_eq!(calls(&mut server).len(), 1);
    // Its servant calls back, so what comes behind the calls that wait must be read.
    call(&mut server, Expects::Reply).unwrap();
    give(&mut server, &asks.repeat(256)).unwrap();
    assert!(!server.read_paused());
    sent(&mut server);
    give(&mut server, &asks).unwrap();
    let refusal = String::from_utf8_lossy(&sent(&mut server)).into_owned();
    assert!(refusal.contains("EndpointUnavailable"), "{refusal}");
    // Nobody would hear that this one is not served.
    assert_eq!(give(&mut server, &request(TELLS)).unwrap_err().name, "Waiting");
}

#[test]
fn one_way_calls_that_wait_outlive_whoever_made_them() {
    let mut server = accepting("security=none&MaxConcurrentCalls=1");
    give(&mut server, &unhex(&PREAMBLE.replacen("03080c", "03030c", 1))).unwrap();
    let asks = request("<a:MessageID>urn:1</a:MessageID>");
    give(&mut server, &[&asks[..], &asks, &request(TELLS)].concat()).unwrap();
    assert_eq!(calls(&mut server).len(), 1);
    server.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "gone"));
    let left = calls(&mut server);
    assert_eq!(left.iter().map(|call| call.expects).collect::<Vec<_>>(), [Expects::Nothing]);
    assert!(!server.read_paused());
}

fn call_id(event: &Event) -> Option<CallId> {
    match event {
        Event::Call(call) => Some(call.id),
        _ => None,
    }
}

#[test]
fn a_place_takes_what_its_address_says_if_it_does() {
    let streamed = PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1);
    let text = PREAMBLE.replacen("03080c", "03030c", 1);
    for (options, preamble, fault) in [
        ("", &*streamed, None),
        ("", &text, None),
        ("&mode=buffered", &streamed, Some("UnsupportedMode")),
        ("&mode=buffered", &text, None),
        ("&mode=streamed", PREAMBLE, Some("UnsupportedMode")),
        ("&encoding=text", PREAMBLE, Some("ContentTypeInvalid")),
        ("&encoding=text", &text, None),
        ("&encoding=session", &text, Some("ContentTypeInvalid")),
    ] {
        let mut server = accepting(&format!("security=none{options}"));
        let taken = give(&mut server, &unhex(preamble));
        let said = sent(&mut server);
        match fault {
            None => assert_eq!((taken.is_ok(), said), (true, vec![0x0b]), "{options}"),
            Some(fault) => assert!(String::from_utf8_lossy(&said).ends_with(fault), "{options}"),
        }
    }
}
