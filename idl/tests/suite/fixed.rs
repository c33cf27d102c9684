//! Fixed-point numbers of OMG IDL: what becomes of them in a contract, and that they are printed as they were read.

use everywire_idl::omg;
use everywire_model::fixed::Fixed;
use everywire_model::{Definition, Shape};

const TEXT: &str = "const short BEHIND = 2;
  typedef fixed<10, BEHIND> Price;
  typedef sequence<fixed<3,3> > Parts;
  typedef Price Prices[4];
  struct Item { Price cost; fixed<31,0> number; Parts shares; };
  union Sum switch (boolean) { case TRUE: fixed<1, 1> tenth; };
  interface Shop { attribute Price fee; Price cost(in Prices list, out Item best, in Sum what); };";

#[test]
fn they_are_octets_that_are_remarked_to_be_numbers() {
    let contract = omg::parse(TEXT, "shop.idl").unwrap();
    let shop = contract.interfaces().next().unwrap();
    let cost = shop.operations.iter().find(|operation| operation.name == "cost").unwrap();
    let Shape::Struct(results) = &cost.results else { panic!("no struct") };
    let Shape::Alias(price) = &results.fields[0].shape else { panic!("no alias") };
    assert_eq!((&*price.name, Fixed::of(&price.target)), ("Price", Some(Fixed { digits: 10, scale: 2 })));
    let Shape::Struct(item) = results.fields[1].shape.resolved() else { panic!("no struct") };
    assert_eq!(Fixed::of(&item.fields[1].shape), Some(Fixed { digits: 31, scale: 0 }));
    let names = contract.definitions.iter().filter(|held| matches!(held, Definition::Type(_))).count();
    assert_eq!(names, 5);
}

#[test]
fn they_are_printed_as_they_were_read() {
    let printed = omg::print(&omg::parse(TEXT, "shop.idl").unwrap());
    for line in [
        "typedef fixed<10, 2> Price;",
        "typedef sequence<fixed<3, 3> > Parts;",
        "typedef Price Prices[4];",
        "fixed<31, 0> number;",
        "fixed<1, 1> tenth;",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert_eq!(omg::print(&omg::parse(&printed, "again.idl").unwrap()), printed);
}

#[test]
fn digits_that_cannot_be_are_mistakes() {
    for (number, what) in [
        ("fixed<0, 0>", "a fixed-point number cannot have 0 digits"),
        ("fixed<32, 2>", "a fixed-point number cannot have 32 digits"),
        ("fixed<4, 5>", "5 digits behind the point are more than there are"),
        ("fixed<4>", "expected"),
    ] {
        let mistakes = omg::parse(&format!("typedef {number} Price;"), "a.idl").unwrap_err().to_string();
        assert!(mistakes.contains(what), "{number}: {mistakes}");
    }
    // A constant has as many digits as it is written with, which nobody reads here.
    let text = "const fixed RATE = 2; interface A { void f(); };";
    let contract = omg::parse(text, "a.idl");
    assert!(contract.is_ok_and(|contract| contract.interfaces().count() == 1));
}
