//! Envelopes as enemies send them: each attack is a test, named by the list of classes in the book.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::soap_support::*;
use bytes::Bytes;
use everywire_model::*;
use everywire_wcf::soap::Dialect;

const SOAP: &str = "http://www.w3.org/2003/05/soap-envelope";
const ACTION: &str = "http://tempuri.org/IRemoteObject/VoidCall";

/// A request with these headers beside its action, and this body.
fn document(headers: &str, body: &str) -> String {
    format!(
        "<s:Envelope xmlns:s=\"{SOAP}\" xmlns:a=\"http://www.w3.org/2005/08/addressing\"><s:Header>\
         <a:Action>{ACTION}</a:Action>{headers}</s:Header><s:Body>{body}</s:Body></s:Envelope>"
    )
}

const ID: &str = "<a:MessageID>urn:uuid:00000000-0000-0000-0000-000000000001</a:MessageID>";
const CALL: &str = "<VoidCall xmlns=\"http://tempuri.org/\"/>";

fn server() -> Pair {
    serving(Dialect::WS, &remote_object())
}

/// The message ends the channel, and nobody is called.
fn ends(document: &str) -> Failure {
    let mut pair = server();
    let failure = pair.hand_over(document.as_bytes(), None).expect_err(document);
    assert!(pair.server.poll().is_none(), "{document}");
    failure
}

/// The message is answered with a fault, and nobody is called.
fn faults(pair: &mut Pair, document: &str) -> String {
    pair.hand_over(document.as_bytes(), None).unwrap();
    assert!(pair.server.poll().is_none(), "{document}");
    let (flushed, payload) = pair.server_says().expect("a fault");
    assert!(flushed.fault && flushed.answers);
    assert!(pair.server_says().is_none());
    String::from_utf8(payload).unwrap()
}

#[test]
fn the_harmless_one_is_taken() {
    let mut pair = server();
    pair.hand_over(document(ID, CALL).as_bytes(), None).unwrap();
    assert_eq!(pair.incoming().operation, ACTION);
}

#[test]
fn s1_document_types_entities_and_instructions_are_refused() {
    let good = document(ID, CALL);
    for (what, document) in [
        ("type", format!("<!DOCTYPE s:Envelope [<!ENTITY x \"y\">]>{good}")),
        ("external", format!("<!DOCTYPE s:Envelope SYSTEM \"file:///etc/passwd\">{good}")),
        ("entity", document("<h>&x;</h>", CALL)),
        ("instruction", format!("<?evil?>{good}")),
        ("instruction inside", good.replace("<s:Body>", "<s:Body><?evil?>")),
    ] {
        let mut pair = server();
        pair.hand_over(document.as_bytes(), None).expect_err(what);
        assert!(pair.server.poll().is_none(), "{what}");
    }
}

#[test]
fn s2_headers_that_stand_twice_are_not_chosen_from() {
    let to = "<a:To>http://localhost:10170/tcp/ro</a:To>";
    let other = "<a:MessageID>urn:uuid:00000000-0000-0000-0000-000000000002</a:MessageID>";
    for headers in [
        format!("{ID}<a:Action>urn:other</a:Action>"),
        format!("{ID}{to}{to}"),
        format!("{ID}{other}"),
        format!(
            "{ID}<a:ReplyTo><a:Address>urn:a</a:Address></a:ReplyTo><a:ReplyTo><a:Address>urn:b</a:Address></a:ReplyTo>"
        ),
    ] {
        let fault = faults(&mut server(), &document(&headers, CALL));
        assert!(fault.contains("InvalidAddressingHeader"), "{fault}");
    }
}

