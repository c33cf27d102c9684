//! What needs no server: contracts, generated code, captures, help.

use crate::support::{Bank, Said, Scratch, data, run};
use serde_json::{Value as Json, json};

#[test]
fn a_contract_is_printed_back() {
    let scratch = Scratch::new();
    let text = run(&["describe", &data("bank.idl")]);
    // What is printed reads as the same contract.
    let file = scratch.path("again.idl");
    std::fs::write(&file, text.good()).unwrap();
    assert_eq!(run(&["describe", &file]).good(), text.good());
    let json = |file: &str| run(&["describe", file, "--as", "json"]).json();
    assert_eq!(json(&file), json(&data("bank.idl")));

    let one = run(&["describe", &data("bank.idl"), "Branch"]);
    assert!(one.good().contains("interface Branch") && !one.good().contains("Account"), "{}", one.out);
    let none = run(&["describe", &data("bank.idl"), "Nope"]);
    assert!(none.failed(2)[1].contains("Bank::Account"));
}

#[test]
fn a_contract_is_json() {
    let whole = run(&["describe", &data("bank.idl"), "--json"]).json();
    let definitions = whole["value"]["definitions"].as_array().unwrap();
    let account = definitions.iter().find(|definition| definition["name"] == "Bank::Account").unwrap();
    assert_eq!(account["id"], json!("IDL:Bank/Account:1.0"));
    let operations = account["operations"].as_array().unwrap();
    let withdraw = operations.iter().find(|operation| operation["name"] == "withdraw").unwrap();
    assert_eq!(
        withdraw["signature"],
        json!("withdraw(amount: f64) -> f64 raises Bank::Overdrawn, Bank::Closed")
    );
    assert_eq!(withdraw["parameters"], json!([{"direction": "in", "name": "amount", "shape": "f64"}]));
    let title = json!({"name": "title", "shape": {"kind": "text", "bound": null, "text": "narrow"}, "readonly": false});
    assert_eq!(account["attributes"][0], title);
}

#[test]
fn a_reference_is_described_and_asked() {
    let bank = Bank::at(&["tcp", "unix"], &[]);
    let told = run(&["describe", &bank.reference, "-c", &bank.contract]);
    for part in [
        "IDL:Bank/Account:1.0",
        "tcp:127.0.0.1:",
        "unix:/",
        "no authentication, no encryption",
        "yes, in",
        "deposit(amount: f64)",
    ] {
        assert!(told.good().contains(part), "{part} in {}", told.out);
    }
    let json = run(&["describe", &bank.addresses[0], "--json"]).json();
    assert_eq!((&json["ok"], &json["value"]["answers"]), (&json!(true), &json!(true)));

    let absent = bank.addresses[0].replace("Account", "Nobody");
    let no = run(&["describe", &absent, "--json"]);
    assert_eq!((no.code, &no.json()["value"]["answers"]), (1, &json!(false)));
    let asked = run(&["describe", &absent, "--offline", "--json"]).json();
    assert_eq!(asked["value"]["answers"], Json::Null);
    assert_eq!(run(&["describe", "iiop://127.0.0.1:1/x"]).code, 3);
}

/// A host with port 0 and no component that says more: nobody can tell who may listen in, and it is not this process.
#[test]
fn a_reference_without_an_address_of_use_promises_no_security() {
    let ior = "IOR:010000000c00000049444c3a472f413a312e3000010000000000000020000000010102000a000000\
               3132372e302e302e31000000010000006b00000000000000";
    let told = run(&["describe", ior, "--offline", "--json"]).json();
    assert_eq!(told["value"]["profiles"][0]["endpoints"], json!([]));
    let security = told["value"]["profiles"][0]["security"].as_str().unwrap();
    assert!(security.starts_with("not known"), "{security}");
}

