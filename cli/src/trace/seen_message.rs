//! A message, as a capture, a relay or a monitor saw it: what the other modules here are given.

use everywire::model::MessageListing;
use std::time::Duration;

/// A message that passed, however it was seen.
pub(super) struct SeenMessage<'m> {
    /// When its last octet did, counted from 1970.
    pub(super) time: Duration,
    /// Number of its connection, from 1.
    pub(super) connection: usize,
    /// Whether it went from the connecting to the accepting side.
    pub(super) outward: bool,
    /// Who sent it.
    pub(super) from: &'m str,
    /// To whom.
    pub(super) to: &'m str,
    /// The wire's name.
    pub(super) wire: &'static str,
    /// Octets of its direction that passed before it: where it begins in the stream.
    pub(super) offset: u64,
    /// What it says.
    pub(super) explained: &'m MessageListing,
    /// Its octets, as far as they are there.
    pub(super) bytes: &'m [u8],
}
