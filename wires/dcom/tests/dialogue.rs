//! A client session and a server session, tied together in memory.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;
use crate::support::*;
use everywire_auth::security::Mechanism;
use everywire_dcom::Level;
use everywire_dcom::frame;
use everywire_dcom::pdu::Pdu;
use everywire_model::shape::{Field, Struct};
use everywire_model::*;

/// A connection with the counter made, and the way to it.
fn counter(terms: Terms) -> (Pair, Profile, Interface) {
    let mut pair = Pair::new(terms);
    let interface = interface("Counter", COUNTER);
    let way = pair.activate(&class_way(terms.way()), &interface);
    (pair, way, interface)
}

const SIGNED: [Level; 5] = [Level::Connect, Level::Call, Level::Packet, Level::Integrity, Level::Privacy];

#[test]
fn a_call_travels_at_every_level() {
    for level in [Level::None].into_iter().chain(SIGNED) {
        let (mut pair, way, interface) =
            counter(Terms { demanded: Level::Connect.min(level), ..Terms::at(level) });
        for turn in 0..3 {
            let id = pair.call(&way, &interface, 0, &put_int(turn));
            let incoming = pair.incoming();
            assert_eq!((&*incoming.key, int(&incoming.body)), (&b"counter"[..], turn), "{level:?}");
            assert_eq!(&*incoming.operation, &[3, 0]);
            let who: &[u8] = if level == Level::None { b"" } else { b"ali" };
            assert_eq!(&*incoming.sender, who);
            pair.server.answer(incoming.id, Answer::Done(&put_int(turn + 1))).unwrap();
            assert_eq!(int(&done(pair.outcome(id))), turn + 1, "{level:?}");
        }
        assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
        let account = (level != Level::None).then_some("ali");
        assert!(pair.ready.iter().any(|peer| peer.account.as_deref() == account), "{level:?}");
        let known = pair.ready.last().unwrap().authentication;
        let expected = match level {
            Level::None => "none".to_owned(),
            // Nobody sends that one.
            Level::Call => "NTLMv2, packet".to_owned(),
            level => format!("NTLMv2, {}", level.word()),
        };
        assert_eq!(known, expected);
    }
}

#[test]
fn spnego_needs_one_leg_more_and_comes_to_the_same() {
    for level in [Level::Connect, Level::Integrity, Level::Privacy] {
        let terms = Terms { mechanism: Mechanism::Negotiate, ..Terms::at(level) };
        let (mut pair, way, interface) = counter(terms);
        let id = pair.call(&way, &interface, 1, &put_bytes(vec![7; 20_000]));
        let incoming = pair.incoming();
        assert_eq!(octets(&incoming.body), vec![7; 20_000]);
        pair.server.answer(incoming.id, Answer::Done(&put_bytes(vec![8; 20_000]))).unwrap();
        assert_eq!(octets(&done(pair.outcome(id))), vec![8; 20_000]);
    }
}

#[test]
fn what_is_private_is_not_to_be_read_on_the_way() {
    let secret = b"the combination is 12345".to_vec();
    for (level, hidden) in [(Level::Integrity, false), (Level::Privacy, true)] {
        let (mut pair, way, interface) = counter(Terms::at(level));
        let id = pair.call(&way, &interface, 1, &put_bytes(secret.clone()));
        let incoming = pair.incoming();
        assert_eq!(octets(&incoming.body), secret);
        pair.server.answer(incoming.id, Answer::Done(&put_bytes(secret.clone()))).unwrap();
        assert_eq!(octets(&done(pair.outcome(id))), secret);
        for stream in [&pair.sent, &pair.received] {
            let seen = stream.windows(secret.len()).any(|window| window == secret);
            assert_eq!(seen, !hidden, "{level:?}");
        }
    }
}

#[test]
fn messages_of_all_sizes_travel_in_fragments_of_any_piece() {
    for (level, piece) in [(Level::None, 1), (Level::Integrity, 7), (Level::Privacy, 4096)] {
        for size in [0, 1, 15, 16, 1400, 65_400, 65_600, 300_000] {
            if piece == 1 && size > 70_000 {
                continue;
            }
            let (mut pair, way, interface) = counter(Terms::at(level));
            pair.piece = piece;
            let said: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
            let id = pair.call(&way, &interface, 1, &put_bytes(said.clone()));
            let incoming = pair.incoming();
            assert_eq!(octets(&incoming.body), said, "{level:?} {size}");
            pair.server.answer(incoming.id, Answer::Done(&put_bytes(said.clone()))).unwrap();
            assert_eq!(octets(&done(pair.outcome(id))), said, "{level:?} {size}");
        }
    }
}

