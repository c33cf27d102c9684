//! How values of simple types that the neutral model has as text are written (XML Schema part 2, section 3.2 and 3.3).
//!
//! A decimal, a date or a duration keeps all its digits, since it travels as the text that it is. So a text that is no value of its type
//! has to be found here, before a peer refuses it. White space around a value is none of it (`whiteSpace`, section 4.3.6).
//!
//! Not checked: `anyURI`, which takes nearly every text, and names and tokens, whose type .NET and Java take for a string.

use super::names::{QName, SCHEMA, SERIALIZATION};
use everywire_model::Shape;

/// A simple type with values that are not every text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lexical {
    /// `xs:decimal`: `-12.50`.
    Decimal,
    /// `xs:integer` and the types between bounds of one sign: `-12`.
    Integer(Bounds),
    /// `xs:dateTime`: `2003-01-31T12:30:00.5Z`.
    DateTime,
    /// `xs:date`: `2003-01-31`, with or without a time zone, as all that follow.
    Date,
    /// `xs:time`: `12:30:00.5`.
    Time,
    /// `xs:gYear`: `2003`.
    Year,
    /// `xs:gYearMonth`: `2003-01`.
    YearMonth,
    /// `xs:gMonth`: `--01`, and `--01--` as the first edition had it.
    Month,
    /// `xs:gMonthDay`: `--01-31`.
    MonthDay,
    /// `xs:gDay`: `---31`.
    Day,
    /// `xs:duration`, and the data contracts' type of that name: `P1DT2H3M4.5S`.
    Duration,
    /// `xs:hexBinary`: `0FB7`.
    HexBinary,
    /// The data contracts' `guid`: `606de2c5-1a8c-11d3-b68f-00c04f8b7211`.
    Guid,
}

/// Which whole numbers a type has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// All.
    None,
    /// Those of 0 and above.
    NonNegative,
    /// Those of 1 and above.
    Positive,
    /// Those of 0 and below.
    NonPositive,
    /// Those of -1 and below.
    Negative,
}

impl Lexical {
    /// The type that a shape's aliases name first.
    #[must_use]
    pub fn of(shape: &Shape) -> Option<Self> {
        let mut shape = shape;
        while let Shape::Alias(alias) = shape {
            let name = QName::parse(&alias.id);
            if let Some(found) = name.and_then(|name| Self::named(&name.namespace, &name.local)) {
                return matches!(alias.target.resolved(), Shape::Text(_)).then_some(found);
            }
            shape = &alias.target;
        }
        match shape {
            Shape::Optional(held) => Self::of(held),
            _ => None,
        }
    }

    /// The type of this name.
    #[inline]
    #[must_use]
    pub fn named(namespace: &str, local: &str) -> Option<Self> {
        match (namespace, local) {
            (SERIALIZATION, "guid") => Some(Self::Guid),
            (SERIALIZATION, "duration") => Some(Self::Duration),
            (SCHEMA, _) => Self::of_schema(local),
            _ => None,
        }
    }

    fn of_schema(local: &str) -> Option<Self> {
        Some(match local {
            "decimal" => Self::Decimal,
            "integer" => Self::Integer(Bounds::None),
            "nonNegativeInteger" => Self::Integer(Bounds::NonNegative),
            "positiveInteger" => Self::Integer(Bounds::Positive),
            "nonPositiveInteger" => Self::Integer(Bounds::NonPositive),
            "negativeInteger" => Self::Integer(Bounds::Negative),
            "dateTime" => Self::DateTime,
            "date" => Self::Date,
            "time" => Self::Time,
            "gYear" => Self::Year,
            "gYearMonth" => Self::YearMonth,
            "gMonth" => Self::Month,
            "gMonthDay" => Self::MonthDay,
            "gDay" => Self::Day,
            "duration" => Self::Duration,
            "hexBinary" => Self::HexBinary,
            _ => return None,
        })
    }

