//! The contract languages that can be read, and the choice between them.
//!
//! The extension of a file chooses the language. Two extensions are shared: `.idl` by OMG IDL and MIDL,
//! `.xml` by the introspection of D-Bus and WSDL; there the text decides, and the file is read once more for
//! it.
//!
//! A program that is built without a language knows its extension still and names the feature that is
//! missing.

#[cfg(feature = "dbus-xml")]
use crate::dbus_xml;
use crate::diagnostics::{Diagnostic, Diagnostics};
#[cfg(feature = "kidl")]
use crate::kidl;
#[cfg(feature = "midl")]
use crate::midl;
#[cfg(feature = "omg")]
use crate::omg;
use crate::preprocessing::Preprocessing;
use crate::unprintable::Unprintable;
#[cfg(feature = "wsdl")]
use crate::wsdl;
use everywire_model::Contract;
use std::path::Path;

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

/// All languages that can be read. The order matters: the first language that has an extension is asked, and
/// it passes the file on where the text is of another language.
pub fn languages() -> &'static [Language] {
    &[
        #[cfg(feature = "omg")]
        Language {
            name: "omg",
            title: "OMG IDL",
            // TAO calls the contracts of its own pseudo objects so.
            extensions: &["idl", "pidl"],
            read: read_idl,
            print: |contract| Ok(omg::print(contract)),
        },
        #[cfg(feature = "dbus-xml")]
        Language {
            name: "dbus",
            title: "D-Bus introspection XML",
            extensions: &["xml"],
            read: |path, _| read_xml(path),
            print: dbus_xml::print,
        },
        #[cfg(feature = "kidl")]
        Language {
            name: "kidl",
            title: "kidl",
            extensions: &["kidl"],
            read: |path, _| kidl::parse_file(path),
            print: kidl::print,
        },
        #[cfg(feature = "midl")]
        Language {
            name: "midl",
            title: "MIDL",
            extensions: &["midl", "odl"],
            read: midl::parse_with,
            print: midl::print,
        },
        #[cfg(feature = "wsdl")]
        Language {
            name: "wsdl",
            title: "WSDL",
            extensions: &["wsdl"],
            read: |path, _| wsdl::parse_file(path),
            print: wsdl::print,
        },
    ]
}

/// Extensions whose languages this program is built without, and the feature that each needs.
const LEFT_OUT: &[(&str, &str)] = &[
    #[cfg(not(feature = "omg"))]
    ("idl", "omg"),
    #[cfg(not(feature = "omg"))]
    ("pidl", "omg"),
    #[cfg(not(feature = "dbus-xml"))]
    ("xml", "dbus-xml"),
    #[cfg(not(feature = "kidl"))]
    ("kidl", "kidl"),
    #[cfg(not(feature = "midl"))]
    ("midl", "midl"),
    #[cfg(not(feature = "midl"))]
    ("odl", "midl"),
    #[cfg(not(feature = "wsdl"))]
    ("wsdl", "wsdl"),
];

/// Bytes of a file that tell its language: as many as a contract may have.
const BYTES: u64 = 8 << 20;

/// Files that are looked at in all, where one includes others.
#[cfg(feature = "midl")]
const INCLUDED: usize = 32;

/// The language of a contract file: its extension tells, and where two languages share it, the text.
pub fn language_of(path: impl AsRef<Path>) -> Option<&'static Language> {
    let path = path.as_ref();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let found = languages().iter().find(|language| language.extensions.contains(&extension.as_str()))?;
    match found.name {
        #[cfg(feature = "midl")]
        "omg" if is_midl(path, &[]) => languages().iter().find(|other| other.name == "midl"),
        #[cfg(feature = "wsdl")]
        "dbus" if is_wsdl(path) => languages().iter().find(|other| other.name == "wsdl"),
        _ => Some(found),
    }
}

/// Whether a file of the extension that all languages in XML share is a description of a service.
#[cfg(feature = "wsdl")]
fn is_wsdl(path: &Path) -> bool {
    crate::file::beginning(path, BYTES).is_some_and(|text| wsdl::is_wsdl(&text))
}

/// Reads a file of the extension that all languages in XML share (`shop.wsdl.xml`); its first element tells which it is.
#[cfg(feature = "dbus-xml")]
fn read_xml(path: &Path) -> Result<Contract, Diagnostics> {
    #[cfg(feature = "wsdl")]
    if is_wsdl(path) {
        return wsdl::parse_file(path);
    }
    dbus_xml::parse_file(path)
}

/// Whether a file of the extension that OMG IDL and MIDL share is MIDL, or includes a file that is, from beside itself or from these
/// directories.
#[cfg(feature = "midl")]
fn is_midl(path: &Path, directories: &[std::path::PathBuf]) -> bool {
    // In the order in which they are named, each once: files may include each other.
    let mut files = vec![path.to_owned()];
    let mut at = 0;
    while let Some(path) = files.get(at).cloned() {
        at += 1;
        let Some(text) = crate::file::beginning(&path, BYTES) else { continue };
        if midl::is_midl(&text) {
            return true;
        }
        let beside = path.parent().map(Path::to_owned);
        let places: Vec<_> = beside.iter().chain(directories).collect();
        let names = text.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
            rest.trim_start().strip_prefix('"')?.split_once('"').map(|(name, _)| name)
        });
        for name in names {
            let found = places.iter().map(|place| place.join(name)).find(|file| file.is_file());
            if let Some(found) = found.filter(|found| files.len() < INCLUDED && !files.contains(found)) {
                files.push(found);
            }
        }
    }
    false
}

/// Reads a file of the extension that OMG IDL and MIDL share; the text tells which of them it is.
#[cfg(feature = "omg")]
fn read_idl(path: &Path, given: &Preprocessing) -> Result<Contract, Diagnostics> {
    #[cfg(feature = "midl")]
    if is_midl(path, &given.directories) {
        return midl::parse_with(path, given);
    }
    omg::parse_with(path, given)
}

/// Reads the contract in a file; its extension says in which language.
///
/// # Errors
/// What is wrong with the contract; or that the file cannot be read, or that no language has this extension.
pub fn read(path: impl AsRef<Path>) -> Result<Contract, Diagnostics> {
    read_with(path, &Preprocessing::default())
}

/// Reads the contract in a file, with directories and macros for the preprocessor; languages without one ignore them.
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
            let left_out = LEFT_OUT.iter().find(|(of, ..)| *of == extension);
            let message = match (extension.as_str(), left_out) {
                ("", _) => "the file has no extension to tell its contract language".to_owned(),
                (other, Some((_, feature))) => {
                    format!(
                        "contracts .{other} are left out of this program: it is built without the feature `{feature}`"
                    )
                }
                (other, None) => format!("no contract language has the extension .{other}"),
            };
            let mut diagnostic = Diagnostic::of_file(&path.to_string_lossy(), message);
            diagnostic.help = Some(format!("known are {}", known.join(", ")));
            Err(Diagnostics::from(diagnostic))
        }
    }
}
