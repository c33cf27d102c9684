//! XML as the contract languages in XML need it: one bounded tree of elements, each with its place.
//!
//! The tree borrows from the text: names are slices of it, and values are copied only where they contain a
//! reference. Namespaces are not resolved here; names keep their prefix, and WSDL resolves them with its own
//! table.
//!
//! A document type may be named and may even declare entities, as some contracts in the wild do; nobody
//! fetches it and nothing is expanded: a reference to such an entity stays in the text as it is written. So
//! no document can grow by being read ("billion laughs"), and none can make us open a file or a connection.
//!
//! Bounds: bytes of a file, elements inside one another, attributes of an element, and parts of a file. Depth
//! bounds the recursion of everything that walks the tree, its destructor too. The first mistake ends the
//! reading: behind it nobody knows which element is open.

use crate::report::{Problem, Report, Span};
use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::escape::{EscapeError, resolve_predefined_entity, unescape};
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use std::borrow::Cow;

/// Bytes of a file, which is checked before anything is read of it.
pub(crate) const BYTES: usize = 4 << 20;
/// Elements inside one another.
const DEPTH: usize = 64;
/// Attributes of one element.
const ATTRIBUTES: usize = 64;
/// Elements, attributes and pieces of text of a file.
const NODES: usize = 250_000;
/// Characters of a name that messages show.
const SHOWN: usize = 64;

/// An element.
pub(crate) struct Element<'a> {
    /// It keeps its prefix (`xs:element`).
    pub(crate) name: &'a str,
    /// Where its name stands.
    pub(crate) span: Span,
    pub(crate) attributes: Vec<Attribute<'a>>,
    pub(crate) children: Vec<Node<'a>>,
}

/// An attribute.
pub(crate) struct Attribute<'a> {
    pub(crate) name: &'a str,
    /// References are resolved, except those to entities that the document type declares.
    pub(crate) value: Cow<'a, str>,
    /// Where its value stands.
    pub(crate) span: Span,
}

/// What stands in an element.
pub(crate) enum Node<'a> {
    /// Text, or a CDATA section, or one resolved reference: neighbours are not joined.
    Text(Cow<'a, str>),
    Element(Element<'a>),
}

impl<'a> Element<'a> {
    /// By its name with the prefix; a second one of the same name was refused by the reader.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Elements directly inside, in order.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// All text in it, that of the elements in it too.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.gather(&mut out);
        out
    }

    fn gather(&self, out: &mut String) {
        for node in &self.children {
            match node {
                Node::Text(text) => out.push_str(text),
                Node::Element(element) => element.gather(out),
            }
        }
    }
}

/// Reads a file's text; where it is not well-formed, the report says so and nothing comes back.
pub(crate) fn parse<'a>(text: &'a str, file: u32, report: &mut Report) -> Option<Element<'a>> {
    read(text, file, report, true)
}

/// As [`parse`], of a language whose files have no document type: one that has is refused.
pub(crate) fn parse_untyped<'a>(text: &'a str, file: u32, report: &mut Report) -> Option<Element<'a>> {
    read(text, file, report, false)
}

fn read<'a>(text: &'a str, file: u32, report: &mut Report, typed: bool) -> Option<Element<'a>> {
    match (Parser { text, file, open: Vec::new(), root: None, nodes: 0, typed, declares: false }).run() {
        Ok(element) => Some(element),
        Err(problem) => {
            report.add(*problem);
            None
        }
    }
}

/// A text as it stands in an element or an attribute. Characters that XML cannot say become `?`. Line ends
/// and tabs become references, because an XML reader would turn them into spaces in an attribute (XML 1.0,
/// 3.3.3).
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            c if is_char(c) => out.push(c),
            _ => out.push('?'),
        }
    }
}

/// A comment that holds this text, on one line. Two hyphens would end it (XML 1.0, 2.5).
pub(crate) fn comment(text: &str) -> String {
    let mut out = String::from("<!-- ");
    for c in text.chars() {
        match c {
            '-' if out.ends_with('-') => out.push_str(" -"),
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_char(c) => out.push(c),
            _ => out.push('?'),
        }
    }
    out + " -->"
}

/// Whether XML 1.0 (2.2, Char) has this character.
fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// A name from the file, short enough for a message.
pub(crate) fn shown(name: &str) -> String {
    match name.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("`{}...`", name.get(..at).unwrap_or_default()),
        None => format!("`{name}`"),
    }
}

/// Boxed, because results of this type are returned in every step and the good ones are small.
type Stop = Box<Problem>;

