//! The coordinator: who runs when, where and how often.
//!
//! All servers of a placement are up at once and idle but for one; the clients come in turn (A B C, A B C), a new process
//! each time, and the first round is dropped. So whatever changes in the machine meanwhile befalls everybody.

mod traces;

use crate::broken;
use crate::contestants::published::{self, CALLBACKS_DCOM};
use crate::contestants::{self, Contestant, Stand, ours};
use crate::link::Link;
use crate::machine::Machine;
use crate::measure::{Line, Plan};
use crate::options::Options;
use crate::placement::{self, Placement};
use crate::process::{Fresh, complete};
use crate::progress::Progress;
use crate::race::{self, Operation, Race};
use crate::relay::{Passed, Place, Relay, free_port};
use crate::report::{Absent, Entered, Report, Row, Split};
use crate::sides::{READY, Server, client};
use crate::stats::{Times, confidence, median, us};
use everywire_model::Failure;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A quick derby races no longer than this; the rest of its time is for starting and counting.
const QUICK: Duration = Duration::from_secs(18);
/// Who starts slowly gets so much for an operation at the least: its first calls are the slowest.
const WARM: Duration = Duration::from_millis(60);
/// Large transfers are done so many times fewer.
const LARGE_DIVISOR: u64 = 20;

/// Runs the races, prints and writes what was asked for, and returns the report.
///
/// # Errors
/// The options ask for something unknown, nobody can race, or a result cannot be written. A contestant that fails is
/// named in the report, and the others go on.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let races = race::named(&options.races)?;
    let placements = placement::named(&options.placements)?;
    let all = contestants::all(options.against.as_deref())?;
    let picked = contestants::picked(all, &only(options))?;
    let rounds = options.rounds();
    let runs = starters(options, &races, &picked, &placements).count() * rounds;
    let progress = Progress::new(options.silent, runs);

    let mut report = Report::new(Machine::this(), command(options), rounds, options.calls());
    let mut ready = Vec::new();
    for contestant in picked {
        progress.stage(&format!("preparing {}", contestant.name));
        match contestant.setup.prepare() {
            Ok(version) => {
                report.contestants.push(Entered {
                    name: contestant.name.clone(),
                    title: contestant.title.clone(),
                    version,
                });
                ready.push(contestant);
            }
            Err(missing) => {
                progress
                    .note(&format!("{} cannot race: {}; {}", contestant.name, missing.what, missing.install));
                report.absent.push(Absent {
                    name: contestant.name,
                    why: missing.what,
                    remedy: missing.install,
                });
            }
        }
    }
    if ready.is_empty() {
        return Err(
            broken("nobody can race").with_hint("ask for other contestants, or install what is missing")
        );
    }

    let begun = Instant::now();
    let mut derby = Derby {
        options,
        contestants: &ready,
        placements: &placements,
        progress: &progress,
        failed: BTreeMap::new(),
        operations_left: starters(options, &races, &ready, &placements)
            .map(|(race, contestant)| operations_of(race, contestant))
            .sum::<usize>()
            * rounds,
        deadline: options.quick.then(|| begun + QUICK),
    };
    for race in &races {
        let rows = derby.race(race)?;
        report.rows.extend(rows);
        if race.cycles && !options.no_trace {
            progress.stage(&format!("{}: tracing single cycles", race.title));
            report.traces.extend(derby.traces(race));
        }
    }
    for (name, why) in std::mem::take(&mut derby.failed) {
        report.absent.push(Absent {
            name,
            why,
            remedy: "see the message; the other contestants are complete".into(),
        });
    }
    report.split = derby.split(&report);
    report.relate();
    traces::conclude(&mut report);
    report.seconds = begun.elapsed().as_secs_f64();
    drop(progress);
    report.deliver(options)?;
    Ok(report)
}

/// Who races where: a race and a contestant for each placement.
fn starters<'a>(
    options: &'a Options,
    races: &'a [&'static Race],
    contestants: &'a [Contestant],
    placements: &'a [Placement],
) -> impl Iterator<Item = (&'a Race, &'a Contestant)> {
    let at = move |race: &'a Race| {
        placements.iter().flat_map(move |placement| {
            contestants.iter().filter(move |held| starts(options, race, held, placement))
        })
    };
    races.iter().flat_map(move |race| at(race).map(move |contestant| (*race, contestant)))
}

