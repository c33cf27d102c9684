//! The head of a message that is passed on: start tags as they came, with one connection's own headers in place of another's.
//!
//! What is written: the envelope's start tag as it came; the list of headers with this connection's
//! addressing and security first, then the other's blocks that stay, then those that somebody here brings;
//! and the body's start tag as it came. The caller appends the rest of the document.

use super::blocks;
use super::names::{ADDRESSING, AUGUST};
use super::outline::{Block, Outline, Scope};
use super::put::{ElementWriter, alone};
use super::template::HeadContents;
use super::{Dialect, Form};
use crate::dictionary::StringTable;
use crate::nbfx::{Reader, Record, Text, Word, Writer};
use crate::text;
use crate::violations::Violation;
use everywire_model::message::needs_contract;
use everywire_model::visit::Visit;
use everywire_model::{Header, Headers};
use std::ops::Range;

/// What the headers of this connection say.
pub(super) struct ConnectionHeaders<'a> {
    /// What is asked for; nothing leaves the action as it came.
    pub(super) action: Option<&'a str>,
    /// All else; its headers are those of security.
    pub(super) saying: HeadContents<'a>,
    /// Changes: those that came with the body, and those beside it.
    /// A block that one of them replaces or removes does not go on.
    pub(super) changes: [Option<&'a Headers>; 2],
}

/// A head to send, and where the rest begins in the document that it belongs to.
pub(super) struct RebuiltHead {
    /// Up to the end of the body's start tag.
    pub(super) head: Vec<u8>,
    /// Where its identifier is, for a template.
    pub(super) hole: Option<usize>,
    /// Offset in the document that came.
    pub(super) inside: usize,
}

/// The head of a message that is passed on.
pub(super) fn make(
    dialect: Dialect,
    outline: &Outline<'_>,
    document: &[u8],
    own: &ConnectionHeaders<'_>,
) -> Visit<RebuiltHead> {
    let soap = dialect.soap;
    if outline.soap != soap {
        return Err(needs_contract("an envelope of another version of SOAP"));
    }
    let part = |range: &Range<usize>| document.get(range.clone()).unwrap_or_default();
    // No words of a session: the numbers in what follows are those of the other one.
    let mut words = alone(dialect.form);
    let mut put = ElementWriter::new(dialect.form, &mut words);
    put.raw(part(&outline.envelope));
    let mut changed = own.changes.iter().flatten().filter(|changes| !changes.edits().is_empty()).peekable();
    let edited = changed.peek().is_some();
    // Addressing, security and reliable messaging are each connection's own.
    let stays = |block: &Block<'_>| {
        !block.is_own(soap)
            && (!edited || own.changes.iter().flatten().all(|changes| changes.keeps(&block.name())))
    };
    let kept: Vec<&Block<'_>> = outline.blocks.iter().filter(|block| stays(block)).collect();
    let brought: Vec<&Header> = own.changes.iter().flatten().flat_map(|changes| changes.brought()).collect();
    let mut hole = None;
    if dialect.addressing || !own.saying.headers.is_empty() || !kept.is_empty() || !brought.is_empty() {
        let (scope, end) = match &outline.header {
            Some((range, scope)) => {
                put.raw(part(range));
                (*scope, Some(end_tag(dialect.form, part(range))))
            }
            None => {
                put.start("s", "Header");
                if !outline.scope.soap {
                    put.xmlns("s", soap.namespace());
                }
                (Scope { soap: true, ..outline.scope }, None)
            }
        };
        if dialect.addressing {
            let action = outline.action.as_ref().map(|(range, action)| (part(range), &**action));
            hole = addressing(&mut put, scope, soap.namespace(), own, action);
        }
        if !own.saying.headers.is_empty() {
            if !scope.soap {
                return Err(needs_contract(
                    "an envelope with another prefix, where messages say who sends them,",
                ));
            }
            put.raw(own.saying.headers);
        }
        for block in kept {
            // SOAP 1.1 with addressing as its users' matter: the address leads to the next hop now.
            match own.saying.to.filter(|_| block.local == "To" && is_addressing(&block.namespace)) {
                Some(to) => put.raw(&readdressed(document, block, to)),
                None => put.raw(part(&block.range)),
            }
        }
        for header in brought {
            let mut bytes = Vec::new();
            blocks::put(dialect.form, soap, scope.soap, header, &mut bytes)?;
            put.raw(&bytes);
        }
        match end {
            Some(end) => put.raw(&end),
            None => put.end(),
        }
    }
    put.raw(part(&outline.body));
    Ok(RebuiltHead { head: put.into_bytes(), hole, inside: outline.body.end })
}

