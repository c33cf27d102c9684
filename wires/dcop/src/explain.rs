//! Annotated listings for `trace`: every field of every message, with its place.
//!
//! The input is one direction of a connection, from a capture, so it may begin, end or break anywhere. Each
//! message begins with its major opcode: 0 for ICE itself, anything else for DCOP. What is cut off or broken
//! is said at the place where reading ended; what came before is listed all the same. After a header that is
//! none nothing more is listed, since the next message cannot be found.
//!
//! The byte order of a sender is told by its first message; where that is missing it is guessed (`order`).
//! Cookies are never shown.

use crate::ice::{Class, Core, FRAME_HEADER, HEADER, IceHeader, NATIVE_LITTLE, minor};
use crate::strings::{DecodeError, StringReader};
use crate::values::DataStream;
use bytes::Bytes;
use everywire_model::hex::preview as hex;
use everywire_model::wire::{Listing, ListingFront, MessageListing, Part, Sniff};
use everywire_model::{Body, Budget};

/// Whether these are the first bytes of an ICE connection: a `ByteOrder` message.
pub(crate) fn sniff(first: &[u8]) -> Sniff {
    let fits = |(at, byte): (usize, &u8)| match at {
        0 | 4..=7 => *byte == 0,
        1 => *byte == 1,
        2 => *byte <= 1,
        // Not used, and not always cleared.
        _ => true,
    };
    if !first.iter().enumerate().take(HEADER).all(fits) {
        return Sniff::No;
    }
    if first.len() >= HEADER { Sniff::Yes } else { Sniff::More }
}

/// Lists the messages of one direction of a connection.
pub(crate) fn explain(bytes: &[u8]) -> Listing {
    let mut little = order(bytes);
    Listing::of(bytes, |rest| {
        let Some(raw) = rest.first_chunk::<HEADER>() else { return ListingFront::Incomplete };
        let len = match raw {
            [0, 1, order, ..] => {
                little = *order == 0;
                Ok(HEADER)
            }
            [0, ..] => {
                IceHeader::read(raw, little).map(|header| header.len).map_err(|wrong| wrong.to_string())
            }
            [_, kind, _, _, length @ ..] => match *kind {
                minor::SEND..=minor::FIND => {
                    Ok(FRAME_HEADER.saturating_add(number(*length, little) as usize))
                }
                other => Err(format!("no DCOP message has minor opcode {other}")),
            },
        };
        match len {
            Ok(len) => ListingFront::Message(len, message(rest.get(..len).unwrap_or(rest), little)),
            Err(value) => ListingFront::Violation("violation", HEADER, value),
        }
    })
}

/// The byte order of a stream whose beginning may be missing: that in which its first length is the smaller one.
fn order(bytes: &[u8]) -> bool {
    match bytes.first_chunk::<HEADER>() {
        Some([major, _, _, _, length @ ..]) if *major != 0 => number(*length, true) <= number(*length, false),
        _ => NATIVE_LITTLE,
    }
}

/// A number in the sender's byte order.
fn number(raw: [u8; 4], little: bool) -> u32 {
    if little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) }
}

/// `bytes` may be shorter than the header says.
fn message(bytes: &[u8], little: bool) -> MessageListing {
    if bytes.first() == Some(&0) { ice(bytes, little) } else { dcop(bytes, little) }
}

/// What a message of the ICE core protocol says in its one part behind the header: the name of that, and the value.
fn said(core: &Core<'_>) -> (&'static str, String) {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let joined = |list: &[&[u8]]| list.iter().map(|one| text(one)).collect::<Vec<_>>().join(", ");
    let versions = |list: &[(u16, u16)]| {
        list.iter().map(|(major, minor)| format!("{major}.{minor}")).collect::<Vec<_>>().join(", ")
    };
    match core {
        Core::Error { class, offending, severity, sequence, values } => {
            let about = format!("about minor opcode {offending}, severity {severity}, message {sequence}");
            ("error", format!("{} {about}: {}", Class::word(*class), text(values)))
        }
        Core::ByteOrder { little } => {
            let first = if *little { "least" } else { "most" };
            ("byte order", format!("{first} significant byte first"))
        }
        Core::ConnectionSetup { vendor, release, methods, versions: known, .. } => {
            let [vendor, release] = [vendor, release].map(|name| text(name));
            let (known, methods) = (versions(known), joined(methods));
            ("offer", format!("ICE {known} of {vendor} {release}, methods {methods}"))
        }
        Core::AuthRequired { index, data } => {
            ("method", format!("number {index}, {} bytes of data", data.len()))
        }
        Core::AuthReply { data } | Core::AuthNextPhase { data } => {
            ("secret", format!("{} bytes, not shown", data.len()))
        }
        Core::ConnectionReply { version, vendor, release } => {
            ("reply", format!("version number {version} of {} {}", text(vendor), text(release)))
        }
        Core::ProtocolSetup { opcode, protocol, vendor, release, methods, versions: known, .. } => {
            let [protocol, vendor, release] = [protocol, vendor, release].map(|name| text(name));
            let (known, methods) = (versions(known), joined(methods));
            let offered = format!("{protocol} {known} of {vendor} {release}");
            ("protocol", format!("{offered}, opcode {opcode}, methods {methods}"))
        }
        Core::ProtocolReply { version, opcode, vendor, release } => {
            let [vendor, release] = [vendor, release].map(|name| text(name));
            ("protocol", format!("version number {version} of {vendor} {release}, opcode {opcode}"))
        }
        Core::Ping | Core::PingReply | Core::WantToClose | Core::NoClose => ("nothing", String::new()),
    }
}

