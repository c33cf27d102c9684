//! `everywire completion`: completion of commands and options for shells.

use crate::output::{self, Envelope};
use crate::trouble::Done;
use clap::{Args, Command};
use clap_complete::Shell;

const EXAMPLES: &str = include_str!("../../help/completion.txt");

/// Print a completion script for a shell.
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
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "everywire", &mut script);
    let script = String::from_utf8_lossy(&script);
    if arguments.json {
        Envelope::of(script.into()).print();
    } else {
        output::raw(&script);
    }
    Ok(())
}
