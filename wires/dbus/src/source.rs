//! Reading values (specification, "Marshaling").
//!
//! A `DbusSource` reads the values of one body at the shapes of a contract. The message says the type of its
//! values: the first thing read is compared with that signature, mostly the whole list at once, and then only
//! variants are compared again. So a body of another type fails before anything of it is read, and the
//! failure says whose mistake it is (`kind`).
//!
//! Invariants against hostile bytes:
//! * The length of an array is checked against the rest of the message, and its elements are counted by
//!   walking over them (`count`), before the caller reserves memory for them.
//! * Bytes and elements are charged to the budget of the message; nesting is bounded by the budget and by
//!   `limits::DEPTH`.
//! * Padding must be zero, booleans 0 or 1, text UTF-8 without NUL, paths and signatures valid, and nothing
//!   may follow the last value (`finish`).
//! * A handle is named by its index among those that came with the message; another index is an error.

use crate::basics::{Get, ReadText};
use crate::dialect::ARGUMENTS;
use crate::signature::{alignment_of, check, check_one, fits, fits_one, mismatch, unspelled, width_of};
use crate::walk::{count, skip};
use crate::{address, limits, names};
use bytes::Bytes;
use everywire_idl::signature as spelling;
use everywire_model::shape::{Enum, Text, TextKind};
use everywire_model::visit::NumbersMut;
use everywire_model::{Body, Budget, Failure, Handle, Kind, Reference, Shape, Source, Visit};
use std::borrow::Cow;

/// Reads the values of a body. That they have the type of the shapes they are read at is checked once, against the
/// message's signature, at the bottom; and again in each variant.
pub(crate) struct DbusSource<'a> {
    body: &'a Body,
    /// The place; alignment counts from where the message began.
    get: Get<'a>,
    /// What reading may still cost.
    budget: Budget,
    /// What is left of the signature; nothing once a list was opened.
    signature: &'a [u8],
    /// Whether anything was read.
    begun: bool,
    /// Whether an item is to be looked at before it is read.
    special: bool,
    /// How many composites are open.
    depth: u32,
    /// Open maps: the depth of their items, and whether a value comes next, after its key.
    maps: Vec<(u32, bool)>,
    /// The signature of an array's element. Memory that is used again.
    spelled: String,
}

/// A value, as far as its signature goes.
enum Item<'s> {
    Code(u8),
    Shape(&'s Shape),
}

impl<'a> DbusSource<'a> {
    /// At the first value.
    pub(crate) fn new(body: &'a Body) -> Self {
        let mut budget = body.budget;
        budget.depth = budget.depth.min(limits::DEPTH + 1);
        Self {
            get: Get { bytes: &body.bytes, pos: 0, base: body.base, little: body.little },
            budget,
            signature: &body.context,
            begun: false,
            special: true,
            depth: 0,
            maps: Vec::new(),
            spelled: String::new(),
            body,
        }
    }

    /// To be called after the visit. What is left must be nothing: D-Bus values have no gaps, and a longer
    /// body is of another contract.
    pub(crate) fn finish(&self) -> Visit<()> {
        match self.get.left() {
            0 => Ok(()),
            left => Err(Failure::malformed(format_args!("{left} bytes follow the last value"), self.get.pos)
                .with_hint("compare the contract of both sides")),
        }
    }

    /// A value is about to be read.
    #[inline]
    fn item(&mut self, code: u8) -> Visit<()> {
        if self.special { self.special_item(&Item::Code(code)) } else { Ok(()) }
    }

    /// A value is about to be read at the bottom, or in a map, whose entries are aligned.
    fn special_item(&mut self, item: &Item<'_>) -> Visit<()> {
        if self.depth == 0 {
            self.bare(item)?;
        }
        if let Some((depth, value)) = self.maps.last_mut()
            && *depth == self.depth
        {
            *value = !*value;
            if *value {
                self.get.align(8)?;
            }
        }
        Ok(())
    }

    /// A value at the bottom, without a list around it.
    fn bare(&mut self, item: &Item<'_>) -> Visit<()> {
        self.begun = true;
        let before = self.signature;
        let rest = match item {
            Item::Code(code) => before.strip_prefix(&[*code]),
            Item::Shape(shape) => fits_one(shape, before),
        };
        match rest {
            Some(rest) => {
                self.signature = rest;
                Ok(())
            }
            None => Err(self.wrong(format_args!("a value of another type than `{}`", before.escape_ascii()))),
        }
    }

    /// What a wrong type means: the caller's mistake in arguments, a broken answer in results.
    fn kind(&self) -> Kind {
        if self.body.dialect & ARGUMENTS != 0 { Kind::BadArgument } else { Kind::Malformed }
    }

