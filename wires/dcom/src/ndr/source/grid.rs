//! SAFEARRAYs of several dimensions: the visit goes row by row, the leftmost index slowest; the stub holds the leftmost
//! index fastest.
//!
//! The stub's order cannot be read in one pass, so each element of the innermost dimension is looked up where
//! it stands (`seek`). Elements that are pointers have referents in the stub's order too: `referents` finds
//! where each begins, by the sizes that BSTRs, VARIANTs and interface pointers begin with.
//!
//! Invariants: `strides` and `bounds` are as long as the dimensions; the elements in place lie wholly in the
//! window, which was checked when the grid opened; rows are charged to the budget, since they take no octets.

use super::super::variant::{self, Holding};
use super::{Kind, NdrSource};
use crate::violations::Violation;
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;

/// An open SAFEARRAY of several dimensions.
#[derive(Debug)]
pub(super) struct Grid {
    /// How many elements each dimension has, the leftmost first.
    bounds: Vec<usize>,
    /// How many elements lie between two neighbours in each dimension.
    strides: Vec<usize>,
    /// Where the elements are.
    at: usize,
    /// Bytes of an element in place.
    width: usize,
    /// Where the elements end in place.
    end: usize,
    /// Where the referent of each element is, if elements are pointers.
    referents: Vec<usize>,
}

impl NdrSource<'_> {
    /// Opens the outermost dimension: its length and its frame's kind. The window stands at the elements.
    pub(super) fn open_grid(&mut self, bounds: Vec<usize>, holding: Holding) -> Visit<(usize, Kind)> {
        let mut total = 1_usize;
        let mut strides = Vec::with_capacity(bounds.len());
        for bound in &bounds {
            strides.push(total);
            total = total.saturating_mul(*bound);
        }
        self.window.align(if total == 0 { 1 } else { holding.width });
        let at = self.window.at;
        self.window.take(total.saturating_mul(holding.width))?;
        let end = self.window.at;
        let referents = match holding.deferred {
            Some(_) => self.referents(at, total, holding)?,
            None => Vec::new(),
        };
        // Rows without elements take no bytes, and should not be there (MS-OAUT 2.2.30.1): they are passed over.
        let len = if total == 0 { 0 } else { bounds.first().copied().unwrap_or_default() };
        let mut rows = if total == 0 { 0 } else { 1_usize };
        for bound in bounds.split_last().map(|(_, outer)| outer).unwrap_or_default() {
            rows = rows.saturating_mul(*bound);
            self.budget.charge_elements(rows as u64)?;
        }
        self.grids.push(Grid { bounds, strides, at, width: holding.width, end, referents });
        Ok((len, Kind::Row { dimension: 0, first: 0 }))
    }

    /// Finds the referents of pointers in a row, all but the last by the sizes that they begin with.
    fn referents(&mut self, at: usize, total: usize, holding: Holding) -> Visit<Vec<usize>> {
        let mut ids = self.window;
        ids.at = at;
        let mut ahead = self.window;
        let interfaces = matches!(holding.sf_type, 9 | 13);
        if interfaces {
            ahead.little = self.body.little;
        }
        let mut found = Vec::with_capacity(total.min(1024));
        for index in 0..total {
            found.push(ahead.at);
            if ids.u32()? == 0 || index + 1 == total {
                continue;
            }
            ahead.align(holding.deferred.unwrap_or(4));
            let start = ahead.at;
            let size = ahead.u32()? as usize;
            let len = match u32::from(variant::VARIANT) == holding.sf_type {
                // clSize, in units of 8 bytes.
                // Here `clSize` has to be believed: nothing else says where the next VARIANT begins.
                true => size.saturating_mul(8),
                // The conformance of an MInterfacePointer, in bytes, or of a FLAGGED_WORD_BLOB, in words.
                false if interfaces => size.saturating_add(8),
                false => size.saturating_mul(2).saturating_add(12),
            };
            ahead.at = start;
            ahead.take(len)?;
        }
        Ok(found)
    }

    /// Where the referents of the grid opened last begin, or where it ends if it has none.
    pub(super) fn grid_end(&self) -> Option<usize> {
        self.grids.last().map(|grid| grid.end)
    }

    /// Whether the next value is part of a row.
    pub(super) fn in_row(&self) -> bool {
        matches!(self.frames.last(), Some(frame) if matches!(frame.kind, Kind::Row { .. }))
    }

    /// Opens the next row of an open row.
    pub(super) fn open_row(&mut self, shape: &Shape) -> Visit<usize> {
        let Shape::Sequence(_) = shape else { return self.wrong(Violation::Misuse) };
        let first = self.next_element();
        self.begin()?;
        let dimension = match self.frames.last().map(|frame| frame.kind) {
            Some(Kind::Row { dimension, .. }) => dimension + 1,
            _ => return self.wrong(Violation::Misuse),
        };
        let Some(&len) = self.grids.last().and_then(|grid| grid.bounds.get(dimension)) else {
            return self.wrong(Violation::Misuse);
        };
        self.push(Kind::Row { dimension, first }, len)?.automation = true;
        Ok(len)
    }

    /// The number, as the stub counts, of the first element in what comes next.
    /// 0 where no grid is open, which no caller asks.
    fn next_element(&self) -> usize {
        let (Some(frame), Some(grid)) = (self.frames.last(), self.grids.last()) else { return 0 };
        let Kind::Row { dimension, first } = frame.kind else { return 0 };
        let bound = grid.bounds.get(dimension).copied().unwrap_or_default();
        let stride = grid.strides.get(dimension).copied().unwrap_or_default();
        first.saturating_add(bound.saturating_sub(frame.left).saturating_mul(stride))
    }

    /// An element begins: goes to where it is.
    pub(super) fn seek(&mut self) {
        let Some(frame) = self.frames.last() else { return };
        let (outer, left) = (frame.outer, frame.left);
        let Kind::Row { dimension, first } = frame.kind else { return };
        let Some(grid) = self.grids.last() else { return };
        if dimension + 1 != grid.bounds.len() {
            return;
        }
        // `left` no longer counts the element that begins.
        let bound = grid.bounds.get(dimension).copied().unwrap_or_default();
        let stride = grid.strides.get(dimension).copied().unwrap_or_default();
        let index = bound.saturating_sub(left.saturating_add(1)).saturating_mul(stride).saturating_add(first);
        self.window.at = grid.at.saturating_add(index.saturating_mul(grid.width));
        let referent = grid.referents.get(index).copied();
        if let (Some(referent), Some(frame)) = (referent, self.frames.get_mut(outer)) {
            frame.deferred = Some(referent);
        }
    }

    /// The bytes of the next `count` elements of a row.
    pub(super) fn gather(&mut self, count: usize, width: usize) -> Visit<Vec<u8>> {
        let first = self.next_element();
        let mut gathered = Vec::new();
        let Some(grid) = self.grids.last() else { return self.wrong(Violation::Misuse) };
        let Some(Kind::Row { dimension, .. }) = self.frames.last().map(|frame| frame.kind) else {
            return self.wrong(Violation::Misuse);
        };
        if dimension + 1 != grid.bounds.len() || width != grid.width {
            return self.wrong(Violation::Misuse);
        }
        let stride = grid.strides.get(dimension).copied().unwrap_or_default();
        let mut window = self.window;
        for index in 0..count {
            let element = first.saturating_add(index.saturating_mul(stride));
            window.at = grid.at.saturating_add(element.saturating_mul(width));
            gathered.extend_from_slice(window.take(width)?);
        }
        Ok(gathered)
    }
}
