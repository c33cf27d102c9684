//! What breaks: listeners that are slow or hang, clients that die, servers that freeze.
//!
//! A listener is slow as long as its gate is shut. Whoever dies or freezes is this program again, in a process of its own: it gets its part by
//! an environment variable, says what it has done on its standard output, and ends with its standard input, or by a signal.

use super::{CLASS, PATIENCE, Site, add_group, code_of, def, iid, until};
use crate::remote::{next, quick};
use everywire::{Node, Notice, Ref, Subscription};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, DataAccessServer, IOPCBrowseServerAddressSpace,
    IOPCItemMgt, IOPCSyncIO, OPCBROWSETYPE, OPCDATASOURCE,
};
use everywire_opc::remote::{Address, DataAccess, Event, SubscriptionRequest};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Children, Code, Data, Feed, FileTime, Item, Quality, Settings, Source, VarType, Vqt};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Holds whoever waits at it until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn wait(&self) {
        let (is_open, opened) = &*self.0;
        let held = is_open.lock().expect("nobody panics");
        let _open = opened.wait_while(held, |is_open| !*is_open).expect("nobody panics");
    }

    fn open(&self) {
        *self.0.0.lock().expect("nobody panics") = true;
        self.0.1.notify_all();
    }
}

/// A group of the level and the setpoint, at 10 ms.
struct Watched {
    server: Ref<dyn DataAccessServer>,
    group: Ref<dyn DataAccessGroup>,
    items: Vec<u32>,
    changes: Receiver<DataAccessGroupOnDataChange>,
    _listening: Subscription,
}

impl Watched {
    /// Each change waits at the gate before it is answered.
    fn new(site: &Site, gate: Option<Gate>) -> Self {
        let server = site.connect::<dyn DataAccessServer>();
        let (_, group) = add_group::<dyn DataAccessGroup>(site, &server, "watched", 10);
        let added = group.add_items(&[def("Tank.Level", 1), def("Tank.Setpoint", 2)]).expect("it lives");
        let items = added.value.0.iter().map(|result| result.server).collect();
        let (tell, changes) = channel();
        let listening = group.signals().on(move |change: DataAccessGroupOnDataChange| {
            drop(tell.send(change));
            if let Some(gate) = &gate {
                everywire::blocking(|| gate.wait());
            }
        });
        Self { server, group, items, changes, _listening: listening.expect("callbacks") }
    }

    /// What is told of an item until it has this value: values, and codes.
    fn until(&self, client: u32, wanted: &Data) -> Vec<(Data, Code)> {
        let mut found = Vec::new();
        while found.last().is_none_or(|(data, _)| data != wanted) {
            let change = self.changes.recv_timeout(PATIENCE).expect("a change");
            let each = change.items.iter().zip(&change.values).zip(&change.errors);
            let own = each.filter(|((item, _), _)| **item == client);
            let own = own.map(|((_, value), code)| {
                (Data::from_variant(value).expect("a value"), Code(code.cast_unsigned()))
            });
            found.extend(own);
        }
        found
    }
}

/// A site whose node tells which listeners do not get what they asked for.
fn observed() -> (Site, Receiver<String>) {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let node = Node::builder().observer(Arc::new(move |notice: &Notice| {
        if let Notice::Undelivered { failure } = notice {
            drop(tell.lock().expect("nobody panics").send(failure.to_string()));
        }
    }));
    (Site::at(node.build().into()), told)
}

