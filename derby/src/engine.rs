//! The coordinator: who runs when, where and how often.
//!
//! Contestants come in *waves*: first all that are ready at once, then those whose processes start slowly, then those that have
//! to be built for minutes. A wave is prepared while nobody races, and then races at one placement after the other. At a
//! placement all of its servers are up at once and idle but for one; the clients come in turn (A B C, A B C), a new process each
//! time, and the first round is dropped. So whatever changes in the machine meanwhile befalls everybody. The raw ones race in
//! every wave, because everybody is put in relation to them.
//!
//! States of a contestant: *waiting* for its wave, *ready*, or *out*, with the reason in `failed`, in `Report::absent` or in
//! `Report::left_out`. States of the derby: *going on*; *over*, when its time has ended; *interrupted*. From either of the last two
//! it goes on to the report with what it has.
//!
//! Invariant: whatever was asked for and is not in the rows of the report is named in it, with the reason.

mod cells;
mod counting;
mod heats;
mod rates;
mod traces;

use crate::contestants::{self, Contestant, Missing};
use crate::load::Account;
use crate::machine::Machine;
use crate::options::Options;
use crate::pace::{self, Load, Pace, Rest, RoundPlan};
use crate::placement::{self, Placement};
use crate::progress::Progress;
use crate::race::{self, Race};
use crate::report::{Absent, ContestantEntry, OmittedEntry, Report};
use crate::{broken, fresh, interrupted, process};
use cells::Cell;
use everywire_model::Failure;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What is put by for the report.
/// Subtracted from the end of a derby with a time, so that the rows, the verdicts and the files are
/// written within that time too.
const WRITING: Duration = Duration::from_secs(1);
/// A contestant whose programs take at least this long to build is in the last wave (2): the time of
/// the others is not spent while a compiler runs.
const LONG_BUILDING: Duration = Duration::from_secs(60);
/// The family of the contestants that send raw bytes over a socket or a ring. They race in every wave:
/// each figure of the report is also a ratio to theirs.
const RAW: &str = "raw";
/// The family and name of the server that the user names with `--against`. It is nobody's contestant of
/// the table: it is not started here, it has no placement that we choose, and if it fails the derby
/// fails.
const AGAINST: &str = "against";

/// Runs the races, prints and writes what was asked for, and returns the report: of all that was asked for, or of what was done
/// until [`crate::interrupt`] was called.
///
/// # Errors
/// The options ask for something unknown, nobody can race, the foreign server that was asked for fails, or a result cannot be
/// written. Any other contestant that fails is named in the report, and the others go on.
pub fn run(options: &Options) -> Result<Report, Failure> {
    // What derbies that were killed have left in the temporary directory.
    let begun = Instant::now();
    fresh::sweep();
    let races = race::named(&options.races)?;
    let placements = placement::named(&options.placements)?;
    let all = contestants::all(options.against.as_deref())?;
    let picked: Vec<Contestant> = contestants::picked(all, &only(options))?
        .into_iter()
        .filter(|held| foreign(held) || races.iter().any(|race| held.setup.enters(race)))
        .collect();
    let (picked, unbuilt) = buildable(picked, options.time(&races));
    let waves: Vec<u8> = picked.iter().map(wave).collect();
    let ground =
        Ground { options, races: &races, contestants: &picked, placements: &placements, waves: &waves };

    // From here on the time is planned: what all rounds have (`load`), what comes after them (`rest`),
    // and how much of both fits (`course`).
    let end = options.time(&races).map(|time| begun + time.saturating_sub(WRITING));
    let rest = ground.rest();
    let course = match options.time(&races) {
        Some(time) => pace::choose(time, rest, &options.rounds(), |everywhere| ground.load(everywhere)),
        None => RoundPlan { rounds: options.rounds().first().copied().unwrap_or(2), everywhere: true },
    };
    let load = ground.load(course.everywhere).times(course.rounds);
    let progress = Progress::new(options.silent, load.quick + load.slow);
    let mut derby = Derby {
        options,
        races: &races,
        contestants: &picked,
        placements: &placements,
        waves: &waves,
        progress: &progress,
        course,
        pace: Pace::new(begun, end, load, rest),
        states: vec![State::Waiting; picked.len()],
        failed: BTreeMap::new(),
        left_out: unbuilt,
        cells: BTreeMap::new(),
        account: Account::default(),
        remarks: Vec::new(),
    };
    let mut report = Report::new(Machine::this(), command(options), course.rounds, options.counted_calls());
    report.time_s = options.time(&races).map(|time| time.as_secs_f64());
    ground.leave_out(course, &mut derby.left_out);
    derby.run(&mut report)?;
    report.seconds = begun.elapsed().as_secs_f64();
    // The bar must be off the terminal before the table is printed, so both go before `deliver`.
    let failed = std::mem::take(&mut derby.failed);
    drop(derby);
    drop(progress);
    report.deliver(options)?;
    outcome(options, &report, &failed)?;
    Ok(report)
}

