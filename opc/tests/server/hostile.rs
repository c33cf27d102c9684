//! What clients do that mean no good, over the wire: they are refused by a code that says why, and others are served.
//!
//! Each test ends with somebody else who is served, or with all room given back.

use super::{PATIENCE, Site, add_group, code_of, def, iid};
use everywire::{Node, Ref, Subscription};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, DataAccessServer, IEnumOPCItemAttributes, IEnumString,
    IOPCAsyncIO2, IOPCBrowse, IOPCBrowseServerAddressSpace, IOPCCommon, IOPCItemMgt, IOPCItemProperties,
    IOPCServer, IOPCSyncIO, OPCBROWSEFILTER, OPCBROWSETYPE, OPCDATASOURCE, OPCENUMSCOPE, OPCITEMPROPERTIES,
};
use everywire_opc::{Code, Data, FileTime, Quotas, Settings, VarType, Vqt};
use std::sync::mpsc::channel;

/// Somebody who is served whatever others do.
pub(super) fn is_served(site: &Site) {
    let client = Node::new();
    let server = client.connect::<dyn DataAccessServer>(&site.class_address()).expect("an address");
    let added =
        server.add_group("", 1, 1000, 7, &None, &None, 0, &iid::<dyn IOPCItemMgt>()).expect("a group");
    let group = client.narrow::<dyn DataAccessGroup>(added.value.2.expect("an object")).expect("a group");
    let added = group.add_items(&[def("Tank.Level", 1)]).expect("it lives").value;
    let io = group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let read = io.read(OPCDATASOURCE::OpcDsCache, &[added.0[0].server]).expect("it lives");
    assert_eq!((added.1, read.value.1), (vec![0], vec![0]));
}

/// Names that others take for something else: ends of texts, paths, formats, commands of a terminal, texts of no end.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "../../etc/passwd",
        "C:\\Windows",
        "%s%n%x",
        "{0}{}",
        "$(reboot)",
        "a\u{1b}[2J\u{7}",
        "\u{202e}",
        "\u{feff}",
        "\u{10ffff}",
        "..",
        "",
        " ",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(64 << 10));
    names.push("\u{1f600}".repeat(1000));
    names
}

#[test]
fn names_of_any_kind_are_passed_on_or_refused() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "g", 1000);
    let browsing = site.connect::<dyn IOPCBrowseServerAddressSpace>();
    let pages = site.connect::<dyn IOPCBrowse>();
    let common = site.connect::<dyn IOPCCommon>();
    for name in names() {
        let added = group.add_items(&[def(&name, 1)]).expect("it lives").value.1;
        let expected = if name.is_empty() { Code::INVALID_ITEM } else { Code::UNKNOWN_ITEM };
        assert_eq!(added, [expected.signed()], "{name:?}");
        match server.add_group(&name, 0, 1000, 1, &None, &None, 0, &iid::<dyn IOPCItemMgt>()) {
            Ok(added) => {
                let made: Ref<dyn DataAccessGroup> =
                    site.client.narrow(added.value.2.expect("an object")).expect("a group");
                let held = made.get_state().expect("it lives").2.expect("a name");
                assert!(held == name || name.is_empty(), "{held:?}");
                assert!(server.get_group_by_name(&held, &iid::<dyn IOPCItemMgt>()).is_ok());
                server.remove_group(added.value.0, 1).expect("a group");
            }
            Err(failure) => {
                assert_eq!(Code::of(&failure), Code::OUT_OF_MEMORY, "{name:?}");
                assert!(name.len() > 4096, "{name:?}");
            }
        }
        // What it calls itself, where it goes, and what it filters by.
        common.set_client_name(&name).expect("a name");
        if !name.is_empty() {
            assert!(
                browsing
                    .change_browse_position(everywire_opc::contract::OPCBROWSEDIRECTION::OpcBrowseDown, &name)
                    .is_err()
            );
            let page = pages.browse(&name, &None, 1, OPCBROWSEFILTER::OpcBrowseFilterAll, "", "", 0, 0, &[]);
            assert_eq!(code_of(page), Some(Code::UNKNOWN_ITEM), "{name:?}");
        }
        let listed = browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, &name, 0, 0);
        assert!(listed.is_ok() || code_of(listed) == Some(Code::INVALID_FILTER), "{name:?}");
    }
    is_served(&site);
}

