fn main() {
    everywire_codegen::compile("contracts/account.idl");
}