    /// What the type is called, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decimal => "xs:decimal",
            Self::Integer(Bounds::None) => "xs:integer",
            Self::Integer(Bounds::NonNegative) => "xs:nonNegativeInteger",
            Self::Integer(Bounds::Positive) => "xs:positiveInteger",
            Self::Integer(Bounds::NonPositive) => "xs:nonPositiveInteger",
            Self::Integer(Bounds::Negative) => "xs:negativeInteger",
            Self::DateTime => "xs:dateTime",
            Self::Date => "xs:date",
            Self::Time => "xs:time",
            Self::Year => "xs:gYear",
            Self::YearMonth => "xs:gYearMonth",
            Self::Month => "xs:gMonth",
            Self::MonthDay => "xs:gMonthDay",
            Self::Day => "xs:gDay",
            Self::Duration => "xs:duration",
            Self::HexBinary => "xs:hexBinary",
            Self::Guid => "guid",
        }
    }

    /// A value of the type.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Decimal => "0.0",
            Self::Integer(Bounds::Positive) => "1",
            Self::Integer(Bounds::Negative) => "-1",
            Self::Integer(_) => "0",
            Self::DateTime => "2000-01-01T00:00:00Z",
            Self::Date => "2000-01-01",
            Self::Time => "00:00:00",
            Self::Year => "2000",
            Self::YearMonth => "2000-01",
            Self::Month => "--01",
            Self::MonthDay => "--01-01",
            Self::Day => "---01",
            Self::Duration => "PT0S",
            Self::HexBinary => "00",
            Self::Guid => "00000000-0000-0000-0000-000000000000",
        }
    }

    /// What a value is that is missing, as data contracts have it: zero, or .NET's first moment. None for types in which nothing says
    /// that.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        Some(match self {
            Self::Decimal | Self::Integer(Bounds::None | Bounds::NonNegative | Bounds::NonPositive) => "0",
            Self::DateTime => "0001-01-01T00:00:00",
            Self::Date => "0001-01-01",
            Self::Time => "00:00:00",
            Self::Duration => "PT0S",
            Self::HexBinary => "",
            Self::Guid => "00000000-0000-0000-0000-000000000000",
            _ => return None,
        })
    }

    /// Whether a text is a value of the type. A `dateTime` may leave out its time: some write it so, and .NET reads it.
    ///
    /// ```
    /// use everywire_idl::wsdl::lexical::Lexical;
    /// assert!(Lexical::Decimal.fits("-12.50") && !Lexical::Decimal.fits("abc"));
    /// ```
    #[must_use]
    pub fn fits(self, text: &str) -> bool {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        match self {
            Self::Decimal => is_decimal(text),
            Self::Integer(bounds) => is_integer(text, bounds),
            Self::DateTime => match text.split_once('T') {
                Some((date, time)) => is_date(date) && is_time(without_zone(time)),
                None => Self::Date.fits(text),
            },
            Self::Date => is_date(without_zone(text)),
            Self::Time => is_time(without_zone(text)),
            Self::Year => year(without_zone(text)).is_some(),
            Self::YearMonth => {
                let parts = without_zone(text).rsplit_once('-');
                parts.is_some_and(|(of, month)| year(of).is_some() && number(month, 1, 12).is_some())
            }
            Self::Month => {
                let text = without_zone(text);
                let month = text.strip_prefix("--").map(|rest| rest.strip_suffix("--").unwrap_or(rest));
                month.is_some_and(|month| number(month, 1, 12).is_some())
            }
            Self::MonthDay => {
                let parts = without_zone(text).strip_prefix("--").and_then(|rest| rest.split_once('-'));
                // Of a year that nobody knows February may have 29 days.
                parts.is_some_and(|(month, day)| is_day(2000, month, day))
            }
            Self::Day => {
                let day = without_zone(text).strip_prefix("---");
                day.is_some_and(|day| number(day, 1, 31).is_some())
            }
            Self::Duration => is_duration(text),
            Self::HexBinary => {
                text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Self::Guid => is_guid(text),
        }
    }
}

/// Whether there are digits, and nothing else.
fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number of exactly two digits, within bounds.
fn number(text: &str, from: u32, to: u32) -> Option<u32> {
    if text.len() != 2 || !is_digits(text) {
        return None;
    }
    text.parse().ok().filter(|value| (from..=to).contains(value))
}

/// Section 3.2.3: digits on one side of the point at least.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    match digits.split_once('.') {
        None => is_digits(digits),
        Some((whole, "")) => is_digits(whole),
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
    }
}

