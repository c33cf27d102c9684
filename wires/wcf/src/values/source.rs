//! Reading values from elements.
//!
//! An `ElementSource` answers the visit of a value (`everywire_model::visit::Source`) from a cursor in a
//! document. The reader asks for values in the order of the contract; the source finds each one's element,
//! mostly as the next one.
//!
//! State (`state.rs`): the cursor, a stack of frames for open composites above the one of the nameless
//! struct, and what was found out of its place: a struct whose members stand in another order (`Jumble`),
//! elements that others refer to (`aside`), attributes and texts that were read ahead (`ValuesOutsideElements`).
//!
//! Invariants:
//!
//! * Elements are found by local names; those that the contract does not know are skipped, and what is
//!   missing reads as its default, as WCF does it. A member that comes twice is refused.
//! * Each number of elements is counted and charged to the budget before anything is made of it, each text
//!   is charged before it is joined, each composite is charged for its depth.
//! * `MaxArrayLength`, bounds of sequences and lengths of arrays are compared with the count, before items
//!   are read.
//! * A value that is nil reads as the empty value where the contract has one for that (text, octets,
//!   optional), and is `Nil` elsewhere.
//! * Whatever order the caller asks in, the cursor ends behind the element of a composite when that is
//!   closed.

mod accessors;
mod apart;
mod derived;
mod elements;
mod fields;
mod lexical;
mod places;
mod referred;
mod state;
mod untyped;

pub(super) use state::ElementSource;

use super::BodyContext;
use super::cursor::{Cursor, OpenElement, Run};
use super::names::{self, Notation, SCHEMA, is_derived, notation, schema_duration, schema_shape};
use super::scalar::Content;
use crate::nbfx::{Item, item};
use crate::violations::{Violation, unsupported};
use accessors::is_base64;
use bytes::Bytes;
use everywire_idl::wsdl::names::is_name;
use everywire_model::shape::{Enum, Shape, Text};
use everywire_model::visit::{NumbersMut, Source, Visit};
use everywire_model::{Body, Budget, Reference};
use lexical::{has_empty, without_blanks};
use places::pair_names;
use state::{Frame, Kind, NextValue, ValuesOutsideElements};
use std::borrow::Cow;

/// A whole number as it was found.
/// Numbers are so frequent that the usual record has a way of its own.
enum Integer<'a> {
    Missing,
    Short(i64),
    Other(Content<'a>),
}

