//! Single cycles of those who meet over TCP, captured on a link of their own; and what follows from
//! them: the round trips and frames of the rows, and a sentence on who is quicker and why.
//!
//! The capture runs in the server's network namespace, on the one interface that joins the two sides,
//! so that nothing else of the machine is in it. The client pauses between cycles and notes when each
//! began and ended. `traced` tells from the messages which cycle a frame is of.
//!
//! Invariants: a trace is never timed for the rows: `Cycle::us` is that of the trace alone. Where there
//! is a trace, its figures replace those of the relay (`conclude`), since a relay cannot see who
//! connects to whom.

use super::{Derby, operations_of};
use crate::capture::Capture;
use crate::contestants::{Contestant, Route};
use crate::fresh::Fresh;
use crate::link::{self, INTERFACE, Link};
use crate::measure::Plan;
use crate::options::Options;
use crate::pace::Rest;
use crate::placement::Placement;
use crate::process::ProcessPlacement;
use crate::race::{CALLBACK, CONNECTION_POINT, Operation, Race};
use crate::report::{OmittedEntry, Report, Row};
use crate::sides::{Server, client};
use crate::traced::{CYCLES, Cycle, TracedContestant, cycles, why};
use crate::{broken, interrupted};
use everywire_model::Failure;
use everywire_trace::Trace;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

/// The client rests this long between two cycles, beside what the link takes. Messages that are put off
/// (releases, pings) mostly pass in this time, and not between the messages of the next cycle. Nothing
/// tells cycles apart by it.
const PAUSE: Duration = Duration::from_millis(40);
/// The last frames reach the file of the capture within this time after the client has ended.
const SETTLING: Duration = Duration::from_millis(25);

/// Whether the cycles of a contestant are traced: of those whose client and server meet over TCP
/// without a router. Other modes send the same messages, and other levels of security nearly the same,
/// so only a thorough derby traces those.
pub(super) fn traced(options: &Options, race: &Race, contestant: &Contestant) -> bool {
    race.cycles
        && !options.no_trace
        && contestant.wire.is_some()
        && contestant.transport == "tcp"
        && contestant.route == Route::Direct
        && contestant.setup.enters(race)
        && (options.thorough || contestant.mode == "default")
}