#[test]
fn two_of_this_kind_agree_on_large_fragments() {
    let (mut pair, way, interface) = counter(Terms::OPEN);
    pair.sent.clear();
    let _ = pair.call(&way, &interface, 1, &put_bytes(vec![1; 200_000]));
    let _ = pair.incoming();
    let sent = raw::pdus(&pair.sent);
    let fragments = sent.iter().filter(|(_, pdu, _)| matches!(pdu, Pdu::Request(_)));
    assert_eq!(fragments.count(), 4);
}

#[test]
fn calls_are_answered_in_any_order() {
    for level in [Level::None, Level::Integrity] {
        let (mut pair, way, interface) = counter(Terms::at(level));
        let ids: Vec<_> = (0..20).map(|turn| pair.call(&way, &interface, 0, &put_int(turn))).collect();
        assert!(pair.run().unwrap().is_empty());
        let calls = std::mem::take(&mut pair.calls);
        assert_eq!(calls.len(), 20);
        for call in calls.iter().rev() {
            let said = int(&call.body);
            pair.server.answer(call.id, Answer::Done(&put_int(said * 2))).unwrap();
        }
        let replies = pair.run().unwrap();
        assert_eq!(replies.len(), 20);
        for (id, outcome) in replies {
            let turn = ids.iter().position(|known| *known == id).unwrap();
            assert_eq!(usize::try_from(int(&done(outcome))).unwrap(), turn * 2);
        }
    }
}

#[test]
fn another_interface_of_the_object_is_asked_for_once() {
    let (mut pair, way, first) = counter(Terms::at(Level::Integrity));
    let ledger = interface("Ledger", LEDGER);
    pair.sent.clear();
    let ids: Vec<_> = (0..3).map(|turn| pair.call(&way, &ledger, 0, &put_int(turn))).collect();
    assert!(pair.run().unwrap().is_empty());
    let calls = std::mem::take(&mut pair.calls);
    let said: Vec<_> = calls.iter().map(|call| int(&call.body)).collect();
    assert_eq!(said, [0, 1, 2]);
    for call in &calls {
        pair.server.answer(call.id, Answer::Done(&put_int(9))).unwrap();
    }
    assert_eq!(pair.run().unwrap().len(), ids.len());
    // One RemQueryInterface, the contexts for it and for the interface, three calls.
    let kinds: Vec<_> = raw::pdus(&pair.sent).iter().map(|(header, ..)| header.kind.word()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "request").count(), 4, "{kinds:?}");
    // The first interface is still there.
    let id = pair.call(&way, &first, 0, &put_int(5));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(6))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 6);
}

#[test]
fn an_interface_that_the_object_does_not_have_is_refused_for_all_who_ask() {
    let (mut pair, way, first) = counter(Terms::OPEN);
    let other = interface("Other", "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0ff");
    let ids = [pair.call(&way, &other, 0, &put_int(1)), pair.call(&way, &other, 0, &put_int(2))];
    let replies = pair.run().unwrap();
    assert_eq!(replies.len(), ids.len());
    for (_, outcome) in replies {
        assert_eq!(failure(outcome).code(), Some("0x80004002"));
    }
    let id = pair.call(&way, &first, 0, &put_int(5));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(6))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 6);
}

#[test]
fn a_class_that_nobody_serves_is_told_by_its_hresult() {
    let mut pair = Pair::new(Terms::OPEN);
    let mut way = class_way(Terms::OPEN.way());
    way.key = "00000000-1111-2222-3333-444444444444".into();
    let id = pair.call(&way, &interface("Counter", COUNTER), 0, &put_int(0));
    assert_eq!(failure(pair.outcome(id)).code(), Some("0x80040154"));
}

