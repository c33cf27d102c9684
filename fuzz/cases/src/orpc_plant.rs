//! Calls after authentication, of each interface of `plant.midl`: every construct of MIDL.

use std::sync::LazyLock;

static CONTRACT: LazyLock<Vec<everywire_model::shape::Hold<everywire_model::Interface>>> =
    LazyLock::new(|| crate::orpc::interfaces(include_str!("../../../codegen/tests/contracts/plant.midl")));

/// Gives the octets to this case.
pub fn orpc_plant(data: &[u8]) {
    crate::orpc::exercise(&CONTRACT, data)
}
