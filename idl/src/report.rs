//! Files, places in them, and the mistakes found while reading.
//!
//! A `Report` lives as long as one contract is read. The lexer and the preprocessor add files to it, every
//! stage adds mistakes, and `finish` makes diagnostics of them. Spans are cheap numbers; lines and columns
//! are counted at the end alone, and only for mistakes that are shown.
//!
//! A contract is good when `failed` is false at the end. Readers go on after a mistake, so a value that they
//! build after one may be incomplete and must be thrown away.
//!
//! Files in the background (headers of C that a MIDL file includes) may be wrong without harm: mistakes in
//! them are dropped. A doubt is a mistake that counts only when the contract turns out to be empty without
//! the missing part.

use crate::diagnostics::{Diagnostic, Diagnostics, MOST, Note};
use std::sync::{Arc, OnceLock};

/// Bytes of source lines that mistakes carry along, all together. A file may be one line of 8 MiB, and each
/// of its mistakes copies that line.
const LINES: usize = 1 << 20;

/// A stretch of one file, in bytes. Files have at most 8 MiB, so 32 bits are enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Number of the file in the [`Report`].
    pub(crate) file: u32,
    /// First byte.
    pub(crate) start: u32,
    /// First byte after.
    pub(crate) end: u32,
}

impl Span {
    /// From the start of this to the end of the other, where both are in one file.
    pub(crate) fn to(self, other: Self) -> Self {
        if self.file == other.file && other.end >= self.start {
            Self { end: other.end, ..self }
        } else {
            self
        }
    }
}

/// A mistake, before its place is looked up. The place is looked up by `Report::finish`.
#[derive(Debug)]
pub(crate) struct Problem {
    span: Span,
    message: String,
    expected: Vec<String>,
    help: Option<String>,
    note: Option<(Span, String)>,
}

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), expected: Vec::new(), help: None, note: None }
    }

    /// Several calls add up.
    pub(crate) fn expected<T: Into<String>>(mut self, expected: impl IntoIterator<Item = T>) -> Self {
        self.expected.extend(expected.into_iter().map(Into::into));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// None leaves the help that is there.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    pub(crate) fn note(mut self, span: Span, message: impl Into<String>) -> Self {
        self.note = Some((span, message.into()));
        self
    }
}

/// A file that was read.
struct File {
    name: String,
    text: Arc<str>,
    /// Byte at which each line starts.
    lines: Vec<u32>,
}

/// The files read so far and what was wrong with them.
#[derive(Default)]
pub(crate) struct Report {
    files: Vec<File>,
    /// At most `MOST`, no two of them at the same place.
    problems: Vec<Problem>,
    /// Mistakes beyond `MOST`, which were counted and dropped.
    omitted: usize,
    /// Files in the background: others need definitions of them, and mistakes in them are not reported.
    background: Vec<u32>,
    /// What is missing and may not be needed; mistakes if nothing is left without it.
    doubts: Vec<Problem>,
    /// Whether a cell was made.
    has_cells: bool,
}

