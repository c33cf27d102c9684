//! Reading records.
//!
//! A `Reader` is a position in a document of MC-NBFX and the few facts that decide which records may come
//! next. It yields one record after the other without allocating: names and texts are slices of the
//! document, or numbers that its caller looks up in the dictionaries.
//!
//! State: the offset of the next record (`at`), how many elements are open (`depth`), whether attributes
//! may stand here (`attributes`), how far an array record was read (`array`), and whether a list of texts
//! is open (`in_list`). `read` moves all of them. The shortcuts for the most frequent records
//! (`plain_start`, `last_text`, `last_integer`, `octets`, `end`) look at a record themselves and leave the
//! same state as `read` would. `seek` puts the reader between two records that an earlier pass has seen.
//!
//! Invariants, whatever the bytes are:
//!
//! * `at` never exceeds the length of the document, and each length is compared with what is left before it
//!   is used, so a record cannot announce more than has come. Nothing is reserved by an announced length.
//! * `depth` is at most `max_depth`, and an end without an element is `Unbalanced`; at the end of the
//!   document it is 0, or the document is `Truncated`.
//! * Attributes and declarations stand behind the start of an element only, at most `MAX_ATTRIBUTES` of
//!   them.
//! * An array record has one element with attributes, then its end, a type of items, and
//!   their bytes.
//! * A text record with an odd code also ends its element; it may not in an attribute or inside a list.
//! * Multi-byte integers are minimal (`nbfx::integer`), texts are valid UTF-8, UTF-16 has an even number of
//!   bytes. Whether surrogates pair is not checked here: `xml::lexical` replaces those that do not.

use super::integer;
use super::notation::{MAX_TICKS, TICKS_A_DAY, TICKS_MASK};
use super::record::{Decimal, Item, Prefix, Record, Text, Word};
use crate::limits::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_NAME};
use crate::violations::Violation;
use everywire_model::visit::Visit;

/// Reads a document, or a part of one that is balanced in itself. Copies are cheap: they look ahead.
#[derive(Debug, Clone, Default)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Attributes that the element which just started has so far; `None` if attributes may not stand here.
    attributes: Option<usize>,
    array: Array,
    in_list: bool,
    max_depth: usize,
}

/// How far an array record has been read.
/// The states follow each other in this order, and `Items` returns to `No`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Array {
    /// None is read.
    #[default]
    No,
    /// Its code was read: an element has to start.
    Element,
    /// Its element has started: attributes, then the end.
    Header,
    /// The element has ended: the type of items, their number and their bytes come.
    Items,
}

