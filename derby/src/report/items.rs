//! The third race in the report: items a second with the CPU of both sides, the published figures
//! beside those of today, how far four clients get beyond one, and what going at a rate costs.
//!
//! * A row is of reads (its race has rounds, and raw bytes as the measure) or of a rate (neither).
//! * Items a second are those of all clients together in the time that it took; microseconds are those
//!   of one client's read.
//! * CPU in percent is of one CPU, so several clients or event loops may have more than 100.
//! * Invariant: what has no figure has a dash, and a system of then stands above those of today that
//!   are put beside it.

use super::grid::{Grid, PLACEMENTS, few, median};
use super::markup::{self, table};
use super::{Report, Row, columns, grouped, short};
use crate::race::{Clients, Operation, Race};
use std::fmt::Write;

/// What the columns of a table are called.
const HEAD: [&str; 12] = [
    "items a second",
    "operation",
    "items/s",
    "us a read",
    "95 % interval",
    "p99",
    "x raw",
    "x published",
    "CPU us client",
    "server",
    "CPU % client / server",
    "reads",
];
/// The same of what goes at a rate.
const RATES: [&str; 6] = [
    "CPU at a rate",
    "rate",
    "CPU % client",
    "server",
    "items/s",
    "us to read 100, or from change to client",
];

/// A line for each operation of each contestant, operation by operation.
pub(super) fn grid(race: &Race, rows: &[&Row]) -> Grid {
    let lines = race.operations.iter().flat_map(|operation| {
        let of = rows.iter().filter(|row| row.operation == operation.name);
        of.map(|row| if race.rated { rate(operation, row) } else { line(operation, row) })
    });
    let lines = lines.collect();
    let head = if race.rated { RATES.map(String::from).into() } else { HEAD.map(String::from).into() };
    Grid { head, lines }
}

/// A row of reads.
fn line(operation: &Operation, row: &Row) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(dash, short);
    vec![
        row.title.clone(),
        operation.short.to_owned(),
        row.items_per_s.map_or_else(dash, grouped),
        median(row),
        format!("{}..{}", short(row.median_low_us), short(row.median_high_us)),
        short(row.p99_us),
        row.ratio_to_raw.map_or_else(dash, |ratio| format!("{ratio:.2}")),
        number(row.ratio_to_published),
        number(row.client_cpu_us),
        number(row.server_cpu_us),
        format!("{} / {}", percent(row.client_cpu_percent), percent(row.server_cpu_percent)),
        grouped(row.calls as f64),
    ]
}

/// A row at a rate: what it costs comes first, since the rate is given.
fn rate(operation: &Operation, row: &Row) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(dash, short);
    vec![
        row.title.clone(),
        operation.name.to_owned(),
        number(row.client_cpu_percent),
        number(row.server_cpu_percent),
        row.items_per_s.map_or_else(dash, grouped),
        median(row),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| format!("{value:.0}"))
}

/// A line of then and now: a system of then or a contestant of today.
struct Line {
    title: String,
    class: &'static str,
    /// For each distance and each operation: items a second, and the CPU of both sides.
    cells: Vec<Option<[String; 2]>>,
}

/// The lines; none unless somebody of today raced.
fn lines(report: &Report, race: &Race) -> Vec<Line> {
    if !race.reads() || race.rated {
        return Vec::new();
    }
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.race == race.name).collect();
    // Processes of one machine are where the kernel puts them, as they were then.
    let local = ["unpinned", "different", "same"]
        .into_iter()
        .find(|name| rows.iter().any(|row| row.placement == *name));
    let cells = |of: &dyn Fn(&Operation, bool) -> Option<[String; 2]>| {
        let at = |remote: bool| race.operations.iter().map(move |operation| (operation, remote));
        race.distances().into_iter().flat_map(at).map(|(operation, remote)| of(operation, remote)).collect()
    };
    let mut lines = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    for system in columns::systems(race).into_iter().map(Some).chain([None]) {
        if let Some(system) = system {
            lines.push(Line {
                title: format!("{system}, published"),
                class: "past",
                cells: cells(&|operation, remote| {
                    let figure = race.published_by(system, operation.name, remote)?;
                    Some([grouped(operation.items_per_s(figure.us)?), figure.cpu.to_owned()])
                }),
            });
        }
        for row in rows.iter().filter(|row| row.contestant != "raw" && of(&rows, row) == system) {
            if taken.contains(&row.name.as_str()) {
                continue;
            }
            taken.push(&row.name);
            lines.push(Line {
                title: row.title.clone(),
                class: super::markup::class(row.contestant),
                cells: cells(&|operation, remote| {
                    let placement = if remote { Some("remote") } else { local };
                    let found = rows.iter().find(|other| {
                        other.name == row.name
                            && other.operation == operation.name
                            && Some(other.placement) == placement
                    })?;
                    let cpu = format!(
                        "{} / {}",
                        percent(found.client_cpu_percent),
                        percent(found.server_cpu_percent)
                    );
                    Some([format!("{}{}", grouped(found.items_per_s?), few(found)), cpu])
                }),
            });
        }
    }
    if taken.is_empty() { Vec::new() } else { lines }
}

