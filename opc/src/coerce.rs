//! One type into another, as VariantChangeType does it (MS-OAUT 2.2.29 names the types; the rules are those of its implementations):
//! numbers with a check of their range, rounded to the nearest and halves to the even one; `VARIANT_TRUE` is -1; arrays element by
//! element. Texts are read and written without regard to a locale: a point for fractions, dates as `2026-11-23 18:05:00`.

use crate::Code;
use crate::data::{Array, Data, VarType};
use std::sync::Arc;

/// A number on its way from one type to another.
enum Number {
    Whole(i128),
    Fraction(f64),
}

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
            (Self::Array(_), None) | (_, Some(_)) | (Self::Null, _) => Err(Code::TYPE_MISMATCH),
            _ => self.scalar(to),
        }
    }

    fn scalar(&self, to: VarType) -> Result<Self, Code> {
        match to {
            VarType::NULL => return Err(Code::TYPE_MISMATCH),
            VarType::BSTR => return self.text().map(Self::from),
            VarType::ERROR => return Err(Code::TYPE_MISMATCH),
            VarType::BOOL => return self.truth().map(Self::Bool),
            VarType::DATE => {
                if let Self::Text(text) = self {
                    return date_of(text).map(Self::Date);
                }
            }
            _ => {}
        }
        let number = self.to_number()?;
        Ok(match to {
            VarType::I1 => Self::I1(number.whole()?.try_into().map_err(over)?),
            VarType::UI1 => Self::U1(self.unsigned(&number, 8)?.try_into().map_err(over)?),
            VarType::I2 => Self::I2(number.whole()?.try_into().map_err(over)?),
            VarType::UI2 => Self::U2(self.unsigned(&number, 16)?.try_into().map_err(over)?),
            VarType::I4 | VarType::INT => Self::I4(number.whole()?.try_into().map_err(over)?),
            VarType::UI4 | VarType::UINT => Self::U4(self.unsigned(&number, 32)?.try_into().map_err(over)?),
            VarType::I8 => Self::I8(number.whole()?.try_into().map_err(over)?),
            VarType::UI8 => Self::U8(self.unsigned(&number, 64)?.try_into().map_err(over)?),
            VarType::R4 => {
                let value = number.fraction();
                #[allow(clippy::cast_possible_truncation)]
                let narrow = value as f32;
                if narrow.is_infinite() && value.is_finite() {
                    return Err(Code::OVERFLOW);
                }
                Self::R4(narrow)
            }
            VarType::R8 => Self::R8(number.fraction()),
            VarType::DATE => Self::Date(number.fraction()),
            VarType::CY => Self::Currency(
                match number {
                    Number::Whole(value) => value.checked_mul(10_000).and_then(|value| value.try_into().ok()),
                    Number::Fraction(value) => {
                        rounded(value * 10_000.0).ok().and_then(|value| value.try_into().ok())
                    }
                }
                .ok_or(Code::OVERFLOW)?,
            ),
            _ => return Err(Code::BAD_VARTYPE),
        })
    }

    /// A boolean that is true has all bits of an unsigned number; others have to fit.
    fn unsigned(&self, number: &Number, bits: u32) -> Result<i128, Code> {
        if matches!(self, Self::Bool(true)) { Ok((1_i128 << bits) - 1) } else { number.whole() }
    }

    fn to_number(&self) -> Result<Number, Code> {
        Ok(match self {
            Self::Empty => Number::Whole(0),
            Self::I1(value) => Number::Whole((*value).into()),
            Self::U1(value) => Number::Whole((*value).into()),
            Self::I2(value) => Number::Whole((*value).into()),
            Self::U2(value) => Number::Whole((*value).into()),
            Self::I4(value) => Number::Whole((*value).into()),
            Self::U4(value) => Number::Whole((*value).into()),
            Self::I8(value) => Number::Whole((*value).into()),
            Self::U8(value) => Number::Whole((*value).into()),
            Self::Bool(value) => Number::Whole(if *value { -1 } else { 0 }),
            Self::Text(text) => {
                let text = text.trim();
                match (text.parse::<i64>(), text.parse::<f64>()) {
                    (Ok(whole), _) => Number::Whole(whole.into()),
                    (_, Ok(fraction)) if fraction.is_finite() => Number::Fraction(fraction),
                    _ => match truth_of(text) {
                        Some(truth) => Number::Whole(if truth { -1 } else { 0 }),
                        None => return Err(Code::TYPE_MISMATCH),
                    },
                }
            }
            Self::Null | Self::Error(_) | Self::Array(_) => return Err(Code::TYPE_MISMATCH),
            Self::R4(_) | Self::R8(_) | Self::Date(_) | Self::Currency(_) => {
                Number::Fraction(self.number().unwrap_or_default())
            }
        })
    }

    fn truth(&self) -> Result<bool, Code> {
        Ok(match self.to_number()? {
            Number::Whole(value) => value != 0,
            Number::Fraction(value) => value != 0.0,
        })
    }

    fn text(&self) -> Result<String, Code> {
        Ok(match self {
            Self::Empty => String::new(),
            Self::R4(value) => value.to_string(),
            Self::R8(value) => value.to_string(),
            Self::Date(value) => text_of_date(*value).ok_or(Code::TYPE_MISMATCH)?,
            Self::Currency(value) => {
                let sign = if *value < 0 { "-" } else { "" };
                let (whole, rest) = (value.unsigned_abs() / 10_000, value.unsigned_abs() % 10_000);
                let text = format!("{sign}{whole}.{rest:04}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            other => match other.to_number()? {
                Number::Whole(value) => value.to_string(),
                Number::Fraction(value) => value.to_string(),
            },
        })
    }
}

