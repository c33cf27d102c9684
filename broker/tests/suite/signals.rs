//! Signals of a target, heard by callers of the broker.

use super::{LONG, Scratch, place, start};
use everywire::Node;
use everywire::model::{Incoming, SignalEvent, SignalFilter, Variant};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::servants::Galley;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::channel;

#[test]
fn signals_are_heard_on_every_wire_that_carries_them() {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/kitchen.dbus.xml");
    for near in ["dbus", "dcop", "dcom", "net.tcp"] {
        let scratch = Scratch::new();
        let backend = Node::new();
        backend.listen(&place("dbus", "backend", &scratch)).unwrap();
        let kitchen = Galley::export(&backend, "kitchen");
        let broker = start(&format!(
            r#"
            [listen.front]
            address = "{}"
            [[route]]
            name = "kitchen"
            match = {{ key = "kitchen" }}
            to = "{}"
            contract = "{}"
            interface = "org.example.Kitchen"
            "#,
            place(near, "front", &scratch),
            backend.print_friendly(kitchen.reference()),
            contract.display(),
        ));
        let client = Node::new();
        let heard = client.connect::<dyn Kitchen>(&broker.reference("kitchen")).unwrap();
        let (tell, told) = channel();
        let listening = heard
            .signals()
            .on(move |tick: KitchenTick| drop(tell.send((tick.i, tick.text))))
            .unwrap_or_else(|failure| panic!("{near}: {failure}"));
        // The broker may still be about to subscribe: what it misses then was emitted before it listened.
        let mut got = None;
        super::until("a signal comes", || {
            kitchen.signals().emit(&KitchenTick { i: 7, text: "now".into() }).unwrap();
            got = told.recv_timeout(std::time::Duration::from_millis(50)).ok();
            got.is_some()
        });
        assert_eq!(got, Some((7, "now".into())), "{near}");
        // Others like it may be on their way still.
        kitchen.signals().emit(&KitchenTick { i: 8, text: "go".into() }).unwrap();
        while told.recv_timeout(LONG).unwrap().0 != 8 {}
        for i in 0..50 {
            kitchen.signals().emit(&KitchenTick { i, text: "row".into() }).unwrap();
        }
        for i in 0..50 {
            assert_eq!(told.recv_timeout(LONG).unwrap(), (i, "row".into()), "{near}: in order, each once");
        }
        drop(listening);
        assert!(broker.metric(r#"signals_total{route="kitchen"}"#) >= 51.0);
    }
}

#[test]
fn changes_of_attributes_are_told_on_with_a_contract_and_without_one() {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/kitchen.dbus.xml");
    let contract = format!("contract = \"{}\"\ninterface = \"org.example.Kitchen\"", contract.display());
    for contract in [contract.as_str(), ""] {
        let scratch = Scratch::new();
        let backend = Node::new();
        backend.listen(&place("dbus", "backend", &scratch)).unwrap();
        let kitchen = Galley::export(&backend, "kitchen");
        let broker = start(&format!(
            "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"kitchen\"\nmatch = {{ key = \"kitchen\" }}\nto = \"{}\"\n{contract}\n",
            place("dbus", "front", &scratch),
            backend.print_friendly(kitchen.reference()),
        ));
        let client = Node::new();
        let object = client.object(&broker.reference("kitchen")).unwrap();
        let news = everywire::wires::named("dbus").unwrap().news().unwrap();
        let (tell, told) = channel();
        let listener = move |event: SignalEvent<Incoming>| {
            if let SignalEvent::Signal(heard) = event {
                let fields = heard
                    .body
                    .decode::<(String, BTreeMap<String, Variant>, Vec<String>)>(&news.signal.fields);
                drop(tell.send(fields.unwrap()));
            }
        };
        let filter = SignalFilter { interface: Some(news.interface), signal: Some(news.signal) };
        let _listening = object.target().subscribe(filter, std::sync::Arc::new(listener)).unwrap();
        let heard = client.connect::<dyn Kitchen>(&broker.reference("kitchen")).unwrap();
        let mut title = 0;
        // The broker may still be about to subscribe.
        super::until("a change is told", || {
            title += 1;
            heard.set_title(&format!("title {title}")).unwrap();
            told.recv_timeout(std::time::Duration::from_millis(50)).is_ok()
        });
        // Changes of before may be on their way still.
        heard.set_title("last").unwrap();
        let (mut values, mut invalid) = (BTreeMap::new(), BTreeSet::new());
        while !values.get("Title").is_some_and(|title| format!("{title:?}").contains("last"))
            || invalid.is_empty()
        {
            let (interface, changed, invalidated) = told.recv_timeout(LONG).unwrap();
            assert_eq!(interface, "org.example.Kitchen");
            values.extend(changed);
            invalid.extend(invalidated);
        }
        assert!(invalid.iter().eq(["Changes"]), "whose value is not told: {invalid:?}");
    }
}

/// On a wire whose signals go to whoever is connected, a caller stays connected over a change of the configuration: it hears what its
/// routes lead to now, and nothing else.
#[test]
fn callers_that_stay_hear_the_targets_of_the_routes_that_there_are_now() {
    let scratch = Scratch::new();
    let target = |name: &str| {
        let backend = Node::new();
        backend.listen(&place("dbus", name, &scratch)).unwrap();
        let kitchen = Galley::export(&backend, "kitchen");
        (backend, kitchen)
    };
    let (first, first_kitchen) = target("first");
    let (second, second_kitchen) = target("second");
    let text = |route: &str| {
        let (front, other) = (place("dbus", "front", &scratch), place("dbus", "other", &scratch));
        format!(
            "[listen.front]\naddress = \"{front}\"\n[listen.other]\naddress = \"{other}\"\n\
             [[route]]\nname = \"other\"\nfrom = \"other\"\nto = \"{}\"\n{route}",
            place("dbus", "nowhere", &scratch)
        )
    };
    let to = |name: &str| {
        let target = place("dbus", name, &scratch);
        text(&format!("[[route]]\nname = \"kitchen\"\nfrom = \"front\"\nto = \"{target}\"\n"))
    };
    let broker = start(&text(""));
    let reload = |text: &str| broker.broker.reload(super::config(text).unwrap()).unwrap();
    let client = Node::new();
    let front = format!("{}#kitchen", place("dbus", "front", &scratch));
    let heard = client.connect::<dyn Kitchen>(&front).unwrap();
    let (tell, told) = channel();
    let _listening = heard.signals().on(move |tick: KitchenTick| {
        let _ = tell.send(tick.i);
    });
    assert_eq!(heard.title().unwrap_err().kind(), everywire::Kind::NoObject, "it is connected");
    let hears = |number: u32, kitchen: &everywire::Ref<dyn Kitchen>| {
        super::until("signals come", || {
            kitchen.signals().emit(&KitchenTick { i: number, text: "now".into() }).unwrap();
            told.recv_timeout(std::time::Duration::from_millis(20)).is_ok_and(|heard| heard == number)
        });
    };
    reload(&to("first"));
    hears(1, &first_kitchen);
    assert!(broker.metric(r#"signals_total{route="kitchen"}"#) >= 1.0);
    reload(&to("second"));
    hears(2, &second_kitchen);
    super::until("the first target is left", || first.connections() == 0);
    // The same again: nobody hears anything twice.
    reload(&to("second"));
    second_kitchen.signals().emit(&KitchenTick { i: 3, text: "once".into() }).unwrap();
    second_kitchen.signals().emit(&KitchenTick { i: 4, text: "last".into() }).unwrap();
    let rest: Vec<u32> = std::iter::from_fn(|| told.recv_timeout(LONG).ok().filter(|i| *i != 4)).collect();
    assert_eq!(rest.iter().filter(|i| **i == 3).count(), 1, "{rest:?}");
    reload(&text(""));
    super::until("the second target is left", || second.connections() == 0);
}
