//! A client session and a server session, tied together in memory.

#![allow(clippy::unwrap_used)]

use crate::support;
use crate::support::*;
use everywire_giop::{GIOP, Giop};
use everywire_model::send_buffer::SPLICE;
use everywire_model::shape::{Field, Struct};
use everywire_model::visit::WithHeaders;
use everywire_model::*;
use std::time::Instant;

#[test]
fn a_call_is_as_small_as_it_can_be() {
    let mut pair = Pair::new(Limits::default());
    // The key of omniORB's default adapter has 14 bytes.
    let profile = profile(&[0xfe; 14]);
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &int() },
        arguments: &put_int(7),
        expects: Expects::Reply,
    };
    for size in [92, 76, 76] {
        let id = pair.client.start(Instant::now(), &call).unwrap();
        assert_eq!(pair.client.transmit().len(), size);
        let Some(Event::Call(incoming)) = pair.forth().unwrap().pop() else { panic!() };
        assert_eq!((&*incoming.operation, &*incoming.key), (&b"in_out_int_call"[..], &[0xfe; 14][..]));
        assert_eq!(value(&Shape::I32, &incoming.body), Value::Integer(7));
        pair.server.answer(incoming.id, Answer::Done(&put_int(8))).unwrap();
        assert_eq!(pair.server.transmit().len(), 28);
        match pair.back().unwrap().pop() {
            Some(Event::Reply { id: of, outcome: Outcome::Done(body) }) => {
                assert_eq!((of, value(&Shape::I32, &body)), (id, Value::Integer(8)));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
}

#[test]
fn every_version_is_answered_in_its_own() {
    for minor in [0, 1, 2] {
        let mut pair = Pair::new(Limits::default());
        let mut profile = profile(b"key");
        profile.version = (1, minor);
        let (id, incoming) = pair.call(&profile, &int(), &put_int(1));
        assert_eq!(&*incoming.key, b"key");
        let before = incoming.id;
        pair.server.answer(before, Answer::Done(&put_int(2))).unwrap();
        assert_eq!(pair.server.transmit().contiguous().unwrap()[5], minor);
        match pair.back().unwrap().pop() {
            Some(Event::Reply { id: of, outcome: Outcome::Done(body) }) => {
                assert_eq!((of, value(&Shape::I32, &body)), (id, Value::Integer(2)));
            }
            other => panic!("{other:?}"),
        }
        // A failure too.
        let (id, incoming) = pair.call(&profile, &int(), &put_int(1));
        let told = Failure::new(Kind::NoOperation, Initiator::Peer, "no such thing");
        let failure = failure(pair.outcome(id, &incoming, Answer::Failed(&told)));
        assert_eq!((failure.kind(), failure.message()), (Kind::NoOperation, "no such thing"));
        // And asking for the object.
        let id = pair.client.probe(Instant::now(), &profile).unwrap();
        let Some(Event::Probe { id: asked, key, .. }) = pair.forth().unwrap().pop() else { panic!() };
        assert_eq!(&*key, b"key");
        pair.server.answer(asked, Answer::Done(&visit::Nothing)).unwrap();
        assert!(
            matches!(pair.back().unwrap().pop(), Some(Event::Reply { id: of, outcome: Outcome::Done(_) }) if of == id)
        );
    }
}

#[test]
fn text_of_all_kinds_arrives() {
    for (shape, said) in [(text(), "Grüße, 世界 🌍"), (wide_text(), "Grüße, 世界 🌍"), (text(), "")]
    {
        let mut pair = Pair::new(Limits::default());
        let operation = in_out("t", shape.clone());
        let said = Value::Text(said.to_owned());
        let put = |sink: &mut dyn Sink| said.encode(&shape, sink);
        let (id, incoming) = pair.call(&profile(b"k"), &operation, &put);
        assert_eq!(value(&shape, &incoming.body), said);
        match pair.outcome(id, &incoming, Answer::Done(&put)) {
            Outcome::Done(body) => assert_eq!(value(&shape, &body), said),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn exceptions_of_the_contract_keep_identity_and_fields() {
    let mut pair = Pair::new(Limits::default());
    let (id, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
    let fields =
        vec![Field { name: "why".into(), shape: text() }, Field { name: "code".into(), shape: Shape::F64 }];
    let shape =
        Struct { name: "m::Overdrawn".into(), id: "IDL:m/Overdrawn:1.0".into(), fields: fields.into() };
    let put = |sink: &mut dyn Sink| {
        sink.text(&shape::Text::NARROW, "empty")?;
        sink.f64(2.5)
    };
    match pair.outcome(id, &incoming, Answer::Raised { shape: &shape, fields: &put }) {
        Outcome::Raised(raised) => {
            let Raised { id, body, .. } = *raised;
            assert_eq!(id, "IDL:m/Overdrawn:1.0");
            let read =
                body.read(|source| Ok((source.text(&shape::Text::NARROW)?.into_owned(), source.f64()?)));
            assert_eq!(read.unwrap(), ("empty".to_owned(), 2.5));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_failure_keeps_kind_message_hint_and_whether_it_ran() {
    use Kind::*;
    let kinds = [
        Unreachable,
        Refused,
        TimedOut,
        Cancelled,
        NoObject,
        NoOperation,
        BadArgument,
        Malformed,
        LimitExceeded,
        Busy,
        Unsupported,
        Internal,
        Violation,
        BadReference,
    ];
    for (kind, completed) in
        kinds.into_iter().zip([Completed::Yes, Completed::No, Completed::Maybe].into_iter().cycle())
    {
        let mut pair = Pair::new(Limits::default());
        let (id, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
        let told = Failure::new(kind, Initiator::Here, "what happened")
            .with_hint("do this")
            .with_completed(completed);
        let failure = failure(pair.outcome(id, &incoming, Answer::Failed(&told)));
        // Whoever cannot decode a call means its arguments.
        let arrives = if kind == Kind::Malformed { Kind::BadArgument } else { kind };
        assert_eq!(
            (failure.kind(), failure.message(), failure.hint()),
            (arrives, "what happened", Some("do this"))
        );
        assert_eq!(failure.completed(), completed);
        assert!(failure.code().unwrap().starts_with("CORBA::"), "{failure}");
    }
}

#[test]
fn a_forward_carries_the_new_place() {
    let mut pair = Pair::new(Limits::default());
    let target = everywire_giop::GIOP.parse("iiop://elsewhere:99/k2").unwrap();
    let (id, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
    match pair.outcome(id, &incoming, Answer::Moved(&target)) {
        Outcome::Moved(reference) => assert_eq!(reference, target),
        other => panic!("{other:?}"),
    }
    let id = pair.client.probe(Instant::now(), &profile(b"k")).unwrap();
    let Some(Event::Probe { id: asked, .. }) = pair.forth().unwrap().pop() else { panic!() };
    pair.server.answer(asked, Answer::Moved(&target)).unwrap();
    match pair.back().unwrap().pop() {
        Some(Event::Reply { id: of, outcome: Outcome::Moved(reference) }) => {
            assert_eq!((of, reference), (id, target))
        }
        other => panic!("{other:?}"),
    }
}

/// Who sends a request elsewhere may not have looked at its character sets, so they are told until a servant has answered.
#[test]
fn character_sets_are_told_again_behind_a_forward() {
    let mut pair = Pair::new(Limits::default());
    let profile = profile(&[0xfe; 14]);
    let target = Reference { profiles: vec![profile.clone()], ..Reference::default() };
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &int() },
        arguments: &put_int(7),
        expects: Expects::Reply,
    };
    let (number, mut headers) = (put_int(7), Headers::default());
    headers.put(Header::text("0x45570001", "edge"));
    let with_headers = WithHeaders { values: &number, headers: &headers };
    let passed = Call { arguments: &with_headers, ..call };
    for (call, tells, moves) in [
        (call, true, true),
        (call, true, true),
        (passed, true, true),
        (call, true, false),
        (call, false, true),
        (passed, false, false),
        (call, false, false),
    ] {
        pair.client.start(Instant::now(), &call).unwrap();
        let sent = format!("{:?}", GIOP.explain(&pair.client.transmit().to_vec()));
        assert_eq!(sent.contains("code sets"), tells, "{sent}");
        let Some(Event::Call(incoming)) = pair.forth().unwrap().pop() else { panic!() };
        let (done, moved) = (put_int(8), Answer::Moved(&target));
        pair.server.answer(incoming.id, if moves { moved } else { Answer::Done(&done) }).unwrap();
        assert_eq!(pair.back().unwrap().len(), 1);
    }
}

#[test]
fn probes_of_missing_objects_say_so() {
    let mut pair = Pair::new(Limits::default());
    pair.client.probe(Instant::now(), &profile(b"k")).unwrap();
    let Some(Event::Probe { id, .. }) = pair.forth().unwrap().pop() else { panic!() };
    pair.server.answer(id, Answer::Failed(&Failure::new(Kind::NoObject, Initiator::Peer, "gone"))).unwrap();
    match pair.back().unwrap().pop() {
        Some(Event::Reply { outcome, .. }) => assert_eq!(failure(outcome).kind(), Kind::NoObject),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_operation_non_existent_is_a_probe() {
    for name in ["_non_existent", "_not_existent"] {
        let mut pair = Pair::new(Limits::default());
        let operation = Operation::new(name, vec![], Shape::Bool);
        let profile = profile(b"k");
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: None, operation: &operation },
            arguments: &visit::Nothing,
            expects: Expects::Reply,
        };
        pair.client.start(Instant::now(), &call).unwrap();
        let Some(Event::Probe { id, .. }) = pair.forth().unwrap().pop() else { panic!() };
        pair.server.answer(id, Answer::Done(&visit::Nothing)).unwrap();
        match pair.back().unwrap().pop() {
            Some(Event::Reply { outcome: Outcome::Done(body), .. }) => {
                assert!(!body.read(|source| source.bool()).unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn oneways_get_no_answer() {
    let mut pair = Pair::new(Limits::default());
    let profile = profile(b"k");
    let operation = Operation::new("Hello", vec![], Shape::Void);
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &visit::Nothing,
        expects: Expects::Nothing,
    };
    pair.client.start(Instant::now(), &call).unwrap();
    let Some(Event::Call(incoming)) = pair.forth().unwrap().pop() else { panic!() };
    assert_eq!((incoming.expects, incoming.body.bytes.len()), (Expects::Nothing, 0));
    pair.server.answer(incoming.id, Answer::Done(&visit::Nothing)).unwrap();
    assert!(pair.server.transmit().is_empty());
    assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
}

#[test]
fn answers_come_back_in_any_order_and_cancelled_ones_not_at_all() {
    let mut pair = Pair::new(Limits::default());
    let profile = profile(b"k");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &int() },
        arguments: &put_int(1),
        expects: Expects::Reply,
    };
    let ids: Vec<_> = (0..5).map(|_| pair.client.start(Instant::now(), &call).unwrap()).collect();
    let taken: Vec<_> = pair
        .forth()
        .unwrap()
        .into_iter()
        .map(|event| match event {
            Event::Call(incoming) => incoming.id,
            other => panic!("{other:?}"),
        })
        .collect();
    pair.client.cancel(ids[2]);
    assert!(matches!(pair.forth().unwrap()[..], [Event::Cancelled(id)] if id == taken[2]));
    for index in [4, 2, 0, 3, 1] {
        pair.server.answer(taken[index], Answer::Done(&put_int(index as i32))).unwrap();
    }
    let back: Vec<_> = pair
        .back()
        .unwrap()
        .into_iter()
        .map(|event| match event {
            Event::Reply { id, outcome: Outcome::Done(body) } => (id, value(&Shape::I32, &body)),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected: Vec<_> =
        [4, 0, 3, 1].into_iter().map(|i: usize| (ids[i], Value::Integer(i as i128))).collect();
    assert_eq!(back, expected);
    // A second answer to the same call is dropped.
    pair.server.answer(taken[0], Answer::Done(&put_int(0))).unwrap();
    assert!(pair.server.transmit().is_empty());
}

#[test]
fn goodbye_lets_calls_be_tried_again_and_a_lost_connection_does_not() {
    // The server says goodbye while the call is on its way.
    let mut pair = Pair::new(Limits::default());
    let (profile_of, operation, value) = (profile(b"k"), int(), put_int(1));
    let call = Call {
        profile: &profile_of,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &value,
        expects: Expects::Reply,
    };
    pair.client.start(Instant::now(), &call).unwrap();
    pair.server.close();
    let events = pair.back().unwrap();
    match &events[..] {
        [Event::Reply { outcome: Outcome::Failed(failure), .. }, Event::Closed] => {
            assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::No));
        }
        other => panic!("{other:?}"),
    }
    let mut pair = Pair::new(Limits::default());
    pair.call(&profile(b"k"), &int(), &put_int(1));
    pair.client.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "reset"));
    match &support::events(&mut *pair.client)[..] {
        [Event::Reply { outcome: Outcome::Failed(failure), .. }] => {
            assert_eq!(failure.completed(), Completed::Maybe)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_goodbye_is_said_while_a_call_is_under_way() {
    let mut pair = Pair::new(Limits::default());
    let (_, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
    pair.server.close();
    // Nothing: to the peer a goodbye would mean that the call never began.
    assert!(pair.server.transmit().is_empty());
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    assert!(pair.server.transmit().is_empty());

    let mut pair = Pair::new(Limits::default());
    let (id, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
    pair.outcome(id, &incoming, Answer::Done(&put_int(2)));
    pair.server.close();
    assert!(matches!(&pair.back().unwrap()[..], [Event::Closed]));
}

#[test]
fn large_octets_are_shared_on_both_sides() {
    let mut pair = Pair::new(Limits::default());
    let shape = Shape::sequence(Shape::U8);
    let operation = in_out("GetBytes", shape.clone());
    let large = bytes::Bytes::from((0..SPLICE * 3).map(|i| i as u8).collect::<Vec<_>>());
    let put = |sink: &mut dyn Sink| sink.shared(&shape, &large);
    let profile = profile(b"k");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &put,
        expects: Expects::Reply,
    };
    pair.client.start(Instant::now(), &call).unwrap();
    let spliced = pair.client.transmit().slices(8, usize::MAX);
    assert!(spliced.iter().any(|slice| std::ptr::eq(slice.as_ptr(), large.as_ptr())));
    let Some(Event::Call(incoming)) = pair.forth().unwrap().pop() else { panic!() };
    let got = incoming.body.read(|source| source.shared(&shape)).unwrap();
    assert_eq!(got, large);
    assert!(incoming.body.bytes.as_ptr_range().contains(&got.as_ptr()), "the octets were copied");
    // The same through `open`, octet by octet.
    let one_by_one = incoming.body.read(|source| {
        let len = source.open(&shape)?;
        (0..len).map(|_| source.u8()).collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(one_by_one.unwrap(), &large[..]);
}

#[test]
fn own_messages_over_the_limit_are_refused_before_they_are_sent() {
    let limits = Limits::default().with_message(4096);
    let mut pair = Pair::new(limits);
    let shape = Shape::sequence(Shape::U8);
    let operation = in_out("Put", shape.clone());
    let put = |sink: &mut dyn Sink| sink.bytes(&shape, &[0; 5000]);
    let profile = profile(b"k");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &put,
        expects: Expects::Reply,
    };
    let refused = pair.client.start(Instant::now(), &call).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitExceeded);
    assert!(refused.message().contains("4096"), "{refused}");
    assert!(pair.client.transmit().is_empty());
    // An answer: the caller is told.
    let (id, incoming) = pair.call(&profile, &int(), &put_int(1));
    assert_eq!(pair.server.answer(incoming.id, Answer::Done(&put)).unwrap_err().kind(), Kind::LimitExceeded);
    match pair.back().unwrap().pop() {
        Some(Event::Reply { id: of, outcome }) => {
            let failure = failure(outcome);
            assert_eq!((of, failure.kind(), failure.completed()), (id, Kind::LimitExceeded, Completed::Yes));
            assert!(failure.message().contains("4096"), "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_in_fragments_arrive_whole() {
    for size in [0, 1, 30, 40, 41, 64, 1000, 1024] {
        let wire = Giop::new().with_fragments(size.max(40));
        let mut pair = Pair::with(&wire, Limits::default(), Limits::default());
        let shape = Shape::sequence(Shape::F64);
        let operation = in_out("numbers", shape.clone());
        let numbers: Vec<f64> = (0..500).map(f64::from).collect();
        let put = |sink: &mut dyn Sink| marshal::Marshal::marshal(&numbers, &shape, sink);
        let (id, incoming) = pair.call(&profile(b"k"), &operation, &put);
        let read = |body: &Body| {
            body.read(|source| <Vec<f64> as marshal::Unmarshal>::unmarshal(&shape, source)).unwrap()
        };
        assert_eq!(read(&incoming.body), numbers);
        match pair.outcome(id, &incoming, Answer::Done(&put)) {
            Outcome::Done(body) => assert_eq!(read(&body), numbers),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_peer_may_ask_for_another_addressing() {
    for (disposition, word) in [(1u8, "profile"), (2, "reference"), (0, "key")] {
        let mut pair = Pair::new(Limits::default());
        let profile = profile(b"the key");
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: None, operation: &int() },
            arguments: &put_int(1),
            expects: Expects::Reply,
        };
        let id = pair.client.start(Instant::now(), &call).unwrap();
        drain(&mut *pair.client);
        feed(&mut *pair.client, &needs_addressing(1, id, disposition)).unwrap();
        match disposition {
            // That is how it was addressed before: again would be no different.
            0 => match events(&mut *pair.client).pop() {
                Some(Event::Reply { outcome, .. }) => assert_eq!(failure(outcome).completed(), Completed::No),
                other => panic!("{other:?}"),
            },
            // The same call goes out again, and its caller hears of one.
            _ => {
                assert!(events(&mut *pair.client).is_empty());
                let Some(Event::Call(incoming)) = pair.forth().unwrap().pop() else { panic!("{word}") };
                assert_eq!(
                    (&*incoming.key, &*incoming.operation),
                    (&b"the key"[..], &b"in_out_int_call"[..])
                );
                assert_eq!(incoming.body.decode::<(i32,)>(&int().arguments).unwrap(), (1,));
                let outcome = pair.outcome(id, &incoming, Answer::Done(&put_int(2)));
                let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
                assert_eq!(body.decode::<(i32,)>(&int().results).unwrap(), (2,));
            }
        }
        let (_, incoming) = pair.call(&profile, &int(), &put_int(1));
        assert_eq!(&*incoming.key, b"the key", "addressed by {word}");
        pair.client.probe(Instant::now(), &profile).unwrap();
        let Some(Event::Probe { key, .. }) = pair.forth().unwrap().pop() else { panic!() };
        assert_eq!(&*key, b"the key", "probe addressed by {word}");
    }
}

/// NEEDS_ADDRESSING_MODE: a Reply (1) or a LocateReply (4).
fn needs_addressing(kind: u8, id: CallId, disposition: u8) -> Vec<u8> {
    let mut content = (id.0 as u32).to_le_bytes().to_vec();
    content.extend([5, 0, 0, 0]);
    if kind == 1 {
        // No service contexts.
        content.extend([0; 4]);
    }
    content.extend([disposition, 0]);
    let mut reply = b"GIOP\x01\x02\x01".to_vec();
    reply.push(kind);
    reply.extend((content.len() as u32).to_le_bytes());
    reply.extend(content);
    reply
}

#[test]
fn calls_go_out_again_as_the_peer_wants_them_addressed() {
    let long_text = "aligned to eight".repeat(10);
    let shape = structure("", vec![("a", Shape::U8), ("b", Shape::F64), ("c", text())]);
    let operation = Operation::new("several", vec![field("v", shape)], Shape::Void);
    let put = |sink: &mut dyn Sink| {
        sink.u8(1)?;
        sink.f64(2.5)?;
        sink.text(&shape::Text::NARROW, &long_text)
    };
    let mut pair = Pair::new(Limits::default());
    // Three under way, and a question where the object is; each comes back once in each way, and then is taken.
    let (long, short) = (profile(b"a longer key than the others"), profile(b"k"));
    let start = |client: &mut dyn Session, profile: &Profile| {
        let call = Call {
            profile,
            method: Method::Typed { interface: None, operation: &operation },
            arguments: &put,
            expects: Expects::Reply,
        };
        client.start(Instant::now(), &call).unwrap()
    };
    let calls = [(&long, start(&mut *pair.client, &long)), (&short, start(&mut *pair.client, &short))];
    let probe = pair.client.probe(Instant::now(), &long).unwrap();
    for disposition in [2, 1] {
        drain(&mut *pair.client);
        for (_, id) in calls {
            feed(&mut *pair.client, &needs_addressing(1, id, disposition)).unwrap();
        }
        feed(&mut *pair.client, &needs_addressing(4, probe, disposition)).unwrap();
        assert!(events(&mut *pair.client).is_empty());
    }
    let mut arrived = pair.forth().unwrap();
    let Some(Event::Probe { key, id: asked, .. }) = arrived.pop() else { panic!("{arrived:?}") };
    assert_eq!(key, long.key);
    pair.server.answer(asked, Answer::Done(&visit::Nothing)).unwrap();
    assert_eq!(arrived.len(), 2);
    for ((profile, _), event) in calls.iter().zip(arrived) {
        let Event::Call(incoming) = event else { panic!("{event:?}") };
        assert_eq!(incoming.key, profile.key);
        let decoded = incoming.body.read(|source| Value::decode(&operation.arguments, source)).unwrap();
        assert!(format!("{decoded:?}").contains(&long_text), "{decoded:?}");
        pair.server.answer(incoming.id, Answer::Done(&visit::Nothing)).unwrap();
    }
    let told = pair.back().unwrap();
    let ids: Vec<CallId> = told
        .iter()
        .map(|event| match event {
            Event::Reply { id, outcome: Outcome::Done(_) } => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [probe, calls[0].1, calls[1].1]);
    // A peer that wants the same again, or goes back and forth, gets no more: the caller learns that it was not executed.
    let mut rude = Pair::new(Limits::default());
    let id = start(&mut *rude.client, &short);
    for disposition in [1, 2] {
        feed(&mut *rude.client, &needs_addressing(1, id, disposition)).unwrap();
    }
    assert!(events(&mut *rude.client).is_empty());
    feed(&mut *rude.client, &needs_addressing(1, id, 1)).unwrap();
    match events(&mut *rude.client).pop() {
        Some(Event::Reply { outcome, .. }) => assert_eq!(failure(outcome).completed(), Completed::No),
        other => panic!("{other:?}"),
    }
    assert_eq!(rude.client.outstanding(), 0);
}

#[test]
fn what_follows_a_request_has_its_version() {
    for minor in [0, 1, 2] {
        let mut profile = profile(b"k");
        profile.version = (1, minor);
        // A withdrawal: a server of 1.0 would answer it by MessageError in any other version.
        let mut pair = Pair::new(Limits::default());
        let (id, incoming) = pair.call(&profile, &int(), &put_int(1));
        pair.client.cancel(id);
        let sent = drain(&mut *pair.client);
        assert_eq!((sent[5], sent[7]), (minor, 2));
        // The goodbye of a server.
        pair.server.answer(incoming.id, Answer::Done(&put_int(1))).unwrap();
        pair.server.close();
        let sent = drain(&mut *pair.server);
        assert_eq!((sent[sent.len() - 7], sent[sent.len() - 5]), (minor, 5));
        // That of a client is a message of 1.2 alone.
        pair.client.close();
        let sent = drain(&mut *pair.client);
        assert_eq!(sent.get(5..8).map(|sent| (sent[0], sent[2])), (minor == 2).then_some((2, 5)));
        // What was not understood.
        let mut pair = Pair::new(Limits::default());
        pair.call(&profile, &int(), &put_int(1));
        assert!(feed(&mut *pair.server, &[0; 12]).is_err());
        let sent = drain(&mut *pair.server);
        assert_eq!((sent[5], sent[7]), (minor, 6));
    }
}
