//! The table for a terminal: one block for each race and placement, one line for each contestant.
//!
//! A race whose rows are of another kind has a grid of its own (`cycles`, `items`, `passes`, signals);
//! all are printed by `Grid`. Warnings come first, verdicts last, since that is what stays on the
//! screen.
//!
//! Below the blocks of a race stand the published figures and its notes; below all races where a call
//! goes, what was left out and why, and the machine. A grid is as wide as its cells need, and no cell
//! is cut.

use super::grid::{Grid, PLACEMENTS, dash, median, ratio};
use super::{Report, Row, columns, cycles, grouped, items, passes, short, transfers};
use crate::race::{ALL, Race};

/// The whole report.
pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    for warning in report.warnings() {
        out.push_str(&format!("\n{warning}\n"));
    }
    for race in ALL {
        for (placement, title) in PLACEMENTS {
            let rows: Vec<&Row> = report
                .rows
                .iter()
                .filter(|row| row.race == race.name && row.placement == *placement)
                .collect();
            if !rows.is_empty() {
                out.push_str(&format!("\n{} (race {}), {title}\n", race.title, race.number));
                if race.passes() {
                    out.push_str(&passes::text(report, race, &rows));
                } else {
                    out.push_str(&grid(race, &rows).to_string());
                }
            }
        }
        if report.rows.iter().any(|row| row.race == race.name) {
            out.push_str(&published(race));
            out.push_str(&then_and_now(report, race));
            out.push_str(&transfers::text(report, race));
            out.push_str(&items::text(report, race));
            if race.cycles {
                out.push_str(&cycles::text(report));
            }
            for note in race.notes {
                out.push_str(&format!("\n{note}\n"));
            }
        }
    }
    out.push_str(&split(report));
    for left in &report.left_out {
        out.push_str(&format!("\nleft out: {}\n          {}\n", left.what, left.why));
    }
    for remark in &report.remarks {
        out.push_str(&format!("\n{remark}\n"));
    }
    for absent in &report.absent {
        out.push_str(&format!("\nabsent: {}: {}\n        {}\n", absent.name, absent.why, absent.remedy));
    }
    let machine = &report.machine;
    out.push_str(&format!(
        "\n{} x {}, {}; {} {}; {} rounds, the first dropped; {:.0} s",
        machine.cpus,
        machine.cpu,
        machine.kernel,
        machine.everywire,
        machine.build,
        report.rounds,
        report.seconds
    ));
    if machine.build == "debug" {
        out.push_str("\nA debug build: these are no figures to quote.");
    }
    if !report.verdicts.is_empty() {
        out.push('\n');
    }
    for verdict in &report.verdicts {
        out.push_str(&format!("\nverdict: {verdict}"));
    }
    out
}

/// The published figures of a race as a table; empty where another table has them.
fn published(race: &Race) -> String {
    // What is read has a table of then and now, and of what passes a hop no operations were published.
    if race.published.is_empty() || race.reads() || race.passes() {
        return String::new();
    }
    let mut grid = Grid { head: vec!["published".into()], lines: Vec::new() };
    let operations = || {
        let of = |remote: bool| race.operations.iter().map(move |operation| (operation, remote));
        race.distances().into_iter().flat_map(of).filter(|(operation, _)| race.counts(operation.name))
    };
    let unit = if race.cycles { "ms" } else { "us" };
    grid.head.extend(operations().map(|(operation, remote)| {
        if remote { format!("two machines, {}", operation.short) } else { operation.short.to_owned() }
    }));
    for system in columns::systems(race) {
        let mut line = vec![system.to_owned()];
        line.extend(operations().map(|(operation, remote)| {
            match race.published_by(system, operation.name, remote) {
                Some(figure) => figure.kb_per_s.map_or_else(
                    || format!("{} {unit}", short(figure.us)),
                    |kb| format!("{} KB/s", grouped(kb)),
                ),
                None => "-".into(),
            }
        }));
        grid.lines.push(line);
    }
    format!("\n{grid}")
}

/// A line for each column of the published table: there are more of today's than fit beside each other.
fn then_and_now(report: &Report, race: &Race) -> String {
    let columns = columns::of(report, race);
    if columns.iter().all(|column| column.past) {
        return String::new();
    }
    let mut grid = Grid { head: vec!["then and now, us".into()], lines: Vec::new() };
    grid.head.extend(race.operations.iter().map(|operation| operation.short.to_owned()));
    for column in columns {
        let mut line = vec![if column.past { column.title } else { format!("  {}", column.title) }];
        line.extend(column.us.iter().map(|us| us.clone().unwrap_or_else(dash)));
        grid.lines.push(line);
    }
    format!("\n{grid}")
}

