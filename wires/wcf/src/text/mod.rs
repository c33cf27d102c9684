//! XML as text: a hardened reader, a writer, base64.
//!
//! The reader takes no document type, no processing instruction and no entity but the five that XML names itself.

pub mod base64;
mod reader;
mod writer;

pub use reader::{Attribute, Event, Reader, Tag};
pub(crate) use reader::{is_char, is_local};
pub use writer::{Writer, escape, escape_attribute};
