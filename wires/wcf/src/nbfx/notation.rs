//! XML Schema's notation of decimals and dates, read.
//!
//! A value that travels as text in the neutral model (`decimal`, `dateTime`) is written as a record where
//! Microsoft's writer does so. These readers take only what such a record can hold exactly; anything else
//! stays text, so no value changes on its way.

use super::record::{Decimal, Text};
use super::xml::lexical;
use everywire_model::date::days;

/// .NET's ticks are 100 ns.
pub(super) const TICKS_A_SECOND: u64 = 10_000_000;
/// Days from 0001-01-01 to 1970-01-01.
pub(super) const DAYS_TO_1970: i64 = 719_162;
pub(super) const TICKS_A_DAY: u64 = 86_400 * TICKS_A_SECOND;
/// .NET's DateTime.MaxValue: 9999-12-31T23:59:59.9999999.
pub(super) const MAX_TICKS: u64 = 3_155_378_975_999_999_999;
/// The bits of a date's ticks; the two above are its kind.
pub(super) const TICKS_MASK: u64 = u64::MAX >> 2;

/// The number that a decimal's notation stands for, if .NET has it: 96 bits and up to 28 digits after the point.
pub(crate) fn parse_decimal(text: &str) -> Option<Decimal> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // The digits behind the point count even if they are zeros: .NET keeps them.
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= 28)?;
    if whole.is_empty() || (fraction.is_empty() && digits.contains('.')) {
        return None;
    }
    let mut magnitude = 0_u128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        magnitude = magnitude.checked_mul(10)?.checked_add(digit.into())?;
    }
    if magnitude >> 96 == 0 { Some(Decimal { scale, negative, magnitude }) } else { None }
}

/// A date without time zone or in UTC as a record holds it: 100 ns since 0001-01-01, and the kind in the
/// two bits above (0 unspecified, 1 UTC). The third kind (2, local) has no room for an offset: dates that have one
/// are `None` and stay text.
pub(crate) fn parse_date_time(text: &str) -> Option<u64> {
    let (plain, kind) = match text.strip_suffix('Z') {
        Some(plain) => (plain, 1),
        None => (text, 0),
    };
    let (date, time) = plain.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(7);
    let ticks = digits.fold(0, |ticks, digit| ticks * 10 + u64::from(digit.wrapping_sub(b'0')));
    let days = u64::try_from(days(year, month, day) + DAYS_TO_1970).ok()?;
    let seconds = (hour * 3600 + minute * 60 + second).cast_unsigned();
    let raw = (days * TICKS_A_DAY + seconds * TICKS_A_SECOND + ticks) | (kind << 62);
    // What no calendar has, what is no digit, and more digits than ticks have come out as another text.
    (lexical(&Text::DateTime(raw)) == text).then_some(raw)
}

/// Numbers of exactly these widths between separators.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part =
            parts.next().filter(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    if parts.next().is_none() { Some(numbers) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::record::Text;
    use super::super::xml::lexical;
    use super::*;

    #[test]
    fn dates_read_as_they_print() {
        for text in [
            "0001-01-01T00:00:00",
            "1999-12-31T23:59:59.9999999Z",
            "2000-02-29T12:00:00",
            "2020-01-02T03:04:05Z",
            "2020-03-01T00:00:00.5",
            "9999-12-31T23:59:59.9999999",
        ] {
            let raw = parse_date_time(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(lexical(&Text::DateTime(raw)), text);
        }
        assert_eq!(parse_date_time("2020-01-02T03:04:05"), Some(637_135_310_450_000_000));
        for wrong in ["", "2020-01-02", "2020-13-01T00:00:00", "2021-02-29T00:00:00", "0000-01-01T00:00:00"] {
            assert_eq!(parse_date_time(wrong), None, "{wrong}");
        }
        for wrong in ["2020-01-02T24:00:00", "2020-01-02T03:04:05.", "2020-01-02T03:04:05+02:00", "x"] {
            assert_eq!(parse_date_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn decimals_read_as_they_print() {
        let most = "79228162514264337593543950335";
        for text in ["0", "12.340", "-0.5", most, "-0.0000000000000000000000000001"] {
            let value = parse_decimal(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(lexical(&Text::Decimal(value)), text);
        }
        for wrong in ["", "-", ".5", "1.", "1e3", "+1", "79228162514264337593543950336", "1.2.3"] {
            assert_eq!(parse_decimal(wrong), None, "{wrong}");
        }
    }
}