#[test]
fn failures_keep_code_and_message() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Integrity));
    let told =
        Failure::new(Kind::Internal, Initiator::Peer, "the ledger is closed, sorry").with_code("0x80040205");
    for index in 0..3 {
        let values: &dyn Encode = match index {
            0 => &put_int(1),
            1 => &put_bytes(vec![1]),
            _ => &|sink: &mut dyn Sink| sink.text(&shape::Text::WIDE, "x"),
        };
        let id = pair.call(&way, &interface, index, values);
        let incoming = pair.incoming();
        pair.server.answer(incoming.id, Answer::Failed(&told)).unwrap();
        let failure = failure(pair.outcome(id));
        assert_eq!((failure.code(), failure.message()), (Some("0x80040205"), "the ledger is closed, sorry"));
        assert_eq!(failure.completed(), Completed::Yes);
    }
    // Nothing of it went as a fault.
    assert!(!raw::pdus(&pair.received).iter().any(|(_, pdu, _)| matches!(pdu, Pdu::Fault(_))));
}

#[test]
fn what_no_servant_saw_is_told_by_faults() {
    let (mut pair, way, interface) = counter(Terms::OPEN);
    let told = [
        (Kind::NoObject, Kind::NoObject, "gone", "0x80010108"),
        (Kind::NoOperation, Kind::NoOperation, "no such operation", "0x1c010002"),
        // Whoever cannot decode a call means its arguments.
        (Kind::Malformed, Kind::BadArgument, "broken", "0x000006f7"),
    ];
    for (kind, arrives, message, code) in told {
        let id = pair.call(&way, &interface, 0, &put_int(1));
        let incoming = pair.incoming();
        let failure_told = Failure::new(kind, Initiator::Peer, message);
        pair.server.answer(incoming.id, Answer::Failed(&failure_told)).unwrap();
        let failure = failure(pair.outcome(id));
        assert_eq!((failure.kind(), failure.code()), (arrives, Some(code)));
        assert_eq!(failure.completed(), Completed::No);
    }
}

/// What a broker tells of a call that its target did not get, or that was lost on the way: an HRESULT would say that the method ran.
#[test]
fn what_was_lost_on_the_way_is_told_by_faults_that_say_no_more_than_is_known() {
    let (mut pair, way, interface) = counter(Terms::OPEN);
    let told = [
        (Kind::Refused, Completed::No, Kind::Refused, "0x80070005"),
        (Kind::Refused, Completed::Maybe, Kind::Refused, "0x80070005"),
        (Kind::Unreachable, Completed::No, Kind::Unreachable, "0x800706ba"),
        (Kind::Unreachable, Completed::Maybe, Kind::Unreachable, "0x800706ba"),
        (Kind::TimedOut, Completed::No, Kind::TimedOut, "0x8001011f"),
        (Kind::TimedOut, Completed::Maybe, Kind::TimedOut, "0x8001011f"),
        (Kind::Busy, Completed::No, Kind::Busy, "0x1c010014"),
        (Kind::Busy, Completed::Maybe, Kind::Busy, "0x800706bb"),
        (Kind::Violation, Completed::No, Kind::Violation, "0x80010111"),
        // There is no status of such a kind that does not say by itself that nothing ran.
        (Kind::Violation, Completed::Maybe, Kind::Internal, "0x80010105"),
    ];
    for (kind, completed, arrives, code) in told {
        let id = pair.call(&way, &interface, 0, &put_int(1));
        let incoming = pair.incoming();
        let lost = Failure::new(kind, Initiator::Peer, "lost").with_completed(completed);
        pair.server.answer(incoming.id, Answer::Failed(&lost)).unwrap();
        let failure = failure(pair.outcome(id));
        assert_eq!(
            (failure.kind(), failure.code(), failure.completed()),
            (arrives, Some(code), completed),
            "{kind} {completed:?}"
        );
    }
}

/// The counter's fault, forged by somebody on the way: it would have the call made again.
fn forged(call: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let (context, status) = (0, everywire_dcom::hresult::RPC_E_DISCONNECTED);
    let fault = everywire_dcom::pdu::Fault { context, cancels: 0, flags: 0, status, stub: 0..0 };
    let flags = frame::FIRST | frame::LAST | frame::DID_NOT_EXECUTE;
    Pdu::Fault(fault).write(&mut out, flags, call, &[]);
    out
}

