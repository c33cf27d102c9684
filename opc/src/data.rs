//! Values: what a VARIANT holds, in 16 bytes, and how one type becomes another.
//!
//! Items are read and compared by the hundred thousand, so a value is small and cheap to copy: numbers are
//! inline, texts and arrays are shared (`Arc`) and never changed once made. A test holds the sizes: 16 bytes
//! for `Data`, 32 for `Vqt`.
//!
//! Three forms of the same value meet here:
//! * `Data`, which the engine keeps and compares;
//! * a *packed* pair of a kind and 64 bits, for all types without parts (`Data::packed`, `Data::unpacked`),
//!   which cells hold without a lock;
//! * `Variant`, the neutral value that generated code carries to and from the wire (`Data::to_variant`,
//!   `Data::from_variant`).
//!
//! Invariants.
//! * A value has the type that its variant says; an array says what all of its elements are, and has no
//!   values of others unless that is `VarType::VARIANT`. An array of several dimensions is an array of arrays
//!   with the same innermost type.
//! * `VT_INT` and `VT_UINT` are read as `VT_I4` and `VT_UI4`; all other types survive the way to a variant
//!   and back.
//! * What has no place among items (interfaces, decimals, records) is refused with `Code::BAD_TYPE`, not
//!   guessed.
//!
//! Bounds. Values that come in are read 32 levels deep. How large one may be is the business of whoever takes
//! it (`Data::heap`, the quotas of `crate::engine`). Types and numbers: MS-OAUT 2.2.7; how VARIANTs are
//! written: 2.2.29.

use crate::{Code, FileTime, Quality};
use everywire::com::variant;
use everywire_model::shape::Shape;
use everywire_model::{Scalar, Value, Variant};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A VARTYPE (MS-OAUT 2.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct VarType(pub u16);

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl VarType {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            fn name(self) -> Option<&'static str> {
                match self.0 { $($value => Some(stringify!($name)),)* _ => None }
            }
        }
    };
}

types! {
    /// Nothing; where a type is asked for: the item's own.
    EMPTY = 0;
    /// No value.
    NULL = 1;
    /// 16 bits, signed.
    I2 = 2;
    /// 32 bits, signed.
    I4 = 3;
    /// 32 bits, with a fraction.
    R4 = 4;
    /// 64 bits, with a fraction.
    R8 = 5;
    /// Ten-thousandths, 64 bits.
    CY = 6;
    /// Days since 30 December 1899.
    DATE = 7;
    /// Text.
    BSTR = 8;
    /// An HRESULT.
    ERROR = 10;
    /// A boolean.
    BOOL = 11;
    /// A value of any type, as an element of an array.
    VARIANT = 12;
    /// 8 bits, signed.
    I1 = 16;
    /// 8 bits.
    UI1 = 17;
    /// 16 bits.
    UI2 = 18;
    /// 32 bits.
    UI4 = 19;
    /// 64 bits, signed.
    I8 = 20;
    /// 64 bits.
    UI8 = 21;
    /// 32 bits, signed.
    INT = 22;
    /// 32 bits.
    UINT = 23;
}

/// The bit of an array.
const ARRAY: u16 = 0x2000;

impl VarType {
    /// An array of these.
    #[must_use]
    pub fn array(self) -> Self {
        Self(self.0 | ARRAY)
    }

    /// What an array has as elements; nothing if this is no array.
    #[must_use]
    pub fn element(self) -> Option<Self> {
        (self.0 & ARRAY != 0).then_some(Self(self.0 & !ARRAY))
    }

    /// Whether a client may ask for values of this type.
    #[must_use]
    pub fn is_known(self) -> bool {
        match self.element() {
            Some(element) => element.0 > 1 && element.name().is_some(),
            None => self.name().is_some() && self != Self::VARIANT,
        }
    }
}

/// As it is written: `R4`, `VT_R4`; an array of them is `R4[]`.
impl FromStr for VarType {
    type Err = Code;

    fn from_str(text: &str) -> Result<Self, Code> {
        let (name, is_array) = match text.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let name = name.strip_prefix("VT_").unwrap_or(name);
        let known = (0..=23).map(Self).find(|vt| vt.name().is_some_and(|own| own.eq_ignore_ascii_case(name)));
        let vt = known.map(|vt| if is_array { vt.array() } else { vt });
        vt.filter(|vt| vt.is_known()).ok_or(Code::BAD_VARTYPE)
    }
}

