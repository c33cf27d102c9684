//! DCE/RPC: counts, fragments, signatures, levels, associations, contexts.

use super::attacker::*;
use super::pantry::{PANTRY, SCALES};
use super::target::{COOK, Held, Settings, THIEF, Target, until};
use crate::common::slow::IMPATIENT;
use everywire_dcom::frame::{FIRST, LAST, PduKind};
use everywire_dcom::pdu::Pdu;
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::{ENDPOINT_MAPPER, Level, MANAGEMENT, OBJECT_EXPORTER, hresult, iid_of};
use everywire_tests::peers::peak;
use uuid::Uuid;

/// A connection of the cook and an object of it.
fn at_the_scales(target: &Target) -> (Attacker, Uuid) {
    let scales = iid_of(&SCALES);
    let mut cook = Attacker::cook(target, &[ACTIVATOR, scales]);
    let (_, objrefs) = cook.activate(&[scales]);
    (cook, objrefs[0].ipid)
}

/// `Reverse(count, load)` with a count and a conformance that need not be true.
fn reverse(count: u32, conformance: u32, load: &[u8]) -> Vec<u8> {
    [words(&[count, conformance]), load.to_vec()].concat()
}

#[test]
fn the_calls_of_these_tests_are_good_ones() {
    let target = Target::new();
    for level in [Level::Integrity, Level::Packet] {
        let scales = iid_of(&SCALES);
        let mut cook = Attacker::user(&target, COOK, level, &[ACTIVATOR, scales]);
        let (_, objrefs) = cook.activate(&[scales]);
        assert_eq!(target.held().living, 1);
        let load = reverse(3, 3, &[1, 2, 3]);
        let stub = cook.orpc(scales, 4, Some(objrefs[0].ipid), &load).results();
        assert_eq!(stub, [words(&[3]), vec![3, 2, 1, 0], words(&[0])].concat());
        drop(cook);
        target.recovers();
    }
}

#[test]
fn r1_counts_that_the_stub_does_not_hold_are_refused() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_scales(&target);
    let before = peak(target.pid());
    let scales = iid_of(&SCALES);
    let label = |max: u32, offset: u32, len: u32| [words(&[max, offset, len]), vec![0x41, 0, 0, 0]].concat();
    let cases = [
        (4, reverse(u32::MAX, u32::MAX, &[0; 16])),
        (4, reverse(0x7fff_ffff, 0x7fff_ffff, &[0; 16])),
        (4, reverse(17, 17, &[0; 16])),
        // What the count says and what the array says are two things.
        (4, reverse(4, 0x1000_0000, &[0; 16])),
        (4, reverse(0x1000_0000, 4, &[0; 16])),
        (5, label(u32::MAX, 0, u32::MAX)),
        (5, label(2, 1, 2)),
        (5, label(2, u32::MAX, 2)),
        (5, label(1, 0, 2)),
    ];
    for (opnum, stub) in cases {
        let answer = cook.orpc(scales, opnum, Some(ipid), &stub);
        assert_eq!(answer.refusal(), "NCA_FAULT_NDR", "{opnum} {stub:x?}");
    }
    // The same connection is still good for calls.
    cook.orpc(scales, 4, Some(ipid), &reverse(3, 3, &[1, 2, 3])).results();
    let grown = peak(target.pid()).saturating_sub(before);
    assert!(grown < 16 << 20, "the server grew by {grown} bytes");
    drop(cook);
    target.recovers();
}

