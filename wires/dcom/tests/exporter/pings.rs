//! Ping sets and rundown, with a clock of the test's own.

use super::house::{Net, Node};
use super::lamp::{BELL, Bell, LAMP, Lamp};
use everywire_dcom::bindings::{DualStringArray, StringBinding};
use everywire_dcom::exporter::{Counts, PING_PERIOD, Proxy};
use everywire_dcom::hresult::{OR_INVALID_OID, OR_INVALID_SET, S_OK};
use everywire_dcom::objref::{ObjRef, StdObjRef};
use everywire_dcom::resolver::{self, ComplexPing};
use everywire_dcom::standard::points::SILENCE;
use everywire_dcom::stub::Get;
use everywire_dcom::{OBJECT_EXPORTER, iid_of};
use everywire_model::signal::{Audience, Listener};
use everywire_model::{Hold, Objects, Servant, SignalFilter, WireState};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a test waits at the most for what must come.
const LONG: Duration = Duration::from_secs(300);

/// The clock of a test.
struct Clock(Instant);

impl Clock {
    /// Starts the period of these nodes.
    fn new(nodes: &[&Node]) -> Self {
        let clock = Self(Instant::now());
        nodes.iter().for_each(|node| node.exporter.tend(clock.0));
        clock
    }

    /// Lets periods pass.
    fn pass(&mut self, periods: u32, nodes: &[&Node]) {
        for _ in 0..periods {
            self.0 += PING_PERIOD;
            for node in nodes {
                node.exporter.tend(self.0);
                node.exporter.tend(self.0 + Duration::from_secs(1));
            }
        }
    }
}

fn made(node: &Node) -> (bytes::Bytes, StdObjRef) {
    let servant: Arc<dyn Servant> = Lamp::new();
    let key = node.exporter.serve(vec![servant], "a").unwrap();
    let std = node.exporter.export(&key, iid_of(&LAMP), 5);
    (key, std)
}

fn complex(node: &Node, set: u64, sequence: u16, add: &[u64], remove: &[u64]) -> (u64, u32) {
    let ping = ComplexPing { set, sequence, add: add.to_vec(), remove: remove.to_vec() };
    let stub = resolver::complex_ping_request(&ping);
    let body = node.call(b"", OBJECT_EXPORTER, 2, &stub, "a").unwrap();
    let (set, _, status) = resolver::parse_complex_ping_reply(Get::of(&body)).unwrap();
    (set, status)
}

fn simple(node: &Node, set: u64) -> u32 {
    let body = node.call(b"", OBJECT_EXPORTER, 1, &resolver::simple_ping_request(set), "a").unwrap();
    resolver::parse_status_reply(Get::of(&body)).unwrap()
}

#[test]
fn objects_that_nobody_pings_are_run_down() {
    let node = Arc::new(Net::default()).node(7001);
    node.insert("own", Lamp::new());
    let (key, std) = made(&node);
    let own = node.exporter.export(b"own", iid_of(&LAMP), 1);
    let mut clock = Clock::new(&[&node]);
    clock.pass(3, &[&node]);
    assert!(node.has(&key));
    clock.pass(1, &[&node]);
    assert!(!node.has(&key) && node.has(b"own"));
    assert!(node.exporter.served(std.ipid).is_none() && node.exporter.served(own.ipid).is_none());
    assert_eq!(node.exporter.counts(), Counts::default());
    assert_eq!(node.exporter.due(), None);
}

#[test]
fn calls_are_signs_of_life() {
    let node = Arc::new(Net::default()).node(7001);
    let (key, std) = made(&node);
    let mut clock = Clock::new(&[&node]);
    for _ in 0..9 {
        clock.pass(2, &[&node]);
        assert!(node.exporter.served(std.ipid).is_some());
    }
    clock.pass(4, &[&node]);
    assert!(!node.has(&key));
}

#[test]
fn a_set_keeps_what_is_in_it_while_it_is_pinged() {
    let node = Arc::new(Net::default()).node(7001);
    let ((kept, std), (other, gone)) = (made(&node), made(&node));
    let mut clock = Clock::new(&[&node]);
    let (set, status) = complex(&node, 0, 1, &[std.oid, gone.oid, 17], &[]);
    assert!(set != 0 && status == S_OK);
    assert_eq!(complex(&node, set, 2, &[17], &[gone.oid]), (set, OR_INVALID_OID));
    for _ in 0..5 {
        clock.pass(2, &[&node]);
        assert_eq!(simple(&node, set), S_OK);
    }
    assert!(node.has(&kept) && !node.has(&other));
    // A late one changes nothing.
    assert_eq!(complex(&node, set, 1, &[], &[std.oid]), (set, S_OK));
    clock.pass(2, &[&node]);
    assert_eq!(simple(&node, set), S_OK);
    assert!(node.has(&kept));
    clock.pass(4, &[&node]);
    assert!(!node.has(&kept));
    assert_eq!(simple(&node, set), OR_INVALID_SET);
    assert_eq!(complex(&node, set, 9, &[], &[]), (set, OR_INVALID_SET));
    assert_eq!(node.exporter.counts(), Counts::default());
}

