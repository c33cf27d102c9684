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
    /// Reads a file; what is given to the preprocessor matters to the languages that have one.
    pub read: fn(&Path, &Preprocessing) -> Result<Contract, Diagnostics>,
    /// Prints a contract of any language in this one.
    pub print: fn(&Contract) -> Result<String, Unprintable>,
}

/// What the preprocessor of OMG IDL and MIDL is given beside a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preprocessing {
    /// Where included and imported files are looked for, after the directory of the file that names them (`-I`).
    pub directories: Vec<PathBuf>,
    /// Macros that are defined before the first line: name, or name and parameters, and what it stands for (`-D`).
    pub macros: Vec<(String, String)>,
}

impl Preprocessing {
    /// One more directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directories.push(directory.into());
        self
    }

    /// One more macro, as a compiler's option `-D` gives it: `NAME` stands for 1, `NAME=VALUE` for the value.
    #[must_use]
    pub fn define(mut self, option: &str) -> Self {
        let (name, value) = option.split_once('=').unwrap_or((option, "1"));
        self.macros.push((name.to_owned(), value.to_owned()));
        self
    }
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
            read: |path, _| read_xml(path),
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
            read: midl::parse_with,
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

/// The language of a contract file: its extension tells, and where two languages share it, the text.
pub fn language_of(path: impl AsRef<Path>) -> Option<&'static Language> {
    let path = path.as_ref();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let found = languages().iter().find(|language| language.extensions.contains(&extension.as_str()))?;
    let is_midl = || std::fs::read(path).is_ok_and(|bytes| is_midl(&String::from_utf8_lossy(&bytes)));
    match found.name {
        "omg" if is_midl() => languages().iter().find(|other| other.name == "midl"),
        "dbus" if is_wsdl(path) => languages().iter().find(|other| other.name == "wsdl"),
        _ => Some(found),
    }
}

/// Whether a file of the extension that all languages in XML share is a description of a service.
fn is_wsdl(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| wsdl::is_wsdl(&String::from_utf8_lossy(&bytes)))
}

/// Reads a file of the extension that all languages in XML share (`shop.wsdl.xml`); its first element tells which it is.
fn read_xml(path: &Path) -> Result<Contract, Diagnostics> {
    if is_wsdl(path) { wsdl::parse_file(path) } else { dbus_xml::parse_file(path) }
}

/// Whether a text of the extension that OMG IDL and MIDL share is MIDL. In OMG IDL an operation may be called `uuid`; MIDL's
/// stands in brackets.
fn is_midl(text: &str) -> bool {
    midl::is_midl(text) && (text.contains('[') || !text.contains("uuid"))
}

/// Reads a file of the extension that OMG IDL and MIDL share; the text tells which of them it is.
fn read_idl(path: &Path, given: &Preprocessing) -> Result<Contract, Diagnostics> {
    match std::fs::read(path) {
        Ok(bytes) if is_midl(&String::from_utf8_lossy(&bytes)) => midl::parse_with(path, given),
        _ => omg::parse_with(path, given),
    }
}

/// Reads the contract in a file; its extension says in which language.
///
/// # Errors
/// What is wrong with the contract; or that the file cannot be read, or that no language has this extension.
pub fn read(path: impl AsRef<Path>) -> Result<Contract, Diagnostics> {
    read_with(path, &Preprocessing::default())
}

/// Reads the contract in a file with what its preprocessor is given; languages that have none do not mind.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: impl AsRef<Path>, given: &Preprocessing) -> Result<Contract, Diagnostics> {
    let path = path.as_ref();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match languages().iter().find(|language| language.extensions.contains(&extension.as_str())) {
        Some(language) => (language.read)(path, given),
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
