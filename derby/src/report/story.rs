//! The story of the five published races, the first thing on the page: what was published, what this
//! machine measured, and what follows from it, a plain sentence each.
//!
//! * A sentence is made of rows and of published figures only. Without rows a race says the command
//!   that races it.
//! * A contest is between our fastest row in its default mode and the fastest rival of the same kind,
//!   transport and route, at the placement of one machine that is likest to the published one.
//! * The races that accompany another have no chapter.
//! * Invariant: the winner is named, and so is the loser; two medians whose intervals overlap are a
//!   draw.

use super::grid::{PLACEMENTS, few};
use super::markup::escape;
use super::{Report, Row, columns, grouped, short};
use crate::contestants::published::{CALLBACKS_WIRE, CHANGE_COPY, COPY, ITEMS_DCOM, LARGE};
use crate::race::{ALL, CALLBACK, CONNECTION_POINT, HEADLINE_PASSED, READ_100, Race};
use std::fmt::Write;

const OURS: &str = "everywire";
/// Placements that stand for one machine, the likest to the published first.
const LOCAL: [&str; 3] = ["unpinned", "different", "same"];
/// The placement that stands for two machines.
const REMOTE: &str = "remote";

/// A race: what was published of it, and what was found here, as plain text that is not yet escaped.
pub(super) struct Chapter {
    pub(super) race: &'static Race,
    pub(super) published: String,
    /// What was measured here, and what follows; none if nobody raced.
    pub(super) here: Option<(String, String)>,
}

/// All five, in the order of their numbers.
pub(super) fn chapters(report: &Report) -> Vec<Chapter> {
    let races = ALL.iter().filter(|race| !race.accompanies());
    races
        .map(|race| {
            let (published, here) = if race.cycles {
                callbacks(report, race)
            } else if race.reads() {
                items(report, race)
            } else if race.passes() {
                broker(report, race)
            } else if race.transfers() {
                (published(race, LARGE, "1 MB moved at", &rate_published), systems(report, race, LARGE))
            } else {
                let about = "A call that takes and gives an integer took";
                (published(race, race.headline, about, &|f| time(f.us)), systems(report, race, race.headline))
            };
            Chapter { race, published, here }
        })
        .collect()
}

/// As a part of the page.
pub(super) fn html(report: &Report) -> String {
    let mut out = String::from("<h2>The five races</h2><ol class=\"story\">");
    for Chapter { race, published, here } in chapters(report) {
        let _ =
            write!(out, "<li><h3>{}</h3><p><b>Published:</b> {}</p>", escape(race.title), escape(&published));
        match here {
            Some((measured, verdict)) => {
                let _ = write!(
                    out,
                    "<p><b>Here:</b> {}</p><p class=\"verdict\">{}</p>",
                    escape(&measured),
                    escape(&verdict)
                );
            }
            None => {
                let command = format!("everywire derby {}", race.name);
                let _ = write!(
                    out,
                    "<p><b>Here:</b> not raced for this page; <code>{command}</code> races it.</p>"
                );
            }
        }
        out.push_str("</li>");
    }
    out.push_str("</ol>");
    out
}

/// What a placement is called in a sentence.
fn place(placement: &str) -> &'static str {
    match placement {
        "same" => "with client and server on one CPU",
        "different" => "with client and server on a CPU each",
        REMOTE => "between two network namespaces",
        "unpinned" => "wherever the kernel puts client and server",
        other => PLACEMENTS.iter().find(|(name, _)| *name == other).map_or("elsewhere", |(_, title)| title),
    }
}

/// A time of a call, in the unit that suits it.
fn time(us: f64) -> String {
    if us < 0.1 { format!("{} ns", short(us * 1e3)) } else { format!("{} µs", short(us)) }
}

/// A throughput, in the unit that suits it.
fn rate(kb_per_s: f64) -> String {
    if kb_per_s >= 1e6 {
        format!("{} GB/s", short(kb_per_s / 1e6))
    } else {
        format!("{} MB/s", short(kb_per_s / 1e3))
    }
}

