//! Annotated listings for `trace`: every field of every message, with its place.
//!
//! The input is one direction of a connection, from a capture, so it may begin, end or break anywhere.
//! Nothing is an error: what is cut off or broken is said at the place where reading ended, and what came
//! before is listed all the same. The session does not take part; this reads messages by itself, each alone,
//! so fragments are listed as they are and not joined.
//!
//! `FieldReader` holds the place in one message and the parts so far. Each part has its offset from the beginning
//! of its message and its length. Where a message holds values, their range is noted, and `body` makes a
//! `Body` of them for whoever has a contract.

use crate::addressing_trials::Addressing;
use crate::cdr::{DecodeError, Get, ReadCdr};
use crate::codesets::{Dialect, Narrow};
use crate::exceptions::SystemException;
use crate::frame::{HEADER, Header, MessageKind};
use crate::values::Cdr;
use crate::{bidirectional, codesets, components, contexts, ior};
use bytes::Bytes;
use everywire_model::hex::preview as hex;
use everywire_model::wire::{Listing, ListingFront, MessageListing, Part};
use everywire_model::{Body, Budget};

/// What stands before the names in a part that says which character sets a request tells. `body` finds it by
/// that.
const TOLD: &str = "code sets: ";

/// Lists the messages of one direction of a connection. After a header that is none of GIOP's nothing more is
/// listed, since the next message cannot be found.
pub(crate) fn explain(bytes: &[u8]) -> Listing {
    Listing::of(bytes, |rest| {
        let Some(raw) = rest.first_chunk::<HEADER>() else { return ListingFront::Incomplete };
        match Header::read(raw) {
            Ok(header) => {
                let len = usize::try_from(header.len()).unwrap_or(usize::MAX);
                ListingFront::Message(len, message(&header, rest.get(..len).unwrap_or(rest)))
            }
            Err(wrong) => ListingFront::Violation(wrong.name(), HEADER, wrong.to_string()),
        }
    })
}

/// Reads fields and notes each. A failed read ends the listing of its message.
struct FieldReader<'a> {
    get: Get<'a>,
    /// What was read, in order.
    parts: Vec<Part>,
    /// What to say in one line, beside kind and size.
    notes: Vec<String>,
    /// Where the values are: offset in the message, and length.
    body: Option<(usize, usize)>,
}

/// One message; `bytes` may be shorter than its header says.
fn message(header: &Header, bytes: &[u8]) -> MessageListing {
    let get = Get { bytes, pos: HEADER, base: 0, little: header.little };
    let mut reading = FieldReader { get, parts: Vec::new(), notes: Vec::new(), body: None };
    reading.header(header);
    if let Err(bad) = reading.fields(header) {
        reading.note(bad.at, "ends early", bad.what.to_owned());
    }
    let order = if header.little { "" } else { ", big-endian" };
    let mut summary = format!("{} 1.{}", header.kind.word(), header.minor);
    for note in &reading.notes {
        summary.push(' ');
        summary.push_str(note);
    }
    summary.push_str(&format!(", {} bytes{order}", header.len()));
    let (kind, len) = (header.kind.word().to_owned(), bytes.len());
    let FieldReader { parts, body, .. } = reading;
    MessageListing { summary, kind, len, parts, body, ..MessageListing::default() }
}

impl<'a> FieldReader<'a> {
    /// Notes what was read from offset `from` up to where reading stands.
    fn note(&mut self, from: usize, name: &'static str, value: String) {
        // A place between two fields may be behind the end of a message that was cut off.
        let end = self.get.bytes.len();
        let (offset, behind) = (from.min(end), self.get.pos.min(end));
        self.parts.push(Part { offset, len: behind.saturating_sub(offset), name, value });
    }

