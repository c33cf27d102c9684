//! Contracts from files and from objects, as the command line names them.
//!
//! Every verb that needs types comes here: `--contract FILE` if it is given, else the object itself.
//! What a contract has and cannot be used is a warning on standard error; only a contract without
//! anything usable is an error.

use crate::cli_error::{CliError, Done};
use crate::output::note;
use crate::stranger;
use everywire::{Failure, Kind, Object};
pub(crate) use everywire_dynamic::wording::last_part;
use everywire_dynamic::{ObjectContract, wire_of};
use everywire_idl::Preprocessing;
use std::path::{Path, PathBuf};

/// What the preprocessor of a contract's language is given, where it has one.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Preprocess {
    /// Where files that the contract includes or imports are looked for, after its own directory.
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// A macro for the contract's preprocessor; it stands for 1 unless a value is given.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    macros: Vec<String>,
}

/// Reads a contract. What it has and cannot be used is told on standard error.
pub(crate) fn of_file(path: &Path, given: &Preprocess) -> Done<ObjectContract> {
    let given =
        given.macros.iter().fold(
            Preprocessing { directories: given.directories.clone(), macros: Vec::new() },
            |all, option| all.define(option),
        );
    let known = ObjectContract::from_file(path, &given)
        // The message has all mistakes of the file, with their lines.
        .map_err(|failure| CliError::contract(failure.message().to_owned()))?;
    Ok(warned(known))
}

/// Tells, as warnings, what the interfaces of a contract lack of what their source has.
fn warned(known: ObjectContract) -> ObjectContract {
    known.warnings().iter().for_each(|warning| note(&format!("warning: {warning}")));
    known
}

/// What an object tells of itself. What it has and cannot be used is told on standard error.
pub(crate) fn of_object(object: &Object) -> Result<ObjectContract, Failure> {
    ObjectContract::from_object(object).map(warned)
}

/// From a file if one is given, else from the object itself.
///
/// # Errors
/// The file has mistakes; or the object cannot be reached, or does not tell its contract, in which case
/// the hint names `--contract`.
pub(crate) fn of(object: &Object, path: Option<&Path>, given: &Preprocess) -> Done<ObjectContract> {
    match path {
        Some(path) => {
            let known = of_file(path, given)?;
            // An object of this process has no wire.
            Ok(match wire_of(object.reference()) {
                Ok(wire) => known.on(wire),
                Err(_) => known,
            })
        }
        None => of_object(object).map_err(|failure| {
            let what = match failure.kind() {
                // Who is not let in, or finds nobody, has not asked yet.
                Kind::Refused | Kind::Unreachable | Kind::TimedOut | Kind::Busy => {
                    "the object cannot be asked for its contract"
                }
                _ => "the object does not tell its contract",
            };
            let trouble = stranger::named(CliError::failure(what, &failure), object.reference());
            if failure.kind() == Kind::Unsupported {
                trouble.hint("give the contract with --contract FILE")
            } else {
                trouble
            }
        }),
    }
}
