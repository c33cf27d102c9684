//! Reading what stands around bodies, in either form, with namespaces resolved. Bodies themselves are the
//! codec's.
//!
//! A `Cursor` reads an envelope from its first byte on, in steps: an element begins, with its attributes;
//! text; an element ends. `child`, `text`, `trimmed`, `qname` and `skip` are made of steps. Whoever got an
//! element from `child` must leave it by one of the others before the next `child`.
//!
//! State: the reader of the form, how many elements are open (`depth`), the namespace declarations in scope
//! (`scope`), and whether the next step is an end that came in the same record as a text (`closing`).
//!
//! Invariants:
//!
//! * Every element has the namespace of its prefix when it is handed out; a prefix that nothing declares is
//!   a violation, but for `xml`.
//! * At most `MAX_PREFIXES` declarations are in scope and `MAX_ATTRIBUTES` attributes on one element; depth
//!   is bounded by the readers, and headers are counted in `head` and `outline`.
//! * A word that the dictionaries do not have is a violation here too, since headers decide what happens
//!   with a message.
//! * Octets and numbers with a fraction read as nothing: they stand only in bodies and headers that are passed over.

use super::ids::MessageId;
use super::{Form, ids};
use crate::dictionary::StringTable;
use crate::limits::{MAX_ATTRIBUTES, MAX_PREFIXES};
use crate::nbfx::xml::lexical;
use crate::nbfx::{Prefix, Reader, Record, Text, Word};
use crate::text;
use crate::values::ReaderQuotas;
use crate::violations::Violation;
use everywire_model::visit::Visit;
use std::borrow::Cow;

/// A document, and what reading it takes.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) form: Form,
    pub(super) bytes: &'a [u8],
    pub(super) words: &'a StringTable,
    pub(super) quotas: &'a ReaderQuotas,
}

impl Document<'_> {
    /// Reads it to its end: whether every element of it ends and nothing follows.
    pub(super) fn check(self) -> Visit<()> {
        let mut cursor = Cursor::new(self);
        while !matches!(cursor.next()?, CursorEvent::End) {}
        Ok(())
    }
}

/// What comes next.
#[derive(Debug)]
pub(super) enum CursorEvent<'a> {
    /// An element begins.
    Open(Element<'a>),
    /// Text.
    Text(Content<'a>),
    /// The innermost element ends.
    Close,
    /// The document ends.
    End,
}

/// The start of an element.
#[derive(Debug)]
pub(super) struct Element<'a> {
    pub(super) namespace: Cow<'a, str>,
    /// Without its prefix.
    pub(super) local: Cow<'a, str>,
    pub(super) attributes: Vec<Attribute<'a>>,
    /// Offset of the first byte of its start tag.
    pub(super) at: usize,
    /// Offset of the first byte after its start tag.
    pub(super) inside: usize,
}

/// An attribute that is no namespace declaration.
#[derive(Debug)]
pub(super) struct Attribute<'a> {
    pub(super) namespace: Cow<'a, str>,
    pub(super) local: Cow<'a, str>,
    pub(super) value: Cow<'a, str>,
}

/// Text of an element.
#[derive(Debug, Clone)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    /// A record of 16 bytes.
    Guid([u8; 16]),
}

impl<'a> Content<'a> {
    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Guid(guid) => Cow::Owned(ids::urn(&guid)),
        }
    }
}

impl Element<'_> {
    pub(super) fn is(&self, namespace: &str, local: &str) -> bool {
        self.local == local && self.namespace == namespace
    }

    /// The value of an attribute; attributes without a prefix are in no namespace.
    pub(super) fn attribute(&self, namespace: &str, local: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|held| held.local == local && held.namespace == namespace);
        found.map(|held| &*held.value)
    }
}

/// Reads a document from its start.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    /// Whole, with the body: `offset_of` counts in it.
    document: Document<'a>,
    source: Source<'a>,
    /// (depth of the element that declares it, prefix, namespace).
    scope: Vec<(usize, Cow<'a, str>, Cow<'a, str>)>,
    depth: usize,
    /// An element that ends with the text just returned, or that is empty.
    closing: bool,
}

