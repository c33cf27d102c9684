//! Characters to tokens, for one file or one line of it.
//!
//! State: the byte `at` up to which the text is read, and whether anything but space stood on the line so
//! far: only there a `#` starts a directive. The preprocessor takes such a line as a lexer of its own
//! (`split_line`), in which words are plain, since macros may be called like keywords.
//!
//! Invariants: `at` stands on the boundary of a character and never goes back; every call of `next` moves it,
//! except at the end, where `Kind::End` comes for ever. Characters that make no token are reported and become
//! `Kind::Unknown`, about which the parser says nothing more. Documentation is what `///`, `/** */` and `/*!
//! */` hold, and belongs to the token after it.
//!
//! Keywords are those of CORBA 3.0 (3.2.4). An identifier that differs from one only in case is refused
//! there; two lists make exceptions for words that are younger than many contracts. MIDL has no keywords
//! here: its parser compares words.
//!
//! Bounds: the length of an identifier, 64 bits for integers, finite doubles, the size of a file for
//! everything else.

use super::limits;
pub(crate) use super::tokens::{Directive, KEYWORDS, Kind, Mark, Token, is_keyword_somewhere, keyword};
use super::tokens::{PUNCTUATION, YOUNG_WORDS};
use crate::report::{Problem, Report, Span};
use std::sync::Arc;

/// Reads tokens from part of a file.
pub(crate) struct Lexer {
    pub(crate) file: u32,
    pub(crate) text: Arc<str>,
    /// The byte that is read next.
    pub(crate) at: usize,
    /// The first byte that is not read: the end of the text, or of a line.
    end: usize,
    /// Nothing but space stood on this line so far.
    fresh: bool,
    /// Words are plain: neither keywords nor escaped.
    pub(crate) plain: bool,
    /// The text is the body of a macro, where `#` stands for itself.
    pub(crate) body: bool,
    /// Words may be names of macros: one that resembles a keyword is `Kind::Misspelt`.
    pub(crate) macros: bool,
    /// The text is MIDL: no word is a keyword, numbers have suffixes, and UUIDs are tokens.
    pub(crate) midl: bool,
}

/// A word is no keyword by its case alone.
pub(super) fn misspelt(word: &str, keyword: &str, span: Span) -> Problem {
    Problem::new(span, format!("`{word}` differs from the keyword `{keyword}` only in case"))
        .help(format!("write `{keyword}` if the keyword is meant, `_{word}` if a name is"))
}

impl Lexer {
    pub(crate) fn new(file: u32, text: Arc<str>) -> Self {
        let end = text.len();
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { file, text, at, end, fresh: true, plain: false, body: false, macros: false, midl: false }
    }

    /// A lexer for the rest of the logical line, with plain words, which this one steps over. A line that a
    /// backslash continues is one logical line.
    pub(crate) fn split_line(&mut self) -> Self {
        let start = self.at;
        self.skip_line();
        Self {
            file: self.file,
            text: Arc::clone(&self.text),
            at: start,
            end: self.at,
            fresh: false,
            plain: true,
            body: false,
            macros: false,
            midl: self.midl,
        }
    }

    /// Steps over the rest of the logical line: a backslash before its end continues it, and so does a block
    /// comment. A quote as a character opens no text.
    fn skip_line(&mut self) {
        let (mut quoted, mut comment) = (false, false);
        while let Some(c) = self.peek() {
            let (before, rest) = (self.text.get(..self.at).unwrap_or_default(), self.rest());
            let block = rest.strip_prefix("/*").filter(|_| !quoted && !comment);
            self.at += match c {
                '\n' if !before.ends_with('\\') && !before.ends_with("\\\r") => break,
                '\'' if rest.starts_with("'\"'") => 3,
                _ if let Some(inside) = block => inside.find("*/").map_or(rest.len(), |at| at + 4),
                other => {
                    quoted ^= other == '"' && !before.ends_with('\\');
                    comment |= !quoted && rest.starts_with("//");
                    other.len_utf8()
                }
            };
        }
    }

    /// Steps over the end of the line, if the lexer stands there. `skip_line` leaves it standing there, so
    /// that the next token finds a fresh line.
    pub(crate) fn end_line(&mut self) {
        if self.peek() == Some('\n') {
            self.at += 1;
            self.fresh = true;
        }
    }

