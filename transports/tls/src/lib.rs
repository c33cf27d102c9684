//! TLS 1.2 and 1.3 as a layer of transport, without I/O.
//!
//! * [`Channel`] turns bytes into bytes: for wires that begin TLS in the middle of a connection.
//! * [`TlsSession`] is a session that carries the session of a wire: for connections that begin with TLS. [`TLS`] makes it
//!   of what an address says, for any wire that is a stream of bytes.
//! * [`ClientSettings`] and [`ServerSettings`] hold certificates and keys, which come from PEM files.
//!
//! A client trusts what the system trusts, or the certificates of a file: authorities, or the server's own, which need not be
//! signed by anybody then. Names are checked in any case; only [`ClientSettings::insecure`] checks nothing.

#![forbid(unsafe_code)]

mod channel;
mod files;
mod options;
mod session;
mod settings;
mod verify;
pub mod violations;

pub use channel::Channel;
pub use options::{ENVIRONMENT, TLS, Tls};
pub use session::{HandshakeTerms, TlsSession};
pub use settings::{ClientSettings, ServerSettings};
