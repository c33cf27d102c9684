//! Envelopes between our client and our server, and against what Microsoft's client wrote.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::soap_support::*;
use bytes::Bytes;
use everywire_model::visit::{Nothing, Sink};
use everywire_model::*;
use everywire_wcf::soap::Dialect;

/// The identifiers of two messages are whatever each side made of chance.
fn without_ids(payload: &[u8]) -> Vec<u8> {
    let mut bytes = payload.to_vec();
    for mark in [&b"\x44\x1a\xad"[..], b"\x44\x12\xad"] {
        if let Some(at) = position(&bytes, mark) {
            bytes[at + 3..at + 19].fill(0);
        }
    }
    bytes
}

/// The captured payloads of a direction.
fn captured(capture: &str, side: &str) -> Vec<Vec<u8>> {
    let all = common::envelopes();
    let held = all.into_iter().filter(|held| held.capture == capture && held.side == side);
    held.map(|held| held.payload).collect()
}

#[test]
fn binary_requests_are_those_of_microsofts_client() {
    let contract = remote_object();
    let said = |text: &str| vec![Arg::Said(text.into())];
    let cases: [(&str, &str, Vec<Arg>); 7] = [
        ("msclient-tcp-VoidCall", "VoidCall", vec![]),
        ("msclient-tcp-InInt", "InInt", vec![Arg::Int(300)]),
        ("msclient-tcp-OutInt", "OutInt", vec![]),
        ("msclient-tcp-InOutInt", "InOutInt", vec![Arg::Int(5)]),
        ("msclient-tcp-InString", "InString", said("abc")),
        ("msclient-tcp-OutString", "OutString", vec![]),
        ("msclient-tcp-InOutString", "InOutString", said("abc")),
    ];
    let mut compared = 0;
    for (capture, name, args) in cases {
        let sent = captured(capture, "C");
        let Some(first) = sent.first() else { panic!("{capture} has no envelope") };
        let uri = position(first, b"net.tcp://").unwrap();
        let port = &first[uri + 10..uri + 25];
        let authority = String::from_utf8(port.to_vec()).unwrap();
        let mut pair = Pair::with(Dialect::NET_TCP, &Config::default(), |settings| {
            settings.authority.clone_from(&authority)
        });
        let (_, payload) = pair.start(&contract, name, args);
        assert_eq!(without_ids(&payload), without_ids(first), "{capture}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

/// The payloads of one connection with the same port in their address.
fn authority(payload: &[u8]) -> String {
    let at = position(payload, b"net.tcp://").unwrap() + 10;
    let end = payload[at..].iter().position(|byte| *byte == b'/').unwrap();
    String::from_utf8(payload[at..at + end].to_vec()).unwrap()
}

#[test]
fn a_whole_connection_is_written_as_microsofts_client_wrote_it() {
    let contract = remote_object();
    let sent = captured("msclient-tcp-Void3", "C");
    let authority = authority(&sent[0]);
    let change = |settings: &mut everywire_wcf::settings::Settings| settings.authority.clone_from(&authority);
    let mut pair = Pair::with(Dialect::NET_TCP, &Config::default(), change);
    let calls = [("VoidCall", vec![]), ("VoidCall", vec![]), ("InInt", vec![Arg::Int(1)])];
    for ((name, args), expected) in calls.into_iter().zip(&sent) {
        let (_, payload) = pair.start(&contract, name, args);
        assert_eq!(without_ids(&payload), without_ids(expected), "{name}");
    }
}

/// Microsoft's client, and .NET Framework on both sides: their requests are understood, and answered with what the other
/// side of the capture said where it was .NET.
#[test]
fn dotnet_framework_is_answered_as_it_answered_itself() {
    let string = |name| parameter(Direction::In, name, text());
    let contract = interface(
        "{urn:DemoService}IDemoService",
        vec![operation("Echo", vec![string("text")], text())],
        vec![],
    );
    let ours = wire_state(contract.clone(), "Demo");
    let config = Config { wire_state: Some(ours), ..Config::default() };
    let mut pair = Pair::with(Dialect::NET_TCP, &config, |_| {});
    pair.key = Bytes::from_static(b"Demo");
    let all = common::envelopes();
    let held = all.iter().filter(|held| held.capture == "real-dotnet-nettcp-none");
    let (asked, answered): (Vec<_>, Vec<_>) = held.partition(|held| held.side == "C");
    assert_eq!((asked.len(), answered.len()), (2, 2));
    for (index, (request, reply)) in asked.iter().zip(&answered).enumerate() {
        pair.hand_over(&request.payload, None).unwrap();
        let incoming = pair.incoming();
        assert_eq!(incoming.operation, "urn:DemoService/IDemoService/Echo");
        let operation = &contract.operations[0];
        let heard = Arg::Said(format!("hello{index}"));
        assert_eq!(read(&incoming.body, &operation.arguments).unwrap(), std::slice::from_ref(&heard));
        let results = List(&operation.results, vec![heard]);
        let (_, payload) = pair.answer(incoming.id, Answer::Done(&results));
        assert_eq!(payload, reply.payload, "reply {index}");
    }
}

#[test]
fn calls_go_there_and_back_in_every_dialect() {
    let contract = remote_object();
    let operation = find(&contract, "InOutString");
    for dialect in DIALECTS {
        let mut pair = serving(dialect, &contract);
        for round in 0..3 {
            let said = Arg::Said(format!("round <{round}> & more"));
            let results = List(&operation.results, vec![said.clone()]);
            let (incoming, outcome) =
                pair.call(&contract, "InOutString", vec![said.clone()], Answer::Done(&results));
            assert_eq!(incoming.operation, "http://tempuri.org/IRemoteObject/InOutString");
            assert_eq!(incoming.key, KEY);
            assert_eq!(incoming.expects, Expects::Reply);
            assert_eq!(read(&incoming.body, &operation.arguments).unwrap(), std::slice::from_ref(&said));
            let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
            assert_eq!(read(&body, &operation.results).unwrap(), [said]);
        }
    }
}

#[test]
fn large_octets_are_not_copied_but_spliced() {
    let contract = remote_object();
    let operation = find(&contract, "GetBytes");
    let octets = vec![7; 1_000_000];
    let mut pair = serving(Dialect::NET_TCP, &contract);
    let results = List(&operation.results, vec![Arg::Octets(octets.clone())]);
    let (_, outcome) = pair.call(&contract, "GetBytes", vec![Arg::Int(1_000_000)], Answer::Done(&results));
    let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
    assert_eq!(read(&body, &operation.results).unwrap(), [Arg::Octets(octets)]);
}

#[test]
fn declared_faults_come_back_as_the_exceptions_they_are() {
    let mut contract = remote_object();
    let mut operations = contract.operations.to_vec();
    operations[2].raises = vec![exception()].into();
    contract.operations = operations.into();
    let broken = exception();
    for dialect in DIALECTS {
        let mut pair = serving(dialect, &contract);
        let fields = |sink: &mut dyn Sink| {
            let shape = Shape::Struct(exception());
            sink.open(&shape, 2)?;
            sink.i32(42)?;
            sink.text(&shape::Text::WIDE, "it <broke>")?;
            sink.close(&shape)
        };
        let raised = Answer::Raised { shape: &broken, fields: &fields };
        let (_, outcome) = pair.call(&contract, "VoidCall", vec![], raised);
        let Outcome::Raised(raised) = outcome else { panic!("{outcome:?}") };
        let Raised { id, body, .. } = *raised;
        assert_eq!(id, broken.id, "{dialect:?}");
        let shape = Shape::Struct(exception());
        let said = body
            .read(|source| {
                source.open(&shape)?;
                let said = (source.i32()?, source.text(&shape::Text::WIDE)?.into_owned());
                source.close(&shape)?;
                Ok(said)
            })
            .unwrap();
        assert_eq!(said, (42, "it <broke>".to_owned()), "{dialect:?}");
    }
}

#[test]
fn failures_keep_their_kind_and_say_their_code() {
    let contract = remote_object();
    let addressing = "{http://www.w3.org/2005/08/addressing}";
    let dispatcher = "{http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher}";
    let cases = [
        (Kind::NoOperation, format!("{addressing}ActionNotSupported")),
        (Kind::NoObject, format!("{addressing}DestinationUnreachable")),
        (Kind::Busy, format!("{addressing}EndpointUnavailable")),
        (Kind::BadArgument, format!("{dispatcher}DeserializationFailed")),
        (Kind::Internal, format!("{dispatcher}InternalServiceFault")),
        (Kind::TimedOut, "{urn:everywire:failure}timed-out".to_owned()),
        (Kind::Unsupported, "{urn:everywire:failure}unsupported".to_owned()),
    ];
    for dialect in DIALECTS {
        for (kind, code) in &cases {
            let mut pair = serving(dialect, &contract);
            let failure = Failure::new(*kind, Initiator::Peer, "why <not>");
            let (_, outcome) = pair.call(&contract, "VoidCall", vec![], Answer::Failed(&failure));
            let Outcome::Failed(back) = outcome else { panic!("{outcome:?}") };
            assert_eq!((back.kind(), back.code()), (*kind, Some(&**code)), "{dialect:?}");
            if code.ends_with("InternalServiceFault") {
                // The option as the address has it.
                assert!(back.hint().is_some_and(|hint| hint.contains("`details=on`")), "{back:?}");
            }
        }
    }
}

/// Codes that promise that nothing was done are not those of a servant that may have begun.
/// A servant's own words (PHP's `new SoapFault("ActionNotSupported", ...)`), and a code that WCF hands on from another service.
#[test]
fn a_fault_that_a_servant_may_throw_promises_nothing() {
    let contract = remote_object();
    let dispatcher = "http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher";
    for code in ["ActionNotSupported", "MustUnderstand", "d:DeserializationFailed"] {
        let mut pair = serving(Dialect::BASIC, &contract);
        pair.start(&contract, "VoidCall", vec![]);
        let fault = format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:d=\"{dispatcher}\"><s:Body><s:Fault>\
             <faultcode>{code}</faultcode><faultstring>no</faultstring></s:Fault></s:Body></s:Envelope>"
        );
        pair.bring_back(fault.as_bytes()).unwrap();
        let (_, Outcome::Failed(failure)) = pair.outcome() else { panic!("{code}") };
        assert_eq!(failure.completed(), Completed::Maybe, "{code}: {failure}");
    }
}

#[test]
fn a_servants_own_code_travels_and_internal_errors_are_told_only_when_asked_for() {
    let contract = remote_object();
    for (detail, told) in [(false, false), (true, true)] {
        let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
        let mut pair = Pair::with(Dialect::WS, &config, |settings| settings.exception_detail = detail);
        let failure = Failure::new(Kind::Internal, Initiator::Here, "the disk is full");
        let (_, outcome) = pair.call(&contract, "VoidCall", vec![], Answer::Failed(&failure));
        let Outcome::Failed(back) = outcome else { panic!("{outcome:?}") };
        assert_eq!(back.message().contains("the disk is full"), told);
        let failure =
            Failure::new(Kind::Internal, Initiator::User, "no such ticket").with_code("{urn:shop}NoTicket");
        let (_, outcome) = pair.call(&contract, "VoidCall", vec![], Answer::Failed(&failure));
        let Outcome::Failed(back) = outcome else { panic!("{outcome:?}") };
        assert_eq!((back.message(), back.code()), ("no such ticket", Some("{urn:shop}NoTicket")));
    }
}

#[test]
fn results_that_do_not_encode_become_a_fault() {
    let contract = remote_object();
    let mut pair = serving(Dialect::NET_TCP, &contract);
    let (started, payload) = pair.start(&contract, "VoidCall", vec![]);
    pair.hand_over(&payload, None).unwrap();
    let incoming = pair.incoming();
    let broken = |_: &mut dyn Sink| Err(Failure::new(Kind::Unsupported, Initiator::Here, "no"));
    let mut out = SendBuffer::new();
    pair.server.answer(incoming.id, Answer::Done(&broken), &mut out).unwrap_err();
    pair.bring_back(&out.to_vec()).unwrap();
    let (id, outcome) = pair.outcome();
    assert_eq!(id, started.id);
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    // What was not sent has left no word behind.
    let (_, outcome) = pair.call(
        &contract,
        "VoidCall",
        vec![],
        Answer::Done(&List(&find(&contract, "VoidCall").results, vec![])),
    );
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

#[test]
fn one_way_calls_are_not_answered() {
    let mut contract = remote_object();
    let mut operations = contract.operations.to_vec();
    operations[2].oneway = true;
    contract.operations = operations.into();
    for dialect in DIALECTS {
        let mut pair = serving(dialect, &contract);
        let (started, payload) = pair.start(&contract, "VoidCall", vec![]);
        assert_eq!(position(&payload, b"MessageID"), None);
        pair.hand_over(&payload, started.action.as_deref()).unwrap();
        let incoming = pair.incoming();
        assert_eq!(incoming.expects, Expects::Nothing, "{dialect:?}");
        let (answered, payload) = pair.answer(incoming.id, Answer::Done(&Nothing));
        assert!(!answered.sends && payload.is_empty());
        assert_eq!(pair.client.outstanding() + pair.server.outstanding(), 0);
    }
}

#[test]
fn answers_find_their_calls_in_any_order() {
    let contract = remote_object();
    let operation = find(&contract, "InOutInt");
    for dialect in [Dialect::NET_TCP, Dialect::BINARY, Dialect::WS] {
        let mut pair = serving(dialect, &contract);
        let mut held = Vec::new();
        for number in 0..5 {
            let (started, payload) = pair.start(&contract, "InOutInt", vec![Arg::Int(number)]);
            pair.hand_over(&payload, None).unwrap();
            held.push((started.id, pair.incoming().id, number));
        }
        assert_eq!(pair.client.outstanding(), 5);
        for (started, incoming, number) in [held[3], held[0], held[4], held[2], held[1]] {
            let results = List(&operation.results, vec![Arg::Int(number)]);
            let (_, payload) = pair.answer(incoming, Answer::Done(&results));
            pair.bring_back(&payload).unwrap();
            let (id, outcome) = pair.outcome();
            assert_eq!(id, started);
            let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
            assert_eq!(read(&body, &operation.results).unwrap(), [Arg::Int(number)]);
        }
        assert_eq!(pair.client.outstanding() + pair.server.outstanding(), 0);
    }
}

#[test]
fn answers_to_nobody_are_dropped() {
    let contract = remote_object();
    let mut pair = serving(Dialect::NET_TCP, &contract);
    let (started, payload) = pair.start(&contract, "VoidCall", vec![]);
    let (_, second) = pair.start(&contract, "VoidCall", vec![]);
    pair.hand_over(&payload, None).unwrap();
    pair.hand_over(&second, None).unwrap();
    let incoming = pair.incoming();
    pair.client.cancel(started.id);
    let (_, payload) = pair.answer(incoming.id, Answer::Done(&Nothing));
    pair.bring_back(&payload).unwrap();
    assert!(pair.client.poll().is_none());
    let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "gone");
    pair.client.disconnected(&failure);
    let (_, outcome) = pair.outcome();
    assert!(matches!(outcome, Outcome::Failed(failure) if failure.kind() == Kind::Unreachable));
    assert!(pair.client.poll().is_none());
}

#[test]
fn callbacks_reach_those_who_subscribed_and_nobody_else() {
    let (contract, _) = hello();
    let mut pair = serving(Dialect::NET_TCP, &contract);
    let nothing = List(&find(&contract, "Subscribe").results, vec![]);
    let told = pair
        .client
        .subscribe(&pair.profile.clone(), SignalFilter { interface: Some(&contract), signal: None });
    assert_eq!(pair.outcome().0, told);
    let signal = contract.signals[0].clone();
    let emit = |pair: &mut Pair, text: &str| {
        let arguments = List(&signal.fields, vec![Arg::Said(text.into())]);
        let topic = Topic::Typed { interface: &contract, signal: &signal };
        let emission = Emission { key: KEY.as_bytes(), topic, arguments: &arguments };
        let mut out = SendBuffer::new();
        let sends = pair.server.emit(pair.now, &emission, &mut out).unwrap();
        assert_eq!(sends, !out.is_empty());
        sends.then(|| out.to_vec())
    };
    assert_eq!(emit(&mut pair, "too early"), None);
    pair.call(&contract, "Subscribe", vec![], Answer::Done(&nothing));
    let first = emit(&mut pair, "hi").unwrap();
    assert!(position(&first, b"http://tempuri.org/IHello/OnHello").is_some());
    for (payload, text) in [(first, "hi"), (emit(&mut pair, "again").unwrap(), "again")] {
        pair.bring_back(&payload).unwrap();
        let Some(Event::Signal { subscriptions, heard }) = pair.client.poll() else {
            panic!("a signal was expected")
        };
        assert_eq!(
            (subscriptions, &*heard.operation, &*heard.key),
            (vec![told], &b"OnHello"[..], KEY.as_bytes())
        );
        assert_eq!(read(&heard.body, &signal.fields).unwrap(), [Arg::Said(text.into())]);
    }
    pair.call(&contract, "Unsubscribe", vec![], Answer::Done(&nothing));
    assert_eq!(emit(&mut pair, "too late"), None);
}

#[test]
fn a_captured_duplex_session_is_understood() {
    let (contract, callbacks) = hello();
    let mut pair = serving(Dialect::NET_TCP, &contract);
    pair.key = Bytes::from_static(b"tcp/hello");
    for payload in captured("msclient-tcp-duplex", "C") {
        pair.hand_over(&payload, None).unwrap();
    }
    let mut asked = Vec::new();
    while let Some(event) = pair.server.poll() {
        let Event::Call(incoming) = event else { panic!("{event:?}") };
        asked.push(String::from_utf8(incoming.operation.to_vec()).unwrap());
    }
    let expected = ["Subscribe", "SayHello", "AskBack", "Unsubscribe"]
        .map(|name| format!("http://tempuri.org/IHello/{name}"));
    assert_eq!(asked, expected);
    // The other direction: callbacks of Mono's server.
    let profile = pair.profile.clone();
    pair.client.subscribe(&profile, SignalFilter { interface: Some(&contract), signal: None });
    pair.client.poll();
    let said = captured("msclient-tcp-duplex", "S");
    let mut signals = 0;
    for payload in said {
        pair.bring_back(&payload).unwrap();
        while let Some(event) = pair.client.poll() {
            let Event::Signal { heard, .. } = event else { panic!("{event:?}") };
            assert_eq!(
                read(&heard.body, &callbacks.operations[0].arguments).unwrap(),
                [Arg::Said("hi".into())]
            );
            signals += 1;
        }
    }
    assert_eq!(signals, 1);
    // Nobody serves the question it asks: it is told so.
    let (flushed, _) = pair.client_says().unwrap();
    assert!(flushed.fault);
}

#[test]
fn two_way_callbacks_are_calls() {
    let (_, callbacks) = hello();
    let config =
        Config { wire_state: Some(wire_state((*callbacks).clone(), "listener")), ..Config::default() };
    let mut pair = Pair::with(Dialect::NET_TCP, &config, |_| {});
    let operation = find(&callbacks, "Ask");
    for round in 0..2 {
        let arguments = List(&operation.arguments, vec![Arg::Int(20)]);
        let profile = Profile::default();
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: Some(&callbacks), operation },
            arguments: &arguments,
            expects: Expects::Reply,
        };
        let mut out = SendBuffer::new();
        let started = pair.server.start(pair.now, &call, &mut out).unwrap();
        assert_eq!(started.action, None, "only HTTP has a place for it outside the envelope");
        pair.bring_back(&out.to_vec()).unwrap();
        let Some(Event::Call(incoming)) = pair.client.poll() else { panic!("a call was expected") };
        assert_eq!((&*incoming.key, incoming.expects), (&b"listener"[..], Expects::Reply));
        assert_eq!(&*incoming.operation, b"http://tempuri.org/IHello/Ask");
        let results = List(&operation.results, vec![Arg::Int(40 + round)]);
        let mut out = SendBuffer::new();
        pair.client.answer(incoming.id, Answer::Done(&results), &mut out).unwrap();
        pair.hand_over(&out.to_vec(), None).unwrap();
        let Some(Event::Reply { id, outcome: Outcome::Done(body) }) = pair.server.poll() else {
            panic!("an answer was expected")
        };
        assert_eq!(id, started.id);
        assert_eq!(read(&body, &operation.results).unwrap(), [Arg::Int(40 + round)]);
    }
}

