//! Which failures of a call say that the other end does not exist any more, so that a sink or a source is
//! given up at once.

use crate::hresult::{RPC_E_DISCONNECTED, RPC_E_INVALID_IPID, RPC_E_INVALID_OBJECT};
use everywire_model::{Failure, Kind};

/// Whether a failure says that the object is no more, or nobody who could have it.
pub(super) fn is_gone(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Unreachable | Kind::NoObject)
        || [RPC_E_DISCONNECTED, RPC_E_INVALID_IPID, RPC_E_INVALID_OBJECT]
            .iter()
            .any(|code| has_code(failure, *code))
}

/// Whether a failure has this HRESULT.
pub(super) fn has_code(failure: &Failure, code: u32) -> bool {
    failure.code().is_some_and(|held| held.starts_with(&format!("{code:#010x}")))
}
