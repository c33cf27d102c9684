//! A place in a document of binary XML.
//!
//! A `BinaryCursor` is the `nbfx::Reader` of one body with the words of its session and the quotas of the
//! address. It turns records into what `ElementSource` asks for: entered elements, contents, array records.
//!
//! State: the reader's position and depth, and `scanned`, a second reader that has collected the namespace
//! declarations up to some offset. It is made when a prefix has to be resolved, which plain contracts never
//! do, and goes on from there the next time.
//!
//! Invariants:
//!
//! * The reader counts depth from the element around the values; `outer` elements, the envelope and its
//!   body, are taken off the quota in `new`.
//! * Text is charged to the budget before it is joined, and compared with `MaxStringContentLength` or
//!   `MaxArrayLength` piece by piece, so a value in many records cannot exceed them.
//! * Items of an array record are charged by whoever opens the sequence; their number is compared with
//!   `MaxArrayLength` here.
//! * Looking for a namespace costs budget by the distance that is read, so that asking back and forth
//!   cannot make it read the document many times for nothing.
//! * Between elements only comments and white space stand; text there is passed without being looked at, as
//!   WCF does.

use super::{
    AttributeText, AttributeValue, Content, Cursor, ElementContents, OpenElement, Run, TypeName, inherited,
    is_data,
};
use crate::dictionary::StringTable;
use crate::markup::Piece;
use crate::nbfx::xml::{LONGEST, to_xml_partly};
use crate::nbfx::{Prefix, Reader, Record, Text, Word};
use crate::text;
use crate::values::codec::ENVELOPE_DEPTH;
use crate::values::{BodyContext, Quota, ReaderQuotas};
use crate::violations::Violation;
use everywire_model::visit::Visit;
use everywire_model::{Body, Budget, Failure};
use std::borrow::Cow;
use std::cell::Cell;

/// A place, and the words of its session.
#[derive(Debug, Clone)]
pub(in crate::values) struct BinaryCursor<'a> {
    document: &'a [u8],
    reader: Reader<'a>,
    /// Of the session as they were when the message came: numbers beyond them are violations.
    words: &'a StringTable,
    quotas: ReaderQuotas,
    /// What was declared up to the place that was last asked for.
    scanned: Option<Box<PrefixScope<'a>>>,
}

/// The prefixes that are declared at a place.
#[derive(Debug, Clone)]
struct PrefixScope<'a> {
    reader: Reader<'a>,
    /// How deep each is declared, the prefix, and its namespace.
    scope: Vec<(usize, &'a str, &'a str)>,
}

/// How often a word of the session is charged where it is a value.
const WORD_PRICE: u64 = 16;

impl<'a> BinaryCursor<'a> {
    /// The place where the values of a body are, inside `outer` elements.
    pub(in crate::values) fn new(body: &'a Body, outer: usize, reading: &'a BodyContext) -> Self {
        let BodyContext { words, quotas, .. } = reading;
        // The place is depth 0 for this reader, whatever is around it.
        let depth = (quotas.max_depth as usize).saturating_sub(outer);
        let mut reader = Reader::new(&body.bytes).with_max_depth(depth);
        reader.seek(body.base, 0);
        Self { document: &body.bytes, reader, words, quotas: *quotas, scanned: None }
    }

    fn wrong<T>(&self, violation: Violation) -> Visit<T> {
        Err(violation.at(self.reader.position()))
    }

