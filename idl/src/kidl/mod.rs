//! kidl: the contract language of DCOP, XML as the tool `dcopidl` of KDE 3 writes it from C++ headers.
//!
//! A class is an interface; the wire name of a function or signal is its whole signature
//! (`find(QString,bool)`), its label the bare name, with `_2`, `_3`, ... for overloads. `ASYNC` functions are
//! oneway. Base classes of the same file are bases, others are left out. Qualifiers (`const`, `&`) are no
//! part of a signature; they, the name of the header and what it includes are kept in a [`Document`] only.
//!
//! Two steps: `read` makes a `Document` of the XML, with every word of the file; `build` makes a contract of
//! that. Back it goes by `sketch` (contract to document) and `print` (document to text, byte for byte as the
//! tool writes it).

mod build;
mod document;
mod print;
mod read;
mod sketch;
pub mod types;

use crate::diagnostics::Diagnostics;
use crate::file;
use crate::report::Report;
use crate::unprintable::Unprintable;
use crate::xml;
use everywire_model::Contract;
use std::path::Path;
use std::sync::Arc;

pub use document::{Argument, Class, Document, Exception, Member, Type};

/// Reads a contract; `file_name` is for messages only. Functions and signals with types whose encoding is not known are
/// left out; a note of the interface, [`LEFT_OUT`](everywire_model::contract::LEFT_OUT), names each.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse(text: &str, file_name: &str) -> Result<Contract, Diagnostics> {
    let mut report = Report::default();
    let contract = document(text, file_name, &mut report).map(|found| build::contract(&found, &mut report));
    match contract {
        Some(contract) if !report.failed() => Ok(contract),
        _ => Err(report.finish()),
    }
}

/// Reads a contract from a file.
///
/// # Errors
/// All that is wrong with the file, or that it cannot be read.
pub fn parse_file(path: impl AsRef<Path>) -> Result<Contract, Diagnostics> {
    let path = path.as_ref();
    parse(&file::text(path, xml::BYTES)?, &path.to_string_lossy())
}

/// Reads a file as it is, with everything the tool wrote; types need not be known. [`Document`]'s `Display` writes it
/// back byte for byte as `dcopidl` does.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse_document(text: &str, file_name: &str) -> Result<Document, Diagnostics> {
    let mut report = Report::default();
    match document(text, file_name, &mut report) {
        Some(found) if !report.failed() => Ok(found.document),
        _ => Err(report.finish()),
    }
}

/// The contract as kidl, as if `dcopidl` had read a header with these classes. Attributes are their accessors;
/// exceptions, and functions that may run twice, are additions of ours, which `dcopidl2cpp` does not look at. A function with more than
/// one result or with a type that DCOP has not is left out, and a comment behind its class says why.
///
/// # Errors
/// A class has a name that C++ has not, or nothing is left of the contract.
pub fn print(contract: &Contract) -> Result<String, Unprintable> {
    sketch::document(contract).map(|document| document.to_string())
}

/// The document of a text and the places of its parts; None after a mistake in the XML itself. Mistakes in
/// single parts are in the report, so the caller must ask it as well.
fn document(text: &str, file_name: &str, report: &mut Report) -> Option<read::LocatedDocument> {
    let file = report.add_file(file_name, Arc::from(text));
    let root = xml::parse(text, file, report)?;
    read::document(&root, report)
}
