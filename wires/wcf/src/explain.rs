//! Annotated listings for `trace`: records and preambles of framing or messages of HTTP, the headers of
//! envelopes and the XML of their bodies.
//!
//! The input is one direction of a captured connection, which nobody vouches for: it may begin in the
//! middle, be cut off, or be no WCF at all. What is cut off or broken is said at the place where reading
//! ended; what came before is listed all the same.
//!
//! State (`StreamState`): the encoding that the last preamble named, the words of the session so far, and
//! whether the stream is protected from here on, which ends all reading but that of sizes. A Version record
//! begins a new session, with words of its own.
//!
//! Invariants:
//!
//! * Each step takes at least one byte or ends the listing, so that it comes to an end whatever the bytes
//!   are.
//! * Texts are shown with control characters escaped, and up to a length; the contents of security headers
//!   are not shown.
//! * Quotas of whoever talked are not known, so texts and words are listed up to larger bounds of this
//!   file's own.

mod envelope;
mod http;

use crate::dictionary::StringTable;
use crate::framing::faults::NAMESPACE;
use crate::framing::preamble::{Encoding, Mode};
use crate::framing::records::{self, Bounds, Record, RecordKind};
use crate::plan;
use crate::values::{self, TEXT};
use crate::violations::ProtocolError;
use everywire_idl::wsdl::names;
use everywire_model::Interface;
use everywire_model::body::Attachments;
use everywire_model::shape::Struct;
use everywire_model::wire::{Listing, MemberIndex, MessageListing, Part};
use std::sync::Arc;

/// Texts of any length are listed.
const BOUNDS: Bounds = Bounds { via: 64 << 10, content_type: 64 << 10 };

/// Bytes of session words that are remembered; the quotas of whoever talked are not known.
const WORDS: usize = 64 << 10;

/// One direction of a connection.
pub fn explain(bytes: &[u8]) -> Listing {
    let mut listing = Listing::default();
    let mut reading = StreamState::default();
    let (mut offset, mut opened) = (0, 0);
    while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
        if rest.first() == Some(&(RecordKind::Version as u8)) {
            // Another session, with words of its own.
            give(&reading.words, listing.messages.get_mut(opened..).unwrap_or_default());
            opened = listing.messages.len();
        }
        let (mut message, whole) =
            reading.message(rest).unwrap_or_else(|breach| (broken(&breach, rest), true));
        // Parts count from the message, messages from the beginning of the stream.
        message.offset = offset;
        if !whole {
            message.summary.push_str(&format!(", cut off after {} bytes", rest.len()));
            (listing.rest, listing.lacks) = (rest.len(), reading.lacks);
        }
        offset += message.len;
        listing.messages.push(message);
        if !whole {
            break;
        }
    }
    give(&reading.words, listing.messages.get_mut(opened..).unwrap_or_default());
    listing
}

/// Gives the values of a session's messages its words. Later words do no harm to earlier messages, so that all share one table.
fn give(words: &StringTable, messages: &mut [MessageListing]) {
    let mut bodies = messages.iter_mut().filter_map(|message| message.values.as_mut()).peekable();
    if bodies.peek().is_none() {
        return;
    }
    let reading = values::BodyContext { words: Arc::new(words.clone()), ..values::BodyContext::default() };
    let beside = Arc::new(Attachments { wire_state: Some(Arc::new(reading)), ..Attachments::default() });
    bodies.filter(|body| body.dialect != TEXT).for_each(|body| body.beside = Some(Arc::clone(&beside)));
}

/// The operation that a request is for, or the signal that a callback is, by its action.
pub(crate) fn called(explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
    // A fault has the action of its request where a service knows no better.
    if ["fault", "relates to", "status line"].iter().any(|name| explained.part(name).is_some()) {
        return None;
    }
    let action = explained.part("action")?;
    if let Some(index) = plan::index_of(interface, action.as_bytes()) {
        return Some(MemberIndex::Operation(index));
    }
    crate::soap::signal_of(interface, action).map(MemberIndex::Signal)
}

/// Whether the detail of a fault is this exception.
pub(crate) fn is_raised(explained: &MessageListing, exception: &Struct) -> bool {
    let detail = explained.part("exception").and_then(names::QName::parse);
    detail.is_some_and(|detail| detail == names::type_name(&exception.id, &exception.name))
}

