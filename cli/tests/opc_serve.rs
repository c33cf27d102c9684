//! The program as an OPC server: of simulated items, of those of a file, and of a program's.
#![allow(clippy::unwrap_used)]

use crate::support::{Running, Said, Scratch, run, run_in};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

/// A server with an account, and what its client needs.
struct Plant {
    server: Running,
    /// `opcda://ada@HOST:PORT/NAME.1`.
    address: String,
    account: [(&'static str, String); 1],
    scratch: Scratch,
}

impl Plant {
    fn open(scratch: Scratch, words: &[&str]) -> Self {
        let private = |name: &str, text: &str| {
            let path = scratch.path(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        let on = format!("dcom://127.0.0.1:0?users={}", private("users", "ada:open sesame\n"));
        let account = private("account", "username=ada\npassword=open sesame\n");
        let mut server = Running::start(&[&["serve", "--on", &on], words].concat());
        let address = server.line().replace("opcda://", "opcda://ada@");
        Self { server, address, account: [("EVERYWIRE_DCOM_CREDENTIALS", account)], scratch }
    }

    fn call(&self, item: &str, words: &[&str]) -> Said {
        let address = format!("{}/{}", self.address, item.replace(' ', "%20"));
        run_in(&self.account, &[&["call", address.as_str()], words].concat())
    }

    fn value(&self, item: &str) -> String {
        self.call(item, &["read"]).good().split('\t').take(2).collect::<Vec<_>>().join(" ")
    }

    /// Waits for what the server has to notice by itself.
    fn until(&self, item: &str, value: &str) {
        let limit = Instant::now() + Duration::from_secs(60);
        while self.value(item) != value {
            assert!(Instant::now() < limit, "{item} is {}", self.value(item));
        }
    }
}

#[test]
fn a_simulated_plant_is_read_and_written() {
    let mut plant = Plant::open(Scratch::new(), &["--opc", "Plant.Demo", "--simulate"]);
    assert!(plant.address.ends_with("/Plant.Demo.1"), "{}", plant.address);
    assert_eq!(plant.value("Quality.Bad").split(' ').nth(1), Some("bad:"));
    plant.call("Bucket Brigade.Int4", &["write", "7"]).good();
    assert_eq!(plant.value("Bucket Brigade.Int4"), "7 good");
    let counted = plant.call("Counters.Seconds", &["read", "--json"]).json();
    assert_eq!(counted["value"]["type"], "VT_UI4", "{counted}");
    let refused = plant.call("Random.Real8", &["write", "7"]);
    assert!(refused.err.contains("OPC_E_BADRIGHTS"), "{}", refused.err);
    let host = plant.address.rsplit_once('/').unwrap().0;
    let listed = run_in(&plant.account, &["list", host]);
    assert!(listed.good().contains("Plant.Demo.1"), "{}", listed.out);
    let (code, rest) = plant.server.end("-TERM");
    assert_eq!(code, 0, "{rest}");
}

#[test]
fn items_of_a_file_follow_it() {
    let scratch = Scratch::new();
    let file = scratch.path("boiler.csv");
    let rows =
        |limit: &str| format!("item,type,value,access\nBoiler.Limit,R4,{limit},write\nBoiler.On,,true,\n");
    std::fs::write(&file, rows("90")).unwrap();
    let plant = Plant::open(scratch, &["--opc", "Plant.Boiler", "--csv", &file]);
    assert_eq!(plant.value("Boiler.Limit"), "90 good");
    assert_eq!(plant.value("Boiler.On"), "true good");
    plant.call("Boiler.Limit", &["write", "95"]).good();
    assert_eq!(plant.value("Boiler.Limit"), "95 good");
    std::fs::write(&file, rows("100.5")).unwrap();
    plant.until("Boiler.Limit", "100.5 good");
    drop(plant.scratch);
}

#[test]
fn items_of_a_program_are_read_and_written() {
    let program = r#"echo '{"item":"T","value":20.5,"type":"R4"}'; echo '{"item":"L","value":9,"write":true}'; read line; echo '{"id":1}'; read line; echo '{"id":2,"code":"OPC_E_RANGE"}'; read line"#;
    let plant = Plant::open(Scratch::new(), &["--opc", "Plant.Line", "--exec", program]);
    plant.until("L", "9 good");
    assert_eq!(plant.value("T"), "20.5 good");
    plant.call("L", &["write", "12"]).good();
    assert_eq!(plant.value("L"), "12 good");
    let refused = plant.call("L", &["write", "1000"]);
    assert!(refused.err.contains("OPC_E_RANGE"), "{}", refused.err);
}

#[test]
fn what_cannot_be_served_says_why() {
    let scratch = Scratch::new();
    let file = scratch.path("wrong.csv");
    std::fs::write(&file, "item,type,value\na,I2,70000\n").unwrap();
    let on = ["--on", "dcom://127.0.0.1:0?level=none"];
    for (words, why) in [
        (&["--opc", "A.B", "--csv", &file][..], "line 2: the value of `a`: `70000` is no VT_I2"),
        (&["--opc", "A.B", "--simulate", "--clsid", "nonsense"], "`nonsense` is no CLSID"),
        (&["--opc", "A.B", "--simulate", "--csv", &file], "cannot be used with"),
        (&["--simulate"], "missing: --opc"),
    ] {
        let said = run(&[&["serve"], words, &on].concat());
        assert!(said.code == 2 && said.err.contains(why), "{words:?}: {} {}", said.code, said.err);
    }
    let said = run(&["serve", "--opc", "A.B", "--simulate", "--on", "iiop://127.0.0.1:0"]);
    assert!(said.code == 2 && said.err.contains("nobody can ask for objects of a class"), "{}", said.err);
}
