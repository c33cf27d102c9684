//! SAFEARRAYs of several dimensions: the visit goes row by row, the leftmost index slowest; the stub holds the leftmost
//! index fastest.
//!
//! The stub's order cannot be read in one pass, so each element of the innermost dimension is looked up where
//! it stands (`seek`). Elements that are pointers have referents in the stub's order too: `referents` finds
//! where each begins, by the sizes that BSTRs, VARIANTs and interface pointers begin with.
//!
//! Invariants: `strides` and `bounds` are as long as the dimensions; the elements in place lie wholly in the
//! window, which was checked when the grid opened; rows are charged to the budget, since they take no octets.

use super::super::variant::{self, ArrayFeatures};
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
    /// Where the referent of each element is, if elements are pointers.
    referents: Vec<usize>,
}

/// Where the visit stands in a row.
struct Row {
    dimension: usize,
    /// Whether its values are elements, and no rows.
    innermost: bool,
    /// The number of the first element in its next value, as the stub counts.
    next: usize,
    /// How many elements lie between two values of it.
    stride: usize,
}

impl NdrSource<'_> {
    /// Opens the outermost dimension: its length, its frame's kind, and where the elements end in place. The window stands at the
    /// elements.
    pub(super) fn open_grid(
        &mut self,
        bounds: Vec<usize>,
        holding: ArrayFeatures,
    ) -> Visit<(usize, Kind, Option<usize>)> {
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
        self.grids.push(Grid { bounds, strides, at, width: holding.width, referents });
        Ok((len, Kind::Row { dimension: 0 }, Some(end)))
    }

    /// Finds the referents of pointers in a row, all but the last by the sizes that they begin with.
    fn referents(&mut self, at: usize, total: usize, holding: ArrayFeatures) -> Visit<Vec<usize>> {
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

    /// Where the visit stands in the row that is open, and the grid that it is of.
    fn row(&self) -> Option<(Row, &Grid)> {
        let (frame, grid) = self.frames.last().zip(self.grids.last())?;
        let Kind::Row { dimension } = frame.kind else { return None };
        let (bound, stride) = (*grid.bounds.get(dimension)?, *grid.strides.get(dimension)?);
        let next = bound.saturating_sub(frame.left).saturating_mul(stride).saturating_add(frame.side.first);
        Some((Row { dimension, innermost: dimension + 1 == grid.bounds.len(), next, stride }, grid))
    }

    /// Opens the next row of an open row.
    pub(super) fn open_row(&mut self, shape: &Shape) -> Visit<usize> {
        let Shape::Sequence(_) = shape else { return self.wrong(Violation::Misuse) };
        let Some((row, grid)) = self.row() else { return self.wrong(Violation::Misuse) };
        let dimension = row.dimension + 1;
        let Some(&len) = grid.bounds.get(dimension) else { return self.wrong(Violation::Misuse) };
        self.begin()?;
        let frame = self.push(Kind::Row { dimension }, len)?;
        (frame.automation, frame.side.first) = (true, row.next);
        Ok(len)
    }

    /// An element begins: goes to where it is.
    pub(super) fn seek(&mut self) {
        let Some((Row { innermost: true, next, stride, .. }, grid)) = self.row() else { return };
        // It was counted already.
        let index = next.saturating_sub(stride);
        let referent = grid.referents.get(index).copied();
        self.window.at = grid.at.saturating_add(index.saturating_mul(grid.width));
        if let (Some(_), Some(deferred)) = (referent, self.deferred()) {
            *deferred = referent;
        }
    }

    /// The bytes of the next `count` elements of a row.
    pub(super) fn gather(&mut self, count: usize, width: usize) -> Visit<Vec<u8>> {
        let found = self.row().filter(|(row, grid)| row.innermost && grid.width == width);
        let Some((Row { next, stride, .. }, grid)) = found else { return self.wrong(Violation::Misuse) };
        let mut gathered = Vec::new();
        let mut window = self.window;
        for index in 0..count {
            let element = next.saturating_add(index.saturating_mul(stride));
            window.at = grid.at.saturating_add(element.saturating_mul(width));
            gathered.extend_from_slice(window.take(width)?);
        }
        Ok(gathered)
    }
}
