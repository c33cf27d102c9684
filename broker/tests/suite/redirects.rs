//! Callers on DCOM who are sent to the target: they ask the broker for an object, and call it there.

use super::{Running, Scratch, Store, contract, place, shop_at, start, until};
use everywire::Node;
use everywire_tests::shop::market::Shop;
use std::sync::{Arc, Mutex, Weak};

/// A broker between this place and a target.
fn redirecting(front: &str, to: &str, more: &str) -> Running {
    start(&format!(
        "[listen.front]\naddress = \"{front}\"\n[[route]]\nname = \"all\"\nto = \"{to}\"\nmode = \"redirect\"\n{more}"
    ))
}

#[test]
fn a_caller_on_dcom_calls_the_target_itself() {
    let scratch = Scratch::new();
    let typed = format!("contract = \"{}\"\ninterface = \"Shop\"\n", contract());
    let open = "dcom://127.0.0.1:0?level=none";
    let sockets = ["backend", "front"].map(|name| place("dcom", name, &scratch));
    for (at, front, more) in
        [(open, open, ""), (open, open, &*typed), (&*sockets[0], &*sockets[1], ""), (open, &*sockets[1], "")]
    {
        let (backend, store, target) = shop_at(at);
        let running = redirecting(front, &target, more);
        let client = Node::new();
        let shop = client.connect::<dyn Shop>(&running.reference("all")).unwrap();
        for turn in 0..5 {
            shop.note("seen").unwrap();
            until("it is noted", || store.notes.lock().unwrap().len() == turn + 1);
        }
        // The broker saw that an object was asked for, and no call of it.
        let seen = r#"calls_total{route="all",outcome="done"}"#;
        assert_eq!(running.metric(seen), 1.0, "{at} {more}");
        assert_eq!(backend.connections(), 2, "{at} {more}");
        // A second caller is sent there, too; and when the broker is gone, whoever was sent stays.
        let other = Node::new();
        let same = other.connect::<dyn Shop>(&running.reference("all")).unwrap();
        assert_eq!(same.title().unwrap(), "shop");
        assert_eq!(running.metric(seen), 2.0);
        let reference = running.reference("all");
        drop(running);
        until("the broker is gone", || backend.connections() == 2);
        assert_eq!((shop.title().unwrap(), same.title().unwrap()), ("shop".into(), "shop".into()));
        // What is passed in a body leads there, as it does without a broker.
        assert_eq!(shop.branch("north").unwrap().unwrap().title().unwrap(), "north");
        let late = Node::new();
        late.connect::<dyn Shop>(&reference).unwrap().title().unwrap_err();
    }
}

/// A node that makes a shop for whoever asks, and those that it has made.
fn making() -> (Node, Arc<Mutex<Vec<Weak<Store>>>>, String) {
    let node = Node::new();
    let made: Arc<Mutex<Vec<Weak<Store>>>> = Arc::default();
    let all = Arc::clone(&made);
    node.export_class::<dyn Shop>("shop", move |_| {
        let store = Store::new();
        all.lock().unwrap().push(Arc::downgrade(&store));
        Ok(store)
    });
    node.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let target = node.print_friendly(&node.published_as("", "shop"));
    (node, made, target)
}

fn living(made: &Mutex<Vec<Weak<Store>>>) -> usize {
    made.lock().unwrap().iter().filter(|store| store.strong_count() > 0).count()
}

#[test]
fn an_object_that_was_made_for_a_caller_lives_as_long_as_the_caller_wants() {
    let (_backend, made, target) = making();
    let running = redirecting("dcom://127.0.0.1:0?level=none", &target, "");
    let (first, second) = (Node::new(), Node::new());
    let one = first.connect::<dyn Shop>(&running.reference("all")).unwrap();
    one.set_title("first").unwrap();
    let two = second.connect::<dyn Shop>(&running.reference("all")).unwrap();
    assert_eq!(two.title().unwrap(), "shop");
    assert_eq!(living(&made), 2);
    // The end of the broker gives nothing back that is the callers'.
    drop(running);
    assert_eq!(one.title().unwrap(), "first");
    drop(two);
    until("the second one's object has ended", || living(&made) == 1);
    assert_eq!(one.title().unwrap(), "first");
    drop(one);
    until("the first one's object has ended", || living(&made) == 0);
}

#[test]
fn whoever_holds_an_object_of_the_broker_keeps_it_when_others_are_sent_on() {
    let (backend, made, target) = making();
    let text = |mode: &str| {
        format!(
            "[listen.front]\naddress = \"dcom://127.0.0.1:0?level=none\"\n[[route]]\nname = \"all\"\nto = \"{target}\"\nmode = \"{mode}\"\n"
        )
    };
    let running = start(&text("forward"));
    let (first, second) = (Node::new(), Node::new());
    let one = first.connect::<dyn Shop>(&running.reference("all")).unwrap();
    one.set_title("first").unwrap();
    running.broker.reload(super::config(&text("redirect")).unwrap()).unwrap();
    let two = second.connect::<dyn Shop>(&running.reference("all")).unwrap();
    assert_eq!(two.title().unwrap(), "shop");
    let done = || running.metric(r#"calls_total{route="all",outcome="done"}"#);
    let before = done();
    assert_eq!((one.title().unwrap(), two.title().unwrap()), ("first".into(), "shop".into()));
    assert_eq!(done(), before + 1.0);
    drop((one, first));
    until("the first one's object has ended", || living(&made) == 1);
    assert_eq!(two.title().unwrap(), "shop");
    drop((running, backend));
}
