//! OPC Data Access by a route of the broker with OPC's contract: the server calls its clients back, and what they hold ends with them.

use crate::common::dcom::{DOMAIN, PASSWORD, USER, alone, opc_impacket, users, utgard};
use crate::common::foreign::{Beside, PATIENCE, run};
use crate::common::scratch;
use everywire::Node;
use everywire_broker::{Broker, Config};
use everywire_opc::remote::{DataAccess, Event, ItemValue, Subscription, SubscriptionRequest, UpdateMode};
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Code, Data, Item, Settings, Table, VarType};
use everywire_tests::again::{only, this_program};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a94";
/// The list of servers, OpcEnum.
const LIST: &str = "13486d51-4821-11d2-a494-3cb306c10000";
/// The server object by its first interface alone, and by its class.
const CONTRACTS: [&str; 2] = [
    "contract = \"../opc/contracts/opcda.idl\"\ninterface = \"IOPCServer\"",
    "contract = \"../opc/contracts/opc.idl\"\ninterface = \"DataAccessServer\"",
];
/// Where the child of a test finds its server.
const PLACE: &str = "EVERYWIRE_TEST_PLANT";

/// A server behind a broker.
struct Plant {
    table: Arc<Table>,
    server: Server,
    broker: Broker,
    _backend: Node,
}

impl Plant {
    fn open(contract: &str, front: &str) -> Self {
        Self::behind(front, "dcom://127.0.0.1:0?level=none", |place| {
            format!(
                "[[route]]\nname = \"plant\"\nmatch = {{ key = \"{CLASS}\" }}\n\
                 to = \"dcom://{place}/{CLASS}?level=none\"\n{contract}\n"
            )
        })
    }

