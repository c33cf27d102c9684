//! A client believes a server no more than a server believes a client.

use super::*;
use crate::support::*;
use everywire_dcom::exporter::Proxy;
use everywire_dcom::objref::StdObjRef;
use everywire_dcom::remunknown::query_reply;

/// R8: a client believes a server no more than a server believes a client.
#[test]
fn servers_that_break_the_rules_lose_their_clients() {
    type Answer = fn() -> Vec<u8>;
    let cases: [(&str, Answer); 5] = [
        ("Unexpected", || raw::bare(PduKind::Bind, 1)),
        ("Unexpected", || add(1, FIRST | LAST, Uuid::nil(), 1)),
        ("Truncated", || raw::bare(PduKind::BindAck, 1)),
        ("Unexpected", || raw::bare(PduKind::AlterContextResponse, 1)),
        ("PduType", || {
            let mut pdu = raw::bare(PduKind::Fault, 1);
            pdu[2] = 7;
            pdu
        }),
    ];
    for (name, pdu) in cases {
        let mut pair = Pair::new(Terms::OPEN);
        assert_eq!(breach(feed(&mut *pair.client, &pdu())), name);
    }
}

#[test]
fn answers_without_the_signature_are_not_believed() {
    let (mut pair, way, counter) = recorded(Level::Integrity);
    let _ = pair.call(&way, &counter, 0, &put_int(1));
    let sent = drain(&mut *pair.client);
    let call = raw::pdus(&sent)[0].0.call;
    let mut answer = Vec::new();
    let response = everywire_dcom::pdu::Response { alloc_hint: 0, context: 0, cancels: 0, stub: 0..0 };
    Pdu::Response(response).write(&mut answer, FIRST | LAST, call, &[0; 16]);
    assert_eq!(breach(feed(&mut *pair.client, &answer)), "Unprotected");
}

#[test]
fn a_server_that_does_not_authenticate_gets_no_calls() {
    let terms = Terms::at(Level::Integrity);
    let mut pair = Pair::new(terms);
    let bind = raw::pdus(&drain(&mut *pair.client));
    let Pdu::Bind(bind) = &bind[0].1 else { panic!() };
    let results =
        bind.contexts.iter().map(|_| everywire_dcom::pdu::ContextResult::accepted(everywire_dcom::pdu::NDR));
    let ack = everywire_dcom::pdu::BindAck {
        max_xmit: 5840,
        max_recv: 5840,
        group: 7,
        address: b"135".to_vec(),
        results: results.collect(),
    };
    let mut out = Vec::new();
    Pdu::BindAck(ack).write(&mut out, FIRST | LAST, 1, &[]);
    feed(&mut *pair.client, &out).unwrap();
    let refused =
        start(&mut *pair.client, &class_way(terms.way()), &interface("Counter", COUNTER), 0, &put_int(0));
    assert_eq!(refused.unwrap_err().kind(), Kind::Refused);
    assert!(pair.client.transmit().is_empty());
}

