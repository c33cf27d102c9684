//! Types that contracts know by name and that people spell in one word: dates, amounts of money, decimal
//! and fixed-point numbers, UUIDs. Their JSON is text; the plain form of their shape is read, too.
//!
//! A type is known by its name together with its shape, so a struct of the same name and other fields is left
//! alone. The forms are those of OLE Automation (MS-OAUT 2.2.24 to 2.2.26) and of Windows (FILETIME, GUID).
//!
//! What is read and written again is the same value, to the last digit: text that names no date that there
//! is, or has more digits than the type, is refused. All arithmetic is on integers, except for DATE, which is
//! a double.

use everywire::{Bytes, Value};
use everywire_model::date::civil;
use everywire_model::fixed::Fixed;
use everywire_model::long_double;
use everywire_model::shape::{Alias, Array, Field, Hold, Shape, Struct};
use std::borrow::Cow;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// Days from 1899-12-30, the day 0 of automation, to 1970-01-01.
const AUTOMATION_EPOCH: i64 = 25_569;
/// Days from 1601-01-01, the day 0 of file times, to 1970-01-01.
const FILE_EPOCH: i64 = 134_774;
/// The years that automation knows: 100 to 9999.
const DATES: std::ops::Range<f64> = -657_435.0..2_958_466.0;
/// Ticks of a file time in a microsecond.
const TICKS: i64 = 10;

/// What a type stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Days since 1899-12-30 with their fraction: `2003-01-31T12:30:00`.
    Date,
    /// Ten-thousandths: `12.5`.
    Currency,
    /// 96 bits, a sign and a scale: `-12.345`.
    Decimal,
    /// A fixed-point number of CORBA, which has all digits behind the point: `12.50`.
    Fixed(Fixed),
    /// A number of CORBA with 128 bits: `0.1`, `1e4000`.
    LongDouble,
    /// `606de2c5-1a8c-11d3-b68f-00c04f8b7211`.
    Uuid,
    /// Ticks of 100 ns since 1601, in UTC: `2003-01-31T12:30:00.1234567Z`.
    FileTime,
}

/// The spelling of a type, if it has one.
pub(super) fn of(shape: &Shape) -> Option<Spelling> {
    match shape {
        Shape::Alias(alias) if let Some(fixed) = Fixed::of_alias(alias) => Some(Spelling::Fixed(fixed)),
        Shape::Array(array) if long_double::is_array(array) => Some(Spelling::LongDouble),
        Shape::Alias(alias) => match (last_part(&alias.name), alias.target.resolved()) {
            ("DATE", Shape::F64) => Some(Spelling::Date),
            ("CURRENCY" | "CY", Shape::I64) => Some(Spelling::Currency),
            _ => of(&alias.target),
        },
        Shape::Struct(held) => {
            let widths: Vec<_> = held.fields.iter().map(|field| field.shape.width()).collect();
            match (last_part(&held.name), widths.as_slice()) {
                ("tagDEC" | "DECIMAL", [Some(2), Some(1), Some(1), Some(4), Some(8)]) => {
                    Some(Spelling::Decimal)
                }
                ("GUID" | "_GUID", [Some(4), Some(2), Some(2), None]) => Some(Spelling::Uuid),
                ("FILETIME" | "_FILETIME", [Some(4), Some(4)]) => Some(Spelling::FileTime),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The words of types that a value may bring with itself, and the types.
pub(super) fn named(word: &str) -> Option<Shape> {
    let alias = |name: &'static str, target| {
        Some(Shape::Alias(Hold::new(Alias { name: Cow::Borrowed(name), id: Cow::Borrowed(""), target })))
    };
    match word {
        "DATE" => alias("DATE", Shape::F64),
        "CURRENCY" => alias("CURRENCY", Shape::I64),
        "SCODE" => alias("SCODE", Shape::I32),
        "NULL" => alias("NULL", Shape::Void),
        "long double" => Some(long_double::SHAPE),
        "DECIMAL" => {
            let parts = [
                ("wReserved", Shape::U16),
                ("scale", Shape::U8),
                ("sign", Shape::U8),
                ("Hi32", Shape::U32),
                ("Lo64", Shape::U64),
            ];
            alias("DECIMAL", record("tagDEC", parts))
        }
        "GUID" => {
            let tail = Shape::Array(Hold::new(Array { element: Shape::U8, len: 8 }));
            let parts =
                [("Data1", Shape::U32), ("Data2", Shape::U16), ("Data3", Shape::U16), ("Data4", tail)];
            Some(record("GUID", parts))
        }
        _ => None,
    }
}

/// A struct with these fields.
fn record<const N: usize>(name: &'static str, parts: [(&'static str, Shape); N]) -> Shape {
    let field = |(name, shape)| Field { name: Cow::Borrowed(name), shape };
    let fields = Cow::Owned(parts.into_iter().map(field).collect());
    Shape::Struct(Hold::new(Struct { name: name.into(), id: "".into(), fields }))
}

/// The word of a type that differs from others of the same shape by its name alone.
pub(super) fn word(shape: &Shape) -> Option<&'static str> {
    let alias = match shape {
        Shape::Alias(alias) => alias,
        Shape::Array(array) if long_double::is_array(array) => return Some("long double"),
        _ => return None,
    };
    let known = ["DATE", "CURRENCY", "SCODE", "NULL", "DECIMAL"];
    known.into_iter().find(|word| *word == alias.name || (*word == "CURRENCY" && alias.name == "CY"))
}

