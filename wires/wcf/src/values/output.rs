//! Elements, attributes and values as bytes of either form.
//!
//! The sink decides what is written, this file how: start tags or records, prefixes, words by number,
//! numbers in the notation of their form. It appends to the buffer of the message, and every call leaves
//! the document balanced but for the elements that are open.
//!
//! State: in binary form the place of the last text record, whose code becomes that of an end when its
//! element ends (`foldable`); in text form whether a start tag lacks its `>` (`in_tag`), and where the
//! names of open elements stand in the output, so that end tags copy them. A value that is no element
//! (`detached_value`) and a header inside a body (`part`) are written at the end of the buffer and taken off when
//! they are complete.
//!
//! Invariants:
//!
//! * Prefixes are single letters: the envelope has `s` and `a`, headers of parameters `h`, schema instance
//!   `i`; the sink gives out the others.
//! * Texts are escaped here, and have been checked for XML's characters by the sink.
//! * Words go through `Outgoing`, which counts what the peer has to be told: the same document written
//!   twice may differ, the second time with all words known (`soap::channel::compose`).
//! * `within` is asked when a composite opens or a scalar begins, so the output exceeds `most` by one value
//!   at the most. Spliced octets are not counted; they are in memory already.

mod detached_value;

use super::Form;
use crate::dictionary::{Outgoing, Term};
use crate::markup;
use crate::nbfx::{Item, Text, integer, records, xml};
use crate::text::{base64, escape, quote};
use bytes::Bytes;
use detached_value::{DetachedValue, put_name, put_text};
pub(super) use detached_value::{Named, XML};
use everywire_model::send_buffer::SPLICE;
use everywire_model::{Failure, Initiator, SendBuffer, Visit};
use std::io::Write;

/// A prefix: a letter, or 0 for none.
pub(super) type Letter = u8;

/// The prefix of the schema-instance namespace.
pub(super) const INSTANCE: Letter = b'i';

/// Where elements are written.
#[derive(Debug)]
pub(super) struct Output<'s> {
    pub(super) form: Form,
    words: &'s mut Outgoing,
    /// Sinks write into its flat part; large octets become splices of it.
    out: &'s mut SendBuffer,
    /// Binary: one more than the offset of the last record, if that is a text that may yet end its element.
    /// 0 if there is none.
    foldable: usize,
    /// Text: whether a start tag is not yet closed.
    in_tag: bool,
    /// The prefix of the element that started last, and where it stands: behind `<`, or at its record.
    last: (Letter, usize),
    /// Text: where the names of the open elements stand.
    open: Vec<(usize, usize)>,
    /// Where a part begins that is taken out when it is complete.
    part: Option<usize>,
    /// The value that is written apart from the elements.
    apart: Option<Box<DetachedValue>>,
    /// How long the output may become.
    most: usize,
}

impl<'s> Output<'s> {
    pub(super) fn new(form: Form, words: &'s mut Outgoing, out: &'s mut SendBuffer) -> Self {
        // What waits to be sent is of others.
        let most = if words.most == 0 { usize::MAX } else { out.flat().len().saturating_add(words.most) };
        let (foldable, in_tag, last, open) = (0, false, (0, 0), Vec::new());
        Self { form, words, out, foldable, in_tag, last, open, part: None, apart: None, most }
    }

    /// Whether there is room for more: what is few octets elsewhere may be many here.
    ///
    /// # Errors
    /// The message is larger than it may be. Large octets do not count, which lie where they came from.
    #[inline]
    pub(super) fn within(&mut self) -> Visit<()> {
        let size = self.out.flat().len();
        if size > self.most { Err(too_large(self.words.most)) } else { Ok(()) }
    }

