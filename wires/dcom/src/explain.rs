//! Annotated listings for `trace`: every field of every PDU, with its place. What is cut off or broken is said at the
//! place where reading ended; what came before is listed all the same.
//!
//! One direction of a connection is all there is to go by. In that of the client, presentation contexts tell which
//! interface a request is for; in that of the server, only what can be recognized by itself is explained.
//!
//! States: offset in the stream, and the interface of each presentation context that a bind in the same
//! direction named.
//!
//! Invariants: nothing is trusted and nothing fails: each reader stops at the first thing that does not fit
//! and notes where. Stubs are explained only in first fragments that are not encrypted, for what follows is
//! not a beginning.

mod stub;

use crate::frame::{self, HEADER, Header, PduKind, TRAILER, Trailer};
use crate::pdu::{NDR, NDR64, Syntax};
use crate::session::values;
use crate::stub::Get;
use crate::violations::Violation;
use crate::{hresult, names};
use bytes::Bytes;
use everywire_model::hex::preview as hex;
use everywire_model::wire::{Listing, ListingFront, MemberIndex, MessageListing, Part};
use everywire_model::{Body, Budget, Interface};
use std::collections::HashMap;
use std::fmt;
use uuid::Uuid;

/// Level of protection that encrypts stubs.
const PRIVACY: u8 = 6;

/// One direction of a connection.
pub fn explain(bytes: &[u8]) -> Listing {
    let mut contexts = HashMap::new();
    Listing::of(bytes, |rest| {
        let Some(raw) = rest.first_chunk::<HEADER>() else { return ListingFront::Incomplete };
        match Header::read(raw) {
            Ok(header) => {
                let len = usize::from(header.length);
                ListingFront::Message(len, pdu(&header, rest.get(..len).unwrap_or(rest), &mut contexts))
            }
            Err(wrong) => ListingFront::Violation("broken", HEADER, wrong.to_string()),
        }
    })
}

/// Reads fields and notes each.
struct FieldReader<'a> {
    bytes: &'a [u8],
    get: Get<'a>,
    parts: Vec<Part>,
    /// What to say in one line, beside kind and size.
    notes: Vec<String>,
    /// Where the values of the stub are: offset and length.
    body: Option<(usize, usize)>,
    /// The interface of each presentation context, learned in this direction.
    contexts: &'a mut HashMap<u16, Uuid>,
}

/// Explains one PDU, of which `bytes` may be the beginning only. Offsets of parts count from its own
/// beginning.
fn pdu(header: &Header, bytes: &[u8], contexts: &mut HashMap<u16, Uuid>) -> MessageListing {
    let whole = bytes.len() == usize::from(header.length);
    let trailer = if whole { header.trailer(bytes).ok().flatten() } else { None };
    let end = trailer.map_or(bytes.len(), |trailer| trailer.contents_end());
    let contents = bytes.get(..end).unwrap_or(bytes);
    let mut get = Get::new(contents, header.little);
    // The header is there: this cannot fail.
    let _ = get.take(HEADER);
    let mut reading =
        FieldReader { bytes: contents, get, parts: Vec::new(), notes: Vec::new(), body: None, contexts };
    reading.header(header);
    if let Err(violation) = reading.contents(header, trailer.as_ref()) {
        let at = reading.get.position().min(end);
        reading.part(at, end - at, "ends early", violation.to_string());
        reading.notes.push("broken".to_owned());
    }
    if let Some(trailer) = trailer {
        reading.trailer(&trailer, bytes);
    }
    let order = if header.little { "" } else { ", big-endian" };
    let mut summary = format!("{} #{}", header.kind.word(), header.call);
    reading.notes.iter().for_each(|note| summary.push_str(&format!(" {note}")));
    summary.push_str(&format!(", {} bytes{order}", header.length));
    let FieldReader { parts, body, .. } = reading;
    let kind = header.kind.word().to_owned();
    MessageListing { summary, kind, len: bytes.len(), parts, body, ..MessageListing::default() }
}

impl<'a> FieldReader<'a> {
    /// Notes a field by its place.
    fn part(&mut self, offset: usize, len: usize, name: &'static str, value: String) {
        self.parts.push(Part { offset, len, name, value });
    }

