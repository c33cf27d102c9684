//! Properties of callers: what a clause `context` adds to a request, with omniORB on the other side, both ways, and through a hop.

use crate::common::foreign::{Beside, contract, patient, run, script, until};
use crate::common::forwarder::Hop;
use crate::common::{scratch, shelf};
use everywire::Failure;
use everywire_tests::desk::properties::{Desk, Unknown, WhoError};
use everywire_tests::peers::here;
use everywire_tests::workshop::once;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Where programs of omniORB listen, if they do.
const ANYWHERE: [&str; 2] = ["-ORBendPoint", "giop:tcp:127.0.0.1:"];

/// Both sides with omniORB, compiled; or nothing, said loudly.
fn omniorb(test: &str) -> Option<PathBuf> {
    here(test, &["g++", "omniorb"]).then(|| {
        let sources = [script("properties_omniorb.cc"), contract("properties.idl")];
        once(env!("CARGO_TARGET_TMPDIR"), "properties_omniorb", &sources, |fresh| {
            let dir = shelf().join("properties_omniorb");
            std::fs::create_dir_all(&dir).expect("a directory");
            run(Command::new("omniidl").args(["-bcxx", "-C"]).arg(&dir).arg(&sources[1]));
            run(Command::new("g++")
                .args(["-O1", "-Wall", "-o"])
                .arg(fresh)
                .arg("-I")
                .arg(&dir)
                .arg(&sources[0])
                .arg(dir.join("propertiesSK.cc"))
                .args(["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"]));
        })
    })
}

/// omniORB's server, and its reference.
fn desk_of_omniorb(program: &Path, name: &str) -> (Beside, String) {
    let file = scratch(name).join("reference");
    let server = Beside::start(Command::new(program).arg("serve").arg(&file).args(ANYWHERE));
    server.hear("ready");
    until("the reference is there", || std::fs::read_to_string(&file).is_ok_and(|text| !text.is_empty()));
    let reference = std::fs::read_to_string(&file).expect("a reference");
    (server, reference)
}

/// Ours, to which nobody brings anything: properties that come are passed over.
struct Ours;

impl Desk for Ours {
    fn brought(&self, greeting: &str, odd: u8) -> Result<String, Failure> {
        Ok(format!("{greeting} {odd}"))
    }

    fn who(&self, aloud: bool) -> Result<String, WhoError> {
        assert!(aloud);
        Err(Unknown { name: "nobody".to_owned() }.into())
    }

    fn plain(&self, number: i32) -> Result<i32, Failure> {
        Ok(number + 1)
    }
}

/// A caller of ours is one without properties, whatever the version of GIOP.
fn asks_without_properties(reference: &str) {
    let node = patient();
    let desk = node.connect::<dyn Desk>(reference).expect("it parses");
    for odd in [7, 0, 255] {
        assert_eq!(desk.brought("hello", odd).expect("a list follows the octet"), format!("hello {odd}"));
    }
    match desk.who(true) {
        Err(WhoError::Unknown(unknown)) => assert_eq!(unknown.name, "nobody"),
        other => panic!("{other:?}"),
    }
    assert_eq!(desk.plain(41).expect("plain"), 42);
}

#[test]
fn omniorb_reads_an_empty_list_behind_our_arguments() {
    let Some(program) = omniorb("omniorb_reads_an_empty_list_behind_our_arguments") else { return };
    let (_server, reference) = desk_of_omniorb(&program, "properties-theirs");
    asks_without_properties(&reference);
    // The same object by versions of GIOP in which a list has another place, since bodies are not aligned at 8.
    let node = patient();
    let mut older = node.parse(&reference).expect("a reference");
    for minor in [0, 1] {
        older.profiles[0].version.1 = minor;
        asks_without_properties(&node.print(&older));
    }
    // A hop, which knows no contract, passes the empty list on as it passes all of a body.
    let hop = Hop::between("iiop://127.0.0.1:0", &reference, &[]);
    let key = &node.parse(&reference).expect("a reference").profiles[0].key;
    asks_without_properties(&hop.print(&hop.published_as("IDL:properties/Desk:1.0", key)));
}

#[test]
fn we_pass_over_the_properties_that_omniorb_brings() {
    let Some(program) = omniorb("we_pass_over_the_properties_that_omniorb_brings") else { return };
    let node = patient();
    node.listen("iiop://127.0.0.1:0").expect("a free port");
    let desk = node.export::<dyn Desk>("desk", Arc::new(Ours));
    let told = run(Command::new(&program).arg(node.print(desk.reference())).args(ANYWHERE));
    let once = "hello 7\nunknown: nobody\n42\n";
    assert_eq!(told, format!("{once}{once}"));
}

#[test]
fn properties_pass_a_hop() {
    let Some(program) = omniorb("properties_pass_a_hop") else { return };
    let (_server, reference) = desk_of_omniorb(&program, "properties-hop");
    let hop = Hop::between("iiop://127.0.0.1:0", &reference, &[]);
    let key = &hop.parse(&reference).expect("a reference").profiles[0].key;
    let own = hop.print(&hop.published_as("IDL:properties/Desk:1.0", key));
    let told = run(Command::new(&program).arg(own).args(ANYWHERE));
    // What is not in the clause (`kept`) never leaves the caller.
    let with = "hello 7 app.name=ledger app.version=3 user=Ada\nAda\n42\n";
    assert_eq!(told, format!("hello 7\nunknown: nobody\n42\n{with}"));
}