/// Whether somebody races at this placement.
fn starts(options: &Options, race: &Race, contestant: &Contestant, placement: &Placement) -> bool {
    let chosen = !options.placements.is_empty();
    let held = chosen || race.remote || !placement.remote;
    let spared = options.quick && !chosen && contestant.setup.starts_slowly();
    held && contestant.setup.enters(race)
        && contestant.runs_at(placement)
        // In another mode than the usual one a look at one race is enough.
        && !(spared && (placement.is_pinned() || (contestant.mode != "default" && !race.transfers())))
}

/// Operations that a contestant has in a race.
fn operations_of(race: &Race, contestant: &Contestant) -> usize {
    race.operations.iter().filter(|operation| contestant.setup.does(race, operation.name)).count()
}

/// Against a foreign server only that one and the raw ones race, unless others are picked.
fn only(options: &Options) -> Vec<String> {
    if options.only.is_empty() && options.against.is_some() {
        return ["raw", "against"].map(str::to_owned).into();
    }
    options.only.clone()
}

fn command(options: &Options) -> String {
    if !options.command.is_empty() {
        return options.command.clone();
    }
    let words: Vec<String> = std::env::args()
        .enumerate()
        .map(|(i, word)| if i == 0 { "everywire".into() } else { word })
        .collect();
    words.join(" ")
}

struct Derby<'a> {
    options: &'a Options,
    contestants: &'a [Contestant],
    placements: &'a [Placement],
    progress: &'a Progress,
    /// Contestant and what happened to it first.
    failed: BTreeMap<String, String>,
    /// Operations of single client processes that are still to come.
    operations_left: usize,
    deadline: Option<Instant>,
}

/// What is known about one operation of one contestant at one placement.
#[derive(Default)]
struct Cell {
    times: Times,
    /// Medians of the blocks of each round, in microseconds.
    rounds: Vec<Vec<f64>>,
    round_medians: Vec<f64>,
    /// Means of a call, in microseconds: one for each kept round, and that of the dropped one.
    means: Vec<f64>,
    dropped: Option<f64>,
    client_cpu_us: Option<f64>,
    server_cpu_us: Option<f64>,
}

/// Frames and bytes of one call, both directions together.
#[derive(Clone, Copy)]
struct Traffic {
    frames: f64,
    bytes: f64,
}

