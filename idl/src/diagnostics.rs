//! What is wrong with a contract, for people and for programs.
//!
//! A `Diagnostic` is complete: it carries the line of the source, so that it can be shown after the files are
//! gone. Programs read its fields; people read `Display`, which looks like
//! rustc's messages.

use std::fmt::{self, Display, Formatter};

/// The most mistakes shown at once; more are counted only. A file that is in another language altogether has
/// a mistake in each line, and nobody reads more than a screen of them.
pub(crate) const MOST: usize = 40;
/// The most characters of a source line that are shown. Generated contracts are often one line of many
/// kilobytes.
const WINDOW: usize = 120;

/// All that is wrong with a contract.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The mistakes, in the order of the text.
    pub list: Vec<Diagnostic>,
    /// How many more were found than are listed.
    pub omitted: usize,
}

/// One mistake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; 0 where the file as a whole is meant.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How many characters are meant, at least 1 and within the line.
    pub length: u32,
    /// What is wrong.
    pub message: String,
    /// What would have been right here; any of these.
    pub expected: Vec<String>,
    /// How to put it right.
    pub help: Option<String>,
    /// Another place that matters, such as an earlier definition.
    pub note: Option<Note>,
    /// The line of the file, without its end.
    pub source: String,
}

/// Another place that matters to a mistake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// What is there.
    pub message: String,
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Diagnostic {
    /// A mistake of a file as a whole.
    pub(crate) fn of_file(file: &str, message: String) -> Self {
        Self { file: file.to_owned(), message, ..Self::default() }
    }

    /// The line as shown, and where in it the caret stands (both in characters): long lines are cut around
    /// the column. Control characters become spaces, so that a file cannot send commands to a terminal.
    fn window(&self) -> (String, usize) {
        let at = (self.column as usize).saturating_sub(1);
        let skip = if at + 20 > WINDOW { at.saturating_sub(WINDOW / 2) } else { 0 };
        let shown = self.source.chars().skip(skip).take(WINDOW);
        (shown.map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect(), at - skip)
    }
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: error: {}", self.file, self.message)?;
        } else {
            write!(f, "{}:{}:{}: error: {}", self.file, self.line, self.column, self.message)?;
            let (shown, at) = self.window();
            let gutter = self.line.to_string().len();
            // Tabs stay tabs, so that the caret stands right whatever their width.
            let lead: String = shown.chars().take(at).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let room = shown.chars().count().saturating_sub(at).max(1);
            let carets = "^".repeat((self.length as usize).clamp(1, room));
            write!(f, "\n{:gutter$} |\n{} | {shown}\n{:gutter$} | {lead}{carets}", "", self.line, "")?;
            match self.expected.as_slice() {
                [] => {}
                [one] => write!(f, " expected {one}")?,
                [rest @ .., last] => write!(f, " expected {} or {last}", rest.join(", "))?,
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        if let Some(note) = &self.note {
            write!(f, "\n  {}:{}:{}: note: {}", note.file, note.line, note.column, note.message)?;
        }
        Ok(())
    }
}

impl Display for Diagnostics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for diagnostic in &self.list {
            writeln!(f, "{diagnostic}\n")?;
        }
        match (self.list.len(), self.omitted) {
            (1, 0) => write!(f, "1 error"),
            (shown, 0) => write!(f, "{shown} errors"),
            (shown, omitted) => write!(f, "{} errors, the first {shown} of them shown", shown + omitted),
        }
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { list: vec![diagnostic], omitted: 0 }
    }
}
