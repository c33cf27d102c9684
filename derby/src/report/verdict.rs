//! Who won: a sentence for each kind of contest, out of nothing but the rows.
//!
//! A contest is one operation, one wire, one transport and one way (peer to peer, or through which
//! router): our fastest there in its default mode against the fastest rival; without a rival, beside
//! raw bytes. The two are chosen once for all placements, and then compared at each.
//!
//! Invariants: two medians whose intervals overlap cannot be told apart, and nobody wins. Each sentence
//! begins with the name of its race, by which the page groups them.

use super::grid::PLACEMENTS;
use super::{Report, Row, items, passes, short};
use crate::contestants::Route;
use crate::race::{ALL, READ_1, READ_100, Race};

const OURS: &str = "everywire";
const RAW: &str = "raw";
const DEFAULT: &str = "default";

/// What makes rows comparable: race, operation, wire, transport, route, published system, and the mode
/// of ours.
type Kind<'r> = (&'r str, &'r str, Option<&'r str>, &'r str, Route, Option<&'r str>, &'r str);

/// All of the sentences, in the order of the races.
pub(super) fn verdicts(report: &Report) -> Vec<String> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for race in ALL {
        for row in report.rows.iter().filter(|row| row.race == race.name && counts(race, row)) {
            let kind = kind(row);
            if ![DEFAULT, "connect"].contains(&kind.6) {
                continue;
            }
            // Rows without a wire (in process) have nobody beside them.
            if row.wire.is_some() && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let races = ALL.iter().filter(|race| race.reads());
    let more = races.flat_map(|race| items::verdicts(report, race));
    let passed = passes::verdicts(report);
    kinds.iter().filter_map(|kind| verdict(report, kind)).chain(more).chain(passed).collect()
}

/// Whether a row takes part in a contest. Of a race with many functions the headline stands for all.
fn counts(race: &Race, row: &Row) -> bool {
    if race.passes() {
        return false;
    }
    if race.reads() {
        // Several clients and rates have sentences of their own.
        return !race.rated && [READ_100, READ_1].contains(&row.operation);
    }
    let all = race.cycles || race.transfers();
    if all { race.counts(row.operation) } else { row.operation == race.headline }
}

/// The kind of a row.
fn kind(row: &Row) -> Kind<'_> {
    let reads = ALL.iter().any(|race| race.reads() && race.name == row.race);
    if reads {
        // Whoever reads process data is comparable, by whatever wire. What ours costs without signatures is of interest beside those
        // who have none.
        let mode = if row.contestant == OURS { row.mode } else { DEFAULT };
        let wire = row.wire.map(|_| "process data");
        return (row.race, row.operation, wire, row.transport, row.route, None, mode);
    }
    (row.race, row.operation, row.wire, row.transport, row.route, row.published_by, DEFAULT)
}

