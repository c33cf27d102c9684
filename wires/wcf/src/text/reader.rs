//! Reading XML text, event by event.
//!
//! `quick_xml` splits the document into tokens; this reader decides what they mean and refuses what a
//! message may not have. Events borrow from the document, so a text without references is not copied.
//!
//! State: the tokenizer and where it began (`inner`, `base`), how many elements are open (`depth`), the
//! namespaces that open elements declare (`scope`), and the end of an element without an end tag, which is
//! told as an event of its own (`ends`). `next` moves all of it; `seek` goes to a place that was seen
//! before, with a fresh tokenizer.
//!
//! A reader is over a whole document, which has one root element, or over a part (`is_part`): what is
//! inside an element of a document that somebody else has read up to there. A part ends with the end tag of
//! the element around it.
//!
//! Invariants:
//!
//! * No document type, no processing instruction but the XML declaration at the beginning, and no entity
//!   but XML's five (SOAP 1.2 part 1, section 5; SOAP 1.1, section 3): so nothing is expanded or fetched.
//! * `outer + depth` is at most `max_depth`, a start tag has at most `max_bytes_per_read` bytes and
//!   `MAX_ATTRIBUTES` attributes, and all open elements together declare at most `MAX_PREFIXES` namespaces.
//! * Names are those of XML with at most one colon; characters are those of XML 1.0, and control characters
//!   where a reference names them. Ends of lines become `\n`.
//! * Names of end tags are compared by the tokenizer, as long as it has seen the start tag: not after
//!   `seek`, and not for the element around a part. Depths are counted in any case.

use crate::limits::{MAX_ATTRIBUTES, MAX_NAME, MAX_PREFIXES};
use crate::values::{Quota, ReaderQuotas};
use crate::violations::Violation;
use everywire_model::visit::Visit;
use quick_xml::escape::{EscapeError, resolve_xml_entity, unescape_with};
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesRef, BytesStart, Event as Raw};
use std::borrow::Cow;

/// What comes next in a document.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// The start of an element.
    Start(Tag<'a>),
    /// The end of the innermost element.
    End,
    /// Text; the text of one element may come in pieces.
    Text(Cow<'a, str>),
}

/// The start of an element.
#[derive(Debug, Clone, Copy)]
pub struct Tag<'a> {
    /// Prefix of its name, or nothing.
    /// What it stands for is asked of `Reader::namespace`, while the element is open.
    pub prefix: &'a str,
    /// Its name without the prefix.
    pub local: &'a str,
    /// The text of its attributes, as it stands.
    /// They are split again by each call of `attributes`: most are never looked at.
    attributes: &'a str,
    /// Whether there are attributes that declare nothing.
    says: bool,
}

/// An attribute or a namespace declaration.
#[derive(Debug, Clone)]
pub struct Attribute<'a> {
    /// Prefix of its name, or nothing.
    pub prefix: &'a str,
    /// Its name without the prefix.
    pub local: &'a str,
    /// Its value, without references.
    pub value: Cow<'a, str>,
}

impl<'a> Tag<'a> {
    /// The attributes, namespace declarations among them.
    pub fn attributes(&self) -> impl Iterator<Item = Visit<Attribute<'a>>> + use<'a> {
        let raw = if self.attributes.is_empty() { None } else { Some(Attributes::new(self.attributes, 0)) };
        raw.into_iter().flatten().map(|attribute| {
            let attribute = attribute.map_err(|_| Violation::Markup.at(0))?;
            let (prefix, local) = split_name(attribute.key.into_inner())?;
            let value = match attribute.value {
                Cow::Borrowed(raw) => attribute_value(raw)?,
                Cow::Owned(_) => return Err(Violation::Markup.at(0)),
            };
            Ok(Attribute { prefix, local, value })
        })
    }

    /// Whether there are no attributes but namespace declarations.
    /// Then the values of a contract need not look at them.
    pub fn is_plain(&self) -> bool {
        !self.says
    }
}

