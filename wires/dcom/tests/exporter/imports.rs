//! References that come in and are passed on.

use super::house::{Net, Node};
use super::lamp::{LAMP, Lamp, SWITCH};
use everywire_dcom::exporter::{Counts, Proxy};
use everywire_dcom::iid_of;
use everywire_dcom::ndr::References;
use everywire_dcom::objref::ObjRef;
use everywire_model::{Failure, Hold, Interface, Object, Objects, Reference, WireState};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn pair() -> (Arc<Net>, Arc<Node>, Arc<Node>) {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    server.insert("lamp", Lamp::new());
    (net, server, client)
}

fn lamp_of(server: &Node, key: &[u8]) -> bytes::Bytes {
    server.exporter.objref(key, iid_of(&LAMP), 5).write()
}

fn object(client: &Node, reference: &Reference, interface: &'static Interface) -> Object {
    client.store.resolver().resolve(reference).unwrap().typed(Hold::Static(interface))
}

fn press(object: &Object) -> Result<i32, Failure> {
    object.call::<_, (i32,), Failure>(&object.interface().unwrap().operations[0], ()).map(|(count,)| count)
}

/// Lets everything that is due be done.
fn settle(node: &Node) {
    let now = Instant::now();
    node.exporter.tend(now);
    node.exporter.tend(now + Duration::from_secs(1));
    node.exporter.tend(now + Duration::from_secs(2));
}

#[test]
fn one_object_has_one_proxy_and_gives_all_back() {
    let (_, server, client) = pair();
    let first = client.adopt(&lamp_of(&server, b"lamp")).unwrap();
    let second = client.adopt(&lamp_of(&server, b"lamp")).unwrap();
    let proxy = |reference: &Reference| reference.profiles[0].lease.share::<Proxy>().unwrap();
    assert!(Arc::ptr_eq(&proxy(&first), &proxy(&second)));
    assert_eq!(client.exporter.counts().proxies, 1);
    let lamp = object(&client, &first, &LAMP);
    assert_eq!(press(&lamp).unwrap(), 1);
    assert_eq!(press(&object(&client, &second, &SWITCH)).unwrap(), 2);
    assert_eq!(server.exporter.counts().ipids, 2);
    drop((first, lamp));
    settle(&client);
    assert_eq!(client.exporter.counts().proxies, 1);
    drop(second);
    assert_eq!(client.exporter.counts().releases, 2);
    settle(&client);
    assert_eq!(client.exporter.counts(), Counts::default());
    assert_eq!(server.exporter.counts(), Counts::default());
}

/// The keeper has taken what there is to give back, and has not given it yet, when the node ends.
#[test]
fn the_end_of_a_node_waits_for_references_that_the_keeper_is_giving_back() {
    let (net, server, client) = pair();
    let first = client.adopt(&lamp_of(&server, b"lamp")).unwrap();
    press(&object(&client, &first, &LAMP)).unwrap();
    drop(first);
    let (begin, begun) = channel();
    let (leave, left) = channel::<()>();
    let left = Mutex::new(left);
    *net.before.lock().unwrap() = Some(Arc::new(move || {
        begin.send(()).unwrap();
        // A node that does not wait ends within this time; one that waits costs the test no more than this.
        let _ = left.lock().unwrap().recv_timeout(Duration::from_millis(100));
    }));
    std::thread::scope(|scope| {
        scope.spawn(|| settle(&client));
        begun.recv().unwrap();
        client.exporter.leave();
        let given_back = server.exporter.counts() == Counts::default();
        drop(leave);
        assert!(given_back, "the node ended first");
    });
}

#[test]
fn the_answer_of_a_resolver_is_used_again() {
    let (net, server, client) = pair();
    server.insert("other", Lamp::new());
    let first = client.adopt(&lamp_of(&server, b"lamp")).unwrap();
    press(&object(&client, &first, &LAMP)).unwrap();
    let second = client.adopt(&lamp_of(&server, b"other")).unwrap();
    press(&object(&client, &second, &LAMP)).unwrap();
    let calls = net.calls.lock().unwrap();
    assert_eq!(calls.iter().filter(|call| **call == (everywire_dcom::OBJECT_EXPORTER, 4)).count(), 1);
}

