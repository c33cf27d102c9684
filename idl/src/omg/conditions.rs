//! `#if` and its relatives.
//!
//! State: the conditions that are open, outermost first; text is skipped where the last one is not active.
//! Conditions inside skipped text are pushed as well, with `taken` set, so that none of their branches is
//! read and each `#endif` finds its own `#if`.
//!
//! In an expression macros are replaced by their bodies, but not behind `defined`; a word that is then no macro, and a macro without
//! a body, is 0. How many tokens that makes and how many macros are replaced is bounded for each expression. In bodies of macros with
//! parameters `#` and `##` have no meaning here.

use super::lexer::{Kind, Lexer, Token};
use super::limits;
use crate::report::{Problem, Report, Span};
use std::collections::HashMap;

/// The most tokens that macros make in one expression.
const MADE: usize = 512;

/// What an operator makes of its two sides.
type Combine = fn(u64, u64) -> u64;

/// Operators of two sides as C ranks them (C++98, 5), the loosest first; `&&` and `||` are looser still.
const RANKS: [&[(&str, Combine)]; 7] = [
    &[("|", |a, b| a | b)],
    &[("^", |a, b| a ^ b)],
    &[("&", |a, b| a & b)],
    &[("==", |a, b| u64::from(a == b)), ("!=", |a, b| u64::from(a != b))],
    &[
        ("<=", |a, b| u64::from(a <= b)),
        (">=", |a, b| u64::from(a >= b)),
        ("<", |a, b| u64::from(a < b)),
        (">", |a, b| u64::from(a > b)),
    ],
    &[("+", u64::wrapping_add), ("-", u64::wrapping_sub)],
    &[("*", u64::wrapping_mul)],
];

/// A macro with parameters.
pub(super) struct Function {
    pub(super) parameters: Vec<String>,
    /// The tokens of the body, parameters as words.
    pub(super) body: Vec<Token>,
}

/// The macros of a file: those with parameters are in both maps.
#[derive(Clone, Copy)]
pub(super) struct Macros<'a> {
    pub(super) bodies: &'a HashMap<String, Vec<Token>>,
    pub(super) functions: &'a HashMap<String, Function>,
}

/// The conditions that are open in one file.
#[derive(Default)]
pub(crate) struct Conditions {
    open: Vec<Condition>,
}

struct Condition {
    span: Span,
    /// This branch is read.
    active: bool,
    /// A branch was read already, or none may be because the whole stands in skipped text: no later branch is
    /// read.
    taken: bool,
    /// `#else` was seen; only `#endif` may follow.
    otherwise: bool,
}

impl Conditions {
    /// Whether the text that follows is skipped.
    pub(crate) fn skipping(&self) -> bool {
        self.open.last().is_some_and(|condition| !condition.active)
    }

    /// Takes a conditional directive, of which `line` is the rest.
    pub(crate) fn directive(
        &mut self,
        word: &str,
        span: Span,
        line: &mut Lexer,
        macros: Macros<'_>,
        report: &mut Report,
    ) {
        let outer = !self.skipping();
        match word {
            "if" | "ifdef" | "ifndef" => {
                if self.open.len() >= limits::NESTING {
                    report.add(Problem::new(span, "conditions are nested too deeply"));
                    return;
                }
                let active = outer
                    && match word {
                        "if" => evaluate(line, macros, report),
                        _ => defined(&line.next(report), macros) == (word == "ifdef"),
                    };
                self.open.push(Condition { span, active, taken: active || !outer, otherwise: false });
            }
            "endif" => {
                if self.open.pop().is_none() {
                    report.add(Problem::new(span, "there is no `#if` for this `#endif`"));
                }
            }
            _ => match self.open.last_mut() {
                Some(condition) if !condition.otherwise => {
                    condition.otherwise = word == "else";
                    condition.active = !condition.taken && (word == "else" || evaluate(line, macros, report));
                    condition.taken |= condition.active;
                }
                _ => report.add(Problem::new(span, format!("there is no `#if` for this `#{word}`"))),
            },
        }
    }

