//! `everywire man`: the manual pages, made of the same words as `--help`.

use crate::cli_error::{CliError, Done};
use crate::output::{self, Envelope};
use clap::{Args, Command};
use clap_mangen::Man;
use std::path::PathBuf;

const EXAMPLES: &str = include_str!("../../help/man.txt");

/// What stands at the foot of each page; verbs have no version of their own.
const SOURCE: &str = concat!("everywire ", env!("CARGO_PKG_VERSION"));

/// Print a manual page, or write all of them.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The verb whose page is meant (unless given, that of the program).
    verb: Option<String>,
    /// Write the pages of the program and of each verb into this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    to: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints or writes.
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Done {
    command.build();
    let mut pages = vec![("everywire".to_owned(), command.clone())];
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let name = format!("everywire-{}", verb.get_name());
        pages.push((name, verb.clone()));
    }
    let Some(folder) = &arguments.to else {
        let wanted = arguments
            .verb
            .as_ref()
            .map_or_else(|| "everywire".to_owned(), |verb| format!("everywire-{verb}"));
        let Some((_, page)) = pages.into_iter().find(|(name, _)| *name == wanted) else {
            return Err(CliError::usage(format!("there is no page `{wanted}`"), "it is no verb")
                .hint("`everywire --help` has the verbs"));
        };
        let text = written(page)?;
        if arguments.json {
            Envelope::of(text.into()).print();
        } else {
            output::raw(&text);
        }
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| CliError::local(format!("cannot make `{}`", folder.display()), &error))?;
    let mut files = Vec::new();
    for (name, page) in pages {
        let file = folder.join(format!("{name}.1"));
        std::fs::write(&file, written(page)?)
            .map_err(|error| CliError::local(format!("cannot write `{}`", file.display()), &error))?;
        files.push(file.display().to_string());
    }
    if arguments.json {
        Envelope::of(files.into()).print();
    }
    Ok(())
}

/// A manual page in the language of `man`.
fn written(page: Command) -> Done<String> {
    let mut text = Vec::new();
    let page = Man::new(page).source(SOURCE);
    page.render(&mut text).map_err(|error| CliError::local("cannot make the page", &error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
