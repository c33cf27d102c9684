//! XML as text: a hardened reader, a writer, base64.
//!
//! The reader takes no document type, no processing instruction and no entity but the five that XML names itself.
//! So neither entity expansion nor a file or a host that a document names can hurt; depth, lengths and
//! numbers of attributes are bounded by `ReaderQuotas` and `crate::limits`.

pub mod base64;
mod reader;
mod writer;

pub(crate) use reader::is_local;
pub use reader::{Attribute, Event, Reader, Tag};
pub(crate) use writer::check_chars;
pub use writer::{Writer, escape, escape_attribute};
