//! OPC Data Access between two networks whose link is cut, and mended again.

use crate::common::cable::{Cable, THERE};
use crate::common::dcom::alone;
use crate::common::foreign::PATIENCE;
use everywire::Node;
use everywire_opc::remote::{DataAccess, Event, ItemValue, Live, Manner, Pauses, Wanted};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Data, Item, Quality, Settings, Table, VarType};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a93";

/// The clock of this client runs fast: what takes a minute with the usual settings takes seconds.
fn fast() -> Wanted {
    Wanted {
        rate: Duration::from_millis(10),
        keep_alive: Duration::from_millis(100),
        pauses: Pauses {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(200),
            after_shutdown: Duration::from_millis(10),
        },
        ..Wanted::default()
    }
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(PATIENCE).expect("an event")
}

/// The next that tells that it works; how often it was tried before does not matter.
fn live(events: &Receiver<Event>) -> Live {
    loop {
        match next(events) {
            Event::Live(live) => return live,
            Event::Lost { .. } => {}
            other => panic!("not live: {other:?}"),
        }
    }
}

/// The next so many values, by the items' places.
fn values(events: &Receiver<Event>, count: usize) -> Vec<ItemValue> {
    let mut found = Vec::new();
    while found.len() < count {
        match next(events) {
            Event::Values(values) => found.extend(values),
            other => panic!("no values: {other:?}"),
        }
    }
    found.sort_by_key(|one| one.index);
    assert_eq!(found.len(), count, "{found:?}");
    found
}

fn data(values: &[ItemValue]) -> Vec<Data> {
    values.iter().map(|one| one.value.data.clone()).collect()
}

fn a_cut_is_a_gap(test: &str, options: &str, is_manner: fn(&Manner) -> bool) {
    if !alone(test) {
        return;
    }
    let cable = Cable::lay();
    let table = Arc::new(Table::new());
    table.extend([
        (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
        (Item::new("Tank.Setpoint", VarType::I2), Data::I2(10)),
        (Item::new("Name", VarType::BSTR), "tank one".into()),
    ]);
    let (_node, server) = cable.inside(|| {
        let node = Node::new();
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        let source = Arc::clone(&table) as Arc<_>;
        let server = Server::serve(&node, info, source, Settings::default()).expect("a thread");
        node.listen(&format!("dcom://{THERE}:4135?level=none")).expect("a port");
        (node, server)
    });
    let client: Node = Node::builder().deadline(Some(Duration::from_secs(2))).build().into();
    let address = format!("opcda://{THERE}:4135/{CLASS}?level=none{options}");
    let plant = DataAccess::connect(&client, &address).expect("a server");
    let (tell, events) = channel();
    let items = ["Tank.Level", "Tank.Setpoint", "Name"];
    let _subscription =
        plant.subscribe(&items, fast(), move |event| drop(tell.send(event))).expect("a thread");
    let manner = live(&events).manner;
    assert!(is_manner(&manner), "{manner:?}");
    assert_eq!(data(&values(&events, 3)), [Data::R4(50.0), Data::I2(10), "tank one".into()]);

    cable.cut();
    // What changes meanwhile, and back again, is in the last values.
    table.set("Tank.Setpoint", 11_i16).expect("an item");
    table.set("Tank.Level", 70.0_f32).expect("an item");
    table.set("Tank.Level", 50.0_f32).expect("an item");
    let bad = values(&events, 3);
    let is_bad =
        |one: &ItemValue| one.value.quality == Quality::COMM_FAILURE && one.value.data == Data::Empty;
    assert!(bad.iter().all(is_bad), "{bad:?}");
    // It tries again and again; the gap is told once.
    for _ in 0..2 {
        let event = next(&events);
        assert!(matches!(event, Event::Lost { .. }), "{event:?}");
    }
    table.set("Name", "tank two").expect("an item");

    cable.mend();
    let again = live(&events).manner;
    assert!(is_manner(&again), "{again:?}");
    let last = values(&events, 3);
    assert_eq!(data(&last), [Data::R4(50.0), Data::I2(11), "tank two".into()]);
    assert!(last.iter().all(|one| one.value.quality == Quality::GOOD), "{last:?}");
    // And it goes on.
    table.set("Tank.Setpoint", 12_i16).expect("an item");
    assert_eq!(data(&values(&events, 1)), [Data::I2(12)]);
    drop(server);
}

#[test]
fn a_subscription_outlives_a_cut_of_the_link() {
    let is_called = |manner: &Manner| *manner == Manner::Callbacks;
    a_cut_is_a_gap("a_subscription_outlives_a_cut_of_the_link", "", is_called);
}

#[test]
fn a_subscription_that_polls_outlives_a_cut_of_the_link() {
    let polls = |manner: &Manner| matches!(manner, Manner::Polling { .. });
    a_cut_is_a_gap("a_subscription_that_polls_outlives_a_cut_of_the_link", "&poll", polls);
}