/// Where a call goes, a line for each transport.
fn split(report: &Report) -> String {
    let Some(split) = report.split.as_ref().filter(|split| !split.calls.is_empty()) else {
        return String::new();
    };
    let mut grid = Grid {
        head: [
            "where a call goes, us",
            "whole",
            "stub",
            "marshalling",
            "look-up",
            "session",
            "transport",
            "rest",
        ]
        .map(String::from)
        .into(),
        lines: Vec::new(),
    };
    for call in &split.calls {
        let parts = [
            call.whole_us,
            split.stub_us,
            split.marshalling_us,
            split.lookup_us,
            split.session_us,
            call.transport_us,
            call.rest_us,
        ];
        let mut line = vec![format!("{}, {}, {}", split.operation, call.transport, split.placement)];
        line.extend(parts.map(short));
        grid.lines.push(line);
    }
    format!("\n{grid}")
}

/// The grid of one race at one placement.
fn grid(race: &Race, rows: &[&Row]) -> Grid {
    let headline = race.operations.iter().find(|operation| operation.name == race.headline);
    let transfers = headline.is_some_and(|operation| operation.payload.is_some());
    if race.signals {
        return signals_grid(race, rows);
    }
    if race.cycles {
        return cycles::grid(race, rows);
    }
    if race.reads() {
        return items::grid(race, rows);
    }
    let mut head = vec!["us a call".to_owned()];
    for operation in race.operations {
        head.push(operation.short.to_owned());
        if transfers {
            head.extend(["KB/s", "x raw"].map(String::from));
        }
    }
    let about = headline.map_or("", |operation| operation.short);
    if !transfers {
        head.push(format!("x raw ({about})"));
    }
    head.extend(
        ["95 % interval", "p99", "x published", "CPU client", "server", "frames", "bytes", "calls"]
            .map(String::from),
    );

    let mut lines = Vec::new();
    // A line for each contestant, in the order of the rows.
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    for name in names {
        let find = |operation: &str| rows.iter().find(|row| row.name == name && row.operation == operation);
        let mut line = vec![find(race.headline).map_or_else(|| name.to_owned(), |row| row.title.clone())];
        for operation in race.operations {
            let row = find(operation.name);
            line.push(row.map_or_else(dash, |row| median(row)));
            if transfers {
                // In process nothing is transferred.
                let rate = row.filter(|row| row.transport != "in-process").and_then(|row| row.kb_per_s);
                line.push(rate.map_or_else(dash, grouped));
                line.push(ratio(row.and_then(|row| row.ratio_to_raw)));
            }
        }
        let row = find(race.headline);
        if !transfers {
            line.push(ratio(row.and_then(|row| row.ratio_to_raw)));
        }
        let number = |value: Option<f64>| value.map_or_else(dash, short);
        line.push(
            row.map_or_else(dash, |row| {
                format!("{}..{}", short(row.median_low_us), short(row.median_high_us))
            }),
        );
        line.push(number(row.map(|row| row.p99_us)));
        line.push(row.and_then(|row| row.ratio_to_published).map_or_else(dash, short));
        line.push(number(row.and_then(|row| row.client_cpu_us)));
        line.push(number(row.and_then(|row| row.server_cpu_us)));
        line.push(row.and_then(|row| row.frames).map_or_else(dash, |n| format!("{n}")));
        line.push(row.and_then(|row| row.bytes).map_or_else(dash, |n| format!("{n}")));
        line.push(row.map_or_else(dash, |row| grouped(row.calls as f64)));
        lines.push(line);
    }
    Grid { head, lines }
}

/// Signals are quoted by the second, and no relay counts them.
fn signals_grid(race: &Race, rows: &[&Row]) -> Grid {
    let head = [
        "signals to one subscriber",
        "signals/s",
        "us a signal",
        "95 % interval",
        "CPU client",
        "server",
        "signals",
    ];
    let number = |value: Option<f64>| value.map_or_else(dash, short);
    let line = |row: &&&Row| {
        vec![
            row.title.clone(),
            grouped(1e6 / row.median_us),
            median(row),
            format!("{}..{}", short(row.median_low_us), short(row.median_high_us)),
            number(row.client_cpu_us),
            number(row.server_cpu_us),
            grouped(row.calls as f64),
        ]
    };
    let rows = rows.iter().filter(|row| row.operation == race.headline);
    Grid { head: head.map(String::from).into(), lines: rows.map(|row| line(&row)).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;

    #[test]
    fn columns_are_aligned() {
        let text = sample().to_table();
        let block: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("us a call")).take(5).collect();
        let width = |line: &&str| line.chars().count();
        assert!(block.len() == 5 && block.iter().all(|line| width(line) == width(&block[0])), "{text}");
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let text = sample().to_table();
        assert!(text.contains("ghost: is <not> here") && text.contains("call it"), "{text}");
    }

    #[test]
    fn published_figures_stand_below() {
        let text = sample().to_table();
        assert!(
            text.contains("ORBit2 (CORBA)") && text.contains("68.7 us") && text.contains("249,840 KB/s"),
            "{text}"
        );
    }
}
