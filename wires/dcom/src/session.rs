//! One connection's protocol: DCE/RPC, connection-oriented, with ORPC on top; each concern is a file of its own.
//!
//! `channel` takes PDUs off the stream and puts messages on it, `assembly` joins fragments, `shield` signs and seals,
//! `verification` is what stands behind a stub where headers are not signed. The accepting side is in `accepting`, the
//! connecting side in `connecting`.

mod accepting;
mod assembly;
mod blank;
mod channel;
mod connecting;
mod exception;
mod shield;
pub(crate) mod values;
mod verification;

pub use accepting::Accepting;
pub use connecting::Connecting;

pub(crate) use connecting::put_this;
pub(crate) use exception::EXTENT as EXCEPTION_EXTENT;

pub(crate) use crate::{REM_UNKNOWN, REM_UNKNOWN2, SCM_ACTIVATOR};

use uuid::Uuid;

/// A stub that passes, for tests.
#[cfg(test)]
pub(crate) fn passing_body(
    stub: &bytes::Bytes,
    base: usize,
    little: bool,
    kind: u32,
) -> everywire_model::Body {
    values::passing(stub, base, little, everywire_model::Budget::default(), None, kind)
}

/// Whether results of an ORPC operation hold their HRESULT as values, so that the session neither adds nor takes one.
#[inline]
pub(crate) fn tells_hresult(iid: Uuid, opnum: u16) -> bool {
    matches!(iid, REM_UNKNOWN2 | REM_UNKNOWN | SCM_ACTIVATOR | crate::REMOTE_ACTIVATION)
        || crate::standard::keeps_hresult(iid, opnum)
}

/// Whether no operation of an interface holds its HRESULT as values: all of users' contracts are so.
pub(crate) fn is_ordinary(iid: Uuid) -> bool {
    // None of the interfaces that are otherwise has more operations.
    (0..16).all(|opnum| !tells_hresult(iid, opnum))
}