    /// Reads a field, and notes what it says.
    fn field<T: Copy>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Get<'a>) -> Result<T, DecodeError>,
        show: impl FnOnce(T) -> String,
    ) -> Result<T, DecodeError> {
        let from = self.get.pos;
        let value = read(&mut self.get)?;
        self.note(from, name, show(value));
        Ok(value)
    }

    fn header(&mut self, header: &Header) {
        let order = if header.little { "little-endian" } else { "big-endian" };
        let more = if header.more { ", more fragments follow" } else { "" };
        for (offset, len, name, value) in [
            (0, 4, "magic", "GIOP".to_owned()),
            (4, 2, "version", format!("1.{}", header.minor)),
            (6, 1, "flags", format!("{order}{more}")),
            (7, 1, "message type", header.kind.word().to_owned()),
            (8, 4, "message size", header.size.to_string()),
        ] {
            self.parts.push(Part { offset, len, name, value });
        }
    }

    /// What follows the header, by the kind of message (sections 9.4.2 to 9.4.9).
    fn fields(&mut self, header: &Header) -> Result<(), DecodeError> {
        let modern = header.minor >= 2;
        match header.kind {
            MessageKind::Request => self.request(header),
            MessageKind::Reply => self.reply(modern),
            MessageKind::CancelRequest => self.id().map(drop),
            MessageKind::LocateRequest => {
                self.id()?;
                if modern { self.target() } else { self.key() }
            }
            MessageKind::LocateReply => self.located(),
            MessageKind::CloseConnection | MessageKind::MessageError => Ok(()),
            MessageKind::Fragment => {
                if modern {
                    self.id()?;
                }
                self.rest("fragment data", false);
                Ok(())
            }
        }
    }

    /// In GIOP 1.0 and 1.1 the service contexts come first, in 1.2 last.
    fn request(&mut self, header: &Header) -> Result<(), DecodeError> {
        let modern = header.minor >= 2;
        if !modern {
            self.contexts()?;
        }
        self.id()?;
        let reply = |flags: u8| if flags & 1 == 0 { "no reply wanted" } else { "reply wanted" };
        let flags = self.field("response flags", Get::u8, |flags| format!("{flags} ({})", reply(flags)))?;
        if flags & 1 == 0 {
            self.notes.push("oneway".to_owned());
        }
        if header.minor >= 1 {
            self.field("reserved", |get| get.take(3), |_| String::new())?;
        }
        if modern {
            self.target()?
        } else {
            self.key()?
        }
        let operation = self.string("operation")?;
        self.notes.push(operation);
        if modern {
            self.contexts()?;
            self.get.align(8);
        } else {
            self.field("requesting principal", Get::octets, hex)?;
        }
        self.rest("arguments", true);
        Ok(())
    }

    fn reply(&mut self, modern: bool) -> Result<(), DecodeError> {
        if !modern {
            self.contexts()?;
        }
        self.id()?;
        let from = self.get.pos;
        let status = self.get.u32()?;
        let word = match status {
            0 => "NO_EXCEPTION",
            1 => "USER_EXCEPTION",
            2 => "SYSTEM_EXCEPTION",
            3 => "LOCATION_FORWARD",
            4 => "LOCATION_FORWARD_PERM",
            5 => "NEEDS_ADDRESSING_MODE",
            _ => "no status of the specification",
        };
        self.note(from, "reply status", word.to_owned());
        if status != 0 {
            self.notes.push(word.to_owned());
        }
        if modern {
            self.contexts()?;
            self.get.align(8);
        }
        match status {
            1 => {
                let id = self.string("exception")?;
                self.notes.push(id);
                self.rest("members", true);
                Ok(())
            }
            2 => self.system_exception(),
            3 | 4 => self.reference(),
            5 => self.disposition().map(drop),
            _ => {
                self.rest("results", true);
                Ok(())
            }
        }
    }

    /// The status of a LocateReply and what belongs to it (section 9.4.6).
    fn located(&mut self) -> Result<(), DecodeError> {
        self.id()?;
        let from = self.get.pos;
        let status = self.get.u32()?;
        let word = match status {
            0 => "UNKNOWN_OBJECT",
            1 => "OBJECT_HERE",
            2 => "OBJECT_FORWARD",
            3 => "OBJECT_FORWARD_PERM",
            4 => "LOC_SYSTEM_EXCEPTION",
            5 => "LOC_NEEDS_ADDRESSING_MODE",
            _ => "no status of the specification",
        };
        self.note(from, "locate status", word.to_owned());
        self.notes.push(word.to_owned());
        match status {
            2 | 3 => self.reference(),
            4 => self.system_exception(),
            5 => self.disposition().map(drop),
            _ => Ok(()),
        }
    }

    /// The request id, which also goes to the summary, to tell which reply belongs to which request.
    fn id(&mut self) -> Result<u32, DecodeError> {
        let id = self.field("request id", Get::u32, |id| id.to_string())?;
        self.notes.push(format!("#{id}"));
        Ok(id)
    }

    fn string(&mut self, name: &'static str) -> Result<String, DecodeError> {
        let from = self.get.pos;
        let text = self.get.text()?;
        self.note(from, name, text.clone());
        Ok(text)
    }

    fn key(&mut self) -> Result<(), DecodeError> {
        self.field("object key", Get::octets, readable).map(drop)
    }

    /// How the target of a request is named (section 9.4.2.1).
    fn disposition(&mut self) -> Result<u16, DecodeError> {
        let word = |number| {
            Addressing::of_number(number).map_or("no addressing of the specification", Addressing::word)
        };
        self.field("addressing", Get::u16, |number| word(number).to_owned())
    }

    /// The target of a request of GIOP 1.2: a key, a profile, or a reference with the index of one of its
    /// profiles.
    fn target(&mut self) -> Result<(), DecodeError> {
        match self.disposition()? {
            0 => self.key(),
            1 => self.profile(),
            2 => {
                self.field("selected profile", Get::u32, |index| index.to_string())?;
                self.reference()
            }
            _ => Err(self.get.bad("the target cannot be read")),
        }
    }

    fn reference(&mut self) -> Result<(), DecodeError> {
        let id = self.string("type id")?;
        if !id.is_empty() {
            self.notes.push(id);
        }
        let count = self.field("profiles", Get::parts, |count| count.to_string())?;
        (0..count).try_for_each(|_| self.profile())
    }

    /// Lists a profile in one line; one that is none of IIOP's, or that does not decode, by its size or its
    /// error.
    fn profile(&mut self) -> Result<(), DecodeError> {
        let from = self.get.pos;
        let (tag, data) = (self.get.u32()?, self.get.octets()?);
        if tag != ior::TAG_INTERNET_IOP {
            self.note(from, "profile", format!("tag {tag:#x}, {} bytes", data.len()));
            return Ok(());
        }
        let value = match ior::get_profile(data) {
            Ok(None) => "IIOP of another major version".to_owned(),
            Ok(Some(profile)) => {
                let ends: Vec<_> = profile.endpoints.iter().map(ToString::to_string).collect();
                let held: Vec<_> = profile.components.iter().map(|(tag, _)| components::name(*tag)).collect();
                let (major, minor) = profile.version;
                let key = readable(&profile.key);
                format!("IIOP {major}.{minor} at {}, key {key}, with {}", ends.join(" "), held.join(", "))
            }
            Err(bad) => format!("IIOP, broken: {}", bad.what),
        };
        self.note(from, "profile", value);
        Ok(())
    }

    fn contexts(&mut self) -> Result<(), DecodeError> {
        let count = self.field("service contexts", Get::count, |count| count.to_string())?;
        if count > self.get.left() / 8 {
            return Err(self.get.bad("a count of service contexts exceeds the message"));
        }
        for _ in 0..count {
            let from = self.get.pos;
            let id = self.get.u32()?;
            let data = self.get.octets()?;
            let mut value = format!("{} ({id:#x}), {} bytes", contexts::name(id), data.len());
            if contexts::name(id) == "context" {
                // Nobody but its users knows what it says.
                value = format!("{value}: {}", hex(data));
            }
            if id == contexts::CODE_SETS
                && let Ok((narrow, wide)) = codesets::told(data)
            {
                value = format!("{TOLD}{} and {}", codesets::name(narrow), codesets::name(wide));
            }
            if id == contexts::BI_DIR_IIOP
                && let Ok(points) = bidirectional::told(data)
            {
                value = format!("{}: takes calls for {points}", contexts::name(id));
            }
            self.note(from, "context", value);
        }
        Ok(())
    }

    fn system_exception(&mut self) -> Result<(), DecodeError> {
        let from = self.get.pos;
        let exception = SystemException::get(&mut self.get)?;
        let completed = match exception.completed {
            0 => "completed",
            1 => "not completed",
            _ => "perhaps completed",
        };
        let value = format!("{} minor {:#010x}, {completed}", exception.name(), exception.minor);
        self.notes.push(exception.name().to_owned());
        self.note(from, "system exception", value);
        Ok(())
    }

    /// Notes everything that is left, as hexadecimal digits. `values` says that a contract could read it.
    fn rest(&mut self, name: &'static str, values: bool) {
        let from = self.get.pos.min(self.get.bytes.len());
        let left = self.get.bytes.get(from..).unwrap_or_default();
        if left.is_empty() {
            return;
        }
        let value = hex(left);
        if values {
            self.body = Some((from, left.len()));
        }
        self.get.pos = self.get.bytes.len();
        self.note(from, name, value);
    }
}

/// A key as text if it is readable, else as hexadecimal digits.
fn readable(key: &[u8]) -> String {
    let printable = !key.is_empty() && key.iter().all(|octet| (0x20..0x7f).contains(octet));
    if printable { format!("`{}`", key.escape_ascii()) } else { hex(key) }
}

/// The values of a message that was listed; nothing, if it has none or is the first of several fragments.
/// Text is read in the sets that this side proposes, unless the message itself names others: what the
/// connection agreed on stands in an earlier message.
pub(crate) fn body(message: &[u8], explained: &MessageListing) -> Option<Body> {
    let (at, len) = explained.body?;
    let header = Header::read(message.first_chunk::<HEADER>()?).ok()?;
    let told = format!("{TOLD}{}", codesets::name(codesets::ISO_8859_1));
    let latin = explained.parts.iter().any(|part| part.value.starts_with(&told));
    let narrow = if latin { Narrow::Latin1 } else { Narrow::Utf8 };
    let dialect = Dialect { minor: header.minor, narrow, ..Dialect::OURS };
    let bytes = Bytes::copy_from_slice(message.get(at..at.checked_add(len)?)?);
    (!header.more).then(|| Cdr::body(bytes, at, header.little, dialect, Budget::default()))
}
