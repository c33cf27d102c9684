//! The fifth race in the report: what a hop between client and backend costs, lane by lane, beside no
//! hop at all and beside a forwarder of raw bytes.
//!
//! * A row is of a lane, a hop in one of its forms, and a message over one connection or over many.
//! * A contestant that was ready and has no row is in the table of its lane all the same, as not there.
//! * Messages a second are those of all connections in the time that it took; times are those of one
//!   call.
//! * Titles begin with the lane and `: `, which the tables of a lane leave out.
//! * Invariant: a ratio is between rows of the same lane, placement and message; without the other row
//!   it is `None`.

use super::chart::{Strip, bars, dots};
use super::grid::{Grid, PLACEMENTS, few};
use super::markup::{Line, class, escape, table};
use super::{ContestantEntry, Report, Row, grouped, short};
use crate::contestants::published::{CHANGE_COPY, COPY, COPY_CHANGE, PASS, TYPED};
use crate::race::{ALL, HEADLINE_PASSED, Operation, Passes, PublishedFigure, Race};
use serde::Serialize;
use std::fmt::Write;

const OURS: &str = "everywire";
const DIRECT: &str = "direct";
const FORWARDER: &str = "forwarder";
/// The message that stands for latency, over one connection, where there is room for one.
const ALONE: &str = "10 kB";

/// What is known of a row of this race beside its times. `None` where something does not apply or cannot be known.
#[derive(Debug, Clone, Serialize)]
pub struct PassFigures {
    /// The wire and its binding, for people.
    pub lane: &'static str,
    /// Orders in the answer.
    pub orders: u32,
    /// About so many octets of them.
    pub octets: u32,
    /// Connections that called at once.
    pub connections: u32,
    /// Messages of all connections a second; a message is a call with its answer.
    pub messages_per_s: f64,
    /// CPU time of the hop for a message, user and system.
    pub hop_cpu_us: Option<f64>,
    /// Messages a second over those without a hop.
    pub rate_to_direct: Option<f64>,
    /// The same over those through the forwarder of raw bytes.
    pub rate_to_forwarder: Option<f64>,
    /// CPU time of the hop over that of the forwarder.
    pub cpu_to_forwarder: Option<f64>,
    /// What the hop adds to the median of a call that is alone, in microseconds.
    pub added_us: Option<f64>,
    /// The same over what the forwarder adds.
    pub added_to_forwarder: Option<f64>,
    /// Messages a second that were published of this form.
    pub published_per_s: Option<f64>,
    /// Messages a second over those.
    pub rate_to_published: Option<f64>,
}

impl PassFigures {
    /// What a cell knows by itself; the ratios to other rows are put in by `relate`.
    pub(crate) fn new(
        lane: &'static str,
        passes: Passes,
        messages_per_s: f64,
        hop_cpu_us: Option<f64>,
        published: Option<&PublishedFigure>,
    ) -> Self {
        let published_per_s = published.map(|figure| 1e6 / figure.us);
        Self {
            lane,
            orders: passes.orders,
            octets: passes.octets,
            connections: passes.connections,
            messages_per_s,
            hop_cpu_us,
            rate_to_direct: None,
            rate_to_forwarder: None,
            cpu_to_forwarder: None,
            added_us: None,
            added_to_forwarder: None,
            published_per_s,
            rate_to_published: published_per_s.map(|published| messages_per_s / published),
        }
    }
}

/// The figures that others are put in relation to.
#[derive(Clone, Copy)]
struct Measure {
    median_us: f64,
    messages_per_s: f64,
    hop_cpu_us: Option<f64>,
}

