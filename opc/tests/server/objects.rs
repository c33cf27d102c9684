use super::{CLASS, Site, add_group, code_of, def, guid_of, iid, until};
use everywire::{Node, Ref, Success};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessServer, IEnumOPCItemAttributes, IEnumString, IOPCBrowse,
    IOPCBrowseServerAddressSpace, IOPCCommon, IOPCGroupStateMgt, IOPCItemIO, IOPCItemMgt, IOPCItemProperties,
    IOPCServer, IOPCServerList, IOPCSyncIO, OPCBROWSEFILTER, OPCBROWSETYPE, OPCDATASOURCE, OPCENUMSCOPE,
    OPCITEMVQT, OPCSERVERSTATE, OpcServerList,
};
use everywire_opc::server::{OPC_ENUM, OpcEnum};
use everywire_opc::{Code, Data, FileTime};

#[test]
fn a_client_asks_how_the_server_is() {
    let site = Site::new();
    let server = site.connect::<dyn IOPCServer>();
    let status = server.get_status().expect("an answer").expect("a status");
    assert_eq!((status.state, status.group_count), (OPCSERVERSTATE::OpcStatusRunning, 0));
    assert_eq!(status.vendor_info.as_deref(), Some("Everywire"));
    let text = server.get_error_string(Code::UNKNOWN_ITEM.signed(), 0x409).expect("a text");
    assert_eq!(text.as_deref(), Code::UNKNOWN_ITEM.text());
    assert_eq!(code_of(server.get_error_string(0x1234_5678, 0x409)), Some(Code::INVALID_ARGUMENT));
    let common = server.query::<dyn IOPCCommon>().expect("it can be asked").expect("it has it");
    common.set_client_name("test").expect("a name");
    assert_eq!(code_of(common.set_locale_id(0x407)), Some(Code::INVALID_ARGUMENT));
    assert_eq!(common.get_locale_id().expect("a number"), 0x409);
}

#[test]
fn a_client_browses_the_tree_and_the_list() {
    let site = Site::new();
    let browsing = site.connect::<dyn IOPCBrowseServerAddressSpace>();
    let names = |kind, filter: &str| {
        let found = browsing.browse_opc_item_ids(kind, filter, 0, 0).expect("names");
        let names = found.value.expect("an enumerator").next(100).expect("names");
        assert_eq!(names.code, Success::LESS);
        (found.code, names.value.into_iter().flatten().collect::<Vec<_>>())
    };
    let flat = ["Name", "Tank.Level", "Tank.Setpoint", "Tank.Valve"].map(str::to_owned).to_vec();
    assert_eq!(names(OPCBROWSETYPE::OpcFlat, ""), (0, flat));
    assert_eq!(names(OPCBROWSETYPE::OpcBranch, ""), (0, vec!["Tank".to_owned()]));
    assert_eq!(names(OPCBROWSETYPE::OpcLeaf, "x*"), (1, vec![]));
    assert_eq!(
        code_of(browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "[", 0, 0)),
        Some(Code::INVALID_FILTER)
    );
    let pages = site.connect::<dyn IOPCBrowse>();
    let page = |point: &Option<String>| {
        pages
            .browse("Tank", point, 2, OPCBROWSEFILTER::OpcBrowseFilterAll, "", "", 1, 1, &[])
            .expect("a page")
            .value
    };
    let (point, _, elements) = page(&Some(String::new()));
    let found: Vec<_> =
        elements.iter().map(|e| (e.item_id.as_deref(), e.flags, e.properties.properties.len())).collect();
    assert_eq!(found, [(Some("Tank.Level"), 2, 11), (Some("Tank.Setpoint"), 2, 7)]);
    let (point, _, elements) = page(&point);
    assert_eq!((point.as_deref(), elements.len()), (Some(""), 1));
}

/// COM passes any number as a value of an enumeration; what a server makes of it is an HRESULT of its own.
#[test]
fn a_value_that_has_no_name_is_an_invalid_argument() {
    let site = Site::new();
    let browsing = site.connect::<dyn IOPCBrowseServerAddressSpace>();
    let found = browsing.browse_opc_item_ids(OPCBROWSETYPE(9), "", 0, 0);
    assert_eq!(code_of(found), Some(Code::INVALID_ARGUMENT));
    let found =
        site.connect::<dyn IOPCBrowse>().browse("Tank", &None, 2, OPCBROWSEFILTER(9), "", "", 1, 1, &[]);
    assert_eq!(code_of(found), Some(Code::INVALID_ARGUMENT));
    let names = everywire_opc::contract::GUID::of::<dyn IEnumString>();
    let found = site.connect::<dyn IOPCServer>().create_group_enumerator(OPCENUMSCOPE(0), &names);
    assert_eq!(code_of(found), Some(Code::INVALID_ARGUMENT));
}

