//! Rows of structs: arrays whose elements NDR lays out as the caller's rows are in memory, so that a row is
//! copied as a whole.
//!
//! A `Layout` (from generated code) says where each member of a row stands. `LayoutCheck` walks the struct's shape
//! with NDR's alignment and compares; if all cells stand where the layout has them, and each has its plain
//! form, the array is copied row by row. VARIANTs inside of a row are not copied: the row has their place
//! (four octets, the pointer), and their contents follow.
//!
//! Invariant: a cached answer is for the same struct and the same layout by address; the cache owns a handle
//! to the struct, so that the address cannot be used again while it is compared.

use super::layout::{Form, alignment, form};
use super::variant::{self, HEADER};
use everywire_model::Scalar;
use everywire_model::cells::{CellKind, Layout};
use everywire_model::shape::{Hold, Shape, Struct};

/// Whether a struct looks as the layout says, and holds nothing in another form.
fn agrees(fields: &Struct, layout: &Layout) -> bool {
    let (mut size, mut cells) = (0, layout.cells.iter());
    lay_out(fields, &mut size, &mut cells) == Some(layout.alignment)
        && size == layout.size
        && cells.next().is_none()
}

/// Holds a struct, which begins behind the first `size` bytes, to the next cells; its alignment, if it looks so.
fn lay_out(
    fields: &Struct,
    size: &mut usize,
    cells: &mut std::slice::Iter<'_, (usize, CellKind)>,
) -> Option<usize> {
    // A struct begins at a multiple of its widest member, wherever it stands (C706 14.3.2).
    let own = fields.fields.iter().map(|field| alignment(&field.shape, false)).max()?;
    *size = size.next_multiple_of(own);
    for field in fields.fields.iter() {
        let (Form::Plain, shape) = form(&field.shape) else { return None };
        let kind = match shape {
            Shape::Struct(inner) => {
                lay_out(inner, size, cells)?;
                continue;
            }
            Shape::U8 | Shape::I8 => CellKind::One,
            Shape::U16 | Shape::I16 => CellKind::Two,
            Shape::U32 | Shape::I32 | Shape::F32 => CellKind::Four,
            Shape::U64 | Shape::I64 | Shape::F64 => CellKind::Eight,
            Shape::Variant => CellKind::Variant,
            _ => return None,
        };
        let at = size.next_multiple_of(kind.width());
        if cells.next() != Some(&(at, kind)) {
            return None;
        }
        *size = at + kind.width();
    }
    Some(own)
}