    /// Steps over lines until a branch that is read, or the end.
    pub(crate) fn skip(&mut self, lexer: &mut Lexer, macros: Macros<'_>, report: &mut Report) {
        // A directive inside a block comment is none: the comment is part of the line in which it begins.
        while self.skipping() && !lexer.rest().is_empty() {
            let mut line = lexer.split_line();
            lexer.end_line();
            let text = line.remainder();
            if let Some(rest) = text.strip_prefix('#') {
                let word =
                    rest.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                if matches!(word, "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif") {
                    line.at += line.rest().find(word).unwrap_or_default();
                    let start = line.at;
                    let word = word_of(&mut line);
                    let span = line.span_from(start);
                    self.directive(&word, span, &mut line, macros, report);
                }
            }
        }
    }

    /// Says which conditions the end of the file leaves open. Conditions must end in the file that they start
    /// in.
    pub(crate) fn finish(&mut self, report: &mut Report) {
        for condition in self.open.drain(..) {
            report.add(Problem::new(condition.span, "this condition never ends").expected(["`#endif`"]));
        }
    }
}

/// Only letters: `#if(X)` has no space.
fn word_of(line: &mut Lexer) -> String {
    let word: String = line.rest().chars().take_while(char::is_ascii_alphabetic).collect();
    line.at += word.len();
    word
}

fn defined(token: &Token, macros: Macros<'_>) -> bool {
    matches!(&token.kind, Kind::Word(word) if macros.bodies.contains_key(word))
}

/// The value of the expression after `#if`: integers, `defined`, `!`, `&&`, `||`, the operators of `RANKS` and
/// parentheses. An expression that is not understood is a mistake and counts as false. All numbers are
/// unsigned with 64 bits.
fn evaluate(line: &mut Lexer, macros: Macros<'_>, report: &mut Report) -> bool {
    let mut tokens = Vec::new();
    loop {
        match line.next(report) {
            token if token.kind == Kind::End => {
                let end = token.span;
                let expanded = expanded(&tokens, macros);
                let mut evaluation = Evaluation { tokens: expanded.as_deref().unwrap_or_default(), macros };
                let value = evaluation.either(0);
                if value.is_none() || !evaluation.tokens.is_empty() {
                    let span = evaluation.tokens.first().map_or(end, |token| token.span);
                    let help = "integers, macros, defined(X), ! && || == != < > <= >= | & ^ + - * and parentheses are";
                    report.add(Problem::new(span, "this condition is not understood").help(help));
                }
                return value.unwrap_or_default() != 0;
            }
            token => tokens.push(token),
        }
    }
}

/// The tokens of an expression with the bodies of macros in place of their names. None where there are too many.
fn expanded<'a>(tokens: &'a [Token], macros: Macros<'a>) -> Option<Vec<&'a Token>> {
    // What is still to be looked at, the next last, and how many macros it came from.
    let mut pending: Vec<(&Token, usize)> = tokens.iter().rev().map(|token| (token, 0)).collect();
    let (mut made, mut out) = (0, Vec::<&Token>::new());
    while let Some((token, depth)) = pending.pop() {
        let asked = match out.as_slice() {
            [.., before] if is_word(before, "defined") => true,
            [.., before, Token { kind: Kind::Punct("("), .. }] => is_word(before, "defined"),
            _ => false,
        };
        let word = match &token.kind {
            Kind::Word(word) if !asked && depth < limits::MACRO_DEPTH => word,
            _ => {
                out.push(token);
                continue;
            }
        };
        let opens = matches!(pending.last(), Some((Token { kind: Kind::Punct("("), .. }, _)));
        let body: Vec<&Token> = match macros.functions.get(word).filter(|_| opens) {
            Some(function) => applied(function, &mut pending)?,
            None => macros.bodies.get(word).into_iter().flatten().collect(),
        };
        // One that leaves nothing was work, too.
        made += body.len().max(1);
        if made > MADE {
            return None;
        }
        if body.is_empty() {
            out.push(token);
            continue;
        }
        pending.extend(body.into_iter().rev().map(|token| (token, depth + 1)));
    }
    Some(out)
}