/// Puts each row in relation to those without a hop and through the forwarder, of the same lane, placement and message.
pub(super) fn relate(rows: &mut [Row]) {
    let of = |rows: &[Row], row: &Row, family: &str| -> Option<Measure> {
        let lane = row.passing.as_ref()?.lane;
        let found = rows.iter().find(|other| {
            other.contestant == family
                && (other.placement, other.operation) == (row.placement, row.operation)
                && other.passing.as_ref().is_some_and(|passing| passing.lane == lane)
        })?;
        let passing = found.passing.as_ref()?;
        let (median_us, messages_per_s) = (found.median_us, passing.messages_per_s);
        Some(Measure { median_us, messages_per_s, hop_cpu_us: passing.hop_cpu_us })
    };
    let all: Vec<[Option<Measure>; 2]> =
        rows.iter().map(|row| [DIRECT, FORWARDER].map(|family| of(rows, row, family))).collect();
    for (row, [direct, forwarder]) in rows.iter_mut().zip(all) {
        let Some(passing) = &mut row.passing else { continue };
        let rate = |measure: Measure| passing.messages_per_s / measure.messages_per_s;
        (passing.rate_to_direct, passing.rate_to_forwarder) = (direct.map(rate), forwarder.map(rate));
        let least = forwarder.and_then(|forwarder| forwarder.hop_cpu_us).filter(|us| *us > 0.0);
        passing.cpu_to_forwarder = passing.hop_cpu_us.zip(least).map(|(own, least)| own / least);
        if passing.connections == 1 && row.contestant != DIRECT {
            passing.added_us = direct.map(|direct| row.median_us - direct.median_us);
            let least =
                direct.zip(forwarder).map(|(direct, forwarder)| forwarder.median_us - direct.median_us);
            let least = least.filter(|us| *us > 0.0);
            passing.added_to_forwarder = passing.added_us.zip(least).map(|(own, least)| own / least);
        }
    }
}

/// The lanes that raced, in their order.
fn lanes(rows: &[&Row]) -> Vec<&'static str> {
    let mut lanes = Vec::new();
    for lane in rows.iter().filter_map(|row| Some(row.passing.as_ref()?.lane)) {
        if !lanes.contains(&lane) {
            lanes.push(lane);
        }
    }
    lanes
}

/// The rows of a lane.
fn of_lane<'r>(rows: &[&'r Row], lane: &str) -> Vec<&'r Row> {
    rows.iter()
        .copied()
        .filter(|row| row.passing.as_ref().is_some_and(|passing| passing.lane == lane))
        .collect()
}

/// The name and the title of each contestant of this lane, and whether it has rows here. Those that
/// entered come in their order, and then those that are known by their rows alone.
fn titles<'r>(report: &'r Report, lane: &str, rows: &[&'r Row]) -> Vec<(&'r str, &'r str, bool)> {
    let raced = |name: &str| rows.iter().any(|row| row.name == name);
    let begins = |entered: &&ContestantEntry| {
        entered.title.strip_prefix(lane).is_some_and(|rest| rest.starts_with(": "))
    };
    let mut all: Vec<(&str, &str, bool)> = Vec::new();
    // Of a report that is still to be written nobody has entered.
    let known = report.contestants.iter().filter(begins).map(|entered| (&*entered.name, &*entered.title));
    let more = rows.iter().map(|row| (&*row.name, &*row.title));
    for (name, title) in known.chain(more) {
        if !all.iter().any(|(known, ..)| *known == name) {
            let title = title.strip_prefix(lane).map_or(title, |rest| rest.trim_start_matches(": "));
            all.push((name, title, raced(name)));
        }
    }
    all
}

