//! DATE (MS-OAUT 2.2.25): days since 1899-12-30 and a fraction of one, which is never counted backwards.
//!
//! As text it is `2026-11-23 18:15:00`, without the time where that is midnight: what ISO 8601 has, in any locale.

use everywire_model::date::civil;

/// Days from 1899-12-30 to 1970-01-01.
const EPOCH: i64 = 25_569;
/// The first and the last day that a DATE has: 0100-01-01 and 9999-12-31.
const DAYS: std::ops::RangeInclusive<i64> = -657_434..=2_958_465;
/// Seconds in a day.
const SECONDS: i64 = 86_400;

/// A DATE as text; nothing for one out of range.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn text(date: f64) -> Option<String> {
    if !date.is_finite() || date.abs() > 3e6 {
        return None;
    }
    let whole = date.trunc();
    let mut days = whole as i64;
    // Before 1899-12-30 the fraction still counts forwards in the day: -1.25 is 06:00 of the day before.
    let mut seconds = ((date - whole).abs() * SECONDS as f64).round() as i64;
    if seconds >= SECONDS {
        (days, seconds) = (days + 1, 0);
    }
    if !DAYS.contains(&days) {
        return None;
    }
    let (year, month, day) = civil(days - EPOCH);
    let date = format!("{year:04}-{month:02}-{day:02}");
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(if seconds == 0 { date } else { format!("{date} {hour:02}:{minute:02}:{second:02}") })
}

/// The DATE that is written so: `2026-11-23`, with a time behind a space or a `T`, of seconds with a fraction or without any.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn parse(text: &str) -> Option<f64> {
    let text = text.trim();
    let (date, time) = text.split_once([' ', 'T']).map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok().filter(|_| is_digits(part)));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = everywire_model::date::days(year, month, day) + EPOCH;
    // A day that its month has not comes out as another.
    if !(1..=12).contains(&month) || !DAYS.contains(&days) || civil(days - EPOCH) != (year, month, day) {
        return None;
    }
    let mut seconds = 0.0;
    if let Some(time) = time {
        let mut parts = time.splitn(3, ':');
        let whole = |part: &str, most: u32| {
            part.parse::<u32>().ok().filter(|number| is_digits(part) && *number <= most).map(f64::from)
        };
        let (hour, minute) = (whole(parts.next()?, 23)?, whole(parts.next()?, 59)?);
        let second = match parts.next() {
            Some(part) if part.starts_with(|first: char| first.is_ascii_digit()) => {
                part.parse::<f64>().ok()?
            }
            Some(_) => return None,
            None => 0.0,
        };
        if !(0.0..60.0).contains(&second) {
            return None;
        }
        seconds = hour * 3600.0 + minute * 60.0 + second;
    }
    let fraction = seconds / SECONDS as f64;
    let days = days as f64;
    Some(if days < 0.0 { days - fraction } else { days + fraction })
}

/// One to four digits: no sign and no space, which `parse` of the standard library would take.
fn is_digits(part: &str) -> bool {
    !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_text_become_one_another() {
        for (date, written) in [
            (0.0, "1899-12-30"),
            (2.0, "1900-01-01"),
            (-1.25, "1899-12-29 06:00:00"),
            (36_526.5, "2000-01-01 12:00:00"),
            (36_585.0, "2000-02-29"),
            (46_349.760_416_666_67, "2026-11-23 18:15:00"),
            (2_958_465.0, "9999-12-31"),
            (-657_434.0, "0100-01-01"),
        ] {
            assert_eq!(text(date).as_deref(), Some(written));
            assert!((parse(written).unwrap() - date).abs() < 1e-9, "{written}: {:?}", parse(written));
        }
        assert_eq!(parse("2026-11-23T18:15"), parse(" 2026-11-23 18:15:00.0 "));
        for wrong in
            ["", "2026-02-29", "2026-13-01", "2026-11-23 24:00:00", "2026-11-23 1", "x-1-1", "10000-01-01"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!((text(f64::NAN), text(2_958_466.0)), (None, None));
    }
}
