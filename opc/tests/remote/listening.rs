use super::{Plant, next, next_live, quick, values};
use crate::server::{CLASS, PATIENCE};
use everywire::Node;
use everywire_opc::remote::{DataAccess, Event, Pauses, SubscriptionRequest, UpdateMode};
use everywire_opc::{Code, Data, Quality};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const ITEMS: [&str; 2] = ["Tank.Level", "Tank.Setpoint"];

fn heard(
    server: &DataAccess,
    items: &[&str],
    wanted: SubscriptionRequest,
) -> (everywire_opc::remote::Subscription, Receiver<Event>) {
    let (tell, events) = channel();
    let subscription = server.subscribe(items, wanted, move |event| drop(tell.send(event)));
    (subscription.expect("a thread"), events)
}

fn data(values: &[everywire_opc::remote::ItemValue]) -> Vec<Data> {
    values.iter().map(|one| one.value.data.clone()).collect()
}

#[test]
fn values_come_first_all_and_then_what_changes() {
    let plant = Plant::new();
    for (options, version) in [("", "3.0"), ("&version=2", "2.05a")] {
        plant.table.set("Tank.Setpoint", 10_i16).expect("an item");
        let server = plant.connect(options);
        let wanted = SubscriptionRequest { deadband: Some(2.0), ..quick() };
        let (subscription, events) = heard(&server, &["Tank.Level", "Tank.Setpoint", "x"], wanted);
        let live = next_live(&events);
        assert_eq!((&live.manner, live.version, live.deadband), (&UpdateMode::Callbacks, version, 2.0));
        assert_eq!(live.refused, [("x".into(), Code::UNKNOWN_ITEM)]);
        assert_eq!(live.keep_alive.is_some(), version == "3.0", "{:?}", live.notes);
        assert_eq!(data(&values(&events, 2)), [Data::R4(50.0), Data::I2(10)]);
        plant.table.set("Tank.Setpoint", 11_i16).expect("an item");
        let change = values(&events, 1);
        assert_eq!(
            (change[0].index, &*change[0].item, data(&change)),
            (1, "Tank.Setpoint", vec![Data::I2(11)])
        );
        assert_eq!(change[0].value.quality, Quality::GOOD);
        subscription.end();
        let house = plant.house.as_ref().expect("it is served");
        assert_eq!(house.1.engine().items_in_use(), 0, "the group was not removed");
        // Whoever listens now hears the next change, and who has ended does not.
        let (_next, heard_now) = heard(&server, &["Tank.Setpoint"], quick());
        next_live(&heard_now);
        assert_eq!(data(&values(&heard_now, 1)), [Data::I2(11)]);
        plant.table.set("Tank.Setpoint", 12_i16).expect("an item");
        assert_eq!(data(&values(&heard_now, 1)), [Data::I2(12)]);
        assert!(events.try_iter().all(|event| !matches!(event, Event::Values(_))));
    }
}

#[test]
fn times_without_end_are_only_long() {
    let plant = Plant::new();
    let server = plant.connect("&version=2");
    let endless = Duration::MAX;
    let pauses = Pauses { first: endless, longest: endless, after_shutdown: endless };
    let wanted = SubscriptionRequest { keep_alive: endless, silence: endless, pauses, ..quick() };
    let (subscription, events) = heard(&server, &ITEMS, wanted);
    next_live(&events);
    values(&events, 2);
    for value in 11..40_i16 {
        plant.table.set("Tank.Setpoint", value).expect("an item");
        assert_eq!(data(&values(&events, 1)), [Data::I2(value)]);
    }
    subscription.end();
}

#[test]
fn who_asks_for_polling_gets_no_callbacks() {
    let plant = Plant::new();
    let server = plant.connect("&poll");
    let (_subscription, events) = heard(&server, &ITEMS, quick());
    assert_eq!(next_live(&events).manner, UpdateMode::Polling { why: "that was asked for".to_owned() });
    assert_eq!(data(&values(&events, 2)), [Data::R4(50.0), Data::I2(10)]);
    plant.table.set("Tank.Level", 51.0_f32).expect("an item");
    assert_eq!(data(&values(&events, 1)), [Data::R4(51.0)]);
}

