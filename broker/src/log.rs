//! The log: a line of JSON for each event.

use serde_json::{Map, Value as Json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Gets the lines.
pub type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Writes lines of JSON: `time`, `level`, `event`, and what else there is to say.
#[derive(Clone)]
pub(crate) struct Log {
    /// Takes a line.
    sink: Sink,
    /// Whether connections and calls are logged, too.
    verbose: bool,
}

impl Log {
    pub(crate) fn new(sink: Sink, verbose: bool) -> Self {
        Self { sink, verbose }
    }

    /// Whether it has what happens with each call.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Something that belongs to the life of a broker.
    pub(crate) fn info(&self, event: &str, fields: &[(&str, Json)]) {
        self.line("info", event, fields);
    }

    /// Something that somebody may have to look after.
    pub(crate) fn warn(&self, event: &str, fields: &[(&str, Json)]) {
        self.line("warn", event, fields);
    }

    /// Something that happens with each call or connection: only if that was asked for.
    pub(crate) fn detail(&self, event: &str, fields: impl FnOnce() -> Vec<(&'static str, Json)>) {
        if self.verbose {
            self.line("debug", event, &fields());
        }
    }

    /// One line, given to the sink as a whole, without its line feed.
    fn line(&self, level: &str, event: &str, fields: &[(&str, Json)]) {
        let mut line = Map::new();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        line.insert("time".into(), timestamp(now).into());
        line.insert("level".into(), level.into());
        line.insert("event".into(), event.into());
        for (name, value) in fields {
            line.insert((*name).to_owned(), value.clone());
        }
        (self.sink)(&Json::Object(line).to_string());
    }
}

/// A moment counted from 1970 as RFC 3339 writes it.
pub(crate) fn timestamp(moment: Duration) -> String {
    let (days, seconds) = (moment.as_secs() / 86_400, moment.as_secs() % 86_400);
    // Years begin in March here, so that the leap day is the last; eras are 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", moment.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_line_is_json_with_a_time() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let log = Log::new(Arc::new(move |line| kept.lock().unwrap().push(line.to_owned())), false);
        log.warn("refused", &[("route", "a\"b".into())]);
        log.detail("call", Vec::new);
        let lines = lines.lock().unwrap();
        let line: Json = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((lines.len(), &line["event"], &line["route"]), (1, &"refused".into(), &"a\"b".into()));
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(timestamp(Duration::new(951_782_400, 5_000)), "2000-02-29T00:00:00.000005Z");
        assert_eq!(timestamp(Duration::from_secs(1_709_251_199)), "2024-02-29T23:59:59.000000Z");
    }
}