/// A value of such a type as text; `None` if it has none, such as a date that is no number.
pub(super) fn write(spelling: Spelling, value: &Value) -> Option<String> {
    match (spelling, value) {
        (Spelling::Date, Value::Float(days)) => date(*days),
        (Spelling::Currency, Value::Integer(amount)) => {
            Some(point(*amount, 4).trim_end_matches('0').trim_end_matches('.').to_owned())
        }
        (Spelling::Decimal, Value::Struct(fields)) => {
            let part = |index: usize| integer(&fields.get(index)?.1);
            let (scale, sign, high, low) = (part(1)?, part(2)?, part(3)?, part(4)?);
            let whole = (high << 64) | low;
            let scale = usize::try_from(scale).ok().filter(|scale| *scale <= 28)?;
            match sign {
                0 => Some(point(whole, scale)),
                0x80 => Some(point(-whole, scale)),
                _ => None,
            }
        }
        (Spelling::Fixed(fixed), Value::Bytes(octets)) => fixed.text(octets),
        (Spelling::LongDouble, Value::Bytes(octets)) => long_double::text(octets),
        (Spelling::Uuid, Value::Struct(fields)) => {
            let part = |index: usize| integer(&fields.get(index)?.1);
            let (first, second, third) = (part(0)?, part(1)?, part(2)?);
            let Value::Bytes(tail) = &fields.get(3)?.1 else { return None };
            let [a, b, rest @ ..] = tail.as_ref() else { return None };
            let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(format!("{first:08x}-{second:04x}-{third:04x}-{a:02x}{b:02x}-{rest}"))
        }
        (Spelling::FileTime, Value::Struct(fields)) => {
            let part = |index: usize| integer(&fields.get(index)?.1);
            let ticks = i64::try_from((part(1)? << 32) | part(0)?).ok()?;
            let micros = ticks / TICKS - FILE_EPOCH * DAY;
            let rest = ticks % TICKS;
            let text = moment(micros, rest > 0);
            Some(if rest > 0 { format!("{text}{rest}Z") } else { format!("{text}Z") })
        }
        _ => None,
    }
}

