//! Reading values as `QDataStream` wrote them (Qt 3.3, stream version 6): big-endian, without alignment.
//!
//! A `StreamSource` reads the values of one body at the shapes of a contract. Nothing in the data says their
//! types, so values of another type are noticed only where they do not fit.
//!
//! Invariants against hostile bytes: each read is checked against the end; a count is refused if the rest
//! cannot hold as many elements of the least size (`least_size`); then the memory that they will take is
//! charged to the budget, and only then does the caller reserve it. Nesting is charged by `open` and given
//! back by `close`. Texts must end with their NUL and have none inside.
//!
//! Leniency where Qt has it: a boolean is anything but 0, a null string reads as empty, and what follows the
//! last value is ignored.

use crate::sink::unsupported;
use crate::{address, strings, variants};
use bytes::Bytes;
use everywire_model::shape::{Enum, Text, TextKind};
use everywire_model::visit::NumbersMut;
use everywire_model::{Body, Budget, Failure, Reference, Shape, Source, Visit};
use std::borrow::Cow;

/// Reads the values of a body. What follows the last value is ignored, as KDE's programs do.
pub(crate) struct StreamSource<'a> {
    body: &'a Body,
    /// Index of the next octet.
    pos: usize,
    /// What reading may still cost.
    budget: Budget,
}

impl<'a> StreamSource<'a> {
    /// At the first value.
    pub(crate) fn new(body: &'a Body) -> Self {
        Self { body, pos: 0, budget: body.budget }
    }

    /// Octets that are left.
    #[inline]
    fn left(&self) -> usize {
        self.body.bytes.len().saturating_sub(self.pos)
    }

    /// So many octets.
    #[inline]
    fn raw<const N: usize>(&mut self) -> Visit<[u8; N]> {
        let Some(raw) = self.body.bytes.get(self.pos..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.short());
        };
        self.pos += N;
        Ok(*raw)
    }

    /// As many octets as a count says.
    #[inline]
    fn take(&mut self, len: usize) -> Visit<&'a [u8]> {
        let body: &'a Body = self.body;
        let taken = self.pos.checked_add(len).and_then(|end| body.bytes.get(self.pos..end));
        let Some(taken) = taken else { return Err(self.short()) };
        self.pos += len;
        Ok(taken)
    }

    /// A count, which nothing is done about yet.
    #[inline]
    fn count(&mut self) -> Visit<usize> {
        Ok(u32::from_be_bytes(self.raw()?) as usize)
    }

    /// The other side has written fewer values, or others.
    #[cold]
    fn short(&self) -> Failure {
        self.wrong("the values end early").with_hint("compare the signature with the contract of both sides")
    }

    /// Bytes that do not hold what they should, at the present place.
    #[cold]
    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        Failure::malformed(what, self.pos)
    }

    /// Checks a count before anything is done about it, and charges for the elements. `least` is the fewest
    /// bytes of each; `width` is what numbers take.
    fn elements(&mut self, len: usize, least: usize, width: Option<usize>) -> Visit<usize> {
        if len.checked_mul(least).is_none_or(|bytes| bytes > self.left()) {
            return Err(self.wrong(format_args!("{len} elements exceed the rest of the message")));
        }
        let each = match width {
            // Numbers occupy what they occupied in the message.
            Some(width) => width,
            None => {
                self.budget.charge_elements(len as u64)?;
                32
            }
        };
        self.budget.charge_bytes((len as u64).saturating_mul(each as u64))?;
        Ok(len)
    }

    /// The count of a list; that of an array must be its own.
    fn list(&mut self, shape: &Shape) -> Visit<usize> {
        let len = self.count()?;
        match shape.resolved() {
            Shape::Array(array) => array.check(len),
            Shape::Sequence(sequence) => sequence.check(len),
            other => Err(format!("{} has no elements", other.noun())),
        }
        .map_or_else(|what| Err(self.wrong(what)), |()| Ok(len))
    }

    /// Octets with their count, borrowed.
    fn run(&mut self, shape: &Shape) -> Visit<&'a [u8]> {
        let len = self.list(shape)?;
        let taken = self.take(len)?;
        self.budget.charge_bytes(len as u64)?;
        Ok(taken)
    }

    /// A `QString`; null reads as empty.
    fn wide_text(&mut self) -> Visit<Cow<'a, str>> {
        let at = self.pos;
        let len = self.count()?;
        if len == u32::MAX as usize {
            return Ok(Cow::Borrowed(""));
        }
        let raw = self.take(len)?;
        let (units, []) = raw.as_chunks::<2>() else {
            return Err(Failure::malformed("a QString has half a unit at its end", at));
        };
        self.budget.charge_bytes(raw.len() as u64 * 2)?;
        if units.iter().all(|[high, low]| *high == 0 && low.is_ascii()) {
            return Ok(Cow::Owned(units.iter().map(|[_, low]| char::from(*low)).collect()));
        }
        let text: Result<String, _> =
            char::decode_utf16(units.iter().map(|unit| u16::from_be_bytes(*unit))).collect();
        text.map(Cow::Owned).map_err(|_| Failure::malformed("a QString is no UTF-16", at))
    }

    /// A `QCString`; null reads as empty.
    fn narrow_text(&mut self) -> Visit<Cow<'a, str>> {
        let at = self.pos;
        let len = self.count()?;
        let raw = self.take(len)?;
        self.budget.charge_bytes(len as u64)?;
        let raw = match raw.split_last() {
            None => return Ok(Cow::Borrowed("")),
            Some((0, raw)) => raw,
            Some(_) => return Err(Failure::malformed("a QCString does not end with NUL", at)),
        };
        if raw.contains(&0) {
            return Err(Failure::malformed("a QCString has a NUL inside", at));
        }
        // Nothing says in which character set; text that is no UTF-8 comes from a locale of the time.
        Ok(match str::from_utf8(raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(raw.iter().map(|octet| char::from(*octet)).collect()),
        })
    }
}

