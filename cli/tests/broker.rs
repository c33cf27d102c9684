//! The broker as a program: what it prints, its words, its end.
#![allow(clippy::unwrap_used)]

use crate::support::{Bank, Running, Scratch, data, run};
use serde_json::Value as Json;

#[test]
fn a_bridge_without_a_file_passes_calls_and_exceptions() {
    let bank = Bank::open();
    let target = bank.addresses[0].clone();
    let scratch = Scratch::new();
    let from = format!("dbus+unix://{}", scratch.path("front.bus"));
    let contract = data("bank.idl");
    let mut broker = Running::start(&[
        "broker",
        "--from",
        &from,
        "--to",
        &target,
        "-c",
        &contract,
        "--interface",
        "Bank::Account",
    ]);
    let line = broker.line();
    let (name, reference) = line.split_once('\t').unwrap();
    assert_eq!(name, "route");
    let call = |words: &[&str]| run(&[&["call", reference][..], words, &["-c", &contract]].concat());
    let before: f64 = call(&["deposit", "1"]).good().parse().unwrap();
    let after: f64 = call(&["deposit", "5"]).good().parse().unwrap();
    assert!((after - before - 5.0).abs() < 1e-9, "{before} {after}");
    assert_eq!(call(&["shout", "psst"]).good(), "PSST");
    let refused = call(&["withdraw", "100000"]);
    assert!(refused.failed(1)[1].contains("Overdrawn"), "{}", refused.err);
}

#[test]
fn a_file_is_checked_run_and_read_again() {
    let bank = Bank::open();
    let target = bank.addresses[0].clone();
    let scratch = Scratch::new();
    let (file, contract) = (scratch.path("broker.toml"), data("bank.idl"));
    let text = |route: &str, more: &str| {
        format!(
            "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"{route}\"\nmatch = {{ key = \"one\" }}\nto = \"{target}\"\ncontract = \"{contract}\"\ninterface = \"Bank::Account\"\n{more}"
        )
    };
    std::fs::write(&file, text("bank", "retires = 1\n")).unwrap();
    let wrong = run(&["broker", &file, "--check"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains(&format!("{file}:9:1: [[route]] has no field `retires`, did you mean `retries`?")),
        "{}",
        wrong.err
    );
    std::fs::write(&file, text("bank", "")).unwrap();
    let checked = run(&["broker", &file, "--check"]);
    assert!(
        checked.good().contains("route bank: Bank::Account from front (giop, key one) to giop"),
        "{}",
        checked.out
    );
    let checked: Json = run(&["broker", &file, "--check", "--json"]).json();
    assert_eq!(checked["operations"][0]["crosses"], true, "{checked}");
    let mut broker = Running::start(&["broker", &file, "--json"]);
    let told: Json = serde_json::from_str(&broker.line()).unwrap();
    let reference = told["routes"][0]["address"].as_str().unwrap().to_owned();
    let deposit = || run(&["call", &reference, "deposit", "1", "-c", &contract]);
    deposit().good();
    // A file with mistakes changes nothing; one without is taken.
    std::fs::write(&file, "nonsense").unwrap();
    broker.signal("-HUP");
    broker.tells("not reloaded");
    deposit().good();
    std::fs::write(&file, text("bank", "deny = \"127.0.0.1\"\n")).unwrap();
    broker.signal("-HUP");
    broker.tells("\"reloaded\"");
    assert_eq!(deposit().code, 4, "it is denied now");
    let (code, log) = broker.end("-TERM");
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("\"stopped\""), "{log}");
}
