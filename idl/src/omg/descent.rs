//! Recursive descent over the tokens of a contract, which goes on after a mistake at the next `;` or `}`: what the parsers of OMG IDL and
//! of MIDL have in common.
//!
//! State: `Tokens` has one token of look-ahead (`current`), the place of the token before it, and two counters. What stands between
//! tokens (directives, pragmas, annotations) is the language's own, and so is `advance`, which takes it out.
//!
//! A method that fails has reported the mistake and returns `Skip`. The nearest list catches it and calls `recover`, so that one mistake
//! costs one definition and the rest is still checked. About a token of kind `Unknown` nothing is reported, since the lexer did.
//!
//! Bounds: `nested` bounds the depth of the recursion, `count` the names, types and values of the whole contract, and `operator` how
//! far an expression leans to one side.

use super::limits;
use super::preprocess::Preprocessor;
use super::tokens::{Kind, Token};
use crate::report::{Problem, Report, Span};
use std::ops::DerefMut;

/// The error of a parser: what could not be parsed was reported, and the caller goes on behind it.
pub(crate) struct Skip;

pub(crate) type Parse<T> = Result<T, Skip>;

/// An identifier as meant: without the underscore that escapes it in OMG IDL.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ident {
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// Where a parser is.
pub(crate) struct Tokens<'a> {
    pub(crate) source: Preprocessor,
    pub(crate) report: &'a mut Report,
    pub(crate) current: Token,
    /// The place of the token before `current`; where it ends, a missing `;` belongs.
    pub(crate) last: Span,
    /// How many `nested` calls are open; at most `NESTING`.
    depth: usize,
    /// What `count` counted; at most `NODES`.
    nodes: usize,
}

impl<'a> Tokens<'a> {
    /// Before the first token, which `advance` takes.
    pub(crate) fn new(source: Preprocessor, report: &'a mut Report) -> Self {
        Self { source, report, current: Token::default(), last: Span::default(), depth: 0, nodes: 0 }
    }

    /// The next token of the source, whatever it is.
    pub(crate) fn next(&mut self) -> Token {
        self.source.next(self.report)
    }

    /// The documentation before the token at hand.
    pub(crate) fn doc(&self) -> String {
        self.current.doc.as_deref().unwrap_or_default().to_owned()
    }

    pub(crate) fn is(&self, kind: &Kind) -> bool {
        self.current.kind == *kind
    }

    pub(crate) fn problem(&mut self, message: &str) {
        self.report.add(Problem::new(self.current.span, message));
    }

    /// Bounds how many things there are. It is reported once. After that everything fails, and the parser
    /// runs to the end of the file without storing more.
    pub(crate) fn count(&mut self) -> Parse<()> {
        self.nodes += 1;
        if self.nodes == limits::NODES {
            self.problem("the contract is too large");
        }
        if self.nodes >= limits::NODES { Err(Skip) } else { Ok(()) }
    }
}

/// A parser.
pub(crate) trait Descent<'a>: DerefMut<Target = Tokens<'a>> + Sized {
    /// Goes to the next token that the grammar knows.
    fn advance(&mut self);

