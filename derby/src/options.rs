//! What can be asked of a derby.

use crate::pace;
use crate::race::Race;
use std::path::PathBuf;
use std::time::Duration;

/// A published race has this long, unless something else is asked for.
const USUAL: Duration = Duration::from_secs(180);
/// A quick derby has this long, for one race or for all.
const QUICK: Duration = Duration::from_secs(60);
/// Where the time decides, nobody does more calls of an operation in a round than this: a client makes
/// room for as many samples before it begins.
const MOST_CALLS: u64 = 100_000;
/// The calls of an operation in a run of race 2, as published. A thorough derby does as many in every
/// race but the first.
const PUBLISHED_CALLS: u64 = 10_000;
/// The cycles of a run, as published in race 1.
const PUBLISHED_CYCLES: u64 = 1000;

/// How a derby is run. `Default` is what a user gets without asking: every race, three minutes for each
/// publication. `thorough` wins over `time` and `quick`; `calls` and `rounds` win over what those
/// imply.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of races; empty: every race.
    pub races: Vec<String>,
    /// One minute for everything, and three rounds.
    pub quick: bool,
    /// Counts of calls as published instead of a time, at every placement, in all rounds: it takes as long as it takes.
    pub thorough: bool,
    /// All of it ends within this time, the building of rivals included as far as they can be built in it.
    pub time: Option<Duration>,
    /// Contestants by name, or the beginning of names up to a `-`; empty: all.
    pub only: Vec<String>,
    /// Rounds, the first of which is dropped; at least 2.
    pub rounds: Option<usize>,
    /// The most calls of each operation in a round. Large transfers take a twentieth of it in a thorough derby.
    pub calls: Option<u64>,
    /// Placements by name; empty: all that this machine has CPUs for.
    pub placements: Vec<String>,
    /// What the link of the remote placement is like; `None`: as fast as the machine can.
    pub link: Option<crate::link::Shape>,
    /// Whether to leave out the trace of single cycles.
    pub no_trace: bool,
    /// A foreign server to race, as a reference or as a file of `NAME<TAB>REFERENCE` lines.
    pub against: Option<String>,
    /// Where to write the results for machines; `-` is standard output.
    pub json: Option<PathBuf>,
    /// Where to write the results for people.
    pub html: Option<PathBuf>,
    /// Where to write the table that is also printed.
    pub text: Option<PathBuf>,
    /// No progress, and no table at the end.
    pub silent: bool,
    /// The command to note in the report, such as `everywire derby calls --quick`; empty: that of this process.
    pub command: String,
}

impl Options {
    /// How long all of these races may take together; `None`: as long as they take.
    pub fn time(&self, races: &[&Race]) -> Option<Duration> {
        if self.thorough {
            return None;
        }
        if self.time.is_some() || self.quick {
            return self.time.or(Some(QUICK));
        }
        // Signals belong to the race that they have the number of.
        let mut numbers: Vec<u8> = races.iter().map(|race| race.number).collect();
        numbers.dedup();
        Some(USUAL * u32::try_from(numbers.len().max(1)).unwrap_or(1))
    }

    /// The numbers of rounds to choose from, the most first; the dropped first round included.
    pub(crate) fn rounds(&self) -> Vec<usize> {
        match self.rounds {
            Some(rounds) => vec![rounds.max(2)],
            None if self.thorough => vec![pace::ROUNDS[0]],
            None if self.quick => pace::ROUNDS.into_iter().rev().take(1).collect(),
            None => pace::ROUNDS.to_vec(),
        }
    }

    /// The most calls of each operation of this race in a round: a cycle is several calls.
    pub fn calls_of(&self, race: &Race) -> u64 {
        let usual = match (self.thorough, race.cycles) {
            (false, _) => MOST_CALLS,
            (true, true) => PUBLISHED_CYCLES,
            (true, false) => PUBLISHED_CALLS,
        };
        self.calls.unwrap_or(usual).max(1)
    }

    /// How many calls of a small operation each round has, where a number decides and not the time;
    /// `None` where the time does.
    pub(crate) fn counted_calls(&self) -> Option<u64> {
        self.calls.or_else(|| self.thorough.then_some(PUBLISHED_CALLS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race;

    #[test]
    fn five_races_take_a_quarter_of_an_hour_and_a_quick_derby_a_minute() {
        let all = race::named(&[]).unwrap();
        let calls = race::named(&["calls".to_owned()]).unwrap();
        let seconds = |options: &Options, races: &[&Race]| options.time(races).map(|time| time.as_secs());
        let usual = Options::default();
        assert_eq!((seconds(&usual, &all), seconds(&usual, &calls)), (Some(900), Some(180)));
        let quick = Options { quick: true, ..Options::default() };
        assert_eq!((seconds(&quick, &all), seconds(&quick, &calls)), (Some(60), Some(60)));
        let given = Options { time: Some(Duration::from_secs(7)), ..Options::default() };
        assert_eq!(seconds(&given, &all), Some(7));
        let thorough = Options { thorough: true, ..Options::default() };
        assert_eq!(seconds(&thorough, &all), None);
    }

    #[test]
    fn a_thorough_derby_counts_calls_as_published() {
        let thorough = Options { thorough: true, ..Options::default() };
        let of = |name: &str| thorough.calls_of(race::named(&[name.to_owned()]).unwrap()[0]);
        assert_eq!((of("calls"), of("callbacks"), thorough.rounds()), (10_000, 1000, vec![6]));
        assert_eq!(Options::default().rounds(), [6, 5, 4, 3]);
        assert_eq!(Options { quick: true, ..Options::default() }.rounds(), [3]);
        assert_eq!(Options { rounds: Some(9), ..Options::default() }.rounds(), [9]);
    }
}
