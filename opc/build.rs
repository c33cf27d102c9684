//! The interfaces of OPC, from contracts of our own.

fn main() {
    let contract = everywire_codegen::Builder::new().contract("contracts/opc.idl");
    // The asynchronous traits take as long to compile as the rest of this crate, and nothing in it calls them.
    let asynchronous = std::env::var_os("CARGO_FEATURE_ASYNCHRONOUS").is_some();
    if asynchronous { contract.compile() } else { contract.blocking_only().compile() }
}
