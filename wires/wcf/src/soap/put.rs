//! Writing what stands around bodies, in either form.
//!
//! `Put` writes envelopes, headers, faults and messages of reliable messaging to a buffer of its own. Its
//! callers are inside of this folder and have checked the names that they write, mostly literals; `end` repeats the name
//! that `start` was given.
//!
//! State: the bytes so far, the open elements, and what may still be joined to the last bytes: the end of
//! an element to its text record in binary form (`foldable`), attributes to a start tag in text form
//! (`unfinished`).
//!
//! Invariants:
//!
//! * `xmlns`, `attribute` and `language` come right behind `start`. Nothing checks that.
//! * Names are written by their static numbers or in place, never as words of the session. Actions,
//!   addresses (`word`) and namespaces may become words, through `Outgoing`.
//! * Texts come from failures, addresses and contracts, so `escape` replaces what XML does not have: a
//!   fault must reach its caller whatever is in it.
//! * `into_bytes` may leave elements open: a head ends inside the body.

use super::{Form, ids};
use crate::dictionary::{Outgoing, static_id};
use crate::nbfx::{integer, records};

/// The words of what stands alone: none of a session, since messages may get lost, or go on to others.
pub(super) fn alone(form: Form) -> Outgoing {
    match form {
        Form::Text => Outgoing::inline(),
        Form::Binary => Outgoing::statics(),
    }
}

