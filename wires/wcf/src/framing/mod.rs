//! .NET Message Framing (MC-NMF): how envelopes travel on a stream of bytes.
//!
//! [`records`] reads and writes single records, [`preamble`] what a connection begins with, [`faults`] what is said when
//! something is wrong; `channel` holds what both sides of a connection share, `session` the two sides.
//!
//! The order of a connection (MC-NMF 3.1): preamble, upgrades, end of the preamble, its acknowledgement,
//! envelopes in both directions, an End record from either side; then, if nothing protects the connection,
//! another preamble.

mod channel;
pub mod faults;
pub mod preamble;
pub mod records;
mod session;

pub use preamble::{Encoding, Mode, Preamble};
pub use records::{Record, RecordKind};
pub use session::{Accepting, Connecting};
