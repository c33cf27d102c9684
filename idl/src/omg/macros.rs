//! Macros with parameters: `#define LIST(TYPE) sequence<TYPE>`.
//!
//! A use is replaced before the parser sees it: arguments are put for the parameters, `A ## B` becomes one
//! word and `#A` a text, and the result is put in front of the tokens that wait, where it is looked at again.
//! A macro that makes its own name therefore goes round until the bound on made tokens ends it with a
//! mistake.

use super::lexer::{Kind, Lexer, Token, keyword};
use super::limits;
use super::preprocess::Preprocessor;
use crate::report::{Problem, Report};
use std::collections::HashSet;
use std::sync::Arc;

/// The most parameters of a macro. C90 asks a compiler for 31, C99 for 127.
const PARAMETERS: usize = 64;

/// The names between the parentheses of a definition. `line` stands before the opening parenthesis. None
/// after a mistake, which was reported.
pub(super) fn parameters(line: &mut Lexer, report: &mut Report) -> Option<Vec<String>> {
    let mut names = Vec::new();
    line.next(report);
    loop {
        let token = line.next(report);
        match token.kind {
            Kind::Punct(")") if names.is_empty() => return Some(names),
            Kind::Word(name) if names.len() < PARAMETERS => names.push(name),
            _ => {
                report.add(
                    Problem::new(token.span, "a parameter of a macro needs a name").expected(["a name"]),
                );
                return None;
            }
        }
        let token = line.next(report);
        match token.kind {
            Kind::Punct(",") => {}
            Kind::Punct(")") => return Some(names),
            _ => {
                let problem = Problem::new(token.span, "the parameters of this macro do not end");
                report.add(problem.expected(["`,`", "`)`"]));
                return None;
            }
        }
    }
}

/// How a token is written, where it may be part of a word or a text.
fn spelled(kind: &Kind) -> String {
    match kind {
        Kind::Word(word) => word.clone(),
        Kind::Escaped(word) => format!("_{word}"),
        Kind::Keyword(word) | Kind::Punct(word) => (*word).to_owned(),
        Kind::Integer(number) => number.to_string(),
        Kind::Float(number) => number.to_string(),
        Kind::Fixed(digits) => format!("{digits}d"),
        Kind::Text { value, .. } => value.clone(),
        Kind::Char { value, .. } => value.to_string(),
        _ => String::new(),
    }
}