#[test]
fn s2_what_is_wrapped_in_other_headers_is_not_looked_at() {
    // An action and an identifier inside another element, as signature wrapping moves them.
    let wrapped = format!(
        "<w:Wrapper xmlns:w=\"urn:w\">{ID}<a:Action>urn:evil</a:Action><s:Body>evil</s:Body></w:Wrapper>\
         <a:MessageID>urn:uuid:00000000-0000-0000-0000-00000000000f</a:MessageID>"
    );
    let mut pair = server();
    pair.hand_over(document(&wrapped, CALL).as_bytes(), None).unwrap();
    let incoming = pair.incoming();
    assert_eq!(incoming.operation, ACTION);
    let (_, reply) =
        pair.answer(incoming.id, Answer::Done(&List(&find(&remote_object(), "VoidCall").results, vec![])));
    assert!(String::from_utf8(reply).unwrap().contains("00000000000f</a:RelatesTo>"));
}

#[test]
fn s2_an_envelope_has_one_header_before_one_body() {
    let good = document(ID, CALL);
    let body_first =
        format!("<s:Envelope xmlns:s=\"{SOAP}\"><s:Body>{CALL}</s:Body><s:Header/></s:Envelope>");
    let two_headers = good.replace("</s:Header>", "</s:Header><s:Header></s:Header>");
    let no_body = format!("<s:Envelope xmlns:s=\"{SOAP}\"><s:Header/></s:Envelope>");
    let stranger = good.replace("</s:Header>", "</s:Header><x/>");
    for document in [two_headers, no_body, stranger] {
        ends(&document);
    }
    // Nothing in front of the body: it has no action, whatever follows.
    assert!(faults_or_ends(&body_first));
}

/// Who looks at a message on its way and who serves it must see the same body: nothing stands behind it.
#[test]
fn s2_nothing_stands_behind_the_body() {
    let interface = remote_object();
    let operation = find(&interface, "InInt");
    // What a servant's skeleton gets of an envelope.
    let arguments = |dialect, payload: &[u8]| {
        let mut pair = serving(dialect, &remote_object());
        pair.hand_over(payload, None)?;
        read(&pair.incoming().body, &operation.arguments)
    };
    let call = "<InInt xmlns=\"http://tempuri.org/\"><x>1</x></InInt>";
    let text = document(ID, call).replace("VoidCall", "InInt");
    assert_eq!(arguments(Dialect::WS, text.as_bytes()).unwrap(), [Arg::Int(1)]);
    // White space and comments are nothing, and elements that others refer to stand in the body.
    for (at, harmless) in
        [("</s:Body>", "<multiRef/>"), ("</s:Body>", " <!--a--><b> c</b>"), ("</s:Envelope>", "\n<!--a-->")]
    {
        let with = text.replace(at, &format!("{harmless}{at}")) + "\n";
        assert_eq!(arguments(Dialect::WS, with.as_bytes()).unwrap(), [Arg::Int(1)], "{with}");
    }
    let second = format!("<s:Body>{}</s:Body>", call.replace('1', "2"));
    for more in [&second, "<s:Header/>", "<x>y</x>", "text", "<s:Body/>"] {
        let with = text.replace("</s:Envelope>", &format!("{more}</s:Envelope>"));
        assert!(
            arguments(Dialect::WS, with.as_bytes()).unwrap_err().to_string().contains("Unbalanced"),
            "{more}"
        );
    }
    for more in ["</s:Envelope>", "</s:Body>", "<x/>", "x"] {
        assert!(arguments(Dialect::WS, format!("{text}{more}").as_bytes()).is_err(), "{more}");
    }
    let mut pair = serving(Dialect::NET_TCP, &remote_object());
    let (_, binary) = pair.start(&remote_object(), "InInt", vec![Arg::Int(1)]);
    assert_eq!(arguments(Dialect::NET_TCP, &binary).unwrap(), [Arg::Int(1)]);
    let (envelope, end) = binary.split_at(binary.len() - 1);
    assert_eq!(end, [0x01]);
    let element = [0x40, 0x01, b'x', 0x01];
    let (body, ends) = binary.split_at(binary.len() - 2);
    assert_eq!(arguments(Dialect::NET_TCP, &[body, &element, ends].concat()).unwrap(), [Arg::Int(1)]);
    for with in [
        [envelope, &element, end].concat(),
        [&binary[..], &element].concat(),
        [&binary[..], &[0x01]].concat(),
    ] {
        assert!(arguments(Dialect::NET_TCP, &with).is_err(), "{with:x?}");
    }
}

