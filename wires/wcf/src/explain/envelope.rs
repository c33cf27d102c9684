//! One envelope, binary or text, in parts.
//!
//! `explain` lists what an envelope says in the order in which it stands there: new words of the session,
//! headers one by one, the body. It also keeps the values, so that somebody with the contract can read
//! them, and says what a fault tells.
//!
//! State (`Parts`): the document and its form, which `steps` goes through; the message that parts are added to, where the
//! document stands in it (nowhere in particular, if it came in chunks or compressed), and what kind of message it
//! turned out to be: a request has an identifier, a reply relates to one.
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

use super::{add, shown};
use crate::dictionary::{StringTable, split};
use crate::framing::Encoding;
use crate::nbfx::{Reader, Record, xml};
use crate::soap::Contents;
use crate::text;
use crate::values::{BINARY, Form, ReaderQuotas, TEXT, bare};
use bytes::Bytes;
use everywire_model::wire::MessageListing;
use everywire_model::{Body, Budget, Visit};
use std::ops::Range;

/// Adds the parts of an envelope whose bytes stand at `at` in the message (`None`: not in one piece), and returns what to say of
/// it in one line. `kind` of the message becomes what it is.
pub(super) fn explain(
    payload: &[u8],
    // Offset of the envelope in the message.
    at: Option<usize>,
    encoding: Option<Encoding>,
    words: &mut StringTable,
    message: &mut MessageListing,
) -> String {
    let (form, document) = match encoding.unwrap_or_else(|| guess(payload)) {
        Encoding::BinarySession => (Form::Binary, table(payload, at, words, message)),
        Encoding::Binary => (Form::Binary, payload),
        _ => (Form::Text, payload),
    };
    let at = at.map(|at| at + payload.len() - document.len());
    let (action, kind) = (String::new(), "message");
    let mut listing = Parts { form, document, words, at, message, action, kind };
    listing.walk();
    listing.values();
    listing.kind.clone_into(&mut listing.message.kind);
    listing.action
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

/// The table of new words before a document; returns the document.
fn table<'a>(
    payload: &'a [u8],
    at: Option<usize>,
    words: &mut StringTable,
    message: &mut MessageListing,
) -> &'a [u8] {
    let (table, document) = match split(payload) {
        Ok(parts) => parts,
        Err(failure) => {
            let value = format!("cut off or broken: {failure}");
            add(message, at, [0, payload.len()], "session words", value);
            return payload.get(payload.len()..).unwrap_or_default();
        }
    };
    let known = words.len();
    let learnt = words.learn(table);
    let mut offset = payload.len() - document.len() - table.len();
    for index in known..words.len() {
        let id = u32::try_from(2 * index + 1).unwrap_or(u32::MAX);
        let word = words.word(id).unwrap_or_default();
        // Words longer than 127 bytes have a size of two; longer ones do not fit into a session.
        let len = word.len() + if word.len() < 0x80 { 1 } else { 2 };
        add(message, at, [offset, len], "session word", format!("{id} = {word:?}"));
        offset += len;
    }
    if let Err(failure) = learnt {
        add(message, at, [offset, 0], "session words", format!("broken: {failure}"));
    }
    document
}

struct Parts<'m> {
    form: Form,
    document: &'m [u8],
    words: &'m StringTable,
    /// Where the document stands in the message.
    at: Option<usize>,
    message: &'m mut MessageListing,
    action: String,
    /// What it is, by its identifiers.
    kind: &'static str,
}

/// What was met on the way through a document.
struct PathStep {
    /// The name of an element that starts.
    name: Option<String>,
    is_attribute: bool,
    /// How many elements are open then, and where the next step begins.
    depth: usize,
    position: usize,
}

/// Goes through a document of either form.
fn steps<'d>(
    form: Form,
    document: &'d [u8],
    words: &'d StringTable,
) -> Box<dyn FnMut() -> Visit<Option<PathStep>> + 'd> {
    if form == Form::Text {
        let mut reader = text::Reader::new(document, &ReaderQuotas::default());
        return Box::new(move || {
            let Some(event) = reader.next()? else { return Ok(None) };
            let name = match event {
                text::Event::Start(tag) => Some(tag.local.to_owned()),
                _ => None,
            };
            let (depth, position) = (reader.depth(), reader.position());
            Ok(Some(PathStep { name, is_attribute: false, depth, position }))
        });
    }
    let mut reader = Reader::new(document);
    Box::new(move || {
        let Some(record) = reader.read()? else { return Ok(None) };
        let name = match record {
            Record::Element(_, name) => Some(name.spelled(|id| words.word(id))),
            _ => None,
        };
        let is_attribute = matches!(record, Record::Attribute(..) | Record::Xmlns(..));
        Ok(Some(PathStep { name, is_attribute, depth: reader.depth(), position: reader.position() }))
    })
}

