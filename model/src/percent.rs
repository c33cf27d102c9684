//! Bytes as the text of an address: `%xx` (RFC 3986, section 2.1).

use crate::hex;

/// A key as text: bytes outside the unreserved characters of RFC 3986 (and `/ : ; @ & = + $ ,`) become `%xx`.
pub fn escape(key: &[u8]) -> String {
    let mut out = String::with_capacity(key.len());
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()/:;@&=+$,".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}

/// The bytes of a key that was written as text.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            out.push(hex::digit(bytes.next()?)? << 4 | hex::digit(bytes.next()?)?);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// The same as text, where it is UTF-8.
pub fn unescape_text(text: &str) -> Option<String> {
    String::from_utf8(unescape(text)?).ok()
}