    /// Reads a field and notes it in these words.
    fn field<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Get<'a>) -> Result<T, Violation>,
        words: impl FnOnce(&T) -> String,
    ) -> Result<T, Violation> {
        let from = self.get.position();
        let value = read(&mut self.get)?;
        self.note(from, name, words(&value));
        Ok(value)
    }

    /// Notes what was read since `from`.
    fn note(&mut self, from: usize, name: &'static str, value: String) {
        let len = self.get.position().saturating_sub(from);
        self.part(from, len, name, value);
    }

    /// The fixed part, which has the same fields in every PDU.
    fn header(&mut self, header: &Header) {
        let order = if header.little { "little-endian" } else { "big-endian" };
        for (offset, len, name, value) in [
            (0, 2, "version", format!("5.{}", header.minor)),
            (2, 1, "PDU type", header.kind.word().to_owned()),
            (3, 1, "flags", flags(header)),
            (4, 4, "data representation", order.to_owned()),
            (8, 2, "fragment length", header.length.to_string()),
            (10, 2, "authentication length", header.auth_length.to_string()),
            (12, 4, "call id", header.call.to_string()),
        ] {
            self.part(offset, len, name, value);
        }
        match (header.has(frame::FIRST), header.has(frame::LAST)) {
            (true, true) => {}
            (true, false) => self.notes.push("first fragment".to_owned()),
            (false, true) => self.notes.push("last fragment".to_owned()),
            (false, false) => self.notes.push("middle fragment".to_owned()),
        }
    }

    /// What follows the header, by kind. `Err`: the contents end inside a field.
    fn contents(&mut self, header: &Header, trailer: Option<&Trailer>) -> Result<(), Violation> {
        let hidden = trailer.is_some_and(|trailer| trailer.level == PRIVACY);
        match header.kind {
            PduKind::Request => self.request(header, hidden),
            PduKind::Response => self.response(header, hidden),
            PduKind::Fault => self.fault(header, hidden),
            PduKind::Bind | PduKind::AlterContext => self.bind(),
            PduKind::BindAck | PduKind::AlterContextResponse => self.bind_ack(),
            PduKind::BindNak => self.bind_nak(),
            PduKind::Auth3 | PduKind::Shutdown | PduKind::CoCancel | PduKind::Orphaned => {
                self.rest("padding");
                Ok(())
            }
        }
    }

    /// A request (C706 12.6.4.9). The operation has a name only if the bind was seen too, since the request
    /// names the interface by the number of its presentation context. `hidden`: the stub is encrypted.
    fn request(&mut self, header: &Header, hidden: bool) -> Result<(), Violation> {
        self.field("allocation hint", Get::u32, u32::to_string)?;
        let interface = self.interface()?;
        let name = |opnum| interface.and_then(|iid| names::operation(iid, opnum));
        let opnum = self.field("operation number", Get::u16, |opnum| named(opnum, name(*opnum)))?;
        let name = name(opnum);
        let name = name.map_or_else(|| format!("operation {opnum}"), str::to_owned);
        self.notes.push(match interface {
            Some(iid) => format!("{}.{name}", interface_name(iid)),
            None => format!("{name} of an unknown interface"),
        });
        if header.has(frame::OBJECT) {
            let object = self.field("object", Get::uuid, Uuid::to_string)?;
            self.notes.push(format!("on {object}"));
        }
        if self.stub_is_plain(hidden, header) {
            stub::arguments(self, interface, opnum, header.has(frame::OBJECT));
        }
        Ok(())
    }

    /// A response (C706 12.6.4.10). Nothing in it says which operation it answers, so only what is recognized
    /// by its form is explained: an ORPCTHAT, and the result of an activation.
    fn response(&mut self, header: &Header, hidden: bool) -> Result<(), Violation> {
        if self.answer_is_plain(hidden, header)? {
            stub::results(self);
            self.hresult(header);
        }
        Ok(())
    }

    /// The failure that the results of ORPC end with (MS-DCOM 3.1.1.5.4: a method returns an HRESULT, which is the
    /// last word of its results). Whether this is ORPC, only its question tells: the listing says what there would be.
    fn hresult(&mut self, header: &Header) {
        let is_orpc = self.parts.iter().any(|part| part.name == "ORPCTHAT");
        let whole = header.has(frame::FIRST) && header.has(frame::LAST);
        let Some((at, len)) = self.body.filter(|_| is_orpc && whole) else { return };
        let values = self.bytes.get(at..at.saturating_add(len)).unwrap_or_default();
        if let Some(status) = last_word(values, header.little).filter(|status| hresult::is_failure(*status)) {
            let known = hresult::name(status).map(|(symbol, meaning)| format!(", {meaning} ({symbol})"));
            let value = format!("{status:#010x}{} (if this is ORPC)", known.unwrap_or_default());
            self.part(at.saturating_add(values.len()).saturating_sub(4), 4, "HRESULT", value);
        }
    }

    /// What results and faults begin with; whether their stub can be explained.
    fn answer_is_plain(&mut self, hidden: bool, header: &Header) -> Result<bool, Violation> {
        self.field("allocation hint", Get::u32, u32::to_string)?;
        self.interface()?;
        self.field("cancel count", |get| Ok((get.u8()?, get.u8()?)), |(count, _)| count.to_string())?;
        Ok(self.stub_is_plain(hidden, header))
    }

    /// Whether the stub can be explained; if not, it is noted as it is.
    fn stub_is_plain(&mut self, hidden: bool, header: &Header) -> bool {
        let plain = !hidden && header.has(frame::FIRST);
        if hidden {
            self.rest("encrypted stub");
        } else if !plain {
            self.body = Some((self.get.position(), self.get.left()));
            self.rest("more of the stub");
        }
        plain
    }

    /// A fault (C706 12.6.4.7): its stub is a status, which is encrypted as results would be.
    fn fault(&mut self, header: &Header, hidden: bool) -> Result<(), Violation> {
        if !self.answer_is_plain(hidden, header)? {
            return Ok(());
        }
        let words = |status: &u32| format!("{status:#010x}, {}", hresult::describe(*status));
        let status = self.field("status", Get::u32, words)?;
        self.notes.push(words(&status));
        if header.has(frame::DID_NOT_EXECUTE) {
            self.notes.push("(did not execute)".to_owned());
        }
        self.rest("reserved");
        Ok(())
    }

    /// Remembers which interface each context stands for, so that requests can be named.
    fn bind(&mut self) -> Result<(), Violation> {
        self.fragments_and_group()?;
        let count = self.field("presentation contexts", count, u8::to_string)?;
        for _ in 0..count {
            let from = self.get.position();
            let context = self.get.u16()?;
            let transfers = self.get.u8()?;
            let (iid, major, minor) = syntax(&mut self.get)?;
            let offered = (0..transfers).map(|_| syntax(&mut self.get).map(syntax_name));
            let offered = offered.collect::<Result<Vec<_>, _>>()?;
            self.contexts.insert(context, iid);
            let name = interface_name(iid);
            let value = format!("{context}: {name} v{major}.{minor} over {}", offered.join(" or "));
            self.note(from, "presentation context", value);
            if !self.notes.contains(&name) {
                self.notes.push(name);
            }
        }
        self.rest("padding");
        Ok(())
    }

    /// A bind_ack or an alter_context_resp (C706 12.6.4.4). Results have no numbers: they come in the order
    /// in which the contexts were asked for. Result 3 is the answer to the negotiation of features (MS-RPCE
    /// 2.2.2.4).
    fn bind_ack(&mut self) -> Result<(), Violation> {
        self.fragments_and_group()?;
        let address = |get: &mut Get<'a>| {
            let len = get.u16()?.into();
            get.take(len)
        };
        let words = |raw: &&[u8]| raw.strip_suffix(&[0]).unwrap_or(raw).escape_ascii().to_string();
        self.field("secondary address", address, words)?;
        self.get.align(4);
        let count = self.field("results", count, u8::to_string)?;
        for _ in 0..count {
            let from = self.get.position();
            let (result, reason) = (self.get.u16()?, self.get.u16()?);
            let syntax = syntax(&mut self.get)?;
            let value = match (result, reason) {
                (0, _) => format!("accepted: {}", syntax_name(syntax)),
                (3, bits) => format!("features {bits:#x} agreed on"),
                (1, reason) => format!("refused by the server, reason {reason}"),
                (2, 1) => "refused: the interface is not known".to_owned(),
                (2, 2) => "refused: no transfer syntax is known".to_owned(),
                (2, 3) => "refused: a local limit".to_owned(),
                (result, reason) => format!("result {result}, reason {reason}"),
            };
            self.notes.push(value.clone());
            self.note(from, "result", value);
        }
        self.rest("padding");
        Ok(())
    }

    /// A bind_nak (C706 12.6.4.5), with the reasons of MS-RPCE 2.2.2.5 beside those of C706.
    fn bind_nak(&mut self) -> Result<(), Violation> {
        let word = |reason: u16| match reason {
            1 => "congestion",
            2 => "a local limit",
            4 => "the version of the protocol",
            8 => "the mechanism of authentication is not known",
            9 => "the checksum",
            _ => "not specified",
        };
        let reason = self.field("reason", Get::u16, |reason| format!("{reason} ({})", word(*reason)))?;
        self.notes.push(word(reason).to_owned());
        self.rest("versions");
        Ok(())
    }

    /// The interface that the number of a presentation context stands for, if that is known.
    fn interface(&mut self) -> Result<Option<Uuid>, Violation> {
        let from = self.get.position();
        let context = self.get.u16()?;
        let interface = self.contexts.get(&context).copied();
        self.note(from, "context id", named(&context, interface.map(interface_name)));
        Ok(interface)
    }

    /// What bind, alter_context and their answers begin with.
    fn fragments_and_group(&mut self) -> Result<(), Violation> {
        let sizes = |(sent, taken): &(u16, u16)| format!("{sent} sent, {taken} received");
        self.field("largest fragments", |get| Ok((get.u16()?, get.u16()?)), sizes)?;
        self.field("association group", Get::u32, |group| format!("{group:#x}"))?;
        Ok(())
    }

    /// The security trailer, and what stands around it; `bytes` is the whole PDU.
    fn trailer(&mut self, trailer: &Trailer, bytes: &[u8]) {
        if trailer.pad > 0 {
            self.part(trailer.contents_end(), trailer.pad.into(), "authentication padding", String::new());
        }
        let service = names::service(trailer.mechanism.into());
        let level = names::level(trailer.level);
        let value = format!("{service}, level {level}, context {}", trailer.context);
        self.part(trailer.at, TRAILER, "security trailer", value);
        let token = bytes.get(trailer.value()..).unwrap_or_default();
        let what = match token {
            [b'N', b'T', b'L', b'M', b'S', b'S', b'P', 0, 1, ..] => "NTLM NEGOTIATE_MESSAGE".to_owned(),
            [b'N', b'T', b'L', b'M', b'S', b'S', b'P', 0, 2, ..] => "NTLM CHALLENGE_MESSAGE".to_owned(),
            [b'N', b'T', b'L', b'M', b'S', b'S', b'P', 0, 3, ..] => "NTLM AUTHENTICATE_MESSAGE".to_owned(),
            _ => hex(token),
        };
        self.part(trailer.value(), token.len(), "authentication value", what);
        self.notes.push(format!("({service} {level})"));
    }

    /// Everything that is left of the contents.
    fn rest(&mut self, name: &'static str) {
        let from = self.get.position().min(self.bytes.len());
        let left: &'a [u8] = self.bytes.get(from..).unwrap_or_default();
        if !left.is_empty() {
            // It is there: this cannot fail.
            let _ = self.get.take(left.len());
            self.part(from, left.len(), name, hex(left));
        }
    }
}

