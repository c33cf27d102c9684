//! What is found out beside the races: the frames and the bytes of a call (through a relay), and where
//! the time of a call goes (the split).
//!
//! A relay stands between a client and a server that were started for nothing else. The operation is
//! called twice by one client and six times by the next: the difference is what four calls cost,
//! without what a connection costs. Neither time nor CPU is measured here, since a relay costs more
//! than a call.
//!
//! Invariants: nobody is counted who has not raced to the end. What cannot be counted is `None` in the
//! row, and never zero; a failure here is told and costs the contestant nothing.

use super::{Derby, State, operations_of};
use crate::contestants::{Contestant, ServerPlace, ours};
use crate::fresh::Fresh;
use crate::measure::Plan;
use crate::options::Options;
use crate::pace::Rest;
use crate::process::complete;
use crate::race::{Operation, Race};
use crate::relay::{Relay, RelayAddress, RelayRecord, free_port};
use crate::report::{OmittedEntry, Report, Split};
use crate::sides::{READY, Server, client};
use everywire_model::Failure;
use std::time::Duration;

/// Frames and bytes of one call, both directions together. Fractions are possible: what is sent now and
/// then (an acknowledgement of the wire, a ping) is spread over the four calls.
#[derive(Clone, Copy)]
pub(super) struct Traffic {
    pub(super) frames: f64,
    pub(super) bytes: f64,
}

/// Whether a relay counts the frames of somebody in a race. A burst of signals is not one call; of those who meet over TCP a cycle
/// is traced, whoever connects to whom; and who starts slowly would take too long.
pub(super) fn counts(options: &Options, race: &Race, contestant: &Contestant) -> bool {
    contestant.setup.frames().is_some()
        && contestant.setup.enters(race)
        && contestant.setup.passes_a_relay(race)
        && !race.accompanies()
        && (options.thorough || !contestant.setup.starts_slowly())
        && !(race.cycles && contestant.transport == "tcp" && !options.no_trace)
}

impl Derby<'_> {
    /// Frames and bytes of everybody in every race: by number of race, of contestant and of operation.
    /// Where the time is over the rest stays `None`, and `left_out` says so.
    pub(super) fn count_all(&mut self) -> Vec<Vec<Vec<Option<Traffic>>>> {
        let (races, contestants) = (self.races, self.contestants);
        let mut all = Vec::new();
        for race in races {
            let some = self.contestants.iter().any(|held| counts(self.options, race, held));
            if some && self.goes_on() {
                self.progress.stage(&format!("{}: counting frames and bytes", race.title));
            }
            let of = |contestant: &Contestant, derby: &mut Self| {
                let traffic = derby.traffic(race, contestant);
                if counts(derby.options, race, contestant) {
                    derby.pace.rested(Rest { counted: operations_of(race, contestant), ..Rest::default() });
                }
                traffic
            };
            all.push(contestants.iter().map(|contestant| of(contestant, self)).collect());
        }
        all
    }

    /// Frames and bytes of one call of each operation, if a relay can see them.
    fn traffic(&mut self, race: &Race, contestant: &Contestant) -> Vec<Option<Traffic>> {
        let none = || vec![None; race.operations.len()];
        if !counts(self.options, race, contestant) || !self.raced(contestant) {
            return none();
        }
        if !self.goes_on() {
            self.left_out.push(OmittedEntry {
                what: format!("frames of {} in `{}`", contestant.name, race.name),
                why: "the time was over; give more with --time".into(),
            });
            return none();
        }
        self.show(&format!("{}: frames of {}", race.name, contestant.name));
        let Some(frames) = contestant.setup.frames() else { return none() };
        let Some(placement) = self.placements.iter().rfind(|placement| !placement.remote) else {
            return none();
        };
        let count = |derby: &Self| -> Result<Vec<Option<Traffic>>, Failure> {
            let fresh = Fresh::new()?;
            let server = Server::prepare(&fresh, contestant, placement, None)?;
            let (behind, before, port) = if contestant.transport == "tcp" {
                let port = free_port()?;
                (RelayAddress::Tcp(port), RelayAddress::Tcp(0), Some(port))
            } else {
                // The client's side of a router, or that of the server itself.
                (
                    RelayAddress::Unix(server.socket(placement)),
                    RelayAddress::Unix(fresh.path().join("relay.sock")),
                    None,
                )
            };
            let relay = Relay::new(&before, behind)?;
            let server = server.start(contestant, placement, port, Some(relay.place()))?;
            let stand = ServerPlace { publish: Some(relay.place()), port, ..server.stand(placement) };
            race.operations
                .iter()
                .map(|operation| {
                    if !contestant.setup.does(race, operation.name) {
                        return Ok(None);
                    }
                    // What a connection costs is the same in both, and vanishes in the difference.
                    let few = derby.passed(&relay, &stand, contestant, race, operation, 2)?;
                    let more = derby.passed(&relay, &stand, contestant, race, operation, 6)?;
                    let each = |few: usize, more: usize| difference(few, more) / 4.0;
                    Ok(Some(Traffic {
                        frames: each(few.frames(frames), more.frames(frames)),
                        bytes: each(few.bytes(), more.bytes()),
                    }))
                })
                .collect()
        };
        count(self).unwrap_or_else(|failure| {
            self.progress.note(&format!("{}: frames cannot be counted: {failure}", contestant.name));
            none()
        })
    }

    /// Whether somebody has raced, and can be asked for more.
    pub(super) fn raced(&self, contestant: &Contestant) -> bool {
        let at = self.contestants.iter().position(|other| other.name == contestant.name);
        at.and_then(|at| self.states.get(at)) == Some(&State::Ready)
            && !self.failed.contains_key(&contestant.name)
    }

    /// Runs one client with so many calls of one operation, and returns what passed the relay
    /// meanwhile.
    fn passed(
        &self,
        relay: &Relay,
        stand: &ServerPlace<'_>,
        contestant: &Contestant,
        race: &Race,
        operation: &Operation,
        calls: u64,
    ) -> Result<RelayRecord, Failure> {
        let plan = Plan {
            calls,
            warmup: 0,
            budget: Duration::ZERO,
            large_divisor: 1,
            server_pids: Vec::new(),
            hop_pids: Vec::new(),
            operation: Some(operation.name.to_owned()),
            pause: Duration::ZERO,
        };
        // What an earlier client has left in it.
        relay.take();
        client(stand, None, contestant, race, &plan, None)?;
        Ok(relay.take())
    }

    /// Where the time of a call of ours goes: stub, marshalling, look-up, transport. It is measured by
    /// a process of ours at the first placement, beside the rows of the races. `None` if none of ours
    /// has raced, or the process fails.
    pub(super) fn split(&self, report: &Report) -> Option<Split> {
        let contestant = self
            .contestants
            .iter()
            .find(|held| held.family == ours::FAMILY && held.setup.lane().is_none() && self.raced(held))?;
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

#[allow(clippy::cast_precision_loss)]
fn difference(few: usize, more: usize) -> f64 {
    more as f64 - few as f64
}