impl Parts<'_> {
    /// Notes a range of the document.
    fn add(&mut self, range: Range<usize>, name: &'static str, value: String) {
        add(self.message, self.at, [range.start, range.len()], name, value);
    }

    /// Headers and body.
    fn walk(&mut self) {
        let mut next = steps(self.form, self.document, self.words);
        let end = self.document.len();
        // The section (Header, Body), the block of the header that is open, with its start, and where the body begins.
        let (mut section, mut block, mut body) = (String::new(), None::<(String, usize)>, None::<usize>);
        let mut at = 0;
        let failure = loop {
            let step = match next() {
                Ok(Some(step)) => step,
                Ok(None) => break None,
                Err(failure) => break Some(failure),
            };
            match (step.depth, step.name) {
                (2, Some(name)) => {
                    body = (name == "Body").then_some(step.position);
                    section = name;
                }
                (3, Some(name)) if section == "Header" => block = Some((name, at)),
                (2, None) if step.is_attribute => body = body.map(|_| step.position),
                (2, None) => {
                    if let Some((name, start)) = block.take() {
                        self.block(&name, start..step.position);
                    }
                }
                (0 | 1, None) => {
                    if let Some(start) = body.take() {
                        self.body(start..at.max(start));
                    }
                }
                _ => {}
            }
            at = step.position.min(end);
        };
        // Of records that are cut off, those before can be shown; of text the rest is shown as it is.
        if self.form == Form::Binary {
            match (&block, body) {
                (Some((name, start)), _) => self.block(name, *start..end),
                (None, Some(start)) if start < end => self.body(start..end),
                _ => {}
            }
        }
        match failure {
            None if end > 0 => {}
            None => self.add(end..end, "ends early", "the document is cut off".to_owned()),
            Some(failure) if self.form == Form::Binary => {
                self.add(at..end, "ends early", failure.to_string());
            }
            Some(failure) => {
                let rest = self.xml(at..end);
                // There may be a password in it.
                let secret = rest.contains("Security") || block.is_some_and(|(name, _)| name == "Security");
                let rest = if secret { "not shown".to_owned() } else { shown(&rest) };
                self.add(at..end, "ends early", format!("{failure}: {rest}"));
            }
        }
    }

    /// A piece of the document as XML.
    fn xml(&self, range: Range<usize>) -> String {
        let piece = self.document.get(range).unwrap_or_default();
        match self.form {
            Form::Binary => xml::to_xml_partly(piece, |id| self.words.word(id), xml::LONGEST).0,
            Form::Text => String::from_utf8_lossy(piece).into_owned(),
        }
    }

    /// A block of the header.
    fn block(&mut self, name: &str, range: Range<usize>) {
        let xml = self.xml(range.clone());
        let value = inner(&xml);
        let (part, value) = match name {
            "Action" => {
                self.action.clone_from(&value);
                ("action", value)
            }
            "MessageID" => {
                // A reply may have one, too.
                self.kind = if self.kind == "reply" { "reply" } else { "request" };
                ("message id", value)
            }
            "RelatesTo" => {
                self.kind = "reply";
                ("relates to", value)
            }
            "To" => ("to", value),
            "Security" => ("header", format!("Security, {} bytes, not shown", xml.len())),
            _ => ("header", xml),
        };
        self.add(range, part, shown(&value));
    }

    fn body(&mut self, range: Range<usize>) {
        let xml = self.xml(range.clone());
        if let Some(at) = self.at {
            self.message.body = Some((at + range.start, range.len()));
        }
        self.add(range, "body", shown(&xml));
    }

    /// Keeps the values of the document, and says what a fault tells.
    fn values(&mut self) {
        let Some(contents) = Contents::of(self.form, self.document, self.words) else { return };
        let place = contents.base..contents.base;
        if let Some(fault) = &contents.fault {
            self.add(place.clone(), "fault", shown(fault.reason.trim()));
            if let Some(detail) = &fault.detail {
                self.add(place, "exception", detail.clone());
            }
        }
        // A fault without a detail has no values.
        if contents.fault.is_none_or(|fault| fault.detail.is_some()) {
            self.message.values = Some(Body {
                base: contents.base,
                dialect: if self.form == Form::Text { TEXT } else { BINARY },
                ..bare(Bytes::copy_from_slice(self.document), Budget::default())
            });
        }
    }
}

/// The text between the first tag and the last.
fn inner(xml: &str) -> String {
    let text = xml.split_once('>').map_or(xml, |(_, text)| text);
    text.rsplit_once("</").map_or(text, |(text, _)| text).to_owned()
}
