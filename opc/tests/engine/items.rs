use super::{Plant, codes, def, named, server};
use everywire_opc::{Access, Code, Data, ItemDef, ItemResult, Quotas, Settings, VarType};

#[test]
fn each_item_is_answered_for_by_itself() {
    let plant = Plant::new();
    let group = plant.client.add_group(named("a")).expect("a group");
    let path = ItemDef { access_path: "COM1".to_owned(), ..def("Name", 3) };
    let odd = ItemDef { requested: VarType(999), ..def("Name", 4) };
    let array = ItemDef { requested: VarType::R8.array(), ..def("Tank.Level", 5) };
    let defs =
        [def("Tank.Level", 1), def("Tank.Nothing", 2), def("", 2), path, odd, array, def("Tank.Valve", 6)];
    let expected = [
        Code::OK,
        Code::UNKNOWN_ITEM,
        Code::INVALID_ITEM,
        Code::UNKNOWN_PATH,
        Code::BAD_TYPE,
        Code::BAD_TYPE,
        Code::OK,
    ];
    let looked_at = group.validate_items(&defs).expect("it lives");
    let level = ItemResult { server: 0, canonical: VarType::R4, access: Access::READ };
    assert_eq!(looked_at.first(), Some(&Ok(level)));
    assert_eq!(codes(looked_at), expected);
    assert_eq!(group.count(), Ok(0));
    assert_eq!(codes(group.add_items(&defs, plant.now).expect("it lives")), expected);
    assert_eq!(group.count(), Ok(2));
}

#[test]
fn one_item_may_be_in_a_group_twice() {
    let plant = Plant::new();
    let group = plant.client.add_group(named("a")).expect("a group");
    let added = server(group.add_items(&[def("Name", 1), def("Name", 2)], plant.now).expect("it lives"));
    assert_ne!(added.first(), added.last());
    assert_eq!(plant.engine.items_in_use(), 1);
    assert_eq!(codes(group.remove_items(&added).expect("it lives")), [Code::OK; 2]);
    assert_eq!(plant.engine.items_in_use(), 0);
}

#[test]
fn handles_of_other_groups_are_refused() {
    let plant = Plant::new();
    let (one, other) = (plant.group(named("a")), plant.group(named("b")));
    let own = plant.add(&one, &["Tank.Level", "Name"]);
    let theirs = plant.add(&other, &["Tank.Level", "Name"]);
    let invalid = [Code::INVALID_HANDLE; 2];
    assert_eq!(codes(one.remove_items(&theirs).expect("it lives")), invalid);
    assert_eq!(codes(one.set_active(&theirs, false).expect("it lives")), invalid);
    assert_eq!(one.write(&theirs, &[Data::Bool(true).into(), Data::Bool(true).into()]), Ok(invalid.to_vec()));
    assert_eq!(codes(one.remove_items(&own).expect("it lives")), [Code::OK; 2]);
    // A handle that was given back is not given to the next.
    let again = plant.add(&one, &["Tank.Level", "Name"]);
    assert!(again.iter().all(|handle| !own.contains(handle)));
    assert_eq!(codes(one.remove_items(&own).expect("it lives")), invalid);
    assert_eq!(other.count(), Ok(2));
}

#[test]
fn client_handles_and_types_are_set_item_by_item() {
    let plant = Plant::new();
    let group = plant.group(named("a"));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    let handles: Vec<_> = items.iter().copied().chain([0]).collect();
    let expected = [Code::OK, Code::OK, Code::INVALID_HANDLE];
    assert_eq!(codes(group.set_client_handles(&handles, &[8, 9, 10]).expect("it lives")), expected);
    assert_eq!(group.set_client_handles(&handles, &[8, 9]).err(), Some(Code::INVALID_ARGUMENT));
    let types = [VarType::BSTR, VarType::R8.array(), VarType::R4];
    let expected = [Code::OK, Code::BAD_TYPE, Code::INVALID_HANDLE];
    assert_eq!(codes(group.set_types(&handles, &types).expect("it lives")), expected);
    let attributes = group.attributes(0, 9).expect("it lives");
    let found: Vec<_> = attributes.iter().map(|item| (item.def.client, item.def.requested)).collect();
    assert_eq!(found, [(8, VarType::BSTR), (9, VarType::EMPTY)]);
}

