use super::{Plant, codes, def, named, rate};
use everywire_opc::{Change, Code, GroupState, Quotas, Settings};

#[test]
fn a_group_without_a_name_gets_one_of_its_own() {
    let plant = Plant::new();
    plant.client.add_group(named("Group2")).expect("a group");
    let names: Vec<_> = (0..3)
        .map(|_| plant.client.add_group(named("")).expect("a group").state().expect("it lives").name)
        .collect();
    assert_eq!(names, ["Group1", "Group3", "Group4"]);
}

#[test]
fn a_name_is_given_once_in_a_client() {
    let plant = Plant::new();
    let first = plant.client.add_group(named("a")).expect("a group");
    assert_eq!(plant.client.add_group(named("a")).err(), Some(Code::DUPLICATE_NAME));
    let second = plant.client.add_group(named("b")).expect("a group");
    assert_eq!(plant.client.rename(&second, "a"), Err(Code::DUPLICATE_NAME));
    assert_eq!(plant.client.rename(&second, ""), Err(Code::INVALID_ARGUMENT));
    plant.client.rename(&second, "c").expect("a free name");
    assert!(plant.client.group_by_name("b").is_none());
    assert_eq!(
        plant.client.group_by_name("c").map(|group| group.server_handle()),
        Some(second.server_handle())
    );
    plant.client.remove_group(first.server_handle()).expect("a group");
    plant.client.add_group(named("a")).expect("the name is free again");
    // Another client has names of its own.
    plant.engine.client().expect("a client").add_group(named("a")).expect("a group");
}

#[test]
fn the_update_rate_is_revised_to_what_the_server_can() {
    let plant = Plant::new();
    for (asked, used) in [(0, 10), (1, 10), (10, 10), (11, 20), (1000, 1000), (u32::MAX, u32::MAX)] {
        let group = plant.client.add_group(rate(asked)).expect("a group");
        assert_eq!(group.state().expect("it lives").rate, used, "{asked}");
        let code = if asked == used { Code::OK } else { Code::UNSUPPORTED_RATE };
        let change = Change { rate: Some(asked), ..Change::default() };
        assert_eq!(group.change(&change), Ok((used, code)));
    }
}

#[test]
fn what_set_state_leaves_out_stays() {
    let plant = Plant::new();
    let asked = GroupState { time_bias: -60, deadband: 2.5, client: 7, rate: 500, ..named("a") };
    let group = plant.client.add_group(asked).expect("a group");
    let before = group.state().expect("it lives");
    assert_eq!(group.change(&Change::default()), Ok((500, Code::OK)));
    assert_eq!(group.state().as_ref(), Ok(&before));
    group.change(&Change { client: Some(9), active: Some(false), ..Change::default() }).expect("it lives");
    assert_eq!(group.state(), Ok(GroupState { client: 9, active: false, ..before }));
}

#[test]
fn a_deadband_is_a_percentage() {
    let plant = Plant::new();
    for wrong in [-0.1, 100.1, f32::NAN] {
        let state = GroupState { deadband: wrong, ..GroupState::default() };
        assert_eq!(plant.client.add_group(state).err(), Some(Code::INVALID_ARGUMENT), "{wrong}");
    }
    let group = plant.client.add_group(named("a")).expect("a group");
    let wrong = Change { deadband: Some(101.0), rate: Some(50), ..Change::default() };
    assert_eq!(group.change(&wrong), Err(Code::INVALID_ARGUMENT));
    // Nothing of a change that is refused is made.
    assert_eq!(group.state().map(|state| state.rate), Ok(1000));
}

#[test]
fn a_clone_has_all_but_activity_handles_and_listeners() {
    let plant = Plant::new();
    let group = plant.group(GroupState { deadband: 1.0, client: 5, ..named("a") });
    let items = plant.add(&group, &["Tank.Level", "Tank.Mode"]);
    let copy = plant.client.clone_group(&group, "").expect("a clone");
    let (before, state) = (group.state().expect("it lives"), copy.state().expect("it lives"));
    let expected =
        GroupState { name: "Group1".to_owned(), active: false, server: state.server, ..before.clone() };
    assert_eq!(state, expected);
    assert_ne!(state.server, before.server);
    assert_eq!(copy.listeners(), 0);
    let attributes = copy.attributes(0, 10).expect("it lives");
    let ids: Vec<_> = attributes.iter().map(|item| (item.def.id.as_str(), item.def.client)).collect();
    assert_eq!(ids, [("Tank.Level", 1), ("Tank.Mode", 2)]);
    assert!(attributes.iter().all(|item| !items.contains(&item.server)));
    assert_eq!(plant.client.clone_group(&group, "a").err(), Some(Code::DUPLICATE_NAME));
}

#[test]
fn a_group_that_was_removed_fails_in_all_it_is_asked() {
    let plant = Plant::new();
    let group = plant.group(named("a"));
    let items = plant.add(&group, &["Tank.Level"]);
    plant.client.remove_group(group.server_handle()).expect("a group");
    assert_eq!(plant.client.remove_group(group.server_handle()).err(), Some(Code::INVALID_HANDLE));
    assert_eq!(group.state().err(), Some(Code::FAIL));
    assert_eq!(group.remove_items(&items).err(), Some(Code::FAIL));
    assert_eq!(group.add_items(&[def("Name", 1)], plant.now).err(), Some(Code::FAIL));
    assert_eq!(plant.engine.items_in_use(), 0);
    assert_eq!(plant.engine.next_due(), None);
}

#[test]
fn the_groups_of_a_client_end_with_it() {
    let plant = Plant::new();
    let client = plant.engine.client().expect("a client");
    let groups: Vec<_> = (0..1000).map(|_| client.add_group(named("")).expect("a group")).collect();
    for group in &groups {
        group.set_listeners(1);
        assert_eq!(codes(group.add_items(&[def("Name", 1)], plant.now).expect("it lives")), [Code::OK]);
    }
    assert_eq!((plant.engine.items_in_use(), plant.engine.clients()), (1, 2));
    drop(client);
    assert!(groups.iter().all(|group| group.is_over()));
    assert_eq!((plant.engine.items_in_use(), plant.engine.clients()), (0, 1));
    assert_eq!(plant.engine.next_due(), None);
}

#[test]
fn a_client_has_no_more_groups_than_its_quota() {
    let quotas = Quotas { groups: 2, clients: 2, ..Quotas::default() };
    let plant = Plant::with(Settings { quotas, ..Settings::default() });
    let first = plant.client.add_group(named("")).expect("a group");
    plant.client.add_group(named("")).expect("a group");
    assert_eq!(plant.client.add_group(named("")).err(), Some(Code::OUT_OF_MEMORY));
    plant.client.remove_group(first.server_handle()).expect("a group");
    plant.client.add_group(named("")).expect("room again");
    let second = plant.engine.client().expect("a client");
    assert_eq!(plant.engine.client().err(), Some(Code::OUT_OF_MEMORY));
    drop(second);
    plant.engine.client().expect("room again");
}
