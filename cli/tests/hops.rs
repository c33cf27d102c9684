//! The fifth race from the command line: what stands between client and backend, a few messages each.

#![allow(clippy::unwrap_used)]

use crate::support::run;
use serde_json::Value as Json;

const LANES: [&str; 6] = ["iiop", "nettcp", "basic", "ws", "dbus", "dcom"];
const OPERATIONS: [&str; 8] =
    ["100 B", "1 kB", "10 kB", "50 kB", "100 B x 32", "1 kB x 32", "10 kB x 32", "50 kB x 32"];

/// The report of a race in which calls are counted: it ends when all are done, however slow the machine is.
fn race(only: &str) -> Json {
    let words =
        format!("derby broker --time 10m --rounds 2 --calls 8 --placement unpinned --json - --only {only}");
    run(&words.split(' ').collect::<Vec<_>>()).json()
}

fn row<'r>(report: &'r Json, name: &str, operation: &str) -> &'r Json {
    let rows = report["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["name"] == name && row["operation"] == operation);
    found.unwrap_or_else(|| panic!("no {operation} of {name}: {} {}", report["absent"], report["left_out"]))
}

/// Of a contestant with a hop: each message over one connection and over many, and what the hop used for it.
fn whole(report: &Json, name: &str) {
    for operation in OPERATIONS {
        let row = row(report, name, operation);
        let passing = &row["passing"];
        let connections: u64 = if operation.ends_with("x 32") { 32 } else { 1 };
        assert_eq!(passing["connections"].as_u64(), Some(connections), "{row}");
        assert_eq!(row["calls"].as_u64(), Some(connections.max(8)), "{row}");
        assert!(passing["hop_cpu_us"].as_f64().unwrap() > 0.0, "{row}");
        assert!(passing["messages_per_s"].as_f64().unwrap() > 0.0 && row["p99_us"].as_f64().unwrap() > 0.0);
        assert!(passing["rate_to_direct"].is_f64() && passing["cpu_to_forwarder"].is_f64(), "{row}");
        assert_eq!(passing["added_us"].is_f64(), connections == 1, "{row}");
    }
}

#[test]
fn every_lane_is_raced_without_a_hop_and_through_the_forwarder() {
    let report = race("direct,forwarder");
    for lane in LANES {
        whole(&report, &format!("forwarder-{lane}"));
        for operation in OPERATIONS {
            assert!(row(&report, &format!("direct-{lane}"), operation)["passing"]["hop_cpu_us"].is_null());
        }
    }
    assert!(report["verdicts"].as_array().unwrap().is_empty(), "nobody is judged who is a measure");
}

#[test]
fn proxies_pass_every_lane() {
    if !everywire_peers::here("proxies_pass_every_lane", &["haproxy", "nginx"]) {
        return;
    }
    let report = race("direct,forwarder,haproxy,nginx");
    for name in LANES.map(|lane| format!("haproxy-{lane}")) {
        whole(&report, &name);
    }
    whole(&report, "nginx-basic");
    whole(&report, "nginx-ws");
    let verdicts: Vec<&str> =
        report["verdicts"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
    assert!(verdicts.iter().any(|verdict| verdict.starts_with("broker, IIOP, 10 kB x 32")), "{verdicts:?}");
}

#[test]
fn a_router_on_mono_passes_copies_changes_and_types() {
    if !everywire_peers::here("a_router_on_mono_passes_copies_changes_and_types", &["mono"]) {
        return;
    }
    // Its forms are the same code on each binding, and its processes are slow to start.
    let lanes: [(&str, &[&str]); 3] = [
        ("nettcp", &["pass", "copy", "change-copy", "copy-change", "typed"]),
        ("basic", &["pass", "copy-change", "typed"]),
        ("ws", &["pass"]),
    ];
    for (lane, forms) in lanes {
        let names: Vec<String> = forms.iter().map(|form| format!("mono-router-{lane}-{form}")).collect();
        let report = race(&format!("direct-{lane},forwarder-{lane},{}", names.join(",")));
        names.iter().for_each(|name| whole(&report, name));
    }
}

#[test]
fn a_form_of_ours_is_raced_or_named_with_its_error() {
    let report = race("direct,forwarder,everywire-broker");
    for lane in LANES {
        for form in ["pass", "copy", "change-copy", "copy-change", "typed"] {
            let name = format!("everywire-broker-{lane}-{form}");
            let absent = report["absent"].as_array().unwrap().iter().find(|absent| absent["name"] == *name);
            // What is known to pass must do so for ever.
            let passes = lane == "iiop" || (form == "typed" && ["nettcp", "dbus"].contains(&lane));
            match absent.filter(|_| !passes) {
                Some(absent) => assert!(!absent["why"].as_str().unwrap().is_empty()),
                None => whole(&report, &name),
            }
        }
    }
}
