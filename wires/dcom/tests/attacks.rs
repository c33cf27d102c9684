//! Peers that break the rules, by accident or on purpose: each gets a named breach or an answer, never more.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use everywire_dcom::frame::{self, FIRST, LAST, MULTIPLEX, PduKind};
use everywire_dcom::pdu::{Pdu, Syntax};
use everywire_dcom::{DCOM, Level, MANAGEMENT, OBJECT_EXPORTER, hresult};
use everywire_model::*;
use support::*;
use uuid::Uuid;

const COUNTER_ID: Uuid = uuid::uuid!("5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a001");
const STRANGER: &str = "tcp:192.0.2.66:4444";

/// A server without protection, and the node behind it.
fn open_server() -> (Box<dyn Session>, Node) {
    server(Terms::OPEN, STRANGER)
}

fn server(terms: Terms, peer: &str) -> (Box<dyn Session>, Node) {
    let node = Node::serving();
    let session = DCOM.accept(&place(terms.place(), &node, peer, Limits::default()));
    (session, node)
}

/// A server that is bound to the counter's interface (context 0), the node's (1) and the management interface (2), and an
/// IPID of the counter.
fn bound() -> (Box<dyn Session>, Node, Uuid) {
    bound_as(FIRST | LAST | MULTIPLEX)
}

fn bound_as(flags: u8) -> (Box<dyn Session>, Node, Uuid) {
    let (mut session, node) = open_server();
    let interfaces = [(COUNTER_ID, 0), (OBJECT_EXPORTER, 0), (MANAGEMENT, 1)];
    feed(&mut *session, &raw::bind_as(1, flags, 5840, 5840, &interfaces)).unwrap();
    let ack = raw::pdus(&drain(&mut *session));
    assert!(
        matches!(&ack[..], [(_, Pdu::BindAck(ack), _)] if ack.results.iter().all(|result| result.result == 0))
    );
    let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    (session, node, ipid)
}

fn events(session: &mut dyn Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll()).filter(|event| !matches!(event, Event::Ready(_))).collect()
}

/// A call of the counter with a number.
fn add(call: u32, flags: u8, ipid: Uuid, value: i32) -> Vec<u8> {
    let mut stub = raw::orpc_this();
    stub.extend_from_slice(&value.to_le_bytes());
    raw::request(call, flags, 0, 3, Some(ipid), &stub)
}

fn breach(result: Result<(), Violation>) -> &'static str {
    let violation = result.unwrap_err();
    assert_eq!(violation.wire, "dcom");
    violation.name
}

#[test]
fn headers_that_are_none_end_the_connection() {
    let cases: [(usize, u8, &str); 7] = [
        (0, 4, "Version"),
        (1, 2, "Version"),
        (2, 1, "PduType"),
        (2, 20, "PduType"),
        (4, 0x20, "DataRepresentation"),
        (5, 1, "DataRepresentation"),
        (8, 15, "FragmentLength"),
    ];
    for (at, octet, name) in cases {
        let (mut session, _node) = open_server();
        let mut pdu = raw::bind(1, &[(COUNTER_ID, 0)]);
        pdu[at] = octet;
        if at == 8 {
            pdu[9] = 0;
        }
        assert_eq!(breach(feed(&mut *session, &pdu)), name, "octet {at}");
    }
}

#[test]
fn pdus_that_end_too_early_end_the_connection() {
    let whole = raw::bind(1, &[(COUNTER_ID, 0), (OBJECT_EXPORTER, 0)]);
    for len in frame::HEADER..whole.len() {
        let (mut session, _node) = open_server();
        let mut pdu = whole[..len].to_vec();
        frame::set_length(&mut pdu, 0);
        assert_eq!(breach(feed(&mut *session, &pdu)), "Truncated", "{len} bytes");
        assert!(matches!(raw::pdus(&drain(&mut *session))[..], [(_, Pdu::BindNak(_), _)]));
    }
    let whole = add(2, FIRST | LAST, Uuid::nil(), 1);
    for len in frame::HEADER..frame::HEADER + 24 {
        let (mut session, ..) = bound();
        let mut pdu = whole[..len].to_vec();
        frame::set_length(&mut pdu, 0);
        assert_eq!(breach(feed(&mut *session, &pdu)), "Truncated", "{len} bytes");
    }
}

