//! Content types: what a message is written in, and how it becomes what envelopes are read from.
//!
//! An envelope reaches the exchange as UTF-8 text or as binary XML, always whole: packages are put
//! together, UTF-16 is turned into UTF-8 here.

use super::multipart::{self, Related};
use crate::soap::{Dialect, Form, Soap};
use crate::text;
use crate::values::ReaderQuotas;
use bytes::{Buf, Bytes};
use everywire_http::media_type;
use everywire_model::{Failure, Initiator, Kind};
use http::HeaderValue;
use std::sync::Arc;

/// How the text of a message is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    /// UTF-16; little-endian unless a mark at the beginning says otherwise.
    Utf16,
    /// What .NET calls `unicodeFFFE`.
    Utf16Big,
}

/// What a content type says of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    charset: Charset,
    /// Where the message is the root of a package (MTOM).
    pub(super) related: Option<Related>,
    /// The action, which SOAP 1.2 may say here.
    pub(super) action: Option<String>,
}

/// The content type that came last, and what it says: the same one comes again and again.
#[derive(Debug, Default)]
pub(super) struct LastFormat(Option<(HeaderValue, Arc<Format>)>);

impl LastFormat {
    /// What a content type says; `None` if messages of the dialect do not come so.
    pub(super) fn read(&mut self, header: &HeaderValue, dialect: Dialect) -> Option<Arc<Format>> {
        if let Some((known, format)) = &self.0
            && known == header
        {
            return Some(Arc::clone(format));
        }
        let format = Arc::new(Format::read(header.as_bytes(), dialect)?);
        // A copy: the header's bytes are those of the whole head.
        let header = HeaderValue::from_bytes(header.as_bytes()).ok()?;
        self.0 = Some((header, Arc::clone(&format)));
        Some(format)
    }
}

/// The content type of messages of a dialect.
pub(super) fn of(dialect: Dialect) -> &'static str {
    match (dialect.form, dialect.soap) {
        (Form::Binary, _) => "application/soap+msbin1",
        (Form::Text, Soap::V11) => "text/xml; charset=utf-8",
        (Form::Text, Soap::V12) => "application/soap+xml; charset=utf-8",
    }
}

/// The media type of messages of a dialect.
pub(super) fn media_type(dialect: Dialect) -> &'static str {
    of(dialect).split(';').next().unwrap_or_default()
}

/// Whether messages of some binding are written so; `text/xml` may be a page, too.
pub(super) fn is_envelope(given: &HeaderValue) -> bool {
    let given = given.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    [Dialect::BINARY, Dialect::WS].iter().any(|of| given.trim().eq_ignore_ascii_case(media_type(*of)))
}

impl Format {
    /// Reads a content type; `None` if messages of the dialect do not come so.
    pub(super) fn read(text: &[u8], dialect: Dialect) -> Option<Self> {
        // A bound of its own: the head's is far larger, and this text is kept.
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= 1024)?;
        let (essence, parameters) = media_type::split(text)?;
        let find = |name: &str| {
            let is = |(given, _): &&(String, String)| given.eq_ignore_ascii_case(name);
            parameters.iter().find(is).map(|(_, value)| value.clone())
        };
        let (charset, action) = (find("charset"), find("action"));
        if essence.eq_ignore_ascii_case("multipart/related") && dialect.form == Form::Text {
            let related = Related::new(&find, dialect)?;
            return Some(Self { charset: Charset::Utf8, related: Some(related), action });
        }
        if !essence.eq_ignore_ascii_case(media_type(dialect)) {
            return None;
        }
        // The three that Microsoft's text encoder knows.
        let charset = match charset.map(|name| name.to_ascii_lowercase()).as_deref() {
            None | Some("utf-8") => Charset::Utf8,
            Some("utf-16" | "utf-16le") if dialect.form == Form::Text => Charset::Utf16,
            Some("utf-16be" | "unicodefffe") if dialect.form == Form::Text => Charset::Utf16Big,
            Some(_) => return None,
        };
        Some(Self { charset, related: None, action })
    }

    /// The envelope within a body: UTF-8 or binary, with everything in it.
    pub(super) fn envelope(
        &self,
        mut body: Bytes,
        dialect: Dialect,
        quotas: &ReaderQuotas,
    ) -> Result<Bytes, Failure> {
        if let Some(related) = &self.related {
            return multipart::unpack(related, body, quotas);
        }
        match (self.charset, body.get(..3)) {
            (Charset::Utf8, Some([0xEF, 0xBB, 0xBF])) if dialect.form == Form::Text => {
                body.advance(3);
                Ok(body)
            }
            (Charset::Utf8, _) => Ok(body),
            (Charset::Utf16, Some([0xFE, 0xFF, _])) | (Charset::Utf16Big, _) => {
                from_utf16(&body, u16::from_be_bytes)
            }
            (Charset::Utf16, _) => from_utf16(&body, u16::from_le_bytes),
        }
    }
}

