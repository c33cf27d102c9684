//! The page: self-contained, readable in light and in dark, and on paper. No network, no script; the
//! one style sheet is put into it.
//!
//! Order: warnings and what is missing, the story of the five races, verdicts, a section for each race
//! that has rows, where a call goes, what is missing in full, and how it was measured.
//!
//! Invariants: text from outside (names, failures, remarks) is escaped. A part without anything to say
//! is an empty string, and so has no headline.

use super::chart::{Strip, bars, dots};
use super::grid::{PLACEMENTS, few};
use super::markup::{Line, class, code, escape, table};
use super::{Report, Row, columns, cycles, grouped, items, method, passes, short, story, transfers};
use crate::contestants::Route;
use crate::race::{ALL, Operation, Race};
use std::fmt::Write;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let races: Vec<&'static Race> =
        ALL.iter().filter(|race| report.rows.iter().any(|row| row.race == race.name)).collect();
    let mut body = String::new();
    let _ = write!(
        body,
        "<h1>Everywire derby</h1><p class=\"lead\">{}. {}, {}.</p>",
        escape(&races.iter().map(|race| race.title).collect::<Vec<_>>().join(" · ")),
        escape(&report.machine.cpu),
        escape(&report.machine.date)
    );
    for warning in report.warnings() {
        let _ = write!(body, "<p class=\"over\">{}</p>", escape(&warning));
    }
    body.push_str(&missing(report));
    body.push_str(&story::html(report));
    body.push_str(&verdicts(report, &races));
    for race in races {
        body.push_str(&section(report, race));
    }
    body.push_str(&split(report));
    body.push_str(&absent(report));
    body.push_str(&method::html(report));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\"><title>Everywire derby</title><style>\n{}</style></head><body><main>\n{body}\n</main></body></html>\n",
        include_str!("style.css")
    )
}

/// A time with the unit that suits it.
fn time(us: f64) -> String {
    let (number, unit) = time_parts(us);
    format!("{number} {unit}")
}

fn time_parts(us: f64) -> (String, &'static str) {
    if us < 0.1 { (short(us * 1e3), "ns") } else { (short(us), "µs") }
}

/// Label and note of a row in a chart: the mode goes below the name.
fn names(row: &Row, traffic: bool) -> (String, String) {
    let mode = (row.mode == "lowest-latency").then(|| "lowest latency".to_owned());
    let label = row.title.split(", lowest").next().unwrap_or_default().to_owned();
    let way = ALL.iter().any(|race| race.cycles && race.name == row.race).then(|| row.operation.to_owned());
    let traffic = row.frames.zip(row.bytes).filter(|_| traffic);
    let traffic = traffic.map(|(frames, bytes)| format!("{frames} frames, {} bytes", grouped(bytes)));
    let few = row.too_few.then(|| format!("too few: {} calls", row.calls));
    (label, few.into_iter().chain(way).chain(mode).chain(traffic).collect::<Vec<_>>().join(" · "))
}

/// What a visitor wants to know first: ours, beside the rival and beside the machine.
fn cards(report: &Report, race: &Race) -> String {
    let mut out = String::new();
    let raced = |name: &str| {
        report
            .rows
            .iter()
            .any(|row| row.race == race.name && row.placement == name && row.contestant != "raw")
    };
    let Some((placement, place)) = PLACEMENTS.iter().copied().find(|(name, _)| raced(name)) else {
        return out;
    };
    let headline = |row: &&Row| {
        row.race == race.name && row.operation == race.headline && row.placement == placement && !race.rated
    };
    let rows: Vec<&Row> = report
        .rows
        .iter()
        .filter(headline)
        .filter(|row| row.contestant != "raw" && row.mode == "default")
        .collect();
    // Of rivals only the fastest of each kind: the charts have all of them.
    let rival = |row: &Row| class(row.contestant) == "rival";
    let alike =
        |a: &Row, b: &Row| a.wire == b.wire && (a.route == Route::Direct) == (b.route == Route::Direct);
    let beaten = |row: &Row| {
        rows.iter().any(|other| rival(other) && alike(row, other) && other.median_us < row.median_us)
    };
    for row in rows.iter().filter(|row| !rival(row) || !beaten(row)) {
        // In process nothing is transferred: a throughput would say nothing.
        let (number, unit) = match row.kb_per_s.filter(|_| row.transport != "in-process") {
            None if race.signals => (grouped(1e6 / row.median_us), "signals/s"),
            None if race.reads() => (grouped(row.items_per_s.unwrap_or_default()), "items/s"),
            Some(kb) => (short(kb / 1e6), "GB/s"),
            None => time_parts(row.median_us),
        };
        let beside = row
            .ratio_to_raw
            .map(|ratio| format!("{ratio:.2} × raw"))
            .or_else(|| (row.transport == "in-process").then(|| "nothing is copied".to_owned()))
            .unwrap_or_else(|| row.route.title().to_owned());
        let beside = format!("{beside}{}", few(row));
        let _ = write!(
            out,
            "<div class=\"card {}\"><span>{}</span><b>{number} <small>{unit}</small></b><span>{}<br>{place}, {beside}</span></div>",
            class(row.contestant),
            escape(&row.title),
            escape(race.headline)
        );
    }
    if out.is_empty() { out } else { format!("<div class=\"cards\">{out}</div>") }
}

