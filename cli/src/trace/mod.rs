//! What passes between two peers, message by message: from a capture, from a relay between them, or
//! from a router that lets one listen in.
//!
//! All three ways (`capture`, `relay`, `monitor`) make a `SeenMessage` of each message and give it to a
//! `MessagePrinter` (`show`), which chooses (`select`), finds the request of a reply (`message_summary`), reads the
//! values (`values`), and prints.

pub(crate) mod capture;
mod clock;
mod message_summary;
pub(crate) mod monitor;
pub(crate) mod relay;
mod seen_message;
mod select;
mod show;
mod values;

pub(crate) use clock::{time_of_day, timestamp};
pub(crate) use select::Selection;
pub(crate) use show::{Detail, MessagePrinter};
pub(crate) use values::KnownTypes;

use everywire_trace::StreamProtocol;

/// The wire whose connections begin with these bytes.
fn wire_of(bytes: &[u8]) -> StreamProtocol {
    everywire_trace::wire_of(everywire::wires::ALL, bytes)
}
