//! Arguments that begin with a hyphen as options do, and are values: `-1e-7`, `-Infinity`, `-P1D`.
//!
//! The parser of command lines takes `-5` and `-1.5e7` for numbers, and everything else for options, `-Infinity` for `-I nfinity`. So
//! such words are marked before it sees them, and the mark is taken off where it gives them to a verb.
//!
//! Invariant: a word that may be the value of an option is not marked.

use clap::{Arg, Command};
use std::ffi::OsString;

/// Before a word that is a value. Nobody types it.
const MARK: char = '\u{1}';

/// Verbs that take values, between their names and what follows.
const VERBS: [&str; 2] = ["call", "emit"];

/// The words of a command line, with the negative values among them marked.
pub(crate) fn marked(command: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let verb = words.iter().skip(1).filter_map(|word| word.to_str()).find(|word| !word.starts_with('-'));
    let Some(verb) = verb.filter(|verb| VERBS.contains(verb)) else { return words };
    let Some(options) = command.find_subcommand(verb) else { return words };
    let mut awaits = false;
    let mark = |word: OsString| {
        let text = word.to_str().unwrap_or_default();
        let is_free = !std::mem::replace(&mut awaits, awaits_value(options, text));
        if is_free && is_negative(text) { format!("{MARK}{text}").into() } else { word }
    };
    words.into_iter().map(mark).collect()
}

/// A word as it was typed.
///
/// # Errors
/// None.
// Whoever parses values of a command line returns a result.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn unmarked(word: &str) -> Result<String, std::convert::Infallible> {
    Ok(word.strip_prefix(MARK).unwrap_or(word).to_owned())
}

/// Whether a word is a value and no option: no option is called by a digit.
fn is_negative(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('-') else { return false };
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_duration = || rest.strip_prefix('P').is_some_and(|of| begins(of) || of.starts_with('T'));
    begins(rest) || rest.strip_prefix('.').is_some_and(begins) || rest == "Infinity" || is_duration()
}

/// Whether the word behind this one is its value.
fn awaits_value(command: &Command, word: &str) -> bool {
    let takes = |option: Option<&Arg>| option.is_some_and(|option| option.get_action().takes_values());
    if let Some(long) = word.strip_prefix("--") {
        return takes(command.get_arguments().find(|option| option.get_long() == Some(long)));
    }
    // Behind the letter of an option its value may stand in the same word.
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => {
            takes(command.get_arguments().find(|option| option.get_short() == Some(letter)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Verb, whole};
    use clap::FromArgMatches;

    fn parsed(line: &str) -> Result<Verb, clap::Error> {
        let words = line.split(' ').map(OsString::from).collect();
        let matches = whole().try_get_matches_from(marked(&whole(), words))?;
        Ok(Program::from_arg_matches(&matches)?.verb)
    }

    #[test]
    fn negative_values_are_arguments_in_each_notation_and_options_stay_options() {
        let values = "-1 -1.5 -1e7 -1e-7 -1E+7 -.5 -Infinity -P1DT2H -0044-03-15";
        let line =
            format!("everywire call tcp://a/b set {values} --json -d -1e-7 -I inc --signature ->s -2e-2");
        let Ok(Verb::Call(call)) = parsed(&line) else { panic!("{:?}", parsed(&line).err()) };
        assert_eq!(call.words().join(" "), format!("{values} -2e-2"));
        assert!(call.json && call.texts() == (Some("-1e-7"), Some("->s")));
        let line =
            format!("everywire --no-color emit dbus:session/o/p i.Changed {values} --signature -x -d -5e-5");
        let Ok(Verb::Emit(emit)) = parsed(&line) else { panic!("{:?}", parsed(&line).err()) };
        assert_eq!(emit.words().join(" "), values);
        assert_eq!(emit.texts(), (Some("-5e-5"), Some("-x")));
        for wrong in ["--timeout", "-x", "-Inf", "--deadline -1e-7"] {
            assert!(
                parsed(&format!("everywire call tcp://a/b set {wrong}")).is_ok() == (wrong == "-Inf"),
                "{wrong}"
            );
        }
    }
}