#[test]
fn code_is_generated_and_checked() {
    let scratch = Scratch::new();
    let (contract, out) = (data("bank.idl"), scratch.path("generated"));
    let text = run(&["gen", "rust", &contract]);
    assert!(text.good().contains("trait Account"), "{}", text.out);
    // Both faces, or one.
    assert!(text.out.contains("trait AccountAsync"), "{}", text.out);
    let one = run(&["gen", "rust", &contract, "--only", "blocking"]);
    assert!(one.good().contains("trait Account:") && !one.out.contains("AccountAsync"), "{}", one.out);
    let other = run(&["gen", "rust", &contract, "--only", "asynchronous"]);
    assert!(
        other.good().contains("trait AccountAsync:") && !other.out.contains("trait Account:"),
        "{}",
        other.out
    );
    let gen_to = |more: &[&str]| run(&[&["gen", "rust", &contract, "-o", &out], more].concat());
    assert!(gen_to(&["--check"]).failed(1)[0].contains("out of date"));
    assert!(gen_to(&[]).err.contains("bank.rs"));
    gen_to(&["--check"]).good();
    let file = format!("{out}/bank.rs");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text.out);
    std::fs::write(&file, "stale").unwrap();
    assert_eq!(gen_to(&["--check", "--json"]).json()["error"]["kind"], json!("out-of-date"));
    assert!(run(&["gen", "rust", &contract, &contract]).failed(2)[2].contains("--out"));
    // Two of the same name would become one file.
    let (other, both) = (scratch.path("bank.idl"), scratch.path("both"));
    std::fs::write(&other, "interface Other {};").unwrap();
    let said = run(&["gen", "rust", &contract, &other, "-o", &both]);
    assert!(said.failed(2)[1].contains("bank.rs"), "{}", said.err);
    assert!(!std::path::Path::new(&both).exists(), "nothing is written");
}

#[test]
fn a_capture_is_explained() {
    let capture = data("callback.pcapng");
    let lines = run(&["trace", &capture]);
    let lines: Vec<&str> = lines.good().lines().collect();
    assert_eq!(lines.len(), 12);
    assert!(
        lines[0].starts_with("02:39:21.718530 #1 -> Request") && lines[0].contains("Advise"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("#2 -> Request") && lines[1].contains("HelloSync"), "{}", lines[1]);
    assert!(
        lines[2].contains("#2 <- Reply") && lines[2].ends_with("to HelloSync after 9.9ms"),
        "{}",
        lines[2]
    );

    let parts = run(&["trace", &capture, "-v"]);
    assert!(
        parts.good().lines().any(|line| line.contains("magic") && line.contains("GIOP")),
        "{}",
        parts.out
    );
    let octets = run(&["trace", &capture, "-vv"]);
    assert!(
        octets.good().lines().any(|line| line.trim_start().starts_with("0000  47 49 4f 50")),
        "{}",
        octets.out
    );

    let json = run(&["trace", &capture, "--json", "-vv"]);
    let messages: Vec<Json> = json.good().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(messages.len(), 12);
    for message in &messages {
        let hex = message["hex"].as_str().unwrap();
        assert!(hex.starts_with("47494f50") && hex.len() as u64 == 2 * message["len"].as_u64().unwrap());
        assert!(message["time"].as_str().unwrap().ends_with('Z') && message["wire"] == "giop");
    }
    assert!(run(&["trace", &data("bank.idl")]).failed(2)[1].contains("neither pcap nor pcapng"));
    assert!(run(&["trace", "nothing.pcap"]).failed(2)[2].contains("--on"));
}

/// What `trace` tells of a connection of which the capture has the middle only: a file of pcap whose packets are those of IPv4 (link
/// type 101), with one segment of TCP and no SYN before it.
fn told_of_the_middle(bytes: &[u8]) -> Said {
    let total = u16::try_from(40 + bytes.len()).unwrap().to_be_bytes();
    let mut packet = vec![0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
    packet.extend(40_000_u16.to_be_bytes());
    packet.extend(49_152_u16.to_be_bytes());
    packet.extend([0, 0, 3, 0xE8, 0, 0, 0, 1, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]);
    packet.extend(bytes);
    let length = u32::try_from(packet.len()).unwrap();
    let words = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 101, 1, 0, length, length];
    let mut file: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    file.extend(packet);
    let scratch = Scratch::new();
    let capture = scratch.path("middle.pcap");
    std::fs::write(&capture, file).unwrap();
    run(&["trace", &capture, "--json"])
}

/// The end of a message, whose values hold octets that a connection of ICE begins with, and two messages of DCE/RPC.
#[test]
fn a_capture_from_the_middle_on_is_of_the_wire_that_explains_most() {
    // A request (C706, chapter 12): version 5.0, flags, little-endian, its length, call, context, number of the operation.
    let request = |call: u8| {
        let mut octets = vec![5, 0, 0, 3, 0x10, 0, 0, 0, 48, 0, 0, 0, call, 0, 0, 0, 24, 0, 0, 0, 0, 0, 3, 0];
        octets.extend([0xEE; 24]);
        octets
    };
    let end = [0xEE, 0xEE, 0, 1, 0, 0, 0, 0, 0, 0, 0xEE, 0xEE];
    let told = told_of_the_middle(&[&end[..], &request(7), &request(8)].concat());
    let messages: Vec<Json> = told.good().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(messages.len(), 2, "{}", told.out);
    assert!(messages.iter().all(|message| message["wire"] == "dcom"), "{}", told.out);
}

/// Octets that look like the beginning of a connection of ICE stand in any protocol.
#[test]
fn a_capture_from_the_middle_on_of_a_protocol_that_is_not_known_is_of_no_wire() {
    let told = told_of_the_middle(&[&[0xFE, 0x53, 0, 1, 0, 0, 0, 0, 0, 0][..], &[0xEE; 90]].concat());
    assert_eq!(told.code, 2, "{}", told.out);
    assert!(
        told.err.contains("#1 127.0.0.1:40000 -> 127.0.0.1:49152: 100 octets of no known wire"),
        "{}",
        told.err
    );
}

#[test]
fn shells_complete() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completion", shell]);
        // What is offered is asked from the program: the script says how.
        assert!(script.good().contains("everywire") && script.out.contains("EVERYWIRE_COMPLETE"), "{shell}");
    }
    assert!(run(&["completion", "bash", "--json"]).json()["value"].as_str().unwrap().contains("everywire"));
}

