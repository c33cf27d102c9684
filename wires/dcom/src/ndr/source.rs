//! Reading NDR.
//!
//! The visit asks for values depth first, as if every referent stood where its pointer is. The source
//! therefore keeps two places for each outermost construct: where its next value in place is (`window.at`),
//! and where the next referent of its pointers is (`Frame::deferred`). The latter begins where the construct
//! ends in place, which is found by skipping over it once.
//!
//! Invariants: no count is believed before the rest of the stub can hold so many elements (`accept`) and the
//! budget was charged. Depth is bounded by the budget, `POINTER_DEPTH` and `VARIANT_DEPTH`. A read beyond the
//! stub is `Truncated`.

mod automation;
mod composites;
mod grid;

pub(super) use automation::WINE_GRID;

use super::cells::LayoutCheck;
use super::frame::{self, Kind, ValuePrefix};
use super::layout::{Embedding, Form, arms_alignment, enum_width, form};
use super::stack::Stack;
use super::watch::{Contradiction, CountRole, Counts, Forms, StructCache, Subject, count_in};
use super::window::Window;
use super::wine::DISCRIMINATOR;
use super::{POINTED, WINE};
use super::{references, variant};
use crate::violations::Violation;
use bytes::Bytes;
use everywire_model::cells::Layout;
use everywire_model::shape::{Enum, Order, PointerKind, Shape, Text, TextKind};
use everywire_model::visit::{NumbersMut, Source, Visit};
use everywire_model::{Body, Budget, Reference, Scalar};
use grid::Grid;
use std::borrow::Cow;
use std::collections::HashMap;

/// Reads one stub.
#[derive(Debug)]
pub struct NdrSource<'a> {
    body: &'a Body,
    window: Window<'a>,
    budget: Budget,
    frames: Stack<Frame>,
    /// Full pointers seen: id, where it stood first, where its referent is.
    full: HashMap<u32, (usize, usize)>,
    /// The counts of the open structs that hold sequences whose size is said beside them.
    counts: Vec<Counts>,
    /// The open SAFEARRAYs of several dimensions.
    grids: Vec<Grid>,
    known: StructCache,
    agreed: LayoutCheck,
    /// Times that a referent was read again for another full pointer to it; bounded.
    aliases: usize,
    pointers: u32,
    variants: u32,
}

/// A composite that is being read; `hoist` is the maximum count.
type Frame = frame::Frame<u32, SourceState>;

/// What the frames of a source know beside what those of a sink do.
#[derive(Debug, Default)]
struct SourceState {
    /// Index of the frame of the outermost construct, which knows where referents are.
    outer: usize,
    /// In the outermost construct, if it holds pointers: where the next referent is.
    deferred: Option<usize>,
    /// Where to go on when this composite ends, if it stands elsewhere.
    back: Option<ReturnPoint>,
    /// Whether it is counted in `pointers`.
    pointer: bool,
    /// Of a VARIANT: its type.
    vt: u16,
    /// Of a row: the number of its first element.
    first: usize,
}

#[derive(Debug, Clone, Copy)]
struct ReturnPoint {
    to: usize,
    /// Whether the place of the next referent moves on as well; not so if the referent was read before.
    advances: bool,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        #[inline]
        fn $name(&mut self) -> Visit<$type> {
            self.begin()?;
            self.scalar(Window::$name)
        }
    )*};
}

/// Numbers that may say how long a sequence beside them is.
macro_rules! integer {
    ($($name:ident $type:ty),*) => {$(
        #[inline]
        fn $name(&mut self) -> Visit<$type> {
            self.begin()?;
            let value = self.scalar(Window::$name)?;
            if !self.counts.is_empty() {
                self.note(i64::try_from(value).unwrap_or(i64::MAX))?;
            }
            Ok(value)
        }
    )*};
}

impl<'a> NdrSource<'a> {
    /// A source over a body.
    pub fn new(body: &'a Body) -> Self {
        let wine = body.dialect & WINE != 0;
        Self {
            body,
            window: Window {
                bytes: &body.bytes,
                base: body.base,
                at: 0,
                little: body.little,
                wine,
                loose: false,
            },
            budget: body.budget,
            frames: Stack::new(),
            full: HashMap::new(),
            counts: Vec::new(),
            grids: Vec::new(),
            known: StructCache::default(),
            agreed: LayoutCheck::default(),
            aliases: 0,
            pointers: 0,
            variants: 0,
        }
    }

    /// Bytes that were not read: between calls of the visit, what follows the parameters.
    pub fn rest(&self) -> usize {
        self.window.rest()
    }

    #[cold]
    fn wrong<T>(&self, violation: Violation) -> Visit<T> {
        Err(violation.at(self.window.at))
    }

