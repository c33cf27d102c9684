//! Records of .NET binary XML (MC-NBFX): reading, writing, and the XML that they stand for.
//!
//! `Reader` yields records and holds nothing but a position and a depth; names in them are text or numbers
//! of `crate::dictionary`, which the reader does not look up. `Writer` appends records. `xml` is the text
//! that a document stands for.

pub(crate) mod int31;
pub mod integer;
pub(crate) mod notation;
mod reader;
mod record;
pub(crate) mod records;
mod writer;
pub mod xml;

pub use reader::{Reader, item};
pub use record::{Decimal, Item, Prefix, Record, Text, Word};
pub use records::{decimal, integral, real, single};
pub use writer::Writer;
