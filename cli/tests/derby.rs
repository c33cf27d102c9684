//! The races from the command line: a small one, and the server for others.

#![allow(clippy::unwrap_used)]

use crate::support::{Running, Scratch, run};
use serde_json::{Value as Json, json};
use std::path::Path;

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

/// The report of a race between two network namespaces; nothing where this user may not make them.
fn remote(words: &str) -> Option<Json> {
    let all = format!("derby callbacks --placement remote --rounds 2 --json - {words}");
    let report = run(&all.split_whitespace().collect::<Vec<_>>()).json();
    let absent =
        report["absent"].as_array().unwrap().iter().find(|absent| absent["name"] == "remote placement");
    if let Some(absent) = absent {
        eprintln!("SKIPPED: no network namespaces here: {}", absent["why"]);
        return None;
    }
    Some(report)
}

#[test]
fn cycles_are_raced_between_two_namespaces_and_traced() {
    let Some(report) = remote("--only everywire-tcp,raw-tcp --calls 5") else { return };
    let rows = report["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    let (own, raw) = (row("everywire-tcp"), row("raw-tcp"));
    assert_eq!(
        (own["operation"].as_str(), raw["operation"].as_str()),
        (Some("callback"), Some("two round trips"))
    );
    assert_eq!(own["placement"], "remote");
    assert_eq!(own["runs_us"].as_array().unwrap().len(), 1);
    assert!(own["dropped_us"].as_f64().unwrap() > 0.0 && own["ratio_to_raw"].as_f64().unwrap() > 0.0);
    // A question and an answer for create, attach, detach and destroy.
    assert_eq!((own["round_trips"].as_f64(), own["frames"].as_f64()), (Some(4.0), Some(8.0)));
    let cycle = |kind: &str| {
        let traces = report["traces"].as_array().unwrap().iter();
        traces.clone().find(|trace| trace["name"] == "everywire-tcp" && trace["cycle"] == kind).unwrap()
    };
    let (first, steady) = (cycle("first"), cycle("steady"));
    assert_eq!((first["connections"].as_u64(), steady["connections"].as_u64()), (Some(1), Some(0)));
    let said: Vec<&Json> =
        steady["frames"].as_array().unwrap().iter().map(|frame| &frame["operation"]).collect();
    assert_eq!(said, ["create", "create", "attach", "attach", "detach", "detach", "destroy", "destroy"]);
    assert!(steady["frames"].as_array().unwrap().iter().all(|frame| frame["interface"].is_string()));
}

#[test]
fn a_link_delays_every_round_trip() {
    let Some(report) = remote("--only everywire-tcp --calls 3 --link 3ms,10mbit --no-trace") else { return };
    assert_eq!(report["traces"].as_array().unwrap().len(), 0);
    // Four round trips of six milliseconds each: nobody is faster than the link.
    let rows = report["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["median_us"].as_f64().unwrap() >= 24_000.0, "{row}");
    }
}

#[test]
fn connection_points_and_callbacks_are_traced_frame_by_frame() {
    let Some(report) = remote("--only everywire-dcom-tcp --calls 5") else { return };
    let traces = report["traces"].as_array().unwrap();
    let cycle = |operation: &str, kind: &str| {
        let found = traces.iter().find(|trace| {
            trace["name"] == "everywire-dcom-tcp" && trace["operation"] == operation && trace["cycle"] == kind
        });
        found.unwrap_or_else(|| panic!("no {kind} cycle of {operation}: {}", report["absent"]))
    };
    // What was released goes with the next call, unless that is long in coming: then it goes by itself, whenever it is due.
    let round_trips = |cycle: &Json| {
        let frames = cycle["frames"].as_array().unwrap();
        let alone = |two: &&[Json]| {
            two[0]["operation"] == "RemRelease" && two[0]["outward"] == true && two[1]["outward"] == false
        };
        let alone = frames.windows(2).filter(|two| two[0]["after"] == false).filter(alone).count();
        cycle["round_trips"].as_u64().unwrap() - alone.min(1) as u64
    };
    // Activation, (the connection point,) advise, unadvise.
    for (operation, most) in [("connection point", 4), ("callback", 3)] {
        let steady = cycle(operation, "steady");
        assert!(round_trips(steady) <= most, "{steady}");
        assert_eq!(steady["connections"], 0);
        let frames = steady["frames"].as_array().unwrap();
        let frames: Vec<&Json> = frames.iter().filter(|frame| frame["after"] == false).collect();
        assert!(
            // The first release may come as late as this, and opens its interface.
            frames.iter().all(|frame| frame["interface"].is_string()
                && (frame["operation"].is_string() || frame["interface"] == "IRemUnknown2")),
            "{steady}"
        );
        let first = cycle(operation, "first");
        assert!(first["connections"].as_u64().unwrap() >= 1);
        assert!(round_trips(first) > round_trips(steady), "{first} {steady}");
    }
    let asked = |operation: &str, what: &str| {
        cycle(operation, "steady")["frames"]
            .as_array()
            .unwrap()
            .iter()
            .any(|frame| frame["operation"] == what)
    };
    assert!(asked("connection point", "FindConnectionPoint") && !asked("callback", "FindConnectionPoint"));
    assert!(["RemoteCreateInstance", "Advise", "Unadvise"].iter().all(|what| asked("callback", what)));
    let reasons: Vec<&str> = report["reasons"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
    assert!(
        reasons.iter().any(|reason| {
            reason.starts_with("Everywire DCOM, TCP: ")
                && reason.contains("IConnectionPointContainer.FindConnectionPoint")
        }),
        "{reasons:?}"
    );
}