/// A published figure as a throughput; as a time where only that was published.
fn rate_published(figure: &crate::race::PublishedFigure) -> String {
    figure.kb_per_s.map_or_else(|| time(figure.us), rate)
}

/// `a`, `a and b`, `a, b and c`.
fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What each system was published with, on one machine.
fn published(
    race: &Race,
    operation: &str,
    about: &str,
    figure: &dyn Fn(&crate::race::PublishedFigure) -> String,
) -> String {
    let of = |system: &&str| {
        let found = race.published_by(system, operation, false)?;
        Some(format!("{} with {system}", figure(found)))
    };
    let parts: Vec<String> = columns::systems(race).iter().filter_map(of).collect();
    format!("{about} {}.", list(&parts))
}

/// Our fastest row of those that fit, and the fastest rival over a transport and route that both have.
/// The rival is `None` if there is none such.
fn contest<'r>(rows: &[&'r Row]) -> Option<(&'r Row, Option<&'r Row>)> {
    let fastest =
        |rows: &mut dyn Iterator<Item = &'r Row>| rows.min_by(|a, b| a.median_us.total_cmp(&b.median_us));
    let alike = |a: &Row, b: &Row| (a.transport, a.route) == (b.transport, b.route);
    let own = |row: &&Row| row.contestant == OURS;
    let rivals: Vec<&Row> = rows.iter().copied().filter(|row| !own(row)).collect();
    // Where both race, what both can do is compared.
    let against = rivals.iter().copied().filter(|rival| rows.iter().any(|row| own(row) && alike(row, rival)));
    match fastest(&mut against.into_iter()) {
        Some(rival) => {
            let ours = fastest(&mut rows.iter().copied().filter(|row| own(row) && alike(row, rival)))?;
            Some((ours, Some(rival)))
        }
        None => {
            let ours = fastest(&mut rows.iter().copied().filter(own))?;
            Some((ours, None))
        }
    }
}

/// Who wins, in words. Contestants are named by their titles up to the first comma.
fn outcome(ours: &Row, rival: &Row) -> String {
    let name = |row: &Row| row.title.split(',').next().unwrap_or(&row.title).to_owned();
    if ours.median_high_us >= rival.median_low_us && rival.median_high_us >= ours.median_low_us {
        return format!("{} and {} cannot be told apart", name(ours), name(rival));
    }
    let (winner, loser) = if ours.median_us < rival.median_us { (ours, rival) } else { (rival, ours) };
    let factor = loser.median_us / winner.median_us;
    format!("{} is {factor:.2} times as fast as {}", name(winner), name(loser))
}

/// Upper case at the beginning of a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Races 2 and 4: a contest for each published system, at the placement of one machine where most rivals raced.
fn systems(report: &Report, race: &Race, operation: &str) -> Option<(String, String)> {
    let told = LOCAL.into_iter().filter_map(|placement| systems_at(report, race, operation, placement));
    // Of equals the first, which is the likest to the published one.
    let (outcomes, measured) = told.rev().max_by_key(|(outcomes, _)| outcomes.len())?;
    let verdict = if outcomes.is_empty() {
        "No rival raced on this machine.".to_owned()
    } else {
        format!("{}.", list(&outcomes))
    };
    Some((measured, verdict))
}

/// The outcomes at one placement, and the sentence with the figures.
fn systems_at(
    report: &Report,
    race: &Race,
    operation: &str,
    placement: &str,
) -> Option<(Vec<String>, String)> {
    let (mut figures, mut outcomes) = (Vec::new(), Vec::new());
    for system in columns::systems(race) {
        let fits = |row: &&Row| {
            (row.race, row.placement, row.operation, row.mode) == (race.name, placement, operation, "default")
                && row.published_by == Some(system)
                && row.transport != "in-process"
        };
        let rows: Vec<&Row> = report.rows.iter().filter(fits).collect();
        let Some((ours, rival)) = contest(&rows) else { continue };
        let figure = |row: &Row| {
            let figure = row.kb_per_s.map_or_else(|| time(row.median_us), rate);
            format!("{}: {figure}{}", row.title, few(row))
        };
        figures.push(match rival {
            Some(rival) => format!("{} ({})", figure(ours), figure(rival)),
            None => figure(ours),
        });
        outcomes.extend(rival.map(|rival| outcome(ours, rival)));
    }
    if figures.is_empty() {
        return None;
    }
    Some((outcomes, format!("{}, {}.", figures.join("; "), place(placement))))
}