    /// What is left of the text, without surrounding space.
    pub(crate) fn remainder(&self) -> &str {
        self.rest().trim()
    }

    pub(crate) fn rest(&self) -> &str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    pub(crate) fn span_from(&self, start: usize) -> Span {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { file: self.file, start: number(start), end: number(self.at) }
    }

    /// The next token with the documentation before it. It reads no further than the token itself.
    pub(crate) fn next(&mut self, report: &mut Report) -> Token {
        let mut doc = String::new();
        self.skip_space(&mut doc, report);
        let start = self.at;
        let fresh = std::mem::take(&mut self.fresh);
        let kind = match self.peek() {
            None => Kind::End,
            // Before numbers and words: a UUID may begin like either of them.
            Some(c) if self.midl && c.is_ascii_hexdigit() && is_uuid(self.rest()) => {
                self.at += UUID;
                Kind::Uuid(self.text.get(start..self.at).unwrap_or_default().to_ascii_lowercase())
            }
            Some('#') if fresh || self.body => {
                self.at += 1;
                Kind::Hash
            }
            Some('L') if self.rest().starts_with("L'") => self.character(true, report),
            Some('L') if self.rest().starts_with("L\"") => self.text(true, report),
            Some('\'') => self.character(false, report),
            Some('"') => self.text(false, report),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.word(report),
            Some(c) if c.is_ascii_digit() => self.number(report),
            Some('?') if self.midl => {
                self.at += 1;
                Kind::Punct("?")
            }
            // `.5` is a number, a `.` alone is punctuation.
            Some('.') if self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) => self.number(report),
            Some(c) => match PUNCTUATION.iter().find(|p| self.rest().starts_with(**p)) {
                Some(punct) => {
                    self.at += punct.len();
                    Kind::Punct(punct)
                }
                None => {
                    self.at += c.len_utf8();
                    report.add(Problem::new(self.span_from(start), format!("{c:?} means nothing here")));
                    Kind::Unknown
                }
            },
        };
        let doc = (!doc.is_empty()).then(|| Arc::from(doc));
        Token { kind, span: self.span_from(start), doc }
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Steps over characters of a kind; the byte at which they start comes back.
    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) -> usize {
        let start = self.at;
        while let Some(c) = self.peek().filter(|c| wanted(*c)) {
            self.at += c.len_utf8();
        }
        start
    }

    /// Steps over space and comments, and keeps the documentation.
    fn skip_space(&mut self, doc: &mut String, report: &mut Report) {
        loop {
            let start = self.at;
            match self.peek() {
                Some('\n') => {
                    self.at += 1;
                    self.fresh = true;
                }
                // The character 1A ends a file under DOS; old contracts still have it.
                Some(c) if c.is_whitespace() || c == '\u{1a}' => self.at += c.len_utf8(),
                // A backslash joins two lines; the line end behind a `\r` is taken as space in the next
                // round.
                Some('\\') if matches!(self.rest().as_bytes().get(1), Some(b'\n' | b'\r')) => self.at += 2,
                Some('/') if self.rest().starts_with("//") => {
                    self.skip_while(|c| c != '\n');
                    let comment = self.text.get(start..self.at).unwrap_or_default();
                    // Four slashes and more are lines that divide a file, not documentation.
                    if let Some(line) = comment.strip_prefix("///").filter(|line| !line.starts_with('/')) {
                        add_doc_line(doc, line);
                    }
                }
                Some('/') if self.rest().starts_with("/*") => {
                    match self.rest().get(2..).and_then(|r| r.find("*/")) {
                        Some(len) => {
                            self.at += len + 4;
                            let inside = self.text.get(start + 2..start + 2 + len).unwrap_or_default();
                            if let Some(text) = inside.strip_prefix('*').or_else(|| inside.strip_prefix('!'))
                            {
                                for line in text.trim_matches(['*', '\n', '\r', ' ', '\t']).lines() {
                                    add_doc_line(doc, line.trim_start().trim_start_matches('*'));
                                }
                            }
                        }
                        None => {
                            self.at += 2;
                            report.add(
                                Problem::new(self.span_from(start), "this comment never ends")
                                    .expected(["`*/`"]),
                            );
                            self.at = self.end;
                        }
                    }
                }
                _ => break,
            }
        }
    }

    /// The length is checked after the whole word was passed, so that its rest does not become a second word.
    fn word(&mut self, report: &mut Report) -> Kind {
        let start = self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let word = self.text.get(start..self.at).unwrap_or_default();
        if word.len() > limits::IDENTIFIER {
            let message = format!("this name is longer than {} characters", limits::IDENTIFIER);
            report.add(Problem::new(self.span_from(start), message));
            return Kind::Unknown;
        }
        if self.plain || self.midl {
            return Kind::Word(word.to_owned());
        }
        if let Some(escaped) = word.strip_prefix('_') {
            if escaped.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Kind::Escaped(escaped.to_owned());
            }
            report.add(Problem::new(self.span_from(start), "a letter must follow the underscore of a name"));
            return Kind::Unknown;
        }
        match keyword(word) {
            Some(keyword) if keyword == word => Kind::Keyword(keyword),
            Some(keyword) if YOUNG_WORDS.contains(&keyword) => Kind::Word(word.to_owned()),
            // Contracts of DDS write them so, mostly in annotations.
            Some(keyword) if matches!(word, "true" | "false") => Kind::Keyword(keyword),
            Some(keyword) if self.macros => Kind::Misspelt(word.to_owned(), keyword),
            Some(keyword) => {
                report.add(misspelt(word, keyword, self.span_from(start)));
                Kind::Keyword(keyword)
            }
            None => Kind::Word(word.to_owned()),
        }
    }

    /// All letters and digits are taken together, so that `12ab` is one wrong number and not a number and a
    /// name.
    fn number(&mut self, report: &mut Report) -> Kind {
        let start = self.at;
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            self.skip_while(|c| c.is_ascii_alphanumeric());
        } else {
            self.skip_while(|c| c.is_ascii_digit());
            if self.peek() == Some('.') {
                self.at += 1;
                self.skip_while(|c| c.is_ascii_digit());
            }
            if matches!(self.peek(), Some('e' | 'E')) {
                self.at += 1;
                if matches!(self.peek(), Some('+' | '-')) {
                    self.at += 1;
                }
            }
            self.skip_while(|c| c.is_ascii_alphanumeric());
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        let digits = if self.midl { digits.trim_end_matches(['l', 'L', 'u', 'U']) } else { digits };
        let span = self.span_from(start);
        let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let all = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        // Some(Err) means digits of the right kind that are too many; None, that it is no integer.
        let integer = match hex {
            Some(hex) => all(hex, 16).then(|| u64::from_str_radix(hex, 16)),
            None if digits.len() > 1 && digits.starts_with('0') => {
                all(digits, 8).then(|| u64::from_str_radix(digits, 8))
            }
            None => all(digits, 10).then(|| digits.parse()),
        };
        let fixed = digits.strip_suffix(['d', 'D']).filter(|_| hex.is_none() && !self.midl);
        let problem = match integer {
            Some(Ok(value)) => return Kind::Integer(value),
            Some(Err(_)) => Problem::new(span, "this number does not fit 64 bits"),
            None if let Some(fixed) = fixed.filter(|fixed| is_decimal(fixed)) => {
                return Kind::Fixed(fixed.to_owned());
            }
            None if digits.contains(['.', 'e', 'E']) && hex.is_none() => match digits.parse::<f64>() {
                Ok(value) if value.is_finite() => return Kind::Float(value),
                Ok(_) => Problem::new(span, "this number is too large for a double"),
                Err(_) => Problem::new(span, format!("`{digits}` is not a number")),
            },
            None => Problem::new(span, format!("`{digits}` is not a number")).maybe_help(
                (hex.is_none() && digits.starts_with('0'))
                    .then(|| "a leading 0 makes a number octal".to_owned()),
            ),
        };
        report.add(problem);
        Kind::Unknown
    }

    /// The quotes may hold one character or one escape.
    fn character(&mut self, wide: bool, report: &mut Report) -> Kind {
        let start = self.at;
        let value = self.quoted(wide, '\'', report);
        let mut characters = value.chars();
        match (characters.next(), characters.next()) {
            (Some(value), None) => Kind::Char { wide, value },
            _ => {
                report
                    .add(Problem::new(self.span_from(start), "one character must stand between the quotes"));
                Kind::Unknown
            }
        }
    }

    /// A text in quotes; joining neighbours is the parser's work.
    fn text(&mut self, wide: bool, report: &mut Report) -> Kind {
        let start = self.at;
        let value = self.quoted(wide, '"', report);
        if value.contains('\0') {
            report.add(Problem::new(self.span_from(start), "a string cannot contain the character 0"));
        }
        Kind::Text { wide, value }
    }

    /// The characters between quotes; what is wrong with them is reported and left out.
    fn quoted(&mut self, wide: bool, quote: char, report: &mut Report) -> String {
        let start = self.at;
        self.at += if wide { 2 } else { 1 };
        let mut value = String::new();
        loop {
            let from = self.at;
            match self.peek() {
                // Help strings of MIDL go over lines.
                Some(c @ '\n') if self.midl && quote == '"' => {
                    self.at += c.len_utf8();
                    value.push(c);
                }
                // Only the opening quote is marked: the text behind it may be the rest of the file.
                None | Some('\n') => {
                    let opening = Span { end: self.span_from(start).start + 1, ..self.span_from(start) };
                    report.add(
                        Problem::new(opening, "the closing quote is missing")
                            .expected([format!("`{quote}`")]),
                    );
                    return value;
                }
                Some(c) if c == quote => {
                    self.at += 1;
                    return value;
                }
                Some('\\') => {
                    self.at += 1;
                    match self.escape(wide) {
                        Some(c) => value.push(c),
                        // In C, and so in MIDL, the character stands for itself.
                        None if self.midl => value.extend(self.text[from..self.at].chars().next_back()),
                        None => report.add(
                            Problem::new(self.span_from(from), "unknown escape sequence")
                                .help("known are \\n \\t \\v \\b \\r \\f \\a \\\\ \\? \\' \\\" \\377 \\xff and, wide, \\uffff"),
                        ),
                    }
                }
                Some(c) => {
                    self.at += c.len_utf8();
                    if !wide && c > '\u{ff}' {
                        let message = format!("{c:?} is not in ISO 8859-1");
                        report.add(
                            Problem::new(self.span_from(from), message).help("use a wide literal: L\"...\""),
                        );
                    }
                    value.push(c);
                }
            }
        }
    }

    /// The character behind a backslash; None for an unknown one. A backslash at the end of a line takes
    /// nothing, so that the caller finds the missing quote.
    fn escape(&mut self, wide: bool) -> Option<char> {
        let c = self.peek()?;
        if c != '\n' {
            self.at += c.len_utf8();
        }
        // Base, the most digits, and where they start (CORBA 3.0, 3.2.5.2).
        let (radix, most, from) = match c {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            'v' => return Some('\x0b'),
            'b' => return Some('\x08'),
            'r' => return Some('\r'),
            'f' => return Some('\x0c'),
            'a' => return Some('\x07'),
            '\\' | '?' | '\'' | '"' => return Some(c),
            'x' => (16, 2, self.at),
            'u' if wide => (16, 4, self.at),
            '0'..='7' => (8, 3, self.at - 1),
            _ => return None,
        };
        while self.at < from + most && self.peek().is_some_and(|c| c.is_digit(radix)) {
            self.at += 1;
        }
        let digits = self.text.get(from..self.at)?;
        let value = u32::from_str_radix(digits, radix).ok()?;
        if radix == 8 && value > 255 { None } else { char::from_u32(value) }
    }
}

/// Characters of a UUID.
const UUID: usize = 36;

/// Whether the text begins with a UUID that ends where its digits do. A following letter, `_` or `-` makes it
/// something else, such as an identifier of hexadecimal letters.
fn is_uuid(text: &str) -> bool {
    let Some((uuid, rest)) = text.as_bytes().split_at_checked(UUID) else { return false };
    let digit = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    uuid.iter().enumerate().all(digit)
        && !rest.first().is_some_and(|next| next.is_ascii_alphanumeric() || matches!(next, b'_' | b'-'))
}

/// Whether this is digits with at most one point among them.
fn is_decimal(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty())
}

/// One space after the comment sign belongs to the sign.
fn add_doc_line(doc: &mut String, line: &str) {
    if !doc.is_empty() {
        doc.push('\n');
    }
    doc.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
}
