//! XML text as binary XML, and XML that is taken out of a document or put into one.
//!
//! Descriptions, some headers and values that are XML are given as text, and binary form needs records. Names
//! go in place: such text is sent once, and its words are in no dictionary.
//!
//! A piece of a document needs the namespaces that are declared around it; text that is put into another must
//! not take any from there. `Piece` finds out which prefixes are not declared inside, and declares them at
//! the outermost elements.

use crate::limits::MAX_DEPTH;
use crate::nbfx::{Prefix, Record, Text as Value, Word, Writer};
use crate::text::{self, Attribute, Event, Reader, is_local};
use crate::values::{Quota, ReaderQuotas};
use crate::violations::Violation;
use everywire_model::visit::Visit;
use everywire_model::{Budget, Failure};
use std::collections::HashMap;

/// Elements with their own namespace declarations, as records; `spaces`: with the space between them.
pub(crate) fn binary(xml: &str, spaces: bool) -> Visit<Vec<u8>> {
    let quotas = ReaderQuotas {
        max_depth: u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX),
        // This side wrote it: only depth is bounded, as a reader on the other side bounds it.
        max_bytes_per_read: u32::MAX,
        ..ReaderQuotas::default()
    };
    let mut writer = Writer::new();
    put(xml, &quotas, spaces, &mut writer)?;
    Ok(writer.into_bytes())
}

/// Appends elements; `spaces`: with the space between them.
pub(crate) fn put(xml: &str, quotas: &ReaderQuotas, spaces: bool, writer: &mut Writer) -> Visit<()> {
    // The reader wants one root; the markup may be several elements.
    let document = format!("<x>{xml}</x>");
    let mut reader = Reader::new(document.as_bytes(), quotas);
    reader.next()?;
    while let Some(event) = reader.next()? {
        match event {
            Event::Start(tag) => {
                writer.put(&Record::Element(Prefix::of(tag.prefix), Word::Inline(tag.local)));
                for attribute in tag.attributes() {
                    let attribute = attribute?;
                    let value = &*attribute.value;
                    writer.put(&match (attribute.prefix, attribute.local) {
                        ("", "xmlns") => Record::Xmlns(None, Word::Inline(value)),
                        ("xmlns", declared) => Record::Xmlns(Some(declared), Word::Inline(value)),
                        (of, local) => {
                            let value = if value.is_empty() { Value::Empty } else { Value::Chars(value) };
                            Record::Attribute(Prefix::of(of), Word::Inline(local), value)
                        }
                    });
                }
            }
            // That of the root.
            Event::End if reader.depth() == 0 => {}
            Event::End => writer.end(),
            Event::Text(text) if (spaces && !text.is_empty()) || !text.trim().is_empty() => {
                writer.chars(&text);
            }
            Event::Text(_) => {}
        }
    }
    Ok(())
}

/// What is inside an element, written anew, and what it needs of the elements around.
pub(crate) struct Piece {
    text: String,
    /// The outermost elements.
    holes: Vec<Hole>,
}

/// An outermost element.
struct Hole {
    /// Behind its name in the text.
    at: usize,
    /// Prefixes that are not declared inside, each with whether a name has it: texts only look as if they had one. The empty
    /// one stands for names without a prefix. In the order in which they came.
    free: Vec<(String, bool)>,
    /// Where each stands in that list: whoever wrote the piece decides how many there are, so they are not searched one by one.
    places: HashMap<String, usize>,
}

impl Hole {
    fn need(&mut self, prefix: &str, named: bool) {
        if let Some((_, before)) = self.places.get(prefix).and_then(|at| self.free.get_mut(*at)) {
            *before |= named;
        } else {
            self.places.insert(prefix.to_owned(), self.free.len());
            self.free.push((prefix.to_owned(), named));
        }
    }
}

/// What prefixes stand for, and those that an element declares with how deep it is.
type Scope = Vec<(usize, String)>;

impl Piece {
    /// Reads what is inside the open element, and its end.
    pub(crate) fn read(reader: &mut Reader<'_>, quotas: &ReaderQuotas, budget: &mut Budget) -> Visit<Self> {
        let (mut out, mut holes, mut scope) = (text::Writer::new(), Vec::<Hole>::new(), Scope::new());
        let mut open = Vec::new();
        let mut charged = 0;
        while let Some(event) = reader.next()? {
            match event {
                Event::Start(tag) => {
                    let attributes = tag.attributes().collect::<Visit<Vec<_>>>()?;
                    out.start(tag.prefix, tag.local);
                    if open.is_empty() {
                        holes.push(Hole { at: out.len(), free: Vec::new(), places: HashMap::new() });
                    }
                    open.push((tag.prefix, tag.local));
                    for attribute in &attributes {
                        check_declaration(attribute).map_err(|violation| violation.at(reader.position()))?;
                        out.attribute(attribute.prefix, attribute.local, &attribute.value);
                        let declared = declared(attribute).map(|prefix| (open.len(), prefix.to_owned()));
                        scope.extend(declared);
                    }
                    let Some(hole) = holes.last_mut() else { continue };
                    let mut need = |prefix: &str, named: bool| {
                        if prefix != "xml" && !scope.iter().any(|(_, known)| known == prefix) {
                            hole.need(prefix, named);
                        }
                    };
                    need(tag.prefix, true);
                    // A text without a prefix may be a qualified name, too.
                    need("", false);
                    for attribute in attributes.iter().filter(|attribute| declared(attribute).is_none()) {
                        if !attribute.prefix.is_empty() {
                            need(attribute.prefix, true);
                        }
                        looks_qualified(&attribute.value).into_iter().for_each(|prefix| need(prefix, false));
                    }
                }
                Event::End => {
                    let Some((prefix, local)) = open.pop() else { break };
                    out.end(prefix, local);
                    scope.retain(|(depth, _)| *depth <= open.len());
                }
                Event::Text(text) => {
                    quotas.check(Quota::StringContentLength, text.len())?;
                    out.text(&text);
                    if let (Some(prefix), Some(hole)) = (looks_qualified(&text), holes.last_mut())
                        && !open.is_empty()
                        && !scope.iter().any(|(_, known)| known == prefix)
                    {
                        hole.need(prefix, false);
                    }
                }
            }
            budget.charge_bytes((out.len() - charged) as u64)?;
            charged = out.len();
        }
        let text =
            String::from_utf8(out.into_bytes()).map_err(|_| Violation::BadText.at(reader.position()))?;
        Ok(Self { text, holes })
    }