/// What one direction has told so far.
struct StreamState {
    /// How its envelopes are encoded; unknown in the direction of the accepting side.
    encoding: Option<Encoding>,
    /// Whether the channel changes to another protocol with the next byte that no record begins with.
    upgrades: bool,
    /// What protects the stream from here on, once an upgrade has begun.
    shield: Option<StreamSecurity>,
    words: StringTable,
    /// How many more bytes the message that was not whole needs, where it tells its length.
    lacks: usize,
}

impl Default for StreamState {
    fn default() -> Self {
        Self {
            encoding: None,
            upgrades: false,
            shield: None,
            words: StringTable::with_quota(WORDS),
            lacks: 0,
        }
    }
}

impl StreamState {
    /// The message at the front, and whether it is whole.
    /// `Err`: nothing can be read from here on.
    fn message(&mut self, bytes: &[u8]) -> Result<(MessageListing, bool), ProtocolError> {
        let first = bytes.first().copied().unwrap_or_default();
        if self.shield.is_none() && self.upgrades && RecordKind::of_number(first).is_none() {
            self.shield = Some(StreamSecurity::of(bytes));
        }
        if let Some(shield) = &mut self.shield {
            return Ok(shield.piece(bytes));
        }
        if http::begins(bytes) {
            return Ok(http::message(bytes, self));
        }
        // HTTPS: what is in it stays hidden.
        if matches!(bytes, [0x14..=0x17, 3, 0..=4, ..]) {
            let shield = self.shield.insert(StreamSecurity::Tls);
            return Ok(shield.piece(bytes));
        }
        let kind = RecordKind::of_number(first).ok_or(ProtocolError::UnknownRecord { octet: first })?;
        match kind {
            RecordKind::Version => self.preamble(bytes),
            RecordKind::SizedEnvelope => self.sized(bytes),
            RecordKind::UnsizedEnvelope => self.chunked(bytes),
            _ => self.record(kind, bytes),
        }
    }

    /// Version, mode, via and encoding together.
    fn preamble(&mut self, bytes: &[u8]) -> Result<(MessageListing, bool), ProtocolError> {
        *self = Self::default();
        let mut message = MessageListing { kind: "Preamble".to_owned(), ..MessageListing::default() };
        let mut notes = Vec::new();
        while let Some(rest) = bytes.get(message.len..).filter(|rest| !rest.is_empty()) {
            let Some((Record { kind, content }, len)) = records::read(rest, &BOUNDS)? else { break };
            let (name, value) = match (kind, content) {
                (RecordKind::Version, [major, minor]) if message.len == 0 => {
                    ("version", format!("{major}.{minor}"))
                }
                (RecordKind::Mode, [octet]) => {
                    let word = Mode::of_number(*octet).map_or("no mode of the specification", Mode::word);
                    notes.push(word.to_owned());
                    ("mode", format!("{octet} ({word})"))
                }
                (RecordKind::Via, via) => {
                    notes.push(lossy(via));
                    ("via", lossy(via))
                }
                (RecordKind::KnownEncoding, [octet]) => {
                    self.encoding = Encoding::of_number(*octet);
                    let word = self.encoding.map_or("no encoding of the specification", Encoding::word);
                    ("known encoding", format!("{octet} ({word})"))
                }
                (RecordKind::ExtensibleEncoding, text) => {
                    self.encoding = Encoding::from_content_type(&lossy(text));
                    ("extensible encoding", lossy(text))
                }
                _ => break,
            };
            message.parts.push(Part { offset: message.len, len, name, value });
            message.len += len;
            if matches!(kind, RecordKind::KnownEncoding | RecordKind::ExtensibleEncoding) {
                message.summary = format!("Preamble {}, {} bytes", notes.join(" "), message.len);
                return Ok((message, true));
            }
        }
        message.summary = format!("Preamble {}", notes.join(" "));
        // Another record in its place is listed for itself.
        let whole = bytes.get(message.len).is_some_and(|octet| *octet > RecordKind::ExtensibleEncoding as u8);
        if !whole {
            message.len = bytes.len();
        }
        Ok((message, whole))
    }

