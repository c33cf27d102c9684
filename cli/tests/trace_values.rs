//! What `trace` tells of values, which messages it tells, and the captures that it reads and writes.

use crate::support::{Bank, Bus, Running, Scratch, data, run, run_in};
use everywire_peers::here;
use serde_json::{Value as Json, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A file of the project.
fn file(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).to_string_lossy().into_owned()
}

fn messages(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The values of the first message that is or answers this.
fn values<'m>(messages: &'m [Json], what: &str) -> &'m Json {
    let is =
        |message: &&Json| message["summary"].as_str().unwrap().contains(what) || message["answers"] == what;
    &messages.iter().find(is).unwrap_or_else(|| panic!("no {what} in {messages:#?}"))["values"]
}

#[test]
fn values_of_other_orbs_are_told_with_their_contract() {
    // Captures of omniORB, JacORB, the JDK's ORB, ORBit2 and IIOP.NET.
    for orb in ["omni", "jac", "jdk", "orbit", "iiop"] {
        let capture = |call: &str| file(&format!("wires/giop/tests/golden/{orb}-{call}.pcap"));
        let contract = file("derby/contracts/bench.idl");
        let told = run(&["trace", &capture("in_out_int_call"), "-c", &contract, "--json"]);
        let told = messages(told.good());
        let is = |what: &str, name: &str| {
            told.iter().filter(|message| message[what].to_string().contains(name)).count()
        };
        assert!(
            is("summary", "in_out_int_call") > 0 && is("answers", "in_out_int_call") > 0,
            "{orb}: {told:#?}"
        );
        let valued: Vec<&Json> = told
            .iter()
            .filter(|message| {
                message["answers"] == "in_out_int_call"
                    || message["summary"].to_string().contains("in_out_int_call")
            })
            .collect();
        assert!(valued.iter().all(|message| message["values"]["v"].is_i64()), "{orb}: {valued:#?}");
        let text = run(&["trace", &capture("in_out_string_call"), "-c", &contract]);
        assert!(text.good().contains(": {v: \""), "{orb}: {}", text.out);
        // Without a contract nobody knows.
        assert!(!run(&["trace", &capture("in_out_string_call")]).good().contains("{v:"));
    }
}

/// Captures of Mono, and of Microsoft's client with Mono's service.
fn of_wcf(name: &str) -> String {
    file(&format!("wires/wcf/tests/golden/{name}.pcap"))
}

#[test]
fn values_of_wcf_are_told_with_their_contract() {
    // Binary with words of the session, binary over HTTP, and text.
    for capture in ["tcp-types", "msclient-tcp-types", "binhttp-types", "basic-types"] {
        let told = run(&["trace", &of_wcf(capture), "-c", &data("types.wsdl"), "--json"]);
        let told = messages(told.good());
        for (operation, value) in [
            ("EchoLong", json!(-5_000_000_000_i64)),
            ("EchoInts", json!([1, 200, 70000, 0])),
            ("EchoStrings", json!(["a", "b"])),
        ] {
            let action = format!("http://peers.test/ITypes/{operation}");
            let asks = |message: &&Json| {
                message["answers"].is_null() && message["summary"].as_str().unwrap().contains(&action)
            };
            let asked = told.iter().find(asks).unwrap_or_else(|| panic!("{capture}: no {action}"));
            assert_eq!(asked["values"], json!({ "v": value }), "{capture}");
            let answered = told.iter().find(|message| message["answers"] == *action);
            let answered = answered.unwrap_or_else(|| panic!("{capture}: no answer to {action}: {told:#?}"));
            assert_eq!(answered["values"], json!({ "return": value }), "{capture}");
        }
        // What the contract does not tell stays XML.
        let other = told.iter().find(|message| message["summary"].to_string().contains("/EchoBools,"));
        assert!(other.unwrap()["values"].as_str().unwrap().starts_with("<EchoBools"), "{capture}");
        let text = run(&["trace", &of_wcf(capture), "-c", &data("types.wsdl")]);
        assert!(text.good().contains(": {return: [1, 200, 70000, 0]}"), "{capture}: {}", text.out);
        assert!(!run(&["trace", &of_wcf(capture)]).good().contains("{return:"), "{capture}");
    }
}

