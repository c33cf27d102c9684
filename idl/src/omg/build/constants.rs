//! Constant expressions: their values, checked against the type they are for (CORBA 3.0, 3.10.2).
//!
//! Integers are computed with 128 bits and must fit 64 after every step, signed or unsigned; in the end they
//! must fit their type. So no step can overflow, and an intermediate value may be larger than the type. Depth
//! and number of operators were bounded by the parser.

use super::super::ast::{Expr, ExprKind, ScopedName};
use super::super::limits;
use super::Builder;
use super::named_item::NamedItem;
use crate::report::Problem;
use everywire_model::fixed::Fixed;
use everywire_model::long_double;
use everywire_model::shape::TextKind;
use everywire_model::{Shape, Value};
use std::ops::RangeInclusive;

impl Builder<'_> {
    /// The value of an expression for a type.
    pub(super) fn constant(&mut self, expr: &Expr, shape: &Shape) -> Option<Value> {
        if let Some(fixed) = Fixed::named(shape) {
            return self.fixed_value(expr, fixed);
        }
        if long_double::is(shape) {
            self.lacking = Some("a constant of the type `long double`".into());
            return None;
        }
        match shape.resolved() {
            whole if range_of(whole).is_some() => self.integer(expr, shape).map(Value::Integer),
            Shape::F32 => {
                // It is kept with all its digits; the codec rounds it.
                let value = self.float(expr)?;
                if value.abs() > f64::from(f32::MAX) {
                    return self.wrong(expr, format!("{value:e} does not fit a float"));
                }
                Some(Value::Float(value))
            }
            Shape::F64 => self.float(expr).map(Value::Float),
            other => self.plain(expr, other),
        }
    }

    /// The value of an integer expression, which fits the type.
    pub(super) fn integer(&mut self, expr: &Expr, shape: &Shape) -> Option<i128> {
        let range = range_of(shape)?;
        let value = self.whole(expr, &range)?;
        if range.contains(&value) {
            return Some(value);
        }
        let problem = Problem::new(
            expr.span,
            format!("{value} does not fit the type, which holds {} to {}", range.start(), range.end()),
        );
        // `~0` for a short number is what people write, and has 32 bits in OMG IDL.
        let masked = *range.start() == 0 && value > *range.end() && has_complement(expr);
        let help = masked.then(|| {
            format!(
                "`~` is computed with {} bits: write `... & {:#x}`",
                128 - widest(&range).leading_zeros(),
                range.end()
            )
        });
        self.report.add(problem.maybe_help(help));
        None
    }

    /// `range` is that of the type the whole expression is for: it decides what `~` means.
    fn whole(&mut self, expr: &Expr, range: &RangeInclusive<i128>) -> Option<i128> {
        let value = match &expr.kind {
            ExprKind::Integer(value) => Some(i128::from(*value)),
            // A constant is a value by now: it was evaluated where it was defined.
            ExprKind::Name(name) => match self.named_value(name)? {
                (_, Value::Integer(value)) => Some(value),
                (_, other) => {
                    return self
                        .wrong(expr, format!("`{}` is {}, not an integer", name.text(), other.noun()));
                }
            },
            ExprKind::Unary(operator, operand) => {
                let value = self.whole(operand, range)?;
                match operator {
                    '-' => value.checked_neg(),
                    // A negative number is one in two's complement.
                    '~' if *range.start() == 0 && value >= 0 => Some(widest(range) - value),
                    '~' => Some(-1 - value),
                    _ => Some(value),
                }
            }
            ExprKind::Binary(operator, left, right) => {
                // Both sides are evaluated before either can fail, so that mistakes in both are reported.
                let (a, b) = (self.whole(left, range), self.whole(right, range));
                let (a, b) = (a?, b?);
                if matches!(operator, '/' | '%') && b == 0 {
                    return self.wrong(right, "division by zero");
                }
                // The specification allows 0 to 63 (CORBA 3.0, 3.10.2).
                if matches!(operator, '<' | '>') && !(0..64).contains(&b) {
                    return self.wrong(right, format!("a shift by {b} is not between 0 and 63"));
                }
                // Other operators do not look at it.
                let bits = u32::try_from(b).unwrap_or_default();
                match operator {
                    '|' => Some(a | b),
                    '^' => Some(a ^ b),
                    '&' => Some(a & b),
                    // What is shifted out at the left is lost. A shift by more than there are bits is no such thing: it is
                    // checked like a product, since compilers make different numbers of it.
                    '<' if a >= 0 && a <= widest(range) && (1 << bits.min(63)) <= widest(range) => {
                        Some((a << bits.min(63)) & widest(range))
                    }
                    '<' => a.checked_mul(1 << bits.min(63)),
                    '>' => Some(a >> bits.min(63)),
                    '+' => a.checked_add(b),
                    '-' => a.checked_sub(b),
                    '*' => a.checked_mul(b),
                    '/' => a.checked_div(b),
                    _ => a.checked_rem(b),
                }
            }
            _ => return self.wrong_kind(expr, "an integer"),
        };
        match value {
            Some(value) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value) => Some(value),
            _ => self.wrong(expr, "this does not fit 64 bits"),
        }
    }

    /// Integers are taken as numbers with a fraction; the loss beyond 53 bits is that of every compiler.
    fn float(&mut self, expr: &Expr) -> Option<f64> {
        let value = match &expr.kind {
            ExprKind::Float(value) => *value,
            #[allow(clippy::cast_precision_loss)]
            ExprKind::Integer(value) => *value as f64,
            ExprKind::Name(name) => match self.named_value(name)? {
                (_, Value::Float(value)) => value,
                #[allow(clippy::cast_precision_loss)]
                (_, Value::Integer(value)) => value as f64,
                (_, other) => {
                    return self.wrong(expr, format!("`{}` is {}, not a number", name.text(), other.noun()));
                }
            },
            ExprKind::Unary('-', operand) => -self.float(operand)?,
            ExprKind::Unary('+', operand) => self.float(operand)?,
            ExprKind::Binary(operator @ ('+' | '-' | '*' | '/'), left, right) => {
                let (a, b) = (self.float(left), self.float(right));
                let (a, b) = (a?, b?);
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }
            }
            ExprKind::Unary(..) | ExprKind::Binary(..) => {
                return self.wrong(expr, "numbers with a fraction have only + - * /");
            }
            _ => return self.wrong_kind(expr, "a number"),
        };
        if value.is_finite() { Some(value) } else { self.wrong(expr, "this is no finite number") }
    }

    /// Values that have no operators.
    fn plain(&mut self, expr: &Expr, shape: &Shape) -> Option<Value> {
        // A literal must be of the kind that the type wants. Only the `L` may be missing, as in contracts of JacORB.
        let value = match (&expr.kind, shape) {
            (ExprKind::Bool(value), Shape::Bool) => Value::Bool(*value),
            (ExprKind::Char { wide: false, value }, Shape::Char)
            | (ExprKind::Char { value, .. }, Shape::WideChar) => Value::Char(*value),
            (ExprKind::Text { wide, value }, Shape::Text(text)) if !*wide || text.kind == TextKind::Wide => {
                Value::Text(value.clone())
            }
            (ExprKind::Name(name), _) => {
                let (from, value) = self.named_value(name)?;
                // A string of any bound may be given to one of another; the length is checked below.
                let fits = match (from.resolved(), shape) {
                    (Shape::Enum(a), Shape::Enum(b)) => a.name == b.name,
                    (Shape::Text(a), Shape::Text(b)) => a.kind == b.kind,
                    (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
                };
                if !fits {
                    return self.wrong(
                        expr,
                        format!("`{}` is {}, not {}", name.text(), value.noun(), wanted(shape)),
                    );
                }
                value
            }
            (_, Shape::Bool | Shape::Char | Shape::WideChar | Shape::Text(_) | Shape::Enum(_)) => {
                return self.wrong_kind(expr, wanted(shape));
            }
            _ => return self.wrong(expr, "a constant cannot be of this type"),
        };
        if let (Shape::Text(text), Value::Text(value)) = (shape, &value)
            && text.bound.is_some_and(|bound| value.chars().count() > bound as usize)
        {
            return self.wrong(expr, "this string is longer than its type allows");
        }
        if let Value::Text(value) = &value {
            self.texts += value.len();
            if self.texts > limits::TEXTS {
                let message = format!("the constants have more than {} MiB of text", limits::TEXTS >> 20);
                return self.wrong(expr, message);
            }
        }
        Some(value)
    }

    /// The constant or enumerator with this name.
    pub(super) fn named_value(&mut self, name: &ScopedName) -> Option<(Shape, Value)> {
        match self.resolve(name)? {
            NamedItem::Constant(shape, value) => Some((shape, value)),
            NamedItem::Enumerator(members, value) => {
                let member = members.name_of(value)?.to_owned();
                Some((Shape::Enum(members), Value::Member(member)))
            }
            other => {
                let message = format!("`{}` is {}, not a constant", name.text(), other.noun());
                self.report.add(Problem::new(name.span, message).expected(["a constant"]));
                None
            }
        }
    }

    /// Reports a mistake of this expression; None, to be returned at once.
    pub(super) fn wrong<T>(&mut self, expr: &Expr, message: impl Into<String>) -> Option<T> {
        self.report.add(Problem::new(expr.span, message));
        None
    }

    /// The same for a literal of another kind than the type wants.
    pub(super) fn wrong_kind<T>(&mut self, expr: &Expr, wanted: &str) -> Option<T> {
        let found = match &expr.kind {
            ExprKind::Integer(_) => "an integer",
            ExprKind::Float(_) => "a number with a fraction",
            ExprKind::Fixed(_) => "a fixed-point number",
            ExprKind::Char { wide: false, .. } => "a character",
            ExprKind::Char { wide: true, .. } => "a wide character",
            ExprKind::Text { wide: false, .. } => "a string",
            ExprKind::Text { wide: true, .. } => "a wide string",
            ExprKind::Bool(_) => "a boolean",
            ExprKind::Name(_) | ExprKind::Unary(..) | ExprKind::Binary(..) => "an expression",
        };
        self.report.add(Problem::new(expr.span, format!("{found} does not belong here")).expected([wanted]));
        None
    }
}

