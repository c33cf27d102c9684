//! The fields of a payload that a router looks at, read in place.

use crate::ice::ProtocolError;

/// A counted text as it stands in a payload. Who passes it on copies it as it came, so that two spellings of
/// the empty text stay apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    /// With its length.
    raw: &'a [u8],
}

impl<'a> Text<'a> {
    /// As it came, length and all: what is sent on.
    pub(super) fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// Its characters: up to the first NUL, as everybody who reads it as a C string sees it.
    #[inline]
    pub(super) fn bytes(self) -> &'a [u8] {
        let text = self.raw.get(4..).unwrap_or_default();
        match text.split_last() {
            Some((0, head)) if !head.contains(&0) => head,
            _ => text.split(|byte| *byte == 0).next().unwrap_or_default(),
        }
    }
}

/// What is left of a payload. Every read is checked; one that fails names the field and its place.
pub(super) struct Fields<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    /// A text with its count.
    #[inline]
    pub(super) fn text(&mut self, what: &'static str) -> Result<Text<'a>, ProtocolError> {
        let start = self.at;
        self.data(what)?;
        Ok(Text { raw: self.all.get(start..self.at).unwrap_or_default() })
    }

    /// Counted bytes, without the count.
    #[inline]
    pub(super) fn data(&mut self, what: &'static str) -> Result<&'a [u8], ProtocolError> {
        let len = u32::from_be_bytes(self.take(what)?);
        let start = self.at;
        let data = usize::try_from(len).ok().and_then(|len| self.all.get(start..start.checked_add(len)?));
        let data = data.ok_or(ProtocolError::Payload { what, at: start })?;
        self.at += data.len();
        Ok(data)
    }

    /// So many bytes.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ProtocolError> {
        let taken = self.all.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        let taken = taken.ok_or(ProtocolError::Payload { what, at: self.at })?;
        self.at += N;
        Ok(*taken)
    }
}

/// A function's signature without white space, apart from one blank between two words.
pub(super) fn normalized(signature: &[u8]) -> Vec<u8> {
    let word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut out = Vec::with_capacity(signature.len());
    let mut blank = false;
    for byte in signature {
        if byte.is_ascii_whitespace() {
            blank = true;
            continue;
        }
        if blank && word(out.last()) && word(Some(byte)) {
            out.push(b' ');
        }
        blank = false;
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::{put_data, put_name, put_nullable};

    #[test]
    fn texts_end_at_their_nul_and_never_beyond_the_payload() {
        let mut out = Vec::new();
        put_name(&mut out, b"ab");
        put_nullable(&mut out, b"");
        put_data(&mut out, b"a\0b\0");
        put_data(&mut out, b"ab");
        let mut fields = Fields::new(&out);
        let mut texts = [&b""[..]; 4];
        for text in &mut texts {
            *text = fields.text("text").expect("it is there").bytes();
        }
        assert_eq!(texts, [&b"ab"[..], b"", b"a", b"ab"]);
        assert_eq!(
            fields.text("one more").err(),
            Some(ProtocolError::Payload { what: "one more", at: out.len() })
        );
        let mut short = Fields::new(&[0, 0, 0, 3, b'a', b'b']);
        assert_eq!(short.data("data").err(), Some(ProtocolError::Payload { what: "data", at: 4 }));
    }

    #[test]
    fn signatures_keep_only_blanks_between_words() {
        assert_eq!(normalized(b" f ( unsigned  int , QString ) "), b"f(unsigned int,QString)");
    }
}