#[test]
fn clients_ping_what_they_hold() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    let (key, _) = made(&server);
    let lamp = client.adopt(&server.exporter.objref(&key, iid_of(&LAMP), 5).write()).unwrap();
    let both = [&*client, &*server];
    let mut clock = Clock::new(&both);
    clock.pass(9, &both);
    assert!(server.has(&key));
    assert_eq!((server.exporter.counts().sets, client.exporter.counts().pinged), (1, 1));
    let pings: Vec<u16> = net.calls.lock().unwrap().iter().map(|(_, opnum)| *opnum).collect();
    assert_eq!(pings, [2, 1, 1, 1, 1, 1, 1, 1, 1]);
    // More to hold, later less.
    server.insert("other", Lamp::new());
    let other = client.adopt(&server.exporter.objref(b"other", iid_of(&LAMP), 5).write()).unwrap();
    clock.pass(1, &both);
    drop(other);
    clock.pass(2, &both);
    let pings: Vec<u16> = net.calls.lock().unwrap().iter().skip(9).map(|(_, opnum)| *opnum).collect();
    // ComplexPing, then after the drop ResolveOxid2 and RemRelease, ComplexPing, SimplePing.
    assert_eq!(pings.iter().filter(|opnum| **opnum == 2).count(), 2);
    drop(lamp);
    clock.pass(6, &both);
    assert_eq!(client.exporter.counts(), Counts::default());
    assert!(!server.has(&key));
}

#[test]
fn a_resolver_that_forgot_is_told_everything_again() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    let (key, _) = made(&server);
    let _lamp = client.adopt(&server.exporter.objref(&key, iid_of(&LAMP), 5).write()).unwrap();
    let mut clock = Clock::new(&[&*client, &*server]);
    clock.pass(1, &[&*client, &*server]);
    // The server's clock runs while the client is cut off from it; the object is kept by calls.
    for _ in 0..2 {
        clock.pass(2, &[&*server]);
        let ipid = server.exporter.export(&key, iid_of(&LAMP), 0).ipid;
        assert!(server.exporter.served(ipid).is_some());
    }
    clock.pass(1, &[&*server]);
    assert_eq!(server.exporter.counts().sets, 0);
    clock.pass(4, &[&*client, &*server]);
    assert_eq!(server.exporter.counts().sets, 1);
    assert!(server.has(&key));
}

#[test]
fn a_dead_client_holds_nothing_for_ever() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    let (key, _) = made(&server);
    let lamp = client.adopt(&server.exporter.objref(&key, iid_of(&LAMP), 5).write()).unwrap();
    let mut clock = Clock::new(&[&*client, &*server]);
    clock.pass(2, &[&*client, &*server]);
    net.cut(&client);
    clock.pass(4, &[&*server]);
    assert!(!server.has(&key));
    assert_eq!(server.exporter.counts(), Counts::default());
    // And a dead server costs the client nothing but time.
    net.cut(&server);
    clock.pass(9, &[&*client]);
    drop(lamp);
    clock.pass(2, &[&*client]);
    assert_eq!(client.exporter.counts(), Counts::default());
}

#[test]
fn objects_marshalled_without_pings_wait_for_their_release() {
    let node = Arc::new(Net::default()).node(7001);
    node.class("lamps", &LAMP, Box::new(|| Ok(Lamp::new())));
    let asked = everywire_dcom::activation::Activation {
        clsid: everywire_idl::midl::clsid_of_key(b"lamps"),
        iids: vec![everywire_dcom::IUNKNOWN],
        class_object: true,
        version: (5, 7),
        protseqs: vec![7],
        impersonation: 2,
    };
    let factory = node.exporter.activate(&asked, "a").interfaces.remove(0).2.unwrap();
    let (factory, _) = everywire_dcom::objref::ObjRef::parse(&factory).unwrap();
    let std = *factory.standard().unwrap().0;
    assert_eq!(std.flags, StdObjRef::NO_PING);
    let mut clock = Clock::new(&[&node]);
    clock.pass(50, &[&node]);
    assert!(node.exporter.served(std.ipid).is_some());
}

