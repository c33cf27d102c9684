//! Signals and operations that may run twice, which the language has no words for: pragmas and annotations of ours.

use super::super::ast::{Declarator, Expr, Ident, Item, ItemKind, Signal, TypeKind, TypeSpec};
use super::super::lexer::{Kind, Mark, Token};
use super::{Descent, Parse, Parser, Skip};
use crate::report::{Problem, Span};
use everywire_model::Direction;

/// What annotations say that is understood, each with its place.
#[derive(Default)]
pub(super) struct Annotations {
    signal: Option<Span>,
    idempotent: Option<Span>,
}

impl Annotations {
    /// Notes the name behind an `@`.
    pub(super) fn note(&mut self, name: &Token, at: Span) {
        match &name.kind {
            Kind::Word(word) if word == "signal" => self.signal = Some(at.to(name.span)),
            Kind::Word(word) if word == "idempotent" => self.idempotent = Some(at.to(name.span)),
            _ => {}
        }
    }
}

impl Parser<'_> {
    /// Reads a pragma of ours, which takes effect behind the definition that it stands in.
    pub(super) fn marked(&mut self, mark: Mark, tokens: Vec<Token>) {
        let doc = tokens.first().and_then(|token| token.doc.clone()).map(|doc| doc.to_string());
        let before = (std::mem::take(&mut self.current), self.last, std::mem::take(&mut self.annotations));
        self.line = Some(tokens.into_iter());
        self.advance();
        let item = self.pragma(mark);
        self.line = None;
        (self.current, self.last, self.annotations) = before;
        if let Ok(kind) = item {
            self.directives.push(Item { kind, doc: doc.unwrap_or_default() });
        }
    }

    fn pragma(&mut self, mark: Mark) -> Parse<ItemKind> {
        let ident = self.ident()?;
        let item = if mark == Mark::Signal {
            self.expect("(")?;
            let empty = self.current.kind == Kind::Punct(")");
            let fields = if empty { Vec::new() } else { self.list(Self::field)? };
            self.expect(")")?;
            ItemKind::Signal(Signal { ident, fields, is_operation: false })
        } else {
            ItemKind::Idempotent(ident)
        };
        // As behind an operation.
        self.accept(";");
        if self.current.kind == Kind::End {
            return Ok(item);
        }
        let problem = self.unexpected("the line goes on").expected(["the end of the line"]);
        self.fail(problem)
    }

    /// What a signal carries: `in TYPE name`. Only this reader looks at it, so its type needs no name.
    fn field(&mut self) -> Parse<(TypeSpec, Declarator)> {
        if !self.accept_word("in") {
            let problem = self.unexpected("the direction is missing").expected(["`in`"]);
            return self.fail(problem);
        }
        let spec = self.type_spec()?;
        if matches!(spec.kind, TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::Enum(_)) {
            let problem = Problem::new(spec.span, "a signal cannot carry a type defined on the spot");
            return self.fail(problem.help("define the type before and use its name"));
        }
        Ok((spec, self.declarator()?))
    }

    /// What stands in an interface, with what the annotations before it say.
    pub(super) fn annotated(&mut self, item: ItemKind, annotations: &Annotations) -> Parse<ItemKind> {
        let mut item = item;
        if let ItemKind::Operation(operation) = &mut item {
            operation.idempotent = annotations.idempotent.is_some();
        }
        let Some(at) = annotations.signal else { return Ok(item) };
        let ItemKind::Operation(operation) = item else {
            return self.wrong(at, "`@signal` stands before an operation");
        };
        if !matches!(operation.returns.kind, TypeKind::Basic(super::super::ast::Basic::Void)) {
            return self.wrong(operation.returns.span, "a signal returns nothing");
        }
        if let Some(raised) = operation.raises.first() {
            return self.wrong(raised.span, "a signal raises nothing");
        }
        let mut fields = Vec::with_capacity(operation.parameters.len());
        for parameter in operation.parameters {
            if parameter.direction != Direction::In {
                return self.wrong(parameter.ident.span, "a signal has only `in` parameters");
            }
            let dimensions: Vec<Expr> = Vec::new();
            fields.push((parameter.spec, Declarator { ident: parameter.ident, dimensions }));
        }
        let ident: Ident = operation.ident;
        Ok(ItemKind::Signal(Signal { ident, fields, is_operation: true }))
    }

    fn wrong<T>(&mut self, span: Span, message: &str) -> Parse<T> {
        self.report.add(Problem::new(span, message));
        Err(Skip)
    }
}