    /// What is over where there is no token any more.
    fn whole(&self) -> &'static str {
        "file"
    }

    /// Reports and gives up; nothing is reported about a token that the lexer refused.
    fn fail<T>(&mut self, problem: Problem) -> Parse<T> {
        if self.current.kind != Kind::Unknown {
            self.report.add(problem);
        }
        Err(Skip)
    }

    /// A problem with the current token. Where the token is of no kind that can be named, the message is
    /// `otherwise`.
    fn unexpected(&self, otherwise: &str) -> Problem {
        let message = match &self.current.kind {
            Kind::Word(word) | Kind::Escaped(word) => format!("`{word}` does not belong here"),
            Kind::Keyword(word) | Kind::Punct(word) => format!("`{word}` does not belong here"),
            Kind::Integer(_) | Kind::Float(_) | Kind::Fixed(_) => "a number does not belong here".to_owned(),
            Kind::Uuid(_) => "a UUID does not belong here".to_owned(),
            Kind::Text { .. } => "a string does not belong here".to_owned(),
            Kind::Char { .. } => "a character does not belong here".to_owned(),
            Kind::End => format!("the {} ends too early", self.whole()),
            _ => otherwise.to_owned(),
        };
        Problem::new(self.current.span, message)
    }

    /// A name that is being defined, or one part of a scoped name.
    fn ident(&mut self) -> Parse<Ident> {
        let span = self.current.span;
        if let Kind::Word(name) | Kind::Escaped(name) = &self.current.kind {
            let name = name.clone();
            self.count()?;
            self.advance();
            return Ok(Ident { name, span });
        }
        let problem = self.unexpected("a name is missing").expected(["a name"]);
        match self.current.kind {
            Kind::Keyword(word) => {
                let help = format!("`{word}` is a keyword; write `_{word}` to use it as a name");
                self.fail(problem.help(help))
            }
            _ => self.fail(problem),
        }
    }

    /// One or more, with commas between.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.accept(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// `{ ... }`; after a mistake inside, goes on behind the closing brace.
    fn braced<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let opening = self.current.span;
        self.expect("{")?;
        let result = inside(self);
        // The mistake may be deep inside; what belongs to this brace ends at its `}`.
        if result.is_err() {
            self.skip(false);
        } else if self.is(&Kind::End) {
            let problem = Problem::new(self.current.span, "the file ends too early");
            return self.fail(problem.expected(["`}`"]).note(opening, "this `{` is never closed"));
        } else if !self.is(&Kind::Punct("}")) {
            let problem = self.unexpected("this does not belong here").expected(["`}`"]);
            // Reported here and not failed: what was read inside is good.
            self.report.add(problem);
            self.skip(false);
        }
        self.accept("}");
        result
    }

    /// Bounds how deep things are nested. Every way by which the parser calls itself goes through here.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= limits::NESTING {
            return self.fail(Problem::new(self.current.span, "this is nested too deeply"));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Steps over an operator; see `count_operator`.
    fn operator(&mut self, operators: &mut usize) -> Parse<()> {
        self.count_operator(operators)?;
        self.advance();
        Ok(())
    }

    /// Counts an operator: their number bounds the depth of the tree.
    fn count_operator(&mut self, operators: &mut usize) -> Parse<()> {
        *operators += 1;
        if *operators > limits::OPERATORS {
            return self.fail(Problem::new(self.current.span, "this expression has too many operators"));
        }
        Ok(())
    }

    /// True, and the token is taken, where it is this one.
    fn accept(&mut self, punct: &str) -> bool {
        let found = matches!(self.current.kind, Kind::Punct(found) if found == punct);
        if found {
            self.advance();
        }
        found
    }

    /// Takes this token, or fails.
    fn expect(&mut self, punct: &str) -> Parse<()> {
        // `>>` closes two sequences. Half of the token is used up; the other half stays as the current one.
        if punct == ">" && self.is(&Kind::Punct(">>")) {
            self.current.kind = Kind::Punct(">");
            self.current.span.start += 1;
            return Ok(());
        }
        if self.accept(punct) {
            return Ok(());
        }
        let problem = self.unexpected("this does not belong here").expected([format!("`{punct}`")]);
        self.fail(problem)
    }

    /// The `;` that ends a definition. One that is missing at the end of a line is reported and taken as written.
    fn semicolon(&mut self) -> Parse<()> {
        if self.accept(";") {
            return Ok(());
        }
        let same_line = self.last.file == self.current.span.file
            && self.report.line_of(self.last) == self.report.line_of(self.current.span)
            && !self.is(&Kind::End);
        // In one line the missing thing may be something else, so the definition is given up.
        if same_line {
            return self.expect(";");
        }
        // The mark stands on the last character before, where the `;` should be.
        let after = Span { start: self.last.end.saturating_sub(1), ..self.last };
        self.report.add(Problem::new(after, "the `;` after this is missing").expected(["`;`"]));
        Ok(())
    }

    /// Goes on behind the next `;`, or at a `}`.
    fn recover(&mut self) {
        self.skip(true);
        self.accept(";");
    }

    /// Steps over tokens up to the `}` of this level, or its next `;`.
    fn skip(&mut self, stop_at_semicolon: bool) {
        let mut level = 0usize;
        loop {
            match self.current.kind {
                Kind::End => return,
                Kind::Punct("{") => level += 1,
                Kind::Punct("}") if level == 0 => return,
                Kind::Punct("}") => level -= 1,
                // A `;` inside braces belongs to something inside.
                Kind::Punct(";") if level == 0 && stop_at_semicolon => return,
                _ => {}
            }
            self.advance();
        }
    }
}
