//! Writing the automation types: VARIANT, BSTR and SAFEARRAY (MS-OAUT 2.2.23, 2.2.29, 2.2.30).
//!
//! These are user-marshalled: in place stands a word that is not null (`User`), and what it stands for is a
//! referent like any other, but aligned to 8 for a VARIANT. Inside of a VARIANT or SAFEARRAY all numbers are
//! little-endian, whatever the stub is, so the byte order is changed when one opens and restored when it
//! closes (`Frame::order`).
//!
//! Invariants: `variants` counts the open VARIANTs and is bounded by `VARIANT_DEPTH`. `clSize` and the counts
//! of SAFEARRAYs of several dimensions are written as they begin and patched as they end, in the segment
//! where they stand. A SAFEARRAY is rectangular: a row of another length than its neighbour is refused. The
//! fast way (`plain_variant`) writes the same octets as the visit would. A row that cannot be written in one go (`Ok(false)`, `None`)
//! is written by the visit of its fields instead, so nothing may have been put into the buffer by then.

use super::super::cells::{VARIANT_BYTES, variant_bytes};
use super::super::layout::Embedding;
use super::super::source::WINE_GRID;
use super::super::variant::{self, ArrayFeatures, USER};
use super::{Frame, Kind, NdrSink, SinkState, count_of, too_long};
use crate::limits::{SAFEARRAY_DIMENSIONS, VARIANT_DEPTH};
use crate::violations::{Violation, unsupported};
use everywire_model::cells::{Layout, Style};
use everywire_model::shape::{Sequence, Shape};
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator, Scalar};

/// An open SAFEARRAY of several dimensions: the visit comes row by row, the leftmost index slowest; the stub holds the
/// leftmost index fastest. So elements are written as they come, and put in order at the end.
#[derive(Debug)]
pub(super) struct Grid {
    /// How many elements each dimension has, the leftmost first, as far as that is known.
    bounds: Vec<Option<usize>>,
    holding: ArrayFeatures,
    /// Where in the segment the number of elements stands, and again behind the bounds.
    sizes: [usize; 2],
    /// Where in the segment the bounds stand.
    bounds_at: usize,
    /// Where in the segment the elements begin.
    at: usize,
    /// Where in the segment of what is deferred each element's referent begins.
    referents: Vec<usize>,
}

/// Elements for which room is made at once: a count that the caller gave wrongly must not reserve all memory.
const ROOM: usize = 4096;

impl NdrSink {
    /// The content follows by `variant_header`, since its type decides how the rest is written.
    pub(super) fn open_variant(&mut self) -> Visit<()> {
        if self.variants >= VARIANT_DEPTH {
            return Err(Violation::VariantDepth.at(0));
        }
        let (place, in_place) = self.begin_pointed()?;
        if place == Embedding::Arm {
            // VT_BYREF | VT_VARIANT: a pointer to the pointer that a VARIANT is.
            self.referent_id();
        }
        if !in_place {
            self.u32(USER);
        }
        self.variants += 1;
        let order = std::mem::replace(&mut self.little, true);
        let referent = place == Embedding::Within;
        if referent {
            self.descend();
        }
        self.segment().align(8);
        let start = self.segment().len();
        let frame = self.push(Kind::Variant, 1)?;
        frame.side = SinkState { referent, start };
        frame.automation = true;
        frame.order = Some(order);
        Ok(())
    }

    /// A VARIANT that holds one number, behind its pointer in a struct or an array: the same bytes as when it is opened and closed.
    /// Whether it was written.
    pub(super) fn plain_variant(&mut self, value: Scalar) -> Visit<bool> {
        let usual = self.frames.last().is_some_and(Frame::takes_plain_variant);
        // Wherever the place of the value needs more than the usual pointer, the slow way knows what.
        if self.wine || !usual || self.variants >= VARIANT_DEPTH {
            return Ok(false);
        }
        let vt = variant::type_of(value.shape())?;
        let Some((_, width)) = variant::plain(vt) else { return Ok(false) };
        self.begin()?;
        self.u32(USER);
        self.descend();
        let (bytes, len) = variant_bytes(vt, width, value);
        let segment = self.segment();
        segment.align(8);
        segment.bytes().extend_from_slice(bytes.get(..len).unwrap_or_default());
        self.ascend();
        Ok(true)
    }

    /// `shape` is that of the content: one value is to come, or none if it is empty.
    pub(super) fn variant_header(&mut self, shape: &Shape) -> Visit<()> {
        let vt = variant::type_of(shape)?;
        self.lower_bounds = if vt & variant::ARRAY == 0 { Vec::new() } else { variant::lower_bounds(shape) };
        match self.frames.last_mut() {
            Some(frame) if frame.kind == Kind::Variant => {
                frame.left = usize::from(!matches!(shape.resolved(), Shape::Void));
            }
            _ => return Err(Violation::Misuse.at(0)),
        }
        // clSize is put in at the end.
        let [low, high] = vt.to_le_bytes();
        let [a, b, c, d] = variant::discriminant(vt).to_le_bytes();
        let header = [0, 0, 0, 0, 0, 0, 0, 0, low, high, 0, 0, 0, 0, 0, 0, a, b, c, d];
        self.segment().bytes().extend_from_slice(&header);
        Ok(())
    }