fn faults_or_ends(document: &str) -> bool {
    let mut pair = server();
    let result = pair.hand_over(document.as_bytes(), None);
    assert!(pair.server.poll().is_none());
    result.is_err() || pair.server_says().is_some_and(|(flushed, _)| flushed.fault)
}

#[test]
fn s2_envelopes_of_another_version_or_cut_short_end_the_channel() {
    let good = document(ID, CALL);
    ends(&good.replace(SOAP, "http://schemas.xmlsoap.org/soap/envelope/"));
    ends(&good.replace("s:Envelope", "s:Letter"));
    for cut in [1, 20, good.len() / 2, good.len() - 30, good.len() - 1] {
        ends(&good[..cut]);
    }
    ends(&format!("{good}<more/>"));
    ends(&format!("{good}more"));
    ends("");
    ends("no XML at all");
}

#[test]
fn s5_floods_of_attributes_prefixes_headers_and_depth_are_cut_off() {
    let attributes: String = (0..200).map(|n| format!(" a{n}=\"\"")).collect();
    ends(&document(&format!("<h{attributes}/>"), CALL));
    let prefixes: String = (0..60).map(|n| format!(" xmlns:p{n}=\"urn:{n}\"")).collect();
    let nested: String =
        (0..10).map(|n| format!("<h{n}{}>", prefixes.replace(":p", &format!(":p{n}x")))).collect();
    let closed: String = (0..10).rev().map(|n| format!("</h{n}>")).collect();
    ends(&document(&format!("{nested}{closed}"), CALL));
    let headers: String = (0..100).map(|n| format!("<h{n}/>")).collect();
    ends(&document(&headers, CALL));
    let failure = ends(&document(&format!("{}{}", "<h>".repeat(1000), "</h>".repeat(1000)), CALL));
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
    ends(&document(&format!("<{}/>", "n".repeat(100_000)), CALL));
}

#[test]
fn headers_that_must_be_understood_and_are_not_are_named() {
    let demand = "<x:Demand xmlns:x=\"urn:x\" s:mustUnderstand=\"1\"/>";
    let mut pair = server();
    let fault = faults(&mut pair, &document(&format!("{ID}{demand}"), CALL));
    assert!(fault.contains("<s:Value>s:MustUnderstand</s:Value>"), "{fault}");
    assert!(
        fault.contains("NotUnderstood qname=\"n:Demand\" xmlns:n=\"urn:x\"")
            || fault.contains("NotUnderstood xmlns:n=\"urn:x\" qname=\"n:Demand\""),
        "{fault}"
    );
    // Those that are for somebody else, or that may be ignored, are.
    let role = demand.replace("s:mustUnderstand", "s:role=\"urn:other\" s:mustUnderstand");
    let optional = demand.replace("=\"1\"", "=\"0\"");
    for header in [role, optional] {
        pair.hand_over(document(&format!("{ID}{header}"), CALL).as_bytes(), None).unwrap();
        assert_eq!(pair.incoming().operation, ACTION);
    }
    // SOAP 1.1 knows no addressing: there its headers are strangers, too.
    let contract = remote_object();
    let mut basic = serving(Dialect::BASIC, &contract);
    let old = document("", CALL).replace(SOAP, "http://schemas.xmlsoap.org/soap/envelope/");
    let old = old.replace("<a:Action>", "<a:Action s:mustUnderstand=\"1\">");
    let fault = faults_with(&mut basic, &old, ACTION);
    assert!(fault.contains("s:MustUnderstand"), "{fault}");
}

