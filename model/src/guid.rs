//! Identities of interfaces as values: GUIDs, for generated code.

use crate::object::Remote;

/// The parts of a GUID, as contracts write its struct.
pub type Parts = (u32, u16, u16, [u8; 8]);

/// A GUID as text: `39c13a4d-011e-11d0-9675-0020afd8adb3`.
#[must_use]
pub fn text((data1, data2, data3, data4): Parts) -> String {
    let [a, b, tail @ ..] = data4;
    let tail = tail.into_iter().fold(0_u64, |all, byte| all << 8 | u64::from(byte));
    format!("{data1:08x}-{data2:04x}-{data3:04x}-{a:02x}{b:02x}-{tail:012x}")
}

/// The parts of a GUID that is written so, in braces or not.
#[must_use]
pub fn parse(text: &str) -> Option<Parts> {
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let dashed = |(at, letter): (usize, char)| (letter == '-') == matches!(at, 8 | 13 | 18 | 23);
    if text.len() != 36 || !text.char_indices().all(dashed) || text.contains('+') {
        return None;
    }
    u128::from_str_radix(&text.replace('-', ""), 16).ok().map(split)
}

/// The parts of a GUID that is one number, its first digit the highest.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub const fn split(value: u128) -> Parts {
    ((value >> 96) as u32, (value >> 80) as u16, (value >> 64) as u16, (value as u64).to_be_bytes())
}

/// The identity of an interface; all zeros where its contract gives it none that is a GUID.
#[must_use]
pub fn of<I: Remote + ?Sized>() -> Parts {
    parse(&I::interface().id).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_parts_are_the_same() {
        let written = "39c13a4d-011e-11d0-9675-0020afd8adb3";
        let parts = (0x39c1_3a4d, 0x011e, 0x11d0, [0x96, 0x75, 0x00, 0x20, 0xaf, 0xd8, 0xad, 0xb3]);
        assert_eq!(parse(written), Some(parts));
        assert_eq!(parse("{39C13A4D-011E-11D0-9675-0020AFD8ADB3}"), Some(parts));
        assert_eq!(split(0x39c1_3a4d_011e_11d0_9675_0020_afd8_adb3), parts);
        assert_eq!(text(parts), written);
        for wrong in
            ["", "39c13a4d", "39c13a4d-011e-11d0-9675-0020afd8adbg", "39c13a4d-011e-11d0-96750-020afd8adb3"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