#[test]
fn objects_that_come_home_are_local_again() {
    let (_, server, _) = pair();
    let servant: Arc<dyn everywire_model::Servant> = Lamp::new();
    let key = server.exporter.serve(vec![servant], "").unwrap();
    let home = server.adopt(&lamp_of(&server, &key)).unwrap();
    assert_eq!((&home.profiles[0].key, &*home.type_id), (&key, &*LAMP.id));
    assert!(home.profiles[0].lease.get::<Proxy>().is_none());
    // Its references were given back, but the reference keeps it.
    assert_eq!(server.exporter.counts(), Counts { objects: 1, ..Counts::default() });
    assert!(server.has(&key));
    let again = ObjRef::parse(&server.correspondence().marshal(&home).unwrap()).unwrap().0;
    assert_eq!(again.standard().unwrap().0.oxid, server.exporter.oxid());
    let ipid = again.standard().unwrap().0.ipid;
    server.adopt(&again.write()).unwrap();
    assert!(server.exporter.served(ipid).is_none());
    drop(home);
    assert!(!server.has(&key));
    assert_eq!(server.exporter.counts(), Counts::default());
    let gone = server.adopt(&again.write()).unwrap_err();
    assert_eq!(gone.code(), Some("0x80004002"));
}

#[test]
fn an_object_elsewhere_is_passed_on_with_a_reference() {
    let (net, server, client) = pair();
    let third = net.node(7003);
    let lamp = client.adopt(&lamp_of(&server, b"lamp")).unwrap();
    let passed = client.correspondence().marshal(&lamp).unwrap();
    let (objref, _) = ObjRef::parse(&passed).unwrap();
    assert_eq!(objref.standard().unwrap().0.public_refs, 1);
    let got = third.adopt(&passed).unwrap();
    drop(lamp);
    settle(&client);
    assert_eq!(press(&object(&third, &got, &LAMP)).unwrap(), 1);
    drop(got);
    settle(&third);
    assert_eq!(server.exporter.counts(), Counts::default());
}

#[test]
fn without_a_reference_to_spare_the_receiver_asks_for_its_own() {
    let (net, server, client) = pair();
    let third = net.node(7003);
    let objref = server.exporter.objref(b"lamp", iid_of(&LAMP), 1).write();
    let lamp = client.adopt(&objref).unwrap();
    let passed = client.correspondence().marshal(&lamp).unwrap();
    assert_eq!(ObjRef::parse(&passed).unwrap().0.standard().unwrap().0.public_refs, 0);
    // Ours is kept meanwhile.
    drop(lamp);
    settle(&client);
    let got = third.adopt(&passed).unwrap();
    settle(&third);
    let period = everywire_dcom::exporter::PING_PERIOD;
    client.exporter.tend(Instant::now() + period * 2);
    settle(&client);
    assert_eq!(client.exporter.counts(), Counts::default());
    assert_eq!(press(&object(&third, &got, &LAMP)).unwrap(), 1);
    drop(got);
    settle(&third);
    assert_eq!(server.exporter.counts(), Counts::default());
}

#[test]
fn references_travel_in_calls() {
    let (_, server, client) = pair();
    client.insert("sink", Lamp::new());
    let lamp = client.adopt(&lamp_of(&server, b"lamp")).unwrap();
    let object = object(&client, &lamp, &LAMP);
    let sink = client.store.publish(&LAMP.id, b"sink");
    object.call::<_, (), Failure>(&LAMP.operations[2], (Some(sink),)).unwrap();
    assert_eq!((server.exporter.counts().proxies, client.exporter.counts().objects), (1, 1));
    let (back,) = object.call::<_, (Option<Reference>,), Failure>(&LAMP.operations[1], ()).unwrap();
    assert_eq!(back.unwrap().profiles[0].key, "sink");
    object.call::<_, (), Failure>(&LAMP.operations[2], (None::<Reference>,)).unwrap();
    settle(&server);
    assert_eq!(server.exporter.counts().proxies, 0);
    assert_eq!(client.exporter.counts().objects, 0);
}

#[test]
fn what_is_no_objref_is_refused() {
    let (_, server, client) = pair();
    let good = lamp_of(&server, b"lamp");
    for len in 0..good.len() - 2 {
        assert!(client.adopt(&good.slice(..len)).is_err(), "{len}");
    }
    let custom = ObjRef::Custom {
        iid: everywire_dcom::IUNKNOWN,
        clsid: uuid::Uuid::max(),
        extension: 0,
        reserved: 0,
        data: bytes::Bytes::from_static(b"what only its class knows"),
    };
    assert!(client.adopt(&custom.write()).is_err());
    assert_eq!(client.exporter.counts(), Counts::default());
}

