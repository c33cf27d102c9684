//! Reference counts of exported objects, as IRemUnknown changes them.

use super::house::{Net, Node};
use super::lamp::{LAMP_ID, Lamp, SWITCH_ID};
use everywire_dcom::exporter::Counts;
use everywire_dcom::hresult::{E_NOINTERFACE, S_OK};
use everywire_dcom::limits::PRINCIPAL_OBJECTS;
use everywire_dcom::remunknown::{self, Query, Refs};
use everywire_dcom::standard::contracts::{CONNECTION_POINT_CONTAINER_ID, ENUM_CONNECTION_POINTS_ID};
use everywire_dcom::standard::rem_unknown::REM_UNKNOWN_ID;
use everywire_dcom::stub::Get;
use everywire_dcom::{IDISPATCH, IUNKNOWN, REM_UNKNOWN2, resolver};
use everywire_model::contract::{Operation, Signal};
use everywire_model::describe::{interface, operation, signal, sunk};
use everywire_model::{Interface, Kind, Objects, Request, Servant};
use std::sync::Arc;
use uuid::Uuid;

const LAMP: Uuid = Uuid::from_u128(0x6f0e_8c5a_0b1d_4b0e_9a3c_7d1f_0d9a_1b01);
const SWITCH: Uuid = Uuid::from_u128(0x6f0e_8c5a_0b1d_4b0e_9a3c_7d1f_0d9a_1b02);

fn node() -> Arc<Node> {
    assert_eq!((LAMP.to_string(), SWITCH.to_string()), (LAMP_ID.to_owned(), SWITCH_ID.to_owned()));
    let node = Arc::new(Net::default()).node(7001);
    node.insert("lamp", Lamp::new());
    node
}

fn release(node: &Node, refs: &[Refs], who: &str) {
    let stub = remunknown::refs_request(refs);
    let body = node.call(b"", REM_UNKNOWN_ID, 5, &stub, who).unwrap();
    assert_eq!(resolver::parse_status_reply(Get::of(&body)), Ok(S_OK));
}

fn public(ipid: Uuid, public: u32) -> Refs {
    Refs { ipid, public, private: 0 }
}

#[test]
fn an_ipid_lives_as_long_as_its_references() {
    let node = node();
    let std = node.exporter.export(b"lamp", LAMP, 5);
    assert_eq!((std.public_refs, std.oxid), (5, node.exporter.oxid()));
    let again = node.exporter.export(b"lamp", LAMP, 5);
    assert_eq!((again.oid, again.ipid), (std.oid, std.ipid));
    let served = node.exporter.served(std.ipid).unwrap();
    assert_eq!(&*served.key, b"lamp");
    release(&node, &[public(std.ipid, 9)], "a");
    assert!(served.is_connected());
    release(&node, &[public(std.ipid, 1)], "a");
    assert!(node.exporter.served(std.ipid).is_none() && !served.is_connected());
    assert_eq!(node.exporter.counts(), Counts::default());
    // The program exported it: it stays.
    assert!(node.has(b"lamp"));
    assert_ne!(node.exporter.export(b"lamp", LAMP, 1).ipid, std.ipid);
}

#[test]
fn too_many_releases_take_no_more_than_there_is() {
    let node = node();
    let std = node.exporter.export(b"lamp", LAMP, 5);
    let other = node.exporter.export(b"lamp", IUNKNOWN, 1);
    release(&node, &[public(std.ipid, u32::MAX), public(Uuid::nil(), 7), public(std.ipid, 1)], "a");
    assert_eq!(node.exporter.counts(), Counts { objects: 1, ipids: 1, ..Counts::default() });
    assert!(node.exporter.served(other.ipid).is_some());
}

