//! Constants that MIDL itself cannot say, and that a printed contract has for the C header: `cpp_quote`.
//!
//! ```text
//! cpp_quote("static const double BLEND = 1.0;")
//! cpp_quote("#define TICKS 1099511627776LL")
//! ```
//!
//! Only these two forms are taken, as the printer writes them. All other text is C, of which nothing is known here.

use super::super::ast::{Declarator, Expr, ExprKind, Ident, ItemKind, TypeKind, TypeSpec};
use crate::report::Span;
use everywire_model::Shape;

/// The constant that a quoted text defines, if it is of the forms above.
pub(super) fn constant(text: &str, span: Span) -> Option<ItemKind> {
    let (shape, name, kind) = match text.strip_prefix("static const ") {
        Some(rest) => number_with_point(rest)?,
        None => long(text.strip_prefix("#define ")?)?,
    };
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let (value, is_negative) = kind;
    let mut value = Expr { kind: value, span };
    if is_negative {
        value = Expr { kind: ExprKind::Unary("-", Box::new(value)), span };
    }
    let ident = Ident { name: name.to_owned(), span };
    let spec = TypeSpec { kind: TypeKind::Base(shape), span };
    Some(ItemKind::Constant(spec, Declarator { ident, ..Declarator::default() }, value))
}

/// A value without its sign, and whether it is negative.
type SignedValue = (ExprKind, bool);

/// `double NAME = 1.5;`
fn number_with_point(text: &str) -> Option<(Shape, &str, SignedValue)> {
    let (shape, rest) = match text.strip_prefix("double ") {
        Some(rest) => (Shape::F64, rest),
        None => (Shape::F32, text.strip_prefix("float ")?),
    };
    let (name, value) = rest.strip_suffix(';')?.split_once(" = ")?;
    let (digits, is_negative) = signed(value);
    // The parser of the library knows infinities by name; C does not.
    let value: f64 = digits.parse().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))?;
    value.is_finite().then_some((shape, name, (ExprKind::Float(value), is_negative)))
}

/// `NAME 123LL`, with a `U` before it where the number has no sign.
fn long(text: &str) -> Option<(Shape, &str, SignedValue)> {
    let (name, value) = text.split_once(' ')?;
    let value = value.strip_suffix("LL")?;
    let (value, shape) = match value.strip_suffix('U') {
        Some(value) => (value, Shape::U64),
        None => (value, Shape::I64),
    };
    let (digits, is_negative) = signed(value);
    let is_plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_plain)?;
    Some((shape, name, (ExprKind::Integer(number), is_negative)))
}

/// A number without its sign, and whether it is negative.
fn signed(value: &str) -> (&str, bool) {
    value.strip_prefix('-').map_or((value, false), |digits| (digits, true))
}
