//! HTTP messages: the line, the fields of the head, the body as it is cut into chunks, and the envelope in
//! it.
//!
//! A capture is read as it is, without the HTTP library: that would refuse what is cut off. `Head::read`
//! lists the lines and notes what decides about the rest, `body` or `chunks` find where the message ends,
//! and `content` lists what is in the body, by its type.
//!
//! State: none beyond one message, but for the session's `StreamState`, which envelopes share with framing.
//!
//! What holds:
//!
//! * The length of a body comes from chunks, Content-Length, or the end of a response's connection, in this
//!   order (RFC 9112, 6.3); two different lengths are told as broken.
//! * A head has at most `MAX_HEAD` bytes, a line between chunks `MAX_LINE`, a package `MAX_PARTS` parts:
//!   what is longer is no HTTP of WCF.
//! * Fields that let others in (`Authorization`) are listed with their scheme and their length only.
//! * A part has an offset only where its bytes stand in one piece; otherwise it points at the whole
//!   message.
//! * Bodies in a coding (gzip) are not unpacked.

use super::{Encoding, StreamState, add, chunk_size, envelope, lossy, part, shown};
use crate::text;
use everywire_http::media_type::split;
use everywire_idl::encoding::Encoding as Charset;
use everywire_model::wire::{Greeting, MessageListing, Part, Sniff};

/// Bytes of a head that are looked at; longer ones are no HTTP that anybody takes.
const MAX_HEAD: usize = 64 << 10;

/// Bytes of a line that tells a chunk's size.
const MAX_LINE: usize = 4 << 10;

/// Parts of a package that are listed.
const MAX_PARTS: usize = 1000;

/// What a message may begin with.
const STARTS: [&[u8]; 10] = [
    b"HTTP/1.",
    b"POST ",
    b"GET ",
    b"HEAD ",
    b"OPTIONS ",
    b"PUT ",
    b"DELETE ",
    b"TRACE ",
    b"CONNECT ",
    b"PATCH ",
];

/// Whether these bytes are the beginning of a message, as far as they go.
pub(super) fn begins(bytes: &[u8]) -> bool {
    STARTS.iter().any(|start| Greeting::begins(bytes, start) != Sniff::No)
}

/// The message at the front, and whether it is whole.
pub(super) fn message(bytes: &[u8], reading: &mut StreamState) -> (MessageListing, bool) {
    let mut message = MessageListing::default();
    match read(bytes, &mut message, reading) {
        Ok(whole) => (message, whole),
        Err(why) => (broken(message, bytes.len(), why), true),
    }
}

/// Whether the message is whole; `Err` says why it is none.
fn read(bytes: &[u8], message: &mut MessageListing, reading: &mut StreamState) -> Result<bool, &'static str> {
    let Some(head) = Head::read(bytes, message)? else {
        message.len = bytes.len();
        return Ok(false);
    };
    let (name, start) = (message.kind.clone(), message.summary.clone());
    let mut body = body(&head, bytes, message)?;
    reading.lacks = body.lacks;
    if !body.whole {
        message.len = bytes.len();
    }
    let action = content(&head, &mut body, message, reading);
    let action = if action.is_empty() { head.action.clone().unwrap_or_default() } else { action };
    let listed = message.parts.iter().any(|part| part.name == "action");
    if !listed && !action.is_empty() {
        let (offset, len) = head.action_at;
        message.parts.push(part(offset, len, "action", &*action));
    }
    let blank = if action.is_empty() { "" } else { " " };
    let mut summary = format!("{start}{blank}{action}, {} bytes", body.octets.len());
    if body.chunks > 0 {
        summary.push_str(&format!(" in {} chunks", body.chunks));
    }
    (message.kind, message.summary) = (name, summary);
    Ok(body.whole)
}

/// Offset and length.
type ByteRange = (usize, usize);

/// What a head says that is needed to go on.
#[derive(Default)]
struct Head {
    len: usize,
    response: bool,
    /// Whether a response of this status has no body.
    bare: bool,
    chunked: bool,
    length: Option<usize>,
    content_type: String,
    /// A coding of the content, such as `gzip`.
    coding: Option<String>,
    action: Option<String>,
    action_at: ByteRange,
}

