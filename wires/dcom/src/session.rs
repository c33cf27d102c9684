//! One connection's protocol: DCE/RPC, connection-oriented, with ORPC on top; each concern is a file of its own.
//!
//! `channel` takes PDUs off the stream and puts messages on it, `assembly` joins fragments, `security_context` signs and seals,
//! `verification` is what stands behind a stub where headers are not signed. The accepting side is in `accepting`, the
//! connecting side in `connecting`.
//!
//! Nothing here reads or writes a socket, or looks at a clock: bytes, times and calls come in as arguments;
//! bytes and events are taken out by the runtime.

mod accepting;
mod assembly;
mod blank;
mod channel;
mod connecting;
mod exception;
mod security_context;
pub(crate) mod values;
pub(crate) mod verification;

pub use accepting::Accepting;
pub use connecting::Connecting;

pub(crate) use exception::EXTENT as EXCEPTION_EXTENT;