/// The system that stands above a contestant, by any of its rows.
fn of(rows: &[&Row], row: &Row) -> Option<&'static str> {
    rows.iter().filter(|other| other.name == row.name).find_map(|row| row.published_by)
}

/// The titles of the columns, by distance and operation.
fn heads(race: &Race) -> Vec<String> {
    let of = |remote: bool| {
        let place = if remote { "two machines" } else { "one machine" };
        race.operations.iter().map(move |operation| format!("{place}, {}", operation.short))
    };
    race.distances().into_iter().flat_map(of).collect()
}

/// As tables for a terminal, one for each distance: there are too many columns for one.
pub(super) fn text(report: &Report, race: &Race) -> String {
    let lines = lines(report, race);
    let mut out = String::new();
    let (heads, width) = (heads(race), race.operations.len());
    for (at, part) in heads.chunks(width.max(1)).enumerate() {
        let cells = |line: &Line| -> Option<Vec<String>> {
            let figures = line.cells.get(at * width..(at + 1) * width)?;
            figures.iter().any(Option::is_some).then_some(())?;
            let title = if line.class == "past" { line.title.clone() } else { format!("  {}", line.title) };
            let figures = figures.iter().flat_map(|cell| cell.clone().unwrap_or_else(|| [dash(), dash()]));
            Some(std::iter::once(title).chain(figures).collect())
        };
        let mut head = vec!["then and now, items/s".to_owned()];
        part.iter().for_each(|title| head.extend([title.clone(), "CPU %".to_owned()]));
        let lines: Vec<Vec<String>> = lines.iter().filter_map(cells).collect();
        if !lines.is_empty() {
            let _ = write!(out, "\n{}", Grid { head, lines });
        }
    }
    out
}

/// As a part of a page.
pub(super) fn html(report: &Report, race: &Race) -> String {
    let lines = lines(report, race);
    if lines.is_empty() {
        return String::new();
    }
    let mut head = vec!["then and now, items a second".to_owned()];
    heads(race).into_iter().for_each(|title| head.extend([title.clone(), format!("{title}, CPU %")]));
    let dashes = || ["–".to_owned(), "–".to_owned()];
    let line = |line: &Line| {
        let cells = line.cells.iter().flat_map(|cell| cell.clone().unwrap_or_else(dashes));
        markup::Line::new(line.class, std::iter::once(line.title.clone()).chain(cells).collect())
    };
    table(&head, &lines.iter().map(line).collect::<Vec<_>>())
}

/// What goes at a rate, as a part of a page.
pub(super) fn rates(race: &Race, rows: &[&Row]) -> String {
    let grid = grid(race, rows);
    let line = |line: Vec<String>| {
        let row = rows.iter().find(|row| line.first().is_some_and(|title| *title == row.title));
        markup::Line::new(row.map_or("rival", |row| super::markup::class(row.contestant)), line)
    };
    table(&grid.head, &grid.lines.into_iter().map(line).collect::<Vec<_>>())
}

/// How far several clients get beyond one, and what a rate costs: a sentence for each of our contestants in its default mode.
pub(super) fn verdicts(report: &Report, race: &Race) -> Vec<String> {
    let ours = |row: &&Row| row.race == race.name && row.contestant == "everywire" && row.mode == "default";
    let rows: Vec<&Row> = report.rows.iter().filter(ours).collect();
    if race.rated { rated(race, &rows) } else { scaled(race, &rows) }
}