#[derive(Clone)]
enum Source<'a> {
    Binary(Reader<'a>),
    Text(Box<text::Reader<'a>>),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(document: Document<'a>) -> Self {
        let Document { form, bytes, quotas, .. } = document;
        let source = match form {
            Form::Binary => Source::Binary(Reader::new(bytes)),
            Form::Text => Source::Text(Box::new(text::Reader::new(bytes, quotas))),
        };
        Self { document, source, scope: Vec::new(), depth: 0, closing: false }
    }

    /// Where a piece of the document stands in it.
    pub(super) fn offset_of(&self, piece: &str) -> Option<usize> {
        let at = piece.as_ptr().addr().checked_sub(self.document.bytes.as_ptr().addr())?;
        (at + piece.len() <= self.document.bytes.len()).then_some(at)
    }

    /// Offset of what comes next, or right behind the element that was just opened.
    pub(super) fn position(&self) -> usize {
        match &self.source {
            Source::Binary(reader) => reader.position(),
            Source::Text(reader) => reader.position(),
        }
    }

    /// The next step; comments are passed over, attributes come with their element.
    pub(super) fn next(&mut self) -> Visit<CursorEvent<'a>> {
        if std::mem::take(&mut self.closing) {
            self.leave();
            return Ok(CursorEvent::Close);
        }
        match &self.source {
            Source::Binary(_) => self.next_record(),
            Source::Text(_) => self.next_token(),
        }
    }

    /// The first element of the document.
    pub(super) fn root(&mut self) -> Visit<Element<'a>> {
        match self.next()? {
            CursorEvent::Open(element) => Ok(element),
            _ => Err(Violation::NoEnvelope.at(0)),
        }
    }

    /// The element behind the headers, which must be the body.
    pub(super) fn body(&self, element: Option<Element<'a>>, soap: &str) -> Visit<Element<'a>> {
        match element {
            Some(body) if body.is(soap, "Body") => Ok(body),
            Some(other) => Err(Violation::UnexpectedElement.at(other.at)),
            None => Err(Violation::MissingElement.at(self.position())),
        }
    }

    /// The text of the element that was opened last, up to its end; elements in it are an error.
    pub(super) fn text(&mut self) -> Visit<Content<'a>> {
        let mut whole: Option<Content<'a>> = None;
        loop {
            match self.next()? {
                CursorEvent::Text(content) => {
                    whole = Some(match whole {
                        None => content,
                        Some(first) => {
                            let joined = first.into_text().into_owned() + &content.into_text();
                            Content::Text(Cow::Owned(joined))
                        }
                    });
                }
                CursorEvent::Close => return Ok(whole.unwrap_or(Content::Text(Cow::Borrowed("")))),
                CursorEvent::Open(element) => return Err(Violation::UnexpectedElement.at(element.at)),
                CursorEvent::End => return Err(Violation::Truncated.at(self.position())),
            }
        }
    }

    /// The same as a text of its own.
    pub(super) fn string(&mut self) -> Visit<String> {
        Ok(self.text()?.into_text().into_owned())
    }

    /// The same without the white space around it.
    pub(super) fn trimmed(&mut self) -> Visit<Cow<'a, str>> {
        Ok(match self.text()?.into_text() {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(is_space)),
            Cow::Owned(text) => Cow::Owned(text.trim_matches(is_space).to_owned()),
        })
    }

    /// What `read` makes of the first child that is wanted, of the element that was opened last; all others are passed over, up
    /// to its end.
    pub(super) fn first<T>(
        &mut self,
        wants: impl Fn(&Element<'a>) -> bool,
        read: impl Fn(&mut Self, Element<'a>) -> Visit<T>,
    ) -> Visit<Option<T>> {
        let mut found = None;
        while let Some(child) = self.child()? {
            if found.is_none() && wants(&child) {
                found = Some(read(self, child)?);
            } else {
                self.skip()?;
            }
        }
        Ok(found)
    }

    /// Goes on to the child with this name and into it.
    pub(super) fn enter(&mut self, name: &str) -> Visit<()> {
        while let Some(child) = self.child()? {
            if child.local == name {
                return Ok(());
            }
            self.skip()?;
        }
        Err(Violation::MissingElement.at(self.position()))
    }

    /// The identifier of a message, and where it is text in one piece, that.
    pub(super) fn message_id(&mut self) -> Visit<(MessageId, Option<&'a str>)> {
        let text = match self.text()? {
            Content::Guid(guid) => return Ok((MessageId::Unique(guid), None)),
            Content::Text(text) => text,
        };
        // In binary form, text is answered with text.
        let of = |text: &str| match self.source {
            Source::Binary(_) => MessageId::Text(text.into()),
            Source::Text(_) => MessageId::of_text(text),
        };
        Ok(match text {
            Cow::Borrowed(text) => {
                let text = text.trim_matches(is_space);
                (of(text), Some(text))
            }
            Cow::Owned(text) => (of(text.trim_matches(is_space)), None),
        })
    }

    /// Passes over the element that was opened last.
    pub(super) fn skip(&mut self) -> Visit<()> {
        // An element is open, so there is one to subtract.
        let outside = self.depth - 1;
        while self.depth > outside {
            if let CursorEvent::End = self.next()? {
                return Err(Violation::Truncated.at(self.position()));
            }
        }
        Ok(())
    }

    /// The next child of the element that was opened last, or nothing at its end; text between children is passed over.
    pub(super) fn child(&mut self) -> Visit<Option<Element<'a>>> {
        loop {
            match self.next()? {
                CursorEvent::Open(element) => return Ok(Some(element)),
                CursorEvent::Close => return Ok(None),
                CursorEvent::Text(_) => {}
                CursorEvent::End => return Err(Violation::Truncated.at(self.position())),
            }
        }
    }

    /// The namespace and name that the text of the element which was opened last stands for; a prefix that was never
    /// declared is none.
    pub(super) fn qname(&mut self) -> Visit<(String, String)> {
        // Declarations on the element itself are forgotten with its end.
        let scope = self.scope.clone();
        let text = self.trimmed()?;
        let (prefix, local) = text.split_once(':').unwrap_or(("", &*text));
        let found = scope.iter().rev().find(|(_, held, _)| held == prefix);
        let namespace = found.map_or("", |(.., namespace)| namespace);
        Ok((namespace.to_owned(), local.to_owned()))
    }

    /// The namespace and name that the value of an attribute stands for, on the element that was opened last. None where its
    /// prefix was never declared.
    pub(super) fn named(&self, value: &str) -> Option<(String, String)> {
        let value = value.trim_matches(is_space);
        let (prefix, local) = value.split_once(':').unwrap_or(("", value));
        let namespace = self.resolve(prefix).ok()?;
        Some((namespace.into_owned(), local.to_owned()))
    }

    /// Whether a prefix stands for a namespace here.
    pub(super) fn means(&self, prefix: &str, namespace: &str) -> bool {
        self.declared(prefix).is_some_and(|held| held == namespace)
    }

    /// Whether a prefix that begins with these letters is declared here.
    pub(super) fn declares(&self, beginning: &str) -> bool {
        self.scope.iter().any(|(_, held, _)| held.starts_with(beginning))
    }

    /// The namespace that was declared for a prefix.
    pub(super) fn declared(&self, prefix: &str) -> Option<&Cow<'a, str>> {
        self.scope.iter().rev().find(|(_, held, _)| held == prefix).map(|(.., namespace)| namespace)
    }

    /// The namespace of a prefix in the place that was read last.
    fn resolve(&self, prefix: &str) -> Visit<Cow<'a, str>> {
        match self.declared(prefix) {
            Some(namespace) => Ok(namespace.clone()),
            None if prefix.is_empty() => Ok(Cow::Borrowed("")),
            None if prefix == "xml" => Ok(Cow::Borrowed(text::XML)),
            None => Err(Violation::UnknownPrefix.at(self.position())),
        }
    }

    /// Remembers a declaration of the element that is being read.
    fn declare(&mut self, prefix: Cow<'a, str>, namespace: Cow<'a, str>) -> Visit<()> {
        if self.scope.len() >= MAX_PREFIXES {
            return Err(Violation::TooManyAttributes.at(self.position()));
        }
        self.scope.push((self.depth, prefix, namespace));
        Ok(())
    }

    /// The innermost element has ended; what it declared means nothing any more.
    fn leave(&mut self) {
        while self.scope.last().is_some_and(|(depth, ..)| *depth >= self.depth) {
            self.scope.pop();
        }
        self.depth -= 1;
    }

    /// The next step of binary form.
    fn next_record(&mut self) -> Visit<CursorEvent<'a>> {
        loop {
            let Source::Binary(reader) = &mut self.source else { return Ok(CursorEvent::End) };
            let at = reader.position();
            let Some(record) = reader.read()? else { return Ok(CursorEvent::End) };
            match record {
                Record::Element(prefix, name) => return self.element(at, prefix, name),
                Record::Text(text, ends) => {
                    self.closing = ends;
                    return Ok(CursorEvent::Text(self.content(&text, at)?));
                }
                Record::End => {
                    self.leave();
                    return Ok(CursorEvent::Close);
                }
                // An array is no part of an envelope; in a body that is passed over, its parts balance.
                Record::Comment(_) | Record::Array | Record::Items(..) => {}
                Record::Attribute(..) | Record::Xmlns(..) => return Err(Violation::UnexpectedRecord.at(at)),
            }
        }
    }

    /// The next step of text form.
    fn next_token(&mut self) -> Visit<CursorEvent<'a>> {
        let Source::Text(reader) = &mut self.source else { return Ok(CursorEvent::End) };
        let at = reader.position();
        let tag = match reader.next()? {
            Some(text::Event::Start(tag)) => tag,
            Some(text::Event::Text(text)) => return Ok(CursorEvent::Text(Content::Text(text))),
            Some(text::Event::End) => {
                self.leave();
                return Ok(CursorEvent::Close);
            }
            None => return Ok(CursorEvent::End),
        };
        // Declarations on an element hold for its own name, too: they are read first.
        self.depth += 1;
        let inside = reader.position();
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute?;
            match (attribute.prefix, attribute.local) {
                ("", "xmlns") => self.declare(Cow::Borrowed(""), attribute.value)?,
                ("xmlns", prefix) => self.declare(Cow::Borrowed(prefix), attribute.value)?,
                (prefix, local) => {
                    let (namespace, local) = (Cow::Borrowed(prefix), Cow::Borrowed(local));
                    attributes.push(Attribute { namespace, local, value: attribute.value });
                }
            }
        }
        let namespace = self.resolve(tag.prefix)?;
        self.open(namespace, Cow::Borrowed(tag.local), attributes, [at, inside])
    }

    fn element(&mut self, at: usize, prefix: Prefix<'a>, name: Word<'a>) -> Visit<CursorEvent<'a>> {
        self.depth += 1;
        let local = self.word(name, at)?;
        let mut attributes = Vec::new();
        let inside = loop {
            let Source::Binary(reader) = &mut self.source else { return Ok(CursorEvent::End) };
            // The record that is no attribute is left for the next step.
            let mut ahead = reader.clone();
            let at = ahead.position();
            match ahead.read()? {
                Some(Record::Attribute(prefix, name, value)) => {
                    *reader = ahead;
                    let (namespace, local) = (prefix.spelled(), self.word(name, at)?);
                    let value = self.content(&value, at)?.into_text();
                    if attributes.len() >= MAX_ATTRIBUTES {
                        return Err(Violation::TooManyAttributes.at(at));
                    }
                    attributes.push(Attribute { namespace, local, value });
                }
                Some(Record::Xmlns(prefix, namespace)) => {
                    *reader = ahead;
                    let namespace = self.word(namespace, at)?;
                    self.declare(Cow::Borrowed(prefix.unwrap_or_default()), namespace)?;
                }
                _ => break at,
            }
        };
        let namespace = self.resolve(&prefix.spelled())?;
        self.open(namespace, local, attributes, [at, inside])
    }

    /// The start of an element, whose attributes have their prefixes in place of namespaces so far.
    fn open(
        &self,
        namespace: Cow<'a, str>,
        local: Cow<'a, str>,
        mut attributes: Vec<Attribute<'a>>,
        [at, inside]: [usize; 2],
    ) -> Visit<CursorEvent<'a>> {
        for attribute in &mut attributes {
            if !attribute.namespace.is_empty() {
                attribute.namespace = self.resolve(&attribute.namespace)?;
            }
        }
        Ok(CursorEvent::Open(Element { namespace, local, attributes, at, inside }))
    }

    fn word(&self, word: Word<'a>, at: usize) -> Visit<Cow<'a, str>> {
        match word {
            Word::Inline(text) => Ok(Cow::Borrowed(text)),
            Word::Id(id) => {
                self.document.words.word(id).map(Cow::Borrowed).ok_or_else(|| Violation::UnknownWord.at(at))
            }
        }
    }

    /// A text record as headers need it: as text, or as a GUID.
    fn content(&self, text: &Text<'a>, at: usize) -> Visit<Content<'a>> {
        Ok(Content::Text(match *text {
            Text::Chars(text) => Cow::Borrowed(text),
            Text::Word(id) => self.word(Word::Id(id), at)?,
            Text::UniqueId(guid) => return Ok(Content::Guid(guid)),
            Text::QName(letter, id) => {
                format!("{}:{}", char::from(b'a' + letter.min(25)), self.word(Word::Id(id), at)?).into()
            }
            Text::Wide(raw) => {
                let text: Result<String, _> = text::utf16(raw, u16::from_le_bytes).collect();
                text.map_err(|_| Violation::BadText.at(at))?.into()
            }
            // These mean nothing in a header, and may be many in a body that is passed over.
            Text::Bytes(_) | Text::F32(_) | Text::F64(_) | Text::Decimal(_) | Text::TimeSpan(_) => "".into(),
            other => lexical(&other).into(),
        }))
    }
}

/// White space of XML.
pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}
