//! Stubs and skeletons of the contracts that all contestants of a wire share.

fn main() {
    let out = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).expect("cargo says where to write");
    everywire_codegen::Builder::new()
        .contract("contracts/bench.idl")
        .contract("contracts/bench.dbus.xml")
        .contract("contracts/bench.dcop.kidl")
        .contract("contracts/callbacks.idl")
        .contract("contracts/callbacks.dbus.xml")
        .contract("contracts/callbacks.dcop.kidl")
        .contract("contracts/derby.midl")
        .contract("contracts/bench.dcom.midl")
        .contract("contracts/orders.idl")
        .blocking_only()
        .compile();
    // A contract of the same stem as another.
    everywire_codegen::Builder::new()
        .contract("contracts/bench.wsdl")
        .out_dir(out.join("services"))
        .blocking_only()
        .compile();
}
