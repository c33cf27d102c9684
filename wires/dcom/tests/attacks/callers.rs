//! Who calls: strangers, tokens that are none, signatures that are wrong.

use super::*;
use crate::support::*;
use everywire_auth::security::{Credentials, Secret, UserTable};
use everywire_dcom::Security;
use std::sync::Arc;

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

/// Binds as `user` does, into this association group; the server's last word on it.
fn join(node: &Node, place: &Security, user: &str, group: u32) -> Result<u32, Violation> {
    let mut way = Security::new(Level::Integrity);
    let (domain, password) = (String::new(), Secret::password("Sesame 1"));
    way.credentials = Some(Arc::new(Credentials { domain, user: user.into(), password }));
    let wire_state = Some(Arc::clone(&node.exporter) as Arc<dyn WireState>);
    let config = Config { profile: class_way(way), wire_state, ..Config::default() };
    let mut client = DCOM.connect(&config);
    let mut server = DCOM.accept(&self::place(place.clone(), node, STRANGER, Limits::default()));
    let mut bind = drain(&mut *client);
    bind[20..24].copy_from_slice(&group.to_le_bytes());
    feed(&mut *server, &bind)?;
    let ack = drain(&mut *server);
    let [(_, Pdu::BindAck(told), _)] = &raw::pdus(&ack)[..] else { panic!("{ack:?}") };
    feed(&mut *client, &ack)?;
    feed(&mut *server, &drain(&mut *client))?;
    // Whether it was let in shows in the answer to a call.
    feed(&mut *server, &raw::request(9, FIRST | LAST, 9, 3, None, &[]))?;
    // The connection stays, or its group would end.
    std::mem::forget(server);
    Ok(told.group)
}

/// R5, CVE-2015-5370: an association group is of who made it.
#[test]
fn association_groups_are_not_shared_between_callers() {
    let node = Node::serving();
    let mut place = Security::new(Level::Integrity);
    let mut users = UserTable::default();
    users.insert(None, "ali", Secret::password("Sesame 1"));
    users.insert(None, "eve", Secret::password("Sesame 1"));
    place.users = Some(Arc::new(users));
    let group = join(&node, &place, "ali", 0).unwrap();
    assert_eq!(join(&node, &place, "ali", group).unwrap(), group);
    assert_eq!(breach(join(&node, &place, "eve", group).map(|_| ())), "Denied");
    assert_eq!(breach(join(&node, &place, "ali", group ^ 1).map(|_| ())), "Group");
    // Nor does nobody join it.
    let mut server = DCOM.accept(&self::place(place.clone(), &node, STRANGER, Limits::default()));
    let mut bind = raw::bind(1, &[(COUNTER_ID, 0)]);
    bind[20..24].copy_from_slice(&group.to_le_bytes());
    assert_eq!(breach(feed(&mut *server, &bind)), "Group");
}

/// Nobody becomes somebody else on the way.
#[test]
fn a_context_that_stands_is_not_made_anew() {
    let (mut pair, ..) = recorded(Level::Integrity);
    let mut hello = b"NTLMSSP\0\x01\0\0\0\x15\x82\x88\xe0".to_vec();
    hello.extend_from_slice(&[0; 16]);
    let again = raw::with_trailer(raw::alter(90, 20, &[(COUNTER_ID, 0)]), 10, 5, 1, &hello);
    assert_eq!(breach(feed(&mut *pair.server, &again)), "SecurityContextReused");
    assert_eq!(raw::fault(&drain(&mut *pair.server)), (hresult::NCA_ACCESS_DENIED, true));
}

#[test]
fn a_call_before_the_last_token_ends_the_connection() {
    let (mut session, _node) = server(Terms::at(Level::Integrity), STRANGER);
    let mut hello = b"NTLMSSP\0\x01\0\0\0\x15\x82\x88\xe0".to_vec();
    hello.extend_from_slice(&[0; 16]);
    let bind = raw::with_trailer(raw::bind(1, &[(MANAGEMENT, 1)]), 10, 5, 1, &hello);
    feed(&mut *session, &bind).unwrap();
    drain(&mut *session);
    let early = raw::request(2, FIRST | LAST, 0, 0, None, &[]);
    assert_eq!(breach(feed(&mut *session, &early)), "Unfinished");
    assert_eq!(raw::fault(&drain(&mut *session)), (hresult::NCA_PROTO_ERROR, true));
}
