//! Structs that are nothing but numbers and variants: arrays hold them by the hundred, as the values of a plant.
//!
//! Such a struct is a row of cells, each at a multiple of its width, as a compiler of C lays it out. A wire that has the same layout
//! writes and reads a whole row in one go ([`Sink::row`], [`Source::row`]); on every other wire the struct is one like any other. The
//! bytes are the same either way.
//!
//! A struct says its [`Layout`] with [`row_of_cells!`](crate::row_of_cells); before the first row the wire compares it with the shape
//! ([`Sink::rows`], [`Source::rows`]). In place of a variant stands what the wire has for the pointer to one; what they hold is handed
//! over beside the row.

mod layout;

pub use layout::{CellKind, Layout, MOST, MOST_BYTES, Style};

use crate::marshal::{Marshal, Unmarshal};
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::visit::{Sink, Source, Visit};
use std::slice::Iter;

/// The variants of one row, as far as they are said.
#[derive(Debug)]
pub struct Variants {
    held: [Scalar; MOST],
    len: usize,
}

impl Default for Variants {
    fn default() -> Self {
        Self { held: [Scalar::default(); MOST], len: 0 }
    }
}

impl Variants {
    #[inline]
    pub(crate) fn push(&mut self, scalar: Scalar) {
        if let Some(place) = self.held.get_mut(self.len) {
            *place = scalar;
            self.len += 1;
        }
    }

    #[inline]
    fn all(&self) -> &[Scalar] {
        self.held.get(..self.len).unwrap_or_default()
    }
}

/// What may stand in a row: a number, a variant, or a struct of such.
pub trait Cells: Sized {
    /// Puts the value at the beginning of these bytes. Whether it could: a variant may hold more than a number.
    fn put_cells(&self, raw: &mut [u8], style: Style, variants: &mut Variants) -> bool;

    /// The value at the beginning of these bytes; its variants are the next of those beside it.
    fn take_cells(raw: &[u8], little: bool, variants: &mut Iter<'_, Scalar>) -> Self;
}

/// A struct that is a row, or a variant by itself.
pub trait IsRow: Cells {
    /// How it is laid out.
    const LAYOUT: &'static Layout;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Cells for $type {
            #[inline]
            fn put_cells(&self, raw: &mut [u8], style: Style, _: &mut Variants) -> bool {
                if let Some(place) = raw.first_chunk_mut() {
                    *place = if style.little { self.to_le_bytes() } else { self.to_be_bytes() };
                }
                true
            }

            #[inline]
            fn take_cells(raw: &[u8], little: bool, _: &mut Iter<'_, Scalar>) -> Self {
                let raw = raw.first_chunk().copied().unwrap_or_default();
                if little { Self::from_le_bytes(raw) } else { Self::from_be_bytes(raw) }
            }
        }
    )*};
}

number!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// The value that begins there.
#[inline]
pub fn take<T: Cells>(raw: &[u8], at: usize, little: bool, variants: &mut Iter<'_, Scalar>) -> T {
    T::take_cells(raw.get(at..).unwrap_or_default(), little, variants)
}

/// Says of a struct how it is laid out as a row: `Name: size, alignment; each cell's place and kind; each field's place`. For generated
/// code.
#[macro_export]
macro_rules! row_of_cells {
    ($name:ident: $size:literal, $alignment:literal; $($at:literal $kind:ident)+; $($field:ident $place:literal)+) => {
        impl $crate::cells::IsRow for $name {
            const LAYOUT: &'static $crate::cells::Layout = &$crate::cells::Layout {
                size: $size,
                alignment: $alignment,
                cells: &[$(($at, $crate::cells::CellKind::$kind)),+],
            };
        }

        impl $crate::cells::Cells for $name {
            #[inline]
            fn put_cells(
                &self,
                raw: &mut [u8],
                style: $crate::cells::Style,
                variants: &mut $crate::cells::Variants,
            ) -> bool {
                let Some(raw) = raw.first_chunk_mut::<$size>() else { return false };
                true $(&& $crate::cells::Cells::put_cells(&self.$field, &mut raw[$place..], style, variants))+
            }

            #[inline]
            fn take_cells(
                raw: &[u8],
                little: bool,
                variants: &mut ::std::slice::Iter<'_, $crate::Scalar>,
            ) -> Self {
                let raw = raw.first_chunk::<$size>().copied().unwrap_or([0; $size]);
                Self { $($field: $crate::cells::take(&raw, $place, little, variants)),+ }
            }
        }
    };
}