/// Several clients beside one, of the same contestant at the same placement.
fn scaled(race: &Race, rows: &[&Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(single) = race.operations.iter().find(|operation| operation.name == race.headline) else {
        return sentences;
    };
    for operation in race.operations {
        let Some(number) = operation.reads.filter(|reads| reads.clients != Clients::One) else { continue };
        let kind = match number.clients {
            Clients::Processes(_) => "processes",
            _ => "threads",
        };
        for row in rows.iter().filter(|row| row.operation == operation.name && row.transport == "tcp") {
            let alike = |other: &&&Row| {
                other.name == row.name && other.placement == row.placement && other.operation == single.name
            };
            let Some(one) = rows.iter().find(alike) else { continue };
            let (Some(all), Some(alone)) = (row.items_per_s, one.items_per_s) else { continue };
            // On one CPU there is nothing to gain.
            if row.placement == "same" {
                continue;
            }
            let cpu = |row: &Row| Some(row.client_cpu_us? + row.server_cpu_us?);
            let cpu = cpu(row)
                .zip(cpu(one))
                .map(|(all, alone)| format!(", with {:.2} times the CPU a read", all / alone));
            let title = PLACEMENTS
                .iter()
                .find(|(name, _)| *name == row.placement)
                .map_or(row.placement, |(_, title)| title);
            sentences.push(format!(
                "{}, {} clients ({kind}): {}: {title}: {} items/s together, {:.2} times as many as one{}.",
                race.name,
                number.clients.number(),
                row.title,
                grouped(all),
                all / alone,
                cpu.unwrap_or_default()
            ));
        }
    }
    sentences
}

/// What going at a rate costs both sides.
fn rated(race: &Race, rows: &[&Row]) -> Vec<String> {
    let sentence = |row: &&Row| {
        let (client, server) = (row.client_cpu_percent?, row.server_cpu_percent?);
        Some(format!(
            "{}, {}: {}: {} items/s cost {} % of a CPU, {} % of it the client's.",
            race.name,
            row.operation,
            row.title,
            grouped(row.items_per_s?),
            short(client + server),
            short(client * 100.0 / (client + server).max(f64::MIN_POSITIVE))
        ))
    };
    rows.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::contestants::published::ITEMS_DCOM;
    use crate::race::{ALL, ALL_CHANGE, FOUR_THREADS, READ_1, READ_100};

    fn report() -> Report {
        let mut report = sample();
        let raw = report.rows[1].clone();
        let row = |name: &str, contestant, placement, operation, items_per_s: f64| {
            let mut row = raw.clone();
            (row.race, row.contestant, row.placement, row.operation) =
                ("opc", contestant, placement, operation);
            (row.name, row.title) = (name.to_owned(), format!("ours <{name}>"));
            (row.wire, row.published_by) = (Some("dcom"), Some(ITEMS_DCOM));
            row.items_per_s = Some(items_per_s);
            (row.client_cpu_us, row.server_cpu_us) = (Some(20.0), Some(30.0));
            (row.client_cpu_percent, row.server_cpu_percent) = (Some(41.6), Some(58.2));
            row
        };
        report.rows.extend([
            row("a", "everywire", "unpinned", READ_100, 3_000_000.0),
            row("a", "everywire", "unpinned", READ_1, 70_000.0),
            row("a", "everywire", "unpinned", FOUR_THREADS, 5_100_000.0),
            row("a", "everywire", "remote", READ_100, 2_000_000.0),
            row("b", "utgard", "remote", READ_100, 1234.0),
        ]);
        let mut rated = row("a", "everywire", "remote", ALL_CHANGE, 100_000.0);
        rated.race = "rates";
        report.rows.push(rated);
        report.judge();
        report
    }

    #[test]
    fn items_and_cpu_stand_beside_what_was_published() {
        let (text, page) = (report().to_table(), report().to_html());
        for part in ["62,500", "40 / 60", "18,775", "3,000,000", "42 / 58", "1,234", "read 100, 4 threads"] {
            assert!(text.contains(part) && page.contains(part), "{part}: {text}");
        }
        assert!(page.contains("ours &lt;a&gt;") && !page.contains("ours <a>"));
        assert!(text.contains("two machines, read 1 ") || text.contains("two machines, read 1  "), "{text}");
    }

    #[test]
    fn several_clients_and_rates_have_their_sentences() {
        let report = report();
        let has = |part: &str| report.verdicts.iter().any(|verdict| verdict.contains(part));
        assert!(has(
            "opc, 4 clients (threads): ours <a>: unpinned: 5,100,000 items/s together, 1.70 times as many as one, with 1.00"
        ));
        assert!(has(
            "rates, exception mode, all changing: ours <a>: 100,000 items/s cost 99.8 % of a CPU, 41.7 % of it the client's."
        ));
        assert!(ALL.iter().filter(|race| race.reads()).count() == 2);
    }

    #[test]
    fn a_page_of_this_race_closes_its_tags() {
        let page = report().to_html();
        for tag in ["svg", "figure", "table", "div", "p", "tr", "td", "th"] {
            let opened =
                page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
