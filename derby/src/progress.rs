//! How far the derby is: a bar where somebody looks, plain lines where not.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
}

impl Progress {
    pub(crate) fn new(silent: bool, steps: usize) -> Self {
        if silent || !std::io::stderr().is_terminal() {
            return Self { bar: None, lines: !silent };
        }
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let template = "{bar:32.cyan/dim} {percent:>3} %  {elapsed_precise:.dim}  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self { bar: Some(bar), lines: false }
    }

    /// Something that takes long begins; a line of its own where there is no bar.
    pub(crate) fn stage(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
        if self.lines {
            eprintln!("{what}");
        }
    }

    /// One step is done.
    pub(crate) fn step(&self, next: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            bar.set_message(next());
        }
    }

    /// Something to be read, now.
    pub(crate) fn note(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.println(what),
            None if self.lines => eprintln!("{what}"),
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