#[test]
fn r2_a_hint_allocates_nothing_and_fragments_are_bounded_together() {
    let target = Target::new();
    target.honest();
    let before = peak(target.pid());
    for known in [false, true] {
        let (mut peer, ipid) = if known {
            at_the_scales(&target)
        } else {
            (Attacker::nobody(&target, &[(iid_of(&SCALES), 0)]), Uuid::from_u128(7))
        };
        let scales = iid_of(&SCALES);
        // Many calls at once, none of which ends, each of which says that it will be huge.
        'flood: for round in 0_u32.. {
            for call in 0..32 {
                peer.call = 100 + call;
                let flags = if round == 0 { FIRST } else { 0 };
                let mut bare = request(flags, peer.call, peer.context(scales), 4, Some(ipid), &[0; 5000]);
                bare[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
                let pdu = peer.sign(bare);
                if !peer.send(&pdu) {
                    break 'flood;
                }
            }
            // The server may let a peer finish talking for a while, to be heard.
            if round > 100 && target.log().contains("violation OverLimit\n") {
                break;
            }
            assert!(round < 1000, "nobody stops it");
        }
        target.complains("OverLimit");
        peer.until_closed();
    }
    let grown = peak(target.pid()).saturating_sub(before);
    assert!(grown < 32 << 20, "the server grew by {grown} bytes");
    target.recovers();
}

#[test]
fn r2_fragments_of_too_many_calls_end_the_connection() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_scales(&target);
    for call in 0..1000 {
        cook.call = 100 + call;
        let pdu = cook.fragment(FIRST, iid_of(&SCALES), 4, Some(ipid), &orpc_this());
        if !cook.send(&pdu) {
            break;
        }
    }
    cook.until_closed();
    target.complains("Assemblies");
    target.recovers();
}

/// CVE-2021-23192.
#[test]
fn r3_later_fragments_do_not_escape_the_signature() {
    type Second = fn(&mut Attacker, Uuid) -> Vec<u8>;
    let scales = iid_of(&SCALES);
    let cases: [(&str, &str, Second); 4] = [
        // Without any signature.
        ("FragmentDiffers", "NCA_PROTO_ERROR", |peer, ipid| {
            request(LAST, peer.call, peer.context(iid_of(&SCALES)), 4, Some(ipid), &[0; 16])
        }),
        // By a security context that there is not.
        ("FragmentDiffers", "NCA_PROTO_ERROR", |peer, ipid| {
            peer.shield = 77;
            peer.fragment(LAST, iid_of(&SCALES), 4, Some(ipid), &[0; 16])
        }),
        // For another presentation context.
        ("FragmentDiffers", "NCA_PROTO_ERROR", |peer, ipid| {
            peer.fragment(LAST, ACTIVATOR, 4, Some(ipid), &[0; 16])
        }),
        // With a signature over something else.
        ("Signature", "NCA_SEC_PKG_ERROR", |peer, ipid| {
            let mut pdu = peer.fragment(LAST, iid_of(&SCALES), 4, Some(ipid), &[0; 16]);
            pdu[44] ^= 1;
            pdu
        }),
    ];
    let target = Target::new();
    for (violation, status, second) in cases {
        let (mut cook, ipid) = at_the_scales(&target);
        cook.call = 100;
        let first = [orpc_this(), words(&[16, 16])].concat();
        let first = cook.fragment(FIRST, scales, 4, Some(ipid), &first);
        cook.send(&first);
        let second = second(&mut cook, ipid);
        cook.send(&second);
        assert_eq!(cook.answer().refusal(), status);
        cook.until_closed();
        target.complains(violation);
    }
    // Half of a call by one context of this connection, half by another one.
    let (mut cook, ipid) = at_the_scales(&target);
    cook.call = 100;
    let first = [orpc_this(), words(&[16, 16])].concat();
    let first = cook.fragment(FIRST, scales, 4, Some(ipid), &first);
    cook.send(&first);
    let again = alter(1, &[(scales, 0)]);
    cook.admit(THIEF, Level::Integrity, 5, |token| {
        with_trailer(again.clone(), NTLM, Level::Integrity, 5, token)
    });
    let second = cook.fragment(LAST, scales, 4, Some(ipid), &[0; 16]);
    cook.send(&second);
    assert_eq!(cook.answer().refusal(), "NCA_SEC_PKG_ERROR");
    cook.until_closed();
    target.complains("Signature");
    target.recovers();
}