#[test]
fn faults_are_signed_where_answers_are() {
    for level in SIGNED {
        let terms = Terms { demanded: Level::Connect, ..Terms::at(level) };
        let (mut pair, way, interface) = counter(terms);
        let id = pair.call(&way, &interface, 0, &put_int(1));
        let incoming = pair.incoming();
        pair.received.clear();
        let gone = Failure::new(Kind::NoObject, Initiator::Here, "it is gone").with_completed(Completed::No);
        pair.server.answer(incoming.id, Answer::Failed(&gone)).unwrap();
        let told = failure(pair.outcome(id));
        assert_eq!((told.kind(), told.completed()), (Kind::NoObject, Completed::No), "{level:?}");
        let (header, pdu, _) = raw::pdus(&pair.received).remove(0);
        assert!(matches!(pdu, Pdu::Fault(_)));
        assert_eq!(header.auth_length > 0, level > Level::Connect, "{level:?}");
    }
}

#[test]
fn a_fault_without_a_signature_is_a_rumour_and_a_lie_ends_the_connection() {
    for level in SIGNED.into_iter().filter(|level| *level > Level::Connect) {
        let (mut pair, way, interface) = counter(Terms::at(level));
        pair.sent.clear();
        let id = pair.call(&way, &interface, 0, &put_int(1));
        let incoming = pair.incoming();
        let (header, ..) = raw::pdus(&pair.sent).pop().unwrap();
        feed(&mut *pair.client, &forged(header.call)).unwrap();
        let told = failure(pair.outcome(id));
        // Nothing that would have it made again.
        assert_eq!((told.kind(), told.completed()), (Kind::NoObject, Completed::Maybe), "{level:?}");
        assert!(told.message().contains("without a signature"), "{told}");
        pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
        assert_eq!(pair.run().unwrap_err().name, "ForgedFault", "{level:?}");
    }
}

#[test]
fn an_answer_that_was_held_back_is_missed_by_the_next_signature() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Integrity));
    pair.sent.clear();
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    let (header, ..) = raw::pdus(&pair.sent).pop().unwrap();
    feed(&mut *pair.client, &forged(header.call)).unwrap();
    let _ = failure(pair.outcome(id));
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    drain(&mut *pair.server);
    let _ = pair.call(&way, &interface, 0, &put_int(3));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(4))).unwrap();
    assert_eq!(pair.run().unwrap_err().name, "Signature");
}

#[test]
fn exceptions_of_other_contract_languages_keep_identity_and_fields() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Privacy));
    let text = Shape::Text(shape::Text::NARROW);
    let fields =
        vec![Field { name: "why".into(), shape: text }, Field { name: "code".into(), shape: Shape::F64 }];
    let shape =
        Struct { name: "m::Overdrawn".into(), id: "IDL:m/Overdrawn:1.0".into(), fields: fields.into() };
    let put = |sink: &mut dyn Sink| {
        sink.text(&shape::Text::NARROW, "empty")?;
        sink.f64(2.5)
    };
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Raised { shape: &shape, fields: &put }).unwrap();
    match pair.outcome(id) {
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
fn results_that_do_not_encode_become_that_failure() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Integrity));
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    let put = |_: &mut dyn Sink| Err(Failure::new(Kind::BadArgument, Initiator::User, "cannot be said"));
    assert!(pair.server.answer(incoming.id, Answer::Done(&put)).is_err());
    let failure = failure(pair.outcome(id));
    assert_eq!(failure.message(), "cannot be said");
    // The connection lives, and its sequence numbers are right.
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 2);
}

#[test]
fn arguments_that_do_not_encode_leave_no_trace() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Integrity));
    let put = |_: &mut dyn Sink| Err(Failure::new(Kind::BadArgument, Initiator::User, "cannot be said"));
    assert!(start(&mut *pair.client, &way, &interface, 0, &put).is_err());
    assert!(pair.client.transmit().is_empty());
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 2);
}

#[test]
fn a_withdrawn_call_is_forgotten_on_both_sides() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Integrity));
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.client.cancel(id);
    assert!(pair.run().unwrap().is_empty());
    assert_eq!((pair.client.outstanding(), pair.server.outstanding()), (0, 0));
    // The answer comes to late to be sent.
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    assert!(pair.server.transmit().is_empty());
    let id = pair.call(&way, &interface, 0, &put_int(3));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(4))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 4);
}