#[test]
fn trailers_that_do_not_fit_end_the_connection() {
    // The value longer than the PDU; the padding longer than what is before it.
    for (at, octet) in [(10, 0xff), (74, 0xff)] {
        let (mut session, _node) = server(Terms::at(Level::Integrity), STRANGER);
        let mut pdu = raw::with_trailer(raw::bind(1, &[(COUNTER_ID, 0)]), 10, 5, 1, b"NTLMSSP\0");
        pdu[at] = octet;
        assert_eq!(breach(feed(&mut *session, &pdu)), "AuthLength");
    }
}

#[test]
fn nothing_comes_before_a_bind() {
    for pdu in [
        add(1, FIRST | LAST, Uuid::nil(), 1),
        raw::alter(1, 0, &[(COUNTER_ID, 0)]),
        raw::with_trailer(raw::bare(PduKind::Auth3, 1), 10, 5, 1, &[0; 32]),
    ] {
        let (mut session, _node) = open_server();
        assert_eq!(breach(feed(&mut *session, &pdu)), "Unexpected");
        assert_eq!(raw::fault(&drain(&mut *session)), (hresult::NCA_PROTO_ERROR, true));
        assert!(events(&mut *session).is_empty());
    }
}

#[test]
fn a_second_bind_is_refused() {
    let (mut session, ..) = bound();
    assert_eq!(breach(feed(&mut *session, &raw::bind(2, &[(COUNTER_ID, 0)]))), "Unexpected");
    assert!(matches!(raw::pdus(&drain(&mut *session))[..], [(_, Pdu::BindNak(_), _)]));
}

#[test]
fn pdus_of_the_other_side_are_refused() {
    for kind in [PduKind::BindAck, PduKind::BindNak, PduKind::Response, PduKind::Fault, PduKind::Shutdown] {
        let (mut session, ..) = bound();
        assert_eq!(breach(feed(&mut *session, &raw::bare(kind, 2))), "Unexpected", "{kind:?}");
    }
}