/// CVE-2016-2118: whoever is in between cannot make a caller be believed at a lower level.
#[test]
fn r4_levels_below_the_place_are_refused() {
    let target = Target::new();
    let scales = iid_of(&SCALES);
    let denied = Answer::Fault(hresult::NCA_ACCESS_DENIED);
    let (mut cook, ipid) = at_the_scales(&target);
    let load = reverse(3, 3, &[1, 2, 3]);
    // Nobody, and the cook at level connect.
    let mut nobody = Attacker::nobody(&target, &[(scales, 0), (OBJECT_EXPORTER, 0)]);
    assert_eq!(nobody.orpc(scales, 4, Some(ipid), &load), denied);
    assert_eq!(nobody.plain(OBJECT_EXPORTER, 1, None, &[0; 8]), denied);
    let mut low = Attacker::user(&target, COOK, Level::Connect, &[scales]);
    assert_eq!(low.orpc(scales, 4, Some(ipid), &load), denied);
    // A call without a signature on the connection of somebody who signs.
    let bare = request(FIRST | LAST, 500, 1, 4, Some(ipid), &[orpc_this(), load.clone()].concat());
    cook.send(&bare);
    assert_eq!(cook.answer(), denied);
    // A second security context at level connect, by which such a call could then be said to come.
    let sign = cook.protection.take();
    cook.admit(COOK, Level::Connect, 9, |token| {
        with_trailer(alter(1, &[(scales, 0)]), NTLM, Level::Connect, 9, token)
    });
    assert_eq!(cook.orpc(scales, 4, Some(ipid), &load), denied);
    // The first one is as good as ever.
    (cook.protection, cook.level, cook.shield) = (sign, Level::Integrity, 0);
    cook.orpc(scales, 4, Some(ipid), &load).results();
    // Another level in the trailer, and signed as such.
    cook.level = Level::Packet;
    assert_eq!(cook.orpc(scales, 4, Some(ipid), &load), denied);
    cook.until_closed();
    target.complains("SecurityContextReused");
    drop((nobody, low));
    target.recovers();
}

#[test]
fn r4_levels_and_mechanisms_that_there_are_not_are_refused() {
    let target = Target::new();
    let (_, token) = hello(COOK, Level::Integrity);
    // authentication_type_not_recognized and reason_not_specified of C706.
    for (mechanism, level, reason) in
        [(0, Level::Integrity, 8), (14, Level::Integrity, 8), (68, Level::Integrity, 8), (10, Level::None, 0)]
    {
        let mut peer = Attacker::silent(&target);
        peer.send(&with_trailer(bind(0, &[(ACTIVATOR, 0)]), mechanism, level, 0, &token));
        assert_eq!(peer.answer(), Answer::Nak(reason), "{mechanism} {level:?}");
    }
    target.recovers();
}

/// CVE-2015-5370: what a client has at the server belongs to who it proved to be.
#[test]
fn r5_an_association_is_joined_by_its_own_principal_only() {
    let target = Target::new();
    let (cook, _) = at_the_scales(&target);
    assert_ne!(cook.group, 0);
    // No such group.
    for group in [1, cook.group ^ 1, u32::MAX] {
        let mut peer = Attacker::silent(&target);
        peer.send(&bind(group, &[(ACTIVATOR, 0)]));
        assert_eq!(peer.answer(), Answer::Nak(0), "{group:#x}");
    }
    // The cook may.
    let again = |peer: &mut Attacker, user: &str, group: u32| {
        peer.contexts = vec![ACTIVATOR];
        peer.admit(user, Level::Integrity, 0, |token| {
            with_trailer(bind(group, &[(ACTIVATOR, 0)]), NTLM, Level::Integrity, 0, token)
        });
    };
    let mut second = Attacker::silent(&target);
    again(&mut second, COOK, cook.group);
    assert_eq!(second.group, cook.group);
    second.activate(&[iid_of(&SCALES)]);
    // It is the cook whatever the cook says.
    for name in ["COOK", "kitchen\\Cook", "\\cook", ".\\cook", "\\cook@kitchen.example.org"] {
        let mut third = Attacker::silent(&target);
        again(&mut third, name, cook.group);
        third.activate(&[iid_of(&SCALES)]);
    }
    drop((second, cook));
    target.recovers();
}

