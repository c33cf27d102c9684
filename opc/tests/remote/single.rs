use super::scripted::Script;
use super::{Plant, next_live, quick, values};
use everywire_opc::Data;
use everywire_opc::remote::{DataAccess, Event, ItemWanted, SubscriptionRequest};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn items_of_a_subscription_have_deadbands_of_their_own() {
    let plant = Plant::new();
    let server = plant.connect("");
    let single = vec![
        (0, ItemWanted { deadband: Some(30.0), sampling: Some(Duration::from_millis(10)), buffered: false }),
        (1, ItemWanted { deadband: Some(50.0), ..ItemWanted::default() }),
        // One that the server does not know, and one that nobody named.
        (2, ItemWanted { deadband: Some(1.0), ..ItemWanted::default() }),
        (9, ItemWanted { buffered: true, ..ItemWanted::default() }),
    ];
    let wanted = SubscriptionRequest { single, ..quick() };
    let (tell, events) = channel();
    let items = ["Tank.Level", "Tank.Setpoint", "x"];
    let _subscription = server.subscribe(&items, wanted, move |event| drop(tell.send(event)));
    let live = next_live(&events);
    let [note] = live.notes.as_slice() else { panic!("{:?}", live.notes) };
    assert!(note.contains("item 1 has no deadband of its own") && note.contains("no range"), "{note}");
    values(&events, 2);
    // A fifth of the range is too little, and is not told; what comes after it is.
    plant.table.set("Tank.Level", 70.0_f32).expect("an item");
    plant.table.set("Tank.Setpoint", 11_i16).expect("an item");
    let changed = values(&events, 1);
    assert_eq!((changed[0].index, changed[0].value.data.clone()), (1, Data::I2(11)));
    plant.table.set("Tank.Level", 5.0_f32).expect("an item");
    assert_eq!(values(&events, 1)[0].value.data, Data::R4(5.0));
}

#[test]
fn a_server_without_them_is_told_of_in_notes() {
    let (_server, client, address) = Script { callbacks: false, ..Script::default() }.serve();
    let server = DataAccess::connect(&client, &format!("{address}&poll")).expect("a server");
    let single = vec![(0, ItemWanted { deadband: Some(1.0), buffered: true, ..ItemWanted::default() })];
    let (tell, events) = channel();
    let wanted = SubscriptionRequest { single, ..quick() };
    let _subscription = server.subscribe(&["a"], wanted, move |event| drop(tell.send(event)));
    let notes = next_live(&events).notes.join("\n");
    assert!(notes.contains("IOPCItemDeadbandMgt") && notes.contains("IOPCItemSamplingMgt"), "{notes}");
    assert_eq!(values(&events, 1)[0].value.data, Data::I4(1));
}

#[test]
fn a_server_that_is_browsed_by_3_0_only_lists_its_items() {
    // A branch is an item as well, and one leads back to where it is.
    let tree = vec![
        ("", vec![("Tank", "Tank", 3), ("Name", "Name", 2)]),
        ("Tank", vec![("Level", "Tank.Level", 2), ("Again", "Tank", 1), ("Deep", "Tank.Deep", 1)]),
        ("Tank.Deep", vec![("Down", "Tank.Deep.Down", 2)]),
    ];
    let (_server, client, address) = Script { tree, ..Script::default() }.serve();
    let server = DataAccess::connect(&client, &address).expect("a server");
    let mut items = server.all_items().expect("items");
    items.sort();
    assert_eq!(items, ["Name", "Tank", "Tank.Deep.Down", "Tank.Level"]);
    let plain = DataAccess::connect(&client, &format!("{address}&version=2")).expect("a server");
    let failure = plain.all_items().expect_err("it cannot be browsed so");
    assert!(failure.to_string().contains("IOPCBrowseServerAddressSpace"), "{failure}");
}

#[test]
fn many_subscriptions_to_one_server_share_a_thread() {
    let plant = Plant::new();
    let server = plant.connect("");
    let feeds = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        // A name has 15 characters there.
        tasks.filter_map(name).filter(|name| name.starts_with("everywire-opc-f")).count()
    };
    let (tell, events) = channel();
    let subscriptions: Vec<_> = (0..50)
        .map(|_| {
            let tell = tell.clone();
            let heard = move |event| {
                if let Event::Values(values) = event {
                    let _ = tell.send(values.len());
                }
            };
            server.subscribe(&["Tank.Level"], quick(), heard).expect("a thread")
        })
        .collect();
    let told: usize = (0..50).map(|_| events.recv_timeout(crate::server::PATIENCE).expect("values")).sum();
    assert_eq!((told, feeds()), (50, 1));
    // One that is ended ends alone.
    let mut subscriptions = subscriptions.into_iter();
    subscriptions.next().expect("one of them").end();
    plant.table.set("Tank.Level", 1.0_f32).expect("an item");
    let told: usize = (0..49).map(|_| events.recv_timeout(crate::server::PATIENCE).expect("values")).sum();
    assert_eq!(told, 49);
    subscriptions.for_each(everywire_opc::remote::Subscription::end);
    let end = std::time::Instant::now() + crate::server::PATIENCE;
    while feeds() > 0 {
        assert!(std::time::Instant::now() < end, "the thread lives on");
        std::thread::yield_now();
    }
}

#[test]
fn a_listener_that_panics_ends_its_own_subscription_only() {
    let plant = Plant::new();
    let server = plant.connect("&poll");
    let broken =
        server.subscribe(&["Name"], quick(), |_| panic!("a listener of the test")).expect("a thread");
    let (tell, events) = channel();
    let _sound = server.subscribe(&["Tank.Level"], quick(), move |event| drop(tell.send(event)));
    next_live(&events);
    values(&events, 1);
    // It waits for nobody who is no more.
    broken.end();
    plant.table.set("Tank.Level", 2.0_f32).expect("an item");
    assert_eq!(values(&events, 1)[0].value.data, Data::R4(2.0));
}
