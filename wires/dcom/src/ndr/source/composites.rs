//! Reading structs, arrays, unions and pointers (C706 14.3).
//!
//! The counterpart of the sink: each `open_...` asks `begin` where the value stands, reads what stands before
//! the members, and pushes a frame. For the outermost construct with pointers, `end_of` finds where it ends
//! in place by skipping over it; its referents are there. Composites inside of it share that place by
//! `Frame::outer`. A composite that is itself a deferred referent goes there (`go`) and comes back when it
//! closes (`Frame::back`).
//!
//! Invariants: a count passes `accept` before a frame is pushed for it. Null where the contract has no null
//! is `NullReference`. A full pointer whose id was seen before is read from the first one's referent again;
//! that is bounded, since it takes four octets and may stand for many.

use super::super::layout::{Embedding, alignment, bits_of, has_pointers, least, pair_alignment, tail_of};
use super::super::watch::{CountRole, Counts, Forms, count_in};
use super::super::window::{skip, skip_items};
use super::{Frame, Kind, NdrSource, ReturnPoint, contradicts};
use crate::limits::POINTER_DEPTH;
use crate::ndr::wine::{element_alignment, is_packed};
use crate::violations::{Violation, unsupported};
use everywire_model::shape::{Array, Hold, Order, PointerKind, Shape, Struct, Text, TextKind};
use everywire_model::visit::{Source, Visit};
use everywire_model::{Failure, Initiator};
use std::borrow::Cow;

/// How often referents may be read again in the shortest of messages; in others, as often as they have bytes.
const FREE_ALIASES: usize = 64;

impl<'a> NdrSource<'a> {
    /// Opens a composite that is read in place; unless it is inside another, its pointers' referents follow it.
    /// `end` is where its referents begin, or `None` if it holds no pointers.
    pub(super) fn push_construct(
        &mut self,
        kind: Kind,
        left: usize,
        place: Embedding,
        end: Option<usize>,
    ) -> Visit<&mut Frame> {
        let own = self.frames.len();
        let frame = self.push(kind, left)?;
        if !matches!(place, Embedding::Within | Embedding::Tail) {
            (frame.side.outer, frame.side.deferred) = (own, end);
        }
        Ok(frame)
    }

    /// Where the referents of an outermost construct begin, if it holds pointers.
    fn end_of(&self, shape: &Shape, place: Embedding, hoist: Option<u32>) -> Visit<Option<usize>> {
        if matches!(place, Embedding::Top | Embedding::Behind | Embedding::Arm)
            && has_pointers(shape, hoist.is_some())
        {
            let mut scout = self.window;
            skip(&mut scout, shape, hoist)?;
            return Ok(Some(scout.at));
        }
        Ok(None)
    }

    /// Parameters are no construct: what their pointers point to follows each of them.
    pub(super) fn open_fields(
        &mut self,
        kind: Kind,
        fields: &Hold<Struct>,
        hoist: Option<u32>,
        place: Embedding,
        end: Option<usize>,
        plain: bool,
    ) -> Visit<usize> {
        let len = fields.fields.len();
        let counts = if plain { None } else { Counts::of(fields) };
        let frame = if kind == Kind::Parameters {
            self.push(kind, len)?
        } else {
            self.push_construct(kind, len, place, end)?
        };
        frame.hoist = hoist;
        if !plain {
            frame.forms = Forms::of_fields(fields);
        }
        if let Some(counts) = counts {
            frame.counting = CountRole::Field;
            self.counts.push(counts);
        }
        Ok(len)
    }