/// Somebody else is refused at the latest when it is known who that is.
#[test]
fn r5_an_association_of_another_principal_is_refused() {
    let target = Target::new();
    let (cook, _) = at_the_scales(&target);
    let mut thief = Attacker::silent(&target);
    let (mut side, hello) = hello(THIEF, Level::Integrity);
    thief.send(&with_trailer(bind(cook.group, &[(ACTIVATOR, 0)]), NTLM, Level::Integrity, 0, &hello));
    // Until the third token nobody knows that it is not the cook.
    let Some((header, Pdu::BindAck(_), message)) = thief.pdu() else { panic!("a bind_ack was expected") };
    let trailer = header.trailer(&message).expect("whole").expect("a token");
    let step = side.step(&message[trailer.value()..]).expect("a challenge");
    thief.send(&auth3(Level::Integrity, 0, &step.token));
    thief.protection = step.done.map(|done| done.protection);
    thief.level = Level::Integrity;
    thief.contexts = vec![ACTIVATOR];
    let pdu = thief.fragment(FIRST | LAST, ACTIVATOR, 4, None, &orpc_this());
    thief.send(&pdu);
    assert_eq!(thief.answer(), Answer::Fault(hresult::NCA_ACCESS_DENIED), "the thief joined the association");
    thief.until_closed();
    target.complains("Denied");
    drop((cook, thief));
    target.recovers();
}

#[test]
fn r6_paddings_and_lengths_of_trailers_are_checked() {
    let target = Target::new();
    let scales = iid_of(&SCALES);
    // Of a signed call: the length of the padding, of the signature, of the PDU.
    for (from_end, octet, violation, status) in [
        (Some(16 + 6), 0xff, "AuthLength", "NCA_PROTO_ERROR"),
        (Some(16 + 6), 1, "Signature", "NCA_SEC_PKG_ERROR"),
        (None, 0xff, "AuthLength", "NCA_PROTO_ERROR"),
        // A signature of no octets is none: the call comes at a level that is too low, and the connection goes on.
        (None, 0, "", "NCA_ACCESS_DENIED"),
    ] {
        let (mut cook, ipid) = at_the_scales(&target);
        cook.call = 100;
        let stub = [orpc_this(), reverse(3, 3, &[1, 2, 3])].concat();
        let mut pdu = cook.fragment(FIRST | LAST, scales, 4, Some(ipid), &stub);
        let at = from_end.map_or(10, |back| pdu.len() - back);
        pdu[at] = octet;
        cook.send(&pdu);
        assert_eq!(cook.answer().refusal(), status, "{from_end:?} {octet}");
        if !violation.is_empty() {
            cook.until_closed();
            target.complains(violation);
        }
    }
    target.recovers();
}

#[test]
fn r6_cancels_and_orphans_of_anything_harm_nobody() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_scales(&target);
    let mut storm = Vec::new();
    for call in 0..20_000 {
        let kind = if call % 2 == 0 { PduKind::CoCancel } else { PduKind::Orphaned };
        storm.extend(bare(kind, call));
    }
    cook.send(&storm);
    cook.call = 30_000;
    cook.orpc(iid_of(&SCALES), 4, Some(ipid), &reverse(1, 1, &[1])).results();
    drop(cook);
    target.recovers();
}