/// Whether the structs that were written or read last look as their layout says: it is asked for each array.
#[derive(Debug, Default)]
pub(super) struct LayoutCheck(Option<(Hold<Struct>, &'static Layout, bool)>);

/// The one cell of an array of variants.
const VARIANT_ALONE: &[(usize, CellKind)] = &[(0, CellKind::Variant)];

impl LayoutCheck {
    /// Whether the elements `shape` look as `layout` says. An array of VARIANTs alone has no struct: its
    /// layout is the one cell of a VARIANT.
    pub(super) fn of(&mut self, shape: &Shape, layout: &'static Layout) -> bool {
        let fields = match shape.resolved() {
            Shape::Struct(fields) => fields,
            other => return matches!(other, Shape::Variant) && layout.cells == VARIANT_ALONE,
        };
        // The shape is kept with it, so that no other can come to be at its address.
        if let Some((known, of, agree)) = &self.0
            && std::ptr::eq::<Struct>(&**known, &**fields)
            && std::ptr::eq(*of, layout)
        {
            return *agree;
        }
        let agree = agrees(fields, layout);
        self.0 = Some((fields.clone(), layout, agree));
        agree
    }
}

/// The type of the variants that came last: it is looked up once for many of one type.
#[derive(Debug, Default)]
pub(super) struct LastType(Option<(&'static Shape, u16, usize)>);

impl LastType {
    /// The VARTYPE and the bytes of what has this shape, if it is one number.
    #[inline]
    pub(super) fn of(&mut self, shape: &'static Shape) -> Option<(u16, usize)> {
        match self.0 {
            Some((known, vt, width)) if std::ptr::eq(known, shape) => Some((vt, width)),
            _ => self.look_up(shape),
        }
    }

    fn look_up(&mut self, shape: &'static Shape) -> Option<(u16, usize)> {
        let vt = variant::type_of(shape).ok()?;
        let (_, width) = variant::plain(vt)?;
        self.0 = Some((shape, vt, width));
        Some((vt, width))
    }
}

/// The bytes of a wireVARIANT that holds one number, at the most.
pub(super) const VARIANT_BYTES: usize = HEADER + 12;

/// A wireVARIANT that holds one number (MS-OAUT 2.2.29.1): its bytes, and how many they are.
#[inline]
pub(super) fn variant_bytes(vt: u16, width: usize, value: Scalar) -> ([u8; VARIANT_BYTES], usize) {
    // VARIANT_TRUE is -1, all 16 bits (MS-OAUT 2.2.27).
    let bits = if vt == variant::BOOL && value.bits() != 0 { u64::from(u16::MAX) } else { value.bits() };
    let [low, high] = vt.to_le_bytes();
    let mut whole = [0; VARIANT_BYTES];
    [whole[8], whole[9]] = [low, high];
    // The discriminant of the union repeats the VARTYPE; the header's octets 4 to 8 and 10 to 16 are reserved
    // and zero.
    [whole[16], whole[17]] = [low, high];
    // The value stands behind the header at a multiple of its width; clSize counts all in units of 8 bytes.
    let at = if width == 8 { HEADER + 4 } else { HEADER };
    let bits = bits.to_le_bytes();
    if let Some(place) = whole.get_mut(at..at + 8) {
        place.copy_from_slice(&bits);
    }
    whole[0] = (at + width).div_ceil(8) as u8;
    (whole, at + width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::shape::Field;
    use std::borrow::Cow;

    fn structure(fields: Vec<Shape>) -> Shape {
        let field = |shape| Field { name: Cow::Borrowed("f"), shape };
        Shape::Struct(Hold::new(Struct {
            name: Cow::Borrowed("S"),
            id: Cow::Borrowed(""),
            fields: Cow::Owned(fields.into_iter().map(field).collect()),
        }))
    }

    #[test]
    fn cells_stand_at_multiples_of_their_width_and_inner_structs_at_theirs() {
        static LAYOUT: Layout = Layout {
            size: 32,
            alignment: 8,
            cells: &[
                (0, CellKind::Two),
                (8, CellKind::One),
                (16, CellKind::Eight),
                (24, CellKind::One),
                (28, CellKind::Variant),
            ],
        };
        let inner = structure(vec![Shape::U8, Shape::F64]);
        let outer = structure(vec![Shape::I16, inner, Shape::I8, Shape::Variant]);
        assert!(LayoutCheck::default().of(&outer, &LAYOUT));
        // The same cells without a struct around two of them stand elsewhere.
        let flat = structure(vec![Shape::I16, Shape::U8, Shape::F64, Shape::I8, Shape::Variant]);
        assert!(!LayoutCheck::default().of(&flat, &LAYOUT));
    }

    #[test]
    fn a_struct_that_looks_otherwise_does_not_agree() {
        static LAYOUT: Layout =
            Layout { size: 8, alignment: 4, cells: &[(0, CellKind::Two), (4, CellKind::Four)] };
        let mut agreed = LayoutCheck::default();
        let fits = structure(vec![Shape::U16, Shape::U32]);
        for other in [
            vec![Shape::U16],
            vec![Shape::U16, Shape::U16],
            vec![Shape::U16, Shape::U32, Shape::U8],
            vec![Shape::U16, Shape::Bool],
        ] {
            let other = structure(other);
            for _ in 0..2 {
                assert!(agreed.of(&fits, &LAYOUT));
                assert!(!agreed.of(&other, &LAYOUT));
            }
        }
    }
}
