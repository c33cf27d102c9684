//! What passes between two peers, message by message: from a capture, or from a relay between them.

pub(crate) mod capture;
mod clock;
pub(crate) mod monitor;
mod packets;
pub(crate) mod relay;
mod show;
mod streams;

pub(crate) use clock::{time_of_day, timestamp};
pub(crate) use show::Detail;

use everywire::model::{Sniff, Wire};

/// The wire whose connections begin with these bytes.
fn wire_of(bytes: &[u8]) -> Known {
    let mut undecided = false;
    for wire in everywire::wires::ALL {
        match wire.sniff(bytes) {
            Sniff::Yes => return Known::Wire(*wire),
            Sniff::More => undecided = true,
            Sniff::No => {}
        }
    }
    if undecided { Known::NotYet } else { Known::Nothing }
}

/// What is known about the bytes of a connection.
#[derive(Clone, Copy)]
enum Known {
    /// They are of this wire.
    Wire(&'static dyn Wire),
    /// There are too few to tell.
    NotYet,
    /// They are of no wire known here.
    Nothing,
}
