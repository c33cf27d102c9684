//! Signals of a target, heard by callers of the broker.

use super::{LONG, Scratch, place, start};
use everywire::Node;
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::servants::Galley;
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
        while told.recv_timeout(std::time::Duration::from_millis(200)).is_ok() {}
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