#[test]
fn attributes_come_in_parts() {
    let plant = Plant::new();
    let group = plant.group(named("a"));
    plant.add(&group, &["Tank.Level", "Tank.Mode", "Name"]);
    let ids = |skip, most| {
        let part = group.attributes(skip, most).expect("it lives");
        part.into_iter().map(|item| (item.def.id, item.eu_type)).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, 2), [("Tank.Level".to_owned(), 1), ("Tank.Mode".to_owned(), 2)]);
    assert_eq!(ids(2, 2), [("Name".to_owned(), 0)]);
    assert_eq!(ids(3, 2), []);
}

#[test]
fn whoever_asks_for_no_items_has_made_a_mistake() {
    let plant = Plant::new();
    let group = plant.group(named("a"));
    let wrong = Some(Code::INVALID_ARGUMENT);
    assert_eq!(group.add_items(&[], plant.now).err(), wrong);
    assert_eq!(group.validate_items(&[]).err(), wrong);
    assert_eq!(group.remove_items(&[]).err(), wrong);
    assert_eq!(group.set_active(&[], true).err(), wrong);
    assert_eq!(group.read(&[], everywire_opc::ReadFrom::Cache, plant.now).err(), wrong);
    assert_eq!(group.write(&[], &[]).err(), wrong);
}

#[test]
fn deadbands_are_for_items_with_a_range() {
    let plant = Plant::new();
    let group = plant.group(named("a"));
    let items = plant.add(&group, &["Tank.Level", "Name", "Tank.Setpoint"]);
    let set = group.set_deadbands(&items, &[5.0, 5.0, 101.0]).expect("it lives");
    assert_eq!(codes(set), [Code::OK, Code::DEADBAND_NOT_SUPPORTED, Code::INVALID_ARGUMENT]);
    let expected = [Ok(5.0), Err(Code::DEADBAND_NOT_SUPPORTED), Err(Code::DEADBAND_NOT_SET)];
    assert_eq!(group.deadbands(&items).expect("it lives"), expected);
    assert_eq!(codes(group.clear_deadbands(&items[..1]).expect("it lives")), [Code::OK]);
    assert_eq!(codes(group.clear_deadbands(&items[..1]).expect("it lives")), [Code::DEADBAND_NOT_SET]);
}

#[test]
fn a_million_items_stop_at_the_quota() {
    let quotas = Quotas { items: 1000, ..Quotas::default() };
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    let group = plant.client.add_group(named("a")).expect("a group");
    let defs: Vec<_> = (0..1000).map(|client| def("Name", client)).collect();
    let mut refused = 0;
    for _ in 0..1000 {
        let added = codes(group.add_items(&defs, plant.now).expect("it lives"));
        refused += added.iter().filter(|code| **code == Code::OUT_OF_MEMORY).count();
    }
    assert_eq!((refused, group.count()), (999_000, Ok(1000)));
    plant.client.remove_group(group.server_handle()).expect("a group");
    let group = plant.client.add_group(named("b")).expect("a group");
    assert_eq!(codes(group.add_items(&defs, plant.now).expect("it lives")), vec![Code::OK; 1000]);
}

#[test]
fn long_names_stop_at_the_quota_of_bytes() {
    let quotas = Quotas { bytes: 100_000, ..Quotas::default() };
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    let group = plant.client.add_group(named("a")).expect("a group");
    let id = "x".repeat(60_000);
    plant.table.add(everywire_opc::Item::new(id.as_str(), VarType::I2), 1_i16);
    let added = group.add_items(&[def(&id, 1), def(&id, 2)], plant.now).expect("it lives");
    assert_eq!(codes(added), [Code::OK, Code::OUT_OF_MEMORY]);
}