#[test]
fn a_slow_listener_gets_the_newest_values_later_and_knows_and_others_notice_nothing() {
    let (site, told) = observed();
    let (gate, other) = (Gate::default(), Watched::new(&site, None));
    let slow = Watched::new(&site, Some(gate.clone()));
    slow.changes.recv_timeout(PATIENCE).expect("the first values");
    other.until(1, &Data::R4(50.0));
    // Each value is heard by the other client before the next one is set.
    let mut value = 100.0_f32;
    let log = loop {
        value += 1.0;
        site.table.set("Tank.Level", value).expect("an item");
        other.until(1, &Data::R4(value));
        if let Some(log) = told.try_iter().find(|line| line.contains("\"watched\"")) {
            break log;
        }
        assert!(value < 10_000.0, "the listener is late, and nobody is told");
    };
    assert!(log.contains("127.0.0.1"), "{log}");
    for _ in 0..50 {
        value += 1.0;
        site.table.set("Tank.Level", value).expect("an item");
        other.until(1, &Data::R4(value));
    }
    // On a busy machine that may be longer than a callback may take, which has a line of its own.
    let again = told.try_iter().find(|line| line.contains("\"watched\""));
    assert_eq!(again, None, "one line says it");
    gate.open();
    let found = slow.until(1, &Data::R4(value));
    // Few were kept for it, the last of all arrives, and that others were lost is said.
    assert!(found.len() < 20, "{}", found.len());
    assert_eq!(found.last(), Some(&(Data::R4(value), Code::DATA_QUEUE_OVERFLOW)));
    // From now on all is as ever.
    site.table.set("Tank.Setpoint", 77_i16).expect("an item");
    assert_eq!(slow.until(2, &Data::I2(77)).last(), Some(&(Data::I2(77), Code::OK)));
}

/// A source that panics once, when it is asked for values.
struct Frail(AtomicBool);

impl Source for Frail {
    fn find(&self, id: &str) -> Option<Arc<Item>> {
        Some(Arc::new(Item::new(id, VarType::I4)))
    }

    fn children(&self, _: &str, _: Option<&str>) -> Option<Children> {
        None
    }

    fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
        assert!(self.0.swap(true, Ordering::SeqCst), "it panics once");
        items.iter().map(|_| Ok(Vqt::good(7_i32, FileTime::default()))).collect()
    }

    fn write(&self, writes: &[everywire_opc::Write]) -> Vec<Code> {
        writes.iter().map(|_| Code::OK).collect()
    }

    fn watch(&self, _: &Arc<Item>, _: Feed) -> bool {
        false
    }
}

#[test]
fn a_group_whose_source_panics_goes_on() {
    let node = Node::new();
    let info = ServerInfo::new(CLASS, "Everywire.Tank");
    let frail = Arc::new(Frail(AtomicBool::new(false)));
    // The class is its own, since it is served last.
    let site = Site::at(node);
    let _server = Server::serve(&site.node, info, frail, Settings::default()).expect("a thread");
    let watched = Watched::new(&site, None);
    watched.until(1, &Data::I4(7));
}

/// What is asked for is kept for a listener that hangs only as far as the quota goes; reads go on, and all of it ends with the client.
#[test]
fn a_listener_that_hangs_is_refused_more_and_leaves_nothing() {
    let (site, _told) = observed();
    let gate = Gate::default();
    let hung = Watched::new(&site, Some(gate.clone()));
    hung.changes.recv_timeout(PATIENCE).expect("the first values");
    let begun = (0..1000).map(|number| hung.group.refresh2(OPCDATASOURCE::OpcDsCache, number));
    // One that waits may be on its way to the listener just after another was refused: then there is room for one more.
    let (refused, kept): (Vec<_>, Vec<_>) = begun.map(code_of).partition(Option::is_some);
    let most = Settings::default().quotas.pending;
    assert!((1..=2 * most + 2).contains(&kept.len()), "{} refreshes wait", kept.len());
    assert!(refused.iter().all(|code| *code == Some(Code::OUT_OF_MEMORY)), "{refused:?}");
    let io = hung.group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    assert_eq!(io.read(OPCDATASOURCE::OpcDsCache, &hung.items).expect("it lives").value.1, [0, 0]);
    // Others.
    let other = Watched::new(&site, None);
    for value in 0..100_i16 {
        site.table.set("Tank.Setpoint", value).expect("an item");
        other.until(2, &Data::I2(value));
    }
    drop(other);
    drop((io, hung));
    until("the clients' objects end", || site.server.engine().clients() == 0);
    until("nothing is served", || site.node.exported().is_empty());
    assert_eq!(site.server.engine().items_in_use(), 0);
    gate.open();
}