/// What `write` puts, for somewhere inside an envelope.
pub(super) fn written(form: Form, write: impl FnOnce(&mut Put<'_>)) -> Vec<u8> {
    let mut words = alone(form);
    let mut put = Put::new(form, &mut words);
    write(&mut put);
    put.into_bytes()
}

/// Writes elements to bytes. Prefixes are single letters, or 0 for none.
pub(super) struct Put<'w> {
    form: Form,
    words: &'w mut Outgoing,
    out: Vec<u8>,
    /// Prefix and name, for the end tags of text form.
    open: Vec<(u8, &'w str)>,
    /// Binary: where the code of the last text record is, which may yet end its element.
    foldable: Option<usize>,
    /// Text: whether the last start tag still wants its `>`.
    unfinished: bool,
}

impl<'w> Put<'w> {
    pub(super) fn new(form: Form, words: &'w mut Outgoing) -> Self {
        Self {
            form,
            words,
            out: Vec::with_capacity(512),
            open: Vec::new(),
            foldable: None,
            unfinished: false,
        }
    }

    /// What was written; elements may still be open.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.finish_tag();
        self.out
    }

    /// Bytes written so far; a start tag that still takes attributes ends here.
    /// For the place of a detail: what comes there is written by somebody else.
    pub(super) fn len(&mut self) -> usize {
        self.finish_tag();
        self.foldable = None;
        self.out.len()
    }

    /// The prefix must have been declared, here or around.
    pub(super) fn start(&mut self, prefix: u8, name: &'w str) {
        self.finish_tag();
        self.foldable = None;
        self.open.push((prefix, name));
        match self.form {
            Form::Text => {
                self.out.push(b'<');
                self.qualified(prefix, name);
                self.unfinished = true;
            }
            Form::Binary => self.name(prefix, name, [0x40, 0x44, 0x5e]),
        }
    }

    /// Declares a namespace for a prefix, or the default one.
    pub(super) fn xmlns(&mut self, prefix: u8, namespace: &str) {
        match self.form {
            Form::Text => {
                self.out.extend_from_slice(b" xmlns");
                if prefix != 0 {
                    self.out.extend_from_slice(&[b':', prefix]);
                }
                self.quoted(namespace);
            }
            Form::Binary => {
                let id = self.words.id(namespace);
                self.out.push(0x08 + u8::from(prefix != 0) + if id.is_some() { 2 } else { 0 });
                if prefix != 0 {
                    self.out.extend_from_slice(&[1, prefix]);
                }
                match id {
                    Some(id) => integer::put(id as usize, &mut self.out),
                    None => integer::put_string(namespace, &mut self.out),
                }
            }
        }
    }

    /// Numbers 0 and 1 are records of their own, as Microsoft writes them.
    pub(super) fn attribute(&mut self, prefix: u8, name: &str, value: &str) {
        match self.form {
            Form::Text => {
                self.out.push(b' ');
                self.qualified(prefix, name);
                self.quoted(value);
            }
            Form::Binary => {
                self.name(prefix, name, [0x04, 0x0c, 0x26]);
                match value {
                    "0" => self.out.push(0x80),
                    "1" => self.out.push(0x82),
                    _ => records::sized(0x98, value.as_bytes(), &mut self.out),
                }
            }
        }
    }

    /// `xml:lang`, in English; no dictionary has the word.
    pub(super) fn language(&mut self) {
        self.out.extend_from_slice(match self.form {
            Form::Text => b" xml:lang=\"en-US\"",
            Form::Binary => b"\x05\x03xml\x04lang\x98\x05en-US",
        });
    }

    /// Text that is not worth a word of the session.
    pub(super) fn chars(&mut self, text: &str) {
        self.finish_tag();
        match self.form {
            Form::Text => escape(text, &mut self.out),
            Form::Binary if text.is_empty() => {}
            Form::Binary => {
                self.foldable = Some(self.out.len());
                records::sized(0x98, text.as_bytes(), &mut self.out);
            }
        }
    }

    /// Text that comes again and again.
    /// Actions and addresses: in a session they are sent in full once.
    pub(super) fn word(&mut self, text: &str) {
        let id = if self.form == Form::Binary { self.words.id(text) } else { None };
        let Some(id) = id else { return self.chars(text) };
        self.foldable = Some(self.out.len());
        self.out.push(0xaa);
        integer::put(id as usize, &mut self.out);
    }

    /// The identifier of a message, as content of an element that ends right after it. Returns where its changing part is.
    pub(super) fn unique(&mut self, guid: &[u8; 16]) -> usize {
        self.finish_tag();
        match self.form {
            Form::Text => {
                self.out.extend_from_slice(ids::URN.as_bytes());
                let at = self.out.len();
                ids::put(guid, &mut self.out);
                at
            }
            Form::Binary => {
                self.foldable = Some(self.out.len());
                self.out.push(0xac);
                self.out.extend_from_slice(guid);
                self.out.len() - guid.len()
            }
        }
    }

    /// The end of the innermost element that is open.
    pub(super) fn end(&mut self) {
        let Some((prefix, name)) = self.open.pop() else { return };
        match self.form {
            Form::Text if self.unfinished => {
                self.out.extend_from_slice(b"/>");
                self.unfinished = false;
            }
            Form::Text => {
                self.out.extend_from_slice(b"</");
                self.qualified(prefix, name);
                self.out.push(b'>');
            }
            Form::Binary => match self.foldable.take().and_then(|at| self.out.get_mut(at)) {
                Some(code) => *code |= 1,
                None => self.out.push(0x01),
            },
        }
    }

    /// An element with text.
    pub(super) fn leaf(&mut self, prefix: u8, name: &'w str, text: &str) {
        self.start(prefix, name);
        self.chars(text);
        self.end();
    }

    /// Elements that were written already, in the same form.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.finish_tag();
        self.foldable = None;
        self.out.extend_from_slice(bytes);
    }

    fn finish_tag(&mut self) {
        if self.unfinished {
            self.out.push(b'>');
            self.unfinished = false;
        }
    }

    fn qualified(&mut self, prefix: u8, name: &str) {
        if prefix != 0 {
            self.out.extend_from_slice(&[prefix, b':']);
        }
        self.out.extend_from_slice(name.as_bytes());
    }

    fn quoted(&mut self, value: &str) {
        self.out.extend_from_slice(b"=\"");
        // White space in attributes becomes blanks when it is read, unless it is a reference (XML 1.0, 3.3.3).
        for piece in value.split_inclusive(['\t', '\n']) {
            escape(piece.trim_end_matches(['\t', '\n']), &mut self.out);
            match piece.as_bytes().last() {
                Some(b'\t') => self.out.extend_from_slice(b"&#x9;"),
                Some(b'\n') => self.out.extend_from_slice(b"&#xA;"),
                _ => {}
            }
        }
        self.out.push(b'"');
    }

    /// A name, by its number if it is a static word: `plain` without prefix, `by_id` and `inline` with one.
    fn name(&mut self, prefix: u8, name: &str, [plain, by_id, inline]: [u8; 3]) {
        let id = static_id(name);
        let letter = prefix.wrapping_sub(b'a');
        self.out.push(match (prefix, id) {
            (0, None) => plain,
            (0, Some(_)) => plain + 2,
            (_, Some(_)) => by_id + letter,
            (_, None) => inline + letter,
        });
        match id {
            Some(id) => integer::put(id as usize, &mut self.out),
            None => integer::put_string(name, &mut self.out),
        }
    }
}

/// Appends text with what XML reserves replaced; characters that XML does not have become U+FFFD.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    for character in text.chars() {
        match character {
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '&' => out.extend_from_slice(b"&amp;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\r' => out.extend_from_slice(b"&#xD;"),
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            }
            _ => out.extend_from_slice("\u{fffd}".as_bytes()),
        }
    }
}
