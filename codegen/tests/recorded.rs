//! The recorded files are what is generated today; the other modules compile and run them.
//!
//! Record anew with `EVERYWIRE_RECORD=1 cargo test -p everywire-codegen recorded`, and read the difference.

#![allow(clippy::unwrap_used)]

use crate::contracts::foreign;
use everywire_codegen::{Options, rust};
use everywire_model::Contract;
use std::path::Path;

fn check(file: &str) {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts").join(file);
    compare(file, &everywire_idl::read(&contract).unwrap_or_else(|mistakes| panic!("{mistakes}")));
}

fn compare(file: &str, contract: &Contract) {
    let golden = file.strip_suffix(".idl").unwrap_or(file).replace('.', "_");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{golden}.rs"));
    compare_with(&golden, contract, &Options { source: file.to_owned(), ..Options::default() });
}

fn compare_with(golden: &Path, contract: &Contract, options: &Options) {
    let generated = rust::generate(contract, options);
    assert_eq!(generated, rust::generate(contract, options), "the same contract, the same text");
    if std::env::var_os("EVERYWIRE_RECORD").is_some() {
        std::fs::write(golden, &generated).unwrap();
    }
    let recorded = std::fs::read_to_string(golden).unwrap();
    let differs = recorded.lines().zip(generated.lines()).position(|(old, new)| old != new);
    assert!(
        recorded == generated,
        "{} is not what is generated now, from line {}; read the top of this test",
        golden.display(),
        differs.map_or_else(|| recorded.lines().count().min(generated.lines().count()), |line| line + 1)
    );
}

/// A contract of the CORBA wire's own, whose code is part of that crate. It is small, since nothing there is asynchronous.
fn check_of_wire(name: &str) {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wires/giop");
    let contract = everywire_idl::read(wire.join(format!("contracts/{name}.idl")))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let options = Options { source: format!("{name}.idl"), asynchronous: false, ..Options::default() };
    compare_with(&wire.join(format!("generated/{name}.rs")), &contract, &options);
}

#[test]
fn the_interface_repository_is_current() {
    check_of_wire("repository");
}

#[test]
fn the_naming_service_is_current() {
    check_of_wire("naming");
}

#[test]
fn bench_is_current() {
    check("bench.idl");
}

#[test]
fn everything_is_current() {
    check("everything.idl");
}

#[test]
fn foreign_is_current() {
    compare("foreign.idl", &foreign::contract());
}

#[test]
fn bench_of_d_bus_is_current() {
    check("bench.dbus.xml");
}

#[test]
fn bench_of_dcop_is_current() {
    check("bench.kidl");
}

#[test]
fn types_of_dcop_are_current() {
    check("types.kidl");
}

#[test]
fn gallery_is_current() {
    check("gallery.xml");
}

#[test]
fn derby_of_midl_is_current() {
    check("derby.midl");
}

#[test]
fn plant_of_midl_is_current() {
    check("plant.midl");
}

#[test]
fn bench_of_wsdl_is_current() {
    check("bench.wsdl");
}

#[test]
fn clock_of_wsdl_is_current() {
    check("clock.wsdl");
}

#[test]
fn one_face_can_be_left_out() {
    let contract = everywire_idl::omg::parse("interface Clock { long long now(); };", "clock.idl").unwrap();
    let blocking = rust::generate(&contract, &Options { asynchronous: false, ..Options::default() });
    assert!(
        blocking
            .contains("pub trait Clock: Send + Sync {\n    fn now(&self) -> Result<i64, ew::Failure>;\n}")
    );
    assert!(!blocking.contains("async"));
    let asynchronous = rust::generate(&contract, &Options { blocking: false, ..Options::default() });
    assert!(asynchronous.contains("pub trait ClockAsync"));
    assert!(!asynchronous.contains("ClockStub"));
}

/// Lines of generated code are few: what they were before they said only what the contract says, and the part of it that they may be.
#[test]
fn generated_code_is_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, before, most) in [
        ("tests/golden/bench.rs", 845, 0.25),
        ("tests/golden/everything.rs", 2849, 0.33),
        ("tests/golden/plant_midl.rs", 1676, 0.33),
        ("tests/golden/clock_wsdl.rs", 978, 0.4),
        ("../wires/giop/generated/repository.rs", 5733, 0.33),
        ("../wires/giop/generated/naming.rs", 1628, 0.33),
    ] {
        let lines = std::fs::read_to_string(root.join(file)).unwrap().lines().count();
        let part = lines as f64 / f64::from(before);
        assert!(part <= most, "{file} has {lines} lines, {part:.2} of {before}");
    }
}