    /// The text that needs nothing around it. `of` tells what a prefix stands for there, and whether that must be known.
    pub(crate) fn fill(
        self,
        budget: &mut Budget,
        mut of: impl FnMut(&str, bool, &mut Budget) -> Visit<Option<String>>,
    ) -> Visit<String> {
        let (mut whole, mut from) = (Vec::with_capacity(self.text.len()), 0);
        for Hole { at, free, .. } in self.holes {
            whole.extend_from_slice(self.text.get(from..at).unwrap_or_default().as_bytes());
            from = at;
            for (prefix, named) in free {
                let Some(namespace) = of(&prefix, named, budget)? else {
                    if named && !prefix.is_empty() {
                        return Err(Violation::UnknownPrefix.at(at));
                    }
                    continue;
                };
                // Each element has its own, however long the name is.
                budget.charge_bytes((prefix.len() + namespace.len()) as u64)?;
                let colon = if prefix.is_empty() { "" } else { ":" };
                whole.extend_from_slice(format!(" xmlns{colon}{prefix}").as_bytes());
                text::quote(&namespace, &mut whole);
            }
        }
        whole.extend_from_slice(self.text.get(from..).unwrap_or_default().as_bytes());
        String::from_utf8(whole).map_err(|_| Violation::BadText.at(from))
    }
}

/// What no declaration may say (Namespaces in XML 1.0, 2.2 and 3): that a prefix stands for nothing, or that `xml` and `xmlns`, or
/// their namespaces, mean anything else.
fn check_declaration(attribute: &Attribute<'_>) -> Result<(), Violation> {
    const XML: &str = "http://www.w3.org/XML/1998/namespace";
    const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
    let Some(prefix) = declared(attribute) else { return Ok(()) };
    let is_right = match (prefix, &*attribute.value) {
        ("xml", namespace) => namespace == XML,
        ("xmlns", _) | (_, XML | XMLNS) => false,
        (prefix, namespace) => prefix.is_empty() || !namespace.is_empty(),
    };
    if is_right { Ok(()) } else { Err(Violation::Declaration) }
}

/// The prefix that an attribute declares.
fn declared<'s>(attribute: &'s Attribute<'_>) -> Option<&'s str> {
    match (attribute.prefix, attribute.local) {
        ("", "xmlns") => Some(""),
        ("xmlns", prefix) => Some(prefix),
        _ => None,
    }
}

/// The prefix of a text that may be a qualified name: nobody but its reader knows.
pub(crate) fn looks_qualified(text: &str) -> Option<&str> {
    let (prefix, local) = text.trim().split_once(':')?;
    (is_local(prefix) && is_local(local)).then_some(prefix)
}

/// XML of this side as it can stand in any document; a declaration before it is left out. `depth`: how many elements may be inside
/// one another.
///
/// # Errors
/// `BadArgument`: it is not well-formed, or has a prefix that it does not declare.
pub(crate) fn whole(xml: &str, depth: usize) -> Visit<String> {
    let trimmed = xml.trim_start();
    let declaration = trimmed.strip_prefix("<?xml").filter(|rest| rest.starts_with([' ', '\t', '\r', '\n']));
    let xml = declaration.and_then(|rest| rest.split_once("?>")).map_or(xml, |(_, xml)| xml);
    let quotas = ReaderQuotas {
        max_depth: u32::try_from(depth.saturating_add(1)).unwrap_or(u32::MAX),
        max_bytes_per_read: u32::MAX,
        max_string_content_length: u32::MAX,
        ..ReaderQuotas::default()
    };
    let mut budget = Budget { bytes: u64::MAX, ..Budget::default() };
    let document = format!("<x>{xml}</x>");
    let mut reader = Reader::new(document.as_bytes(), &quotas);
    let mut piece = || {
        reader.next()?;
        let piece = Piece::read(&mut reader, &quotas, &mut budget)?;
        // What ends the element around it is not its own.
        reader.next()?;
        piece.fill(&mut budget, |prefix, named, _| Ok((named && prefix.is_empty()).then(String::new)))
    };
    piece().map_err(|failure| {
        let what = format!("a value that stands for elements is not their XML: {}", failure.message());
        Failure::bad_argument(what)
    })
}
