//! The little of DER (X.690) that SPNEGO needs: definite lengths, tags of one octet.

pub(super) const OCTETS: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;
/// The frame around a token (RFC 2743 3.1).
pub(super) const APPLICATION: u8 = 0x60;

/// `[number]` around another element.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// An element and what is behind it.
pub(super) struct Element<'t> {
    pub(super) tag: u8,
    /// With tag and length.
    pub(super) whole: &'t [u8],
    pub(super) contents: &'t [u8],
    pub(super) behind: &'t [u8],
}

/// The first element; `None` if it is cut off.
pub(super) fn first(bytes: &[u8]) -> Option<Element<'_>> {
    let [tag, length, rest @ ..] = bytes else { return None };
    let (length, rest) = match *length {
        short @ ..=0x7f => (usize::from(short), rest),
        // Four octets of length are more than any token has.
        long @ 0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (octets.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    let (contents, behind) = rest.split_at_checked(length)?;
    let whole = bytes.get(..bytes.len() - behind.len())?;
    Some(Element { tag: *tag, whole, contents, behind })
}

/// The contents of the first element, if that has this tag.
pub(super) fn inside(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    first(bytes).filter(|element| element.tag == tag).map(|element| element.contents)
}

/// The elements, one behind the other; ends at the first that is cut off.
pub(super) fn elements(mut bytes: &[u8]) -> impl Iterator<Item = Element<'_>> {
    std::iter::from_fn(move || {
        let element = first(bytes)?;
        bytes = element.behind;
        Some(element)
    })
}

/// An element around the contents.
pub(super) fn wrap(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(short @ ..=0x7f) => out.push(short),
        _ => {
            let octets = contents.len().to_be_bytes();
            let significant = octets.iter().skip_while(|octet| **octet == 0);
            out.push(0x80 | significant.clone().count() as u8);
            out.extend(significant);
        }
    }
    out.extend_from_slice(contents);
    out
}
