//! One wave: at one placement after the other its servers are started, and its clients come in turn,
//! round after round; of a race with lanes, lane by lane.
//!
//! A *heat* is one race at one placement in one wave. A *lane* groups contestants that are compared
//! with each other in the race with hops; other races have one lane. Order of a heat: the link of the
//! remote placement, then for each lane its servers, then rounds 0 to n, and in each round every client
//! once.
//!
//! States: servers of a lane live from before its first round until after its last, and are idle while
//! another's client runs. A contestant that fails is not run again in any heat (`is_ready`).
//!
//! Invariants: `Pace::done` is told of each client of a heat, whether it ran, failed or was left out,
//! unless the derby is interrupted. Round 0 is never among the figures.

use super::cells::{Cell, mean, numbered, row};
use super::counting::Traffic;
use super::{Derby, State, client_of, races_in, starts};
use crate::contestants::Contestant;
use crate::fresh::Fresh;
use crate::interrupted;
use crate::link::Link;
use crate::load::Account;
use crate::measure::{Line, Plan};
use crate::placement::{Loops, Placement};
use crate::race::Race;
use crate::report::{ENOUGH, OmittedEntry, Report, Row};
use crate::sides::{Server, client};
use everywire_model::Failure;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Where calls are counted (a thorough derby), transfers over 10 kB are done so many times fewer: 500
/// of 1 MB instead of 10,000.
const LARGE_DIVISOR: u64 = 20;
/// A client that says nothing is killed this long after the end of the derby: it may be about to write
/// its lines.
pub(super) const GRACE: Duration = Duration::from_secs(15);

/// Where and what: the numbers of a race and of a placement, and themselves.
#[derive(Clone, Copy)]
struct Heat<'h> {
    /// The wave it belongs to: a contestant of another wave has no part in it, but for the raw ones.
    wave: u8,
    race_at: usize,
    race: &'static Race,
    placement_at: usize,
    placement: &'h Placement,
}

