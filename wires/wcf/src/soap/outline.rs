//! Where the parts of an envelope are, for whoever passes it on or asks for its headers: nothing but the head is read.
//!
//! Ranges are offsets in the document. A message that is passed on is put together from them: start tags
//! stay as they came, with all their declarations, so that prefixes inside the body go on meaning what they
//! meant.

use super::cursor::{Cursor, Document, Element};
use super::names::{ADDRESSING, NO_ADDRESSING, SECURITY};
use super::rm;
use super::{Form, Soap};
use crate::limits::MAX_HEADERS;
use crate::violations::Violation;
use everywire_model::visit::Visit;
use std::borrow::Cow;
use std::ops::Range;

/// The parts of an envelope.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    pub(super) soap: Soap,
    /// The start tag of the envelope, without what stands before it.
    pub(super) envelope: Range<usize>,
    pub(super) scope: Scope,
    /// The start tag of the list of headers, and what is in scope there; nothing if the list cannot take another one.
    pub(super) header: Option<(Range<usize>, Scope)>,
    /// In their order, the session's own among them.
    pub(super) blocks: Vec<Block<'a>>,
    /// The header of addressing that says what is asked for, and what it says.
    /// Kept with its bytes, since it may go on as it came.
    pub(super) action: Option<(Range<usize>, Cow<'a, str>)>,
    /// The start tag of the body.
    pub(super) body: Range<usize>,
}

/// Which of the prefixes that are written here mean in a place what they mean here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    /// `s`, of envelopes.
    pub(super) soap: bool,
    /// `a`, of addressing.
    pub(super) addressing: bool,
}

/// A header.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) namespace: Cow<'a, str>,
    pub(super) local: Cow<'a, str>,
    /// From its start tag to the end of its end tag.
    pub(super) range: Range<usize>,
    /// Offset of the first byte after its start tag.
    pub(super) inside: usize,
}

impl Block<'_> {
    /// Whether it speaks of one connection, and is each session's own.
    pub(super) fn is_own(&self, soap: Soap) -> bool {
        is_own(&self.namespace, soap)
    }

    /// Its name among headers.
    pub(super) fn name(&self) -> String {
        format!("{{{}}}{}", self.namespace, self.local)
    }
}

/// Whether headers of a namespace speak of one connection: addressing where sessions have it, security, reliable messaging.
pub(super) fn is_own(namespace: &str, soap: Soap) -> bool {
    match namespace {
        // Where the transport tells where a message goes, addresses in it are its users' matter.
        ADDRESSING => soap == Soap::V12,
        NO_ADDRESSING | SECURITY => true,
        _ => rm::is_own(namespace),
    }
}

impl<'a> Outline<'a> {
    /// Reads a document up to the start of its body.
    ///
    /// # Errors
    /// It is no envelope.
    pub(super) fn read(document: Document<'a>) -> Visit<Self> {
        let Document { form, bytes, .. } = document;
        let mut cursor = Cursor::new(document);
        let root = cursor.root()?;
        let soap = Soap::of_word(&root.namespace).ok_or_else(|| Violation::NoEnvelope.at(root.at))?;
        let name = soap.namespace();
        if !root.is(name, "Envelope") {
            return Err(Violation::NoEnvelope.at(root.at));
        }
        let start = match form {
            Form::Binary => root.at,
            // A declaration of XML may stand before it.
            Form::Text => {
                let before = bytes.get(..root.inside).unwrap_or_default();
                before.iter().rposition(|byte| *byte == b'<').unwrap_or_default()
            }
        };
        let scope = Scope::at(&cursor, soap);
        let (mut header, mut blocks, mut action) = (None, Vec::new(), None);
        let mut element = cursor.child()?;
        if let Some(list) = element.take_if(|element| element.is(name, "Header")) {
            // An empty element in text form has no place for another header; one in binary form has its end
            // as a record.
            let is_empty =
                form == Form::Text && bytes.get(..list.inside).is_some_and(|tag| tag.ends_with(b"/>"));
            header = (!is_empty).then(|| (list.at..list.inside, Scope::at(&cursor, soap)));
            while let Some(block) = cursor.child()? {
                if blocks.len() >= MAX_HEADERS {
                    return Err(Violation::TooManyHeaders.at(block.at));
                }
                // The next hop is asked by the action, so its text is kept.
                let said = if block.is(ADDRESSING, "Action") {
                    Some(cursor.trimmed()?)
                } else {
                    cursor.skip()?;
                    None
                };
                let Element { namespace, local, at, inside, .. } = block;
                let range = at..cursor.position();
                if let Some(said) = said {
                    action = Some((range.clone(), said));
                }
                blocks.push(Block { namespace, local, range, inside });
            }
            element = cursor.child()?;
        }
        let body = cursor.body(element, name)?;
        let (envelope, body) = (start..root.inside, body.at..body.inside);
        Ok(Self { soap, envelope, scope, header, blocks, action, body })
    }
}

impl Scope {
    fn at(cursor: &Cursor<'_>, soap: Soap) -> Self {
        Self { soap: cursor.means("s", soap.namespace()), addressing: cursor.means("a", ADDRESSING) }
    }
}