impl Head {
    /// Reads the lines up to the empty one; `None` if that is not here yet.
    fn read(bytes: &[u8], message: &mut MessageListing) -> Result<Option<Self>, &'static str> {
        let mut head = Self { response: bytes.starts_with(b"HTTP"), ..Self::default() };
        message.kind = if head.response { "reply" } else { "request" }.to_owned();
        message.summary.clone_from(&message.kind);
        let mut first = true;
        loop {
            let rest = bytes.get(head.len..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', rest) else {
                if bytes.len() > MAX_HEAD {
                    return Err("the head does not end");
                }
                if !rest.is_empty() {
                    let name = if first { "start line" } else { "field" };
                    let value = format!("{} (cut off)", lossy(rest.get(..80).unwrap_or(rest)));
                    let value = if is_secret(rest) { "a secret (cut off)".to_owned() } else { value };
                    message.parts.push(Part { offset: head.len, len: rest.len(), name, value });
                }
                return Ok(None);
            };
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let (offset, len) = (head.len, end + 1);
            head.len += len;
            if head.len > MAX_HEAD {
                return Err("the head is too long");
            }
            if first {
                first = false;
                head.start(line, message);
                let name = if head.response { "status line" } else { "request line" };
                message.parts.push(Part { offset, len, name, value: lossy(line) });
            } else if line.is_empty() {
                return Ok(Some(head));
            } else {
                head.field(line, (offset, len), message)?;
            }
        }
    }

    /// The request line or the status line.
    fn start(&mut self, line: &[u8], message: &mut MessageListing) {
        let line = lossy(line);
        let mut words = line.split(' ');
        if self.response {
            let status = line.split_once(' ').map_or("", |(_, status)| status);
            let code = status.split(' ').next().unwrap_or_default();
            self.bare = code.starts_with('1') || code == "204" || code == "304";
            message.summary = format!("reply {status}");
        } else {
            let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            message.summary = format!("request {verb} {target}");
        }
    }

    /// One field; its value is noted if it decides about the body or the action.
    fn field(
        &mut self,
        line: &[u8],
        place: ByteRange,
        message: &mut MessageListing,
    ) -> Result<(), &'static str> {
        let text = String::from_utf8_lossy(line);
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.trim();
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("content-length") {
            let given = value.parse().map_err(|_| "Content-Length is no number")?;
            if self.length.is_some_and(|known| known != given) {
                return Err("two lengths of one body");
            }
            self.length = Some(given);
        } else if is("transfer-encoding") {
            self.chunked = value.to_ascii_lowercase().ends_with("chunked");
        } else if is("content-type") {
            value.clone_into(&mut self.content_type);
            if let Some((_, parameters)) = split(value) {
                let action = parameters.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("action"));
                if let Some((_, action)) = action {
                    (self.action, self.action_at) = (Some(action), place);
                }
            }
        } else if is("content-encoding") && !value.eq_ignore_ascii_case("identity") {
            self.coding = Some(value.to_owned());
        } else if is("soapaction") {
            (self.action, self.action_at) = (Some(value.trim_matches('"').to_owned()), place);
        }
        let value = if is_secret(line) {
            let scheme = value.split(' ').next().unwrap_or_default();
            format!("{name}: {scheme} (a secret of {} bytes)", value.len())
        } else {
            lossy(line)
        };
        message.parts.push(part(place.0, place.1, "field", value));
        Ok(())
    }
}

/// Whether a field holds what lets others in.
fn is_secret(line: &[u8]) -> bool {
    const SECRETS: [&[u8]; 2] = [b"authorization", b"proxy-authorization"];
    let name = line.split(|octet| *octet == b':').next().unwrap_or_default();
    SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// A body without what cuts it.
struct Content {
    octets: Vec<u8>,
    /// Where it stands, if in one piece.
    at: Option<usize>,
    chunks: usize,
    whole: bool,
    /// How many more bytes it needs at least.
    lacks: usize,
}

/// The body behind a head; the length of the message becomes known.
fn body(head: &Head, bytes: &[u8], message: &mut MessageListing) -> Result<Content, &'static str> {
    message.len = head.len;
    let rest = bytes.get(head.len..).unwrap_or_default();
    if head.chunked && !head.bare {
        return chunks(bytes, message);
    }
    let size = match head.length {
        _ if head.bare => 0,
        Some(length) => length,
        // A response without a length ends with its connection.
        None if head.response => rest.len(),
        None => 0,
    };
    let octets = rest.get(..size).unwrap_or(rest).to_vec();
    message.len += octets.len();
    let lacks = size - octets.len();
    Ok(Content { octets, at: Some(head.len), chunks: 0, whole: lacks == 0, lacks })
}

