//! References: forged, stolen, never given back, and to other hosts.

use super::attacker::*;
use super::pantry::{PANTRY, SCALES};
use super::target::{COOK, Settings, THIEF, Target};
use everywire_dcom::hresult::{self, S_OK};
use everywire_dcom::objref::StdObjRef;
use everywire_dcom::remunknown::{
    Query, Refs, parse_add_ref_reply, parse_query_reply, query_request, refs_request,
};
use everywire_dcom::resolver::{self, ComplexPing};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::standard::rem_unknown::REM_UNKNOWN_ID;
use everywire_dcom::stub::Get;
use everywire_dcom::{IUNKNOWN, Level, OBJECT_EXPORTER, iid_of};
use uuid::Uuid;

/// A user's connection with everything that these tests call.
fn user(target: &Target, user: &str) -> Attacker {
    let all = [ACTIVATOR, iid_of(&SCALES), REM_UNKNOWN_ID, OBJECT_EXPORTER, iid_of(&PANTRY)];
    Attacker::user(target, user, Level::Integrity, &all)
}

/// An object of a user, and the IPID of the exporter's IRemUnknown.
fn object(peer: &mut Attacker) -> (StdObjRef, Uuid) {
    let (activated, objrefs) = peer.activate(&[iid_of(&SCALES)]);
    (objrefs[0], activated.resolved.rem_unknown)
}

fn is_alive(peer: &mut Attacker, ipid: Uuid) -> bool {
    let stub = [words(&[1, 1]), vec![7]].concat();
    matches!(peer.orpc(iid_of(&SCALES), 4, Some(ipid), &stub), Answer::Done(_))
}

fn complex(peer: &mut Attacker, set: u64, sequence: u16, add: &[u64], remove: &[u64]) -> (u64, u32) {
    let ping = ComplexPing { set, sequence, add: add.to_vec(), remove: remove.to_vec() };
    let stub = peer.plain(OBJECT_EXPORTER, 2, None, &resolver::complex_ping_request(&ping)).done();
    let (set, _, status) = resolver::parse_complex_ping_reply(Get::new(&stub, true)).expect("a good answer");
    (set, status)
}

#[test]
fn o4_forged_numbers_lead_nowhere() {
    let target = Target::new();
    let mut cook = user(&target, COOK);
    let (std, node) = object(&mut cook);
    let mut thief = user(&target, THIEF);
    let near = |value: Uuid, step: u128| Uuid::from_u128(value.as_u128().wrapping_add(step));
    let forged =
        [near(std.ipid, 1), near(std.ipid, u128::MAX), near(node, 1), Uuid::max(), Uuid::from_u128(1)];
    for ipid in forged {
        let answer = thief.orpc(iid_of(&SCALES), 4, Some(ipid), &[0; 16]);
        assert_eq!(answer, Answer::Fault(hresult::RPC_E_DISCONNECTED), "{ipid}");
        let query = query_request(&Query { ipid, refs: 5, iids: vec![IUNKNOWN] });
        let stub = thief.orpc(REM_UNKNOWN_ID, 3, Some(node), &query).results();
        let found = parse_query_reply(Get::after(&stub, 8, true)).expect("a good answer");
        assert!(found.is_err() || found.is_ok_and(|all| all.iter().all(Result::is_err)), "{ipid}");
    }
    // An exporter that there is not, and objects that there are not.
    for oxid in [0, 1, std.oxid ^ 1, u64::MAX] {
        let stub = resolver::resolve_oxid2_request(oxid, &[7]);
        let stub = thief.plain(OBJECT_EXPORTER, 4, None, &stub).done();
        let told = resolver::parse_resolve_reply(Get::new(&stub, true), true).expect("a good answer");
        assert!(told.is_err(), "{oxid:#x}");
    }
    let (set, _) = complex(&mut thief, 0, 1, &[0, 1, std.oid ^ 1, u64::MAX], &[std.oid ^ 2]);
    assert_eq!(complex(&mut thief, set ^ 1, 2, &[], &[]).1, hresult::OR_INVALID_SET);
    assert!(is_alive(&mut cook, std.ipid));
    drop((cook, thief));
    target.recovers();
}

