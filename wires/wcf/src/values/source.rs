//! Reading values from elements.

mod elements;

use super::Layout;
use super::names::schema_shape;
use super::scalar::Content;
use crate::dictionary::Incoming;
use crate::nbfx::{Item, Reader, Record, item};
use crate::violations::{Violation, unsupported};
use bytes::Bytes;
use everywire_model::shape::{Enum, Hold, Shape, Struct, Text};
use everywire_model::visit::{NumbersMut, Source, Visit};
use everywire_model::{Budget, Handle, Reference};
use std::borrow::Cow;

/// Reads the wrapper element of a message's body, or one value from an element.
///
/// Elements are found by their local names. Unknown elements are skipped, as WCF does; an element that the contract
/// expects may only be missing, or nil, where the shape is optional or a pointer (and a nil string or sequence is
/// empty).
#[derive(Debug)]
pub struct BinaryXmlSource<'a, 'w> {
    reader: Reader<'a>,
    words: &'w Incoming,
    layout: &'w Layout,
    budget: Budget,
    frames: Vec<Frame<'a>>,
    /// What large octets may be shared from.
    whole: Option<&'a Bytes>,
}

#[derive(Debug)]
enum Kind {
    Parameters(Hold<Struct>),
    Struct(Hold<Struct>),
    Union,
    Items,
    /// Pairs; whether the element of one is open.
    Pairs(bool),
    Maybe,
    Variant,
}

#[derive(Debug)]
struct Frame<'a> {
    kind: Kind,
    /// Values begun so far.
    index: usize,
    len: usize,
    /// Whether an element is open for this frame.
    open: bool,
    /// The element that was entered to look at it, for the value of a [`Kind::Maybe`] or [`Kind::Variant`].
    entered: Option<Entered>,
    /// Items of an array record that are still to be read.
    run: Option<(Item, &'a [u8])>,
}

/// An element whose start and attributes were read.
#[derive(Debug, Clone)]
struct Entered {
    nil: bool,
    /// Local name of its `i:type`.
    kind: Option<String>,
}

macro_rules! integers {
    ($($name:ident $type:ident),*) => {$(
        fn $name(&mut self) -> Visit<$type> {
            let value = self.scalar()?.integer().and_then(|value| $type::try_from(value).ok());
            self.expect(value)
        }
    )*};
}

impl<'a, 'w> BinaryXmlSource<'a, 'w> {
    /// A source over an element and the words of its session.
    pub fn new(element: &'a [u8], words: &'w Incoming, layout: &'w Layout, budget: Budget) -> Self {
        Self { reader: Reader::new(element), words, layout, budget, frames: Vec::new(), whole: None }
    }

    /// The same source, sharing large octets from the buffer that the element is part of.
    #[must_use]
    pub fn within(mut self, whole: &'a Bytes) -> Self {
        self.whole = Some(whole);
        self
    }

    /// Offset of the next record in the element.
    pub fn position(&self) -> usize {
        self.reader.position()
    }

    fn wrong<T>(&self, violation: Violation) -> Visit<T> {
        Err(violation.at(self.reader.position()))
    }

    fn expect<T>(&self, value: Option<T>) -> Visit<T> {
        value.ok_or_else(|| Violation::BadValue.at(self.reader.position()))
    }