/// Who won, sentence by sentence: those of one race are open, those of several are opened by a click.
fn verdicts(report: &Report, races: &[&Race]) -> String {
    if report.verdicts.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h2>Verdicts</h2>");
    let mut told = 0;
    for race in races {
        let begin = format!("{}, ", race.name);
        let items: Vec<String> = report
            .verdicts
            .iter()
            .filter_map(|verdict| verdict.strip_prefix(&begin))
            .map(|verdict| match verdict.split_once(": ") {
                Some((what, who)) => format!("<li><b>{}:</b> {}</li>", escape(what), escape(who)),
                None => format!("<li>{}</li>", escape(verdict)),
            })
            .collect();
        if items.is_empty() {
            continue;
        }
        told += items.len();
        let open = if races.len() == 1 { " open" } else { "" };
        let _ = write!(
            out,
            "<details{open}><summary>{}: {} contests</summary><ul>{}</ul></details>",
            escape(race.title),
            items.len(),
            items.concat()
        );
    }
    debug_assert_eq!(told, report.verdicts.len(), "each verdict names its race");
    out
}

/// A line on top about what is not on this page.
fn missing(report: &Report) -> String {
    let absent: Vec<&str> = report.absent.iter().map(|absent| &*absent.name).collect();
    let mut parts = Vec::new();
    if !absent.is_empty() {
        parts.push(format!("Missing contestants: {}.", escape(&absent.join(", "))));
    }
    if !report.left_out.is_empty() {
        parts.push("Some of what was asked for was left out.".to_owned());
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("<p class=\"over\">{} <a href=\"#missing\">What is missing, and why</a></p>", parts.join(" "))
}

/// What is not on this page.
fn absent(report: &Report) -> String {
    if report.absent.is_empty() && report.left_out.is_empty() && report.remarks.is_empty() {
        return String::new();
    }
    let one = |absent: &super::Absent| {
        format!(
            "<div class=\"absent\"><b>{}</b> is missing from this page: {}.<br><code>{}</code></div>",
            escape(&absent.name),
            escape(&absent.why),
            escape(&absent.remedy)
        )
    };
    let left = |left: &super::OmittedEntry| {
        let what: Vec<&str> = left.what.split("; ").collect();
        if let [one] = what[..] {
            return format!(
                "<div class=\"absent\"><b>Left out:</b> {}: {}.</div>",
                escape(one),
                escape(&left.why)
            );
        }
        format!(
            "<details class=\"absent\"><summary>Left out, {} parts: {}.</summary><p>{}</p></details>",
            what.len(),
            escape(&left.why),
            escape(&left.what)
        )
    };
    let remarks = report.remarks.iter().map(|remark| format!("<p>{}</p>", escape(remark)));
    let parts: String =
        report.absent.iter().map(one).chain(report.left_out.iter().map(left)).chain(remarks).collect();
    format!("<h2 id=\"missing\">What is missing</h2>{parts}")
}

/// A race: its cards, charts and tables for each placement, then the published figures and the notes.
fn section(report: &Report, race: &Race) -> String {
    let mut out = format!(
        "<h2>{}</h2><p class=\"soft\">Published race {}. {}</p>\
         <ul class=\"legend\"><li class=\"ours\"><i></i>Everywire</li><li class=\"rival\"><i></i>rivals</li><li class=\"raw\"><i></i>raw \
         bytes: what the machine can do</li><li class=\"past\"><i></i>as published, on the machines of its time</li></ul>",
        escape(race.title),
        race.number,
        code(race.about)
    );
    out.push_str(&cards(report, race));
    for (placement, title) in PLACEMENTS {
        let rows: Vec<&Row> =
            report.rows.iter().filter(|row| row.race == race.name && row.placement == *placement).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(out, "<h3>{}</h3>", escape(&capital(title)));
        if race.rated {
            out.push_str(&items::rates(race, &rows));
            continue;
        }
        if race.passes() {
            out.push_str(&passes::html(report, race, title, &rows));
            continue;
        }
        out.push_str(&times(race, title, &rows));
        out.push_str(&ratios(race, title, &rows));
        out.push_str(&cpu(race, title, &rows));
        let headline: Vec<&Operation> = race.operations.iter().filter(|o| o.name == race.headline).collect();
        let all: Vec<&Operation> = race.operations.iter().collect();
        if all.len() <= 2 || race.cycles || race.reads() {
            out.push_str(&numbers(&all, &rows));
        } else {
            let table = numbers(&all, &rows);
            out.push_str(&numbers(&headline, &rows));
            let _ = write!(out, "<details><summary>All functions, {title}</summary>{table}</details>");
        }
    }
    if !race.published.is_empty() && !race.passes() {
        race.distances().into_iter().for_each(|remote| out.push_str(&past(race, report, remote)));
        out.push_str(&then_and_now(report, race));
        out.push_str(&transfers::html(report, race));
        out.push_str(&items::html(report, race));
    }
    if race.cycles {
        out.push_str(&cycles::html(report));
    }
    for note in race.notes {
        let _ = write!(out, "<p class=\"soft\">{}</p>", escape(note));
    }
    out
}

/// The published table with today's columns in it.
fn then_and_now(report: &Report, race: &Race) -> String {
    let columns = columns::of(report, race);
    if columns.iter().all(|column| column.past) {
        return String::new();
    }
    // A line for each column of the published table: there are more of today's than fit beside each other.
    let mut head = vec!["then and now, µs a call".to_owned()];
    head.extend(race.operations.iter().map(|operation| operation.short.to_owned()));
    let line = |column: columns::Column| {
        let us = (0..race.operations.len()).map(|i| column.us.get(i).cloned().flatten());
        let cells = us.map(|us| us.unwrap_or_else(|| "–".to_owned()));
        let class = if column.past { "past" } else { class(column.contestant) };
        Line::new(class, std::iter::once(column.title.clone()).chain(cells).collect())
    };
    table(&head, &columns.into_iter().map(line).collect::<Vec<_>>())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The rows that the charts of a race show: those of the headline, or of cycles all, since each way is
/// of interest.
fn headlines<'r>(race: &Race, rows: &[&'r Row]) -> Vec<&'r Row> {
    rows.iter().copied().filter(|row| race.cycles || row.operation == race.headline).collect()
}