    /// The next record; a document does not end inside an element.
    fn next(&mut self) -> Visit<Record<'a>> {
        let record = self.reader.read().map_err(|failure| self.refusal(&self.reader, failure))?;
        record.ok_or_else(|| Violation::Truncated.at(self.reader.position()))
    }

    /// What is said of a document that the reader refuses.
    #[cold]
    fn refusal(&self, reader: &Reader<'_>, failure: Failure) -> Failure {
        if reader.is_too_deep() { Quota::Depth.exceeded(self.quotas.max_depth) } else { failure }
    }

    fn word(&self, word: Word<'a>) -> Visit<&'a str> {
        match word {
            Word::Inline(text) => Ok(text),
            Word::Id(id) => {
                self.words.word(id).ok_or_else(|| Violation::UnknownWord.at(self.reader.position()))
            }
        }
    }

    /// The word of a text that is one, by number.
    fn text_word(&self, text: &Text<'a>) -> Visit<Option<&'a str>> {
        match text {
            Text::Word(id) | Text::QName(_, id) => self.word(Word::Id(*id)).map(Some),
            _ => Ok(None),
        }
    }

    /// A text with its word.
    #[inline]
    fn content_of(&self, text: Text<'a>) -> Visit<Content<'a>> {
        let word = self.text_word(&text)?;
        Ok(Content::of(text, word))
    }

    /// Reads the attributes of the element that just started.
    #[inline]
    fn attributes(&mut self, entered: &mut OpenElement<'a>) -> Visit<()> {
        loop {
            match self.reader.peek() {
                Some(0x08..=0x0b) => self.reader.skip_xmlns()?,
                Some(0x04..=0x3f) => self.attribute(entered)?,
                _ => return Ok(()),
            }
        }
    }

    /// One attribute of the element that just started. Only those of schema instance and serialization
    /// matter here, told by their names: others of these names are no part of data contracts.
    fn attribute(&mut self, entered: &mut OpenElement<'a>) -> Visit<()> {
        let Record::Attribute(prefix, name, value) = self.next()? else { return Ok(()) };
        // Without a prefix it is in no namespace, and a member's own attribute at most.
        if prefix == Prefix::None {
            return Ok(());
        }
        match self.word(name)? {
            "nil" => entered.nil = self.content_of(value)?.boolean().unwrap_or(false),
            "type" => {
                entered.kind = Some(match value {
                    Text::QName(letter, id) => TypeName::lettered(letter, self.word(Word::Id(id))?),
                    other => TypeName::new(self.content_of(other)?.text()),
                });
            }
            "Ref" => entered.refers = true,
            "Id" => entered.referred = true,
            _ => {}
        }
        Ok(())
    }

    /// The prefixed attribute of this name of the element that starts here.
    fn told_here(&mut self, wanted: &str) -> Visit<AttributeText> {
        let mut told = AttributeText::default();
        if let Record::Element(prefix, _) = self.next()? {
            told.element = prefix.spelled().into_owned();
        }
        // Declarations and attributes come in any order.
        while let Some(0x04..=0x3f) = self.reader.peek() {
            match self.next()? {
                Record::Xmlns(prefix, namespace) => {
                    let namespace = self.word(namespace)?.to_owned();
                    told.declared.push((prefix.unwrap_or_default().to_owned(), namespace));
                }
                Record::Attribute(prefix, name, value)
                    if prefix != Prefix::None && self.word(name)? == wanted =>
                {
                    told.prefix = prefix.spelled().into_owned();
                    told.value = self.content_of(value)?.text().into_owned();
                }
                _ => {}
            }
        }
        Ok(told)
    }

    /// Bytes that a text may add to the content of its element.
    fn cost(&self, text: &Text<'_>) -> u64 {
        /// The longest notation of a number, date or identifier.
        const NOTATION: usize = 48;
        let len = match text {
            Text::Chars(chars) => chars.len(),
            Text::Bytes(bytes) => bytes.len(),
            // Two bytes of UTF-16 are at most three of UTF-8.
            Text::Wide(units) => units.len() / 2 * 3,
            Text::Word(id) | Text::QName(_, id) => self.words.word(*id).map_or(0, str::len) + 2,
            Text::Empty | Text::ListStart | Text::ListEnd => 0,
            _ => NOTATION,
        };
        len as u64
    }

    /// Charges for a text, and returns its cost. A word of the session takes two octets in the message each time, and as many as were
    /// told once in memory: without a price of its own a message of 60 kB became 60 MB.
    #[inline]
    fn charge(&self, text: &Text<'_>, budget: &mut Budget) -> Visit<u64> {
        let cost = self.cost(text);
        let is_word = matches!(text, Text::Word(_) | Text::QName(..));
        budget.charge_bytes(if is_word { cost * WORD_PRICE } else { cost })?;
        Ok(cost)
    }

    /// Refuses a text that, with what came before it, exceeds the quota of its kind.
    fn check(&self, text: &Text<'_>, total: u64) -> Visit<()> {
        let (quota, limit) = match text {
            Text::Bytes(_) => (Quota::ArrayLength, self.quotas.max_array_length),
            _ => (Quota::StringContentLength, self.quotas.max_string_content_length),
        };
        // The notation of a number is never refused: its cost is an estimate.
        if total > u64::from(limit) && total > 64 { Err(quota.exceeded(limit)) } else { Ok(()) }
    }

    /// The text of an element in any number of records; the first may have been read, and the last.
    fn long_content(
        &mut self,
        first: Option<&'a [u8]>,
        last: Option<Text<'a>>,
        budget: &mut Budget,
    ) -> Visit<Content<'a>> {
        let mut content = Content::Empty;
        let mut total = 0;
        // In a list: whether an item of it was read.
        let mut listed = None;
        // What the fast path has read already comes first.
        let mut read = [first.map(|first| (Text::Bytes(first), false)), last.map(|last| (last, true))]
            .into_iter()
            .flatten();
        loop {
            let (text, ends) = match read.next() {
                Some(text) => text,
                None => match self.next()? {
                    Record::Text(text, ends) => (text, ends),
                    Record::End => return Ok(content),
                    Record::Comment(_) => continue,
                    _ => return self.wrong(Violation::BadValue),
                },
            };
            let cost = self.charge(&text, budget)?;
            total += cost;
            self.check(&text, total)?;
            match (text, &mut listed) {
                (Text::ListStart, listed) => *listed = Some(false),
                (Text::ListEnd, listed) => *listed = None,
                // Between the items of a list stands a space, as in text.
                (_, Some(true)) => content = content.push(Text::Chars(" "), None),
                (_, listed @ Some(false)) => *listed = Some(true),
                _ => {}
            }
            let word = self.text_word(&text)?;
            content = content.push(text, word);
            if ends {
                return Ok(content);
            }
        }
    }
}

impl<'a> Cursor<'a> for BinaryCursor<'a> {
    fn rewound(&self) -> Self {
        let reader = Reader::new(self.document).with_max_depth(self.quotas.max_depth as usize);
        Self { reader, scanned: None, ..*self }
    }

    fn ahead(&self) -> Self {
        Self { reader: self.reader.clone(), scanned: None, ..*self }
    }

    #[inline]
    fn enter(&mut self) -> Visit<Option<OpenElement<'a>>> {
        loop {
            match self.reader.peek() {
                Some(0x40..=0x77) => {
                    let at = self.reader.position();
                    let name = self.reader.start().map_err(|failure| self.refusal(&self.reader, failure))?;
                    let mut entered = OpenElement::new(self.word(name)?, at);
                    self.attributes(&mut entered)?;
                    return Ok(Some(entered));
                }
                // Text between elements is white space; comments say nothing.
                Some(code) if code == 0x02 || (code >= 0x80 && code.is_multiple_of(2)) => {
                    self.next()?;
                }
                // The end of the open element, in a record of its own or with its text, or an array record.
                Some(0x01 | 0x03 | 0x81..) => return Ok(None),
                None if self.reader.depth() == 0 => return Ok(None),
                // Whatever it is, the reader says what is wrong with it.
                _ => {
                    self.next()?;
                    return self.wrong(Violation::UnexpectedRecord);
                }
            }
        }
    }

    // For each field of each message, from a place for each kind of number.
    #[inline(always)]
    fn plain(&self) -> Option<(&'a str, usize)> {
        let (word, behind) = self.reader.plain_start()?;
        let name = match word {
            Word::Inline(name) => name,
            Word::Id(id) => self.words.word(id)?,
        };
        Some((name, behind))
    }

    #[inline]
    fn pass(&mut self, behind: usize) {
        self.reader.pass_start(behind);
    }

    fn array(&mut self) -> Visit<Option<Run<'a>>> {
        while self.reader.peek() == Some(0x02) {
            self.next()?;
        }
        if self.reader.peek() != Some(0x03) {
            return Ok(None);
        }
        // The record's element, its attributes and its end say nothing but the name.
        let mut name = "";
        loop {
            match self.next()? {
                Record::Element(_, word) => name = self.word(word)?,
                Record::Items(kind, count, data) => {
                    self.quotas.check(Quota::ArrayLength, count as usize)?;
                    return Ok(Some(Run { name, kind, data }));
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn ends(&self) -> bool {
        matches!(self.reader.peek(), Some(0x01) | None)
    }

    fn finish(&mut self) -> Visit<()> {
        let depth = self.reader.depth();
        while self.reader.depth() >= depth && depth > 0 {
            if !self.reader.end() {
                self.next()?;
            }
        }
        Ok(())
    }

    fn leave_envelope(&mut self) -> Visit<()> {
        while self.reader.depth() > 0 {
            self.finish()?;
        }
        // Mostly the body and the envelope end at once.
        if self.document.get(self.reader.position()..) == Some(&[0x01; ENVELOPE_DEPTH]) {
            return Ok(());
        }
        // Whether anything stood in the element that ended last before its end.
        let mut last = true;
        loop {
            let mut more = false;
            while self.enter()?.is_some() {
                self.finish()?;
                more = true;
            }
            match self.reader.peek() {
                Some(0x01) => self.reader.seek(self.reader.position() + 1, 0),
                None if !last && !more => return Ok(()),
                _ => return self.wrong(Violation::Unbalanced),
            }
            last = more;
        }
    }

    #[inline]
    fn content(&mut self, budget: &mut Budget) -> Visit<Content<'a>> {
        // Nearly all values are one record, octets two.
        let octets = self.reader.octets()?;
        match (octets, self.reader.last_text()?) {
            (None, Some(text)) => {
                let cost = self.charge(&text, budget)?;
                self.check(&text, cost)?;
                self.content_of(text)
            }
            (Some(first), Some(Text::Bytes(rest))) => {
                let total = (first.len() + rest.len()) as u64;
                budget.charge_bytes(total)?;
                self.check(&Text::Bytes(rest), total)?;
                Ok(Content::Octets(Cow::Owned([first, rest].concat())))
            }
            (first, last) => self.long_content(first, last, budget),
        }
    }

    #[inline]
    fn integer(&mut self) -> Option<i64> {
        self.reader.last_integer()
    }

    fn count(&self) -> Visit<(u64, Option<&'a str>)> {
        // A copy reads ahead to the end of the open element.
        let mut ahead = self.reader.clone();
        let depth = ahead.depth();
        let mut count = 0_u64;
        let mut in_array = false;
        let (mut first, mut other) = (None, None);
        while let Some(record) = ahead.read().map_err(|failure| self.refusal(&ahead, failure))? {
            match record {
                Record::Array => in_array = true,
                Record::Items(_, items, _) => {
                    if ahead.depth() == depth {
                        count += u64::from(items);
                    }
                    in_array = false;
                }
                Record::Element(_, name) if ahead.depth() == depth + 1 => {
                    count += u64::from(!in_array);
                    let first = *first.get_or_insert(name);
                    // One name may stand as itself in one place, and as its number in another.
                    if first != name && other.is_none() {
                        let name = self.word(name)?;
                        other = (self.word(first)? != name).then_some(name);
                    }
                }
                _ => {}
            }
            if ahead.depth() < depth {
                break;
            }
        }
        Ok((count, other))
    }

    fn markup(&mut self, at: usize, budget: &mut Budget) -> Visit<String> {
        let here = self.position();
        self.finish()?;
        let element = self.document.get(at..self.position()).unwrap_or_default();
        // A number may stand for a word that nobody sent.
        let unknown = Cell::new(false);
        let word = |id| {
            let word = self.words.word(id);
            unknown.set(unknown.get() || word.is_none());
            word
        };
        let (xml, failure) = to_xml_partly(element, word, LONGEST);
        if let Some(failure) = failure {
            return Err(failure);
        }
        if unknown.get() {
            return Err(Violation::UnknownWord.at(here));
        }
        budget.charge_bytes(xml.len() as u64)?;
        let mut reader = text::Reader::new(xml.as_bytes(), &self.quotas);
        reader.next()?;
        let piece = Piece::read(&mut reader, &self.quotas, budget)?;
        piece.fill(budget, |prefix, _, budget| inherited(self, prefix, here, budget))
    }

    fn is_marked(&self) -> Visit<bool> {
        let mut ahead = self.reader.clone();
        let depth = ahead.depth();
        let mut open = vec![ElementContents::default()];
        // In an array record: whether the element of its items has such an attribute.
        let mut array = None;
        while let Some(record) = ahead.read().map_err(|failure| self.refusal(&ahead, failure))? {
            let Some(inner) = open.last_mut() else { break };
            match record {
                Record::Array => array = Some(false),
                // Without items there is no element, and nothing that has the attribute.
                Record::Items(_, 0, _) => array = None,
                Record::Items(..) if array.take() == Some(true) => return Ok(true),
                Record::Items(..) => inner.element = true,
                Record::Element(..) if array.is_none() => {
                    inner.element = true;
                    open.push(ElementContents::default());
                }
                Record::Attribute(prefix, name, _) if is_data(&prefix.spelled(), self.word(name)?) => {
                    match &mut array {
                        Some(marked) => *marked = true,
                        None => return Ok(true),
                    }
                }
                Record::Text(value, _) => {
                    inner.text |= !self.content_of(value)?.text().trim().is_empty();
                }
                _ => {}
            }
            // Texts end elements as well as records of their own do.
            while open.len() > (ahead.depth() + 1).saturating_sub(depth) {
                if open.pop().is_some_and(|ended| ended.is_mixed()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn told(&mut self, at: usize, wanted: &str) -> Visit<AttributeText> {
        let place = (self.reader.position(), self.reader.depth());
        self.reader.seek(at, place.1.saturating_sub(1));
        let told = self.told_here(wanted);
        self.reader.seek(place.0, place.1);
        told
    }

    fn attributes(&self, at: usize, budget: &mut Budget) -> Visit<Vec<AttributeValue<'a>>> {
        // Attributes were checked when the element was entered; they are read once more, as values.
        let mut reader = self.reader.clone();
        reader.seek(at, 0);
        let mut found = Vec::new();
        reader.read()?;
        while let Some(0x04..=0x3f) = reader.peek() {
            let Some(Record::Attribute(prefix, name, value)) = reader.read()? else { continue };
            let cost = self.charge(&value, budget)?;
            self.check(&value, cost)?;
            let content = self.content_of(value)?;
            let name = self.word(name)?;
            found.push(AttributeValue { prefix: prefix.spelled(), name, content, namespace: None });
        }
        Ok(found)
    }

    fn position(&self) -> usize {
        self.reader.position()
    }

    fn depth(&self) -> usize {
        self.reader.depth()
    }

    fn seek(&mut self, at: usize, depth: usize) {
        self.reader.seek(at, depth);
    }

    fn resolve(&mut self, prefix: &str, at: usize, budget: &mut Budget) -> Visit<Option<&str>> {
        // A place before the last one starts from the front of the document.
        let mut scanned = match self.scanned.take() {
            Some(scanned) if scanned.reader.position() <= at => scanned,
            _ => {
                let reader = Reader::new(self.document).with_max_depth(usize::MAX);
                Box::new(PrefixScope { reader, scope: Vec::new() })
            }
        };
        let PrefixScope { reader, scope } = &mut *scanned;
        budget.charge_bytes(at.saturating_sub(reader.position()) as u64)?;
        while reader.position() < at {
            let Some(record) = reader.read()? else { break };
            // Those of elements that have ended are gone.
            while scope.last().is_some_and(|(depth, ..)| *depth > reader.depth()) {
                scope.pop();
            }
            if let Record::Xmlns(declared, namespace) = record {
                scope.push((reader.depth(), declared.unwrap_or_default(), self.word(namespace)?));
            }
        }
        budget.charge_bytes(scope.len() as u64)?;
        let declared = scope.iter().rev().find(|(_, declared, _)| *declared == prefix);
        let namespace = declared.map(|(.., namespace)| *namespace);
        self.scanned = Some(scanned);
        // Without a default namespace, a name without a prefix is in none.
        Ok(namespace.or_else(|| prefix.is_empty().then_some("")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::dictionary::StringTable;
    use crate::values::{BINARY, XML};
    use everywire_model::{Context, Kind};

    /// The text of an element that consists of this many words of 2,000 octets.
    fn read(words: usize) -> Visit<usize> {
        let word = "w".repeat(2000);
        let mut table = StringTable::with_quota(4096);
        table.learn(&[&[0xd0, 0x0f][..], word.as_bytes()].concat()).unwrap();
        let reading = BodyContext { words: table.into(), ..BodyContext::default() };
        let bytes = [&b"\x40\x01a"[..], &b"\xaa\x01".repeat(words), b"\x01"].concat();
        let mut budget = Budget::default();
        let body = Body {
            bytes: bytes.into(),
            base: 0,
            little: true,
            dialect: BINARY,
            budget,
            codec: &XML,
            context: Context::default(),
            beside: None,
        };
        let mut cursor = BinaryCursor::new(&body, 0, &reading);
        cursor.enter()?.unwrap();
        match cursor.content(&mut budget)? {
            Content::Text(text) => Ok(text.len()),
            _ => Ok(0),
        }
    }

    #[test]
    fn words_of_the_session_make_no_small_message_a_large_one() {
        assert_eq!(read(20).unwrap(), 40_000);
        assert_eq!(read(30_000).unwrap_err().kind(), Kind::LimitExceeded);
    }
}
