//! What holds for every wire: peers that are slow, cut off, silent, too large, or too many.

use super::attacker::*;
use super::pantry::{PANTRY, SCALES};
use super::target::{Settings, Target, until};
use everywire_dcom::frame::{FIRST, LAST, PduKind};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::{OBJECT_EXPORTER, iid_of};
use everywire_tests::peers::peak;
use std::net::Shutdown;
use std::time::Duration;

/// A bind and ServerAlive, which anybody may say.
fn greeting() -> Vec<u8> {
    [bind(0, &[(OBJECT_EXPORTER, 0)]), request(FIRST | LAST, 2, 0, 3, None, &[])].concat()
}

#[test]
fn t_slow_senders_harm_nobody() {
    let target = Target::new();
    let mut slow: Vec<_> = (0..200).map(|_| Attacker::silent(&target)).collect();
    for (at, octet) in greeting().iter().enumerate() {
        for peer in &mut slow {
            // Whoever was cut off by a quota has lost, as it should be.
            peer.send(&[*octet]);
        }
        if at % 20 == 0 {
            target.honest();
        }
    }
    drop(slow);
    target.recovers();
}

#[test]
fn t_who_begins_a_message_and_stops_is_closed() {
    let target = Target::with(&Settings { first_message: Duration::from_millis(500), ..Settings::default() });
    let mut peers: Vec<_> = (0..40).map(|_| Attacker::silent(&target)).collect();
    let greeting = greeting();
    for (at, peer) in peers.iter_mut().enumerate() {
        peer.send(&greeting[..at]);
    }
    peers.iter_mut().for_each(Attacker::until_closed);
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
    // 16 bits can say no more than 64 KiB; what is announced and never comes costs nobody anything.
    for length in [0, 1, 15, 0xffff_u16] {
        let mut peer = Attacker::silent(&target);
        let mut pdu = bind(0, &[(OBJECT_EXPORTER, 0)]);
        pdu[8..10].copy_from_slice(&length.to_le_bytes());
        peer.send(&pdu);
        // Half of it is all that there is.
        if length > 100 {
            peer.stream.shutdown(Shutdown::Write).expect("open");
        }
        peer.until_closed();
    }
    target.complains("FragmentLength");
    for (at, octet, violation) in [(0, 9, "Version"), (2, 99, "PduType"), (4, 0x33, "DataRepresentation")] {
        let mut peer = Attacker::silent(&target);
        let mut pdu = bind(0, &[(OBJECT_EXPORTER, 0)]);
        pdu[at] = octet;
        peer.send(&pdu);
        peer.until_closed();
        println!("{violation}: {}", target.log());
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
            assert!(matches!(answer, Answer::Done(_) | Answer::Fault(_)), "{answer:?}\n{}", target.log());
        }
    }
    target.recovers();
}

#[test]
fn t_a_server_out_of_descriptors_recovers() {
    let target = Target::with(&Settings { descriptors: Some(64), ..Settings::default() });
    target.honest();
    let crowd: Vec<_> = (0..150).map(|_| Attacker::silent(&target)).collect();
    std::thread::sleep(Duration::from_millis(300));
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