/// Reads a document, or what is inside an element of one.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    document: &'a [u8],
    inner: quick_xml::Reader<&'a [u8]>,
    /// Where `inner` began.
    /// Offsets of `inner` count from there.
    base: usize,
    /// Elements that this reader has entered, without those of `outer`.
    depth: usize,
    /// Namespaces declared so far: depth of the element, prefix, name.
    scope: Vec<(usize, &'a str, Cow<'a, str>)>,
    quotas: ReaderQuotas,
    /// The end of an element that has no separate end tag.
    ends: bool,
    /// Whether only what is inside an element is read.
    is_part: bool,
    /// Whether the root element has started.
    begun: bool,
    /// Depth around the document that is read.
    outer: usize,
}

impl<'a> Reader<'a> {
    /// A reader over a whole document in UTF-8.
    pub fn new(document: &'a [u8], quotas: &ReaderQuotas) -> Self {
        // A byte order mark is not part of the document.
        let bom = if document.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self {
            document,
            inner: tokens(document, bom),
            base: bom,
            depth: 0,
            scope: Vec::new(),
            quotas: *quotas,
            ends: false,
            is_part: false,
            begun: false,
            outer: 0,
        }
    }

    /// A reader over what stands from `base` to the end of the element around it, which is `outer` elements deep.
    pub fn part(document: &'a [u8], base: usize, outer: usize, quotas: &ReaderQuotas) -> Self {
        let base = base.min(document.len());
        Self {
            inner: tokens(document, base),
            base,
            is_part: true,
            begun: true,
            outer,
            ..Self::new(document, quotas)
        }
    }

    /// Offset of what comes next.
    pub fn position(&self) -> usize {
        self.base + usize::try_from(self.inner.buffer_position()).unwrap_or(usize::MAX)
    }

