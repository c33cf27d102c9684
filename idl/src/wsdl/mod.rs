//! WSDL 1.1 with XML Schema: the contract language of WCF, as .NET, CoreWCF and Mono write and read it.
//!
//! A port type is an interface; its identity is its name in Clark notation, `{namespace}Name`. Operations in which the
//! service calls (only an output, or the output first) are an interface of their own, `NameCallback`: each one-way operation
//! of it is a signal too. What messages are called where they are not called as usual stands in the notes of operations (see
//! [`names`]), endpoints and what their policies say in notes `wcf:port` of the interface ([`Port`]), and what no shape can
//! hold is named in notes `wcf:unread`.
//!
//! Types: a list type with the serializer's names is a sequence, with others an alias `{namespace}Name;item` around one; an
//! `IsDictionary` type is a map; flags are an alias of text `{namespace}Name;list,A=1,B=2`; types that others extend are used
//! as unions of the type and all that extend it. Dates, decimals, identifiers and the like are aliases of text. Members that are
//! no elements of their own, as XmlSerializer has them, have [`marks`].

mod anything;
mod attributes;
mod bindings;
mod builtin;
mod cells;
mod choices;
mod details;
mod documents;
mod headers;
pub mod lexical;
mod limits;
pub mod marks;
mod members;
pub mod names;
mod parameters;
mod ports;
mod print;
mod read;
mod schema;
mod services;
mod simple;
mod tree;
mod types;

use crate::diagnostics::Diagnostics;
use crate::unprintable::Unprintable;
use everywire_model::{Contract, Interface, Shape};
use std::path::{Path, PathBuf};

pub use documents::{Import, imports};
pub use ports::Port;
pub use print::Description;

/// Reads a contract from one document; `file_name` is for messages only, and no other document is read.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse(text: &str, file_name: &str) -> Result<Contract, Diagnostics> {
    parse_all(&[(file_name.to_owned(), text.to_owned())])
}

/// Reads a contract from documents that belong together, each as (name, text): the pages of a service, or the sections of
/// its metadata.
///
/// # Errors
/// All that is wrong with the texts.
pub fn parse_all(documents: &[(String, String)]) -> Result<Contract, Diagnostics> {
    read::documents(documents)
}

/// Reads a contract from a file and from the files beside it that it imports. Nothing is ever fetched: a page that a service
/// keeps elsewhere (`?xsd=xsd0`) is looked for beside the file, as `xsd0.xsd`.
///
/// # Errors
/// All that is wrong with the files, or that one cannot be read.
pub fn parse_file(path: impl AsRef<Path>) -> Result<Contract, Diagnostics> {
    read::documents(&documents::of_file(path.as_ref())?)
}

/// The files that [`parse_file`] reads for this one, itself the first; it alone where they cannot be read.
pub fn files(path: impl AsRef<Path>) -> Vec<PathBuf> {
    match documents::of_file(path.as_ref()) {
        Ok(documents) => documents.into_iter().map(|(name, _)| PathBuf::from(name)).collect(),
        Err(_) => vec![path.as_ref().to_owned()],
    }
}

/// Whether a text in XML is about a service: its first element is called `definitions`.
#[must_use]
pub fn is_wsdl(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some((_, tag)) = rest.split_once('<') {
        let after = |end| tag.split_once(end).map_or("", |(_, after)| after);
        rest = if tag.starts_with("!--") {
            after("-->")
        } else if tag.starts_with(['?', '!']) {
            after(">")
        } else {
            let name = tag.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next();
            return name.is_some_and(|name| name.rsplit(':').next() == Some("definitions"));
        };
    }
    false
}

/// The contract as one description: its interfaces with what they inherit, its types and exceptions, and for each interface
/// the endpoints of its notes; without any, a binding that fits it. Signals are calls of the service. Interfaces of several
/// namespaces are sections of metadata, because a description has one namespace.
///
/// # Errors
/// What cannot be said: handles, names that XML does not know, two things of one name.
pub fn print(contract: &Contract) -> Result<String, Unprintable> {
    print::contract(&everywire_model::value_type::as_structs(contract))
}

/// What a service with these interfaces says of itself; what XML cannot say is left out and named. `types` are defined beside
/// those that are used; `ports` tells where each interface is served.
pub fn describe(
    interfaces: &[&Interface],
    types: &[Shape],
    ports: &dyn Fn(&Interface) -> Vec<Port>,
) -> Description {
    print::describe(interfaces, types, ports)
}