/// The fewest bytes that a value of this shape takes; looks `depth` levels deep.
fn least_size(shape: &Shape, depth: u32) -> usize {
    let Some(deeper) = depth.checked_sub(1) else { return 0 };
    match shape.resolved() {
        Shape::Char => 1,
        Shape::WideChar => 2,
        Shape::Text(_)
        | Shape::Enum(_)
        | Shape::Sequence(_)
        | Shape::Array(_)
        | Shape::Map(_)
        | Shape::Optional(_) => 4,
        // The tag, and at least a boolean.
        Shape::Variant => 5,
        Shape::Reference(_) => 12,
        Shape::Struct(shape) => {
            shape.fields.iter().map(|field| least_size(&field.shape, deeper)).fold(0, usize::saturating_add)
        }
        Shape::Pointer(pointer) => least_size(&pointer.target, deeper),
        other => other.width().unwrap_or(0),
    }
}

macro_rules! primitives {
    ($($name:ident)*) => {$(
        #[inline]
        fn $name(&mut self) -> Visit<$name> {
            Ok($name::from_be_bytes(self.raw()?))
        }
    )*};
}

impl<'a> Source<'a> for StreamSource<'a> {
    primitives!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

    #[inline]
    fn bool(&mut self) -> Visit<bool> {
        let [octet] = self.raw()?;
        // KDE's reader takes anything but 0 for true.
        Ok(octet != 0)
    }

    fn char(&mut self, wide: bool) -> Visit<char> {
        if !wide {
            let [octet] = self.raw()?;
            return Ok(octet.into());
        }
        let at = self.pos;
        let unit = u16::from_be_bytes(self.raw()?);
        char::from_u32(unit.into()).ok_or_else(|| Failure::malformed("a QChar is half a character", at))
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let at = self.pos;
        let text = match shape.kind {
            TextKind::Wide | TextKind::Counted => self.wide_text()?,
            _ => self.narrow_text()?,
        };
        shape.check(&text).map_err(|what| Failure::malformed(what, at))?;
        Ok(text)
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        self.run(shape).map(Cow::Borrowed)
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        self.run(shape).map(|run| self.body.share(run))
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        let raw = self.take(into.len().saturating_mul(into.width()))?;
        into.fill(false, raw);
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let at = self.pos;
        shape.check(self.i32()?).map_err(|what| Failure::malformed(what, at))
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        let (app, object, kind) = (self.narrow_text()?, self.narrow_text()?, self.narrow_text()?);
        Ok(address::received(&app, &object, &kind, self.body.dialect))
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        self.budget.enter()?;
        if let Some(null) = strings::null(shape.resolved()) {
            let is_null = self.body.bytes.get(self.pos..).is_some_and(|rest| rest.starts_with(&null));
            if is_null {
                self.pos += null.len();
            }
            return Ok(usize::from(!is_null));
        }
        match shape.resolved() {
            Shape::Struct(shape) => {
                self.budget.charge_elements(1)?;
                Ok(shape.fields.len())
            }
            Shape::Variant => {
                self.budget.charge_elements(1)?;
                Ok(1)
            }
            Shape::Pointer(_) => Ok(1),
            resolved @ (Shape::Sequence(_) | Shape::Array(_)) => {
                let len = self.list(resolved)?;
                let element = resolved.element().unwrap_or(&Shape::Void);
                self.elements(len, least_size(element, 4), element.width())
            }
            Shape::Map(map) => {
                let len = self.count()?;
                let least = least_size(&map.key, 4).saturating_add(least_size(&map.value, 4));
                self.elements(len, least, None)
            }
            Shape::Optional(_) => match self.count()? {
                len @ 0..=1 => Ok(len),
                len => Err(self.wrong(format_args!("an optional value came {len} times"))),
            },
            other => Err(unsupported(&other.noun())),
        }
    }

    fn content(&mut self) -> Visit<Shape> {
        let at = self.pos;
        let shape = variants::shape(self.u32()?, at)?;
        if matches!(shape, Shape::Void) {
            // A null string stands for it.
            self.wide_text()?;
        }
        Ok(shape)
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}
