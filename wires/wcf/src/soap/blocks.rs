//! Header blocks that somebody here brings or asks for: `{namespace}name`, with text or elements in it.
//!
//! What begins with `<` and is whole XML stands for elements, everything else for text. Octets are what the wire itself writes.
//!
//! Of the headers that came only `list` reads the contents, and only when somebody asks: a hop that looks
//! for its own count of hops, a policy, a servant. Binary form is turned into text first, so that one
//! reader serves both.

use super::cursor::{Cursor, CursorEvent, Document, Element};
use super::outline::is_own;
use super::put::{ElementWriter, alone};
use super::{Form, Soap};
use crate::dictionary::StringTable;
use crate::markup;
use crate::nbfx::{self, xml};
use crate::text::{self, check_chars};
use crate::values::{ReaderQuotas, TEXT};
use everywire_model::headers::Content;
use everywire_model::visit::Visit;
use everywire_model::{Body, Failure, Header, Initiator, Kind};
use memchr::memmem;

/// The longest headers that are shown as text: words of a dictionary are longer than their numbers.
/// In bytes of the document up to its body.
const LONGEST: usize = 32 << 10;

/// How long they may become as text.
const SHOWN: usize = 32 * LONGEST;

/// Appends a header; `scoped`: whether the prefix `s` stands for envelopes there.
///
/// # Errors
/// Its name is none of SOAP, or the session's own; its text has characters that XML lacks.
pub(super) fn put(form: Form, soap: Soap, scoped: bool, header: &Header, out: &mut Vec<u8>) -> Visit<()> {
    let (namespace, local) = name(header, soap)?;
    check_chars(namespace)?;
    if let Content::Text(text) = &header.content {
        check_chars(text)?;
    }
    // Text that only looks like markup is text.
    let marked = match &header.content {
        Content::Text(text) if text.starts_with('<') && is_whole(text) => Some(text),
        _ => None,
    };
    // The attribute needs the prefix of envelopes, which the message that is passed on may spell otherwise.
    let declared = (header.must_understand && !scoped).then(|| soap.namespace());
    let prefix = if namespace.is_empty() { "" } else { "h" };
    let mut words = alone(form);
    let mut put = ElementWriter::new(form, &mut words);
    put.start(prefix, local);
    put.xmlns(prefix, namespace);
    if let Some(declared) = declared {
        put.xmlns("s", declared);
    }
    if header.must_understand {
        put.attribute("s", "mustUnderstand", "1");
    }
    match (&header.content, marked) {
        (Content::Bytes(raw), _) => put.raw(raw),
        (_, Some(marked)) if form == Form::Text => put.raw(marked.as_bytes()),
        (_, Some(marked)) => {
            let mut records = nbfx::Writer::new();
            markup::put(marked, &ReaderQuotas::default(), true, &mut records)?;
            put.raw(&records.into_bytes());
        }
        (Content::Text(text), None) => put.chars(text),
    }
    put.end();
    out.append(&mut put.into_bytes());
    Ok(())
}

/// Whether a header can be written into a message: what [`put`] would say of it.
pub(crate) fn check(header: &Header, soap: Soap) -> Visit<()> {
    put(Form::Text, soap, true, header, &mut Vec::new())
}

/// The namespace and the name of a header.
fn name(header: &Header, soap: Soap) -> Visit<(&str, &str)> {
    let split = || match header.name.strip_prefix('{') {
        Some(rest) => rest.rsplit_once('}'),
        None => Some(("", header.name.as_str())),
    };
    match split() {
        Some((namespace, local)) if text::is_local(local) && !is_own(namespace, soap) => {
            Ok((namespace, local))
        }
        _ => {
            let what = format!("`{}` names no header of SOAP", header.name);
            Err(Failure::bad_argument(what).with_hint(
                "write `{namespace}name`; addressing, security and reliable messaging are each connection's own",
            ))
        }
    }
}

/// Whether a text is elements, each with its end.
fn is_whole(text: &str) -> bool {
    let wrapped = format!("<w>{text}</w>");
    let (bytes, words, quotas) = (wrapped.as_bytes(), &StringTable::default(), &ReaderQuotas::default());
    Document { form: Form::Text, bytes, words, quotas }.check().is_ok()
}

/// Our block: how many hops a call has passed, in digits.
pub(crate) const HOPS: &str = "{urn:everywire:hops}Hops";
/// What is looked for before headers are taken apart: its namespace.
const MARK: &[u8] = b"urn:everywire:hops";

/// How many hops the headers beside a body tell of.
///
/// # Errors
/// As [`headers`]: also of headers too long to be read, if they may tell of some.
pub(crate) fn hops(body: &Body, words: &StringTable, quotas: &ReaderQuotas) -> Visit<u32> {
    let others = body.headers().is_some_and(|held| !held.raw().is_empty());
    // Names may be declared in front of the headers, too.
    let document = body.bytes.get(..body.base).unwrap_or_default();
    // Most messages have no such block, and are not taken apart for it.
    if !others || memmem::find(document, MARK).is_none() {
        return Ok(0);
    }
    let all = headers(body, words, quotas)?;
    Ok(all.iter().filter(|header| header.name == HOPS).map(Header::number).max().unwrap_or_default())
}