impl Preprocessor {
    /// Puts what a macro with parameters stands for in the place of its use, if this token begins one: its name, and then
    /// a parenthesis. False, and nothing changed, where it begins none. After a mistake it is true as well,
    /// and the use is gone.
    pub(super) fn invoke(&mut self, token: &Token, report: &mut Report) -> bool {
        let Kind::Word(word) = &token.kind else { return false };
        if !self.functions.contains_key(word) || !self.opens() {
            return false;
        }
        self.raw(report);
        let Some(mut arguments) = self.arguments(token, word, report) else { return true };
        let Some(function) = self.functions.get(word) else { return true };
        // `F()` has no argument, or one that is empty.
        if function.parameters.is_empty() && arguments.iter().all(Vec::is_empty) {
            arguments.clear();
        }
        if arguments.len() != function.parameters.len() {
            let count = function.parameters.len();
            let plural = if count == 1 { "" } else { "s" };
            let message = format!("`{word}` has {count} parameter{plural}, not {}", arguments.len());
            report.add(Problem::new(token.span, message));
            return true;
        }
        // `glue` is set between a `##` and the token behind it.
        let mut made: Vec<Token> = Vec::new();
        let (mut body, mut glue) = (function.body.iter().peekable(), false);
        while let Some(part) = body.next() {
            let argument = |part: &Token| match &part.kind {
                Kind::Word(name) => {
                    let at = function.parameters.iter().position(|parameter| parameter == name);
                    at.and_then(|at| arguments.get(at))
                }
                _ => None,
            };
            let own = |kind: Kind| Token { kind, span: token.span, doc: token.doc.clone() };
            let mut parts = match (&part.kind, body.peek().map(|next| (&next.kind, argument(next)))) {
                // `A ## B` is one word, `#A` a text (C++98, 16.3.2 and 16.3.3).
                (Kind::Hash, Some((Kind::Hash, _))) => {
                    body.next();
                    glue = true;
                    continue;
                }
                (Kind::Hash, Some((_, Some(argument)))) => {
                    body.next();
                    let value = argument.iter().map(|part| spelled(&part.kind)).collect::<Vec<_>>().join(" ");
                    if value.len() > limits::MACRO_TEXT {
                        report.add(Problem::new(token.span, "macros make too long a text"));
                        return true;
                    }
                    vec![own(Kind::Text { wide: false, value })]
                }
                _ => match argument(part) {
                    Some(argument) => argument.clone(),
                    None => vec![own(part.kind.clone())],
                },
            };
            if std::mem::take(&mut glue)
                && let (Some(first), Some(last)) = (parts.first_mut(), made.last())
            {
                let word = spelled(&last.kind) + &spelled(&first.kind);
                if word.len() > limits::MACRO_TEXT {
                    report.add(Problem::new(token.span, "macros make too long a word"));
                    return true;
                }
                first.kind = match keyword(&word) {
                    Some(keyword) if keyword == word => Kind::Keyword(keyword),
                    _ => Kind::Word(word),
                };
                made.pop();
            }
            made.extend(parts);
            if self.expansions + made.len() > limits::EXPANSION {
                report.add(Problem::new(token.span, "macros expand to too much text"));
                return true;
            }
        }
        // Each definition copies the documentation before it, so that of the use and of arguments stays at the first token that has it.
        let mut seen = HashSet::new();
        for part in &mut made {
            part.doc.take_if(|doc| !seen.insert(Arc::as_ptr(doc).cast::<u8>()));
        }
        // The 1 is for macros with an empty body: a loop of them must end as well.
        self.expansions += made.len() + 1;
        // `expand` appends, and the result must stand before what waits.
        let rest = std::mem::take(&mut self.expanded);
        made.iter().for_each(|part| self.expand(part, report));
        // The tokens that wait are not moved, since there may be many of them at each use.
        let made = std::mem::replace(&mut self.expanded, rest);
        made.into_iter().rev().for_each(|part| self.expanded.push_front(part));
        true
    }

    /// Whether a parenthesis comes next.
    fn opens(&self) -> bool {
        match self.expanded.front() {
            Some(token) => token.kind == Kind::Punct("("),
            None => self.frames.last().is_some_and(|frame| frame.lexer.rest().trim_start().starts_with('(')),
        }
    }

    /// The next token, as it stands.
    fn raw(&mut self, report: &mut Report) -> Token {
        match self.expanded.pop_front() {
            Some(token) => token,
            None => self.frames.last_mut().map(|frame| frame.lexer.next(report)).unwrap_or_default(),
        }
    }

    /// The arguments up to the closing parenthesis, divided by commas that are in no parentheses of their own.
    fn arguments(&mut self, start: &Token, word: &str, report: &mut Report) -> Option<Vec<Vec<Token>>> {
        let (mut arguments, mut current, mut depth) = (Vec::new(), Vec::new(), 0_usize);
        loop {
            let token = self.raw(report);
            match token.kind {
                Kind::Punct(")") if depth == 0 => {
                    arguments.push(current);
                    return Some(arguments);
                }
                Kind::Punct(",") if depth == 0 && arguments.len() <= PARAMETERS => {
                    arguments.push(std::mem::take(&mut current));
                    continue;
                }
                Kind::Punct("(") => depth += 1,
                Kind::Punct(")") => depth -= 1,
                // A directive among the arguments has no meaning that compilers agree on.
                Kind::End | Kind::Hash => {
                    let message = format!("the arguments of `{word}` never end");
                    report.add(Problem::new(start.span, message).expected(["`)`"]));
                    // The end of a file is looked at again.
                    return None;
                }
                _ => {}
            }
            self.expansions += 1;
            if self.expansions > limits::EXPANSION {
                report.add(Problem::new(start.span, "macros expand to too much text"));
                return None;
            }
            current.push(token);
        }
    }
}
