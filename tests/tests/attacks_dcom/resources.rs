//! What holds for every wire: peers that are slow, cut off, silent, too large, or too many.

use super::attacker::*;
use super::pantry::{PANTRY, SCALES};
use super::target::{Settings, Target, until};
use super::values::at_the_pantry;
use crate::common::slow::{IMPATIENT, trickle, until_cut_off};
use everywire_dcom::frame::{FIRST, LAST, PduKind};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::{OBJECT_EXPORTER, hresult, iid_of};
use everywire_tests::peers::peak;
use std::collections::BTreeSet;
use std::net::Shutdown;
use std::time::Duration;

/// A bind and ServerAlive, which anybody may say.
fn greeting() -> Vec<u8> {
    [bind(0, &[(OBJECT_EXPORTER, 0)]), request(FIRST | LAST, 2, 0, 3, None, &[])].concat()
}

#[test]
fn t_slow_senders_harm_nobody() {
    let target = Target::new();
    let mut slow: Vec<_> = (0..200).map(|_| Attacker::silent(&target).stream).collect();
    let (mut cook, ipid) = at_the_pantry(&target);
    trickle(&mut slow, &greeting(), || {
        for a in 0..5 {
            let sum = cook.orpc(iid_of(&PANTRY), 7, Some(ipid), &words(&[a, 4])).results();
            assert_eq!(sum, words(&[a + 4, 0]), "an honest call");
        }
    });
    // All of them were in the middle of a PDU, and nothing of it was lost.
    for stream in slow {
        let mut peer = Attacker::on(stream);
        assert_eq!(peer.ack().results[0].result, 0, "its interface is there");
        assert!(matches!(peer.answer(), Answer::Done(_)), "ServerAlive");
    }
    drop(cook);
    target.recovers();
}

#[test]
fn t_slow_senders_are_cut_off_in_time() {
    let target = Target::with(&Settings { first_message: IMPATIENT, ..Settings::default() });
    let slow: Vec<_> = (0..10).map(|_| Attacker::silent(&target).stream).collect();
    // As long as a fragment may be.
    let mut endless = bind(0, &[(OBJECT_EXPORTER, 0)]);
    endless[8..10].copy_from_slice(&5840_u16.to_le_bytes());
    until_cut_off(slow, |at| endless.get(at).copied().unwrap_or_default());
    for _ in 0..10 {
        target.refuses_by("first_message");
    }
    target.recovers();
}

#[test]
fn t_who_begins_a_message_and_stops_is_closed() {
    let target = Target::with(&Settings { first_message: IMPATIENT, ..Settings::default() });
    let mut peers: Vec<_> = (0..40).map(|_| Attacker::silent(&target)).collect();
    let greeting = greeting();
    for (at, peer) in peers.iter_mut().enumerate() {
        peer.send(&greeting[..at]);
    }
    for peer in &mut peers {
        peer.until_closed();
        target.refuses_by("first_message");
    }
    target.recovers();
}

#[test]
fn t_connections_cut_anywhere_leave_nothing() {
    let target = Target::new();
    target.recovers();
    let before = target.descriptors();
    let greeting = greeting();
    for len in 0..=greeting.len() {
        for half in [false, true] {
            let mut peer = Attacker::silent(&target);
            peer.send(&greeting[..len]);
            if half {
                peer.stream.shutdown(Shutdown::Write).expect("open");
            }
        }
    }
    target.recovers();
    until("all descriptors are given back", || target.descriptors() <= before);
}

#[test]
fn t_known_callers_cut_anywhere_leave_nothing() {
    let target = Target::new();
    target.recovers();
    let scales = iid_of(&SCALES);
    for part in 0..40 {
        let mut cook = Attacker::cook(&target, &[ACTIVATOR, scales]);
        let (_, objrefs) = cook.activate(&[scales]);
        cook.call = 100;
        let load = [orpc_this(), words(&[8, 8]), vec![1; 8]].concat();
        let pdu = cook.fragment(FIRST | LAST, scales, 4, Some(objrefs[0].ipid), &load);
        cook.send(&pdu[..pdu.len() * part / 40]);
    }
    target.recovers();
}

