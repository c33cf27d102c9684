//! Writing structs, arrays, unions and pointers (C706 14.3).
//!
//! Each `open_...` function first asks `begin` where the value stands (`Embedding`), then writes what NDR puts
//! before the members: a maximum count that was moved to the front, a pointer, offset and actual count. Then
//! it pushes a frame that knows how many values are to come.
//!
//! State: the stack of frames. Invariants: whoever opens also closes; a frame ends when all its values came.
//! A composite behind a pointer of its own, inside another one, is a deferred referent: `descend` selects the
//! segment behind, and the frame ends it (`Frame::referent`).

use super::super::layout::{
    Embedding, Form, alignment, arms_alignment, bits_of, form, pair_alignment, tail_of,
};
use super::super::variant;
use super::super::watch::{CountRole, Counts, Forms, count_in};
use super::{Frame, Kind, NdrSink, contradicts, count_of, miscounted, too_long};
use crate::ndr::wine::{DISCRIMINATOR, element_alignment, is_packed};
use crate::violations::{Violation, unsupported};
use everywire_model::shape::{Array, Hold, Order, PointerKind, Shape, Struct, Union};
use everywire_model::visit::{Sink, Visit};

impl NdrSink {
    /// A value without pointers, little-endian; in some structs of Wine's it follows without padding.
    #[inline]
    pub(super) fn scalar<const WIDTH: usize>(&mut self, mut bytes: [u8; WIDTH]) {
        if !self.little {
            bytes.reverse();
        }
        match self.frames.last_mut().filter(|frame| frame.packed) {
            None => self.segment().put(WIDTH, &bytes),
            Some(frame) if frame.kind == Kind::Union => {
                frame.packed = false;
                let aligned = frame.aligned;
                self.segment().put(WIDTH, &bytes);
                self.segment().align(aligned);
            }
            Some(_) => self.segment().put(1, &bytes),
        }
    }

    /// `hoist` is where the maximum count of the array at the struct's end stands in the segment; `plain`
    /// says that no field needs a second look (`Facts::plain`).
    pub(super) fn open_fields(
        &mut self,
        kind: Kind,
        fields: &Hold<Struct>,
        hoist: Option<usize>,
        plain: bool,
    ) -> Visit<()> {
        let frame = self.push(kind, fields.fields.len())?;
        frame.hoist = hoist;
        if plain {
            return Ok(());
        }
        frame.forms = Forms::of_fields(fields);
        if let Some(counts) = Counts::of(fields) {
            frame.counting = CountRole::Field;
            self.counts.push(counts);
        }
        Ok(())
    }

    /// A struct that ends in a conformant array begins with that array's maximum count (C706 14.3.7.1), which
    /// is not known yet: zeros are written, and their place goes down with the frames (`hoist`) to the array.
    pub(super) fn open_struct(&mut self, shape: &Shape, fields: &Hold<Struct>) -> Visit<()> {
        let inherited = self.frames.hoist();
        let hoist = match self.begin()? {
            Embedding::Arm if !variant::is_decimal(fields) => {
                return Err(unsupported("a struct in a VARIANT"));
            }
            Embedding::Tail => inherited,
            Embedding::Within | Embedding::Arm => None,
            // Room for the maximum count, which is patched when the array opens.
            Embedding::Top | Embedding::Behind => tail_of(fields).map(|_| {
                self.u32(0);
                self.segment().len() - 4
            }),
        };
        let facts = self.known.of(shape, fields);
        self.segment().align(if hoist.is_some() { alignment(shape, true) } else { facts.alignment });
        self.open_fields(Kind::Struct, fields, hoist, facts.plain)?;
        if let (true, Some(frame)) = (self.wine, self.frames.last_mut()) {
            frame.packed = is_packed(fields);
        }
        Ok(())
    }

