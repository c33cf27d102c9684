//! Writing structs of numbers and variants in one go.
//!
//! A row that cannot be written so (`Ok(false)`, `None`) is written by the visit of its fields instead, so
//! nothing may have been put into the buffer by then.

use super::super::cells::{VARIANT_BYTES, variant_bytes};
use super::super::variant::USER;
use super::{Frame, NdrSink, miscounted};
use crate::limits::VARIANT_DEPTH;
use everywire_model::Scalar;
use everywire_model::cells::{Layout, Style};
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;

/// Elements for which room is made at once: a count that the caller gave wrongly must not reserve all memory.
const ROOM: usize = 4096;

impl NdrSink {
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
        if let Some(frame) = self.frames.last_mut() {
            frame.left = frame.left.checked_sub(1).ok_or_else(miscounted)?;
        }
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
