//! Programs served and called as COM objects.
#![allow(clippy::unwrap_used)]

use crate::support::{PROGRAM, Running, Said, Scratch, data, run, run_in, until};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) const LAMP: &str = "606de2c5-1a8c-11d3-b68f-00c04f8b7214";
const LEDGER: &str = "606de2c5-1a8c-11d3-b68f-00c04f8b7216";
const SECRET: &str = "open sesame";

/// `lamp.py` behind the class `Lamp`, for the user `ada`.
pub(crate) struct Lamp {
    server: Running,
    /// Without a user.
    pub(crate) address: String,
    pub(crate) scratch: Scratch,
}

/// A file that only its owner may read.
fn private(scratch: &Scratch, name: &str, text: &str) -> String {
    let path = scratch.path(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn users(scratch: &Scratch) -> String {
    format!(
        "dcom://127.0.0.1:0?users={}",
        private(scratch, "users", &format!("# who may call\nada:{SECRET}\n"))
    )
}

impl Lamp {
    pub(crate) fn open() -> Self {
        Self::with(&[], &[])
    }

    fn with(env: &[(&str, String)], more: &[&str]) -> Self {
        let scratch = Scratch::new();
        let (contract, exec) = (data("lamp.midl"), format!("python3 {}", data("lamp.py")));
        let on = users(&scratch);
        let mut arguments = vec!["serve", &contract, "--interface", "Lamp", "--exec", &exec, "--on", &on];
        arguments.extend(more);
        let mut server = Running::start_in(env, &arguments);
        let address = server.line();
        Self { server, address, scratch }
    }

    /// The address as ada has it.
    fn own(&self) -> String {
        of_ada(&self.address)
    }

    fn call(&self, words: &[&str]) -> Said {
        run(&[&["call", &self.own()], words].concat())
    }

    /// With what `ada` needs in the environment.
    fn env(&self) -> (&'static str, String) {
        ("EVERYWIRE_DCOM_CREDENTIALS", credentials(&self.scratch))
    }
}

pub(crate) fn of_ada(address: &str) -> String {
    address.replace("dcom://", &format!("dcom://ada:{}@", SECRET.replace(' ', "%20")))
}

fn credentials(scratch: &Scratch) -> String {
    private(scratch, "credentials", &format!("username=ada\npassword={SECRET}\n"))
}

#[test]
fn a_class_is_called_with_and_without_its_contract() {
    let lamp = Lamp::open();
    assert!(
        lamp.address.starts_with("dcom://127.0.0.1:") && lamp.address.ends_with(LAMP),
        "{}",
        lamp.address
    );
    assert!(!lamp.address.contains(":0/"), "the port that was bound is told: {}", lamp.address);
    assert_eq!(lamp.call(&["Switch", "true"]).good(), "1");
    assert_eq!(lamp.call(&["Switch", "on=false", "-c", &data("lamp.midl")]).good(), "2");
    assert_eq!(lamp.call(&["Switch", "true", "-c", &data("lamp.midl"), "--interface", "Lamp"]).good(), "3");
    assert_eq!(lamp.call(&["Switch", "true", "-c", &data("lamp.midl"), "--interface", "ILamp"]).good(), "4");
    assert_eq!(lamp.call(&["Colour"]).good(), "white");
    assert_eq!(lamp.call(&["Colour=light green"]).good(), "");
    assert_eq!(lamp.call(&["Colour"]).good(), "light green");
    let answer = lamp.call(&["Switch", "true", "--json"]).json();
    assert_eq!((&answer["value"], &answer["wire"]), (&json!({"return": 5}), &json!("dcom")));
    // A VARIANT_BOOL, and a long.
    assert_eq!(answer["bytes"], json!({"sent": 2, "received": 4}));
    assert!(answer["peer"].as_str().unwrap().starts_with("tcp:127.0.0.1:"));
}

#[test]
fn automation_values_are_json() {
    let lamp = Lamp::open();
    let again = |value: serde_json::Value| {
        let answer = lamp.call(&["Remember", &value.to_string(), "--json"]).json();
        assert_eq!(answer["value"], json!({"return": value}));
    };
    for (shape, value) in [
        ("i32", json!(-5)),
        ("u64", json!(u64::MAX)),
        ("boolean", json!(true)),
        ("f64", json!(2.5)),
        ("text", json!("grüße")),
        ("DATE", json!("2003-01-31T12:30:00")),
        ("CURRENCY", json!("-12.5")),
        ("DECIMAL", json!("79228162514264337593543950335")),
        ("SCODE", json!(-2_147_467_259)),
        ("nothing", json!(null)),
        ("NULL", json!(null)),
        ("octets", json!({"base64": "AQI="})),
        ("sequence<text>", json!(["a", "b"])),
        ("sequence<sequence<i32>>", json!([[1, 2], [3, 4]])),
        (
            "sequence<any value>",
            json!([{"shape": "i32", "value": 1}, {"shape": "DATE", "value": "1899-12-30T00:00:00"}]),
        ),
    ] {
        again(json!({"shape": shape, "value": value}));
    }
    assert_eq!(lamp.call(&["Remember", "plain words"]).good(), "\"plain words\"");
    assert_eq!(lamp.call(&["Fade", "[3, 2, 1]"]).good(), "[3, 2, 1]");
    let wrong = lamp.call(&["Remember", r#"{"shape": "DATE", "value": "yesterday"}"#]);
    assert!(wrong.failed(2)[1].contains("a date such as 2003-01-31T12:30:00"), "{}", wrong.err);
}

#[test]
fn what_goes_wrong_has_a_code_of_its_own() {
    let lamp = Lamp::open();
    let broken = lamp.call(&["Break", "4660", "--json"]);
    assert_eq!((broken.code, &broken.json()["error"]["code"]), (1, &json!("0x80041234")));
    assert!(broken.out.contains("the bulb is broken"), "{}", broken.out);

    let as_other = lamp.address.replace("dcom://", "dcom://ada:wrong@");
    for address in [&as_other, &lamp.address.replace("dcom://", "dcom://eve:x@")] {
        let said = run(&["call", address, "Colour"]);
        assert!(
            said.failed(4)[0].contains("cannot be asked") && !said.err.contains("not tell"),
            "{}",
            said.err
        );
    }
    let nobody = run(&["call", &lamp.address, "Colour", "-c", &data("lamp.midl")]);
    assert!(
        nobody.failed(4)[1].contains("need credentials") && nobody.err.contains("USER:PASSWORD@"),
        "{}",
        nobody.err
    );
    for level in ["none", "connect"] {
        let low = run(&["call", &format!("{}?level={level}", lamp.own()), "Colour"]);
        assert!(low.failed(4)[2].contains("level"), "{level}: {}", low.err);
    }
    assert_eq!(run(&["call", &format!("{}?level=privacy", lamp.own()), "Colour"]).good(), "white");
    let unknown = run(&["call", &lamp.own().replace(LAMP, "Nothing"), "Colour"]);
    assert!(
        unknown.failed(1)[1].contains("REGDB_E_CLASSNOTREG") && unknown.err.contains("0x80040154"),
        "{}",
        unknown.err
    );
    assert_eq!(run(&["call", &of_ada("dcom://127.0.0.1:1/x"), "Colour"]).code, 3);
    assert!(lamp.call(&["Swich", "true"]).failed(2)[2].contains("did you mean `Switch`?"));
    for wrong in ["?level=high", "?nonsense=1", "?mech=rot13"] {
        assert_eq!(run(&["call", &format!("{}{wrong}", lamp.own()), "Colour"]).code, 2, "{wrong}");
    }
}

#[test]
fn success_has_codes_too() {
    let lamp = Lamp::open();
    let said = lamp.call(&["Break", "-1"]);
    assert_eq!((said.code, said.err.trim()), (0, "succeeded with 0x00000001 (S_FALSE)"), "{}", said.err);
    let json = lamp.call(&["Break", "-1", "--json"]).json();
    assert_eq!((&json["ok"], &json["status"]), (&json!(true), &json!("0x00000001")));
    assert!(lamp.call(&["Switch", "true", "--json"]).json().get("status").is_none());
    let wrong = lamp.call(&["Break", "-2"]);
    assert!(wrong.code == 1 && wrong.err.contains("does not fit"), "{}", wrong.err);
}

#[test]
fn nobody_is_let_in_by_mistake() {
    let scratch = Scratch::new();
    let (contract, exec) = (data("lamp.midl"), format!("python3 {}", data("lamp.py")));
    let serve = |on: &str| run(&["serve", &contract, "--interface", "Lamp", "--exec", &exec, "--on", on]);
    let open = serve("dcom://127.0.0.1:0");
    assert!(open.failed(2)[2].contains("?users=FILE") && open.err.contains("level=none"), "{}", open.err);
    let path = scratch.path("shared");
    std::fs::write(&path, "ada:x\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let shared = serve(&format!("dcom://127.0.0.1:0?users={path}"));
    assert!(shared.failed(4)[1].contains("mode 644"), "{}", shared.err);
    let keyed = serve("dcom://127.0.0.1:1/Lamp?level=none");
    assert!(keyed.failed(2)[2].contains("--key Lamp"), "{}", keyed.err);

    let on = ["--on", "dcom://127.0.0.1:0?level=none", "--key", "desk"];
    let mut server =
        Running::start(&[&["serve", &contract, "--interface", "Lamp", "--exec", &exec], &on[..]].concat());
    let address = server.line();
    assert!(address.ends_with("/desk?level=none"), "{address}");
    assert_eq!(run(&["call", &address, "Colour"]).good(), "white");
    let described = run(&["describe", &address]);
    assert!(described.good().contains("none: no authentication"), "{}", described.out);
}

#[test]
fn sockets_of_the_machine_need_no_password() {
    let scratch = Scratch::new();
    let (contract, exec) = (data("lamp.midl"), format!("python3 {}", data("lamp.py")));
    for transport in ["unix", "shm"] {
        let on = format!("dcom+{transport}://{}", scratch.path(transport));
        let mut server =
            Running::start(&["serve", &contract, "--interface", "Lamp", "--exec", &exec, "--on", &on]);
        let address = server.line();
        assert!(address.ends_with(&format!("#{LAMP}")), "{address}");
        assert_eq!(run(&["call", &address, "Switch", "true"]).good(), "1");
    }
}

#[test]
fn a_class_is_described_in_every_form() {
    let lamp = Lamp::open();
    let text = run(&["describe", &lamp.own()]);
    for part in [
        "level integrity",
        &format!("class        Lamp ({LAMP})"),
        "Switch(on: VARIANT_BOOL) -> i32",
        "attribute text Colour",
        "signal Switched(VARIANT_BOOL on, i32 times)",
        "also         ILamp (606de2c5-1a8c-11d3-b68f-00c04f8b7211)",
    ] {
        assert!(text.good().contains(part), "{part} in {}", text.out);
    }
    // What the object tells reads as the contract that it was served by.
    let file = lamp.scratch.path("told.midl");
    std::fs::write(&file, run(&["describe", &lamp.own(), "--as", "midl"]).good()).unwrap();
    let definition = |file: &str, name: &str| run(&["describe", file, name, "--as", "json"]).json();
    for name in ["Lamp", "ILamp", "ILampEvents"] {
        assert_eq!(definition(&file, name), definition(&data("lamp.midl"), name));
    }
    let idl = run(&["describe", &lamp.own(), "--as", "omg"]);
    assert!(idl.good().contains("attribute wstring Colour;"), "{}", idl.out);
    let told = run(&["describe", &lamp.own(), "--json"]).json();
    let class = &told["value"]["interfaces"][0];
    assert_eq!((&class["kind"], &class["id"]), (&json!("class"), &json!(LAMP)));
    assert_eq!(class["signals"][0]["listener"], json!("ILampEvents"));
    assert_eq!(run(&["describe", &of_ada("dcom://127.0.0.1:1/x")]).code, 3);
    assert_eq!(run(&["describe", &lamp.own().replace(LAMP, "Nothing")]).code, 1);
}

#[test]
fn a_node_lists_what_it_serves() {
    let lamp = Lamp::open();
    let node = lamp.own().replace(&format!("/{LAMP}"), "");
    let rows = run(&["list", &node]);
    let row = |name: &str| rows.good().lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("Lamp ").contains(LAMP), "{}", rows.out);
    assert!(row("Endpoint mapper").contains("tcp:127.0.0.1:"), "{}", rows.out);
    // There are users, and no keys of Kerberos.
    assert!(row("OXID resolver").ends_with("Negotiate, NTLM"), "{}", rows.out);
    let all = run(&["list", &node, "--json"]).json();
    let found = all["value"].as_array().unwrap().iter().find(|one| one["name"] == "Lamp").unwrap();
    assert_eq!(found["details"]["interface"], json!(LAMP));
    assert_eq!(run(&["list", &of_ada("dcom://127.0.0.1:1")]).code, 3);
    assert_eq!(run(&["list", &lamp.address.replace(&format!("/{LAMP}"), "")]).code, 4);
}

#[test]
fn signals_are_watched_with_and_without_a_contract() {
    let lamp = Lamp::open();
    let mut all = Running::start(&["watch", &lamp.own(), "--count", "2", "--no-color"]);
    let mut one = Running::start(&["watch", &lamp.own(), "Painted", "--count", "1", "--json"]);
    let with = data("lamp.midl");
    let mut typed =
        Running::start(&["watch", &lamp.own(), "-c", &with, "--interface", "Lamp", "--count", "2", "--json"]);
    // Nobody tells when they listen: paint until all have heard it.
    let heard = AtomicBool::new(false);
    let painter = std::thread::scope(|scope| {
        scope.spawn(|| {
            let paint = |_: &u32| !heard.load(Relaxed) && lamp.call(&["Colour=red"]).code == 0;
            (0..1000).take_while(paint).count()
        });
        let lines = (all.line(), one.line(), typed.line());
        all.line();
        typed.line();
        heard.store(true, Relaxed);
        lines
    });
    assert!(
        painter.0.ends_with(&format!("{LAMP} ILampEvents.Painted {{colour: \"red\"}} from ada")),
        "{}",
        painter.0
    );
    for line in [painter.1, painter.2] {
        let heard: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&heard["signal"], &heard["fields"]), (&json!("Painted"), &json!({"colour": "red"})));
        assert_eq!((&heard["interface"], &heard["sender"]), (&json!("ILampEvents"), &json!("ada")));
    }
    let none = run(&["watch", &lamp.own(), "Pained"]);
    assert!(none.failed(2)[2].contains("did you mean `Painted`?"), "{}", none.err);
    assert_eq!(run(&["watch", &of_ada("dcom://127.0.0.1:1/x")]).code, 3);
    assert_eq!(run(&["watch", &lamp.address.replace("dcom://", "dcom://ada:wrong@")]).code, 4);
}

#[test]
fn each_object_of_a_class_has_a_program_that_ends_with_it() {
    let scratch = Scratch::new();
    let log = scratch.path("log");
    let mut lamp = Lamp::with(&[("LAMP_LOG", log.clone())], &["--class"]);
    // Each call asks for an object of its own.
    for _ in 0..3 {
        assert_eq!(lamp.call(&["Switch", "true"]).good(), "1");
    }
    let said = std::fs::read_to_string(&log).unwrap();
    let began: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("began ")).collect();
    assert_eq!(began.len(), 3);
    // The callers gave their references back when they ended, and so the programs end, or are ended when that takes them too long.
    let is_there = |process: &&str| std::path::Path::new("/proc").join(process).exists();
    until("all have ended", || !began.iter().any(is_there));
    assert_eq!(lamp.server.end("-TERM").0, 0);
}

#[test]
fn programs_of_objects_hear_first_that_the_server_ends() {
    let scratch = Scratch::new();
    let log = scratch.path("log");
    let mut lamp = Lamp::with(&[("LAMP_LOG", log.clone()), ("LAMP_PARKS", "1".into())], &["--class"]);
    let address = lamp.own();
    let calls = [(); 2].map(|()| {
        let address = address.clone();
        std::thread::spawn(move || run(&["call", &address, "Switch", "true"]))
    });
    until("both wait", || {
        assert!(!calls[0].is_finished() && !calls[1].is_finished());
        std::fs::read_to_string(&log).unwrap_or_default().matches("parked").count() == 2
    });
    // They answer what they have, and nobody waits for the end of the grace.
    assert_eq!(lamp.server.end("-TERM").0, 0);
    for call in calls {
        assert_eq!(call.join().unwrap().good(), "-1");
    }
}

#[test]
fn a_table_of_classes_is_served() {
    let scratch = Scratch::new();
    std::fs::copy(data("lamp.midl"), scratch.path("lamp.midl")).unwrap();
    let (on, table) = (users(&scratch), scratch.path("classes"));
    let program = data("lamp.py");
    let lines = format!(
        "# what a registry would say\n\n{LAMP} lamp.midl Lamp python3 {program}\n-\tlamp.midl Ledger\tpython3 {program}\ndesk lamp.midl Lamp python3 {program}\n"
    );
    std::fs::write(&table, lines).unwrap();
    let refs = scratch.path("refs");
    let mut server = Running::start(&["serve", "--classes", &table, "--on", &on, "--ref-file", &refs]);
    let mut served = Vec::new();
    for (name, class) in [("Lamp", LAMP), ("Ledger", LEDGER), ("Lamp", "desk")] {
        let line = server.line();
        let (said, address) = line.split_once('\t').unwrap();
        assert!(said == name && address.ends_with(&format!("/{class}")), "{line}");
        served.push(of_ada(address));
    }
    assert_eq!(std::fs::read_to_string(&refs).unwrap().lines().count(), 3);
    assert_eq!(run(&["call", &served[0], "Switch", "true"]).good(), "1");
    assert_eq!(run(&["call", &served[2], "Switch", "true"]).good(), "1");
    // Types that have a word of their own, in arguments and results.
    let uuid = "606de2c5-1a8c-11d3-b68f-00c04f8b7215";
    let given = ["2003-01-31T12:30:00", "12.5", "-12.345", uuid, "2003-01-31T12:30:00.1234567Z"];
    let call = ["call", &served[1], "Enter", given[0], given[1], given[2], given[3], given[4], "-c"];
    let entered = run(&[&call[..], &[&data("lamp.midl"), "--json"]].concat()).json();
    let back = json!({"day_again": given[0], "amount_again": given[1], "rate_again": given[2],
        "account_again": given[3], "at_again": given[4]});
    assert_eq!(entered["value"], back);

    let bad =
        "a lamp.midl Lamp\nb lamp.midl Lomp x\nc nope.midl Lamp x\nd lamp.midl Lamp x\nD lamp.midl Lamp x\n";
    std::fs::write(&table, bad).unwrap();
    let wrong = run(&["serve", "--classes", &table, "--on", &on]);
    let why = wrong.failed(2)[1];
    for part in [
        "line 1: `a lamp.midl Lamp` is not CLASS CONTRACT INTERFACE COMMAND...",
        "line 2: there is no interface `Lomp`",
        "line 3: ",
        "line 5: the class `D` is on line 4 already",
    ] {
        assert!(why.contains(part), "{part} in {why}");
    }
    assert_eq!(run(&["serve", "--classes", &table, "--class", "--on", &on]).code, 2);
}

#[test]
fn classes_are_found_and_callers_known_by_files() {
    let lamp = Lamp::open();
    let node = lamp.address.replace(&format!("/{LAMP}"), "");
    let locator = lamp.scratch.path("locator");
    std::fs::write(&locator, format!("# where\n{LAMP}  {node}\nlight {}\n", lamp.address)).unwrap();
    let env = [("EVERYWIRE_DCOM_CLASSES", locator), lamp.env()];
    for class in [LAMP.to_uppercase(), "light".to_owned()] {
        assert_eq!(run_in(&env, &["call", &format!("dcom:{class}"), "Colour"]).good(), "white");
    }
    let unknown = run_in(&env, &["call", "dcom:dark", "Colour"]);
    assert!(unknown.failed(2)[1].contains("no line says where the class `dark` is"), "{}", unknown.err);
    assert!(run(&["call", "dcom:light", "Colour"]).failed(2)[1].contains("EVERYWIRE_DCOM_CLASSES"));
    let missing = [("EVERYWIRE_DCOM_CREDENTIALS", lamp.scratch.path("nothing"))];
    assert!(
        run_in(&missing, &["call", &lamp.address, "Colour"]).failed(2)[1]
            .contains("EVERYWIRE_DCOM_CREDENTIALS")
    );
}

#[test]
fn printed_references_work_again() {
    let scratch = Scratch::new();
    let refs = scratch.path("refs");
    let lamp = Lamp::with(&[("LAMP_REF", refs.clone())], &["--ref-file", &refs]);
    lamp.call(&["Colour=amber"]).good();
    // The lamp answers with itself.
    let printed = lamp.call(&["Mirror", "null"]);
    let reference = printed.good();
    assert!(reference.starts_with("objref:") && reference.ends_with(':'), "{reference}");
    // Another process calls it by that, and has to say who it is.
    let contract = data("lamp.midl");
    let call = ["call", reference, "Colour", "-c", &contract, "--interface", "ILamp"];
    assert_eq!(run_in(&[lamp.env()], &call).good(), "amber");
    assert_eq!(run_in(&[lamp.env()], &["call", reference, "Colour"]).good(), "amber");
    assert_eq!(run(&call).code, 4);
    // A reference that was received is passed on.
    let mirrored = lamp.call(&["Mirror", &format!("other={reference}")]);
    assert_eq!(run_in(&[lamp.env()], &["call", mirrored.good(), "Colour"]).good(), "amber");
    // A class is no object before somebody asks for one.
    let class = lamp.call(&["Mirror", &lamp.address]);
    assert!(class.failed(2)[1].contains("names a class"), "{}", class.err);
}

#[test]
fn passwords_are_shown_nowhere() {
    let lamp = Lamp::open();
    let (contract, own) = (data("lamp.midl"), lamp.own());
    let (node, dead) = (own.replace(&format!("/{LAMP}"), ""), of_ada("dcom://127.0.0.1:1/x"));
    let spoilt = own.replace("@127", "@:127");
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["call", &own, "Colour"],
        vec!["call", &own, "Nothing"],
        vec!["call", &own, "Break", "1"],
        vec!["call", &spoilt, "Colour"],
        vec!["describe", &own],
        vec!["describe", &own, "--offline"],
        vec!["describe", &own, "Lamp"],
        vec!["list", &node],
        vec!["list", &spoilt],
        vec!["watch", &own, "Nothing"],
        vec!["trace", &own],
        vec!["trace", &own, "--on", "nowhere"],
        vec!["trace", &node, "--on", &dead],
        vec!["serve", &contract, "--interface", "Lamp", "--exec", "true", "--on", &own],
        vec!["serve", &contract, "--interface", "Lamp", "--exec", "true", "--on", &spoilt],
    ];
    for verb in ["list", "watch", "describe"] {
        commands.push(vec![verb, &dead]);
    }
    commands.push(vec!["call", &dead, "Colour"]);
    for mut command in commands {
        for form in [None, Some("--json")] {
            command.extend(form);
            let said = run(&command);
            for secret in [SECRET, "sesame"] {
                assert!(
                    !said.out.contains(secret) && !said.err.contains(secret),
                    "{command:?}: {} {}",
                    said.out,
                    said.err
                );
            }
        }
    }
    // Not to other processes either, where a file says it.
    let env = [lamp.env()];
    let mut watch = Command::new(PROGRAM);
    watch.args(["watch", &lamp.address]).envs(env).stdout(std::process::Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let line = std::fs::read(format!("/proc/{}/cmdline", watch.id())).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains("sesame"));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn code_is_generated_from_midl() {
    let scratch = Scratch::new();
    let (contract, out) = (data("lamp.midl"), scratch.path("generated"));
    run(&["gen", "rust", &contract, "--out", &out]).good();
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    let code: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(code.contains("ILamp") && code.contains(LAMP), "{code}");
    run(&["gen", "rust", &contract, "--out", &out, "--check"]).good();
}

#[test]
fn references_that_cannot_be_read_are_usage() {
    for wrong in ["objref:abc:", "objref:TUVPVw==:", "objref:***"] {
        for verb in [&["call", wrong, "Colour"][..], &["describe", wrong]] {
            let said = run(verb);
            assert!(said.failed(2)[2].contains("objref:..."), "{}", said.err);
        }
    }
}

#[test]
fn classes_are_listed_by_their_clsid() {
    let scratch = Scratch::new();
    let (contract, exec) = (data("lamp.midl"), format!("python3 {}", data("lamp.py")));
    let (on, class) = (users(&scratch), "606de2c5-1a8c-11d3-b68f-00c04f8b7299");
    // The contract tells only the interface of the objects: the key is the class.
    let named = ["serve", &contract, "--interface", "ILamp", "--exec", &exec, "--class", "--key", class];
    let mut server = Running::start(&[&named[..], &["--on", &on]].concat());
    let address = server.line();
    let node = of_ada(address.split(class).next().unwrap());
    let all = run(&["list", &node, "--json"]).json();
    let of = |interface: &str| {
        let mut found = all["value"].as_array().unwrap().iter();
        found.find(|one| one["details"]["interface"] == interface).map(|one| one["name"].clone())
    };
    assert_eq!(of(class), Some(json!("ILamp (class)")), "{all}");
}

#[test]
fn a_class_needs_a_wire_with_classes() {
    let (contract, exec) = (data("lamp.midl"), format!("python3 {}", data("lamp.py")));
    let on = "iiop://127.0.0.1:0";
    let said = run(&["serve", &contract, "--interface", "Lamp", "--exec", &exec, "--class", "--on", on]);
    let lines = said.failed(2);
    assert!(lines[1].contains("nobody can ask for objects") && lines[2].contains("dcom"), "{}", said.err);
}
