//! What is known about one operation of one contestant at one placement (a cell), and the row that it
//! becomes.
//!
//! States of a cell: it does not exist until a client has said a line; it has only `dropped` after the
//! first round; each later round is added by `keep`. Nothing is ever taken out again.
//!
//! Invariants: `rounds`, `round_medians` and `means` have one entry for each kept round, in the order
//! of the rounds. Histograms of rounds are merged, never averaged. CPU time is a sum over the rounds in
//! which it could be read, and is `None` only if it never could. The interval of a row contains its
//! median.

use super::counting::Traffic;
use crate::contestants::Contestant;
use crate::contestants::published::{self, CALLBACKS_DCOM};
use crate::measure::Line;
use crate::placement::Placement;
use crate::race::{Operation, Race};
use crate::report::{FEW, PassFigures, Row};
use crate::stats::{Times, confidence, median, us};

/// What is known so far. `Default` is the cell before its first round.
#[derive(Default)]
pub(super) struct Cell {
    /// Times of the calls of all kept rounds together.
    pub(super) times: Times,
    /// Medians of the blocks of each round, in microseconds.
    pub(super) rounds: Vec<Vec<f64>>,
    /// The median of a call in each kept round, in microseconds.
    pub(super) round_medians: Vec<f64>,
    /// The mean of a call in each kept round, in microseconds: this is what the published tables quote
    /// for a run.
    pub(super) means: Vec<f64>,
    /// The mean of a call in the round that warms up, in microseconds. It is shown, and counts for
    /// nothing else.
    pub(super) dropped: Option<f64>,
    /// How long the kept rounds took from the first to the last call, in microseconds. Of several
    /// clients at once it is the time of the slowest, not the sum.
    pub(super) total_us: f64,
    /// CPU time of all kept rounds, in microseconds: of the client, of the server, of the hop between
    /// them.
    pub(super) client_cpu_us: Option<f64>,
    pub(super) server_cpu_us: Option<f64>,
    pub(super) hop_cpu_us: Option<f64>,
}

/// The lines of a client with the number of each one's operation in the race. Lines about something
/// else are passed over.
pub(super) fn numbered<'l>(race: &Race, lines: &'l [Line]) -> impl Iterator<Item = (usize, &'l Line)> {
    let operations = race.operations;
    lines.iter().filter_map(|line| {
        Some((operations.iter().position(|operation| operation.name == line.operation)?, line))
    })
}

impl Cell {
    /// Adds a round that counts. `engine::heats` decides which rounds do.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn keep(&mut self, line: &Line) {
        let mut times = Times::default();
        for &(ps, count) in &line.histogram_ps {
            times.add(ps, count);
        }
        self.round_medians.push(times.median_us());
        self.means.push(mean(line));
        self.total_us += line.total_ns as f64 / 1e3;
        self.times.merge(&times);
        self.rounds.push(line.blocks_ps.iter().map(|&ps| us(ps)).collect());
        let add = |sum: &mut Option<f64>, more: Option<f64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0.0) + more);
            }
        };
        add(&mut self.client_cpu_us, line.client_cpu_us);
        add(&mut self.server_cpu_us, line.server_cpu_us);
        add(&mut self.hop_cpu_us, line.hop_cpu_us);
    }
}

/// The row of the report for one cell. What needs other rows (the ratio to raw) or a trace (round
/// trips) is filled in later, by `Report::relate` and `traces::conclude`. `traffic` is `None` where no
/// relay has counted.
#[allow(clippy::cast_precision_loss)]
pub(super) fn row(
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
    // Of races whose calls are not so many that nobody rests.
    let percent =
        |sum: Option<f64>| sum.filter(|_| race.reads()).map(|sum| sum * 100.0 / cell.total_us.max(1.0));
    // The published system that this contestant stands for, which differs by race: `published` has one
    // pair of names a contestant, and in the first race only the wire of the publication is compared.
    let system = match (contestant.published, race.number) {
        (_, 1) if contestant.wire == Some(published::CALLBACKS_WIRE) => Some(CALLBACKS_DCOM),
        (Some([calls, _]), 2) => Some(calls),
        (Some([items, _]), 3) => Some(items),
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
        // At a rate there are as many as it has.
        too_few: calls < FEW && !race.rated,
        median_us,
        p99_us: cell.times.percentile_us(0.99),
        ratio_to_raw: None,
        published_us: published.map(|figure| figure.us),
        items_per_s: operation
            .reads
            .map(|reads| f64::from(reads.items) * calls as f64 * 1e6 / cell.total_us.max(1.0)),
        client_cpu_percent: percent(cell.client_cpu_us),
        server_cpu_percent: percent(cell.server_cpu_us),
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
        published_items_per_s: published.and_then(|figure| operation.items_per_s(figure.us)),
        published_cpu: published.map(|figure| figure.cpu).filter(|cpu| !cpu.is_empty()),
        published_kb_per_s: published.and_then(|figure| figure.kb_per_s),
        ratio_to_published: published.map(|figure| median_us / figure.us),
        passing: operation.passes.zip(contestant.setup.lane()).map(|(passes, lane)| {
            let messages_per_s = calls as f64 * 1e6 / cell.total_us.max(1.0);
            let published = race.published_by(published::BROKER_WCF, contestant.mode, false);
            PassFigures::new(lane, passes, messages_per_s, each(cell.hop_cpu_us), published)
        }),
    }
}

/// The mean of a call, in microseconds: the whole time shared among the calls.
#[allow(clippy::cast_precision_loss)]
pub(super) fn mean(line: &Line) -> f64 {
    line.total_ns as f64 / 1e3 / line.calls.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contestants, race};

    #[test]
    fn rounds_are_merged_and_cpu_time_is_shared_out() {
        let race = race::ALL.iter().find(|race| race.name == "calls").unwrap();
        let line = |ps: u64, calls: u64| Line {
            operation: "in_out_int_call".into(),
            calls,
            total_ns: 1,
            client_cpu_us: Some(300.0),
            server_cpu_us: None,
            hop_cpu_us: None,
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
        let placement =
            Placement { name: "unpinned", title: "", server: None, client: None, remote: false, busy: false };
        let row = row(race, &placement, &contestant, &race.operations[3], &cell, None);
        assert_eq!((row.calls, row.rounds), (300, 3));
        assert!((row.median_us - 20.0).abs() < 0.02 && (row.rounds_median_us - 20.0).abs() < 0.02);
        assert_eq!(row.client_cpu_us, Some(3.0));
        assert_eq!(row.server_cpu_us, None);
        assert!((row.rounds_low_us - 10.0).abs() < 0.01 && (row.rounds_high_us - 30.0).abs() < 0.02);
        assert!(row.ratio_to_published.is_some_and(|ratio| (ratio - 20.0 / 68.685).abs() < 0.001));
    }
}