    /// `clSize` counts everything that belongs to the VARIANT in units of 8 bytes; the last one need not be full.
    pub(super) fn close_variant(&mut self, start: usize) {
        self.settle();
        let segment = self.segment();
        let size = segment.len().saturating_sub(start).div_ceil(8) as u32;
        segment.patch(start, &size.to_le_bytes());
        self.variants -= 1;
    }

    /// A BSTR: text of so many units, behind a pointer or what stands for one.
    pub(super) fn bstr(&mut self, units: usize, value: &str) -> Visit<()> {
        count_of(units.saturating_mul(2))?;
        let marked = self.wine && !self.frames.automation();
        let (place, in_place) = self.begin_pointed()?;
        match place {
            _ if in_place => {}
            Embedding::Arm => self.referent_id(),
            _ => self.u32(USER),
        }
        self.referent(place, |sink| {
            if marked {
                // What is user-marshalled is aligned so there, whatever it is.
                sink.segment().align(8);
            }
            sink.blob(units as u32, value);
        });
        self.end();
        Ok(())
    }

    /// FLAGGED_WORD_BLOB (MS-OAUT 2.2.23.1). Empty text is a null BSTR: the two mean the same.
    pub(super) fn blob(&mut self, units: u32, value: &str) {
        let outer = std::mem::replace(&mut self.little, true);
        self.u32(units);
        self.u32(if units == 0 { variant::NULL_BSTR } else { units.wrapping_mul(2) });
        self.u32(units);
        self.units(value);
        self.little = outer;
    }

    /// SAFEARRAY (MS-OAUT 2.2.30.10), behind the two pointers that it is reached by.
    pub(super) fn open_safearray(&mut self, sequence: &Sequence, len: usize) -> Visit<()> {
        let element = variant::element_type(sequence)?;
        let holding = variant::safearray_of(element)?;
        let dimensions = variant::dimensions(sequence);
        let count = count_of(len)?;
        if sequence.bound.is_some_and(|bound| count > bound) {
            return Err(too_long(len, sequence.bound));
        }
        if dimensions > SAFEARRAY_DIMENSIONS as usize {
            let limit = u64::from(SAFEARRAY_DIMENSIONS);
            return Err(Failure::over_limit(Initiator::User, "dimensions", dimensions as u64, limit));
        }
        let automation = self.frames.automation();
        let place = self.begin()?;
        match automation {
            true => self.referent_id(),
            // Outside a VARIANT it is user-marshalled.
            false => self.u32(USER),
        }
        let referent = place == Embedding::Within;
        if referent {
            self.descend();
        }
        if self.wine && !automation {
            self.segment().align(8);
        }
        if self.wine && dimensions > 1 && holding.deferred.is_some() {
            return Err(unsupported(WINE_GRID));
        }
        let order = std::mem::replace(&mut self.little, true);
        self.referent_id();
        self.u32(dimensions as u32);
        self.u16(dimensions as u16);
        self.u16(holding.features);
        self.u32(holding.size);
        // cLocks, whose high word is the VARTYPE of the elements (`HAVE_VARTYPE`); the locks themselves mean
        // nothing on the wire.
        self.u32(u32::from(element) << 16);
        self.u32(holding.sf_type);
        let first_size = self.segment().len();
        self.u32(count);
        self.referent_id();
        let bounds_at = self.segment().len();
        let mut bounds = std::mem::take(&mut self.lower_bounds);
        // Of another array, if they are not as many. The leftmost dimension stands last.
        bounds.resize(dimensions, 0);
        for bound in bounds.iter().rev() {
            self.u32(count);
            self.u32(bound.cast_unsigned());
        }
        let sizes = [first_size, self.segment().len()];
        self.u32(count);
        // Counts and bounds of several dimensions are known no earlier than their last row: see `close_grid`.
        let mut kind = Kind::Items;
        if dimensions > 1 {
            kind = Kind::Row { dimension: 0 };
            if count > 0 {
                self.segment().align(holding.width);
            }
            let at = self.segment().len();
            let mut bounds = vec![None; dimensions];
            if let Some(first) = bounds.first_mut() {
                *first = Some(len);
            }
            self.grids.push(Grid { bounds, holding, sizes, bounds_at, at, referents: Vec::new() });
        }
        let frame = self.push(kind, len)?;
        frame.automation = true;
        frame.side.referent = referent;
        frame.order = Some(order);
        Ok(())
    }

    /// Opens the next row of an open row.
    pub(super) fn open_row(&mut self, len: usize) -> Visit<()> {
        self.begin()?;
        let (Some(dimension), Some(grid)) = (self.frames.row(), self.grids.last_mut()) else {
            return Err(Violation::Misuse.at(0));
        };
        let dimension = dimension + 1;
        match grid.bounds.get_mut(dimension) {
            Some(bound @ None) => *bound = Some(len),
            Some(Some(bound)) if *bound == len => {}
            Some(Some(bound)) => {
                let what = format!("rows of {bound} and of {len} elements: a SAFEARRAY is rectangular");
                return Err(Failure::bad_argument(what));
            }
            None => return Err(Violation::Misuse.at(0)),
        }
        self.push(Kind::Row { dimension }, len)?.automation = true;
        Ok(())
    }

