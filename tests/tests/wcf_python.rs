//! Python's clients of WCF use our services: pynettcp over net.tcp, zeep over HTTP.

mod common;

use common::cellar::Cellar;
use common::cellar::contract::cellar::ICellar;
use common::dcom::cached;
use common::foreign::{run, script};
use common::hello::Remote;
use common::hello::bench::IRemoteObject;
use everywire::Node;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The versions that the checks are made with; they are also in `scripts/setup.sh`.
const PYNETTCP: &str = "pynettcp-0.1.0";
const ZEEP: &str = "zeep-4.3.3";

/// A server of ours, and where it listens: `SCHEME://HOST:PORT`.
fn serving(scheme: &str) -> (Node, String) {
    let node = Node::new();
    let address = node
        .listen(&format!("{scheme}://127.0.0.1:0?security=none&MaxReceivedMessageSize=67108864"))
        .unwrap_or_else(|failure| panic!("{scheme}: {failure}"));
    let _ = node.export::<dyn IRemoteObject>("bench", Arc::new(Remote));
    let _ = node.export::<dyn ICellar>("cellar", Arc::new(Cellar::default()));
    let place = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
    let place = place.split(['/', '?']).next().unwrap_or(place);
    (node, place.to_owned())
}

/// A Python with this library runs this script; or nothing, said loudly.
fn python(test: &str, library: &str, directory: &str, program: &str) -> Option<Command> {
    let module = library.to_owned();
    let works = move |directory: &Path| {
        let import =
            Command::new(directory.join("bin/python")).args(["-c", &format!("import {module}")]).output();
        import.is_ok_and(|output| output.status.success())
    };
    let directory = cached(test, library, directory, works)?;
    let mut command = Command::new(directory.join("bin/python"));
    command.arg(script(program)).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

fn succeeds(command: &mut Command) {
    let said = run(command);
    assert_eq!(said.lines().last(), Some("ok"), "{command:?}: {said}");
}

fn nettcp(test: &str, deed: &str, service: &str) {
    let Some(mut python) = python(test, "pynettcp", PYNETTCP, "nettcp.py") else { return };
    let (_node, place) = serving("net.tcp");
    succeeds(python.arg(deed).arg(format!("net.tcp://{place}/{service}")));
}

fn zeep(test: &str, scheme: &str, service: &str) {
    let Some(mut python) = python(test, "zeep", ZEEP, "zeep_client.py") else { return };
    let (_node, place) = serving(scheme);
    succeeds(python.arg(service).arg(format!("http://{place}/{service}?wsdl")));
}

#[test]
fn pynettcp_makes_a_client_of_our_metadata_and_uses_it() {
    nettcp("pynettcp_makes_a_client_of_our_metadata_and_uses_it", "bench", "bench");
}

#[test]
fn pynettcp_calls_us_with_classes_lists_and_faults() {
    nettcp("pynettcp_calls_us_with_classes_lists_and_faults", "cellar", "cellar");
}

#[test]
fn pynettcp_is_told_of_wrong_paths_and_actions() {
    nettcp("pynettcp_is_told_of_wrong_paths_and_actions", "wrong", "cellar");
}

#[test]
fn pynettcp_keeps_sessions_apart() {
    nettcp("pynettcp_keeps_sessions_apart", "session", "cellar");
}

#[test]
fn zeep_reads_our_contracts_and_calls_over_basic_http() {
    zeep("zeep_reads_our_contracts_and_calls_over_basic_http", "basic", "bench");
    zeep("zeep_reads_our_contracts_and_calls_over_basic_http", "basic", "cellar");
}

/// zeep writes the headers of WS-Addressing when the contract's binding asks for them.
#[test]
fn zeep_reads_our_contracts_and_calls_over_ws_http() {
    zeep("zeep_reads_our_contracts_and_calls_over_ws_http", "wshttp", "bench");
}