/// Race 1: a callback against a connection point, on the wire that it was published of.
fn callbacks(report: &Report, race: &Race) -> (String, Option<(String, String)>) {
    let ms = |operation: &str, remote: bool| {
        let figure =
            columns::systems(race).first().and_then(|system| race.published_by(system, operation, remote));
        figure.map_or_else(String::new, |figure| grouped(figure.us))
    };
    let published = format!(
        "On DCOM a connection point was cheaper than a callback: {} ms against {} ms for 1000 cycles on one machine, {} ms against {} ms on \
         two. The author could not say why.",
        ms(CONNECTION_POINT, false),
        ms(CALLBACK, false),
        ms(CONNECTION_POINT, true),
        ms(CALLBACK, true)
    );
    let find = |operation: &str, placement: &str| {
        let fits = |row: &&Row| {
            (row.race, row.placement, row.operation, row.mode) == (race.name, placement, operation, "default")
                && row.wire == Some(CALLBACKS_WIRE)
                && (row.contestant, row.transport) == (OURS, "tcp")
        };
        report.rows.iter().filter(fits).min_by(|a, b| a.median_us.total_cmp(&b.median_us))
    };
    let pair = |placement: &str| Some((find(CONNECTION_POINT, placement)?, find(CALLBACK, placement)?));
    let near = LOCAL.into_iter().find_map(|placement| Some((placement, pair(placement)?)));
    let far = pair(REMOTE).map(|pair| (REMOTE, pair));
    let all: Vec<_> = near.into_iter().chain(far).collect();
    let Some((_, (point, callback))) = all.last().copied() else { return (published, None) };
    let told: Vec<String> = all
        .iter()
        .map(|(placement, (point, callback))| {
            // A microsecond a cycle is a millisecond for a thousand.
            format!(
                "{} ms with a connection point{} and {} ms with a callback{}, {}",
                short(point.median_us),
                few(point),
                short(callback.median_us),
                few(callback),
                place(placement)
            )
        })
        .collect();
    let trips = point.round_trips.zip(callback.round_trips).map(|(point, callback)| {
        format!(" A cycle with a connection point has {point} round trips, one with a callback {callback}.")
    });
    let verdict =
        if point.median_high_us >= callback.median_low_us && callback.median_high_us >= point.median_low_us {
            "The two cannot be told apart".to_owned()
        } else if callback.median_us < point.median_us {
            format!("The callback is {:.2} times as fast", point.median_us / callback.median_us)
        } else {
            format!("The connection point is {:.2} times as fast", callback.median_us / point.median_us)
        };
    let measured = format!("1000 cycles of {} took {}.", point.title, told.join("; "));
    (published, Some((measured, format!("{verdict}.{}", trips.unwrap_or_default()))))
}