#[test]
fn text_requests_are_those_of_microsofts_client() {
    let contract = remote_object();
    let body = "<InOutInt xmlns=\"http://tempuri.org/\"><x>5</x></InOutInt>";
    let mut basic = Pair::new(Dialect::BASIC);
    let (started, payload) = basic.start(&contract, "InOutInt", vec![Arg::Int(5)]);
    let expected = format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{body}</s:Body></s:Envelope>"
    );
    assert_eq!(String::from_utf8(payload).unwrap(), expected);
    assert_eq!(started.action.as_deref(), Some("http://tempuri.org/IRemoteObject/InOutInt"));
    let mut ws =
        Pair::with(Dialect::WS, &Config::default(), |settings| settings.authority = "localhost:10220".into());
    let (_, payload) = ws.start(&contract, "InOutInt", vec![Arg::Int(5)]);
    let payload = String::from_utf8(payload).unwrap();
    let id = payload.split_once("urn:uuid:").unwrap().1.split_once('<').unwrap().0;
    assert_eq!(id.len(), 36);
    let expected = format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:a=\"http://www.w3.org/2005/08/addressing\">\
         <s:Header><a:Action s:mustUnderstand=\"1\">http://tempuri.org/IRemoteObject/InOutInt</a:Action>\
         <a:MessageID>urn:uuid:{id}</a:MessageID><a:ReplyTo><a:Address>http://www.w3.org/2005/08/addressing/anonymous\
         </a:Address></a:ReplyTo><a:To s:mustUnderstand=\"1\">http://localhost:10220/tcp/ro</a:To></s:Header>\
         <s:Body>{body}</s:Body></s:Envelope>"
    );
    assert_eq!(payload, expected);
}