/// The sentence for one kind; `None` if nobody of it has a row that can be compared.
fn verdict(report: &Report, wanted: &Kind<'_>) -> Option<String> {
    let race = ALL.iter().find(|race| race.name == wanted.0)?;
    let alike = |row: &&Row| {
        let mut kind = kind(row);
        if row.contestant == OURS {
            return row.mode == wanted.6 && kind == *wanted;
        }
        kind.6 = wanted.6;
        row.mode == DEFAULT && kind == *wanted
    };
    let rows: Vec<&Row> = report.rows.iter().filter(alike).collect();
    let ours = fastest(rows.iter().copied().filter(|row| row.contestant == OURS));
    let rival = fastest(rows.iter().copied().filter(|row| row.contestant != OURS && row.contestant != RAW));
    let operation = race.operations.iter().find(|operation| operation.name == wanted.1)?.short;
    let (subject, rival) = match (ours, rival) {
        (Some(ours), Some(rival)) => (ours, Some(rival)),
        (Some(ours), None) => (ours, None),
        // A foreign server, called by ours, stands alone.
        (None, Some(rival)) => (rival, None),
        (None, None) => return None,
    };
    let parts: Vec<String> = PLACEMENTS
        .iter()
        .filter_map(|(placement, title)| {
            let at =
                |name: &str| rows.iter().copied().find(|row| row.name == name && row.placement == *placement);
            let own = at(&subject.name)?;
            let result = match rival.and_then(|rival| at(&rival.name)) {
                Some(other) => beside(own, other),
                None => alone(own)?,
            };
            Some(format!("{title}: {result}"))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let who = match rival {
        Some(rival) => format!("{} against {}", subject.title, rival.title),
        None => subject.title.clone(),
    };
    Some(format!("{}, {operation}: {who}: {}.", race.name, parts.join("; ")))
}

fn fastest<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<&'r Row> {
    rows.min_by(|a, b| a.median_us.total_cmp(&b.median_us))
}

/// Two rows of the same kind at one placement, in words.
fn beside(own: &Row, other: &Row) -> String {
    let figures = format!("{} against {}", time(own), time(other));
    let apart = own.median_high_us < other.median_low_us || other.median_high_us < own.median_low_us;
    if !apart {
        return format!("{figures}, which cannot be told apart");
    }
    let (winner, factor) = if own.median_us < other.median_us {
        (own, other.median_us / own.median_us)
    } else {
        (other, own.median_us / other.median_us)
    };
    let name = winner.title.split(',').next().unwrap_or(&winner.title);
    format!("{figures}, {name} is {factor:.2} times as fast")
}

/// A row without a rival, beside raw bytes; `None` without those.
fn alone(own: &Row) -> Option<String> {
    Some(format!("{}, {:.2} times as long as raw bytes", time(own), own.ratio_to_raw?))
}

fn time(row: &Row) -> String {
    let few = if row.too_few { format!(" (too few: {} calls)", row.calls) } else { String::new() };
    format!("{} us{few}", short(row.median_us))
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn report() -> Report {
        let mut report = sample();
        let row = |name: &str, contestant, placement, median: f64| {
            let mut row = report.rows[1].clone();
            (row.name, row.title) = (name.into(), format!("{contestant}, TCP"));
            (row.contestant, row.placement, row.wire) = (contestant, placement, Some("giop"));
            (row.median_us, row.median_low_us, row.median_high_us) = (median, median * 0.99, median * 1.01);
            row
        };
        let rows = [
            row("everywire-tcp", "everywire", "same", 5.0),
            row("omniorb-tcp", "omniorb", "same", 10.0),
            row("everywire-tcp", "everywire", "different", 10.0),
            row("omniorb-tcp", "omniorb", "different", 10.1),
            row("everywire-tcp", "everywire", "remote", 30.0),
            row("omniorb-tcp", "omniorb", "remote", 10.0),
        ];
        report.rows.truncate(1);
        report.rows.extend(rows);
        report.relate();
        report
    }

    #[test]
    fn the_faster_wins_and_the_equal_are_said_to_be_equal() {
        let verdicts = verdicts(&report());
        assert_eq!(
            verdicts,
            [
                "calls, inout int: everywire, TCP against omniorb, TCP: same CPU: 5.00 us against 10.0 us, everywire is 2.00 times as \
              fast; different CPUs: 10.0 us against 10.1 us, which cannot be told apart; two network namespaces: 30.0 us against \
              10.0 us, omniorb is 3.00 times as fast."
            ]
        );
    }

    #[test]
    fn without_a_rival_raw_bytes_are_the_measure() {
        let mut report = report();
        report.rows.retain(|row| row.contestant != "omniorb" && row.placement == "same");
        assert_eq!(
            verdicts(&report),
            ["calls, inout int: everywire, TCP: same CPU: 5.00 us, 0.50 times as long as raw bytes."]
        );
    }

    #[test]
    fn too_few_calls_are_said_to_be() {
        let mut report = report();
        for row in &mut report.rows {
            (row.calls, row.too_few) = (7, row.contestant == "omniorb");
        }
        assert!(verdicts(&report)[0].contains("10.0 us (too few: 7 calls)"));
    }
}