#[test]
fn a_listener_may_call_theserver_while_it_is_told() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "", 10);
    let added = group.add_items(&[def("Tank.Level", 1)]).expect("it lives").value.0;
    let items: Vec<u32> = added.iter().map(|result| result.server).collect();
    let io = group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let (tell, told) = channel();
    let inner = group.clone();
    let listening = group.signals().on(move |change: DataAccessGroupOnDataChange| {
        let work = || {
            let read = io.read(OPCDATASOURCE::OpcDsDevice, &items).map(|read| read.value.1);
            let set = inner.set_state(&Some(20), &None, &None, &None, &None, &None).map(|set| set.value);
            let added = inner.add_items(&[def("Name", 2)]).map(|added| added.value.1);
            (read, set, added, inner.refresh2(OPCDATASOURCE::OpcDsCache, 5).is_ok())
        };
        drop(tell.send((change.transaction, everywire::blocking(work))));
    });
    let _listening = listening.expect("callbacks");
    for _ in 0..3 {
        let (_, (read, set, added, is_refreshed)) = told.recv_timeout(PATIENCE).expect("a change");
        assert_eq!((read.ok(), set.ok(), added.ok()), (Some(vec![0]), Some(20), Some(vec![0])));
        assert!(is_refreshed);
    }
}

/// This program again, as a part of a test that is another process: it ends with its standard input, or by force.
struct Other {
    child: Child,
    into: ChildStdin,
    from: BufReader<ChildStdout>,
}

const PART: &str = "EVERYWIRE_OPC_PART";

impl Other {
    fn start(test: &str, part: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", test, "--nocapture"]).env(PART, part);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let into = child.stdin.take().expect("piped");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, into, from }
    }