/// What the messages over this many connections are.
fn messages(race: &'static Race, many: bool) -> impl Iterator<Item = &'static Operation> {
    race.operations.iter().filter(move |o| o.passes.is_some_and(|passes| (passes.connections > 1) == many))
}

/// Its size.
fn size(operation: &Operation) -> &str {
    operation.short.split(" x ").next().unwrap_or(operation.short)
}

/// The titles of the columns. On a page (`full`) each is complete, since it may stand alone there; on a
/// terminal only the first of a kind says what the others are, too.
fn head(race: &'static Race, lane: &str, full: bool) -> Vec<String> {
    let many =
        race.operations.iter().filter_map(|o| o.passes).map(|passes| passes.connections).max().unwrap_or(1);
    let mut head = vec![lane.to_owned()];
    let mut group =
        |kind: &str, of_many: bool, more: &[&str]| {
            let sizes = messages(race, of_many).enumerate();
            head.extend(sizes.map(|(at, o)| {
                if full || at == 0 { format!("{kind} {}", size(o)) } else { size(o).to_owned() }
            }));
            head.extend(more.iter().map(|title| (*title).to_owned()));
        };
    group("us", false, &["p99", "added x fwd"]);
    group(&format!("x {many}: messages/s"), true, &["x no hop"]);
    group("hop CPU us", true, &["x fwd", "x published"]);
    head
}

/// The cells of one contestant, as many as `head` has after its first.
fn line(race: &'static Race, rows: &[&Row], name: &str) -> Vec<String> {
    let find =
        |operation: &str| rows.iter().copied().find(|row| row.name == name && row.operation == operation);
    let passing = |operation: &str| find(operation).and_then(|row| row.passing.as_ref());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let ratio = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.2}")));
    let mut line = Vec::new();
    line.extend(
        messages(race, false)
            .map(|o| or_dash(find(o.name).map(|r| format!("{}{}", short(r.median_us), few(r))))),
    );
    line.push(or_dash(find(ALONE).map(|row| short(row.p99_us))));
    line.push(ratio(passing(ALONE).and_then(|passing| passing.added_to_forwarder)));
    line.extend(messages(race, true).map(|o| {
        let warned =
            |row: &Row| Some(format!("{}{}", grouped(row.passing.as_ref()?.messages_per_s), few(row)));
        or_dash(find(o.name).and_then(warned))
    }));
    let headline = passing(race.headline);
    line.push(ratio(headline.and_then(|passing| passing.rate_to_direct)));
    line.extend(messages(race, true).map(|o| or_dash(passing(o.name).and_then(|p| p.hop_cpu_us).map(short))));
    line.push(ratio(headline.and_then(|passing| passing.cpu_to_forwarder)));
    line.push(ratio(headline.and_then(|passing| passing.rate_to_published)));
    line
}

/// The table of each lane at one placement, and the class of each of its lines.
fn grids(report: &Report, race: &'static Race, rows: &[&Row], full: bool) -> Vec<(Grid, Vec<&'static str>)> {
    let of = |lane: &'static str| {
        let rows = of_lane(rows, lane);
        let head = head(race, lane, full);
        let mut classes = Vec::new();
        let lines = titles(report, lane, &rows).into_iter().map(|(name, title, raced)| {
            let family = rows.iter().find(|row| row.name == name).map_or("", |row| row.contestant);
            classes.push(if raced { class(family) } else { "rival" });
            let mut line = if raced { line(race, &rows, name) } else { vec!["not there".to_owned()] };
            line.resize(head.len() - 1, "-".to_owned());
            line.insert(0, title.to_owned());
            line
        });
        let lines = lines.collect();
        (Grid { head, lines }, classes)
    };
    lanes(rows).into_iter().map(of).collect()
}

/// For a terminal.
pub(super) fn text(report: &Report, race: &Race, rows: &[&Row]) -> String {
    let Some(race) = known(race) else { return String::new() };
    let mut out: String =
        grids(report, race, rows, false).into_iter().map(|(grid, _)| format!("\n{grid}")).collect();
    let published = race.published.iter().map(|figure| {
        format!(
            "published: {}, {}: {} messages/s\n",
            figure.system,
            figure.operation,
            grouped(1e6 / figure.us)
        )
    });
    out.push('\n');
    out.extend(published);
    out
}

/// The same race as a constant of the program, which lives for ever.
fn known(race: &Race) -> Option<&'static Race> {
    ALL.iter().find(|known| known.name == race.name)
}

