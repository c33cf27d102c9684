//! The authority file of the Inter-Client Exchange protocol (ICE), which DCOP authenticates by.
//!
//! A server puts one entry for each protocol and network id there, with a random cookie; who can read the file can
//! connect. "Inter-Client Exchange Library", appendix A, "Authentication Utility Functions".

mod authority;
mod entry;
mod errors;
mod lock;

pub use authority::{AuthorityFile, MAX_FILE};
pub use entry::{COOKIE_LEN, Entry, MAGIC_COOKIE, MAX_ENTRIES, NotEntries, parse, print};
pub use errors::AuthorityError;