impl Derby<'_> {
    fn race(&mut self, race: &'static Race) -> Result<Vec<Row>, Failure> {
        let mut cells: BTreeMap<(usize, usize, usize), Cell> = BTreeMap::new();
        for (at, placement) in self.placements.iter().enumerate() {
            self.progress.stage(&format!("{}: {}", race.title, placement.title));
            self.placement(race, at, placement, &mut cells)?;
        }
        if !race.signals {
            self.progress.stage(&format!("{}: counting frames and bytes", race.title));
        }
        let traffic: Vec<Vec<Option<Traffic>>> =
            self.contestants.iter().map(|contestant| self.traffic(race, contestant)).collect();

        let mut rows = Vec::new();
        for (&(at, who, what), cell) in &cells {
            let (Some(placement), Some(contestant), Some(operation)) =
                (self.placements.get(at), self.contestants.get(who), race.operations.get(what))
            else {
                continue;
            };
            let traffic = traffic.get(who).and_then(|all| all.get(what).copied().flatten());
            rows.push(row(race, placement, contestant, operation, cell, traffic));
        }
        Ok(rows)
    }

    fn placement(
        &mut self,
        race: &'static Race,
        at: usize,
        placement: &Placement,
        cells: &mut BTreeMap<(usize, usize, usize), Cell>,
    ) -> Result<(), Failure> {
        if !self.contestants.iter().any(|contestant| starts(self.options, race, contestant, placement)) {
            return Ok(());
        }
        let fresh = Fresh::new()?;
        let link = if placement.remote {
            match Link::new(self.options.link) {
                Ok(link) => Some(Rc::new(link)),
                Err(failure) => {
                    self.progress.note(&format!("no remote placement: {failure}"));
                    self.failed.insert("remote placement".into(), failure.to_string());
                    self.operations_left = self.operations_left.saturating_sub(self.entered(race, placement));
                    return Ok(());
                }
            }
        } else {
            None
        };
        let mut servers = Vec::new();
        for contestant in self.contestants {
            servers.push(
                if starts(self.options, race, contestant, placement)
                    && !self.failed.contains_key(&contestant.name)
                {
                    self.serve(&fresh, contestant, placement, link.as_ref())
                } else {
                    None
                },
            );
        }
        for round in 0..self.options.rounds() {
            for (who, (contestant, server)) in self.contestants.iter().zip(&servers).enumerate() {
                if !starts(self.options, race, contestant, placement) {
                    continue;
                }
                self.operations_left = self.operations_left.saturating_sub(operations_of(race, contestant));
                self.progress.step(|| {
                    format!("{}, {}: {} (round {round})", race.name, placement.name, contestant.name)
                });
                let Some(server) = server else { continue };
                if self.failed.contains_key(&contestant.name) {
                    continue;
                }
                let plan = self.plan(race, contestant, server.processes());
                let stand = server.stand(placement);
                match client(&stand, server.link.as_deref(), contestant, race, &plan) {
                    // The first round warms caches, page tables and the CPU's clock.
                    Ok(lines) => {
                        for (what, line) in numbered(race, &lines) {
                            let cell = cells.entry((at, who, what)).or_default();
                            if round == 0 { cell.dropped = Some(mean(line)) } else { cell.keep(line) }
                        }
                    }
                    Err(failure) => self.fails(contestant, &failure),
                }
            }
        }
        Ok(())
    }

    /// Operations of single client processes that this race has at one placement.
    fn entered(&self, race: &Race, placement: &Placement) -> usize {
        let held = self.contestants.iter().filter(|held| starts(self.options, race, held, placement));
        held.map(|contestant| operations_of(race, contestant)).sum::<usize>() * self.options.rounds()
    }

    fn serve(
        &mut self,
        fresh: &Fresh,
        contestant: &Contestant,
        placement: &Placement,
        link: Option<&Rc<Link>>,
    ) -> Option<Server> {
        let result = Server::prepare(fresh, contestant, placement, link)
            .and_then(|server| server.start(contestant, placement, None, None));
        result.map_err(|failure| self.fails(contestant, &failure)).ok()
    }

    fn fails(&mut self, contestant: &Contestant, failure: &Failure) {
        self.progress.note(&format!("{} fails: {failure}", contestant.name));
        self.failed.entry(contestant.name.clone()).or_insert_with(|| failure.to_string());
    }

    /// A quick derby shares out the time that is left.
    fn plan(&self, race: &Race, contestant: &Contestant, server_pids: Vec<u32>) -> Plan {
        let longest = contestant.setup.longest();
        let shortest = if contestant.setup.starts_slowly() { WARM } else { Duration::from_millis(1) };
        let budget = match self.deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let operations = self.operations_left.saturating_add(race.operations.len());
                let operations = u32::try_from(operations).unwrap_or(u32::MAX).max(1);
                // Half of a client's time goes to starting it, to warming up, and to its way out.
                (left / operations / 2).clamp(shortest, longest)
            }
            None => longest,
        };
        let calls = self.options.calls_of(race);
        Plan {
            calls,
            warmup: (calls / 20).max(20),
            budget,
            large_divisor: LARGE_DIVISOR,
            server_pids,
            operation: None,
            pause: Duration::ZERO,
        }
    }

    /// Frames and bytes of one call of each operation, if a relay can see them.
    fn traffic(&self, race: &Race, contestant: &Contestant) -> Vec<Option<Traffic>> {
        let none = || vec![None; race.operations.len()];
        // A burst of signals is not one call; of those who meet over TCP a cycle is traced, whoever connects to whom.
        let out = race.signals
            || !contestant.setup.passes_a_relay(race)
            || (self.options.quick && contestant.setup.starts_slowly())
            || (race.cycles && contestant.transport == "tcp" && !self.options.no_trace)
            || !contestant.setup.enters(race)
            || self.failed.contains_key(&contestant.name);
        let (Some(frames), false) = (contestant.setup.frames(), out) else { return none() };
        let Some(placement) = self.placements.iter().rfind(|placement| !placement.remote) else {
            return none();
        };
        let count = || -> Result<Vec<Option<Traffic>>, Failure> {
            let fresh = Fresh::new()?;
            let server = Server::prepare(&fresh, contestant, placement, None)?;
            let (behind, before, port) = if contestant.transport == "tcp" {
                let port = free_port()?;
                (Place::Tcp(port), Place::Tcp(0), Some(port))
            } else {
                // The client's side of a router, or that of the server itself.
                (Place::Unix(server.socket(placement)), Place::Unix(fresh.path().join("relay.sock")), None)
            };
            let relay = Relay::new(&before, behind)?;
            let server = server.start(contestant, placement, port, Some(relay.place()))?;
            let stand = Stand { publish: Some(relay.place()), port, ..server.stand(placement) };
            race.operations
                .iter()
                .map(|operation| {
                    if !contestant.setup.does(race, operation.name) {
                        return Ok(None);
                    }
                    // What a connection costs is the same in both, and vanishes in the difference.
                    let few = self.passed(&relay, &stand, contestant, race, operation, 2)?;
                    let more = self.passed(&relay, &stand, contestant, race, operation, 6)?;
                    let each = |few: usize, more: usize| difference(few, more) / 4.0;
                    Ok(Some(Traffic {
                        frames: each(few.frames(frames), more.frames(frames)),
                        bytes: each(few.bytes(), more.bytes()),
                    }))
                })
                .collect()
        };
        count().unwrap_or_else(|failure| {
            self.progress.note(&format!("{}: frames cannot be counted: {failure}", contestant.name));
            none()
        })
    }

    fn passed(
        &self,
        relay: &Relay,
        stand: &Stand<'_>,
        contestant: &Contestant,
        race: &Race,
        operation: &Operation,
        calls: u64,
    ) -> Result<Passed, Failure> {
        let plan = Plan {
            calls,
            warmup: 0,
            budget: Duration::ZERO,
            large_divisor: 1,
            server_pids: Vec::new(),
            operation: Some(operation.name.to_owned()),
            pause: Duration::ZERO,
        };
        relay.take();
        client(stand, None, contestant, race, &plan)?;
        Ok(relay.take())
    }

    /// Where the time of a call of ours goes.
    fn split(&self, report: &Report) -> Option<Split> {
        let contestant = self.contestants.iter().find(|contestant| contestant.family == ours::FAMILY)?;
        let placement = self.placements.first()?;
        let fresh = Fresh::new().ok()?;
        let launch = ours::split().ok()?;
        let text = complete(&launch, &placement.client.into(), fresh.path(), &contestant.name, READY);
        match text.and_then(|text| Split::read(&text, report, placement.name)) {
            Ok(split) => Some(split),
            Err(failure) => {
                self.progress.note(&format!("a call cannot be split: {failure}"));
                None
            }
        }
    }
}