/// Arrays of values in arrays of values, to any depth, and of any size: taken, or refused by the type, the depth or the size.
#[test]
fn values_in_values_end_somewhere() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "", 1000);
    let added = group.add_items(&[def("Tank.Setpoint", 1)]).expect("it lives").value.0;
    let io = group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let write = |data: &Data| io.write(&[added[0].server], &[data.to_variant()]);
    let mut nested = Data::I4(1);
    for depth in 1..60 {
        nested = Data::array(VarType::VARIANT, vec![nested]);
        match write(&nested) {
            Ok(written) => assert_eq!(written.value, [Code::BAD_TYPE.signed()], "{depth}"),
            Err(failure) => assert!(depth > 10, "{depth}: {failure}"),
        }
    }
    for wide in [
        Data::array(VarType::UI1, vec![Data::U1(1); 1 << 20]),
        Data::array(VarType::VARIANT, vec![Data::Empty; 100_000]),
        Data::from("x".repeat(1 << 20)),
        Data::R8(f64::NAN),
        Data::R8(1e308),
        Data::U8(u64::MAX),
        Data::Date(f64::INFINITY),
        Data::Error(Code::FAIL),
        Data::Null,
    ] {
        match write(&wide) {
            Ok(written) => assert!(written.value.iter().all(|code| *code < 0), "{:?}", wide.var_type()),
            // Larger than a message may be.
            Err(failure) => assert!(wide.heap() > 100_000, "{failure}"),
        }
    }
    assert_eq!(site.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(10)));
    is_served(&site);
}

#[test]
fn enumerators_are_of_the_quota_and_give_no_more_than_they_may() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "", 1000);
    group.add_items(&[def("Name", 1), def("Tank.Level", 2)]).expect("it lives");
    let browsing =
        server.query::<dyn IOPCBrowseServerAddressSpace>().expect("it can be asked").expect("it has it");
    let most = Settings::default().quotas.enumerators;
    let mut held = Vec::new();
    let refused = loop {
        match browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "", 0, 0) {
            Ok(names) => held.push(names.value.expect("an enumerator")),
            Err(failure) => break Code::of(&failure),
        }
        assert!(held.len() <= most, "they never end");
    };
    assert_eq!((refused, held.len()), (Code::OUT_OF_MEMORY, most));
    // Neither by another way.
    assert_eq!(code_of(held[0].clone_()), Some(Code::OUT_OF_MEMORY));
    assert_eq!(
        code_of(group.create_enumerator(&iid::<dyn IEnumOPCItemAttributes>())),
        Some(Code::OUT_OF_MEMORY)
    );
    let scope = OPCENUMSCOPE::OpcEnumPrivate;
    assert_eq!(
        code_of(server.create_group_enumerator(scope, &iid::<dyn IEnumString>())),
        Some(Code::OUT_OF_MEMORY)
    );
    is_served(&site);
    let names = &held[0];
    for count in [0, u32::MAX, 100_001] {
        assert_eq!(code_of(names.next(count)), Some(Code::INVALID_ARGUMENT), "{count}");
    }
    assert_eq!(names.skip(u32::MAX).expect("fewer").code, 1);
    names.reset().expect("the beginning");
    assert_eq!(names.next(100_000).expect("names").value.len(), 4);
    held.clear();
    super::until("room comes back", || {
        browsing.browse_opc_item_ids(OPCBROWSETYPE::OpcFlat, "", 0, 0).is_ok()
    });
    // One over items holds none of them: it tells of the group as it is when it is asked.
    let all = group
        .create_enumerator(&iid::<dyn IEnumOPCItemAttributes>())
        .expect("room")
        .value
        .expect("an object");
    let all: Ref<dyn IEnumOPCItemAttributes> = site.client.narrow(all).expect("the interface");
    let first = all.next(1).expect("items").value;
    group.remove_items(&[first[0].server]).expect("it lives");
    group.add_items(&[def("Tank.Valve", 3), def("Tank.Setpoint", 4)]).expect("it lives");
    let rest: Vec<_> =
        all.next(10).expect("items").value.into_iter().filter_map(|item| item.item_id).collect();
    assert_eq!(rest, ["Tank.Level", "Tank.Setpoint"]);
    assert_eq!(all.next(10).expect("items").value.len(), 0);
}

