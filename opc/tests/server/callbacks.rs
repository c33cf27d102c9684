use super::{PATIENCE, Site, add_group, code_of, def};
use everywire::{Ref, Subscription};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnCancelComplete, DataAccessGroupOnDataChange,
    DataAccessGroupOnReadComplete, DataAccessGroupOnWriteComplete, DataAccessServer,
    DataAccessServerShutdownRequest, IOPCAsyncIO2, IOPCAsyncIO3, OPCDATASOURCE,
};
use everywire_opc::{Code, Data};
use std::sync::mpsc::{Receiver, channel};

/// A group with two items, which somebody listens to.
struct Heard {
    group: Ref<dyn DataAccessGroup>,
    items: Vec<u32>,
    changes: Receiver<DataAccessGroupOnDataChange>,
    listening: Subscription,
    _server: Ref<dyn DataAccessServer>,
}

impl Heard {
    fn new(site: &Site) -> Self {
        let server = site.connect::<dyn DataAccessServer>();
        let (_, group) = add_group::<dyn DataAccessGroup>(site, &server, "", 10);
        let added = group.add_items(&[def("Tank.Level", 1), def("Tank.Setpoint", 2)]).expect("it lives");
        let items = added.value.0.iter().map(|result| result.server).collect();
        let (tell, changes) = channel();
        let listening =
            group.signals().on(move |change: DataAccessGroupOnDataChange| drop(tell.send(change)));
        Self { group, items, changes, listening: listening.expect("callbacks"), _server: server }
    }

    fn next(&self) -> DataAccessGroupOnDataChange {
        self.changes.recv_timeout(PATIENCE).expect("a change")
    }
}

fn values(change: &DataAccessGroupOnDataChange) -> Vec<(u32, Data)> {
    let values = change.values.iter().map(|value| Data::from_variant(value).expect("a value"));
    let mut found: Vec<_> = change.items.iter().copied().zip(values).collect();
    found.sort_by_key(|(client, _)| *client);
    found
}

#[test]
fn a_listener_hears_all_values_first_and_then_what_changes() {
    let site = Site::new();
    let heard = Heard::new(&site);
    let first = heard.next();
    assert_eq!(values(&first), [(1, Data::R4(50.0)), (2, Data::I2(10))]);
    assert_eq!((first.transaction, first.group, first.master_quality, first.master_error), (0, 77, 0, 0));
    assert_eq!(
        (first.qualities.as_slice(), first.errors.as_slice()),
        ([192; 2].as_slice(), [0; 2].as_slice())
    );
    site.table.set("Tank.Level", 51.0_f32).expect("an item");
    assert_eq!(values(&heard.next()), [(1, Data::R4(51.0))]);
    site.table.set("Tank.Setpoint", 11_i16).expect("an item");
    assert_eq!(values(&heard.next()), [(2, Data::I2(11))]);
}

#[test]
fn a_refresh_is_told_by_its_transaction() {
    let site = Site::new();
    let heard = Heard::new(&site);
    heard.next();
    let cancel = heard.group.refresh2(OPCDATASOURCE::OpcDsDevice, 4242).expect("somebody listens");
    assert_ne!(cancel, 0);
    let refreshed = heard.next();
    assert_eq!((refreshed.transaction, values(&refreshed).len()), (4242, 2));
    heard.group.refresh_max_age(1000, 4243).expect("somebody listens");
    assert_eq!(heard.next().transaction, 4243);
}

#[test]
fn reads_and_writes_are_told_when_they_are_done() {
    let site = Site::new();
    let heard = Heard::new(&site);
    let (tell, read) = channel();
    let _reading = heard.group.signals().on(move |done: DataAccessGroupOnReadComplete| drop(tell.send(done)));
    let (tell, written) = channel();
    let _writing =
        heard.group.signals().on(move |done: DataAccessGroupOnWriteComplete| drop(tell.send(done)));
    let io = heard.group.query::<dyn IOPCAsyncIO2>().expect("it can be asked").expect("it has it");
    let asked: Vec<u32> = heard.items.iter().copied().chain([0]).collect();
    let begun = io.read(&asked, 1001).expect("somebody listens");
    assert_eq!((begun.code, begun.value.1), (1, vec![0, 0, Code::INVALID_HANDLE.signed()]));
    let done = read.recv_timeout(PATIENCE).expect("an end");
    assert_eq!((done.transaction, done.items.len(), done.master_error), (1001, 2, 0));
    let values = [Data::R4(0.0), Data::I2(99)].map(|data| data.to_variant());
    let begun = io.write(&heard.items, &values, 1002).expect("somebody listens");
    assert_eq!(begun.value.1, [Code::BAD_RIGHTS.signed(), 0]);
    let done = written.recv_timeout(PATIENCE).expect("an end");
    assert_eq!((done.transaction, done.items, done.errors), (1002, vec![2], vec![0]));
    assert_eq!(site.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(99)));
}

#[test]
fn callbacks_can_be_turned_off() {
    let site = Site::new();
    let heard = Heard::new(&site);
    heard.next();
    let io = heard.group.query::<dyn IOPCAsyncIO2>().expect("it can be asked").expect("it has it");
    io.set_enable(0).expect("somebody listens");
    assert_eq!(io.get_enable().expect("somebody listens"), 0);
    site.table.set("Tank.Level", 1.0_f32).expect("an item");
    // What is asked for still comes, and nothing before it.
    io.refresh2(OPCDATASOURCE::OpcDsCache, 9).expect("somebody listens");
    assert_eq!(heard.next().transaction, 9);
    io.set_enable(1).expect("somebody listens");
    assert_eq!(values(&heard.next()).len(), 2);
}

#[test]
fn who_listens_no_more_is_noticed() {
    let site = Site::new();
    let Heard { group, items, changes, listening, _server } = Heard::new(&site);
    changes.recv_timeout(PATIENCE).expect("a change");
    drop(listening);
    let io = group.query::<dyn IOPCAsyncIO3>().expect("it can be asked").expect("it has it");
    // Unadvise is a call of its own, which may still be on its way.
    let end = std::time::Instant::now() + PATIENCE;
    while io.set_enable(1).is_ok() {
        assert!(std::time::Instant::now() < end, "Unadvise was not noticed");
    }
    assert_eq!(code_of(io.refresh2(OPCDATASOURCE::OpcDsCache, 1)), Some(Code::NO_CONNECTION));
    assert_eq!(code_of(io.read_max_age(&items, &[0, 0], 1)), Some(Code::NO_CONNECTION));
}

#[test]
fn a_call_that_is_not_known_cannot_be_cancelled() {
    let site = Site::new();
    let heard = Heard::new(&site);
    let (tell, _cancelled) = channel();
    let _listening =
        heard.group.signals().on(move |done: DataAccessGroupOnCancelComplete| drop(tell.send(done)));
    assert_eq!(code_of(heard.group.cancel2(12_345)), Some(Code::FAIL));
}

#[test]
fn clients_are_asked_to_leave() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (tell, told) = channel();
    let _listening = server
        .signals()
        .on(move |asked: DataAccessServerShutdownRequest| drop(tell.send(asked.reason)))
        .expect("callbacks");
    site.server.request_shutdown("maintenance").expect("a reason");
    assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok("maintenance"));
}