#[test]
fn private_references_belong_to_their_holder() {
    let node = node();
    let std = node.exporter.export(b"lamp", LAMP, 1);
    let stub =
        remunknown::refs_request(&[Refs { ipid: std.ipid, public: 0, private: 2 }, public(Uuid::max(), 1)]);
    let body = node.call(b"", REM_UNKNOWN_ID, 4, &stub, "a").unwrap();
    let (results, _) = remunknown::parse_add_ref_reply(Get::of(&body)).unwrap();
    assert_eq!(results, [S_OK, 0x8004_01fb]);
    release(&node, &[Refs { ipid: std.ipid, public: 1, private: 2 }], "b");
    assert!(node.exporter.served(std.ipid).is_some());
    release(&node, &[Refs { ipid: std.ipid, public: 0, private: 2 }], "a");
    assert!(node.exporter.served(std.ipid).is_none());
}

#[test]
fn interfaces_are_found_with_their_bases_and_the_standard_ones() {
    let node = node();
    let std = node.exporter.export(b"lamp", IUNKNOWN, 1);
    let iids = vec![SWITCH, LAMP, Uuid::max(), IUNKNOWN, IDISPATCH];
    let stub = remunknown::query_request(&Query { ipid: std.ipid, refs: 3, iids });
    let body = node.call(b"", REM_UNKNOWN2, 3, &stub, "a").unwrap();
    let found = remunknown::parse_query_reply(Get::of(&body)).unwrap().unwrap();
    let ipids: Vec<_> = found.iter().map(|found| found.map(|std| (std.public_refs, std.oid))).collect();
    let good = Ok((3, std.oid));
    assert_eq!(ipids, [good, good, Err(E_NOINTERFACE), good, good]);
    assert_eq!(found[3].unwrap().ipid, std.ipid);
    assert_eq!(node.exporter.counts().ipids, 4);
    // The same as OBJREFs.
    let body =
        node.call(b"", REM_UNKNOWN2, 6, &remunknown::query2_request(std.ipid, &[SWITCH, Uuid::max()]), "a");
    let found = remunknown::parse_query2_reply(Get::of(&body.unwrap())).unwrap().unwrap();
    let (objref, _) = everywire_dcom::objref::ObjRef::parse(found[0].as_ref().unwrap()).unwrap();
    assert_eq!(objref.iid(), SWITCH);
    assert_eq!(objref.standard().unwrap().1.strings[0].address, "127.0.0.1[7001]");
    assert_eq!(found[1], Err(E_NOINTERFACE));
}

#[test]
fn objects_that_are_withdrawn_are_disconnected() {
    let node = node();
    let std = node.exporter.export(b"lamp", LAMP, 5);
    let served = node.exporter.served(std.ipid).unwrap();
    node.store.withdraw(b"lamp");
    assert!(node.exporter.served(std.ipid).is_none() && !served.is_connected());
    assert_eq!(node.exporter.counts(), Counts::default());
}

#[test]
fn what_was_served_for_the_wire_ends_with_its_last_reference() {
    let node = node();
    let key = node.exporter.serve(vec![Lamp::new()], "a").unwrap();
    let hold = node.exporter.hold(&key).unwrap();
    let std = node.exporter.export(&key, LAMP, 2);
    release(&node, &[public(std.ipid, 2)], "a");
    assert!(node.exporter.served(std.ipid).is_none() && node.has(&key));
    drop(hold);
    assert!(!node.has(&key));
    assert_eq!(node.exporter.counts(), Counts::default());
}

#[test]
fn nobody_gets_more_objects_than_allowed() {
    let node = node();
    let most = everywire_dcom::limits::PRINCIPAL_OBJECTS;
    let keys: Vec<_> = (0..most).map(|_| node.exporter.serve(vec![Lamp::new()], "a").unwrap()).collect();
    assert_eq!(
        node.exporter.serve(vec![Lamp::new()], "a").unwrap_err().kind(),
        everywire_model::Kind::LimitExceeded
    );
    assert!(node.exporter.serve(vec![Lamp::new()], "b").is_ok());
    node.store.withdraw(&keys[0]);
    assert!(node.exporter.serve(vec![Lamp::new()], "a").is_ok());
}

