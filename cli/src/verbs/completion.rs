//! `everywire completion`: what a shell runs to complete commands, options, addresses and operations.

use crate::cli_error::{CliError, Done};
use crate::complete::VARIABLE;
use crate::output::{self, Envelope};
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

const EXAMPLES: &str = include_str!("../../help/completion.txt");
/// Of the library's own, that for bash takes colons and equals signs for ends of words, and addresses have both.
const BASH: &str = include_str!("../../help/completion.bash");

/// Print a completion script for a shell; what it offers is asked from the program, and that asks the peers.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let script = match arguments.shell {
        Shell::Bash => BASH.to_owned(),
        shell => script(&shell.to_string())?,
    };
    if arguments.json {
        Envelope::of(script.into()).print();
    } else {
        output::raw(&script);
    }
    Ok(())
}

/// The script of the library for a shell, which asks this program by the variable.
fn script(shell: &str) -> Done<String> {
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        return Err(CliError::usage(format!("cannot complete in {shell}"), "it is no shell that is known"));
    };
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "everywire", "everywire", "everywire", &mut script)
        .map_err(|error| CliError::local("cannot write the script", &error))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}
