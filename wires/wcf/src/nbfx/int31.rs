//! Multi-byte integers as bytes (MC-NBFX 2.1.2): seven bits a byte, the lowest first. What is wrong with one its reader says.

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
