//! A table of classes: what stands in a registry elsewhere, in a file.
//!
//! ```text
//! # CLASS   CONTRACT   INTERFACE   COMMAND...
//! 606DE2C5-1A8C-11D3-B68F-00C04F8B7214  lamp.midl  Lamp  python3 lamp.py
//! bank                                  bank.midl  Bank  ./bank --quiet
//! ```
//!
//! A class is named as in its address; `-` stands for the identity that the contract gives it. A contract's file is looked for
//! beside the table.

use crate::cli_error::{CliError, Done};
use crate::contract::{self, Preprocess};
use crate::program::ContractExtras;
use everywire::Interface;
use everywire::model::Hold;
use everywire_dynamic::json::Types;
use std::path::Path;

/// A line of the table.
pub(super) struct Class {
    /// The key under which it is asked for.
    pub(super) key: String,
    /// What its objects are.
    pub(super) interface: Hold<Interface>,
    /// The types of its contract.
    pub(super) types: Types,
    /// What its contract tells beside.
    pub(super) told: ContractExtras,
    /// The program that each of them has: a command line of the shell.
    pub(super) command: String,
}

/// Reads a table; tells of all lines that are wrong at once.
pub(super) fn read(file: &Path, given: &Preprocess) -> Done<Vec<Class>> {
    let what = || format!("the table of classes in {} cannot be used", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| CliError::local(what(), &error))?;
    let beside = file.parent().unwrap_or_else(|| Path::new(""));
    let mut classes: Vec<(usize, Class)> = Vec::new();
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match class(line, beside, given) {
            Ok(class) => match classes.iter().find(|(_, held)| held.key.eq_ignore_ascii_case(&class.key)) {
                Some((first, _)) => {
                    wrong
                        .push(format!("line {number}: the class `{}` is on line {first} already", class.key));
                }
                None => classes.push((number, class)),
            },
            Err(why) => wrong.push(format!("line {number}: {why}")),
        }
    }
    if wrong.is_empty() && classes.is_empty() {
        wrong.push("it names no class".to_owned());
    }
    if !wrong.is_empty() {
        return Err(CliError::usage(what(), wrong.join("; ")).hint(format!("a line is {LINE}")));
    }
    Ok(classes.into_iter().map(|(_, class)| class).collect())
}

/// What a line is, for hints.
const LINE: &str = "CLASS CONTRACT INTERFACE COMMAND..., with blanks between";

/// One line; the error is a text for a list of all that are wrong.
fn class(line: &str, beside: &Path, given: &Preprocess) -> Result<Class, String> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = after.trim_start();
        word
    };
    let (class, file, name) = (word(), word(), word());
    if rest.is_empty() {
        return Err(format!("`{line}` is not {LINE}"));
    }
    let path = beside.join(file);
    let mut known = contract::of_file(&path, given).map_err(|trouble| trouble.why())?;
    file.clone_into(&mut known.source);
    let interface = known.interface(name).map_err(|mistake| mistake.to_string())?.clone();
    let key = if class == "-" { interface.id.to_string() } else { class.to_owned() };
    let types = Types::of(&known.contract);
    let told = ContractExtras::of(&known.contract, &interface);
    Ok(Class { key, interface, types, told, command: rest.to_owned() })
}
