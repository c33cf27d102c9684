//! A value without parts, on its way from one type to another: what VariantChangeType does (MS-OAUT 2.2.7, 3.1.4.4.4), once, for
//! everybody who holds values, however they hold them.
//!
//! Numbers are rounded to the nearest, halves to the even one, and checked for their range. TRUE has all bits: -1, and the largest of
//! numbers without a sign. Text is read and written without regard to a locale. What does not fit has the HRESULT that says why.
//!
//! Money and whole numbers that stand as text are exact: they do not go through a number with a fraction, which has 53 bits only.
//! Halves go to the even one there as well: oleaut32's documents do not say how VarCyFromStr rounds, and so it is as of all numbers.

use super::date;
use crate::hresult::{DISP_E_OVERFLOW, DISP_E_TYPEMISMATCH};
use std::cmp::Ordering;

/// A CURRENCY counts ten-thousandths.
const CURRENCY_UNIT: i128 = 10_000;
/// As many digits stand behind its point.
const CURRENCY_DIGITS: i64 = 4;

/// A value without parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlainValue<'v> {
    /// Nothing, which is nought, false and an empty text.
    Empty,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// A number with a fraction, of 32 bits.
    Single(f32),
    /// The same of 64 bits.
    Real(f64),
    /// Ten-thousandths.
    Money(i64),
    /// Days since 1899-12-30.
    Date(f64),
    /// Text.
    Text(&'v str),
}

