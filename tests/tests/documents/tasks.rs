//! The pages of tasks: each is a session of its own, with the files of docs/serve.md.

use super::Does::{Ends, Left, Stays, Stops};
use super::{Does, PEERS, blocks, run};
use crate::common::dcom::alone;
use everywire_tests::peers::here;

pub(super) const SERVE: &str = include_str!("../../../docs/serve.md");
const CALL: &str = include_str!("../../../docs/call.md");
const SEE: &str = include_str!("../../../docs/see.md");
const ACCESS: &str = include_str!("../../../docs/access.md");
const MOVE: &str = include_str!("../../../docs/move.md");
const INDEX: &str = include_str!("../../../docs/index.md");
const OPC: &str = include_str!("../../../docs/opc.md");

/// The pages whose commands run here.
pub(super) const PAGES: [&str; 7] = [
    "docs/serve.md",
    "docs/call.md",
    "docs/see.md",
    "docs/access.md",
    "docs/move.md",
    "docs/index.md",
    "docs/opc.md",
];

const OF_SERVE: &[(&str, Does)] = &[
    ("everywire serve account.idl", Stays("IOR:")),
    ("everywire serve clock.xml", Stays("net.tcp://127.0.0.1:4813")),
];

const OF_CALL: &[(&str, Does)] = &[
    ("everywire serve account.idl", Stays("IOR:")),
    // The page shows how a failure looks.
    ("everywire call net.tcp://127.0.0.1:4808/account withdraw 1000", Ends(1)),
];

const OF_SEE: &[(&str, Does)] = &[
    ("everywire serve account.idl", Stays("IOR:")),
    ("everywire serve clock.xml", Stays("dbus:session")),
    ("everywire trace iiop", Stays("IOR:")),
    ("everywire trace net.tcp", Stays("clients use")),
    ("tcpdump", Stays("listening on lo")),
    ("kill %tcpdump", Stops),
    ("everywire trace dbus:session", Stays("")),
];

const OF_ACCESS: &[(&str, Does)] = &[
    (
        "everywire serve account.idl --interface Bank::Account --key account --exec \"python3 account.py\" --on 'dcom",
        Stays("net.tcp"),
    ),
    (
        "everywire serve account.idl --interface Bank::Account --key account --exec \"python3 account.py\" --on 'net.tcp",
        Stays("basics"),
    ),
    (
        "everywire serve account.idl --interface Bank::Account --key account --exec \"python3 account.py\" --on dbus",
        Stays("dbus:tcp"),
    ),
    (
        "everywire serve account.idl --interface Bank::Account --key account --exec \"python3 account.py\" --on 'iiop",
        Stays("IOR:"),
    ),
];

const OF_MOVE: &[(&str, Does)] = &[
    ("everywire serve account.idl", Stays("IOR:")),
    ("everywire derby", Left("takes 20 seconds; its parts are the tests of cli/tests/derby.rs")),
    ("everywire broker front.toml &", Stays("admin")),
    ("everywire broker bridge.toml &", Stays("account\t")),
    ("everywire serve --opc", Stays("dcom:")),
];

const OF_INDEX: &[(&str, Does)] = &[("everywire demo", Stays("Counters.Seconds"))];

const OF_OPC: &[(&str, Does)] = &[
    ("everywire serve --opc", Stays("dcom:")),
    ("everywire list opcda://ada@plant-pc", Left("its host is an example")),
    ("everywire describe opcda://ada@plant-pc", Left("its host is an example")),
    ("everywire call opcda://ada@plant-pc", Left("its host is an example")),
    ("everywire watch opcda://ada@plant-pc", Left("its host is an example")),
];

/// Runs a page, and says what is wrong with it.
fn page(test: &str, peers: &[&str], document: &str, list: &[(&str, Does)]) {
    if !here(test, &[&PEERS[..], peers].concat()) || !alone(test) {
        return;
    }
    let first = |language: &str| blocks::fenced(SERVE, language).into_iter();
    let programs = first("python").zip(["account.py", "clock.py"]);
    let contracts = first("idl").zip(["account.idl"]).chain(first("xml").zip(["clock.xml"]));
    let settings = blocks::fenced(document, "toml").into_iter().zip(["front.toml", "bridge.toml"]);
    let files: Vec<_> =
        programs.chain(contracts).chain(settings).map(|(text, name)| (name, text.into_bytes())).collect();
    let wrong = run(test, document, list, &files);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_commands_of_serve_an_object_work_as_printed() {
    page("the_commands_of_serve_an_object_work_as_printed", &["curl"], SERVE, OF_SERVE);
}

#[test]
fn the_commands_of_call_an_old_service_work_as_printed() {
    page("the_commands_of_call_an_old_service_work_as_printed", &[], CALL, OF_CALL);
}

#[test]
fn the_commands_of_see_what_a_service_says_work_as_printed() {
    page("the_commands_of_see_what_a_service_says_work_as_printed", &["tcpdump"], SEE, OF_SEE);
}

#[test]
fn the_commands_of_who_may_call_work_as_printed() {
    page("the_commands_of_who_may_call_work_as_printed", &["openssl"], ACCESS, OF_ACCESS);
}

#[test]
fn the_commands_of_move_off_it_work_as_printed() {
    page("the_commands_of_move_off_it_work_as_printed", &["curl"], MOVE, OF_MOVE);
}

// A short name: sockets below a folder that is called so have paths of 107 bytes at the most.
#[test]
fn commands_of_the_first_page_work() {
    page("commands_of_the_first_page_work", &[], INDEX, OF_INDEX);
}

#[test]
fn the_commands_of_opc_data_access_work_as_printed() {
    page("the_commands_of_opc_data_access_work_as_printed", &[], OPC, OF_OPC);
}
