//! The values of expressions.
//!
//! Integers are computed with 128 bits, and each step must be within the range of 64 bits with either sign. A
//! constant is then cut to the width of its type, as C does it, because result codes are written as
//! 0x80040200 and mean a negative number. Nothing can panic here: shifts, division and all else are checked,
//! and depth was bounded by the parser.

use super::super::ast::{Expr, ExprKind};
use super::super::known;
use super::{Builder, Ty};
use crate::omg::limits;
use crate::report::{Problem, Span};
use everywire_model::{Shape, Value};

impl Builder<'_> {
    /// The value of an integer expression. None after a mistake.
    pub(super) fn integer(&mut self, expr: &Expr) -> Option<i128> {
        let value = match &expr.kind {
            ExprKind::Integer(value) => Some(i128::from(*value)),
            ExprKind::Char(value) => Some(i128::from(u32::from(*value))),
            ExprKind::Bool(value) => Some(i128::from(*value)),
            ExprKind::Name(name) => {
                let mut value = self.constants.get(name).copied();
                if value.is_none() && self.define_later(name) {
                    value = self.constants.get(name).copied();
                }
                let value = value.or_else(|| known::constant(name).map(i128::from));
                if value.is_none() {
                    self.problem(expr.span, &format!("there is no constant `{name}`"));
                    return None;
                }
                value
            }
            ExprKind::SizeOf(name) => Some(self.size_of(name, expr.span)?),
            ExprKind::Unary(operator, operand) => {
                let operand = self.integer(operand)?;
                match *operator {
                    "-" => operand.checked_neg(),
                    "+" => Some(operand),
                    "~" => Some(!operand),
                    "!" => Some(i128::from(operand == 0)),
                    _ => None,
                }
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.integer(left)?, self.integer(right)?);
                binary(operator, left, right)
            }
            ExprKind::Choice(condition, one, other) => {
                let chosen = if self.integer(condition)? == 0 { other } else { one };
                Some(self.integer(chosen)?)
            }
            _ => None,
        };
        // The one message for everything that has no value: overflow, a division by zero, a text among the
        // operands.
        let value = value.filter(|value| value.unsigned_abs() <= u128::from(u64::MAX));
        if value.is_none() {
            let problem = Problem::new(expr.span, "this is not a constant integer of 64 bits");
            self.report.add(problem.expected(["an integer"]));
        }
        value
    }

    /// An expression with the values of constants in place of their names, unless something beside what is declared has the name.
    pub(super) fn with_constants(&mut self, expr: &Expr) -> Expr {
        let kind = match &expr.kind {
            ExprKind::Name(name) if !self.beside.contains(name) => {
                let value = self.constants.get(name).copied();
                let value = value.or_else(|| known::constant(name).map(i128::from));
                value.and_then(|value| u64::try_from(value).ok()).map(ExprKind::Integer)
            }
            ExprKind::SizeOf(name) => {
                let size = self.size_of(name, expr.span);
                size.and_then(|size| u64::try_from(size).ok()).map(ExprKind::Integer)
            }
            ExprKind::Unary(operator, operand) => {
                Some(ExprKind::Unary(operator, Box::new(self.with_constants(operand))))
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.with_constants(left), self.with_constants(right));
                Some(ExprKind::Binary(operator, Box::new(left), Box::new(right)))
            }
            ExprKind::Choice(condition, one, other) => {
                let condition = self.with_constants(condition);
                let (one, other) = (self.with_constants(one), self.with_constants(other));
                Some(ExprKind::Choice(Box::new(condition), Box::new(one), Box::new(other)))
            }
            _ => None,
        };
        Expr { kind: kind.unwrap_or_else(|| expr.kind.clone()), span: expr.span }
    }

    /// `sizeof` of a type that has a name: its bytes in a program of C, for which it is written. None after a mistake, and that is also
    /// a type whose size differs between programs, such as one with pointers in it.
    fn size_of(&mut self, name: &str, span: Span) -> Option<i128> {
        let ty = match name.contains(' ') {
            true => Some(Ty::Mention(name.to_owned())),
            false => self.named(name, span),
        };
        let shape = match ty? {
            Ty::Value(typed) if !typed.open => Some(typed.shape),
            Ty::Mention(key) if self.records.contains_key(&key) => {
                self.resolved(&key).filter(|typed| !typed.open).map(|typed| typed.shape)
            }
            _ => None,
        };
        let size = shape.and_then(|shape| bytes_in_c(&shape, 0));
        if size.is_none() {
            self.problem(span, "the size of such a type is not known here");
        }
        size.map(|(size, _)| i128::from(size))
    }

    /// The size of an array. None after a mistake.
    pub(super) fn size(&mut self, expr: &Expr) -> Option<u32> {
        let value = self.integer(expr)?;
        match u32::try_from(value) {
            Ok(size) if size > 0 => Some(size),
            _ => {
                let problem = Problem::new(expr.span, format!("{value} is not a size"));
                self.report.add(problem.expected(["an integer from 1 to 4294967295"]));
                None
            }
        }
    }

    /// The value of a constant of this shape. The shape decides how the expression is read: as a text, a
    /// number with a point, a character, a member of an enumeration or an integer.
    pub(super) fn literal(&mut self, expr: &Expr, shape: &Shape) -> Option<Value> {
        let value = match (shape.resolved(), &expr.kind) {
            (Shape::Text(_), ExprKind::Text(value)) => Value::Text(value.clone()),
            (float @ (Shape::F32 | Shape::F64), _) => {
                let value = self.real(expr)?;
                let most = if matches!(float, Shape::F32) { f64::from(f32::MAX) } else { f64::MAX };
                // Neither is NaN.
                if value.is_nan() || value.abs() > most {
                    return self.misfit(expr);
                }
                Value::Float(value)
            }
            (Shape::Char | Shape::WideChar, ExprKind::Char(value)) => Value::Char(*value),
            (Shape::Char | Shape::WideChar, _) => {
                match u32::try_from(self.integer(expr)?).ok().and_then(char::from_u32) {
                    Some(value) => Value::Char(value),
                    None => return self.misfit(expr),
                }
            }
            (Shape::Bool, _) => Value::Bool(self.integer(expr)? != 0),
            (Shape::Enum(members), _) => {
                let value = self.integer(expr)?;
                match narrow(value) {
                    Some(value) => Value::member(members, value),
                    None => return self.misfit(expr),
                }
            }
            (resolved, _) => {
                let Some(width) = resolved.width().filter(|_| !matches!(resolved, Shape::F32 | Shape::F64))
                else {
                    return self.misfit(expr);
                };
                Value::Integer(wrapped(self.integer(expr)?, resolved, width))
            }
        };
        Some(value)
    }

    /// The value of an expression with points, as C computes it. Both sides are taken as numbers with points
    /// where one of them is; a part without any is computed with integers first.
    fn real(&mut self, expr: &Expr) -> Option<f64> {
        match &expr.kind {
            ExprKind::Float(value) => Some(*value),
            ExprKind::Name(name) if self.reals.contains_key(name) => self.reals.get(name).copied(),
            ExprKind::Unary("-", operand) => Some(-self.real(operand)?),
            ExprKind::Binary(operator @ ("+" | "-" | "*" | "/"), left, right) if self.has_point(expr) => {
                let (left, right) = (self.real(left)?, self.real(right)?);
                Some(match *operator {
                    "+" => left + right,
                    "-" => left - right,
                    "*" => left * right,
                    _ => left / right,
                })
            }
            _ => Some(real(self.integer(expr)?)),
        }
    }

    /// Whether a number with a point is anywhere in it.
    fn has_point(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Float(_) => true,
            ExprKind::Name(name) => self.reals.contains_key(name),
            ExprKind::Unary(_, operand) => self.has_point(operand),
            ExprKind::Binary(_, left, right) => self.has_point(left) || self.has_point(right),
            _ => false,
        }
    }

    /// Reports it; None, to be returned at once.
    fn misfit(&mut self, expr: &Expr) -> Option<Value> {
        self.problem(expr.span, "this value does not fit the type of the constant");
        None
    }
}

