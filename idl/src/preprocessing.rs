//! What a preprocessor is given.

use std::path::PathBuf;

/// What the preprocessor of OMG IDL and MIDL is given beside a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preprocessing {
    /// Where included and imported files are looked for, after the directory of the file that names them (`-I`).
    pub directories: Vec<PathBuf>,
    /// Macros that are defined before the first line (`-D`): the name, or the name and its parameters in
    /// parentheses, and then the text that it stands for. Each pair is read as the line `#define NAME TEXT`,
    /// so a mistake in it is reported in a file called `-D NAME`.
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
