use super::{Plant, clients, rate};
use everywire_opc::{Code, Data, GroupState, Quotas, ReadFrom, Refresh, Report, Settings, WriteVqt};

#[test]
fn a_read_is_begun_and_told_later() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let mut items = plant.add(&group, &["Tank.Level", "Name"]);
    items.push(0);
    let (cancel, codes) = group.begin_read(&items, ReadFrom::Device, 42).expect("somebody listens");
    assert_eq!(codes, [Code::OK, Code::OK, Code::INVALID_HANDLE]);
    let Some(Report::Read(batch)) = group.perform(cancel, plant.now) else { panic!("no read") };
    assert_eq!(
        (batch.transaction, clients(&batch)),
        (42, vec![1, 2]),
        "what is wrong at once is not told again"
    );
    assert_eq!(group.perform(cancel, plant.now), None, "once");
}

#[test]
fn a_write_is_begun_and_told_later() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Level", "Tank.Setpoint"]);
    let values = [WriteVqt::from(Data::R4(1.0)), Data::from("much").into()];
    let (cancel, codes) = group.begin_write(&items, &values, 43).expect("somebody listens");
    assert_eq!(codes, [Code::BAD_RIGHTS, Code::OK]);
    let expected = Report::Written { transaction: 43, group: 0, items: vec![(2, Code::BAD_TYPE)] };
    assert_eq!(group.perform(cancel, plant.now), Some(expected));
}

#[test]
fn nothing_is_told_if_no_item_is_left() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    plant.add(&group, &["Tank.Level"]);
    let begun = group.begin_read(&[0], ReadFrom::Device, 1);
    assert_eq!(begun, Ok((0, vec![Code::INVALID_HANDLE])));
    assert_eq!(group.begin_read(&[], ReadFrom::Device, 1), Err(Code::INVALID_ARGUMENT));
}

#[test]
fn nothing_is_begun_that_nobody_hears() {
    let plant = Plant::new();
    let group = plant.client.add_group(rate(1000)).expect("a group");
    let items = plant.add(&group, &["Tank.Setpoint"]);
    let none = Err(Code::NO_CONNECTION);
    assert_eq!(group.begin_read(&items, ReadFrom::Cache, 1), none);
    assert_eq!(group.begin_write(&items, &[Data::I2(1).into()], 1), none);
    assert_eq!(group.begin_refresh(Refresh::Cache, 1).map(|_| ()), Err(Code::NO_CONNECTION));
}

#[test]
fn a_refresh_has_all_active_items_whether_changed_or_not() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    let items = plant.add(&group, &["Tank.Level", "Name", "Tank.Mode"]);
    group.set_active(&items[2..], false).expect("it lives");
    plant.pass(1000);
    for from in [Refresh::Cache, Refresh::Device, Refresh::MaxAge(0), Refresh::MaxAge(500)] {
        let cancel = group.begin_refresh(from, 44).expect("somebody listens");
        let Some(Report::Change(batch)) = group.perform(cancel, plant.now) else { panic!("{from:?}") };
        assert_eq!((batch.transaction, clients(&batch)), (44, vec![1, 2]));
    }
    // It is sent though changes are not.
    group.set_enabled(false).expect("somebody listens");
    group.begin_refresh(Refresh::Cache, 45).expect("somebody listens");
    group.set_active(&items, false).expect("it lives");
    assert_eq!(group.begin_refresh(Refresh::Cache, 46), Err(Code::FAIL), "no active items");
    let rest = everywire_opc::Change { active: Some(false), ..Default::default() };
    group.change(&rest).expect("it lives");
    assert_eq!(group.begin_refresh(Refresh::Cache, 47), Err(Code::FAIL), "no active group");
}

/// A client that was told 60 by a refresh must hear of 50, although 50 is what the last update told.
#[test]
fn changes_are_changes_from_what_a_refresh_told() {
    let mut plant = Plant::new();
    let group = plant.group(GroupState { deadband: 30.0, ..rate(100) });
    plant.add(&group, &["Tank.Level", "Name"]);
    plant.set("Tank.Level", 40.0_f32);
    plant.set("Name", "before");
    plant.pass(1000);
    for from in [Refresh::Cache, Refresh::Device, Refresh::MaxAge(500)] {
        plant.set("Tank.Level", 60.0_f32);
        plant.set("Name", "between");
        let cancel = group.begin_refresh(from, 44).expect("somebody listens");
        group.perform(cancel, plant.now).expect("a refresh");
        // 35 is within the deadband, whether from 40 or from 60.
        plant.set("Tank.Level", 35.0_f32);
        plant.set("Name", "before");
        let told: Vec<_> = plant.pass(1000).into_iter().flat_map(|(_, batch)| batch.samples).collect();
        let told: Vec<_> = told.into_iter().map(|sample| (sample.client, sample.value.data)).collect();
        assert_eq!(told, [(2, Data::from("before"))], "{from:?}");
        // From 60 it is 55.
        plant.set("Tank.Level", 5.0_f32);
        let told = plant.pass(1000);
        assert_eq!(told.len(), 1, "{from:?}");
        plant.set("Tank.Level", 40.0_f32);
        plant.pass(1000);
    }
}

#[test]
fn a_refresh_before_the_first_update_is_that_update() {
    let mut plant = Plant::new();
    let group = plant.group(GroupState { deadband: 30.0, ..rate(100) });
    plant.add(&group, &["Tank.Level"]);
    let cancel = group.begin_refresh(Refresh::Cache, 44).expect("somebody listens");
    let Some(Report::Change(batch)) = group.perform(cancel, plant.now) else { panic!("no refresh") };
    assert_eq!(batch.samples[0].value.data, Data::R4(50.0));
    // Within the deadband of what the client has.
    plant.set("Tank.Level", 70.0_f32);
    assert_eq!(plant.pass(1000), []);
    plant.set("Tank.Level", 10.0_f32);
    assert_eq!(plant.pass(1000)[0].1.samples[0].value.data, Data::R4(10.0));
}

#[test]
fn what_was_cancelled_is_never_performed() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Setpoint"]);
    let (cancel, _) = group.begin_write(&items, &[Data::I2(99).into()], 7).expect("somebody listens");
    assert_eq!(group.cancel(cancel), Ok(Report::Cancelled { transaction: 7, group: 0 }));
    assert_eq!(group.perform(cancel, plant.now), None);
    assert_eq!(group.cancel(cancel), Err(Code::FAIL));
    assert_eq!(plant.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(10)));
}

#[test]
fn calls_that_wait_stop_at_the_quota() {
    let quotas = Quotas { pending: 3, ..Quotas::default() };
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Name"]);
    let begin = || group.begin_read(&items, ReadFrom::Cache, 1).map(|(cancel, _)| cancel);
    let first = begin().expect("room");
    assert!(begin().is_ok() && begin().is_ok());
    assert_eq!(begin(), Err(Code::OUT_OF_MEMORY));
    group.perform(first, plant.now).expect("a read");
    begin().expect("room again");
}

#[test]
fn an_item_that_was_removed_meanwhile_is_left_out() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    let (cancel, _) = group.begin_read(&items, ReadFrom::Device, 1).expect("somebody listens");
    group.remove_items(&items[..1]).expect("it lives");
    let Some(Report::Read(batch)) = group.perform(cancel, plant.now) else { panic!("no read") };
    assert_eq!(clients(&batch), [2]);
}