    /// A record that stands for itself.
    fn record(&mut self, kind: RecordKind, bytes: &[u8]) -> Result<(MessageListing, bool), ProtocolError> {
        let mut message = begun(kind);
        let Some((record, len)) = records::read(bytes, &BOUNDS)? else {
            return Ok((MessageListing { parts: Vec::new(), len: bytes.len(), ..message }, false));
        };
        self.upgrades |= matches!(kind, RecordKind::UpgradeRequest | RecordKind::UpgradeResponse);
        if len > 1 {
            let text = match record.content {
                [octet] if matches!(kind, RecordKind::Mode | RecordKind::KnownEncoding) => octet.to_string(),
                text => lossy(text),
            };
            let text = text.strip_prefix(NAMESPACE).unwrap_or(&text);
            message.summary = format!("{} {text}", message.kind);
            message.parts.push(part(1, len - 1, "text", text));
        }
        message.len = len;
        Ok((message, true))
    }

    /// An envelope with its size before it; what has come of it is listed.
    fn sized(&mut self, bytes: &[u8]) -> Result<(MessageListing, bool), ProtocolError> {
        let mut message = begun(RecordKind::SizedEnvelope);
        let Some((size, width)) = records::size(bytes.get(1..).unwrap_or_default())? else {
            message.len = bytes.len();
            return Ok((message, false));
        };
        let (start, len) = (1 + width, 1 + width + size);
        message.parts.push(part(1, width, "size", size.to_string()));
        let payload = bytes.get(start..len.min(bytes.len())).unwrap_or_default();
        let whole = payload.len() == size;
        self.lacks = size - payload.len();
        message.len = start + payload.len();
        let notes = envelope::explain(payload, Some(start), self.encoding, &mut self.words, &mut message);
        message.summary = format!("{} {notes}, {len} bytes", message.kind);
        Ok((message, whole))
    }

    /// An envelope in chunks, which are joined to be read.
    fn chunked(&mut self, bytes: &[u8]) -> Result<(MessageListing, bool), ProtocolError> {
        let mut message = begun(RecordKind::UnsizedEnvelope);
        let (mut joined, mut chunks, mut first) = (Vec::new(), 0, 0);
        let whole = loop {
            let rest = bytes.get(message.len..).unwrap_or_default();
            let Some((size, width)) = records::size(rest)? else { break false };
            message.parts.push(chunk_size(message.len, width, size));
            message.len += width;
            if size == 0 {
                break true;
            }
            let chunk = bytes.get(message.len..).unwrap_or_default();
            let chunk = chunk.get(..size).unwrap_or(chunk);
            if chunks == 0 {
                first = message.len;
            }
            chunks += 1;
            joined.extend_from_slice(chunk);
            message.len += chunk.len();
            if chunk.len() < size {
                break false;
            }
        };
        // Where a message stands in several chunks, its parts stand nowhere in particular.
        let at = (chunks == 1).then_some(first);
        let notes = envelope::explain(&joined, at, self.encoding, &mut self.words, &mut message);
        message.summary = format!("{} {notes}, {} bytes in {chunks} chunks", message.kind, joined.len());
        if !whole {
            message.len = bytes.len();
        }
        Ok((message, whole))
    }
}

/// What protects a stream; it is cut where it cuts itself.
enum StreamSecurity {
    /// Records of TLS, by their heads.
    Tls,
    /// The handshake of NegotiateStream (MS-NNS 2.2.1), until this side says that it is done; or until what comes is no record of it,
    /// since who sent the last token goes on without a word where the other side is done.
    Handshake,
    /// Messages of NegotiateStream (MS-NNS 2.2.2).
    Frames,
    Unknown,
}

/// The records of TLS, and those of NegotiateStream's handshake, from 0x14 on.
const TLS: [&str; 4] = ["TLS ChangeCipherSpec", "TLS Alert", "TLS Handshake", "TLS ApplicationData"];
const HANDSHAKE: [&str; 3] = [
    "NegotiateStream HandshakeDone",
    "NegotiateStream HandshakeError",
    "NegotiateStream HandshakeInProgress",
];

