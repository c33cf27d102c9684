//! The relay of `trace`: calls pass, and are explained.

use crate::support::{Bank, Running, Scratch, run};
use serde_json::{Value as Json, json};

#[test]
fn calls_pass_and_are_told() {
    let bank = Bank::open();
    let mut relay = Running::start(&["trace", &bank.reference, "--on", "iiop://127.0.0.1:0", "--json"]);
    let opened: Json = serde_json::from_str(&relay.line()).unwrap();
    let (address, reference) = (&opened["value"]["address"], opened["value"]["reference"].as_str().unwrap());
    assert!(address.as_str().unwrap().ends_with("/Account"), "{opened}");
    assert_ne!(*address, json!(bank.addresses[0]));

    let answer = run(&["call", reference, "deposit", "7", "-c", &bank.contract, "--json"]).json();
    assert_eq!(answer["value"]["return"], json!(7.0));
    assert_eq!(answer["peer"], opened["value"]["listening"]);
    let request: Json = serde_json::from_str(&relay.line()).unwrap();
    assert_eq!((&request["direction"], &request["wire"]), (&json!("->"), &json!("giop")));
    assert!(request["summary"].as_str().unwrap().contains("deposit"), "{request}");
    let reply: Json = serde_json::from_str(&relay.line()).unwrap();
    assert_eq!((&reply["direction"], &reply["connection"]), (&json!("<-"), &json!(1)));
    let (code, err) = relay.end("-INT");
    assert_eq!(code, 0);
    assert!(err.contains("#1 opened by 127.0.0.1:"), "{err}");
}

#[test]
fn a_unix_socket_is_relayed_to_tcp() {
    let (bank, scratch) = (Bank::open(), Scratch::new());
    let plain = bank.addresses[0].trim_start_matches("iiop://").trim_end_matches("/Account");
    let on = format!("unix:{}", scratch.path("relay"));
    let mut relay = Running::start(&["trace", plain, "--on", &on, "-v", "--no-color"]);
    assert_eq!(relay.line(), on);
    let address = format!("iiop+{}#Account", on.replace("unix:", "unix://"));
    assert_eq!(
        run(&["call", &address, "title", "-c", &bank.contract, "--interface", "Account"]).good(),
        "Savings"
    );
    assert!(relay.line().contains("#1 -> Request"));
    assert!(relay.line().contains("@0 "));
    assert_eq!(relay.end("-TERM").0, 0);
    assert!(!std::fs::exists(scratch.path("relay")).unwrap());
}

#[test]
fn strangers_are_passed_on_and_named() {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = server.local_addr().unwrap().to_string();
    let mut relay = Running::start(&["trace", &there, "--on", "127.0.0.1:0"]);
    let here = relay.line();
    let mut client = TcpStream::connect(here.trim_start_matches("tcp:")).unwrap();
    client.write_all(b"SSH-2.0-hello\r\n").unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    let mut passed = [0; 15];
    accepted.read_exact(&mut passed).unwrap();
    assert_eq!(&passed, b"SSH-2.0-hello\r\n");
    accepted.write_all(b"bye").unwrap();
    drop(accepted);
    let mut back = Vec::new();
    client.read_to_end(&mut back).unwrap();
    assert_eq!(back, b"bye");
    drop(client);
    relay.tells("#1 -> 15 octets of no known wire");
    relay.tells("#1 <- 3 octets of no known wire");
    assert_eq!(relay.end("-TERM").0, 0);
}