/// A text that is named as a property again and again, of one item or of several, is not copied without end.
#[test]
fn properties_are_no_more_than_an_answer_may_hold() {
    let quotas = Quotas { answer: 1 << 20, ..Quotas::default() };
    let site = Site::with(Node::new(), "level=none", Settings { quotas, ..Settings::default() });
    let text = Data::from("x".repeat(100_000));
    site.table.put("Name", Vqt::good(text, FileTime::default())).expect("an item");
    let count = |errors: &mut dyn Iterator<Item = i32>| errors.filter(|error| *error == 0).count();
    let properties = site.connect::<dyn IOPCItemProperties>();
    let (_, errors) = properties.get_item_properties("Name", &[2; 30]).expect("an item").value;
    assert_eq!(
        (count(&mut errors.iter().copied()), errors.last()),
        (10, Some(&Code::OUT_OF_MEMORY.signed()))
    );
    let pages = site.connect::<dyn IOPCBrowse>();
    let of = |found: &[OPCITEMPROPERTIES]| {
        count(&mut found.iter().flat_map(|item| &item.properties).map(|property| property.error))
    };
    let names = vec![Some("Name".to_owned()); 30];
    assert_eq!(of(&pages.get_properties(&names, 1, &[2]).expect("items").value), 10);
    assert_eq!(of(&pages.get_properties(&names, 0, &[2]).expect("items").value), 30, "without values");
    let all = OPCBROWSEFILTER::OpcBrowseFilterAll;
    let (_, _, found) = pages.browse("", &None, 0, all, "", "", 0, 1, &[2; 30]).expect("a page").value;
    assert_eq!(of(&found.into_iter().map(|element| element.properties).collect::<Vec<_>>()), 10);
    is_served(&site);
}

#[test]
fn continuation_points_of_others_are_refused() {
    let site = Site::new();
    let pages = site.connect::<dyn IOPCBrowse>();
    let page = |branch: &str, point: &str, names: &str| {
        let point = Some(point.to_owned());
        pages.browse(branch, &point, 1, OPCBROWSEFILTER::OpcBrowseFilterAll, names, "", 0, 0, &[])
    };
    let (point, _, _) = page("Tank", "", "").expect("a page").value;
    let point = point.expect("a point");
    assert!(page("Tank", &point, "").is_ok());
    for (branch, point, names) in [
        ("", point.as_str(), ""),
        ("Tank", &point, "L*"),
        ("Tank", "x", ""),
        ("Tank", &"y".repeat(10_000), ""),
        ("Tank", "%n%n:", ""),
    ] {
        assert_eq!(code_of(page(branch, point, names)), Some(Code::INVALID_CONTINUATION), "{branch} {names}");
    }
    // One that was made up to look right leads behind a name, nowhere else.
    let forged = format!("{}\u{10ffff}", point.split_inclusive(':').next().expect("a mark"));
    assert_eq!(page("Tank", &forged, "").expect("a page").value.2.len(), 0);
}

#[test]
fn groups_stop_at_the_quota_though_they_are_removed_while_they_are_held() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let mut held = Vec::new();
    let most = Settings::default().quotas.groups;
    let refused = loop {
        match server.add_group("", 1, 1000, 7, &None, &None, 0, &iid::<dyn IOPCItemMgt>()) {
            Ok(added) => {
                let (handle, _, reference) = added.value;
                held.push(
                    site.client.narrow::<dyn IOPCItemMgt>(reference.expect("an object")).expect("a group"),
                );
                if held.len() % 2 == 0 {
                    assert_eq!(server.remove_group(handle, 0).expect("a group").code, Code::IN_USE.signed());
                }
            }
            Err(failure) => break Code::of(&failure),
        }
        assert!(held.len() <= most, "they never end");
    };
    assert_eq!((refused, held.len()), (Code::OUT_OF_MEMORY, most));
    is_served(&site);
    drop((held, server));
    super::until("all of it ends", || site.server.engine().clients() == 0 && site.node.exported().is_empty());
}