impl fmt::Display for VarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.element().unwrap_or(*self).name();
        match (name, self.element()) {
            (Some(name), None) => write!(f, "VT_{name}"),
            (Some(name), Some(_)) => write!(f, "VT_ARRAY | VT_{name}"),
            (None, _) => write!(f, "VARTYPE {:#06x}", self.0),
        }
    }
}

impl fmt::Debug for VarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a VARIANT holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Data {
    /// `VT_EMPTY`.
    #[default]
    Empty,
    /// `VT_NULL`.
    Null,
    /// `VT_I1`.
    I1(i8),
    /// `VT_UI1`.
    U1(u8),
    /// `VT_I2`.
    I2(i16),
    /// `VT_UI2`.
    U2(u16),
    /// `VT_I4`, and `VT_INT`.
    I4(i32),
    /// `VT_UI4`, and `VT_UINT`.
    U4(u32),
    /// `VT_I8`.
    I8(i64),
    /// `VT_UI8`.
    U8(u64),
    /// `VT_R4`.
    R4(f32),
    /// `VT_R8`.
    R8(f64),
    /// `VT_CY`: ten-thousandths.
    Currency(i64),
    /// `VT_DATE`: days since 30 December 1899.
    Date(f64),
    /// `VT_ERROR`.
    Error(Code),
    /// `VT_BOOL`.
    Bool(bool),
    /// `VT_BSTR`.
    Text(Arc<String>),
    /// `VT_ARRAY` of something.
    Array(Arc<Array>),
}

/// The elements of an array; one of several dimensions has arrays as elements, the leftmost dimension outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// What all elements are; [`VarType::VARIANT`] where they differ.
    pub element: VarType,
    /// They.
    pub items: Vec<Data>,
}

/// A value with quality and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Vqt {
    /// The value.
    pub data: Data,
    /// How good it is.
    pub quality: Quality,
    /// When it was measured, or became what it is.
    pub time: FileTime,
}

impl Vqt {
    /// A value of good quality.
    #[must_use]
    pub fn good(data: impl Into<Data>, time: FileTime) -> Self {
        Self { data: data.into(), quality: Quality::GOOD, time }
    }

    /// No value, and why.
    #[must_use]
    pub fn bad(quality: Quality, time: FileTime) -> Self {
        Self { data: Data::Empty, quality, time }
    }
}

macro_rules! from {
    ($($type:ty => $arm:ident,)*) => {
        $(impl From<$type> for Data {
            fn from(value: $type) -> Self {
                Self::$arm(value)
            }
        })*
    };
}

from! {
    i8 => I1, u8 => U1, i16 => I2, u16 => U2, i32 => I4, u32 => U4, i64 => I8, u64 => U8, f32 => R4, f64 => R8, bool => Bool,
    Code => Error,
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::Text(Arc::new(text.to_owned()))
    }
}

impl From<String> for Data {
    fn from(text: String) -> Self {
        Self::Text(Arc::new(text))
    }
}

/// A number of one of the types that share a neutral shape with a plainer one.
fn named_scalar(vt: VarType, bits: u64) -> Variant {
    // The bits are of the type's width.
    variant::number(vt.0, bits).unwrap_or_default()
}

impl Data {
    /// An array of values of one type.
    #[must_use]
    pub fn array(element: VarType, items: Vec<Self>) -> Self {
        Self::Array(Arc::new(Array { element, items }))
    }

    /// Its type.
    #[must_use]
    pub fn var_type(&self) -> VarType {
        match self {
            Self::Empty => VarType::EMPTY,
            Self::Null => VarType::NULL,
            Self::I1(_) => VarType::I1,
            Self::U1(_) => VarType::UI1,
            Self::I2(_) => VarType::I2,
            Self::U2(_) => VarType::UI2,
            Self::I4(_) => VarType::I4,
            Self::U4(_) => VarType::UI4,
            Self::I8(_) => VarType::I8,
            Self::U8(_) => VarType::UI8,
            Self::R4(_) => VarType::R4,
            Self::R8(_) => VarType::R8,
            Self::Currency(_) => VarType::CY,
            Self::Date(_) => VarType::DATE,
            Self::Error(_) => VarType::ERROR,
            Self::Bool(_) => VarType::BOOL,
            Self::Text(_) => VarType::BSTR,
            Self::Array(array) => array.element.array(),
        }
    }