/// A chunked body, and its trailers.
fn chunks(bytes: &[u8], message: &mut MessageListing) -> Result<Content, &'static str> {
    let mut content = Content { octets: Vec::new(), at: None, chunks: 0, whole: false, lacks: 0 };
    loop {
        let Some(line) = line(bytes, message.len)? else { return Ok(content) };
        let digits = line.split(|octet| *octet == b';').next().unwrap_or_default().trim_ascii();
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        // Longer ones do not fit anywhere; a sign is no digit.
        if digits.is_empty() || digits.len() > 15 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err("a chunk without its size");
        }
        let size = usize::from_str_radix(digits, 16).map_err(|_| "a chunk without its size")?;
        message.parts.push(chunk_size(message.len, line.len(), size));
        message.len += line.len();
        if size == 0 {
            break;
        }
        let rest = bytes.get(message.len..).unwrap_or_default();
        let chunk = rest.get(..size).unwrap_or(rest);
        content.at = (content.chunks == 0).then_some(message.len);
        content.chunks += 1;
        content.octets.extend_from_slice(chunk);
        message.len += chunk.len();
        if chunk.len() < size {
            content.lacks = size - chunk.len();
            return Ok(content);
        }
        match line_end(bytes, message.len)? {
            Some(len) => message.len += len,
            None => return Ok(content),
        }
    }
    // Trailers.
    while let Some(line) = line(bytes, message.len)? {
        let (offset, text) = (message.len, line.trim_ascii());
        message.len += line.len();
        if text.is_empty() {
            content.whole = true;
            break;
        }
        message.parts.push(Part { offset, len: line.len(), name: "field", value: lossy(text) });
    }
    Ok(content)
}

/// The line at an offset, with its end.
fn line(bytes: &[u8], at: usize) -> Result<Option<&[u8]>, &'static str> {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = rest.get(..MAX_LINE).unwrap_or(rest);
    match memchr::memchr(b'\n', rest) {
        Some(end) => Ok(rest.get(..=end)),
        None if rest.len() == MAX_LINE => Err("a line between chunks does not end"),
        None => Ok(None),
    }
}

/// The length of the line's end at an offset.
fn line_end(bytes: &[u8], at: usize) -> Result<Option<usize>, &'static str> {
    match bytes.get(at..).unwrap_or_default() {
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] => Ok(Some(2)),
        [b'\n', ..] => Ok(Some(1)),
        _ => Err("a chunk that is longer than its size"),
    }
}