/// One placement as a part of a page.
pub(super) fn html(report: &Report, race: &Race, title: &str, rows: &[&Row]) -> String {
    let Some(race) = known(race) else { return String::new() };
    let mut out = String::new();
    for (lane, (grid, classes)) in lanes(rows).into_iter().zip(grids(report, race, rows, true)) {
        let rows = of_lane(rows, lane);
        out.push_str(&chart(race, lane, title, &rows));
        out.push_str(&ratios(race, lane, title, &rows));
        let lines = grid.lines.into_iter().zip(classes).map(|(line, class)| Line::new(class, line));
        out.push_str(&table(&grid.head, &lines.collect::<Vec<_>>()));
    }
    let published = race.published.iter().map(|figure| {
        format!("{}, {}: {} messages/s", figure.system, figure.operation, grouped(1e6 / figure.us))
    });
    let published: Vec<String> = published.collect();
    let _ = write!(out, "<p class=\"soft\">Published: {}.</p>", escape(&published.join("; ")));
    out
}

/// The CPU of the hops for the message that stands for the others.
fn chart(race: &Race, lane: &str, title: &str, rows: &[&Row]) -> String {
    let strip = |row: &&Row| {
        let passing = row.passing.as_ref()?;
        let cpu = passing.hop_cpu_us?;
        Some(Strip {
            label: row.title.strip_prefix(lane).unwrap_or(&row.title).trim_start_matches(": ").to_owned(),
            note: format!("{} messages/s{}", grouped(passing.messages_per_s), few(row)),
            class: class(row.contestant),
            value: cpu,
            interval: None,
            tail: None,
            companions: Vec::new(),
            text: format!("{} µs", short(cpu)),
        })
    };
    let mut strips: Vec<Strip> =
        rows.iter().filter(|row| row.operation == race.headline).filter_map(strip).collect();
    strips.sort_by(|a, b| a.value.total_cmp(&b.value));
    if strips.is_empty() {
        return String::new();
    }
    let message = match race.headline.split_once(" x ") {
        Some((size, connections)) => format!("{size}, with {connections} connections at once"),
        None => race.headline.to_owned(),
    };
    format!(
        "<figure><h3>{}: CPU of the hop, {}</h3>{}<figcaption>CPU time of the program between client and backend for a message of {}; user \
         and system together.</figcaption></figure>",
        escape(lane),
        escape(race.headline),
        bars(&format!("{lane}, CPU of the hop, {title}"), " µs", &strips),
        escape(&message)
    )
}

/// The same beside the forwarder of raw bytes.
fn ratios(race: &Race, lane: &str, title: &str, rows: &[&Row]) -> String {
    let strip = |row: &&Row| {
        let ratio = row.passing.as_ref()?.cpu_to_forwarder?;
        Some(Strip {
            label: row.title.strip_prefix(lane).unwrap_or(&row.title).trim_start_matches(": ").to_owned(),
            note: String::new(),
            class: class(row.contestant),
            value: ratio,
            interval: None,
            tail: None,
            companions: Vec::new(),
            text: format!("{ratio:.2} ×"),
        })
    };
    let of = |row: &&&Row| row.operation == race.headline && row.contestant != FORWARDER;
    let mut strips: Vec<Strip> = rows.iter().filter(of).filter_map(strip).collect();
    strips.sort_by(|a, b| a.value.total_cmp(&b.value));
    if strips.is_empty() {
        return String::new();
    }
    format!(
        "<figure><h3>{}: CPU beside the forwarder\u{2019}s</h3>{}<figcaption>CPU time of the hop over that of the forwarder of raw bytes. \
         Logarithmic scale. Dashed: as little as the forwarder needs.</figcaption></figure>",
        escape(lane),
        dots(&format!("{lane}, CPU of the hop beside the forwarder, {title}"), " ×", Some(1.0), &strips)
    )
}