/// What the text says; `None` if it says nothing of the kind.
pub(super) fn read(spelling: Spelling, text: &str) -> Option<Value> {
    let number = |value: i64| Value::Integer(value.into());
    match spelling {
        Spelling::Date => {
            let micros = parse_moment(text)?.0 + AUTOMATION_EPOCH * DAY;
            // Before day 0, days count downwards and their fractions upwards.
            let (days, within) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
            #[allow(clippy::cast_precision_loss)]
            let (days, part) = (days as f64, within as f64 / DAY as f64);
            let value = if days < 0.0 { days - part } else { days + part };
            DATES.contains(&value).then_some(Value::Float(value))
        }
        Spelling::Currency => {
            let (digits, scale) = digits(text)?;
            let amount = digits.checked_mul(10_i128.pow(u32::try_from(4_usize.checked_sub(scale)?).ok()?))?;
            Some(number(i64::try_from(amount).ok()?))
        }
        Spelling::Decimal => {
            let (digits, scale) = digits(text)?;
            let whole = digits.unsigned_abs();
            let scale = u8::try_from(scale).ok().filter(|scale| *scale <= 28)?;
            let (high, low) = (u32::try_from(whole >> 64).ok()?, whole as u64);
            let sign = if digits < 0 { 0x80 } else { 0 };
            Some(parts([
                ("wReserved", 0),
                ("scale", scale.into()),
                ("sign", sign),
                ("Hi32", high.into()),
                ("Lo64", low.into()),
            ]))
        }
        Spelling::Fixed(fixed) => fixed.read(text).map(|octets| Value::Bytes(octets.into())),
        Spelling::LongDouble => long_double::read(text).map(|octets| Value::Bytes(octets.to_vec().into())),
        Spelling::Uuid => {
            let text = text.trim().trim_start_matches('{').trim_end_matches('}');
            let lengths = text.split('-').map(str::len);
            if !lengths.eq([8, 4, 4, 4, 12]) {
                return None;
            }
            let plain = text.replace('-', "");
            let whole = u128::from_str_radix(&plain, 16).ok().filter(|_| !plain.starts_with('+'))?;
            let low = (whole as u64).to_be_bytes();
            let high = (whole >> 64) as u64;
            let Value::Struct(mut fields) = parts([
                ("Data1", i128::from(high >> 32)),
                ("Data2", i128::from(high >> 16 & 0xffff)),
                ("Data3", i128::from(high & 0xffff)),
            ]) else {
                return None;
            };
            fields.push(("Data4".to_owned(), Value::Bytes(Bytes::copy_from_slice(&low))));
            Some(Value::Struct(fields))
        }
        Spelling::FileTime => {
            let (micros, rest) = parse_moment(text)?;
            let ticks = micros.checked_add(FILE_EPOCH * DAY)?.checked_mul(TICKS)?.checked_add(rest)?;
            let ticks = u64::try_from(ticks).ok()?;
            Some(parts([
                ("dwLowDateTime", i128::from(ticks & 0xffff_ffff)),
                ("dwHighDateTime", i128::from(ticks >> 32)),
            ]))
        }
    }
}

/// What is expected, for messages.
pub(super) fn noun(spelling: Spelling) -> &'static str {
    match spelling {
        Spelling::Date => "a date such as 2003-01-31T12:30:00, or days since 1899-12-30",
        Spelling::Currency => "an amount with at most four decimals, such as 12.5",
        Spelling::Decimal => "a decimal number of at most 96 bits, such as \"-12.345\"",
        Spelling::Fixed(_) => "a decimal number with no more digits than its type, such as \"-12.5\"",
        Spelling::LongDouble => "a number such as 0.1 or \"1e4000\", NaN, Infinity or -Infinity",
        Spelling::Uuid => "a UUID such as 606de2c5-1a8c-11d3-b68f-00c04f8b7211",
        Spelling::FileTime => "a time such as 2003-01-31T12:30:00.1234567Z",
    }
}

/// A struct of numbers.
fn parts<const N: usize>(parts: [(&str, i128); N]) -> Value {
    Value::Struct(parts.into_iter().map(|(name, value)| (name.to_owned(), Value::Integer(value))).collect())
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// A date of automation. Its fraction counts from the day's begin also before day 0.
fn date(days: f64) -> Option<String> {
    if !DATES.contains(&days) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation)]
    let (whole, part) = (days.trunc() as i64, (days.fract().abs() * 86_400_000.0).round() as i64);
    // The type holds microseconds near the present, and no more than that is meant.
    Some(moment((whole - AUTOMATION_EPOCH) * DAY + part * 1000, false))
}

/// Microseconds since 1970 as a date and a time; with all decimals if `exact`.
fn moment(micros: i64, exact: bool) -> String {
    let (days, within) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (year, month, date) = civil(days);
    let (seconds, rest) = (within / 1_000_000, within % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let rest = match rest {
        0 if !exact => String::new(),
        rest if exact => format!(".{rest:06}"),
        rest => format!(".{rest:06}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}{rest}")
}

/// Microseconds since 1970, and ticks beyond them, of `YYYY-MM-DD`, `YYYY-MM-DDTHH:MM:SS` or with decimals; `Z` may end it.
fn parse_moment(text: &str) -> Option<(i64, i64)> {
    let text = text.trim().trim_end_matches(['Z', 'z']);
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00:00"));
    let number = |part: Option<&str>, most: i64| {
        let part = part.filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        part.parse::<i64>().ok().filter(|value| *value <= most)
    };
    let mut parts = date.splitn(3, '-');
    let (year, month, day) =
        (number(parts.next(), 9999)?, number(parts.next(), 12)?, number(parts.next(), 31)?);
    let (clock, decimals) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next(), 23)?, number(parts.next(), 59)?);
    let second = parts.next().map_or(Some(0), |part| number(Some(part), 59))?;
    if month == 0 || day == 0 || decimals.len() > 7 {
        return None;
    }
    let ticks = if decimals.is_empty() { 0 } else { number(Some(&format!("{decimals:0<7}")), 9_999_999)? };
    let days = everywire_model::date::days(year, month, day);
    let micros = days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + ticks / TICKS;
    // Only days that there are come out as they went in.
    moment(micros, false)
        .starts_with(&format!("{year:04}-{month:02}-{day:02}"))
        .then_some((micros, ticks % TICKS))
}

