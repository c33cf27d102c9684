//! What can be asked of a derby.

use crate::race::Race;
use std::path::PathBuf;

/// How a derby is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of races; empty: every race that runs.
    pub races: Vec<String>,
    /// Fewer calls and rounds, for a look: ends within 45 s with all contestants.
    pub quick: bool,
    /// Contestants by name, or the beginning of names up to a `-`; empty: all.
    pub only: Vec<String>,
    /// Rounds, the first of which is dropped; at least 2.
    pub rounds: Option<usize>,
    /// Calls of each operation in a round. Large transfers take a hundredth of it.
    pub calls: Option<u64>,
    /// Placements by name; empty: all that this machine has CPUs for.
    pub placements: Vec<String>,
    /// What the link of the remote placement is like; `None`: as fast as the machine can.
    pub link: Option<crate::link::Shape>,
    /// Whether to leave out the trace of single cycles.
    pub no_trace: bool,
    /// A foreign server to race, as a reference or as a file of `NAME<TAB>REFERENCE` lines.
    pub against: Option<String>,
    /// Where to write the results for machines.
    pub json: Option<PathBuf>,
    /// Where to write the results for people.
    pub html: Option<PathBuf>,
    /// No progress, and no table at the end.
    pub silent: bool,
    /// The command to note in the report, such as `everywire derby calls --quick`; empty: that of this process.
    pub command: String,
}

impl Options {
    /// Rounds to run, the first included.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 3 } else { 6 }).max(2)
    }

    /// Calls of each small operation in a round.
    pub fn calls(&self) -> u64 {
        self.calls.unwrap_or(if self.quick { 1000 } else { 10_000 }).max(1)
    }

    /// The same of this race: a cycle is several calls.
    pub fn calls_of(&self, race: &Race) -> u64 {
        if race.cycles {
            self.calls.unwrap_or(if self.quick { 200 } else { 1000 }).max(1)
        } else {
            self.calls()
        }
    }
}