    /// A struct of unsigned numbers of 32 bits. Inside of others it needs no frame of its own: nothing in it is deferred, counted, or held
    /// in another form.
    #[inline]
    pub(super) fn flat_words(&mut self, shape: &Shape, values: &[u32]) -> Visit<()> {
        let is_flat =
            matches!(shape.resolved(), Shape::Struct(fields) if fields.fields.len() == values.len());
        if self.wine || !is_flat || !self.frames.last().is_some_and(Frame::takes_flat) {
            self.open(shape, values.len())?;
            values.iter().try_for_each(|value| Sink::u32(self, *value))?;
            return self.close(shape);
        }
        self.begin()?;
        let little = self.little;
        let segment = self.segment();
        for value in values {
            segment.put(4, &if little { value.to_le_bytes() } else { value.to_be_bytes() });
        }
        Ok(())
    }

    /// A fixed array has no counts on the wire: the contract says its length.
    pub(super) fn open_array(&mut self, shape: &Shape, array: &Array, len: usize) -> Visit<()> {
        if self.begin()? == Embedding::Arm {
            return Err(unsupported("a fixed array in a VARIANT"));
        }
        if array.len as usize != len {
            return Err(miscounted());
        }
        self.push(Kind::Items, len)?.forms = Forms::of_items(shape);
        Ok(())
    }

    /// `len` is 0 if no arm is selected, else the number of the arm plus one; the discriminator is the first
    /// value to come.
    pub(super) fn open_union(&mut self, union: &Union, len: usize) -> Visit<()> {
        let counting = !self.counts.is_empty() && self.frames.counting();
        if self.begin()? == Embedding::Arm {
            return Err(unsupported("a union in a VARIANT"));
        }
        let arm = len.checked_sub(1).and_then(|arm| union.arms.get(arm));
        let aligned = arms_alignment(union).max(if self.wine { DISCRIMINATOR } else { 1 });
        let role = if counting { CountRole::Discriminator(bits_of(union)) } else { CountRole::No };
        // An arm that holds nothing is no value of the visit.
        let filled = arm.is_some_and(|arm| !matches!(arm.field.shape.resolved(), Shape::Void));
        let frame = self.push(Kind::Union, 1 + usize::from(filled))?;
        frame.packed = aligned > 1;
        frame.aligned = aligned;
        frame.counting = role;
        match arm.map(|arm| form(&arm.field.shape).0) {
            // No discriminator is held in another form, so that it does not matter that this is about it, too.
            Some(form) if form != Form::Plain => frame.forms = Forms::Pairs(Form::Plain, form),
            _ => {}
        }
        Ok(())
    }

    /// Opens a sequence or map of `len` elements.
    pub(super) fn open_items(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        let (order, bound, values) = match shape {
            Shape::Sequence(sequence) => (sequence.order, sequence.bound, 1),
            _ => (Order::Free, None, 2),
        };
        let count = count_of(len)?;
        if bound.is_some_and(|bound| count > bound) {
            return Err(too_long(len, bound));
        }
        let counting = !self.counts.is_empty() && self.frames.counting();
        let hoist = self.frames.hoist();
        let place = self.begin()?;
        let max = if counting { self.counted(order, count)? } else { count };
        // Said by the caller for this one sequence (`Sink::room`): an enumerator's array has room for all
        // that were asked for.
        let room = std::mem::take(&mut self.room);
        let max = if order == Order::ConformantVarying { max.max(room) } else { max };
        let mut referent = false;
        match (place, hoist) {
            (Embedding::Arm, _) => return Err(unsupported("a map in a VARIANT")),
            _ if order == Order::Free => {
                // A struct: the count, and a pointer to as many elements, which follow what is around it.
                self.u32(count);
                if count == 0 {
                    self.u32(0);
                } else {
                    self.referent_id();
                    self.descend();
                    referent = true;
                    self.u32(count);
                }
            }
            (Embedding::Tail, Some(at)) => {
                let raw = if self.little { max.to_le_bytes() } else { max.to_be_bytes() };
                self.segment().patch(at, &raw);
            }
            (Embedding::Within | Embedding::Tail, _) if order != Order::Varying => {
                self.referent_id();
                self.descend();
                referent = true;
                self.u32(max);
            }
            _ if order != Order::Varying => self.u32(max),
            _ => {}
        }
        if counting {
            let at = match (place, hoist) {
                (Embedding::Tail, Some(at)) => at,
                _ => self.segment().len().saturating_sub(4),
            };
            self.may_grow(order, at);
        }
        if !matches!(order, Order::Conformant | Order::Free) {
            self.u32(0);
            self.u32(count);
        }
        if self.wine {
            self.segment().align(element_alignment(shape));
        }
        let frame = self.push(Kind::Items, len.saturating_mul(values))?;
        frame.side.referent = referent;
        frame.forms = Forms::of_items(shape);
        frame.aligned = pair_alignment(shape);
        Ok(())
    }