/// State: the elements that are open, outermost first, and the finished root. `quick_xml` finds the events
/// and compares the names of closing tags; counting, depth and characters are checked here.
struct Parser<'a> {
    text: &'a str,
    file: u32,
    open: Vec<Element<'a>>,
    root: Option<Element<'a>>,
    nodes: usize,
    /// Whether there may be a document type.
    typed: bool,
    /// Whether the document type declares something of its own.
    declares: bool,
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<Element<'a>, Stop> {
        if self.text.len() > BYTES {
            return Err(self.stop(0, format!("the file is larger than {} MiB", BYTES >> 20)));
        }
        // One pass over the whole text, so that later steps need not look at characters one by one.
        if let Some((at, c)) = self.text.char_indices().find(|(_, c)| !is_char(*c)) {
            return Err(self.stop(at, format!("XML has no character {c:?}")));
        }
        // Positions of the reader count from behind the byte order mark; `skipped` makes them positions of
        // the file again.
        let content = self.text.trim_start_matches('\u{feff}');
        let skipped = self.text.len() - content.len();
        let mut reader = Reader::from_str(content);
        loop {
            let at = skipped + usize::try_from(reader.buffer_position()).unwrap_or_default();
            match reader.read_event() {
                Ok(Event::Eof) => break,
                Ok(event) => self.event(event, at)?,
                Err(error) => {
                    let at = skipped + usize::try_from(reader.error_position()).unwrap_or_default();
                    return Err(self.ill_formed(&error, at));
                }
            }
        }
        if let Some(open) = self.open.last() {
            let message = format!("{} is never closed", shown(open.name));
            return Err(Box::new(Problem::new(open.span, message).expected([format!("`</{}>`", open.name)])));
        }
        match self.root.take() {
            Some(root) => Ok(root),
            None => Err(self.stop(self.text.len(), "the file has no element")),
        }
    }

    fn event(&mut self, event: Event<'a>, at: usize) -> Result<(), Stop> {
        match event {
            Event::Start(start) => {
                let element = self.element(&start, at)?;
                if self.open.len() == DEPTH {
                    let message = format!("more than {DEPTH} elements inside one another");
                    return Err(Box::new(Problem::new(element.span, message)));
                }
                self.open.push(element);
            }
            Event::Empty(start) => {
                let element = self.element(&start, at)?;
                self.close(element);
            }
            Event::End(_) => match self.open.pop() {
                Some(element) => self.close(element),
                None => return Err(self.stop(at, "this closes an element that is not open")),
            },
            Event::Text(text) => {
                let text = self.find(&text).map_or("", |(_, text)| text);
                if self.open.is_empty() && !text.trim().is_empty() {
                    let skip = text.len() - text.trim_start().len();
                    return Err(self.stop(at + skip, "text outside of any element"));
                }
                self.add_text(Cow::Borrowed(text), at)?;
            }
            Event::CData(data) => {
                if self.open.is_empty() {
                    return Err(self.stop(at, "text outside of any element"));
                }
                let text = self.find(&data).map_or("", |(_, text)| text);
                self.add_text(Cow::Borrowed(text), at)?;
            }
            Event::GeneralRef(reference) => self.reference(&reference, at)?,
            Event::DocType(_) if !self.typed => {
                return Err(self.stop(at, "this language has no document types, and no entities of its own"));
            }
            Event::DocType(declaration) => {
                if self.root.is_some() || !self.open.is_empty() {
                    return Err(self.stop(at, "a document type stands before the first element"));
                }
                self.declares = declaration.contains(&b'[');
            }
            Event::Decl(declaration) => self.encoding(&declaration, at)?,
            Event::Comment(_) | Event::PI(_) | Event::Eof => {}
        }
        Ok(())
    }

    /// An element and its attributes; `at` is the byte of its `<`.
    fn element(&mut self, start: &BytesStart<'a>, at: usize) -> Result<Element<'a>, Stop> {
        self.count(at)?;
        if self.root.is_some() {
            return Err(self.stop(at, "a second element where the file should end"));
        }
        let (name_at, name) = self.find(start.name().0).unwrap_or((at, ""));
        let span = self.span(name_at, name.len());
        if name.is_empty() {
            return Err(Box::new(Problem::new(span, "an element without a name")));
        }
        let mut attributes: Vec<Attribute<'a>> = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| {
                let place = error_place(&error).map_or(span, |within| self.span(at + 1 + within, 1));
                Box::new(Problem::new(place, short(&error.to_string())))
            })?;
            if attributes.len() == ATTRIBUTES {
                let message = format!("more than {ATTRIBUTES} attributes of one element");
                return Err(Box::new(Problem::new(span, message)));
            }
            self.count(at)?;
            let (_, name) = self.find(attribute.key.0).unwrap_or((at, ""));
            let (value_at, raw) = self.find(&attribute.value).unwrap_or((at, ""));
            let span = self.span(value_at, raw.len());
            // A reference may name a character that XML has not (`&#0;`), which the pass over the text cannot
            // see.
            let value = match unescape(raw) {
                _ if raw.contains('<') => Err("`<` in the value of an attribute".to_owned()),
                Ok(value) if !value.chars().all(is_char) => Err("a character that XML has not".to_owned()),
                Ok(value) => Ok(value),
                Err(EscapeError::UnrecognizedEntity(..)) if self.declares => Ok(Cow::Borrowed(raw)),
                Err(error) => Err(short(&error.to_string())),
            };
            let value = value.map_err(|message| Box::new(Problem::new(span, message)))?;
            attributes.push(Attribute { name, value, span });
        }
        Ok(Element { name, span, attributes, children: Vec::new() })
    }

    /// Hands a finished element to the one around it, or makes it the root.
    fn close(&mut self, element: Element<'a>) {
        match self.open.last_mut() {
            Some(parent) => parent.children.push(Node::Element(element)),
            None => self.root = Some(element),
        }
    }

    fn add_text(&mut self, text: Cow<'a, str>, at: usize) -> Result<(), Stop> {
        let Some(parent) = self.open.last_mut() else { return Ok(()) };
        parent.children.push(Node::Text(text));
        self.count(at)
    }

    /// One reference in the text: a number, one of the five names of XML, or a name that the document type
    /// may declare.
    fn reference(&mut self, reference: &BytesRef<'a>, at: usize) -> Result<(), Stop> {
        let (_, name) = self.find(reference).unwrap_or((at, ""));
        let span = self.span(at, name.len() + 2);
        if self.open.is_empty() {
            return Err(Box::new(Problem::new(span, "text outside of any element")));
        }
        let text = match reference.resolve_char_ref() {
            Ok(Some(c)) if is_char(c) => Cow::Owned(c.to_string()),
            Ok(None) => match resolve_predefined_entity(name) {
                Some(text) => Cow::Borrowed(text),
                None if self.declares => {
                    let end = at.saturating_add(name.len() + 2);
                    Cow::Borrowed(self.text.get(at..end).unwrap_or_default())
                }
                None => {
                    let message = format!("the entity {} is not defined", shown(name));
                    let known = ["`&lt;`", "`&gt;`", "`&amp;`", "`&quot;`", "`&apos;`"];
                    return Err(Box::new(Problem::new(span, message).expected(known)));
                }
            },
            _ => return Err(Box::new(Problem::new(span, "a character that XML has not"))),
        };
        self.add_text(text, at)
    }

    /// The declaration is believed only as far as the bytes are UTF-8 anyway: a file that says ISO 8859-1 and
    /// is ASCII is read, one that is not ASCII would be read wrongly.
    fn encoding(&self, declaration: &BytesDecl<'a>, at: usize) -> Result<(), Stop> {
        match declaration.encoding() {
            Some(Ok(encoding)) if !encoding.eq_ignore_ascii_case(b"utf-8") && !self.text.is_ascii() => {
                Err(self.stop(at, "only UTF-8 is read"))
            }
            _ => Ok(()),
        }
    }

    /// Charges one part of the file; `at` is the place for the message.
    fn count(&mut self, at: usize) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > NODES { Err(self.stop(at, "the file has too many parts")) } else { Ok(()) }
    }

    /// What `quick_xml` found wrong, in the words of all other mistakes where there are such.
    fn ill_formed(&self, error: &Error, at: usize) -> Stop {
        match error {
            Error::IllFormed(IllFormedError::MismatchedEndTag { found, .. }) => {
                let open = self.open.last().map_or("", |element| element.name);
                let message = format!("{} is closed where {} is open", shown(found), shown(open));
                let problem = Problem::new(self.span(at, found.len() + 3), message);
                Box::new(problem.expected([format!("`</{open}>`")]))
            }
            Error::IllFormed(IllFormedError::UnmatchedEndTag(found)) => {
                let message = format!("{} is closed but not open", shown(found));
                Box::new(Problem::new(self.span(at, found.len() + 3), message))
            }
            other => self.stop(at, short(&other.to_string())),
        }
    }

    /// Where a piece of the text stands. The reader lends slices of our own text, so the distance of the
    /// pointers is the place. None for a slice that is not of the text, such as the empty one that stands for
    /// no content.
    fn find(&self, piece: &[u8]) -> Option<(usize, &'a str)> {
        let at = (piece.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        Some((at, self.text.get(at..at.checked_add(piece.len())?)?))
    }

    fn stop(&self, at: usize, message: impl Into<String>) -> Stop {
        Box::new(Problem::new(self.span(at, 1), message))
    }

    fn span(&self, at: usize, length: usize) -> Span {
        let place = |at: usize| {
            let at = at.min(self.text.len());
            // A message may point into the middle of a character; spans must not, or slicing would fail
            // later.
            let at = (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or_default();
            u32::try_from(at).unwrap_or(u32::MAX)
        };
        Span { file: self.file, start: place(at), end: place(at.saturating_add(length)) }
    }
}

/// A foreign message, short enough for one line.
fn short(message: &str) -> String {
    message.chars().filter(|c| !c.is_control()).take(160).collect()
}

/// Where in a tag an attribute is wrong, in bytes.
fn error_place(error: &quick_xml::events::attributes::AttrError) -> Option<usize> {
    use quick_xml::events::attributes::AttrError;
    match error {
        AttrError::ExpectedEq(at)
        | AttrError::ExpectedValue(at)
        | AttrError::UnquotedValue(at)
        | AttrError::ExpectedQuote(at, _)
        | AttrError::Duplicated(at, _) => Some(*at),
    }
}
