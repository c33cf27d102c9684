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
    let (number, unit) = split(text);
    let number: f64 =
        number.parse().map_err(|_| "a time such as 5s, 250ms or none is expected".to_owned())?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; use us, ms, s, m or h")),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(Deadline(Some(time))),
        Ok(_) => Err("a time limit of nothing lets nothing happen; `none` waits for ever".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A time limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Option<Duration>);

/// A time that something may take: `90s`, `10m`.
///
/// # Errors
///
/// Those of [`deadline`]; or it is `none`.
pub fn time(text: &str) -> Result<Duration, String> {
    deadline(text)?.0.ok_or_else(|| "a time such as 90s or 10m is expected".to_owned())
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
        assert!(time("none").is_err());
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
