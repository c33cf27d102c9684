//! The recorded files are what is generated today; the other modules compile and run them.
//!
//! Record anew with `EVERYWIRE_RECORD=1 cargo test -p everywire-codegen recorded`, and read the difference.

#![allow(clippy::unwrap_used)]

use crate::contracts::foreign;
use everywire_codegen::{Options, rust};
use everywire_model::shape::{Field, Shape};
use everywire_model::{Attribute, Contract, Interface, Operation, Remote};
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

/// A contract of a wire's own, whose code is part of that crate. It is small: there are no traits, since wires serve and call by
/// descriptions.
fn check_of_wire(wire: &str, name: &str) {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wires").join(wire);
    let contract = everywire_idl::read(wire.join(format!("contracts/{name}.idl")))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let source = format!("{name}.idl");
    let options = Options { source, blocking: false, asynchronous: false, ..Options::default() };
    compare_with(&wire.join(format!("generated/{name}.rs")), &contract, &options);
}

#[test]
fn the_interface_repository_is_current() {
    check_of_wire("giop", "repository");
}

#[test]
fn the_naming_service_is_current() {
    check_of_wire("giop", "naming");
}

#[test]
fn what_com_expects_of_every_object_is_current() {
    check_of_wire("dcom", "standard");
}

#[test]
fn bench_is_current() {
    check("bench.idl");
}

/// That it compiles is what counts: `Sized` is a type of the contract there, and `GUID` is none.
#[test]
fn shadows_are_current() {
    check("shadows.idl");
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
fn vaults_are_current() {
    ["vault.idl", "vault.xml", "vault.kidl", "vault.midl"].into_iter().for_each(check);
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
        ("tests/golden/bench.rs", 845, 0.2),
        ("tests/golden/everything.rs", 2849, 0.25),
        ("tests/golden/plant_midl.rs", 1676, 0.25),
        ("tests/golden/clock_wsdl.rs", 978, 0.35),
    ] {
        let lines = std::fs::read_to_string(root.join(file)).unwrap().lines().count();
        let part = lines as f64 / f64::from(before);
        assert!(part <= most, "{file} has {lines} lines, {part:.2} of {before}");
    }
}

/// The noun of a shape; what a contract says of a value beside its type (`length_is`) is part of statics only where a wire needs it.
fn noun(shape: &Shape) -> String {
    match shape {
        Shape::Alias(alias) if alias.name.contains('(') => noun(&alias.target),
        other => other.noun().to_string(),
    }
}

/// What an operation is, in words: shapes are named, since those of a contract and those of statics are held in different ways.
fn told(operation: &Operation) -> String {
    let list = |fields: &[Field]| -> Vec<String> {
        fields.iter().map(|field| format!("{} {}", field.name, noun(&field.shape))).collect()
    };
    let raises: Vec<&str> = operation.raises.iter().map(|raised| raised.id.as_ref()).collect();
    let parameters: Vec<_> = operation.parameters.iter().map(|parameter| parameter.direction).collect();
    let Operation { name, label, returns, arguments, results, oneway, id, notes, .. } = operation;
    let (arguments, results) = (list(arguments.fields()), list(results.fields()));
    let returns = returns.noun();
    format!(
        "{name} {label} {parameters:?} {returns} {arguments:?} {results:?} {raises:?} {oneway} {id:?} {notes:?}"
    )
}

/// What an interface inherits is described as it is in the contract, although the generated text does not say it again.
#[test]
fn inherited_descriptions_are_those_of_the_contract() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts");
    for (file, generated) in [
        ("bench.idl", <dyn crate::bench::FiringSource as Remote>::interface()),
        ("everything.idl", <dyn crate::everything::figures::Canvas as Remote>::interface()),
        ("plant.midl", <dyn crate::plant_midl::Tank as Remote>::interface()),
    ] {
        let contract = everywire_idl::read(folder.join(file)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let read = contract.interfaces().find(|interface| interface.name == generated.name).unwrap();
        assert!(read.inherited > 0);
        let all = |interface: &Interface| interface.operations.iter().map(told).collect::<Vec<_>>();
        assert_eq!(all(generated), all(read), "{file}");
        let attributes = |interface: &Interface| -> Vec<_> {
            let told = |attribute: &Attribute| {
                let Attribute { name, shape, getter, setter, notify } = attribute;
                format!("{name} {} {getter} {setter:?} {notify:?}", shape.noun())
            };
            interface.attributes.iter().map(told).collect()
        };
        assert_eq!(attributes(generated), attributes(read), "{file}");
    }
}