    /// The number that it is, if it is one: what deadbands are about.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn number(&self) -> Option<f64> {
        Some(match self {
            Self::I1(value) => f64::from(*value),
            Self::U1(value) => f64::from(*value),
            Self::I2(value) => f64::from(*value),
            Self::U2(value) => f64::from(*value),
            Self::I4(value) => f64::from(*value),
            Self::U4(value) => f64::from(*value),
            Self::I8(value) => *value as f64,
            Self::U8(value) => *value as f64,
            Self::R4(value) => f64::from(*value),
            Self::R8(value) | Self::Date(value) => *value,
            Self::Currency(value) => *value as f64 / 10_000.0,
            _ => return None,
        })
    }

    /// As the neutral value that generated code carries.
    #[must_use]
    pub fn to_variant(&self) -> Variant {
        match *self {
            Self::Empty => Variant::default(),
            Self::Null => named_scalar(VarType::NULL, 0),
            Self::I1(value) => value.into(),
            Self::U1(value) => value.into(),
            Self::I2(value) => value.into(),
            Self::U2(value) => value.into(),
            Self::I4(value) => value.into(),
            Self::U4(value) => value.into(),
            Self::I8(value) => value.into(),
            Self::U8(value) => value.into(),
            Self::R4(value) => value.into(),
            Self::R8(value) => value.into(),
            Self::Currency(value) => named_scalar(VarType::CY, value.cast_unsigned()),
            Self::Date(value) => named_scalar(VarType::DATE, value.to_bits()),
            Self::Error(code) => named_scalar(VarType::ERROR, code.0.into()),
            Self::Bool(value) => value.into(),
            Self::Text(_) | Self::Array(_) => Variant::new(self.shape(), self.to_value()),
        }
    }

    /// The neutral shape; how many dimensions an array has, its elements say.
    fn shape(&self) -> Shape {
        let (mut dimensions, mut inner) = (1, self);
        while let Self::Array(array) = inner
            && array.element != VarType::VARIANT
            && let Some(first @ Self::Array(_)) = array.items.first()
        {
            (dimensions, inner) = (dimensions + 1, first);
        }
        variant::shape_of(inner.var_type().0, dimensions).unwrap_or(Shape::Void)
    }

    /// The value without its type, which is in the shape beside it.
    fn to_value(&self) -> Value {
        match self {
            Self::Empty | Self::Null => Value::Nothing,
            Self::I1(value) => Value::Integer((*value).into()),
            Self::U1(value) => Value::Integer((*value).into()),
            Self::I2(value) => Value::Integer((*value).into()),
            Self::U2(value) => Value::Integer((*value).into()),
            Self::I4(value) => Value::Integer((*value).into()),
            Self::U4(value) => Value::Integer((*value).into()),
            Self::I8(value) | Self::Currency(value) => Value::Integer((*value).into()),
            Self::U8(value) => Value::Integer((*value).into()),
            Self::R4(value) => Value::Float((*value).into()),
            Self::R8(value) | Self::Date(value) => Value::Float(*value),
            Self::Error(code) => Value::Integer(code.signed().into()),
            Self::Bool(value) => Value::Bool(*value),
            Self::Text(text) => Value::Text(text.as_ref().clone()),
            // Octets travel as one block rather than as a list of numbers.
            Self::Array(array) if array.element == VarType::UI1 && array.items.iter().all(is_octet) => {
                Value::Bytes(array.items.iter().filter_map(octet).collect::<Vec<u8>>().into())
            }
            Self::Array(array) if array.element == VarType::VARIANT => {
                Value::List(array.items.iter().map(|item| item.to_variant().into()).collect())
            }
            Self::Array(array) => Value::List(array.items.iter().map(Self::to_value).collect()),
        }
    }

    /// What a neutral value is as a VARIANT.
    ///
    /// # Errors
    /// [`Code::BAD_TYPE`]: a type that items cannot have, such as an interface or a decimal.
    pub fn from_variant(variant: &Variant) -> Result<Self, Code> {
        match variant.scalar().and_then(Self::of_scalar) {
            Some(data) => Ok(data),
            None => Self::read(variant.shape(), &variant.value(), 0),
        }
    }

    /// A number without another name.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn of_scalar(scalar: Scalar) -> Option<Self> {
        let bits = scalar.bits();
        Some(match scalar.shape() {
            Shape::Void => Self::Empty,
            Shape::Bool => Self::Bool(bits != 0),
            Shape::I8 => Self::I1(bits as i8),
            Shape::U8 => Self::U1(bits as u8),
            Shape::I16 => Self::I2(bits as i16),
            Shape::U16 => Self::U2(bits as u16),
            Shape::I32 => Self::I4(bits as i32),
            Shape::U32 => Self::U4(bits as u32),
            Shape::I64 => Self::I8(bits as i64),
            Shape::U64 => Self::U8(bits),
            Shape::F32 => Self::R4(f32::from_bits(bits as u32)),
            Shape::F64 => Self::R8(f64::from_bits(bits)),
            _ => return None,
        })
    }

    /// Reads what is no plain scalar: by the VARTYPE where several share a shape, else by the shape.
    fn read(shape: &Shape, value: &Value, depth: usize) -> Result<Self, Code> {
        /// Arrays in arrays: as many dimensions as a .NET array may have. A SAFEARRAY may have 60, but an answer that holds one in a list
        /// of items has to stay within what a value to be written may nest (64), or all of its items fail.
        const DEPTH: usize = 32;
        let narrow = |value: &i128| i64::try_from(*value).map_err(|_| Code::BAD_TYPE);
        macro_rules! whole {
            ($arm:ident, $value:expr) => {
                Self::$arm((*$value).try_into().map_err(|_| Code::BAD_TYPE)?)
            };
        }
        // What has parts is no type of its own.
        let vt = variant::type_of_shape(shape).map(VarType).unwrap_or(VarType::VARIANT);
        match (vt, value) {
            (VarType::EMPTY, _) => return Ok(Self::Empty),
            (VarType::NULL, Value::Nothing) => return Ok(Self::Null),
            (VarType::CY, Value::Integer(value)) => return Ok(Self::Currency(narrow(value)?)),
            (VarType::DATE, Value::Float(value)) => return Ok(Self::Date(*value)),
            (VarType::ERROR, Value::Integer(value)) => {
                let low = narrow(value)? & 0xffff_ffff;
                return Ok(Self::Error(Code(u32::try_from(low).map_err(|_| Code::BAD_TYPE)?)));
            }
            _ => {}
        }
        Ok(match (shape.resolved(), value) {
            (Shape::Bool, Value::Bool(value)) => Self::Bool(*value),
            (Shape::I8, Value::Integer(value)) => whole!(I1, value),
            (Shape::U8, Value::Integer(value)) => whole!(U1, value),
            (Shape::I16, Value::Integer(value)) => whole!(I2, value),
            (Shape::U16, Value::Integer(value)) => whole!(U2, value),
            (Shape::I32, Value::Integer(value)) => whole!(I4, value),
            (Shape::U32, Value::Integer(value)) => whole!(U4, value),
            (Shape::I64, Value::Integer(value)) => whole!(I8, value),
            (Shape::U64, Value::Integer(value)) => whole!(U8, value),
            #[allow(clippy::cast_possible_truncation)]
            (Shape::F32, Value::Float(value)) => Self::R4(*value as f32),
            (Shape::F64, Value::Float(value)) => Self::R8(*value),
            (Shape::Text(_), Value::Text(text)) => Self::Text(Arc::new(text.clone())),
            (Shape::Pointer(pointer), value) if depth < DEPTH => {
                return Self::read(&pointer.target, value, depth + 1);
            }
            (Shape::Variant, Value::Variant(held)) if depth < DEPTH => {
                return Self::read(&held.0.0, &held.1, depth + 1);
            }
            (Shape::Sequence(_), Value::Bytes(octets)) => {
                Self::array(VarType::UI1, octets.iter().map(|octet| Self::U1(*octet)).collect())
            }
            (Shape::Sequence(sequence), Value::List(values)) if depth < DEPTH => {
                let read = |value| Self::read(&sequence.element, value, depth + 1);
                let items = values.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                Self::array(element_of(&sequence.element), items)
            }
            _ => return Err(Code::BAD_TYPE),
        })
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(array) => {
                f.write_str("[")?;
                for (index, item) in array.items.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Null => f.write_str("null"),
            Self::Error(code) => write!(f, "{code}"),
            Self::Bool(value) => write!(f, "{value}"),
            other => match other.coerce(VarType::BSTR) {
                Ok(Self::Text(text)) => f.write_str(&text),
                _ => Ok(()),
            },
        }
    }
}

