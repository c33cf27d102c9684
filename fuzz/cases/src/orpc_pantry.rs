//! Calls after authentication, of each interface of `pantry.midl`: calls by number and by name.

use std::sync::LazyLock;

static CONTRACT: LazyLock<Vec<everywire_model::shape::Hold<everywire_model::Interface>>> =
    LazyLock::new(|| crate::orpc::interfaces(include_str!("../../../tests/contracts/pantry.midl")));

/// Gives the octets to this case.
pub fn orpc_pantry(data: &[u8]) {
    crate::orpc::exercise(&CONTRACT, data)
}