#[test]
fn an_enumerator_goes_on_where_it_was_copied() {
    let site = Site::new();
    let browsing = site.connect::<dyn IOPCBrowseServerAddressSpace>();
    let found = browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "", 0, 0).expect("names");
    let names = found.value.expect("an enumerator");
    let taken = |names: &Ref<dyn IEnumString>, count| {
        let Success { value, code } = names.next(count).expect("names");
        (value.into_iter().flatten().collect::<Vec<_>>(), code)
    };
    assert_eq!(taken(&names, 1), (vec!["Name".to_owned()], 0));
    let copy = names.clone_().expect("a copy").expect("an object");
    assert_eq!(names.skip(2).expect("so many").code, 0);
    assert_eq!(taken(&names, 5), (vec!["Tank.Valve".to_owned()], 1));
    assert_eq!(taken(&copy, 1), (vec!["Tank.Level".to_owned()], 0));
    names.reset().expect("the beginning");
    assert_eq!(names.skip(9).expect("fewer").code, 1);
    assert_eq!(code_of(names.next(0)), Some(Code::INVALID_ARGUMENT));
}

#[test]
fn properties_and_items_need_no_group() {
    let site = Site::new();
    let properties = site.connect::<dyn IOPCItemProperties>();
    let (ids, texts, types) = properties.query_available_properties("Tank.Level").expect("an item");
    assert_eq!((ids.len(), texts.len(), types.len()), (11, 11, 11));
    let found = properties.get_item_properties("Tank.Level", &[2, 100, 999]).expect("an item");
    assert_eq!((found.code, found.value.1), (1, vec![0, 0, Code::INVALID_PROPERTY.signed()]));
    let values: Vec<_> = found.value.0.iter().map(Data::from_variant).collect();
    assert_eq!(values, [Ok(Data::R4(50.0)), Ok("cm".into()), Ok(Data::Empty)]);
    assert_eq!(code_of(properties.query_available_properties("x")), Some(Code::UNKNOWN_ITEM));
    let io = properties.query::<dyn IOPCItemIO>().expect("it can be asked").expect("it has it");
    let ids = ["Tank.Setpoint", "Tank.Level"].map(|id| Some(id.to_owned()));
    let vqt = |value: Data| OPCITEMVQT {
        value: value.to_variant(),
        quality_specified: 0,
        quality: 0,
        reserved: 0,
        timestamp_specified: 0,
        reserved2: 0,
        timestamp: everywire_opc::contract::FILETIME { dw_low_date_time: 0, dw_high_date_time: 0 },
    };
    let written = io.write_vqt(&ids, &[vqt(Data::I4(55)), vqt(Data::R4(1.0))]).expect("two items");
    assert_eq!((written.code, written.value), (1, vec![0, Code::BAD_RIGHTS.signed()]));
    let read = io.read(&ids, &[0, 0]).expect("two items");
    assert_eq!(read.value.0.iter().map(Data::from_variant).next(), Some(Ok(Data::I2(55))));
}

