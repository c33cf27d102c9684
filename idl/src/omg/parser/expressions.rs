//! Constant expressions (CORBA 3.0, 3.10.1): a tree, without a value.
//!
//! Precedence is climbed by levels. Two bounds keep the tree shallow, because the builder recurses over it:
//! parentheses and signs count as nesting, and the number of operators bounds how far a chain such as `1+1+1`
//! leans to the left.

use super::super::ast::{Expr, ExprKind};
use super::super::lexer::Kind;
use super::{Descent, Parse, Parser};
use crate::report::Problem;

/// Binary operators by binding, the loosest first.
const LEVELS: &[&[&str]] = &[&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

impl Parser<'_> {
    /// One whole expression; it ends at the first token that does not belong to it.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        let mut operators = 0;
        self.nested(|p| p.binary(0, &mut operators))
    }

    fn binary(&mut self, level: usize, operators: &mut usize) -> Parse<Expr> {
        let Some(symbols) = LEVELS.get(level) else { return self.unary(operators) };
        let mut left = self.binary(level + 1, operators)?;
        loop {
            // One character stands for each operator in the tree; `<<` and `>>` become `<` and `>`.
            let Kind::Punct(punct) = self.current.kind else { return Ok(left) };
            let Some(operator) = punct.chars().next().filter(|_| symbols.contains(&punct)) else {
                return Ok(left);
            };
            self.operator(operators)?;
            let right = self.binary(level + 1, operators)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
    }

    fn unary(&mut self, operators: &mut usize) -> Parse<Expr> {
        let start = self.current.span;
        if let Kind::Punct(punct @ ("-" | "+" | "~")) = self.current.kind {
            self.operator(operators)?;
            let operand = self.nested(|p| p.unary(operators))?;
            let operator = punct.chars().next().unwrap_or('+');
            return Ok(Expr {
                kind: ExprKind::Unary(operator, Box::new(operand)),
                span: start.to(self.last),
            });
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
            Kind::Fixed(digits) => ExprKind::Fixed(digits),
            Kind::Char { wide, value } => ExprKind::Char { wide, value },
            Kind::Text { wide, mut value } => {
                self.advance();
                // Adjacent literals are one.
                while let Kind::Text { wide: also_wide, value: more } = &self.current.kind {
                    if *also_wide != wide {
                        let span = self.current.span;
                        return self.fail(Problem::new(span, "wide and narrow strings cannot be joined"));
                    }
                    value.push_str(more);
                    self.advance();
                }
                return Ok(Expr { kind: ExprKind::Text { wide, value }, span: start.to(self.last) });
            }
            Kind::Keyword("TRUE") => ExprKind::Bool(true),
            Kind::Keyword("FALSE") => ExprKind::Bool(false),
            Kind::Word(_) | Kind::Escaped(_) | Kind::Punct("::") => {
                let name = self.scoped_name()?;
                return Ok(Expr { span: name.span, kind: ExprKind::Name(name) });
            }
            _ => {
                let problem = self.unexpected("a value is missing").expected(["a constant value"]);
                return self.fail(problem);
            }
        };
        self.advance();
        Ok(Expr { kind, span: start })
    }
}
