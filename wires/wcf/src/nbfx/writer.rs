//! Writing records, and values in the records that Microsoft's writer chooses for them.

use super::integer;
use super::record::{Decimal, Item, Prefix, Record, Text, Word};

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
    pub fn put(&mut self, record: &Record<'_>) {
        self.foldable = None;
        match *record {
            Record::Element(prefix, name) => self.name(prefix, name, [0x40, 0x44, 0x5e]),
            Record::Attribute(prefix, name, text) => {
                self.name(prefix, name, [0x04, 0x0c, 0x26]);
                self.text_record(&text, false);
            }
            Record::Xmlns(prefix, namespace) => {
                let by_id = u8::from(matches!(namespace, Word::Id(_)));
                self.out.push(0x08 + 2 * by_id + u8::from(prefix.is_some()));
                prefix.inspect(|prefix| self.string(prefix));
                self.word(namespace);
            }
            Record::Text(text, ends) => {
                let at = self.out.len();
                self.text_record(&text, ends);
                self.foldable =
                    Some(at).filter(|_| !ends && !matches!(text, Text::ListStart | Text::ListEnd));
            }
            Record::End => self.out.push(0x01),
            Record::Comment(text) => {
                self.out.push(0x02);
                self.string(text);
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
        self.text(match value {
            0 => Text::Zero,
            1 => Text::One,
            _ => match (i8::try_from(value), i16::try_from(value), i32::try_from(value)) {
                (Ok(value), ..) => Text::I8(value),
                (_, Ok(value), _) => Text::I16(value),
                (_, _, Ok(value)) => Text::I32(value),
                _ => Text::I64(value),
            },
        });
    }

    /// An unsigned integer; above the signed range it is text.
    pub fn unsigned(&mut self, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => self.chars(&value.to_string()),
        }
    }

    /// A binary32 number; whole numbers become integers, and a negative zero loses its sign.
    #[allow(clippy::cast_possible_truncation)]
    pub fn float(&mut self, value: f32) {
        if is_integer(value.into()) { self.integer(value as i64) } else { self.text(Text::F32(value)) }
    }

    /// A binary64 number; as [`Writer::float`], and narrowed to binary32 where nothing is lost.
    #[allow(clippy::cast_possible_truncation)]
    pub fn double(&mut self, value: f64) {
        let narrow = value as f32;
        if is_integer(value) {
            self.integer(value as i64);
        } else if narrow.is_finite() && f64::from(narrow) == value {
            self.text(Text::F32(narrow));
        } else {
            self.text(Text::F64(value));
        }
    }

    /// A boolean.
    pub fn boolean(&mut self, value: bool) {
        self.text(if value { Text::True } else { Text::False });
    }

    /// A text record that may end its element.
    pub fn text(&mut self, text: Text<'_>) {
        self.put(&Record::Text(text, false));
    }

    fn name(&mut self, prefix: Prefix<'_>, name: Word<'_>, [plain, by_id, inline]: [u8; 3]) {
        match (prefix, name) {
            (Prefix::None, Word::Inline(_)) => self.out.push(plain),
            (Prefix::None, Word::Id(_)) => self.out.push(plain + 2),
            (Prefix::Letter(letter), Word::Id(_)) => self.out.push(by_id + letter),
            (Prefix::Letter(letter), Word::Inline(_)) => self.out.push(inline + letter),
            (Prefix::Inline(prefix), _) => {
                self.out.push(plain + if matches!(name, Word::Id(_)) { 3 } else { 1 });
                self.string(prefix);
            }
        }
        self.word(name);
    }

    fn word(&mut self, word: Word<'_>) {
        match word {
            Word::Inline(text) => self.string(text),
            Word::Id(id) => integer::put(id as usize, &mut self.out),
        }
    }

    fn string(&mut self, text: &str) {
        integer::put(text.len(), &mut self.out);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn text_record(&mut self, text: &Text<'_>, ends: bool) {
        let end = u8::from(ends);
        macro_rules! fixed {
            ($code:literal, $bytes:expr) => {{
                self.out.push($code | end);
                self.out.extend_from_slice($bytes);
            }};
        }
        match text {
            Text::Zero => self.out.push(0x80 | end),
            Text::One => self.out.push(0x82 | end),
            Text::False => self.out.push(0x84 | end),
            Text::True => self.out.push(0x86 | end),
            Text::I8(value) => fixed!(0x88, &value.to_le_bytes()),
            Text::I16(value) => fixed!(0x8a, &value.to_le_bytes()),
            Text::I32(value) => fixed!(0x8c, &value.to_le_bytes()),
            Text::I64(value) => fixed!(0x8e, &value.to_le_bytes()),
            Text::F32(value) => fixed!(0x90, &value.to_le_bytes()),
            Text::F64(value) => fixed!(0x92, &value.to_le_bytes()),
            Text::Decimal(value) => fixed!(0x94, &decimal(value)),
            Text::DateTime(value) => fixed!(0x96, &value.to_le_bytes()),
            Text::Chars(value) => self.sized(0x98 | end, value.as_bytes()),
            Text::Bytes(value) => self.sized(0x9e | end, value),
            Text::ListStart => self.out.push(0xa4),
            Text::ListEnd => self.out.push(0xa6 | end),
            Text::Empty => self.out.push(0xa8 | end),
            Text::Word(id) => {
                self.out.push(0xaa | end);
                integer::put(*id as usize, &mut self.out);
            }
            Text::UniqueId(value) => fixed!(0xac, value),
            Text::TimeSpan(value) => fixed!(0xae, &value.to_le_bytes()),
            Text::Uuid(value) => fixed!(0xb0, value),
            Text::U64(value) => fixed!(0xb2, &value.to_le_bytes()),
            Text::Bool(value) => fixed!(0xb4, &[u8::from(*value)]),
            Text::Wide(value) => self.sized(0xb6 | end, value),
            Text::QName(letter, id) => {
                self.out.extend([0xbc | end, *letter]);
                integer::put(*id as usize, &mut self.out);
            }
        }
    }

    /// A record with a length of 8, 16 or 32 bits, whichever suffices.
    fn sized(&mut self, code: u8, bytes: &[u8]) {
        match (u8::try_from(bytes.len()), u16::try_from(bytes.len())) {
            (Ok(len), _) => self.out.extend([code, len]),
            (_, Ok(len)) => {
                self.out.push(code + 2);
                self.out.extend(len.to_le_bytes());
            }
            _ => {
                self.out.push(code + 4);
                self.out.extend((bytes.len() as u32).to_le_bytes());
            }
        }
        self.out.extend_from_slice(bytes);
    }

    /// An array of items of the element that was given before: name, attributes and [`Record::End`] are the caller's.
    pub fn items(&mut self, item: Item, data: &[u8]) {
        let count = u32::try_from(data.len() / item.width()).unwrap_or(u32::MAX);
        self.put(&Record::Items(item, count, data));
    }
}

/// Whether the number is whole and fits 64 bits.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn is_integer(value: f64) -> bool {
    (i64::MIN as f64..i64::MAX as f64).contains(&value) && (value as i64) as f64 == value
}

/// The bytes of a decimal.
pub fn decimal(value: &Decimal) -> [u8; 16] {
    let sign = if value.negative { 0x80 } else { 0 };
    let (high, low) = (value.magnitude >> 64 & u128::from(u32::MAX), value.magnitude & u128::from(u64::MAX));
    (u128::from(value.scale) << 16 | sign << 24 | high << 32 | low << 64).to_le_bytes()
}