/// UTF-16 as UTF-8, without its mark. A half of a surrogate pair is an error, since the peer would mean
/// something by it.
fn from_utf16(body: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Bytes, Failure> {
    if !body.len().is_multiple_of(2) {
        return Err(Failure::malformed("UTF-16 text of an odd length", body.len()));
    }
    let text: Result<String, _> = text::utf16(body, unit).collect();
    let text = text.map_err(|_| Failure::malformed("half of a character in UTF-16 text", 0))?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    // What the declaration says of the encoding is true no longer.
    let text = match text.strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>").map_or(text, |(_, rest)| rest),
        None => text,
    };
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

/// What a peer sent in place of a message that this binding reads.
/// The sentence is Microsoft's, apart from what is expected here.
pub(super) fn mismatch(given: &str, dialect: Dialect) -> Failure {
    let expected = of(dialect);
    let message = format!(
        "Content Type {given} was not supported; {expected} is expected. The client and service bindings may be mismatched."
    );
    Failure::new(Kind::Unsupported, Initiator::Peer, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_binding_takes_its_own_type_only() {
        for (text, takes) in [
            ("text/xml", [true, false, false]),
            ("text/xml; charset=\"UTF-8\"", [true, false, false]),
            ("text/xml; charset=utf-16", [true, false, false]),
            ("text/xml; charset=iso-8859-1", [false, false, false]),
            ("application/soap+xml; charset=utf-8; action=\"urn:x\"", [false, true, false]),
            ("application/soap+msbin1", [false, false, true]),
            ("application/json", [false, false, false]),
            ("", [false, false, false]),
        ] {
            for (dialect, takes) in [Dialect::BASIC, Dialect::WS, Dialect::BINARY].into_iter().zip(takes) {
                assert_eq!(Format::read(text.as_bytes(), dialect).is_some(), takes, "{text}");
            }
        }
    }

    #[test]
    fn utf_16_becomes_utf_8_whatever_its_order() {
        let text = "<?xml version='1.0' encoding='utf-16'?><a>\u{e4}\u{1F600}</a>";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> =
            "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        for (name, body) in [("utf-16", &little), ("utf-16", &big), ("unicodeFFFE", &big)] {
            let format =
                Format::read(format!("text/xml; charset={name}").as_bytes(), Dialect::BASIC).unwrap();
            let read =
                format.envelope(Bytes::from(body.clone()), Dialect::BASIC, &ReaderQuotas::default()).unwrap();
            assert_eq!(read, "<a>\u{e4}\u{1F600}</a>".as_bytes());
        }
        let format = Format::read(b"text/xml; charset=utf-16", Dialect::BASIC).unwrap();
        for broken in [&little[..little.len() - 1], &little[..little.len() - 12]] {
            let broken = [broken, &[0, 0xD8][..broken.len() % 2 * 2]].concat();
            let read = format.envelope(Bytes::from(broken), Dialect::BASIC, &ReaderQuotas::default());
            assert!(read.is_err() || !read.unwrap().ends_with(b"</a>"));
        }
    }
}