#[test]
fn a_call_that_waits_for_an_errand_can_be_withdrawn() {
    let mut pair = Pair::new(Terms::OPEN);
    let interface = interface("Counter", COUNTER);
    let id = pair.call(&class_way(Terms::OPEN.way()), &interface, 0, &put_int(0));
    pair.client.cancel(id);
    assert!(pair.run().unwrap().is_empty());
    assert!(pair.calls.is_empty());
}

#[test]
fn a_wrong_password_lets_nobody_in() {
    for mechanism in [Mechanism::Ntlm, Mechanism::Negotiate] {
        let terms = Terms { password: "Sesame 2", mechanism, ..Terms::at(Level::Integrity) };
        let mut pair = Pair::new(terms);
        let id = pair.call(&class_way(terms.way()), &interface("Counter", COUNTER), 0, &put_int(0));
        assert_eq!(pair.run().unwrap_err().name, "Denied", "{mechanism:?}");
        let failure = failure(pair.last_word(id));
        // Where the last token is answered, the answer says so; else that to the first call does.
        let code = if mechanism == Mechanism::Ntlm { "0x00000005" } else { "0x00000721" };
        assert_eq!((failure.kind(), failure.code()), (Kind::Refused, Some(code)), "{mechanism:?}");
        assert!(pair.calls.is_empty() && !pair.ready.iter().any(|peer| peer.authentication != "none"));
    }
}

#[test]
fn a_level_below_what_the_place_demands_is_refused() {
    for (asked, demanded) in [
        (Level::None, Level::Integrity),
        (Level::Connect, Level::Integrity),
        (Level::Integrity, Level::Privacy),
        (Level::None, Level::Connect),
    ] {
        let terms = Terms { asked, demanded, ..Terms::OPEN };
        let mut pair = Pair::new(terms);
        let id = pair.call(&class_way(terms.way()), &interface("Counter", COUNTER), 0, &put_int(0));
        let failure = failure(pair.outcome(id));
        assert_eq!(
            (failure.kind(), failure.completed()),
            (Kind::Refused, Completed::No),
            "{asked:?} {demanded:?}"
        );
    }
}

#[test]
fn without_credentials_nothing_is_sent() {
    let mut way = class_way(Terms::OPEN.way());
    way.options = everywire_dcom::Security::new(Level::Integrity).into();
    let mut pair = Pair::to(&way, Terms::OPEN, Limits::default(), Node::empty(), Node::serving());
    let refused = start(&mut *pair.client, &way, &interface("Counter", COUNTER), 0, &put_int(0)).unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused);
    assert!(pair.client.transmit().is_empty());
}

#[test]
fn the_end_of_the_connection_comes_back_to_everybody_who_waits() {
    let (mut pair, way, interface) = counter(Terms::OPEN);
    let ledger = support::interface("Ledger", LEDGER);
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    done(pair.outcome(id));
    let sent = pair.call(&way, &interface, 0, &put_int(1));
    let held = pair.call(&way, &ledger, 0, &put_int(1));
    let lost = Failure::new(Kind::Unreachable, Initiator::Here, "the cable was cut")
        .with_completed(Completed::Maybe);
    pair.client.disconnected(&lost);
    let replies: Vec<_> = std::iter::from_fn(|| pair.client.poll()).collect();
    let mut failed = Vec::new();
    for event in replies {
        if let Event::Reply { id, outcome } = event {
            failed.push((id, failure(outcome).completed()));
        }
    }
    assert_eq!(failed, [(sent, Completed::Maybe), (held, Completed::No)]);
    assert!(start(&mut *pair.client, &way, &interface, 0, &put_int(0)).is_err());
}

