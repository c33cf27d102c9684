//! The bytes of a stub, read with alignment; and passing over values in place, which is how a source finds where the referents of a
//! construct begin.
//!
//! Invariants: `at` may pass the end by padding alone, and the next read then fails; nothing is kept, and nothing allocated.
//! `base` counts in alignment, so that a body cut out of its stub is read as it was written. The work of passing over values is
//! bounded by the octets there are: a run of fixed size is passed over at once, any other count must fit into the rest of the stub at
//! the least size of its element (or one octet) before its elements are looked at one by one.

use super::layout::{alignment, arms_alignment, enum_width, fixed_run, held, least, width};
use super::wine::{DISCRIMINATOR, is_packed};
use crate::violations::Violation;
use everywire_model::shape::{Order, Shape};
use everywire_model::visit::Visit;

/// A stub and a place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset of `bytes` in the stub.
    pub(super) base: usize,
    /// The next byte.
    pub(super) at: usize,
    pub(super) little: bool,
    /// Whether the values are Wine's.
    pub(super) wine: bool,
    /// Whether the next value follows without padding.
    /// Set around one value by the source, for Wine's packed structs.
    pub(super) loose: bool,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        pub(super) fn $name(&mut self) -> Visit<$type> {
            self.align(size_of::<$type>());
            let raw = self.take(size_of::<$type>())?;
            let raw = raw.try_into().map_err(|_| Violation::Truncated.at(self.at))?;
            Ok(if self.little { <$type>::from_le_bytes(raw) } else { <$type>::from_be_bytes(raw) })
        }
    )*};
}

impl<'a> Window<'a> {
    number!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);

    /// Skips padding to a multiple of a power of two; nobody looks at its content.
    #[inline]
    pub(super) fn align(&mut self, alignment: usize) {
        let over = (self.base + self.at) & (alignment - 1);
        if over != 0 && !self.loose {
            self.at += alignment - over;
        }
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Visit<&'a [u8]> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => Err(Violation::Truncated.at(self.at)),
        }
    }

    /// An OBJREF as Wine sends it, without padding and a referent: empty if there is none.
    pub(super) fn bare(&mut self) -> Visit<&'a [u8]> {
        let outer = std::mem::replace(&mut self.loose, true);
        let len = self.u32();
        self.loose = outer;
        self.take(len? as usize)
    }

    /// What is left of the stub.
    pub(super) fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }
}

/// Passes over a value in place, without its referents; `hoist` is the count for the array that ends it.
pub(super) fn skip(window: &mut Window<'_>, shape: &Shape, hoist: Option<u32>) -> Visit<()> {
    match held(shape) {
        Shape::Void => Ok(()),
        resolved @ Shape::Struct(fields) => {
            window.align(alignment(resolved, hoist.is_some()));
            let last = fields.fields.len().saturating_sub(1);
            let packed = window.wine && is_packed(fields);
            for (index, field) in fields.fields.iter().enumerate() {
                window.loose = packed && width(field.shape.resolved()).is_some();
                let skipped = skip(window, &field.shape, hoist.filter(|_| index == last));
                window.loose = false;
                skipped?;
            }
            Ok(())
        }
        Shape::Array(array) => skip_items(window, &array.element, array.len),
        Shape::Map(_) => skip_width(window, 4, 2),
        Shape::Sequence(sequence) => match (sequence.order, hoist) {
            (Order::Free, _) => skip_width(window, 4, 2),
            (Order::Conformant, Some(count)) => skip_items(window, &sequence.element, count),
            // Offset and actual count; the maximum count was moved to the front. `NdrSource` checks them when
            // it reads the array.
            (Order::Varying, _) | (_, Some(_)) => {
                window.u32()?;
                let actual = window.u32()?;
                skip_items(window, &sequence.element, actual)
            }
            // In any other place it is a pointer.
            _ => skip_width(window, 4, 1),
        },
        Shape::Union(union) => {
            let discriminator = match union.discriminator.resolved() {
                Shape::Bool | Shape::U8 | Shape::Char => window.u8()?.into(),
                Shape::I8 => window.i8()?.into(),
                Shape::U16 | Shape::WideChar => window.u16()?.into(),
                Shape::I16 => window.i16()?.into(),
                Shape::U32 => window.u32()?.into(),
                Shape::I64 | Shape::U64 => window.i64()?,
                Shape::Enum(shape) if enum_width(shape) == 2 => window.u16()?.into(),
                _ => window.i32()?.into(),
            };
            if window.wine {
                window.align(DISCRIMINATOR);
            }
            window.align(arms_alignment(union));
            match union.select(discriminator).and_then(|arm| union.arms.get(arm)) {
                Some(arm) => skip(window, &arm.field.shape, None),
                None => Ok(()),
            }
        }
        Shape::Reference(_) if window.wine => window.bare().map(|_| ()),
        other => skip_width(window, width(other).unwrap_or(4), 1),
    }
}

/// Passes over so many values in a row.
pub(super) fn skip_items(window: &mut Window<'_>, element: &Shape, count: u32) -> Visit<()> {
    if count == 0 {
        return Ok(());
    }
    let fixed = !window.wine || width(element.resolved()).is_some();
    if let Some(len) = fixed_run(element, count as usize).filter(|_| fixed) {
        window.align(alignment(element, false));
        return window.take(len).map(|_| ());
    }
    if (count as usize).checked_mul(least(element).max(1)).is_none_or(|bytes| bytes > window.rest()) {
        return Err(Violation::CountBeyondMessage.at(window.at));
    }
    (0..count).try_for_each(|_| skip(window, element, None))
}

/// Passes over this many numbers.
fn skip_width(window: &mut Window<'_>, width: usize, count: usize) -> Visit<()> {
    window.align(width);
    window.take(width * count).map(|_| ())
}