#[test]
fn faults_of_wcf_are_told_as_the_exceptions_of_the_contract() {
    for capture in ["tcp-fault", "basic-fault", "ws-fault"] {
        let told = run(&["trace", &of_wcf(capture), "-c", &data("types.wsdl"), "--json"]);
        let told = messages(told.good());
        let to_fail = |message: &&Json| message["answers"] == "http://peers.test/ITypes/Fail";
        let answers: Vec<&Json> = told.iter().filter(to_fail).map(|message| &message["values"]).collect();
        assert_eq!(answers[0], &json!({"Code": 7, "Reason": "typed"}), "{capture}");
        // One without a detail of the contract's is shown as it came.
        assert!(answers[1].as_str().unwrap().contains("InternalServiceFault"), "{capture}: {answers:?}");
        let failed = run(&["trace", &of_wcf(capture), "--errors", "--json"]);
        assert_eq!(messages(failed.good()).len(), answers.len(), "{capture}: {}", failed.out);
    }
}

#[test]
fn callbacks_of_wcf_are_told_in_both_directions() {
    let told = run(&["trace", &of_wcf("tcp-duplex"), "-c", &file("derby/contracts/bench.wsdl")]);
    let ends =
        |what: &str, end: &str| told.good().lines().any(|line| line.contains(what) && line.ends_with(end));
    // A signal, a call from the service to its client, and its answer.
    assert!(ends("<- request http://tempuri.org/IHello/OnHello", ": {message: \"hi\"}"), "{}", told.out);
    assert!(ends("<- request http://tempuri.org/IHello/Ask", ": {x: 20}"), "{}", told.out);
    assert!(ends("to http://tempuri.org/IHello/Ask after", ": {return: 40}"), "{}", told.out);
    assert!(ends("to http://tempuri.org/IHello/AskBack after", ": {return: 41}"), "{}", told.out);
}

#[test]
fn a_relay_tells_values_and_writes_what_others_read() {
    let bank = Bank::open();
    let scratch = Scratch::new();
    let capture = scratch.path("relay.pcapng");
    let words = [
        "trace",
        &bank.reference,
        "--on",
        "iiop://127.0.0.1:0",
        "--json",
        "-c",
        &bank.contract,
        "--write",
        &capture,
    ];
    let mut relay = Running::start(&words);
    let opened: Json = serde_json::from_str(&relay.line()).unwrap();
    let reference = opened["value"]["reference"].as_str().unwrap();
    let call = |words: &[&str]| run(&[&["call", reference], words, &["-c", &bank.contract]].concat());
    call(&["deposit", "7"]).good();
    assert_eq!(call(&["withdraw", "1000"]).code, 1);
    let mut told: Vec<Json> = Vec::new();
    while !told.iter().any(|message| message["answers"] == "withdraw") {
        told.push(serde_json::from_str(&relay.line()).unwrap());
    }
    assert_eq!(*values(&told, "deposit"), json!({"amount": 7.0}));
    let answers: Vec<&Json> = told.iter().filter(|message| message["answers"].is_string()).collect();
    assert_eq!(answers[0]["values"], json!({"return": 7.0}));
    assert_eq!(answers[1]["values"], json!({"missing": 993.0, "reason": "too much"}));
    assert_eq!(relay.end("-TERM").0, 0);
    // It is read again, and some of it is chosen.
    let again = |words: &[&str]| run(&[&["trace", capture.as_str(), "--json"], words].concat());
    // A goodbye may have passed since.
    let total = messages(again(&[]).good()).len();
    assert!(total >= told.len());
    let count = |words: &[&str]| again(words).out.lines().count();
    assert_eq!(count(&["--operation", "deposit"]), 2);
    assert_eq!(count(&["--operation", "*posit"]), 2);
    assert_eq!(count(&["--operation", "hint"]), 0);
    assert!(count(&["--object", "Account"]) >= 4);
    assert_eq!(count(&["--object", "Nobody"]), 0);
    assert_eq!(count(&["--interface", "Account", "-c", &bank.contract]), 4);
    assert_eq!(count(&["--errors"]), 1);
    assert_eq!(count(&["--errors", "--operation", "deposit"]), 0);
    assert_eq!(count(&["--peer", "127.0.0.1"]), total);
    assert_eq!(count(&["--peer", "127.0.0.2"]), 0);
    if here("a_relay_tells_values_and_writes_what_others_read", &["tshark"]) {
        let fields = tshark(&capture, "giop", &["giop.request_op", "giop.type"]);
        assert!(fields.contains("deposit") && fields.contains("withdraw"), "{fields}");
        assert_eq!(fields.lines().count(), total, "{fields}");
        assert_eq!(tshark(&capture, "_ws.malformed || tcp.analysis.flags", &["frame.number"]), "");
        assert_eq!(
            tshark(&capture, "tcp.flags.syn == 1", &["frame.number"]).lines().count(),
            4,
            "two connections"
        );
    }
}

