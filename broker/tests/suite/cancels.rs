//! Calls that their callers withdraw, or leave behind.

use super::{Running, Scratch, Store, contract, place, start, until};
use everywire::model::{Hold, MarshalList, Operation, Remote, Sink};
use everywire::{Node, Notice};
use everywire_tests::shop::market::Shop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A shop that is told of calls that are withdrawn from it.
struct Backend {
    node: Node,
    store: Arc<Store>,
    target: String,
    withdrawn: Arc<AtomicU32>,
}

fn backend(address: &str) -> Backend {
    let withdrawn = Arc::<AtomicU32>::default();
    let told = Arc::clone(&withdrawn);
    let observer = Arc::new(move |notice: &Notice| {
        if matches!(notice, Notice::Withdrawn { .. }) {
            told.fetch_add(1, Ordering::SeqCst);
        }
    });
    let (node, store) = (Node::from(Node::builder().observer(observer).build()), Store::new());
    node.listen(address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let shop = node.export::<dyn Shop>("shop", store.clone());
    let target = node.print_friendly(shop.reference());
    Backend { node, store, target, withdrawn }
}

fn broker(near: &str, target: &str, typed: bool, more: &str, scratch: &Scratch) -> Running {
    let contract = match typed {
        true => format!("contract = \"{}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}", contract()),
        false => String::new(),
    };
    start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"all\"\nto = [{target}]\n{contract}\n{more}\n",
        place(near, "front", scratch)
    ))
}

fn quoted(target: &str) -> String {
    format!("\"{target}\"")
}

/// `count(n)`, begun by somebody who may let it go.
fn begin(client: &Node, broker: &Running, n: i32) -> everywire::model::object::Pending {
    let object = client
        .object(&broker.reference("all"))
        .unwrap()
        .typed(Hold::Static(<dyn Shop as Remote>::interface()));
    let count: &Operation =
        <dyn Shop as Remote>::interface().operations.iter().find(|held| held.name == "count").unwrap();
    object.submit(count, &|sink: &mut dyn Sink| MarshalList::marshal_list(&(n,), &count.arguments, sink))
}

