//! Programs served and called as WCF services.
#![allow(clippy::unwrap_used)]

use crate::support::{Running, Said, Scratch, data, run};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A contract as .NET tells it.
fn contract() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/hello.wsdl");
    path.to_string_lossy().into_owned()
}

/// `hello.py` behind `IHello`, at these places.
struct Hello {
    server: Running,
    /// In the order asked for.
    addresses: Vec<String>,
    scratch: Scratch,
}

impl Hello {
    fn at(places: &[&str]) -> Self {
        let scratch = Scratch::new();
        let (contract, exec) = (contract(), format!("python3 {}", data("hello.py")));
        let mut arguments = vec!["serve", &contract, "--interface", "IHello", "--exec", &exec];
        let places: Vec<String> =
            places.iter().map(|place| place.replace("DIR", &scratch.path(""))).collect();
        places.iter().for_each(|place| arguments.extend(["--on", place]));
        let mut server = Running::start(&arguments);
        // They are printed in the order of preference.
        let printed: Vec<String> = places.iter().map(|_| server.line()).collect();
        let of = |place: &String| {
            // A Unix socket of framing has a scheme of its own.
            let scheme = place.split("://").next().unwrap().replace("net.tcp+unix", "net.uds");
            let scheme = scheme.replace("+unix", "");
            let found = printed.iter().find(|address| address.starts_with(&format!("{scheme}://")));
            found.unwrap_or_else(|| panic!("no {scheme} in {printed:?}")).clone()
        };
        let addresses = places.iter().map(of).collect();
        Self { server, addresses, scratch }
    }

    fn address(&self) -> &str {
        &self.addresses[0]
    }

    fn call(&self, words: &[&str]) -> Said {
        run(&[&["call", self.address()], words].concat())
    }
}

/// Every binding.
const BINDINGS: [&str; 6] = [
    "net.tcp://127.0.0.1:0?security=none",
    "net.tcp+unix://DIRsocket",
    "net.tcp+shm://DIRshm",
    "basic://127.0.0.1:0?security=none",
    "wshttp://127.0.0.1:0?security=none",
    "binhttp://127.0.0.1:0?security=none",
];

#[test]
fn a_service_is_called_on_every_binding_with_and_without_its_contract() {
    let hello = Hello::at(&BINDINGS);
    let contract = contract();
    for address in &hello.addresses {
        assert!(address.contains("IHello") && !address.contains(":0/"), "{address}");
        assert_eq!(run(&["call", address, "AskBack", "41", "-c", &contract]).good(), "42", "{address}");
        assert_eq!(run(&["call", address, "AskBack", "x=-5"]).good(), "-4", "{address}");
        assert_eq!(run(&["call", address, "SayHello", "grüße & <küsse>"]).good(), "", "{address}");
        let failed = run(&["call", address, "SayHello", "fail", "-c", &contract]);
        assert_eq!(failed.code, 1, "{address}: {}", failed.err);
        let answer = run(&["call", address, "AskBack", "1", "--json", "-c", &contract]).json();
        assert_eq!((&answer["value"], &answer["wire"]), (&json!({"return": 2}), &json!("wcf")));
    }
}

#[test]
fn a_contract_of_another_language_is_served_as_a_service() {
    let scratch = Scratch::new();
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    for on in ["net.tcp", "basic", "wshttp"] {
        let on = format!("{on}://127.0.0.1:0?security=none");
        let mut server =
            Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on]);
        let address = server.line();
        let call = |words: &[&str]| run(&[&["call", &address], words, &["-c", &contract]].concat());
        assert_eq!(call(&["deposit", "100"]).good(), "100.0", "{on}");
        let overdrawn = call(&["withdraw", "150", "--json"]);
        assert_eq!(overdrawn.code, 1);
        let overdrawn = overdrawn.json();
        assert_eq!(overdrawn["value"], json!({"missing": 50.0, "reason": "too much"}), "{on}: {overdrawn}");
        assert_eq!(call(&["title=Rainy days"]).good(), "");
        assert_eq!(call(&["title"]).good(), "Rainy days");
        let entries = r#"[{"note": "a", "amount": 1.5, "unit": "CHF"}]"#;
        let history = call(&["history", entries, "7", "--json"]).json();
        assert_eq!(history["value"]["return"].as_array().map(Vec::len), Some(2), "{on}: {history}");
        assert_eq!((&history["value"]["most"], &history["value"]["complete"]), (&json!(8), &json!(true)));
        let octets = scratch.path("octets");
        std::fs::write(&octets, [0, 1, 2, 255]).unwrap();
        let statement = call(&["statement", &format!("@{octets}"), "--json"]).json();
        assert_eq!(statement["value"]["return"], json!({"base64": "AAEC/w=="}), "{on}");
    }
}

