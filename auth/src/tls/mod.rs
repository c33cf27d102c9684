//! TLS 1.2 and 1.3 without I/O: [`Channel`] turns bytes into bytes. Certificates and keys come from PEM files.
//!
//! A client trusts what the system trusts, or the certificates of a file: authorities, or the server's own, which need not be
//! signed by anybody then. Names are checked in any case; only [`ClientSettings::insecure`] checks nothing.

mod channel;
mod files;
mod settings;
mod verify;

pub use channel::Channel;
pub use settings::{ClientSettings, ServerSettings};
