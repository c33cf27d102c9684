//! Calls after authentication, of each interface of `derby.midl`: the published callback classes.

use std::sync::LazyLock;

static CONTRACT: LazyLock<Vec<everywire_model::shape::Hold<everywire_model::Interface>>> =
    LazyLock::new(|| crate::orpc::interfaces(include_str!("../../../derby/contracts/derby.midl")));

/// Gives the octets to this case.
pub fn orpc_derby(data: &[u8]) {
    crate::orpc::exercise(&CONTRACT, data)
}
