//! The program as a client of OPC servers: of one in this process, at a port of its own, with an account.
#![allow(clippy::unwrap_used)]

use crate::support::{PROGRAM, Running, Scratch, run_in};
use everywire::Node;
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Item, Settings, Table, VarType};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a92";

struct Plant {
    table: Arc<Table>,
    _server: (Node, Server),
    /// `opcda://ada@HOST:PORT`.
    host: String,
    account: [(&'static str, String); 1],
    scratch: Scratch,
}

impl Plant {
    fn open() -> Self {
        let scratch = Scratch::new();
        let private = |name: &str, text: &str| {
            let path = scratch.path(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        let users = private("users", "ada:open sesame\n");
        let account = private("account", "username=ada\npassword=open sesame\n");
        let table = Arc::new(Table::new());
        table.add(Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), 50.5_f32);
        table.add(Item::new("Tank.Setpoint", VarType::I2).writable(), 10_i16);
        let node = Node::new();
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        OpcEnum::serve(&node).add(&info);
        let server = Server::serve(&node, info, Arc::clone(&table) as Arc<_>, Settings::default()).unwrap();
        let address = node.listen(&format!("dcom://127.0.0.1:0?users={users}")).unwrap();
        let place = address.trim_start_matches("dcom://").split(['/', '?']).next().unwrap();
        let place = place.rsplit('@').next().unwrap();
        let host = format!("opcda://ada@{place}");
        Self {
            table,
            _server: (node, server),
            host,
            account: [("EVERYWIRE_DCOM_CREDENTIALS", account)],
            scratch,
        }
    }

    fn run(&self, verb: &str, path: &str, words: &[&str]) -> crate::support::Said {
        let address = format!("{}{path}", self.host);
        run_in(&self.account, &[&[verb, address.as_str()], words].concat())
    }
}

#[test]
fn servers_are_listed_and_described() {
    let plant = Plant::open();
    let listed = plant.run("list", "", &["--json"]).json();
    let one = &listed["value"][0];
    assert_eq!(
        (&one["name"], &one["details"]["class"]),
        (&"Everywire.Tank.1".into(), &CLASS.into()),
        "{listed}"
    );
    assert_eq!(
        (&one["details"]["vendor"], &one["details"]["state"]),
        (&"Everywire".into(), &"running".into())
    );
    let items = plant.run("list", "/Everywire.Tank", &[]);
    assert_eq!(items.good(), "Tank.Level\nTank.Setpoint");
    let described = plant.run("describe", "/Everywire.Tank", &[]);
    let tree = described.good();
    assert!(tree.contains("speaks 3.0") && tree.contains("\n  Tank/\n    Level "), "{tree}");
    let shallow = plant.run("describe", "/Everywire.Tank", &["--depth", "1"]);
    assert!(!shallow.good().contains("Level"), "{}", shallow.out);
    let item = plant.run("describe", "/Everywire.Tank/Tank.Level", &["--json"]).json();
    let properties = item["value"]["properties"].as_array().unwrap();
    assert!(properties.iter().any(|one| one["id"] == 100 && one["value"] == "cm"), "{item}");
    let branch = plant.run("describe", "/Everywire.Tank/Tank", &[]);
    assert!(branch.good().contains("Setpoint"), "{}", branch.out);
    let unknown = plant.run("describe", "/Everywire.Tank/Tonk", &[]);
    assert!(
        unknown.code == 1 && unknown.err.contains("OPC_E_UNKNOWNITEMID"),
        "{} {}",
        unknown.code,
        unknown.err
    );
    // What to do is told, as it is to be written.
    let advice = format!("`everywire list '{}/Everywire.Tank'` shows the items", plant.host);
    for (verb, words) in [("describe", [].as_slice()), ("call", &["read"]), ("watch", &[])] {
        let unknown = plant.run(verb, "/Everywire.Tank/Tonk", words);
        assert!(unknown.err.contains(&advice), "{verb}: {}", unknown.err);
    }
}

#[test]
fn items_are_read_and_written_in_their_own_types() {
    let plant = Plant::open();
    let read = plant.run("call", &format!("/{CLASS}/Tank.Level"), &["read"]);
    assert!(read.good().starts_with("50.5\tgood\t2"), "{}", read.out);
    plant.run("call", "/Everywire.Tank/Tank.Setpoint", &["write", "42"]).good();
    assert_eq!(plant.table.get("Tank.Setpoint").unwrap().data, 42_i16.into());
    let json = plant.run("call", "/Everywire.Tank/Tank%2eSetpoint", &["read", "--json"]).json();
    assert_eq!((&json["value"]["value"], &json["value"]["type"]), (&42.into(), &"VT_I2".into()), "{json}");
    let wide = plant.run("call", "/Everywire.Tank/Tank.Setpoint", &["write", "70000"]);
    assert!(wide.code == 2 && wide.err.contains("VT_I2"), "{} {}", wide.code, wide.err);
    let refused = plant.run("call", "/Everywire.Tank/Tank.Level", &["write", "1"]);
    assert!(refused.code == 4 && refused.err.contains("OPC_E_BADRIGHTS"), "{} {}", refused.code, refused.err);
}

/// OPC's contract names no class of groups: each of a group's interfaces is asked for at the broker (QueryInterface).
#[test]
fn items_are_read_and_written_behind_a_broker_with_the_contract() {
    let plant = Plant::open();
    let place = plant.host.trim_start_matches("opcda://ada@");
    let file = plant.scratch.path("broker.toml");
    let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../opc/contracts/opcda.idl");
    let text = format!(
        "[listen.front]\naddress = \"dcom://127.0.0.1:0?users={}\"\n[[route]]\nname = \"tank\"\n\
         to = \"dcom://ada:open%20sesame@{place}/{CLASS}\"\ncontract = \"{}\"\ninterface = \"IOPCServer\"\n",
        plant.scratch.path("users"),
        contract.display()
    );
    std::fs::write(&file, text).unwrap();
    let mut broker = Running::start(&["broker", &file]);
    let line = broker.line();
    let host = line.split("dcom://").nth(1).unwrap().split('/').next().unwrap();
    let host = host.rsplit('@').next().unwrap();
    let run = |item: &str, words: &[&str]| {
        let address = format!("opcda://ada@{host}/{CLASS}/{item}");
        run_in(&plant.account, &[&["call", address.as_str()], words].concat())
    };
    let read = run("Tank.Level", &["read"]);
    assert!(read.good().starts_with("50.5\tgood\t2"), "{} {}", read.out, read.err);
    run("Tank.Setpoint", &["write", "42"]).good();
    assert_eq!(plant.table.get("Tank.Setpoint").unwrap().data, 42_i16.into());
    let refused = run("Tank.Level", &["write", "1"]);
    assert!(refused.code == 4 && refused.err.contains("OPC_E_BADRIGHTS"), "{} {}", refused.code, refused.err);
    // The server calls the broker back with its account, and the broker the program.
    let address = format!("opcda://ada@{host}/{CLASS}/Tank.Level");
    let watched = run_in(&plant.account, &["watch", &address, "--csv", "--count", "1"]);
    assert!(watched.good().contains("Tank.Level,50.5,good,2"), "{} {}", watched.out, watched.err);
    assert!(watched.err.contains("by callbacks"), "{}", watched.err);
}

#[test]
fn passwords_and_accounts_that_are_not_known_are_explained() {
    let plant = Plant::open();
    let with = plant.host.replace("ada@", "ada:secret@");
    let refused = run_in(&plant.account, &["list", &with]);
    assert!(refused.code == 2 && !refused.err.contains("secret@"), "{} {}", refused.code, refused.err);
    let nobody = plant.host.replace("ada@", "");
    let refused = run_in(&[], &["list", &nobody]);
    assert!(refused.code == 4 && refused.err.contains("0x80070005"), "{} {}", refused.code, refused.err);
    let unknown = plant.run("call", "/Everywire.Tonk/x", &["read"]);
    assert!(unknown.err.contains("0x800401F3"), "{} {}", unknown.code, unknown.err);
}

#[test]
fn values_are_watched_for_programs() {
    let plant = Plant::open();
    for (options, manner) in [("", "by callbacks"), ("?poll", "by polling: that was asked for")] {
        plant.table.set("Tank.Setpoint", 1_i16).unwrap();
        let address = format!("{}/{CLASS}/Tank.Level{options}", plant.host);
        let words = ["watch", &address, "Tank.Setpoint", "--csv", "--count", "3", "--rate", "10ms"];
        let mut child = Command::new(PROGRAM)
            .args(words)
            .envs(plant.account.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().as_deref(), Some("item,value,quality,timestamp"));
        let mut first = [lines.next().unwrap(), lines.next().unwrap()];
        first.sort();
        assert!(
            first[0].starts_with("Tank.Level,50.5,good,2") && first[1].starts_with("Tank.Setpoint,1,good,2"),
            "{first:?}"
        );
        plant.table.set("Tank.Setpoint", 2_i16).unwrap();
        assert!(lines.next().unwrap().starts_with("Tank.Setpoint,2,good,2"));
        assert_eq!(lines.next(), None);
        let done = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && told.contains(manner), "{told}");
    }
}