/// The values of a type, for people.
fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "`TRUE` or `FALSE`",
        Shape::Char => "a character",
        Shape::WideChar => "a wide character",
        Shape::Text(text) if text.kind == TextKind::Wide => "a wide string",
        Shape::Text(_) => "a string",
        Shape::Enum(_) => "an enumerator of this type",
        _ => "a constant",
    }
}

/// The greatest number of the type that constants of a range are computed in: they have 32 bits, or 64 for the long types (CORBA 3.0,
/// 3.10.2).
fn widest(range: &RangeInclusive<i128>) -> i128 {
    if *range.end() > i128::from(u32::MAX) { u64::MAX.into() } else { u32::MAX.into() }
}

/// Whether a complement is anywhere in an expression.
fn has_complement(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Unary(operator, operand) => *operator == '~' || has_complement(operand),
        ExprKind::Binary(_, left, right) => has_complement(left) || has_complement(right),
        _ => false,
    }
}

/// None for what is no integer.
fn range_of(shape: &Shape) -> Option<RangeInclusive<i128>> {
    Some(match shape.resolved() {
        Shape::U8 => 0..=u8::MAX.into(),
        Shape::I8 => i8::MIN.into()..=i8::MAX.into(),
        Shape::U16 => 0..=u16::MAX.into(),
        Shape::I16 => i16::MIN.into()..=i16::MAX.into(),
        Shape::U32 => 0..=u32::MAX.into(),
        Shape::I32 => i32::MIN.into()..=i32::MAX.into(),
        Shape::U64 => 0..=u64::MAX.into(),
        Shape::I64 => i64::MIN.into()..=i64::MAX.into(),
        _ => return None,
    })
}
