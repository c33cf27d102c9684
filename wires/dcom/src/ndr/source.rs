//! Reading NDR.
//!
//! The visit asks for values depth first, as if every referent stood where its pointer is. The source therefore keeps
//! two places for each outermost construct: where its next value in place is, and where the next referent of its
//! pointers is. The latter begins where the construct ends in place, which is found by skipping over it once.

mod automation;

use super::layout::{Place, alignment, enum_width, has_pointers, least, tail_of};
use super::objref;
use super::skip::skip;
use super::variant;
use super::window::Window;
use crate::limits::POINTER_DEPTH;
use crate::violations::{Violation, unsupported};
use bytes::Bytes;
use everywire_model::shape::{Enum, Order, PointerKind, Shape, Text, TextKind};
use everywire_model::visit::{NumbersMut, Source, Visit};
use everywire_model::{Body, Budget, Handle, Reference};
use std::borrow::Cow;
use std::collections::HashMap;

/// Reads one stub.
#[derive(Debug)]
pub struct NdrSource<'a> {
    body: &'a Body,
    window: Window<'a>,
    budget: Budget,
    frames: Vec<Frame>,
    /// Full pointers seen: id, where it stood first, where its referent is.
    full: HashMap<u32, (usize, usize)>,
    pointers: u32,
    variants: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parameters,
    Struct,
    Items,
    Union,
    Maybe,
    Variant { vt: u16, end: usize },
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Values still to come.
    left: usize,
    /// The maximum count that was moved to the front, for the struct's last field.
    hoist: Option<u32>,
    /// Whether values are held as in a VARIANT.
    automation: bool,
    /// Index of the frame of the outermost construct, which knows where referents are.
    outer: usize,
    /// In the outermost construct, if it holds pointers: where the next referent is.
    deferred: Option<usize>,
    /// Where to go on when this composite ends, if it stands elsewhere.
    back: Option<Back>,
    /// Whether it is counted in `pointers`.
    pointer: bool,
}

#[derive(Debug, Clone, Copy)]
struct Back {
    to: usize,
    /// Whether the place of the next referent moves on as well; not so if the referent was read before.
    advances: bool,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        fn $name(&mut self) -> Visit<$type> {
            self.begin()?;
            self.window.$name()
        }
    )*};
}

impl<'a> NdrSource<'a> {
    /// A source over a body.
    pub fn new(body: &'a Body) -> Self {
        Self {
            body,
            window: Window { bytes: &body.bytes, base: body.base, at: 0, little: body.little },
            budget: body.budget,
            frames: Vec::new(),
            full: HashMap::new(),
            pointers: 0,
            variants: 0,
        }
    }

    /// Bytes that were not read: between calls of the visit, what follows the parameters.
    pub fn rest(&self) -> usize {
        self.window.rest()
    }

    fn wrong<T>(&self, violation: Violation) -> Visit<T> {
        Err(violation.at(self.window.at))
    }

    /// A value begins: where does it stand?
    fn begin(&mut self) -> Visit<Place> {
        let at = self.window.at;
        let Some(frame) = self.frames.last_mut() else { return Ok(Place::Top) };
        match frame.left.checked_sub(1) {
            Some(left) => frame.left = left,
            None => return Err(Violation::Misuse.at(at)),
        }
        Ok(match frame.kind {
            Kind::Parameters => Place::Top,
            Kind::Maybe => Place::Behind,
            Kind::Variant { .. } => Place::Arm,
            Kind::Struct if frame.left == 0 && frame.hoist.is_some() => Place::Tail,
            _ => Place::Within,
        })
    }

    fn push(&mut self, kind: Kind, left: usize) -> Visit<&mut Frame> {
        self.budget.enter()?;
        let at = self.window.at;
        let outer = self.frames.last().map_or(0, |frame| frame.outer);
        self.frames.push(Frame {
            kind,
            left,
            hoist: None,
            automation: false,
            outer,
            deferred: None,
            back: None,
            pointer: false,
        });
        self.frames.last_mut().ok_or_else(|| Violation::Misuse.at(at))
    }

    /// Opens a composite that is read in place; unless it is inside another, its pointers' referents follow it.
    fn push_construct(
        &mut self,
        kind: Kind,
        left: usize,
        place: Place,
        end: Option<usize>,
    ) -> Visit<&mut Frame> {
        let own = self.frames.len();
        let frame = self.push(kind, left)?;
        if !matches!(place, Place::Within | Place::Tail) {
            frame.outer = own;
            frame.deferred = end;
        }
        Ok(frame)
    }

