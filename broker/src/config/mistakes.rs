//! What is wrong with a configuration, and where.

use everywire_model::words::nearest;
use std::fmt;

/// A place in a file: line and column, both counted from 1; 0 where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Where the lines of a text begin: found once, since a long file has many places that are asked for.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// Offsets of the lines behind the first one, in ascending order.
    begin: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, begin: text.match_indices('\n').map(|(at, _)| at + 1).collect() }
    }

    /// The place of the byte at `offset`.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = self.begin.partition_point(|begin| *begin <= before.len());
        let begin = line.checked_sub(1).and_then(|at| self.begin.get(at)).copied().unwrap_or(0);
        Position { line: line + 1, column: before.get(begin..).unwrap_or_default().chars().count() + 1 }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as it was named.
    pub file: String,
    /// Where in it.
    pub spot: Position,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What was probably meant, or what to do.
    pub hint: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, spot, message, hint } = self;
        match spot.line {
            0 => write!(f, "{file}: {message}")?,
            _ => write!(f, "{file}:{}:{}: {message}", spot.line, spot.column)?,
        }
        match hint {
            Some(hint) => write!(f, ", {hint}"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a configuration, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// One.
    pub(crate) fn of(file: &str, spot: Position, message: String) -> Self {
        let mut mistakes = Self::default();
        mistakes.add(file, spot, message, None);
        mistakes
    }

    /// Notes a mistake.
    pub(crate) fn add(
        &mut self,
        file: &str,
        spot: Position,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.0.push(Mistake { file: file.to_owned(), spot, message: message.into(), hint });
    }

    /// This, unless there are mistakes.
    ///
    /// # Errors
    /// The mistakes, sorted.
    pub(crate) fn or<T>(mut self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|mistake| mistake.spot);
        Err(self)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// `did you mean ...`, if one of the known words is near.
pub(crate) fn meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|other| format!("did you mean `{other}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_count_lines_and_characters_from_one() {
        let text = "a\nbé = 1\n";
        let at = |offset| Lines::of(text).position(offset);
        assert_eq!(at(0), Position { line: 1, column: 1 });
        assert_eq!(at(1), Position { line: 1, column: 2 });
        assert_eq!(at(2), Position { line: 2, column: 1 });
        assert_eq!(at(text.find('=').unwrap()), Position { line: 2, column: 4 });
        assert_eq!(at(1000), Position { line: 3, column: 1 });
        assert_eq!(Lines::of("").position(7), Position { line: 1, column: 1 });
    }

    #[test]
    fn a_word_that_is_near_is_named() {
        assert_eq!(meant("adress", ["name", "address"]).as_deref(), Some("did you mean `address`?"));
        assert_eq!(meant("zebra", ["name", "address"]), None);
    }
}