/// Whatever other stacks write: other prefixes, other order, a declaration, comments, white space, text for records.
#[test]
fn requests_of_strangers_are_understood_and_answered_in_their_notation() {
    let contract = remote_object();
    let document = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- hello -->\n<soap-env:Envelope\n \
        xmlns:soap-env='http://www.w3.org/2003/05/soap-envelope'>\n  <soap-env:Header xmlns:wsa='http://www.w3.org/2005/08/addressing'>\n \
        <x:Trace xmlns:x='urn:x'><x:Deep/></x:Trace><wsa:MessageID>  urn:uuid:0000AAAA-0000-0000-0000-000000000001 </wsa:MessageID>\n \
        <wsa:To>http://localhost:10170/TCP/ro</wsa:To><!-- c --><wsa:Action>\n http://tempuri.org/IRemoteObject/InOutInt </wsa:Action></soap-env:Header>\n \
        <soap-env:Body><ns0:InOutInt xmlns:ns0='http://tempuri.org/'><ns0:x> 5 </ns0:x></ns0:InOutInt></soap-env:Body>\n</soap-env:Envelope>\n";
    let mut pair = serving(Dialect::WS, &contract);
    for _ in 0..2 {
        pair.hand_over(document.as_bytes(), None).unwrap();
        let incoming = pair.incoming();
        assert_eq!(incoming.operation, "http://tempuri.org/IRemoteObject/InOutInt");
        let operation = find(&contract, "InOutInt");
        assert_eq!(read(&incoming.body, &operation.arguments).unwrap(), [Arg::Int(5)]);
        let (_, payload) =
            pair.answer(incoming.id, Answer::Done(&List(&operation.results, vec![Arg::Int(6)])));
        let reply = String::from_utf8(payload).unwrap();
        assert!(
            reply.contains("<a:RelatesTo>urn:uuid:0000AAAA-0000-0000-0000-000000000001</a:RelatesTo>"),
            "{reply}"
        );
    }
}