/// Size and alignment in bytes as a compiler of C for Windows has them. None where that depends on the size of pointers, or is not known.
fn bytes_in_c(shape: &Shape, depth: usize) -> Option<(u64, u64)> {
    if depth > limits::NESTING {
        return None;
    }
    match shape {
        // An automation boolean has 16 bits; a name with a parenthesis is an attribute of arrays and texts.
        Shape::Alias(alias) if alias.name == "VARIANT_BOOL" => Some((2, 2)),
        Shape::Alias(alias) if alias.name.contains('(') => None,
        Shape::Alias(alias) => bytes_in_c(&alias.target, depth + 1),
        Shape::Char => Some((1, 1)),
        Shape::WideChar => Some((2, 2)),
        Shape::Enum(_) => Some((4, 4)),
        Shape::Array(array) => {
            let (size, alignment) = bytes_in_c(&array.element, depth + 1)?;
            Some((size.checked_mul(array.len.into())?, alignment))
        }
        Shape::Struct(fields) => {
            let (mut size, mut widest) = (0_u64, 1);
            for field in fields.get()?.fields.iter() {
                let (bytes, alignment) = bytes_in_c(&field.shape, depth + 1)?;
                size = size.checked_next_multiple_of(alignment)?.checked_add(bytes)?;
                widest = alignment.max(widest);
            }
            Some((size.checked_next_multiple_of(widest)?, widest))
        }
        other => {
            let width = u64::try_from(other.width()?).ok().filter(|width| *width > 0)?;
            Some((width, width))
        }
    }
}

