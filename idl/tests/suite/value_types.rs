//! Value types and value boxes of OMG IDL: what becomes of them in a contract, and that they are printed as they were read.

use everywire_idl::omg;
use everywire_model::contract::left_out;
use everywire_model::value_type::ValueType;
use everywire_model::{Contract, Definition, Shape};

const TEXT: &str = "module M {
  valuetype Money;
  valuetype Money { public long units; private string note; long hidden(); factory make(in long units); };
  valuetype Coin : truncatable Money supports I { public octet kind; };
  valuetype Gold : Coin { typedef sequence<octet> Octets; public Octets raw; };
  abstract valuetype Shape { void draw(); };
  valuetype Circle : Shape { public double radius; };
  valuetype Empty { };
  valuetype Name string;
  typedef sequence<Money> Purse;
  valuetype Purses Purse;
  valuetype Node { public long item; public Node next; };
  struct Account { Purse coins; Name nick; };
};
interface I { M::Gold best(in M::Node list, in M::Purses all, in M::Account of, in M::Circle round, in M::Empty none); };";

fn read(text: &str) -> Contract {
    omg::parse(text, "bank.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

/// The content of the value type that an operation's parameter or result is.
fn content(shape: &Shape) -> &Shape {
    match shape.resolved() {
        Shape::Optional(content) => content,
        other => panic!("{} is not optional", other.noun()),
    }
}

#[test]
fn they_are_optional_structs_with_the_members_of_their_bases_first() {
    let text = TEXT.replacen("module M {", "interface I; module M {", 1);
    let contract = read(&text);
    let interface = contract.interfaces().next().unwrap();
    assert_eq!(left_out(&interface.notes).count(), 0);
    let best = &interface.operations[0];
    let gold = content(&best.returns);
    let names: Vec<&str> = gold.fields().iter().map(|field| field.name.as_ref()).collect();
    assert_eq!(names, ["units", "note", "kind", "raw"]);
    let Some(ValueType::State(levels)) = ValueType::of(gold) else { panic!("no value type") };
    let levels: Vec<_> = levels.map(|level| (level.id, level.truncatable, level.members)).collect();
    assert_eq!(
        levels,
        [("IDL:M/Gold:1.0", false, "u"), ("IDL:M/Coin:1.0", true, "u"), ("IDL:M/Money:1.0", false, "ur")]
    );
    let told = |shape| ValueType::of(shape).unwrap().told().collect::<Vec<_>>();
    assert_eq!(told(gold), ["IDL:M/Gold:1.0"]);
    let coin = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(shape) if shape.resolved().noun() == "M::Coin" => Some(shape),
        _ => None,
    });
    assert_eq!(told(coin.unwrap()), ["IDL:M/Coin:1.0", "IDL:M/Money:1.0"]);
    // One that contains itself.
    let node = content(&best.parameters[0].field.shape);
    assert_eq!(
        content(&node.fields()[1].shape).noun(),
        node.fields()[1].shape.resolved().noun().replace("optional value", "M::Node")
    );
    let purses = content(&best.parameters[1].field.shape);
    assert!(matches!(
        ValueType::of(purses),
        Some(ValueType::Boxed { id: "IDL:M/Purses:1.0", name: "M::Purses" })
    ));
    assert!(matches!(purses.resolved(), Shape::Sequence(_)));
}

#[test]
fn they_are_printed_as_they_were_read() {
    let text = TEXT.replacen("module M {", "interface I; module M {", 1);
    let printed = omg::print(&read(&text));
    for line in [
        "valuetype Money {",
        "private string note;",
        "valuetype Coin : truncatable Money {",
        "valuetype Gold : Coin {",
        "typedef sequence<octet> Octets;",
        "public Octets raw;",
        "valuetype Name string;",
        "valuetype Purses Purse;",
        "public ::M::Node next;",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert_eq!(omg::print(&read(&printed)), printed);
}

#[test]
fn the_boxes_of_the_orb_are_known() {
    let contract = read("interface I { CORBA::WStringValue f(in CORBA::StringValue a); };");
    let of = |shape| ValueType::of(content(shape)).unwrap().id().to_owned();
    let operation = &contract.interfaces().next().unwrap().operations[0];
    assert_eq!(of(&operation.returns), "IDL:omg.org/CORBA/WStringValue:1.0");
    assert_eq!(of(&operation.parameters[0].field.shape), "IDL:omg.org/CORBA/StringValue:1.0");
}

#[test]
fn what_cannot_be_made_harms_nothing_beside_it() {
    let contract = read(
        "valuetype V; valuetype Never; typedef sequence<V> Many;
         custom valuetype V { public long x; };
         valuetype W : V { public long y; };
         valuetype Z { public Z next; public ValueBase odd; };
         interface I { void f(); void g(in V v); void h(in W w); void i(in Z z); void j(in Never n); };",
    );
    let interface = contract.interfaces().next().unwrap();
    let missing: Vec<&str> = left_out(&interface.notes).collect();
    assert!(interface.operations.iter().any(|operation| operation.name == "f"));
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert_eq!(missing[0], "`g`: the custom value type `V` is not supported");
    let wrong =
        omg::parse("struct S { long x; }; valuetype V : S { }; interface I { void f(in V v); };", "a.idl");
    assert!(wrong.unwrap_err().to_string().contains("not a value type"));
}

/// As TAO's and PolyORB's own tests have it.
#[test]
fn a_base_may_have_another_name_and_what_it_inherits_is_in_sight() {
    let contract = read(
        "valuetype A { typedef long Number; public Number one; };
         typedef A Again;
         valuetype B : Again { public Number two; };
         valuetype C : B { public Number three; public C::Number four; };
         interface I { C best(); };",
    );
    let interface = contract.interfaces().next().unwrap();
    let fields: Vec<_> = content(&interface.operations[0].returns)
        .fields()
        .iter()
        .map(|field| field.name.to_string())
        .collect();
    assert_eq!(fields, ["one", "two", "three", "four"]);
}

#[test]
fn a_value_box_is_no_base() {
    let mistakes =
        omg::parse("struct S { long a; }; valuetype Box S; valuetype B : Box { public long b; };", "a.idl")
            .expect_err("a box has no members");
    assert!(mistakes.to_string().contains("`Box` is"), "{mistakes}");
}