/// The headers beside a body, but for those of its connection.
///
/// # Errors
/// They cannot be read, or are longer than anybody should read.
pub(crate) fn headers(body: &Body, words: &StringTable, quotas: &ReaderQuotas) -> Visit<Vec<Header>> {
    let Some(held) = body.headers().filter(|held| !held.raw().is_empty()) else { return Ok(Vec::new()) };
    let document = body.bytes.get(..body.base).unwrap_or_default();
    let length = document.len().max(held.raw().len());
    if length > LONGEST {
        return Err(Failure::over_limit(Initiator::Peer, "bytes of headers to show", length, LONGEST));
    }
    if body.dialect == TEXT {
        return list(document, quotas);
    }
    let (xml, failure) = xml::to_xml_partly(document, |id| words.word(id), SHOWN);
    // That the document ends in the body's start does not matter.
    if let Some(failure) = failure.filter(|failure| failure.kind() == Kind::LimitExceeded) {
        return Err(failure);
    }
    list(xml.as_bytes(), quotas)
}

/// The headers at the start of a document in text.
fn list(bytes: &[u8], quotas: &ReaderQuotas) -> Visit<Vec<Header>> {
    let words = &StringTable::default();
    let mut cursor = Cursor::new(Document { form: Form::Text, bytes, words, quotas });
    let root = cursor.root()?;
    let soap = Soap::of_word(&root.namespace).unwrap_or(Soap::V12);
    let mut all = Vec::new();
    if cursor.child()?.is_none_or(|list| list.local != "Header") {
        return Ok(all);
    }
    while let Some(block) = cursor.child()? {
        // Each connection has its own of those.
        if is_own(&block.namespace, soap) {
            cursor.skip()?;
            continue;
        }
        let must_understand =
            matches!(block.attribute(soap.namespace(), "mustUnderstand"), Some("1" | "true"));
        let name = format!("{{{}}}{}", block.namespace, block.local);
        let content = Content::Text(content(&mut cursor, SHOWN)?);
        all.push(Header { name, content, must_understand });
    }
    Ok(all)
}

/// What is inside the element that was opened last, as text or XML that needs nothing around it.
fn content(cursor: &mut Cursor<'_>, most: usize) -> Visit<String> {
    let (mut plain, mut marked, mut open) = (String::new(), text::Writer::new(), Vec::new());
    let mut has_elements = false;
    // Prefixes that the start tag before this place declares for values; None where something is behind the tag already.
    let mut declared: Option<Vec<String>> = None;
    loop {
        match cursor.next()? {
            CursorEvent::Open(element) => {
                has_elements = true;
                declared = Some(start(cursor, &element, &mut marked));
                open.push(element.local);
            }
            CursorEvent::Text(text) => {
                let text = text.into_text();
                if let Some(mut known) = declared.take_if(|_| !text.is_empty()) {
                    declare(cursor, &text, &mut known, &mut marked);
                }
                plain.push_str(&text);
                marked.text(&text);
            }
            CursorEvent::Close => {
                declared = None;
                let Some(local) = open.pop() else { break };
                // What has nothing in it has an end tag, too.
                marked.raw(b"");
                marked.end("", &local);
            }
            CursorEvent::End => break,
        }
        if marked.len() > most {
            let what = "bytes of a header to show";
            return Err(Failure::over_limit(Initiator::Peer, what, marked.len(), most));
        }
    }
    // White space around elements stays, as they came.
    Ok(if has_elements { String::from_utf8(marked.into_bytes()).unwrap_or_default() } else { plain })
}

/// Appends a start tag, which stays open, with what it needs; the prefixes that it declares for values.
fn start(cursor: &Cursor<'_>, element: &Element<'_>, xml: &mut text::Writer) -> Vec<String> {
    xml.start("", &element.local);
    xml.xmlns("", &element.namespace);
    // A value may be a qualified name, whose prefix must not be one of those that are made here.
    let letter = ["p", "q", "r"].into_iter().find(|letter| !cursor.declares(letter)).unwrap_or("attribute");
    let made = |(number, _)| format!("{letter}{number}");
    let named =
        element.attributes.iter().enumerate().filter(|(_, attribute)| !attribute.namespace.is_empty());
    let mut known: Vec<String> = named.map(made).collect();
    for (number, attribute) in element.attributes.iter().enumerate() {
        if attribute.namespace.is_empty() {
            xml.attribute("", &attribute.local, &attribute.value);
        } else {
            let prefix = format!("{letter}{number}");
            xml.xmlns(&prefix, &attribute.namespace);
            xml.attribute(&prefix, &attribute.local, &attribute.value);
        }
        declare(cursor, &attribute.value, &mut known, xml);
    }
    known
}

/// Declares the prefix of a value that may be a qualified name, where its document does.
fn declare(cursor: &Cursor<'_>, value: &str, known: &mut Vec<String>, xml: &mut text::Writer) {
    let Some(prefix) = markup::looks_qualified(value).filter(|prefix| *prefix != "xml") else { return };
    if known.iter().any(|before| before == prefix) {
        return;
    }
    if let Some(namespace) = cursor.declared(prefix) {
        xml.xmlns(prefix, namespace);
        known.push(prefix.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_may_have_braces() {
        let of = |name: &str| {
            let header = Header::text(name, "1");
            super::name(&header, Soap::V12).map(|(namespace, local)| (namespace.to_owned(), local.to_owned()))
        };
        assert_eq!(
            of("{http://{host}/shop}Ticket").unwrap(),
            ("http://{host}/shop".to_owned(), "Ticket".to_owned())
        );
        assert!(of("{urn:shop}").is_err() && of("{urn:shop").is_err());
    }
}
