//! Servers that wires bring along, each run by a verb of its own name: `programs` of a wire says which
//! there are.
//!
//! The verb is made of the program's own table of options, so nothing of a wire is named here. A server
//! runs until it finishes by itself or a signal ends it; SIGHUP is ignored.

use crate::cli_error::{CliError, Done};
use crate::output::note;
use clap::{Arg, ArgAction, ArgMatches, Command};
use everywire::hub::{self, Cause, Settings, Stop};
use everywire::model::{Program, units};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// All of them.
pub(crate) fn programs() -> impl Iterator<Item = &'static Program> {
    everywire::wires::ALL.iter().flat_map(|wire| wire.programs())
}

/// Adds a verb for each.
pub(crate) fn with_programs(command: Command) -> Command {
    programs().fold(command, |command, program| command.subcommand(verb(program)))
}

/// The verb of a program, with its options and `--verbose`.
fn verb(program: &Program) -> Command {
    let mut verb = Command::new(program.name)
        .about(program.about)
        .after_help(format!("Examples:\n  everywire {}", program.name));
    for option in program.options {
        let argument = Arg::new(option.name).long(option.name).help(option.help);
        verb = verb.arg(match option.value {
            Some(name) => argument.value_name(name),
            None => argument.action(ArgAction::SetTrue),
        });
    }
    verb.arg(
        Arg::new("memory")
            .long("memory")
            .value_name("SIZE")
            .value_parser(units::size)
            .help("What all peers together may hold of messages that have not come whole, such as 64MiB [a quarter of the memory]"),
    )
    .arg(
        Arg::new("verbose")
            .short('v')
            .long("verbose")
            .action(ArgAction::SetTrue)
            .help("Tell about peers that are closed for what they did"),
    )
}

/// Runs a program until it finishes, or a signal ends it.
pub(crate) fn run(program: &Program, matches: &ArgMatches) -> Done {
    let mut given: Vec<(&str, Option<&str>)> = Vec::new();
    for option in program.options {
        match option.value {
            Some(_) => {
                if let Some(value) = matches.get_one::<String>(option.name) {
                    given.push((option.name, Some(value)));
                }
            }
            None if matches.get_flag(option.name) => given.push((option.name, None)),
            None => {}
        }
    }
    let what = || format!("cannot run `{}`", program.name);
    // A hang-up asks nothing of a server: others use it to see whether one lives.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let failed = |failure: &everywire::Failure| CliError::failure(what(), failure);
    let mut server = (program.open)(&given).map_err(|failure| failed(&failure))?;
    let stop = Stop::new().map_err(|failure| failed(&failure))?;
    let bell = stop.clone();
    std::thread::spawn(move || {
        if signals.forever().any(|signal| signal != SIGHUP) {
            bell.stop();
        }
    });
    let mut settings = Settings::default();
    if let Some(bytes) = matches.get_one::<u64>("memory") {
        settings.memory = Some(usize::try_from(*bytes).unwrap_or(usize::MAX));
    }
    if matches.get_flag("verbose") {
        settings.observer = Some(Arc::new(|peer, cause| {
            let word = if matches!(cause, Cause::Violation(_)) { "violation" } else { "refused" };
            note(&format!("{word}: {peer}: {cause}"));
        }));
    }
    hub::run(&mut *server, &settings, &stop).map_err(|failure| failed(&failure))
}