impl Report {
    /// A cell for a type that is used before it is complete. Shapes that refer to themselves hold it, so it lives as long as the process;
    /// `read_cache.rs` sees to it that the same files make it once.
    pub(crate) fn cell<T>(&mut self) -> &'static OnceLock<T> {
        self.has_cells = true;
        Box::leak(Box::default())
    }

    pub(crate) fn has_cells(&self) -> bool {
        self.has_cells
    }

    /// Names and texts of the files so far.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|file| (file.name.as_str(), file.text.as_ref()))
    }

    /// What is known to be wrong or missing so far: file, place and message.
    pub(crate) fn mistakes(&self) -> impl Iterator<Item = (u32, u32, &str)> {
        let known = self.problems.iter().chain(&self.doubts);
        known.map(|problem| (problem.span.file, problem.span.start, problem.message.as_str()))
    }

    /// Adds a file and says its number.
    pub(crate) fn add_file(&mut self, name: &str, text: Arc<str>) -> u32 {
        let starts = text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next);
        let lines = std::iter::once(0).chain(starts).collect();
        self.files.push(File { name: name.to_owned(), text, lines });
        u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
    }

    /// Notes a mistake; a second one at the same place is left out, because it follows from the first.
    pub(crate) fn add(&mut self, problem: Problem) {
        if !self.is_background(problem.span) {
            self.add_anywhere(problem);
        }
    }

    /// The same for a mistake that matters wherever it is.
    pub(crate) fn add_anywhere(&mut self, problem: Problem) {
        let known = |p: &Problem| p.span.file == problem.span.file && p.span.start == problem.span.start;
        if self.problems.iter().any(known) {
            return;
        }
        if self.problems.len() < MOST {
            self.problems.push(problem);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether more mistakes are counted alone, so that help for them would be for nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MOST
    }

    /// How many mistakes there are. The number is for `forget`.
    pub(crate) fn mark(&self) -> usize {
        self.problems.len()
    }

    /// Takes back the mistakes that were added since then. For a reader that tries one way to understand a
    /// text, and then another. Mistakes that were only counted (`omitted`) stay counted.
    pub(crate) fn forget(&mut self, mark: usize) {
        self.problems.truncate(mark);
    }

    /// What the first mistake since then says.
    pub(crate) fn since(&self, mark: usize) -> Option<&str> {
        self.problems.get(mark).map(|problem| problem.message.as_str())
    }

    /// From now on mistakes in this file are not reported. Mistakes that were added before stay.
    pub(crate) fn put_in_background(&mut self, file: u32) {
        self.background.push(file);
    }

    /// Whether this is in a file that is read for what others need of it.
    pub(crate) fn is_background(&self, span: Span) -> bool {
        self.background.contains(&span.file)
    }

    /// Notes what is missing, where the rest can be used without it. At most `MOST` are kept, and none is
    /// shown unless `take_doubts` is called.
    pub(crate) fn doubt(&mut self, problem: Problem) {
        if self.doubts.len() < MOST {
            self.doubts.push(problem);
        }
    }

    /// Forgets what is missing, before all is read again.
    #[cfg(feature = "wsdl")]
    pub(crate) fn forget_doubts(&mut self) {
        self.doubts.clear();
    }

    /// Makes mistakes of all that is missing; whether there was any.
    pub(crate) fn take_doubts(&mut self) -> bool {
        let doubts = std::mem::take(&mut self.doubts);
        let any = !doubts.is_empty();
        doubts.into_iter().for_each(|problem| self.add(problem));
        any
    }

    /// Whether anything was wrong.
    pub(crate) fn failed(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Number of the line a span starts in, from 0.
    pub(crate) fn line_of(&self, span: Span) -> usize {
        match self.files.get(span.file as usize) {
            Some(file) => file.lines.partition_point(|start| *start <= span.start).saturating_sub(1),
            None => 0,
        }
    }

    /// What stands in a span.
    pub(crate) fn text_of(&self, span: Span) -> &str {
        let text = self.files.get(span.file as usize).map_or("", |file| &file.text);
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// All mistakes, in the order of the text.
    pub(crate) fn finish(mut self) -> Diagnostics {
        self.problems.sort_by_key(|problem| (problem.span.file, problem.span.start));
        // The line that passes the limit is still shown, so at least one mistake always is.
        let (mut list, mut bytes) = (Vec::with_capacity(self.problems.len()), 0);
        for problem in &self.problems {
            if bytes > LINES {
                self.omitted += 1;
                continue;
            }
            let diagnostic = self.diagnostic(problem);
            bytes += diagnostic.source.len();
            list.push(diagnostic);
        }
        Diagnostics { list, omitted: self.omitted }
    }

    fn diagnostic(&self, problem: &Problem) -> Diagnostic {
        let (file, line, column, source) = self.place(problem.span);
        let text = self.files.get(problem.span.file as usize).map_or("", |file| &file.text);
        let meant = text.get(problem.span.start as usize..problem.span.end as usize).unwrap_or_default();
        // A span over several lines is marked in its first line only.
        let length = meant.lines().next().unwrap_or_default().chars().count().max(1);
        Diagnostic {
            file,
            line,
            column,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            message: problem.message.clone(),
            expected: problem.expected.clone(),
            help: problem.help.clone(),
            note: problem.note.as_ref().map(|(span, message)| {
                let (file, line, column, _) = self.place(*span);
                Note { message: message.clone(), file, line, column }
            }),
            source,
        }
    }

    /// File name, line and column (from 1), and the line. The column counts characters, not bytes, as editors
    /// do. Where a span has no file, all are empty and 0, which stands for the file as a whole.
    fn place(&self, span: Span) -> (String, u32, u32, String) {
        let Some(file) = self.files.get(span.file as usize) else { return Default::default() };
        let line = self.line_of(span);
        let start = file.lines.get(line).map_or(0, |start| *start as usize);
        let rest = file.text.get(start..).unwrap_or_default();
        let source = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let before = file.text.get(start..span.start as usize).unwrap_or_default();
        let number = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        (file.name.clone(), number(line), number(before.chars().count()), source.to_owned())
    }
}
