use super::{Plant, clients, named, rate};
use everywire_opc::{
    Access, Change, Code, Data, EngineeringUnits, GroupState, Item, Quality, Source, VarType, Vqt,
};
use std::sync::Arc;

#[test]
fn the_first_update_has_all_values() {
    let mut plant = Plant::new();
    let group = plant.group(rate(1000));
    plant.add(&group, &["Tank.Level", "Tank.Valve", "Name"]);
    let batches = plant.pass(10_000);
    let [(at, batch)] = batches.as_slice() else { panic!("{batches:?}") };
    assert_eq!((*at, clients(batch)), (0, vec![1, 2, 3]));
    assert_eq!((batch.transaction, batch.group), (0, 0));
    assert_eq!((batch.master_quality(), batch.master_error()), (Code::OK, Code::OK));
}

#[test]
fn only_what_changed_is_sent_and_in_one_call() {
    let mut plant = Plant::new();
    let group = plant.group(GroupState { client: 77, ..rate(1000) });
    plant.add(&group, &["Tank.Level", "Tank.Valve", "Name"]);
    plant.pass(500);
    plant.set("Tank.Level", 51.0_f32);
    plant.set("Tank.Level", 52.0_f32);
    plant.set("Name", "tank two");
    // The same value again is no change.
    plant.set("Tank.Valve", false);
    let batches = plant.pass(3000);
    let [(at, batch)] = batches.as_slice() else { panic!("{batches:?}") };
    assert_eq!((*at, batch.group, clients(batch)), (1000, 77, vec![1, 3]));
    let level = batch.samples.iter().find(|sample| sample.client == 1).map(|sample| &sample.value.data);
    assert_eq!(level, Some(&Data::R4(52.0)), "the last value");
}

#[test]
fn a_group_is_updated_at_its_rate() {
    let mut plant = Plant::new();
    let (fast, slow) = (plant.group(rate(100)), plant.group(rate(250)));
    plant.add(&fast, &["Tank.Mode"]);
    plant.add(&slow, &["Tank.Mode"]);
    plant.pass(0);
    let mut times = Vec::new();
    for step in 0..100_i32 {
        plant.set("Tank.Mode", step);
        times.extend(plant.pass(10).into_iter().map(|(at, _)| at));
    }
    times.sort_unstable();
    assert_eq!(times, [100, 200, 250, 300, 400, 500, 500, 600, 700, 750, 800, 900, 1000, 1000]);
}

#[test]
fn an_update_that_comes_late_does_not_make_others_come_sooner() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    plant.add(&group, &["Tank.Mode"]);
    plant.pass(0);
    plant.now = plant.now.after(750);
    plant.set("Tank.Mode", 5);
    for group in plant.engine.due(plant.now) {
        assert!(group.update(plant.now).is_some());
    }
    assert_eq!(plant.engine.next_due(), Some(plant.now.ticks + 100));
}

#[test]
fn a_change_within_the_deadband_is_not_sent() {
    let mut plant = Plant::new();
    // 10 % of 0..100.
    let group = plant.group(GroupState { deadband: 10.0, ..rate(100) });
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    plant.pass(100);
    plant.set("Tank.Level", 60.0_f32);
    assert_eq!(plant.pass(100), []);
    // It is measured from what was last sent.
    plant.set("Tank.Level", 60.5_f32);
    assert_eq!(plant.pass(100).len(), 1);
    plant.set("Tank.Level", 51.0_f32);
    assert_eq!(plant.pass(100), []);
    // A text has no range: each change is sent.
    plant.set("Name", "other");
    assert_eq!(plant.pass(100).len(), 1);
    // One of its own counts instead of the group's.
    group.set_deadbands(&items[..1], &[1.0]).expect("it lives");
    plant.set("Tank.Level", 52.0_f32);
    assert_eq!(plant.pass(100).len(), 1);
}