#[test]
fn a_service_tells_its_contract_on_every_binding() {
    let hello = Hello::at(&BINDINGS);
    let definition = |file: &str, name: &str| run(&["describe", file, name, "--as", "json"]).json();
    for (at, address) in hello.addresses.iter().enumerate() {
        let text = run(&["describe", address]);
        for part in
            ["IHello", "AskBack(x: i32) -> i32", "SayHello(message: text)", "signal OnHello(text message)"]
        {
            assert!(text.good().contains(part), "{address}: {part} in {}", text.out);
        }
        let file = hello.scratch.path(&format!("told{at}.wsdl"));
        std::fs::write(&file, run(&["describe", address, "--as", "wsdl"]).good()).unwrap();
        for name in ["IHello", "IHelloCallback"] {
            assert_eq!(definition(&file, name), definition(&contract(), name), "{address}");
        }
        let out = hello.scratch.path(&format!("generated{at}"));
        run(&["gen", "rust", address, "--out", &out]).good();
        let code = std::fs::read_to_string(Path::new(&out).join("ihello.rs")).unwrap();
        assert!(code.contains("trait IHello") && code.contains("ask_back"), "{code}");
        run(&["gen", "rust", address, "--out", &out, "--check"]).good();
    }
    // The page that browsers and other programs ask for.
    let page =
        format!("{}?wsdl", hello.addresses[3].replace("basic://", "http://").split('?').next().unwrap());
    assert!(run(&["describe", &page, "--as", "wsdl"]).good().contains("portType"), "{page}");
}

#[test]
fn callbacks_are_watched() {
    let hello = Hello::at(&["net.tcp://127.0.0.1:0?security=none", "net.tcp+unix://DIRsocket"]);
    let contract = contract();
    for address in &hello.addresses {
        let mut told = Running::start(&["watch", address, "--count", "1", "--for", "10m", "--no-color"]);
        let mut typed = Running::start(&[
            "watch", address, "OnHello", "-c", &contract, "--count", "1", "--for", "10m", "--json",
        ]);
        // Nobody tells when they listen: greet until both have heard it. Whoever wants to hear has to subscribe, by the contract.
        let heard = AtomicBool::new(false);
        let (line, json) = std::thread::scope(|scope| {
            scope.spawn(|| {
                let greet = |_: &u32| {
                    !heard.load(Relaxed)
                        && run(&["call", address, "SayHello", "good morning", "-c", &contract]).code == 0
                };
                (0..1000).take_while(greet).count()
            });
            let lines = (told.line(), typed.line());
            heard.store(true, Relaxed);
            lines
        });
        assert!(line.contains("OnHello") && line.contains("good morning"), "{line}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["signal"], &json["fields"]),
            (&json!("OnHello"), &json!({"message": "good morning"}))
        );
    }
}