    /// How many elements are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next event, or nothing at the end.
    ///
    /// # Errors
    /// The first violation.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Visit<Option<Event<'a>>> {
        if self.ends {
            self.ends = false;
            self.leave();
            return Ok(Some(Event::End));
        }
        loop {
            let at = self.position();
            let raw = self.inner.read_event().map_err(|_| Violation::Markup.at(at))?;
            let text = match raw {
                Raw::Start(start) => return self.start(&start, at, false).map(Some),
                Raw::Empty(start) => return self.start(&start, at, true).map(Some),
                Raw::End(_) if self.depth > 0 => {
                    self.leave();
                    return Ok(Some(Event::End));
                }
                Raw::End(_) if self.is_part => {
                    // What was read ends here, however often one asks.
                    self.seek(at, 0);
                    return Ok(None);
                }
                Raw::End(_) => return Err(Violation::Unbalanced.at(at)),
                Raw::Eof if self.depth == 0 && self.begun => return Ok(None),
                Raw::Eof => return Err(Violation::Truncated.at(at)),
                Raw::Text(text) => plain_text(borrowed(text.into_inner(), at)?, at)?,
                Raw::CData(text) => plain_text(borrowed(text.into_inner(), at)?, at)?,
                Raw::GeneralRef(reference) => resolve(&reference, at)?,
                // An XML declaration may stand at the very beginning, or right behind a byte order mark.
                Raw::Decl(_) if at == 0 || (at == 3 && !self.is_part && self.base == 3) => continue,
                // It says nothing, but what stands behind it is looked at anew.
                Raw::Comment(_) => Cow::Borrowed(""),
                Raw::Decl(_) | Raw::PI(_) => return Err(Violation::ProcessingInstruction.at(at)),
                Raw::DocType(_) => return Err(Violation::DocumentType.at(at)),
            };
            // White space between the parts of a document is nothing; between elements it is text, which
            // readers of elements pass.
            if self.depth > 0 || self.is_part {
                return Ok(Some(Event::Text(text)));
            }
            if !text.bytes().all(|byte| byte.is_ascii_whitespace()) {
                return Err(Violation::Markup.at(at));
            }
        }
    }

    /// The start of an element at the offset `at`; `empty`: it has no end tag.
    fn start(&mut self, start: &BytesStart<'_>, at: usize, empty: bool) -> Visit<Event<'a>> {
        if self.depth == 0 && self.begun && !self.is_part {
            return Err(Violation::Unbalanced.at(at));
        }
        self.begun = true;
        self.quotas.check(Quota::Depth, self.outer + self.depth + 1)?;
        let name_len = start.name().into_inner().len();
        // The event does not lend its text for as long as the document does.
        let inside = at.checked_add(1).and_then(|from| self.document.get(from..)?.get(..start.len()));
        let raw = inside.ok_or_else(|| Violation::Markup.at(at))?;
        self.quotas.check(Quota::BytesPerRead, raw.len())?;
        let (name, attributes) = raw.split_at_checked(name_len).ok_or_else(|| Violation::Markup.at(at))?;
        let (prefix, local) = split_name(name)?;
        let attributes = if attributes.iter().all(u8::is_ascii_whitespace) {
            ""
        } else {
            std::str::from_utf8(attributes).map_err(|_| Violation::BadText.at(at))?
        };
        // Only now: what was refused has opened nothing.
        self.depth += 1;
        self.ends = empty;
        let mut tag = Tag { prefix, local, attributes, says: false };
        if !attributes.is_empty() {
            tag.says = self.declare(&tag, at)?;
        }
        Ok(Event::Start(tag))
    }

    /// Checks the attributes, and remembers the namespaces among them; whether there are others.
    fn declare(&mut self, tag: &Tag<'a>, at: usize) -> Visit<bool> {
        let (mut count, mut says, mut alike) = (0, false, false);
        let (mut prefixed, mut names) = (0, [""; FEW]);
        for attribute in tag.attributes() {
            let attribute = attribute?;
            count += 1;
            if count > MAX_ATTRIBUTES {
                return Err(Violation::TooManyAttributes.at(at));
            }
            let prefix = match (attribute.prefix, attribute.local) {
                ("", "xmlns") => "",
                ("xmlns", prefix) => prefix,
                (prefix, local) => {
                    says = true;
                    if !prefix.is_empty() {
                        alike |= prefixed >= FEW || names.contains(&local);
                        if let Some(name) = names.get_mut(prefixed) {
                            *name = local;
                        }
                        prefixed += 1;
                    }
                    continue;
                }
            };
            if self.scope.len() >= MAX_PREFIXES {
                return Err(Violation::TooManyPrefixes.at(at));
            }
            self.scope.push((self.depth, prefix, attribute.value));
        }
        if alike {
            self.check_names(tag, at)?;
        }
        Ok(says)
    }

    /// Refuses two attributes of one name, by what their prefixes stand for (Namespaces in XML 1.0, 6.3), as far as this reader
    /// has seen their declarations. The tokenizer refuses two that are written alike.
    #[cold]
    fn check_names(&self, tag: &Tag<'a>, at: usize) -> Visit<()> {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for attribute in tag.attributes() {
            let Attribute { prefix, local, .. } = attribute?;
            if prefix.is_empty() || prefix == "xmlns" {
                continue;
            }
            let Some(namespace) = self.namespace(prefix) else { continue };
            if names.contains(&(namespace, local)) {
                return Err(Violation::DuplicateAttribute.at(at));
            }
            names.push((namespace, local));
        }
        Ok(())
    }

    /// Ends the innermost element, and forgets what it declared.
    fn leave(&mut self) {
        while self.scope.last().is_some_and(|(depth, ..)| *depth >= self.depth) {
            self.scope.pop();
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// The namespace that a prefix (or none: the empty prefix) stands for here, as far as this reader has seen
    /// declarations.
    pub fn namespace(&self, prefix: &str) -> Option<&str> {
        // The last declaration of a prefix hides those before it.
        let found = self.scope.iter().rev().find(|(_, known, _)| *known == prefix);
        match found {
            Some((.., namespace)) => Some(namespace),
            None if prefix == "xml" => Some(super::XML),
            None if prefix.is_empty() => Some(""),
            None => None,
        }
    }

    /// Skips to the end of the element that is open.
    ///
    /// # Errors
    /// The first violation in it.
    pub fn skip(&mut self) -> Visit<()> {
        let depth = self.depth;
        while self.depth >= depth && depth > 0 {
            if self.next()?.is_none() {
                return Err(Violation::Truncated.at(self.position()));
            }
        }
        Ok(())
    }

    /// Reads what is left behind a part: the elements around it may go on, but the outermost ends at once where the one in it has ended.
    ///
    /// # Errors
    /// It does not, or the document is cut off.
    pub(crate) fn leave_part(&self) -> Visit<()> {
        let base = self.position();
        let (mut inner, mut open) = (tokens(self.document, base), 0_usize);
        // Whether anything stood in the element that ended last before its end, and in the one that is open now.
        let (mut last, mut more) = (true, false);
        loop {
            let at = base + usize::try_from(inner.buffer_position()).unwrap_or(usize::MAX);
            match inner.read_event().map_err(|_| Violation::Markup.at(at))? {
                Raw::End(_) if open > 0 => open -= 1,
                Raw::End(_) => (last, more) = (more, false),
                Raw::Text(text) if text.iter().all(u8::is_ascii_whitespace) => {}
                Raw::Comment(_) => {}
                Raw::Eof if open == 0 && !last && !more => return Ok(()),
                Raw::Eof => return Err(Violation::Unbalanced.at(at)),
                Raw::Start(_) => (open, more) = (open + 1, true),
                _ => more = true,
            }
        }
    }

    /// All text of the element that is open, and its end.
    ///
    /// # Errors
    /// An element inside it is [`Violation::UnexpectedElement`].
    pub fn content(&mut self) -> Visit<Cow<'a, str>> {
        let mut content = Cow::Borrowed("");
        loop {
            match self.next()? {
                Some(Event::Text(text)) if content.is_empty() => content = text,
                Some(Event::Text(text)) => content.to_mut().push_str(&text),
                Some(Event::End) | None => return Ok(content),
                Some(Event::Start(_)) => return Err(Violation::UnexpectedElement.at(self.position())),
            }
            self.quotas.check(Quota::StringContentLength, content.len())?;
        }
    }

    /// Goes on elsewhere in the element that is `depth` deep.
    pub(crate) fn seek(&mut self, at: usize, depth: usize) {
        self.ends = false;
        self.base = at.min(self.document.len());
        self.inner = tokens(self.document, self.base);
        while self.scope.last().is_some_and(|(of, ..)| *of > depth) {
            self.scope.pop();
        }
        self.depth = depth;
    }

    /// Whether the element that started last has no end tag.
    pub(crate) fn is_ending(&self) -> bool {
        self.ends
    }
}

