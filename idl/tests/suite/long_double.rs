//! Numbers of 128 bits of OMG IDL: what becomes of them in a contract, and that they are printed as they were read.

use everywire_idl::omg;
use everywire_model::contract::{LEFT_OUT, left_out};
use everywire_model::{Shape, long_double};

const TEXT: &str = "typedef long double Exact;
  typedef sequence<long double, 9> Parts;
  typedef long double Grid[2][16];
  struct Item { octet mark; long double cost; Exact named; Parts shares; Grid all; };
  union Sum switch (boolean) { case TRUE: long double whole; };
  exception Lost { long double how; };
  interface Shop { attribute long double fee; long double cost(in long double one, out Item best, in Sum what) raises (Lost); };";

#[test]
fn they_are_octets_that_are_remarked_to_be_numbers() {
    let contract = omg::parse(TEXT, "shop.idl").unwrap();
    let shop = contract.interfaces().next().unwrap();
    let cost = shop.operations.iter().find(|operation| operation.name == "cost").unwrap();
    let Shape::Struct(results) = &cost.results else { panic!("no struct") };
    assert!(long_double::is(&results.fields[0].shape));
    let Shape::Struct(item) = results.fields[1].shape.resolved() else { panic!("no struct") };
    let numbers: Vec<bool> = item.fields.iter().map(|field| long_double::is(&field.shape)).collect();
    assert_eq!(numbers, [false, true, true, false, false]);
    let grid = item.fields[4].shape.element().unwrap();
    assert!(!long_double::is(grid) && long_double::is(grid.element().unwrap()));
    // Octets that are no number are none.
    let octets =
        omg::parse("interface I { typedef octet Plain[16]; void f(in Plain p); };", "i.idl").unwrap();
    let operation = &octets.interfaces().next().unwrap().operations[0];
    assert!(!long_double::is(&operation.parameters[0].field.shape));
}

#[test]
fn they_are_printed_as_they_were_read() {
    let printed = omg::print(&omg::parse(TEXT, "shop.idl").unwrap());
    for line in [
        "typedef long double Exact;",
        "typedef sequence<long double, 9> Parts;",
        "typedef long double Grid[2][16];",
        "long double cost;",
        "case TRUE: long double whole;",
        "attribute long double fee;",
        "long double cost(in long double one, out Item best, in Sum what)",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert_eq!(omg::print(&omg::parse(&printed, "again.idl").unwrap()), printed);
    // Where there is no such number, there are its octets.
    for language in everywire_idl::languages() {
        let contract =
            omg::parse("interface Shop { double cost(in long double one); };", "shop.idl").unwrap();
        let text = (language.print)(&contract).unwrap_or_else(|reason| panic!("{}: {reason}", language.name));
        assert!(text.contains("one"), "{}: {text}", language.name);
    }
}

/// Only constants of the type are left out, with what needs them.
#[test]
fn constants_are_left_out() {
    let text = "const long double SIZE = 2.0; interface I { void f(in long double d); };";
    let contract = omg::parse(text, "i.idl").unwrap();
    let interface = contract.interfaces().next().unwrap();
    assert_eq!(interface.operations.len(), 1);
    assert_eq!(left_out(&interface.notes).count(), 0, "{LEFT_OUT}");
}
