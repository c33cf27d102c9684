//! The authentication protocol of D-Bus: its profile of SASL, spoken before the first message.
//!
//! D-Bus Specification, "Authentication Protocol". A [`Client`] and a [`Server`] take bytes and give bytes; the caller
//! owns the socket and the clock. Both take whole lines only and leave what follows the last one where it is: messages
//! begin there.
//!
//! The limits of this layer are [`MAX_LINE`], [`MAX_LINES`] and [`MAX_ATTEMPTS`]. How long a peer may take is for the
//! caller to say.

mod challenge;
mod client;
mod cookies;
mod errors;
mod guid;
mod keyring;
mod lines;
mod mechanism;
mod server;

pub use client::{Authenticated, Client, ClientOptions};
pub use errors::{KeyringError, SaslError};
pub use guid::Guid;
pub use keyring::{Cookie, Keyring};
pub use mechanism::Mechanism;
pub use server::{Accept, AuthenticatedClient, Identity, Server, ServerOptions};

/// The longest line, in bytes, its end included.
pub const MAX_LINE: usize = 16 << 10;

/// The most lines that a peer may send.
pub const MAX_LINES: usize = 32;

/// How often a server lets a client fail. The reply to the last failure still goes out.
pub const MAX_ATTEMPTS: usize = 6;

/// How far the authentication is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<T> {
    /// More lines are needed from the peer.
    More,
    /// It is over; what is left in the input belongs to the messages.
    Done(T),
}
