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
pub use writer::{Writer, escape, escape_attribute};
pub(crate) use writer::{check_chars, clean, quote};

use std::char::DecodeUtf16Error;

/// The namespace of the prefix `xml`.
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The characters of UTF-16 text, an odd octet at its end left out.
pub(crate) fn utf16(
    octets: &[u8],
    unit: fn([u8; 2]) -> u16,
) -> impl Iterator<Item = Result<char, DecodeUtf16Error>> {
    char::decode_utf16(octets.chunks_exact(2).map(move |pair| unit([pair[0], pair[1]])))
}
