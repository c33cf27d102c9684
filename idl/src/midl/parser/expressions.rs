//! Expressions: constants, and what sizes and discriminators are computed from.
//!
//! The operators are those of C with their precedence. A cast changes nothing of a constant here and is
//! stepped over. Names are kept as text, because in `size_is(p->count)` a name means a field beside it, which
//! only its place can tell.
//!
//! Bounds as in OMG IDL: parentheses and signs count as nesting, operators are counted for a whole
//! expression.

use super::super::ast::{Expr, ExprKind, Ident, TypeKind};
use super::super::known;
use super::types::NUMBERS;
use super::{Descent, Parse, Parser};
use crate::omg::lexer::Kind;
use crate::omg::limits;
use crate::report::{Problem, Span};
use everywire_model::Shape;

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
    /// One whole expression; it ends at the first token that does not belong to it.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        let mut operators = 0;
        self.nested(|p| p.choice(&mut operators))
    }

    /// `condition ? one : other`, which binds loosest and to the right.
    fn choice(&mut self, operators: &mut usize) -> Parse<Expr> {
        let condition = self.binary(0, operators)?;
        if !self.is(&Kind::Punct("?")) {
            return Ok(condition);
        }
        self.operator(operators)?;
        let one = self.nested(|p| p.choice(operators))?;
        self.expect(":")?;
        let other = self.nested(|p| p.choice(operators))?;
        let span = condition.span.to(other.span);
        Ok(Expr { kind: ExprKind::Choice(Box::new(condition), Box::new(one), Box::new(other)), span })
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
        // `*` and `&` are of C: `size_is(*count)` speaks of what a pointer points to.
        if let Kind::Punct(operator @ ("-" | "+" | "~" | "!" | "*" | "&")) = self.current.kind {
            self.operator(operators)?;
            let operand = self.nested(|p| p.unary(operators))?;
            let span = start.to(self.last);
            return Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span });
        }
        if self.accept("(") {
            let is_type =
                |word: &str| word == "void" || NUMBERS.contains(&word) || known::number(word).is_some();
            if self.word().is_some_and(is_type) {
                // A cast: what a constant is made of changes nothing of its bytes.
                self.count_operator(operators)?;
                self.type_spec()?;
                while self.accept("*") {}
                self.expect(")")?;
                return self.nested(|p| p.unary(operators));
            }
            let inside = self.nested(|p| p.choice(operators))?;
            self.expect(")")?;
            let casts = |kind: &Kind| matches!(kind, Kind::Punct("(") | Kind::Word(_) | Kind::Integer(_));
            if matches!(inside.kind, ExprKind::Name(_)) && casts(&self.current.kind) {
                // A cast to a type that is not known here: constants are not called, and no value stands behind another.
                self.count_operator(operators)?;
                return self.nested(|p| p.unary(operators));
            }
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
                "sizeof" => return self.size_of(start),
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

    /// `sizeof(type)`: the bytes of a number at once, those of another type once it is defined. A pointer counts as 4
    /// bytes, as in the 32-bit form of NDR.
    fn size_of(&mut self, start: Span) -> Parse<Expr> {
        self.advance();
        self.expect("(")?;
        let spec = self.type_spec()?;
        let mut pointers = 0_u32;
        while self.accept("*") {
            pointers += 1;
        }
        self.expect(")")?;
        let shape = match &spec.kind {
            TypeKind::Base(shape) => Some(shape.clone()),
            // It is a boolean on the wire, and has 16 bits in C.
            TypeKind::Name(ident) if ident.name == "VARIANT_BOOL" => Some(Shape::I16),
            TypeKind::Name(ident) => known::number(&ident.name),
            _ => None,
        };
        let size = match (pointers, shape) {
            (1.., _) => Some(4),
            (0, Some(Shape::Char)) => Some(1),
            (0, Some(Shape::WideChar)) => Some(2),
            (0, shape) => shape.and_then(|shape| shape.width()),
        };
        let tagged = |keyword: &str, tag: &Option<Ident>| {
            tag.as_ref().map(|tag| ExprKind::SizeOf(format!("{keyword} {}", tag.name)))
        };
        let kind = match (size.and_then(|size| u64::try_from(size).ok()), &spec.kind) {
            (Some(size), _) => Some(ExprKind::Integer(size)),
            (None, TypeKind::Name(ident)) => Some(ExprKind::SizeOf(ident.name.clone())),
            (None, TypeKind::Struct(record)) if record.members.is_none() => tagged("struct", &record.tag),
            (None, TypeKind::Enum(members)) if members.members.is_none() => Some(ExprKind::Integer(4)),
            _ => None,
        };
        match kind {
            Some(kind) => Ok(Expr { kind, span: start.to(self.last) }),
            None => self.fail(Problem::new(spec.span, "the size of such a type is not known here")),
        }
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
        // A function decides; what it is given does not matter.
        if self.is(&Kind::Punct("(")) {
            self.skip_parentheses()?;
            name = self.report.text_of(start.to(self.last)).to_owned();
            if name.len() > limits::SCOPED_NAME {
                return self.fail(Problem::new(start, "this call of a function is too long"));
            }
        }
        Ok(Expr { kind: ExprKind::Name(name), span: start.to(self.last) })
    }
}
