//! What OMG IDL has and this reader has not: operations that need it are left out and named, the others are read.

use everywire_idl::omg;
use everywire_model::contract::left_out;
use everywire_model::{Contract, Interface};

fn read(text: &str) -> Contract {
    omg::parse(text, "bank.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn interface<'c>(contract: &'c Contract, name: &str) -> &'c Interface {
    contract.interfaces().find(|interface| interface.name == name).unwrap()
}

fn operations(interface: &Interface) -> Vec<&str> {
    interface.operations.iter().map(|operation| operation.name.as_ref()).collect()
}

fn missing(interface: &Interface) -> Vec<&str> {
    left_out(&interface.notes).collect()
}

#[test]
fn operations_with_custom_value_types_are_left_out_wherever_these_hide() {
    let contract = read(
        "module M {
           custom valuetype Money { public long units; long hidden(); factory make(in long units); };
           abstract valuetype Shape { void draw(); };
           custom valuetype Odd { public long x; };
           valuetype Name string;
           typedef sequence<Money> Purse;
           struct Account { string owner; Purse coins; };
           union Change switch (boolean) { case TRUE: Account whole; };
           exception Broke { Money lacking; };
           native Cookie;
         };
         interface Bank {
           long open(in string owner);
           M::Money balance();
           void pay(in M::Account from, out M::Account left);
           void change(inout M::Change what);
           readonly attribute M::Purse till;
           attribute long rate;
           void rob(in long sum) raises (M::Broke);
           void bake(in M::Cookie what);
           Object find(in string name);
         };
         interface Branch : Bank { void shut(); ValueBase any_value(); };",
    );
    let bank = interface(&contract, "Bank");
    assert_eq!(operations(bank), ["open", "_get_rate", "_set_rate", "rob", "find"]);
    assert_eq!(bank.attributes.len(), 1);
    assert_eq!((bank.attributes[0].getter, bank.attributes[0].setter), (1, Some(2)));
    assert_eq!(
        missing(bank),
        [
            "`balance`: the custom value type `M::Money` is not supported",
            "`pay`: the custom value type `M::Money` is not supported",
            "`change`: the custom value type `M::Money` is not supported",
            "`till`: the custom value type `M::Money` is not supported",
            "`rob, its exceptions`: the custom value type `M::Money` is not supported",
            "`bake`: the native type `M::Cookie` is not supported",
        ]
    );
    let branch = interface(&contract, "Branch");
    assert_eq!(operations(branch), ["open", "_get_rate", "_set_rate", "rob", "find", "shut"]);
    assert_eq!(missing(branch), ["`any_value`: the value type `ValueBase` is not supported"]);
}

/// A value of an abstract interface is a reference or a value, with a boolean before it (CORBA 3.3 part 2, section 9.3.7).
#[test]
fn so_are_those_with_abstract_interfaces() {
    let text = "module M {
           abstract interface Told { string tell(); };
           abstract interface Later;
           struct Record { Told who; long tail; };
           interface Account : Told { readonly attribute long number; };
           interface Bank {
             Told echo(in long x);
             long all(in Record what);
             void later(in Later who);
             attribute Told who;
             Account find(in long number);
             void join(in Account other);
           };
           abstract interface Later : Told { };
         };";
    let contract = read(text);
    let bank = interface(&contract, "M::Bank");
    assert_eq!(operations(bank), ["find", "join"]);
    assert_eq!(
        missing(bank),
        [
            "`echo`: the abstract interface `M::Told` is not supported",
            "`all`: the abstract interface `M::Told` is not supported",
            "`later`: the abstract interface `M::Later` is not supported",
            "`who`: the abstract interface `M::Told` is not supported",
        ]
    );
    // As a base it is like any other, and an object may be called by it.
    assert_eq!(operations(interface(&contract, "M::Account")), ["tell", "_get_number"]);
    assert_eq!(operations(interface(&contract, "M::Told")), ["tell"]);
    let printed = omg::print(&contract);
    for line in
        ["abstract interface Told {", "abstract interface Later : Told {", "  interface Account : Told {"]
    {
        assert!(printed.contains(line), "{printed}");
    }
    assert_eq!(omg::print(&read(&printed)), printed);
}