impl Number {
    fn whole(&self) -> Result<i128, Code> {
        match self {
            Self::Whole(value) => Ok(*value),
            Self::Fraction(value) => rounded(*value),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn fraction(&self) -> f64 {
        match self {
            Self::Whole(value) => *value as f64,
            Self::Fraction(value) => *value,
        }
    }
}

fn over<E>(_: E) -> Code {
    Code::OVERFLOW
}

/// To the nearest, halves to the even one.
#[allow(clippy::cast_possible_truncation)]
fn rounded(value: f64) -> Result<i128, Code> {
    let rounded = value.round_ties_even();
    if rounded.is_finite() && rounded.abs() < 1e30 { Ok(rounded as i128) } else { Err(Code::OVERFLOW) }
}

fn truth_of(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// Days from 30 December 1899 to 1 March of the year 0, from which the calendar is counted in whole eras.
const ERA: i64 = 693_899;

/// `2026-11-23 18:05:00`; without the time if it is midnight.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn text_of_date(date: f64) -> Option<String> {
    if !date.is_finite() || date.abs() > 2_958_466.0 {
        return None;
    }
    // The fraction of a date before 1900 still counts forwards.
    let (mut days, part) = (date.trunc() as i64, date.fract().abs());
    let mut seconds = (part * 86_400.0).round() as i64;
    if seconds == 86_400 {
        (days, seconds) = (days + 1, 0);
    }
    let shifted = days + ERA;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let years = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = years + era * 400 + i64::from(month <= 2);
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(match seconds {
        0 => date,
        _ => format!("{date} {:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    })
}

#[allow(clippy::cast_precision_loss)]
fn date_of(text: &str) -> Result<f64, Code> {
    let text = text.trim();
    if let Ok(days) = text.parse::<f64>() {
        return Ok(days);
    }
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    let fields = |text: &str, by: char| {
        text.split(by).map(|part| part.parse::<i64>().ok()).collect::<Option<Vec<_>>>()
    };
    let Some([year, month @ 1..=12, day @ 1..=31]) =
        fields(date, '-').as_deref().and_then(|all| all.first_chunk::<3>().copied())
    else {
        return Err(Code::TYPE_MISMATCH);
    };
    let seconds = match fields(time.trim_end_matches('Z'), ':').as_deref() {
        _ if time.is_empty() => 0,
        Some([hour @ 0..=23, minute @ 0..=59]) => hour * 3_600 + minute * 60,
        Some([hour @ 0..=23, minute @ 0..=59, second @ 0..=59]) => hour * 3_600 + minute * 60 + second,
        _ => return Err(Code::TYPE_MISMATCH),
    };
    if !(100..=9_999).contains(&year) {
        return Err(Code::TYPE_MISMATCH);
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - ERA;
    let part = seconds as f64 / 86_400.0;
    Ok(if days < 0 { days as f64 - part } else { days as f64 + part })
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
