//! The `everywire` program: calls, serves, describes, traces and races objects.
//!
//! Each verb has a file in `verbs`; what they share lies beside it. Only data goes to standard output; failures go to
//! standard error in three lines, or to standard output as one JSON object where `--json` was given.

#![forbid(unsafe_code)]

mod contract;
mod headers;
mod json;
mod opcda;
mod operation;
mod output;
mod people;
mod program;
mod secrets;
mod stranger;
mod target;
mod trace;
mod trouble;
mod verbs;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use output::Style;
use std::process::ExitCode;
use trouble::Trouble;
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
    Describe(describe::Arguments),
    Gen(generate::Arguments),
    List(verbs::list::Arguments),
    Serve(verbs::serve::Arguments),
    Trace(verbs::trace::Arguments),
    Watch(verbs::watch::Arguments),
    Derby(derby::Arguments),
    // After the servers that wires bring along.
    #[command(display_order = 900)]
    Completion(completion::Arguments),
    /// One side of a race, in a process of its own.
    #[command(name = "derby-child", hide = true, disable_help_flag = true)]
    DerbyChild {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

fn main() -> ExitCode {
    let raw: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let plain = raw.iter().any(|word| word == "--no-color");
    let mut command = verbs::hub::with_programs(Program::command());
    if plain {
        command = command.color(ColorChoice::Never);
    }
    let matches = match command.try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return misused(&error, raw.iter().any(|word| word == "--json")),
    };
    if let Some((name, given)) = matches.subcommand()
        && let Some(hub) = verbs::hub::programs().find(|program| program.name == name)
    {
        return end(verbs::hub::run(hub, given), false, Style::detect(plain));
    }
    let program = match Program::from_arg_matches(&matches) {
        Ok(program) => program,
        Err(error) => return misused(&error, raw.iter().any(|word| word == "--json")),
    };
    let style = Style::detect(program.no_color);
    let (json, done) = match program.verb {
        Verb::Broker(arguments) => (arguments.json, verbs::broker::run(&arguments)),
        Verb::Call(arguments) => (arguments.json, call::run(&arguments, style)),
        Verb::Describe(arguments) => (arguments.json, describe::run(&arguments)),
        Verb::Gen(arguments) => (arguments.json(), generate::run(&arguments)),
        Verb::Serve(arguments) => (arguments.json, verbs::serve::run(&arguments)),
        Verb::Trace(arguments) => (arguments.json, verbs::trace::run(&arguments, style)),
        Verb::List(arguments) => (arguments.json, verbs::list::run(&arguments, style)),
        Verb::Watch(arguments) => (arguments.json, verbs::watch::run(&arguments, style)),
        Verb::Derby(arguments) => (arguments.json(), derby::run(&arguments)),
        Verb::Completion(arguments) => {
            (arguments.json, completion::run(&arguments, verbs::hub::with_programs(Program::command())))
        }
        Verb::DerbyChild { rest } => return derby::child(&rest),
    };
    end(done, json, style)
}

fn end(done: trouble::Done, json: bool, style: Style) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            trouble.show(json, style);
            ExitCode::from(trouble.exit())
        }
    }
}

/// What clap found wrong; help and version are no mistakes.
fn misused(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is the reader's choice.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if json {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Trouble::usage("the command line cannot be understood", message)
            .hint("try --help")
            .show(true, Style::default());
    } else {
        let _ = error.print();
    }
    ExitCode::from(trouble::USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_examples_in_its_help() {
        let command = verbs::hub::with_programs(Program::command());
        command.clone().debug_assert();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:") && help.contains("everywire "), "{}", verb.get_name());
        }
    }
}
