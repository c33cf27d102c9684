//! Times and sizes as people write them.

use std::time::Duration;

/// A time limit: `5s`, `250ms`, `2m`, or `none`.
///
/// # Errors
///
/// What is wrong, as a sentence: there is no number, an unknown unit, or nothing is left of the time.
pub fn deadline(text: &str) -> Result<Deadline, String> {
    if text == "none" {
        return Ok(Deadline(None));
    }
    let time = read(text, "a time such as 5s, 250ms or none is expected")?;
    match time.is_zero() {
        false => Ok(Deadline(Some(time))),
        true => Err("a time limit of nothing lets nothing happen; `none` waits for ever".into()),
    }
}

/// A number and its unit; without a number it is said what was `expected`.
fn read(text: &str, expected: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let number: f64 = number.parse().map_err(|_| expected.to_owned())?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; use us, ms, s, m or h")),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "this time is out of range".to_owned())
}

/// A time limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Option<Duration>);

/// A time that something may take: `90s`, `10m`.
///
/// # Errors
///
/// Those of [`deadline`]; it is never `none`.
pub fn time(text: &str) -> Result<Duration, String> {
    let time = read(text, "a time such as 90s, 250ms or 10m is expected")?;
    if time.is_zero() { Err("a time of nothing lets nothing happen".into()) } else { Ok(time) }
}

/// A number of octets: `4096`, `64MiB`, `10kB`.
///
/// # Errors
///
/// What is wrong, as a sentence: there is no whole number, an unknown unit, or it is out of range.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "k" => 1000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(format!("`{unit}` is no unit of size; use B, kB, MB, GB, KiB, MiB or GiB")),
    };
    let number: u64 = number.parse().map_err(|_| "a size such as 64MiB is expected".to_owned())?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(|| "this size is out of range".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    (number, unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read() {
        assert_eq!(deadline("250ms"), Ok(Deadline(Some(Duration::from_millis(250)))));
        assert_eq!(deadline("1.5 s"), Ok(Deadline(Some(Duration::from_millis(1500)))));
        assert_eq!(deadline("none"), Ok(Deadline(None)));
        assert!(deadline("5 fortnights").unwrap_err().contains("fortnights"));
        assert!(deadline("0s").is_err() && deadline("s").is_err() && deadline("1e").is_err());
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        // What has no end is not offered where it is not taken.
        for wrong in ["none", "0s", "-5s"] {
            assert!(!time(wrong).unwrap_err().contains("none"), "{wrong}");
            assert!(wrong == "none" || deadline(wrong).unwrap_err().contains("none"), "{wrong}");
        }
        for long in ["99999999999999999999s", "99999999999999999999h"] {
            assert_eq!(time(long).unwrap_err(), "this time is out of range");
        }
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("10kB"), Ok(10_000));
        assert!(
            size("1.5MB").is_err()
                && size("99999999999GiB").is_err()
                && size("0").is_err()
                && size("").is_err()
        );
    }
}
