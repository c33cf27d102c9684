//! Multi-byte integers (MC-NBFX 2.1.2): seven bits a byte, the lowest first.
//!
//! Microsoft calls them MultiByteInt31. Needless bytes (a last one of zero) are refused, so each value has
//! one spelling: what was read can be compared and spliced as bytes.

use crate::violations::Violation;
use everywire_model::visit::Visit;

/// Reads one at `at`; also returns where it ends.
///
/// # Errors
/// [`Violation::Truncated`]; [`Violation::BadInteger`] above 31 bits or with needless bytes.
pub fn read(bytes: &[u8], at: usize) -> Visit<(u32, usize)> {
    let mut value = 0_u32;
    for index in 0..5 {
        let byte = *bytes.get(at + index).ok_or_else(|| Violation::Truncated.at(at))?;
        // The fifth byte has three bits left of the 31.
        if (index == 4 && byte > 0x07) || (index > 0 && byte == 0) {
            return Err(Violation::BadInteger.at(at));
        }
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, at + index + 1));
        }
    }
    Err(Violation::BadInteger.at(at))
}

/// Appends a text in place (MC-NBFX 2.1): its length in bytes, and UTF-8.
#[inline]
pub(crate) fn put_string(text: &str, out: &mut Vec<u8>) {
    put(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// Appends one; lengths above 31 bits do not occur in memory of messages, and are cut.
pub fn put(value: usize, out: &mut Vec<u8>) {
    let mut value = value & 0x7fff_ffff;
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
