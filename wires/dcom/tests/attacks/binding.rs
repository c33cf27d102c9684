//! What is agreed on before a call: headers, sizes, interfaces.

use super::*;
use crate::support::*;

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
            assert_eq!(told, [(0, 0), (2, 1), (2, 2), (2, 1), (3, 0x8003)]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn presentation_contexts_are_bounded() {
    let (mut session, _node) = open_server();
    feed(&mut *session, &raw::bind(1, &[(COUNTER_ID, 0)])).unwrap();
    drain(&mut *session);
    for round in 0..16_u16 {
        let first = 1 + round * 64;
        let many: Vec<_> =
            (first..first + 64).map(|n| (Uuid::from_u128(u128::from(n) << 64 | 1), 0)).collect();
        feed(&mut *session, &raw::alter(2 + u32::from(round), first, &many)).unwrap();
        match &raw::pdus(&drain(&mut *session))[..] {
            [(_, Pdu::AlterContextResponse(ack), _)] => {
                let accepted = ack.results.iter().filter(|result| result.result == 0).count();
                // The bind had one already.
                assert_eq!(accepted, if round == 15 { 63 } else { 64 });
                let last = &ack.results[63];
                assert_eq!((last.result, last.reason), if round == 15 { (2, 3) } else { (0, 0) });
            }
            other => panic!("{other:?}"),
        }
    }
    let many: Vec<_> = (1..=65_u128).map(|n| (Uuid::from_u128(n), 0)).collect();
    assert_eq!(breach(feed(&mut *session, &raw::alter(30, 2000, &many))), "Contexts");
}

#[test]
fn a_context_keeps_its_interface() {
    let (mut session, ..) = bound();
    feed(&mut *session, &raw::alter(2, 0, &[(COUNTER_ID, 0)])).unwrap();
    assert_eq!(breach(feed(&mut *session, &raw::alter(3, 0, &[(OBJECT_EXPORTER, 0)]))), "UnknownContext");
}
