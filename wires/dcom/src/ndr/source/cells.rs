//! Reading structs of numbers and variants in one go.
//!
//! The fast way changes nothing until the whole row is known to be readable; then it charges the budget as
//! the slow way would, so that both accept the same messages.

use super::super::variant::{self, HEADER};
use super::super::window::Window;
use super::NdrSource;
use crate::limits::VARIANT_DEPTH;
use everywire_model::Scalar;
use everywire_model::cells::Layout;
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;

impl<'a> NdrSource<'a> {
    /// Whether the next elements can be read as whole rows, and if so whether they are little-endian. Wine's
    /// form is always read field by field.
    pub(super) fn rows_of(&mut self, shape: &Shape, layout: &'static Layout) -> Option<bool> {
        let takes_rows = !self.window.wine && self.frames.last()?.takes_row();
        (takes_rows && self.agreed.of(shape, layout)).then_some(self.window.little)
    }

    /// Whatever is not as expected, the way through the fields finds.
    pub(super) fn take_row(&mut self, layout: &Layout, variants: &mut [Scalar]) -> Visit<Option<&'a [u8]>> {
        let Some(frame) = self.frames.last() else { return Ok(None) };
        if !frame.takes_row() || frame.left == 0 {
            return Ok(None);
        }
        let mut window = self.window;
        window.align(layout.alignment);
        let Ok(row) = window.take(layout.size) else { return Ok(None) };
        if !variants.is_empty() {
            let Some(at) = self.deferred().copied().flatten() else { return Ok(None) };
            if self.variants >= VARIANT_DEPTH {
                return Ok(None);
            }
            let mut behind = Window { at, little: true, ..window };
            for (at, scalar) in layout.variants().zip(variants.iter_mut()) {
                if row.get(at..at + 4).is_none_or(|pointer| pointer == [0; 4]) {
                    return Ok(None);
                }
                let Some(found) = plain(&mut behind) else { return Ok(None) };
                *scalar = found;
            }
            self.budget.charge_elements(variants.len() as u64)?;
            if let Some(deferred) = self.deferred() {
                *deferred = Some(behind.at);
            }
        }
        self.budget.enter()?;
        self.budget.leave();
        self.window.at = window.at;
        if let Some(frame) = self.frames.last_mut() {
            frame.left -= 1;
        }
        Ok(Some(row))
    }
}

/// A wireVARIANT that holds one number (MS-OAUT 2.2.29.1), from the padding before it to its last byte; nothing if it is something else,
/// or wrong.
#[inline]
pub(super) fn plain(window: &mut Window<'_>) -> Option<Scalar> {
    window.align(8);
    let header = window.take(HEADER).ok()?;
    let &[_, _, _, _, _, _, _, _, low, high, _, _, _, _, _, _, a, b, c, d] = header else { return None };
    let vt = u16::from_le_bytes([low, high]);
    if u32::from_le_bytes([a, b, c, d]) != vt.into() {
        return None;
    }
    let (shape, width) = variant::plain(vt)?;
    window.align(width.max(1));
    let mut bits = match *window.take(width).ok()? {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    };
    if vt == variant::BOOL {
        bits = (bits != 0).into();
    }
    Scalar::new(shape, bits)
}
