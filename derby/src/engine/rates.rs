//! Races at a rate of their own: each contestant once, for a time that is long enough to tell the CPU
//! time of both sides, however much time the others have.
//!
//! Order: after all waves, at each placement that was asked for (between two namespaces if none was),
//! one contestant after the other, each with a server of its own that ends with it.
//!
//! Invariants: the time of it was put by when the derby began (`Rest::rated`), so it takes nothing from
//! the others; whoever does not fit what is left is named in `left_out`. Nothing here has rounds: the
//! one client's lines are kept.

use super::Derby;
use super::cells::numbered;
use super::heats::{GRACE, REMOTE};
use crate::contestants::Contestant;
use crate::fresh::Fresh;
use crate::interrupted;
use crate::link::Link;
use crate::load::Account;
use crate::measure::Plan;
use crate::options::Options;
use crate::pace::Rest;
use crate::placement::Placement;
use crate::race::Race;
use crate::report::OmittedEntry;
use crate::sides::client;
use everywire_model::Failure;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Making 100,000 items and hearing the first values of all of them takes about this long; a client
/// that has only the typical operation needs half of it.
const SETTING_UP: Duration = Duration::from_secs(2);
/// A derby that is to end within this time has no more for it than a quick one.
const SHORT: Duration = Duration::from_secs(90);

/// How long each operation lasts. With `--calls` it is as long as so many calls take at the typical
/// rate: 50 a second, hence 20 ms each.
fn lasting(options: &Options) -> Duration {
    let usual = usual(options);
    let few = options.calls.and_then(|calls| u32::try_from(calls).ok());
    few.map_or(usual, |calls| usual.min(Duration::from_millis(20).saturating_mul(calls)))
}

/// The CPU time of a process is exact to some milliseconds, so even the shortest is 2 s.
fn usual(options: &Options) -> Duration {
    let short = options.quick || options.time.is_some_and(|time| time <= SHORT);
    match (short, options.thorough) {
        (true, _) => Duration::from_secs(2),
        (false, false) => Duration::from_secs(3),
        (false, true) => Duration::from_secs(20),
    }
}

/// Whether a contestant goes at these rates at this placement: between two namespaces unless other
/// places are asked for, and never beside a busy loop. A quick derby has the default mode of each
/// family only, unless contestants are named.
fn goes(options: &Options, race: &Race, held: &Contestant, placement: &Placement) -> bool {
    let here = if options.placements.is_empty() { placement.remote } else { !placement.busy };
    race.rated
        && here
        && held.setup.enters(race)
        && held.runs_at(placement)
        && (!options.quick || held.mode == "default" || !options.only.is_empty())
}

/// How long one client takes, with what it sets up before.
fn takes(options: &Options, race: &Race, held: &Contestant) -> Duration {
    let operations = race.operations.iter().filter(|operation| held.setup.does(race, operation.name)).count();
    let setting_up = if operations > 1 { SETTING_UP } else { SETTING_UP / 2 };
    setting_up + lasting(options) * u32::try_from(operations).unwrap_or(u32::MAX)
}

/// How long all clients of this race take together, at all placements. Zero for a race with rounds.
pub(super) fn take(options: &Options, race: &Race, all: &[Contestant], placements: &[Placement]) -> Duration {
    let at = |placement: &Placement| {
        let going = all.iter().filter(|held| goes(options, race, held, placement));
        going.map(|held| takes(options, race, held)).sum::<Duration>()
    };
    placements.iter().map(at).sum()
}

impl Derby<'_> {
    /// Everybody of this race, one after the other.
    pub(super) fn rates(&mut self, race_at: usize, race: &'static Race) -> Result<(), Failure> {
        let (placements, contestants) = (self.placements, self.contestants);
        for (placement_at, placement) in placements.iter().enumerate() {
            let going = |who: &usize| {
                contestants.get(*who).is_some_and(|held| {
                    goes(self.options, race, held, placement) && self.is_ready(*who, held)
                })
            };
            let held: Vec<usize> = (0..contestants.len()).filter(going).collect();
            let is_cut_off = placement.remote && self.failed.contains_key(REMOTE);
            if held.is_empty() || interrupted().is_some() || is_cut_off {
                continue;
            }
            self.progress.stage(&format!("{}: {}", race.title, placement.title));
            let mut link = None;
            if placement.remote {
                match Link::new(self.options.link) {
                    Ok(made) => link = Some(Rc::new(made)),
                    Err(_) if interrupted().is_some() => return Ok(()),
                    Err(failure) => {
                        self.progress.note(&format!("no remote placement: {failure}"));
                        self.failed.insert(REMOTE.into(), failure);
                        continue;
                    }
                }
            }
            for who in held {
                let Some(contestant) = contestants.get(who) else { continue };
                let takes = takes(self.options, race, contestant);
                let left = self.pace.remaining(Instant::now());
                if interrupted().is_some() {
                    return Ok(());
                }
                if left.is_some_and(|left| left < takes) {
                    self.left_out.push(OmittedEntry {
                        what: format!("{} in `{}` at {}", contestant.name, race.name, placement.name),
                        why: "it takes longer than what was left of the time; give more with --time".into(),
                    });
                } else {
                    self.rate((race_at, placement_at, who), race, placement, contestant, link.as_ref())?;
                }
                self.pace.rested(Rest { rated: takes, ..Rest::default() });
            }
        }
        Ok(())
    }

    /// One client with a server of its own. `at` are the numbers of race, placement and contestant, as
    /// in `cells`. A contestant that fails is noted as such.
    ///
    /// # Errors
    /// There is no temporary directory.
    fn rate(
        &mut self,
        at: (usize, usize, usize),
        race: &'static Race,
        placement: &Placement,
        contestant: &Contestant,
        link: Option<&Rc<Link>>,
    ) -> Result<(), Failure> {
        let fresh = Fresh::new()?;
        self.show(&format!("{}, {}: {}", race.name, placement.name, contestant.name));
        let Some(server) = self.serve(&fresh, contestant, placement, link) else { return Ok(()) };
        let servers = server.processes();
        let plan = Plan {
            calls: u64::MAX,
            warmup: 0,
            budget: lasting(self.options),
            large_divisor: 1,
            server_pids: servers.clone(),
            hop_pids: Vec::new(),
            operation: None,
            pause: Duration::ZERO,
        };
        let limit = self.pace.remaining(Instant::now()).map(|left| left + GRACE);
        let before = Account::begin(&servers);
        let result = client(&server.stand(placement), link.map(Rc::as_ref), contestant, race, &plan, limit);
        self.account.end(&before, &servers);
        match result {
            Ok(said) => {
                for (what, line) in numbered(race, &said.lines) {
                    self.cells.entry((at.0, at.1, at.2, what)).or_default().keep(line);
                }
            }
            Err(failure) => self.fails(contestant, &failure),
        }
        Ok(())
    }
}