#[test]
fn a_group_is_made_filled_read_written_and_removed() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let added =
        server.add_group("g", 1, 1, 5, &None, &None, 0, &iid::<dyn IOPCGroupStateMgt>()).expect("a group");
    assert_eq!((added.code, added.value.1), (Code::UNSUPPORTED_RATE.signed(), 10));
    let again = server.add_group("g", 1, 1, 5, &None, &None, 0, &iid::<dyn IOPCGroupStateMgt>());
    assert_eq!(code_of(again), Some(Code::DUPLICATE_NAME));
    let handle = added.value.0;
    let state: Ref<dyn IOPCGroupStateMgt> =
        site.client.narrow(added.value.2.expect("an object")).expect("the interface");
    let (rate, active, name, _, _, _, client, held) = state.get_state().expect("it lives");
    assert_eq!((rate, active, name.as_deref(), client, held), (10, 1, Some("g"), 5, handle));
    let set = state.set_state(&Some(1005), &None, &None, &None, &None, &None).expect("it lives");
    assert_eq!((set.code, set.value), (Code::UNSUPPORTED_RATE.signed(), 1010));

    let items = state.query::<dyn IOPCItemMgt>().expect("it can be asked").expect("it has it");
    let defs = [def("Tank.Level", 1), def("Nothing", 2), def("Tank.Setpoint", 3)];
    let Success { value: (results, errors), code } = items.add_items(&defs).expect("it lives");
    assert_eq!((code, errors), (1, vec![0, Code::UNKNOWN_ITEM.signed(), 0]));
    let handles: Vec<u32> = results.iter().map(|result| result.server).collect();
    let io = state.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let Success { value: (states, errors), code } =
        io.read(OPCDATASOURCE::OpcDsCache, &handles).expect("it lives");
    assert_eq!((code, errors), (1, vec![0, Code::INVALID_HANDLE.signed(), 0]));
    let read: Vec<_> = states.iter().map(|s| (s.client, s.quality, Data::from_variant(&s.value))).collect();
    assert_eq!(read, [(1, 192, Ok(Data::R4(50.0))), (0, 0, Ok(Data::Empty)), (3, 192, Ok(Data::I2(10)))]);
    let values = [Data::R4(1.0), Data::I4(1), Data::from("12")].map(|data| data.to_variant());
    let written = io.write(&handles, &values).expect("it lives");
    assert_eq!(written.value, [Code::BAD_RIGHTS.signed(), Code::INVALID_HANDLE.signed(), 0]);
    assert_eq!(site.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(12)));

    let all = items.create_enumerator(&iid::<dyn IEnumOPCItemAttributes>()).expect("an enumerator");
    let all: Ref<dyn IEnumOPCItemAttributes> =
        site.client.narrow(all.value.expect("an object")).expect("the interface");
    let attributes = all.next(10).expect("items");
    let ids: Vec<_> = attributes.value.iter().map(|item| item.item_id.as_deref()).collect();
    assert_eq!((attributes.code, ids), (1, vec![Some("Tank.Level"), Some("Tank.Setpoint")]));

    let scope = OPCENUMSCOPE::OpcEnumPrivate;
    let names = server.create_group_enumerator(scope, &iid::<dyn IEnumString>()).expect("an enumerator");
    let names: Ref<dyn IEnumString> = site.client.narrow(names.value.expect("an object")).expect("names");
    assert_eq!(names.next(2).expect("a name").value, [Some("g".to_owned())]);

    server.remove_group(handle, 1).expect("a group");
    assert_eq!(code_of(server.remove_group(handle, 1)), Some(Code::INVALID_HANDLE));
    assert!(state.get_state().is_err());
    assert_eq!(site.server.engine().items_in_use(), 0);
}

/// OPC DA 2.05a, 4.4.3.5: without force, a group that somebody refers to ends with the last reference, and the client is told so.
#[test]
fn a_group_that_is_referred_to_ends_with_its_last_reference() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (handle, group) = add_group::<dyn DataAccessGroup>(&site, &server, "g", 100);
    group.add_items(&[def("Name", 1)]).expect("it lives");
    let served = site.node.exported().len();
    assert_eq!(server.remove_group(handle, 0).expect("a group").code, Code::IN_USE.signed());
    // It is none of the client's groups any more, and its name is free; those who have it go on.
    assert_eq!(code_of(server.remove_group(handle, 0)), Some(Code::INVALID_HANDLE));
    assert_eq!(
        code_of(server.get_group_by_name("g", &iid::<dyn IOPCItemMgt>())),
        Some(Code::INVALID_ARGUMENT)
    );
    assert_eq!(code_of(group.set_name("h")), Some(Code::FAIL));
    assert_eq!(group.get_state().expect("it lives").2.as_deref(), Some("g"));
    assert_eq!((site.node.exported().len(), site.server.engine().items_in_use()), (served, 1));
    let (again, other) = add_group::<dyn DataAccessGroup>(&site, &server, "g", 100);
    drop(group);
    until("the group ends", || site.server.engine().items_in_use() == 0);
    // With force it ends at once.
    assert_eq!(server.remove_group(again, 1).expect("a group").code, 0);
    assert!(other.get_state().is_err());
    until("no group is served", || site.node.exported().len() < served);
}

#[test]
fn what_is_not_there_says_so_by_its_name() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let public = guid_of("39c13a51-011e-11d0-9675-0020afd8adb3");
    let refused = server.add_group("g", 1, 1000, 5, &None, &None, 0, &public).expect_err("no such interface");
    assert_eq!(Code::of(&refused), Code::NO_INTERFACE);
    assert!(refused.message().contains("public groups"), "{refused}");
    // Nothing was made for it.
    assert_eq!(server.get_status().expect("an answer").map(|status| status.group_count), Some(0));
    let object = server.reference().clone();
    let object = site.client.resolve(&object).expect("an object");
    assert_eq!(object.offers("39c13a4e-011e-11d0-9675-0020afd8adb3").ok(), Some(false));
}