/// As C makes it: the nearest one.
#[allow(clippy::cast_precision_loss)]
fn real(value: i128) -> f64 {
    value as f64
}

/// One operator of C; None where the result does not fit 128 bits, for a division by zero, and for shifts by
/// 64 and more.
fn binary(operator: &str, left: i128, right: i128) -> Option<i128> {
    let shift = u32::try_from(right).ok().filter(|bits| *bits < 64);
    match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "<<" => shift.and_then(|bits| left.checked_mul(1i128 << bits)),
        ">>" => shift.map(|bits| left >> bits),
        "|" => Some(left | right),
        "&" => Some(left & right),
        "^" => Some(left ^ right),
        "||" => Some(i128::from(left != 0 || right != 0)),
        "&&" => Some(i128::from(left != 0 && right != 0)),
        "==" => Some(i128::from(left == right)),
        "!=" => Some(i128::from(left != right)),
        "<" => Some(i128::from(left < right)),
        ">" => Some(i128::from(left > right)),
        "<=" => Some(i128::from(left <= right)),
        ">=" => Some(i128::from(left >= right)),
        _ => None,
    }
}

/// The number as its width holds it: a result code is written as 0x80040200 and is negative.
fn wrapped(value: i128, shape: &Shape, width: usize) -> i128 {
    let bits = u32::try_from(width * 8).unwrap_or(64).min(64);
    let modulus = 1i128 << bits;
    let low = value.rem_euclid(modulus);
    let signed = matches!(shape, Shape::I8 | Shape::I16 | Shape::I32 | Shape::I64);
    if signed && low >= modulus / 2 { low - modulus } else { low }
}

/// The value of a member as it is kept: 32 bits, with a sign or without.
pub(super) fn narrow(value: i128) -> Option<i32> {
    u32::try_from(value).map(u32::cast_signed).or_else(|_| i32::try_from(value)).ok()
}

/// A label as the discriminator holds it: the same bits, with a sign or without. None where it has more bits.
pub(super) fn labelled(value: i128, discriminator: &Shape) -> Option<i64> {
    let shape = discriminator.resolved();
    let Some(width) = shape.width() else { return narrow(value).map(i64::from) };
    let modulus = 1_i128 << (width * 8).min(64);
    if !(-modulus / 2..modulus).contains(&value) {
        return None;
    }
    let wrapped = wrapped(value, shape, width);
    // 64 bits without a sign are kept as the same bits with one.
    i64::try_from(wrapped).or_else(|_| u64::try_from(wrapped).map(u64::cast_signed)).ok()
}
