//! Values of a message straight to JSON text, in bounded memory.
//!
//! The form is that of `write`, and what holds no other values is read and written by it. Lists, structs, unions and variants are
//! written while they are read, so nothing but the text is there of them. Maps are read first: whether they are objects depends on
//! all of their keys.
//!
//! States of a text: it *has room*, or *is full*: then it takes nothing more until it is cut.
//!
//! Invariants: a text is never longer than it may be, and holds whole values: what failed is cut off again. The order in which a
//! source is asked is that of `Value::decode`. A failure of the source is what the caller gets, not the serializer's word for it.

use super::write::{arm_shape, discriminator, last_of_each};
use super::{Notation, Written, described, kinds, spelled};
use everywire::{Failure, Initiator, Value};
use everywire_model::pipe;
use everywire_model::shape::{Field, Shape, Struct, Union};
use everywire_model::{Source, Visit};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::io;

/// Text that grows up to a limit.
#[derive(Debug, Default)]
pub struct LimitedText {
    text: Vec<u8>,
    most: usize,
    /// How long it would have become, where that was too much.
    wanted: Option<usize>,
}

impl LimitedText {
    /// Nothing yet, of at most so many octets.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Text as it is.
    ///
    /// # Errors
    /// It has no room: [`everywire::Kind::LimitExceeded`].
    pub fn push_str(&mut self, text: &str) -> Result<(), Failure> {
        io::Write::write_all(self, text.as_bytes()).map_err(|_| self.full())
    }

    /// A value as JSON.
    ///
    /// # Errors
    /// It has no room ([`everywire::Kind::LimitExceeded`]), or is no JSON. Nothing of it is there then.
    pub fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let before = self.text.len();
        serde_json::to_writer(&mut *self, value).map_err(|error| {
            let failure = match self.wanted {
                Some(_) => self.full(),
                None => Failure::bad_argument(error.to_string()),
            };
            self.text.truncate(before);
            failure
        })
    }

    /// The values of this shape that a message has, as [`Written`] writes them. The text is charged to what decoding the message may
    /// cost, as decoded values are.
    ///
    /// # Errors
    /// The message does not hold such values, or costs too much ([`everywire::Kind::LimitExceeded`]). Nothing of them is there then.
    pub fn pass<'a>(
        &mut self,
        shape: &Shape,
        source: &mut dyn Source<'a>,
        notation: &dyn Notation,
    ) -> Visit<()> {
        let (before, most) = (self.text.len(), self.most);
        let room = usize::try_from(source.budget().bytes).unwrap_or(usize::MAX);
        self.most = most.min(before.saturating_add(room));
        let reading = RefCell::new(Reading { source, failure: None });
        let passed = serde_json::to_writer(&mut *self, &Passing { shape, reading: &reading, notation });
        let Reading { source, failure } = reading.into_inner();
        let passed = passed.map_err(|error| match (failure, self.wanted) {
            (Some(failure), _) => failure,
            (None, Some(_)) => self.full(),
            (None, None) => Failure::bad_argument(error.to_string()),
        });
        let text = self.text.len().saturating_sub(before) as u64;
        let passed = passed.and_then(|()| {
            let left = source.budget().bytes;
            source.budget().charge_bytes(text).map_err(|_| too_long(text, left))
        });
        if passed.is_err() {
            self.text.truncate(before);
        }
        (self.most, self.wanted) = (most, None);
        passed
    }

    /// The text; UTF-8.
    pub fn into_bytes(self) -> Vec<u8> {
        self.text
    }

    /// Why it takes nothing more.
    fn full(&mut self) -> Failure {
        let wanted = self.wanted.take();
        too_long(wanted.unwrap_or(usize::MAX) as u64, self.most as u64)
    }
}

impl io::Write for LimitedText {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let wanted = self.text.len().saturating_add(text.len());
        if wanted > self.most || self.wanted.is_some() {
            self.wanted.get_or_insert(wanted);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_long(octets: u64, most: u64) -> Failure {
    Failure::over_limit(Initiator::Peer, "bytes of the values of one message as JSON", octets, most)
        .with_hint("raise the limit of messages: `Builder::max_message`, `--max-message`; eight times as much may be text")
}

/// A source, and what it said when it failed.
struct Reading<'s, 'a> {
    source: &'s mut dyn Source<'a>,
    failure: Option<Failure>,
}

/// The value that comes next.
struct Passing<'p, 's, 'a> {
    shape: &'p Shape,
    reading: &'p RefCell<Reading<'s, 'a>>,
    notation: &'p dyn Notation,
}

impl<'s, 'a> Passing<'_, 's, 'a> {
    fn of<'q>(&'q self, shape: &'q Shape) -> Passing<'q, 's, 'a> {
        Passing { shape, reading: self.reading, notation: self.notation }
    }

