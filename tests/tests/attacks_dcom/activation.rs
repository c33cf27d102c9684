//! Activation: below the level that the place demands, and with blobs that lie.

use super::attacker::*;
use super::pantry::{NO_CLASS, SCALES};
use super::target::{COOK, Target};
use everywire_dcom::activation::{Activation, remote, scm};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::stub::Get;
use everywire_dcom::{IUNKNOWN, Level, REMOTE_ACTIVATION, hresult, iid_of};
use everywire_tests::peers::peak;
use std::collections::BTreeMap;
use uuid::Uuid;

/// CVE-2021-26414.
#[test]
fn o1_activation_below_integrity_makes_no_object() {
    let target = Target::new();
    let asked = activation(&[IUNKNOWN]);
    let calls = [
        (ACTIVATOR, scm::CREATE_INSTANCE, scm::write_request(&asked)),
        (
            ACTIVATOR,
            scm::GET_CLASS_OBJECT,
            scm::write_request(&Activation { class_object: true, ..asked.clone() }),
        ),
        (REMOTE_ACTIVATION, 0, remote::write_request(&asked)),
    ];
    for (iid, opnum, stub) in &calls {
        let mut nobody = Attacker::nobody(&target, &[(*iid, 0)]);
        let mut low = Attacker::user(&target, COOK, Level::Connect, &[*iid]);
        for peer in [&mut nobody, &mut low] {
            let answer = peer.orpc(*iid, *opnum, None, stub);
            assert_eq!(answer, Answer::Fault(hresult::NCA_ACCESS_DENIED), "{iid}");
        }
    }
    assert_eq!((target.held().living, target.count("objects")), (0, 0));
    target.recovers();
}

#[test]
fn o2_classes_and_versions_that_there_are_not_are_told() {
    let target = Target::new();
    let mut cook = Attacker::cook(&target, &[ACTIVATOR, REMOTE_ACTIVATION]);
    let good = activation(&[IUNKNOWN]);
    let cases = [
        ("REGDB_E_CLASSNOTREG", Activation { clsid: id(NO_CLASS), ..good.clone() }),
        ("REGDB_E_CLASSNOTREG", Activation { clsid: Uuid::nil(), ..good.clone() }),
        ("RPC_E_VERSION_MISMATCH", Activation { version: (6, 0), ..good.clone() }),
        ("RPC_E_VERSION_MISMATCH", Activation { version: (5, 9), ..good.clone() }),
        ("NCA_FAULT_NDR", Activation { iids: Vec::new(), ..good.clone() }),
        ("E_NOINTERFACE", Activation { iids: vec![Uuid::max()], ..good.clone() }),
    ];
    for (name, asked) in cases {
        let answer = cook.orpc(ACTIVATOR, scm::CREATE_INSTANCE, None, &scm::write_request(&asked));
        assert_eq!(answer.refusal(), name, "{asked:?}");
        if asked.version != good.version {
            // The other interface is told the version by ORPCTHIS.
            continue;
        }
        let answer = cook.orpc(REMOTE_ACTIVATION, 0, None, &remote::write_request(&asked));
        if asked.iids.is_empty() {
            assert_eq!(answer.refusal(), name, "{asked:?}");
            continue;
        }
        // The call is done: its results say what became of the activation.
        let stub = answer.done();
        let told = remote::parse_reply(Get::after(&stub[8..], 8, true), &asked.iids).expect("a good answer");
        assert_eq!(hresult::name(told.hresult).map(|name| name.0), Some(name), "{asked:?}");
        assert!(told.interfaces.iter().all(|(_, _, objref)| objref.is_none()), "{asked:?}: {told:?}");
    }
    assert_eq!(target.held().living, 0, "an object was made all the same");
    drop(cook);
    target.recovers();
}

