//! Inter-Client Exchange 1.0 as far as DCOP needs it: byte order, authentication by cookie, and the set-up of one
//! protocol, for both sides and without I/O; and the frames of the protocol that was set up.
//!
//! A side greets ([`Initiator::greet`], [`Acceptor::greet`]) as soon as the socket is connected; from then on every
//! piece of input goes into `receive` until that answers [`Progress::Done`]. What is left of the input then belongs to
//! [`Framing`].

mod acceptor;
mod core;
mod core_action;
mod frame;
mod handshake;
mod initiator;
mod violations;

pub use acceptor::Acceptor;
pub use core::{Class, Core, HEADER, IceHeader, Severity, put_core, put_error};
pub use core_action::{CoreAction, late};
pub use frame::{FRAME_HEADER, Frame, Framing, Head, Message, Peek, minor, put_message, set_length};
pub use initiator::Initiator;
pub use violations::ProtocolError;

pub use everywire_model::aligned::NATIVE_LITTLE;

/// The one authentication method.
pub const MAGIC_COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";

/// The name of the protocol that is set up.
pub const PROTOCOL: &[u8] = b"DCOP";

/// The vendor that both sides give for it.
pub const VENDOR: &[u8] = b"KDE";

/// The release that both sides give for it.
pub const RELEASE: &[u8] = b"2.0";

/// The version of the protocol: major, minor.
pub const VERSION: (u16, u16) = (2, 0);

/// The largest ICE message that is read, in bytes: those of a handshake take about 60.
pub const ICE_LIMIT: usize = 4096;

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More input is needed.
    More,
    /// The protocol is set up.
    Done {
        /// The opcode in messages from the peer.
        peer_opcode: u8,
        /// The opcode in messages to the peer.
        my_opcode: u8,
        /// Whether the peer's byte order is not this machine's.
        swap: bool,
    },
}
