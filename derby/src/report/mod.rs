//! What a derby found: rows for machines (JSON), a table for the terminal, a page for the browser.
//!
//! A `Report` is filled by the engine in this order: rows, `relate`, what was found out beside the
//! races, `judge`; after that it only is printed. Each file below makes one part of both forms, from
//! the same rows.
//!
//! Invariants: a figure is in microseconds, or its name says its unit. `None` in a row means that
//! something does not apply or cannot be known, never zero. Names of fields are those of the JSON, and
//! so a contract.

mod chart;
mod columns;
mod cycles;
mod grid;
mod html;
mod items;
mod markup;
mod method;
mod passes;
mod story;
mod table;
mod transfers;
mod verdict;

pub use passes::PassFigures;

use crate::contestants::Route;
use crate::load::Load;
use crate::machine::Machine;
use crate::options::Options;
use crate::race::ALL;
use crate::traced::Cycle;
use crate::{broken, say};
use everywire_model::Failure;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// With fewer calls than this a row says that they are too few: of a hundred the 99th percentile is one
/// call.
pub(crate) const FEW: u64 = 100;
/// So many calls of an operation, in all kept rounds together, are aimed at where they take long: a
/// little more than `FEW`, since no round is like another.
pub(crate) const ENOUGH: u64 = 110;

/// The results of a derby.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// Who won, a sentence for each kind of contest.
    pub verdicts: Vec<String>,
    /// What others did on this machine while the races ran; none if nobody raced.
    pub load: Option<Load>,
    /// The signal that ended the derby before its time: what follows is what had been found out until then.
    pub interrupted: Option<String>,
    /// A row for each race, contestant, placement and operation.
    pub rows: Vec<Row>,
    /// The command that makes such a report.
    pub command: String,
    /// Rounds, the dropped first one included.
    pub rounds: usize,
    /// The most calls of each small operation in a round, where they were counted; otherwise the time decided.
    pub calls: Option<u64>,
    /// The time that the derby had, in seconds; none if it took as long as it took.
    pub time_s: Option<f64>,
    /// How long the races took.
    pub seconds: f64,
    /// Who raced, with versions.
    pub contestants: Vec<ContestantEntry>,
    /// Who could not, why, and what to do about it.
    pub absent: Vec<Absent>,
    /// What was asked for and not done, and why.
    pub left_out: Vec<OmittedEntry>,
    /// What clients of a foreign server say about it.
    pub remarks: Vec<String>,
    /// Where the time of one of our calls goes.
    pub split: Option<Split>,
    /// The wire trace of single cycles.
    pub traces: Vec<Cycle>,
    /// Why one was quicker than another: a sentence each, of nothing but the rows and the traces.
    pub reasons: Vec<String>,
}