/// CVE-2003-0352, CVE-2003-0813, CVE-2004-0116: each word of a blob that is a length, a count or a pointer somewhere.
#[test]
fn o2_blobs_that_lie_are_refused_at_no_cost() {
    let target = Target::new();
    let mut cook = Attacker::cook(&target, &[ACTIVATOR, REMOTE_ACTIVATION]);
    let before = peak(target.pid());
    let asked = activation(&[IUNKNOWN, iid_of(&SCALES)]);
    let blobs = [
        (ACTIVATOR, scm::CREATE_INSTANCE, scm::write_request(&asked)),
        (REMOTE_ACTIVATION, 0, remote::write_request(&asked)),
    ];
    let mut refusals = BTreeMap::<_, usize>::new();
    for (iid, opnum, good) in &blobs {
        for at in (0..good.len() & !3).step_by(4) {
            // All ones ask for the class object in one place, which is kept without pings.
            for lie in [0, 1, 0x7fff_ffff, 0x8000_0001, u32::MAX - 1] {
                let mut stub = good.clone();
                stub[at..at + 4].copy_from_slice(&lie.to_le_bytes());
                match cook.orpc(*iid, *opnum, None, &stub) {
                    Answer::Done(stub) if !hresult::is_failure(Answer::Done(stub.clone()).hresult()) => {}
                    refused @ (Answer::Done(_) | Answer::Fault(_)) => {
                        *refusals.entry(refused.refusal()).or_default() += 1;
                    }
                    other => panic!("{iid}, word at {at} as {lie:#x}: {other:?}\n{}", target.log()),
                }
            }
        }
        for len in 0..good.len() {
            let answer = cook.orpc(*iid, *opnum, None, &good[..len]);
            assert_eq!(answer.refusal(), "NCA_FAULT_NDR", "{iid}, cut to {len}");
        }
    }
    assert!(refusals.remove("NCA_FAULT_NDR").is_some_and(|times| times > 100));
    // A lie about the class or the version is one that can be told.
    let names: Vec<_> = refusals.into_keys().collect();
    assert_eq!(names, ["REGDB_E_CLASSNOTREG", "RPC_E_VERSION_MISMATCH"]);
    let grown = peak(target.pid()).saturating_sub(before);
    assert!(grown < 32 << 20, "the server grew by {grown} bytes");
    drop(cook);
    target.recovers();
}

/// Type serialization: blobs that say of themselves that they hold very many properties, or interfaces.
#[test]
fn o2_blobs_that_repeat_themselves_are_bounded() {
    let target = Target::new();
    let mut cook = Attacker::cook(&target, &[ACTIVATOR]);
    let before = peak(target.pid());
    // As many interfaces as may be asked for, and one more; each of them would be an IPID.
    for (count, name) in [(0x8000, "E_NOINTERFACE"), (0x8001, "NCA_FAULT_NDR")] {
        let iids: Vec<_> = (1..=count).map(|n| Uuid::from_u128(n << 64)).collect();
        let answer =
            cook.orpc(ACTIVATOR, scm::CREATE_INSTANCE, None, &scm::write_request(&activation(&iids)));
        assert_eq!(answer.refusal(), name, "{count} interfaces");
    }
    // One and the same interface that often.
    for _ in 0..5 {
        let iids = vec![iid_of(&SCALES); 0x8000];
        let answer =
            cook.orpc(ACTIVATOR, scm::CREATE_INSTANCE, None, &scm::write_request(&activation(&iids)));
        assert_eq!(answer.refusal(), "E_OUTOFMEMORY");
    }
    let grown = peak(target.pid()).saturating_sub(before);
    assert!(grown < 128 << 20, "the server grew by {grown} bytes");
    assert!(target.count("ipids") <= 16, "{:?}", target.held());
    drop(cook);
    target.recovers();
}

#[test]
fn o2_objects_that_nobody_keeps_are_run_down() {
    let target = Target::new();
    for _ in 0..5 {
        let mut cook = Attacker::cook(&target, &[ACTIVATOR]);
        for _ in 0..200 {
            cook.activate(&[IUNKNOWN]);
        }
        // It goes without a word.
    }
    assert!(target.held().living > 0);
    target.recovers();
}