#[test]
fn help_tells_exit_codes_and_examples() {
    assert!(run(&["--help"]).good().contains("6  the peer broke the protocol"));
    for verb in ["call", "describe", "gen", "serve", "trace", "derby", "completion"] {
        assert!(run(&[verb, "--help"]).good().contains("Examples:"), "{verb}");
    }
    assert!(run(&["--version"]).good().starts_with("everywire "));
}

#[test]
fn contracts_are_preprocessed_as_the_command_line_says() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("common")).unwrap();
    std::fs::write(scratch.path("common/base.idl"), "const long SIZE = WIDTH;\n").unwrap();
    let main = scratch.path("main.idl");
    std::fs::write(&main, "#include \"base.idl\"\n#ifdef WITH\ninterface I { void f(); };\n#endif\n")
        .unwrap();
    let common = scratch.path("common");
    let given = ["-I", &common, "-D", "WIDTH=64", "-DWITH"];
    let told = run(&[&["describe", &main], &given[..]].concat());
    assert!(told.good().contains("SIZE = 64") && told.out.contains("interface I"), "{}", told.out);
    assert!(run(&[&["gen", "rust", &main], &given[..]].concat()).good().contains("trait I"));
    let without = run(&["describe", &main]);
    assert!(without.code == 2 && without.err.contains("`base.idl` is not found"), "{}", without.err);
    // Every verb that takes a contract takes them: none stops at the options.
    let nowhere = "iiop://127.0.0.1:1/x";
    for verb in [&["call", nowhere, "f", "-c", &main][..], &["describe", nowhere, "-c", &main]] {
        assert_eq!(run(&[verb, &given[..]].concat()).code, 3);
    }
    let broker = ["broker", "--from", "iiop://127.0.0.1:0", "--to", nowhere, "-c", &main, "--check"];
    let signal = ["emit", "dcop+unix:///nowhere#nobody/i", "f", "-c", &main];
    for verb in [&broker[..], &signal, &["watch", nowhere, "-c", &main]] {
        let (with, without) = (run(&[verb, &given[..]].concat()), run(verb));
        assert!(!with.err.contains("base.idl"), "{}", with.err);
        assert!(without.err.contains("`base.idl` is not found"), "{verb:?}: {}", without.err);
    }
    // A broker's file says them for each of its routes, so nobody may think that the command line does.
    let file = scratch.path("broker.toml");
    std::fs::write(&file, "").unwrap();
    let told = run(&["broker", &file, "--check", "-I", &common]);
    assert!(told.failed(2).join("\n").contains("cannot be used with"), "{}", told.err);
    let serve = ["serve", &main, "--interface", "J", "--exec", "true", "--on", "iiop://127.0.0.1:0"];
    assert!(run(&[&serve, &given[..]].concat()).failed(2).join("\n").contains("no interface `J`"));
}

#[test]
fn what_a_contract_has_and_nobody_can_use_is_told() {
    let scratch = Scratch::new();
    let file = scratch.path("icons.kidl");
    let text = "<DCOP-IDL><CLASS><NAME>Icons</NAME><FUNC><TYPE>QPixmap</TYPE><NAME>icon</NAME></FUNC>
        <FUNC><TYPE>int</TYPE><NAME>size</NAME></FUNC></CLASS></DCOP-IDL>";
    std::fs::write(&file, text).unwrap();
    let told = run(&["describe", &file]);
    assert!(told.good().contains("size") && !told.out.contains("icon<"), "{}", told.out);
    assert!(told.err.contains("warning: ") && told.err.contains("QPixmap icon()"), "{}", told.err);
}