/// Lines with the numbers of their operations.
fn numbered<'l>(race: &Race, lines: &'l [Line]) -> impl Iterator<Item = (usize, &'l Line)> {
    let operations = race.operations;
    lines.iter().filter_map(|line| {
        Some((operations.iter().position(|operation| operation.name == line.operation)?, line))
    })
}

impl Cell {
    /// Takes in what a round said.
    fn keep(&mut self, line: &Line) {
        let mut times = Times::default();
        for &(ps, count) in &line.histogram_ps {
            times.add(ps, count);
        }
        self.round_medians.push(times.median_us());
        self.means.push(mean(line));
        self.times.merge(&times);
        self.rounds.push(line.blocks_ps.iter().map(|&ps| us(ps)).collect());
        let add = |sum: &mut Option<f64>, more: Option<f64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0.0) + more);
            }
        };
        add(&mut self.client_cpu_us, line.client_cpu_us);
        add(&mut self.server_cpu_us, line.server_cpu_us);
    }
}

#[allow(clippy::cast_precision_loss)]
fn row(
    race: &'static Race,
    placement: &Placement,
    contestant: &Contestant,
    operation: &'static Operation,
    cell: &Cell,
    traffic: Option<Traffic>,
) -> Row {
    let calls = cell.times.len();
    let median_us = cell.times.median_us();
    let each = |sum: Option<f64>| sum.map(|sum| sum / calls.max(1) as f64);
    let system = match (contestant.published, race.number) {
        (_, 1) if contestant.wire == Some(published::CALLBACKS_WIRE) => Some(CALLBACKS_DCOM),
        (Some([calls, _]), 2) => Some(calls),
        (Some([_, bytes]), 4) => Some(bytes),
        _ => None,
    };
    let published = system.and_then(|system| race.published_by(system, operation.name, placement.remote));
    let (low, high) = confidence(&cell.rounds).unwrap_or((median_us, median_us));
    let extreme =
        |pick: fn(f64, f64) -> f64| cell.round_medians.iter().copied().reduce(pick).unwrap_or(median_us);
    Row {
        race: race.name,
        contestant: contestant.family,
        wire: contestant.wire,
        transport: contestant.transport,
        mode: contestant.mode,
        route: contestant.route,
        placement: placement.name,
        operation: operation.name,
        calls,
        median_us,
        p99_us: cell.times.percentile_us(0.99),
        ratio_to_raw: None,
        published_us: published.map(|figure| figure.us),
        kb_per_s: operation.payload.map(|bytes| bytes as f64 * 1000.0 / median_us),
        client_cpu_us: each(cell.client_cpu_us),
        server_cpu_us: each(cell.server_cpu_us),
        // Where none is seen, nobody can tell them apart.
        frames: traffic.map(|traffic| traffic.frames).filter(|frames| *frames > 0.0),
        bytes: traffic.map(|traffic| traffic.bytes),
        name: contestant.name.clone(),
        title: contestant.title.clone(),
        // The interval is of the medians of blocks, the median of single calls: where times come in two heaps they may
        // differ, and an interval without its median would be a lie.
        median_low_us: low.min(median_us),
        median_high_us: high.max(median_us),
        p25_us: cell.times.percentile_us(0.25),
        p75_us: cell.times.percentile_us(0.75),
        rounds: cell.round_medians.len(),
        rounds_median_us: median(&cell.round_medians).unwrap_or(median_us),
        rounds_low_us: extreme(f64::min),
        rounds_high_us: extreme(f64::max),
        runs_us: cell.means.clone(),
        dropped_us: cell.dropped,
        round_trips: None,
        published_by: published.map(|figure| figure.system),
        published_kb_per_s: published.and_then(|figure| figure.kb_per_s),
        ratio_to_published: published.map(|figure| median_us / figure.us),
    }
}

