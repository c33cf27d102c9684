//! Writing XML text.
//!
//! Bodies of calls are written by `values::output`; this one is for headers, faults, metadata and pages. It
//! does not check names or characters: that is the callers' matter (`check_chars`).

use super::reader::is_char;
use everywire_model::Failure;
use everywire_model::visit::Visit;
use std::borrow::Cow;

/// Writes XML text; elements and their ends are the caller's to match.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// Whether a start tag is not yet closed.
    /// Attributes and declarations may follow only while it is open.
    in_tag: bool,
}

#[allow(clippy::len_without_is_empty)]
impl Writer {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// What was written.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.close_tag();
        self.out
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// The start of an element; no prefix if it is empty.
    pub fn start(&mut self, prefix: &str, local: &str) {
        self.close_tag();
        self.out.push(b'<');
        self.name(prefix, local);
        self.in_tag = true;
    }

    /// An attribute of the element that just started.
    pub fn attribute(&mut self, prefix: &str, local: &str, value: &str) {
        self.out.push(b' ');
        self.name(prefix, local);
        quote(value, &mut self.out);
    }

    /// A namespace of the element that just started; the default one if the prefix is empty.
    pub fn xmlns(&mut self, prefix: &str, namespace: &str) {
        let (prefix, local) = if prefix.is_empty() { ("", "xmlns") } else { ("xmlns", prefix) };
        self.attribute(prefix, local, namespace);
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.close_tag();
            escape(text.as_bytes(), &mut self.out);
        }
    }

    /// What is XML already.
    pub fn raw(&mut self, xml: &[u8]) {
        self.close_tag();
        self.out.extend_from_slice(xml);
    }

    /// The end of the innermost element, whose name is given again.
    pub fn end(&mut self, prefix: &str, local: &str) {
        if std::mem::take(&mut self.in_tag) {
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(b"</");
            self.name(prefix, local);
            self.out.push(b'>');
        }
    }

    fn close_tag(&mut self) {
        if std::mem::take(&mut self.in_tag) {
            self.out.push(b'>');
        }
    }

    fn name(&mut self, prefix: &str, local: &str) {
        if !prefix.is_empty() {
            self.out.extend_from_slice(prefix.as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(local.as_bytes());
    }
}

/// Checks that all characters are ones of XML; most texts have neither control characters nor the few above that are not.
///
/// # Errors
/// `BadArgument`: no XML can hold the text.
pub(crate) fn check_chars(text: &str) -> Visit<()> {
    let suspect = text.bytes().fold(false, |any, byte| any | (byte < 0x20) | (byte == 0xef));
    if !suspect || text.chars().all(is_char) {
        return Ok(());
    }
    let message = "text with a character that XML does not have";
    Err(Failure::bad_argument(message))
}

/// A text with U+FFFD in place of characters that XML does not have.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_char) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(|character| !is_char(character), "\u{fffd}"))
}

/// Appends text, with references for what would be markup, and for carriage returns, which readers would change.
pub fn escape(text: &[u8], out: &mut Vec<u8>) {
    escape_some(text, out, |byte| match byte {
        b'&' => Some(b"&amp;"),
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        // A reader makes `\n` of it otherwise.
        b'\r' => Some(b"&#xD;"),
        b'\t' | b'\n' => None,
        other => control(other),
    });
}

/// The reference to a control character, which only a text that came as such a reference has.
fn control(byte: u8) -> Option<&'static [u8]> {
    const ALL: [&[u8]; 32] = [
        b"", b"&#x1;", b"&#x2;", b"&#x3;", b"&#x4;", b"&#x5;", b"&#x6;", b"&#x7;", b"&#x8;", b"&#x9;",
        b"&#xA;", b"&#xB;", b"&#xC;", b"&#xD;", b"&#xE;", b"&#xF;", b"&#x10;", b"&#x11;", b"&#x12;",
        b"&#x13;", b"&#x14;", b"&#x15;", b"&#x16;", b"&#x17;", b"&#x18;", b"&#x19;", b"&#x1A;", b"&#x1B;",
        b"&#x1C;", b"&#x1D;", b"&#x1E;", b"&#x1F;",
    ];
    ALL.get(usize::from(byte)).copied()
}

/// Appends the value of an attribute, which stands in quotation marks.
pub fn escape_attribute(text: &str, out: &mut Vec<u8>) {
    escape_some(text.as_bytes(), out, |byte| match byte {
        b'&' => Some(b"&amp;"),
        b'<' => Some(b"&lt;"),
        b'"' => Some(b"&quot;"),
        // White space in attributes becomes blanks when it is read (XML 1.0, 3.3.3), unless it is written
        // as a reference.
        b'\t' => Some(b"&#x9;"),
        b'\n' => Some(b"&#xA;"),
        b'\r' => Some(b"&#xD;"),
        other => control(other),
    });
}

/// Appends the value of an attribute behind its name.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"=\"");
    escape_attribute(text, out);
    out.push(b'"');
}

/// Copies whole stretches between special characters: most texts have none.
fn escape_some(text: &[u8], out: &mut Vec<u8>, special: impl Fn(u8) -> Option<&'static [u8]>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| special(*byte).is_some()) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        if let Some((byte, after)) = after.split_first() {
            out.extend_from_slice(special(*byte).unwrap_or_default());
            rest = after;
        }
    }
    out.extend_from_slice(rest);
}