/// What was asked for, before anything runs: who, what and where. It is read only, and answers how much
/// work that is; `waves` has the wave of each contestant, at the same place as in `contestants`.
struct Ground<'a> {
    options: &'a Options,
    races: &'a [&'static Race],
    contestants: &'a [Contestant],
    placements: &'a [Placement],
    waves: &'a [u8],
}

impl Ground<'_> {
    /// The clients of one round, over all waves, races and placements. `everywhere` is that of a
    /// `RoundPlan`. A wave in which nobody of its own races at a placement has no heat there, so the raw
    /// contestants are not counted for it either.
    fn load(&self, everywhere: bool) -> Load {
        let at = |race: &Race, placement: &Placement, wave: u8| -> Load {
            let all = self.contestants.iter().zip(self.waves);
            let new = all
                .clone()
                .any(|(held, own)| *own == wave && starts(self.options, everywhere, race, held, placement));
            all.filter(|(held, own)| new && races_in(held, **own, wave))
                .filter(|(held, _)| starts(self.options, everywhere, race, held, placement))
                .map(|(held, _)| client_of(race, held))
                .sum()
        };
        let waves = 0..=self.waves.iter().copied().max().unwrap_or(0);
        waves
            .flat_map(|wave| {
                // What goes at a rate has no rounds.
                let races = self.races.iter().filter(|race| !race.rated);
                let of = move |race: &&'static Race| {
                    self.placements.iter().map(|placement| at(race, placement, wave)).sum::<Load>()
                };
                races.map(of).collect::<Vec<_>>()
            })
            .sum()
    }

    /// What comes beside the rounds: building, races at a rate, counting of frames, traces. `Pace`
    /// keeps this time free from the beginning.
    fn rest(&self) -> Rest {
        let mut rest = Rest { building: pending(self.contestants, self.waves, 1), ..Rest::default() };
        // In the race with hops each lane starts its servers anew, at each placement; that takes as
        // long as building does, and is planned as such.
        for race in self.races.iter().filter(|race| race.passes()) {
            let held = self.contestants.iter().filter(|held| held.setup.enters(race));
            let starting: Duration = held.map(|held| held.setup.starting()).sum();
            let heats = self.placements.iter().filter(|placement| {
                self.contestants.iter().any(|held| starts(self.options, true, race, held, placement))
            });
            rest.building += starting * u32::try_from(heats.count()).unwrap_or(1);
        }
        for race in self.races {
            rest.rated += rates::take(self.options, race, self.contestants, self.placements);
            for held in self.contestants {
                if counting::counts(self.options, race, held) {
                    rest.counted += operations_of(race, held);
                }
                if traces::traced(self.options, race, held) {
                    rest.traced += operations_of(race, held);
                }
            }
        }
        rest
    }

    /// Names in `left_out` what this course gives up before it begins: rounds, slow contestants at
    /// pinned placements, frames that only a thorough derby counts, and places where a foreign server
    /// cannot be put. What falls out later, for lack of time, is added where it happens.
    fn leave_out(&self, course: RoundPlan, left_out: &mut Vec<OmittedEntry>) {
        let mut leave = |what: String, why: &str| left_out.push(OmittedEntry { what, why: why.to_owned() });
        if !self.options.thorough && self.options.rounds.is_none() && course.rounds < pace::ROUNDS[0] {
            leave(
                format!("{} of {} rounds", pace::ROUNDS[0] - course.rounds, pace::ROUNDS[0]),
                "they do not fit the time; give more with --time, or take all of them with --thorough",
            );
        }
        for name in &self.options.placements {
            if !self.placements.iter().any(|placement| placement.name == name) {
                leave(format!("the placement `{name}`"), "this machine has too few CPUs for it");
            }
        }
        for held in self.contestants {
            let raced = |race: &&&'static Race| held.setup.enters(race);
            let at = |everywhere: bool| -> Vec<&str> {
                let starts = |placement: &&Placement| {
                    self.races.iter().any(|race| starts(self.options, everywhere, race, held, placement))
                };
                self.placements.iter().filter(starts).map(|placement| placement.name).collect()
            };
            let missing: Vec<&str> =
                at(true).into_iter().filter(|name| !at(course.everywhere).contains(name)).collect();
            if !missing.is_empty() {
                leave(
                    format!("{} at {}", held.name, missing.join(", ")),
                    "their processes start slowly, and the time is short; more --time, --thorough, or --placement has them",
                );
            }
            if !self.options.thorough && held.setup.starts_slowly() && held.setup.frames().is_some() {
                leave(format!("frames of {}", held.name), "they are counted with --thorough");
            }
            if foreign(held) {
                let names: Vec<&str> = self
                    .placements
                    .iter()
                    .filter(|placement| placement.is_pinned() || placement.remote)
                    .map(|placement| placement.name)
                    .collect();
                if !names.is_empty() {
                    leave(
                        format!("the foreign server at {}", names.join(", ")),
                        "nobody here knows where it runs, so it races unpinned only",
                    );
                }
                for race in self.races.iter().filter(|race| !raced(race)) {
                    leave(
                        format!("the foreign server in `{}`", race.name),
                        "a foreign server races in `calls` and `bytes` only",
                    );
                }
            }
        }
    }
}