/// A number with its name, if it has one.
fn named(number: &u16, name: Option<impl fmt::Display>) -> String {
    name.map_or_else(|| number.to_string(), |name| format!("{number} ({name})"))
}

/// A count of 8 bits in a word of 32.
fn count(get: &mut Get<'_>) -> Result<u8, Violation> {
    let count = get.u8()?;
    get.align(4);
    Ok(count)
}

/// A syntax; its version is one number, whose high half is the minor version.
fn syntax(get: &mut Get<'_>) -> Result<(Uuid, u16, u16), Violation> {
    let id = get.uuid()?;
    let [major0, major1, minor0, minor1] = get.u32()?.to_le_bytes();
    Ok((id, u16::from_le_bytes([major0, major1]), u16::from_le_bytes([minor0, minor1])))
}

/// The flags by name; one bit has two meanings, by the kind of PDU.
fn flags(header: &Header) -> String {
    let cancel = match header.kind {
        PduKind::Request | PduKind::Response | PduKind::Fault => "pending cancel",
        _ => "header signing",
    };
    let names = [
        (frame::FIRST, "first"),
        (frame::LAST, "last"),
        (frame::PENDING_CANCEL, cancel),
        (frame::MULTIPLEX, "multiplexing"),
        (frame::DID_NOT_EXECUTE, "did not execute"),
        (frame::MAYBE, "maybe"),
        (frame::OBJECT, "object"),
    ];
    let set: Vec<&str> = names.iter().filter(|(flag, _)| header.has(*flag)).map(|(_, name)| *name).collect();
    format!("{:#04x} ({})", header.flags, set.join(", "))
}