#[test]
fn an_item_that_is_described_anew_has_its_new_range_in_groups_that_have_it() {
    let mut plant = Plant::new();
    let group = plant.group(GroupState { deadband: 10.0, ..rate(100) });
    let items = plant.add(&group, &["Tank.Level"]);
    plant.pass(100);
    // 10 % of 0..1000 now, and no more than 10 % of 0..100.
    let item = plant.table.find("Tank.Level").expect("an item");
    let wide = (*item).clone().analog(0.0, 1000.0, "l");
    plant.table.describe(Item { access: Access::READ, ..wide.clone() }).expect("an item");
    plant.set("Tank.Level", 80.0_f32);
    assert_eq!(plant.pass(100), []);
    let found = group.attributes(0, 1).expect("it lives").remove(0);
    assert_eq!(
        (found.access, found.eu_info),
        (Access::READ, Data::array(VarType::R8, vec![Data::R8(0.0), Data::R8(1000.0)]))
    );
    assert_eq!(group.attributes_behind(0, 1).expect("it lives").0.remove(0).access, Access::READ);
    // Without a range there are no deadbands, and each change is sent.
    plant.table.describe(Item { units: EngineeringUnits::None, ..wide }).expect("an item");
    assert_eq!(group.set_deadbands(&items, &[1.0]), Ok(vec![Err(Code::DEADBAND_NOT_SUPPORTED)]));
    plant.set("Tank.Level", 80.5_f32);
    assert_eq!(plant.pass(100).len(), 1);
}

#[test]
fn a_change_of_quality_is_sent_whatever_the_deadband() {
    let mut plant = Plant::new();
    let group = plant.group(GroupState { deadband: 100.0, ..rate(100) });
    plant.add(&group, &["Tank.Level"]);
    plant.pass(100);
    let bad = Vqt { data: Data::R4(50.0), quality: Quality::SENSOR_FAILURE, time: plant.now.time };
    plant.table.put("Tank.Level", bad.clone()).expect("an item");
    let batches = plant.pass(100);
    let batch = &batches.first().expect("an update").1;
    assert_eq!(batch.samples.first().map(|sample| &sample.value), Some(&bad));
    assert_eq!((batch.master_quality(), batch.master_error()), (Code::FALSE, Code::OK));
}

#[test]
fn nothing_is_sent_that_is_not_active_enabled_and_heard() {
    let mut plant = Plant::new();
    let group = plant.client.add_group(rate(100)).expect("a group");
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    assert_eq!((plant.engine.next_due(), plant.pass(1000)), (None, vec![]));
    assert_eq!(group.set_enabled(false), Err(Code::NO_CONNECTION));
    assert_eq!(group.is_enabled(), Err(Code::NO_CONNECTION));
    let all = |plant: &mut Plant| plant.pass(100).iter().map(|(_, batch)| clients(batch)).collect::<Vec<_>>();
    // Each time it begins to send, all values are new.
    group.set_listeners(1);
    assert_eq!(all(&mut plant), [[1, 2]]);
    group.set_enabled(false).expect("somebody listens");
    assert_eq!(plant.engine.next_due(), None);
    group.set_enabled(true).expect("somebody listens");
    assert_eq!(all(&mut plant), [[1, 2]]);
    group.change(&Change { active: Some(false), ..Change::default() }).expect("it lives");
    plant.set("Name", "other");
    assert_eq!(plant.pass(1000), []);
    group.change(&Change { active: Some(true), ..Change::default() }).expect("it lives");
    assert_eq!(all(&mut plant), [[1, 2]]);
    // Another listener has heard of nothing yet.
    group.set_listeners(2);
    assert_eq!(all(&mut plant), [[1, 2]]);
    group.set_listeners(1);
    assert_eq!(plant.pass(1000), []);
    // So it is with single items.
    group.set_active(&items[1..], false).expect("it lives");
    plant.set("Name", "third");
    assert_eq!(plant.pass(1000), []);
    group.set_active(&items[1..], true).expect("it lives");
    assert_eq!(all(&mut plant), [[2]]);
}

#[test]
fn a_keep_alive_is_empty_and_comes_after_silence() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    plant.add(&group, &["Tank.Level"]);
    assert_eq!(group.set_keep_alive(1005), Ok((1010, Code::UNSUPPORTED_RATE)));
    assert_eq!(plant.pass(0).len(), 1);
    let times = |plant: &mut Plant, by| {
        let batches = plant.pass(by);
        batches.iter().map(|(at, batch)| (*at, batch.samples.len())).collect::<Vec<_>>()
    };
    assert_eq!(times(&mut plant, 2300), [(1100, 0), (2200, 0)]);
    plant.set("Tank.Level", 1.0_f32);
    assert_eq!(times(&mut plant, 1500), [(2400, 1), (3500, 0)]);
    assert_eq!(group.set_keep_alive(0), Ok((0, Code::OK)));
    assert_eq!(times(&mut plant, 5000), []);
}

