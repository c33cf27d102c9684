//! The interfaces of OPC, from contracts of our own.

fn main() {
    everywire_codegen::compile("contracts/opc.idl");
}