#[test]
fn made_up_references_make_no_storm_of_calls() {
    let (net, server, client) = pair();
    let (objref, _) = ObjRef::parse(&lamp_of(&server, b"lamp")).unwrap();
    let (std, resolver) = objref.standard().unwrap();
    for oxid in 1..=1000 {
        let std = everywire_dcom::objref::StdObjRef { oxid, ..*std };
        let made_up = ObjRef::Standard { iid: objref.iid(), std, resolver: resolver.clone() };
        drop(client.adopt(&made_up.write()).unwrap());
    }
    settle(&client);
    assert_eq!(client.exporter.counts(), Counts::default());
    assert!(net.calls.lock().unwrap().len() <= 16);
}

#[test]
fn a_stranger_is_not_told_who_we_are_for_a_reference_that_nobody_used() {
    let (net, server, client) = pair();
    let (objref, _) = ObjRef::parse(&lamp_of(&server, b"lamp")).unwrap();
    let integrity = Arc::new(everywire_dcom::security::Security::new(everywire_dcom::Level::Integrity));
    drop(client.exporter.adopt(&objref, &integrity).unwrap());
    settle(&client);
    assert_eq!(client.exporter.counts(), Counts::default());
    assert_eq!(net.calls.lock().unwrap().len(), 0);
    // One that was called is.
    let used = client.exporter.adopt(&objref, &integrity).unwrap();
    press(&object(&client, &used, &LAMP)).unwrap();
    drop(used);
    settle(&client);
    let calls = net.calls.lock().unwrap();
    let release = (everywire_dcom::standard::rem_unknown::REM_UNKNOWN_ID, 5);
    assert_eq!(calls.iter().filter(|call| **call == release).count(), 1, "{calls:?}");
}

#[test]
fn a_body_that_is_read_twice_brings_its_references_once() {
    let (_, server, client) = pair();
    let objref = lamp_of(&server, b"lamp");
    let body = client.correspondence().of_one_body();
    let first = body.unmarshal(objref.clone(), 8).unwrap();
    press(&object(&client, &first, &LAMP)).unwrap();
    drop(first);
    let again = body.unmarshal(objref.clone(), 8).unwrap();
    // Another one in the same body is another.
    let other = body.unmarshal(lamp_of(&server, b"lamp"), 200).unwrap();
    settle(&client);
    assert_eq!(press(&object(&client, &again, &LAMP)).unwrap(), 2);
    drop((body, again));
    settle(&client);
    assert_eq!(press(&object(&client, &other, &LAMP)).unwrap(), 3);
    drop(other);
    settle(&client);
    assert_eq!(server.exporter.counts(), Counts::default());
}

#[test]
fn sockets_of_this_machine_are_believed_within_it_only() {
    let (_, _, client) = pair();
    let socket = everywire_model::Endpoint::Unix { path: "/run/lamp".into() };
    let binding = everywire_dcom::bindings::StringBinding { tower: 0x10, address: "unix:/run/lamp".into() };
    let resolver = everywire_dcom::bindings::DualStringArray { strings: vec![binding], security: Vec::new() };
    let std = everywire_dcom::objref::StdObjRef { oxid: 5, oid: 6, public_refs: 1, ..Default::default() };
    let objref = ObjRef::Standard { iid: iid_of(&LAMP), std, resolver }.write();
    let far = client.correspondence().unmarshal(objref.clone(), 0).unwrap();
    let security = super::house::security();
    let mut near = everywire_dcom::exporter::Correspondence::new(Arc::clone(&client.exporter), security, "");
    near.local = true;
    let near = near.unmarshal(objref, 0).unwrap();
    assert_eq!((far.profiles[0].endpoints.len(), &near.profiles[0].endpoints), (0, &vec![socket]));
}

#[test]
fn other_credentials_are_another_proxy() {
    let (_, server, client) = pair();
    let (objref, _) = ObjRef::parse(&lamp_of(&server, b"lamp")).unwrap();
    let security = |level| Arc::new(everywire_dcom::security::Security::new(level));
    let none = client.exporter.adopt(&objref, &security(everywire_dcom::Level::None)).unwrap();
    let privacy = client.exporter.adopt(&objref, &security(everywire_dcom::Level::Privacy)).unwrap();
    assert_eq!(client.exporter.counts().proxies, 2);
    drop((none, privacy));
}
