//! Records of .NET binary XML (MC-NBFX): reading, writing, and the XML that they stand for.

mod envelope;
pub mod integer;
mod reader;
mod record;
mod writer;
pub mod xml;

pub use envelope::body;
pub use reader::{Reader, item};
pub use record::{Decimal, Item, Prefix, Record, Text, Word};
pub use writer::{Writer, decimal};
