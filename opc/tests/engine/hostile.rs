use super::{Plant, codes, def, rate, server};
use everywire_opc::{
    Change, Code, Data, Feed, FileTime, GroupState, Item, ItemDef, Quotas, ReadFrom, Refresh, Settings,
    Source, VarType, Vqt, Write, WriteVqt,
};
use std::sync::{Arc, Mutex};

#[test]
fn names_of_any_kind_are_only_names() {
    let plant = Plant::new();
    for name in ["..", ".", "\u{0}", "a\u{0}b", "Tank.", ".Tank", "\u{feff}", &"x.".repeat(5000)] {
        let group = plant.client.add_group(GroupState { name: name.to_owned(), ..rate(100) });
        assert_eq!(group.is_ok(), name.len() <= 4096, "{name:?}");
        let def = ItemDef { id: name.to_owned(), ..ItemDef::default() };
        let added = plant.group(rate(10)).add_items(&[def], plant.now).expect("it lives");
        assert_eq!(added.first().and_then(|added| added.err()), Some(Code::UNKNOWN_ITEM), "{name:?}");
        assert!(plant.table.child("", name).is_none(), "{name:?}");
    }
}

/// A source that tells from within each of its methods, and from another thread at the same time.
#[test]
fn a_source_may_tell_at_any_time() {
    #[derive(Default)]
    struct Chatty(Mutex<Vec<Feed>>);
    impl Chatty {
        fn chat(&self) {
            for feed in self.0.lock().expect("nobody panics").iter() {
                feed.tell(Vqt::good(1_i32, everywire_opc::FileTime::default()));
            }
        }
    }
    impl Source for Chatty {
        fn find(&self, id: &str) -> Option<Arc<Item>> {
            self.chat();
            Some(Arc::new(Item::new(id, VarType::I4).writable()))
        }
        fn children(&self, _: &str, _: Option<&str>) -> Option<everywire_opc::Children> {
            None
        }
        fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
            self.chat();
            items.iter().map(|_| Err(Code::FAIL)).collect()
        }
        fn write(&self, writes: &[Write]) -> Vec<Code> {
            self.chat();
            // Fewer answers than were asked for.
            writes.iter().skip(1).map(|_| Code::OK).collect()
        }
        fn watch(&self, _: &Arc<Item>, feed: Feed) -> bool {
            self.0.lock().expect("nobody panics").push(feed);
            self.chat();
            true
        }
    }
    let source = Arc::new(Chatty::default());
    let engine =
        everywire_opc::Engine::new(Arc::clone(&source) as Arc<_>, everywire_opc::Settings::default());
    let client = engine.client().expect("a client");
    let plant = Plant { engine, client, ..Plant::new() };
    let group = plant.group(rate(10));
    let items = plant.add(&group, &["a", "b"]);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1000).for_each(|_| source.chat()));
        for _ in 0..100 {
            plant.engine.due(plant.now).iter().for_each(|group| drop(group.update(plant.now)));
            let read = group.read(&items, ReadFrom::Device, plant.now).expect("it lives");
            assert!(read.iter().all(|read| read == &Err(Code::FAIL)));
            let values = [Data::I4(1).into(), Data::I4(2).into()];
            assert_eq!(group.write(&items, &values), Ok(vec![Code::OK, Code::FAIL]));
        }
    });
    // Feeds of what nobody has any more say so.
    group.remove_items(&items).expect("it lives");
    let feeds = source.0.lock().expect("nobody panics");
    assert!(feeds.len() >= items.len() && feeds.iter().all(|feed| !feed.is_wanted()));
}