/// A value that brings its own type, which the contract knows by name, is told by that name, as `call` does.
#[test]
fn values_of_any_type_are_watched_by_the_names_of_the_contract() {
    let scratch = Scratch::new();
    let change = |file: &str, changes: &[(&str, &str)], to: &str| {
        let mut text = std::fs::read_to_string(file).unwrap();
        for (before, after) in changes {
            assert!(text.contains(before), "{before}");
            text = text.replacen(before, after, 1);
        }
        let path = scratch.path(to);
        std::fs::write(&path, text).unwrap();
        path
    };
    let told = r#"name="OnHello"><xs:complexType><xs:sequence>
          <xs:element minOccurs="0" name="message" nillable="true" type="xs:string"/>"#;
    let any = r#"name="OnHello"><xs:complexType><xs:sequence>
          <xs:element minOccurs="0" name="message" nillable="true" type="xs:anyType"/>
          <xs:element minOccurs="0" name="note" nillable="true" type="tns:Note"/>"#;
    let note = r#"<xs:complexType name="Note"><xs:sequence>
          <xs:element minOccurs="0" name="text" nillable="true" type="xs:string"/>
      </xs:sequence></xs:complexType>
      <xs:element name="Subscribe">"#;
    let changes = [(told, any), (r#"<xs:element name="Subscribe">"#, note)];
    let contract = change(&contract(), &changes, "note.wsdl");
    let value = r#"{"shape": "Note", "value": {"text": given["message"]}}, "note": None}"#;
    let program = change(&data("hello.py"), &[(r#"given["message"]})"#, &format!("{value})"))], "note.py");
    let exec = format!("python3 {program}");
    let on = "net.tcp://127.0.0.1:0?security=none";
    let mut server =
        Running::start(&["serve", &contract, "--interface", "IHello", "--exec", &exec, "--on", on]);
    let address = server.line();
    let words = ["watch", &address, "OnHello", "-c", &contract, "--count", "1", "--for", "10m"];
    let mut plain = Running::start(&[&words[..], &["--no-color"]].concat());
    let mut json = Running::start(&[&words[..], &["--json"]].concat());
    let heard = AtomicBool::new(false);
    let (plain, json) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let greet = |_: &u32| {
                !heard.load(Relaxed)
                    && run(&["call", &address, "SayHello", "good morning", "-c", &contract]).code == 0
            };
            (0..1000).take_while(greet).count()
        });
        let lines = (plain.line(), json.line());
        heard.store(true, Relaxed);
        lines
    });
    assert!(plain.contains("Note") && plain.contains("good morning"), "{plain}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let note = json!({"shape": "Note", "value": {"text": "good morning"}});
    assert_eq!(json["fields"]["message"], note, "{json}");
}

#[test]
fn nobody_is_let_in_by_mistake() {
    let scratch = Scratch::new();
    let (contract, exec) = (contract(), format!("python3 {}", data("hello.py")));
    let serve = |on: &str| run(&["serve", &contract, "--interface", "IHello", "--exec", &exec, "--on", on]);
    let open = serve("net.tcp://127.0.0.1:0");
    assert!(open.failed(2)[2].contains("security=none"), "{}", open.err);
    let keyed = serve("net.tcp://127.0.0.1:1/Greetings?security=none");
    assert!(keyed.failed(2)[2].contains("--key Greetings"), "{}", keyed.err);

    let users = scratch.path("users");
    std::fs::write(&users, "ada:open sesame\n").unwrap();
    std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).unwrap();
    let hello = Hello::at(&[&format!("net.tcp://127.0.0.1:0?users={users}")]);
    let address = hello.address();
    let of = |who: &str| address.replacen("://", &format!("://{who}@"), 1);
    let call = |address: &str| run(&["call", address, "AskBack", "1", "-c", &contract]);
    assert_eq!(call(&of("ada:open%20sesame")).good(), "2");
    assert!(!address.contains("sesame") && !address.contains("users"), "{address}");
    for who in ["ada:wrong", "eve:open%20sesame"] {
        let refused = call(&of(who));
        refused.failed(4);
        assert!(!refused.err.contains("sesame") && !refused.err.contains(":wrong"), "{}", refused.err);
    }
    let nobody = call(address);
    assert!([1, 3, 4].contains(&nobody.code), "{}: {}", nobody.code, nobody.err);
    let told = run(&["describe", &of("ada:open%20sesame"), "--json"]);
    assert!(told.json()["value"]["security"].is_string() && !told.out.contains("sesame"), "{}", told.out);
}

#[test]
fn quotas_are_named_and_can_be_raised() {
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    for scheme in ["net.tcp", "basic"] {
        let on = format!("{scheme}://127.0.0.1:0?security=none");
        let mut server =
            Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on]);
        let address = server.line();
        let shout =
            |address: &str, size: usize| run(&["call", address, "shout", &"a".repeat(size), "-c", &contract]);
        assert_eq!(shout(&address, 20_000).good().len(), 20_000, "{scheme}");
        let much = shout(&address, 70_000);
        assert_eq!(much.code, 4, "{scheme}: {}", much.err);
        assert!(
            much.err.contains("MaxReceivedMessageSize") || much.err.contains("message size quota"),
            "{}",
            much.err
        );

        let on = format!("{on}&MaxReceivedMessageSize=200000");
        let mut roomy =
            Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on]);
        let address = roomy.line();
        let bare = address.split('?').next().unwrap();
        let back = shout(bare, 70_000);
        assert_eq!(back.code, 4, "{scheme}: {}", back.err);
        assert!(back.err.contains("MaxReceivedMessageSize") && back.err.contains("65536"), "{}", back.err);
        let raised = format!("{bare}?MaxReceivedMessageSize=200000");
        assert_eq!(shout(&raised, 70_000).good().len(), 70_000, "{scheme}");
    }
}

