//! A program served, and called, over every transport.

use crate::support::{Bank, Running, Scratch, data, run, run_with_input, until};
use everywire::Node;
use everywire::model::{Method, Sink};
use serde_json::json;
use std::io::Write;

#[test]
fn every_transport_carries_calls() {
    let bank = Bank::at(&["tcp", "unix", "shm"], &[]);
    assert!(bank.addresses[0].starts_with("iiop://127.0.0.1:") && bank.addresses[0].ends_with("/Account"));
    assert!(bank.addresses[1].starts_with("iiop+unix:///") && bank.addresses[2].starts_with("iiop+shm:///"));
    for (index, balance) in ["1.5", "3", "4.5"].iter().enumerate() {
        let out = bank.call_at(index, &["deposit", "1.5"]);
        assert_eq!(out.good().parse::<f64>().unwrap(), balance.parse::<f64>().unwrap());
    }
    let whole = run(&["call", &bank.reference, "deposit", "1", "-c", &bank.contract, "--json"]);
    assert_eq!(whole.json()["value"]["return"], json!(5.5));
}

#[test]
fn attributes_are_read_and_written() {
    let bank = Bank::open();
    assert_eq!(bank.call(&["title"]).good(), "Savings");
    assert_eq!(bank.call(&["title=Rainy days"]).good(), "");
    assert_eq!(bank.call(&["title", "Rainy = days"]).good(), "");
    assert_eq!(bank.call(&["_get_title"]).good(), "Rainy = days");
    assert_eq!(bank.call(&["number"]).good(), "18446744073709551615");
    let refused = bank.call(&["number=5"]);
    assert!(refused.failed(2)[1].contains("read-only"), "{}", refused.err);
}

