//! A value without parts, on its way from one type to another: what VariantChangeType does (MS-OAUT 2.2.7, 3.1.4.4.4), once, for
//! everybody who holds values, however they hold them.
//!
//! Numbers are rounded to the nearest, halves to the even one, and checked for their range. TRUE has all bits: -1, and the largest of
//! numbers without a sign. Text is read and written without regard to a locale. What does not fit has the HRESULT that says why.

use super::date;
use crate::hresult::{DISP_E_OVERFLOW, DISP_E_TYPEMISMATCH};

/// A CURRENCY counts ten-thousandths.
const CURRENCY_UNIT: i128 = 10_000;

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
            Self::Text(text) => text.trim().parse().or_else(|_| rounded(self.real()?))?,
            Self::Single(_) | Self::Real(_) | Self::Money(_) | Self::Date(_) => rounded(self.real()?)?,
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
}