fn cancelled(broker: &Running) -> f64 {
    broker.metric(r#"calls_total{route="all",outcome="cancelled"}"#)
}

fn none_under_way(broker: &Running) {
    until("no call is under way", || broker.metric(r#"calls_under_way{route="all"}"#).abs() < 0.1);
}

/// What was said is done, whether or not its caller is still there when its turn comes.
#[test]
fn oneway_calls_of_callers_that_leave_at_once_reach_the_target_in_their_order() {
    const ROUNDS: usize = 5;
    const CALLS: usize = 100;
    for (wire, typed) in [("dbus", false), ("dbus", true), ("iiop", false), ("iiop", true)] {
        let scratch = Scratch::new();
        let backend = backend(&place(wire, "backend", &scratch));
        let broker = broker(wire, &quoted(&backend.target), typed, "", &scratch);
        for round in 0..ROUNDS {
            let client = Node::new();
            let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
            for at in 0..CALLS {
                shop.note(&format!("{round} {at}")).unwrap();
            }
            client.stop();
        }
        until("all notes came", || backend.store.notes.lock().unwrap().len() == ROUNDS * CALLS);
        let notes = backend.store.notes.lock().unwrap().clone();
        for round in 0..ROUNDS {
            let prefix = format!("{round} ");
            let own = notes.iter().filter_map(|note| note.strip_prefix(&prefix)?.parse::<usize>().ok());
            assert!(own.eq(0..CALLS), "{wire}, typed {typed}: {notes:?}");
        }
    }
}

#[test]
fn a_call_that_its_caller_withdraws_is_withdrawn_from_the_target() {
    for (near, far, typed) in [
        ("iiop", "iiop", false),
        ("iiop", "iiop", true),
        ("iiop", "dcom", true),
        ("dcom", "iiop", true),
        ("dcom", "dcom", true),
    ] {
        let scratch = Scratch::new();
        let backend = backend(&place(far, "backend", &scratch));
        let broker = broker(near, &quoted(&backend.target), typed, "", &scratch);
        let client = Node::new();
        let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
        shop.noted().unwrap();
        backend.store.shut(true);
        let call = begin(&client, &broker, 7);
        backend.store.wait_for(1);
        drop(call);
        until(&format!("{near} to {far}: the target hears of it"), || {
            backend.withdrawn.load(Ordering::SeqCst) == 1
        });
        none_under_way(&broker);
        assert!((cancelled(&broker) - 1.0).abs() < 0.1, "{near} to {far}");
        backend.store.shut(false);
        // The connections are as good as before.
        assert_eq!(shop.count(8).unwrap(), 8, "{near} to {far}");
        assert_eq!(backend.store.counted.lock().unwrap().get(&7), Some(&1));
    }
}

#[test]
fn a_call_whose_caller_has_left_is_withdrawn_or_forgotten() {
    for near in ["iiop", "dbus", "net.tcp", "basic", "dcom"] {
        for far in ["iiop", "dbus", "net.tcp", "basic", "dcop"] {
            let scratch = Scratch::new();
            let backend = backend(&place(far, "backend", &scratch));
            let broker = broker(near, &quoted(&backend.target), true, "", &scratch);
            let (client, other) = (Node::new(), Node::new());
            let honest = other.connect::<dyn Shop>(&broker.reference("all")).unwrap();
            backend.store.shut(true);
            let call = begin(&client, &broker, 7);
            backend.store.wait_for(1);
            client.stop_within(Duration::ZERO);
            // A call of D-Bus is carried out, whoever has left.
            let outlives = near == "dbus";
            if outlives {
                backend.store.shut(false);
            }
            none_under_way(&broker);
            let withdrawn = if outlives { 0.0 } else { 1.0 };
            let metrics = broker.broker.metrics();
            assert!((cancelled(&broker) - withdrawn).abs() < 0.1, "{near} to {far}: {metrics}");
            if far == "iiop" && !outlives {
                until("the target hears of it", || backend.withdrawn.load(Ordering::SeqCst) == 1);
            }
            drop(call);
            backend.store.shut(false);
            // An answer that comes late is nobody's: others get their own.
            for n in 8..12 {
                assert_eq!(honest.count(n).unwrap(), n, "{near} to {far}");
            }
        }
    }
}

#[test]
fn a_caller_that_has_left_takes_its_own_way_to_the_target_with_it() {
    for wire in ["iiop", "dbus", "net.tcp", "basic"] {
        let scratch = Scratch::new();
        let backend = backend(&place(wire, "backend", &scratch));
        let broker = broker(wire, &quoted(&backend.target), false, "", &scratch);
        let client = Node::new();
        backend.store.shut(true);
        let call = begin(&client, &broker, 7);
        backend.store.wait_for(1);
        client.stop_within(Duration::ZERO);
        none_under_way(&broker);
        until(&format!("{wire}: its connection is gone"), || backend.node.connections() == 0);
        drop(call);
        backend.store.shut(false);
    }
}

#[test]
fn what_was_withdrawn_is_not_tried_again() {
    let scratch = Scratch::new();
    let (one, two) = (backend("iiop://127.0.0.1:0"), backend("iiop://127.0.0.1:0"));
    let targets = format!("{}, {}", quoted(&one.target), quoted(&two.target));
    let more = "balance = \"first\"\nretries = 5\nidempotent = \"count\"";
    let broker = broker("iiop", &targets, true, more, &scratch);
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
    one.store.shut(true);
    let calls: Vec<_> = (0..10).map(|n| begin(&client, &broker, n)).collect();
    one.store.wait_for(10);
    drop(calls);
    until("all were withdrawn", || one.withdrawn.load(Ordering::SeqCst) == 10);
    one.node.stop_within(Duration::ZERO);
    none_under_way(&broker);
    assert_eq!(shop.count(99).unwrap(), 99, "the other one serves");
    assert_eq!(two.store.counted.lock().unwrap().len(), 1, "and has nothing but that");
    one.store.shut(false);
}

/// A call that its caller gives up says nothing of the target: else one caller could have the breaker open for all others.
#[test]
fn withdrawn_calls_say_nothing_of_the_target() {
    for typed in [false, true] {
        let scratch = Scratch::new();
        let backend = backend(&place("iiop", "backend", &scratch));
        let more = "breaker = { failures = 1, pause = \"1000s\" }";
        let broker = broker("iiop", &quoted(&backend.target), typed, more, &scratch);
        let client = Node::new();
        backend.store.shut(true);
        for n in 1..=5 {
            let call = begin(&client, &broker, n);
            backend.store.wait_for(n);
            drop(call);
            until("the call is over", || (cancelled(&broker) - f64::from(n)).abs() < 0.1);
        }
        backend.store.shut(false);
        let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
        assert_eq!(shop.count(8).unwrap(), 8, "contract: {typed}");
    }
}
