use super::Plant;
use crate::server::CLASS;
use everywire::{Kind, Node};
use everywire_opc::remote::{Address, Branch, DataAccess, servers};
use everywire_opc::{Access, Code, Data, VarType};

/// Both versions, as options of the address.
const VERSIONS: [(&str, &str); 2] = [("", "3.0"), ("&version=2", "2.05a")];

#[test]
fn a_machine_tells_its_servers_and_one_is_found_by_its_name() {
    let plant = Plant::new();
    let host = Address::parse(&format!("opcda://{}?level=none", plant.place)).expect("an address");
    let found = servers(&plant.client, &host).expect("OpcEnum");
    let [server] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((server.class.as_str(), server.prog_id.as_str()), (CLASS, "Everywire.Tank.1"));
    assert_eq!(server.version_independent.as_deref(), Some("Everywire.Tank"));
    assert_eq!(server.versions, ["3.0", "2.0"]);
    let by_name = DataAccess::at(&plant.client, host.with_server("Everywire.Tank")).expect("a server");
    let status = by_name.status().expect("an answer");
    assert_eq!(
        (status.vendor.as_str(), status.state_name, status.version),
        ("Everywire", "running", (1, 0, 0))
    );
    let unknown = DataAccess::at(&plant.client, host.with_server("Nobody.1")).err().expect("no such name");
    assert!(unknown.hint().is_some_and(|hint| hint.contains("0x800401F3")), "{unknown:?}");
    let absent = DataAccess::at(&plant.client, host.with_server("4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2aff"));
    let absent = absent.err().expect("no such class");
    assert!(absent.hint().is_some_and(|hint| hint.contains("0x80040154")), "{absent:?}");
}

#[test]
fn who_is_not_there_is_explained() {
    let mut plant = Plant::new();
    plant.stop();
    let failure = DataAccess::connect(&plant.client, &plant.address("")).err().expect("nobody is there");
    assert_eq!(failure.kind(), Kind::Unreachable);
    assert!(failure.hint().is_some_and(|hint| hint.contains("0x800706BA")), "{failure:?}");
}

#[test]
fn both_versions_browse_the_same_tree() {
    let plant = Plant::new();
    for (options, version) in VERSIONS {
        let server = plant.connect(options);
        assert_eq!(server.version().expect("an answer"), version);
        let mut root = server.browse(&Branch::root()).expect("the root");
        root.sort_by_key(|element| element.is_item);
        let shown: Vec<_> = root.iter().map(|e| (e.name.as_str(), e.has_children, e.is_item)).collect();
        assert_eq!(shown, [("Tank", true, false), ("Name", false, true)], "{version}");
        let tank = server.browse(&root[0].branch).expect("a branch");
        let ids: Vec<_> = tank.iter().map(|element| element.id.as_str()).collect();
        assert_eq!(ids, ["Tank.Level", "Tank.Setpoint", "Tank.Valve"], "{version}");
        let named = server.browse(&Branch::named("Tank")).expect("a branch");
        assert_eq!(named.len(), 3, "{version}");
        // The position does not stay where it was.
        assert_eq!(server.all_items().expect("items").len(), 4, "{version}");
        assert!(server.browse(&Branch::named("Nothing")).is_err(), "{version}");
    }
}

#[test]
fn both_versions_read_write_and_tell_properties() {
    let plant = Plant::new();
    for (options, version) in VERSIONS {
        let server = plant.connect(options);
        let read = server.read(&["Tank.Level", "x", "Name", "Tank.Level"]).expect("an answer");
        let data: Vec<_> =
            read.into_iter().map(|one| one.map(|vqt| (vqt.data, vqt.quality.is_good()))).collect();
        let level = Ok((Data::R4(50.0), true));
        let name = Ok(("tank one".into(), true));
        assert_eq!(data, [level.clone(), Err(Code::UNKNOWN_ITEM), name, level], "{version}");
        let setpoint = if version == "3.0" { 33 } else { 44 };
        let written = server
            .write(&[
                ("x", Data::I2(1)),
                ("Tank.Setpoint", Data::I4(setpoint)),
                ("Tank.Level", Data::R4(1.0)),
            ])
            .expect("an answer");
        assert_eq!(written, [Err(Code::UNKNOWN_ITEM), Ok(Code::OK), Err(Code::BAD_RIGHTS)], "{version}");
        let held = plant.table.get("Tank.Setpoint").map(|vqt| vqt.data);
        assert_eq!(held, Some(Data::I4(setpoint).coerce(VarType::I2).expect("it fits")), "{version}");
        let infos = server.infos(&["Tank.Setpoint", "x"]).expect("an answer");
        let known = infos[0].expect("an item");
        assert_eq!(
            (known.canonical, known.access, infos[1]),
            (VarType::I2, Access::BOTH, Err(Code::UNKNOWN_ITEM))
        );
        let properties = server.properties("Tank.Level").expect("an item");
        let unit = properties.iter().find(|property| property.id == 100).expect("a unit");
        assert_eq!((&unit.value, unit.data_type), (&Ok("cm".into()), VarType::BSTR), "{version}");
        assert_eq!(properties.len(), 11, "{version}");
        let unknown = server.properties("x").expect_err("no item");
        assert_eq!(Code::of(&unknown), Code::UNKNOWN_ITEM, "{version}");
    }
}

#[test]
fn who_reads_again_after_a_restart_gets_a_new_object() {
    let mut plant = Plant::new();
    for (options, version) in VERSIONS {
        let server = plant.connect(options);
        assert!(server.read(&["Name"]).expect("an answer")[0].is_ok(), "{version}");
        plant.stop();
        plant.start("level=none");
        assert!(server.read(&["Name"]).expect("an answer again")[0].is_ok(), "{version}");
    }
}

#[test]
fn many_items_are_read_in_slices() {
    let plant = Plant::new();
    let ids: Vec<String> = (0..2500).map(|number| format!("x{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).chain(["Name"]).collect();
    for (options, version) in VERSIONS {
        let read = plant.connect(options).read(&ids).expect("an answer");
        assert_eq!(read.len(), 2501, "{version}");
        assert!(
            read[2500].is_ok() && read[..2500].iter().all(|one| *one == Err(Code::UNKNOWN_ITEM)),
            "{version}"
        );
    }
}

#[test]
fn an_address_without_a_server_says_what_is_missing() {
    let failure = DataAccess::connect(&Node::new(), "opcda://127.0.0.1:1").err().expect("no server is named");
    assert!(failure.to_string().contains("names no server"), "{failure}");
}