/// Sections 3.3.13 to 3.3.25.
fn is_integer(text: &str, bounds: Bounds) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_zero = digits.bytes().all(|byte| byte == b'0');
    let is_negative = text.starts_with('-') && !is_zero;
    is_digits(digits)
        && match bounds {
            Bounds::None => true,
            Bounds::NonNegative => !is_negative,
            Bounds::Positive => !is_negative && !is_zero,
            Bounds::NonPositive => is_negative || is_zero,
            Bounds::Negative => is_negative,
        }
}

/// The text without its time zone, if that is one: `Z`, or hours and minutes up to 14:00 (section 3.2.7.3).
fn without_zone(text: &str) -> &str {
    if let Some(plain) = text.strip_suffix('Z') {
        return plain;
    }
    let Some((plain, zone)) = text.len().checked_sub(6).and_then(|at| text.split_at_checked(at)) else {
        return text;
    };
    let Some((hours, minutes)) = zone.strip_prefix(['+', '-']).and_then(|zone| zone.split_once(':')) else {
        return text;
    };
    let is_zone = match number(hours, 0, 14) {
        Some(14) => minutes == "00",
        Some(_) => number(minutes, 0, 59).is_some(),
        None => false,
    };
    if is_zone { plain } else { text }
}

/// The year: four digits or more, and a sign before it for those before the first (section 3.2.7). By its last digits, which tell the
/// length of February.
fn year(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() < 4 || !is_digits(digits) || (digits.len() > 4 && digits.starts_with('0')) {
        return None;
    }
    // Leap years come round every 400 years, and 10000 is a multiple of that.
    digits.get(digits.len() - 4..)?.parse().ok()
}

/// Whether a month of this year has this day.
fn is_day(year: u32, month: &str, day: &str) -> bool {
    let is_leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let days = match number(month, 1, 12) {
        Some(2) => 28 + u32::from(is_leap),
        Some(4 | 6 | 9 | 11) => 30,
        Some(_) => 31,
        None => return false,
    };
    number(day, 1, days).is_some()
}

/// Section 3.2.9, without a time zone.
fn is_date(text: &str) -> bool {
    let parts = text.rsplit_once('-').and_then(|(rest, day)| Some((rest.rsplit_once('-')?, day)));
    parts.is_some_and(|((of, month), day)| year(of).is_some_and(|year| is_day(year, month, day)))
}

/// Section 3.2.8, without a time zone. Midnight may be the end of a day.
fn is_time(text: &str) -> bool {
    let mut parts = text.splitn(3, ':');
    let (Some(hour), Some(minute), Some(seconds)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let is_midnight = || minute == "00" && second == "00" && fraction.bytes().all(|byte| byte == b'0');
    let is_hour = number(hour, 0, 23).is_some() || (hour == "24" && is_midnight());
    is_hour && number(minute, 0, 59).is_some() && number(second, 0, 59).is_some() && is_digits(fraction)
}

/// Section 3.2.6: numbers with letters in this order, and one of them at least on the side where a `T` is.
fn is_duration(text: &str) -> bool {
    let Some(parts) = text.strip_prefix('-').unwrap_or(text).strip_prefix('P') else { return false };
    let (days, time) = parts.split_once('T').map_or((parts, None), |(days, time)| (days, Some(time)));
    let is_there = !days.is_empty() || time.is_some();
    is_there
        && are_amounts(days, "YMD")
        && time.is_none_or(|time| !time.is_empty() && are_amounts(time, "HMS"))
}

/// Whether a text is of numbers, each with one of these letters behind it, in their order; those of `S` may have a fraction.
fn are_amounts(text: &str, letters: &str) -> bool {
    let (mut rest, mut left) = (text, letters);
    while !rest.is_empty() {
        let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) else { return false };
        let (amount, behind) = rest.split_at(at);
        let mut chars = behind.chars();
        let Some((_, later)) = chars.next().and_then(|letter| left.split_once(letter)) else { return false };
        let is_amount = match amount.split_once('.') {
            Some((whole, fraction)) => behind.starts_with('S') && is_digits(whole) && is_digits(fraction),
            None => is_digits(amount),
        };
        if !is_amount {
            return false;
        }
        (rest, left) = (chars.as_str(), later);
    }
    true
}

