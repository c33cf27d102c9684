//! What other implementations sent, replayed to a session of this one.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::*;
use everywire_dcom::frame::{self, PduKind};
use everywire_dcom::pdu::{ContextResult, Pdu};
use everywire_dcom::{DCOM, hresult};
use everywire_model::*;
use std::collections::BTreeMap;

/// What the clients of the captured connections sent, PDU by PDU.
fn clients() -> BTreeMap<(String, String), Vec<Vec<u8>>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/captures.tsv");
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let [capture, connection, ">", hex] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        let pdu = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        all.entry((capture.to_owned(), connection.to_owned())).or_default().push(pdu.collect());
    }
    all
}

/// The same PDU without its security trailer: nobody can sign again what another key signed.
fn bare(pdu: &[u8]) -> Vec<u8> {
    let (_, _, trailer) = Pdu::parse(pdu).unwrap();
    let end = trailer.map_or(pdu.len(), |trailer| trailer.contents_end());
    let mut pdu = pdu[..end].to_vec();
    frame::set_auth_length(&mut pdu, 0, 0);
    frame::set_length(&mut pdu, 0);
    if pdu[2] == PduKind::Bind as u8 {
        // The association group of its time is none here.
        pdu[20..24].fill(0);
    }
    pdu
}

fn server() -> Box<dyn Session> {
    let node = Node::serving();
    DCOM.accept(&place(Terms::OPEN.place(), &node, "tcp:192.0.2.1:1", Limits::default()))
}

/// Calls that came out, and statuses of faults.
fn replay(pdus: &[Vec<u8>], session: &mut dyn Session) -> (Vec<Incoming>, Vec<u32>) {
    let (mut calls, mut faults) = (Vec::new(), Vec::new());
    for pdu in pdus {
        feed(session, pdu).unwrap();
        while let Some(event) = session.poll() {
            if let Event::Call(call) = event {
                // The recorded client waited for its answer; it may use the number again.
                session.answer(call.id, Answer::Done(&visit::Nothing)).unwrap();
                calls.push(*call);
            }
        }
        for (_, answer, _) in raw::pdus(&drain(session)) {
            match answer {
                Pdu::Fault(fault) => faults.push(fault.status),
                Pdu::BindNak(nak) => panic!("refused: {}", nak.reason),
                Pdu::BindAck(ack) | Pdu::AlterContextResponse(ack) => {
                    // NDR is taken and NDR64 is not, in each bind of Windows; samr is not served here.
                    let taken = |result: &ContextResult| result.result == 0 || result.reason == 1;
                    assert!(ack.results.iter().any(taken), "{ack:?}");
                }
                _ => {}
            }
        }
    }
    (calls, faults)
}

#[test]
fn connections_of_other_clients_are_understood_to_the_last_call() {
    let mut seen = 0;
    for ((capture, connection), pdus) in clients() {
        let kind = |pdu: &Vec<u8>| Pdu::parse(pdu).unwrap().0.kind;
        // Some were recorded from the middle; sealed stubs say nothing to anybody.
        let sealed = pdus.iter().any(|pdu| {
            let (header, _, trailer) = Pdu::parse(pdu).unwrap();
            header.kind == PduKind::Request && trailer.is_some_and(|trailer| trailer.level == 6)
        });
        if kind(&pdus[0]) != PduKind::Bind || sealed {
            continue;
        }
        let pdus: Vec<_> =
            pdus.iter().filter(|pdu| kind(pdu) != PduKind::Auth3).map(|pdu| bare(pdu)).collect();
        let requests = pdus.iter().filter(|pdu| kind(pdu) == PduKind::Request).count();
        let (calls, faults) = replay(&pdus, &mut *server());
        // Calls of objects name IPIDs of their time, which nothing stands for here.
        let expected = [hresult::RPC_E_DISCONNECTED, hresult::NCA_UNK_IF];
        assert!(faults.iter().all(|status| expected.contains(status)), "{capture} {connection}: {faults:x?}");
        assert_eq!(calls.len() + faults.len(), requests, "{capture} {connection}");
        seen += requests;
    }
    assert!(seen > 50, "{seen} requests");
}

#[test]
fn the_first_call_of_j_interop_is_an_activation() {
    let all = clients();
    let pdus = &all[&("utgard".to_owned(), "0".to_owned())];
    let pdus: Vec<_> = pdus
        .iter()
        .filter(|pdu| Pdu::parse(pdu).unwrap().0.kind != PduKind::Auth3)
        .map(|pdu| bare(pdu))
        .collect();
    let (calls, faults) = replay(&pdus, &mut *server());
    assert_eq!((calls.len(), faults.len()), (1, 0));
    assert_eq!(&*calls[0].interface, &everywire_dcom::REMOTE_ACTIVATION.to_bytes_le());
    assert_eq!((&*calls[0].operation, calls[0].body.base), (&[0, 0][..], 32));
}

#[test]
fn every_captured_pdu_is_written_as_it_was_read() {
    for pdus in clients().values() {
        for pdu in pdus {
            let (header, contents, _) = Pdu::parse(pdu).unwrap();
            let whole = bare(pdu);
            let stub = match &contents {
                Pdu::Request(request) => request.stub.clone(),
                _ => 0..0,
            };
            let mut out = Vec::new();
            contents.write(&mut out, header.flags, header.call, &whole[stub]);
            let (again, read, _) = Pdu::parse(&out).unwrap();
            assert_eq!((again.kind, again.flags, again.call), (header.kind, header.flags, header.call));
            assert_eq!(read, contents);
            // Padding in others holds whatever was in memory before.
            if let Pdu::Request(_) = contents {
                assert_eq!(out[16..], whole[16..]);
            }
        }
    }
}
