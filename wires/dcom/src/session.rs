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
mod values;
mod verification;

pub use accepting::Accepting;
pub use connecting::Connecting;

use uuid::{Uuid, uuid};

/// IRemoteSCMActivator, which creates objects.
pub(crate) const SCM_ACTIVATOR: Uuid = uuid!("000001a0-0000-0000-c000-000000000046");
/// IRemUnknown.
pub(crate) const REM_UNKNOWN: Uuid = uuid!("00000131-0000-0000-c000-000000000046");
/// IRemUnknown2.
pub(crate) const REM_UNKNOWN2: Uuid = uuid!("00000143-0000-0000-c000-000000000046");

/// Whether results of an ORPC operation hold their HRESULT as values, so that the session neither adds nor takes one.
#[inline]
pub(crate) fn tells_hresult(iid: Uuid, opnum: u16) -> bool {
    matches!(iid, REM_UNKNOWN2 | REM_UNKNOWN | SCM_ACTIVATOR | crate::REMOTE_ACTIVATION)
        || crate::standard::keeps_hresult(iid, opnum)
}