#[test]
fn a_restart_is_a_gap_and_the_last_values_come_after_it() {
    for options in ["", "&version=2", "&poll"] {
        let mut plant = Plant::new();
        let server = plant.connect(options);
        let (_subscription, events) = heard(&server, &ITEMS, quick());
        let manner = next_live(&events).manner;
        assert_eq!(data(&values(&events, 2)), [Data::R4(50.0), Data::I2(10)]);
        plant.stop();
        let bad = values(&events, 2);
        assert!(bad.iter().all(|one| one.value.quality == Quality::COMM_FAILURE), "{bad:?}");
        assert!(matches!(next(&events), Event::Lost { .. }));
        plant.table.set("Tank.Setpoint", 12_i16).expect("an item");
        plant.start("level=none");
        // The gap is not marked again, however often it was tried.
        assert_eq!(next_live(&events).manner, manner, "{options}");
        assert_eq!(data(&values(&events, 2)), [Data::R4(50.0), Data::I2(12)], "{options}");
        plant.table.set("Tank.Setpoint", 10_i16).expect("an item");
        assert_eq!(data(&values(&events, 1)), [Data::I2(10)], "{options}");
    }
}

#[test]
fn a_server_need_not_be_there_yet() {
    let mut plant = Plant::new();
    plant.stop();
    let address = everywire_opc::remote::Address::parse(&plant.address("")).expect("an address");
    let server = DataAccess::later(&plant.client, address);
    let (_subscription, events) = heard(&server, &ITEMS, quick());
    assert!(values(&events, 2).iter().all(|one| one.value.quality == Quality::COMM_FAILURE));
    let Event::Lost { why, .. } = next(&events) else { panic!("it is not there") };
    assert!(why.hint().is_some_and(|hint| hint.contains("0x800706BA")), "{why:?}");
    plant.start("level=none");
    assert_eq!(next_live(&events).manner, UpdateMode::Callbacks);
    assert_eq!(values(&events, 2).len(), 2);
}

#[test]
fn a_request_to_leave_is_honoured() {
    let plant = Plant::new();
    let server = plant.connect("");
    let (_subscription, events) = heard(&server, &ITEMS, quick());
    next_live(&events);
    values(&events, 2);
    plant.house.as_ref().expect("it is served").1.request_shutdown("maintenance").expect("a reason");
    assert!(values(&events, 2).iter().all(|one| one.value.quality == Quality::COMM_FAILURE));
    let Event::Shutdown { reason, .. } = next(&events) else { panic!("it was asked to leave") };
    assert_eq!(reason, "maintenance");
    next_live(&events);
    assert_eq!(data(&values(&events, 2)), [Data::R4(50.0), Data::I2(10)]);
}

/// A file that only its owner may read, with this text.
fn secret(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("everywire-opc-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("it is ours");
    path.to_string_lossy().into_owned()
}

#[test]
fn where_the_sink_is_refused_values_are_asked_for() {
    let users = secret("users", "ada:secret\n");
    let account = secret("account", "username=ada\npassword=secret\n");
    let mut plant = Plant::new();
    plant.stop();
    plant.start(&format!("users={users}"));
    // The server calls back at the level that it is called with, and this node knows nobody there.
    plant.client = Node::new();
    plant.client.listen("dcom://127.0.0.1:0?level=none").expect("a port");
    let address = format!("opcda://ada@{}/{CLASS}?level=integrity&credentials={account}", plant.place);
    let server = DataAccess::connect(&plant.client, &address).expect("we are let in");
    let (subscription, events) = heard(&server, &ITEMS, quick());
    let UpdateMode::Polling { why } = next_live(&events).manner else { panic!("callbacks came through") };
    assert!(why.contains("does not take callbacks") && why.contains("knows nobody"), "{why}");
    assert_eq!(data(&values(&events, 2)), [Data::R4(50.0), Data::I2(10)]);
    subscription.end();
    for path in [users, account] {
        std::fs::remove_file(path).expect("it is ours");
    }
}

#[test]
fn dropping_a_subscription_waits_for_nobody_and_ends_its_group() {
    let plant = Plant::new();
    let server = plant.connect("");
    let (subscription, events) = heard(&server, &ITEMS, quick());
    next_live(&events);
    values(&events, 2);
    drop(subscription);
    let engine = std::sync::Arc::clone(plant.house.as_ref().expect("it is served").1.engine());
    let end = Instant::now() + PATIENCE;
    while engine.items_in_use() > 0 {
        assert!(Instant::now() < end, "the group lives on");
        std::thread::yield_now();
    }
}