#[test]
fn values_come_in_the_type_that_was_asked_for() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    group.set_types(&items, &[VarType::I2, VarType::R8]).expect("it lives");
    plant.set("Tank.Level", 12.5_f32);
    let batches = plant.pass(100);
    let batch = &batches.first().expect("an update").1;
    let found: Vec<_> =
        batch.samples.iter().map(|sample| (sample.value.data.clone(), sample.error)).collect();
    // A name is no number: the item has an error, the others do not care.
    assert_eq!(found, [(Data::I2(12), Code::OK), (Data::Empty, Code::BAD_TYPE)]);
    assert_eq!(batch.master_error(), Code::FALSE);
}

#[test]
fn an_item_that_was_removed_is_not_sent_though_it_had_changed() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    plant.pass(100);
    plant.set("Tank.Level", 1.0_f32);
    group.remove_items(&items[..1]).expect("it lives");
    // Another one takes its place in the group.
    plant.add(&group, &["Tank.Mode"]);
    let batches = plant.pass(100);
    let found: Vec<_> =
        batches.iter().flat_map(|(_, batch)| &batch.samples).map(|s| s.value.data.clone()).collect();
    assert_eq!(found, [Data::I4(1)]);
}

#[test]
fn what_was_lost_on_its_way_is_sent_again_and_said() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    plant.add(&group, &["Tank.Level", "Name"]);
    plant.pass(100);
    group.lost();
    let batches = plant.pass(100);
    let [(_, batch)] = batches.as_slice() else { panic!("{batches:?}") };
    assert_eq!(clients(batch), [1, 2]);
    assert!(batch.samples.iter().all(|sample| sample.error == Code::DATA_QUEUE_OVERFLOW));
    plant.set("Name", "other");
    let batches = plant.pass(100);
    assert_eq!(batches.first().map(|(_, batch)| batch.master_error()), Some(Code::OK));
}

/// A hundred thousand items in ten groups, of which a hundredth changes: what is sent is what changed.
#[test]
fn quiet_items_are_not_sent_however_many_there_are() {
    const GROUPS: usize = 10;
    const ITEMS: usize = 10_000;
    let mut plant = Plant::new();
    let ids: Vec<String> = (0..GROUPS * ITEMS).map(|number| format!("Line.P{number}")).collect();
    plant.table.extend(ids.iter().map(|id| (Item::new(id.as_str(), VarType::R4), Data::R4(0.0))));
    for (number, ids) in ids.chunks(ITEMS).enumerate() {
        let group = plant.group(named(&format!("g{number}")));
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        plant.add(&group, &ids);
    }
    let sent =
        |batches: &[(u64, everywire_opc::Batch)]| batches.iter().map(|(_, b)| b.samples.len()).sum::<usize>();
    let batches = plant.pass(0);
    assert_eq!((batches.len(), sent(&batches)), (GROUPS, GROUPS * ITEMS));
    for round in 1..4_u16 {
        for id in ids.iter().skip(usize::from(round)).step_by(100) {
            plant.set(id, f32::from(round));
        }
        let batches = plant.pass(1000);
        assert_eq!((batches.len(), sent(&batches)), (GROUPS, GROUPS * ITEMS / 100));
    }
}

#[test]
fn a_source_that_does_not_tell_is_read_at_the_rate_of_the_group() {
    let mut plant = Plant::new();
    let source = Arc::new(super::sampling::Counter::default());
    plant.engine =
        everywire_opc::Engine::new(Arc::clone(&source) as Arc<_>, everywire_opc::Settings::default());
    plant.client = plant.engine.client().expect("a client");
    let (one, other) = (plant.group(rate(100)), plant.group(rate(100)));
    plant.add(&one, &["count"]);
    plant.add(&other, &["count"]);
    let values: Vec<_> = plant.pass(300).into_iter().flat_map(|(_, batch)| batch.samples).collect();
    let numbers: Vec<_> = values.iter().map(|sample| sample.value.data.clone()).collect();
    // Two groups that are due at the same time read it once.
    assert_eq!(numbers, [1, 1, 2, 2, 3, 3, 4, 4].map(Data::I4));
    // A source that fails spoils the quality, not the subscription.
    source.fail(true);
    let failed = plant.pass(200);
    assert_eq!(failed.len(), 2);
    assert!(
        failed
            .iter()
            .all(|(_, batch)| batch.samples.iter().all(|s| s.value.quality == Quality::COMM_FAILURE))
    );
    source.fail(false);
    assert_eq!(plant.pass(100).len(), 2);
}
