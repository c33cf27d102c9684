//! Each identifier of an error has a text: the tables of the wires are read, and held against what `everywire explain` knows.

use crate::support::{Running, Scratch, data, run};
use everywire::Kind;
use everywire::com::hresult;
use std::collections::HashSet;
use std::path::Path;

fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of an enumeration's variants.
fn variants(text: &str, name: &str) -> Vec<String> {
    let (_, body) = text.split_once(&format!("pub enum {name} {{\n")).unwrap_or_else(|| panic!("no {name}"));
    let (body, _) = body.split_once("\n}").unwrap();
    let named = body
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    named.map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap().to_owned()).collect()
}

/// What stands between two marks, and there in quotes at the start of each `(`.
fn tuples(text: &str, from: &str) -> Vec<String> {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from}"));
    let (rest, _) = rest.split_once("];").unwrap();
    let quoted = rest.split('(').skip(1).filter_map(|part| part.split('"').nth(1));
    quoted.map(str::to_owned).collect()
}

/// Codes of the sources: (the code as failures show it, its kind where that is to be had).
fn required() -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> = Vec::new();
    for (path, name, layer) in [
        // The wire names what it finds in its layer.
        ("transports/http/src/violations.rs", "ProtocolError", "wcf"),
        ("transports/tls/src/violations.rs", "ProtocolError", "tls"),
        ("wires/giop/src/violations.rs", "ProtocolError", "giop"),
        ("wires/dbus/src/violations.rs", "ProtocolError", "dbus"),
        ("wires/dcop/src/violations.rs", "ProtocolError", "dcop"),
        ("wires/dcop/src/ice/violations.rs", "ProtocolError", "dcop"),
        ("wires/dcom/src/pdu/protocol_error.rs", "ProtocolError", "dcom"),
        ("wires/dcom/src/violations.rs", "Violation", "ndr"),
        ("wires/wcf/src/violations.rs", "ProtocolError", "wcf"),
        ("wires/wcf/src/violations.rs", "Violation", "nbfx"),
    ] {
        let found = variants(&source(path), name);
        assert!(found.len() > 4, "{path}: only {found:?}");
        all.extend(found.into_iter().map(|variant| (format!("{layer} {variant}"), None)));
    }
    // Those of COM, each with the kind that its failure has.
    let text = source("wires/dcom/src/hresult.rs");
    let (_, text) = text.split_once("codes! {\n").unwrap();
    for line in text.split("\n}").next().unwrap().lines() {
        let code = line.split_whitespace().nth(1).unwrap().replace('_', "");
        let code = code
            .strip_prefix("0x")
            .map_or_else(|| code.parse().unwrap(), |hex| u32::from_str_radix(hex, 16).unwrap());
        assert!(hresult::name(code).is_some(), "{line}");
        let kind = hresult::failure(code, None).kind().word();
        let success = line.trim_start().starts_with("S_") || line.trim_start().starts_with("CO_S_");
        all.push((format!("{code:#010x}"), (!success).then(|| kind.to_owned())));
    }
    let text = source("opc/src/codes.rs");
    let (_, text) = text.split_once("codes! {\n").unwrap();
    for line in text.split("\n}").next().unwrap().lines() {
        all.push((line.split_whitespace().nth(1).unwrap().replace('_', ""), None));
    }
    let exceptions =
        tuples(&source("wires/giop/src/exceptions.rs"), "const EXCEPTIONS: &[(&str, Kind)] = &[");
    all.extend(exceptions.into_iter().map(|name| (format!("CORBA::{name}"), None)));
    let errors = tuples(&source("wires/dbus/src/errors.rs"), "const STANDARD: &[(&str, Kind)] = &[");
    all.extend(errors.into_iter().map(|name| (format!("org.freedesktop.DBus.Error.{name}"), None)));
    let text = source("wires/wcf/src/framing/faults.rs");
    let space = text.split("NAMESPACE: &str = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    // Where a name stands: a constant, or the beginning of an arm.
    let faults =
        text.lines().map(str::trim_start).filter(|line| line.starts_with('"') || line.contains("const "));
    let faults = faults.flat_map(|line| line.split('"').skip(1).step_by(2)).filter(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let faults: HashSet<_> = faults.collect();
    assert_eq!(faults.len(), 15, "{faults:?}");
    all.extend(faults.into_iter().map(|name| (format!("{space}{name}"), None)));
    for quota in variants(&source("wires/wcf/src/values/quotas.rs"), "Quota") {
        all.push((format!("wcf Max{quota}"), Some("limit-exceeded".into())));
    }
    // The kinds themselves, by the words that machines get.
    all.extend(Kind::ALL.map(|kind| (kind.word().to_owned(), None)));
    all
}

#[test]
fn each_code_of_the_tables_has_a_text() {
    let told = run(&["explain", "--json"]).json();
    let rows = told["value"].as_array().unwrap();
    let known = |code: &str| {
        rows.iter().find(|row| {
            let held = row["code"].as_str().unwrap();
            held.eq_ignore_ascii_case(code)
                || code.strip_prefix("nbfx ").is_some_and(|name| held == format!("xml {name}"))
        })
    };
    let required = required();
    assert!(required.len() > 250, "only {} codes found: the reader of sources is blind", required.len());
    let mut lacking = Vec::new();
    for (code, kind) in &required {
        match known(code) {
            None => lacking.push(format!("{code} has no text")),
            Some(row) if row["means"].as_str().is_none_or(|text| text.len() < 5) => {
                lacking.push(format!("{code}: {row}"))
            }
            Some(row) if kind.is_some() && row["kind"].as_str() != kind.as_deref() => {
                lacking.push(format!("{code} is {kind:?}, and the table says {}", row["kind"]));
            }
            Some(_) => {}
        }
    }
    assert!(lacking.is_empty(), "help/codes.tsv:\n{}", lacking.join("\n"));
    let codes: HashSet<&str> = rows.iter().map(|row| row["code"].as_str().unwrap()).collect();
    assert_eq!(codes.len(), rows.len(), "a code stands twice");
    // Whatever has a kind has something to try, and that leads to verbs that there are.
    for row in rows.iter().filter(|row| !row["kind"].is_null()) {
        assert!(row["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{row}");
    }
}

#[test]
fn a_code_is_explained_in_words_and_as_json() {
    let said = run(&["explain", "0x80004002"]);
    let text = said.good();
    assert!(text.starts_with("0x80004002 E_NOINTERFACE (COM)\n  means: No such interface."), "{text}");
    assert!(text.contains("no-operation, exit code 1"), "{text}");
    // A kind, by the codes that wires have for it.
    let kind = run(&["explain", "no-object"]);
    for part in
        ["CORBA: OBJECT_NOT_EXIST", "D-Bus: UnknownObject", "COM: ", "RPC_E_DISCONNECTED", "EndpointNotFound"]
    {
        assert!(kind.good().contains(part), "{part}: {}", kind.out);
    }
    let busy = run(&["explain", "busy", "--json"]).json();
    assert_eq!(
        busy["value"][0]["codes"]["D-Bus, error of the system"],
        serde_json::json!(["EBUSY", "EAGAIN"])
    );
    let minor = run(&["explain", "CORBA::INTERNAL", "minor", "0x4a430007"]);
    assert!(minor.good().contains("CORBA::INTERNAL") && minor.out.contains("JacORB"), "{}", minor.out);
    assert_eq!(run(&["explain", "ServiceUnknown", "--json"]).json()["value"][0]["kind"], "unreachable");
    let unknown = run(&["explain", "E_NOINTERFAC"]);
    assert!(unknown.failed(2)[2].contains("`E_NOINTERFACE`"), "{}", unknown.err);
}

#[test]
fn a_failure_names_what_to_explain() {
    let words = ["call", "iiop://127.0.0.1:1/x", "title", "-c", &data("bank.idl")];
    let said = run(&words);
    assert!(said.failed(3)[2].ends_with("(`everywire explain unreachable` tells more)"), "{}", said.err);
    let json = run(&[&words[..], &["--json"]].concat()).json();
    assert_eq!(json["error"]["explain"], "unreachable", "{json}");
    // A code of the peer's is what is explained, where it is known.
    let exec = format!("python3 {}", data("bank.py"));
    let mut server = Running::start(&[
        "serve",
        &data("bank.idl"),
        "--interface",
        "Account",
        "--exec",
        &exec,
        "--on",
        "iiop://127.0.0.1:0",
    ]);
    let missing = server.line().replace("Account", "Nobody");
    let said = run(&["call", &missing, "title", "-c", &data("bank.idl"), "--json"]);
    let word = said.json()["error"]["explain"].as_str().unwrap().to_owned();
    assert!(word.starts_with("CORBA::OBJECT_NOT_EXIST"), "{word}");
    assert!(run(&["explain", &word]).good().contains("no-object"));
    drop(Scratch::new());
}
