//! Calls and their fragments.

use super::*;
use crate::support::*;

#[test]
fn fragments_are_as_small_as_the_peer_wants_them() {
    let (mut session, node) = open_server();
    feed(&mut *session, &raw::bind_as(1, FIRST | LAST, 1432, 1432, &[(COUNTER_ID, 0)])).unwrap();
    let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    drain(&mut *session);
    feed(&mut *session, &raw::request(2, FIRST | LAST, 0, 4, Some(ipid), &raw::orpc_this())).unwrap();
    let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
    session.answer(call.id, Answer::Done(&put_bytes(vec![1; 10_000]))).unwrap();
    let sent = raw::pdus(&drain(&mut *session));
    assert!(sent.len() > 6 && sent.iter().all(|(header, ..)| header.length <= 1432));
}

#[test]
fn calls_by_no_context_or_to_no_object_get_a_fault_each() {
    let (mut session, _node, ipid) = bound();
    feed(&mut *session, &raw::request(2, FIRST | LAST, 9, 3, Some(ipid), &raw::orpc_this())).unwrap();
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::NCA_UNK_IF, true));
    feed(&mut *session, &add(3, FIRST | LAST, Uuid::from_u128(5), 1)).unwrap();
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::RPC_E_DISCONNECTED, true));
    // The node's own object is no counter.
    let node_object = _node.exporter.rem_unknown();
    feed(&mut *session, &add(4, FIRST | LAST, node_object, 1)).unwrap();
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::RPC_E_INVALID_IPID, true));
    // ORPCTHIS of another version, and none at all.
    let mut this = raw::orpc_this();
    this[2] = 8;
    feed(&mut *session, &raw::request(5, FIRST | LAST, 0, 3, Some(ipid), &this)).unwrap();
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::RPC_E_VERSION_MISMATCH, true));
    feed(&mut *session, &raw::request(6, FIRST | LAST, 0, 3, Some(ipid), &this[..20])).unwrap();
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::RPC_E_INVALID_HEADER, true));
    assert!(events(&mut *session).is_empty());
}

#[test]
fn the_older_versions_of_orpc_are_served() {
    for minor in 0..=7 {
        let (mut session, _node, ipid) = bound();
        let mut stub = raw::orpc_this();
        stub[2] = minor;
        stub.extend_from_slice(&9_i32.to_le_bytes());
        feed(&mut *session, &raw::request(2, FIRST | LAST, 0, 3, Some(ipid), &stub)).unwrap();
        let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!("5.{minor}") };
        assert_eq!(int(&call.body), 9);
    }
}

#[test]
fn big_endian_peers_are_understood() {
    let (mut session, node) = open_server();
    let swap = |mut pdu: Vec<u8>, shorts: &[usize], words: &[usize]| {
        pdu[4] = 0;
        for at in [8, 10].iter().chain(shorts) {
            pdu.swap(*at, at + 1);
        }
        for at in [12].iter().chain(words) {
            pdu[*at..at + 4].reverse();
        }
        pdu
    };
    // Sizes, group; context number, UUIDs and versions.
    let bind = swap(raw::bind(1, &[(COUNTER_ID, 0)]), &[16, 18, 28, 36, 38, 56, 58], &[20, 32, 48, 52, 68]);
    feed(&mut *session, &bind).unwrap();
    let ack = raw::pdus(&drain(&mut *session));
    assert!(matches!(&ack[..], [(_, Pdu::BindAck(ack), _)] if ack.results[0].result == 0), "{ack:?}");
    let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    let mut call = add(2, FIRST | LAST, ipid, 0x0102_0304);
    let stub = frame::HEADER + 24;
    call =
        swap(call, &[20, 22, 28, 30, stub, stub + 2, stub + 16, stub + 18], &[16, 24, stub + 12, stub + 32]);
    call[stub + 12..stub + 32].fill(0);
    feed(&mut *session, &call).unwrap();
    let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
    assert_eq!((int(&call.body), &*call.operation, &*call.key), (0x0102_0304, &[3, 0][..], &b"counter"[..]));
}