/// A message of the ICE core protocol.
fn ice(bytes: &[u8], little: bool) -> MessageListing {
    let mut parts = vec![Part { offset: 0, len: 1, name: "major opcode", value: "0 (ICE)".to_owned() }];
    let mut head = |offset, len, name, value| parts.push(Part { offset, len, name, value });
    let (kind, summary) = match Core::read(bytes, little) {
        Ok(core) => {
            let (name, value) = said(&core);
            head(1, 1, "minor opcode", core.word().to_owned());
            if let Core::ByteOrder { .. } = core {
                head(2, 1, name, value.clone());
            } else if let Some(length) = bytes.get(4..).and_then(<[u8]>::first_chunk) {
                head(4, 4, "length", format!("{} units of 8 bytes", number(*length, little)));
                if !value.is_empty() {
                    head(HEADER, bytes.len().saturating_sub(HEADER), name, value.clone());
                }
            }
            (core.word().to_owned(), format!("ICE {} {value}", core.word()))
        }
        Err(wrong) => {
            head(1, bytes.len().saturating_sub(1), "ends early", wrong.to_string());
            ("ICE".to_owned(), format!("ICE message, {wrong}"))
        }
    };
    let summary = format!("{}, {} bytes", summary.trim_end(), bytes.len());
    MessageListing { summary, kind, len: bytes.len(), parts, ..MessageListing::default() }
}

/// A message of DCOP: header, names, data.
fn dcop(bytes: &[u8], little: bool) -> MessageListing {
    let mut parts = Vec::new();
    let kind = bytes.get(1).copied().unwrap_or_default();
    let word = minor::word(kind);
    let mut head = |offset, len, name, value| parts.push(Part { offset, len, name, value });
    head(0, 1, "major opcode", bytes.first().copied().unwrap_or_default().to_string());
    head(1, 1, "minor opcode", word.to_owned());
    let word_at = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|raw| number(*raw, little));
    if let Some(length) = word_at(4) {
        head(4, 4, "length", format!("{length}{}", if little { "" } else { ", big-endian" }));
    }
    let mut summary = word.to_owned();
    if let Some(key) = word_at(8) {
        head(8, 4, "key", key.to_string());
        summary = format!("{word} {key}");
    }
    let payload = bytes.get(FRAME_HEADER..).unwrap_or_default();
    let mut body = None;
    if !payload.is_empty() {
        let mut walk = StringReader::new(payload);
        let mut notes = Vec::new();
        match fields(kind, &mut walk, &mut parts, &mut notes) {
            Ok(found) => body = found,
            Err(bad) => {
                let at = FRAME_HEADER + bad.at.min(payload.len());
                let len = bytes.len() - at;
                parts.push(Part { offset: at, len, name: "ends early", value: bad.what.to_owned() });
            }
        }
        summary = format!("{summary} {}", notes.join(" "));
    }
    summary.push_str(&format!(", {} bytes", bytes.len()));
    let (kind, len) = (word.to_owned(), bytes.len());
    MessageListing { summary, kind, len, parts, body, ..MessageListing::default() }
}

/// The payload of a message; returns where its data are, if it has some: offset in the message, and length.
/// Offsets in errors count from the beginning of the payload.
fn fields(
    kind: u8,
    walk: &mut StringReader<'_>,
    parts: &mut Vec<Part>,
    notes: &mut Vec<String>,
) -> Result<Option<(usize, usize)>, DecodeError> {
    let mut note = |from: usize, len: usize, name: &'static str, value: String| {
        parts.push(Part { offset: FRAME_HEADER + from, len, name, value });
    };
    let mut name = |walk: &mut StringReader<'_>, name: &'static str| -> Result<String, DecodeError> {
        let from = walk.pos;
        let value = text(walk)?;
        note(from, walk.pos - from, name, format!("`{value}`"));
        Ok(value)
    };
    let (from, to) = (name(walk, "from")?, name(walk, "to")?);
    match kind {
        minor::SEND | minor::CALL | minor::FIND => {
            let (object, function) = (name(walk, "object")?, name(walk, "function")?);
            notes.push(format!("{from} -> {to}/{object} {function}"));
        }
        minor::REPLY | minor::REPLY_FAILED => notes.push(format!("{from} -> {to}")),
        _ => {
            let at = walk.pos;
            let number = walk.u32()?;
            notes.push(format!("{from} -> {to} transaction {number}"));
            note(at, 4, "transaction", number.to_string());
        }
    }
    if matches!(kind, minor::REPLY | minor::REPLY_DELAYED) {
        let from = walk.pos;
        let value = text(walk)?;
        notes.push(format!("{value}:"));
        note(from, walk.pos - from, "type", value);
    }
    if matches!(kind, minor::REPLY_FAILED | minor::REPLY_WAIT) {
        return Ok(None);
    }
    let at = walk.pos;
    let data = walk.data()?;
    note(at, 4, "data length", data.len().to_string());
    let raw = walk.bytes.get(data.clone()).unwrap_or_default();
    if raw.is_empty() {
        return Ok(None);
    }
    note(data.start, raw.len(), "data", hex(raw));
    Ok(Some((FRAME_HEADER + data.start, raw.len())))
}

/// A name, printable.
fn text(walk: &mut StringReader<'_>) -> Result<String, DecodeError> {
    let range = walk.name()?;
    Ok(walk.bytes.get(range).unwrap_or_default().escape_ascii().to_string())
}

/// The values of a message: the function says their types, or the type of a reply. Nothing for a message
/// without data.
pub(crate) fn body(message: &[u8], explained: &MessageListing) -> Option<Body> {
    let (at, len) = explained.body?;
    let types = explained.part("type").or_else(|| explained.part("function"))?.trim_matches('`');
    let bytes = Bytes::copy_from_slice(message.get(at..at.checked_add(len)?)?);
    Some(DataStream::body(bytes, types.as_bytes().into(), 0, Budget::default()))
}
