//! The first race in the report: cycles in milliseconds for 1000 of them with every run, the trace of single cycles, and why
//! one won.

use super::grid::{Grid, median};
use super::markup::{Line, escape, table};
use super::{Report, Row, grouped, short};
use crate::race::Race;
use crate::traced::{Cycle, Frame};
use std::fmt::Write;

/// What the columns of a table are called.
const HEAD: [&str; 14] = [
    "ms per 1000 cycles",
    "way",
    "median",
    "95 % interval",
    "runs",
    "dropped",
    "x raw",
    "x published",
    "CPU client",
    "server",
    "round trips",
    "frames",
    "bytes",
    "cycles",
];

/// A line for each way of each contestant.
pub(super) fn grid(race: &Race, rows: &[&Row]) -> Grid {
    let lines = rows.iter().map(|row| line(race, row)).collect();
    Grid { head: HEAD.map(String::from).into(), lines }
}

/// A microsecond a cycle is a millisecond for a thousand.
fn line(race: &Race, row: &Row) -> Vec<String> {
    let dash = || "-".to_owned();
    let number = |value: Option<f64>| value.map_or_else(dash, short);
    let whole = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value}"));
    let way = race.operations.iter().find(|operation| operation.name == row.operation);
    vec![
        row.title.clone(),
        way.map_or(row.operation, |operation| operation.short).to_owned(),
        median(row),
        format!("{}..{}", short(row.median_low_us), short(row.median_high_us)),
        row.runs_us.iter().map(|run| short(*run)).collect::<Vec<_>>().join(" "),
        row.dropped_us.map_or_else(dash, |run| format!("({})", short(run))),
        row.ratio_to_raw.map_or_else(dash, |ratio| format!("{ratio:.2}")),
        number(row.ratio_to_published),
        number(row.client_cpu_us),
        number(row.server_cpu_us),
        whole(row.round_trips),
        whole(row.frames),
        whole(row.bytes),
        grouped(row.calls as f64),
    ]
}

/// The traces as text: a block for each cycle, then the sentences.
pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    for cycle in &report.traces {
        let _ = write!(out, "\n{}\n", headline(cycle));
        let lines = cycle.frames.iter().enumerate().map(|(at, frame)| {
            vec![
                format!("{:>3}  {}", at + 1, frame.label()),
                arrow(frame).into(),
                ends(frame),
                short(frame.at_us),
            ]
        });
        let head = ["  #  frame", "direction", "bytes", "us"].map(String::from).into();
        out.push_str(&Grid { head, lines: lines.collect() }.to_string());
    }
    for reason in &report.reasons {
        let _ = write!(out, "\n{reason}\n");
    }
    out
}

/// The same as parts of a page.
pub(super) fn html(report: &Report) -> String {
    if report.traces.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h3>The wire trace</h3><p class=\"soft\">Captured on the link between two network namespaces, in a run of its own. A frame is a \
         message of the wire. A round trip is a turn of the talk: the client\u{2019}s side had sent, and nothing went on before the \
         server\u{2019}s side was heard. The steady cycle is a later one, the third where that is as plain as the others; the first has all that is done once. What passes when a cycle is over is put \
         off, such as the return of references; nobody waits for it.</p>",
    );
    for reason in &report.reasons {
        let _ = write!(out, "<p>{}</p>", escape(reason));
    }
    let head = ["frame", "direction", "connection", "bytes", "µs"].map(String::from);
    let line = |frame: &Frame| {
        let (connection, at) = (frame.connection.to_string(), short(frame.at_us));
        Line::new("", vec![label(frame), arrow(frame).to_owned(), connection, ends(frame), at])
    };
    for cycle in &report.traces {
        let _ = write!(
            out,
            "<details><summary>{}</summary>{}</details>",
            escape(&headline(cycle)),
            table(&head, &cycle.frames.iter().map(line).collect::<Vec<_>>())
        );
    }
    out
}

/// The sum of a cycle, in a line.
fn headline(cycle: &Cycle) -> String {
    let opened = match cycle.connections {
        0 => String::new(),
        1 => ", 1 connection opened".into(),
        n => format!(", {n} connections opened"),
    };
    let after = match cycle.messages_after {
        0 => String::new(),
        n => format!("; afterwards {n} frames, {} bytes", grouped(cycle.bytes_after as f64)),
    };
    format!(
        "{}, {}, {} cycle: {} round trips, {} frames, {} bytes{opened}, {} us{after}",
        cycle.title,
        cycle.operation,
        cycle.cycle,
        cycle.round_trips,
        cycle.messages,
        grouped(cycle.bytes as f64),
        short(cycle.us)
    )
}

fn label(frame: &Frame) -> String {
    if frame.after { format!("{} (afterwards)", frame.label()) } else { frame.label() }
}

/// Which side sent it.
fn arrow(frame: &Frame) -> &'static str {
    if frame.outward { "client -> server" } else { "server -> client" }
}

/// The bytes of a frame; a dash for the opening of a connection, which carries no bytes of the wire.
fn ends(frame: &Frame) -> String {
    if frame.bytes == 0 { "-".to_owned() } else { frame.bytes.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn report() -> Report {
        let mut report = sample();
        let mut row = report.rows[1].clone();
        (row.race, row.operation, row.placement) = ("callbacks", "callback", "remote");
        (row.round_trips, row.runs_us, row.dropped_us) = (Some(4.0), vec![11.0, 12.0], Some(99.0));
        report.rows.push(row);
        let frame = |outward, bytes, operation: Option<&str>| Frame {
            at_us: 1.5,
            outward,
            connection: 1,
            kind: if bytes == 0 { "TCP connection".into() } else { "<Request>".into() },
            interface: operation.map(|_| "Source".into()),
            operation: operation.map(str::to_owned),
            bytes,
            after: false,
        };
        report.traces.push(Cycle {
            name: "omniorb-tcp".into(),
            title: "omniORB, TCP".into(),
            operation: "callback",
            cycle: "first",
            connections: 1,
            messages: 2,
            bytes: 1234,
            round_trips: 2,
            messages_after: 1,
            bytes_after: 56,
            us: 3.0,
            frames: vec![
                frame(true, 0, None),
                frame(true, 1200, Some("attach")),
                frame(false, 34, Some("attach")),
            ],
        });
        report.reasons.push("one won & the other lost.".into());
        report
    }

    #[test]
    fn runs_round_trips_and_frames_are_in_the_table() {
        let text = report().to_table();
        for part in [
            "two network namespaces",
            "11.0 12.0",
            "(99.0)",
            "first cycle: 2 round trips, 2 frames, 1,234 bytes, 1 connection opened",
            "<Request> Source.attach",
            "server -> client",
            "one won & the other lost.",
            "10154 ms",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_page_has_the_trace_and_closes_its_tags() {
        let page = report().to_html();
        assert!(page.contains("&lt;Request&gt; Source.attach") && page.contains("one won &amp; the other"));
        for tag in ["figure", "table", "div", "details", "summary", "p", "tr", "td", "th"] {
            let opened =
                page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
