//! Content types: what a message is written in, and how it becomes what envelopes are read from.
//!
//! An envelope reaches the exchange as UTF-8 text or as binary XML, always whole: packages are put
//! together, and text in another encoding becomes UTF-8 here, except in packages, whose roots are UTF-8.

use super::multipart::{self, RelatedParameters};
use crate::soap::{Dialect, Form, Soap};
use crate::text;
use crate::values::ReaderQuotas;
use bytes::{Buf, Bytes};
use everywire_http::media_type;
use everywire_idl::encoding::Encoding;
use everywire_model::{Failure, Initiator, Kind};
use http::HeaderValue;
use std::sync::Arc;

/// What a content type says of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    /// How the text is encoded; `None` where the message itself says so (RFC 7303, section 3).
    charset: Option<Encoding>,
    /// Where the message is the root of a package (MTOM).
    pub(super) related: Option<RelatedParameters>,
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
            let related = RelatedParameters::new(&find, dialect)?;
            return Some(Self { charset: Some(Encoding::Utf8), related: Some(related), action });
        }
        if !essence.eq_ignore_ascii_case(media_type(dialect)) {
            return None;
        }
        let charset = match charset.as_deref() {
            None => (dialect.form == Form::Binary).then_some(Encoding::Utf8),
            // More than the three that Microsoft's text encoder knows.
            Some(name) => {
                Some(Encoding::named(name).filter(|of| dialect.form == Form::Text || *of == Encoding::Utf8)?)
            }
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
        let encoding = self.charset.or_else(|| Encoding::of(&body)).ok_or_else(|| {
            let message =
                "the message declares an encoding that is not read: UTF-8, UTF-16 and ISO 8859-1 are";
            Failure::new(Kind::Unsupported, Initiator::Peer, message)
        })?;
        if encoding == Encoding::Utf8 || (encoding == Encoding::Latin1 && body.is_ascii()) {
            if dialect.form == Form::Text && body.starts_with(b"\xef\xbb\xbf") {
                body.advance(3);
            }
            return Ok(body);
        }
        let text = encoding.text(&body);
        let text = text.map_err(|at| Failure::malformed("half of a character in UTF-16 text", at))?;
        Ok(Bytes::from(text.into_owned()))
    }
}

/// Whether this is the type of a package whose envelope does not say where the other parts belong, as that of MTOM does.
pub(super) fn has_attachments(given: &str) -> bool {
    let given = given.trim_start().to_ascii_lowercase();
    given.starts_with("multipart/") && !given.contains("application/xop+xml")
}

/// The version of SOAP of an envelope in text, whatever its content type says; `None`: it is no envelope.
pub(super) fn version(body: &[u8]) -> Option<Soap> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let mut reader = text::Reader::new(body, &ReaderQuotas::default());
    loop {
        let tag = match reader.next().ok()?? {
            text::Event::Start(tag) => tag,
            text::Event::Text(text) if text.trim().is_empty() => continue,
            _ => return None,
        };
        let is_declared = |attribute: &text::Attribute<'_>| match attribute.prefix {
            "xmlns" => attribute.local == tag.prefix,
            prefix => prefix.is_empty() && attribute.local == "xmlns" && tag.prefix.is_empty(),
        };
        let namespace = tag.attributes().flatten().find(is_declared)?.value;
        return Soap::of_word(&namespace).filter(|_| tag.local == "Envelope");
    }
}

/// What a peer sent in place of a message that this binding reads.
/// The sentence is Microsoft's, apart from what is expected here.
pub(super) fn mismatch(given: &str, dialect: Dialect) -> Failure {
    let expected = of(dialect);
    let why = if has_attachments(given) {
        "It is a package with attachments (SOAP with Attachments), and of packages those of MTOM are read."
    } else {
        "The client and service bindings may be mismatched."
    };
    let message = format!("Content Type {given} was not supported; {expected} is expected. {why}");
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
            ("text/xml; charset=ISO-8859-1", [true, false, false]),
            ("text/xml; charset=koi8-r", [false, false, false]),
            ("application/soap+xml; charset=utf-8; action=\"urn:x\"", [false, true, false]),
            ("application/soap+msbin1", [false, false, true]),
            ("application/soap+msbin1; charset=iso-8859-1", [false, false, false]),
            ("application/json", [false, false, false]),
            ("", [false, false, false]),
        ] {
            for (dialect, takes) in [Dialect::BASIC, Dialect::WS, Dialect::BINARY].into_iter().zip(takes) {
                assert_eq!(Format::read(text.as_bytes(), dialect).is_some(), takes, "{text}");
            }
        }
    }

    /// What a body of this content type reads as.
    fn read(content_type: &str, body: &[u8]) -> Result<String, Failure> {
        let format = Format::read(content_type.as_bytes(), Dialect::BASIC).unwrap();
        let read = format.envelope(Bytes::copy_from_slice(body), Dialect::BASIC, &ReaderQuotas::default())?;
        Ok(String::from_utf8(read.to_vec()).unwrap())
    }

    #[test]
    fn iso_8859_1_is_read_wherever_it_is_said() {
        let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe4</a>";
        for content_type in ["text/xml", "text/xml; charset=iso-8859-1", "text/xml; charset=\"ISO-8859-1\""] {
            assert_eq!(read(content_type, latin).unwrap(), "<a>\u{e4}</a>");
        }
        // The content type has the last word.
        let text = "<?xml version='1.0' encoding='ISO-8859-1'?><a>\u{e4}</a>";
        assert_eq!(read("text/xml; charset=utf-8", text.as_bytes()).unwrap(), text);
        assert_eq!(read("text/xml; charset=utf8", b"\xef\xbb\xbf<a/>").unwrap(), "<a/>");
        let unknown = read("text/xml", b"<?xml version='1.0' encoding='koi8-r'?><a>\xc1</a>").unwrap_err();
        assert_eq!(unknown.kind(), Kind::Unsupported);
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