    /// A struct that ends in a conformant array has that array's maximum count in front of it (C706
    /// 14.3.7.1). The count of a struct inside of a struct was moved to the front of the outermost one: it
    /// comes from the frame around (`inherited`). A DECIMAL is the only struct that a VARIANT holds here.
    pub(super) fn open_struct(&mut self, shape: &Shape, fields: &Hold<Struct>) -> Visit<usize> {
        let inherited = self.frames.hoist();
        let place = self.begin()?;
        let hoist = match place {
            Embedding::Arm if !self.takes_decimal(fields) => {
                return Err(unsupported("a struct in a VARIANT"));
            }
            Embedding::Tail => inherited,
            Embedding::Within | Embedding::Arm => None,
            Embedding::Top | Embedding::Behind => tail_of(fields).map(|_| self.window.u32()).transpose()?,
        };
        let end = self.end_of(shape, place, hoist)?;
        let facts = self.known.of(shape, fields);
        self.window.align(if hoist.is_some() { alignment(shape, true) } else { facts.alignment });
        let count = self.open_fields(Kind::Struct, fields, hoist, place, end, facts.plain)?;
        if let (true, Some(frame)) = (self.window.wine, self.frames.last_mut()) {
            frame.packed = is_packed(fields);
        }
        Ok(count)
    }

    /// A struct of unsigned numbers of 32 bits. Inside of others it needs no frame of its own: nothing in it is deferred, counted, or held
    /// in another form.
    #[inline]
    pub(super) fn flat_words(&mut self, shape: &Shape, into: &mut [u32]) -> Visit<()> {
        let is_flat = matches!(shape.resolved(), Shape::Struct(fields) if fields.fields.len() == into.len());
        if self.window.wine || !is_flat || !self.frames.last().is_some_and(Frame::takes_flat) {
            self.open(shape)?;
            for value in into {
                *value = Source::u32(self)?;
            }
            return self.close(shape);
        }
        self.begin()?;
        for value in into {
            *value = self.window.u32()?;
        }
        Ok(())
    }

    /// A fixed array has no counts on the wire. Its length is the contract's and is accepted like any other,
    /// since elements without octets would cost the peer nothing.
    pub(super) fn open_array(&mut self, shape: &Shape, array: &Array) -> Visit<usize> {
        let place = self.begin()?;
        if place == Embedding::Arm {
            return Err(unsupported("a fixed array in a VARIANT"));
        }
        let len = self.accept(array.len, least(&array.element))?;
        let end = self.end_of(shape, place, None)?;
        self.push_construct(Kind::Items, len, place, end)?.forms = Forms::of_items(shape);
        Ok(len)
    }

    /// Its two values are the discriminator and the arm; the arm is known only when the discriminator was
    /// read.
    pub(super) fn open_union(&mut self, shape: &Shape) -> Visit<usize> {
        let counting = !self.counts.is_empty() && self.frames.counting();
        let place = self.begin()?;
        if place == Embedding::Arm {
            return Err(unsupported("a union in a VARIANT"));
        }
        let end = self.end_of(shape, place, None)?;
        let frame = self.push_construct(Kind::Union, 2, place, end)?;
        if let (true, Shape::Union(union)) = (counting, shape) {
            frame.counting = CountRole::Discriminator(bits_of(union));
        }
        Ok(0)
    }

