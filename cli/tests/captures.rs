//! Copies that a broker puts into a capture are whole messages: `trace` reads them as it reads what passed a network.

use crate::support::{Running, Scratch, data, run};
use serde_json::Value as Json;

/// A place on each wire whose messages can be made anew, and how its messages say what is asked.
const WIRES: [(&str, &str); 5] = [
    ("iiop://127.0.0.1:0", "giop"),
    ("dbus+unix://DIRNAME.bus", "dbus"),
    ("net.tcp://127.0.0.1:0?security=none", "wcf"),
    ("basic://127.0.0.1:0?security=none", "wcf"),
    ("wshttp://127.0.0.1:0?security=none", "wcf"),
];

#[test]
fn copies_in_a_capture_are_whole_messages() {
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    for (on, wire) in WIRES {
        let scratch = Scratch::new();
        let place = |name: &str| on.replace("DIR", &scratch.path("")).replace("NAME", name);
        let mut server = Running::start(&[
            "serve",
            &contract,
            "--interface",
            "Account",
            "--exec",
            &exec,
            "--on",
            &place("server"),
        ]);
        let target = server.line();
        let (file, capture) = (scratch.path("broker.toml"), scratch.path("copies.pcapng"));
        let text = format!(
            "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"bank\"\nto = \"{target}\"\ncopy = {{ to = \"{capture}\", answers = true }}\n",
            place("front")
        );
        std::fs::write(&file, text).unwrap();
        let mut broker = Running::start(&["broker", &file]);
        let reference = broker.line().split_once('\t').unwrap().1.to_owned();
        for amount in ["5", "7"] {
            run(&["call", &reference, "deposit", amount, "-c", &contract, "--interface", "Account"]).good();
        }
        let refused =
            run(&["call", &reference, "withdraw", "1000", "-c", &contract, "--interface", "Account"]);
        assert_eq!(refused.code, 1, "{on}: {}", refused.err);
        // All is written when it has ended.
        assert_eq!(broker.end("-TERM").0, 0, "{on}");
        let traced = run(&["trace", &capture, "--json", "-v"]);
        let messages: Vec<Json> =
            traced.good().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(messages.iter().all(|message| message["wire"] == wire), "{on}: {}", traced.out);
        let said = |outward: &str, what: &str| {
            let is = |message: &&Json| message["direction"] == outward && message.to_string().contains(what);
            messages.iter().filter(is).count()
        };
        assert_eq!(said("->", "deposit"), 2, "{on}: {}", traced.out);
        assert_eq!(said("->", "withdraw"), 1, "{on}: {}", traced.out);
        assert!(said("<-", "Overdrawn") >= 1, "{on}: {}", traced.out);
        // Each answer is told to which call it is.
        let answers = messages.iter().filter(|message| message["answers"].is_string());
        if wire == "giop" {
            assert!(answers.count() >= 3, "{on}: {}", traced.out);
        }
    }
}