/// R2, CVE-2022-26809: the total is checked before anything is appended; hints allocate nothing.
#[test]
fn fragments_do_not_exceed_the_limit_together() {
    let node = Node::serving();
    let limits = Limits { message: 100_000, ..Limits::default() };
    let mut session = DCOM.accept(&place(Terms::OPEN.place(), &node, STRANGER, limits));
    feed(&mut *session, &raw::bind(1, &[(COUNTER_ID, 0)])).unwrap();
    let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    let mut first = raw::request(2, FIRST, 0, 4, Some(ipid), &[0; 1000]);
    first[16..20].fill(0xff);
    feed(&mut *session, &first).unwrap();
    for turn in 2.. {
        let result = feed(&mut *session, &raw::request(2, 0, 0, 4, Some(ipid), &[0; 1000]));
        if turn <= 100 {
            result.unwrap();
        } else {
            assert_eq!(breach(result), "OverLimit");
            break;
        }
    }
    assert!(events(&mut *session).is_empty());
}

#[test]
fn fragmented_calls_are_bounded_in_number() {
    let (mut session, _node, ipid) = bound();
    for call in 2..66 {
        feed(&mut *session, &add(call, FIRST, ipid, 1)).unwrap();
    }
    assert_eq!(breach(feed(&mut *session, &add(66, FIRST, ipid, 1))), "Assemblies");
}

#[test]
fn fragments_of_several_calls_interleave_where_that_was_agreed() {
    let (mut session, _node, ipid) = bound();
    for (call, flags) in [(2, FIRST), (3, FIRST), (2, LAST), (3, 0), (3, LAST)] {
        let mut stub = if flags & FIRST != 0 { raw::orpc_this() } else { Vec::new() };
        stub.push(u8::try_from(call).unwrap());
        feed(&mut *session, &raw::request(call, flags, 0, 4, Some(ipid), &stub)).unwrap();
    }
    let bodies: Vec<_> = events(&mut *session)
        .into_iter()
        .map(|event| match event {
            Event::Call(call) => call.body.bytes.to_vec(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bodies, [vec![2, 2], vec![3, 3, 3]]);
    let (mut session, _node, ipid) = bound_as(FIRST | LAST);
    feed(&mut *session, &add(2, FIRST, ipid, 1)).unwrap();
    assert_eq!(breach(feed(&mut *session, &add(3, FIRST, ipid, 1))), "StrayFragment");
}

#[test]
fn fragments_that_belong_to_nothing_or_differ_end_the_connection() {
    type Second = fn(Uuid) -> Vec<u8>;
    let cases: [(Second, &str); 6] = [
        (|ipid| raw::request(3, 0, 0, 3, Some(ipid), &[]), "StrayFragment"),
        (|ipid| raw::request(2, FIRST, 0, 3, Some(ipid), &[]), "CallReused"),
        (|ipid| raw::request(2, LAST, 1, 3, Some(ipid), &[]), "FragmentDiffers"),
        (|ipid| raw::request(2, LAST, 0, 4, Some(ipid), &[]), "FragmentDiffers"),
        (|_| raw::request(2, LAST, 0, 3, None, &[]), "FragmentDiffers"),
        (
            |ipid| raw::with_trailer(raw::request(2, LAST, 0, 3, Some(ipid), &[]), 10, 5, 1, &[0; 16]),
            "UnknownSecurityContext",
        ),
    ];
    for (second, name) in cases {
        let (mut session, _node, ipid) = bound();
        feed(&mut *session, &add(2, FIRST, ipid, 1)).unwrap();
        assert_eq!(breach(feed(&mut *session, &second(ipid))), name);
        assert_eq!(raw::pdus(&drain(&mut *session)).len(), 1);
    }
}

#[test]
fn an_open_call_keeps_its_number() {
    let (mut session, _node, ipid) = bound();
    feed(&mut *session, &add(2, FIRST | LAST, ipid, 1)).unwrap();
    assert_eq!(breach(feed(&mut *session, &add(2, FIRST | LAST, ipid, 1))), "CallReused");
}

#[test]
fn an_answered_number_may_be_used_again() {
    let (mut session, _node, ipid) = bound();
    for _ in 0..3 {
        feed(&mut *session, &add(0, FIRST | LAST, ipid, 1)).unwrap();
        let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
        session.answer(call.id, Answer::Done(&put_int(1))).unwrap();
        assert!(matches!(raw::pdus(&drain(&mut *session))[..], [(_, Pdu::Response(_), _)]));
    }
}

#[test]
fn calls_beyond_the_limit_are_told_to_wait() {
    let (mut session, _node, ipid) = bound();
    for call in 2..1026 {
        feed(&mut *session, &add(call, FIRST | LAST, ipid, 1)).unwrap();
    }
    assert_eq!(events(&mut *session).len(), 1024);
    // Withdrawing them makes no room: they still run.
    feed(&mut *session, &raw::bare(PduKind::CoCancel, 2)).unwrap();
    drain(&mut *session);
    feed(&mut *session, &add(2000, FIRST | LAST, ipid, 1)).unwrap();
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::NCA_SERVER_TOO_BUSY, true));
}