/// How many attributes with prefixes are compared while they are read; of more, all are compared behind the last one.
const FEW: usize = 4;

/// A tokenizer over the document from an offset on; it checks end tags and comments by itself.
fn tokens(document: &[u8], base: usize) -> quick_xml::Reader<&[u8]> {
    let mut inner = quick_xml::Reader::from_reader(document.get(base..).unwrap_or_default());
    let config = inner.config_mut();
    config.check_end_names = true;
    // Those are checked by depth: a part ends with the end of what is around it.
    config.allow_unmatched_ends = true;
    config.check_comments = true;
    inner
}

/// A slice of the document. The tokenizer copies only where it decodes another character set, which is
/// never asked of it.
fn borrowed(bytes: Cow<'_, [u8]>, at: usize) -> Visit<&[u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Ok(bytes),
        Cow::Owned(_) => Err(Violation::Markup.at(at)),
    }
}

/// Prefix and local part of a name.
fn split_name(name: &[u8]) -> Visit<(&str, &str)> {
    if name.len() > MAX_NAME {
        return Err(Violation::NameTooLong.at(0));
    }
    parts_of(name).ok_or_else(|| Violation::BadName.at(0))
}

/// Whether an element may be called so, apart from its prefix.
pub(crate) fn is_local(name: &str) -> bool {
    parts_of(name.as_bytes()).is_some_and(|(prefix, _)| prefix.is_empty())
}

