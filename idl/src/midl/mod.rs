//! MIDL: the contract language of DCE/RPC and COM.
//!
//! Read is what describes bytes on a wire: interfaces with and without `object`, dispinterfaces, coclasses,
//! types, constants, and the attributes that say how pointers and arrays travel. What `oaidl.idl` and its
//! like declare is known (`known.rs` and `known.midl`); where such a file is there it is read in the
//! background, and what of it is used becomes part of the contract. Methods that never leave a process
//! (`local`) are left out, and so are those that have no form on a wire, with a note; attributes of tools are
//! passed over. See `docs/contracts.md`.
//!
//! What MIDL says beside a type and no shape can hold (`length_is`, `switch_is`, `iid_is`, `range`, and sizes
//! that are expressions) is kept as an alias around the shape, which is named as the attribute is written:
//! `length_is(fetched)`. Other languages look through such aliases. A `SAFEARRAY` of anything is an alias of
//! that name around a sequence.
//!
//! The stages are those of OMG IDL, whose preprocessor, lexer and limits are used: `parser` makes the tree of
//! `ast`, `build` looks names up and makes shapes of pointers and arrays. `print` goes back, and `made` holds
//! the names by which the reader knows again what the printer had to make up.

mod ast;
mod build;
mod dispids;
mod ids;
mod known;
mod made;
mod omitted;
mod parser;
mod print;
mod recognition;

use crate::diagnostics::Diagnostics;
use crate::omg::preprocess::Preprocessor;
use crate::preprocessing::Preprocessing;
use crate::read_cache;
use crate::report::Report;
use everywire_model::Contract;
use std::path::{Path, PathBuf};

pub use ids::{CLASSES, INTERFACES, LIBRARIES, clsid_of_key, iid, iid_of_id, sink_iid};
pub use made::listener_of;
pub use omitted::{default_of, is_optional};
pub use print::print;
pub use recognition::is_midl;

/// Reads a contract from text; `file_name` is for messages only, and no other file is read.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse(text: &str, file_name: &str) -> Result<Contract, Diagnostics> {
    let mut report = Report::default();
    let source = Preprocessor::of_text(file_name, text, &mut report).midl(known::ALL);
    read(source, &Preprocessing::default(), report)
}

/// Reads a contract from a file, with all that it imports and includes: from beside the file and from these directories.
/// What those files define is part of the contract.
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
    read(source.midl(known::ALL), given, report)
}

/// The contract, if the report has no mistake at the end.
fn read(source: Preprocessor, given: &Preprocessing, mut report: Report) -> Result<Contract, Diagnostics> {
    let items = parser::parse(source, &mut report);
    read_cache::built(report, "MIDL", given, |report| build::build(&items, report))
}
