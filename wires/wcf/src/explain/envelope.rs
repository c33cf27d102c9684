//! One envelope, binary or text, in parts.
//!
//! `explain` lists what an envelope says in the order in which it stands there: new words of the session,
//! headers one by one, the body. It also keeps the values, so that somebody with the contract can read
//! them, and says what a fault tells.
//!
//! State (`Parts`): the message that parts are added to, where the envelope stands in it (nowhere in
//! particular, if it came in chunks or compressed), and what kind of message it turned out to be: a request
//! has an identifier, a reply relates to one.
//!
//! What holds:
//!
//! * The document may be cut off or broken at any place: the parts before are listed, then a part `ends
//!   early` says why.
//! * Elements are told by local names and by depth (2: Header and Body, 3: what is in them), not by
//!   namespaces: a listing shows what came, right or wrong.
//! * The content of a header `Security` is not shown, since it may be a password, nor what is left of a
//!   broken text with one.
//! * Texts are cut where they are too long (`shown`).

use super::shown;
use crate::dictionary::{Words, split};
use crate::framing::Encoding;
use crate::nbfx::{Reader, Record, Word, xml};
use crate::soap::Contents;
use crate::text;
use crate::values::{BINARY, Form, ReaderQuotas, TEXT, XML};
use bytes::Bytes;
use everywire_model::wire::{Explained, Part};
use everywire_model::{Body, Budget, Context};

/// Adds the parts of an envelope whose bytes stand at `at` in the message (`None`: not in one piece), and returns what to say of
/// it in one line. `kind` of the message becomes what it is.
pub(super) fn explain(
    payload: &[u8],
    // Offset of the envelope in the message.
    at: Option<usize>,
    encoding: Option<Encoding>,
    words: &mut Words,
    message: &mut Explained,
) -> String {
    let mut listing = Parts { at, message, action: String::new(), relates: false, asks: false };
    match encoding.unwrap_or_else(|| guess(payload)) {
        Encoding::BinarySession => {
            let document = table(payload, words, &mut listing);
            binary(document, payload.len() - document.len(), words, &mut listing);
            listing.values(Form::Binary, document, words);
        }
        Encoding::Binary => {
            binary(payload, 0, words, &mut listing);
            listing.values(Form::Binary, payload, words);
        }
        _ => {
            textual(payload, &mut listing);
            listing.values(Form::Text, payload, words);
        }
    }
    let kind = match () {
        () if listing.relates => "reply",
        () if listing.asks => "request",
        () => "message",
    };
    let action = listing.action;
    message.kind = kind.to_owned();
    action
}

/// The encoding by the look of an envelope, for the direction that does not tell it.
fn guess(payload: &[u8]) -> Encoding {
    match payload {
        // A table of words whose size looks like the sign has no word as long as a letter's code.
        [b'<', b'?' | b'A'..=b'Z' | b'_' | b'a'..=b'z', ..] | [0xef, 0xbb, 0xbf, ..] => Encoding::Soap12Utf8,
        // The start of an envelope and the declaration of its first prefix.
        [0x56, 0x02, 0x0b, ..] => Encoding::Binary,
        _ => Encoding::BinarySession,
    }
}

struct Parts<'m> {
    at: Option<usize>,
    message: &'m mut Explained,
    action: String,
    /// It has RelatesTo.
    relates: bool,
    /// It has a MessageID.
    asks: bool,
}

