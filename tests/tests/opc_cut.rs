//! OPC Data Access between two networks whose link is cut, and mended again.

use crate::common::cable::{Cable, THERE};
use crate::common::dcom::alone;
use crate::common::foreign::PATIENCE;
use everywire::Node;
use everywire_opc::remote::{Address, DataAccess, Event, Pauses, SubscriptionRequest, UpdateMode};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Data, Item, Quality, Settings, Table, VarType};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a93";

/// The clock of this client runs fast: what takes a minute with the usual settings takes seconds.
fn fast() -> SubscriptionRequest {
    SubscriptionRequest {
        rate: Duration::from_millis(10),
        keep_alive: Duration::from_millis(100),
        pauses: Pauses {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(200),
            after_shutdown: Duration::from_millis(10),
        },
        ..SubscriptionRequest::default()
    }
}

/// What the events have told so far. On a busy machine the link may seem to be cut when it is not: so what follows what is looked at,
/// and not how often.
struct Seen {
    events: Receiver<Event>,
    is_manner: fn(&UpdateMode) -> bool,
    is_live: bool,
    /// How often in a row it was lost.
    lost: u32,
    /// The last values, by the items' places.
    values: [Option<(Data, Quality)>; 3],
}

impl Seen {
    fn take(&mut self, event: Event) {
        match event {
            Event::Live(live) => {
                assert!((self.is_manner)(&live.manner), "{:?}", live.manner);
                (self.is_live, self.lost) = (true, 0);
            }
            Event::Lost { .. } => (self.is_live, self.lost) = (false, self.lost + 1),
            Event::Values(values) => {
                let gap = values.iter().any(|one| one.value.quality == Quality::COMM_FAILURE);
                assert!(!gap || (values.len() == 3 && self.lost == 0), "a gap is told once: {values:?}");
                for one in values {
                    self.values[one.index] = Some((one.value.data, one.value.quality));
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn until(&mut self, is: impl Fn(&Self) -> bool) {
        while !is(self) {
            let event = self.events.recv_timeout(PATIENCE).expect("an event");
            self.take(event);
        }
    }

    /// Waits until it works and these are the values.
    fn until_good(&mut self, values: [Data; 3]) {
        let values = values.map(|data| Some((data, Quality::GOOD)));
        self.until(|seen| seen.is_live && seen.values == values);
    }
}

fn a_cut_is_a_gap(test: &str, options: &str, is_manner: fn(&UpdateMode) -> bool) {
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
    let plant = DataAccess::later(&client, Address::parse(&address).expect("an address"));
    let (tell, events) = channel();
    let items = ["Tank.Level", "Tank.Setpoint", "Name"];
    let _subscription =
        plant.subscribe(&items, fast(), move |event| drop(tell.send(event))).expect("a thread");
    let values = [None, None, None];
    let mut seen = Seen { events, is_manner, is_live: false, lost: 0, values };
    seen.until_good([Data::R4(50.0), Data::I2(10), "tank one".into()]);

    cable.cut();
    // What changes meanwhile, and back again, is in the last values.
    table.set("Tank.Setpoint", 11_i16).expect("an item");
    table.set("Tank.Level", 70.0_f32).expect("an item");
    table.set("Tank.Level", 50.0_f32).expect("an item");
    // It tries again and again; the gap is told once.
    seen.until(|seen| seen.lost >= 2);
    let bad = [const { Some((Data::Empty, Quality::COMM_FAILURE)) }; 3];
    assert_eq!(seen.values, bad);
    table.set("Name", "tank two").expect("an item");

    cable.mend();
    seen.until_good([Data::R4(50.0), Data::I2(11), "tank two".into()]);
    // And it goes on.
    table.set("Tank.Setpoint", 12_i16).expect("an item");
    seen.until_good([Data::R4(50.0), Data::I2(12), "tank two".into()]);
    drop(server);
}

#[test]
fn a_subscription_outlives_a_cut_of_the_link() {
    let is_called = |manner: &UpdateMode| *manner == UpdateMode::Callbacks;
    a_cut_is_a_gap("a_subscription_outlives_a_cut_of_the_link", "", is_called);
}

#[test]
fn a_subscription_that_polls_outlives_a_cut_of_the_link() {
    let polls = |manner: &UpdateMode| matches!(manner, UpdateMode::Polling { .. });
    a_cut_is_a_gap("a_subscription_that_polls_outlives_a_cut_of_the_link", "&poll", polls);
}