#[test]
fn groups_of_another_client_are_not_ones_own() {
    let site = Site::new();
    let (one, other) = (site.connect::<dyn DataAccessServer>(), site.connect::<dyn DataAccessServer>());
    let (handle, _) = add_group::<dyn IOPCGroupStateMgt>(&site, &one, "g", 100);
    assert_eq!(code_of(other.remove_group(handle, 1)), Some(Code::INVALID_HANDLE));
    assert_eq!(
        code_of(other.get_group_by_name("g", &iid::<dyn IOPCItemMgt>())),
        Some(Code::INVALID_ARGUMENT)
    );
    let found = one.get_group_by_name("g", &iid::<dyn IOPCItemMgt>()).expect("a group").expect("an object");
    let items: Ref<dyn IOPCItemMgt> = site.client.narrow(found).expect("the interface");
    assert_eq!(items.add_items(&[def("Name", 1)]).expect("it lives").value.1, [0]);
    assert_eq!(site.server.engine().clients(), 2);
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let site = Site::new();
    {
        let server = site.connect::<dyn DataAccessServer>();
        for _ in 0..100 {
            let (_, items) = add_group::<dyn IOPCItemMgt>(&site, &server, "", 100);
            items.add_items(&[def("Name", 1), def("Tank.Level", 2)]).expect("it lives");
        }
        let browsing =
            server.query::<dyn IOPCBrowseServerAddressSpace>().expect("it can be asked").expect("it has it");
        for _ in 0..100 {
            browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "", 0, 0).expect("names");
        }
        assert_eq!(site.server.engine().items_in_use(), 2);
    }
    let served = || site.node.exported().len();
    until("the client's objects end", || site.server.engine().clients() == 0 && served() == 0);
    assert_eq!(site.server.engine().items_in_use(), 0);
}

#[test]
fn opc_enum_lists_the_servers_of_a_host() {
    let site = Site::new();
    let list = OpcEnum::serve(&site.node);
    list.add(site.server.info());
    let place = site.address.split('?').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let client = Node::new();
    let servers =
        client.connect::<dyn OpcServerList>(&format!("{place}/{OPC_ENUM}?level=none")).expect("an address");
    let servers = servers.query::<dyn IOPCServerList>().expect("it can be asked").expect("it has it");
    let version_2 = guid_of("63d5f432-cfe4-11d1-b2c8-0060083ba1fb");
    let classes = |category| {
        let found =
            servers.enum_classes_of_categories(&[category], &[]).expect("classes").expect("an enumerator");
        found.next(10).expect("classes").value
    };
    assert_eq!(classes(version_2), [guid_of(CLASS)]);
    assert_eq!(classes(guid_of("63d5f430-cfe4-11d1-b2c8-0060083ba1fb")), []);
    let (prog_id, name) = servers.get_class_details(&guid_of(CLASS)).expect("a server");
    assert_eq!((prog_id.as_deref(), name.as_deref()), (Some("Everywire.Tank.1"), Some("Everywire.Tank")));
    assert_eq!(servers.clsid_from_prog_id("everywire.tank").expect("a server"), guid_of(CLASS));
    assert!(servers.clsid_from_prog_id("other").is_err());
    assert!(list.remove(CLASS));
    assert_eq!(classes(guid_of("63d5f432-cfe4-11d1-b2c8-0060083ba1fb")), []);
}

#[test]
fn times_are_those_of_the_source() {
    let site = Site::new();
    let time = FileTime(0x01d5_fd98_d9b7_ea8f);
    site.table.put("Tank.Level", everywire_opc::Vqt::good(1.0_f32, time)).expect("an item");
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "", 100);
    let added = group.add_items(&[def("Tank.Level", 1)]).expect("it lives").value.0;
    let handles: Vec<u32> = added.iter().map(|result| result.server).collect();
    let io = group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let read = io.read(OPCDATASOURCE::OpcDsDevice, &handles).expect("it lives").value.0;
    let stamp =
        read.first().map(|state| (state.timestamp.dw_low_date_time, state.timestamp.dw_high_date_time));
    assert_eq!(stamp, Some((0xd9b7_ea8f, 0x01d5_fd98)));
}
