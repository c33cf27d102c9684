//! Values of VARIANTs as other types, in the way of VariantChangeType (MS-OAUT 2.2.7, 3.1.4.4.4): for programs that are asked for a
//! value as a type of the caller's choice.
//!
//! Numbers are rounded to the nearest, halves to the even one, and checked: one that does not fit is `DISP_E_OVERFLOW`. Text is read and
//! written as in a programming language, dates as in ISO 8601, whatever the locale; TRUE is -1. Arrays are converted by their
//! elements. What cannot be converted is `DISP_E_TYPEMISMATCH`, a VARTYPE that is none `DISP_E_BADVARTYPE`.

pub(crate) mod date;
mod plain;

pub use plain::PlainValue;

use crate::hresult::{self, DISP_E_BADVARTYPE};
use crate::ndr::{plain as plain_shape, vartype, vartype_shape};
use crate::standard::dispatch::to_shape;
use everywire_model::{Failure, Scalar, Shape, Variant};

macro_rules! types {
    ($($name:ident $value:literal $text:literal,)*) => {
        $(#[doc = $text] pub const $name: u16 = $value;)*
    };
}

types! {
    VT_EMPTY 0 "Nothing.",
    VT_NULL 1 "A value that is not known.",
    VT_I2 2 "Signed, 16 bits.",
    VT_I4 3 "Signed, 32 bits.",
    VT_R4 4 "IEEE 754 binary32.",
    VT_R8 5 "IEEE 754 binary64.",
    VT_CY 6 "Money: ten-thousandths.",
    VT_DATE 7 "Days since 1899-12-30.",
    VT_BSTR 8 "Text.",
    VT_DISPATCH 9 "An object that can be called by name.",
    VT_ERROR 10 "An HRESULT.",
    VT_BOOL 11 "True or false.",
    VT_VARIANT 12 "Any value, as the element of an array.",
    VT_UNKNOWN 13 "An object.",
    VT_DECIMAL 14 "A number of 96 bits and a power of ten.",
    VT_I1 16 "Signed, 8 bits.",
    VT_UI1 17 "Unsigned, 8 bits.",
    VT_UI2 18 "Unsigned, 16 bits.",
    VT_UI4 19 "Unsigned, 32 bits.",
    VT_I8 20 "Signed, 64 bits.",
    VT_UI8 21 "Unsigned, 64 bits.",
    VT_INT 22 "Signed, 32 bits.",
    VT_UINT 23 "Unsigned, 32 bits.",
    VT_ARRAY 0x2000 "Added to a type: an array of it.",
}

/// A value as another type. `VT_EMPTY` asks for no type in particular: the value stays as it is.
/// Used by the servers of OPC for a requested data type, and by `IDispatch` for arguments.
///
/// # Errors
/// A failure with the HRESULT that says why it cannot be: [`hresult::DISP_E_OVERFLOW`], [`hresult::DISP_E_TYPEMISMATCH`],
/// [`hresult::DISP_E_BADVARTYPE`].
pub fn change(variant: &Variant, vt: u16) -> Result<Variant, Failure> {
    if vt == VT_EMPTY || vartype(variant.shape()).is_ok_and(|own| own == vt) {
        return Ok(variant.clone());
    }
    let target = vartype_shape(vt, 1).map_err(|_| hresult::failure(DISP_E_BADVARTYPE, None))?;
    let value = to_shape(&variant.clone().into(), &target).map_err(|code| hresult::failure(code, None))?;
    let scalar = plain_shape(vt).and_then(|(shape, _)| Scalar::of(shape, &value));
    Ok(scalar.map_or_else(|| Variant::new(target, value), Variant::from))
}

/// The VARTYPE of a value.
///
/// # Errors
/// No VARIANT holds such a value.
pub fn type_of(variant: &Variant) -> Result<u16, Failure> {
    vartype(variant.shape())
}

/// A value of this VARTYPE that is one number, by its bits; `None` for other types, and for bits that are more than it has.
pub fn number(vt: u16, bits: u64) -> Option<Variant> {
    plain_shape(vt).and_then(|(shape, _)| Scalar::new(shape, bits)).map(Variant::from)
}

/// The neutral shape of a VARTYPE; that of an array has so many dimensions.
///
/// # Errors
/// There is no such VARTYPE here.
pub fn shape_of(vt: u16, dimensions: u32) -> Result<Shape, Failure> {
    vartype_shape(vt, dimensions)
}

/// The VARTYPE of a neutral shape.
///
/// # Errors
/// No VARIANT holds such a value.
pub fn type_of_shape(shape: &Shape) -> Result<u16, Failure> {
    vartype(shape)
}

/// Whether there is such a VARTYPE here, by itself or as an array.
pub fn is_type(vt: u16) -> bool {
    vartype_shape(vt, 1).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hresult::{DISP_E_OVERFLOW, DISP_E_TYPEMISMATCH};
    use everywire_model::Value;

    fn of(vt: u16, value: Value) -> Variant {
        Variant::new(vartype_shape(vt, 1).unwrap(), value)
    }

    fn code(result: Result<Variant, Failure>) -> u32 {
        result.unwrap_err().status().unwrap().cast_unsigned()
    }

    #[test]
    fn values_become_what_they_are_asked_for_as() {
        let text = |text: &str| of(VT_BSTR, Value::Text(text.to_owned()));
        let whole = |vt, number: i128| of(vt, Value::Integer(number));
        let real = |number| of(VT_R8, Value::Float(number));
        for (from, vt, to) in [
            (real(2.5), VT_I2, whole(VT_I2, 2)),
            (real(3.5), VT_UI1, whole(VT_UI1, 4)),
            (text("1e3"), VT_R4, of(VT_R4, Value::Float(1000.0))),
            (whole(VT_I4, 7), VT_BSTR, text("7")),
            (of(VT_BOOL, Value::Bool(true)), VT_I4, whole(VT_I4, -1)),
            (text("TRUE"), VT_BOOL, of(VT_BOOL, Value::Bool(true))),
            (real(1.5), VT_CY, whole(VT_CY, 15_000)),
            (whole(VT_CY, 12_345), VT_R8, real(1.2345)),
            (text("2000-01-01 12:00:00"), VT_DATE, of(VT_DATE, Value::Float(36_526.5))),
            (of(VT_DATE, Value::Float(36_526.5)), VT_BSTR, text("2000-01-01 12:00:00")),
            (of(VT_DATE, Value::Float(36_526.5)), VT_R8, real(36_526.5)),
            (whole(VT_I4, 5), VT_EMPTY, whole(VT_I4, 5)),
        ] {
            assert_eq!(change(&from, vt).unwrap(), to);
            assert_eq!(type_of(&to).unwrap(), if vt == VT_EMPTY { VT_I4 } else { vt });
        }
    }

    #[test]
    fn arrays_are_converted_by_their_elements() {
        let list = |items: [i128; 2]| Value::List(items.map(Value::Integer).to_vec());
        let numbers = of(VT_ARRAY | VT_I4, list([1, 70_000]));
        let texts = Value::List(["1", "70000"].map(|text| Value::Text(text.to_owned())).to_vec());
        assert_eq!(change(&numbers, VT_ARRAY | VT_BSTR).unwrap(), of(VT_ARRAY | VT_BSTR, texts));
        assert_eq!(code(change(&numbers, VT_ARRAY | VT_I2)), DISP_E_OVERFLOW);
        assert_eq!(code(change(&numbers, VT_I4)), DISP_E_TYPEMISMATCH);
    }

    #[test]
    fn what_cannot_be_says_why() {
        let big = of(VT_R8, Value::Float(1e10));
        assert_eq!(code(change(&big, VT_I4)), DISP_E_OVERFLOW);
        assert_eq!(code(change(&of(VT_BSTR, Value::Text("x".to_owned())), VT_I4)), DISP_E_TYPEMISMATCH);
        assert_eq!(code(change(&of(VT_BSTR, Value::Text("x".to_owned())), VT_DATE)), DISP_E_TYPEMISMATCH);
        assert_eq!(code(change(&big, 15)), DISP_E_BADVARTYPE);
        assert!(is_type(VT_ARRAY | VT_R4) && !is_type(36));
        assert!(type_of(&Variant::new(Shape::Handle, Value::Nothing)).is_err());
    }
}