    /// A sequence or a map, in the form that the contract's order asks for:
    /// - `Free`: a struct of a count and a pointer to that many elements.
    /// - `Conformant`: a maximum count, then the elements.
    /// - `Varying`: offset and actual count, then the elements; the room is the contract's.
    /// - `ConformantVarying`: maximum count, offset, actual count, elements.
    ///
    /// Inside of another construct a conformant array is reached by a pointer, except the last field of a
    /// struct, whose maximum count stands in front of the struct.
    pub(super) fn open_items(&mut self, shape: &Shape) -> Visit<usize> {
        let (order, bound, values) = match shape {
            Shape::Sequence(sequence) => (sequence.order, sequence.bound, 1),
            _ => (Order::Free, None, 2),
        };
        let elements = elements_of(shape);
        let hoist = self.frames.hoist();
        let mut place = self.begin()?;
        let counting = !self.counts.is_empty() && self.frames.counting();
        if place == Embedding::Arm {
            return Err(unsupported("a map in a VARIANT"));
        }
        let mut back = None;
        let max = match (place, hoist) {
            _ if order == Order::Varying => None,
            _ if order == Order::Free => {
                // A struct: the count, and a pointer to as many elements.
                let count = self.window.u32()?;
                if self.window.u32()? == 0 {
                    if count > 0 {
                        return self.wrong(Violation::NullReference);
                    }
                    Some(0)
                } else {
                    self.budget.charge_elements(1)?;
                    if matches!(place, Embedding::Within | Embedding::Tail) {
                        back = Some(self.go()?);
                        place = Embedding::Behind;
                    }
                    let max = self.window.u32()?;
                    if max != count {
                        let what = format!("{max} elements, but `count` is {count}");
                        return Err(Violation::CountMismatch.at(self.window.at).at(what));
                    }
                    Some(max)
                }
            }
            (Embedding::Tail, Some(count)) => Some(count),
            (Embedding::Within | Embedding::Tail, _) => {
                if self.window.u32()? == 0 {
                    return self.wrong(Violation::NullReference);
                }
                self.budget.charge_elements(1)?;
                back = Some(self.go()?);
                place = Embedding::Behind;
                Some(self.window.u32()?)
            }
            _ => Some(self.window.u32()?),
        };
        // A varying array says how many elements of its room are there.
        let count = match (order, max) {
            (Order::Conformant | Order::Free, Some(max)) => max,
            (_, max) => self.variance(max)?,
        };
        if bound.is_some_and(|bound| count > bound) {
            return self.wrong(Violation::BoundExceeded);
        }
        if counting && let Some(counts) = self.counts.last_mut() {
            let at = self.window.at;
            counts.count(count_in(order, max, count)).map_err(|found| contradicts(&found, at))?;
        }
        if self.window.wine {
            self.window.align(element_alignment(shape));
        }
        let are_octets = matches!(elements, [Some(one), None] if matches!(one.resolved(), Shape::U8));
        let len = match are_octets {
            true => self.fit(count, 1)?,
            false => self.accept(count, elements.iter().flatten().map(|shape| least(shape)).sum())?,
        };
        // Where the referents of its elements begin, if it is the outermost construct: behind the last
        // element.
        let mut end = None;
        if !matches!(place, Embedding::Within | Embedding::Tail)
            && elements.iter().flatten().any(|shape| has_pointers(shape, false))
        {
            let mut scout = self.window;
            match elements {
                [Some(element), None] => skip_items(&mut scout, element, count)?,
                _ => {
                    let pairs = pair_alignment(shape);
                    for _ in 0..len {
                        scout.align(pairs);
                        elements.iter().flatten().try_for_each(|element| skip(&mut scout, element, None))?;
                    }
                }
            }
            end = Some(scout.at);
        }
        let frame = self.push_construct(Kind::Items, len.saturating_mul(values), place, end)?;
        frame.side.back = back;
        frame.forms = Forms::of_items(shape);
        frame.aligned = pair_alignment(shape);
        Ok(len)
    }

