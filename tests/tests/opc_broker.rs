//! OPC Data Access by a route of the broker: the server calls its clients back.

use crate::common::foreign::PATIENCE;
use everywire::Node;
use everywire_broker::{Broker, Config};
use everywire_opc::remote::{DataAccess, Event, ItemValue, SubscriptionRequest, UpdateMode};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Data, Item, Settings, Table, VarType};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a94";

/// The next values.
fn values(events: &Receiver<Event>) -> Vec<ItemValue> {
    loop {
        match events.recv_timeout(PATIENCE).expect("an event") {
            Event::Values(values) => return values,
            Event::Live(live) => assert_eq!(live.manner, UpdateMode::Callbacks, "{:?}", live.notes),
            other => panic!("{other:?}"),
        }
    }
}

/// The last value of a list that comes in one or several callbacks.
fn until(events: &Receiver<Event>, wanted: &Data) {
    while !values(events).iter().any(|one| one.value.data == *wanted) {}
}

/// References that the route has passed on, and whose objects have not ended.
fn held(broker: &Broker) -> String {
    let page = broker.metrics();
    let line =
        page.lines().find_map(|line| line.strip_prefix("everywire_broker_references{route=\"plant\"} "));
    line.unwrap_or("0").to_owned()
}

fn by_a_route(contract: &str) {
    let table = Arc::new(Table::new());
    table.extend([
        (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
        (Item::new("Tank.Setpoint", VarType::I2), Data::I2(10)),
    ]);
    let backend = Node::new();
    let info = ServerInfo::new(CLASS, "Everywire.Tank");
    let server = Server::serve(&backend, info, Arc::clone(&table) as Arc<_>, Settings::default());
    let server = server.expect("a thread");
    let place = backend.listen("dcom://127.0.0.1:0?level=none").expect("a port");
    let place = place.trim_start_matches("dcom://").split(['/', '?']).next().expect("a place").to_owned();
    let text = format!(
        "[listen.front]\naddress = \"dcom://127.0.0.1:0?level=none\"\n[[route]]\nname = \"plant\"\n\
         match = {{ key = \"{CLASS}\" }}\nto = \"dcom://{place}/{CLASS}?level=none\"\n{contract}\n"
    );
    let config = Config::parse(&text, "broker.toml", Path::new(env!("CARGO_MANIFEST_DIR")));
    let config = config.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let broker = Broker::start(config, Arc::new(|line: &str| eprintln!("{line}")));
    let broker = broker.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let reference = broker.references().first().expect("a route").1.clone();
    let front = reference.trim_start_matches("dcom://").split(['/', '?']).next().expect("a place");
    let client = Node::new();
    let plant =
        DataAccess::connect(&client, &format!("opcda://{front}/{CLASS}?level=none")).expect("a server");
    let (tell, events) = channel();
    let wanted = SubscriptionRequest { rate: Duration::from_millis(10), ..SubscriptionRequest::default() };
    let items = ["Tank.Level", "Tank.Setpoint"];
    let subscription =
        plant.subscribe(&items, wanted, move |event| drop(tell.send(event))).expect("a thread");
    until(&events, &Data::I2(10));
    for value in 11..40_i16 {
        table.set("Tank.Setpoint", value).expect("an item");
        until(&events, &Data::I2(value));
    }
    subscription.end();
    assert_eq!(server.engine().items_in_use(), 0, "the group was not removed");
    drop(plant);
    drop(client);
    let begun = Instant::now();
    while held(&broker) != "0" {
        assert!(begun.elapsed() < PATIENCE, "{} references are left", held(&broker));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_opc_server_calls_back_by_a_route_with_the_contract() {
    by_a_route("contract = \"../opc/contracts/opcda.idl\"\ninterface = \"IOPCServer\"");
}

/// Without a contract the references that the server and the client give each other lead past the broker.
#[test]
fn an_opc_server_calls_back_past_a_route_without_a_contract() {
    by_a_route("");
}