#[test]
fn a_call_that_waits_for_an_answered_question_was_not_made() {
    let (mut pair, way, _) = counter(Terms::OPEN);
    let held = pair.call(&way, &support::interface("Ledger", LEDGER), 0, &put_int(1));
    // The interface is asked for; the answer does not come.
    for _ in 0..2 {
        feed(&mut *pair.server, &drain(&mut *pair.client)).unwrap();
        feed(&mut *pair.client, &drain(&mut *pair.server)).unwrap();
    }
    let asked = std::iter::from_fn(|| pair.server.poll());
    assert_eq!(asked.filter(|event| matches!(event, Event::Call(_))).count(), 1);
    let lost = Failure::new(Kind::Unreachable, Initiator::Here, "the cable was cut")
        .with_completed(Completed::Maybe);
    pair.client.disconnected(&lost);
    let told = std::iter::from_fn(|| pair.client.poll()).find_map(|event| match event {
        Event::Reply { id, outcome } if id == held => Some(failure(outcome).completed()),
        _ => None,
    });
    assert_eq!(told, Some(Completed::No));
}

#[test]
fn goodbye_of_the_server_ends_the_session() {
    let (mut pair, way, interface) = counter(Terms::OPEN);
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let _ = pair.incoming();
    pair.server.close();
    let replies = pair.run().unwrap();
    assert_eq!(replies.len(), 1);
    let (of, outcome) = replies.into_iter().next().unwrap();
    assert_eq!((of, failure(outcome).kind()), (id, Kind::Unreachable));
}

#[test]
fn references_are_given_back_along_with_the_next_call() {
    let (mut pair, way, interface) = counter(Terms::at(Level::Integrity));
    let other = pair.activate(&class_way(Terms::at(Level::Integrity).way()), &interface);
    let before = pair.there.exporter.counts().ipids;
    assert!(before >= 1);
    drop(other);
    drop(way);
    assert_eq!(pair.here.exporter.counts().proxies, 0);
    let way = pair.activate(&class_way(Terms::at(Level::Integrity).way()), &interface);
    let id = pair.call(&way, &interface, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 2);
    assert_eq!(pair.here.exporter.counts().releases, 0);
    let requests = raw::pdus(&pair.sent).into_iter().filter(
        |(_, pdu, _)| matches!(pdu, Pdu::Request(request) if request.opnum == 5 && request.object.is_some()),
    );
    assert_eq!(requests.count(), 1, "RemRelease");
    assert_eq!(pair.client.outstanding(), 0);
}

#[test]
fn a_probe_finds_what_is_there() {
    let (mut pair, way, _) = counter(Terms::at(Level::Integrity));
    let id = pair.client.probe(std::time::Instant::now(), &way).unwrap();
    assert!(matches!(pair.outcome(id), Outcome::Done(_)));
    // The node itself.
    let system = everywire_dcom::address::system(
        vec![endpoint()],
        &std::sync::Arc::new(Terms::at(Level::Integrity).way()),
        None,
    );
    let id = pair.client.probe(std::time::Instant::now(), &system).unwrap();
    assert!(matches!(pair.outcome(id), Outcome::Done(_)));
}

#[test]
fn a_servant_that_hands_out_an_interface_that_its_object_lacks_answers_e_nointerface() {
    let mut pair = Pair::new(Terms::OPEN);
    let object = everywire_model::describe::ANY_OBJECT;
    let find = Operation::new(
        "Find",
        vec![parameter(Direction::In, "riid", Shape::I32), parameter(Direction::Out, "found", object)],
        Shape::Void,
    );
    let finder = Interface { operations: vec![find].into(), ..interface("Counter", COUNTER) };
    pair.there.serve(b"finder", finder.clone());
    let way = Profile { key: Bytes::from_static(b"finder"), ..class_way(Terms::OPEN.way()) };
    let way = pair.activate(&way, &finder);
    for (wanted, offered) in [(COUNTER, true), (LEDGER, false)] {
        let id = pair.call(&way, &finder, 0, &put_int(0));
        let incoming = pair.incoming();
        let reference = pair.there.exporter.local(wanted, b"finder");
        let found = |sink: &mut dyn Sink| sink.reference(Some(&reference));
        let put = pair.server.answer(incoming.id, Answer::Done(&found));
        let outcome = pair.outcome(id);
        if offered {
            assert!(put.is_ok());
            done(outcome);
        } else {
            put.unwrap_err();
            let failure = failure(outcome);
            assert_eq!((failure.code(), failure.completed()), (Some("0x80004002"), Completed::Yes));
        }
    }
}