/// One operation of one contestant at one placement. `None` where something does not apply or cannot be known.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The race.
    pub race: &'static str,
    /// `everywire`, `raw`, or the rival.
    pub contestant: &'static str,
    /// The wire.
    pub wire: Option<&'static str>,
    /// `in-process`, `shm`, `unix` or `tcp`.
    pub transport: &'static str,
    /// `default`, `lowest-latency`, or what a raw contestant does.
    pub mode: &'static str,
    /// What stands between client and server.
    pub route: Route,
    /// `same`, `different`, `unpinned` or `remote`.
    pub placement: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// Calls that were timed, in all kept rounds.
    pub calls: u64,
    /// Whether those are fewer than 100: too few to be quoted.
    pub too_few: bool,
    /// Median of all calls of all kept rounds, in microseconds.
    pub median_us: f64,
    /// 99th percentile of the same.
    pub p99_us: f64,
    /// Median over that of raw bytes on the same transport at the same placement.
    pub ratio_to_raw: Option<f64>,
    /// The published time of a call.
    pub published_us: Option<f64>,
    /// Kilobytes (1000 bytes) a second, at the median.
    pub kb_per_s: Option<f64>,
    /// Items a second, of all clients together: those that were read in the time that it took.
    pub items_per_s: Option<f64>,
    /// The CPU that the client used meanwhile, in percent of one CPU.
    pub client_cpu_percent: Option<f64>,
    /// The same of the server.
    pub server_cpu_percent: Option<f64>,
    /// CPU time of the client for a call, user and system.
    pub client_cpu_us: Option<f64>,
    /// The same of the server.
    pub server_cpu_us: Option<f64>,
    /// Frames of a call, both directions together.
    pub frames: Option<f64>,
    /// Bytes of a call, both directions together.
    pub bytes: Option<f64>,
    /// The contestant's full name, as for `--only`.
    pub name: String,
    /// The same for people.
    pub title: String,
    /// The median's 95 % confidence interval.
    pub median_low_us: f64,
    /// Its upper end.
    pub median_high_us: f64,
    /// First quartile of all calls.
    pub p25_us: f64,
    /// Third quartile.
    pub p75_us: f64,
    /// Rounds kept.
    pub rounds: usize,
    /// Median of the medians of the rounds.
    pub rounds_median_us: f64,
    /// The smallest of them.
    pub rounds_low_us: f64,
    /// The largest.
    pub rounds_high_us: f64,
    /// Mean of a call in each kept round, in microseconds; of a cycle also the milliseconds of 1000.
    pub runs_us: Vec<f64>,
    /// The same of the round that was dropped.
    pub dropped_us: Option<f64>,
    /// Times that a call had to wait for the other side, as traced.
    pub round_trips: Option<f64>,
    /// Whose published figure it is.
    pub published_by: Option<&'static str>,
    /// That figure, where it was a throughput.
    pub published_kb_per_s: Option<f64>,
    /// The same in items a second.
    pub published_items_per_s: Option<f64>,
    /// The CPU of client and server that was published beside it, in percent.
    pub published_cpu: Option<&'static str>,
    /// Median over the published time.
    pub ratio_to_published: Option<f64>,
    /// What passed between client and backend, in the race of those that stand there.
    pub passing: Option<PassFigures>,
}

/// A contestant that raced.
#[derive(Debug, Clone, Serialize)]
pub struct ContestantEntry {
    /// Its name.
    pub name: String,
    /// The same for people.
    pub title: String,
    /// Its version, if it has one of its own.
    pub version: Option<String>,
}

/// A contestant that could not race, or not to the end.
#[derive(Debug, Clone, Serialize)]
pub struct Absent {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

/// Something that was asked for, by name or because nothing else was, and is not in the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OmittedEntry {
    /// What it is.
    pub what: String,
    /// Why, and what to do about it.
    pub why: String,
}

impl OmittedEntry {
    /// One for each reason, with everything that was left out for it.
    pub(crate) fn grouped(all: &[Self]) -> Vec<Self> {
        let mut grouped: Vec<Self> = Vec::new();
        for one in all {
            match grouped.iter_mut().find(|known| known.why == one.why) {
                Some(known) if known.what.split("; ").any(|what| what == one.what) => {}
                Some(known) => known.what = format!("{}; {}", known.what, one.what),
                None => grouped.push(one.clone()),
            }
        }
        grouped
    }
}

/// Where the time of one call goes. The parts are measured alone, in one process; the transport is what raw bytes take.
#[derive(Debug, Clone, Serialize)]
pub struct Split {
    /// The operation.
    pub operation: String,
    /// Where it ran.
    pub placement: &'static str,
    /// The stub without the call: everything above encoding.
    pub stub_us: f64,
    /// Encoding and decoding on both sides.
    pub marshalling_us: f64,
    /// Finding the object and the operation.
    pub lookup_us: f64,
    /// The protocol of both sides, for a call that carries nothing.
    pub session_us: f64,
    /// Whole calls, one line for each transport.
    pub calls: Vec<SplitCall>,
}

