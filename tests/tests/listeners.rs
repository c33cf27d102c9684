//! `everywire watch` at objects of CORBA that call their listeners back: ours, whose server tells the listener's interface, and omniORB's.

use crate::common::foreign::{Beside, everywire, run_with};
use crate::common::{Server, omniorb, scratch};
use everywire_tests::peers::root;

/// Watches a source, has it fire, and hears of it.
fn heard(server: &Server, contract: &[&str]) {
    let source = format!("@{}:FiringSource", server.references().display());
    let watch = Beside::start(everywire().args(["watch", &source, "--count", "3", "--json"]).args(contract));
    crate::common::foreign::until("it watches", || watch.errors().contains("watching"));
    let file = root().join("derby/contracts/bench.idl");
    let fire = run_with(everywire().args(["call", &source, "Fire", "2", "-c"]).arg(file), b"");
    assert!(fire.success, "{}{}", fire.out, fire.err);
    let lines = watch.hear("HelloSync");
    assert_eq!(lines.iter().filter(|line| line.contains("\"Hello\"")).count(), 2, "{lines:?}");
}

#[test]
fn a_source_of_ours_is_watched_without_a_contract() {
    let server = Server::ours("iiop://127.0.0.1:0", &scratch("listeners-ours"), 16);
    heard(&server, &[]);
}

#[test]
fn a_source_of_omniorb_is_watched_by_its_contract() {
    let Some(peer) = omniorb("a_source_of_omniorb_is_watched_by_its_contract") else { return };
    let server = Server::omniorb(&peer, "tcp", &scratch("listeners-omniorb"));
    let file = root().join("derby/contracts/bench.idl");
    heard(&server, &["-c", &file.display().to_string()]);
    // Without one, it is said why and what to do.
    let source = format!("@{}:FiringSource", server.references().display());
    let said = run_with(everywire().args(["watch", &source]), b"");
    assert!(!said.success && said.err.contains("no interface repository"), "{}", said.err);
    assert!(said.err.contains("give the contract with --contract FILE"), "{}", said.err);
}
