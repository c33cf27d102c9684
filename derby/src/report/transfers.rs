//! The fourth race as it was published: kilobytes a second of each system, on one machine and between two, and beneath its line
//! those of today's contestants of the same kind.

use super::grid::{Grid, few};
use super::markup;
use super::{Report, Row, columns, grouped, short};
use crate::race::Race;

/// Placements that stand for one machine, the likest to the published first.
const LOCAL: [&str; 3] = ["unpinned", "different", "same"];
/// The placement that stands for two machines.
const REMOTE: &str = "remote";

/// One transfer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// Kilobytes (1000 bytes) a second, and microseconds of a call.
    kb_per_s: f64,
    us: f64,
    /// The words that belong to it.
    few: String,
}

/// A line: a system of then or a contestant of today, and its figures.
pub(super) struct Line {
    pub(super) title: String,
    /// The colour of a contestant; `past` of a system.
    pub(super) class: &'static str,
    /// For each distance and each operation.
    pub(super) cells: Vec<Option<Figure>>,
}

impl Figure {
    /// Both units.
    fn shown(&self) -> [String; 2] {
        [grouped(self.kb_per_s), format!("{}{}", short(self.us), self.few)]
    }
}

/// The lines of a race; none unless somebody of today raced.
pub(super) fn lines(report: &Report, race: &Race) -> Vec<Line> {
    if !race.transfers() {
        return Vec::new();
    }
    let rows: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| row.race == race.name && row.mode == "default" && row.transport != "in-process")
        .filter(|row| row.wire.is_some())
        .collect();
    let local = LOCAL.into_iter().find(|name| rows.iter().any(|row| row.placement == *name));
    let of_wire = |wire| rows.iter().any(|row| row.wire == wire && row.published_by.is_some());
    let kind = |row: &Row| {
        let own = rows.iter().find(|other| other.name == row.name && other.published_by.is_some());
        own.and_then(|row| row.published_by)
    };
    let mut lines = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    for system in columns::systems(race).into_iter().map(Some).chain([None]) {
        if let Some(system) = system {
            lines.push(Line {
                title: format!("{system}, published"),
                class: "past",
                cells: cells(race, |operation, remote| {
                    let figure = race.published_by(system, operation, remote)?;
                    Some(Figure { kb_per_s: figure.kb_per_s?, us: figure.us, few: String::new() })
                }),
            });
        }
        // Whoever has no figure of its own stands below, if its wire has one.
        for row in rows.iter().filter(|row| kind(row) == system && of_wire(row.wire)) {
            if taken.contains(&row.name.as_str()) {
                continue;
            }
            taken.push(&row.name);
            let find = |operation: &str, remote: bool| {
                let placement = if remote { Some(REMOTE) } else { local };
                let found = rows.iter().find(|other| {
                    other.name == row.name
                        && other.operation == operation
                        && Some(other.placement) == placement
                })?;
                Some(Figure { kb_per_s: found.kb_per_s?, us: found.median_us, few: few(found) })
            };
            lines.push(Line {
                title: row.title.clone(),
                class: super::markup::class(row.contestant),
                cells: cells(race, find),
            });
        }
    }
    if taken.is_empty() { Vec::new() } else { lines }
}

/// The figures of a line, by distance and operation.
fn cells(race: &Race, find: impl Fn(&str, bool) -> Option<Figure>) -> Vec<Option<Figure>> {
    let of = |remote: bool| race.operations.iter().map(move |operation| (operation.name, remote));
    race.distances().into_iter().flat_map(of).map(|(operation, remote)| find(operation, remote)).collect()
}

/// What the columns are called, without the units.
fn heads(race: &Race) -> Vec<String> {
    let title = |remote: bool| if remote { "two machines" } else { "one machine" };
    let of = |remote: bool| {
        race.operations.iter().map(move |operation| format!("{}, {}", title(remote), operation.short))
    };
    race.distances().into_iter().flat_map(of).collect()
}