impl Derby<'_> {
    /// The first and a steady cycle of all who can be traced. Where no link can be made, or a trace
    /// fails, that is told and the rest goes on; what the time does not allow is in `left_out`.
    pub(super) fn traces(&mut self, race: &Race) -> Vec<Cycle> {
        let contestants: Vec<&Contestant> = self
            .contestants
            .iter()
            .filter(|held| traced(self.options, race, held) && self.raced(held))
            .collect();
        if contestants.is_empty() {
            return Vec::new();
        }
        let (placement, link) = match (Placement::remote(), Link::new(self.options.link)) {
            (placement, Ok(link)) => (placement, Rc::new(link)),
            (_, Err(failure)) => {
                self.progress.note(&format!("no wire trace: {failure}"));
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for contestant in contestants {
            if !self.goes_on() {
                self.left_out.push(OmittedEntry {
                    what: format!("the wire trace of {}", contestant.name),
                    why: "the time was over; give more with --time".into(),
                });
                continue;
            }
            self.show(&format!("{}: tracing {}", race.name, contestant.name));
            let cycles = self.trace(race, contestant, &placement, &link);
            self.pace.rested(Rest { traced: operations_of(race, contestant), ..Rest::default() });
            match cycles {
                Err(_) if interrupted().is_some() => {}
                Ok(cycles) => all.extend(cycles),
                Err(failure) => {
                    self.progress.note(&format!("{} cannot be traced: {failure}", contestant.name));
                }
            }
        }
        all
    }

    /// All operations of one contestant: one server, and for each operation a capture and a client of
    /// its own.
    fn trace(
        &self,
        race: &Race,
        contestant: &Contestant,
        placement: &Placement,
        link: &Rc<Link>,
    ) -> Result<Vec<Cycle>, Failure> {
        let fresh = Fresh::new()?;
        let server = Server::prepare(&fresh, contestant, placement, Some(link))?;
        let server = server.start(contestant, placement, None, None)?;
        let delay = self.options.link.map_or(Duration::ZERO, |shape| shape.delay);
        let mut all = Vec::new();
        for operation in race.operations.iter().filter(|o| contestant.setup.does(race, o.name)) {
            let file = server.dir.join(format!("{}.pcap", operation.short));
            let spot = ProcessPlacement { cpu: None, net: Some(link.server.descriptors()) };
            let capture = Capture::start(&spot, INTERFACE, &file, &server.dir)?;
            let plan = plan(operation, PAUSE + delay * 10);
            let lines = client(&server.stand(placement), Some(link), contestant, race, &plan, None)?.lines;
            std::thread::sleep(SETTLING + delay * 2);
            drop(capture);
            let line = lines
                .iter()
                .find(|line| line.operation == operation.name)
                .ok_or_else(|| broken("nothing was said"))?;
            let trace = Trace::read(&file, everywire::wires::ALL)?;
            let side: IpAddr = link::CLIENT.parse().map_err(|_| broken("the link has no addresses"))?;
            all.extend(cycles(&trace, line, side, &contestant.name, &contestant.title, operation.name));
        }
        Ok(all)
    }
}

/// A client that does `CYCLES` cycles of one operation, without warming up: the first cycle is to be
/// seen as it is.
fn plan(operation: &Operation, pause: Duration) -> Plan {
    Plan {
        calls: CYCLES,
        warmup: 0,
        budget: Duration::ZERO,
        large_divisor: 1,
        server_pids: Vec::new(),
        hop_pids: Vec::new(),
        operation: Some(operation.name.to_owned()),
        pause,
    }
}

/// Puts what the traces count into the rows, and compares: the two ways of each contestant, and the same way of different
/// ones on one wire.
pub(super) fn conclude(report: &mut Report) {
    for row in &mut report.rows {
        let steady = |cycle: &&Cycle| {
            cycle.name == row.name && cycle.operation == row.operation && cycle.cycle == "steady"
        };
        let Some(cycle) = report.traces.iter().find(steady) else { continue };
        let number = |n: usize| u32::try_from(n).ok().map(f64::from);
        row.round_trips = number(cycle.round_trips);
        row.frames = number(cycle.messages);
        row.bytes = number(cycle.bytes);
    }
    report.reasons = reasons(report);
}

/// A sentence for each pair of rows that can be compared: two operations of one contestant, or one
/// operation of two contestants on the same wire in the same mode. The placement is the farthest one
/// that has traces, because there the wire weighs most.
fn reasons(report: &Report) -> Vec<String> {
    let Some(placement) = ["remote", "different", "unpinned", "same"]
        .into_iter()
        .find(|name| report.rows.iter().any(|row| row.placement == *name && row.round_trips.is_some()))
    else {
        return Vec::new();
    };
    let rows: Vec<&Row> =
        report.rows.iter().filter(|row| row.placement == placement && row.round_trips.is_some()).collect();
    let mut reasons = Vec::new();
    for (i, a) in rows.iter().enumerate() {
        for b in rows.iter().skip(i + 1) {
            let two_ways = a.name == b.name;
            let rivals = a.operation == b.operation && a.wire == b.wire && a.contestant != b.contestant;
            if !(two_ways || rivals && a.mode == b.mode) {
                continue;
            }
            let titles = if two_ways { [way(a), way(b)] } else { [a.title.clone(), b.title.clone()] };
            let (Some(left), Some(right)) = (rider(report, a, &titles[0]), rider(report, b, &titles[1]))
            else {
                continue;
            };
            let subject = if two_ways { &a.title } else { a.operation };
            reasons.push(format!("{subject}: {}", why(left, right, placement)));
        }
    }
    reasons
}

/// What the first race calls its operations, in the plural of a sentence.
fn way(row: &Row) -> String {
    match row.operation {
        CONNECTION_POINT => "connection points".into(),
        CALLBACK => "callbacks".into(),
        other => other.to_owned(),
    }
}

/// A row with its steady cycle; `None` if that was not traced.
fn rider<'a>(report: &'a Report, row: &Row, title: &'a str) -> Option<TracedContestant<'a>> {
    let cycle = report.traces.iter().find(|cycle| {
        cycle.name == row.name && cycle.operation == row.operation && cycle.cycle == "steady"
    })?;
    Some(TracedContestant {
        title,
        cycle,
        ms: row.median_us,
        interval: (row.median_low_us, row.median_high_us),
        cpu_us: row.client_cpu_us.zip(row.server_cpu_us).map(|(client, server)| client + server),
    })
}