#[test]
fn negotiated_sizes_of_zero_mean_the_least() {
    for (xmit, recv, agreed) in [
        (0, 0, 2048),
        (0, 0xffff, 2048),
        (1432, 1432, 2048),
        (2049, 5840, 2048),
        (4280, 4280, 4280),
        (0xffff, 0xffff, 5840),
        (65_528, 65_528, 65_528),
    ] {
        let (mut session, _node) = open_server();
        feed(&mut *session, &raw::bind_as(1, FIRST | LAST, xmit, recv, &[(COUNTER_ID, 0)])).unwrap();
        match &raw::pdus(&drain(&mut *session))[..] {
            [(_, Pdu::BindAck(ack), _)] => {
                assert_eq!((ack.max_xmit, ack.max_recv), (agreed, agreed), "{xmit} {recv}");
                assert_ne!(ack.group, 0);
                assert_eq!(ack.address, b"135");
            }
            other => panic!("{other:?}"),
        }
    }
}

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
fn unknown_interfaces_and_encodings_are_refused_one_by_one() {
    let (mut session, _node) = open_server();
    let other = Syntax::new(Uuid::from_u128(7), 3);
    let mut bind =
        raw::contents(5840, 5840, &[(COUNTER_ID, 0), (other.id, 3), (COUNTER_ID, 0), (Uuid::nil(), 0)], 0);
    bind.contexts[2].transfers = vec![everywire_dcom::pdu::NDR64];
    let features = Syntax::features(0xffff);
    let mut asks = bind.contexts[0].clone();
    (asks.id, asks.transfers) = (4, vec![features]);
    bind.contexts.push(asks);
    let mut out = Vec::new();
    Pdu::Bind(bind).write(&mut out, FIRST | LAST, 1, &[]);
    feed(&mut *session, &out).unwrap();
    match &raw::pdus(&drain(&mut *session))[..] {
        [(_, Pdu::BindAck(ack), _)] => {
            let told: Vec<_> = ack.results.iter().map(|result| (result.result, result.reason)).collect();
            assert_eq!(told, [(0, 0), (2, 1), (2, 2), (2, 1), (3, 3)]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn presentation_contexts_are_bounded() {
    let (mut session, _node) = open_server();
    feed(&mut *session, &raw::bind(1, &[(COUNTER_ID, 0)])).unwrap();
    drain(&mut *session);
    let many: Vec<_> = (1..=64_u128).map(|n| (Uuid::from_u128(n << 64 | 1), 0)).collect();
    feed(&mut *session, &raw::alter(2, 1, &many)).unwrap();
    match &raw::pdus(&drain(&mut *session))[..] {
        [(_, Pdu::AlterContextResponse(ack), _)] => {
            assert_eq!(ack.results.iter().filter(|result| result.result == 0).count(), 63);
            assert_eq!((ack.results[63].result, ack.results[63].reason), (2, 3));
        }
        other => panic!("{other:?}"),
    }
    let many: Vec<_> = (1..=65_u128).map(|n| (Uuid::from_u128(n), 0)).collect();
    assert_eq!(breach(feed(&mut *session, &raw::alter(3, 100, &many))), "Contexts");
}

#[test]
fn a_context_keeps_its_interface() {
    let (mut session, ..) = bound();
    feed(&mut *session, &raw::alter(2, 0, &[(COUNTER_ID, 0)])).unwrap();
    assert_eq!(breach(feed(&mut *session, &raw::alter(3, 0, &[(OBJECT_EXPORTER, 0)]))), "UnknownContext");
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
    assert_eq!(call.expects, Expects::Nothing);
    session.answer(call.id, Answer::Done(&put_int(1))).unwrap();
    assert!(drain(&mut *session).is_empty());
    assert_eq!(session.outstanding(), 0);
}

/// R4, R9, CVE-2016-2118: who is not known may ask whether somebody is there, and nothing else.
#[test]
fn strangers_may_ask_little() {
    let terms = Terms::at(Level::Integrity);
    for (peer, local) in [(STRANGER, false), ("tcp:127.0.0.1:4444", true), ("tcp:[::1]:4444", true)] {
        let cases = [
            (OBJECT_EXPORTER, 0, 3, true),
            (OBJECT_EXPORTER, 0, 5, true),
            (OBJECT_EXPORTER, 0, 4, false),
            (OBJECT_EXPORTER, 0, 1, false),
            (MANAGEMENT, 1, 0, local),
            (MANAGEMENT, 1, 3, false),
            (everywire_dcom::ENDPOINT_MAPPER, 3, 3, local),
            (everywire_dcom::ENDPOINT_MAPPER, 3, 0, false),
            (everywire_dcom::REMOTE_ACTIVATION, 0, 0, false),
        ];
        for (iid, major, opnum, allowed) in cases {
            let (mut session, _node) = server(terms, peer);
            feed(&mut *session, &raw::bind(1, &[(iid, major)])).unwrap();
            drain(&mut *session);
            let stub = raw::orpc_this();
            feed(&mut *session, &raw::request(2, FIRST | LAST, 0, opnum, None, &stub)).unwrap();
            let calls = events(&mut *session);
            assert_eq!(calls.len(), usize::from(allowed), "{iid} {opnum} from {peer}");
            if !allowed {
                assert_eq!(raw::fault(&drain(&mut *session)), (hresult::NCA_ACCESS_DENIED, true));
            }
        }
        let (mut session, node) = server(terms, peer);
        feed(&mut *session, &raw::bind(1, &[(COUNTER_ID, 0)])).unwrap();
        drain(&mut *session);
        let ipid = node.exporter.export(b"counter", COUNTER_ID, 5).ipid;
        feed(&mut *session, &add(2, FIRST | LAST, ipid, 1)).unwrap();
        assert_eq!(raw::fault(&drain(&mut *session)), (hresult::NCA_ACCESS_DENIED, true));
    }
}

#[test]
fn mechanisms_and_levels_that_do_not_exist_are_refused() {
    for (mechanism, level, reason) in [(68, 5, 8), (0, 5, 8), (10, 0, 0), (10, 1, 0), (10, 7, 0), (0, 1, 0)] {
        let (mut session, _node) = server(Terms::at(Level::Integrity), STRANGER);
        let pdu = raw::with_trailer(raw::bind(1, &[(COUNTER_ID, 0)]), mechanism, level, 1, b"NTLMSSP\0");
        assert_eq!(breach(feed(&mut *session, &pdu)), "Authentication");
        match &raw::pdus(&drain(&mut *session))[..] {
            [(_, Pdu::BindNak(nak), _)] => {
                assert_eq!((nak.reason, &nak.versions[..]), (reason, &[(5, 0)][..]))
            }
            other => panic!("{other:?}"),
        }
        assert!(events(&mut *session).is_empty());
    }
}

#[test]
fn a_token_that_is_none_is_refused() {
    for mechanism in [9, 10] {
        let (mut session, _node) = server(Terms::at(Level::Integrity), STRANGER);
        let pdu = raw::with_trailer(raw::bind(1, &[(COUNTER_ID, 0)]), mechanism, 5, 1, b"open the door!!!");
        assert_eq!(breach(feed(&mut *session, &pdu)), "Denied");
        match &raw::pdus(&drain(&mut *session))[..] {
            [(_, Pdu::BindNak(nak), _)] => assert_eq!(nak.reason, 9),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_auth3_that_nobody_waits_for_ends_the_connection() {
    let (mut session, ..) = bound();
    let pdu = raw::with_trailer(raw::bare(PduKind::Auth3, 2), 10, 5, 1, &[0; 32]);
    assert_eq!(breach(feed(&mut *session, &pdu)), "Unexpected");
}

/// What a client with a password sent until it was let in, up to its first call of the counter, and a server to play with.
fn recorded(level: Level) -> (Pair, Profile, Interface) {
    let terms = Terms::at(level);
    let mut pair = Pair::new(terms);
    let counter = interface("Counter", COUNTER);
    let way = pair.activate(&class_way(terms.way()), &counter);
    let id = pair.call(&way, &counter, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    done(pair.outcome(id));
    (pair, way, counter)
}

/// R3: each octet of a protected PDU is covered.
#[test]
fn a_changed_octet_ends_the_connection() {
    for level in [Level::Packet, Level::Integrity, Level::Privacy] {
        let mut names = std::collections::BTreeSet::new();
        for at in [3, 12, 16, 20, 22, 24, 40, 72, 76, 90, 100, 110] {
            let (mut pair, way, counter) = recorded(level);
            let _ = pair.call(&way, &counter, 1, &put_bytes(vec![5; 16]));
            let mut pdu = drain(&mut *pair.client);
            assert!(pdu.len() > 110);
            pdu[at] ^= 1;
            if at == 3 {
                pdu[at] ^= 1 | 0x20;
            }
            names.insert(breach(feed(&mut *pair.server, &pdu)));
            assert!(events(&mut *pair.server).is_empty());
        }
        assert!(names.contains("Signature"), "{names:?}");
    }
}

/// R3, CVE-2021-23192: every fragment is protected, and by the context of the first.
#[test]
fn later_fragments_do_not_escape_the_signature() {
    for level in [Level::Integrity, Level::Privacy] {
        let (mut pair, way, counter) = recorded(level);
        let _ = pair.call(&way, &counter, 1, &put_bytes(vec![5; 100_000]));
        let all = drain(&mut *pair.client);
        let parts: Vec<_> = raw::pdus(&all).into_iter().map(|(_, _, pdu)| pdu).collect();
        assert_eq!(parts.len(), 2);
        feed(&mut *pair.server, &parts[0]).unwrap();
        let (header, request) = match Pdu::parse(&parts[1]).unwrap() {
            (header, Pdu::Request(request), _) => (header, request),
            other => panic!("{other:?}"),
        };
        let bare = raw::request(header.call, LAST, request.context, request.opnum, request.object, &[9; 32]);
        assert_eq!(breach(feed(&mut *pair.server, &bare)), "FragmentDiffers");
        assert!(events(&mut *pair.server).is_empty());
    }
}

#[test]
fn a_repeated_or_swapped_pdu_ends_the_connection() {
    let (mut pair, way, counter) = recorded(Level::Integrity);
    let _ = pair.call(&way, &counter, 0, &put_int(1));
    let pdu = drain(&mut *pair.client);
    feed(&mut *pair.server, &pdu).unwrap();
    assert_eq!(breach(feed(&mut *pair.server, &pdu)), "Signature");

    let (mut pair, way, counter) = recorded(Level::Integrity);
    let _ = pair.call(&way, &counter, 0, &put_int(1));
    let _first = drain(&mut *pair.client);
    let _ = pair.call(&way, &counter, 0, &put_int(2));
    let second = drain(&mut *pair.client);
    assert_eq!(breach(feed(&mut *pair.server, &second)), "Signature");
}

#[test]
fn a_context_is_not_used_at_another_level() {
    for (at, octet, name) in
        [(0, 9, "SecurityContextReused"), (1, 2, "SecurityContextReused"), (4, 9, "UnknownSecurityContext")]
    {
        let (mut pair, way, counter) = recorded(Level::Integrity);
        let _ = pair.call(&way, &counter, 0, &put_int(1));
        let mut pdu = drain(&mut *pair.client);
        let trailer = pdu.len() - 16 - 8;
        pdu[trailer + at] = octet;
        assert_eq!(breach(feed(&mut *pair.server, &pdu)), name);
    }
}

/// An unprotected call on a connection with a protected caller is nobody's call.
#[test]
fn calls_without_a_signature_are_not_the_callers() {
    let (mut pair, ..) = recorded(Level::Integrity);
    let ipid = pair.there.exporter.export(b"counter", COUNTER_ID, 5).ipid;
    let contexts = raw::pdus(&pair.sent).into_iter().find_map(|(_, pdu, _)| match pdu {
        Pdu::Request(request) if request.opnum == 3 && request.object == Some(ipid) => Some(request.context),
        _ => None,
    });
    let mut stub = raw::orpc_this();
    stub.extend_from_slice(&[0; 4]);
    let bare = raw::request(4000, FIRST | LAST, contexts.unwrap(), 3, Some(ipid), &stub);
    feed(&mut *pair.server, &bare).unwrap();
    assert_eq!(raw::fault(&drain(&mut *pair.server)), (hresult::NCA_ACCESS_DENIED, true));
    assert!(events(&mut *pair.server).is_empty());
}

#[test]
fn security_contexts_are_bounded() {
    let (mut session, _node) = server(Terms::at(Level::Integrity), STRANGER);
    feed(&mut *session, &raw::bind(1, &[(COUNTER_ID, 0)])).unwrap();
    let mut hello = b"NTLMSSP\0\x01\0\0\0\x15\x82\x88\xe0".to_vec();
    hello.extend_from_slice(&[0; 16]);
    for context in 0..16 {
        let pdu = raw::with_trailer(raw::alter(2, 0, &[(COUNTER_ID, 0)]), 10, 5, context, &hello);
        feed(&mut *session, &pdu).unwrap();
    }
    let pdu = raw::with_trailer(raw::alter(2, 0, &[(COUNTER_ID, 0)]), 10, 5, 16, &hello);
    assert_eq!(breach(feed(&mut *session, &pdu)), "SecurityContexts");
}

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
