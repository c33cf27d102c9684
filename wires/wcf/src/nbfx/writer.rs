//! Writing records, and values in the records that Microsoft's writer chooses for them.
//!
//! It writes parts of documents of which somebody knows each record: headers, faults, metadata, tests.
//! Bodies of calls go through `values::output`, which also chooses words and namespaces. Starts and ends of
//! elements are the caller's to match.

use super::record::{Item, Prefix, Record, Text, Word};
use super::{integer, records};

/// Writes a document, or a part of one.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// Where the code of the last record is, if that is a text that may yet end its element.
    foldable: Option<usize>,
}

impl Writer {
    /// An empty document.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
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

    /// Octets: whole groups of three first, so that readers can view each record as base64, then the rest.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (groups, rest) = bytes.split_at(bytes.len() - bytes.len() % 3);
        for part in [groups, rest] {
            if !part.is_empty() {
                self.text(Text::Bytes(part));
            }
        }
    }

    /// An integer, in the fewest bytes.
    pub fn integer(&mut self, value: i64) {
        self.text(records::integral(value));
    }

    /// An unsigned integer; above the signed range it is text.
    pub fn unsigned(&mut self, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => self.chars(&value.to_string()),
        }
    }

    /// A binary32 number; whole numbers become integers, and a negative zero loses its sign.
    pub fn float(&mut self, value: f32) {
        self.text(records::single(value));
    }

    /// A binary64 number; as [`Writer::float`], and narrowed to binary32 where nothing is lost.
    pub fn double(&mut self, value: f64) {
        self.text(records::real(value));
    }

    /// A boolean.
    pub fn boolean(&mut self, value: bool) {
        self.text(if value { Text::True } else { Text::False });
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

    /// An array of items of the element that was given before: name, attributes and [`Record::End`] are the caller's.
    pub fn items(&mut self, item: Item, data: &[u8]) {
        let count = u32::try_from(data.len() / item.width()).unwrap_or(u32::MAX);
        self.put(&Record::Items(item, count, data));
    }
}
