//! Variants: values that carry their own shape through typed code.
//!
//! Most of them hold one number, and come by the hundred: such a `Scalar` stands in the variant itself, in 16
//! bytes, and wires that carry many read and write it in one go. Everything else is in a box, with its shape.
//!
//! Invariants.
//! * A plain number, a boolean or nothing is a scalar, however the variant was made, so code that looks for
//!   numbers looks in one place. A number of a type with a name of its own may stand in either form. Variants
//!   compare by what they hold and not by the form.
//! * A scalar's shape lives for ever and has no parts.
//! * The value fits the shape, as far as those who made it saw to that: a value that does not is kept as it
//!   is, and refused when it is written.
//! * Writing a list of variants and writing them one by one yields the same (`crate::cells`).

use crate::cells::{self, CellKind, Cells, IsRow, Layout, Style, Variants};
use crate::marshal::{Marshal, Unmarshal};
use crate::shape::{Shape, TypedShape};
use crate::value::Value;
use crate::visit::{Sink, Source, Visit};
use std::borrow::Cow;

pub use crate::scalar::Scalar;

/// A value and its shape: what generated code makes of a contract's `any`. 16 bytes, where it is a number.
#[derive(Debug, Clone)]
pub struct Variant(Content);

#[derive(Debug, Clone)]
enum Content {
    Scalar(Scalar),
    Other(Box<(TypedShape, Value)>),
}

impl Scalar {
    /// The value by itself.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    pub fn value(&self) -> Value {
        let bits = self.bits;
        match self.shape.resolved() {
            Shape::Bool => Value::Bool(bits != 0),
            Shape::I8 => Value::Integer((bits as i8).into()),
            Shape::I16 => Value::Integer((bits as i16).into()),
            Shape::I32 => Value::Integer((bits as i32).into()),
            Shape::I64 => Value::Integer((bits as i64).into()),
            Shape::U8 | Shape::U16 | Shape::U32 | Shape::U64 => Value::Integer(bits.into()),
            Shape::F32 => Value::Float(f32::from_bits(bits as u32).into()),
            Shape::F64 => Value::Float(f64::from_bits(bits)),
            // The constructor lets in nothing else.
            _ => Value::Nothing,
        }
    }

    /// Writes the number, without its shape.
    ///
    /// # Errors
    /// Those of the sink.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    pub fn encode<S: Sink + ?Sized>(&self, sink: &mut S) -> Visit<()> {
        let bits = self.bits;
        match self.shape.resolved() {
            Shape::Bool => sink.bool(bits != 0),
            Shape::U8 => sink.u8(bits as u8),
            Shape::I8 => sink.i8(bits as i8),
            Shape::U16 => sink.u16(bits as u16),
            Shape::I16 => sink.i16(bits as i16),
            Shape::U32 => sink.u32(bits as u32),
            Shape::I32 => sink.i32(bits as i32),
            Shape::U64 => sink.u64(bits),
            Shape::I64 => sink.i64(bits as i64),
            Shape::F32 => sink.f32(f32::from_bits(bits as u32)),
            Shape::F64 => sink.f64(f64::from_bits(bits)),
            _ => Ok(()),
        }
    }

    /// A value at this shape, if it is one number that fits.
    #[allow(clippy::cast_possible_truncation)]
    pub fn of(shape: &'static Shape, value: &Value) -> Option<Self> {
        let bits = match (shape.resolved(), value) {
            (Shape::Void, Value::Nothing) => 0,
            (Shape::Bool, Value::Bool(value)) => u64::from(*value),
            (Shape::I8, Value::Integer(value)) => u64::from(i8::try_from(*value).ok()?.cast_unsigned()),
            (Shape::I16, Value::Integer(value)) => u64::from(i16::try_from(*value).ok()?.cast_unsigned()),
            (Shape::I32, Value::Integer(value)) => u64::from(i32::try_from(*value).ok()?.cast_unsigned()),
            (Shape::I64, Value::Integer(value)) => i64::try_from(*value).ok()?.cast_unsigned(),
            (Shape::U8 | Shape::U16 | Shape::U32 | Shape::U64, Value::Integer(value)) => {
                u64::try_from(*value).ok()?
            }
            // Not where it would become another number.
            #[allow(clippy::float_cmp)]
            (Shape::F32, Value::Float(value)) if f64::from(*value as f32) == *value => {
                (*value as f32).to_bits().into()
            }
            (Shape::F64, Value::Float(value)) => value.to_bits(),
            _ => return None,
        };
        Self::new(shape, bits)
    }
}

