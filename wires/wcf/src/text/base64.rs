//! Octets as text (RFC 4648, section 4).
//!
//! A library with SIMD does the work, for the sake of large octet strings. The usual case is tried first:
//! text without white space. Padding must be there.

use base64_simd::STANDARD;

/// Appends the notation of some octets.
pub fn encode(octets: &[u8], out: &mut Vec<u8>) {
    STANDARD.encode_append(octets, out);
}

/// The notation of some octets.
pub fn text(octets: &[u8]) -> String {
    STANDARD.encode_to_string(octets)
}

/// The octets that a text stands for; white space anywhere in it is skipped.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if let Ok(octets) = STANDARD.decode_to_vec(text) {
        return Some(octets);
    }
    if !text.iter().any(u8::is_ascii_whitespace) {
        return None;
    }
    let dense: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode_to_vec(&dense).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(octets: &[u8]) -> String {
        let mut out = Vec::new();
        encode(octets, &mut out);
        String::from_utf8(out).expect("base64 is ASCII")
    }

    #[test]
    fn every_length_comes_back() {
        let octets: Vec<u8> = (0..=255).collect();
        for len in 0..octets.len() {
            let text = encoded(&octets[..len]);
            assert_eq!(text.len(), len.div_ceil(3) * 4);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(&octets[..len]));
        }
        assert_eq!(encoded(&[0, 1, 2, 3, 0xfe, 0xff]), "AAECA/7/");
    }

    #[test]
    fn white_space_is_skipped_and_nothing_else() {
        assert_eq!(decode(b" AAEC\r\nA/7/\t").as_deref(), Some(&[0, 1, 2, 3, 0xfe, 0xff][..]));
        for wrong in ["A", "AAE", "AAE!", "AA=A", "AAEC=", "A A E", "====", "AAEC\u{a0}AAEC"] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
