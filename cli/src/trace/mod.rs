//! What passes between two peers, message by message: from a capture, from a relay between them, or
//! from a router that lets one listen in.
//!
//! All three ways (`capture`, `relay`, `monitor`) make a `Passed` of each message and give it to a
//! `Narrator` (`show`), which chooses (`select`), finds the question of an answer (`spoken`), reads the
//! values (`values`), and prints.

pub(crate) mod capture;
mod clock;
pub(crate) mod monitor;
pub(crate) mod relay;
mod select;
mod show;
mod spoken;
mod values;

pub(crate) use clock::{time_of_day, timestamp};
pub(crate) use select::Selection;
pub(crate) use show::{Detail, Telling};
pub(crate) use values::Knowledge;

use everywire_trace::Known;

/// The wire whose connections begin with these bytes.
fn wire_of(bytes: &[u8]) -> Known {
    everywire_trace::wire_of(everywire::wires::ALL, bytes)
}