#[test]
fn basic_requests_without_an_action_are_known_by_their_first_element() {
    let contract = remote_object();
    let document = b"<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><t:VoidCall \
        xmlns:t=\"http://tempuri.org/\"/></e:Body></e:Envelope>";
    let mut pair = serving(Dialect::BASIC, &contract);
    for _ in 0..2 {
        pair.hand_over(document, Some("")).unwrap();
        let incoming = pair.incoming();
        assert_eq!(incoming.operation, "{http://tempuri.org/}VoidCall");
        assert_eq!(everywire_wcf::plan::index_of(&contract, &incoming.operation), Some(2));
        let (_, payload) =
            pair.answer(incoming.id, Answer::Done(&List(&find(&contract, "VoidCall").results, vec![])));
        assert!(position(&payload, b"VoidCallResponse").is_some());
    }
}

#[test]
fn too_many_calls_are_refused_on_either_side() {
    let contract = remote_object();
    let mut config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    config.limits.outstanding = 2;
    let mut pair = Pair::with(Dialect::NET_TCP, &config, |_| {});
    let mut last = Vec::new();
    for _ in 0..2 {
        last = pair.start(&contract, "VoidCall", vec![]).1;
        pair.hand_over(&last, None).unwrap();
    }
    let call = Call {
        profile: &pair.profile,
        method: Method::Typed { interface: Some(&contract), operation: find(&contract, "VoidCall") },
        arguments: &Nothing,
        expects: Expects::Reply,
    };
    let failure = pair.client.start(pair.now, &call, &mut SendBuffer::new()).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    pair.hand_over(&last, None).unwrap();
    let (flushed, payload) = pair.server_says().unwrap();
    assert!(flushed.fault && position(&payload, b"EndpointUnavailable").is_some());
}