#[test]
fn t_pdus_that_announce_too_much_are_refused() {
    let target = Target::new();
    for length in [0, 1, 15_u16] {
        let mut peer = Attacker::silent(&target);
        let mut pdu = bind(0, &[(OBJECT_EXPORTER, 0)]);
        pdu[8..10].copy_from_slice(&length.to_le_bytes());
        peer.send(&pdu);
        peer.until_closed();
        target.complains("FragmentLength");
    }
    // 16 bits can say no more than 64 KiB; what is announced and never comes costs nobody anything.
    let mut peer = Attacker::silent(&target);
    let mut pdu = bind(0, &[(OBJECT_EXPORTER, 0)]);
    pdu[8..10].copy_from_slice(&[0xff, 0xff]);
    peer.send(&pdu);
    // Half of it is all that there is.
    peer.stream.shutdown(Shutdown::Write).expect("open");
    peer.until_closed();
    for (at, octet, violation) in [(0, 9, "Version"), (2, 99, "PduType"), (4, 0x33, "DataRepresentation")] {
        let mut peer = Attacker::silent(&target);
        let mut pdu = bind(0, &[(OBJECT_EXPORTER, 0)]);
        pdu[at] = octet;
        peer.send(&pdu);
        peer.until_closed();
        target.complains(violation);
    }
    target.recovers();
}

#[test]
fn t_random_bytes_harm_nobody() {
    let target = Target::new();
    target.recovers();
    let (threads, descriptors) = (target.threads(), target.descriptors());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..1500 {
        let mut bytes = match round % 3 {
            0 => greeting(),
            1 => [greeting(), bare(PduKind::CoCancel, 2), alter(1, &[(ACTIVATOR, 0)])].concat(),
            _ => (0..next() % 300).map(|_| u8::try_from(next() & 0xff).expect("a byte")).collect(),
        };
        if !bytes.is_empty() {
            for _ in 0..1 + next() % 6 {
                let at = usize::try_from(next() >> 1).unwrap_or(0) % bytes.len();
                bytes[at] = u8::try_from(next() & 0xff).expect("a byte");
            }
        }
        let mut peer = Attacker::silent(&target);
        peer.send(&bytes);
    }
    target.recovers();
    until("all descriptors are given back", || target.descriptors() <= descriptors);
    until("all threads are given back", || target.threads() <= threads + 4);
}

/// Whoever is known and then says anything.
#[test]
fn t_known_callers_that_say_anything_harm_nobody() {
    let target = Target::new();
    let scales = iid_of(&SCALES);
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut done, mut refusals) = (0, BTreeSet::new());
    for _ in 0..60 {
        let mut cook = Attacker::cook(&target, &[ACTIVATOR, scales, iid_of(&PANTRY)]);
        let (_, objrefs) = cook.activate(&[scales]);
        for _ in 0..20 {
            let len = usize::try_from(next() % 600).expect("small");
            let stub: Vec<u8> = (0..len).map(|_| u8::try_from(next() % 5).expect("a byte")).collect();
            let (iid, opnum) =
                if next() % 2 == 0 { (scales, next() % 8) } else { (iid_of(&PANTRY), next() % 11) };
            let opnum = u16::try_from(opnum).expect("small");
            let answer = cook.orpc(iid, opnum, Some(objrefs[0].ipid), &stub);
            match answer {
                Answer::Done(stub) if !hresult::is_failure(Answer::Done(stub.clone()).hresult()) => done += 1,
                refused => drop(refusals.insert(refused.refusal())),
            }
        }
    }
    assert!(done > 0, "nothing of it was a good call");
    let names: Vec<_> = refusals.into_iter().collect();
    assert_eq!(names, ["DISP_E_BADINDEX", "E_FAIL", "E_NOTIMPL", "NCA_FAULT_NDR", "NCA_OP_RNG_ERROR"]);
    target.recovers();
}

#[test]
fn t_a_server_out_of_descriptors_recovers() {
    let target = Target::with(&Settings { descriptors: Some(64), ..Settings::default() });
    target.honest();
    let crowd: Vec<_> = (0..150).map(|_| Attacker::silent(&target)).collect();
    until("the server wants descriptors", || target.log().contains("starved accepting at"));
    drop(crowd);
    target.recovers();
}

/// Who asks for much and reads nothing.
#[test]
fn t_a_caller_that_never_reads_costs_little() {
    let target = Target::new();
    let scales = iid_of(&SCALES);
    let mut cook = Attacker::cook(&target, &[ACTIVATOR, scales]);
    let (_, objrefs) = cook.activate(&[scales]);
    let before = peak(target.pid());
    cook.stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    let load = [orpc_this(), words(&[4000, 4000]), vec![7; 4000]].concat();
    for call in 0..20_000 {
        cook.call = 100 + call;
        let pdu = cook.fragment(FIRST | LAST, scales, 4, Some(objrefs[0].ipid), &load);
        // The server stops reading at some time.
        if !cook.send(&pdu) {
            break;
        }
    }
    target.honest();
    let grown = peak(target.pid()).saturating_sub(before);
    println!("the server grew by {grown} bytes");
    assert!(grown < 64 << 20, "the server grew by {grown} bytes");
    drop(cook);
    target.recovers();
}
