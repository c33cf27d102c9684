//! A race as it was published: a line for each function, a column for each system, and beside its published figures those of
//! today's contestants of the same kind.

use super::grid::{PLACEMENTS, median};
use super::{Report, Row, short};
use crate::contestants::Route;
use crate::race::{PublishedFigure, Race};

/// A column: one system of then, or one contestant of today.
pub(super) struct Column {
    /// Whose figures they are.
    pub(super) title: String,
    /// Whether they were published.
    pub(super) past: bool,
    /// Whose they are of today's; empty if they were published.
    pub(super) contestant: &'static str,
    /// Microseconds as text, one for each operation of the race, with a warning where calls were few;
    /// `None`: no figure.
    pub(super) us: Vec<Option<String>>,
}

/// The columns of a race; none if nobody of today raced beside a published system. Of today's contestants over Unix
/// sockets each kind has its fastest: ours and a rival, peer to peer and through a router.
pub(super) fn of(report: &Report, race: &Race) -> Vec<Column> {
    // A cycle is published of one system only, beside which its own two ways stand; transfers have a table of their own.
    if race.cycles || race.transfers() || race.reads() || race.passes() {
        return Vec::new();
    }
    let placement = PLACEMENTS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| report.rows.iter().any(|row| placed(row, race, name)));
    let Some(placement) = placement else { return Vec::new() };
    let mut columns = Vec::new();
    for system in systems(race) {
        let figures = |figure: &'static PublishedFigure| Some(short(figure.us));
        columns.push(Column {
            title: format!("{system}, published"),
            past: true,
            contestant: "",
            us: race
                .operations
                .iter()
                .map(|o| race.published_by(system, o.name, false).and_then(figures))
                .collect(),
        });
        for (direct, ours) in [(true, true), (true, false), (false, true), (false, false)] {
            let fastest = report
                .rows
                .iter()
                .filter(|row| placed(row, race, placement))
                .filter(|row| row.operation == race.headline && row.published_by == Some(system))
                .filter(|row| row.transport == "unix" && row.mode == "default")
                .filter(|row| {
                    (row.route == Route::Direct) == direct && (row.contestant == "everywire") == ours
                })
                .min_by(|a, b| a.median_us.total_cmp(&b.median_us));
            let Some(fastest) = fastest else { continue };
            let find = |operation: &str| {
                report
                    .rows
                    .iter()
                    .filter(|row| placed(row, race, placement))
                    .find(|row| row.name == fastest.name && row.operation == operation)
            };
            columns.push(Column {
                title: fastest.title.clone(),
                past: false,
                contestant: fastest.contestant,
                us: race.operations.iter().map(|o| find(o.name).map(median)).collect(),
            });
        }
    }
    columns
}

/// Whether a row is of this race and this placement, and has a published figure beside it.
fn placed(row: &Row, race: &Race, placement: &str) -> bool {
    row.race == race.name && row.placement == placement && row.published_by.is_some()
}

/// The systems with published figures, in the order of publication.
pub(super) fn systems(race: &Race) -> Vec<&'static str> {
    let mut systems: Vec<&str> = Vec::new();
    for figure in race.published {
        if !systems.contains(&figure.system) {
            systems.push(figure.system);
        }
    }
    systems
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::race::ALL;

    #[test]
    fn today_stands_beside_its_like() {
        let mut report = sample();
        let mut unix = report.rows[1].clone();
        (unix.transport, unix.name, unix.title) =
            ("unix", "omniorb-unix".into(), "omniORB, Unix socket".into());
        let mut slower = unix.clone();
        (slower.name, slower.title, slower.median_us) = ("other-unix".into(), "other".into(), 99.0);
        report.rows.extend([slower, unix]);
        let race = ALL.iter().find(|race| race.name == "calls").unwrap();
        let columns = of(&report, race);
        let titles: Vec<_> = columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "ORBit2 (CORBA), published",
                "omniORB, Unix socket",
                "DCOP, published",
                "D-Bus (GLib), published"
            ]
        );
        assert_eq!(columns[1].us[3].as_deref(), Some("11.0"));
        assert_eq!(columns[1].us[0].as_deref(), None);
        assert!(columns[2].us.iter().all(Option::is_some));
    }
}