    fn behind(front: &str, backend: &str, routes: impl FnOnce(&str) -> String) -> Self {
        let table = Arc::new(Table::new());
        table.extend([
            (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
            (Item::new("Tank.Valve", VarType::BOOL).writable(), Data::Bool(false)),
            (Item::new("Tank.Setpoint", VarType::I2).writable(), Data::I2(10)),
            (Item::new("Name", VarType::BSTR), "tank one".into()),
        ]);
        let node = Node::new();
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        OpcEnum::serve(&node).add(&info);
        let server = Server::serve(&node, info, Arc::clone(&table) as Arc<_>, Settings::default());
        let place = node.listen(backend).expect("a port");
        let place = place.trim_start_matches("dcom://").split(['/', '?']).next().expect("a place");
        let place = place.rsplit('@').next().expect("a place");
        let text = format!("[listen.front]\naddress = \"{front}\"\n{}", routes(place));
        let config = Config::parse(&text, "broker.toml", Path::new(env!("CARGO_MANIFEST_DIR")));
        let config = config.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let broker = Broker::start(config, Arc::new(|line: &str| eprintln!("{line}")));
        let broker = broker.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        Self { table, server: server.expect("a thread"), broker, _backend: node }
    }

    /// Where the broker serves it.
    fn address(&self) -> String {
        let reference = self.broker.references().first().expect("a route").1.clone();
        let front = reference.trim_start_matches("dcom://").split(['/', '?']).next().expect("a place");
        format!("opcda://{front}/{CLASS}?level=none")
    }

    /// References that the route has passed on, and whose objects have not ended.
    fn held(&self) -> String {
        let page = self.broker.metrics();
        let line =
            page.lines().find_map(|line| line.strip_prefix("everywire_broker_references{route=\"plant\"} "));
        line.unwrap_or("0").to_owned()
    }

    /// Waits until nothing is left of clients, here and at the server.
    fn is_left(&self) {
        let engine = self.server.engine();
        let begun = Instant::now();
        while self.held() != "0" || engine.clients() > 0 || engine.items_in_use() > 0 {
            let (clients, items) = (engine.clients(), engine.items_in_use());
            let held = self.held();
            assert!(
                begun.elapsed() < PATIENCE,
                "{held} references, {clients} clients, {items} items are left"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

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

fn watch(plant: &DataAccess, tell: impl Fn(Event) + Send + Sync + 'static) -> Subscription {
    let wanted = SubscriptionRequest { rate: Duration::from_millis(10), ..SubscriptionRequest::default() };
    plant.subscribe(&["Tank.Level", "Tank.Setpoint"], wanted, tell).expect("a thread")
}

#[test]
fn an_opc_server_calls_back_by_a_route_with_the_contract() {
    for contract in CONTRACTS {
        let plant = Plant::open(contract, "dcom://127.0.0.1:0?level=none");
        let client = Node::new();
        let access = DataAccess::connect(&client, &plant.address()).expect("a server");
        let (tell, events) = channel();
        let subscription = watch(&access, move |event| drop(tell.send(event)));
        until(&events, &Data::I2(10));
        for value in 11..40_i16 {
            plant.table.set("Tank.Setpoint", value).expect("an item");
            until(&events, &Data::I2(value));
        }
        subscription.end();
        assert_eq!(plant.server.engine().items_in_use(), 0, "the group was not removed");
        drop(access);
        drop(client);
        plant.is_left();
    }
}

/// The server asks its clients to leave (IOPCShutdown), which is a connection point of the object that a client asked for.
#[test]
fn an_opc_server_asks_its_clients_behind_a_route_to_leave() {
    for contract in CONTRACTS {
        let plant = Plant::open(contract, "dcom://127.0.0.1:0?level=none");
        let access = DataAccess::connect(&Node::new(), &plant.address()).expect("a server");
        let (tell, events) = channel();
        let _subscription = watch(&access, move |event| drop(tell.send(event)));
        until(&events, &Data::I2(10));
        plant.server.request_shutdown("maintenance").expect("it lives");
        loop {
            match events.recv_timeout(PATIENCE).expect("an event") {
                Event::Shutdown { reason, .. } => break assert_eq!(reason, "maintenance"),
                Event::Values(_) => {}
                other => panic!("{contract}: {other:?}"),
            }
        }
    }
}

/// A client that is killed says nothing. Its objects at the broker end when its pings are missing, with them those of the server that
/// they stand for, and so the group and the sink.
#[test]
fn of_a_client_that_dies_nothing_is_left_behind_a_route() {
    if let Ok(place) = std::env::var(PLACE) {
        let node = Node::new();
        node.listen("dcom://127.0.0.1:0?level=none&ping=1").expect("a port");
        let access = DataAccess::connect(&node, &place).expect("a server");
        let (tell, events) = channel();
        let _subscription = watch(&access, move |event| drop(tell.send(event)));
        until(&events, &Data::I2(10));
        println!("ready");
        loop {
            std::thread::park();
        }
    }
    for contract in CONTRACTS {
        // Pings of three seconds, of which three may be missing, so that nobody ends before he is killed.
        let plant = Plant::open(contract, "dcom://127.0.0.1:0?level=none&ping=3");
        let mut program = this_program();
        program
            .args(only("of_a_client_that_dies_nothing_is_left_behind_a_route"))
            .env(PLACE, plant.address());
        let client = Beside::start(&mut program);
        client.hear("ready");
        assert_eq!((plant.server.engine().clients(), plant.server.engine().items_in_use()), (1, 2));
        client.kill();
        plant.is_left();
    }
}

/// Utgard looks up its server at OpcEnum, browses, reads, writes, and is called back: all of it by routes, at the levels that it knows.
#[test]
fn utgard_has_a_whole_session_with_callbacks_behind_a_broker() {
    let test = "utgard_has_a_whole_session_with_callbacks_behind_a_broker";
    let Some(mut utgard) = utgard(test, CLASS) else { return };
    if !alone(test) {
        return;
    }
    let users = users(&scratch("users-utgard")).display().to_string();
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let plant = Plant::behind(
        &format!("dcom://127.0.0.1:135?users={users}&level=connect&ntlm1=session"),
        &format!("dcom://127.0.0.1:4135?users={users}&level=connect"),
        |place| {
            let route = |name: &str, class: &str, interface: &str| {
                format!(
                    "[[route]]\nname = \"{name}\"\nmatch = {{ key = \"{class}\" }}\n\
                     to = \"dcom://{DOMAIN};{USER}:{password}@{place}/{class}?level=connect\"\n\
                     contract = \"../opc/contracts/opc.idl\"\ninterface = \"{interface}\"\n"
                )
            };
            route("plant", CLASS, "DataAccessServer") + &route("list", LIST, "OpcServerList")
        },
    );
    let written = Arc::downgrade(&plant.table);
    plant.table.on_write(move |write| {
        // What the client writes at last makes the level move, so that it hears of it.
        if let (true, Some(table)) = (write.item.id == "Tank.Valve", written.upgrade()) {
            table.set("Tank.Level", 60.0_f32).expect("an item");
        }
        Code::OK
    });
    let said = run(&mut utgard);
    for line in [
        "server Everywire.Tank.1 Everywire.Tank",
        "flat [Name, Tank.Level, Tank.Setpoint, Tank.Valve]",
        "filtered [Tank.Level, Tank.Setpoint]",
        "tree [Name, Tank/Level=Tank.Level, Tank/Setpoint=Tank.Setpoint, Tank/Valve=Tank.Valve]",
        "read and written",
        "called back",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.ends_with("ok\n"), "{said}");
    assert_eq!(plant.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(321)));
    assert_eq!(plant.server.engine().items_in_use(), 0);
}

/// impacket has a whole session by a route. Another one is killed while it has a group.
#[test]
fn of_impacket_nothing_is_left_behind_a_broker() {
    let test = "of_impacket_nothing_is_left_behind_a_broker";
    let Some(impacket) = opc_impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let users = users(&scratch("users-impacket")).display().to_string();
    let plant = Plant::open(CONTRACTS[1], &format!("dcom://127.0.0.1:135?users={users}&ping=3"));
    let said = run(&mut impacket("session", CLASS));
    assert!(said.contains("read and written") && said.ends_with("ok\n"), "{said}");
    assert_eq!(plant.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(123)));
    plant.is_left();
    let other = Beside::start(&mut impacket("stay", CLASS));
    other.hear("ready");
    assert!(plant.server.engine().items_in_use() > 0);
    other.kill();
    plant.is_left();
}