/// Routers (Mono's and WCF's) pass on where a message goes and what it asks for as headers that must be understood, in the namespace of
/// messages without addressing.
#[test]
fn headers_of_messages_without_addressing_are_understood() {
    const NONE: &str = "http://schemas.microsoft.com/ws/2005/05/addressing/none";
    const ACTION: &str = "http://tempuri.org/IRemoteObject/InOutInt";
    let contract = remote_object();
    let request = |headers: &str| {
        format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header>{headers}</s:Header><s:Body>\
             <InOutInt xmlns=\"http://tempuri.org/\"><x>5</x></InOutInt></s:Body></s:Envelope>"
        )
    };
    let header =
        |name: &str, value: &str| format!("<{name} s:mustUnderstand=\"1\" xmlns=\"{NONE}\">{value}</{name}>");
    let to = header("To", "http://localhost:10170/ro");
    let action = header("Action", ACTION);
    for (headers, outside) in
        [(&to, Some(ACTION)), (&format!("{to}{action}"), Some(ACTION)), (&action, None), (&action, Some(""))]
    {
        let mut pair = serving(Dialect::BASIC, &contract);
        pair.hand_over(request(headers).as_bytes(), outside).unwrap();
        let incoming = pair.incoming();
        assert_eq!(incoming.operation, ACTION, "{headers}");
        let arguments = &find(&contract, "InOutInt").arguments;
        assert_eq!(read(&incoming.body, arguments).unwrap(), [Arg::Int(5)]);
    }
    // Nothing else is known of that namespace, and nothing of it where messages have addressing.
    let mut refused = vec![(Dialect::BASIC, request(&header("ReplyTo", "x")))];
    let ws = request(&format!(
        "<a:Action xmlns:a=\"http://www.w3.org/2005/08/addressing\">{ACTION}</a:Action>\
         <a:MessageID xmlns:a=\"http://www.w3.org/2005/08/addressing\">urn:m1</a:MessageID>{to}"
    ));
    refused.push((
        Dialect::WS,
        ws.replace("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"),
    ));
    for (dialect, document) in refused {
        let mut pair = serving(dialect, &contract);
        pair.hand_over(document.as_bytes(), Some(ACTION)).unwrap();
        assert!(pair.server.poll().is_none(), "{document}");
        let (flushed, payload) = pair.server_says().expect("a fault");
        let fault = String::from_utf8(payload).unwrap();
        assert!(flushed.fault && fault.contains("MustUnderstand"), "{fault}");
    }
    // Two that say different things are not chosen from.
    let mut pair = serving(Dialect::BASIC, &contract);
    let two = format!("{action}{}", header("Action", "urn:other"));
    pair.hand_over(request(&two).as_bytes(), Some(ACTION)).unwrap();
    assert!(pair.server.poll().is_none() && pair.server_says().is_some_and(|(flushed, _)| flushed.fault));
}