#[test]
fn so_are_those_with_maps_and_what_the_orb_keeps_for_itself() {
    let contract = read(
        "typedef map<string, long> Exact;
         typedef Exact Values[4];
         interface Shop {
           void all(in Values list);
           Exact exact();
           CORBA::Principal who();
           void ok();
         };",
    );
    let shop = interface(&contract, "Shop");
    assert_eq!(operations(shop), ["ok"]);
    assert_eq!(
        missing(shop),
        [
            "`all`: `map` is not supported",
            "`exact`: `map` is not supported",
            "`who`: `CORBA::Principal` is not supported",
        ]
    );
    // What is right is not said to lack anything.
    assert!(missing(interface(&read("interface A { void f(); };"), "A")).is_empty());
}

#[test]
fn a_mistake_beside_them_is_still_a_mistake() {
    let text = "valuetype V { }; interface A { V f(); Missing g(); };";
    let mistakes = omg::parse(text, "a.idl").unwrap_err();
    assert_eq!(mistakes.list.len(), 1, "{mistakes}");
    assert!(mistakes.list[0].message.contains("`Missing` is not defined"), "{mistakes}");
}

#[test]
fn a_type_that_others_have_inside_cannot_be_left_out() {
    for text in [
        "struct S; typedef sequence<S> Many; struct S { Many more; ValueBase x; }; interface A { void f(in Many m); };",
        "const long double SIZE = 2.0; struct S; typedef sequence<S> Many; struct S { Many more; long x[SIZE]; };
         interface A { void f(in Many m); };",
        "union U; typedef sequence<U> Many; union U switch (long) { case 1: Many more; case 2: ValueBase x; };
         interface A { void f(in Many m); };",
    ] {
        let mistakes = omg::parse(text, "a.idl").unwrap_err();
        assert!(mistakes.list.iter().any(|mistake| mistake.message.contains("not supported")), "{mistakes}");
    }
}

#[test]
fn a_base_may_have_another_name() {
    let contract = read(
        "interface A { typedef long T; struct Foo; typedef sequence<Foo> Foos; struct Foo { T x; Foos kids; }; void first(); };
         typedef A AA;
         typedef AA AAA;
         interface B : AAA { Foo g(in B::Foos f, in T n); };",
    );
    let b = interface(&contract, "B");
    assert_eq!(operations(b), ["first", "g"]);
    assert!(b.is_a(&interface(&contract, "A").id));
    let twice = omg::parse("interface A { }; typedef A AA; interface B : A, AA { };", "b.idl").unwrap_err();
    assert!(twice.list[0].message.contains("is a base already"), "{twice}");
}

#[test]
fn exceptions_of_attributes_that_are_left_out_are_named() {
    let contract = read(
        "custom valuetype Money { public long units; };
         exception Broke { Money lacking; };
         interface Bank { attribute long rate getraises (Broke); };",
    );
    let bank = interface(&contract, "Bank");
    assert_eq!(operations(bank), ["_get_rate", "_set_rate"]);
    assert_eq!(missing(bank), ["`rate, its exceptions`: the custom value type `Money` is not supported"]);
}

#[test]
fn what_is_left_out_may_be_given_a_repository_id() {
    // So do the contracts that IIOP.NET's generator and Java's `rmic` print, of each class.
    let contract = read(
        "module Net {
           native Name;
           #pragma ID Name \"IDL:Net/Name:1.0\"
           custom valuetype Point { public long x; };
           #pragma ID Point \"RMI:Net.Point:CD38F9930EA8AAEC:6109C59A2636DD85\"
           #pragma version Point 2.1
           interface Map { long size(); Name title(); };
         };",
    );
    let map = interface(&contract, "Net::Map");
    assert_eq!(operations(map), ["size"]);
    assert_eq!(missing(map), ["`title`: the native type `Net::Name` is not supported"]);
}
