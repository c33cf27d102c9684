//! Stubs and skeletons of the contracts that all contestants of a wire share.

fn main() {
    everywire_codegen::Builder::new()
        .contract("contracts/bench.idl")
        .contract("contracts/bench.dbus.xml")
        .contract("contracts/bench.dcop.kidl")
        .compile();
}
