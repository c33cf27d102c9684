//! All of the `everywire` program: calls, serves, describes, traces and races objects.
//!
//! Each verb has a file in `verbs`; what they share lies beside it. Only data goes to standard output;
//! failures go to standard error in three lines, or to standard output as one JSON object where
//! `--json` was given.
//!
//! Order: a shell that asks for completions is answered; one side of a race becomes that; the command
//! line is parsed; the verb runs and returns; its failure is shown, and is the exit code.
//!
//! Invariants: a verb does not print its own failure: it returns `Done`. No code here is unsafe.

#![forbid(unsafe_code)]

mod cli_error;
mod codes;
mod complete;
mod contract;
mod help;
#[cfg(test)]
mod hints;
mod negative;
mod opcda;
mod output;
mod people;
mod program;
mod secrets;
mod stranger;
mod target;
mod trace;
mod verbs;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use output::Style;
use std::process::ExitCode;
use verbs::{call, completion, derby, describe, generate};

/// Exit codes, as `--help` and the documentation tell them.
const EXIT_CODES: &str = include_str!("../help/exit-codes.txt");

/// One object, every wire: call, serve, describe, trace and race objects of old and new middleware.
#[derive(Parser)]
#[command(name = "everywire", version, after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
struct Program {
    /// Print without colours.
    #[arg(long, global = true)]
    no_color: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Broker(verbs::broker::Arguments),
    Call(call::Arguments),
    Demo(verbs::demo::Arguments),
    Describe(describe::Arguments),
    Emit(verbs::emit::Arguments),
    Explain(verbs::explain::Arguments),
    Gen(generate::Arguments),
    List(verbs::list::Arguments),
    Serve(verbs::serve::Arguments),
    Status(verbs::status::Arguments),
    Trace(verbs::trace::Arguments),
    Watch(verbs::watch::Arguments),
    Derby(derby::Arguments),
    // After the servers that wires bring along.
    #[command(display_order = 900)]
    Completion(completion::Arguments),
    #[command(display_order = 901)]
    Man(verbs::man::Arguments),
}

/// Runs the program by its command line, and gives its exit code.
pub fn main() -> ExitCode {
    complete::answer(whole);
    // Only for help and for errors, which are text in any case; clap takes the words as they are.
    let raw: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // One side of a race, in a process of its own: nobody's to type.
    if let [_, verb, rest @ ..] = raw.as_slice()
        && verb == "derby-child"
    {
        return derby::child(rest);
    }
    let plain = is_given(&raw, "--no-color");
    let (mut command, examples) = help::apart(whole());
    if plain {
        command = command.color(ColorChoice::Never);
    }
    let words = negative::marked(&command, std::env::args_os().collect());
    let matches = match command.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return misused(&error, &raw, &examples),
    };
    if let Some((name, given)) = matches.subcommand()
        && let Some(hub) = verbs::hub::programs().find(|program| program.name == name)
    {
        return end(verbs::hub::run(hub, given), false, Style::detect(plain));
    }
    let program = match Program::from_arg_matches(&matches) {
        Ok(program) => program,
        Err(error) => return misused(&error, &raw, &examples),
    };
    let style = Style::detect(program.no_color);
    let (json, done) = match program.verb {
        Verb::Broker(arguments) => (arguments.json, verbs::broker::run(&arguments)),
        Verb::Call(arguments) => (arguments.json, call::run(&arguments, style)),
        Verb::Demo(arguments) => (arguments.json, verbs::demo::run(&arguments)),
        Verb::Describe(arguments) => (arguments.json, describe::run(&arguments)),
        Verb::Emit(arguments) => (arguments.json, verbs::emit::run(&arguments, style)),
        Verb::Explain(arguments) => (arguments.json, verbs::explain::run(&arguments, style)),
        Verb::Status(arguments) => (arguments.json, verbs::status::run(&arguments, style)),
        Verb::Gen(arguments) => (arguments.json(), generate::run(&arguments)),
        Verb::Serve(arguments) => (arguments.json, verbs::serve::run(&arguments)),
        Verb::Trace(arguments) => (arguments.json, verbs::trace::run(&arguments, style)),
        Verb::List(arguments) => (arguments.json, verbs::list::run(&arguments, style)),
        Verb::Watch(arguments) => (arguments.json, verbs::watch::run(&arguments, style)),
        Verb::Derby(arguments) => (arguments.json(), derby::run(&arguments)),
        Verb::Completion(arguments) => (arguments.json, completion::run(&arguments)),
        Verb::Man(arguments) => (arguments.json, verbs::man::run(&arguments, whole())),
    };
    end(done, json, style)
}

