//! How far the derby is, and how long it will take: a bar where somebody looks, else a plain line every
//! so often.
//!
//! Everything goes to standard error: standard output is for the table. Three modes, chosen once: a bar
//! (standard error is a terminal), lines (it is none), or nothing (`silent`). Cells are enough for the
//! counts: only the coordinator's thread uses this.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Where there is no bar, a line comes no more often than this.
const PAUSE: Duration = Duration::from_secs(10);

/// Dropping it takes the bar off the terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// Whether plain lines are written. Never together with a bar.
    lines: bool,
    /// Clients that were planned; more may come, so a share is at most 100 %.
    steps: usize,
    done: Cell<usize>,
    /// When the last line was written.
    said: Cell<Option<Instant>>,
}

impl Progress {
    /// `steps` are the clients of all rounds.
    pub(crate) fn new(silent: bool, steps: usize) -> Self {
        let new = |bar, lines| Self { bar, lines, steps, done: Cell::new(0), said: Cell::new(None) };
        if silent || !std::io::stderr().is_terminal() {
            return new(None, !silent);
        }
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let template = "{bar:32.cyan/dim} {percent:>3} %  {elapsed_precise:.dim}  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        new(Some(bar), false)
    }

    /// A part of the derby begins, such as a race at a placement.
    pub(crate) fn stage(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
        if self.lines {
            eprintln!("{what}");
        }
    }

    /// One client of a round has run, or was left out.
    pub(crate) fn step(&self) {
        self.done.set(self.done.get() + 1);
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// What is going on, and how long all of it will still take, if that is known.
    pub(crate) fn show(&self, what: &str, left: Option<Duration>) {
        let left = left.map(|left| format!("{} left: ", spoken(left))).unwrap_or_default();
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{left}{what}"));
        }
        if self.lines && self.said.get().is_none_or(|said| said.elapsed() >= PAUSE) {
            self.said.set(Some(Instant::now()));
            eprintln!("{:>3} %, {left}{what}", self.percent());
        }
    }

    /// The share of the clients that are done, from 0 to 100.
    fn percent(&self) -> usize {
        (self.done.get() * 100 / self.steps.max(1)).min(100)
    }

    /// Writes something that is to stay on the terminal, such as a verdict or a failure.
    pub(crate) fn note(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.println(what),
            None if self.lines => eprintln!("{what}"),
            None => {}
        }
    }
}

/// A time for people, in minutes and seconds.
fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spoken() {
        let spoken = |seconds| spoken(Duration::from_secs(seconds));
        assert_eq!([0, 59, 60, 185].map(spoken), ["0 s", "59 s", "1 min 0 s", "3 min 5 s"]);
    }

    #[test]
    fn all_steps_make_a_hundred() {
        let progress = Progress::new(true, 4);
        progress.step();
        assert_eq!(progress.percent(), 25);
        (0..9).for_each(|_| progress.step());
        assert_eq!(progress.percent(), 100);
        assert_eq!(Progress::new(true, 0).percent(), 0);
    }
}
