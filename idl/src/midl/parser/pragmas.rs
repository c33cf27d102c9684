//! What methods may raise, and which signals an interface has, which the language has no words for: pragmas of ours, which other
//! compilers pass over.
//!
//! ```text
//! #pragma exception Bank_Overdrawn "IDL:Bank/Overdrawn:1.0"
//! #pragma exception Bank_Frozen()
//! #pragma raises withdraw(Bank_Overdrawn, Bank_Frozen)
//! #pragma signals Bank_AccountEvents
//! ```

use super::super::ast::{Exception, Ident, Interface, Item, ItemKind, Raises, Signals};
use super::Parser;
use crate::omg::lexer::{Kind, Mark, Token};
use crate::report::{Problem, Report};

/// The words of one pragma; the last is the end of its line.
struct PragmaTokens<'w> {
    tokens: std::slice::Iter<'w, Token>,
    current: &'w Token,
}

impl Parser<'_> {
    /// The exceptions that stand before the current token, outside of interfaces.
    pub(super) fn take_exceptions(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        for (mark, tokens) in std::mem::take(&mut self.pragmas) {
            if mark != Mark::Exception {
                let span = tokens.first().map(|token| token.span).unwrap_or_default();
                let problem = Problem::new(span, format!("`#pragma {}` stands in an interface", mark.word()));
                self.report.add(problem.help("put it between the `{` and the `}` of the interface"));
                continue;
            }
            items.extend(exception(&tokens, self.report));
        }
        items
    }

    /// The pragmas that stand before the current token, in an interface.
    pub(super) fn take_pragmas(&mut self, interface: &mut Interface) {
        for (mark, tokens) in std::mem::take(&mut self.pragmas) {
            match mark {
                Mark::Raises => interface.raises.extend(raises(&tokens, self.report)),
                Mark::Signals => interface.signals.extend(signals(&tokens, self.report)),
                _ => interface.items.extend(exception(&tokens, self.report)),
            }
        }
    }
}

/// `NAME`, or `NAME()`, and an identity.
fn exception(tokens: &[Token], report: &mut Report) -> Option<Item> {
    let mut words = PragmaTokens::new(tokens)?;
    let ident = words.name(report)?;
    let is_empty = words.accept("(");
    if is_empty {
        words.expect(")", report)?;
    }
    let id = match &words.current.kind {
        Kind::Text { value, .. } if !value.is_empty() => {
            words.advance();
            Some(value.clone())
        }
        _ => None,
    };
    words.end(report)?;
    let span = ident.span;
    let kind = ItemKind::Exception(Exception { ident, is_empty, id });
    Some(Item { kind, attributes: Vec::new(), doc: String::new(), span })
}

/// `METHOD(EXCEPTION, ...)`.
fn raises(tokens: &[Token], report: &mut Report) -> Option<Raises> {
    let mut words = PragmaTokens::new(tokens)?;
    let method = words.name(report)?;
    words.expect("(", report)?;
    let exceptions = words.list(report)?;
    words.end(report)?;
    Some(Raises { method, exceptions })
}

/// `INTERFACE`, or `INTERFACE(METHOD, ...)`.
fn signals(tokens: &[Token], report: &mut Report) -> Option<Signals> {
    let mut words = PragmaTokens::new(tokens)?;
    let interface = words.name(report)?;
    let methods = if words.accept("(") { Some(words.list(report)?) } else { None };
    words.end(report)?;
    Some(Signals { interface, methods })
}

impl<'w> PragmaTokens<'w> {
    fn new(tokens: &'w [Token]) -> Option<Self> {
        let mut tokens = tokens.iter();
        Some(Self { current: tokens.next()?, tokens })
    }

    fn advance(&mut self) {
        if let Some(next) = self.tokens.next() {
            self.current = next;
        }
    }

    fn name(&mut self, report: &mut Report) -> Option<Ident> {
        let span = self.current.span;
        let Kind::Word(name) = &self.current.kind else {
            report.add(Problem::new(span, "a name is missing").expected(["a name"]));
            return None;
        };
        self.advance();
        Some(Ident { name: name.clone(), span })
    }

    /// One name or more, with commas between, and `)`.
    fn list(&mut self, report: &mut Report) -> Option<Vec<Ident>> {
        let mut names = vec![self.name(report)?];
        while self.accept(",") {
            names.push(self.name(report)?);
        }
        self.expect(")", report)?;
        Some(names)
    }

    fn accept(&mut self, punct: &str) -> bool {
        let found = matches!(self.current.kind, Kind::Punct(found) if found == punct);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, punct: &str, report: &mut Report) -> Option<()> {
        if self.accept(punct) {
            return Some(());
        }
        let problem = Problem::new(self.current.span, format!("`{punct}` is missing"));
        report.add(problem.expected([format!("`{punct}`")]));
        None
    }

    fn end(&self, report: &mut Report) -> Option<()> {
        if self.current.kind == Kind::End {
            return Some(());
        }
        let problem = Problem::new(self.current.span, "this does not belong here");
        report.add(problem.expected(["the end of the line"]));
        None
    }
}
