//! Authentication without I/O on sockets.
//!
//! * [`sasl`]: the authentication protocol of D-Bus, both sides, as state machines over bytes.
//! * [`security`]: NTLM, SPNEGO and Kerberos, both sides, and the protection of each message.
//! * [`nns`]: NegotiateStream (MS-NNS), which carries those contexts over a stream.
//! * [`ice`]: the authority file of the Inter-Client Exchange protocol, which holds DCOP's cookies.
//!
//! Secrets live in files. A file is trusted only if it is regular, belongs to this user, and gives nobody else any
//! access; symbolic links are not followed ([`TrustError`] says which of these failed).

#![forbid(unsafe_code)]
// What several ways of authentication share has parts that a single one does not need.
#![cfg_attr(not(all(feature = "ice", feature = "sasl", feature = "security")), allow(dead_code))]

#[cfg(feature = "ice")]
pub mod ice;
#[cfg(feature = "nns")]
pub mod nns;
pub mod private;
mod random;
#[cfg(feature = "sasl")]
pub mod sasl;
#[cfg(feature = "security")]
pub mod security;

pub use private::TrustError;
pub use random::{Random, system_random};

/// Whether two secrets are equal, in a time that depends on their lengths only.
pub fn same_secret(one: &[u8], other: &[u8]) -> bool {
    use subtle::ConstantTimeEq;
    one.ct_eq(other).into()
}

/// The user whom this process acts for.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