#[test]
fn r9_the_endpoint_mapper_amplifies_little_and_remembers_nothing() {
    let target = Target::new();
    let mut peer = Attacker::nobody(&target, &[(ENDPOINT_MAPPER, 3), (MANAGEMENT, 1)]);
    // ept_lookup of all elements, as many as possible.
    let lookup =
        |handle: [u8; 16], most: u32| [words(&[0, 0, 0, 1, 0]), handle.to_vec(), words(&[most])].concat();
    for most in [u32::MAX, 1, 0, 500] {
        let asked = lookup([0; 16], most);
        let before = peak(target.pid());
        for _ in 0..200 {
            let stub = peer.plain(ENDPOINT_MAPPER, 2, None, &asked).done();
            assert!(stub.len() <= 64 << 10, "{} bytes for {}", stub.len(), asked.len());
        }
        let grown = peak(target.pid()).saturating_sub(before);
        assert!(grown < 8 << 20, "the server grew by {grown} bytes");
    }
    // Handles that the mapper never gave.
    let answer = peer.plain(ENDPOINT_MAPPER, 2, None, &lookup([0xee; 16], 500));
    assert_eq!(answer.refusal(), "NCA_FAULT_CONTEXT_MISMATCH");
    // Nobody stops the server; nobody enters or takes away an endpoint.
    for (iid, opnum) in [(MANAGEMENT, 3), (ENDPOINT_MAPPER, 0), (ENDPOINT_MAPPER, 1), (ENDPOINT_MAPPER, 6)] {
        let answer = peer.plain(iid, opnum, None, &[0; 64]);
        assert_eq!(answer, Answer::Fault(hresult::NCA_ACCESS_DENIED), "{iid} {opnum}");
    }
    // There is no other door: no datagrams are answered.
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    udp.connect(("127.0.0.1", target.port)).expect("an address");
    let said = udp.send(&[4; 80]).and_then(|_| {
        udp.set_read_timeout(Some(std::time::Duration::from_millis(200)))?;
        udp.recv(&mut [0; 100])
    });
    assert!(said.is_err());
    drop(peer);
    target.recovers();
}

#[test]
fn presentation_contexts_are_bounded_whatever_is_altered() {
    let target = Target::new();
    let mut cook = Attacker::cook(&target, &[ACTIVATOR]);
    let before = target.resident();
    let mut taken = 0;
    for round in 0..5000_u16 {
        // One that is new, and one that is known.
        let new = Uuid::from_u128(u128::from(round) << 64 | 1);
        cook.send(&alter(1 + round, &[(new, 0)]));
        cook.send(&alter(0, &[(ACTIVATOR, 0)]));
        taken += cook.ack().results.iter().filter(|result| result.result == 0).count();
        assert_eq!(cook.ack().results[0].result, 0);
    }
    assert_eq!(taken, everywire_dcom::limits::CONTEXTS - 1);
    // All at once, which is more than a fragment may be.
    let many: Vec<_> = (1..=255_u128).map(|n| (Uuid::from_u128(n), 0)).collect();
    cook.send(&alter(6000, &many));
    assert_eq!(cook.answer().refusal(), "NCA_PROTO_ERROR");
    target.complains("FragmentLength");
    let grown = target.resident().saturating_sub(before);
    assert!(grown < 4 << 20, "the server grew by {grown} bytes");
    target.recovers();
}

#[test]
fn security_contexts_are_bounded_finished_or_not() {
    let target = Target::new();
    for finished in [true, false] {
        let mut cook = Attacker::cook(&target, &[ACTIVATOR]);
        let mut contexts = 1;
        loop {
            let (mut side, token) = hello(COOK, Level::Integrity);
            let alter = alter(0, &[(ACTIVATOR, 0)]);
            if !cook.send(&with_trailer(alter, NTLM, Level::Integrity, contexts, &token)) {
                break;
            }
            let Some((header, Pdu::AlterContextResponse(_), message)) = cook.pdu() else { break };
            let trailer = header.trailer(&message).expect("whole").expect("a token");
            if finished {
                let step = side.step(&message[trailer.value()..]).expect("a challenge");
                cook.send(&auth3(Level::Integrity, contexts, &step.token));
            }
            contexts += 1;
            assert!(contexts < 4000, "nobody stops it");
        }
        // The attacker's own is one of them, and proved.
        assert_eq!(contexts, if finished { 512 } else { 17 }, "finished: {finished}");
        target.complains("SecurityContexts");
    }
    target.recovers();
}

