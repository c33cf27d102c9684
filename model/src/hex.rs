//! Hexadecimal text, strictly.

/// The lower-case digits of the bytes.
pub fn text(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

/// The first bytes, for people: `0a 0b 0c ... (33 bytes)`.
pub fn preview(bytes: &[u8]) -> String {
    let mut shown: Vec<String> = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 32 {
        shown.push(format!("... ({} bytes)", bytes.len()));
    }
    shown.join(" ")
}

/// The bytes that the digits say; `None` if their number is odd, or anything is no digit. Either case is accepted.
pub fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// The value of one digit.
pub fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(text(&all).as_bytes()), Some(all.clone()));
        assert_eq!(decode(text(&all).to_uppercase().as_bytes()), Some(all));
        assert_eq!(decode(b""), Some(vec![]));
    }

    #[test]
    fn strictly() {
        for bad in ["3", "3g", "g3", "0x30", "30 ", "+3", "30\n", "30\r"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