/// Two sentences for each lane at each placement: how the hop stands beside the others, and what its forms cost.
pub(super) fn verdicts(report: &Report) -> Vec<String> {
    let races = ALL.iter().filter(|race| race.passes());
    races
        .flat_map(|race| PLACEMENTS.iter().map(move |placement| (race, placement)))
        .flat_map(|(race, (placement, title))| {
            let here = |row: &&Row| row.race == race.name && row.placement == *placement;
            let rows: Vec<&Row> = report.rows.iter().filter(here).collect();
            let of = |lane| {
                let rows = of_lane(&rows, lane);
                let ours = forms(race.name, lane, title, &rows, OURS);
                let theirs = forms(race.name, lane, title, &rows, "mono");
                beside(race.name, lane, title, &rows)
                    .into_iter()
                    .chain(ours)
                    .chain(theirs)
                    .collect::<Vec<_>>()
            };
            lanes(&rows).into_iter().flat_map(of).collect::<Vec<_>>()
        })
        .collect()
}

/// The row of a family in one form, for the message that stands for the others. Mono as shipped is left
/// out.
fn headline<'r>(rows: &[&'r Row], family: &str, form: &str) -> Option<(&'r Row, &'r PassFigures)> {
    let fits = |row: &&&'r Row| {
        row.operation == HEADLINE_PASSED
            && row.contestant == family
            && row.mode == form
            && !row.name.ends_with("-shipped")
    };
    let row = rows.iter().find(fits)?;
    Some((row, row.passing.as_ref()?))
}