/// Writes the headers of addressing. Returns where the identifier is.
fn addressing(
    put: &mut ElementWriter<'_>,
    scope: Scope,
    soap: &str,
    own: &ConnectionHeaders<'_>,
    action: Option<(&[u8], &str)>,
) -> Option<usize> {
    // The prefixes of these headers may mean something else in the envelope that came: then each header
    // declares its own.
    let open = |put: &mut ElementWriter<'_>, name, demands| {
        put.start("a", name);
        if !scope.addressing {
            put.xmlns("a", ADDRESSING);
        }
        if demands {
            if !scope.soap {
                put.xmlns("s", soap);
            }
            put.attribute("s", "mustUnderstand", "1");
        }
    };
    // An action that stays goes as it came, with the attributes that it has.
    match (own.action, action) {
        (Some(asked), Some((came, said))) if asked == said => put.raw(came),
        (None, Some((came, _))) => put.raw(came),
        (Some(asked), _) => {
            open(put, "Action", true);
            put.word(asked);
            put.end();
        }
        (None, None) => {}
    }
    own.saying.correlation(put, open)
}

/// Whether addresses of messages are of this namespace.
fn is_addressing(namespace: &str) -> bool {
    matches!(namespace, ADDRESSING | AUGUST)
}

/// A header of text with another text in it.
/// Its start tag, the new address, and its end tag; in text form only.
fn readdressed(document: &[u8], block: &Block<'_>, to: &str) -> Vec<u8> {
    let start = document.get(block.range.start..block.inside).unwrap_or_default();
    let mut out = start.to_vec();
    if out.ends_with(b"/>") {
        out.truncate(out.len() - 2);
        out.push(b'>');
    }
    text::escape(to.as_bytes(), &mut out);
    out.extend_from_slice(&end_tag(Form::Text, start));
    out
}

/// The end of an element that starts so.
fn end_tag(form: Form, start: &[u8]) -> Vec<u8> {
    match form {
        Form::Binary => vec![0x01],
        Form::Text => {
            let name = start.strip_prefix(b"<").unwrap_or(start);
            let len = name.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'));
            [b"</", name.get(..len.unwrap_or(name.len())).unwrap_or_default(), b">"].concat()
        }
    }
}

/// A word that is none of a session.
/// Static words keep their numbers: everybody has those.
fn spelled<'w>(word: Word<'w>, words: &'w StringTable, at: usize) -> Visit<Word<'w>> {
    match word {
        Word::Id(id) if !id.is_multiple_of(2) => {
            words.word(id).map(Word::Inline).ok_or_else(|| Violation::UnknownWord.at(at))
        }
        word => Ok(word),
    }
}

/// A document in binary XML without numbers of a session.
/// It is copied record by record. The session that it goes to has words of its own, under other numbers.
pub(super) fn spell_out(document: &[u8], words: &StringTable) -> Visit<Vec<u8>> {
    let (mut reader, mut writer) = (Reader::new(document), Writer::new());
    loop {
        let at = reader.position();
        let Some(record) = reader.read()? else { return Ok(writer.into_bytes()) };
        let spelled = |word| spelled(word, words, at);
        let text = |text: Text<'_>| -> Visit<Option<String>> {
            let (before, id) = match text {
                Text::Word(id) => (String::new(), id),
                Text::QName(letter, id) => (format!("{}:", char::from(b'a' + letter.min(25))), id),
                _ => return Ok(None),
            };
            match spelled(Word::Id(id))? {
                Word::Inline(word) => Ok(Some(before + word)),
                Word::Id(_) => Ok(None),
            }
        };
        match record {
            Record::Element(prefix, name) => {
                let name = spelled(name)?;
                writer.put(&Record::Element(prefix, name));
            }
            Record::Xmlns(prefix, namespace) => writer.put(&Record::Xmlns(prefix, spelled(namespace)?)),
            Record::Attribute(prefix, name, value) => {
                let said = text(value)?;
                let value = said.as_deref().map_or(value, Text::Chars);
                writer.put(&Record::Attribute(prefix, spelled(name)?, value));
            }
            Record::Text(value, ends) => {
                let said = text(value)?;
                let value = said.as_deref().map_or(value, Text::Chars);
                writer.put(&Record::Text(value, ends));
            }
            other => writer.put(&other),
        }
    }
}
