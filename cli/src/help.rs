//! What clap says, as people and programs want it: examples that no line end breaks, and mistakes in
//! one sentence.
//!
//! The texts behind `--help` are taken out of the command before clap sees the arguments (`apart`), and
//! printed behind its help by `main`. A mistake is not what clap prints, but three lines, or with
//! `--json` one object, like any other failure (`mistake`).

use crate::cli_error::CliError;
use clap::Command;
use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use everywire::model::words::nearest;
use std::collections::HashMap;

/// What people type who know other tools, and what it is called here.
const VERBS: &[(&str, &str)] = &[
    ("bench", "derby"),
    ("benchmark", "derby"),
    ("bridge", "broker"),
    ("capture", "trace"),
    ("codegen", "gen"),
    ("dump", "trace"),
    ("generate", "gen"),
    ("get", "call"),
    ("host", "serve"),
    ("info", "describe"),
    ("inspect", "describe"),
    ("introspect", "describe"),
    ("invoke", "call"),
    ("listen", "watch"),
    ("lookup", "explain"),
    ("ls", "list"),
    ("monitor", "watch"),
    ("ping", "status"),
    ("probe", "status"),
    ("proxy", "broker"),
    ("request", "call"),
    ("route", "broker"),
    ("server", "serve"),
    ("set", "call"),
    ("show", "describe"),
    ("sniff", "trace"),
    ("subscribe", "watch"),
    ("tree", "list"),
];

/// The same of options.
const OPTIONS: &[(&str, &str)] = &[
    ("--body", "--data"),
    ("--format", "--as"),
    ("--idl", "--contract"),
    ("--key-file", "--ref-file"),
    ("--limit", "--count"),
    ("--listen", "--on"),
    ("--output", "--out"),
    ("--program", "--exec"),
    ("--time", "--for"),
    ("--timeout", "--deadline"),
    ("--wsdl", "--contract"),
    ("--xml", "--contract"),
];

/// The texts behind the help of each verb, by its name; that of the program itself has the empty name.
pub(crate) struct Examples(HashMap<String, String>);

/// Takes the texts behind the help out of a command, which is returned without them: clap would break
/// their lines, and examples that are broken cannot be pasted.
pub(crate) fn apart(mut command: Command) -> (Command, Examples) {
    let mut texts = HashMap::new();
    let mut take = |command: Command, name: &str| {
        if let Some(text) = command.get_after_help() {
            texts.insert(name.to_owned(), text.to_string());
        }
        command.after_help(Resettable::Reset)
    };
    command = take(command, "");
    command = command.mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        take(verb, &name)
    });
    (command, Examples(texts))
}

impl Examples {
    /// The text behind the help that a command line asks for: that of its verb, else that of the
    /// program. Empty or with a line end around it.
    pub(crate) fn of(&self, raw: &[String]) -> String {
        let mut words = raw.iter().skip(1).filter(|word| !word.starts_with('-') && *word != "help");
        let verb =
            words.next().map(String::as_str).filter(|verb| self.0.contains_key(*verb)).unwrap_or_default();
        self.0.get(verb).map(|text| format!("\n{}\n", text.trim_end())).unwrap_or_default()
    }
}

/// A mistake as clap found it, in three lines. `words` are those of the command line, `program` is the whole command.
pub(crate) fn mistake(error: &clap::Error, words: &[String], program: &Command) -> Box<CliError> {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let verb = words.iter().skip(1).find_map(|word| program.find_subcommand(word));
    let named =
        verb.map(|verb| format!("everywire {}", verb.get_name())).unwrap_or_else(|| "everywire".into());
    let within = verb.unwrap_or(program);
    let (message, tip) = sentence(&error.to_string());
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let given = of(ContextKind::InvalidSubcommand).concat();
            let all: Vec<&str> =
                within.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
            let meant = VERBS
                .iter()
                .find(|(other, ours)| *other == given && all.contains(ours))
                .map(|(_, ours)| *ours);
            let near = meant.or_else(|| nearest(&given, all.iter().copied()));
            let hint = match (near, all.as_slice()) {
                (Some(near), _) => {
                    format!("did you mean `{named} {near}`? `{named} --help` says what each does")
                }
                (None, [only]) => format!("write `{named} {only} {given}`"),
                (None, _) => format!("`{named} --help` says what each does"),
            };
            CliError::usage(
                format!("there is no `{named} {given}`"),
                format!("`{named}` has {}", all.join(", ")),
            )
            .hint(hint)
        }
        ErrorKind::UnknownArgument => {
            let given = of(ContextKind::InvalidArg).concat();
            if !given.starts_with('-') {
                return CliError::usage(format!("`{given}` is one word too many"), message)
                    .hint(format!("quote what has blanks in it; `{named} --help` has examples"));
            }
            let options = || within.get_arguments().filter_map(|argument| argument.get_long());
            let bare = given.split('=').next().unwrap_or(&given);
            let known = |option: &str| options().any(|long| Some(long) == option.strip_prefix("--"));
            let meant = OPTIONS
                .iter()
                .find(|(other, ours)| *other == bare && known(ours))
                .map(|(_, ours)| (*ours).to_owned());
            let near = || nearest(bare.trim_start_matches('-'), options()).map(|near| format!("--{near}"));
            let meant = meant.or_else(|| bare.starts_with("--").then(near).flatten());
            let mut hint = match meant {
                Some(meant) => format!("did you mean `{meant}`? `{named} --help` has all options"),
                None => format!("`{named} --help` has all options"),
            };
            if matches!(within.get_name(), "call" | "emit") {
                hint.push_str(
                    "; arguments of an operation are NAME=VALUE, and behind -- words may begin with a hyphen",
                );
            }
            CliError::usage(format!("there is no option `{given}`"), format!("`{named}` does not have it"))
                .hint(hint)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = of(ContextKind::InvalidArg).join(", ");
            let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
            let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
            let hint = match usage.is_empty() {
                true => format!("`{named} --help` has examples"),
                false => format!("write {usage}; `{named} --help` has examples"),
            };
            CliError::usage("the command line is not complete", format!("missing: {missing}")).hint(hint)
        }
        _ => CliError::usage("the command line cannot be understood", message)
            .hint(tip.unwrap_or_else(|| format!("`{named} --help` has examples"))),
    }
}

/// A mistake as clap tells it, in one sentence; and its tip, if it has one. Clap prints paragraphs: the
/// mistake with indented lines of what is missing, then tips and usage.
fn sentence(text: &str) -> (String, Option<String>) {
    let mut paragraphs = text.split("\n\n");
    let first = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    let mut lines = first.lines().map(str::trim);
    let head = lines.next().unwrap_or_default().to_owned();
    let named: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let message = if named.is_empty() { head } else { format!("{head} {}", named.join(", ")) };
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    (message, tip.map(|tip| tip.lines().next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_keeps_the_names_of_what_is_missing() {
        let text = "error: the following required arguments were not provided:\n  <REFERENCE>\n  <OPERATION>\n\nUsage: x\n";
        let (message, tip) = sentence(text);
        assert_eq!(message, "the following required arguments were not provided: <REFERENCE>, <OPERATION>");
        assert_eq!(tip, None);
        let (_, tip) = sentence(
            "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: '--json'\n\nUsage: x\n",
        );
        assert_eq!(tip.as_deref(), Some("a similar argument exists: '--json'"));
    }
}