/// An integer with a decimal point before its last `scale` digits.
fn point(value: i128, scale: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// The digits of a decimal number without its point, and how many stood after it.
fn digits(text: &str) -> Option<(i128, usize)> {
    let text = text.trim();
    let (negative, plain) = text.strip_prefix('-').map_or((false, text), |plain| (true, plain));
    let (whole, part) = plain.split_once('.').unwrap_or((plain, ""));
    let joined = format!("{whole}{part}");
    if joined.is_empty() || joined.len() > 36 || !joined.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: i128 = joined.parse().ok()?;
    Some((if negative { -value } else { value }, part.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(spelling: Spelling, text: &str) -> Value {
        let value = read(spelling, text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(write(spelling, &value).as_deref(), Some(text));
        value
    }

    #[test]
    fn dates_count_days_from_the_thirtieth_of_december() {
        let days = |text| there_and_back(Spelling::Date, text);
        assert_eq!(days("1899-12-30T00:00:00"), Value::Float(0.0));
        assert_eq!(days("1900-01-01T12:00:00"), Value::Float(2.5));
        // MS-OAUT 2.2.25: before day 0 the fraction still counts forwards.
        assert_eq!(days("1899-12-29T06:00:00"), Value::Float(-1.25));
        assert_eq!(days("2000-02-29T23:59:59"), Value::Float(36_585.0 + 86_399.0 / 86_400.0));
        days("0100-01-01T00:00:00");
        days("9999-12-31T23:59:59");
        assert_eq!(read(Spelling::Date, "2003-01-31"), Some(Value::Float(37_652.0)));
        for wrong in ["2001-02-29", "2003-13-01", "2003-1", "noon", "", "2003-01-31T24:00:00"] {
            assert_eq!(read(Spelling::Date, wrong), None, "{wrong}");
        }
        for wrong in [f64::NAN, f64::INFINITY, 3e6, -1e6] {
            assert_eq!(write(Spelling::Date, &Value::Float(wrong)), None);
        }
    }

    #[test]
    fn amounts_are_exact() {
        assert_eq!(there_and_back(Spelling::Currency, "12.5"), Value::Integer(125_000));
        assert_eq!(read(Spelling::Currency, "-0.05"), Some(Value::Integer(-500)));
        there_and_back(Spelling::Currency, "-922337203685477.5808");
        assert_eq!(there_and_back(Spelling::Currency, "100"), Value::Integer(1_000_000));
        for wrong in ["922337203685477.5808", "1.00001", "1e3", "", "-", "1,5"] {
            assert_eq!(read(Spelling::Currency, wrong), None, "{wrong}");
        }
        for text in ["0", "-12.345", "79228162514264337593543950335", "0.0000000000000000000000000001"] {
            there_and_back(Spelling::Decimal, text);
        }
        assert_eq!(read(Spelling::Decimal, "79228162514264337593543950336"), None);
    }

    #[test]
    fn uuids_and_file_times_are_one_word() {
        let uuid = "606de2c5-1a8c-11d3-b68f-00c04f8b7211";
        there_and_back(Spelling::Uuid, uuid);
        assert_eq!(read(Spelling::Uuid, &format!("{{{}}}", uuid.to_uppercase())), read(Spelling::Uuid, uuid));
        assert_eq!(read(Spelling::Uuid, "606de2c51a8c11d3b68f00c04f8b7211"), None);
        there_and_back(Spelling::FileTime, "2003-01-31T12:30:00.1234567Z");
        let begin = there_and_back(Spelling::FileTime, "1601-01-01T00:00:00Z");
        assert_eq!(begin, parts([("dwLowDateTime", 0), ("dwHighDateTime", 0)]));
    }
}
