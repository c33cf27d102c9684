fn main() {
    everywire_codegen::compile("contracts/player.xml");
}
