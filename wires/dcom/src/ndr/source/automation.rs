//! Reading the automation types: VARIANT, BSTR and SAFEARRAY (MS-OAUT 2.2.23, 2.2.29, 2.2.30).
//!
//! A null pointer in place of a VARIANT is an empty one, and in place of a SAFEARRAY or BSTR an array without
//! elements and an empty text: some peers send them so, and the neutral values know no other nothing.
//!
//! Invariants: sizes that a peer says twice must agree (conformance and word count, product of bounds and
//! element count), and what nothing depends on is not believed (`clSize`, `cbElements`, locks). A VARIANT
//! says its type twice as well, and both must fit. Each VARIANT, pointer and element is charged to the budget
//! before it is read. A fast way changes nothing until all that it takes is known to be readable; then it charges the budget as the
//! slow way would, so that both accept the same messages.

use super::super::layout::{Embedding, has_pointers};
use super::super::variant::{self, ARRAY, ArrayFeatures, BYREF, HAVE_IID, HAVE_VARTYPE, HEADER};
use super::super::window::{Window, skip_items};
use super::{Frame, Kind, NdrSource};
use crate::limits::{SAFEARRAY_DIMENSIONS, VARIANT_DEPTH};
use crate::violations::{Violation, unsupported};
use everywire_model::Scalar;
use everywire_model::cells::Layout;
use everywire_model::shape::{Sequence, Shape, Struct};
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a> NdrSource<'a> {
    /// The frame counts one value until `content` has told its shape.
    pub(super) fn open_variant(&mut self) -> Visit<usize> {
        let (place, in_place) = self.begin_pointed()?;
        if self.variants >= VARIANT_DEPTH {
            return self.wrong(Violation::VariantDepth);
        }
        if place == Embedding::Arm && self.window.u32()? == 0 {
            return self.wrong(Violation::BadVariant);
        }
        // Any word but 0 means that a value follows; `User` is only what Windows writes.
        let marker = if in_place { 1 } else { self.window.u32()? };
        let order = self.window.little;
        let mut back = None;
        let mut vt = variant::EMPTY;
        if marker != 0 {
            self.budget.charge_elements(1)?;
            if place == Embedding::Within {
                back = Some(self.go()?);
            }
            self.window.little = true;
            vt = self.variant_header()?;
        }
        self.variants += 1;
        let frame = self.push(Kind::Variant, 1)?;
        (frame.side.back, frame.side.vt) = (back, vt);
        frame.automation = true;
        frame.order = Some(order);
        Ok(1)
    }

    /// The type. Stops before the value: its own alignment follows from its shape.
    fn variant_header(&mut self) -> Visit<u16> {
        self.window.align(8);
        // Always little-endian: clSize, a reserved word, vt, three more, and the discriminant. The size, in units of 8 bytes,
        // is not believed: some peers always say the same, and each value says itself where it ends.
        let header = self.window.take(HEADER)?;
        let word = |at: usize| {
            header.get(at..at + 4).and_then(|raw| raw.try_into().ok()).map_or(0, u32::from_le_bytes)
        };
        let (vt, discriminant) = (word(8) as u16, word(16));
        if discriminant != variant::discriminant(vt) {
            return self.wrong(Violation::BadVariant);
        }
        Ok(vt)
    }

    /// A VARIANT that holds one number, behind its pointer in a struct or an array: read in one go, as `open_variant`, its content and
    /// `close` would. Whatever is not as expected, they find.
    pub(super) fn plain_variant(&mut self) -> Visit<Option<Scalar>> {
        let (Some(frame), false) = (self.frames.last(), self.window.wine) else { return Ok(None) };
        if !frame.takes_plain_variant() || frame.left == 0 || self.variants >= VARIANT_DEPTH {
            return Ok(None);
        }
        let Some(at) = self.deferred().copied().flatten() else { return Ok(None) };
        let (mut pointer, mut behind) = (self.window, self.window);
        // Nothing of this source is changed until the whole VARIANT is known to be plain.
        (behind.at, behind.little) = (at, true);
        if !pointer.u32().is_ok_and(|id| id != 0) {
            return Ok(None);
        }
        let Some(scalar) = plain(&mut behind) else { return Ok(None) };
        self.begin()?;
        self.budget.enter()?;
        self.budget.leave();
        self.budget.charge_elements(1)?;
        self.window.at = pointer.at;
        if let Some(deferred) = self.deferred() {
            *deferred = Some(behind.at);
        }
        Ok(Some(scalar))
    }

    /// Whether the VARIANT around holds a DECIMAL, and this struct is one.
    pub(super) fn takes_decimal(&self, shape: &Struct) -> bool {
        let holds_one = |frame: &Frame| frame.kind == Kind::Variant && frame.side.vt == variant::DECIMAL;
        self.frames.last().is_some_and(holds_one) && variant::is_decimal(shape)
    }

    /// How many dimensions the SAFEARRAY has that the VARIANT just opened holds; what is wrong with it, reading it finds.
    /// The shape of an array must be known before it is visited, so its count of dimensions is read ahead,
    /// behind the pointers.
    pub(super) fn dimensions(&self, vt: u16) -> u32 {
        let mut ahead = self.window;
        let mut count = || {
            for _ in 0..if vt & BYREF == 0 { 2 } else { 3 } {
                ahead.u32().ok().filter(|id| *id != 0)?;
            }
            ahead.u32().ok().filter(|count| (1..=SAFEARRAY_DIMENSIONS).contains(count))
        };
        if vt & ARRAY == 0 { 1 } else { count().unwrap_or(1) }
    }

    /// Whether the VARIANT just opened is a BSTR that is no text, or holds one in a SAFEARRAY: an odd number of octets, or a half of a
    /// surrogate pair. As with dimensions, the shape must be known before; what is wrong otherwise, reading it finds.
    pub(super) fn has_other_bstr(&self, vt: u16) -> bool {
        if vt & !(ARRAY | BYREF) != variant::BSTR || self.window.wine {
            return false;
        }
        let mut ahead = self.window;
        let mut count = 1;
        for _ in 0..usize::from(vt & ARRAY != 0) + usize::from(vt & BYREF != 0) {
            if !ahead.u32().is_ok_and(|id| id != 0) {
                return false;
            }
        }
        if vt & ARRAY != 0 {
            let elements = bounds_of(&mut ahead).and_then(|_| ahead.u32().ok());
            let Some(found) = elements else { return false };
            count = found as usize;
        }
        // The pointers stand together, and what is behind them follows.
        let mut behind = ahead;
        if behind.take(count.saturating_mul(4)).is_err() {
            return false;
        }
        for _ in 0..count {
            match ahead.u32() {
                Ok(0) => {}
                Ok(_) => match is_text(&mut behind) {
                    Some(true) => {}
                    Some(false) => return true,
                    None => return false,
                },
                Err(_) => return false,
            }
        }
        false
    }

    /// The lower bounds of the SAFEARRAY that the VARIANT just opened holds, the leftmost dimension first; empty if all are 0.
    pub(super) fn lower_bounds(&self, vt: u16) -> Vec<i32> {
        let mut ahead = self.window;
        let pointers = if vt & BYREF == 0 { 1 } else { 2 };
        if vt & ARRAY == 0 || !(0..pointers).all(|_| ahead.u32().is_ok_and(|id| id != 0)) {
            return Vec::new();
        }
        let mut bounds = bounds_of(&mut ahead).unwrap_or_default();
        // The leftmost dimension stands last.
        bounds.reverse();
        if bounds.iter().all(|bound| *bound == 0) { Vec::new() } else { bounds }
    }

    /// FLAGGED_WORD_BLOB (MS-OAUT 2.2.23.1).
    pub(super) fn blob(&mut self) -> Visit<Cow<'a, str>> {
        let outer = std::mem::replace(&mut self.window.little, true);
        let conformance = self.window.u32()?;
        let bytes = self.window.u32()?;
        let units = self.window.u32()?;
        let null = bytes == variant::NULL_BSTR && units == 0;
        if conformance != units || !(null || bytes.div_ceil(2) == units) {
            return self.wrong(Violation::BadBstr);
        }
        let text = self.wide(units as usize)?;
        if !null && bytes % 2 != 0 {
            return Err(unsupported("BSTRs that hold an odd number of bytes"));
        }
        self.window.little = outer;
        Ok(text)
    }

    /// A SAFEARRAY behind its two pointers; a null one has no elements.
    pub(super) fn open_safearray(&mut self, shape: &Shape) -> Visit<usize> {
        let Shape::Sequence(sequence) = shape else { return self.wrong(Violation::Misuse) };
        let order = self.window.little;
        let place = self.begin()?;
        let mut back = None;
        let mut present = self.window.u32()? != 0;
        if present && matches!(place, Embedding::Within | Embedding::Tail) {
            self.budget.charge_elements(1)?;
            back = Some(self.go()?);
        }
        if present && self.window.wine && !self.frames.automation() {
            self.window.align(8);
        }
        self.window.little = true;
        present = present && self.window.u32()? != 0;
        let (mut len, mut kind, mut end) = (0, Kind::Items, None);
        if present {
            let Elements { bounds, total, holding } = self.safearray(sequence)?;
            if sequence.bound.is_some_and(|bound| total > bound) {
                return self.wrong(Violation::BoundExceeded);
            }
            self.accept(total, holding.width)?;
            if bounds.is_empty() {
                len = total as usize;
            } else if self.window.wine && holding.deferred.is_some() {
                return Err(unsupported(WINE_GRID));
            } else {
                (len, kind, end) = self.open_grid(bounds, holding)?;
            }
        }
        if kind == Kind::Items && has_pointers(&sequence.element, false) && !self.window.wine {
            let mut scout = self.window;
            skip_items(&mut scout, &sequence.element, u32::try_from(len).unwrap_or(u32::MAX))?;
            end = Some(scout.at);
        }
        let frame = self.push_construct(kind, len, Embedding::Behind, end)?;
        frame.side.back = back;
        frame.automation = true;
        frame.order = Some(order);
        Ok(len)
    }

    /// SAFEARRAY, up to its elements (MS-OAUT 2.2.30.10).
    /// Checked in the order of the wire; elements are not touched.
    fn safearray(&mut self, shape: &Sequence) -> Visit<Elements> {
        let holding = variant::safearray_of(variant::element_type(shape)?)?;
        let depth = variant::dimensions(shape);
        let conformance = self.window.u32()?;
        let dimensions = u32::from(self.window.u16()?);
        let features = self.window.u16()?;
        self.window.u32()?;
        let locks = self.window.u32()?;
        let sf_type = self.window.u32()?;
        let size = self.window.u32()?;
        let data = self.window.u32()?;
        let interfaces = matches!(holding.sf_type, 9 | 13);
        // Any interface will do where interfaces are expected, and the array may say which.
        let fits = |found: u32| found == holding.sf_type || interfaces && matches!(found, 9 | 13 | HAVE_IID);
        if sf_type == HAVE_IID {
            // The identity of the interface.
            self.window.take(16)?;
        }
        // The high word of the lock count is the type of the elements, if it is said to be; 0 says nothing.
        let said = if features & HAVE_VARTYPE == 0 { 0 } else { (locks >> 16) as u16 };
        let said_fits = said == 0 || variant::safearray_of(said).is_ok_and(|said| fits(said.sf_type));
        if dimensions != conformance
            || dimensions == 0
            || dimensions > SAFEARRAY_DIMENSIONS
            || !fits(sf_type)
            || !said_fits
        {
            return self.wrong(Violation::BadSafearray);
        }
        let mut bounds = Vec::new();
        let mut product = 1_u32;
        for _ in 0..dimensions {
            let elements = self.window.u32()?;
            self.window.i32()?;
            let Some(next) = product.checked_mul(elements) else {
                return self.wrong(Violation::BadSafearray);
            };
            product = next;
            if dimensions > 1 {
                bounds.push(elements as usize);
            }
        }
        if product != size || (data == 0 && size > 0) {
            return self.wrong(Violation::BadSafearray);
        }
        if dimensions as usize != depth {
            return Err(unsupported(format_args!(
                "{dimensions} dimensions of a SAFEARRAY where {depth} are expected"
            )));
        }
        if data != 0 && self.window.u32()? != size {
            return self.wrong(Violation::BadSafearray);
        }
        // The leftmost dimension stands last.
        bounds.reverse();
        Ok(Elements { bounds, total: size, holding })
    }

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
        self.begin()?;
        self.window.at = window.at;
        Ok(Some(row))
    }
}

