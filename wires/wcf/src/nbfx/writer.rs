//! Writing records, and values in the records that Microsoft's writer chooses for them.
//!
//! It writes parts of documents of which somebody knows each record: headers, faults, metadata, tests.
//! Bodies of calls go through `values::output`, which also chooses words and namespaces. Starts and ends of
//! elements are the caller's to match.

use super::record::{Prefix, Record, Text, Word};
use super::{integer, records};

/// Writes a document, or a part of one.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// Where the code of the last record is, if that is a text that may yet end its element.
    foldable: Option<usize>,
}

#[allow(clippy::len_without_is_empty)]
impl Writer {
    /// An empty document.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Records that were written already.
    pub fn raw(&mut self, records: &[u8]) {
        self.foldable = None;
        self.out.extend_from_slice(records);
    }

    /// Writes a record as it is. An end is a record of its own; [`Writer::end`] joins it to the text before it.
    /// Nothing is checked: a list that is not closed, or an attribute behind a text, is written as it is
    /// told.
    pub fn put(&mut self, record: &Record<'_>) {
        self.foldable = None;
        match *record {
            Record::Element(prefix, name) => self.name(prefix, name, [0x40, 0x44, 0x5e]),
            Record::Attribute(prefix, name, text) => {
                self.name(prefix, name, [0x04, 0x0c, 0x26]);
                records::put(&text, false, &mut self.out);
            }
            Record::Xmlns(prefix, namespace) => {
                let by_id = u8::from(matches!(namespace, Word::Id(_)));
                self.out.push(0x08 + 2 * by_id + u8::from(prefix.is_some()));
                prefix.inspect(|prefix| integer::put_string(prefix, &mut self.out));
                self.word(namespace);
            }
            Record::Text(text, ends) => {
                let at = self.out.len();
                records::put(&text, ends, &mut self.out);
                self.foldable =
                    Some(at).filter(|_| !ends && !matches!(text, Text::ListStart | Text::ListEnd));
            }
            Record::End => self.out.push(0x01),
            Record::Comment(text) => {
                self.out.push(0x02);
                integer::put_string(text, &mut self.out);
            }
            Record::Array => self.out.push(0x03),
            Record::Items(item, count, data) => {
                self.out.push(item.code());
                integer::put(count as usize, &mut self.out);
                self.out.extend_from_slice(data);
            }
        }
    }

    /// Ends the innermost element, in the text record before it if there is one.
    pub fn end(&mut self) {
        match self.foldable.take().and_then(|at| self.out.get_mut(at)) {
            Some(code) => *code |= 1,
            None => self.put(&Record::End),
        }
    }

    /// Text; the empty text is no record.
    pub fn chars(&mut self, text: &str) {
        if !text.is_empty() {
            self.text(Text::Chars(text));
        }
    }

    /// A text record that may end its element.
    pub fn text(&mut self, text: Text<'_>) {
        self.put(&Record::Text(text, false));
    }

    /// The three codes are those for a name in place without a prefix, for a number with a letter, and for
    /// a name with a letter; the others follow from the first (MC-NBFX 2.2.1, 2.2.2).
    fn name(&mut self, prefix: Prefix<'_>, name: Word<'_>, [plain, by_id, inline]: [u8; 3]) {
        match (prefix, name) {
            (Prefix::None, Word::Inline(_)) => self.out.push(plain),
            (Prefix::None, Word::Id(_)) => self.out.push(plain + 2),
            (Prefix::Letter(letter), Word::Id(_)) => self.out.push(by_id + letter),
            (Prefix::Letter(letter), Word::Inline(_)) => self.out.push(inline + letter),
            (Prefix::Inline(prefix), _) => {
                self.out.push(plain + if matches!(name, Word::Id(_)) { 3 } else { 1 });
                integer::put_string(prefix, &mut self.out);
            }
        }
        self.word(name);
    }

    fn word(&mut self, word: Word<'_>) {
        match word {
            Word::Inline(text) => integer::put_string(text, &mut self.out),
            Word::Id(id) => integer::put(id as usize, &mut self.out),
        }
    }
}
