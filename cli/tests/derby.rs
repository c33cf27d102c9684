//! The races from the command line: a small one, and the server for others.

mod support;

use serde_json::{Value as Json, json};
use std::path::Path;
use support::{Running, Scratch, run};

#[test]
fn the_interfaces_of_the_races_are_served() {
    let scratch = Scratch::new();
    let (references, on) = (scratch.path("refs"), format!("iiop+unix://{}", scratch.path("derby")));
    let mut server = Running::start(&["derby", "serve", "--on", &on, "--ref-file", &references]);
    while !server.line().contains("FiringSource\t") {}
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../derby/contracts/bench.idl");
    let contract = contract.to_string_lossy();
    let call = |name: &str, words: &[&str]| {
        let reference = format!("@{references}:{name}");
        run(&[&["call", &reference], words, &["-c", &contract, "--json"]].concat()).json()
    };
    assert_eq!(call("benchmarking", &["in_out_int_call", "41"])["value"], json!({"v": 42}));
    let octets = call("IRemoteObject", &["GetBytes", "100"]);
    assert_eq!(octets["value"]["return"]["base64"].as_str().map(str::len), Some(136));
    let large = call("IRemoteObject", &["GetBytes", "8388608", "--max-message", "16MiB"]);
    assert_eq!(large["bytes"]["received"], json!(8_388_612));
    assert_eq!(server.end("-TERM").0, 0);
}

#[test]
fn a_small_race_has_a_row_for_each_operation() {
    let words =
        "derby calls --quick --only everywire-unix --placement unpinned --rounds 2 --calls 10 --json -";
    let said = run(&words.split(' ').collect::<Vec<_>>());
    let report = said.json();
    let rows = report["rows"].as_array().unwrap();
    let operations: Vec<&Json> =
        rows.iter().filter(|row| row["mode"] == "default").map(|row| &row["operation"]).collect();
    assert_eq!(operations.len(), 7, "{operations:?}");
    assert!(rows.iter().all(|row| row["race"] == "calls" && row["median_us"].as_f64().unwrap() > 0.0));
    let nobody = run(&["derby", "calls", "--only", "nobody"]);
    assert!(nobody.failed(2)[1].contains("nobody"), "{}", nobody.err);
}
