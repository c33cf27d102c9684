//! Headers beside calls, from the command line to a program and back, and what `trace` shows of them.

use crate::support::{Running, Scratch, data, run};
use serde_json::json;

/// A place on each wire that has headers, and two headers as its users write them.
const WIRES: [(&str, [(&str, &str); 2]); 5] = [
    ("iiop://127.0.0.1:0", [("0x45570001", "0x0aff"), ("0x45570002", "0x74657874")]),
    ("dbus+unix://DIRbank.bus", [("200", "a text"), ("201", "0x0aff")]),
    (
        "net.tcp://127.0.0.1:0?security=none",
        [("{urn:shop}Priority", "high"), ("{urn:shop}Note", "grün & <x>")],
    ),
    ("basic://127.0.0.1:0?security=none", [("{urn:shop}Priority", "high"), ("{urn:shop}Note", "grün & <x>")]),
    ("wshttp://127.0.0.1:0?security=none", [("{urn:shop}Priority", "high"), ("Plain", "1")]),
];

#[test]
fn headers_travel_both_ways_on_every_wire_that_has_them() {
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    for (on, headers) in WIRES {
        let scratch = Scratch::new();
        let on = on.replace("DIR", &scratch.path(""));
        let mut server =
            Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on]);
        let address = server.line();
        let given = headers.map(|(name, value)| format!("{name}={value}"));
        let call = |more: &[&str]| {
            let words = ["call", &address, "deposit", "1", "--headers", "-c", &contract];
            run(&[&words[..], more].concat())
        };
        let with = call(&["--header", &given[0], "--header", &given[1], "--json"]).json();
        let [(first, said), (second, also)] = headers;
        let named = |name: &str| if name == "Plain" { "{}Plain".to_owned() } else { name.to_owned() };
        assert_eq!(with["headers"], json!({named(first): said, named(second): also}), "{on}");
        assert!(with["value"]["return"].is_number(), "{on}: {with}");
        assert_eq!(call(&["--json"]).json()["headers"], json!({}), "{on}");
        let wrong = call(&["--header", "no such name=x"]);
        assert_eq!(wrong.code, 2, "{on}: {}", wrong.err);
    }
}

#[test]
fn a_trace_shows_the_headers_of_each_message() {
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    for (on, headers) in WIRES {
        let scratch = Scratch::new();
        let on = on.replace("DIR", &scratch.path(""));
        let mut server =
            Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on]);
        let reference = server.line();
        let here = if on.starts_with("dbus") {
            format!("dbus+unix://{}", scratch.path("relay.bus"))
        } else {
            on.clone()
        };
        let mut relay = Running::start(&["trace", &reference, "--on", &here, "--json", "-v"]);
        let opened: serde_json::Value = serde_json::from_str(&relay.line()).unwrap();
        let through = opened["value"]["reference"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
        let (name, value) = headers[0];
        let given = format!("{name}={value}");
        run(&["call", &through, "deposit", "1", "--header", &given, "-c", &contract]).good();
        // The request, and the reply, in which the program says the same.
        let local = name.rsplit('}').next().unwrap();
        let said = value.trim_start_matches("0x");
        let mut seen = 0;
        while seen < 2 {
            let message: serde_json::Value = serde_json::from_str(&relay.line()).unwrap();
            let parts = message["parts"].as_array().cloned().unwrap_or_default();
            let shows = parts.iter().any(|part| {
                let text = part["value"].as_str().unwrap_or_default();
                let plain = text.replace(' ', "");
                ["header", "context"].contains(&part["name"].as_str().unwrap_or_default())
                    && text.contains(local)
                    && plain.contains(&said.replace(' ', ""))
            });
            seen += usize::from(shows);
        }
        let (code, _) = relay.end("-TERM");
        assert_eq!(code, 0, "{on}");
    }
}