impl Derby<'_> {
    /// Runs this wave, in every race that has rounds and at every placement.
    ///
    /// # Errors
    /// There is no temporary directory. What a contestant does wrong is no error here.
    pub(super) fn wave(&mut self, wave: u8) -> Result<(), Failure> {
        let (races, placements) = (self.races, self.placements);
        for (race_at, race) in races.iter().enumerate().filter(|(_, race)| !race.rated) {
            for (placement_at, placement) in placements.iter().enumerate() {
                if interrupted().is_some() {
                    return Ok(());
                }
                let heat = Heat { wave, race_at, race, placement_at, placement };
                self.heat(heat)?;
                self.tell(heat);
            }
        }
        Ok(())
    }

    /// Whether a contestant takes part in this heat, by what was asked for; whether it is ready is
    /// another question.
    fn has(&self, heat: Heat<'_>, who: usize, contestant: &Contestant) -> bool {
        let own = self.waves.get(who).copied().unwrap_or(0);
        races_in(contestant, own, heat.wave)
            && starts(self.options, self.course.everywhere, heat.race, contestant, heat.placement)
    }

    /// Whether a contestant was prepared, and has not failed since.
    pub(super) fn is_ready(&self, who: usize, contestant: &Contestant) -> bool {
        self.states.get(who) == Some(&State::Ready) && !self.failed.contains_key(&contestant.name)
    }

    /// One race at one placement. If nobody of this wave can run, its clients are counted as done and
    /// nothing is started; the same if the link of the remote placement cannot be made, which is tried
    /// once for all heats.
    fn heat(&mut self, heat: Heat<'_>) -> Result<(), Failure> {
        let Heat { race, placement, .. } = heat;
        let contestants = self.contestants;
        let own = |at: usize| self.waves.get(at) == Some(&heat.wave);
        let held: Vec<usize> = contestants
            .iter()
            .enumerate()
            .filter(|(who, c)| self.has(heat, *who, c))
            .map(|(at, _)| at)
            .collect();
        let ready =
            |at: &usize| contestants.get(*at).is_some_and(|contestant| self.is_ready(*at, contestant));
        if !held.iter().any(|at| own(*at) && ready(at)) {
            // The raw ones have nobody to be the measure for. Where nobody else was to come they were not planned either (`Ground::load`).
            let planned = held.iter().any(|at| own(*at));
            for contestant in held.iter().filter(|_| planned).filter_map(|at| contestants.get(*at)) {
                self.pace.done(client_of(race, contestant).times(self.course.rounds));
            }
            return Ok(());
        }
        let fresh = Fresh::new()?;
        let mut link = None;
        if placement.remote && !self.failed.contains_key(REMOTE) {
            match Link::new(self.options.link) {
                Ok(made) => link = Some(Rc::new(made)),
                Err(_) if interrupted().is_some() => return Ok(()),
                Err(failure) => {
                    self.progress.note(&format!("no remote placement: {failure}"));
                    self.failed.insert(REMOTE.into(), failure);
                }
            }
        }
        if placement.remote && link.is_none() {
            for contestant in held.iter().filter_map(|at| contestants.get(*at)) {
                self.pace.done(client_of(race, contestant).times(self.course.rounds));
            }
            return Ok(());
        }
        self.progress.stage(&format!("{}: {}", race.title, placement.title));
        // Lane by lane: whoever is compared races close to his measure, and nobody's processes wait for others longer than they must.
        let mut lanes: Vec<Option<&'static str>> =
            held.iter().filter_map(|at| contestants.get(*at)).map(|held| held.setup.lane()).collect();
        lanes.dedup();
        for lane in lanes {
            let of_lane = |who: &&usize| {
                contestants.get(**who).is_some_and(|contestant| contestant.setup.lane() == lane)
            };
            let begun = held.iter().position(|who| of_lane(&who)).unwrap_or(0);
            let later = held.iter().skip(begun).filter(|who| !of_lane(who));
            let starting = later
                .filter_map(|at| contestants.get(*at))
                .map(|held| held.setup.starting())
                .sum::<Duration>();
            // The servers of the lanes that follow have still to be started: that time is kept free for
            // them.
            self.pace.built(self.pending(heat.wave) + starting);
            let held: Vec<usize> = held.iter().filter(of_lane).copied().collect();
            self.lane(heat, &held, &fresh, link.as_ref());
        }
        Ok(())
    }

    /// Starts the servers of these contestants, and has their clients come in turn.
    fn lane(&mut self, heat: Heat<'_>, held: &[usize], fresh: &Fresh, link: Option<&Rc<Link>>) {
        let Heat { race, placement, .. } = heat;
        let contestants = self.contestants;
        let mut servers = Vec::new();
        for (who, contestant) in held.iter().filter_map(|at| Some((*at, contestants.get(*at)?))) {
            let server = if self.is_ready(who, contestant) && self.goes_on() {
                self.serve(fresh, contestant, placement, link)
            } else {
                None
            };
            servers.push((who, contestant, server));
        }
        // From here on until all clients have run.
        let _loops = placement.busy.then(|| Loops::start(&placement.cpus()));
        for round in 0..self.course.rounds {
            for (who, contestant, server) in &servers {
                if interrupted().is_some() {
                    return;
                }
                self.run_client(heat, round, *who, contestant, server.as_ref());
                self.pace.done(client_of(race, contestant));
            }
        }
    }

    /// One client of one round. It runs only if its server does and if the time allots it a slot;
    /// otherwise `left_out` says that the time was over.
    fn run_client(
        &mut self,
        heat: Heat<'_>,
        round: usize,
        who: usize,
        contestant: &Contestant,
        server: Option<&Server>,
    ) {
        let Heat { race, placement, .. } = heat;
        self.progress.step();
        if !self.is_ready(who, contestant) {
            return;
        }
        let now = Instant::now();
        let longest = contestant.setup.longest();
        let need = self.need(heat, who);
        let slot = self.pace.allot(now, client_of(race, contestant), need, longest);
        let (Some(slot), Some(server)) = (slot, server) else {
            self.left_out.push(OmittedEntry {
                what: format!("{} in `{}` at {}", contestant.name, race.name, placement.name),
                why: format!(
                    "the time was over before all {} rounds had been run; give more with --time",
                    self.course.rounds
                ),
            });
            return;
        };
        self.show(&format!("{}, {}: {} (round {round})", race.name, placement.name, contestant.name));
        let (mut servers, hops) = (server.processes(), server.hops());
        let plan = Plan { hop_pids: hops.clone(), ..self.plan(race, slot, servers.clone()) };
        servers.extend(hops);
        let stand = server.stand(placement);
        let limit = self.pace.remaining(now).map(|left| left + GRACE);
        // Helpers that a client leaves behind are not in the account of its CPU time, so they would be
        // blamed on others.
        let before = Account::begin(&servers);
        let result = client(&stand, server.link.as_deref(), contestant, race, &plan, limit);
        if !contestant.setup.leaves_helpers() {
            self.account.end(&before, &servers);
        }
        match result {
            // The first round warms caches, page tables and the CPU's clock.
            Ok(said) => {
                let calls = said.lines.iter().map(|line| Duration::from_nanos(line.total_ns)).sum();
                self.pace.took(client_of(race, contestant), now.elapsed(), calls);
                for (what, line) in numbered(race, &said.lines) {
                    let cell = self.cells.entry((heat.race_at, heat.placement_at, who, what)).or_default();
                    cell.take(round, line);
                }
                self.remark(contestant, &said.remarks);
            }
            Err(failure) => self.fails(contestant, &failure),
        }
    }

    /// Keeps what the client of a foreign server writes on standard error, each line once: it says how
    /// the reference was understood, which only the user can judge. Other clients' standard error is
    /// not kept.
    fn remark(&mut self, contestant: &Contestant, remarks: &str) {
        for remark in remarks.lines().filter(|_| super::foreign(contestant)) {
            if !self.remarks.iter().any(|known| known == remark) {
                self.progress.note(remark);
                self.remarks.push(remark.to_owned());
            }
        }
    }

    /// Starts the server of a contestant, with its router, and waits until it is ready. A failure is
    /// noted as one of the contestant.
    pub(super) fn serve(
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

    /// What a client is told: calls and a time for each operation, whichever is over first. The first
    /// twentieth of the calls warms up.
    fn plan(&self, race: &Race, slot: Duration, server_pids: Vec<u32>) -> Plan {
        let calls = self.options.calls_of(race);
        Plan {
            calls,
            warmup: (calls / 20).max(20),
            budget: slot,
            // Where the time decides, so it does for them.
            large_divisor: if self.options.thorough { LARGE_DIVISOR } else { 1 },
            server_pids,
            hop_pids: Vec::new(),
            operation: None,
            pause: Duration::ZERO,
        }
    }

    /// How long the slowest operation of this contestant would need in this round, so that all kept
    /// rounds together have `ENOUGH` calls. Zero while nothing is known of it. An hour at the most, so
    /// that one bad figure cannot overflow.
    fn need(&self, heat: Heat<'_>, who: usize) -> Duration {
        let kept = self.course.rounds.saturating_sub(1).max(1);
        let all =
            (heat.race_at, heat.placement_at, who, 0)..=(heat.race_at, heat.placement_at, who, usize::MAX);
        let slowest = self.cells.range(all).filter_map(|(_, cell)| cell.latest()).fold(0.0, f64::max);
        #[allow(clippy::cast_precision_loss)]
        let calls = (ENOUGH as f64 / kept as f64).ceil();
        Duration::from_secs_f64((slowest * calls / 1e6).min(3600.0))
    }

    /// Tells on the terminal who won at this placement, if somebody new has raced there. The ratios are
    /// made of the rows that are known by now, without frames.
    fn tell(&self, heat: Heat<'_>) {
        let new = |who: &usize| self.waves.get(*who) == Some(&heat.wave);
        let told = |(race, placement, who, _): &(usize, usize, usize, usize)| {
            (*race, *placement) == (heat.race_at, heat.placement_at) && new(who)
        };
        if !self.cells.keys().any(told) {
            return;
        }
        let here = |row: &Row| row.race == heat.race.name && row.placement == heat.placement.name;
        let rows = self.rows(&[]).into_iter().filter(here).collect();
        for verdict in Report::verdicts_of(rows) {
            self.progress.note(&verdict);
        }
    }

    /// A row for each cell that has calls in a kept round. `traffic` is that of `count_all`, or empty
    /// if nothing was counted yet.
    pub(super) fn rows(&self, traffic: &[Vec<Vec<Option<Traffic>>>]) -> Vec<Row> {
        let row = |(&(race_at, at, who, what), cell): (&(usize, usize, usize, usize), &Cell)| {
            let race = *self.races.get(race_at)?;
            let (placement, contestant, operation) =
                (self.placements.get(at)?, self.contestants.get(who)?, race.operations.get(what)?);
            let traffic = traffic.get(race_at).and_then(|all| all.get(who)?.get(what).copied().flatten());
            (!cell.times.is_empty()).then(|| row(race, placement, contestant, operation, cell, traffic))
        };
        self.cells.iter().filter_map(row).collect()
    }
}

