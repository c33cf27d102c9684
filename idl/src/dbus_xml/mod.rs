//! D-Bus introspection XML: the contract language of D-Bus (D-Bus Specification, "Introspection Data
//! Format").
//!
//! An interface's name is the dotted name with `::`, its id the dotted name itself. Out arguments are out
//! parameters, except a single one, which is the return value. A property is an attribute; its accessors
//! `_get_NAME` and `_set_NAME` follow the methods. A property that can only be written has a getter that
//! returns nothing, because every attribute has one. A method without reply is oneway. What is deprecated
//! says so in its documentation.
//!
//! The text comes from a peer whenever a client asks an object what it is, so it is bounded like a message:
//! by the bounds of `xml`, and by the bytes of all signatures. Elements and annotations that are not known
//! are passed over.

mod annotations;
mod exceptions;
pub mod names;
mod print;
mod properties;
mod read;

use crate::diagnostics::Diagnostics;
use crate::file;
use crate::report::Report;
use crate::unprintable::Unprintable;
use crate::xml;
use everywire_model::{Contract, Interface};
use std::path::Path;
use std::sync::Arc;

/// What an object says of itself: the answer to `org.freedesktop.DBus.Introspectable.Introspect`.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Its path, or its name below its parent; empty where the answer does not say.
    pub name: String,
    /// Its interfaces.
    pub contract: Contract,
    /// Names of the objects below it, relative to it.
    pub children: Vec<String>,
}

/// Reads a contract: the interfaces of the node and of all nodes in it, each once; `file_name` is for messages only.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse(text: &str, file_name: &str) -> Result<Contract, Diagnostics> {
    let mut report = Report::default();
    let contract = read_with(text, file_name, &mut report, read::all);
    contract.ok_or_else(|| report.finish())
}

/// Reads a contract from a file.
///
/// # Errors
/// All that is wrong with the file, or that it cannot be read.
pub fn parse_file(path: impl AsRef<Path>) -> Result<Contract, Diagnostics> {
    let path = path.as_ref();
    parse(&file::text(path, xml::BYTES)?, &path.to_string_lossy())
}

/// Reads what one object says of itself: its own interfaces and the names of its children. The service runs as it is, and its
/// callers cannot mend what it says: a method, signal or property that is wrong is left out, and a note of its interface says
/// so ([`everywire_model::contract::LEFT_OUT`]). An interface or a child with a name that cannot be sent is passed over, and
/// of two interfaces of one name the second.
///
/// # Errors
/// The text is not well-formed, or no description of an object.
pub fn parse_node(text: &str) -> Result<Node, Diagnostics> {
    let mut report = Report::default();
    let node = read_with(text, "introspection data", &mut report, read::node);
    node.ok_or_else(|| report.finish())
}

/// The contract as introspection XML, one node with all interfaces; what an interface inherits is left to its bases.
/// Exceptions, and methods that may run twice, are annotations of ours, which other readers pass over; named types are not
/// part of introspection data.
///
/// # Errors
/// A type that has no signature, such as one that contains itself.
pub fn print(contract: &Contract) -> Result<String, Unprintable> {
    print::contract(&everywire_model::value_type::as_structs(contract))
}

/// What an object with these interfaces says of itself, together with all that they inherit from, each once. Members
/// that D-Bus cannot say are left out with a comment. This is the answer to `Introspect` of a served object,
/// so nothing in it may fail.
pub fn print_node(interfaces: &[&Interface], children: &[String]) -> String {
    print::node(interfaces, children)
}

/// Reads; nothing comes back where anything was wrong.
fn read_with<T>(
    text: &str,
    file_name: &str,
    report: &mut Report,
    read: fn(&xml::Element<'_>, &mut Report) -> T,
) -> Option<T> {
    let file = report.add_file(file_name, Arc::from(text));
    let root = xml::parse(text, file, report)?;
    let read = read(&root, report);
    (!report.failed()).then_some(read)
}
