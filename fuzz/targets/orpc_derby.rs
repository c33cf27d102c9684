//! Calls after authentication, of each interface of `derby.midl`: the published callback classes.
#![no_main]

mod orpc;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CONTRACT: LazyLock<Vec<everywire_model::shape::Hold<everywire_model::Interface>>> =
    LazyLock::new(|| orpc::interfaces(include_str!("../../derby/contracts/derby.midl")));

fuzz_target!(|data: &[u8]| orpc::exercise(&CONTRACT, data));