macro_rules! integers {
    ($($name:ident $type:ident),*) => {$(
        fn $name(&mut self) -> Visit<$type> {
            match self.integer()? {
                Integer::Missing => Ok(0),
                Integer::Short(value) => self.expect($type::try_from(value).ok()),
                Integer::Other(content) => {
                    self.parsed(&content, |content| content.integer().and_then(|value| $type::try_from(value).ok()))
                }
            }
        }
    )*};
}

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// A source over the place of a cursor in a body's document.
    #[inline]
    pub(super) fn new(cursor: C, body: &'a Body, reading: &'a BodyContext) -> Self {
        Self {
            cursor,
            aside: Vec::new(),
            enveloped: body.base > 0,
            budget: body.budget,
            quotas: reading.quotas,
            base: Frame::new(Kind::Root, 1),
            frames: Vec::new(),
            whole: &body.bytes,
            unknown: None,
            reading,
            takes_first: false,
            referred: None,
        }
    }

    /// Begins at this place, inside the element around the values.
    #[inline]
    pub(super) fn go_inside(&mut self, at: usize) {
        self.cursor.seek(at, 1);
        (self.base.open, self.base.depth, self.base.at) = (true, 1, at);
    }

    /// Looks at what stands behind values that are `outer` elements deep; nothing where there is no envelope.
    #[inline]
    pub(super) fn leave_envelope(&mut self, outer: usize) -> Visit<()> {
        if outer == 0 { Ok(()) } else { self.cursor.leave_envelope() }
    }

    fn wrong<T>(&self, violation: Violation) -> Visit<T> {
        Err(violation.at(self.cursor.position()))
    }

    fn expect<T>(&self, value: Option<T>) -> Visit<T> {
        self.found(value, Violation::BadValue)
    }

    /// What must be there.
    fn found<T>(&self, found: Option<T>, violation: Violation) -> Visit<T> {
        found.ok_or_else(|| violation.at(self.cursor.position()))
    }

    /// The innermost open composite, or the base.
    fn top(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().unwrap_or(&mut self.base)
    }

    /// The content of the next value, or the next item of an array record; nothing if it is missing.
    #[inline]
    fn scalar(&mut self) -> Visit<Option<Content<'a>>> {
        if self.enter_plain() {
            return self.cursor.content(&mut self.budget).map(Some);
        }
        match self.next_item()? {
            NextValue::Content(content) => return Ok(Some(content)),
            NextValue::Missing => return Ok(None),
            NextValue::Element => {}
        }
        match self.enter()? {
            None => Ok(self.default()),
            Some(entered) if entered.nil => self.wrong(Violation::Nil),
            Some(_) => self.cursor.content(&mut self.budget).map(Some),
        }
    }

    /// The whole number that comes next.
    #[inline]
    fn integer(&mut self) -> Visit<Integer<'a>> {
        if !self.enter_plain() {
            match self.next_item()? {
                NextValue::Content(content) => return Ok(Integer::Other(content)),
                NextValue::Missing => return Ok(Integer::Missing),
                NextValue::Element => {}
            }
            match self.enter()? {
                None => return Ok(self.default().map_or(Integer::Missing, Integer::Other)),
                Some(entered) if entered.nil => return self.wrong(Violation::Nil),
                Some(_) => {}
            }
        }
        if let Some(value) = self.cursor.integer() {
            self.budget.charge_bytes(size_of::<i64>() as u64)?;
            return Ok(Integer::Short(value));
        }
        self.cursor.content(&mut self.budget).map(Integer::Other)
    }

    /// What comes next, if it is not in an element of its own.
    fn next_item(&mut self) -> Visit<NextValue<'a>> {
        if !matches!(self.frames.last(), Some(Frame { kind: Kind::Items, .. })) {
            return self.next_apart();
        }
        self.find_run()?;
        let Some(frame) = self.frames.last_mut() else { return Ok(NextValue::Element) };
        let Some((kind, data)) = frame.run else { return Ok(NextValue::Element) };
        let Some((raw, rest)) = data.split_at_checked(kind.width()) else {
            return self.wrong(Violation::Misuse);
        };
        frame.run = Some((kind, rest)).filter(|(_, rest)| !rest.is_empty());
        frame.index += 1;
        let text = self.found(item(kind, raw), Violation::OutOfRange)?;
        Ok(NextValue::Content(Content::of(text, None)))
    }

    /// Enters an array record, if one comes next; empty ones say nothing.
    fn find_run(&mut self) -> Visit<()> {
        self.leave_aside();
        loop {
            match self.frames.last() {
                Some(Frame { run: None, index, len, .. }) if index < len => {}
                _ => return Ok(()),
            }
            let Some(Run { kind, data, .. }) = self.cursor.array()? else { return Ok(()) };
            if let Some(frame) = self.frames.last_mut().filter(|_| !data.is_empty()) {
                frame.run = Some((kind, data));
            }
        }
    }

    /// Opens a composite; `close` gives its depth back to the budget.
    fn push(&mut self, frame: Frame<'a>) -> Visit<()> {
        self.budget.enter()?;
        self.frames.push(frame);
        Ok(())
    }

    /// Opens a composite of elements. One that is missing or nil has none in it.
    fn open_element(&mut self, kind: Kind, len: usize) -> Visit<usize> {
        let entered = self.enter_object()?;
        let (open, depth) = (entered.is_some(), self.cursor.depth());
        let at = entered.map_or(0, |entered| entered.at);
        self.push(Frame { open, depth, at, ..Frame::new(kind, len) })?;
        Ok(len)
    }

    /// Enters the element of the value that begins now, if it has something in it. One that is nil is read to its
    /// end at once.
    fn enter_filled(&mut self) -> Visit<Option<OpenElement<'a>>> {
        match self.enter()? {
            Some(entered) if entered.nil => self.cursor.finish().map(|()| None),
            entered => Ok(entered),
        }
    }

    /// The same of an object: a list or a map has it, so nothing is no object of zeros.
    fn enter_object(&mut self) -> Visit<Option<OpenElement<'a>>> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let is_held = matches!(frame.kind, Kind::Items | Kind::Flat(_) | Kind::Pairs(..));
        let entered = self.enter_filled()?;
        if is_held && entered.is_none() { self.wrong(Violation::Nil) } else { Ok(entered) }
    }

    /// Opens a list or a map; returns how many items it has, or pairs.
    fn open_items(&mut self, shape: &Shape) -> Visit<usize> {
        if let Some(count) = self.open_apart(shape)? {
            return Ok(count);
        }
        let open = self.enter_filled()?.is_some();
        // Whoever reads wants the number first, and the document does not tell it: a second pass does.
        let count = if open { self.count_alike(shape)? } else { 0 };
        self.budget.charge_elements(count)?;
        let count = usize::try_from(count).map_err(|_| Violation::BadLength.at(self.cursor.position()))?;
        self.fits(shape, count)?;
        let frame = match shape.resolved() {
            Shape::Map(_) => Frame::new(Kind::Pairs(false, pair_names(shape)), count.saturating_mul(2)),
            _ => Frame::new(Kind::Items, count),
        };
        self.push(Frame { open, depth: self.cursor.depth(), ..frame })?;
        Ok(count)
    }

    /// Opens a frame whose value has the element of this one; nothing if there is none.
    fn open_passing(&mut self, kind: Kind) -> Visit<usize> {
        match self.next_apart()? {
            NextValue::Element => {}
            NextValue::Missing => {
                self.push(Frame::new(kind, 0))?;
                return Ok(0);
            }
            NextValue::Content(content) => {
                let apart = Some(Box::new(ValuesOutsideElements::of(content)));
                self.push(Frame { apart, ..Frame::new(kind, 1) })?;
                return Ok(1);
            }
        }
        let entered = self.enter_filled()?;
        let len = usize::from(entered.is_some());
        self.push(Frame { entered, ..Frame::new(kind, len) })?;
        Ok(len)
    }

    /// A qualified name in Clark notation.
    fn qualified(&mut self, name: Cow<'a, str>) -> Visit<Cow<'a, str>> {
        // A prefix that stands for nothing is an error; no prefix and no default namespace is a plain name.
        let trimmed = name.trim();
        let (prefix, local) = trimmed.split_once(':').unwrap_or(("", trimmed));
        // .NET writes the empty name, which it has, as an empty element.
        if !trimmed.is_empty() && !is_name(local) {
            return self.wrong_text(Violation::BadValue);
        }
        match self.cursor.namespace(prefix, self.cursor.position(), &mut self.budget)? {
            Some(namespace) if !namespace.is_empty() => Ok(Cow::Owned(format!("{{{namespace}}}{local}"))),
            _ if prefix.is_empty() => Ok(without_blanks(name)),
            _ => self.wrong(Violation::UnknownPrefix),
        }
    }

    /// The notation that the contract gives the value that comes next.
    fn notation(&self) -> Option<Notation> {
        let frame = self.frames.last().unwrap_or(&self.base);
        match &frame.kind {
            Kind::Struct(fields, _) => notation(&fields.fields.get(frame.index)?.shape),
            Kind::Pairs(..) if frame.index % 2 == 1 => frame.notations[1],
            Kind::Variant | Kind::Maybe | Kind::Items | Kind::Flat(_) | Kind::Pairs(..) | Kind::Named => {
                frame.notations[0]
            }
            _ => None,
        }
    }

    /// Opens a composite; how many values it has.
    fn open_any(&mut self, shape: &Shape) -> Visit<usize> {
        match shape.resolved() {
            Shape::Struct(fields)
                if fields.name.is_empty()
                    && self.frames.is_empty()
                    && matches!(self.base.kind, Kind::Root) =>
            {
                self.open_parameters(fields)
            }
            Shape::Struct(fields) => {
                self.open_element(Kind::Struct(fields.clone(), false), fields.fields.len())
            }
            Shape::Union(_) if matches!(self.frames.last(), Some(Frame { kind: Kind::Flat(true), .. })) => {
                self.open_named()
            }
            Shape::Union(union) if is_derived(union) => self.open_derived(union),
            Shape::Union(union) => self.open_element(Kind::Choice(union.clone(), None), 2).map(|_| 0),
            Shape::Sequence(_) | Shape::Array(_) | Shape::Map(_) => self.open_items(shape),
            Shape::Optional(_) | Shape::Pointer(_) => self.open_passing(Kind::Maybe),
            Shape::Variant => self.open_passing(Kind::Variant).map(|_| 1),
            _ => self.wrong(Violation::Misuse),
        }
    }

    /// The shape of the value of any type that was opened last.
    fn content_told(&mut self) -> Visit<Shape> {
        let Some(Frame { kind: Kind::Variant, entered, len, .. }) = self.frames.last_mut() else {
            return self.wrong(Violation::Misuse);
        };
        let told = entered.as_ref().and_then(|entered| entered.kind.as_ref());
        let Some(told) = told else {
            // Others than .NET leave the type out: what stands there tells.
            let found = entered.as_ref().filter(|entered| !entered.nil);
            let found = found.map(|entered| (entered.at, entered.name)).filter(|_| !self.cursor.ends());
            if let Some((at, name)) = found {
                return self.shape_without_type(at, name);
            }
            // Nothing at all is another thing than an object of no type (`new object()`), whose element is empty.
            if entered.as_ref().is_some_and(|entered| !entered.nil) {
                return Ok(names::markup(None));
            }
            *len = 0;
            if entered.take().is_some() {
                self.cursor.finish()?;
            }
            return Ok(Shape::Void);
        };
        let (told, at) = (told.local().to_owned(), entered.as_ref().map_or(0, |entered| entered.at));
        // Two have this name, and who wrote one of XML Schema knows no other.
        if told == "duration" && self.namespace_told(at)?.0 == SCHEMA {
            return Ok(schema_duration());
        }
        // A plain type needs no contract.
        if let Some(shape) = schema_shape(&told) {
            return Ok(shape);
        }
        self.shape_of(at, &told)
    }
}