/// The fields of the packets that a display filter chooses.
fn tshark(capture: &str, filter: &str, fields: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.args(["-r", capture, "-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn a_bus_is_traced_with_its_values_and_by_other_tools() {
    const TEST: &str = "a_bus_is_traced_with_its_values_and_by_other_tools";
    if !here(TEST, &["dbus-daemon", "dbus-tools", "gdbus", "tshark"]) {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch.path("bus"));
    let (theirs, ours) = (scratch.path("theirs.pcap"), scratch.path("ours.pcapng"));
    let address = format!("dbus:{}", bus.address);
    let mut overheard = Running::start(&["trace", &address, "--json", "--write", &ours]);
    overheard.tells("listening to");
    let mut tool = Command::new("dbus-monitor")
        .args(["--address", &bus.address, "--pcap"])
        .stdout(std::fs::File::create(&theirs).unwrap())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // It listens once it has been told of; what it is told itself comes first.
    let asked = || {
        let words =
            ["call", "--address", &bus.address, "-d", "org.freedesktop.DBus", "-o", "/org/freedesktop/DBus"];
        let method = ["-m", "org.freedesktop.DBus.NameHasOwner", "a.b"];
        let done = Command::new("gdbus").args(words).args(method).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout), "(false,)\n");
    };
    let seen = || std::fs::read(&theirs).unwrap().windows(12).any(|window| window == b"NameHasOwner");
    while !seen() {
        asked();
    }
    // The answer may still be on its way to the file.
    asked();
    let _ = Command::new("kill").args(["-INT", &tool.id().to_string()]).status();
    tool.wait().unwrap();
    let mut heard = Vec::new();
    while !heard.iter().any(|message: &Json| message["answers"] == "NameHasOwner") {
        heard.push(serde_json::from_str(&overheard.line()).unwrap());
    }
    assert_eq!(overheard.end("-TERM").0, 0);
    let call = heard.iter().find(|message| message["summary"].to_string().contains("NameHasOwner")).unwrap();
    assert_eq!(call["values"], json!(["a.b"]), "{call}");
    assert!(
        call["from"].as_str().unwrap().starts_with(":1.") && call["to"] == "org.freedesktop.DBus",
        "{call}"
    );
    let answer = heard.iter().find(|message| message["answers"] == "NameHasOwner").unwrap();
    assert_eq!(answer["values"], json!([false]), "{answer}");
    // What the other tool wrote is read, and the other way round.
    let read = run(&["trace", &theirs, "--operation", "NameHasOwner"]);
    assert!(read.good().contains("NameHasOwner") && read.out.contains("(\"a.b\")"), "{}", read.out);
    assert!(read.out.contains("to NameHasOwner after") && read.out.contains("(false)"), "{}", read.out);
    let own = run(&["trace", &ours, "--operation", "NameHasOwner", "--peer", "org.freedesktop.DBus"]);
    assert!(own.good().contains("(\"a.b\")"), "{}", own.out);
    let members = tshark(&ours, "dbus", &["dbus.member"]);
    assert!(members.contains("NameHasOwner"), "{members}");
    assert_eq!(tshark(&ours, "_ws.malformed", &["frame.number"]), "");
}

