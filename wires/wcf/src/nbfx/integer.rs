//! Multi-byte integers (MC-NBFX 2.1.2): seven bits a byte, the lowest first.
//!
//! Microsoft calls them MultiByteInt31. Needless bytes (a last one of zero) are refused, so each value has
//! one spelling: what was read can be compared and spliced as bytes.

use crate::violations::Violation;
use everywire_model::visit::Visit;

/// The integer at the front of `bytes`, and how many bytes it takes; nothing if its end is not there.
/// `Err`: it is above 31 bits, or has needless bytes.
#[inline]
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(u32, usize)>, ()> {
    let mut value = 0_u32;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        // A group of zeros at the end adds nothing; the fifth one has three bits left.
        if (index > 0 && *byte == 0) || (index == 4 && *byte > 0x07) {
            return Err(());
        }
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    Ok(None)
}

/// Reads one at `at`; also returns where it ends.
///
/// # Errors
/// [`Violation::Truncated`]; [`Violation::BadInteger`] above 31 bits or with needless bytes.
pub fn read(bytes: &[u8], at: usize) -> Visit<(u32, usize)> {
    match parse(bytes.get(at..).unwrap_or_default()) {
        Ok(Some((value, width))) => Ok((value, at + width)),
        Ok(None) => Err(Violation::Truncated.at(at)),
        Err(()) => Err(Violation::BadInteger.at(at)),
    }
}

/// Appends a text in place (MC-NBFX 2.1): its length in bytes, and UTF-8.
#[inline]
pub(crate) fn put_string(text: &str, out: &mut Vec<u8>) {
    put(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// Appends one; lengths above 31 bits do not occur in memory of messages, and are cut.
#[inline]
pub fn put(value: usize, out: &mut Vec<u8>) {
    let mut value = value & 0x7fff_ffff;
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