    /// The start of an element.
    #[inline]
    pub(super) fn start(&mut self, prefix: Letter, name: &Term) {
        self.last = (prefix, self.out.flat().len());
        if self.form == Form::Text {
            return self.start_tag(prefix, name.as_str());
        }
        let number = self.words.number(name);
        let out = self.out.flat();
        match (number, prefix) {
            (Some(number), 0) => put_number(out, 0x42, number),
            (Some(number), _) => put_number(out, 0x44 + (prefix - b'a'), number),
            (None, _) => {
                out.push(if prefix == 0 { 0x40 } else { 0x5e + (prefix - b'a') });
                integer::put_string(name.as_str(), out);
            }
        }
        self.foldable = 0;
    }

    /// Gives the element that just started a prefix; `false` if it has one.
    #[cold]
    pub(super) fn prefix_last(&mut self, prefix: Letter) -> bool {
        let (before, at) = self.last;
        if before != 0 {
            return false;
        }
        self.last.0 = prefix;
        let out = self.out.flat();
        match (self.form, self.open.last_mut()) {
            (Form::Text, Some((from, to))) if *from <= out.len() => {
                out.splice(*from..*from, [prefix, b':']);
                *to += 2;
            }
            (Form::Text, _) => {}
            (Form::Binary, _) => {
                if let Some(code) = out.get_mut(at) {
                    let first = if *code == 0x42 { 0x44 } else { 0x5e };
                    *code = first + (prefix - b'a');
                }
            }
        }
        true
    }

    /// The start of an element in text form; it stays open for attributes.
    fn start_tag(&mut self, prefix: Letter, name: &str) {
        self.close_tag();
        let out = self.out.flat();
        out.push(b'<');
        let from = out.len();
        if prefix != 0 {
            out.extend_from_slice(&[prefix, b':']);
        }
        out.extend_from_slice(name.as_bytes());
        self.open.push((from, out.len()));
        self.in_tag = true;
    }

    /// Closes the start tag before content comes.
    fn close_tag(&mut self) {
        if std::mem::take(&mut self.in_tag) {
            self.out.flat().push(b'>');
        }
    }

    /// Declares a namespace at the element that just started.
    pub(super) fn xmlns(&mut self, prefix: Letter, namespace: &Term) {
        if self.form == Form::Text {
            let out = self.out.flat();
            out.extend_from_slice(b" xmlns");
            if prefix != 0 {
                out.extend_from_slice(&[b':', prefix]);
            }
            return quote(namespace.as_str(), out);
        }
        let number = self.words.number(namespace);
        let out = self.out.flat();
        out.push(0x08 + 2 * u8::from(number.is_some()) + u8::from(prefix != 0));
        if prefix != 0 {
            out.extend_from_slice(&[1, prefix]);
        }
        put_word(namespace, number, out);
    }

    /// The attribute that says that the element holds nothing.
    pub(super) fn nil(&mut self, name: &Term) {
        if self.form == Form::Text {
            self.out.flat().extend_from_slice(b" i:nil=\"true\"");
            return;
        }
        self.instance_attribute(name);
        self.out.flat().push(0x86);
    }

    /// The attribute that says the type of the element.
    pub(super) fn told_type(&mut self, attribute: &Term, prefix: Letter, local: &Term) {
        let spelled = || match prefix {
            0 => local.as_str().to_owned(),
            letter => format!("{}:{}", char::from(letter), local.as_str()),
        };
        if self.form == Form::Text {
            return put_text(INSTANCE, attribute, &spelled(), self.out.flat());
        }
        self.instance_attribute(attribute);
        let number = if prefix == 0 { None } else { self.words.number(local) };
        let out = self.out.flat();
        match number {
            Some(number) => {
                out.extend_from_slice(&[0xbc, prefix - b'a']);
                integer::put(number as usize, out);
            }
            // A name without a number is text; a prefix without a letter cannot be in a record of a
            // qualified name.
            None => records::sized(0x98, spelled().as_bytes(), out),
        }
    }