    /// A value begins: where does it stand?
    #[inline]
    fn begin(&mut self) -> Visit<Embedding> {
        let Some((place, before)) = self.frames.begin(&mut self.counts) else {
            return self.wrong(Violation::Misuse);
        };
        match before {
            ValuePrefix::Nothing => {}
            ValuePrefix::Align(alignment) => self.window.align(alignment),
            ValuePrefix::Element => self.seek(),
        }
        Ok(place)
    }

    /// The same for what stands behind a pointer, but in place as an element of a SAFEARRAY of Wine's; whether it is one.
    fn begin_pointed(&mut self) -> Visit<(Embedding, bool)> {
        let in_place = self.window.wine && self.frames.in_safearray();
        let place = self.begin()?;
        Ok((if in_place { Embedding::Behind } else { place }, in_place))
    }

    /// A value without pointers, which in some structs of Wine's follows without padding.
    #[inline]
    fn scalar<T>(&mut self, read: impl FnOnce(&mut Window<'a>) -> Visit<T>) -> Visit<T> {
        self.window.loose = self.window.wine && self.frames.last().is_some_and(|frame| frame.packed);
        let value = read(&mut self.window);
        self.window.loose = false;
        value
    }

    fn push(&mut self, kind: Kind, left: usize) -> Visit<&mut Frame> {
        self.budget.enter()?;
        let outer = self.outer();
        let frame = self.frames.push(Frame::new(kind, left));
        frame.side.outer = outer;
        Ok(frame)
    }

    /// Index of the frame of the outermost construct around.
    fn outer(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.side.outer)
    }

    /// Where the next referent of the pointers in the construct around is, if it holds any.
    fn deferred(&mut self) -> Option<&mut Option<usize>> {
        let outer = self.outer();
        self.frames.get_mut(outer).map(|frame| &mut frame.side.deferred)
    }

    /// A number was read.
    fn note(&mut self, value: i64) -> Visit<()> {
        let at = self.window.at;
        let chosen = self.frames.take_discriminator();
        match self.counts.last_mut() {
            Some(counts) if chosen.is_some() => counts.choose(value, chosen.unwrap_or_default()),
            Some(counts) if self.frames.counting() => counts.value(value),
            _ => Ok(()),
        }
        .map_err(|contradiction| contradicts(&contradiction, at))
    }

    /// Goes to the next referent of the construct around; [`Self::come_back`] returns.
    fn go(&mut self) -> Visit<ReturnPoint> {
        let Some(at) = self.deferred().copied().flatten() else {
            return self.wrong(Violation::Misuse);
        };
        Ok(ReturnPoint { to: std::mem::replace(&mut self.window.at, at), advances: true })
    }

    fn come_back(&mut self, back: ReturnPoint) {
        let at = std::mem::replace(&mut self.window.at, back.to);
        if back.advances
            && let Some(deferred) = self.deferred()
        {
            *deferred = Some(at);
        }
    }

    /// Reads what a pointer points to: after everything around it if the pointer is inside something, else here.
    fn referent<T>(&mut self, place: Embedding, read: impl FnOnce(&mut Self) -> Visit<T>) -> Visit<T> {
        if place != Embedding::Within {
            return read(self);
        }
        self.budget.charge_elements(1)?;
        let back = self.go()?;
        let value = read(self)?;
        self.come_back(back);
        Ok(value)
    }

    /// Accepts a count only if the stub can hold so many elements of at least this size.
    fn accept(&mut self, count: u32, least: usize) -> Visit<usize> {
        let count = self.fit(count, least)?;
        self.budget.charge_elements(count as u64)?;
        Ok(count)
    }

    /// The same of octets, which are taken together: they count as bytes alone.
    fn fit(&mut self, count: u32, least: usize) -> Visit<usize> {
        let count = count as usize;
        if count.checked_mul(least.max(1)).is_none_or(|bytes| bytes > self.window.rest()) {
            return self.wrong(Violation::CountBeyondMessage);
        }
        Ok(count)
    }

    /// Offset and actual count of a varying array.
    fn variance(&mut self, max: Option<u32>) -> Visit<u32> {
        let offset = self.window.u32()?;
        let actual = self.window.u32()?;
        if offset != 0 || max.is_some_and(|max| actual > max) {
            return self.wrong(Violation::BadVariance);
        }
        Ok(actual)
    }

    /// A whole sequence or array of octets, and where it begins in the body; gathered, if its octets lie apart.
    fn octets(&mut self, shape: &Shape) -> Visit<(usize, Cow<'a, [u8]>)> {
        let len = self.open(shape)?;
        let at = self.window.at;
        let found = if self.frames.row().is_some() {
            Cow::Owned(self.gather(len, 1)?)
        } else {
            Cow::Borrowed(self.window.take(len)?)
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.left = 0;
        }
        self.close(shape)?;
        Ok((at, found))
    }
}