#[test]
fn values_of_every_kind_survive() {
    let bank = Bank::open();
    let entry = json!({"note": "tea", "amount": 2.5, "unit": "CHF"});
    let data = json!({"filter": [entry], "most": 41}).to_string();
    let history = bank.call(&["history", "-d", &data, "--json"]).json();
    assert_eq!(history["value"], json!({"return": [entry, entry], "most": 42, "complete": true}));
    let shown = bank.call(&["history", "[]", "41"]);
    assert_eq!(shown.good(), "return = []\nmost = 42\ncomplete = true");
    // A list has the rest, whichever that is.
    for words in [["history", "[]", "-d", "[41]"], ["history", "most=41", "-d", "[[]]"]] {
        assert_eq!(bank.call(&words).good(), shown.good());
    }
    let twice = bank.call(&["history", "[]", "-d", "[[], 41]"]);
    assert!(twice.failed(2)[1].contains("1 would be given twice"), "{}", twice.err);

    let value = |words: &[&str]| bank.call(&[words, &["--json"]].concat()).json()["value"]["return"].clone();
    assert_eq!(value(&["statement", "plain text"]), json!({"base64": "cGxhaW4gdGV4dA=="}));
    assert_eq!(value(&["statement", r#"{"hex":"00ff"}"#]), json!({"base64": "AP8="}));
    let figure = json!({"discriminator": "CHF", "arm": "five"});
    assert_eq!(value(&["convert", &figure.to_string()]), figure);
    assert_eq!(value(&["remember", r#"{"shape":"u16","value":7}"#]), json!({"shape": "u16", "value": 7}));
    assert_eq!(value(&["shout", "grüße"]), json!("GRÜSSE"));
    assert_eq!(value(&["sibling", "null"]), json!(null));
    assert_eq!(value(&["sibling", &format!("other={}", bank.reference)]), json!(bank.reference));
    assert_eq!(bank.call(&["statement", "plain"]).good(), "\"plain\"");
}

#[test]
fn headers_travel_both_ways() {
    let bank = Bank::open();
    let call = ["deposit", "1", "--header", "0x45570001=0x0aff", "--header", "1163329538=text"];
    let with = bank.call(&[&call[..], &["--headers", "--json"]].concat()).json();
    // On this wire all are bytes.
    assert_eq!(with["headers"], json!({"0x45570001": "0x0aff", "0x45570002": "0x74657874"}));
    assert_eq!(with["value"]["return"], json!(1.0));
    let shown = bank.call(&[&call[..], &["--headers"]].concat());
    assert!(shown.err.contains("header 0x45570001=0x0aff\n"), "{}", shown.err);
    assert_eq!(bank.call(&["deposit", "1", "--headers", "--json"]).json()["headers"], json!({}));
    let wrong = bank.call(&["deposit", "1", "--header", "1=0x00"]);
    assert!(wrong.code == 2 && wrong.err.contains("names no service context"), "{}", wrong.err);
    assert!(bank.call(&["deposit", "1", "--header", "x"]).err.contains("NAME=VALUE"));
}

#[test]
fn arguments_come_from_files_and_standard_input() {
    let (bank, scratch) = (Bank::open(), Scratch::new());
    let file = scratch.path("request.json");
    std::fs::write(&file, r#"{"amount": 2}"#).unwrap();
    assert_eq!(bank.call(&["deposit", "-d", &format!("@{file}")]).good(), "2.0");
    let call = ["call", &bank.addresses[0], "deposit", "-d", "-", "-c", &bank.contract];
    assert_eq!(run_with_input(&call, "[3]").good(), "5.0");
    assert_eq!(bank.call(&["statement", &format!("@{file}")]).good(), r#""{\"amount\": 2}""#);
    let template = bank.call(&["history", "--template"]);
    std::fs::write(&file, template.good()).unwrap();
    bank.call(&["history", "-d", &format!("@{file}")]).good();
}

#[test]
fn oneway_calls_arrive() {
    let bank = Bank::open();
    let sent = bank.call(&["hint", "psst", "--json"]).json();
    assert_eq!((&sent["ok"], &sent["bytes"]["received"]), (&json!(true), &json!(0)));
    // Nobody tells when it arrived: ask until it has.
    assert!((0..100).any(|_| bank.call(&["title"]).good() == "psst"));
    // Others want an answer all the same: sync scopes of CORBA, clients of D-Bus that read no annotations.
    let asked = ["call", &bank.addresses[0], "hint", "psst", "--signature", "void hint(in string what)"];
    run(&asked).good();
}

/// More than wait for a program that reads nothing: nobody would hear that they were refused.
#[test]
fn oneway_calls_wait_for_a_program_that_is_slow_and_arrive_in_their_order() {
    const MANY: usize = 2000;
    let scratch = Scratch::new();
    let (contract, gate, lines) = (scratch.path("log.idl"), scratch.path("gate"), scratch.path("lines"));
    let text = "interface Log { oneway void note(in long n); };";
    std::fs::write(&contract, text).unwrap();
    let interface = everywire_idl::omg::parse(text, "log.idl").unwrap().interface("Log").unwrap().clone();
    for wire in ["iiop", "dbus"] {
        let program = format!("until [ -e {gate} ]; do sleep 0.01; done; cat > {lines}");
        let on = format!("{wire}+unix://{}", scratch.path(wire));
        let mut server = Running::start(&["serve", &contract, "--exec", &program, "--on", &on]);
        let client = Node::new();
        let log = client.object(&server.line()).unwrap();
        let method = Method::Typed { interface: Some(&interface), operation: &interface.operations[0] };
        for n in 0..MANY {
            let n = i32::try_from(n).unwrap();
            log.target().notify(method, &|sink: &mut dyn Sink| sink.i32(n)).unwrap();
        }
        client.stop();
        std::fs::write(&gate, "\n").unwrap();
        let said = || std::fs::read_to_string(&lines).unwrap_or_default();
        until("the program has all calls", || said().lines().count() >= MANY);
        for (n, line) in said().lines().enumerate() {
            let call: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                (&call["arguments"]["n"], &call["oneway"]),
                (&json!(n), &json!(true)),
                "{wire}: {line}"
            );
        }
        drop(server);
        std::fs::remove_file(&gate).unwrap();
        std::fs::remove_file(&lines).unwrap();
    }
}

#[test]
fn the_envelope_tells_who_what_and_how_long() {
    let bank = Bank::open();
    let answer = bank.call(&["deposit", "8", "--json"]).json();
    let keys: Vec<_> = answer.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ok", "value", "peer", "wire", "bytes", "elapsed_ns", "notes"]);
    assert_eq!((&answer["ok"], &answer["wire"]), (&json!(true), &json!("giop")));
    assert!(answer["peer"].as_str().unwrap().starts_with("tcp:127.0.0.1:"));
    assert_eq!(answer["bytes"], json!({"sent": 8, "received": 8}));
    assert!(answer["elapsed_ns"].as_u64().unwrap() > 0);
}

#[test]
fn a_program_that_ends_is_started_again() {
    let mut bank = Bank::open();
    bank.call(&["title=Old"]).good();
    let lines = bank.call(&["dies"]);
    assert!(lines.failed(1)[1].contains("ended (exit status: 3) before it answered"), "{}", lines.err);
    assert!(lines.err.contains("may have been executed"));
    assert_eq!(bank.call(&["title"]).good(), "Savings");
    let (code, err) = bank.server.end("-TERM");
    assert_eq!(code, 0);
    assert!(err.contains("program: ended (exit status: 3) with 1 calls unanswered"), "{err}");
}

/// A program that never answers: callers that have left keep no descriptors, or nobody could call any more.
#[test]
fn callers_that_leave_keep_no_descriptors() {
    let (scratch, log) = (Scratch::new(), Scratch::new());
    let (idl, log) = (scratch.path("echo.idl"), log.path("calls"));
    std::fs::write(&idl, "interface Echo { void echo(); };").unwrap();
    let program = format!("while read call; do echo $call >>{log}; done");
    let mut server =
        Running::start(&["serve", &idl, "--exec", &program, "--key", "k", "--on", "iiop://127.0.0.1:0"]);
    let address = server.line();
    let place = address.trim_start_matches("iiop://").trim_end_matches("/k");
    // A request of GIOP 1.2 for the object `k`, number 1, whose answer is wanted.
    let mut request = b"GIOP\x01\x02\x01\x00\x24\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0k\0\0\0".to_vec();
    request.extend(b"\x05\0\0\0echo\0\0\0\0\0\0\0\0");
    let before = server.descriptors();
    for count in 1..=200 {
        let mut caller = std::net::TcpStream::connect(place).unwrap();
        caller.write_all(&request).unwrap();
        until("the program has the call", || {
            std::fs::read_to_string(&log).is_ok_and(|lines| lines.lines().count() >= count)
        });
    }
    // Some wait until others come.
    let after = server.descriptors();
    assert!(after < before + 100, "{before}, and then {after}");
}

#[test]
fn answers_come_in_any_order() {
    let bank = Bank::open();
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bank.call(&["hangs", "--json"]));
        // The parked call is answered after a later one; try until it was parked.
        while !waiting.is_finished() {
            bank.call(&["deposit", "1"]).good();
        }
        waiting.join().unwrap()
    });
    assert_eq!(waiting.json()["value"], json!({}));
}

#[test]
fn a_server_that_is_told_to_end_answers_the_calls_it_has() {
    for signal in ["-TERM", "-INT"] {
        let mut bank = Bank::open();
        let (address, contract) = (bank.addresses[0].clone(), bank.contract.clone());
        let waiting =
            std::thread::spawn(move || run(&["call", &address, "hangs", "-c", &contract, "--json"]));
        while bank.call(&["title"]).good() != "Parked" {
            assert!(!waiting.is_finished());
        }
        // The program hears of it first, and answers.
        let (code, err) = bank.server.end(signal);
        assert_eq!((code, waiting.join().unwrap().json()["value"].clone()), (0, json!({})), "{err}");
    }
}

#[test]
fn a_server_that_ends_waits_no_longer_than_its_grace() {
    let mut bank = Bank::at(&["tcp"], &["--grace", "1ms"]);
    let (address, contract) = (bank.addresses[0].clone(), bank.contract.clone());
    let waiting = std::thread::spawn(move || run(&["call", &address, "hangs", "-c", &contract]));
    while bank.call(&["title"]).good() != "Parked" {
        assert!(!waiting.is_finished());
    }
    assert_eq!(bank.server.end("-TERM").0, 0);
    let told = waiting.join().unwrap();
    // Its answer may have been quicker than the end.
    assert!(told.code == 0 || told.err.contains("may have been executed"), "{}", told.err);
}

#[test]
fn answers_that_do_not_fit_are_failures() {
    let mut bank = Bank::open();
    let lies = bank.call(&["lies"]);
    assert!(lies.failed(1)[1].contains("nonsense"), "{}", lies.err);
    let fails = bank.call(&["fails"]);
    assert!(fails.failed(1)[1].contains("the vault is stuck"), "{}", fails.err);
    // A success would hide that it was to raise something.
    let misspelled = bank.call(&["misspells"]);
    assert!(misspelled.failed(1)[1].contains("`raises` is no part of an answer"), "{}", misspelled.err);
    assert!(bank.server.end("-INT").1.contains("the answer to `lies` does not fit"));
}

#[test]
fn a_line_that_cannot_be_read_fails_its_call_at_once() {
    let bank = Bank::open();
    for (results, what) in [
        (r#"{"return": 1e400}"#, "number out of range"),
        (r#"{"return": 1, "return": 2}"#, "the member `return` stands there twice"),
        ("{'return': 1}", "key must be a string"),
        // The line is a list of answers then.
        ("[]", "a line is not a JSON object"),
    ] {
        let said = bank.call(&["garbles", results]);
        assert!(said.failed(1)[1].contains(what), "{}", said.err);
    }
    // As Python writes them.
    for (results, value) in [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("1.5", "1.5")] {
        let said = bank.call(&["garbles", &format!(r#"{{"return": {results}}}"#)]);
        assert_eq!(said.good(), value);
    }
}

#[test]
fn arguments_that_stand_there_twice_are_refused() {
    let bank = Bank::open();
    let said = bank.call(&["deposit", "-d", r#"{"amount": 1, "amount": 2}"#]);
    assert!(said.failed(2)[1].contains("the member `amount` stands there twice"), "{}", said.err);
}

#[test]
fn references_come_from_files() {
    let scratch = Scratch::new();
    let file = scratch.path("bank.refs");
    let bank = Bank::at(&["tcp"], &["--ref-file", &file, "--key", "my key", "-v"]);
    assert!(bank.addresses[0].ends_with("/my%20key"), "{}", bank.addresses[0]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, format!("Bank::Account\t{}\n", bank.reference));
    let call = |reference: &str| run(&["call", reference, "title", "-c", &bank.contract]);
    assert_eq!(call(&format!("@{file}")).good(), "Savings");
    assert_eq!(call(&format!("@{file}:Bank::Account")).good(), "Savings");
    assert!(call(&format!("@{file}:Other")).failed(2)[1].contains("it has Bank::Account"));
}

#[test]
fn a_server_ends_in_order_and_leaves_no_socket() {
    let mut bank = Bank::at(&["unix", "shm"], &["-v"]);
    bank.call(&["title"]).good();
    let paths: Vec<String> = bank
        .addresses
        .iter()
        .map(|a| a.split("://").nth(1).unwrap().split('#').next().unwrap().to_owned())
        .collect();
    assert!(paths.iter().all(|path| std::fs::exists(path).unwrap()));
    let (code, err) = bank.server.end("-INT");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("accepted: unix pid "), "{err}");
    assert!(paths.iter().all(|path| !std::fs::exists(path).unwrap()));
}

#[test]
fn a_contract_with_one_interface_needs_no_name() {
    let (bank, scratch) = (Bank::open(), Scratch::new());
    let file = scratch.path("one.idl");
    std::fs::write(&file, "interface Anything { attribute string title; };").unwrap();
    assert_eq!(run(&["call", &bank.addresses[0], "title", "-c", &file]).good(), "Savings");
    let asked =
        run(&["call", &bank.addresses[0], "deposit", "1", "-c", &data("bank.idl"), "--interface", "Nope"]);
    assert!(asked.failed(2)[1].contains("Bank::Account, Bank::Branch"));
    // The address says nothing of the interface: the operation does.
    let call =
        |words: &[&str]| run(&[&["call", &bank.addresses[0]], words, &["-c", &data("bank.idl")]].concat());
    assert_eq!(call(&["Bank::Account.deposit", "1.5"]).good(), "1.5");
    assert_eq!(call(&["Account.deposit", "amount=1.5"]).good(), "3.0");
    assert_eq!(call(&["IDL:Bank/Account:1.0.title=a.b"]).good(), "");
    assert_eq!(call(&["Bank::Account.title"]).good(), "a.b");
    let other = call(&["Bank::Branch.deposit", "1"]);
    assert!(other.failed(2)[1].contains("Bank::Branch has name"), "{}", other.err);
}

#[test]
fn a_program_may_be_any_command_line_of_the_shell() {
    let (contract, program) = (data("bank.idl"), data("bank.py"));
    let (folder, file) = program.rsplit_once('/').unwrap();
    let exec = format!("cd {folder} && python3 {file}");
    let on = "iiop://127.0.0.1:0";
    let mut server =
        Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", on]);
    let address = server.line();
    assert_eq!(run(&["call", &address, "title", "-c", &contract]).good(), "Savings");
}

#[test]
fn a_program_that_cannot_start_ends_the_server() {
    let contract = data("bank.idl");
    for exec in [
        "no-such-program-here",
        "cd /no/such/place && python3 bank.py",
        "python3 -c 'import sys; sys.exit(3)'",
    ] {
        let said = run(&[
            "serve",
            &contract,
            "--interface",
            "Account",
            "--exec",
            exec,
            "--on",
            "iiop://127.0.0.1:0",
        ]);
        assert_eq!(said.code, 2, "{exec}: {}", said.err);
        // Who waits for the addresses does not take it for a server.
        assert_eq!(said.out, "", "{exec}");
        let last: Vec<&str> = said.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(last, [format!("error: cannot start `{exec}`")], "{}", said.err);
    }
}

#[test]
fn a_program_may_have_variables_before_it() {
    let (contract, program) = (data("bank.idl"), data("bank.py"));
    let exec = format!("PYTHONUNBUFFERED=1 python3 {program}");
    let on = "iiop://127.0.0.1:0";
    let mut server =
        Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", on]);
    let address = server.line();
    assert_eq!(run(&["call", &address, "title", "-c", &contract]).good(), "Savings");
}

#[test]
fn an_any_of_a_type_of_the_contract_goes_there_and_back() {
    let bank = Bank::open();
    for any in [
        json!({"shape": "Bank::Entry", "value": {"note": "tea", "amount": 2.5, "unit": "CHF"}}),
        json!({"shape": "Bank::Currency", "value": "USD"}),
        json!({"shape": "Bank::Figure", "value": {"discriminator": "CHF", "arm": "five"}}),
        json!({"shape": "sequence<Bank::Entry>", "value": [{"note": "x", "amount": 1.0, "unit": "EUR"}]}),
        json!({"shape": "Bank::Overdrawn #exception", "value": {"missing": 1.5, "reason": "none"}}),
        json!({"shape": "array<Bank::Currency, 2>", "value": ["USD", "EUR"]}),
        json!({"shape": "object reference", "value": bank.reference}),
    ] {
        // It goes to the program, which gives it back as it was spelled to it.
        let told = bank.call(&["remember", &any.to_string(), "--json"]).json()["value"]["return"].clone();
        assert_eq!(told, any);
        // What was printed is an argument again.
        let again = bank.call(&["remember", &told.to_string(), "--json"]).json()["value"]["return"].clone();
        assert_eq!(again, any);
    }
    // The last part of a name is enough where it is the only one.
    let entry = json!({"shape": "Entry", "value": {"note": "tea", "amount": 2.5, "unit": "CHF"}});
    let told = bank.call(&["remember", &entry.to_string(), "--json"]).json()["value"]["return"].clone();
    assert_eq!(told["shape"], "Bank::Entry");
    let wrong = bank.call(&["remember", r#"{"shape":"Bank::Nothing","value":1}"#]);
    assert!(wrong.failed(2)[1].contains("shape `Bank::Nothing` is unknown"), "{}", wrong.err);
}

/// The program and the caller have a contract that names none of these types.
#[test]
fn an_any_of_a_type_that_no_contract_names_goes_there_and_back() {
    let bank = Bank::open();
    let field = |name: &str, shape: &str| json!({"name": name, "shape": shape});
    let node = json!({
        "kind": "struct", "name": "far::Node", "id": "IDL:far/Node:1.0",
        "fields": [field("v", "i32"), field("next", "sequence<far::Node>")],
    });
    let leaf = json!({"v": 2, "next": []});
    let error =
        json!({"kind": "exception", "name": "far::E", "id": "IDL:far/E:1.0", "fields": [field("n", "u16")]});
    for any in [
        json!({"shape": "i64", "value": -1}),
        json!({"shape": "sequence<f64>", "value": [0.5]}),
        json!({"shape": node, "value": {"v": 1, "next": [leaf, {"v": 3, "next": [leaf]}]}}),
        json!({"shape": {"kind": "sequence", "element": node, "bound": null}, "value": [leaf]}),
        json!({"shape": error, "value": {"n": 7}}),
        json!({"shape": "type code", "value": node}),
        json!({"shape": "type code", "value": "Bank::Entry"}),
        json!({"shape": "type code", "value": "sequence<u16>"}),
        json!({"shape": "type code", "value": null}),
    ] {
        let told = bank.call(&["remember", &any.to_string(), "--json"]).json()["value"]["return"].clone();
        assert_eq!(told, any);
    }
}

#[test]
fn how_deep_values_may_nest_can_be_raised() {
    // Sixty levels of a list in an any: more than 64 of both.
    let mut any = json!({"shape": "i32", "value": 7});
    for _ in 0..40 {
        any = json!({"shape": "sequence<any value>", "value": [any]});
    }
    let deep = any.to_string();
    let plain = Bank::open();
    let refused = plain.call(&["remember", &deep, "--max-depth", "200"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("--max-depth"), "{}", refused.err);
    let raised = Bank::at(&["tcp"], &["--max-depth", "200"]);
    let here = raised.call(&["remember", &deep]);
    assert_ne!(here.code, 0);
    assert!(here.err.contains("--max-depth"), "{}", here.err);
    let told =
        raised.call(&["remember", &deep, "--max-depth", "200", "--json"]).json()["value"]["return"].clone();
    assert_eq!(told, any);
}

#[test]
fn the_components_of_a_reference_are_told_in_words() {
    let bank = Bank::open();
    let said = run(&["describe", &bank.reference, "-c", &bank.contract]);
    assert!(said.good().contains("code sets: narrow UTF-8, also ISO-8859-1; wide UTF-16"), "{}", said.out);
    let told = run(&["describe", &bank.reference, "-c", &bank.contract, "--json"]).json();
    assert!(told.to_string().contains("code sets: narrow UTF-8"), "{told}");
}

#[test]
fn a_second_signal_ends_a_server_that_waits_for_calls() {
    let (scratch, contract) = (Scratch::new(), data("bank.idl"));
    let (on, called) = (format!("iiop+unix://{}", scratch.path("bank")), scratch.path("called"));
    // It does not answer, nor end with its input.
    let exec = format!("read line; touch {called}; exec sleep 1000");
    let words =
        ["serve", &contract, "--interface", "Account", "--on", &on, "--exec", &exec, "--grace", "none"];
    let mut server = Running::start(&words);
    let address = server.line();
    let call = |deadline| ["call", &address, "fails", "-c", &contract, "--deadline", deadline];
    let waits = Running::start(&call("none"));
    while !std::path::Path::new(&called).exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    server.signal("-TERM");
    // Once the first signal was heard, calls are refused; until then they find no answer.
    while run(&call("100ms")).code == 5 {}
    assert_eq!(server.end("-INT").0, 130);
    drop(waits);
}
