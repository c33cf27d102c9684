//! Has the linker put the functions of each call next to each other: see `scripts/layout.sh`.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=hot.ld");
    println!("cargo::rerun-if-changed=build.rs");
    // What `everywire demo` serves.
    everywire_codegen::Builder::new().contract("demo/tank.xml").blocking_only().compile();
    let (Ok(root), Ok(system)) = (env::var("CARGO_MANIFEST_DIR"), env::var("CARGO_CFG_TARGET_OS")) else {
        return;
    };
    // Not where nothing is optimised: there it would only cost time. This crate never is.
    let optimised = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if system == "linux" && optimised {
        println!("cargo::rustc-link-arg-bins=-T");
        println!("cargo::rustc-link-arg-bins={}", Path::new(&root).join("hot.ld").display());
    }
}