/// A whole call over one transport.
#[derive(Debug, Clone, Serialize)]
pub struct SplitCall {
    /// The transport.
    pub transport: &'static str,
    /// Its median.
    pub whole_us: f64,
    /// What raw bytes take on it.
    pub transport_us: f64,
    /// What is left: the links and the runtime; below zero if waiting was cheaper than blocking.
    pub rest_us: f64,
}

/// What the child that splits a call writes, in nanoseconds; see `contestants::ours::split`.
#[derive(Deserialize)]
struct Parts {
    operation: String,
    /// The wire whose calls these are the parts of.
    wire: Option<String>,
    stub_ns: f64,
    marshalling_ns: f64,
    lookup_ns: f64,
    session_ns: f64,
}

impl Split {
    /// Reads what the splitting child says, and puts it beside the whole calls of the report at this
    /// placement.
    ///
    /// # Errors
    /// The text is not what such a child writes.
    pub(crate) fn read(text: &str, report: &Report, placement: &'static str) -> Result<Self, Failure> {
        let parts: Parts =
            serde_json::from_str(text).map_err(|error| broken(format!("the parts of a call: {error}")))?;
        let [stub_us, marshalling_us, lookup_us, session_us] =
            [parts.stub_ns, parts.marshalling_ns, parts.lookup_ns, parts.session_ns].map(|ns| ns / 1e3);
        let alone = stub_us + marshalling_us + lookup_us + session_us;
        let fits = |row: &&Row| row.operation == parts.operation && row.placement == placement;
        let calls = report.rows.iter().filter(fits).filter(|row| {
            row.contestant == "everywire" && row.mode == "default" && row.wire == parts.wire.as_deref()
        });
        let calls = calls
            .filter_map(|row| {
                let raw = report.raw_of(row)?;
                let rest_us = row.median_us - raw.median_us - alone;
                let (transport, whole_us, transport_us) = (row.transport, row.median_us, raw.median_us);
                Some(SplitCall { transport, whole_us, transport_us, rest_us })
            })
            .collect();
        Ok(Self {
            operation: parts.operation,
            placement,
            stub_us,
            marshalling_us,
            lookup_us,
            session_us,
            calls,
        })
    }
}

impl Report {
    pub(crate) fn new(machine: Machine, command: String, rounds: usize, calls: Option<u64>) -> Self {
        Self {
            machine,
            verdicts: Vec::new(),
            load: None,
            interrupted: None,
            rows: Vec::new(),
            command,
            rounds,
            calls,
            time_s: None,
            seconds: 0.0,
            contestants: Vec::new(),
            absent: Vec::new(),
            left_out: Vec::new(),
            remarks: Vec::new(),
            split: None,
            traces: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Puts each row in relation to the raw one of the same transport, placement and operation.
    pub(crate) fn relate(&mut self) {
        let ratios: Vec<Option<f64>> =
            self.rows.iter().map(|row| Some(row.median_us / self.raw_of(row)?.median_us)).collect();
        for (row, ratio) in self.rows.iter_mut().zip(ratios) {
            row.ratio_to_raw = ratio;
        }
        passes::relate(&mut self.rows);
    }

    /// Says who won.
    pub(crate) fn judge(&mut self) {
        self.verdicts = verdict::verdicts(self);
    }

    /// Who won in these rows, while more are still to come.
    pub(crate) fn verdicts_of(rows: Vec<Row>) -> Vec<String> {
        let mut report = Self { rows, ..Self::new(Machine::default(), String::new(), 0, None) };
        report.relate();
        verdict::verdicts(&report)
    }

    /// What has to be known before any figure: a derby that did not end, a machine that was busy.
    pub fn warnings(&self) -> Vec<String> {
        let interrupted = self.interrupted.iter().map(|signal| {
            format!("The derby was interrupted by {signal}: this is what had been found out until then.")
        });
        let busy = self.load.iter().filter_map(|load| load.warning.clone());
        interrupted.chain(busy).collect()
    }

    /// The raw row of the same transport, placement and operation, or of what raw bytes do instead of
    /// it. `None` in process, and where no raw contestant raced.
    pub fn raw_of(&self, row: &Row) -> Option<&Row> {
        let floor = ALL.iter().find(|race| race.name == row.race).and_then(|race| race.floor);
        let operation = floor.unwrap_or(row.operation);
        self.rows.iter().find(|raw| {
            raw.contestant == "raw"
                && raw.median_us > 0.0
                && (raw.race, raw.transport, raw.placement, raw.operation)
                    == (row.race, row.transport, row.placement, operation)
        })
    }

    /// As JSON: `machine`, `rows`, and what else is known.
    ///
    /// # Errors
    /// Never, unless memory ends.
    pub fn to_json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(self).map_err(|error| broken(error.to_string()))
    }

    /// As one page that needs nothing else: no network, no script.
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// As a table for a terminal.
    pub fn to_table(&self) -> String {
        table::text(self)
    }

    /// Writes the files that were asked for, then prints the table unless the derby is silent.
    ///
    /// # Errors
    /// A file cannot be written; those before it have been.
    pub(crate) fn deliver(&self, options: &Options) -> Result<(), Failure> {
        if let Some(path) = &options.json {
            write(path, &self.to_json()?)?;
        }
        if let Some(path) = &options.html {
            write(path, &self.to_html())?;
        }
        let table = self.to_table();
        if let Some(path) = &options.text {
            write(path, &format!("{table}\n"))?;
        }
        if !options.silent {
            say(&format!("{table}\n"));
            let written = [&options.html, &options.json, &options.text].into_iter().flatten();
            let written: Vec<String> = written.map(|path| path.display().to_string()).collect();
            if !written.is_empty() {
                say(&format!("report: {}\n", written.join(", ")));
            }
        }
        Ok(())
    }
}

/// Writes a file; `-` is standard output.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        say(text);
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| broken(format!("{}: {error}", path.display())))
}