    /// Bytes that do not hold what they should, at the present place.
    #[cold]
    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        Failure::malformed(what, self.get.pos)
    }

    /// The bytes of an array, whose elements begin at this alignment.
    fn array(&mut self, alignment: usize) -> Visit<usize> {
        let len = self.get.array()?;
        self.get.align(alignment)?;
        if len > self.get.left() {
            return Err(self.wrong("an array is longer than the rest of the message"));
        }
        Ok(len)
    }

    /// Reads the length of an array and returns how many elements it has; they were charged for.
    ///
    /// # Errors
    /// The array is longer than the message, ends inside an element, or costs too much.
    fn elements(&mut self, element: &Shape) -> Visit<usize> {
        let len = self.array(alignment_of(element))?;
        if let Some(width) = width_of(element) {
            if len % width != 0 {
                return Err(self.wrong(format_args!("an array of {len} bytes has elements of {width}")));
            }
            self.budget.charge_bytes(len as u64)?;
            return Ok(len / width);
        }
        self.spelled.clear();
        spelling::of(element, &mut self.spelled).map_err(|error| unspelled(&error))?;
        self.count(len)
    }

    /// Counts elements whose signature is spelled out, in the next `len` bytes. An array tells its bytes
    /// only, so they are walked over. Each is charged as 32 bytes, which is what a small value takes in
    /// memory.
    fn count(&mut self, len: usize) -> Visit<usize> {
        let mut ahead = self.get;
        let count = count(&mut ahead, self.spelled.as_bytes(), len)?;
        self.budget.charge_elements(count as u64)?;
        self.budget.charge_bytes((count as u64).saturating_mul(32))?;
        Ok(count)
    }

    /// Checks a number of elements against the length of an array or the bound of a sequence.
    fn bounded(&self, shape: &Shape, len: usize) -> Visit<usize> {
        match shape {
            Shape::Array(array) => array.check(len),
            Shape::Sequence(sequence) => sequence.check(len),
            _ => Ok(()),
        }
        .map_or_else(|what| Err(self.wrong(what)), |()| Ok(len))
    }

    /// Opens a map: the number of its entries.
    fn map(&mut self, key: &Shape, value: &Shape) -> Visit<usize> {
        let len = self.array(8)?;
        self.spelled.clear();
        self.spelled.push('(');
        for part in [key, value] {
            spelling::of(part, &mut self.spelled).map_err(|error| unspelled(&error))?;
        }
        self.spelled.push(')');
        let count = self.count(len)?;
        self.maps.push((self.depth, false));
        self.special = true;
        Ok(count)
    }

    /// A whole array of octets. Borrowed from the body.
    fn run(&mut self, shape: &Shape) -> Visit<&'a [u8]> {
        let resolved = shape.resolved();
        if self.special {
            self.special_item(&Item::Shape(resolved))?;
        }
        let len = self.get.array()?;
        let taken = self.get.take(len)?;
        self.bounded(resolved, len)?;
        self.budget.charge_bytes(len as u64)?;
        Ok(taken)
    }

    /// Text of any kind, borrowed from the body.
    fn string(&mut self) -> Visit<&'a str> {
        let at = self.get.pos;
        let raw = self.get.string()?;
        self.budget.charge_bytes(raw.len() as u64)?;
        let Ok(text) = str::from_utf8(raw) else { return Err(Failure::malformed("text is no UTF-8", at)) };
        if raw.contains(&0) {
            return Err(Failure::malformed("text has a NUL inside", at));
        }
        Ok(text)
    }
}

// Each names its code, which is compared where the value stands alone.
macro_rules! primitives {
    ($($name:ident $code:literal $via:ident $convert:expr;)*) => {$(
        #[inline]
        fn $name(&mut self) -> Visit<$name> {
            self.item($code)?;
            Ok(self.get.$via().map($convert)?)
        }
    )*};
}