/// Race 3: items a second, on one machine and between two.
fn items(report: &Report, race: &Race) -> (String, Option<(String, String)>) {
    let then = |remote: bool| {
        let items =
            race.operations.iter().find(|operation| operation.name == READ_100).and_then(|operation| {
                operation.items_per_s(race.published_by(ITEMS_DCOM, READ_100, remote)?.us)
            });
        items.map_or_else(String::new, grouped)
    };
    let published = format!(
        "A server of OPC over DCOM was read at {} items a second on one machine and at {} on two, 100 at a time.",
        then(false),
        then(true)
    );
    let at = |placement: &str| -> Vec<&Row> {
        let fits = |row: &&Row| {
            (row.race, row.placement, row.operation, row.mode) == (race.name, placement, READ_100, "default")
                && row.transport == "tcp"
                && row.contestant != "raw"
        };
        report.rows.iter().filter(fits).collect()
    };
    let near = LOCAL.into_iter().find_map(|placement| Some((placement, contest(&at(placement))?)));
    let far = contest(&at(REMOTE)).map(|found| (REMOTE, found));
    let all: Vec<_> = near.into_iter().chain(far).collect();
    let Some((_, (first, _))) = all.first().copied() else { return (published, None) };
    let told: Vec<String> = all
        .iter()
        .filter_map(|(placement, (ours, _))| {
            Some(format!("{} items a second{} {}", grouped(ours.items_per_s?), few(ours), place(placement)))
        })
        .collect();
    let rivals = all.iter().filter_map(|(placement, (ours, rival))| {
        Some(format!("{} {}", outcome(ours, (*rival)?), place(placement)))
    });
    let rivals: Vec<String> = rivals.collect();
    let verdict = match (rivals.is_empty(), first.ratio_to_raw) {
        (false, _) => format!("{}.", sentence(&list(&rivals))),
        (true, Some(ratio)) => format!("A read takes {ratio:.2} times as long as raw bytes; no rival raced."),
        (true, None) => "No rival raced on this machine.".to_owned(),
    };
    (published, Some((format!("{} reads {}.", first.title, list(&told)), verdict)))
}

/// Race 5: a copy with and without a change before it.
fn broker(report: &Report, race: &Race) -> (String, Option<(String, String)>) {
    let of = |form: &str| {
        race.published.iter().find(|figure| figure.operation == form).map(|figure| 1e6 / figure.us)
    };
    let published = match of(COPY).zip(of(CHANGE_COPY)) {
        Some((copy, change)) => format!(
            "A WCF broker copied and forwarded {} messages a second, and {} if it had changed a header before the copy: {} % fewer.",
            grouped(copy),
            grouped(change),
            grouped((1.0 - change / copy) * 100.0)
        ),
        None => String::new(),
    };
    let find = |lane: &str, placement: &str, form: &str| {
        let fits = |row: &&Row| {
            (row.race, row.placement, row.operation) == (race.name, placement, HEADLINE_PASSED)
                && (row.contestant, row.mode) == (OURS, form)
                && row.passing.as_ref().is_some_and(|passing| passing.lane == lane)
        };
        report.rows.iter().find(fits)
    };
    let mut told = Vec::new();
    let mut losses: Vec<f64> = Vec::new();
    let mut lanes: Vec<(&str, &str)> = Vec::new();
    for row in report.rows.iter().filter(|row| row.race == race.name && row.contestant == OURS) {
        let Some(passing) = &row.passing else { continue };
        if !lanes.contains(&(passing.lane, row.placement)) {
            lanes.push((passing.lane, row.placement));
        }
    }
    // One placement stands for all: the first that raced.
    let placement = lanes.first().map(|(_, placement)| *placement);
    for (lane, placement) in lanes.into_iter().filter(|(_, at)| Some(*at) == placement) {
        let rows = find(lane, placement, COPY).zip(find(lane, placement, CHANGE_COPY));
        let Some((copy, change)) = rows else { continue };
        let Some((copied, changed)) = copy.passing.as_ref().zip(change.passing.as_ref()) else { continue };
        told.push(format!(
            "{lane} {} and {}{}",
            grouped(copied.messages_per_s),
            grouped(changed.messages_per_s),
            few(change)
        ));
        losses.push((1.0 - changed.messages_per_s / copied.messages_per_s) * 100.0);
    }
    let Some(placement) = placement.filter(|_| !told.is_empty()) else { return (published, None) };
    let measured = format!(
        "Messages of 10 kB a second, copied, and copied after a change of a header, {}: {}.",
        place(placement),
        told.join("; ")
    );
    let most = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let verdict = if most < 1.0 {
        "A change before the copy costs Everywire's broker nothing.".to_owned()
    } else {
        format!(
            "A change before the copy costs Everywire's broker {} % of its messages a second at the most.",
            grouped(most)
        )
    };
    (published, Some((measured, verdict)))
}

#[cfg(test)]
mod tests;