    /// The name of an attribute of schema instance, whose prefix is always `i`.
    fn instance_attribute(&mut self, name: &Term) {
        let number = self.words.number(name);
        put_name(INSTANCE, name, number, self.out.flat());
    }

    /// The end of the innermost element; in binary form, of the text before it if there is one.
    #[inline]
    pub(super) fn end(&mut self) {
        if self.form == Form::Text {
            return self.end_tag();
        }
        let out = self.out.flat();
        match self.foldable.checked_sub(1).and_then(|at| out.get_mut(at)) {
            Some(code) => *code |= 1,
            None => out.push(0x01),
        }
        self.foldable = 0;
    }

    /// The end of the innermost element, or of a value that is written apart.
    fn end_tag(&mut self) {
        if self.is_apart() {
            return self.end_apart();
        }
        let name = self.open.pop();
        let out = self.out.flat();
        if std::mem::take(&mut self.in_tag) {
            out.extend_from_slice(b"/>");
            return;
        }
        out.extend_from_slice(b"</");
        if let Some((from, to)) = name.filter(|(_, to)| *to <= out.len()) {
            out.extend_from_within(from..to);
        }
        out.push(b'>');
    }

    /// Text; the empty text is no record.
    pub(super) fn chars(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.form {
            Form::Text => {
                if self.is_apart() {
                    return self.out.flat().extend_from_slice(text.as_bytes());
                }
                self.close_tag();
                escape(text.as_bytes(), self.out.flat());
            }
            Form::Binary => self.sized(0x98, text.as_bytes()),
        }
    }

    /// Octets; in binary form one record, unlike those of Microsoft's writer, which keeps whole groups of three apart: one can be
    /// read without joining anything.
    pub(super) fn octets(&mut self, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        match self.form {
            Form::Text => {
                self.close_tag();
                base64::encode(octets, self.out.flat());
            }
            Form::Binary => self.sized(0x9e, octets),
        }
    }

    /// Octets from shared memory: in binary form a large part goes out from where it lies.
    pub(super) fn shared(&mut self, octets: &Bytes) {
        if self.form == Form::Text || octets.len() < SPLICE || self.part.is_some() {
            return self.octets(octets);
        }
        self.mark();
        records::sized_head(0x9e, octets.len(), self.out.flat());
        self.out.splice(octets.clone());
    }

    /// A whole number, and the end of its element.
    #[inline]
    pub(super) fn whole(&mut self, value: i64) {
        if self.form == Form::Text {
            self.close_tag();
            let out = self.out.flat();
            if value < 0 {
                out.push(b'-');
            }
            digits(value.unsigned_abs(), out);
            return self.end_tag();
        }
        self.foldable = 0;
        records::put_last_integer(value, self.out.flat());
    }

