//! Fixed-point numbers of OMG IDL: what becomes of them in a contract, and that they are printed as they were read.

use everywire_idl::omg;
use everywire_model::fixed::Fixed;
use everywire_model::{Definition, Shape, Value};

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
}

/// The values are those of omniidl 4.3.
#[test]
fn constants_have_as_many_digits_as_their_values() {
    let text = "typedef fixed<4, 3> Part;
      const fixed RATE = 1.50d;
      const fixed TWICE = 2.0D * RATE;
      const fixed THIRD = 1d / 3d;
      const fixed LESS = -12.5d + .25d;
      const fixed NONE = 0d;
      const fixed MUCH = 3000.00d;
      const fixed SMALL = 0.00120d;
      const fixed HALF = 1.d / -2d;
      const fixed MOST = 9999999999999999999999999999999d;
      const Part OWN = 2.4d;
      const Part AGAIN = OWN - RATE;
      interface Shop { void open(); };";
    let contract = omg::parse(text, "shop.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let printed = omg::print(&contract);
    for line in [
        "const fixed RATE = 1.5d;",
        "const fixed TWICE = 3d;",
        "const fixed THIRD = 0.3333333333333333333333333333333d;",
        "const fixed LESS = -12.25d;",
        "const fixed NONE = 0d;",
        "const fixed MUCH = 3000d;",
        "const fixed SMALL = 0.0012d;",
        "const fixed HALF = -0.5d;",
        "const fixed MOST = 9999999999999999999999999999999d;",
        "const Part OWN = 2.400d;",
        "const Part AGAIN = 0.900d;",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert_eq!(omg::print(&omg::parse(&printed, "again.idl").unwrap()), printed);
    let small = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Constant(constant) if constant.name == "SMALL" => Some(constant),
        _ => None,
    });
    let small = small.unwrap();
    assert_eq!(Fixed::of(&small.shape), Some(Fixed { digits: 4, scale: 4 }));
    assert_eq!(small.value, Value::Bytes(vec![0x00, 0x01, 0x2c].into()));
}

#[test]
fn constants_that_do_not_fit_are_mistakes() {
    for (constant, what) in [
        ("fixed A = 1.5", "a number with a fraction does not belong here"),
        ("fixed A = 1d / 0d", "division by zero"),
        ("fixed A = 1d << 2d", "fixed-point numbers have only + - * /"),
        ("fixed A = 99999999999999999999999999999999d", "this has more than 31 digits"),
        ("fixed A = 1000000000000000000000000000000d * 10d", "this has more than 31 digits"),
        ("fixed A = TRUE", "a boolean does not belong here"),
        ("Part A = 12.5d", "12.5 does not fit fixed<4, 3>"),
        ("double A = 1.5d", "a fixed-point number does not belong here"),
        ("fixed A = 1.5e3d", "is not a number"),
    ] {
        let text = format!("typedef fixed<4, 3> Part; const {constant};");
        let mistakes = omg::parse(&text, "a.idl").unwrap_err().to_string();
        assert!(mistakes.contains(what), "{constant}: {mistakes}");
    }
}