/// Writes the elements of an open sequence or array.
///
/// # Errors
/// Those of the sink.
pub fn put_all<T, S>(items: &[T], element: &Shape, sink: &mut S) -> Visit<()>
where
    T: IsRow + Marshal,
    S: Sink + ?Sized,
{
    let layout = T::LAYOUT;
    let Some(style) = sink.rows(element, layout, items.len()) else {
        return items.iter().try_for_each(|item| item.marshal(element, sink));
    };
    let (mut raw, mut variants) = ([0; MOST_BYTES], Variants::default());
    for item in items {
        variants.len = 0;
        // Nothing is ever put between the cells: what stands there stays 0.
        let is_row = item.put_cells(&mut raw, style, &mut variants)
            && sink.row(layout, raw.get(..layout.size).unwrap_or_default(), variants.all())?;
        if !is_row {
            item.marshal(element, sink)?;
        }
    }
    Ok(())
}

/// Reads `len` elements of an open sequence or array.
///
/// # Errors
/// Those of the source.
pub fn take_all<'a, T, S>(len: usize, element: &Shape, source: &mut S) -> Visit<Vec<T>>
where
    T: IsRow + Unmarshal<'a>,
    S: Source<'a> + ?Sized,
{
    let layout = T::LAYOUT;
    // As for elements of any other kind: no more than a page before they have arrived.
    let mut items = Vec::with_capacity(len.min(4096 / size_of::<T>().max(1)));
    let Some(little) = source.rows(element, layout) else {
        for _ in 0..len {
            items.push(T::unmarshal(element, source)?);
        }
        return Ok(items);
    };
    let mut variants = [Scalar::default(); MOST];
    let variants = variants.get_mut(..layout.variant_count()).unwrap_or_default();
    for _ in 0..len {
        items.push(match source.row(layout, variants)? {
            Some(raw) => T::take_cells(raw, little, &mut variants.iter()),
            None => T::unmarshal(element, source)?,
        });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Variant;

    #[derive(Debug, PartialEq)]
    struct Inner {
        a: u8,
        b: f64,
    }

    #[derive(Debug, PartialEq)]
    struct Outer {
        a: i16,
        inner: Inner,
        value: Variant,
        last: i8,
    }

    crate::row_of_cells!(Inner: 16, 8; 0 One 8 Eight; a 0 b 8);
    crate::row_of_cells!(Outer: 29, 8; 0 Two 8 One 16 Eight 24 Variant 28 One; a 0 inner 8 value 24 last 28);

    #[test]
    fn a_row_comes_back_as_it_was_in_either_order() {
        let row = Outer { a: -2, inner: Inner { a: 7, b: -0.5 }, value: Variant::from(-5_i16), last: -1 };
        for little in [true, false] {
            let (mut raw, mut variants) = ([0; MOST_BYTES], Variants::default());
            assert!(row.put_cells(&mut raw, Style { little, pointer: 0x0102_0304 }, &mut variants));
            assert_eq!(raw[..2], if little { [0xfe, 0xff] } else { [0xff, 0xfe] });
            assert_eq!(raw[24..28], if little { [4, 3, 2, 1] } else { [1, 2, 3, 4] });
            assert_eq!(Outer::take_cells(&raw, little, &mut variants.all().iter()), row);
        }
        assert_eq!(Outer::LAYOUT.variants().collect::<Vec<_>>(), [24]);
    }

    #[test]
    fn a_variant_that_holds_more_than_a_number_is_no_cell() {
        let text = Variant::new(Shape::Text(crate::shape::Text::NARROW), crate::Value::Text("7".into()));
        let style = Style { little: true, pointer: 0 };
        assert!(!text.put_cells(&mut [0; 8], style, &mut Variants::default()));
    }
}
