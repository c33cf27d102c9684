//! Writing what stands around bodies, in either form.
//!
//! `ElementWriter` writes envelopes, headers, faults and messages of reliable messaging to a buffer of its own. Its
//! callers are inside of this folder and have checked the names that they write, mostly literals; `end` repeats the name
//! that `start` was given.
//!
//! State: the writer of the form, which knows what may still be joined to the last bytes (the end of an element
//! to its text record in binary form, attributes to a start tag in text form), and the open elements.
//!
//! Invariants:
//!
//! * `xmlns` and `attribute` come right behind `start`. Nothing checks that.
//! * Names are written by their static numbers or in place, never as words of the session. Actions,
//!   addresses (`word`) and namespaces may become words, through `Outgoing`.
//! * Texts come from failures, addresses and contracts, so in text form what XML does not have is replaced
//!   (`text::clean`): a fault must reach its caller whatever is in it.
//! * `into_bytes` may leave elements open: a head ends inside the body.

use super::{Form, ids};
use crate::dictionary::{Outgoing, static_id};
use crate::nbfx::{self, Prefix, Record, Text, Word};
use crate::text;

/// The words of what stands alone: none of a session, since messages may get lost, or go on to others.
pub(super) fn alone(form: Form) -> Outgoing {
    match form {
        Form::Text => Outgoing::inline(),
        Form::Binary => Outgoing::statics(),
    }
}

/// What `write` puts, for somewhere inside an envelope.
pub(super) fn written(form: Form, write: impl FnOnce(&mut ElementWriter<'_>)) -> Vec<u8> {
    let mut words = alone(form);
    let mut put = ElementWriter::new(form, &mut words);
    write(&mut put);
    put.into_bytes()
}

/// Bytes that there is room for at first. Most of what is written fits, so it is not moved: a copy that growing leaves behind
/// would keep a password in memory.
const ROOM: usize = 512;

/// Writes elements to bytes. Prefixes are letters, or empty for none.
pub(super) struct ElementWriter<'w> {
    words: &'w mut Outgoing,
    writer: Writer,
    /// Prefix and name, for the end tags of text form.
    open: Vec<(&'w str, &'w str)>,
}

/// What knows the form.
enum Writer {
    Text(text::Writer),
    Binary(nbfx::Writer),
}

impl<'w> ElementWriter<'w> {
    pub(super) fn new(form: Form, words: &'w mut Outgoing) -> Self {
        let writer = match form {
            Form::Text => Writer::Text(text::Writer::with_capacity(ROOM)),
            Form::Binary => Writer::Binary(nbfx::Writer::with_capacity(ROOM)),
        };
        Self { words, writer, open: Vec::new() }
    }

    /// What was written; elements may still be open.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self.writer {
            Writer::Text(writer) => writer.into_bytes(),
            Writer::Binary(writer) => writer.into_bytes(),
        }
    }

    /// Bytes written so far; a start tag that still takes attributes ends here.
    /// For the place of a detail: what comes there is written by somebody else.
    pub(super) fn len(&mut self) -> usize {
        self.raw(b"");
        match &self.writer {
            Writer::Text(writer) => writer.len(),
            Writer::Binary(writer) => writer.len(),
        }
    }

    /// The prefix must have been declared, here or around.
    pub(super) fn start(&mut self, prefix: &'w str, name: &'w str) {
        self.open.push((prefix, name));
        match &mut self.writer {
            Writer::Text(writer) => writer.start(prefix, name),
            Writer::Binary(writer) => writer.put(&Record::Element(Prefix::of(prefix), named(name))),
        }
    }

    /// Declares a namespace for a prefix, or the default one.
    pub(super) fn xmlns(&mut self, prefix: &str, namespace: &str) {
        match &mut self.writer {
            Writer::Text(writer) => writer.xmlns(prefix, &text::clean(namespace)),
            Writer::Binary(writer) => {
                let word = self.words.id(namespace).map_or(Word::Inline(namespace), Word::Id);
                writer.put(&Record::Xmlns(Some(prefix).filter(|prefix| !prefix.is_empty()), word));
            }
        }
    }

    /// Numbers 0 and 1 are records of their own, as Microsoft writes them.
    pub(super) fn attribute(&mut self, prefix: &str, name: &str, value: &str) {
        match &mut self.writer {
            Writer::Text(writer) => writer.attribute(prefix, name, &text::clean(value)),
            Writer::Binary(writer) => {
                let value = match value {
                    "0" => Text::Zero,
                    "1" => Text::One,
                    _ => Text::Chars(value),
                };
                writer.put(&Record::Attribute(Prefix::of(prefix), named(name), value));
            }
        }
    }

    /// Text that is not worth a word of the session.
    pub(super) fn chars(&mut self, text: &str) {
        match &mut self.writer {
            Writer::Text(writer) => writer.text(&text::clean(text)),
            Writer::Binary(writer) => writer.chars(text),
        }
    }

    /// Text that comes again and again.
    /// Actions and addresses: in a session they are sent in full once.
    pub(super) fn word(&mut self, text: &str) {
        if let Writer::Binary(writer) = &mut self.writer
            && let Some(id) = self.words.id(text)
        {
            return writer.text(Text::Word(id));
        }
        self.chars(text);
    }

    /// The identifier of a message, as content of an element that ends right after it. Returns where its changing part is.
    pub(super) fn unique(&mut self, guid: &[u8; 16]) -> usize {
        match &mut self.writer {
            Writer::Text(writer) => {
                writer.raw(ids::urn(guid).as_bytes());
                writer.len() - ids::UUID
            }
            Writer::Binary(writer) => {
                writer.text(Text::UniqueId(*guid));
                writer.len() - guid.len()
            }
        }
    }

    /// The end of the innermost element that is open.
    pub(super) fn end(&mut self) {
        let Some((prefix, name)) = self.open.pop() else { return };
        match &mut self.writer {
            Writer::Text(writer) => writer.end(prefix, name),
            Writer::Binary(writer) => writer.end(),
        }
    }

    /// An element with text.
    pub(super) fn leaf(&mut self, prefix: &'w str, name: &'w str, text: &str) {
        self.start(prefix, name);
        self.chars(text);
        self.end();
    }

    /// Elements that were written already, in the same form.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        match &mut self.writer {
            Writer::Text(writer) => writer.raw(bytes),
            Writer::Binary(writer) => writer.raw(bytes),
        }
    }
}

/// A name, by its number if it is a static word.
fn named(name: &str) -> Word<'_> {
    static_id(name).map_or(Word::Inline(name), Word::Id)
}