/// All letters beyond ASCII count as letters of names: XML's tables are not checked. A second colon, or one
/// at either end, is refused.
fn parts_of(name: &[u8]) -> Option<(&str, &str)> {
    let mut colon = None;
    for (at, byte) in name.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {}
            b'0'..=b'9' | b'-' | b'.' if at > 0 && colon != Some(at - 1) => {}
            b':' if at > 0 && colon.is_none() => colon = Some(at),
            _ => return None,
        }
    }
    let name = std::str::from_utf8(name).ok()?;
    let (prefix, local) = match colon {
        Some(at) => (name.get(..at)?, name.get(at + 1..)?),
        None => ("", name),
    };
    if local.is_empty() { None } else { Some((prefix, local)) }
}

/// Text as it stands between markup: UTF-8, characters of XML, ends of lines as `\n` (XML 1.0, 2.11).
fn plain_text(raw: &[u8], at: usize) -> Visit<Cow<'_, str>> {
    let text = std::str::from_utf8(raw).map_err(|_| Violation::BadText.at(at))?;
    // Control characters are rare enough to look for all at once; a carriage return is part of a line's end.
    if !raw.iter().fold(false, |any, byte| any | (*byte < 0x20) | (*byte == 0xef)) {
        return Ok(Cow::Borrowed(text));
    }
    if !text.chars().all(is_char) {
        return Err(Violation::BadText.at(at));
    }
    if text.contains('\r') {
        return Ok(Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")));
    }
    Ok(Cow::Borrowed(text))
}

/// Whether XML 1.0 has this character.
pub(super) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// What a reference stands for: one of the five, or a character by its number. A number beyond Unicode, a surrogate or zero
/// is no text. Control characters are, though XML 1.0 has none (4.1, Legal Character): .NET's writers send each that is in
/// a string as a reference, and its readers take them (`CheckCharacters` is off in WCF). A character that stands there
/// itself is refused, as it is there.
fn resolve(reference: &BytesRef<'_>, at: usize) -> Visit<Cow<'static, str>> {
    match reference.resolve_char_ref() {
        Ok(Some(character)) if character != '\0' => Ok(Cow::Owned(character.into())),
        Ok(None) => {
            let known = std::str::from_utf8(reference).ok().and_then(resolve_xml_entity);
            known.map(Cow::Borrowed).ok_or_else(|| Violation::Entity.at(at))
        }
        _ => Err(Violation::BadText.at(at)),
    }
}

/// The value between the quotation marks, references resolved. The tokenizer leaves them as they are.
fn attribute_value(raw: &[u8]) -> Visit<Cow<'_, str>> {
    let text = plain_text(raw, 0)?;
    if text.contains('<') {
        return Err(Violation::Markup.at(0));
    }
    if !text.contains('&') {
        return Ok(text);
    }
    // Another crate's feature of the tokenizer would add the names of HTML to the usual ones.
    let value = unescape_with(&text, resolve_xml_entity).map_err(|error| match error {
        EscapeError::UnterminatedEntity(_) => Violation::Markup.at(0),
        EscapeError::UnrecognizedEntity(..) => Violation::Entity.at(0),
        _ => Violation::BadText.at(0),
    })?;
    // As in `resolve`.
    if value.contains('\0') {
        return Err(Violation::BadText.at(0));
    }
    Ok(Cow::Owned(value.into_owned()))
}
