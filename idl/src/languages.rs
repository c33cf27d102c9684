//! The contract languages that can be read, and the choice between them.

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::omg;
use everywire_model::Contract;
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
}

/// All languages that can be read.
pub fn languages() -> &'static [Language] {
    &[Language {
        name: "omg",
        title: "OMG IDL",
        extensions: &["idl"],
        read: |path, directories| omg::parse_file(path, directories),
    }]
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
