//! The recorded files are what is generated today; the test `generated` compiles and runs them.
//!
//! Record anew with `EVERYWIRE_RECORD=1 cargo test -p everywire-codegen --test recorded`, and read the difference.

#![allow(clippy::unwrap_used)]

#[path = "contracts/foreign.rs"]
mod foreign;

use everywire_codegen::{Options, rust};
use everywire_model::Contract;
use std::path::Path;

fn check(stem: &str) {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/contracts/{stem}.idl"));
    compare(stem, &everywire_idl::read(&contract).unwrap_or_else(|mistakes| panic!("{mistakes}")));
}

fn compare(stem: &str, contract: &Contract) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{stem}.rs"));
    let options = Options { source: format!("{stem}.idl"), ..Options::default() };
    let generated = rust::generate(contract, &options);
    assert_eq!(generated, rust::generate(contract, &options), "the same contract, the same text");
    if std::env::var_os("EVERYWIRE_RECORD").is_some() {
        std::fs::write(&golden, &generated).unwrap();
    }
    let recorded = std::fs::read_to_string(&golden).unwrap();
    let differs = recorded.lines().zip(generated.lines()).position(|(old, new)| old != new);
    assert!(
        recorded == generated,
        "{} is not what is generated now, from line {}; read the top of this test",
        golden.display(),
        differs.map_or_else(|| recorded.lines().count().min(generated.lines().count()), |line| line + 1)
    );
}

#[test]
fn bench_is_current() {
    check("bench");
}

#[test]
fn everything_is_current() {
    check("everything");
}

#[test]
fn foreign_is_current() {
    compare("foreign", &foreign::contract());
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