/// The name of an interface, or its id.
fn interface_name(iid: Uuid) -> String {
    names::interface(iid).map_or_else(|| iid.to_string(), str::to_owned)
}

/// A transfer syntax in a word.
fn syntax_name((id, major, minor): (Uuid, u16, u16)) -> String {
    if id == NDR.id {
        "NDR".to_owned()
    } else if id == NDR64.id {
        "NDR64".to_owned()
    } else if let Some(bits) = Syntax::new(id, major).asks_features() {
        format!("features {bits:#x}")
    } else {
        format!("{id} v{major}.{minor}")
    }
}

/// The last 32 bits.
fn last_word(values: &[u8], little: bool) -> Option<u32> {
    let word = *values.last_chunk::<4>()?;
    Some(if little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) })
}

/// The values of a whole stub that is not encrypted. Of a failure there are none. `plain`: the call is known to be plain
/// DCE/RPC's, so what looked like ORPCTHIS or ORPCTHAT are the first of its values.
pub(crate) fn body(message: &[u8], explained: &MessageListing, plain: bool) -> Option<Body> {
    let header = Header::read(message.first_chunk::<HEADER>()?).ok()?;
    if !header.has(frame::FIRST) || !header.has(frame::LAST) {
        return None;
    }
    let extensions = explained.parts.iter().find(|part| matches!(part.name, "ORPCTHIS" | "ORPCTHAT"));
    let front = extensions.map_or(0, |part| part.len);
    let base = if plain { 0 } else { front };
    let (at, len) = match (explained.body, extensions) {
        (Some((at, len)), _) if plain => (at.checked_sub(front)?, len.checked_add(front)?),
        // All that there is looked like ORPCTHIS.
        (None, Some(part)) if plain => (part.offset, part.len),
        (values, _) => values?,
    };
    let values = message.get(at..at.checked_add(len)?)?;
    if header.kind == PduKind::Response && base > 0 {
        // Results end with the HRESULT.
        if last_word(values, header.little).is_none_or(hresult::is_failure) {
            return None;
        }
    }
    Some(values::body(Bytes::copy_from_slice(values), base, header.little, Budget::default(), None))
}

/// The operation that a request is for: its interface is that of its presentation context.
pub(crate) fn called(explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
    let (_, named) = explained.part("context id")?.split_once(" (")?;
    let named = named.trim_end_matches(')');
    let opnum = explained.part("operation number")?.split(' ').next()?.parse().ok()?;
    let iid = Uuid::try_parse(named).ok().or_else(|| {
        let iid = crate::iid_of(interface);
        (names::interface(iid) == Some(named)).then_some(iid)
    })?;
    crate::number(interface, iid, opnum).map(MemberIndex::Operation)
}
