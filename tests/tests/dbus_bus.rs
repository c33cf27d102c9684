//! Living on a bus: names and their queues, the loss of whom one listens to, monitors, and what everybody expects of
//! everybody.

use crate::common::foreign::{BUSES, Beside, PATIENCE, bus, socket, until};
use crate::common::galley::{self, NAME, PATH};
use everywire::model::describe::{Shape, TEXT};
use everywire::model::shape::Field;
use everywire::model::{Direction, Hold, Operation, Parameter, SignalEvent};
use everywire::{Failure, Interface, Kind, Node, Notice, Object, Ref, Remote};
use everywire_derby::buses::Bus;
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A node that notes what it is told.
fn noting() -> (Node, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&notes);
    let observer = Arc::new(move |notice: &Notice| noted.lock().expect("whole").push(format!("{notice:?}")));
    (Node::builder().observer(observer).build().into(), notes)
}

fn listen(node: &Node, bus: &Bus, options: &str) -> Result<String, Failure> {
    node.listen(&format!("dbus:{}#{NAME}{options}", bus.address()))
}

/// A kitchen on this bus with a title that tells it from others.
fn serving(bus: &Bus, options: &str, title: &str) -> Node {
    let node = Node::new();
    let kitchen = Galley::export(&node, KEY);
    kitchen.set_title(title).expect("a title");
    listen(&node, bus, options).expect("the bus lets it in");
    node
}

/// An operation of the bus, or of anybody, without a contract.
fn operation(name: &str, parameters: &[Shape], returns: Shape) -> Operation {
    let parameter = |(at, shape): (usize, &Shape)| Parameter {
        direction: Direction::In,
        field: Field { name: format!("p{at}").into(), shape: shape.clone() },
    };
    Operation::new(name.to_owned(), parameters.iter().enumerate().map(parameter).collect(), returns)
}

fn interface(id: &str) -> Hold<Interface> {
    let mut interface = <dyn Kitchen as Remote>::interface().clone();
    (interface.name, interface.id) = (id.replace('.', "::").into(), id.to_owned().into());
    interface.operations = Vec::new().into();
    interface.attributes = Vec::new().into();
    interface.signals = Vec::new().into();
    Hold::new(interface)
}

/// The bus itself.
fn driver(node: &Node, bus: &Bus) -> Object {
    let text = format!("dbus:{}#org.freedesktop.DBus/org/freedesktop/DBus", bus.address());
    node.object(&text).expect("it parses").typed(interface("org.freedesktop.DBus"))
}

#[test]
fn both_buses_answer_our_client() {
    for program in BUSES {
        let Some(bus) = bus("both_buses_answer_our_client", program) else { return };
        let _server = serving(&bus, "", "one");
        let client = Node::new();
        let driver = driver(&client, &bus);
        let texts = Shape::sequence(TEXT);
        let (names,): (Vec<String>,) =
            driver.call::<_, _, Failure>(&operation("ListNames", &[], texts.clone()), ()).expect("names");
        assert!(
            names.iter().any(|name| name == NAME) && names.iter().any(|name| name.starts_with(':')),
            "{names:?}"
        );
        let owner = operation("GetNameOwner", &[TEXT], TEXT);
        let (unique,): (String,) = driver.call::<_, _, Failure>(&owner, (NAME,)).expect("an owner");
        assert!(names.contains(&unique));
        let failure =
            driver.call::<_, (String,), Failure>(&owner, ("org.example.Nobody",)).expect_err("nobody");
        assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.NameHasNoOwner"), "{failure}");
        let pid = operation("GetConnectionUnixProcessID", &[TEXT], Shape::U32);
        let (pid,): (u32,) = driver.call::<_, _, Failure>(&pid, (NAME,)).expect("a process");
        assert_eq!(pid, std::process::id());
        let (id,): (String,) =
            driver.call::<_, _, Failure>(&operation("GetId", &[], TEXT), ()).expect("an identity");
        assert_eq!(id.len(), 32);
        // The object is found by its unique name as well.
        let direct: Ref<dyn Kitchen> =
            client.connect(&format!("dbus:{}#{unique}/{KEY}", bus.address())).expect("it parses");
        assert_eq!(direct.title().expect("title"), "one");
        let nobody: Ref<dyn Kitchen> =
            client.connect(&format!("dbus:{}#org.example.Nobody/{KEY}", bus.address())).expect("it parses");
        let failure = nobody.title().expect_err("nobody is there");
        assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.ServiceUnknown"), "{failure}");
    }
}