/// A NUL parts names within the table, and must not do so for whoever asks.
#[test]
fn a_name_with_a_nul_is_not_the_name_with_a_point() {
    let plant = Plant::new();
    assert!(plant.table.child("", "Tank").is_some());
    for name in ["Tank\0Level", "Tank\0", "\0Tank"] {
        assert_eq!(plant.table.get(name), None, "{name:?}");
        assert!(Source::find(&*plant.table, name).is_none(), "{name:?}");
        assert!(plant.table.children(name, None).is_none(), "{name:?}");
        assert!(
            plant.table.child("", name).is_none() && plant.table.child(name, "Level").is_none(),
            "{name:?}"
        );
    }
    let before = plant.table.children("", None).expect("the root").count();
    plant.table.add(Item::new("Tank\0Level\0Deep", VarType::R4), 1.0_f32);
    assert_eq!(plant.table.children("", None).expect("the root").count(), before);
}

/// A million items in slices of a thousand: what is within the quota is taken, the rest refused one by one, and it all comes back.
#[test]
fn a_million_items_stop_at_the_quota_and_others_are_served() {
    const QUOTA: usize = 5_000;
    let quotas = Quotas { items: QUOTA, ..Quotas::default() };
    let mut plant = Plant::with(Settings { quotas, ..Settings::default() });
    let greedy = plant.group(rate(1000));
    let slice: Vec<_> = (0..1000).map(|client| def("Tank.Level", client)).collect();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..1000 {
        for code in codes(greedy.add_items(&slice, plant.now).expect("it lives")) {
            match code {
                Code::OK => taken += 1,
                Code::OUT_OF_MEMORY => refused += 1,
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!((taken, refused), (QUOTA, 1_000_000 - QUOTA));
    let (items, bytes, _) = plant.client.held();
    assert!(items == QUOTA && bytes < QUOTA * 400, "{items} items, {bytes} bytes");
    // Another client has a quota of its own.
    let other = plant.engine.client().expect("a client");
    let _first = std::mem::replace(&mut plant.client, other);
    let group = plant.group(rate(1000));
    plant.add(&group, &["Tank.Level", "Name"]);
    assert_eq!(plant.pass(0).len(), 2);
    greedy.remove_items(&[greedy.attributes(0, 1).expect("it lives")[0].server]).expect("it lives");
    assert_eq!(
        codes(greedy.add_items(&slice[..2], plant.now).expect("it lives")),
        [Code::OK, Code::OUT_OF_MEMORY]
    );
}

/// Nobody shuts others out by taking all places.
#[test]
fn an_account_has_no_more_places_than_are_left() {
    let quotas = Quotas { clients: 100, ..Quotas::default() };
    // One has a client that has no account.
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    let take = |account: &str| {
        let account = account.into();
        std::iter::from_fn(|| plant.engine.client_of(Some(&account)).ok()).collect::<Vec<_>>()
    };
    let ann = take("ann");
    let bob = take("bob");
    assert_eq!((ann.len(), bob.len()), (50, 25));
    let others: Vec<_> = (0..24).map(|number| take(&number.to_string())).collect();
    assert!(others.iter().take(5).all(|other| !other.is_empty()));
    assert!(others.iter().map(Vec::len).sum::<usize>() <= 24 && plant.engine.clients() <= 100);
    drop((bob, others));
    assert_eq!(take("eve").len(), 25);
    drop(ann);
    assert_eq!(take("ann").len(), 50);
}

/// One caller may be many clients: together they hold little more than four quotas, and whoever comes last still gets something.
#[test]
fn many_clients_share_what_there_is() {
    const QUOTA: usize = 1_000;
    let quotas = Quotas { items: QUOTA, ..Quotas::default() };
    let mut plant = Plant::with(Settings { quotas, ..Settings::default() });
    let defs: Vec<_> = (0..1000).map(|client| def("Tank.Level", client)).collect();
    let mut clients = Vec::new();
    let mut taken = Vec::new();
    for _ in 0..20 {
        let client = plant.engine.client().expect("a client");
        let group = client.add_group(rate(1000)).expect("a group");
        let added = codes(group.add_items(&defs, plant.now).expect("it lives"));
        taken.push(added.iter().filter(|code| **code == Code::OK).count());
        clients.push((client, group));
    }
    assert_eq!(taken[..3], [QUOTA; 3]);
    let all: usize = taken.iter().sum();
    assert!(all <= 4 * QUOTA + 100, "{all} items: {taken:?}");
    let group = plant.group(rate(1000));
    plant.add(&group, &["Tank.Level"]);
    assert_eq!(plant.pass(0).len(), 1);
    // What goes comes back to all.
    drop(clients.split_off(1));
    let client = plant.engine.client().expect("a client");
    let group = client.add_group(rate(1000)).expect("a group");
    assert_eq!(codes(group.add_items(&defs, plant.now).expect("it lives")), vec![Code::OK; QUOTA]);
}

/// A buffer of a hundred samples is charged when it is made, so that half a million of them are not.
#[test]
fn buffers_and_calls_that_wait_are_of_the_quota_and_come_back() {
    let quotas = Quotas { bytes: 20_000, buffer: 100, ..Quotas::default() };
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    let group = plant.group(rate(1000));
    let defs = vec![def("Tank.Setpoint", 1); 30];
    let items = server(group.add_items(&defs, plant.now).expect("it lives"));
    let (_, without, _) = plant.client.held();
    let made = codes(group.set_buffered(&items, &[true; 30]).expect("it lives"));
    let count = made.iter().filter(|code| **code == Code::OK).count();
    assert!((1..10).contains(&count), "{count}");
    assert!(made[count..].iter().all(|code| *code == Code::OUT_OF_MEMORY));
    // Again is not twice.
    let (_, with, _) = plant.client.held();
    assert_eq!(codes(group.set_buffered(&items[..1], &[true]).expect("it lives")), [Code::OK]);
    assert_eq!(plant.client.held().1, with);
    group.set_buffered(&items[..count], &vec![false; count]).expect("it lives");
    assert_eq!(plant.client.held().1, without);
    // A call that waits holds its handles and values.
    let many = vec![items[0]; 3000];
    assert_eq!(group.begin_read(&many, ReadFrom::Device, 1), Err(Code::OUT_OF_MEMORY));
    let text = [WriteVqt::from(Data::from("x".repeat(30_000)))];
    assert_eq!(group.begin_write(&items[..1], &text, 1), Err(Code::OUT_OF_MEMORY));
    let (first, _) = group.begin_read(&items, ReadFrom::Device, 1).expect("room");
    let second = group.begin_refresh(Refresh::MaxAge(1), 2).expect("room");
    assert!(plant.client.held().1 > without);
    group.perform(first, plant.now).expect("a read");
    group.cancel(second).expect("it waits");
    assert_eq!(plant.client.held().1, without);
    plant.client.remove_group(group.server_handle()).expect("a group");
    assert_eq!(plant.client.held(), (0, 0, 0));
}

/// One text that is named in a read again and again is not copied without end.
#[test]
fn an_answer_is_no_larger_than_its_quota() {
    let quotas = Quotas { answer: 1 << 20, ..Quotas::default() };
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    plant.set("Name", "x".repeat(100_000));
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Name", "Tank.Level"]);
    let mut asked = vec![items[0]; 1000];
    asked.push(items[1]);
    let check = |codes: Vec<Code>| {
        assert_eq!(codes.iter().filter(|code| **code == Code::OK).count(), 11);
        assert_eq!(codes.iter().filter(|code| **code == Code::OUT_OF_MEMORY).count(), 990);
        assert_eq!(codes.last(), Some(&Code::OK), "a number needs no room");
    };
    for from in [ReadFrom::Cache, ReadFrom::Device, ReadFrom::Ages(&[5; 1001])] {
        check(codes(group.read(&asked, from, plant.now).expect("it lives")));
    }
    let names: Vec<_> = (0..1001).map(|n| if n < 1000 { "Name" } else { "Tank.Level" }.to_owned()).collect();
    check(codes(plant.engine.read_items(&names, &[0; 1001], plant.now).expect("pairs")));
    let numbers: Vec<_> = (0..1001).map(|n| if n < 1000 { 2 } else { 3 }).collect();
    check(codes(plant.engine.properties("Name", &numbers, plant.now).expect("an item")));
}

#[test]
fn rates_and_deadbands_beyond_all_measure_are_revised_or_refused() {
    let mut plant = Plant::new();
    let group = plant.group(rate(0));
    assert_eq!(group.state().map(|state| state.rate), Ok(10));
    let items = plant.add(&group, &["Tank.Level"]);
    assert_eq!(plant.pass(10).len(), 1);
    let set = |rate| group.change(&Change { rate: Some(rate), ..Change::default() });
    assert_eq!(set(u32::MAX), Ok((u32::MAX, Code::OK)));
    assert_eq!(set(u32::MAX - 1), Ok((u32::MAX, Code::UNSUPPORTED_RATE)));
    assert_eq!(group.set_keep_alive(u32::MAX), Ok((u32::MAX, Code::OK)));
    plant.set("Tank.Level", 1.0_f32);
    plant.now.ticks = u64::MAX - 5;
    plant.engine.due(plant.now).iter().for_each(|group| drop(group.update(plant.now)));
    assert_eq!(set(0), Ok((10, Code::UNSUPPORTED_RATE)));
    assert_eq!(group.set_sampling(&items, &[u32::MAX]), Ok(vec![Ok((u32::MAX, Code::OK))]));
    #[allow(clippy::cast_possible_truncation)]
    let endless = 1e308_f64 as f32;
    for percent in [f32::NAN, endless, f32::INFINITY, -0.1, 100.1, f32::MIN] {
        let change = Change { deadband: Some(percent), ..Change::default() };
        assert_eq!(group.change(&change), Err(Code::INVALID_ARGUMENT), "{percent}");
        assert_eq!(
            group.set_deadbands(&items, &[percent]),
            Ok(vec![Err(Code::INVALID_ARGUMENT)]),
            "{percent}"
        );
        let made = plant.client.add_group(GroupState { deadband: percent, ..rate(10) });
        assert_eq!(made.err(), Some(Code::INVALID_ARGUMENT), "{percent}");
    }
    let bias = Change { time_bias: Some(i32::MIN), ..Change::default() };
    assert!(group.change(&bias).is_ok());
}

/// Values that are no numbers, and times that were never: they are passed on, compared and converted without harm.
#[test]
fn values_and_times_of_no_sense_harm_nobody() {
    let mut plant = Plant::new();
    let group = plant.group(GroupState { deadband: 1.0, ..rate(100) });
    let items = plant.add(&group, &["Tank.Level"]);
    plant.pass(100);
    for (value, time) in [(f32::NAN, 0), (f32::INFINITY, u64::MAX), (f32::MIN, 1), (f32::MAX, u64::MAX)] {
        let told = Vqt::good(value, FileTime(time));
        plant.table.put("Tank.Level", told).expect("an item");
        plant.pass(100);
        let read = group.read(&items, ReadFrom::Cache, plant.now).expect("it lives");
        let Some(Ok(sample)) = read.first() else { panic!("{read:?}") };
        assert_eq!(sample.value.time, FileTime(time));
        for property in plant.engine.properties("Tank.Level", &[2, 3, 4, 8], plant.now).expect("an item") {
            assert!(property.is_ok(), "{property:?}");
        }
    }
}

/// A client may write a time with a value: one in the far future must not spoil the samples of others.
#[test]
fn a_time_in_the_future_does_not_stop_the_sampling_of_others() {
    let mut plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Setpoint"]);
    group.set_sampling(&items, &[100]).expect("it lives");
    group.set_buffered(&items, &[true]).expect("it lives");
    plant.pass(0);
    let far = WriteVqt { data: Data::I2(1), quality: None, time: Some(FileTime(u64::MAX)) };
    let other =
        plant.engine.client().expect("a client").engine().write_items(&["Tank.Setpoint".to_owned()], &[far]);
    assert_eq!(other, Ok(vec![Code::OK]));
    for step in 2..=5_i16 {
        plant.pass(100);
        plant.set("Tank.Setpoint", step);
    }
    let batches = plant.pass(1000);
    let values: Vec<_> = batches.iter().flat_map(|(_, b)| &b.samples).map(|s| s.value.data.clone()).collect();
    assert_eq!(values, [1, 2, 3, 4, 5].map(Data::I2));
}

/// Texts in a buffer: however many samples it has room for, it holds few of those that are large, and says so.
#[test]
fn large_texts_in_a_buffer_are_lost_and_said() {
    let mut plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Name"]);
    group.set_sampling(&items, &[10]).expect("it lives");
    group.set_buffered(&items, &[true]).expect("it lives");
    plant.pass(0);
    for step in 0..10_u8 {
        plant.set("Name", char::from(b'a' + step).to_string().repeat(30_000));
        plant.pass(10);
    }
    let batches = plant.pass(1000);
    let samples: Vec<_> = batches.iter().flat_map(|(_, batch)| &batch.samples).collect();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples.last().map(|last| last.error), Some(Code::DATA_QUEUE_OVERFLOW));
    assert_eq!(samples.last().map(|last| last.value.data.clone()), Some("j".repeat(30_000).into()));
}

#[test]
fn handles_of_others_are_not_ones_own() {
    let plant = Plant::new();
    let (mine, other) = (plant.group(rate(100)), plant.group(rate(100)));
    let own = plant.add(&mine, &["Tank.Level", "Tank.Setpoint"]);
    let foreign = plant.add(&other, &["Tank.Level"]);
    let stranger = plant.engine.client().expect("a client");
    mine.remove_items(&own[..1]).expect("it lives");
    let asked = [own[0], foreign[0], 0, u32::MAX, mine.server_handle()];
    let all = vec![Code::INVALID_HANDLE; asked.len()];
    assert_eq!(mine.read(&asked, ReadFrom::Cache, plant.now).map(codes), Ok(all.clone()));
    assert_eq!(mine.read(&asked, ReadFrom::Device, plant.now).map(codes), Ok(all.clone()));
    let values: Vec<_> = asked.iter().map(|_| Data::I2(1).into()).collect();
    assert_eq!(mine.write(&asked, &values), Ok(all.clone()));
    assert_eq!(mine.set_active(&asked, true).map(codes), Ok(all.clone()));
    assert_eq!(mine.set_client_handles(&asked, &asked).map(codes), Ok(all.clone()));
    assert_eq!(mine.set_types(&asked, &[VarType::R8; 5]).map(codes), Ok(all.clone()));
    assert_eq!(mine.set_deadbands(&asked, &[1.0; 5]).map(codes), Ok(all.clone()));
    assert_eq!(mine.set_sampling(&asked, &[10; 5]).map(codes), Ok(all.clone()));
    assert_eq!(mine.set_buffered(&asked, &[true; 5]).map(codes), Ok(all.clone()));
    assert_eq!(mine.remove_items(&asked).map(codes), Ok(all));
    // No items at all.
    assert_eq!(mine.set_buffered(&[], &[]).map(codes), Err(Code::INVALID_ARGUMENT));
    assert_eq!(mine.set_sampling(&[], &[]).map(codes), Err(Code::INVALID_ARGUMENT));
    // Lists that are not of one length.
    assert_eq!(mine.set_types(&asked, &[VarType::R8; 4]), Err(Code::INVALID_ARGUMENT));
    assert_eq!(mine.write(&asked, &values[..4]), Err(Code::INVALID_ARGUMENT));
    assert_eq!(mine.read(&asked, ReadFrom::Ages(&[0; 6]), plant.now), Err(Code::INVALID_ARGUMENT));
    // Groups and calls of others.
    assert_eq!(stranger.remove_group(mine.server_handle()).err(), Some(Code::INVALID_HANDLE));
    let begun = mine.begin_refresh(Refresh::Cache, 1).expect("somebody listens");
    assert_eq!(other.cancel(begun), Err(Code::FAIL));
    assert!(mine.perform(begun, plant.now).is_some());
}