#[test]
fn a_relay_to_a_bus_tells_values() {
    if !here("a_relay_to_a_bus_tells_values", &["dbus-daemon", "gdbus"]) {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch.path("bus"));
    let on = format!("unix:{}", scratch.path("relay"));
    let mut relay = Running::start(&["trace", &format!("dbus:{}", bus.address), "--on", &on, "--no-color"]);
    let printed = relay.line();
    assert!(printed.contains(&scratch.path("relay")), "{printed}");
    let words = ["call", "--address", &format!("unix:path={}", scratch.path("relay"))];
    let method = ["-d", "org.freedesktop.DBus", "-o", "/", "-m", "org.freedesktop.DBus.GetNameOwner", "a.b"];
    let done = Command::new("gdbus").args(words).args(method).output().unwrap();
    assert!(String::from_utf8_lossy(&done.stderr).contains("NameHasNoOwner"), "{done:?}");
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("to GetNameOwner after")) {
        lines.push(relay.line());
    }
    let told = lines.join("\n");
    assert!(told.contains("GetNameOwner") && told.contains(": (\"a.b\")"), "{told}");
    assert!(lines.last().unwrap().contains("ERROR") && lines.last().unwrap().contains("a.b"), "{told}");
    assert_eq!(relay.end("-TERM").0, 0);
}

#[test]
fn functions_of_dcop_say_what_their_values_are() {
    let scratch = Scratch::new();
    let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
    let mut server = Running::start_in(&env, &["dcopserver", "--socket", &scratch.path("socket")]);
    server.line();
    let exec = format!("python3 {}", data("bank.py"));
    let words = ["serve", &data("bank.idl"), "--interface", "Account", "--exec", &exec, "--on", "dcop:bank"];
    let mut bank = Running::start_in(&env, &words);
    bank.line();
    let (here, there) = (scratch.path("relays"), scratch.path("socket"));
    let mut relay = Running::start_in(
        &env,
        &["trace", &format!("unix:{there}"), "--on", &format!("unix:{here}"), "--no-color"],
    );
    relay.line();
    // Who calls has the cookie of the server, and goes through the relay.
    let cookies = std::fs::read(scratch.path("cookies")).unwrap();
    let (old, new) = (there.as_bytes(), here.as_bytes());
    assert_eq!(old.len(), new.len(), "the entries keep their lengths");
    let mut moved = cookies.clone();
    while let Some(at) = moved.windows(old.len()).position(|window| window == old) {
        moved[at..at + old.len()].copy_from_slice(new);
    }
    std::fs::write(scratch.path("moved"), [cookies, moved].concat()).unwrap();
    std::fs::set_permissions(scratch.path("moved"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = std::fs::read_to_string(scratch.path("where")).unwrap().lines().next().unwrap().to_owned();
    let through = [("DCOPSERVER", server.replace(&there, &here)), ("ICEAUTHORITY", scratch.path("moved"))];
    let said = run_in(&through, &["call", "dcop:bank/Account", "deposit", "7", "-c", &data("bank.idl")]);
    assert_eq!(said.good(), "7.0");
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("to deposit(double) after")) {
        lines.push(relay.line());
    }
    let told = lines.join("\n");
    assert!(told.contains("deposit(double)") && lines.iter().any(|line| line.ends_with(": (7.0)")), "{told}");
}