fn faults_with(pair: &mut Pair, document: &str, action: &str) -> String {
    pair.hand_over(document.as_bytes(), Some(action)).unwrap();
    assert!(pair.server.poll().is_none(), "{document}");
    let (flushed, payload) = pair.server_says().expect("a fault");
    assert!(flushed.fault);
    String::from_utf8(payload).unwrap()
}

#[test]
fn n7_messages_to_other_addresses_reach_nobody() {
    for to in [
        "http://localhost:10170/tcp/other",
        "http://localhost:10170/tcp/ro/../other",
        "http://localhost:10170/tcp/ro%00",
        "urn:tcp/ro",
        "tcp/ro",
        "",
    ] {
        let mut pair = server();
        let fault = faults(&mut pair, &document(&format!("{ID}<a:To>{to}</a:To>"), CALL));
        assert!(fault.contains("DestinationUnreachable"), "{to}: {fault}");
    }
    for to in [
        "http://localhost:10170/tcp/ro",
        "http://another.name/TCP/ro/",
        "http://www.w3.org/2005/08/addressing/anonymous",
    ] {
        let mut pair = server();
        pair.hand_over(document(&format!("{ID}<a:To>{to}</a:To>"), CALL).as_bytes(), None).unwrap();
        assert_eq!(pair.incoming().operation, ACTION, "{to}");
    }
}

#[test]
fn a_request_without_an_action_is_refused() {
    let document = document(ID, CALL).replace(&format!("<a:Action>{ACTION}</a:Action>"), "");
    let fault = faults(&mut server(), &document);
    assert!(fault.contains("MessageAddressingHeaderRequired"), "{fault}");
}

/// A head that came before is recognized by its bytes: whatever follows must not change what it means.
#[test]
fn remembered_heads_do_not_let_more_attributes_or_other_bodies_through() {
    let contract = remote_object();
    let mut pair = serving(Dialect::NET_TCP, &contract);
    let mut payloads = Vec::new();
    for _ in 0..3 {
        let (_, payload) = pair.start(&contract, "VoidCall", vec![]);
        pair.hand_over(&payload, None).unwrap();
        pair.incoming();
        payloads.push(payload);
    }
    let good = payloads.pop().unwrap();
    // Cut anywhere, it is refused, though all of its head came before.
    for cut in 1..good.len() {
        let mut fresh = serving(Dialect::NET_TCP, &contract);
        fresh.hand_over(&payloads[0], None).unwrap();
        fresh.incoming();
        assert!(fresh.hand_over(&good[..cut], None).is_err(), "{cut} of {}", good.len());
        assert!(fresh.server.poll().is_none());
    }
    // An attribute more, mustUnderstand on the body: read anew, not by its beginning.
    let mut longer = good[..good.len() - 3].to_vec();
    longer.extend_from_slice(b"\x04\x01x\x82\x01\x01\x01");
    pair.hand_over(&longer, None).unwrap();
    assert_eq!(pair.incoming().operation, ACTION);
    longer.extend_from_slice(b"\x01");
    pair.hand_over(&longer, None).unwrap_err();
}

#[test]
fn remembered_heads_hold_for_their_object_only() {
    let contract = remote_object();
    let mut pair = server();
    let good = document(&format!("{ID}<a:To>http://localhost:10170/tcp/ro</a:To>"), CALL);
    pair.hand_over(good.as_bytes(), None).unwrap();
    pair.incoming();
    pair.key = Bytes::from_static(b"tcp/other");
    let fault = faults(&mut pair, &good);
    assert!(fault.contains("DestinationUnreachable"), "{fault}");
    // Nor does a remembered head pass for one with another action around it.
    let mut basic = serving(Dialect::BASIC, &contract);
    let body = format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{CALL}</s:Body></s:Envelope>"
    );
    basic.hand_over(body.as_bytes(), Some(ACTION)).unwrap();
    assert_eq!(basic.incoming().operation, ACTION);
    basic.hand_over(body.as_bytes(), Some("urn:other")).unwrap();
    assert_eq!(basic.incoming().operation, "urn:other");
}

