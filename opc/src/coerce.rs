//! One type into another, as VariantChangeType does it. The rules are those of [`everywire::com::variant`]; here are the types that hold
//! the values.

use crate::Code;
use crate::data::{Array, Data, VarType};
use everywire::com::variant::PlainValue;
use std::sync::Arc;

impl Data {
    /// The same value as another type; as it is, if that is [`VarType::EMPTY`].
    ///
    /// # Errors
    /// [`Code::OVERFLOW`]: the type is too narrow. [`Code::TYPE_MISMATCH`]: the value is nothing that the type could hold.
    /// [`Code::BAD_VARTYPE`]: no value can be of that type.
    pub fn coerce(&self, to: VarType) -> Result<Self, Code> {
        if to == VarType::EMPTY || to == self.var_type() {
            return Ok(self.clone());
        }
        if !to.is_known() {
            return Err(Code::BAD_VARTYPE);
        }
        match (self, to.element()) {
            (Self::Array(array), Some(element)) => {
                let items = array.items.iter().map(|item| match item {
                    Self::Array(_) => item.coerce(to),
                    _ if element == VarType::VARIANT => Ok(item.clone()),
                    _ => item.coerce(element),
                });
                let items = items.collect::<Result<_, _>>()?;
                Ok(Self::Array(Arc::new(Array { element, items })))
            }
            (Self::Array(_), None) | (_, Some(_)) => Err(Code::TYPE_MISMATCH),
            _ => self.scalar(to),
        }
    }

    fn scalar(&self, to: VarType) -> Result<Self, Code> {
        let plain = self.plain().ok_or(Code::TYPE_MISMATCH)?;
        macro_rules! whole {
            ($arm:ident, $type:ty) => {{
                let number = plain.whole(<$type>::MIN.into(), <$type>::MAX.into()).map_err(Code)?;
                Self::$arm(<$type>::try_from(number).map_err(|_| Code::OVERFLOW)?)
            }};
        }
        Ok(match to {
            VarType::BSTR => plain.text().map_err(Code)?.into(),
            VarType::BOOL => Self::Bool(plain.truth().map_err(Code)?),
            VarType::I1 => whole!(I1, i8),
            VarType::UI1 => whole!(U1, u8),
            VarType::I2 => whole!(I2, i16),
            VarType::UI2 => whole!(U2, u16),
            VarType::I4 | VarType::INT => whole!(I4, i32),
            VarType::UI4 | VarType::UINT => whole!(U4, u32),
            VarType::I8 => whole!(I8, i64),
            VarType::UI8 => whole!(U8, u64),
            VarType::R4 => Self::R4(plain.single().map_err(Code)?),
            VarType::R8 => Self::R8(plain.real().map_err(Code)?),
            VarType::DATE => Self::Date(plain.date().map_err(Code)?),
            VarType::CY => Self::Currency(plain.money().map_err(Code)?),
            // An error, and that there is no value, come from nothing else.
            VarType::NULL | VarType::ERROR => return Err(Code::TYPE_MISMATCH),
            _ => return Err(Code::BAD_VARTYPE),
        })
    }

