fn main() {
    everywire_codegen::compile("contracts/boiler.idl");
}