    /// Asks the source.
    fn ask<T, E: serde::ser::Error>(
        &self,
        ask: impl FnOnce(&mut dyn Source<'a>) -> Visit<T>,
    ) -> Result<T, E> {
        let mut reading = self.reading.borrow_mut();
        ask(&mut *reading.source).map_err(|failure| {
            reading.failure = Some(failure);
            E::custom("the message does not hold these values")
        })
    }
}

impl Serialize for Passing<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.shape.resolved() {
            resolved @ Shape::Optional(target) => self.maybe(resolved, target, out),
            resolved @ Shape::Pointer(pointer) => self.maybe(resolved, &pointer.target, out),
            // These are one word each.
            _ if spelled::of(self.shape).is_some() => self.whole(out),
            Shape::Sequence(_) | Shape::Array(_) => self.list(out),
            resolved @ Shape::Struct(held) => self.structure(resolved, held, out),
            resolved @ Shape::Union(union) => self.union(resolved, union, out),
            Shape::Variant => self.variant(out),
            _ => self.whole(out),
        }
    }
}

impl Passing<'_, '_, '_> {
    /// Reads the value before it is written.
    #[inline(never)]
    fn whole<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let value = self.ask(|source| Value::decode(self.shape, source))?;
        Written { shape: self.shape, value: &value, notation: self.notation }.serialize(out)
    }

    fn maybe<S: Serializer>(&self, shape: &Shape, target: &Shape, out: S) -> Result<S::Ok, S::Error> {
        let is_there = self.ask(|source| source.open(shape))? > 0;
        let written = if is_there { self.of(target).serialize(out)? } else { out.serialize_unit()? };
        self.ask(|source| source.close(shape))?;
        Ok(written)
    }

    fn list<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let element = self.shape.resolved().element().unwrap_or(&Shape::Void);
        if matches!(element.resolved(), Shape::U8) {
            return self.whole(out);
        }
        // An alias around a list may say how its items are written.
        let len = self.ask(|source| source.open(self.shape))?;
        let mut list = out.serialize_seq(Some(len))?;
        for _ in 0..len {
            list.serialize_element(&self.of(element))?;
        }
        self.ask(|source| source.close(self.shape))?;
        list.end()
    }

    fn structure<S: Serializer>(&self, resolved: &Shape, held: &Struct, out: S) -> Result<S::Ok, S::Error> {
        if kinds::is_nameless(held) {
            self.ask(|source| source.open(resolved))?;
            let mut list = out.serialize_seq(Some(held.fields.len()))?;
            for field in held.fields.iter() {
                list.serialize_element(&self.of(&field.shape))?;
            }
            self.ask(|source| source.close(resolved))?;
            return list.end();
        }
        let name = |at| held.fields.get(at).map_or("", |field: &Field| field.name.as_ref());
        if last_of_each(held.fields.len(), name).is_some() {
            // Which value a name has is known at the end only.
            return self.whole(out);
        }
        self.ask(|source| source.open(resolved))?;
        let mut object = out.serialize_map(Some(held.fields.len()))?;
        for field in held.fields.iter() {
            object.serialize_entry(&*field.name, &self.of(&field.shape))?;
        }
        self.ask(|source| source.close(resolved))?;
        object.end()
    }

    fn union<S: Serializer>(&self, resolved: &Shape, union: &Union, out: S) -> Result<S::Ok, S::Error> {
        let (label, selected) = self.ask(|source| {
            source.open(resolved)?;
            let label = pipe::discriminator(&union.discriminator, source)?;
            let selected = union.select(label);
            source.arm(resolved, selected)?;
            Ok((label, selected.is_some_and(|index| union.arms.get(index).is_some())))
        })?;
        let mut object = out.serialize_map(None)?;
        object.serialize_entry("discriminator", &discriminator(&union.discriminator, label))?;
        if selected {
            object.serialize_entry("arm", &self.of(arm_shape(union, label)))?;
        }
        self.ask(|source| source.close(resolved))?;
        object.end()
    }

    fn variant<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let content = self.ask(|source| {
            source.open(self.shape)?;
            source.content()
        })?;
        let mut object = out.serialize_map(Some(2))?;
        object.serialize_entry("shape", &described::describe(&content, self.notation))?;
        object.serialize_entry("value", &self.of(&content))?;
        self.ask(|source| source.close(self.shape))?;
        object.end()
    }
}