/// Lists what is in a body, by its type; returns the action that an envelope tells.
fn content(
    head: &Head,
    body: &mut Content,
    message: &mut MessageListing,
    reading: &mut StreamState,
) -> String {
    if body.octets.is_empty() {
        return String::new();
    }
    if let Some(coding) = &head.coding {
        whole(body, message, format!("{} bytes of coding {coding}", body.octets.len()));
        return String::new();
    }
    let (essence, parameters) = split(&head.content_type).unwrap_or((&head.content_type, Vec::new()));
    let find = |name: &str| {
        let found = parameters.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let told = match essence.to_ascii_lowercase().as_str() {
        "application/soap+msbin1" => {
            let words = &mut reading.words;
            return envelope::explain(&body.octets, body.at, Some(Encoding::Binary), words, message);
        }
        "multipart/related" => match find("boundary").filter(|boundary| !boundary.is_empty()) {
            Some(boundary) => return package(boundary, find("start"), body, message, reading),
            None => "a package without a boundary".to_owned(),
        },
        "text/xml" | "application/soap+xml" => {
            let charset = find("charset").unwrap_or_default().to_ascii_lowercase();
            if let Some(text) = decoded(&charset, &body.octets) {
                (body.octets, body.at) = (text.into_bytes(), None);
            }
            return textual(body, message, reading);
        }
        "application/xml" | "text/html" | "text/plain" => shown(&String::from_utf8_lossy(&body.octets)),
        other => format!("{} bytes of {other:?}", body.octets.len()),
    };
    whole(body, message, told);
    String::new()
}

/// An envelope of text, or another document.
fn textual(body: &Content, message: &mut MessageListing, reading: &mut StreamState) -> String {
    let known = message.parts.len();
    // What marks UTF-8 is no part of the document.
    let skip = if body.octets.starts_with(&[0xEF, 0xBB, 0xBF]) { 3 } else { 0 };
    let document = body.octets.get(skip..).unwrap_or_default();
    let at = body.at.map(|at| at + skip);
    let action = envelope::explain(document, at, Some(Encoding::Soap12Utf8), &mut reading.words, message);
    if message.parts.len() == known {
        let text = shown(&String::from_utf8_lossy(document));
        whole(body, message, text);
    }
    action
}

/// A package (MTOM): the root is an envelope, the others are octets.
fn package(
    boundary: &str,
    start: Option<&str>,
    body: &Content,
    message: &mut MessageListing,
    reading: &mut StreamState,
) -> String {
    let delimiter = format!("--{boundary}");
    let finder = memchr::memmem::Finder::new(delimiter.as_bytes());
    let octets = &body.octets;
    let begins: Vec<usize> = finder.find_iter(octets).take(MAX_PARTS + 1).collect();
    let mut action = String::new();
    let mut rooted = false;
    for (index, begin) in begins.iter().enumerate() {
        let from = begin + delimiter.len();
        let to = begins.get(index + 1).copied().unwrap_or(octets.len());
        let part = octets.get(from..to).unwrap_or_default();
        if part.starts_with(b"--") {
            break;
        }
        let Some(end) = memchr::memmem::find(part, b"\r\n\r\n") else {
            whole(body, message, "a part of the package is cut off in its head".to_owned());
            break;
        };
        let head = part.get(..end).unwrap_or_default();
        let content = part.get(end + 4..).unwrap_or_default();
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        let text = lossy(head.trim_ascii()).replace("\\r\\n", "; ");
        let is_root = !rooted && start.is_none_or(|start| text.contains(start));
        add(message, body.at, [from, end + 4], "part", text);
        let at = body.at.map(|at| at + from + end + 4);
        if is_root {
            rooted = true;
            let root = Content { octets: content.to_vec(), at, chunks: 0, whole: true, lacks: 0 };
            action = textual(&root, message, reading);
        } else {
            add(message, at, [0, content.len()], "octets", format!("{} bytes", content.len()));
        }
    }
    if begins.is_empty() {
        whole(body, message, "a package without its boundary".to_owned());
    }
    action
}

/// A body that is told of in one line.
fn whole(body: &Content, message: &mut MessageListing, value: String) {
    add(message, body.at, [0, body.octets.len()], "content", value);
}

/// The text, if the character set is another one than UTF-8 and is read; halves of surrogate pairs are shown as U+FFFD.
fn decoded(charset: &str, octets: &[u8]) -> Option<String> {
    let encoding = if charset.is_empty() { Charset::of(octets) } else { Charset::named(charset) };
    let big = match (encoding?, octets) {
        (Charset::Utf16, [0xFE, 0xFF, ..]) | (Charset::Utf16Big, _) => true,
        (Charset::Utf16, _) => false,
        (Charset::Latin1, _) => return Some(octets.iter().map(|octet| char::from(*octet)).collect()),
        (Charset::Utf8, _) => return None,
    };
    let unit = if big { u16::from_be_bytes } else { u16::from_le_bytes };
    let text: String = text::utf16(octets, unit).map(|char| char.unwrap_or('\u{FFFD}')).collect();
    Some(text.trim_start_matches('\u{FEFF}').to_owned())
}

/// The rest of the stream as one message, with what is wrong.
fn broken(mut message: MessageListing, len: usize, why: &str) -> MessageListing {
    let value = format!("this is broken HTTP: {why}");
    message.parts.push(part(0, len.min(1), "violation", &*value));
    "Request".clone_into(&mut message.kind);
    MessageListing { summary: value, len, ..message }
}
