//! The contracts that foreign programs implement too.

fn main() {
    everywire_codegen::compile("../derby/contracts/bench.idl");
    everywire_codegen::compile("../derby/rivals/omniorb/interop.idl");
    everywire_codegen::compile("contracts/kitchen.dbus.xml");
    everywire_codegen::compile("contracts/kitchen.kidl");
    everywire_codegen::compile("contracts/bell.idl");
    everywire_codegen::compile("contracts/vault.dbus.xml");
    everywire_codegen::compile("contracts/cupboard.midl");
    everywire_codegen::compile("contracts/locker.midl");
    everywire_codegen::compile("contracts/pantry.midl");
    everywire_codegen::compile("contracts/properties.idl");
    everywire_codegen::compile("contracts/price.idl");
    everywire_codegen::compile("contracts/shop.idl");
    everywire_codegen::compile("contracts/family.idl");
    everywire_codegen::compile("contracts/stock.idl");
    everywire_codegen::compile("contracts/station.midl");
    everywire_codegen::compile("contracts/torture.midl");
    everywire_codegen::compile("contracts/cellar.wsdl");
    everywire_codegen::compile("contracts/hello.wsdl");
    everywire_codegen::compile("contracts/riddles.wsdl");
    everywire_codegen::compile("contracts/mill.wsdl");
    // A contract of the same stem as another.
    let out = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).expect("cargo says where to write");
    everywire_codegen::Builder::new()
        .contract("../derby/contracts/bench.wsdl")
        .out_dir(out.join("services"))
        .compile();
}