#[test]
fn cancels_and_orphans_of_unknown_calls_are_ignored() {
    let (mut session, _node, ipid) = bound();
    for kind in [PduKind::CoCancel, PduKind::Orphaned] {
        feed(&mut *session, &raw::bare(kind, 77)).unwrap();
        assert!(drain(&mut *session).is_empty() && events(&mut *session).is_empty());
    }
    // A cancelled call is told so at once; an orphaned one is not answered any more.
    for (call, kind, answers) in [(2, PduKind::CoCancel, 1), (3, PduKind::Orphaned, 0)] {
        feed(&mut *session, &add(call, FIRST | LAST, ipid, 1)).unwrap();
        let Some(Event::Call(incoming)) = events(&mut *session).pop() else { panic!() };
        feed(&mut *session, &raw::bare(kind, call)).unwrap();
        assert!(matches!(events(&mut *session)[..], [Event::Cancelled(id)] if id == incoming.id));
        session.answer(incoming.id, Answer::Done(&put_int(1))).unwrap();
        assert_eq!(raw::pdus(&drain(&mut *session)).len(), answers);
    }
    // The rest of an orphaned call comes nevertheless, where nothing else was agreed on; else it belongs to nothing.
    for keeps in [false, true] {
        if keeps {
            let mut asks = raw::contents(0, 0, &[(COUNTER_ID, 0)], 9);
            asks.contexts[0].transfers = vec![Syntax::features(2)];
            let mut out = Vec::new();
            Pdu::AlterContext(asks).write(&mut out, FIRST | LAST, 8, &[]);
            feed(&mut *session, &out).unwrap();
        }
        feed(&mut *session, &add(4, FIRST, ipid, 1)).unwrap();
        feed(&mut *session, &raw::bare(PduKind::Orphaned, 4)).unwrap();
        let rest = feed(&mut *session, &raw::request(4, LAST, 0, 3, Some(ipid), &[]));
        if keeps {
            assert_eq!(breach(rest), "StrayFragment");
        } else {
            rest.unwrap();
            let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
            session.answer(call.id, Answer::Done(&put_int(1))).unwrap();
        }
    }
}

#[test]
fn who_waits_for_no_answer_gets_none() {
    let (mut session, _node, ipid) = bound();
    feed(&mut *session, &add(2, FIRST | LAST | frame::MAYBE, ipid, 1)).unwrap();
    let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
    // Its end counts all the same.
    assert_eq!(session.outstanding(), 1);
    session.answer(call.id, Answer::Done(&put_int(1))).unwrap();
    assert!(drain(&mut *session).is_empty());
    assert_eq!(session.outstanding(), 0);
}