/// The octet that a value is, if it is one.
fn octet(item: &Data) -> Option<u8> {
    if let Data::U1(octet) = item { Some(*octet) } else { None }
}

/// Whether a value is an octet, so that an array of such may travel as bytes.
fn is_octet(item: &Data) -> bool {
    octet(item).is_some()
}

/// The innermost elements of an array of this shape, as values hold them.
fn element_of(shape: &Shape) -> VarType {
    let vt = match shape {
        Shape::Variant => return VarType::VARIANT,
        Shape::Sequence(inner) => return element_of(&inner.element),
        other => variant::type_of_shape(other).map(VarType).unwrap_or(VarType::BSTR),
    };
    match vt {
        VarType::INT => VarType::I4,
        VarType::UINT => VarType::UI4,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        assert_eq!("R4".parse(), Ok(VarType::R4));
        assert_eq!("vt_bstr".trim_start_matches("vt_").parse(), Ok(VarType::BSTR));
        assert_eq!("VT_R8[]".parse(), Ok(VarType::R8.array()));
        for wrong in ["", "R5", "[]", "VARIANT", "EMPTY[]"] {
            assert_eq!(wrong.parse::<VarType>(), Err(Code::BAD_VARTYPE), "{wrong}");
        }
    }

    #[test]
    fn a_value_has_16_bytes() {
        assert_eq!(size_of::<Data>(), 16);
        assert_eq!(size_of::<Vqt>(), 32);
    }

    #[test]
    fn every_type_survives_the_way_to_a_variant_and_back() {
        let texts = Data::array(VarType::BSTR, vec!["a".into(), "".into()]);
        let grid = Data::array(
            VarType::R8,
            vec![Data::array(VarType::R8, vec![1.0.into()]), Data::array(VarType::R8, vec![2.0.into()])],
        );
        for data in [
            Data::Empty,
            Data::Null,
            Data::I1(-1),
            Data::U1(200),
            Data::I2(-300),
            Data::U2(60_000),
            Data::I4(-1),
            Data::U4(u32::MAX),
            Data::I8(i64::MIN),
            Data::U8(u64::MAX),
            Data::R4(0.5),
            Data::R8(-2.25),
            Data::Currency(12_345),
            Data::Date(45_000.5),
            Data::Error(Code::UNKNOWN_ITEM),
            Data::Bool(true),
            "Käse".into(),
            texts,
            grid,
            Data::array(VarType::UI1, vec![Data::U1(1), Data::U1(2)]),
            Data::array(VarType::VARIANT, vec![Data::I4(1), "x".into()]),
            Data::array(VarType::VARIANT, vec![Data::array(VarType::VARIANT, vec![Data::I4(1)]), Data::Null]),
            Data::array(VarType::VARIANT, vec![Data::array(VarType::R8, vec![Data::R8(1.0)])]),
        ] {
            assert_eq!(Data::from_variant(&data.to_variant()), Ok(data.clone()));
            let packed = data.packed();
            assert_eq!(packed.is_none(), data.heap() > 0, "{data:?}");
            if let Some((kind, bits)) = packed {
                assert_eq!(Data::unpacked(kind, bits), Some(data));
            }
        }
        assert_eq!(Data::unpacked(0, 7), None);
    }

    #[test]
    fn arrays_of_more_dimensions_than_answers_hold_are_refused() {
        let of = |dimensions: usize| {
            let one = Data::array(VarType::R8, vec![Data::R8(1.0)]);
            (1..dimensions).fold(one, |inner, _| Data::array(VarType::R8, vec![inner]))
        };
        let shallow = of(32);
        assert_eq!(Data::from_variant(&shallow.to_variant()), Ok(shallow));
        for dimensions in [33, 60] {
            let read = Data::from_variant(&of(dimensions).to_variant());
            assert_eq!(read, Err(Code::BAD_TYPE), "{dimensions}");
        }
    }
}
