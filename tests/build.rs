//! The contracts that foreign programs implement too.

fn main() {
    everywire_codegen::compile("../derby/contracts/bench.idl");
    everywire_codegen::compile("../derby/rivals/omniorb/interop.idl");
    everywire_codegen::compile("contracts/kitchen.dbus.xml");
    everywire_codegen::compile("contracts/kitchen.kidl");
    everywire_codegen::compile("contracts/pantry.midl");
}