#[test]
fn results_are_known_for_blank_answers() {
    let node = node();
    assert_eq!(node.exporter.results(b"lamp", LAMP, 4).unwrap().fields().len(), 1);
    assert_eq!(node.exporter.results(b"lamp", SWITCH, 3).unwrap().fields().len(), 1);
    assert!(node.exporter.results(b"lamp", SWITCH, 4).is_none());
    assert!(node.exporter.results(b"lamp", SWITCH, 0).is_none());
}

#[test]
fn association_groups_belong_to_who_began_them() {
    let node = node();
    let group = node.exporter.associations().join(0, "a").unwrap();
    assert_eq!(node.exporter.associations().join(group, "a"), Some(group));
    assert_eq!(node.exporter.associations().join(group, "b"), None);
    assert_eq!(node.exporter.associations().join(group ^ 1, "a"), None);
    node.exporter.associations().leave(group);
    assert_eq!(node.exporter.counts().associations, 1);
    node.exporter.associations().leave(group);
    assert_eq!(node.exporter.counts().associations, 0);
}

#[test]
fn an_object_is_passed_on_only_as_what_it_offers() {
    let node = node();
    let objref = |type_id: &str| node.exporter.marshal(&node.exporter.local(type_id, b"lamp"));
    // What a caller asked for (`iid_is`), and what another contract language calls it.
    let switch = SWITCH.to_string().to_uppercase();
    for (type_id, iid) in [(LAMP_ID, LAMP), (&switch, SWITCH), ("IDL:Lamp:1.0", LAMP), ("", LAMP)] {
        assert_eq!(objref(type_id).unwrap().iid(), iid, "{type_id}");
    }
    assert_eq!(objref(&IUNKNOWN.to_string()).unwrap().iid(), IUNKNOWN);
    let before = node.exporter.counts();
    let failure = objref(&Uuid::max().to_string()).unwrap_err();
    assert_eq!(failure.code(), Some(format!("{E_NOINTERFACE:#010x}").as_str()));
    let what = format!("the object `lamp` does not offer the interface {}", Uuid::max());
    assert_eq!(failure.message(), what);
    assert_eq!(node.exporter.counts(), before);
}

static RINGS: Interface = interface!("Rings", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b11", [], 0, &[RUNG]);
static FAULTS: Interface = interface!("Faults", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b12", [], 0, &[RUNG]);
const RUNG: Operation = operation!("Rung", () -> Shape::Void);
static BELL: Interface =
    interface!("Bell", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b10", [], 0, &[], [], signals & BELL_SIGNALS);
static BELL_SIGNALS: [Signal; 2] =
    [sunk(signal!("Rung", {}), &RINGS, 0), sunk(signal!("Cracked", {}), &FAULTS, 0)];

/// Emits two sets of signals.
struct Bell;

impl Servant for Bell {
    fn interface(&self) -> &Interface {
        &BELL
    }

    fn dispatch(&self, _: Request) {}
}

/// What an answer cannot tell whole it grants no part of: nobody would give that back.
#[test]
fn points_that_cannot_all_be_made_are_not_granted() {
    let node = node();
    node.insert("bell", Arc::new(Bell));
    node.call(b"bell", CONNECTION_POINT_CONTAINER_ID, 3, &[], "a").unwrap();
    let enumerator = node.store.keys().into_iter().find(|key| key.starts_with(b"object-")).unwrap();
    // With the enumerator, one less than all.
    for _ in 2..PRINCIPAL_OBJECTS {
        node.exporter.serve(vec![Lamp::new()], "a").unwrap();
    }
    let before = node.exporter.counts();
    let next =
        |count: u32, who| node.call(&enumerator, ENUM_CONNECTION_POINTS_ID, 3, &count.to_le_bytes(), who);
    assert_eq!(next(2, "a").unwrap_err().kind(), Kind::LimitExceeded);
    assert_eq!(node.exporter.counts().ipids, before.ipids);
    // Who asks pays.
    node.call(&enumerator, ENUM_CONNECTION_POINTS_ID, 5, &[], "b").unwrap();
    next(2, "b").unwrap();
    assert_eq!(node.exporter.counts().ipids, before.ipids + 2);
}