    /// An unsigned integer, which is text above the signed range, and the end of its element.
    pub(super) fn unsigned(&mut self, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.whole(value),
            Err(_) => {
                self.chars(&value.to_string());
                self.end();
            }
        }
    }

    /// A boolean.
    pub(super) fn boolean(&mut self, value: bool) {
        if self.form == Form::Text {
            return self.chars(if value { "true" } else { "false" });
        }
        self.mark();
        self.out.flat().push(if value { 0x86 } else { 0x84 });
    }

    /// A binary32 number, and the end of its element.
    pub(super) fn float(&mut self, value: f32) {
        self.real(&Text::F32(value), &records::single(value));
    }

    /// A binary64 number, and the end of its element.
    pub(super) fn double(&mut self, value: f64) {
        self.real(&Text::F64(value), &records::real(value));
    }

    fn real(&mut self, value: &Text<'_>, record: &Text<'_>) {
        match self.form {
            Form::Text => self.chars(&xml::lexical(value)),
            Form::Binary => self.record(record),
        }
        self.end();
    }

    /// A value that has a record of its own; `text` is its notation.
    pub(super) fn typed(&mut self, value: &Text<'_>, text: &str) {
        match self.form {
            Form::Text => self.chars(text),
            Form::Binary => self.record(value),
        }
    }

    /// A record of octets or text that may yet end its element.
    fn sized(&mut self, code: u8, octets: &[u8]) {
        self.mark();
        records::sized(code, octets, self.out.flat());
    }

    /// Any record that may yet end its element.
    fn record(&mut self, record: &Text<'_>) {
        self.mark();
        records::put(record, false, self.out.flat());
    }

    /// Text of the contract that stands for elements (`xs:any`), as [`markup::whole`] made it. In binary form it
    /// becomes records; its declarations are its own.
    ///
    /// # Errors
    /// It cannot be read again.
    pub(super) fn markup(&mut self, xml: &str) -> Visit<()> {
        if xml.is_empty() {
            return Ok(());
        }
        if self.form == Form::Text {
            self.close_tag();
            self.out.flat().extend_from_slice(xml.as_bytes());
            return Ok(());
        }
        let records = markup::binary(xml, true)?;
        self.out.flat().extend_from_slice(&records);
        self.foldable = 0;
        Ok(())
    }

    /// The qualified name of a namespace and a local part, which declares its prefix at the element that just started.
    pub(super) fn qualified(&mut self, prefix: Letter, namespace: &Term, local: &str) {
        self.xmlns(prefix, namespace);
        self.chars(&format!("{}:{local}", char::from(prefix)));
    }

    /// What comes next is taken out of the document when it is complete.
    /// One part at a time: a header has no header in it.
    pub(super) fn begin_part(&mut self) {
        self.close_tag();
        self.foldable = 0;
        self.part = Some(self.out.flat().len());
    }

    /// Whether a part was begun and not yet taken.
    pub(super) fn is_in_part(&self) -> bool {
        self.part.is_some()
    }

    /// The part that was begun, if one was.
    #[inline]
    pub(super) fn take_part(&mut self) -> Option<Vec<u8>> {
        let at = self.part.take()?;
        self.foldable = 0;
        let out = self.out.flat();
        Some(out.split_off(at.min(out.len())))
    }

    /// Begins an array record of an element: items of their plain width follow.
    pub(super) fn array(&mut self, prefix: Letter, name: &Term, item: Item, count: usize) {
        self.out.flat().push(0x03);
        self.start(prefix, name);
        let out = self.out.flat();
        out.extend_from_slice(&[0x01, item.code()]);
        integer::put(count, out);
    }

    /// The buffer, for items of an array record.
    /// The number of items was announced, so the sink must write exactly as many.
    pub(super) fn items(&mut self) -> &mut Vec<u8> {
        self.foldable = 0;
        self.out.flat()
    }

    fn mark(&mut self) {
        self.foldable = self.out.flat().len() + 1;
    }
}

/// A record of a name by its number; numbers below 128 are one byte.
#[inline]
fn put_number(out: &mut Vec<u8>, code: u8, number: u32) {
    match u8::try_from(number) {
        Ok(number @ ..0x80) => out.extend_from_slice(&[code, number]),
        _ => {
            out.push(code);
            integer::put(number as usize, out);
        }
    }
}

/// A word: by its number, or in place.
fn put_word(word: &Term, number: Option<u32>, out: &mut Vec<u8>) {
    match number {
        Some(number) => integer::put(number as usize, out),
        None => integer::put_string(word.as_str(), out),
    }
}

fn digits(value: u64, out: &mut Vec<u8>) {
    if value < 10 {
        out.push(b'0' + value as u8);
    } else {
        // A vector takes whatever is written.
        let _ = write!(out, "{value}");
    }
}

/// Raising either of the two bounds helps: the larger one counts (`SoapChannel::new`).
#[cold]
fn too_large(most: usize) -> Failure {
    Failure::over_limit(Initiator::Here, "bytes in a SOAP message", most + 1, most)
        .with_hint("raise MaxReceivedMessageSize in the address here, or the node's largest message")
}
