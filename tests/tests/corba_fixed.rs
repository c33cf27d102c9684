//! Fixed-point numbers with omniORB on the other side, both ways: parameters, members, elements, and in an `any`.

use crate::common::foreign::{Beside, contract, patient, run, script, until};
use crate::common::{scratch, shelf};
use everywire::Failure;
use everywire::model::fixed::Fixed;
use everywire::model::{Value, Variant};
use everywire_tests::peers::here;
use everywire_tests::prices::desk::{Item, Price, Prices, Till};
use everywire_tests::workshop::once;
use std::process::Command;
use std::sync::Arc;

const PRICE: Fixed = Fixed { digits: 7, scale: 2 };
const COUNT: Fixed = Fixed { digits: 4, scale: 0 };

/// A number as its octets.
fn price(text: &str) -> Price {
    PRICE.read(text).expect("a price").try_into().expect("as long as a price")
}

/// Hundredths.
fn hundredths(price: &[u8]) -> i64 {
    PRICE.text(price).expect("a price").replace('.', "").parse().expect("a number")
}

fn of_hundredths(amount: i64) -> Price {
    let sign = if amount < 0 { "-" } else { "" };
    price(&format!("{sign}{}.{:02}", amount.abs() / 100, amount.abs() % 100))
}

/// A price in an `any`.
fn any(price: &Price) -> Variant {
    Variant::new(PRICE.shape(), Value::Bytes(price.to_vec().into()))
}

struct Ours;

impl Till for Ours {
    fn twice(&self, what: &Price) -> Result<Price, Failure> {
        Ok(of_hundredths(2 * hundredths(what)))
    }

    fn pass(&self, what: &Item) -> Result<(Item, Prices), Failure> {
        Ok((what.clone(), vec![what.cost, of_hundredths(-hundredths(&what.cost))]))
    }

    fn more(&self, what: &Variant) -> Result<Variant, Failure> {
        let Value::Bytes(octets) = &*what.value() else { return Ok(what.clone()) };
        Ok(any(&of_hundredths(hundredths(octets) + 1)))
    }
}

/// omniORB's program, compiled with the contract; or nothing, said loudly.
fn omniorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["g++", "omniorb"]) {
        return None;
    }
    let sources = [script("fixed_omniorb.cc"), contract("price.idl")];
    let compiled = once(env!("CARGO_TARGET_TMPDIR"), "fixed_omniorb", &sources, |fresh| {
        let dir = shelf().join("fixed_omniorb");
        std::fs::create_dir_all(&dir).expect("a directory");
        run(Command::new("omniidl").args(["-bcxx", "-Wba", "-C"]).arg(&dir).arg(&sources[1]));
        let mut compiler = Command::new("g++");
        compiler.args(["-O0", "-Wall", "-o"]).arg(fresh).arg("-I").arg(&dir).arg(&sources[0]);
        compiler.arg(dir.join("priceSK.cc")).arg(dir.join("priceDynSK.cc"));
        run(compiler.args(["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"]));
    });
    Some(move |words: &[&str]| {
        let mut command = Command::new(&compiled);
        command.args(words).args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
        command
    })
}

#[test]
fn fixed_point_numbers_travel_to_omniorb_and_back() {
    let Some(program) = omniorb("fixed_point_numbers_travel_to_omniorb_and_back") else { return };
    let file = scratch("fixed-omniorb").join("reference");
    let server = Beside::start(&mut program(&["serve", &file.display().to_string()]));
    server.hear("ready");
    until("the reference is there", || std::fs::read_to_string(&file).is_ok_and(|text| !text.is_empty()));
    let reference = std::fs::read_to_string(&file).expect("a reference");
    let till = patient().connect::<dyn Till>(reference.trim()).expect("it parses");
    assert_eq!(till.twice(&price("123.45")).expect("it answers"), price("246.9"));
    assert_eq!(till.twice(&price("-0.01")).expect("it answers"), price("-0.02"));
    let pieces = COUNT.read("1234").expect("a count").try_into().expect("as long as a count");
    let item = Item { before: 1, cost: price("-99999.99"), pieces, behind: 5 };
    let both = vec![price("-99999.99"), price("99999.99")];
    assert_eq!(till.pass(&item).expect("it answers"), (item, both));
    let (shape, value) = till.more(&any(&price("5.25"))).expect("it answers").into_parts();
    assert_eq!((Fixed::of(&shape), value), (Some(PRICE), Value::Bytes(price("5.26").to_vec().into())));
    // The sum has a digit too many: the server says so.
    let failure = till.twice(&price("99999.99")).expect_err("it does not fit");
    assert!(failure.to_string().contains("DATA_CONVERSION"), "{failure}");
}

#[test]
fn fixed_point_numbers_come_from_omniorb_and_go_back() {
    let Some(program) = omniorb("fixed_point_numbers_come_from_omniorb_and_go_back") else { return };
    let node = patient();
    node.listen("iiop://127.0.0.1:0").expect("a free port");
    let reference = node.print(node.export::<dyn Till>("till", Arc::new(Ours)).reference());
    let told = "twice: 246.9 -0.02\npass: -99999.99 1234 5 2 99999.99\nmore: 5.26\n";
    assert_eq!(run(&mut program(&[&reference])), told);
}
