//! Times of day.

use std::time::Duration;

/// The time of day (UTC) of a moment counted from 1970, with microseconds: `HH:MM:SS.ffffff`.
pub(crate) fn time_of_day(moment: Duration) -> String {
    let seconds = moment.as_secs() % 86_400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, moment.subsec_micros())
}

/// The moment as RFC 3339 writes it, in UTC with microseconds.
pub(crate) fn timestamp(moment: Duration) -> String {
    let (year, month, day) =
        everywire::model::date::civil(i64::try_from(moment.as_secs() / 86_400).unwrap_or_default());
    format!("{year:04}-{month:02}-{day:02}T{}Z", time_of_day(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(timestamp(Duration::ZERO), "1970-01-01T00:00:00.000000Z");
        assert_eq!(timestamp(Duration::new(951_782_400, 5_000)), "2000-02-29T00:00:00.000005Z");
        assert_eq!(timestamp(Duration::from_secs(1_709_251_199)), "2024-02-29T23:59:59.000000Z");
    }
}