/// Those that race, and those that do not because it takes too much of the time to build them.
fn buildable(picked: Vec<Contestant>, time: Option<Duration>) -> (Vec<Contestant>, Vec<OmittedEntry>) {
    let Some(time) = time else { return (picked, Vec::new()) };
    let all = picked.iter().map(|held| (held.family, held.setup.building()));
    let needed: BTreeMap<&str, Duration> = all.filter(|(_, building)| !building.is_zero()).collect();
    let built = pace::built_in(time, needed.clone().into_iter().collect());
    let (kept, out): (Vec<_>, Vec<_>) = picked
        .into_iter()
        .partition(|held| !needed.contains_key(held.family) || built.contains(&held.family));
    (kept, out.into_iter().map(|held| unbuilt(&held)).collect())
}

/// Why this one does not race.
fn unbuilt(held: &Contestant) -> OmittedEntry {
    let why = "it has to be built first, and the time is too short for that; race it with --only once, or give more --time";
    OmittedEntry { what: held.name.clone(), why: why.to_owned() }
}

/// How long the building of these waves will take, from this one on. Of one family the first is built for all of them.
/// Wave 0 is never counted: nobody in it is built.
fn pending(contestants: &[Contestant], waves: &[u8], from: u8) -> Duration {
    let mut families: Vec<&str> = Vec::new();
    let mut sum = Duration::ZERO;
    for (held, _) in contestants.iter().zip(waves).filter(|(_, wave)| **wave >= from.max(1)) {
        let building = held.setup.building();
        if !building.is_zero() && !families.contains(&held.family) {
            families.push(held.family);
            sum += building;
        }
    }
    sum
}