impl Parts<'_> {
    /// Notes `len` bytes at `offset` of the payload.
    fn add(&mut self, offset: usize, len: usize, name: &'static str, value: String) {
        let (offset, len) = match self.at {
            Some(at) => (at + offset, len),
            None => (0, self.message.len),
        };
        self.message.parts.push(Part { offset, len, name, value });
    }

    /// Keeps the values of a document, and says what a fault tells.
    fn values(&mut self, form: Form, document: &[u8], words: &Words) {
        let Some(contents) = Contents::of(form, document, words) else { return };
        if let Some(fault) = &contents.fault {
            self.add(contents.base, 0, "fault", shown(fault.reason.trim()));
            if let Some(detail) = &fault.detail {
                self.add(contents.base, 0, "exception", detail.clone());
            }
        }
        // A fault without a detail has no values.
        if contents.fault.is_none_or(|fault| fault.detail.is_some()) {
            self.message.values = Some(Body {
                bytes: Bytes::copy_from_slice(document),
                base: contents.base,
                little: true,
                dialect: if form == Form::Text { TEXT } else { BINARY },
                budget: Budget::default(),
                codec: &XML,
                context: Context::default(),
                beside: None,
            });
        }
    }
}

/// The table of new words before a document; returns the document.
fn table<'a>(payload: &'a [u8], words: &mut Words, listing: &mut Parts<'_>) -> &'a [u8] {
    let (table, document) = match split(payload) {
        Ok(parts) => parts,
        Err(failure) => {
            listing.add(0, payload.len(), "session words", format!("cut off or broken: {failure}"));
            return payload.get(payload.len()..).unwrap_or_default();
        }
    };
    let known = words.len();
    let learnt = words.learn(table);
    let mut at = payload.len() - document.len() - table.len();
    for index in known..words.len() {
        let id = u32::try_from(2 * index + 1).unwrap_or(u32::MAX);
        let word = words.word(id).unwrap_or_default();
        // Words longer than 127 bytes have a size of two; longer ones do not fit into a session.
        let len = word.len() + if word.len() < 0x80 { 1 } else { 2 };
        listing.add(at, len, "session word", format!("{id} = {word:?}"));
        at += len;
    }
    if let Err(failure) = learnt {
        listing.add(at, 0, "session words", format!("broken: {failure}"));
    }
    document
}

/// Headers and body of a binary document, which stands `before` bytes into the payload.
fn binary(document: &[u8], before: usize, words: &Words, listing: &mut Parts<'_>) {
    let mut reader = Reader::new(document);
    // The section (Header, Body) and the block in it that is open, with its start.
    let (mut section, mut block, mut body) = (String::new(), None::<(String, usize)>, None::<usize>);
    let broken = loop {
        let at = reader.position();
        let record = match reader.read() {
            Ok(Some(record)) => record,
            Ok(None) => break None,
            Err(failure) => break Some((at, failure)),
        };
        let depth = reader.depth();
        if let Record::Element(_, name) = record {
            match depth {
                2 => {
                    section = word(name, words);
                    body = (section == "Body").then(|| reader.position());
                }
                3 if section == "Header" => block = Some((word(name, words), at)),
                3 if body.is_some() && block.is_none() => {
                    block = Some(("Body".to_owned(), at));
                }
                _ => {}
            }
        }
        if depth == 2
            && section == "Header"
            && let Some((name, start)) = block.take()
        {
            header(&name, document, start..reader.position(), before, words, listing);
        }
        if depth <= 1 && body.is_some() {
            let start = block.take().map_or(at, |(_, start)| start);
            contents(document, start..at, before, words, listing);
            body = None;
        }
    };
    if let Some((name, start)) = block.take() {
        if name == "Body" {
            contents(document, start..document.len(), before, words, listing);
        } else {
            header(&name, document, start..document.len(), before, words, listing);
        }
    }
    if let Some((at, failure)) = broken {
        let at = at.min(document.len());
        listing.add(before + at, document.len() - at, "ends early", failure.to_string());
    } else if document.is_empty() || reader.depth() > 0 {
        listing.add(before + document.len(), 0, "ends early", "the document is cut off".to_owned());
    }
}

