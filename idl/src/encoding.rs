//! What the text of an XML document is encoded in, and the text: UTF-8, UTF-16 and ISO 8859-1. Those are the encodings that libraries and
//! editors write; another one is refused, since its text would be read wrongly.

use std::borrow::Cow;

/// Bytes of an XML declaration that are looked at: the longest that anybody writes is a quarter of that.
const MAX_DECLARATION: usize = 256;

/// An encoding that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8. What is ASCII is that, too.
    Utf8,
    /// UTF-16; little-endian unless a mark at the beginning says otherwise, as .NET has it.
    Utf16,
    /// UTF-16, big-endian: what .NET calls `unicodeFFFE`.
    Utf16Big,
    /// ISO 8859-1, whose numbers are those of Unicode. Older libraries of PHP and Perl write it unless they are told otherwise.
    Latin1,
}

impl Encoding {
    /// The one of this name; `None` if it is not read.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" | "us-ascii" | "ascii" | "ansi_x3.4-1968" => Self::Utf8,
            "utf-16" | "utf-16le" => Self::Utf16,
            "utf-16be" | "unicodefffe" => Self::Utf16Big,
            "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "iso_8859-1:1987" | "latin1" | "latin-1" => {
                Self::Latin1
            }
            _ => return None,
        })
    }

    /// What a document is in that nothing else tells of (XML 1.0, appendix F): its mark, the halves of its first character, or its
    /// declaration say so. `None` if it declares an encoding that is not read, and has more than ASCII in it, which all of those agree on.
    #[must_use]
    pub fn of(document: &[u8]) -> Option<Self> {
        let Some(rest) = document.strip_prefix(b"<?xml") else {
            return Some(match document.get(..2) {
                Some([0xFF, 0xFE] | [0xFE, 0xFF] | [b'<', 0]) => Self::Utf16,
                Some([0, b'<']) => Self::Utf16Big,
                _ => Self::Utf8,
            });
        };
        let rest = rest.get(..MAX_DECLARATION).unwrap_or(rest);
        let declaration = rest.split(|byte| *byte == b'>').next().unwrap_or_default();
        let declaration = String::from_utf8_lossy(declaration);
        let Some((_, value)) = declaration.split_once("encoding") else { return Some(Self::Utf8) };
        match value.split(['"', '\'']).nth(1).and_then(Self::named) {
            Some(Self::Latin1) => Some(Self::Latin1),
            // A declaration that can be read so is not in UTF-16, whatever it says.
            Some(_) => Some(Self::Utf8),
            None => document.is_ascii().then_some(Self::Utf8),
        }
    }

    /// The text of a document. Where it is in another encoding than UTF-8, its declaration is left out: what that says is true no longer.
    ///
    /// # Errors
    /// The offset of an octet that is no character.
    pub fn text(self, document: &[u8]) -> Result<Cow<'_, str>, usize> {
        let unit = match (self, document.get(..2)) {
            (Self::Utf8, _) => {
                return std::str::from_utf8(document).map(Cow::Borrowed).map_err(|error| error.valid_up_to());
            }
            (Self::Latin1, _) => {
                let text: String = document.iter().map(|octet| char::from(*octet)).collect();
                return Ok(Cow::Owned(undeclared(&text).to_owned()));
            }
            (Self::Utf16, Some([0xFE, 0xFF])) | (Self::Utf16Big, _) => u16::from_be_bytes,
            (Self::Utf16, _) => u16::from_le_bytes,
        };
        if !document.len().is_multiple_of(2) {
            return Err(document.len());
        }
        let units = document.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let mut text = String::with_capacity(document.len() / 2);
        for character in char::decode_utf16(units) {
            // Half of a pair: the writer meant something by it.
            text.push(character.map_err(|_| text.encode_utf16().count() * 2)?);
        }
        Ok(Cow::Owned(undeclared(text.trim_start_matches('\u{FEFF}')).to_owned()))
    }
}

/// The document of a file or a page, which alone tells its encoding. What is UTF-8 as a whole is that, whatever it declares: a server that
/// turns its pages into UTF-8 leaves the declaration as it was.
///
/// # Errors
/// What is wrong with it.
pub fn text_of(document: Vec<u8>) -> Result<String, String> {
    let Some(encoding) = Encoding::of(&document) else {
        return Err("only UTF-8, UTF-16 and ISO 8859-1 are read".to_owned());
    };
    let wrong = |name: &str, at: usize| format!("the file is not {name} (byte {at})");
    match encoding {
        Encoding::Utf8 | Encoding::Latin1
            if std::str::from_utf8(&document).is_ok() || encoding == Encoding::Utf8 =>
        {
            String::from_utf8(document).map_err(|error| wrong("UTF-8", error.utf8_error().valid_up_to()))
        }
        other => other.text(&document).map(Cow::into_owned).map_err(|at| wrong("UTF-16", at)),
    }
}

/// The text behind an XML declaration.
fn undeclared(text: &str) -> &str {
    match text.strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>").map_or(text, |(_, rest)| rest),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn a_document_says_what_it_is_in() {
        let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe4</a>";
        assert_eq!(text_of(latin.to_vec()).unwrap(), "<a>\u{e4}</a>");
        let stale = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\u{e4}</a>";
        assert_eq!(text_of(stale.as_bytes().to_vec()).unwrap(), stale);
        let ascii = "<?xml version=\"1.0\" encoding=\"windows-1252\"?><a/>";
        assert_eq!(text_of(ascii.as_bytes().to_vec()).unwrap(), ascii);
        for plain in [
            "<a>\u{e4}</a>",
            "<?xml version='1.0' encoding='utf-8'?><a>\u{e4}</a>",
            "<?xml version='1.0'?><a/>",
        ] {
            assert_eq!(text_of(plain.as_bytes().to_vec()).unwrap(), plain);
        }
        for mark in ["", "\u{FEFF}"] {
            for declaration in ["", "<?xml version='1.0' encoding='utf-16'?>"] {
                let wide = format!("{mark}{declaration}<a>\u{e4}\u{1F600}</a>");
                for order in [u16::to_le_bytes, u16::to_be_bytes] {
                    assert_eq!(text_of(utf16(&wide, order)).unwrap(), "<a>\u{e4}\u{1F600}</a>");
                }
            }
        }
        // It is read as bytes, so it is none of UTF-16.
        let lie = "<?xml version='1.0' encoding='utf-16'?><a>\u{e4}</a>";
        assert_eq!(text_of(lie.as_bytes().to_vec()).unwrap(), lie);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let unknown = text_of(b"<?xml version='1.0' encoding='koi8-r'?><a>\xc1</a>".to_vec()).unwrap_err();
        assert!(unknown.contains("ISO 8859-1"), "{unknown}");
        assert!(text_of(b"<a>\xe4</a>".to_vec()).unwrap_err().contains("byte 3"));
        let mut odd = utf16("\u{FEFF}<a/>", u16::to_le_bytes);
        odd.push(0);
        assert!(text_of(odd).unwrap_err().contains("byte 11"));
        let half =
            [utf16("<a>", u16::to_le_bytes), vec![0x00, 0xD8], utf16("</a>", u16::to_le_bytes)].concat();
        assert!(text_of(half).unwrap_err().contains("byte 6"));
        // Torn declarations end somewhere.
        for torn in [
            "",
            "<?xml",
            "<?xml encoding",
            "<?xml encoding=>",
            "<?xml encoding=''?>",
            "<?xml encoding='utf-8",
        ] {
            let _ = text_of(torn.as_bytes().to_vec());
        }
    }
}