/// When a contestant comes: 0 at once, 1 where its processes start slowly, 2 where it has to be built for minutes.
fn wave(held: &Contestant) -> u8 {
    match (held.setup.building() >= LONG_BUILDING, held.setup.starts_slowly()) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

/// Whether a contestant whose own wave is `own` takes part in this wave: in its own, and a raw one in
/// all.
fn races_in(held: &Contestant, own: u8, wave: u8) -> bool {
    own == wave || held.family == RAW
}

/// Whether this is the server that the user named with `--against`.
fn foreign(held: &Contestant) -> bool {
    held.family == AGAINST
}

/// Whether a contestant races at this placement, by the options and the course alone (not by whether it
/// is ready). Plan and races both ask here, so that what was planned is what is run. `everywhere` is
/// that of the `RoundPlan`: without it, contestants that start slowly do not race where the CPUs are
/// given.
fn starts(
    options: &Options,
    everywhere: bool,
    race: &Race,
    contestant: &Contestant,
    placement: &Placement,
) -> bool {
    let chosen = !options.placements.is_empty();
    // A busy CPU says most about calls; elsewhere whoever has the time asks for it. With a loop on each CPU of a small machine the rest of
    // it stands still, so nobody gets that who has not asked.
    let crowd = options.thorough || (race.name == "calls" && !options.quick && placement.shares_a_cpu());
    let held = chosen || ((race.remote || !placement.remote) && (crowd || !placement.busy));
    let spared = !everywhere && !chosen && contestant.setup.starts_slowly();
    // What stands between two others has a CPU of its own, where there are two: that is the placement which tells hops apart.
    let apart = !race.passes() || chosen || options.thorough || placement.gives_a_hop_its_own();
    held && apart
        && contestant.setup.enters(race)
        && contestant.runs_at(placement)
        && !(spared && placement.is_pinned())
}

/// Operations that a contestant has in a race.
fn operations_of(race: &Race, contestant: &Contestant) -> usize {
    race.operations.iter().filter(|operation| contestant.setup.does(race, operation.name)).count()
}

/// One client process of a contestant in a race, as the planning of time counts it.
fn client_of(race: &Race, contestant: &Contestant) -> Load {
    Load::client(contestant.setup.starts_slowly(), operations_of(race, contestant))
}

/// The names that contestants are picked by. With `--against` and no names that is the foreign server
/// and the raw ones; with names, the foreign server is added to them.
fn only(options: &Options) -> Vec<String> {
    match (&options.against, options.only.as_slice()) {
        (Some(_), []) => [RAW, AGAINST].map(str::to_owned).into(),
        (Some(_), picked) if !picked.iter().any(|name| name == AGAINST) => {
            picked.iter().cloned().chain([AGAINST.to_owned()]).collect()
        }
        (_, picked) => picked.to_vec(),
    }
}

/// The command that the report notes, to repeat the derby by. The path of the program is left out.
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

/// Turns a finished report into an error where nothing came of it: the foreign server that was asked
/// for did not race, or not to the end, or nobody has a row. An interrupted derby has not failed. One
/// contestant of several that fails is no error: it is in `Report::absent`.
fn outcome(options: &Options, report: &Report, failed: &BTreeMap<String, Failure>) -> Result<(), Failure> {
    if report.interrupted.is_some() {
        return Ok(());
    }
    if options.against.is_some() && !report.rows.iter().any(|row| row.contestant == AGAINST) {
        let why = failed.get(AGAINST).map_or_else(
            || {
                let reasons = report.left_out.iter().filter(|left| left.what.contains("foreign server"));
                reasons.map(|left| left.why.clone()).collect::<Vec<_>>().join("; ")
            },
            Failure::to_string,
        );
        return Err(broken(format!("the foreign server did not race: {why}"))
            .with_hint("call it once by hand with `everywire call`, to see what it answers"));
    }
    if let Some(failure) = failed.get(AGAINST) {
        return Err(broken(format!("the foreign server did not race to the end: {failure}")));
    }
    match failed.iter().next() {
        Some((name, failure)) if report.rows.is_empty() => {
            Err(broken(format!("nobody raced to the end; the first to fail was {name}: {failure}")))
        }
        None if report.rows.is_empty() => Err(broken("nobody raced to the end, for the time was too short")
            .with_hint(
                "give more with --time, or name fewer with --only; the report says why each was left out",
            )),
        _ => Ok(()),
    }
}

/// Where a contestant is in the derby. It only moves forward: `Waiting` until its wave is prepared,
/// then `Ready` or `Out`, for good. A `Ready` one whose processes fail later stays so, and is in
/// `Derby::failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Ready,
    Out,
}

/// The derby under way. Of each contestant, race and placement it uses the number, which is the place
/// in the slices of the same name: cells and states are kept by it.
struct Derby<'a> {
    options: &'a Options,
    races: &'a [&'static Race],
    contestants: &'a [Contestant],
    placements: &'a [Placement],
    waves: &'a [u8],
    progress: &'a Progress,
    course: RoundPlan,
    pace: Pace,
    /// Of each contestant.
    states: Vec<State>,
    /// Contestant and what happened to it first.
    failed: BTreeMap<String, Failure>,
    /// What did not run, with the reason, in the order in which it was noticed; the report groups it.
    left_out: Vec<OmittedEntry>,
    /// What is known of a race, a placement, a contestant and an operation, by their numbers.
    cells: BTreeMap<(usize, usize, usize, usize), Cell>,
    /// What other programs of the machine used while clients ran.
    account: Account,
    /// What clients of a foreign server say about it.
    remarks: Vec<String>,
}