/// The key in `Derby::failed` that says that no link could be made. It is not the name of a contestant:
/// it is there to try once only, and to have the reason in the report.
pub(super) const REMOTE: &str = "remote placement";

impl Cell {
    /// Takes in what a round said; the first is dropped.
    /// Later ones are kept.
    fn take(&mut self, round: usize, line: &Line) {
        if round == 0 { self.dropped = Some(mean(line)) } else { self.keep(line) }
    }

    /// The mean of a call in the latest round, in microseconds.
    fn latest(&self) -> Option<f64> {
        self.means.last().copied().or(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ground, wave};
    use super::*;
    use crate::contestants;
    use crate::options::Options;
    use crate::pace::{Load, Pace, Rest, RoundPlan};
    use crate::placement;
    use crate::progress::Progress;
    use crate::race;
    use std::collections::BTreeMap;

    /// A derby of some of the contestants, in this state, at these placements or all of this machine, with the load that was planned
    /// for it.
    fn derby(
        names: &[&str],
        races: &[&str],
        placements: &[&str],
        state: State,
        check: impl FnOnce(Derby<'_>, Load),
    ) {
        let placements = placements.iter().map(|name| (*name).to_owned()).collect();
        let (options, progress) = (Options { placements, ..Options::default() }, Progress::new(true, 0));
        let races = race::named(&races.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        let all = contestants::all(None).unwrap();
        let all: Vec<Contestant> =
            all.into_iter().filter(|held| names.contains(&held.name.as_str())).collect();
        assert!(names.iter().all(|name| all.iter().any(|held| held.name == *name)));
        let (placements, waves) =
            (placement::named(&options.placements).unwrap(), all.iter().map(wave).collect::<Vec<_>>());
        let course = RoundPlan { rounds: 3, everywhere: false };
        let ground = Ground {
            options: &options,
            races: &races,
            contestants: &all,
            placements: &placements,
            waves: &waves,
        };
        let load = ground.load(course.everywhere).times(course.rounds);
        let derby = Derby {
            options: &options,
            races: &races,
            contestants: &all,
            placements: &placements,
            waves: &waves,
            progress: &progress,
            course,
            pace: Pace::new(Instant::now(), None, load, Rest::default()),
            states: vec![state; all.len()],
            failed: BTreeMap::new(),
            left_out: Vec::new(),
            cells: BTreeMap::new(),
            account: Account::default(),
            remarks: Vec::new(),
        };
        check(derby, load);
    }

    /// What is left of the plan is what the last contestants may have: nobody is counted who was not planned.
    #[test]
    fn as_many_clients_are_done_as_were_planned() {
        derby(&["raw-tcp", "mono-tcp"], &["calls"], &[], State::Out, |mut derby, load| {
            assert!(derby.waves.contains(&1), "one of them comes later");
            derby.wave(0).unwrap();
            derby.wave(1).unwrap();
            assert_eq!(derby.pace.counted(), load);
        });
    }

    /// Without a link between two namespaces the other placements are as they were.
    #[test]
    fn rates_go_on_where_no_link_is_needed() {
        derby(&["everywire-opc-tcp"], &["rates"], &["same"], State::Ready, |mut derby, _| {
            derby.failed.insert(REMOTE.into(), crate::broken("no namespaces"));
            let rated = derby.races.iter().position(|race| race.rated).unwrap();
            derby.rates(rated, derby.races[rated]).unwrap();
            // There is no program here that could serve, so who was tried has failed.
            assert!(derby.failed.contains_key("everywire-opc-tcp"));
        });
    }
}
