//! OMG IDL: the contract language of CORBA.
//!
//! Read is what CORBA 2 and 3 define for interfaces and their types; custom and abstract value types, native types
//! and the component model are refused by name. See `docs/contracts.md`.
//!
//! The stages, each with a folder or file: `preprocess` makes one stream of tokens of all files (with
//! `lexer`, `macros` and `conditions`), `parser` makes the tree of `ast`, `ids` finds the repository id of
//! each name, `build` looks names up and makes the contract. All of them report to one `Report` and go on, so
//! that a user sees many mistakes at once; a contract comes back only when there was none. MIDL uses the
//! lexer, the preprocessor and the limits as well.

mod ast;
mod build;
mod conditions;
pub(crate) mod descent;
mod ids;
pub(crate) mod lexer;
pub(crate) mod limits;
mod macros;
mod parser;
mod pragmas;
pub(crate) mod preprocess;
mod print;
mod tokens;

use crate::diagnostics::Diagnostics;
use crate::preprocessing::Preprocessing;
use crate::read_cache;
use crate::report::Report;
use everywire_model::Contract;
use preprocess::Preprocessor;
use std::path::{Path, PathBuf};

pub use print::print;

/// The note of an operation with a clause `context`: the names of the properties, with commas between them. On the wire it has a list of
/// properties behind its arguments.
pub(crate) const CONTEXT: &str = "giop:context";

/// The note of an abstract interface, without a value: an object may be called by it, and no value is of it here.
pub(crate) const ABSTRACT: &str = "omg:abstract";

/// Reads a contract from text; `file_name` is for messages only, and `#include` is refused.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse(text: &str, file_name: &str) -> Result<Contract, Diagnostics> {
    let mut report = Report::default();
    let source = Preprocessor::of_text(file_name, text, &mut report);
    read(source, &Preprocessing::default(), report)
}

/// Reads a contract from a file, with all that it includes: from beside the including file and from these directories.
/// What included files define is part of the contract.
///
/// # Errors
/// All that is wrong with the files, or that one cannot be read.
pub fn parse_file(path: impl AsRef<Path>, include_dirs: &[PathBuf]) -> Result<Contract, Diagnostics> {
    parse_with(path.as_ref(), &Preprocessing { directories: include_dirs.to_vec(), macros: Vec::new() })
}

/// Reads a contract from a file as [`parse_file`] does, with directories and macros for the preprocessor.
///
/// # Errors
/// As [`parse_file`]; or a macro that is none.
pub fn parse_with(path: &Path, given: &Preprocessing) -> Result<Contract, Diagnostics> {
    let mut report = Report::default();
    let source = Preprocessor::of_file(path, given, &mut report)?;
    read(source, given, report)
}

/// The identities come before the building, because a type refers to an interface by its id before the file
/// has said all of it (`#pragma ID` may follow the definition).
fn read(source: Preprocessor, given: &Preprocessing, mut report: Report) -> Result<Contract, Diagnostics> {
    let items = parser::parse(source, &mut report);
    let ids = ids::assign(&items, &mut report);
    read_cache::built(report, "OMG IDL", given, |report| build::build(&items, &ids, report))
}
