//! The contract languages that can be read, and the choice between them.

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::{dbus_xml, kidl, midl, omg, wsdl};
use everywire_model::Contract;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// A contract language.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    /// Short name, as used on a command line.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// File extensions, without the dot.
    pub extensions: &'static [&'static str],
    /// Reads a file; included files are looked for beside it and in these directories.
    pub read: fn(&Path, &[PathBuf]) -> Result<Contract, Diagnostics>,
    /// Prints a contract of any language in this one.
    pub print: fn(&Contract) -> Result<String, Unprintable>,
}

/// What a contract says that the language it should be printed in cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprintable {
    /// The language, by its name for people.
    pub language: &'static str,
    /// What cannot be said: an interface, or `interface.member`.
    pub place: String,
    /// Why not.
    pub reason: String,
}

impl Display for Unprintable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot say {}: {}", self.language, self.place, self.reason)
    }
}

impl std::error::Error for Unprintable {}

/// All languages that can be read.
pub fn languages() -> &'static [Language] {
    &[
        Language {
            name: "omg",
            title: "OMG IDL",
            extensions: &["idl"],
            read: read_idl,
            print: |contract| Ok(omg::print(contract)),
        },
        Language {
            name: "dbus",
            title: "D-Bus introspection XML",
            extensions: &["xml"],
            read: |path, _| dbus_xml::parse_file(path),
            print: dbus_xml::print,
        },
        Language {
            name: "kidl",
            title: "kidl",
            extensions: &["kidl"],
            read: |path, _| kidl::parse_file(path),
            print: kidl::print,
        },
        Language {
            name: "midl",
            title: "MIDL",
            extensions: &["midl", "odl"],
            read: |path, directories| midl::parse_file(path, directories),
            print: midl::print,
        },
        Language {
            name: "wsdl",
            title: "WSDL",
            extensions: &["wsdl"],
            read: |path, _| wsdl::parse_file(path),
            print: wsdl::print,
        },
    ]
}

/// Reads a file of the extension that OMG IDL and MIDL share; the text tells which of them it is.
fn read_idl(path: &Path, directories: &[PathBuf]) -> Result<Contract, Diagnostics> {
    match std::fs::read(path) {
        Ok(bytes) if midl::is_midl(&String::from_utf8_lossy(&bytes)) => midl::parse_file(path, directories),
        _ => omg::parse_file(path, directories),
    }
}

/// Reads the contract in a file; its extension says in which language.
///
/// # Errors
/// What is wrong with the contract; or that the file cannot be read, or that no language has this extension.
pub fn read(path: impl AsRef<Path>) -> Result<Contract, Diagnostics> {
    let path = path.as_ref();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match languages().iter().find(|language| language.extensions.contains(&extension.as_str())) {
        Some(language) => (language.read)(path, &[]),
        None => {
            let known: Vec<String> = languages()
                .iter()
                .flat_map(|language| language.extensions.iter().map(|e| format!(".{e} ({})", language.title)))
                .collect();
            let message = match extension.as_str() {
                "" => "the file has no extension to tell its contract language".to_owned(),
                other => format!("no contract language has the extension .{other}"),
            };
            let mut diagnostic = Diagnostic::of_file(&path.to_string_lossy(), message);
            diagnostic.help = Some(format!("known are {}", known.join(", ")));
            Err(Diagnostics::from(diagnostic))
        }
    }
}
