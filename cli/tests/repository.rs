//! CORBA without a file: an object tells its contract by its server's interface repository, and a server its names.

use crate::support::{Bank, Scratch, data, run};
use serde_json::json;

#[test]
fn what_is_called_without_a_file_is_what_is_called_with_one() {
    let bank = Bank::at(&["tcp"], &[]);
    let at = &bank.addresses[0];
    // Such that answer the same twice.
    for words in [
        &["title"][..],
        &["number"],
        &["withdraw", "1000000"],
        &["history", "[]", "5"],
        &["statement", "abc"],
        &["convert", r#"{"case": "CHF", "value": {"text": "x"}}"#],
        &["convert", "nonsense"],
        &["remember", r#"{"type": "f64", "value": 2.5}"#],
        &["shout", "grün"],
        &["hint", "x"],
        &["fails"],
        &["nothing"],
        &["deposit"],
        &["deposit", "x"],
    ] {
        let with = run(&[&["call", at], words, &["-c", &bank.contract, "--json"]].concat());
        let without = run(&[&["call", at], words, &["--json"]].concat());
        let plain = |said: &crate::support::Said| {
            let mut told = said.json();
            told.as_object_mut().unwrap().remove("elapsed_ns");
            // A file has interfaces beside that of the object, whose operations are named as well.
            if let Some(message) = told["error"]["message"].as_str().map(str::to_owned) {
                told["error"]["message"] = message.split("; ").next().into();
            }
            // Which definitions there are is told where the contract is from.
            told.to_string()
                .replace("the object defines", "defines")
                .replace(&format!("{} defines", bank.contract), "defines")
        };
        assert_eq!((without.code, plain(&without)), (with.code, plain(&with)), "{words:?}");
    }
}

#[test]
fn an_object_is_described_without_a_file() {
    let bank = Bank::at(&["tcp"], &[]);
    let told = run(&["describe", &bank.addresses[0]]);
    for part in [
        "Bank::Account (IDL:Bank/Account:1.0)",
        "deposit(amount: f64) -> f64 raises Bank::Closed",
        "attribute text title",
    ] {
        assert!(told.good().contains(part), "{part} in {}", told.out);
    }
    // A reference says more than an address: that stays to be seen.
    let whole = run(&["describe", &bank.reference]);
    for part in ["IDL:Bank/Account:1.0", "component", "deposit(amount: f64)"] {
        assert!(whole.good().contains(part), "{part} in {}", whole.out);
    }
    let value = &run(&["describe", &bank.reference, "--json"]).json()["value"];
    assert_eq!((&value["answers"], &value["interface"]["name"]), (&json!(true), &json!("Bank::Account")));
    assert_eq!(value["interfaces"].as_array().map(Vec::len), Some(1));
    // The contract that is told is one: it reads back, and says the same.
    let scratch = Scratch::new();
    let file = scratch.path("told.idl");
    std::fs::write(&file, run(&["describe", &bank.addresses[0], "--as", "omg"]).good()).unwrap();
    let definition = |file: &str, name: &str| {
        let mut told = run(&["describe", file, name, "--as", "json"]).json()["definitions"][0].clone();
        // A repository keeps no documentation, and attributes apart.
        told.as_object_mut().unwrap().remove("doc");
        told["operations"].as_array_mut().into_iter().flatten().for_each(|operation| {
            operation.as_object_mut().unwrap().remove("doc");
        });
        if let Some(operations) = told["operations"].as_array_mut() {
            operations.sort_by_key(|operation| operation["name"].to_string());
        }
        told
    };
    for name in ["Bank::Account", "Bank::Entry", "Bank::Figure", "Bank::Overdrawn", "Bank::Octets"] {
        assert_eq!(definition(&file, name), definition(&data("bank.idl"), name), "{name}");
    }
}

#[test]
fn the_objects_of_a_server_are_listed_and_a_missing_one_is_exit_1() {
    let bank = Bank::at(&["tcp"], &[]);
    let server = bank.addresses[0].strip_suffix("/Account").unwrap();
    let listed = run(&["list", server]);
    assert!(
        listed
            .good()
            .lines()
            .any(|line| line.starts_with("Account ") && line.ends_with("IDL:Bank/Account:1.0")),
        "{}",
        listed.out
    );
    let value = run(&["list", server, "--json"]).json()["value"][0].clone();
    assert_eq!((&value["name"], &value["address"]), (&json!("Account"), &json!(bank.addresses[0])));
    // By its name.
    let named = format!("corbaname::{}#Account", server.trim_start_matches("iiop://"));
    assert_eq!(run(&["call", &named, "title"]).good(), run(&["call", &bank.addresses[0], "title"]).good());
    let nobody = bank.addresses[0].replace("Account", "Nobody");
    for words in [
        &["list", &nobody][..],
        &["describe", &nobody],
        &["call", &nobody, "title"],
        &["call", &nobody, "title", "-c", &bank.contract],
        &["call", &named.replace("Account", "Nobody"), "title"],
    ] {
        let said = run(words);
        assert_eq!(said.code, 1, "{words:?}: {}{}", said.out, said.err);
        assert!(said.err.lines().count() == 3, "{}", said.err);
    }
    // An object is no list.
    assert!(run(&["list", &bank.addresses[0]]).failed(2)[2].contains("everywire describe"));
}
