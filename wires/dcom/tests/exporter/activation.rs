//! Activation through both interfaces.

use super::house::{Net, Node};
use super::lamp::{CLASS_ID, LAMP, LAMP_CLASS, Lamp};
use everywire_dcom::activation::{Activated, Activation, remote, scm};
use everywire_dcom::exporter::Counts;
use everywire_dcom::hresult::{E_NOINTERFACE, REGDB_E_CLASSNOTREG, S_OK};
use everywire_dcom::objref::ObjRef;
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID;
use everywire_dcom::stub::Get;
use everywire_dcom::{IUNKNOWN, REMOTE_ACTIVATION, address, iid_of};
use everywire_idl::midl::clsid_of_key;
use everywire_model::{Failure, Initiator, Kind, Objects};
use std::sync::Arc;
use uuid::Uuid;

const CLASS_FACTORY_ID: Uuid = uuid::uuid!("00000001-0000-0000-c000-000000000046");

fn node() -> Arc<Node> {
    let node = Arc::new(Net::default()).node(7001);
    node.class(CLASS_ID, &LAMP_CLASS, Box::new(|| Ok(Lamp::new())));
    node.class("broken", &LAMP, Box::new(|| Err(Failure::new(Kind::Internal, Initiator::Peer, "no wick"))));
    node.insert("hall", Lamp::new());
    node
}

fn asked(clsid: Uuid, iids: &[Uuid]) -> Activation {
    Activation {
        clsid,
        iids: iids.to_vec(),
        class_object: false,
        version: (5, 7),
        protseqs: vec![7],
        impersonation: 3,
    }
}

fn activate(node: &Node, asked: &Activation) -> Activated {
    let stub = scm::write_request(asked);
    let body = node.call(b"", REMOTE_SCM_ACTIVATOR_ID, scm::opnum(asked), &stub, "a").unwrap();
    scm::parse_reply(Get::of(&body)).unwrap()
}

fn refs(activated: &Activated) -> Vec<(u32, Option<u64>)> {
    let oid = |raw| ObjRef::parse(raw).unwrap().0.standard().unwrap().0.oid;
    activated.interfaces.iter().map(|(_, hresult, raw)| (*hresult, raw.as_ref().map(oid))).collect()
}

#[test]
fn each_activation_makes_an_object() {
    let node = node();
    let clsid: Uuid = CLASS_ID.parse().unwrap();
    let iids = [iid_of(&LAMP), Uuid::max(), IUNKNOWN];
    let made = activate(&node, &asked(clsid, &iids));
    assert_eq!((made.hresult, made.oxid), (S_OK, node.exporter.oxid()));
    assert_eq!(made.resolved.rem_unknown, node.exporter.rem_unknown());
    assert_eq!(made.resolved.bindings.strings[0].address, "127.0.0.1[7001]");
    let found = refs(&made);
    assert_eq!(found[1], (E_NOINTERFACE, None));
    assert_eq!(found[0], found[2]);
    let other = activate(&node, &asked(clsid, &iids));
    assert_ne!(refs(&other)[0].1, found[0].1);
    assert_eq!(node.exporter.counts(), Counts { objects: 2, ipids: 4, ..Counts::default() });
    assert_eq!(node.store.keys().len(), 3);
}

#[test]
fn the_older_interface_does_the_same() {
    let node = node();
    let iids = [iid_of(&LAMP), IUNKNOWN];
    let stub = remote::write_request(&asked(CLASS_ID.parse().unwrap(), &iids));
    let body = node.call(b"", REMOTE_ACTIVATION, 0, &stub, "a").unwrap();
    let made = remote::parse_reply(Get::of(&body), &iids).unwrap();
    assert_eq!((made.hresult, made.oxid), (S_OK, node.exporter.oxid()));
    assert!(refs(&made).iter().all(|(hresult, oid)| *hresult == S_OK && oid.is_some()));
}

#[test]
fn a_key_of_an_object_is_a_class_with_one_object() {
    let node = node();
    let asked = asked(clsid_of_key(b"hall"), &[iid_of(&LAMP)]);
    let (first, second) = (activate(&node, &asked), activate(&node, &asked));
    assert_eq!(refs(&first), refs(&second));
    assert_eq!(node.exporter.counts().objects, 1);
    node.store.withdraw(b"hall");
    assert_eq!(activate(&node, &asked).hresult, REGDB_E_CLASSNOTREG);
}

#[test]
fn objects_made_for_somebody_are_nobody_elses() {
    let node = node();
    let made = activate(&node, &asked(CLASS_ID.parse().unwrap(), &[IUNKNOWN]));
    assert_eq!(made.hresult, S_OK);
    let key = node.store.keys().into_iter().find(|key| key != "hall").unwrap();
    assert_eq!(activate(&node, &asked(clsid_of_key(&key), &[IUNKNOWN])).hresult, REGDB_E_CLASSNOTREG);
}

#[test]
fn failures_leave_nothing_behind() {
    let node = node();
    assert_eq!(activate(&node, &asked(Uuid::max(), &[IUNKNOWN])).hresult, REGDB_E_CLASSNOTREG);
    assert_ne!(activate(&node, &asked(clsid_of_key(b"broken"), &[IUNKNOWN])).hresult, S_OK);
    let none = activate(&node, &asked(CLASS_ID.parse().unwrap(), &[Uuid::max()]));
    assert_eq!(none.hresult, E_NOINTERFACE);
    assert_eq!(node.exporter.counts(), Counts::default());
    assert_eq!(node.store.keys(), ["hall"]);
}

#[test]
fn class_objects_make_objects() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    server.class(CLASS_ID, &LAMP_CLASS, Box::new(|| Ok(Lamp::new())));
    let mut ask = asked(CLASS_ID.parse().unwrap(), &[CLASS_FACTORY_ID]);
    ask.class_object = true;
    let (got, again) = (activate(&server, &ask), activate(&server, &ask));
    assert_eq!(refs(&got), refs(&again));
    let via = address::system(vec![server.store.endpoint.clone()], &super::house::security(), None);
    let factory = client.exporter.adopt_activated(&got, &via).unwrap();
    assert_eq!(factory.type_id, CLASS_FACTORY_ID.to_string());
    let factory = client.store.resolver().resolve(&factory).unwrap();
    let factory =
        factory.typed(everywire_model::Hold::Static(&everywire_dcom::standard::contracts::CLASS_FACTORY));
    let create = &everywire_dcom::standard::contracts::CLASS_FACTORY.operations[0];
    let made: Result<(Option<everywire_model::Reference>,), Failure> =
        factory.call(create, (everywire_dcom::standard::guid::Guid(iid_of(&LAMP)),));
    let lamp = client.store.resolver().resolve(&made.unwrap().0.unwrap()).unwrap();
    let lamp = lamp.typed(everywire_model::Hold::Static(&LAMP));
    assert_eq!(lamp.call::<_, (i32,), Failure>(&LAMP.operations[0], ()).unwrap(), (1,));
}

#[test]
fn a_class_has_one_factory_for_two_who_ask_at_once() {
    let node = node();
    let before = node.store.keys().len();
    let asked = Activation { class_object: true, ..asked(CLASS_ID.parse().unwrap(), &[IUNKNOWN]) };
    let (other, asks) = (Arc::clone(&node), asked.clone());
    *node.store.meanwhile.lock().unwrap() = Some(Box::new(move || {
        assert_eq!(other.exporter.activate(&asks, "b").hresult, S_OK);
    }));
    assert_eq!(refs(&activate(&node, &asked)), refs(&activate(&node, &asked)));
    assert_eq!(node.store.keys().len(), before + 1);
}