#[cold]
fn contradicts(contradiction: &Contradiction, at: usize) -> everywire_model::Failure {
    let Contradiction { what, said, name } = contradiction;
    let failure = match what {
        Subject::Arm(_) => Violation::ArmMismatch.at(at),
        _ => Violation::CountMismatch.at(at),
    };
    match what {
        Subject::Arm(arm) => failure.at(format_args!("arm {arm}, but `{name}` is {said}")),
        Subject::Elements(count) => failure.at(format_args!("{count} elements, but `{name}` is {said}")),
        Subject::Offset => failure.at(format_args!("offset 0, but `{name}` is {said}")),
    }
}

impl<'a> Source<'a> for NdrSource<'a> {
    number!(f32 f32, f64 f64);
    integer!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64);

    fn bool(&mut self) -> Visit<bool> {
        let wide = self.frames.automation() || self.frames.form(&Shape::Bool) == Form::VariantBool;
        self.begin()?;
        let value = if wide { self.scalar(Window::u16)? != 0 } else { self.window.u8()? != 0 };
        if !self.counts.is_empty() {
            self.note(value.into())?;
        }
        Ok(value)
    }

    fn char(&mut self, wide: bool) -> Visit<char> {
        self.begin()?;
        let code: u32 = if wide { self.scalar(Window::u16)?.into() } else { self.window.u8()?.into() };
        if !self.counts.is_empty() {
            self.note(code.into())?;
        }
        match char::from_u32(code) {
            Some(value) => Ok(value),
            None => self.wrong(Violation::BadCharacter),
        }
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let counted = shape.kind == TextKind::Counted || self.frames.automation();
        let marked = self.window.wine && !self.frames.automation();
        let counting = !self.counts.is_empty() && self.frames.counting();
        let fixed = self.frames.form(&Shape::Void) == Form::FixedString;
        let (place, in_place) = self.begin_pointed()?;
        if fixed && !counted {
            return self.fixed_string(shape);
        }
        if counted {
            if !in_place && self.window.u32()? == 0 {
                return Ok(Cow::Borrowed(""));
            }
            let text = self.referent(place, |source| {
                if marked {
                    // What is user-marshalled is aligned so there, whatever it is.
                    source.window.align(8);
                }
                source.blob()
            })?;
            if shape.bound.is_some_and(|bound| text.encode_utf16().count() > bound as usize) {
                return self.wrong(Violation::BoundExceeded);
            }
            return Ok(text);
        }
        if place == Embedding::Within && self.window.u32()? == 0 {
            return self.wrong(Violation::NullReference);
        }
        if place == Embedding::Top && self.body.dialect & POINTED != 0 && self.window.u32()? == 0 {
            // Of somebody who knows it as a pointer, which may be null.
            return Ok(Cow::Borrowed(""));
        }
        let (text, max, actual) = self.referent(place, |source| source.string(shape))?;
        if counting && let Some(counts) = self.counts.last_mut() {
            let at = self.window.at;
            let count = count_in(Order::ConformantVarying, Some(max), actual);
            counts.count(count).map_err(|found| contradicts(&found, at))?;
        }
        Ok(text)
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        let (_, octets) = self.octets(shape)?;
        self.budget.charge_bytes(octets.len() as u64)?;
        Ok(octets)
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        match self.octets(shape)? {
            (at, Cow::Borrowed(taken)) => Ok(self.body.bytes.slice(at..at + taken.len())),
            (_, Cow::Owned(gathered)) => {
                self.budget.charge_bytes(gathered.len() as u64)?;
                Ok(gathered.into())
            }
        }
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        match self.frames.last() {
            Some(frame)
                if matches!(frame.kind, Kind::Items | Kind::Row { .. }) && frame.left == into.len() => {}
            _ => return self.wrong(Violation::Misuse),
        }
        if self.frames.row().is_some() {
            let gathered = self.gather(into.len(), into.width())?;
            into.fill(self.window.little, &gathered);
        } else if !into.is_empty() {
            self.window.align(into.width());
            let raw = self.window.take(into.len().saturating_mul(into.width()))?;
            into.fill(self.window.little, raw);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.left = 0;
        }
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let short = enum_width(shape) == 2 && !self.frames.automation();
        self.begin()?;
        let value = if short { self.scalar(Window::u16)?.into() } else { self.scalar(Window::i32)? };
        if shape.check(value).is_err() {
            return self.wrong(Violation::UnknownEnumerant);
        }
        if !self.counts.is_empty() {
            self.note(value.into())?;
        }
        Ok(value)
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        let bare = self.window.wine && !self.frames.automation();
        let (place, _) = self.begin_pointed()?;
        if bare {
            let taken = self.window.bare()?;
            let at = self.window.at - taken.len();
            if taken.is_empty() {
                return Ok(None);
            }
            self.budget.charge_bytes(taken.len() as u64)?;
            let objref = self.body.bytes.slice(at..self.window.at);
            return references::read(self.body, objref, at).map(Some);
        }
        if self.window.u32()? == 0 {
            return Ok(None);
        }
        self.referent(place, |source| {
            // Interface pointers keep the stub's byte order where automation has its own.
            let outer = std::mem::replace(&mut source.window.little, source.body.little);
            let max = source.window.u32()?;
            let len = source.window.u32()?;
            source.window.little = outer;
            let at = source.window.at;
            if max != len {
                return source.wrong(Violation::BadObjref);
            }
            let taken = source.window.take(len as usize)?;
            source.budget.charge_bytes(taken.len() as u64)?;
            references::read(source.body, source.body.bytes.slice(at..at + taken.len()), at).map(Some)
        })
    }

    #[inline]
    fn words(&mut self, shape: &Shape, into: &mut [u32]) -> Visit<()> {
        self.flat_words(shape, into)
    }

    #[inline]
    fn whole_variant(&mut self, _: &Shape) -> Visit<Option<Scalar>> {
        self.plain_variant()
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        match shape.resolved() {
            Shape::Struct(parameters) if parameters.name.is_empty() && self.frames.is_empty() => {
                self.open_fields(Kind::Parameters, parameters, None, Embedding::Top, None, false)
            }
            resolved @ Shape::Struct(fields) => self.open_struct(resolved, fields),
            resolved @ Shape::Array(array) => self.open_array(resolved, array),
            resolved @ Shape::Sequence(_) => {
                if self.frames.row().is_some() {
                    self.open_row(resolved)
                } else if self.frames.automation() || self.frames.form(shape) == Form::Safearray {
                    self.open_safearray(resolved)
                } else {
                    self.open_items(resolved)
                }
            }
            resolved @ Shape::Map(_) => self.open_items(resolved),
            resolved @ Shape::Union(_) => self.open_union(resolved),
            resolved @ Shape::Optional(_) => self.open_pointer(resolved, PointerKind::Unique),
            resolved @ Shape::Pointer(pointer) => self.open_pointer(resolved, pointer.kind),
            Shape::Variant => self.open_variant(),
            _ => self.wrong(Violation::Misuse),
        }
    }

    fn arm(&mut self, shape: &Shape, arm: Option<usize>) -> Visit<()> {
        if self.window.wine {
            self.window.align(DISCRIMINATOR);
        }
        let Shape::Union(union) = shape.resolved() else { return Ok(()) };
        self.window.align(arms_alignment(union));
        if let Some(frame) = self.frames.last_mut()
            && let Some(arm) = arm.and_then(|arm| union.arms.get(arm))
        {
            frame.forms = Forms::All(form(&arm.field.shape).0);
        }
        Ok(())
    }

    fn content(&mut self) -> Visit<Shape> {
        let Some(Frame { kind: Kind::Variant, side: SourceState { vt, .. }, .. }) = self.frames.last() else {
            return self.wrong(Violation::Misuse);
        };
        let vt = *vt;
        let dimensions = self.dimensions(vt);
        let shape = if self.has_other_bstr(vt) {
            variant::shape_of_blobs(vt, dimensions)?
        } else {
            variant::content_of(vt, dimensions)?
        };
        let bounds = self.lower_bounds(vt);
        let shape = if bounds.is_empty() { shape } else { variant::with_lower_bounds(shape, &bounds) };
        if let Some(frame) = self.frames.last_mut() {
            frame.left = usize::from(!matches!(shape.resolved(), Shape::Void));
        }
        Ok(shape)
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.frames.pop() else { return self.wrong(Violation::Misuse) };
        self.budget.leave();
        if frame.left > 0 && frame.kind != Kind::Union {
            return self.wrong(Violation::Misuse);
        }
        if let Some(end) = frame.side.deferred {
            self.window.at = end;
        }
        if frame.side.pointer {
            self.pointers -= 1;
        }
        if frame.counting == CountRole::Field {
            self.counts.pop();
        }
        match frame.kind {
            Kind::Row { dimension: 0 } => drop(self.grids.pop()),
            Kind::Variant => self.variants -= 1,
            _ => {}
        }
        if let Some(order) = frame.order {
            self.window.little = order;
        }
        if let Some(back) = frame.side.back {
            self.come_back(back);
        }
        Ok(())
    }

    fn rows(&mut self, element: &Shape, layout: &'static Layout) -> Option<bool> {
        self.rows_of(element, layout)
    }

    fn row(&mut self, layout: &'static Layout, variants: &mut [Scalar]) -> Visit<Option<&'a [u8]>> {
        self.take_row(layout, variants)
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn status(&self) -> i32 {
        self.body.status()
    }
}