/// What the charts of a race are of.
fn subject(race: &Race) -> &'static str {
    if race.cycles { "one cycle" } else { race.headline }
}

/// The chart of times, the quickest first.
fn times(race: &Race, title: &str, rows: &[&Row]) -> String {
    let mut strips: Vec<Strip> = headlines(race, rows)
        .into_iter()
        .map(|row| (row, names(row, true)))
        .map(|(row, (label, note))| Strip {
            label,
            note,
            class: class(row.contestant),
            value: row.median_us,
            interval: Some((row.p25_us, row.p75_us)),
            tail: Some(row.p99_us),
            companions: rows
                .iter()
                .filter(|other| !race.cycles && other.name == row.name)
                .map(|other| other.median_us)
                .collect(),
            text: match row.kb_per_s.filter(|_| row.transport != "in-process") {
                None if race.signals => {
                    format!("{}, {} signals/s", time(row.median_us), grouped(1e6 / row.median_us))
                }
                Some(kb) => format!("{}, {} GB/s", time(row.median_us), short(kb / 1e6)),
                None => time(row.median_us),
            },
        })
        .collect();
    strips.sort_by(|a, b| a.value.total_cmp(&b.value));
    if race.cycles {
        return format!(
            "<figure><h3>Time of a cycle</h3>{}<figcaption>Logarithmic scale: microseconds for one, which is milliseconds for 1000. \
             Dot: median; bar: the middle half of the cycles; thin line: up to the 99th percentile.</figcaption></figure>",
            dots(&format!("{}, {title}", subject(race)), " µs", None, &strips)
        );
    }
    let others =
        race.operations.iter().map(|operation| operation.short).filter(|short| *short != race.headline);
    let others = others.collect::<Vec<_>>().join("; ");
    let pale = if others.is_empty() {
        String::new()
    } else {
        format!(" Pale dots: the medians of {}.", escape(&others))
    };
    format!(
        "<figure><h3>Time of a call: {}</h3>{}<figcaption>Logarithmic scale. Dot: median of {}; bar: the middle half of the \
         calls; thin line: up to the 99th percentile.{pale}</figcaption></figure>",
        escape(race.headline),
        dots(&format!("{}, {title}", race.headline), " µs", None, &strips),
        escape(race.headline),
    )
}