impl Derby<'_> {
    /// All waves, then what does not depend on rounds (rates, frames, traces, the split of a call),
    /// then the conclusions. Only complete rows are put in relation to the raw ones (`relate`); `judge`
    /// comes last, since it reads all the rest.
    ///
    /// # Errors
    /// A wave cannot be run (there is no temporary directory), or nobody of all contestants is ready.
    fn run(&mut self, report: &mut Report) -> Result<(), Failure> {
        let last = self.waves.iter().copied().max().unwrap_or(0);
        for wave in 0..=last {
            if self.waves.contains(&wave) {
                self.prepare(wave, report);
                self.wave(wave)?;
            }
        }
        if self.states.iter().all(|state| *state == State::Out) && interrupted().is_none() {
            return Err(
                broken("nobody can race").with_hint("ask for other contestants, or install what is missing")
            );
        }
        for (race_at, race) in self.races.iter().enumerate().filter(|(_, race)| race.rated) {
            self.rates(race_at, race)?;
        }
        let traffic = self.count_all();
        report.rows = self.rows(&traffic);
        for race in self.races.iter().filter(|race| race.cycles && !self.options.no_trace) {
            if self.goes_on() {
                self.progress.stage(&format!("{}: tracing single cycles", race.title));
                let traces = self.traces(race);
                report.traces.extend(traces);
            }
        }
        report.relate();
        if self.goes_on() {
            report.split = self.split(report);
        }
        for (name, why) in &self.failed {
            report.absent.push(Absent {
                name: name.clone(),
                why: why.to_string(),
                remedy: "see the message; the other contestants are complete".into(),
            });
        }
        traces::conclude(report);
        report.load = self.account.close(placement::online_cpus());
        report.left_out = OmittedEntry::grouped(&self.left_out);
        report.interrupted = interrupted().map(signal_name);
        report.remarks = std::mem::take(&mut self.remarks);
        report.judge();
        Ok(())
    }

    /// Whether something new may be started: there is time left, and nobody has asked to end.
    fn goes_on(&self) -> bool {
        interrupted().is_none() && !self.pace.is_over(Instant::now())
    }

    /// Builds and finds the programs of a wave, while nobody races. After it each contestant of the
    /// wave is `Ready` or `Out`, and the report has its version, or why it is absent.
    fn prepare(&mut self, wave: u8, report: &mut Report) {
        for (who, contestant) in self.contestants.iter().enumerate() {
            if self.waves.get(who) != Some(&wave) {
                continue;
            }
            let state = self.prepared(contestant, report);
            if let Some(held) = self.states.get_mut(who) {
                *held = state;
            }
            self.pace.built(self.pending(wave));
        }
    }

    /// How long what is still to be built after this wave has begun will take.
    fn pending(&self, wave: u8) -> Duration {
        pending(self.contestants, self.waves, wave + 1)
    }

    /// One contestant of `prepare`. It is out without a try where its building would not fit the time
    /// that is left.
    fn prepared(&mut self, contestant: &Contestant, report: &mut Report) -> State {
        if interrupted().is_some() {
            return State::Out;
        }
        let (left, building) = (self.pace.remaining(Instant::now()), contestant.setup.building());
        if !building.is_zero() && left.is_some_and(|left| left < building) {
            self.left_out.push(unbuilt(contestant));
            return State::Out;
        }
        self.show(&format!("preparing {}", contestant.name));
        // What comes from slow networks must not take the time of the report.
        process::build_until(self.pace.end());
        match contestant.setup.prepare() {
            Ok(version) => {
                report.contestants.push(ContestantEntry {
                    name: contestant.name.clone(),
                    title: contestant.title.clone(),
                    version,
                });
                State::Ready
            }
            Err(_) if interrupted().is_some() => State::Out,
            Err(Missing { what, install }) => {
                self.progress.note(&format!("{} cannot race: {what}; {install}", contestant.name));
                report.absent.push(Absent { name: contestant.name.clone(), why: what, remedy: install });
                State::Out
            }
        }
    }

    /// Tells on the terminal what goes on now, and how long the derby will still take.
    fn show(&self, what: &str) {
        self.progress.show(what, self.pace.estimate(Instant::now()));
    }

    /// Notes that a contestant failed. Only the first failure is kept: from then on it does not run
    /// (`is_ready`), and its rows are what it had until then.
    fn fails(&mut self, contestant: &Contestant, failure: &Failure) {
        // Its processes were killed, and that is no fault of its own.
        if interrupted().is_some() {
            return;
        }
        self.progress.note(&format!("{} fails: {failure}", contestant.name));
        self.failed.entry(contestant.name.clone()).or_insert_with(|| failure.clone());
    }
}

/// The name of a signal, for the report.
fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGINT => "SIGINT".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}