/// Public references have no owner in the protocol: who does not know an IPID cannot give them back, and private ones are
/// given back by their owner only.
#[test]
fn o4_references_of_others_are_not_given_back() {
    let target = Target::new();
    let (mut cook, mut thief) = (user(&target, COOK), user(&target, THIEF));
    let (std, node) = object(&mut cook);
    let private = refs_request(&[Refs { ipid: std.ipid, public: 0, private: 3 }]);
    let stub = cook.orpc(REM_UNKNOWN_ID, 4, Some(node), &private).results();
    assert_eq!(parse_add_ref_reply(Get::after(&stub, 8, true)).expect("good").0, [S_OK]);
    // Guesses, and too much of everything.
    let guesses: Vec<_> = (0..1000_u128)
        .map(|n| Refs {
            ipid: Uuid::from_u128(std.ipid.as_u128() ^ 1 << (n % 128)),
            public: u32::MAX,
            private: 9,
        })
        .collect();
    thief.orpc(REM_UNKNOWN_ID, 5, Some(node), &refs_request(&guesses)).results();
    // It was told the IPID by somebody: what is the cook's own stays the cook's.
    let stolen = refs_request(&[Refs { ipid: std.ipid, public: u32::MAX, private: u32::MAX }; 50]);
    thief.orpc(REM_UNKNOWN_ID, 5, Some(node), &stolen).results();
    assert!(is_alive(&mut cook, std.ipid));
    cook.orpc(
        REM_UNKNOWN_ID,
        5,
        Some(node),
        &refs_request(&[Refs { ipid: std.ipid, public: 0, private: 3 }]),
    );
    assert!(!is_alive(&mut cook, std.ipid));
    drop((cook, thief));
    target.recovers();
}

#[test]
fn o4_ping_sets_of_others_are_not_changed() {
    let target = Target::new();
    let (mut cook, mut thief) = (user(&target, COOK), user(&target, THIEF));
    let (std, _) = object(&mut cook);
    let (set, status) = complex(&mut cook, 0, 1, &[std.oid], &[]);
    assert_eq!(status, S_OK);
    let (_, status) = complex(&mut thief, set, 2, &[], &[std.oid]);
    assert_eq!(status, hresult::NCA_ACCESS_DENIED, "the thief took an object out of the cook's set");
    let (_, status) = complex(&mut cook, set, 3, &[], &[]);
    assert_eq!(status, S_OK);
    drop((cook, thief));
    target.recovers();
}

#[test]
fn o4_ping_sets_are_bounded_and_expire() {
    let target = Target::new();
    let (mut cook, mut thief) = (user(&target, COOK), user(&target, THIEF));
    let made = (0..300).filter(|_| match complex(&mut thief, 0, 1, &[1, 2, 3], &[]).1 {
        S_OK => true,
        status => {
            assert_eq!(status, hresult::E_OUTOFMEMORY);
            false
        }
    });
    assert_eq!(made.count(), 256, "sets of one principal");
    // Under another name of the same account there are no more.
    for name in ["THIEF", "kitchen\\Thief", "\\thief", "\\thief@kitchen"] {
        let mut again = user(&target, name);
        assert_eq!(complex(&mut again, 0, 1, &[1, 2, 3], &[]).1, hresult::E_OUTOFMEMORY, "as {name}");
    }
    assert_eq!(complex(&mut cook, 0, 1, &[], &[]).1, S_OK);
    // A set with very many objects that there are not costs nothing.
    let before = target.resident();
    let many: Vec<u64> = (0..65_535).collect();
    for _ in 0..3 {
        complex(&mut cook, 0, 1, &many, &many);
    }
    let grown = target.resident().saturating_sub(before);
    assert!(grown < 16 << 20, "the server grew by {grown} bytes");
    drop((cook, thief));
    target.recovers();
}

#[test]
fn o4_references_without_pings_are_run_down() {
    // The only one of these tests in which periods take real time: nobody pings while the calls below are made, so they must not take
    // three of them, on a busy machine either.
    let period = std::time::Duration::from_secs(5);
    let target = Target::with(&Settings { period, ..Settings::default() });
    let mut cook = user(&target, COOK);
    let (std, node) = object(&mut cook);
    for _ in 0..100 {
        let more = refs_request(&[Refs { ipid: std.ipid, public: u32::MAX, private: u32::MAX }; 20]);
        cook.orpc(REM_UNKNOWN_ID, 4, Some(node), &more).results();
    }
    drop(cook);
    target.recovers_by_itself();
}

#[test]
fn o4_every_interface_there_is_not_costs_nothing() {
    let target = Target::new();
    let mut cook = user(&target, COOK);
    let (std, node) = object(&mut cook);
    let iids: Vec<_> = (1..=0x8000_u128).map(|n| Uuid::from_u128(n << 32)).collect();
    let before = target.count("ipids");
    let query = query_request(&Query { ipid: std.ipid, refs: u32::MAX, iids });
    for _ in 0..3 {
        let answer = cook.orpc(REM_UNKNOWN_ID, 3, Some(node), &query);
        assert_eq!(answer.refusal(), "E_NOINTERFACE");
    }
    assert_eq!(target.count("ipids"), before);
    assert!(is_alive(&mut cook, std.ipid));
    drop(cook);
    target.recovers();
}