impl PlainValue<'_> {
    /// As a number with a fraction.
    ///
    /// # Errors
    /// It is text that is none.
    #[allow(clippy::cast_precision_loss)]
    pub fn real(&self) -> Result<f64, u32> {
        Ok(match self {
            Self::Empty => 0.0,
            // VARIANT_TRUE is -1.
            Self::Bool(truth) => f64::from(-i8::from(*truth)),
            Self::Whole(number) => *number as f64,
            Self::Single(number) => f64::from(*number),
            Self::Real(number) | Self::Date(number) => *number,
            Self::Money(number) => *number as f64 / 10_000.0,
            Self::Text(text) => {
                let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or(DISP_E_TYPEMISMATCH)?
            }
        })
    }

    /// As a number with a fraction, of 32 bits.
    ///
    /// # Errors
    /// It is text that is none, or too large.
    #[allow(clippy::cast_possible_truncation)]
    pub fn single(&self) -> Result<f32, u32> {
        let number = self.real()?;
        let narrow = number as f32;
        if narrow.is_infinite() && number.is_finite() { Err(DISP_E_OVERFLOW) } else { Ok(narrow) }
    }

    /// As a whole number between these.
    ///
    /// # Errors
    /// It is text that is none, or beyond them.
    pub fn whole(&self, least: i128, most: i128) -> Result<i128, u32> {
        let number = match self {
            Self::Empty => 0,
            // A range without negative numbers has no -1: all bits are its greatest number.
            Self::Bool(true) if least < 0 => -1,
            Self::Bool(true) => most,
            Self::Bool(false) => 0,
            Self::Whole(number) => *number,
            Self::Text(text) => decimal(text, 0)?,
            Self::Money(number) => {
                let rest = i128::from(number.unsigned_abs()) % CURRENCY_UNIT;
                let whole = i128::from(number.unsigned_abs()) / CURRENCY_UNIT;
                let whole = half_to_even(whole, rest.cmp(&(CURRENCY_UNIT / 2)));
                if *number < 0 { -whole } else { whole }
            }
            Self::Single(_) | Self::Real(_) | Self::Date(_) => rounded(self.real()?)?,
        };
        if (least..=most).contains(&number) { Ok(number) } else { Err(DISP_E_OVERFLOW) }
    }

    /// As ten-thousandths.
    ///
    /// # Errors
    /// It is text that is no number, or too large.
    pub fn money(&self) -> Result<i64, u32> {
        let number = match self {
            Self::Money(number) => return Ok(*number),
            Self::Empty | Self::Bool(false) => 0,
            Self::Whole(number) => number.checked_mul(CURRENCY_UNIT).ok_or(DISP_E_OVERFLOW)?,
            Self::Text(text) => decimal(text, CURRENCY_DIGITS)?,
            other => rounded(other.real()? * 10_000.0)?,
        };
        i64::try_from(number).map_err(|_| DISP_E_OVERFLOW)
    }

    /// As days since 1899-12-30: text is a date, or their number.
    ///
    /// # Errors
    /// It is text that is neither.
    pub fn date(&self) -> Result<f64, u32> {
        match self {
            Self::Text(text) => date::parse(text).map_or_else(|| self.real(), Ok),
            other => other.real(),
        }
    }

    /// As a boolean.
    ///
    /// # Errors
    /// It is text that is neither a number nor `true` or `false`.
    pub fn truth(&self) -> Result<bool, u32> {
        let is = |text: &str, words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        Ok(match self {
            Self::Bool(truth) => *truth,
            Self::Text(text) if is(text.trim(), ["true", "#true#"]) => true,
            Self::Text(text) if is(text.trim(), ["false", "#false#"]) => false,
            other => other.real()? != 0.0,
        })
    }

    /// As text, with as many digits as tell a number from others of its own width.
    ///
    /// # Errors
    /// It is no date that there is.
    pub fn text(&self) -> Result<String, u32> {
        Ok(match self {
            Self::Empty => String::new(),
            Self::Bool(truth) => if *truth { "-1" } else { "0" }.to_owned(),
            Self::Whole(number) => number.to_string(),
            Self::Single(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Money(number) => {
                let sign = if *number < 0 { "-" } else { "" };
                let (whole, rest) = (number.unsigned_abs() / 10_000, number.unsigned_abs() % 10_000);
                let text = format!("{sign}{whole}.{rest:04}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            Self::Date(date) => date::text(*date).ok_or(DISP_E_OVERFLOW)?,
            Self::Text(text) => (*text).to_owned(),
        })
    }
}

/// Rounds to the nearest, halves to the even one, as VariantChangeType does; what is no finite number, or far
/// beyond 64 bits, overflows.
#[allow(clippy::cast_possible_truncation)]
fn rounded(number: f64) -> Result<i128, u32> {
    let rounded = number.round_ties_even();
    if rounded.is_finite() && rounded.abs() < 1e30 { Ok(rounded as i128) } else { Err(DISP_E_OVERFLOW) }
}

/// A number without a sign, rounded by how what follows it compares with a half.
fn half_to_even(number: i128, rest: Ordering) -> i128 {
    let up = rest.is_gt() || (rest.is_eq() && number % 2 == 1);
    // What had a digit behind it has room for one more.
    if up { number.saturating_add(1) } else { number }
}

/// What stands as decimal text, in units of which 10 to the power of `digits` make one; exact, but for what is behind the last unit:
/// that is rounded, halves to the even one.
fn decimal(text: &str, digits: i64) -> Result<i128, u32> {
    let text = text.trim();
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, power(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    if all().next().is_none() || !all().all(|digit| digit.is_ascii_digit()) {
        return Err(DISP_E_TYPEMISMATCH);
    }
    let mut number = 0_i128;
    // How many more digits count whole units.
    let mut left = exponent.saturating_add(digits).saturating_add(whole.len() as i64);
    let mut rest = Ordering::Less;
    for digit in all().map(|digit| i128::from(digit - b'0')) {
        match left {
            1.. => number = tenfold(number)?.checked_add(digit).ok_or(DISP_E_OVERFLOW)?,
            0 => rest = digit.cmp(&5),
            // More than a half, however little.
            _ if rest.is_eq() && digit != 0 => rest = Ordering::Greater,
            _ => {}
        }
        left = left.saturating_sub(1);
    }
    while left > 0 && number != 0 {
        number = tenfold(number)?;
        left -= 1;
    }
    let number = half_to_even(number, rest);
    Ok(if is_negative { -number } else { number })
}

fn tenfold(number: i128) -> Result<i128, u32> {
    number.checked_mul(10).ok_or(DISP_E_OVERFLOW)
}

/// The power of ten that stands in text; one beyond all numbers is the last that there is.
fn power(text: &str) -> Result<i64, u32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(DISP_E_TYPEMISMATCH);
    }
    let last = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Ok(text.parse().unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_has_all_bits() {
        assert_eq!(PlainValue::Bool(true).whole(0, 255), Ok(255));
        assert_eq!(PlainValue::Bool(true).whole(-128, 127), Ok(-1));
        assert_eq!(PlainValue::Bool(true).text().as_deref(), Ok("-1"));
        assert_eq!(PlainValue::Text("#TRUE#").truth(), Ok(true));
    }

    #[test]
    fn halves_go_to_the_even_one_and_ranges_are_checked() {
        for (number, expected) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2.4, 2)] {
            assert_eq!(PlainValue::Real(number).whole(-9, 9), Ok(expected), "{number}");
        }
        assert_eq!(PlainValue::Real(f64::NAN).whole(-9, 9), Err(DISP_E_OVERFLOW));
        assert_eq!(PlainValue::Whole(10).whole(-9, 9), Err(DISP_E_OVERFLOW));
        assert_eq!(PlainValue::Real(1e300).single(), Err(DISP_E_OVERFLOW));
        assert_eq!(PlainValue::Whole(i128::MAX).money(), Err(DISP_E_OVERFLOW));
    }

    #[test]
    fn text_is_a_number_if_it_reads_so() {
        assert_eq!(PlainValue::Text(" 12 ").whole(0, 99), Ok(12));
        assert_eq!(PlainValue::Text("2.5").whole(0, 99), Ok(2));
        for wrong in ["", "inf", "NaN", "twelve"] {
            assert_eq!(PlainValue::Text(wrong).whole(0, 99), Err(DISP_E_TYPEMISMATCH), "{wrong}");
        }
        assert_eq!(PlainValue::Text("1.5").money(), Ok(15_000));
        assert_eq!(PlainValue::Money(-12_300).text().as_deref(), Ok("-1.23"));
        assert_eq!(PlainValue::Text("2000-01-01 12:00:00").date(), Ok(36_526.5));
        assert_eq!(PlainValue::Text("7").date(), Ok(7.0));
        assert_eq!(PlainValue::Date(1e9).text(), Err(DISP_E_OVERFLOW));
    }

    #[test]
    fn money_is_exact() {
        for (text, money) in [
            ("900719925474.0993", 9_007_199_254_740_993),
            (" +922337203685477.5807 ", i64::MAX),
            ("-922337203685477.5808", i64::MIN),
            ("922337203685477.58074999", i64::MAX),
            ("0.00005", 0),
            ("-0.00015", -2),
            ("0.00025", 2),
            ("0.000250000000000000000000000000000000000000000001", 3),
            (".5", 5_000),
            ("5.", 50_000),
            ("1.5e3", 15_000_000),
            ("25E-5", 2),
            ("5e-6", 0),
            ("9e-99999999999999999999", 0),
            ("0e99999999999999999999", 0),
        ] {
            assert_eq!(PlainValue::Text(text).money(), Ok(money), "{text}");
        }
        for large in ["922337203685477.58075", "-922337203685477.5809", "1e15", "1e99999999999999999999"] {
            assert_eq!(PlainValue::Text(large).money(), Err(DISP_E_OVERFLOW), "{large}");
        }
        let many = "9".repeat(5_000);
        assert_eq!(PlainValue::Text(&many).money(), Err(DISP_E_OVERFLOW));
        for wrong in ["", ".", "-", "+-1", "1e", "e5", "1e+", "1.2.3", "inf", "NaN", "1 2", "1,5"] {
            assert_eq!(PlainValue::Text(wrong).money(), Err(DISP_E_TYPEMISMATCH), "{wrong}");
        }
    }

    #[test]
    fn what_is_counted_in_units_becomes_whole_without_loss() {
        let whole = |value: PlainValue| value.whole(i64::MIN.into(), i64::MAX.into());
        for (money, expected) in [
            (i64::MAX - 807, 922_337_203_685_478),
            (9_007_199_254_745_001, 900_719_925_475),
            (9_007_199_254_744_999, 900_719_925_474),
            (90_071_992_547_404_999, 9_007_199_254_740),
            (-90_071_992_547_405_001, -9_007_199_254_741),
            (5_000, 0),
            (-15_000, -2),
            (25_000, 2),
            (i64::MIN, -922_337_203_685_478),
        ] {
            assert_eq!(whole(PlainValue::Money(money)), Ok(expected), "{money}");
        }
        assert_eq!(whole(PlainValue::Text("9007199254740993.0")), Ok(9_007_199_254_740_993));
        assert_eq!(whole(PlainValue::Text("1e999")), Err(DISP_E_OVERFLOW));
    }
}
