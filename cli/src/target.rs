//! References as people give them: text, `@FILE`, or `@FILE:NAME` of a file of named references
//! (`NAME<TAB>REFERENCE` lines, as servers write them with `--ref-file`).
//!
//! Nothing is asked here: a text that is no reference is found out by whoever parses it.

use crate::cli_error::{CliError, Done};
use everywire::{Failure, Kind};

/// A text that leads to no object, as a failure: because it is no reference (`otherwise` says so), or
/// because whoever was asked for it did not tell one.
pub(crate) fn unfit(otherwise: impl Into<String>, text: &str, failure: &Failure) -> Box<CliError> {
    match failure.kind() {
        Kind::BadReference | Kind::Unsupported | Kind::LimitExceeded => CliError::failure(otherwise, failure),
        _ => CliError::failure(format!("cannot look up `{text}`"), failure),
    }
}

/// The text of a reference.
///
/// # Errors
/// The file cannot be read, has not this name, or has several references where none was named.
pub(crate) fn text(given: &str) -> Done<String> {
    let Some(file) = given.strip_prefix('@') else { return Ok(given.trim().to_owned()) };
    let (file, name) = split(file);
    let what = || format!("the reference in `{file}` cannot be read");
    let content = std::fs::read_to_string(file).map_err(|error| {
        CliError::local(what(), &error)
            .hint("@FILE reads a reference, @FILE:NAME the one of that name, from a file")
    })?;
    let lines: Vec<&str> = content.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let named: Vec<(&str, &str)> = lines.iter().filter_map(|line| line.split_once('\t')).collect();
    let names = || named.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = match (name, lines.as_slice()) {
        (Some(wanted), _) => named.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text),
        (None, [only]) => Some(only.split_once('\t').map_or(*only, |(_, text)| text)),
        (None, _) => None,
    };
    match (found, name) {
        (Some(text), _) => Ok(text.trim().to_owned()),
        (None, Some(name)) if !named.is_empty() => {
            Err(CliError::usage(what(), format!("it has no `{name}`; it has {}", names()))
                .hint("choose one of these"))
        }
        (None, _) if !named.is_empty() => {
            Err(CliError::usage(what(), format!("it holds several: {}", names()))
                .hint(format!("choose one: @{file}:NAME")))
        }
        (None, _) => {
            Err(CliError::usage(what(), "it does not hold one reference, nor lines of NAME, tab, reference"))
        }
    }
}

/// The file and the name in `FILE:NAME`. Names contain colons, and files may: the longest beginning
/// that is a file is meant.
fn split(text: &str) -> (&str, Option<&str>) {
    let is_file = |file: &str| std::fs::metadata(file).is_ok();
    if is_file(text) {
        return (text, None);
    }
    let mut parts =
        text.rmatch_indices(':').filter_map(|(at, _)| Some((text.get(..at)?, text.get(at + 1..)?)));
    match parts.find(|(file, _)| is_file(file)) {
        Some((file, name)) => (file, Some(name)),
        None => (text, None),
    }
}
