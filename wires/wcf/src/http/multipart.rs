//! Packages (XOP in multipart/related): the envelope's large octets stand beside it, in parts of their own.
//!
//! MTOM sends octets as they are instead of as base64. Here that happens at the edge: `pack` takes base64
//! texts out of a finished envelope and puts an `xop:Include` in their place, `unpack` does the reverse
//! before anybody reads the envelope. So neither codec nor servants know of packages.
//!
//! State: none beyond one message. `RelatedParameters` is what a content type says, kept with the connection's last
//! one.
//!
//! Invariants:
//!
//! * At most `MAX_PARTS` parts with headers of at most `MAX_PART_HEADERS` bytes each; a boundary has 1 to
//!   70 characters (RFC 2046, 5.1.1).
//! * Each part is put in place once at most: what comes out is at most a third larger than the body, which
//!   was compared with the quota.
//! * Only an element `Include` of XOP's namespace is replaced, and the root part is read with the hardened
//!   reader and the quotas of the address.
//! * `pack` takes out only text that is base64 in exactly the spelling that `unpack` would write, so that
//!   the envelope comes back as it was.
//! * Parts that nothing includes are dropped; a reference to a part that is not there fails the message.

use super::content;
use crate::soap::{Dialect, Soap};
use crate::text::{Event, Reader, Tag, base64};
use crate::values::ReaderQuotas;
use bytes::Bytes;
use everywire_model::{Failure, Initiator, Kind};
use std::hash::{BuildHasher, RandomState};

/// Parts of one package (Microsoft's `MaxMimeParts`).
pub const MAX_PARTS: usize = 1000;

/// Bytes of the headers of one part.
pub const MAX_PART_HEADERS: usize = 4096;

/// Bytes of a boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY: usize = 70;

/// XOP 1.0, section 2.1.
const XOP: &str = "http://www.w3.org/2004/08/xop/include";
/// The name of the root part, as Microsoft's writer calls it.
const ROOT: &str = "http://tempuri.org/0";

/// How a package is read: what its content type says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelatedParameters {
    boundary: String,
    /// The name of the part that is the envelope; empty: the first.
    start: String,
}

impl RelatedParameters {
    /// Reads the parameters of a `multipart/related`; `None` if it holds no envelope of the dialect.
    pub(super) fn new(find: &dyn Fn(&str) -> Option<String>, dialect: Dialect) -> Option<Self> {
        let is_xop = find("type").is_some_and(|kind| kind.eq_ignore_ascii_case("application/xop+xml"));
        let info = find("start-info").unwrap_or_default();
        let info = info.split(';').next().unwrap_or_default().trim();
        let fits = info.is_empty() || info.eq_ignore_ascii_case(content::media_type(dialect));
        let boundary = find("boundary").filter(|given| !given.is_empty() && given.len() <= MAX_BOUNDARY)?;
        let start = find("start").unwrap_or_default();
        (is_xop && fits).then(|| Self { boundary, start: unbracket(&start).to_owned() })
    }
}

/// A Content-ID stands in angle brackets; a `cid:` reference to it has none (RFC 2392).
fn unbracket(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix('<').and_then(|name| name.strip_suffix('>')).unwrap_or(name)
}

/// One part: its name, and what it holds.
struct Part {
    /// Empty if it has none.
    name: String,
    octets: Bytes,
    /// Whether an Include has taken its octets.
    used: bool,
}

/// The envelope of a package, with the octets in their places as base64. Each part may be used once: what comes out is at
/// most a third larger than what went in.
pub(super) fn unpack(
    related: &RelatedParameters,
    body: Bytes,
    quotas: &ReaderQuotas,
) -> Result<Bytes, Failure> {
    let mut parts = parts(related, &body)?;
    let root = match related.start.as_str() {
        "" => (!parts.is_empty()).then_some(0),
        start => parts.iter().position(|part| part.name == start),
    };
    let root = root.map(|at| parts.remove(at)).ok_or_else(|| broken("a package without its root"))?;
    if parts.is_empty() {
        return Ok(root.octets);
    }
    fill(&root.octets, &mut parts, quotas)
}

