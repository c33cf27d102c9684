//! Annotated listings of one direction of a connection, whole or cut off, valid or broken.
//!
//! The input is a capture, so it may begin in the greeting or in the middle. Each piece at the front is
//! either a line of the greeting or a message; the first octet and the second tell them apart. What is
//! neither ends the listing, since the next piece cannot be found; what is not whole yet is counted as the
//! rest.

use crate::basics::{DecodeError, Get, ReadText};
use crate::frame::{self, HEADER, Header, field};
use crate::signature;
use crate::values::Values;
use crate::walk;
use bytes::Bytes;
use everywire_auth::sasl::MAX_LINE;
use everywire_model::Body;
use everywire_model::hex::preview as hex;
use everywire_model::wire::{Greeting, Listing, MessageListing, Part, Sniff};

/// Commands that a line of the greeting begins with.
const COMMANDS: &[&str] =
    &["AUTH", "CANCEL", "BEGIN", "DATA", "ERROR", "NEGOTIATE_UNIX_FD", "REJECTED", "OK", "AGREE_UNIX_FD"];

/// Whether a connection that begins so speaks this wire: with the greeting (a NUL, then AUTH), or in the
/// middle, with a message. `More` says that the octets fit so far.
pub(crate) fn sniff(first: &[u8]) -> Sniff {
    match first {
        [] => Sniff::More,
        [0, ..] => Greeting::begins(first, b"\0AUTH"),
        [b'l' | b'B', kind, _, version, ..] => {
            if (1..=4).contains(kind) && *version == 1 {
                Sniff::Yes
            } else {
                Sniff::No
            }
        }
        [b'l' | b'B'] | [b'l' | b'B', 1..=4] | [b'l' | b'B', 1..=4, _] => Sniff::More,
        _ => Sniff::No,
    }
}

/// Whether these octets begin with a header of a message.
pub(crate) fn is_message(bytes: &[u8]) -> bool {
    bytes.first_chunk::<HEADER>().is_some_and(|raw| matches!(raw, [b'l' | b'B', 1..=4, _, 1, ..]))
}

/// Lists what there is.
pub(crate) fn explain(bytes: &[u8]) -> Listing {
    let mut listing = Listing::default();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let next = match rest {
            // The line `BEGIN` begins so too; a type of message is a small number.
            [b'l' | b'B', ..] if !rest.get(1).is_some_and(u8::is_ascii_alphabetic) => message(rest, at),
            _ => line(rest, at),
        };
        let Some(next) = next else {
            listing.lacks = lacks(rest);
            break;
        };
        at += next.len.max(1);
        let broken = next.kind == "broken";
        listing.messages.push(next);
        if broken {
            break;
        }
    }
    listing.rest = bytes.len().saturating_sub(at);
    listing
}

/// A line of the greeting, and the NUL before the first one. Nothing, if its end is still missing.
fn line(rest: &[u8], offset: usize) -> Option<MessageListing> {
    let nul = usize::from(rest.first() == Some(&0));
    let text = rest.get(nul..).unwrap_or_default();
    let end = text.iter().take(MAX_LINE).position(|octet| *octet == b'\n');
    let begins = |command: &&&str| Greeting::begins(text, command.as_bytes()) != Sniff::No;
    let command = COMMANDS.iter().find(begins);
    let (Some(command), Some(end)) = (command, end) else {
        // A line that may still become one, or nothing of this wire.
        return if command.is_some() && text.len() < MAX_LINE { None } else { Some(broken(rest, offset)) };
    };
    let said = text.get(..end).unwrap_or_default().trim_ascii_end();
    let arguments = said.get(command.len()..).unwrap_or_default().trim_ascii();
    let mut parts = Vec::new();
    if nul == 1 {
        parts.push(Part { offset: 0, len: 1, name: "credentials byte", value: "0".into() });
    }
    parts.push(Part { offset: nul, len: command.len(), name: "command", value: (*command).to_owned() });
    if !arguments.is_empty() {
        let value = arguments.escape_ascii().to_string();
        parts.push(Part { offset: nul + command.len() + 1, len: arguments.len(), name: "arguments", value });
    }
    let begun = nul + said.len();
    parts.push(Part { offset: begun, len: nul + end + 1 - begun, name: "end of line", value: String::new() });
    Some(MessageListing {
        summary: said.escape_ascii().to_string(),
        kind: (*command).to_owned(),
        offset,
        len: nul + end + 1,
        parts,
        ..MessageListing::default()
    })
}

/// The last entry of a listing: everything that is left, which is nothing of this wire.
fn broken(rest: &[u8], offset: usize) -> MessageListing {
    MessageListing {
        summary: format!("neither a message nor a line of the greeting: {}", hex(rest)),
        kind: "broken".into(),
        offset,
        len: rest.len(),
        ..MessageListing::default()
    }
}

/// How many bytes the message at the end needs more, where its header tells.
fn lacks(rest: &[u8]) -> usize {
    let header = rest.first_chunk::<HEADER>().and_then(|raw| Header::read(raw).ok());
    let len = header.and_then(|header| usize::try_from(header.len()).ok());
    len.unwrap_or_default().saturating_sub(rest.len())
}

