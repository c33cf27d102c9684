//! Calls after authentication, of each interface of `opcda.idl`: OPC Data Access.

use std::sync::LazyLock;

static CONTRACT: LazyLock<Vec<everywire_model::shape::Hold<everywire_model::Interface>>> =
    LazyLock::new(|| crate::orpc::interfaces(include_str!("../../../idl/tests/contracts/opcda.idl")));

/// Gives the octets to this case.
pub fn orpc_opcda(data: &[u8]) {
    crate::orpc::exercise(&CONTRACT, data)
}
