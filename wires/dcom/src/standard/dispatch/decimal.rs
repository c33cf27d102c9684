//! DECIMAL (MS-OAUT 2.2.26): a number of 96 bits, a power of ten by which it is divided, and a sign.
//!
//! Invariants: `digits` is 96 bits at the most and `scale` 28, so that all arithmetic fits into 128 bits. A
//! number is never normalized: 12.50 keeps its zero, as automation does.

use crate::hresult::{DISP_E_OVERFLOW, DISP_E_TYPEMISMATCH};
use everywire_model::value::Value;

/// The largest power of ten.
const MOST_SCALE: u8 = 28;
/// The largest number.
const MOST: u128 = (1 << 96) - 1;
/// `sign` of negative ones.
const NEGATIVE: i128 = 0x80;

/// A DECIMAL: `digits` divided by 10 to the power of `scale`. `digits` has 96 bits at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    /// The sign, which zero may have too.
    negative: bool,
    /// The number without its point.
    digits: u128,
    /// Digits behind the point.
    scale: u8,
}

impl Decimal {
    /// The one that the fields of a struct are.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let Value::Struct(fields) = value else { return None };
        let number = |index: usize| match fields.get(index) {
            Some((_, Value::Integer(number))) => Some(*number),
            _ => None,
        };
        let (scale, sign, high, low) = (number(1)?, number(2)?, number(3)?, number(4)?);
        let digits = u128::from(u32::try_from(high).ok()?) << 64 | u128::from(u64::try_from(low).ok()?);
        let scale = u8::try_from(scale).ok().filter(|scale| *scale <= MOST_SCALE)?;
        Some(Self { negative: sign & NEGATIVE != 0, digits, scale })
    }

    /// The fields of the struct DECIMAL, in their order.
    pub(super) fn value(self) -> Value {
        let low = self.digits & u128::from(u64::MAX);
        let fields = [
            ("wReserved", 0),
            ("scale", self.scale.into()),
            ("sign", if self.negative { NEGATIVE } else { 0 }),
            ("Hi32", (self.digits >> 64).cast_signed()),
            ("Lo64", low.cast_signed()),
        ];
        let field = |(name, number): (&str, i128)| (name.to_owned(), Value::Integer(number));
        Value::Struct(fields.into_iter().map(field).collect())
    }

    /// `number` divided by this power of ten.
    pub(super) fn scaled(number: i128, scale: u8) -> Result<Self, u32> {
        let digits = number.unsigned_abs();
        if digits > MOST {
            return Err(DISP_E_OVERFLOW);
        }
        Ok(Self { negative: number < 0, digits, scale })
    }

    /// The nearest to a number with a binary fraction: as many digits as tell it from others.
    pub(super) fn from_float(number: f64) -> Result<Self, u32> {
        if number.is_finite() { Self::parse(&number.to_string()) } else { Err(DISP_E_OVERFLOW) }
    }

    /// Reads digits with a point; those beyond what it holds are rounded away.
    pub(super) fn parse(text: &str) -> Result<Self, u32> {
        let text = text.trim();
        let (negative, text) = (text.starts_with('-'), text.strip_prefix(['-', '+']).unwrap_or(text));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(DISP_E_TYPEMISMATCH);
        }
        let mut number = Self { negative, digits: 0, scale: 0 };
        let mut next = 0;
        for (index, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            if !digit.is_ascii_digit() {
                return Err(DISP_E_TYPEMISMATCH);
            }
            let (digit, behind) = (u128::from(digit - b'0'), index >= whole.len());
            let longer = number.digits * 10 + digit;
            let full = longer > MOST || number.scale == MOST_SCALE;
            if behind && (full || next != 0) {
                // The first digit that there is no room for decides; of the others only their form is of interest.
                next = if next == 0 { digit + 1 } else { next };
            } else if longer > MOST {
                return Err(DISP_E_OVERFLOW);
            } else {
                number.digits = longer;
                number.scale += u8::from(behind);
            }
        }
        if next > 5 && number.digits < MOST {
            number.digits += 1;
        }
        Ok(number)
    }

    /// The nearest whole number, of two the even one.
    pub(super) fn rounded(self) -> i128 {
        let unit = 10_u128.pow(self.scale.into());
        let (whole, rest) = (self.digits / unit, self.digits % unit);
        let up = match (rest * 2).cmp(&unit) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => whole % 2 == 1,
            std::cmp::Ordering::Greater => true,
        };
        let whole = (whole + u128::from(up)).cast_signed();
        if self.negative { -whole } else { whole }
    }

    /// As text, without zeros behind the last digit of a fraction.
    pub(super) fn text(self) -> String {
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", self.digits, width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
        let fraction = fraction.trim_end_matches('0');
        let sign = if self.negative && self.digits != 0 { "-" } else { "" };
        if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
    }

    /// The nearest number with a binary fraction.
    pub(super) fn float(self) -> f64 {
        self.text().parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, digits: u128, scale: u8) {
        let negative = text.starts_with('-');
        assert_eq!(Decimal::parse(text), Ok(Decimal { negative, digits, scale }), "{text}");
    }

    #[test]
    fn text_becomes_digits_and_a_scale() {
        reads("12.50", 1250, 2);
        reads("-0.001", 1, 3);
        reads(" +7 ", 7, 0);
        reads("79228162514264337593543950335", MOST, 0);
        // 29 digits behind the point are one too many, and so is what does not fit into 96 bits.
        reads("0.00000000000000000000000000016", 2, 28);
        reads("7.92281625142643375935439503359", MOST, 28);
        reads("7.92281625142643375935439503341", MOST - 1, 28);
        assert_eq!(Decimal::parse("79228162514264337593543950336"), Err(DISP_E_OVERFLOW));
        for text in ["", "-", ".", "1e5", "1.2.3", "0x10"] {
            assert_eq!(Decimal::parse(text), Err(DISP_E_TYPEMISMATCH), "{text:?}");
        }
    }

    #[test]
    fn it_becomes_text_and_whole_numbers() {
        for (text, said, rounded) in [
            ("12.50", "12.5", 12),
            ("13.5", "13.5", 14),
            ("-2.51", "-2.51", -3),
            ("-0", "0", 0),
            ("400", "400", 400),
        ] {
            let number = Decimal::parse(text).unwrap();
            assert_eq!((number.text().as_str(), number.rounded()), (said, rounded));
            assert_eq!(Decimal::of(&number.value()), Some(number));
        }
        assert_eq!(Decimal::from_float(0.1).unwrap().text(), "0.1");
        assert_eq!(Decimal::from_float(-1.5e20).unwrap().float(), -1.5e20);
        assert_eq!(Decimal::from_float(1e30), Err(DISP_E_OVERFLOW));
    }
}
