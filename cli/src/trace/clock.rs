//! Times of day.

use std::time::Duration;

/// The time of day (UTC) of a moment counted from 1970.
pub(crate) fn time_of_day(moment: Duration) -> String {
    let seconds = moment.as_secs() % 86_400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, moment.subsec_micros())
}

/// The moment as RFC 3339 writes it.
pub(crate) fn timestamp(moment: Duration) -> String {
    let (year, month, day) = date(moment.as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}T{}Z", time_of_day(moment))
}

/// The day of the Gregorian calendar that is so many days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last; eras are 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
