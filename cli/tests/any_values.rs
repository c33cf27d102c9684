//! Values of any type, as `call --json` prints them, are arguments again: on each wire what it can carry goes there and back, twice.

use crate::support::{Running, Scratch, data, run_in};
use serde_json::{Value as Json, json};

/// The values that are tried, and the wires that carry them, with what each is there: wires have fewer types than the notation.
fn values() -> Vec<(Json, &'static [&'static str])> {
    const ALL: &[&str] = &["iiop", "dbus", "dcop", "dcom", "net.tcp"];
    let entry = json!({"note": "tea", "amount": 2.5, "unit": "CHF"});
    let any = |shape: &str, value: Json| json!({"shape": shape, "value": value});
    vec![
        (json!(true), ALL),
        (json!(5), ALL),
        (json!(-5), ALL),
        (json!(0.5), ALL),
        (json!("text"), ALL),
        (Json::Null, &["iiop", "dcop", "dcom", "net.tcp"]),
        (any("u8", json!(200)), ALL),
        (any("i16", json!(-3)), ALL),
        (any("u32", json!(4_000_000_000_u32)), ALL),
        (any("i64", json!(-9_007_199_254_740_993_i64)), ALL),
        (any("u64", json!(u64::MAX)), ALL),
        (any("octets", json!({"base64": "AP8="})), ALL),
        (any("sequence<i32>", json!([1, 2])), &["iiop", "dbus", "dcom", "net.tcp"]),
        (any("sequence<text>", json!(["a"])), &["iiop", "dbus", "dcom", "net.tcp"]),
        (any("sequence<wide text>", json!(["a", "b"])), &["iiop", "dbus", "dcop", "dcom", "net.tcp"]),
        (any("map<wide text, any value>", json!({"a": any("i32", json!(1))})), &["dbus", "dcop", "net.tcp"]),
        (any("sequence<any value>", json!([any("i32", json!(1))])), ALL),
        (any("path", json!("/a")), ALL),
        (any("(i32, text)", json!([1, "a"])), &["iiop", "dbus"]),
        (any("Bank::Currency", json!("CHF")), ALL),
        (any("Bank::Entry", entry.clone()), &["iiop", "dbus", "net.tcp"]),
        (any("sequence<Bank::Entry>", json!([entry])), &["iiop", "dbus", "net.tcp"]),
    ]
}

#[test]
fn a_value_of_any_type_is_written_as_it_is_printed_on_each_wire() {
    let scratch = Scratch::new();
    let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
    let mut dcop = Running::start_in(&env, &["dcopserver", "--socket", &scratch.path("dcop")]);
    dcop.line();
    let contract = data("bank.idl");
    let exec = format!("python3 {}", data("bank.py"));
    let on = [
        "iiop://127.0.0.1:0".to_owned(),
        format!("dbus+unix://{}", scratch.path("dbus")),
        "dcop:keeper".to_owned(),
        format!("dcom+unix://{}", scratch.path("dcom")),
        "net.tcp://127.0.0.1:0?security=none".to_owned(),
    ];
    let mut words = vec!["serve", &contract, "--interface", "Account", "--exec", &exec, "--json"];
    on.iter().for_each(|address| words.extend(["--on", address.as_str()]));
    let mut server = Running::start_in(&env, &words);
    let told: Json = serde_json::from_str(&server.line()).unwrap();
    let addresses = told["value"]["addresses"].as_array().unwrap();
    let mut wrong = Vec::new();
    for wire in ["iiop", "dbus", "dcop", "dcom", "net.tcp"] {
        let address =
            addresses.iter().filter_map(Json::as_str).find(|address| address.starts_with(wire)).unwrap();
        let remember = |value: &Json| {
            run_in(&env, &["call", address, "remember", &value.to_string(), "-c", &contract, "--json"])
        };
        for (value, wires) in values() {
            let first = remember(&value);
            if !wires.contains(&wire) {
                // It is refused, and not changed without a word.
                if first.code == 0 {
                    wrong.push(format!("{wire} carries {value}: {}", first.out));
                }
                continue;
            }
            if first.code != 0 {
                wrong.push(format!("{wire} refuses {value}: {}", first.out));
                continue;
            }
            let printed = first.json()["value"]["return"].clone();
            let again = remember(&printed);
            // What people see is an argument, too.
            let seen = run_in(&env, &["call", address, "remember", &value.to_string(), "-c", &contract]);
            let pasted = run_in(&env, &["call", address, "remember", seen.out.trim_end(), "-c", &contract]);
            if pasted.code != 0 || pasted.out != seen.out {
                wrong.push(format!(
                    "{wire}: {value} is shown as {}, which becomes {}{}",
                    seen.out, pasted.out, pasted.err
                ));
            }
            if again.code != 0 || again.json()["value"]["return"] != printed {
                wrong.push(format!("{wire}: {value} was printed as {printed}, which becomes {}", again.out));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// CORBA and D-Bus have no type for it, and would bring -1 as 255.
#[test]
fn a_signed_octet_in_an_any_is_refused_where_the_wire_has_no_type_for_it() {
    let scratch = Scratch::new();
    let contract = data("bank.idl");
    let exec = format!("python3 {}", data("bank.py"));
    for on in ["iiop://127.0.0.1:0".to_owned(), format!("dbus+unix://{}", scratch.path("bus"))] {
        let words = ["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on];
        let mut server = Running::start(&words);
        let address = server.line();
        for any in [r#"{"shape":"i8","value":-1}"#, r#"{"shape":"sequence<i8>","value":[-1]}"#] {
            let said = run_in(&[], &["call", &address, "remember", any, "-c", &contract]);
            assert!(
                said.code != 0 && said.err.contains("a signed octet in a"),
                "{on}: {}{}",
                said.out,
                said.err
            );
            assert!(!said.err.contains("may have been executed"), "{}", said.err);
        }
    }
}