    /// The value, if it has no parts and can become another one.
    fn plain(&self) -> Option<PlainValue<'_>> {
        Some(match self {
            Self::Empty => PlainValue::Empty,
            Self::I1(value) => PlainValue::Whole((*value).into()),
            Self::U1(value) => PlainValue::Whole((*value).into()),
            Self::I2(value) => PlainValue::Whole((*value).into()),
            Self::U2(value) => PlainValue::Whole((*value).into()),
            Self::I4(value) => PlainValue::Whole((*value).into()),
            Self::U4(value) => PlainValue::Whole((*value).into()),
            Self::I8(value) => PlainValue::Whole((*value).into()),
            Self::U8(value) => PlainValue::Whole((*value).into()),
            Self::R4(value) => PlainValue::Single(*value),
            Self::R8(value) => PlainValue::Real(*value),
            Self::Currency(value) => PlainValue::Money(*value),
            Self::Date(value) => PlainValue::Date(*value),
            Self::Bool(value) => PlainValue::Bool(*value),
            Self::Text(text) => PlainValue::Text(text),
            Self::Null | Self::Error(_) | Self::Array(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileTime;

    #[test]
    fn numbers_are_checked_for_their_range() {
        assert_eq!(Data::I4(300).coerce(VarType::UI1), Err(Code::OVERFLOW));
        assert_eq!(Data::I4(-1).coerce(VarType::UI4), Err(Code::OVERFLOW));
        assert_eq!(Data::R8(1e300).coerce(VarType::R4), Err(Code::OVERFLOW));
        assert_eq!(Data::R8(1e300).coerce(VarType::I8), Err(Code::OVERFLOW));
        assert_eq!(Data::R8(f64::NAN).coerce(VarType::I4), Err(Code::OVERFLOW));
        assert_eq!(Data::U8(u64::MAX).coerce(VarType::R8), Ok(Data::R8(18_446_744_073_709_551_615.0)));
        assert_eq!(Data::R8(1e16).coerce(VarType::CY), Err(Code::OVERFLOW));
    }

    #[test]
    fn halves_are_rounded_to_the_even_one() {
        for (value, expected) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2.4, 2)] {
            assert_eq!(Data::R8(value).coerce(VarType::I2), Ok(Data::I2(expected)), "{value}");
        }
    }

    #[test]
    fn true_is_all_ones() {
        assert_eq!(Data::Bool(true).coerce(VarType::I4), Ok(Data::I4(-1)));
        assert_eq!(Data::Bool(true).coerce(VarType::UI1), Ok(Data::U1(255)));
        assert_eq!(Data::Bool(true).coerce(VarType::BSTR), Ok("-1".into()));
        assert_eq!(Data::R4(0.1).coerce(VarType::BOOL), Ok(Data::Bool(true)));
        assert_eq!(Data::from("False").coerce(VarType::BOOL), Ok(Data::Bool(false)));
    }

    #[test]
    fn texts_are_numbers_if_they_read_so() {
        assert_eq!(Data::from(" 12 ").coerce(VarType::I2), Ok(Data::I2(12)));
        assert_eq!(Data::from("1.5").coerce(VarType::R4), Ok(Data::R4(1.5)));
        assert_eq!(Data::from("twelve").coerce(VarType::R4), Err(Code::TYPE_MISMATCH));
        assert_eq!(Data::Currency(-12_300).coerce(VarType::BSTR), Ok("-1.23".into()));
        assert_eq!(Data::R4(0.1).coerce(VarType::BSTR), Ok("0.1".into()));
    }

    #[test]
    fn dates_are_days_since_1899() {
        for (text, days) in [
            ("1899-12-30", 0.0),
            ("1900-01-01 12:00:00", 2.5),
            ("1899-12-29 06:00:00", -1.25),
            ("2000-02-29", 36_585.0),
            ("1970-01-01", 25_569.0),
        ] {
            assert_eq!(Data::from(text).coerce(VarType::DATE), Ok(Data::Date(days)), "{text}");
            assert_eq!(Data::Date(days).coerce(VarType::BSTR), Ok(text.into()), "{days}");
        }
        assert_eq!(Data::from("2000-13-01").coerce(VarType::DATE), Err(Code::TYPE_MISMATCH));
        let unix = FileTime::from(std::time::UNIX_EPOCH);
        assert_eq!(unix.date().to_bits(), 25_569f64.to_bits());
    }

    #[test]
    fn arrays_change_element_by_element() {
        let array = Data::array(VarType::I2, vec![Data::I2(1), Data::I2(2)]);
        let expected = Data::array(VarType::R8, vec![Data::R8(1.0), Data::R8(2.0)]);
        assert_eq!(array.coerce(VarType::R8.array()), Ok(expected));
        assert_eq!(array.coerce(VarType::R8), Err(Code::TYPE_MISMATCH));
        assert_eq!(Data::I2(1).coerce(VarType::R8.array()), Err(Code::TYPE_MISMATCH));
        assert_eq!(array.coerce(VarType(999)), Err(Code::BAD_VARTYPE));
    }
}
