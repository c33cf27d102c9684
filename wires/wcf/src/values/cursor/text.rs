//! A place in a document of XML text.
//!
//! `Reader` does the work and holds the quotas; this is the thin layer that makes it answer like binary
//! form. There are no array records in text. White space between elements is passed, as are comments.
//!
//! State: how far the reader is, and perhaps a second reader that went ahead (`scanned`).
//!
//! Invariants: a look ahead moves nothing. Text is charged to the budget before it is given out as a value.

use super::{
    AttributeText, AttributeValue, Content, Cursor, ElementContents, OpenElement, Run, TypeName, inherited,
    is_data,
};
use crate::markup::Piece;
use crate::text::{Event, Reader, Tag, base64};
use crate::values::{Quota, ReaderQuotas};
use crate::violations::Violation;
use everywire_model::visit::Visit;
use everywire_model::{Body, Budget};
use std::borrow::Cow;

/// Bytes of text that are worth a look ahead.
/// Below that the usual way is as fast.
const LONG: usize = 4096;

/// A place.
#[derive(Debug, Clone)]
pub(in crate::values) struct TextCursor<'a> {
    document: &'a [u8],
    reader: Reader<'a>,
    quotas: ReaderQuotas,
    /// From where on the reader has seen all that open elements declare; the end of all documents if it went elsewhere.
    begun: usize,
    /// A reader that has seen what is declared up to the place that was last asked for.
    scanned: Option<Box<Reader<'a>>>,
}

impl<'a> TextCursor<'a> {
    /// The place where the values of a body are, inside `outer` elements.
    pub(in crate::values) fn new(body: &'a Body, outer: usize, quotas: ReaderQuotas) -> Self {
        let reader = Reader::part(&body.bytes, body.base, outer, &quotas);
        Self { document: &body.bytes, reader, quotas, begun: body.base, scanned: None }
    }

    /// Whether the end of the open element comes next.
    /// It looks at the bytes without reading: the reader would take the end tag with it.
    fn at_end(&self) -> bool {
        self.reader.is_ending()
            || self.document.get(self.reader.position()..).is_none_or(|rest| rest.starts_with(b"</"))
    }
}

/// What the attributes say of an element's value. Those without a prefix belong to members, but for `id` and `href` of SOAP
/// 1.1 (section 5.4.1), and declarations to nobody.
fn attributes<'a>(tag: &Tag<'a>, entered: &mut OpenElement<'a>) -> Visit<()> {
    if tag.is_plain() {
        return Ok(());
    }
    for attribute in tag.attributes() {
        let attribute = attribute?;
        match (attribute.prefix, attribute.local) {
            ("", "href") => entered.refers |= attribute.value.starts_with('#'),
            ("", "id") => entered.referred = true,
            ("" | "xmlns", _) => {}
            (_, "nil") => entered.nil = matches!(attribute.value.as_ref(), "true" | "1"),
            (_, "type") => entered.kind = Some(TypeName::new(attribute.value)),
            (_, "Ref" | "ref") => entered.refers = true,
            (_, "Id" | "id") => entered.referred = true,
            (_, "offset" | "position") => entered.partial = true,
            _ => {}
        }
    }
    Ok(())
}

/// What SOAP's encoding refers to: SOAP 1.1 says it as a fragment, and PHP does so in SOAP 1.2.
fn target(value: Cow<'_, str>) -> String {
    value.strip_prefix('#').unwrap_or(&value).to_owned()
}