#[test]
fn a_name_that_is_taken_is_refused_by_name() {
    for program in BUSES {
        let Some(bus) = bus("a_name_that_is_taken_is_refused_by_name", program) else { return };
        let _first = serving(&bus, "", "first");
        let failure = listen(&Node::new(), &bus, "").expect_err("the name is taken");
        assert!(failure.to_string().contains(NAME), "{failure}");
    }
}

#[test]
fn whoever_queues_for_a_name_gets_it_in_the_end() {
    for program in BUSES {
        let Some(bus) = bus("whoever_queues_for_a_name_gets_it_in_the_end", program) else { return };
        let first = serving(&bus, "", "first");
        let second = serving(&bus, "?queue", "second");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        assert_eq!(kitchen.title().expect("title"), "first");
        first.stop();
        until("the second has the name", || kitchen.title().is_ok_and(|title| title == "second"));
        drop(second);
    }
}

#[test]
fn a_name_that_may_be_replaced_is_and_its_owner_notices() {
    for program in BUSES {
        let Some(bus) = bus("a_name_that_may_be_replaced_is_and_its_owner_notices", program) else { return };
        let (first, notes) = noting();
        Galley::export(&first, KEY).set_title("first").expect("a title");
        listen(&first, &bus, "?replaceable").expect("the bus lets it in");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        assert_eq!(kitchen.title().expect("title"), "first");
        let _second = serving(&bus, "?replace", "second");
        assert_eq!(kitchen.title().expect("title"), "second");
        until("the first is told", || {
            notes.lock().expect("whole").iter().any(|note| note.starts_with("Left"))
        });
    }
}

#[test]
fn the_loss_of_a_sender_is_noticed_and_its_return_heard() {
    for program in BUSES {
        let Some(bus) = bus("the_loss_of_a_sender_is_noticed_and_its_return_heard", program) else { return };
        let server = serving(&bus, "", "first");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        let (ticks, lost) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, noted) = (Arc::clone(&ticks), Arc::clone(&lost));
        let _subscription = kitchen
            .signals()
            .watch(move |event: SignalEvent<KitchenTick>| match event {
                SignalEvent::Signal(_) => *counted.lock().expect("whole") += 1,
                other => noted.lock().expect("whole").push(format!("{other:?}")),
            })
            .expect("a subscription");
        kitchen.fire(2).expect("fire");
        until("signals come", || *ticks.lock().expect("whole") == 2);
        assert!(lost.lock().expect("whole").is_empty());
        server.stop();
        until("the loss is told", || !lost.lock().expect("whole").is_empty());
        let told = lost.lock().expect("whole").clone();
        assert!(told[0].contains(NAME), "{told:?}");
        // The subscription stands.
        let _again = serving(&bus, "", "second");
        kitchen.fire(3).expect("fire");
        until("signals come again", || *ticks.lock().expect("whole") == 5);
    }
}

#[test]
fn signals_of_others_with_the_same_path_are_not_heard() {
    for program in BUSES {
        let Some(bus) = bus("signals_of_others_with_the_same_path_are_not_heard", program) else { return };
        let _server = serving(&bus, "", "true");
        let impostor = Node::new();
        let false_kitchen = Galley::export(&impostor, KEY);
        impostor.listen(&format!("dbus:{}#org.example.Impostor", bus.address())).expect("the bus lets it in");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        let ticks = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&ticks);
        let _subscription = kitchen
            .signals()
            .on(move |tick: KitchenTick| noted.lock().expect("whole").push(tick.i))
            .expect("a subscription");
        let there = client
            .connect::<dyn Kitchen>(&format!("dbus:{}#org.example.Impostor/{KEY}", bus.address()))
            .expect("it parses");
        there.fire(100).expect("fire");
        false_kitchen.fire(100).expect("fire");
        kitchen.fire(1).expect("fire");
        until("the true signal comes", || !ticks.lock().expect("whole").is_empty());
        assert_eq!(*ticks.lock().expect("whole"), [0]);
    }
}