impl<'a, C: Cursor<'a>> Source<'a> for ElementSource<'a, C> {
    integers!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64);

    fn bool(&mut self) -> Visit<bool> {
        let Some(content) = self.scalar()? else { return Ok(false) };
        self.parsed(&content, Content::boolean)
    }

    #[allow(clippy::cast_possible_truncation)]
    fn f32(&mut self) -> Visit<f32> {
        let value = self.f64()?;
        let narrow = value as f32;
        // A number beyond the type's is none of its values (`XmlConvert.ToSingle` of .NET Framework and Mono).
        self.expect((narrow.is_finite() || !value.is_finite()).then_some(narrow))
    }

    fn f64(&mut self) -> Visit<f64> {
        let Some(content) = self.scalar()? else { return Ok(0.0) };
        self.parsed(&content, Content::float)
    }

    fn char(&mut self, _: bool) -> Visit<char> {
        let Some(content) = self.scalar()? else { return Ok('\0') };
        // .NET's char is a unit of UTF-16.
        let value = content.integer().and_then(|code| char::from_u32(u16::try_from(code).ok()?.into()));
        self.expect(value)
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let notation = self.notation();
        match self.next_item()? {
            NextValue::Element => {}
            NextValue::Missing => return self.missing_text(notation),
            // An attribute's prefix is one of the element around it.
            NextValue::Content(content) if notation == Some(Notation::QName) => {
                return self.qualified(content.text());
            }
            NextValue::Content(content) => {
                let text = self.lexical(notation, content.text())?;
                return self.bounded(shape, text);
            }
        }
        let Some(entered) = self.enter()? else {
            return match self.default() {
                Some(default) => Ok(default.text()),
                None => self.missing_text(notation),
            };
        };
        if entered.nil && !has_empty(notation) {
            return self.wrong_text(Violation::Nil);
        }
        if notation.is_none() && !entered.nil && entered.kind.as_ref().is_some_and(is_base64) {
            return self.text_in_base64(shape);
        }
        if notation == Some(Notation::Markup) && !entered.nil {
            let markup = self.cursor.markup(entered.at, &mut self.budget)?;
            return self.bounded(shape, Cow::Owned(markup));
        }
        let qualifies = notation == Some(Notation::QName) && !entered.nil;
        let text = if qualifies {
            // Prefixes are those that are declared inside the element: it stays open until the name is known.
            let mut ahead = self.cursor.ahead();
            let content = ahead.content(&mut self.budget)?.text();
            let name = self.qualified(content)?;
            self.cursor.seek(ahead.position(), ahead.depth());
            name
        } else {
            self.cursor.content(&mut self.budget)?.text()
        };
        if entered.nil {
            return Ok(Cow::Borrowed(""));
        }
        let text = self.lexical(notation, text)?;
        self.bounded(shape, text)
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        let (next, nil) = if self.enter_plain() {
            (NextValue::Element, Some(false))
        } else {
            match self.next_apart()? {
                NextValue::Element => (NextValue::Element, self.enter()?.map(|entered| entered.nil)),
                next => (next, None),
            }
        };
        let octets = match nil {
            None if let NextValue::Content(content) = next => self.expect(content.octets())?,
            None => Cow::Borrowed(&[][..]),
            Some(nil) => {
                let octets = self.cursor.octets(&mut self.budget)?;
                self.expect(if nil { Some(Cow::Borrowed(&[][..])) } else { octets })?
            }
        };
        self.fits(shape, octets.len())?;
        Ok(octets)
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        Ok(match self.bytes(shape)? {
            Cow::Borrowed([]) => Bytes::new(),
            // No copy: the message stays in memory as long as the value does.
            Cow::Borrowed(part) => self.whole.slice_ref(part),
            Cow::Owned(octets) => Bytes::from(octets),
        })
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        if matches!(self.frames.last(), Some(Frame { kind: Kind::Items, .. })) {
            self.find_run()?;
        }
        let width = into.width();
        // The whole list in one array record of the same type: its bytes are the numbers.
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
        if matches!(self.frames.last(), Some(Frame { kind: Kind::Derived(_) | Kind::Named, index: 0, .. })) {
            return self.derived(shape);
        }
        // What is missing reads as the first member, as a missing number reads as 0.
        let missing = || shape.members.first().map_or(0, |(_, value)| *value);
        let Some(content) = self.scalar()? else { return Ok(missing()) };
        match shape.value_of(content.lexical().trim()) {
            Some(value) => Ok(value),
            None => self.of_empty(&content, Violation::UnknownEnumerant, |content| {
                shape.value_of(content.lexical().trim())
            }),
        }
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        match self.enter_filled()? {
            Some(_) => Err(unsupported("references to objects")),
            None => Ok(None),
        }
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        let held = match shape.resolved() {
            Shape::Optional(held) => [notation(held), None],
            Shape::Map(map) => [notation(&map.key), notation(&map.value)],
            Shape::Sequence(list) => [notation(&list.element), None],
            _ => [None; 2],
        };
        let len = self.open_any(shape)?;
        if held != [None; 2] {
            self.top().notations = held;
        }
        // The element says by its name which arm it is.
        if let (Shape::Union(union), Some(frame)) = (shape.resolved(), self.frames.last_mut())
            && let Kind::Named = frame.kind
            && let Some(entered) = &frame.entered
        {
            let arm = union.arms.iter().find(|arm| arm.field.name == entered.name);
            frame.notations[0] = arm.and_then(|arm| notation(&arm.field.shape));
        }
        Ok(len)
    }

    fn content(&mut self) -> Visit<Shape> {
        let shape = self.content_told()?;
        self.top().notations = [notation(&shape), None];
        Ok(shape)
    }

    fn arm(&mut self, _: &Shape, arm: Option<usize>) -> Visit<()> {
        if let Some(Frame { kind: Kind::Choice(_, selected), .. }) = self.frames.last_mut() {
            *selected = arm;
        }
        Ok(())
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        self.budget.leave();
        self.leave_aside();
        let frame = self.frames.last().unwrap_or(&self.base);
        if frame.index != frame.len && !matches!(frame.kind, Kind::Choice(..)) {
            return self.wrong(Violation::Misuse);
        }
        let open = frame.open;
        // The cursor is somewhere in the struct, and not at its end.
        if frame.jumble.is_some() || frame.entered.is_some() || matches!(frame.kind, Kind::Pairs(true, _)) {
            self.leave_inside()?;
        } else if matches!(frame.kind, Kind::Struct(..)) && !self.cursor.ends() {
            self.pass_rest()?;
        }
        if self.frames.pop().is_none() {
            (self.base.kind, self.base.len, self.base.index) = (Kind::Root, 0, 0);
            self.base.open = false;
        }
        if open { self.cursor.finish() } else { Ok(()) }
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
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