/// The same shape, which lives for ever: of what has no parts and no other name.
fn forever(shape: &Shape) -> Option<&'static Shape> {
    macro_rules! same {
        ($($plain:ident)*) => {
            match shape {
                $(Shape::$plain => {
                    const PLAIN: &Shape = &Shape::$plain;
                    Some(PLAIN)
                })*
                _ => None,
            }
        };
    }
    same!(Void Bool U8 I8 U16 I16 U32 I32 U64 I64 F32 F64)
}

impl Variant {
    /// A value at this shape.
    pub fn new(shape: Shape, value: Value) -> Self {
        Self(match forever(&shape).and_then(|shape| Scalar::of(shape, &value)) {
            Some(scalar) => Content::Scalar(scalar),
            None => Content::Other(Box::new((TypedShape(shape), value))),
        })
    }

    /// What it looks like.
    #[inline]
    pub fn shape(&self) -> &Shape {
        match &self.0 {
            Content::Scalar(scalar) => scalar.shape,
            Content::Other(content) => &content.0.0,
        }
    }

    /// The value; it fits the shape.
    pub fn value(&self) -> Cow<'_, Value> {
        match &self.0 {
            Content::Scalar(scalar) => Cow::Owned(scalar.value()),
            Content::Other(content) => Cow::Borrowed(&content.1),
        }
    }

    /// The value, where it is one number, a boolean or nothing that stands in the variant itself.
    #[inline]
    pub fn scalar(&self) -> Option<Scalar> {
        match self.0 {
            Content::Scalar(scalar) => Some(scalar),
            Content::Other(_) => None,
        }
    }

    /// The shape and the value.
    pub fn into_parts(self) -> (Shape, Value) {
        match self.0 {
            Content::Scalar(scalar) => (scalar.shape.clone(), scalar.value()),
            Content::Other(content) => (content.0.0, content.1),
        }
    }
}

/// Two are equal if their shapes read the same to people, and their values are equal.
impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.shape().noun() == other.shape().noun() && self.value() == other.value()
    }
}

/// One that holds nothing.
impl Default for Variant {
    fn default() -> Self {
        Self::new(Shape::Void, Value::Nothing)
    }
}

impl From<Variant> for Value {
    fn from(variant: Variant) -> Self {
        let content = match variant.0 {
            Content::Scalar(scalar) => Box::new((TypedShape(scalar.shape.clone()), scalar.value())),
            Content::Other(content) => content,
        };
        Self::Variant(content)
    }
}

impl From<Scalar> for Variant {
    #[inline]
    fn from(scalar: Scalar) -> Self {
        Self(Content::Scalar(scalar))
    }
}

macro_rules! from {
    ($($type:ty, $plain:ident, $value:ident => $bits:expr;)*) => {$(
        impl From<$type> for Variant {
            #[inline]
            fn from($value: $type) -> Self {
                const PLAIN: &Shape = &Shape::$plain;
                Self(Content::Scalar(Scalar { shape: PLAIN, bits: $bits }))
            }
        }
    )*};
}

from! {
    bool, Bool, value => value.into();
    u8, U8, value => value.into();
    i8, I8, value => value.cast_unsigned().into();
    u16, U16, value => value.into();
    i16, I16, value => value.cast_unsigned().into();
    u32, U32, value => value.into();
    i32, I32, value => value.cast_unsigned().into();
    u64, U64, value => value;
    i64, I64, value => value.cast_unsigned();
    f32, F32, value => value.to_bits().into();
    f64, F64, value => value.to_bits();
}