impl<'a> Reader<'a> {
    /// A reader over bytes that are not nested in anything.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, max_depth: MAX_DEPTH, ..Self::default() }
    }

    /// The same reader with another bound of elements in elements.
    #[must_use]
    pub fn with_max_depth(self, max_depth: usize) -> Self {
        Self { max_depth, ..self }
    }

    /// Whether no element may start here any more. It is asked after `read` has refused, to tell the quota
    /// of depth, which the user can raise, from other violations: the byte before is then the code of an
    /// element.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.depth >= self.max_depth && matches!(self.bytes.get(self.at.wrapping_sub(1)), Some(0x40..=0x77))
    }

    /// The code of the next record.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Goes on elsewhere, inside `depth` elements and between records of theirs.
    pub(crate) fn seek(&mut self, at: usize, depth: usize) {
        self.at = at.min(self.bytes.len());
        self.depth = depth;
        (self.attributes, self.array, self.in_list) = (None, Array::No, false);
    }

    /// Offset of the next record.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many elements are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next record, or nothing at the end of the document.
    ///
    /// # Errors
    /// The first violation.
    pub fn read(&mut self) -> Visit<Option<Record<'a>>> {
        if self.array == Array::Items {
            return self.items().map(Some);
        }
        // An array whose items are missing is cut off, too.
        if self.at == self.bytes.len() {
            let whole = self.depth == 0 && self.array == Array::No;
            return if whole { Ok(None) } else { self.wrong(Violation::Truncated) };
        }
        let code = self.byte()?;
        if self.array == Array::Element && !(0x40..=0x77).contains(&code) {
            return self.wrong(Violation::BadArray);
        }
        // Before the items stands one element with its attributes, and nothing inside it.
        if self.array == Array::Header && !matches!(code, 0x01 | 0x04..=0x3f) {
            return self.wrong(Violation::BadArray);
        }
        if self.in_list && !(0x80..=0xbd).contains(&code) {
            return self.wrong(Violation::UnexpectedRecord);
        }
        let record = match code {
            0x01 => {
                self.leave()?;
                Record::End
            }
            0x02 => Record::Comment(self.string(usize::MAX)?),
            0x03 if self.array == Array::No => {
                self.array = Array::Element;
                Record::Array
            }
            0x04..=0x07 | 0x0c..=0x3f => self.attribute(code)?,
            0x08..=0x0b => self.xmlns(code)?,
            0x40..=0x77 => {
                let (prefix, name) = self.element(code)?;
                Record::Element(prefix, name)
            }
            0x80..=0xbd => self.text(code)?,
            _ => return self.wrong(Violation::UnexpectedRecord),
        };
        // Everything but these three ends the place where attributes may stand.
        if !matches!(record, Record::Element(..) | Record::Attribute(..) | Record::Xmlns(..)) {
            self.attributes = None;
        }
        match (self.array, record) {
            (Array::Element, Record::Element(..)) => self.array = Array::Header,
            (Array::Header, Record::End) => self.array = Array::Items,
            _ => {}
        }
        Ok(Some(record))
    }

    /// Fails at the place that was reached, which may be behind the first bytes of the record.
    fn wrong<T>(&self, violation: Violation) -> Visit<T> {
        Err(violation.at(self.at))
    }

    /// The prefix and the name behind the code of an element's start, which is open from then on.
    fn element(&mut self, code: u8) -> Visit<(Prefix<'a>, Word<'a>)> {
        if self.depth >= self.max_depth {
            return self.wrong(Violation::TooDeep);
        }
        self.depth += 1;
        self.attributes = Some(0);
        let prefix = match code {
            0x40 | 0x42 => Prefix::None,
            0x41 | 0x43 => Prefix::Inline(self.string(MAX_NAME)?),
            0x44..=0x5d => Prefix::Letter(code - 0x44),
            _ => Prefix::Letter(code - 0x5e),
        };
        Ok((prefix, self.word(matches!(code, 0x42..=0x5d))?))
    }

    /// The name of the element that starts here, of which the next code is one; not in an array or a list.
    #[inline]
    pub(crate) fn start(&mut self) -> Visit<Word<'a>> {
        let code = self.byte()?;
        // The rare cases: an error, and prefixes in full, which stand before the name.
        if self.depth >= self.max_depth || matches!(code, 0x41 | 0x43) {
            return self.element(code).map(|(_, name)| name);
        }
        self.depth += 1;
        self.attributes = Some(0);
        self.word(matches!(code, 0x42..=0x5d))
    }

    /// The name of the element that starts here, and what stands behind its name, if it has neither attributes nor a prefix in
    /// full; [`Reader::pass_start`] goes there.
    #[inline(always)]
    pub(crate) fn plain_start(&self) -> Option<(Word<'a>, usize)> {
        if self.depth >= self.max_depth || self.array != Array::No || self.in_list {
            return None;
        }
        let rest = self.bytes.get(self.at..)?;
        // One byte of a number or of a length: everything longer is left to `start`.
        let (word, len) = match rest {
            [0x42 | 0x44..=0x5d, id @ 0..0x80, ..] => (Word::Id(u32::from(*id)), 2),
            [0x40 | 0x5e..=0x77, len @ 0..0x80, name @ ..] => {
                let len = usize::from(*len);
                (Word::Inline(std::str::from_utf8(name.get(..len)?).ok()?), 2 + len)
            }
            _ => return None,
        };
        match rest.get(len) {
            // With attributes there is more to read; at the end of the bytes nobody knows.
            None | Some(0x04..=0x3f) => None,
            Some(_) => Some((word, self.at + len)),
        }
    }

    /// Passes the start of an element that [`Reader::plain_start`] found here.
    #[inline]
    pub(crate) fn pass_start(&mut self, to: usize) {
        self.at = to;
        self.depth += 1;
        self.attributes = None;
    }

    /// The octets of the record that comes here, if it is one of octets and ends nothing.
    #[inline]
    pub(crate) fn octets(&mut self) -> Visit<Option<&'a [u8]>> {
        match self.bytes.get(self.at) {
            Some(code @ (0x9e | 0xa0 | 0xa2))
                if !self.in_list && self.depth > 0 && self.array == Array::No =>
            {
                self.at += 1;
                self.attributes = None;
                self.sized(code - 0x9e).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Passes a declaration, of which the next code is one.
    #[inline]
    pub(crate) fn skip_xmlns(&mut self) -> Visit<()> {
        let code = self.byte()?;
        self.xmlns(code).map(drop)
    }

    /// The text that comes here and ends its element, if one does.
    #[inline]
    pub(crate) fn last_text(&mut self) -> Visit<Option<Text<'a>>> {
        match self.bytes.get(self.at) {
            Some(code @ (0x81..=0xa3 | 0xa9..=0xbd)) if code & 1 == 1 && !self.in_list && self.depth > 0 => {
                self.at += 1;
                let text = self.value(code & 0xfe)?;
                self.attributes = None;
                self.depth -= 1;
                Ok(Some(text))
            }
            _ => Ok(None),
        }
    }

    /// The whole number in a record that comes here and ends its element, if one does.
    #[inline]
    pub(crate) fn last_integer(&mut self) -> Option<i64> {
        if self.in_list || self.depth == 0 {
            return None;
        }
        let (code, rest) = self.bytes.get(self.at..)?.split_first()?;
        let (value, width) = match code {
            0x81 => (0, 0),
            0x83 => (1, 0),
            0x89 => (i64::from(i8::from_le_bytes(*rest.first_chunk()?)), 1),
            0x8b => (i64::from(i16::from_le_bytes(*rest.first_chunk()?)), 2),
            0x8d => (i64::from(i32::from_le_bytes(*rest.first_chunk()?)), 4),
            0x8f => (i64::from_le_bytes(*rest.first_chunk()?), 8),
            _ => return None,
        };
        self.at += 1 + width;
        self.attributes = None;
        self.depth -= 1;
        Some(value)
    }

    /// Passes the end of an element, if it comes here; whether it did.
    #[inline]
    pub(crate) fn end(&mut self) -> bool {
        let ends = self.bytes.get(self.at) == Some(&0x01)
            && self.depth > 0
            && !self.in_list
            && self.array == Array::No;
        if ends {
            self.at += 1;
            self.depth -= 1;
            self.attributes = None;
        }
        ends
    }

    fn attribute(&mut self, code: u8) -> Visit<Record<'a>> {
        self.count_attribute()?;
        let prefix = match code {
            0x04 | 0x06 => Prefix::None,
            0x05 | 0x07 => Prefix::Inline(self.string(MAX_NAME)?),
            0x0c..=0x25 => Prefix::Letter(code - 0x0c),
            _ => Prefix::Letter(code - 0x26),
        };
        let name = self.word(matches!(code, 0x06 | 0x07 | 0x0c..=0x25))?;
        let code = self.byte()?;
        // An attribute's text ends no element, and a list does not fit one record.
        if !code.is_multiple_of(2) || matches!(code, 0xa4 | 0xa6) {
            return self.wrong(Violation::UnexpectedRecord);
        }
        Ok(Record::Attribute(prefix, name, self.value(code)?))
    }

    fn xmlns(&mut self, code: u8) -> Visit<Record<'a>> {
        self.count_attribute()?;
        let prefix = if matches!(code, 0x09 | 0x0b) { Some(self.string(MAX_NAME)?) } else { None };
        Ok(Record::Xmlns(prefix, self.word(code >= 0x0a)?))
    }

    /// Passes one attribute or declaration, if one may stand here.
    fn count_attribute(&mut self) -> Visit<()> {
        match &mut self.attributes {
            Some(count) if *count < MAX_ATTRIBUTES => {
                *count += 1;
                Ok(())
            }
            Some(_) => self.wrong(Violation::TooManyAttributes),
            None => self.wrong(Violation::UnexpectedRecord),
        }
    }

    fn text(&mut self, code: u8) -> Visit<Record<'a>> {
        if self.depth == 0 {
            return self.wrong(Violation::Unbalanced);
        }
        let ends = !code.is_multiple_of(2);
        let text = self.value(code & 0xfe)?;
        match text {
            Text::ListStart if self.in_list || ends => return self.wrong(Violation::UnexpectedRecord),
            Text::ListEnd if !self.in_list => return self.wrong(Violation::UnexpectedRecord),
            Text::ListStart => self.in_list = true,
            Text::ListEnd => self.in_list = false,
            _ if self.in_list && ends => return self.wrong(Violation::UnexpectedRecord),
            _ => {}
        }
        if ends {
            self.leave()?;
        }
        Ok(Record::Text(text, ends))
    }

    /// Ends the innermost element.
    fn leave(&mut self) -> Visit<()> {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| Violation::Unbalanced.at(self.at))?;
        Ok(())
    }

    /// The items of an array: their type, how many, and all their bytes, which must have come.
    fn items(&mut self) -> Visit<Record<'a>> {
        let code = self.byte()?;
        let Some(item) = Item::of(code) else { return self.wrong(Violation::BadArray) };
        let count = self.integer()?;
        let data = self.announced((count as usize).saturating_mul(item.width()))?;
        self.array = Array::No;
        Ok(Record::Items(item, count, data))
    }

    /// The payload of a text record; `code` is even.
    fn value(&mut self, code: u8) -> Visit<Text<'a>> {
        Ok(match code {
            0x80 => Text::Zero,
            0x82 => Text::One,
            0x84 => Text::False,
            0x86 => Text::True,
            0x88 => Text::I8(i8::from_le_bytes(self.array()?)),
            0x8a => Text::I16(i16::from_le_bytes(self.array()?)),
            0x8c => Text::I32(i32::from_le_bytes(self.array()?)),
            0x8e => Text::I64(i64::from_le_bytes(self.array()?)),
            0x90 => Text::F32(f32::from_le_bytes(self.array()?)),
            0x92 => Text::F64(f64::from_le_bytes(self.array()?)),
            0x94 => Text::Decimal(decimal(self.array()?).ok_or_else(|| Violation::OutOfRange.at(self.at))?),
            0x96 => Text::DateTime(self.ticks()?),
            0x98..=0x9c => {
                let raw = self.sized(code - 0x98)?;
                Text::Chars(std::str::from_utf8(raw).map_err(|_| Violation::BadText.at(self.at))?)
            }
            0x9e..=0xa2 => Text::Bytes(self.sized(code - 0x9e)?),
            0xa4 => Text::ListStart,
            0xa6 => Text::ListEnd,
            0xa8 => Text::Empty,
            0xaa => Text::Word(self.integer()?),
            0xac => Text::UniqueId(self.array()?),
            0xae => Text::TimeSpan(i64::from_le_bytes(self.array()?)),
            0xb0 => Text::Uuid(self.array()?),
            0xb2 => Text::U64(u64::from_le_bytes(self.array()?)),
            0xb4 => match self.byte()? {
                0 => Text::Bool(false),
                1 => Text::Bool(true),
                _ => return self.wrong(Violation::OutOfRange),
            },
            0xb6..=0xba => match self.sized(code - 0xb6)? {
                raw if raw.len() % 2 == 0 => Text::Wide(raw),
                _ => return self.wrong(Violation::BadText),
            },
            0xbc => {
                let letter = self.byte()?;
                if letter > 25 {
                    return self.wrong(Violation::OutOfRange);
                }
                Text::QName(letter, self.integer()?)
            }
            _ => return self.wrong(Violation::UnexpectedRecord),
        })
    }

    /// 62 bits of ticks and two of the kind, of which 3 does not exist.
    fn ticks(&mut self) -> Visit<u64> {
        let raw = u64::from_le_bytes(self.array()?);
        let ticks = raw & TICKS_MASK;
        let fits = match raw >> 62 {
            0 | 1 => ticks <= MAX_TICKS,
            // The instant in UTC of a local time of the calendar may be up to a day outside of it.
            2 => ticks <= MAX_TICKS + TICKS_A_DAY || ticks > TICKS_MASK - TICKS_A_DAY,
            _ => false,
        };
        if fits { Ok(raw) } else { self.wrong(Violation::OutOfRange) }
    }

    /// Bytes with a length of 8, 16 or 32 bits before them, by `kind` 0, 2 or 4; the last is signed.
    fn sized(&mut self, kind: u8) -> Visit<&'a [u8]> {
        let len = match kind {
            0 => usize::from(self.byte()?),
            2 => usize::from(u16::from_le_bytes(self.array()?)),
            _ => usize::try_from(i32::from_le_bytes(self.array()?)).unwrap_or(usize::MAX),
        };
        self.announced(len)
    }

    /// So many bytes as were announced, unless the rest of the document cannot hold them.
    fn announced(&mut self, len: usize) -> Visit<&'a [u8]> {
        if len > self.bytes.len() - self.at {
            return self.wrong(Violation::BadLength);
        }
        self.take(len)
    }

    /// A name: by its number, or in place.
    #[inline]
    fn word(&mut self, by_id: bool) -> Visit<Word<'a>> {
        Ok(if by_id { Word::Id(self.integer()?) } else { Word::Inline(self.string(MAX_NAME)?) })
    }

    /// A length, and that many bytes of UTF-8; `limit` is for names, comments have none.
    fn string(&mut self, limit: usize) -> Visit<&'a str> {
        let len = self.integer()? as usize;
        if len > limit {
            return self.wrong(Violation::NameTooLong);
        }
        std::str::from_utf8(self.announced(len)?).map_err(|_| Violation::BadText.at(self.at))
    }

    #[inline]
    fn integer(&mut self) -> Visit<u32> {
        // Nearly all are one byte.
        if let Some(byte @ 0..0x80) = self.bytes.get(self.at) {
            self.at += 1;
            return Ok(u32::from(*byte));
        }
        let (value, at) = integer::read(self.bytes, self.at)?;
        self.at = at;
        Ok(value)
    }

    #[inline]
    fn byte(&mut self) -> Visit<u8> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| Violation::Truncated.at(self.at))?;
        self.at += 1;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Visit<[u8; N]> {
        let raw = self.take(N)?;
        raw.try_into().map_err(|_| Violation::Truncated.at(self.at))
    }

    /// The next bytes; everything that is read with a length goes through here.
    fn take(&mut self, len: usize) -> Visit<&'a [u8]> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let taken = taken.ok_or_else(|| Violation::Truncated.at(self.at))?;
        self.at += len;
        Ok(taken)
    }
}

/// The decimal of OLE automation: reserved, scale, sign, high 32 bits, low 64 bits. `None` with more than
/// 28 digits after the point, or with bits in the sign that mean nothing.
fn decimal(raw: [u8; 16]) -> Option<Decimal> {
    let number = u128::from_le_bytes(raw);
    let (scale, sign) = ((number >> 16) as u8, (number >> 24) as u8);
    let (high, low) = (number >> 32 & u128::from(u32::MAX), number >> 64);
    if scale > 28 || sign & 0x7f != 0 {
        return None;
    }
    Some(Decimal { scale, negative: sign != 0, magnitude: high << 64 | low })
}

/// One item of an array as the text it stands for. `None` if the bytes are not those of one item, or no
/// decimal. A date is not checked as in a record of its own.
pub fn item(kind: Item, raw: &[u8]) -> Option<Text<'_>> {
    match kind {
        Item::Bool => Some(Text::Bool(*raw.first()? != 0)),
        Item::DateTime => Some(Text::DateTime(u64::from_le_bytes(raw.try_into().ok()?))),
        // The code of the others is that of a text record.
        _ => Reader::new(raw).value(kind.code() & 0xfe).ok(),
    }
}