    /// A pointer or an optional value: returns 0 for null, else 1. A reference pointer at the top or behind
    /// another pointer has no octets of its own. The referent of a pointer inside of a construct stands
    /// behind that construct (C706 14.3.12.3, `go`); the place to go back to is kept in the frame.
    pub(super) fn open_pointer(&mut self, shape: &Shape, kind: PointerKind) -> Visit<usize> {
        let counting = self.frames.counting();
        let place = self.begin()?;
        let id_at = self.window.at;
        let mut back = None;
        if kind != PointerKind::Ref || !matches!(place, Embedding::Top | Embedding::Behind) {
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
                // The place where a pointer stood first is remembered with it: reading that one again (in a
                // body that is skipped over and then read) is no alias.
                Some((first, referent)) if first != id_at => {
                    // Reading a referent again takes no bytes: so a message may have it done only so often.
                    self.aliases += 1;
                    let limit = self.window.bytes.len().max(FREE_ALIASES) as u64;
                    if self.aliases as u64 > limit {
                        let asked = self.aliases as u64;
                        return Err(Failure::over_limit(
                            Initiator::Peer,
                            "aliases of pointers",
                            asked,
                            limit,
                        ));
                    }
                    back = Some(ReturnPoint { to: self.window.at, advances: false });
                    self.window.at = referent;
                }
                _ => {
                    if place == Embedding::Within || place == Embedding::Tail {
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
        let automation = place == Embedding::Arm;
        let frame = self.push(Kind::Maybe, 1)?;
        frame.side.back = back;
        frame.side.pointer = true;
        frame.automation = automation;
        frame.forms = Forms::of_items(shape);
        frame.counting = if counting { CountRole::Behind } else { CountRole::No };
        Ok(1)
    }

    /// So many units of UTF-16. Text that is none, or no UTF-8 where the contract has octets, is refused: replacing characters would
    /// change names and keys without anybody knowing.
    pub(super) fn wide(&mut self, units: usize) -> Visit<Cow<'a, str>> {
        let at = self.window.at;
        let raw = self.window.take(units.checked_mul(2).ok_or_else(|| Violation::Truncated.at(at))?)?;
        self.budget.charge_bytes(raw.len() as u64)?;
        let little = self.window.little;
        let units = raw.chunks_exact(2).filter_map(|pair| pair.try_into().ok());
        let mut units =
            units.map(|pair| if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) });
        // Mostly the text is ASCII: then each unit is a byte of it.
        let mut text = String::with_capacity(raw.len() / 2);
        let odd = units.by_ref().find(|unit| match u8::try_from(*unit) {
            Ok(byte) if byte.is_ascii() => {
                text.push(char::from(byte));
                false
            }
            _ => true,
        });
        for unit in char::decode_utf16(odd.into_iter().chain(units)) {
            text.push(unit.map_err(|_| Violation::BadText.at(at))?);
        }
        Ok(Cow::Owned(text))
    }

    /// A string (C706 14.3.4) as a conformant and varying array of characters, and its maximum and actual counts; the NUL that ends it
    /// is not part of the text.
    pub(super) fn string(&mut self, shape: &Text) -> Visit<(Cow<'a, str>, u32, u32)> {
        let max = self.window.u32()?;
        let units = self.variance(Some(max))?;
        let (text, _) = self.characters(shape, units)?;
        Ok((text, max, units))
    }

    /// A string in an array of a fixed size (C706 14.3.4.1): there is no maximum count, and the NUL must be there, since whoever holds
    /// it in C finds its end by it.
    pub(super) fn fixed_string(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let units = self.variance(None)?;
        let at = self.window.at;
        match self.characters(shape, units)? {
            (text, true) => Ok(text),
            (_, false) => Err(Violation::BadText.at(at)),
        }
    }

    /// So many characters, without the NUL that ends them, and whether there was one.
    fn characters(&mut self, shape: &Text, units: u32) -> Visit<(Cow<'a, str>, bool)> {
        let actual = units as usize;
        let at = self.window.at;
        let mut text = if shape.kind == TextKind::Narrow {
            let raw = self.window.take(actual)?;
            self.budget.charge_bytes(raw.len() as u64)?;
            Cow::Borrowed(std::str::from_utf8(raw).map_err(|_| Violation::BadText.at(at))?)
        } else {
            self.wide(actual)?
        };
        let ended = text.ends_with('\0');
        if ended {
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
        Ok((text, ended))
    }
}

/// The shapes of one element: of a map key and value, else one.
fn elements_of(shape: &Shape) -> [Option<&Shape>; 2] {
    match shape {
        Shape::Map(map) => [Some(&map.key), Some(&map.value)],
        other => [other.element(), None],
    }
}
