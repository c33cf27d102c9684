//! Names as browsing filters them: the patterns of Visual Basic's `Like` (OPC DA 2.05a, appendix B).
//!
//! `*` is any text, `?` one character, `#` one digit, `[a-z]` one of these, `[!a-z]` none of them. Letters match in any case.
//! An empty pattern matches everything.

use crate::Code;

/// A pattern, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    /// Nothing is to be looked at.
    anything: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Anything,
    One,
    Digit,
    Letter(char),
    Of { not: bool, ranges: Vec<(char, char)> },
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`Code::INVALID_FILTER`]: a bracket is not closed, or a range runs backwards.
    pub fn new(text: &str) -> Result<Self, Code> {
        let mut parts = Vec::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let part = match letter {
                '*' => Part::Anything,
                '?' => Part::One,
                '#' => Part::Digit,
                '[' => bracket(&mut letters)?,
                other => Part::Letter(folded(other)),
            };
            // Two in a row say no more than one.
            if part != Part::Anything || parts.last() != Some(&Part::Anything) {
                parts.push(part);
            }
        }
        let anything = parts.is_empty() || parts == [Part::Anything];
        Ok(Self { parts, anything })
    }

    /// Whether a name fits. Costs at most the length of the name times that of the pattern.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        if self.anything {
            return true;
        }
        // Where to go on when the text behind the last `*` has to be longer than was tried.
        let mut again: Option<(usize, std::str::Chars<'_>)> = None;
        let mut at = 0;
        let mut rest = name.chars();
        loop {
            if self.parts.get(at) == Some(&Part::Anything) {
                at += 1;
                again = Some((at, rest.clone()));
                continue;
            }
            match (self.parts.get(at), rest.next()) {
                (None, None) => return true,
                (Some(part), Some(letter)) if part.fits(letter) => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let Some((part, mut from)) = again.take() else { return false };
            if from.next().is_none() {
                return false;
            }
            at = part;
            rest = from.clone();
            again = Some((part, from));
        }
    }
}

impl Part {
    fn fits(&self, letter: char) -> bool {
        match self {
            Self::Anything | Self::One => true,
            Self::Digit => letter.is_ascii_digit(),
            Self::Letter(own) => *own == folded(letter),
            Self::Of { not, ranges } => {
                let letter = folded(letter);
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter)) != *not
            }
        }
    }
}

/// What stands in brackets, the first of which is read.
fn bracket(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Part, Code> {
    let not = letters.next_if_eq(&'!').is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match letters.next().ok_or(Code::INVALID_FILTER)? {
            // `[!]` is an exclamation mark.
            ']' if not && ranges.is_empty() => return Ok(Part::Letter('!')),
            // `[]` is nothing at all, which only the empty text fits.
            ']' => break,
            letter => folded(letter),
        };
        let mut ahead = letters.clone();
        let dash = ahead.next() == Some('-');
        let high = ahead.next();
        let high = match (dash, high) {
            // A dash before the end stands for itself.
            (true, Some(high)) if high != ']' => {
                *letters = ahead;
                folded(high)
            }
            _ => low,
        };
        if high < low {
            return Err(Code::INVALID_FILTER);
        }
        ranges.push((low, high));
    }
    if ranges.is_empty() { Err(Code::INVALID_FILTER) } else { Ok(Part::Of { not, ranges }) }
}

fn folded(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::Code;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).expect("a pattern").fits(name)
    }

    #[test]
    fn a_pattern_is_that_of_like() {
        for (pattern, name, expected) in [
            ("", "anything", true),
            ("*", "", true),
            ("Temp*", "temperature", true),
            ("*ture", "Temperature", true),
            ("*e*a*", "Temperature", true),
            ("*x*", "Temperature", false),
            ("T?mp", "Tamp", true),
            ("T?mp", "Tmp", false),
            ("Tank#", "Tank7", true),
            ("Tank#", "TankA", false),
            ("[a-c]1", "B1", true),
            ("[!a-c]1", "B1", false),
            ("[!a-c]1", "D1", true),
            ("[*]", "*", true),
            ("[*]", "x", false),
            ("[a-]", "-", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b", "ab ", false),
            ("Käse", "KÄSE", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        for wrong in ["[", "[a", "[z-a]", "[]", "x[!"] {
            assert_eq!(Pattern::new(wrong), Err(Code::INVALID_FILTER), "{wrong}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_text_times_pattern() {
        let pattern = Pattern::new(&"*a".repeat(2000)).expect("a pattern");
        assert!(!pattern.fits(&format!("{}b", "a".repeat(1999))));
    }
}