/// Ten thousand sinks for one group: as many as an account may have, and each that is refused is told so.
#[test]
fn sinks_stop_at_their_limit() {
    let site = Site::new();
    let server = site.connect::<dyn DataAccessServer>();
    let (_, group) = add_group::<dyn DataAccessGroup>(&site, &server, "", 10);
    group.add_items(&[def("Tank.Level", 1)]).expect("it lives");
    let (tell, told) = channel();
    let mut held: Vec<Subscription> = Vec::new();
    let mut refused = 0;
    for _ in 0..10_000 {
        let tell = tell.clone();
        match group
            .signals()
            .on(move |change: DataAccessGroupOnDataChange| tell.send(change.items.len()).unwrap_or_default())
        {
            Ok(one) => held.push(one),
            Err(failure) => {
                assert!(failure.code().is_some_and(|code| code.starts_with("0x80040201")), "{failure}");
                refused += 1;
            }
        }
        if refused >= 100 {
            break;
        }
    }
    assert!((1..=256).contains(&held.len()) && refused == 100, "{} sinks", held.len());
    assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
    is_served(&site);
    held.clear();
    let io = group.query::<dyn IOPCAsyncIO2>().expect("it can be asked").expect("it has it");
    super::until("nobody listens", || code_of(io.get_enable()) == Some(Code::NO_CONNECTION));
}

#[test]
fn a_status_is_told_whatever_was_asked_before() {
    let site = Site::new();
    let server = site.connect::<dyn IOPCServer>();
    for code in [i32::MIN, -1, 0, 1, i32::MAX] {
        for locale in [0, 0x409, u32::MAX] {
            drop(server.get_error_string(code, locale));
        }
    }
    for handle in [0, 1, u32::MAX] {
        assert_eq!(code_of(server.remove_group(handle, -1)), Some(Code::INVALID_HANDLE));
    }
    assert!(server.get_status().expect("an answer").is_some());
}

/// What clients have is memory of the node, whatever their own quotas allow.
#[test]
fn items_count_as_memory_of_the_node() {
    let quotas = everywire::Quotas { memory: Some(32 << 20), ..everywire::Quotas::default() };
    let node: Node = Node::builder().quotas(quotas).build().into();
    let table = everywire_opc::Table::new();
    table.extend([(everywire_opc::Item::new("a", VarType::I4), Data::I4(1))]);
    let info = everywire_opc::server::ServerInfo::named("Test.Memory");
    let server =
        everywire_opc::server::Server::serve(&node, info, std::sync::Arc::new(table), Settings::default())
            .expect("it serves");
    let client = server.engine().client().expect("a client");
    let group = client.add_group(everywire_opc::GroupState::default()).expect("a group");
    let defs = vec![everywire_opc::ItemDef { id: "a".into(), ..everywire_opc::ItemDef::default() }; 1000];
    let full = (0..500).any(|_| {
        let added = group.add_items(&defs, everywire_opc::Moment::default()).expect("it lives");
        added.iter().any(|added| matches!(added, Err(Code::OUT_OF_MEMORY)))
    });
    assert!(full, "a client may have 500,000 items, but the node has no memory for them");
    // The node has more than it was told where two of the largest messages of its wires need more.
    let (held, quarter) = (node.memory_held(), node.keeps(0, 0));
    assert!((quarter - (1 << 20)..=quarter).contains(&held), "{held} bytes of {quarter}");
    drop((group, client));
    assert_eq!(node.memory_held(), 0);
    // And what is held when the server ends.
    let client = server.engine().client().expect("a client");
    let group = client.add_group(everywire_opc::GroupState::default()).expect("a group");
    group.add_items(&defs, everywire_opc::Moment::default()).expect("it lives");
    assert!(node.memory_held() > 0);
    drop((group, client, server));
    assert_eq!(node.memory_held(), 0);
}