/// Ours in its plainest form, or else the rivals alone, beside no hop and beside the forwarder.
fn beside(race: &str, lane: &str, title: &str, rows: &[&Row]) -> Option<String> {
    let rivals: Vec<(&Row, &PassFigures)> =
        ["haproxy", "nginx", "mono"].iter().filter_map(|family| headline(rows, family, PASS)).collect();
    let name =
        |row: &Row| row.title.strip_prefix(lane).unwrap_or(&row.title).trim_start_matches(": ").to_owned();
    let told = |(row, passing): &(&Row, &PassFigures)| {
        let beside = |ratio: Option<f64>, of: &str| ratio.map(|ratio| format!("{ratio:.2} {of}"));
        let parts = [
            Some(format!("{} messages/s{}", grouped(passing.messages_per_s), few(row))),
            beside(passing.rate_to_direct, "of those without a hop"),
            passing.hop_cpu_us.map(|us| format!("{} us of its CPU a message", short(us))),
            beside(passing.cpu_to_forwarder, "of the forwarder's"),
        ];
        format!("{}: {}", name(row), parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    };
    let own = headline(rows, OURS, PASS);
    let all: Vec<String> = own.iter().chain(&rivals).map(told).collect();
    if all.is_empty() {
        return None;
    }
    Some(format!("{race}, {lane}, {HEADLINE_PASSED}, {title}: {}.", all.join("; ")))
}

/// What each form costs beside the plainest one.
fn forms(race: &str, lane: &str, title: &str, rows: &[&Row], family: &str) -> Option<String> {
    let (plain, passed) = headline(rows, family, PASS)?;
    let one = |form: &&str| {
        let (_, passing) = headline(rows, family, form)?;
        let cpu = passing
            .hop_cpu_us
            .zip(passed.hop_cpu_us)
            .map(|(own, plain)| format!(" and {:.2} of its CPU", own / plain));
        let rate = passing.messages_per_s / passed.messages_per_s;
        Some(format!("{form}: {rate:.2} of the messages/s{}", cpu.unwrap_or_default()))
    };
    let all: Vec<String> = [COPY, CHANGE_COPY, COPY_CHANGE, TYPED].iter().filter_map(one).collect();
    if all.is_empty() {
        return None;
    }
    let name = plain.title.strip_prefix(lane).unwrap_or(&plain.title).trim_start_matches(": ");
    Some(format!("{race}, {lane}, {HEADLINE_PASSED}, {title}: beside {name}: {}.", all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn report() -> Report {
        let mut report = sample();
        let raw = report.rows[0].clone();
        let race = ALL.iter().find(|race| race.passes()).unwrap();
        let row = |contestant, name: &str, mode, operation: &'static str, median: f64, cpu: Option<f64>| {
            let mut row = raw.clone();
            let passes = race.operations.iter().find(|o| o.name == operation).unwrap().passes.unwrap();
            (row.race, row.contestant, row.mode, row.operation) = (race.name, contestant, mode, operation);
            (row.name, row.title, row.median_us) = (name.into(), format!("A lane: <{name}>"), median);
            let published = race.published_by("WCF broker", mode, false);
            row.passing = Some(PassFigures::new("A lane", passes, 1e6 / median, cpu, published));
            row
        };
        report.rows = vec![
            row("direct", "direct-a", "direct", ALONE, 20.0, None),
            row("forwarder", "forwarder-a", PASS, ALONE, 30.0, Some(8.0)),
            row("everywire", "everywire-a", PASS, ALONE, 33.0, Some(9.0)),
            row("direct", "direct-a", "direct", HEADLINE_PASSED, 20.0, None),
            row("forwarder", "forwarder-a", PASS, HEADLINE_PASSED, 25.0, Some(8.0)),
            row("everywire", "everywire-a", PASS, HEADLINE_PASSED, 25.0, Some(10.0)),
            row("everywire", "everywire-a-copy", COPY, HEADLINE_PASSED, 50.0, Some(11.0)),
            row("haproxy", "haproxy-a", PASS, HEADLINE_PASSED, 40.0, Some(16.0)),
        ];
        report.contestants.push(ContestantEntry {
            name: "everywire-a-typed".into(),
            title: "A lane: <typed>".into(),
            version: None,
        });
        report.relate();
        report.judge();
        report
    }

    #[test]
    fn a_hop_is_put_beside_no_hop_and_beside_the_forwarder() {
        let report = report();
        let passing = |at: usize| report.rows[at].passing.clone().unwrap();
        assert_eq!((passing(2).added_us, passing(2).added_to_forwarder), (Some(13.0), Some(1.3)));
        assert_eq!((passing(5).rate_to_direct, passing(5).cpu_to_forwarder), (Some(0.8), Some(1.25)));
        assert_eq!(passing(5).added_us, None);
        assert!(passing(6).rate_to_published.is_some_and(|ratio| (ratio - 20_000.0 / 11_317.0).abs() < 1e-3));
        assert_eq!(passing(3).cpu_to_forwarder, None);
    }

    #[test]
    fn what_is_not_there_is_in_the_tables() {
        let (text, page) = (report().to_table(), report().to_html());
        assert!(text.contains("not there") && page.contains(">not there</td>"), "{text}");
        assert!(text.contains("11,317 messages/s") && page.contains("6,854 messages/s"), "{text}");
        assert!(page.contains("&lt;typed&gt;") && !page.contains("<typed>"));
    }

    #[test]
    fn verdicts_are_of_the_hop_and_of_its_forms() {
        let verdicts = report().verdicts;
        assert_eq!(
            verdicts,
            [
                "broker, A lane, 10 kB x 32, same CPU: <everywire-a>: 40,000 messages/s, 0.80 of those without a hop, 10.0 us of its CPU a message, \
                 1.25 of the forwarder's; <haproxy-a>: 25,000 messages/s, 0.50 of those without a hop, 16.0 us of its CPU a message, 2.00 of the \
                 forwarder's.",
                "broker, A lane, 10 kB x 32, same CPU: beside <everywire-a>: copy, forward: 0.50 of the messages/s and 1.10 of its CPU.",
            ]
        );
    }

    #[test]
    fn a_page_of_this_race_closes_its_tags() {
        let page = report().to_html();
        for tag in ["figure", "table", "div", "p", "tr", "td", "th"] {
            let opened =
                page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