    fn automation(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.automation)
    }

    fn hoisted(&self) -> Option<u32> {
        self.frames.last().and_then(|frame| frame.hoist)
    }

    /// Goes to the next referent of the construct around; [`Self::come_back`] returns.
    fn go(&mut self) -> Visit<Back> {
        let outer = self.frames.last().map_or(0, |frame| frame.outer);
        let to = self.window.at;
        match self.frames.get(outer).and_then(|frame| frame.deferred) {
            Some(at) => {
                self.window.at = at;
                Ok(Back { to, advances: true })
            }
            None => self.wrong(Violation::Misuse),
        }
    }

    fn come_back(&mut self, back: Back) {
        if back.advances {
            let outer = self.frames.last().map_or(0, |frame| frame.outer);
            if let Some(frame) = self.frames.get_mut(outer) {
                frame.deferred = Some(self.window.at);
            }
        }
        self.window.at = back.to;
    }

    /// Reads what a pointer points to: after everything around it if the pointer is inside something, else here.
    fn referent<T>(&mut self, place: Place, read: impl FnOnce(&mut Self) -> Visit<T>) -> Visit<T> {
        if place != Place::Within {
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
        let count = count as usize;
        if count.checked_mul(least.max(1)).is_none_or(|bytes| bytes > self.window.rest()) {
            return self.wrong(Violation::CountBeyondMessage);
        }
        self.budget.charge_elements(count as u64)?;
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

    fn open_struct(&mut self, shape: &Shape) -> Visit<usize> {
        let Shape::Struct(fields) = shape else { return self.wrong(Violation::Misuse) };
        let inherited = self.hoisted();
        let place = self.begin()?;
        let hoist = match place {
            Place::Arm => return Err(unsupported("a struct in a VARIANT")),
            Place::Tail => inherited,
            Place::Within => None,
            Place::Top | Place::Behind => tail_of(fields).map(|_| self.window.u32()).transpose()?,
        };
        let mut end = None;
        if matches!(place, Place::Top | Place::Behind) && has_pointers(shape, hoist.is_some()) {
            let mut scout = self.window;
            skip(&mut scout, shape, hoist)?;
            end = Some(scout.at);
        }
        self.window.align(alignment(shape, hoist.is_some()));
        let len = fields.fields.len();
        self.push_construct(Kind::Struct, len, place, end)?.hoist = hoist;
        Ok(len)
    }

    fn open_items(&mut self, shape: &Shape) -> Visit<usize> {
        let (order, bound, values) = match shape {
            Shape::Sequence(sequence) => (sequence.order, sequence.bound, 1),
            _ => (Order::Conformant, None, 2),
        };
        let elements = elements_of(shape);
        let hoist = self.hoisted();
        let mut place = self.begin()?;
        let mut back = None;
        let mut null = false;
        let count = if place == Place::Arm {
            match self.open_safearray(shape)? {
                Some(count) => count,
                None => {
                    null = true;
                    0
                }
            }
        } else {
            let max = match (place, hoist) {
                _ if order == Order::Varying => None,
                (Place::Tail, Some(count)) => Some(count),
                (Place::Within | Place::Tail, _) => {
                    if self.window.u32()? == 0 {
                        return self.wrong(Violation::NullReference);
                    }
                    self.budget.charge_elements(1)?;
                    back = Some(self.go()?);
                    place = Place::Behind;
                    Some(self.window.u32()?)
                }
                _ => Some(self.window.u32()?),
            };
            match (order, max) {
                (Order::Conformant, Some(max)) => max,
                (_, max) => self.variance(max)?,
            }
        };
        if bound.is_some_and(|bound| count > bound) {
            return self.wrong(Violation::BoundExceeded);
        }
        let len = self.accept(count, elements.iter().flatten().map(|shape| least(shape)).sum())?;
        let mut end = None;
        if !matches!(place, Place::Within | Place::Tail)
            && !null
            && elements.iter().flatten().any(|shape| has_pointers(shape, false))
        {
            let mut scout = self.window;
            for _ in 0..len {
                for element in elements.iter().flatten() {
                    skip(&mut scout, element, None)?;
                }
            }
            end = Some(scout.at);
        }
        let frame = self.push_construct(Kind::Items, len.saturating_mul(values), place, end)?;
        frame.back = back;
        frame.automation = place == Place::Arm;
        Ok(len)
    }

    fn open_pointer(&mut self, kind: PointerKind) -> Visit<usize> {
        let place = self.begin()?;
        let id_at = self.window.at;
        let mut back = None;
        if kind != PointerKind::Ref || !matches!(place, Place::Top | Place::Behind) {
            let id = self.window.u32()?;
            if id == 0 {
                if kind == PointerKind::Ref {
                    return self.wrong(Violation::NullReference);
                }
                self.push(Kind::Maybe, 0)?;
                return Ok(0);
            }
            let seen = if kind == PointerKind::Full { self.full.get(&id).copied() } else { None };
            match seen {
                Some((first, referent)) if first != id_at => {
                    back = Some(Back { to: self.window.at, advances: false });
                    self.window.at = referent;
                }
                _ => {
                    if place == Place::Within {
                        back = Some(self.go()?);
                    }
                    if kind == PointerKind::Full {
                        self.full.insert(id, (id_at, self.window.at));
                    }
                }
            }
        }
        if self.pointers >= POINTER_DEPTH {
            return self.wrong(Violation::PointerDepth);
        }
        self.budget.charge_elements(1)?;
        self.pointers += 1;
        let frame = self.push(Kind::Maybe, 1)?;
        frame.back = back;
        frame.pointer = true;
        frame.automation = place == Place::Arm;
        Ok(1)
    }

    fn wide(&mut self, units: usize) -> Visit<Cow<'a, str>> {
        let at = self.window.at;
        let raw = self.window.take(units.checked_mul(2).ok_or_else(|| Violation::Truncated.at(at))?)?;
        self.budget.charge_bytes(raw.len() as u64)?;
        let little = self.window.little;
        let units = raw.chunks_exact(2).filter_map(|pair| pair.try_into().ok());
        let units =
            units.map(|pair| if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.map(Cow::Owned).map_err(|_| Violation::BadText.at(at))
    }

    /// A string as a conformant and varying array of characters; the NUL that ends it is not part of the text.
    fn string(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let max = self.window.u32()?;
        let actual = self.variance(Some(max))? as usize;
        let at = self.window.at;
        let mut text = if shape.kind == TextKind::Narrow {
            let raw = self.window.take(actual)?;
            self.budget.charge_bytes(raw.len() as u64)?;
            Cow::Borrowed(std::str::from_utf8(raw).map_err(|_| Violation::BadText.at(at))?)
        } else {
            self.wide(actual)?
        };
        if text.ends_with('\0') {
            match &mut text {
                Cow::Borrowed(text) => *text = text.strip_suffix('\0').unwrap_or(text),
                Cow::Owned(text) => {
                    text.pop();
                }
            }
        }
        if shape.bound.is_some_and(|bound| actual.saturating_sub(1) > bound as usize) {
            return self.wrong(Violation::BoundExceeded);
        }
        Ok(text)
    }

    /// A whole sequence or array of octets, as its range in the body.
    fn octets(&mut self, shape: &Shape) -> Visit<(usize, &'a [u8])> {
        let len = self.open(shape)?;
        let at = self.window.at;
        let taken = self.window.take(len)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.left = 0;
        }
        self.close(shape)?;
        Ok((at, taken))
    }
}

