//! What passed between peers, out of a capture: TCP connections put together, and the messages of each,
//! explained by the wire that they are of; and captures written.
//!
//! `packets` takes segments out of the file, `streams` puts connections together, `messages` asks the wires
//! what the octets are. Captures may be cut, begin in the middle, lack packets, or be hostile: whatever
//! cannot be read is a `Gap` with words, never an error of the whole.

#![forbid(unsafe_code)]

mod fragments;
mod messages;
mod packets;
mod streams;
mod write;

pub use messages::{Gap, Message, Opening, StreamProtocol, Trace, wire_of};
pub use write::{CapturedMessage, Writer};