#[test]
fn n3_words_of_the_session_are_bounded_and_must_exist() {
    let contract = remote_object();
    let (_, good) = Pair::new(Dialect::NET_TCP).start(&contract, "VoidCall", vec![]);
    // The same words again and again: each table counts.
    let mut pair = serving(Dialect::NET_TCP, &contract);
    let mut refused = 0;
    for _ in 0..100 {
        refused += usize::from(pair.hand_over(&good, None).is_err());
        while pair.server.poll().is_some() {}
    }
    assert!(refused >= 70, "{refused}");
    // A document whose words were never told.
    let table = usize::from(good[0]);
    let mut bare = vec![0];
    bare.extend_from_slice(&good[1 + table..]);
    let mut pair = serving(Dialect::NET_TCP, &contract);
    pair.hand_over(&bare, None).unwrap_err();
}

#[test]
fn n8_callbacks_that_nobody_asked_for_are_dropped() {
    let (contract, _) = hello();
    let mut pair = Pair::new(Dialect::NET_TCP);
    let signal = &contract.signals[0];
    pair.call(
        &contract,
        "SayHello",
        vec![Arg::Said("hi".into())],
        Answer::Done(&List(&find(&contract, "SayHello").results, vec![])),
    );
    for number in 0..1000 {
        let arguments = List(&signal.fields, vec![Arg::Said(number.to_string())]);
        let mut out = SendBuffer::new();
        let call = Call {
            profile: &Profile::default(),
            method: Method::Typed {
                interface: None,
                operation: &signal.sink.as_ref().unwrap().0.operations[0],
            },
            arguments: &arguments,
            expects: Expects::Nothing,
        };
        pair.server.start(pair.now, &call, &mut out).unwrap();
        pair.bring_back(&out.to_vec()).unwrap();
    }
    assert!(pair.client.poll().is_none());
    assert!(pair.client_says().is_none());
    assert_eq!(pair.client.outstanding(), 0);
}

#[test]
fn answers_that_demand_more_than_is_understood_fail_their_call() {
    let contract = remote_object();
    let mut pair = serving(Dialect::WS, &contract);
    let (started, payload) = pair.start(&contract, "VoidCall", vec![]);
    let text = String::from_utf8(payload).unwrap();
    let id = text.split_once("urn:uuid:").unwrap().1.split_once('<').unwrap().0;
    let reply = document(
        &format!(
            "<a:RelatesTo>urn:uuid:{id}</a:RelatesTo><x:D xmlns:x=\"urn:x\" s:mustUnderstand=\"true\"/>"
        ),
        "<VoidCallResponse xmlns=\"http://tempuri.org/\"/>",
    );
    pair.bring_back(reply.as_bytes()).unwrap();
    let (answered, outcome) = pair.outcome();
    assert_eq!(answered, started.id);
    assert!(matches!(outcome, Outcome::Failed(failure) if failure.message().contains("{urn:x}D")));
}