/// Nobody has seen how Wine holds it.
pub(in crate::ndr) const WINE_GRID: &str =
    "SAFEARRAYs of several dimensions with strings, VARIANTs or interfaces in Wine's form";

/// What a SAFEARRAY says of its elements.
struct Elements {
    /// How many each dimension has, the leftmost first; empty if there is but one.
    bounds: Vec<usize>,
    total: u32,
    holding: ArrayFeatures,
}

/// Passes over a SAFEARRAY (MS-OAUT 2.2.30.10) up to its elements, behind its first pointer; the lower bounds as they stand there.
fn bounds_of(window: &mut Window<'_>) -> Option<Vec<i32>> {
    let present = |window: &mut Window<'_>| window.u32().ok().filter(|id| *id != 0);
    present(window)?;
    let dimensions = window.u32().ok().filter(|count| (1..=SAFEARRAY_DIMENSIONS).contains(count))?;
    // Dimensions, features, the size of an element, locks.
    window.take(12).ok()?;
    if window.u32().ok()? == HAVE_IID {
        window.take(16).ok()?;
    }
    // How many elements there are.
    window.take(4).ok()?;
    present(window)?;
    let bound = |_| window.u32().and_then(|_| window.i32()).ok();
    (0..dimensions).map(bound).collect()
}

/// Passes over a FLAGGED_WORD_BLOB (MS-OAUT 2.2.23.1); whether it is text.
fn is_text(window: &mut Window<'_>) -> Option<bool> {
    let _maximum = window.u32().ok()?;
    let bytes = window.u32().ok()?;
    let units = window.u32().ok()?;
    let raw = window.take(usize::try_from(units).ok()?.checked_mul(2)?).ok()?;
    let is_even = bytes % 2 == 0 || (bytes == variant::NULL_BSTR && units == 0);
    // Few texts have any.
    let surrogate = |pair: &[u8]| pair.last().is_some_and(|high| matches!(high, 0xd8..=0xdf));
    let odd = raw.chunks_exact(2).position(surrogate);
    let rest = odd.and_then(|at| raw.get(2 * at..)).unwrap_or_default();
    let units = rest.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(u16::from_le_bytes);
    Some(is_even && char::decode_utf16(units).all(|unit| unit.is_ok()))
}

/// A wireVARIANT that holds one number (MS-OAUT 2.2.29.1), from the padding before it to its last byte; nothing if it is something else,
/// or wrong.
#[inline]
fn plain(window: &mut Window<'_>) -> Option<Scalar> {
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