impl<'a> Source<'a> for NdrSource<'a> {
    number!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);

    fn bool(&mut self) -> Visit<bool> {
        let automation = self.automation();
        self.begin()?;
        Ok(if automation { self.window.u16()? != 0 } else { self.window.u8()? != 0 })
    }

    fn char(&mut self, wide: bool) -> Visit<char> {
        self.begin()?;
        let code = if wide { self.window.u16()?.into() } else { self.window.u8()?.into() };
        match char::from_u32(code) {
            Some(value) => Ok(value),
            None => self.wrong(Violation::BadCharacter),
        }
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let counted = shape.kind == TextKind::Counted || self.automation();
        let place = self.begin()?;
        if counted {
            if self.window.u32()? == 0 {
                return Ok(Cow::Borrowed(""));
            }
            let text = self.referent(place, Self::blob)?;
            if shape.bound.is_some_and(|bound| text.encode_utf16().count() > bound as usize) {
                return self.wrong(Violation::BoundExceeded);
            }
            return Ok(text);
        }
        if place == Place::Within && self.window.u32()? == 0 {
            return self.wrong(Violation::NullReference);
        }
        self.referent(place, |source| source.string(shape))
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        let (_, taken) = self.octets(shape)?;
        self.budget.charge_bytes(taken.len() as u64)?;
        Ok(Cow::Borrowed(taken))
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        let (at, taken) = self.octets(shape)?;
        Ok(self.body.bytes.slice(at..at + taken.len()))
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        let at = self.window.at;
        match self.frames.last_mut() {
            Some(frame) if frame.kind == Kind::Items && frame.left == into.len() => frame.left = 0,
            _ => return Err(Violation::Misuse.at(at)),
        }
        if into.is_empty() {
            return Ok(());
        }
        self.window.align(into.width());
        let raw = self.window.take(into.len().saturating_mul(into.width()))?;
        into.fill(self.window.little, raw);
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let short = enum_width(shape) == 2 && !self.automation();
        self.begin()?;
        let value = if short { self.window.u16()?.into() } else { self.window.i32()? };
        if shape.name_of(value).is_none() {
            return self.wrong(Violation::UnknownEnumerant);
        }
        Ok(value)
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        let place = self.begin()?;
        if self.window.u32()? == 0 {
            return Ok(None);
        }
        self.referent(place, |source| {
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
            objref::parse(source.body.bytes.slice(at..at + taken.len()), at).map(Some)
        })
    }

    fn handle(&mut self) -> Visit<Handle> {
        Err(unsupported("handles of the operating system"))
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        match shape.resolved() {
            Shape::Struct(parameters) if parameters.name.is_empty() && self.frames.is_empty() => {
                let len = parameters.fields.len();
                self.push(Kind::Parameters, len)?;
                Ok(len)
            }
            resolved @ Shape::Struct(_) => self.open_struct(resolved),
            resolved @ Shape::Array(array) => {
                let place = self.begin()?;
                if place == Place::Arm {
                    return Err(unsupported("a fixed array in a VARIANT"));
                }
                let len = self.accept(array.len, least(&array.element))?;
                let mut end = None;
                if matches!(place, Place::Top | Place::Behind) && has_pointers(resolved, false) {
                    let mut scout = self.window;
                    skip(&mut scout, resolved, None)?;
                    end = Some(scout.at);
                }
                self.push_construct(Kind::Items, len, place, end)?;
                Ok(len)
            }
            resolved @ (Shape::Sequence(_) | Shape::Map(_)) => self.open_items(resolved),
            resolved @ Shape::Union(_) => {
                let place = self.begin()?;
                let mut end = None;
                if matches!(place, Place::Top | Place::Behind) && has_pointers(resolved, false) {
                    let mut scout = self.window;
                    skip(&mut scout, resolved, None)?;
                    end = Some(scout.at);
                }
                self.push_construct(Kind::Union, 2, place, end)?;
                Ok(0)
            }
            Shape::Optional(_) => self.open_pointer(PointerKind::Unique),
            Shape::Pointer(pointer) => self.open_pointer(pointer.kind),
            Shape::Variant => self.open_variant(),
            _ => self.wrong(Violation::Misuse),
        }
    }

    fn content(&mut self) -> Visit<Shape> {
        match self.frames.last_mut() {
            Some(Frame { kind: Kind::Variant { vt, .. }, left, .. }) => {
                let shape = variant::shape_of(*vt)?;
                *left = usize::from(!matches!(shape.resolved(), Shape::Void));
                Ok(shape)
            }
            _ => self.wrong(Violation::Misuse),
        }
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.frames.pop() else { return self.wrong(Violation::Misuse) };
        self.budget.leave();
        if frame.left > 0 && frame.kind != Kind::Union {
            return self.wrong(Violation::Misuse);
        }
        if let Some(end) = frame.deferred {
            self.window.at = end;
        }
        if frame.pointer {
            self.pointers -= 1;
        }
        if let Kind::Variant { end, .. } = frame.kind {
            if self.window.at > end {
                return self.wrong(Violation::BadVariant);
            }
            self.variants -= 1;
            self.window.little = self.variants > 0 || self.body.little;
        }
        if let Some(back) = frame.back {
            self.come_back(back);
        }
        Ok(())
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}

fn elements_of(shape: &Shape) -> [Option<&Shape>; 2] {
    match shape {
        Shape::Map(map) => [Some(&map.key), Some(&map.value)],
        other => [other.element(), None],
    }
}