/// A message; nothing if it is not whole.
fn message(rest: &[u8], offset: usize) -> Option<MessageListing> {
    let raw = rest.first_chunk::<HEADER>()?;
    let header = match Header::read(raw) {
        Ok(header) => header,
        Err(wrong) => return Some(MessageListing { summary: wrong.to_string(), ..broken(rest, offset) }),
    };
    let len = usize::try_from(header.len()).ok()?;
    let whole = rest.get(..len)?;
    let word = frame::word(header.kind);
    let mut view = View { parts: Vec::new(), notes: Vec::new() };
    view.fixed(&header);
    let end = HEADER + header.fields as usize;
    let mut get = Get { bytes: whole.get(..end)?, pos: HEADER, base: 0, little: header.little };
    if let Err(bad) = view.fields(&mut get) {
        view.note(get.pos, end.saturating_sub(get.pos), "broken", format!("{} at byte {}", bad.what, bad.at));
        view.notes.push("broken header".into());
    }
    let mut body = None;
    if header.body > 0 {
        let values = whole.get(header.body_at()..).unwrap_or_default();
        view.note(header.body_at(), values.len(), "body", hex(values));
        body = Some((header.body_at(), values.len()));
    }
    if header.flags & frame::NO_REPLY_EXPECTED != 0 && header.kind == frame::METHOD_CALL {
        view.notes.push("no reply expected".into());
    }
    let order = if header.little { "" } else { ", big-endian" };
    let summary = format!("{word} #{} {} ({len} bytes{order})", header.serial, view.notes.join(" "));
    Some(MessageListing {
        summary,
        kind: word.to_owned(),
        offset,
        len,
        parts: view.parts,
        body,
        values: None,
    })
}

/// The parts of one message, and what to say of it in one line.
struct View {
    parts: Vec<Part>,
    notes: Vec<String>,
}

impl View {
    /// Notes a part of the message.
    fn note(&mut self, offset: usize, len: usize, name: &'static str, value: String) {
        self.parts.push(Part { offset, len, name, value });
    }

    /// The sixteen octets before the fields.
    fn fixed(&mut self, header: &Header) {
        let order = if header.little { "little-endian" } else { "big-endian" };
        self.note(0, 1, "byte order", order.into());
        self.note(1, 1, "type", frame::word(header.kind).into());
        let mut flags = Vec::new();
        for (flag, word) in [
            (frame::NO_REPLY_EXPECTED, "NO_REPLY_EXPECTED"),
            (frame::NO_AUTO_START, "NO_AUTO_START"),
            (frame::ALLOW_INTERACTIVE_AUTHORIZATION, "ALLOW_INTERACTIVE_AUTHORIZATION"),
        ] {
            if header.flags & flag != 0 {
                flags.push(word);
            }
        }
        self.note(2, 1, "flags", if flags.is_empty() { "none".into() } else { flags.join(" ") });
        self.note(3, 1, "protocol version", "1".into());
        self.note(4, 4, "body length", header.body.to_string());
        self.note(8, 4, "serial", header.serial.to_string());
        self.note(12, 4, "length of the header fields", header.fields.to_string());
    }

    /// The header fields, whatever their codes; stops at the first that does not decode.
    fn fields(&mut self, get: &mut Get<'_>) -> Result<(), DecodeError> {
        while get.left() > 0 {
            get.align(8)?;
            let from = get.pos;
            let code = get.u8()?;
            let kind = get.signature()?;
            signature::check_one(kind).map_err(|what| get.bad(what))?;
            let value = match kind {
                b"s" | b"o" => get.string()?.escape_ascii().to_string(),
                b"g" => get.signature()?.escape_ascii().to_string(),
                b"u" => get.u32()?.to_string(),
                b"ay" => {
                    let len = get.array()?;
                    hex(get.take(len)?)
                }
                _ => {
                    walk::skip(get, kind)?;
                    format!("a value of the type `{}`", kind.escape_ascii())
                }
            };
            match code {
                field::SIGNATURE => self.notes.push(format!("({value})")),
                field::REPLY_SERIAL => self.notes.push(format!("to #{value}")),
                field::SENDER => self.notes.push(format!("from {value}")),
                field::DESTINATION => self.notes.push(format!("for {value}")),
                field::UNIX_FDS => self.notes.push(format!("{value} handles")),
                code if code > field::UNIX_FDS => {}
                _ => self.notes.push(value.clone()),
            }
            // Those that the specification has no meaning for are headers of whoever sends them.
            let (name, value) = match code {
                code if code > field::UNIX_FDS => ("header", format!("{code} = {value}")),
                code => (field::word(code), value),
            };
            self.note(from, get.pos - from, name, value);
        }
        Ok(())
    }
}

/// The values of a message that was listed; their types stand in its header. Nothing for a message without
/// values. Handles do not come with a capture.
pub(crate) fn body(message: &[u8], explained: &MessageListing) -> Option<Body> {
    let (at, len) = explained.body?;
    let little = message.first() == Some(&b'l');
    let signature = explained.part(field::word(field::SIGNATURE))?;
    let bytes = Bytes::copy_from_slice(message.get(at..at.checked_add(len)?)?);
    Some(Values::body(bytes, at, little, signature.as_bytes().into(), Vec::new()))
}
