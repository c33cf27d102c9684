//! Calls after authentication, of each interface of `pantry.midl`: calls by number and by name.
#![no_main]

mod orpc;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CONTRACT: LazyLock<Vec<everywire_model::shape::Hold<everywire_model::Interface>>> =
    LazyLock::new(|| orpc::interfaces(include_str!("../../tests/contracts/pantry.midl")));

fuzz_target!(|data: &[u8]| orpc::exercise(&CONTRACT, data));