impl Marshal for Variant {
    #[inline]
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        match &self.0 {
            Content::Scalar(scalar) => sink.whole_variant(shape, *scalar),
            Content::Other(content) => {
                sink.open(shape, 1)?;
                sink.content(&content.0.0)?;
                content.1.encode(&content.0.0, sink)?;
                sink.close(shape)
            }
        }
    }

    fn marshal_all<S: Sink + ?Sized>(items: &[Self], element: &Shape, sink: &mut S) -> Visit<()> {
        cells::put_all(items, element, sink)
    }
}

impl<'a> Unmarshal<'a> for Variant {
    #[inline]
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        if let Some(scalar) = source.whole_variant(shape)? {
            return Ok(scalar.into());
        }
        source.open(shape)?;
        let content = source.content()?;
        let value = Value::decode(&content, source)?;
        source.close(shape)?;
        Ok(Self::new(content, value))
    }

    fn unmarshal_all<S: Source<'a> + ?Sized>(
        len: usize,
        element: &Shape,
        source: &mut S,
    ) -> Visit<Vec<Self>> {
        cells::take_all(len, element, source)
    }
}

impl Cells for Variant {
    #[inline]
    fn put_cells(&self, raw: &mut [u8], style: Style, variants: &mut Variants) -> bool {
        let Some(scalar) = self.scalar() else { return false };
        variants.push(scalar);
        style.pointer.put_cells(raw, style, variants)
    }

    #[inline]
    fn take_cells(_: &[u8], _: bool, variants: &mut std::slice::Iter<'_, Scalar>) -> Self {
        variants.next().copied().unwrap_or_default().into()
    }
}

/// An array of variants has nothing else in its rows.
impl IsRow for Variant {
    const LAYOUT: &'static Layout = &Layout { size: 4, alignment: 4, cells: &[(0, CellKind::Variant)] };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_in_the_variant() {
        assert_eq!(size_of::<Variant>(), 16);
        for (variant, shape, value) in [
            (Variant::from(-5_i8), Shape::I8, Value::Integer(-5)),
            (Variant::from(-5_i16), Shape::I16, Value::Integer(-5)),
            (Variant::from(i32::MIN), Shape::I32, Value::Integer(i32::MIN.into())),
            (Variant::from(i64::MIN), Shape::I64, Value::Integer(i64::MIN.into())),
            (Variant::from(u64::MAX), Shape::U64, Value::Integer(u64::MAX.into())),
            (Variant::from(0.5_f32), Shape::F32, Value::Float(0.5)),
            (Variant::from(0.1), Shape::F64, Value::Float(0.1)),
            (Variant::from(true), Shape::Bool, Value::Bool(true)),
        ] {
            let made = Variant::new(shape.clone(), value.clone());
            assert_eq!(variant, made);
            assert!(made.scalar().is_some(), "{shape:?}");
            assert_eq!(made.into_parts().1, value);
            assert_eq!(variant.shape().noun(), shape.noun());
        }
    }

    #[test]
    fn what_does_not_fit_stays_as_it_is() {
        for (shape, value) in [
            (Shape::I16, Value::Integer(40_000)),
            (Shape::U8, Value::Integer(-1)),
            (Shape::U8, Value::Integer(256)),
            (Shape::F32, Value::Float(0.1)),
            (Shape::F32, Value::Float(f64::NAN)),
            (Shape::I32, Value::Text("7".into())),
            (Shape::Text(crate::shape::Text::NARROW), Value::Text("7".into())),
        ] {
            let variant = Variant::new(shape, value);
            assert!(variant.scalar().is_none(), "{variant:?}");
        }
        const NUMBER: &Shape = &Shape::U16;
        const LIST: &Shape = &Shape::Handle;
        assert!(Scalar::new(NUMBER, 0x1_0000).is_none());
        assert!(Scalar::new(LIST, 0).is_none());
    }
}