/// Groups of hexadecimal digits, as the schema of data contracts has them.
fn is_guid(text: &str) -> bool {
    let is_group =
        |(part, len): (&str, usize)| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split('-').count() == 5 && text.split('-').zip([8, 4, 4, 4, 12]).all(is_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 16] = [
        "decimal",
        "integer",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "dateTime",
        "date",
        "time",
        "gYear",
        "gYearMonth",
        "gMonth",
        "gMonthDay",
        "gDay",
        "duration",
        "hexBinary",
    ];

    /// For each type what is a value of it, and what is not, between blanks.
    #[test]
    fn texts_are_values_of_their_types_as_the_schema_of_schemas_has_it() {
        let cases = [
            ("decimal", "0 -1.23 +100000.00 .5 210. 12678967.543233", "abc 1e3 . - 1,5 0x1 INF 1.2.3"),
            ("integer", "-1 0 +1 12678967543233000000000000000000000000", "1.0 1. - x"),
            ("nonNegativeInteger", "0 -0 7 +7", "-1"),
            ("positiveInteger", "1 +1 007", "0 -1 -0"),
            ("nonPositiveInteger", "0 -0 -7", "1"),
            ("negativeInteger", "-1", "0 1 -0"),
            (
                "dateTime",
                "2002-10-10T12:00:00-05:00 2002-10-10T12:00:00Z -0044-03-15T00:00:00 12004-04-12T13:20:00.1234567+14:00 \
                 2004-02-29T24:00:00 2002-10-10 2002-10-10Z",
                "2002-10-10T 2002-10 2002-10-10T12:00 2001-02-29T00:00:00 2002-13-01T00:00:00 2002-1-1T00:00:00 2002-10-10T24:00:01 \
                 2002-10-10T12:00:00+14:01 02002-10-10T12:00:00 2002-10-10t12:00:00 2002-10-10T12:00:60 2002-10-10T12:00:00.",
            ),
            (
                "date",
                "2002-10-10 2002-10-10+13:00 1900-02-28Z -2002-01-01",
                "1900-02-29 2002-10 10.10.2002 2002-10-10T00:00:00 \u{e9}",
            ),
            ("time", "13:20:00.000 13:20:00-05:00 24:00:00", "13:20 1:20:00 25:00:00 13:20:00.5.5"),
            ("gYear", "2004 -0044 12004Z 2004-05:00", "04 x"),
            ("gYearMonth", "2004-05 2004-05Z", "2004-13 2004"),
            ("gMonth", "--05 --05-- --05Z", "05 --5 --13"),
            ("gMonthDay", "--02-29 --12-31Z", "--02-30 --13-01"),
            ("gDay", "---31 ---01Z", "---32 31"),
            (
                "duration",
                "P1347Y P1347M P1Y2MT2H P0Y1347M0D -P1347M PT1.5S P1DT2H3M4.005S",
                "P P-1347M P1Y2MT P1S PT1.5H 1D P1M1Y PT1",
            ),
            ("hexBinary", "0FB7 ab", "0FB 0G"),
            (
                "guid",
                "606de2c5-1a8c-11d3-b68f-00C04F8B7211",
                "606de2c5 {606de2c5-1a8c-11d3-b68f-00c04f8b7211}",
            ),
        ];
        for (name, right, wrong) in cases {
            let namespace = if name == "guid" { SERIALIZATION } else { SCHEMA };
            let kind = Lexical::named(namespace, name).unwrap();
            for text in right.split_ascii_whitespace() {
                assert!(kind.fits(text) && kind.fits(&format!(" {text}\n")), "{name} {text}");
            }
            for text in wrong.split_ascii_whitespace() {
                assert!(!kind.fits(text), "{name} {text}");
            }
            assert!(kind.fits("") == (kind == Lexical::HexBinary), "{name}");
        }
    }

    #[test]
    fn examples_and_what_is_missing_are_values_of_their_types() {
        for name in ALL {
            let kind = Lexical::named(SCHEMA, name).unwrap();
            assert!(kind.fits(kind.example()), "{name}");
            assert!(kind.missing().is_none_or(|missing| kind.fits(missing)), "{name}");
            assert_eq!(kind.name(), format!("xs:{name}"));
        }
    }
}