    /// An element of a row begins.
    pub(super) fn mark(&mut self) {
        let (Some(dimension), Some(grid)) = (self.frames.row(), self.grids.last()) else { return };
        let innermost = dimension + 1 == grid.bounds.len();
        let Some(alignment) = grid.holding.deferred.filter(|_| innermost) else { return };
        // Behind a boundary that does for all, so that referents can change places.
        let behind = self.behind();
        behind.align(alignment);
        let at = behind.len();
        if let Some(grid) = self.grids.last_mut() {
            grid.referents.push(at);
        }
    }

    /// The outermost row ends: puts the elements in the stub's order, and says how many there are.
    pub(super) fn close_grid(&mut self) -> Visit<()> {
        let Some(grid) = self.grids.pop() else { return Err(Violation::Misuse.at(0)) };
        let bounds: Vec<usize> = grid.bounds.iter().map(|bound| bound.unwrap_or_default()).collect();
        let total = bounds.iter().try_fold(1_usize, |total, bound| total.checked_mul(*bound));
        let count = count_of(total.unwrap_or(usize::MAX))?;
        let segment = self.segment();
        for at in grid.sizes {
            segment.patch(at, &count.to_le_bytes());
        }
        for (index, bound) in bounds.iter().rev().enumerate() {
            segment.patch(grid.bounds_at + 8 * index, &count_of(*bound)?.to_le_bytes());
        }
        // Where the visit's elements come from, in the stub's order.
        let sources: Vec<usize> = (0..count as usize).map(|index| row_major(index, &bounds)).collect();
        let width = grid.holding.width;
        let at = grid.at.min(segment.len());
        let written = segment.bytes().split_off(at);
        for source in &sources {
            let element = written.get(source * width..(source + 1) * width);
            segment.bytes().extend_from_slice(element.unwrap_or_default());
        }
        let (Some(alignment), Some(&first)) = (grid.holding.deferred, grid.referents.first()) else {
            return Ok(());
        };
        if let Some(deferred) = self.deferred.get_mut(self.depth) {
            let written = deferred.bytes().split_off(first);
            for source in &sources {
                let from = grid.referents.get(*source).map_or(0, |at| at - first);
                let to = grid.referents.get(source + 1).map_or(written.len(), |at| at - first);
                deferred.align(alignment);
                deferred.bytes().extend_from_slice(written.get(from..to).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Whether the next value is an element that may be a row.
    #[inline]
    fn takes_row(&self, layout: &Layout) -> bool {
        !self.wine
            && self.frames.last().is_some_and(Frame::takes_row)
            && (self.variants < VARIANT_DEPTH || layout.variant_count() == 0)
    }

    /// `None`: the elements are visited one by one.
    pub(super) fn rows_of(&mut self, shape: &Shape, layout: &'static Layout, count: usize) -> Option<Style> {
        if !self.takes_row(layout) || !self.agreed.of(shape, layout) {
            return None;
        }
        let count = count.min(ROOM);
        self.segment().bytes().reserve(count * layout.size.next_multiple_of(layout.alignment));
        let variants = count * layout.variant_count();
        if variants > 0 {
            self.behind().bytes().reserve(variants * VARIANT_BYTES);
        }
        Some(Style { little: self.little, pointer: USER })
    }

    /// Writes a struct of numbers and VARIANTs in one piece. `raw` is its flat part in the byte order of
    /// `rows`, with the pointers to the VARIANTs already in it; each VARIANT goes behind the outermost
    /// construct. `false`: nothing was written, and the caller has to write field by field.
    pub(super) fn put_row(&mut self, layout: &Layout, raw: &[u8], variants: &[Scalar]) -> Visit<bool> {
        // What a variant holds must be known before anything is written.
        if !self.takes_row(layout)
            || variants.iter().any(|scalar| self.last_type.of(scalar.shape()).is_none())
        {
            return Ok(false);
        }
        self.begin()?;
        self.segment().put(layout.alignment, raw);
        for scalar in variants {
            if let Some((vt, width)) = self.last_type.of(scalar.shape()) {
                let (bytes, len) = variant_bytes(vt, width, *scalar);
                self.behind().put(8, bytes.get(..len).unwrap_or_default());
            }
        }
        Ok(true)
    }
}

/// The number that the visit gives to the element which the stub holds at `index`.
/// `bounds` has the leftmost first; the stub's first index runs fastest.
fn row_major(index: usize, bounds: &[usize]) -> usize {
    let mut rest = index;
    let mut number = 0;
    let mut stride: usize = bounds.iter().product();
    for bound in bounds {
        stride /= (*bound).max(1);
        number += rest % bound.max(&1) * stride;
        rest /= (*bound).max(1);
    }
    number
}