/// A call's share of the whole time, in microseconds.
#[allow(clippy::cast_precision_loss)]
fn mean(line: &Line) -> f64 {
    line.total_ns as f64 / 1e3 / line.calls.max(1) as f64
}

#[allow(clippy::cast_precision_loss)]
fn difference(few: usize, more: usize) -> f64 {
    more as f64 - few as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_merged_and_cpu_time_is_shared_out() {
        let race = race::ALL.iter().find(|race| race.name == "calls").unwrap();
        let line = |ps: u64, calls: u64| Line {
            operation: "in_out_int_call".into(),
            calls,
            total_ns: 1,
            client_cpu_us: Some(300.0),
            server_cpu_us: None,
            blocks_ps: vec![ps],
            histogram_ps: vec![(ps, calls)],
            began_ns: Vec::new(),
            ended_ns: Vec::new(),
        };
        assert_eq!(numbered(race, &[line(1, 1)]).next().unwrap().0, 3);
        let mut cell = Cell::default();
        for ps in [10_000_000, 30_000_000, 20_000_000] {
            cell.keep(&line(ps, 100));
        }
        let contestant =
            contestants::all(None).unwrap().into_iter().find(|c| c.name == "omniorb-tcp").unwrap();
        let placement = Placement { name: "unpinned", title: "", server: None, client: None, remote: false };
        let row = row(race, &placement, &contestant, &race.operations[3], &cell, None);
        assert_eq!((row.calls, row.rounds), (300, 3));
        assert!((row.median_us - 20.0).abs() < 0.02 && (row.rounds_median_us - 20.0).abs() < 0.02);
        assert_eq!(row.client_cpu_us, Some(3.0));
        assert_eq!(row.server_cpu_us, None);
        assert!((row.rounds_low_us - 10.0).abs() < 0.01 && (row.rounds_high_us - 30.0).abs() < 0.02);
        assert!(row.ratio_to_published.is_some_and(|ratio| (ratio - 20.0 / 68.685).abs() < 0.001));
    }
}
