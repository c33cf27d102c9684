//! .NET Message Framing (MC-NMF): how envelopes travel on a stream of bytes.
//!
//! [`records`] reads and writes single records, [`preamble`] what a connection begins with, [`faults`] what is said when
//! something is wrong; `channel` holds what both sides of a connection share, `session` the two sides.

mod channel;
pub mod faults;
pub mod preamble;
pub mod records;
mod session;

pub use faults::Fault;
pub use preamble::{Encoding, Mode, Preamble};
pub use records::{Record, RecordKind};
pub use session::{Accepting, Connecting};