/// Whatever one byte of a message of Microsoft's is turned into, it is taken, answered with a fault, or ends the channel.
#[test]
fn messages_with_any_byte_changed_do_no_harm() {
    let (contract, _) = hello();
    let mut changed = 0;
    for envelope in common::envelopes() {
        if !envelope.capture.starts_with("msclient-tcp-") || envelope.payload.len() > 400 {
            continue;
        }
        for at in 0..envelope.payload.len() {
            for value in [0x00, 0x01, 0x7f, 0xff, envelope.payload[at] ^ 0x01, envelope.payload[at] ^ 0x40] {
                let mut payload = envelope.payload.clone();
                payload[at] = value;
                let mut pair = serving(Dialect::NET_TCP, &contract);
                // The second one meets what the first was remembered by.
                for _ in 0..2 {
                    if envelope.side == "C" {
                        let _ = pair.hand_over(&payload, None);
                    } else {
                        let _ = pair.bring_back(&payload);
                    }
                    while pair.server.poll().is_some() {}
                    while pair.server_says().is_some() {}
                    while pair.client.poll().is_some() {}
                    while pair.client_says().is_some() {}
                }
                changed += 1;
            }
        }
    }
    let good =
        document(&format!("{ID}<a:To s:mustUnderstand=\"1\">http://localhost:10170/tcp/ro</a:To>"), CALL);
    for at in 0..good.len() {
        for value in *b"\0<>&\"'/ :=\xff" {
            let mut payload = good.clone().into_bytes();
            payload[at] = value;
            let mut pair = server();
            let _ = pair.hand_over(&payload, None);
            while pair.server.poll().is_some() {}
            while pair.server_says().is_some() {}
            changed += 1;
        }
    }
    assert!(changed > 10_000, "{changed}");
}

/// A channel knows so many operations; beyond them one takes the place of another, and what was known of that is forgotten.
#[test]
fn n4_an_operation_that_took_the_place_of_another_is_not_taken_for_it() {
    let (contract, _) = hello();
    let mut pair = serving(Dialect::NET_TCP, &contract);
    pair.key = Bytes::from_static(KEY.as_bytes());
    let callbacks: Vec<Operation> = (0..1025).map(|_| operation("OnHello", vec![], Shape::Void)).collect();
    let profile = pair.profile.clone();
    let call_back = |pair: &mut Pair, operation: &Operation| {
        let method = Method::Typed { interface: None, operation };
        let call = Call { profile: &profile, method, arguments: &visit::Nothing, expects: Expects::Nothing };
        let mut out = SendBuffer::new();
        pair.server.start(pair.now, &call, &mut out).unwrap();
        pair.bring_back(&out.to_vec()).unwrap();
        while pair.client.poll().is_some() {}
    };
    let called = |pair: &mut Pair| {
        let (_, message) = pair.start(&contract, "Subscribe", vec![]);
        pair.hand_over(&message, None).unwrap();
        let call = pair.incoming();
        let (_, answer) = pair.answer(call.id, Answer::Done(&visit::Nothing));
        pair.bring_back(&answer).unwrap();
        assert!(matches!(pair.outcome().1, Outcome::Done(_)));
        answer
    };
    callbacks[..1023].iter().for_each(|operation| call_back(&mut pair, operation));
    let answers: Vec<_> = (0..3).map(|_| called(&mut pair)).collect();
    assert!(position(&answers[0], b"SubscribeResponse").is_some());
    call_back(&mut pair, &callbacks[1024]);
    // Its answer is that of the operation that was called, by the words that the client knows.
    assert_eq!(called(&mut pair).len(), answers[2].len());
}

/// Text that XML cannot hold is not written into a header, as little as into a body.
#[test]
fn a_header_holds_characters_of_xml_only() {
    let contract = remote_object();
    let operation = find(&contract, "VoidCall");
    for (dialect, text) in
        [Dialect::WS, Dialect::NET_TCP].iter().flat_map(|d| ["\u{1}", "a\u{ffff}b"].map(|t| (*d, t)))
    {
        let mut pair = serving(dialect, &contract);
        let mut headers = Headers::default();
        headers.add(Header::text("{urn:k}Trace", text));
        let call = Call {
            profile: &pair.profile,
            method: Method::Typed { interface: Some(&contract), operation },
            arguments: &visit::WithHeaders { values: &visit::Nothing, headers: &headers },
            expects: Expects::Reply,
        };
        let mut out = SendBuffer::new();
        let failure = pair.client.start(pair.now, &call, &mut out).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
        assert!(out.is_empty());
    }
}