/// The chart of medians over those of raw bytes; empty if nobody has such a ratio.
fn ratios(race: &Race, title: &str, rows: &[&Row]) -> String {
    let mut strips: Vec<Strip> = headlines(race, rows)
        .into_iter()
        .filter(|row| row.contestant != "raw")
        .filter_map(|row| {
            let ratio = row.ratio_to_raw?;
            let scale = ratio / row.median_us;
            let (label, note) = names(row, false);
            Some(Strip {
                label,
                note,
                class: class(row.contestant),
                value: ratio,
                interval: Some((row.median_low_us * scale, row.median_high_us * scale)),
                tail: None,
                companions: Vec::new(),
                text: format!("{ratio:.2} ×"),
            })
        })
        .collect();
    if strips.is_empty() {
        return String::new();
    }
    strips.sort_by(|a, b| a.value.total_cmp(&b.value));
    format!(
        "<figure><h3>Beside raw bytes on the same transport</h3>{}<figcaption>Median of {} over that of raw bytes of the same size on the \
         same transport, at the same placement. Logarithmic scale. Dashed: as fast as raw blocking I/O. Bars: 95 % confidence \
         intervals.</figcaption></figure>",
        dots(&format!("{}, ratio to raw, {title}", subject(race)), " ×", Some(1.0), &strips),
        escape(subject(race))
    )
}

/// The chart of CPU time, client and server as two parts of a bar.
fn cpu(race: &Race, title: &str, rows: &[&Row]) -> String {
    let mut strips: Vec<Strip> = headlines(race, rows)
        .into_iter()
        .filter_map(|row| {
            let client = row.client_cpu_us?;
            let server = row.server_cpu_us.unwrap_or(0.0);
            let (label, note) = names(row, false);
            Some(Strip {
                label,
                note,
                class: class(row.contestant),
                value: client + server,
                interval: None,
                tail: None,
                companions: vec![client, server],
                text: if row.server_cpu_us.is_some() {
                    format!("{} + {} µs", short(client), short(server))
                } else {
                    time(client)
                },
            })
        })
        .collect();
    strips.sort_by(|a, b| a.value.total_cmp(&b.value));
    format!(
        "<figure><h3>CPU time</h3>{}<figcaption>{}: the client's part and, paler, the server's; user and system \
         together. Who spins spends the time of the call, whatever it does.</figcaption></figure>",
        bars(&format!("{}, CPU time, {title}", subject(race)), " µs", &strips),
        escape(subject(race))
    )
}

/// The table with the figures of these operations.
fn numbers(operations: &[&Operation], rows: &[&Row]) -> String {
    let transfers = operations.iter().any(|operation| operation.payload.is_some());
    let items = operations.iter().any(|operation| operation.reads.is_some());
    let several = operations.len() > 1;
    let mut head: Vec<&str> =
        vec!["contestant", "median µs", "95 % interval", "p99 µs", "rounds µs", "× raw", "× published"];
    head.extend(transfers.then_some("KB/s"));
    head.extend(items.then_some("items/s"));
    head.extend(["CPU µs", "frames", "bytes", "calls"]);
    let mut lines = Vec::new();
    for operation in operations {
        if several {
            lines.push(Line::new("", vec![operation.name.to_owned()]));
        }
        lines.extend(rows.iter().filter(|row| row.operation == operation.name).map(|row| {
            let cells = cells(row, transfers, items);
            Line::new(class(row.contestant), std::iter::once(row.title.clone()).chain(cells).collect())
        }));
    }
    table(&head.into_iter().map(str::to_owned).collect::<Vec<_>>(), &lines)
}

/// The cells of a row after its title; `transfers` and `items` say whether those columns are there.
#[allow(clippy::cast_precision_loss)]
fn cells(row: &Row, transfers: bool, items: bool) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let mut cells = vec![
        short(row.median_us),
        format!("{} – {}", short(row.median_low_us), short(row.median_high_us)),
        short(row.p99_us),
        format!("{} – {}", short(row.rounds_low_us), short(row.rounds_high_us)),
        or_dash(row.ratio_to_raw.map(|ratio| format!("{ratio:.2}"))),
        or_dash(row.ratio_to_published.map(short)),
    ];
    if transfers {
        cells.push(or_dash(row.kb_per_s.filter(|_| row.transport != "in-process").map(grouped)));
    }
    if items {
        cells.push(or_dash(row.items_per_s.map(grouped)));
    }
    let server = row.server_cpu_us.map(|us| format!(" + {}", short(us))).unwrap_or_default();
    cells.push(or_dash(row.client_cpu_us.map(|us| format!("{}{server}", short(us)))));
    cells.push(or_dash(row.frames.map(|frames| format!("{frames}"))));
    cells.push(or_dash(row.bytes.map(grouped)));
    cells.push(if row.too_few { format!("too few: {}", row.calls) } else { grouped(row.calls as f64) });
    cells
}