/// A number with as many digits as are worth reading: three, and no more than three decimals.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        v if v >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// A whole number in groups of three.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report of made-up rows, for the tests of its forms.
    pub(crate) fn sample() -> Report {
        let mut report = Report::new(Machine::this(), "everywire derby calls --only <raw>".into(), 3, None);
        let row = |contestant, name: &str, transport, operation, median: f64| Row {
            race: if operation == "GetBytes 1 MB" { "bytes" } else { "calls" },
            contestant,
            wire: None,
            transport,
            mode: "default",
            route: Route::Direct,
            placement: "same",
            operation,
            calls: 200,
            too_few: false,
            median_us: median,
            p99_us: median * 2.0,
            ratio_to_raw: None,
            published_us: Some(68.685),
            kb_per_s: (operation == "GetBytes 1 MB").then_some(1e9 / median),
            items_per_s: None,
            client_cpu_percent: None,
            server_cpu_percent: None,
            client_cpu_us: Some(3.0),
            server_cpu_us: None,
            frames: Some(2.0),
            bytes: Some(104.0),
            name: name.into(),
            title: name.into(),
            median_low_us: median * 0.98,
            median_high_us: median * 1.02,
            p25_us: median * 0.95,
            p75_us: median * 1.1,
            rounds: 2,
            rounds_median_us: median,
            rounds_low_us: median * 0.97,
            rounds_high_us: median * 1.03,
            runs_us: vec![median; 2],
            dropped_us: Some(median * 3.0),
            round_trips: None,
            published_by: Some("ORBit2 (CORBA)"),
            published_kb_per_s: None,
            published_items_per_s: None,
            published_cpu: None,
            ratio_to_published: Some(median / 68.685),
            passing: None,
        };
        report.rows = vec![
            row("raw", "raw-tcp", "tcp", "in_out_int_call", 10.0),
            row("omniorb", "omniorb-tcp", "tcp", "in_out_int_call", 11.0),
            row("everywire", "everywire-shm", "shm", "in_out_int_call", 0.5),
            row("raw", "raw-tcp", "tcp", "GetBytes 1 MB", 200.0),
        ];
        report.absent.push(Absent {
            name: "ghost".into(),
            why: "is <not> here".into(),
            remedy: "call it".into(),
        });
        report.relate();
        report
    }

    #[test]
    fn rows_are_related_to_raw_of_the_same_transport() {
        let report = sample();
        let ratios: Vec<_> = report.rows.iter().map(|row| row.ratio_to_raw).collect();
        assert_eq!(ratios, [Some(1.0), Some(1.1), None, Some(1.0)]);
    }

    #[test]
    fn json_has_the_promised_keys() {
        let json: serde_json::Value = serde_json::from_str(&sample().to_json().unwrap()).unwrap();
        assert!(json["machine"]["cpu"].is_string());
        for key in [
            "race",
            "contestant",
            "wire",
            "transport",
            "mode",
            "placement",
            "operation",
            "calls",
            "median_us",
            "p99_us",
            "ratio_to_raw",
            "published_us",
            "kb_per_s",
            "client_cpu_us",
            "server_cpu_us",
            "frames",
            "bytes",
        ] {
            assert!(json["rows"][0].get(key).is_some(), "{key}");
        }
        assert!(json["rows"][2]["ratio_to_raw"].is_null());
    }

    #[test]
    fn what_was_left_out_for_one_reason_stands_together() {
        let left = |what: &str, why: &str| OmittedEntry { what: what.into(), why: why.into() };
        let all = [left("a", "late"), left("b", "far"), left("c", "late"), left("a", "late")];
        assert_eq!(OmittedEntry::grouped(&all), [left("a; c", "late"), left("b", "far")]);
    }

    #[test]
    fn few_calls_a_busy_machine_and_an_interruption_are_told_in_every_form() {
        let mut report = sample();
        (report.rows[1].calls, report.rows[1].too_few) = (37, true);
        let warning = "The machine was busy: other programs used 40 % of its CPUs".to_owned();
        report.load = Some(Load { others_share: 0.4, busy: true, warning: Some(warning), ..Load::default() });
        report.interrupted = Some("SIGINT".into());
        report.left_out.push(OmittedEntry { what: "half of it".into(), why: "time".into() });
        report.judge();
        let (text, page, json) = (report.to_table(), report.to_html(), report.to_json().unwrap());
        for part in ["too few: 37", "used 40 % of its CPUs", "interrupted by SIGINT", "half of it"] {
            assert!(text.contains(part) && page.contains(part), "{part}: {text}");
        }
        // On top, before any figure.
        assert!(
            text.find("used 40 %") < text.find("us a call")
                && page.find("used 40 %") < page.find("class=\"story")
        );
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["rows"][1]["too_few"], &json["rows"][0]["too_few"]), (&true.into(), &false.into()));
        assert_eq!(json["load"]["busy"], true);
        assert_eq!(json["interrupted"], "SIGINT");
        let quiet = sample();
        for form in [quiet.to_table(), quiet.to_html()] {
            assert!(!form.contains("too few") && !form.contains("busy"), "{form}");
        }
    }

    #[test]
    fn a_call_is_split_beside_the_whole() {
        let report = {
            let mut report = sample();
            let mut own = report.rows[1].clone();
            own.contestant = "everywire";
            report.rows.push(own);
            report
        };
        let text = r#"{"operation":"in_out_int_call","stub_ns":100.0,"marshalling_ns":200.0,"lookup_ns":50.0,"session_ns":150.0}"#;
        let split = Split::read(text, &report, "same").unwrap();
        assert_eq!(split.calls.len(), 1);
        assert!((split.calls[0].rest_us - 0.5).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.0034, 0.012, 0.5, 9.876, 12.34, 1234.5].map(short).join(" "),
            "0.00 0.0034 0.012 0.50 9.88 12.3 1234"
        );
        assert_eq!([7.0, 1234.0, 1_234_567.0].map(grouped).join(" "), "7 1,234 1,234,567");
    }
}