/// Shows a failure, and makes the exit code.
fn end(done: cli_error::Done, json: bool, style: Style) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            trouble.show(json, style);
            ExitCode::from(trouble.exit())
        }
    }
}

/// The whole command line: the verbs of this program, and one for each server that a wire brings along.
fn whole() -> clap::Command {
    verbs::hub::with_programs(Program::command())
}

/// Whether a command line that clap does not take has this option.
fn is_given(raw: &[String], option: &str) -> bool {
    raw.iter().any(|word| word == option)
}

/// What clap found wrong, on standard error or as JSON; exit code 2. Help and version come as errors
/// too, but are no mistakes.
fn misused(error: &clap::Error, raw: &[String], examples: &help::Examples) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is the reader's choice.
        let _ = error.print();
        if error.kind() == clap::error::ErrorKind::DisplayHelp {
            output::raw(&examples.of(raw));
        }
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(cli_error::USAGE);
    }
    let (json, plain) = (is_given(raw, "--json"), is_given(raw, "--no-color"));
    help::mistake(error, raw, &whole()).show(json, Style::detect(plain));
    ExitCode::from(cli_error::USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Options of other programs that the page names, and one that the parser makes itself.
    const FOREIGN: [&str; 2] = ["--pcap", "--help"];

    /// The options of a verb and of those below it, without those that the parser makes itself.
    fn options(verb: &clap::Command) -> BTreeSet<String> {
        let own = verb.get_arguments().filter_map(|option| option.get_long());
        let own = own.filter(|name| !matches!(*name, "help" | "version")).map(|name| format!("--{name}"));
        own.chain(verb.get_subcommands().flat_map(options)).collect()
    }

    /// The words of a text that look like options.
    fn named(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words
            .filter(|word| {
                word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
            })
            .collect()
    }

    #[test]
    fn the_page_of_the_program_names_every_option_and_no_other() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        let page = read("cli.md");
        // What the page says of these two is that they have a page of their own.
        let others = [("broker", read("broker.md")), ("derby", read("derby.md"))];
        let command = whole();
        let mut missing = Vec::new();
        for verb in command.get_subcommands() {
            let other = others.iter().find(|(name, _)| *name == verb.get_name());
            let mut told = named(&page);
            told.extend(other.iter().flat_map(|(_, text)| named(text)));
            let left = options(verb).into_iter().filter(|option| !told.contains(&**option));
            missing.extend(left.map(|option| format!("{} {option}", verb.get_name())));
        }
        assert!(missing.is_empty(), "docs/cli.md says nothing of {missing:?}");
        let known = options(&command);
        let wrong: Vec<&str> = named(&page)
            .into_iter()
            .filter(|word| !known.contains(*word) && !FOREIGN.contains(word))
            .collect();
        assert!(wrong.is_empty(), "docs/cli.md names {wrong:?}, which no verb has");
    }

    #[test]
    fn every_verb_has_examples_in_its_help() {
        let command = whole();
        command.clone().debug_assert();
        for verb in command.get_subcommands() {
            assert!(
                !verb.is_hide_set(),
                "{} is hidden, and shells complete it all the same",
                verb.get_name()
            );
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:") && help.contains("everywire "), "{}", verb.get_name());
        }
    }
}