    fn next(&mut self) -> Visit<Record<'a>> {
        match self.reader.read()? {
            Some(record) => Ok(record),
            None => self.wrong(Violation::Truncated),
        }
    }

    /// The content of the next value, or the next item of an array record.
    fn scalar(&mut self) -> Visit<Content<'a>> {
        if let Some(content) = self.next_item()? {
            return Ok(content);
        }
        let entered = self.enter_present()?;
        if entered.nil {
            return self.wrong(Violation::Nil);
        }
        self.content()
    }

    fn next_item(&mut self) -> Visit<Option<Content<'a>>> {
        let Some(frame) = self.frames.last_mut().filter(|frame| matches!(frame.kind, Kind::Items)) else {
            return Ok(None);
        };
        if frame.index < frame.len && frame.run.is_none() {
            self.find_run()?;
        }
        let Some(frame) = self.frames.last_mut() else { return Ok(None) };
        let Some((kind, data)) = frame.run else { return Ok(None) };
        let Some((raw, rest)) = data.split_at_checked(kind.width()) else {
            return self.wrong(Violation::Misuse);
        };
        frame.run = Some((kind, rest)).filter(|(_, rest)| !rest.is_empty());
        frame.index += 1;
        match item(kind, raw) {
            Some(text) => self.content_of(text).map(Some),
            None => self.wrong(Violation::OutOfRange),
        }
    }

    /// Enters an array record, if one comes next; comments and empty arrays say nothing.
    fn find_run(&mut self) -> Visit<()> {
        let mut ahead = self.reader.clone();
        loop {
            match ahead.read()? {
                Some(Record::Comment(_)) => {}
                Some(Record::Array) => {
                    let (kind, data) = loop {
                        match ahead.read()? {
                            Some(Record::Items(kind, _, data)) => break (kind, data),
                            Some(_) => {}
                            None => return self.wrong(Violation::Truncated),
                        }
                    };
                    if let Some(frame) = self.frames.last_mut().filter(|_| !data.is_empty()) {
                        frame.run = Some((kind, data));
                        self.reader = ahead;
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
            self.reader = ahead.clone();
        }
    }

    fn push(&mut self, kind: Kind, len: usize, open: bool) -> Visit<()> {
        self.budget.enter()?;
        self.frames.push(Frame { kind, index: 0, len, open, entered: None, run: None });
        Ok(())
    }

    /// Enters the element of a composite.
    fn open_element(&mut self, kind: Kind, len: usize) -> Visit<usize> {
        let entered = self.enter_present()?;
        if entered.nil {
            return self.wrong(Violation::Nil);
        }
        self.push(kind, len, true)?;
        Ok(len)
    }

    fn open_items(&mut self, shape: &Shape) -> Visit<usize> {
        let entered = self.enter_present()?;
        if entered.nil {
            self.finish()?;
            self.push(Kind::Items, 0, false)?;
            return Ok(0);
        }
        let count = self.count()?;
        let fits = match shape {
            Shape::Array(array) => array.len as usize == count,
            Shape::Sequence(sequence) => sequence.bound.is_none_or(|bound| count <= bound as usize),
            _ => true,
        };
        if !fits {
            return self.wrong(Violation::BoundExceeded);
        }
        match shape {
            Shape::Map(_) => self.push(Kind::Pairs(false), 2 * count, true)?,
            _ => self.push(Kind::Items, count, true)?,
        }
        Ok(count)
    }
}

impl<'a, 'w> Source<'a> for BinaryXmlSource<'a, 'w> {
    integers!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64);

    fn bool(&mut self) -> Visit<bool> {
        let value = self.scalar()?.boolean();
        self.expect(value)
    }

    #[allow(clippy::cast_possible_truncation)]
    fn f32(&mut self) -> Visit<f32> {
        self.f64().map(|value| value as f32)
    }

    fn f64(&mut self) -> Visit<f64> {
        let value = self.scalar()?.float();
        self.expect(value)
    }

    fn char(&mut self, _: bool) -> Visit<char> {
        let value = self.scalar()?.integer().and_then(|code| char::from_u32(u32::try_from(code).ok()?));
        self.expect(value)
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        if let Some(content) = self.next_item()? {
            return Ok(content.text());
        }
        let entered = self.enter_present()?;
        let content = self.content()?;
        if entered.nil {
            return Ok(Cow::Borrowed(""));
        }
        let text = content.text();
        if shape.bound.is_some_and(|bound| text.chars().count() > bound as usize) {
            return self.wrong(Violation::BoundExceeded);
        }
        Ok(text)
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        let entered = self.enter_present()?;
        let content = self.content()?;
        let octets = if entered.nil { Some(Cow::Borrowed(&[][..])) } else { content.octets() };
        let octets = self.expect(octets)?;
        let fits = match shape.resolved() {
            Shape::Array(array) => array.len as usize == octets.len(),
            Shape::Sequence(sequence) => sequence.bound.is_none_or(|bound| octets.len() <= bound as usize),
            _ => true,
        };
        if fits { Ok(octets) } else { self.wrong(Violation::BoundExceeded) }
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        Ok(match (self.bytes(shape)?, self.whole) {
            (Cow::Borrowed(part), Some(whole)) => whole.slice_ref(part),
            (octets, _) => Bytes::from(octets.into_owned()),
        })
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        if !into.is_empty() {
            self.find_run_unless_started()?;
        }
        let width = into.width();
        if let Some(frame) = self.frames.last_mut()
            && let Some((kind, data)) = frame.run
            && item_fits(&into, kind)
            && data.len() == into.len() * width
            && frame.index + into.len() == frame.len
        {
            into.fill(true, data);
            frame.index = frame.len;
            frame.run = None;
            return Ok(());
        }
        macro_rules! one_by_one {
            ($($variant:ident $name:ident),*) => {
                match into {
                    $(NumbersMut::$variant(items) => {
                        for item in items {
                            *item = self.$name()?;
                        }
                    })*
                }
            };
        }
        one_by_one!(U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64);
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let content = self.scalar()?;
        match shape.value_of(&content.text()) {
            Some(value) => Ok(value),
            None => self.wrong(Violation::UnknownEnumerant),
        }
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        match self.enter()? {
            Some(entered) if !entered.nil => Err(unsupported("references to objects")),
            Some(_) => self.finish().map(|()| None),
            None => Ok(None),
        }
    }

    fn handle(&mut self) -> Visit<Handle> {
        Err(unsupported("handles of the operating system"))
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        match shape.resolved() {
            Shape::Struct(fields) if fields.name.is_empty() && self.frames.is_empty() => {
                self.open_element(Kind::Parameters(fields.clone()), fields.fields.len())
            }
            Shape::Struct(fields) => self.open_element(Kind::Struct(fields.clone()), fields.fields.len()),
            Shape::Union(_) => self.open_element(Kind::Union, 2).map(|_| 0),
            resolved @ (Shape::Sequence(_) | Shape::Array(_) | Shape::Map(_)) => self.open_items(resolved),
            Shape::Optional(_) | Shape::Pointer(_) => {
                // An item of an array record is never nil; it is read by the value itself.
                let entered = match self.enter()? {
                    Some(entered) if !entered.nil => Some(entered),
                    Some(_) => {
                        self.finish()?;
                        None
                    }
                    None => None,
                };
                let len = usize::from(entered.is_some());
                self.push(Kind::Maybe, len, false)?;
                if let Some(frame) = self.frames.last_mut() {
                    frame.entered = entered;
                }
                Ok(len)
            }
            Shape::Variant => {
                let entered = self.enter_present()?;
                self.push(Kind::Variant, 1, false)?;
                if let Some(frame) = self.frames.last_mut() {
                    frame.entered = Some(entered);
                }
                Ok(1)
            }
            _ => self.wrong(Violation::Misuse),
        }
    }

    fn content(&mut self) -> Visit<Shape> {
        let Some(Frame { kind: Kind::Variant, entered, len, .. }) = self.frames.last_mut() else {
            return self.wrong(Violation::Misuse);
        };
        let shape = match entered {
            Some(Entered { nil: false, kind: Some(kind) }) => schema_shape(kind),
            // Nothing, or an object of no type.
            _ => {
                *entered = None;
                *len = 0;
                self.finish()?;
                return Ok(Shape::Void);
            }
        };
        shape.ok_or_else(|| unsupported("a value of a type that only its contract knows"))
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.frames.pop() else { return self.wrong(Violation::Misuse) };
        self.budget.leave();
        if frame.index != frame.len && !matches!(frame.kind, Kind::Union) {
            return self.wrong(Violation::Misuse);
        }
        if matches!(frame.kind, Kind::Pairs(true)) {
            self.finish()?;
        }
        if frame.open {
            self.finish()?;
        }
        Ok(())
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}

impl BinaryXmlSource<'_, '_> {
    fn find_run_unless_started(&mut self) -> Visit<()> {
        match self.frames.last() {
            Some(Frame { kind: Kind::Items, run: None, .. }) => self.find_run(),
            _ => Ok(()),
        }
    }
}

/// Whether the items of an array are just these numbers.
fn item_fits(into: &NumbersMut<'_>, kind: Item) -> bool {
    matches!(
        (into, kind),
        (NumbersMut::I16(_), Item::I16)
            | (NumbersMut::I32(_), Item::I32)
            | (NumbersMut::I64(_), Item::I64)
            | (NumbersMut::F32(_), Item::F32)
            | (NumbersMut::F64(_), Item::F64)
    )
}
