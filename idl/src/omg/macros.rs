//! Macros with parameters: `#define LIST(TYPE) sequence<TYPE>`.

use super::lexer::{Kind, Lexer, Token};
use super::limits;
use super::preprocess::Preprocessor;
use crate::report::{Problem, Report};

/// The most parameters of a macro.
const PARAMETERS: usize = 64;

/// A macro with parameters.
pub(super) struct Function {
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<Token>,
}

/// The names between the parentheses of a definition.
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

/// Words with `##` between them become one word.
fn pasted(made: Vec<Token>) -> Vec<Token> {
    if !made.iter().any(|token| token.kind == PASTE) {
        return made;
    }
    let mut out: Vec<Token> = Vec::with_capacity(made.len());
    let mut pastes = false;
    for token in made {
        if token.kind == PASTE {
            pastes = true;
            continue;
        }
        let more = match &token.kind {
            Kind::Word(word) => Some(word.clone()),
            Kind::Integer(number) => Some(number.to_string()),
            _ => None,
        };
        match (out.last_mut().map(|last| &mut last.kind), more) {
            (Some(Kind::Word(word)), Some(more)) if pastes && word.len() <= limits::IDENTIFIER => {
                word.push_str(&more);
            }
            _ => out.push(token),
        }
        pastes = false;
    }
    out
}

const PASTE: Kind = Kind::Punct("##");

impl Preprocessor {
    /// Puts what a macro with parameters stands for in the place of its use, if this token begins one: its name, and then
    /// a parenthesis.
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
        let mut made = Vec::new();
        for part in &function.body {
            let argument = match &part.kind {
                Kind::Word(name) => function.parameters.iter().position(|parameter| parameter == name),
                _ => None,
            };
            match argument.and_then(|at| arguments.get(at)) {
                Some(argument) => made.extend(argument.iter().cloned()),
                None => made.push(Token { span: token.span, doc: token.doc.clone(), ..part.clone() }),
            }
            if self.expansions + made.len() > limits::EXPANSION {
                report.add(Problem::new(token.span, "macros expand to too much text"));
                return true;
            }
        }
        self.expansions += made.len() + 1;
        let made = pasted(made);
        let rest = std::mem::take(&mut self.expanded);
        made.iter().for_each(|part| self.expand(part, 0, report));
        // What waits is not moved: there may be much of it each time.
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