/// The published figures, beside the default contestants of today at the placement that comes nearest to theirs.
fn past(race: &Race, report: &Report, remote: bool) -> String {
    let candidates: &[&str] = if remote { &["remote"] } else { &["unpinned", "same", "different"] };
    let placement = candidates
        .iter()
        .copied()
        .find(|name| report.rows.iter().any(|row| row.race == race.name && row.placement == *name));
    // Two machines of then say nothing beside one of today.
    let Some(placement) = placement else { return String::new() };
    let mut strips: Vec<Strip> = race
        .published
        .iter()
        .filter(|figure| figure.remote == remote)
        .filter(|figure| race.cycles || figure.operation == race.headline)
        .map(|figure| {
            let system = if race.cycles {
                format!("{}: {}", figure.system, figure.operation)
            } else {
                figure.system.to_owned()
            };
            strip_of(&system, "as published", "past", figure.us, figure.kb_per_s)
        })
        .collect();
    let today = report.rows.iter().filter(|row| {
        row.race == race.name
            && (race.cycles || row.operation == race.headline)
            && row.placement == placement
            && row.mode != "lowest-latency"
            && row.transport != "in-process"
    });
    strips.extend(today.map(|row| {
        let (label, note) = names(row, false);
        let note = if note.is_empty() { "today".to_owned() } else { format!("today, {note}") };
        strip_of(&label, &note, class(row.contestant), row.median_us, row.kb_per_s)
    }));
    strips.sort_by(|a, b| a.value.total_cmp(&b.value));
    format!(
        "<figure><h3>Then and now, {}</h3>{}<figcaption>{}: the published figures, on the machines of their time, and today's medians \
         ({placement}).</figcaption></figure>",
        if remote { "two machines" } else { "one machine" },
        dots(&format!("{}, then and now", subject(race)), " µs", None, &strips),
        escape(subject(race))
    )
}

/// A strip of the chart of then and now, which has neither interval nor tail.
fn strip_of(label: &str, note: &str, class: &'static str, us: f64, kb_per_s: Option<f64>) -> Strip {
    Strip {
        label: label.to_owned(),
        note: note.to_owned(),
        class,
        value: us,
        interval: None,
        tail: None,
        companions: Vec::new(),
        text: kb_per_s.map_or_else(|| time(us), |kb| format!("{} MB/s", grouped(kb / 1e3))),
    }
}

/// Where a call goes: bars of its parts, and the same as a table.
fn split(report: &Report) -> String {
    let Some(split) = report.split.as_ref().filter(|split| !split.calls.is_empty()) else {
        return String::new();
    };
    let strips: Vec<Strip> = split
        .calls
        .iter()
        .map(|call| {
            let parts = vec![
                split.stub_us,
                split.marshalling_us,
                split.lookup_us,
                split.session_us,
                call.transport_us,
                call.rest_us.max(0.0),
            ];
            Strip {
                label: format!("over {}", call.transport),
                note: String::new(),
                class: "ours",
                value: parts.iter().sum(),
                interval: None,
                tail: None,
                companions: parts,
                text: format!("{} µs", short(call.whole_us)),
            }
        })
        .collect();
    let line = |call: &super::SplitCall| {
        let parts = [
            call.whole_us,
            split.stub_us,
            split.marshalling_us,
            split.lookup_us,
            split.session_us,
            call.transport_us,
            call.rest_us,
        ];
        Line::new(
            "ours",
            std::iter::once(format!("over {}", call.transport)).chain(parts.map(short)).collect(),
        )
    };
    let head =
        ["", "whole µs", "stub", "marshalling", "look-up", "session", "transport", "rest"].map(String::from);
    format!(
        "<h2>Where a call goes</h2><p class=\"soft\">{} of Everywire in its default mode, {} CPU. Stub, marshalling, look-up \
         and session (the protocol of both sides) are measured alone, in one process and without I/O; the transport is what raw \
         bytes take (grey); the rest is the links and the runtime. A rest below zero means that waiting was cheaper than blocking.</p><figure>{}</figure>{}",
        escape(&split.operation),
        split.placement,
        bars("Where a call goes", " µs", &strips),
        table(&head, &split.calls.iter().map(line).collect::<Vec<_>>())
    )
}

#[cfg(test)]
mod tests;