/// Octets of a message of NegotiateStream: no implementation sends more.
const FRAME: usize = 64 << 10;

impl StreamSecurity {
    /// By its first bytes.
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0x14..=0x17, 3, ..] => Self::Tls,
            [0x14..=0x16, 1, 0, ..] => Self::Handshake,
            _ => Self::Unknown,
        }
    }

    /// The piece at the front, and whether it is whole.
    fn piece(&mut self, bytes: &[u8]) -> (MessageListing, bool) {
        let whole = bytes.len();
        if matches!((&*self, bytes), (Self::Handshake, [first, ..]) if !(0x14..=0x16).contains(first)) {
            *self = Self::Frames;
        }
        let (what, head, len) = match (&*self, bytes) {
            (Self::Tls, [kind @ 0x14..=0x17, 3, _, high, low, ..]) => {
                let what = TLS.get(usize::from(kind - 0x14)).copied().unwrap_or("TLS");
                (what, 5, 5 + usize::from(u16::from_be_bytes([*high, *low])))
            }
            (Self::Handshake, [id @ 0x14..=0x16, 1, 0, high, low, ..]) => {
                if *id == 0x14 {
                    *self = Self::Frames;
                }
                let what = HANDSHAKE.get(usize::from(id - 0x14)).copied().unwrap_or("NegotiateStream");
                (what, 5, 5 + usize::from(u16::from_be_bytes([*high, *low])))
            }
            (Self::Frames, [a, b, c, d, ..]) => match usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])) {
                Ok(size) if size <= FRAME => ("NegotiateStream data", 4, 4 + size),
                _ => ("NegotiateStream", 0, whole),
            },
            (Self::Tls, _) => ("TLS", 0, whole),
            (Self::Handshake | Self::Frames, _) => ("NegotiateStream", 0, whole),
            (Self::Unknown, _) => ("protected", 0, whole),
        };
        let here = len.min(whole);
        let stream = part(0, here, "protected stream", what);
        let mut message = alone("protected", format!("{what}, {here} bytes"), here, stream);
        if head > 0 {
            let value = format!("{what}, {} bytes follow", len - head);
            let rest = part(head, here.saturating_sub(head), "protected stream", "");
            message.parts = vec![part(0, head, "header", value), rest];
        }
        (message, len <= whole)
    }
}

/// A message of which there is one part to list.
fn alone(kind: &str, summary: String, len: usize, part: Part) -> MessageListing {
    MessageListing { kind: kind.to_owned(), summary, len, parts: vec![part], ..MessageListing::default() }
}

/// What is said of a record by its type alone.
fn begun(kind: RecordKind) -> MessageListing {
    alone(kind.word(), kind.word().to_owned(), 1, part(0, 1, "record type", kind.word()))
}

fn part(offset: usize, len: usize, name: &'static str, value: impl Into<String>) -> Part {
    Part { offset, len, name, value: value.into() }
}

/// Adds a part: `len` bytes at `offset` of what stands at `at` in the message; without a place, it is all of that.
fn add(message: &mut MessageListing, at: Option<usize>, span: [usize; 2], name: &'static str, value: String) {
    let [offset, len] = span;
    let (offset, len) = at.map_or((0, message.len), |at| (at + offset, len));
    message.parts.push(part(offset, len, name, value));
}

/// The size of a chunk, as it stands before it; the last one is 0.
fn chunk_size(offset: usize, len: usize, size: usize) -> Part {
    let value = if size == 0 { "end of chunks".to_owned() } else { format!("chunk of {size} bytes") };
    part(offset, len, "size", value)
}

/// The rest of the stream as one message, with what is wrong.
fn broken(breach: &ProtocolError, bytes: &[u8]) -> MessageListing {
    let wrong = part(0, bytes.len().min(1), "violation", breach.to_string());
    alone(breach.name(), breach.to_string(), bytes.len(), wrong)
}

/// Text of a peer, safe to show.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).escape_debug().to_string()
}

/// Characters that are shown of one part.
const SHOWN: usize = 4096;

/// A text as long as it is shown, and how long it is.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... ({} bytes)", text.get(..end).unwrap_or_default(), text.len()),
        None => text.to_owned(),
    }
}