/// Headers and body of a document of text.
fn textual(document: &[u8], listing: &mut Parts<'_>) {
    let mut reader = text::Reader::new(document, &ReaderQuotas::default());
    // The section (Header, Body) and the block in it that is open, with its start.
    let (mut section, mut block, mut body) = (String::new(), None::<(String, usize)>, None::<usize>);
    loop {
        let at = reader.position();
        match reader.next() {
            Ok(Some(text::Event::Start(tag))) => match reader.depth() {
                2 => {
                    section = tag.local.to_owned();
                    body = (section == "Body").then(|| reader.position());
                }
                3 if section == "Header" => block = Some((tag.local.to_owned(), at)),
                _ => {}
            },
            Ok(Some(text::Event::End)) if reader.depth() == 2 => {
                if let Some((name, start)) = block.take() {
                    let piece = document.get(start..reader.position()).unwrap_or_default();
                    block_of(&name, &String::from_utf8_lossy(piece), start, piece.len(), listing);
                }
            }
            Ok(Some(text::Event::End)) if reader.depth() == 1 => {
                if let Some(start) = body.take() {
                    let piece = document.get(start..at.max(start)).unwrap_or_default();
                    if let Some(at) = listing.at {
                        listing.message.body = Some((at + start, piece.len()));
                    }
                    listing.add(start, piece.len(), "body", shown(&String::from_utf8_lossy(piece)));
                }
            }
            Ok(Some(_)) => {}
            Ok(None) if reader.depth() == 0 && !document.is_empty() => return,
            Ok(None) => {
                return listing.add(document.len(), 0, "ends early", "the document is cut off".to_owned());
            }
            Err(failure) => {
                let at = at.min(document.len());
                let rest = document.get(at..).unwrap_or_default();
                let text = String::from_utf8_lossy(rest);
                // There may be a password in it.
                let secret = text.contains("Security") || block.is_some_and(|(name, _)| name == "Security");
                let text = if secret { "not shown".to_owned() } else { shown(&text) };
                let value = format!("{failure}: {text}");
                return listing.add(at, rest.len(), "ends early", value);
            }
        }
    }
}

/// A header in binary form, as XML.
fn header(
    name: &str,
    document: &[u8],
    range: std::ops::Range<usize>,
    before: usize,
    words: &Words,
    listing: &mut Parts<'_>,
) {
    let piece = document.get(range.clone()).unwrap_or_default();
    let (text, _) = xml::to_xml_partly(piece, |id| words.word(id), xml::LONGEST);
    block_of(name, &text, before + range.start, piece.len(), listing);
}

/// A block of the header, by its XML.
fn block_of(name: &str, xml: &str, offset: usize, len: usize, listing: &mut Parts<'_>) {
    let value = inner(xml);
    let (part, value) = match name {
        "Action" => {
            listing.action.clone_from(&value);
            ("action", value)
        }
        "MessageID" => {
            listing.asks = true;
            ("message id", value)
        }
        "RelatesTo" => {
            listing.relates = true;
            ("relates to", value)
        }
        "To" => ("to", value),
        "Security" => ("header", format!("Security, {} bytes, not shown", xml.len())),
        _ => ("header", xml.to_owned()),
    };
    listing.add(offset, len, part, shown(&value));
}

/// The body in binary form, as XML.
fn contents(
    document: &[u8],
    range: std::ops::Range<usize>,
    before: usize,
    words: &Words,
    listing: &mut Parts<'_>,
) {
    let piece = document.get(range.clone()).unwrap_or_default();
    let (text, _) = xml::to_xml_partly(piece, |id| words.word(id), xml::LONGEST);
    if let Some(at) = listing.at {
        listing.message.body = Some((at + before + range.start, piece.len()));
    }
    listing.add(before + range.start, piece.len(), "body", shown(&text));
}

/// The text between the first tag and the last.
fn inner(xml: &str) -> String {
    let text = xml.split_once('>').map_or(xml, |(_, text)| text);
    text.rsplit_once("</").map_or(text, |(text, _)| text).to_owned()
}

fn word(name: Word<'_>, words: &Words) -> String {
    match name {
        Word::Inline(name) => name.to_owned(),
        Word::Id(id) => words.word(id).map_or_else(|| format!("{{{id}}}"), str::to_owned),
    }
}