#[test]
fn calls_without_an_answer_are_bounded_as_others_are() {
    let node = Node::serving();
    let limits = Limits { outstanding: 4, ..Limits::default() };
    let mut session = DCOM.accept(&place(Terms::OPEN.place(), &node, STRANGER, limits));
    feed(&mut *session, &raw::bind(1, &[(COUNTER_ID, 0)])).unwrap();
    drop(drain(&mut *session));
    let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    let mut taken = Vec::new();
    for call in 2..12 {
        feed(&mut *session, &add(call, FIRST | LAST | frame::MAYBE, ipid, 1)).unwrap();
        taken.extend(events(&mut *session));
    }
    assert_eq!(taken.len(), 4);
    // What is too much is lost, and takes no room from calls that are answered.
    assert!(drain(&mut *session).is_empty());
    feed(&mut *session, &add(20, FIRST | LAST, ipid, 1)).unwrap();
    assert_eq!(events(&mut *session).len(), 1);
    let Some(Event::Call(call)) = taken.pop() else { panic!() };
    session.answer(call.id, Answer::Done(&put_int(1))).unwrap();
    feed(&mut *session, &add(12, FIRST | LAST | frame::MAYBE, ipid, 1)).unwrap();
    assert_eq!(events(&mut *session).len(), 1);
}

#[test]
fn a_pdu_that_never_ends_is_not_waited_for() {
    let (mut session, ..) = bound();
    let now = std::time::Instant::now();
    let mut input = bytes::BytesMut::from(&raw::bind(2, &[(COUNTER_ID, 0)])[..20]);
    session.receive(now, &mut input, &mut Vec::new()).unwrap();
    assert!(session.wanted() > 0);
    let due = session.deadline().unwrap();
    assert_eq!(due, now + std::time::Duration::from_secs(30));
    assert_eq!(breach(session.expire(due)), "TooSlow");
    // Nor is the last fragment of a call.
    let (mut session, _node, ipid) = bound();
    feed(&mut *session, &add(2, FIRST, ipid, 1)).unwrap();
    let due = session.deadline().unwrap();
    assert_eq!(breach(session.expire(due)), "TooSlow");
}

/// Verification trailers (MS-RPCE 2.2.2.13) are checked where they are protected; elsewhere they are ignored.
#[test]
fn trailing_octets_after_the_arguments_are_left_alone() {
    let (mut session, _node, ipid) = bound();
    let mut stub = raw::orpc_this();
    stub.extend_from_slice(&3_i32.to_le_bytes());
    stub.extend_from_slice(&[0x8a, 0xe3, 0x13, 0x71, 0x02, 0xf4, 0x36, 0x71, 2, 0x40, 1, 0, 9]);
    feed(&mut *session, &raw::request(2, FIRST | LAST, 0, 3, Some(ipid), &stub)).unwrap();
    let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
    assert_eq!(int(&call.body), 3);
}

#[test]
fn an_object_without_servants_says_nothing_of_its_interface() {
    let node = Node::serving();
    let named = Interface { kind: InterfaceKind::Dispatch, ..interface("Named", LEDGER) };
    let iid: Uuid = LEDGER.parse().unwrap();
    node.serve(b"named", named);
    let ipid = node.exporter.export(b"named", iid, 5).ipid;
    let mut session = DCOM.accept(&place(Terms::OPEN.place(), &node, STRANGER, Limits::default()));
    feed(&mut *session, &raw::bind(1, &[(iid, 0)])).unwrap();
    drop(drain(&mut *session));
    // Invoke, of an object that is being taken away, and of one that is there again.
    let mut invoke = |call| {
        feed(&mut *session, &raw::request(call, FIRST | LAST, 0, 6, Some(ipid), &raw::orpc_this())).unwrap();
        let Some(Event::Call(call)) = events(&mut *session).pop() else { panic!() };
        session.answer(call.id, Answer::Done(&put_int(1))).unwrap();
        raw::pdus(&drain(&mut *session))[0].0.length
    };
    let held = node.directory.keys.lock().unwrap().remove(&b"named"[..]).unwrap();
    invoke(2);
    node.directory.keys.lock().unwrap().insert(bytes::Bytes::from_static(b"named"), held);
    // Header, ORPCTHAT, and the results, which hold their HRESULT themselves.
    assert_eq!(invoke(3), 24 + 8 + 4);
}
