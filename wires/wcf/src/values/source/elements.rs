//! Finding the elements of values, and reading what is in them.

use super::super::scalar::Content;
use super::{BinaryXmlSource, Entered, Kind};
use crate::nbfx::{Prefix, Record, Text as Value, Word};
use crate::violations::Violation;
use everywire_model::shape::Struct;
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a> BinaryXmlSource<'a, '_> {
    /// Whether a name in the document is this one.
    fn is_named(&self, word: Word<'a>, name: &str) -> Visit<bool> {
        match word {
            Word::Inline(text) => Ok(text == name),
            Word::Id(id) => match self.words.word(id) {
                Some(text) => Ok(text == name),
                None => self.wrong(Violation::UnknownWord),
            },
        }
    }

    /// Goes to the next element, if there is one before the end of the one that is open.
    fn next_element(&mut self) -> Visit<Option<Word<'a>>> {
        loop {
            let mut ahead = self.reader.clone();
            match ahead.read()? {
                Some(Record::Element(_, name)) => {
                    self.reader = ahead;
                    return Ok(Some(name));
                }
                Some(Record::End) | None => return Ok(None),
                Some(Record::Text(_, true)) => return Ok(None),
                Some(Record::Array) => return Ok(None),
                // Text between elements is white space; comments say nothing.
                Some(_) => self.reader = ahead,
            }
        }
    }

    /// Reads the attributes of the element that just started.
    fn attributes(&mut self) -> Visit<Entered> {
        let mut entered = Entered { nil: false, kind: None };
        loop {
            let mut ahead = self.reader.clone();
            match ahead.read()? {
                Some(Record::Attribute(prefix, name, value)) => {
                    self.reader = ahead;
                    if prefix != Prefix::None && self.is_named(name, "nil")? {
                        entered.nil = self.content_of(value)?.boolean().unwrap_or(false);
                    } else if prefix != Prefix::None && self.is_named(name, "type")? {
                        let kind = match value {
                            Value::QName(_, id) => {
                                let word = self.words.word(id);
                                word.ok_or_else(|| Violation::UnknownWord.at(self.reader.position()))?
                                    .to_owned()
                            }
                            other => self.content_of(other)?.text().into_owned(),
                        };
                        entered.kind = Some(kind.rsplit(':').next().unwrap_or_default().to_owned());
                    }
                }
                Some(Record::Xmlns(..)) => self.reader = ahead,
                _ => return Ok(entered),
            }
        }
    }

    pub(super) fn content_of(&self, text: Value<'a>) -> Visit<Content<'a>> {
        Ok(match text {
            Value::Word(id) => match self.words.word(id) {
                // Words live as long as the session, which may be shorter than the message: they are short, copy them.
                Some(word) => Content::Text(Cow::Owned(word.to_owned())),
                None => return self.wrong(Violation::UnknownWord),
            },
            other => Content::Empty.push(other, None),
        })
    }

    /// Reads on until the end of the element that is open, whatever is in it.
    pub(super) fn finish(&mut self) -> Visit<()> {
        let depth = self.reader.depth();
        while self.reader.depth() >= depth {
            self.next()?;
        }
        Ok(())
    }

    /// Enters the element of the value that begins now; nothing if it is missing.
    pub(super) fn enter(&mut self) -> Visit<Option<Entered>> {
        let Some(frame) = self.frames.last_mut() else {
            return self.enter_root();
        };
        let index = frame.index;
        if index >= frame.len {
            return self.wrong(Violation::Misuse);
        }
        frame.index += 1;
        if let Some(entered) = frame.entered.take() {
            return Ok(Some(entered));
        }
        let name = match &mut frame.kind {
            Kind::Parameters(fields) | Kind::Struct(fields) => {
                let fields = fields.clone();
                return self.enter_field(&fields, index);
            }
            Kind::Pairs(open) => {
                let was_open = std::mem::replace(open, true);
                if index % 2 == 0 {
                    if was_open {
                        self.finish()?;
                    }
                    self.next_element()?
                        .ok_or_else(|| Violation::MissingElement.at(self.reader.position()))?;
                    self.attributes()?;
                }
                self.next_element()?
            }
            Kind::Items | Kind::Union => self.next_element()?,
            Kind::Maybe | Kind::Variant => return self.wrong(Violation::Misuse),
        };
        match name {
            Some(_) => self.attributes().map(Some),
            None => self.wrong(Violation::MissingElement),
        }
    }

    fn enter_root(&mut self) -> Visit<Option<Entered>> {
        let Some(name) = self.next_element()? else { return Ok(None) };
        if !self.layout.wrapper.is_empty() && !self.is_named(name, &self.layout.wrapper)? {
            return self.wrong(Violation::UnexpectedElement);
        }
        self.attributes().map(Some)
    }

    /// Finds the element of a field: the next one that is not unknown to the contract.
    fn enter_field(&mut self, fields: &Struct, index: usize) -> Visit<Option<Entered>> {
        let wrapper = fields.name.is_empty();
        loop {
            let before = self.reader.clone();
            let Some(name) = self.next_element()? else { return Ok(None) };
            for (at, field) in fields.fields.iter().enumerate().skip(index) {
                if !self.is_field(name, &field.name, wrapper)? {
                    continue;
                }
                if at == index {
                    return self.attributes().map(Some);
                }
                self.reader = before;
                return Ok(None);
            }
            self.budget.charge_elements(1)?;
            self.finish()?;
        }
    }

    fn is_field(&self, name: Word<'a>, field: &str, wrapper: bool) -> Visit<bool> {
        if !(wrapper && field == "return") {
            return self.is_named(name, field);
        }
        if !self.layout.result.is_empty() {
            return self.is_named(name, &self.layout.result);
        }
        Ok(match name {
            Word::Inline(text) => text.ends_with("Result"),
            Word::Id(id) => self.words.word(id).is_some_and(|text| text.ends_with("Result")),
        } || self.is_named(name, field)?)
    }

    pub(super) fn enter_present(&mut self) -> Visit<Entered> {
        match self.enter()? {
            Some(entered) => Ok(entered),
            None => self.wrong(Violation::MissingElement),
        }
    }

    /// Bytes that a text may add to the content of its element.
    fn cost(&self, text: &Value<'_>) -> u64 {
        /// The longest notation of a number, date or identifier.
        const NOTATION: usize = 48;
        let len = match text {
            Value::Chars(chars) => chars.len(),
            Value::Bytes(bytes) => bytes.len(),
            // Two bytes of UTF-16 are at most three of UTF-8.
            Value::Wide(units) => units.len() / 2 * 3,
            Value::Word(id) | Value::QName(_, id) => self.words.word(*id).map_or(0, str::len) + 2,
            Value::Empty | Value::ListStart | Value::ListEnd => 0,
            _ => NOTATION,
        };
        len as u64
    }

    /// Reads the text of the element that was entered, and its end.
    pub(super) fn content(&mut self) -> Visit<Content<'a>> {
        let mut content = Content::Empty;
        loop {
            match self.next()? {
                Record::Text(text, ends) => {
                    self.budget.charge_bytes(self.cost(&text))?;
                    content = match (content, text) {
                        (Content::Empty, text) => self.content_of(text)?,
                        (content, Value::Word(id)) => match self.words.word(id) {
                            Some(word) => {
                                let mut joined = content.text().into_owned();
                                joined.push_str(word);
                                Content::Text(Cow::Owned(joined))
                            }
                            None => return self.wrong(Violation::UnknownWord),
                        },
                        (content, text) => content.push(text, None),
                    };
                    if ends {
                        return Ok(content);
                    }
                }
                Record::End => return Ok(content),
                Record::Comment(_) => {}
                _ => return self.wrong(Violation::BadValue),
            }
        }
    }

    /// Counts the elements up to the end of the one that is open, those of arrays included.
    pub(super) fn count(&mut self) -> Visit<usize> {
        let mut ahead = self.reader.clone();
        let depth = ahead.depth();
        let mut count = 0_u64;
        let mut in_array = false;
        while let Some(record) = ahead.read()? {
            match record {
                Record::Array => in_array = true,
                Record::Items(_, items, _) => {
                    if ahead.depth() == depth {
                        count += u64::from(items);
                    }
                    in_array = false;
                }
                Record::Element(..) if ahead.depth() == depth + 1 && !in_array => count += 1,
                _ => {}
            }
            if ahead.depth() < depth {
                break;
            }
        }
        self.budget.charge_elements(count)?;
        usize::try_from(count).map_err(|_| Violation::BadLength.at(self.reader.position()))
    }
}