/// The parts between the boundaries, in order. What stands before the first boundary and behind the last
/// means nothing.
fn parts(related: &RelatedParameters, body: &Bytes) -> Result<Vec<Part>, Failure> {
    let delimiter = format!("\r\n--{}", related.boundary);
    let finder = memchr::memmem::Finder::new(delimiter.as_bytes());
    let mut parts = Vec::new();
    // The first delimiter may stand at the very beginning.
    let mut at = match body.strip_prefix(delimiter.as_bytes().get(2..).unwrap_or_default()) {
        Some(_) => delimiter.len() - 2,
        None => finder.find(body).ok_or_else(|| broken("a package without its boundary"))? + delimiter.len(),
    };
    loop {
        let rest = body.get(at..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let line =
            rest.iter().take(64).position(|byte| *byte == b'\n').ok_or_else(|| broken("a torn boundary"))?;
        let start = at + line + 1;
        let length = finder
            .find(body.get(start..).unwrap_or_default())
            .ok_or_else(|| broken("a part without an end"))?;
        parts.push(part(body.slice(start..start + length))?);
        if parts.len() > MAX_PARTS {
            return Err(Failure::over_limit(Initiator::Peer, "parts of a package", parts.len(), MAX_PARTS));
        }
        at = start + length + delimiter.len();
    }
}

/// One part: headers, an empty line, octets.
fn part(bytes: Bytes) -> Result<Part, Failure> {
    let head = bytes.get(..MAX_PART_HEADERS).unwrap_or(&bytes);
    let (head, start) = if head.starts_with(b"\r\n") {
        (&[][..], 2)
    } else {
        let end =
            memchr::memmem::find(head, b"\r\n\r\n").ok_or_else(|| broken("a part's headers do not end"))?;
        (head.get(..end).unwrap_or_default(), end + 4)
    };
    let head = std::str::from_utf8(head).map_err(|_| broken("a part's headers are no text"))?;
    let mut name = String::new();
    let mut is_base64 = false;
    for line in head.split("\r\n") {
        let Some((header, value)) = line.split_once(':') else { continue };
        if header.eq_ignore_ascii_case("content-id") {
            unbracket(value).clone_into(&mut name);
        } else if header.eq_ignore_ascii_case("content-transfer-encoding") {
            match value.trim().to_ascii_lowercase().as_str() {
                "binary" | "8bit" | "7bit" => {}
                "base64" => is_base64 = true,
                other => return Err(broken(&format!("a part in transfer encoding `{other}`"))),
            }
        }
    }
    let octets = bytes.slice(start..);
    let octets = if is_base64 {
        base64::decode(&octets).ok_or_else(|| broken("a part that is no base64"))?.into()
    } else {
        octets
    };
    Ok(Part { name, octets, used: false })
}

/// Puts the parts in their places. The root is read as envelopes are: what they may not have, it may not have either.
fn fill(root: &[u8], parts: &mut [Part], quotas: &ReaderQuotas) -> Result<Bytes, Failure> {
    let mut reader = Reader::new(root, quotas);
    let octets: usize = parts.iter().map(|part| part.octets.len() * 4 / 3 + 4).sum();
    let mut out = Vec::with_capacity(root.len() + octets);
    let mut copied = 0;
    loop {
        let before = reader.position();
        let Some(event) = reader.next()? else { break };
        let Event::Start(tag) = event else { continue };
        // The root itself is nobody's octets.
        if tag.local == "Include" && reader.depth() > 1 && reader.namespace(tag.prefix) == Some(XOP) {
            let octets = referred(&tag, parts)?;
            out.extend_from_slice(root.get(copied..before).unwrap_or_default());
            base64::encode(&octets, &mut out);
            reader.skip()?;
            copied = reader.position();
        }
    }
    out.extend_from_slice(root.get(copied..).unwrap_or_default());
    Ok(out.into())
}

/// The octets that an Include refers to.
fn referred(tag: &Tag<'_>, parts: &mut [Part]) -> Result<Bytes, Failure> {
    let mut href = None;
    for attribute in tag.attributes() {
        let attribute = attribute?;
        if attribute.prefix.is_empty() && attribute.local == "href" {
            href = Some(attribute.value);
        }
    }
    let href = href.ok_or_else(|| broken("an Include without href"))?;
    // A part's name may have characters that a URI writes as `%xx`.
    let name = href.strip_prefix("cid:").and_then(everywire_model::reference::unescape);
    let part = name
        .and_then(|name| parts.iter_mut().find(|part| part.name.as_bytes() == name))
        .ok_or_else(|| broken("an Include of a part that is not there"))?;
    if std::mem::replace(&mut part.used, true) {
        return Err(broken("a part is included twice"));
    }
    Ok(part.octets.clone())
}

/// Makes a package of an envelope, whose large octets go into parts of their own: the content type, and the body. What is
/// put together again is the same envelope, so that any text that is base64, and nothing else, may go so (XOP 1.0, 3.1).
pub(super) fn pack(dialect: Dialect, envelope: Vec<Bytes>) -> (String, Vec<Bytes>) {
    let boundary =
        format!("uuid:{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    let info = content::media_type(dialect);
    let kind = if dialect.soap == Soap::V11 { info } else { "application/soap+xml" };
    let head = format!(
        "--{boundary}\r\nContent-ID: <{ROOT}>\r\nContent-Transfer-Encoding: 8bit\r\n\
         Content-Type: application/xop+xml;charset=utf-8;type=\"{kind}\"\r\n\r\n"
    );
    let content_type = format!(
        "multipart/related; type=\"application/xop+xml\"; start=\"<{ROOT}>\"; boundary=\"{boundary}\"; \
         start-info=\"{info}\""
    );
    let mut body = vec![Bytes::from(head)];
    let length: usize = envelope.iter().map(Bytes::len).sum();
    if length < EXTRACTED {
        body.extend(envelope);
    } else {
        let (root, octets) = extract(&envelope.concat());
        body.extend(root);
        for (number, octets) in octets.into_iter().enumerate() {
            body.push(Bytes::from(format!(
                "\r\n--{boundary}\r\nContent-ID: <{}>\r\nContent-Transfer-Encoding: binary\r\n\
                 Content-Type: application/octet-stream\r\n\r\n",
                name(number)
            )));
            body.push(octets);
        }
    }
    body.push(Bytes::from(format!("\r\n--{boundary}--\r\n")));
    (content_type, body)
}

/// Characters of base64 that go into a part of their own: more than 768 octets, as Microsoft's writer has it.
const EXTRACTED: usize = 1024;

/// The name of a part.
fn name(number: usize) -> String {
    format!("part{}@tempuri.org", number + 1)
}

/// The envelope with references in place of its large octets, and these.
fn extract(envelope: &[u8]) -> (Vec<Bytes>, Vec<Bytes>) {
    let (mut root, mut parts) = (Vec::new(), Vec::new());
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'>', envelope.get(at..).unwrap_or_default()) {
        let start = at + found + 1;
        let rest = envelope.get(start..).unwrap_or_default();
        let Some(length) = memchr::memchr(b'<', rest) else { break };
        at = start + length;
        let text = rest.get(..length).unwrap_or_default();
        if length < EXTRACTED
            // The root is one of them.
            || parts.len() + 2 > MAX_PARTS
            || !rest.get(length..).is_some_and(|end| end.starts_with(b"</"))
        {
            continue;
        }
        let Some(octets) = base64::decode(text) else { continue };
        // Other ways to write the same octets are another text.
        let mut again = Vec::with_capacity(length);
        base64::encode(&octets, &mut again);
        if again != text {
            continue;
        }
        root.push(Bytes::copy_from_slice(envelope.get(copied..start).unwrap_or_default()));
        let cid = name(parts.len());
        root.push(Bytes::from(format!("<xop:Include href=\"cid:{cid}\" xmlns:xop=\"{XOP}\"/>")));
        parts.push(Bytes::from(octets));
        copied = at;
    }
    root.push(Bytes::copy_from_slice(envelope.get(copied..).unwrap_or_default()));
    (root, parts)
}

#[cold]
fn broken(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Initiator::Peer, format!("the package (MTOM) is broken: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/related; type=\"application/xop+xml\"; start=\"<root>\"; boundary=\"B\"; start-info=\"text/xml\"";

    fn read(content_type: &str, body: &str) -> Result<String, Failure> {
        let format = content::Format::read(content_type.as_bytes(), Dialect::BASIC).unwrap();
        let body = Bytes::copy_from_slice(body.as_bytes());
        let envelope = format.envelope(body, Dialect::BASIC, &ReaderQuotas::default())?;
        Ok(String::from_utf8(envelope.to_vec()).unwrap())
    }

    fn package(root: &str, part: &str) -> String {
        format!(
            "--B\r\nContent-ID: <root>\r\nContent-Type: application/xop+xml\r\n\r\n{root}\r\n--B\r\n\
             content-id: <a@b>\r\nContent-Transfer-Encoding: binary\r\n\r\n{part}\r\n--B--\r\n"
        )
    }

    const INCLUDE: &str = "<x:Include xmlns:x='http://www.w3.org/2004/08/xop/include' href='cid:a%40b'/>";

    #[test]
    fn octets_come_back_to_their_places() {
        let root = format!("<e><d>{INCLUDE}</d><!-- {INCLUDE} --></e>");
        let expected = format!("<e><d>AP9v</d><!-- {INCLUDE} --></e>");
        let body = package(&root, "\u{0}?o").replace('?', "\u{7f}");
        assert_eq!(read(TYPE, &body).unwrap(), expected.replace("AP9v", "AH9v"));
        let open = INCLUDE.replace("/>", "><y/></x:Include>");
        assert_eq!(read(TYPE, &package(&format!("<e>{open}</e>"), "abc")).unwrap(), "<e>YWJj</e>");
        let foreign = "<e><Include href='cid:a@b'/></e>";
        assert_eq!(read(TYPE, &package(foreign, "abc")).unwrap(), foreign);
    }

    #[test]
    fn what_is_packed_is_read_again() {
        let (content_type, body) = pack(Dialect::BASIC, vec![Bytes::from_static(b"<e> text <f> </f></e>")]);
        let body = String::from_utf8(body.concat()).unwrap();
        assert_eq!(read(&content_type, &body).unwrap(), "<e> text <f> </f></e>");
    }

    #[test]
    fn large_octets_go_in_parts_and_come_back() {
        let mut encoded = Vec::new();
        base64::encode(&[0x55; 768], &mut encoded);
        let encoded = String::from_utf8(encoded).unwrap();
        // Neither too small, nor in another notation, nor before an element.
        let small = &encoded[4..];
        let (other, before) = (format!("{encoded} "), format!("{encoded}<x/>"));
        let envelope = format!(
            "<e><a>{encoded}</a><b>{small}</b><c>{other}</c><d>{before}</d><f y='&gt;'>{encoded}</f></e>"
        );
        let split = envelope.len() / 2;
        let envelope_parts = vec![
            Bytes::copy_from_slice(&envelope.as_bytes()[..split]),
            Bytes::copy_from_slice(&envelope.as_bytes()[split..]),
        ];
        let (content_type, body) = pack(Dialect::BASIC, envelope_parts);
        let body = String::from_utf8(body.concat()).unwrap();
        assert_eq!((body.matches("Include").count(), body.matches(&encoded).count()), (2, 2));
        assert_eq!(read(&content_type, &body).unwrap(), envelope);
    }

    #[test]
    fn the_root_of_a_package_has_the_bounds_of_any_envelope() {
        let spaces = |count: usize| (0..count).map(|i| format!(" xmlns:p{i}='u'")).collect::<String>();
        let nested = |count: usize| {
            (0..count).map(|i| format!("<e xmlns:p{i}='u'>")).collect::<String>() + &"</e>".repeat(count)
        };
        let within = |element: &str| package(&format!("<e>{element}<d>{INCLUDE}</d></e>"), "abc");
        assert!(read(TYPE, &within(&format!("<a{}/>{}", spaces(60), nested(20)))).is_ok());
        for (element, why) in [
            (format!("<a{}/>", spaces(70)), "attributes"),
            (format!("<a x='{}'/>", "y".repeat(70_000)), "start element tag length"),
            ("<a>".repeat(40) + &"</a>".repeat(40), "read depth"),
            (format!("<{}/>", "n".repeat(5000)), "name"),
            ("<a>&lol;</a>".to_owned(), "entit"),
            ("<?php ?>".to_owned(), "processing instruction"),
        ] {
            let failure = read(TYPE, &within(&element)).unwrap_err();
            let said = failure.to_string().to_lowercase();
            assert!(said.contains(why), "{said} is not about `{why}`");
        }
    }

    #[test]
    fn broken_packages_are_refused() {
        let twice = format!("<e>{INCLUDE}{INCLUDE}</e>");
        let good = package(&format!("<e>{INCLUDE}</e>"), "abc");
        let many = format!("--B{}\r\n--B--", "\r\n\r\nx\r\n--B".repeat(MAX_PARTS + 2));
        let long = good.replace("content-id", &format!("X: {}\r\ncontent-id", "y".repeat(MAX_PART_HEADERS)));
        for (body, why) in [
            (package(&twice, "abc"), "twice"),
            (good.replace("a@b", "other"), "not there"),
            (good.replace("<root>", "<other>"), "without its root"),
            (good.replace("--B--", ""), "without an end"),
            (good.replace("--B", "--C"), "without its boundary"),
            (good.replace("binary", "gzip"), "transfer encoding `gzip`"),
            (package("<!DOCTYPE e><e/>", "abc"), "document type"),
            (many, "exceeds the limit"),
            (long, "do not end"),
        ] {
            let failure = read(TYPE, &body).unwrap_err();
            assert!(failure.message().contains(why), "{failure} is not about `{why}`");
        }
    }
}
