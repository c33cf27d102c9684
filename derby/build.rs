//! Stubs and skeletons of the contract that all contestants share.

fn main() {
    everywire_codegen::compile("contracts/bench.idl");
}
