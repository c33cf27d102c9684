//! Every exit code, the three lines of each failure, and the envelope.

use crate::support;
use crate::support::{Bank, Scratch, data, run};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

fn call<'a>(reference: &'a str, words: &[&'a str], contract: &'a str) -> support::Said {
    run(&[&["call", reference], words, &["-c", contract, "--interface", "Account"]].concat())
}

#[test]
fn code_1_an_exception_or_a_failure_of_the_peer() {
    let bank = Bank::open();
    let raised = bank.call(&["withdraw", "10"]);
    let lines = raised.failed(1);
    assert!(lines[0].contains("cannot call `withdraw` at iiop://127.0.0.1:"), "{}", raised.err);
    assert!(
        lines[1].contains("the peer raised Bank::Overdrawn: {missing: 10.0, reason: \"too much\"}"),
        "{}",
        raised.err
    );
    assert!(lines[1].contains("[IDL:Bank/Overdrawn:1.0]"), "{}", raised.err);

    let raised = bank.call(&["withdraw", "10", "--json"]);
    assert_eq!(raised.code, 1);
    let envelope = raised.json();
    assert_eq!(envelope["ok"], json!(false));
    assert_eq!(envelope["value"], json!({"missing": 10.0, "reason": "too much"}));
    let error = &envelope["error"];
    assert_eq!((&error["kind"], &error["code"]), (&json!("exception"), &json!("IDL:Bank/Overdrawn:1.0")));
    assert_eq!(error["completed"], json!("yes"));

    let address = bank.addresses[0].replace("Account", "Nobody");
    let nobody = call(&address, &["title"], &bank.contract);
    assert!(nobody.failed(1)[1].contains("OBJECT_NOT_EXIST"), "{}", nobody.err);
}

#[test]
fn code_2_usage() {
    let (contract, nowhere) = (data("bank.idl"), "iiop://127.0.0.1:1/x");
    let missing = call(nowhere, &["history", "[]"], &contract);
    let lines = missing.failed(2);
    assert_eq!(lines[0], "error: `history` needs 2 arguments");
    assert_eq!(lines[1], "  why: missing: most");
    assert!(lines[2].contains(
        "history(filter: Bank::Entries, inout most: i32, out complete: boolean) -> Bank::Entries; --template"
    ));
    let deep = call(nowhere, &["history", r#"[{"note":5,"amount":1,"unit":"CHF"}]"#, "1"], &contract);
    assert_eq!(deep.failed(2)[1], "  why: arguments.filter[0].note: text is expected, not a number");
    let mistyped = call(nowhere, &["depositt", "1"], &contract);
    assert_eq!(mistyped.failed(2)[2], " hint: did you mean `deposit`?");
    assert!(call(nowhere, &["deposit", "1", "2"], &contract).failed(2)[1].contains("takes 1 argument"));
    assert!(call(nowhere, &["deposit", "-d", "{"], &contract).failed(2)[0].contains("not JSON"));
    assert!(call("nonsense:1", &["title"], &contract).failed(2)[1].contains("no known kind"));
    assert!(run(&["call", nowhere, "zzz", "-c", &contract]).failed(2)[2].contains("--interface"));

    let deaf = run(&["watch", nowhere, "-c", &data("lamp.midl"), "--for", "1s"]);
    assert!(deaf.failed(2)[1].contains("no signals") && !deaf.err.contains("log"), "{}", deaf.err);

    let unknown = run(&["call", nowhere, "--quux", "--json"]);
    assert_eq!(unknown.code, 2);
    assert_eq!(unknown.json()["error"]["kind"], json!("usage"));
    assert_eq!(run(&["frobnicate"]).code, 2);
}

#[test]
fn code_2_a_contract_with_mistakes_shows_all_of_them() {
    let scratch = Scratch::new();
    let file = scratch.path("bad.idl");
    std::fs::write(&file, "interface A { void f(in lnog x); };\ninterface B { void g(inn long y); };\n")
        .unwrap();
    let bad = run(&["call", "iiop://127.0.0.1:1/x", "f", "1", "-c", &file]);
    assert_eq!((bad.code, bad.out.as_str()), (2, ""));
    for place in ["bad.idl:1:", "bad.idl:2:", "void f(in lnog x)", "void g(inn long y)"] {
        assert!(bad.err.contains(place), "{place} in {}", bad.err);
    }
    let bad = run(&["describe", &file, "--json"]);
    assert_eq!((bad.code, &bad.json()["error"]["kind"]), (2, &json!("contract")));
    assert!(run(&["describe", &scratch.path("none.idl")]).err.contains("none.idl"));
}

#[test]
fn code_3_cannot_reach() {
    let scratch = Scratch::new();
    let port = everywire_peers::free_port().unwrap();
    let contract = data("bank.idl");
    let refused = call(&format!("iiop://127.0.0.1:{port}/x"), &["title"], &contract);
    assert!(refused.failed(3)[1].contains("Connection refused"), "{}", refused.err);
    let none = call(&format!("iiop+unix://{}#x", scratch.path("no.sock")), &["title", "--json"], &contract);
    assert_eq!(none.code, 3);
    assert_eq!(none.json()["error"]["kind"], json!("unreachable"));
    assert_eq!(none.json()["error"]["completed"], json!("no"));
    let on = run(&[
        "serve",
        &contract,
        "--interface",
        "Account",
        "--exec",
        "cat",
        "--on",
        "iiop+unix:///no/such/dir/s",
    ]);
    assert!(on.failed(3)[0].contains("cannot listen"), "{}", on.err);
}

#[test]
fn code_4_over_the_limit() {
    let scratch = Scratch::new();
    let file = scratch.path("large");
    std::fs::write(&file, vec![7; 6 << 20]).unwrap();
    let octets = format!("@{file}");
    let bank = Bank::at(&["tcp"], &["--max-message", "16MiB"]);
    let small = bank.call(&["statement", &octets]);
    assert!(small.failed(4)[1].contains("exceeds the limit"), "{}", small.err);
    // A reply that the caller does not take.
    let reply = bank.call(&["inflate", "6000000"]);
    assert!(reply.failed(4)[1].contains("exceeds the limit"), "{}", reply.err);
    let strict = Bank::open();
    let refused = strict.call(&["statement", &octets, "--max-message", "16MiB"]);
    assert!(refused.failed(4)[1].contains("limit"), "{}", refused.err);
    assert!(bank.call(&["statement", &octets, "--max-message", "16MiB"]).good().contains("(6291456 octets)"));
}

#[test]
fn code_5_timed_out() {
    let bank = Bank::open();
    // On a busy machine it takes a while until the call was sent.
    let late = bank.call(&["hangs", "--deadline", "5s"]);
    late.failed(5);
    assert!(late.err.contains("may have been executed"), "{}", late.err);
    assert!(bank.call(&["hangs", "--deadline", "soon"]).err.contains("a time such as 5s"));
}

#[test]
fn code_6_the_peer_breaks_the_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("iiop://{}/x", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 16];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Until the caller is gone.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let garbage = call(&address, &["title"], &data("bank.idl"));
    assert!(garbage.failed(6)[2].contains("everywire trace"), "{}", garbage.err);
    server.join().unwrap();
}