#[test]
fn what_goes_wrong_has_a_code_of_its_own() {
    let hello = Hello::at(&["net.tcp://127.0.0.1:0?security=none", "wshttp://127.0.0.1:0?security=none"]);
    let contract = contract();
    for address in &hello.addresses {
        let elsewhere = address.replace("/IHello", "/Nowhere");
        let lost = run(&["call", &elsewhere, "AskBack", "1", "-c", &contract]);
        assert!(lost.code != 0 && lost.err.contains("no endpoint"), "{elsewhere}: {}", lost.err);
        let wrong = run(&["call", address, "AskBak", "1", "-c", &contract]);
        assert!(wrong.failed(2)[2].contains("did you mean `AskBack`?"), "{}", wrong.err);
    }
    for gone in ["net.tcp://127.0.0.1:1/x", "basic://127.0.0.1:1/x"] {
        assert_eq!(run(&["call", gone, "AskBack", "1", "-c", &contract]).code, 3, "{gone}");
        assert_eq!(run(&["describe", gone]).code, 3, "{gone}");
    }
    for wrong in
        ["net.tcp://127.0.0.1:1/x?security=perhaps", "wshttp://127.0.0.1/x?nonsense=1", "net.pipe://x"]
    {
        assert_eq!(run(&["call", wrong, "AskBack", "1", "-c", &contract]).code, 2, "{wrong}");
    }
    assert_eq!(hello.call(&["AskBack", "much"]).code, 2);
}

#[test]
fn a_relay_explains_messages_and_tells_their_values() {
    for on in ["net.tcp://127.0.0.1:0?security=none", "basic://127.0.0.1:0?security=none"] {
        let mut hello = Hello::at(&[on]);
        let capture = hello.scratch.path("relay.pcapng");
        let contract = contract();
        let words = ["trace", hello.address(), "--on", "127.0.0.1:0", "--json", "-c", &contract];
        let mut relay = Running::start(&[&words[..], &["--write", &capture]].concat());
        let announced: serde_json::Value = serde_json::from_str(&relay.line()).unwrap();
        let address = announced["value"]["address"].as_str().unwrap().to_owned();
        assert_ne!(address, hello.address());
        assert_eq!(run(&["call", &address, "AskBack", "1", "-c", &contract]).good(), "2");
        let mut seen: Vec<serde_json::Value> = Vec::new();
        while !seen.iter().any(|message| message["answers"].as_str().is_some_and(|a| a.ends_with("/AskBack")))
        {
            seen.push(serde_json::from_str(&relay.line()).unwrap());
        }
        assert!(seen.iter().all(|message| message["wire"] == "wcf"), "{seen:?}");
        let begins = if on.starts_with("net.tcp") { "Preamble" } else { "request POST" };
        assert!(seen[0]["summary"].as_str().unwrap().starts_with(begins), "{seen:?}");
        let valued = |values: &serde_json::Value| seen.iter().any(|message| message["values"] == *values);
        assert!(valued(&json!({"x": 1})) && valued(&json!({"return": 2})), "{seen:?}");
        assert_eq!(relay.end("-TERM").0, 0);
        assert_eq!(hello.server.end("-TERM").0, 0);
        // What was written tells the same.
        let read = run(&["trace", &capture, "-c", &contract]);
        assert!(read.good().contains(": {x: 1}") && read.out.contains(": {return: 2}"), "{}", read.out);
    }
}

#[test]
fn code_is_generated_from_a_contract() {
    let scratch = Scratch::new();
    let out = scratch.path("generated");
    run(&["gen", "rust", &contract(), "--out", &out]).good();
    let code = std::fs::read_to_string(Path::new(&out).join("hello.rs")).unwrap();
    assert!(code.contains("trait IHello") && code.contains("OnHello"), "{code}");
    run(&["gen", "rust", &contract(), "--out", &out, "--check"]).good();
    // Every language's contract is printed as a service description, and that one reads back.
    let told = scratch.path("lamp.wsdl");
    std::fs::write(&told, run(&["describe", &data("bank.idl"), "Bank::Branch", "--as", "wsdl"]).good())
        .unwrap();
    assert!(run(&["describe", &told]).good().contains("Branch"));
}