impl<'a> Source<'a> for DbusSource<'a> {
    primitives! {
        u8 b'y' u8 |value| value;
        i8 b'y' u8 u8::cast_signed;
        u16 b'q' u16 |value| value;
        i16 b'n' u16 u16::cast_signed;
        u32 b'u' u32 |value| value;
        i32 b'i' u32 u32::cast_signed;
        u64 b't' u64 |value| value;
        i64 b'x' u64 u64::cast_signed;
        f64 b'd' u64 f64::from_bits;
    }

    #[allow(clippy::cast_possible_truncation)]
    fn f32(&mut self) -> Visit<f32> {
        let value = self.f64()?;
        let narrow = value as f32;
        // A number does not become an infinite one.
        if narrow.is_infinite() && value.is_finite() {
            return Err(self.wrong(format_args!("{value:e} is too large for a `float` of 32 bits")));
        }
        Ok(narrow)
    }

    fn bool(&mut self) -> Visit<bool> {
        self.item(b'b')?;
        match self.get.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong(format_args!("a boolean is {other}"))),
        }
    }

    fn char(&mut self, _: bool) -> Visit<char> {
        self.item(b's')?;
        let at = self.get.pos;
        let mut chars = self.string()?.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(Failure::malformed("a string that stands for a character is not one character", at)),
        }
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let at = match shape.kind {
            TextKind::Path => {
                self.item(b'o')?;
                let (at, path) = (self.get.pos, self.string()?);
                if !names::is_path(path.as_bytes()) {
                    return Err(Failure::malformed("an object path breaks the rules", at));
                }
                return Ok(Cow::Borrowed(path));
            }
            TextKind::Signature => {
                self.item(b'g')?;
                let (at, raw) = (self.get.pos, self.get.signature()?);
                if let Err(what) = check(raw) {
                    return Err(Failure::malformed(format_args!("a signature is wrong: {what}"), at));
                }
                return match str::from_utf8(raw) {
                    Ok(text) => Ok(Cow::Borrowed(text)),
                    Err(_) => Err(Failure::malformed("a signature is no ASCII", at)),
                };
            }
            _ => self.get.pos,
        };
        self.item(b's')?;
        let text = self.string()?;
        shape.check(text).map_err(|what| Failure::malformed(what, at))?;
        Ok(Cow::Borrowed(text))
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        self.run(shape).map(Cow::Borrowed)
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        self.run(shape).map(|run| self.body.share(run))
    }

    #[allow(clippy::cast_possible_truncation)]
    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        if let NumbersMut::F32(items) = into {
            for item in items {
                *item = f64::from_bits(self.get.u64()?) as f32;
            }
            return Ok(());
        }
        let raw = self.get.take(into.len().saturating_mul(into.width()))?;
        into.fill(self.get.little, raw);
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let at = self.get.pos;
        shape.check(self.i32()?).map_err(|what| Failure::malformed(what, at))
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        self.item(b's')?;
        let at = self.get.pos;
        match self.string()? {
            "" => Ok(None),
            text => match address::received(text) {
                Ok(reference) => Ok(Some(reference)),
                Err(failure) => Err(Failure::malformed(failure.message(), at)),
            },
        }
    }

    fn handle(&mut self) -> Visit<Handle> {
        self.item(b'h')?;
        let at = self.get.pos;
        let index = self.get.count()?;
        match self.body.handles().get(index) {
            Some(handle) => Ok(Handle::clone(handle)),
            None => Err(Failure::malformed(format_args!("handle {index} did not come with the message"), at)),
        }
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        self.budget.enter()?;
        let resolved = shape.resolved();
        if !self.begun
            && let Shape::Struct(list) = resolved
        {
            if !fits(&list.fields, self.signature) {
                return Err(mismatch(self.kind(), &list.fields, self.signature));
            }
            (self.begun, self.special, self.depth, self.signature) = (true, false, 1, b"");
            return Ok(list.fields.len());
        }
        if self.special {
            self.special_item(&Item::Shape(resolved))?;
        }
        self.depth += 1;
        match resolved {
            Shape::Struct(shape) => {
                self.get.align(8)?;
                self.budget.charge_elements(1)?;
                Ok(shape.fields.len())
            }
            Shape::Union(_) => {
                self.get.align(8)?;
                Ok(0)
            }
            Shape::Variant | Shape::Pointer(_) => Ok(1),
            Shape::Sequence(sequence) => {
                let len = self.elements(&sequence.element)?;
                self.bounded(resolved, len)
            }
            Shape::Array(array) => {
                let len = self.elements(&array.element)?;
                self.bounded(resolved, len)
            }
            Shape::Optional(target) => match self.elements(target)? {
                more @ 2.. => Err(self.wrong(format_args!("{more} values came where one may be missing"))),
                len => Ok(len),
            },
            Shape::Map(map) => self.map(&map.key, &map.value),
            other => {
                let what = format!("{} is no composite", other.noun());
                Err(Failure::unsupported(what))
            }
        }
    }

    fn arm(&mut self, shape: &Shape, arm: Option<usize>) -> Visit<()> {
        let Shape::Union(union) = shape.resolved() else { return Ok(()) };
        let found = self.get.signature()?;
        let arm = arm.and_then(|index| union.arms.get(index)).map(|arm| &arm.field.shape);
        match arm.filter(|shape| !matches!(shape.resolved(), Shape::Void)) {
            Some(shape) if fits_one(shape, found).is_some_and(<[u8]>::is_empty) => Ok(()),
            Some(_) => {
                let (union, found) = (&union.name, found.escape_ascii());
                Err(self.wrong(format_args!("an arm of {union} holds a value of the type `{found}`")))
            }
            None => {
                check_one(found).map_err(|what| self.get.bad(what))?;
                skip(&mut self.get, found)?;
                Ok(())
            }
        }
    }

    fn content(&mut self) -> Visit<Shape> {
        let at = self.get.pos;
        let found = self.get.signature()?;
        let text = str::from_utf8(found).map_err(|_| Failure::malformed("a signature is no ASCII", at))?;
        self.budget.charge_elements(found.len() as u64)?;
        spelling::parse_one(text)
            .map_err(|error| Failure::malformed(format_args!("a variant's signature is wrong: {error}"), at))
    }

    fn close(&mut self, shape: &Shape) -> Visit<()> {
        self.budget.leave();
        self.depth = self.depth.saturating_sub(1);
        if matches!(shape.resolved(), Shape::Map(_)) {
            self.maps.pop();
        }
        // Whatever would follow at the bottom must be in the signature.
        self.special = self.depth == 0 || !self.maps.is_empty();
        Ok(())
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}
