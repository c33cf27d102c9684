//! What passed between peers, out of a capture: TCP connections put together, and the messages of each, explained by the
//! wire that they are of; and captures written.

#![forbid(unsafe_code)]

mod messages;
mod packets;
mod streams;
mod write;

pub use messages::{Gap, Known, Message, Opening, Trace, wire_of};
pub use write::{Writer, Written};