#[test]
fn two_thousand_half_open_binds_harm_nobody() {
    let target = Target::new();
    target.recovers();
    let before = (target.resident(), target.threads(), target.descriptors());
    let (_, token) = hello(COOK, Level::Integrity);
    let begun = with_trailer(bind(0, &[(ACTIVATOR, 0)]), NTLM, Level::Integrity, 0, &token);
    let mut half: Vec<Attacker> = Vec::new();
    for number in 0..2000 {
        let mut peer = Attacker::silent(&target);
        // Half of a bind, or half of an authentication.
        peer.send(if number % 2 == 0 { &begun } else { &begun[..40] });
        half.push(peer);
        if number % 500 == 0 {
            target.honest();
        }
    }
    target.honest();
    let each = target.resident().saturating_sub(before.0) / 2000;
    println!("a bind that is half done costs {each} bytes");
    assert!(each <= 24 << 10, "each costs {each} bytes");
    assert!(target.threads() <= before.1 + 8, "{} threads", target.threads());
    drop(half);
    target.recovers();
    until("all descriptors are given back", || target.descriptors() <= before.2);
}

#[test]
fn who_never_finishes_authentication_is_closed() {
    let target = Target::with(&Settings { first_message: IMPATIENT, ..Settings::default() });
    let (_, token) = hello(COOK, Level::Integrity);
    let begun = with_trailer(bind(0, &[(ACTIVATOR, 0)]), NTLM, Level::Integrity, 0, &token);
    let mut half: Vec<Attacker> = (0..10).map(|_| Attacker::silent(&target)).collect();
    for (number, peer) in half.iter_mut().enumerate() {
        peer.send(if number % 2 == 0 { &begun } else { &begun[..number * 8] });
    }
    for peer in &mut half {
        peer.until_closed();
        target.refuses_by("first_message");
    }
    target.recovers();
}

#[test]
fn passwords_that_are_wrong_open_nothing() {
    let target = Target::new();
    for user in [COOK, THIEF, "nobody"] {
        let mut peer = Attacker::silent(&target);
        let (mut side, token) = hello(user, Level::Integrity);
        peer.send(&with_trailer(bind(0, &[(ACTIVATOR, 0)]), NTLM, Level::Integrity, 0, &token));
        let (header, _, message) = peer.pdu().expect("an answer");
        let trailer = header.trailer(&message).expect("whole").expect("a token");
        let mut third = side.step(&message[trailer.value()..]).expect("a challenge").token;
        // The proof is somewhere in its second half.
        let len = third.len();
        third[len / 2..].iter_mut().for_each(|octet| *octet ^= 0x55);
        peer.send(&auth3(Level::Integrity, 0, &third));
        peer.contexts = vec![ACTIVATOR];
        let answer = peer.orpc(ACTIVATOR, 4, None, &[]);
        assert_eq!(answer, Answer::Fault(hresult::NCA_ACCESS_DENIED), "{user}");
    }
    assert_eq!(Held { connections: 0, ..target.held() }.living, 0);
    target.recovers();
}

#[test]
fn the_pantry_is_called_by_number_in_these_tests() {
    let target = Target::new();
    let pantry = iid_of(&PANTRY);
    let mut cook = Attacker::cook(&target, &[ACTIVATOR, pantry]);
    let (_, objrefs) = cook.activate(&[pantry]);
    let answer = cook.orpc(pantry, 7, Some(objrefs[0].ipid), &words(&[20, 22])).results();
    assert_eq!(answer, words(&[42, 0]));
    drop(cook);
    target.recovers();
}