#[test]
fn a_server_without_multiplexing_gets_one_call_at_a_time() {
    let mut pair = Pair::new(Terms::OPEN);
    let counter = interface("Counter", COUNTER);
    // Take the flag out of the bind on its way.
    let mut bind = drain(&mut *pair.client);
    bind[3] &= !MULTIPLEX;
    feed(&mut *pair.server, &bind).unwrap();
    let way = pair.activate(&class_way(Terms::OPEN.way()), &counter);
    let ids: Vec<_> = (0..3).map(|turn| pair.call(&way, &counter, 0, &put_int(turn))).collect();
    let mut seen = Vec::new();
    for _ in &ids {
        assert!(pair.calls.len() <= 1);
        let replies = pair.run().unwrap();
        seen.extend(replies);
        assert_eq!(pair.calls.len(), 1);
        let call = pair.calls.remove(0);
        pair.server.answer(call.id, Answer::Done(&put_int(7))).unwrap();
    }
    seen.extend(pair.run().unwrap());
    assert_eq!(seen.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
}

#[test]
fn an_answer_over_the_limit_ends_the_connection_and_says_why() {
    let terms = Terms::OPEN;
    let node = Node::serving();
    let mut pair = Pair::to(
        &class_way(terms.way()),
        terms,
        Limits { message: 50_000, ..Limits::default() },
        Node::empty(),
        node,
    );
    let counter = interface("Counter", COUNTER);
    let way = pair.activate(&class_way(terms.way()), &counter);
    let id = pair.call(&way, &counter, 0, &put_int(1));
    let _ = pair.incoming();
    let call = raw::pdus(&pair.sent).last().unwrap().0.call;
    let part = |flags| {
        let mut out = Vec::new();
        let response =
            everywire_dcom::pdu::Response { alloc_hint: u32::MAX, context: 0, cancels: 0, stub: 0..0 };
        Pdu::Response(response).write(&mut out, flags, call, &[0; 30_000]);
        out
    };
    feed(&mut *pair.client, &part(FIRST)).unwrap();
    assert_eq!(breach(feed(&mut *pair.client, &part(0))), "OverLimit");
    match events(&mut *pair.client).pop() {
        Some(Event::Reply { id: of, outcome }) => {
            assert_eq!((of, failure(outcome).kind()), (id, Kind::LimitExceeded));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_that_nobody_waits_for_are_dropped() {
    let (mut pair, ..) = recorded(Level::None);
    for flags in [FIRST | LAST, FIRST, 0, LAST] {
        let mut out = Vec::new();
        let response = everywire_dcom::pdu::Response { alloc_hint: 0, context: 0, cancels: 0, stub: 0..0 };
        Pdu::Response(response).write(&mut out, flags, 9999, &[0; 16]);
        feed(&mut *pair.client, &out).unwrap();
        assert!(events(&mut *pair.client).is_empty());
    }
}

/// Each octet of what either side says, changed: a breach or an answer, and nothing worse.
#[test]
fn no_octet_is_believed_blindly() {
    for level in [Level::None, Level::Connect, Level::Integrity] {
        let (pair, ..) = recorded(level);
        for at in 0..pair.sent.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut said = pair.sent.clone();
                said[at] ^= change;
                let (mut session, _node) = server(Terms::at(level), STRANGER);
                let _ = feed(&mut *session, &said);
                for event in events(&mut *session) {
                    if let Event::Call(call) = event {
                        let _ = session.answer(call.id, Answer::Done(&put_int(1)));
                    }
                }
                assert!(session.wanted() <= usize::from(u16::MAX));
            }
        }
        for at in 0..pair.received.len() {
            let mut told = pair.received.clone();
            told[at] ^= 0xff;
            let mut other = Pair::new(Terms::at(level));
            let _ = other.call(
                &class_way(Terms::at(level).way()),
                &interface("Counter", COUNTER),
                0,
                &put_int(0),
            );
            let _ = feed(&mut *other.client, &told);
            let _ = events(&mut *other.client);
        }
    }
}

/// Calls the counter as a ledger, where the server names an IPID that is known: how often it is asked for one, and what
/// became of the call.
fn asked_for_a_ledger(known: usize) -> (usize, usize, Option<(Kind, Completed)>) {
    let mut pair = Pair::new(Terms::OPEN);
    let counter = interface("Counter", COUNTER);
    let way = pair.activate(&class_way(Terms::OPEN.way()), &counter);
    let proxy = way.lease.share::<Proxy>().unwrap();
    for number in 1..=known as u128 {
        let std = StdObjRef { ipid: Uuid::from_u128(number), public_refs: 1, ..StdObjRef::default() };
        proxy.learn(Uuid::from_u128(number << 64), &std);
    }
    let id = pair.call(&way, &interface("Ledger", LEDGER), 0, &put_int(1));
    let std = StdObjRef { ipid: proxy.any_ipid(), public_refs: 5, ..StdObjRef::default() };
    let (mut queries, mut calls, mut failed) = (0, 0, None);
    for _ in 0..8 {
        feed(&mut *pair.server, &drain(&mut *pair.client)).unwrap();
        for event in events(&mut *pair.server) {
            let Event::Call(call) = event else { continue };
            if call.key.is_empty() {
                // What is not kept is released.
                queries += usize::from(*call.operation == 3_u16.to_le_bytes());
                let reply = query_reply(&[Ok(std)]);
                let put = |sink: &mut dyn Sink| put_octets(&reply, sink);
                pair.server.answer(call.id, Answer::Done(&put)).unwrap();
            } else {
                calls += 1;
            }
        }
        feed(&mut *pair.client, &drain(&mut *pair.server)).unwrap();
        for event in events(&mut *pair.client) {
            if let Event::Reply { id: of, outcome } = event {
                assert_eq!(of, id);
                let failure = failure(outcome);
                failed = Some((failure.kind(), failure.completed()));
            }
        }
    }
    (queries, calls, failed)
}

#[test]
fn an_interface_with_a_known_ipid_is_asked_for_once() {
    let (queries, calls, failed) = asked_for_a_ledger(0);
    assert_eq!((queries, calls, failed), (1, 1, None));
}

#[test]
fn an_interface_beyond_those_that_are_kept_fails_its_call() {
    let (queries, calls, failed) = asked_for_a_ledger(everywire_dcom::limits::PROXY_INTERFACES);
    assert_eq!((queries, calls, failed), (1, 0, Some((Kind::LimitExceeded, Completed::No))));
}