#[test]
fn what_was_lent_ends_with_its_client_and_with_its_last_reference_here() {
    let node = Arc::new(Net::default()).node(7001);
    let lend = || {
        let key = node.exporter.objects().export(vec![Lamp::new() as Arc<dyn Servant>]);
        let lease = node.exporter.lend(&key);
        (key, lease)
    };
    // Nobody elsewhere has heard of it yet, and a reference here keeps it for any time.
    let (key, lease) = lend();
    let mut clock = Clock::new(&[&node]);
    clock.pass(9, &[&node]);
    assert!(node.has(&key));
    // A client has it in its set, and dies.
    let std = node.exporter.export(&key, iid_of(&LAMP), 5);
    drop(lease);
    assert!(node.has(&key));
    let (set, status) = complex(&node, 0, 1, &[std.oid], &[]);
    assert!(set != 0 && status == S_OK);
    clock.pass(2, &[&node]);
    assert!(node.has(&key));
    clock.pass(4, &[&node]);
    assert!(!node.has(&key) && node.exporter.served(std.ipid).is_none());
    // One that was never handed out ends with the reference that was made of it here.
    let (key, lease) = lend();
    let copy = lease.clone();
    drop(lease);
    assert!(node.has(&key));
    drop(copy);
    assert!(!node.has(&key));
    // An object that was exported stays, whoever refers to it no more.
    node.insert("own", Lamp::new());
    drop(node.exporter.hold(b"own"));
    assert!(node.has(b"own"));
    assert_eq!(node.exporter.counts(), Counts::default());
}

/// Whoever waits for a second one to come.
#[derive(Default)]
struct Meeting {
    here: Mutex<usize>,
    came: Condvar,
}

#[test]
fn resolvers_that_do_not_answer_hold_up_no_others() {
    let net = Arc::new(Net::default());
    let (first, second, client) = (net.node(7001), net.node(7002), net.node(7003));
    let lamp = |server: &Node| {
        let (key, _) = made(server);
        client.adopt(&server.exporter.objref(&key, iid_of(&LAMP), 5).write()).unwrap()
    };
    let _lamps = (lamp(&first), lamp(&second));
    let meeting = Arc::new(Meeting::default());
    let at = Arc::clone(&meeting);
    // Each is asked, and does not answer until the other one is.
    *net.before.lock().unwrap() = Some(Arc::new(move || {
        let mut here = at.here.lock().unwrap();
        *here += 1;
        at.came.notify_all();
        let alone = |here: &mut usize| *here < 2;
        let (_here, waited) = at.came.wait_timeout_while(here, LONG, alone).unwrap();
        assert!(!waited.timed_out(), "the other one is not asked");
    }));
    Clock::new(&[&client]).pass(1, &[&client]);
    assert_eq!(*meeting.here.lock().unwrap(), 2);
}

#[test]
fn a_sink_that_answers_no_question_is_let_go_and_holds_up_no_keeper() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    server.insert("bell", Arc::new(Bell));
    let bell = client.adopt(&server.exporter.objref(b"bell", iid_of(&BELL), 5).write()).unwrap();
    let bell = client.store.resolver().resolve(&bell).unwrap().typed(Hold::Static(&BELL));
    let (told, audience) = channel();
    *server.store.audience.lock().unwrap() = Some(told);
    let listener: Listener = Arc::new(|_| {});
    let subscription =
        client.exporter.subscribe(&bell, SignalFilter { interface: Some(&BELL), signal: None }, &listener);
    let _subscription = subscription.unwrap().unwrap();
    assert!(matches!(audience.recv().unwrap(), Audience::Joined { .. }));
    let (asks, asked) = channel();
    *net.mute.lock().unwrap() = Some(asks);
    for _ in 0..3 {
        server.exporter.tend(Instant::now() + SILENCE + SILENCE);
        let (thread, deadline) = asked.recv_timeout(LONG).unwrap();
        assert_ne!(thread, std::thread::current().id(), "the keeper waits");
        assert_eq!(deadline, Some(Duration::from_secs(5)));
    }
    assert!(matches!(audience.recv_timeout(LONG).unwrap(), Audience::Left { .. }));
}

#[test]
fn strangers_take_no_releases_from_those_who_are_known() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    // 17 exporters that nobody has resolved: the same node, said to be at other resolvers, which are not there.
    let strange = |port| {
        let objref = ObjRef::Standard {
            iid: iid_of(&LAMP),
            std: StdObjRef { public_refs: 1, oxid: 5, oid: 6, ..StdObjRef::default() },
            resolver: DualStringArray {
                strings: vec![StringBinding { tower: 7, address: format!("127.0.0.1[{port}]") }],
                security: Vec::new(),
            },
        };
        client.adopt(&objref.write()).unwrap()
    };
    let strangers: Vec<_> = (8001..8018).map(strange).collect();
    let (key, std) = made(&server);
    let lamp = client.adopt(&server.exporter.objref(&key, iid_of(&LAMP), 5).write()).unwrap();
    let body = server.call(b"", OBJECT_EXPORTER, 4, &resolver::resolve_oxid2_request(std.oxid, &[7]), "a");
    let resolved = resolver::parse_resolve_reply(Get::of(&body.unwrap()), true).unwrap().unwrap();
    let proxy = lamp.profiles[0].lease.share::<Proxy>().unwrap();
    client.exporter.resolved(&proxy, resolved, &lamp.profiles[0]);
    drop((strangers, proxy, lamp));
    Clock::new(&[&client]).pass(1, &[&client]);
    let calls = net.calls.lock().unwrap();
    assert_eq!(calls.iter().filter(|(_, opnum)| *opnum == 5).count(), 1, "RemRelease");
}