#[test]
fn a_monitor_overhears_others() {
    for program in BUSES {
        let Some(bus) = bus("a_monitor_overhears_others", program) else { return };
        let _server = serving(&bus, "", "one");
        let watcher = Node::new();
        let monitor = watcher.monitor(&format!("dbus:{}", bus.address())).expect("a monitor");
        let client = Node::new();
        let kitchen = galley::on_bus(&client, bus.address());
        kitchen.divide(17, 5).expect("divide");
        kitchen.fire(1).expect("fire");
        let end = Instant::now() + PATIENCE;
        let mut wanted = vec!["METHOD_CALL", "Divide", "METHOD_RETURN", "Tick"];
        while !wanted.is_empty() {
            let message = monitor.next(Some(end)).expect("it lasts");
            let message = message.unwrap_or_else(|| panic!("{}: {wanted:?} never came", program.name()));
            let listing = format!("{:?}", monitor.wire().explain(&message));
            wanted.retain(|word| !listing.contains(word));
        }
    }
}

#[test]
fn objects_tell_their_contract_and_their_children() {
    for program in BUSES {
        let Some(bus) = bus("objects_tell_their_contract_and_their_children", program) else { return };
        let server = serving(&bus, "", "one");
        Galley::export(&server, "org/example/Kitchen/cupboard");
        let client = Node::new();
        let object = client.object(&format!("dbus:{}#{NAME}/{KEY}", bus.address())).expect("it parses");
        let here = client.list(&format!("dbus:{}#{NAME}", bus.address())).expect("a list");
        let mut paths: Vec<_> = here.iter().map(|one| one.name.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, [PATH, "/org/example/Kitchen/cupboard"]);
        let peer = object.clone().typed(interface("org.freedesktop.DBus.Peer"));
        peer.call::<_, (), Failure>(&operation("Ping", &[], Shape::Void), ()).expect("ping");
        let (id,): (String,) =
            peer.call::<_, _, Failure>(&operation("GetMachineId", &[], TEXT), ()).expect("an identity");
        assert_eq!(id.len(), 32);
        let wrong = object.typed(interface("org.example.Other"));
        let failure =
            wrong.call::<_, (), Failure>(&operation("Ping", &[], Shape::Void), ()).expect_err("no such");
        assert_eq!(failure.kind(), Kind::NoOperation, "{failure}");
    }
}

#[test]
fn a_bus_that_dies_fails_calls_and_is_rejoined_when_it_is_back() {
    let test = "a_bus_that_dies_fails_calls_and_is_rejoined_when_it_is_back";
    if !here(test, &["dbus-daemon"]) {
        return;
    }
    let (_, path) = socket("mortal");
    let address = format!("unix:path={}", path.display());
    let start = || {
        let bus = Beside::start(
            Command::new("dbus-daemon")
                .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
                .arg(format!("--address={address}")),
        );
        bus.hear("unix:path=");
        bus
    };
    let bus = start();
    let (server, notes) = noting();
    Galley::export(&server, KEY);
    server.listen(&format!("dbus:{address}#{NAME}")).expect("the bus lets it in");
    let client = Node::new();
    let kitchen = galley::on_bus(&client, &address);
    kitchen.nothing().expect("it answers");
    bus.kill();
    let failure = kitchen.nothing().expect_err("there is no bus");
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
    let told = |word: &str| notes.lock().expect("whole").iter().any(|note| note.starts_with(word));
    until("the server is told", || told("Left"));
    let _bus = start();
    until("the server is back", || told("Joined"));
    until("calls go through again", || kitchen.nothing().is_ok());
}