    /// Compares what is written next with the size that is said beside it; the maximum count of it.
    pub(super) fn counted(&mut self, order: Order, count: u32) -> Visit<u32> {
        let Some(counts) = self.counts.last_mut() else { return Ok(count) };
        // Fewer elements than the size says may be there where both are written.
        let size = counts.size().and_then(|size| u32::try_from(size).ok());
        let varies = !matches!(order, Order::Conformant | Order::Free);
        let max = size.filter(|size| varies && *size > count).unwrap_or(count);
        counts.count(count_in(order, Some(max), count)).map_err(|found| contradicts(&found))?;
        Ok(max)
    }

    /// The maximum count stands there in the segment; a size that comes later may still say that there is more room.
    pub(super) fn may_grow(&mut self, order: Order, at: usize) {
        let depth = self.depth;
        if order == Order::ConformantVarying
            && let Some(counts) = self.counts.last_mut()
            && counts.size().is_none()
        {
            counts.open((depth, at));
        }
    }

    /// `len` is 0 for null. A null reference pointer is refused, since no reader expects one.
    pub(super) fn open_pointer(&mut self, shape: &Shape, kind: PointerKind, len: usize) -> Visit<()> {
        let counting = self.frames.counting();
        let place = self.begin()?;
        let present = len > 0;
        let mut referent = false;
        match (kind, present) {
            (PointerKind::Ref, false) => return Err(Violation::NullReference.at(0)),
            // A reference pointer that is a parameter, or stands behind a pointer, leaves no trace.
            (PointerKind::Ref, true) if matches!(place, Embedding::Top | Embedding::Behind) => {}
            (_, false) => self.u32(0),
            (_, true) => {
                self.referent_id();
                if place == Embedding::Within {
                    self.descend();
                    referent = true;
                }
            }
        }
        let frame = self.push(Kind::Maybe, usize::from(present))?;
        frame.side.referent = referent;
        frame.automation = place == Embedding::Arm;
        frame.forms = Forms::of_items(shape);
        frame.counting = if counting { CountRole::Behind } else { CountRole::No };
        Ok(())
    }

    /// A string (C706 14.3.4) as a conformant and varying array of characters, ended by a NUL.
    /// `count` is the number of units with the NUL, which is the actual count, and `max` the maximum count; the offset is 0.
    pub(super) fn string(&mut self, narrow: bool, max: u32, count: u32, value: &str) {
        self.u32(max);
        self.u32(0);
        self.u32(count);
        self.characters(narrow, value);
    }

    /// The characters of a string, and the NUL that ends it.
    pub(super) fn characters(&mut self, narrow: bool, value: &str) {
        if narrow {
            let bytes = self.segment().bytes();
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        } else {
            self.units(value);
            self.u16(0);
        }
    }

    /// UTF-16.
    pub(super) fn units(&mut self, value: &str) {
        let little = self.little;
        let bytes = self.segment().bytes();
        bytes.reserve(value.len() * 2);
        for unit in value.encode_utf16() {
            bytes.extend_from_slice(&if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
        }
    }
}