/// As a table for a terminal.
pub(super) fn text(report: &Report, race: &Race) -> String {
    let lines = lines(report, race);
    if lines.is_empty() {
        return String::new();
    }
    let mut head = vec!["then and now, KB/s".to_owned()];
    heads(race).into_iter().for_each(|title| head.extend([title, "us".to_owned()]));
    let dash = || ["-".to_owned(), "-".to_owned()];
    let cells = |line: &Line| {
        let title = if line.class == "past" { line.title.clone() } else { format!("  {}", line.title) };
        let figures = line.cells.iter().flat_map(|cell| cell.as_ref().map_or_else(dash, Figure::shown));
        std::iter::once(title).chain(figures).collect()
    };
    format!("\n{}", Grid { head, lines: lines.iter().map(cells).collect() })
}

/// As a part of a page.
pub(super) fn html(report: &Report, race: &Race) -> String {
    let lines = lines(report, race);
    if lines.is_empty() {
        return String::new();
    }
    let mut head = vec!["then and now".to_owned()];
    heads(race).into_iter().for_each(|title| head.extend([format!("{title}, KB/s"), format!("{title}, µs")]));
    let dashes = || ["–".to_owned(), "–".to_owned()];
    let line = |line: &Line| {
        let cells = line.cells.iter().flat_map(|cell| cell.as_ref().map_or_else(dashes, Figure::shown));
        markup::Line::new(line.class, std::iter::once(line.title.clone()).chain(cells).collect())
    };
    markup::table(&head, &lines.iter().map(line).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::contestants::published::{BYTES_CORBA, LARGE};
    use crate::race::ALL;

    fn report() -> Report {
        let mut report = sample();
        let raw = report.rows[3].clone();
        let row = |name: &str, placement, kb: f64, published_by| {
            let mut row = raw.clone();
            (row.contestant, row.wire, row.name) = ("everywire", Some("giop"), name.to_owned());
            (row.title, row.placement, row.published_by) = (format!("ours {name}"), placement, published_by);
            (row.kb_per_s, row.median_us) = (Some(kb), 1e9 / kb);
            row
        };
        report.rows.extend([
            row("a", "unpinned", 2_000_000.0, Some(BYTES_CORBA)),
            row("a", "remote", 1_000_000.0, Some(BYTES_CORBA)),
            row("a", "same", 3.0, Some(BYTES_CORBA)),
            row("b", "unpinned", 500_000.0, None),
        ]);
        report
    }

    #[test]
    fn today_stands_below_its_like_on_one_machine_and_on_two() {
        let race = ALL.iter().find(|race| race.transfers()).unwrap();
        let lines = lines(&report(), race);
        let titles: Vec<&str> = lines.iter().map(|line| line.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "WCF WSHttpBinding, published",
                "WCF NetTcpBinding, published",
                "IIOP.NET (CORBA), published",
                "ours a",
                "WCF NetNamedPipeBinding, published",
                "ours b"
            ]
        );
        let at = race.operations.iter().position(|operation| operation.name == LARGE).unwrap();
        let figure = |kb_per_s, us| Some(Figure { kb_per_s, us, few: String::new() });
        assert_eq!(lines[3].cells[at], figure(2_000_000.0, 500.0));
        assert_eq!(lines[3].cells[at + race.operations.len()], figure(1_000_000.0, 1000.0));
        assert_eq!(lines[2].cells[at + race.operations.len()].as_ref().unwrap().kb_per_s, 80_219.0);
        assert_eq!(lines[4].cells[at + race.operations.len()], None);
    }

    #[test]
    fn both_units_are_in_the_table_and_on_the_page() {
        let (text, page) = (report().to_table(), report().to_html());
        for part in ["two machines, 1 MB", "13,290", "2,000,000", "516,017"] {
            assert!(text.contains(part) && page.contains(part), "{part}: {text}");
        }
    }
}