impl<'a> Cursor<'a> for TextCursor<'a> {
    fn rewound(&self) -> Self {
        Self { reader: Reader::new(self.document, &self.quotas), begun: usize::MAX, scanned: None, ..*self }
    }

    fn ahead(&self) -> Self {
        Self { reader: self.reader.clone(), scanned: None, ..*self }
    }

    fn enter(&mut self) -> Visit<Option<OpenElement<'a>>> {
        loop {
            if self.at_end() {
                return Ok(None);
            }
            let at = self.reader.position();
            match self.reader.next()? {
                Some(Event::Start(tag)) => {
                    let mut entered = OpenElement::new(tag.local, at);
                    attributes(&tag, &mut entered)?;
                    return Ok(Some(entered));
                }
                // Text between elements is white space; comments say nothing.
                Some(Event::Text(_)) => {}
                // `at_end` has seen that no end comes next.
                Some(Event::End) => return Err(Violation::Misuse.at(at)),
                None => return Ok(None),
            }
        }
    }

    fn array(&mut self) -> Visit<Option<Run<'a>>> {
        Ok(None)
    }

    fn ends(&self) -> bool {
        self.at_end()
    }

    fn finish(&mut self) -> Visit<()> {
        self.reader.skip()
    }

    fn leave_envelope(&mut self) -> Visit<()> {
        while self.reader.depth() > 0 {
            self.reader.skip()?;
        }
        self.reader.leave_part()
    }

    fn content(&mut self, budget: &mut Budget) -> Visit<Content<'a>> {
        let text = self.reader.content()?;
        budget.charge_bytes(text.len() as u64)?;
        Ok(if text.is_empty() { Content::Empty } else { Content::Text(text) })
    }

    fn octets(&mut self, budget: &mut Budget) -> Visit<Option<Cow<'a, [u8]>>> {
        let at = self.reader.position();
        let rest = self.document.get(at..).unwrap_or_default();
        let raw = memchr::memchr(b'<', rest).and_then(|end| Some((rest.get(..end)?, rest.get(end..)?)));
        // Much text of one piece need not be looked at character by character: base64 has few.
        if let Some((raw, [b'<', b'/', ..])) = raw
            && raw.len() >= LONG
            && !self.reader.is_ending()
        {
            self.quotas.check(Quota::StringContentLength, raw.len())?;
            budget.charge_bytes(raw.len() as u64)?;
            // What is no base64 by itself (references, CDATA) is left to the slow way, which says what is
            // wrong.
            if let Some(octets) = base64::decode(raw) {
                self.reader.seek(at + raw.len(), self.reader.depth());
                self.reader.skip()?;
                return Ok(Some(Cow::Owned(octets)));
            }
        }
        self.content(budget).map(Content::octets)
    }

    fn markup(&mut self, _: usize, budget: &mut Budget) -> Visit<String> {
        let here = self.position();
        // This reader stays inside as long as prefixes are asked for.
        let mut ahead = self.reader.clone();
        let piece = Piece::read(&mut ahead, &self.quotas, budget)?;
        let whole = piece.fill(budget, |prefix, _, budget| inherited(self, prefix, here, budget))?;
        self.reader = ahead;
        Ok(whole)
    }

    fn is_marked(&self) -> Visit<bool> {
        let mut ahead = self.reader.clone();
        let mut open = vec![ElementContents::default()];
        while let (Some(event), Some(inner)) = (ahead.next()?, open.last_mut()) {
            match event {
                Event::Start(tag) => {
                    inner.element = true;
                    for attribute in tag.attributes() {
                        let attribute = attribute?;
                        if is_data(attribute.prefix, attribute.local) {
                            return Ok(true);
                        }
                    }
                    open.push(ElementContents::default());
                }
                Event::Text(text) => inner.text |= !text.trim().is_empty(),
                Event::End => {
                    if open.pop().is_some_and(|ended| ended.is_mixed()) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(open.iter().any(ElementContents::is_mixed))
    }

    fn told(&mut self, at: usize, wanted: &str) -> Visit<AttributeText> {
        let mut reader = Reader::part(self.document, at, 0, &self.quotas);
        let mut told = AttributeText::default();
        let Some(Event::Start(tag)) = reader.next()? else { return Ok(told) };
        tag.prefix.clone_into(&mut told.element);
        for attribute in tag.attributes() {
            let attribute = attribute?;
            match (attribute.prefix, attribute.local) {
                ("xmlns", prefix) => told.declared.push((prefix.to_owned(), attribute.value.into_owned())),
                ("", "xmlns") => told.declared.push((String::new(), attribute.value.into_owned())),
                // Of SOAP 1.1, unless there is one with a prefix.
                ("", "href" | "id") => {
                    let local = if attribute.local == "id" { "Id" } else { "Ref" };
                    if wanted == local && told.prefix.is_empty() {
                        told.value = target(attribute.value);
                    }
                }
                ("", _) => {}
                (prefix, local) if local == wanted => {
                    (told.prefix, told.value) = (prefix.to_owned(), attribute.value.into_owned());
                }
                (prefix, "ref" | "id") if attribute.local.eq_ignore_ascii_case(wanted) => {
                    (told.prefix, told.value) = (prefix.to_owned(), target(attribute.value));
                }
                _ => {}
            }
        }
        Ok(told)
    }

    fn attributes(&self, at: usize, budget: &mut Budget) -> Visit<Vec<AttributeValue<'a>>> {
        let mut reader = Reader::part(self.document, at, 0, &self.quotas);
        let Some(Event::Start(tag)) = reader.next()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute?;
            if attribute.prefix == "xmlns" || (attribute.prefix.is_empty() && attribute.local == "xmlns") {
                continue;
            }
            self.quotas.check(Quota::StringContentLength, attribute.value.len())?;
            budget.charge_bytes(attribute.value.len() as u64)?;
            found.push(AttributeValue {
                prefix: Cow::Borrowed(attribute.prefix),
                name: attribute.local,
                content: Content::Text(attribute.value),
                namespace: None,
            });
        }
        Ok(found)
    }

    fn count(&self) -> Visit<(u64, Option<&'a str>)> {
        let mut ahead = self.ahead();
        let (mut count, mut first, mut other) = (0, None, None);
        while let Some(entered) = ahead.enter()? {
            count += 1;
            if *first.get_or_insert(entered.name) != entered.name && other.is_none() {
                other = Some(entered.name);
            }
            ahead.finish()?;
        }
        Ok((count, other))
    }

    fn position(&self) -> usize {
        self.reader.position()
    }

    fn depth(&self) -> usize {
        self.reader.depth()
    }

    fn seek(&mut self, at: usize, depth: usize) {
        // The starts of the elements in between were not read.
        if depth > self.reader.depth() {
            self.begun = usize::MAX;
        }
        self.reader.seek(at, depth);
    }

    fn resolve(&mut self, prefix: &str, at: usize, budget: &mut Budget) -> Visit<Option<&str>> {
        // What was declared inside the body, the reader knows itself; the envelope's start it has not seen.
        if let Some(namespace) = self.reader.namespace(prefix).filter(|namespace| !namespace.is_empty()) {
            return Ok(Some(namespace));
        }
        let at = at.min(self.begun);
        let reader = match self.scanned.take() {
            Some(reader) if reader.position() <= at => reader,
            _ => Box::new(Reader::new(self.document, &self.quotas)),
        };
        let reader = self.scanned.insert(reader);
        budget.charge_bytes(at.saturating_sub(reader.position()) as u64)?;
        while reader.position() < at {
            if reader.next()?.is_none() {
                break;
            }
        }
        Ok(reader.namespace(prefix))
    }
}