/// The body of a macro with its arguments, which are taken from what is still to be looked at. None where they do not end, or are
/// not as many as the parameters.
fn applied<'a>(function: &'a Function, pending: &mut Vec<(&'a Token, usize)>) -> Option<Vec<&'a Token>> {
    if function.body.len() > MADE {
        return None;
    }
    let (mut arguments, mut open) = (vec![Vec::new()], 0_usize);
    loop {
        let (token, _) = pending.pop()?;
        match &token.kind {
            Kind::Punct("(") => open += 1,
            Kind::Punct(")") if open == 1 => break,
            Kind::Punct(")") => open -= 1,
            _ => {}
        }
        match &token.kind {
            Kind::Punct("(") if open == 1 => {}
            Kind::Punct(",") if open == 1 => arguments.push(Vec::new()),
            _ => arguments.last_mut()?.push(token),
        }
    }
    if arguments.len() != function.parameters.len().max(1) {
        return None;
    }
    let mut body = Vec::new();
    for token in &function.body {
        let at = function.parameters.iter().position(|parameter| is_word(token, parameter));
        match at.and_then(|at| arguments.get(at)) {
            Some(argument) => body.extend(argument),
            None => body.push(token),
        }
        if body.len() > MADE {
            return None;
        }
    }
    Some(body)
}

fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(&token.kind, Kind::Word(word) if word == wanted)
}

/// Recursive descent; every method takes what it reads off the front of `tokens`, and None means a mistake.
/// `depth` counts parentheses and `!`, which alone recurse.
struct Evaluation<'a> {
    tokens: &'a [&'a Token],
    macros: Macros<'a>,
}

impl Evaluation<'_> {
    fn take(&mut self) -> Option<&Kind> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(&first.kind)
    }

    fn accept(&mut self, wanted: &str) -> bool {
        let found =
            matches!(self.tokens.first(), Some(Token { kind: Kind::Punct(punct), .. }) if *punct == wanted);
        if found {
            self.take();
        }
        found
    }

    fn either(&mut self, depth: usize) -> Option<u64> {
        let mut value = self.both(depth)?;
        while self.accept("||") {
            let right = self.both(depth)?;
            value = u64::from(value != 0 || right != 0);
        }
        Some(value)
    }

    fn both(&mut self, depth: usize) -> Option<u64> {
        let mut value = self.ranked(0, depth)?;
        while self.accept("&&") {
            let right = self.ranked(0, depth)?;
            value = u64::from(value != 0 && right != 0);
        }
        Some(value)
    }

    /// Operators of two sides from this rank on; those of one rank go from left to right.
    fn ranked(&mut self, rank: usize, depth: usize) -> Option<u64> {
        let Some(operators) = RANKS.get(rank) else { return self.unary(depth) };
        let mut value = self.ranked(rank + 1, depth)?;
        while let Some((_, combine)) = operators.iter().find(|(operator, _)| self.accept(operator)) {
            value = combine(value, self.ranked(rank + 1, depth)?);
        }
        Some(value)
    }

    fn unary(&mut self, depth: usize) -> Option<u64> {
        if depth > limits::NESTING {
            return None;
        }
        if self.accept("!") {
            return Some(u64::from(self.unary(depth + 1)? == 0));
        }
        if self.accept("(") {
            let value = self.either(depth + 1)?;
            return self.accept(")").then_some(value);
        }
        let macros = self.macros;
        match self.take()?.clone() {
            Kind::Integer(value) => Some(value),
            // With or without parentheses (C++98, 16.1).
            Kind::Word(word) if word == "defined" => {
                let parenthesis = self.accept("(");
                let Kind::Word(name) = self.take()?.clone() else { return None };
                (!parenthesis || self.accept(")")).then(|| u64::from(macros.bodies.contains_key(&name)))
            }
            Kind::Word(_) => Some(0),
            _ => None,
        }
    }
}
