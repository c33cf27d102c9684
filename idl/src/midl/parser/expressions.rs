//! Expressions: constants, and what sizes and discriminators are computed from.

use super::super::ast::{Expr, ExprKind};
use super::{Parse, Parser};
use crate::omg::lexer::Kind;
use crate::omg::limits;
use crate::report::Problem;

/// Binary operators by binding, the loosest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        let mut operators = 0;
        self.nested(|p| p.binary(0, &mut operators))
    }

    fn binary(&mut self, level: usize, operators: &mut usize) -> Parse<Expr> {
        let Some(symbols) = LEVELS.get(level) else { return self.unary(operators) };
        let mut left = self.binary(level + 1, operators)?;
        while let Kind::Punct(operator) = self.current.kind
            && symbols.contains(&operator)
        {
            self.operator(operators)?;
            let right = self.binary(level + 1, operators)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    fn unary(&mut self, operators: &mut usize) -> Parse<Expr> {
        let start = self.current.span;
        if let Kind::Punct(operator @ ("-" | "+" | "~" | "!" | "*" | "&")) = self.current.kind {
            self.operator(operators)?;
            let operand = self.nested(|p| p.unary(operators))?;
            let span = start.to(self.last);
            return Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span });
        }
        if self.accept("(") {
            let inside = self.nested(|p| p.binary(0, operators))?;
            self.expect(")")?;
            return Ok(Expr { span: start.to(self.last), ..inside });
        }
        self.count()?;
        let kind = match self.current.kind.clone() {
            Kind::Integer(value) => ExprKind::Integer(value),
            Kind::Float(value) => ExprKind::Float(value),
            Kind::Char { value, .. } => ExprKind::Char(value),
            Kind::Uuid(uuid) => ExprKind::Uuid(uuid),
            Kind::Text { mut value, .. } => {
                self.advance();
                // Adjacent literals are one.
                while let Kind::Text { value: more, .. } = &self.current.kind {
                    value.push_str(more);
                    self.advance();
                }
                return Ok(Expr { kind: ExprKind::Text(value), span: start.to(self.last) });
            }
            Kind::Word(word) => match word.as_str() {
                "TRUE" | "VARIANT_TRUE" => ExprKind::Bool(true),
                "FALSE" | "VARIANT_FALSE" => ExprKind::Bool(false),
                "NULL" => ExprKind::Integer(0),
                _ => return self.path(word),
            },
            _ => {
                let problem = self.unexpected("a value is missing").expected(["an expression"]);
                return self.fail(problem);
            }
        };
        self.advance();
        Ok(Expr { kind, span: start })
    }

    /// A name, or the way to a field: `p->count`, `header.count`.
    fn path(&mut self, word: String) -> Parse<Expr> {
        let start = self.current.span;
        self.advance();
        let mut name = word;
        loop {
            let dot = self.is(&Kind::Punct("."));
            if !dot && !self.is(&Kind::Punct("->")) {
                break;
            }
            self.advance();
            name.push_str(if dot { "." } else { "->" });
            name.push_str(&self.ident()?.name);
            if name.len() > limits::SCOPED_NAME {
                return self.fail(Problem::new(start, "this name has too many parts"));
            }
        }
        Ok(Expr { kind: ExprKind::Name(name), span: start.to(self.last) })
    }

    /// Steps over an operator; their number bounds the depth of the tree.
    fn operator(&mut self, operators: &mut usize) -> Parse<()> {
        *operators += 1;
        if *operators > limits::OPERATORS {
            return self.fail(Problem::new(self.current.span, "this expression has too many operators"));
        }
        self.advance();
        Ok(())
    }
}