    /// The rest of the next line that begins with a word.
    fn said(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.from.read_line(&mut line).expect("a line"), 0, "it ended before `{word}`");
            // The test's name may stand before it.
            if let Some((_, rest)) = line.trim_end().split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().expect("kill starts").success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What another process is told by the test that started it.
fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Waits until whoever started this is gone.
fn wait_for_the_end() {
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_client_that_dies_with_a_thousand_groups_leaves_nothing() {
    const GROUPS: usize = 1000;
    if let Some(address) = part() {
        let client = Node::new();
        client.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        let server = client.connect::<dyn DataAccessServer>(&address).expect("an address");
        let (mut held, mut listening) = (Vec::new(), Vec::new());
        for number in 0..GROUPS {
            let added =
                server.add_group("", 1, 10, 7, &None, &None, 0, &iid::<dyn IOPCItemMgt>()).expect("a group");
            let group =
                client.narrow::<dyn DataAccessGroup>(added.value.2.expect("an object")).expect("a group");
            group.add_items(&[def("Name", 1), def("Tank.Level", 2)]).expect("it lives");
            if number < 3 {
                listening.push(group.signals().on(|_: DataAccessGroupOnDataChange| {}).expect("callbacks"));
            }
            held.push(group);
        }
        let browsing =
            server.query::<dyn IOPCBrowseServerAddressSpace>().expect("it can be asked").expect("it has it");
        let names: Vec<_> = (0..5)
            .map(|_| browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "", 0, 0).expect("names"))
            .collect();
        println!("ready");
        wait_for_the_end();
        drop((names, listening));
        return;
    }
    // Pings of five seconds, so that nobody misses three of them because the machine is busy: three that are missing are the end.
    let site = Site::served(Node::new(), "level=none&ping=5");
    let survivor = Watched::new(&site, None);
    survivor.until(1, &Data::R4(50.0));
    let before = site.node.exported().len();
    let test = "server::faults::a_client_that_dies_with_a_thousand_groups_leaves_nothing";
    let mut client = Other::start(test, &site.class_address());
    let io = survivor.group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let mut value = 100.0_f32;
    // Whoever lives on hears of each value meanwhile, and shows by calls that it does.
    let mut lives = || {
        value += 1.0;
        site.table.set("Tank.Level", value).expect("an item");
        survivor.until(1, &Data::R4(value));
        io.read(OPCDATASOURCE::OpcDsCache, &survivor.items).expect("it lives");
        survivor.server.get_status().expect("it lives");
    };
    std::thread::scope(|scope| {
        let ready = scope.spawn(|| client.said("ready"));
        while !ready.is_finished() {
            lives();
        }
    });
    let engine = site.server.engine();
    assert_eq!((engine.clients(), engine.items_in_use()), (2, 3));
    assert!(site.node.exported().len() > before + GROUPS);
    client.signal("-KILL");
    let end = Instant::now() + PATIENCE;
    while engine.clients() > 1 || site.node.exported().len() > before {
        assert!(Instant::now() < end, "{} clients, {} objects", engine.clients(), site.node.exported().len());
        lives();
    }
    assert_eq!(engine.items_in_use(), 2);
}

/// A server that is killed, and one that is frozen (as behind a cut cable: its connections stand and nothing comes): the gap is marked, and the
/// last value arrives once it is back.
#[test]
fn aserver_that_is_killed_or_frozen_is_a_gap_and_comes_back() {
    let test = "server::faults::aserver_that_is_killed_or_frozen_is_a_gap_and_comes_back";
    if let Some(place) = part() {
        let (table, node) = (super::table(), Node::new());
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        let server = Server::serve(&node, info, Arc::clone(&table) as Arc<_>, Settings::default());
        let address = node.listen(&format!("dcom://{place}?level=none")).expect("a port");
        println!("at {address}");
        for line in std::io::stdin().lines() {
            let value: i16 = line.expect("a line").parse().expect("a number");
            table.set("Tank.Setpoint", value).expect("an item");
        }
        return drop(server);
    }
    let mut server = Other::start(test, &super::own_place());
    let address = server.said("at dcom://");
    let place = address.split(['/', '?']).next().expect("a place").to_owned();
    let client: Node = Node::builder().deadline(Some(Duration::from_millis(500))).build().into();
    let address = Address::parse(&format!("opcda://{place}/{CLASS}?level=none")).expect("an address");
    let plant = DataAccess::later(&client, address);
    let (tell, events) = channel();
    let wanted = SubscriptionRequest { keep_alive: Duration::from_millis(100), ..quick() };
    let subscription = plant.subscribe(&["Tank.Setpoint"], wanted, move |event| drop(tell.send(event)));
    let _subscription = subscription.expect("a thread");
    // It may have been tried before the server was there, and a busy machine may lose it once more: what counts is what comes at last.
    let until_value = |wanted: i16| {
        loop {
            match next(&events) {
                Event::Values(values) if values.iter().any(|one| one.value.data == Data::I2(wanted)) => {
                    return;
                }
                _ => {}
            }
        }
    };
    let until_gap = || {
        loop {
            match next(&events) {
                Event::Values(values)
                    if values.iter().all(|one| one.value.quality == Quality::COMM_FAILURE) =>
                {
                    return;
                }
                _ => {}
            }
        }
    };
    until_value(10);
    server.signal("-STOP");
    until_gap();
    writeln!(server.into, "11").expect("it is there");
    server.signal("-CONT");
    until_value(11);
    server.signal("-KILL");
    until_gap();
    drop(server);
    server = Other::start(test, &place);
    server.said("at dcom://");
    writeln!(server.into, "12").expect("it is there");
    until_value(12);
}

/// More values than go in one call: they come in several, and none is missing.
#[test]
fn a_group_of_a_hundred_and_twenty_thousand_items_arrives_in_parts() {
    const ITEMS: usize = 120_000;
    let site = Site::new();
    let ids: Vec<String> = (0..ITEMS).map(|number| format!("Line.P{number}")).collect();
    let item =
        |id: &String| (everywire_opc::Item::new(id.as_str(), everywire_opc::VarType::R4), Data::R4(1.0));
    site.table.extend(ids.iter().map(item));
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "", 1000);
    for ids in ids.chunks(10_000) {
        let defs: Vec<_> = ids.iter().map(|id| def(id, 1)).collect();
        assert!(group.add_items(&defs).expect("it lives").value.1.iter().all(|code| *code == 0));
    }
    let (tell, told) = channel();
    let listening = group.signals().on(move |change: DataAccessGroupOnDataChange| {
        // The test may be over.
        let _ = tell.send((change.transaction, change.items.len()));
    });
    let _listening = listening.expect("callbacks");
    let all = |transaction: u32| {
        let mut found = 0;
        while found < ITEMS {
            let (of, count) = told.recv_timeout(PATIENCE).expect("a part");
            found += if of == transaction { count } else { 0 };
        }
        assert_eq!(found, ITEMS);
    };
    all(0);
    group.refresh2(OPCDATASOURCE::OpcDsCache, 9).expect("somebody listens");
    all(9);
}
